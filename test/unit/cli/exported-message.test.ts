import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ExportedMessage } from '../../../src/cli/export/exported-message.js';
import { exportedMessage } from '../../../src/cli/export/exported-message.js';
import { encodeEnvelope } from '../../../src/gateway/queue/envelope.js';
import type { Note } from '../../../src/gateway/queue/note.js';
import { encodeNote, freshNote } from '../../../src/gateway/queue/note.js';
import type { Recipient } from '../../../src/gateway/mail-types.js';
import { ALIAS_CHANGED, ALIAS_EXPANDED, ALIAS_KEEPS, ALIAS_SUCCESS, ALIAS_WRITTEN, NOTIFY_FAILURE, NOTIFY_NEVER } from '../../../src/gateway/mail-types.js';
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

  test('names what was written to an alias, as it was written, and asked of it; none where a client gave another ORCPT', () => {
    const aliasOf = (notify: number, orcpt: string, address = 'x@hidden.example'): unknown => exported({}, { address, notify, orcpt }).recipients[0]?.alias;
    const team = 'rfc822;te+2Bam@ours.example';
    const ours = ALIAS_CHANGED | ALIAS_WRITTEN;
    assert.deepEqual(aliasOf(ours | NOTIFY_FAILURE, team), { address: 'te+am@ours.example', notify: 'FAILURE' });
    assert.deepEqual(aliasOf(ours | ALIAS_SUCCESS | ALIAS_EXPANDED | NOTIFY_NEVER, team), { address: 'te+am@ours.example', notify: 'SUCCESS' });
    assert.deepEqual(aliasOf(ours, 'utf-8;d\\x{F6}rte@ours.example'), { address: 'd\u00f6rte@ours.example' });
    assert.deepEqual(aliasOf(ALIAS_SUCCESS | NOTIFY_FAILURE, '', 'team@ours.example'), { address: 'team@ours.example', notify: 'SUCCESS,FAILURE' });
    assert.deepEqual(aliasOf(ALIAS_CHANGED | NOTIFY_FAILURE, 'rfc822;victim@stranger.example'), { notify: 'FAILURE' });
    assert.equal(aliasOf(NOTIFY_FAILURE, team), undefined);
    // The list itself, which keeps a copy; and a list of a list.
    assert.deepEqual(aliasOf(ALIAS_KEEPS, '', 'team@ours.example'), { address: 'team@ours.example', keeps: true });
    assert.deepEqual(aliasOf(ours | ALIAS_KEEPS, team, 'part@ours.example'), { address: 'te+am@ours.example', keeps: true });
  });
});
