/**
 * Bounds of everything that goes into the register: it is for some thousand small records (DESIGN
 * "register"), and whoever brings more is refused before anything is sent.
 */
import type { Guard, Range } from './port.js';

/** Longest key: two names of 80 characters and a word, with room. */
const KEY_BYTES_MAX = 512;
/** Longest value: an operator's rules are the longest; a partition's record has some 300 bytes. */
export const VALUE_BYTES_MAX = 64 * 1024;
/** Further compares of one write. */
export const GUARDS_MAX = 16;
/** Keys that one register keeps, and that one read or watch may show: 1,000 gateways of 64 partitions. */
export const ENTRIES_MAX = 65_536;
/** Writes that wait or are under way in one client; one for each partition of 100 gateways, twice over. */
export const WRITES_MAX = 4_096;
/** Reads that wait or are under way in one client: as many as writes, for each write begins with one. */
export const READS_MAX = 4_096;
export const WATCHES_MAX = 32;
export const PREFIXES_MAX = 16;
export const SESSIONS_MAX = 64;
/** Operations of one transaction: etcd's own default (--max-txn-ops), counted as etcd does. */
export const TRANSACTION_OPERATIONS_MAX = 128;
/**
 * Bytes of one transaction: etcd takes 1.5 MiB a request by default, and a refused write
 * echoes what stands there.
 */
export const TRANSACTION_BYTES_MAX = 512 * 1024;
/** A session shorter than this can't outlast one lost answer (etcd grants no less than some 2 s). */
export const SESSION_TTL_MS_MIN = 2_000;
export const SESSION_TTL_MS_MAX = 600_000;
/** How far two monotonic clocks may run apart (DESIGN "drift bound"): 1% and 200 ms. */
export const DRIFT_SHARE = 0.01;
export const DRIFT_MS = 200;

/** Bytes of a text as UTF-8. */
export function utf8Bytes(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    // A pair of surrogates is two units and four bytes; a lone one becomes three.
    if (code >= 0x80) bytes += code < 0x800 || (code >= 0xd800 && code < 0xe000) ? 1 : 2;
  }
  return bytes;
}

/** '' or which rule a key breaks. Visible ASCII only, so that a key reads the same in every tool. */
export function keyRule(key: string): string {
  if (key === '') return 'key empty';
  if (key.length > KEY_BYTES_MAX) return 'key too long';
  return /^[\x21-\x7e]+$/.test(key) ? '' : 'key has other characters than visible ASCII';
}

/** A write without its session object: what goes to the register. */
export interface PlainWrite {
  readonly key: string;
  readonly ifRevision: number;
  readonly ifValue?: string | undefined;
  readonly value: string | null;
  readonly guards: readonly Guard[];
}

/** '' or which rule a write breaks. */
export function writeRule(write: PlainWrite): string {
  const rule = keyRule(write.key);
  if (rule !== '') return rule;
  if (!isRevision(write.ifRevision)) return 'revision is no whole number';
  const values = [write.value ?? '', write.ifValue ?? '', ...write.guards.map(({ value = '' }) => value)];
  if (!values.every(isWellFormed)) return 'value is no well-formed text';
  if (values.some((value) => utf8Bytes(value) > VALUE_BYTES_MAX)) return 'value too long';
  if (write.guards.length > GUARDS_MAX) return 'too many guards';
  for (const guard of write.guards) {
    if (keyRule(guard.key) !== '') return `guard: ${keyRule(guard.key)}`;
    if (!isRevision(guard.revision)) return 'guard: revision is no whole number';
  }
  return '';
}

/** '' or which rule a range breaks. The empty prefix is every key. */
export function rangeRule(range: Range): string {
  if ('key' in range) return keyRule(range.key);
  return range.prefix === '' ? '' : keyRule(range.prefix);
}

function isRevision(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/** Whether a text comes back from UTF-8 as it was: no half of a surrogate pair. */
function isWellFormed(text: string): boolean {
  return !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text);
}

export function isInRange(key: string, range: Range): boolean {
  return 'key' in range ? key === range.key : key.startsWith(range.prefix);
}
