/**
 * The command behind `npm run simulate`: seeds one after the other, over several processes, and what came of them.
 *
 *     npm run simulate -- [--seed N] [--seeds M] [--steps S] [--jobs J] [--trace] [--keep-going]
 *                         [--mutants [--only NAME]]
 *
 * The first seed that fails ends the run, but with --keep-going. It prints the command that repeats it and the last lines of its log; --trace prints all of a run.
 * The exit code is 0 only if no seed failed and, in a run of ALL_KINDS_SEEDS or more, every kind of fault fired. The CPU
 * of a seed is that of all threads of its process, without the start of the process.
 */
import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { numberOf, readArguments, runProgram } from '../arguments.js';
import { MUTANTS, runMutants } from './mutants.js';
import { ALL_KINDS } from './plan.js';
import type { RunResult } from './simulate.js';
import { simulate } from './simulate.js';
import { Summary } from './summary.js';

const STEPS_DEFAULT = 80;
/** Failures that are told at length; all seeds stand in the summary. */
const TOLD_MAX = 10;
/** Most of what a world makes is over before this is full: seldom collected, and hardly ever kept. */
const ROOM = ['--min-semi-space-size=32', '--max-semi-space-size=64'];
const say = (text: string): void => void process.stdout.write(`${text}\n`);

interface Range {
  readonly seed: number;
  readonly seeds: number;
  readonly steps: number;
  readonly jobs: number;
  /** A failing seed does not end the run. */
  readonly keepGoing: boolean;
}

function options(): Range & { readonly trace: boolean; readonly mutants: boolean; readonly only: string; readonly stride: number } {
  const values = readArguments({
    seed: { type: 'string', default: '1' }, seeds: { type: 'string', default: '1' }, steps: { type: 'string', default: String(STEPS_DEFAULT) }, jobs: { type: 'string', default: '0' },
    stride: { type: 'string', default: '1' }, trace: { type: 'boolean', default: false }, 'keep-going': { type: 'boolean', default: false }, mutants: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
  });
  const number = (name: 'seed' | 'seeds' | 'steps' | 'jobs' | 'stride'): number => numberOf(name, values[name], 'whole');
  return { seed: number('seed'), seeds: number('seeds'), steps: number('steps'), jobs: number('jobs') || availableParallelism(), stride: number('stride'), trace: values.trace, keepGoing: values['keep-going'], mutants: values.mutants, only: values.only };
}

let told = 0;

function tell(result: RunResult, steps: number): void {
  if (result.failure === '') return;
  told += 1;
  if (told > TOLD_MAX) return;
  say(`\nFAILED seed ${String(result.seed)}: ${result.failure}\nlast of the log:\n${result.lastLog}\nrepeat with: npm run simulate -- --seed ${String(result.seed)} --steps ${String(steps)} --trace\n`);
}

/** What the parent hears of a seed. */
interface SeedTold {
  readonly result: RunResult;
  readonly cpuMs: number;
}

/** Of this process since then, in all its threads: what compiles and what collects count, too. */
function cpuMsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Runs in this process; the parent, if there is one, hears of every seed. */
function runHere(range: Range, stride: number, trace: boolean): Summary {
  const summary = new Summary();
  for (let i = 0; i < range.seeds; i++) {
    const seed = range.seed + i * stride;
    const before = process.cpuUsage();
    const result = simulate(seed, { steps: range.steps, ...(trace ? { onTrace: (atMs, text) => { say(`${atMs.toFixed(3)} ${text}`); } } : {}) });
    const cpuMs = cpuMsSince(before);
    if (process.send !== undefined) process.send({ result, cpuMs } satisfies SeedTold);
    else {
      summary.add(result, cpuMs);
      tell(result, range.steps);
    }
    if (result.failure !== '' && !range.keepGoing) break;
  }
  return summary;
}

/** Seeds dealt out to processes of their own. */
async function runApart(range: Range): Promise<Summary> {
  const summary = new Summary();
  const jobs = Math.min(range.jobs, range.seeds);
  const file = fileURLToPath(import.meta.url);
  await Promise.all(Array.from({ length: jobs }, (_, job) => new Promise<void>((resolve, reject) => {
    const share = Math.floor((range.seeds - job + jobs - 1) / jobs);
    const child = fork(file, ['--seed', String(range.seed + job), '--seeds', String(share), '--stride', String(jobs), '--steps', String(range.steps), ...(range.keepGoing ? ['--keep-going'] : [])], { execArgv: [...process.execArgv, ...ROOM] });
    child.on('message', ({ result, cpuMs }: SeedTold) => {
      summary.add(result, cpuMs);
      tell(result, range.steps);
    });
    child.on('error', reject);
    child.on('exit', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`a process of the simulation ended with ${String(code)}`));
    });
  })));
  return summary;
}

async function main(): Promise<void> {
  const chosen = options();
  if (chosen.mutants) {
    process.exitCode = (await runMutants(say, MUTANTS.filter((mutant) => mutant.name.includes(chosen.only)))) ? 0 : 1;
    return;
  }
  if (process.send !== undefined) {
    runHere(chosen, chosen.stride, false);
    process.disconnect();
    return;
  }
  const startedMs = performance.now();
  const summary = chosen.jobs > 1 && chosen.seeds > 1 && !chosen.trace ? await runApart(chosen) : runHere(chosen, 1, chosen.trace);
  for (const line of summary.lines(performance.now() - startedMs)) say(line);
  const silent = summary.silentKinds();
  if (silent.length > 0) say(`these kinds of fault never fired in ${String(summary.seeds)} seeds: ${silent.join(' ')} (of ${String(ALL_KINDS.length)})`);
  process.exitCode = summary.failed.length > 0 || silent.length > 0 ? 1 : 0;
}

await runProgram('simulate', import.meta.url, main);
