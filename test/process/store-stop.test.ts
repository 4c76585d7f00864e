/**
 * A store process that is told to stop: it announces it on the connections that stand by, serves until its queues
 * have gone or its bound has passed, leaves the rest in a file, and comes back with it. The gateway's end is played
 * here, so that what it would answer is known to the byte.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';

import * as types from '../../src/protocol/message-types.js';
import { encodeClaim } from '../../src/protocol/messages/claim.js';
import { encodePull } from '../../src/protocol/messages/pull.js';
import { CLAIM_GRANTED, CLOSE_STOPPING, ROLE_MEMBER, ROLE_SPILLED } from '../../src/protocol/reasons.js';
import { annotating, deleting, packer, settingMembers, storing } from '../unit/kvs/core/section-kit.js';
import { TestGateway } from '../unit/kvs/daemon/test-gateway.js';
import type { GatewayOptions } from '../unit/kvs/daemon/test-gateway.js';
import { Daemon, HOST, until } from './cluster.js';
import { freePorts } from './free-ports.js';

const ENTRY = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'src', 'bin', 'twinpost.js');
const STOP_TIMEOUT_MS = 8_000;

interface Setup {
  readonly store: Daemon;
  readonly folder: string;
  readonly spillFile: string;
  join(options?: GatewayOptions): Promise<TestGateway>;
}

async function setup(t: TestContext, stopTimeoutMs = STOP_TIMEOUT_MS): Promise<Setup> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-stop-'));
  const [a = 0, b = 0, admin = 0] = await freePorts(3);
  const config = {
    store: {
      id: 'store-a', host: 'host-a', memory: { limit: '256MiB' }, lease: '1s', stop_timeout: `${stopTimeoutMs}ms`, state_dir: join(folder, 'state'),
      paths: [{ name: 'A', address: `${HOST}:${a}` }, { name: 'B', address: `${HOST}:${b}` }],
      gateways: [{ id: 'g1', secret: 'the secret of g1' }, { id: 'g2', secret: 'the secret of g2' }],
      admin: { listen: `${HOST}:${admin}` },
    },
  };
  const file = join(folder, 'store.yaml');
  writeFileSync(file, JSON.stringify(config));
  const store = new Daemon('store-a', [ENTRY, 'store', '--config', file], join(folder, 'store.log'), `http://${HOST}:${admin}/readyz`);
  t.after(async () => {
    await store.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  store.start();
  await store.ready();
  return { store, folder, spillFile: join(folder, 'state', 'store-store-a.spill'), join: (options) => TestGateway.join({ ports: [a, b] }, options) };
}

async function fill(gateway: TestGateway, handle: number, serial: number): Promise<void> {
  gateway.open(handle, serial);
  const changes = Array.from({ length: 300 }, (_none, i) => storing(i + 1, `body ${String(i)} `.repeat(50), 'envelope'));
  await gateway.acknowledged(gateway.change(handle, ...changes, annotating(7, 'tried'), deleting(20, 40)));
}

/** Where the queue stands, by a repeat of the claim: number, digests, count, bytes, role. */
async function claimed(gateway: TestGateway, serial: number, token: number): Promise<readonly unknown[]> {
  gateway.send(types.CLAIM, encodeClaim(packer, { handle: 100 + serial, gatewayId: 'g1', birth: 1, serial, token }));
  const { values } = await gateway.next(types.CLAIMED);
  assert.equal(values[1], CLAIM_GRANTED);
  return values.slice(5, 11);
}

async function content(gateway: TestGateway, handle: number): Promise<Uint8Array> {
  gateway.send(types.PULL, encodePull(packer, { handle, afterPosition: 0, untilPosition: Number.MAX_SAFE_INTEGER, entriesMax: 10_000, bytesMax: 1 << 24, bodies: true }));
  return (await gateway.next(types.BLOCK)).bodies;
}

describe('a store that is stopped', { timeout: 120_000 }, () => {
  test('comes back with all that it held, at the same number and digest, in role SPILLED, once', async (t) => {
    const { store, spillFile, join: connect } = await setup(t);
    const gateway = await connect();
    await fill(gateway, 1, 1);
    const before = await claimed(gateway, 1, 1);
    const bytesBefore = await content(gateway, 1);
    assert.equal(before[5], ROLE_MEMBER);
    const stopped = store.stop();
    assert.equal((await gateway.next(types.CLOSE)).values[0], CLOSE_STOPPING, 'nobody stands by: it is not waited for');
    assert.equal(await stopped, 0, store.logTail());
    assert.ok(existsSync(spillFile));
    store.start();
    await store.ready();
    assert.ok(!existsSync(spillFile) && existsSync(`${spillFile}.used`));
    const again = await connect({ incarnation: 2 });
    const after = await claimed(again, 1, 2);
    assert.deepEqual(after, [...before.slice(0, 5), ROLE_SPILLED]);
    assert.deepEqual(await content(again, 101), bytesBefore);
    await store.kill();
    store.start();
    await store.ready();
    const third = await connect({ incarnation: 3 });
    third.send(types.CLAIM, encodeClaim(packer, { handle: 1, gatewayId: 'g1', birth: 1, serial: 1, token: 3 }));
    assert.equal((await third.next(types.CLAIMED)).values[1], 1, 'killed, it comes back empty');
  });

  test('tells the connections that stand by first, serves until its queues have gone, then ends long before its bound', async (t) => {
    const { store, spillFile, join: connect } = await setup(t);
    const gateway = await connect();
    const standby = await connect({ active: false, generation: 2, path: 1 });
    await fill(gateway, 1, 1);
    const startedMs = performance.now();
    const stopped = store.stop();
    assert.equal((await standby.next(types.CLOSE)).values[0], CLOSE_STOPPING);
    await assert.rejects(connect({ active: false, generation: 3, path: 1 }), /closed/, 'a new connection is refused');
    await gateway.acknowledged(gateway.change(1, storing(900, 'mail goes on')));
    assert.equal(gateway.frames.some((frame) => frame.type === types.CLOSE), false);
    gateway.change(1, settingMembers(2, ['store-b']));
    assert.equal((await gateway.next(types.CLOSE)).values[0], CLOSE_STOPPING);
    assert.equal(await stopped, 0, store.logTail());
    assert.ok(performance.now() - startedMs < STOP_TIMEOUT_MS / 2, `it took ${performance.now() - startedMs} ms`);
    assert.ok(existsSync(spillFile), 'the copy that was left out of the set is kept for a tail');
  });

  test('waits no longer than its bound for a gateway that does not move its queues', async (t) => {
    const { store, spillFile, join: connect } = await setup(t, 700);
    const gateway = await connect();
    await connect({ active: false, generation: 2, path: 1 });
    await fill(gateway, 1, 1);
    const startedMs = performance.now();
    assert.equal(await store.stop(), 0, store.logTail());
    const tookMs = performance.now() - startedMs;
    assert.ok(tookMs >= 700 && tookMs < 5_000, `it took ${tookMs} ms`);
    assert.ok(existsSync(spillFile));
  });

  test('with a damaged file starts empty, names the damage and keeps the file', async (t) => {
    const { store, spillFile, join: connect } = await setup(t, 0);
    await fill(await connect(), 1, 1);
    assert.equal(await store.stop(), 0, store.logTail());
    const whole = readFileSync(spillFile);
    whole[whole.length >> 1] = (whole[whole.length >> 1] ?? 0) ^ 1;
    writeFileSync(spillFile, whole);
    store.start();
    await store.ready();
    assert.deepEqual(readFileSync(`${spillFile}.damaged`), whole);
    await until('the log says why', () => /"event":"spill".*record checksum/.test(store.log()));
    const gateway = await connect({ incarnation: 2 });
    gateway.send(types.CLAIM, encodeClaim(packer, { handle: 1, gatewayId: 'g1', birth: 1, serial: 1, token: 2 }));
    assert.equal((await gateway.next(types.CLAIMED)).values[1], 1);
  });
});
