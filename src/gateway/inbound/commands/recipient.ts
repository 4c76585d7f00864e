/**
 * RCPT (RFC 5321 4.1.1.3): syntax, who may send where, whether the queue takes it.
 *
 * Order of the checks: what is wrong for ever comes before what may be right later, so that a client never
 * retries a hopeless recipient.
 */
import { invariant } from '../../../base/invariant.js';
import { utf8AddressText } from '../../../base/utf8-address.js';
import { isAscii, normalizeDomain, parsePath, withDomain } from '../../../smtp/address.js';
import {
  ALIAS_CHANGED, ALIAS_EXPANDED, ALIAS_KEEPS, ALIAS_LEAVES, ALIAS_SUCCESS, ALIAS_WRITTEN,
  ENVELOPE_BY_ANYBODY, NOTIFY_NEVER, NOTIFY_SUCCESS,
} from '../../mail-types.js';
import type { AdmissionVerdict, Recipient, Route } from '../../mail-types.js';
import type { CameBack } from '../../returned/came-back.js';
import type { Path } from '../../../smtp/address.js';
import type { Desk } from '../session/desk.js';
import type { InboundDialog, WantedRecipient } from '../session/dialog.js';
import type { Destination } from '../policy/role-addresses.js';
import * as replies from '../session/replies.js';
import type { Effect, Refusal } from '../session/replies.js';
import { pathStart } from './mail.js';
import type { MailTransaction } from '../session/transaction.js';
import { ORCPT_CHARACTERS_MAX, RecipientParameters, xtext } from './parameters.js';
import { byDomain, destinationsOf, mailboxKey, noRoute } from '../recipients/destinations.js';
import { ALIAS_TARGETS_MAX } from '../recipients/listing.js';
import { whoIsMeant } from '../recipients/who-is-meant.js';

const RCPT_TO = 'RCPT TO:';
/** Questions that follow from answers: aliases are followed so deep at most, and some answer may run out. */
const ROUNDS_MAX = 20;

export function recipient(dialog: InboundDialog, desk: Desk, text: string): Effect {
  const { transaction } = dialog;
  if (transaction === undefined) return dialog.helo === '' ? replies.GREET_FIRST : replies.MAIL_FIRST;
  if (transaction.isChunked) return replies.CHUNKS_BEGUN;
  const { ports } = desk;
  const at = pathStart(text, RCPT_TO);
  if (at < 0) return replies.RCPT_SYNTAX;
  const path = parsePath(text, at, ports.toAscii);
  if (typeof path === 'string') return replies.badRecipient(path);
  if (path.address === '') return replies.badRecipient('it is empty');
  const parameters = new RecipientParameters();
  const refusal = parameters.parse(text, path.end);
  if (refusal !== undefined) return refusal;
  if (!transaction.isUtf8 && !(path.ascii && isAscii(parameters.orcpt))) return replies.SMTPUTF8_NEEDED;
  const { rewriting, paths } = ports.made;
  const mayBeMade = rewriting !== undefined || paths !== undefined;
  const meant = mayBeMade ? whoIsMeant(path, transaction, ports) : undefined;
  if (meant !== undefined && 'reply' in meant) return meant;
  const { wanted = path, came } = meant ?? {};
  const role = desk.roles.destinationOf(wanted);
  const isOfOurs = mayRelay(dialog);
  if (!isOfOurs) transaction.flags |= ENVELOPE_BY_ANYBODY;
  if (role === undefined && !isOfOurs) {
    const isOurs = came !== undefined || wanted !== path || desk.policy.isRelayDomain(path.domain);
    if (!isOurs) return replies.RELAY_DENIED;
    if (hidesRoute(wanted.address)) return replies.ROUTED_LOCAL_PART;
    if (relaysForAnybody(came, wanted, transaction, desk)) return replies.RETURN_NO_REPORT;
    if (dialog.blockedBy === undefined) return replies.BLOCKLIST_SILENT;
    if (dialog.blockedBy !== '') return replies.onBlocklist(dialog.remoteAddress, dialog.blockedBy);
  }
  if (ports.rates?.mayDo('recipients', dialog, transaction.senderKey, desk.nowMs) === false) {
    return replies.TOO_MANY_IN_A_MINUTE;
  }
  if (came?.to === '') return takeBack(transaction, desk, path, text, came);
  const to = role ?? wanted;
  if (ports.recipients === undefined) return byRoute(transaction, desk, text, path, to, parameters, came);
  // Who reads feedback is named by the operator, as who reads for postmaster is.
  const isRole = role !== undefined || came?.kind === 'feedback';
  const whole = { text, path, to, came, parameters, isRole, keys: [], rounds: 0 };
  return byTable(dialog, transaction, desk, whole);
}

/** Where the domain leads. */
function byRoute(
  transaction: MailTransaction, desk: Desk, text: string, path: Path, { address, domain }: Destination,
  parameters: RecipientParameters, came: CameBack | undefined,
): Effect {
  const { options, ports } = desk;
  const plain = ports.router.route(domain, 'mail', address, transaction);
  if (plain === undefined) return noRoute(ports.router, { address, domain }, transaction);
  const route = routeOf(plain, transaction, desk);
  if (isRefusedTo(path, desk) || isRefusedTo({ address, domain }, desk)) return replies.NOT_TAKEN_NOW;
  if (transaction.countedRecipients >= options.recipientsMax) return replies.TOO_MANY_RECIPIENTS;
  const full = admissionRefusal(desk, route);
  if (full !== undefined) return full;
  if (!transaction.reserveRecipients(1, text.length)) return replies.NO_MEMORY_NOW;
  const { notify, orcpt } = parameters;
  let added: Recipient = { address, notify, orcpt };
  if (address !== path.address) {
    const hasLeft = !desk.policy.isRelayDomain(domain);
    const leaves = hasLeft && isForeign(transaction.reversePath, desk) ? ALIAS_LEAVES : 0;
    added = changed({ address, notify: notifyOfMember(notify, 0, 1) | leaves, orcpt }, path.address, desk);
  }
  transaction.named(path.address);
  transaction.addRecipient(route, added, mailboxKey(address, domain));
  if (came !== undefined) transaction.addCameBack(came, path.address);
  return replies.RECIPIENT_OK;
}

/** What came back is counted, and goes on to nobody. */
function takeBack(
  transaction: MailTransaction, { options }: Desk, { address }: Path, text: string, came: CameBack,
): Effect {
  if (transaction.namedCount >= options.recipientsMax) return replies.TOO_MANY_RECIPIENTS;
  if (!transaction.reserveRecipients(1, text.length)) return replies.NO_MEMORY_NOW;
  transaction.named(address);
  transaction.addCameBack(came, address);
  return replies.RECIPIENT_OK;
}

/**
 * Whoever names a victim as the sender of his mail gets an address that leads to the victim. Out of our
 * domains it takes reports only, which come from the null reverse-path.
 */
function relaysForAnybody(
  came: CameBack | undefined, wanted: Path, { reversePath }: MailTransaction, { policy }: Desk,
): boolean {
  if (came?.kind !== 'returned' || came.to === '' || reversePath === '') return false;
  return !policy.isRelayDomain(wanted.domain);
}

/** What somebody was asked for is known: the RCPT goes on. `isFull`: not everything could be asked for. */
export function lookedUp(dialog: InboundDialog, desk: Desk, isFull: boolean): Effect {
  const { lookup, transaction } = dialog;
  invariant(lookup !== undefined && transaction !== undefined, 'a RCPT waited for its table');
  dialog.lookup = undefined;
  return byTable(dialog, transaction, desk, isFull ? { ...lookup, rounds: ROUNDS_MAX } : lookup);
}

/** An alias is several recipients: all of them are taken, or none. */
function byTable(
  dialog: InboundDialog, transaction: MailTransaction, desk: Desk, wanted: WantedRecipient,
): Effect {
  const { text, path, to, came, isRole, parameters: { notify, orcpt } } = wanted;
  const room = roomOf(transaction, desk);
  // Before the table is asked: a list is work.
  if (room <= 0) return replies.TOO_MANY_RECIPIENTS;
  const known = destinationsOf(to, desk, transaction, room);
  // Answers may be forgotten as fast as they come.
  const isHopeless = 'unasked' in known && wanted.rounds === ROUNDS_MAX;
  const found = isHopeless ? replies.TABLE_UNREADABLE : known;
  const destinations = isRole && 'reply' in found ? byDomain(to, desk, transaction) : found;
  if ('reply' in destinations) {
    const isTooLong = destinations === replies.TOO_MANY_RECIPIENTS && transaction.recipientCount === 0;
    return isTooLong ? replies.LIST_TOO_LONG : destinations;
  }
  if ('unasked' in destinations) {
    dialog.lookup = { ...wanted, keys: destinations.unasked, rounds: wanted.rounds + 1 };
    return replies.LOOKED_UP;
  }
  let characters = text.length;
  if (isRefusedTo(path, desk)) return replies.NOT_TAKEN_NOW;
  for (const { route, address, key } of destinations) {
    const domain = key.slice(key.lastIndexOf('@') + 1);
    if (isRefusedTo({ address, domain }, desk)) return replies.NOT_TAKEN_NOW;
    const full = admissionRefusal(desk, routeOf(route, transaction, desk));
    if (full !== undefined) return full;
    if (address !== path.address) characters += address.length;
  }
  if (!transaction.reserveRecipients(destinations.length, characters)) return replies.NO_MEMORY_NOW;
  transaction.named(path.address);
  const isForeignSender = isForeign(transaction.reversePath, desk);
  destinations.forEach(({ route, address, hasLeft, isOwnCopy, key }, index) => {
    const isChanged = address !== path.address;
    const isMember = isChanged || destinations.length > 1;
    const asked = isMember ? notifyOfMember(notify, index, destinations.length) : notify;
    const leaves = isChanged && hasLeft && isForeignSender ? ALIAS_LEAVES : 0;
    const keeps = isOwnCopy === true ? ALIAS_KEEPS : 0;
    const plain = { address, notify: asked | leaves | keeps, orcpt };
    const added = isChanged ? changed(plain, path.address, desk) : plain;
    transaction.addRecipient(routeOf(route, transaction, desk), added, key);
  });
  if (came !== undefined) transaction.addCameBack(came, path.address);
  return replies.RECIPIENT_OK;
}

/** A list that comes first may have more members than a client may name: it can't be sent to in parts. */
function roomOf({ countedRecipients }: MailTransaction, { options: { recipientsMax } }: Desk): number {
  if (countedRecipients > 0) return recipientsMax - countedRecipients;
  return Math.max(recipientsMax, ALIAS_TARGETS_MAX);
}

/**
 * What is asked about an address that an alias leads to, one of `count`: success is told by us, once, of the
 * alias and not of who is behind it (RFC 3461 5.2.7.3, 5.2.7.4). A next hop that is asked to tell it names
 * the address that it took.
 */
function notifyOfMember(notify: number, index: number, count: number): number {
  if ((notify & NOTIFY_SUCCESS) === 0) return notify;
  const others = (notify & ~NOTIFY_SUCCESS) === 0 ? NOTIFY_NEVER : notify & ~NOTIFY_SUCCESS;
  if (index > 0) return others;
  return others | ALIAS_SUCCESS | (count > 1 ? ALIAS_EXPANDED : 0);
}

/**
 * Whose reverse-path is rewritten, where `smtp.srs` is there when it is sent on. For domains of our own we
 * are known to send. What we sign is relayed for anybody: no hidden route is.
 */
function isForeign(reversePath: string, { policy, ports: { made, toAscii } }: Desk): boolean {
  if (reversePath === '' || hidesRoute(reversePath)) return false;
  const domain = normalizeDomain(reversePath.slice(reversePath.lastIndexOf('@') + 1), toAscii);
  return domain !== made.rewriting?.domain && !policy.isRelayDomain(domain);
}

/**
 * Reports name the address that the sender wrote to, not what an alias made of it (RFC 3461 5.2.7.3), or what
 * the client gave as ORCPT: a relay keeps that of a list elsewhere (5.2.1), or it is made up. Mail that is
 * sent again must not go there (`send --spool`).
 */
function changed({ address, notify, orcpt }: Recipient, written: string, desk: Desk): Recipient {
  const original = originalOf(written, desk);
  const isWritten = orcpt === '' ? original !== '' : orcpt.toLowerCase() === original.toLowerCase();
  const bits = notify | ALIAS_CHANGED | (isWritten ? ALIAS_WRITTEN : 0);
  return { address, notify: bits, orcpt: orcpt === '' ? original : orcpt };
}

/** As ORCPT; '' where that would be too long. */
function originalOf(written: string, { options: { hostName } }: Desk): string {
  const address = withDomain(written, hostName);
  const original = isAscii(address) ? `rfc822;${xtext(address)}` : `utf-8;${utf8AddressText(address)}`;
  return original.length <= ORCPT_CHARACTERS_MAX ? original : '';
}

/**
 * "victim%evil.test@ours.test", "evil.test!victim@ours.test" and a quoted "@": a next hop that trusts us may
 * relay them on (Postfix does by its defaults).
 */
function hidesRoute(address: string): boolean {
  return /[%!@]/.test(address.slice(0, address.lastIndexOf('@')));
}

/** One of our own: a user, or a client of the relay networks. */
export function mayRelay(dialog: InboundDialog): boolean {
  return dialog.isTrusted || dialog.user !== '';
}

/** That of the queue where the mail will stand, as far as MAIL says (RFC 8689 2). */
function routeOf(route: Route, { requiresTls }: MailTransaction, { ports: { router } }: Desk): Route {
  return requiresTls ? router.withTls(route, 'required') : route;
}

/** Of mail whose header leads it to other queues than RCPT has asked. A gateway that stops takes it yet. */
export function admissionOfAll({ groups }: MailTransaction, desk: Desk): Refusal | undefined {
  for (const { route } of groups) {
    const refusal = admissionRefusal(desk, route);
    if (refusal !== undefined && refusal !== replies.SHUTTING_DOWN) return refusal;
  }
  return undefined;
}

/** By a rule of an operator. The bare postmaster is judged by where that leads (RFC 5321 4.5.1). */
function isRefusedTo({ address, domain }: Destination, { ports: { reception } }: Desk): boolean {
  return domain !== '' && reception.refusesTo(address, domain);
}

function admissionRefusal(desk: Desk, route: Route): Refusal | undefined {
  const admission: AdmissionVerdict = desk.ports.reception.admit(route);
  switch (admission) {
    case '':
      return undefined;
    case 'operator':
      return replies.NOT_TAKEN_NOW;
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
    case 'rescued':
      return replies.RESCUED;
    case 'draining':
      return replies.SHUTTING_DOWN;
  }
}
