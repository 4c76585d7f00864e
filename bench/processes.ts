/**
 * Running the programs of a bench: the load client to its end, a sink without a gateway.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import type { SendOptions, SendProgress, SendReport } from '../src/load/options.js';
import type { SinkCounts } from '../src/sink/options.js';
import { Daemon, HOST } from '../test/process/cluster.js';
import { ENTRY } from '../test/process/entry.js';
import { freePorts } from '../test/process/free-ports.js';

const FOLDER = dirname(fileURLToPath(import.meta.url));

export interface ClientResult {
  readonly report: SendReport;
  readonly cpuMicros: number;
}

/** Runs the load client as its own process. `onAccepted` hears about five times a second how many were accepted, and how fast since it last heard. */
export async function runClient(options: SendOptions, onAccepted?: (accepted: number, responseMs: SendProgress['responseMs']) => void): Promise<ClientResult> {
  const argument = onAccepted === undefined ? options : { ...options, progress: true };
  const onLine = (line: string): void => {
    const told = JSON.parse(line) as Partial<SendProgress>;
    if (told.accepted !== undefined) onAccepted?.(told.accepted, told.responseMs);
  };
  // Ten thousand domains are more than an argument may hold.
  const input = JSON.stringify(argument);
  return JSON.parse(await runScript('client.js', '-', onLine, process.execPath, input)) as ClientResult;
}

/** Runs a compiled script of this folder; resolves with the last line of its stdout. `input`: all of its stdin. */
export function runScript(
  script: string, argument: string, onLine: (line: string) => void = () => undefined, node = process.execPath, input = '',
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(node, [join(FOLDER, script), argument], { stdio: ['pipe', 'pipe', 'inherit'] });
    // One that has ended shows by its code.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
    // A script that has daemons of its own ends them on this signal.
    const killNow = (): void => void child.kill('SIGTERM');
    process.once('exit', killNow);
    let last = '';
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line === '') return;
      last = line;
      onLine(line);
    });
    child.on('error', reject);
    child.on('close', (code) => {
      process.removeListener('exit', killNow);
      if (code === 0) resolve(last);
      else reject(new Error(`${script} ended with code ${code ?? -1}`));
    });
  });
}

/** A script that does its work once for each line on its stdin, and answers with one line. */
export interface Turns {
  next(): Promise<string>;
  stop(): Promise<void>;
}

export function startTurns(script: string, argument: string): Turns {
  const child = spawn(process.execPath, [join(FOLDER, script), argument], { stdio: ['pipe', 'pipe', 'inherit'] });
  const killNow = (): void => void child.kill('SIGTERM');
  process.once('exit', killNow);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const gone = new Promise<void>((resolve) => void child.once('close', () => resolve()));
  const next = async (): Promise<string> => {
    child.stdin.write('\n');
    const { value, done } = await lines.next();
    if (done === true) throw new Error(`${script} ended before it answered`);
    return value;
  };
  const stop = async (): Promise<void> => {
    child.stdin.end();
    await gone;
    process.removeListener('exit', killNow);
  };
  // One that has ended shows by its missing answer.
  child.stdin.on('error', () => undefined);
  return { next, stop };
}

export interface LoneSink {
  readonly port: number;
  readonly daemon: Daemon;
  /** Messages taken so far. */
  messages(): Promise<number>;
  /** Taken so far. */
  connections(): Promise<number>;
  /** What it has gathered for its logs is in them. */
  flush(): Promise<void>;
  stop(): Promise<void>;
}

/** A sink alone, as for `direct`: the client's and the sink's own speed on this machine. `keys`: more of its section. */
export async function startLoneSink(keys: Readonly<Record<string, unknown>> = {}, more: readonly string[] = []): Promise<LoneSink> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-bench-'));
  const [port = 0, admin = 0] = await freePorts(2);
  const file = join(folder, 'sink.yaml');
  writeFileSync(file, JSON.stringify({ sink: { listen: `${HOST}:${port}`, admin: `${HOST}:${admin}`, ...keys } }));
  const daemon = new Daemon('sink', [ENTRY, 'sink', '--config', file, ...more], join(folder, 'sink.log'), `http://${HOST}:${admin}/readyz`);
  const killNow = (): void => daemon.killNow();
  process.once('exit', killNow);
  const stop = async (): Promise<void> => {
    await daemon.stop();
    process.removeListener('exit', killNow);
    rmSync(folder, { recursive: true, force: true });
  };
  daemon.start();
  try {
    await daemon.ready();
  } catch (error) {
    await stop();
    throw error;
  }
  const counts = async (): Promise<SinkCounts> => (await (await fetch(`http://${HOST}:${admin}/counts`)).json()) as SinkCounts;
  const messages = async (): Promise<number> => (await counts()).messages;
  const connections = async (): Promise<number> => (await counts()).connections;
  const flush = async (): Promise<void> => void (await (await fetch(`http://${HOST}:${admin}/report`)).arrayBuffer());
  return { port, daemon, messages, connections, flush, stop };
}
