/**
 * The answers that carry something back to whoever asked: LISTED, CLAIMED, BLOCK, TAILED. Decoded where they
 * arrive, with the rows and payload that they describe, so that a malformed one ends the connection, and with it
 * the wait for it, instead of being passed over in silence.
 *
 * The layouts are in messages/. Not here: ACK, REFUSAL and BEAT, which the link itself reads.
 */
import type { Packer } from '../platform/ports.js';
import { InvalidMessage } from './invalid.js';
import { BLOCK, CLAIMED, LISTED, TAILED } from './message-types.js';
import type { Block } from './messages/block.js';
import { blockRule, decodeBlock } from './messages/block.js';
import type { Claimed } from './messages/claimed.js';
import { decodeClaimed } from './messages/claimed.js';
import type { Listed } from './messages/listed.js';
import { decodeListed } from './messages/listed.js';
import type { Tailed } from './messages/tailed.js';
import { decodeTailed, tailedRule } from './messages/tailed.js';

export type ReplyType = typeof LISTED | typeof CLAIMED | typeof BLOCK | typeof TAILED;

/** `sequence`: of the request that it answers. Rows and bodies are views of what was received. */
export type Reply =
  | { readonly type: typeof LISTED; readonly sequence: number; readonly message: Listed }
  | { readonly type: typeof CLAIMED; readonly sequence: number; readonly message: Claimed }
  | { readonly type: typeof BLOCK; readonly sequence: number; readonly message: Block; readonly bodies: Uint8Array }
  | { readonly type: typeof TAILED; readonly sequence: number; readonly message: Tailed; readonly bodies: Uint8Array };

export function decodeReply(
  packer: Packer, type: ReplyType, sequence: number, control: Uint8Array, bodies: Uint8Array,
): Reply | InvalidMessage {
  switch (type) {
    case LISTED: {
      const message = decodeListed(packer, control);
      if (message instanceof InvalidMessage) return message;
      return bodies.length === 0 ? { type, sequence, message } : new InvalidMessage('bodies');
    }
    case CLAIMED: {
      const message = decodeClaimed(packer, control);
      if (message instanceof InvalidMessage) return message;
      return bodies.length === 0 ? { type, sequence, message } : new InvalidMessage('bodies');
    }
    case BLOCK: {
      const message = decodeBlock(packer, control);
      if (message instanceof InvalidMessage) return message;
      const rule = blockRule(message, bodies.length);
      return rule === '' ? { type, sequence, message, bodies } : new InvalidMessage(rule);
    }
    case TAILED: {
      const message = decodeTailed(packer, control);
      if (message instanceof InvalidMessage) return message;
      const rule = tailedRule(message, bodies.length);
      return rule === '' ? { type, sequence, message, bodies } : new InvalidMessage(rule);
    }
  }
}
