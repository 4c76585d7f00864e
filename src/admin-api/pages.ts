/**
 * What answers of gateways and stores have in common: pages of rows, refusals, and who belongs together.
 */
import { z } from 'zod';
import { listOf } from '../base/json-shape.js';

/** Texts for people: causes, replies of other servers, commands to copy. */
export const text = z.string().max(64 * 1024);
/**
 * Ids, names of queues, addresses: the longest is an address of 256 octets for each half (RFC 5321 4.5.3.1).
 */
export const name = z.string().max(1024);

/** The longest list is a page of the management table: 1,000 queues at a few stores each. */
export function list<T extends z.ZodType>(item: T): z.ZodReadonly<z.ZodArray<T>> {
  return listOf(item, 100_000);
}

/** Rows in one answer at most: about 1 MB, and a few milliseconds to build. */
export const PAGE_ROWS_MAX = 1000;
/** A cursor is what the page before gave; nobody else knows what it means. */
const CURSOR_CHARACTERS_MAX = 200;
const ROW_COUNT = `expected a whole number from 1 to ${String(PAGE_ROWS_MAX)}`;

/** How many rows, of a query. */
export const rowCount = z.coerce.number<number>(ROW_COUNT).int(ROW_COUNT).min(1, ROW_COUNT)
  .max(PAGE_ROWS_MAX, ROW_COUNT);
/** Where a page begins; '' at the first. */
export const pageCursor = z.string('cursor is given once')
  .max(CURSOR_CHARACTERS_MAX, 'it is what the page before gave');

/** Where the next page begins; null at the end. */
const next_cursor = name.nullable();

export interface Page<T> {
  readonly rows: readonly T[];
  readonly next_cursor: string | null;
}

export function page<T>(row: z.ZodType<T>): z.ZodType<Page<T>> {
  return z.object({ rows: list(row), next_cursor });
}

/** Every answer with a status other than 200. */
export const refusalAnswer = z.object({ error: text });
export type RefusalAnswer = z.output<typeof refusalAnswer>;

/** A gateway or store of the group. */
const memberAnswer = z.object({
  id: name,
  kind: z.enum(['gateway', 'store']),
  /** host:port of its admin HTTP; null when no configuration says it. */
  admin: name.nullable(),
  /** A gateway of which the register of the one that answers knows no process. */
  away: z.boolean(),
  /** It is the one that answers. */
  self: z.boolean(),
});
export type MemberAnswer = z.output<typeof memberAnswer>;

/** The log of a process. */
export const logAnswer = z.object({
  /** Since the start. */
  lost_lines: z.int(),
  lost_at: z.int().nullable(),
  /** Why it can't be written now; '' while it can. */
  failing: text,
});
export type LogAnswer = z.output<typeof logAnswer>;

/** What a process runs by. */
export const configurationAnswer = z.object({
  /** Of what the file says to it, but for secrets. */
  hash: name,
  /** In force since then, and read last. */
  since: z.int(),
  read: z.int(),
  /** Why the file was not taken when it was read last; '' if it was. */
  refused: text,
  refused_at: z.int().nullable(),
});
export type ConfigurationAnswer = z.output<typeof configurationAnswer>;

/** GET /api/v1/group */
export const groupAnswer = z.object({ members: list(memberAnswer) });
export type GroupAnswer = z.output<typeof groupAnswer>;
