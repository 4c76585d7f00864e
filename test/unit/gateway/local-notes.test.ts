/** What a gateway writes to its state_dir for the next process (gateway/local-notes.ts, gateway/local/). */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { dropCrashNote, readCrashNote, writeCrashNote } from '../../../src/gateway/local/crash-note-file.js';
import { readSetHints } from '../../../src/gateway/local-notes.js';

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

describe('sets of mirrors', () => {
  test('are read back; a file that is none of ours says nothing', (t) => {
    const state = folder(t);
    assert.deepEqual(readSetHints(state), []);
    assert.deepEqual(readSetHints(undefined), []);
    const hint = { ownerId: 'gw-1', birth: 5, serial: 1, name: 'q', queueClass: 'mail', epoch: 7, members: ['store-a', 'store-c'] };
    writeFileSync(join(state, 'queue-sets.json'), JSON.stringify([hint, null, 7, { ...hint, epoch: '7' }, { ...hint, members: [] }]));
    assert.deepEqual(readSetHints(state), [hint]);
    writeFileSync(join(state, 'queue-sets.json'), readFileSync(join(state, 'queue-sets.json'), 'utf8').slice(0, 40));
    assert.deepEqual(readSetHints(state), []);
  });
});
