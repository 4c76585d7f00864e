/**
 * The blocks under segments.ts: which exist, which are spare, and which closed ones are sparse.
 *
 *   take ──► OPEN ── close ──► CLOSED ── takeSparsest ──► VICTIM ── release ──► spare or given back
 *              ▲                  └── release (all freed) ──────────────────────►  │
 *              └───────────────────────────── take ◄───────────────────────────────┘
 *   takeOwn ──► OWN ── release ──► given back
 *
 * Closed segments stand in one of 17 doubly linked lists by live bytes in sixteenths. A segment changes
 * lists at most 16 times in its life, however many records it has, and the sparsest is found by looking
 * at most at the heads of the lists.
 *
 * Segments of a run (segment-runs.ts) go back to it. Others that are given back may be kept for the next
 * burst (segment-stock.ts): they count as held no more.
 *
 * One object a segment: even 30,000 of them (30 GiB) are nothing to the collector. The array of
 * segments costs 8 bytes a MiB.
 */
import { invariant } from './invariant.js';
import { NO_BUCKET, Segment, SegmentKind } from './segment.js';
import { SegmentRuns } from './segment-runs.js';
import type { TouchPages } from './segment-runs.js';
import { SegmentStock } from './segment-stock.js';

const BUCKETS_PER_SEGMENT_LOG2 = 4;
const BUCKETS = (1 << BUCKETS_PER_SEGMENT_LOG2) + 1;
/**
 * Lists below this one are worth emptying: live < 14/16. A full segment has at least 7/8 filled, so one
 * with nothing freed never counts; and segments all above it hold at most 16/14 = 1.14 × the live bytes.
 */
const SPARSE_BUCKETS = 14;

export class SegmentLists {
  /** Stands for "no segment open yet": nothing fits in, and closing it does nothing. */
  readonly nothing = new Segment(0);
  private readonly segmentBytes: number;
  private readonly spareMax: number;
  private readonly segmentsMax: number;
  private readonly bucketShift: number;
  private readonly segments: (Segment | undefined)[] = [];
  private readonly freeNumbers: number[] = [];
  private readonly spares: Segment[] = [];
  /** How many of them nobody has needed since dropUnused(). */
  private unused = 0;
  private readonly heads: (Segment | undefined)[] = new Array<Segment | undefined>(BUCKETS).fill(undefined);
  readonly stock: SegmentStock;
  private readonly runs: SegmentRuns;
  /** Of segments that are in no run. */
  private held = 0;

  constructor(
    segmentBytes: number, spareMax: number, segmentsMax: number, runBytesMax: number,
    touchPages: TouchPages | undefined,
  ) {
    this.segmentBytes = segmentBytes;
    this.runs = new SegmentRuns(segmentBytes, runBytesMax, touchPages);
    this.stock = new SegmentStock(segmentBytes);
    this.spareMax = spareMax;
    this.segmentsMax = segmentsMax;
    this.bucketShift = 31 - Math.clz32(segmentBytes) - BUCKETS_PER_SEGMENT_LOG2;
  }

  /** Bytes of all segments, spare ones included. */
  get heldBytes(): number {
    return this.held + this.runs.madeCount * this.segmentBytes;
  }

  get spareBytes(): number {
    return (this.spares.length + this.runs.spareCount) * this.segmentBytes;
  }

  at(number: number): Segment {
    const segment = this.segments[number];
    if (segment === undefined) invariant(false, 'a slot names a segment that exists');
    return segment;
  }

  /** So many bytes of records are about to come. */
  expectNoMore(): void {
    this.runs.expectNoMore();
  }

  expect(bytes: number): void {
    this.runs.expect(bytes);
  }

  /** An empty open segment. */
  take(): Segment {
    const segment = this.spares.pop() ?? this.runs.take() ?? this.fromStock()
      ?? this.create(this.segmentBytes);
    this.unused = Math.min(this.unused, this.spares.length);
    segment.kind = SegmentKind.OPEN;
    segment.filled = 0;
    this.register(segment);
    return segment;
  }

  /** A block for one record. */
  takeOwn(bytes: number): Segment {
    const segment = this.create(bytes);
    segment.kind = SegmentKind.OWN;
    this.register(segment);
    return segment;
  }

  /** No more is appended: the segment may be compacted from now on. */
  close(segment: Segment): void {
    if (segment === this.nothing) return;
    segment.kind = SegmentKind.CLOSED;
    if (segment.live === 0) this.release(segment);
    else this.link(segment, segment.live >>> this.bucketShift);
  }

  /** Records of the segment were freed. */
  onLess(segment: Segment): void {
    const bucket = segment.live >>> this.bucketShift;
    if (segment.bucket === bucket || segment.kind !== SegmentKind.CLOSED) return;
    this.unlink(segment);
    this.link(segment, bucket);
  }

  /** The closed segment with the least live bytes, if it is worth emptying. */
  takeSparsest(): Segment | undefined {
    for (let bucket = 0; bucket < SPARSE_BUCKETS; bucket++) {
      const segment = this.heads[bucket];
      if (segment === undefined) continue;
      this.unlink(segment);
      segment.kind = SegmentKind.VICTIM;
      return segment;
    }
    return undefined;
  }

  /** A closed segment of a run that is to be given back. */
  takeOfSparseRun(): Segment | undefined {
    const segment = this.runs.closedOfSparse();
    if (segment === undefined) return undefined;
    this.unlink(segment);
    segment.kind = SegmentKind.VICTIM;
    return segment;
  }

  /** The segment is empty: keep it for the next take() or give it back. */
  release(segment: Segment): void {
    invariant(segment.live === 0, 'a segment is given back when nothing lives in it');
    if (segment.bucket !== NO_BUCKET) this.unlink(segment);
    this.segments[segment.number] = undefined;
    this.freeNumbers.push(segment.number);
    if (segment.run !== undefined) this.runs.release(segment, segment.run);
    else if (segment.kind === SegmentKind.OWN) this.held -= segment.bytes.length;
    else if (this.spares.length < this.spareMax) this.spares.push(segment);
    else this.giveBack(segment);
  }

  /** Gives spares back but for so many. */
  dropSpares(kept: number): void {
    while (this.spares.length > kept) {
      const spare = this.spares.pop();
      if (spare !== undefined) this.giveBack(spare);
    }
  }

  /** Gives the spares back that nobody has needed since the last call, but for so many. */
  dropUnused(kept: number): void {
    this.dropSpares(Math.max(kept, this.spares.length - this.unused));
    this.unused = this.spares.length;
  }

  private giveBack(segment: Segment): void {
    this.held -= this.segmentBytes;
    this.stock.offer(segment);
  }

  private fromStock(): Segment | undefined {
    const segment = this.stock.take();
    if (segment !== undefined) this.held += this.segmentBytes;
    return segment;
  }

  private create(bytes: number): Segment {
    this.held += bytes;
    return new Segment(bytes);
  }

  private register(segment: Segment): void {
    const number = this.freeNumbers.pop() ?? this.segments.length;
    invariant(
      number < this.segmentsMax, 'segments stay within what the slot table can name: make them larger',
    );
    segment.number = number;
    this.segments[number] = segment;
  }

  private link(segment: Segment, bucket: number): void {
    const head = this.heads[bucket];
    segment.bucket = bucket;
    segment.previous = undefined;
    segment.next = head;
    if (head !== undefined) head.previous = segment;
    this.heads[bucket] = segment;
  }

  private unlink(segment: Segment): void {
    if (segment.previous !== undefined) segment.previous.next = segment.next;
    else this.heads[segment.bucket] = segment.next;
    if (segment.next !== undefined) segment.next.previous = segment.previous;
    segment.bucket = NO_BUCKET;
    segment.previous = undefined;
    segment.next = undefined;
  }
}
