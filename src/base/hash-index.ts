/**
 * A hash table from (key, salt) to a row of flat columns, without an object or a pause for any size.
 *
 *   bucket ──► row ──► row ──► end    columns, aligned with the caller's rows: key f64, salt u32, link u32
 *
 * Linear hashing (Litwin 1980): the table has n buckets; the one whose turn it is splits when there are more
 * rows than buckets, and the last one is merged back when there are less than half as many (above
 * BUCKETS_KEPT). So growth to ten million rows is ten million small steps and never a rehash of everything.
 *
 *   n = 6:  0 1 2 3 | 4 5        hash & 7 if that bucket exists (0, 1 have split into 4, 5), else hash & 3
 *
 * A link holds row + 1, 1 at the end of a chain, 0 when the row is not in the index. Keys are whole numbers
 * below 2^53. The caller keeps pairs unique; with equal pairs find() tells the one set last. The hash is
 * seeded so that two processes do not share their collisions; it does not stop a peer that knows the seed.
 */
import { CHUNK_BYTES, ChunkedFloat64, ChunkedUint32 } from './chunked.js';
import { invariant } from './invariant.js';

const BUCKETS_MIN = 16;
/**
 * Buckets that stay, 16 KiB: a table that fills and empties with each turn would split and merge for every
 * row, and give no chunk back.
 */
export const BUCKETS_KEPT = 4_096;
/** Larger columns are given back when the index is empty. */
const KEPT_ROWS = 16_384;
const END = 1;
const BUCKETS_A_CHUNK = CHUNK_BYTES / 4;
const TWO_32 = 4_294_967_296;
/** Most buckets that are made ahead: 64 MiB. */
const BUCKETS_AHEAD_MAX = 2 ** 24;
/** Rows grow by so many at once. */
const GROWTH_ROWS = 256;

export class HashIndex {
  private readonly seed: number;
  private readonly keys = new ChunkedFloat64();
  private readonly salts = new ChunkedUint32();
  private readonly links = new ChunkedUint32();
  /** First row of each bucket, 0 when it is empty. */
  private readonly buckets = new ChunkedUint32();
  private bucketCount = BUCKETS_MIN;
  /** 2^k − 1 with 2^k ≤ bucketCount < 2^(k+1). */
  private mask = BUCKETS_MIN - 1;
  private rowCount = 0;

  constructor(seed: number) {
    this.seed = seed | 0;
    this.buckets.ensure(BUCKETS_MIN);
  }

  get size(): number {
    return this.rowCount;
  }

  /**
   * So many rows are about to come: their buckets are made at once, which is cheaper than one by one by
   * splitting. Only while few rows are in the table, so that it is a short step; else, and past the bound,
   * they split as ever.
   */
  expect(rows: number): void {
    const wanted = Math.min(this.rowCount + rows, BUCKETS_AHEAD_MAX);
    if (this.bucketCount > BUCKETS_KEPT || wanted <= this.bucketCount) return;
    const held: number[] = [];
    for (let bucket = 0; bucket < this.bucketCount; bucket++) {
      for (let row = this.buckets.get(bucket); row !== 0; row = this.links.get(row) - END) held.push(row);
      this.buckets.set(bucket, 0);
    }
    this.buckets.ensure(wanted);
    this.bucketCount = wanted;
    this.mask = 2 ** (31 - Math.clz32(wanted)) - 1;
    // From the end of each chain: of equal pairs the one set last stays in front.
    for (const row of held.reverse()) this.link(row, this.keys.get(row), this.salts.get(row));
  }

  /** Enters a row that is not in the index. */
  set(row: number, key: number, salt: number): void {
    if (row >= this.links.length) this.grow(row + GROWTH_ROWS);
    invariant(row > 0 && this.links.get(row) === 0, 'a row is entered once');
    this.keys.set(row, key);
    this.salts.set(row, salt);
    this.link(row, key, salt);
    this.rowCount += 1;
    if (this.rowCount > this.bucketCount) this.split();
  }

  /** The row of the pair, 0 when there is none. */
  find(key: number, salt: number): number {
    const wanted = salt >>> 0;
    let row = this.buckets.get(this.bucketOf(key, salt));
    while (row !== 0) {
      if (this.keys.get(row) === key && this.salts.get(row) === wanted) return row;
      row = this.links.get(row) - END;
    }
    return 0;
  }

  /** Takes a row out that is in the index. */
  remove(row: number): void {
    const link = this.links.get(row);
    invariant(link !== 0, 'only a row that was entered is taken out');
    const bucket = this.bucketOf(this.keys.get(row), this.salts.get(row));
    let at = this.buckets.get(bucket);
    if (at === row) this.buckets.set(bucket, link - END);
    else {
      let next = this.links.get(at) - END;
      while (next !== row) {
        invariant(next > 0, 'a row is in the chain of its own hash');
        at = next;
        next = this.links.get(at) - END;
      }
      this.links.set(at, link);
    }
    this.links.set(row, 0);
    this.rowCount -= 1;
    // Two buckets a row, or the table would stay at half its largest size as rows and buckets go down
    // together.
    if (this.isSparse()) this.merge();
    if (this.isSparse()) this.merge();
    if (this.rowCount === 0 && this.links.length > KEPT_ROWS) this.startAgain();
  }

  keyOf(row: number): number {
    return this.keys.get(row);
  }

  saltOf(row: number): number {
    return this.salts.get(row);
  }

  private link(row: number, key: number, salt: number): void {
    const bucket = this.bucketOf(key, salt);
    this.links.set(row, this.buckets.get(bucket) + END);
    this.buckets.set(bucket, row);
  }

  /** Both halves of the key and the salt, mixed by the finaliser of MurmurHash3. */
  private bucketOf(key: number, salt: number): number {
    const keyHigh = (key / TWO_32) | 0;
    const keyLow = (key - keyHigh * TWO_32) | 0;
    let hash = Math.imul(keyLow ^ this.seed, 0xcc9e2d51);
    hash = Math.imul(hash ^ (hash >>> 15) ^ keyHigh, 0x1b873593);
    hash = Math.imul(hash ^ (hash >>> 13) ^ salt, 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 16), 0xc2b2ae35);
    hash ^= hash >>> 15;
    const bucket = hash & ((this.mask << 1) | 1);
    return bucket < this.bucketCount ? bucket : hash & this.mask;
  }

  /** One bucket more: some rows of the one whose turn it is go there. */
  private split(): void {
    const source = this.bucketCount - (this.mask + 1);
    const target = this.bucketCount;
    this.bucketCount += 1;
    this.buckets.ensure(this.bucketCount);
    let row = this.buckets.get(source);
    this.buckets.set(source, 0);
    // Both parts keep their order: of equal pairs the one set last stays in front.
    let stay = 0;
    let stayLast = 0;
    let go = 0;
    let goLast = 0;
    while (row !== 0) {
      const next = this.links.get(row) - END;
      if (this.bucketOf(this.keys.get(row), this.salts.get(row)) === target) {
        if (goLast === 0) go = row;
        else this.links.set(goLast, row + END);
        goLast = row;
      } else {
        if (stayLast === 0) stay = row;
        else this.links.set(stayLast, row + END);
        stayLast = row;
      }
      row = next;
    }
    if (stayLast !== 0) this.links.set(stayLast, END);
    if (goLast !== 0) this.links.set(goLast, END);
    this.buckets.set(source, stay);
    this.buckets.set(target, go);
    if (this.bucketCount === (this.mask + 1) * 2) this.mask = this.bucketCount - 1;
  }

  private isSparse(): boolean {
    return this.rowCount < this.bucketCount >>> 1 && this.bucketCount > BUCKETS_KEPT;
  }

  /** One bucket less: its rows go back to the one they came from. */
  private merge(): void {
    const source = this.bucketCount - 1;
    if (this.bucketCount === this.mask + 1) this.mask >>>= 1;
    const target = source - (this.mask + 1);
    const first = this.buckets.get(source);
    if (first !== 0) {
      let last = first;
      let link = this.links.get(last);
      while (link !== END) {
        last = link - END;
        link = this.links.get(last);
      }
      this.links.set(last, this.buckets.get(target) + END);
      this.buckets.set(target, first);
    }
    this.buckets.set(source, 0);
    this.bucketCount = source;
    // Whole chunks only: a cut within one would clear its rest each time.
    if (source % BUCKETS_A_CHUNK === 0) this.buckets.truncate(source);
  }

  private startAgain(): void {
    this.keys.truncate(0);
    this.salts.truncate(0);
    this.links.truncate(0);
    this.buckets.truncate(0);
    this.buckets.ensure(BUCKETS_MIN);
    this.bucketCount = BUCKETS_MIN;
    this.mask = BUCKETS_MIN - 1;
  }

  private grow(length: number): void {
    this.keys.ensure(length);
    this.salts.ensure(length);
    this.links.ensure(length);
  }
}
