/**
 * Nights of an operator who changes what a gateway runs by, and of one whose log can not be written. As in
 * test/operator/stories.test.ts: the words and commands are those of docs/RUNBOOK.md.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { connect as tlsConnect } from 'node:tls';
import { runSend } from '../../src/load/run.js';
import { startSink } from '../../src/sink/sink.js';
import { selfSigned } from '../dialog/self-signed.js';
import { HOST, startCluster, until, type Cluster } from '../process/cluster.js';
import { SmallDisk } from '../process/small-disk.js';
import { SmtpTalk } from '../process/smtp-talk.js';
import { Story, sized } from './story.js';

/** A part of the file. */
type Part = Record<string, unknown>;

const BOUND_MS = 20_000;
const RELOADS = sized(100, 1_000);
/** At full size clients send as fast as they are answered, and long enough for all reloads. */
const LOAD = sized({ count: 6_000, rate: 300 }, { count: 300_000 });
const OWN = selfSigned('mx.client.example');
const NEW = selfSigned('mx.client.example', 90);
const NO_OPENSSL = OWN === undefined || NEW === undefined ? 'no openssl here' : false;
const disk = SmallDisk.mount(2048);

function edit(cluster: Cluster, change: (gateway: Part) => void): void {
  const file = join(cluster.folder, 'gateway.yaml');
  const whole = JSON.parse(readFileSync(file, 'utf8')) as { readonly gateway: Part };
  change(whole.gateway);
  writeFileSync(`${file}.new`, JSON.stringify(whole, undefined, 2));
  renameSync(`${file}.new`, file);
}

/** Its via leads there. */
function lead(gateway: Part, domain: string, port: number): void {
  const route = (gateway['routes'] as Part[]).find((one) => one['domain'] === domain);
  assert.ok(route !== undefined, `it has the route of ${domain}`);
  route['via'] = `smtp://${HOST}:${String(port)}`;
}

/** One who comes at this moment, with a message. */
async function newcomer(port: number, domain: string): Promise<void> {
  const talk = await SmtpTalk.start(port);
  for (const line of ['MAIL FROM:<new@client.example>', `RCPT TO:<user@${domain}>`]) assert.match(await talk.say(line), /^250 /, line);
  assert.match(await talk.say('DATA'), /^354 /);
  assert.match(await talk.say('Subject: new\r\n\r\nhello\r\n.'), /^250 /);
  talk.close();
}

/** SHA-256 of the certificate that STARTTLS shows. */
async function fingerprintOf(port: number): Promise<string> {
  const socket = connect({ host: HOST, port });
  const talk = await SmtpTalk.over(socket);
  assert.match(await talk.say('STARTTLS'), /^220 /);
  socket.removeAllListeners('data');
  const secure = tlsConnect({ socket, rejectUnauthorized: false });
  await once(secure, 'secureConnect');
  const { fingerprint256 } = secure.getPeerCertificate();
  secure.destroy();
  return fingerprint256;
}

describe('an operator', { timeout: 600_000 }, () => {
  test('who changes route, limit and certificate under load loses no session', { skip: NO_OPENSSL }, async (t) => {
    assert.ok(OWN !== undefined && NEW !== undefined);
    const tls = { cert: OWN.certFile, key: OWN.keyFile };
    const other = await startSink({ host: HOST, port: 0, verify: true });
    const cluster = await startCluster({ gateways: 2, group: true, stores: 3, domains: ['x.example', 'y.example'], gateway: { smtp: { tls } } });
    try {
      const story = new Story('reload', cluster);
      story.call(String(other.port), '2025');
      story.call(cluster.folder, '/etc/twinpost');
      const before = await fingerprintOf(cluster.smtpPort);
      const pairs = [OWN, NEW].map(({ certFile, keyFile }) => [readFileSync(certFile), readFileSync(keyFile)] as const);
      const run = { isOver: false };
      const sending = runSend({ host: HOST, port: cluster.smtpPort, connections: 20, ...LOAD, domains: ['x.example'] }).finally(() => { run.isOver = true; });
      story.tell('The customer y.example has a new mail server, clients are to send less to us at once, and the certificate is renewed. What would the new files do?');
      copyFileSync(NEW.certFile, OWN.certFile);
      copyFileSync(NEW.keyFile, OWN.keyFile);
      for (const { gateway } of cluster.gateways) {
        const file = join(cluster.folder, `${gateway.name}.yaml`);
        const whole = JSON.parse(readFileSync(file, 'utf8')) as { readonly gateway: { readonly smtp: Part } & Part };
        lead(whole.gateway, 'y.example', other.port);
        whole.gateway.smtp['recipient_limit'] = 500;
        writeFileSync(`${file}.new`, JSON.stringify(whole, undefined, 2));
        renameSync(`${file}.new`, file);
      }
      const diff = await story.type(['config', 'diff']);
      assert.match(diff.out, /gateway-1: .*routes.*; 0 queued messages go another way/);
      story.tell('That is what was meant. All mail that waits goes the new way at its next attempt, and sessions that are there go on:');
      const reloaded = await story.type(['config', 'reload', '--reason', 'their new server']);
      assert.deepEqual([reloaded.code, (reloaded.out.match(/in force: /g) ?? []).length], [0, 2], reloaded.out + reloaded.error);
      const after = await fingerprintOf(cluster.smtpPort);
      assert.notEqual(after, before, 'the next STARTTLS has the new certificate');
      await runSend({ host: HOST, port: cluster.smtpPort, count: 10, domains: ['y.example'] });
      await until('it arrives at their new server', () => other.counts.messages === 10, BOUND_MS, cluster.gateway);
      let reloads = 1;
      let underLoad = 0;
      for (; reloads < RELOADS || !run.isOver; reloads++) {
        const turn = reloads % 3;
        const isEven = reloads % 2 === 0;
        if (turn === 0) edit(cluster, (gateway) => { gateway['smtp'] = { ...gateway['smtp'] as Part, recipient_limit: 500 + (reloads % 100) }; });
        if (turn === 1) edit(cluster, (gateway) => { lead(gateway, 'y.example', isEven ? other.port : cluster.sinkPort); });
        if (turn === 2) [OWN.certFile, OWN.keyFile].forEach((file, i) => { writeFileSync(file, pairs[isEven ? 0 : 1]?.[i] ?? ''); });
        const [{ status }] = await Promise.all([
          fetch(`http://${HOST}:${String(cluster.adminPort)}/api/v1/config/reload`, {
            method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ reason: 'again', who: 'ann' }),
          }),
          newcomer(cluster.smtpPort, 'y.example'),
        ]);
        assert.equal(status, 200);
        if (turn === 2) assert.equal(await fingerprintOf(cluster.smtpPort), isEven ? before : after, 'the next STARTTLS has the certificate of now');
        if (!run.isOver) underLoad += 1;
      }
      const sent = await sending;
      t.diagnostic(`${String(reloads)} reloads, ${String(underLoad)} of them under load, ${sent.acceptedPerSecond.toFixed(0)} messages a second`);
      assert.deepEqual([sent.accepted, sent.connectionsOpened, sent.replies], [LOAD.count, 20, { 250: LOAD.count }], 'no session is lost, no 4xx');
      const accepted = LOAD.count + 10 + reloads - 1;
      const arrived = async (): Promise<number> => (await cluster.sinkCounts()).messages + other.counts.messages;
      await until('all of it arrives at one of both', async () => await arrived() >= accepted, BOUND_MS, cluster.gateway);
      await cluster.drained();
      assert.equal(await arrived(), accepted, 'once');
      const there = other.counts.messages - 10;
      assert.ok(there > 0 && there < reloads - 1, `${String(there)} of ${String(reloads - 1)} went to the new server: the route was changed`);
      story.end();
    } finally {
      await cluster.stop();
      await other.close();
    }
  });

  test('whose certificate is wrong, whose log is renamed, and whose disk is full', { skip: disk === undefined ? 'nobody may mount a disk here' : NO_OPENSSL }, async () => {
    assert.ok(disk !== undefined && OWN !== undefined && NEW !== undefined);
    const folder = mkdtempSync(join(tmpdir(), 'twinpost-pair-'));
    const tls = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    copyFileSync(OWN.certFile, tls.cert);
    copyFileSync(OWN.keyFile, tls.key);
    const file = join(disk.folder, 'gateway.log');
    const cluster = await startCluster({ gateway: { smtp: { tls }, log: { file } } });
    try {
      const story = new Story('files', cluster);
      story.call(folder, '/etc/twinpost');
      story.call(cluster.folder, '/etc/twinpost');
      const before = await fingerprintOf(cluster.smtpPort);
      const other = selfSigned('mx.client.example');
      assert.ok(other !== undefined);
      copyFileSync(other.certFile, tls.cert);
      story.tell('The certificate is renewed, and only half of the pair was copied. A reload refuses all of it, and clients see the old one:');
      const refused = await story.type(['config', 'reload', '--reason', 'new certificate']);
      assert.deepEqual([refused.code, /smtp\.tls/.test(refused.out + refused.error)], [1, true], refused.out + refused.error);
      assert.equal(await fingerprintOf(cluster.smtpPort), before);
      const seen = await story.type(['status'], (line) => line.startsWith('ERROR'));
      assert.match(seen.out, /^ERROR gateway-1: the .*(certificate|configuration)/);
      copyFileSync(other.keyFile, tls.key);
      story.tell('The key is copied, too:');
      const taken = await story.type(['config', 'reload', '--reason', 'new certificate and key']);
      assert.equal(taken.code, 0, taken.error);
      assert.notEqual(await fingerprintOf(cluster.smtpPort), before);

      story.tell('The disk of the log is full. Mail goes on; what can not be written waits, and past 4 MiB it is lost and counted:');
      disk.resize(Math.max(64, Math.ceil(readFileSync(file).length / 1024) + 8));
      await runSend({ host: HOST, port: cluster.smtpPort, count: 500, domains: ['x.example'] });
      await cluster.sinkHas(500);
      await until('it fails', async () => (await cluster.status()).log?.failing === 'ENOSPC', BOUND_MS, cluster.gateway);
      const full = await story.type(['status'], (line) => /^ERROR| LOG /.test(line));
      assert.match(full.out, /^ERROR gateway-1: the log can't be written: ENOSPC; 0 lines lost/);
      story.tell('There is room again. A second later all is written, and the log says how many lines it lost, if any:');
      disk.resize(8192);
      const lines = (name: string, event: string): number => readFileSync(name, 'utf8').split(`"event":"${event}"`).length - 1;
      await until('all is written', () => lines(file, 'received') === 500 && lines(file, 'delivered') === 500, BOUND_MS, cluster.gateway);
      const well = await story.type(['status'], (line) => /^(ERROR|WARNING|ALL WELL)| LOG /.test(line));
      assert.doesNotMatch(well.out, /^ERROR/);
      story.tell('The log is renamed, by hand or by logrotate (`configs/logrotate`): each process goes on in a new one within a second, and no line is lost.');
      renameSync(file, `${file}.1`);
      await runSend({ host: HOST, port: cluster.smtpPort, count: 100, domains: ['x.example'] });
      await cluster.sinkHas(600);
      await until('all lines are there', () => lines(file, 'delivered') + lines(`${file}.1`, 'delivered') === 600, BOUND_MS, cluster.gateway);
      assert.equal(lines(file, 'received') + lines(`${file}.1`, 'received'), 600);
      story.end();
    } finally {
      await cluster.stop();
      disk.unmount();
      rmSync(folder, { recursive: true });
    }
  });
});
