/**
 * `npm run bench -- all|nodes|report|longest|endurance|guard` and `… -- kvs|gateway|recovery|rescue|takeover|fault|tls|domains|mx|direct [--quick]`:
 * `all` is the whole report (all.ts), `nodes` one part of it, `report` writes it again from what was measured;
 * `longest` is told in memory.ts, `endurance`, `guard` and `queues` in the files of their names. The others repeat one of the paper's
 * experiments with real processes on this machine, or measure what a client feels of a fault: their results
 * go to a folder as JSON and as a plot beside the paper's figures. `direct` alone tells what the client and
 * the sink reach without a gateway.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { aloneFile, keepPart, runAll, writeReport } from './all.js';
import { benchEndurance } from './endurance.js';
import { benchDomains } from './domains.js';
import { benchFault } from './fault.js';
import { benchGateway, runDirect } from './gateway.js';
import { benchKvs } from './kvs.js';
import { runGuard } from './guard.js';
import { describeMachine } from './machine.js';
import { partLongest } from './memory.js';
import type { BenchOptions, BenchResult } from './options.js';
import { benchMx } from './mx.js';
import { benchQueues } from './queues.js';
import { benchRecovery } from './recovery.js';
import { benchRescue } from './rescue.js';
import { benchTakeover } from './takeover.js';
import { benchTls } from './tls.js';
import { plotSvg, type Plot } from './svg-plot.js';

const PROJECT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const BENCHES: Readonly<Record<string, (options: BenchOptions) => Promise<{ rows: BenchResult['rows']; plot?: Plot }>>> = {
  kvs: benchKvs,
  gateway: benchGateway,
  recovery: benchRecovery,
  rescue: benchRescue,
  takeover: benchTakeover,
  fault: benchFault,
  tls: benchTls,
  domains: benchDomains,
  mx: benchMx,
  direct: async (options) => {
    const row = await runDirect(options.quick ? 50_000 : 500_000);
    console.log(JSON.stringify(row, undefined, 2));
    return { rows: [row] };
  },
};
const DEFAULT_MINUTES = 30;
const FLAGS = {
  quick: { type: 'boolean' },
  only: { type: 'string' },
  minutes: { type: 'string' },
  messages: { type: 'string' },
  against: { type: 'string' },
  tls: { type: 'boolean' },
  install: { type: 'boolean' },
  publish: { type: 'boolean' },
} as const;

function readArguments(args: readonly string[]): ReturnType<typeof parseArgs<{ options: typeof FLAGS; allowPositionals: true; args: string[] }>> | undefined {
  try {
    return parseArgs({ args: [...args], options: FLAGS, allowPositionals: true });
  } catch {
    return undefined;
  }
}

type Flags = NonNullable<ReturnType<typeof readArguments>>['values'];

const USAGE = [
  'all [--quick] [--only PART,…] [--install] [--publish]',
  'endurance [--minutes N]',
  'longest',
  'nodes [--quick]',
  'report [--quick] [--publish]',
  'guard [--against COMMIT] [--tls]',
  'queues [--quick] [--messages N]',
  `${Object.keys(BENCHES).join('|')} [--quick]`,
].map((line, index) => `${index === 0 ? 'usage:' : '      '} npm run bench -- ${line}`).join('\n');

/** What is more than one experiment. Each resolves with whether all went well. */
const WHOLE: Readonly<Record<string, (options: BenchOptions, flags: Flags) => Promise<boolean>>> = {
  all: (options, flags) => runParts(options, flags, (flags.only ?? '').split(',').filter((part) => part !== '')),
  report: (options, flags) => {
    writeReport({ ...options, project: PROJECT, publish: flags.publish ?? false });
    return Promise.resolve(true);
  },
  nodes: (options, flags) => runParts(options, flags, ['nodes']),
  endurance: async (options, flags) => {
    const minutes = Number(flags.minutes ?? DEFAULT_MINUTES);
    if (!(minutes > 0)) throw new Error(`'${flags.minutes ?? ''}' is not a number of minutes`);
    await keepPart('endurance', aloneFile(options.folder, 'endurance'), false, () => benchEndurance(minutes));
    return true;
  },
  longest: async (options) => {
    if (options.quick) await partLongest(options);
    else await keepPart('longest', aloneFile(options.folder, 'longest'), false, () => partLongest(options));
    return true;
  },
  queues: async (options, flags) => {
    const messages = flags.messages === undefined ? undefined : Number(flags.messages);
    // A tenth of them is removed, a tenth of that of each queue.
    if (messages !== undefined && !(messages > 0 && messages % 100 === 0)) throw new Error(`'${flags.messages ?? ''}' is not a number of hundreds of messages`);
    return (await runOne('queues', (all) => benchQueues(all, messages), options)) === 0;
  },
  guard: async (_options, flags) => {
    await runGuard(PROJECT, flags.against, flags.tls ?? false);
    return true;
  },
};

function runParts(options: BenchOptions, flags: Flags, only: readonly string[]): Promise<boolean> {
  return runAll({ ...options, only, project: PROJECT, install: flags.install ?? false, publish: flags.publish ?? false });
}

async function main(args: readonly string[]): Promise<number> {
  const read = readArguments(args);
  const name = read?.positionals[0] ?? '';
  const bench = BENCHES[name];
  if (read === undefined || read.positionals.length !== 1 || (bench === undefined && WHOLE[name] === undefined)) {
    console.error(USAGE);
    return 1;
  }
  const options: BenchOptions = { quick: read.values.quick ?? false, folder: join(PROJECT, 'bench', 'results') };
  const machine = describeMachine();
  console.log(`${name}: ${machine.processors} × ${machine.processor}, ${machine.system}, Node ${machine.node}, commit ${machine.commit}`);
  if (bench !== undefined) return runOne(name, bench, options);
  return (await WHOLE[name]?.(options, read.values)) === true ? 0 : 1;
}

async function runOne(name: string, bench: (typeof BENCHES)[string] & object, options: BenchOptions): Promise<number> {
  const machine = describeMachine();
  const { rows, plot } = await bench(options);
  const result: BenchResult = { bench: name, quick: options.quick, machine, rows };
  mkdirSync(options.folder, { recursive: true });
  const file = join(options.folder, options.quick ? `${name}-quick` : name);
  writeFileSync(`${file}.json`, `${JSON.stringify(result, undefined, 2)}\n`);
  if (plot !== undefined) {
    const where = `${machine.processors} × ${machine.processor}, Node ${machine.node}, commit ${machine.commit}, ${machine.at.slice(0, 10)}`;
    writeFileSync(`${file}.svg`, plotSvg({ ...plot, note: `${plot.note}. ${where}` }));
  }
  console.log(`written: ${file}.json${plot === undefined ? '' : `, ${file}.svg`}`);
  return 0;
}

// Only a process that exits ends its daemons.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
process.exitCode = await main(process.argv.slice(2));
