/**
 * The hash of a body, to be compared with that of a signature (RFC 6376 3.7): canonicalized in one pass, and
 * no further than it is signed (l=).
 */
import { createHash } from 'node:crypto';
import { RelaxedBody } from '../../../dkim/relaxed.js';
import { SimpleBody } from '../../../dkim/simple-body.js';
import type { DkimSignature } from '../dkim-signature.js';

/** Of all that is hashed: nothing of it outlives an update. */
const scratch = new Uint8Array(64 * 1024);

export class BodyHash {
  /** Of all of the body, canonicalized. */
  octets = 0;
  hash = '';
  readonly #hash = createHash('sha256');
  readonly #signedOctets: number;
  readonly #body: RelaxedBody | SimpleBody;

  constructor({ body, bodyOctets = Infinity }: Pick<DkimSignature, 'body' | 'bodyOctets'>) {
    this.#signedOctets = bodyOctets;
    const take = (octets: Uint8Array): void => { this.#take(octets); };
    this.#body = body === 'relaxed' ? new RelaxedBody(scratch, take) : new SimpleBody(take);
  }

  /** Takes content[from .. to), or less; returns where it stopped. */
  update(content: Uint8Array, from: number, to: number): number {
    return this.#body.update(content, from, to);
  }

  /** Nothing more comes: `hash` is there, in base64. */
  end(): void {
    this.#body.end();
    this.hash = this.#hash.digest('base64');
  }

  #take(octets: Uint8Array): void {
    const left = Math.min(octets.length, this.#signedOctets - this.octets);
    this.octets += octets.length;
    if (left > 0) this.#hash.update(octets.subarray(0, left));
  }
}
