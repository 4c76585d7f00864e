/**
 * What rspamd's answer to /checkv2 (https://rspamd.com/doc/developers/protocol.html) means for the message:
 *
 *   reject, discard ─▶ refuse     soft reject ─▶ defer     no action, greylist ─▶ accept
 *   add header, rewrite subject, quarantine ─▶ accept, with X-Spam: Yes, the score, and what
 *                                              milter.add_headers says
 *
 * "discard" is what rspamd would take and throw away: here nothing ends without a word to its sender. There
 * is no quarantine: who reads the message finds the mark.
 *
 * "greylist" is a remark on the score: who is to come back is told by rspamd's greylist module with "soft
 * reject". To defer on the remark alone would defer for ever.
 *
 * rspamd puts what the sender wrote into fields it adds. Such a text must not be a way past on_failure:
 * accept, so that its values are made harmless, and what is no field even then, or too long, is left out; nor
 * a way to lose X-Spam, which stands first and is told apart from them (mark). Nothing is removed from a
 * message, and no Subject is rewritten: see prefix-fields.ts. Pure.
 */
import type { HookAnswer } from './message-hook.js';
import { FIELDS_MAX, FIELDS_OCTETS_MAX, fieldsThatFit } from './prefix-fields.js';
import type { HeaderField } from './prefix-fields.js';

const SPAM_FIELD = 'X-Spam';
const SCORE_FIELD = 'X-Spam-Score';
/** Hooks behind this one want to say something too. */
const ROOM = { count: FIELDS_MAX / 2, octets: FIELDS_OCTETS_MAX / 2 };

export function rspamdVerdict(answer: unknown): HookAnswer {
  if (!isObject(answer)) return { action: 'failed', why: 'its answer is no JSON object' };
  const { action, messages } = answer;
  const said = isObject(messages) ? messages['smtp_message'] : undefined;
  const text = typeof said === 'string' ? said : '';
  switch (action) {
    case 'reject':
    case 'discard':
      return { action: 'refuse', text };
    case 'soft reject':
      return { action: 'defer', text };
    case 'no action':
    case 'greylist':
      return { action: 'accept', mark: [], fields: fieldsOf(answer) };
    case 'add header':
    case 'rewrite subject':
    case 'quarantine':
      return spam(answer);
    default:
      return { action: 'failed', why: `its answer has an action that is not known: ${shown(action)}` };
  }
}

/** Of a score that rspamd itself puts in front the form is the operator's. */
function spam(answer: Readonly<Record<string, unknown>>): HookAnswer {
  const { score, required_score: required } = answer;
  const fields = fieldsOf(answer).filter(({ name }) => !isNamed(name, SPAM_FIELD));
  const mark: HeaderField[] = [{ name: SPAM_FIELD, value: 'Yes' }];
  const hasScore = fields.some(({ name }) => isNamed(name, SCORE_FIELD));
  if (!hasScore && typeof score === 'number' && typeof required === 'number') {
    mark.push({ name: SCORE_FIELD, value: `${score.toFixed(2)} / ${required.toFixed(2)}` });
  }
  return { action: 'accept', mark, fields };
}

/** In the order in which rspamd names them; as many as there is room for. */
function fieldsOf(answer: Readonly<Record<string, unknown>>): readonly HeaderField[] {
  const wanted: HeaderField[] = [];
  const { milter } = answer;
  const added = isObject(milter) && isObject(milter['add_headers']) ? milter['add_headers'] : {};
  for (const [name, value] of Object.entries(added)) addValues(wanted, name, value);
  addValues(wanted, 'DKIM-Signature', answer['dkim-signature']);
  return fieldsThatFit(wanted, ROOM);
}

/** A text, {value, order}, or a list of either. */
function addValues(fields: HeaderField[], name: string, value: unknown): void {
  if (typeof value === 'string') fields.push({ name, value: harmless(value) });
  else if (Array.isArray(value)) for (const each of value.slice(0, FIELDS_MAX)) addValue(fields, name, each);
  else addValue(fields, name, value);
}

function addValue(fields: HeaderField[], name: string, value: unknown): void {
  const text = isObject(value) ? value['value'] : value;
  if (typeof text === 'string') fields.push({ name, value: harmless(text) });
}

/** Line ends that fold stay; others become blanks, and what is not printable ASCII question marks. */
function harmless(value: string): string {
  return value
    .replace(/\r\n|\r/g, '\n')
    .replace(/\n(?![ \t]+[^ \t\n])/g, ' ')
    .replace(/[^\t\n -~]/g, '?')
    .trim();
}

function isNamed(name: string, other: string): boolean {
  return name.toLowerCase() === other.toLowerCase();
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shown(action: unknown): string {
  return typeof action === 'string' ? action.slice(0, 40) : typeof action;
}
