/**
 * What a module returned, as an answer of its hook: checked and bounded, for nothing else of it leaves
 * its thread, and again where it arrives. Pure.
 */
import type { HookAnswer } from './message-hook.js';
import { FIELDS_MAX, FIELDS_OCTETS_MAX } from './prefix-fields.js';
import type { HeaderField } from './prefix-fields.js';

const TEXT_CHARACTERS_MAX = 500;

export function moduleAnswer(verdict: unknown): HookAnswer {
  if (typeof verdict !== 'object' || verdict === null) return failed('it returned no verdict');
  const { action, fields, text, why, isTooMuch } = verdict as Readonly<Record<string, unknown>>;
  switch (action) {
    case 'accept': {
      const read = fieldsOf(fields);
      return 'action' in read ? read : { action, fields: read };
    }
    case 'refuse':
    case 'defer':
      return { action, text: typeof text === 'string' ? text.slice(0, TEXT_CHARACTERS_MAX) : '' };
    case 'failed':
      return failed(typeof why === 'string' ? why : '', isTooMuch === true);
    default:
      return failed('it returned an action other than accept, refuse and defer');
  }
}

export function failed(why: string, isTooMuch = false): HookAnswer & { readonly action: 'failed' } {
  return { action: 'failed', why: why.slice(0, TEXT_CHARACTERS_MAX), ...(isTooMuch ? { isTooMuch } : {}) };
}

function fieldsOf(value: unknown): readonly HeaderField[] | ReturnType<typeof failed> {
  if (value === undefined) return [];
  if (!Array.isArray(value)) return failed('its fields are no list');
  if (value.length > FIELDS_MAX) return failed('it adds too many fields', true);
  const fields: HeaderField[] = [];
  let characters = 0;
  for (const each of value as readonly unknown[]) {
    const { name, value: text } = (each ?? {}) as Readonly<Record<string, unknown>>;
    if (typeof name !== 'string' || typeof text !== 'string') {
      return failed('a field has no name or no value');
    }
    characters += name.length + text.length;
    fields.push({ name, value: text });
  }
  return characters > FIELDS_OCTETS_MAX ? failed('its fields are too long', true) : fields;
}
