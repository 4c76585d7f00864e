/**
 * Envelopes of the last entries that were stored here, as objects: most mail is handed out within
 * milliseconds, and need not be read back from its head for that. One place for each of ENVELOPES entries by
 * the low bits of its row; whoever comes later takes the place.
 *
 * Bounded by ENVELOPES × one recipient: an envelope of many costs little a recipient to read, and much to
 * keep.
 */
import type { Envelope } from '../mail-types.js';

/** Two or three turns of a busy gateway. */
const ENVELOPES = 512;

export class RecentEnvelopes {
  readonly #rows = new Uint32Array(ENVELOPES);
  readonly #envelopes = new Array<Envelope | undefined>(ENVELOPES).fill(undefined);

  remember(row: number, envelope: Envelope): void {
    if (envelope.recipients.length !== 1) return;
    const place = row % ENVELOPES;
    this.#rows[place] = row;
    this.#envelopes[place] = envelope;
  }

  of(row: number): Envelope | undefined {
    const place = row % ENVELOPES;
    return this.#rows[place] === row ? this.#envelopes[place] : undefined;
  }

  /** The entry has ended: its row will be another's. */
  forget(row: number): void {
    const place = row % ENVELOPES;
    if (this.#rows[place] !== row) return;
    this.#rows[place] = 0;
    this.#envelopes[place] = undefined;
  }
}
