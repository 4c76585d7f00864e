/**
 * REQUIRETLS and TLS-Required (RFC 8689) by real processes: what is offered where, what next hops are told, also after a
 * kill of the gateway, where a message fails, and that its report must have TLS as well; what is exported keeps it.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import tls from 'node:tls';
import { HOST, startCluster, until } from './cluster.js';
import { SmtpTalk } from './smtp-talk.js';
import { TlsHop, makeCertificates } from './tls-hop.js';
import { twinpost } from './twinpost.js';

const certificates = makeCertificates();
const whyNot = certificates === undefined ? 'openssl is missing' : false;

/** After STARTTLS, EHLO said. */
async function secureTalk(port: number): Promise<{ readonly talk: SmtpTalk; readonly offers: string }> {
  const clear = net.connect({ host: HOST, port });
  await once(clear, 'data');
  clear.write('STARTTLS\r\n');
  await once(clear, 'data');
  const socket = tls.connect({ socket: clear, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const talk = new SmtpTalk(socket);
  return { talk, offers: await talk.say('EHLO talk.example') };
}

async function put(talk: SmtpTalk, mail: string, to: string, header = ''): Promise<void> {
  for (const line of [`MAIL FROM:<me@able.example>${mail}`, `RCPT TO:<${to}>`, 'DATA', `Subject: to ${to}\r\n${header}\r\nhello\r\n.`]) {
    assert.match(await talk.say(line), /^[23]/, line);
  }
}

test('mail that must have TLS goes only where that is promised, through a kill; else it fails, and its report is like it', { timeout: 120_000, skip: whyNot }, async (t) => {
  assert.ok(certificates !== undefined);
  const certificate = certificates.issue('hop.test');
  const able = new TlsHop({ certificate, offers: ['8BITMIME', 'REQUIRETLS'] });
  const unable = new TlsHop({ certificate, offers: ['8BITMIME'] });
  const clear = new TlsHop({ offersStartTls: false, offers: ['REQUIRETLS'] });
  t.after(() => { for (const hop of [able, unable, clear]) hop.close(); });
  const route = async (domain: string, hop: TlsHop): Promise<Readonly<Record<string, unknown>>> => ({
    domain, name: domain, via: `smtp://127.0.0.1:${String(await hop.listen())}`, ...(hop === clear ? {} : { tls: 'verify', ca_file: certificates.caFile, server_name: 'hop.test' }),
  });
  const cluster = await startCluster({
    sink: false,
    routes: [await route('able.example', able), await route('unable.example', unable), await route('*', clear)],
    gateway: { smtp: { tls: { cert: certificate.certFile, key: certificate.keyFile } }, delivery: { retry: { first: '100ms', max: '500ms' } } },
  });
  t.after(() => cluster.stop());
  const log = (): string => cluster.gateway.log();

  const plain = await SmtpTalk.start(cluster.smtpPort);
  assert.doesNotMatch(await plain.say('EHLO talk.example'), /REQUIRETLS/);
  assert.match(await plain.say('MAIL FROM:<me@able.example> REQUIRETLS'), /^555 5\.5\.4/);
  const { talk, offers } = await secureTalk(cluster.smtpPort);
  assert.match(offers, /^250-REQUIRETLS\r$/m);
  assert.match(await talk.say('MAIL FROM:<me@able.example> REQUIRETLS=yes'), /^501/);

  // It waits while the next hop refuses TLS, and the gateway is killed.
  able.options = { ...able.options, toStartTls: '454 4.7.0 not now' };
  await put(talk, ' REQUIRETLS', 'one@able.example');
  await until('it waits', () => log().includes('454 4.7.0 not now'), 30_000, cluster.gateway);
  await cluster.gateway.kill();
  able.options = { certificate, offers: ['8BITMIME', 'REQUIRETLS'] };
  cluster.gateway.start();
  await cluster.gateway.ready();
  await until('it is there', () => able.taken.length === 1, 30_000, cluster.gateway);
  assert.deepEqual(able.said.filter((line) => line.startsWith('MAIL')).map((line) => / REQUIRETLS\b/.test(line)), [true]);

  // Neither without the promise, nor in clear whatever is promised there.
  const again = (await secureTalk(cluster.smtpPort)).talk;
  await put(again, ' REQUIRETLS', 'two@unable.example');
  await put(again, ' REQUIRETLS', 'three@clear.example');
  await until('both reports are there', () => able.taken.length === 3, 30_000, cluster.gateway);
  const reports = able.taken.slice(1).map(({ content }) => content);
  assert.deepEqual(reports.map((content) => /^Status: (.*?)\r?$/m.exec(content)?.[1]).sort(), ['5.7.10', '5.7.30']);
  assert.ok(reports.every((content) => !content.includes('\r\nhello\r\n')), 'the header alone comes back');
  assert.ok(able.said.filter((line) => line.startsWith('MAIL')).every((line) => / REQUIRETLS\b/.test(line)));
  assert.deepEqual([unable.taken.length, clear.taken.length], [0, 0]);
  await until('all three are in the log', () => log().match(/"event":"delivered".*"queue":"able\.example!tls"/g)?.length === 3, 30_000, cluster.gateway);

  // What asks for nothing goes there as before.
  await put(again, '', 'four@unable.example', 'TLS-Required: No\r\n');
  await put(again, '', 'five@clear.example');
  await until('both are there', () => unable.taken.length + clear.taken.length === 2, 30_000, cluster.gateway);
  assert.match(log(), /"queue":"unable\.example!any"/);
});

test('it is not offered where the links to stores are in clear: nobody could promise it', { timeout: 60_000, skip: whyNot }, async (t) => {
  const certificate = certificates?.issue('gw.test') ?? assert.fail('a certificate');
  const tlsFiles = { cert: certificate.certFile, key: certificate.keyFile };
  const cluster = await startCluster({ gateway: { insecure: true, smtp: { tls: tlsFiles } } });
  t.after(() => cluster.stop());
  const { talk, offers } = await secureTalk(cluster.smtpPort);
  assert.doesNotMatch(offers, /REQUIRETLS/);
  assert.match(await talk.say('MAIL FROM:<me@able.example> REQUIRETLS'), /^555 5\.5\.4/);
});

test('mail that must have TLS and was exported is sent again only where that is promised', { timeout: 120_000, skip: whyNot }, async (t) => {
  assert.ok(certificates !== undefined);
  const certificate = certificates.issue('hop.test');
  const away = new TlsHop({ certificate, offers: ['8BITMIME', 'REQUIRETLS'], toStartTls: '454 4.7.0 not now' });
  const able = new TlsHop({ certificate, offersInTls: ['8BITMIME', 'REQUIRETLS'] });
  const unable = new TlsHop({ certificate, offers: ['8BITMIME'] });
  const clear = new TlsHop({ offersStartTls: false, offers: ['8BITMIME', 'REQUIRETLS'] });
  const folder = join(mkdtempSync(join(tmpdir(), 'twinpost-requiretls-')), 'mails');
  t.after(() => {
    for (const hop of [away, able, unable, clear]) hop.close();
    rmSync(join(folder, '..'), { recursive: true, force: true });
  });
  const cluster = await startCluster({
    sink: false,
    routes: [{ domain: '*', name: 'away', via: `smtp://127.0.0.1:${String(await away.listen())}`, tls: 'verify', ca_file: certificates.caFile, server_name: 'hop.test' }],
    gateway: { smtp: { tls: { cert: certificate.certFile, key: certificate.keyFile } } },
  });
  t.after(() => cluster.stop());
  await put((await secureTalk(cluster.smtpPort)).talk, ' REQUIRETLS', 'one@away.example');
  await until('it waits', () => cluster.gateway.log().includes('454 4.7.0 not now'), 30_000, cluster.gateway);
  assert.equal((await twinpost(['queue', 'export', '--everything', folder, '--from', `${HOST}:${String(cluster.adminPort)}`])).code, 0);

  const send = async (hop: TlsHop, ...tlsOptions: readonly string[]): Promise<readonly unknown[]> => {
    const { code, error } = await twinpost(['send', '--spool', folder, '--to', `127.0.0.1:${String(await hop.listen())}`, ...tlsOptions]);
    return [code, /REQUIRETLS/.test(error), hop.taken.length];
  };
  const secure = ['--tls', 'starttls', '--ca', certificates.caFile, '--tls-name', 'hop.test'];
  assert.deepEqual(await send(clear), [1, true, 0]);
  assert.deepEqual(await send(unable, ...secure), [1, true, 0]);
  const left = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith('.json')) ?? '';
  assert.match(readFileSync(join(folder, left), 'utf8'), /"queue_name": "away!tls"/);
  assert.deepEqual(await send(able, ...secure), [0, false, 1]);
  assert.match(able.said.find((line) => line.startsWith('MAIL')) ?? '', / REQUIRETLS\b/);
});
