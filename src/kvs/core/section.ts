/**
 * Applies one section of CHANGES to one copy, as a whole or not at all.
 *
 *   number + 1 < first             GAP
 *   end ≤ number                   a repeat: digest compared, nothing applied
 *   else                           rows ≤ number are passed over, the others applied in order, each checked
 *                                  (CHECKSUM, MISSING, BODY); then the digest (DIGEST);
 *                                  then commit, or roll back with the reason
 *
 * The caller has measured the rows (measureRows): kinds, flags and payload lengths are sound here, and the
 * payload lies inside the frame. docs/PROTOCOL.md "Applying a section".
 *
 * Hot path: one checksum for all of a frame, or of a section, that only stores and deletes (payload-sum.ts),
 * one view and one copy per stored row, no object otherwise. When it is wrong, or other kinds are there, each
 * row's own tells which. Not here: who may change a copy and whether memory allows it (store.ts).
 */

import type { Crc32 } from '../../platform/ports.js';
import {
  CHANGE_ROW_BYTES, DIGESTED, FLAG_BODY_ABSENT, FLAG_SHARED, FLAG_SKIPPED,
  KIND_ANNOTATE, KIND_DELETE, KIND_STORE, KIND_WITHDRAW, NOTE_CRC_BYTES,
} from '../../protocol/change-rows.js';
import { Digest } from '../../protocol/digest.js';
import type { Changes } from '../../protocol/messages/changes.js';
import { sectionCount, sectionRows } from '../../protocol/messages/changes.js';
import {
  REFUSAL_CHECKSUM, REFUSAL_DIGEST, REFUSAL_GAP, REFUSAL_INVALID, REFUSAL_MISSING,
} from '../../protocol/reasons.js';
import type { Contents } from './contents.js';
import type { StoredEntries } from './stored-entries.js';
import type { MirroredPartition } from './mirrored-partition.js';
import { PayloadSum } from './payload-sum.js';
import { SectionJournal } from './section-journal.js';

const APPLIED = 0;

export interface SectionParts {
  readonly crc32: Crc32;
  readonly entries: StoredEntries;
  readonly contents: Contents;
  /** Takes a chain of entries that is to be freed in steps. */
  readonly discardLater: (first: number) => void;
}

export class SectionApplier {
  readonly #crc32: Crc32;
  readonly #entries: StoredEntries;
  readonly #contents: Contents;
  readonly #journal: SectionJournal;
  readonly #digest = new Digest();
  /** Of the section in work: payload of its rows that are no repeats, and whether one of them is SKIPPED. */
  #payloadFrom = 0;
  #payloadTo = 0;
  #hasSkipped = false;
  /** The payloads have been found right as a whole. */
  #isSound = false;
  /** Of the frame in work, when all of it has been found right. */
  #soundPayload: Uint8Array | undefined;
  readonly #sum = new PayloadSum();

  constructor(parts: SectionParts) {
    this.#crc32 = parts.crc32;
    this.#entries = parts.entries;
    this.#contents = parts.contents;
    this.#journal = new SectionJournal(parts);
  }

  /** Answers APPLIED or a refusal. `view` holds the rows at rowsAt; `payload` the bodies at payloadAt. */
  apply(
    copy: MirroredPartition, firstNumber: number, digestA: number, digestB: number,
    view: DataView, rowsAt: number, rowCount: number, payload: Uint8Array, payloadAt: number,
  ): number {
    const repeats = copy.number + 1 - firstNumber;
    if (repeats < 0) return REFUSAL_GAP;
    if (repeats >= rowCount) return compareRepeat(copy, firstNumber + rowCount - 1, digestA, digestB);
    this.#journal.begin(copy);
    this.#isSound = payload === this.#soundPayload
      || (repeats === 0 && this.#judgeAll(view, rowsAt, rowCount, payload, payloadAt));
    if (this.#isSound) this.#contents.beginSound(payload);
    const reason = this.#applyRows(
      copy, firstNumber, digestA, digestB, view, rowsAt, rowCount, payload, payloadAt, repeats,
    );
    this.#contents.endSound();
    if (reason !== APPLIED) {
      this.#journal.rollback(copy);
      copy.history.truncate(copy.number);
      return reason;
    }
    this.#journal.commit();
    copy.ring.append(
      copy, firstNumber + repeats, copy.digestA, copy.digestB,
      view, rowsAt + repeats * CHANGE_ROW_BYTES, rowCount - repeats, payload,
      this.#hasSkipped ? -1 : this.#payloadFrom, this.#payloadTo,
    );
    copy.number = firstNumber + rowCount - 1;
    copy.digestA = digestA;
    copy.digestB = digestB;
    return APPLIED;
  }

  /**
   * The sections of a frame follow: are all their payloads right together? Nothing is refused here: if they
   * are not, or that can't be told, each section is judged by itself, and then each row. `known`: the
   * checksum of the payload, if its reader has worked it out; else -1.
   */
  beginFrame(changes: Changes, payload: Uint8Array, known = -1): void {
    this.#soundPayload = undefined;
    const sections = sectionCount(changes);
    if (payload.length === 0) return;
    const sum = this.#sum;
    sum.begin();
    const view = new DataView(sectionRows(changes, 0).buffer);
    for (let i = 0; i < sections; i += 1) {
      const rows = sectionRows(changes, i);
      if (rows.buffer !== view.buffer) return;
      if (!sum.add(view, rows.byteOffset, rows.length / CHANGE_ROW_BYTES, payload.length)) return;
    }
    if (sum.bytes !== payload.length) return;
    if (sum.matches(known < 0 ? this.#crc32(payload, 0) : known)) this.#soundPayload = payload;
  }

  /** The frame's bytes are not held any longer. */
  endFrame(): void {
    this.#soundPayload = undefined;
  }

  /**
   * Do all payloads of a section together have the checksum that follows from those of the rows? False also
   * when nobody can tell so.
   */
  #judgeAll(
    view: DataView, rowsAt: number, rowCount: number, payload: Uint8Array, payloadAt: number,
  ): boolean {
    const sum = this.#sum;
    sum.begin();
    if (!sum.add(view, rowsAt, rowCount, payload.length - payloadAt)) return false;
    if (sum.stores <= 1) return false;
    const bytes = new Uint8Array(payload.buffer, payload.byteOffset + payloadAt, sum.bytes);
    return sum.matches(this.#crc32(bytes, 0));
  }

  #applyRows(
    copy: MirroredPartition, firstNumber: number, digestA: number, digestB: number,
    view: DataView, rowsAt: number, rowCount: number, payload: Uint8Array, payloadAt: number, repeats: number,
  ): number {
    const digest = this.#digest;
    const history = copy.history;
    let at = payloadAt;
    let from = payloadAt;
    let hasSkipped = false;
    digest.reset(copy.digestA, copy.digestB);
    for (let i = 0; i < rowCount; i += 1) {
      const row = rowsAt + i * CHANGE_ROW_BYTES;
      const word = view.getUint32(row, true);
      const kind = word & 0xff;
      const flags = (word >>> 8) & 0xff;
      const room = word >>> 16;
      const bodyBytes = view.getUint32(row + 4, true);
      const headBytes = view.getUint32(row + 8, true);
      const crc = view.getUint32(row + 12, true);
      const ref = view.getFloat64(row + 16, true);
      const start = at;
      if ((flags & FLAG_SKIPPED) === 0 && kind !== KIND_DELETE) {
        at += (flags & FLAG_BODY_ABSENT) === 0 ? bodyBytes + headBytes : headBytes;
      }
      if (i < repeats) {
        from = at;
        continue;
      }
      digest.add(word & DIGESTED, bodyBytes, headBytes, crc, ref);
      history.push(digest.a, digest.b);
      if ((flags & FLAG_SKIPPED) !== 0) {
        hasSkipped = true;
        continue;
      }
      let reason = APPLIED;
      if (kind === KIND_STORE) {
        const number = firstNumber + i;
        reason = this.#store(copy, number, flags, bodyBytes, headBytes, crc, ref, payload, start, room);
      } else if (kind === KIND_DELETE) {
        reason = this.#remove(copy, ref, headBytes);
      } else {
        reason = this.#applyRare(copy, kind, headBytes, crc, ref, payload, start);
      }
      if (reason !== APPLIED) return reason;
    }
    this.#payloadFrom = from;
    this.#payloadTo = at;
    this.#hasSkipped = hasSkipped;
    return digest.equals(digestA, digestB) ? APPLIED : REFUSAL_DIGEST;
  }

  #applyRare(
    copy: MirroredPartition, kind: number, headBytes: number, crc: number, ref: number,
    payload: Uint8Array, start: number,
  ): number {
    if (kind === KIND_WITHDRAW) return this.#remove(copy, ref, 1);
    if (kind === KIND_ANNOTATE) return this.#annotate(copy, headBytes, crc, ref, payload, start);
    return REFUSAL_INVALID;
  }

  #store(
    copy: MirroredPartition, position: number, flags: number, bodyBytes: number, headBytes: number,
    crc: number, id: number, payload: Uint8Array, start: number, room: number,
  ): number {
    const contents = this.#contents;
    if (this.#isSound) {
      contents.keepOwn(start, bodyBytes + headBytes, room);
    } else {
      const isAbsent = (flags & FLAG_BODY_ABSENT) !== 0;
      const reason = (flags & (FLAG_SHARED | FLAG_BODY_ABSENT)) === 0
        ? contents.takeOwn(payload, start, bodyBytes + headBytes, crc, room)
        : contents.takeShared(
          copy.ownerAccount, id, isAbsent, bodyBytes, headBytes, crc, payload, start, room,
        );
      if (reason !== APPLIED) return reason;
    }
    const row = this.#entries.create(id, contents.slot, bodyBytes, headBytes, crc, contents.shared);
    this.#entries.link(copy, row, position, copy.last);
    this.#journal.linked(row);
    return APPLIED;
  }

  #remove(copy: MirroredPartition, position: number, count: number): number {
    const entries = this.#entries;
    const first = entries.find(copy, position);
    if (first === 0) return REFUSAL_MISSING;
    if (count === 1) {
      this.#journal.unlinked(first, position);
      entries.unlink(copy, first);
      return APPLIED;
    }
    const before = entries.prevOf(first);
    const last = entries.detach(copy, first, count);
    if (last === 0) return REFUSAL_MISSING;
    this.#journal.cut(first, last, before, count);
    return APPLIED;
  }

  #annotate(
    copy: MirroredPartition, noteBytes: number, crc: number, position: number, payload: Uint8Array,
    start: number,
  ): number {
    const row = this.#entries.find(copy, position);
    if (row === 0) return REFUSAL_MISSING;
    const note = payload.subarray(start, start + noteBytes);
    if (this.#crc32(note, 0) !== crc) return REFUSAL_CHECKSUM;
    if (noteBytes > 0 && noteBytes + NOTE_CRC_BYTES > this.#entries.roomOf(row)) return REFUSAL_INVALID;
    this.#journal.note(row);
    this.#entries.setNote(row, note, crc);
    return APPLIED;
  }
}

/** A repeat is acknowledged again when it is the same; one too old to compare was acknowledged long ago. */
function compareRepeat(copy: MirroredPartition, end: number, digestA: number, digestB: number): number {
  if (!copy.history.knows(end)) return APPLIED;
  return copy.history.matches(end, digestA, digestB) ? APPLIED : REFUSAL_DIGEST;
}
