/**
 * What clients and a load balancer see of routes that can't commit (G6): 451 at RCPT and not after the content, the
 * other routes served beside them, each named in status and metrics; the port closed when most are refused, and open
 * again by itself. Real processes and sockets.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HOST, startCluster, until } from './cluster.js';
import type { Cluster, Daemon } from './cluster.js';
import { SmtpTalk } from './smtp-talk.js';

const BOUND_MS = 30_000;

async function admin(cluster: Cluster, path: string): Promise<{ readonly code: number; readonly text: string }> {
  const response = await fetch(`http://${HOST}:${String(cluster.adminPort)}${path}`);
  return { code: response.status, text: await response.text() };
}

/** The reply to RCPT for each domain, in one mail transaction, and the reply to the content of those that were taken. */
async function offered(cluster: Cluster, ...domains: readonly string[]): Promise<readonly string[]> {
  const talk = await SmtpTalk.start(cluster.smtpPort);
  const replies: string[] = [];
  await talk.say('MAIL FROM:<a@b.example>');
  for (const domain of domains) replies.push((await talk.say(`RCPT TO:<to@${domain}>`)).slice(0, 9));
  replies.push((await talk.say('DATA')).slice(0, 3));
  if (replies.at(-1) === '354') replies.push((await talk.say('Subject: one\r\n\r\n.')).slice(0, 3));
  await talk.say('QUIT');
  return replies;
}

async function refused(cluster: Cluster): Promise<readonly string[]> {
  return (await cluster.status()).routes_refused.map(({ route, reason }) => `${route} ${reason}`).sort();
}

/** The store that has a copy of one queue and none of the other. */
async function onlyOf(cluster: Cluster, one: string, other: string): Promise<Daemon | undefined> {
  const [home, elsewhere, rows] = [await cluster.homeOf(one), await cluster.homeOf(other), await cluster.table()];
  const storesOf = (partition: string): readonly string[] => rows.filter((row) => row.partition === partition).map((row) => row.store);
  return cluster.stores.find(({ name }) => storesOf(home).includes(name) && !storesOf(elsewhere).includes(name));
}

/** Mail in both strict queues, and the store that has a copy of the first alone: which these are is chance. */
async function startApart(): Promise<{ readonly cluster: Cluster; readonly store: Daemon }> {
  for (let tries = 1; ; tries++) {
    const cluster = await startCluster({
      stores: 3, domains: ['one.example', 'two.example', 'three.example'], strictDomains: ['one.example', 'two.example'],
      gateway: { mirror: { min_replicas: 2, failover_timeout: '2s', replace_after: '10m' } },
    });
    // A strict queue with mail waits for its own partition.
    cluster.sink.freeze();
    assert.deepEqual(await offered(cluster, 'one.example', 'two.example'), ['250 2.1.5', '250 2.1.5', '354', '250']);
    await cluster.inSync(2);
    const store = await onlyOf(cluster, 'one.example', 'two.example');
    if (store !== undefined) return { cluster, store };
    await cluster.stop();
    assert.ok(tries < 10, 'both queues have the same stores ten times');
  }
}

test('a route that can not commit is refused at RCPT, the others are served, and the port closes when most are refused', { timeout: 240_000 }, async (t) => {
  const { cluster, store } = await startApart();
  t.after(() => cluster.stop());
  await store.kill();
  await until('its route is refused', async () => (await refused(cluster)).length > 0, BOUND_MS, cluster.gateway);
  assert.deepEqual(await refused(cluster), ['one.example short']);
  assert.deepEqual(await offered(cluster, 'one.example', 'two.example', 'three.example', 'other.example'), ['451 4.3.0', '250 2.1.5', '250 2.1.5', '250 2.1.5', '354', '250']);
  assert.deepEqual(await offered(cluster, 'one.example'), ['451 4.3.0', '554'], 'no content is asked for');
  assert.equal((await admin(cluster, '/readyz')).code, 200, '1 of 4 routes');
  assert.match((await admin(cluster, '/metrics')).text, /^twinpost_route_refused\{route="one\.example",reason="short"\} 1$/m);

  const [second] = cluster.stores.filter((one) => one !== store);
  await second?.kill();
  await until('the gateway is not ready', async () => (await admin(cluster, '/readyz')).code === 503, BOUND_MS, cluster.gateway);
  assert.match((await admin(cluster, '/readyz')).text, /^4 of 4 routes can not commit new mail$/m);
  assert.equal((await refused(cluster)).length, 4);
  await until('the port is closed', async () => SmtpTalk.start(cluster.smtpPort).then(() => false, () => true), BOUND_MS, cluster.gateway);

  store.start();
  second?.start();
  cluster.sink.thaw();
  await until('the gateway is ready', async () => (await admin(cluster, '/readyz')).code === 200 && (await refused(cluster)).length === 0, BOUND_MS, cluster.gateway);
  await until('the port is open', async () => SmtpTalk.start(cluster.smtpPort).then(() => true, () => false), BOUND_MS, cluster.gateway);
  assert.deepEqual(await offered(cluster, 'one.example', 'three.example'), ['250 2.1.5', '250 2.1.5', '354', '250']);
  assert.doesNotMatch((await admin(cluster, '/metrics')).text, /^twinpost_route_refused\{/m);
  await cluster.drained();
});
