/**
 * BEAT: the store lives and has renewed the lease.
 *
 *   element  wire      field       meaning
 *   0        u53       token       of the HEARTBEAT
 *   1        u53       credit      as in ACK, after all requests up to this one's sequence
 *   2        u32       leaseMs     length of the lease, from the sending of HEARTBEAT on
 *   3        u53       fenceCount  fences of this process here, so far: the answer renews only what it still
 *                                  holds after it has processed all of them (rule 6 of docs/model)
 *   4        [notice]  fences      those past `fencesProcessed`: [count u53, partition str, term [u53, u53]]
 *
 * An answer.
 */
import { isUint32, isWhole } from '../fields.js';
import type { MessageOf } from '../layout.js';
import { layout, packed } from '../layout.js';
import type { Term } from '../partition-record.js';
import { isPartition } from '../partition-record.js';
import { packTerm, readTerm } from '../wire-record.js';

/** One partition of each of some hundred gateways, all of which one process held, and lost at once. */
export const NOTICES_MAX = 4_096;

/** A fence that this process must hear of. */
export interface FenceNotice {
  /** Its number among the fences of this process here, from 1 on. */
  readonly count: number;
  readonly partition: string;
  readonly term: Term;
}

const NO_FENCES: readonly FenceNotice[] = [];

/** Also in the file of a stopped store. */
export const NOTICES = packed(packNotices, readNotices);

const beat = layout({
  token: isWhole,
  credit: isWhole,
  leaseMs: isUint32,
  fenceCount: isWhole,
  fences: NOTICES,
});
export type Beat = MessageOf<typeof beat>;
export const encodeBeat = beat.encode;
export const decodeBeat = beat.decode;

function packNotices(fences: readonly FenceNotice[]): readonly unknown[] {
  return fences.map(({ count, partition, term }) => [count, partition, packTerm(term)]);
}

function readNotices(value: unknown): readonly FenceNotice[] | undefined {
  if (!Array.isArray(value) || value.length > NOTICES_MAX) return undefined;
  if (value.length === 0) return NO_FENCES;
  const notices: FenceNotice[] = [];
  for (const each of value as readonly unknown[]) {
    if (!Array.isArray(each) || each.length !== 3) return undefined;
    const [count, partition, packedTerm] = each as readonly unknown[];
    const term = readTerm(packedTerm);
    if (!isWhole(count) || !isPartition(partition) || term === undefined) return undefined;
    notices.push({ count, partition, term });
  }
  return notices;
}
