/** Reports that the orders of a gateway have made, all together: so many a second, and no burst. Pure. */
const REPORTS_PER_SECOND = 1_000;
/** Of a tick or two. */
const BURST_MS = 100;

export class ReportPace {
  /** Up to when reports that were made have used up their time. */
  #paidMs = -Infinity;

  /** False: none may be made now. */
  take(nowMs: number): boolean {
    if (this.#paidMs > nowMs) return false;
    this.#paidMs = Math.max(this.#paidMs, nowMs - BURST_MS) + 1000 / REPORTS_PER_SECOND;
    return true;
  }
}
