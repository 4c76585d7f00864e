/**
 * A section as a mirror under refill gets it: rows that touch an entry beyond the cursor become SKIPPED and
 * lose their payload. Number and digest stay what they are at the other mirror (docs/PROTOCOL.md).
 */
import {
  CHANGE_ROW_BYTES, changeRoom, FLAG_BODY_ABSENT, FLAG_SKIPPED, KIND_ANNOTATE, KIND_DELETE, KIND_STORE,
  KIND_WITHDRAW,
} from '../../../protocol/change-rows.js';
import { ENTRY_CREDIT_BYTES } from '../set/partition.js';
import type { SealedSection } from './turn-section.js';
import { NO_BODIES } from './turn-section.js';

/** Bytes of payload that a row has in its section. */
function payloadOf(kind: number, flags: number, bodyBytes: number, headBytes: number): number {
  if (kind === KIND_STORE) return ((flags & FLAG_BODY_ABSENT) === 0 ? bodyBytes : 0) + headBytes;
  return kind === KIND_ANNOTATE ? headBytes : 0;
}

function touchesEntry(kind: number): boolean {
  return kind === KIND_DELETE || kind === KIND_WITHDRAW || kind === KIND_ANNOTATE;
}

export class FeedVariant {
  /** `section` for a mirror whose refill has reached `cursor` and ends at `base`. */
  of(section: SealedSection, cursor: number, base: number): SealedSection {
    const rows = section.rows.slice();
    const view = new DataView(rows.buffer);
    const keep: [number, number][] = [];
    let at = 0;
    let payloadBytes = 0;
    let creditBytes = 0;
    for (let offset = 0; offset < rows.length; offset += CHANGE_ROW_BYTES) {
      const kind = view.getUint8(offset);
      const flags = view.getUint8(offset + 1);
      const bodyBytes = view.getUint32(offset + 4, true);
      const bytes = payloadOf(kind, flags, bodyBytes, view.getUint32(offset + 8, true));
      const ref = view.getFloat64(offset + 16, true);
      if (touchesEntry(kind) && ref > cursor && ref <= base) {
        view.setUint8(offset + 1, flags | FLAG_SKIPPED);
      } else if (bytes > 0) {
        keep.push([at, at + bytes]);
        payloadBytes += bytes;
        if (kind === KIND_STORE) creditBytes += bytes + changeRoom(view, offset) + ENTRY_CREDIT_BYTES;
      }
      at += bytes;
    }
    const pieces = cut(section.pieces, keep);
    return { ...section, rows, pieces, payloadBytes, creditBytes, absent: NO_BODIES, keptBytes: 0 };
  }
}

/** The parts of the concatenated pieces that lie in the ascending ranges. */
export function cut(
  pieces: readonly Uint8Array[], ranges: readonly (readonly [number, number])[],
): Uint8Array[] {
  const parts: Uint8Array[] = [];
  let index = 0;
  let start = 0;
  for (const [from, to] of ranges) {
    for (let at = from; at < to; ) {
      let piece = pieces[index];
      while (piece !== undefined && start + piece.length <= at) {
        start += piece.length;
        index += 1;
        piece = pieces[index];
      }
      if (piece === undefined) return parts;
      const end = Math.min(to, start + piece.length);
      parts.push(piece.subarray(at - start, end - start));
      at = end;
    }
  }
  return parts;
}
