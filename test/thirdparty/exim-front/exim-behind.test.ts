/** Exim behind, as a smarthost: it takes mail within STARTTLS from a user with a password, by PLAIN and by LOGIN. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../../src/load/run.js';
import { selfSigned } from '../../dialog/self-signed.js';
import { HOST, startCluster, until } from '../../process/cluster.js';
import { freePorts } from '../../process/free-ports.js';
import { startUnpacked } from '../unpacked.js';
import type { Unpacked } from '../unpacked.js';

const EXIM_USER = 'Debian-exim';
const USER = 'gw@relay.test';
const PASSWORD = 'correct-horse';
const BOUND_MS = 30_000;

const AUTHENTICATORS: Readonly<Record<string, string>> = {
  PLAIN: `  server_prompts = :
  server_condition = \${if and{{eq{$auth2}{${USER}}}{eq{$auth3}{${PASSWORD}}}}}
  server_set_id = $auth2`,
  LOGIN: `  server_prompts = Username:: : Password::
  server_condition = \${if and{{eq{$auth1}{${USER}}}{eq{$auth2}{${PASSWORD}}}}}
  server_set_id = $auth1`,
};

function configuration(port: number, mechanism: string): string {
  return `primary_hostname = exim.example
local_interfaces = 127.0.0.1
daemon_smtp_ports = ${String(port)}
acl_smtp_rcpt = users
tls_advertise_hosts = *
tls_certificate = /etc/exim4/cert
tls_privatekey = /etc/exim4/key
host_lookup =
rfc1413_query_timeout = 0s
keep_environment =
log_selector = +all
begin acl
users:
  accept authenticated = *
  deny message = who are you?
begin routers
taken:
  driver = redirect
  data = :blackhole:
begin authenticators
only:
  driver = plaintext
  public_name = ${mechanism}
  server_advertise_condition = \${if def:tls_in_cipher}
${AUTHENTICATORS[mechanism] ?? ''}
`;
}

async function startSmarthost(port: number, mechanism: string, files: { readonly certFile: string; readonly keyFile: string }): Promise<Unpacked> {
  return startUnpacked({
    package: 'exim4-daemon-light', command: ['/usr/sbin/exim4', '-bdf', '-q1s'], port, users: [EXIM_USER], caFile: files.certFile,
    files: {
      'etc/exim4/exim4.conf': configuration(port, mechanism), 'etc/exim4/cert': readFileSync(files.certFile, 'utf8'), 'etc/exim4/key': readFileSync(files.keyFile, 'utf8'),
    },
    folders: { 'etc/exim4': '', 'run/exim4': EXIM_USER, 'var/spool/exim4': EXIM_USER, 'var/log/exim4': EXIM_USER },
  });
}

for (const mechanism of Object.keys(AUTHENTICATORS)) {
  test(`Exim takes mail by ${mechanism} from a user within STARTTLS, and none with a wrong password`, { timeout: 120_000 }, async () => {
    const tls = selfSigned();
    assert.ok(tls !== undefined);
    const folder = mkdtempSync(join(tmpdir(), 'twinpost-exim-'));
    const passwordFile = join(folder, 'password');
    writeFileSync(passwordFile, 'wrong', { mode: 0o600 });
    const [port = 0] = await freePorts(1);
    const exim = await startSmarthost(port, mechanism, tls);
    const via = { via: `smtp://${HOST}:${String(port)}`, tls: 'verify', ca_file: tls.certFile, auth: { user: USER, password_file: passwordFile } };
    const cluster = await startCluster({ sink: false, routes: [{ domain: '*', ...via }], gateway: { delivery: { retry: { first: '500ms', max: '1s' } } } });
    try {
      const sent = await runSend({ host: HOST, port: cluster.smtpPort, connections: 2, domains: ['a.example'], count: 20 });
      assert.equal(sent.accepted, 20);
      await until('it says why', () => /"event":"suspended",[^\n]*"dsn":"4\.7\.8","why":"[^"]* refused our user and password: 535"/.test(cluster.gateway.log()), BOUND_MS, cluster.gateway);
      writeFileSync(passwordFile, PASSWORD);
      await cluster.drained();
      const log = readFileSync(exim.at('var/log/exim4/mainlog'), 'latin1');
      const arrivals = log.split('\n').filter((line) => line.includes(' <= '));
      assert.equal(arrivals.length, 20, log);
      for (const line of arrivals) assert.match(line, new RegExp(` P=esmtpsa .*X=TLS1\\.3:\\S+ .*A=only:${USER.replace('.', '\\.')} `));
    } finally {
      await cluster.stop();
      await exim.stop();
      rmSync(folder, { recursive: true });
    }
  });
}
