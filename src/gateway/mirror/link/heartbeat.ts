/**
 * The rule of life of one connection, and when its next heartbeat is due. It owns the time of the last sign
 * of life; the verdict is the caller's to carry out.
 *
 *   bytes heard ──────────────► fresh: the silence is counted from this tick
 *   tick came late ───────────► fresh: we were not listening, so the silence says nothing about the peer
 *   silent for the timeout ───► suspect: bytes may wait in the kernel; the sockets are polled once more
 *   suspect, still silent ────► give up
 *
 * Any bytes count, not only BEAT: a store that sends acknowledgements as fast as it can is alive, however
 * long its answer to a heartbeat waits behind them. The caller's ticker lets one full poll pass between two
 * ticks (platform/node/clock.ts), which is what the second look relies on.
 *
 * What is not here: leases. Those end on time, late loop or not (docs/GUARANTEES.md "Links").
 */

export interface HeartbeatOptions {
  readonly heartbeatMs: number;
  readonly failoverTimeoutMs: number;
}

export class Heartbeat {
  readonly #heartbeatMs: number;
  readonly #timeoutMs: number;
  #heardMs = 0;
  #sentMs = 0;
  /** Bytes came since the last tick. */
  #heard = false;
  #suspect = false;

  constructor(options: HeartbeatOptions) {
    this.#heartbeatMs = options.heartbeatMs;
    this.#timeoutMs = options.failoverTimeoutMs;
  }

  /** A connection or a step of its handshake begins. The first heartbeat is due an interval later. */
  begin(nowMs: number): void {
    this.#heardMs = nowMs;
    this.#sentMs = nowMs;
    this.#heard = false;
    this.#suspect = false;
  }

  /** Bytes came. No clock is read: the next tick dates them. */
  heard(): void {
    this.#heard = true;
  }

  /** True when the connection must be given up. Once a tick. */
  isGivenUp(nowMs: number, isLate: boolean): boolean {
    if (this.#heard || isLate) {
      this.#heardMs = nowMs;
      this.#heard = false;
      this.#suspect = false;
      return false;
    }
    if (nowMs - this.#heardMs < this.#timeoutMs) return false;
    if (this.#suspect) return true;
    this.#suspect = true;
    return false;
  }

  /** True when a heartbeat must go out now; counts it as sent. */
  takeDue(nowMs: number): boolean {
    if (nowMs - this.#sentMs < this.#heartbeatMs) return false;
    this.#sentMs = nowMs;
    return true;
  }
}
