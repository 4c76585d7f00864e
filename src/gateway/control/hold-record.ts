/**
 * The value of a record "hold/<id>": who held the message, why and when, a MessagePack array
 * [who str, reason str, wallMs]. What a hold does is in message-holds.ts.
 */
import type { Packer } from '../../platform/ports.js';
import { checkControl } from '../../protocol/bounds.js';

export interface HoldRecord {
  readonly who: string;
  readonly reason: string;
  readonly wallMs: number;
}

export function encodeHold(packer: Packer, hold: HoldRecord): Uint8Array {
  return packer.pack([hold.who, hold.reason, hold.wallMs]);
}

/** Undefined when the bytes are no such value. */
export function decodeHold(packer: Packer, bytes: Uint8Array): HoldRecord | undefined {
  if (checkControl(bytes) !== '') return undefined;
  const values = packer.unpack(bytes);
  if (!Array.isArray(values)) return undefined;
  const [who, reason, wallMs] = values as readonly unknown[];
  if (typeof who !== 'string' || typeof reason !== 'string' || typeof wallMs !== 'number') return undefined;
  return { who, reason, wallMs };
}
