/**
 * Mutants: known mistakes, each a textual patch on the built JavaScript. The simulator runs on a patched copy of
 * the build and must find a broken guarantee within SEEDS seeds; else its checkers do not check. A patch that
 * does not fit its file any more fails too: the mutant is then to be written anew.
 *
 * To add one: name, built file below src/, the exact text there, what stands in its place.
 */
import { spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Mutant {
  readonly name: string;
  /** Built file, from the root of the build. */
  readonly file: string;
  readonly old: string;
  readonly new: string;
  /** Seed from which it is known to be found soon. */
  readonly seed?: number;
}

const SEEDS = 200;
const BUILD = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'acknowledge after one mirror', file: 'src/gateway/mirror/queue-mirror.js',
    old: 'if (members < this.minReplicas ||',
    new: 'least = Math.max(...this.replicas.filter((one) => one.member).map((one) => one.acked));\n        if (members < this.minReplicas ||',
  },
  {
    name: 'reuse a transaction number', file: 'src/gateway/queue/recovered-queues.js',
    old: 'mirror.adopt(claimed.epoch, claimed.number, claimed.digestA, claimed.digestB);',
    new: 'mirror.adopt(claimed.epoch, Math.max(0, claimed.number - 1), claimed.digestA, claimed.digestB);',
  },
  {
    name: 'drop the epoch check', file: 'src/recovery/census.js',
    old: '(newest === undefined || row.epoch > newest.epoch)',
    new: '(newest === undefined || row.epoch < newest.epoch)',
  },
  {
    name: '451 before the withdrawal', file: 'src/gateway/mirror/commit-point.js',
    old: 'for (let i = 0; i < numbers.length; i++)\n            pending.mirrors[i]?.await(numbers[i] ?? 0, withdrawal);',
    new: 'this.withdrawn(pending);',
  },
  {
    name: 'refill appended behind live messages', file: 'src/kvs/core/refill.js',
    old: 'this.#entries.link(queue, entry, position, queue.refillRow);',
    new: 'this.#entries.link(queue, entry, position, queue.last);',
  },
  {
    name: 'number reused after a refusal', file: 'src/gateway/mirror/queue-mirror.js',
    old: 'withdraw(position) {',
    new: 'withdraw(position) {\n        this.lastNumber -= 1;',
  },
  {
    name: 'DSN released early', file: 'src/gateway/core.js',
    old: 'if (prefix !== undefined && (prefix.flags & ENVELOPE_PARKED) !== 0) {',
    new: 'if (prefix === null) {',
  },
  {
    name: 'a sent change of the set turned round', file: 'src/gateway/mirror/replica-set.js',
    old: 'if (mirror.setChangeNumber !== 0 && !founding)\n        return false;',
    new: '',
  },
  {
    name: 'joiner told before the survivors', file: 'src/gateway/mirror/replica-set.js',
    old: 'return replica.phase === ResyncPhase.JOINING && !mirror.founding &&',
    new: 'return mirror === null &&',
  },
];

export interface Verdict {
  readonly name: string;
  readonly caught: boolean;
  /** The seed that found it and what it said, or why it could not be tried. */
  readonly text: string;
}

/** Runs all, or those named; true when each was caught. */
export async function runMutants(say: (text: string) => void, chosen: readonly Mutant[] = MUTANTS): Promise<boolean> {
  let all = chosen.length > 0;
  for (const mutant of chosen) {
    const verdict = await tryMutant(mutant);
    say(`${verdict.caught ? 'caught' : 'NOT CAUGHT'}  ${verdict.name}: ${verdict.text}`);
    if (!verdict.caught) all = false;
  }
  return all;
}

export async function tryMutant(mutant: Mutant): Promise<Verdict> {
  const folder = mkdtempSync(join(tmpdir(), 'mutant-'));
  try {
    copyBuild(folder);
    const file = join(folder, mutant.file);
    const text = readFileSync(file, 'utf8');
    const parts = text.split(mutant.old);
    if (parts.length !== 2) return { name: mutant.name, caught: false, text: `its patch fits ${String(parts.length - 1)} places of ${mutant.file}, not one` };
    writeFileSync(file, parts.join(mutant.new));
    const { output } = await runSeeds(folder, mutant.seed ?? 1);
    const found = /FAILED seed (\d+): ([^\n]*)/.exec(output);
    return { name: mutant.name, caught: found !== null, text: found === null ? `${String(SEEDS)} seeds found nothing wrong` : `seed ${found[1] ?? ''}: ${found[2] ?? ''}` };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What the simulator needs of the build, with the packages it imports. */
function copyBuild(folder: string): void {
  for (const part of ['src', join('test', 'scenario'), join('test', 'simulation')]) {
    mkdirSync(join(folder, dirname(part)), { recursive: true });
    cpSync(join(BUILD, part), join(folder, part), { recursive: true, filter: (name) => !name.endsWith('.map') });
  }
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
  symlinkSync(packagesFolder(), join(folder, 'node_modules'));
}

function packagesFolder(): string {
  let folder = BUILD;
  while (!existsSync(join(folder, 'node_modules'))) {
    if (folder === dirname(folder)) throw new Error('no folder above the build has node_modules');
    folder = dirname(folder);
  }
  return join(folder, 'node_modules');
}

function runSeeds(folder: string, seed: number): Promise<{ readonly output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(folder, 'test', 'simulation', 'main.js'), '--seed', String(seed), '--seeds', String(SEEDS), '--jobs', '1'], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => { output += chunk.toString(); });
    child.stderr.on('data', (chunk: Buffer) => { output += chunk.toString(); });
    child.on('error', reject);
    child.on('close', () => { resolve({ output }); });
  });
}
