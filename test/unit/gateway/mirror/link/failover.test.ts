/** One test or more for each arrow of path-pair.ts. */
import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import * as types from '../../../../../src/protocol/message-types.js';
import * as reasons from '../../../../../src/protocol/reasons.js';
import { HELLO_ACTIVE } from '../../../../../src/protocol/messages/hello.js';
import { LinkBench, PORT_A, PORT_B, packer } from './scripted-store.js';

const CONTROL = packer.pack([1, 2, 3]).slice();

/** Both paths up, then A reset: B is about to connect anew. */
function switching(): LinkBench {
  const bench = new LinkBench();
  bench.up({ credit: 1_000 });
  bench.a.handlers.onClose('ECONNRESET');
  return bench;
}

describe('the active path is reset while the other stands by', () => {
  test('the other connects anew at once and asks to be active, with a higher generation than all before', () => {
    const bench = switching();
    assert.equal(bench.network.count(PORT_B), 2, 'before any tick');
    bench.b.handlers.onOpen();
    assert.equal(bench.b.hello().flags, HELLO_ACTIVE);
    assert.equal(bench.b.hello().generation, 3);
    assert.ok(bench.network.attempts[1]?.isEnded, 'its old connection is closed in order, not cut');
  });

  test('meanwhile nothing is isolated, nothing can be sent, and what is requested goes nowhere', () => {
    const bench = switching();
    assert.deepEqual(bench.told, []);
    assert.equal(bench.link.isUp, true);
    assert.equal(bench.link.canSend, false);
    assert.equal(bench.link.unackedBytes, 0);
    assert.equal(bench.link.request(types.CHANGES, CONTROL, [new Uint8Array(5)], 5), 0);
    bench.link.flush();
    assert.equal(bench.link.unackedBytes, 0);
    bench.b.accept();
    assert.deepEqual(bench.b.names(), ['HELLO', 'PROOF']);
  });

  test('meanwhile the credit is what was left of it, as long as the lease runs', () => {
    const bench = new LinkBench();
    bench.up({ credit: 1_000 });
    bench.pass(250);
    bench.a.beat(1_000);
    const first = bench.link.request(types.CHANGES, CONTROL, [], 300);
    bench.link.request(types.CHANGES, CONTROL, [], 50);
    bench.link.flush();
    bench.a.ack(first, 800);
    bench.a.handlers.onClose('ECONNRESET');
    assert.equal(bench.link.credit, 750, '800 granted, 50 on the way that may not have come');
    bench.nowMs = bench.link.lease.endsMs - 1;
    assert.equal(bench.link.credit, 750);
    bench.nowMs += 1;
    assert.equal(bench.link.credit, 0);
  });

  test('welcomed by the same boot: switched, with the credit of the new connection, down at no time', () => {
    const bench = switching();
    bench.b.accept({ credit: 77 });
    assert.deepEqual(bench.told, ['switched']);
    assert.equal(bench.link.credit, 77);
    assert.equal(bench.link.canSend, true);
    const sequence = bench.link.request(types.CHANGES, CONTROL, [], 0);
    bench.link.flush();
    assert.equal(bench.b.last().sequence, sequence);
    assert.equal(bench.log.count('requests go by the other path now'), 1);
  });

  test('the lost path comes back as the new standby, and the next loss goes back to it', () => {
    const bench = switching();
    bench.b.accept();
    assert.equal(bench.states(), 'A NG, B RUN');
    bench.pass(50);
    bench.a.accept();
    assert.equal(bench.a.hello().flags, 0);
    assert.equal(bench.states(), 'A READY, B RUN');
    bench.b.handlers.onClose('ECONNRESET');
    bench.a.accept();
    assert.deepEqual(bench.told, ['switched', 'switched']);
    assert.equal(bench.a.hello().generation, 5);
    assert.equal(bench.states(), 'A RUN, B NG');
  });

  test('welcomed by another boot: down, then up', () => {
    const bench = switching();
    bench.b.accept({ boot: 2 });
    assert.deepEqual(bench.told, ['down: ECONNRESET; the store has restarted', 'up']);
    assert.equal(bench.link.bootId, '02'.repeat(16));
  });

  test('late bytes of the lost connection change nothing', () => {
    const bench = new LinkBench();
    bench.up();
    const sequence = bench.link.request(types.CHANGES, CONTROL, [], 0);
    bench.link.flush();
    const old = bench.a;
    old.handlers.onClose('ECONNRESET');
    old.ack(sequence, 99, 7, 41);
    bench.b.accept();
    old.ack(sequence, 99, 7, 41);
    assert.deepEqual(bench.told, ['switched']);
    assert.equal(bench.link.credit, 1_000_000);
  });
});

describe('the other path is lost too', () => {
  test('refused while it asks: down at once', () => {
    const bench = switching();
    bench.b.handlers.onClose('ECONNREFUSED');
    assert.deepEqual(bench.told, ['down: ECONNRESET; on the other path: ECONNREFUSED']);
    assert.equal(bench.link.isUp, false);
    assert.equal(bench.link.credit, 0);
  });

  test('reset shortly before: down at once', () => {
    const bench = new LinkBench();
    bench.up();
    bench.b.handlers.onClose('ECONNRESET');
    bench.a.handlers.onClose('ECONNRESET');
    assert.deepEqual(bench.told, ['down: ECONNRESET']);
    assert.equal(bench.network.attempts.length, 2);
  });

  test('hangs: down when failover_timeout has passed since the loss', () => {
    const bench = switching();
    bench.passBeating(1_950);
    assert.deepEqual(bench.told, []);
    bench.pass(50);
    assert.deepEqual(bench.told, ['down: ECONNRESET; no other path within 2000 ms']);
  });

  test('a loop that was late gives the switch its time anew', () => {
    const bench = switching();
    bench.nowMs += 3_000;
    bench.link.tick(bench.nowMs);
    assert.deepEqual(bench.told, []);
    bench.b.accept();
    assert.deepEqual(bench.told, ['switched']);
  });

  test('while the first stands by again: that one asks, and nothing was down', () => {
    const bench = switching();
    bench.b.handlers.onOpen();
    bench.pass(50);
    bench.a.accept();
    assert.equal(bench.states(), 'A READY, B CONNECTING');
    bench.b.handlers.onClose('ECONNRESET');
    bench.a.accept();
    assert.equal(bench.a.hello().flags, HELLO_ACTIVE);
    assert.deepEqual(bench.told, ['switched']);
    assert.equal(bench.states(), 'A RUN, B NG');
  });

  test('two paths that fall in turns are not tried without a pause', () => {
    const bench = switching();
    bench.b.accept();
    bench.b.handlers.onClose('ECONNRESET');
    assert.deepEqual(bench.told, ['switched', 'down: ECONNRESET']);
    assert.equal(bench.network.attempts.length, 3);
  });
});

describe('the other path is on its way when the active one is lost', () => {
  test('connecting: it asks with the HELLO that is still to come', () => {
    const bench = new LinkBench();
    bench.start();
    bench.a.accept();
    bench.a.handlers.onClose('ECONNRESET');
    assert.equal(bench.network.count(PORT_B), 1);
    bench.b.accept();
    assert.equal(bench.b.hello().flags, HELLO_ACTIVE);
    assert.deepEqual(bench.told, ['up', 'switched']);
  });

  test('in its handshake, in either step: it begins anew', () => {
    for (const steps of [1, 2]) {
      const bench = new LinkBench();
      bench.start();
      bench.a.accept();
      bench.b.handlers.onOpen();
      if (steps === 2) bench.b.challenge();
      bench.a.handlers.onClose('ECONNRESET');
      assert.equal(bench.network.count(PORT_B), 2);
      bench.b.accept();
      assert.deepEqual(bench.told, ['up', 'switched']);
    }
  });
});

describe('no path carries requests', () => {
  test('the standby takes the part of a path that can not be reached, at the start too', () => {
    const bench = new LinkBench();
    bench.start();
    bench.b.accept();
    assert.deepEqual(bench.told, [], 'A may still come');
    bench.a.handlers.onClose('ECONNREFUSED');
    bench.b.accept();
    assert.equal(bench.b.hello().flags, HELLO_ACTIVE);
    assert.deepEqual(bench.told, ['up']);
    bench.pass(50);
    bench.a.accept();
    assert.equal(bench.states(), 'A READY, B RUN');
  });

  test('the path that opens first asks, if the other one is in trouble', () => {
    const bench = new LinkBench();
    bench.start();
    bench.a.handlers.onClose('ECONNREFUSED');
    bench.b.accept();
    assert.equal(bench.b.hello().flags, HELLO_ACTIVE, 'one handshake, not two');
    assert.deepEqual(bench.told, ['up']);
  });

  test('a standby whose HELLO was on the way asks anew when the other path turns out to be in trouble', () => {
    const bench = new LinkBench();
    bench.start();
    bench.b.handlers.onOpen();
    bench.a.handlers.onClose('ECONNREFUSED');
    bench.b.challenge();
    bench.b.welcome();
    assert.equal(bench.network.count(PORT_B), 2);
    bench.b.accept();
    assert.deepEqual(bench.told, ['up']);
  });

  test('a store that lets another connection be active is asked again on the other path', () => {
    const bench = new LinkBench();
    bench.start();
    bench.b.accept();
    bench.a.handlers.onOpen();
    bench.a.challenge();
    bench.a.welcome({ active: false });
    assert.ok(bench.a.isEnded);
    bench.b.accept();
    assert.deepEqual(bench.told, ['up']);
  });
});

describe('boots', () => {
  test('a standby that shows another boot than the active path is not taken', () => {
    const bench = new LinkBench();
    bench.start();
    bench.a.accept({ boot: 1 });
    bench.b.accept({ boot: 2 });
    assert.equal(bench.b.closeSent().reason, reasons.CLOSE_STANDBY);
    assert.equal(bench.states(), 'A RUN, B NG');
    assert.equal(bench.log.count('two processes use its id'), 1);
    assert.deepEqual(bench.told, ['up']);
  });

  test('a standby of the boot before ends when the active path shows the new one', () => {
    const bench = new LinkBench();
    bench.start();
    bench.b.accept({ boot: 1 });
    bench.a.accept({ boot: 2 });
    assert.equal(bench.states(), 'A RUN, B NG');
    bench.pass(50);
    bench.b.accept({ boot: 2 });
    assert.equal(bench.states(), 'A RUN, B READY');
  });
});

describe('a store that announces its stop', () => {
  test('on the standby: told once, the active path goes on, the other one rests', () => {
    const bench = new LinkBench();
    bench.up();
    bench.b.close(reasons.CLOSE_STOPPING, 'bye');
    assert.deepEqual(bench.told, ['stopping']);
    assert.equal(bench.link.canSend, true);
    bench.passBeating(5_000, PORT_A);
    assert.equal(bench.network.count(PORT_B), 1);
    assert.deepEqual(bench.told, ['stopping']);
  });

  test('the end of the active path is down at once, and then both are tried again', () => {
    const bench = new LinkBench();
    bench.up();
    bench.b.close(reasons.CLOSE_STOPPING, 'bye');
    bench.passBeating(5_000, PORT_A);
    bench.a.close(reasons.CLOSE_STOPPING, 'bye');
    assert.deepEqual(bench.told, ['stopping', 'down: STOPPING: bye']);
    bench.pass(50);
    assert.equal(bench.network.count(PORT_A), 2);
    assert.equal(bench.network.count(PORT_B), 2);
    bench.b.accept({ boot: 2 });
    assert.equal(bench.told.at(-1), 'up');
    bench.told.length = 0;
    bench.a.accept({ boot: 2 });
    bench.a.close(reasons.CLOSE_STOPPING, 'again');
    assert.deepEqual(bench.told, ['stopping'], 'the next boot may stop too');
  });

  test('on the only path, which goes on: told once, requests go on, and the end is down', () => {
    const bench = new LinkBench({}, false);
    bench.up();
    bench.a.close(reasons.CLOSE_STOPPING, 'bye', reasons.STOPPING_GOES_ON);
    bench.a.close(reasons.CLOSE_STOPPING, 'bye', reasons.STOPPING_GOES_ON);
    assert.deepEqual(bench.told, ['stopping']);
    assert.deepEqual([bench.link.canSend, bench.states()], [true, 'A RUN']);
    bench.passBeating(5_000, PORT_A);
    assert.equal(bench.network.count(PORT_A), 1);
    bench.a.close(reasons.CLOSE_STOPPING, 'bye');
    assert.deepEqual(bench.told, ['stopping', 'down: STOPPING: bye']);
    bench.pass(50);
    bench.a.accept({ boot: 2 });
    bench.a.close(reasons.CLOSE_STOPPING, 'again', reasons.STOPPING_GOES_ON);
    assert.equal(bench.told.at(-1), 'stopping', 'the next boot may stop too');
  });

  test('while the standby is in its handshake counts as well', () => {
    const bench = new LinkBench();
    bench.start();
    bench.a.accept();
    bench.b.handlers.onOpen();
    bench.b.close(reasons.CLOSE_STOPPING, 'bye');
    assert.deepEqual(bench.told, ['up', 'stopping']);
  });

  test('on the active path is no failover, though the other stands by', () => {
    const bench = new LinkBench();
    bench.up();
    bench.a.close(reasons.CLOSE_STOPPING, 'bye');
    assert.deepEqual(bench.told, ['down: STOPPING: bye']);
  });

  test('on the active path ends the other one: what it still brings is not said of the next process', () => {
    const bench = new LinkBench();
    bench.up();
    const stalled = bench.b;
    bench.a.close(reasons.CLOSE_STOPPING, 'bye');
    assert.notEqual(bench.b, stalled, 'another connection');
    bench.pass(50);
    bench.a.accept();
    stalled.close(reasons.CLOSE_STOPPING, 'bye');
    assert.deepEqual(bench.told, ['down: STOPPING: bye', 'up']);
  });

  test('to the path that asks during a switch: down at once', () => {
    const bench = switching();
    bench.b.handlers.onOpen();
    bench.b.close(reasons.CLOSE_STOPPING, 'bye');
    assert.deepEqual(bench.told, ['down: ECONNRESET; on the other path: STOPPING: bye']);
  });
});

describe('the end', () => {
  test('FENCED during a switch: down, then fenced', () => {
    const bench = switching();
    bench.b.handlers.onOpen();
    bench.b.close(reasons.CLOSE_FENCED, 'incarnation 8 is here');
    assert.deepEqual(bench.told, ['down: FENCED: incarnation 8 is here', 'fenced: incarnation 8 is here']);
    bench.pass(10_000);
    assert.equal(bench.network.attempts.length, 3);
  });

  test('closed during a switch: no event follows', () => {
    const bench = switching();
    bench.link.close();
    assert.equal(bench.link.isUp, false);
    bench.pass(10_000);
    assert.deepEqual(bench.told, []);
    assert.equal(bench.network.attempts.length, 3);
  });
});
