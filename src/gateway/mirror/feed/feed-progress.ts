/**
 * How far one copy of a partition is behind, in bytes, and how far its refill has come: for those who look
 * (`twinpost status`, metrics), at the cost of a few additions where the changes are made.
 *
 * Bytes behind are sums over the partition: all that was sealed less what is acknowledged. An acknowledgement
 * tells a number, not a sum, and to remember the sum of each number would be a list. So one MARK is on its
 * way:
 *
 *   seal … seal … ack ≥ mark: acknowledged sum = sum at the mark; the next mark is put at the last seal
 *
 * Exact when the mirror has everything; else too large by what one round trip seals, never too small.
 */
export class FeedProgress {
  #acknowledgedBytes = 0;
  #markNumber = 0;
  #markBytes = 0;
  #refillTotal = -1;
  #refillTotalBytes = 0;
  #refillSent = 0;
  #refillSentBytes = 0;

  /** The mirror stands at `number`; the partition has sealed `sealedBytes` up to `sealedNumber`. */
  acknowledged(number: number, sealedNumber: number, sealedBytes: number): void {
    if (number >= sealedNumber) this.#acknowledgedBytes = sealedBytes;
    else if (number >= this.#markNumber) this.#acknowledgedBytes = this.#markBytes;
    else return;
    this.#markNumber = sealedNumber;
    this.#markBytes = sealedBytes;
  }

  /** Bytes of changes that the mirror has not acknowledged. */
  bytesBehind(sealedBytes: number): number {
    return Math.max(0, sealedBytes - this.#acknowledgedBytes);
  }

  /** All that the partition holds now will be sent again. */
  beginRefill(messages: number, bytes: number): void {
    this.#refillTotal = messages;
    this.#refillTotalBytes = bytes;
    this.#refillSent = 0;
    this.#refillSentBytes = 0;
  }

  refilled(messages: number, bytes: number): void {
    this.#refillSent += messages;
    this.#refillSentBytes += bytes;
  }

  endRefill(): void {
    this.#refillTotal = -1;
  }

  /** A refill is under way (a mirror that gets a tail has none). */
  get isRefilling(): boolean {
    return this.#refillTotal >= 0;
  }

  /** At least; what ended meanwhile is not sent. */
  get messagesToRefill(): number {
    return this.isRefilling ? Math.max(0, this.#refillTotal - this.#refillSent) : 0;
  }

  get bytesToRefill(): number {
    return this.isRefilling ? Math.max(0, this.#refillTotalBytes - this.#refillSentBytes) : 0;
  }

  /** Share of the messages sent, 0 to 1; undefined without a refill. */
  get refillShare(): number | undefined {
    if (!this.isRefilling) return undefined;
    return this.#refillTotal === 0 ? 1 : Math.min(1, this.#refillSent / this.#refillTotal);
  }
}
