/**
 * The payload of the golden frames, walked as a receiver walks it: the rows say exactly how many bytes
 * follow, and a changed byte in any of them breaks the checksum of its row.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { crc32 } from '../../../src/platform/node/checksum.js';
import * as rows from '../../../src/protocol/change-rows.js';
import * as entries from '../../../src/protocol/entry-rows.js';
import * as changes from '../../../src/protocol/messages/changes.js';
import type { Block } from '../../../src/protocol/messages/block.js';
import { sampleOf } from './samples.js';

/** Rows whose checksum does not fit; fails when the rows and the bodies differ in length. */
function brokenChanges(value: changes.Changes, bodies: Uint8Array): number {
  let broken = 0;
  let at = 0;
  const known = new Map<number, Uint8Array>();
  for (let section = 0; section < changes.sectionCount(value); section++) {
    const view = rows.viewOf(changes.sectionRows(value, section));
    for (let i = 0; i < view.byteLength / rows.CHANGE_ROW_BYTES; i++) {
      const offset = i * rows.CHANGE_ROW_BYTES;
      assert.equal(rows.checkChangeRow(view, offset), '');
      const bodyBytes = rows.changeBodyInFrame(view, offset);
      const headBytes = rows.changeHeadInFrame(view, offset);
      const flags = rows.changeFlags(view, offset);
      const absent = (flags & rows.FLAG_BODY_ABSENT) !== 0;
      const body = absent ? known.get(rows.changeRef(view, offset)) ?? new Uint8Array(0) : bodies.subarray(at, at + bodyBytes);
      if ((flags & rows.FLAG_SHARED) !== 0 && !absent) known.set(rows.changeRef(view, offset), body);
      at += bodyBytes;
      const crc = crc32(bodies.subarray(at, at + headBytes), crc32(body, 0));
      at += headBytes;
      if ((flags & rows.FLAG_SKIPPED) === 0 && crc !== rows.changeCrc(view, offset)) broken++;
    }
  }
  assert.equal(at, bodies.length);
  return broken;
}

function brokenEntries(bytes: Uint8Array, bodies: Uint8Array): number {
  let broken = 0;
  let at = 0;
  let body: Uint8Array = new Uint8Array(0);
  const view = rows.viewOf(bytes);
  for (let offset = 0; offset < bytes.length; offset += entries.ENTRY_ROW_BYTES) {
    assert.equal(entries.checkEntryRow(view, offset), '');
    const bodyBytes = entries.entryBodyInFrame(view, offset);
    const headBytes = entries.entryHeadBytes(view, offset);
    const noteBytes = entries.entryNoteBytes(view, offset);
    // The second row shares the body of the first.
    if ((entries.entryFlags(view, offset) & rows.FLAG_BODY_ABSENT) === 0) body = bodies.subarray(at, at + bodyBytes);
    at += bodyBytes;
    const crc = crc32(bodies.subarray(at, at + headBytes), crc32(body, 0));
    at += headBytes;
    const noteCrc = crc32(bodies.subarray(at, at + noteBytes), 0);
    at += noteBytes;
    if (crc !== entries.entryCrc(view, offset) || noteCrc !== entries.entryNoteCrc(view, offset)) broken++;
  }
  assert.equal(at, bodies.length);
  return broken;
}

describe('payloads', () => {
  for (const name of ['changes', 'block', 'refill', 'fetched'] as const) {
    test(`of ${name}: as long as the rows say, and every changed byte breaks a checksum`, () => {
      const { value, bodies } = sampleOf(name);
      const broken = (bytes: Uint8Array): number =>
        name === 'changes' ? brokenChanges(value as changes.Changes, bytes) : brokenEntries((value as Block).rows, bytes);
      assert.equal(broken(bodies), 0);
      for (let at = 0; at < bodies.length; at++) {
        const other = Uint8Array.from(bodies);
        other[at] = (other[at] ?? 0) ^ 0x20;
        assert.ok(broken(other) > 0, `byte ${at}`);
      }
    });
  }
});
