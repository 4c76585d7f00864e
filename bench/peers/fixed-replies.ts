/**
 * Reads the replies of a server that are known beforehand: the same bytes for each transaction, over and
 * over. Counting bytes is then enough to count transactions, so that the client costs next to nothing and
 * the server is what is measured. Each chunk is checked where it begins and where it ends; a reply of
 * another text or length shows there or in the chunk after. Bytes are compared by the runtime's own comparison:
 * one in JavaScript took more time than a server needs for a value of 20 KB.
 */
export class FixedReplies {
  readonly #length: number;
  /** The period and once more, so that what is compared is one piece wherever it begins. */
  readonly #twice: Buffer;
  /** Where the next byte stands in the period. */
  #at = 0;
  #transactions = 0;

  /** `period`: the replies to one transaction. */
  constructor(period: Uint8Array) {
    if (period.length === 0) throw new Error('a transaction without a reply cannot be counted');
    this.#length = period.length;
    this.#twice = Buffer.concat([period, period]);
  }

  /** Whole transactions answered so far. */
  get transactions(): number {
    return this.#transactions;
  }

  /** False: this is not what was expected. */
  push(bytes: Uint8Array): boolean {
    const length = this.#length;
    // To the end of the period that was begun, and the whole one after it.
    const head = Math.min(bytes.length, 2 * length - this.#at);
    if (this.#twice.compare(bytes, 0, head, this.#at, this.#at + head) !== 0) return false;
    const end = this.#at + bytes.length;
    this.#transactions += Math.floor(end / length);
    this.#at = end % length;
    return bytes.length === 0 || bytes[bytes.length - 1] === this.#twice[(end - 1) % length];
  }
}
