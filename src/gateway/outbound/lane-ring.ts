/**
 * The queues of one next hop that may have something to start, in the order in which they are served.
 *
 *   add (ready; a delivery ended; a tick) ─► behind all others ─► first: take ─► served ─► more: added again
 *                                                                   └─ nothing to start: out until added
 *
 * So neither who is next nor how much could start depends on how many queues lead there: a pool asks both
 * with every message. A doubly linked list through the lanes; a lane is in one ring at most, that of its
 * pool.
 */
import type { Lane } from './lane.js';

export class LaneRing {
  #first: Lane | undefined;
  #last: Lane | undefined;

  /** Behind all others; one that is in already keeps its place. */
  add(lane: Lane): void {
    if (lane.isInTurn) return;
    lane.isInTurn = true;
    lane.before = this.#last;
    if (this.#last === undefined) this.#first = lane;
    else this.#last.behind = lane;
    this.#last = lane;
  }

  remove(lane: Lane): void {
    if (!lane.isInTurn) return;
    lane.isInTurn = false;
    const { before, behind } = lane;
    if (before === undefined) this.#first = behind;
    else before.behind = behind;
    if (behind === undefined) this.#last = before;
    else behind.before = before;
    lane.before = undefined;
    lane.behind = undefined;
  }

  /** The first that has something to start, out of the ring. */
  take(): Lane | undefined {
    for (let lane = this.#first; lane !== undefined; lane = this.#first) {
      this.remove(lane);
      if (lane.startable > 0) return lane;
    }
    return undefined;
  }

  /** How many deliveries could start, counted up to `most`. */
  startable(most: number): number {
    let count = 0;
    for (let lane = this.#first; lane !== undefined && count < most;) {
      const { startable, behind } = lane;
      if (startable === 0) this.remove(lane);
      count += startable;
      lane = behind;
    }
    return Math.min(count, most);
  }
}
