/**
 * Text rows: what next hops said of entries, inside TEXTS and BLOCK (docs/PROTOCOL.md, "Soft state"). Soft:
 * in no number, no digest and no checksum but the frame's.
 *
 *   offset size field
 *   0      8    position    f64  of the entry
 *   8      2    bytes       u16  1 to TEXT_BYTES_MAX
 *   10     bytes            the text, which only gateways read
 */

/** All texts of one entry together. */
export const TEXT_BYTES_MAX = 512;
export const TEXT_ROW_BYTES = 10;

/** Whether the rows lie in the bytes, one behind the other, to the last. */
export function areTextRows(rows: unknown): rows is Uint8Array {
  if (!(rows instanceof Uint8Array)) return false;
  let at = 0;
  while (at + TEXT_ROW_BYTES <= rows.length) {
    const bytes = textBytes(rows, at);
    const position = textPosition(rows, at);
    if (bytes < 1 || bytes > TEXT_BYTES_MAX || !Number.isSafeInteger(position) || position < 1) return false;
    at += TEXT_ROW_BYTES + bytes;
  }
  return at === rows.length;
}

export function textPosition(rows: Uint8Array, at: number): number {
  return new DataView(rows.buffer, rows.byteOffset + at, TEXT_ROW_BYTES).getFloat64(0, true);
}

export function textBytes(rows: Uint8Array, at: number): number {
  return (rows[at + 8] ?? 0) | ((rows[at + 9] ?? 0) << 8);
}

/** The text itself, as a view. */
export function textOf(rows: Uint8Array, at: number): Uint8Array {
  return rows.subarray(at + TEXT_ROW_BYTES, at + TEXT_ROW_BYTES + textBytes(rows, at));
}

/** Gathers rows. */
export class TextRows {
  #bytes = new Uint8Array(0);
  #filled = 0;

  get length(): number {
    return this.#filled;
  }

  add(position: number, text: Uint8Array): void {
    const at = this.#filled;
    const end = at + TEXT_ROW_BYTES + text.length;
    if (end > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(end, 2 * this.#bytes.length));
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
    const view = new DataView(this.#bytes.buffer, at);
    view.setFloat64(0, position, true);
    view.setUint16(8, text.length, true);
    this.#bytes.set(text, at + TEXT_ROW_BYTES);
    this.#filled = end;
  }

  /** The rows, given away. */
  take(): Uint8Array {
    const rows = this.#bytes.subarray(0, this.#filled);
    this.#bytes = new Uint8Array(0);
    this.#filled = 0;
    return rows;
  }
}
