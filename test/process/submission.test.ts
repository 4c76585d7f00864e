/**
 * Submission by a whole gateway process: `twinpost user` makes the line, `config check` and the start refuse the same bad
 * files, and a user that is added while the gateway runs may send.
 */
import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { connect } from 'node:tls';

import { parseUsers } from '../../src/gateway/inbound/auth/users.js';
import { selfSigned } from '../dialog/self-signed.js';
import { startCluster } from './cluster.js';
import { freePorts } from './free-ports.js';
import { sayAll } from './smtp-talk.js';
import { twinpost } from './twinpost.js';

const tls = selfSigned();
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
  assert.equal(parseUsers(made.out).find('alice@example.org')?.verifier.kind, 'scram');
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
    assert.match(await submit(port, ['EHLO a', plain('bob@example.org', 'builder'), 'QUIT']), /535 5\.7\.8 /);
    const other = await twinpost(['user', 'bob@example.org'], 'builder');
    appendFileSync(usersFile, other.out);
    // The file is looked at once a second.
    while (!(await submit(port, ['EHLO a', plain('bob@example.org', 'builder'), 'QUIT'])).includes('235 2.7.0')) await new Promise((resolve) => setTimeout(resolve, 200));
    assert.match(await submit(port, mail('bob@example.org', 'builder')), /250 2\.0\.0 Ok: queued as /);
    await cluster.sinkHas(2);
  } finally {
    await cluster.stop();
    rmSync(folder, { recursive: true });
  }
});

test('files that can\'t be used are one line, the same from config check and from the start', needsTls, async () => {
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
  try {
    for (const [key, users, error] of [
      [second.keyFile, '', /^twinpost: gateway: smtp\.tls: '.*' and '.*' are no certificate with its key in PEM: .*\n$/],
      [tls.keyFile, undefined, /^twinpost: gateway: smtp\.users: '.*users' can't be read: ENOENT\n$/],
      [tls.keyFile, 'alice:secret\n', /^twinpost: gateway: smtp\.users: '.*users', line 1: expected \{SCRYPT\}… or .*\n$/],
      [tls.keyFile, '', /^twinpost: gateway: smtp\.recipients: '.*table': it is cut off\n$/],
    ] as const) {
      rmSync(usersFile, { force: true });
      if (users !== undefined) writeFileSync(usersFile, users);
      writeFileSync(file, config(key));
      writeFileSync(tableFile, 'anna');
      const [checked, started] = await Promise.all([twinpost(['config', 'check', file]), twinpost(['gateway', '--config', file])]);
      assert.match(checked.error, error);
      assert.deepEqual([checked.code, started.code], [1, 1]);
      assert.equal(started.error, checked.error);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('twinpost user says what is wrong in one line', { timeout: 60_000 }, async () => {
  for (const [args, input, error] of [
    [['user', 'alice@example.org'], '', /no password came on stdin/],
    [['user', 'app1'], 'secret\n', /expected addresses that 'app1' may send from/],
    [['user', 'a b'], 'secret\n', /expected a name without spaces/],
    [['user', 'app1', '--address', 'nowhere'], 'secret\n', /expected an address, @DOMAIN or \*, found 'nowhere'/],
    [['user', 'alice@example.org'], 'x'.repeat(2000), /longer than 1024 bytes/],
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
