/**
 * A member that answers, and that another process has claimed since, where no set can be founded without it: it is the
 * operator's to give up, and claimed above that process then (src/gateway/mirror/replica-set.ts, claim-again.ts).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mayClaimAbove } from '../../../../src/gateway/mirror/claim-again.js';
import { LostSets } from '../../../../src/gateway/mirror/lost-sets.js';
import { Mirrors } from '../../../../src/gateway/mirror/mirrors.js';
import type { Replica } from '../../../../src/gateway/mirror/replica.js';
import { SyncState } from '../../../../src/gateway/mirror/replica.js';
import type { StorePort } from '../../../../src/gateway/mirror/store-port.js';
import { EntryTable } from '../../../../src/gateway/queue/entry-table.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import { MessagePacker } from '../../../../src/platform/node/packer.js';

const packer = new MessagePacker();
const quiet = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const REPLACE_AFTER_MS = 60_000;

function storeOf(storeId: string): StorePort {
  return { storeId, bootId: 'boot-1', isUp: true, canSend: true, credit: 1_000_000, unackedBytes: 0, leaseEndsMs: Infinity, leaseTerm: 1, version: 2, request: () => 1, flush: () => {}, askCredit: () => {} };
}

/** {a, b, c}; the change that drops store-a is open. An operator has given store-b up; store-c has restarted, and is another's. */
function fencedAtC(): { readonly lost: LostSets; readonly c: Replica; readonly claimsAbove: () => boolean } {
  const mirrors = new Mirrors(
    { group: ['gw-1', 'gw-2'], replicas: 2, minReplicas: 1, retryMs: 500, refillFrameBytes: 4096, frameTargetBytes: 65_536, ringBytes: 1_000_000, replaceAfterMs: REPLACE_AFTER_MS, placement: { gatewayHost: undefined, places: new Map() }, token: 7 },
    { packer, crc32, log: quiet, nowMs: () => REPLACE_AFTER_MS, wallMs: () => 0, requestFlush: () => {}, refillEntries: () => assert.fail('nothing is filled'), onChanged: () => {}, onEpoch: () => {}, onLost: () => assert.fail('it is ours') },
  );
  const mirror = mirrors.create({ handle: 1, identity: { ownerId: 'gw-1', birth: 1, serial: 1 }, name: 'q' }, (new EntryTable(1)).partitionColumns);
  mirror.isOwn = true;
  mirror.adopt(2, 9, 1, 2);
  const replicas = ['store-a', 'store-b', 'store-c'].map((storeId) => mirrors.addReplica(mirror, storeOf(storeId)));
  for (const replica of replicas) {
    replica.member = true;
    replica.wanted = true;
    replica.transition(SyncState.SYNC, 'queue created', 0);
    replica.awaySinceMs = 0;
  }
  const [a, b, c] = replicas;
  assert.ok(a !== undefined && b !== undefined && c !== undefined);
  a.wanted = false;
  a.confirmedTerm = a.store.leaseTerm;
  mirror.setEpoch = 3;
  mirror.setChangeNumber = 10;
  for (const replica of [b, c]) replica.transition(SyncState.NG, 'reset', 0);
  b.claimBootId = '';
  b.isGivenUp = true;
  b.lossWitnessed = true;
  c.claimBootId = 'boot-0';
  c.fenced = true;
  return { lost: new LostSets({ mirrors, log: quiet, nowMs: () => REPLACE_AFTER_MS }), c, claimsAbove: () => mayClaimAbove(mirror, c) };
}

test('a member that another process has claimed is named, and not claimed above that one before an operator gives it up', () => {
  const { lost, c, claimsAbove } = fencedAtC();
  lost.tick();
  const [held] = lost.held();
  assert.deepEqual([held?.state, held?.stores], ['members silent', ['store-c']]);
  assert.match(held?.why ?? '', /store-c says that another process holds it.*--missing store-c /);
  assert.equal(claimsAbove(), false);
  lost.force({ missing: 'store-c', reason: 'that process is ended', who: 'ann' });
  assert.deepEqual([c.isGivenUp, claimsAbove(), lost.held().length], [true, true, 0]);
});
