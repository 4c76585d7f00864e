/** When the deletions of delivered mail are sent: with the changes of the next turns, or by themselves. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Partition } from '../../../../src/gateway/mirror/set/partition.js';
import { DELETE_TURNS_MAX, Sender } from '../../../../src/gateway/mirror/feed/sender.js';
import { EntryTable } from '../../../../src/gateway/queue/entry-table.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import { MessagePacker } from '../../../../src/platform/node/packer.js';
import { idleHolder } from '../idle-holder.js';

interface Made {
  readonly sender: Sender;
  readonly mirror: Partition;
  /** How often the end of a turn was asked for. */
  asked(): number;
  store(): number;
  flush(): void;
}

function made(): Made {
  let asked = 0;
  const sender: Sender = new Sender({ frameTargetBytes: 65_536, ringBytes: 1_000_000 }, { packer: new MessagePacker(), partitionOf: () => mirror, storeOf: () => undefined, ringRoomBytes: () => Infinity, requestFlush: () => { asked += 1; } });
  const mirror: Partition = new Partition({ handle: 1, name: 'gw-1/1', isOwn: true, minReplicas: 1 }, idleHolder(), new EntryTable(1).partitionColumns, sender.slabs, sender);
  mirror.adopt(0, 0, 0);
  const store = (): number => mirror.store(1, 0, [new Uint8Array(10)], 10, new Uint8Array(4), crc32(new Uint8Array(14), 0), 0);
  const flush = (): void => {
    sender.beginFlush();
    sender.sealDirty();
  };
  store();
  store();
  flush();
  return { sender, mirror, asked: () => asked, store, flush };
}

describe('deletions at the end of a turn', () => {
  test('alone they wait for the next turns, but not for more than a few', () => {
    const { sender, mirror, asked } = made();
    const before = asked();
    mirror.delete(1, 1, 2);
    assert.equal(asked(), before + 1, 'the end of the turn is asked for');
    for (let turn = 0; turn < DELETE_TURNS_MAX; turn++) assert.equal(sender.mayWait(), true);
    assert.equal(sender.mayWait(), false);
  });

  test('a new message takes them along, in their place', () => {
    const { sender, mirror, store, flush } = made();
    mirror.delete(1, 1, 2);
    assert.equal(sender.mayWait(), true);
    assert.equal(store(), 4, 'the deletion is change 3');
    assert.equal(sender.mayWait(), false);
    flush();
    assert.equal(mirror.isDirty, false);
    mirror.delete(2, 2, 0);
    assert.equal(sender.mayWait(), true, 'the turns of the next ones count anew');
  });

  test('no other change waits', () => {
    for (const change of [
      (mirror: Partition) => mirror.withdraw(2),
      (mirror: Partition) => mirror.annotate(2, new Uint8Array(3), 0),
    ]) {
      const { sender, mirror } = made();
      mirror.delete(1, 1, 2);
      change(mirror);
      assert.equal(sender.mayWait(), false);
    }
  });

  test('they do not wait while somebody waits for them', () => {
    const awaited = made();
    awaited.mirror.awaitEnd(awaited.mirror.delete(1, 1, 2), { onCommitted: () => {} });
    assert.equal(awaited.sender.mayWait(), false);
  });

  test('what a link or a refill has to say does not wait for them', () => {
    const { sender, mirror } = made();
    mirror.delete(1, 1, 2);
    sender.askFlush();
    assert.equal(sender.mayWait(), false);
  });

  test('a waiter for what was sent before does not press', () => {
    const { sender, mirror } = made();
    mirror.awaitCommit(1, { onCommitted: () => {} });
    mirror.delete(1, 1, 2);
    assert.equal(sender.mayWait(), true);
  });
});
