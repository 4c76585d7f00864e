import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as rows from '../../../src/protocol/change-rows.js';
import * as entries from '../../../src/protocol/entry-rows.js';
import { changeRows, entryRows } from './samples.js';

describe('change row', () => {
  test('reads back what was written, at any offset and the ends of every range', () => {
    const bytes = changeRows([1, 0, 0, 0, 0, 0], [4, 7, 0xffff_ffff, 0xffff_fffe, 0xffff_fffd, Number.MAX_SAFE_INTEGER]);
    const odd = new Uint8Array(bytes.length + 3);
    odd.set(bytes, 3);
    const view = rows.viewOf(odd.subarray(3));
    const at = rows.CHANGE_ROW_BYTES;
    assert.equal(rows.changeKind(view, at), 4);
    assert.equal(rows.changeFlags(view, at), 7);
    assert.equal(rows.changeBodyBytes(view, at), 0xffff_ffff);
    assert.equal(rows.changeHeadBytes(view, at), 0xffff_fffe);
    assert.equal(rows.changeCrc(view, at), 0xffff_fffd);
    assert.equal(rows.changeRef(view, at), Number.MAX_SAFE_INTEGER);
  });

  test('overwrites all of a row, whatever stood there', () => {
    const bytes = new Uint8Array(rows.CHANGE_ROW_BYTES).fill(0xff);
    rows.writeChangeRow(rows.viewOf(bytes), 0, 1, 0, 0, 0, 0, 0);
    assert.deepEqual([...bytes], [1, ...new Array<number>(23).fill(0)]);
  });

  test('says how many bytes of its payload are in the frame', () => {
    const view = rows.viewOf(changeRows([1, 0, 10, 5, 0, 1], [1, 1, 10, 5, 0, 1], [1, 4, 10, 5, 0, 1], [2, 0, 0, 9, 0, 1], [3, 0, 0, 7, 0, 1], [4, 0, 0, 0, 0, 1]));
    const payload = [0, 1, 2, 3, 4, 5].map((i) => [rows.changeBodyInFrame(view, i * 24), rows.changeHeadInFrame(view, i * 24)]);
    assert.deepEqual(payload, [[10, 5], [0, 5], [0, 0], [0, 0], [0, 7], [0, 0]]);
  });

  test('costs credit only where it can be refused for memory', () => {
    assert.equal(rows.creditCost(rows.KIND_STORE, 0, 1000, 100, 30), 1258);
    assert.equal(rows.creditCost(rows.KIND_STORE, rows.FLAG_BODY_ABSENT | rows.FLAG_SHARED, 1000, 100, 30), 258);
    assert.equal(rows.creditCost(rows.KIND_STORE, rows.FLAG_SKIPPED, 1000, 100, 30), 0);
    for (const kind of [rows.KIND_DELETE, rows.KIND_ANNOTATE, rows.KIND_WITHDRAW]) {
      assert.equal(rows.creditCost(kind, 0, 0, 100, 0), 0);
    }
  });

  for (const [rule, row] of [
    ['', [1, 3, 5, 6, 7, 8]], ['', [2, 4, 0, 1, 0, 8]], ['', [3, 0, 0, 6, 7, 8]], ['', [3, 4, 0, 6, 7, 8]], ['', [4, 0, 0, 0, 0, 8]],
    ['', [1, 0, 5, 6, 7, 8, 0xffff]],
    ['row kind', [0, 0, 0, 0, 0, 1]], ['row kind', [5, 0, 0, 0, 0, 1]],
    ['row flags', [1, 8, 0, 0, 0, 1]], ['row flags', [2, 1, 0, 1, 0, 1]], ['row flags', [3, 2, 0, 1, 0, 1]],
    ['row ref', [1, 0, 0, 0, 0, -1]], ['row ref', [1, 0, 0, 0, 0, 0.5]], ['row ref', [1, 0, 0, 0, 0, NaN]], ['row ref', [1, 0, 0, 0, 0, 2 ** 53]],
    ['row body of a kind that has none', [3, 0, 1, 6, 7, 8]],
    ['row checksum of a kind without payload', [2, 0, 0, 1, 1, 8]],
    ['row delete count', [2, 0, 0, 0, 0, 8]],
    ['row head of a kind that has none', [4, 0, 0, 1, 0, 8]],
  ] as const) {
    test(`${rule === '' ? 'passes' : rule}: ${row.join(' ')}`, () => assert.equal(rows.checkChangeRow(rows.viewOf(changeRows(row)), 0), rule));
  }

  test('has room for a note where an entry is made, and counts it in the digest', () => {
    const view = rows.viewOf(changeRows([1, 3, 5, 6, 7, 8, 0xfffe]));
    assert.deepEqual([rows.changeKind(view, 0), rows.changeFlags(view, 0), rows.changeRoom(view, 0)], [1, 3, 0xfffe]);
    assert.equal(rows.changeDigested(view, 0) >>> 0, 0xfffe_0001);
    for (const row of [[2, 0, 0, 1, 0, 8, 1], [3, 0, 0, 6, 7, 8, 1], [4, 0, 0, 0, 0, 8, 256]] as const) {
      assert.equal(rows.checkChangeRow(rows.viewOf(changeRows(row)), 0), 'row room of a kind that has none');
    }
  });
});

describe('entry row', () => {
  test('reads back what was written', () => {
    const view = rows.viewOf(entryRows([0, 0, 0, 0, 0, 0, 0, 0], [3, 0xffff_ffff, 2, 3, 4, 0xffff_fff0, Number.MAX_SAFE_INTEGER, 2 ** 52, 0xfffe]));
    const at = entries.ENTRY_ROW_BYTES;
    assert.deepEqual(
      [
        entries.entryFlags(view, at), entries.entryBodyBytes(view, at), entries.entryHeadBytes(view, at), entries.entryCrc(view, at),
        entries.entryNoteBytes(view, at), entries.entryNoteCrc(view, at), entries.entryId(view, at), entries.entryPosition(view, at),
        entries.entryRoom(view, at),
      ],
      [3, 0xffff_ffff, 2, 3, 4, 0xffff_fff0, Number.MAX_SAFE_INTEGER, 2 ** 52, 0xfffe],
    );
  });

  test('has its body in the frame unless it is absent', () => {
    const view = rows.viewOf(entryRows([0, 9, 0, 0, 0, 0, 1, 1], [2, 9, 0, 0, 0, 0, 1, 1], [3, 9, 0, 0, 0, 0, 1, 1]));
    assert.deepEqual([0, 1, 2].map((i) => entries.entryBodyInFrame(view, i * entries.ENTRY_ROW_BYTES)), [9, 9, 0]);
  });

  for (const [rule, row] of [
    ['', [2, 5, 6, 7, 8, 9, 10, 11, 12]], ['row note beyond its room', [2, 5, 6, 7, 8, 9, 10, 11, 11]], ['', [3, 5, 6, 7, 0, 0, 10, 1]],
    ['row flags', [8, 5, 6, 7, 0, 0, 10, 1]], ['row flags', [5, 5, 6, 7, 8, 9, 10, 11]], ['row flags', [6, 5, 6, 7, 8, 9, 10, 11]], ['row flags', [256, 5, 6, 7, 8, 9, 10, 11]],
    ['row id', [0, 5, 6, 7, 8, 9, -1, 11]], ['row id', [0, 5, 6, 7, 8, 9, Infinity, 11]],
    ['row position', [0, 5, 6, 7, 8, 9, 10, 0]], ['row position', [0, 5, 6, 7, 8, 9, 10, 1.5]],
    ['row checksum without a note', [0, 5, 6, 7, 0, 9, 10, 11]],
  ] as const) {
    test(`${rule === '' ? 'passes' : rule}: ${row.join(' ')}`, () => assert.equal(entries.checkEntryRow(rows.viewOf(entryRows(row)), 0), rule));
  }
});
