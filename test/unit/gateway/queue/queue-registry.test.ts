import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { Mirrors } from '../../../../src/gateway/mirror/mirrors.js';
import type { Expected } from '../../../../src/gateway/ownership/expected.js';
import type { AcceptancePorts } from '../../../../src/gateway/queue/acceptance.js';
import { Acceptance } from '../../../../src/gateway/queue/acceptance.js';
import { EntryState, EntryTable } from '../../../../src/gateway/queue/entry-table.js';
import type { MailQueue } from '../../../../src/gateway/queue/mail-queue.js';
import { QueueRegistry } from '../../../../src/gateway/queue/queue-registry.js';
import type { AdmissionVerdict, Route } from '../../../../src/gateway/mail-types.js';
import type { PartitionHolder } from '../../../../src/recovery/ownership/holder.js';
import { KeptLog } from '../admin/kept-log.js';
import { quietPartition } from '../quiet-partition.js';

/** What a gateway with two partitions can be in when a recipient of a route comes. */
interface State {
  readonly ordering: 'fifo' | 'strict';
  /** Of the route, in the first partition. */
  readonly queue: 'none' | 'empty' | 'with mail';
  readonly firstTakes: boolean;
  readonly secondTakes: boolean;
  readonly firstRecovers: boolean;
  readonly secondRecovers: boolean;
  readonly secondHasMail: boolean;
  readonly expected: Expected;
  readonly isFull: boolean;
}

const CALM: State = {
  ordering: 'fifo', queue: 'none', firstTakes: true, secondTakes: true, firstRecovers: false, secondRecovers: false,
  secondHasMail: false, expected: '', isFull: false,
};

function routeOf(ordering: 'fifo' | 'strict'): Route {
  return {
    queueName: 'a.example', queueClass: 'mail', label: 'mail/a.example', nextHop: { protocol: 'smtp', host: 'mx.a.example', port: 25 },
    ordering, concurrency: 1, lengthMax: 100,
  };
}

/** What a recipient is told in the state, then the queue that a message for him gets, and how many there were before. */
function asked(state: State): { verdict: AdmissionVerdict; queue: MailQueue | undefined; made: number } {
  const table = new EntryTable(1);
  const route = routeOf(state.ordering);
  const takes = [true, true];
  let handle = 0;
  const create = (): ReturnType<typeof quietPartition> => {
    const at = handle++;
    const partition = quietPartition(table, handle);
    partition.mayTake = () => takes[at] === true;
    return partition;
  };
  const options = { queuesMax: 100 };
  const registry = new QueueRegistry(options, {
    table, mirrors: { create } as unknown as Mirrors, log: new KeptLog(), nowMs: () => 1e6, expected: () => state.expected,
    isSuspended: () => false, isAwaitedBack: () => false, isUnderOrder: () => false, wake: () => undefined,
  });
  const adopted = [1, 2].map(() => registry.adopt({ handle: 0, name: '', isOwn: true, minReplicas: 1 }, {} as unknown as PartitionHolder));
  const [first, second] = adopted;
  assert.ok(first !== undefined && second !== undefined);
  const fill = (queue: MailQueue): void => {
    const row = table.take(1, queue.handle);
    table.transition(row, EntryState.STORING);
    table.position.set(row, queue.partition.order.length + 1);
    queue.append(row, 10);
  };
  if (state.secondHasMail) fill(registry.queueIn(second, route, true));
  if (state.queue !== 'none') {
    const queue = registry.queueIn(first, route, true);
    if (state.queue === 'with mail') fill(queue);
  }
  takes[0] = state.firstTakes;
  takes[1] = state.secondTakes;
  first.isRecovering = state.firstRecovers;
  second.isRecovering = state.secondRecovers;
  if (state.isFull) options.queuesMax = 0;
  const acceptance = new Acceptance({ lifetimeMs: 1, bounceLifetimeMs: 1, nextHopShare: 1 }, {
    registry, memory: { admits: () => true, acceptBytes: 1e9 }, entries: { table }, packer: {}, isRefused: () => false,
  } as unknown as AcceptancePorts);
  const before = registry.queueCount;
  const verdict = acceptance.admit(route);
  const made = registry.queueCount - before;
  return { verdict, queue: registry.findOrCreate(route), made };
}

function everyState(): State[] {
  const found: State[] = [];
  const both = [false, true];
  for (const ordering of ['fifo', 'strict'] as const) for (const queue of ['none', 'empty', 'with mail'] as const) {
    for (const firstTakes of both) for (const secondTakes of both) for (const firstRecovers of both) for (const secondRecovers of both) {
      for (const secondHasMail of both) for (const expected of ['', 'soon', 'held'] as const) for (const isFull of both) {
        found.push({ ordering, queue, firstTakes, secondTakes, firstRecovers, secondRecovers, secondHasMail, expected, isFull });
      }
    }
  }
  return found;
}

describe('where new mail of a route goes', () => {
  test('a recipient is admitted in exactly those states in which his message gets a queue', () => {
    const wrong: string[] = [];
    for (const state of everyState()) {
      const { verdict, queue, made } = asked(state);
      if ((verdict === '') !== (queue !== undefined) || made !== 0) wrong.push(`'${verdict}' ${JSON.stringify(state)}`);
    }
    assert.deepEqual(wrong, []);
  });

  const told: readonly (readonly [what: string, state: Partial<State>, verdict: AdmissionVerdict])[] = [
    ['a strict queue that is empty while another partition comes back', { ordering: 'strict', queue: 'empty', secondRecovers: true }, 'recovering'],
    ['a strict queue that is empty while another partition is expected', { ordering: 'strict', queue: 'empty', expected: 'held' }, 'recovering'],
    ['a strict queue that is empty, whose own partition comes back', { ordering: 'strict', queue: 'empty', firstRecovers: true }, ''],
    ['a strict queue with mail while another partition comes back', { ordering: 'strict', queue: 'with mail', secondRecovers: true }, ''],
    ['a strict queue with mail, whose partition takes none', { ordering: 'strict', queue: 'with mail', firstTakes: false }, 'short'],
    ['a fifo queue with mail, whose partition takes none, with as many queues as may be', { queue: 'with mail', firstTakes: false, isFull: true }, ''],
    ['a fifo queue that is empty while another partition comes back', { queue: 'empty', secondRecovers: true }, ''],
    ['a route without a queue, with as many queues as may be', { isFull: true }, 'queues'],
    ['a route without a queue, of which no partition takes mail', { firstTakes: false, secondTakes: false, isFull: true }, 'no-store'],
    ['older mail in the one partition that takes mail', { queue: 'with mail', firstTakes: false, secondHasMail: true, ordering: 'strict' }, 'short'],
  ];
  for (const [what, state, verdict] of told) {
    test(`${what}: '${verdict}'`, () => assert.equal(asked({ ...CALM, ...state }).verdict, verdict));
  }
});
