/**
 * Attempts that end before their final dot through no fault of the message: each keeps its place in its queue (G3),
 * and none is counted.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { checkNoDuplicates, checkNoLoss, checkOrder } from './checks.js';
import { Group } from './group.js';

const COUNT = 12;
const QUEUES = [{ name: 'q1' }, { name: 'q2', ordering: 'strict' as const }];
const NAMES = QUEUES.map((queue) => queue.name);

/** A gateway that nobody rescues, with COUNT messages in each queue, the first ones on their way to the next hop. */
function begun(dotMs: number): { readonly group: Group; readonly ids: readonly number[] } {
  const group = Group.started({ gateways: ['gw-1'], queues: QUEUES });
  group.hops.dotMs = dotMs;
  const letters = Array.from({ length: COUNT }, () => {
    const letter = group.submit('gw-1', NAMES);
    group.run(10);
    return letter;
  });
  assert.equal(group.letters.count(COMMITTED), COUNT);
  for (const [queue, inFlight] of [['q1', 4], ['q2', 1]] as const) assert.equal(letters.filter((letter) => letter.attempts.has(queue)).length, inFlight, queue);
  return { group, ids: letters.map((letter) => letter.id) };
}

function arrivedInOrder(group: Group, ids: readonly number[]): void {
  group.until(() => group.letters.delivered === NAMES.length * COUNT, 'all deliveries');
  for (const name of NAMES) {
    assert.deepEqual(group.hops.arrivals.filter((arrival) => arrival.queueName === name).map((arrival) => arrival.messageId), ids, name);
    checkOrder(group.letters, name);
  }
  checkNoLoss(group.letters);
  checkNoDuplicates(group.letters);
}

describe('an attempt that ends before its dot', () => {
  test('for want of the right, since the gateway stood still past its lease, is begun again in its place as soon as the right is back', () => {
    const { group, ids } = begun(1000);
    group.freeze('gw-1');
    group.run(2 * group.leaseMs);
    group.hops.dotMs = 2;
    const thawedMs = group.scheduler.nowMs;
    group.thaw('gw-1');
    arrivedInOrder(group, ids);
    assert.ok(group.log.count('deliveries wait') > 0, 'the right was lost');
    // A deferral would have waited for a second.
    assert.ok(group.scheduler.nowMs - thawedMs < 900, `${String(group.scheduler.nowMs - thawedMs)} ms`);
    for (const letter of group.letters.byId.values()) assert.ok((letter.attempts.get('q1') ?? 0) <= 2);
  });

  test('since the next hop is not there, is begun again in its place', () => {
    const { group, ids } = begun(1000);
    group.hops.dotMs = 2;
    group.hops.script = () => 'unreachable';
    group.run(5000);
    group.hops.script = () => 'accept';
    arrivedInOrder(group, ids);
  });
});
