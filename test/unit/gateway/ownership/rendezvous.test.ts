import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rendezvous } from '../../../../src/gateway/ownership/rendezvous.js';
import { partitionName } from '../../../../src/protocol/partition-record.js';

test('each gateway of a group comes first for its part of the partitions of one that is dead', () => {
  const group = ['gw-2', 'gw-3', 'gw-4', 'gw-5'];
  const firsts = new Map(group.map((id) => [id, 0]));
  for (let n = 0; n < 400; n++) {
    const name = partitionName('gw-1', n);
    const [first] = [...group].sort((a, b) => rendezvous(a, name) - rendezvous(b, name));
    if (first !== undefined) firsts.set(first, (firsts.get(first) ?? 0) + 1);
  }
  for (const [id, count] of firsts) assert.ok(count > 60 && count < 140, `${id}: ${String(count)} of 400`);
});
