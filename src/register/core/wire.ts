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
import { z } from 'zod';
import type { BrokenRule } from '../../base/json-shape.js';
import { listOf, readJson, ruled } from '../../base/json-shape.js';
import {
  ENTRIES_MAX, PREFIXES_MAX, SESSION_TTL_MS_MAX, TRANSACTION_OPERATIONS_MAX, rangeRule,
} from '../limits.js';
import type { Change } from '../line.js';
import { entry, range, revision, session, write } from './shapes.js';

const WIRE_VERSION = 1;
/** Longest line: a transaction of 512 KiB of texts in JSON, escaped at worst; and a long range. */
export const LINE_BYTES_MAX = 32 * 1024 * 1024;
/** Changes of one line: a session's end may delete many keys. */
const CHANGES_MAX = ENTRIES_MAX;

const id = revision;
const prefix = ruled(z.string(), (text) => rangeRule({ prefix: text }));

const request = z.discriminatedUnion('call', [
  z.object({ id, call: z.literal('transact'), writes: listOf(write, TRANSACTION_OPERATIONS_MAX) }),
  z.object({ id, call: z.literal('range'), ranges: listOf(range, TRANSACTION_OPERATIONS_MAX) }),
  z.object({ id, call: z.literal('grant'), session, ttlMs: z.int().min(1).max(SESSION_TTL_MS_MAX) }),
  z.object({ id, call: z.enum(['renew', 'revoke']), session }),
  z.object({ id, call: z.literal('watch'), prefixes: listOf(prefix, PREFIXES_MAX), after: revision }),
  z.object({ id, call: z.literal('unwatch') }),
]);
export type Request = z.output<typeof request>;

const refused = z.object({
  kind: z.literal('refused'),
  reason: z.enum(['away', 'full', 'limit', 'session', 'denied', 'closed']),
  why: z.string(),
});
const result = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('done'), revision }),
  // JSON leaves out what is undefined; who asks gets it said.
  z.object({ kind: z.literal('stale'), entry: entry.optional(), guard: z.string() })
    .transform((stale) => ({ ...stale, entry: stale.entry })),
  refused,
]);
const answer = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('settled'), results: listOf(result, TRANSACTION_OPERATIONS_MAX) }),
  z.object({ kind: z.literal('entries'), entries: listOf(entry, ENTRIES_MAX), revision }),
  z.object({ kind: z.literal('granted'), ttlMs: z.int().min(0).max(SESSION_TTL_MS_MAX) }),
  z.object({ kind: z.literal('gone') }),
  refused,
  z.object({ kind: z.enum(['unknown', 'failed']), why: z.string() }),
]);
export type Answer = z.output<typeof answer>;

const change: z.ZodType<Change> = z.object({ key: z.string(), revision, entry: entry.optional() })
  .transform((one) => ({ ...one, entry: one.entry }));
const reply = z.union([
  z.object({ id, broken: z.string() }),
  z.object({ id, changes: listOf(change, CHANGES_MAX) }),
  z.object({ id, answer }),
]);
export type Reply = z.output<typeof reply>;

/** '' or why the first line is not one that we speak with. */
export function helloRule(text: string): string {
  const first = readJson(z.object({ hello: z.unknown() }), text);
  const version = 'hello' in first ? first.hello : undefined;
  return version === WIRE_VERSION
    ? ''
    : `the other end speaks version ${String(version)} of the register's socket, not ${String(WIRE_VERSION)}`;
}

export function encodeHello(): string {
  return JSON.stringify({ hello: WIRE_VERSION });
}

export function encodeRequest(value: Request): string {
  return JSON.stringify(value);
}

export function encodeReply(value: Reply): string {
  return JSON.stringify(value);
}

export function decodeRequest(text: string): Request | BrokenRule {
  return readJson(request, text);
}

export function decodeReply(text: string): Reply | BrokenRule {
  return readJson(reply, text);
}
