/**
 * Composes delivery status notifications (RFC 3464) as a multipart/report (RFC 6522), CRLF throughout:
 *
 *   header                      From MAILER-DAEMON, Auto-Submitted (RFC 3834)
 *   1 text/plain                what happened, for people
 *   2 message/delivery-status   what happened, for programs (RFC 3464 2)
 *   3 message/rfc822            the content, when small or asked for by RET=FULL (RFC 3461 4.3), else
 *     text/rfc822-headers       its header
 *
 * Whoever sent the message must get his report through any server, so it is ASCII throughout (RFC 6533 3):
 * addresses of type utf-8 in their 7-bit form, content with 8-bit octets in base64 (message/global, which
 * allows that: RFC 6532 3.7). Only for a reverse-path that needs SMTPUTF8 itself it is UTF-8, in the global
 * forms of parts 2 and 3.
 *
 * What a report may grow to is bounded by what the message brought: fields that next hops fill have a bound
 * for all of them together. No address of a next hop is in it, nor what an alias leads to
 * (hidden-members.ts): what is inside is nobody's business.
 *
 * Reply texts come from strangers: dsn-text.ts lets nothing through that could end a line. By hand rather
 * than by a library because every byte of the returned content must stay as it is.
 *
 * The caller sends it with the null reverse-path (RFC 3464 2) and never composes one for a message that came
 * with it. Not here: when a report is owed (gateway/queue), how it is queued (gateway/daemon/core.ts).
 */
import { headerEnd } from '../../base/header-end.js';
import { mailDate } from '../../base/mail-date.js';
import { randomBytes } from 'node:crypto';
import { unitextAsXtext, utf8AddressText } from '../../base/utf8-address.js';
import { utf8Octets } from '../../base/utf8.js';
import {
  ENVELOPE_8BIT, ENVELOPE_DOT_LINES, ENVELOPE_UTF8_HEADER, RET_FULL, RET_HEADERS,
} from '../mail-types.js';
import {
  HEADER_BYTES_MAX, RET_FULL_BYTES_MAX, SAID_CHARACTERS_MAX, TOLD_RECIPIENTS_MAX,
} from '../queue/reports/report-bounds.js';
import type { ReportKind } from '../queue/reports/report-writer.js';
import type { Envelope, Recipient } from '../mail-types.js';
import { LINE_OCTETS_MAX, fold, foldExactly, oneLine, xtextDecoded } from './dsn-text.js';
import { isHidden, withoutMembers } from './hidden-members.js';
import { TIME_EXPIRED, ownWords } from './own-words.js';

/**
 * What happened to a recipient, in the words of RFC 3464 2.3.3. `relayed`: taken by a next hop that makes no
 * success reports, or behind an alias of ours. `expanded`: an alias of ours stood for several, which we do
 * not tell, nor what became of it there.
 */
export type DsnAction = 'failed' | 'delayed' | 'delivered' | 'relayed' | 'expanded';

export interface DsnRecipient {
  readonly recipient: Recipient;
  readonly action: DsnAction;
  readonly code: number;
  readonly enhanced: string;
  readonly text: string;
  /** Name of the host that said it; '' when nobody did, or it has none. */
  readonly remoteMta: string;
  readonly lastAttemptWallMs: number;
}

export interface DsnRequest {
  readonly kind: ReportKind;
  /** Our host name: Reporting-MTA and the domain of MAILER-DAEMON. */
  readonly reportingMta: string;
  /** Id of the new message as text, unique: Message-ID and MIME boundary are made of it. */
  readonly dsnId: string;
  /** Id of the reported message as text, as in our logs. */
  readonly queueId: string;
  readonly envelope: Envelope;
  readonly recipients: readonly DsnRecipient[];
  /** Content of the reported message; of one too large to come back its beginning, too large as well. */
  readonly content: Uint8Array;
  readonly dateWallMs: number;
}

/** A content up to this comes back whole where RET does not say otherwise (what Postfix's users know). */
const WHOLE_BYTES_MAX = 50_000;
/** RFC 2045 6.8. */
const BASE64_CHARACTERS = 76;

/** Nobody guesses 96 bits; 24 characters keep the boundary within the 70 of RFC 2046 5.1.1. */
const RANDOM_BYTES = 12;

const CRLF = '\r\n';
const LF = 10;
const DOT = 46;

interface Telling {
  readonly subject: string;
  readonly introduction: string;
}

const PASSED_ON = 'Your message is being passed on';

/** By what all of its recipients have in common. */
const TELLINGS: Readonly<Record<DsnAction | 'several', Telling>> = {
  failed: {
    subject: 'Your message could not be delivered',
    introduction:
      'Your message could not be delivered to the recipients below. It will not be tried again for them.',
  },
  delayed: {
    subject: 'Your message is delayed',
    introduction:
      'Your message has not been delivered to the recipients below yet. '
      + 'It is still being tried; you need not send it again.',
  },
  delivered: {
    subject: 'Your message has arrived',
    introduction: 'Your message was delivered to the mailboxes of the recipients below.',
  },
  relayed: {
    subject: PASSED_ON,
    introduction:
      'Your message was passed on for the recipients below. '
      + 'Who took it makes no reports of success: you may hear no more of it.',
  },
  expanded: {
    subject: PASSED_ON,
    introduction:
      'Each address below passes mail on to several others. Your message was taken for them; '
      + 'this report does not tell what became of it there.',
  },
  several: {
    subject: PASSED_ON,
    introduction: 'This is what became of your message for the recipients below.',
  },
};

/** The whole report. Its envelope flags: dsnFlags(). */
export function composeDsn(asked: DsnRequest): Uint8Array {
  const request = { ...asked, recipients: withoutMembers(asked.recipients) };
  const isUtf8 = isInternational(request.envelope);
  const returned = returnedContent(request);
  const isAll = returned.length === request.content.length && request.content.length > 0;
  const isWhole = isAll && mayReturnWhole(request);
  const is8bit = hasHighByte(returned);
  const encoding = !is8bit ? '7bit' : isUtf8 ? '8bit' : 'base64';
  const body = encoding === 'base64' ? base64Lines(returned) : returned;
  const boundary = freeBoundary(request.dsnId, body);
  const own = isUtf8 ? '8bit' : '7bit';
  const textType = `text/plain; charset=${isUtf8 ? 'utf-8' : 'us-ascii'}`;
  const statusType = isUtf8 ? 'message/global-delivery-status' : 'message/delivery-status';
  const returnedName = isWhole ? 'Your message' : 'Header of the message';
  const before =
    header(request, boundary, isUtf8) +
    partStart(boundary, textType, 'Notification', own) + textPart(request, isUtf8) +
    partStart(boundary, statusType, 'Delivery report', own) + statusPart(request, isUtf8) +
    partStart(boundary, returnedType(isWhole, isUtf8, is8bit), returnedName, encoding);
  const after = `${endsWithLine(body) ? '' : CRLF}${CRLF}--${boundary}--${CRLF}`;
  return joined(before, body, after);
}

/** Envelope flags of a composed report. */
export function dsnFlags(report: Uint8Array, reported: Envelope): number {
  let flags = isInternational(reported) ? ENVELOPE_UTF8_HEADER | ENVELOPE_8BIT : 0;
  for (let i = report.indexOf(DOT); i >= 0; i = report.indexOf(DOT, i + 1)) {
    if (i > 0 && report[i - 1] !== LF) continue;
    flags |= ENVELOPE_DOT_LINES;
    break;
  }
  return flags;
}

/** Whether the sender can be reached by SMTPUTF8 only. */
function isInternational({ reversePath }: Envelope): boolean {
  return hasHighCharacter(reversePath);
}

function header(request: DsnRequest, boundary: string, isUtf8: boolean): string {
  const mta = oneLine(request.reportingMta, isUtf8);
  const reportType = isUtf8 ? 'global-delivery-status' : 'delivery-status';
  return [
    `Date: ${mailDate(request.dateWallMs)}`,
    `From: Mail Delivery System <MAILER-DAEMON@${mta}>`,
    `To: <${oneLine(request.envelope.reversePath, isUtf8)}>`,
    `Subject: ${tellingOf(request).subject}`,
    `Message-ID: <${request.dsnId}@${mta}>`,
    'Auto-Submitted: auto-replied',
    'MIME-Version: 1.0',
    `Content-Type: multipart/report; report-type=${reportType};${CRLF} boundary="${boundary}"`,
    `Content-Transfer-Encoding: ${isUtf8 ? '8bit' : '7bit'}`,
    '',
    'This is a report in MIME format.',
  ].join(CRLF);
}

function partStart(boundary: string, type: string, description: string, encoding: string): string {
  const lines = [
    '', '', `--${boundary}`, `Content-Description: ${description}`, `Content-Type: ${type}`,
    `Content-Transfer-Encoding: ${encoding}`, '', '',
  ];
  return lines.join(CRLF);
}

/** message/rfc822 may not be encoded (RFC 2046 5.2.1), a header as text may (RFC 6522 4). */
function returnedType(isWhole: boolean, isUtf8: boolean, is8bit: boolean): string {
  if (isUtf8) return isWhole ? 'message/global' : 'message/global-headers';
  if (!isWhole) return 'text/rfc822-headers';
  return is8bit ? 'message/global' : 'message/rfc822';
}

function textPart(request: DsnRequest, isUtf8: boolean): string {
  const lines = [
    `This is the mail system at ${oneLine(request.reportingMta, isUtf8)}.`,
    '',
    ...fold(tellingOf(request).introduction, ''),
    '',
  ];
  const told = request.recipients.slice(0, TOLD_RECIPIENTS_MAX);
  for (const one of told) {
    const { text } = toldAddress(one.recipient, one.action, isUtf8);
    lines.push(...fold(`<${text}>: ${explanation(one, isUtf8)}`, '    '), '');
  }
  const more = request.recipients.length - told.length;
  if (more > 0) lines.push(`And ${String(more)} more, which the delivery report below names.`, '');
  lines.push(`Our number for this message: ${oneLine(request.queueId, isUtf8)}`, '');
  return lines.join(CRLF);
}

function tellingOf({ recipients: [first, ...others] }: DsnRequest): Telling {
  const isSame = others.every(({ action }) => action === first?.action);
  return TELLINGS[isSame && first !== undefined ? first.action : 'several'];
}

function explanation(one: DsnRecipient, isUtf8: boolean): string {
  const isOver = one.action === 'failed' && one.enhanced.startsWith('4');
  const peer = one.remoteMta === '' ? 'the next mail server' : oneLine(one.remoteMta, isUtf8);
  const last = one.code === 0 ? ownWords(one.enhanced) : `${peer} said: ${oneLine(saidBy(one), isUtf8)}`;
  const said = isOver && one.enhanced !== TIME_EXPIRED ? `${ownWords(TIME_EXPIRED)}; at last: ${last}` : last;
  // Others may have it: of a list the sender knows nothing but its address.
  const isOfAlias = one.action !== 'expanded' && isHidden(one.recipient);
  return isOfAlias ? `of an address that it leads to: ${said}` : said;
}

/** Words may get lost, the codes do not (queue/entry-texts.ts). */
function saidBy({ code, enhanced, text }: DsnRecipient): string {
  return text === '' ? `${String(code)} ${enhanced}` : text;
}

function statusPart(request: DsnRequest, isUtf8: boolean): string {
  const { envelope } = request;
  const lines = [...fold(`Reporting-MTA: dns; ${oneLine(request.reportingMta, isUtf8)}`, ' ')];
  if (envelope.envid !== '') {
    const envid = oneLine(xtextDecoded(envelope.envid), isUtf8);
    lines.push(...foldExactly(`Original-Envelope-Id: ${envid}`));
  }
  lines.push(`Arrival-Date: ${mailDate(envelope.arrivalWallMs)}`);
  const retryUntil = request.kind === 'delay' ? [`Will-Retry-Until: ${mailDate(envelope.expiryWallMs)}`] : [];
  let left = SAID_CHARACTERS_MAX;
  for (const one of request.recipients) {
    lines.push('', ...recipientFields(one, isUtf8), ...retryUntil);
    const said = saidFields(one, isUtf8);
    left -= said.reduce((sum, line) => sum + line.length, 0);
    if (left > 0) lines.push(...said);
  }
  return lines.join(CRLF);
}

/** What RFC 3464 2.3 asks for of each. */
function recipientFields({ recipient, action, enhanced }: DsnRecipient, isUtf8: boolean): string[] {
  const fields: string[] = [];
  const original = originalOf(recipient, isUtf8);
  const final = toldAddress(recipient, action, isUtf8);
  if (original !== undefined) {
    const line = `Original-Recipient: ${typed(original)}`;
    // The field may be missing (RFC 3464 2.3.1); cut in two, it would name another address.
    if (utf8Octets(line) <= LINE_OCTETS_MAX) fields.push(...foldExactly(line));
  }
  fields.push(...foldExactly(`Final-Recipient: ${typed(final)}`));
  fields.push(`Action: ${action}`, `Status: ${oneLine(enhanced, false)}`);
  return fields;
}

/** An address with its type (RFC 3464 2.3.1). */
interface TypedAddress {
  readonly type: string;
  readonly text: string;
}

/** An alias whose address is too long for ORCPT (commands/recipient.ts). */
const UNDISCLOSED: TypedAddress = { type: 'x-twinpost', text: 'undisclosed' };

function typed({ type, text }: TypedAddress): string {
  return `${type}; ${text}`;
}

function typedAddress(address: string, isUtf8: boolean): TypedAddress {
  return { type: hasHighCharacter(address) ? 'utf-8' : 'rfc822', text: addressText(address, isUtf8) };
}

/** As the sender wrote to it: all that a report tells of an alias. */
function originalOf({ orcpt }: Recipient, isUtf8: boolean): TypedAddress | undefined {
  const semicolon = orcpt.indexOf(';');
  const given = orcpt.slice(semicolon + 1);
  if (semicolon <= 0 || given === '') return undefined;
  const type = oneLine(orcpt.slice(0, semicolon), false);
  // The 7-bit form of a utf-8 address is no xtext (RFC 6533 3).
  const text = type.toLowerCase() === 'utf-8' ? given : xtextDecoded(given);
  return { type, text: isUtf8 ? oneLine(text, true) : oneLine(unitextAsXtext(text), false) };
}

function toldAddress(recipient: Recipient, action: DsnAction, isUtf8: boolean): TypedAddress {
  const alias = isHidden(recipient) || action === 'expanded' ? originalOf(recipient, isUtf8) : undefined;
  return alias ?? (isHidden(recipient) ? UNDISCLOSED : typedAddress(recipient.address, isUtf8));
}

/** What may be left out. */
function saidFields(one: DsnRecipient, isUtf8: boolean): string[] {
  const fields: string[] = [];
  if (one.remoteMta !== '') fields.push(...fold(`Remote-MTA: dns; ${oneLine(one.remoteMta, isUtf8)}`, ' '));
  // Only what a peer said is a diagnostic of SMTP; our own words are of no protocol (RFC 3464 2.3.6).
  const diagnostic = one.code > 0 ? `smtp; ${saidBy(one)}` : `x-twinpost; ${ownWords(one.enhanced)}`;
  fields.push(...fold(`Diagnostic-Code: ${oneLine(diagnostic, isUtf8)}`, ' '));
  if (one.lastAttemptWallMs > 0) fields.push(`Last-Attempt-Date: ${mailDate(one.lastAttemptWallMs)}`);
  return fields;
}

/** Nothing in it can end a line. */
function addressText(address: string, isUtf8: boolean): string {
  return oneLine(isUtf8 || !hasHighCharacter(address) ? address : utf8AddressText(address), isUtf8);
}

/** RET speaks of failures only; success and delay reports bring the header (RFC 3461 4.3, 6.2). */
function mayReturnWhole(request: DsnRequest): boolean {
  if (request.kind !== 'failure' || request.envelope.ret === RET_HEADERS) return false;
  return request.content.length <= (request.envelope.ret === RET_FULL ? RET_FULL_BYTES_MAX : WHOLE_BYTES_MAX);
}

function returnedContent(request: DsnRequest): Uint8Array {
  const { content } = request;
  return mayReturnWhole(request) ? content : content.subarray(0, headerEnd(content, HEADER_BYTES_MAX));
}

/**
 * A boundary that is not in the content that comes back: else its author could write parts of the report. Ids
 * can be foreseen, so a content that holds ours gets a random one: had the next try a number, a content that
 * holds thousands of numbers would keep the process searching for seconds.
 */
function freeBoundary(dsnId: string, returned: Uint8Array): string {
  const plain = `report-${dsnId.replace(/[^0-9A-Za-z]/g, '')}`;
  const haystack = Buffer.from(returned.buffer, returned.byteOffset, returned.byteLength);
  let boundary = plain;
  while (haystack.includes(boundary, 0, 'latin1')) {
    boundary = `${plain}-${randomBytes(RANDOM_BYTES).toString('hex')}`;
  }
  return boundary;
}

function base64Lines(bytes: Uint8Array): Uint8Array {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
  const lines: string[] = [];
  for (let at = 0; at < text.length; at += BASE64_CHARACTERS) {
    lines.push(text.slice(at, at + BASE64_CHARACTERS), CRLF);
  }
  return Buffer.from(lines.join(''), 'latin1');
}

function hasHighByte(bytes: Uint8Array): boolean {
  for (let i = 0; i < bytes.length; i++) if ((bytes[i] ?? 0) > 127) return true;
  return false;
}

function hasHighCharacter(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) return true;
  return false;
}

function endsWithLine(bytes: Uint8Array): boolean {
  return bytes.length === 0 || bytes[bytes.length - 1] === LF;
}

function joined(before: string, middle: Uint8Array, after: string): Uint8Array {
  return Buffer.concat([Buffer.from(before, 'utf8'), middle, Buffer.from(after, 'utf8')]);
}
