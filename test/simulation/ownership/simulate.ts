/**
 * One seed of the ownership world: faults for a while, each alone or several at once, in any number that
 * leaves one
 * copy; then calm, in which everything answered 250 must be delivered, and doubled, without a person.
 */
import type { PartitionRecord } from '../../../src/protocol/partition-record.js';
import { holderKey, isEnded, isSameTerm, isMemberOf } from '../../../src/protocol/partition-record.js';
import { Prng } from '../../../src/base/prng.js';
import { OutageWatch } from './outage-watch.js';
import { PropertyBroken } from './property-broken.js';
import type { OwnershipFault, OwnershipPlan } from './plan.js';
import { ownershipPlanOf } from './plan.js';
import type { SimProcess } from './sim-process.js';
import type { SimStore } from './sim-store.js';
import type { Gateway } from './world.js';
import { World } from './world.js';

const START_MS = 3000;
const CALM_MS = 45_000;
const PROBE_MS = 15_000;
/** What is nobody's is taken over, delivered, and ends. */
const ENDS_MS = 30_000;
/** When a person would look at what waits for one. */
const PERSON_MS = 20_000;
const STORES_MAX = 8;
/** When one is taken out, there is another for each copy. */
const STORES_LEFT = 3;

export interface OwnershipResult {
  readonly seed: number;
  readonly failure: string;
  readonly traceHash: number;
  readonly accepted: number;
  readonly delivered: number;
  readonly repeated: number;
  readonly rare: ReadonlyMap<string, number>;
  readonly log: readonly string[];
}

export interface SimulateOptions {
  readonly onTrace?: (atMs: number, text: string) => void;
  /** False: without what seeds draw apart (plan.ts). */
  readonly extras?: boolean;
}

export function simulateOwnership(seed: number, options: SimulateOptions = {}): OwnershipResult {
  const plan = ownershipPlanOf(seed, options.extras ?? true);
  const world = new World(plan);
  world.onTrace = options.onTrace;
  const run = new Run(world, plan);
  let failure = '';
  try {
    run.play();
  } catch (error) {
    failure = error instanceof PropertyBroken ? error.message
      : `machine: ${error instanceof Error ? error.stack ?? error.message : String(error)}`;
  }
  const { accepted, delivered, repeated } = world.custody;
  return { seed, failure, traceHash: world.traceHash, accepted, delivered, repeated, rare: world.rare,
    log: world.log };
}

class Run {
  readonly #world: World;
  readonly #plan: OwnershipPlan;
  readonly #random: Prng;
  readonly #healers = new Set<() => void>();
  /** When the last of such faults ends. */
  readonly #lasts = new Map<string, number>();

  constructor(world: World, plan: OwnershipPlan) {
    this.#world = world;
    this.#plan = plan;
    this.#random = new Prng(plan.seed * 31 + 7);
  }

  play(): void {
    const { events } = this.#world;
    new OutageWatch(this.#world);
    if (this.#plan.faults.includes('register-away')) this.#awayAtHandBacks();
    const endMs = START_MS + this.#plan.faultsMs;
    events.at(START_MS, () => { this.#faultLater(endMs); });
    this.#runUntil(endMs);
    this.#calm();
    events.after(PERSON_MS, () => { this.#person(); });
    const calmMs = endMs + CALM_MS + (this.#plan.ids === undefined ? 0 : this.#plan.ids.graceMs + ENDS_MS);
    this.#runUntil(calmMs);
    this.#checkDrained();
    this.#checkIds();
    const probes = this.#probe();
    this.#runUntil(calmMs + PROBE_MS);
    this.#checkProbes(probes);
  }

  #runUntil(endMs: number): void {
    const { events, custody } = this.#world;
    events.at(endMs, () => undefined);
    while (events.nowMs < endMs && events.step()) custody.check();
  }

  // ── faults ──────────────────────────────────────────────────────────────────────────────────────

  #faultLater(endMs: number): void {
    const { events } = this.#world;
    if (events.nowMs >= endMs) return;
    events.after(this.#plan.faultGapMs * (0.3 + 1.4 * this.#random.next()), () => {
      if (events.nowMs < endMs) this.#fault(this.#random.pick(this.#plan.faults));
      this.#faultLater(endMs);
    });
  }

  #fault(kind: OwnershipFault): void {
    const world = this.#world;
    const random = this.#random;
    const process = world.processes.length > 0 ? random.pick(world.processes) : undefined;
    const store = random.pick(world.stores);
    const gateway = random.pick(world.gateways);
    switch (kind) {
      case 'kill-process': if (process !== undefined) this.#kill([process], []); break;
      case 'kill-store': this.#kill([], [store]); break;
      case 'kill-both': if (process !== undefined) this.#kill([process], [store]); break;
      case 'kill-many': this.#kill(world.processes.filter(() => random.below(2) === 0),
        world.stores.filter(() => random.below(2) === 0)); break;
      case 'kill-source': this.#killSource(); break;
      case 'lose-all': if (random.below(4) === 0) this.#loseAll(); break;
      case 'config': this.#configure(store, process); break;
      case 'damaged-file': this.#damagedFile(store); break;
      case 'late-file': this.#lateFile(store); break;
      case 'large-file': this.#largeFile(store); break;
      case 'late-site': if (random.below(3) === 0) this.#lateSite(); break;
      case 'stop-store': this.#stopStore(store); break;
      case 'freeze-process': if (process !== undefined) this.#freeze(process); break;
      case 'freeze-store': this.#freezeStore(store); break;
      case 'cut-link': this.#cut(gateway, [store], [0, 1]); break;
      case 'cut-one-way': this.#cut(gateway, [store], random.below(2) === 0 ? [0] : [1]); break;
      case 'isolate-gateway': this.#cut(gateway, world.stores, [0, 1]); break;
      case 'split': this.#split(); break;
      case 'isolate-store': for (const each of world.gateways) this.#cut(each, [store], [0, 1]); break;
      case 'register-away': this.#registerAway(); break;
      case 'register-late': this.#registerLate(); break;
      case 'register-cut': if (process !== undefined) this.#cutRegister(process); break;
      case 'rollback': this.#rollBack(); break;
      case 'relocate': this.#relocate(store); break;
      case 'start-elsewhere': this.#startElsewhere(gateway); break;
      case 'give-up': if (random.below(3) === 0) this.#giveUp(); break;
      case 'empty': this.#empty(); break;
      case 'hop-down': this.#hopDown(); break;
      case 'moved-back': this.#movedBack(); break;
      case 'appointed-blind': this.#appointedBlind(); break;
      case 'impatient': this.#impatient(); break;
      case 'workers': case 'rename': this.#changeIds(kind); break;
    }
  }

  /** Runs later, or when calm begins. */
  #healIn(delayMs: number, heal: () => void): void {
    const once = (): void => {
      if (!this.#healers.delete(once)) return;
      heal();
    };
    this.#healers.add(once);
    this.#world.events.after(delayMs, once);
  }

  /** Of several faults of one kind at one place the one that lasts longest is healed. */
  #healLast(what: string, delayMs: number, heal: () => void): void {
    const world = this.#world;
    const endMs = world.events.nowMs + delayMs;
    this.#lasts.set(what, Math.max(endMs, this.#lasts.get(what) ?? endMs));
    this.#healIn(delayMs, () => {
      if (world.isCalm || this.#lasts.get(what) === endMs) heal();
    });
  }

  #kill(processes: readonly SimProcess[], stores: readonly SimStore[]): void {
    const world = this.#world;
    const living = stores.filter((store) => store.isUp);
    const names = [...processes.map(({ key }) => key), ...living.map(({ storeId }) => storeId)];
    if (names.length === 0 || !world.mayLose(names)) return;
    world.count(`kill ${String(names.length)}`);
    this.#killNow(processes, living);
  }

  /** The store that a PARTIAL holder reads from, if another copy counts. */
  #killSource(): void {
    const world = this.#world;
    for (const { partition } of world.partitions) {
      for (const part of world.partsOf(partition)) {
        const source = world.stores.find(({ storeId }) => storeId === part.holder.set?.source?.storeId);
        if (source !== undefined) this.#kill([], [source]);
      }
    }
  }

  #killNow(processes: readonly SimProcess[], stores: readonly SimStore[]): void {
    const world = this.#world;
    const random = this.#random;
    for (const process of processes) {
      const gateway = world.gateways.find(({ gatewayId }) => gatewayId === process.self.gatewayId);
      world.killProcess(process);
      if (gateway !== undefined && random.below(5) > 0) this.#healIn(random.below(random.below(3) === 0
        ? 20_000 : 2000), () => { this.#startGateway(gateway); });
    }
    for (const store of stores) {
      world.endStore(store, false);
      if (random.below(5) > 0) this.#healIn(random.below(random.below(3) === 0 ? 20_000 : 2000),
        () => { world.startStore(store); });
    }
  }

  #startGateway(gateway: Gateway): void {
    const world = this.#world;
    if (gateway.processes.length > 0 || !gateway.isConfigured) return;
    // It ends at once, and is started again.
    if (world.ids?.mayStart(gateway) === false) world.events.after(500, () => { this.#startGateway(gateway); });
    else world.startProcess(gateway, true);
  }

  #changeIds(kind: 'workers' | 'rename'): void {
    for (const gateway of this.#world.ids?.change(kind) ?? []) {
      this.#healIn(this.#random.below(this.#random.below(3) === 0 ? 8000 : 1000), () => { this.#startGateway(gateway); });
    }
  }

  #loseAll(): void {
    const world = this.#world;
    world.trace('every copy is lost');
    world.count('all copies lost');
    for (const { partition } of world.partitions) world.custody.lose(partition);
    this.#killNow(world.processes, world.stores.filter((store) => store.isUp));
  }

  #stopStore(store: SimStore): void {
    const world = this.#world;
    if (!store.isUp || store.isFrozen) return;
    world.endStore(store, true);
    this.#healIn(this.#random.below(6000), () => { world.startStore(store); });
  }

  /** Who starts from now on has it: of the rest some are never started again. */
  #configure(store: SimStore, process: SimProcess | undefined): void {
    const world = this.#world;
    const { replicas, minReplicas } = world.options;
    switch (this.#random.below(6)) {
      case 0: world.options = { ...world.options, replicas: replicas === 2 ? 3 : 2 }; break;
      case 1: world.options = { ...world.options, minReplicas: minReplicas === 1 ? 2 : 1 }; break;
      case 2: if (world.stores.length < STORES_MAX) world.addStore(this.#random.next()); return;
      case 3: this.#takeOut(store); return;
      case 4: store.leaseMs = Math.min(this.#plan.leaseMs, this.#random.pick([1200, 2000, 3000])); this.#stopStore(store); return;
    }
    world.count('configured');
    if (process !== undefined) this.#kill([process], []);
  }

  /** Its copies move away, then it is ended for good, once nothing names it any more. */
  #takeOut(store: SimStore): void {
    const world = this.#world;
    this.#relocate(store);
    world.events.after(5000, () => {
      const isNamed = world.partitions.some(({ partition }) => {
        const truth = world.custody.truth(partition);
        return [...truth?.members ?? [], ...truth?.gaveUp ?? []].some(({ storeId }) => storeId === store.storeId);
      });
      if (isNamed || world.isCalm || !store.isUp || store.isFrozen || world.stores.length <= STORES_LEFT
        || !world.stores.includes(store) || !world.mayLose([store.storeId])) return;
      world.count('store taken out');
      world.takeOutStore(store);
    });
  }

  /** The store refuses, and says so, until a person moves the file away: it is empty then. */
  #damagedFile(store: SimStore): void {
    const world = this.#world;
    if (!store.isUp || store.isFrozen || !world.mayLose([store.storeId])) return;
    world.endStoreWithout(store, () => { store.damageFile(); });
    this.#healIn(this.#random.below(2000), () => { world.startStore(store); });
    this.#healIn(2000 + this.#random.below(6000), () => {
      if (store.isUp || store.whyNotStarted() === '') return;
      store.putFileAside();
      world.startStore(store);
    });
  }

  /** It begins as a new boot, empty; then the disk is back, and with it the file of the boot before. */
  #lateFile(store: SimStore): void {
    const world = this.#world;
    if (!store.isUp || store.isFrozen || store.lateBootId !== '' || !world.mayLose([store.storeId])) return;
    world.endStoreWithout(store, () => { store.hideFile(); });
    this.#healIn(this.#random.below(1000), () => { world.startStore(store); });
    this.#healIn(1000 + this.#random.below(9000), () => {
      if (store.isUp && !world.mayLose([store.storeId])) return;
      if (store.isUp) world.endStore(store, false);
      store.findFile();
      world.count('file found late');
      world.startStore(store);
    });
  }

  /**
   * A site is stopped for a while. Its stores start before their disks are there, so that all begins empty; a
   * person sees it, and starts each anew with its disk, when what is new has another copy.
   */
  #lateSite(): void {
    const world = this.#world;
    const { stores } = world;
    if (stores.some((store) => !store.isUp || store.isFrozen || store.lateBootId !== '')
      || world.partitions.some(({ partition }) => !isAllStored(world, partition))) return;
    world.count('site without its disks');
    this.#killNow(world.processes, []);
    for (const store of stores) {
      world.endStoreWithout(store, () => { store.hideFile(); });
      this.#healIn(this.#random.below(1000), () => { world.startStore(store); });
    }
    if (this.#random.below(3) === 0) {
      this.#healIn(6000 + this.#random.below(9000), () => { this.#findAllDisks(); });
    } else {
      for (const store of stores) this.#healIn(6000 + this.#random.below(9000), () => { this.#findDisk(store); });
    }
  }

  /** The site is stopped once more, and all its disks are mounted: what came meanwhile is lost. */
  #findAllDisks(): void {
    const world = this.#world;
    const late = world.stores.filter(({ lateBootId }) => lateBootId !== '');
    for (const { partition } of world.partitions) {
      const gaveUp = world.custody.truth(partition)?.gaveUp ?? [];
      if (late.some(({ storeId, lateBootId }) => isMemberOf(gaveUp, storeId, lateBootId))) world.custody.loseNew(partition);
    }
    this.#killNow(world.processes, []);
    for (const store of late) {
      const { lateBootId } = store;
      if (store.isUp) world.endStore(store, false);
      store.findFile();
      if (store.filedBootId !== lateBootId) world.loseGivenUp(store, lateBootId);
      world.startStore(store);
    }
  }

  #findDisk(store: SimStore): void {
    const world = this.#world;
    const { lateBootId } = store;
    if (!world.stores.includes(store) || lateBootId === '') return;
    const isLast = world.partitions.some(({ partition }) => {
      const copies = world.copiesOf(partition);
      return copies.includes(store.storeId) && copies.length === 1;
    });
    if (store.isFrozen || (store.isUp && isLast)) {
      world.events.after(500, () => { this.#findDisk(store); });
      return;
    }
    if (store.isUp) world.endStore(store, false);
    store.findFile();
    if (store.filedBootId !== lateBootId) world.loseGivenUp(store, lateBootId);
    world.startStore(store);
  }

  /** Nothing of it is lost: it refuses until its limit is as before. */
  #largeFile(store: SimStore): void {
    const world = this.#world;
    if (!store.isUp || store.isFrozen) return;
    world.endStore(store, true);
    store.limit = Math.max(0, store.filedCount - 1);
    this.#healIn(this.#random.below(2000), () => { world.startStore(store); });
    this.#healIn(2000 + this.#random.below(6000), () => {
      store.limit = Infinity;
      world.startStore(store);
    });
  }

  #freeze(process: SimProcess): void {
    if (process.isFrozen) return;
    this.#world.trace(`FREEZE ${process.key}`);
    process.isFrozen = true;
    this.#healIn(this.#random.below(this.#random.below(2) === 0 ? 1500 : 15_000), () => {
      if (!process.isAlive) return;
      this.#world.trace(`THAW ${process.key}`);
      process.thaw();
    });
  }

  #freezeStore(store: SimStore): void {
    if (store.isFrozen || !store.isUp) return;
    this.#freezeStoreFor(store, this.#random.below(8000));
  }

  #freezeStoreFor(store: SimStore, delayMs: number): void {
    this.#world.trace(`FREEZE ${store.storeId}`);
    store.isFrozen = true;
    this.#healLast(`freeze ${store.storeId}`, delayMs, () => {
      this.#world.trace(`THAW ${store.storeId}`);
      store.isFrozen = false;
      this.#world.flushHeld();
    });
  }

  #cut(gateway: Gateway, stores: readonly SimStore[], ways: readonly (0 | 1)[],
    delayMs = this.#random.below(this.#random.below(2) === 0 ? 1500 : 12_000)): void {
    this.#world.trace(`CUT ${gateway.gatewayId} ${stores.map(({ storeId }) => storeId).join(' ')} ${ways.join(' ')}`);
    for (const store of stores) for (const way of ways) this.#world.cut(gateway.gatewayId, store.storeId,
      way);
    this.#healIn(delayMs, () => {
      this.#world.trace(`MEND ${gateway.gatewayId} ${stores.map(({ storeId }) => storeId).join(' ')}`);
      for (const store of stores) this.#world.mend(gateway.gatewayId, store.storeId);
    });
  }

  /** Each store can be reached by one side only; who is cut off from the register besides learns nothing. */
  #split(): void {
    const world = this.#world;
    const [first, ...others] = world.gateways;
    if (first === undefined) return;
    const near = world.stores.filter(() => this.#random.below(2) === 0);
    const far = world.stores.filter((store) => !near.includes(store));
    this.#cut(first, far, [0, 1]);
    for (const other of others) this.#cut(other, near, [0, 1]);
    const holder = world.processes.find(({ self }) => self.gatewayId === first.gatewayId);
    if (holder !== undefined && this.#random.below(2) === 0) this.#cutRegister(holder);
    if (this.#random.below(2) === 0) this.#relocate(this.#random.pick(world.stores));
  }

  /** Also in the middle of a hand-back, which chance rarely meets. */
  #awayAtHandBacks(): void {
    const world = this.#world;
    const random = new Prng(this.#plan.seed * 613 + 11);
    world.onHandBack = () => {
      if (world.isCalm || random.below(3) > 0) return;
      const delayMs = random.below(10_000);
      world.events.after(random.below(400), () => { if (!world.isCalm) this.#registerAway(delayMs); });
    };
  }

  #registerAway(delayMs = this.#random.below(10_000)): void {
    const { register } = this.#world;
    if (register.isAway || register.refusesChanges) return;
    // Now it does not answer at all, now only to changes.
    const what = delayMs % 3 === 0 ? 'refusesChanges' : 'isAway';
    this.#world.trace(`REGISTER ${what}`);
    this.#world.count(what === 'isAway' ? 'register away' : 'register refuses');
    register[what] = true;
    this.#healIn(delayMs, () => {
      this.#world.trace('REGISTER BACK');
      register[what] = false;
    });
  }

  #registerLate(): void {
    const { mood } = this.#world.register;
    this.#world.trace('REGISTER LATE');
    mood.lateShare = 0.6;
    mood.lateMs = this.#random.pick([1000, 5000, 15_000]);
    mood.lostShare = 0.2;
    mood.lostReplyShare = 0.3;
    this.#healIn(this.#random.below(10_000), () => {
      this.#world.trace('REGISTER PROMPT');
      mood.lateShare = 0;
      mood.lostShare = 0;
      mood.lostReplyShare = 0;
    });
  }

  #cutRegister(process: SimProcess, delayMs = this.#random.below(10_000)): void {
    const { register } = this.#world;
    this.#world.trace(`CUT ${process.key} register`);
    register.cutOff.add(process.key);
    this.#healLast(`cut ${process.key}`, delayMs, () => {
      this.#world.trace(`MEND ${process.key} register`);
      register.cutOff.delete(process.key);
    });
  }

  #rollBack(): void {
    const world = this.#world;
    if (this.#random.below(2) === 0) {
      world.register.backUp();
      return;
    }
    this.#restore(this.#random.below(4) === 0);
  }

  #restore(isEmpty: boolean): boolean {
    const world = this.#world;
    // A record that nobody was told of yet can't be known again, and whoever reads a copy that was not told of
    // it may find silent all that were: rule 15 promises nothing for that. Of a record all copies of which were
    // lost nobody can tell, either.
    // Nor can a store whose disk is away.
    if (world.stores.some(({ lateBootId }) => lateBootId !== '')) return false;
    const isTold = world.partitions.every(({ partition }) => {
      const newest = world.custody.newestEpoch(partition);
      return world.stores.every((store) => !store.holds(partition) || store.toldEpoch(partition) >= newest);
    });
    // Nor closes any rule this hole: a deposed holder that does not know it, and the record by which it held.
    const isBlind = world.partitions.some(({ partition }) => world.partsOf(partition).some((part) =>
      part.holder.set !== undefined && !isSameTerm(part.holder.term, world.custody.truth(partition)?.term
        ?? part.holder.term)));
    if (!isTold || isBlind || !world.partitions.every(({ partition }) => this.#isKnownWithout(partition,
      isEmpty))) return false;
    world.trace('REGISTER restored from a backup');
    world.count('register restored');
    world.register.restore(isEmpty);
    for (const { partition } of world.partitions) {
      // What operators decided since the backup is forgotten with it.
      world.custody.queuesReleased(partition);
      if (world.copiesOf(partition).length > 0) continue;
      // Nothing of it is left, and nobody is told of that by a record any more: it may begin as if it were new.
      world.custody.loseNew(partition);
      world.custody.forget(partition);
    }
    return true;
  }

  /**
   * Somebody who is asked knows of the newest record, or the one that is put back names its holder, too. When
   * only that holder's memory is left, and it can be asked by nobody, others begin beside it by a register that
   * names nobody, or another: rule 15 promises nothing for that. Of what has no copy nothing need be known.
   */
  #isKnownWithout(partition: string, isEmpty: boolean): boolean {
    const world = this.#world;
    const truth = world.custody.truth(partition);
    const putBack = world.register.recordPutBack(partition, isEmpty);
    if (truth === undefined || world.copiesOf(partition).length === 0) return true;
    return (putBack !== undefined && isSameTerm(putBack.term, truth.term))
      || world.stores.some((store) => store.toldEpoch(partition) >= truth.epoch);
  }

  #membersOf(partition: string): SimStore[] {
    const members = this.#world.custody.truth(partition)?.members ?? [];
    return this.#world.stores.filter((store) => members.some(({ storeId }) => storeId === store.storeId));
  }

  #holderOf(partition: string): SimProcess | undefined {
    return this.#world.processes.find((process) => process.parts.get(partition)?.isCopy === true);
  }

  /**
   * A partition moves to other stores, those that it left are restarted. Then the register goes back to
   * before
   * that, its holder dies, and the stores that know better are silent for a while (15).
   */
  #movedBack(): void {
    const world = this.#world;
    const { partition } = this.#random.pick(world.partitions);
    const before = this.#membersOf(partition);
    if (before.length * 2 > world.stores.length) return;
    world.register.backUp();
    for (const { storeId } of before) this.#holderOf(partition)?.parts.get(partition)?.holder.relocate(storeId);
    world.events.after(2500, () => {
      const after = this.#membersOf(partition);
      const holder = this.#holderOf(partition);
      if (holder === undefined || before.some((store) => after.includes(store) || !store.isUp)
        || !world.mayLose([holder.key, ...before.map(({ storeId }) => storeId)])) return;
      if (!this.#restore(false)) return;
      world.count('moved back');
      for (const store of before) {
        world.endStore(store, false);
        world.startStore(store);
      }
      for (const store of after) this.#freezeStoreFor(store, 4000);
      world.killProcess(holder);
      const gateway = world.gateways.find(({ gatewayId }) => gatewayId === holder.self.gatewayId);
      if (gateway !== undefined) this.#healIn(300, () => { this.#startGateway(gateway); });
    });
  }

  /**
   * A holder is cut off; its partition is taken over and handed back to it, and it learns only the latter
   * (1).
   */
  #appointedBlind(): void {
    const world = this.#world;
    const { partition, gatewayId } = this.#random.pick(world.partitions);
    const holder = this.#holderOf(partition);
    const gateway = world.gateways.find((each) => each.gatewayId === gatewayId);
    if (gateway === undefined || holder?.self.gatewayId !== gatewayId) return;
    this.#cut(gateway, world.stores, [0, 1], 12_000);
    this.#cutRegister(holder, 6000 + this.#random.below(2000));
    const look = (): void => {
      const { holder: machine } = holder.parts.get(partition) ?? {};
      const truth = world.custody.truth(partition);
      if (!holder.isAlive || machine?.set === undefined || truth === undefined) return;
      const isBack = holderKey(truth.holder) === holder.key && !isSameTerm(machine.term, truth.term);
      if (!isBack) world.events.after(50, look);
      else {
        world.count('appointed blind');
        machine.onNews(holder.now());
      }
    };
    world.events.after(4000, look);
  }

  /** What is given up comes back: all members have their copies, and the register names them. */
  #areMembersWhole(partition: string): boolean {
    const world = this.#world;
    const truth = world.custody.truth(partition);
    return truth !== undefined && world.register.record(partition) === truth
      && truth.members.every(({ storeId, bootId }) => world.stores.some((store) => store.storeId === storeId
        && store.isUp && !store.isFrozen && store.holdsIn(partition, bootId)?.isComplete === true));
  }

  /** Copies are given up at once, while their holder may still use its leases there (9, 16). */
  #impatient(): void {
    const world = this.#world;
    const { partition } = this.#random.pick(world.partitions);
    const holder = this.#holderOf(partition);
    const members = this.#membersOf(partition);
    if (holder === undefined || holder.isFrozen || members.length === 0
      || members.length >= world.stores.length || !this.#areMembersWhole(partition)) return;
    const given = world.custody.truth(partition);
    // One that was deposed, and does not know it, may be there beside it.
    if (given === undefined || holderKey(given.holder) !== holder.key) return;
    // Whoever holds what was given up can't be told by these stores, nor by the register: it is ended, first.
    this.#healIn(8000, () => { this.#endOnceDeposed(partition, holder); });
    for (const store of members) this.#freezeStoreFor(store, 9000);
    this.#cutRegister(holder, 9000);
    // As soon as all others find these stores silent.
    world.events.after(1000, () => {
      if (world.custody.truth(partition) !== given || world.register.record(partition) !== given) return;
      // Of those that are gone there is nothing to give up, but for the memory of a process.
      const areThere = given.members.every(({ storeId, bootId }) => world.stores.some((store) =>
        store.storeId === storeId && store.bootId === bootId));
      if (!areThere) return;
      const part = world.partsOf(partition).find((each) => each.process !== holder && !each.process.isFrozen
        && each.holder.giveUp(members.map(({ storeId }) => storeId), each.process.now()));
      if (part !== undefined) world.count('given up at once');
    });
  }

  /** The change that deposes it may come late, and it may be the last for a moment to have something. */
  #endOnceDeposed(partition: string, holder: SimProcess): void {
    const world = this.#world;
    const truth = world.custody.truth(partition);
    if (!holder.isAlive || truth === undefined) return;
    const isDeposed = holderKey(truth.holder) !== holder.key;
    if (isDeposed) world.custody.notWarned(partition, holder.key);
    if (isDeposed && world.mayLose([holder.key])) world.killProcess(holder);
    else world.events.after(20, () => { this.#endOnceDeposed(partition, holder); });
  }

  #relocate(store: SimStore): void {
    for (const process of this.#world.processes) {
      if (!process.isFrozen) for (const part of process.parts.values()) part.holder.relocate(store.storeId);
    }
  }

  /** The older process may live: frozen, or cut off. */
  #startElsewhere(gateway: Gateway): void {
    if (gateway.processes.length !== 1 || !gateway.isConfigured) return;
    this.#world.startProcess(gateway, false);
    const [older] = gateway.processes;
    if (older !== undefined) this.#healIn(this.#random.below(15_000), () => { if (older.isAlive
      && gateway.processes.length > 1 && this.#world.mayLose([older.key])) this.#world.killProcess(older); });
  }

  /**
   * The holder dies and the members' machines are away for long: a person gives them up, and they come back.
   */
  #giveUp(): void {
    const world = this.#world;
    const { partition } = this.#random.pick(world.partitions);
    const truth = world.custody.truth(partition);
    if (truth === undefined || truth.members.length === 0) return;
    const holders = world.processes.filter((process) => process.parts.get(partition)?.isCopy === true);
    const stores = world.stores.filter((store) => store.isUp
      && truth.members.some(({ storeId }) => storeId === store.storeId));
    if (stores.length >= world.stores.length || holders.some(({ isFrozen }) => isFrozen)) return;
    this.#kill(holders, []);
    for (const store of stores) this.#freezeStoreFor(store, 16_000);
    world.events.after(10_000, () => {
      const now = world.custody.truth(partition);
      // By a register that was put back, while all who know better are silent, other copies would be given up.
      // Nor while the one lives whom it names since: status warns of that.
      if (now === undefined || world.register.record(partition) !== now || !world.isAwaitingPerson(partition)
        || stores.some((store) => !store.isFrozen)
        || world.processes.some(({ key }) => key === holderKey(now.holder))) return;
      const storeIds = stores.map(({ storeId }) => storeId);
      // The order goes to every gateway that asks for it.
      const given = world.partsOf(partition).filter(({ process, holder }) => !process.isFrozen
        && holder.awaitsOrder(storeIds, process.now()) && holder.giveUp(storeIds, process.now()));
      if (given.length > 0) world.count('copies given up');
      if (given.length > 1) world.count('given up at several');
    });
  }

  /**
   * Every member of a partition dies, its holder lives; then the holder loses its session, and a person
   * gives its memory up.
   */
  #empty(): void {
    const world = this.#world;
    const { partition } = this.#random.pick(world.partitions);
    const truth = world.custody.truth(partition);
    if (truth === undefined) return;
    const holder = this.#holderOf(partition);
    if (holder === undefined) return;
    const gateway = world.gateways.find(({ gatewayId }) => gatewayId === holder.self.gatewayId);
    this.#kill([], this.#membersOf(partition));
    for (const store of world.stores) if (!store.isUp) world.events.after(100, () => { world.startStore(store); });
    const isEmpty = (): boolean => world.custody.truth(partition)?.members.length === 0;
    let looks = 0;
    const cut = (): void => {
      looks += 1;
      if (!holder.isAlive || gateway === undefined || looks > 500) return;
      if (!isEmpty()) world.events.after(2, cut);
      else {
        this.#cut(gateway, world.stores, [0, 1], 11_000);
        world.events.after(300, () => { if (holder.isAlive) this.#cutRegister(holder, 9500); });
        world.events.after(3500, () => { this.#mendLate(partition, holder); });
        world.events.after(1000 + this.#random.below(2200), () => { if (isEmpty()) this.#giveMemoryUp(partition, holder); });
      }
    };
    cut();
  }

  /**
   * Who lost its session reaches the register again just when its successor may deliver, or when there is
   * none.
   */
  #mendLate(partition: string, holder: SimProcess): void {
    const world = this.#world;
    if (!world.register.cutOff.has(holder.key)) return;
    const truth = world.custody.truth(partition);
    const mayAnother = world.partsOf(partition).some((part) => part.process !== holder
      && part.holder.mayDeliver(part.process.now()));
    if (mayAnother || truth === undefined || holderKey(truth.holder) === holder.key) {
      world.trace(`MEND ${holder.key} register`);
      world.register.cutOff.delete(holder.key);
    } else world.events.after(20, () => { this.#mendLate(partition, holder); });
  }

  /** A person looks first at the status of the holder, which tells when the register knows less than that. */
  #giveMemoryUp(partition: string, holder: SimProcess): void {
    const world = this.#world;
    if (world.register.record(partition) !== world.custody.truth(partition)) return;
    const part = world.partsOf(partition).find((each) => each.process !== holder && !each.process.isFrozen
      && each.holder.giveUp([], each.process.now()));
    if (part === undefined) return;
    world.custody.orderMemory(partition, part.process.key);
    world.count('memory to be given up');
  }

  #hopDown(): void {
    this.#world.isHopDown = true;
    this.#healIn(this.#random.below(6000), () => { this.#world.isHopDown = false; });
  }

  // ── calm ────────────────────────────────────────────────────────────────────────────────────────

  #calm(): void {
    const world = this.#world;
    world.trace('CALM');
    world.isCalm = true;
    const random = this.#random;
    // A loss is believed only when every store has answered.
    // A register that was rolled back is believed again when every store has answered, or by leases: rule 15
    // needs them all. What was begun empty by an order may be begun anew, and needs the person again.
    const mayStayDead = this.#plan.deadStayDead && !this.#plan.faults.includes('lose-all')
      && !this.#plan.faults.includes('empty') && !this.#plan.faults.includes('moved-back')
      && !this.#plan.faults.includes('rollback') && !world.rare.has('copies given up')
      // Nor is mail on late disks taken in before, where nobody remembers its record.
      && !world.rare.has('site without its disks')
      // Nor does a new id begin before that.
      && (this.#plan.ids === undefined || this.#haveAllBegun());
    for (const heal of [...this.#healers]) heal();
    // Whoever hears the register again is told by its watch what has changed meanwhile.
    for (const process of world.processes) {
      for (const { holder } of process.parts.values()) process.receive(() => { holder.onNews(process.now()); });
    }
    for (const store of world.stores) {
      const living = world.stores.filter((each) => each.isUp).length;
      if (!store.isUp && (store.hasFile || !mayStayDead || living < 2
        || random.below(2) === 0)) world.startStore(store);
    }
    for (const gateway of world.gateways) {
      const isNobodyThere = world.processes.every(({ self }) => !world.gatewayOf(self.gatewayId).isConfigured);
      if (!mayStayDead || isNobodyThere || random.below(2) === 0) this.#startGateway(gateway);
    }
    // Of two lives of one id the older one ends at last, and so does one whose id is in no file any more.
    for (const gateway of world.gateways) {
      for (const process of gateway.isConfigured ? gateway.processes.slice(0, -1) : [...gateway.processes]) if (world.mayLose([process.key])) world.killProcess(process);
    }
  }

  /** Each partition of those that run has a record, with a copy that can be read. */
  #haveAllBegun(): boolean {
    const world = this.#world;
    return world.partitions.filter(({ gatewayId }) => world.gatewayOf(gatewayId).isConfigured).every(({ partition }) => {
      const members = world.custody.truth(partition)?.members ?? [];
      return world.stores.some((store) => store.isUp && isMemberOf(members, store.storeId, store.bootId));
    });
  }

  #person(): void {
    const world = this.#world;
    for (const { partition } of world.partitions) {
      // Nobody proves it dead whose id is in no file any more; who else has its mail, a register that was put back may have forgotten.
      const isForgotten = world.rare.has('site without its disks') || this.#plan.faults.includes('rollback');
      const isUnproven = isForgotten && world.awaitingPerson(partition).some(({ holder: { lastHolder } }) => !world.gatewayOf(lastHolder.gatewayId).isConfigured);
      const mayBeAsked = this.#plan.faults.includes('lose-all') || world.custody.deposedAlone.has(partition) || isUnproven;
      if (!mayBeAsked || !world.isAwaitingPerson(partition)) continue;
      const part = world.partsOf(partition).find((each) =>
        each.holder.giveUp(each.holder.away.stores, each.process.now()));
      world.count('copies given up');
      world.trace(`PERSON gives up ${partition} at ${part?.process.key ?? 'nobody'}`);
      world.custody.lose(partition);
    }
  }

  #checkDrained(): void {
    const world = this.#world;
    for (const { partition } of world.partitions) {
      const due = world.custody.due(partition);
      if (due.length > 0) throw new PropertyBroken(`drains: ${String(due.length)} messages wait; ${world.describe(partition)}`);
      const truth = world.custody.truth(partition);
      if (truth === undefined || isEnded(truth) || this.#isLossAtStake(partition)) continue;
      this.#checkNothingWaits(partition);
      if (!world.isHeld(partition)) throw new PropertyBroken(`drains: nobody holds ${world.describe(partition)}`);
      const living = world.stores.filter((store) => store.isUp).length;
      for (const { storeId, bootId } of truth.members) {
        const store = world.stores.find((each) => each.storeId === storeId);
        if (store?.isUp === true && store.bootId === bootId && store.toldEpoch(partition) < truth.epoch) {
          throw new PropertyBroken(`told: ${storeId} does not know its record: ${world.describe(partition)}`);
        }
      }
      const copies = truth.members.filter(({ storeId, bootId }) => world.stores.some((store) => store.isUp
        && store.storeId === storeId && store.bootId === bootId));
      if (copies.length < Math.min(this.#holderOf(partition)?.options.replicas ?? 1,
        living)) throw new PropertyBroken(`drains: not doubled again: ${world.describe(partition)}`);
    }
  }

  /**
   * Of ids that are in no file any more nothing is left in the end, but where a copy of it may come back, or the file
   * by which somebody runs still names it. Whatever is left is shown, and no store has anything of what is not.
   */
  #checkIds(): void {
    const world = this.#world;
    if (this.#plan.ids === undefined) return;
    for (const { partition, gatewayId } of world.partitions) {
      const truth = world.custody.truth(partition);
      const keepers = world.stores.filter((store) => store.isUp && store.countIn(partition) > 0);
      const [keeper] = keepers;
      if (truth === undefined && keeper !== undefined) throw new PropertyBroken(`orphans: ${keeper.storeId} has messages of ${partition}, which has no record`);
      if (truth === undefined || world.gatewayOf(gatewayId).isConfigured || this.#isLossAtStake(partition)) continue;
      if (isEnded(truth)) {
        this.#checkEndTold(partition, truth);
        continue;
      }
      const isNamed = world.processes.some((process) => process.self.gatewayId === gatewayId || process.holdings?.names(gatewayId) === true);
      if (isNamed || truth.gaveUp.length > 0) continue;
      const isShown = world.processes.some(({ holdings }) => holdings?.orphans.has(partition) === true);
      throw new PropertyBroken(`orphans: ${partition} has not ended, and is ${isShown ? '' : 'not '}shown; ${world.describe(partition)}`);
    }
  }

  /** What has ended goes from the register when every store that is up, or may have a copy, was told. */
  #checkEndTold(partition: string, { members }: PartitionRecord): void {
    const world = this.#world;
    const isUp = (storeId: string): boolean => world.stores.some((store) => store.isUp && store.storeId === storeId);
    if (world.processes.length === 0 || !world.stores.every(({ storeId }) => isUp(storeId)) || !members.every(({ storeId }) => isUp(storeId))) return;
    throw new PropertyBroken(`orphans: ${partition} has ended, every store can be told, and its record stays`);
  }

  /**
   * A record that was made late, by a dead process: its copies are gone, and with no owner a person is asked. Or it has
   * ended meanwhile, as stores say: it comes back, empty, and is shown.
   */
  #isLossAtStake(partition: string): boolean {
    const world = this.#world;
    if (this.#plan.ids === undefined || world.copiesOf(partition).length > 0) return false;
    return world.isAwaitingPerson(partition) || world.processes.some(({ holdings }) => holdings?.orphans.has(partition) === true);
  }

  /** Nor what an order, or its time, was to end: it was ended, or delivered after all. */
  #checkNothingWaits(partition: string): void {
    for (const part of this.#world.partsOf(partition)) {
      if (part.holder.set === undefined || part.entries.size === 0) continue;
      const entries = [...part.entries.values()].map(({ id, state, number, hasBody }) => `${String(id)} ${state} ${String(number)}${hasBody ? "" : " no body"}`).join();
      throw new PropertyBroken(`drains: entries stay: ${entries} (acked ${String(part.holder.set.ackedByAllNumber)}, committed ${String(part.holder.set.committedNumber)}); ${this.#world.describe(partition)}`);
    }
  }

  #probe(): readonly number[] {
    const world = this.#world;
    const probes: number[] = [];
    for (const { partition, gatewayId } of world.partitions) {
      if (!world.gatewayOf(gatewayId).isConfigured) continue;
      const owner = world.processes.find((process) => process.self.gatewayId === gatewayId);
      if (owner === undefined || world.stores.filter((store) => store.isUp).length < owner.options.minReplicas) continue;
      // What has no record, or has ended, begins when every store has said what it knows: one that stays dead is in the way.
      const truth = world.custody.truth(partition);
      if ((truth === undefined || isEnded(truth)) && world.stores.some((store) => !store.isUp)) continue;
      const id = world.offer(partition, gatewayId);
      if (id === undefined) probes.push(-1);
      else probes.push(id);
    }
    return probes;
  }

  #checkProbes(probes: readonly number[]): void {
    const { custody } = this.#world;
    const all = this.#world.partitions.map(({ partition }) => this.#world.describe(partition)).join(' | ');
    for (const id of probes) {
      if (id < 0) throw new PropertyBroken(`drains: new mail is not taken after faults have stopped; ${all}`);
      const letter = custody.letters.get(id);
      if (letter !== undefined && (letter.isRefused || (letter.said250 > 0 && letter.dots > 0))) continue;
      throw new PropertyBroken(`drains: new mail ${String(id)} is not delivered after faults have stopped; ${all}`);
    }
  }
}

/**
 * Every member of the newest record is up, in the boot that counts: what is answered 250 is in all of them. And the
 * register has that record: without disks no store can tell what it was told.
 */
function isAllStored(world: World, partition: string): boolean {
  const truth = world.custody.truth(partition);
  return truth !== undefined && truth.members.length > 0 && truth.gaveUp.length === 0
    && (world.register.record(partition)?.epoch ?? 0) >= truth.epoch
    && truth.members.every(({ storeId, bootId }) =>
      world.stores.find((store) => store.storeId === storeId)?.holdsIn(partition, bootId)?.isComplete === true);
}
