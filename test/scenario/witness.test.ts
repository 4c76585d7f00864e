/**
 * A restart that a cut-off owner heard of under a lease in which its right was not confirmed: it may found no set by that
 * (src/gateway/mirror/mirrors.ts, onLinkUp; replica-set.ts, THE RULE OF FOUNDING).
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkNoDuplicates } from './checks.js';
import { deliverAll, loaded, oneDeliversAtMost, queueAt, restart, servedAt, stateAt } from './one-owner.js';

/**
 * gw-1 was cut off; gw-2 has the queue by its claim at the one mirror and moves on. gw-1 reaches that store again: its lease
 * begins anew with the handshake, nothing confirms its right. The store restarts before it answers our CLAIM: what runs is a
 * lease, so the restart counts as witnessed.
 */
for (const moved of [true, false]) for (const isSent of [false, true]) test(`a lease that began anew, and under which no right was confirmed, witnesses nothing: the rescuer ${moved ? 'had moved on' : 'still had it there'}${isSent ? '; by what arrives' : ''}`, () => {
  const { group, own, first, second, third } = loaded();
  third.kill();
  second.kill();
  group.until(() => own.memberCount === 1 && own.setChangeNumber === 0, 'the set of one');
  for (const store of group.stores) group.network.cut('gw-1', store.id);
  third.start();
  group.until(() => servedAt(group, 'gw-2')?.inSyncCount === 2, 'the takeover, and a second mirror', 120_000);
  if (moved) {
    group.gateway('gw-2').core?.mirrors.moves.drain(first.id);
    group.until(() => queueAt(first) === undefined, 'the end of the copy');
  }
  group.network.cut('gw-2', first.id);
  group.until(() => servedAt(group, 'gw-2')?.memberCount === 1, 'gw-2 at the third alone', 60_000);
  const boot = first.bootId;
  group.network.heal('gw-1', first.id);
  group.until(() => group.gateway('gw-1').link(first.id)?.isUp === true, 'the link');
  assert.equal(group.gateway('gw-1').link(first.id)?.bootId, boot);
  restart(first);
  if (isSent) {
    group.hops.script = () => 'accept';
    group.run(20_000);
    checkNoDuplicates(group.letters);
  } else {
    oneDeliversAtMost(group, 20_000);
    assert.equal(stateAt(group, 'gw-1'), 'no survivor');
    deliverAll(group);
  }
});
