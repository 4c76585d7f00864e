/**
 * A section as it can stand alone: the bodies that its rows left out, because another partition's section
 * brought them to the same store, are put back. Sections are repeated so: by then the other entry, and the
 * body with it, may be gone from the store. Number and digest stay, as flags do not count (docs/PROTOCOL.md
 * "Digest").
 */
import {
  CHANGE_ROW_BYTES, FLAG_BODY_ABSENT, KIND_STORE, changeBodyBytes, changeBodyInFrame, changeFlags,
  changeHeadBytes, changeHeadInFrame, changeKind, changeRoom, creditCost, viewOf,
} from '../../../protocol/change-rows.js';
import type { RingBase } from './change-ring.js';
import { cut } from './feed-variant.js';
import { NO_SLABS } from './payload-slabs.js';
import type { SealedSection } from './turn-section.js';
import { NO_BODIES } from './turn-section.js';

export function wholeSection(section: SealedSection): SealedSection {
  if (section.absent.length === 0) return section;
  const rows = section.rows.slice();
  const view = viewOf(rows);
  const pieces: Uint8Array[] = [];
  let added = 0;
  let next = 0;
  /** Payload up to here is in `pieces`; `at` is where the row's own begins. */
  let taken = 0;
  let at = 0;
  for (let offset = 0; offset < rows.length; offset += CHANGE_ROW_BYTES) {
    const own = changeBodyInFrame(view, offset) + changeHeadInFrame(view, offset);
    if ((changeFlags(view, offset) & FLAG_BODY_ABSENT) !== 0) {
      pieces.push(...cut(section.pieces, [[taken, at]]));
      taken = at;
      for (const piece of section.absent[next] ?? []) pieces.push(piece);
      next += 1;
      added += changeBodyBytes(view, offset);
      view.setUint8(offset + 1, changeFlags(view, offset) & ~FLAG_BODY_ABSENT);
    }
    at += own;
  }
  pieces.push(...cut(section.pieces, [[taken, at]]));
  return {
    ...section, rows, pieces, payloadBytes: section.payloadBytes + added,
    creditBytes: section.creditBytes + added, absent: NO_BODIES, keptBytes: 0,
  };
}

/** The changes from `firstNumber` to where the ring begins, of those that a store answered TAIL with. */
export function importedSection(
  handle: number, firstNumber: number, base: RingBase, rows: Uint8Array, bodies: Uint8Array,
): SealedSection | undefined {
  const length = (base.number - firstNumber + 1) * CHANGE_ROW_BYTES;
  if (length <= 0 || length > rows.length) return undefined;
  const view = viewOf(rows);
  let payloadBytes = 0;
  let creditBytes = 0;
  let unpaidBytes = 0;
  for (let at = 0; at < length; at += CHANGE_ROW_BYTES) {
    const kind = changeKind(view, at);
    const headInFrame = changeHeadInFrame(view, at);
    payloadBytes += changeBodyInFrame(view, at) + headInFrame;
    const [bodyBytes, headBytes] = [changeBodyBytes(view, at), changeHeadBytes(view, at)];
    creditBytes += creditCost(kind, changeFlags(view, at), bodyBytes, headBytes, changeRoom(view, at));
    if (kind !== KIND_STORE) unpaidBytes += headInFrame;
  }
  if (payloadBytes > bodies.length) return undefined;
  return {
    handle, firstNumber, lastNumber: base.number, digestA: base.digestA, digestB: base.digestB,
    rows: rows.slice(0, length), pieces: payloadBytes === 0 ? [] : [bodies.slice(0, payloadBytes)],
    payloadBytes,
    creditBytes, unpaidBytes, absent: NO_BODIES, keptBytes: 0, slabs: NO_SLABS,
  };
}
