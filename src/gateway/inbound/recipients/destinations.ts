/**
 * Where a recipient goes: by the table for domains that we relay for, where there is one, else where its
 * domain leads. Aliases are followed; what they lead to in a relay domain must be in the table too, but for
 * postmaster and abuse (policy/role-addresses.ts).
 *
 *   RCPT ─► policy said yes ─► destinations ─┬─► not in the table        550 5.1.1
 *                                            ├─► no route                550 5.4.4
 *                                            ├─► its queue has no name   550 5.1.2
 *                                            ├─► table can't be read     451 4.4.3
 *                                            ├─► somebody must be asked  then it is tried again
 *                                            └─► one or more: (route, address)
 */
import type { ToAscii } from '../../../platform/ports.js';
import type { MailOrigin, QueueClass, Route, Router } from '../../mail-types.js';
import { isAscii, parsePath } from '../../../smtp/address.js';
import type { Path } from '../../../smtp/address.js';
import type { RelayPolicy } from '../policy/relay-policy.js';
import type { Destination, RoleAddresses } from '../policy/role-addresses.js';
import * as replies from '../session/replies.js';
import type { Refusal } from '../session/replies.js';
import { NOT_ASKED, domainKey, tableKey } from './listing.js';
import type { Listing, RecipientTable } from './listing.js';

/** An alias of an alias of …: more is a circle. */
const DEPTH_MAX = 10;
/** What no line of a client could bring: whoever is asked by HTTP may say anything. */
const UNFIT = /[\x00-\x1f\x7f-\x9f\p{Surrogate}]/u;
/** Look-ups for one recipient, and two for each that it may lead to: lists of lists that share members. */
const LOOKUPS_MAX = 1_000;

export interface RoutedRecipient {
  readonly route: Route;
  readonly address: string;
  /** It is outside our domains. */
  readonly hasLeft: boolean;
  /** An alias of others too, which names itself. */
  readonly isOwnCopy?: boolean;
  /** Of the mailbox: one message comes there once. */
  readonly key: string;
}

export interface DestinationPorts {
  readonly router: Pick<Router, 'route' | 'routeNamed' | 'isTooLong'>;
  readonly toAscii: ToAscii;
  readonly recipients: RecipientTable | undefined;
}

/** By whose rules, and who counts the work. */
export interface DestinationDesk {
  readonly policy: RelayPolicy;
  readonly roles: Pick<RoleAddresses, 'destinationOf'>;
  readonly ports: DestinationPorts;
  /** Look-ups in this turn of the loop: whoever has many makes others wait. */
  lookups: number;
}

/** Keys of a table that somebody must be asked for first. */
export interface Unasked {
  readonly unasked: readonly string[];
}

/** `max`: so many at most. */
export function destinationsOf(
  wanted: Destination, desk: DestinationDesk, origin: MailOrigin, max: number,
  queueClass: QueueClass = 'mail',
): readonly RoutedRecipient[] | Unasked | Refusal {
  const { policy, ports: { recipients } } = desk;
  const isListed = recipients !== undefined && policy.isRelayDomain(wanted.domain);
  if (!isListed) return byDomain(wanted, desk, origin, queueClass);
  const expansion = new Expansion(recipients, desk, origin, max, queueClass);
  try {
    return expansion.of(wanted);
  } catch {
    return replies.TABLE_UNREADABLE;
  } finally {
    desk.lookups += expansion.lookups;
  }
}

/** Where the domain leads, whatever a table says. */
export function byDomain(
  { address, domain }: Destination, { policy, ports: { router } }: DestinationDesk, origin: MailOrigin,
  queueClass: QueueClass = 'mail',
): readonly RoutedRecipient[] | Refusal {
  const route = router.route(domain, queueClass, address, origin);
  if (route === undefined) return noRoute(router, { address, domain }, origin);
  const hasLeft = !policy.isRelayDomain(domain);
  return [{ route, address, hasLeft, key: mailboxKey(address, domain) }];
}

/** There is none for mail to it, or a queue of its route would have too long a name. */
export function noRoute(
  router: Pick<Router, 'isTooLong'>, { address, domain }: Destination, origin: MailOrigin,
): Refusal {
  return router.isTooLong(domain, address, origin) ? replies.DOMAIN_TOO_LONG : replies.NO_ROUTE;
}

/** Local parts stay as they are written (RFC 5321 2.4), of domains upper and lower case are the same. */
export function mailboxKey(address: string, domain: string): string {
  if (address.endsWith(domain)) return address;
  return `${address.slice(0, address.lastIndexOf('@') + 1)}${domain}`;
}

class Expansion {
  readonly #found = new Map<string, RoutedRecipient>();
  /** Aliases that were followed: each is, once. */
  readonly #followed = new Set<string>();
  readonly #unasked: string[] = [];
  lookups = 0;
  readonly #table: RecipientTable;
  readonly #policy: RelayPolicy;
  readonly #roles: DestinationDesk['roles'];
  readonly #ports: DestinationPorts;
  readonly #origin: MailOrigin;
  readonly #max: number;
  readonly #queueClass: QueueClass;

  constructor(
    table: RecipientTable, { policy, roles, ports }: DestinationDesk, origin: MailOrigin, max: number,
    queueClass: QueueClass,
  ) {
    this.#origin = origin;
    this.#table = table;
    this.#policy = policy;
    this.#roles = roles;
    this.#ports = ports;
    this.#max = max;
    this.#queueClass = queueClass;
  }

  of(wanted: Destination): readonly RoutedRecipient[] | Unasked | Refusal {
    const refusal = this.#follow(wanted, 0);
    if (refusal !== undefined) return refusal;
    if (this.#unasked.length > 0) return { unasked: this.#unasked };
    // A circle leads to nobody.
    return this.#found.size === 0 ? replies.ALIAS_BROKEN : [...this.#found.values()];
  }

  /** `isRole`: the table need not know it. */
  #follow({ address, domain }: Destination, depth: number, isRole = false): Refusal | undefined {
    const isListed = this.#policy.isRelayDomain(domain);
    if (isListed && ++this.lookups > LOOKUPS_MAX + 2 * this.#max) return replies.ALIAS_BROKEN;
    const listing = isListed ? this.#listingOf(address, domain) : undefined;
    if (listing === NOT_ASKED) {
      this.#unasked.push(tableKey(address, domain));
      return undefined;
    }
    if (isListed && listing === undefined && !isRole) {
      return depth === 0 ? replies.NO_MAILBOX : replies.ALIAS_BROKEN;
    }
    const key = tableKey(address, domain);
    // An alias that names itself keeps a copy; another one that was followed brings nobody new.
    const isOwn = this.#followed.has(key) && depth > 0;
    if (listing !== undefined && listing.to.length > 0 && !isOwn) {
      this.#followed.add(key);
      return this.#followAll(listing.to, key, depth);
    }
    const named = listing?.route ?? '';
    const { router } = this.#ports;
    const route = named === ''
      ? router.route(domain, this.#queueClass, address, this.#origin)
      : router.routeNamed(named, domain, this.#queueClass, this.#origin.reversePath);
    if (route === undefined) {
      if (named === '') return noRoute(router, { address, domain }, this.#origin);
      const isMissing = router.routeNamed(named, '', this.#queueClass, '') === undefined;
      return isMissing ? replies.ROUTE_MISSING : replies.DOMAIN_TOO_LONG;
    }
    const own = isOwn && (listing?.to.length ?? 0) > 1 ? { isOwnCopy: true } : {};
    if (!this.#found.has(key)) this.#found.set(key, { route, address, hasLeft: !isListed, key, ...own });
    return this.#found.size > this.#max ? replies.TOO_MANY_RECIPIENTS : undefined;
  }

  /** A report goes to the first: many are made in a turn, and a list is work. */
  get #isEnough(): boolean {
    return this.#queueClass === 'bounce' && (this.#found.size > 0 || this.#unasked.length > 0);
  }

  #followAll(targets: readonly string[], alias: string, depth: number): Refusal | undefined {
    if (depth >= DEPTH_MAX) return replies.ALIAS_BROKEN;
    for (const target of targets) {
      if (this.#isEnough) return undefined;
      const path = UNFIT.test(target) ? '' : parsePath(`<${target}>`, 0, this.#ports.toAscii);
      const isAddress = typeof path !== 'string' && path.domain !== '' && path.end === target.length + 2;
      if (!isAddress) return replies.ALIAS_BROKEN;
      const role = this.#roles.destinationOf(path);
      const to = role ?? withPlainDomain(path);
      const key = tableKey(to.address, to.domain);
      if (key !== alias && this.#followed.has(key)) continue;
      const refusal = this.#follow(to, depth + 1, role !== undefined);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  #listingOf(address: string, domain: string): Listing | undefined | typeof NOT_ASKED {
    return this.#table.find(tableKey(address, domain)) ?? this.#table.find(domainKey(domain));
  }
}

/** With the domain in A-labels where SMTPUTF8 is not needed then: its client may have sent plain ASCII. */
function withPlainDomain({ address, domain, ascii }: Path): Destination {
  const local = ascii ? '' : address.slice(0, address.lastIndexOf('@') + 1);
  return { address: !ascii && isAscii(local) ? `${local}${domain}` : address, domain };
}
