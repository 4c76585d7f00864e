/** Who of the queues of a next hop is served next, and how much could start. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Lane } from '../../../../src/gateway/outbound/lane.js';
import { LaneRing } from '../../../../src/gateway/outbound/lane-ring.js';
import { MemoryQueue, MemorySource } from './memory-source.js';

const NEXT_HOP = { protocol: 'smtp', host: '127.0.0.1', port: 25 } as const;

/** Lanes of queues with so many messages each. */
function lanes(...counts: readonly number[]): Lane[] {
  const source = new MemorySource();
  return counts.map((count, index) => {
    const queue = new MemoryQueue({ nextHop: NEXT_HOP, concurrency: 4 });
    for (let i = 0; i < count; i++) source.put(queue, 1000 * index + i, '');
    return new Lane(queue, source, { count: 0, onSettled: () => undefined });
  });
}

function ringOf(all: readonly Lane[]): LaneRing {
  const ring = new LaneRing();
  for (const lane of all) ring.add(lane);
  return ring;
}

describe('a ring of lanes', () => {
  test('gives them back in the order in which they came, each once, however often it was added', () => {
    const all = lanes(1, 1, 1);
    const ring = ringOf([...all, ...all]);
    assert.deepEqual([ring.take(), ring.take(), ring.take(), ring.take()], [...all, undefined]);
  });

  test('puts one that is added again behind all others', () => {
    const [first, second] = lanes(2, 1);
    assert.ok(first !== undefined && second !== undefined);
    const ring = ringOf([first, second]);
    assert.equal(ring.take(), first);
    ring.add(first);
    assert.deepEqual([ring.take(), ring.take()], [second, first]);
  });

  test('passes over those that have nothing to start, and forgets them until they are added again', () => {
    const all = lanes(0, 1, 0, 1);
    const counted = ringOf(all);
    assert.equal(counted.startable(10), 2);
    assert.deepEqual(all.map((lane) => lane.isInTurn), [false, true, false, true]);
    const others = lanes(0, 1, 0, 1);
    const taken = ringOf(others);
    assert.deepEqual([taken.take(), taken.take(), taken.take()], [others[1], others[3], undefined]);
    assert.ok(others.every((lane) => !lane.isInTurn));
  });

  test('counts no further than it is asked, and a queue up to its concurrency', () => {
    const all = lanes(3, 9, 2);
    const ring = ringOf(all);
    assert.deepEqual([ring.startable(2), ring.startable(5), ring.startable(100)], [2, 5, 3 + 4 + 2]);
  });

  test('lets any of them go, wherever it stands', () => {
    for (const gone of [0, 1, 2]) {
      const all = lanes(1, 1, 1);
      const ring = ringOf(all);
      const [lane] = all.splice(gone, 1);
      assert.ok(lane !== undefined);
      ring.remove(lane);
      ring.remove(lane);
      assert.equal(ring.startable(10), 2);
      ring.add(lane);
      assert.deepEqual([ring.take(), ring.take(), ring.take(), ring.take()], [...all, lane, undefined]);
    }
  });
});
