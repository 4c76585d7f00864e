/**
 * A message that ends the process whenever its report is composed. Each try is marked at the stores before, and a crash
 * is noted on the machine; the third process holds that message alone, says so, and all other mail flows. The fault is
 * put into the composer from outside, by a loader of the test. And messages that an operator holds.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { SMTPServer } from 'smtp-server';

import { HOST, startCluster, until, type Cluster } from './cluster.js';
import { ENTRY } from './entry.js';
import { SmtpTalk } from './smtp-talk.js';
import { twinpost } from './twinpost.js';

const CHOKES_ON = 'choke on this';
const CRASH_EXIT_CODE = 70;

/** A module for --import that makes the composer of reports throw on some contents. */
const LOADER = moduleUrl(`
  import { register } from 'node:module';
  register(${JSON.stringify(moduleUrl(`
    export async function load(url, context, next) {
      const loaded = await next(url, context);
      if (!url.includes('/bundle/')) return loaded;
      const source = loaded.source.toString().replace(/function composeReport\\(([^)]*)\\) \\{/, (whole) => whole + 'if (Buffer.from(input.content).includes(${JSON.stringify(CHOKES_ON)})) throw new Error("the composer chokes");');
      return { ...loaded, source };
    }
  `))});
`);

function moduleUrl(source: string): string {
  return `data:text/javascript,${encodeURIComponent(source)}`;
}

/** A next hop that refuses every recipient for good. */
async function refusingServer(t: { after(run: () => void): void }): Promise<number> {
  const server = new SMTPServer({ authOptional: true, disabledCommands: ['STARTTLS', 'AUTH'], onRcptTo: (_address, _session, done) => { done(Object.assign(new Error('no such user'), { responseCode: 550 })); } });
  await new Promise<void>((resolve) => { server.listen(0, HOST, resolve); });
  t.after(() => { server.close(); });
  return (server.server.address() as AddressInfo).port;
}

/** The queue id in the reply to the message. */
async function submit(port: number, to: string, text: string, parameters = ''): Promise<string> {
  const talk = await SmtpTalk.start(port);
  await talk.say('MAIL FROM:<alice@senders.example>');
  await talk.say(`RCPT TO:<${to}>${parameters}`);
  await talk.say('DATA');
  const reply = await talk.say(`Subject: a test\r\n\r\n${text}\r\n.`);
  talk.close();
  assert.match(reply, /^250 /);
  return /\b[0-9A-HJKMNP-TV-Z]{11}\b/.exec(reply)?.[0] ?? '';
}

async function queueVerb(cluster: Cluster, ...args: string[]): Promise<{ readonly code: number; readonly out: string }> {
  const child = spawn(process.execPath, [ENTRY, 'queue', ...args, '--only', '--from', `${HOST}:${cluster.adminPort}`], { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  child.stdout.on('data', (data: Buffer) => { out += data.toString(); });
  child.stderr.on('data', (data: Buffer) => { out += data.toString(); });
  return new Promise((resolve) => { child.once('close', (code) => { resolve({ code: code ?? -1, out }); }); });
}

test('a message that crashes the gateway twice is held alone by the third process, and nothing is lost', { timeout: 240_000 }, async (t) => {
  const refusing = await refusingServer(t);
  const cluster = await startCluster({
    nodeArguments: ['--import', LOADER], domains: ['fine.example'],
    routes: [{ domain: 'refused.example', via: `smtp://${HOST}:${refusing}` }],
  });
  t.after(() => cluster.stop());
  const { gateway } = cluster;
  const note = join(cluster.folder, 'crash-note.json');
  const ended = (): Promise<void> => until('the gateway has crashed', () => !gateway.isRunning, 20_000, gateway);

  const poison = await submit(cluster.smtpPort, 'bob@refused.example', CHOKES_ON);
  await ended();
  assert.equal(gateway.exitCode, CRASH_EXIT_CODE);
  assert.ok(existsSync(note), 'the crash is noted');
  const crash = gateway.log().split('\n').filter((line) => line.includes('"event":"crash"'));
  assert.equal(crash.length, 1);
  assert.match(crash[0] ?? '', /"why":"the composer chokes".*"stack":".*composeReport/);

  gateway.start();
  await ended();
  assert.equal(gateway.exitCode, CRASH_EXIT_CODE);

  gateway.start();
  await gateway.ready();
  await until('the message is held', () => gateway.log().includes('a message is held alone'), 20_000, gateway);
  await submit(cluster.smtpPort, 'carol@fine.example', 'this one is harmless');
  await cluster.sinkHas(1);
  await submit(cluster.smtpPort, 'bob@refused.example', 'the report about this one can be made');
  await cluster.sinkHas(2);
  const list = await queueVerb(cluster, 'list');
  assert.match(list.out, new RegExp(`${poison}!.*\\n.*held: it was in hand when 2 processes of a gateway ended`));

  // The stores know it too: with the machine's file gone, the next process holds it again.
  await gateway.kill();
  rmSync(note);
  gateway.start();
  await gateway.ready();
  await until('the message is held again', async () => (await queueVerb(cluster, 'list')).out.includes(`${poison}!`), 20_000, gateway);

  const released = await queueVerb(cluster, 'release', '--id', poison, '--reason', 'to see it again');
  // It may end the process before that has said that it went on.
  assert.match(released.out, /^[01] of 1 released$|^PARTIAL: gateway-1: it fell silent/m);
  await ended();
  assert.equal(gateway.exitCode, CRASH_EXIT_CODE, 'what was released is worked on');
  gateway.start();
  await ended();
  gateway.start();
  await gateway.ready();
  await until('the message is held once more', async () => (await queueVerb(cluster, 'list')).out.includes(`${poison}!`), 20_000, gateway);
  assert.equal((await cluster.status()).queued_messages, 1);
});

test('a message that crashes whoever tells its delay is held alone by the third process, on whatever machine', { timeout: 240_000 }, async (t) => {
  const cluster = await startCluster({
    nodeArguments: ['--import', LOADER], gateway: { reports: { delay_after: '2s' } },
    routes: [{ domain: 'away.example', via: `smtp://${HOST}:1` }],
  });
  t.after(() => cluster.stop());
  const { gateway } = cluster;
  const poison = await submit(cluster.smtpPort, 'bob@away.example', CHOKES_ON, ' NOTIFY=DELAY');
  await submit(cluster.smtpPort, 'bob@away.example', 'the delay of this one can be told', ' NOTIFY=DELAY');
  for (let crashes = 1; crashes <= 2; crashes++) {
    await until('the gateway has crashed', () => !gateway.isRunning, 20_000, gateway);
    assert.equal(gateway.exitCode, CRASH_EXIT_CODE);
    // As on another machine: only the stores know.
    rmSync(join(cluster.folder, 'crash-note.json'));
    gateway.start();
  }
  await gateway.ready();
  await until('the message is held', () => gateway.log().includes('a message is held alone'), 20_000, gateway);
  await cluster.sinkHas(1);
  const list = await queueVerb(cluster, 'list');
  assert.match(list.out, new RegExp(`${poison}!.*\\n.*held: it was in hand when 2 processes of a gateway ended`));
  assert.ok(gateway.isRunning);
});

test('an operator holds and releases a message by its id', { timeout: 120_000 }, async (t) => {
  const cluster = await startCluster({ routes: [{ domain: 'away.example', via: `smtp://${HOST}:1` }] });
  t.after(() => cluster.stop());
  const id = await submit(cluster.smtpPort, 'bob@away.example', 'hold me');
  await until('it waits', async () => (await cluster.status()).queued_messages === 1);
  const none = await queueVerb(cluster, 'hold', '--id', '00000000001', '--reason', 'none such');
  assert.deepEqual([none.code, none.out.includes('no message is meant')], [1, true], none.out);
  await until('it is held', async () => /"done":1,.*"kept":true/.test((await queueVerb(cluster, 'hold', '--id', id, '--reason', 'a look first', '--json')).out), 20_000, cluster.gateway);
  assert.match((await queueVerb(cluster, 'list')).out, /held: .*: a look first/);
  await cluster.gateway.kill();
  cluster.gateway.start();
  await cluster.gateway.ready();
  await until('it is held again, after SIGKILL', async () => (await queueVerb(cluster, 'list')).out.includes(`${id}!`), 20_000, cluster.gateway);
  assert.equal((await queueVerb(cluster, 'release', '--id', id, '--reason', 'looked')).code, 0);
  assert.doesNotMatch((await queueVerb(cluster, 'list')).out, new RegExp(`${id}!`));
  await cluster.gateway.kill();
  cluster.gateway.start();
  await cluster.gateway.ready();
  await until('it is back', async () => (await queueVerb(cluster, 'list')).out.includes(id), 20_000, cluster.gateway);
  assert.doesNotMatch((await queueVerb(cluster, 'list')).out, new RegExp(`${id}!`), 'what was released stays released');

  // No mirror answers: it is held, and the operator, who waits no longer, is told what that is worth.
  for (const store of cluster.stores) store.freeze();
  const isHeld = until('it is held once more', async () => (await queueVerb(cluster, 'list')).out.includes(`${id}!`), 20_000, cluster.gateway);
  const unkept = await twinpost(['queue', 'hold', '--id', id, '--reason', 'once more', '--from', `${HOST}:${String(cluster.adminPort)}`], '', isHeld);
  for (const store of cluster.stores) store.thaw();
  assert.equal(unkept.code, 1, unkept.out + unkept.error);
  assert.match(unkept.out, /^1 of 1 held\ntaken back: .*\nits copies at the stores have not acknowledged that yet: a crash of the gateway may undo it\n$/m);
});
