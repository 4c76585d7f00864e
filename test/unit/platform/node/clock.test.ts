import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { SystemClock, startTicker } from '../../../../src/platform/node/clock.js';

describe('ticker', () => {
  test('after a blocked turn, data that waits in the kernel is read before the next tick', { timeout: 20_000 }, async () => {
    const server = net.createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    assert.ok(address !== null && typeof address === 'object');
    const client = net.connect(address.port, '127.0.0.1');
    const [peer] = (await once(server, 'connection')) as [net.Socket];
    const order: string[] = [];
    client.on('data', () => order.push('data'));
    const clock = new SystemClock();
    let ticker: { stop: () => void } | undefined;
    await new Promise<void>((done) => {
      ticker = startTicker(clock, 5, () => {
        order.push('tick');
        if (order.filter((what) => what === 'tick').length >= 3) done();
      });
      // The peer's bytes are in the kernel, then this turn blocks past several intervals.
      peer.write('x', () => {
        const until = clock.nowMs() + 40;
        while (clock.nowMs() < until);
        order.length = 0;
      });
    });
    ticker?.stop();
    assert.equal(order[0], 'data');
    client.destroy();
    peer.destroy();
    server.close();
  });

  test('no tick comes after stop(), not even when stopped from a tick', async () => {
    let ticks = 0;
    const ticker = startTicker(new SystemClock(), 1, () => {
      ticks++;
      ticker.stop();
    });
    await new Promise<void>((done) => {
      let others = 0;
      const other = startTicker(new SystemClock(), 1, () => {
        if (++others < 5) return;
        other.stop();
        done();
      });
    });
    assert.equal(ticks, 1);
  });
});
