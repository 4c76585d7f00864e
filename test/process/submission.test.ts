/**
 * Submission by a whole gateway process: `twinpost user` makes the line, `config check` and the start refuse the same bad
 * files, and a user that is added while the gateway runs may send.
 */
import assert from 'node:assert/strict';
import { appendFileSync, chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { connect } from 'node:tls';

import { toAscii } from '../../src/platform/node/idna.js';
import { parseUsers } from '../../src/gateway/inbound/auth/users.js';
import { selfSigned } from '../dialog/self-signed.js';
import { startCluster, until } from './cluster.js';
import type { Daemon } from './cluster.js';
import { freePorts } from './free-ports.js';
import { sayAll } from './smtp-talk.js';
import { twinpost } from './twinpost.js';

const tls = selfSigned();
const BOUND_MS = 20_000;
const needsTls = { timeout: 120_000, skip: tls === undefined ? 'openssl is missing' : false };

/** All that is answered to these lines, within TLS from the start. */
function submit(port: number, lines: readonly string[]): Promise<string> {
  return sayAll(connect({ port, host: '127.0.0.1', rejectUnauthorized: false }), lines);
}

const plain = (user: string, password: string): string => `AUTH PLAIN ${Buffer.from(`\0${user}\0${password}`).toString('base64')}`;

test('a user made by twinpost submits; one that is added later does, too', needsTls, async () => {
  assert.ok(tls !== undefined);
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-submission-'));
  const usersFile = path.join(folder, 'users');
  const made = await twinpost(['user', 'alice@example.org', '--scram'], 'secret\n');
  assert.equal(made.code, 0, made.error);
  assert.equal(parseUsers(made.out, toAscii).find('alice@example.org')?.verifier.kind, 'scram');
  writeFileSync(usersFile, made.out);
  const [port = 0] = await freePorts(1);
  const cluster = await startCluster({
    gateway: {
      smtp: {
        listen: [{ address: `127.0.0.1:${String(port)}`, role: 'submission', tls: 'implicit' }],
        tls: { cert: tls.certFile, key: tls.keyFile }, users: usersFile, relay_networks: ['192.0.2.0/24'],
      },
    },
  });
  try {
    const mail = (user: string, password: string): string[] => ['EHLO a', plain(user, password), `MAIL FROM:<${user}>`, 'RCPT TO:<b@a.example>', 'DATA', 'Subject: x\r\n\r\nhello\r\n.', 'QUIT'];
    const sent = await submit(port, mail('alice@example.org', 'secret'));
    assert.match(sent, /235 2\.7\.0 /);
    assert.match(sent, /250 2\.0\.0 Ok: queued as /);
    await cluster.sinkHas(1);
    await until('the log names the user', () => /"event":"received",[^\n]*"tls":"TLSv1\.3","user":"alice@example\.org"/.test(cluster.gateway.log()), BOUND_MS, cluster.gateway);
    assert.match(await submit(port, ['EHLO a', plain('bob@example.org', 'builder'), 'QUIT']), /535 5\.7\.8 /);
    const other = await twinpost(['user', 'bob@example.org'], 'builder');
    appendFileSync(usersFile, other.out);
    // The file is looked at once a second.
    while (!(await submit(port, ['EHLO a', plain('bob@example.org', 'builder'), 'QUIT'])).includes('235 2.7.0')) await new Promise((resolve) => setTimeout(resolve, 200));
    assert.match(await submit(port, mail('bob@example.org', 'builder')), /250 2\.0\.0 Ok: queued as /);
    await cluster.sinkHas(2);
    const metrics = await (await fetch(`http://127.0.0.1:${String(cluster.adminPort)}/metrics`)).text();
    assert.match(metrics, /^twinpost_auth_total\{mechanism="PLAIN",result="ok"\} [3-9]$/m);
    assert.match(metrics, /^twinpost_auth_total\{mechanism="PLAIN",result="failed"\} \d+$/m);
    assert.match(metrics, /^twinpost_tls_handshakes_total\{result="ok"\} \d+$/m);
    assert.match(metrics, /^twinpost_stale_files\{file="users"\} 0$/m);
    appendFileSync(usersFile, 'nonsense\n');
    await until('the log refuses the file', () => /"event":"users",[^\n]*"msg":"the new file of users can't be used/.test(cluster.gateway.log()), BOUND_MS, cluster.gateway);
    await until('status says so', async () => (await cluster.status()).reception?.stale_files.join() === 'users', BOUND_MS, cluster.gateway);
    await renewed(cluster.gateway);
  } finally {
    await cluster.stop();
    rmSync(folder, { recursive: true });
  }
});

/** The log says so, with who it is for and until when. */
async function renewed(gateway: Daemon): Promise<void> {
  const other = selfSigned('two.test');
  assert.ok(tls !== undefined && other !== undefined);
  copyFileSync(other.keyFile, tls.keyFile);
  await until('the log refuses the pair', () => /"level":"error",[^\n]*"event":"tls",[^\n]*"listener":"127\.0\.0\.1:\d+"/.test(gateway.log()), BOUND_MS, gateway);
  copyFileSync(other.certFile, tls.certFile);
  await until('the log names the certificate', () => /"level":"info",[^\n]*"event":"tls",[^\n]*"subject":"CN=two\.test","expires":"20/.test(gateway.log()), BOUND_MS, gateway);
}

const TABLE = /gateway\.yaml:9: gateway\.smtp\.recipients: expected a table of recipients, as twinpost table build makes it, found: '.*table': it is cut off$/;

test('files that can\'t be used are a line each with the place of their key, the same from config check and from the start', needsTls, async () => {
  const second = selfSigned();
  assert.ok(tls !== undefined && second !== undefined);
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-submission-'));
  const [file, usersFile, tableFile] = ['gateway.yaml', 'users', 'table'].map((name) => path.join(folder, name)) as [string, string, string];
  const config = (key: string): string => `gateway:
  id: gw-1
  host: box-1
  secret: sixteen-characters-and-more
  smtp:
    listen: [{address: '127.0.0.1:0', role: submission}]
    tls: {cert: '${tls.certFile}', key: '${key}'}
    users: '${usersFile}'
    recipients: '${tableFile}'
  routes: [{domain: '*', via: 'smtp://127.0.0.1:1'}]
  mirror: {replicas: 1}
  stores: [{id: s1, host: box-2, paths: [{name: A, address: '127.0.0.1:1'}]}]
  admin: {listen: '127.0.0.1:0'}
  state_dir: state
`;
  const good = (await twinpost(['user', 'alice@example.org'], 'secret\n')).out;
  try {
    for (const [key, users, expected] of [
      [second.keyFile, good, [/gateway\.yaml:7: gateway\.smtp\.tls\.key: expected the key of the certificate, in PEM, found: '.*' and '.*' are no certificate with its key in PEM: ./, TABLE]],
      [tableFile, good, [/gateway\.yaml:7: gateway\.smtp\.tls\.key: expected a key in PEM, found: '.*table' is no key in PEM: ./, TABLE]],
      [tls.keyFile, undefined, [/gateway\.yaml:8: gateway\.smtp\.users: expected a file of users, a line each as twinpost user NAME makes it, found: '.*users' can't be read: ENOENT$/, TABLE]],
      [tls.keyFile, 'alice:secret\n', [/gateway\.yaml:8: gateway\.smtp\.users: expected a file of users, .*, found: '.*users': line 1: expected \{SCRYPT\}… or ./, TABLE]],
      [tls.keyFile, '', [/gateway\.yaml:8: gateway\.smtp\.users: expected a file of users, .*, found: '.*users': it has no users$/, TABLE]],
      [tls.keyFile, good, [TABLE]],
    ] as const) {
      rmSync(usersFile, { force: true });
      if (users !== undefined) writeFileSync(usersFile, users);
      writeFileSync(file, config(key));
      writeFileSync(tableFile, 'anna');
      const [checked, started] = await Promise.all([twinpost(['config', 'check', file]), twinpost(['gateway', '--config', file])]);
      const lines = checked.error.trimEnd().split('\n');
      assert.equal(lines.length, expected.length, checked.error);
      for (const [index, line] of expected.entries()) assert.match(lines[index] ?? '', line);
      assert.ok(lines.every((line) => line.startsWith(folder)), checked.error);
      assert.deepEqual([checked.code, started.code], [1, 1]);
      assert.equal(started.error, checked.error);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('config check tells what clients meet at each listener, and of routes that only the table knows', needsTls, async () => {
  // The other one has been renewed since.
  const own = selfSigned();
  assert.ok(own !== undefined);
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-submission-'));
  const [file, usersFile, text, tableFile] = ['gateway.yaml', 'users', 'text', 'table'].map((name) => path.join(folder, name)) as [string, string, string, string];
  try {
    writeFileSync(usersFile, (await twinpost(['user', 'alice@example.org', '--scram'], 'secret\n')).out, { mode: 0o600 });
    writeFileSync(text, 'a@example.org route=boxes\nb@example.org route=box-17\n');
    assert.equal((await twinpost(['table', 'build', text, tableFile])).code, 0);
    writeFileSync(file, `gateway:
  id: gw-1
  host: box-1
  secret: sixteen-characters-and-more
  smtp:
    listen:
      - 127.0.0.1:2525
      - {address: '[::1]:2587', role: submission}
      - {address: '127.0.0.1:2465', role: submission, tls: implicit, proxy: [127.0.0.1]}
    tls: {cert: '${own.certFile}', key: '${own.keyFile}'}
    users: users
    recipients: table
    postmaster: ops@example.org
  routes: [{domain: '*', via: 'smtp://127.0.0.1:1', name: boxes}]
  mirror: {replicas: 1}
  stores: [{id: s1, host: box-2, paths: [{name: A, address: '127.0.0.1:1'}]}]
  state_dir: state
  hostname: mx.test
`);
    const { code, out, error } = await twinpost(['config', 'check', file]);
    assert.equal(code, 0, error);
    assert.deepEqual(out.split('\n').filter((line) => line.startsWith('#')), [
      '# listens on 127.0.0.1:2525: relay, STARTTLS, no AUTH',
      '# listens on [::1]:2587: submission, STARTTLS, AUTH SCRAM-SHA-256 PLAIN LOGIN within TLS',
      '# listens on 127.0.0.1:2465: submission, TLS before the greeting, AUTH SCRAM-SHA-256 PLAIN LOGIN within TLS, a PROXY header of 127.0.0.1',
    ]);
    assert.match(error, /^\/.*gateway\.yaml:12: gateway\.smtp\.recipients: warning: the table names routes that gateway\.routes does not have: 'box-17'; [^\n]*\n[^\n]*gateway\.yaml:9: gateway\.smtp\.listen\[2\]\.role: warning: strangers may guess passwords here [^\n]*\n$/);
    chmodSync(usersFile, 0o644);
    appendFileSync(usersFile, (await twinpost(['user', 'bob@example.org'], 'secret\n')).out);
    const again = await twinpost(['config', 'check', file]);
    assert.equal(again.code, 0);
    assert.match(again.error, /gateway\.yaml:11: gateway\.smtp\.users: warning: everybody on this machine may read '.*users': chmod o-r\n/);
    assert.match(again.out, /\n# listens on \[::1\]:2587: submission, STARTTLS, AUTH PLAIN LOGIN within TLS \(1 of 2 users have no verifier for SCRAM-SHA-256, /);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('twinpost user says what is wrong in one line', { timeout: 120_000 }, async () => {
  for (const [args, input, error] of [
    [['user', 'alice@example.org'], '', /no password came on stdin/],
    [['user', 'app1'], 'secret\n', /expected addresses that 'app1' may send from/],
    [['user', 'a b'], 'secret\n', /expected a name without spaces/],
    [['user', 'app1', '--address', 'nowhere'], 'secret\n', /expected an address, @DOMAIN or \*, found 'nowhere'/],
    [['user', 'alice@example.org'], 'x'.repeat(2000), /longer than 1024 bytes/],
    [['user', 'a:b@example.org'], 'secret\n', /expected a name without ':', which ends it in the file, found 'a:b@example\.org'/],
    [['user', 'alice@example.org'], Buffer.from('p\xe4ss\n', 'latin1'), /expected a password in UTF-8, found other bytes/],
    [['user', 'alice@example.org'], '\u00ad\n', /no password came on stdin/],
  ] as const) {
    const ended = await twinpost(args, input);
    assert.equal(ended.code, 1);
    assert.match(ended.error, error);
    assert.equal(ended.error.trimEnd().split('\n').length, 1);
  }
});

test('a TLS session begun with one worker goes on with the other', needsTls, async () => {
  assert.ok(tls !== undefined);
  const [port = 0] = await freePorts(1);
  const cluster = await startCluster({
    workers: 2,
    gateway: {
      memory: { limit: '1GiB' },
      smtp: { listen: [{ address: `127.0.0.1:${String(port)}`, tls: 'implicit' }], tls: { cert: tls.certFile, key: tls.keyFile } },
    },
  });
  try {
    const begin = (session?: Buffer): Promise<{ readonly isReused: boolean; readonly session: Buffer | undefined }> => new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, maxVersion: 'TLSv1.2', ...(session === undefined ? {} : { session }) });
      socket.once('error', reject);
      socket.once('data', () => {
        resolve({ isReused: socket.isSessionReused(), session: socket.getSession() });
        socket.destroy();
      });
    });
    const { session } = await begin();
    for (let i = 0; i < 12; i++) assert.equal((await begin(session)).isReused, true);
  } finally {
    await cluster.stop();
  }
});
