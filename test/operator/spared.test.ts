/**
 * A night of an operator who spares three destinations: mail is held, delayed and led by another route, and is still so
 * when its gateway has been killed, another one has taken it over, and it is back where it belongs. Its words and
 * commands are those of docs/RUNBOOK.md (story.ts).
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { SMTPServer } from 'smtp-server';
import { HOST, startCluster, until, type Cluster, type GatewayHandle } from '../process/cluster.js';
import { freePorts } from '../process/free-ports.js';
import { SmtpTalk } from '../process/smtp-talk.js';
import { Story } from './story.js';

const EACH = 4;
const BOUND_MS = 60_000;

interface Seen {
  readonly state: string;
  readonly delayed_until?: number;
}

let cluster: Cluster;
let sparePort = 0;
const atSpare: string[] = [];
const spare = new SMTPServer({
  authOptional: true, disabledCommands: ['AUTH', 'STARTTLS'], logger: false,
  onData: (stream, session, done) => {
    stream.resume();
    stream.once('end', () => {
      atSpare.push(...session.envelope.rcptTo.map(({ address }) => address));
      done();
    });
  },
});

before(async () => {
  [sparePort = 0] = await freePorts(1);
  cluster = await startCluster({
    gateways: 2, group: true, stores: 3, domains: ['held.example', 'late.example', 'moved.example'],
    routes: [{ domain: 'spare.example', name: 'spare', via: `smtp://${HOST}:${String(sparePort)}` }],
  });
});
after(async () => {
  await new Promise<void>((resolve) => { spare.close(resolve); });
  await cluster.stop();
});

async function submit(port: number, domain: string): Promise<void> {
  const talk = await SmtpTalk.start(port);
  for (let sent = 0; sent < EACH; sent++) {
    await talk.say('MAIL FROM:<a@client.example>');
    await talk.say(`RCPT TO:<user@${domain}>`);
    await talk.say('DATA');
    assert.match(await talk.say('Subject: x\r\n\r\nx\r\n.'), /^250/);
  }
  await talk.say('QUIT');
}

async function seenIn({ adminPort }: Pick<GatewayHandle, 'adminPort'>, queue: string): Promise<readonly Seen[]> {
  const answer = await fetch(`http://${HOST}:${String(adminPort)}/api/v1/queues/${queue}/messages`);
  return answer.ok ? (await answer.json() as { readonly rows: readonly Seen[] }).rows : [];
}

/** Who has it, has it as the operator wants it. */
async function isSpared(gateway: GatewayHandle): Promise<boolean> {
  const [held, late, moved, left] = await Promise.all(['held.example', 'late.example', 'spare', 'moved.example'].map((queue) => seenIn(gateway, queue)));
  return held?.length === EACH && held.every(({ state }) => state === 'held')
    && late?.length === EACH && late.every(({ state, delayed_until: until_ }) => state === 'deferred' && until_ !== undefined)
    && moved?.length === EACH && left?.length === 0;
}

test('an operator who holds, delays and rebinds mail finds it so, whoever dies', { timeout: 600_000 }, async () => {
  const story = new Story('spared', cluster);
  const [first, second] = cluster.gateways;
  assert.ok(first !== undefined && second !== undefined);
  await cluster.sink.kill();
  for (const domain of ['held.example', 'late.example', 'moved.example']) await submit(first.smtpPort, domain);
  story.tell('Three customers call. One wants nothing until they have looked; one has a backup running, and wants mail in an hour; the line of the third is cut, and there is another way to them.');
  const isNoMessage = (line: string): boolean => !line.startsWith('  ');
  const held = await story.type(['queue', 'hold', '--domain', 'held.example', '--reason', 'they look first'], isNoMessage);
  assert.equal(held.code, 0, held.error);
  const late = await story.type(['queue', 'delay', '--domain', 'late.example', '--for', '1h', '--reason', 'their backup runs'], isNoMessage);
  assert.equal(late.code, 0, late.error);
  const moved = await story.type(['queue', 'rebind', '--domain', 'moved.example', '--route', 'spare', '--reason', 'their line is cut'], isNoMessage);
  assert.equal(moved.code, 0, moved.error);
  assert.match(moved.out, /4 of 4 rebound/);
  await until('all is so', () => isSpared(first));
  await first.gateway.kill();
  await until('the other one has it, and all is still so', () => isSpared(second), BOUND_MS);
  first.gateway.start();
  await first.gateway.ready();
  await until('it is back, and all is still so', () => isSpared(first), BOUND_MS);
  story.tell('Then the gateway is killed, another one takes its mail over, and hands it back. All is as it was said:');
  const listed = await story.type(['queue', 'list', 'late.example', '--limit', '1']);
  assert.match(listed.out, /\(delayed until .*: .*their backup runs\)/);
  spare.listen(sparePort, HOST);
  await once(spare.server, 'listening');
  cluster.sink.start();
  await cluster.sink.ready();
  await until('the third has its mail', () => atSpare.length === EACH, BOUND_MS);
  assert.deepEqual(atSpare, Array.from({ length: EACH }, () => 'user@moved.example'));
  assert.equal((await cluster.sinkCounts()).messages, 0, 'nothing of the others');
  story.tell('The third has its mail by the other way. The second is ready sooner than they thought, and the first have looked:');
  const released = await story.type(['queue', 'release', '--everything', '--reason', 'they are ready'], isNoMessage);
  assert.match(released.out, /8 of 8 released/);
  await cluster.sinkHas(2 * EACH, BOUND_MS);
  await until('nothing waits', async () => (await first.status()).queued_messages + (await second.status()).queued_messages === 0);
  assert.equal((await cluster.sinkCounts()).messages, 2 * EACH);
  story.end();
});
