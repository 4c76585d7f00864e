/**
 * The routing table: which queue, and which next hop, mail to a domain goes to. Without DNS,
 * so that the same domain always has the same queue. Longest match wins: the domain itself, then "*.parent"
 * for each parent, then "*". Of several routes for one of these, the first whose conditions (`when`) all hold
 * of the mail, else the one without any.
 *
 *   queues of a route   one, named as the route                       default
 *                       lanes: N   N, by a hash of the domain         default#3
 *                       queues: domain   one a destination domain     default/example.com
 *   beside each         one for mail that must have TLS all the way   default/example.com!tls
 *                       one for mail of which TLS is not asked        default/example.com!any   (RFC 8689)
 *
 * A Route is one queue's; it is made when it is asked for first and compared by identity. Domains are chosen
 * by whoever sends, so a bounded number of Routes is kept: one that was let go is made anew, and meets its
 * queue by its label.
 */
import { invariant } from '../../base/invariant.js';
import { labelOf } from './label.js';
import { Wildcards } from '../../base/wildcards.js';
import type {
  MailOrigin, NextHop, NextHopTls, Ordering, QueueClass, Route, Router, TlsNeed,
} from './types.js';

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
  /** Queues by hash of the destination domain; 1: one. */
  readonly lanes?: number;
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

/** Between the name of a route and the domain of one of its queues, or the number of a lane. */
const DOMAIN_MARK = '/';
const LANE_MARK = '#';
/** Behind the name; no name of a route ends so (config/keys/values.ts). */
const NEED_MARKS: Readonly<Record<TlsNeed, string>> = { required: '!tls', optional: '!any' };
const LOOPBACK = /^(127\.[0-9.]+|::1|localhost)$/;
/** Routes of single queues that are kept of each route: of the queues that a gateway may have, and some. */
const KEPT_MAX = 100_000;

/** What the null reverse-path is called in patterns. */
const NULL_PATH = '<>';

interface Known {
  readonly options: RouteOptions;
  readonly conditions: Conditions | undefined;
  /** By name of the queue and class. */
  readonly routes: Map<string, Route>;
  /** With one queue: asked with every recipient. */
  readonly single: Map<QueueClass, Route>;
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

class RoutingTable implements Router {
  /** Those with conditions first, in the order of the configuration. */
  readonly #byDomain = new Map<string, Known[]>();
  readonly #byName = new Map<string, Known>();

  constructor(routes: readonly RouteOptions[]) {
    for (const options of routes) {
      const conditions = options.when && new Conditions(options.when);
      const known: Known = { options, conditions, routes: new Map(), single: new Map() };
      this.#byName.set(options.name, known);
      for (const domain of options.domains) this.#add(domain, known);
    }
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
    let found = this.#at(domain, address, origin);
    for (let dot = domain.indexOf('.'); found === undefined && dot !== -1;) {
      found = this.#at(`*${domain.slice(dot)}`, address, origin);
      dot = domain.indexOf('.', dot + 1);
    }
    found ??= this.#at('*', address, origin);
    return found && laneOf(found, domain, queueClass);
  }

  routeNamed(name: string, domain: string, queueClass: QueueClass): Route | undefined {
    const known = this.#byName.get(name);
    return known && laneOf(known, domain, queueClass);
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
    if (whole !== undefined) return single(whole, queueClass);
    const known = this.#knownOf(plainName(queueName));
    return known === undefined ? undefined : make(known, queueName, queueClass);
  }

  withTls({ queueName, queueClass }: Route, need: TlsNeed): Route {
    const plain = plainName(queueName);
    const known = this.#knownOf(plain);
    invariant(known !== undefined, 'a route that was found here is one of the table');
    return make(known, plain + NEED_MARKS[need], queueClass);
  }

  #knownOf(plain: string): Known | undefined {
    // Neither a domain nor the number of a lane has either mark.
    const end = Math.max(plain.lastIndexOf(DOMAIN_MARK), plain.lastIndexOf(LANE_MARK));
    return this.#byName.get(plain) ?? (end === -1 ? undefined : this.#byName.get(plain.slice(0, end)));
  }

  mailRoutes(): readonly Route[] {
    return [...this.#byName.values()].map((known) => single(known, 'mail'));
  }
}

function laneOf(known: Known, domain: string, queueClass: QueueClass): Route {
  const { name, perDomain = false, lanes = 1 } = known.options;
  if (!perDomain && lanes === 1) return single(known, queueClass);
  if (perDomain) return make(known, `${name}${DOMAIN_MARK}${domain}`, queueClass);
  return make(known, `${name}${LANE_MARK}${String((hashOf(domain) % lanes) + 1)}`, queueClass);
}

function single(known: Known, queueClass: QueueClass): Route {
  const found = known.single.get(queueClass);
  if (found !== undefined) return found;
  const made = routeOf(known.options, known.options.name, queueClass);
  known.single.set(queueClass, made);
  return made;
}

function make(known: Known, queueName: string, queueClass: QueueClass): Route {
  const key = `${queueClass}/${queueName}`;
  const found = known.routes.get(key);
  if (found !== undefined) return found;
  const made = routeOf(known.options, queueName, queueClass);
  if (known.routes.size >= KEPT_MAX) known.routes.clear();
  known.routes.set(key, made);
  return made;
}

function routeOf(options: RouteOptions, queueName: string, queueClass: QueueClass): Route {
  return Object.freeze({
    queueName,
    queueClass,
    label: labelOf({ queueClass, name: queueName }),
    nextHop: nextHopOf(options, queueName),
    ordering: options.ordering,
    concurrency: options.ordering === 'strict' ? 1 : options.concurrency,
    lengthMax: options.lengthMax,
    ...(options.verp === undefined ? {} : { verp: options.name }),
  });
}

/** By MX, that of the queue's own domain; of a queue that is not one domain's, none. */
function nextHopOf({ name, nextHop }: RouteOptions, queueName: string): NextHop {
  const plain = plainName(queueName);
  const mark = `${name}${DOMAIN_MARK}`;
  const hop = nextHop.isByMx !== true ? nextHop
    : { ...nextHop, host: plain.startsWith(mark) ? plain.slice(mark.length) : '' };
  if (plain === queueName) return hop;
  if (queueName.endsWith(NEED_MARKS.optional)) return { ...hop, tlsNeed: 'optional' };
  // Into mailboxes is no relaying (RFC 8689 4.4): not in clear, but on this machine.
  const isDelivery = hop.protocol === 'lmtp';
  if (isDelivery && LOOPBACK.test(hop.host)) return { ...hop, tlsNeed: 'required' };
  return { ...hop, tlsNeed: 'required', tls: requiredTls(hop, !isDelivery) };
}

function requiredTls({ tls, host, isByMx, others = [] }: NextHop, isRequired: boolean): NextHopTls {
  const serverName = isByMx === true || others.length > 0 ? '' : host;
  const { isFirst, terms } = tls ?? { isFirst: false, terms: { serverName, caFile: undefined } };
  return { level: 'verify', isFirst, isRequired, terms: { ...terms, mustVerify: true } };
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
export function createRouter(routes: readonly RouteOptions[]): Router {
  return new RoutingTable(routes);
}
