/**
 * LIST: which queues does the store hold?
 *
 *   element  wire  field      meaning
 *   0        str   gatewayId  of this gateway only; '' for all that the asker owns or may claim
 *   1        u53   cursor     0, or `next` of the last LISTED
 *
 * Answered by LISTED.
 */
import type { Packer } from '../../platform/ports.js';
import { isIdentifierOrNone, isWhole, unpackControl } from '../fields.js';
import { InvalidMessage } from '../invalid.js';

export interface List {
  readonly gatewayId: string;
  readonly cursor: number;
}

export function encodeList(packer: Packer, message: List): Uint8Array {
  return packer.pack([message.gatewayId, message.cursor]);
}

export function decodeList(packer: Packer, control: Uint8Array): List | InvalidMessage {
  const values = unpackControl(packer, control, 2);
  if (values instanceof InvalidMessage) return values;
  const [gatewayId, cursor] = values;
  if (!isIdentifierOrNone(gatewayId)) return new InvalidMessage('gatewayId');
  if (!isWhole(cursor)) return new InvalidMessage('cursor');
  return { gatewayId, cursor };
}
