/**
 * Orders that stand, by the command line, at two gateways and a real next hop: what comes is held, or deleted, at both, also
 * at the one that is killed and starts again, whose mail the other may have taken over; it goes when the rule is cancelled.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, type Cluster } from './cluster.js';
import { twinpost } from './twinpost.js';

const REASON = ['--reason', 'a test'];

function order(cluster: Cluster, ...args: readonly string[]): ReturnType<typeof twinpost> {
  return twinpost([...args, '--from', `${HOST}:${String(cluster.adminPort)}`]);
}

async function sendTo(cluster: Cluster, domain: string, count: number): Promise<void> {
  for (const { smtpPort } of cluster.gateways) await runSend({ host: HOST, port: smtpPort, count, connections: 2, domains: [domain] });
}

describe('standing rules', { timeout: 360_000 }, () => {
  test('that are orders keep back, or return, what comes, also at a gateway that starts again, and let it go when they are cancelled', async (t) => {
    const cluster = await startCluster({ gateways: 2, group: true, domains: ['a.example', 'b.example'] });
    t.after(() => cluster.stop());
    const held = await order(cluster, 'queue', 'hold', '--domain', 'a.example', '--until-cancelled', ...REASON);
    assert.equal(held.code, 0, held.out + held.error);
    const [, id = ''] = /^what comes is held, until it is cancelled; twinpost rules cancel (\S+) ends that$/m.exec(held.out) ?? [];
    await sendTo(cluster, 'a.example', 20);
    await sendTo(cluster, 'b.example', 20);
    await cluster.sinkHas(40, 15_000);
    await cluster.gateways[1]?.gateway.kill();
    cluster.gateways[1]?.gateway.start();
    await cluster.gateways[1]?.gateway.ready();
    await sendTo(cluster, 'a.example', 5);
    await sendTo(cluster, 'b.example', 5);
    await cluster.sinkHas(50, 30_000);
    assert.equal((await cluster.sinkCounts()).messages, 50, 'of the other domain alone');
    assert.match((await order(cluster, 'status')).out, /HOLDING {5}--domain a\.example --class mail since .*: a test; \d+ messages caught here since the gateway started/);
    const rule = JSON.parse((await order(cluster, 'rules', 'list', '--json')).out) as Record<string, unknown>;
    assert.deepEqual([rule['id'], rule['verb'], rule['until']], [id, 'hold', null]);
    const cancelled = await order(cluster, 'rules', 'cancel', id, ...REASON);
    assert.equal(cancelled.code, 0, cancelled.error);
    await cluster.sinkHas(100, 30_000);
    const deleted = await order(cluster, 'queue', 'delete', '--route', 'b.example', '--duration', '1h', ...REASON);
    assert.equal(deleted.code, 0, deleted.out + deleted.error);
    await sendTo(cluster, 'b.example', 3);
    await sendTo(cluster, 'a.example', 3);
    await cluster.sinkHas(106, 15_000);
    assert.equal((await cluster.sinkCounts()).messages, 106);
  });
});
