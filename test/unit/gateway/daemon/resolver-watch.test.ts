/** When it is said that no resolver answers: the client of DNS, a scripted server and a clock of the test. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ResolverWatch } from '../../../../src/gateway/daemon/resolver-watch.js';
import { DnsMetrics } from '../../../../src/observability/dns-metrics.js';
import { DnsClient } from '../../../../src/platform/node/dns/dns-client.js';
import type { EventLog } from '../../../../src/platform/ports.js';
import { NameServer } from '../../platform/node/dns/name-server.js';
import type { Scripted } from '../../platform/node/dns/name-server.js';

const FAILS: Scripted = { rcode: 2 };

async function field(t: { after(run: () => void): void }, script: (question: string) => Scripted | undefined) {
  const server = await NameServer.start(t, script);
  const time = { now: 0 };
  const clock = { nowMs: () => time.now, wallMs: () => 0 };
  const resolver = new DnsClient({ resolvers: [server.resolver], trustsAd: false }, clock);
  t.after(() => { resolver.close(); });
  const lines: string[] = [];
  const tell = (event: string, text: string): void => { lines.push(`${event}: ${text.slice(0, 20)}`); };
  const log: EventLog = { debug: tell, info: tell, warn: tell, error: tell };
  const metrics = new DnsMetrics();
  let drawn = 0;
  const random = (): number => (++drawn) / 16 ** 8;
  const watch = new ResolverWatch('gw.example', { clock, log, random, metrics, resolver });
  resolver.watch = watch;
  const ask = (name: string) => new Promise<string>((resolve) => { resolver.ask(name, 'A', ({ kind }) => { resolve(kind); }); });
  /** Until the check that may be under way is answered. */
  const tick = async (now: number): Promise<void> => {
    time.now = now;
    watch.tick(now);
    await ask(`settled-${String(now)}.example`);
  };
  return { server, watch, metrics, lines, ask, tick, counts: () => metrics.questions.get(`127.0.0.1:${String(server.port)}`) };
}

test('is said once when a name that nobody asked for fails as well, and over with the first answer', async (t) => {
  let isDead = false;
  const { watch, lines, ask, tick, server, counts } = await field(t, () => isDead ? FAILS : { rcode: 3 });
  assert.equal(await ask('one.example'), 'no-name');
  isDead = true;
  assert.equal(await ask('two.example'), 'failed');
  await tick(4_999);
  assert.deepEqual([watch.away, lines], ['', []]);
  await tick(5_000);
  assert.equal(watch.away, '127.0.0.1: SERVFAIL'.replace(':', `:${String(server.port)}:`));
  await tick(15_000);
  watch.hostName = 'other.example';
  await tick(25_000);
  assert.deepEqual(lines, ['dns: no resolver answers:']);
  const checks = server.asked.filter((question) => question.startsWith('A dns-check-'));
  assert.deepEqual([...new Set(checks)], ['A dns-check-1.gw.example', 'A dns-check-2.gw.example', 'A dns-check-3.other.example']);
  isDead = false;
  await tick(35_000);
  assert.deepEqual([watch.away, lines], ['', ['dns: no resolver answers:', 'dns: a resolver answers a']]);
  assert.deepEqual([counts()?.silent, (counts()?.refused ?? 0) > 6], [0, true]);
});

test('is not said for zones that fail, whoever asks for them', async (t) => {
  const { watch, lines, ask, tick, server } = await field(t, (question) => question.includes('lame') ? FAILS : { rcode: 3 });
  for (let i = 0; i < 50; i++) assert.equal(await ask(`lame${String(i)}.example`), 'failed');
  await tick(5_000);
  await tick(20_000);
  assert.deepEqual([watch.away, lines], ['', []]);
  assert.equal(server.asked.filter((question) => question.startsWith('A dns-check-')).length, 1);
});

test('is not said when something was answered while the check was under way', async (t) => {
  let isDead = true;
  const { watch, server, lines, ask, tick } = await field(t, (question) => (isDead ? FAILS : question.includes('dns-check-') ? undefined : { rcode: 3 }));
  assert.equal(await ask('one.example'), 'failed');
  isDead = false;
  // The check is met with silence, which lasts; what else is asked is answered, and then fails anew.
  await tick(5_000);
  isDead = true;
  assert.equal(await ask('two.example'), 'failed');
  isDead = false;
  // Along with the check, and told behind it.
  assert.equal(await ask('dns-check-1.gw.example'), 'failed');
  assert.equal(server.asked.filter((question) => question === 'A dns-check-1.gw.example').length, 2);
  assert.deepEqual([watch.away, lines], ['', []]);
});

test('counts tries that nothing comes of as silence', async (t) => {
  const { ask, counts } = await field(t, () => undefined);
  assert.equal(await ask('one.example'), 'failed');
  assert.deepEqual(counts(), { answer: 0, refused: 0, silent: 2 });
});
