/** Where an alias leads, when whoever says so says anything. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { RelayPolicy } from '../../../../src/gateway/inbound/policy/relay-policy.js';
import { RoleAddresses } from '../../../../src/gateway/inbound/policy/role-addresses.js';
import { destinationsOf } from '../../../../src/gateway/inbound/recipients/destinations.js';
import * as replies from '../../../../src/gateway/inbound/session/replies.js';
import { OWN_ORIGIN } from '../../../../src/gateway/mail-types.js';
import { toAscii } from '../../../../src/platform/node/idna.js';
import { DomainRouter } from '../../../dialog/memory-reception.js';

const NO_READERS = { hostName: 'mx.x.example', postmaster: '' };

function leadingTo(target: string): ReturnType<typeof destinationsOf> {
  const policy = new RelayPolicy({ networks: [], domains: ['x.example'] }, toAscii);
  const recipients = { find: () => ({ route: '', to: [target] }) };
  const desk = { policy, roles: new RoleAddresses(NO_READERS, policy, { domains: [] }), ports: { router: new DomainRouter(), toAscii, recipients }, lookups: 0 };
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

test('an alias leads to a domain as its client could have written it, unless the mailbox needs SMTPUTF8', () => {
  for (const [target, address] of [['X@bücher.example', 'X@xn--bcher-kva.example'], ['"a b"@BÜCHER.example', '"a b"@xn--bcher-kva.example'], ['jürgen@bücher.example', 'jürgen@bücher.example'], ['x@Else.example', 'x@Else.example']] as const) {
    const found = leadingTo(target);
    assert.ok(Array.isArray(found));
    assert.deepEqual(found.map((each) => each.address), [address]);
  }
});

test('the own copy of a list that names itself is told from its members, and is none where it leads to nobody else', () => {
  const policy = new RelayPolicy({ networks: [], domains: ['x.example'] }, toAscii);
  const lists: Readonly<Record<string, readonly string[]>> = { all: ['all@x.example', 'part@x.example'], part: ['part@x.example', 'anna@x.example'], alone: ['alone@x.example'] };
  const listed = (key: string): readonly string[] => lists[key.slice(0, key.indexOf('@'))] ?? [];
  const desk = { policy, roles: new RoleAddresses(NO_READERS, policy, { domains: [] }), ports: { router: new DomainRouter(), toAscii, recipients: { find: (key: string) => ({ route: '', to: listed(key) }) } }, lookups: 0 };
  const found = (name: string): unknown => {
    const all = destinationsOf({ address: `${name}@x.example`, domain: 'x.example' }, desk, OWN_ORIGIN, 10);
    return Array.isArray(all) ? all.map(({ address, isOwnCopy = false }) => [address, isOwnCopy]) : all;
  };
  assert.deepEqual(found('all'), [['all@x.example', true], ['part@x.example', true], ['anna@x.example', false]]);
  assert.deepEqual(found('alone'), [['alone@x.example', false]]);
});

test('lists of lists that share members are followed as far as so much work goes', () => {
  const names = Array.from({ length: 1000 }, (_none, i) => `l${String(i)}@x.example`);
  const policy = new RelayPolicy({ networks: [], domains: ['x.example'] }, toAscii);
  const listed = (key: string): readonly string[] => (key.startsWith('all@') ? names : key.startsWith('anna@') ? [] : ['anna@x.example']);
  const desk = { policy, roles: new RoleAddresses(NO_READERS, policy, { domains: [] }), ports: { router: new DomainRouter(), toAscii, recipients: { find: (key: string) => ({ route: '', to: listed(key) }) } }, lookups: 0 };
  const found = (max: number): ReturnType<typeof destinationsOf> => destinationsOf({ address: 'all@x.example', domain: 'x.example' }, desk, OWN_ORIGIN, max);
  // 2,001 look-ups, for one member.
  assert.equal(found(500), replies.ALIAS_BROKEN);
  assert.equal(desk.lookups, 2001);
  const all = found(501);
  assert.ok(Array.isArray(all));
  assert.deepEqual(all.map(({ address }) => address), ['anna@x.example']);
});
