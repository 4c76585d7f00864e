/**
 * The replies that a recovery lives on, decoded and checked: LISTED, CLAIMED, BLOCK, TAILED. Undefined for one
 * that breaks a rule; the link has then already been told to close by whoever sent it wrong.
 */
import type { Packer } from '../platform/ports.js';
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
