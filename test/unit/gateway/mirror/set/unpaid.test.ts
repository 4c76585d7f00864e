/** Notes are paid by no credit: a section goes before it has more of them than a store holds for a frame. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { PayloadSlabs } from '../../../../../src/gateway/mirror/feed/payload-slabs.js';
import { Partition } from '../../../../../src/gateway/mirror/set/partition.js';
import { EntryTable } from '../../../../../src/gateway/queue/entry-table.js';
import { UNPAID_TARGET_BYTES } from '../../../../../src/protocol/messages/changes.js';
import { idleHolder } from '../../idle-holder.js';
import { QUIET } from '../../quiet-partition.js';

test('a section with a frame of unpaid notes is sealed before the next change, and none before', () => {
  const large: number[] = [];
  const slabs = new PayloadSlabs({ mark: () => true, isPast: true });
  const partition = new Partition({ handle: 1, name: 'gw-1/1', isOwn: true, minReplicas: 1 }, idleHolder(), new EntryTable(1).partitionColumns, slabs, {
    ...QUIET, onLarge: ({ lastNumber }) => { large.push(lastNumber); },
  });
  partition.adopt(0, 0, 0);
  const note = new Uint8Array(UNPAID_TARGET_BYTES / 4);
  for (let change = 1; change <= 4; change += 1) partition.annotate(1, note, 0);
  assert.deepEqual(large, []);
  partition.withdraw(1);
  assert.deepEqual(large, [4]);
});
