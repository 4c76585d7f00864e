/**
 * Empty segments that a burst has needed, kept for the next one.
 *
 *   a burst is over ─► offer ─ room ─► kept ─ take ─► the next burst
 *                        └ no room       └ nobody needed it for KEPT_MS ─► given back
 *
 * Giving them back at once gains nothing and costs twice. The collector finds them only when it next looks
 * for the memory of buffers, which is in the next burst. And the system's allocator (glibc) keeps blocks of
 * this size in one heap that it can shorten only at its end, as soon as it has seen one of them freed: new
 * segments go where some are still to be found, and the heap gets longer with each burst.
 *
 * What is kept is not in use: whoever owns the limit of memory says how much may be kept beside it, and when
 * none.
 */
import type { Segment } from './segment.js';

/**
 * So long a segment is kept that nobody needs: bursts that come every few minutes find what the last one
 * left.
 */
export const KEPT_MS = 5 * 60_000;

export class SegmentStock {
  private readonly segmentBytes: number;
  /** The last one kept is the first one taken: its pages are the warmest. */
  private readonly kept: Segment[] = [];
  private countMax = 0;
  /** How many of them nobody has needed since `sinceMs`: the first in the list. */
  private unneeded = 0;
  private sinceMs = 0;

  constructor(segmentBytes: number) {
    this.segmentBytes = segmentBytes;
  }

  get bytes(): number {
    return this.kept.length * this.segmentBytes;
  }

  offer(segment: Segment): void {
    if (this.kept.length < this.countMax) this.kept.push(segment);
  }

  take(): Segment | undefined {
    const segment = this.kept.pop();
    if (this.kept.length < this.unneeded) this.unneeded = this.kept.length;
    return segment;
  }

  /** Called many times a minute: from now on so many bytes may be kept. */
  tick(nowMs: number, bytesMax: number): void {
    this.countMax = Math.floor(bytesMax / this.segmentBytes);
    if (this.kept.length > this.countMax) this.drop(this.kept.length - this.countMax);
    if (nowMs - this.sinceMs < KEPT_MS) return;
    this.drop(this.unneeded);
    this.unneeded = this.kept.length;
    this.sinceMs = nowMs;
  }

  private drop(count: number): void {
    this.kept.splice(0, count);
    this.unneeded = Math.max(0, this.unneeded - count);
  }
}

/**
 * Of the limit of memory, what may be kept at most; and what is used and kept together. Past the latter, what
 * is kept goes.
 */
const KEPT_SHARE = 1 / 8;
const USED_AND_KEPT_SHARE = 1 / 2;

/**
 * What may be kept beside so much in use. Far from the limit: what others take of it in a moment is there in
 * any case.
 */
export function stockBytesMax(limitBytes: number, usedBytes: number): number {
  return Math.max(0, Math.min(limitBytes * KEPT_SHARE, limitBytes * USED_AND_KEPT_SHARE - usedBytes));
}
