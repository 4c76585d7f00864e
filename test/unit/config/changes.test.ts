/** What two readings of a file differ in: which keys, which of them need a restart, and the short names. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { changesBetween, configurationHash, keysOfStore, routesHash, storeHash } from '../../../src/config/changes.js';
import type { KeysInFile } from '../../../src/config/changes.js';
import { parseConfig } from '../../../src/config/load.js';
import { pathText } from '../../../src/config/problems.js';

const ROUTES = `
    - {domain: a.example, via: 'smtp://127.0.0.1:26'}
    - {domain: '*', via: 'smtp://127.0.0.1:27'}
`;

const FROM_FILE = `
gateway:
  id: gw-1
  host: box-1
  secret_file: FILE
  stores: [{id: s1, host: box-2, paths: [{name: A, address: '127.0.0.1:7401'}]}, {id: s2, host: box-3, paths: [{name: A, address: '127.0.0.1:7402'}]}]
  routes:${ROUTES}`;

function keysOf(more: string, routes = ROUTES, secret = 'a secret of 16 or more characters'): KeysInFile {
  const text = `
gateway:
  id: gw-1
  host: box-1
  secret: ${secret}
  stores: [{id: s1, host: box-2, paths: [{name: A, address: '127.0.0.1:7401'}]}, {id: s2, host: box-3, paths: [{name: A, address: '127.0.0.1:7402'}]}]
  routes:${routes}${more}`;
  const result = parseConfig(text, 'f.yaml', { role: 'gateway', stateDir: '/state' });
  if (!result.ok) throw new Error(result.errors.join('\n'));
  return result;
}

function changes(before: KeysInFile, after: KeysInFile): { readonly changed: readonly string[]; readonly restart: readonly string[] } {
  const { changed, needRestart } = changesBetween(before, after);
  return { changed, restart: needRestart.map(pathText) };
}

describe('changes between two readings of a file', () => {
  test('are none between a file and itself, nor with a default that is written out', () => {
    assert.deepEqual(changes(keysOf(''), keysOf('  smtp: {recipient_limit: 1000}\n')), { changed: [], restart: [] });
  });

  test('of what a running gateway follows need no restart', () => {
    const after = keysOf(`  smtp: {relay_networks: [10.0.0.0/8], limits: {client: {messages: 5}}, listen: ['127.0.0.1:2600']}
  delivery: {retry: {first: 1s}, timeouts: {connect: 3s}}
  log: {level: debug, mail: false}
  hostname: other.example
  reports: {delay_after: 1h}
  tls_reports: {organization: Us, contact: tls@a.example}
`);
    assert.deepEqual(changes(keysOf(''), after), {
      changed: [
        'gateway.smtp.listen', 'gateway.smtp.relay_networks', 'gateway.smtp.limits.client.messages', 'gateway.delivery.retry.first',
        'gateway.delivery.timeouts.connect', 'gateway.reports.delay_after', 'gateway.log.level', 'gateway.log.mail', 'gateway.hostname', 'gateway.tls_reports',
      ],
      restart: [],
    });
  });

  test('of the secret of return addresses count, and need none, though its file is named as before', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'twinpost-verp-'));
    const file = path.join(folder, 'secret');
    const read = (secret: string): KeysInFile => {
      writeFileSync(file, secret, { mode: 0o600 });
      return keysOf('', `\n    - {domain: '*', via: 'smtp://127.0.0.1:27', name: out, verp: {domain: b.example, secret_file: ${file}}}\n`);
    };
    const [before, same, after] = ['0123456789abcdef', '0123456789abcdef', 'fedcba9876543210'].map(read);
    rmSync(folder, { recursive: true });
    assert.ok(before !== undefined && same !== undefined && after !== undefined);
    assert.deepEqual(changes(before, same), { changed: [], restart: [] });
    assert.deepEqual(changes(before, after), { changed: ['gateway.routes[0].verp.secret_file'], restart: [] });
  });

  test('of the secret of links need none, whether it stands in the file or in one of its own', () => {
    assert.deepEqual(changes(keysOf(''), keysOf('', ROUTES, 'another secret of 16 characters')), { changed: ['gateway.secret'], restart: [] });
    const folder = mkdtempSync(path.join(tmpdir(), 'twinpost-links-'));
    const file = path.join(folder, 'secret');
    const read = (secret: string): KeysInFile => {
      writeFileSync(file, secret, { mode: 0o600 });
      const result = parseConfig(FROM_FILE.replace('FILE', file), 'f.yaml', { role: 'gateway', stateDir: '/state' });
      assert.ok(result.ok);
      return result;
    };
    assert.deepEqual(changes(read('0123456789abcdef'), read('0123456789abcdef\nfedcba9876543210')), { changed: ['gateway.secret_file'], restart: [] });
    rmSync(folder, { recursive: true });
  });

  test('of anything else need one, each by its name', () => {
    const after = keysOf('  memory: {limit: 1GiB}\n  workers: 2\n  log: {file: /tmp/x.log}\n  delivery: {order: strict}\n  mirror: {partitions: 8}\n', ROUTES);
    assert.deepEqual(changes(keysOf(''), after).restart.toSorted(), [
      'gateway.delivery.order', 'gateway.log.file', 'gateway.memory.limit', 'gateway.mirror.partitions', 'gateway.workers',
    ]);
  });

  test('of routes are followed, but for what mail in their queues was put there by', () => {
    const other = `
    - {domain: b.example, via: 'smtp://127.0.0.1:30', order: strict}
    - {domain: a.example, via: 'smtp://127.0.0.1:28', concurrency: 3}
    - {domain: '*', via: 'smtp://127.0.0.1:29', tls: encrypt}
`;
    assert.deepEqual(changes(keysOf(''), keysOf('', other)), { changed: ['gateway.routes'], restart: [] });
    const kept = `
    - {domain: a.example, via: 'smtp://127.0.0.1:26', order: strict, lanes: 4, lanes_by: sender}
    - {domain: '*', via: mx}
`;
    assert.deepEqual(changes(keysOf(''), keysOf('', kept)).restart, ['gateway.routes[0].order', 'gateway.routes[0].lanes', 'gateway.routes[0].lanes_by', 'gateway.routes[1].via']);
  });

  test('of secrets in files count by what the files hold', () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'twinpost-changes-'));
    try {
      const write = (text: string): void => { writeFileSync(path.join(folder, 'secret'), text, { mode: 0o600 }); };
      const srs = `  smtp: {srs: {domain: srs.example, secret_file: ${path.join(folder, 'secret')}}}\n`;
      const http = `  smtp: {users: {http: 'http://127.0.0.1:9', token_file: ${path.join(folder, 'secret')}}}\n`;
      write('a secret of sixteen characters');
      const [srsBefore, httpBefore] = [keysOf(srs), keysOf(http)];
      write('another one of sixteen characters');
      assert.deepEqual(changes(srsBefore, keysOf(srs)), { changed: ['gateway.smtp.srs.secret_file'], restart: [] });
      assert.deepEqual(changes(httpBefore, keysOf(http)), { changed: ['gateway.smtp.users.token_file'], restart: [] });
      assert.equal(configurationHash(srsBefore), configurationHash(keysOf(srs)), 'no secret is in the name');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

test('gateways whose routes are the same have one name for them, whatever else differs', () => {
  const [one, two] = [keysOf(''), keysOf('  smtp: {recipient_limit: 500}\n')];
  assert.match(configurationHash(one), /^[0-9a-f]{12}$/);
  assert.notEqual(configurationHash(one), configurationHash(two));
  assert.equal(routesHash(one), routesHash(two));
  assert.notEqual(routesHash(one), routesHash(keysOf('', "\n    - {domain: '*', via: 'smtp://127.0.0.1:99'}\n")));
  assert.equal(configurationHash(one), configurationHash(keysOf('', ROUTES, 'a wholly different secret')));
});

test('each store has a name for its part of the file, whatever its secret, the gateway and other stores', () => {
  const hashes = (ports: readonly number[], secret: string, more = ''): readonly string[] => {
    const stores = ports.map((port, i) => `  - {id: s${String(i)}, host: h${String(i)}, secret: ${secret}, paths: [{name: A, address: '127.0.0.1:${String(port)}'}], admin: {listen: '127.0.0.1:${String(port + 1000)}'}, gateways: [{id: g}]}`);
    const result = parseConfig(`stores:\n${stores.join('\n')}\n${more}`, 'x.yaml', { role: 'up', secret: 'sixteen characters and more' });
    assert.ok(result.ok, JSON.stringify(result));
    assert.deepEqual(result.config.stores.map((store) => store.configurationHash), ports.map((_port, i) => storeHash(result.value, i)));
    return result.config.stores.map((store) => store.configurationHash);
  };
  const before = hashes([9400, 9500], 'sixteen-characters-and-more');
  assert.match(before[0] ?? '', /^[0-9a-f]{12}$/);
  assert.notEqual(before[0], before[1]);
  assert.deepEqual(hashes([9400, 9500], 'another-of-sixteen-characters'), before);
  const after = hashes([9400, 9501], 'sixteen-characters-and-more');
  assert.deepEqual([after[0] === before[0], after[1] === before[1]], [true, false]);
});

describe('changes of one store between two readings of a file', () => {
  const SECRET = 'a secret of 16 or more characters';
  const storeAt = (id: string, port: number, more = ''): string =>
    `{id: ${id}, host: box-${id}, secret: ${SECRET}, paths: [{name: A, address: '127.0.0.1:${String(port)}'}], gateways: [{id: gw-1}], admin: {listen: '127.0.0.1:${String(port + 1000)}'}${more}}`;
  const read = (text: string): KeysInFile => {
    const result = parseConfig(text, 'f.yaml', { role: 'check' });
    if (!result.ok) throw new Error(result.errors.join('\n'));
    return result;
  };
  const of = (id: string, before: string, after: string, isUp = false): { readonly changed: readonly string[]; readonly restart: readonly string[] } => {
    const { changed, needRestart } = keysOfStore(id, isUp).changes(read(before), read(after));
    return { changed, restart: needRestart.map(pathText) };
  };

  test('are followed where they say whom it lets in, or what it logs', () => {
    const before = `store: ${storeAt('s1', 7401)}`;
    assert.deepEqual(of('s1', before, before), { changed: [], restart: [] });
    const after = before.replace(SECRET, 'another secret of 16').replace('[{id: gw-1}]', '[{id: gw-1}, {id: gw-2}], log: {level: debug}');
    assert.deepEqual(of('s1', before, after), { changed: ['store.secret', 'store.gateways', 'store.log.level'], restart: [] });
    const { hash } = keysOfStore('s1', false);
    assert.notEqual(hash(read(before)), hash(read(after)));
  });

  test('of anything else need a restart, each by its name', () => {
    const before = `store: ${storeAt('s1', 7401)}`;
    const after = `register: {etcd: ['http://127.0.0.1:2379'], cluster: c}\nstore: ${storeAt('s2', 7402, ', memory: {limit: 300MiB}')}`;
    assert.deepEqual(of('s1', before, after).restart.toSorted(), ['register', 'store.admin.listen.port', 'store.host', 'store.id', 'store.memory.limit', 'store.paths']);
  });

  test('are those of its own section, wherever it stands in a list', () => {
    const [before, after] = [[storeAt('s1', 7401), storeAt('s2', 7402)], [storeAt('s2', 7402, ', log: {level: warn}'), storeAt('s1', 7401)]]
      .map((stores) => `gateway: {id: gw-1, host: box-1, secret: ${SECRET}, state_dir: /state, routes: [{domain: '*', via: 'smtp://127.0.0.1:26'}]}\nstores: [${stores.join()}]`);
    assert.ok(before !== undefined && after !== undefined);
    assert.deepEqual(of('s1', before, after), { changed: [], restart: [] });
    assert.deepEqual(of('s2', before, after), { changed: ['stores[0].log.level'], restart: [] });
    assert.deepEqual(of('s2', before, before.replace('id: gw-1, host', 'id: gw-9, host').replace(SECRET, 'another secret of 16')), { changed: ['gateway.secret'], restart: [] });
    const left = (text: string): string => text.replaceAll(', gateways: [{id: gw-1}]', '');
    assert.deepEqual(of('s2', left(before), left(before).replace('id: gw-1, host', 'id: gw-9, host'), true), { changed: ['gateway.id'], restart: ['gateway.id'] });
  });

  test('are followed where it gets its first list of gateways, or has one no more; by the one of its file, under up, as that is', () => {
    const named = `register: {etcd: ['http://127.0.0.1:2379'], cluster: c}\ngateway: {id: gw-1, host: box-1, secret: ${SECRET}, state_dir: /state, routes: [{domain: '*', via: 'smtp://127.0.0.1:26'}]}\nstore: ${storeAt('s1', 7401)}`;
    const unnamed = named.replace(', gateways: [{id: gw-1}]', '');
    const workers = (text: string): string => text.replace('host: box-1,', 'host: box-1, workers: 2,');
    const follows = { changed: ['store.gateways'], restart: [] };
    for (const isUp of [false, true]) assert.deepEqual([of('s1', unnamed, named, isUp), of('s1', named, unnamed, isUp)], [follows, follows]);
    assert.deepEqual(of('s1', unnamed, workers(unnamed)), { changed: [], restart: [] });
    assert.deepEqual(of('s1', named, workers(unnamed), true).restart, ['gateway.workers']);
  });
});
