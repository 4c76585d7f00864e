/**
 * Mutants: known mistakes, each a textual patch on the built JavaScript. The simulator runs on a patched copy of
 * the build and must find a broken guarantee within SEEDS seeds; else its checkers do not check. What needs more luck
 * than that names a test, which must fail without the rule. A patch that does not fit its file any more fails too: the
 * mutant is then to be written anew. Most rules of ownership are removed in the smaller world of ownership/mutants.ts,
 * which meets what they need in fewer seeds.
 *
 * To add one: name, built file below src/, the exact text there, what stands in its place.
 */
import { spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { BUILD, judgeByTest, packagesFolder, patch, type Patch } from './patched-build.js';

export interface Mutant extends Patch {
  readonly name: string;
  /** Where one rule is kept in several places. */
  readonly also?: readonly Patch[];
  /** Seed from which it is known to be found soon. */
  readonly seed?: number;
  /** Where SEEDS seeds do not meet what it needs: a test that fails without the rule, and is run instead. */
  readonly heldBy?: string;
}

const SEEDS = 200;
/** The first words of a run's summary. */
const RAN = /\d+ seeds, \d+ failed/;
const SHOWN_MAX = 400;

const SET = 'src/recovery/ownership/partition-set.js';
const HOLDER = 'src/recovery/ownership/holder.js';
const LEASE = 'src/recovery/ownership/link-lease.js';
const ADOPTIONS = 'src/gateway/recovered/adoptions.js';
const HOLDINGS = 'src/gateway/ownership/holdings.js';
const READINGS = 'src/recovery/readings.js';

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'rule 3: acknowledged by one member', file: SET,
    old: 'if (row !== undefined && row.acked < least)',
    new: 'if (row !== undefined && (least === Infinity || row.acked > least))',
  },
  {
    name: 'rule 4: joins before it has everything', file: SET,
    old: 'return row.acked >= this.#ackedByAll;',
    new: 'return true;',
    also: [{ file: SET, old: 'if (!row.isInStep || row.isGone || row.isUnwanted || !row.isLeased(nowMs))\n            return false;\n        if (this', new: 'if (row.isGone || row.isUnwanted || row.state < 2)\n            return false;\n        if (this' }],
  },
  {
    name: 'rule 6: a lease is renewed whatever was fenced', file: LEASE,
    old: 'if (fenceCount <= this.#fencesProcessed) {',
    new: 'if (fenceCount >= 0) {',
    also: [{ file: HOLDER, old: 'if (record === undefined || term.number <= record.term.number)\n            return;', new: 'if (record !== null)\n            return;' }],
  },
  {
    name: 'rule 10: a store takes what lower terms send', file: 'src/kvs/core/store.js',
    old: 'return attachment.copy.fence.admits(attachment.term) ? DONE : REFUSAL_FENCED;',
    new: 'return DONE;',
  },
  {
    name: 'rule 12: a partition that was lost is kept', file: 'src/gateway/mirror/set/partition.js',
    old: 'return !this.isForgotten && this.holder.mayDeliver(nowMs);',
    new: 'return this.holder.mayDeliver(nowMs);',
    also: [{ file: HOLDER, old: '    #lose(nowMs, why) {\n', new: '    #lose(nowMs, why) {\n        if (this.#set !== undefined) return;\n' }],
  },
  {
    name: 'reuse a transaction number', file: 'src/gateway/mirror/set/partition.js',
    old: 'this.lastNumber += 1;',
    new: 'if (this.lastNumber % 40 !== 39 || this.section.rowCount > 0) this.lastNumber += 1;',
  },
  {
    name: 'timeout decided without a poll', file: 'src/gateway/mirror/link/heartbeat-timer.js',
    old: 'if (isSilent && this.#suspect)',
    new: 'if (isSilent)',
    also: [{ file: 'src/gateway/mirror/link/path-pair.js', old: 'const isLate = ', new: 'const isLate = nowMs < 0 && ' }],
  },
  {
    name: '451 before the withdrawal', file: 'src/gateway/mirror/commit-point.js',
    old: 'for (let i = 0; i < numbers.length; i++) {\n            pending.queues[i]?.partition.awaitEnd(numbers[i] ?? 0, withdrawal);\n        }',
    new: 'this.withdrawn(pending);',
  },
  {
    name: 'refill appended behind live messages', file: 'src/kvs/core/refill-target.js', seed: 420,
    old: 'this.#entries.link(copy, entry, position, copy.refillRow);',
    new: 'this.#entries.link(copy, entry, position, copy.last);',
  },
  {
    name: 'number reused after a refusal', file: 'src/gateway/mirror/set/partition.js',
    old: 'withdraw(position) {',
    new: 'withdraw(position) {\n        this.lastNumber -= 1;',
  },
  {
    name: 'DSN released early', file: 'src/gateway/queue/acceptance.js',
    old: 'home.awaitEnd(position, new StoredReport(queue, row, this.#ports));',
    new: 'new StoredReport(queue, row, this.#ports).onCommitted();',
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
    name: 'deliveries wait for the last block', file: 'src/gateway/daemon/core.js',
    old: 'queue.readyCount > 0 && queue.routed && !queue.isSuspended',
    new: 'queue.readyCount > 0 && queue.routed && !queue.isSuspended && !queue.isRecovering',
    heldBy: 'test/scenario/recovery.test.ts',
  },
  {
    name: 'bodies: an answer to an old question is taken', file: READINGS,
    old: 'reading.fetch?.ask !== fetched.ask',
    new: 'reading.fetch === undefined',
    heldBy: 'test/unit/recovery/readings.test.ts',
  },
  {
    name: 'bodies: what a lost source was asked for is not asked for again', file: READINGS,
    old: 'reading.fetch = undefined;\n        this.#ports.askAgain(reading.handle);',
    new: 'reading.fetch = undefined;',
  },
  {
    name: 'bodies: whole before the last body is here', file: READINGS,
    old: '!reading.isIndexed || this.#ports.absentCount(reading.handle) > 0',
    new: '!reading.isIndexed',
  },
  {
    name: 'bodies: delivered without it', file: 'src/gateway/queue/handing-out.js',
    old: '!this.#ports.bodies.isHere(queue, next)',
    new: '(!this.#ports.bodies.isHere(queue, next) && next < 0)',
  },
  {
    name: 'bodies: dropped before the attempt has ended', file: 'src/gateway/queue/handing-out.js',
    old: 'const envelope = settlement.envelopeOf(row);',
    new: 'const envelope = settlement.envelopeOf(row);\n            if (queue.partition.isPartial && entries.absent.isAtStores(queue.partition, row))\n                entries.dropBody(queue, row);',
  },
  {
    name: 'rule 3: what a boot acknowledged that is over makes a commit', file: SET,
    old: 'if (row.isPossible)\n                this.#hasGone = true;',
    new: '',
    also: [{ file: SET, old: 'this.#hasGone = this.#counted.some((row) => row.isGone);', new: '' }],
    seed: 220_000_001,
  },
  {
    name: 'rule 16: adopted while older leases run', file: ADOPTIONS,
    old: 'if (answer.olderLeaseMs > 0) {',
    new: 'if (answer.olderLeaseMs < 0) {',
    heldBy: 'test/scenario/adopted.test.ts',
  },
  {
    name: 'rule 16: an adoption is over before all that was taken in is doubled', file: ADOPTIONS,
    old: 'if (ackedNumber < (this.#takenIn.get(mailOf(copy))?.number ?? 0))', new: 'if (ackedNumber < 0)',
    heldBy: 'test/scenario/adopted.test.ts',
  },
  {
    name: 'rule 16: an adopted copy is emptied before its mail is doubled', file: ADOPTIONS,
    old: 'if (partition.ackedNumber >= partition.lastNumber)',
    new: 'if (partition.ackedNumber >= 0)',
  },
  {
    name: 'rebalance: a copy leaves before another is in step', file: SET,
    old: 'stay.length < this.#leastStaying(nowMs)',
    new: 'stay.length < Math.min(1, this.#leastStaying(nowMs))',
  },
  {
    name: 'orphans: those of a retired gateway are not shown', file: 'src/gateway/ownership/orphans.js',
    old: 'if (this.#ports.register.retired().has(owner))\n            return known;',
    new: '',
  },
  {
    name: 'orphans: a partition ends with mail in it', file: HOLDINGS,
    old: 'isClosed && isEmpty && holder.mayEnd',
    new: 'isClosed && holder.mayEnd',
  },
  {
    name: 'orphans: a record is deleted before stores have dropped their copies', file: 'src/gateway/ownership/ended-partitions.js',
    old: 'const isOpen = this.#untold(partition, ending).length > 0;', new: 'const isOpen = false;',
    heldBy: 'test/scenario/orphans.test.ts',
  },
  {
    name: 'orphans: who begins anew forgets whom the end was not told', file: HOLDER,
    old: 'const left = ended?.members ?? NO_MEMBERS;', new: 'const left = NO_MEMBERS;',
    heldBy: 'test/scenario/orphans.test.ts',
  },
  {
    name: 'orphans: a change of the record forgets who left', file: HOLDER,
    old: 'const left = set.strays(members, this.#outside.adopted)\n', new: 'const left = NO_MEMBERS\n',
    heldBy: 'test/scenario/orphans.test.ts',
  },
  {
    name: 'memory: deliveries are taken without room for what becomes of them', file: 'src/gateway/queue/delivery-room.js',
    old: 'return true;\n        this.#waiting.add(queue);', new: 'return true;\n        return true;',
    heldBy: 'test/unit/gateway/queue/delivery-room.test.ts',
  },
  {
    name: 'rule 13: handed back with dots unanswered', file: HOLDER,
    old: '&& this.#isQuiet && !this.#isUnknown',
    new: '&& !this.#isUnknown',
  },
  {
    name: 'rule 13: kept after all, and never delivered from again', file: HOLDER,
    old: 'this.#ports.memory.resume();',
    new: '',
    heldBy: 'test/scenario/hand-back.test.ts',
  },
  {
    name: 'memory: kept changes stay while what ends mail needs the room', file: 'src/gateway/mirror/feed/change-ring.js',
    old: 'Math.min(this.#bytesMax, this.#ports.roomBytes())', new: 'this.#bytesMax',
    heldBy: 'test/unit/gateway/mirror/feed/change-ring.test.ts',
  },
  {
    name: 'memory: a head goes before every copy has what became of it', file: 'src/gateway/queue/due-bodies.js',
    old: 'if (one.partition.ackedNumber < one.number && one.partition.isPartial)', new: 'if (false)',
    heldBy: 'test/unit/gateway/queue/due-bodies.test.ts',
  },
  {
    name: 'orphans: what has ended without a store counts as never known', file: 'src/gateway/ownership/register-bridge.js',
    old: 'if (ended === undefined)', new: 'if (true)', heldBy: 'test/unit/gateway/ownership/register-bridge.test.ts',
  },
  {
    name: 'orphans: what a store outside the record is told gets lost', file: 'src/gateway/ownership/holding.js',
    old: 'known.isTold || nowMs - known.sentMs < CLEAR_AGAIN_MS', new: 'true', heldBy: 'test/scenario/strays.test.ts',
  },
  {
    name: 'rule 13: who hands back does not wait until the members are heard', file: 'src/recovery/ownership/holder.js',
    old: 'if (isQuiet && this.#areAllHeard(set))', new: 'if (isQuiet && set.isLevel)', heldBy: 'test/scenario/hand-back.test.ts',
  },
  {
    name: 'rule 14: a copy that lacks changes of the source is emptied while that is away', file: 'src/recovery/ownership/partition-set.js',
    old: 'return isSourceAway && row.isWholeOther', new: 'return false && row.isWholeOther', heldBy: 'test/scenario/rest-in-file.test.ts',
  },
  {
    name: 'rule 16: with the copy that was read goes one that had left', file: 'src/recovery/ownership/holder.js',
    old: 'const spared = this.#spared(record);', new: 'const spared = NO_MEMBERS;', heldBy: 'test/scenario/rest-in-file.test.ts',
  },
  {
    name: 'rule 10: who goes on from a file waits for no lease', file: 'src/kvs/daemon/store-daemon.js',
    old: 'inheritedLeaseMs: head?.longestLeaseMs ?? 0', new: 'inheritedLeaseMs: 0', heldBy: 'test/process/store-stop.test.ts',
  },
  {
    name: 'rule 11: a member is aligned by its number only', file: 'src/gateway/ownership/holding.js',
    old: '&& this.#ports.mirrors.stands(partition, at.number, at.digestA, at.digestB)', new: '', heldBy: 'test/scenario/rest-in-file.test.ts',
  },
  {
    name: 'rule 12: 451 when the partition is lost', file: 'src/gateway/mirror/commit-point.js',
    old: 'this.#owner.withdraw(queue, row);\n                }\n                this.#owner.settled(pending, NO_REPLY);',
    new: 'this.#owner.withdraw(queue, row);\n                }\n                this.#owner.settled(pending, 2);', heldBy: 'test/scenario/frozen-owner.test.ts',
  },
  {
    name: 'rule 15: records are not told', file: 'src/gateway/ownership/holding.js',
    old: 'store.request(TELL, encodeTell(packer, { partition: this.name, record, isOut }), [], 0);', new: '', heldBy: 'test/scenario/learned-store.test.ts',
  },
  {
    name: 'rule 15: copies of a record that an emptied register had forgotten are dropped', file: 'src/kvs/core/store.js',
    old: 'if (!isGivenUp && lastTerm', new: 'if (lastTerm', heldBy: 'test/scenario/learned-store.test.ts',
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
    const { caught, name, text } = await tryMutant(mutant);
    say(`${caught ? 'caught' : 'NOT CAUGHT'}  ${name}: ${text}`);
    if (!caught) all = false;
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
  const patches = [mutant, ...(mutant.also ?? [])];
  if (mutant.heldBy !== undefined) return { name: mutant.name, ...judgeByTest(patches, mutant.heldBy) };
  const folder = mkdtempSync(join(tmpdir(), 'mutant-'));
  try {
    copyBuild(folder);
    const misfit = patch(folder, patches);
    if (misfit !== '') return { name: mutant.name, caught: false, text: misfit };
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
  for (const part of ['src', ...['scenario', 'simulation', 'inbound', 'dialog', 'arguments.js', 'default-options.js'].map((each) => join('test', each))]) {
    mkdirSync(join(folder, dirname(part)), { recursive: true });
    cpSync(join(BUILD, part), join(folder, part), { recursive: true, filter: (name) => !name.endsWith('.map') });
  }
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
  symlinkSync(packagesFolder(), join(folder, 'node_modules'));
}

function runSeeds(folder: string, seed: number, seeds: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(folder, 'test', 'simulation', 'main.js'), '--seed', String(seed), '--seeds', String(seeds), '--jobs', '1'], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => { output += chunk.toString(); });
    child.stderr.on('data', (chunk: Buffer) => { output += chunk.toString(); });
    child.on('error', reject);
    child.on('close', () => { resolve(output); });
  });
}
