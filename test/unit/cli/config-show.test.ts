/** `twinpost config show`: a file with all that holds, or with what is no default; and which configuration runs where. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { parse } from 'yaml';
import { runCli } from '../../../src/cli/main.js';
import { configurationHash, routesHash } from '../../../src/config/changes.js';
import { EMBEDDED_UP_YAML } from '../../../src/config/embedded.js';
import { parseConfig } from '../../../src/config/load.js';
import type { LoadResult } from '../../../src/config/load.js';
import { contextFor } from './played-context.js';
import { STATUS, STORE_STATUS } from './sample-answers.js';

const SECRET = 'nobody-may-see-this-word';

/** A value of each unit, and of each choice in a short form, some of them as they are by default. */
const GATEWAY = `register: {etcd: ['https://10.1.0.5:2379'], cluster: mail, user: root, password_file: etcd.password, max_txn_ops: 128}
gateway:
  id: gw-1
  host: box-1
  hostname: mx.example.com
  secret_file: links.secret
  state_dir: state
  insecure: true
  memory: {limit: 3GiB, accept: 75%, next_hop: 0.25}
  smtp:
    listen: ['127.0.0.1:2525', {address: '[::1]:587', dnsbl: [zen.example], tls: 'off', xclient_login: false}]
    postmaster: ops@example.com
    relay_networks: [127.0.0.0/8, '::1']
    relay_domains: [Example.com]
    users: {http: 'https://users.example.com/check?key=${SECRET}', timeout: 5000ms}
    hooks: [{module: policy.js, timeout: 250ms}]
    message_size_limit: 25600KiB
    min_data_rate: 1KiB/s
    data_timeout: 90s
    limits: {client: {messages: 100, data: 1GiB}}
  delivery: {retry: {first: 300s, max: 2h}, lifetime: 2d, mx: {mta_sts: off}}
  reports: discard
  routes:
    - {domain: a.example, via: 'smtps://a.example', concurrency: 20}
    - domain: b.example
      via: ['smtp://one.example:26', 'smtp://two.example:26']
      fallback: 'smtp://three.example:26'
      hosts: [{host: 'smtp://two.example:26', tls: none}]
      verp: {domain: bounces.example.com, secret_file: links.secret, valid_for: 240h}
    - {domain: c.example, name: c, via: mx, order: strict, when: {senders: ['<>']}}
    - {domain: '*', via: 'lmtp://127.0.0.1:24', lanes: 4}
  rescue: off
`;

type Read = Extract<LoadResult, { readonly ok: true }>;

interface Played {
  readonly file: string;
  read(text: string): Read;
  run(...args: readonly string[]): Promise<{ readonly code: number; readonly out: string; readonly errors: string }>;
}

/** A folder with the file and what it names. */
function play(t: { after(run: () => void): void }, text: string): Played {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'config-show-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  for (const name of ['links.secret', 'etcd.password', 'gw-1.secret', 'gw-2.secret']) writeFileSync(path.join(folder, name), SECRET, { mode: 0o600 });
  const file = path.join(folder, 'f.yaml');
  writeFileSync(file, text);
  return {
    file,
    read: (again) => {
      const result = parseConfig(again, file, { role: 'check' });
      assert.ok(result.ok, result.ok ? '' : `${result.errors.join('\n')}\n${again}`);
      return result;
    },
    run: async (...args) => {
      const said: string[] = [];
      const code = await runCli([...args], contextFor(said));
      const isError = (line: string): boolean => line.startsWith('! ');
      return { code, out: said.filter((line) => !isError(line)).join('\n'), errors: said.filter(isError).join('\n') };
    },
  };
}

/** What the programs get, but for lines of the file and its hash. */
function optionsOf({ config }: Read): unknown {
  return JSON.parse(JSON.stringify(config, (key, value: unknown) => (key === 'places' || key === 'configurationHash' ? undefined : value)));
}

test('all of a file is that file again, in units that people read, and no secret is in it', async (t) => {
  const { file, read, run } = play(t, GATEWAY);
  const { code, out, errors } = await run('config', 'show', file);
  assert.equal(code, 0, errors);
  assert.ok(!out.includes(SECRET));
  for (const line of [
    'limit: 3GiB', 'accept: 75%', 'next_hop: 25%', 'message_size_limit: 25MiB', 'min_data_rate: 1KiB/s', 'data_timeout: 90s', 'max: 2h', 'lifetime: 2d',
    'bounce_lifetime: 1d', 'heartbeat: 250ms', 'address: "[::1]:587"', 'via: smtps://a.example:465', 'without_route: discard', 'secret_file: links.secret', 'rescue: off',
    'http: https://users.example.com/check?(hidden)', 'hostname: mx.example.com', 'window: 8MiB', 'threads: 1', 'valid_for: 10d',
  ]) assert.ok(out.includes(`${line}\n`), `${line} in ${out}`);
  const whole = read(out.replace('?(hidden)', `?key=${SECRET}`));
  assert.deepEqual(optionsOf(whole), optionsOf(read(GATEWAY)));
  const { hash, routes_hash: routes } = hashesOf(read(GATEWAY));
  assert.ok(out.endsWith(`# gateway gw-1: configuration ${hash}, routes ${routes}`), out.slice(-200));
});

test('what differs from the defaults is the same configuration by its hash, and nothing else', async (t) => {
  const { file, read, run } = play(t, GATEWAY);
  const { out } = await run('config', 'show', file, '--changed');
  assert.throws(() => read(out), /users\.http: expected an address .*\(hidden\)/, 'what is hidden is put back first');
  const again = read(out.replace('?(hidden)', '?key=another'));
  assert.deepEqual(hashesOf(again), hashesOf(read(GATEWAY)));
  assert.deepEqual(optionsOf(read(out.replace('?(hidden)', `?key=${SECRET}`))), optionsOf(read(GATEWAY)));
  const { gateway, register } = parse(out) as { readonly gateway: Record<string, unknown>; readonly register: unknown };
  const { smtp, delivery, memory, routes } = gateway as { readonly smtp: Record<string, unknown>; readonly delivery: unknown; readonly memory: unknown; readonly routes: readonly unknown[] };
  assert.deepEqual(register, { etcd: ['https://10.1.0.5:2379'], cluster: 'mail', user: 'root', password_file: 'etcd.password' });
  assert.deepEqual(Object.keys(gateway), ['id', 'rescue', 'host', 'hostname', 'smtp', 'delivery', 'routes', 'reports', 'memory', 'secret_file', 'state_dir', 'insecure']);
  assert.deepEqual(memory, { limit: '3GiB', accept: '75%' });
  assert.deepEqual(delivery, { retry: { max: '2h' }, lifetime: '2d', mx: { mta_sts: false } });
  assert.deepEqual(smtp, {
    listen: [{ address: '127.0.0.1:2525' }, { address: '[::1]:587', tls: 'off', dnsbl: ['zen.example'] }], users: { http: 'https://users.example.com/check?(hidden)' },
    postmaster: 'ops@example.com', hooks: [{ module: 'policy.js', timeout: '250ms' }], relay_domains: ['example.com'], limits: { client: { messages: 100, data: '1GiB' } },
    min_data_rate: '1KiB/s', data_timeout: '90s',
  });
  assert.deepEqual(routes[3], { domain: '*', via: 'lmtp://127.0.0.1:24', lanes: 4 });
});

test('a file for up, and the examples, are themselves again', async (t) => {
  for (const text of [EMBEDDED_UP_YAML, ...['up', 'store', 'sink'].map((name) => readFileSync(`configs/${name}.yaml`, 'utf8'))]) {
    const { file, read, run } = play(t, text);
    const loaded = parseConfig(text, file, { role: 'check', secret: SECRET });
    if (!loaded.ok) assert.fail(loaded.errors.join('\n'));
    const { out, errors } = await run('config', 'show', file, '--changed');
    if (out === '') assert.fail(errors);
    assert.deepEqual(hashesOf(read(out.replaceAll('(hidden)', SECRET))), hashesOf(loaded));
  }
});

test('config check takes what is shown, as YAML and as JSON; of a secret in the file it says what is missing', async (t) => {
  const text = `gateway:
  id: gw-1
  host: box-1
  hostname: mx.example.com
  secret_file: links.secret
  state_dir: state
  mirror: {replicas: 1}
  routes: [{domain: '*', via: 'smtp://127.0.0.1:26'}]
  stores: [{id: s1, host: box-2, paths: [{name: A, address: '127.0.0.1:7401'}]}]
`;
  const { file, run } = play(t, text);
  for (const more of [[], ['--changed']]) {
    const shown = path.join(path.dirname(file), 'shown.yaml');
    writeFileSync(shown, (await run('config', 'show', file, ...more)).out);
    const checked = await run('config', 'check', shown, '--quiet');
    assert.deepEqual([checked.code, checked.out], [0, ''], checked.errors);
    const { configuration, processes } = JSON.parse((await run('config', 'show', file, ...more, '--json')).out) as { readonly configuration: unknown; readonly processes: readonly { readonly id: string }[] };
    writeFileSync(shown, JSON.stringify(configuration));
    assert.equal((await run('config', 'check', shown, '--quiet')).code, 0);
    assert.deepEqual(processes.map(({ id }) => id), ['gw-1']);
  }
  writeFileSync(file, text.replace('secret_file: links.secret', `secret: ${SECRET}`));
  const { out } = await run('config', 'show', file);
  assert.ok(out.includes('secret: (hidden)\n') && !out.includes(SECRET));
  writeFileSync(file, out);
  const refused = await run('config', 'check', file);
  assert.equal(refused.code, 1);
  assert.match(refused.errors, /^! \S+f\.yaml:\d+: gateway\.secret: expected at least 16 characters, [^\n]*$/, 'it would start by a secret that everybody knows');
});

test('a file that is wrong, and words that do not go together, are errors', async (t) => {
  const { file, run } = play(t, 'gateway: {id: 1}');
  const bad = await run('config', 'show', file);
  assert.deepEqual([bad.code, bad.out], [1, '']);
  assert.match(bad.errors, /f\.yaml:1: gateway\.id: expected a name /);
  assert.equal((await run('config', 'show', '--changed')).code, 2);
  assert.equal((await run('config', 'show', file, '--from', '127.0.0.1:1')).code, 2);
});

test('without a file each process of the group tells what it runs by, and which file it refused', async (t) => {
  const configuration = { hash: '0123456789ab', since: 1_800_000_000, read: 1_800_000_060, refused: '', refused_at: null };
  const server = (kind: 'gateway' | 'store', id: string, status: unknown, others: () => readonly unknown[]): Promise<number> => new Promise((resolve) => {
    const listening = http.createServer((request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(request.url === '/api/v1/group' ? { members: [{ id, kind, admin: null, away: false, self: true }, ...others()] } : status));
    }).listen(0, '127.0.0.1', () => { resolve((listening.address() as AddressInfo).port); });
    t.after(() => { listening.close(); });
  });
  const refused = { ...configuration, hash: 'ba9876543210', refused: 's.yaml:3: store.lease: expected a time, found "x"', refused_at: 1_800_000_060 };
  const store = await server('store', 's1', { ...STORE_STATUS, store_id: 's1', configuration: refused }, () => []);
  const gateway = await server('gateway', 'gw-1', { ...STATUS, configuration: { ...configuration, routes_hash: 'aaaaaaaaaaaa' } }, () =>
    [{ id: 's1', kind: 'store', admin: `127.0.0.1:${String(store)}`, away: false, self: false }]);
  const { run } = play(t, '');
  const from = ['--from', `127.0.0.1:${String(gateway)}`];
  const { code, out } = await run('config', 'show', ...from);
  assert.equal(code, 0);
  const [one, two, three] = out.split('\n');
  assert.equal(one, 'gw-1: configuration 0123456789ab, routes aaaaaaaaaaaa, since 2027-01-15T08:00:00Z, read 2027-01-15T08:01:00Z');
  assert.match(two ?? '', /^s1: configuration ba9876543210, since /);
  assert.match(three ?? '', /^ {2}RELOAD {6}ERROR: refused .*: s\.yaml:3: store\.lease: expected a time, found "x"; /);
  const json = (await run('config', 'show', '--json', ...from)).out.split('\n').map((line) => JSON.parse(line) as unknown);
  assert.deepEqual(json, [{ kind: 'gateway', id: 'gw-1', ...configuration, routes_hash: 'aaaaaaaaaaaa' }, { kind: 'store', id: 's1', ...refused }]);
});

function hashesOf(read: Read): { readonly hash: string; readonly routes_hash: string; readonly stores: readonly string[] } {
  return { hash: configurationHash(read), routes_hash: routesHash(read), stores: read.config.stores.map(({ configurationHash: hash }) => hash) };
}
