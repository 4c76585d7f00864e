/**
 * Who signs messages, as reception sees it (inbound/session/session.ts). A port only; the real one, which
 * signs reports too (queue/reports/report-writer.ts), is node/dkim-signer.ts.
 */
import type { JudgedMessage } from '../inbound/hooks/message-hook.js';
import type { Refusal } from '../inbound/session/replies.js';

export interface MessageSigner {
  /** It has a key of some domain; else there is no need to ask it, and may be the next moment. */
  readonly isOn: boolean;
  /**
   * A whole message of our own. `mayUse`: whether its client may send from an address. `done` is called once,
   * maybe before this returns: why the message is not taken, or what is put in front of it, on top; nothing
   * where it goes unsigned. Its content is to stay as it is, and counted, until then.
   */
  sign(
    message: JudgedMessage, mayUse: (address: string) => boolean,
    done: (refusal: Refusal | undefined, fields: Uint8Array) => void,
  ): void;
}
