import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ExportedMessage } from '../../../src/cli/export/exported-message.js';
import { exportedMessage } from '../../../src/cli/export/exported-message.js';
import { encodeEnvelope } from '../../../src/gateway/queue/envelope.js';
import type { Note } from '../../../src/gateway/queue/note.js';
import { encodeNote, freshNote } from '../../../src/gateway/queue/note.js';
import type { Recipient } from '../../../src/gateway/queue/types.js';
import { MessagePacker } from '../../../src/platform/node/packer.js';

const ARRIVAL_MS = 1_000_000_000_000;
const LIFETIME_S = 3600;

function exported(note: Partial<Note>, ...recipients: readonly Recipient[]): ExportedMessage {
  const packer = new MessagePacker();
  const head = encodeEnvelope(packer, {
    messageId: 7, queueClass: 'mail', queueName: 'q', reversePath: 'a@b.example', recipients, flags: 0, ret: 0, envid: '',
    arrivalWallMs: ARRIVAL_MS, expiryWallMs: ARRIVAL_MS + LIFETIME_S * 1000, client: '', helo: '',
  });
  const source = { name: 'q', owner: 'gw', number: undefined };
  return exportedMessage(packer, source, 7, 1, 0, head, encodeNote({ ...freshNote(recipients.length), ...note }));
}

describe('an exported message', () => {
  test('ends when it would here: held and delayed as it was and is', () => {
    const [arrivalS, bob] = [ARRIVAL_MS / 1000, { address: 'bob@c.example', notify: 0, orcpt: '' }];
    assert.equal(exported({}, bob).expiry_time, arrivalS + LIFETIME_S);
    assert.equal(exported({ addedSeconds: 500 }, bob).expiry_time, arrivalS + LIFETIME_S + 500);
    const held = exported({ addedSeconds: 500, heldSinceWallMs: Date.now() - 60_000 }, bob);
    assert.ok(Math.abs(held.expiry_time - (arrivalS + LIFETIME_S + 560)) < 30, String(held.expiry_time));
  });
});
