/** A certificate is for a host by its DNS names alone. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import tls from 'node:tls';
import type { PeerCertificate } from 'node:tls';
import { checkDnsName } from '../../../../src/platform/node/dns-name.js';

function shown(subjectaltname: string | undefined): PeerCertificate {
  return { subject: { CN: 'mx.example' }, ...(subjectaltname === undefined ? {} : { subjectaltname }) } as PeerCertificate;
}

test('a common name is no DNS name, though Node would take it', () => {
  assert.equal(tls.checkServerIdentity('mx.example', shown(undefined)), undefined);
  for (const names of [undefined, '', 'IP Address:192.0.2.1', 'URI:DNS:mx.example']) {
    assert.match(String(checkDnsName('mx.example', shown(names))), /no DNS name in subjectAltName/, names);
  }
});

test('a DNS name is, also with a wildcard for one label', () => {
  for (const names of ['DNS:mx.example', 'IP Address:192.0.2.1, DNS:mx.example', 'DNS:other.example, DNS:*.of.example']) {
    const host = names.includes('*') ? 'mx.of.example' : 'mx.example';
    assert.equal(checkDnsName(host, shown(names)), undefined, names);
  }
  assert.match(String(checkDnsName('mx.example', shown('DNS:other.example'))), /altnames/);
});
