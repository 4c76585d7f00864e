/**
 * Bytes of a buffer four at a time (content-scan.ts). Making a view costs as much as scanning some hundred
 * octets, and nearly all reads lie in one buffer: its view is kept. One for all sessions, so that one buffer
 * stays alive by it, not one a session. Pure.
 */
export class ByteViews {
  #view: DataView = new DataView(new ArrayBuffer(0));

  /** Of all of the buffer; until the next call. */
  of(buffer: ArrayBufferLike): DataView {
    if (this.#view.buffer !== buffer) this.#view = new DataView(buffer);
    return this.#view;
  }
}
