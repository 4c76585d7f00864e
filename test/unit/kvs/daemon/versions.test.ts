/**
 * What a store says to gateways of this version of the protocol and of the one before, over real connections.
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
import { encodeOpen } from '../../../../src/protocol/messages/open.js';
import { CLAIM_GRANTED, CLAIM_LEASE_RUNS, CLOSE_VERSION, ROLE_MEMBER, ROLE_NONE, ROLE_SPILLED } from '../../../../src/protocol/reasons.js';
import { PROTOCOL_VERSION } from '../../../../src/protocol/versions.js';
import { packer, settingMembers, storing } from '../core/section-kit.js';
import { TestGateway, testStore } from './test-gateway.js';

/** So that a store which waits for nothing is told from one that does. */
const STOP_TIMEOUT_MS = 120_000;
const LEASE_MS = 200;
const RESULT_IN_CLAIMED = 1;
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
  test('tells a gateway of version 2 that its copies are spilled', async (t) => {
    const gateway = await TestGateway.join(await restarted(t), { incarnation: 2 });
    assert.equal(gateway.protocol, 2);
    assert.deepEqual((await rowsTold(gateway)).map(({ serial, role }) => [serial, role]), [[1, ROLE_SPILLED], [2, ROLE_SPILLED]]);
    gateway.send(types.CLAIM, encodeClaim(packer, { handle: 5, gatewayId: 'g1', birth: 1, serial: 1, token: 2 }));
    assert.equal((await gateway.next(types.CLAIMED)).values[ROLE_IN_CLAIMED], ROLE_SPILLED);
    gateway.connection.destroy();
  });

  test('tells one of version 1 that it is a member where the set names it, none where it had left', async (t) => {
    const gateway = await TestGateway.join(await restarted(t), { incarnation: 2, versionMax: 1 });
    assert.equal(gateway.protocol, 1);
    assert.deepEqual((await rowsTold(gateway)).map(({ serial, role }) => [serial, role]), [[1, ROLE_MEMBER], [2, ROLE_NONE]]);
    for (const [serial, role] of [[1, ROLE_MEMBER], [2, ROLE_NONE]] as const) {
      gateway.send(types.CLAIM, encodeClaim(packer, { handle: 5, gatewayId: 'g1', birth: 1, serial, token: 2 }));
      assert.equal((await gateway.next(types.CLAIMED)).values[ROLE_IN_CLAIMED], role);
    }
    gateway.connection.destroy();
  });
});

test('a store that stops waits for gateways that move their queues away, not for those of version 1', { timeout: STOP_TIMEOUT_MS / 4 }, async () => {
  for (const versionMax of [1, 2]) {
    const store = await testStore({ stopTimeoutMs: STOP_TIMEOUT_MS });
    const active = await TestGateway.join(store, { versionMax });
    await TestGateway.join(store, { versionMax, active: false, path: 1 });
    await active.acknowledged(active.open(1, 1));
    let isOver = false;
    const stopped = store.stop().then(() => { isOver = true; });
    if (versionMax === 2) {
      await active.acknowledged(active.change(1, storing(1, 'still served')));
      assert.equal(isOver, false);
      await active.acknowledged(active.change(1, settingMembers(2, ['store-b'])));
    } else await active.next(types.CLOSE);
    await stopped;
  }
});

for (const isRestarted of [false, true]) {
  test(`a queue whose holder spoke version 1, which knows no leases, is granted to nobody else${isRestarted ? ', nor when the store has come back with its file' : ''}`, async (t) => {
    const stateDir = folder();
    const options: Partial<StoreDaemonOptions> = { stateDir, spill: true, leaseMs: LEASE_MS };
    let store = await testStore(options);
    t.after(() => stopLast(store, stateDir));
    for (const [incarnation, versionMax, result] of [[1, 1, CLAIM_LEASE_RUNS], [2, 2, CLAIM_GRANTED]] as const) {
      const holder = await TestGateway.join(store, { incarnation, versionMax });
      await holder.acknowledged(holder.send(types.OPEN, encodeOpen(packer, {
        handle: 1, birth: incarnation, serial: 1, name: 'q', queueClass: 'mail', ordering: 0, lengthMax: 0, bytesMax: 0, ownerId: 'g1', claimants: ['g2'], epoch: 1, members: ['store-a'],
      })));
      holder.connection.destroy();
      await holder.closed;
      if (isRestarted) {
        await store.stop();
        store = await testStore(options);
      }
      const other = await TestGateway.join(store, { id: 'g2', incarnation });
      const claim = async (): Promise<unknown> => {
        other.send(types.CLAIM, encodeClaim(packer, { handle: 1, gatewayId: 'g1', birth: incarnation, serial: 1, token: 9 }));
        return (await other.next(types.CLAIMED)).values[RESULT_IN_CLAIMED];
      };
      const askUntilMs = performance.now() + 3 * LEASE_MS;
      let told = await claim();
      while (told !== CLAIM_GRANTED && performance.now() < askUntilMs) told = await claim();
      assert.equal(told, result);
      other.connection.destroy();
      await other.closed;
    }
  });
}

test('a gateway of which a file does not tell the version is of this one: files of before it was told are read on', () => {
  const account = decodeAccount(packer, packer.pack(['g1', 7, new Uint8Array(8)]));
  assert.ok(!isInvalid(account));
  assert.deepEqual([account.id, account.incarnation, account.version], ['g1', 7, PROTOCOL_VERSION]);
});

test('a gateway that speaks other versions only is told both ranges', async () => {
  const store = await testStore();
  const gateway = new TestGateway(store);
  gateway.hello({ versionMin: 3, versionMax: 4 });
  const [reason, text] = (await gateway.next(types.CLOSE)).values;
  assert.equal(reason, CLOSE_VERSION);
  assert.match(String(text), /gateway speaks versions 3 to 4 .* this store versions 1 to 2/);
  await store.stop();
});
