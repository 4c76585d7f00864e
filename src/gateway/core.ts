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
import { Segments } from '../base/segments.js';
import { textsBytesMax } from '../base/text-pool.js';
import { CLAIMED } from '../protocol/message-types.js';
import type { Refusal } from '../protocol/messages/refusal.js';
import type { BulkRecovery } from '../recovery/bulk-recovery.js';
import type { RecoveryStore } from '../recovery/queue-job.js';
import { GatewayControl } from './control/gateway-control.js';
import type { CoreOptions, CorePorts } from './core-options.js';
import { DeliveryRight } from './mirror/delivery-right.js';
import { MessageIds } from './message-ids.js';
import { CommitPoint, PendingCommit } from './mirror/commit-point.js';
import { Mirrors } from './mirror/mirrors.js';
import type { QueueMirror } from './mirror/queue-mirror.js';
import type { StorePort } from './mirror/store-port.js';
import { Acceptance } from './queue/acceptance.js';
import { ContentStore } from './queue/content-store.js';
import { DueTimes } from './queue/due-times.js';
import { Entries } from './queue/entries.js';
import { EntryState, EntryTable } from './queue/entry-table.js';
import { ForgottenQueues } from './queue/forgotten-queues.js';
import { HandingOut } from './queue/handing-out.js';
import { MemoryGauge } from './queue/memory-gauge.js';
import type { Note } from './queue/note.js';
import { QueueRegistry } from './queue/queue-registry.js';
import type { RecoveredQueues } from './queue/recovered-queues.js';
import { RecoveryWiring } from './queue/recovery-wiring.js';
import type { ReplyTexts } from './queue/reply-texts.js';
import { Reports } from './queue/report-job.js';
import { Settlement } from './queue/settlement.js';
import type { Admission, Delivery, DeliveryQueue, DeliveryResult, DeliverySink, DeliverySource, Envelope, Reception, Route, Submission, SubmissionOutcome } from './queue/types.js';
import { COMMITTED, ENVELOPE_PARKED, NO_REPLY, NOT_READY, REFUSED } from './queue/types.js';
import { ServedSets } from './served-sets.js';

/** Share of the memory limit that the changes kept for mirrors may take, whatever the configuration says: they are kept when all mail is delivered. */
const RING_SHARE = 1 / 16;
/** Of memory that a recovery has made in one piece: emptying one takes up to half of it elsewhere first. */
const RUN_SHARE = 1 / 16;
const COMPACT_BYTES_PER_TICK = 1024 * 1024;
const SLOW_TICK_MS = 100;

export class GatewayCore implements Reception, DeliverySource {
  readonly entries: Entries;
  readonly mirrors: Mirrors;
  readonly registry: QueueRegistry;
  readonly memory: MemoryGauge;
  readonly commitPoint: CommitPoint;
  readonly recovery: BulkRecovery;
  readonly recovered: RecoveredQueues;
  readonly reports: Reports;
  readonly control: GatewayControl;
  /** For the next process. */
  readonly sets: ServedSets;
  private readonly options: CoreOptions;
  private readonly ports: CorePorts;
  private readonly acceptance: Acceptance;
  private readonly settlement: Settlement;
  private readonly dueTimes: DueTimes;
  private readonly wiring: RecoveryWiring;
  private readonly right: DeliveryRight;
  private readonly forgotten: ForgottenQueues;
  private readonly handingOut: HandingOut;
  private readonly segments: Segments;
  private deliverySink: DeliverySink | undefined;
  private woken: QueueMirror[] = [];
  private readonly ids: MessageIds;
  private draining = false;
  private firstUpMs = -1;
  /** The stores have told their queues once, or had their time to: mail to a known queue will not found another. */
  private listsAwaited = false;
  /** Those queues are back, or had their time to: new mail is not put off for one that comes within moments. */
  queuesAwaited = false;
  private slowTickMs = 0;

  constructor(options: CoreOptions, ports: CorePorts) {
    this.options = options;
    this.ports = ports;
    this.ids = new MessageIds(options.incarnation, options.gatewayId, options.mirrors.group);
    this.segments = new Segments({ segmentBytes: options.segmentBytes, runBytesMax: Math.floor(options.memory.limitBytes * RUN_SHARE), touchPages: ports.touchPages });
    this.entries = new Entries({ textsBytesMax: textsBytesMax(options.memory.limitBytes) }, new EntryTable(options.incarnation % 0x7fffffff), new ContentStore(this.segments), ports.crc32);
    const ringBytes = Math.min(options.mirrors.ringBytes, Math.floor(options.memory.limitBytes * RING_SHARE));
    this.mirrors = new Mirrors({ ...options.mirrors, ringBytes, token: options.incarnation }, this.mirrorPorts());
    this.memory = new MemoryGauge(options.memory, () => this.entries.usedBytes + this.mirrors.sender.changeBytes + this.mirrors.backlogBytes + ports.heldElsewhereBytes());
    const nowMs = (): number => ports.clock.nowMs();
    this.registry = new QueueRegistry(
      { gatewayId: options.gatewayId, group: options.mirrors.group, incarnation: options.incarnation, queuesMax: options.queuesMax, replicas: options.mirrors.replicas, minReplicas: options.mirrors.minReplicas },
      { table: this.entries.table, mirrors: this.mirrors, nowMs, mayCreate: (route) => this.mayCreate(route) },
    );
    this.commitPoint = new CommitPoint({ timeoutMs: options.commitTimeoutMs }, {
      release: (mirror, row) => { this.releaseEntry(mirror, row); },
      withdraw: (mirror, row) => this.withdraw(mirror, row),
      settled: (pending, outcome) => { this.settled(pending, outcome); },
    });
    this.acceptance = new Acceptance(options.acceptance, { clock: ports.clock, crc32: ports.crc32, packer: ports.packer, registry: this.registry, mirrors: this.mirrors, entries: this.entries, memory: this.memory, commitPoint: this.commitPoint });
    this.dueTimes = new DueTimes({
      clock: ports.clock,
      table: this.entries.table,
      onDue: (row) => { this.onDue(row); },
      onWake: (mirror) => { this.wake(mirror); },
      onExpired: (mirror, row) => this.expire(mirror, row),
    });
    this.settlement = new Settlement({
      clock: ports.clock, crc32: ports.crc32, packer: ports.packer, entries: this.entries, mirrors: this.mirrors, dueTimes: this.dueTimes, events: ports.events,
      retryDelayMs: (attempts) => ports.retryDelayMs(attempts),
      wake: (mirror) => { this.wake(mirror); },
      report: (mirror, row, number) => { this.reports.begin(mirror, row, number); },
    });
    const unpark = (mirror: QueueMirror, row: number): void => { this.unpark(mirror, row); };
    this.reports = new Reports({ clock: ports.clock, log: ports.log, entries: this.entries, settlement: this.settlement, acceptance: this.acceptance, router: ports.router, events: ports.events, nextMessageId: () => this.nextMessageId(), routeFor: ({ queue, token }, route) => this.registry.routeFor(queue.identity.ownerId, route, token), compose: (input, ownerId) => this.control.inHand.during(ownerId, input.envelope.messageId, () => ports.compose(input)), unpark });
    const wake = (mirror: QueueMirror): void => { this.wake(mirror); };
    this.control = new GatewayControl(options, {
      clock: ports.clock, crc32: ports.crc32, packer: ports.packer, log: ports.log, counters: ports.counters, entries: this.entries, mirrors: this.mirrors, registry: this.registry, settlement: this.settlement, wake,
      nextMessageId: () => this.ids.next(),
      isListed: () => this.listsAwaited,
      expected: (ownerId) => this.recovery.expectsControl(ownerId),
      noteOwing: (mirror, row) => { this.recovered.noteOwing(mirror, row); },
    });
    this.right = new DeliveryRight({ log: ports.log, nowMs, wake });
    this.wiring = new RecoveryWiring(
      { ...options.recovery, rescue: options.recovery.rescue ?? false, group: options.mirrors.group, gatewayId: options.gatewayId, token: options.incarnation },
      {
        clock: ports.clock, crc32: ports.crc32, packer: ports.packer, log: ports.log, registry: this.registry, mirrors: this.mirrors, entries: this.entries, router: ports.router, dueTimes: this.dueTimes, settlement: this.settlement, reports: this.reports, memory: this.memory, counters: ports.counters, control: this.control,
        wake, unpark,
        needFlush: () => { ports.requestEndOfTurn(); },
        olderMayLive: () => options.recovery.olderMayLive?.() ?? false,
        forget: (mirror) => { this.forgetQueue(mirror); },
      },
    );
    this.recovery = this.wiring.recovery;
    this.recovered = this.wiring.recovered;
    this.sets = new ServedSets({ openHints: () => this.recovery.openHints(), served: () => this.registry.all });
    this.forgotten = new ForgottenQueues({ registry: this.registry, entries: this.entries, dueTimes: this.dueTimes, reports: this.reports, recovered: this.recovered, commitPoint: this.commitPoint });
    this.handingOut = new HandingOut({ clock: ports.clock, log: ports.log, entries: this.entries, mirrors: this.mirrors, settlement: this.settlement, right: this.right, forgotten: this.forgotten, wake });
  }

  /** A configured store; its link reports through the onLink… methods. */
  addStore(store: StorePort & RecoveryStore): void {
    this.mirrors.addStore(store);
    this.recovery.addStore(store);
  }

  setDeliverySink(sink: DeliverySink): void {
    this.deliverySink = sink;
  }

  // ---- Reception ----

  /** True when new mail can be taken: the SMTP port is open exactly then. */
  get accepting(): boolean {
    return !this.draining && this.queuesAwaited && this.upCount >= this.options.mirrors.minReplicas && this.mirrors.mayCommit;
  }

  get upCount(): number {
    return this.mirrors.stores.filter((store) => store.isUp).length;
  }

  nextMessageId(): number {
    return this.ids.next();
  }

  admit(route: Route): Admission {
    if (this.draining) return 'draining';
    if (!this.accepting) return 'not-ready';
    if (this.registry.find(route) === undefined && !this.mayCreate(route)) return 'recovering';
    return this.acceptance.admit(route);
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
    const stored = this.acceptance.store(submission, false);
    if (!(stored instanceof PendingCommit)) submission.settle(stored);
  }

  /** No new mail from now on; what is being committed still is. */
  drain(): void {
    this.draining = true;
  }

  // ---- DeliverySource ----

  take(queue: DeliveryQueue): Delivery | undefined {
    return this.handingOut.take(queue);
  }

  copyContent(delivery: Delivery, target: Uint8Array, at: number): void {
    this.entries.copyBody(delivery.entry, target, at);
  }

  settle(delivery: Delivery, result: DeliveryResult): void {
    this.handingOut.settle(delivery, result);
  }

  /** Asked right before each final dot (G5). */
  mayDeliver(delivery: Delivery): boolean {
    return this.handingOut.mayDeliver(delivery);
  }

  /** The queue is another process's now: nothing of it is sent or delivered any more, its memory is given back. */
  forgetQueue(mirror: QueueMirror): void {
    this.right.forget(mirror);
    this.control.queues.forget(mirror);
    this.forgotten.forget(mirror);
  }

  /** Envelope of an entry, for those who show it. */
  envelopeOf(row: number): Envelope | undefined {
    return this.settlement.envelopeOf(row);
  }

  noteOf(row: number, recipientCount: number): Note {
    return this.settlement.noteOf(row, recipientCount);
  }

  /** What next hops said of its recipients, as far as it is still known. */
  textsOf(row: number): ReplyTexts {
    return this.settlement.textsOf(row);
  }

  // ---- links ----
  onLinkUp(store: StorePort): void {
    if (this.firstUpMs < 0) this.firstUpMs = this.ports.clock.nowMs();
    this.recovery.onStoreUp(store);
    this.mirrors.onLinkUp(store);
  }

  /** Another path carries the requests to the same boot of a store. */
  onLinkSwitched(store: StorePort): void {
    this.recovery.onStoreDown(store);
    this.mirrors.onLinkSwitched(store);
    this.recovery.onStoreUp(store);
  }

  onLinkDown(store: StorePort, cause: string): void {
    this.recovery.onStoreDown(store);
    this.mirrors.onLinkDown(store, cause);
  }

  /** CLAIMED of a live queue is the mirrors', the rest is recovery's. */
  onLinkReply(store: StorePort, type: number, sequence: number, control: Uint8Array, bodies: Uint8Array): void {
    if (type === CLAIMED && this.mirrors.onClaimed(store, sequence, control)) return;
    this.recovery.onReply(store, type, sequence, control, bodies);
    this.wiring.resumeReports();
  }

  onLinkAckedThrough(store: StorePort, sequence: number): void {
    if (this.mirrors.onAckedThrough(store, sequence)) this.right.look();
  }

  onLinkRefusal(store: StorePort, refusal: Refusal): void {
    this.mirrors.onRefusal(store, refusal);
    this.recovery.onRefusal(store, refusal.handle);
  }

  // ---- time ----

  /** Called a few times in a tenth of a second. */
  tick(nowMs: number): void {
    if (!this.listsAwaited) this.listsAwaited = this.recovery.allListed || (this.firstUpMs >= 0 && nowMs - this.firstUpMs >= this.options.firstListMs);
    if (!this.queuesAwaited) this.queuesAwaited = this.listsAwaited && (this.recovery.isSettled || nowMs - this.firstUpMs >= this.options.firstListMs);
    this.commitPoint.tick(nowMs);
    this.right.look();
    this.forgotten.tick();
    this.segments.compact(COMPACT_BYTES_PER_TICK);
    if (nowMs >= this.slowTickMs) this.slowTick(nowMs);
    this.control.quickTick();
  }

  private slowTick(nowMs: number): void {
    this.slowTickMs = nowMs + SLOW_TICK_MS;
    this.dueTimes.tick(nowMs, this.registry.all);
    this.reports.tick(nowMs);
    this.mirrors.tick(nowMs);
    this.segments.keepStock(nowMs, stockBytesMax(this.memory.limitBytes, this.memory.usedBytes));
    this.wiring.tick(nowMs, this.listsAwaited);
    this.control.tick();
  }

  /** Sends what the turn changed, then hands woken queues to outbound. */
  endOfTurn(): void {
    if (!this.draining && this.mirrors.sender.mayWait()) this.ports.requestEndOfTurn();
    else this.mirrors.flush();
    const woken = this.woken;
    if (woken.length === 0) return;
    this.woken = [];
    for (const mirror of woken) {
      mirror.isWoken = false;
      if (mirror.queue.readyCount > 0 && mirror.queue.routed) this.deliverySink?.onReady(mirror.queue);
    }
  }

  /** The queue may have something to deliver: looked at when the turn ends. */
  wake(mirror: QueueMirror): void {
    if (mirror.isWoken) return;
    mirror.isWoken = true;
    this.woken.push(mirror);
    this.ports.requestEndOfTurn();
  }

  /**
   * A route whose queue is still to come back gets no second one; beside a held queue, a fifo route does
   * (exception to G3). A strict route waits for every store's list: the one that is missing may know its queue.
   */
  private mayCreate(route: Route): boolean {
    if (route.ordering === 'strict' && !this.recovery.allListed) return false;
    const expected = this.recovery.expects(route.queueName, route.queueClass);
    return expected === '' || (expected === 'held' && route.ordering === 'fifo');
  }

  private mirrorPorts(): ConstructorParameters<typeof Mirrors>[1] {
    const ports = this.ports;
    return {
      packer: ports.packer,
      crc32: ports.crc32,
      log: ports.log,
      nowMs: () => ports.clock.nowMs(),
      wallMs: () => ports.clock.wallMs(),
      requestFlush: () => { ports.requestEndOfTurn(); },
      refillEntries: (mirror) => this.entries.refillView(mirror.queue),
      onQueueLost: (mirror) => { this.wiring.onLost(mirror); },
      onEpoch: (mirror) => {
        ports.counters.epochs += 1;
        ports.log.info('mirror', 'the set of mirrors changed', { queue: mirror.queue.name, cause: mirror.setCause, epoch: mirror.epoch, members: mirror.replicas.filter((replica) => replica.member).map((replica) => replica.store.storeId) });
      },
    };
  }

  /** A committed entry: due, unless it is a report whose source has not ended. */
  private releaseEntry(mirror: QueueMirror, row: number): void {
    if ((this.entries.headFlags(row) & ENVELOPE_PARKED) !== 0) {
      this.entries.table.transition(row, EntryState.PARKED);
      return;
    }
    mirror.queue.makeReady(row, false);
    this.wake(mirror);
  }

  private withdraw(mirror: QueueMirror, row: number): number {
    const position = this.entries.table.position.get(row);
    const following = this.entries.remove(mirror.queue, row);
    this.mirrors.onUnlinked(mirror, row, following);
    return mirror.withdraw(position);
  }

  private settled(pending: PendingCommit, outcome: SubmissionOutcome): void {
    if (outcome === COMMITTED) this.ports.events.committed(this.ports.clock.nowMs() - pending.startedMs);
    else if (outcome === REFUSED || outcome === NO_REPLY) this.ports.events.refused(outcome === REFUSED);
    pending.sink.settle(outcome);
  }

  /** False when it may not end yet. */
  private expire(mirror: QueueMirror, row: number): boolean {
    if (!this.control.holds.mayExpire(mirror, row)) return false;
    this.settlement.expire(mirror, row);
    return true;
  }

  private onDue(row: number): void {
    const mirror = this.mirrors.mirrorOf(this.entries.table.queueHandle(row));
    if (mirror === undefined) return;
    mirror.queue.deferredCount -= 1;
    mirror.queue.makeReady(row, false);
    this.wake(mirror);
  }

  /** The report may go out; its note says so, so that no recovery parks it again. */
  private unpark(mirror: QueueMirror, row: number): void {
    const envelope = this.settlement.envelopeOf(row);
    const note = this.settlement.noteOf(row, envelope?.recipients.length ?? 1);
    this.settlement.annotate(mirror, row, { ...note, unparked: true });
    mirror.queue.makeReady(row, false);
    this.wake(mirror);
  }
}
