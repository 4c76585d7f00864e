/**
 * DECLINED: a FENCE was not accepted, and what is known here instead. Nothing was changed.
 *
 *   element  wire      field   meaning
 *   0        u31       handle  as asked
 *   1        u8        reason  DECLINED_… of reasons.ts
 *   2        [term]    asked   the term of the FENCE
 *   3        [term]    known   the highest that was accepted here; [0, 0]: none
 *   4        [record]  told    the newest record that was told here; [] when none was
 *
 * Answers FENCE.
 */
import type { Packer } from '../../platform/ports.js';
import { isBetween, isHandle, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import type { PartitionRecord, Term } from '../partition-record.js';
import { DECLINED_FULL, DECLINED_LOWER } from '../reasons.js';
import { packTerm, packTold, readTerm, readTold } from '../wire-record.js';

export interface Declined {
  readonly handle: number;
  readonly reason: number;
  readonly asked: Term;
  readonly known: Term;
  readonly told: PartitionRecord | undefined;
}

export function encodeDeclined(packer: Packer, message: Declined): Uint8Array {
  return packer.pack([
    message.handle, message.reason, packTerm(message.asked), packTerm(message.known), packTold(message.told),
  ]);
}

export function decodeDeclined(packer: Packer, control: Uint8Array): Declined | InvalidMessage {
  const values = unpackControl(packer, control, 5);
  if (values instanceof InvalidMessage) return values;
  const [handle, reason, packedAsked, packedKnown, packedTold] = values;
  const asked = readTerm(packedAsked);
  const known = readTerm(packedKnown);
  const told = readTold(packedTold);
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isBetween(reason, DECLINED_LOWER, DECLINED_FULL)) return new InvalidMessage('reason');
  if (asked === undefined) return new InvalidMessage('asked');
  if (known === undefined) return new InvalidMessage('known');
  if (told instanceof InvalidMessage) return told;
  return { handle, reason, asked, known, told };
}
