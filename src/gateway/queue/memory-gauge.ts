/**
 * The memory of a gateway against its limit (G7): three marks, docs/GUARANTEES.md "Memory".
 *
 *   0 ──────────── accept ───────── reserve ──── limit
 *     new mail        │ recovery, refill │ only what ends mail: reports to the half, deliveries in flight
 *                     │                  │ and expiry to three quarters (delivery-room.ts), one expiry at a
 *                     │                    time of a partition to seven eighths, the rest one delivery
 *                     └─ half: places of entries that are taken over, however full memory is
 *
 * Buffers lie outside V8's heap limit, so they are counted here: records and bookkeeping of entries, bytes
 * of messages being received, frames that wait for a slow link.
 */

export interface MemoryOptions {
  readonly limitBytes: number;
  /** Share of the limit at which new mail stops. */
  readonly acceptShare: number;
  /** Share up to which everything but ending mail may go. */
  readonly reserveShare: number;
}

/**
 * Of what may come back. Above the first, bodies come only for deliveries that wait for them: for one message
 * of the largest size that a configuration allows, a fifth of the limit, there is always room. Between the
 * two, entries without their bodies.
 */
const ENTRIES_SHARE = 0.75;
const REST_SHARE = 0.6;
/** Of what lies between the upper marks, for places of entries; the rest for bodies that deliveries need. */
const PLACES_SHARE = 0.5;
/** Of what lies above the last mark: for reports; for these, deliveries in flight and expiry. */
const REPORTS_SHARE = 0.5;
const DELIVERIES_SHARE = 0.75;
/** And for one expiry of each partition whose copies have all there is. */
const EXPIRY_ALONE_SHARE = 0.875;
/** Of messages that are being received: what they leave is not gone at once. One of the largest size fits. */
const IN_TRANSIT_SHARE = 0.25;

export class MemoryGauge {
  readonly limitBytes: number;
  readonly acceptBytes: number;
  readonly reserveBytes: number;
  /** Bytes of messages that are being received. */
  inTransitBytes = 0;
  /** Not used yet: what deliveries in flight may come to. */
  promisedBytes = 0;
  readonly #held: () => number;
  readonly #asked: () => number;

  /**
   * `held` sums what the parts hold now, `asked` what was asked for of the stores and comes however full
   * memory is by then; both must be O(1).
   */
  constructor(options: MemoryOptions, held: () => number, asked: () => number = () => 0) {
    this.limitBytes = options.limitBytes;
    this.acceptBytes = Math.floor(options.limitBytes * options.acceptShare);
    this.reserveBytes = Math.floor(options.limitBytes * options.reserveShare);
    this.#held = held;
    this.#asked = asked;
  }

  get usedBytes(): number {
    return this.#held() + this.inTransitBytes;
  }

  /** Whether `bytes` of new mail fit below the accept mark. */
  admits(bytes: number): boolean {
    return this.usedBytes + bytes <= this.acceptBytes;
  }

  /** Whether `bytes` fit below the reserve that are to be gone in part when the mirrors have what is new. */
  admitsPassing(bytes: number): boolean {
    return this.usedBytes + bytes <= this.reserveBytes;
  }

  /** Whether bytes that end mail (a report) fit, beside what becomes of deliveries in flight. */
  admitsEnding(bytes: number): boolean {
    return this.#usedAtMost + bytes <= this.reportsBytes;
  }

  /** Reports fill no more than this. */
  get reportsBytes(): number {
    return this.#lastBytes(REPORTS_SHARE);
  }

  /** Whether what becomes of one more delivery fits. */
  admitsDelivery(bytes: number): boolean {
    return this.#usedAtMost + bytes <= this.#lastBytes(DELIVERIES_SHARE);
  }

  /** Whether the end of one entry fits, of a partition of which nothing else is on its way. */
  admitsExpiryAlone(bytes: number): boolean {
    return this.#usedAtMost + bytes <= this.#lastBytes(EXPIRY_ALONE_SHARE);
  }

  /** Whether memory has room for words that nothing depends on. */
  get admitsTexts(): boolean {
    return this.usedBytes <= this.reserveBytes;
  }

  /**
   * What comes back from stores may fill this much: our own mail all but the last reserve, that of another
   * gateway leaves alone what new mail may use.
   */
  recoveryBytes(isOwn: boolean): number {
    return isOwn ? this.reserveBytes : this.acceptBytes;
  }

  /** Places of entries, without their heads, fill no more than this, whatever else memory is full of. */
  get placesBytes(): number {
    return this.acceptBytes + (this.reserveBytes - this.acceptBytes) * PLACES_SHARE;
  }

  /**
   * Of another gateway's entries no more places than this go beyond entriesBytes(): new mail is not kept out
   * for them.
   */
  get foreignPlacesBytes(): number {
    return this.reserveBytes - this.acceptBytes;
  }

  /** Entries without their bodies fill no more than this. */
  entriesBytes(isOwn: boolean): number {
    return this.recoveryBytes(isOwn) * ENTRIES_SHARE;
  }

  /** Bodies that nobody waits for fill no more than this. */
  restBytes(isOwn: boolean): number {
    return this.recoveryBytes(isOwn) * REST_SHARE;
  }

  reserve(bytes: number): boolean {
    if (this.inTransitBytes + bytes > this.limitBytes * IN_TRANSIT_SHARE || !this.admits(bytes)) return false;
    this.inTransitBytes += bytes;
    return true;
  }

  release(bytes: number): void {
    this.inTransitBytes -= bytes;
  }

  get #usedAtMost(): number {
    return this.usedBytes + this.promisedBytes + this.#asked();
  }

  #lastBytes(share: number): number {
    return this.reserveBytes + (this.limitBytes - this.reserveBytes) * share;
  }
}
