/**
 * Feeds targets (targets.ts) with inputs until a count or a time is over:
 *
 *   npm run fuzz -- [--target session] [--inputs 5000000] [--seconds 60] [--seed 1]
 *
 * First those that once failed (KEPT). Prints one line a target: inputs, the slowest of them, memory after the first half
 * and after the second. Exit code 1, and the seed to feed again, when something does not hold, an input takes over 50 ms,
 * and of processor time again, or the second half leaves over 1.05 times the memory of the
 * first and 2 MiB, which is what a collection leaves by chance.
 */
import v8 from 'node:v8';
import vm from 'node:vm';

import { ArgumentError, numberOf, readArguments, runProgram } from '../arguments.js';
import { KEPT } from './kept.js';
import { TALLIES } from './field.js';
import { TARGETS } from './targets.js';
import type { Target } from './targets.js';

const TURN_MS = 50;
const LOOKED_EVERY = 1000;
const MEMORY_RATIO_MAX = 1.05;
/** Beside the ratio: what a collection leaves more or less by chance. */
const MEMORY_SLACK_BYTES = 2 * 1024 * 1024;

v8.setFlagsFromString('--expose-gc');
const collect = vm.runInNewContext('gc') as () => void;

function memoryBytes(): number {
  collect();
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function feed(name: string, target: Target, seed: number): Promise<number> {
  const startMs = performance.now();
  try {
    await target(seed);
  } catch (error) {
    process.stderr.write(`${`${name}: input ${String(seed)} fails; again with --target ${name} --seed ${String(seed)} --inputs 1`}\n`);
    throw error;
  }
  return performance.now() - startMs;
}

/**
 * What the input itself takes: one that is slow is fed twice more, and by processor time then, for the machine may have been
 * busy with others.
 */
async function ownMs(name: string, target: Target, seed: number): Promise<number> {
  let fastestMs = await feed(name, target, seed);
  for (let time = 1; time < 3 && fastestMs > TURN_MS; time++) {
    const before = process.cpuUsage();
    await feed(name, target, seed);
    const { user, system } = process.cpuUsage(before);
    fastestMs = Math.min(fastestMs, (user + system) / 1000);
  }
  return fastestMs;
}

async function run(name: string, target: Target, firstSeed: number, inputs: number, seconds: number): Promise<boolean> {
  for (const seed of KEPT[name] ?? []) await feed(name, target, seed);
  const startMs = performance.now();
  TALLIES.clear();
  let fed = 0;
  let slowestMs = 0;
  const feedUntil = async (share: number): Promise<void> => {
    for (; fed < inputs * share; fed++) {
      if (fed % LOOKED_EVERY === 0 && performance.now() - startMs > 1000 * seconds * share) return;
      const tookMs = await ownMs(name, target, firstSeed + fed);
      if (tookMs > TURN_MS) throw new Error(`${name}: input ${String(firstSeed + fed)} takes ${tookMs.toFixed(0)} ms`);
      slowestMs = Math.max(slowestMs, tookMs);
    }
  };
  await feedUntil(0.5);
  const firstBytes = memoryBytes();
  await feedUntil(1);
  const secondBytes = memoryBytes();
  const tallies = [...TALLIES].map(([what, count]) => `, ${String(count)} ${what}`).join('');
  const isFlat = secondBytes <= MEMORY_RATIO_MAX * firstBytes + MEMORY_SLACK_BYTES;
  process.stdout.write(`${`${name}: ${fed.toLocaleString('en')} inputs from seed ${String(firstSeed)} in ${((performance.now() - startMs) / 1000).toFixed(0)} s, the slowest ${slowestMs.toFixed(1)} ms, memory ${(firstBytes / 1e6).toFixed(1)} MB after half, ${(secondBytes / 1e6).toFixed(1)} MB at the end${tallies}${isFlat ? '' : ': IT GROWS'}`}\n`);
  return isFlat;
}

async function main(): Promise<void> {
  const values = readArguments({
    target: { type: 'string' }, inputs: { type: 'string', default: '5000000' },
    seconds: { type: 'string' }, seed: { type: 'string', default: '1' },
  });
  const seed = numberOf('seed', values.seed, 'whole');
  const inputs = numberOf('inputs', values.inputs, 'whole');
  const seconds = values.seconds === undefined ? Infinity : numberOf('seconds', values.seconds, 'positive');
  const chosen = Object.entries(TARGETS).filter(([name]) => values.target === undefined || values.target === name);
  if (chosen.length === 0) throw new ArgumentError(`--target is one of ${Object.keys(TARGETS).join(', ')}`);
  let isGood = true;
  for (const [name, target] of chosen) isGood = await run(name, target, seed, inputs, seconds) && isGood;
  process.exit(isGood ? 0 : 1);
}

await runProgram('fuzz', import.meta.url, main);
