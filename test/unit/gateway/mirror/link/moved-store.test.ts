/** A store that comes back at other addresses: the same link leads there. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { LinkBench, PORT_A, PORT_B } from './scripted-store.js';

const A = { host: '10.1.0.9', port: 8401 };
const B = { host: '10.2.0.9', port: 8411 };

describe('a link whose store has other addresses', () => {
  test('leaves connections that stand alone, and goes there once they are lost', () => {
    const bench = new LinkBench();
    bench.up();
    bench.link.moveTo(A, B);
    bench.passBeating(1_000, PORT_A, PORT_B);
    assert.equal(bench.states(), 'A RUN, B READY');
    assert.equal(bench.network.attempts.length, 2);
    bench.a.handlers.onClose('ECONNRESET');
    bench.network.at(B.port).accept({ boot: 2 });
    bench.pass(100);
    bench.network.at(A.port).accept({ boot: 2 });
    assert.deepEqual(bench.told, ['down: ECONNRESET; the store has restarted', 'up']);
    assert.equal(bench.states(), 'A READY, B RUN');
  });

  test('tries there at once, however long it had waited for the old ones', () => {
    const bench = new LinkBench();
    bench.start();
    for (let i = 0; i < 10; i++) {
      for (const port of [PORT_A, PORT_B]) bench.network.at(port).handlers.onClose('ECONNREFUSED');
      bench.pass(3_000);
    }
    for (const port of [PORT_A, PORT_B]) bench.network.at(port).handlers.onClose('ECONNREFUSED');
    bench.link.moveTo(A, B);
    bench.pass(50);
    assert.deepEqual([A, B].map(({ port }) => bench.network.count(port)), [1, 1]);
    assert.equal(bench.network.at(A.port).remote, `${A.host}:${String(A.port)}`);
  });

  test('has a standby as soon as the store has a second path', () => {
    const bench = new LinkBench({}, false);
    bench.up();
    bench.link.moveTo({ host: '127.0.0.1', port: PORT_A }, B);
    bench.pass(50);
    bench.network.at(B.port).accept();
    assert.equal(bench.states(), 'A RUN, B READY');
  });
});
