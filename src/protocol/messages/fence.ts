/**
 * FENCE: a term takes the copy of a partition at this store, and binds a handle to it on this connection. From
 * here on lower terms are refused, whatever connection they come on (rule 10 of docs/model).
 *
 *   element  wire    field       meaning
 *   0        u31     handle      1 … 2^31 − 1, picked by the gateway; bound to the copy and this term
 *   1        str     partition   GATEWAY/N
 *   2        [term]  term        [number, nonce] of the asker
 *   3        u8      how         1 JOIN the copy that is there; 2 FOUND a new one, empty and complete; 3 FILL: it is
 *                                emptied, stands at number and digest, and is filled by REFILL
 *   4        u53     provenDead  incarnation of the asker's own gateway that is proven dead: its lease is not waited
 *                                for; 0: none is
 *   5        u53     number      FILL: where the copy stands from here on; else 0
 *   6        u32     digestA     at that number
 *   7        u32     digestB
 *
 * Answered by FENCED or DECLINED.
 */
import type { Packer } from '../../platform/ports.js';
import { isBetween, isHandle, isUint32, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import type { Term } from '../partition-record.js';
import { isPartition } from '../partition-record.js';
import { packTerm, readTerm } from '../wire-record.js';

export const FENCE_JOIN = 1;
export const FENCE_FOUND = 2;
export const FENCE_FILL = 3;

export interface Fence {
  readonly handle: number;
  readonly partition: string;
  readonly term: Term;
  readonly how: number;
  readonly provenDead: number;
  readonly number: number;
  readonly digestA: number;
  readonly digestB: number;
}

export function encodeFence(packer: Packer, message: Fence): Uint8Array {
  return packer.pack([
    message.handle, message.partition, packTerm(message.term), message.how, message.provenDead, message.number,
    message.digestA, message.digestB,
  ]);
}

export function decodeFence(packer: Packer, control: Uint8Array): Fence | InvalidMessage {
  const values = unpackControl(packer, control, 8);
  if (values instanceof InvalidMessage) return values;
  const [handle, partition, packedTerm, how, provenDead, number, digestA, digestB] = values;
  const term = readTerm(packedTerm);
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isPartition(partition)) return new InvalidMessage('partition');
  if (term === undefined || term.number === 0) return new InvalidMessage('term');
  if (!isBetween(how, FENCE_JOIN, FENCE_FILL)) return new InvalidMessage('how');
  if (!isWhole(provenDead)) return new InvalidMessage('provenDead');
  if (!isWhole(number)) return new InvalidMessage('number');
  if (!isUint32(digestA)) return new InvalidMessage('digestA');
  if (!isUint32(digestB)) return new InvalidMessage('digestB');
  return { handle, partition, term, how, provenDead, number, digestA, digestB };
}
