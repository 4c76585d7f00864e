/**
 * A gateway process of the ownership world: links with leases, a session, and for each partition the
 * production
 * machines around a memory that holds names of messages only. Everything goes through World's network.
 */
import type { HolderId, PartitionRecord, RecordedMember,
  Term } from '../../../src/protocol/partition-record.js';
import { holderKey } from '../../../src/protocol/partition-record.js';
import { LinkLease } from '../../../src/recovery/ownership/link-lease.js';
import type { PartitionMember } from '../../../src/recovery/ownership/member.js';
import { MemberState } from '../../../src/recovery/ownership/member.js';
import { HolderState, PartitionHolder } from '../../../src/recovery/ownership/holder.js';
import type { CopyPosition, HolderPorts, DeclinedAnswer,
  StoreChoice } from '../../../src/recovery/ownership/ports.js';
import type { SimHoldings } from './sim-holdings.js';
import type { QueueRules } from './sim-register.js';
import { NO_RULES, SESSION_LENGTH_MS } from './sim-register.js';
import type { Change, SimStore, Snapshot } from './sim-store.js';
import { EMPTY_POSITION, digestAfter } from './sim-store.js';
import type { World } from './world.js';

const DRIFT = { driftShare: 0.01, driftFixedMs: 20 } as const;
const TICK_MS = 100;
const HEARTBEAT_MS = 250;
const SILENT_MS = 800;
const COMMIT_TIMEOUT_MS = 4000;
/** A reading takes a bounded number of blocks, however much there is. */
const BLOCK = 3;
const BLOCKS_MAX = 20;

/** One connection, in its order both ways. */
export interface Conn {
  readonly process: SimProcess;
  readonly store: SimStore;
  readonly storeLife: number;
  isOpen: boolean;
  /** When the last message of each direction arrives. */
  readonly lastMs: [number, number];
}

export interface Link {
  readonly store: SimStore;
  readonly lease: LinkLease;
  conn: Conn | undefined;
  isUp: boolean;
  bootId: string;
  heardMs: number;
  triedMs: number;
}

type EntryState = 'open' | 'withdrawing' | 'ready' | 'flying' | 'ended';

interface Entry {
  readonly id: number;
  state: EntryState;
  /** By an operator: it is not delivered, and its time stands still. */
  isHeld: boolean;
  hasBody: boolean;
  /** Of the change that it waits for. */
  number: number;
  readonly deadlineMs: number;
}

export class SimProcess {
  readonly world: World;
  readonly self: HolderId;
  readonly key: string;
  /** Started on the machine of its predecessors, whose lock file proves that they are dead. */
  readonly provesDead: boolean;
  readonly options: World['options'];
  readonly links = new Map<string, Link>();
  readonly parts = new Map<string, Part>();
  /** Undefined: it looks at all partitions that there are. */
  holdings: SimHoldings | undefined;
  isAlive = true;
  isFrozen = false;
  /** What waited while it was frozen: timers first, then what the sockets have. */
  readonly timers: (() => void)[] = [];
  readonly news: (() => void)[] = [];
  session = { id: 0, endsMs: -Infinity };
  readonly #rate: number;
  readonly #offsetMs: number;
  #beatMs = -Infinity;
  #sessionMs = -Infinity;

  constructor(world: World, self: HolderId, provesDead: boolean) {
    this.world = world;
    this.self = self;
    this.key = holderKey(self);
    this.provesDead = provesDead;
    this.options = world.options;
    this.#rate = 0.996 + world.random.next() * 0.008;
    this.#offsetMs = world.random.below(100_000);
    for (const store of world.stores) this.addLink(store);
    this.#tickLater();
  }

  addLink(store: SimStore): void {
    this.links.set(store.storeId, { store, lease: new LinkLease(DRIFT), conn: undefined, isUp: false,
      bootId: '', heardMs: 0, triedMs: -Infinity });
  }

  dropLink({ storeId }: SimStore): void {
    const link = this.links.get(storeId);
    if (link !== undefined) this.drop(link);
    this.links.delete(storeId);
  }

  now(): number {
    return this.#offsetMs + this.world.events.nowMs * this.#rate;
  }

  /** A timer of this process. */
  later(delayMs: number, run: () => void): void {
    this.world.events.after(delayMs, () => {
      if (!this.isAlive) return;
      if (this.isFrozen) this.timers.push(run);
      else run();
    });
  }

  /** Something arrived. */
  receive(run: () => void): void {
    if (!this.isAlive) return;
    if (this.isFrozen) this.news.push(run);
    else run();
  }

  thaw(): void {
    this.isFrozen = false;
    for (const run of this.timers.splice(0)) if (this.isAlive) run();
    for (const run of this.news.splice(0)) if (this.isAlive) run();
  }

  /** To a store, in order; `at` runs there if its life and this connection still stand. */
  send(link: Link, at: (reply: (run: () => void) => void) => void): void {
    const { conn } = link;
    if (conn !== undefined) this.world.carry(conn, at);
  }

  #tickLater(): void {
    this.later(TICK_MS, () => {
      this.#tickLater();
      this.#tick();
    });
  }

  #tick(): void {
    const now = this.now();
    if (now - this.#sessionMs >= 500) this.#keepSession(now);
    if (this.session.id === 0) return;
    const isBeat = now - this.#beatMs >= HEARTBEAT_MS;
    if (isBeat) this.#beatMs = now;
    for (const link of this.links.values()) this.#tickLink(link, now, isBeat);
    if (this.holdings !== undefined) this.holdings.tick(now);
    else if (this.parts.size === 0) for (const { partition,
      gatewayId } of this.world.partitions) this.parts.set(partition, new Part(this, partition, gatewayId));
    for (const part of this.parts.values()) part.tick();
  }

  #keepSession(now: number): void {
    this.#sessionMs = now;
    const { register } = this.world;
    register.request(this.key, () => register.keepSession(this.self, this.provesDead), (id) => {
      this.receive(() => {
        if (id === 0) return;
        const endsMs = now + SESSION_LENGTH_MS * 0.99 - 20;
        if (id !== this.session.id) this.session = { id, endsMs };
        else if (endsMs > this.session.endsMs) this.session.endsMs = endsMs;
      });
    });
  }

  #tickLink(link: Link, now: number, isBeat: boolean): void {
    if (link.conn !== undefined && now - link.heardMs > SILENT_MS) this.drop(link);
    if (link.conn === undefined) {
      if (now - link.triedMs < 300) return;
      link.triedMs = now;
      link.heardMs = now;
      link.bootId = '';
      const conn = this.world.connect(this, link.store);
      if (conn === undefined) return;
      link.conn = conn;
      this.send(link, (reply) => {
        const { bootId } = link.store;
        reply(() => { this.#welcome(link, bootId); });
      });
    }
    if (isBeat) this.#beat(link, now);
  }

  #beat(link: Link, sentMs: number): void {
    const processed = link.lease.fencesProcessedIn(link.bootId);
    this.send(link, (reply) => {
      const answer = link.store.heartbeat(this.key, processed);
      const { bootId } = link.store;
      reply(() => {
        for (const { count, partition, term } of answer.fences) {
          this.parts.get(partition)?.holder.onFenceNotice(link.store.storeId, bootId, term, this.now());
          link.lease.onFencesProcessed(bootId, count);
        }
        link.lease.onAnswer(bootId, sentMs, answer.leaseMs, answer.fenceCount);
      });
    });
  }

  #welcome(link: Link, bootId: string): void {
    link.isUp = true;
    link.bootId = bootId;
    for (const part of this.parts.values()) part.holder.onLinkUp(link.store.storeId, bootId, this.now());
  }

  /** The connection is lost, or was given up. */
  drop(link: Link): void {
    if (link.conn !== undefined) link.conn.isOpen = false;
    link.conn = undefined;
    if (!link.isUp) return;
    link.isUp = false;
    for (const part of this.parts.values()) part.holder.onLinkDown(link.store.storeId, this.now());
  }

  end(): void {
    this.isAlive = false;
    for (const part of this.parts.values()) part.die();
  }
}

/** A partition in a process: its memory, and the ports of its machine. */
export class Part {
  readonly process: SimProcess;
  readonly partition: string;
  readonly holder: PartitionHolder;
  readonly isOwn: boolean;
  entries = new Map<number, Entry>();
  isComplete = false;
  /** It takes no new mail: it is to end. */
  isClosed = false;
  /** What operators have decided, as far as this process knows, whoever holds the partition. */
  rules: QueueRules = NO_RULES;
  /** Orders that are done when all members have these changes. */
  #orders: { readonly number: number; readonly id: number; readonly kind: Change['kind'] }[] = [];
  /** Every entry is known, with its body or without. */
  #isIndexed = false;
  #position: CopyPosition = EMPTY_POSITION;
  /** Last changes, ours and those of the member that was read. */
  #ring: Change[] = [];
  /** Goes up with everything that is dropped: what was planned before means nothing. */
  #life = 0;
  #isStopped = false;
  /** It has ended, and nobody here asks for it any more: what is still answered means nothing. */
  #isLeft = false;
  #isQuietTold = false;
  #filled = new WeakSet<PartitionMember>();
  #source: RecordedMember | undefined;
  #readLife = 0;
  #block = BLOCK;
  #adopting: { readonly member: RecordedMember; readonly number: number; readonly ids: readonly number[] }[] = [];

  constructor(process: SimProcess, partition: string, gatewayId: string) {
    this.process = process;
    this.partition = partition;
    this.isOwn = gatewayId === process.self.gatewayId;
    const { world } = process;
    this.holder = new PartitionHolder({
      partition, self: process.self, isOwn: this.isOwn, ...process.options,
      rescueDelayMs: 200 * world.rankOf(process.self.gatewayId),
    }, this.#ports());
  }

  get lastNumber(): number {
    return this.#position.number;
  }

  // ── load ────────────────────────────────────────────────────────────────────────────────────────

  accept(id: number): boolean {
    if (!this.holder.mayAccept || this.#isStopped || this.isClosed) return false;
    this.entries.set(id, { id, state: 'open', isHeld: false, hasBody: true, number: this.lastNumber + 1,
      deadlineMs: this.process.now() + COMMIT_TIMEOUT_MS });
    this.#append('store', id);
    return true;
  }

  /** The client will get 4xx, once the withdrawal is everywhere. */
  refuse(entry: Entry): void {
    if (entry.state !== 'open') return;
    entry.state = 'withdrawing';
    entry.number = this.lastNumber + 1;
    this.#append('withdraw', entry.id);
  }

  tick(): void {
    const now = this.process.now();
    this.holder.tick(now);
    for (const entry of this.entries.values()) if (entry.state === 'open'
      && now > entry.deadlineMs) this.refuse(entry);
    this.#expire();
    this.#deliver();
    if (this.#isStopped && !this.#isQuietTold && this.#isQuiet()) {
      this.#isQuietTold = true;
      this.holder.onQuiet(now);
    }
  }

  die(): void {
    this.#life += 1;
    for (const entry of this.entries.values()) if (entry.state === 'open'
      || entry.state === 'withdrawing') this.process.world.noReply(entry.id);
  }

  leave(): void {
    this.#isLeft = true;
    this.die();
  }

  #isQuiet(): boolean {
    for (const { state } of this.entries.values()) if (state !== 'ready') return false;
    return true;
  }

  #append(kind: Change['kind'], id: number): void {
    const { holder } = this;
    const digest = digestAfter(this.#position.digestA, kind, id);
    const change = { number: this.lastNumber + 1, term: holder.term, kind, id, digest };
    this.#position = { number: change.number, term: change.term, digestA: digest, digestB: 0 };
    this.#ring.push(change);
    this.#trimRing();
    for (const row of holder.set?.rows ?? []) {
      if (row.state === MemberState.IN_STEP || row.state === MemberState.TAIL
        || this.#filled.has(row)) this.#sendChange(row, change);
    }
    holder.set?.onAppended();
  }

  /** Bounded, but what a member that may count still lacks is kept. */
  #trimRing(): void {
    let least = Infinity;
    for (const row of this.holder.set?.rows ?? []) if (row.isPossible) least = Math.min(least, row.acked);
    const keep = this.process.world.ringLength;
    while (this.#ring.length > keep && (this.#ring[0]?.number ?? Infinity) < least) this.#ring.shift();
  }

  #sendChange(row: PartitionMember, change: Change): void {
    const link = this.#linkOf(row);
    if (link === undefined) return;
    const { term } = this.holder;
    this.process.send(link, (reply) => {
      const outcome = link.store.change(this.partition, change, term);
      this.process.world.touch();
      if (typeof outcome === 'number') reply(() => { this.holder.set?.onAcked(row, outcome,
        this.process.now()); });
      else if (outcome === 'gap') reply(() =>
        { if (this.holder.set?.rows.includes(row) === true) this.holder.set.onGap(row,
        this.process.now()); });
      else reply(() => { this.holder.onDeclined(row.storeId, row.bootId, outcome, this.process.now()); });
    });
  }

  #linkOf(member: RecordedMember): Link | undefined {
    const link = this.process.links.get(member.storeId);
    return link?.isUp === true && link.bootId === member.bootId ? link : undefined;
  }

  // ── delivery: of each queue one at a time, in order ─────────────────────────────────────────────

  #deliver(): void {
    if (this.#isStopped) return;
    const { world } = this.process;
    const { queues } = world.plan;
    const busy = new Set<number>();
    for (const entry of this.entries.values()) {
      if (busy.size === queues) return;
      const queue = world.queueOf(entry.id);
      if (busy.has(queue)) continue;
      if (entry.state === 'flying') busy.add(queue);
      if (entry.state !== 'ready') continue;
      if (entry.isHeld) continue;
      busy.add(queue);
      if (!entry.hasBody || this.rules.held.has(queue)) continue;
      if (!this.holder.mayDeliver(this.process.now()) || world.isHopDown) return;
      this.#try(entry);
    }
  }

  #try(entry: Entry): void {
    const { world } = this.process;
    entry.state = 'flying';
    world.dot(this.process, this.partition, entry.id);
    const life = this.#life;
    world.events.after(5 + world.random.below(world.hopMs), () => {
      this.process.receive(() => {
        if (life !== this.#life) return;
        this.#endEntry(entry);
        this.#deliver();
      });
    });
  }

  #endEntry(entry: Entry): void {
    entry.state = 'ended';
    entry.number = this.lastNumber + 1;
    this.#append('delete', entry.id);
  }

  // ── orders, and the end of a lifetime ───────────────────────────────────────────────────────────

  obey(rules: QueueRules): void {
    if (rules.version > this.rules.version) this.rules = rules;
  }

  hold(id: number, isHeld: boolean): void {
    const entry = this.#waiting(id);
    if (entry === undefined || entry.isHeld === isHeld) return;
    entry.isHeld = isHeld;
    this.#order(isHeld ? 'hold' : 'release', id);
  }

  deleteByOrder(id: number): void {
    const entry = this.#waiting(id);
    if (entry === undefined) return;
    this.process.world.custody.ending(this.partition, id);
    this.#endEntry(entry);
    this.#orders.push({ number: this.lastNumber, id, kind: 'delete' });
  }

  /** One that can be ordered about: in hand, and not on its way. */
  #waiting(id: number): Entry | undefined {
    const entry = this.entries.get(id);
    return entry?.state === 'ready' && !this.#isStopped && this.holder.set !== undefined ? entry : undefined;
  }

  #order(kind: 'hold' | 'release', id: number): void {
    this.process.world.custody.holdOrdered(id, kind === 'hold');
    this.#append(kind, id);
    this.#orders.push({ number: this.lastNumber, id, kind });
  }

  #expire(): void {
    const { world } = this.process;
    if (world.plan.lifetimeMs === Infinity || !this.holder.hasRules) return;
    for (const { id, isHeld } of this.entries.values()) {
      if (isHeld || world.events.nowMs < world.custody.expiresMs(id)) continue;
      const entry = this.#waiting(id);
      if (entry === undefined) continue;
      world.count('expired');
      world.custody.ending(this.partition, id);
      this.#endEntry(entry);
    }
  }

  #ordersAreDone(ackedNumber: number): void {
    const { world } = this.process;
    for (const { number, id, kind } of this.#orders) {
      if (number > ackedNumber || kind === 'release') continue;
      world.count(`${kind} done`);
      if (kind === 'hold' && this.entries.get(id)?.isHeld === true) world.custody.held(id);
    }
    this.#orders = this.#orders.filter(({ number }) => number > ackedNumber);
  }

  #onCommitted(): void {
    const { set } = this.holder;
    if (set === undefined) return;
    const { world } = this.process;
    if (this.#orders.length > 0) this.#ordersAreDone(set.ackedByAllNumber);
    for (const entry of [...this.entries.values()]) {
      if (entry.state === 'open' && entry.number <= set.committedNumber) {
        entry.state = 'ready';
        world.said250(this.partition, entry.id, this.holder.term, this.process.options.minReplicas);
      } else if (entry.state === 'withdrawing' && entry.number <= set.ackedByAllNumber) {
        this.entries.delete(entry.id);
        world.said4xx(entry.id);
      } else if (entry.state === 'ended' && entry.number <= set.ackedByAllNumber) {
        this.entries.delete(entry.id);
        world.removed(entry.id);
      }
    }
    for (const each of this.#adopting.filter(({ number }) => number <= set.ackedByAllNumber)) {
      this.#adopting = this.#adopting.filter((other) => other !== each);
      world.custody.back(each.ids);
      this.process.later(1, () => { this.holder.onAdopted(each.member, this.process.now()); });
    }
  }

  // ── ports ───────────────────────────────────────────────────────────────────────────────────────

  #ports(): HolderPorts {
    const { process } = this;
    const { world } = process;
    const { partition } = this;
    return {
      register: this.#registerPort(),
      stores: this.#storePort(),
      members: this.#memberPorts(),
      memory: this.#memoryPort(),
      mayBegin: () => process.holdings?.isWanted(partition) ?? this.isOwn,
      isProvenDead: (holder) => process.provesDead && holder.gatewayId === process.self.gatewayId
        && holder.incarnation < process.self.incarnation,
      session: () => process.session,
      nonce: () => 1 + world.random.below(1_000_000_000),
      // A clock that no change of a record outruns.
      wallSeconds: () => Math.floor(world.events.nowMs),
      trace: (event) => { world.trace(`${process.key} ${event}`); },
    };
  }

  #registerPort(): HolderPorts['register'] {
    const { process, partition } = this;
    const { register } = process.world;
    const now = (): number => process.now();
    return {
      read: (ticket) => {
        if (this.#isLeft) return;
        register.request(process.key, () => register.read(partition),
          (stamped) => { process.receive(() => { this.holder.onRecord(ticket, stamped, now()); }); });
      },
      change: (ticket, expected, record, unlessSessionOf) => {
        if (this.#isLeft) return;
        process.world.custody.changeSent(process.key, partition, this.holder, record);
        if (record.members.some((member) => this.#linkOf(member) !== undefined)) {
          process.world.custody.sentWithCopy(partition, record.term);
        }
        const apply = (): { revision: string | undefined; stamped: ReturnType<typeof register.read> } =>
          ({ revision: register.change(partition, expected, record, unlessSessionOf),
            stamped: register.read(partition) });
        register.request(process.key, apply, ({ revision, stamped }) => {
          process.receive(() => {
            if (revision === undefined) this.holder.onRecord(ticket, stamped, now());
            else this.holder.onApplied(ticket, revision, now());
          });
        }, { partition, expected, record });
      },
      tieSession: (ticket, expected) => {
        const sentMs = now();
        register.request(process.key, () => ({ id: register.tie(partition, expected, process.self),
          stamped: register.read(partition) }), ({ id, stamped }) => {
          process.receive(() => {
            if (id === 0) {
              this.holder.onRecord(ticket, stamped, now());
              return;
            }
            if (id !== process.session.id) process.session = { id,
              endsMs: sentMs + SESSION_LENGTH_MS * 0.99 - 20 };
            this.holder.onSessionTied(ticket, id);
          });
        });
      },
      readRules: (ticket) => {
        register.request(process.key, () => register.rulesOf(partition), (rules) => {
          process.receive(() => {
            this.obey(rules);
            this.holder.onRules(ticket, now());
          });
        });
      },
    };
  }

  #storePort(): HolderPorts['stores'] {
    const { process, partition } = this;
    const tell = (storeId: string, bootId: string, outcome: DeclinedAnswer | { term: Term } | undefined,
      otherwise: () => void): void => {
      if (outcome !== undefined && 'reason' in outcome) this.holder.onDeclined(storeId, bootId, outcome,
        process.now());
      else otherwise();
    };
    return {
      all: () => process.world.stores.map(({ storeId }) => storeId),
      areAllKnown: () => true,
      bootOf: (storeId) => {
        const link = process.links.get(storeId);
        return link?.isUp === true ? link.bootId : '';
      },
      ask: (storeId, holder) => {
        const link = process.links.get(storeId);
        if (link?.isUp !== true) return;
        const { bootId } = link;
        process.send(link, (reply) => {
          const answer = link.store.ask(partition, holder);
          reply(() => { this.holder.onAsked(storeId, bootId, answer, process.now()); });
        });
      },
      fence: (member, term, provenDead) => { this.#sendFence(member, term, provenDead); },
      found: (storeId, bootId, term, knownEpoch) => {
        const link = this.#linkOf({ storeId, bootId });
        if (link === undefined || this.#isLeft) return;
        process.send(link, (reply) => {
          const refusal = link.store.found(partition, term, process.self, knownEpoch);
          reply(() => { tell(storeId, bootId, refusal, () => { this.holder.onFounded(storeId, bootId,
            term); }); });
        });
      },
      release: (member) => {
        const link = this.#linkOf(member);
        const { term } = this.holder;
        if (link !== undefined) process.send(link, () => { link.store.release(partition, term); });
      },
    };
  }

  #sendFence(member: RecordedMember, term: Term, provenDead: HolderId | undefined): void {
    const link = this.#linkOf(member);
    const { process } = this;
    if (link === undefined || this.#isLeft) return;
    process.send(link, (reply) => {
      const outcome = link.store.fence(this.partition, term, process.self, provenDead);
      process.world.touch();
      reply(() => {
        if ('reason' in outcome) this.holder.onDeclined(member.storeId, member.bootId, outcome, process.now());
        else this.holder.onFenced(member.storeId, member.bootId, outcome, process.now());
      });
    });
  }

  #memberPorts(): HolderPorts['members'] {
    const { process } = this;
    return {
      lastNumber: () => this.lastNumber,
      isInHistory: (at) => this.#isInHistory(at),
      lease: (storeId) => process.links.get(storeId)?.lease ?? new LinkLease(DRIFT),
      isUp: (storeId, bootId) => this.#linkOf({ storeId, bootId }) !== undefined,
      chooseStore: (taken, only) => this.#chooseStore(taken, only),
      align: (member) => { this.#sendFence(member, this.holder.term, undefined); },
      startTail: (member, after) => {
        const row = this.holder.set?.rowOf(member.storeId, member.bootId);
        if (row !== undefined) for (const change of this.#ring)
          if (change.number > after) this.#sendChange(row, change);
      },
      startFill: (member) => {
        const row = this.holder.set?.rowOf(member.storeId, member.bootId);
        if (row !== undefined) this.#fill(row);
      },
      tell: (member, record, isOut) => { this.#tell(member, record, isOut); },
      onCommitted: () => { this.#onCommitted(); },
      // Nobody puts an older file in place of a store's here: what is acknowledged is there.
      onWentBack: ({ storeId }) => { throw new Error(`${storeId} lacks what it has acknowledged`); },
    };
  }

  #isInHistory(at: CopyPosition): boolean {
    if (at.number < 0 || at.number > this.lastNumber) return false;
    if (at.number === this.lastNumber) return at.digestA === this.#position.digestA;
    if (at.number === 0) return this.#ring[0]?.number === 1;
    return this.#ring.some((each) => each.number === at.number && each.digest === at.digestA);
  }

  #chooseStore(taken: readonly string[], only: string): StoreChoice | undefined {
    const able = [...this.process.links.values()].filter((link) => link.isUp
      && !taken.includes(link.store.storeId) && (only === '' || only === link.store.storeId));
    if (able.length === 0) return undefined;
    const link = this.process.world.random.pick(able);
    return { storeId: link.store.storeId, bootId: link.bootId };
  }

  #tell(member: RecordedMember, record: PartitionRecord, isOut: boolean): void {
    const link = this.process.links.get(member.storeId);
    if (link?.isUp !== true) return;
    this.process.send(link, (reply) => {
      const isKept = link.store.tell(this.partition, record, isOut, member.bootId);
      this.process.world.touch();
      reply(() => { if (isKept) this.holder.set?.onTold(member.storeId, member.bootId, record.epoch, this.process.now()); });
    });
  }

  #fill(row: PartitionMember): void {
    const link = this.#linkOf(row);
    const { set, term } = this.holder;
    if (link === undefined || set === undefined) return;
    const { conn } = link;
    this.#filled.delete(row);
    this.process.send(link, (reply) => {
      const refusal = link.store.fillBegin(this.partition, term, this.process.self);
      this.process.world.touch();
      reply(() => {
        if (this.holder.set !== set || !set.rows.includes(row)) return;
        if (refusal === undefined) set.onTermTaken(row);
        else this.holder.onDeclined(row.storeId, row.bootId, refusal, this.process.now());
      });
    });
    const finish = (): void => {
      if (this.holder.set !== set || link.conn !== conn || row.state !== MemberState.FILLING
        || !set.rows.includes(row)) return;
      if (!this.#mayFill) this.process.later(200, finish);
      else this.#fillEnd(row, link, term);
    };
    this.process.later(5 + this.process.world.random.below(this.process.world.fillMs), finish);
  }

  /** What is not here passes through, from the member that is read. */
  get #mayFill(): boolean {
    return this.isComplete || (this.#isIndexed && this.#isSourceThere);
  }

  get #isSourceThere(): boolean {
    return this.#source !== undefined && this.#linkOf(this.#source) !== undefined;
  }

  #fillEnd(row: PartitionMember, link: Link, term: Term): void {
    const { set } = this.holder;
    // What is neither here nor to be had can't be sent: an entry without its body is none there.
    const passes = this.#isSourceThere;
    const ids = [...this.entries.values()].filter(({ state, hasBody }) => (hasBody || passes)
      && state !== 'withdrawing' && state !== 'ended').map(({ id }) => id);
    const held = ids.filter((id) => this.entries.get(id)?.isHeld === true);
    const snapshot: Snapshot = { at: this.#position, ids, held, ring: [...this.#ring] };
    this.#filled.add(row);
    this.process.send(link, (reply) => {
      const refusal = link.store.fillEnd(this.partition, term, snapshot);
      this.process.world.touch();
      reply(() => {
        if (this.holder.set !== set || set === undefined || !set.rows.includes(row)) return;
        if (refusal === undefined) set.onFilled(row, snapshot.at.number, this.process.now());
        else this.holder.onDeclined(row.storeId, row.bootId, refusal, this.process.now());
      });
    });
  }

  #memoryPort(): HolderPorts['memory'] {
    return {
      read: (source, at) => {
        this.#clear();
        this.#position = at;
        this.#readFrom(source, true);
      },
      readOn: (source) => { this.#readFrom(source, false); },
      begin: (isLoss) => {
        this.#clear();
        this.isComplete = true;
        if (isLoss) this.process.world.trace(`${this.process.key} ${this.partition} begins empty`);
      },
      noteLoss: () => { this.process.world.trace(`${this.process.key} ${this.partition} goes on with what was set aside`); },
      forget: () => { this.#clear(); },
      stop: () => {
        this.#isStopped = true;
        this.#isQuietTold = false;
        for (const entry of this.entries.values()) this.refuse(entry);
      },
      resume: () => { this.#isStopped = false; },
      adopt: (member) => { this.#adopt(member); },
    };
  }

  #clear(): void {
    this.die();
    this.entries = new Map();
    this.isComplete = false;
    this.#isIndexed = false;
    this.#position = EMPTY_POSITION;
    this.#ring = [];
    this.#isStopped = false;
    this.#isQuietTold = false;
    this.#filled = new WeakSet();
    this.#source = undefined;
    this.#adopting = [];
    this.#orders = [];
  }

  /** Index and ring first, then bodies in blocks. */
  #readFrom(source: RecordedMember, isFirst: boolean): void {
    this.#source = source;
    this.#readLife += 1;
    const life = this.#readLife;
    const { term } = this.holder;
    const ask = (): void => {
      const link = this.#linkOf(source);
      if (link === undefined || life !== this.#readLife || this.#source !== source) return;
      this.process.send(link, (reply) => {
        const snapshot = link.store.read(this.partition, term);
        reply(() => {
          if (life !== this.#readLife || this.#source !== source || snapshot === undefined) return;
          if (isFirst) this.#adoptIndex(snapshot);
          this.#readBlocks(source, life);
        });
      });
    };
    ask();
  }

  #adoptIndex(snapshot: Snapshot): void {
    // Changes of our own that were made since stand behind what is read; there are none before the index is
    // here.
    this.#ring = [...snapshot.ring];
    this.#isIndexed = true;
    this.#block = Math.max(BLOCK, Math.ceil(snapshot.ids.length / BLOCKS_MAX));
    const held = new Set(snapshot.held);
    for (const id of snapshot.ids) this.entries.set(id, { id, state: 'ready', isHeld: held.has(id), hasBody: false,
      number: 0, deadlineMs: 0 });
    this.holder.onHistoryRead(this.process.now());
  }

  #readBlocks(source: RecordedMember, life: number): void {
    const missing = [...this.entries.values()].filter((entry) => !entry.hasBody).slice(0, this.#block);
    if (missing.length === 0) {
      this.isComplete = true;
      this.#source = undefined;
      this.holder.onReadComplete(this.process.now());
      return;
    }
    const { term } = this.holder;
    this.process.later(this.process.world.random.below(this.process.world.readMs), () => {
      const link = this.#linkOf(source);
      if (link === undefined || life !== this.#readLife) return;
      this.process.send(link, (reply) => {
        const held = new Set(link.store.read(this.partition, term)?.ids ?? []);
        reply(() => {
          if (life !== this.#readLife) return;
          for (const entry of missing) {
            if (held.has(entry.id)) entry.hasBody = true;
            // Its deletion is on the way: it needs no body. Any other is missed by the checks.
            else if (entry.state !== 'ready') entry.hasBody = true;
          }
          this.#deliver();
          this.#readBlocks(source, life);
        });
      });
    });
  }

  #adopt(member: RecordedMember): void {
    const link = this.#linkOf(member);
    const life = this.#life;
    const { term } = this.holder;
    if (link === undefined) return;
    this.process.send(link, (reply) => {
      const ids = link.store.readGivenUp(this.partition, term, this.process.self);
      reply(() => {
        if (life !== this.#life) return;
        for (const id of ids) {
          if (this.entries.has(id)) continue;
          this.entries.set(id, { id, state: 'ready', isHeld: false, hasBody: true, number: this.lastNumber + 1,
            deadlineMs: 0 });
          this.#append('store', id);
        }
        this.process.world.adopted(ids);
        this.#adopting.push({ member, number: this.lastNumber, ids });
        this.#onCommitted();
      });
    });
  }

  /** For the checks: what a copy in memory must hold. */
  get isCopy(): boolean {
    const { state } = this.holder;
    return (state === HolderState.HOLDER || state === HolderState.HANDING_BACK) && this.isComplete
      && this.holder.set !== undefined;
  }
}
