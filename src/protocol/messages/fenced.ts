/**
 * FENCED: the term counts at this store, and where the copy stands.
 *
 *   element  wire    field         meaning
 *   0        u31     handle        as asked
 *   1        [term]  term          as asked
 *   2        u8      how           as asked
 *   3        bool    isComplete    the copy has all entries below its number; false while it is filled
 *   4        u53     number        its last change
 *   5        u32     digestA       at that number
 *   6        u32     digestB
 *   7        [term]  lastTerm      under which the last change was applied here, or the copy was founded or filled
 *   8        u32     olderLeaseMs  what is left of leases by lower terms; 0: nobody delivers by one any more
 *   9        u53     count         entries
 *   10       u53     bytes         of bodies, heads and notes
 *   11       u53     holderWallMs  what the wall clock of the process that wrote it last shows now; 0: not known
 *
 * Answers FENCE.
 */
import type { Packer } from '../../platform/ports.js';
import { isBetween, isBoolean, isHandle, isUint32, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import type { Term } from '../partition-record.js';
import { packTerm, readTerm } from '../wire-record.js';
import { FENCE_FILL, FENCE_JOIN } from './fence.js';

export interface Fenced {
  readonly handle: number;
  readonly term: Term;
  readonly how: number;
  readonly isComplete: boolean;
  readonly number: number;
  readonly digestA: number;
  readonly digestB: number;
  readonly lastTerm: Term;
  readonly olderLeaseMs: number;
  readonly count: number;
  readonly bytes: number;
  readonly holderWallMs: number;
}

export function encodeFenced(packer: Packer, message: Fenced): Uint8Array {
  return packer.pack([
    message.handle, packTerm(message.term), message.how, message.isComplete, message.number, message.digestA,
    message.digestB, packTerm(message.lastTerm), message.olderLeaseMs, message.count, message.bytes,
    message.holderWallMs,
  ]);
}

export function decodeFenced(packer: Packer, control: Uint8Array): Fenced | InvalidMessage {
  const values = unpackControl(packer, control, 12);
  if (values instanceof InvalidMessage) return values;
  const [
    handle, packedTerm, how, isComplete, number, digestA, digestB, packedLast, olderLeaseMs, count, bytes, holderWallMs,
  ] = values;
  const term = readTerm(packedTerm);
  const lastTerm = readTerm(packedLast);
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (term === undefined) return new InvalidMessage('term');
  if (!isBetween(how, FENCE_JOIN, FENCE_FILL)) return new InvalidMessage('how');
  if (!isBoolean(isComplete)) return new InvalidMessage('isComplete');
  if (!isWhole(number)) return new InvalidMessage('number');
  if (!isUint32(digestA)) return new InvalidMessage('digestA');
  if (!isUint32(digestB)) return new InvalidMessage('digestB');
  if (lastTerm === undefined) return new InvalidMessage('lastTerm');
  if (!isUint32(olderLeaseMs)) return new InvalidMessage('olderLeaseMs');
  if (!isWhole(count)) return new InvalidMessage('count');
  if (!isWhole(bytes)) return new InvalidMessage('bytes');
  if (!isWhole(holderWallMs)) return new InvalidMessage('holderWallMs');
  return { handle, term, how, isComplete, number, digestA, digestB, lastTerm, olderLeaseMs, count, bytes, holderWallMs };
}
