/**
 * MAIL and RCPT lines with their parameters (RFC 5321 4.1.1.2-3, 1870, 3461, 6152, 6531),
 * by what the peer offers:
 *
 *   MAIL FROM:<reverse-path> SIZE=n BODY=8BITMIME SMTPUTF8 RET=FULL ENVID=x
 *   RCPT TO:<forward-path> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;y
 *
 * Values of ENVID and ORCPT are xtext as received and passed on as they are. DEVIATION RFC 6152 3: content
 * with 8-bit bytes goes to a peer without 8BITMIME as it is: it is never changed on its way here, bouncing it
 * would help nobody, and every server in use takes it. SMTPUTF8 is different: without it the addresses have
 * no meaning to the peer, so the mail fails (5.6.7). Pure.
 */
import { ENVELOPE_8BITMIME, ENVELOPE_SMTPUTF8, NOTIFY_DELAY, NOTIFY_FAILURE, NOTIFY_NEVER, NOTIFY_SUCCESS, RET_FULL } from '../../queue/types.js';
import type { Delivery, Envelope, Recipient } from '../../queue/types.js';
import { CAN_8BITMIME, CAN_DSN, CAN_SIZE, CAN_SMTPUTF8 } from './capabilities.js';
import type { Capabilities } from './capabilities.js';
import { Trouble } from './classify.js';
import { TEXT_ASCII, TEXT_UNSENDABLE, TEXT_UTF8, kindOfText } from './write-buffer.js';
import type { WriteBuffer } from './write-buffer.js';

/** NOTIFY values by the bits of queue/types.ts; NEVER stands alone (RFC 3461 4.1). */
const NOTIFY_VALUES: readonly string[] = Array.from({ length: 16 }, (_, bits) => {
  if ((bits & NOTIFY_NEVER) !== 0) return 'NEVER';
  const words: string[] = [];
  if ((bits & NOTIFY_SUCCESS) !== 0) words.push('SUCCESS');
  if ((bits & NOTIFY_FAILURE) !== 0) words.push('FAILURE');
  if ((bits & NOTIFY_DELAY) !== 0) words.push('DELAY');
  return words.join(',');
});

/** What keeps the whole message from being tried at this peer, or undefined. */
export function messageTrouble(delivery: Delivery, peer: Capabilities): Trouble | undefined {
  if (peer.sizeBytesMax > 0 && delivery.contentBytes > peer.sizeBytesMax) return Trouble.SIZE;
  return addressTrouble(delivery.envelope.reversePath, delivery.envelope, peer) ?? needsUtf8(delivery.envelope, peer);
}

/** The words for what messageTrouble() found. */
export function messageTroubleText(trouble: Trouble, delivery: Delivery, peer: Capabilities, relay: string): string {
  if (trouble === Trouble.SIZE) return `message of ${delivery.contentBytes} bytes is larger than the ${peer.sizeBytesMax} that ${relay} takes`;
  if (trouble === Trouble.UTF8) return `message needs SMTPUTF8, which ${relay} does not offer`;
  return 'the reverse-path holds characters that can not be sent';
}

/** What keeps this recipient from being tried at this peer, or undefined. */
export function recipientTrouble(recipient: Recipient, envelope: Envelope, peer: Capabilities): Trouble | undefined {
  return addressTrouble(recipient.address, envelope, peer);
}

function needsUtf8(envelope: Envelope, peer: Capabilities): Trouble | undefined {
  return (envelope.flags & ENVELOPE_SMTPUTF8) !== 0 && (peer.bits & CAN_SMTPUTF8) === 0 ? Trouble.UTF8 : undefined;
}

/** A control character in an address would be a command of its own: never sent, whoever let it in. */
function addressTrouble(address: string, envelope: Envelope, peer: Capabilities): Trouble | undefined {
  const kind = kindOfText(address);
  if (kind === TEXT_UNSENDABLE) return Trouble.ADDRESS;
  const isUtf8 = (envelope.flags & ENVELOPE_SMTPUTF8) !== 0 && (peer.bits & CAN_SMTPUTF8) !== 0;
  return kind === TEXT_UTF8 && !isUtf8 ? Trouble.UTF8 : undefined;
}

/** Appends the MAIL line; messageTrouble() has found nothing. */
export function putMail(into: WriteBuffer, delivery: Delivery, peer: Capabilities): void {
  const envelope = delivery.envelope;
  into.ascii('MAIL FROM:<');
  into.text(envelope.reversePath);
  into.ascii('>');
  if ((peer.bits & CAN_SIZE) !== 0) into.ascii(` SIZE=${delivery.contentBytes}`);
  if ((envelope.flags & ENVELOPE_8BITMIME) !== 0 && (peer.bits & CAN_8BITMIME) !== 0) into.ascii(' BODY=8BITMIME');
  if ((envelope.flags & ENVELOPE_SMTPUTF8) !== 0) into.ascii(' SMTPUTF8');
  if ((peer.bits & CAN_DSN) !== 0) {
    if (envelope.ret !== 0) into.ascii(envelope.ret === RET_FULL ? ' RET=FULL' : ' RET=HDRS');
    putParameter(into, ' ENVID=', envelope.envid);
  }
  into.ascii('\r\n');
}

/** Appends a RCPT line; recipientTrouble() has found nothing. */
export function putRcpt(into: WriteBuffer, recipient: Recipient, peer: Capabilities): void {
  into.ascii('RCPT TO:<');
  into.text(recipient.address);
  into.ascii('>');
  if ((peer.bits & CAN_DSN) !== 0) {
    if (recipient.notify !== 0) into.ascii(` NOTIFY=${NOTIFY_VALUES[recipient.notify & 15] ?? 'FAILURE'}`);
    putParameter(into, ' ORCPT=', recipient.orcpt);
  }
  into.ascii('\r\n');
}

/** Leaves out a value that can't be sent, as UTF-8 in ORCPT (RFC 6533 3) to us: better a plain report than no mail. */
function putParameter(into: WriteBuffer, name: string, value: string): void {
  if (value === '' || kindOfText(value) !== TEXT_ASCII || value.includes(' ')) return;
  into.ascii(name);
  into.text(value);
}
