/**
 * `npm run chaos -- [--minutes 10] [--seed N] [--rate N] [--no-rescue] [--kinds 'kill gateway,…']`: a chaos run (chaos.ts) as
 * a program. Prints the timeline while it runs and a table at the end; the report goes to
 * bench/results/chaos.json. The exit code is 0 when the verdict is good.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { describeMachine } from '../../bench/machine.js';
import { ArgumentError, numberOf, readArguments, runProgram } from '../arguments.js';
import { runChaos } from './chaos.js';
import { FAULT_KINDS, type ChaosReport } from './options.js';

const PROJECT = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');
const say = (text: string): void => void process.stdout.write(`${text}\n`);

function table(report: ChaosReport): string {
  const { verdict } = report;
  const silent = report.acceptedEachSecond.filter((accepted) => accepted === 0).length;
  const rows: readonly (readonly [string, string | number])[] = [
    ['seed', report.seed],
    ['faults', `${Object.values(report.faults).reduce((sum, count) => sum + count, 0)} (${Object.entries(report.faults).map(([kind, count]) => `${kind} ${count}`).join(', ')})`],
    ['partitions taken over by the other gateway', `${report.takeovers.partitions}, with ${report.takeovers.messages} messages`],
    ['messages a second asked for', report.ratePerSecond],
    ['replies', Object.entries(report.replies).map(([code, count]) => `${code} ${count}`).join(', ')],
    ['accepted', verdict.accepted],
    ['arrived', verdict.arrived],
    ['lost', verdict.lost],
    ['altered', verdict.altered],
    ['refused but delivered', verdict.refusedButDelivered],
    ['out of order, or of their place', `${verdict.outOfOrder}, ${verdict.outOfPlace} (one overtook ${verdict.displacement} at most)`],
    ['attempts ended before their dot', verdict.unfinished],
    ['2xx before the mirrors had it', verdict.early],
    ['repeated', `${verdict.repeated} (${Object.entries(verdict.explained).map(([cause, count]) => `${cause} ${count}`).join(', ')})`],
    ['repeated without a reason', verdict.unexplained],
    ['malformed frames', verdict.malformedFrames],
    ['ended by themselves', report.endedAlone.length],
    ['seconds without a message accepted', `${silent} of ${report.acceptedEachSecond.length}`],
    ['response p50, p99, max', `${[report.responseMs.p50, report.responseMs.p99, report.responseMs.max].map((ms) => ms.toFixed(1)).join(', ')} ms`],
  ];
  return rows.map(([name, value]) => `${name.padEnd(42)} ${value}`).join('\n');
}

/** All of them unless some are named. */
function kindsOf(text: string | undefined): readonly (typeof FAULT_KINDS)[number][] {
  if (text === undefined) return FAULT_KINDS;
  const named = text.split(',');
  const unknown = named.find((name) => !FAULT_KINDS.some((kind) => kind === name));
  if (unknown !== undefined) throw new ArgumentError(`--kinds: there is no '${unknown}'; there are ${FAULT_KINDS.join(', ')}`);
  return FAULT_KINDS.filter((kind) => named.includes(kind));
}

async function main(): Promise<void> {
  const values = readArguments({ minutes: { type: 'string', default: '10' }, seed: { type: 'string', default: String(Date.now() % 1_000_000 + 1) }, rate: { type: 'string' }, kinds: { type: 'string' }, 'no-rescue': { type: 'boolean' } });
  const seed = numberOf('seed', values.seed, 'positive');
  const kinds = kindsOf(values.kinds);
  const seconds = Math.round(60 * numberOf('minutes', values.minutes, 'positive'));
  const rate = values.rate === undefined ? {} : { rate: numberOf('rate', values.rate, 'positive') };
  say(`chaos with seed ${seed}`);
  const report = await runChaos({
    seed, seconds, gateways: 2, stores: 3, kinds, everyMs: 5000,
    rescue: values['no-rescue'] !== true, ...rate,
    onEvent: ({ second, what }) => { say(`${second.toFixed(1).padStart(7)} s  ${what}`); },
  });
  const folder = join(PROJECT, 'bench', 'results');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, 'chaos.json');
  writeFileSync(file, `${JSON.stringify({ bench: 'chaos', machine: describeMachine(), ...report }, undefined, 1)}\n`);
  const good = report.verdict.ok && report.endedAlone.length === 0;
  say(`\n${table(report)}\n\n${report.verdict.examples.join('\n')}${report.endedAlone.join('\n')}`);
  say(`${good ? 'chaos: nothing lost, altered, early, out of order or repeated without a reason' : `chaos: FAILED; again with --seed ${seed}`}\nwritten: ${file}`);
  process.exitCode = good ? 0 : 1;
}

await runProgram('chaos', import.meta.url, main);
