/**
 * The way out: with no gateway alive, messages come out of a store as files, out of the file that a stopped store left
 * too, and go from there to any SMTP server, each once.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';
import { ENTRY } from './entry.js';
import { SmtpTalk } from './smtp-talk.js';

const COUNT = 700;

interface Output {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function twinpost(...args: string[]): Promise<Output> {
  const child = spawn(process.execPath, [ENTRY, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let err = '';
  child.stdout.on('data', (data: Buffer) => { out += data.toString(); });
  child.stderr.on('data', (data: Buffer) => { err += data.toString(); });
  return new Promise((resolve) => { child.once('close', (code) => { resolve({ code: code ?? -1, out, err }); }); });
}

/** Names below a folder that end so, in order. */
function files(folder: string, end: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith(end)).sort();
}

function contents(folder: string): string[] {
  return files(folder, '.eml').map((name) => readFileSync(join(folder, name), 'latin1'));
}

interface Json {
  readonly queue_name: string;
  readonly sender: string;
  readonly recipients: readonly { readonly address: string; readonly state: string; readonly notify?: string; readonly orcpt?: string; readonly last_reply?: string }[];
  readonly attempts: number;
  readonly arrival_time: number;
  readonly expiry_time: number;
  readonly ret?: string;
  readonly envid?: string;
}

function envelopes(folder: string): Json[] {
  return files(folder, '.json').map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Json);
}

describe('the way out', { timeout: 360_000 }, () => {
  test('from a gateway, a store with no gateway alive, its spill file, and on to an SMTP server, each message once', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'twinpost-export-'));
    const cluster: Cluster = await startCluster({
      // Nobody listens at port 1.
      routes: [{ domain: 'away.example', via: `smtp://${HOST}:1`, name: '../any_queue?name' }],
      store: { state_dir: join(folder, 'state') }, gateway: { delivery: { retry: { first: '1h', max: '1h' } } },
    });
    t.after(async () => {
      await cluster.stop();
      rmSync(folder, { recursive: true, force: true });
    });
    const talk = await SmtpTalk.start(cluster.smtpPort);
    await talk.say('EHLO client.example');
    assert.match(await talk.say('MAIL FROM:<alice@client.example> RET=HDRS ENVID=QQ314'), /^250 /);
    assert.match(await talk.say('RCPT TO:<bob@away.example> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;bob@away.example'), /^250 /);
    assert.match(await talk.say('DATA'), /^354 /);
    talk.send('Subject: first\r\n\r\n..a line with a dot\r\n.\r\n');
    assert.match(await talk.reply(), /^250 /);
    talk.close();
    const sent = await runSend({ host: HOST, port: cluster.smtpPort, count: COUNT, connections: 5, domains: ['away.example'], resend: true });
    assert.equal(sent.accepted, COUNT);
    const admin = adminOfStore(cluster);

    const fromGateway = join(folder, 'from-gateway');
    const viaGateway = await twinpost('queue', 'export', '--everything', '--from', `${HOST}:${cluster.adminPort}`, fromGateway);
    assert.deepEqual([viaGateway.code, viaGateway.err], [0, '']);
    await cluster.gateway.kill();

    const fromStore = join(folder, 'from-store');
    const viaStore = await twinpost('store', 'export', '--everything', '--from', admin, '--json', fromStore);
    assert.equal(viaStore.code, 0, viaStore.err);
    assert.equal((JSON.parse(viaStore.out) as { messages: number }).messages, COUNT + 1);
    assert.deepEqual(contents(fromStore), contents(fromGateway));
    await until('who has read it there is in the log', () => /"event":"read","partition":"gateway-1\/\d+","messages":\d+,"client":"127\.0\.0\.1"/.test(cluster.stores[0]?.log() ?? ''));
    assert.equal(readdirSync(folder).filter((name) => !['state', 'from-gateway', 'from-store'].includes(name)).length, 0, 'no name leads out of its folder');
    const first = envelopes(fromStore)[0];
    assert.ok(first !== undefined);
    assert.deepEqual([first.sender, first.ret, first.envid, first.queue_name], ['alice@client.example', 'HDRS', 'QQ314', '../any_queue?name']);
    assert.deepEqual(first.recipients.map(({ address, state, notify, orcpt }) => [address, state, notify, orcpt]), [['bob@away.example', 'waiting', 'SUCCESS,FAILURE', 'rfc822;bob@away.example']]);
    assert.ok(Math.abs(first.arrival_time - Date.now() / 1000) < 300 && first.expiry_time > first.arrival_time);
    assert.match(contents(fromStore)[0] ?? '', /\r\n\r\n\.a line with a dot\r\n$/);

    const again = await twinpost('store', 'export', '--everything', '--from', admin, fromStore);
    assert.deepEqual([again.code, /not empty.*--force/.test(again.err)], [1, true], again.err);
    const none = await twinpost('store', 'export', '--queue', 'no.such.queue', '--from', admin, join(folder, 'none'));
    assert.deepEqual([none.code, /no mail of 'no\.such\.queue'/.test(none.err)], [1, true], none.err);

    assert.equal(await cluster.stores[0]?.stop(), 0);
    const spill = files(join(folder, 'state'), '.spill')[0] ?? '';
    const fromSpill = join(folder, 'from-spill');
    const viaSpill = await twinpost('store', 'export', '--queue', '../any_queue?name', '--spill', join(folder, 'state', spill), fromSpill);
    assert.equal(viaSpill.code, 0, viaSpill.err);
    assert.deepEqual(contents(fromSpill), contents(fromStore));
    assert.deepEqual(envelopes(fromSpill), envelopes(fromStore));

    const cut = join(folder, 'cut.spill');
    const whole = readFileSync(join(folder, 'state', spill));
    writeFileSync(cut, whole.subarray(0, whole.length - 40));
    const viaCut = await twinpost('store', 'export', '--everything', '--spill', cut, join(folder, 'from-cut'));
    assert.deepEqual([viaCut.code, /damaged/.test(viaCut.err)], [1, true], viaCut.err);
    assert.ok(existsSync(join(folder, 'from-cut')));

    const before = (await cluster.sinkCounts()).messages;
    const resend = await twinpost('send', '--spool', fromStore, '--to', `${HOST}:${cluster.sinkPort}`);
    assert.deepEqual([resend.code, resend.err], [0, '']);
    assert.equal((await cluster.sinkCounts()).messages - before, COUNT + 1);
    const second = await twinpost('send', '--spool', fromStore, '--to', `${HOST}:${cluster.sinkPort}`);
    assert.equal(second.code, 0, second.err);
    assert.equal((await cluster.sinkCounts()).messages - before, COUNT + 1, 'a second run sends nothing again');
    const down = await twinpost('send', '--spool', fromSpill, '--to', `${HOST}:1`);
    assert.deepEqual([down.code, /ECONNREFUSED/.test(down.err)], [1, true]);
    assert.equal(files(fromSpill, '.json').length, COUNT + 1, 'nothing is marked that nobody took');
  });
});

/** As the first store says it when it starts. */
function adminOfStore(cluster: Cluster): string {
  return `${HOST}:${/admin on [^:]+:(\d+)/.exec(cluster.stores[0]?.log() ?? '')?.[1] ?? ''}`;
}
