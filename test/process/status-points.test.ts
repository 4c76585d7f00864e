/**
 * `twinpost status` points at what hurts: the next hop that puts mail off, then the one that is down, and the client that
 * sends most; the same in metrics.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until } from './cluster.js';
import { twinpost } from './twinpost.js';

test('what hurts is named first, by the status and by metrics', { timeout: 240_000 }, async (t) => {
  const cluster = await startCluster({ sinkArguments: ['--defer-rate', '1'] });
  t.after(() => cluster.stop());
  const status = async (...args: readonly string[]): Promise<string> => (await twinpost(['status', ...args, '--from', `${HOST}:${String(cluster.adminPort)}`])).out;
  const metrics = async (): Promise<string> => (await fetch(`http://${HOST}:${String(cluster.adminPort)}/metrics`)).text();
  assert.match(await status(), /^ALL WELL\n/);
  await runSend({ host: HOST, port: cluster.smtpPort, count: 150, connections: 5 });
  await until('the queue is named', async () => /^WARNING gateway-1: queue \S+: its next hop puts mail off, \d+ of 150 messages deferred; last: 451 /.test(await status()));
  const text = await status();
  assert.match(text, /\n {2}DEFERRED {4}queue \S+: its next hop puts mail off, .*; for \d+m?s, (next try in \d+s|tried now)\n/);
  assert.match(text, /\n {2}busiest {5}client 127\.0\.0\.1 100% .* of 150 messages accepted in /);
  const [worst] = (await status('--json')).split('\n').map((line) => JSON.parse(line || '{}') as Record<string, unknown>);
  assert.deepEqual([worst?.['kind'], worst?.['level'], worst?.['gateway']], ['worst', 'warning', 'gateway-1']);
  assert.match(await metrics(), /\ntwinpost_queues_hurting\{problem="deferred"\} 1\n/);
  assert.match(await metrics(), /\ntwinpost_busiest_share\{party="client"\} 1\n/);
  await cluster.sink.kill();
  await runSend({ host: HOST, port: cluster.smtpPort, count: 5, connections: 1 });
  await until('the next hop is', async () => /^ERROR gateway-1: next hop 127\.0\.0\.1\S* can't be reached, \d+ messages wait: .*ECONNREFUSED/.test(await status()));
  const { out: top } = await twinpost(['queue', 'top', '--ticks', '1', '--from', `${HOST}:${String(cluster.adminPort)}`]);
  assert.match(top, / {2}down {2}/);
  const down = /\n {2}NEXT HOP {4}127\.0\.0\.1\S* can't be reached for \S+, \d+ to deliver, (next try in \d+s|tried now): .*ECONNREFUSED/;
  assert.match(await status(), down);
  assert.match(await metrics(), /\ntwinpost_next_hop_waiting_messages\{relay="127\.0\.0\.1[^"]*"\} \d+\n/);

  const admin = `http://${HOST}:${String(cluster.adminPort)}/api/v1`;
  const post = async (path: string, body: object): Promise<{ readonly order: string; readonly phase: string }> => {
    const answer = await fetch(`${admin}/${path}`, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ reason: 'gone', who: 'ann', ...body }) });
    assert.equal(answer.status, 200);
    return await answer.json() as { readonly order: string; readonly phase: string };
  };
  const { order } = await post('orders', { verb: 'bounce', selector: { domain: '*.example' } });
  await until('it is found', async () => (await (await fetch(`${admin}/orders/${order}`)).json() as { readonly phase: string }).phase === 'found');
  await post(`orders/${order}/go`, { grace_seconds: 600 });
  assert.match(await status(), new RegExp(`\n  ORDER       bounce --domain \\*\\.example \\(${order}\\) since \\S+ \\([^)]+\\) by ann: gone; 155 messages matched, 0 ended; its grace ends \\S+, in \\S+: `));
  assert.match(await metrics(), /\ntwinpost_orders_in_grace_messages\{verb="bounce"\} 155\n/);
  await post(`orders/${order}/cancel`, {});
  assert.doesNotMatch(await status(), /ORDER/);
  const held = await twinpost(['queue', 'hold', '--everything', '--reason', 'we look', '--from', `${HOST}:${String(cluster.adminPort)}`]);
  assert.equal(held.code, 0, held.error);
  const text155 = await status();
  assert.match(text155, /\n {2}HELD {8}155 of 155 messages wait for an operator: /);
  assert.match(text155, /\nStore {4}.* Config .*\nstore-\S+ .* [0-9a-f]{12} since 2/);
});

test('a next hop that refuses all for good is named, though nothing waits for it', { timeout: 120_000 }, async (t) => {
  const cluster = await startCluster({ sinkArguments: ['--reject-rate', '1'] });
  t.after(() => cluster.stop());
  await runSend({ host: HOST, port: cluster.smtpPort, count: 40, connections: 2 });
  const status = (): ReturnType<typeof twinpost> => twinpost(['status', '--from', `${HOST}:${String(cluster.adminPort)}`]);
  await until('the queue is named', async () => /^WARNING gateway-1: queue \S+: its next hop refuses mail for good, 40 of 40 recipients in the last minutes; last: 550 /.test((await status()).out));
  const { code, out } = await status();
  assert.equal(code, 0, 'mail of others flows');
  assert.match(out, /\n {2}REFUSED {5}queue \S+: its next hop refuses mail for good, .*; for \d+m?s\b/);
  assert.match(await (await fetch(`http://${HOST}:${String(cluster.adminPort)}/metrics`)).text(), /\ntwinpost_queues_hurting\{problem="refused"\} 1\n/);
});
