/**
 * Segments made many at once, for memory that is known to come: a recovery of half a gigabyte.
 *
 *   expect(bytes) ─► take ─ one allocation of up to runBytesMax ─► segments, made one after another
 *                                 │ half or less in use: SPARSE ─ compact() moves what is in them ──┐
 *                                 └─ none left in use: given back ◄─────────────────────────────────┘
 *
 * V8 counts each ArrayBuffer as it is made and marks the whole heap again for every 32 to 64 MiB of them:
 * twenty-two times in a recovery of 500 MB, a third of its processor time; with pieces of 64 MiB still a
 * sixth. It does so once an allocation at most. The pages of a run are not touched before a segment is made
 * of them, so they cost nothing until then and are not counted.
 *
 * The first write to each page of fresh memory is a fault, in which the system finds the page and clears it:
 * a quarter of what was left of that time. While something is expected, the next few segments get their pages
 * on another thread:
 *
 *   made ─ touch ─► (the other thread has it) ─ done ─► ready ─► handed out
 *   none ready: the next one is handed out as it is, so nobody waits
 *
 * The price: memory of a run is given back as a whole. Till then its empty segments count as held, and are
 * taken before anything new is made; a run of which half or less is in use is emptied. Emptying takes up to
 * half of a run elsewhere first, so a run is small beside the limit of memory.
 */
import type { Segment } from './segment.js';
import { NO_BUCKET, SegmentKind, SegmentRun } from './segment.js';

/**
 * Has fresh memory made by the system, on another thread: writes zeroes to the bytes, which are zero, and
 * nobody else uses them until it calls back, in a later turn.
 */
export type TouchPages = (bytes: Uint8Array, done: () => void) => void;

/**
 * One allocation at most: two or three marks a recovery of 500 MB. What a run may be beside the limit of
 * memory is its owner's to say.
 */
export const RUN_BYTES_MAX = 256 * 1024 * 1024;
/** For fewer segments than this a run is not worth it. */
const RUN_SEGMENTS_MIN = 16;
/** A run is sparse when at most one in so many of its segments is in use. */
const SPARSE_SHARE = 2;
/**
 * Touched at a time: with segments of 1 MiB about 1.5 ms of the other thread, for which a store on the same
 * processor may have to wait.
 */
const TOUCHED_AT_ONCE = 2;
/**
 * Empty segments, touched or being touched, with which no more are: memory that is held for a moment only.
 */
const TOUCHED_MAX = 8;

export class SegmentRuns {
  /** Segments of all runs. */
  madeCount = 0;
  /** Of these, empty. */
  spareCount = 0;
  private readonly segmentBytes: number;
  private readonly segmentsMax: number;
  private readonly touchPages: TouchPages | undefined;
  private runs: SegmentRun[] = [];
  /** Segments that are expected and in no run yet. */
  private expected = 0;
  private expecting = false;
  private touching = false;

  constructor(segmentBytes: number, runBytesMax: number, touchPages: TouchPages | undefined) {
    this.segmentBytes = segmentBytes;
    this.segmentsMax = Math.ceil(Math.min(runBytesMax, RUN_BYTES_MAX) / segmentBytes);
    this.touchPages = touchPages;
  }

  expect(bytes: number): void {
    this.expected += Math.ceil(bytes / this.segmentBytes);
    this.expecting = true;
  }

  /** What was expected has come, or does not come any more. */
  expectNoMore(): void {
    this.expected = 0;
    this.expecting = false;
    for (const run of this.runs) if (run.inUse === 0) this.drop(run);
  }

  /** An empty segment, or undefined: nothing is expected. */
  take(): Segment | undefined {
    const segment = this.next();
    if (segment !== undefined) this.touchAhead();
    return segment;
  }

  /** Nothing lives in the segment any more. */
  release(segment: Segment, run: SegmentRun): void {
    run.spares.push(segment);
    this.spareCount += 1;
    if (run.inUse === 0) this.drop(run);
    else if (run.segments.length >= RUN_SEGMENTS_MIN && run.inUse * SPARSE_SHARE <= run.segments.length) {
      run.isSparse = true;
    }
  }

  /** A segment that is full or was, in a run that is to be emptied. */
  closedOfSparse(): Segment | undefined {
    for (const run of this.runs) {
      if (!run.isSparse) continue;
      const segment =
        run.segments.find(({ kind, bucket }) => kind === SegmentKind.CLOSED && bucket !== NO_BUCKET);
      if (segment !== undefined) return segment;
    }
    return undefined;
  }

  private next(): Segment | undefined {
    for (const run of this.runs) {
      if (run.isSparse) continue;
      const segment = run.spares.pop();
      if (segment !== undefined) {
        this.spareCount -= 1;
        return segment;
      }
      const fresh = this.handOut(run);
      if (fresh !== undefined) return fresh;
    }
    const run = this.allocate();
    return run === undefined ? undefined : this.handOut(run);
  }

  /** One that never was: ready, or else as it is. */
  private handOut(run: SegmentRun): Segment | undefined {
    let segment = run.ready.shift();
    if (segment !== undefined) this.spareCount -= 1;
    else {
      segment = run.make();
      if (segment === undefined) return undefined;
      this.madeCount += 1;
    }
    run.segments.push(segment);
    return segment;
  }

  /** The next ones get their pages while those before them are filled. */
  private touchAhead(): void {
    if (this.touchPages === undefined || this.touching || !this.expecting
      || this.spareCount > TOUCHED_MAX - TOUCHED_AT_ONCE) {
      return;
    }
    const run = this.runs.find(({ isSparse, made, count }) => !isSparse && made < count) ?? this.allocate();
    if (run === undefined) return;
    const segments: Segment[] = [];
    while (segments.length < TOUCHED_AT_ONCE) {
      const segment = run.make();
      if (segment === undefined) break;
      segments.push(segment);
    }
    this.madeCount += segments.length;
    this.spareCount += segments.length;
    this.touching = true;
    this.touchPages(run.bytesOfLast(segments.length), () => {
      this.touching = false;
      run.ready.push(...segments);
      this.touchAhead();
    });
  }

  /**
   * A run for what is expected; undefined when that is little, or the system gives no such piece: what comes
   * is then made as ever.
   */
  private allocate(): SegmentRun | undefined {
    const count = Math.min(this.expected, this.segmentsMax);
    if (count < RUN_SEGMENTS_MIN) return undefined;
    try {
      const run = new SegmentRun(this.segmentBytes, count);
      this.expected -= count;
      this.runs.push(run);
      return run;
    } catch {
      this.expected = 0;
      return undefined;
    }
  }

  /** None of it is in use. What the other thread still has of it is forgotten with it. */
  private drop(run: SegmentRun): void {
    this.runs = this.runs.filter((other) => other !== run);
    this.spareCount -= run.made;
    this.madeCount -= run.made;
  }
}
