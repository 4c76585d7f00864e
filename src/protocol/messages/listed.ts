/**
 * LISTED: partitions of which the store has a copy that counts.
 *
 *   element  wire   field       meaning
 *   0        str    after       as asked
 *   1        [str]  partitions  the next ones, ascending, at most 256
 *   2        bool   isLast      there are no more
 *
 * Answers LIST.
 */
import { isBoolean } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout, packed } from '../layout.js';
import { isPartition } from '../partition-record.js';
import { isPartitionOrNone } from './list.js';

/** Some 85 bytes each at most: a small frame. */
export const LISTED_MAX = 256;

const listed = layout({
  after: isPartitionOrNone,
  partitions: packed((names: readonly string[]) => names, readNames),
  isLast: isBoolean,
});
export type Listed = MessageOf<typeof listed>;
export const encodeListed = listed.encode;
export const decodeListed = listed.decode;

function readNames(value: unknown): readonly string[] | undefined {
  if (!Array.isArray(value) || value.length > LISTED_MAX) return undefined;
  const names: string[] = [];
  for (const name of value as readonly unknown[]) {
    if (!isPartition(name) || name <= (names.at(-1) ?? '')) return undefined;
    names.push(name);
  }
  return names;
}
