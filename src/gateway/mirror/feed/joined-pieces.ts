/**
 * The payloads of a frame on their way to a socket. Pieces that lie behind one another in a slab go out as
 * one: of many partitions that change in a turn most have one message, and their payloads were copied to the
 * slab in that very order; a socket takes about as long over each piece as the kernel over its bytes.
 */
export class JoinedPieces {
  #whole: Uint8Array[] = [];
  /** First piece of the run that may go on, and where in its memory the run ends. */
  #first: Uint8Array | undefined;
  #end = 0;

  add(piece: Uint8Array): void {
    if (piece.byteOffset === this.#end && piece.buffer === this.#first?.buffer) {
      this.#end += piece.length;
      return;
    }
    this.#closeRun();
    this.#first = piece;
    this.#end = piece.byteOffset + piece.length;
  }

  /** All of them, given away. */
  take(): readonly Uint8Array[] {
    this.#closeRun();
    const whole = this.#whole;
    this.#whole = [];
    return whole;
  }

  #closeRun(): void {
    const first = this.#first;
    if (first === undefined) return;
    const length = this.#end - first.byteOffset;
    const isAll = length === first.length;
    this.#whole.push(isAll ? first : new Uint8Array(first.buffer, first.byteOffset, length));
    this.#first = undefined;
  }
}
