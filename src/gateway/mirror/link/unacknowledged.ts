/**
 * The requests sent on one connection that the store has not answered for: sequence, bytes on the wire and
 * credit of each, oldest first. It owns the sums that the byte window and the credit are judged by, so both
 * are O(1) to read and a request costs no allocation.
 *
 *   oldest                                   newest
 *   ┌──────────┬──────────┬──────────┬──────────┐     flat ring, a power of two; grows by doubling
 *   │ seq 7    │ seq 9    │ seq 10   │ seq 12   │     (gaps: handshake and heartbeats are not recorded)
 *   └──────────┴──────────┴──────────┴──────────┘
 *        ▲ acknowledgeThrough(9) takes these two
 *                    ▲ answer(10): a reply frees its own request only; an ACK may still be on its way
 *
 * What is not here: what the requests said. The mirror machine knows that from its partitions
 * (docs/PROTOCOL.md, "Acknowledgement and credit").
 */
import { invariant } from '../../../base/invariant.js';

/** 1,024 requests in flight before the first growth: more than a busy turn makes. */
const CAPACITY_FIRST = 1_024;

export class Unacknowledged {
  #sequences = new Float64Array(CAPACITY_FIRST);
  #bytes = new Float64Array(CAPACITY_FIRST);
  #credit = new Float64Array(CAPACITY_FIRST);
  /** 1 when a reply has freed the request already. */
  #answered = new Uint8Array(CAPACITY_FIRST);
  #oldest = 0;
  #count = 0;
  #bytesTotal = 0;
  #creditTotal = 0;

  get count(): number {
    return this.#count;
  }

  /** Bytes of requests sent or queued and not answered for. */
  get bytes(): number {
    return this.#bytesTotal;
  }

  /** Credit used by them. */
  get credit(): number {
    return this.#creditTotal;
  }

  /** Sequences must rise; gaps are fine. */
  add(sequence: number, bytes: number, credit: number): void {
    if (this.#count === this.#sequences.length) this.#grow();
    const mask = this.#sequences.length - 1;
    if (this.#count > 0) {
      invariant(sequence > this.#at(this.#sequences, this.#count - 1), 'sequences of requests rise');
    }
    const slot = (this.#oldest + this.#count) & mask;
    this.#sequences[slot] = sequence;
    this.#bytes[slot] = bytes;
    this.#credit[slot] = credit;
    this.#answered[slot] = 0;
    this.#count++;
    this.#bytesTotal += bytes;
    this.#creditTotal += credit;
  }

  /** Everything up to and with `sequence` is applied or refused. */
  acknowledgeThrough(sequence: number): void {
    while (this.#count > 0 && this.#at(this.#sequences, 0) <= sequence) this.#dropOldest();
  }

  /** The request with exactly this sequence got its reply. False when no such request is open. */
  answer(sequence: number): boolean {
    const index = this.#find(sequence);
    if (index < 0) return false;
    const slot = (this.#oldest + index) & (this.#sequences.length - 1);
    if (this.#answered[slot] === 1) return false;
    this.#answered[slot] = 1;
    this.#bytesTotal -= this.#bytes[slot] ?? 0;
    this.#creditTotal -= this.#credit[slot] ?? 0;
    this.#bytes[slot] = 0;
    this.#credit[slot] = 0;
    // Pulls alone bring no ACK: without this the record would grow for the length of a recovery.
    while (this.#count > 0 && this.#answered[this.#oldest] === 1) this.#dropOldest();
    return true;
  }

  /** Credit of the requests behind `sequence`: what a grant made at that point does not know of yet. */
  creditAfter(sequence: number): number {
    let sum = 0;
    for (let i = this.#count - 1; i >= 0 && this.#at(this.#sequences, i) > sequence; i--) {
      sum += this.#at(this.#credit, i);
    }
    return sum;
  }

  clear(): void {
    if (this.#sequences.length > CAPACITY_FIRST) {
      this.#sequences = new Float64Array(CAPACITY_FIRST);
      this.#bytes = new Float64Array(CAPACITY_FIRST);
      this.#credit = new Float64Array(CAPACITY_FIRST);
      this.#answered = new Uint8Array(CAPACITY_FIRST);
    }
    this.#oldest = 0;
    this.#count = 0;
    this.#bytesTotal = 0;
    this.#creditTotal = 0;
  }

  #dropOldest(): void {
    const slot = this.#oldest;
    this.#bytesTotal -= this.#bytes[slot] ?? 0;
    this.#creditTotal -= this.#credit[slot] ?? 0;
    this.#oldest = (slot + 1) & (this.#sequences.length - 1);
    this.#count--;
  }

  /** Index from the oldest, or -1. The ring is sorted, so this takes 13 steps for 8,192 requests. */
  #find(sequence: number): number {
    let low = 0;
    let high = this.#count - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const there = this.#at(this.#sequences, middle);
      if (there === sequence) return middle;
      if (there < sequence) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  #at(column: Float64Array, index: number): number {
    return column[(this.#oldest + index) & (column.length - 1)] ?? 0;
  }

  #grow(): void {
    const sequences = this.#sequences;
    const bytes = this.#bytes;
    const credit = this.#credit;
    const answered = this.#answered;
    const capacity = sequences.length * 2;
    this.#sequences = new Float64Array(capacity);
    this.#bytes = new Float64Array(capacity);
    this.#credit = new Float64Array(capacity);
    this.#answered = new Uint8Array(capacity);
    for (let i = 0; i < this.#count; i++) {
      const from = (this.#oldest + i) & (sequences.length - 1);
      this.#sequences[i] = sequences[from] ?? 0;
      this.#bytes[i] = bytes[from] ?? 0;
      this.#credit[i] = credit[from] ?? 0;
      this.#answered[i] = answered[from] ?? 0;
    }
    this.#oldest = 0;
  }
}
