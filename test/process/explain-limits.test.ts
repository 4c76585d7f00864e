/** `twinpost explain` beside a gateway that runs: which limit binds mail of a queue now. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';
import { twinpost } from './twinpost.js';

const send = (cluster: Cluster, count: number): Promise<unknown> => runSend({ host: HOST, port: cluster.smtpPort, count, domains: ['x.example'] });

test('explain names the limit that binds: back-off, an order, concurrency; and says when no gateway can tell', { timeout: 360_000 }, async () => {
  const cluster = await startCluster({ domains: ['x.example'], gateway: { delivery: { concurrency: 2, retry: { first: '1h', max: '1h' } } } });
  try {
    const explain = (...more: readonly string[]): ReturnType<typeof twinpost> =>
      twinpost(['explain', 'bob@x.example', '--config', join(cluster.folder, 'gateway.yaml'), ...more]);
    const binding = async (): Promise<readonly string[]> => (await explain()).out.split('\n').filter((line) => line.startsWith('BINDS'));
    const idle = await explain();
    assert.equal(idle.code, 0, idle.error);
    assert.match(idle.out, /^limit {5}gateway-1 {2}memory: \S+ of \S+ used, new mail is refused above \S+$/m);
    assert.doesNotMatch(idle.out, /BINDS|not told/);

    process.kill(cluster.sink.pid, 'SIGSTOP');
    await send(cluster, 30);
    await until('as many as may are in delivery', async () => (await binding()).length > 0);
    const full = await binding();
    assert.match(full.join('\n'), /^BINDS {5}gateway-1 {2}(concurrency: 2 of 2 in delivery, by \d+ connections, 28 ready|next hop: connecting to .*)$/m);
    process.kill(cluster.sink.pid, 'SIGCONT');
    await cluster.sinkHas(30);

    await cluster.sink.kill();
    await send(cluster, 5);
    await until('its next hop is down', async () => (await cluster.status()).outages?.next_hops.length === 1);
    assert.match((await binding()).join('\n'), /^BINDS {5}gateway-1 {2}next hop: the next hop \S+ is down for \S+, and is tried again in \S+: .*ECONNREFUSED$/);

    const place = ['--from', `${HOST}:${String(cluster.adminPort)}`];
    assert.equal((await twinpost(['queue', 'suspend', 'x.example', '--reason', 'they move', ...place])).code, 0);
    assert.match((await binding()).join('\n'), /^BINDS {5}gateway-1 {2}rule: suspend by .*: they move$/m);
    const json = JSON.parse((await explain('--json')).out) as { limits: { limit: string; binds: boolean }[]; limits_untold: string[] };
    assert.deepEqual(json.limits.filter(({ binds }) => binds).map(({ limit }) => limit).sort(), ['next hop', 'rule']);
    assert.deepEqual(json.limits_untold, []);

    const asked = (...args: readonly string[]): ReturnType<typeof twinpost> => twinpost(['explain', ...args, '--gateway', `${HOST}:${String(cluster.adminPort)}`]);
    const [first = '', ...told] = (await asked('bob@x.example')).out.split('\n');
    assert.deepEqual([first, told[1]], ['to        bob@x.example', 'queue     x.example'], 'by what the gateway has in force, and no file');
    assert.match(told.join('\n'), /^BINDS {5}gateway-1 {2}next hop: the next hop \S+ is down for \S+, and is tried again in \S+: .*ECONNREFUSED$/m);
    for (const destination of ['x.example', 'X.EXAMPLE']) assert.match((await asked(destination)).out, /^queue {5}x\.example$/m, destination);
    const wrong = await asked('nobody');
    assert.deepEqual([wrong.code, /^twinpost: 'nobody' is no address .*no domain and no queue; there are the routes x\.example/m.test(wrong.error)], [2, true], wrong.error);
    const from = await asked('bob@x.example', '--listener', '127.0.0.1:1');
    assert.deepEqual([from.code, /^twinpost: no listener '127\.0\.0\.1:1'; there are: /m.test(from.error)], [2, true], from.error);
    const news = await asked('bob@x.example', '--from', 'News <a@x.example>');
    assert.deepEqual([news.code, /^twinpost: 'News <a@x\.example>' is no reverse-path \(local part\)/m.test(news.error)], [2, true], news.error);

    await cluster.gateway.kill();
    const none = await explain();
    assert.deepEqual([none.code, /^limits {4}not told: no answer from .*connection refused/m.test(none.out)], [0, true], none.out);
  } finally {
    process.kill(cluster.sink.isRunning ? cluster.sink.pid : process.pid, 'SIGCONT');
    await cluster.stop();
  }
});
