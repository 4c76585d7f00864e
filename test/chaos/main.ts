/**
 * `npm run chaos -- [--minutes 10] [--seed N] [--rate N] [--no-rescue] [--kinds 'kill gateway,…']`: a chaos run (chaos.ts) as
 * a program. Prints the timeline while it runs and a table at the end; the report goes to
 * bench/results/chaos.json. The exit code is 0 when the verdict is good.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';

import { describeMachine } from '../../bench/machine.js';
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
    ['queues taken over by the other gateway', `${report.takeovers.queues}, with ${report.takeovers.messages} messages`],
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
  return rows.map(([name, value]) => `${name.padEnd(36)} ${value}`).join('\n');
}

function numberOf(text: string | undefined, otherwise: number): number {
  const number = text === undefined ? otherwise : Number(text);
  if (!Number.isFinite(number) || number <= 0) throw new Error(`'${text ?? ''}' is not a number above 0`);
  return number;
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { minutes: { type: 'string' }, seed: { type: 'string' }, rate: { type: 'string' }, kinds: { type: 'string' }, 'no-rescue': { type: 'boolean' } } });
  const seed = numberOf(values.seed, Date.now() % 1_000_000 + 1);
  const kinds = values.kinds === undefined ? FAULT_KINDS : FAULT_KINDS.filter((kind) => values.kinds?.split(',').includes(kind));
  say(`chaos with seed ${seed}`);
  const report = await runChaos({
    seed, seconds: Math.round(60 * numberOf(values.minutes, 10)), gateways: 2, stores: 3, kinds, everyMs: 5000,
    rescue: values['no-rescue'] !== true, ...(values.rate === undefined ? {} : { rate: numberOf(values.rate, 1) }),
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

await main();
