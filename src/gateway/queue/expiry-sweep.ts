/**
 * Finds entries whose time is up, those whose delay is to be told (delay-reports.ts), and those that wait for
 * a next hop without a word of it in the log (untold-waits.ts): a walk through the rows of all queues, a part
 * of it with each tick, round and round. So it depends on no retry and no order: mail, reports and mail of
 * other gateways lie side by side, each with a lifetime of its own, and the walk finds each within ROUND_MS.
 * Delays have a walk of their own, which stops at those that it can have told in a tick and goes on behind
 * them with the next: it comes to all of them, though the first ones stay, and keeps no expiry waiting.
 *
 *   rows   1 2 3 4 … highest           reads of flat columns: 17,000 of ten million in a tick and walk,
 *              └─ part ─┘└ next part      0.1 ms; 0.3 where all of them wait untried
 *
 * What an entry's state makes of it: interruptions.ts. Times are of this process's frame (wall-frame.ts),
 * which nobody can set. When the system's wall clock is set all the same, one of the two may be wrong, and
 * what was taken back from the stores was reckoned by one of them: nothing expires until the longest retry
 * has passed.
 */
import type { EventLog } from '../../platform/ports.js';
import type { EntryTable } from './entry-table.js';
import { EntryState } from './entry-table.js';
import { isResting } from './interruptions.js';
import type { WallFrame } from './wall-frame.js';

/** Bound of a round however many rows there are. The tick comes ten times a second. */
const ROUND_MS = 60_000;
const TICK_MS = 100;
/** A small table is walked through with each tick. */
const ROWS_PER_TICK_MIN = 4096;
/** Each makes a change and a report. */
const EXPIRED_PER_TICK = 500;
/** Each may make a report. Those for which there is no room are met in each round. */
const DELAYS_PER_TICK = 50;
/** A restart of a next hop is not worth a line for each message that waits. */
const UNTOLD_SECONDS = 30;
/** Lines of the log in a tick: a million messages for a dead host take eight minutes. */
const WAITS_PER_TICK = 200;
/** Clocks are slewed by far less within a tick; a clock that differs by less moves nothing that matters. */
const STEP_MS = 1000;
const TEXT = 'the wall clock was set: '
  + 'due times stay as they are, and nothing expires until the longest retry has passed';

export interface ExpirySweepPorts {
  readonly frame: WallFrame;
  readonly table: EntryTable;
  readonly log: EventLog;
  /** The time of an entry that rests is up. It may stay all the same, and is met in the next round. */
  onExpired(row: number): void;
  /** It was never tried, and waits still. So many lines were written; 0: it is to be looked at again. */
  onWaiting(row: number): number;
  /** Nobody holds it, and it has waited for delayMs. False: it is to be looked at again. */
  onDelayed(row: number): boolean;
}

export interface ExpirySweepOptions {
  readonly longestRetryMs: number;
  /** Age at which a delay is told; 0: never. */
  readonly delayMs: number;
}

export class ExpirySweep {
  readonly #options: ExpirySweepOptions;
  readonly #ports: ExpirySweepPorts;
  #row = 0;
  #delayRow = 0;
  /** As the options have it; read once a tick. */
  #delaySeconds = Infinity;
  #aheadMs = 0;
  #restsUntilMs = 0;
  #lastMs = 0;

  /** `options` may change. */
  constructor(options: ExpirySweepOptions, ports: ExpirySweepPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  tick(nowMs: number): void {
    this.#lastMs = nowMs;
    const { delayMs } = this.#options;
    this.#delaySeconds = delayMs === 0 ? Infinity : Math.ceil(delayMs / 1000);
    this.#watchClock(nowMs);
    if (nowMs < this.#restsUntilMs) return;
    const { table } = this.#ports;
    const nowSeconds = Math.floor(this.#ports.frame.wallMs() / 1000);
    const { highestRow } = table;
    const rowsOfRound = Math.ceil((highestRow * TICK_MS) / ROUND_MS);
    const rowsMax = Math.min(highestRow, Math.max(ROWS_PER_TICK_MIN, rowsOfRound));
    if (this.#delaySeconds !== Infinity) this.#findDelays(nowSeconds, rowsMax);
    let left = EXPIRED_PER_TICK;
    let waitsLeft = WAITS_PER_TICK;
    for (let i = 0; i < rowsMax && left > 0; i++) {
      this.#row = this.#row >= highestRow ? 1 : this.#row + 1;
      if (waitsLeft > 0 && this.#isUntold(nowSeconds)) waitsLeft -= this.#ports.onWaiting(this.#row);
      if (table.expirySeconds.get(this.#row) > nowSeconds || !isResting(table.state(this.#row))) continue;
      left -= 1;
      this.#ports.onExpired(this.#row);
    }
  }

  /** What an expiry, or a delay, waited for is here: it may be gone again when the walk comes by. */
  look(row: number): void {
    const { table, frame } = this.#ports;
    if (this.#lastMs < this.#restsUntilMs) return;
    const nowSeconds = Math.floor(frame.wallMs() / 1000);
    if (table.expirySeconds.get(row) <= nowSeconds) {
      if (isResting(table.state(row))) this.#ports.onExpired(row);
    } else if (this.#isDelayed(row, nowSeconds)) this.#onDelayed(row);
  }

  #findDelays(nowSeconds: number, rowsMax: number): void {
    const { table } = this.#ports;
    const { highestRow } = table;
    let left = DELAYS_PER_TICK;
    for (let i = 0; i < rowsMax && left > 0; i++) {
      const row = this.#delayRow >= highestRow ? 1 : this.#delayRow + 1;
      this.#delayRow = row;
      if (!this.#isDelayed(row, nowSeconds)) continue;
      left -= 1;
      this.#onDelayed(row);
    }
  }

  #onDelayed(row: number): void {
    if (this.#ports.onDelayed(row)) this.#ports.table.delaySettled.set(row, 1);
  }

  /** What is held is delayed by whoever holds it: it takes no turn from others. */
  #isDelayed(row: number, nowSeconds: number): boolean {
    const { table } = this.#ports;
    if (table.arrivalSeconds.get(row) + this.#delaySeconds > nowSeconds) return false;
    if (table.delaySettled.get(row) !== 0 || table.expirySeconds.get(row) <= nowSeconds) return false;
    const state = table.state(row);
    return state === EntryState.READY || state === EntryState.DEFERRED;
  }

  #isUntold(nowSeconds: number): boolean {
    const { table } = this.#ports;
    return table.arrivalSeconds.get(this.#row) + UNTOLD_SECONDS <= nowSeconds
      && table.waitTold.get(this.#row) === 0 && table.attempts.get(this.#row) === 0
      && table.state(this.#row) === EntryState.READY;
  }

  #watchClock(nowMs: number): void {
    const aheadMs = this.#ports.frame.aheadMs();
    const stepMs = aheadMs - this.#aheadMs;
    this.#aheadMs = aheadMs;
    if (Math.abs(stepMs) < STEP_MS) return;
    const { longestRetryMs } = this.#options;
    this.#restsUntilMs = nowMs + longestRetryMs;
    this.#ports.log.warn('clock', TEXT, {
      step_s: Math.round(stepMs / 1000), rests_s: Math.round(longestRetryMs / 1000),
    });
  }
}
