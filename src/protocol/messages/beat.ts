/**
 * BEAT: the store lives and has renewed the lease.
 *
 *   element  wire      field       meaning
 *   0        u53       token       of the HEARTBEAT
 *   1        u53       credit      as in ACK, after all requests up to this one's sequence
 *   2        u32       leaseMs     length of the lease, from the sending of HEARTBEAT on
 *   3        u53       fenceCount  fences of this process here, so far: the answer renews only what it still holds
 *                                  after it has processed all of them (rule 6 of docs/model)
 *   4        [notice]  fences      those past `fencesProcessed`: [count u53, partition str, term [u53, u53]]
 *
 * An answer.
 */
import type { Packer } from '../../platform/ports.js';
import { isUint32, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
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

export interface Beat {
  readonly token: number;
  readonly credit: number;
  readonly leaseMs: number;
  readonly fenceCount: number;
  readonly fences: readonly FenceNotice[];
}

const NO_FENCES: readonly FenceNotice[] = [];

export function encodeBeat(packer: Packer, message: Beat): Uint8Array {
  return packer.pack([message.token, message.credit, message.leaseMs, message.fenceCount, packNotices(message.fences)]);
}

export function decodeBeat(packer: Packer, control: Uint8Array): Beat | InvalidMessage {
  const values = unpackControl(packer, control, 5);
  if (values instanceof InvalidMessage) return values;
  const [token, credit, leaseMs, fenceCount, packed] = values;
  if (!isWhole(token)) return new InvalidMessage('token');
  if (!isWhole(credit)) return new InvalidMessage('credit');
  if (!isUint32(leaseMs)) return new InvalidMessage('leaseMs');
  if (!isWhole(fenceCount)) return new InvalidMessage('fenceCount');
  const fences = readNotices(packed);
  return fences === undefined ? new InvalidMessage('fences') : { token, credit, leaseMs, fenceCount, fences };
}

/** Also in the file of a stopped store. */
export function packNotices(fences: readonly FenceNotice[]): readonly unknown[] {
  return fences.map(({ count, partition, term }) => [count, partition, packTerm(term)]);
}

export function readNotices(value: unknown): readonly FenceNotice[] | undefined {
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
