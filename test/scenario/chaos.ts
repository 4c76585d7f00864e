/**
 * One random run of the scenario world: mail, defers, rejects and faults drawn from the seed, then everything
 * is healed, and the guarantees are judged. Faults stay within what docs/GUARANTEES.md promises to survive: one of
 * {gateway, in-sync mirrors} of every queue is always left.
 *
 *   for DRAWS draws: submit a few │ fault or repair │ let some time pass      then: repair all, until quiet, judge
 */
import assert from 'node:assert/strict';
import type { Prng } from '../../src/base/prng.js';
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import { doById } from './by-id.js';
import { checkAll } from './checks.js';
import { coreOf, memberIds, stateOf } from './inspect.js';
import type { Answer } from './next-hop.js';
import type { StoreNode } from './store-node.js';
import { World } from './world.js';

export interface ChaosOptions {
  readonly draws: number;
  /** False: nothing is killed, cut, held or unanswered; then nothing may arrive twice. */
  readonly faults: boolean;
}

export interface ChaosResult {
  readonly traceHash: number;
  readonly accepted: number;
  readonly world: World;
}

const QUEUES = [{ name: 'q1' }, { name: 'q2', concurrency: 1 }, { name: 'q3', ordering: 'strict' as const }, { name: 'q4', concurrency: 8 }];

class Chaos {
  readonly world: World;
  private readonly prng: Prng;
  private readonly options: ChaosOptions;
  /** A store's memory was lost while the gateway did not hold everything itself. */
  private lostDuringRecovery = false;
  private bothInSyncAtKill = false;
  /** A partition was waited for so long that new mail was served beside it: no order between the two then (G3). */
  wasHeld = false;

  constructor(seed: number, options: ChaosOptions) {
    this.options = options;
    this.world = World.started({ seed, queues: QUEUES, blockEntries: 1 + (seed % 5) * 3, commitTimeoutMs: 1500, minReplicas: seed % 7 === 0 ? 2 : 1, windowBytes: seed % 3 === 0 ? 20_000 : 1024 * 1024 });
    this.prng = this.world.prng.fork();
    const answers = this.prng.fork();
    this.world.hops.script = ({ queueName }) => this.answer(answers, queueName === 'senders');
  }

  run(): void {
    for (let i = 0; i < this.options.draws; i++) {
      this.mail();
      if (this.options.faults) this.fault();
      this.world.run(this.prng.below(8) === 0 ? this.prng.below(3000) : this.prng.below(120));
      this.wasHeld ||= this.world.gateway.core?.holdings.expected() === 'held';
    }
    this.repairAll();
    this.world.hops.script = () => 'accept';
    this.releaseHeld();
    this.world.untilQuiet();
  }

  /** What was in hand at two kills is held alone: the operator lets it go on. */
  private releaseHeld(): void {
    const { world } = this;
    world.until(() => world.isWhole);
    // Reports that were under way are begun, or held, at the next ticks.
    world.run(100);
    const core = coreOf(world);
    for (const letter of world.letters.all) {
      const isHeld = [...letter.groups.keys()].some((name) => stateOf(core, name, letter) === EntryState.HELD);
      if (isHeld) doById(core, 'release', letter.id);
    }
  }

  /** Reports are never refused: one that comes back has nobody to be reported to. */
  private answer(prng: Prng, isReport: boolean): Answer {
    const draw = prng.below(100);
    if (isReport && draw >= 88 && draw < 94) return 'defer';
    if (draw < 80) return 'accept';
    if (draw < 88) return 'defer';
    if (draw < 94) return 'reject';
    if (draw < 97) return 'unreachable';
    return this.options.faults ? 'unanswered' : 'accept';
  }

  private mail(): void {
    const { world, prng } = this;
    if (world.gateway.core === undefined) return;
    for (let i = prng.below(6); i > 0; i--) {
      const first = prng.pick(world.queueNames);
      const names = prng.below(4) === 0 ? [...new Set([first, prng.pick(world.queueNames), prng.pick(world.queueNames)])] : [first];
      const reversePath = prng.below(6) === 0 ? '' : 'alice@senders.example';
      world.submit(names, { bytes: 1 + prng.below(prng.below(10) === 0 ? 20_000 : 600), reversePath, recipients: 1 + prng.below(3), notify: prng.pick([0, 0, 0, 1, 2, 4, 6]) });
    }
  }

  private fault(): void {
    const { world, prng } = this;
    const store = prng.pick(world.stores);
    switch (prng.below(16)) {
      case 0: if (this.mayLoseStore(store)) this.killStore(store); break;
      case 1: case 2: if (!store.isAlive) store.start(); break;
      case 3: if (this.mayKillGateway()) this.killGateway(); break;
      case 4: case 5: if (!world.gateway.isAlive) this.startGateway(); break;
      case 6: world.cut(store); break;
      case 7: case 8: world.heal(store); break;
      case 9: world.holdAnswers(store, true); break;
      case 10: world.holdAnswers(store, false); break;
      case 11: world.holdRequests(store, prng.below(2) === 0); break;
      case 12: world.slow(store, prng.pick([0, 5, 50])); break;
      default: break;
    }
  }

  /** The gateway holds all itself, or the other store alone does. */
  private mayLoseStore(store: StoreNode): boolean {
    if (!store.isAlive) return false;
    if (this.isWhole) return true;
    return this.bothInSyncAtKill && !this.lostDuringRecovery && this.world.stores.every((other) => other.isAlive);
  }

  /** All is in its memory, and it can prove that nobody else has it. */
  private get isWhole(): boolean {
    return this.world.isWhole && this.world.gateway.core?.holdings.waiting().length === 0;
  }

  private mayKillGateway(): boolean {
    const { gateway } = this.world;
    if (!gateway.isAlive) return false;
    if (!this.isWhole && this.lostDuringRecovery) return false;
    return gateway.core?.registry.partitions.every((partition) => partition.set?.records.isSettled === true && this.copies(partition) > 0) === true;
  }

  /** Living members of the record, in their recorded boot, with all that counts as committed. */
  private copies(partition: Partition): number {
    const record = this.world.register.recordOf(partition.name);
    let count = 0;
    for (const { storeId, bootId } of record?.members ?? []) {
      const node = this.world.stores.find(({ id }) => id === storeId);
      const copy = node?.bootId === bootId ? node.store?.partitions.find(partition.name) : undefined;
      if (copy?.isComplete === true && copy.number >= partition.ackedNumber) count += 1;
    }
    return count;
  }

  private killStore(store: StoreNode): void {
    if (!this.isWhole) this.lostDuringRecovery = true;
    this.world.scheduler.trace(`kill ${store.id}`);
    store.kill();
  }

  private killGateway(): void {
    const { world } = this;
    const core = world.gateway.core;
    if (this.isWhole) this.lostDuringRecovery = false;
    this.bothInSyncAtKill = this.isWhole && core?.registry.partitions.every((partition) => this.copies(partition) === 2) === true;
    const kept = new Set<number>();
    for (const store of world.stores) if (store.store !== undefined) for (const id of memberIds(store.store)) kept.add(id);
    for (const letter of world.letters.all) if (kept.has(letter.id)) letter.mayRepeat = true;
    world.scheduler.trace('kill gateway');
    world.gateway.kill();
  }

  private startGateway(): void {
    this.world.gateway.start();
  }

  private repairAll(): void {
    for (const store of this.world.stores) {
      if (!store.isAlive) store.start();
      this.world.heal(store);
      this.world.holdAnswers(store, false);
      this.world.holdRequests(store, false);
      this.world.slow(store, 0);
    }
    if (!this.world.gateway.isAlive) this.startGateway();
  }
}

/** Runs a seed and judges it. */
export function runChaos(seed: number, options: ChaosOptions): ChaosResult {
  const chaos = new Chaos(seed, options);
  const { world } = chaos;
  try {
    chaos.run();
    const isBeside = chaos.wasHeld || world.log.count('mail of this partition is held') > 0 || world.queueNames.some((name) => (world.gateway.core?.registry.byName(name).length ?? 0) > 1);
    checkAll(world.letters, isBeside ? [] : world.queueNames);
    world.assertSameContent();
    if (!options.faults) assert.equal(world.log.count('IN_STEP -> NG'), 0);
  } catch (error) {
    const what = error instanceof Error ? error.stack ?? error.message : String(error);
    throw new Error(`seed ${String(seed)}: ${what}\nlast of the log:\n${world.lastLog(40)}`);
  }
  return { traceHash: world.scheduler.traceHash, accepted: world.letters.all.length, world };
}
