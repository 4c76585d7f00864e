/** Hosts of one route, each with a policy of TLS and a password of its own, by real processes. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until } from './cluster.js';
import { TlsHop, makeCertificates } from './tls-hop.js';
import { twinpost } from './twinpost.js';

const certificates = makeCertificates();
const whyNot = certificates === undefined ? 'openssl is missing' : false;

test('each host of a route is spoken to by its own TLS and password, and one that refuses ours costs the other nothing', { timeout: 120_000, skip: whyNot }, async (t) => {
  assert.ok(certificates !== undefined);
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-hosts-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const passwordFile = (name: string, password: string): string => {
    const file = join(folder, name);
    writeFileSync(file, `${password}\n`, { mode: 0o600 });
    return file;
  };
  const offers = ['8BITMIME', 'AUTH PLAIN'];
  const one = new TlsHop({ certificate: certificates.selfSigned('one.test'), offersInTls: offers, auth: { user: 'us-at-one', password: 'password-of-one' } });
  const two = new TlsHop({ certificate: certificates.issue('two.test'), isTlsFirst: true, offers, auth: { user: 'us-at-two', password: 'password-of-two' } });
  t.after(() => { for (const hop of [one, two]) hop.close(); });
  const [first, second] = [`smtp://127.0.0.1:${String(await one.listen())}`, `smtps://127.0.0.1:${String(await two.listen())}`];
  const cluster = await startCluster({
    sink: false,
    routes: [{
      domain: '*', via: [first, second], balance: true, tls: 'encrypt', auth: { user: 'us-at-one', password_file: passwordFile('one', 'password-of-one') },
      hosts: [{ host: second, tls: 'verify', ca_file: certificates.caFile, server_name: 'two.test', auth: { user: 'us-at-two', password_file: passwordFile('two', 'not yet') } }],
    }],
    gateway: { delivery: { retry: { first: '200ms', max: '500ms' } } },
  });
  t.after(() => cluster.stop());
  const send = (count: number): Promise<unknown> => runSend({ host: HOST, port: cluster.smtpPort, count, domains: ['x.example'] });

  await send(20);
  await until('all has come to the one that takes us', () => one.taken.length === 20, 30_000, cluster.gateway);
  assert.equal(two.taken.length, 0);
  passwordFile('two', 'password-of-two');
  await until('both take it', async () => {
    await send(5);
    return two.taken.length > 0;
  }, 30_000, cluster.gateway);
  assert.ok(one.taken.every(({ isSecure, user }) => isSecure && user === 'us-at-one'));
  assert.ok(two.taken.every(({ isSecure, user }) => isSecure && user === 'us-at-two'));
  assert.ok(two.named.every((name) => name === 'two.test') && !one.heard.includes('*AUTH PLAIN us-at-two'));
  const said = [...one.said, ...two.said].join('\n');
  assert.ok(!one.said.join('\n').includes(Buffer.from('\0us-at-two\0password-of-two').toString('base64')), said);

  const { out } = await twinpost(['explain', 'x.example', '--gateway', `${HOST}:${String(cluster.adminPort)}`]);
  assert.match(out, /^host {6}0 127\.0\.0\.1:\d+ {2}tls verify, before the greeting, server_name two\.test, as us-at-two$/m);
});
