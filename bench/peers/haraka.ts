/**
 * Haraka as a relay, one process, in a folder of its own: either queue/smtp_forward, which hands each
 * message on before it answers, or outbound, which writes it to a queue on disk and answers.
 */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { HOST } from '../../test/process/cluster.js';
import { freePorts } from '../../test/process/free-ports.js';
import { CpuGroup } from './cpu-group.js';
import { harakaFolder } from './installed.js';
import type { PeerSetup, RelayPeer } from './relay-peer.js';
import { startServer } from './server.js';

type Mode = 'forward' | 'outbound';

async function start(nextHopPort: number, mode: Mode): Promise<RelayPeer> {
  const program = harakaFolder();
  if (program === undefined) throw new Error('Haraka is not installed');
  const [port = 0] = await freePorts(1);
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-haraka-'));
  const group = new CpuGroup();
  writeConfig(folder, port, nextHopPort, mode);
  // Its sections have no defaults in the program.
  copyFileSync(join(program, 'config', 'connection.ini'), join(folder, 'config', 'connection.ini'));
  const log = join(folder, 'log');
  const command = [...group.prefix, '/bin/sh', '-c', 'exec "$@" >"$0" 2>&1', log, process.execPath, join(program, 'bin', 'haraka'), '-c', folder];
  const end = async (): Promise<void> => {
    await group.close();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const server = await startServer(command, port);
    const stop = async (): Promise<void> => {
      await server.stop();
      await end();
    };
    return { port, nextBehindDot: false, usedMicros: () => group.usedMicros(server.pid), stop };
  } catch (error) {
    await end();
    throw error;
  }
}

function writeConfig(folder: string, port: number, nextHopPort: number, mode: Mode): void {
  for (const part of ['config', 'plugins', 'queue']) mkdirSync(join(folder, part));
  const write = (name: string, text: string): void => { writeFileSync(join(folder, name), text); };
  write('config/smtp.ini', `listen=${HOST}:${port}\nnodes=0\n`);
  write('config/me', 'haraka.example\n');
  write('config/log.ini', '[main]\nlevel=NOTICE\n');
  write('config/smtp_forward.ini', `host=${HOST}\nport=${nextHopPort}\nenable_tls=false\n`);
  write('config/outbound.ini', 'enable_tls=false\nconcurrency_max=100\nlocal_mx_ok=true\n');
  write('config/plugins', mode === 'forward' ? 'bench\nqueue/smtp_forward\n' : 'bench\n');
  write('plugins/bench.js', [
    // Outbound is for clients that may relay; smtp_forward takes mail for recipients that somebody vouches for.
    `exports.hook_rcpt = function (next, connection) { connection.relaying = ${mode === 'outbound'}; next(OK); };`,
    `exports.hook_get_mx = function (next) { next(OK, { priority: 0, exchange: '${HOST}', port: ${nextHopPort} }); };`,
    '',
  ].join('\n'));
}

const isInstalled = (): boolean => harakaFolder() !== undefined;

export const HARAKA_FORWARD: PeerSetup = { peer: 'Haraka, smtp_forward', needs: 'Haraka', isInstalled, start: (port) => start(port, 'forward') };
export const HARAKA_OUTBOUND: PeerSetup = { peer: 'Haraka, outbound on disk', needs: 'Haraka', isInstalled, start: (port) => start(port, 'outbound') };
