/**
 * Segments made many at once, for memory that is known to come: a recovery of half a gigabyte.
 *
 *   expect(bytes) ─► take ─ one allocation of up to runBytesMax ─► segments, made one after another
 *                                 │ half or less in use: SPARSE ─ compact() moves what is in them ─┐
 *                                 └─ none left in use ◄────────────────────────────────────────────┘ ─► given back
 *
 * V8 counts each ArrayBuffer as it is made and marks the whole heap again for every 32 to 64 MiB of them: twenty-two
 * times in a recovery of 500 MB, a third of its processor time. It does so once an allocation at most. The pages
 * of a run are not touched before a segment is made of them, so they cost nothing until then and are not counted.
 *
 * The price: memory of a run is given back as a whole. Till then its empty segments count as held, and are taken
 * before anything new is made; a run of which half or less is in use is emptied. Emptying takes up to half of a run
 * elsewhere first, so a run is small beside the limit of memory.
 */
import type { Segment } from './segment.js';
import { NO_BUCKET, SegmentKind, SegmentRun } from './segment.js';

/** One allocation at most: eight marks a recovery of 500 MB. */
export const RUN_BYTES_MAX = 64 * 1024 * 1024;
/** For fewer segments than this a run is not worth it. */
const RUN_SEGMENTS_MIN = 16;
/** A run is sparse when at most one in so many of its segments is in use. */
const SPARSE_SHARE = 2;

export class SegmentRuns {
  /** Segments of all runs. */
  madeCount = 0;
  /** Of these, empty. */
  spareCount = 0;
  private readonly segmentBytes: number;
  private readonly segmentsMax: number;
  private runs: SegmentRun[] = [];
  private expected = 0;

  constructor(segmentBytes: number, runBytesMax: number) {
    this.segmentBytes = segmentBytes;
    this.segmentsMax = Math.ceil(Math.min(runBytesMax, RUN_BYTES_MAX) / segmentBytes);
  }

  expect(bytes: number): void {
    this.expected += Math.ceil(bytes / this.segmentBytes);
  }

  /** What was expected has come, or does not come any more. */
  expectNoMore(): void {
    this.expected = 0;
  }

  /** An empty segment, or undefined: nothing is expected. */
  take(): Segment | undefined {
    for (const run of this.runs) {
      if (run.isSparse) continue;
      const spare = run.spares.pop();
      if (spare !== undefined) {
        this.spareCount -= 1;
        return spare;
      }
      const made = this.make(run);
      if (made !== undefined) return made;
    }
    const count = Math.min(this.expected, this.segmentsMax);
    if (count < RUN_SEGMENTS_MIN) return undefined;
    const run = this.allocate(count);
    if (run === undefined) return undefined;
    this.runs.push(run);
    return this.make(run);
  }

  /** Nothing lives in the segment any more. */
  release(segment: Segment, run: SegmentRun): void {
    run.spares.push(segment);
    this.spareCount += 1;
    if (run.inUse === 0) {
      this.runs = this.runs.filter((other) => other !== run);
      this.spareCount -= run.spares.length;
      this.madeCount -= run.segments.length;
    } else if (run.segments.length >= RUN_SEGMENTS_MIN && run.inUse * SPARSE_SHARE <= run.segments.length) run.isSparse = true;
  }

  /** A segment that is full or was, in a run that is to be emptied. */
  closedOfSparse(): Segment | undefined {
    for (const run of this.runs) {
      if (!run.isSparse) continue;
      const segment = run.segments.find(({ kind, bucket }) => kind === SegmentKind.CLOSED && bucket !== NO_BUCKET);
      if (segment !== undefined) return segment;
    }
    return undefined;
  }

  /** Undefined when the system gives no such piece: what comes is then made as ever. */
  private allocate(count: number): SegmentRun | undefined {
    try {
      const run = new SegmentRun(this.segmentBytes, count);
      this.expected -= count;
      return run;
    } catch {
      this.expected = 0;
      return undefined;
    }
  }

  private make(run: SegmentRun): Segment | undefined {
    const segment = run.make();
    if (segment !== undefined) this.madeCount += 1;
    return segment;
  }
}
