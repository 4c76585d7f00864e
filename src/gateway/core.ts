/**
 * The gateway without its sockets: queues, mirrors, commit point, settlement, reports and recovery joined
 * together. Inbound speaks to it as Reception, outbound as DeliverySource, the links as events.
 *
 *   submit ─► acceptance ─► mirrors ─► commit point ─► ready ─► take ─► settle ─► DELETE or ANNOTATE
 *
 * Whatever happens in a turn of the event loop is gathered; endOfTurn() sends it and wakes deliveries.
 * Pure: time, stores, randomness and logs are ports.
 */
import { stockBytesMax } from '../base/segment-stock.js';
import { Segments, segmentBytesWithin } from '../base/segments.js';
import { textsBytesMax } from '../base/text-pool.js';
import type { FenceNotice } from '../protocol/messages/beat.js';
import type { Refusal } from '../protocol/messages/refusal.js';
import type { HolderId } from '../protocol/partition-record.js';
import type { Reply } from '../protocol/replies.js';
import type { CoreOptions, CorePorts } from './core-options.js';
import { CrashNotes, InHand } from './local/crash-notes.js';
import { DeliveryRight } from './mirror/delivery-right.js';
import { IDS_PER_ORDINAL, MessageIds } from './message-ids.js';
import { CommitPoint, PendingCommit } from './mirror/commit-point.js';
import { Mirrors } from './mirror/mirrors.js';
import { Moves } from './mirror/moves.js';
import type { Partition } from './mirror/partition.js';
import type { StorePort } from './mirror/store-port.js';
import { Holdings } from './ownership/holdings.js';
import { Acceptance } from './queue/acceptance.js';
import { ContentStore } from './queue/content-store.js';
import { DeliveryRoom } from './queue/delivery-room.js';
import { DueBodies } from './queue/due-bodies.js';
import { DueTimes } from './queue/due-times.js';
import { Entries } from './queue/entries.js';
import { EntryTable } from './queue/entry-table.js';
import { ExpirySweep } from './queue/expiry-sweep.js';
import { ForgottenQueues } from './queue/forgotten-queues.js';
import { HandingOut } from './queue/handing-out.js';
import type { MailQueue } from './queue/mail-queue.js';
import { MemoryGauge } from './queue/memory-gauge.js';
import { MessageHolds } from './queue/message-holds.js';
import type { Note } from './queue/note.js';
import { freshNote } from './queue/note.js';
import { QueueRegistry } from './queue/queue-registry.js';
import { Readiness } from './queue/readiness.js';
import type { ReplyTexts } from './queue/entry-texts.js';
import { AdoptedMail } from './queue/adopted-mail.js';
import { RecoveredQueues } from './queue/recovered-queues.js';
import { DelayReports } from './queue/delay-reports.js';
import { Reports } from './queue/report-job.js';
import { ReportWriter } from './queue/report-writer.js';
import { Settlement } from './queue/settlement.js';
import type {
  AdmissionVerdict, Delivery, DeliveryQueue, DeliveryResult, DeliverySink, DeliverySource, Envelope,
  Reception, Route, Submission, SubmissionOutcome,
} from './queue/types.js';
import { COMMITTED, NO_REPLY, NOT_READY, REFUSED } from './queue/types.js';
import { WallFrame } from './queue/wall-frame.js';

/**
 * Share of the memory limit that the changes kept for mirrors may take, whatever the configuration says: they
 * are kept when all mail is delivered.
 */
const RING_SHARE = 1 / 16;
/** Of memory that a recovery has made in one piece: emptying one takes up to half of it elsewhere first. */
const RUN_SHARE = 1 / 16;
const COMPACT_BYTES_PER_TICK = 1024 * 1024;
const SLOW_TICK_MS = 100;

export class GatewayCore implements Reception, DeliverySource {
  readonly bodies: DueBodies;
  readonly entries: Entries;
  readonly mirrors: Mirrors;
  readonly registry: QueueRegistry;
  readonly memory: MemoryGauge;
  readonly commitPoint: CommitPoint;
  readonly holdings: Holdings;
  readonly moves: Moves;
  readonly recovered: RecoveredQueues;
  readonly reports: Reports;
  readonly #delays: DelayReports;
  readonly holds: MessageHolds;
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
    this.#ports = ports;
    const { clock, crc32, packer, log, events } = ports;
    const { limitBytes } = options.memory;
    const wake = (queue: MailQueue): void => { this.wake(queue); };
    this.#ids = new MessageIds({ countMax: IDS_PER_ORDINAL }, { drawOrdinal: () => ports.drawOrdinal() });
    const frame = new WallFrame(clock);
    this.frame = frame;
    const runBytesMax = Math.floor(limitBytes * RUN_SHARE);
    const segmentBytes = segmentBytesWithin(limitBytes, options.segmentBytes);
    this.#segments = new Segments({ segmentBytes, runBytesMax, touchPages: ports.touchPages });
    const table = new EntryTable(options.incarnation % 0x7fffffff);
    const contents = new ContentStore(this.#segments);
    const entries = new Entries({ textsBytesMax: textsBytesMax(limitBytes) }, table, contents, crc32);
    this.entries = entries;
    const ringBytes = Math.min(options.mirrors.ringBytes, Math.floor(limitBytes * RING_SHARE));
    const mirrors = new Mirrors({ ...options.mirrors, ringBytes }, this.#mirrorPorts());
    this.mirrors = mirrors;
    this.moves = new Moves({ log, mirrors });
    const memory = new MemoryGauge(options.memory, () => this.#usedBytes());
    this.memory = memory;
    this.bodies = new DueBodies({ entries, memory });
    const registry = new QueueRegistry({ queuesMax: options.queuesMax }, {
      table, mirrors, log, wake, nowMs: () => clock.nowMs(), expected: () => this.holdings.expected(),
    });
    this.registry = registry;
    this.readiness = this.#readinessOf(ports);
    const commitPoint = this.#newCommitPoint();
    this.commitPoint = commitPoint;
    this.#acceptance = new Acceptance(options.acceptance, {
      clock, frame, crc32, packer, registry, mirrors, entries, memory, commitPoint,
      release: (queue, row) => { this.#releaseEntry(queue, row); },
    });
    const dueTimes = new DueTimes({ clock, onDue: (row) => { this.#onDue(row); }, onWake: wake });
    this.#dueTimes = dueTimes;
    this.#expirySweep = this.#newSweep();
    this.#settlement = new Settlement(options, {
      clock, frame, crc32, packer, entries, memory, mirrors, dueTimes, events, wake,
      retryDelayMs: (attempts) => ports.retryDelayMs(attempts),
      report: (queue, row, number) => { this.reports.begin(queue, row, number); },
      reportAgain: (queue, row) => { this.reports.resume(queue, row); },
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
    this.#handingOut = new HandingOut({
      clock, log, entries, registry, settlement: this.#settlement, right: this.#right, room: this.#room,
      forgotten: this.#forgotten, bodies: this.bodies, rewriting: ports.rewriting,
      returnAddresses: ports.returnAddresses, wake,
    });
  }

  /** A configured store; its link reports through the onLink… methods. */
  addStore(store: StorePort): void {
    this.mirrors.addStore(store);
  }

  setDeliverySink(sink: DeliverySink): void {
    this.#deliverySink = sink;
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

  copyContent(delivery: Delivery, target: Uint8Array, at: number): void {
    this.entries.copyBody(delivery.entry, target, at);
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
    this.bodies.tick(nowMs);
    this.#segments.compact(COMPACT_BYTES_PER_TICK);
    if (nowMs >= this.#slowTickMs) this.#slowTick(nowMs);
    this.holds.tick();
  }

  #slowTick(nowMs: number): void {
    this.#slowTickMs = nowMs + SLOW_TICK_MS;
    this.#dueTimes.tick(nowMs);
    this.#expirySweep.tick(nowMs);
    this.registry.tick(nowMs);
    this.reports.tick(nowMs);
    this.mirrors.tick();
    this.#segments.keepStock(nowMs, stockBytesMax(this.memory.limitBytes, this.memory.usedBytes));
  }

  /** Sends what the turn changed, then hands woken queues to outbound. */
  endOfTurn(): void {
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
      if (queue.readyCount > 0 && queue.routed) this.#deliverySink?.onReady(queue);
    }
  }

  /** The queue may have something to deliver: looked at when the turn ends. */
  wake(queue: MailQueue): void {
    if (queue.isWoken) return;
    queue.isWoken = true;
    this.#woken.push(queue);
    this.#ports.requestEndOfTurn();
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
      events: ports.events, signer: ports.reportSigner,
      nextMessageId: () => this.nextMessageId(),
      compose: (input, ownerId) =>
        this.inHand.during(ownerId, input.envelope.messageId, () => ports.compose(input)),
    });
  }

  #newReports(ports: CorePorts, writer: ReportWriter): Reports {
    return new Reports({
      clock: ports.clock, log: ports.log, events: ports.events, entries: this.entries,
      settlement: this.#settlement, writer,
      requestEndOfTurn: () => { ports.requestEndOfTurn(); },
      composeDelay: (queue, row) => this.#delays.compose(queue, row),
      tellDelay: (queue, row, tries, draft) => { this.#delays.tell(queue, row, tries, draft); },
    });
  }

  #newDelays(writer: ReportWriter): DelayReports {
    const { memory, entries } = this;
    return new DelayReports(this.#options.delayReports, {
      memory, entries, settlement: this.#settlement, writer,
      begin: (queue, row) => { this.reports.beginDelay(queue, row); },
      onUsed: ({ partition }, row) => { this.bodies.onUsed(partition, row); },
    });
  }

  #newHolds({ clock, log, counters, events }: CorePorts): MessageHolds {
    const { entries, registry, crashes } = this;
    return new MessageHolds({
      clock, log, counters, events, entries, registry, settlement: this.#settlement, crashes,
      wake: (queue) => { this.wake(queue); },
      noteOwing: (queue, row) => { this.recovered.noteOwing(queue, row); },
    });
  }

  #newRecovered({ clock, crc32, packer, log, router }: CorePorts): RecoveredQueues {
    const { frame, registry, mirrors, entries, reports, memory, holds } = this;
    const { lifetimeMs, bounceLifetimeMs } = this.#options.acceptance;
    const { longestRetryMs } = this.#options;
    return new RecoveredQueues({ longestRetryMs, lifetimeMs: Math.max(lifetimeMs, bounceLifetimeMs) }, {
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
    return new Holdings({
      ...reading, gatewayId, partitions, group, rescue, leaseMs, orphans,
      replicas, minReplicas, replaceAfterMs,
    }, {
      clock, packer, log, register: ownership, mirrors, registry, recovered, memory, counters,
      adopted: new AdoptedMail({ crc32, log, entries, memory, recovered }),
      absent: entries.absent,
      random: () => ports.random(), areStoresKnown: () => ports.areStoresKnown(),
      forget: (partition) => { this.forgetPartition(partition); },
      wake: (partition) => { for (const queue of partition.queues.values()) this.wake(queue); },
    });
  }

  #usedBytes(): number {
    const { sender, backlogBytes } = this.mirrors;
    return this.entries.usedBytes + sender.changeBytes + backlogBytes + this.#ports.heldElsewhereBytes();
  }

  #newSweep(): ExpirySweep {
    const { longestRetryMs, delayReports } = this.#options;
    return new ExpirySweep({ longestRetryMs, delayMs: delayReports.afterMs }, {
      frame: this.frame, table: this.entries.table, log: this.#ports.log,
      onExpired: (row) => { this.#expire(row); },
      onDelayed: (row) => {
        const queue = this.registry.queueOf(row);
        return queue !== undefined && this.#delays.onOld(queue, row);
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
      refillEntries: (partition) =>
        this.entries.refillView(partition, (row) => { this.bodies.onUsed(partition, row); }),
    };
  }

  /** A committed entry is due. */
  #releaseEntry(queue: MailQueue, row: number): void {
    queue.makeReady(row, false);
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
    // Its report quotes the body; the sweep comes round again.
    if (this.entries.isAbsent(row)) this.entries.absent.wantLater(queue.partition, row);
    else this.#settlement.expire(queue, row);
  }

  #onDue(row: number): void {
    const queue = this.registry.queueOf(row);
    if (queue === undefined) return;
    queue.deferredCount -= 1;
    queue.makeReady(row, false);
    this.wake(queue);
  }
}
