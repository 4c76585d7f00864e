/** A Dovecot of its own for a test: a configuration, mail and log in a folder, its master process as our child. */
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { findProgram } from '../outside-sets.js';
import { pause } from '../process/cluster.js';

const READY_MS = 30_000;
const POLL_MS = 50;

export interface Dovecot {
  readonly folder: string;
  log(): string;
  stop(): Promise<void>;
}

/** Runs `furnish` with its folder, for its configuration, and waits until it is ready. */
export async function startDovecot(furnish: (folder: string) => string, isReady: (folder: string) => boolean | Promise<boolean>): Promise<Dovecot> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-dovecot-'));
  // Its parts run as users of their own.
  chmodSync(folder, 0o755);
  const file = join(folder, 'dovecot.conf');
  writeFileSync(file, `base_dir = ${folder}/run\nlog_path = ${folder}/log\nssl = no\n${furnish(folder)}`);
  const child = spawn(findProgram('dovecot') ?? 'dovecot', ['-F', '-c', file], { stdio: 'ignore' });
  const gone = new Promise<void>((resolve) => child.once('exit', () => { resolve(); }));
  process.once('exit', () => void child.kill('SIGTERM'));
  const log = (): string => (existsSync(join(folder, 'log')) ? readFileSync(join(folder, 'log'), 'latin1') : 'no log');
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await gone;
    rmSync(folder, { recursive: true, force: true });
  };
  const endMs = performance.now() + READY_MS;
  while (!(await isReady(folder))) {
    if (child.exitCode !== null || performance.now() > endMs) {
      const text = log();
      await stop();
      throw new Error(`Dovecot did not start\n${text}`);
    }
    await pause(POLL_MS);
  }
  return { folder, log, stop };
}
