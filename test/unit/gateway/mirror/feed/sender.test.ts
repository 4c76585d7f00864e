/** When a turn's changes ask to be sent, and for how long deletions that stand alone wait for others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DELETE_TURNS_MAX, Sender } from '../../../../../src/gateway/mirror/feed/sender.js';
import type { Partition } from '../../../../../src/gateway/mirror/set/partition.js';
import { MessagePacker } from '../../../../../src/platform/node/packer.js';

const PARTITION = { handle: 1, uncountedBytes: 0 } as unknown as Partition;

function started(): { readonly sender: Sender; readonly asked: () => number } {
  let asked = 0;
  const sender = new Sender({ frameTargetBytes: 16_384, ringBytes: 1_000_000 }, {
    packer: new MessagePacker(), partitionOf: () => undefined, storeOf: () => undefined, ringRoomBytes: () => Infinity,
    requestFlush: () => { asked += 1; },
  });
  return { sender, asked: () => asked };
}

test('a turn asks once, and the next one again', () => {
  const { sender, asked } = started();
  sender.onDirty(PARTITION);
  sender.askFlush();
  assert.equal(asked(), 1);
  sender.beginFlush();
  sender.onDirty(PARTITION);
  assert.equal(asked(), 2);
});

test('deletions alone wait for as many turns after each flush, and not beside what presses', () => {
  const { sender } = started();
  sender.onDirty(PARTITION);
  for (let flush = 0; flush < 2; flush++) {
    for (let turn = 0; turn < DELETE_TURNS_MAX; turn++) assert.ok(sender.mayWait());
    assert.ok(!sender.mayWait());
    sender.beginFlush();
  }
  sender.onPressing();
  assert.ok(!sender.mayWait());
});
