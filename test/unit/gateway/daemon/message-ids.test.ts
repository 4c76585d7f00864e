/** Numbers that name messages: no two in a group are the same, whatever the clocks do. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IDS_PER_ORDINAL, MessageIds, ORDINAL_MAX } from '../../../../src/gateway/daemon/message-ids.js';

function idsOf(...ordinals: number[]): MessageIds {
  return new MessageIds({ countMax: IDS_PER_ORDINAL }, { drawOrdinal: () => ordinals.shift() ?? assert.fail('no ordinal is left') });
}

function draw(ids: MessageIds, count: number): number[] {
  return Array.from({ length: count }, () => ids.next());
}

test('ids of a process rise; those of two ordinals have nothing in common, and no clock is asked', () => {
  const first = draw(idsOf(7), 10_000);
  for (let i = 1; i < first.length; i++) assert.equal(first[i], (first[i - 1] ?? 0) + 1);
  const second = draw(idsOf(8), 10_000);
  assert.equal(new Set([...first, ...second]).size, 20_000);
  assert.equal(first[0], 7 * 2 ** 29);
});

test('nothing is drawn before the first id is wanted', () => {
  assert.throws(() => idsOf().next(), /no ordinal is left/);
  idsOf();
});

test('behind the last id of an ordinal comes the first one of the next', () => {
  const ordinals = [3, 9];
  const ids = new MessageIds({ countMax: 2 }, { drawOrdinal: () => ordinals.shift() ?? 0 });
  assert.deepEqual(draw(ids, 3), [3 * 2 ** 29, 3 * 2 ** 29 + 1, 9 * 2 ** 29]);
});

test('ids are safe integers up to the last ordinal; beyond it, and for none, is our bug', () => {
  assert.ok(Number.isSafeInteger(idsOf(ORDINAL_MAX).next() + IDS_PER_ORDINAL - 1));
  for (const wrong of [0, -1, 1.5, ORDINAL_MAX + 1, NaN]) assert.throws(() => idsOf(wrong).next(), /ordinal/);
});
