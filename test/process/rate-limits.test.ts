/** Limits of a minute, held by two workers of one gateway together; and how little of a flood of refusals is written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HOST, startCluster } from './cluster.js';
import { SmtpTalk } from './smtp-talk.js';

const LIMIT = 600;
const PER_SECOND = 200;

test('two workers hold a limit together: a tenth and one second\'s worth more at most', { timeout: 180_000 }, async () => {
  const cluster = await startCluster({
    workers: 2,
    gateway: { memory: { limit: '1GiB' }, smtp: { limits: { exempt: ['192.0.2.99'], client: { messages: LIMIT } } } },
  });
  try {
    const sent = await runSend({ host: HOST, port: cluster.smtpPort, count: 2000, connections: 20, rate: PER_SECOND, resend: false });
    assert.ok(sent.accepted >= LIMIT && sent.accepted <= 1.1 * LIMIT + PER_SECOND, `${String(sent.accepted)} of ${String(LIMIT)}`);
    assert.deepEqual(Object.keys(sent.replies).sort(), ['250', '450'], JSON.stringify(sent));
    assert.match(sent.samples['450'] ?? '', /^450 4\.7\.1 Too many messages in a minute/);
  } finally {
    await cluster.stop();
  }
});

test('99,000 refused recipients make less than 1 MB of log', { timeout: 180_000 }, async () => {
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
