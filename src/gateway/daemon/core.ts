/**
 * The gateway without its sockets: queues, mirrors, commit point, settlement, reports and recovery joined
 * together. Inbound speaks to it as Reception, outbound as DeliverySource, the links as events.
 *
 *   submit ─► acceptance ─► mirrors ─► commit point ─► ready ─► take ─► settle ─► DELETE or ANNOTATE
 *
 * Whatever happens in a turn of the event loop is gathered; endOfTurn() sends it and wakes deliveries.
 * Pure: time, stores, randomness and logs are ports.
 */
import { stockBytesMax } from '../../base/segment-stock.js';
import { Segments, segmentBytesWithin } from '../../base/segments.js';
import { textsBytesMax } from '../../base/text-pool.js';
import type { FenceNotice } from '../../protocol/messages/beat.js';
import type { Refusal } from '../../protocol/messages/refusal.js';
import type { HolderId } from '../../protocol/partition-record.js';
import type { ToAscii } from '../../platform/ports.js';
import type { Reply } from '../../protocol/replies.js';
import type { CoreOptions, CorePorts, RenewedOptions } from './core-options.js';
import { CrashNotes, InHand } from '../local/crash-notes.js';
import { DeliveryRight } from '../mirror/delivery-right.js';
import { Orders } from '../orders/orders.js';
import { Rebinding } from '../orders/rebinding.js';
import { ReportPace } from '../orders/report-pace.js';
import type { RouteNames } from '../orders/selection.js';
import { LocalRules } from '../orders/local-rules.js';
import { QueueRules } from '../orders/queue-rules.js';
import { RuleDesk } from '../orders/rule-desk.js';
import { IDS_PER_ORDINAL, MessageIds } from './message-ids.js';
import { CommitPoint, PendingCommit } from '../mirror/commit-point.js';
import { Mirrors } from '../mirror/mirrors.js';
import { LeavingStores } from '../mirror/set/leaving-stores.js';
import type { Partition } from '../mirror/set/partition.js';
import type { StorePort } from '../mirror/link/store-port.js';
import { Holdings } from '../ownership/holdings.js';
import type { LastHeld } from '../ownership/ownership-register.js';
import { Acceptance } from '../queue/acceptance.js';
import { ContentStore } from '../queue/content-store.js';
import { DeliveryRoom } from '../queue/delivery-room.js';
import { DueBodies } from '../queue/due-bodies.js';
import { DueTimes } from '../queue/due-times.js';
import { Entries } from '../queue/entries.js';
import { EntryTable } from '../queue/entry-table.js';
import { ExpirySweep } from '../queue/expiry-sweep.js';
import { ForgottenQueues } from '../recovered/forgotten-queues.js';
import { HandingOut, Ordered } from '../queue/handing-out.js';
import { MailQueue } from '../queue/mail-queue.js';
import { MemoryGauge } from '../queue/memory-gauge.js';
import { MessageHolds } from '../queue/message-holds.js';
import type { Note } from '../queue/note.js';
import { freshNote } from '../queue/note.js';
import { QueueRegistry } from '../queue/queue-registry.js';
import { Readiness } from '../queue/readiness.js';
import type { ReplyTexts } from '../queue/entry-texts.js';
import { AdoptedMail } from '../recovered/adopted-mail.js';
import { RecoveredQueues } from '../recovered/recovered-queues.js';
import { DelayReports } from '../queue/reports/delay-reports.js';
import { Reports } from '../queue/reports/report-job.js';
import { UntoldWaits } from '../queue/untold-waits.js';
import { ReportWriter } from '../queue/reports/report-writer.js';
import { Settlement } from '../queue/settlement.js';
import type {
  AdmissionVerdict, Delivery, DeliveryQueue, DeliveryResult, DeliverySink, DeliverySource, Envelope,
  Outage, Reception, Route, Router, Submission, SubmissionOutcome,
} from '../mail-types.js';
import { COMMITTED, NO_REPLY, NOT_READY, REFUSED } from '../mail-types.js';
import { WallFrame } from '../queue/wall-frame.js';

/**
 * Share of the memory limit that the changes kept for mirrors may take, whatever the configuration says: they
 * are kept when all mail is delivered.
 */
const RING_SHARE = 1 / 16;
/** Of memory that a recovery has made in one piece: emptying one takes up to half of it elsewhere first. */
const RUN_SHARE = 1 / 16;
const COMPACT_BYTES_PER_TICK = 1024 * 1024;
const SLOW_TICK_MS = 100;

/** Held by those who go by it; renew() writes it. */
interface Followed {
  longestRetryMs: number;
  /** The longest of a message of any class. */
  lifetimeMs: number;
  largestBytes: number;
  /** As DelayReports and ExpirySweep have them. */
  delayMs: number;
  isUnasked: boolean;
}

interface StandingRules {
  readonly local: LocalRules;
  readonly rules: QueueRules;
  readonly desk: RuleDesk;
}

export class GatewayCore implements Reception, DeliverySource {
  readonly bodies: DueBodies;
  readonly entries: Entries;
  readonly mirrors: Mirrors;
  readonly registry: QueueRegistry;
  readonly memory: MemoryGauge;
  readonly commitPoint: CommitPoint;
  readonly holdings: Holdings;
  readonly leaving: LeavingStores;
  readonly recovered: RecoveredQueues;
  readonly reports: Reports;
  readonly #delays: DelayReports;
  readonly holds: MessageHolds;
  readonly orders: Orders;
  readonly rules: QueueRules;
  readonly #localRules: LocalRules;
  readonly ruleDesk: RuleDesk;
  /**
   * What the machine knows of crashes, and what a crash now is to be blamed on (local/crash-note-file.ts).
   */
  readonly crashes = new CrashNotes();
  readonly inHand = new InHand();
  /** Of due times and expiry; heartbeats tell it. */
  readonly frame: WallFrame;
  /** Which routes take new mail. */
  readonly readiness: Readiness;
  readonly #options: CoreOptions;
  readonly #followed: Followed;
  readonly #ports: CorePorts;
  readonly #acceptance: Acceptance;
  readonly #settlement: Settlement;
  readonly #dueTimes: DueTimes;
  readonly #expirySweep: ExpirySweep;
  readonly #right: DeliveryRight;
  readonly #room: DeliveryRoom;
  readonly #forgotten: ForgottenQueues;
  readonly #handingOut: HandingOut;
  readonly #segments: Segments;
  #deliverySink: DeliverySink | undefined;
  #woken: MailQueue[] = [];
  readonly #ids: MessageIds;
  #draining = false;
  #firstUpMs = -1;
  /** Partitions are held, or had their time to come: new mail is not put off for one that comes soon. */
  partitionsAwaited = false;
  #slowTickMs = 0;

  constructor(options: CoreOptions, ports: CorePorts) {
    this.#options = options;
    this.#followed = followedOf({ ...options, largestBytes: options.reading.largestBytes ?? 0 });
    this.#ports = ports;
    const { clock, crc32, packer, log, events } = ports;
    const wake = (queue: MailQueue): void => { this.wake(queue); };
    this.#ids = new MessageIds({ countMax: IDS_PER_ORDINAL }, { drawOrdinal: () => ports.drawOrdinal() });
    const frame = new WallFrame(clock);
    this.frame = frame;
    this.#segments = newSegments(options, ports);
    const table = new EntryTable(options.incarnation % 0x7fffffff);
    const textBounds = { textsBytesMax: textsBytesMax(options.memory.limitBytes) };
    const entries = new Entries(textBounds, table, new ContentStore(this.#segments), crc32);
    this.entries = entries;
    const mirrors = this.#newMirrors();
    this.mirrors = mirrors;
    this.leaving = new LeavingStores({ log, mirrors });
    const memory = new MemoryGauge(options.memory, () => this.#usedBytes(), () => this.#askedBytes());
    this.memory = memory;
    this.bodies = new DueBodies({ entries, memory });
    ({ local: this.#localRules, rules: this.rules, desk: this.ruleDesk } = this.#newRules(ports));
    const registry = this.#newRegistry(table, ports);
    this.registry = registry;
    this.readiness = this.#readinessOf(ports);
    const commitPoint = this.#newCommitPoint();
    this.commitPoint = commitPoint;
    this.#acceptance = new Acceptance(options.acceptance, {
      clock, frame, crc32, packer, registry, mirrors, entries, memory, commitPoint,
      isRefused: (route) => this.rules.refuses(route),
      release: (queue, row) => { this.#releaseEntry(queue, row); },
    });
    const dueTimes = new DueTimes({ clock, onDue: (row) => { this.#onDue(row); }, onWake: wake });
    this.#dueTimes = dueTimes;
    this.#expirySweep = this.#newSweep();
    this.#settlement = new Settlement(this.#followed, {
      clock, frame, crc32, packer, entries, memory, mirrors, dueTimes, events, wake,
      retryDelayMs: (attempts) => ports.retryDelayMs(attempts),
      report: (queue, row, number) => { this.reports.begin(queue, row, number); },
      reportAgain: (queue, row) => { this.reports.resume(queue, row); },
      outageOf: (queue) => this.outageOf(queue),
      onReported: ({ partition }, row) => { this.bodies.onUsed(partition, row); },
    });
    const writer = this.#newReportWriter(ports);
    this.reports = this.#newReports(ports, writer);
    this.#delays = this.#newDelays(writer);
    this.holds = this.#newHolds(ports);
    this.#right = new DeliveryRight({ log, nowMs: () => clock.nowMs(), wake });
    this.recovered = this.#newRecovered(ports);
    this.holdings = this.#newHoldings(options, ports);
    const { reports, recovered } = this;
    this.#forgotten = new ForgottenQueues({ registry, entries, dueTimes, reports, recovered, commitPoint });
    this.#room = new DeliveryRoom({ memory, wake });
    this.orders = this.#newOrders(ports);
    this.#handingOut = new HandingOut({
      clock, log, entries, registry, settlement: this.#settlement, right: this.#right, room: this.#room,
      forgotten: this.#forgotten, bodies: this.bodies, wake,
      ownPaths: ports.ownPaths,
      obeyOrder: (queue, row) => this.orders.left.meetNext(queue, row),
    });
  }

  /** A configured store; its link reports through the onLink… methods. */
  addStore(store: StorePort): void {
    this.mirrors.addStore(store);
  }

  setDeliverySink(sink: DeliverySink): void {
    this.#deliverySink = sink;
  }

  /**
   * The configuration was read anew, and the routes of the router are other ones: what waits goes the way
   * that they say now.
   */
  renew(options: RenewedOptions): void {
    Object.assign(this.#followed, followedOf(options));
    this.#acceptance.renew(options.acceptance);
    this.readiness.renew(this.#ports.router.mailRoutes());
    this.rules.renew();
    this.orders.standing.renew();
  }

  // ---- Reception ----

  /** True when new mail can be taken: the SMTP port is open exactly then. */
  get accepting(): boolean {
    if (this.#draining || !this.partitionsAwaited || this.holdings.isRetired) return false;
    return this.readiness.isReady(this.mirrors.stateVersion);
  }

  get upCount(): number {
    return this.mirrors.stores.filter((store) => store.isUp).length;
  }

  nextMessageId(): number {
    return this.#ids.next();
  }

  admit(route: Route): AdmissionVerdict {
    if (this.#draining) return 'draining';
    if (!this.accepting) return 'not-ready';
    return this.#acceptance.admit(route);
  }

  refusesFrom(reversePath: string, client: string, senderKey: string): boolean {
    return this.rules.refusesFrom(reversePath, client, senderKey);
  }

  refusesTo(address: string, domain: string): boolean {
    return this.rules.refusesTo(address, domain);
  }

  reserve(bytes: number): boolean {
    return this.memory.reserve(bytes);
  }

  release(bytes: number): void {
    this.memory.release(bytes);
  }

  submit(submission: Submission): void {
    if (!this.accepting) {
      submission.settle(NOT_READY);
      return;
    }
    const stored = this.#acceptance.store(submission);
    if (!(stored instanceof PendingCommit)) submission.settle(stored);
  }

  /** No new mail from now on; what is being committed still is. */
  drain(): void {
    this.#draining = true;
  }

  // ---- DeliverySource ----

  take(queue: DeliveryQueue): Delivery | undefined {
    return this.#handingOut.take(queue);
  }

  copyContent(delivery: Delivery, target: Uint8Array, at: number, from: number, bytes: number): void {
    this.entries.copyBody(delivery.entry, target, at, bytes, from);
  }

  settle(delivery: Delivery, result: DeliveryResult): void {
    this.#handingOut.settle(delivery, result);
  }

  /** Asked right before each final dot (G5). */
  mayDeliver(delivery: Delivery): boolean {
    return this.#handingOut.mayDeliver(delivery);
  }

  /** The partition is another process's now: nothing of it is sent or delivered, its memory is given back. */
  forgetPartition(partition: Partition): void {
    this.#right.forget(partition);
    this.#room.forget(partition);
    this.#forgotten.forget(partition);
    // Last: what was to be tried once more is given back at once, and is of no account.
    for (const queue of partition.queues.values()) this.#deliverySink?.forget(queue);
  }

  /** Why its mail does not leave; undefined also where an operator does not let it. */
  outageOf(queue: MailQueue): Outage | undefined {
    return queue.isSuspended ? undefined : this.#deliverySink?.outageOf(queue);
  }

  /** Partitions are here in part, or still to come: what they have is not all known. */
  get isIncomplete(): boolean {
    return this.holdings.expected() !== '' || this.registry.partitions.some((one) => one.isRecovering);
  }

  /** Which route of the configuration a queue is of, and which one has the mail of a queue of that name. */
  get names(): RouteNames & Pick<Router, 'routeOfQueue'> {
    return this.#ports.router;
  }

  get toAscii(): ToAscii {
    return this.#ports.toAscii;
  }

  /** These hosts take the mail of a queue by MX. */
  onWay(queue: DeliveryQueue, hosts: readonly string[]): void {
    if (!(queue instanceof MailQueue)) return;
    queue.mxHosts = hosts;
    this.rules.lookAt(queue);
  }

  /** Envelope of an entry, for those who show it. */
  envelopeOf(row: number): Envelope | undefined {
    return this.#settlement.envelopeOf(row);
  }

  noteOf(row: number, recipientCount: number): Note {
    if (this.entries.isAllAbsent(row)) return freshNote(recipientCount);
    return this.#settlement.noteOf(row, recipientCount);
  }

  /** What next hops said of its recipients, as far as it is still known. */
  textsOf(row: number): ReplyTexts {
    return this.#settlement.textsOf(row).replies;
  }

  // ---- links ----
  onLinkUp(store: StorePort): void {
    if (this.#firstUpMs < 0) this.#firstUpMs = this.#ports.clock.nowMs();
    this.mirrors.onConnected();
    this.holdings.onLinkUp(store);
  }

  /** Another path carries the requests to the same boot of a store. */
  onLinkSwitched(store: StorePort): void {
    this.mirrors.onLinkSwitched(store);
    this.holdings.onLinkSwitched(store);
  }

  onLinkDown(store: StorePort): void {
    this.mirrors.onConnectionLost(store);
    this.holdings.onLinkDown(store);
  }

  onLinkReply(store: StorePort, reply: Reply): void {
    this.holdings.onReply(store, reply);
  }

  /** Of a heartbeat's answer, before it may renew anything. */
  onFenceNotices(store: StorePort, bootId: string, notices: readonly FenceNotice[]): void {
    this.holdings.onFenceNotices(store, bootId, notices);
  }

  onLinkAckedThrough(store: StorePort, sequence: number): void {
    this.mirrors.onAckedThrough(store, sequence);
  }

  onLinkRefusal(store: StorePort, refusal: Refusal): void {
    this.mirrors.onRefusal(store, refusal);
  }

  /** This process, as records name it. */
  get self(): HolderId {
    return this.#ports.ownership.self;
  }

  /** Why the register does not answer; '' while it does. */
  get registerAway(): string {
    return this.#ports.ownership.away;
  }

  /** What others held, as it told last, and when that was. */
  get lastHeld(): { readonly heardMs: number; readonly holders: readonly LastHeld[] } {
    const { ownership } = this.#ports;
    return { heardMs: ownership.heardMs, holders: ownership.heldByOthers() };
  }

  // ---- time ----

  /** Called a few times in a tenth of a second. */
  tick(nowMs: number): void {
    if (!this.partitionsAwaited) {
      const isLate = this.#firstUpMs >= 0 && nowMs - this.#firstUpMs >= this.#options.firstWaitMs;
      this.partitionsAwaited = this.holdings.expected() !== 'soon' || isLate;
      if (this.partitionsAwaited) this.readiness.lookAgain();
    }
    this.mirrors.rebalance.tick(nowMs);
    this.holdings.tick(nowMs);
    this.readiness.tick(nowMs);
    this.commitPoint.tick(nowMs);
    this.#right.look();
    this.#room.look();
    this.#forgotten.tick();
    this.recovered.tick();
    this.bodies.tick(nowMs);
    this.#segments.compact(COMPACT_BYTES_PER_TICK);
    if (nowMs >= this.#slowTickMs) this.#slowTick(nowMs);
    this.#localRules.tick(nowMs);
    this.orders.tick(nowMs);
    this.holds.tick();
  }

  #slowTick(nowMs: number): void {
    this.#slowTickMs = nowMs + SLOW_TICK_MS;
    this.#obeyRules();
    this.#dueTimes.tick(nowMs);
    this.#expirySweep.tick(nowMs);
    this.registry.tick(nowMs);
    this.reports.tick(nowMs);
    this.mirrors.tick();
    this.#segments.keepStock(nowMs, stockBytesMax(this.memory.limitBytes, this.memory.usedBytes));
  }

  /** Sends what the turn changed, then hands woken queues to outbound. */
  endOfTurn(): void {
    this.orders.standing.endOfTurn();
    this.reports.work();
    if (!this.#draining && this.mirrors.sender.mayWait()) this.#ports.requestEndOfTurn();
    else this.mirrors.flush();
    this.#handOut();
    this.holdings.fetchAwaited();
  }

  #handOut(): void {
    const woken = this.#woken;
    if (woken.length === 0) return;
    this.#woken = [];
    for (const queue of woken) {
      queue.isWoken = false;
      // Nobody connects for what may not start.
      const mayStart = queue.readyCount > 0 && queue.routed && !queue.isSuspended
        && !queue.partition.isForgotten;
      if (mayStart) this.#deliverySink?.onReady(queue);
    }
  }

  /** The queue may have something to deliver: looked at when the turn ends. */
  wake(queue: MailQueue): void {
    if (queue.isWoken) return;
    queue.isWoken = true;
    this.#woken.push(queue);
    this.#ports.requestEndOfTurn();
  }

  #newMirrors(): Mirrors {
    const { mirrors, memory: { limitBytes } } = this.#options;
    const ringBytes = Math.min(mirrors.ringBytes, Math.floor(limitBytes * RING_SHARE));
    return new Mirrors({ ...mirrors, ringBytes }, this.#mirrorPorts());
  }

  #newRules(
    { clock, log, ownership: register, localRules: file, router: names, toAscii }: CorePorts,
  ): StandingRules {
    const wake = (queue: MailQueue): void => { this.wake(queue); };
    const local = new LocalRules({ clock, log, register, file });
    const rules = new QueueRules({
      clock, log, told: local, names, toAscii, queues: () => this.registry.queues(), wake,
      obeyOrders: (rules) => { this.orders.obey(rules); },
      caughtBy: (id) => this.orders.standing.caughtBy(id),
    });
    return { local, rules, desk: new RuleDesk({ clock, log, register, rules, local, names, toAscii }) };
  }

  #newRegistry(table: EntryTable, { clock, log }: CorePorts): QueueRegistry {
    const { mirrors, rules } = this;
    return new QueueRegistry({ queuesMax: this.#options.queuesMax }, {
      table, mirrors, log, nowMs: () => clock.nowMs(), expected: () => this.holdings.expected(),
      isAwaitedBack: () => this.holdings.awaitedBack().partitions > 0,
      isSuspended: (route) => rules.suspends(route),
      isUnderOrder: (partition) => this.orders.left.isUnder(partition),
      wake: (queue) => { this.wake(queue); },
    });
  }

  #newCommitPoint(): CommitPoint {
    return new CommitPoint({ timeoutMs: this.#options.commitTimeoutMs }, {
      release: (queue, row) => { this.#releaseEntry(queue, row); },
      withdraw: (queue, row) => this.#withdraw(queue, row),
      settled: (pending, outcome) => { this.#settled(pending, outcome); },
    });
  }

  #newReportWriter(ports: CorePorts): ReportWriter {
    return new ReportWriter({
      entries: this.entries, settlement: this.#settlement, acceptance: this.#acceptance,
      wayTo: ports.reportWay, withTls: (route, need) => ports.router.withTls(route, need),
      events: ports.events, signer: ports.reportSigner, outageOf: (queue) => this.outageOf(queue),
      expiryWallMs: (row, note) => this.holds.expiryWallMs(row, note) + this.frame.aheadMs(),
      nextMessageId: () => this.nextMessageId(),
      compose: (input, ownerId) =>
        this.inHand.during(ownerId, input.envelope.messageId, () => ports.compose(input)),
    });
  }

  #newReports(ports: CorePorts, writer: ReportWriter): Reports {
    return new Reports({
      clock: ports.clock, log: ports.log, events: ports.events, entries: this.entries,
      settlement: this.#settlement, writer,
      admits: ({ partition }, row) => this.#room.admitsExpiry(partition, this.entries.room(row)),
      requestEndOfTurn: () => { ports.requestEndOfTurn(); },
      composeDelay: (queue, row) => this.#delays.compose(queue, row),
      tellDelay: (queue, row, tries, draft) => { this.#delays.tell(queue, row, tries, draft); },
    });
  }

  #newDelays(writer: ReportWriter): DelayReports {
    const { memory, entries } = this;
    return new DelayReports(this.#followed, {
      memory, entries, settlement: this.#settlement, writer,
      lookAgain: (row) => { this.#expirySweep.look(row); },
      begin: (queue, row) => { this.reports.beginDelay(queue, row); },
      onUsed: ({ partition }, row) => { this.bodies.onUsed(partition, row); },
    });
  }

  #newHolds({ clock, log, counters, events }: CorePorts): MessageHolds {
    const { frame, entries, crashes } = this;
    return new MessageHolds({
      clock, frame, log, counters, events, entries, settlement: this.#settlement, crashes,
      longestRetryMs: () => this.#followed.longestRetryMs,
      wake: (queue) => { this.wake(queue); },
      noteOwing: (queue, row) => { this.recovered.noteOwing(queue, row); },
    });
  }

  #newOrders({ clock, log, ownership, crc32, packer, router, toAscii }: CorePorts): Orders {
    const { frame, entries, registry, holds, memory, mirrors, recovered } = this;
    const { endingReserve } = this.#acceptance;
    const settlement = this.#settlement;
    const rebinding = new Rebinding({
      crc32, packer, log, toAscii, router, entries, memory, mirrors, endingReserve, registry, settlement,
      holds, recovered,
    });
    return new Orders(this.#options.incarnation, {
      gatewayId: ownership.self.gatewayId, clock, frame, log, entries, registry, holds, room: this.#room,
      settlement, rebinding, reports: new ReportPace(), register: ownership, names: router, toAscii,
      wake: (queue) => { this.wake(queue); },
      isIncomplete: () => this.isIncomplete,
      hasten: (queue) => {
        this.#deliverySink?.hasten(queue);
        this.wake(queue);
      },
    });
  }

  #newRecovered({ clock, crc32, packer, log, router }: CorePorts): RecoveredQueues {
    const { frame, registry, mirrors, entries, reports, memory, holds } = this;
    return new RecoveredQueues(this.#followed, {
      clock, frame, crc32, packer, log, router, registry, mirrors, entries, reports, memory, holds,
      dueTimes: this.#dueTimes, settlement: this.#settlement,
      wake: (queue) => { this.wake(queue); },
      onBody: (partition, row) => {
        this.bodies.onCame(partition, row);
        this.#expirySweep.look(row);
      },
    });
  }

  #newHoldings(options: CoreOptions, ports: CorePorts): Holdings {
    const { group, rescue, leaseMs, orphans, gatewayId, partitions, reading } = options;
    const { replicas, minReplicas, replaceAfterMs } = options.mirrors;
    const { clock, crc32, packer, log, counters, ownership } = ports;
    const { entries, memory, recovered, mirrors, registry } = this;
    const followed = this.#followed;
    return new Holdings({
      ...reading, get largestBytes() { return followed.largestBytes; },
      gatewayId, partitions, group, rescue, leaseMs, orphans,
      replicas, minReplicas, replaceAfterMs,
    }, {
      clock, packer, log, register: ownership, mirrors, registry, recovered, memory, counters,
      adopted: new AdoptedMail({ crc32, log, entries, memory, recovered }),
      absent: entries.absent,
      random: () => ports.random(), areStoresKnown: () => ports.areStoresKnown(),
      forget: (partition) => { this.forgetPartition(partition); },
      obeyRules: () => { this.#obeyRules(); },
      isPassedOver: (partition) => this.orders.keeps(partition),
      wake: (partition) => { for (const queue of partition.queues.values()) this.wake(queue); },
    });
  }

  /** What operators have left in the register. */
  #obeyRules(): void {
    this.rules.look();
    this.orders.left.look();
  }

  /** Of bodies, by recovery. */
  #askedBytes(): number {
    return this.entries.absent.askedBytes;
  }

  #usedBytes(): number {
    const { sender, backlogBytes } = this.mirrors;
    return this.entries.usedBytes + sender.changeBytes + backlogBytes + this.#ports.heldElsewhereBytes();
  }

  #newSweep(): ExpirySweep {
    const untold = new UntoldWaits({
      entries: this.entries, events: this.#ports.events, queueOf: (row) => this.registry.queueOf(row),
      envelopeOf: (row) => this.envelopeOf(row), noteOf: (row, count) => this.noteOf(row, count),
      outageOf: (queue) => this.outageOf(queue),
    });
    return new ExpirySweep(this.#followed, {
      frame: this.frame, table: this.entries.table, log: this.#ports.log,
      onExpired: (row) => { this.#expire(row); },
      onWaiting: (row) => untold.tell(row),
      onDelayed: (row) => {
        const queue = this.registry.queueOf(row);
        return queue !== undefined && !this.#isOrdered(queue, row) && this.#delays.onOld(queue, row);
      },
    });
  }

  #readinessOf({ router, clock }: CorePorts): Readiness {
    return new Readiness({
      routes: router.mailRoutes(),
      wallMs: () => clock.wallMs(),
      admissionOf: (route) => this.#acceptance.admit(route),
      canFound: () => this.registry.canTake(),
    });
  }

  #mirrorPorts(): ConstructorParameters<typeof Mirrors>[1] {
    const ports = this.#ports;
    return {
      packer: ports.packer,
      log: ports.log,
      nowMs: () => ports.clock.nowMs(),
      ringRoomBytes: () => this.memory.reserveBytes - this.memory.usedBytes + this.mirrors.ring.usedBytes,
      requestFlush: () => { ports.requestEndOfTurn(); },
      hostOfGateway: (gatewayId) => ports.ownership.hostOf(gatewayId),
      refillEntries: (partition) =>
        this.entries.refillView(partition, (row) => { this.bodies.onUsed(partition, row); }),
    };
  }

  /** A committed entry is due. */
  #releaseEntry(queue: MailQueue, row: number): void {
    queue.makeReady(row, false);
    if (this.orders.standing.isAny) this.orders.standing.cameIn(queue, row);
    this.wake(queue);
  }

  #withdraw(queue: MailQueue, row: number): number {
    const { partition } = queue;
    const position = this.entries.table.position.get(row);
    const following = this.entries.remove(queue, row);
    this.mirrors.onUnlinked(partition, row, following);
    return partition.withdraw(position);
  }

  #settled(pending: PendingCommit, outcome: SubmissionOutcome): void {
    if (outcome === COMMITTED) this.#ports.events.committed(this.#ports.clock.nowMs() - pending.startedMs);
    else if (outcome === REFUSED || outcome === NO_REPLY) this.#ports.events.refused(outcome === REFUSED);
    pending.sink.settle(outcome);
  }

  /** The time of an entry that rests is up. */
  #expire(row: number): void {
    const queue = this.registry.queueOf(row);
    if (queue === undefined || !this.holds.mayExpire(queue, row)) return;
    if (this.#isOrdered(queue, row)) return;
    const { partition } = queue;
    // Its report quotes the body, and its change takes memory; the sweep comes round again.
    if (this.entries.isAbsent(row)) this.entries.absent.wantLater(partition, row);
    else if (this.#room.admitsExpiry(partition, this.entries.room(row))) this.#settlement.expire(queue, row);
  }

  /** An order has been done to it, or will be: nothing else becomes of it now. */
  #isOrdered(queue: MailQueue, row: number): boolean {
    return queue.partition.isUnderOrder && this.orders.left.meet(queue, row) !== Ordered.NOT;
  }

  #onDue(row: number): void {
    const queue = this.registry.queueOf(row);
    if (queue === undefined) return;
    queue.uncountDeferred(row);
    queue.makeReady(row, false);
    this.wake(queue);
  }
}

function followedOf({ longestRetryMs, acceptance, largestBytes, delayReports }: RenewedOptions): Followed {
  const { lifetimeMs, bounceLifetimeMs } = acceptance;
  const { afterMs: delayMs, isUnasked } = delayReports;
  return {
    longestRetryMs, lifetimeMs: Math.max(lifetimeMs, bounceLifetimeMs), largestBytes, delayMs, isUnasked,
  };
}

function newSegments(
  { memory: { limitBytes }, segmentBytes }: CoreOptions, { touchPages }: CorePorts,
): Segments {
  return new Segments({
    segmentBytes: segmentBytesWithin(limitBytes, segmentBytes),
    runBytesMax: Math.floor(limitBytes * RUN_SHARE), touchPages,
  });
}
