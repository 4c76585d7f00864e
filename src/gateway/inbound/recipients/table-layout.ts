/**
 * The layout of a table of recipients (listing.ts): one file, written once, read by position. All workers of
 * a machine share its pages in the system's cache; none of them holds it in memory.
 *
 *   page 0 …    head       magic, length and checksum of what follows, then JSON: seed, sizes, routes
 *   buckets     64 bytes   5 slots of 12 (fingerprint u64, value u32), then 1 byte: it ran over
 *   texts                  of aliases: length u32, addresses with commas, to a multiple of 4
 *
 * A key's digest (SHA-256 of the file's seed and the key) says its bucket, and its fingerprint: with ten
 * million keys a stranger shares one of them by chance less than once in 10^12 tries, and nobody can choose
 * him without the seed.
 * A value is 0, or in its two top bits what it is, and behind them the number of a route or a quarter of the
 * place of a text. Little-endian. Pure.
 */
import { invariant } from '../../../base/invariant.js';

export const MAGIC = 'TWINRCP1';
/** Magic, length of the JSON, checksum of it. */
export const HEAD_FIXED_BYTES = 16;
const PAGE_BYTES = 4096;
export const BUCKET_BYTES = 64;
export const SLOTS = 5;
const SLOT_BYTES = 12;
export const SEED_BYTES = 16;
const FULL_AT = SLOTS * SLOT_BYTES;
/** Filled so far at most: longer chains than two buckets are rare then. */
const FILL = 0.75;
/** Of the names of 2,048 routes. */
export const HEAD_BYTES_MAX = 1024 * 1024;
export const ENTRIES_MAX = 10_000_000;

const KIND_ROUTE = 1;
const KIND_ALIAS = 2;
const KIND_SHIFT = 30;
const REST_MASK = 2 ** KIND_SHIFT - 1;
const TEXT_UNIT_BYTES = 4;

export interface TableHead {
  /** base64. */
  readonly seed: string;
  readonly entries: number;
  readonly buckets: number;
  readonly textBytes: number;
  readonly routes: readonly string[];
  /** CRC-32 of buckets and texts. */
  readonly checksum: number;
}

/** Buckets for so many entries. */
export function bucketsFor(entries: number): number {
  return Math.max(1, Math.ceil(entries / (SLOTS * FILL)));
}

/** Where the buckets begin. */
export function bucketsAt(headBytes: number): number {
  return Math.ceil((HEAD_FIXED_BYTES + headBytes) / PAGE_BYTES) * PAGE_BYTES;
}

/** Bucket of a digest. */
export function bucketOf(digest: DataView, buckets: number): number {
  return Number(digest.getBigUint64(8, true) % BigInt(buckets));
}

/** Value of the key of this digest in a bucket; -1 when it is not there. */
export function findIn(bytes: DataView, at: number, digest: DataView): number {
  const low = digest.getUint32(0, true);
  const high = digest.getUint32(4, true);
  for (let slot = at; slot < at + FULL_AT; slot += SLOT_BYTES) {
    if (bytes.getUint32(slot, true) !== low || bytes.getUint32(slot + 4, true) !== high) continue;
    return bytes.getUint32(slot + 8, true);
  }
  return -1;
}

/** Puts a value into a bucket; false when it is full. An empty slot has the fingerprint 0. */
export function putInto(bytes: DataView, at: number, digest: DataView, value: number): boolean {
  for (let slot = at; slot < at + FULL_AT; slot += SLOT_BYTES) {
    if (bytes.getUint32(slot, true) !== 0 || bytes.getUint32(slot + 4, true) !== 0) continue;
    bytes.setUint32(slot, digest.getUint32(0, true), true);
    bytes.setUint32(slot + 4, digest.getUint32(4, true), true);
    bytes.setUint32(slot + 8, value, true);
    return true;
  }
  return false;
}

/** Keys of this bucket may stand in the next one. */
export function hasRunOver(bytes: DataView, at: number): boolean {
  return bytes.getUint8(at + FULL_AT) !== 0;
}

export function markRunOver(bytes: DataView, at: number): void {
  bytes.setUint8(at + FULL_AT, 1);
}

export function routeValue(route: number): number {
  return (KIND_ROUTE * 2 ** KIND_SHIFT) + route;
}

/** `textAt` is a multiple of 4. */
export function aliasValue(textAt: number): number {
  invariant(textAt / TEXT_UNIT_BYTES <= REST_MASK, 'texts of aliases fit into 4 GiB');
  return (KIND_ALIAS * 2 ** KIND_SHIFT) + textAt / TEXT_UNIT_BYTES;
}

/** Number of the route; -1 when the value is none. */
export function routeIn(value: number): number {
  return value >>> KIND_SHIFT === KIND_ROUTE ? value & REST_MASK : -1;
}

/** Place of the text; -1 when the value is none. */
export function textIn(value: number): number {
  return value >>> KIND_SHIFT === KIND_ALIAS ? (value & REST_MASK) * TEXT_UNIT_BYTES : -1;
}
