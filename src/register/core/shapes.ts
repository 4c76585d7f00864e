/**
 * Strict readers of what comes as JSON from a file, a socket or a value of the register: a hostile value
 * yields the name of the broken rule, never an exception, and nothing is taken over that was not checked.
 */
import { isRevision, keyRule, rangeRule, writeRule } from '../limits.js';
import type { LineWrite } from '../line.js';
import type { Entry, Guard, Range } from '../port.js';

/** What a reader says of a value that it does not take. */
export class BrokenRule {
  readonly rule: string;

  constructor(rule: string) {
    this.rule = rule;
  }
}

export type Fields = Readonly<Record<string, unknown>>;

/** Session ids: decimal, as etcd's leases; short enough for any. */
const SESSION_ID = /^[1-9]\d{0,18}$/;

/** JSON.parse without its exception. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return new BrokenRule('no JSON');
  }
}

/** The fields of an object; undefined for anything else. */
export function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
      && !(value instanceof BrokenRule)
    ? (value as Fields)
    : undefined;
}

export function isWhole(value: unknown, max = Number.MAX_SAFE_INTEGER): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= max;
}

export function isSessionId(value: unknown): value is string {
  return typeof value === 'string' && SESSION_ID.test(value);
}

/** Each item through `read`; the first that is broken breaks the list. */
export function readList<T>(
  value: unknown,
  max: number,
  what: string,
  read: (item: unknown) => T | BrokenRule,
): readonly T[] | BrokenRule {
  if (!Array.isArray(value)) return new BrokenRule(`${what} is no list`);
  if (value.length > max) return new BrokenRule(`${what} is too long`);
  const items: T[] = [];
  for (const [index, item] of value.entries()) {
    const one = read(item);
    if (one instanceof BrokenRule) return new BrokenRule(`${what}[${String(index)}]: ${one.rule}`);
    items.push(one);
  }
  return items;
}

export function readEntry(value: unknown): Entry | BrokenRule {
  const { key, value: text, revision, session } = fieldsOf(value) ?? {};
  if (typeof key !== 'string' || typeof text !== 'string') return new BrokenRule('entry has no key or value');
  const rule = writeRule({ key, ifRevision: 0, value: text, guards: [] });
  if (rule !== '') return new BrokenRule(rule);
  if (!isWhole(revision) || revision === 0) return new BrokenRule('entry has no revision');
  if (session !== '' && !isSessionId(session)) return new BrokenRule('entry has no session field');
  return { key, value: text, revision, session };
}

function readGuard(value: unknown): Guard | BrokenRule {
  const { key, revision, value: text } = fieldsOf(value) ?? {};
  if (typeof key !== 'string' || keyRule(key) !== '') return new BrokenRule('guard has no sound key');
  if (text !== undefined && typeof text !== 'string') return new BrokenRule('guard has no value');
  return typeof revision === 'number' && isRevision(revision)
    ? { key, revision, value: text }
    : new BrokenRule('guard has no revision');
}

export function readRange(value: unknown): Range | BrokenRule {
  const { key, prefix } = fieldsOf(value) ?? {};
  const range = typeof key === 'string' ? { key } : typeof prefix === 'string' ? { prefix } : undefined;
  if (range === undefined) return new BrokenRule('range has neither key nor prefix');
  const rule = rangeRule(range);
  return rule === '' ? range : new BrokenRule(rule);
}

export function readWrite(value: unknown): LineWrite | BrokenRule {
  const { key, ifRevision, ifValue, value: text, session, guards } = fieldsOf(value) ?? {};
  if (typeof key !== 'string' || typeof ifRevision !== 'number') {
    return new BrokenRule('write has no key or revision');
  }
  if (text !== null && typeof text !== 'string') return new BrokenRule('write has no value');
  if (ifValue !== undefined && typeof ifValue !== 'string') return new BrokenRule('write compares no value');
  if (session !== '' && !isSessionId(session)) return new BrokenRule('write has no session field');
  const list = readList(guards, Number.MAX_SAFE_INTEGER, 'guards', readGuard);
  if (list instanceof BrokenRule) return list;
  const write = { key, ifRevision, ifValue, value: text, session, guards: list };
  const rule = writeRule(write);
  return rule === '' ? write : new BrokenRule(rule);
}
