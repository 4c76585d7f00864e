/** Where an alias leads, when whoever says so says anything. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { RelayPolicy } from '../../../../src/gateway/inbound/policy/relay-policy.js';
import { destinationsOf } from '../../../../src/gateway/inbound/recipients/destinations.js';
import * as replies from '../../../../src/gateway/inbound/session/replies.js';
import { OWN_ORIGIN } from '../../../../src/gateway/queue/types.js';
import { toAscii } from '../../../../src/platform/node/idna.js';
import { DomainRouter } from '../../../dialog/memory-reception.js';

function leadingTo(target: string): ReturnType<typeof destinationsOf> {
  const policy = new RelayPolicy({ networks: [], domains: ['x.example'] }, toAscii);
  const recipients = { find: () => ({ route: '', to: [target] }) };
  const desk = { policy, ports: { router: new DomainRouter(), toAscii, recipients }, lookups: 0 };
  return destinationsOf({ address: 'info@x.example', domain: 'x.example' }, desk, OWN_ORIGIN, 10);
}

test('an alias leads to an address, or nowhere for now', () => {
  const found = leadingTo('"a b"@else.example');
  assert.ok(Array.isArray(found));
  assert.deepEqual(found.map(({ address, hasLeft }) => [address, hasLeft]), [['"a b"@else.example', true]]);
  for (const target of ['"a\r\nX-Injected: yes\r\nb"@else.example', '"a\0"@else.example', '"\x85"@else.example', '\ud800@else.example', 'a@else.example> x', 'a@else.example>', 'nobody', 'postmaster', '', '<a@else.example>']) {
    assert.equal(leadingTo(target), replies.ALIAS_BROKEN, JSON.stringify(target));
  }
});
