/**
 * The answers that carry something back to whoever asked: FENCED, DECLINED, ASKED, TOLD, LISTED, BLOCK,
 * TAILED, FETCHED. Decoded where they arrive, with the rows and payload that they describe, so that a
 * malformed one ends the connection, and with it the wait for it, instead of being passed over in silence.
 *
 * The layouts are in messages/. Not here: ACK, REFUSAL and BEAT, which the link itself reads.
 */
import type { Packer } from '../platform/ports.js';
import { InvalidMessage } from './invalid.js';
import { ASKED, BLOCK, DECLINED, FENCED, FETCHED, LISTED, TAILED, TOLD } from './message-types.js';
import type { Asked } from './messages/asked.js';
import { decodeAsked } from './messages/asked.js';
import type { Block } from './messages/block.js';
import { blockRule, decodeBlock } from './messages/block.js';
import type { Declined } from './messages/declined.js';
import { decodeDeclined } from './messages/declined.js';
import type { Fenced } from './messages/fenced.js';
import { decodeFenced } from './messages/fenced.js';
import type { Fetched } from './messages/fetched.js';
import { decodeFetched, fetchedRule } from './messages/fetched.js';
import type { Listed } from './messages/listed.js';
import { decodeListed } from './messages/listed.js';
import type { Tailed } from './messages/tailed.js';
import { decodeTailed, tailedRule } from './messages/tailed.js';
import type { Told } from './messages/told.js';
import { decodeTold } from './messages/told.js';

/** Replies without bodies, by type. */
interface PlainReplies {
  readonly [FENCED]: Fenced;
  readonly [DECLINED]: Declined;
  readonly [ASKED]: Asked;
  readonly [TOLD]: Told;
  readonly [LISTED]: Listed;
}
type PlainType = keyof PlainReplies;
export type ReplyType = PlainType | typeof BLOCK | typeof TAILED | typeof FETCHED;

type PlainReply = { readonly [T in PlainType]: {
  readonly type: T; readonly sequence: number; readonly message: PlainReplies[T];
} }[PlainType];

/** `sequence`: of the request that it answers. Rows and bodies are views of what was received. */
export type Reply =
  | PlainReply
  | {
    readonly type: typeof BLOCK; readonly sequence: number; readonly message: Block;
    readonly bodies: Uint8Array;
  }
  | {
    readonly type: typeof TAILED; readonly sequence: number; readonly message: Tailed;
    readonly bodies: Uint8Array;
  }
  | {
    readonly type: typeof FETCHED; readonly sequence: number; readonly message: Fetched;
    readonly bodies: Uint8Array;
  };

export function decodeReply(
  packer: Packer, type: ReplyType, sequence: number, control: Uint8Array, bodies: Uint8Array,
): Reply | InvalidMessage {
  if (type !== BLOCK && type !== TAILED && type !== FETCHED) {
    return bodies.length === 0 ? decodePlain(packer, type, sequence, control) : new InvalidMessage('bodies');
  }
  switch (type) {
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
    case FETCHED: {
      const message = decodeFetched(packer, control);
      if (message instanceof InvalidMessage) return message;
      const rule = fetchedRule(message, bodies.length);
      return rule === '' ? { type, sequence, message, bodies } : new InvalidMessage(rule);
    }
  }
}

function decodePlain(
  packer: Packer, type: PlainType, sequence: number, control: Uint8Array,
): PlainReply | InvalidMessage {
  switch (type) {
    case FENCED: {
      const message = decodeFenced(packer, control);
      return message instanceof InvalidMessage ? message : { type, sequence, message };
    }
    case DECLINED: {
      const message = decodeDeclined(packer, control);
      return message instanceof InvalidMessage ? message : { type, sequence, message };
    }
    case ASKED: {
      const message = decodeAsked(packer, control);
      return message instanceof InvalidMessage ? message : { type, sequence, message };
    }
    case TOLD: {
      const message = decodeTold(packer, control);
      return message instanceof InvalidMessage ? message : { type, sequence, message };
    }
    case LISTED: {
      const message = decodeListed(packer, control);
      return message instanceof InvalidMessage ? message : { type, sequence, message };
    }
  }
}
