/**
 * One partition in this process: its life is PartitionHolder's (recovery/ownership), this joins it with
 * links, mirrors, queues and the register.
 *
 *   PartitionHolder ─ effects ─► here ─► FENCE, ASK, TELL, RELEASE to stores · copies fed (mirror/mirrors.ts)
 *                                      · blocks read (recovery/readings.ts)
 *                                      · compare-and-set (ownership-register.ts)
 *   answers ─► holdings.ts finds the partition ─► here ─► events of PartitionHolder
 *
 *   what is held of it in memory     from                        to
 *   nothing                          the start, forget()         read(), begin()
 *   a Partition, coming in           read()                      the last block
 *   a Partition, whole               the last block, begin()     forget()
 */
import type { Clock, EventLog, Packer } from '../../platform/ports.js';
import { ASK, RELEASE, TAIL, TELL } from '../../protocol/message-types.js';
import { encodeAsk } from '../../protocol/messages/ask.js';
import type { Asked } from '../../protocol/messages/asked.js';
import type { Block } from '../../protocol/messages/block.js';
import type { Declined } from '../../protocol/messages/declined.js';
import { FENCE_FILL, FENCE_FOUND, FENCE_JOIN } from '../../protocol/messages/fence.js';
import type { Fenced } from '../../protocol/messages/fenced.js';
import { encodeRelease } from '../../protocol/messages/release.js';
import { encodeTail } from '../../protocol/messages/tail.js';
import type { Tailed } from '../../protocol/messages/tailed.js';
import { encodeTell } from '../../protocol/messages/tell.js';
import type { Told } from '../../protocol/messages/told.js';
import type { HolderId, PartitionRecord, RecordedMember, Term } from '../../protocol/partition-record.js';
import { isMemberOf, ownerOf } from '../../protocol/partition-record.js';
import { DECLINED_FULL, DECLINED_NO_COPY } from '../../protocol/reasons.js';
import { HolderState, PartitionHolder } from '../../recovery/ownership/holder.js';
import type { PartitionMember } from '../../recovery/ownership/member.js';
import type { CopyPosition, HolderOptions, HolderPorts } from '../../recovery/ownership/ports.js';
import type { Readings } from '../../recovery/readings.js';
import type { LeaseView } from '../../recovery/ownership/link-lease.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { Partition, PartitionOptions } from '../mirror/set/partition.js';
import type { StorePort } from '../mirror/link/store-port.js';
import type { AdoptedMail } from '../recovered/adopted-mail.js';
import type { QueueRegistry } from '../queue/queue-registry.js';
import type { RecoveredQueues } from '../recovered/recovered-queues.js';
import type { AdoptionCounters } from '../recovered/adoptions.js';
import { Adoptions } from '../recovered/adoptions.js';
import type { OrderedBy } from './losses.js';
import type { OwnershipRegister, RegisterSink } from './ownership-register.js';
import { Reach } from './reach.js';

export interface HoldingPorts {
  readonly clock: Clock;
  readonly packer: Packer;
  readonly log: EventLog;
  readonly register: OwnershipRegister;
  readonly mirrors: Mirrors;
  readonly registry: QueueRegistry;
  readonly recovered: RecoveredQueues;
  readonly adopted: AdoptedMail;
  readonly readings: Readings;
  readonly counters: HoldingCounters;
  random(): number;
  /** The list of stores in the register was read, if they are learned of there. */
  areStoresKnown(): boolean;
  /** The partition is one that this gateway is to have. */
  mayBegin(partition: string): boolean;
  /** Out of registry, mirrors and memory. */
  forget(partition: Partition): void;
  /** The rules of operators were read: they hold before anything is started. */
  obeyRules(): void;
  /** Its queues may have something to deliver. */
  wake(partition: Partition): void;
  /** It begins empty, and was not. */
  onLoss(by: OrderedBy | undefined): void;
  /** A store lacks so many changes of a partition that it had acknowledged. */
  onWentBack(storeId: string, partition: string, changes: number): void;
}

export interface HoldingCounters extends AdoptionCounters {
  takeovers: number;
  handedBack: number;
  /** Partitions that another process had taken over while this one stood still or was cut off. */
  lost: number;
  /** Partitions whose every copy was lost: they began empty. */
  losses: number;
  /** Changes of a record that are settled. */
  epochs: number;
  /** New partitions that stand. */
  founded: number;
}

const NONCES = 2 ** 53 - 1;
/** What was sent on a path that failed, or its answer, is lost. */
const CLEAR_AGAIN_MS = 1_000;
/** A partition that is given away starts nothing: for no longer than this, and then not soon again. */
const GIVE_MS = 5_000;
const GIVE_AGAIN_MS = 60_000;
/** Who may have it is known again within this after a try (reach.ts), or nobody may. */
const NO_HEIR_MS = 5_000;
/** What is read is adopted: other copies can be compared with it. */
const History = { NONE: 0, DUE: 1, KNOWN: 2 } as const;
type History = (typeof History)[keyof typeof History];

/** What a copy said when it took our term. */
interface FencedCopy {
  readonly bootId: string;
  readonly answer: Fenced;
  readonly atMs: number;
}

interface ClearedStore {
  readonly bootId: string;
  /** As one whose copy is taken in: it is not to drop it. */
  readonly isGivenUp: boolean;
  isTold: boolean;
  sentMs: number;
}

/** A copy that lacks what was changed before we came: the copy that is read is asked for that. */
interface Behind extends FencedCopy {
  readonly store: StorePort;
}

export class Holding implements RegisterSink {
  readonly name: string;
  readonly ownerId: string;
  readonly handle: number;
  readonly isOwn: boolean;
  readonly holder: PartitionHolder;
  /** What of it is in memory; undefined while it is not ours. */
  partition: Partition | undefined;
  /** Since when it is in its present state, on the monotonic clock. */
  sinceMs: number;
  readonly #ports: HoldingPorts;
  readonly #adoptions: Adoptions;
  readonly #reach = new Reach((storeId, about) => { this.#ask(storeId, about); });
  readonly #fenced = new Map<string, FencedCopy>();
  #history: History = History.NONE;
  /** The copy that what is read was adopted from; undefined: nothing is. */
  #source: RecordedMember | undefined;
  #adoptedNumber = 0;
  /** In the order in which TAIL was asked for them. */
  #behind: Behind[] = [];
  /** Whom it is being given to; nobody, when it ends. */
  goesTo: HolderId | undefined;
  #givingSinceMs = -Infinity;
  #giveAtMs = -Infinity;
  /** It could not go: queues with attempts under way begin no other until it goes, or goes nowhere. */
  #isHeldBack = false;
  /** When somebody was last to have it. */
  #heirMs = -Infinity;
  #emptySinceMs = Infinity;
  /** Who ordered that it begin empty; while it is on its way there. */
  #givenUpBy: OrderedBy | undefined;
  #isStopping = false;
  #isQuietTold = false;
  #toldEpoch = 0;
  /** It is being founded: what the log says is that it stands, together with the others of a start. */
  #isNew = false;
  #hasServed = false;
  /** Stores that are told that they have no copy that counts, in this term, until they say that they know. */
  readonly #cleared = new Map<string, ClearedStore>();
  /** When stores were last asked to hold it from its beginning on; -Infinity: it is not being founded. */
  #foundingMs = -Infinity;

  constructor(handle: number, options: HolderOptions, ports: HoldingPorts) {
    this.name = options.partition;
    this.ownerId = ownerOf(options.partition);
    this.handle = handle;
    this.isOwn = options.isOwn;
    this.#ports = ports;
    this.sinceMs = ports.clock.nowMs();
    this.holder = new PartitionHolder(options, this.#holderPorts());
    const { clock, packer, log, mirrors, adopted: mail, counters } = ports;
    this.#adoptions = new Adoptions(this.name, handle, {
      clock, packer, log, mirrors, mail, counters,
      fence: (copy) => { this.#fence(copy, this.holder.term, FENCE_JOIN, undefined, 0); },
      onAdopted: (copy) => { this.holder.onAdopted(copy, this.#nowMs); },
      onGone: (copy) => { this.holder.onGivenUpGone(copy, this.#nowMs); },
    });
  }

  get #partitionOptions(): PartitionOptions {
    const { handle, name, isOwn } = this;
    return { handle, name, isOwn, minReplicas: this.#ports.mirrors.options.minReplicas };
  }

  get #nowMs(): number {
    return this.#ports.clock.nowMs();
  }

  tick(nowMs: number): void {
    this.holder.tick(nowMs);
    this.#settle();
    // A store is told that its copy is to be taken in before that begins.
    this.#clear(nowMs);
    this.#adoptions.tick(nowMs);
    this.#relocate();
    if (this.#isStopping && !this.#isQuietTold && this.partition !== undefined && isQuiet(this.partition)) {
      this.#isQuietTold = true;
      this.holder.onQuiet(nowMs);
    }
  }

  /** Whole here, and without mail, for so long. */
  emptyForMs(nowMs: number): number {
    const { partition } = this;
    const isEmpty = partition !== undefined && partition.length === 0 && !partition.isRecovering;
    if (!isEmpty) this.#emptySinceMs = Infinity;
    else if (this.#emptySinceMs === Infinity) this.#emptySinceMs = nowMs;
    return isEmpty ? nowMs - this.#emptySinceMs : 0;
  }

  /** Another process has links to all copies that count: it could go on. */
  isReachedBy(other: HolderId, nowMs: number): boolean {
    return this.#reach.reaches(other, this.holder.members, nowMs);
  }

  giveTo(to: HolderId, nowMs: number): void {
    this.goesTo = to;
    this.#givingSinceMs = nowMs;
    if (to.incarnation === 0) this.holder.end(nowMs);
    else this.holder.handBack(to, nowMs);
  }

  mayGive(nowMs: number): boolean {
    return nowMs >= this.#giveAtMs;
  }

  /**
   * A next hop that does not answer a final dot would hold up what is in other queues, for minutes: these go
   * on. Queues with an attempt that was begun begin no other, so that it can go in the end.
   */
  keepIfLate(nowMs: number): void {
    if (nowMs - this.#givingSinceMs < GIVE_MS) return;
    const attempts = this.partition?.inFlightCount ?? 0;
    this.holder.keep(nowMs);
    if (this.holder.state === HolderState.HANDING_BACK) return;
    if (!this.#isHeldBack) {
      const why = attempts > 0 ? 'an attempt that was begun in it does not end'
        : 'a copy of it lacks changes, or a client waits for its reply';
      const text = `a partition stays here for now: ${why}`;
      this.#ports.log.warn('takeover', text, { partition: this.name, attempts });
    }
    this.#isHeldBack = true;
    this.#heirMs = nowMs;
    this.#giveAtMs = nowMs + GIVE_AGAIN_MS;
    for (const queue of this.partition?.queues.values() ?? []) queue.isHeldBack = queue.inFlightCount > 0;
  }

  /**
   * Whether somebody is to have it. Nobody for a while: its queues begin what they have; it is not tried
   * again any sooner for that.
   */
  noteHeir(isThere: boolean, nowMs: number): void {
    if (isThere) this.#heirMs = nowMs;
    if (!this.#isHeldBack || nowMs - this.#heirMs < NO_HEIR_MS || this.partition === undefined) return;
    this.#isHeldBack = false;
    for (const queue of this.partition.queues.values()) queue.isHeldBack = false;
    this.#ports.wake(this.partition);
  }

  /** By an order it begins empty, unless a copy is left, or comes back before it does. */
  noteGivenUp(by: OrderedBy): void {
    const { state } = this.holder;
    if (state === HolderState.FOUNDING || state === HolderState.CLAIMING) this.#givenUpBy = by;
  }

  // ── links ───────────────────────────────────────────────────────────────────────────────────────

  onLinkUp(store: StorePort): void {
    const fenced = this.#fenced.get(store.storeId);
    if (fenced !== undefined && fenced.bootId !== store.bootId) this.#fenced.delete(store.storeId);
    this.holder.onLinkUp(store.storeId, store.bootId, this.#nowMs);
    this.#settle();
  }

  onLinkDown(store: StorePort): void {
    this.#fenced.delete(store.storeId);
    this.#reach.onLinkLost(store.storeId);
    this.#adoptions.onLinkDown(store);
    this.#tailsAreLost(store);
    this.holder.onLinkDown(store.storeId, this.#nowMs);
    this.#settle();
  }

  /** What was asked on the other path is not answered. Mirrors have attached what they feed already. */
  onLinkSwitched(store: StorePort): void {
    this.#reach.onLinkLost(store.storeId);
    this.#adoptions.onLinkSwitched(store);
    if (store.storeId === this.#source?.storeId) {
      for (const behind of this.#behind.splice(0)) this.#askTail(behind);
    }
    this.#settle();
  }

  onFenced(store: StorePort, answer: Fenced): void {
    const nowMs = this.#nowMs;
    const { storeId, bootId } = store;
    if (answer.how === FENCE_FOUND) this.holder.onFounded(storeId, bootId, answer.term);
    else if (answer.how === FENCE_FILL) {
      const row = this.partition?.rowAt(store);
      if (row !== undefined) this.partition?.set?.onTermTaken(row);
    } else if (!this.#adoptions.onFenced(store, answer)) {
      this.#fenced.set(storeId, { bootId, answer, atMs: nowMs });
      if (this.#isBehind(store, answer)) this.#askTail({ store, bootId, answer, atMs: nowMs });
      else this.#align(storeId, bootId, answer);
    }
    this.#settle();
  }

  #align(storeId: string, bootId: string, answer: Fenced): void {
    this.holder.onFenced(
      storeId, bootId, { term: answer.term, at: positionOf(answer), olderLeaseMs: answer.olderLeaseMs },
      this.#nowMs,
    );
  }

  onDeclined(store: StorePort, { reason, asked, known, told }: Declined): void {
    const { mirrors } = this.#ports;
    if (reason === DECLINED_NO_COPY) this.#adoptions.onNoCopy(store);
    if (reason === DECLINED_FULL && this.partition !== undefined) {
      mirrors.putOff(store, this.partition, this.#nowMs);
    }
    this.holder.onDeclined(store.storeId, store.bootId, { reason, asked, term: known, told }, this.#nowMs);
    this.#settle();
  }

  onAsked(store: StorePort, { hasCopy, leaseLeftMs, termNumber, told }: Asked): void {
    this.#reach.onAsked(store.storeId, store.bootId, leaseLeftMs, this.#nowMs);
    const answer = { hasCopy, leaseLeftMs, termNumber, told };
    this.holder.onAsked(store.storeId, store.bootId, answer, this.#nowMs);
    this.#settle();
  }

  onTold(store: StorePort, { epoch, isKept }: Told): void {
    const cleared = this.#cleared.get(store.storeId);
    if (cleared?.bootId === store.bootId) cleared.isTold = isKept;
    const { record, set } = this.holder;
    if (isKept) set?.onTold(store.storeId, store.bootId, epoch, this.#nowMs);
    // It knows of another record: of which?
    else if (set !== undefined && record !== undefined) this.#ask(store.storeId, record.holder);
  }

  get isNew(): boolean {
    return this.#isNew;
  }

  onFenceNotice(store: StorePort, bootId: string, term: Term): void {
    this.holder.onFenceNotice(store.storeId, bootId, term, this.#nowMs);
  }

  onTailed({ found, firstNumber, rows }: Tailed, bodies: Uint8Array): void {
    const behind = this.#behind.shift();
    if (behind === undefined) return;
    const { store, bootId, answer } = behind;
    if (found && this.partition !== undefined && firstNumber === answer.number + 1) {
      this.#ports.mirrors.importTail(
        this.partition, firstNumber, rows, bodies, answer.digestA, answer.digestB,
      );
    }
    this.#align(store.storeId, bootId, answer);
    this.#settle();
  }

  /** False when it was not asked for here: entries of a copy that was given up. */
  onBlock(store: StorePort, block: Block, bodies: Uint8Array): boolean {
    const isOurs = this.#adoptions.onBlock(store, block, bodies);
    if (isOurs) this.#settle();
    return isOurs;
  }

  /** Everything of it is here. */
  onWhole(): void {
    this.holder.onReadComplete(this.#nowMs);
    this.#settle();
  }

  // ── register ────────────────────────────────────────────────────────────────────────────────────

  onRecord(ticket: number, stamped: Parameters<RegisterSink['onRecord']>[1]): void {
    this.holder.onRecord(ticket, stamped, this.#nowMs);
    this.#settle();
  }

  onApplied(ticket: number, revision: string): void {
    this.holder.onApplied(ticket, revision, this.#nowMs);
    this.#settle();
  }

  onNoAnswer(ticket: number): void {
    this.holder.onNoAnswer(ticket, this.#nowMs);
  }

  onSessionTied(ticket: number, sessionId: number): void {
    this.holder.onSessionTied(ticket, sessionId);
  }

  onRules(ticket: number): void {
    this.#ports.obeyRules();
    this.holder.onRules(ticket, this.#nowMs);
    this.#settle();
  }

  onNews(): void {
    this.holder.onNews(this.#nowMs);
    this.#settle();
  }

  // ── what the machine does ───────────────────────────────────────────────────────────────────────

  #holderPorts(): HolderPorts {
    const { register, log } = this.#ports;
    return {
      register: register.portOf(this.name, this),
      stores: {
        all: () => this.#ports.mirrors.stores.map(({ storeId }) => storeId),
        areAllKnown: () => this.#ports.areStoresKnown(),
        bootOf: (storeId) => this.#bootOf(storeId),
        ask: (storeId, holder) => { this.#ask(storeId, holder); },
        fence: (member, term, provenDead) => { this.#fence(member, term, FENCE_JOIN, provenDead, 0); },
        found: (storeId, bootId, term, knownEpoch) => { this.#found({ storeId, bootId }, term, knownEpoch); },
        release: (member) => { this.#release(member); },
      },
      members: {
        lastNumber: () => this.partition?.lastNumber ?? 0,
        isInHistory: (at) => this.#isInHistory(at),
        lease: (storeId) => leaseAt(this.#ports.mirrors, storeId),
        isUp: (storeId, bootId) => this.#isUp(storeId, bootId),
        chooseStore: (taken, only) => this.#chooseStore(taken, only),
        align: (member) => { this.#fence(member, this.holder.term, FENCE_JOIN, undefined, 0); },
        startTail: (member, after) => {
          const { mirrors } = this.#ports;
          this.#withRow(member, (partition, row) => { mirrors.startTail(partition, row, after); });
        },
        startFill: (member) => {
          this.#withRow(member, (partition, row) => { this.#ports.mirrors.startFill(partition, row); });
        },
        tell: (member, record, isOut) => { this.#tell(member, record, isOut); },
        onCommitted: () => { this.partition?.advance(); },
        onWentBack: ({ storeId }, changes) => { this.#ports.onWentBack(storeId, this.name, changes); },
      },
      memory: {
        read: (source, at) => { this.#read(source, at); },
        readOn: (source) => { this.#ports.readings.switchTo(this.handle, source); },
        begin: (isLoss) => { this.#begin(isLoss); },
        noteLoss: () => { this.#noteLoss('it goes on with what was set aside before'); },
        forget: () => { this.#forget(); },
        stop: () => { this.#stop(); },
        resume: () => { this.#resume(); },
        adopt: (copy) => { this.#adoptions.add(copy); },
      },
      mayBegin: () => this.#ports.mayBegin(this.name),
      isProvenDead: (holder) => register.isProvenDead(holder),
      session: () => register.session(),
      nonce: () => 1 + Math.floor(this.#ports.random() * NONCES),
      wallSeconds: () => Math.floor(this.#ports.clock.wallMs() / 1000),
      trace: (event) => { this.#trace(event, log); },
    };
  }

  /** What another event made due: the machine is not entered twice. */
  #settle(): void {
    if (this.#history === History.DUE && this.holder.set !== undefined) {
      this.#history = History.KNOWN;
      this.holder.onHistoryRead(this.#nowMs);
    }
    const { state } = this.holder;
    if (this.#foundingMs !== -Infinity && state !== HolderState.FOUNDING && state !== HolderState.CLAIMING) {
      this.#foundingMs = -Infinity;
      this.#ports.mirrors.endFounding(this.handle);
    }
    const epoch = this.holder.record?.epoch ?? 0;
    if (epoch === this.#toldEpoch) return;
    if (epoch !== 0 && this.#toldEpoch !== 0) this.#ports.counters.epochs += 1;
    this.#toldEpoch = epoch;
    this.#ports.mirrors.stateVersion += 1;
  }

  #trace(event: string, log: EventLog): void {
    this.sinceMs = this.#nowMs;
    this.#ports.mirrors.stateVersion += 1;
    const { state } = this.holder;
    // Each gateway of a group looks at all partitions of the others, again and again; and at its own once.
    const isLook = state === HolderState.IDLE || state === HolderState.ASKING;
    if (state === HolderState.FOUNDING) this.#isNew = true;
    if (isLook || state === HolderState.HOLDER) this.#givenUpBy = undefined;
    const isQuiet = this.#isNew || (isLook && !(this.isOwn && this.#hasServed));
    log[isQuiet ? 'debug' : 'info']('partition', event);
    if (state !== HolderState.HOLDER) return;
    this.#hasServed = true;
    if (this.#isNew) this.#ports.counters.founded += 1;
    this.#isNew = false;
  }

  #bootOf(storeId: string): string {
    const store = this.#ports.mirrors.storeOf(storeId);
    return store?.isUp === true ? store.bootId : '';
  }

  #isUp(storeId: string, bootId: string): boolean {
    const { mirrors } = this.#ports;
    const store = mirrors.storeAt({ storeId, bootId });
    return store !== undefined && !mirrors.isPutOff(store, this.handle, this.#nowMs);
  }

  #ask(storeId: string, holder: HolderId): void {
    const store = this.#ports.mirrors.storeOf(storeId);
    if (store?.isUp !== true) return;
    this.#reach.noteAsked(storeId, holder);
    store.request(ASK, encodeAsk(this.#ports.packer, { partition: this.name, holder }), [], 0);
    this.#ports.mirrors.askFlush();
  }

  #fence(
    member: RecordedMember, term: Term, how: typeof FENCE_JOIN | typeof FENCE_FOUND,
    provenDead: HolderId | undefined, number: number,
  ): void {
    const store = this.#ports.mirrors.storeAt(member);
    if (store === undefined) return;
    this.#ports.mirrors.fence(store, {
      handle: this.handle, partition: this.name, term, how, provenDead: provenDead?.incarnation ?? 0, number,
    });
  }

  #found(member: RecordedMember, term: Term, knownEpoch: number): void {
    this.#ports.mirrors.foundAt(this.handle, member.storeId);
    this.#fence(member, term, FENCE_FOUND, undefined, knownEpoch);
  }

  #release(member: RecordedMember): void {
    const store = this.#ports.mirrors.storeAt(member);
    const outbox = store === undefined ? undefined : this.#ports.mirrors.outboxOf(store);
    outbox?.request(RELEASE, encodeRelease(this.#ports.packer, { handle: this.handle }));
    this.#ports.mirrors.askFlush();
  }

  #tell(member: RecordedMember, record: PartitionRecord, isOut: boolean): void {
    const { mirrors, packer } = this.#ports;
    const store = mirrors.storeOf(member.storeId);
    if (store?.isUp !== true) return;
    // The boot that was to be told is gone with all that it knew.
    if (store.bootId !== member.bootId) {
      this.holder.set?.onTold(member.storeId, member.bootId, record.epoch, this.#nowMs);
    } else {
      store.request(TELL, encodeTell(packer, { partition: this.name, record, isOut }), [], 0);
      mirrors.askFlush();
    }
  }

  #isInHistory(at: CopyPosition): boolean {
    const { partition } = this;
    return partition !== undefined && at.number >= 0 && at.number <= partition.lastNumber
      && this.#ports.mirrors.stands(partition, at.number, at.digestA, at.digestB);
  }

  #chooseStore(taken: readonly string[], only: string): { storeId: string; bootId: string } | undefined {
    const { mirrors } = this.#ports;
    this.#noteFounding();
    const wanted = only === '' ? mirrors.rebalance.targetOf(this.name) : only;
    const isBarred = ({ storeId }: StorePort): boolean =>
      taken.includes(storeId) || (wanted !== '' && storeId !== wanted);
    const barred = mirrors.stores.filter(
      (store) => isBarred(store) || mirrors.isPutOff(store, this.handle, this.#nowMs),
    );
    const staying = mirrors.stores.filter(({ storeId }) => this.#isStaying(storeId, taken));
    const [store] = mirrors.placement.choose(1, barred, staying, this.ownerId);
    return store === undefined ? undefined : { storeId: store.storeId, bootId: store.bootId };
  }

  /**
   * What is being founded counts where it will be: else all partitions of a start would go to the same
   * stores.
   */
  #noteFounding(): void {
    const nowMs = this.#nowMs;
    if (this.holder.state !== HolderState.FOUNDING || this.#foundingMs === nowMs) return;
    this.#foundingMs = nowMs;
    this.#ports.mirrors.beginFounding(this.handle);
  }

  /**
   * Its host is to be kept clear of: a copy there stays; or, while it is founded, has just been asked for.
   */
  #isStaying(storeId: string, taken: readonly string[]): boolean {
    const { set } = this.holder;
    if (set === undefined) return taken.includes(storeId);
    return set.rows.some((row) => row.storeId === storeId && row.isInStep && !row.isUnwanted);
  }

  #withRow(member: RecordedMember, act: (partition: Partition, row: PartitionMember) => void): void {
    const row = this.holder.set?.rowOf(member.storeId, member.bootId);
    if (row !== undefined && this.partition !== undefined) act(this.partition, row);
  }

  /** Copies at stores that are drained, about to stop, or have more than others, move away. */
  #relocate(): void {
    const { placement, rebalance } = this.#ports.mirrors;
    for (const row of this.partition?.rows ?? []) {
      const isMoving = rebalance.isLeaving(this.name, row.storeId);
      const isAvoided = isMoving || placement.isAvoided(row.storeId);
      if (isAvoided && row.isRecorded && !row.isUnwanted) {
        this.holder.relocate(row.storeId, !isMoving && !placement.drained.has(row.storeId));
      } else if (!isAvoided && row.isUnwanted) {
        this.holder.set?.stay(row.storeId);
      }
    }
  }

  /** What holders before us left behind at other stores, and nobody told them, goes. */
  #clear(nowMs: number): void {
    const { set, record, state } = this.holder;
    if (set === undefined || record === undefined) return;
    if (state !== HolderState.HOLDER || !set.records.isSettled) return;
    for (const { storeId, bootId, isUp } of this.#ports.mirrors.stores) {
      const known = this.#cleared.get(storeId);
      const isGivenUp = isMemberOf(record.gaveUp, storeId, bootId);
      const isSame = known?.bootId === bootId && known.isGivenUp === isGivenUp;
      if (!isUp || (isSame && (known.isTold || nowMs - known.sentMs < CLEAR_AGAIN_MS))) continue;
      if (set.rows.some((row) => row.storeId === storeId)) continue;
      this.#cleared.set(storeId, { bootId, isGivenUp, isTold: false, sentMs: nowMs });
      this.#tell({ storeId, bootId }, record, !isGivenUp);
    }
  }

  // ── memory ──────────────────────────────────────────────────────────────────────────────────────

  #read(source: RecordedMember, at: CopyPosition): void {
    const { registry, recovered, readings, mirrors } = this.#ports;
    const nowMs = this.#nowMs;
    const partition = registry.adopt(this.#partitionOptions, this.holder);
    partition.adopt(at.number, at.digestA, at.digestB);
    this.partition = partition;
    this.#adoptions.begin(partition, false);
    const copy = this.#fenced.get(source.storeId);
    if (copy !== undefined) {
      const { answer, atMs } = copy;
      recovered.begin(
        partition, answer, answer.holderWallMs === 0 ? 0 : answer.holderWallMs + Math.floor(nowMs - atMs),
      );
    }
    if (!this.isOwn) this.#ports.counters.takeovers += 1;
    this.#source = { storeId: source.storeId, bootId: source.bootId };
    this.#adoptedNumber = at.number;
    this.#history = History.DUE;
    readings.begin(this.handle, this.name, this.isOwn, source, at.number, copy?.answer.bytes ?? 0);
    mirrors.askFlush();
  }

  /** It lacks changes from before we came, which the ring does not have: the copy that was read may. */
  #isBehind(store: StorePort, { isComplete, number, digestA, digestB }: Fenced): boolean {
    const { partition } = this;
    if (partition === undefined || this.#history !== History.KNOWN) return false;
    if (store.storeId === this.#source?.storeId) return false;
    return isComplete && number < this.#adoptedNumber
      && !this.#ports.mirrors.stands(partition, number, digestA, digestB);
  }

  #askTail(behind: Behind): void {
    const { mirrors, packer } = this.#ports;
    const { number, digestA, digestB } = behind.answer;
    // A later boot of its store knows nothing of what was read.
    const source = this.#source === undefined ? undefined : mirrors.storeAt(this.#source);
    const outbox = source === undefined ? undefined : mirrors.outboxOf(source);
    if (outbox === undefined) {
      this.#align(behind.store.storeId, behind.bootId, behind.answer);
      return;
    }
    this.#behind.push(behind);
    outbox.request(TAIL, encodeTail(packer, { handle: this.handle, number, digestA, digestB }));
    mirrors.askFlush();
  }

  /** The copy that would tell what others lack is away: they are filled. */
  #tailsAreLost(away: StorePort): void {
    if (away.storeId !== this.#source?.storeId) return;
    for (const { store, bootId, answer } of this.#behind.splice(0)) {
      if (store.isUp && store.bootId === bootId) this.#align(store.storeId, bootId, answer);
    }
  }

  #noteLoss(what: string): void {
    const { log, counters } = this.#ports;
    counters.losses += 1;
    this.#ports.onLoss(this.#givenUpBy);
    log.error(
      'recovery', `every copy of a partition is lost, or was given up: ${what}. If a store has only started `
        + 'without its disk: start it again with it, and what it had is taken in',
      { partition: this.name },
    );
  }

  #begin(isLoss: boolean): void {
    const { registry } = this.#ports;
    if (isLoss) this.#noteLoss('it begins empty');
    this.partition = registry.adopt(this.#partitionOptions, this.holder);
    this.partition.adopt(0, 0, 0);
    this.#adoptions.begin(this.partition, true);
    this.#history = History.KNOWN;
  }

  #forget(): void {
    const { partition } = this;
    this.#ports.readings.remove(this.handle);
    this.#adoptions.end();
    this.#reach.forget();
    this.#fenced.clear();
    this.#cleared.clear();
    this.#history = History.NONE;
    this.#source = undefined;
    this.#behind = [];
    this.partition = undefined;
    const isHandedBack = this.holder.state === HolderState.HANDING_BACK;
    this.#isStopping = false;
    this.#giveAtMs = -Infinity;
    this.#isHeldBack = false;
    if (partition === undefined) return;
    const { counters, log } = this.#ports;
    const { set } = this.holder;
    if (set?.isPartial === true && set.rows.every((row) => row.isGone)) {
      const text = 'the only copy of a partition is gone before all of it was read here: what was read, and '
        + 'what came since, is lost with it';
      log.error('recovery', text, { partition: this.name, messages: partition.length });
      this.#ports.forget(partition);
      return;
    }
    if (isHandedBack) counters.handedBack += this.isOwn ? 0 : 1;
    else counters.lost += 1;
    log[isHandedBack ? 'info' : 'error']('takeover', isHandedBack ? this.#givenText()
      : 'a partition is another process\'s now: nothing of it is sent or delivered here any more',
    { partition: this.name, messages: partition.length });
    this.#ports.forget(partition);
  }

  #givenText(): string {
    if (this.goesTo?.incarnation === 0) return 'a partition that nobody needs any more is empty: it ends';
    return this.isOwn
      ? 'a partition of this retired gateway is handed on'
      : 'a partition is handed back to its owner';
  }

  #stop(): void {
    this.#isStopping = true;
    this.#isQuietTold = false;
    if (this.partition !== undefined) this.partition.isLeaving = true;
  }

  #resume(): void {
    this.#isStopping = false;
    if (this.partition === undefined) return;
    this.partition.isLeaving = false;
    this.#ports.wake(this.partition);
  }
}

/** A row keeps what it is given, also at a store that this process may yet learn of. */
function leaseAt(mirrors: Mirrors, storeId: string): LeaseView {
  return mirrors.storeOf(storeId)?.lease ?? {
    get bootId() { return mirrors.storeOf(storeId)?.lease.bootId ?? ''; },
    get endsMs() { return mirrors.storeOf(storeId)?.lease.endsMs ?? -Infinity; },
  };
}

function positionOf(answer: Fenced): CopyPosition {
  const { isComplete, number, lastTerm: term, digestA, digestB } = answer;
  return { number: isComplete ? number : -1, term, digestA, digestB };
}

/** Nothing of it is under way: no attempt, no client that waits. */
function isQuiet(partition: Partition): boolean {
  return partition.inFlightCount === 0 && partition.waitingCount === 0 && !partition.isDirty;
}
