/**
 * The standing rules of operators, as this gateway obeys them: which queues are suspended (nothing is started
 * from them), for which no new mail is taken (acceptance.ts), and from and to whom (inbound/commands). They
 * stand in the register (rules/queues/ID) until they are cancelled or their time is over; nothing of them is
 * kept with a message.
 *
 *   register told, or an operator here
 *   (local-rules.ts), time is over ─► look() ─► a flag in each queue; a queue that goes on is woken
 *   a partition is taken over ───► look(), when its holder has read the rules and before anything of it is
 *                                  started, however late the register's watch is (DESIGN, Ownership rule 17)
 *   a queue is made ─────────────► suspends()
 *   the DNS has said which hosts take its mail ─► lookAt(), before anybody connects to them
 *   routes are other ones ───────► renew(), before anything is started by them
 *
 * A pattern names queues of class mail, `*` stands for any run of characters; with a class behind it, as in
 * "example.com/bounce", it names those of that class. By route, site or domain class mail alone is meant, and
 * by domain the queues that are its own. Pure.
 */
import { QUEUE_CLASSES } from '../../admin-api/queue-orders.js';
import type { Selector } from '../../admin-api/queue-orders.js';
import { isStandingVerb, refusedBy, targetText } from '../../admin-api/queue-rules.js';
import { Wildcards } from '../../base/wildcards.js';
import type { Clock, EventLog, ToAscii } from '../../platform/ports.js';
import type { QueueRule } from '../../register/records.js';
import { routedDomain } from '../../smtp/address-pattern.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { QueueClass, Route } from '../mail-types.js';
import type { LocalRules } from './local-rules.js';
import { Selection, ofOneClass } from './selection.js';
import type { RouteNames } from './selection.js';
import { nextEnd, standing } from './standing.js';

/** Rules that may stand; what stands beyond them was written by somebody else, and is not obeyed. */
export const QUEUE_RULES_MAX = 256;

type Rules = ReadonlyMap<string, QueueRule>;
type NamingRule = Pick<QueueRule, 'verb' | 'queue' | 'selector'>;
type SomeQueue = Pick<MailQueue, 'route' | 'mxHosts'>;

/** Of a queue that is not there yet. */
const NO_HOSTS: readonly string[] = [];

/** The queues that one of several rules names: names without `*`, and domains, cost one look-up for all. */
class NamedQueues {
  readonly #names: RouteNames;
  readonly #exact = new Set<string>();
  readonly #patterns = new Map<QueueClass, Wildcards>();
  /** Of rules that say a domain and nothing else. */
  readonly #domains: ReadonlySet<string>;
  readonly #domainPatterns: Wildcards;
  readonly #isByDomain: boolean;
  /** Of the others that have one. */
  readonly #selections: readonly Selection[];
  readonly isNone: boolean;

  constructor(rules: readonly NamingRule[], { names, toAscii }: NamingPorts) {
    const byClass = new Map<QueueClass, string[]>();
    for (const { queue: pattern } of rules) {
      if (pattern === undefined) continue;
      const [name, queueClass] = partsOf(pattern);
      if (!name.includes('*')) this.#exact.add(`${queueClass}/${name.toLowerCase()}`);
      else byClass.set(queueClass, [...(byClass.get(queueClass) ?? []), name]);
    }
    for (const [queueClass, names] of byClass) this.#patterns.set(queueClass, new Wildcards(names));
    const selectors = rules.flatMap((rule) => (refusedBy(rule) === undefined ? rule.selector ?? [] : []))
      .map(({ domain, ...said }): Selector =>
        (domain === undefined ? said : { ...said, domain: routedDomain(domain, toAscii) }));
    const domains = selectors.flatMap((said) => domainAloneOf(said) ?? []);
    this.#names = names;
    this.#domains = new Set(domains.filter((domain) => !domain.includes('*')));
    this.#domainPatterns = new Wildcards(domains.filter((domain) => domain.includes('*')));
    this.#isByDomain = domains.length > 0;
    this.#selections = selectors.filter((said) => domainAloneOf(said) === undefined)
      .map((said) => new Selection(said, names, toAscii));
    this.isNone = rules.every((rule) => refusedBy(rule) !== undefined);
  }

  has({ route, mxHosts }: SomeQueue): boolean {
    if (this.isNone) return false;
    const { queueName: name, queueClass } = route;
    if (this.#exact.size > 0 && this.#exact.has(`${queueClass}/${name.toLowerCase()}`)) return true;
    if (this.#patterns.get(queueClass)?.matches(name) === true) return true;
    if (queueClass !== 'mail') return false;
    if (this.#isByDomain && this.#hasDomain(this.#names.domainOf(route))) return true;
    return this.#selections.some((selection) =>
      selection.concernsQueue({ name, route, mxHosts }) && selection.concernsDomainOf(route));
  }

  #hasDomain(domain: string): boolean {
    return domain !== '' && (this.#domains.has(domain) || this.#domainPatterns.matches(domain));
  }
}

/** A rule that is in force, and what it concerns here. */
export interface RuleInForce {
  readonly id: string;
  readonly rule: QueueRule;
  /** The register does not have it yet. */
  readonly isLocal: boolean;
  readonly queues: number;
  /** In them; of an order over new mail those that it was done to. */
  readonly messages: number;
}

interface NamingPorts {
  readonly names: RouteNames;
  readonly toAscii: ToAscii;
}

export interface QueueRulesPorts extends NamingPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  /** What the register tells, and what is given here. */
  readonly told: Pick<LocalRules, 'queueRules' | 'isLocal'>;
  queues(): Iterable<MailQueue>;
  /** All that are in force: those of them that are orders over new mail are obeyed there. */
  obeyOrders(rules: ReadonlyMap<string, QueueRule>): void;
  caughtBy(id: string): number;
  wake(queue: MailQueue): void;
}

export class QueueRules {
  readonly #ports: QueueRulesPorts;
  /** As the register gave it: the same one says that nothing has changed. */
  #told: Rules | undefined;
  #inForce: Rules = new Map();
  #nextEndWallMs = Infinity;
  readonly #noQueues: NamedQueues;
  #suspended: NamedQueues;
  #refused: NamedQueues;
  /** Whose mail is refused. */
  #refusedSenders: readonly Selection[] = [];
  #refusedRecipients: readonly Selection[] = [];
  /** Asked at each recipient: judged once for each route. */
  #refusedRoutes = new WeakMap<Route, boolean>();

  constructor(ports: QueueRulesPorts) {
    this.#ports = ports;
    this.#noQueues = new NamedQueues([], ports);
    this.#suspended = this.#noQueues;
    this.#refused = this.#noQueues;
  }

  /** Of a queue that is made now. */
  suspends(route: Route): boolean {
    this.look();
    return this.#suspended.has({ route, mxHosts: NO_HOSTS });
  }

  /** The first rule that suspends it; undefined: none does. */
  suspending(queue: SomeQueue): QueueRule | undefined {
    this.look();
    if (!this.#suspended.has(queue)) return undefined;
    return [...this.#inForce.values()].find((rule) => rule.verb === 'suspend' && this.#concerns(rule, queue));
  }

  /** What it means of the mail of a queue, or of that to one address or domain; `some`: it says more. */
  shareOf(rule: QueueRule, queue: SomeQueue & Pick<MailQueue, 'name'>, to = ''): 'all' | 'some' | 'none' {
    const { selector, verb, not_before_ms: notBeforeMs = Infinity } = rule;
    if (selector !== undefined && refusedBy(rule) === 'recipient') {
      return this.#shareOfRefusal(selector, to);
    }
    if (selector === undefined || !isStandingVerb(verb)) {
      return this.#concerns(rule, queue) ? 'all' : 'none';
    }
    const { clock, names, toAscii } = this.#ports;
    const selection = new Selection(ofOneClass(selector), names, toAscii);
    const isMeant = selection.concernsQueue(queue) && (to === '' || selection.mayMean(to));
    if (!isMeant || notBeforeMs <= clock.wallMs()) return 'none';
    return selection.isOfQueues ? 'all' : 'some';
  }

  #shareOfRefusal(selector: Selector, to: string): 'all' | 'some' | 'none' {
    const { names, toAscii } = this.#ports;
    if (to === '' || !new Selection(selector, names, toAscii).mayMean(to)) return 'none';
    if (to.includes('@') || selector.recipient === undefined) return 'all';
    const [, domain = '*'] = /@([^@]*)$/.exec(selector.recipient) ?? [];
    return new Selection({ domain }, names, toAscii).mayMean(to) ? 'some' : 'none';
  }

  /** Its hosts are known now, or are other ones. */
  lookAt(queue: MailQueue): void {
    this.look();
    this.#mark(queue);
  }

  /**
   * Whether an operator wants no new mail from there. `senderKey`: of the many spellings of the reverse-path
   * the one that a rule can name for all of them (MailTransaction.senderKey).
   */
  refusesFrom(reversePath: string, client: string, senderKey: string): boolean {
    this.look();
    return this.#refusedSenders.length > 0 && this.#refusedSenders.some((selection) =>
      selection.isFrom(reversePath, client) || selection.isFrom(senderKey, client));
  }

  /** Whether an operator wants no new mail for this address. `domain`: its own, as routes have it. */
  refusesTo(address: string, domain: string): boolean {
    this.look();
    if (this.#refusedRecipients.length === 0) return false;
    const known = `${address.slice(0, address.lastIndexOf('@') + 1)}${domain}`;
    return this.#refusedRecipients.some((one) => one.means(address) || one.means(known));
  }

  /** Whether an operator wants no new mail for the route. */
  refuses(route: Route): boolean {
    this.look();
    if (this.#refused.isNone) return false;
    const known = this.#refusedRoutes.get(route);
    if (known !== undefined) return known;
    const isRefused = this.#refused.has({ route, mxHosts: NO_HOSTS });
    this.#refusedRoutes.set(route, isRefused);
    return isRefused;
  }

  /** Called a few times a second, and before anything is asked. */
  look(): void {
    const { clock } = this.#ports;
    const told = this.#ports.told.queueRules();
    const nowWallMs = clock.wallMs();
    if (told === this.#told && nowWallMs < this.#nextEndWallMs) return;
    this.#told = told;
    const inForce = standing(told, nowWallMs, QUEUE_RULES_MAX);
    this.#nextEndWallMs = nextEnd(inForce.values());
    if (isSame(inForce, this.#inForce)) return;
    this.#tell(inForce);
    this.#inForce = inForce;
    this.#suspended = new NamedQueues(rulesOf(inForce, 'suspend'), this.#ports);
    const refusals = rulesOf(inForce, 'refuse');
    this.#refused = new NamedQueues(refusals, this.#ports);
    const by = (what: ReturnType<typeof refusedBy>): readonly Selection[] =>
      selectionsOf(refusals.filter((rule) => refusedBy(rule) === what), this.#ports);
    this.#refusedSenders = by('sender');
    this.#refusedRecipients = by('recipient');
    this.#refusedRoutes = new WeakMap();
    for (const queue of this.#ports.queues()) this.#mark(queue);
    this.#ports.obeyOrders(inForce);
  }

  /** Routes are other ones: queues may lead to other sites. */
  renew(): void {
    this.look();
    for (const queue of this.#ports.queues()) this.#mark(queue);
  }

  /** It names one that is there now. */
  hasQueueOf(rule: NamingRule): boolean {
    const named = new NamedQueues([rule], this.#ports);
    for (const queue of this.#ports.queues()) if (named.has(queue)) return true;
    return false;
  }

  /** In the order in which they were given. */
  all(): readonly RuleInForce[] {
    this.look();
    if (this.#inForce.size === 0) return [];
    const sums = [...this.#inForce].map(([id, rule]) =>
      (isStandingVerb(rule.verb)
        ? { id, rule, named: this.#noQueues, queues: 0, messages: this.#ports.caughtBy(id) }
        : { id, rule, named: new NamedQueues([rule], this.#ports), queues: 0, messages: 0 }));
    for (const queue of this.#ports.queues()) {
      // Most queues are concerned by none.
      if (!queue.isSuspended && !this.refuses(queue.route)) continue;
      for (const sum of sums) {
        if (!sum.named.has(queue)) continue;
        sum.queues += 1;
        sum.messages += queue.length;
      }
    }
    const { told } = this.#ports;
    return sums.map(({ id, rule, queues, messages }) =>
      ({ id, rule, isLocal: told.isLocal(id), queues, messages }));
  }

  #concerns(rule: QueueRule, queue: SomeQueue): boolean {
    return new NamedQueues([rule], this.#ports).has(queue);
  }

  #mark(queue: MailQueue): void {
    const isSuspended = this.#suspended.has(queue);
    if (isSuspended === queue.isSuspended) return;
    queue.isSuspended = isSuspended;
    if (!isSuspended) this.#ports.wake(queue);
  }

  #tell(inForce: Rules): void {
    const { log } = this.#ports;
    for (const [id, rule] of inForce) {
      if (this.#inForce.has(id)) continue;
      const { verb, reason, who, untilWallMs } = rule;
      const until = untilWallMs === 0 ? '' : new Date(untilWallMs).toISOString();
      const end = until === '' ? {} : { until };
      const fields = { rule: id, verb, queue: targetText(rule), reason, who, ...end };
      log.warn('rule', "an operator's rule is in force", fields);
    }
    for (const [id, rule] of this.#inForce) {
      const fields = { rule: id, verb: rule.verb, queue: targetText(rule) };
      if (!inForce.has(id)) log.warn('rule', "an operator's rule is over", fields);
    }
  }
}

/** A register that is read again gives the same rules in another map. */
function isSame(a: Rules, b: Rules): boolean {
  if (a.size !== b.size) return false;
  for (const [id, rule] of a) {
    const other = b.get(id);
    if (other?.verb !== rule.verb || other.untilWallMs !== rule.untilWallMs) return false;
    if (targetText(other) !== targetText(rule)) return false;
  }
  return true;
}

function rulesOf(rules: Rules, verb: QueueRule['verb']): readonly QueueRule[] {
  return [...rules.values()].filter((rule) => rule.verb === verb);
}

function selectionsOf(rules: readonly QueueRule[], { names, toAscii }: NamingPorts): readonly Selection[] {
  return rules.flatMap(({ selector }) =>
    (selector === undefined ? [] : [new Selection(selector, names, toAscii)]));
}

/** Undefined: it says none, or more than that. */
function domainAloneOf(selector: Selector): string | undefined {
  return Object.keys(selector).length === 1 ? selector.domain : undefined;
}

/** A name and a class: "a.example" is of mail, "a.example/bounce" of bounces. */
function partsOf(pattern: string): readonly [name: string, queueClass: QueueClass] {
  const at = pattern.lastIndexOf('/');
  const queueClass = QUEUE_CLASSES.find((one) => one === pattern.slice(at + 1));
  return at < 0 || queueClass === undefined ? [pattern, 'mail'] : [pattern.slice(0, at), queueClass];
}
