/**
 * One block of memory that holds records (segments.ts), and the run that it may be a part of: many segments
 * made by one allocation (segment-runs.ts). Plain data; their owners are segment-lists.ts and
 * segment-runs.ts.
 */

export const SegmentKind = {
  /** Records are appended. */
  OPEN: 0,
  /** Full; stands in the list of its live bytes. */
  CLOSED: 1,
  /** Being emptied by compact(). */
  VICTIM: 2,
  /** Holds one large record. */
  OWN: 3,
} as const;
export type SegmentKind = (typeof SegmentKind)[keyof typeof SegmentKind];

export const NO_BUCKET = -1;

export class Segment {
  readonly bytes: Uint8Array;
  /** The same bytes, for the headers. */
  readonly words: Uint32Array;
  /** Made together with others. */
  readonly run: SegmentRun | undefined;
  number = 0;
  kind: SegmentKind = SegmentKind.OPEN;
  /** Bytes appended so far. */
  filled = 0;
  /** Bytes of records that live. */
  live = 0;
  bucket = NO_BUCKET;
  previous: Segment | undefined = undefined;
  next: Segment | undefined = undefined;

  /** `bytes` of the buffer from `offset` on; the buffer of a run holds many segments. */
  constructor(
    bytes: number, buffer = new ArrayBuffer(bytes), offset = 0, run: SegmentRun | undefined = undefined,
  ) {
    this.bytes = new Uint8Array(buffer, offset, bytes);
    this.words = new Uint32Array(buffer, offset, bytes >>> 2);
    this.run = run;
  }
}

/** Segments out of one buffer, made one after another. Their memory goes back when none of them is in use. */
export class SegmentRun {
  readonly count: number;
  /** Handed out at some time. */
  readonly segments: Segment[] = [];
  /** Of these, holding nothing now. */
  readonly spares: Segment[] = [];
  /** Made ahead, with their pages; the next ones to be handed out. */
  readonly ready: Segment[] = [];
  /** So few are in use that what is in them is worth moving. It takes no more. */
  isSparse = false;
  /** Segments that exist: handed out, ready, or getting their pages. */
  made = 0;
  private readonly buffer: ArrayBuffer;
  private readonly segmentBytes: number;

  constructor(segmentBytes: number, count: number) {
    this.segmentBytes = segmentBytes;
    this.count = count;
    this.buffer = new ArrayBuffer(segmentBytes * count);
  }

  get inUse(): number {
    return this.segments.length - this.spares.length;
  }

  /** The next one, whose pages nobody has touched yet; undefined when all are made. */
  make(): Segment | undefined {
    if (this.made === this.count) return undefined;
    const segment = new Segment(this.segmentBytes, this.buffer, this.made * this.segmentBytes, this);
    this.made += 1;
    return segment;
  }

  /** The bytes of the last so many that were made. */
  bytesOfLast(count: number): Uint8Array {
    return new Uint8Array(this.buffer, (this.made - count) * this.segmentBytes, count * this.segmentBytes);
  }
}
