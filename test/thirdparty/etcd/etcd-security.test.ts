/**
 * Users and passwords, roles, TLS and client certificates: what works, and what an operator reads when it
 * does not.
 */
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { crc32 } from '../../../src/platform/node/checksum.js';
import type { EventLog } from '../../../src/platform/ports.js';
import { openRegister } from '../../../src/register/running/open-register.js';
import { Hand } from '../../unit/register/contract.js';
import { QUIET, makeFolder, removeFolder, until } from '../../unit/register/real-world.js';
import type { RealWorld } from '../../unit/register/real-world.js';
import { mustRun } from '../support.js';
import { EtcdCluster } from './etcd-cluster.js';

const folder = makeFolder();
after(() => {
  removeFolder(folder);
});

const file = (name: string): string => join(folder, name);

/** An authority, and a certificate by it: NAME.crt and NAME.key. */
async function makeAuthority(name: string): Promise<void> {
  const subject = [
    '-subj',
    `/CN=${name}`,
    '-days',
    '2',
    '-keyout',
    file(`${name}.key`),
    '-out',
    file(`${name}.crt`),
  ];
  await mustRun('openssl', [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    ...subject,
  ]);
}

async function makeCertificate(name: string, authority: string, altName: string): Promise<void> {
  const [key, request, certificate] = [file(`${name}.key`), file(`${name}.csr`), file(`${name}.crt`)];
  await mustRun('openssl', [
    'req',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-subj',
    `/CN=${name}`,
    '-addext',
    `subjectAltName=${altName}`,
    '-keyout',
    key,
    '-out',
    request,
  ]);
  await mustRun('openssl', [
    'x509',
    '-req',
    '-in',
    request,
    '-copy_extensions',
    'copy',
    '-days',
    '2',
    '-CA',
    file(`${authority}.crt`),
    '-CAkey',
    file(`${authority}.key`),
    '-CAcreateserial',
    '-out',
    certificate,
  ]);
}

/** What a client of these options says while it can't get in. */
async function whyNot(world: RealWorld, expected: RegExp): Promise<void> {
  const client = world.client();
  await until(() => expected.test(client.state.why), `the reason is told: ${client.state.why}`).catch(
    (error: unknown) => {
      assert.fail(`${String(error)}; last: ${client.state.why}`);
    },
  );
  assert.equal(client.state.isUp, false);
}

test('a user with a role for the prefix works in it; what is wrong is told', async () => {
  const cluster = await EtcdCluster.start(1);
  const worlds: RealWorld[] = [];
  const world = (...options: Parameters<EtcdCluster['world']>): RealWorld => {
    const made = cluster.world(...options);
    worlds.push(made);
    return made;
  };
  try {
    await cluster.isReady();
    await cluster.ctl('user', 'add', 'root:top');
    await cluster.ctl('user', 'grant-role', 'root', 'root');
    await cluster.ctl('role', 'add', 'mail');
    await cluster.ctl('role', 'grant-permission', 'mail', 'readwrite', '--prefix=true', '/twinpost/mail/');
    await cluster.ctl('user', 'add', 'gw:secret');
    await cluster.ctl('user', 'grant-role', 'gw', 'mail');
    await cluster.ctl('auth', 'enable');
    const login = { user: 'gw', password: 'secret' };
    const own = world({ cluster: 'mail', login });
    const hand = new Hand(own);
    const lease = await hand.session();
    const first = await hand.put('a', 'x', 0, { session: lease.session });
    const watcher = hand.watch('');
    await watcher.sees('snapshot a');
    await hand.put('a', 'y', first);
    await watcher.sees('a=y');

    await whyNot(
      world({ cluster: 'other', login }),
      /permission denied: give the user's role this prefix: etcdctl role grant-permission/,
    );
    await whyNot(
      world({ cluster: 'mail', login: { user: 'gw', password: 'wrong' } }),
      /authentication failed.*: are `user` and `password` those of/,
    );
    await whyNot(world({ cluster: 'mail' }), /user name is empty.*: etcd asks for a user/);

    // Tokens are in etcd's memory: after its restart everybody signs in anew.
    const [node] = cluster.nodes;
    assert.ok(node !== undefined);
    await node.kill();
    cluster.startNode(node);
    await until(() => !hand.register.state.isUp, 'away');
    await until(() => hand.register.state.isUp, 'back');
    await hand.put('c', 'x');
  } finally {
    for (const each of worlds) await each.stop();
    await cluster.stop();
  }
});

test('TLS: etcd is verified, a client certificate is shown; what is wrong is told', async () => {
  await makeAuthority('ca');
  await makeAuthority('other-ca');
  await makeCertificate('server', 'ca', 'IP:127.0.0.1');
  await makeCertificate('client', 'ca', 'DNS:gw-1');
  const cluster = await EtcdCluster.start(1, {
    cert: file('server.crt'),
    key: file('server.key'),
    clientCa: file('ca.crt'),
  });
  const read = (name: string): string => readFileSync(file(name), 'utf8');
  const tls = { ca: read('ca.crt'), key: read('client.key'), cert: read('client.crt') };
  const worlds = [{ tls }, { tls: { ...tls, ca: read('other-ca.crt') } }, {
    tls: { ca: tls.ca, key: undefined, cert: undefined },
  }, { endpoints: cluster.endpoints.map((url) => url.replace('https', 'http')) }].map((options) =>
    cluster.world(options)
  );
  const [good, otherCa, noCertificate, plain] = worlds as [RealWorld, RealWorld, RealWorld, RealWorld];
  try {
    await cluster.isReady({ tls });
    const hand = new Hand(good);
    const watcher = hand.watch('');
    await watcher.sees('snapshot ');
    await hand.put('a', 'x');
    await watcher.sees('a=x');
    await whyNot(
      otherCa,
      /https:.*(unable to verify|self.signed|unable to get).*: does `ca` hold the authority/,
    );
    await whyNot(noCertificate, /: (does etcd trust the client certificate|does etcd speak TLS there)/);
    await whyNot(plain, /: does etcd speak TLS there/);
  } finally {
    for (const each of worlds) await each.stop();
    await cluster.stop();
  }
});

test('a renewed client certificate is shown at the next connection; one that can not be used is not', async () => {
  await makeAuthority('ca');
  await makeAuthority('old-ca');
  await makeCertificate('server', 'ca', 'IP:127.0.0.1');
  await makeCertificate('new', 'ca', 'DNS:gw-1');
  await makeCertificate('shown', 'old-ca', 'DNS:gw-1');
  const server = { cert: file('server.crt'), key: file('server.key'), clientCa: file('ca.crt') };
  const cluster = await EtcdCluster.start(1, server);
  const told: string[] = [];
  const tell: EventLog['info'] = (event, text) => {
    if (event === 'tls') told.push(text);
  };
  const { register, members, close } = await openRegister({
    kind: 'etcd', endpoints: cluster.endpoints, cluster: 'mail', user: '', password: '',
    caFile: file('ca.crt'), certFile: file('shown.crt'), keyFile: file('shown.key'), operationsMax: 128,
  }, { log: { ...QUIET, info: tell, error: tell }, crc32 });
  try {
    await until(() => /does etcd trust the client cert/.test(register.state.why), 'the old one is refused');
    copyFileSync(file('new.key'), file('shown.key'));
    copyFileSync(file('new.crt'), file('shown.crt'));
    await until(() => register.state.isUp, 'the new one is taken');
    assert.deepEqual((await members()).map(({ why }) => why), ['']);
    assert.equal(told.splice(0).at(-1), 'the certificate for the register was read anew');

    writeFileSync(file('shown.key'), 'nothing');
    const [node] = cluster.nodes;
    assert.ok(node !== undefined);
    await node.kill();
    await until(() => !register.state.isUp, 'away');
    cluster.startNode(node);
    await until(() => register.state.isUp, 'back by the one that was good');
    assert.deepEqual(told, ['a new certificate for the register can\'t be used, the old one stays']);
  } finally {
    await close();
    await cluster.stop();
  }
});
