/**
 * The standing rules of operators over queues, as this gateway obeys them: which queues are suspended
 * (nothing is started from them), and for which no new mail is taken (acceptance.ts). They stand in the
 * register (rules/queues/ID) until they are cancelled or their time is over; nothing of them is kept with a
 * message.
 *
 *   register told, or an operator here
 *   (local-rules.ts), time is over ─► look() ─► a flag in each queue; a queue that goes on is woken
 *   a partition is taken over ───► look(), when its holder has read the rules and before anything of it is
 *                                  started, however late the register's watch is (DESIGN, Ownership rule 17)
 *   a queue is made ─────────────► suspends()
 *
 * A pattern names queues of class mail, `*` stands for any run of characters; with a class behind it, as in
 * "example.com/bounce", it names those of that class. Pure.
 */
import { Wildcards } from '../../base/wildcards.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import type { QueueRule } from '../../register/records.js';
import type { MailQueue } from '../queue/mail-queue.js';
import type { QueueClass, Route } from '../queue/types.js';
import { QUEUE_CLASSES } from '../queue/types.js';
import type { LocalRules } from './local-rules.js';
import { nextEnd, standing } from './standing.js';

/** Rules that may stand; what stands beyond them was written by somebody else, and is not obeyed. */
export const QUEUE_RULES_MAX = 256;

type QueueName = Pick<Route, 'queueName' | 'queueClass'>;

/** The queues that one of several patterns names: those without `*` cost one look-up for all of them. */
class NamedQueues {
  readonly #exact = new Set<string>();
  readonly #patterns = new Map<QueueClass, Wildcards>();
  readonly isNone: boolean;

  constructor(patterns: readonly string[]) {
    const byClass = new Map<QueueClass, string[]>();
    for (const pattern of patterns) {
      const [name, queueClass] = partsOf(pattern);
      if (!name.includes('*')) this.#exact.add(`${queueClass}/${name.toLowerCase()}`);
      else byClass.set(queueClass, [...(byClass.get(queueClass) ?? []), name]);
    }
    for (const [queueClass, names] of byClass) this.#patterns.set(queueClass, new Wildcards(names));
    this.isNone = patterns.length === 0;
  }

  has({ queueName, queueClass }: QueueName): boolean {
    if (this.isNone) return false;
    if (this.#exact.size > 0 && this.#exact.has(`${queueClass}/${queueName.toLowerCase()}`)) return true;
    return this.#patterns.get(queueClass)?.matches(queueName) === true;
  }
}

/** A rule that is in force, and what it concerns here. */
export interface RuleInForce {
  readonly id: string;
  readonly rule: QueueRule;
  /** The register does not have it yet. */
  readonly isLocal: boolean;
  readonly queues: number;
  readonly messages: number;
}

export interface QueueRulesPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  /** What the register tells, and what is given here. */
  readonly told: Pick<LocalRules, 'queueRules' | 'isLocal'>;
  queues(): Iterable<MailQueue>;
  wake(queue: MailQueue): void;
}

export class QueueRules {
  readonly #ports: QueueRulesPorts;
  /** As the register gave it: the same one says that nothing has changed. */
  #told: ReadonlyMap<string, QueueRule> | undefined;
  #inForce: ReadonlyMap<string, QueueRule> = new Map();
  #nextEndWallMs = Infinity;
  #suspended = new NamedQueues([]);
  #refused = new NamedQueues([]);
  /** Asked at each recipient: judged once for each route. */
  #refusedRoutes = new WeakMap<Route, boolean>();

  constructor(ports: QueueRulesPorts) {
    this.#ports = ports;
  }

  /** Of a queue that is made now. */
  suspends(route: QueueName): boolean {
    this.look();
    return this.#suspended.has(route);
  }

  /** The first rule that suspends a queue of this name; undefined: none does. */
  suspending(route: QueueName): QueueRule | undefined {
    this.look();
    if (!this.#suspended.has(route)) return undefined;
    return [...this.#inForce.values()].find(({ verb, queue }) =>
      verb === 'suspend' && new NamedQueues([queue]).has(route));
  }

  /** Whether an operator wants no new mail for the route. */
  refuses(route: Route): boolean {
    this.look();
    if (this.#refused.isNone) return false;
    const known = this.#refusedRoutes.get(route);
    if (known !== undefined) return known;
    const isRefused = this.#refused.has(route);
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
    this.#suspended = new NamedQueues(patternsOf(inForce, 'suspend'));
    this.#refused = new NamedQueues(patternsOf(inForce, 'refuse'));
    this.#refusedRoutes = new WeakMap();
    for (const queue of this.#ports.queues()) this.#mark(queue);
  }

  /** In the order in which they were given. */
  all(): readonly RuleInForce[] {
    this.look();
    if (this.#inForce.size === 0) return [];
    const sums = [...this.#inForce].map(([id, rule]) =>
      ({ id, rule, named: new NamedQueues([rule.queue]), queues: 0, messages: 0 }));
    for (const queue of this.#ports.queues()) {
      // Most queues are concerned by none.
      if (!queue.isSuspended && !this.refuses(queue.route)) continue;
      for (const sum of sums) {
        if (!sum.named.has(queue.route)) continue;
        sum.queues += 1;
        sum.messages += queue.length;
      }
    }
    const { told } = this.#ports;
    return sums.map(({ id, rule, queues, messages }) =>
      ({ id, rule, isLocal: told.isLocal(id), queues, messages }));
  }

  #mark(queue: MailQueue): void {
    const isSuspended = this.#suspended.has(queue.route);
    if (isSuspended === queue.isSuspended) return;
    queue.isSuspended = isSuspended;
    if (!isSuspended) this.#ports.wake(queue);
  }

  #tell(inForce: ReadonlyMap<string, QueueRule>): void {
    const { log } = this.#ports;
    for (const [id, rule] of inForce) {
      if (this.#inForce.has(id)) continue;
      const { verb, queue, reason, who, untilWallMs } = rule;
      const until = untilWallMs === 0 ? '' : new Date(untilWallMs).toISOString();
      const fields = { rule: id, verb, queue, reason, who, ...(until === '' ? {} : { until }) };
      log.warn('rule', "an operator's rule is in force", fields);
    }
    for (const [id, { verb, queue }] of this.#inForce) {
      if (!inForce.has(id)) log.warn('rule', "an operator's rule is over", { rule: id, verb, queue });
    }
  }
}

/** A register that is read again gives the same rules in another map. */
function isSame(a: ReadonlyMap<string, QueueRule>, b: ReadonlyMap<string, QueueRule>): boolean {
  if (a.size !== b.size) return false;
  for (const [id, { verb, queue, untilWallMs }] of a) {
    const other = b.get(id);
    if (other?.verb !== verb || other.queue !== queue || other.untilWallMs !== untilWallMs) return false;
  }
  return true;
}

function patternsOf(rules: ReadonlyMap<string, QueueRule>, verb: QueueRule['verb']): readonly string[] {
  return [...rules.values()].filter((rule) => rule.verb === verb).map(({ queue }) => queue);
}

/** A name and a class: "a.example" is of mail, "a.example/bounce" of bounces. */
function partsOf(pattern: string): readonly [name: string, queueClass: QueueClass] {
  const at = pattern.lastIndexOf('/');
  const queueClass = QUEUE_CLASSES.find((one) => one === pattern.slice(at + 1));
  return at < 0 || queueClass === undefined ? [pattern, 'mail'] : [pattern.slice(0, at), queueClass];
}
