/**
 * One gateway is asked for all of its group over HTTP, as docs/ADMIN.md tells it: an order over mail is begun, watched and
 * ended at addresses of the group; a gateway that was killed is named, and its mail met through the register.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { StatusAnswer } from '../../src/admin-api/gateway-answers.js';
import type { GatheredAnswer } from '../../src/admin-api/group.js';
import type { LeftOrderAnswer, QueueOrderAnswer, QueueOrdersAnswer } from '../../src/admin-api/queue-orders.js';
import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';

const WHY = { reason: 'a test', who: 'ann' };

interface Gathered<T> extends GatheredAnswer {
  readonly answers: readonly { readonly gateway: string; readonly body: T }[];
}

/** Of the first gateway. */
async function asked<T>({ adminPort }: Cluster, path: string, body?: object): Promise<T> {
  const post = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ ...body, ...WHY }) };
  const answer = await fetch(`http://${HOST}:${String(adminPort)}/api/v1/${path}`, body === undefined ? {} : post);
  const told = await answer.json() as T;
  assert.equal(answer.status, 200, JSON.stringify(told));
  return told;
}

function sum<T>({ answers }: Gathered<T>, of: (body: T) => number): number {
  return answers.reduce((all, { body }) => all + of(body), 0);
}

/** Begun, and when all who answer have looked, and again when they are through. Resolves with its id. */
async function carriedOut(cluster: Cluster, order: object): Promise<readonly [id: string, found: Gathered<QueueOrderAnswer>, done: Gathered<QueueOrderAnswer>]> {
  const id = (await asked<Gathered<QueueOrderAnswer>>(cluster, 'group/orders', order)).answers[0]?.body.order ?? '';
  let told = await asked<Gathered<QueueOrderAnswer>>(cluster, `group/orders/${id}`);
  const areAll = (phase: string) => async (): Promise<boolean> => {
    told = await asked<Gathered<QueueOrderAnswer>>(cluster, `group/orders/${id}`);
    return told.answers.every(({ body }) => body.phase === phase);
  };
  await until('all is looked at', areAll('found'));
  const found = told;
  await asked(cluster, `group/orders/${id}/go`, { grace_seconds: 0 });
  await until('all is done', areAll('done'));
  return [id, found, told];
}

async function mailAtBoth(cluster: Cluster, count: number): Promise<void> {
  for (const { smtpPort } of cluster.gateways) await runSend({ host: HOST, port: smtpPort, count, connections: 5, domains: ['a.example', 'b.example'] });
}

describe('a gateway that is asked for its group', { timeout: 360_000 }, () => {
  test('begins an order at all, tells how far it is at one address, and names who was killed', async (t) => {
    const cluster = await startCluster({ gateways: 2, stores: 3, group: true, domains: ['a.example', 'b.example'] });
    t.after(() => cluster.stop());
    await cluster.sink.kill();
    await mailAtBoth(cluster, 100);
    const status = await asked<Gathered<StatusAnswer>>(cluster, 'group/status');
    assert.deepEqual([status.answers.map(({ gateway }) => gateway), status.missing], [['gateway-1', 'gateway-2'], []]);
    assert.equal(sum(status, ({ queued_messages: messages }) => messages), 200);

    const [, found, done] = await carriedOut(cluster, { verb: 'delete', selector: { domain: 'a.example' } });
    assert.equal(sum(found, ({ matched }) => matched), 100);
    assert.deepEqual(found.answers.map(({ body }) => body.done), [0, 0], 'nothing is ended before it goes');
    assert.equal(sum(done, ({ done: ended }) => ended), 100);
    assert.equal(sum(await asked<Gathered<StatusAnswer>>(cluster, 'group/status'), ({ queued_messages: messages }) => messages), 100);

    await cluster.gateways[1]?.gateway.kill();
    const half = await asked<Gathered<StatusAnswer>>(cluster, 'group/status');
    assert.deepEqual([half.answers.map(({ gateway }) => gateway), half.missing], [['gateway-1'], [{ gateway: 'gateway-2', why: 'connection refused', code: 0 }]]);
    const [id, , last] = await carriedOut(cluster, { verb: 'delete', selector: { everything: true } });
    assert.deepEqual(last.missing.map(({ gateway }) => gateway), ['gateway-2']);
    const left = await asked<LeftOrderAnswer>(cluster, `orders/${id}/leave`, { passed: last.answers.flatMap(({ body }) => body.partitions) });
    assert.deepEqual([left.order, left.holders], [id, ['gateway-2']]);
    await until('the mail of the killed one is met', async () => {
      const { orders, left: waiting } = await asked<QueueOrdersAnswer>(cluster, 'orders');
      const { queued_messages: messages } = await cluster.status();
      return orders.some(({ order }) => order === id) && waiting.every(({ partitions }) => partitions.length === 0) && messages === 0;
    }, 90_000, cluster.gateway);
    await until('it is known to be gone', async () => {
      const { missing } = await asked<Gathered<StatusAnswer>>(cluster, 'group/status');
      return missing[0]?.why.startsWith('no session at the register, no answer: dead, or cut off') === true;
    });
    cluster.sink.start();
    await cluster.sink.ready();
    assert.equal((await cluster.sinkCounts()).messages, 0);
  });
});
