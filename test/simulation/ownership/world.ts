/**
 * The ownership world: gateways in their successive lives, stores, one register, and everything between
 * them, under
 * one seed and one virtual clock. Machines of production decide; what is faked is bytes, bodies and sockets.
 * After every step the properties of docs/model are checked (custody.ts).
 */
import { Prng } from '../../../src/base/prng.js';
import type { HolderId, PartitionRecord, Term } from '../../../src/protocol/partition-record.js';
import { holderKey, isEnded, isMemberOf, isSameTerm } from '../../../src/protocol/partition-record.js';
import { HOLDER_STATE_NAMES, HolderState } from '../../../src/recovery/ownership/holder.js';
import { AwayCause, Waiting } from '../../../src/recovery/ownership/waiting.js';
import { Custody } from './custody.js';
import { Events } from './events.js';
import { GatewayIds } from './gateway-ids.js';
import type { OwnershipPlan } from './plan.js';
import type { Conn, Part } from './sim-process.js';
import { MailOrders } from './mail-orders.js';
import { SimHoldings } from './sim-holdings.js';
import { SimProcess } from './sim-process.js';
import { SimRegister } from './sim-register.js';
import { SimStore } from './sim-store.js';

const OPTIONS = {
  dropAfterMs: 300,
  replaceAfterMs: 4000,
  tellAgainMs: 500,
  retryMs: 200,
  changeTimeoutMs: 700,
  awayAfterMs: 3000,
  lookAgainMs: 1500,
  foundWaitMs: 1000,
} as const;
const TO_STORE = 0;
const TO_PROCESS = 1;

interface Held {
  readonly conn: Conn;
  readonly way: 0 | 1;
  readonly run: () => void;
}

/** A machine with the lives of one gateway. */
export interface Gateway {
  readonly gatewayId: string;
  incarnation: number;
  /** False: its id stands in no file any more. */
  isConfigured: boolean;
  /** All that live; more than one while an older one is frozen elsewhere. */
  processes: SimProcess[];
}

export class World {
  readonly plan: OwnershipPlan;
  readonly random: Prng;
  readonly events = new Events();
  readonly register: SimRegister;
  readonly custody: Custody;
  readonly stores: SimStore[] = [];
  readonly gateways: Gateway[] = [];
  /** All that there have ever been. */
  readonly partitions: { readonly partition: string; readonly gatewayId: string }[] = [];
  readonly ids: GatewayIds | undefined;
  /** As configured now: each process has what stood there when it started. */
  options;
  readonly ringLength: number;
  readonly rare = new Map<string, number>();
  readMs = 200;
  fillMs = 300;
  hopMs = 60;
  isHopDown = false;
  isCalm = false;
  traceHash = 0;
  readonly log: string[] = [];
  onTrace: ((atMs: number, text: string) => void) | undefined;
  onHandBack: () => void = () => undefined;
  readonly #cuts = new Set<string>();
  readonly #held: Held[] = [];
  readonly #conns = new Map<string, Conn>();
  #connCount = 0;
  readonly #connOrder = new WeakMap<Conn, number>();
  #nextId = 1;
  #isLoaded = false;
  /** Asked after every step. */
  #processes: readonly SimProcess[] = [];
  #storeCount = 0;

  constructor(plan: OwnershipPlan) {
    this.plan = plan;
    this.random = new Prng(plan.seed);
    this.custody = new Custody(this);
    this.register = new SimRegister(this.events, this.random.fork());
    this.register.onChanged = (partition, record) => {
      this.custody.onRecord(partition, record);
      const members = record.members.map(({ storeId, bootId }) => `${storeId}/${bootId}`).join(' ');
      this.trace(`REGISTER ${partition} epoch ${String(record.epoch)} term ${String(record.term.number)} ${holderKey(record.holder)} {${members}}`);
      if (record.members.length === 0) this.count('M = {}');
      this.#watch(partition);
    };
    this.register.onDeleted = (partition) => {
      this.trace(`REGISTER ${partition} is gone`);
      this.count('ended, and told everywhere');
      this.custody.onDeleted(partition);
    };
    this.ringLength = plan.ringLength;
    this.readMs = plan.readMs;
    this.options = { ...OPTIONS, replicas: plan.replicas, minReplicas: plan.minReplicas,
      longestLeaseMs: plan.leaseMs * 1.05 + 200 };
    for (let i = 1; i <= plan.stores; i++) this.addStore(this.random.next());
    for (let i = 1; i <= plan.gateways; i++) {
      const gatewayId = `g${String(i)}`;
      if (i <= plan.owners && plan.ids !== undefined) continue;
      this.gatewayOf(gatewayId);
      if (i <= plan.owners) this.addPartitions(gatewayId);
    }
    if (plan.ids !== undefined) this.ids = new GatewayIds(this, plan.ids);
    for (const gateway of this.gateways) this.startProcess(gateway, true);
    for (const { partition, gatewayId } of this.partitions) this.#loadOf(partition, gatewayId);
    this.#isLoaded = true;
    if (plan.ids === undefined) this.#handBacks();
    if (plan.hasOrders) new MailOrders(this);
  }

  /** News of the register reach who can, sometimes. */
  #watch(partition: string): void {
    for (const process of this.processes) {
      if (this.register.cutOff.has(process.key) || this.random.below(3) > 0) continue;
      this.events.after(1 + this.random.below(100), () => {
        process.receive(() => { process.parts.get(partition)?.holder.onNews(process.now()); });
      });
    }
  }

  /** All that live. */
  get processes(): readonly SimProcess[] {
    return this.#processes;
  }

  /** With what became of its id before. */
  gatewayOf(gatewayId: string): Gateway {
    let gateway = this.gateways.find((each) => each.gatewayId === gatewayId);
    if (gateway === undefined) {
      gateway = { gatewayId, incarnation: 0, isConfigured: true, processes: [] };
      this.gateways.push(gateway);
    }
    return gateway;
  }

  addPartitions(gatewayId: string): void {
    for (let p = 0; p < this.plan.partitionsEach; p++) {
      const partition = `${gatewayId}/${String(p)}`;
      if (this.partitions.some((each) => each.partition === partition)) continue;
      this.partitions.push({ partition, gatewayId });
      if (this.#isLoaded) this.#loadOf(partition, gatewayId);
    }
  }

  /** Its partitions take mail. */
  isOwner(gatewayId: string): boolean {
    return this.partitions.some((each) => each.gatewayId === gatewayId);
  }

  /** Among those that may live: ids that were changed stand in nobody's way. */
  rankOf(gatewayId: string): number {
    if (this.plan.takeNoTurns) return 1;
    const others = this.gateways.filter((gateway) => gateway.isConfigured || gateway.gatewayId === gatewayId);
    return others.findIndex((gateway) => gateway.gatewayId === gatewayId) + 1;
  }

  trace(text: string): void {
    for (let i = 0; i < text.length; i++) this.traceHash = (Math.imul(this.traceHash,
      31) + text.charCodeAt(i)) | 0;
    if (text.includes('outcome unknown')) this.count('change unknown');
    if (text.includes('rolled back')) this.count('rollback');
    if (text.includes('source died')) this.count('PARTIAL source died');
    if (text.includes('reads on')) this.count('PARTIAL reads on');
    if (text.includes('HANDING_BACK -> IDLE')) this.count('handed back');
    if (text.includes('record names us')) this.count('appointed');
    if (text.includes('begins empty')) this.count('founded after loss');
    if (text.includes('ALIGNING -> NG')) this.count('diverged member');
    if (text.includes('ALIGNING -> TAIL')) this.count('tail');
    if (text.includes('WAITING_OUT -> READING')) this.count('takeover');
    if (text.includes('LOST: fenced')) this.count('fenced');
    if (text.includes('-> HANDING_BACK')) this.onHandBack();
    this.onTrace?.(this.events.nowMs, text);
    this.log.push(`${this.events.nowMs.toFixed(0)} ${text}`);
    if (this.log.length > 60) this.log.shift();
  }

  count(name: string): void {
    this.rare.set(name, (this.rare.get(name) ?? 0) + 1);
  }

  /** Something changed that the checks look at. */
  touch(): void {
    this.custody.isTouched = true;
  }

  // ── network ─────────────────────────────────────────────────────────────────────────────────────

  connect(process: SimProcess, store: SimStore): Conn | undefined {
    if (!store.isUp) return undefined;
    const conn: Conn = { process, store, storeLife: store.life, isOpen: true, lastMs: [0, 0] };
    this.#connCount += 1;
    this.#connOrder.set(conn, this.#connCount);
    return conn;
  }

  carry(conn: Conn, at: (reply: (run: () => void) => void) => void): void {
    this.#arrive(conn, TO_STORE, () => {
      const key = `${conn.process.key}>${conn.store.storeId}`;
      const current = this.#conns.get(key);
      if (!conn.store.isUp || conn.store.life !== conn.storeLife) return;
      if (current !== undefined && current !== conn
        && (this.#connOrder.get(current) ?? 0) > (this.#connOrder.get(conn) ?? 0)) return;
      this.#conns.set(key, conn);
      at((run) => { this.#answer(conn, run); });
    });
  }

  #answer(conn: Conn, run: () => void): void {
    this.#arrive(conn, TO_PROCESS, () => {
      conn.process.receive(() => {
        const link = conn.process.links.get(conn.store.storeId);
        if (link === undefined || link.conn !== conn) return;
        link.heardMs = conn.process.now();
        run();
        this.touch();
      });
    });
  }

  #arrive(conn: Conn, way: 0 | 1, run: () => void): void {
    const slow = this.random.next() < 0.02 ? this.random.below(150) : 0;
    const atMs = Math.max(conn.lastMs[way], this.events.nowMs + 1 + this.random.below(6) + slow);
    conn.lastMs[way] = atMs;
    this.events.at(atMs, () => {
      if (this.#isHeld(conn, way)) this.#held.push({ conn, way, run });
      else run();
    });
  }

  /** What lies behind a held message of the same way waits behind it. */
  #isHeld(conn: Conn, way: 0 | 1): boolean {
    if (this.#isCut(conn, way)) return true;
    return this.#held.some((held) => held.conn === conn && held.way === way);
  }

  #isCut(conn: Conn, way: 0 | 1): boolean {
    const pair = `${conn.process.self.gatewayId}-${conn.store.storeId}`;
    return this.#cuts.has(`${pair}-${String(way)}`) || (way === TO_STORE && conn.store.isFrozen
      && conn.store.isUp);
  }

  cut(gatewayId: string, storeId: string, way: 0 | 1): void {
    this.#cuts.add(`${gatewayId}-${storeId}-${String(way)}`);
  }

  isCutOff(gatewayId: string, storeId: string): boolean {
    return this.#cuts.has(`${gatewayId}-${storeId}-0`) || this.#cuts.has(`${gatewayId}-${storeId}-1`);
  }

  mend(gatewayId: string, storeId: string): void {
    this.#cuts.delete(`${gatewayId}-${storeId}-0`);
    this.#cuts.delete(`${gatewayId}-${storeId}-1`);
    this.flushHeld();
  }

  /** In order, and before all that was sent later; what is still cut stays. */
  flushHeld(): void {
    const waiting = this.#held.splice(0);
    for (const held of waiting) {
      if (this.#isCut(held.conn, held.way)) this.#held.push(held);
      else held.run();
    }
  }

  // ── lives ───────────────────────────────────────────────────────────────────────────────────────

  startProcess(gateway: Gateway, isSameMachine: boolean): void {
    if (isSameMachine && gateway.processes.length > 0) return;
    gateway.incarnation += 1;
    const self: HolderId = { gatewayId: gateway.gatewayId, incarnation: gateway.incarnation };
    const process = new SimProcess(this, self, isSameMachine);
    gateway.processes.push(process);
    this.#processes = this.gateways.flatMap(({ processes }) => processes);
    if (this.ids !== undefined) process.holdings = new SimHoldings(process, this.ids.groupOptions);
    this.trace(`START ${holderKey(self)}${isSameMachine ? '' : ' elsewhere'}`);
  }

  killProcess(process: SimProcess): void {
    this.trace(`KILL ${process.key}`);
    process.end();
    for (const gateway of this.gateways) gateway.processes = gateway.processes.filter((each) =>
      each !== process);
    this.#processes = this.gateways.flatMap(({ processes }) => processes);
    this.touch();
  }

  endStore(store: SimStore, writesFile: boolean): void {
    this.trace(`${writesFile ? 'STOP' : 'KILL'} ${store.storeId}/${store.bootId}`);
    if (!writesFile) this.loseGivenUp(store, store.bootId);
    store.end(writesFile);
    for (const process of this.processes) {
      const link = process.links.get(store.storeId);
      if (link === undefined || link.conn === undefined) continue;
      const { conn } = link;
      if (!this.#isCut(conn, TO_PROCESS)) process.later(1 + this.random.below(5),
        () => { if (link.conn === conn) process.drop(link); });
    }
    this.touch();
  }

  /** What it had in that boot comes back no more. */
  loseGivenUp(store: SimStore, bootId: string): void {
    for (const { partition } of this.partitions) {
      const truth = this.custody.truth(partition);
      // It was set aside, and found after the end of what was begun in its place.
      const isFoundLate = truth === undefined && (store.holdsIn(partition, bootId)?.ids.size ?? 0) > 0;
      if (isFoundLate || isMemberOf(truth?.gaveUp ?? [], store.storeId, bootId)) this.custody.loseAway(partition);
    }
  }

  /** It stops with a file that is good for nothing, or is not there when it starts. */
  endStoreWithout(store: SimStore, spoil: () => void): void {
    this.loseGivenUp(store, store.bootId);
    this.endStore(store, true);
    spoil();
  }

  /** All that run hear of it by the register. */
  addStore(drift: number): void {
    const rate = 0.996 + drift * 0.008;
    this.#storeCount += 1;
    const store = new SimStore(`s${String(this.#storeCount)}`, this.plan.leaseMs, this.plan.ringLength,
      () => this.events.nowMs * rate);
    store.start();
    this.stores.push(store);
    for (const process of this.processes) process.addLink(store);
  }

  /** It was drained, and is gone for good: nobody asks it any more. */
  takeOutStore(store: SimStore): void {
    this.endStore(store, false);
    this.stores.splice(this.stores.indexOf(store), 1);
    for (const process of this.processes) process.receive(() => { process.dropLink(store); });
  }

  startStore(store: SimStore): void {
    if (store.isUp || !this.stores.includes(store)) return;
    const why = store.whyNotStarted();
    if (why !== '') {
      this.trace(`${store.storeId} does not start: ${why}`);
      this.count(why);
      return;
    }
    store.start();
    this.trace(`START ${store.storeId}/${store.bootId}`);
    this.touch();
  }

  // ── load ────────────────────────────────────────────────────────────────────────────────────────

  #loadOf(partition: string, gatewayId: string): void {
    const again = (): void => {
      this.events.after(this.plan.loadMs * (0.5 + this.random.next()), again);
      if (!this.isCalm) this.offer(partition, gatewayId);
    };
    again();
  }

  offer(partition: string, gatewayId: string): number | undefined {
    const able = this.processes.filter((process) => !process.isFrozen
      && process.self.gatewayId === gatewayId);
    const process = able.find((each) => each.parts.get(partition)?.holder.mayAccept) ?? able[able.length - 1];
    const part = process?.parts.get(partition);
    if (part === undefined) return undefined;
    const id = this.#nextId;
    this.custody.offered(partition, id, this.queueOf(id));
    if (!part.accept(id)) {
      this.custody.refusedAtOnce(id);
      return undefined;
    }
    this.#nextId += 1;
    if (this.random.next() < 0.05) {
      const entry = part.entries.get(id);
      process?.later(this.random.below(20), () => { if (entry !== undefined
        && part.entries.get(id) === entry) part.refuse(entry); });
    }
    return id;
  }

  /** Scattered, so that neighbours lie in different ones. */
  queueOf(id: number): number {
    return (Math.imul(id, 0x9e3779b1) >>> 8) % this.plan.queues;
  }

  #handBacks(): void {
    const again = (): void => {
      this.events.after(500, again);
      for (const process of this.processes) {
        if (process.isFrozen) continue;
        for (const part of process.parts.values()) {
          if (part.isOwn) continue;
          const [ownerId = ''] = part.partition.split('/');
          const owner = this.gateways.find(({ gatewayId }) => gatewayId === ownerId);
          const key = this.register.sessionOf(ownerId);
          const back = owner?.processes.find((each) => each.key === key);
          if (back !== undefined && back.parts.size > 0) part.holder.handBack(back.self, process.now());
          else part.holder.keep(process.now());
        }
      }
    };
    again();
  }

  // ── what machines report ────────────────────────────────────────────────────────────────────────

  dot(process: SimProcess, partition: string, id: number): void {
    this.custody.dot(process.key, partition, id);
  }

  said250(partition: string, id: number, term: Term, minReplicas: number): void {
    this.custody.said250(partition, id, term, minReplicas);
  }

  said4xx(id: number): void {
    this.custody.said4xx(id);
  }

  noReply(id: number): void {
    this.custody.noReply(id);
  }

  removed(id: number): void {
    this.custody.removed(id);
  }

  adopted(ids: readonly number[]): void {
    this.custody.adopted(ids);
  }

  // ── what counts ─────────────────────────────────────────────────────────────────────────────────

  partsOf(partition: string): Part[] {
    return this.processes.flatMap((process) => process.parts.get(partition) ?? []);
  }

  /** Copies that count now and would after every change that is under way: names of stores and processes. */
  copiesOf(partition: string): string[] {
    const truth = this.custody.truth(partition);
    if (truth === undefined) return [];
    const coming = [...this.register.underWay].filter((change) => change.partition === partition
      && change.record.epoch > truth.epoch);
    const found: string[] = [];
    for (const { storeId, bootId } of truth.members) {
      const store = this.stores.find((each) => each.storeId === storeId);
      const copy = store?.holdsIn(partition, bootId);
      if (copy?.isComplete !== true || this.custody.isEmptied(partition, copy)) continue;
      if (coming.every(({ record }) => isMemberOf(record.members, storeId, bootId))) found.push(storeId);
    }
    for (const part of this.partsOf(partition)) {
      if (part.isCopy && isSameTerm(part.holder.term, truth.term)
        && coming.every(({ record }) => isSameTerm(record.term, truth.term))) found.push(part.process.key);
    }
    return found;
  }

  /** Would each partition still have a copy without these? */
  mayLose(names: readonly string[]): boolean {
    return this.partitions.every(({ partition }) => {
      const truth = this.custody.truth(partition);
      if (truth === undefined) return true;
      // While the register says less, somebody must be left who can say so when everybody is asked (15).
      const isForgotten = (this.register.record(partition)?.epoch ?? 0) < truth.epoch;
      if (isForgotten && !this.stores.some((store) => !names.includes(store.storeId)
        && store.toldEpoch(partition) >= truth.epoch)) return false;
      return isEnded(truth) || this.copiesOf(partition).some((name) => !names.includes(name));
    });
  }

  /** How the partition stands, for a failure's text. */
  describe(partition: string): string {
    const parts = this.partsOf(partition).map((part) =>
      `${part.process.key} ${HOLDER_STATE_NAMES[part.holder.state]}`
      + `${part.process.isFrozen ? ' frozen' : ''} waits ${String(part.holder.waitsFor(part.process.now()))} entries ${String(part.entries.size)}`
      + ` ${(part.holder.set?.rows ?? []).map((row) => `${row.storeId}/${row.bootId}:${row.shown}${row.phase}`).join(' ')}`);
    const truth = this.custody.truth(partition);
    return `${partition} ${truth === undefined ? 'no record' : recordText(truth)}; ${parts.join('; ')}`;
  }

  /** Those that say so. What a process has that lives waits for no order. */
  awaitingPerson(partition: string): Part[] {
    return this.partsOf(partition).filter(({ holder, process }) =>
      holder.waitsFor(process.now()) === Waiting.COPIES_AWAY && holder.away.cause !== AwayCause.HELD);
  }

  isAwaitingPerson(partition: string): boolean {
    return this.awaitingPerson(partition).length > 0;
  }

  isHeld(partition: string): boolean {
    return this.partsOf(partition).some((part) => part.holder.state === HolderState.HOLDER);
  }
}

function recordText(record: PartitionRecord): string {
  return `epoch ${String(record.epoch)} ${holderKey(record.holder)} {${record.members.map(({ storeId, bootId }) => `${storeId}/${bootId}`).join(' ')}}`;
}
