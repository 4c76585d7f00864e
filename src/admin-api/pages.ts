/**
 * What answers of gateways and stores have in common: pages of rows, refusals, and who belongs together.
 */
import { flag, list, name, object, oneOf, orNull, text } from './shape.js';
import type { Shape, ShapeOf } from './shape.js';

/** Rows in one answer at most: about 1 MB, and a few milliseconds to build. */
export const PAGE_ROWS_MAX = 1000;
/** A cursor is what the page before gave; nobody else knows what it means. */
export const CURSOR_CHARACTERS_MAX = 200;
/** Of what an operator says in an order: who wants it, and why. */
export const ORDER_TEXT_CHARACTERS_MAX = 500;

/** Where the next page begins; null at the end. */
const next_cursor = orNull(name);

export interface Page<T> {
  readonly rows: readonly T[];
  readonly next_cursor: string | null;
}

export function page<T>(row: Shape<T>): Shape<Page<T>> {
  return object({ rows: list(row), next_cursor });
}

/** Every answer with a status other than 200. */
export const refusalAnswer = object({ error: text });
export type RefusalAnswer = ShapeOf<typeof refusalAnswer>;

/** A gateway or store of the group. */
const memberAnswer = object({
  id: name,
  kind: oneOf('gateway', 'store'),
  /** host:port of its admin HTTP; null when no configuration says it. */
  admin: orNull(name),
  /** A gateway of which the register of the one that answers knows no process. */
  away: flag,
  /** It is the one that answers. */
  self: flag,
});
export type MemberAnswer = ShapeOf<typeof memberAnswer>;

/** GET /api/v1/group */
export const groupAnswer = object({ members: list(memberAnswer) });
export type GroupAnswer = ShapeOf<typeof groupAnswer>;
