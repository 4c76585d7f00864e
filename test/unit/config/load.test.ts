/** A file is either a frozen configuration or one line for each thing that is wrong with it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { parse } from 'yaml';
import type { z } from 'zod';
import { effectiveYaml } from '../../../src/config/effective.js';
import { EMBEDDED_UP_YAML } from '../../../src/config/embedded.js';
import { loadConfigFile, parseConfig } from '../../../src/config/load.js';
import type { LoadOptions } from '../../../src/config/load.js';
import { nearest } from '../../../src/base/nearest.js';
import { utf8Bytes } from '../../../src/base/utf8.js';
import { fileSchema } from '../../../src/config/keys/schema.js';
import { workerConfig } from '../../../src/config/workers.js';

const SECRET = 'sixteen-characters-and-more';
/** Holds a secret that is too short. */
const SHORT_FILE = path.join(mkdtempSync(path.join(os.tmpdir(), 'twinpost-load-')), 'secret');
writeFileSync(SHORT_FILE, 'short\n', { mode: 0o600 });
const TWO_LINES_FILE = path.join(path.dirname(SHORT_FILE), 'two-lines');
writeFileSync(TWO_LINES_FILE, '0123456789abcdef\r\nfedcba9876543210\n', { mode: 0o600 });
const COMMENT_FILE = path.join(path.dirname(SHORT_FILE), 'comment');
writeFileSync(COMMENT_FILE, '0123456789abcdef\n # until Friday, the old one\n', { mode: 0o600 });
const OPEN_FILE = path.join(path.dirname(SHORT_FILE), 'open');
writeFileSync(OPEN_FILE, '0123456789abcdef\n', { mode: 0o644 });
const OPEN = `found: everybody on this machine may read or write '${OPEN_FILE}': chmod o-rw`;
const WIDE_FILE = path.join(path.dirname(SHORT_FILE), 'wide');
writeFileSync(WIDE_FILE, 'p\u00e4ss\u0175ord\n', { mode: 0o600 });
after(() => { rmSync(path.dirname(SHORT_FILE), { recursive: true }); });

const GOOD = `# a gateway
gateway:
  id: gw-1
  host: box-1
  secret: ${SECRET}
  routes:
    - {domain: '*', via: smtp://127.0.0.1:26}
  stores:
    - id: s1
      host: box-2
      paths:
        - {name: A, address: 127.0.0.1:7401}
    - id: s2
      host: box-3
      paths:
        - {name: A, address: 127.0.0.1:7402}
`;

function errorsOf(text: string, role: LoadOptions['role'] = 'gateway'): readonly string[] {
  const result = parseConfig(text, 'f.yaml', { role, stateDir: '/state' });
  return result.ok ? [] : result.errors;
}

function gatewayOf(text: string) {
  const result = parseConfig(text, 'f.yaml', { role: 'gateway', stateDir: '/state' });
  assert.ok(result.ok, result.ok ? '' : result.errors.join('\n'));
  assert.ok(result.config.gateway !== undefined);
  return result.config.gateway;
}

test('resolvers that are believed about DNSSEC stand beside none that is not', () => {
  const withResolvers = (dns: string): string => GOOD.replace('  routes:', `  dns: ${dns}\n  routes:`);
  assert.deepEqual(errorsOf(withResolvers(`{resolvers: [127.0.0.1, '[2001:db8::53]:5353']}`)), [
    `f.yaml:6: gateway.dns.resolvers[1]: expected all of them on this machine, or none, or trust_ad: true, found '[2001:db8::53]:5353' `
      + `beside '127.0.0.1:53', which alone is believed about DNSSEC: where that has no answer, mail would go by an unsigned one`,
  ]);
  assert.equal(errorsOf(withResolvers(`{resolvers: [192.0.2.53, '0:0:0:0:0:0:0:1']}`)).length, 1);
  for (const good of [`['::1', 127.0.0.53]`, '[192.0.2.53, 192.0.2.54]', `['::1', 192.0.2.53], trust_ad: true`]) {
    assert.deepEqual(errorsOf(withResolvers(`{resolvers: ${good}}`)), [], good);
  }
});

describe('sources', () => {
  const withSources = (sources: string, route = ''): string =>
    GOOD.replace('via: smtp://127.0.0.1:26', `via: mx${route}`).replace('  routes:', `  hostname: GW.example\n  sources: ${sources}\n  routes:`);

  test('have the host name for one, and routes those that they name, each by address or name', () => {
    const file = withSources("[{address: 192.0.2.10}, {address: '2001:0DB8::0:10', name: Mail.Example}, {address: 192.0.2.11, name: mail.example}]", ', sources: [mail.example]');
    const { sources, routes: [route] } = gatewayOf(file);
    assert.deepEqual(sources, [{ address: '192.0.2.10', name: 'gw.example' }, { address: '2001:db8::10', name: 'mail.example' }, { address: '192.0.2.11', name: 'mail.example' }]);
    assert.deepEqual(route?.nextHop.sources, ['2001:db8::10', '192.0.2.11']);
    assert.deepEqual(gatewayOf(withSources('[{address: 192.0.2.10}]', ', sources: [192.0.2.10]')).routes[0]?.nextHop.sources, ['192.0.2.10']);
    assert.deepEqual([gatewayOf(GOOD).sources, gatewayOf(GOOD).routes[0]?.nextHop.sources], [[], undefined]);
  });

  for (const [what, sources, route, error] of [
    ['a name for an address', '[{address: mail.example}]', '', /^f\.yaml:7: gateway\.sources\[0\]\.address: expected an IP address of this machine such as .*, found "mail\.example"$/],
    ['an address that is many', '[{address: 0.0.0.0}]', '', /sources\[0\]\.address: expected an IP address/],
    ['one of a link', "[{address: 'fe80::1%eth0'}]", '', /sources\[0\]\.address: expected an IP address/],
    ['IPv4 in IPv6', "[{address: '::ffff:192.0.2.1'}]", '', /sources\[0\]\.address: expected an IP address/],
    ['an address as a name', "[{address: 192.0.2.10, name: 'mail example'}]", '', /sources\[0\]\.name: expected a domain/],
    ['one twice, however it is written', "[{address: '2001:db8::1'}, {address: '2001:DB8:0::1'}]", '', /sources\[1\]\.address: expected each address of sources once, found '2001:db8::1' again$/],
    ['one of a route that is none', '[{address: 192.0.2.10}]', ', sources: [192.0.2.11]', /^f\.yaml:9: gateway\.routes\[0\]\.sources\[0\]: expected an address or a name of gateway\.sources, found '192\.0\.2\.11'$/],
  ] as const) {
    test(`refuses ${what}`, () => {
      const errors = errorsOf(withSources(sources, route));
      assert.equal(errors.length, 1, errors.join('\n'));
      assert.match(errors[0] ?? '', error);
    });
  }
});

describe('a configuration file', () => {
  test('takes secrets for rewritten senders one a line', () => {
    const { srs } = gatewayOf(`${GOOD}  smtp:\n    srs: {domain: fwd.example, secret_file: ${TWO_LINES_FILE}}\n`).smtp;
    assert.deepEqual(srs?.secrets, ['0123456789abcdef', 'fedcba9876543210']);
    const [route] = gatewayOf(GOOD.replace('26}', `26, name: out, verp: {domain: B.example, prefix: N, valid_for: 36h, secret_file: ${TWO_LINES_FILE}}}`)).routes;
    assert.deepEqual(route?.verp, { domain: 'b.example', prefix: 'n', validMs: 129_600_000, returned: 'forward', secrets: ['0123456789abcdef', 'fedcba9876543210'] });
  });

  test('gets every default that operators know', () => {
    const gateway = gatewayOf(GOOD);
    assert.equal(gateway.smtp.messageBytesMax, 25 * 1024 * 1024);
    assert.equal(gateway.smtp.recipientsMax, 1000);
    assert.equal(gateway.smtp.connectionsPerClientMax, 50);
    assert.equal(gateway.smtp.contentBytesPerSecondMin, 500);
    assert.deepEqual(gateway.smtp.listen, [{ host: '127.0.0.1', port: 2525, role: 'relay', tls: 'off', proxyNetworks: [], xclientNetworks: [], xclientLogin: false, blocklists: [], authservId: '' }]);
    assert.equal(gateway.delivery.lifetimeMs, 5 * 86_400_000);
    assert.equal(gateway.delivery.bounceLifetimeMs, 86_400_000);
    assert.equal(gateway.delivery.retry.firstMs, 300_000);
    assert.equal(gateway.mirror.heartbeatMs, 250);
    assert.equal(gateway.mirror.leaseMs, 10_000);
    assert.equal(gateway.mirror.windowBytes, 8 * 1024 * 1024);
    assert.deepEqual(gateway.admin, { listen: { host: '127.0.0.1', port: 8025 }, tokensFile: undefined, tls: undefined, probes: undefined });
    assert.equal(gateway.routes[0]?.name, 'default');
    assert.deepEqual(gateway.secrets.map((secret) => Buffer.from(secret).toString()), [SECRET]);
  });

  test('is frozen to its leaves', () => {
    const gateway = gatewayOf(GOOD);
    assert.ok(Object.isFrozen(gateway.routes[0]?.nextHop));
    assert.ok(Object.isFrozen(gateway.smtp.listen));
  });

  test('reads units', () => {
    const gateway = gatewayOf(`${GOOD}  smtp: {message_size_limit: 2MB, min_data_rate: 1KiB/s, command_timeout: 1m30s}\n  memory: {limit: 1GiB, accept: 75%}\n  mirror: {commit_timeout: 1500ms}\n`);
    assert.equal(gateway.smtp.messageBytesMax, 2_000_000);
    assert.equal(gateway.smtp.contentBytesPerSecondMin, 1024);
    assert.equal(gateway.smtp.idleMs, 90_000);
    assert.equal(gateway.memory.limitBytes, 2 ** 30);
    assert.equal(gateway.memory.acceptShare, 0.75);
    assert.equal(gateway.mirror.commitTimeoutMs, 1500);
  });

  test('has a name in Authentication-Results: its own, or another, where a listener wants it', () => {
    const idsOf = (smtp: string) => gatewayOf(`${GOOD}  hostname: MX1.ours.example\n  smtp: {listen: ['127.0.0.1:1', {address: '127.0.0.1:2', authentication_results: true}]${smtp}}\n`).smtp.listen.map(({ authservId }) => authservId);
    assert.deepEqual(idsOf(''), ['', 'mx1.ours.example']);
    assert.deepEqual(idsOf(', authserv_id: Ours.Example'), ['', 'ours.example']);
    const users = gatewayOf(`${GOOD}  hostname: mx1.ours.example\n  smtp: {users: users, tls: {cert: c.pem, key: k.pem}, listen: [{address: '127.0.0.1:2', role: submission}, {address: '127.0.0.1:3', authentication_results: true}]}\n`);
    assert.deepEqual(users.smtp.listen.map(({ authservId }) => authservId), ['mx1.ours.example', 'mx1.ours.example'], 'no user may write it himself');
  });

  test('may have a strict route, which keeps one message in flight', () => {
    const gateway = gatewayOf(GOOD.replace("via: smtp://127.0.0.1:26", "via: 'lmtp://[::1]:24', order: strict, name: box"));
    assert.deepEqual(gateway.routes[0], { domains: ['*'], name: 'box', perDomain: false, lanes: 1, lanesBy: 'domain', nextHop: { protocol: 'lmtp', host: '::1', port: 24, tls: { level: 'may', isFirst: false, terms: { serverName: '::1', mustVerify: false, caFile: undefined } } }, ordering: 'strict', concurrency: 1, lengthMax: 1_000_000 });
  });

  test('may have a postmaster wherever a route, or a table of recipients, leads', () => {
    const withPostmaster = (domains: string, more = ", listen: ['0.0.0.0:25']") =>
      gatewayOf(`${GOOD.replace("domain: '*'", `domains: [${domains}]`)}  reports: discard\n  smtp: {postmaster: Ops@a.b.example${more}}\n`).smtp.postmaster;
    for (const domains of ['a.b.example', '"*.b.example"', '"*.example"', '"*"']) assert.equal(withPostmaster(domains), 'Ops@a.b.example');
    assert.equal(withPostmaster('else.example', ", listen: ['0.0.0.0:25'], recipients: table"), 'Ops@a.b.example');
    // A relay of this machine alone.
    assert.equal(withPostmaster('else.example', ''), 'Ops@a.b.example');
  });

  test('may believe every balancer and proxy at a listener that only this machine reaches', () => {
    for (const key of ['proxy', 'xclient']) {
      const { listen } = gatewayOf(`${GOOD}  smtp: {postmaster: a@b.example, listen: [{address: '127.0.0.1:25', ${key}: [0.0.0.0/0]}]}\n`).smtp;
      assert.deepEqual([...listen[0]?.proxyNetworks ?? [], ...listen[0]?.xclientNetworks ?? []], ['0.0.0.0/0']);
    }
  });

  test('may have several routes for a domain, all but one with conditions', () => {
    const more = "    - {domain: '*', name: bulk, when: {senders: ['*@news.example']}, via: smtp://127.0.0.1:27}\n";
    const { routes } = gatewayOf(GOOD.replace(/( {4}- \{domain: '\*'.*\n)/, `$1${more}`));
    assert.deepEqual(routes.map(({ name, when }) => [name, when?.senders]), [['default', undefined], ['bulk', ['*@news.example']]]);
  });

  test('has TLS with next hops: may by default, encrypt by smtps, and what verify needs', () => {
    const hopOf = (route: string) => gatewayOf(GOOD.replace('smtp://127.0.0.1:26', route)).routes[0]?.nextHop;
    const terms = { serverName: 'mx.example', mustVerify: false, caFile: undefined };
    const place = { protocol: 'smtp', host: 'mx.example', port: 26 };
    assert.deepEqual(hopOf('smtp://mx.example:26'), { ...place, tls: { level: 'may', isFirst: false, terms } });
    assert.deepEqual(hopOf('smtp://mx.example:26, tls: none'), { ...place, tls: undefined });
    assert.deepEqual(hopOf('smtp://mx.example:26, tls: encrypt'), { ...place, tls: { level: 'encrypt', isFirst: false, terms } });
    for (const via of ['smtps://mx.example', 'smtps://mx.example:465', "'smtps://[::1]'", "'smtps://[::1]:465'"]) {
      const host = via.includes('::1') ? '::1' : 'mx.example';
      assert.deepEqual(hopOf(via), { ...place, host, port: 465, tls: { level: 'encrypt', isFirst: true, terms: { ...terms, serverName: host } } });
    }
    const verify = { serverName: 'other.example', mustVerify: true, caFile: path.resolve('ca.crt') };
    assert.deepEqual(
      hopOf('smtp://mx.example:26, tls: verify, ca_file: ca.crt, server_name: other.example'),
      { ...place, tls: { level: 'verify', isFirst: false, terms: verify } },
    );
  });

  test('is somebody at a next hop by a user and a file, in TLS or on loopback; the password itself stands nowhere', () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'config-'));
    writeFileSync(path.join(folder, 'p'), 'only-in-the-file', { mode: 0o600 });
    const auth = { user: 'gw@example', passwordFile: path.join(folder, 'p') };
    const keys = `auth: {user: gw@example, password_file: '${auth.passwordFile}'}`;
    for (const route of [
      'smtp://mx.example:26, tls: encrypt', 'smtp://mx.example:26, tls: verify', 'smtps://mx.example', 'smtp://127.0.0.1:26', "'lmtp://[::1]:24'",
      "['smtp://127.0.0.1:26', 'smtp://localhost:26'], tls: none", "smtp://127.0.0.1:26, fallback: 'smtp://mx.example:26', tls: encrypt",
    ]) {
      const file = GOOD.replace('smtp://127.0.0.1:26', `${route}, ${keys}`);
      const result = parseConfig(file, 'f.yaml', { role: 'gateway', stateDir: '/state' });
      assert.ok(result.ok, route);
      assert.deepEqual(result.config.gateway?.routes[0]?.nextHop.auth, auth);
      const shown = effectiveYaml(result.value, result.config, 2 ** 30) + JSON.stringify(result.config);
      assert.ok(shown.includes(`password_file: ${auth.passwordFile}`) && !shown.includes('only-in-the-file'));
      assert.equal(result.config.gateway.places['gateway.routes[0].auth.password_file'], 'f.yaml:7');
    }
  });

  test('speaks to a host of a route as that says of it, and else as the route does', () => {
    const auth = { user: 'a', passwordFile: '/p/a' };
    const route = "['smtp://one.example:26', 'smtps://two.example', 'smtp://three.example:26'], fallback: 'smtp://127.0.0.1:27', tls: encrypt, auth: {user: a, password_file: /p/a}, hosts: ["
      + "{host: 'smtps://two.example:465', tls: verify, ca_file: /two.crt, auth: {user: b, password_file: /p/b}}, {host: 'smtp://127.0.0.1:27', tls: none}]";
    const result = parseConfig(GOOD.replace('smtp://127.0.0.1:26', route), 'f.yaml', { role: 'gateway', stateDir: '/state' });
    assert.ok(result.ok, JSON.stringify(result));
    const { nextHop } = result.config.gateway?.routes[0] ?? assert.fail();
    const unnamed = { serverName: '', mustVerify: false, caFile: undefined };
    const encrypt = { level: 'encrypt', isFirst: false, terms: unnamed };
    assert.deepEqual([nextHop.tls, nextHop.auth], [encrypt, auth]);
    assert.deepEqual(nextHop.others?.map(({ terms }) => terms), [
      { tls: { level: 'verify', isFirst: true, terms: { serverName: '', mustVerify: true, caFile: '/two.crt' } }, auth: { user: 'b', passwordFile: '/p/b' } },
      { tls: encrypt, auth }, { tls: undefined, auth },
    ]);
    assert.equal(result.config.gateway?.places['gateway.routes[0].hosts[0].auth.password_file'], 'f.yaml:7');
    assert.deepEqual(result.config.gateway.hopFiles.map(({ at, passwordFile }) => [at, passwordFile]), [
      ['gateway.routes[0]', '/p/a'], ['gateway.routes[0].hosts[0]', '/p/b'], ['gateway.routes[0].hosts[1]', undefined],
    ]);
    const shown = effectiveYaml(result.value, result.config, 2 ** 30);
    assert.ok(parseConfig(shown.replace('(hidden)', SECRET), 'shown.yaml', { role: 'gateway', stateDir: '/state' }).ok, shown);
    assert.match(shown, /- host: smtps:\/\/two\.example:465\n/);
  });

  test('may have hooks, each with what it is called and the defaults of its kind', () => {
    const { smtp } = gatewayOf(`${GOOD}  smtp:\n    hooks: [{rspamd: 'http://127.0.0.1:11333'}, {module: hooks/policy.mjs, timeout: 1s, on_failure: accept}, {module: b.js, name: c, threads: 4, heap: 64MiB}]\n`);
    assert.deepEqual(smtp.hooks, [
      { kind: 'rspamd', name: 'rspamd', url: 'http://127.0.0.1:11333', timeoutMs: 5000, onFailure: 'defer', password: '' },
      { kind: 'module', name: 'policy', file: path.resolve('hooks/policy.mjs'), timeoutMs: 1000, onFailure: 'accept', threads: 1, heapBytes: 128 * 2 ** 20 },
      { kind: 'module', name: 'c', file: path.resolve('b.js'), timeoutMs: 5000, onFailure: 'defer', threads: 4, heapBytes: 64 * 2 ** 20 },
    ]);
    assert.deepEqual(gatewayOf(GOOD).smtp.hooks, []);
  });

  test('takes no secret that everybody on this machine may read', () => {
    for (const [text, key] of [
      [GOOD.replace(`secret: ${SECRET}`, `secret_file: ${OPEN_FILE}`), 'f.yaml:5: gateway.secret_file: expected a file with a secret'],
      [`${GOOD}  smtp:\n    srs: {domain: fwd.example, secret_file: ${OPEN_FILE}}\n`, 'f.yaml:18: gateway.smtp.srs.secret_file: expected a file with a secret, one a line'],
      [GOOD.replace('26}', `26, verp: {domain: b.example, secret_file: ${OPEN_FILE}}}`), 'f.yaml:7: gateway.routes[0].verp.secret_file: expected a file with a secret, one a line'],
    ] as const) assert.deepEqual(errorsOf(text), [`${key}, ${OPEN}`]);
  });

  test('takes a secret from a file beside it, or from the environment', () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'config-'));
    writeFileSync(path.join(folder, 'k'), `${SECRET}\n`, { mode: 0o600 });
    writeFileSync(path.join(folder, 'c.yaml'), GOOD.replace(`secret: ${SECRET}`, 'secret_file: k'));
    const fromFile = loadConfigFile(path.join(folder, 'c.yaml'), { role: 'gateway', stateDir: '/state' });
    assert.ok(fromFile.ok);
    assert.deepEqual(fromFile.config.gateway?.secrets, [utf8Bytes(SECRET)]);
    const fromEnvironment = parseConfig(GOOD.replace(`  secret: ${SECRET}\n`, ''), 'f.yaml', { role: 'gateway', stateDir: '/state', secret: 'another-long-secret' });
    assert.ok(fromEnvironment.ok);
    assert.deepEqual(fromEnvironment.config.gateway?.secrets, [utf8Bytes('another-long-secret')]);
  });

  test('takes secrets of links one a line: a gateway knows all of them, a store goes by the first', () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'config-'));
    const read = (text: string): ReturnType<typeof loadConfigFile> => {
      writeFileSync(path.join(folder, 'k'), text, { mode: 0o600 });
      const store = 'store: {id: s1, host: b, secret_file: k, paths: [{name: A, address: 127.0.0.1:7401}], gateways: [{id: gw-1}]}\n';
      writeFileSync(path.join(folder, 'c.yaml'), GOOD.replace(`secret: ${SECRET}`, 'secret_file: k') + store);
      return loadConfigFile(path.join(folder, 'c.yaml'), { role: 'gateway', stateDir: '/state' });
    };
    const good = read(`\n the one before this \r\n\n${SECRET}\n`);
    assert.ok(good.ok, JSON.stringify(good));
    assert.deepEqual(good.config.gateway?.secrets, [utf8Bytes('the one before this'), utf8Bytes(SECRET)]);
    assert.deepEqual(good.config.stores[0]?.gateways.map(({ secret }) => secret), [utf8Bytes('the one before this')]);
    for (const [text, why] of [
      [`${SECRET}\nshort`, /c\.yaml:5: gateway\.secret_file: expected secrets of 16 characters or more, found a shorter one$/],
      ['\n \n', /c\.yaml:5: gateway\.secret_file: expected a file with a secret, found nothing in '.*k'$/],
    ] as const) {
      const bad = read(text);
      assert.ok(!bad.ok);
      assert.match(bad.errors[0] ?? '', why);
    }
    rmSync(folder, { recursive: true });
  });
});

test('TLS allows store paths outside loopback, and its files are relative to the configuration', () => {
  const gateway = gatewayOf(`${GOOD.replace('127.0.0.1:7402', '10.0.0.2:7402')}  mirror:\n    tls: {ca: tls/ca.crt, cert: /etc/gw.crt, key: gw.key}\n`);
  assert.equal(gateway.insecure, false);
  assert.ok(gateway.mirror.tls?.caFile.endsWith('/tls/ca.crt') && gateway.mirror.tls.caFile.startsWith('/'));
  assert.equal(gateway.mirror.tls?.certFile, '/etc/gw.crt');
});

describe('what is wrong is one line with file, line, path, expectation and finding', () => {
  const cases: readonly (readonly [string, string, string, RegExp])[] = [
    ['a secret that YAML takes for a number, without showing it', `secret: ${SECRET}`, 'secret: 1234567890123456', /^f\.yaml:5: gateway\.secret: expected a secret of one line, found a number that is not shown$/],
    ['an unknown key, with the nearest known one', 'secret:', 'secrt:', /^f\.yaml:5: gateway\.secrt: expected a known key, found 'secrt'; did you mean 'secret'\?$/],
    ['a message larger than a store ever grants', GOOD, `${GOOD}  smtp:\n    message_size_limit: 50MiB\n`, /message_size_limit: expected a size from 1KiB to 30MiB/],
    ['an unknown key of a listener, with the nearest known one', GOOD, `${GOOD}  smtp:\n    listen: [{address: '127.0.0.1:25', rol: relay}]\n`, /^f\.yaml:18: gateway\.smtp\.listen\[0\]\.rol: expected a known key, found 'rol'; did you mean 'role'\?$/],
    ['an unknown key of reports, with those that are known', GOOD, `${GOOD}  reports: {x: 1h}\n`, /^f\.yaml:17: gateway\.reports\.x: expected a known key, found 'x'; known keys: without_route, delay_after, delay_unasked$/],
    ['another word for rescue', GOOD, `${GOOD}  rescue: maybe\n`, /^f\.yaml:17: gateway\.rescue: expected on or off, found "maybe"$/],
    ['a relay domain that no address can have', GOOD, `${GOOD}  smtp:\n    relay_domains: [a_b.example]\n`, /^f\.yaml:18: gateway\.smtp\.relay_domains\[0\]: expected a domain such as example\.com, /],
    ['a wrong unit', GOOD, `${GOOD}  smtp:\n    message_size_limit: 25 parsecs\n`, /^f\.yaml:18: gateway\.smtp\.message_size_limit: expected a size from 1KiB to 30MiB such as 25MiB, found "25 parsecs"$/],
    ['a time without unit', GOOD, `${GOOD}  mirror:\n    lease: 10\n`, /^f\.yaml:18: gateway\.mirror\.lease: expected a time with its unit .*, found 10$/],
    ['a missing key', '  host: box-1\n', '', /^f\.yaml:2: gateway\.host: expected a name of .*, found nothing$/],
    ['a number out of range', GOOD, `${GOOD}  mirror:\n    replicas: 3\n`, /^f\.yaml:18: gateway\.mirror\.replicas: expected a whole number from 1 to 2, found 3$/],
    ['a word that is no choice', GOOD, `${GOOD}  delivery:\n    order: lifo\n`, /^f\.yaml:18: gateway\.delivery\.order: expected one of fifo, strict, found "lifo"$/],
    ['TLS first, but only if it may', 'smtp://127.0.0.1:26', 'smtps://127.0.0.1, tls: may', /^f\.yaml:7: gateway\.routes\[0\]\.tls: expected encrypt or verify with smtps:\/\/, where TLS comes first \(RFC 8314\), found may$/],
    ['TLS first, and none', 'smtp://127.0.0.1:26', 'smtps://127.0.0.1, tls: none', /^f\.yaml:7: gateway\.routes\[0\]\.tls: expected encrypt or verify .*, found none$/],
    ['a CA that nobody asks', 'smtp://127.0.0.1:26', 'smtp://127.0.0.1:26, ca_file: ca.crt', /^f\.yaml:7: gateway\.routes\[0\]\.ca_file: expected it with tls: verify only, where it counts, found tls: may$/],
    ['a name that nobody asks for', 'smtp://127.0.0.1:26', 'smtps://127.0.0.1, server_name: mx.example', /^f\.yaml:7: gateway\.routes\[0\]\.server_name: expected it with tls: verify only, .* found tls: encrypt$/],
    ['a name for hosts of the DNS', 'smtp://127.0.0.1:26', 'mx, tls: verify, server_name: mx.example', /^f\.yaml:7: gateway\.routes\[0\]\.server_name: expected hosts in via beside it, found mx: each host of the DNS is known by its own name$/],
    ['a level of TLS that is none', 'smtp://127.0.0.1:26', 'smtp://127.0.0.1:26, tls: starttls', /^f\.yaml:7: gateway\.routes\[0\]\.tls: expected one of none, may, encrypt, verify, found "?starttls"?$/],
    ['a password that might go in clear', 'smtp://127.0.0.1:26', 'smtp://mx.example:26, auth: {user: a, password_file: b}', /^f\.yaml:7: gateway\.routes\[0\]\.auth: expected tls: verify or encrypt \(or smtps:\/\/\) beside it for hosts outside loopback, found tls: may: the password could cross the network in clear$/],
    ['a password that goes in clear', 'smtp://127.0.0.1:26', 'smtp://mx.example:26, tls: none, auth: {user: a, password_file: b}', /^f\.yaml:7: gateway\.routes\[0\]\.auth: expected tls: verify .*, found tls: none: /],
    ['a password in clear to a fallback', 'smtp://127.0.0.1:26', "smtp://127.0.0.1:26, fallback: 'smtp://mx.example:26', auth: {user: a, password_file: b}", /^f\.yaml:7: gateway\.routes\[0\]\.auth: expected tls: verify .*, found tls: may: /],
    ['a password for whom the DNS names', 'smtp://127.0.0.1:26', 'mx, tls: verify, auth: {user: a, password_file: b}', /^f\.yaml:7: gateway\.routes\[0\]\.auth: expected hosts in via beside it, found mx: whoever the DNS names would get the password$/],
    ['terms of a host that is none of the route', 'smtp://127.0.0.1:26', "smtp://127.0.0.1:26, hosts: [{host: 'smtp://127.0.0.1:27'}]", /^f\.yaml:7: gateway\.routes\[0\]\.hosts\[0\]\.host: expected a host of via or fallback beside it, found another$/],
    ['terms of a host twice', 'smtp://127.0.0.1:26', "smtp://127.0.0.1:26, hosts: [{host: 'smtp://127.0.0.1:26'}, {host: 'smtp://127.0.0.1:26'}]", /^f\.yaml:7: gateway\.routes\[0\]\.hosts\[1\]\.host: expected each host once, found it twice$/],
    ['terms of hosts of the DNS', 'smtp://127.0.0.1:26', 'mx, hosts: [{host: mx}]', /^f\.yaml:7: gateway\.routes\[0\]\.hosts\[0\]\.host: expected a next hop such as smtp:\/\/mail\.example\.com:25, as via or fallback has it, found "mx"$/],
    ['TLS first at one host, but only if it may', 'smtp://127.0.0.1:26', "['smtp://127.0.0.1:26', 'smtps://127.0.0.1:465'], hosts: [{host: 'smtps://127.0.0.1', tls: may}]", /^f\.yaml:7: gateway\.routes\[0\]\.hosts\[0\]\.tls: expected encrypt or verify with smtps:\/\/, .*, found may$/],
    ['a CA of one host that nobody asks', 'smtp://127.0.0.1:26', "smtp://127.0.0.1:26, hosts: [{host: 'smtp://127.0.0.1:26', ca_file: b}]", /^f\.yaml:7: gateway\.routes\[0\]\.hosts\[0\]\.ca_file: expected it with tls: verify only, where it counts, found tls: may$/],
    ['a password that might go in clear to one host', 'smtp://127.0.0.1:26', "['smtp://127.0.0.1:26', 'smtp://mx.example:26'], hosts: [{host: 'smtp://mx.example:26', auth: {user: a, password_file: b}}]", /^f\.yaml:7: gateway\.routes\[0\]\.hosts\[0\]\.auth: expected tls: verify or encrypt .*, found tls: may: /],
    ['a password of the route that would go in clear to one host', 'smtp://127.0.0.1:26', "smtp://mx.example:26, tls: encrypt, auth: {user: a, password_file: b}, hosts: [{host: 'smtp://mx.example:26', tls: may}]", /^f\.yaml:7: gateway\.routes\[0\]\.auth: expected tls: verify or encrypt .*, found tls: may: /],
    ['hosts of two kinds, one of which has no terms', 'smtp://127.0.0.1:26', "['smtp://127.0.0.1:26', 'smtps://127.0.0.1', 'smtps://mx.example'], hosts: [{host: 'smtps://mx.example'}]", /^f\.yaml:7: gateway\.routes\[0\]\.via: expected hosts of one kind \(smtp, smtps or lmtp\), found several kinds$/],
    ['a user without a password', 'smtp://127.0.0.1:26', 'smtp://127.0.0.1:26, auth: {user: a}', /^f\.yaml:7: gateway\.routes\[0\]\.auth\.password_file: expected a file name, found nothing$/],
    ['a password in the configuration itself', 'smtp://127.0.0.1:26', 'smtp://127.0.0.1:26, auth: {user: a, password_file: b, password: hunter2}', /^f\.yaml:7: gateway\.routes\[0\]\.auth\.\(hidden\): expected a known key, found one that is not shown; known keys: user, password_file$/],
    ['a next hop without port', 'smtp://127.0.0.1:26', 'smtp://127.0.0.1', /^f\.yaml:7: gateway\.routes\[0\]\.via: expected mx, or a next hop such as .*, found "smtp:\/\/127\.0\.0\.1"$/],
    ['a list where a mapping belongs', GOOD, `${GOOD}  smtp: [1]\n`, /^f\.yaml:17: gateway\.smtp: expected a mapping, found a list of 1$/],
    ['an address of a listener that is none', GOOD, `${GOOD}  smtp:\n    listen: [127.0.0.1:252525]\n`, /^f\.yaml:18: gateway\.smtp\.listen\[0\]\.address: expected an address such as .*, found "127\.0\.0\.1:252525"$/],
    ['an empty list', GOOD, `${GOOD}  smtp:\n    listen: []\n`, /^f\.yaml:18: gateway\.smtp\.listen: expected at least 1 of them, found an empty list$/],
    ['a short secret', SECRET, 'short', /^f\.yaml:5: gateway\.secret: expected at least 16 characters, found 5$/],
    ['a lease below the rule', GOOD, `${GOOD}  mirror:\n    failover_timeout: 3s\n    lease: 12s\n`, /^f\.yaml:19: gateway\.mirror\.lease: expected at least 3 × failover_timeout \+ 2 × heartbeat \+ 3s \(12500 ms\), found 12000 ms$/],
    ['a store on the gateway\'s host', 'host: box-2', 'host: box-1', /^f\.yaml:10: gateway\.stores\[0\]\.host: expected a host other than the gateway's own, found 'box-1'/],
    ['stores on one host', 'host: box-3', 'host: box-2', /^f\.yaml:14: gateway\.stores\[1\]\.host: expected each host of stores once, found 'box-2' again$/],
    ['a store path in clear over a network', '127.0.0.1:7402', '10.0.0.2:7402', /^f\.yaml:16: gateway\.stores\[1\]\.paths\[0\]\.address: expected TLS \(mirror\.tls of a gateway, tls of a store\) for an address outside loopback, found '10\.0\.0\.2' without.* insecure: true$/],
    ['TLS and its opposite at once', GOOD, `${GOOD}  insecure: true\n  mirror:\n    tls: {ca: a, cert: b, key: c}\n`, /^f\.yaml:19: gateway\.mirror\.tls: expected one of tls and insecure: true, found both$/],
    ['a failover that jitter could set off', GOOD, `${GOOD}  mirror: {heartbeat: 600ms, lease: 20s}\n`, /^f\.yaml:\d+: gateway\.mirror\.failover_timeout: expected at least 4 × heartbeat \(2400 ms\), found 2000 ms$/],
    ['TLS without the CA', GOOD, `${GOOD}  mirror:\n    tls: {cert: b, key: c}\n`, /^f\.yaml:18: gateway\.mirror\.tls\.ca: expected a file name, found nothing$/],
    ['more replicas asked for than kept', GOOD, `${GOOD}  mirror: {replicas: 1, min_replicas: 2}\n`, /^f\.yaml:17: gateway\.mirror\.min_replicas: expected at most replicas \(1\), found 2$/],
    ['a network with bits behind its length', '  routes:', '  smtp: {relay_networks: [10.1.2.3/8]}\n  routes:', /^f\.yaml:6: gateway\.smtp\.relay_networks\[0\]: expected a network such as 10\.0\.0\.0\/8 \(no bits set behind its length\), .*, found "10\.1\.2\.3\/8"$/],
    ['lanes of a route by MX', 'via: smtp://127.0.0.1:26', 'via: mx, lanes: 4', /^f\.yaml:7: gateway\.routes\[0\]\.lanes: expected 1 or nothing with via: mx \(a queue for each domain\), found 4$/],
    ['a lane by sender alone', 'via: smtp://127.0.0.1:26', 'via: smtp://127.0.0.1:26, lanes_by: sender', /^f\.yaml:7: gateway\.routes\[0\]\.lanes_by: expected lanes above 1 beside it, found sender alone$/],
    ['a name too long for queues of domains', 'via: smtp://127.0.0.1:26', `via: mx, name: ${'n'.repeat(65)}`, /^f\.yaml:7: gateway\.routes\[0\]\.name: expected at most 64 characters as the name of a route with a queue for each domain, found 65$/],
    ['a domain that is too long a name', 'via: smtp://127.0.0.1:26', `via: smtp://127.0.0.1:26}\n    - {domain: ${'long.'.repeat(40)}example, via: smtp://127.0.0.1:27`, /^f\.yaml:8: gateway\.routes\[1\]\.name: expected at most 200 characters as the name of a route, found 207$/],
    ['mx in a list', 'via: smtp://127.0.0.1:26', "via: [mx, 'smtp://127.0.0.1:26']", /^f\.yaml:7: gateway\.routes\[0\]\.via: expected mx alone, or a list of hosts, found mx in a list$/],
    ['hosts of several kinds', 'via: smtp://127.0.0.1:26', "via: mx, fallback: 'lmtp://127.0.0.1:24'", /^f\.yaml:7: gateway\.routes\[0\]\.fallback: expected hosts of one kind \(smtp, smtps or lmtp\), found several kinds$/],
    ['a next hop that is the gateway itself', 'smtp://127.0.0.1:26', "['smtp://127.0.0.1:26', 'smtp://localhost:2525']", /^f\.yaml:7: gateway\.routes\[0\]\.via: expected a host other than this gateway, found gateway\.smtp\.listen\[0\]: mail would go in a circle, and bounce$/],
    ['a fallback that is the gateway itself, on all addresses', GOOD, `${GOOD.replace('127.0.0.1:26', "127.0.0.1:26, fallback: 'smtp://127.0.0.1:25'")}  hostname: gw.example\n  smtp: {postmaster: a@b.example, listen: ['127.0.0.1:2526', '0.0.0.0:25']}\n`, /^f\.yaml:7: gateway\.routes\[0\]\.fallback: expected a host other than this gateway, found gateway\.smtp\.listen\[1\]: mail would go in a circle, and bounce$/],
    ['a fallback that is the gateway itself, as others call it', GOOD, `${GOOD.replace('127.0.0.1:26', "127.0.0.1:26, fallback: 'smtp://gw.example:25'")}  hostname: gw.example\n  smtp: {postmaster: a@b.example, listen: ['127.0.0.1:2526', '0.0.0.0:25']}\n`, /^f\.yaml:7: gateway\.routes\[0\]\.fallback: expected a host other than this gateway, found gateway\.smtp\.listen\[1\]: mail would go in a circle, and bounce$/],
    ['balance of one host', 'via: smtp://127.0.0.1:26', 'via: smtp://127.0.0.1:26, balance: true', /^f\.yaml:7: gateway\.routes\[0\]\.balance: expected several hosts in via beside it, found one$/],
    ['two stores at one address', '127.0.0.1:7402', '127.0.0.1:7401', /^f\.yaml:16: gateway\.stores\[1\]\.paths\[0\]\.address: expected each address of stores once, found '127\.0\.0\.1:7401' again$/],
    ['a store named twice', 'id: s2', 'id: s1', /^f\.yaml:13: gateway\.stores\[1\]\.id: expected each store id once, found 's1' again$/],
    ['an admin port for all without tokens', GOOD, `${GOOD}  admin: {listen: 0.0.0.0:8025, tls: {cert: c, key: k}}\n`, /^f\.yaml:17: gateway\.admin\.tokens_file: expected a file of tokens because admin\.listen \(0\.0\.0\.0\) is not loopback, found nothing$/],
    ['an admin port for all in clear', GOOD, `${GOOD}  admin: {listen: 0.0.0.0:8025, tokens_file: t}\n`, /^f\.yaml:17: gateway\.admin\.tls: expected cert and key because admin\.listen \(0\.0\.0\.0\) is not loopback, found nothing; on a network you trust say insecure: true$/],
    ['an admin port for all without tokens, on a network that is trusted', GOOD, `${GOOD}  insecure: true\n  admin: {listen: 0.0.0.0:8025}\n`, /^f\.yaml:18: gateway\.admin\.tokens_file: expected a file of tokens/],
    ['probes on the port of the admin HTTP', GOOD, `${GOOD}  admin: {listen: '127.0.0.1:8025', probes: '127.0.0.1:8025'}\n`, /gateway\.admin\.probes: expected an address of its own/],
    ['a route of a name alone, without a table that leads there', GOOD, GOOD.replace('  routes:\n', '  reports: discard\n  routes:\n').replace("domain: '*', ", 'name: box, '), /^f\.yaml:8: gateway\.routes\[0\]: expected one of domain and domains, found neither \(a name alone needs smtp\.recipients\)$/],
    ['a listener twice', GOOD, `${GOOD}  smtp: {listen: [127.0.0.1:2525, 127.0.0.1:2525]}\n`, /^f\.yaml:17: gateway\.smtp\.listen\[1\]: expected an address of its own, found 127\.0\.0\.1:2525, which gateway\.smtp\.listen\[0\] has$/],
    ['a listener within all addresses', GOOD, `${GOOD}  smtp: {postmaster: a@b.example, listen: ['[::]:25', 127.0.0.1:25]}\n`, /^f\.yaml:17: gateway\.smtp\.listen\[1\]: expected an address of its own, found 127\.0\.0\.1:25, which gateway\.smtp\.listen\[0\] \(\[::\]:25\) has$/],
    ['a listener on the admin port', GOOD, `${GOOD}  smtp: {listen: [127.0.0.1:8025]}\n`, /^f\.yaml(:\d+)?: gateway\.admin\.listen: expected an address of its own, found 127\.0\.0\.1:8025, which gateway\.smtp\.listen\[0\] has$/],
    ['a route for no domain', GOOD, GOOD.replace('  routes:\n', '  reports: discard\n  routes:\n').replace("domain: '*', ", ''), /^f\.yaml:8: gateway\.routes\[0\]: expected one of domain and domains, found neither$/],
    ['no route for reports', "domain: '*'", 'domain: example.net', /^f\.yaml:6: gateway\.routes: expected a route for reports to senders of any domain \(domain: '\*'\), or 'reports: discard' .*, found neither/],
    ['a word for reports that is none', GOOD, GOOD.replace('  routes:\n', '  reports: drop\n  routes:\n'), /^f\.yaml:6: gateway\.reports: expected discard, refuse, or a mapping such as \{without_route: discard, delay_after: 4h\}, found "drop"$/],
    ['a word for reports without a route that is none', GOOD, GOOD.replace('  routes:\n', '  reports: {without_route: drop}\n  routes:\n'), /^f\.yaml:6: gateway\.reports\.without_route: expected one of refuse, discard, found "drop"$/],
    ['a listener for others without a postmaster', GOOD, `${GOOD}  smtp:\n    listen: [192.0.2.1:25]\n`, /^f\.yaml:17: gateway\.smtp: expected 'postmaster: ADDRESS' for a listener beyond loopback/],
    ['a balancer\'s listener without a postmaster', GOOD, `${GOOD}  smtp:\n    listen: [{address: '127.0.0.1:25', proxy: [10.0.0.0/24]}]\n`, /^f\.yaml:17: gateway\.smtp: expected 'postmaster: ADDRESS' for a listener .*behind a balancer \(proxy\)/],
    ['a postmaster to whom no route leads', GOOD, `${GOOD.replace("domain: '*'", 'domains: [a.example, "*.b.example"]')}  reports: discard\n  smtp: {postmaster: ops@b.example, listen: ['0.0.0.0:25']}\n`, /^f\.yaml:18: gateway\.smtp\.postmaster: expected an address whose domain has a route, found 'ops@b\.example', to which none of gateway\.routes leads/],
    ['a network of IPv4 in IPv6, in which no client would be', GOOD, `${GOOD}  smtp: {relay_networks: ['::ffff:0:0/96']}\n`, /^f\.yaml:17: gateway\.smtp\.relay_networks\[0\]: expected a network such as 10\.0\.0\.0\/8 .*, found "::ffff:0:0\/96"$/],
    ['an address of IPv4 in IPv6, which no proxy would have', GOOD, `${GOOD}  smtp: {listen: [{address: '127.0.0.1:25', xclient: ['::ffff:10.1.2.3']}]}\n`, /^f\.yaml:17: gateway\.smtp\.listen\[0\]\.xclient\[0\]: expected a network such as .* \(IPv4 as such, not as ::ffff:…\), found "::ffff:10\.1\.2\.3"$/],
    ['relay networks of half the internet', GOOD, `${GOOD}  smtp: {postmaster: a@b.example, listen: ['0.0.0.0:25'], relay_networks: [10.0.0.0/8, 128.0.0.0/1]}\n`, /^f\.yaml:17: gateway\.smtp\.relay_networks\[1\]: expected networks of your own \(\/8 or longer, IPv6 \/16\), found '128\.0\.0\.0\/1', .* who may send anywhere: that is an open relay$/],
    ['relay networks of everybody by IPv6', GOOD, `${GOOD}  smtp: {postmaster: a@b.example, listen: ['[::]:25'], relay_networks: [fd00::/8, 'fe80::/10', '2000::/3']}\n`, /^f\.yaml:17: gateway\.smtp\.relay_networks\[2\]: .* found '2000::\/3'/],
    ['relay networks of everybody behind a balancer', GOOD, `${GOOD}  smtp: {postmaster: a@b.example, listen: [{address: '127.0.0.1:25', proxy: [127.0.0.1]}], relay_networks: [0.0.0.0/0]}\n`, /^f\.yaml:17: gateway\.smtp\.relay_networks\[0\]: .* open relay$/],
    ['relay networks of everybody behind a proxy', GOOD, `${GOOD}  smtp: {listen: [{address: '127.0.0.1:25', xclient: [127.0.0.1]}], relay_networks: ['::/0']}\n`, /^f\.yaml:17: gateway\.smtp\.relay_networks\[0\]: .* open relay$/],
    ['balancers anywhere', GOOD, `${GOOD}  smtp: {postmaster: a@b.example, listen: [{address: '0.0.0.0:25', proxy: [10.0.0.1, 0.0.0.0/0]}]}\n`, /^f\.yaml:17: gateway\.smtp\.listen\[0\]\.proxy\[1\]: expected networks of your own .* may say to be anybody \(PROXY\): that is an open relay$/],
    ['proxies anywhere', GOOD, `${GOOD}  smtp: {postmaster: a@b.example, listen: [{address: '0.0.0.0:25', xclient: [64.0.0.0/2], xclient_login: true}]}\n`, /^f\.yaml:17: gateway\.smtp\.listen\[0\]\.xclient\[0\]: .* may say to be anybody \(XCLIENT\): that is an open relay$/],
    ['proxies anywhere behind a balancer on this machine', GOOD, `${GOOD}  smtp: {postmaster: a@b.example, listen: [{address: '127.0.0.1:25', proxy: [127.0.0.1], xclient: [0.0.0.0/0]}]}\n`, /^f\.yaml:17: gateway\.smtp\.listen\[0\]\.xclient\[0\]: .* may say to be anybody \(XCLIENT\): that is an open relay$/],
    ['logins of nobody', GOOD, `${GOOD}  smtp: {listen: [{address: '127.0.0.1:2525', xclient_login: true}]}\n`, /^f\.yaml:17: gateway\.smtp\.listen\[0\]\.xclient_login: expected 'xclient: \[NETWORK, …\]' beside it, which says whose logins are believed, found none$/],
    ['submission without TLS, though there is a certificate', GOOD, `${GOOD}  smtp:\n    users: users\n    tls: {cert: c.pem, key: k.pem}\n    listen: [{address: '127.0.0.1:2525', role: submission, tls: off}]\n`, /^f\.yaml:20: gateway\.smtp\.listen\[0\]\.tls: expected starttls or implicit for submission: .*, found off$/],
    ['an address for a host name', GOOD, `${GOOD}  hostname: 192.0.2.1\n`, /^f\.yaml:17: gateway\.hostname: expected the name of this host, found its address '192\.0\.2\.1', which others refuse in EHLO$/],
    ['users asked in clear elsewhere', GOOD, `${GOOD}  smtp:\n    users: {http: 'http://10.0.0.5/check'}\n`, /^f\.yaml:18: gateway\.smtp\.users\.http: expected an address such as https:.*, or http:\/\/ on loopback, found "http:\/\/10\.0\.0\.5\/check"$/],
    ['logins of a proxy with users who are asked about', GOOD, `${GOOD}  smtp:\n    users: {http: 'https://u.example/check'}\n    listen: [{address: '127.0.0.1:2525', xclient: [127.0.0.0/8], xclient_login: true}]\n`, /^f\.yaml:19: gateway\.smtp\.listen\[0\]\.xclient_login: expected a file of users with it/],
    ['senders checked where users submit', GOOD, `${GOOD}  smtp:\n    users: users\n    tls: {cert: c.pem, key: k.pem}\n    listen: [{address: '127.0.0.1:2525', role: submission, authentication_results: true}]\n`, /^f\.yaml:20: gateway\.smtp\.listen\[0\]\.authentication_results: expected it on relay listeners only/],
    ['a name of ours that is none', GOOD, `${GOOD}  smtp: {authserv_id: 'a b'}\n`, /^f\.yaml:17: gateway\.smtp\.authserv_id: expected /],
    ['a token that is not there', GOOD, `${GOOD}  smtp:\n    users: {http: 'http://127.0.0.1:8080/check', token_file: /nowhere/at/all}\n`, /^f\.yaml:18: gateway\.smtp\.users\.token_file: expected a file with a token, found: one that can't be read: ENOENT$/],
    ['a hook that is neither kind', GOOD, `${GOOD}  smtp:\n    hooks: [{timeout: 5s}]\n`, /^f\.yaml:18: gateway\.smtp\.hooks\[0\]: expected one of rspamd: URL and module: FILE, found neither$/],
    ['a hook that is both kinds', GOOD, `${GOOD}  smtp:\n    hooks: [{module: a.js, rspamd: 'http://127.0.0.1:1'}]\n`, /^f\.yaml:18: gateway\.smtp\.hooks\[0\]: expected one of .*, found both$/],
    ['threads of rspamd', GOOD, `${GOOD}  smtp:\n    hooks: [{threads: 2, rspamd: 'http://127.0.0.1:1'}]\n`, /^f\.yaml:18: gateway\.smtp\.hooks\[0\]\.threads: expected it beside module only, found it beside rspamd$/],
    ['a password for a module', GOOD, `${GOOD}  smtp:\n    hooks: [{module: a.js, password_file: p}]\n`, /^f\.yaml:18: gateway\.smtp\.hooks\[0\]\.password_file: expected it beside rspamd only, found it beside module$/],
    ['a password of rspamd that is not there', GOOD, `${GOOD}  smtp:\n    hooks: [{rspamd: 'http://[::1]:1', password_file: /nowhere/at/all}]\n`, /^f\.yaml:18: gateway\.smtp\.hooks\[0\]\.password_file: expected a file with a password, found: one that can't be read: ENOENT$/],
    ['a password of rspamd of two lines', GOOD, `${GOOD}  smtp:\n    hooks: [{rspamd: 'http://[::1]:1', password_file: ${TWO_LINES_FILE}}]\n`, /^f\.yaml:18: gateway\.smtp\.hooks\[0\]\.password_file: expected a file with a password, one line of printable ASCII, found something else in '[^']+two-lines'$/],
    ['a password of rspamd that no HTTP field holds', GOOD, `${GOOD}  smtp:\n    hooks: [{rspamd: 'http://[::1]:1', password_file: ${WIDE_FILE}}]\n`, /hooks\[0\]\.password_file: expected a file with a password, one line of printable ASCII, found something else in '[^']+wide'$/],
    ['a token of two lines', GOOD, `${GOOD}  smtp:\n    users: {http: 'http://127.0.0.1:8080/check', token_file: ${TWO_LINES_FILE}}\n`, /^f\.yaml:18: gateway\.smtp\.users\.token_file: expected a file with a token, one line of printable ASCII, found something else in /],
    ['mail to rspamd in clear over a network', GOOD, `${GOOD}  smtp:\n    hooks: [{rspamd: 'http://10.0.0.5:11333'}]\n`, /^f\.yaml:18: gateway\.smtp\.hooks\[0\]\.rspamd: expected https:\/\/ for a server outside loopback, found 'http:\/\/10\.0\.0\.5:11333': .* say insecure: true$/],
    ['an address of rspamd with a path', GOOD, `${GOOD}  smtp:\n    hooks: [{rspamd: 'http://127.0.0.1:11333/checkv2'}]\n`, /^f\.yaml:18: gateway\.smtp\.hooks\[0\]\.rspamd: expected an address without a path, such as .*, found "http/],
    ['conditions on a route without a name', '  stores:\n    - id: s1', "    - {domain: a.test, via: smtp://127.0.0.1:27, when: {senders: ['*@a.example']}}\n  stores:\n    - id: s1", /^f\.yaml:8: gateway\.routes\[1\]: expected a name for a route with when, found none$/],
    ['conditions that say nothing', '  stores:\n    - id: s1', "    - {domain: '*', via: smtp://127.0.0.1:27, name: x, when: {}}\n  stores:\n    - id: s1", /^f\.yaml:8: gateway\.routes\[1\]\.when: expected senders, recipients or listeners, found none of them$/],
    ['conditions of a listener that is not there', '  stores:\n    - id: s1', "    - {domain: '*', via: smtp://127.0.0.1:27, name: x, when: {listeners: ['*:465']}}\n  stores:\n    - id: s1", /^f\.yaml:8: gateway\.routes\[1\]\.when\.listeners\[0\]: expected an address of smtp\.listen \(127\.0\.0\.1:2525\), found '\*:465'$/],
    ['senders that nobody is', '  stores:\n    - id: s1', "    - {domain: '*', via: smtp://127.0.0.1:27, name: x, when: {senders: ['<>', '*', 'news.example.com']}}\n  stores:\n    - id: s1", /^f\.yaml:8: gateway\.routes\[1\]\.when\.senders\[2\]: expected a pattern of addresses, with @ or \* \(such as '\*@news\.example\.com'\), or '<>', found 'news\.example\.com'$/],
    ['recipients that nobody is', '  stores:\n    - id: s1', "    - {domain: '*', via: smtp://127.0.0.1:27, name: x, when: {recipients: ['a@b.example', 'foo.example']}}\n  stores:\n    - id: s1", /^f\.yaml:8: gateway\.routes\[1\]\.when\.recipients\[1\]: expected a pattern of addresses, with @ or \*.*, found 'foo\.example'$/],
    ['a selector that is none', GOOD, `${GOOD}  dkim: [{domain: a.example, selector: s_1, key_file: k.pem}]\n`, /^f\.yaml:17: gateway\.dkim\[0\]\.selector: expected a selector such as s2026: letters, digits and dashes, in labels with dots between them, 63 at most, found "?s_1"?$/],
    ['a pattern with a blank', '  stores:\n    - id: s1', "    - {domain: '*', via: smtp://127.0.0.1:27, name: x, when: {senders: ['a b']}}\n  stores:\n    - id: s1", /^f\.yaml:8: gateway\.routes\[1\]\.when\.senders\[0\]: expected a pattern of up to 320 characters without blanks, such as '\*@news\.example\.com', found "a b"$/],
    ['conditions on the only route for senders elsewhere', 'via: smtp://127.0.0.1:26', "name: x, when: {senders: ['*@a.example']}, via: smtp://127.0.0.1:26", /^f\.yaml:6: gateway\.routes: expected a route for reports to senders of any domain/],
    ['two hooks of one name', GOOD, `${GOOD}  smtp:\n    hooks: [{module: a/x.js}, {module: b/x.mjs}]\n`, /^f\.yaml:18: gateway\.smtp\.hooks\[1\]: expected each name of a hook once, found 'x' again$/],
    ['a hook that keeps clients for longer than they wait', GOOD, `${GOOD}  smtp:\n    hooks: [{module: x.js, timeout: 5min}]\n`, /^f\.yaml:18: gateway\.smtp\.hooks\[0\]\.timeout: expected a time with its unit from 10ms to 60s /],
    ['recipients asked in clear elsewhere', GOOD, `${GOOD}  smtp:\n    recipients: {http: 'http://10.0.0.5/'}\n`, /^f\.yaml:18: gateway\.smtp\.recipients\.http: expected an address such as https:.*, or http:\/\/ on loopback, found/],
    ['a token for recipients that is not there', GOOD, `${GOOD}  smtp:\n    recipients: {http: 'http://127.0.0.1:8080/', token_file: /nowhere/at/all}\n`, /^f\.yaml:18: gateway\.smtp\.recipients\.token_file: expected a file with a token, found: one that can't be read: ENOENT$/],
    ['a domain for rewritten senders that is none', GOOD, `${GOOD}  smtp:\n    srs: {domain: fwd_1, secret_file: /nowhere/at/all}\n`, /^f\.yaml:18: gateway\.smtp\.srs\.domain: expected a domain such as fwd\.example\.com, found a string that is not shown$/],
    ['a secret for rewritten senders that is not there', GOOD, `${GOOD}  smtp:\n    srs: {domain: fwd.example, secret_file: /nowhere/at/all}\n`, /^f\.yaml:18: gateway\.smtp\.srs\.secret_file: expected a file with a secret, one a line, found: one that can't be read: ENOENT$/],
    ['a prefix of return addresses that is none', `${GOOD}`, GOOD.replace("26}", "26, verp: {domain: b.example, prefix: 'a+b', secret_file: /nowhere/at/all}}"), /^f\.yaml:7: gateway\.routes\[0\]\.verp\.prefix: expected letters and digits, 16 at most, and not srs0 or srs1, found a string that is not shown$/],
    ['a secret of return addresses that is short', `${GOOD}`, GOOD.replace('26}', `26, verp: {domain: b.example, secret_file: ${SHORT_FILE}}}`), /^f\.yaml:7: gateway\.routes\[0\]\.verp\.secret_file: expected secrets of 16 characters or more, found a shorter one$/],
    ['a comment among secrets of links', GOOD, GOOD.replace(`secret: ${SECRET}`, `secret_file: ${COMMENT_FILE}`), /^f\.yaml:5: gateway\.secret_file: expected one secret a line and no comments, found a line that begins with #$/],
    ['a comment among secrets of SRS', GOOD, `${GOOD}  smtp:\n    srs: {domain: fwd.example, secret_file: ${COMMENT_FILE}}\n`, /^f\.yaml:\d+: gateway\.smtp\.srs\.secret_file: expected one secret a line and no comments, found /],
    ['a comment among secrets of return addresses', GOOD, GOOD.replace('26}', `26, verp: {domain: b.example, secret_file: ${COMMENT_FILE}}}`), /^f\.yaml:7: gateway\.routes\[0\]\.verp\.secret_file: expected one secret a line and no comments, found /],
    ['two routes with the same return addresses', `${GOOD}`, GOOD.replace('26}', `26, verp: {domain: b.example, secret_file: ${TWO_LINES_FILE}}}\n    - {domain: x.example, via: smtp://127.0.0.1:26, verp: {domain: B.example, secret_file: ${TWO_LINES_FILE}}}`), /^f\.yaml:8: gateway\.routes\[1\]\.verp\.prefix: expected each return address \(domain and prefix\) once, found 'b\+…@b\.example' again$/],
    ['an address of feedback loops that is none', GOOD, `${GOOD}  smtp:\n    feedback: {address: fbl}\n`, /^f\.yaml:18: gateway\.smtp\.feedback\.address: expected an address such as ops@example\.com, found "fbl"/],
    ['feedback reports that come back to their own address', GOOD, `${GOOD}  smtp:\n    feedback:\n      address: fbl@bounces.example\n      forward_to: FBL@Bounces.EXAMPLE\n`, /^f\.yaml:20: gateway\.smtp\.feedback\.forward_to: expected the address of somebody who reads them, found 'FBL@bounces\.example', where reports come in \('address'\): each report would come back, and bounce$/],
    ['feedback reports that go to a return address', GOOD, `${GOOD.replace('26}', `26, verp: {domain: b.example, secret_file: ${TWO_LINES_FILE}}}`)}  smtp:\n    feedback: {address: fbl@b.example, forward_to: B+abuse@B.example}\n`, /^f\.yaml:18: gateway\.smtp\.feedback\.forward_to: expected .*, found 'B\+abuse@b\.example', a return address of a route \(verp\): each report would come back, and bounce$/],
    ['a secret for rewritten senders that is short', GOOD, `${GOOD}  smtp:\n    srs: {domain: fwd.example, secret_file: ${SHORT_FILE}}\n`, /^f\.yaml:18: gateway\.smtp\.srs\.secret_file: expected secrets of 16 characters or more, found a shorter one$/],
    ['a postmaster that is no address', GOOD, `${GOOD}  smtp:\n    postmaster: ops\n`, /^f\.yaml:18: gateway\.smtp\.postmaster: expected an address such as ops@example\.com, found "ops"$/],
    ['a secret file that is not there', `secret: ${SECRET}`, 'secret_file: /nowhere/at/all', /^f\.yaml:5: gateway\.secret_file: expected a file with a secret, found: one that can't be read: ENOENT$/],
    ['a key twice', '  host: box-1\n', '  host: box-1\n  host: box-9\n', /^f\.yaml:5: file: expected YAML, found: .*$/],
  ];
  for (const [name, from, to, line] of cases) {
    test(name, () => {
      const errors = errorsOf(GOOD.replace(from, to));
      assert.equal(errors.length, 1, errors.join('\n'));
      assert.match(errors[0] ?? '', line);
    });
  }

  test('a password in an address is refused and not printed, nor is a secret that is no text', () => {
    const WORD = 'pw-4711';
    const cases: readonly (readonly [value: string, told: RegExp])[] = [
      [`  smtp:\n    users: {http: 'https://user:${WORD}@a.example/x'}\n`, /users\.http: .*, found "https:\/\/\(hidden\)@a\.example\/x"$/],
      [`  smtp:\n    users: {http: 'http://a.example/x?key=${WORD}'}\n`, /users\.http: .*, found "http:\/\/a\.example\/x\?\(hidden\)"$/],
      [`  smtp:\n    recipients: {http: 'https://:${WORD}@a.example/x'}\n`, /recipients\.http: .*, found "https:\/\/\(hidden\)@/],
      [`  smtp:\n    hooks: [{rspamd: 'http://:${WORD}@127.0.0.1:1'}]\n`, /rspamd: .*, found "http:\/\/\(hidden\)@127/],
      [`register: {etcd: ['https://root:${WORD}/@b@10.1.0.5:2379'], cluster: c}\n`, /register\.etcd\[0\]: .*, found "https:\/\/\(hidden\)@10/],
      [`  secret: "${WORD}\\t"\n`, /gateway\.secret: .*, found a string that is not shown$/],
      [`  secret: [${WORD}]\n`, /gateway\.secret: .*, found a list of 1$/],
      [`  secret:${WORD}: 1\n`, /^f\.yaml:5: gateway\.\(hidden\): expected a known key, found one that is not shown; a blank is missing behind 'secret:'$/],
      [`store: {id: s1, secret:${WORD}}\n`, /^f\.yaml:\d+: store\.\(hidden\): .*'secret:'$/],
      [`store:\n  secret:${WORD}\n`, /store: expected a mapping, found a string that is not shown$/],
      [`store:\n  id: s1\n    Secret_:${WORD}\n`, /store\.id: .*, found "s1 Secret_:\(hidden\)"$/],
      [`store:\n  secret ${WORD}\n`, /store: expected a mapping, found a string that is not shown$/],
      [`store:\n  id: s1\n  token ${WORD}: 1\n`, /store\.\(hidden\): expected a known key, found one that is not shown; known keys: /],
      [`store: {id: s1, secret: abc,${WORD}}\n`, /store\.\(hidden\): expected a known key, found one that is not shown; known keys: /],
      [`store: {id: s1, secret: abc,\n  ${WORD}, d}\n`, /^f\.yaml:18: store\.\(hidden\): expected a known key, found one that is not shown; known keys: /],
      [`store:\n  secret: |${WORD}\n`, /^f\.yaml:18: file: expected YAML, found: unexpected token \(the line may have a secret, and is not shown\)$/],
      [`  smtp:\n    srs: {domain: fwd.example, secret_file: ${WORD}}\n`, /smtp\.srs\.secret_file: expected a file with a secret.*, found: one that can't be read: ENOENT$/],
    ];
    for (const [more, told] of cases) {
      const errors = errorsOf(more.startsWith('  secret:') ? GOOD.replace(/ {2}secret: .*\n/, more) : `${GOOD}${more}`);
      assert.ok(errors.some((error) => told.test(error)), errors.join('\n'));
      assert.ok(!errors.join('').includes(WORD), errors.join('\n'));
    }
  });

  test('a secret in a mapping that YAML takes for a key is not printed, neither in what is refused nor in a warning', async (t) => {
    const WORD = 'hunter2hunter2';
    const warnings: string[] = [];
    const onWarning = ({ message }: Error): void => { warnings.push(message); };
    process.on('warning', onWarning);
    t.after(() => { process.off('warning', onWarning); });
    const auth = (key: string): string => GOOD.replace("{domain: '*', via: smtp://127.0.0.1:26}", `domain: '*'\n      via: smtp://127.0.0.1:26\n      auth:\n        user: bob\n        ${key}`);
    const cases: readonly (readonly [text: string, told: RegExp])[] = [
      [GOOD.replace(SECRET, `{{${WORD}}}`), /^f\.yaml:5: gateway\.secret: expected a secret of one line, found a mapping$/],
      [GOOD.replace(`secret: ${SECRET}`, `secret_file: [{[${WORD}]: x}]`), /^f\.yaml:5: gateway\.secret_file: .*, found a list of 1$/],
      [auth(`? {password_file: ${WORD}}`), /auth\.\(hidden\): expected a known key, found one that is not shown; known keys: user, password_file$/],
      [auth(`? {\n          password_file:\n            ${WORD}}`), /auth\.\(hidden\): expected a known key, found one that is not shown; known keys: user, password_file$/],
      [auth(`? [\n          ${WORD}]`), /auth\.\(hidden\): expected a known key, found one that is not shown; known keys: user, password_file$/],
    ];
    for (const [text, told] of cases) {
      const errors = errorsOf(text);
      assert.ok(errors.some((error) => told.test(error)), errors.join('\n'));
      assert.ok(!errors.join('').includes(WORD), errors.join('\n'));
    }
    // They are told in a turn of their own.
    await new Promise(setImmediate);
    assert.deepEqual(warnings, []);
  });

  test('a word or a time that is none is shown also beside a secret, which is not', () => {
    const WORD = 'pw-4711';
    const verp = (keys: string): string => `verp: {domain: b.example, ${keys}secret_file: ${WORD}}`;
    const cases: readonly (readonly [keys: string, told: RegExp])[] = [
      [`tls: verfy, auth: {user: a, password_file: ${WORD}}`, /routes\[0\]\.tls: expected one of none, may, encrypt, verify, found "verfy"$/],
      [`balance: maybe, auth: {user: a, password_file: ${WORD}}`, /balance: expected true or false, found "maybe"$/],
      [verp('valid_for: 10, '), /verp\.valid_for: expected a time .*, found 10$/],
      [verp('valid_for: 200d, '), /verp\.valid_for: expected a time .*, found "200d"$/],
      [verp('returned: forwards, '), /verp\.returned: expected one of forward, discard, found "forwards"$/],
      [`tls: verify password_file ${WORD}, auth: {user: a}`, /routes\[0\]\.tls: expected one of .*, found a string that is not shown$/],
      [`tls: verify:${WORD}, auth: {user: a, password_file: x}`, /routes\[0\]\.tls: expected one of .*, found a string that is not shown$/],
      ['password: x, auth: pw4711', /routes\[0\]\.auth: expected a mapping, found a string that is not shown$/],
      [`auth: {user: a, password_file: [${WORD}]}`, /password_file: expected a file name, found a list of 1$/],
      [verp(`prefix: '${WORD}', `), /verp\.prefix: .*, found a string that is not shown$/],
    ];
    for (const [keys, told] of cases) {
      const errors = errorsOf(GOOD.replace('26}', `26, ${keys}}`));
      assert.ok(errors.some((error) => told.test(error)), errors.join('\n'));
      assert.ok(!errors.join('').includes(WORD), errors.join('\n'));
    }
  });

  test('other keys that are none are told as they are', () => {
    for (const [key, hint] of [["'ro utes'", "did you mean 'routes'?"], ['größe', 'known keys: '], ['state dir', "did you mean 'state_dir'?"]] as const) {
      const [error = ''] = errorsOf(`${GOOD}  ${key}: 1\n`);
      assert.ok(error.includes(`found '${key.replaceAll("'", '')}'; ${hint}`), error);
    }
    assert.match(errorsOf(`${GOOD}  smtp: |x\n`)[0] ?? '', /found: .*\|x/);
  });

  test('of a file with a tab only the first place is told', () => {
    const errors = errorsOf(`${GOOD}\tsmtp:\n\t\tlisten: []\n\tadmin: {}\n`);
    assert.equal(errors.length, 1);
    assert.match(errors[0] ?? '', /^f\.yaml:1\d: file: expected YAML, found: /);
  });

  test('what stands behind "?" of an address that is asked is used, and not shown', () => {
    const result = parseConfig(`${GOOD}  smtp: {users: {http: 'https://u.example/x?key=pw-4711'}}\n`, 'f.yaml', { role: 'gateway', stateDir: '/state' });
    assert.ok(result.ok);
    assert.equal(result.config.gateway?.smtp.usersByHttp?.url, 'https://u.example/x?key=pw-4711');
    const shown = effectiveYaml(result.value, result.config, 2 ** 30);
    assert.ok(shown.includes('https://u.example/x?(hidden)') && !shown.includes('4711'));
    const [refused = '', ...more] = errorsOf(`${GOOD}  smtp: {users: {http: 'https://u.example/x?(hidden)'}}\n`);
    assert.match(refused, /^f\.yaml:\d+: gateway\.smtp\.users\.http: expected an address .*, found "https:\/\/u\.example\/x\?\(hidden\)"$/);
    assert.deepEqual(more, []);
  });

  test('all of it at once, in the order of the file', () => {
    const errors = errorsOf(GOOD.replace('id: gw-1', 'id: "gw 1"').replace('address: 127.0.0.1:7402', 'adress: 127.0.0.1:7402'));
    assert.deepEqual(errors.map((line) => /^f\.yaml:(\d+): (\S+):/.exec(line)?.slice(1, 3)), [
      ['3', 'gateway.id'],
      ['16', 'gateway.stores[1].paths[0].address'],
      ['16', 'gateway.stores[1].paths[0].adress'],
    ]);
  });

  test('a file that is no mapping, is empty, is not there', () => {
    assert.match(errorsOf('- 1\n')[0] ?? '', /^f\.yaml:1: file: expected a mapping .*, found a list of 1$/);
    assert.match(errorsOf('')[0] ?? '', /^f\.yaml:1: file: expected a mapping .*, found an empty value$/);
    const pipe = path.join(path.dirname(SHORT_FILE), 'pipe');
    spawnSync('mkfifo', [pipe]);
    const piped = loadConfigFile(pipe, { role: 'check' });
    assert.deepEqual(piped, { ok: false, errors: [`${pipe}:1: file: expected a file that can be read, found a pipe or a device`] }, 'and waits for nobody');
    const missing = loadConfigFile('/nowhere/f.yaml', { role: 'check' });
    assert.deepEqual(missing, { ok: false, errors: ['/nowhere/f.yaml:1: file: expected a file that can be read, found ENOENT'] });
  });

  test('aliases that unfold without end', () => {
    const bomb = `a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n`;
    assert.equal(errorsOf(bomb).length, 1);
  });
});

describe('the register', () => {
  const ETCD = 'register: {etcd: [\'https://10.1.0.5:2379\', \'https://[fd00::1]:2379/\'], cluster: mail}\n';
  const folder = mkdtempSync(path.join(os.tmpdir(), 'config-'));
  writeFileSync(path.join(folder, 'password'), 'a word\n', { mode: 0o600 });
  writeFileSync(path.join(folder, 'nothing'), '\n', { mode: 0o600 });

  function registerOf(text: string, options: Partial<LoadOptions> = {}) {
    const result = parseConfig(text, path.join(folder, 'f.yaml'), { role: 'gateway', ...options });
    assert.ok(result.ok, result.ok ? '' : result.errors.join('\n'));
    return result.config.gateway?.register;
  }

  test('is a file of state_dir, which the upper process serves to its workers', () => {
    const file = { kind: 'file', stateDir: path.join(folder, 'state'), isServed: false };
    assert.deepEqual(registerOf(`${GOOD}  state_dir: state\n`), file);
    assert.deepEqual(registerOf(`register: file\n${GOOD}  state_dir: state\n`), file);
    assert.deepEqual(registerOf(`${GOOD}  state_dir: state\n  workers: 2\n`), { ...file, isServed: true });
    const result = parseConfig(`${GOOD}  workers: 2\n`, 'f.yaml', { role: 'gateway', stateDir: '/state' });
    assert.ok(result.ok && result.config.gateway !== undefined);
    const worker = workerConfig(result.config.gateway, 2, 2 ** 30);
    assert.deepEqual(worker.register, { kind: 'socket', stateDir: '/state' });
    assert.equal(worker.stateDir, '/state/gw-1-2');
  });

  test('of `up` is kept by that process, for any number of gateways', () => {
    const served = { kind: 'socket', stateDir: '/up' };
    assert.deepEqual(registerOf(`${GOOD}  group: [gw-1, gw-2]\n`, { registerDir: '/up' }), served);
    assert.deepEqual(registerOf(EMBEDDED_UP_YAML, { role: 'up', secret: SECRET, registerDir: '/up' }), served);
  });

  test('is etcd, for gateways and stores of the file, with its access', () => {
    const access = ETCD.replace('}', ', user: twinpost, password_file: password, ca: ca.crt, cert: /c, key: k, max_txn_ops: 64}');
    const etcd = {
      kind: 'etcd', endpoints: ['https://10.1.0.5:2379', 'https://[fd00::1]:2379'], cluster: 'mail', user: 'twinpost',
      password: 'a word', caFile: path.join(folder, 'ca.crt'), certFile: '/c', keyFile: path.join(folder, 'k'), operationsMax: 64,
    };
    assert.deepEqual(registerOf(access + GOOD), etcd);
    const plain = { ...etcd, user: '', password: '', caFile: undefined, certFile: undefined, keyFile: undefined, operationsMax: 128 };
    assert.deepEqual(registerOf(`${ETCD}${GOOD}  group: [gw-1, gw-2]\n`), plain, 'no folder is needed, and a group is one');
    const store = parseConfig(`${ETCD}store: {id: s1, host: box-2, paths: [{name: A, address: '10.1.0.2:7401'}], insecure: true, gateways: [{id: gw-1, secret: ${SECRET}}]}`, 'f.yaml', { role: 'store' });
    assert.ok(store.ok, store.ok ? '' : store.errors.join('\n'));
    assert.deepEqual(store.config.stores[0]?.register, plain);
  });

  test('says who is of the group where that is left out: with etcd all, with a file nobody else', () => {
    function groupOf(text: string): readonly string[] | undefined {
      const result = parseConfig(text, 'f.yaml', { role: 'gateway', stateDir: '/state' });
      assert.ok(result.ok, result.ok ? '' : result.errors.join('\n'));
      return result.config.gateway?.group;
    }
    const workers = ['gw-1-1', 'gw-1-2'];
    assert.deepEqual([groupOf(GOOD), groupOf(`${GOOD}  workers: 2\n`)], [[], workers]);
    assert.deepEqual([groupOf(ETCD + GOOD), groupOf(`${ETCD}${GOOD}  workers: 2\n`)], [undefined, undefined]);
    assert.deepEqual(groupOf(`${ETCD}${GOOD}  group: []\n`), []);
    assert.deepEqual(groupOf(`${ETCD}${GOOD}  group: [gw-1, gw-2]\n`), ['gw-1', 'gw-2']);
    assert.deepEqual(groupOf(`${ETCD}${GOOD}  group: [{id: gw-2, workers: 1}]\n  workers: 2\n`), ['gw-2', ...workers]);
  });

  test('is shown as it is said', () => {
    const result = parseConfig(`${ETCD}${GOOD}`, 'f.yaml', { role: 'gateway' });
    assert.ok(result.ok);
    const text = effectiveYaml(result.value, result.config, 2 ** 30);
    assert.match(text, /register:\n {2}etcd:\n {4}- https:\/\/10\.1\.0\.5:2379\n {4}- .*\n {2}cluster: mail\n {2}max_txn_ops: 128\n/);
    const file = parseConfig(GOOD, 'f.yaml', { role: 'gateway', stateDir: '/state' });
    assert.ok(file.ok);
    assert.match(effectiveYaml(file.value, file.config, 2 ** 30), /^register: file\n/);
  });

  const wrong: readonly (readonly [what: string, text: string, line: RegExp])[] = [
    ['no folder for the file', GOOD, /^f\.yaml:2: gateway\.state_dir: expected a folder, in which register: file keeps who holds what, found nothing$/],
    ['a group whose gateways each have a file', `${GOOD}  state_dir: s\n  group: [gw-1, gw-2]\n`, /^f\.yaml:18: gateway\.group: expected 'register: \{etcd: .* for a group of gateways, found register: file: gw-1 and gw-2 could not know .* set up etcd \(docs\/REGISTER\.md\), or leave group out$/],
    ['another word', `register: disk\n${GOOD}`, /^f\.yaml:1: register: expected file, or a mapping such as \{etcd: .*\}, found "disk"$/],
    ['an empty value', `register:\n${GOOD}`, /^f\.yaml:1: register: expected file, or a mapping such as .*, found an empty value$/],
    ['no cluster', ETCD.replace(', cluster: mail', '') + GOOD, /^f\.yaml:1: register\.cluster: expected a name of .*, found nothing$/],
    ['an unknown key', ETCD.replace('cluster', 'clustr: x, cluster') + GOOD, /^f\.yaml:1: register\.clustr: expected a known key, found 'clustr'; did you mean 'cluster'\?$/],
    ['no endpoint', `register: {etcd: [], cluster: mail}\n${GOOD}`, /^f\.yaml:1: register\.etcd: expected at least 1 of them, found an empty list$/],
    ['an endpoint without port', ETCD.replace(':2379', '') + GOOD, /^f\.yaml:1: register\.etcd\[0\]: expected an address of etcd such as https:\/\/10\.1\.0\.5:2379, found "https:\/\/10\.1\.0\.5"$/],
    ['an endpoint twice', `register: {etcd: ['http://[::1]:1', 'http://[::1]:1'], cluster: m}\n${GOOD}`, /^f\.yaml:1: register\.etcd\[1\]: expected each address once, found 'http:\/\/\[::1\]:1' again$/],
    ['in clear over a network', ETCD.replace('https', 'http') + GOOD, /^f\.yaml:1: register\.etcd\[0\]: expected https:\/\/ for an etcd outside loopback, found 'http:\/\/10\.1\.0\.5:2379': .* insecure: true/],
    ['certificates for a connection in clear', `register: {etcd: ['http://localhost:1'], cluster: m, ca: c}\n${GOOD}`, /^f\.yaml:1: register\.etcd\[0\]: expected https:\/\/ with ca or cert, found 'http:\/\/localhost:1'$/],
    ['a user without a password', ETCD.replace('}', ', user: u}') + GOOD, /^f\.yaml:1: register\.user: expected password_file beside it, found nothing$/],
    ['a key without a certificate', ETCD.replace('}', ', key: k}') + GOOD, /^f\.yaml:1: register\.key: expected cert beside it, found nothing$/],
    ['a password file that is not there', ETCD.replace('}', ', user: u, password_file: /nowhere}') + GOOD, /^f\.yaml:1: register\.password_file: expected a file with a password, found: one that can't be read: ENOENT$/],
    ['an empty password', ETCD.replace('}', `, user: u, password_file: ${path.join(folder, 'nothing')}}`) + GOOD, /^f\.yaml:1: register\.password_file: expected a file with a password, found nothing in '/],
  ];
  for (const [what, text, line] of wrong) {
    test(`refuses ${what}`, () => {
      const result = parseConfig(text, 'f.yaml', { role: 'gateway' });
      const errors = result.ok ? [] : result.errors;
      assert.equal(errors.length, 1, errors.join('\n'));
      assert.match(errors[0] ?? '', line);
    });
  }

  test('may be asked in clear over a network that is trusted', () => {
    assert.notEqual(registerOf(`${ETCD.replaceAll('https', 'http')}${GOOD}  insecure: true\n`), undefined);
  });
});

describe('a group that finds itself by etcd', () => {
  const LOCAL = "register: {etcd: ['http://127.0.0.1:2379'], cluster: mail}\n";
  const FAR = "register: {etcd: ['https://10.1.0.5:2379'], cluster: mail}\n";
  const ALONE = `${GOOD.slice(0, GOOD.indexOf('  stores:'))}`;
  const STORE = "store: {id: s1, host: box-2, paths: [{name: A, address: '10.1.0.2:7401'}], tls: {ca: c, cert: c, key: k}";

  const storeOf = (text: string, secret?: string) => {
    const result = parseConfig(text, 'f.yaml', { role: 'store', ...(secret === undefined ? {} : { secret }) });
    assert.ok(result.ok, result.ok ? '' : result.errors.join('\n'));
    const [store] = result.config.stores;
    assert.ok(store !== undefined);
    return store;
  };
  const textOf = (bytes: Uint8Array | undefined): string | undefined => (bytes === undefined ? undefined : Buffer.from(bytes).toString());

  test('needs no stores at the gateway: all that etcd names are used, or only those that are named here', () => {
    assert.deepEqual([gatewayOf(LOCAL + ALONE).stores, gatewayOf(LOCAL + ALONE).learnStores], [[], { only: undefined }]);
    const some = gatewayOf(`${LOCAL}${GOOD}    - id: s3\n    - {id: s4}\n`);
    assert.deepEqual([some.stores.map(({ id }) => id), some.learnStores], [['s1', 's2'], { only: ['s3', 's4'] }]);
    assert.equal(gatewayOf(GOOD).learnStores, undefined, 'a file names nobody');
  });

  test('needs no gateways at the store: its secret, or that of the gateway in the same file, or of the environment, is the group\'s', () => {
    const own = storeOf(`${FAR}${STORE}, secret: ${SECRET}, weight: 3}`);
    assert.deepEqual([own.gateways, textOf(own.groupSecret), own.weight], [[], SECRET, 3]);
    assert.equal(textOf(storeOf(`${LOCAL}${STORE}}\n${ALONE}`).groupSecret), SECRET);
    assert.equal(textOf(storeOf(`${FAR}${STORE}}`, SECRET.repeat(2)).groupSecret), SECRET.repeat(2));
    const named = storeOf(`${FAR}${STORE}, secret: ${SECRET}, gateways: [{id: gw-1}, {id: gw-2, secret: ${SECRET}-2}]}`);
    assert.deepEqual(named.gateways.map(({ id, secret }) => [id, textOf(secret)]), [['gw-1', SECRET], ['gw-2', `${SECRET}-2`]]);
    assert.equal(named.groupSecret, undefined, 'they restrict');
    assert.equal(storeOf(`${STORE}, gateways: [{id: gw-1, secret: ${SECRET}}]}`).groupSecret, undefined);
  });

  test('may listen on all addresses when it is said by which it is reached', () => {
    const store = storeOf(`${FAR}${STORE.replace("'10.1.0.2:7401'", "'0.0.0.0:7401', advertise: 'box-2.internal:7401'")}, secret: ${SECRET}}`);
    assert.deepEqual(store.paths, [{ name: 'A', address: { host: '0.0.0.0', port: 7401 }, advertised: { host: 'box-2.internal', port: 7401 } }]);
  });

  test('is shown as a file again', () => {
    const result = parseConfig(`${FAR}${STORE}, secret: ${SECRET}}`, 'f.yaml', { role: 'store' });
    assert.ok(result.ok);
    assert.match(effectiveYaml(result.value, result.config, 2 ** 30), /weight: 1\n {2}secret: \(hidden\)\n/);
  });

  const wrong: readonly (readonly [what: string, role: 'gateway' | 'store', text: string, line: RegExp])[] = [
    ['no stores without etcd', 'gateway', ALONE, /gateway\.stores: expected the stores that hold this gateway's mirrors \(or register: \{etcd: …\}, by which they find each other\), found nothing$/],
    ['a store without addresses, without etcd', 'gateway', `${GOOD}    - id: s3\n`, /gateway\.stores\[2\]: expected host and paths of this store \(or register: .*\), found its id alone$/],
    ['half of a store', 'gateway', `${LOCAL}${GOOD}    - {id: s3, weight: 2, host: box-4}\n`, /gateway\.stores\[2\]: expected the id alone, so that etcd says the rest, or both host and paths, found host and weight$/],
    ['links in clear to stores that other machines name', 'gateway', FAR + ALONE, /gateway\.mirror\.tls: expected TLS of the links .* to the stores that etcd names, found nothing: .* insecure: true$/],
    ['no gateways without etcd', 'store', `${STORE}, secret: ${SECRET}}`, /store\.gateways: expected the gateways that this store serves \(or register: .*\), found nothing$/],
    ['no secret of the group', 'store', `${FAR}${STORE}}`, /store\.secret: expected secret or secret_file .*, found nothing$/],
    ['a short one', 'store', `${FAR}${STORE}, secret: short}`, /store\.secret: expected at least 16 characters, found 5$/],
    ['an address of all', 'store', `${FAR}${STORE.replace('10.1.0.2', '0.0.0.0')}, secret: ${SECRET}}`, /store\.paths\[0\]\.address: expected an address by which gateways of other machines reach this store .*, or advertise: ADDRESS beside it, found '0\.0\.0\.0'$/],
    ['an address of this machine only', 'store', `${FAR}${STORE.replace('10.1.0.2', '127.0.0.1')}, secret: ${SECRET}}`, /found '127\.0\.0\.1'$/],
  ];
  for (const [what, role, text, line] of wrong) {
    test(`refuses ${what}`, () => {
      const errors = errorsOf(text, role);
      assert.equal(errors.length, 1, errors.join('\n'));
      assert.match(errors[0] ?? '', line);
    });
  }
});

describe('the file of `up`', () => {
  test('lets each of its processes listen elsewhere; of other roles one file may stand on several machines', () => {
    const clash = EMBEDDED_UP_YAML.replace('127.0.0.1:7402', '127.0.0.1:7401');
    assert.notEqual(clash, EMBEDDED_UP_YAML);
    const up = parseConfig(clash, 'up', { role: 'up', secret: SECRET });
    assert.match(up.ok ? '' : up.errors.join(), /: stores\[1\]\.paths\[0\]\.address: expected an address of its own, found 127\.0\.0\.1:7401, which stores\[0\]\.paths\[0\]\.address has/);
    const check = parseConfig(clash, 'up', { role: 'store', secret: SECRET });
    assert.doesNotMatch(check.ok ? '' : check.errors.join(), /of its own/);
  });

  test('may leave out stores, gateways and secrets that follow from the rest', () => {
    const result = parseConfig(EMBEDDED_UP_YAML, 'up', { role: 'up', secret: SECRET });
    assert.ok(result.ok);
    assert.deepEqual(result.config.gateway?.stores.map((store) => store.id), ['store-a', 'store-b']);
    assert.deepEqual(result.config.stores.map((store) => store.gateways.map((gateway) => [gateway.id, Buffer.from(gateway.secret).toString()])), [[['gateway', SECRET]], [['gateway', SECRET]]]);
    assert.equal(result.config.gateway.oneHost, true);
  });

  test('is refused for a gateway alone: its stores are on its own host', () => {
    assert.ok(errorsOf(EMBEDDED_UP_YAML, 'gateway').some((line) => line.includes("expected a host other than the gateway's own")));
  });

  test('is the example in configs/', () => {
    const example = parseConfig(readFileSync('configs/up.yaml', 'utf8'), 'configs/up.yaml', { role: 'up', secret: SECRET });
    const embedded = parseConfig(EMBEDDED_UP_YAML, 'configs/up.yaml', { role: 'up', secret: SECRET });
    assert.ok(example.ok && embedded.ok);
    assert.deepEqual(example.value, embedded.value);
    // The comments of one of them move its lines.
    const [one, other] = [example, embedded].map(({ config: { gateway, stores, ...rest } }) => ({
      ...rest, gateway: { ...gateway, places: {} }, stores: stores.map((store) => ({ ...store, places: {} })),
    }));
    assert.deepEqual(one, other);
  });
});

const THREE_HOSTS = ['host-1', 'host-2', 'host-3'].flatMap((host) => {
  return ['gateway', 'store'].map((role) => [`three-hosts/${host}/${role}.yaml`, 1] as const);
});

describe('the examples', () => {
  /** Files, and how many roles each has. */
  for (const [name, roles, folder = 'state'] of [
    ['gateway.yaml', 1], ['store.yaml', 1], ['outbound/gateway.yaml', 1, '/var/lib/twinpost'], ...THREE_HOSTS,
  ] as const) {
    test(`${name} has a folder for what outlives each process`, () => {
      const file = parse(readFileSync(`configs/${name}`, 'utf8')) as Readonly<Record<string, { readonly state_dir?: string }>>;
      const sections = ['gateway', 'store'].flatMap((role) => file[role] ?? []);
      assert.deepEqual(sections.map((section) => section.state_dir), Array.from({ length: roles }, () => folder));
    });

    test(`${name} lacks its secret files and nothing else`, () => {
      const result = loadConfigFile(`configs/${name}`, { role: 'check' });
      const errors = result.ok ? [] : result.errors;
      assert.deepEqual(errors.filter((line) => !line.includes('secret_file')), []);
      assert.ok(errors.length > 0);
    });
  }
});

test('the outbound relay signs its reports: they are from its host name', () => {
  const { gateway: { hostname, dkim } } = parse(readFileSync('configs/outbound/gateway.yaml', 'utf8')) as
    { readonly gateway: { readonly hostname: string; readonly dkim: readonly { readonly domain: string; readonly key_file: string }[] } };
  const readme = readFileSync('configs/outbound/README.md', 'utf8');
  assert.ok(dkim.some(({ domain }) => domain === hostname));
  for (const { domain, key_file: file } of dkim) assert.match(readme, new RegExp(`^twinpost dkim key ${domain} --selector s2026 --out ${file}`, 'm'));
});

test('units let their services write where the examples do, and logs are rotated there', () => {
  const unit = (role: string): string => readFileSync(`configs/systemd/twinpost-${role}.service`, 'utf8');
  const folderOf = (role: string, key: string): string => new RegExp(`^${key}=(.+)$`, 'm').exec(unit(role))?.[1] ?? 'none';
  for (const [role, stateDir] of [['gateway', '/var/lib/twinpost'], ['store', '/var/lib/twinpost-store']] as const) {
    assert.match(unit(role), /^ProtectSystem=strict$/m);
    assert.deepEqual([`/var/lib/${folderOf(role, 'StateDirectory')}`, folderOf(role, 'LogsDirectory')], [stateDir, 'twinpost']);
    assert.match(unit(role), new RegExp(`state_dir: ${stateDir} and log\\.file: /var/log/twinpost/${role}\\.log `));
  }
  assert.match(readFileSync('configs/logrotate/twinpost', 'utf8'), /^\/var\/log\/twinpost\/\*\.log \{$/m);
  const { gateway: { log, state_dir: state } } = parse(readFileSync('configs/outbound/gateway.yaml', 'utf8')) as
    { readonly gateway: { readonly log: { readonly file: string }; readonly state_dir: string } };
  assert.deepEqual([log.file, state], ['/var/log/twinpost/gateway.log', '/var/lib/twinpost']);
});

/** What zod says of a schema. */
interface Def {
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly innerType?: z.ZodType;
  readonly out?: z.ZodType;
  readonly element?: z.ZodType;
  readonly options?: readonly z.ZodType[];
}

/** Of a section of the schema, with all that lies in it. */
function keysOf({ def }: z.ZodType, path = ''): string[] {
  const { shape, innerType, out, element, options = [] } = def as Def;
  const own = Object.entries(shape ?? {}).flatMap(([key, value]) => [path + key, ...keysOf(value, `${path}${key}.`)]);
  const inner = [innerType, out, element, ...options].filter((each) => each !== undefined);
  return [...own, ...inner.flatMap((each) => keysOf(each, path))];
}

test('every key of a role stands in its example, in a comment where it need not be said', () => {
  const { register, gateway, store, sink } = fileSchema.shape;
  const missing = ([['gateway', register], ['gateway', gateway], ['store', store], ['sink', sink]] as const)
    .flatMap(([name, section]) => {
      const text = readFileSync(`configs/${name}.yaml`, 'utf8');
      const keys = keysOf(section);
      assert.ok(keys.length > 4, `${name}: its keys are found`);
      return keys.filter((key) => !new RegExp(`\\b${key.split('.').at(-1) ?? ''}:`).test(text)).map((key) => `${name}: ${key}`);
    });
  assert.deepEqual(missing, []);
});

test('a group names each gateway once', () => {
  const example = readFileSync('configs/three-hosts/host-1/gateway.yaml', 'utf8').replace('secret_file: mail.secret', `secret: ${SECRET}`);
  assert.deepEqual(errorsOf(example, 'gateway'), []);
  assert.match(errorsOf(example.replace('  rescue: on\n', '  group: [gw-1, gw-2, gw-2]\n  rescue: on\n'), 'gateway').join(), /gateway\.group\[2\]: expected each id once, found 'gw-2' again$/);
});

test('a gateway may know the store of its own host, if enough others are there for its copies', () => {
  const example = readFileSync('configs/three-hosts/host-1/gateway.yaml', 'utf8');
  const stores = [1, 2, 3].map((n) => `    - {id: store-${String(n)}, host: host-${String(n)}, paths: [{name: A, address: '10.1.0.${String(n)}:7401'}]}\n`);
  const textOf = (...known: readonly string[]): string =>
    example.replace('secret_file: mail.secret', `secret: ${SECRET}`).replace('  admin:\n', `  stores:\n${known.join('')}  admin:\n`);
  const text = textOf(...stores);
  const result = parseConfig(text, 'gateway.yaml', { role: 'gateway' });
  assert.ok(result.ok, result.ok ? '' : result.errors.join('\n'));
  assert.deepEqual(result.config.gateway?.stores.map(({ host }) => host), ['host-1', 'host-2', 'host-3']);
  const [error = ''] = errorsOf(textOf(...stores.slice(0, 2)), 'gateway');
  assert.match(error, /expected a host other than the gateway's own, found 'host-1'/);
});

test('the example of a sink is whole', () => {
  const result = loadConfigFile('configs/sink.yaml', { role: 'check' });
  assert.deepEqual(result.ok ? [] : result.errors, []);
});

describe('the effective configuration', () => {
  test('shows values in force in the words of the file, hides secrets, and is a file again', () => {
    const result = parseConfig(GOOD, 'f.yaml', { role: 'gateway', stateDir: '/state' });
    assert.ok(result.ok);
    const text = effectiveYaml(result.value, result.config, 3 * 2 ** 30);
    assert.match(text, /message_size_limit: 25MiB/);
    assert.match(text, /first: 5min/);
    assert.match(text, /heartbeat: 250ms/);
    assert.match(text, /accept: 80%/);
    assert.match(text, /via: smtp:\/\/127\.0\.0\.1:26/);
    assert.ok(!text.includes(SECRET));
    const again = parseConfig(text.replace('secret: (hidden)', `secret: ${SECRET}`), 'f.yaml', { role: 'gateway', stateDir: '/state' });
    assert.ok(again.ok, again.ok ? '' : again.errors.join('\n'));
    assert.deepEqual(again.config.gateway?.delivery, result.config.gateway?.delivery);
  });

  test('shows that each domain has a queue where the DNS says the way, and is a file again', () => {
    const result = parseConfig(GOOD.replace('via: smtp://127.0.0.1:26', 'via: mx'), 'f.yaml', { role: 'gateway', stateDir: '/state' });
    assert.ok(result.ok, result.ok ? '' : result.errors.join('\n'));
    const text = effectiveYaml(result.value, result.config, 2 ** 30);
    assert.match(text, /via: mx\n[^]*queues: domain\n/);
    assert.ok(!text.includes('lanes:'), text);
    assert.deepEqual(gatewayOf(text.replace('secret: (hidden)', `secret: ${SECRET}`)).routes, result.config.gateway?.routes);
  });

  test('shows whom to ask about recipients as a file says it, and is read as that', () => {
    const text = `${GOOD}  smtp:\n    recipients: {http: 'https://users.example/r', cache: 1h, cache_missing: 90s}\n`;
    const result = parseConfig(text, 'f.yaml', { role: 'gateway', stateDir: '/state' });
    assert.ok(result.ok, result.ok ? '' : result.errors.join('\n'));
    const shown = effectiveYaml(result.value, result.config, 3 * 2 ** 30);
    assert.match(shown, /cache: 1h\n\s+cache_missing: 90s\n/);
    const again = gatewayOf(shown.replace('secret: (hidden)', `secret: ${SECRET}`));
    assert.deepEqual(again.smtp.recipientsByHttp, result.config.gateway?.smtp.recipientsByHttp);
  });

  test('names the admin addresses of a group: as said, or for `up` from the file itself', () => {
    const said = parseConfig(GOOD.replace('host: box-2\n', 'host: box-2\n      admin: 10.0.0.2:9401\n'), 'f.yaml', { role: 'gateway', stateDir: '/state' });
    assert.ok(said.ok, said.ok ? '' : said.errors.join('\n'));
    assert.deepEqual(said.config.gateway?.stores.map((store) => store.admin), [{ host: '10.0.0.2', port: 9401 }, undefined]);
    const store = parseConfig(`store: {id: s1, host: box-2, paths: [{name: A, address: '127.0.0.1:7401'}], gateways: [{id: gw-1, secret: ${SECRET}, admin: 'gw-1.internal:8025'}]}`, 'f.yaml', { role: 'store' });
    assert.ok(store.ok, store.ok ? '' : store.errors.join('\n'));
    assert.deepEqual(store.config.stores[0]?.gateways.map((gateway) => gateway.admin), [{ host: 'gw-1.internal', port: 8025 }]);
    const up = parseConfig(EMBEDDED_UP_YAML, 'f.yaml', { role: 'up', secret: SECRET });
    assert.ok(up.ok);
    assert.deepEqual(up.config.gateway?.stores.map((one) => one.admin?.port), [9401, 9402]);
    assert.deepEqual(up.config.stores.map((one) => one.gateways.map((gateway) => gateway.admin?.port)), [[8025], [8025]]);
  });

  test('shows the defaults that follow from other keys and from this machine', () => {
    const result = parseConfig(GOOD.replace("    - {domain: '*'", "    - {domain: example.com, via: lmtp://127.0.0.1:24, order: strict}\n    - {domain: '*'"), 'f.yaml', { role: 'gateway', stateDir: '/state' });
    assert.ok(result.ok);
    const shown = effectiveYaml(result.value, result.config, 3 * 2 ** 30);
    assert.match(shown, new RegExp(`hostname: ${result.config.gateway?.hostName ?? 'none'}`));
    assert.match(shown, /limit: 3GiB/);
    assert.match(shown, /order: strict\n\s+length_limit: 1000000\n\s+name: example\.com\n\s+concurrency: 1\n/);
    assert.match(shown, /name: default\n\s+order: fifo\n\s+concurrency: 20\n\s+tls: may\n/);
    const smtps = parseConfig(GOOD.replace('smtp://127.0.0.1:26', 'smtps://mx.example'), 'f.yaml', { role: 'gateway', stateDir: '/state' });
    assert.ok(smtps.ok);
    assert.match(effectiveYaml(smtps.value, smtps.config, 2 ** 30), /via: smtps:\/\/mx\.example:465\n[^]*tls: encrypt\n/);
  });

  test('shows each host of a route with the TLS that it has, so that what is shown means the same as a file', () => {
    for (const [via, hosts, levels] of [
      ["'smtps://a.example', fallback: 'smtp://b.example:25'", "{host: 'smtp://b.example:25'}", ['encrypt', 'may']],
      ["['smtp://a.example:25', 'smtps://b.example']", "{host: 'smtps://b.example', auth: {user: u, password_file: /p}}", ['may', 'encrypt']],
      ["['smtp://a.example:25', 'smtps://b.example'], tls: verify", "{host: 'smtps://b.example'}", ['verify', 'verify']],
    ] as const) {
      const shownOf = (text: string): string => {
        const file = parseConfig(text, 'f.yaml', { role: 'gateway', stateDir: '/state' });
        assert.ok(file.ok, JSON.stringify(file));
        const { nextHop: { tls, others = [] } } = file.config.gateway?.routes[0] ?? assert.fail();
        assert.deepEqual([tls, ...others.map(({ terms }) => terms?.tls)].map((one) => one?.level), levels);
        return effectiveYaml(file.value, file.config, 2 ** 30);
      };
      shownOf(shownOf(GOOD.replace('smtp://127.0.0.1:26', `${via}, hosts: [${hosts}]`)).replace('(hidden)', SECRET));
    }
  });
});

test('the nearest key is found through swaps, dashes and missing letters, and not at any price', () => {
  assert.equal(nearest('mesage-size-limit', ['message_size_limit', 'min_data_rate']), 'message_size_limit');
  assert.equal(nearest('hots', ['host', 'hostname']), 'host');
  assert.equal(nearest('colour', ['host', 'paths']), undefined);
});
