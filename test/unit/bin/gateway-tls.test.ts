/** What the gateway says of certificates, its own and those of next hops, before any port is open. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { gatewayOptions } from '../../../src/bin/gateway-process.js';
import { EMBEDDED_UP_YAML } from '../../../src/config/embedded.js';
import { parseConfig } from '../../../src/config/load.js';

test('names the files of a certificate that is none', (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-tls-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const cert = path.join(folder, 'cert.pem');
  const key = path.join(folder, 'key.pem');
  const text = EMBEDDED_UP_YAML.replace('  smtp:\n', `  smtp:\n    tls: {cert: '${cert}', key: '${key}'}\n`);
  const result = parseConfig(text, 'up.yaml', { role: 'up', secret: 'sixteen-characters-and-more' });
  assert.ok(result.ok && result.config.gateway !== undefined);
  const { gateway } = result.config;
  assert.throws(() => gatewayOptions(gateway), new RegExp(`^CliError: up\\.yaml:6: gateway\\.smtp\\.tls\\.cert: expected a certificate in PEM, found: '${cert}' can't be read: ENOENT\n`));
  writeFileSync(cert, 'not a certificate');
  writeFileSync(key, 'nor a key');
  assert.throws(() => gatewayOptions(gateway), new RegExp(`tls\\.cert: expected .*'${cert}' is no certificate in PEM: .*\n.*tls\\.key: expected .*'${key}' is no key in PEM: `));
});

test('names the file of CAs of a route that is none', (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-tls-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const ca = path.join(folder, 'ca.pem');
  const text = EMBEDDED_UP_YAML.replace(/^( +- \{domain: .*)\}$/m, `$1, tls: verify, ca_file: '${ca}'}`);
  const result = parseConfig(text, 'up.yaml', { role: 'up', secret: 'sixteen-characters-and-more' });
  assert.ok(result.ok && result.config.gateway !== undefined);
  const { gateway } = result.config;
  assert.throws(() => gatewayOptions(gateway), new RegExp(`^CliError: up\\.yaml:\\d+: gateway\\.routes\\[0\\]\\.ca_file: expected a certificate in PEM, found: '${ca}' can't be read: ENOENT$`));
  writeFileSync(ca, 'not a certificate');
  assert.throws(() => gatewayOptions(gateway), /ca_file: expected a certificate in PEM, found: '.*' is no certificate in PEM: /);
});
