/** Numbers that name messages: no two in a group are the same, whatever the clocks do within reason. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MessageIds } from '../../../src/gateway/message-ids.js';

const NOW_MS = Date.UTC(2026, 10, 21);
const GROUP = ['gw-1', 'gw-2', 'gw-3'];

function draw(incarnation: number, gateway: string, group: readonly string[], count: number): number[] {
  const ids = new MessageIds(incarnation, gateway, group);
  return Array.from({ length: count }, () => ids.next());
}

test('gateways of a group that start in the same millisecond never draw the same id', () => {
  const all = GROUP.flatMap((gateway) => draw(NOW_MS, gateway, [...GROUP].reverse(), 10_000));
  assert.equal(new Set(all).size, all.length);
  assert.ok(all.every((id) => Number.isSafeInteger(id)));
});

test('ids of a process rise, and those of the next one are above as many as a process draws in that time', () => {
  const first = draw(NOW_MS, 'gw-1', GROUP, 6400);
  for (let i = 1; i < first.length; i++) assert.ok((first[i] ?? 0) > (first[i - 1] ?? 0));
  const [next = 0] = draw(NOW_MS + 100, 'gw-1', GROUP, 1);
  assert.ok(next > (first.at(-1) ?? 0));
});

test('a gateway outside the group has a seat, too, and ids fit for decades', () => {
  assert.equal(draw(NOW_MS, 'spare', GROUP, 3).length, 3);
  assert.ok(draw(Date.UTC(2085, 0, 1), 'gw-1', GROUP, 1).every((id) => Number.isSafeInteger(id)));
});
