/**
 * A Haraka of its own for a test: one process, in a folder with its configuration and queue, installed apart from the
 * project (harakaFolder() of test/outside-sets.ts). Everything goes to one next hop: by outbound, from a queue on disk,
 * or by smtp_forward, which answers as the next hop does.
 */
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { npmFolder } from '../../outside-sets.js';
import { HOST, pause } from '../../process/cluster.js';
import { freePorts } from '../../process/free-ports.js';
import type { CertificateFiles } from '../../process/tls-hop.js';
import { answers } from '../support.js';

const READY_MS = 20_000;
const POLL_MS = 50;

export interface HarakaOptions {
  readonly nextHopPort: number;
  readonly queue: 'outbound' | 'smtp_forward';
  /** The next hop is met within TLS, judged by this name and these authorities, by a user. Of `outbound` only. */
  readonly secure?: { readonly name: string; readonly caFile: string; readonly login: { readonly user: string; readonly password: string } | undefined };
  /** STARTTLS is offered, and TLS first at a second port. */
  readonly certificate?: CertificateFiles;
  /** Takes mail of this user alone; else of everybody. */
  readonly user?: { readonly name: string; readonly password: string };
  /** Deliveries of `outbound` at the same time; 10 are the default. */
  readonly concurrency?: number;
  /** Hooks of the test's own: the text of a plugin that stands before all others. */
  readonly plugin?: string;
}

export interface Haraka {
  readonly port: number;
  readonly tlsFirstPort: number;
  /** A client's next envelope may not go with a final dot: it takes the message, and answers 503 to each line behind it. */
  readonly nextBehindDot: false;
  /** Everything that it logged. */
  log(): string;
  stop(): Promise<void>;
}

export async function startHaraka(options: HarakaOptions): Promise<Haraka> {
  const program = npmFolder('haraka', 'Haraka');
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-haraka-'));
  const [port = 0, tlsFirstPort = 0] = await freePorts(2);
  furnish(folder, program, { port, tlsFirstPort }, options);
  const env = { ...process.env, ...(options.secure === undefined ? {} : { NODE_EXTRA_CA_CERTS: options.secure.caFile }) };
  const child = spawn(process.execPath, [join(program, 'bin', 'haraka'), '-c', folder], { stdio: ['ignore', 'pipe', 'pipe'], env });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  const log = (): string => Buffer.concat(chunks).toString('latin1');
  const gone = new Promise<void>((resolve) => child.once('close', () => { resolve(); }));
  const endNow = (): void => void child.kill('SIGKILL');
  process.once('exit', endNow);
  const stop = async (): Promise<void> => {
    // Asked in good order it waits for connections that are kept.
    endNow();
    await gone;
    process.removeListener('exit', endNow);
    rmSync(folder, { recursive: true, force: true });
  };
  const endMs = performance.now() + READY_MS;
  while (!(await answers(port))) {
    if (child.exitCode !== null || performance.now() > endMs) {
      await stop();
      throw new Error(`Haraka did not start\n${log()}`);
    }
    await pause(POLL_MS);
  }
  return { port, tlsFirstPort, nextBehindDot: false, log, stop };
}

function furnish(folder: string, program: string, ports: { readonly port: number; readonly tlsFirstPort: number }, options: HarakaOptions): void {
  const { queue, nextHopPort, certificate, user } = options;
  for (const part of ['config', 'plugins', 'queue']) mkdirSync(join(folder, part));
  const write = (name: string, text: string): void => { writeFileSync(join(folder, name), text); };
  // Sections of the first have no defaults in the program; the other is the text of its reports.
  for (const name of ['connection.ini', 'outbound.bounce_message']) copyFileSync(join(program, 'config', name), join(folder, 'config', name));
  const listen = [ports.port, ...(certificate === undefined ? [] : [ports.tlsFirstPort])].map((port) => `${HOST}:${String(port)}`);
  write('config/smtp.ini', `listen=${listen.join()}\nsmtps_port=${String(ports.tlsFirstPort)}\nnodes=0\n`);
  write('config/me', 'haraka.example\n');
  write('config/log.ini', '[main]\nlevel=INFO\n');
  const { concurrency = 10 } = options;
  // Five seconds are the least that it takes between tries.
  write('config/outbound.ini', `enable_tls=${String(options.secure !== undefined)}\nlocal_mx_ok=true\nconcurrency_max=${String(concurrency)}\ntemp_fail_intervals=5s*100\n`);
  write('config/smtp_forward.ini', `host=${HOST}\nport=${String(nextHopPort)}\nenable_outbound=true\n`);
  write('config/tls.ini', tlsIni(options));
  if (certificate !== undefined) {
    // Without these it makes its own, which takes long: those of RFC 7919 are as good.
    spawnSync('openssl', ['genpkey', '-genparam', '-algorithm', 'DH', '-pkeyopt', 'group:ffdhe2048', '-out', join(folder, 'config', 'dhparams.pem')]);
  }
  if (user !== undefined) write('config/auth_flat_file.ini', `[core]\nmethods=PLAIN,LOGIN\nconstrain_sender=false\n[users]\n${user.name}=${user.password}\n`);
  const plugins = [
    'own', 'wiring', ...(certificate === undefined ? [] : ['tls']), ...(user === undefined ? [] : ['auth/flat_file']),
    ...(queue === 'smtp_forward' ? ['queue/smtp_forward'] : []),
  ];
  write('config/plugins', `${plugins.join('\n')}\n`);
  write('plugins/own.js', options.plugin ?? '');
  write('plugins/wiring.js', wiring(options));
}

function tlsIni({ certificate, secure }: HarakaOptions): string {
  const own = certificate === undefined ? '' : `key=${certificate.keyFile}\ncert=${certificate.certFile}\n`;
  return `${own}requestCert=false\n[outbound]\n${secure === undefined ? '' : `force_tls_hosts[]=${HOST}\n`}`;
}

/** Who may send, and where to: a plugin. */
function wiring({ nextHopPort, secure, user }: HarakaOptions): string {
  const login = secure?.login === undefined ? {} : { auth_type: 'LOGIN', auth_user: secure.login.user, auth_pass: secure.login.password };
  // By `from_dns` it knows the name to judge the certificate by.
  const mx = { priority: 0, exchange: HOST, port: nextHopPort, ...(secure === undefined ? {} : { from_dns: secure.name }), ...login };
  return `exports.hook_rcpt = (next, connection) => {
  ${user === undefined ? 'connection.relaying = true;' : ''}
  next(connection.relaying ? OK : DENY, 'who are you?');
};
exports.hook_get_mx = (next) => { next(OK, ${JSON.stringify(mx)}); };
`;
}
