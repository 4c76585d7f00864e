/** Limits of a minute, held by two workers of one gateway together; and how little of a flood of refusals is written. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';
import { SmtpTalk } from './smtp-talk.js';

/** A cluster waits for the first only: alone it would hold any limit. */
async function bothTakeMail(cluster: Cluster): Promise<void> {
  const isReady = async (index: number): Promise<boolean> =>
    (await fetch(`http://${HOST}:${String(cluster.adminPort + index)}/readyz`)).status === 200;
  await until('both workers take mail', async () => await isReady(0) && await isReady(1), 60_000, cluster.gateway);
}

const LIMIT = 600;
const PER_SECOND = 200;

test('two workers hold a limit together: a tenth and one second\'s worth more at most', { timeout: 360_000 }, async () => {
  const cluster = await startCluster({
    workers: 2,
    gateway: { memory: { limit: '1GiB' }, smtp: { limits: { exempt: ['192.0.2.99'], client: { messages: LIMIT } } } },
  });
  try {
    await bothTakeMail(cluster);
    const sent = await runSend({ host: HOST, port: cluster.smtpPort, count: 2000, connections: 20, rate: PER_SECOND, resend: false });
    assert.ok(sent.accepted >= LIMIT && sent.accepted <= 1.1 * LIMIT + PER_SECOND, `${String(sent.accepted)} of ${String(LIMIT)}`);
    assert.deepEqual(Object.keys(sent.replies).sort(), ['250', '450'], JSON.stringify(sent));
    assert.match(sent.samples['450'] ?? '', /^450 4\.7\.1 Too many messages in a minute/);
  } finally {
    await cluster.stop();
  }
});

const OPEN_MAX = 20;
const OPENED_PER_SECOND = 10;

test('two workers hold the connections of a client together, and let it in again when it has closed them', { timeout: 360_000 }, async () => {
  const cluster = await startCluster({
    workers: 2, gateway: { memory: { limit: '1GiB' }, smtp: { connections_per_client: OPEN_MAX } },
  });
  const open: SmtpTalk[] = [];
  /** The reply to it: who is let in stays. */
  const connect = async (): Promise<string> => {
    const socket = net.connect({ host: HOST, port: cluster.smtpPort });
    const talk = new SmtpTalk(socket);
    const reply = await talk.reply();
    if (reply.startsWith('220 ')) open.push(talk);
    else talk.close();
    return reply;
  };
  try {
    await bothTakeMail(cluster);
    for (let i = 0; i < 3 * OPEN_MAX; i++) {
      await Promise.all([connect(), setTimeout(1000 / OPENED_PER_SECOND)]);
    }
    assert.ok(open.length >= OPEN_MAX && open.length <= 1.1 * OPEN_MAX + OPENED_PER_SECOND, `${String(open.length)} of ${String(OPEN_MAX)}`);
    assert.match(await connect(), /^421 4\.7\.0 /);
    for (const talk of open) talk.close();
    await until('it is let in again', async () => (await connect()).startsWith('220 '), 20_000);
  } finally {
    for (const talk of open) talk.close();
    await cluster.stop();
  }
});

test('99,000 refused recipients make less than 1 MB of log', { timeout: 360_000 }, async () => {
  const cluster = await startCluster({ gateway: { smtp: { relay_networks: ['192.0.2.0/24'] } } });
  try {
    const REFUSED = 99_000;
    const IN_ONE = 1500;
    let refused = 0;
    while (refused < REFUSED) {
      const talk = await SmtpTalk.start(cluster.smtpPort);
      await talk.say('MAIL FROM:<a@client.example>');
      talk.send('RCPT TO:<nobody@elsewhere.example>\r\n'.repeat(IN_ONE));
      for (let i = 0; i < IN_ONE; i++) {
        const reply = await talk.reply();
        if (!reply.startsWith('550 ')) break;
        refused += 1;
      }
      talk.close();
    }
    const bytes = cluster.gateway.log().length;
    assert.ok(bytes < 1_000_000, `${String(bytes)} bytes of log`);
    assert.ok(refused >= REFUSED);
  } finally {
    await cluster.stop();
  }
});
