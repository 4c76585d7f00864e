/** Exim behind, as a smarthost: it takes mail by TLS from a user with a password, by PLAIN and by LOGIN, and hands it on. */
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

import { freePorts } from '../../process/free-ports.js';
import { takesAllOfItsUser, type Behind, type BehindOptions } from '../behind-story.js';
import { startUnpacked } from '../unpacked.js';

const EXIM_USER = 'Debian-exim';

type Mechanism = 'PLAIN' | 'LOGIN';

function authenticator(mechanism: Mechanism, { user, password }: BehindOptions): string {
  // Of PLAIN, the first word is whom to act as.
  const [prompts, name, secret] = mechanism === 'PLAIN' ? [':', '$auth2', '$auth3'] : ['Username:: : Password::', '$auth1', '$auth2'];
  return `  public_name = ${mechanism}
  server_prompts = ${prompts}
  server_condition = \${if and{{eq{${name}}{${user}}}{eq{${secret}}{${password}}}}}
  server_set_id = ${name}`;
}

function configuration(port: number, mechanism: Mechanism, isTlsFirst: boolean, options: BehindOptions): string {
  return `primary_hostname = exim.example
local_interfaces = 127.0.0.1
daemon_smtp_ports = ${String(port)}
${isTlsFirst ? `tls_on_connect_ports = ${String(port)}\n` : ''}acl_smtp_rcpt = users
tls_advertise_hosts = *
tls_certificate = /etc/exim4/cert
tls_privatekey = /etc/exim4/key
smtp_accept_queue_per_connection = 0
host_lookup =
rfc1413_query_timeout = 0s
keep_environment =
log_selector = +all
begin acl
users:
  accept authenticated = *
  deny message = who are you?
begin routers
onward:
  driver = manualroute
  transport = onward
  route_list = * 127.0.0.1
  self = send
begin transports
onward:
  driver = smtp
  port = ${String(options.nextHopPort)}
  hosts_try_chunking =
begin retry
* * F,1h,1s
begin authenticators
only:
  driver = plaintext
  server_advertise_condition = \${if def:tls_in_cipher}
${authenticator(mechanism, options)}
`;
}

async function startSmarthost(mechanism: Mechanism, isTlsFirst: boolean, options: BehindOptions): Promise<Behind> {
  const [port = 0] = await freePorts(1);
  const { certFile, keyFile } = options.certificate;
  const exim = await startUnpacked({
    package: 'exim4-daemon-light', command: ['/usr/sbin/exim4', '-bdf', '-q1s'], port, users: [EXIM_USER], caFile: options.caFile,
    files: {
      'etc/exim4/exim4.conf': configuration(port, mechanism, isTlsFirst, options), 'etc/exim4/cert': readFileSync(certFile, 'utf8'), 'etc/exim4/key': readFileSync(keyFile, 'utf8'),
    },
    folders: { 'etc/exim4': '', 'run/exim4': EXIM_USER, 'var/spool/exim4': EXIM_USER, 'var/log/exim4': EXIM_USER },
  });
  const log = (): string => {
    const file = exim.at('var/log/exim4/mainlog');
    return (existsSync(file) ? readFileSync(file, 'latin1') : '') + exim.said();
  };
  return { port, log, stop: exim.stop };
}

for (const [mechanism, isTlsFirst] of [['PLAIN', false], ['LOGIN', true]] as const) {
  const way = isTlsFirst ? 'with TLS first' : 'within STARTTLS';
  test(`Exim takes mail by ${mechanism} from a user ${way}, and none with a wrong password`, { timeout: 120_000 }, () =>
    takesAllOfItsUser({
      start: (options) => startSmarthost(mechanism, isTlsFirst, options), isTlsFirst,
      taken: (user) => new RegExp(` <= .* P=esmtpsa .*X=TLS1\\.3:\\S+ .*A=only:${user.replace('.', '\\.')} `),
    }));
}
