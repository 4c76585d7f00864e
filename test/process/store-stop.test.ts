/**
 * A store process that is told to stop: it announces it, on connections that stand by first, serves until its queues
 * have gone or its bound has passed, leaves the rest in a file, and comes back with it. The gateway's end is played
 * here, so that what it would answer is known to the byte.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';

import * as types from '../../src/protocol/message-types.js';
import { encodePull } from '../../src/protocol/messages/pull.js';
import type { PartitionRecord } from '../../src/protocol/partition-record.js';
import { CLOSE_STOPPING, DECLINED_LOWER, DECLINED_NO_COPY } from '../../src/protocol/reasons.js';
import { annotating, deleting, packer, recordOf, storing, termOf } from '../unit/kvs/core/section-kit.js';
import { TestGateway } from '../unit/kvs/daemon/test-gateway.js';
import type { GatewayOptions } from '../unit/kvs/daemon/test-gateway.js';
import { Daemon, HOST, until } from './cluster.js';
import { ENTRY } from './entry.js';
import { freePorts } from './free-ports.js';

const STOP_TIMEOUT_MS = 8_000;
const LEASE_MS = 1_000;

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
      id: 'store-a', host: 'host-a', memory: { limit: '256MiB' }, lease: `${LEASE_MS}ms`, stop_timeout: `${stopTimeoutMs}ms`, state_dir: join(folder, 'state'),
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

/** A partition whose only copy is here, as its record says. */
async function fill(gateway: TestGateway): Promise<void> {
  gateway.found(1, 1);
  const changes = Array.from({ length: 300 }, (_none, i) => storing(i + 1, `body ${String(i)} `.repeat(50), 'envelope'));
  await gateway.acknowledged(gateway.change(1, ...changes, annotating(7, 'tried'), deleting(20, 40)));
  gateway.tell(1, recordAt(gateway), false);
  await gateway.next(types.TOLD);
}

/** The partition of fill(), with this store as its only member, unless said otherwise. */
function recordAt(gateway: TestGateway, epoch = 1, more: Partial<PartitionRecord> = {}): PartitionRecord {
  return recordOf(epoch, { holder: { gatewayId: 'g1', incarnation: 1 }, members: [{ storeId: 'store-a', bootId: bootOf(gateway) }], ...more });
}

function bootOf({ frames }: TestGateway): string {
  const challenge = frames.find(({ type }) => type === types.CHALLENGE);
  return Buffer.from(challenge?.values[2] as Uint8Array).toString('hex');
}

interface Standing {
  /** isComplete, number, digests, term of the last change, entries and their bytes. */
  readonly position: readonly unknown[];
  readonly olderLeaseMs: unknown;
}

/** Where the copy stands, as the term of a process that takes it over is told. */
async function standing(gateway: TestGateway, term: number): Promise<Standing> {
  gateway.join(2, 1, termOf(term));
  const { values } = await gateway.next(types.FENCED);
  return { position: [...values.slice(3, 8), ...values.slice(9, 11)], olderLeaseMs: values[8] };
}

async function content(gateway: TestGateway): Promise<Uint8Array> {
  gateway.send(types.PULL, encodePull(packer, { handle: 2, afterPosition: 0, untilPosition: Number.MAX_SAFE_INTEGER, entriesMax: 10_000, bytesMax: 1 << 24, withBodies: true }));
  return (await gateway.next(types.BLOCK)).bodies;
}

describe('a store that is stopped', { timeout: 240_000 }, () => {
  test('comes back as the same boot, with all that it held at the same number and digest, once', async (t) => {
    const { store, spillFile, join: connect } = await setup(t, 0);
    const gateway = await connect();
    await fill(gateway);
    const before = await standing(gateway, 2);
    const bytesBefore = await content(gateway);
    const stopped = store.stop();
    assert.equal((await gateway.next(types.CLOSE)).values[0], CLOSE_STOPPING);
    assert.equal(await stopped, 0, store.logTail());
    assert.ok(existsSync(spillFile));
    store.start();
    await store.ready();
    assert.ok(!existsSync(spillFile) && existsSync(`${spillFile}.used`));
    const again = await connect({ incarnation: 2 });
    assert.equal(bootOf(again), bootOf(gateway));
    const after = await standing(again, 3);
    assert.deepEqual(after.position, before.position);
    assert.deepEqual(await content(again), bytesBefore);
    await store.kill();
    store.start();
    await store.ready();
    const third = await connect({ incarnation: 3 });
    assert.notEqual(bootOf(third), bootOf(gateway));
    third.join(1, 1, termOf(4));
    assert.equal((await third.next(types.DECLINED)).values[1], DECLINED_NO_COPY, 'killed, it comes back empty');
  });

  test('comes back knowing the terms that it accepted, and waits for the longest lease that it granted', async (t) => {
    const { store, join: connect } = await setup(t, 0);
    const gateway = await connect();
    await fill(gateway);
    gateway.heartbeat(1);
    await gateway.next(types.BEAT);
    await standing(gateway, 5);
    assert.equal(await store.stop(), 0, store.logTail());
    store.start();
    await store.ready();
    const again = await connect({ incarnation: 2 });
    again.join(1, 1, termOf(4));
    assert.equal((await again.next(types.DECLINED)).values[1], DECLINED_LOWER);
    const { olderLeaseMs } = await standing(again, 6);
    assert.ok(Number(olderLeaseMs) > 0 && Number(olderLeaseMs) <= LEASE_MS, `${String(olderLeaseMs)} ms`);
    let left = Number(olderLeaseMs);
    await until('the leases of before are out', async () => {
      left = Number((await standing(again, 6)).olderLeaseMs);
      return left === 0;
    }, 2 * LEASE_MS);
  });

  test('tells the connections that stand by first, serves until its partitions have gone, then ends long before its bound', async (t) => {
    const { store, spillFile, join: connect } = await setup(t);
    const gateway = await connect();
    const standby = await connect({ active: false, generation: 2, path: 1 });
    await fill(gateway);
    const startedMs = performance.now();
    const stopped = store.stop();
    assert.equal((await standby.next(types.CLOSE)).values[0], CLOSE_STOPPING);
    await assert.rejects(connect({ active: false, generation: 3, path: 1 }), /closed/, 'a new connection is refused');
    await gateway.acknowledged(gateway.change(1, storing(900, 'mail goes on')));
    assert.equal(gateway.frames.some((frame) => frame.type === types.CLOSE), false);
    gateway.tell(1, recordAt(gateway, 2, { members: [{ storeId: 'store-b', bootId: 'c0ffee' }] }), true);
    assert.equal((await gateway.next(types.CLOSE)).values[0], CLOSE_STOPPING);
    assert.equal(await stopped, 0, store.logTail());
    assert.ok(performance.now() - startedMs < STOP_TIMEOUT_MS / 2, `it took ${performance.now() - startedMs} ms`);
    assert.ok(existsSync(spillFile), 'the terms that it accepted are kept');
    store.start();
    await store.ready();
    const again = await connect({ incarnation: 2 });
    again.join(1, 1, termOf(4));
    assert.equal((await again.next(types.DECLINED)).values[1], DECLINED_NO_COPY, 'what left is not kept');
  });

  test('waits no longer than its bound for a gateway that does not move its partitions', async (t) => {
    const { store, spillFile, join: connect } = await setup(t, 700);
    const gateway = await connect();
    await connect({ active: false, generation: 2, path: 1 });
    await fill(gateway);
    const startedMs = performance.now();
    assert.equal(await store.stop(), 0, store.logTail());
    const tookMs = performance.now() - startedMs;
    assert.ok(tookMs >= 700 && tookMs < 5_000, `it took ${tookMs} ms`);
    assert.ok(existsSync(spillFile));
  });

  test('does not start with a damaged file, says what to do, and leaves it as it is', async (t) => {
    const { store, spillFile, join: connect } = await setup(t, 0);
    await fill(await connect());
    assert.equal(await store.stop(), 0, store.logTail());
    const whole = readFileSync(spillFile);
    const damaged = Buffer.from(whole);
    damaged[whole.length >> 1] = (whole[whole.length >> 1] ?? 0) ^ 1;
    writeFileSync(spillFile, damaged);
    store.start();
    await assert.rejects(store.ready(), /ended while it started/);
    assert.match(store.log(), /which can't be used \(record checksum\): put a sound copy of it there/);
    assert.deepEqual([readFileSync(spillFile).equals(damaged), existsSync(`${spillFile}.damaged`)], [true, false]);
    writeFileSync(spillFile, whole);
    store.start();
    await store.ready();
    const again = await connect({ incarnation: 2 });
    assert.deepEqual((await standing(again, 2)).position.slice(0, 2), [true, 302]);
  });
});
