/**
 * Composes delivery status notifications (RFC 3464) as a multipart/report (RFC 6522), CRLF throughout:
 *
 *   header                      From MAILER-DAEMON, Auto-Submitted (RFC 3834)
 *   1 text/plain                what happened, for people
 *   2 message/delivery-status   what happened, for programs (RFC 3464 2)
 *   3 message/rfc822            the content, when small or asked for by RET=FULL (RFC 3461 4.3), else
 *     text/rfc822-headers       its header
 *
 * With SMTPUTF8 parts 2 and 3 are their global forms and text is UTF-8 (RFC 6533); without it our own text
 * is ASCII. Reply texts come from strangers: dsn-text.ts lets nothing through that could end a line. By hand
 * rather than by a library because every byte of the returned content must stay as it is.
 *
 * The caller sends it with the null reverse-path (RFC 3464 2) and never composes one for a message that came
 * with it. Not here: when a report is owed (gateway/queue), how it is queued (gateway/core.ts).
 */
import { mailDate } from '../../base/mail-date.js';
import { randomBytes } from 'node:crypto';
import { ENVELOPE_8BITMIME, ENVELOPE_DOT_LINES, ENVELOPE_SMTPUTF8, RET_FULL, RET_HEADERS } from '../queue/types.js';
import type { Envelope, Recipient } from '../queue/types.js';
import { fold, oneLine, xtextDecoded } from './dsn-text.js';

/**
 * What happened to a recipient, in the words of RFC 3464 2.3.3. `relayed`: taken by a next hop that makes no
 * success reports.
 */
export type DsnAction = 'failed' | 'delayed' | 'delivered' | 'relayed';

export interface DsnRecipient {
  readonly recipient: Recipient;
  readonly action: DsnAction;
  readonly code: number;
  readonly enhanced: string;
  readonly text: string;
  /** "host[address]:port" of the next hop, or '' when it was never reached. */
  readonly relay: string;
  readonly lastAttemptWallMs: number;
}

export interface DsnRequest {
  readonly kind: 'failure' | 'success' | 'delay';
  /** Our host name: Reporting-MTA and the domain of MAILER-DAEMON. */
  readonly reportingMta: string;
  /** Id of the new message as text, unique: Message-ID and MIME boundary are made of it. */
  readonly dsnId: string;
  /** Id of the reported message as text, as in our logs. */
  readonly queueId: string;
  readonly envelope: Envelope;
  readonly recipients: readonly DsnRecipient[];
  /** Content of the reported message. */
  readonly content: Uint8Array;
  readonly dateWallMs: number;
}

/** A content up to this comes back whole where RET does not say otherwise (what Postfix's users know). */
const WHOLE_BYTES_MAX = 50_000;
/** With RET=FULL too there is an end: a report must not be what fills the queue. */
const RET_FULL_BYTES_MAX = 1024 * 1024;
/** Of a header this much comes back, cut at a line end. */
const HEADER_BYTES_MAX = 64 * 1024;

/** Nobody guesses 96 bits; 24 characters keep the boundary within the 70 of RFC 2046 5.1.1. */
const RANDOM_BYTES = 12;

const CRLF = '\r\n';
const CR = 13;
const LF = 10;
const DOT = 46;

const SUBJECTS = {
  failure: 'Your message could not be delivered',
  success: 'Your message was passed on',
  delay: 'Your message is delayed',
} as const;

const INTRODUCTIONS = {
  failure: 'Your message could not be delivered to the recipients below. It will not be tried again for them.',
  success: 'Your message was passed on for the recipients below. The mail system that took it makes no reports of success: you may hear no more of it.',
  delay: 'Your message has not been delivered to the recipients below yet. It is still being tried; you need not send it again.',
} as const;

/** The whole report. Its envelope flags: dsnFlags(). */
export function composeDsn(request: DsnRequest): Uint8Array {
  const isUtf8 = (request.envelope.flags & ENVELOPE_SMTPUTF8) !== 0;
  const returned = returnedContent(request);
  const isWhole = returned.length === request.content.length && request.content.length > 0 && mayReturnWhole(request);
  const is8bit = hasHighByte(returned);
  const boundary = freeBoundary(request.dsnId, returned);
  const text = textPart(request, isUtf8);
  const status = statusPart(request, isUtf8);
  const before =
    header(request, boundary, isUtf8, is8bit || hasHighCharacter(text) || hasHighCharacter(status)) +
    partStart(boundary, `text/plain; charset=${isUtf8 ? 'utf-8' : 'us-ascii'}`, 'Notification', hasHighCharacter(text)) + text +
    partStart(boundary, isUtf8 ? 'message/global-delivery-status' : 'message/delivery-status', 'Delivery report', hasHighCharacter(status)) + status +
    partStart(boundary, returnedType(isWhole, isUtf8), isWhole ? 'Undelivered message' : 'Header of the message', is8bit);
  const after = `${endsWithLine(returned) ? '' : CRLF}${CRLF}--${boundary}--${CRLF}`;
  return joined(before, returned, after);
}

/** Envelope flags of a composed report: 8-bit bytes, dot lines, SMTPUTF8 as the message reported had it. */
export function dsnFlags(report: Uint8Array, reported: Envelope): number {
  let flags = reported.flags & ENVELOPE_SMTPUTF8;
  if (hasHighByte(report)) flags |= ENVELOPE_8BITMIME;
  for (let i = report.indexOf(DOT); i >= 0; i = report.indexOf(DOT, i + 1)) {
    if (i > 0 && report[i - 1] !== LF) continue;
    flags |= ENVELOPE_DOT_LINES;
    break;
  }
  return flags;
}

function header(request: DsnRequest, boundary: string, isUtf8: boolean, is8bit: boolean): string {
  const mta = oneLine(request.reportingMta, isUtf8);
  const reportType = isUtf8 ? 'global-delivery-status' : 'delivery-status';
  return [
    `Date: ${mailDate(request.dateWallMs)}`,
    `From: Mail Delivery System <MAILER-DAEMON@${mta}>`,
    `To: <${oneLine(request.envelope.reversePath, isUtf8)}>`,
    `Subject: ${SUBJECTS[request.kind]}`,
    `Message-ID: <${request.dsnId}@${mta}>`,
    'Auto-Submitted: auto-replied',
    'MIME-Version: 1.0',
    `Content-Type: multipart/report; report-type=${reportType};${CRLF} boundary="${boundary}"`,
    `Content-Transfer-Encoding: ${is8bit ? '8bit' : '7bit'}`,
    '',
    'This is a report in MIME format.',
  ].join(CRLF);
}

function partStart(boundary: string, type: string, description: string, is8bit: boolean): string {
  return `${CRLF}${CRLF}--${boundary}${CRLF}Content-Description: ${description}${CRLF}Content-Type: ${type}${CRLF}Content-Transfer-Encoding: ${is8bit ? '8bit' : '7bit'}${CRLF}${CRLF}`;
}

function returnedType(isWhole: boolean, isUtf8: boolean): string {
  if (isUtf8) return isWhole ? 'message/global' : 'message/global-headers';
  return isWhole ? 'message/rfc822' : 'text/rfc822-headers';
}

function textPart(request: DsnRequest, isUtf8: boolean): string {
  const lines = [
    `This is the mail system at ${oneLine(request.reportingMta, isUtf8)}.`,
    '',
    ...fold(INTRODUCTIONS[request.kind], ''),
    '',
  ];
  for (const one of request.recipients) {
    lines.push(...fold(`<${oneLine(one.recipient.address, isUtf8)}>: ${explanation(one, isUtf8)}`, '    '), '');
  }
  lines.push(`Our number for this message: ${oneLine(request.queueId, isUtf8)}`, '');
  return lines.join(CRLF);
}

function explanation(one: DsnRecipient, isUtf8: boolean): string {
  const said = oneLine(one.text, isUtf8);
  if (one.code === 0) return said === '' ? one.enhanced : said;
  return one.relay === '' ? `the next hop said: ${said}` : `${oneLine(one.relay, isUtf8)} said: ${said}`;
}

function statusPart(request: DsnRequest, isUtf8: boolean): string {
  const envelope = request.envelope;
  const lines = [...fold(`Reporting-MTA: dns; ${oneLine(request.reportingMta, isUtf8)}`, ' ')];
  if (envelope.envid !== '') lines.push(...fold(`Original-Envelope-Id: ${oneLine(xtextDecoded(envelope.envid), isUtf8)}`, ' '));
  lines.push(`Arrival-Date: ${mailDate(envelope.arrivalWallMs)}`);
  for (const one of request.recipients) lines.push('', ...recipientFields(one, isUtf8));
  return lines.join(CRLF);
}

function recipientFields(one: DsnRecipient, isUtf8: boolean): string[] {
  const fields: string[] = [];
  const semicolon = one.recipient.orcpt.indexOf(';');
  if (semicolon > 0) {
    const type = oneLine(one.recipient.orcpt.slice(0, semicolon), false);
    fields.push(...fold(`Original-Recipient: ${type}; ${oneLine(xtextDecoded(one.recipient.orcpt.slice(semicolon + 1)), isUtf8)}`, ' '));
  }
  const address = oneLine(one.recipient.address, isUtf8);
  fields.push(...fold(`Final-Recipient: ${isUtf8 && hasHighCharacter(address) ? 'utf-8' : 'rfc822'}; ${address}`, ' '));
  fields.push(`Action: ${one.action}`, `Status: ${oneLine(one.enhanced, false)}`);
  const host = relayHost(one.relay);
  if (host !== '') fields.push(`Remote-MTA: dns; ${oneLine(host, isUtf8)}`);
  // Only what a peer said is a diagnostic of SMTP; our own words are of no protocol (RFC 3464 2.3.6).
  if (one.text !== '') fields.push(...fold(`Diagnostic-Code: ${one.code > 0 ? 'smtp' : 'x-twinpost'}; ${oneLine(one.text, isUtf8)}`, ' '));
  if (one.lastAttemptWallMs > 0) fields.push(`Last-Attempt-Date: ${mailDate(one.lastAttemptWallMs)}`);
  return fields;
}

function relayHost(relay: string): string {
  const bracket = relay.indexOf('[');
  if (bracket > 0) return relay.slice(0, bracket);
  const colon = relay.lastIndexOf(':');
  return colon > 0 ? relay.slice(0, colon) : relay;
}

/** RET speaks of failures only; success and delay reports bring the header (RFC 3461 4.3, 6.2). */
function mayReturnWhole(request: DsnRequest): boolean {
  if (request.kind !== 'failure' || request.envelope.ret === RET_HEADERS) return false;
  return request.content.length <= (request.envelope.ret === RET_FULL ? RET_FULL_BYTES_MAX : WHOLE_BYTES_MAX);
}

function returnedContent(request: DsnRequest): Uint8Array {
  return mayReturnWhole(request) ? request.content : request.content.subarray(0, headerEnd(request.content));
}

/** End of the header, the line end of its last line included. */
function headerEnd(content: Uint8Array): number {
  let lineStart = 0;
  for (;;) {
    const lf = content.indexOf(LF, lineStart);
    if (lf < 0) return lineStart === 0 ? Math.min(content.length, HEADER_BYTES_MAX) : lineStart;
    if (lf === lineStart || (lf === lineStart + 1 && content[lineStart] === CR) || lf >= HEADER_BYTES_MAX) return lineStart;
    lineStart = lf + 1;
  }
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
  while (haystack.includes(boundary, 0, 'latin1')) boundary = `${plain}-${randomBytes(RANDOM_BYTES).toString('hex')}`;
  return boundary;
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
