/**
 * Seeds of the ownership world, one after the other:
 *
 *     node dist/test/simulation/ownership/main.js [--seed N] [--seeds M] [--trace] [--keep-going] [--no-extras]
 *                                                 [--mutants [--only NAME]]
 */
import { numberOf, readArguments, runProgram } from '../../arguments.js';
import { runOwnershipMutants } from './mutants.js';
import { simulateOwnership } from './simulate.js';

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const TOLD_MAX = 10;

function main(): Promise<void> {
  const values = readArguments({
    seed: { type: 'string', default: '1' }, seeds: { type: 'string', default: '1' },
      trace: { type: 'boolean', default: false },
    'keep-going': { type: 'boolean', default: false },
    'no-extras': { type: 'boolean', default: false },
    mutants: { type: 'boolean', default: false }, only: { type: 'string', default: '' },
  });
  if (values.mutants) {
    process.exitCode = runOwnershipMutants(say, values.only) ? 0 : 1;
    return Promise.resolve();
  }
  const first = numberOf('seed', values.seed, 'whole');
  const seeds = numberOf('seeds', values.seeds, 'whole');
  const rare = new Map<string, number>();
  let failed = 0;
  let accepted = 0;
  let repeated = 0;
  let ran = 0;
  for (let seed = first; seed < first + seeds; seed++) {
    const onTrace = values.trace ? { onTrace: (atMs: number,
      text: string) => { say(`${atMs.toFixed(0)} ${text}`); } } : {};
    const result = simulateOwnership(seed, { ...onTrace, extras: !values['no-extras'] });
    ran += 1;
    accepted += result.accepted;
    repeated += result.repeated;
    for (const [name, count] of result.rare) rare.set(name, (rare.get(name) ?? 0) + count);
    if (result.failure === '') continue;
    failed += 1;
    if (failed <= TOLD_MAX) say(`FAILED seed ${String(seed)}: ${result.failure}`);
    if (!values['keep-going']) break;
  }
  say([...rare].sort().map(([name, count]) => `${name} ${String(count)}`).join(', '));
  say(`${String(ran)} seeds, ${String(failed)} failed, ${String(accepted)} accepted, ${String(repeated)} delivered again`);
  process.exitCode = failed > 0 ? 1 : 0;
  return Promise.resolve();
}

await runProgram('simulate-ownership', import.meta.url, main);
