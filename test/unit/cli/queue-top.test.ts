/** `twinpost queue top`: what several gateways say, as one table with rates. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { QueueAnswer } from '../../../src/admin-api/gateway-answers.js';
import { topLines, topPicture } from '../../../src/cli/queue-top.js';
import type { TopSample } from '../../../src/cli/queue-top.js';
import { STATUS } from './sample-answers.js';

const QUEUE: QueueAnswer = {
  queue_name: 'a.example', queue_class: 'mail', owner: 'gw-1', partition: 'gw-1/1', next_hop: 'smtp://mx.a.example:25', tls: '', order: 'fifo',
  messages: 10, bytes: 1000, active: 1, deferred: 2, held: 0, copies_in_sync: 2, epoch: 1, lag_messages: 0, lag_bytes: 0, oldest_age_seconds: 90, last_error: '',
};
const MISSING = { id: 'gw-3', kind: 'gateway', address: '127.0.0.1:1', why: 'connection refused', how: 'silent' } as const;
const at = (atMs: number) => ({ wallMs: 1_800_000_000_000 + atMs, atMs, missing: [MISSING] });
const gateway = (name: string, received: number, ...queues: readonly QueueAnswer[]): TopSample =>
  ({ status: { ...STATUS, gateway: name, received, delivered: received / 2, queued_messages: 500 }, queues });

describe('twinpost queue top', () => {
  test('adds up what gateways have of one queue, and tells growth and rates from the second look on', () => {
    const first = topPicture([gateway('gw-1', 100, QUEUE), gateway('gw-2', 100, { ...QUEUE, messages: 5, oldest_age_seconds: 100, last_error: '451 later' })], at(0), 'messages', undefined);
    assert.deepEqual(first.queues.map(({ messages, growth, oldest_age_seconds: oldest, last_error: last }) => [messages, growth, oldest, last]), [[15, null, 100, '451 later']]);
    assert.equal(first.rates.received, null);
    const other = { ...QUEUE, queue_name: 'b.example', messages: 12 };
    const second = topPicture([gateway('gw-1', 300, { ...QUEUE, messages: 3 }, other), gateway('gw-2', 120)], at(2_000), 'messages', first);
    assert.deepEqual(second.queues.map(({ queue_name: name, growth }) => [name, growth]), [['b.example', 6], ['a.example', -6]]);
    assert.deepEqual([second.rates.received, second.rates.delivered, second.rates.bounced], [110, 55, 0]);
    const lines = topLines(second, 1, false).join('\n');
    assert.match(lines, /^2027-01-15T08:00:02Z {2}2 gateways {2}queued 1,000 in 2 queues {2}received 110\/s {2}delivered 55\/s {2}deferred 0\/s {2}bounced 0\/s\nPARTIAL: gw-3: no answer/);
    assert.match(lines, /^b\.example +12 +6 .*\n… 1 more queue$/m);
  });

  test('says what is wrong with a queue: its next hop first, then an operator, then what hurts', () => {
    const hurting = { counts: { deferred: 3, growing: 0, slow: 0 }, queues: ['a', 'b', 'c'].map((name) => ({ queue_name: name, queue_class: 'mail', partition: 'gw-1/1', problem: 'deferred' as const, since: 0, messages: 1, deferred: 1, bytes: 1, last_error: '' })) };
    const queues = [
      { ...QUEUE, queue_name: 'a', next_hop: 'mx://a:25', down: true, suspended: true, messages: 4 }, { ...QUEUE, queue_name: 'b', next_hop: 'smtp://b:25', suspended: true, messages: 3 },
      { ...QUEUE, queue_name: 'c', next_hop: 'smtp://c:25', messages: 2 }, { ...QUEUE, queue_name: 'd', next_hop: 'smtp://d:25', messages: 1 },
    ];
    const picture = topPicture([{ status: { ...STATUS, hurting }, queues }], at(0), 'messages', undefined);
    assert.deepEqual(picture.queues.map(({ problem }) => problem), ['down', 'suspended', 'deferred', '']);
  });

  test('shows a queue whose next hop refuses all, though it has no mail, below those that have', () => {
    const refused = (name: string) => ({ queue_name: name, queue_class: 'mail', partition: 'gw-1/1', problem: 'refused' as const, since: 0, messages: 0, deferred: 0, bytes: 0, last_error: '550 go away' });
    const hurting = { counts: { refused: 2, deferred: 0, growing: 0, slow: 0 }, queues: [refused('a'), refused('b')] };
    const there = { ...STATUS, hurting };
    const queues = ['b', 'c', 'd'].map((name, index) => ({ ...QUEUE, queue_name: name, messages: 5 - index }));
    const down = { ...QUEUE, queue_name: 'b', down: true, messages: 2 };
    const picture = topPicture([{ status: there, queues }, { status: { ...STATUS, gateway: 'gw-2' }, queues: [down] }, { status: { ...there, gateway: 'gw-3' }, queues: [] }], at(0), 'messages', undefined);
    assert.deepEqual(picture.queues.map((one) => [one.queue_name, one.messages, one.problem]), [['b', 7, 'down'], ['c', 4, ''], ['d', 3, ''], ['a', 0, 'refused']]);
    const lines = topLines(picture, 2, false).join('\n');
    assert.match(lines, / in 3 queues /);
    assert.match(lines, /^b .*\na +0 .* refused +550 go away\n… 2 more queues$/m);
    assert.doesNotMatch(topLines(topPicture([{ status: there, queues: [] }], at(0), 'growth', undefined), 5, false).join('\n'), /no queue has mail/);
  });

  test('takes no rate from a gateway that was started again, and sorts as it is told', () => {
    const queues = [{ ...QUEUE, queue_name: 'a', messages: 4, deferred: 1, oldest_age_seconds: 1 }, { ...QUEUE, queue_name: 'b', messages: 3, deferred: 2, oldest_age_seconds: 9 }];
    const first = topPicture([gateway('gw-1', 100, ...queues)], at(0), 'messages', undefined);
    const again = gateway('gw-1', 5, ...queues);
    const second = topPicture([{ ...again, status: { ...again.status, incarnation: 8 } }], at(1_000), 'deferred', first);
    assert.equal(second.rates.received, null);
    assert.deepEqual(second.queues.map(({ queue_name: name }) => name), ['b', 'a']);
    assert.deepEqual(topPicture([again], at(1_000), 'oldest', first).queues.map(({ queue_name: name }) => name), ['b', 'a']);
  });
});
