/**
 * The envelope of a transaction on its way into a write: who can't be sent to the peer at all, and the
 * commands for the others (envelope-commands.ts has the lines). Pure.
 */
import type { Delivery } from '../../mail-types.js';
import { CAN_SMTPUTF8 } from '../../../smtp/capabilities.js';
import type { Capabilities } from '../../../smtp/capabilities.js';
import { DATA } from '../../../smtp/commands.js';
import { classifyTrouble } from './classify.js';
import {
  isInternational, messageTrouble, messageTroubleText, putMailOf, putRcptOf,
} from './envelope-commands.js';
import type { Transaction } from './transaction.js';
import type { WriteBuffer } from '../../../smtp/write-buffer.js';

/** Begins the transaction; whoever can't be sent to this peer has a result at once. */
export function prepare(
  transaction: Transaction, delivery: Delivery, peer: Capabilities, relay: string,
): void {
  transaction.begin(delivery);
  transaction.isUtf8 = (peer.bits & CAN_SMTPUTF8) !== 0 && isInternational(delivery);
  const trouble = messageTrouble(delivery, peer);
  if (trouble === undefined) transaction.resolveUnsendable(peer, relay);
  else transaction.resolveOpen(classifyTrouble(trouble, messageTroubleText(trouble, delivery, peer, relay)));
}

/** Appends MAIL, and with `pipelined` RCPT for everyone still open and DATA (RFC 2920 3.1). */
export function putEnvelope(
  into: WriteBuffer, transaction: Transaction, peer: Capabilities, pipelined: boolean,
): void {
  putMailOf(into, transaction.current(), peer, transaction.isUtf8);
  if (!pipelined) return;
  for (let i = transaction.nextToName(0); i >= 0; i = transaction.nextToName(i + 1)) {
    putRcptOf(into, transaction.recipient(i), peer, transaction.isUtf8);
  }
  into.ascii(DATA);
}
