/**
 * A peer's server as our child on a port of loopback: started, waited for, ended by its pid.
 */
import { spawn } from 'node:child_process';
import { connect } from 'node:net';

import { HOST, pause } from '../../test/process/cluster.js';

const READY_MS = 20_000;
const POLL_MS = 25;

export interface PeerServer {
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Resolves when the port answers. The text is what the program said, if it does not come up. */
export async function startServer(command: readonly string[], port: number, environment: NodeJS.ProcessEnv = process.env): Promise<PeerServer> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: environment });
  let said = '';
  const hear = (chunk: Buffer): void => {
    if (said.length < 10_000) said += chunk.toString('latin1');
  };
  child.stdout.on('data', hear);
  child.stderr.on('data', hear);
  const gone = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      said += error.message;
      resolve();
    });
    child.once('exit', () => resolve());
  });
  const killNow = (): void => void child.kill('SIGKILL');
  process.once('exit', killNow);
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const timer = setTimeout(killNow, READY_MS);
    await gone;
    clearTimeout(timer);
    process.removeListener('exit', killNow);
  };
  const until = performance.now() + READY_MS;
  while (!(await answers(port))) {
    if (child.exitCode === null && child.signalCode === null && child.pid !== undefined && performance.now() < until) {
      await pause(POLL_MS);
      continue;
    }
    await stop();
    throw new Error(`${command.join(' ')} did not come up: ${said}`);
  }
  return { port, pid: child.pid ?? 0, stop };
}

/** Whether somebody accepts connections there. */
export function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, HOST, () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
