/** redis on loopback, in memory alone: no snapshots, no append-only file. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { HOST } from '../../test/process/cluster.js';
import { freePorts } from '../../test/process/free-ports.js';
import { startServer, type PeerServer } from './server.js';

export async function startRedis(): Promise<PeerServer> {
  const [port = 0] = await freePorts(1);
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-redis-'));
  const command = ['redis-server', '--bind', HOST, '--port', String(port), '--save', '', '--appendonly', 'no', '--dir', folder];
  const server = await startServer(command, port);
  const stop = async (): Promise<void> => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { ...server, stop };
}
