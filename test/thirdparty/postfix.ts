/**
 * A Postfix of its own for a test: a configuration, queue and log in a folder, one port, its master process
 * as our child. It takes mail from loopback and hands everything to one next hop, unaltered.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { pause } from '../process/cluster.js';
import { freePorts } from '../process/free-ports.js';
import { findProgram } from '../outside-sets.js';
import { answers } from './support.js';

const READY_MS = 20_000;
const POLL_MS = 50;

/** Services of master.cf that relaying needs: name, maximum processes, program. */
const SERVICES = [
  'pickup    unix  n - n 60 1 pickup', 'cleanup   unix  n - n -  0 cleanup', 'qmgr      unix  n - n 300 1 qmgr',
  'rewrite   unix  - - n -  - trivial-rewrite', 'bounce    unix  - - n -  0 bounce', 'defer     unix  - - n -  0 bounce',
  'trace     unix  - - n -  0 bounce', 'verify    unix  - - n -  1 verify', 'proxymap  unix  - - n -  - proxymap',
  'smtp      unix  - - n -  - smtp', 'relay     unix  - - n -  - smtp', 'error     unix  - - n -  - error',
  'retry     unix  - - n -  - error', 'anvil     unix  - - n -  1 anvil', 'scache    unix  - - n -  1 scache',
  'postlog   unix-dgram n - n - 1 postlogd', 'tlsmgr    unix  - - n 1000? 1 tlsmgr', 'tlsproxy  unix  - - n -  0 tlsproxy',
];

export interface Postfix {
  readonly port: number;
  /** Of the process that all others descend from. */
  readonly pid: number;
  log(): string;
  stop(): Promise<void>;
}

export interface PostfixOptions {
  /** Where its folder, with queue and log, is made; else among the temporary files. */
  readonly parent?: string;
  /** Lines of main.cf besides those below, or instead of them. */
  readonly settings?: Readonly<Record<string, string>>;
  /** What to put before the command, such as a program that becomes Postfix by exec. */
  readonly prefix?: readonly string[];
}

/** Starts a Postfix whose relayhost is 127.0.0.1:nextHopPort and waits until it answers. */
export async function startPostfix(nextHopPort: number, options: PostfixOptions = {}): Promise<Postfix> {
  const folder = mkdtempSync(join(options.parent ?? tmpdir(), 'twinpost-postfix-'));
  // Postfix runs as its own user.
  chmodSync(folder, 0o755);
  for (const part of ['spool', 'data']) mkdirSync(join(folder, part));
  const [port = 0] = await freePorts(1);
  const program = findProgram('postfix') ?? 'postfix';
  const log = join(folder, 'log');
  writeFileSync(join(folder, 'main.cf'), mainCf(folder, nextHopPort, options.settings ?? {}));
  writeFileSync(join(folder, 'master.cf'), [`127.0.0.1:${port} inet n - n - - smtpd`, ...SERVICES, ''].join('\n'));
  spawnSync('chown', ['postfix', join(folder, 'data')]);
  const [first = program, ...args] = [...(options.prefix ?? []), program, '-c', folder, 'start-fg'];
  const child = spawn(first, args, { stdio: 'ignore' });
  const read = (): string => (existsSync(log) ? readFileSync(log, 'latin1') : 'no log\n');
  const stop = (): Promise<void> => stopPostfix(child, program, folder);
  process.once('exit', () => void child.kill('SIGTERM'));
  const until = performance.now() + READY_MS;
  while (!(await answers(port))) {
    if (child.exitCode !== null || performance.now() > until) {
      const text = read();
      await stop();
      throw new Error(`Postfix did not start\n${text}`);
    }
    await pause(POLL_MS);
  }
  return { port, pid: child.pid ?? 0, log: read, stop };
}

async function stopPostfix(child: ChildProcess, program: string, folder: string): Promise<void> {
  const gone = new Promise<void>((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) resolve();
    else child.once('exit', () => resolve());
  });
  spawnSync(program, ['-c', folder, 'stop'], { timeout: READY_MS });
  child.kill('SIGTERM');
  await gone;
  rmSync(folder, { recursive: true, force: true });
}

function mainCf(folder: string, nextHopPort: number, more: Readonly<Record<string, string>>): string {
  const settings: Readonly<Record<string, string>> = {
    compatibility_level: '3.6', queue_directory: `${folder}/spool`, data_directory: `${folder}/data`,
    mail_owner: 'postfix', setgid_group: 'postdrop', myhostname: 'postfix.example',
    inet_interfaces: '127.0.0.1', inet_protocols: 'ipv4', mydestination: '', mynetworks: '127.0.0.0/8',
    relayhost: `[127.0.0.1]:${nextHopPort}`, smtpd_relay_restrictions: 'permit_mynetworks, reject', alias_maps: '', local_recipient_maps: '',
    // Headers must stay as they are, or every message would look altered.
    local_header_rewrite_clients: '', smtp_host_lookup: 'native', smtpd_client_connection_rate_limit: '0',
    minimal_backoff_time: '1s', maximal_backoff_time: '2s', queue_run_delay: '1s', message_size_limit: '52428800',
    maillog_file: `${folder}/log`, maillog_file_prefixes: folder, ...more,
  };
  return Object.entries(settings).map(([key, value]) => `${key} = ${value}\n`).join('');
}
