/** An Exim of its own for a test: it takes mail from loopback and submits everything to one gateway, by TLS, as a user or not. */
import { existsSync, readFileSync } from 'node:fs';

import { freePorts } from '../../process/free-ports.js';
import type { Front, FrontOptions, Login } from '../front-story.js';
import { startUnpacked } from '../unpacked.js';

const USER = 'Debian-exim';
/** It looks into its queue so often. */
const QUEUE_RUN = '1s';

/** Of the transport that submits. */
function asUser(login: Login | undefined): string {
  return login === undefined ? '' : `  hosts_require_auth = *\n${login.isTlsFirst ? '  protocol = smtps\n' : ''}`;
}

/** The user: RFC 4616's PLAIN. */
function authenticator(login: Login | undefined): string {
  return login === undefined ? '' : `begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  client_send = ^${login.user}^${login.password}
`;
}

function configuration(port: number, { gatewayPort, login }: FrontOptions): string {
  return `primary_hostname = exim.example
local_interfaces = 127.0.0.1
daemon_smtp_ports = ${port}
acl_smtp_rcpt = accept
message_size_limit = 50M
smtp_accept_max = 100
smtp_accept_queue_per_connection = 0
smtp_connect_backlog = 100
host_lookup =
rfc1413_query_timeout = 0s
keep_environment =
log_selector = +all
begin routers
gateway:
  driver = manualroute
  transport = gateway
  route_list = * gateway.test byname
  self = send
begin transports
gateway:
  driver = smtp
  port = ${gatewayPort}
  hosts_require_tls = *
  tls_verify_certificates = /etc/ssl/certs/ca-certificates.crt
  tls_verify_hosts = *
  tls_verify_cert_hostnames = *
${asUser(login)}begin retry
* * F,1h,1s
${authenticator(login)}`;
}

export async function startExim(options: FrontOptions): Promise<Front> {
  const [port = 0] = await freePorts(1);
  const exim = await startUnpacked({
    package: 'exim4-daemon-light', command: ['/usr/sbin/exim4', '-bdf', `-q${QUEUE_RUN}`], port, users: [USER], caFile: options.caFile,
    files: { 'etc/exim4/exim4.conf': configuration(port, options) },
    folders: { 'etc/exim4': '', 'run/exim4': USER, 'var/spool/exim4': USER, 'var/log/exim4': USER },
  });
  const log = (): string => {
    const file = exim.at('var/log/exim4/mainlog');
    return (existsSync(file) ? readFileSync(file, 'latin1') : '') + exim.said();
  };
  return { port, log, retryNow: () => Promise.resolve(), stop: exim.stop };
}
