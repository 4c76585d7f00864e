#!/usr/bin/env node
/**
 * The entry of all processes: gives the command line the real terminal, environment, signals and roles, and
 * turns its result into an exit code. What a verb does is in src/cli, how a role is put together in
 * gateway-process.ts and store-process.ts.
 */
import { once } from 'node:events';
import { realpathSync } from 'node:fs';
import { UP_VARIABLE } from '../cli/config-file.js';
import type { CliContext, Roles, Terminal } from '../cli/context.js';
import { runCli } from '../cli/main.js';
import { lookUpHost } from '../platform/node/host-lookup.js';
import { HttpsClient } from '../platform/node/https-client.js';
import { ask } from './ask.js';
import { endProcess, endWithThreads } from './end-process.js';
import { packageVersion } from './package-version.js';
import { HangUps, Signals } from './signals.js';

/** Verbs that serve until they are told to stop. To others a terminal that is closed is as Ctrl-C. */
const DAEMONS: readonly (string | undefined)[] = ['gateway', 'rescue', 'store', 'sink', 'up'];
const hangUps = DAEMONS.includes(process.argv[2]) ? new HangUps() : undefined;

/**
 * The end of a verb, which has an exit code, waits for what the system looks up (end-process.ts). So it does
 * that for ten seconds at most: three silent resolvers would keep an answer that was printed for thirty.
 */
if (hangUps === undefined) process.env['RES_OPTIONS'] ??= 'timeout:2 attempts:2';

/** Loaded when a role runs: `twinpost version` needs neither. */
const roles: Roles = {
  gateway: async (file) => (file.config.workers > 1
    ? (await import('./gateway-workers.js')).startGatewayWorkers(file, hangUps)
    : (await import('./gateway-process.js')).startGatewayProcess(file, hangUps)),
  store: async (file) => (await import('./store-process.js')).startStoreProcess(file, hangUps),
};

const terminal: Terminal = {
  print: (line) => { process.stdout.write(`${line}\n`); },
  write: (what) => { process.stdout.write(what); },
  drained: async () => { if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain'); },
  // A text that ends with a carriage return is rewritten in place.
  error: (line) => { process.stderr.write(line.endsWith('\r') ? line : `${line}\n`); },
  isTty: process.stdout.isTTY && process.env['NO_COLOR'] === undefined,
  isScreen: process.stdout.isTTY,
  errorIsTty: process.stderr.isTTY,
  // Not on stdout, which may go to a file.
  canAsk: process.stdin.isTTY && process.stderr.isTTY,
  ask: (question) => ask(question, process.stdin, process.stderr),
  // Asked each time: windows change their size.
  get columns() { return process.stdout.isTTY ? process.stdout.columns : 100; },
  get rows() { return process.stdout.isTTY ? process.stdout.rows : 50; },
};

// `twinpost queue list | head`: the reader has what it wanted.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
});
// A terminal that is gone must not end who still has to take something back.
process.stderr.on('error', () => undefined);

if (process.env[UP_VARIABLE] !== undefined && process.send !== undefined) {
  // The lifeline to `up` (cli/up/supervised.ts): without it nobody would ever stop this process.
  process.once('disconnect', () => { endProcess(1); });
}

const signals = new Signals(hangUps === undefined);
const context: CliContext = {
  https: new HttpsClient(),
  lookUpHost,
  roles,
  terminal,
  environment: process.env,
  version: packageVersion(),
  entry: realpathSync(process.argv[1] ?? ''),
  untilStopped: () => signals.untilStopped(),
  onSecondSignal: (callback) => { signals.onSecond(callback); },
  stopSignal: signals.aborted,
  onPassedSignal: (callback) => { hangUps?.pass(callback); },
};

const code = await runCli(process.argv.slice(2), context);
// Output to a pipe may still be on its way; exit() would cut it off.
process.stdout.write('', () => {
  if (hangUps === undefined || code !== 0) process.exit(code);
  void endWithThreads(code);
});
