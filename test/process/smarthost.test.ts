/**
 * A smarthost with a password: a gateway delivers to another gateway, by its submission listener, as a user whom
 * `twinpost user` has made. A wrong password holds the mail and stands in no log; a right one in the file lets it go.
 */
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { selfSigned } from '../dialog/self-signed.js';
import { HOST, startCluster, until } from './cluster.js';
import { freePorts } from './free-ports.js';
import { twinpost } from './twinpost.js';

const tls = selfSigned();
const needsTls = { timeout: 120_000, skip: tls === undefined ? 'openssl is missing' : false };
const BOUND_MS = 20_000;
const USER = 'gw@relay.test';
const [RIGHT, WRONG] = ['p\u00e4ss und wort', 'guessed-by-nobody'];

test('mail goes to a gateway that takes mail of users; a wrong password holds it, spends no attempt, and is told nowhere', needsTls, async () => {
  assert.ok(tls !== undefined);
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-smarthost-'));
  const [usersFile, passwordFile] = ['users', 'password'].map((name) => path.join(folder, name)) as [string, string];
  writeFileSync(usersFile, (await twinpost(['user', USER, '--address', '*', '--scram'], `${RIGHT}\n`)).out, { mode: 0o600 });
  writeFileSync(passwordFile, `${WRONG}\n`, { mode: 0o600 });
  const [first = 0, later = 0] = await freePorts(2);
  const smarthost = await startCluster({
    gateway: {
      smtp: {
        listen: [
          { address: `${HOST}:${String(first)}`, role: 'submission', tls: 'implicit' }, { address: `${HOST}:${String(later)}`, role: 'submission', tls: 'starttls' },
        ],
        tls: { cert: tls.certFile, key: tls.keyFile }, users: usersFile, relay_networks: ['192.0.2.0/24'],
      },
    },
  });
  const more = { tls: 'verify', ca_file: tls.certFile, auth: { user: USER, password_file: passwordFile } };
  const cluster = await startCluster({
    sink: false,
    routes: [{ domain: 'a.example', via: `smtps://${HOST}:${String(first)}`, ...more }, { domain: '*', via: `smtp://${HOST}:${String(later)}`, ...more }],
    gateway: { delivery: { retry: { first: '500ms', max: '1s' } } },
  });
  try {
    const sent = await runSend({ host: HOST, port: cluster.smtpPort, connections: 2, domains: ['a.example', 'b.example'], count: 40 });
    assert.equal(sent.accepted, 40);
    const why = (relay: number): string => `${HOST}[${HOST}]:${String(relay)} refused our user and password: 535 5.7.8`;
    await until('both queues say why', () => [first, later].every((port) => cluster.gateway.log().includes(`"dsn":"4.7.8","why":"${why(port)}"`)), BOUND_MS, cluster.gateway);
    const { outages } = await cluster.status();
    assert.deepEqual(outages?.next_hops.map((hop) => hop.why).sort(), [why(first), why(later)].sort());
    assert.equal((await smarthost.sinkCounts()).messages, 0);

    writeFileSync(passwordFile, RIGHT);
    await smarthost.sinkHas(40);
    await cluster.drained();
    const delivered = (): string[] => cluster.gateway.log().split('\n').filter((line) => line.includes('"event":"delivered"'));
    // What is said of the last messages is written a little after their deletion.
    await until('each delivery is logged', () => delivered().length === 40, BOUND_MS, cluster.gateway);
    assert.ok(delivered().every((line) => line.includes('"attempt":1,') && line.includes('"verified":"yes"')));
    const log = cluster.gateway.log();
    assert.match(log, /"event":"auth",[^\n]*"msg":"a password for next hops was read anew"/);
    assert.match(smarthost.gateway.log(), new RegExp(`"event":"received",[^\n]*"user":"${USER}"`));
    assert.ok(log.split('\n').filter((line) => line.includes('next hop can not be reached')).length < 40);
    for (const secret of [RIGHT, WRONG]) {
      for (const form of [secret, Buffer.from(secret).toString('base64'), Buffer.from(`\0${USER}\0${secret}`).toString('base64')]) {
        assert.ok(!(log + smarthost.gateway.log() + JSON.stringify(outages)).includes(form), form);
      }
    }

    const file = path.join(cluster.folder, 'gateway.yaml');
    const checked = await twinpost(['config', 'check', file]);
    assert.ok(checked.code === 0 && checked.out.includes(`password_file: ${passwordFile}`) && !checked.out.includes(RIGHT), checked.error);
    chmodSync(passwordFile, 0o644);
    const refused = await twinpost(['config', 'check', file]);
    const line = readFileSync(file, 'utf8').split('\n').findIndex((text) => text.includes('password_file')) + 1;
    assert.equal(refused.code, 1);
    const expected = `${file}:${String(line)}: gateway.routes[0].auth.password_file: expected a file with a password, one line, found: everybody on this machine may read or write '${passwordFile}': chmod o-rw`;
    assert.equal(refused.error.split('\n')[0], expected);
  } finally {
    await cluster.stop();
    await smarthost.stop();
    rmSync(folder, { recursive: true });
  }
});
