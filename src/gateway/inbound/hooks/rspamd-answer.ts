/**
 * What rspamd's answer to /checkv2 (https://rspamd.com/doc/developers/protocol.html) means for the message:
 *
 *   reject ─▶ refuse     soft reject ─▶ defer     no action, greylist ─▶ accept
 *   add header, rewrite subject ─▶ accept, with X-Spam: Yes, the score, and what milter.add_headers says
 *
 * "greylist" is a remark on the score: who is to come back is told by rspamd's greylist module with "soft
 * reject". To defer on the remark alone would defer for ever.
 *
 * rspamd puts what the sender wrote into fields it adds. Such a text must not be a way past on_failure:
 * accept, so that its values are made harmless, and what is no field even then is left out. Nothing is
 * removed from a message, and no Subject is rewritten: see prefix-fields.ts. Pure.
 */
import type { HookAnswer } from './message-hook.js';
import { FIELDS_MAX, FIELDS_OCTETS_MAX, fieldRule } from './prefix-fields.js';
import type { HeaderField } from './prefix-fields.js';

const SPAM_FIELD = 'X-Spam';
const SCORE_FIELD = 'X-Spam-Score';

export function rspamdVerdict(answer: unknown): HookAnswer {
  if (!isObject(answer)) return { action: 'failed', why: 'its answer is no JSON object' };
  const { action, messages } = answer;
  const said = isObject(messages) ? messages['smtp_message'] : undefined;
  const text = typeof said === 'string' ? said : '';
  switch (action) {
    case 'reject':
      return { action: 'refuse', text };
    case 'soft reject':
      return { action: 'defer', text };
    case 'no action':
    case 'greylist':
      return { action: 'accept', fields: fieldsOf(answer, false) };
    case 'add header':
    case 'rewrite subject':
      return { action: 'accept', fields: fieldsOf(answer, true) };
    default:
      return { action: 'failed', why: `its answer has an action that is not known: ${shown(action)}` };
  }
}

/** In the order in which rspamd names them; as many as there is room for. */
function fieldsOf(answer: Readonly<Record<string, unknown>>, isSpam: boolean): readonly HeaderField[] {
  const wanted: HeaderField[] = [];
  const { milter, score, required_score: required } = answer;
  const added = isObject(milter) && isObject(milter['add_headers']) ? milter['add_headers'] : {};
  for (const [name, value] of Object.entries(added)) addValues(wanted, name, value);
  addValues(wanted, 'DKIM-Signature', answer['dkim-signature']);
  if (isSpam && !hasField(wanted, SPAM_FIELD)) wanted.push({ name: SPAM_FIELD, value: 'Yes' });
  if (isSpam && !hasField(wanted, SCORE_FIELD) && typeof score === 'number' && typeof required === 'number') {
    wanted.push({ name: SCORE_FIELD, value: `${score.toFixed(2)} / ${required.toFixed(2)}` });
  }
  const fields: HeaderField[] = [];
  let octets = 0;
  for (const field of wanted) {
    octets += field.name.length + field.value.length;
    const hasRoom = fields.length < FIELDS_MAX / 2 && octets <= FIELDS_OCTETS_MAX / 2;
    if (hasRoom && fieldRule(field) === '') fields.push(field);
  }
  return fields;
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

function hasField(fields: readonly HeaderField[], name: string): boolean {
  return fields.some((field) => field.name.toLowerCase() === name.toLowerCase());
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shown(action: unknown): string {
  return typeof action === 'string' ? action.slice(0, 40) : typeof action;
}
