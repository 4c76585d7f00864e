/** A gateway with several workers is several gateways to stores and group, with ids and ports that follow from its own. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, test } from 'node:test';
import { parseConfig } from '../../../src/config/load.js';
import { workerConfig } from '../../../src/config/workers.js';

const SECRET = 'sixteen-characters-and-more';

function fileText(gateway: string, storeGateways = ''): string {
  const store = (id: string, port: number): string => `  - {id: ${id}, host: box-${id}, paths: [{name: A, address: 127.0.0.1:${String(port)}}], admin: {listen: 127.0.0.1:${String(port + 100)}}${storeGateways}}\n`;
  return `gateway:\n  id: gw-1\n  host: box-1\n  secret: ${SECRET}\n  state_dir: /state\n${gateway}  routes: [{domain: '*', via: smtp://127.0.0.1:26}]\nstores:\n${store('s1', 7401)}${store('s2', 7402)}`;
}

function configOf(gateway: string, storeGateways = '') {
  const result = parseConfig(fileText(gateway, storeGateways), 'f.yaml', { role: 'up' });
  assert.ok(result.ok, result.ok ? '' : result.errors.join('\n'));
  assert.ok(result.config.gateway !== undefined);
  return { gateway: result.config.gateway, stores: result.config.stores };
}

function errorsOf(gateway: string, storeGateways = ''): readonly string[] {
  const result = parseConfig(fileText(gateway, storeGateways), 'f.yaml', { role: 'up' });
  return result.ok ? [] : result.errors;
}

describe('workers', () => {
  test('one is the gateway itself', () => {
    const { gateway, stores } = configOf('');
    assert.equal(gateway.workers, 1);
    assert.deepEqual(gateway.group, []);
    assert.deepEqual(stores[0]?.gateways.map(({ id }) => id), ['gw-1']);
  });

  test('several are of one group, and the stores of the file know each with its admin port', () => {
    const { gateway, stores } = configOf('  workers: 3\n');
    assert.deepEqual(gateway.group, ['gw-1-1', 'gw-1-2', 'gw-1-3']);
    assert.deepEqual(stores[1]?.gateways.map(({ id, admin }) => `${id} ${String(admin?.port)}`), ['gw-1-1 8025', 'gw-1-2 8026', 'gw-1-3 8027']);
  });

  test('gateways of the group run as many, unless it says how many', () => {
    const { gateway } = configOf('  workers: 2\n  group: [gw-1, gw-2, {id: gw-3, workers: 1}, {id: gw-4, workers: 3}]\n');
    assert.deepEqual(gateway.group, ['gw-1-1', 'gw-1-2', 'gw-2-1', 'gw-2-2', 'gw-3', 'gw-4-1', 'gw-4-2', 'gw-4-3']);
  });

  test('a store names them in one line', () => {
    const { stores } = configOf('  workers: 2\n', `, gateways: [{id: gw-1, workers: 2, secret: ${SECRET}, admin: 127.0.0.1:9000}]`);
    assert.deepEqual(stores[0]?.gateways.map(({ id, admin }) => `${id} ${String(admin?.port)}`), ['gw-1-1 9000', 'gw-1-2 9001']);
  });

  test('each has its share of memory and connections, its own state folder and admin port', () => {
    const { gateway } = configOf('  workers: 4\n  smtp: {connections: 2001}\n');
    const third = workerConfig(gateway, 3, 4 * 2 ** 30);
    assert.equal(third.id, 'gw-1-3');
    assert.equal(third.workers, 1);
    assert.equal(third.memory.limitBytes, 2 ** 30);
    assert.equal(third.smtp.connectionsMax, 501);
    assert.deepEqual(third.smtp.listen, gateway.smtp.listen);
    assert.equal(third.admin.listen.port, 8027);
    assert.equal(third.stateDir, path.join('/state', 'gw-1-3'));
    assert.ok(third.group?.includes(third.id));
  });

  test('what can not work is refused, with its line', () => {
    assert.match(errorsOf('  workers: 0\n').join(), /f\.yaml:6: gateway\.workers: expected a whole number from 1 to 64, found 0/);
    assert.match(errorsOf('  workers: 8\n  memory: {limit: 256MiB}\n').join(), /gateway\.memory\.limit: expected at least 5 × smtp\.message_size_limit × workers/);
    assert.match(errorsOf('  workers: 4\n  admin: {listen: 127.0.0.1:65533}\n').join(), /gateway\.admin\.listen: expected room for 4 ports/);
    assert.match(errorsOf('  workers: 4\n  admin: {listen: 127.0.0.1:2524}\n').join(), /gateway\.admin\.listen: expected an address of its own, found 127\.0\.0\.1:2525, which gateway\.smtp\.listen\[0\] has/);
    assert.match(errorsOf('  group: [{id: gw-2, workers: 65}]\n').join(), /gateway\.group\.?\[?0\]?: expected a gateway's id such as gw-2/);
    assert.match(errorsOf('', `, gateways: [{id: gw-1, workers: 2, secret: ${SECRET}}, {id: gw-1-2, secret: ${SECRET}}]`).join(), /expected each gateway id once, found 'gw-1-2' again/);
  });
});
