import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { LinkBench } from './scripted-store.js';

/** Of the 10 s that the scripted store grants. */
const USABLE_MS = 9_700;

describe('lease at a store, as its link reckons it', () => {
  test('begins with the first heartbeat that is answered: a handshake grants nothing', () => {
    const bench = new LinkBench({}, false);
    bench.up();
    assert.equal(bench.link.lease.endsMs, -Infinity);
    bench.pass(250);
    const sentMs = bench.nowMs;
    const heartbeat = bench.a.last();
    bench.pass(40);
    bench.a.beat(1, heartbeat);
    assert.equal(bench.link.lease.endsMs, sentMs + USABLE_MS);
  });

  test('a BEAT that comes late renews from the sending of the heartbeat that it answers, not of a later one', () => {
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

  test('outlives the connections, and lapses by the clock alone', () => {
    const bench = new LinkBench({}, false);
    bench.start();
    bench.a.accept();
    const endsMs = bench.link.lease.endsMs;
    bench.a.handlers.onClose('ECONNRESET');
    assert.equal(bench.link.lease.endsMs, endsMs);
    bench.pass(50);
    bench.a.accept();
    assert.equal(bench.link.lease.endsMs, endsMs, 'nothing is granted by a handshake alone');
  });

  test('a new boot has granted nothing yet', () => {
    const bench = new LinkBench({}, false);
    bench.start();
    bench.a.accept({ boot: 1 });
    const { bootId } = bench.link.lease;
    bench.a.handlers.onClose('ECONNRESET');
    bench.pass(50);
    bench.a.accept({ boot: 2 });
    assert.notEqual(bench.link.lease.bootId, bootId);
  });

  test('an answer to a heartbeat that was never sent is malformed and renews nothing', () => {
    const bench = new LinkBench({}, false);
    bench.up();
    bench.pass(250);
    const endsMs = bench.link.lease.endsMs;
    bench.a.beatWith(bench.nowMs + 1);
    assert.deepEqual(bench.told, ['down: malformed: BEAT: token']);
    assert.equal(bench.link.lease.endsMs, endsMs);
  });
});
