/**
 * CLOSE: why this connection ends.
 *
 *   element  wire  field   meaning
 *   0        u8    reason  CLOSE_… of reasons.ts; unknown ones are taken
 *   1        str   text    for people: visible ASCII, up to 1,024 characters
 *   2        u53   detail  FENCED: the highest incarnation seen; else 0
 *
 * Either side sends it; the sender closes after it.
 */
import type { Packer } from '../../platform/ports.js';
import { isBetween, isText, isWhole, plainText, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

export interface Close {
  readonly reason: number;
  readonly text: string;
  readonly detail: number;
}

export function encodeClose(packer: Packer, message: Close): Uint8Array {
  return packer.pack([message.reason, plainText(message.text), message.detail]);
}

export function decodeClose(packer: Packer, control: Uint8Array): Close | InvalidMessage {
  const values = unpackControl(packer, control, 3);
  if (values instanceof InvalidMessage) return values;
  const [reason, text, detail] = values;
  if (!isBetween(reason, 1, 255)) return new InvalidMessage('reason');
  if (!isText(text)) return new InvalidMessage('text');
  if (!isWhole(detail)) return new InvalidMessage('detail');
  return { reason, text, detail };
}
