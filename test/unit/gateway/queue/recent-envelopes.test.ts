import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Segments } from '../../../../src/base/segments.js';
import { ContentStore } from '../../../../src/gateway/queue/content-store.js';
import { Entries } from '../../../../src/gateway/queue/entries.js';
import { EntryState, EntryTable } from '../../../../src/gateway/queue/entry-table.js';
import { decodeEnvelope, encodeEnvelope } from '../../../../src/gateway/queue/envelope.js';
import { MailQueue } from '../../../../src/gateway/queue/mail-queue.js';
import { RecentEnvelopes } from '../../../../src/gateway/queue/recent-envelopes.js';
import { quietPartition } from '../quiet-partition.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import { MessagePacker } from '../../../../src/platform/node/packer.js';
import { QUEUE, envelopeTo } from '../outbound/pure/session-world.js';

describe('recent envelopes', () => {
  test('are those of the rows that took their places last', () => {
    const recent = new RecentEnvelopes();
    const [first, second] = [envelopeTo(['a@d']), envelopeTo(['b@d'])];
    recent.remember(3, first);
    assert.equal(recent.of(3), first);
    assert.equal(recent.of(3 + 512), undefined);
    recent.remember(3 + 512, second);
    assert.equal(recent.of(3), undefined);
    recent.forget(3);
    assert.equal(recent.of(3 + 512), second, 'another row that ends takes nothing away');
    recent.forget(3 + 512);
    assert.equal(recent.of(3 + 512), undefined);
  });

  test('are not kept for long lists', () => {
    const recent = new RecentEnvelopes();
    recent.remember(3, envelopeTo(['a@d', 'b@d']));
    assert.equal(recent.of(3), undefined);
  });

  test('end with their entry, whose row is another message next', () => {
    const entries = new Entries({ textsBytesMax: 0 }, new EntryTable(1), new ContentStore(new Segments({ segmentBytes: 4096 })), crc32);
    const queue = new MailQueue({ handle: 1, route: QUEUE.route, routed: true }, quietPartition(entries.table), entries.table);
    const packer = new MessagePacker();
    const envelope = envelopeTo(['a@d'], { flags: 1 });
    const head = encodeEnvelope(packer, envelope);
    for (const shared of [false, true]) {
      const content = shared ? entries.contents.storeShared([Uint8Array.of(1, 2, 3)], 3, 1) : 0;
      const slot = shared ? entries.contents.storeBytes(head, 30) : entries.contents.storeOwn([Uint8Array.of(1, 2, 3)], 3, head, 30);
      const row = entries.create(queue, 1, slot, content, 3, 0, 1, 2, 30);
      entries.table.transition(row, EntryState.STORING);
      queue.append(row, entries.bytes(row));
      entries.envelopes.remember(row, envelope);
      assert.deepEqual(decodeEnvelope(packer, 1, entries.head(row)), entries.envelopes.of(row));
      entries.remove(queue, row);
      assert.equal(entries.envelopes.of(row), undefined);
    }
  });
});
