/**
 * A story of docs/RUNBOOK.md (test/operator/story.ts): etcd is stopped, and an operator suspends a destination all the
 * same, within a second; a restart obeys it, and it is registered by itself when etcd is back.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { runSend } from '../../../src/load/run.js';
import { Story } from '../../operator/story.js';
import { HOST, startCluster, until, type Cluster } from '../../process/cluster.js';
import { ENTRY } from '../../process/entry.js';
import { EtcdCluster } from './etcd-cluster.js';

const BOUND_MS = 120_000;
/** Of the story: from when the first is asked until all that answer obey. */
const OBEYED_MS = 1_000;
const COUNT = 20;

let etcd: EtcdCluster;
let cluster: Cluster;

before(async () => {
  etcd = await EtcdCluster.start(1);
  await etcd.isReady();
  const register = { etcd: etcd.endpoints, cluster: 'local' };
  cluster = await startCluster({
    gateways: 2, stores: 3, group: true, domains: ['a.example', 'b.example'],
    release: (of, section) => ({ entry: ENTRY, section: of === 'sink' ? section : { ...section, register } }),
  });
});
after(async () => {
  await cluster.stop();
  await etcd.stop();
});

async function send(domain: string): Promise<void> {
  for (const { smtpPort } of cluster.gateways) await runSend({ host: HOST, port: smtpPort, count: COUNT / 2, connections: 2, domains: [domain] });
}

async function rulesAt(adminPort: number): Promise<readonly { readonly id: string; readonly local: boolean }[]> {
  const { rules } = await (await fetch(`http://${HOST}:${String(adminPort)}/api/v1/rules`)).json() as { readonly rules: readonly { readonly id: string; readonly local: boolean }[] };
  return rules;
}

/** When gateways logged this, in milliseconds since 1970. */
function toldAt({ gateways }: Cluster, text: string): readonly number[] {
  return gateways.flatMap(({ gateway }) => gateway.log().split('\n').filter((line) => line.includes(`"msg":"${text}"`)))
    .map((line) => Date.parse((JSON.parse(line) as { readonly time: string }).time));
}

async function inRegister(): Promise<string> {
  return (await etcd.ctl('get', '--prefix', '--keys-only', '/twinpost/local/rules/queues/')).trim();
}

test('an operator suspends a destination while etcd is away', { timeout: 800_000 }, async (t) => {
  const story = new Story('register-away', cluster);
  const [first, second] = cluster.gateways;
  const [member] = etcd.nodes;
  assert.ok(first !== undefined && second !== undefined && member !== undefined);
  story.call(new URL(member.clientUrl).host, 'etcd-1:2379');
  // Whoever has not read the rules of its partitions yet starts nothing from them.
  await send('a.example');
  await cluster.sinkHas(COUNT, BOUND_MS);
  await member.kill();
  await until('it is noticed', async () => (await first.status()).register_away !== '' && (await second.status()).register_away !== '', BOUND_MS);
  story.tell('The register is away, and a customer must get no more mail now. A rule stands in the register; `--local` is in force without it:');
  const said = await story.type(['queue', 'suspend', 'a.example', '--local', '--reason', 'their server is down']);
  assert.equal(said.code, 3, said.error);
  const heardMs = Math.min(...toldAt(cluster, 'an operator gives a standing rule'));
  const obeyedMs = toldAt(cluster, "an operator's rule is in force");
  assert.equal(obeyedMs.length, 2, 'both obey');
  const tookMs = Math.max(...obeyedMs) - heardMs;
  t.diagnostic(`obeyed by both ${String(tookMs)} ms after the first was asked`);
  assert.ok(tookMs <= OBEYED_MS, `obeyed after ${String(tookMs)} ms`);
  assert.match(said.out, /^LOCAL: in force at the gateways that answer/m);
  await send('a.example');
  await send('b.example');
  await cluster.sinkHas(2 * COUNT, BOUND_MS);
  assert.equal((await cluster.sinkCounts()).messages, 2 * COUNT, 'of the other queue alone');
  const listed = await story.type(['rules', 'list']);
  assert.match(listed.out, /suspend \(local\)/);
  const [rule] = await rulesAt(first.adminPort);
  await second.gateway.kill();
  etcd.startNode(member);
  second.gateway.start();
  await until('it is registered', async () => await inRegister() === `/twinpost/local/rules/queues/${rule?.id ?? ''}`, BOUND_MS);
  await until('both obey what the register says', async () =>
    [...await rulesAt(first.adminPort), ...await rulesAt(second.adminPort)].filter(({ id, local }) => id === rule?.id && !local).length === 2, BOUND_MS);
  assert.equal((await cluster.sinkCounts()).messages, 2 * COUNT, 'nothing of it left meanwhile, at the one that was killed neither');
  story.tell('Etcd is back. Each gateway has written the rule there by itself, under the same id, the one too that was killed meanwhile:');
  assert.doesNotMatch((await story.type(['rules', 'list'])).out, /local/);
  const resumed = await story.type(['queue', 'resume', 'a.example', '--reason', 'it is back']);
  assert.equal(resumed.code, 0, resumed.error);
  await cluster.sinkHas(3 * COUNT, BOUND_MS);
  assert.equal(await inRegister(), '');
  story.end();
});
