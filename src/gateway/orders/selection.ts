/**
 * Which messages an operator's selector means (admin-api/queue-orders.ts): a queue is judged once, an entry
 * by its columns, and only what is left by its envelope and note. Of a message the recipients who are meant
 * are those whom nothing is decided about yet. Pure.
 */
import ipaddr from 'ipaddr.js';
import type { Selector } from '../../admin-api/queue-orders.js';
import { Wildcards } from '../../base/wildcards.js';
import { parseMessageId } from '../../base/text-id.js';
import type { ToAscii } from '../../platform/ports.js';
import type { EntryTable } from '../queue/entry-table.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { LastResult, Note } from '../queue/note.js';
import { OWED_FAILURE, TO_TRY } from '../queue/note.js';
import { AddressPattern, routedDomain } from '../../smtp/address-pattern.js';
import type { Envelope, Route, Router } from '../mail-types.js';

const NOTHING_SAID: ReadonlyMap<number, LastResult> = new Map();

type Network = readonly [address: ipaddr.IPv4 | ipaddr.IPv6, bits: number];

/** Which route of the configuration a queue is of. */
export type RouteNames = Pick<Router, 'nameOf' | 'domainOf'>;

/** All of them, and the ways of mail. */
export type RoutesByName = RouteNames & Pick<Router, 'mailRoutes' | 'waysTo'>;

/** What the domain of a suspension is judged by. */
export interface DomainPorts {
  readonly names: RoutesByName;
  readonly toAscii: ToAscii;
}

export class Selection {
  readonly #names: RouteNames;
  readonly #ids: ReadonlySet<number> | undefined;
  readonly #queue: Wildcards | undefined;
  readonly #queueClass: string | undefined;
  readonly #route: Wildcards | undefined;
  readonly #site: Wildcards | undefined;
  readonly #domain: AddressPattern | undefined;
  readonly #recipient: AddressPattern | undefined;
  readonly #sender: Wildcards | undefined;
  readonly #client: Network | undefined;
  readonly #reply: string | undefined;
  readonly #olderThanSeconds: number;
  readonly #newerThanSeconds: number;
  readonly #largerThanBytes: number;

  /** `given` is sound (whyNoSelector). */
  constructor(given: Selector, names: RouteNames, toAscii: ToAscii) {
    this.#names = names;
    const { ids, queue, queue_class, route, site, domain, recipient, sender, client, reply } = given;
    this.#ids = ids === undefined ? undefined : new Set(ids.map((id) => parseMessageId(id) ?? NaN));
    this.#queue = wildcards(queue);
    this.#queueClass = queue_class;
    this.#route = wildcards(route);
    this.#site = wildcards(site);
    this.#domain = domain === undefined ? undefined : new AddressPattern(domain, toAscii);
    this.#recipient = recipient === undefined ? undefined : new AddressPattern(recipient, toAscii);
    this.#sender = sender === undefined ? undefined : new Wildcards([sender === '<>' ? '' : sender]);
    this.#client = client === undefined ? undefined : networkOf(client);
    this.#reply = reply;
    this.#olderThanSeconds = given.older_than_seconds ?? 0;
    this.#newerThanSeconds = given.newer_than_seconds ?? Infinity;
    this.#largerThanBytes = given.larger_than_bytes ?? -1;
  }

  /** Ids are named, and nothing that only an envelope or a note tells. */
  get isByIdAlone(): boolean {
    return this.#ids !== undefined && !this.#isOfEnvelopes;
  }

  get #isOfEnvelopes(): boolean {
    const ofEnvelope = [this.#domain, this.#recipient, this.#sender, this.#client, this.#reply];
    return ofEnvelope.some((each) => each !== undefined);
  }

  concernsQueue({ name, route, mxHosts }: Pick<MailQueue, 'name' | 'route' | 'mxHosts'>): boolean {
    if (this.#queueClass !== undefined && route.queueClass !== this.#queueClass) return false;
    if (this.#queue?.matches(name) === false) return false;
    if (this.#route?.matches(this.#names.nameOf(route)) === false) return false;
    return this.#site === undefined || isAtSite(this.#site, route, mxHosts);
  }

  /** All mail of the queue is to a domain that is meant, where one is said. */
  concernsDomainOf(route: Route): boolean {
    if (this.#domain === undefined) return true;
    const domain = this.#names.domainOf(route);
    return domain !== '' && this.#isTo(domain);
  }

  /** It says nothing that a queue alone does not tell. */
  get isOfQueues(): boolean {
    return this.#ids === undefined && !this.#isOfEnvelopes && this.#olderThanSeconds === 0
      && this.#newerThanSeconds === Infinity && this.#largerThanBytes < 0;
  }

  /** Mail to this address, or domain, may be meant. */
  mayMean(to: string): boolean {
    return to.includes('@') ? this.means(to) : this.#isTo(to);
  }

  /** This recipient. */
  means(address: string): boolean {
    if (this.#recipient?.matches(address) === false) return false;
    return this.#isTo(address.slice(address.lastIndexOf('@') + 1));
  }

  #isTo(domain: string): boolean {
    return this.#domain?.matches(domain) ?? true;
  }

  /** Judged by what is known of an entry without its envelope. */
  concernsRow(table: EntryTable, row: number, nowSeconds: number): boolean {
    if (this.#ids !== undefined && !this.#ids.has(table.messageId(row))) return false;
    if (table.bodyBytes.get(row) <= this.#largerThanBytes) return false;
    const ageSeconds = nowSeconds - table.arrivalSeconds.get(row);
    // Where no age is said, a clock that was set back hides nothing.
    if (this.#olderThanSeconds > 0 && ageSeconds < this.#olderThanSeconds) return false;
    return ageSeconds < this.#newerThanSeconds;
  }

  /** `client`: its address. */
  isFrom(reversePath: string, client: string): boolean {
    if (this.#sender !== undefined && !this.#sender.matches(reversePath)) return false;
    return this.#client === undefined || isWithin(client, this.#client);
  }

  /** Indexes of the recipients who are meant; none: the message is not. */
  recipientsOf(envelope: Envelope, note: Note): readonly number[] {
    if (!this.isFrom(envelope.reversePath, envelope.client)) return [];
    const said = this.#reply === undefined
      ? NOTHING_SAID : new Map(note.results.map((last) => [last.recipient, last]));
    const meant: number[] = [];
    envelope.recipients.forEach(({ address }, index) => {
      const state = note.states[index] ?? TO_TRY;
      if (state !== TO_TRY && state !== OWED_FAILURE) return;
      if (!this.means(address)) return;
      if (this.#reply !== undefined && !hasSaid(said.get(index), this.#reply)) return;
      meant.push(index);
    });
    return meant;
  }
}

/** Routes, or queues, that are told of; of the others how many there are. */
const TOLD_MAX = 20;

/** A selector names no route that is configured here, nor that one of the queues is of; '' when it does. */
export function whyNoRoute(
  { route }: Selector, names: RouteNames & Pick<Router, 'mailRoutes'>,
  queues: Iterable<Pick<MailQueue, 'route'>> = [],
): string {
  if (route === undefined) return '';
  const like = new Wildcards([route]);
  const known = names.mailRoutes().map((one) => names.nameOf(one));
  if (known.some((name) => like.matches(name))) return '';
  // One that is gone from the configuration may have mail.
  for (const queue of queues) if (like.matches(names.nameOf(queue.route))) return '';
  const more = known.length > TOLD_MAX ? ` and ${String(known.length - TOLD_MAX)} more` : '';
  return `there is no route '${route}' here; there are: ${known.slice(0, TOLD_MAX).join(', ')}${more}`;
}

/**
 * Queues that have, or may get, mail to the domain of a suspension beside that of others: they are not meant,
 * for one is suspended as a whole, or not at all. `why`: no other queue may, so that it would do nothing.
 */
export function sharedQueues(
  { domain, route }: Selector, { names, toAscii }: DomainPorts, hasOwnNow: () => boolean,
): { readonly why: string; readonly shared: string } {
  if (domain === undefined) return { why: '', shared: '' };
  const like = new Wildcards([route ?? '*']);
  const ways = names.waysTo(routedDomain(domain, toAscii)).filter(({ routeName }) => like.matches(routeName));
  const shared = ways.filter(({ isOwn }) => !isOwn).map(({ queueName }) => queueName);
  const said = domain.includes('*') ? `'${domain}'` : domain;
  const isDone = ways.length > shared.length || hasOwnNow();
  return isDone ? { why: '', shared: sharedText(said, 'also ', shared) }
    : { why: sharedText(said, '', shared) || `no route here takes mail to ${said}`, shared: '' };
}

function sharedText(domain: string, also: string, queues: readonly string[]): string {
  const [first] = queues;
  if (first === undefined) return '';
  const isOne = queues.length === 1;
  const more = queues.length > TOLD_MAX ? ` and ${String(queues.length - TOLD_MAX)} more` : '';
  const names = queues.slice(0, TOLD_MAX).map((name) => `'${name}'`).join(', ');
  return `mail to ${domain} ${also}waits in the queue${isOne ? '' : 's'} ${names}${more}, which `
    + `${isOne ? 'is' : 'are'} not for it alone: `
    + `twinpost queue suspend ${isOne ? `${names} stops all of that` : 'NAME stops all of one'}, `
    + `twinpost queue hold --domain ${domain} --until-cancelled keeps back its mail alone`;
}

/** As a standing order means it: reports of ours are meant by none that does not name their class. */
export function ofOneClass(selector: Selector): Selector {
  const { everything: _all, ...others } = selector;
  return { queue_class: 'mail', ...others };
}

/** One of the hosts that take its mail is named: so all queues are meant that share these hosts. */
function isAtSite(site: Wildcards, { nextHop }: Route, mxHosts: readonly string[]): boolean {
  const { host, others = [], isByMx = false } = nextHop;
  if (!isByMx && site.matches(host)) return true;
  return (isByMx && mxHosts.some((one) => site.matches(one))) || others.some((one) => site.matches(one.host));
}

function wildcards(pattern: string | undefined): Wildcards | undefined {
  return pattern === undefined ? undefined : new Wildcards([pattern]);
}

/** A reply code, or a status and those below it. */
function hasSaid(last: LastResult | undefined, reply: string): boolean {
  if (last === undefined) return false;
  if (reply.length === 3 && !reply.includes('.')) return String(last.code) === reply;
  return last.enhanced === reply || last.enhanced.startsWith(`${reply}.`);
}

function networkOf(text: string): Network | undefined {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  if (!ipaddr.isValid(text)) return undefined;
  const address = ipaddr.process(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

function isWithin(client: string, network: Network): boolean {
  if (!ipaddr.isValid(client)) return false;
  const address = ipaddr.process(client);
  return address.kind() === network[0].kind() && address.match([network[0], network[1]] as never);
}
