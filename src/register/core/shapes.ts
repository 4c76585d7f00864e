/**
 * What the file of the register and its socket say in the same words: entries, ranges, writes. Rules of keys,
 * values and ranges: ../limits.ts.
 */
import { z } from 'zod';
import { listOf, ruled } from '../../base/json-shape.js';
import { keyRule, rangeRule, writeRule } from '../limits.js';

export const revision = z.int().min(0);
/** Decimal, as etcd's leases; short enough for any. */
export const session = z.string().regex(/^[1-9]\d{0,18}$/);
const sessionOrNone = z.union([z.literal(''), session]);

export const entry = ruled(
  z.object({ key: z.string(), value: z.string(), revision: revision.min(1), session: sessionOrNone }),
  ({ key, value }) => writeRule({ key, ifRevision: 0, value, guards: [] }),
);

const guard = z.object({ key: ruled(z.string(), keyRule), revision, value: z.string().optional() });

export const range = ruled(
  z.union([z.object({ key: z.string() }), z.object({ prefix: z.string() })]),
  rangeRule,
);

export const write = ruled(
  z.object({
    key: z.string(),
    ifRevision: z.number(),
    ifValue: z.string().optional(),
    value: z.string().nullable(),
    session: sessionOrNone,
    guards: listOf(guard, Number.MAX_SAFE_INTEGER),
  }),
  writeRule,
);
