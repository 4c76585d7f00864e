/** What `config check` warns of: relayed domains that no route takes, and names that others do not take. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { listenerLines } from '../../../src/cli/listener-lines.js';
import { receptionWarnings } from '../../../src/cli/reception-warnings.js';
import { parseConfig } from '../../../src/config/load.js';
import type { GatewayConfig } from '../../../src/config/types.js';
import { selfSigned } from '../../dialog/self-signed.js';

const tls = selfSigned();

function gatewayOf(smtp: string, routes = "[{domain: '*', via: 'smtp://127.0.0.1:1'}]", more = ''): GatewayConfig {
  const text = `gateway:
  id: gw-1
  host: box-1
  secret: sixteen-characters-and-more
  ${more}
  smtp: ${smtp}
  routes: ${routes}
  reports: discard
  mirror: {replicas: 1}
  stores: [{id: s1, host: box-2, paths: [{name: A, address: '127.0.0.1:1'}]}]
`;
  const result = parseConfig(text, 'f.yaml', { role: 'gateway', stateDir: '/state' });
  assert.ok(result.ok && result.config.gateway !== undefined, result.ok ? '' : result.errors.join('\n'));
  return result.config.gateway;
}

describe('config check warns', () => {
  test('of relayed domains to which no route leads, unless a table may say one', () => {
    const domains = 'relay_domains: [a.example, .b.example, c.example, x.c.example]';
    const routes = "[{domains: [a.example, '*.c.example'], via: 'smtp://127.0.0.1:1'}]";
    assert.deepEqual(receptionWarnings(gatewayOf(`{${domains}}`, routes)), [
      "f.yaml:6: gateway.smtp.relay_domains: warning: gateway.routes has no route for '.b.example', 'c.example': mail to them is "
      + 'refused with 550, though their domain is relayed for',
    ]);
    assert.deepEqual(receptionWarnings(gatewayOf(`{${domains}}`)), []);
    assert.deepEqual(receptionWarnings(gatewayOf(`{${domains}, recipients: {http: 'https://u.example/'}}`, routes)), []);
    const many = Array.from({ length: 25 }, (_none, i) => `d${String(i)}.example`);
    assert.match(receptionWarnings(gatewayOf(`{relay_domains: [${many.join(', ')}]}`, routes))[0] ?? '', /'d19\.example' and 5 more: mail/);
  });

  test('of a domain with mailboxes for which strangers may not send, on a listener that they reach', () => {
    const routes = "[{domains: [a.example, '*.b.example'], via: 'lmtp://127.0.0.1:24'}, {domain: partner.example, via: 'smtp://127.0.0.1:1'}, {domain: '*', via: mx}]";
    const warnings = (smtp: string): readonly string[] => receptionWarnings(gatewayOf(smtp, routes, 'hostname: mx1.example.com'));
    assert.deepEqual(warnings("{postmaster: a@a.example, listen: ['0.0.0.0:25']}"), [
      "f.yaml:6: gateway.smtp.relay_domains: warning: strangers who send to 'a.example', '*.b.example' are refused with 550 (relaying denied), "
      + 'though a route leads to mailboxes (lmtp): add it here, *.x.example as .x.example',
    ]);
    for (const good of ["{postmaster: a@a.example, listen: ['0.0.0.0:25'], relay_domains: [a.example, .b.example]}", "{listen: ['127.0.0.1:25']}"]) {
      assert.deepEqual(warnings(good), []);
    }
  });

  test('of a name with one label, of a gateway that strangers talk to', () => {
    const public_ = "{postmaster: a@b.example, listen: ['0.0.0.0:25']}";
    assert.deepEqual(receptionWarnings(gatewayOf(public_, undefined, 'hostname: mx1')), [
      "f.yaml:5: gateway.hostname: warning: 'mx1' has one label, which many servers refuse in EHLO (RFC 5321 2.3.5): say the whole name of this host",
    ]);
    assert.deepEqual(receptionWarnings(gatewayOf(public_, undefined, 'hostname: mx1.example.com')), []);
    assert.deepEqual(receptionWarnings(gatewayOf('{}', undefined, 'hostname: mx1')), []);
  });

  test('of a submission listener that strangers reach, where nothing bounds how often they guess', { skip: tls === undefined && 'openssl is not here' }, () => {
    const smtp = (listen: string, more = ''): string => `{postmaster: a@b.example, users: people, tls: {cert: '${tls?.certFile ?? ''}', key: '${tls?.keyFile ?? ''}'}, listen: [${listen}]${more}}`;
    const guesses = (text: string): readonly string[] => receptionWarnings(gatewayOf(text)).filter((line) => line.includes('guess'));
    const submission = "{address: '0.0.0.0:587', role: submission}";
    assert.deepEqual(guesses(smtp(`'127.0.0.1:25', ${submission}`)), [
      'f.yaml:6: gateway.smtp.listen[1].role: warning: strangers may guess passwords here as often as they like: bound it with limits: '
      + '{client: {errors: 30}} (in any minute; SMTP commands that are refused count too)',
    ]);
    assert.equal(guesses(smtp("{address: '127.0.0.1:587', role: submission, proxy: [127.0.0.1]}")).length, 1);
    for (const good of [smtp("{address: '127.0.0.1:587', role: submission}, '0.0.0.0:25'"), smtp(submission, ', limits: {client: {errors: 30}}')]) {
      assert.deepEqual(guesses(good), []);
    }
  });

  test('of a relay listener where strangers may write a field in our name', () => {
    const warnings = (listen: string): readonly string[] =>
      receptionWarnings(gatewayOf(`{postmaster: a@b.example, listen: [{address: '0.0.0.0:25', authentication_results: true}, ${listen}]}`, undefined, 'hostname: mx1.example.com'));
    const [warning = '', ...more] = warnings("'0.0.0.0:26'");
    assert.match(warning, /^f\.yaml:6: gateway\.smtp\.listen\[1\]\.role: warning: a field 'Authentication-Results: mx1\.example\.com; …' that a client writes/);
    assert.deepEqual([...more, ...warnings("'127.0.0.1:26'")], []);
    assert.equal(warnings("{address: '127.0.0.1:26', xclient: [127.0.0.1]}").length, 1, 'whom a filter names comes from anywhere');
  });

  test('of a certificate that is not for the host name', { skip: tls === undefined && 'openssl is not here' }, () => {
    const smtp = `{postmaster: a@b.example, listen: ['0.0.0.0:25'], tls: {cert: '${tls?.certFile ?? ''}', key: '${tls?.keyFile ?? ''}'}}`;
    const [warning = '', ...more] = receptionWarnings(gatewayOf(smtp, undefined, 'hostname: mx1.example.com'));
    assert.match(warning, /^f\.yaml:6: gateway\.smtp\.tls\.cert: warning: '.*' is not for 'mx1\.example\.com' \(hostname\): .* refuse it: have one made that has it, too; where they know it by another name, nothing is to be done; it is for /);
    assert.deepEqual(more, []);
  });
});

test('config check says of each listener who may say there who a client is, and which lists are asked', () => {
  const gateway = gatewayOf(`{postmaster: a@b.example, listen: [
    {address: '0.0.0.0:25', proxy: [10.0.0.1, 10.0.1.0/24], dnsbl: [zen.example.org]},
    {address: '0.0.0.0:26', xclient: [10.0.0.1, 10.0.0.2, 10.0.0.3, 10.0.0.4, 10.0.0.5, 10.0.0.6], xclient_login: true}, '0.0.0.0:27']}`);
  assert.deepEqual(listenerLines(gateway), [
    '0.0.0.0:25: relay, no TLS, no AUTH, a PROXY header of 10.0.0.1 10.0.1.0/24, dnsbl zen.example.org',
    '0.0.0.0:26: relay, no TLS, no AUTH, XCLIENT, with logins, of 10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 and 1 more',
    '0.0.0.0:27: relay, no TLS, no AUTH',
  ]);
});
