/** What `config check` says of certificates: of stores that can not use theirs, and of those that are to be renewed soon. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { endingCertificates, unusableLinkFiles } from '../../../src/cli/link-files.js';
import { parseConfig } from '../../../src/config/load.js';
import { selfSigned } from '../../dialog/self-signed.js';

const first = selfSigned('s1', 10);
const second = selfSigned('s2', 60);
const skip = first === undefined || second === undefined ? 'openssl is missing' : false;
const DAY_MS = 24 * 3_600_000;

function storesOf(tls: string): NonNullable<Extract<ReturnType<typeof parseConfig>, { ok: true }>['config']>['stores'] {
  const text = `store:\n  id: s1\n  host: h1\n  paths: [{name: A, address: 127.0.0.1:7401}]\n  gateways: [{id: gw-1, secret: ${'x'.repeat(20)}}]\n  tls: ${tls}\n`;
  const parsed = parseConfig(text, 's.yaml', { role: 'check' });
  assert.ok(parsed.ok, parsed.ok ? '' : parsed.errors.join('\n'));
  return parsed.config.stores;
}

test('a key of another type than its certificate is found, as a start finds it', { skip }, () => {
  const rsa = selfSigned('s1', 60, 'rsa');
  assert.ok(first !== undefined && rsa !== undefined);
  const [line = '', ...more] = unusableLinkFiles(undefined, storesOf(`{ca: ${first.certFile}, cert: ${first.certFile}, key: ${rsa.keyFile}}`));
  assert.match(line, /^s\.yaml:6: store\.tls\.key: expected the key of the certificate, .*: the key belongs to another certificate$/);
  assert.deepEqual(more, []);
});

test('a store whose key belongs to another certificate is named, as one whose certificate ends soon', { skip }, () => {
  assert.ok(first !== undefined && second !== undefined);
  const [ca, cert, key] = [first.certFile, first.certFile, first.keyFile];
  const good = storesOf(`{ca: ${ca}, cert: ${cert}, key: ${key}}`);
  assert.deepEqual(unusableLinkFiles(undefined, good), []);
  assert.deepEqual(unusableLinkFiles(undefined, storesOf(`{ca: ${ca}, cert: ${cert}, key: ${second.keyFile}}`)).map((line) => line.replace(/'[^']*'/g, 'FILE')), [
    's.yaml:6: store.tls.key: expected the key of the certificate, in PEM, found: FILE and FILE are no certificate with its key in PEM: the key belongs to another certificate',
  ]);
  assert.deepEqual(unusableLinkFiles(undefined, storesOf(`{ca: ${ca}, cert: ${second.certFile}, key: ${second.keyFile}}`)), [
    "s.yaml:6: store.tls.cert: expected a certificate for 's1', by a DNS name, found: one for s2",
  ]);
  const empty = `${cert}.empty`;
  writeFileSync(empty, '');
  assert.match(unusableLinkFiles(undefined, storesOf(`{ca: ${empty}, cert: ${cert}, key: ${key}}`)).join(), /found: '.*\.empty' is no certificate in PEM: it is empty$/);
  const nowMs = Date.now();
  assert.match(endingCertificates(undefined, good, nowMs).join(), /^s\.yaml:6: store\.tls\.cert: warning: '.*cert': the certificate expires in 9 days, .*: renew it$/);
  assert.match(endingCertificates(undefined, good, nowMs + 11 * DAY_MS).join(), /has expired/);
  assert.deepEqual(endingCertificates(undefined, storesOf(`{ca: ${ca}, cert: ${second.certFile}, key: ${second.keyFile}}`), nowMs), []);
});

test('a file of CAs for a next hop ends when the last of them does', { skip }, () => {
  assert.ok(first !== undefined && second !== undefined);
  const both = `${first.certFile}.both`;
  writeFileSync(both, readFileSync(first.certFile, 'latin1') + readFileSync(second.certFile, 'latin1'));
  const endsAt = (caFile: string, days: number): string[] => {
    const text = `gateway:\n  id: s1\n  host: h1\n  hostname: mx.example.com\n  secret: ${'x'.repeat(20)}\n  state_dir: /var/lib/x\n  insecure: true\n`
      + `  stores: [{id: a, host: h2, paths: [{name: A, address: 127.0.0.1:7401}]}, {id: b, host: h3, paths: [{name: A, address: 127.0.0.1:7402}]}]\n`
      + `  routes: [{domain: '*', via: 'smtp://127.0.0.1:25', tls: verify, ca_file: ${caFile}}]\n`;
    const parsed = parseConfig(text, 'g.yaml', { role: 'check' });
    assert.ok(parsed.ok, parsed.ok ? '' : parsed.errors.join('\n'));
    return endingCertificates(parsed.config.gateway, [], Date.now() + days * DAY_MS);
  };
  assert.match(endsAt(first.certFile, 11).join(), /^g\.yaml:9: gateway\.routes\[0\]\.ca_file: warning: '.*': the certificate has expired: .*; renew it$/);
  assert.deepEqual([endsAt(second.certFile, 11), endsAt(both, 11)], [[], []]);
  assert.match(endsAt(both, 61).join(), /has expired/);
});

test('a certificate that ends is told of at the key that names it, and once where several do', { skip }, () => {
  assert.ok(first !== undefined);
  const { certFile, keyFile } = first;
  const pair = `{cert: ${certFile}, key: ${keyFile}}`;
  const text = `gateway:\n  id: s1\n  host: h1\n  hostname: mx.example.com\n  secret: ${'x'.repeat(20)}\n  state_dir: /var/lib/x\n  insecure: true\n`
    + `  stores: [{id: a, host: h2, paths: [{name: A, address: 127.0.0.1:7401}]}, {id: b, host: h3, paths: [{name: A, address: 127.0.0.1:7402}]}]\n`
    + `  routes:\n    - {domain: '*', via: 'smtp://127.0.0.1:25', tls: verify, hosts: [{host: 'smtp://127.0.0.1:25', ca_file: CA}]}\n`;
  const keysOf = (more: string, ca = second?.certFile ?? ''): readonly string[] => {
    const parsed = parseConfig(text.replace('CA', ca) + more, 'k.yaml', { role: 'check' });
    assert.ok(parsed.ok, parsed.ok ? '' : parsed.errors.join('\n'));
    return endingCertificates(parsed.config.gateway, [], Date.now()).map((line) => line.replace(/: warning: .*/, ''));
  };
  assert.deepEqual(keysOf(''), []);
  assert.deepEqual(keysOf(`  smtp:\n    tls: ${pair}\n`), ['k.yaml:12: gateway.smtp.tls.cert']);
  assert.deepEqual(keysOf(`  admin:\n    tls: ${pair}\n`, certFile), ['k.yaml:12: gateway.admin.tls.cert']);
  assert.deepEqual(keysOf('', certFile), ['k.yaml:10: gateway.routes[0].hosts[0].ca_file']);
});

test('files of the register are read, and a link\'s certificate is for the id of each worker', { skip }, () => {
  assert.ok(first !== undefined && second !== undefined);
  const [one, two] = [first, second];
  const findings = (register: string, tls: string, more = ''): string[] => {
    const text = `register: {etcd: ['https://127.0.0.1:2379'], cluster: c, ${register}}\ngateway:\n  id: s1\n  host: h1\n  hostname: mx.example.com\n  secret: ${'x'.repeat(20)}\n  state_dir: /var/lib/twinpost\n`
      + `  stores: [{id: a, host: h2, paths: [{name: A, address: 127.0.0.1:7401}]}, {id: b, host: h3, paths: [{name: A, address: 127.0.0.1:7402}]}]\n`
      + `  mirror: {tls: ${tls}}\n  routes: [{domain: '*', via: 'smtp://127.0.0.1:25'}]\n${more}`;
    const parsed = parseConfig(text, 'g.yaml', { role: 'check' });
    assert.ok(parsed.ok, parsed.ok ? '' : parsed.errors.join('\n'));
    return unusableLinkFiles(parsed.config.gateway, []).map((line) => line.replace(/'\/[^']*'/g, 'FILE'));
  };
  const own = `{ca: ${one.certFile}, cert: ${one.certFile}, key: ${one.keyFile}}`;
  const good = `ca: ${one.certFile}, cert: ${one.certFile}, key: ${one.keyFile}`;
  assert.deepEqual(findings(good, own), []);
  assert.deepEqual(findings(`ca: ${one.certFile}, cert: ${one.certFile}, key: ${two.keyFile}`, own), [
    'g.yaml:1: register.key: expected the key of the certificate, in PEM, found: FILE and FILE are no certificate with its key in PEM: the key belongs to another certificate',
  ]);
  assert.match(findings(`ca: ${one.certFile}, cert: ${one.certFile}, key: /nowhere/key.pem`, own).join(), /^g\.yaml:1: register\.key: expected a key in PEM, found: FILE can't be read: ENOENT/);
  assert.match(findings('ca: /nowhere/ca.pem', own).join(), /^g\.yaml:1: register\.ca: expected a certificate in PEM, found: FILE can't be read: ENOENT/);
  const admin = `cert: ${one.certFile}, key: ${one.keyFile}`;
  assert.deepEqual(findings(good, own, `  admin: {tls: {${admin}, ca: ${two.certFile}}}\n`), []);
  assert.match(findings(good, own, `  admin: {tls: {${admin}, ca: /nowhere/ca.pem}}\n`).join(), /^g\.yaml:11: gateway\.admin\.tls\.ca: expected a certificate in PEM, found: FILE can't be read: ENOENT/);
  assert.deepEqual(findings(good, own, '  workers: 2\n'), ["g.yaml:9: gateway.mirror.tls.cert: expected a certificate for 's1-1', 's1-2', by a DNS name, found: one for s1"]);
});

test('the certificate for the register is told of before its end, of a gateway and of a store', { skip }, () => {
  assert.ok(first !== undefined && second !== undefined);
  const ending = (role: string, cert: string, key: string, days: number): string => {
    const text = `register: {etcd: ['https://127.0.0.1:2379'], cluster: c, cert: ${cert}, key: ${key}}\n${role}`;
    const parsed = parseConfig(text, 'r.yaml', { role: 'check' });
    assert.ok(parsed.ok, parsed.ok ? '' : parsed.errors.join('\n'));
    const { gateway, stores } = parsed.config;
    return endingCertificates(gateway, stores, Date.now() + days * DAY_MS).join();
  };
  const store = '{id: a, host: h2, paths: [{name: A, address: 127.0.0.1:7401}]}';
  const common = `id: s1\n  host: h1\n  insecure: true`;
  const roles = [
    `gateway:\n  ${common}\n  secret: ${'x'.repeat(20)}\n  hostname: mx.example.com\n  state_dir: /var/lib/x\n`
      + `  stores: [${store}, ${store.replace('a', 'b').replace('h2', 'h3').replace('7401', '7402')}]\n`
      + `  routes: [{domain: '*', via: 'smtp://127.0.0.1:25'}]\n`,
    `store:\n  ${common}\n  paths: [{name: A, address: 127.0.0.1:7401}]\n`
      + `  gateways: [{id: gw-1, secret: ${'x'.repeat(20)}}]\n`,
  ];
  for (const role of roles) {
    assert.match(ending(role, first.certFile, first.keyFile, 11), /^r\.yaml:1: register\.cert: warning: '.*': the certificate has expired: /);
    assert.equal(ending(role, second.certFile, second.keyFile, 11), '');
    assert.match(ending(role, second.certFile, second.keyFile, 50), /the certificate expires in \d days/);
  }
});
