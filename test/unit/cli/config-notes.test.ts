/** What `config check` warns of: sound, and seldom meant. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { gatewayNotes, seldomMeant, userNotes } from '../../../src/cli/config-notes.js';
import { parseConfig } from '../../../src/config/load.js';
import { scramLine, scryptLine } from '../../dialog/people.js';

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

function notesOfGateway(route: string, more = ''): readonly string[] {
  const text = `register: {etcd: ['http://127.0.0.1:2379'], cluster: c}\ngateway:\n  id: gw-1\n  host: h1\n  secret: ${SECRET}\n  insecure: true\n  routes:\n    - {domain: '*', ${route}}\n${more}`;
  const parsed = parseConfig(text, 'f.yaml', { role: 'check' });
  assert.ok(parsed.ok, parsed.ok ? '' : parsed.errors.join('\n'));
  assert.ok(parsed.config.gateway !== undefined);
  return [...gatewayNotes(parsed.config.gateway), ...userNotes(parsed.config.gateway)];
}

test('next hops whose port does not go with their kind, or that have no name to verify, are warned of', () => {
  for (const good of [
    'via: mx, tls: verify', "via: 'smtps://mx.example'", "via: 'smtp://mx.example:587', tls: verify", "via: 'lmtp://127.0.0.1:465'",
    "via: 'smtp://192.0.2.1:25', tls: verify, server_name: mx.example", "via: 'smtp://192.0.2.1:25', tls: encrypt",
  ]) assert.deepEqual(notesOfGateway(good), [], good);
  const at = 'f.yaml:8: gateway.routes[0]: warning: ';
  const literal = (host: string): string => `${at}tls: verify takes of '${host}' a certificate for this address alone, and few have one: say the name that stands in it (server_name)`;
  assert.deepEqual(notesOfGateway("via: 'smtp://192.0.2.1:25', tls: verify"), [literal('192.0.2.1')]);
  assert.deepEqual(notesOfGateway("via: mx, tls: verify, fallback: 'smtp://[2001:db8::1]:25'"), [literal('2001:db8::1')]);
  assert.deepEqual(notesOfGateway("via: ['smtp://a.example:25', 'smtp://b.example:465']"), [`${at}smtp://b.example:465: servers begin with TLS at that port, so that no greeting comes: say smtps://`]);
  assert.deepEqual(notesOfGateway("via: 'smtps://a.example:587'"), [`${at}smtps://a.example:587: servers begin in clear at that port, so that TLS first fails ('wrong version number'): say smtp:// with tls: encrypt or verify, or port 465`]);
});

test('a name in EHLO with an underscore is warned of', () => {
  assert.deepEqual(notesOfGateway('via: mx', '  hostname: a_b.own.test\n'), ["f.yaml:9: gateway.hostname: warning: 'a_b.own.test' has an underscore, which no name of a host has (RFC 5321 2.3.5): others may refuse it in EHLO; take letters, digits and dashes"]);
  assert.deepEqual(notesOfGateway('via: mx', '  hostname: a-b.own.test\n'), []);
});

test('a next hop that has our own name is warned of: its mail may go in a circle', () => {
  const more = '  hostname: MX1.ours.example\n  sources: [{address: 127.0.0.1, name: out.ours.example}]\n';
  const note = (place: string): string => `f.yaml:8: gateway.routes[0]: warning: ${place} is a name of this gateway: if that leads to a gateway of this group, also by a balancer, its mail goes in a circle, and bounces`;
  assert.deepEqual(notesOfGateway("via: 'smtp://mx1.ours.example:26'", more), [note('mx1.ours.example:26')]);
  assert.deepEqual(notesOfGateway("via: mx, fallback: ['smtp://a.example:26', 'smtp://out.ours.example:25']", more), [note('out.ours.example:25')]);
  for (const other of ["via: 'lmtp://mx1.ours.example:24'", "via: 'smtp://mx2.ours.example:25'", "via: 'smtp://localhost:26'"]) assert.deepEqual(notesOfGateway(other, more), []);
});

test('each host of a route is looked at by its own TLS', () => {
  const hosts = "via: ['smtp://a.example:25', 'smtps://b.example:25', 'smtp://192.0.2.1:25'], hosts: [{host: 'smtps://b.example:25', tls: encrypt}, {host: 'smtp://192.0.2.1:25', tls: verify}]";
  assert.deepEqual(notesOfGateway(hosts).map((note) => note.slice(0, 61)), [
    "f.yaml:8: gateway.routes[0]: warning: smtps://b.example:25: s", "f.yaml:8: gateway.routes[0]: warning: tls: verify takes of '1",
  ]);
});

test('a name of certificates that looks like a pattern is warned of', () => {
  const smtp = (name: string): string => `  smtp: {tls: {cert: a, key: b, client_ca: c}, relay_certificates: ['${name}']}\n`;
  assert.deepEqual(notesOfGateway('via: mx', smtp('mta.example')), []);
  assert.deepEqual(notesOfGateway('via: mx', smtp('*.mta.example')), [
    "f.yaml:9: gateway.smtp.relay_certificates: warning: '*.mta.example' is no pattern: it stands for a certificate with this very name, and no other",
  ]);
});

test('users who keep SCRAM from all are warned of', async (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'config-notes-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const users = path.join(folder, 'users');
  const smtp = `  smtp: {users: '${users}'}\n`;
  const [scram, scrypt] = [await scramLine('a@b.example', 'x'), await scryptLine('c@b.example', 'x')];
  writeFileSync(users, `${scram}\n`, { mode: 0o600 });
  assert.deepEqual(notesOfGateway('via: mx', smtp), []);
  writeFileSync(users, `${scrypt}\n`, { mode: 0o600, flag: 'a' });
  assert.match(notesOfGateway('via: mx', smtp).join(), /^f\.yaml:9: gateway\.smtp\.users: warning: 1 of 2 users have no verifier for SCRAM-SHA-256, /);
});
