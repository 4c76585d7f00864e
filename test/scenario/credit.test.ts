/** Many gateways at small stores: each can take a large message, though idle ones hold credit (docs/PROTOCOL.md "Acknowledgement and credit"). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED, NO_MEMORY } from '../../src/gateway/mail-types.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import type { Letter } from './letters.js';

const GATEWAYS = Array.from({ length: 10 }, (_, i) => `gw-${String(i)}`);
const MEBIBYTE = 1024 * 1024;
/** As 25 MiB at stores of 256 MiB, a fourth of it to spare time. */
const STORE_BYTES = 64 * MEBIBYTE;
const LARGE_BYTES = 6.25 * MEBIBYTE;

function submitLarge(group: Group, id: string): Letter {
  const letter = group.submit(id, ['q1'], 'alice@senders.example', LARGE_BYTES);
  group.until(() => letter.outcome !== 0, 'an answer');
  return letter;
}

function tenGateways(): Group {
  return Group.started({ gateways: GATEWAYS, noRescue: GATEWAYS, storeMemoryBytes: STORE_BYTES });
}

describe('ten gateways at small stores', () => {
  test('each takes a large message when it comes again, the last like the first', () => {
    const group = tenGateways();
    for (const id of GATEWAYS) group.submit(id, ['q1']);
    group.until(() => group.letters.delivered === GATEWAYS.length, 'small mail');
    for (const id of GATEWAYS) {
      const first = submitLarge(group, id);
      // The client tries again after a while; a few heartbeats are enough.
      group.run(2000);
      if (first.outcome === COMMITTED) continue;
      assert.equal(first.outcome, NO_MEMORY);
      assert.equal(submitLarge(group, id).outcome, COMMITTED, `the second try at ${id}`);
    }
    group.until(() => group.letters.delivered === 2 * GATEWAYS.length, 'all deliveries');
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
    assert.equal(group.log.count('refused: '), 0);
  });

  test('what some have asked for and never used does not keep the others from small mail', () => {
    const group = tenGateways();
    for (const id of GATEWAYS) assert.equal(submitLarge(group, id).outcome, NO_MEMORY);
    group.run(2000);
    const small = GATEWAYS.map((id) => group.submit(id, ['q1'], 'alice@senders.example', 200 * 1024));
    group.until(() => small.every(({ outcome }) => outcome === COMMITTED), 'small mail');
    for (const store of group.stores) {
      const admission = store.store?.admission;
      assert.ok(admission !== undefined && admission.chargedBytes + admission.grantedBytes <= admission.acceptBytes);
    }
  });
});
