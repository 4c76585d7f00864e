/**
 * Orders for many messages by the command line, at two gateways and a real next hop: what is counted is what is done,
 * mail that waits is flushed, and who did not answer is named.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { runSend } from '../../src/load/run.js';
import type { QueueOrderAnswer, QueueOrdersAnswer } from '../../src/admin-api/queue-orders.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';
import { twinpost } from './twinpost.js';

const REASON = ['--reason', 'a test'];

/** As JSON, of each gateway that answered. */
async function ordered(cluster: Cluster, ...args: readonly string[]): Promise<{ code: number | null; answers: readonly QueueOrderAnswer[]; error: string }> {
  const { code, out, error } = await twinpost(['queue', ...args, ...REASON, '--json', '--from', `${HOST}:${String(cluster.adminPort)}`]);
  const lines = out.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as QueueOrderAnswer & { readonly partial?: true });
  return { code, answers: lines.filter(({ partial }) => partial !== true), error };
}

function sum(answers: readonly QueueOrderAnswer[], of: (answer: QueueOrderAnswer) => number): number {
  return answers.reduce((all, answer) => all + of(answer), 0);
}

async function queued(cluster: Cluster): Promise<number> {
  let messages = 0;
  for (const { adminPort } of cluster.gateways) {
    const status = await (await fetch(`http://${HOST}:${String(adminPort)}/api/v1/status`)).json() as { readonly queued_messages: number };
    messages += status.queued_messages;
  }
  return messages;
}

describe('orders for many messages', { timeout: 360_000 }, () => {
  test('count, end and flush mail at all gateways, and name one that does not answer', async (t) => {
    const cluster = await startCluster({
      gateways: 2, group: true, domains: ['a.example', 'b.example'], gateway: { delivery: { retry: { first: '1h', max: '1h' } } },
    });
    t.after(() => cluster.stop());
    await cluster.sink.kill();
    for (const { smtpPort } of cluster.gateways) {
      await runSend({ host: HOST, port: smtpPort, count: 300, connections: 5, domains: ['a.example', 'b.example'] });
    }
    await until('all waits', async () => (await queued(cluster)) === 600);
    const dry = await ordered(cluster, 'delete', '--domain', 'a.example', '--dry-run');
    assert.deepEqual([dry.code, dry.answers.length, sum(dry.answers, ({ matched }) => matched)], [0, 2, 300]);
    assert.equal(await queued(cluster), 600, 'a dry run ends nothing');
    const none = await ordered(cluster, 'bounce', '--client', '192.0.2.1');
    assert.deepEqual([none.code, sum(none.answers, ({ matched }) => matched)], [1, 0]);
    const few = await ordered(cluster, 'delete', '--domain', 'a.example', '--expect', '100');
    assert.equal(few.code, 1);
    assert.match(few.error, /300 are meant, and 100 were expected/);
    const deleted = await ordered(cluster, 'delete', '--domain', 'a.example', '--client', HOST);
    assert.deepEqual([deleted.code, sum(deleted.answers, ({ done }) => done)], [0, 300]);
    assert.ok(deleted.answers.every(({ kept, phase }) => kept && phase === 'done'));
    assert.equal(await queued(cluster), 300);

    // The next hop is there again; its back-off is up to a minute by now.
    cluster.sink.start();
    await cluster.sink.ready();
    const flushed = await ordered(cluster, 'flush', '--everything');
    assert.equal(sum(flushed.answers, ({ done, gone_before: gone }) => done + gone), sum(flushed.answers, ({ matched }) => matched));
    await cluster.sinkHas(300, 15_000);
    assert.equal((await cluster.sinkCounts()).messages, 300);

    await cluster.gateways[1]?.gateway.kill();
    const partial = await ordered(cluster, 'delete', '--everything');
    assert.equal(partial.code, 3, partial.error);
  });

  test('are taken back in their grace by a terminal that hangs up, and by somebody else, and nothing of them stands', async (t) => {
    const cluster = await startCluster({ gateways: 2, group: true, domains: ['a.example'] });
    t.after(() => cluster.stop());
    await cluster.sink.kill();
    for (const { smtpPort } of cluster.gateways) await runSend({ host: HOST, port: smtpPort, count: 10, connections: 1, domains: ['a.example'] });
    const ask = async (path: string): Promise<unknown> => (await fetch(`http://${HOST}:${String(cluster.adminPort)}/api/v1/${path}`)).json();
    const inGrace = async (): Promise<string> => {
      let id = '';
      await until('its grace', async () => {
        const { orders } = await ask('orders') as QueueOrdersAnswer;
        id = orders.find(({ phase }) => phase === 'grace')?.order ?? '';
        return id !== '';
      });
      return id;
    };
    const args = ['queue', 'delete', '--domain', 'a.example', '--duration', '1h', '--grace', '60s', ...REASON, '--from', `${HOST}:${String(cluster.adminPort)}`];
    const hungUp = await twinpost(args, '', inGrace().then(() => 'SIGHUP'));
    assert.equal(hungUp.code, 1, hungUp.out + hungUp.error);
    const ending = twinpost(args);
    const cancelled = await twinpost(['queue', 'orders', '--cancel', await inGrace(), ...REASON, '--from', `${HOST}:${String(cluster.adminPort)}`]);
    assert.equal(cancelled.code, 0, cancelled.error);
    const { code, out, error } = await ending;
    assert.equal(code, 1, out + error);
    assert.match(out, /taken back: the others go on as before/);
    const { orders } = await ask('orders') as QueueOrdersAnswer;
    assert.deepEqual(orders.map(({ phase, done }) => [phase, done]), [['cancelled', 0], ['cancelled', 0]]);
    assert.deepEqual((await ask('rules') as { readonly rules: readonly unknown[] }).rules, []);
    assert.equal(await queued(cluster), 20);
  });

  test('reach the mail of a gateway that dies before it has begun, when another takes that over', async (t) => {
    // Nothing of it is taken over before the order is left in the register, on a slow machine either.
    const lease = '40s';
    const cluster = await startCluster({
      gateways: 2, stores: 3, group: true, domains: ['a.example'], store: { lease }, gateway: { mirror: { lease } },
    });
    t.after(() => cluster.stop());
    await cluster.sink.kill();
    for (const { smtpPort } of cluster.gateways) await runSend({ host: HOST, port: smtpPort, count: 100, connections: 5, domains: ['a.example'] });
    const second = cluster.gateways[1];
    const ending = twinpost(['queue', 'delete', '--everything', '--grace', '4s', ...REASON, '--from', `${HOST}:${String(cluster.adminPort)}`]);
    await until('it waits', async () => {
      const { orders } = await (await fetch(`http://${HOST}:${String(second?.adminPort)}/api/v1/orders`)).json() as QueueOrdersAnswer;
      return orders[0]?.phase === 'grace';
    });
    await second?.gateway.kill();
    const { code, out, error } = await ending;
    assert.equal(code, 3, out + error);
    assert.match(out, /100 of 200 deleted|100 of 100 deleted/);
    assert.match(out, /PARTIAL: gateway-2: it fell silent/);
    assert.match(out, /left in the register as cli-[0-9a-f]{12} for gateway-2: mail of \d+ partitions?/);
    cluster.sink.start();
    await cluster.sink.ready();
    await until('the order is done with', async () => {
      const { orders_left: left, queued_messages: messages } = await cluster.status();
      return left === 0 && messages === 0;
    }, 90_000, cluster.gateway);
    assert.equal((await cluster.sinkCounts()).messages, 0);
  });

  test('reach the mail of a gateway that stands still in their grace, and say so', async (t) => {
    const cluster = await startCluster({ gateways: 2, stores: 3, group: true, domains: ['a.example'] });
    t.after(() => cluster.stop());
    await cluster.sink.kill();
    for (const { smtpPort } of cluster.gateways) await runSend({ host: HOST, port: smtpPort, count: 100, connections: 5, domains: ['a.example'] });
    const second = cluster.gateways[1];
    const atFirst = async (): Promise<QueueOrderAnswer | undefined> =>
      (await (await fetch(`http://${HOST}:${String(cluster.adminPort)}/api/v1/orders`)).json() as QueueOrdersAnswer).orders[0];
    const ending = twinpost(['queue', 'delete', '--everything', '--grace', '20s', ...REASON, '--from', `${HOST}:${String(cluster.adminPort)}`]);
    // It has been asked by then so often that it knows to be followed; and 17 s are more than its patience.
    await until('its grace runs', async () => [17, 18].includes((await atFirst())?.grace_left_seconds ?? 0));
    second?.gateway.freeze();
    await until('the first has begun', async () => (await atFirst())?.phase === 'done', 40_000);
    // Once it goes on it answers, and the command may ask it once more.
    const { code, out, error } = await ending;
    second?.gateway.thaw();
    assert.equal(code, 3, out + error);
    assert.doesNotMatch(out, /taken back/);
    assert.match(out, /100 of [12]00 deleted/);
    assert.match(out, /PARTIAL: gateway-2: /);
    assert.match(out, /^left in the register as |^nothing is left to be done/m);
    await until('all of it is ended', async () => (await queued(cluster)) === 0, 60_000, cluster.gateway);
    cluster.sink.start();
    await cluster.sink.ready();
    assert.equal((await cluster.sinkCounts()).messages, 0);
  });

  test('refuses what it can not understand with one line', async () => {
    for (const [args, why] of [
      [['queue', 'delete', ...REASON], /say which messages/],
      [['queue', 'delete', '--everything', '--domain', 'x', ...REASON], /everything is said alone/],
      [['queue', 'bounce', '--everything'], /reason/],
      [['queue', 'expire', '--older-than', 'soon', ...REASON], /--older-than/],
      [['queue', 'hold', '--client', '300.1.2.3', ...REASON], /is no address or network/],
      [['queue', 'delete', '--everything', '--now', '--grace', '5s', ...REASON], /do not go together/],
    ] as const) {
      const { code, error } = await twinpost(args);
      assert.equal(code, 2, args.join(' '));
      assert.match(error, why);
      assert.doesNotMatch(error, /\n\s+at /);
    }
  });
});
