/**
 * What a store says to gateways of this version of the protocol, and to one that speaks others, over real connections.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { decodeAccount } from '../../../../src/kvs/core/spill/records.js';
import type { RunningStore } from '../../../../src/kvs/daemon/running-store.js';
import type { StoreDaemonOptions } from '../../../../src/kvs/daemon/store-daemon.js';
import { isInvalid } from '../../../../src/protocol/invalid.js';
import * as types from '../../../../src/protocol/message-types.js';
import { encodeClaim } from '../../../../src/protocol/messages/claim.js';
import { encodeList } from '../../../../src/protocol/messages/list.js';
import type { ListedRow } from '../../../../src/protocol/messages/listed.js';
import { decodeListed } from '../../../../src/protocol/messages/listed.js';
import { CLOSE_VERSION, ROLE_SPILLED } from '../../../../src/protocol/reasons.js';
import { PROTOCOL_VERSION } from '../../../../src/protocol/versions.js';
import { packer, settingMembers, storing } from '../core/section-kit.js';
import { TestGateway, testStore } from './test-gateway.js';

/** So that a store which waits for nothing is told from one that does. */
const STOP_TIMEOUT_MS = 120_000;
const LEASE_MS = 200;
const ROLE_IN_CLAIMED = 10;

async function rowsTold(gateway: TestGateway): Promise<readonly ListedRow[]> {
  gateway.send(types.LIST, encodeList(packer, { gatewayId: 'g1', cursor: 0 }));
  const listed = decodeListed(packer, packer.pack((await gateway.next(types.LISTED)).values));
  assert.ok(!isInvalid(listed));
  return listed.rows;
}

function folder(): string {
  return mkdtempSync(join(tmpdir(), 'twinpost-versions-'));
}

/** The last store leaves a file, too. */
async function stopLast(store: RunningStore, stateDir: string): Promise<void> {
  await store.stop();
  rmSync(stateDir, { recursive: true, force: true });
}

/** A store that came back with its file: queue 1 names it in its set, queue 2 was left before the stop. */
async function restarted(t: TestContext): Promise<RunningStore> {
  const stateDir = folder();
  const options: Partial<StoreDaemonOptions> = { stateDir, spill: true, leaseMs: LEASE_MS };
  const before = await testStore(options);
  const gateway = await TestGateway.join(before);
  gateway.open(1, 1);
  await gateway.acknowledged(gateway.change(1, storing(1, 'kept')));
  const other = await TestGateway.join(before, { id: 'g1', generation: 2 });
  other.open(2, 2);
  await other.acknowledged(other.change(2, storing(1, 'left'), settingMembers(2, ['store-b'])));
  await before.stop();
  const store = await testStore(options);
  t.after(() => stopLast(store, stateDir));
  return store;
}

describe('a store that came back with its file', () => {
  test('tells a gateway that its copies are spilled', async (t) => {
    const gateway = await TestGateway.join(await restarted(t), { incarnation: 2 });
    assert.equal(gateway.protocol, PROTOCOL_VERSION);
    assert.deepEqual((await rowsTold(gateway)).map(({ serial, role }) => [serial, role]), [[1, ROLE_SPILLED], [2, ROLE_SPILLED]]);
    gateway.send(types.CLAIM, encodeClaim(packer, { handle: 5, gatewayId: 'g1', birth: 1, serial: 1, token: 2 }));
    assert.equal((await gateway.next(types.CLAIMED)).values[ROLE_IN_CLAIMED], ROLE_SPILLED);
    gateway.connection.destroy();
  });
});

test('a store that stops waits for gateways that move their queues away', { timeout: STOP_TIMEOUT_MS / 4 }, async () => {
  const store = await testStore({ stopTimeoutMs: STOP_TIMEOUT_MS });
  const active = await TestGateway.join(store);
  await TestGateway.join(store, { active: false, path: 1 });
  await active.acknowledged(active.open(1, 1));
  let isOver = false;
  const stopped = store.stop().then(() => { isOver = true; });
  await active.acknowledged(active.change(1, storing(1, 'still served')));
  assert.equal(isOver, false);
  await active.acknowledged(active.change(1, settingMembers(2, ['store-b'])));
  await stopped;
});

test('a gateway of which a file does not tell the version is of this one: files of before it was told are read on', () => {
  const account = decodeAccount(packer, packer.pack(['g1', 7, new Uint8Array(8)]));
  assert.ok(!isInvalid(account));
  assert.deepEqual([account.id, account.incarnation, account.version], ['g1', 7, PROTOCOL_VERSION]);
});

test('a gateway that speaks other versions only is told both ranges', async () => {
  const store = await testStore();
  const gateway = new TestGateway(store);
  gateway.hello({ versionMin: 4, versionMax: 5 });
  const [reason, text] = (await gateway.next(types.CLOSE)).values;
  assert.equal(reason, CLOSE_VERSION);
  assert.match(String(text), /gateway speaks versions 4 to 5 .* this store versions 3 to 3/);
  await store.stop();
});
