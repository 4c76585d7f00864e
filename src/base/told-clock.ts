/**
 * The wall clock of another process, as it told it: what it shows now is what it showed then and what has
 * passed here since. So times that it wrote can be reckoned with by a machine whose own wall clock differs.
 *
 *   its wall clock   ──── toldMs ─────────────────────► toldMs + (now − atMs)
 *   ours, monotonic  ────  atMs  ─────────────────────►  now
 *
 * The way that the word took makes it late: the holder seems behind by a round trip at most, and what it
 * wrote comes due later, not sooner. A store has one for each process of a gateway, a taker one for each
 * holder that a store tells it of.
 */
export class ToldClock {
  #toldMs = 0;
  #atMs = 0;

  /** Its wall clock showed `wallMs` when ours was at `nowMs`. */
  note(wallMs: number, nowMs: number): void {
    this.#toldMs = wallMs;
    this.#atMs = nowMs;
  }

  /** What it shows now; 0 when it never told. */
  wallMs(nowMs: number): number {
    return this.#toldMs === 0 ? 0 : this.#toldMs + Math.max(0, Math.floor(nowMs - this.#atMs));
  }
}
