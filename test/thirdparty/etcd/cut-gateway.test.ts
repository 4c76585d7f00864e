/**
 * A gateway that is cut off from etcd alone goes on with its stores: it takes and delivers mail. No order passes it
 * by without a word. And an etcd that falls silent is told as that.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { GroupAnswer } from '../../../src/admin-api/pages.js';
import { runSend } from '../../../src/load/run.js';
import { HOST, startCluster, until, type Cluster } from '../../process/cluster.js';
import { ENTRY } from '../../process/entry.js';
import { twinpost } from '../../process/twinpost.js';
import { EtcdCluster } from './etcd-cluster.js';
import { TcpProxy } from './tcp-proxy.js';

const BOUND_MS = 120_000;
const COUNT = 5;
const REASON = ['--reason', 'their server is down'];

let etcd: EtcdCluster;
let relay: TcpProxy;
let cluster: Cluster;
/** Of the first, which etcd hears; of the second, behind the relay. */
let from: readonly string[];
let cut: string;

before(async () => {
  etcd = await EtcdCluster.start(1);
  await etcd.isReady();
  relay = await TcpProxy.start(Number(new URL(etcd.endpoints[0] ?? '').port));
  cluster = await startCluster({
    gateways: 2, stores: 3, group: true, domains: ['a.example', 'b.example'],
    release: (of, section) => {
      const endpoints = of === 'gateway-2' ? [relay.url] : etcd.endpoints;
      return { entry: ENTRY, section: of === 'sink' ? section : { ...section, register: { etcd: endpoints, cluster: 'local' } } };
    },
  });
  const [first, second] = cluster.gateways.map(({ adminPort }) => `${HOST}:${String(adminPort)}`);
  from = ['--from', first ?? ''];
  cut = second ?? '';
});
after(async () => {
  await cluster.stop();
  relay.close();
  await etcd.stop();
});

async function sendToSecond(): Promise<void> {
  await runSend({ host: HOST, port: cluster.gateways[1]?.smtpPort ?? 0, count: COUNT, connections: 1, domains: ['a.example'] });
}

test('a rule is not told as obeyed while a gateway that only lost its session has not heard of it', { timeout: 800_000 }, async () => {
  await sendToSecond();
  await cluster.sinkHas(COUNT, BOUND_MS);
  relay.close();
  await until('its session is over', async () => {
    const { members } = await (await fetch(`http://${from[1] ?? ''}/api/v1/group`)).json() as GroupAnswer;
    return members.some(({ id, away, admin }) => id === 'gateway-2' && away && admin === cut);
  }, BOUND_MS);
  const status = await twinpost(['status', ...from]);
  assert.doesNotMatch(status.out, /PARTIAL/, 'it answers');
  const suspended = await twinpost(['queue', 'suspend', 'a.example', ...REASON, ...from]);
  assert.equal(suspended.code, 3, suspended.out);
  assert.match(suspended.out, /^NOT OBEYED YET by gateway-2, /m);
  const [, way = ''] = /gateway-2 obeys at once by the same command with (.*)$/m.exec(suspended.out) ?? [];
  assert.equal(way, `--local --only --from ${cut}`);
  await sendToSecond();
  await cluster.sinkHas(2 * COUNT, BOUND_MS);
  const local = await twinpost(['queue', 'suspend', 'a.example', ...REASON, ...way.split(' ')]);
  assert.equal(local.code, 3, local.out);
  await sendToSecond();
  await until('it waits there', async () => (await cluster.gateways[1]?.status())?.queued_messages === COUNT, BOUND_MS);
  assert.equal((await cluster.sinkCounts()).messages, 2 * COUNT);
});

test('an etcd that falls silent is told as that, with what can be done without it', { timeout: 800_000 }, async () => {
  const [node] = etcd.nodes;
  node?.signal('SIGSTOP');
  const said = await twinpost(['queue', 'suspend', 'b.example', ...REASON, ...from]);
  node?.signal('SIGCONT');
  assert.equal(said.code, 1, said.out);
  assert.match(said.error, /(?:it may be done or not: twinpost rules list shows|nothing was done); --local is obeyed at once without it/);
  assert.doesNotMatch(said.error, /is it running/);
});
