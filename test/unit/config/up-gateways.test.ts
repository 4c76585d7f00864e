/** Several gateways out of one section, for `twinpost up --gateways N`. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EMBEDDED_UP_YAML } from '../../../src/config/embedded.js';
import { parseConfig } from '../../../src/config/load.js';
import type { Config } from '../../../src/config/types.js';
import { upConfig } from '../../../src/config/up-gateways.js';

const MEMORY = 1_000;

function loaded(text = EMBEDDED_UP_YAML): Config {
  const result = parseConfig(text, 'up', { role: 'up', secret: 'a secret of 16 or more characters' });
  assert.ok(result.ok);
  return result.config;
}

describe('the gateways of one `up`', () => {
  test('one is the section itself', () => {
    const config = loaded();
    assert.deepEqual(upConfig(config, 1, MEMORY), { ...config, gateways: [config.gateway] });
  });

  test('two have an id, ports and a share of the memory each, and one group', () => {
    const { gateways, stores } = upConfig(loaded(), 2, MEMORY);
    assert.deepEqual(gateways.map(({ id }) => id), ['gateway-1', 'gateway-2']);
    assert.deepEqual(gateways.map(({ smtp }) => smtp.listen[0]?.port), [2525, 2527]);
    assert.deepEqual(gateways.map(({ admin }) => admin.listen.port), [8025, 8026]);
    assert.deepEqual(gateways.map(({ memory }) => memory.limitBytes), [500, 500]);
    for (const { group } of gateways) assert.deepEqual(group, ['gateway-1', 'gateway-2']);
    for (const store of stores) {
      const clients = store.gateways.map(({ id, admin }) => [id, admin?.port]);
      assert.deepEqual(clients, [['gateway-1', 8025], ['gateway-2', 8026]]);
    }
  });

  test('a group that is left out with etcd stays that of all', () => {
    const config = loaded();
    assert.ok(config.gateway !== undefined);
    const { gateways } = upConfig({ ...config, gateway: { ...config.gateway, group: undefined } }, 2, MEMORY);
    assert.deepEqual(gateways.map(({ group }) => group), [undefined, undefined]);
  });

  test('a limit that the file names is that of each', () => {
    const text = EMBEDDED_UP_YAML.replace('  admin:', '  memory: {limit: 512MiB}\n  admin:');
    const { gateways } = upConfig(loaded(text), 2, MEMORY);
    assert.deepEqual(gateways.map(({ memory }) => memory.limitBytes), [2 ** 29, 2 ** 29]);
  });
});
