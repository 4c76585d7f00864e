/**
 * CLAIMED: what became of a claim, and where the queue stood in that same step.
 *
 *   element  wire   field     meaning
 *   0        u31    handle    as asked
 *   1        u8     result    CLAIM_… of reasons.ts
 *   2        u53    token     the highest that the queue has seen
 *   3        u53    epoch     of the queue at this store
 *   4        [str]  members   of that epoch
 *   5        u53    number    transaction number
 *   6        u32    digestA   at that number
 *   7        u32    digestB
 *   8        u53    count     entries
 *   9        u53    bytes     of bodies and heads
 *   10       u8     role      ROLE_… of reasons.ts
 *   11       u32    waitMs    results 3 and 4: ask again after this; CONFIRM with result 0 by a holder that is not the
 *                             owner: what is left of the owner's lease; else 0
 *   12       bool   sameBoot  the store has not restarted since the claim was granted
 *   13       u53    holderWallMs  what the wall clock of the process that wrote the queue last shows now, as its
 *                             heartbeats told it; 0: not known
 *   14       str    writer    from version 2 on: the gateway whose process wrote the set there, or began to fill the
 *                             copy, whatever came last; '' where another process was granted a claim since, or it is not known
 *   15       u53    writerIncarnation  which process of it
 *
 * Answers CLAIM and CONFIRM.
 */
import type { Packer } from '../../platform/ports.js';
import {
  MEMBERS_MAX, isBetween, isBoolean, isHandle, isIdentifierOrNone, isIdentifiers, isUint32, isWhole, unpackControl,
} from '../fields.js';
import { InvalidMessage } from '../invalid.js';
import { CLAIM_GRANTED, CLAIM_TOKEN_LOW, ROLE_NONE, ROLE_SPILLED } from '../reasons.js';

/** A process of a gateway; gatewayId '' is none. */
export interface Writer {
  readonly gatewayId: string;
  readonly incarnation: number;
}

export interface Claimed {
  readonly handle: number;
  readonly result: number;
  readonly token: number;
  readonly epoch: number;
  readonly members: readonly string[];
  readonly number: number;
  readonly digestA: number;
  readonly digestB: number;
  readonly count: number;
  readonly bytes: number;
  readonly role: number;
  readonly waitMs: number;
  readonly sameBoot: boolean;
  readonly holderWallMs: number;
  /** Undefined in version 1, which does not tell. */
  readonly writer: Writer | undefined;
}

const ELEMENTS = 14;
const ELEMENTS_WITH_WRITER = 16;

export function encodeClaimed(packer: Packer, message: Claimed): Uint8Array {
  const values: unknown[] = [
    message.handle, message.result, message.token, message.epoch, message.members, message.number,
    message.digestA, message.digestB, message.count, message.bytes, message.role, message.waitMs,
    message.sameBoot, message.holderWallMs,
  ];
  if (message.writer !== undefined) values.push(message.writer.gatewayId, message.writer.incarnation);
  return packer.pack(values);
}

export function decodeClaimed(packer: Packer, control: Uint8Array): Claimed | InvalidMessage {
  const values = unpackControl(packer, control, ELEMENTS, true);
  if (values instanceof InvalidMessage) return values;
  if (values.length !== ELEMENTS && values.length !== ELEMENTS_WITH_WRITER) return new InvalidMessage('element count');
  const [
    handle, result, token, epoch, members, number, digestA, digestB, count, bytes, role, waitMs, sameBoot, holderWallMs,
    gatewayId, incarnation,
  ] = values;
  if (!isHandle(handle)) return new InvalidMessage('handle');
  if (!isBetween(result, CLAIM_GRANTED, CLAIM_TOKEN_LOW)) return new InvalidMessage('result');
  if (!isWhole(token)) return new InvalidMessage('token');
  if (!isWhole(epoch)) return new InvalidMessage('epoch');
  if (!isIdentifiers(members, MEMBERS_MAX)) return new InvalidMessage('members');
  if (!isWhole(number)) return new InvalidMessage('number');
  if (!isUint32(digestA)) return new InvalidMessage('digestA');
  if (!isUint32(digestB)) return new InvalidMessage('digestB');
  if (!isWhole(count)) return new InvalidMessage('count');
  if (!isWhole(bytes)) return new InvalidMessage('bytes');
  if (!isBetween(role, ROLE_NONE, ROLE_SPILLED)) return new InvalidMessage('role');
  if (!isUint32(waitMs)) return new InvalidMessage('waitMs');
  if (!isBoolean(sameBoot)) return new InvalidMessage('sameBoot');
  if (!isWhole(holderWallMs)) return new InvalidMessage('holderWallMs');
  const known = {
    handle, result, token, epoch, members, number, digestA, digestB, count, bytes, role, waitMs, sameBoot, holderWallMs,
  };
  if (values.length === ELEMENTS) return { ...known, writer: undefined };
  if (!isIdentifierOrNone(gatewayId)) return new InvalidMessage('writer');
  if (!isWhole(incarnation)) return new InvalidMessage('writerIncarnation');
  return { ...known, writer: { gatewayId, incarnation } };
}
