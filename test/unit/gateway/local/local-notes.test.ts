/** What a gateway writes to its state_dir for the next process (gateway/local/local-notes.ts, gateway/local/). */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { dropCrashNote, readCrashNote, writeCrashNote } from '../../../../src/gateway/local/crash-note-file.js';
import { LocalNotes } from '../../../../src/gateway/local/local-notes.js';
import { CRASH_NOTES_MAX, CrashNotes, InHand } from '../../../../src/gateway/local/crash-notes.js';
import { readDrained, writeDrained } from '../../../../src/gateway/local/drained-file.js';

function folder(t: { after(run: () => void): void }): string {
  const made = mkdtempSync(join(tmpdir(), 'twinpost-notes-'));
  t.after(() => { rmSync(made, { recursive: true, force: true }); });
  return made;
}

describe('the crash note', () => {
  test('is read as it was written, as often as it is asked for, until it is dropped', (t) => {
    const state = folder(t);
    const notes = [{ ownerId: 'gw-1', messageId: 775_736_524_800_001, incarnation: 1_767_225_600_344 }];
    assert.equal(writeCrashNote(state, notes), true);
    assert.deepEqual(readCrashNote(state), notes);
    assert.deepEqual(readCrashNote(state), notes);
    dropCrashNote(state);
    assert.deepEqual(readCrashNote(state), []);
    dropCrashNote(state);
  });

  test('without anything in hand there is none, and without a folder nothing fails', (t) => {
    const state = folder(t);
    assert.equal(writeCrashNote(state, []), false);
    assert.equal(existsSync(join(state, 'crash-note.json')), false);
    assert.equal(writeCrashNote(undefined, [{ ownerId: 'gw-1', messageId: 1, incarnation: 2 }]), false);
    assert.deepEqual(readCrashNote(undefined), []);
    assert.equal(writeCrashNote(join(state, 'crash-note.json', 'x\0y'), [{ ownerId: 'gw-1', messageId: 1, incarnation: 2 }]), false);
  });

  test('a file that is none of ours says nothing; of a damaged one what can be read counts', (t) => {
    const state = folder(t);
    for (const text of ['', '{', '7', 'null', '{"owner":"gw-1"}', '[null, 7, {"owner": 1, "queue_id": "00000000001", "incarnation": 5}, {"owner": "gw-1", "queue_id": "?", "incarnation": 5}]']) {
      writeFileSync(join(state, 'crash-note.json'), text);
      assert.deepEqual(readCrashNote(state), [], text);
    }
    writeFileSync(join(state, 'crash-note.json'), '[{}, {"owner": "gw-1", "queue_id": "00000000001", "incarnation": 5}]');
    assert.deepEqual(readCrashNote(state), [{ ownerId: 'gw-1', messageId: 1, incarnation: 5 }]);
  });
});

describe('notes of crashes', () => {
  test('count the crashes of a message, each once; only what is in hand when the process dies is blamed', (t) => {
    const state = folder(t);
    for (const incarnation of [1, 2]) {
      const [crashes, inHand] = [new CrashNotes(), new InHand()];
      const notes = new LocalNotes(state, { crashes, inHand, incarnation });
      assert.equal(crashes.countOf('gw-1', 7), incarnation - 1);
      inHand.during('gw-1', 8, () => 'it ends well');
      assert.equal(notes.onCrash(), false);
      assert.throws(() => { inHand.during('gw-1', 7, () => { throw new Error('it ends the process'); }); });
      assert.equal(notes.onCrash(), true);
    }
    const crashes = new CrashNotes();
    const notes = new LocalNotes(state, { crashes, inHand: new InHand(), incarnation: 3 });
    assert.deepEqual([crashes.countOf('gw-1', 7), crashes.countOf('gw-1', 8), crashes.countOf('gw-2', 7)], [2, 0, 0]);
    crashes.add([{ ownerId: 'gw-1', messageId: 7, incarnation: 2 }, { ownerId: 'gw-2', messageId: 9, incarnation: 2 }]);
    assert.equal(crashes.countOf('gw-1', 7), 2, 'one crash told twice');
    crashes.forget('gw-1', 7);
    notes.tick(0);
    assert.deepEqual(readCrashNote(state).map(({ messageId }) => messageId), [9], 'what was released is forgotten by the file, too');
    crashes.forget('gw-2', 9);
    notes.tick(10_000);
    assert.equal(existsSync(join(state, 'crash-note.json')), false);
  });

  test('are bounded: the oldest go first, in the file as well', (t) => {
    const state = folder(t);
    const crashes = new CrashNotes();
    const notes = Array.from({ length: CRASH_NOTES_MAX + 5 }, (_, messageId) => ({ ownerId: 'gw-1', messageId, incarnation: 1 }));
    crashes.add(notes);
    writeCrashNote(state, notes);
    for (const kept of [crashes.all, readCrashNote(state)]) assert.deepEqual([kept.length, kept[0]?.messageId], [CRASH_NOTES_MAX, 5]);
  });
});

describe('the file of drained stores', () => {
  test('is read as it was written; without it none is drained', async (t) => {
    const state = join(folder(t), 'made', 'with it');
    assert.equal(readDrained(state).size, 0);
    for (const drained of [new Map([['store-a', 1_767_225_600_344], ['store-b', 7]]), new Map()]) {
      await writeDrained(state, drained);
      assert.deepEqual(readDrained(state), drained);
    }
  });

  test('that is none of ours, or was cut short, is an error, not an empty one', (t) => {
    const state = folder(t);
    for (const text of ['', '{"store-a":', '7', 'null', '["store-a"]', '{"store-a":"7"}']) {
      writeFileSync(join(state, 'drained-stores.json'), text);
      assert.throws(() => readDrained(state), Error, text);
    }
  });
});
