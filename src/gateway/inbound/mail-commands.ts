/**
 * What MAIL and RCPT mean: syntax, limits, who may send where, whether the queue takes it. Each function returns
 * why not, or undefined after it has done its work on the transaction.
 *
 * Order of the checks: what is wrong for ever comes before what may be right later, so that a client never
 * retries a hopeless recipient.
 */

import { ENVELOPE_SMTPUTF8 } from '../queue/types.js';
import type { AdmissionVerdict, Route } from '../queue/types.js';
import { isAscii, parsePath } from './address.js';
import { ContentBuffer } from './content-buffer.js';
import type { InboundHub } from './hub.js';
import { MailParameters, RecipientParameters } from './parameters.js';
import * as replies from './reply-codes.js';
import type { Refusal } from './reply-codes.js';
import { protocolName } from './trace-header.js';
import { MailTransaction } from './transaction.js';
import type { OutcomeSink } from './transaction.js';

/** What these commands need of the connection. */
export interface MailDialog extends OutcomeSink {
  transaction: MailTransaction | undefined;
  readonly trusted: boolean;
  readonly remoteAddress: string;
  readonly helo: string;
  readonly isExtended: boolean;
  readonly secure: boolean;
  /** "TLSv1.3", '' in clear. */
  readonly tlsVersion: string;
}

const MAIL_FROM = 'MAIL FROM:';
const RCPT_TO = 'RCPT TO:';

export function refuseMail(dialog: MailDialog, hub: InboundHub, text: string): Refusal | undefined {
  const at = pathStart(text, MAIL_FROM);
  if (at < 0) return replies.MAIL_SYNTAX;
  const path = parsePath(text, at);
  if (typeof path === 'string') return replies.badSender(path);
  if (path.address !== '' && path.domain === '') return replies.badSender('domain is missing');
  const parameters = new MailParameters();
  const refusal = parameters.parse(text, path.end);
  if (refusal !== undefined) return refusal;
  const utf8 = (parameters.flags & ENVELOPE_SMTPUTF8) !== 0;
  if (!path.ascii && !utf8) return replies.SMTPUTF8_NEEDED;
  if (parameters.sizeBytes > hub.options.messageBytesMax) return replies.TOO_BIG;
  const content = new ContentBuffer(hub.ports.reception, hub.options.messageBytesMax);
  const transaction = new MailTransaction(path.address, parameters, dialog.remoteAddress, dialog.helo, content, hub.ports.reception, dialog);
  transaction.tls = dialog.tlsVersion;
  transaction.protocol = protocolName(dialog.isExtended, dialog.secure, utf8);
  dialog.transaction = transaction;
  return undefined;
}

export function refuseRecipient(dialog: MailDialog, hub: InboundHub, transaction: MailTransaction, text: string): Refusal | undefined {
  const at = pathStart(text, RCPT_TO);
  if (at < 0) return replies.RCPT_SYNTAX;
  const path = parsePath(text, at);
  if (typeof path === 'string') return replies.badRecipient(path);
  if (path.address === '') return replies.badRecipient('it is empty');
  const parameters = new RecipientParameters();
  const refusal = parameters.parse(text, path.end);
  if (refusal !== undefined) return refusal;
  if ((transaction.flags & ENVELOPE_SMTPUTF8) === 0 && !(path.ascii && isAscii(parameters.orcpt))) return replies.SMTPUTF8_NEEDED;
  // RFC 5321 4.5.1: postmaster without a domain is ours, whoever asks.
  const isPostmaster = path.domain === '';
  const domain = isPostmaster ? hub.hostDomain : path.domain;
  if (!isPostmaster && !dialog.trusted && !hub.policy.isRelayDomain(domain)) return replies.RELAY_DENIED;
  const route = hub.ports.router.route(domain, 'mail');
  if (route === undefined) return replies.NO_ROUTE;
  if (transaction.recipientCount >= hub.options.recipientsMax) return replies.TOO_MANY_RECIPIENTS;
  const full = admissionRefusal(hub, route);
  if (full !== undefined) return full;
  if (!transaction.reserveRecipient(text.length)) return replies.NO_MEMORY_NOW;
  const address = isPostmaster ? path.address + '@' + hub.options.hostName : path.address;
  transaction.addRecipient(route, { address, notify: parameters.notify, orcpt: parameters.orcpt });
  return undefined;
}

function admissionRefusal(hub: InboundHub, route: Route): Refusal | undefined {
  const admission: AdmissionVerdict = hub.ports.reception.admit(route);
  switch (admission) {
    case '':
      return undefined;
    case 'queue-full':
      return replies.QUEUE_FULL;
    case 'share':
      return replies.SHARE_USED;
    case 'memory':
      return replies.NO_MEMORY_NOW;
    case 'queues':
      return replies.TOO_MANY_QUEUES;
    case 'not-ready':
      return replies.NOT_READY_NOW;
    case 'recovering':
      return replies.RECOVERING;
    case 'short':
      return replies.SHORT;
    case 'no-store':
      return replies.NO_STORE;
    case 'draining':
      return replies.SHUTTING_DOWN;
  }
}

/** Index of the path behind "MAIL FROM:"; spaces before it are tolerated as everyone does. */
function pathStart(text: string, prefix: string): number {
  if (text.slice(0, prefix.length).toUpperCase() !== prefix) return -1;
  let at = prefix.length;
  while (text.charCodeAt(at) === 0x20) at++;
  return at;
}
