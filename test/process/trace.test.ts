/** `twinpost trace`: SMTP sessions of clients and next hops, live, at every gateway; no password, no content. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';
import { SmtpTalk } from './smtp-talk.js';
import { twinpost } from './twinpost.js';

const SECRET = 'AGFubgBzZWNyZXQtb2YtYW5u';

describe('twinpost trace', { timeout: 360_000 }, () => {
  let cluster: Cluster;
  before(async () => { cluster = await startCluster({ gateways: 2, group: true, domains: ['x.example'] }); });
  after(() => cluster.stop());

  /** What it says while `during` goes on; ended by Ctrl-C. */
  const traced = async (args: readonly string[], during: () => Promise<unknown>): ReturnType<typeof twinpost> => {
    const from = `${HOST}:${String(cluster.adminPort)}`;
    const seen = cluster.gateways.map(({ gateway }) => gateway.logBytes);
    const isOver = (async () => {
      await until('all gateways are followed', () => cluster.gateways.every(({ gateway }, i) => gateway.logSince(seen[i] ?? 0).includes('follows SMTP sessions')));
      await during();
      // Lines of the last turn are on their way.
      await cluster.drained();
    })();
    return twinpost([...args, '--from', from], '', isOver);
  };

  test('client shows what clients say and are answered at all gateways, but for passwords and content', async () => {
    const { code, out, error } = await traced(['trace', 'client', '127.0.0.0/8'], async () => {
      for (const { smtpPort } of cluster.gateways) {
        const talk = await SmtpTalk.start(smtpPort);
        await talk.say(`AUTH PLAIN ${SECRET}`);
        await talk.say(SECRET);
        for (const line of ['MAIL FROM:<ann@client.example>', 'RCPT TO:<bob@x.example>', 'DATA']) await talk.say(line);
        assert.match(await talk.say('Subject: hidden-content\r\n\r\nbody\r\n.'), /^250 /);
        talk.close();
      }
      await cluster.sinkHas(2);
    });
    assert.equal(code, 0, error);
    for (const gateway of ['gateway-1', 'gateway-2']) {
      const lines = out.split('\n').filter((line) => line.includes(` ${gateway} `)).map((line) => line.replace(/^\d\d:\d\d:\d\d\.\d{3} \S+ 127\.0\.0\.1:\d+ /, ''));
      const shown = lines.join('\n');
      assert.match(shown, /^S: 220 /);
      assert.match(shown, /^C: EHLO .*\nS: 250-/m);
      assert.match(shown, /^C: AUTH PLAIN \*\*\*\nS: 5\d\d .*\nC: \(24 characters that are no command\)\nS: 5\d\d /m);
      assert.match(shown, /^C: MAIL FROM:<ann@client\.example>\nS: 250 .*\nC: RCPT TO:<bob@x\.example>\nS: 250 .*\nC: DATA\nS: 354 .*\n-- \d+ octets of content\nS: 250 /m);
      assert.match(shown, /^-- closed: /m);
    }
    assert.doesNotMatch(out, new RegExp(`${SECRET}|hidden-content|secret`));
  });

  test('server shows what is said to a next hop, as JSON too; of others nothing', async () => {
    const sendOne = async (): Promise<void> => {
      const { messages } = await cluster.sinkCounts();
      assert.equal((await runSend({ host: HOST, port: cluster.smtpPort, count: 1, domains: ['x.example'] })).accepted, 1);
      await cluster.sinkHas(messages + 1);
    };
    const { code, out } = await traced(['trace', 'server', HOST, '--json'], sendOne);
    assert.equal(code, 0);
    const lines = out.trimEnd().split('\n').map((line) => JSON.parse(line) as { gateway: string; peer: string; who: string; text: string });
    const said = lines.map(({ who, text }) => `${who} ${text}`).join('\n');
    assert.match(said, /^client MAIL FROM:<.*\nclient RCPT TO:<.*\n(client DATA\n)?(server .*\n)+note content of \d+ octets, and its dot\nserver 250 /m);
    assert.ok(lines.every(({ gateway, peer }) => gateway === 'gateway-1' && peer === `${HOST}[${HOST}]:${String(cluster.sinkPort)}`), out);
    const none = await traced(['trace', 'server', 'mx.elsewhere.example'], sendOne);
    assert.deepEqual([none.code, none.out], [0, '']);
  });

  test('ends by itself, says what is wrong with what was asked, and names who does not answer', async () => {
    const from = ['--from', `${HOST}:${String(cluster.adminPort)}`];
    const wrong = await twinpost(['trace', 'client', 'no-network', ...from]);
    assert.deepEqual([wrong.code, /no-network/.test(wrong.out + wrong.error)], [2, true], wrong.out + wrong.error);
    assert.equal((await twinpost(['trace', 'client', HOST, '--seconds', '0', ...from])).code, 2);
    await cluster.gateways[1]?.gateway.kill();
    const { code, out } = await twinpost(['trace', 'client', HOST, '--seconds', '1', ...from]);
    assert.deepEqual([code, /PARTIAL: gateway-2/.test(out)], [3, true]);
  });
});
