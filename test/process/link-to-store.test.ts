import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { ConnectionState } from '../../src/kvs/core/store-connection.js';
import * as types from '../../src/protocol/message-types.js';
import { encodeRelease } from '../../src/protocol/messages/release.js';
import { encodeAsk } from '../../src/protocol/messages/ask.js';
import { FaultProxy } from './fault-proxy.js';
import { Gateway, bothUp, clock, found, packer, secrets, shown, store } from './link-kit.js';

describe('link and store over sockets', { timeout: 30_000 }, () => {
  test('both paths come up, requests are acknowledged and answered, heartbeats are seen from outside', async () => {
    const running = await store();
    const proxy = await FaultProxy.start({ targetHost: '127.0.0.1', targetPort: running.ports[0] ?? 0 });
    const gateway = new Gateway(proxy.port, running.ports[1] ?? 0);
    await gateway.until(bothUp(gateway));
    assert.ok(gateway.link.credit > 0);
    assert.equal(gateway.link.bootId, Buffer.from(running.bootId).toString('hex'));
    const sent = gateway.link.request(types.FENCE, found(), [], 0);
    gateway.link.request(types.RELEASE, encodeRelease(packer, { handle: 1 }), [], 0);
    gateway.link.request(types.ASK, encodeAsk(packer, { partition: 'gateway-1/0', holder: { gatewayId: 'gateway-1', incarnation: 1 } }), [], 0);
    gateway.link.flush();
    await gateway.until(() => gateway.told.includes('ASKED') && gateway.link.unackedBytes === 0);
    assert.ok(gateway.told.includes('FENCED'));
    assert.ok(gateway.told.some((event) => event.startsWith('through') && Number(event.slice(8)) > sent));
    await gateway.until(() => proxy.records.filter((frame) => frame.name === 'BEAT').length >= 3);
    assert.deepEqual(proxy.records.slice(0, 4).map((frame) => `${frame.direction} ${frame.name}`), ['up HELLO', 'down CHALLENGE', 'up PROOF', 'down WELCOME']);
    assert.deepEqual([proxy.malformed, gateway.log.problems], [[], []]);
    gateway.stop();
    await running.stop();
    await proxy.close();
  });

  test('one path that swallows everything: the other takes over, and the first comes back to stand by', async () => {
    const running = await store();
    const proxy = await FaultProxy.start({ targetHost: '127.0.0.1', targetPort: running.ports[0] ?? 0 });
    const gateway = new Gateway(proxy.port, running.ports[1] ?? 0);
    await gateway.until(bothUp(gateway));
    proxy.stall('down');
    const stalledMs = clock.nowMs();
    await gateway.until(() => gateway.told.includes('switched'));
    const tookMs = clock.nowMs() - stalledMs;
    assert.ok(tookMs > 300 && tookMs < 2_000, `failover_timeout is 400 ms, it took ${String(tookMs)}`);
    proxy.resume();
    await gateway.until(() => shown(gateway.link.pathStates()) === 'A READY, B RUN');
    assert.deepEqual(gateway.told, ['up', 'switched']);
    assert.deepEqual([...running.connections].filter((connection) => connection.state === ConnectionState.ACTIVE).map((connection) => connection.path), ['B']);
    gateway.stop();
    await running.stop();
    await proxy.close();
  });

  test('what is still unread on the connection that lost its part is not applied', async () => {
    const running = await store();
    const proxy = await FaultProxy.start({ targetHost: '127.0.0.1', targetPort: running.ports[0] ?? 0 });
    const gateway = new Gateway(proxy.port, running.ports[1] ?? 0);
    await gateway.until(bothUp(gateway));
    proxy.stall('up');
    // It sits in the network while the other path takes over, and arrives after.
    gateway.link.request(types.FENCE, found(), [], 0);
    gateway.link.flush();
    await gateway.until(() => gateway.told.includes('switched'));
    proxy.resume();
    await gateway.until(() => shown(gateway.link.pathStates()) === 'A READY, B RUN');
    assert.equal(running.store.partitions.count, 0);
    gateway.stop();
    await running.stop();
    await proxy.close();
  });

  test('a reset of the active path switches at once, and the heartbeats of both go on renewing one lease', async () => {
    const running = await store();
    const proxy = await FaultProxy.start({ targetHost: '127.0.0.1', targetPort: running.ports[0] ?? 0 });
    const gateway = new Gateway(proxy.port, running.ports[1] ?? 0);
    await gateway.until(bothUp(gateway));
    const endsMs = gateway.link.lease.endsMs;
    proxy.cut();
    await gateway.until(() => shown(gateway.link.pathStates()) === 'A READY, B RUN');
    assert.deepEqual(gateway.told, ['up', 'switched']);
    await gateway.until(() => gateway.link.lease.endsMs > endsMs + 200);
    assert.equal(gateway.link.lease.bootId, gateway.link.bootId);
    gateway.stop();
    await running.stop();
    await proxy.close();
  });

  test('a store that stands still on both paths, longer than failover_timeout, is waited for', async () => {
    const running = await store();
    const [a, b] = await Promise.all(running.ports.map((targetPort) => FaultProxy.start({ targetHost: '127.0.0.1', targetPort })));
    assert.ok(a !== undefined && b !== undefined);
    const gateway = new Gateway(a.port, b.port);
    await gateway.until(bothUp(gateway));
    a.stall('down');
    b.stall('down');
    const stalledMs = clock.nowMs();
    await gateway.until(() => clock.nowMs() - stalledMs > 3_000);
    b.resume();
    a.resume();
    const resumedMs = clock.nowMs();
    await gateway.until(() => clock.nowMs() - resumedMs > 600);
    assert.deepEqual(gateway.told, ['up']);
    assert.equal(shown(gateway.link.pathStates()), 'A RUN, B READY');
    gateway.stop();
    await running.stop();
    await Promise.all([a.close(), b.close()]);
  });

  test('a store that stops says so on the standby, and ends the active path', async () => {
    const running = await store();
    const proxy = await FaultProxy.start({ targetHost: '127.0.0.1', targetPort: running.ports[0] ?? 0 });
    const gateway = new Gateway(proxy.port, running.ports[1] ?? 0);
    await gateway.until(bothUp(gateway));
    // Two sockets keep no order between them: what the active path brings waits until the standby has spoken.
    proxy.stall('down');
    const stopped = running.stop();
    await gateway.until(() => gateway.told.includes('stopping'));
    proxy.resume();
    await gateway.until(() => gateway.told.includes('down'));
    assert.deepEqual(gateway.told, ['up', 'stopping', 'down']);
    gateway.stop();
    await stopped;
    await proxy.close();
  });

  test('a newer process of the same gateway fences the older one for good', async () => {
    const running = await store();
    const [portA, portB] = running.ports;
    const older = new Gateway(portA ?? 0, portB ?? 0, 10);
    await older.until(bothUp(older));
    const newer = new Gateway(portA ?? 0, portB ?? 0, 11);
    await newer.until(bothUp(newer));
    await older.until(() => older.told.includes('fenced'));
    assert.deepEqual(older.told, ['up', 'down', 'fenced']);
    newer.stop();
    older.stop();
    await running.stop();
  });

  test('with another secret neither side takes the other', async () => {
    const running = await store();
    const [portA, portB] = running.ports;
    const gateway = new Gateway(portA ?? 0, portB ?? 0, 10, secrets.randomBytes(32));
    await gateway.until(() => gateway.log.problems.length >= 2);
    assert.ok(gateway.log.problems.every((problem) => problem.includes('secret')), gateway.log.problems.join('\n'));
    assert.deepEqual(gateway.told, []);
    gateway.stop();
    await running.stop();
  });

  test('a store that was restarted shows a new boot id', async () => {
    const first = await store();
    const proxy = await FaultProxy.start({ targetHost: '127.0.0.1', targetPort: first.ports[0] ?? 0 });
    const gateway = new Gateway(proxy.port, first.ports[1] ?? 0);
    await gateway.until(bothUp(gateway));
    const before = gateway.link.bootId;
    const second = await store();
    proxy.retarget(second.ports[0] ?? 0);
    await first.stop();
    await gateway.until(() => gateway.link.isUp && gateway.link.bootId !== before);
    assert.equal(gateway.link.bootId, Buffer.from(second.bootId).toString('hex'));
    gateway.stop();
    await second.stop();
    await proxy.close();
  });
});
