/**
 * The rule of life of one connection, and when its next heartbeat is due. It owns the time of the last sign
 * of life; the verdict is the caller's to carry out.
 *
 *   bytes heard ──────────────► fresh: the silence is counted from this tick
 *   tick came late ───────────► fresh: we were not listening, so the silence says nothing about the peer
 *   silent for failover_timeout, while the other path spoke all along ──► suspect
 *   silent for failover_timeout + stall, whatever the other path does ──► suspect
 *   suspect: bytes may wait in the kernel; the sockets are polled once more ──► give up
 *
 * Silence of one path says that the path is broken only as long as the other one speaks. A store that stands
 * still is silent on both, and neither is better: it gets the stall that a lease allows for (decision 0007).
 * So that a store which wakes up is not condemned by the path whose answers are read first, silence is
 * counted from where the other one's present speech began.
 *
 *   A  ●  ●  ●  ·  ·  ·  ·  ·  ·  ·  ·          ● bytes heard      · nothing
 *   B  ●  ●  ●  ●  ●  ●  ●  ●  ●  ●  ●          A is given up after failover_timeout
 *   A  ●  ●  ●  ·  ·  ·  ·  ·  ·  ·  ·
 *   B  ●  ●  ●  ·  ·  ·  ·  ·  ·  ●  ●          only 2 intervals of silence count against A
 *
 * Any bytes count, not only BEAT: a store that sends acknowledgements as fast as it can is alive, however
 * long its answer to a heartbeat waits behind them. The caller's ticker lets one full poll pass between two
 * ticks (platform/node/clock.ts), which is what the second look relies on.
 *
 * What is not here: leases (recovery/ownership/link-lease.ts). Those end on time, late loop or not.
 */

export interface HeartbeatOptions {
  readonly heartbeatMs: number;
  readonly failoverTimeoutMs: number;
  readonly stallMs: number;
}

/** In place of the other path's speech: a step of a handshake has its time, whatever the other path does. */
export const ALWAYS = -Infinity;
/** There is no other path, or it does not speak. */
export const NEVER = Infinity;

export class HeartbeatTimer {
  readonly #options: HeartbeatOptions;
  #heardMs = 0;
  /** Begin of the present stretch without a long gap. */
  #speaksSinceMs = 0;
  #sentMs = 0;
  /** Bytes came since the last tick. */
  #heard = false;
  #suspect = false;

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  /** A connection or a step of its handshake begins. The first heartbeat is due an interval later. */
  begin(nowMs: number): void {
    this.#heardMs = nowMs;
    this.#speaksSinceMs = nowMs;
    this.#sentMs = nowMs;
    this.#heard = false;
    this.#suspect = false;
  }

  /** Bytes came. No clock is read: the next tick dates them. */
  heard(): void {
    this.#heard = true;
  }

  /** Dates what was heard. Once a tick, on both paths before either is judged. */
  listen(nowMs: number, isLate: boolean): void {
    if (!this.#heard && !isLate) return;
    if (!isLate && nowMs - this.#heardMs > this.#gapMs) this.#speaksSinceMs = nowMs;
    this.#heardMs = nowMs;
    this.#heard = false;
    this.#suspect = false;
  }

  /** Since when it has been heard without a long gap; NEVER when it is silent now. */
  speaksSinceMs(nowMs: number): number {
    return nowMs - this.#heardMs > this.#gapMs ? NEVER : this.#speaksSinceMs;
  }

  silentMs(nowMs: number): number {
    return nowMs - this.#heardMs;
  }

  /** True when the connection must be given up. Once a tick. */
  isGivenUp(nowMs: number, otherSpeaksSinceMs: number): boolean {
    const { failoverTimeoutMs, stallMs } = this.#options;
    const brokenMs = nowMs - Math.max(this.#heardMs, otherSpeaksSinceMs);
    const isSilent = brokenMs >= failoverTimeoutMs || this.silentMs(nowMs) >= failoverTimeoutMs + stallMs;
    if (isSilent && this.#suspect) return true;
    this.#suspect = isSilent;
    return false;
  }

  /** True when a heartbeat must go out now; counts it as sent. */
  takeDue(nowMs: number): boolean {
    if (nowMs - this.#sentMs < this.#options.heartbeatMs) return false;
    this.#sentMs = nowMs;
    return true;
  }

  /**
   * A gap longer than this is silence. Between an interval of heartbeats, which is no silence, and the
   * timeout less an interval, which is what the later of two paths shows when both fell silent at once
   * (failover_timeout ≥ 4 × heartbeat, config/checks.ts).
   */
  get #gapMs(): number {
    return this.#options.failoverTimeoutMs / 2;
  }
}
