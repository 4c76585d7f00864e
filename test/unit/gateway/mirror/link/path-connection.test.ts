import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import * as types from '../../../../../src/protocol/message-types.js';
import * as reasons from '../../../../../src/protocol/reasons.js';
import { encodeBeat } from '../../../../../src/protocol/messages/beat.js';
import { LinkBench, PORT_A, PORT_B, packer } from './scripted-store.js';

describe('loss of a path', () => {
  test('refused: tries again after 50 ms, doubling to 2 s, and logs the cause once', () => {
    const bench = new LinkBench({}, false);
    bench.start();
    const pauses: number[] = [];
    for (let i = 0; i < 9; i++) {
      const from = bench.nowMs;
      const attempts = bench.network.count(PORT_A);
      bench.a.handlers.onClose('ECONNREFUSED');
      while (bench.network.count(PORT_A) === attempts) bench.pass(50);
      pauses.push(bench.nowMs - from);
    }
    assert.deepEqual(pauses, [50, 100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000]);
    assert.equal(bench.log.count('ECONNREFUSED'), 1);
    assert.deepEqual(bench.told, []);
  });

  test('chance shortens a pause, so that gateways which lost a store together come back apart', () => {
    const bench = new LinkBench({}, false);
    bench.start();
    bench.chance = 0.99;
    bench.a.handlers.onClose('ECONNREFUSED');
    bench.nowMs += 41;
    bench.link.tick(bench.nowMs);
    assert.equal(bench.network.count(PORT_A), 2);
  });

  test('a link that stood for a while starts over with the short pause', () => {
    const bench = new LinkBench();
    bench.start();
    for (let i = 0; i < 5; i++) {
      const attempts = bench.network.count(PORT_A);
      bench.a.handlers.onClose('ECONNREFUSED');
      while (bench.network.count(PORT_A) === attempts) bench.pass(50);
    }
    bench.a.accept();
    for (let i = 0; i < 50; i++) {
      bench.pass(50);
      if (bench.a.last().type === types.HEARTBEAT) bench.a.beat(1);
    }
    const attempts = bench.network.count(PORT_A);
    bench.a.handlers.onClose('ECONNRESET');
    bench.pass(50);
    assert.equal(bench.network.count(PORT_A), attempts + 1);
  });

  test('one that falls right after WELCOME keeps backing off', () => {
    const bench = new LinkBench();
    bench.start();
    for (let i = 0; i < 4; i++) {
      const attempts = bench.network.count(PORT_A);
      bench.a.accept();
      bench.a.handlers.onClose('ECONNRESET');
      while (bench.network.count(PORT_A) === attempts) bench.pass(50);
    }
    const attempts = bench.network.count(PORT_A);
    bench.a.handlers.onClose('ECONNRESET');
    bench.pass(600);
    assert.equal(bench.network.count(PORT_A), attempts);
  });

  test('the only path lost: down once, with the reason; up again on the next connection, new boot id shown', () => {
    const bench = new LinkBench({}, false);
    bench.up();
    bench.link.request(types.FENCE, packer.pack([1]), [], 0);
    bench.link.flush();
    bench.a.handlers.onClose('ECONNRESET');
    assert.deepEqual(bench.told, ['down: ECONNRESET']);
    assert.equal(bench.link.isUp, false);
    assert.equal(bench.link.canSend, false);
    assert.equal(bench.link.credit, 0);
    assert.equal(bench.link.unackedBytes, 0);
    assert.equal(bench.states(), 'A NG');
    bench.pass(50);
    bench.a.accept({ boot: 2 });
    assert.equal(bench.told.at(-1), 'up');
    assert.equal(bench.link.bootId, '02'.repeat(16));
    assert.deepEqual(bench.a.names(), ['HELLO', 'PROOF'], 'sequences and frames start anew');
  });

  test('the standby lost is no news for the mirror; it comes back by itself', () => {
    const bench = new LinkBench();
    bench.up();
    bench.b.handlers.onClose('ECONNRESET');
    assert.deepEqual(bench.told, []);
    assert.equal(bench.states(), 'A RUN, B NG');
    assert.equal(bench.log.count('standby path'), 1);
    bench.pass(50);
    bench.b.accept();
    assert.equal(bench.states(), 'A RUN, B READY');
    assert.equal(bench.b.hello().flags, 0);
  });

  test('the standby takes answers to heartbeats, and whatever else is said on it ends it', () => {
    const bench = new LinkBench();
    bench.up();
    for (let i = 0; i < 20; i++) {
      bench.pass(50);
      for (const path of [bench.a, bench.b]) if (path.last().type === types.HEARTBEAT) path.beat(1);
    }
    assert.equal(bench.states(), 'A RUN, B READY');
    bench.b.ack(1, 99);
    assert.equal(bench.states(), 'A RUN, B NG');
    assert.deepEqual(bench.told, []);
  });

  test('late events of an earlier connection change nothing', () => {
    const bench = new LinkBench({}, false);
    bench.up();
    const old = bench.a;
    old.handlers.onClose('ECONNRESET');
    bench.pass(50);
    bench.a.accept();
    bench.told.length = 0;
    old.ack(2, 99);
    old.handlers.onOpen();
    old.handlers.onClose('again');
    assert.deepEqual(bench.told, []);
    assert.equal(bench.link.isUp, true);
    assert.equal(bench.link.credit, 1_000_000);
  });

  test('a link without a second path has one row', () => {
    const bench = new LinkBench({}, false);
    bench.start();
    bench.a.accept();
    assert.equal(bench.states(), 'A RUN');
  });
});

describe('silence', () => {
  test('heartbeats go out every 250 ms on both paths', () => {
    const bench = new LinkBench();
    bench.up();
    bench.pass(1_000);
    assert.deepEqual(bench.a.names().slice(2), ['HEARTBEAT', 'HEARTBEAT', 'HEARTBEAT', 'HEARTBEAT']);
    assert.deepEqual(bench.b.names().slice(2), ['HEARTBEAT', 'HEARTBEAT', 'HEARTBEAT', 'HEARTBEAT']);
  });

  test('any bytes count as life, also part of a frame', () => {
    const bench = new LinkBench();
    bench.up();
    // A frame header that promises more: byte 9 is the version.
    const header = [0, 0, 0, 0, 200, 0, 0, 0, types.ACK, 1, 0, 0, 100, 0, 0, 0];
    for (const byte of header) {
      bench.pass(1_000);
      bench.a.handlers.onData(new Uint8Array([byte]));
      bench.b.beat(1);
    }
    assert.equal(bench.link.isUp, true);
  });

  test('a handshake that stalls is given up, also when the peer trickles bytes', () => {
    const bench = new LinkBench();
    bench.start();
    bench.a.handlers.onOpen();
    for (let i = 0; i < 9; i++) {
      bench.pass(250);
      if (i < 8) bench.a.handlers.onData(new Uint8Array([0]));
    }
    assert.ok(bench.network.attempts[0]?.isOver);
    assert.equal(bench.log.count('waiting for CHALLENGE'), 1);
    assert.equal(bench.log.count('waiting for the connection'), 1, 'path B never opened');
  });
});

describe('CLOSE from the store', () => {
  test('FENCED on either path stops both for good', () => {
    for (const port of [PORT_A, PORT_B]) {
      const bench = new LinkBench();
      bench.up();
      bench.network.at(port).close(reasons.CLOSE_FENCED, 'incarnation 8 is here');
      assert.deepEqual(bench.told, ['down: FENCED: incarnation 8 is here', 'fenced: incarnation 8 is here']);
      assert.equal(bench.link.isUp, false);
      assert.ok(bench.a.isOver && bench.b.isOver);
      bench.pass(10_000);
      assert.equal(bench.network.attempts.length, 2, 'never again');
      assert.equal(bench.states(), 'A NG, B NG');
      assert.equal(bench.log.count('FENCED'), 1);
    }
  });

  test('FENCED during the handshake is told too', () => {
    const bench = new LinkBench();
    bench.start();
    bench.a.handlers.onOpen();
    bench.a.close(reasons.CLOSE_FENCED, 'too old');
    assert.deepEqual(bench.told, ['fenced: too old']);
  });

  test('DENIED and VERSION are logged as errors and asked again at the longest pause', () => {
    for (const reason of [reasons.CLOSE_DENIED, reasons.CLOSE_VERSION]) {
      const bench = new LinkBench();
      bench.start();
      bench.a.handlers.onOpen();
      bench.a.challenge();
      bench.a.close(reason, 'no');
      assert.equal(bench.log.count(`error link store`), 1);
      assert.equal(bench.log.count(reasons.closeReasonName(reason)), 1);
      bench.pass(1_900);
      assert.equal(bench.network.count(PORT_A), 1);
      bench.pass(200);
      assert.equal(bench.network.count(PORT_A), 2);
    }
  });

  test('STOPPING ends the connection and comes back soon', () => {
    const bench = new LinkBench();
    bench.up();
    bench.a.close(reasons.CLOSE_STOPPING, 'bye');
    assert.deepEqual(bench.told, ['down: STOPPING: bye']);
    assert.ok(bench.a.isOver);
    bench.pass(50);
    assert.equal(bench.network.count(PORT_A), 2);
  });
});

describe('bytes that break the protocol', () => {
  test('a malformed frame closes the link with the name of the rule', () => {
    const bench = new LinkBench({}, false);
    bench.up();
    bench.a.handlers.onData(new Uint8Array(24).fill(0xff));
    assert.equal(bench.a.closeSent().reason, reasons.CLOSE_MALFORMED);
    assert.equal(bench.a.closeSent().text, 'frame version');
    assert.deepEqual(bench.told, ['down: malformed: frame version']);
    assert.ok(bench.a.isEnded, 'the CLOSE still goes out');
  });

  test('frames behind a broken one in the same chunk are not looked at', () => {
    const bench = new LinkBench({}, false);
    bench.up();
    bench.onEvent = (event) => {
      if (event.startsWith('down')) bench.a.ack(2, 5);
    };
    bench.a.send(types.HELLO, 0, packer.pack([1]));
    assert.deepEqual(bench.told, ['down: malformed: HELLO from a store']);
  });

  test('a control part that does not decode names message and rule', () => {
    const bench = new LinkBench({}, false);
    bench.up();
    bench.a.send(types.ACK, 2, packer.pack([2]));
    assert.match(bench.told[0] ?? '', /^down: malformed: ACK: /);
    const other = new LinkBench({}, false);
    other.up();
    other.a.send(types.WELCOME, 2, packer.pack(['x']));
    assert.match(other.told[0] ?? '', /^down: malformed: WELCOME from a store/);
    const third = new LinkBench({}, false);
    third.up();
    third.a.send(types.CLOSE, 0, packer.pack([]));
    assert.match(third.told[0] ?? '', /^down: malformed: /);
  });

  test('acknowledging what was not sent, or going back, is malformed', () => {
    const bench = new LinkBench({}, false);
    bench.up();
    bench.a.ack(4, 5);
    assert.deepEqual(bench.told, ['down: malformed: ACK: of a request that was not made']);
    const other = new LinkBench({}, false);
    other.up();
    const sequence = other.link.request(types.FENCE, packer.pack([1]), [], 0);
    other.a.ack(sequence, 5);
    other.a.ack(sequence - 1, 5);
    assert.equal(other.told.at(-1), 'down: malformed: ACK: below the last one');
  });

  test('a beat for a heartbeat that was not sent is malformed', () => {
    const bench = new LinkBench({}, false);
    bench.up();
    bench.a.send(types.BEAT, 77, encodeBeat(packer, { token: 1, credit: 1, leaseMs: 1, fenceCount: 0, fences: [] }));
    assert.deepEqual(bench.told, ['down: malformed: BEAT: of a heartbeat that was not sent']);
  });
});
