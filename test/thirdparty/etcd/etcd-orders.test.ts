/**
 * An order of an operator while one gateway of two is dead, or dies, with real processes and a real etcd: the dead one is
 * named, and nothing of what the order means is tried after its mail is taken over, or when it is back itself.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { runSend } from '../../../src/load/run.js';
import { HOST, startCluster, until, type Cluster } from '../../process/cluster.js';
import { ENTRY } from '../../process/entry.js';
import { SmtpTalk } from '../../process/smtp-talk.js';
import { twinpost } from '../../process/twinpost.js';
import { EtcdCluster } from './etcd-cluster.js';

const FLOODER = '127.0.0.2';
const FLOOD_FROM = 'x@flood.example';
const FLOOD = 1000;
const OTHERS = 300;
const BOUND_MS = 90_000;
const CONNECTIONS = 10;
/** Nothing of a dead gateway is taken over while the orders are given, on a slow machine either. */
const LEASE = '40s';

let etcd: EtcdCluster;

before(async () => {
  etcd = await EtcdCluster.start(1);
  await etcd.isReady();
});

after(async () => {
  await etcd.stop();
});

/** Mail of the client that floods. */
async function flood(port: number, count: number): Promise<void> {
  const left = Array.from({ length: count }, (_none, i) => i);
  await Promise.all(Array.from({ length: Math.min(CONNECTIONS, count) }, async () => {
    const talk = await SmtpTalk.over(connect({ host: HOST, port, localAddress: FLOODER }));
    for (let i = left.pop(); i !== undefined; i = left.pop()) {
      await talk.say(`MAIL FROM:<${FLOOD_FROM}>`);
      await talk.say('RCPT TO:<user@a.example>');
      await talk.say('DATA');
      assert.match(await talk.say(`Subject: ${String(i)}\r\n\r\nflood\r\n.`), /^250 /);
    }
    talk.close();
  }));
}

interface Story {
  readonly cluster: Cluster;
  /** Send logs of the others. */
  readonly logs: readonly string[];
  /** What the command line said of the order, and its exit code. */
  readonly said: string;
  readonly code: number | null;
  run(...args: readonly string[]): ReturnType<typeof twinpost>;
}

async function queued({ gateways }: Cluster): Promise<number> {
  let messages = 0;
  for (const gateway of gateways) messages += (await gateway.status()).queued_messages;
  return messages;
}

type Flooded = Pick<Story, 'cluster' | 'logs' | 'run'>;

/** Both gateways have mail of both, and the next hop is down. */
async function flooded(name: string, taken: boolean): Promise<Flooded> {
  const register = { etcd: etcd.endpoints, cluster: name };
  const cluster = await startCluster({
    gateways: 2, stores: 3, group: true, domains: ['a.example'], arrivalLog: true,
    // Who is to come back by itself is taken over by nobody.
    store: { lease: LEASE }, gateway: { rescue: taken ? 'on' : 'off', mirror: { lease: LEASE } },
    release: (of, section) => ({ entry: ENTRY, section: of === 'sink' ? section : { ...section, register } }),
  });
  await cluster.sink.kill();
  const logs: string[] = [];
  for (const { id, smtpPort } of cluster.gateways) {
    const log = join(cluster.folder, `${id}.send.log`);
    logs.push(log);
    // It stands in front.
    await flood(smtpPort, FLOOD);
    const sent = await runSend({ host: HOST, port: smtpPort, count: OTHERS, connections: 5, domains: ['a.example'], resend: false, log });
    assert.equal(sent.accepted, OTHERS);
  }
  assert.equal(await queued(cluster), 2 * (FLOOD + OTHERS));
  const run = (...args: readonly string[]): ReturnType<typeof twinpost> => twinpost([...args, '--from', `${HOST}:${String(cluster.adminPort)}`]);
  return { cluster, logs, run };
}

/** One gateway is killed, and the flood is deleted. */
async function deleted(name: string, taken: boolean): Promise<Story> {
  const { cluster, logs, run } = await flooded(name, taken);
  await cluster.gateways[1]?.gateway.kill();
  const order = ['queue', 'delete', '--client', FLOODER, '--now', '--reason', 'flood'];
  const refused = await run(...order);
  assert.equal(refused.code, 3, refused.error);
  assert.match(refused.error, /nothing was done: not all mail could be looked at; --partial/);
  const { code, out, error } = await run(...order, '--partial');
  return { cluster, logs, said: out + error, code, run };
}

/** Mail of the flood that the sink was offered, whatever became of it. */
function attempted({ arrivalLog }: Cluster): number {
  return readFileSync(arrivalLog, 'utf8').split('\n').filter((line) => line.includes(FLOOD_FROM)).length;
}

async function nobodyLost({ cluster, logs }: Flooded): Promise<void> {
  for (const log of logs) {
    const report = await cluster.verify(log, 2 * (FLOOD + OTHERS));
    for (const fault of ['lost', 'altered'] as const) assert.equal(report[fault].count, 0, `${fault}: ${JSON.stringify(report)}`);
  }
}

async function resume(cluster: Cluster): Promise<void> {
  // What arrives in the second of the order counts as before.
  const second = Math.floor(Date.now() / 1000);
  await until('the next second', () => Math.floor(Date.now() / 1000) > second);
  cluster.sink.start();
  await cluster.sink.ready();
}

async function leftInRegister(name: string): Promise<string> {
  return (await etcd.ctl('get', '--prefix', '--keys-only', `/twinpost/${name}/rules/orders/`)).trim();
}

/** Each gateway adds its own partitions, one after the other. */
async function isKeptOf(name: string, gatewayId: string): Promise<boolean> {
  return (await etcd.ctl('get', '--prefix', '--print-value-only', `/twinpost/${name}/rules/orders/`)).includes(`"${gatewayId}/`);
}

describe('an order while a gateway is dead', { timeout: 600_000 }, () => {
  test('names it, and none of its mail that is meant is tried after its takeover', async (t) => {
    const story = await deleted('taken', true);
    const { cluster, code, said, run } = story;
    t.after(() => cluster.stop());
    assert.equal(code, 3, said);
    assert.match(said, /PARTIAL: gateway-2: /);
    assert.match(said, /1,000 of 1,000 deleted/);
    assert.match(said, /left in the register as cli-[0-9a-f]{12} for gateway-2: mail of \d+ partitions? is dealt with/);
    assert.match((await run('queue', 'orders')).out, /in the register, .*delete --client 127\.0\.0\.2: waiting for gateway-2, .*flood/);
    assert.match((await run('status')).out, / ORDER {7}delete --client 127\.0\.0\.2 .*; left in the register for mail of gateways that did not answer, /);
    await resume(cluster);
    await flood(cluster.smtpPort, 10);
    await cluster.sinkHas(2 * OTHERS + 10, BOUND_MS);
    await until('nothing waits any more', async () => (await cluster.status()).queued_messages === 0, BOUND_MS, cluster.gateway);
    await until('the order is done with', async () => await leftInRegister('taken') === '', BOUND_MS, cluster.gateway);
    await nobodyLost(story);
    assert.equal(attempted(cluster), 10, 'what was sent after the order, and nothing else of the flood');
    const done = cluster.gateway.log().split('\n').filter((line) => line.includes('waited in the register for mail is done with it')).at(-1) ?? '';
    assert.match(done, /"event":"order",.*"done":1000,"not_done":0,/);
    assert.match((await run('queue', 'orders')).out, /done, 1,000 of 1,000/);
  });

  test('that is cancelled has its mail delivered', async (t) => {
    const story = await deleted('cancelled', true);
    const { cluster, said, run } = story;
    t.after(() => cluster.stop());
    const [, id = ''] = /left in the register as (\S+) for/.exec(said) ?? [];
    const cancelled = await run('queue', 'orders', '--cancel', id);
    assert.doesNotMatch(cancelled.out, /in the register/);
    assert.equal(await leftInRegister('cancelled'), '');
    await resume(cluster);
    await cluster.sinkHas(2 * OTHERS + FLOOD, BOUND_MS);
    await nobodyLost(story);
    assert.equal(attempted(cluster), FLOOD);
  });

  test('is obeyed by the dead one, when it is back by itself', async (t) => {
    const story = await deleted('back', false);
    const { cluster, code, said } = story;
    t.after(() => cluster.stop());
    assert.equal(code, 3, said);
    await resume(cluster);
    const second = cluster.gateways[1];
    second?.gateway.start();
    await second?.gateway.ready();
    await flood(second?.smtpPort ?? 0, 10);
    await cluster.sinkHas(2 * OTHERS + 10, BOUND_MS);
    await until('nothing waits any more', async () => await queued(cluster) === 0, BOUND_MS, second?.gateway);
    await until('the order is done with', async () => await leftInRegister('back') === '', BOUND_MS, second?.gateway);
    await nobodyLost(story);
    assert.equal(attempted(cluster), 10);
  });
});

test('an order in whose grace a gateway is killed, and started again at once, goes on there: nothing that is meant is tried', { timeout: 300_000 }, async (t) => {
  const { cluster, logs, run } = await flooded('grace', false);
  t.after(() => cluster.stop());
  const [, second] = cluster.gateways;
  const told = run('queue', 'delete', '--client', FLOODER, '--grace', '15s', '--reason', 'flood');
  await until('it stands in the register for mail of both', async () => await isKeptOf('grace', 'gateway-1') && isKeptOf('grace', 'gateway-2'),
    BOUND_MS, cluster.gateway);
  await second?.gateway.kill();
  cluster.sink.start();
  await cluster.sink.ready();
  second?.gateway.start();
  await second?.gateway.ready();
  await cluster.sinkHas(2 * OTHERS, BOUND_MS);
  const { code, out, error } = await told;
  assert.equal(code, 3, out + error);
  await until('nothing waits any more', async () => await queued(cluster) === 0, BOUND_MS, second?.gateway);
  await until('the order is done with', async () => await leftInRegister('grace') === '', BOUND_MS, second?.gateway);
  await nobodyLost({ cluster, logs, run });
  assert.equal(attempted(cluster), 0, out + error);
});
