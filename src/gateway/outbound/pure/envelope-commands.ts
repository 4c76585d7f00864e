/**
 * What of an envelope can be sent to a peer, and its MAIL and RCPT (smtp/commands.ts has the lines).
 *
 * Values of ENVID and ORCPT are xtext as received and passed on as they are; ORCPT of type utf-8 in its 7-bit
 * form where the transaction is no SMTPUTF8 one (RFC 6533 3). Content is never changed on its way here, so
 * what a peer lacks fails: 8BITMIME for content with 8-bit octets (5.6.3), SMTPUTF8 for a reverse-path or a
 * header with them (5.6.7, the message) or a recipient (5.6.7, that one). SMTPUTF8 is asked for only where
 * something of the transaction needs it (RFC 6531 3.4), whatever the client said. Pure.
 */
import { unitextAsXtext } from '../../../base/utf8-address.js';
import {
  ENVELOPE_8BIT, ENVELOPE_REQUIRETLS, ENVELOPE_UTF8_HEADER, NOTIFY_BITS, NOTIFY_DELAY, NOTIFY_FAILURE,
  NOTIFY_NEVER, NOTIFY_SUCCESS,
} from '../../mail-types.js';
import type { Delivery, Recipient } from '../../mail-types.js';
import { CAN_8BITMIME, CAN_REQUIRETLS, CAN_SMTPUTF8 } from '../../../smtp/capabilities.js';
import type { Capabilities } from '../../../smtp/capabilities.js';
import {
  NEEDS_8BITMIME, NEEDS_REQUIRETLS, NEEDS_SMTPUTF8, putMail, putRcpt,
} from '../../../smtp/commands.js';
import { Trouble } from './classify.js';
import { TEXT_UNSENDABLE, TEXT_UTF8, kindOfText } from '../../../smtp/write-buffer.js';
import type { WriteBuffer } from '../../../smtp/write-buffer.js';

/** NOTIFY values by the bits of mail-types.ts; NEVER stands alone (RFC 3461 4.1). */
const NOTIFY_VALUES: readonly string[] = Array.from({ length: 16 }, (_, bits) => {
  if ((bits & NOTIFY_NEVER) !== 0) return 'NEVER';
  const words: string[] = [];
  if ((bits & NOTIFY_SUCCESS) !== 0) words.push('SUCCESS');
  if ((bits & NOTIFY_FAILURE) !== 0) words.push('FAILURE');
  if ((bits & NOTIFY_DELAY) !== 0) words.push('DELAY');
  return words.join(',');
});

/** RET values by mail-types.ts. */
const RET_VALUES: readonly string[] = ['', 'FULL', 'HDRS'];

/** What keeps the whole message from being tried at this peer, or undefined. */
export function messageTrouble(delivery: Delivery, peer: Capabilities): Trouble | undefined {
  if (peer.sizeBytesMax > 0 && delivery.contentBytes > peer.sizeBytesMax) return Trouble.SIZE;
  const { reversePath, envelope: { flags } } = delivery;
  const trouble = addressTrouble(reversePath, peer);
  if (trouble !== undefined) return trouble;
  const isRelayed = delivery.queue.route.nextHop.protocol === 'smtp';
  const isRequired = (flags & ENVELOPE_REQUIRETLS) !== 0 && isRelayed;
  if (isRequired && (peer.bits & CAN_REQUIRETLS) === 0) return Trouble.REQUIRETLS_ABSENT;
  if ((flags & ENVELOPE_UTF8_HEADER) !== 0 && (peer.bits & CAN_SMTPUTF8) === 0) return Trouble.UTF8;
  return (flags & ENVELOPE_8BIT) !== 0 && (peer.bits & CAN_8BITMIME) === 0 ? Trouble.EIGHT_BIT : undefined;
}

/** The words for what messageTrouble() found. */
export function messageTroubleText(
  trouble: Trouble, { contentBytes }: Delivery, { sizeBytesMax }: Capabilities, relay: string,
): string {
  if (trouble === Trouble.SIZE) {
    return `message of ${contentBytes} bytes is larger than the ${sizeBytesMax} that ${relay} takes`;
  }
  if (trouble === Trouble.EIGHT_BIT) return `message has 8-bit content, and ${relay} does not offer 8BITMIME`;
  if (trouble === Trouble.REQUIRETLS_ABSENT) return `message needs REQUIRETLS, which ${relay} does not offer`;
  if (trouble === Trouble.UTF8) return `message needs SMTPUTF8, which ${relay} does not offer`;
  return 'the reverse-path holds characters that can not be sent';
}

/** What keeps this recipient from being tried at this peer, or undefined. */
export function recipientTrouble(recipient: Recipient, peer: Capabilities): Trouble | undefined {
  return addressTrouble(recipient.address, peer);
}

/** Whether MAIL must say SMTPUTF8 for this; ORCPT alone has a 7-bit form. */
export function isInternational(delivery: Delivery): boolean {
  const { reversePath, envelope: { flags, recipients } } = delivery;
  if ((flags & ENVELOPE_UTF8_HEADER) !== 0 || kindOfText(reversePath) === TEXT_UTF8) return true;
  for (let i = 0; i < delivery.pending.length; i++) {
    if (kindOfText(recipients[delivery.pending[i] ?? -1]?.address ?? '') === TEXT_UTF8) return true;
  }
  return false;
}

/** A control character in an address would be a command of its own: never sent, whoever let it in. */
function addressTrouble(address: string, peer: Capabilities): Trouble | undefined {
  const kind = kindOfText(address);
  if (kind === TEXT_UNSENDABLE) return Trouble.ADDRESS;
  return kind === TEXT_UTF8 && (peer.bits & CAN_SMTPUTF8) === 0 ? Trouble.UTF8 : undefined;
}

/** Appends the MAIL line; messageTrouble() has found nothing. */
export function putMailOf(into: WriteBuffer, delivery: Delivery, peer: Capabilities, isUtf8: boolean): void {
  const { reversePath, envelope: { flags, ret, envid } } = delivery;
  const needs = ((flags & ENVELOPE_8BIT) === 0 ? 0 : NEEDS_8BITMIME) | (isUtf8 ? NEEDS_SMTPUTF8 : 0)
    | ((flags & ENVELOPE_REQUIRETLS) === 0 ? 0 : NEEDS_REQUIRETLS);
  putMail(into, peer, reversePath, delivery.contentBytes, needs, RET_VALUES[ret] ?? 'HDRS', envid);
}

/** Appends a RCPT line; recipientTrouble() has found nothing. */
export function putRcptOf(
  into: WriteBuffer, recipient: Recipient, peer: Capabilities, isUtf8: boolean,
): void {
  const { address, notify, orcpt } = recipient;
  const words = NOTIFY_VALUES[notify & NOTIFY_BITS] ?? '';
  putRcpt(into, peer, address, words, isUtf8 ? orcpt : unitextAsXtext(orcpt));
}
