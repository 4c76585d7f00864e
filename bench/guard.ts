/**
 * `npm run bench -- guard [--against COMMIT] [--tls]`: CPU a message of this build against that of another commit, the one
 * before when none is named, in the same run, in turns; with `--tls` by STARTTLS on both sides. That commit is taken out of git and built in a temporary folder. Both run all the time, so
 * that neither is colder, and take turns of a second: what disturbs the machine for longer meets both, and what
 * counts is the median of the turns' ratios. Prints both and warns when this one needs more than 15% more; it never
 * fails: machines are noisy, and some growth is worth it. Without history, or when the old one cannot be built,
 * it says so and is done.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { figure } from './format.js';
import { median } from './machine.js';
import { startTurns, type Turns } from './processes.js';
import type { RelayOnce } from './relay-once.js';
import { cpuOf, isGateway, isStore, type Relayed } from './relay-run.js';

const ROUNDS = 11;
const MESSAGES = 10_000;
const WARM_MESSAGES = 20_000;
/** From here on it is a warning. */
const MORE_ALLOWED = 0.15;
const STEP_MS = 300_000;

export async function runGuard(project: string, against: string | undefined, tls: boolean): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-guard-'));
  try {
    const commit = buildBefore(project, folder, against ?? 'HEAD~1');
    const relays = [startTurns('relay-once.js', relayOf(tls, join(folder, 'dist'))), startTurns('relay-once.js', relayOf(tls))] as const;
    try {
      console.log(await compare(commit, ...relays));
    } finally {
      await Promise.all(relays.map((relay) => relay.stop()));
    }
  } catch (error) {
    console.log(`guard: not compared: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function compare(commit: string, old: Turns, own: Turns): Promise<string> {
  const before: number[] = [];
  const now: number[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    // Who goes first changes, as what the one before left behind does.
    const order = round % 2 === 1 ? ([[old, before], [own, now]] as const) : ([[own, now], [old, before]] as const);
    for (const [turns, figures] of order) figures.push(cpu(JSON.parse(await turns.next()) as Relayed));
    console.log(`round ${round}: before ${before.at(-1) ?? 0} µs, now ${now.at(-1) ?? 0} µs of CPU a message`);
  }
  return verdict(commit, before, now);
}

/** CPU a message of gateway and stores, round by round, in one sentence. */
export function verdict(commit: string, before: readonly number[], now: readonly number[]): string {
  const more = median(before.map((old, round) => (now[round] ?? old) / old)) - 1;
  const text = `CPU a message, gateway and both stores: ${figure(median(before))} µs at ${commit}, ${figure(median(now))} µs now; median of the rounds' ratios ${more >= 0 ? '+' : ''}${(100 * more).toFixed(1)}%`;
  return more > MORE_ALLOWED ? `guard: WARNING: ${text}` : `guard: ${text}`;
}

function cpu(relayed: Relayed): number {
  return cpuOf(relayed.cost, (name) => isGateway(name) || isStore(name));
}

function relayOf(tls: boolean, build?: string): string {
  const options: RelayOnce = { messages: MESSAGES, warmMessages: WARM_MESSAGES, inTurns: true, tls, ...(build === undefined ? {} : { build }) };
  return JSON.stringify(options);
}

/** Returns the name of the commit. */
function buildBefore(project: string, folder: string, against: string): string {
  const arguments_ = ['rev-parse', '--short=12', '--verify', '--quiet', '--end-of-options', `${against}^{commit}`];
  const commit = spawnSync('git', arguments_, { cwd: project, encoding: 'utf8' }).stdout.trim();
  if (commit === '') throw new Error(`no commit ${against} in this clone`);
  const archive = join(folder, 'tree.tar');
  execFileSync('git', ['archive', '--output', archive, commit], { cwd: project });
  execFileSync('tar', ['-xf', archive, '-C', folder]);
  if (readFileSync(join(folder, 'package-lock.json'), 'utf8') === readFileSync(join(project, 'package-lock.json'), 'utf8')) {
    symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'));
  } else {
    execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, timeout: STEP_MS, stdio: 'ignore' });
  }
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: folder, timeout: STEP_MS, stdio: 'ignore' });
  return commit;
}
