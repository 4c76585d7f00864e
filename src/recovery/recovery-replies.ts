/**
 * The replies that a recovery lives on, decoded and checked: LISTED, CLAIMED, BLOCK, TAILED. Undefined for one
 * that breaks a rule; the link has then already been told to close by whoever sent it wrong.
 */
import type { Packer } from '../platform/ports.js';
import { CHANGE_ROW_BYTES, KIND_SET_MEMBERS } from '../protocol/change-rows.js';
import { isInvalid } from '../protocol/invalid.js';
import type { Block } from '../protocol/messages/block.js';
import { decodeBlock } from '../protocol/messages/block.js';
import type { Claimed } from '../protocol/messages/claimed.js';
import { decodeClaimed } from '../protocol/messages/claimed.js';
import type { Listed } from '../protocol/messages/listed.js';
import { decodeListed } from '../protocol/messages/listed.js';
import type { Tailed } from '../protocol/messages/tailed.js';
import { decodeTailed } from '../protocol/messages/tailed.js';

export function readListed(packer: Packer, control: Uint8Array): Listed | undefined {
  const listed = decodeListed(packer, control);
  return isInvalid(listed) ? undefined : listed;
}

export function readClaimed(packer: Packer, control: Uint8Array): Claimed | undefined {
  const claimed = decodeClaimed(packer, control);
  return isInvalid(claimed) ? undefined : claimed;
}

export function readBlock(packer: Packer, control: Uint8Array): Block | undefined {
  const block = decodeBlock(packer, control);
  return isInvalid(block) ? undefined : block;
}

export function readTailed(packer: Packer, control: Uint8Array): Tailed | undefined {
  const tailed = decodeTailed(packer, control);
  return isInvalid(tailed) ? undefined : tailed;
}

/** Whether one of the changes of TAILED tells the set of this epoch. */
export function beginsEpoch(rows: Uint8Array, epoch: number): boolean {
  const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
  for (let at = 0; at + CHANGE_ROW_BYTES <= rows.length; at += CHANGE_ROW_BYTES) if (view.getUint8(at) === KIND_SET_MEMBERS && view.getFloat64(at + 16, true) === epoch) return true;
  return false;
}
