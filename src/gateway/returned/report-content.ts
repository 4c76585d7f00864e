/**
 * What programs read of reports: fields of message/delivery-status (RFC 3464 2) and of
 * message/feedback-report (RFC 5965 3), from texts that anybody may have written. All that comes out is
 * bounded, of printable characters, and one line each. Pure; which part of a mail is which is found in
 * node/report-entry.ts.
 */
import { z } from 'zod';
import { listOf } from '../../base/json-shape.js';

/** Of one text, and of a field of it: more is not looked at. */
export const RECIPIENTS_MAX = 50;
const FIELDS_MAX = 100;
const VALUE_CHARACTERS_MAX = 500;
export const RETURN_PATHS_MAX = 10;
/** RFC 3464 2.3.3. */
const ACTIONS: ReadonlySet<string> = new Set(['failed', 'delayed', 'delivered', 'relayed', 'expanded']);
/** RFC 5965 3.1, 7.3; RFC 6591; RFC 6692 and others are "other". */
const FEEDBACK_TYPES: ReadonlySet<string> =
  new Set(['abuse', 'fraud', 'virus', 'other', 'not-spam', 'opt-out', 'auth-failure', 'miscategorized']);

const statusShape = z.object({
  /** A word of RFC 3464, or ''. */
  action: z.string(),
  /** "5.1.1", or ''. */
  status: z.string(),
  /** Without its type. */
  finalRecipient: z.string(),
  originalRecipient: z.string(),
  diagnostic: z.string(),
  remoteMta: z.string(),
});
const feedbackShape = z.object({
  /** A word of ours: metrics have it. */
  type: z.string(),
  userAgent: z.string(),
  sourceIp: z.string(),
  mailFrom: z.string(),
  rcptTo: z.string(),
  arrivalDate: z.string(),
});

/** What the thread makes of a mail. */
export const reportShape = z.object({
  recipients: listOf(statusShape, RECIPIENTS_MAX),
  feedback: feedbackShape.optional(),
  /** Reverse-paths of the mail that it is about, as it says itself. */
  returnPaths: listOf(z.string(), RETURN_PATHS_MAX),
});

export type StatusOfRecipient = z.output<typeof statusShape>;
export type Feedback = z.output<typeof feedbackShape>;
export type ReportContent = z.output<typeof reportShape>;

/** Of a message/delivery-status: those that say anything of a recipient, whatever group they stand in. */
export function readDeliveryStatus(text: string): StatusOfRecipient[] {
  const recipients: StatusOfRecipient[] = [];
  for (const fields of fieldGroups(text)) {
    const action = wordOf(fields.get('action'));
    const finalRecipient = typed(fields.get('final-recipient'));
    if (action === '' && finalRecipient === '') continue;
    const [status = ''] = /[245]\.\d{1,3}\.\d{1,3}/.exec(fields.get('status') ?? '') ?? [];
    recipients.push({
      action: ACTIONS.has(action) ? action : '', status, finalRecipient,
      originalRecipient: typed(fields.get('original-recipient')),
      diagnostic: typed(fields.get('diagnostic-code')), remoteMta: typed(fields.get('remote-mta')),
    });
  }
  return recipients;
}

/** Of a message/feedback-report. */
export function readFeedback(text: string): Feedback | undefined {
  const [fields] = fieldGroups(text);
  const type = wordOf(fields?.get('feedback-type'));
  if (fields === undefined || type === '') return undefined;
  const value = (name: string): string => fields.get(name) ?? '';
  return {
    type: FEEDBACK_TYPES.has(type) ? type : 'other',
    userAgent: value('user-agent'), sourceIp: value('source-ip'),
    mailFrom: bare(value('original-mail-from')), rcptTo: bare(value('original-rcpt-to')),
    arrivalDate: fields.get('arrival-date') ?? value('received-date'),
  };
}

/** Of the header section of a mail: what its last server wrote down of MAIL (RFC 5321 4.4). */
export function readReturnPath(header: string): string {
  return bare(fieldGroups(header)[0]?.get('return-path') ?? '');
}

type Fields = ReadonlyMap<string, string>;

/** Fields by their name in lower case, the first of each name; groups are parted by empty lines. */
function fieldGroups(text: string): Fields[] {
  const groups: Fields[] = [];
  for (const block of text.replace(/\r\n?/g, '\n').split(/\n[ \t]*\n\s*/, RECIPIENTS_MAX)) {
    const fields = fieldsOf(block);
    if (fields.size > 0) groups.push(fields);
  }
  return groups;
}

function fieldsOf(block: string): Fields {
  const fields = new Map<string, string>();
  let name = '';
  let value = '';
  const end = (): void => {
    if (name !== '' && fields.size < FIELDS_MAX && !fields.has(name)) fields.set(name, clean(value));
  };
  for (const line of block.split('\n')) {
    if (line.startsWith(' ') || line.startsWith('\t')) {
      if (value.length < VALUE_CHARACTERS_MAX) value += line.slice(0, VALUE_CHARACTERS_MAX);
      continue;
    }
    end();
    const colon = line.indexOf(':');
    name = colon > 0 ? line.slice(0, colon).trim().toLowerCase() : '';
    value = line.slice(colon + 1, colon + 1 + 2 * VALUE_CHARACTERS_MAX);
  }
  end();
  return fields;
}

/** One line of printable characters. */
function clean(value: string): string {
  const text = value.replace(/[\p{C}\p{Z}]+/gu, ' ').trim();
  return text.slice(0, VALUE_CHARACTERS_MAX);
}

/** "failed (given up)": its first word. */
function wordOf(value = ''): string {
  return /^[a-z-]{1,30}/.exec(value.toLowerCase())?.[0] ?? '';
}

/** "rfc822; bob@example.net", "smtp; 550 no such user": without its type. */
function typed(value = ''): string {
  return bare(value.slice(value.indexOf(';') + 1).trim());
}

function bare(value: string): string {
  return value.startsWith('<') && value.endsWith('>') ? value.slice(1, -1) : value;
}
