/**
 * `npm run bench -- all [--quick] [--only PART,…] [--install] [--publish]`: every figure of the report in one
 * run, part after part; each part's result is a file of its own, so that one can be repeated alone and the
 * report made again from all.
 *
 *     parts ─► bench/results/all[-quick]/PART.json, PART.svg ─► report.md
 *                                                      └─ --publish ─► docs/bench/report-*, docs/PERFORMANCE.md
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { dirname, join } from 'node:path';

import { partGrowth } from './growth.js';
import { describeMachine } from './machine.js';
import { partMemory } from './memory.js';
import { partNodes } from './nodes.js';
import type { BenchOptions, PartResult, PartRun } from './options.js';
import { installPeers } from './peers/installed.js';
import { partPeers } from './peers.js';
import { publish } from './publish.js';
import { partRecovery } from './recovery.js';
import { partRelay } from './relay.js';
import { plotsOf } from './report-plots.js';
import { reportOf } from './report.js';
import type { Results } from './results.js';
import { partStore } from './store.js';
import { plotSvg } from './svg-plot.js';
import { partWorkers } from './workers.js';

/** Runs of their own, whose results the report shows. */
const ALONE = ['longest', 'endurance'] as const;
type PartName = Exclude<keyof Results, (typeof ALONE)[number]>;

/** In the order of the run. */
const PARTS: Readonly<Record<PartName, (options: BenchOptions) => Promise<PartRun<unknown>>>> = {
  relay: partRelay,
  store: partStore,
  peers: partPeers,
  recovery: partRecovery,
  growth: partGrowth,
  memory: partMemory,
  workers: partWorkers,
  nodes: partNodes,
};
const NAMES = Object.keys(PARTS) as PartName[];

export interface AllOptions extends BenchOptions {
  /** Empty: all parts. */
  readonly only: readonly string[];
  /** Fetches the peers that are not there. */
  readonly install: boolean;
  /** The project's folder. */
  readonly project: string;
  /** Writes the report into docs/, too. */
  readonly publish: boolean;
}

/** Resolves with false if a part failed; the others have run then. */
export async function runAll(options: AllOptions): Promise<boolean> {
  const unknown = options.only.find((name) => !NAMES.includes(name as PartName));
  if (unknown !== undefined) throw new Error(`no part ${unknown}: ${NAMES.join(', ')}`);
  const folder = partsFolder(options);
  mkdirSync(folder, { recursive: true });
  if (options.install) installPeers();
  let good = true;
  for (const name of NAMES) {
    if (options.only.length > 0 && !options.only.includes(name)) continue;
    good = (await runPart(name, options, folder)) && good;
  }
  writeReport(options);
  return good;
}

function partsFolder(options: Pick<AllOptions, 'quick' | 'folder'>): string {
  return join(options.folder, options.quick ? 'all-quick' : 'all');
}

async function runPart(name: PartName, options: AllOptions, folder: string): Promise<boolean> {
  console.log(`\n== ${name}`);
  try {
    const missing = await keepPart(name, join(folder, `${name}.json`), options.quick, () => PARTS[name](options));
    if (missing.length > 0) console.log(`not installed: ${missing.join(', ')}`);
    return true;
  } catch (error) {
    console.error(`== ${name} FAILED: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    return false;
  }
}

/** Runs a part and keeps its result with machine and time. Resolves with what was not installed. */
export async function keepPart(part: string, file: string, quick: boolean, run: () => Promise<PartRun<unknown>>): Promise<readonly string[]> {
  const machine = describeMachine();
  const loadBefore = loadavg()[0] ?? 0;
  const started = performance.now();
  const { rows, missing = [] } = await run();
  const seconds = Math.round((performance.now() - started) / 1000);
  const result: PartResult<unknown> = { part, quick, seconds, loadBefore, machine, rows, missing };
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(result, undefined, 1)}\n`);
  console.log(`== ${part}: ${seconds} s`);
  return missing;
}

/** From the newest result of each part. */
export function writeReport(options: Pick<AllOptions, 'quick' | 'folder' | 'project' | 'publish'>): void {
  const folder = partsFolder(options);
  const results = readResults(folder, options.folder);
  const file = join(folder, 'report.md');
  writeFileSync(file, reportOf(results));
  const plots = plotsOf(results).map(([name, plot]) => [name, plotSvg(plot)] as const);
  for (const [name, svg] of plots) writeFileSync(join(folder, `${name}.svg`), svg);
  console.log(`\nwritten: ${file}`);
  if (options.publish) console.log(publish(options.project, results, plots).map((path) => `written: ${path}`).join('\n'));
}

function readResults(folder: string, alone: string): Results {
  const files = [...NAMES.map((name) => [name, join(folder, `${name}.json`)] as const), ...ALONE.map((name) => [name, aloneFile(alone, name)] as const)];
  const results: Record<string, unknown> = {};
  for (const [name, file] of files) if (existsSync(file)) results[name] = JSON.parse(readFileSync(file, 'utf8'));
  return results as Results;
}

/** Where a run of its own keeps its result. */
export function aloneFile(folder: string, name: (typeof ALONE)[number]): string {
  return join(folder, `${name}.json`);
}
