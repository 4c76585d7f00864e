/**
 * An order for all the messages of the group that a selector means, given to every gateway and followed to
 * its end (gateway/orders at each).
 *
 *   every gateway looks ─► the sum is told ─ --dry-run ─────────────────────────► 0, or 1: none is meant
 *                                          ├ none; more than --expect allows; or what comes can't be met
 *                                          │ ─► nothing is done, 1
 *                                          ├ somebody did not answer, or could not look at all of its mail,
 *                                          │ and it would end mail, without --partial ─► nothing is done, 3
 *                                          └ else: --grace passes (Ctrl-C: nothing is done) ─► done:
 *                                             0; 1: not to all of it; 3: somebody has not heard of it, and
 *                                             it is left in the register for the mail of whoever that is
 *
 * An order that stands is a rule, too (rule-run.ts): a hold or a delay before it is carried out, so that
 * nothing slips between; what ends mail when nobody has taken it back in its grace. Whether a rule can be
 * given is asked before anything ends.
 *
 * What leaves before it goes on is told as gone before; what it would end is kept back from then on. Where
 * somebody else cancels it, nothing of it stands on: no rule, and nothing in the register; while none has
 * begun, all are told to cancel it. A gateway that hears nothing of us any more cancels its own part before
 * it has begun. Where others have begun by then, it is as one that is silent: what it has is for the
 * register. One that was silent when the order went on is told that again when it answers; one that has not
 * found all by then is as silent.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Order } from '../admin-api/orders.js';
import { isFinal } from '../admin-api/queue-orders.js';
import { isStandingVerb } from '../admin-api/queue-rules.js';
import type { LeftOrderAnswer, QueueOrder, QueueOrderAnswer } from '../admin-api/queue-orders.js';
import { errorText } from '../base/error-text.js';
import { formatBytes, formatCount } from '../base/units.js';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { NoAnswer } from './admin-client.js';
import type { AdminClient } from './admin-client.js';
import type { Answered, Group, Member } from './group.js';
import { NOT_ALL_KNOW, partialJson, partialLine } from './group.js';
import { leftOf } from './queue-orders.js';
import { cancelRules, giveRule, idsOf, unawareLines, whyNoRule } from './rule-run.js';
import type { Unaware } from './rule-run.js';
import { counted, printable, timeText } from './tables.js';

const POLL_MS = 200;
const NOT_ALL_SEEN =
  'not all mail could be looked at; --partial ends what was found, and the rest when it is met';
const NONE_SEEN = 'no message that could be looked at is meant, and not all could be: with --partial the '
  + 'order waits in the register for the rest';
/** An order that ends more is told twice: by what it means, and by its number. */
export const EXPECT_FROM = 10_000;
const EXPECT_SLACK = 1.1;
/** So many recipients are thought over. */
export const GRACE_FROM = 1_000;
export const GRACE_MS = 60_000;
const NOT_KEPT =
  'its copies at the stores have not acknowledged that yet: a crash of the gateway may undo it';
const SHOWN_MAX = 10;
/** What is over by then needs no progress. */
const QUICK_MS = 2_000;
/** A gateway that does not answer is asked again for so long. */
const SILENT_MS = 5_000;
const IS_OVER = 409;
const TAKEN_BACK = 'its order was taken back';
const SILENCES = {
  refused: 'it refused to answer: what it did is in its log',
  silent: 'it fell silent: what it did is in its log',
  unfollowed: 'it heard nothing of the order for a while, and took its own part back before it began',
  looking: 'it looks still, and has done nothing',
} as const;
/** Of the order's number: it has to differ from those that the gateways know. */
const ID_BYTES = 6;
const NOT_THERE = 404;

export interface OrderRunOptions {
  readonly expect: number | undefined;
  /** Undefined: as many recipients as there are say. */
  readonly graceMs: number | undefined;
  readonly isPartialWanted: boolean;
  readonly json: boolean;
  /** What has been done to messages, in a word. */
  readonly past: string;
  /** It stands, too; undefined: it passes once. */
  readonly stands: StandingTime | undefined;
}

export interface StandingTime {
  /** Undefined: until it is cancelled. */
  readonly seconds: number | undefined;
}

interface Sum {
  readonly matched: number;
  readonly recipients: number;
  readonly bytes: number;
  readonly keptBack: number;
  readonly done: number;
  readonly gone: number;
  readonly waiting: number;
  readonly waitsFor: string;
  readonly notDone: number;
  readonly moved: number;
  readonly unread: number;
  readonly isIncomplete: boolean;
  /** Copies have all that was done. */
  readonly isKept: boolean;
}

/** Why the order is not carried out, and the exit code. */
interface Refusal {
  readonly why: string;
  readonly code: number;
}

type Answers = readonly Answered<QueueOrderAnswer>[];

export class OrderRun {
  readonly #order: QueueOrder;
  readonly #options: OrderRunOptions;
  /** With those that lack the route: a rule is for every gateway that lives. */
  readonly #all: Group;
  #group: Group;
  readonly #context: CliContext;
  /** Its number, at all gateways. */
  readonly #id: string;
  /** Gateways that lack the route: none of their mail is meant. */
  #strangers: ReadonlySet<string> = new Set();
  /** Gateways that have it. */
  #begun: ReadonlySet<string> = new Set();
  /** Of those, who did not answer last time, and how; or do nothing of their part, and others go on. */
  readonly #silent = new Map<string, keyof typeof SILENCES>();
  /** Gateways that act though the register does not have the order, and why. */
  readonly #unregistered = new Map<string, string>();
  /** One has begun: it can't be taken back whole any more. */
  #isUnderWay = false;
  /** Left in the register. And because of whom, or why not. */
  #left: LeftOrderAnswer | undefined;
  #leftFor = '';
  #whyNotLeft = '';
  /** Why it may stand in the register though it was taken back; '' when it does not. */
  #whyStanding = '';
  #isGone = false;
  /** Ids that were named, and no gateway that answers has such a message. */
  #unmet: readonly string[] = [];
  #said = '';
  #graceSeconds = 0;
  /** When its grace ends, once it has gone on. */
  #graceEndMs: number | undefined;
  /** Of the rule that stands; '' when there is none. */
  #rule = '';
  /** Gateways that live, and do not obey it yet. */
  #unaware: readonly Unaware[] = [];
  /** Why none stands that was to, though what was there is dealt with. */
  #whyNotMet = '';
  readonly #begunMs = performance.now();

  constructor(order: QueueOrder, options: OrderRunOptions, group: Group, context: CliContext) {
    this.#id = order.id ?? `cli-${randomBytes(ID_BYTES).toString('hex')}`;
    this.#order = { ...order, id: this.#id };
    this.#options = options;
    this.#all = group;
    this.#group = group;
    this.#context = context;
  }

  /** The exit code. */
  async run(): Promise<number> {
    // From here on Ctrl-C takes it back.
    void this.#context.untilStopped();
    const begun = await this.#begin();
    this.#begun = new Set(begun.map(({ id }) => id));
    if (begun.length === 0) return this.#notBegun();
    const found = await this.#poll(begun, ({ phase }) => phase !== 'looking');
    if (this.#context.stopSignal.aborted) return this.#finish(found, 1);
    if (isTakenBack(found)) return this.#outcome(found);
    const sum = sumOf(found);
    this.#unmet = unmetBy(found);
    this.#tellFound(sum, found);
    if (this.#order.dry_run === true) {
      await this.#cancel('it was a dry run');
      return this.#finish(found, sum.matched === 0 || this.#unmet.length > 0 ? 1 : 0);
    }
    const refusal = this.#whyNot(sum) ?? await this.#whyCantStand();
    if (refusal !== undefined) {
      await this.#cancel(refusal.why);
      this.#context.terminal.error(`twinpost: nothing was done: ${refusal.why}`);
      return this.#finish(found, refusal.code);
    }
    if (!isFinal(this.#order.verb)) await this.#stand(found);
    this.#graceSeconds = Math.ceil(this.#graceMs(sum) / 1000);
    this.#graceEndMs = performance.now() + this.#graceSeconds * 1000;
    const going = await this.#ask((client) => this.#go(client));
    const acting = await this.#poll(going, ({ phase }) => phase !== 'grace');
    // Somebody else may have taken it back in its grace: then nothing that comes is ended either.
    if (isFinal(this.#order.verb) && !isTakenBack(acting)) await this.#stand(acting);
    await this.#leave(acting);
    const ended = await this.#poll(acting, ({ phase }) => phase === 'done' || phase === 'cancelled');
    if (isTakenBack(ended)) await this.#takeBackRest(TAKEN_BACK);
    // Somebody may have fallen silent meanwhile.
    await this.#leave(ended);
    await this.#lookAtLeft();
    return this.#outcome(ended);
  }

  /** Whoever does not have the route that is named has no mail that is meant: it is of no account then. */
  async #begin(): Promise<Answers> {
    const strangers = new Map<string, NoAnswer>();
    const told = await this.#group.ask('gateway', async (client) => {
      try {
        return { client, answer: await client.beginOrder(this.#order) };
      } catch (error) {
        if (!(error instanceof NoAnswer) || error.code !== NOT_THERE) throw error;
        return { client, why: error };
      }
    });
    const begun: Answered<QueueOrderAnswer>[] = [];
    for (const { id, answer: { client, answer, why } } of told) {
      if (answer !== undefined) begun.push({ id, client, answer });
      else strangers.set(id, why);
    }
    const isStranger = ({ kind, id }: Pick<Member, 'kind' | 'id'>): boolean =>
      kind === 'gateway' && strangers.has(id);
    if (begun.length > 0) {
      this.#group = this.#group.without(isStranger);
      this.#strangers = new Set(strangers.keys());
    } else {
      for (const one of this.#group.members.filter(isStranger)) this.#group.lose(one, strangers.get(one.id));
    }
    return begun;
  }

  /** Where all have heard it, and will not, nothing is open. */
  #notBegun(): number {
    const missing = this.#group.missing('gateway');
    const isHeard = missing.length > 0 && missing.every(({ how }) => how === 'refused');
    if (!isHeard) return this.#finish([], 1);
    for (const why of new Set(missing.map((one) => one.why))) {
      this.#context.terminal.error(printable(`twinpost: nothing was done: ${why}`));
    }
    return 1;
  }

  async #whyCantStand(): Promise<Refusal | undefined> {
    const why = this.#options.stands === undefined ? '' : await whyNoRule(this.#group);
    return why === '' ? undefined : { why, code: 1 };
  }

  /** What comes from now on is met by a rule: what has come since the first of them began to look, too. */
  async #stand(answers: Answers): Promise<void> {
    const { stands } = this.#options;
    if (stands === undefined || answers.length === 0 || this.#context.stopSignal.aborted) return;
    const { verb, selector, not_before_ms: notBeforeMs } = this.#order;
    if (!isStandingVerb(verb)) return;
    try {
      const { id, outcome: { rules, unaware } } = await giveRule(this.#all, {
        verb, selector, ...this.#by, since: Math.min(...answers.map(({ answer }) => answer.given)),
        ...(notBeforeMs === undefined ? {} : { not_before_ms: notBeforeMs }),
        ...(stands.seconds === undefined ? {} : { duration_seconds: stands.seconds }),
      });
      this.#rule = id;
      this.#unaware = unaware;
      const until = rules.find((rule) => rule.id === id)?.until ?? null;
      this.#tellRule(until === null ? 'it is cancelled' : timeText(until));
    } catch (error) {
      if (isFinal(verb) && error instanceof CliError) {
        this.#whyNotMet = error.message;
        return;
      }
      await this.#cancel('it can not stand');
      throw error;
    }
  }

  #tellRule(until: string): void {
    const { terminal } = this.#context;
    const unaware = this.#unaware;
    if (this.#options.json) terminal.print(JSON.stringify({ rule: this.#rule, unaware: idsOf(unaware) }));
    else {
      const past = `what comes is ${this.#options.past}, until ${until}`;
      terminal.print(printable(`${past}; twinpost rules cancel ${this.#rule} ends that`));
      for (const line of unawareLines(unaware)) terminal.print(printable(line));
    }
  }

  get #by(): Order {
    return { reason: this.#order.reason, who: this.#order.who };
  }

  /** What nobody has passed over who is still there is met by the register. A flush is over before. */
  async #leave(answers: Answers): Promise<void> {
    const silent = [...this.#group.missing('gateway').map(({ id }) => id), ...this.#silent.keys()];
    const there = answers.filter(({ id, answer: { phase } }) =>
      !this.#silent.has(id) && (phase === 'acting' || phase === 'done'));
    const passed = there.flatMap(({ answer }) => answer.partitions).sort();
    // A partition may have gone to another gateway meanwhile.
    const leftFor = [...silent, '', ...passed].join(' ');
    const isKnown = (this.#left !== undefined || this.#whyNotLeft !== '') && leftFor === this.#leftFor;
    const isBegun = there.length > 0 && !answers.some(({ answer: { phase } }) => phase === 'grace');
    const isStopped = this.#context.stopSignal.aborted || !isBegun || isTakenBack(answers);
    if (this.#order.verb === 'flush' || isStopped || isKnown || !this.#isPartial(sumOf(answers))) return;
    this.#leftFor = leftFor;
    for (const { client } of there) {
      try {
        const left = await client.leaveOrder(this.#id, { passed, ...this.#by });
        this.#left = { ...left, holders: left.holders.filter((id) => !this.#strangers.has(id)) };
        this.#whyNotLeft = '';
        return;
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        this.#whyNotLeft = error.why;
      }
    }
  }

  /** Whoever was silent may have come to it by now. */
  async #lookAtLeft(): Promise<void> {
    if (this.#left === undefined && this.#silent.size === 0) return;
    const there = this.#group.without(({ id }) => this.#silent.get(id) === 'silent');
    const told = await there.ask('gateway', (client) => client.queueOrders());
    const left = leftOf(told.map(({ answer }) => answer.left)).find(({ order }) => order === this.#id);
    // For whom it was left is told, also when another has taken that over since.
    if (this.#left !== undefined) this.#left = { ...this.#left, ...left, holders: this.#left.holders };
    // One that crashed had it there before it began.
    else this.#left = left;
  }

  /** Why the order is not carried out; undefined when it is. */
  #whyNot(sum: Sum): Refusal | undefined {
    const { verb } = this.#order;
    const { expect, isPartialWanted } = this.#options;
    const isPartial = this.#isPartial(sum);
    // All that is meant may be where nobody could look.
    const mayMeanMore = isPartial && verb !== 'flush' && (isPartialWanted || !isFinal(verb));
    const isAll = !mayMeanMore && this.#options.stands === undefined;
    if (sum.matched === 0 && isAll) {
      const why = sum.keptBack > 0 ? 'no other message is meant' : 'no message is meant';
      return isPartial && isFinal(verb) ? { why: NONE_SEEN, code: NOT_ALL_KNOW } : { why, code: 1 };
    }
    if (isFinal(verb) && !isPartialWanted && isPartial) {
      return { why: NOT_ALL_SEEN, code: NOT_ALL_KNOW };
    }
    if (isFinal(verb) && expect === undefined && sum.matched > EXPECT_FROM) {
      return {
        why: `more than ${formatCount(EXPECT_FROM)} are meant: say --expect ${String(sum.matched)} if that `
          + 'is right',
        code: 1,
      };
    }
    if (expect !== undefined && sum.matched > expect * EXPECT_SLACK) {
      return {
        why: `${formatCount(sum.matched)} are meant, and ${formatCount(expect)} were expected`,
        code: 1,
      };
    }
    return undefined;
  }

  /** Somebody did not answer, or could not look at all of its mail. */
  #isPartial({ unread, isIncomplete }: Sum): boolean {
    return !this.#isAllHeard || unread > 0 || isIncomplete;
  }

  get #isAllHeard(): boolean {
    return this.#group.missing('gateway').length === 0 && this.#silent.size === 0;
  }

  #graceMs({ recipients }: Sum): number {
    if (!isFinal(this.#order.verb)) return 0;
    return this.#options.graceMs ?? (recipients > GRACE_FROM ? GRACE_MS : 0);
  }

  /**
   * Their answers, when each `isThere`; one that is silent is waited for, but not for long. Taken back
   * meanwhile: what they say to that.
   */
  async #poll(first: Answers, isThere: (answer: QueueOrderAnswer) => boolean): Promise<Answers> {
    let answers = first;
    let sinceMs = performance.now();
    for (;;) {
      if (this.#context.stopSignal.aborted) return this.#cancel('the operator took it back');
      if (this.#silent.size === 0) sinceMs = performance.now();
      const isPatient = performance.now() - sinceMs < SILENT_MS;
      if (answers.every(({ answer }) => isThere(answer)) && (this.#silent.size === 0 || !isPatient)) {
        return answers;
      }
      this.#tellProgress(answers);
      await sleep(POLL_MS, undefined, { signal: this.#context.stopSignal }).catch(() => undefined);
      const isOff = isTakenBack(answers);
      answers = await this.#ask((client) => this.#look(client, isOff));
      if (isTakenBack(answers) && !this.#isUnderWay) return this.#cancel('it was taken back at a gateway');
      // What went away meanwhile is left at once: nobody passes over it.
      if (this.#silent.size === 0 && sumOf(answers).moved > 0) await this.#leave(answers);
    }
  }

  /** One that did not hear that the order goes on would wait for that for ever. */
  async #look(client: AdminClient, isOff: boolean): Promise<QueueOrderAnswer> {
    const answer = await client.queueOrder(this.#id);
    if (this.#graceEndMs === undefined || answer.phase !== 'found') return answer;
    if (!isOff) return this.#go(client);
    return client.cancelOrder(this.#id, { who: this.#order.who, reason: TAKEN_BACK });
  }

  /** With what is left of the grace. */
  #go(client: AdminClient): Promise<QueueOrderAnswer> {
    const leftSeconds = Math.ceil(((this.#graceEndMs ?? 0) - performance.now()) / 1000);
    const graceSeconds = Math.min(this.#graceSeconds, Math.max(0, leftSeconds));
    return client.goOrder(this.#id, { grace_seconds: graceSeconds, ...this.#by });
  }

  /** All that were given the order, those too that did not answer last time. */
  async #ask(ask: (client: AdminClient) => Promise<QueueOrderAnswer>): Promise<Answers> {
    const known = this.#group.without(({ kind, id }) => kind === 'gateway' && !this.#begun.has(id));
    const answers = await known.ask('gateway', ask);
    for (const { id } of answers) this.#silent.delete(id);
    for (const { id, how } of known.missing('gateway')) {
      this.#silent.set(id, how === 'refused' ? 'refused' : 'silent');
    }
    this.#isUnderWay ||= answers.some(({ answer: { phase } }) => phase === 'acting' || phase === 'done');
    const isLeft = this.#isUnderWay && !this.#context.stopSignal.aborted;
    for (const { id, answer: { phase, unfollowed, unregistered } } of answers) {
      if (unregistered === '') this.#unregistered.delete(id);
      else if (phase === 'acting') this.#unregistered.set(id, unregistered);
      if (this.#graceEndMs !== undefined && phase === 'looking') this.#silent.set(id, 'looking');
      else if (isLeft && unfollowed === true) this.#silent.set(id, 'unfollowed');
    }
    return answers.filter(({ id }) => !this.#silent.has(id));
  }

  /** One that is over already says how it ended. */
  async #cancel(reason: string): Promise<Answers> {
    const order: Order = { who: this.#order.who, reason };
    const answers = await this.#ask(async (client) => {
      try {
        return await client.cancelOrder(this.#id, order);
      } catch (error) {
        if (!(error instanceof NoAnswer) || error.code !== IS_OVER) throw error;
        return client.queueOrder(this.#id);
      }
    });
    // A gateway that started anew knows it from there alone.
    await this.#withdraw(order);
    if (this.#rule !== '') await this.#cancelRule(order);
    return answers;
  }

  /** What stands in the register: gateways know nothing of it when the order itself is taken back. */
  async #takeBackRest(reason: string): Promise<void> {
    const order: Order = { who: this.#order.who, reason };
    await this.#withdraw(order);
    if (this.#rule !== '') await this.#cancelRule(order);
  }

  async #cancelRule(order: Order): Promise<void> {
    try {
      this.#unaware = (await cancelRules(this.#all, [this.#rule], order)).unaware;
      this.#rule = '';
    } catch (error) {
      // Whoever took the order back may have cancelled it, too.
      if (error instanceof NoAnswer && error.code === NOT_THERE) {
        this.#rule = '';
        return;
      }
      const text = `${this.#rule} STILL STANDS, cancel it by twinpost rules cancel: ${errorText(error)}`;
      this.#context.terminal.error(printable(`twinpost: ${text}`));
    }
  }

  /** By any gateway that answers. By none: what is told at the end says that it is still there. */
  async #withdraw(order: Order): Promise<void> {
    if (this.#graceEndMs === undefined || this.#isGone) return;
    for (const { client } of this.#group.answering('gateway')) {
      try {
        await client.withdrawOrder(this.#id, order);
        return this.#noteGone();
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        // Done with.
        if (error.code === NOT_THERE) return this.#noteGone();
        this.#whyStanding = error.why;
      }
    }
  }

  #noteGone(): void {
    this.#isGone = true;
    this.#left = undefined;
    this.#whyStanding = '';
  }

  #tellFound(sum: Sum, answers: Answers): void {
    const { json } = this.#options;
    const { terminal } = this.#context;
    const unmet = this.#unmet;
    const isPartial = this.#isPartial(sum);
    const open = isPartial ? { partial: true } : {};
    if (json && unmet.length > 0) terminal.print(JSON.stringify({ ids_unmet: unmet, ...open }));
    if (json) return;
    const least = isPartial ? 'at least ' : '';
    terminal.print(
      `${least}${counted(sum.matched, 'message')}, ${counted(sum.recipients, 'recipient')}, `
        + formatBytes(sum.bytes),
    );
    const met = answers.flatMap(({ id, answer }) => answer.met.map((one) => ({ gateway: id, ...one })));
    for (const { queue_id: id, queue_name: queue, sender, gateway } of met.slice(0, SHOWN_MAX)) {
      terminal.print(printable(`  ${id} in ${queue} of ${gateway}, from ${sender === '' ? '<>' : sender}`));
    }
    if (sum.matched > SHOWN_MAX) terminal.print(`  … and ${formatCount(sum.matched - SHOWN_MAX)} more`);
    // Whoever is silent may have it, or what could not be read.
    const where = this.#isAllHeard ? 'in what could be read' : 'at those who answer';
    for (const id of unmet) terminal.print(printable(`no message ${id}${isPartial ? ` ${where}` : ''}`));
    if (sum.keptBack > 0) {
      terminal.print(`held or delayed: ${counted(sum.keptBack, 'message')}, which a flush does not try: `
        + 'twinpost queue release first');
    }
  }

  #tellProgress(answers: Answers): void {
    if (this.#options.json) return;
    const sum = sumOf(answers);
    const looking = answers.filter(({ answer }) => answer.phase === 'looking');
    const graceSeconds = Math.max(...answers.map(({ answer }) => answer.grace_left_seconds));
    let line = `${formatCount(sum.done)} of ${formatCount(sum.matched)} ${this.#options.past}`;
    if (looking.length > 0) {
      const share = Math.min(...looking.map(({ answer }) => answer.looked_share));
      line = `${String(Math.floor(share * 100))}% looked at, ${formatCount(sum.matched)} found`;
    } else if (graceSeconds > 0)
      line = `in ${String(Math.min(this.#graceSeconds, tens(graceSeconds)))} s; Ctrl-C takes it back`;
    else if (sum.waitsFor !== '') line += `; ${formatCount(sum.waiting)} wait: ${sum.waitsFor}`;
    else if (sum.waiting > 0) line += `; ${formatCount(sum.waiting)} are being delivered at this moment`;
    else if (!sum.isKept) line += `; ${NOT_KEPT}`;
    const isQuick = graceSeconds === 0 && performance.now() - this.#begunMs < QUICK_MS;
    if (isQuick || line === this.#said) return;
    this.#said = line;
    this.#context.terminal.print(line);
  }

  #outcome(answers: Answers): number {
    const sum = sumOf(answers);
    const isCancelled = answers.some(({ answer }) => answer.phase === 'cancelled');
    const { terminal } = this.#context;
    if (!this.#options.json) {
      const gone = sum.gone === 0 ? '' : `, ${formatCount(sum.gone)} were delivered or ended before`;
      const moved = sum.moved === 0
        ? '' : `, ${formatCount(sum.moved)} went to another gateway with their partitions first`;
      terminal.print(
        `${formatCount(sum.done)} of ${formatCount(sum.matched)} ${this.#options.past}${gone}${moved}`,
      );
      for (const { answer } of answers) {
        for (const { queue_id: id, queue_name: queue, why } of answer.refused) {
          if (why !== '') terminal.print(printable(`  ${id} in ${queue}: not done: ${why}`));
        }
      }
      if (isCancelled) terminal.print(takenBackText(this.#isUnderWay ? [] : answers));
      if (!sum.isKept) terminal.print(NOT_KEPT);
    }
    this.#tellNotMet(sum);
    const isAllDone = sum.notDone === 0 && this.#unmet.length === 0 && !isCancelled && answers.length > 0;
    return this.#finish(answers, isAllDone ? 0 : 1);
  }

  #finish(answers: Answers, code: number): number {
    const { terminal } = this.#context;
    const { json } = this.#options;
    if (json) for (const { answer } of answers) terminal.print(JSON.stringify(answer));
    const isMailOpen = this.#left?.partitions.length !== 0;
    for (const one of this.#group.missing('gateway')) {
      terminal.print(json ? partialJson(one) : partialLine(one, false, isMailOpen));
    }
    for (const [id, how] of this.#silent) {
      const undone = this.#unregistered.get(id);
      const open = undone === undefined ? '' : `; what it had not come to goes on: ${undone}`;
      const error = SILENCES[how] + open;
      if (json) terminal.print(JSON.stringify({ partial: true, member: id, kind: 'gateway', error }));
      else terminal.print(printable(`PARTIAL: ${id}: ${error}`));
    }
    this.#tellLeft();
    const isOpen = this.#unaware.length > 0 || this.#whyNotMet !== '' || this.#whyStanding !== '';
    return this.#isPartial(sumOf(answers)) || isOpen ? NOT_ALL_KNOW : code;
  }

  #tellNotMet({ done }: Sum): void {
    const error = this.#whyNotMet;
    if (error === '') return;
    const { terminal } = this.#context;
    const what = `what was there: ${formatCount(done)} ${this.#options.past}`;
    terminal.print(this.#options.json ? JSON.stringify({ partial: true, rule: null, error })
      : printable(`${what}; what comes is NOT met: ${error}`));
  }

  #tellLeft(): void {
    const { terminal } = this.#context;
    const { json } = this.#options;
    const left = this.#left;
    if (left !== undefined) {
      terminal.print(json ? JSON.stringify({ partial: true, left }) : printable(leftText(left)));
    }
    if (this.#whyStanding !== '') {
      const text = `${this.#id} MAY STAND in the register, cancel it by twinpost queue orders --cancel`;
      terminal.error(printable(`twinpost: ${text}: ${this.#whyStanding}`));
    }
    if (this.#whyNotLeft === '') return;
    if (json) terminal.print(JSON.stringify({ partial: true, left: null, error: this.#whyNotLeft }));
    else {
      terminal.print(printable(`NOT LEFT in the register: ${this.#whyNotLeft}; their mail goes on as if `
        + 'nothing had been ordered'));
    }
  }
}

/** Whom nobody else has told to may have had no answer from us, or have stood still. */
function takenBackText(answers: Answers): string {
  const alone = answers.filter(({ answer }) => answer.unfollowed === true).map(({ id }) => id);
  const why = alone.length === 0 ? ''
    : `; ${alone.join(', ')} heard nothing of it for a while, so it ended nothing anywhere: give it again`;
  return printable(`taken back: the others go on as before${why}`);
}

function tens(seconds: number): number {
  return Math.ceil(seconds / 10) * 10;
}

function isTakenBack(answers: Answers): boolean {
  return answers.some(({ answer: { phase } }) => phase === 'cancelled');
}

function leftText(left: LeftOrderAnswer): string {
  const { order, partitions, holders, until, done } = left;
  const met = done === 0 ? '' : `; to ${counted(done, 'message')} of that it was done by now`;
  if (partitions.length === 0) {
    return `nothing is left to be done: all mail is at gateways that have heard${met}`;
  }
  if (left.in_grace === true) {
    return `NOTHING WAS DONE to mail of ${counted(partitions.length, 'partition')}, whose gateway ended in `
      + `the grace: it is kept back as ${order} until ${timeText(until)}, and goes on then: give it again`;
  }
  const whose = holders.length === 0 ? '' : ` for ${holders.join(', ')}`;
  const what = `mail of ${counted(partitions.length, 'partition')}`;
  return `left in the register as ${order}${whose}: ${what} is dealt with when it is taken over, or they are `
    + `back, until ${timeText(until)}${met}`;
}

/** One that is of a release before does not tell it. */
function unmetBy(answers: Answers): readonly string[] {
  const [first = [], ...others] = answers.map(({ answer }) => answer.ids_unmet ?? []);
  return first.filter((id) => others.every((ids) => ids.includes(id)));
}

function sumOf(answers: Answers): Sum {
  const of = (value: (answer: QueueOrderAnswer) => number): number =>
    answers.reduce((sum, { answer }) => sum + value(answer), 0);
  return {
    matched: of(({ matched }) => matched),
    recipients: of((one) => one.matched_recipients),
    bytes: of((one) => one.matched_bytes),
    keptBack: of((one) => one.kept_back ?? 0),
    done: of((one) => one.done),
    gone: of((one) => one.gone_before),
    waiting: of(({ waiting }) => waiting),
    waitsFor: answers.find(({ answer }) => answer.waits_for !== '')?.answer.waits_for ?? '',
    notDone: of((one) => one.not_done),
    moved: of(({ moved }) => moved),
    unread: of(({ unread }) => unread), isIncomplete: answers.some(({ answer }) => answer.incomplete),
    isKept: answers.every(({ answer }) => answer.kept),
  };
}
