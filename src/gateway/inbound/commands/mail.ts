/**
 * MAIL (RFC 5321 4.1.1.2): syntax, limits, whether the gateway takes mail at all. Begins a transaction.
 */
import { ContentBuffer } from '../content/content-buffer.js';
import { protocolName } from '../content/trace-header.js';
import { maySendFrom } from '../auth/users.js';
import { OWN_ORIGIN } from '../../mail-types.js';
import { parsePath } from '../../../smtp/address.js';
import { tableKey } from '../recipients/listing.js';
import type { Desk } from '../session/desk.js';
import type { InboundDialog } from '../session/dialog.js';
import * as replies from '../session/replies.js';
import type { Effect, Refusal } from '../session/replies.js';
import { MailTransaction } from '../session/transaction.js';
import { MailParameters } from './parameters.js';

const MAIL_FROM = 'MAIL FROM:';
const SPACE = 0x20;
const CASE = 0x20;
const LOWER_A = 0x61;
const LOWER_Z = 0x7a;

export function mail(dialog: InboundDialog, desk: Desk, text: string): Effect {
  const { options, ports } = desk;
  if (dialog.helo === '') return replies.GREET_FIRST;
  if (dialog.transaction !== undefined) return replies.NESTED_MAIL;
  if (options.isSubmission && dialog.user === '') return replies.AUTH_NEEDED;
  if (!ports.reception.accepting) return replies.NOT_ACCEPTING;
  const at = pathStart(text, MAIL_FROM);
  if (at < 0) return replies.MAIL_SYNTAX;
  const path = parsePath(text, at, ports.toAscii);
  if (typeof path === 'string') return replies.badSender(path);
  if (path.address !== '' && path.domain === '') return replies.badSender('domain is missing');
  // Reports go into a queue of the domain, where its route has such, and that must have a name.
  if (ports.router.isTooLong(path.domain, path.address, OWN_ORIGIN)) {
    return replies.badSender('no report could reach so long a domain');
  }
  const addresses = addressesOf(dialog, desk);
  if (addresses !== undefined && 'reply' in addresses) return addresses;
  // As who may send from what compares it: a user who writes his domain otherwise is nobody else by it.
  const senderKey = path.address === '' ? '' : tableKey(path.address, path.domain);
  if (addresses !== undefined && !maySendFrom(addresses, senderKey)) return replies.NOT_YOUR_ADDRESS;
  const takesRequireTls = options.offersRequireTls && dialog.tlsVersion !== '';
  const parameters = new MailParameters(options.isSubmission, takesRequireTls);
  const refusal = parameters.parse(text, path.end);
  if (refusal !== undefined) return refusal;
  const isUtf8 = parameters.isUtf8;
  if (!path.ascii && !isUtf8) return replies.SMTPUTF8_NEEDED;
  if (parameters.sizeBytes > options.messageBytesMax) return replies.TOO_BIG;
  if (ports.reception.refusesFrom(path.address, dialog.remoteAddress, senderKey)) {
    return replies.NOT_TAKEN_FROM_YOU;
  }
  const late = rateRefusal(dialog, desk, senderKey);
  if (late !== undefined) return late;
  const content = new ContentBuffer(ports.reception, options.messageBytesMax);
  const { reception } = ports;
  const transaction = new MailTransaction(
    path.address, senderKey, desk.listener, parameters, dialog, content, reception,
  );
  const { isExtended, tlsVersion, user } = dialog;
  transaction.protocol = protocolName(isExtended, tlsVersion !== '', user !== '', isUtf8);
  transaction.addresses = addresses;
  dialog.transaction = transaction;
  return replies.SENDER_OK;
}

function rateRefusal(dialog: InboundDialog, { ports, nowMs }: Desk, sender: string): Refusal | undefined {
  const { rates } = ports;
  if (rates === undefined) return undefined;
  if (rates.hasDoneAll('errors', dialog, sender, nowMs)) return replies.TOO_MANY_ERRORS;
  if (rates.hasDoneAll('data', dialog, sender, nowMs)) return replies.TOO_MUCH_DATA;
  return rates.mayDo('messages', dialog, sender, nowMs) ? undefined : replies.TOO_MANY_MESSAGES;
}

/**
 * What the user may send from, or why nothing, judged for each message anew: who was taken out of the file,
 * or has another password or other addresses now, sends nothing more by what he has said before. He connects
 * anew then: within a session there is one AUTH only (RFC 4954 4), so 451, and not 530, by which an MTA would
 * give its mail up. Undefined without users of our own: the proxy that told us the login (XCLIENT) has looked
 * after that.
 */
function addressesOf(
  { user, account }: InboundDialog, { ports: { authenticator } }: Desk,
): readonly string[] | Refusal | undefined {
  if (user === '' || authenticator === undefined) return undefined;
  if (account === undefined) return replies.NOT_YOUR_ADDRESS;
  return authenticator.addressesOf(account) ?? replies.AUTHENTICATION_OVER;
}

/** Index of the path behind "MAIL FROM:"; spaces before it are tolerated as everyone does. */
export function pathStart(text: string, prefix: string): number {
  for (let at = 0; at < prefix.length; at++) {
    const code = text.charCodeAt(at);
    const upper = code >= LOWER_A && code <= LOWER_Z ? code - CASE : code;
    if (upper !== prefix.charCodeAt(at)) return -1;
  }
  let at = prefix.length;
  while (text.charCodeAt(at) === SPACE) at++;
  return at;
}
