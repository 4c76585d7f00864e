/** A path that says nothing: what counts as silence, of one path and of both, and how long it is borne. */
import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { LinkBench, PORT_A, PORT_B } from './scripted-store.js';

describe('silence', () => {
  test('of the active path while the other speaks: failover after the timeout and a second look', () => {
    const bench = new LinkBench();
    bench.up();
    bench.passBeating(2_000, PORT_B);
    assert.equal(bench.network.count(PORT_B), 1, 'suspected: one more poll');
    bench.passBeating(50, PORT_B);
    assert.ok(bench.a.isDestroyed);
    assert.deepEqual(bench.told, []);
    bench.b.accept();
    assert.deepEqual(bench.told, ['switched']);
    assert.equal(bench.log.count('silent for 2050 ms'), 2, 'the path, and the pair');
  });

  test('of the standby while the active one speaks: it connects anew, the mirror hears nothing', () => {
    const bench = new LinkBench();
    bench.up();
    bench.passBeating(2_050, PORT_A);
    assert.equal(bench.states(), 'A RUN, B NG');
    assert.deepEqual(bench.told, []);
  });

  test('of both, the store standing still for 3 s: no failover, nothing down', () => {
    const bench = new LinkBench();
    bench.up();
    // Heartbeats of the two paths are answered at different times: B fell silent later than A.
    bench.pass(250);
    bench.a.beat(1);
    bench.pass(200);
    bench.b.beat(1);
    bench.pass(3_250);
    // It wakes up, and a tick comes between the answers of the two paths.
    bench.b.beat(1);
    bench.pass(100);
    bench.a.beat(1);
    bench.passBeating(4_000, PORT_A, PORT_B);
    assert.deepEqual(bench.told, []);
    assert.equal(bench.states(), 'A RUN, B READY');
    assert.equal(bench.network.attempts.length, 2);
  });

  test('of both for longer than a stall: both are given up, down once', () => {
    const bench = new LinkBench();
    bench.up();
    bench.pass(5_000);
    assert.deepEqual(bench.told, []);
    bench.pass(50);
    assert.equal(bench.states(), 'A NG, B NG');
    bench.pass(2_000);
    assert.equal(bench.told.length, 1);
    assert.match(bench.told.join(), /^down: silent for 5050 ms/);
  });

  test('of the active path that outlasts a stall of both: failover a timeout after the other speaks again', () => {
    const bench = new LinkBench();
    bench.up();
    bench.pass(2_500);
    bench.passBeating(1_950, PORT_B);
    assert.equal(bench.network.count(PORT_B), 1);
    bench.passBeating(200, PORT_B);
    assert.equal(bench.network.count(PORT_B), 2);
  });

  test('of the only path: it gets the stall as well', () => {
    const bench = new LinkBench({}, false);
    bench.up();
    bench.pass(5_000);
    assert.deepEqual(bench.told, []);
    bench.pass(50);
    assert.match(bench.told.join(), /^down: silent for 5050 ms/);
  });

  test('which we slept through says nothing: a loop that was blocked for 3 s fails nothing over', () => {
    const bench = new LinkBench();
    bench.up();
    bench.passBeating(1_000, PORT_A, PORT_B);
    bench.nowMs += 3_000;
    bench.link.tick(bench.nowMs);
    bench.passBeating(3_000, PORT_A, PORT_B);
    assert.deepEqual(bench.told, []);
    assert.equal(bench.network.attempts.length, 2);
  });

  test('data that waited in the kernel between the two looks saves the path', () => {
    const bench = new LinkBench();
    bench.up();
    bench.passBeating(2_000, PORT_B);
    bench.a.beat(1);
    bench.passBeating(1_500, PORT_B);
    assert.equal(bench.states(), 'A RUN, B READY');
  });
});
