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

interface Patch {
  /** Built file, from the root of the build. */
  readonly file: string;
  readonly old: string;
  readonly new: string;
}

export interface Mutant extends Patch {
  readonly name: string;
  /** Where one rule is kept in several places. */
  readonly also?: readonly Patch[];
  /** Seed from which it is known to be found soon. */
  readonly seed?: number;
}

const SEEDS = 200;
/** The first words of a run's summary. */
const RAN = /\d+ seeds, \d+ failed/;
const SHOWN_MAX = 400;
const BUILD = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'acknowledge after one mirror', file: 'src/gateway/mirror/partition.js',
    old: 'if (members < this.minReplicas ||',
    new: 'least = Math.max(...this.replicas.filter((one) => one.member).map((one) => one.acked));\n        if (members < this.minReplicas ||',
  },
  {
    name: 'reuse a transaction number', file: 'src/gateway/mirror/partition.js',
    old: 'this.lastNumber += 1;',
    new: 'if (this.lastNumber % 40 !== 39 || this.section.rowCount > 0) this.lastNumber += 1;',
  },
  {
    name: 'drop the epoch check', file: 'src/recovery/census.js',
    old: 'row.epoch > newest.epoch',
    new: 'row.epoch < newest.epoch',
    also: [
      { file: 'src/recovery/claim-machine.js', old: 'else if (answer.epoch > this.epoch && ', new: 'else if (answer.epoch < 0 && ' },
      { file: 'src/recovery/claim-machine.js', old: '        if (answer.epoch > this.epoch) {', new: '        if (answer.epoch < 0) {' },
    ],
  },
  {
    name: 'skip fencing', file: 'src/kvs/core/store.js',
    old: 'return mayWrite(attachment.queue, account.id) ? DONE : REFUSAL_FENCED;',
    new: 'return DONE;',
  },
  {
    name: 'claim at one member', file: 'src/recovery/claim-machine.js',
    old: 'this.members = this.members.filter((member) => !this.empty.has(member));',
    new: 'this.members = this.members.filter((member) => !this.empty.has(member)).slice(0, 1);',
  },
  {
    name: 'claim not confirmed', file: 'src/recovery/claim-machine.js',
    old: 'if (this.members.length === 1) {',
    new: 'if (this.members.length >= 1) {',
    also: [{ file: 'src/gateway/mirror/delivery-right.js', old: ' && replica.confirmedTerm === replica.store.leaseTerm', new: '' }],
  },
  {
    name: 'restarted store grants claims at once', file: 'src/kvs/core/store.js',
    old: 'options.startMs + options.leaseMs',
    new: 'options.startMs',
  },
  {
    name: 'lease at a member being dropped counts', file: 'src/gateway/mirror/delivery-right.js',
    old: '(isOpen && !replica.wanted)',
    new: '(isOpen && partition === null)',
  },
  {
    name: 'timeout decided without a poll', file: 'src/gateway/mirror/link/heartbeat-timer.js',
    old: 'if (isSilent && this.#suspect)',
    new: 'if (isSilent)',
    also: [{ file: 'src/gateway/mirror/link/path-pair.js', old: 'const isLate = ', new: 'const isLate = nowMs < 0 && ' }],
  },
  {
    name: '451 before the withdrawal', file: 'src/gateway/mirror/commit-point.js',
    old: 'for (let i = 0; i < numbers.length; i++)\n            pending.queues[i]?.partition.await(numbers[i] ?? 0, withdrawal);',
    new: 'this.withdrawn(pending);',
  },
  {
    name: 'refill appended behind live messages', file: 'src/kvs/core/refill-target.js',
    old: 'this.#entries.link(queue, entry, position, queue.refillRow);',
    new: 'this.#entries.link(queue, entry, position, queue.last);',
  },
  {
    name: 'number reused after a refusal', file: 'src/gateway/mirror/partition.js',
    old: 'withdraw(position) {',
    new: 'withdraw(position) {\n        this.lastNumber -= 1;',
  },
  {
    name: 'DSN released early', file: 'src/gateway/queue/acceptance.js',
    old: 'home.await(position, new StoredReport(queue, row, this.ports));',
    new: 'new StoredReport(queue, row, this.ports).onCommitted();',
  },
  {
    name: 'a sent change of the set turned round', file: 'src/gateway/mirror/replica-set.js',
    old: 'export function reviseSet(partition, ports) {',
    new: `export function reviseSet(partition, ports) {
    if (partition.setChangeNumber !== 0 && !partition.founding && !hasSurvivor(partition)) {
        partition.setChangeNumber = 0;
        partition.epoch += 1;
        for (const one of partition.replicas) one.wanted = one.member;
    }`,
  },
  {
    name: 'two filled at once with none in sync', file: 'src/gateway/mirror/resync.js',
    old: 'if (partition.inSyncCount > 0)\n        return true;',
    new: 'if (partition.inSyncCount >= 0)\n        return true;',
  },
  {
    name: 'port open with too few mirrors', file: 'src/gateway/queue/readiness.js',
    old: 'this.#stuck * 2 <= all',
    new: 'true',
  },
  {
    name: 'port closed for good', file: 'src/gateway/queue/readiness.js',
    old: 'this.#stuck -= 1;',
    new: '{}',
  },
  {
    name: 'deliveries wait for the last block', file: 'src/gateway/core.js', seed: 350,
    old: 'if (queue.readyCount > 0 && queue.routed)',
    new: 'if (queue.readyCount > 0 && queue.routed && !queue.isRecovering)',
  },
  {
    name: 'joiner told before the survivors', file: 'src/gateway/mirror/replica-set.js',
    old: 'return replica.phase === ResyncPhase.JOINING || (',
    new: 'return (',
  },
  {
    name: 'a forced set takes the next number', file: 'src/gateway/mirror/replica-set.js',
    old: 'partition.setEpoch = isAhead ? epochAhead(partition, ports) : partition.epoch + 1;',
    new: 'partition.setEpoch = partition.epoch + 1;',
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

/** Patches that no longer fit the code in one place; they would test nothing. */
export function misfits(): string[] {
  const found: string[] = [];
  for (const mutant of MUTANTS) {
    for (const { file, old } of [mutant, ...(mutant.also ?? [])]) {
      const places = readFileSync(join(BUILD, file), 'utf8').split(old).length - 1;
      if (places !== 1) found.push(`${mutant.name}: its patch fits ${String(places)} places of ${file}, not one`);
    }
  }
  return found;
}

export async function tryMutant(mutant: Mutant): Promise<Verdict> {
  const folder = mkdtempSync(join(tmpdir(), 'mutant-'));
  try {
    copyBuild(folder);
    for (const patch of [mutant, ...(mutant.also ?? [])]) {
      const file = join(folder, patch.file);
      const parts = readFileSync(file, 'utf8').split(patch.old);
      if (parts.length !== 2) return { name: mutant.name, caught: false, text: `its patch fits ${String(parts.length - 1)} places of ${patch.file}, not one` };
      writeFileSync(file, parts.join(patch.new));
    }
    return { name: mutant.name, ...await judge(folder, mutant.seed ?? 1) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The first of SEEDS seeds that fails on the patched copy, and not without the patch. */
async function judge(folder: string, firstSeed: number): Promise<Omit<Verdict, 'name'>> {
  const end = firstSeed + SEEDS;
  for (let seed = firstSeed; seed < end;) {
    const output = await runSeeds(folder, seed, end - seed);
    const found = failureIn(output);
    if (found === undefined && !RAN.test(output)) return { caught: false, text: `the patched copy does not run: ${output.slice(0, SHOWN_MAX)}` };
    if (found === undefined) break;
    if (failureIn(await runSeeds(BUILD, found.seed, 1)) === undefined) return { caught: true, text: `seed ${String(found.seed)}: ${found.text}` };
    seed = found.seed + 1;
  }
  return { caught: false, text: `${String(SEEDS)} seeds found nothing wrong` };
}

function failureIn(output: string): { readonly seed: number; readonly text: string } | undefined {
  const found = /FAILED seed (\d+): ([^\n]*)/.exec(output);
  return found === null ? undefined : { seed: Number(found[1]), text: found[2] ?? '' };
}

/** What the simulator needs of the build, with the packages it imports. */
function copyBuild(folder: string): void {
  for (const part of ['src', join('test', 'scenario'), join('test', 'simulation'), join('test', 'arguments.js')]) {
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

function runSeeds(folder: string, seed: number, seeds: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(folder, 'test', 'simulation', 'main.js'), '--seed', String(seed), '--seeds', String(seeds), '--jobs', '1', '--safety'], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => { output += chunk.toString(); });
    child.stderr.on('data', (chunk: Buffer) => { output += chunk.toString(); });
    child.on('error', reject);
    child.on('close', () => { resolve(output); });
  });
}
