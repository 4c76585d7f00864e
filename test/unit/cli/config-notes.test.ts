/** What `config check` warns of: sound, and seldom meant. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { seldomMeant } from '../../../src/cli/config-notes.js';
import { parseConfig } from '../../../src/config/load.js';

const SECRET = 'x'.repeat(20);

function notesOf(text: string): readonly string[] {
  const parsed = parseConfig(text, 'f.yaml', { role: 'check' });
  assert.ok(parsed.ok, parsed.ok ? '' : parsed.errors.join('\n'));
  return seldomMeant('f.yaml', parsed.config.gateway, parsed.config.stores);
}

test('a lease that gateways can not keep by their defaults is warned of', () => {
  const store = (more: string): string => `store:\n  id: s1\n  host: h1\n  paths: [{name: A, address: 127.0.0.1:7401}]\n  gateways: [{id: gw-1, secret: ${SECRET}}]\n  insecure: true\n${more}`;
  assert.deepEqual(notesOf(store('')), []);
  assert.deepEqual(notesOf(store('  lease: 2s\n')), [
    'f.yaml:7: store.lease: warning: 2s is less than gateways need by their defaults (9.5s: 3 × failover_timeout + 2 × heartbeat + 3s): they stop delivering in each stall',
  ]);
});

test('a gateway of a group that keeps no proof of its death is warned of', () => {
  const gateway = (more: string): string => `register: {etcd: ['http://127.0.0.1:2379'], cluster: c}\ngateway:\n  id: gw-1\n  host: h1\n  hostname: mx.example.com\n  secret: ${SECRET}\n  insecure: true\n  routes: [{domain: '*', via: 'smtp://127.0.0.1:25'}]\n${more}`;
  assert.deepEqual(notesOf(gateway('  state_dir: /var/lib/twinpost\n')), []);
  assert.match(notesOf(gateway('')).join(), /^f\.yaml: warning: gateway\.state_dir is not set: /);
});
