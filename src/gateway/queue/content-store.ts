/**
 * The bytes of messages in a gateway: records outside the collected heap.
 *
 * A message that goes to one queue is one record, body ‖ head ‖ room. A message that goes to several queues
 * has its body once, as a shared content counted by its entries, and a record of head ‖ room for each entry.
 * The room is for the note (note.ts), so that whatever happens to the entry takes no more memory than it was
 * admitted with. The checksum of an entry is CRC-32 of body ‖ head; the body's part is computed once at
 * accept and carried on (docs/PROTOCOL.md).
 */
import { ChunkedFloat64, ChunkedUint32 } from '../../base/chunked.js';
import { invariant } from '../../base/invariant.js';
import { Rows } from '../../base/rows.js';
import type { Segments } from '../../base/segments.js';

/** Bodies that several entries name, by row. */
class SharedContents {
  readonly slot = new ChunkedUint32();
  readonly bytes = new ChunkedUint32();
  readonly entries = new ChunkedUint32();
  /** Message id: a row that was freed and taken again is another body. */
  readonly messageId = new ChunkedFloat64();
  readonly #rows = new Rows();

  take(slot: number, bytes: number, messageId: number): number {
    const row = this.#rows.take();
    this.slot.ensure(row + 1);
    this.bytes.ensure(row + 1);
    this.entries.ensure(row + 1);
    this.messageId.ensure(row + 1);
    this.messageId.set(row, messageId);
    this.slot.set(row, slot);
    this.bytes.set(row, bytes);
    this.entries.set(row, 0);
    return row;
  }

  release(row: number): void {
    this.#rows.release(row);
  }
}

export class ContentStore {
  readonly segments: Segments;
  readonly #shared = new SharedContents();

  constructor(segments: Segments) {
    this.segments = segments;
  }

  /** A record of chunks ‖ head ‖ room. */
  storeOwn(chunks: readonly Uint8Array[], bodyBytes: number, head: Uint8Array, room: number): number {
    const slot = this.segments.allocate(bodyBytes + head.length + room);
    this.segments.write(slot, this.#writeChunks(slot, chunks, bodyBytes), head);
    return slot;
  }

  /** A record of bytes as they are, and room: a head, or a body and its head. */
  storeBytes(bytes: Uint8Array, room: number): number {
    return this.segments.keep(bytes, room);
  }

  /** A body that several entries will name by addEntry. */
  storeShared(chunks: readonly Uint8Array[], bodyBytes: number, messageId: number): number {
    const slot = this.segments.allocate(bodyBytes);
    this.#writeChunks(slot, chunks, bodyBytes);
    return this.#shared.take(slot, bodyBytes, messageId);
  }

  addEntry(content: number): void {
    this.#shared.entries.set(content, this.#shared.entries.get(content) + 1);
  }

  /** One entry less; the last one frees the body. */
  dropEntry(content: number): void {
    const left = this.#shared.entries.get(content) - 1;
    invariant(left >= 0, 'a shared body is dropped as often as it was named');
    this.#shared.entries.set(content, left);
    if (left > 0) return;
    this.segments.free(this.#shared.slot.get(content));
    this.#shared.release(content);
  }

  /** Whether the row still holds the body of this message: entries of it may all have ended meanwhile. */
  holdsShared(content: number, messageId: number): boolean {
    return this.#shared.messageId.get(content) === messageId && this.#shared.entries.get(content) > 0;
  }

  sharedSlot(content: number): number {
    return this.#shared.slot.get(content);
  }

  #writeChunks(slot: number, chunks: readonly Uint8Array[], bodyBytes: number): number {
    let at = 0;
    for (const chunk of chunks) {
      this.segments.write(slot, at, chunk);
      at += chunk.length;
    }
    invariant(at === bodyBytes, 'the chunks of a body make up its length');
    return at;
  }
}
