/**
 * Answers as long as their TTLs allow, the negative ones too (RFC 2308), within a bound in bytes: past it the
 * oldest go. What resolvers could not tell is kept for a moment, so that a zone in trouble is not asked for
 * every message. An operator who has mended something need not wait for any of that: he has it forgotten.
 */
import type { DnsAnswer, DnsType } from '../../resolver.js';

/** 30,000 to 60,000 names. */
const CACHE_BYTES_MAX = 16 * 1024 * 1024;
/** Map, key and objects of one answer. */
const ENTRY_BYTES = 256;
/** A record's object; its octets count beside. */
const RECORD_BYTES = 64;

interface Kept {
  readonly answer: DnsAnswer<DnsType>;
  readonly untilMs: number;
  readonly bytes: number;
  /** Of #generation then. */
  readonly generation: number;
}

export class DnsCache {
  readonly #kept = new Map<string, Kept>();
  readonly #bytesMax: number;
  #bytes = 0;
  /** What was not found before this one began counts no more. */
  #generation = 0;

  constructor(bytesMax = CACHE_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  get(key: string, nowMs: number): DnsAnswer<DnsType> | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    const isBelieved = kept.answer.kind === 'found' || kept.generation === this.#generation;
    if (isBelieved && kept.untilMs > nowMs) return kept.answer;
    this.#remove(key, kept);
    return undefined;
  }

  put(key: string, answer: DnsAnswer<DnsType>, untilMs: number): void {
    const before = this.#kept.get(key);
    if (before !== undefined) this.#remove(key, before);
    const bytes = bytesOf(key, answer);
    this.#kept.set(key, { answer, untilMs, bytes, generation: this.#generation });
    this.#bytes += bytes;
    for (const [oldest, kept] of this.#kept) {
      if (this.#bytes <= this.#bytesMax) return;
      this.#remove(oldest, kept);
    }
  }

  /** All that was not found, or not told, and what is kept under this key. */
  forgetMissing(key: string): void {
    this.#generation++;
    const kept = this.#kept.get(key);
    if (kept !== undefined) this.#remove(key, kept);
  }

  forgetAll(): void {
    this.#kept.clear();
    this.#bytes = 0;
  }

  #remove(key: string, kept: Kept): void {
    this.#kept.delete(key);
    this.#bytes -= kept.bytes;
  }
}

function bytesOf(key: string, answer: DnsAnswer<DnsType>): number {
  let bytes = ENTRY_BYTES + key.length;
  if (answer.kind !== 'found') return bytes;
  for (const record of answer.records) {
    bytes += RECORD_BYTES;
    if (typeof record === 'string') bytes += record.length;
    else bytes += 'exchange' in record ? record.exchange.length : record.association.length;
  }
  return bytes;
}
