/**
 * All mirrored queues of a gateway and the links to their stores: sends what a turn changed, takes
 * acknowledgements and refusals, isolates lost mirrors and fills them again.
 *
 *   changes of a turn ─► onDirty ─► flush(): seal each dirty queue ─► one CHANGES frame a store ─► one write
 *   link down, refusal ─► isolate ─► reviseSet (replica-set.ts)
 *   link up, tick      ─► resync: OPEN, REFILL_BEGIN, REFILL … REFILL_END ─► CAUGHT_UP ─► reviseSet
 *
 * Two mirrors of the same queues get the same control bytes: they are packed once. Pure: ports only.
 */
import type { Crc32, EventLog, Packer } from '../../platform/ports.js';
import type { Refusal } from '../../protocol/messages/refusal.js';
import { refusalReasonName } from '../../protocol/reasons.js';
import { CHANGES } from '../../protocol/message-types.js';
import type { MailQueue } from '../queue/mail-queue.js';
import { FeedVariant } from './feed-variant.js';
import type { DirtySink } from './queue-mirror.js';
import { QueueMirror } from './queue-mirror.js';
import { Replica, ResyncPhase, SyncState, SYNC_STATE_NAMES } from './replica.js';
import type { SetChangePorts } from './replica-set.js';
import { isHeldBack, reviseSet, settleSet } from './replica-set.js';
import { Resync } from './resync.js';
import type { ResyncPorts } from './resync.js';
import type { StorePort } from './store-port.js';
import type { SealedSection } from './turn-section.js';
import { PayloadSlabs } from './turn-section.js';

/** The protocol takes 8,192 (docs/PROTOCOL.md): the loss of a store changes the set of every queue in one turn. */
const SECTIONS_PER_FRAME_MAX = 4096;

export interface MirrorsOptions {
  /** Ids of the gateways that may claim one another's queues. */
  readonly group: readonly string[];
  readonly replicas: number;
  readonly minReplicas: number;
  /** A mirror that was refused is not filled again before this. */
  readonly retryMs: number;
  readonly refillFrameBytes: number;
  /** A CHANGES frame is closed when its payload has reached this. */
  readonly frameTargetBytes: number;
}

export interface MirrorsPorts {
  readonly packer: Packer;
  readonly crc32: Crc32;
  readonly log: EventLog;
  nowMs(): number;
  /** Called when the first change of a turn needs a flush() at its end. */
  requestFlush(): void;
  readonly refillEntries: ResyncPorts['refillEntries'];
  onEpoch(mirror: QueueMirror): void;
}

/** What goes to one store in this turn. */
class Outbox {
  readonly store: StorePort;
  /** Flat CHANGES control: five elements a section. */
  control: unknown[] = [];
  bodies: Uint8Array[] = [];
  payloadBytes = 0;
  creditBytes = 0;
  /** Sections in `control`, to see that another outbox has the same. */
  sections: SealedSection[] = [];
  /** Sealed frames that wait for the byte window. */
  backlog: { control: Uint8Array; bodies: Uint8Array[]; creditBytes: number; bytes: number }[] = [];
  backlogBytes = 0;
  backlogCreditBytes = 0;

  constructor(store: StorePort) {
    this.store = store;
  }
}

export class Mirrors implements DirtySink {
  readonly options: MirrorsOptions;
  readonly slabs = new PayloadSlabs();
  private readonly ports: MirrorsPorts;
  private readonly setPorts: SetChangePorts;
  private readonly outboxes = new Map<StorePort, Outbox>();
  private readonly byHandle: (QueueMirror | undefined)[] = [];
  private readonly resyncs = new Map<StorePort, Resync>();
  private readonly variant = new FeedVariant();
  private dirty: QueueMirror[] = [];
  private spareDirty: QueueMirror[] = [];
  private flushAsked = false;
  /** Credit that changes in sections not yet sealed will use, at any store. */
  private unsealedCreditBytes = 0;
  /** Last packed control and the sections it is of. */
  private packedSections: SealedSection[] = [];
  private packedControl: Uint8Array | undefined;

  constructor(options: MirrorsOptions, ports: MirrorsPorts) {
    this.options = options;
    this.ports = ports;
    this.setPorts = {
      packer: ports.packer,
      crc32: ports.crc32,
      nowMs: () => ports.nowMs(),
      sealNow: (mirror) => {
        this.sealMirror(mirror);
      },
      sendHeld: (replica, section) => {
        this.put(replica, section);
        this.askFlush();
      },
      onEpoch: (mirror) => {
        ports.onEpoch(mirror);
      },
    };
  }

  addStore(store: StorePort): void {
    this.outboxes.set(store, new Outbox(store));
    this.resyncs.set(
      store,
      new Resync(
        { group: this.options.group, frameBytes: this.options.refillFrameBytes, retryMs: this.options.retryMs },
        {
          packer: this.ports.packer,
          refillEntries: this.ports.refillEntries,
          nowMs: () => this.ports.nowMs(),
          sealAll: () => {
            this.sealDirty();
          },
          needFlush: () => {
            this.askFlush();
          },
          isBacklogged: () => (this.outboxes.get(store)?.backlog.length ?? 0) > 0,
          onCaughtUp: (mirror) => {
            reviseSet(mirror, this.setPorts);
          },
        },
        store,
      ),
    );
  }

  get stores(): StorePort[] {
    return [...this.outboxes.keys()];
  }

  get backlogBytes(): number {
    let bytes = 0;
    for (const outbox of this.outboxes.values()) bytes += outbox.backlogBytes;
    return bytes;
  }

  /** The mirror of a new or recovered queue. Replicas are added by the caller. */
  create(queue: MailQueue): QueueMirror {
    const mirror = new QueueMirror(queue, this.options.minReplicas, this.slabs, this);
    this.byHandle[queue.handle] = mirror;
    return mirror;
  }

  remove(mirror: QueueMirror): void {
    this.byHandle[mirror.handle] = undefined;
  }

  mirrorOf(handle: number): QueueMirror | undefined {
    return this.byHandle[handle];
  }

  *all(): IterableIterator<QueueMirror> {
    for (const mirror of this.byHandle) if (mirror !== undefined) yield mirror;
  }

  /** A replica of `mirror` on `store`, in state NG. */
  addReplica(mirror: QueueMirror, store: StorePort): Replica {
    const replica = new Replica(store, mirror.queue.name, (changed, from, cause) => {
      const fields = { queue: changed.queueName, store: changed.store.storeId, from: SYNC_STATE_NAMES[from], to: SYNC_STATE_NAMES[changed.sync], cause, epoch: mirror.epoch, transactions: mirror.lastNumber };
      if (changed.sync === SyncState.NG) this.ports.log.warn('mirror', 'a mirror is isolated', fields);
      else this.ports.log.info('mirror', 'a mirror changed its sync state', fields);
    });
    mirror.replicas.push(replica);
    return replica;
  }

  onDirty(mirror: QueueMirror): void {
    this.dirty.push(mirror);
    this.askFlush();
  }

  onLarge(mirror: QueueMirror): void {
    this.sealMirror(mirror);
  }

  onCharged(creditBytes: number): void {
    this.unsealedCreditBytes += creditBytes;
  }

  creditOf(store: StorePort): number {
    const outbox = this.outboxes.get(store);
    return store.credit - this.unsealedCreditBytes - (outbox === undefined ? 0 : outbox.creditBytes + outbox.backlogCreditBytes);
  }

  /** Seals what is pending, so that later changes begin sections behind it. */
  sealPending(): void {
    this.sealDirty();
  }

  /** Sends what all queues changed since the last flush: one request and one write a store. */
  flush(): void {
    this.flushAsked = false;
    this.sealDirty();
    for (const resync of this.resyncs.values()) resync.pump();
    this.sealDirty();
    for (const outbox of this.outboxes.values()) outbox.store.flush();
  }

  /** Looks at the set of a queue that was adopted with some mirrors behind. */
  reviseSetOf(mirror: QueueMirror): void {
    reviseSet(mirror, this.setPorts);
  }

  /** A recovered queue is whole: its other mirrors may be filled from it. */
  onWhole(mirror: QueueMirror): void {
    for (const replica of mirror.replicas) if (replica.store.isUp) this.resyncs.get(replica.store)?.add(mirror, replica);
  }

  /** A link came up: mirrors there that are NG may be filled. */
  onLinkUp(store: StorePort): void {
    for (const mirror of this.all()) {
      for (const replica of mirror.replicas) if (replica.store === store) this.resyncs.get(store)?.add(mirror, replica);
      reviseSet(mirror, this.setPorts);
    }
    this.askFlush();
  }

  /** A link went down: every mirror there is isolated. */
  onLinkDown(store: StorePort, cause: string): void {
    this.resyncs.get(store)?.reset();
    const outbox = this.outboxes.get(store);
    if (outbox !== undefined) this.clear(outbox);
    for (const mirror of this.all()) {
      for (const replica of mirror.replicas) if (replica.store === store) this.isolate(mirror, replica, cause, 0);
    }
  }

  /** Another path carries the link: attachments and unacknowledged requests are gone, the store's memory is not. */
  onLinkSwitched(store: StorePort): void {
    this.onLinkDown(store, 'its path was changed');
    this.onLinkUp(store);
  }

  /** May a message of this queue be handed to its next hop at this instant (G5)? */
  mayDeliver(mirror: QueueMirror, nowMs: number): boolean {
    for (const replica of mirror.replicas) {
      if (replica.member && replica.wanted && replica.sync === SyncState.SYNC && nowMs < replica.store.leaseEndsMs) return true;
    }
    return false;
  }

  /** Per queue touched: the number the store stands at. */
  onAcknowledged(store: StorePort, handle: number, number: number): void {
    const mirror = this.byHandle[handle];
    if (mirror === undefined) return;
    for (const replica of mirror.replicas) {
      if (replica.store !== store || !replica.isFed) continue;
      mirror.acknowledge(replica, number);
      // REFILL_BEGIN has emptied it.
      if (replica.sync === SyncState.RESYNC && replica.acked >= replica.refillBase) replica.claimBootId = '';
      if (mirror.setChangeNumber !== 0) settleSet(mirror, this.setPorts);
      if (replica.member) mirror.advance();
      return;
    }
  }

  onAckedThrough(store: StorePort, sequence: number): void {
    this.resyncs.get(store)?.onAckedThrough(sequence);
    this.drainBacklog(store);
  }

  onWritable(store: StorePort): void {
    this.drainBacklog(store);
    this.askFlush();
  }

  onRefusal(store: StorePort, refusal: Refusal): void {
    const mirror = this.byHandle[refusal.handle];
    const cause = `refused: ${refusalReasonName(refusal.reason)} ${refusal.text}`;
    const replica = mirror?.replicas.find((candidate) => candidate.store === store);
    if (mirror === undefined || replica === undefined || !replica.isFed) return;
    this.resyncs.get(store)?.cancel(mirror);
    this.isolate(mirror, replica, cause, this.options.retryMs);
  }

  /** Starts what has waited for its time. */
  tick(nowMs: number): void {
    for (const mirror of this.all()) {
      for (const replica of mirror.replicas) {
        if (replica.sync === SyncState.NG && replica.store.isUp && replica.retryAtMs <= nowMs) this.resyncs.get(replica.store)?.add(mirror, replica);
      }
    }
    for (const resync of this.resyncs.values()) if (resync.hasWork) this.askFlush();
  }

  /** An entry left a queue: a refill that stands at it moves on. */
  onUnlinked(mirror: QueueMirror, row: number, following: number): void {
    if (!mirror.isFilling) return;
    for (const replica of mirror.replicas) this.resyncs.get(replica.store)?.onUnlinked(mirror, row, following);
  }

  private isolate(mirror: QueueMirror, replica: Replica, cause: string, retryAfterMs: number): void {
    const now = this.ports.nowMs();
    replica.retryAtMs = now + retryAfterMs;
    replica.transition(SyncState.NG, cause, now);
    reviseSet(mirror, this.setPorts);
  }

  private askFlush(): void {
    if (this.flushAsked) return;
    this.flushAsked = true;
    this.ports.requestFlush();
  }

  private sealDirty(): void {
    while (this.dirty.length > 0) {
      const dirty = this.dirty;
      this.dirty = this.spareDirty;
      this.spareDirty = dirty;
      for (const mirror of dirty) this.sealMirror(mirror);
      dirty.length = 0;
    }
    for (const outbox of this.outboxes.values()) this.closeFrame(outbox);
    this.packedControl = undefined;
    this.packedSections = [];
  }

  private sealMirror(mirror: QueueMirror): void {
    const section = mirror.seal();
    if (section === undefined) return;
    this.unsealedCreditBytes -= section.creditBytes;
    for (const replica of mirror.replicas) {
      if (!replica.isFed) continue;
      if (isHeldBack(mirror, replica, section)) replica.held.push(section);
      else this.put(replica, section);
    }
  }

  private put(replica: Replica, section: SealedSection): void {
    const outbox = this.outboxes.get(replica.store);
    if (outbox === undefined) return;
    let sent = section;
    if (replica.phase === ResyncPhase.FILLING && replica.refillCursor < replica.refillBase) sent = this.variant.of(section, replica.refillCursor, replica.refillBase);
    outbox.sections.push(sent);
    outbox.control.push(sent.handle, sent.firstNumber, sent.digestA, sent.digestB, sent.rows);
    for (const piece of sent.pieces) outbox.bodies.push(piece);
    outbox.payloadBytes += sent.payloadBytes + sent.rows.length;
    outbox.creditBytes += sent.creditBytes;
    if (outbox.payloadBytes >= this.options.frameTargetBytes || outbox.sections.length >= SECTIONS_PER_FRAME_MAX) this.closeFrame(outbox);
  }

  private closeFrame(outbox: Outbox): void {
    if (outbox.sections.length === 0) return;
    const control = this.packOnce(outbox);
    const { bodies, creditBytes, payloadBytes } = outbox;
    outbox.control = [];
    outbox.bodies = [];
    outbox.sections = [];
    outbox.payloadBytes = 0;
    outbox.creditBytes = 0;
    if (outbox.backlog.length === 0 && outbox.store.canSend) {
      outbox.store.request(CHANGES, control, bodies, creditBytes);
      return;
    }
    const bytes = payloadBytes + control.length;
    outbox.backlog.push({ control, bodies, creditBytes, bytes });
    outbox.backlogBytes += bytes;
    outbox.backlogCreditBytes += creditBytes;
  }

  private packOnce(outbox: Outbox): Uint8Array {
    const sections = outbox.sections;
    const before = this.packedSections;
    if (this.packedControl !== undefined && before.length === sections.length) {
      let same = true;
      for (let i = 0; i < sections.length && same; i++) same = sections[i] === before[i];
      if (same) return this.packedControl;
    }
    const control = this.ports.packer.pack(outbox.control);
    this.packedControl = control;
    this.packedSections = sections;
    return control;
  }

  private drainBacklog(store: StorePort): void {
    const outbox = this.outboxes.get(store);
    if (outbox === undefined || outbox.backlog.length === 0) return;
    let sent = 0;
    while (sent < outbox.backlog.length && store.canSend) {
      const frame = outbox.backlog[sent];
      if (frame === undefined) break;
      store.request(CHANGES, frame.control, frame.bodies, frame.creditBytes);
      outbox.backlogBytes -= frame.bytes;
      outbox.backlogCreditBytes -= frame.creditBytes;
      sent += 1;
    }
    if (sent === 0) return;
    outbox.backlog.splice(0, sent);
    this.askFlush();
  }

  private clear(outbox: Outbox): void {
    outbox.control = [];
    outbox.bodies = [];
    outbox.sections = [];
    outbox.payloadBytes = 0;
    outbox.creditBytes = 0;
    outbox.backlog = [];
    outbox.backlogBytes = 0;
    outbox.backlogCreditBytes = 0;
  }
}
