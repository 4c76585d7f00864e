/**
 * Takes the bytes of a row out of a frame into segments: checks the checksum on the bytes as they arrived,
 * copies them once, and leaves where they went in `slot` and `shared`. Used by live changes and by refills.
 *
 * Answers 0 or the refusal's reason; after a refusal nothing is kept.
 *
 *   own     record = body ‖ head ‖ room             crc over both at once
 *   shared  record = head ‖ room; body in SharedBodies    crc(body ‖ head) = crc32(head, crc of the body)
 *
 * The room is for the note that may come: bytes of it are taken here, with the entry, and never
 * again (stored-entries.ts).
 */

import type { Segments } from '../../base/segments.js';
import type { Crc32 } from '../../platform/ports.js';
import { REFUSAL_BODY, REFUSAL_CHECKSUM } from '../../protocol/reasons.js';
import type { SharedBodies } from './shared-bodies.js';

export interface ContentsParts {
  readonly crc32: Crc32;
  readonly segments: Segments;
  readonly shared: SharedBodies;
}

const TAKEN = 0;
const NOTHING = new ArrayBuffer(0);

export class Contents {
  /** Record of what was taken last; 0 when it has no bytes. */
  slot = 0;
  /** Row of the shared body, already counted; 0 when the body is in the record. */
  shared = 0;

  readonly #crc32: Crc32;
  readonly #segments: Segments;
  readonly #shared: SharedBodies;
  #sound: ArrayBufferLike = NOTHING;
  #soundFrom = 0;

  constructor(parts: ContentsParts) {
    this.#crc32 = parts.crc32;
    this.#segments = parts.segments;
    this.#shared = parts.shared;
  }

  /** Body and head as one record. `asItIs`: it may be damaged, and is kept for a person. */
  takeOwn(
    payload: Uint8Array, start: number, bytes: number, crc: number, room: number, asItIs = false,
  ): number {
    // The plain constructor is cheaper than subarray(), which asks for the species (a Buffer makes it slower
    // still).
    const view = new Uint8Array(payload.buffer, payload.byteOffset + start, bytes);
    if (!asItIs && this.#crc32(view, 0) !== crc) return REFUSAL_CHECKSUM;
    this.slot = this.#keep(view, room);
    this.shared = 0;
    return TAKEN;
  }

  /** Payload whose checksum is known to be right, for keepOwn(). */
  beginSound(payload: Uint8Array): void {
    // Asked once, not for each row: the engine answers by a call that is dearer than the copy of a short one.
    this.#sound = payload.buffer;
    this.#soundFrom = payload.byteOffset;
  }

  /** As takeOwn, of the payload that is known to be right. */
  keepOwn(start: number, bytes: number, room: number): void {
    this.slot = this.#keep(new Uint8Array(this.#sound, this.#soundFrom + start, bytes), room);
    this.shared = 0;
  }

  /** The payload is not held any longer. */
  endSound(): void {
    this.#sound = NOTHING;
  }

  /** A body that other partitions may name: brought now, or already here. */
  takeShared(
    account: number, id: number, bodyAbsent: boolean, bodyBytes: number, headBytes: number, crc: number,
    payload: Uint8Array, start: number, room: number, asItIs = false,
  ): number {
    const known = this.#shared.find(account, id);
    if (known === 0 && bodyAbsent) return REFUSAL_BODY;
    if (known !== 0 && this.#shared.bytesOf(known) !== bodyBytes) return REFUSAL_BODY;
    const headStart = bodyAbsent ? start : start + bodyBytes;
    const head = payload.subarray(headStart, headStart + headBytes);
    const body = payload.subarray(start, headStart);
    const bodyCrc = bodyAbsent ? this.#shared.crcOf(known) : this.#crc32(body, 0);
    if (!asItIs && this.#crc32(head, bodyCrc) !== crc) return REFUSAL_CHECKSUM;
    if (known !== 0) {
      if (!asItIs && this.#shared.crcOf(known) !== bodyCrc) return REFUSAL_BODY;
      this.#shared.hold(known);
      this.shared = known;
    } else {
      this.shared = this.#shared.create(account, id, this.#keep(body, 0), bodyBytes, bodyCrc);
    }
    this.slot = this.#keep(head, room);
    return TAKEN;
  }

  #keep(bytes: Uint8Array, room: number): number {
    return bytes.length + room === 0 ? 0 : this.#segments.keep(bytes, room);
  }
}
