/**
 * Chaos runs as a program. Each prints its timeline while it runs and a table at the end; the report goes to
 * bench/results/. The exit code is 0 when the verdict is good.
 *
 *     npm run chaos -- [--minutes 10] [--rate N] [--no-rescue] [--kinds 'kill gateway,…']
 *         random faults, one every 5 s (chaos.ts)
 *     npm run chaos -- --rounds 100 [--kinds 'pair,…'] [--undelivered 1000] [--down 60] [--partitions 16]
 *                      [--min-replicas 2]
 *         with a real etcd: processes die or freeze together while so much lies in each partition (rounds.ts)
 *     npm run chaos -- --etcd outage|restored|emptied [--seconds 60]
 *         what befalls a real etcd in the middle of traffic (register-run.ts)
 *
 * --seed N repeats what was drawn. Those with etcd need the program `etcd` (Debian: etcd-server).
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { describeMachine } from '../../bench/machine.js';
import { ArgumentError, numberOf, readArguments, runProgram } from '../arguments.js';
import type { Verdict } from '../process/witnesses.js';
import { runChaos } from './chaos.js';
import { FAULT_KINDS, type ChaosEvent, type ChaosReport } from './options.js';
import { REGISTER_FAULTS, isRegisterRunGood, runRegisterFault } from './register-run.js';
import { ROUND_KINDS, isGood, runRounds } from './rounds.js';

const PROJECT = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..');
const say = (text: string): void => void process.stdout.write(`${text}\n`);

type Rows = readonly (readonly [string, string | number])[];

function total(counts: Readonly<Record<string, number>>): string {
  const sum = Object.values(counts).reduce((all, count) => all + count, 0);
  return `${sum} (${Object.entries(counts).map(([kind, count]) => `${kind} ${count}`).join(', ')})`;
}

function verdictRows(verdict: Verdict): Rows {
  return [
    ['accepted', verdict.accepted],
    ['arrived', verdict.arrived],
    ['lost', verdict.lost],
    ['altered', verdict.altered],
    ['refused but delivered', verdict.refusedButDelivered],
    ['out of order, or of their place', `${verdict.outOfOrder}, ${verdict.outOfPlace} (one overtook ${verdict.displacement} at most)`],
    ['attempts ended before their dot', verdict.unfinished],
    ['2xx before the mirrors had it', verdict.early],
    ['repeated', total(verdict.explained)],
    ['repeated without a reason', verdict.unexplained],
    ['malformed frames', verdict.malformedFrames],
  ];
}

function chaosRows(report: ChaosReport): Rows {
  const { partitions, messages } = report.takeovers;
  const silent = report.acceptedEachSecond.filter((accepted) => accepted === 0).length;
  return [
    ['seed', report.seed],
    ['faults', total(report.faults)],
    ['partitions taken over by the other gateway', `${partitions}, with ${messages} messages`],
    ['messages a second asked for', report.ratePerSecond],
    ['replies', Object.entries(report.replies).map(([code, count]) => `${code} ${count}`).join(', ')],
    ...verdictRows(report.verdict),
    ['ended by themselves', report.endedAlone.length],
    ['seconds without a message accepted', `${silent} of ${report.acceptedEachSecond.length}`],
    ['response p50, p99, max', `${[report.responseMs.p50, report.responseMs.p99, report.responseMs.max].map((ms) => ms.toFixed(1)).join(', ')} ms`],
  ];
}

/** All of them unless some are named. */
function kindsOf<Kind extends string>(all: readonly Kind[], text: string | undefined): readonly Kind[] {
  if (text === undefined) return all;
  const named = text.split(',');
  const unknown = named.find((name) => !all.some((kind) => kind === name));
  if (unknown !== undefined) {
    throw new ArgumentError(`--kinds: there is no '${unknown}'; there are ${all.join(', ')}`);
  }
  return all.filter((kind) => named.includes(kind));
}

const OPTIONS = {
  minutes: { type: 'string', default: '10' },
  seed: { type: 'string', default: String(Date.now() % 1_000_000 + 1) },
  rate: { type: 'string' },
  kinds: { type: 'string' },
  'no-rescue': { type: 'boolean' },
  rounds: { type: 'string' },
  undelivered: { type: 'string', default: '1000' },
  down: { type: 'string', default: '60' },
  partitions: { type: 'string', default: '16' },
  'min-replicas': { type: 'string', default: '1' },
  etcd: { type: 'string' },
  seconds: { type: 'string', default: '60' },
} as const;
type Values = ReturnType<typeof readArguments<typeof OPTIONS>>;

const onEvent = ({ second, what }: ChaosEvent): void => {
  say(`${second.toFixed(1).padStart(7)} s  ${what}`);
};

/** Once all options are known to be good. */
function begin(seed: number): void {
  say(`chaos with seed ${seed}`);
}

async function randomFaults(values: Values, seed: number): Promise<void> {
  const kinds = kindsOf(FAULT_KINDS, values.kinds);
  const seconds = Math.round(60 * numberOf('minutes', values.minutes, 'positive'));
  const rate = values.rate === undefined ? {} : { rate: numberOf('rate', values.rate, 'positive') };
  begin(seed);
  const report = await runChaos({
    seed, seconds, gateways: 2, stores: 3, kinds, everyMs: 5000,
    rescue: values['no-rescue'] !== true, ...rate, onEvent,
  });
  const good = report.verdict.ok && report.endedAlone.length === 0;
  tell('chaos', report, chaosRows(report), [...report.verdict.examples, ...report.endedAlone], good);
}

async function rounds(values: Values, seed: number): Promise<void> {
  const options = {
    seed,
    kinds: kindsOf(ROUND_KINDS, values.kinds),
    rounds: numberOf('rounds', values.rounds ?? '', 'positive'),
    undelivered: numberOf('undelivered', values.undelivered, 'whole'),
    downMsMax: 1000 * numberOf('down', values.down, 'positive'),
    partitions: numberOf('partitions', values.partitions, 'positive'),
    minReplicas: numberOf('min-replicas', values['min-replicas'], 'positive'), onEvent,
  };
  begin(seed);
  const report = await runRounds(options);
  tell('chaos-rounds', report, [
    ['seed', report.seed],
    ['rounds', total(report.rounds)],
    ...verdictRows(report.verdict),
    ['ended by themselves', report.endedAlone.length],
    ['latest, from its 250 or the last event', `${(report.latestMs / 1000).toFixed(1)} s`],
    ['rounds that were late', report.lateRounds.length],
  ], [...report.verdict.examples, ...report.lateRounds, ...report.endedAlone], isGood(report));
}

async function etcdFault(values: Values, seed: number): Promise<void> {
  const fault = REGISTER_FAULTS.find((name) => name === values.etcd);
  if (fault === undefined) throw new ArgumentError(`--etcd takes ${REGISTER_FAULTS.join(', ')}`);
  const seconds = numberOf('seconds', values.seconds, 'positive');
  begin(seed);
  const report = await runRegisterFault({ seed, fault, seconds, onEvent });
  const { before, during } = report;
  const rates = `${before.perSecond.toFixed(0)}, ${during.perSecond.toFixed(0)}`;
  const share = during.perSecond / before.perSecond;
  const p99s = `${before.p99Ms.toFixed(1)}, ${during.p99Ms.toFixed(1)} ms`;
  tell(`chaos-etcd-${fault}`, report, [
    ['seed', report.seed],
    ['etcd', fault],
    ['accepted a second before, meanwhile', `${rates} (${share.toFixed(3)} ×)`],
    ['p99 before, meanwhile', `${p99s} (${(during.p99Ms / before.p99Ms).toFixed(2)} ×)`],
    ['takeovers meanwhile', report.takeovers],
    ...verdictRows(report.verdict),
    ['ended by themselves', report.endedAlone.length],
    ['latest, from its 250 or the last event', `${(report.latestMs / 1000).toFixed(1)} s`],
  ], [...report.verdict.examples, ...report.endedAlone], isRegisterRunGood(report));
}

/** Prints and keeps a report, and answers by the exit code. */
function tell(
  name: string, report: { readonly seed: number }, rows: Rows, findings: readonly string[],
  isGoodRun: boolean,
): void {
  const folder = join(PROJECT, 'bench', 'results');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${name}.json`);
  const text = JSON.stringify({ bench: name, machine: describeMachine(), ...report }, undefined, 1);
  writeFileSync(file, `${text}\n`);
  say(`\n${rows.map(([what, value]) => `${what.padEnd(42)} ${value}`).join('\n')}\n\n${findings.join('\n')}`);
  const good = 'nothing lost, altered, early, late, out of order or repeated without a reason';
  say(`chaos: ${isGoodRun ? good : `FAILED; again with --seed ${report.seed}`}\nwritten: ${file}`);
  process.exitCode = isGoodRun ? 0 : 1;
}

async function main(): Promise<void> {
  const values = readArguments(OPTIONS);
  const seed = numberOf('seed', values.seed, 'positive');
  if (values.etcd !== undefined) await etcdFault(values, seed);
  else if (values.rounds !== undefined) await rounds(values, seed);
  else await randomFaults(values, seed);
}

await runProgram('chaos', import.meta.url, main);
