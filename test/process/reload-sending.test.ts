/**
 * Who a gateway is to those it sends to, and whom it asks for the way, changed while it runs: signatures, sources, the DNS.
 * A message before and one after the reload show the difference; a file that can't be used changes nothing of it.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, renameSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, test, type TestContext } from 'node:test';

import { ED25519, RSA, pem, writeKey } from '../unit/gateway/dkim/node/new-keys.js';
import { readMaildir, sendRaw } from '../thirdparty/support.js';
import { ScriptedServer } from '../unit/gateway/outbound/scripted-server.js';
import { NameServer } from '../unit/platform/node/dns/name-server.js';
import { HOST, startCluster, until, type Cluster } from './cluster.js';
import { follows, refuses, type Part } from './reload-kit.js';
import { SmtpTalk } from './smtp-talk.js';

const BOUND_MS = 20_000;

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-reload-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  return folder;
}

/** The last message that came, once there are so many. */
async function arrived(cluster: Cluster, count: number): Promise<string> {
  await cluster.sinkHas(count, BOUND_MS);
  return readMaildir(cluster.maildir)[count - 1]?.toString('latin1') ?? '';
}

/** Domain and selector of each signature, from the top. */
function signersOf(mail: string): readonly string[] {
  const header = mail.slice(0, mail.indexOf('\r\n\r\n'));
  return [...header.matchAll(/^DKIM-Signature: [^]*? d=([^;]+); s=([^;]+);/gm)].map(([, domain, selector]) => `${String(selector)} ${String(domain)}`);
}

/** Of two workers. */
async function bothRun(cluster: Cluster): Promise<void> {
  const isReady = async (port: number): Promise<boolean> => (await fetch(`http://${HOST}:${String(port)}/readyz`)).ok;
  await until('both run', async () => await isReady(cluster.adminPort) && await isReady(cluster.adminPort + 1), BOUND_MS, cluster.gateway);
}

const sets = (section: Part) => (gateway: Part): void => { Object.assign(gateway, section); };

describe('a gateway that reads its configuration again', { timeout: 480_000 }, () => {
  test('signs with keys that are new, in sessions that are there too, and with none that is gone', async (t) => {
    const folder = newFolder(t);
    const rsa = writeKey(folder, 'rsa.pem', pem(RSA));
    const cluster = await startCluster({
      sinkSection: { maildir: true },
      routes: [{ domain: 'refused.example', via: 'smtp://127.0.0.1:1', name: 'refused' }],
      gateway: { hostname: 'mx.x.example', delivery: { lifetime: '2s', retry: { first: '1s', max: '1s' } } },
    });
    t.after(() => cluster.stop());
    const kept = await SmtpTalk.start(cluster.smtpPort);
    let count = 0;
    const sent = async (domain: string): Promise<readonly string[]> => {
      for (const line of ['RSET', 'MAIL FROM:<a@client.example>', 'RCPT TO:<b@far.example>', 'DATA']) await kept.say(line);
      assert.match(await kept.say(`From: a@${domain}\r\n\r\nhello\r\n.`), /^250 /);
      return signersOf(await arrived(cluster, ++count));
    };
    assert.deepEqual(await sent('x.example'), []);
    const x = { domain: 'x.example', selector: 'r1', key_file: rsa };
    const own = { domain: 'mx.x.example', selector: 'r1', key_file: rsa };
    assert.deepEqual(await follows(cluster, sets({ dkim: [x, own] })), ['gateway.dkim']);
    assert.deepEqual(await sent('x.example'), ['r1 x.example']);
    assert.deepEqual(await sent('y.example'), []);
    const ed25519 = writeKey(folder, 'ed.pem', pem(ED25519));
    const y = [{ domain: 'y.example', selector: 'r2', key_file: rsa }, { domain: 'y.example', selector: 'e2', key_file: ed25519 }];
    await follows(cluster, sets({ dkim: [{ ...x, selector: 'r9' }, own, ...y] }));
    assert.deepEqual(await sent('x.example'), ['r9 x.example']);
    assert.deepEqual(await sent('y.example'), ['e2 y.example', 'r2 y.example']);
    const far = 'c@refused.example';
    assert.match(await sendRaw(cluster.smtpPort, Buffer.from('From: a@x.example\r\n\r\nx\r\n'), far, '', 'a@client.example'), /^250 /);
    const report = await arrived(cluster, ++count);
    assert.match(report, /MAILER-DAEMON@mx\.x\.example/);
    assert.deepEqual(signersOf(report), ['r1 mx.x.example']);
    // A key of the other kind: its file needs a reload, and may change with it.
    renameSync(writeKey(folder, 'next.pem', pem(RSA)), ed25519);
    await follows(cluster, sets({ dkim: [{ domain: 'y.example', selector: 'e2', key_file: ed25519 }] }));
    assert.deepEqual(await sent('y.example'), ['e2 y.example']);
    assert.deepEqual(await sent('x.example'), []);
    await follows(cluster, sets({ dkim: [] }));
    assert.deepEqual(await sent('y.example'), []);
    assert.deepEqual((await cluster.status()).reception?.stale_files, []);
    kept.close();
  });

  test('refuses a key that can\'t be used with all else of its file, by its line, and goes on signing', async (t) => {
    const folder = newFolder(t);
    const rsa = writeKey(folder, 'rsa.pem', pem(RSA));
    const x = { domain: 'x.example', selector: 'r1', key_file: rsa };
    const cluster = await startCluster({ sinkSection: { maildir: true }, gateway: { dkim: [x] } });
    t.after(() => cluster.stop());
    const wanted = 'expected a private key in PEM, RSA of 2048 bits or more, or Ed25519 beside one, found: ';
    for (const [key, why] of [
      [path.join(folder, 'absent.pem'), '.*absent\\.pem.*ENOENT'],
      [writeKey(folder, 'ed.pem', pem(ED25519)), 'an Ed25519 key alone; y\\.example needs an RSA key too'],
    ] as const) {
      const dkim = [{ ...x, selector: 'r2' }, { domain: 'y.example', selector: 'r1', key_file: key }];
      await refuses(cluster, sets({ dkim, delivery: { concurrency: 7 } }), new RegExp(`gateway\\.yaml:\\d+: gateway\\.dkim\\[1\\]\\.key_file: ${wanted}${why}`));
    }
    assert.match(await sendRaw(cluster.smtpPort, Buffer.from('From: a@x.example\r\n\r\nx\r\n'), 'b@far.example'), /^250 /);
    assert.deepEqual(signersOf(await arrived(cluster, 1)), ['r1 x.example']);
    // It stays in force, and is not read again: what came in its place can't be used.
    renameSync(writeKey(folder, 'next.pem', pem(RSA), 0o644), rsa);
    await until('it is missed', () => cluster.gateway.log().includes('a new key for signatures can\'t be used'), BOUND_MS, cluster.gateway);
    await refuses(cluster, sets({ rescue: 'on' }), /gateway\.dkim\[0\]\.key_file: .*everybody on this machine may read or write/);
  });

  test('signs at all workers', async (t) => {
    const folder = newFolder(t);
    const cluster = await startCluster({ workers: 2, sinkSection: { maildir: true }, gateway: { memory: { limit: '1GiB' } } });
    t.after(() => cluster.stop());
    await bothRun(cluster);
    await follows(cluster, sets({ dkim: [{ domain: 'x.example', selector: 'r1', key_file: writeKey(folder, 'rsa.pem', pem(RSA)) }] }));
    for (let i = 0; i < 12; i++) assert.match(await sendRaw(cluster.smtpPort, Buffer.from('From: a@x.example\r\n\r\nx\r\n'), 'b@far.example'), /^250 /);
    await cluster.sinkHas(12, BOUND_MS);
    for (const mail of readMaildir(cluster.maildir)) assert.deepEqual(signersOf(mail.toString('latin1')), ['r1 x.example']);
  });

  test('connects from another source with its name, and refuses one that is no address of this machine', async (t) => {
    const hop = new ScriptedServer();
    const via = `smtp://${HOST}:${String(await hop.listen())}`;
    t.after(() => { hop.close(); });
    const greeted: string[] = [];
    hop.answer = (verb, connection, line) => {
      if (verb === 'EHLO') greeted.push(`${hop.sockets[connection - 1]?.remoteAddress ?? ''} ${line}`);
      return undefined;
    };
    const cluster = await startCluster({ sink: false, routes: [{ domain: '*', via }], gateway: { hostname: 'mx.test', delivery: { messages_per_connection: 1 } } });
    t.after(() => cluster.stop());
    const send = async (): Promise<string> => {
      const before = hop.accepted.length;
      assert.match(await sendRaw(cluster.smtpPort, Buffer.from('x\r\n'), 'b@far.example'), /^250 /);
      await until('it came', () => hop.accepted.length > before, BOUND_MS, cluster.gateway);
      return greeted.at(-1) ?? '';
    };
    assert.equal(await send(), '127.0.0.1 EHLO mx.test');
    await follows(cluster, sets({ sources: [{ address: '127.0.0.2', name: 'two.test' }] }));
    assert.equal(await send(), '127.0.0.2 EHLO two.test');
    const added = [{ address: '127.0.0.2', name: 'two.test' }, { address: '127.0.0.3' }];
    await follows(cluster, sets({ sources: added, routes: [{ domain: '*', via, sources: ['127.0.0.3'] }] }));
    assert.equal(await send(), '127.0.0.3 EHLO mx.test');
    assert.deepEqual((await cluster.status()).sources?.map(({ address }) => address), ['127.0.0.2', '127.0.0.3']);
    const foreign = sets({ sources: [...added, { address: '192.0.2.77' }], routes: [{ domain: '*', via, sources: ['127.0.0.2'] }] });
    await refuses(cluster, foreign, /gateway\.yaml:\d+: gateway\.sources\[2\]\.address: expected an address of this machine, found '192\.0\.2\.77'/);
    assert.equal(await send(), '127.0.0.3 EHLO mx.test');
    await follows(cluster, sets({ sources: [], routes: [{ domain: '*', via }] }));
    assert.equal(await send(), '127.0.0.1 EHLO mx.test');
  });

  test('asks other resolvers for the way of mail, also of mail that waits, and takes hosts that it did not take', async (t) => {
    const hop = new ScriptedServer();
    const port = await hop.listen();
    t.after(() => { hop.close(); });
    const broken = await NameServer.start(t, () => ({ rcode: 2 }));
    const names = await NameServer.start(t, (question) => ({
      answers: question.startsWith('MX ') ? [{ type: 'MX', name: question.slice(3), ttl: 600, data: { preference: 1, exchange: 'a.there.example' } }]
        : question === 'A a.there.example' ? [{ type: 'A', name: 'a.there.example', ttl: 600, data: HOST }] : [],
    }));
    const resolvers = (server: NameServer): Part => ({ dns: { resolvers: [`${HOST}:${String(server.port)}`] } });
    const mx = (allow_private_addresses: boolean): Part => ({ delivery: { retry: { first: '1h', max: '1h' }, mx: { allow_private_addresses, connections: 1 } } });
    const cluster = await startCluster({ sink: false, routes: [{ domain: '*', name: 'out', via: `mx:${String(port)}` }], gateway: { ...resolvers(broken), ...mx(false) } });
    t.after(() => cluster.stop());
    const waitsFor = (why: string): Promise<void> => until(why, async () => JSON.stringify((await cluster.status()).outages?.mx).includes(why), BOUND_MS, cluster.gateway);
    assert.match(await sendRaw(cluster.smtpPort, Buffer.from('x\r\n'), 'b@there.example'), /^250 /);
    await waitsFor('there.example');
    assert.ok(broken.asked.length > 0);
    assert.deepEqual(await follows(cluster, sets(resolvers(names))), ['gateway.dns.resolvers']);
    await waitsFor('127.0.0.1');
    const before = broken.asked.length;
    await refuses(cluster, sets({ ...mx(true), dns: { resolvers: ['nowhere'] } }), /gateway\.dns\.resolvers/);
    assert.equal(hop.accepted.length, 0);
    await follows(cluster, sets(mx(true)));
    await until('it came', () => hop.accepted.length === 1, BOUND_MS, cluster.gateway);
    assert.equal(broken.asked.length, before, 'nobody asks it any more');
  });
});
