/**
 * Strict readers of what comes as JSON from a file, a socket or a value of the register: a hostile value
 * yields the name of the broken rule, never an exception, and nothing is taken over that was not checked.
 */
import { isRevision, keyRule, rangeRule, writeRule } from '../limits.js';
import type { LineWrite } from '../line.js';
import type { Entry, Guard, Range } from '../port.js';

/** What a reader says of a value that it does not take. */
export class Broken {
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
    return new Broken('no JSON');
  }
}

/** The fields of an object; undefined for anything else. */
export function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Broken)
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
  read: (item: unknown) => T | Broken,
): readonly T[] | Broken {
  if (!Array.isArray(value)) return new Broken(`${what} is no list`);
  if (value.length > max) return new Broken(`${what} is too long`);
  const items: T[] = [];
  for (const [index, item] of value.entries()) {
    const one = read(item);
    if (one instanceof Broken) return new Broken(`${what}[${String(index)}]: ${one.rule}`);
    items.push(one);
  }
  return items;
}

export function readEntry(value: unknown): Entry | Broken {
  const { key, value: text, revision, session } = fieldsOf(value) ?? {};
  if (typeof key !== 'string' || typeof text !== 'string') return new Broken('entry has no key or value');
  const rule = writeRule({ key, ifRevision: 0, value: text, guards: [] });
  if (rule !== '') return new Broken(rule);
  if (!isWhole(revision) || revision === 0) return new Broken('entry has no revision');
  if (session !== '' && !isSessionId(session)) return new Broken('entry has no session field');
  return { key, value: text, revision, session };
}

export function readGuard(value: unknown): Guard | Broken {
  const { key, revision } = fieldsOf(value) ?? {};
  if (typeof key !== 'string' || keyRule(key) !== '') return new Broken('guard has no sound key');
  return typeof revision === 'number' && isRevision(revision)
    ? { key, revision }
    : new Broken('guard has no revision');
}

export function readRange(value: unknown): Range | Broken {
  const { key, prefix } = fieldsOf(value) ?? {};
  const range = typeof key === 'string' ? { key } : typeof prefix === 'string' ? { prefix } : undefined;
  if (range === undefined) return new Broken('range has neither key nor prefix');
  const rule = rangeRule(range);
  return rule === '' ? range : new Broken(rule);
}

export function readWrite(value: unknown): LineWrite | Broken {
  const { key, ifRevision, value: text, session, guards } = fieldsOf(value) ?? {};
  if (typeof key !== 'string' || typeof ifRevision !== 'number') {
    return new Broken('write has no key or revision');
  }
  if (text !== null && typeof text !== 'string') return new Broken('write has no value');
  if (session !== '' && !isSessionId(session)) return new Broken('write has no session field');
  const list = readList(guards, Number.MAX_SAFE_INTEGER, 'guards', readGuard);
  if (list instanceof Broken) return list;
  const write = { key, ifRevision, value: text, session, guards: list };
  const rule = writeRule(write);
  return rule === '' ? write : new Broken(rule);
}
