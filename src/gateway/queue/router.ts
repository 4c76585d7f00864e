/**
 * The routing table: which queue, and which next hop, mail to a domain goes to. Without DNS,
 * so that the same domain always has the same queue. Longest match wins: the domain itself, then "*.parent"
 * for each parent, then "*". Of several routes for one of these, the first whose conditions (`when`) all hold
 * of the mail, else the one without any.
 *
 *   queues of a route   one, named as the route                       default
 *                       lanes: N   N, by a hash of the domain, or of  default#3
 *                                  the sender (lanes_by: sender)
 *                       queues: domain   one a destination domain     default/example.com
 *   beside each         one for mail that must have TLS all the way   default/example.com!tls
 *                       one for mail of which TLS is not asked        default/example.com!any   (RFC 8689)
 *
 * Where that of a domain is too long for a label (label.ts), with a mark behind it, there is no way.
 *
 * A Route is one queue's; it is made when it is asked for first. Domains are chosen by whoever sends, so a
 * bounded number of Routes is kept: one that was let go is made anew, and meets its queue by its label. So
 * two Routes of one queue may be about: whoever compares them, compares labels.
 *
 * With other routes (renew) a Route of a name that stays says what they say, whoever holds it: so mail that
 * waits goes the new way. One of a name that is gone stays as it is, for mail that was being taken then; if
 * the name comes back, it says what that says.
 */
import { invariant } from '../../base/invariant.js';
import { QUEUE_NAME_CHARACTERS_MAX, labelOf } from './label.js';
import { NEED_MARKS } from './next-hop.js';
import { Wildcards } from '../../base/wildcards.js';
import type {
  MailOrigin, NextHop, NextHopTls, Ordering, QueueClass, Route, Router, TlsNeed, Way,
} from '../mail-types.js';

/** Patterns (base/wildcards.ts), one of each list that is there must match. */
export interface RouteConditions {
  /** Of the reverse-path; "<>" is the null one. */
  readonly senders?: readonly string[] | undefined;
  readonly recipients?: readonly string[] | undefined;
  /** Of "address:port" that the mail came in by. */
  readonly listeners?: readonly string[] | undefined;
}

/** One configured route. */
export interface RouteOptions {
  /** Lower-case domains, "*.example.com" for all below a domain, "*" for the rest. */
  readonly domains: readonly string[];
  /** Undefined: for all mail to them. */
  readonly when?: RouteConditions | undefined;
  /** Name of the queue, or the beginning of the names of its queues. */
  readonly name: string;
  /** A queue for each destination domain. */
  readonly perDomain?: boolean;
  /** Queues by a hash; 1: one. */
  readonly lanes?: number;
  /** What is hashed: the destination domain, or the reverse-path, so that a hot domain has several, too. */
  readonly lanesBy?: 'domain' | 'sender';
  readonly nextHop: NextHop;
  readonly ordering: Ordering;
  readonly concurrency: number;
  readonly lengthMax: number;
  /** Each recipient gets a reverse-path of its own. */
  readonly verp?: VerpOptions | undefined;
}

/** Variable reverse-paths of a route (base/return-addresses.ts). */
export interface VerpOptions {
  /** Lower-case A-labels. */
  readonly domain: string;
  readonly prefix: string;
  /** The first signs; all are known. */
  readonly secrets: readonly string[];
  readonly validMs: number;
  /** What becomes of reports that come back, when they are counted. */
  readonly returned: 'forward' | 'discard';
}

export interface RenewableRouter extends Router {
  /**
   * Why these routes can't be put in force, '' when they can. `isIncomplete`: of mail that waits not all is
   * known. What is to stay of a route that is there is said in config/changes.ts.
   */
  whyNot(routes: readonly RouteOptions[], isIncomplete: boolean): string;
  /** Other routes from now on, for which there is no such reason. */
  renew(routes: readonly RouteOptions[]): void;
}

/** Between the name of a route and the domain of one of its queues, or the number of a lane. */
const DOMAIN_MARK = '/';
const LANE_MARK = '#';
/** Of NEED_MARKS, each. */
const NEED_CHARACTERS = 4;
/** Names of routes: the number of a lane and the mark of a need fit behind them. */
export const ROUTE_NAME_CHARACTERS_MAX = 200;
/** Of those with a queue for each domain: no domain that is in use is as long as what is left. */
export const DOMAINS_NAME_CHARACTERS_MAX = 64;
/** A domain of no more characters has a name for its queue, whatever its route is called. */
export const DOMAIN_CHARACTERS_SURE
  = QUEUE_NAME_CHARACTERS_MAX - DOMAINS_NAME_CHARACTERS_MAX - DOMAIN_MARK.length - NEED_CHARACTERS;
const LOOPBACK = /^(127\.[0-9.]+|::1|localhost)$/;
/** Routes of single queues that are kept of each route: of the queues that a gateway may have, and some. */
const KEPT_MAX = 100_000;
/** Names that are gone, kept while the process runs: some hundred bytes each. */
const GONE_MAX = 4096;

/** What the null reverse-path is called in patterns. */
const NULL_PATH = '<>';

interface Known {
  /** Of the name, now or when it went. Its Routes ask here. */
  options: RouteOptions;
  conditions: Conditions | undefined;
  /** By name of the queue and class. */
  readonly routes: LastRoutes;
  /** With one queue: asked with every recipient. */
  readonly single: Map<QueueClass, Route>;
}

/**
 * The half of KEPT_MAX that was asked for last is kept, and as many before it at most. To let go the one that
 * is the oldest of a Map, each time, would cost a walk over the gaps that the others left.
 */
class LastRoutes {
  #last = new Map<string, Route>();
  #before = new Map<string, Route>();

  get(key: string): Route | undefined {
    const found = this.#last.get(key);
    if (found !== undefined) return found;
    const older = this.#before.get(key);
    if (older !== undefined) this.set(key, older);
    return older;
  }

  set(key: string, route: Route): void {
    if (this.#last.size >= KEPT_MAX / 2) {
      this.#before = this.#last;
      this.#last = new Map();
    }
    this.#last.set(key, route);
  }

  clear(): void {
    this.#last.clear();
    this.#before.clear();
  }
}

class Conditions {
  readonly #senders: Wildcards | undefined;
  readonly #recipients: Wildcards | undefined;
  readonly #listeners: Wildcards | undefined;

  constructor({ senders, recipients, listeners }: RouteConditions) {
    this.#senders = senders && new Wildcards(senders);
    this.#recipients = recipients && new Wildcards(recipients);
    this.#listeners = listeners && new Wildcards(listeners);
  }

  hold(address: string, { reversePath, listener }: MailOrigin): boolean {
    if (this.#senders?.matches(reversePath === '' ? NULL_PATH : reversePath) === false) return false;
    return this.#recipients?.matches(address) !== false && this.#listeners?.matches(listener) !== false;
  }
}

class RoutingTable implements RenewableRouter {
  /** Those with conditions first, in the order of the configuration. */
  #byDomain = new Map<string, Known[]>();
  #byName = new Map<string, Known>();
  /** Names that were in force and are not now: a transaction or a queue may have Routes of theirs. */
  readonly #gone = new Map<string, Known>();
  /** Also of those that are not kept, or whose name is gone. */
  readonly #madeBy = new WeakMap<Route, Known>();

  constructor(routes: readonly RouteOptions[]) {
    this.renew(routes);
  }

  whyNot(routes: readonly RouteOptions[], isIncomplete: boolean): string {
    const names = new Set(routes.map(({ name }) => name));
    const leaving = [...this.#byName.keys()].filter((name) => !names.has(name));
    const [first] = leaving;
    if (first !== undefined && isIncomplete) {
      return `route ${first} is gone from this file, and queues that are still coming back from the stores `
        + 'may have mail for it: ask again when all are here (twinpost status)';
    }
    const back = routes.filter(({ name }) => this.#gone.has(name));
    const other = back.find((options) => !hasSameQueues(options, this.#gone.get(options.name)?.options));
    if (other !== undefined) {
      return `route ${other.name} was in force since the start, with another order, queues or lanes, or `
        + 'not as now by mx or by hosts: that needs a restart, or another name';
    }
    if (this.#gone.size - back.length + leaving.length <= GONE_MAX) return '';
    return `more than ${String(GONE_MAX)} names of routes are gone since the start: that needs a restart`;
  }

  renew(routes: readonly RouteOptions[]): void {
    for (const [name, known] of this.#byName) this.#gone.set(name, known);
    this.#byName = new Map();
    this.#byDomain = new Map();
    for (const options of routes) {
      const known = this.#gone.get(options.name)
        ?? { options, conditions: undefined, routes: new LastRoutes(), single: new Map() };
      this.#gone.delete(options.name);
      known.options = options;
      known.conditions = options.when && new Conditions(options.when);
      this.#byName.set(options.name, known);
      for (const domain of options.domains) this.#add(domain, known);
    }
    // Whoever has one of them keeps it; others of the same label meet its queue.
    for (const { routes: kept } of this.#gone.values()) kept.clear();
  }

  #add(domain: string, known: Known): void {
    const others = this.#byDomain.get(domain) ?? [];
    const last = others[others.length - 1];
    // The one without conditions stays the last.
    if (last !== undefined && last.conditions === undefined) others.splice(-1, 0, known);
    else others.push(known);
    this.#byDomain.set(domain, others);
  }

  route(domain: string, queueClass: QueueClass, address: string, origin: MailOrigin): Route | undefined {
    const found = this.#matching(domain, address, origin);
    return found && this.#laneOf(found, domain, queueClass, origin.reversePath);
  }

  isTooLong(domain: string, address: string, origin: MailOrigin): boolean {
    if (domain.length <= DOMAIN_CHARACTERS_SURE) return false;
    const found = this.#matching(domain, address, origin);
    return found !== undefined && this.#laneOf(found, domain, 'mail', origin.reversePath) === undefined;
  }

  #matching(domain: string, address: string, origin: MailOrigin): Known | undefined {
    let found = this.#at(domain, address, origin);
    for (let dot = domain.indexOf('.'); found === undefined && dot !== -1;) {
      found = this.#at(`*${domain.slice(dot)}`, address, origin);
      dot = domain.indexOf('.', dot + 1);
    }
    return found ?? this.#at('*', address, origin);
  }

  nameOf(route: Route): string {
    return this.#madeBy.get(route)?.options.name ?? '';
  }

  routeNamed(
    name: string, domain: string, queueClass: QueueClass, reversePath: string,
  ): Route | undefined {
    const known = this.#byName.get(name);
    return known && this.#laneOf(known, domain, queueClass, reversePath);
  }

  #at(domain: string, address: string, origin: MailOrigin): Known | undefined {
    const all = this.#byDomain.get(domain);
    if (all === undefined) return undefined;
    for (const known of all) if (known.conditions?.hold(address, origin) !== false) return known;
    return undefined;
  }

  /** By the name of the route in it: its lanes or domains of now are of no account for mail that is there. */
  routeOfQueue(queueName: string, queueClass: QueueClass): Route | undefined {
    const whole = this.#byName.get(queueName);
    if (whole !== undefined) return this.#single(whole, queueClass);
    const known = this.#knownOf(plainName(queueName));
    return known === undefined ? undefined : this.#make(known, queueName, queueClass);
  }

  withTls(route: Route, need: TlsNeed): Route {
    const { queueName, queueClass } = route;
    const known = this.#madeBy.get(route);
    invariant(known !== undefined, 'a route that was found here is one of the table');
    return this.#make(known, plainName(queueName) + NEED_MARKS[need], queueClass);
  }

  domainOf(route: Route): string {
    const name = this.#madeBy.get(route)?.options.name;
    return name === undefined ? '' : domainIn(route.queueName, name);
  }

  #knownOf(plain: string): Known | undefined {
    // Neither a domain nor the number of a lane has either mark.
    const end = Math.max(plain.lastIndexOf(DOMAIN_MARK), plain.lastIndexOf(LANE_MARK));
    return this.#byName.get(plain) ?? (end === -1 ? undefined : this.#byName.get(plain.slice(0, end)));
  }

  mailRoutes(): readonly Route[] {
    return [...this.#byName.values()].map((known) => this.#single(known, 'mail'));
  }

  waysTo(pattern: string): readonly Way[] {
    const like = new Wildcards([pattern]);
    const tail = pattern.slice(pattern.lastIndexOf('*') + 1);
    const isOne = tail === pattern;
    const found = new Set<Known>();
    for (const domain of [...this.#byDomain.keys()].sort(byLength)) {
      const isExact = !domain.startsWith('*');
      const below = domain.slice(1);
      const hasAll = isExact ? domain === pattern : tail.endsWith(below);
      const hasSome = hasAll || (isExact ? like.matches(domain) : !isOne && below.endsWith(tail));
      const routes = hasSome ? this.#byDomain.get(domain) ?? [] : [];
      for (const known of routes) found.add(known);
      if (hasAll && routes.some(({ conditions }) => conditions === undefined)) break;
    }
    return [...found].flatMap((known) => this.#wayBy(known, pattern, isOne) ?? []);
  }

  #wayBy(known: Known, pattern: string, isOne: boolean): Way | undefined {
    const { name, perDomain: isOwn = false, lanes = 1, lanesBy } = known.options;
    const mark = isOwn ? DOMAIN_MARK : LANE_MARK;
    const isSingle = !isOwn && lanes === 1;
    const isOneLane = isOne && (isOwn || isSingle || lanesBy !== 'sender');
    const queueName = isOneLane ? this.#laneOf(known, pattern, 'mail', '')?.queueName
      : isSingle ? name : `${name}${mark}*`;
    return queueName === undefined ? undefined : { routeName: name, queueName, isOwn };
  }

  #laneOf(
    known: Known, domain: string, queueClass: QueueClass, reversePath: string,
  ): Route | undefined {
    const { name, perDomain = false, lanes = 1, lanesBy } = known.options;
    if (!perDomain && lanes === 1) return this.#single(known, queueClass);
    if (perDomain) {
      const queueName = `${name}${DOMAIN_MARK}${domain}`;
      const isTooLong = queueName.length + NEED_CHARACTERS > QUEUE_NAME_CHARACTERS_MAX;
      return isTooLong ? undefined : this.#make(known, queueName, queueClass);
    }
    // Reports have no sender: they are spread by where they go.
    const hashed = lanesBy === 'sender' && reversePath !== '' ? reversePath.toLowerCase() : domain;
    return this.#make(known, `${name}${LANE_MARK}${String((hashOf(hashed) % lanes) + 1)}`, queueClass);
  }

  #single(known: Known, queueClass: QueueClass): Route {
    const found = known.single.get(queueClass);
    if (found !== undefined) return found;
    const made = this.#routeOf(known, known.options.name, queueClass);
    known.single.set(queueClass, made);
    return made;
  }

  #make(known: Known, queueName: string, queueClass: QueueClass): Route {
    const key = `${queueClass}/${queueName}`;
    const found = known.routes.get(key);
    if (found !== undefined) return found;
    const made = this.#routeOf(known, queueName, queueClass);
    known.routes.set(key, made);
    return made;
  }

  #routeOf(known: Known, queueName: string, queueClass: QueueClass): Route {
    const route = new KnownRoute(known, queueName, queueClass);
    this.#madeBy.set(route, known);
    return route;
  }
}

/** Says what the options of its name say, from the moment that they are other ones. */
class KnownRoute implements Route {
  readonly queueName: string;
  readonly queueClass: QueueClass;
  readonly label: string;
  readonly ordering: Ordering;
  readonly #known: Known;
  /** What the next hop was made of. */
  #options: RouteOptions;
  #nextHop: NextHop;

  constructor(known: Known, queueName: string, queueClass: QueueClass) {
    const { options } = known;
    this.queueName = queueName;
    this.queueClass = queueClass;
    this.label = labelOf({ queueClass, name: queueName });
    this.ordering = options.ordering;
    this.#known = known;
    this.#options = options;
    this.#nextHop = nextHopOf(options, queueName);
  }

  get nextHop(): NextHop {
    const { options } = this.#known;
    if (options !== this.#options) {
      this.#options = options;
      this.#nextHop = nextHopOf(options, this.queueName);
    }
    return this.#nextHop;
  }

  get concurrency(): number {
    return this.ordering === 'strict' ? 1 : this.#known.options.concurrency;
  }

  get lengthMax(): number {
    return this.#known.options.lengthMax;
  }

  get verp(): string | undefined {
    const { name, verp } = this.#known.options;
    return verp === undefined ? undefined : name;
  }
}

/** As mail finds them: domains, then what is below the longest one. */
function byLength(one: string, other: string): number {
  return Number(one.startsWith('*')) - Number(other.startsWith('*')) || other.length - one.length;
}

/** Mail that was put into a queue of the one is where the other looks for it, and as it takes it. */
function hasSameQueues(one: RouteOptions, other: RouteOptions | undefined): boolean {
  return one.ordering === other?.ordering
    && (one.perDomain ?? false) === (other.perDomain ?? false) && (one.lanes ?? 1) === (other.lanes ?? 1)
    && (one.lanesBy ?? 'domain') === (other.lanesBy ?? 'domain')
    && (one.nextHop.isByMx ?? false) === (other.nextHop.isByMx ?? false);
}

/** By MX, that of the queue's own domain; of a queue that is not one domain's, none. */
function nextHopOf({ name, nextHop }: RouteOptions, queueName: string): NextHop {
  const hop = nextHop.isByMx !== true ? nextHop : { ...nextHop, host: domainIn(queueName, name) };
  if (plainName(queueName) === queueName) return hop;
  if (queueName.endsWith(NEED_MARKS.optional)) return { ...hop, tlsNeed: 'optional' };
  // Into mailboxes is no relaying (RFC 8689 4.4): not in clear, but on this machine.
  const isDelivery = hop.protocol === 'lmtp';
  // A single one elsewhere has all judged.
  const isHere = [hop, ...(hop.others ?? [])].every(({ host }) => LOOPBACK.test(host));
  if (isDelivery && isHere) return { ...hop, tlsNeed: 'required' };
  const { isByMx, host, others = [] } = hop;
  const serverName = isByMx === true || others.length > 0 ? '' : host;
  const raised = others.map((other) => (other.terms === undefined ? other
    : { ...other, terms: { ...other.terms, tls: requiredTls(other.terms.tls, '', !isDelivery) } }));
  return {
    ...hop, tlsNeed: 'required', tls: requiredTls(hop.tls, serverName, !isDelivery),
    ...(others.length === 0 ? {} : { others: raised }),
  };
}

function requiredTls(
  tls: NextHopTls | undefined, serverName: string, isRequired: boolean,
): NextHopTls {
  const { isFirst, terms } = tls ?? { isFirst: false, terms: { serverName, caFile: undefined } };
  const why = 'so asks its sender (REQUIRETLS)';
  return { level: 'verify', isFirst, isRequired, why, terms: { ...terms, mustVerify: true } };
}

/** Whatever queues its route has now, for one that was left has mail still; '' when it is not a domain's. */
function domainIn(queueName: string, routeName: string): string {
  const mark = `${routeName}${DOMAIN_MARK}`;
  return queueName.startsWith(mark) ? plainName(queueName).slice(mark.length) : '';
}

function plainName(queueName: string): string {
  const mark = Object.values(NEED_MARKS).find((each) => queueName.endsWith(each)) ?? '';
  return queueName.slice(0, queueName.length - mark.length);
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/**
 * A router over the configured routes. The configuration has no two with one name, nor with one domain and
 * no conditions.
 */
export function createRouter(routes: readonly RouteOptions[]): RenewableRouter {
  return new RoutingTable(routes);
}
