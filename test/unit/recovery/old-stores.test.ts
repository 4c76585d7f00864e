/** What a gateway does not ask of stores that speak the version of the protocol before. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MessagePacker } from '../../../src/platform/node/packer.js';
import { CLAIM } from '../../../src/protocol/message-types.js';
import { ROLE_MEMBER } from '../../../src/protocol/reasons.js';
import { Claiming } from '../../../src/recovery/claiming.js';
import type { CensusRow } from '../../../src/recovery/census.js';
import type { RecoveryStore } from '../../../src/recovery/queue-job.js';
import { SetHints } from '../../../src/recovery/set-hints.js';
import { StoreViews } from '../../../src/recovery/store-views.js';

/** Gateway gw-1 of a group of two, and stores of these versions that all have one queue of `ownerId`. */
function judged(ownerId: string, versions: readonly number[], rounds = 1): { readonly asked: readonly number[]; readonly told: readonly string[]; readonly state: string } {
  const packer = new MessagePacker();
  const asked: number[] = [];
  const told: string[] = [];
  const log = { debug: () => undefined, info: () => undefined, error: () => undefined, warn: (_event: string, text: string, fields?: object) => { told.push(`${text} ${JSON.stringify(fields)}`); } };
  const views = new StoreViews('gw-1', packer);
  const members = versions.map((_version, i) => `store-${String(i)}`);
  for (const [i, version] of versions.entries()) {
    const store: RecoveryStore = { storeId: `store-${String(i)}`, bootId: 'boot', isUp: true, version, leaseMs: 1000, graceMs: 0, flush: () => undefined, request: (type) => asked.push(type) };
    views.add(store);
  }
  for (const view of views.all()) view.listed = true;
  const claiming = new Claiming({ gatewayId: 'gw-1', token: 5, group: ['gw-1', 'gw-2'] }, {
    packer, log, views, hints: new SetHints([], log), nowMs: () => 0, random: () => 0, olderMayLive: () => false, needFlush: () => undefined, onClaimed: () => undefined,
  });
  const row: Omit<CensusRow, 'storeId'> = { ownerId, birth: 1, serial: 1, name: 'q', queueClass: 'mail', role: ROLE_MEMBER, epoch: 1, members, number: 3, digestA: 1, digestB: 2, count: 3, bytes: 30, holder: ownerId, holderToken: 1 };
  const job = claiming.newJob(row, 'key', 7);
  for (const storeId of members) job.rows.set(storeId, { ...row, storeId });
  for (let i = 0; i < rounds; i++) {
    if (job.state !== 'waiting') job.restart('waiting', 0);
    claiming.judge(job, views.answering(), 0);
  }
  return { asked, told, state: job.state };
}

test('the queue of another gateway is taken over from stores of this version', () => {
  assert.deepEqual(judged('gw-2', [2, 2]), { asked: [CLAIM, CLAIM], told: [], state: 'claiming' });
});

test('it is left alone while a store speaks version 1, and that is said once, with both versions', () => {
  const { asked, told, state } = judged('gw-2', [2, 1], 3);
  assert.deepEqual([asked, state], [[], 'elsewhere']);
  assert.equal(told.length, 1);
  assert.match(told[0] ?? '', /is not taken over while a store speaks an older version .*"store":"store-1","version":1,"this_gateway":"versions 3 to 3"/);
});

test('its own queue a gateway takes from any store that it can speak with', () => {
  assert.deepEqual(judged('gw-1', [1, 1]), { asked: [CLAIM, CLAIM], told: [], state: 'claiming' });
});
