/**
 * Where operators give and cancel the standing rules of queues: each becomes a key of the register, written
 * by the gateway that was asked; or, with `local`, a rule of each gateway that is asked (local-rules.ts),
 * until the register answers. All gateways learn of it by their watches and obey it (queue-rules.ts); who
 * does is told here, by each of itself. Pure.
 */
import { whyNotThen } from '../../admin-api/queue-orders.js';
import { isStandingVerb, targetText, whyNoTarget } from '../../admin-api/queue-rules.js';
import type { CancelRule, NewQueueRule, QueueRulesAnswer } from '../../admin-api/queue-rules.js';
import type { Clock, EventLog } from '../../platform/ports.js';
import type { QueueRule } from '../../register/records.js';
import { isRuleId } from '../../register/keys.js';
import type { OwnershipRegister } from '../ownership/ownership-register.js';
import type { LocalOutcome, LocalRules } from './local-rules.js';
import type { QueueRules } from './queue-rules.js';
import { QUEUE_RULES_MAX } from './queue-rules.js';
import { ruleAnswers } from './rule-answers.js';
import { sharedQueues, whyNoRoute } from './selection.js';
import type { DomainPorts } from './selection.js';
import { isOver } from './standing.js';

export interface RuleDeskPorts extends DomainPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly register: OwnershipRegister;
  readonly rules: QueueRules;
  readonly local: LocalRules;
}

/** What came of it: with a text it was not done, and `code` says of what kind that is, as HTTP has them. */
export interface RuleOutcome {
  readonly id: string;
  readonly code: 200 | 400 | 404 | 409 | 503;
  readonly why: string;
  /** Done here alone, and why the register does not have it; '' or undefined: it does. */
  readonly local?: string;
  /** Done, but for mail to the domain in queues that are not its own; '' or undefined: there is none. */
  readonly shared?: string;
}

/** Whoever gives a delay for as long as it stands has looked for the mail first, by a clock of its own. */
const DELAY_SLACK_MS = 60_000;
/** Longer than it takes until every gateway that answers obeys, or is named. */
const HEARD_MS = 10_000;
/** What can be done while the register does not answer. */
const LOCALLY = '; --local is obeyed at once without it';
/** Over for so long, by any gateway's clock: the next order takes it out of the register. */
const OVER_KEPT_MS = 60_000;

export class RuleDesk {
  readonly #ports: RuleDeskPorts;
  /** Given by this process. */
  #given = 0;

  constructor(ports: RuleDeskPorts) {
    this.#ports = ports;
  }

  answer(): QueueRulesAnswer {
    const { register, rules } = this.#ports;
    return {
      told_by: register.self.gatewayId,
      living: [...register.living().keys()], register_away: register.away,
      why_no_more: this.#whyNoMore().why, rules: ruleAnswers(rules),
    };
  }

  add(given: NewQueueRule): Promise<RuleOutcome> {
    const { verb, queue, selector, not_before_ms: notBeforeMs, since, reason, who } = given;
    const { duration_seconds: seconds } = given;
    const isLocal = given.local === true;
    const { register, clock, log, local, rules } = this.#ports;
    this.#given += 1;
    const { gatewayId, incarnation } = register.self;
    const ownId = `${gatewayId}-${String(incarnation)}-${String(this.#given)}`;
    const id = (isLocal ? given.id : undefined) ?? ownId;
    if (!isRuleId(id)) return Promise.resolve({ id, code: 400, why: 'that is no id of a rule' });
    const odd = whyNoTarget(verb, given) || whyNotThen(notBeforeMs, clock.wallMs())
      || whyIdle(given, clock.wallMs());
    if (odd !== '') return Promise.resolve({ id, code: 400, why: odd });
    const own = verb !== 'suspend' || selector === undefined ? { why: '', shared: '' }
      : sharedQueues(selector, this.#ports, () => rules.hasQueueOf({ verb, selector }));
    const noRoute = whyNoRoute(selector ?? {}, this.#ports.names) || own.why;
    if (noRoute !== '') return Promise.resolve({ id, code: 404, why: `${noRoute}; nothing was done` });
    const { code, why } = this.#whyNoMore(isLocal);
    // An order that stands is given with its pass over what is there: for that there is none.
    const locally = code === 503 && !isStandingVerb(verb) ? LOCALLY : '';
    if (code !== 200) return Promise.resolve({ id, code, why: `${why}; nothing was done${locally}` });
    this.#removeOver();
    const nowWallMs = clock.wallMs();
    // A delay has nothing to do from its time on.
    const untilWallMs = seconds === undefined
      ? 0 : Math.min(nowWallMs + seconds * 1000, notBeforeMs ?? Infinity);
    const target = {
      ...(queue === undefined ? {} : { queue }), ...(selector === undefined ? {} : { selector }),
      ...(notBeforeMs === undefined ? {} : { not_before_ms: notBeforeMs }),
    };
    const wallMs = Math.min(nowWallMs, (since ?? Infinity) * 1000);
    const tried = since === undefined || !isStandingVerb(verb)
      ? {} : { triedUntilWallMs: nowWallMs + HEARD_MS };
    const rule: QueueRule = { verb, ...target, untilWallMs, who, reason, wallMs, ...tried };
    const how = isLocal ? { local: true } : {};
    const fields = { rule: id, verb, queue: targetText(target), reason, who, ...how };
    log.warn('rule', 'an operator gives a standing rule', fields);
    const done = isLocal ? here(id, local.give(id, rule)) : this.#write(id, rule);
    return own.shared === '' ? done : done.then((outcome) => ({ ...outcome, shared: own.shared }));
  }

  cancel(id: string, { reason, who, ...how }: CancelRule): Promise<RuleOutcome> {
    const { register, log, local } = this.#ports;
    const isLocal = how.local === true;
    if (!isLocal && register.away !== '') {
      const why = `${awayText(register.away)}; nothing was done${LOCALLY}`;
      return Promise.resolve({ id, code: 503, why });
    }
    // One that was not asked then may write it yet.
    if (!isRuleId(id) || (!isLocal && !local.queueRules().has(id))) {
      return Promise.resolve({ id, code: 404, why: 'no rule of this id stands; nothing was done' });
    }
    const fields = { rule: id, reason, who, ...(isLocal ? { local: true } : {}) };
    log.warn('rule', 'an operator cancels a standing rule', fields);
    if (isLocal) return here(id, local.cancel(id));
    // Else this gateway would write it again.
    local.forget(id);
    return this.#write(id, undefined);
  }

  #whyNoMore(isLocal = false): Omit<RuleOutcome, 'id'> {
    const { register, local, clock } = this.#ports;
    if (!isLocal && register.away !== '') return { code: 503, why: awayText(register.away) };
    const nowWallMs = clock.wallMs();
    const standing = [...local.queueRules().values()].filter((rule) => !isOver(rule, nowWallMs)).length;
    if (standing < QUEUE_RULES_MAX) return { code: 200, why: '' };
    return { code: 409, why: `${String(QUEUE_RULES_MAX)} rules stand already: cancel one of them` };
  }

  #write(id: string, rule: QueueRule | undefined): Promise<RuleOutcome> {
    const locally = rule !== undefined && isStandingVerb(rule.verb) ? '' : LOCALLY;
    return new Promise((resolve) => {
      this.#ports.register.setQueueRule(id, rule, (why) => {
        const open = `${why}; it may be done or not: twinpost rules list shows${locally}`;
        resolve(why === '' ? { id, code: 200, why } : { id, code: 503, why: open });
      });
    });
  }

  #removeOver(): void {
    const { register, clock } = this.#ports;
    const sinceWallMs = clock.wallMs() - OVER_KEPT_MS;
    for (const [id, rule] of register.queueRules()) {
      // Who is not heard now is asked by the next order.
      if (isOver(rule, sinceWallMs)) register.setQueueRule(id, undefined, () => undefined);
    }
  }
}

/** It would stand, and delay nothing any more; '' when it would not. */
function whyIdle(
  { since, not_before_ms: notBeforeMs, duration_seconds: seconds }: NewQueueRule, nowWallMs: number,
): string {
  if (notBeforeMs === undefined || seconds === undefined) return '';
  const sinceMs = Math.min(nowWallMs, (since ?? Infinity) * 1000);
  return sinceMs + seconds * 1000 <= notBeforeMs + DELAY_SLACK_MS
    ? '' : 'a delay stands no longer than until not_before_ms: say a shorter duration_seconds';
}

async function here(id: string, outcome: Promise<LocalOutcome>): Promise<RuleOutcome> {
  return { id, code: 200, why: '', local: (await outcome).why };
}

export function awayText(away: string): string {
  return `the register, which is to keep it, does not answer: ${away}`;
}
