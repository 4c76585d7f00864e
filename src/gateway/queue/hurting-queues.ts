/**
 * Queues whose mail does not get on although their next hop can be reached: for status and metrics. They are
 * looked at every few seconds, each counts from the look that found it so:
 *
 *   refused   of the recipients tried in the last minute or two its next hop refused half or more for good
 *   deferred  messages wait for another attempt, because the next hop put them off (a strict queue: its
 *             head), and not an operator
 *   growing   it has many more messages than a minute or two ago, and what could start waits
 *   slow      what could start has waited for over a minute
 *
 * A queue is the first of these. Not here: next hops that can't be reached (outages.ts), queues that an
 * operator has stopped (orders/queue-rules.ts). Pure.
 */
import type { HurtingAnswer, HurtingQueueAnswer, QueueProblem } from '../../admin-api/gateway-answers.js';
import type { EntryTable } from './entry-table.js';
import type { MailQueue } from './mail-queue.js';

export interface HurtingQueuesPorts {
  readonly table: EntryTable;
  /** As the registry numbers them. */
  byHandle(): readonly (MailQueue | undefined)[];
  /** Its next hop can't be reached. */
  isDown(queue: MailQueue): boolean;
  /** Unix seconds: of the first message of it that was put off; null: none is. */
  nextTryOf(queue: MailQueue): number | null;
  /** Unix seconds by the clock of arrival times. */
  nowSeconds(): number;
}

const LOOK_MS = 5_000;
/** Of 65,536 at most, in one tick: well below a millisecond. */
const QUEUES_PER_TICK = 1_000;
const MINUTE_MS = 60_000;
const GROWN_RATIO = 1.1;
const GROWN_MIN = 500;
/** What is delivered at full speed waits less, however much comes in. */
const WAITED_SECONDS = 10;
const SLOW_SECONDS = 60;
const REFUSED_SHARE = 0.5;
const REFUSED_MIN = 10;
const SHOWN_MAX = 5;

interface Hurt {
  problem: QueueProblem;
  readonly sinceSeconds: number;
}

interface Lengths {
  /** At the last whole minute, and at the one before. */
  readonly messages: number;
  readonly before: number;
  readonly atMs: number;
}

interface Tried {
  readonly tried: number;
  readonly refused: number;
}

/** Of all queues of a label: one that runs empty may move to another partition. */
interface Refusals {
  /** The one that was tried last. */
  queue: MailQueue;
  /** In this minute, and in the one before. */
  now: Tried;
  before: Tried;
  lastRefusal: string;
  /** Undefined while it is not refused. */
  sinceSeconds: number | undefined;
}

interface Shown {
  readonly queue: MailQueue;
  readonly hurt: Hurt;
  readonly weight: number;
  readonly more?: Tried & Pick<HurtingQueueAnswer, 'last_error'>;
}

const NONE_TRIED: Tried = { tried: 0, refused: 0 };

export class HurtingQueues {
  readonly #ports: HurtingQueuesPorts;
  readonly #hurt = new Map<MailQueue, Hurt>();
  readonly #lengths = new Map<MailQueue, Lengths>();
  /** By label, where recipients were refused in this minute or the one before. */
  readonly #tallies = new Map<string, Refusals>();
  #minuteMs = -Infinity;
  /** The next one of the look under way, and when that began. */
  #handle = 0;
  #lookedMs = -Infinity;

  constructor(ports: HurtingQueuesPorts) {
    this.#ports = ports;
  }

  /** Called with each tick. */
  watch(nowMs: number): void {
    if (this.#handle === 0) {
      if (nowMs - this.#lookedMs < LOOK_MS) return;
      this.#lookedMs = nowMs;
    }
    const byHandle = this.#ports.byHandle();
    const nowSeconds = this.#ports.nowSeconds();
    const end = Math.min(byHandle.length, this.#handle + QUEUES_PER_TICK);
    for (; this.#handle < end; this.#handle++) {
      const queue = byHandle[this.#handle];
      if (queue !== undefined) this.#lookAt(queue, nowMs, nowSeconds);
    }
    if (this.#handle < byHandle.length) return;
    this.#handle = 0;
    for (const known of [this.#hurt, this.#lengths]) {
      for (const queue of known.keys()) {
        if (!isServed(queue) || byHandle[queue.handle] !== queue) known.delete(queue);
      }
    }
    this.#lookAtTallies(nowMs, nowSeconds);
  }

  /** How many there are of each, and those with most messages and recipients refused. */
  answer(): HurtingAnswer {
    const counts: Record<QueueProblem, number> = { refused: 0, deferred: 0, growing: 0, slow: 0 };
    let shown: Shown[] = [];
    const show = (one: Shown): void => {
      counts[one.hurt.problem] += 1;
      const least = shown[SHOWN_MAX - 1];
      if (least !== undefined && one.weight <= least.weight) return;
      shown = [...shown, one].sort((a, b) => b.weight - a.weight).slice(0, SHOWN_MAX);
    };
    for (const [queue, hurt] of this.#hurt) if (isServed(queue)) show({ queue, hurt, weight: queue.length });
    for (const tally of this.#tallies.values()) {
      const { queue, sinceSeconds, lastRefusal } = tally;
      if (sinceSeconds === undefined || queue.partition.isForgotten) continue;
      const tried = sumOf(tally);
      const weight = queue.length + tried.refused;
      const more = { ...tried, last_error: lastRefusal };
      show({ queue, hurt: { problem: 'refused', sinceSeconds }, weight, more });
    }
    const queues = shown.map(({ queue, hurt, more }) =>
      ({ ...answerOf(queue, hurt), next_try: this.#ports.nextTryOf(queue), ...more }));
    return { counts, queues };
  }

  #lookAt(queue: MailQueue, nowMs: number, nowSeconds: number): void {
    this.#count(queue, nowSeconds);
    if (!isServed(queue)) return;
    const problem = this.#problemOf(queue, nowMs, nowSeconds);
    const known = this.#hurt.get(queue);
    if (problem === undefined) this.#hurt.delete(queue);
    else if (known === undefined) this.#hurt.set(queue, { problem, sinceSeconds: nowSeconds });
    else known.problem = problem;
  }

  /** What was tried since the last look. That nobody wants reports is daily life: senders are forged. */
  #count(queue: MailQueue, nowSeconds: number): void {
    const { triedCount: tried, refusedCount: refused, lastRefusal, label } = queue;
    if (tried === 0) return;
    queue.triedCount = 0;
    queue.refusedCount = 0;
    let tally = this.#tallies.get(label);
    if (tally === undefined) {
      if (refused === 0 || queue.route.queueClass !== 'mail') return;
      tally = { queue, now: NONE_TRIED, before: NONE_TRIED, lastRefusal, sinceSeconds: undefined };
      this.#tallies.set(label, tally);
    }
    tally.queue = queue;
    if (refused > 0) tally.lastRefusal = lastRefusal;
    tally.now = { tried: tally.now.tried + tried, refused: tally.now.refused + refused };
    this.#judge(tally, nowSeconds);
  }

  #lookAtTallies(nowMs: number, nowSeconds: number): void {
    const isNewMinute = nowMs - this.#minuteMs >= MINUTE_MS;
    if (isNewMinute) this.#minuteMs = nowMs;
    for (const [label, tally] of this.#tallies) {
      if (isNewMinute) {
        tally.before = tally.now;
        tally.now = NONE_TRIED;
      }
      this.#judge(tally, nowSeconds);
      if (tally.now.refused + tally.before.refused === 0) this.#tallies.delete(label);
    }
  }

  #judge(tally: Refusals, nowSeconds: number): void {
    const { tried, refused } = sumOf(tally);
    const isRefused = refused >= REFUSED_MIN && refused >= REFUSED_SHARE * tried
      && !tally.queue.isSuspended && !this.#ports.isDown(tally.queue);
    tally.sinceSeconds = isRefused ? tally.sinceSeconds ?? nowSeconds : undefined;
  }

  #problemOf(queue: MailQueue, nowMs: number, nowSeconds: number): QueueProblem | undefined {
    const hasGrown = this.#hasGrown(queue, nowMs);
    if (queue.isSuspended || this.#ports.isDown(queue)) return undefined;
    // It is named as refused.
    if (this.#tallies.get(queue.label)?.sinceSeconds !== undefined) return undefined;
    if (putOffCount(queue) > 0 || queue.isBlocked) return 'deferred';
    const first = queue.firstReady;
    const waited = first === 0 ? 0 : nowSeconds - this.#ports.table.arrivalSeconds.get(first);
    if (hasGrown && waited > WAITED_SECONDS) return 'growing';
    return waited > SLOW_SECONDS ? 'slow' : undefined;
  }

  /** Beside what it had one to two minutes ago, or when it was first seen. */
  #hasGrown(queue: MailQueue, nowMs: number): boolean {
    const { length: messages } = queue;
    let known = this.#lengths.get(queue);
    if (known === undefined || nowMs - known.atMs >= MINUTE_MS) {
      known = { messages, before: known?.messages ?? messages, atMs: nowMs };
      this.#lengths.set(queue, known);
    }
    return messages >= known.before + GROWN_MIN && messages >= GROWN_RATIO * known.before;
  }
}

/** It has mail, and its partition is not another process's meanwhile. */
function isServed({ length, partition }: MailQueue): boolean {
  return length > 0 && !partition.isForgotten;
}

function sumOf({ now, before }: Pick<Refusals, 'now' | 'before'>): Tried {
  return { tried: now.tried + before.tried, refused: now.refused + before.refused };
}

/** By the next hop. */
function putOffCount({ deferredCount, delayedCount }: MailQueue): number {
  return deferredCount - delayedCount;
}

function answerOf(queue: MailQueue, { problem, sinceSeconds }: Hurt): HurtingQueueAnswer {
  return {
    queue_name: queue.name, queue_class: queue.route.queueClass, partition: queue.partition.name, problem,
    since: sinceSeconds, messages: queue.length, deferred: putOffCount(queue), bytes: queue.bytes,
    last_error: queue.lastError,
  };
}
