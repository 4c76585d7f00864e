/**
 * `npm run bench -- kvs|gateway|recovery|rescue|fault|direct [--quick]`: repeats the paper's experiments with
 * real processes on this machine, and measures what a client feels of a fault. Results go to bench/results/ as JSON and as a plot beside the paper's figures.
 * `direct` alone tells what the client and the sink reach without a gateway.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { benchFault } from './fault.js';
import { benchGateway, runDirect } from './gateway.js';
import { benchKvs } from './kvs.js';
import { describeMachine } from './machine.js';
import type { BenchOptions, BenchResult } from './options.js';
import { benchRecovery } from './recovery.js';
import { benchRescue } from './rescue.js';
import { plotSvg, type Plot } from './svg-plot.js';

const PROJECT = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const BENCHES: Readonly<Record<string, (options: BenchOptions) => Promise<{ rows: BenchResult['rows']; plot?: Plot }>>> = {
  kvs: benchKvs,
  gateway: benchGateway,
  recovery: benchRecovery,
  rescue: benchRescue,
  fault: benchFault,
  direct: async (options) => {
    const row = await runDirect(options.quick ? 50_000 : 500_000);
    console.log(JSON.stringify(row, undefined, 2));
    return { rows: [row] };
  },
};

async function main(args: readonly string[]): Promise<number> {
  const quick = args.includes('--quick');
  const names = args.filter((argument) => !argument.startsWith('--'));
  const name = names[0] ?? '';
  const bench = BENCHES[name];
  const unknown = args.find((argument) => argument.startsWith('--') && argument !== '--quick');
  if (bench === undefined || names.length > 1 || unknown !== undefined) {
    console.error(`usage: npm run bench -- ${Object.keys(BENCHES).join('|')} [--quick]`);
    return 1;
  }
  const options: BenchOptions = { quick, folder: join(PROJECT, 'bench', 'results') };
  const machine = describeMachine();
  console.log(`${name}: ${machine.processors} × ${machine.processor}, ${machine.system}, Node ${machine.node}, commit ${machine.commit}`);
  const { rows, plot } = await bench(options);
  const result: BenchResult = { bench: name, quick, machine, rows };
  mkdirSync(options.folder, { recursive: true });
  const file = join(options.folder, quick ? `${name}-quick` : name);
  writeFileSync(`${file}.json`, `${JSON.stringify(result, undefined, 2)}\n`);
  if (plot !== undefined) {
    const where = `${machine.processors} × ${machine.processor}, Node ${machine.node}, commit ${machine.commit}, ${machine.at.slice(0, 10)}`;
    writeFileSync(`${file}.svg`, plotSvg({ ...plot, note: `${plot.note}. ${where}` }));
  }
  console.log(`written: ${file}.json${plot === undefined ? '' : `, ${file}.svg`}`);
  return 0;
}

process.exitCode = await main(process.argv.slice(2));
