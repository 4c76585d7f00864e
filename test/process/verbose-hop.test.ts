/**
 * A next hop that answers each of very many recipients with a long 450, then half of them with 550, at stores and a gateway
 * of 64 MiB (G7): no mirror is given up for memory, a neighbour on the same stores delivers on, the gateway stays
 * within its limit, and all drains when the next hop heals.
 */
import assert from 'node:assert/strict';
import { createServer, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';
import { SmtpTalk } from './smtp-talk.js';

const LIMIT = '64MiB';
/** The replies to all recipients, once each, are more than a store holds. */
const MESSAGES = 450;
const RECIPIENTS = 400;
const WORDS = 'mailbox is busy '.repeat(25).slice(0, 350);
const NEIGHBOUR = 300;
const STORY_MS = 240_000;
const PHASE_MS = 90_000;

class VerboseHop {
  readonly server: Server = createServer((socket) => { this.#serve(socket); });
  /** What a recipient with this number is answered. */
  answer: (recipient: number) => string = () => `450 4.2.1 ${WORDS}`;
  refused = 0;
  /** "message recipient" of all that was taken. */
  readonly taken: string[] = [];

  async listen(): Promise<number> {
    this.server.listen(0, HOST);
    await once(this.server, 'listening');
    const address = this.server.address();
    assert.ok(typeof address === 'object' && address !== null);
    return address.port;
  }

  #serve(socket: Socket): void {
    let recipients: string[] = [];
    let content: string | undefined;
    let rest = '';
    socket.setEncoding('latin1');
    socket.on('error', () => undefined);
    socket.write('220 hop.example\r\n');
    const said = (line: string): string => {
      if (content !== undefined) {
        if (line !== '.') {
          content += `${line}\n`;
          return '';
        }
        const message = /^Subject: (\d+)$/m.exec(content)?.[1] ?? 'unnamed';
        for (const recipient of recipients) this.taken.push(`${message} ${recipient}`);
        content = undefined;
        return '250 2.0.0 ok\r\n';
      }
      const recipient = /^RCPT TO:<(\d+)@/i.exec(line)?.[1];
      if (recipient !== undefined) {
        const reply = this.answer(Number(recipient));
        if (reply.startsWith('250')) recipients.push(recipient);
        else this.refused += 1;
        return `${reply}\r\n`;
      }
      if (/^EHLO/i.test(line)) return '250-hop.example\r\n250-PIPELINING\r\n250 ENHANCEDSTATUSCODES\r\n';
      if (/^(MAIL|RSET)/i.test(line)) recipients = [];
      if (/^DATA/i.test(line)) {
        if (recipients.length === 0) return '554 5.5.1 nobody is left\r\n';
        content = '';
        return '354 go on\r\n';
      }
      return /^QUIT/i.test(line) ? '221 bye\r\n' : '250 2.0.0 ok\r\n';
    };
    socket.on('data', (text: string) => {
      const lines = `${rest}${text}`.split('\r\n');
      rest = lines.pop() ?? '';
      socket.write(lines.map(said).join(''));
    });
  }
}

/** Messages to so many recipients of the verbose hop; all are taken. */
async function send(port: number): Promise<void> {
  const talk = await SmtpTalk.start(port);
  const rcpts = Array.from({ length: RECIPIENTS }, (_none, i) => `RCPT TO:<${String(i)}@verbose.example>\r\n`).join('');
  for (let message = 0; message < MESSAGES; message += 1) {
    talk.send(`MAIL FROM:<alice@a.example>\r\n${rcpts}`);
    for (let i = 0; i <= RECIPIENTS; i += 1) assert.match(await talk.reply(), /^250 /);
    assert.match(await talk.say('DATA'), /^354 /);
    assert.match(await talk.say(`Subject: ${String(message)}\r\n\r\ntext\r\n.`), /^250 /);
  }
}

async function isWell(cluster: Cluster): Promise<void> {
  for (const gateway of cluster.gateways) {
    const status = await gateway.status();
    assert.ok(status.memory_used_bytes <= status.memory_limit_bytes, `the gateway has ${String(status.memory_used_bytes)}`);
    assert.deepEqual(status.stores.map(({ up, partitions_ng: ng }) => [up, ng]), [[true, 0], [true, 0]], JSON.stringify(status.stores));
  }
}

async function neighbourDelivers(cluster: Cluster, port: number): Promise<void> {
  const before = (await cluster.sinkCounts()).messages;
  const sent = await runSend({ host: HOST, port, count: NEIGHBOUR, connections: 5, mix: [{ bytes: 1000, weight: 1 }], domains: ['a.example'] });
  assert.equal(sent.accepted, NEIGHBOUR, JSON.stringify(sent));
  await until('the mail of the neighbour', async () => (await cluster.sinkCounts()).messages - before >= NEIGHBOUR, PHASE_MS);
}

test('a verbose next hop fills neither stores nor gateway, and stops nobody', { timeout: STORY_MS }, async () => {
  const hop = new VerboseHop();
  const via = `smtp://${HOST}:${String(await hop.listen())}`;
  const cluster = await startCluster({
    gateways: 2, domains: ['a.example'], routes: [{ domain: 'verbose.example', via }], store: { memory: { limit: LIMIT } },
    gateway: { memory: { limit: LIMIT }, smtp: { message_size_limit: '10MiB' }, log: { mail: false }, delivery: { concurrency: 5, retry: { first: '2s', max: '4s' } } },
  });
  try {
    const [first, second] = cluster.gateways;
    assert.ok(first !== undefined && second !== undefined);
    await send(first.smtpPort);
    await until('each recipient was refused', () => Promise.resolve(hop.refused > 1.2 * MESSAGES * RECIPIENTS), PHASE_MS, first.gateway);
    await isWell(cluster);
    await neighbourDelivers(cluster, second.smtpPort);
    hop.answer = (recipient) => (recipient % 2 === 0 ? `550 5.1.1 ${WORDS}` : `450 4.2.1 ${WORDS}`);
    await until('a report about each message', async () => (await cluster.sinkCounts()).unmarked >= MESSAGES, PHASE_MS, first.gateway);
    await isWell(cluster);
    await neighbourDelivers(cluster, second.smtpPort);
    hop.answer = () => '250 2.1.5 ok';
    await first.drained(PHASE_MS);
    await isWell(cluster);
    assert.equal(new Set(hop.taken).size, MESSAGES * RECIPIENTS / 2, 'everybody who was not refused has it');
    assert.equal(hop.taken.length, MESSAGES * RECIPIENTS / 2, 'once');
  } finally {
    await cluster.stop();
    hop.server.close();
  }
});
