/**
 * What a register in another process of this machine is asked, and answers: one JSON object a line,
 * over the unix socket `register.sock` in state_dir. Both ends are of one build: the first line
 * of each names its version.
 *
 *   hello     {"hello":1}                                              both, first
 *   request   {"id":N,"call":"transact","writes":[…]}                  answer {"id":N,"answer":{"kind":…}}
 *             {"id":N,"call":"range","ranges":[…]}                     the same
 *             {"id":N,"call":"grant","session":"17","ttlMs":5000}      the same
 *             {"id":N,"call":"renew"|"revoke","session":"17"}          the same
 *             {"id":N,"call":"watch","prefixes":[…],"after":7}         {"id":N,"changes":[…]}, …
 *                                                                      {"id":N,"broken":"why"}
 *             {"id":N,"call":"unwatch"}                                none
 *
 * Ids are the client's, each used once a connection. Anything else closes the connection
 * with the broken rule.
 */
import {
  ENTRIES_MAX,
  PREFIXES_MAX,
  SESSION_TTL_MS_MAX,
  TRANSACTION_OPERATIONS_MAX,
  rangeRule,
} from '../limits.js';
import type { Change, LeaseAnswer, LineWrite, RangeAnswer, TransactionAnswer, WriteResult } from '../line.js';
import type { Range, RefusalReason } from '../port.js';
import {
  BrokenRule,
  fieldsOf,
  isSessionId,
  isWhole,
  parseJson,
  readEntry,
  readList,
  readRange,
  readWrite,
} from './shapes.js';
import type { Fields } from './shapes.js';

const WIRE_VERSION = 1;
/** Longest line: a transaction of 512 KiB of texts in JSON, escaped at worst; and a long range. */
export const LINE_BYTES_MAX = 32 * 1024 * 1024;
/** Changes of one line: a session's end may delete many keys. */
const CHANGES_MAX = ENTRIES_MAX;

export type Request =
  & { readonly id: number; }
  & (
    | { readonly call: 'transact'; readonly writes: readonly LineWrite[]; }
    | { readonly call: 'range'; readonly ranges: readonly Range[]; }
    | { readonly call: 'grant'; readonly session: string; readonly ttlMs: number; }
    | { readonly call: 'renew' | 'revoke'; readonly session: string; }
    | { readonly call: 'watch'; readonly prefixes: readonly string[]; readonly after: number; }
    | { readonly call: 'unwatch'; }
  );

export type Answer = TransactionAnswer | RangeAnswer | LeaseAnswer;

export type Reply =
  & { readonly id: number; }
  & (
    | { readonly answer: Answer; }
    | { readonly changes: readonly Change[]; }
    | { readonly broken: string; }
  );

const REASONS: readonly RefusalReason[] = ['away', 'full', 'limit', 'session', 'denied', 'closed'];

/** '' or why the first line is not one that we speak with. */
export function helloRule(text: string): string {
  const { hello } = fieldsOf(parseJson(text)) ?? {};
  return hello === WIRE_VERSION
    ? ''
    : `the other end speaks version ${String(hello)} of the register's socket, not ${String(WIRE_VERSION)}`;
}

export function encodeHello(): string {
  return JSON.stringify({ hello: WIRE_VERSION });
}

export function encodeRequest(request: Request): string {
  return JSON.stringify(request);
}

export function encodeReply(reply: Reply): string {
  return JSON.stringify(reply);
}

export function decodeRequest(text: string): Request | BrokenRule {
  const fields = fieldsOf(parseJson(text));
  if (fields === undefined || !isWhole(fields['id'])) return new BrokenRule('request has no id');
  const id = fields['id'];
  const { session, ttlMs, after } = fields;
  switch (fields['call']) {
    case 'transact': {
      const writes = readList(fields['writes'], TRANSACTION_OPERATIONS_MAX, 'writes', readWrite);
      return writes instanceof BrokenRule ? writes : { id, call: 'transact', writes };
    }
    case 'range': {
      const ranges = readList(fields['ranges'], TRANSACTION_OPERATIONS_MAX, 'ranges', readRange);
      return ranges instanceof BrokenRule ? ranges : { id, call: 'range', ranges };
    }
    case 'grant':
      if (!isSessionId(session) || !isWhole(ttlMs, SESSION_TTL_MS_MAX) || ttlMs === 0) {
        return new BrokenRule('grant has no session or time');
      }
      return { id, call: 'grant', session, ttlMs };
    case 'renew':
    case 'revoke':
      return isSessionId(session)
        ? { id, call: fields['call'], session }
        : new BrokenRule('call has no session');
    case 'watch': {
      const prefixes = readList(fields['prefixes'], PREFIXES_MAX, 'prefixes', readPrefix);
      if (prefixes instanceof BrokenRule) return prefixes;
      return isWhole(after)
        ? { id, call: 'watch', prefixes, after }
        : new BrokenRule('watch has no revision');
    }
    case 'unwatch':
      return { id, call: 'unwatch' };
    default:
      return new BrokenRule('no such call');
  }
}

export function decodeReply(text: string): Reply | BrokenRule {
  const fields = fieldsOf(parseJson(text));
  if (fields === undefined || !isWhole(fields['id'])) return new BrokenRule('reply has no id');
  const id = fields['id'];
  const { broken } = fields;
  if (typeof broken === 'string') return { id, broken };
  if (fields['changes'] !== undefined) {
    const changes = readList(fields['changes'], CHANGES_MAX, 'changes', readChange);
    return changes instanceof BrokenRule ? changes : { id, changes };
  }
  const answer = readAnswer(fieldsOf(fields['answer']) ?? {});
  return answer instanceof BrokenRule ? answer : { id, answer };
}

function readAnswer(fields: Fields): Answer | BrokenRule {
  const { kind, revision, ttlMs, why } = fields;
  switch (kind) {
    case 'settled': {
      const results = readList(fields['results'], TRANSACTION_OPERATIONS_MAX, 'results', readResult);
      return results instanceof BrokenRule ? results : { kind, results };
    }
    case 'entries': {
      const entries = readList(fields['entries'], ENTRIES_MAX, 'entries', readEntry);
      if (entries instanceof BrokenRule) return entries;
      return isWhole(revision) ? { kind, entries, revision } : new BrokenRule('entries have no revision');
    }
    case 'granted':
      return isWhole(ttlMs, SESSION_TTL_MS_MAX) ? { kind, ttlMs } : new BrokenRule('grant has no time');
    case 'gone':
      return { kind };
    case 'refused':
      return readRefusal(fields);
    case 'unknown':
    case 'failed':
      return typeof why === 'string' ? { kind, why } : new BrokenRule('answer has no reason');
    default:
      return new BrokenRule('no such answer');
  }
}

function readResult(value: unknown): WriteResult | BrokenRule {
  const fields = fieldsOf(value) ?? {};
  const { kind, revision, guard } = fields;
  if (kind === 'done') {
    return isWhole(revision)
      ? { kind, revision }
      : new BrokenRule('result has no revision');
  }
  if (kind === 'refused') return readRefusal(fields);
  if (kind !== 'stale' || typeof guard !== 'string') return new BrokenRule('no such result');
  if (fields['entry'] === undefined) return { kind, entry: undefined, guard };
  const entry = readEntry(fields['entry']);
  return entry instanceof BrokenRule ? entry : { kind, entry, guard };
}

function readRefusal({ reason, why }: Fields): WriteResult & { kind: 'refused'; } | BrokenRule {
  const known = REASONS.find((each) => each === reason);
  return known !== undefined && typeof why === 'string'
    ? { kind: 'refused', reason: known, why }
    : new BrokenRule('refusal has no reason');
}

function readChange(value: unknown): Change | BrokenRule {
  const fields = fieldsOf(value) ?? {};
  const { key, revision } = fields;
  if (typeof key !== 'string' || !isWhole(revision)) return new BrokenRule('change has no key or revision');
  if (fields['entry'] === undefined) return { key, revision, entry: undefined };
  const entry = readEntry(fields['entry']);
  return entry instanceof BrokenRule ? entry : { key, revision, entry };
}

function readPrefix(value: unknown): string | BrokenRule {
  if (typeof value !== 'string') return new BrokenRule('prefix is no text');
  const rule = rangeRule({ prefix: value });
  return rule === '' ? value : new BrokenRule(rule);
}
