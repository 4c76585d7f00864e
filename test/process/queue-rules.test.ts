/**
 * Standing rules by the command line, at two gateways and a real next hop: both obey what one has written, also the one
 * that is killed and starts again; status, metrics and summary show it; who does not answer is named.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';
import { SmtpTalk } from './smtp-talk.js';
import { twinpost } from './twinpost.js';

const REASON = ['--reason', 'a test'];

function order(cluster: Cluster, ...args: readonly string[]): ReturnType<typeof twinpost> {
  return twinpost([...args, '--from', `${HOST}:${String(cluster.adminPort)}`]);
}

async function sendTo(cluster: Cluster, domain: string, count: number): Promise<void> {
  for (const { smtpPort } of cluster.gateways) await runSend({ host: HOST, port: smtpPort, count, connections: 2, domains: [domain] });
}

async function metricsOf(adminPort: number): Promise<string> {
  return (await fetch(`http://${HOST}:${String(adminPort)}/metrics`)).text();
}

describe('standing rules', { timeout: 360_000 }, () => {
  test('are obeyed by all gateways until they are taken back', async (t) => {
    const cluster = await startCluster({ gateways: 2, group: true, domains: ['a.example', 'b.example'] });
    t.after(() => cluster.stop());
    const given = await order(cluster, 'queue', 'suspend', 'a.example', ...REASON);
    assert.equal(given.code, 0, given.error);
    assert.match(given.out, /^a\.example is suspended: NOTHING MATCHES now \(.*\), it is for queues that come; rule \S+\n$/);
    await sendTo(cluster, 'a.example', 20);
    await sendTo(cluster, 'b.example', 20);
    await cluster.sinkHas(40, 15_000);
    assert.equal((await cluster.sinkCounts()).messages, 40, 'of the other queue alone');
    assert.match((await order(cluster, 'rules', 'list')).out, / until cancelled /);
    const listed = await order(cluster, 'rules', 'list', '--json');
    const rule = JSON.parse(listed.out) as Record<string, unknown>;
    assert.deepEqual([rule['verb'], rule['queue'], rule['queues'], rule['messages'], rule['reason'], rule['gateways']], ['suspend', 'a.example', 2, 40, 'a test', ['gateway-1', 'gateway-2']]);
    assert.match((await order(cluster, 'status')).out, /SUSPENDED {3}a\.example since .*: a test; 20 messages wait/);
    assert.match((await order(cluster, 'queue', 'summary')).out, /a\.example .*SUSPENDED by an operator/);
    for (const { adminPort } of cluster.gateways) assert.match(await metricsOf(adminPort), /twinpost_queue_rules\{verb="suspend"\} 1\ntwinpost_queue_rules\{verb="refuse"\} 0/);

    // Its partitions are taken over, or come back to it: either way nothing leaves.
    await cluster.gateways[1]?.gateway.kill();
    cluster.gateways[1]?.gateway.start();
    await cluster.gateways[1]?.gateway.ready();
    await sendTo(cluster, 'b.example', 5);
    await cluster.sinkHas(50, 30_000);
    assert.equal((await cluster.sinkCounts()).messages, 50);

    const shared = await order(cluster, 'queue', 'suspend', '--domain', 'a.example', ...REASON);
    assert.equal(shared.code, 1);
    assert.match(shared.error, /waits in the queue 'a\.example', .*: twinpost queue suspend 'a\.example' stops .*; nothing was done$/m);
    const other = await order(cluster, 'queue', 'resume', 'b.example', ...REASON);
    assert.equal(other.code, 1);
    assert.match(other.error, /no rule to suspend 'b\.example' stands; there is one of a\.example/);
    const resumed = await order(cluster, 'queue', 'resume', 'a.example', ...REASON);
    assert.deepEqual([resumed.code, resumed.out], [0, 'a.example goes on\n'], resumed.error);
    await cluster.sinkHas(90, 30_000);
    assert.equal((await order(cluster, 'queue', 'resume', 'a.example', ...REASON)).code, 1, 'none is left');

    const told = async (...args: readonly string[]): Promise<unknown> => JSON.parse((await order(cluster, ...args, ...REASON, '--json')).out);
    const suspended = await told('queue', 'suspend', 'a.example') as { readonly rule: string };
    assert.deepEqual(suspended, { order: 'suspend', queue: 'a.example', rule: suspended.rule, queues: 2, messages: 0, until: null });
    assert.deepEqual(await told('queue', 'resume', 'a.example'), { order: 'resume', queue: 'a.example', cancelled: [suspended.rule], still_standing: [] });
    const refused = await told('queue', 'refuse', 'b.example') as { readonly rule: string };
    assert.deepEqual(await told('rules', 'cancel', refused.rule), { order: 'cancel', cancelled: [refused.rule] });
    assert.deepEqual(Object.keys(await told('queue', 'refuse', 'b.example') as object), ['order', 'queue', 'rule', 'queues', 'messages', 'until']);
    assert.deepEqual((await told('queue', 'allow', 'b.example') as { readonly order: string }).order, 'allow');
  });

  test('refuse mail at RCPT until they are over, and name a gateway that was not heard', async (t) => {
    const cluster = await startCluster({ gateways: 2, group: true, domains: ['a.example', 'b.example'] });
    t.after(() => cluster.stop());
    const refused = await order(cluster, 'queue', 'refuse', 'a*', '--duration', '1h', ...REASON);
    assert.equal(refused.code, 0, refused.error);
    const rcpt = async (port: number, address: string): Promise<string> => {
      const talk = await SmtpTalk.start(port);
      await talk.say('MAIL FROM:<x@client.example>');
      const reply = await talk.say(`RCPT TO:<${address}>`);
      talk.close();
      return reply;
    };
    for (const { smtpPort } of cluster.gateways) {
      assert.match(await rcpt(smtpPort, 'x@a.example'), /^452 4\.3\.2 /);
      assert.match(await rcpt(smtpPort, 'x@b.example'), /^250 /);
    }
    const client = ['--client', '127.0.0.0/8', ...REASON] as const;
    const fromClient = await order(cluster, 'queue', 'refuse', ...client);
    assert.match(fromClient.out, /^new mail of --client 127\.0\.0\.0\/8 is refused; rule \S+\n$/, fromClient.error);
    const talk = await SmtpTalk.start(cluster.gateways[1]?.smtpPort ?? 0);
    assert.match(await talk.say('MAIL FROM:<x@client.example>'), /^452 4\.3\.2 /);
    assert.match((await order(cluster, 'status')).out, /REFUSING {4}--client 127\.0\.0\.0\/8 since /);
    const allowed = await order(cluster, 'queue', 'allow', ...client);
    assert.equal(allowed.code, 0, allowed.error);
    assert.match(await talk.say('MAIL FROM:<x@client.example>'), /^250 /);
    talk.close();
    const [, id] = /rule (\S+)$/m.exec(refused.out) ?? [];
    assert.ok(id !== undefined, refused.out);
    await cluster.gateways[1]?.gateway.stop();
    const alone = await order(cluster, 'rules', 'cancel', id, ...REASON);
    assert.equal(alone.code, 0, `a gateway that has stopped need not obey: ${alone.out}${alone.error}`);
    assert.match(await rcpt(cluster.gateways[0]?.smtpPort ?? 0, 'x@a.example'), /^250 /);
    cluster.gateways[1]?.gateway.start();
    await cluster.gateways[1]?.gateway.ready();
    const partial = await order(cluster, 'queue', 'suspend', 'b.example', '--only', ...REASON);
    assert.equal(partial.code, 3, partial.error);
    assert.match(partial.out, /NOT OBEYED YET by gateway-2, which may deliver mail/);
    await until('it obeys', async () => (await metricsOf(cluster.gateways[1]?.adminPort ?? 0)).includes('twinpost_queue_rules{verb="suspend"} 1'));
  });

  test('that can not be understood are refused with one line', async () => {
    for (const [args, why] of [
      [['queue', 'suspend', 'a.example'], /reason/],
      [['queue', 'suspend', ...REASON], /either which queue/],
      [['queue', 'suspend', 'a', '--route', 'b', ...REASON], /either which queue/],
      [['queue', 'refuse', '--route', 'a', '--client', '192.0.2.7', ...REASON], /to refuse takes the name of a queue, or --route, or/],
      [['queue', 'refuse', '--site', 'mx.host', ...REASON], /site/],
      [['queue', 'suspend', 'ä', ...REASON], /printable ASCII/],
      [['queue', 'refuse', 'a', '--duration', 'soon', ...REASON], /--duration/],
      [['queue', 'refuse', 'a', '--duration', '9000d', ...REASON], /--duration is from a second to ten years/],
      [['queue', 'delete', '--older-than', '2d', '--duration', '1h', ...REASON], /to delete takes --domain and .* when it stands/],
      [['queue', 'hold', '--client', '192.0.2.7', '--duration', '1h', '--until-cancelled', ...REASON], /say --duration or --until-cancelled/],
      [['queue', 'expire', '--client', '192.0.2.7', '--duration', '1h', ...REASON], /duration/],
      [['rules'], /rules what/],
    ] as const) {
      const { code, error } = await twinpost(args);
      assert.equal(code, 2, args.join(' '));
      assert.match(error, why);
      assert.doesNotMatch(error, /\n\s+at /);
    }
  });
});
