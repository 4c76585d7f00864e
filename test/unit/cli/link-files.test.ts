/** What `config check` says of certificates: of stores that can not use theirs, and of those that are to be renewed soon. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
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

test('a store whose key belongs to another certificate is named, as one whose certificate ends soon', { skip }, () => {
  assert.ok(first !== undefined && second !== undefined);
  const [ca, cert, key] = [first.certFile, first.certFile, first.keyFile];
  const good = storesOf(`{ca: ${ca}, cert: ${cert}, key: ${key}}`);
  assert.deepEqual(unusableLinkFiles('s.yaml', good), []);
  assert.deepEqual(unusableLinkFiles('s.yaml', storesOf(`{ca: ${ca}, cert: ${cert}, key: ${second.keyFile}}`)).map((line) => line.replace(/'[^']*'/g, 'FILE')), [
    's.yaml: store s1: tls: expected a certificate with its key and the CA, in PEM, found: FILE and FILE are no certificate with its key in PEM: the key belongs to another certificate',
  ]);
  const empty = `${cert}.empty`;
  writeFileSync(empty, '');
  assert.match(unusableLinkFiles('s.yaml', storesOf(`{ca: ${empty}, cert: ${cert}, key: ${key}}`)).join(), /found: '.*\.empty' is no certificate in PEM: it is empty$/);
  const nowMs = Date.now();
  assert.match(endingCertificates('s.yaml', undefined, good, nowMs).join(), /^s\.yaml: warning: '.*cert': the certificate expires in 9 days, .*: renew it$/);
  assert.match(endingCertificates('s.yaml', undefined, good, nowMs + 11 * DAY_MS).join(), /has expired/);
  assert.deepEqual(endingCertificates('s.yaml', undefined, storesOf(`{ca: ${ca}, cert: ${second.certFile}, key: ${second.keyFile}}`), nowMs), []);
});
