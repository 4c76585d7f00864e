/**
 * Queues whose mail does not get on although their next hop can be reached: for status and metrics. They are
 * looked at every few seconds, each counts from the look that found it so:
 *
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
const GROWTH_MS = 60_000;
const GROWN_RATIO = 1.1;
const GROWN_MIN = 500;
/** What is delivered at full speed waits less, however much comes in. */
const WAITED_SECONDS = 10;
const SLOW_SECONDS = 60;
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

export class HurtingQueues {
  readonly #ports: HurtingQueuesPorts;
  readonly #hurt = new Map<MailQueue, Hurt>();
  readonly #lengths = new Map<MailQueue, Lengths>();
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
      if (queue !== undefined && isServed(queue)) this.#lookAt(queue, nowMs, nowSeconds);
    }
    if (this.#handle < byHandle.length) return;
    this.#handle = 0;
    for (const known of [this.#hurt, this.#lengths]) {
      for (const queue of known.keys()) {
        if (!isServed(queue) || byHandle[queue.handle] !== queue) known.delete(queue);
      }
    }
  }

  /** How many there are of each, and those with most messages. */
  answer(): HurtingAnswer {
    const counts: Record<QueueProblem, number> = { deferred: 0, growing: 0, slow: 0 };
    let shown: (readonly [MailQueue, Hurt])[] = [];
    for (const one of this.#hurt) {
      if (!isServed(one[0])) continue;
      counts[one[1].problem] += 1;
      const least = shown[SHOWN_MAX - 1];
      if (least !== undefined && one[0].length <= least[0].length) continue;
      shown = [...shown, one].sort(([a], [b]) => b.length - a.length).slice(0, SHOWN_MAX);
    }
    const queues = shown.map(([queue, hurt]) =>
      ({ ...answerOf(queue, hurt), next_try: this.#ports.nextTryOf(queue) }));
    return { counts, queues };
  }

  #lookAt(queue: MailQueue, nowMs: number, nowSeconds: number): void {
    const problem = this.#problemOf(queue, nowMs, nowSeconds);
    const known = this.#hurt.get(queue);
    if (problem === undefined) this.#hurt.delete(queue);
    else if (known === undefined) this.#hurt.set(queue, { problem, sinceSeconds: nowSeconds });
    else known.problem = problem;
  }

  #problemOf(queue: MailQueue, nowMs: number, nowSeconds: number): QueueProblem | undefined {
    const hasGrown = this.#hasGrown(queue, nowMs);
    if (queue.isSuspended || this.#ports.isDown(queue)) return undefined;
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
    if (known === undefined || nowMs - known.atMs >= GROWTH_MS) {
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
