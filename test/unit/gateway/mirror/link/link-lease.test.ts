/** The lease at a store as its link keeps it: by heartbeats on either path, and never past a fence that was not heard (rule 6 of docs/model). */
import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { isInvalid } from '../../../../../src/protocol/invalid.js';
import { decodeHeartbeat } from '../../../../../src/protocol/messages/heartbeat.js';
import { MessagePacker } from '../../../../../src/platform/node/packer.js';
import type { Received } from './scripted-store.js';
import { LinkBench } from './scripted-store.js';

/** Of the 10 s that the scripted store grants: less 1% and 200 ms. */
const USABLE_MS = 9_700;
const packer = new MessagePacker();
const FENCE = { count: 1, partition: 'gateway-1/3', term: { number: 5, nonce: 1 } };

function processedIn(frame: Received): number {
  const heartbeat = decodeHeartbeat(packer, frame.control);
  assert.ok(!isInvalid(heartbeat));
  return heartbeat.fencesProcessed;
}

describe('lease at a store, as its link reckons it', () => {
  test('begins with the first answer to a heartbeat, not with the handshake', () => {
    const bench = new LinkBench({}, false);
    bench.up();
    assert.equal(bench.link.lease.endsMs, -Infinity);
    bench.pass(250);
    const sentMs = bench.nowMs;
    bench.pass(40);
    bench.a.beat(1, bench.a.frames.at(-1));
    assert.equal(bench.link.lease.endsMs, sentMs + USABLE_MS);
    assert.equal(bench.link.lease.bootId, bench.link.bootId);
  });

  test('an answer that comes late renews from the sending of the heartbeat that it answers, not of a later one', () => {
    const bench = new LinkBench();
    bench.up();
    bench.pass(250);
    const first = bench.a.last();
    const firstMs = bench.nowMs;
    bench.pass(500);
    bench.a.beat(1, first);
    assert.equal(bench.link.lease.endsMs, firstMs + USABLE_MS);
  });

  test('the standby renews it as well', () => {
    const bench = new LinkBench();
    bench.up();
    bench.pass(250);
    bench.b.beat(1);
    assert.equal(bench.link.lease.endsMs, bench.nowMs + USABLE_MS);
  });

  test('outlives the connections, and ends by the clock alone', () => {
    const bench = new LinkBench({}, false);
    bench.up();
    bench.pass(250);
    bench.a.beat(1);
    const { endsMs } = bench.link.lease;
    bench.a.handlers.onClose('ECONNRESET');
    assert.equal(bench.link.lease.endsMs, endsMs);
    bench.pass(50);
    bench.a.accept();
    assert.equal(bench.link.lease.endsMs, endsMs, 'the same boot within the lease');
  });

  test('of another boot begins anew: nothing is left of the old one', () => {
    const bench = new LinkBench({}, false);
    bench.start();
    bench.a.accept({ boot: 1 });
    bench.pass(250);
    bench.a.beat(1);
    const before = bench.link.lease.bootId;
    bench.a.handlers.onClose('ECONNRESET');
    bench.pass(50);
    bench.a.accept({ boot: 2 });
    bench.pass(250);
    const sentMs = bench.nowMs;
    bench.a.beat(1);
    assert.notEqual(bench.link.lease.bootId, before);
    assert.equal(bench.link.lease.endsMs, sentMs + USABLE_MS);
  });

  for (const path of ['a', 'b'] as const) {
    test(`an answer that names a fence, on path ${path}, tells of it before it renews anything; the next heartbeat confirms it`, () => {
      const bench = new LinkBench();
      bench.up();
      bench.pass(250);
      bench.a.beat(1);
      bench.b.beat(1);
      const { endsMs } = bench.link.lease;
      bench.pass(250);
      let endedMs = 0;
      bench.onEvent = (event) => { if (event === 'fenced in gateway-1/3') endedMs = bench.link.lease.endsMs; };
      const sentMs = bench.nowMs;
      bench[path].beat(1, undefined, [FENCE]);
      assert.deepEqual(bench.told.filter((event) => event.startsWith('fenced')), ['fenced in gateway-1/3']);
      assert.equal(endedMs, endsMs, 'not renewed when it is told');
      assert.equal(bench.link.lease.endsMs, sentMs + USABLE_MS, 'renewed when it has been processed');
      bench.pass(250);
      assert.equal(processedIn(bench.a.last()), 1);
    });
  }

  test('an answer to a heartbeat that was never sent is malformed and renews nothing', () => {
    const bench = new LinkBench({}, false);
    bench.up();
    bench.pass(250);
    const { endsMs } = bench.link.lease;
    bench.a.beatWith(bench.nowMs + 1);
    assert.deepEqual(bench.told, ['down: malformed: BEAT: token']);
    assert.equal(bench.link.lease.endsMs, endsMs);
  });
});
