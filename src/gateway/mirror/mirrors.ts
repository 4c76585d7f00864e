/**
 * All mirrored queues of a gateway and the links to their stores: sends what a turn changed, takes
 * acknowledgements and refusals, isolates lost mirrors and brings them back.
 *
 *   changes of a turn ─► onDirty ─► flush(): seal each dirty queue ─► ring ─► outbox of each store ─► one write
 *   link down, refusal ─► isolate ─► reviseSet (replica-set.ts)
 *   path changed       ─► attach again, repeat from the ring; nothing is isolated
 *   link up, tick      ─► CLAIM ─► tail or refill (catch-up.ts, resync.ts) ─► CAUGHT_UP ─► reviseSet
 *   lease anew         ─► attach again: the right to deliver is confirmed (delivery-right.ts)
 *
 * Pure: ports only. Not here: which stores a queue is at (placement.ts, moves.ts).
 */
import { Round } from '../../base/round.js';
import { CHANGE_ROW_BYTES } from '../../protocol/change-rows.js';
import type { Claimed } from '../../protocol/messages/claimed.js';
import type { Refusal } from '../../protocol/messages/refusal.js';
import { REFUSAL_DENIED, REFUSAL_FENCED, refusalReasonName } from '../../protocol/reasons.js';
import type { OrderColumns } from '../queue/position-order.js';
import { CatchUp } from './catch-up.js';
import type { ChangeRing } from './change-ring.js';
import { fenceOff } from './declined.js';
import { mayDeliver } from './delivery-right.js';
import { QUEUES_PER_TICK, type MirrorsOptions, type MirrorsPorts } from './mirrors-options.js';
import { Moves } from './moves.js';
import type { Outbox } from './outbox.js';
import { Placement } from './placement.js';
import { Partition } from './partition.js';
import type { PartitionOptions } from './partition.js';
import { judgeRefusal } from './refusal-verdict.js';
import type { RepairCounters } from './repair-counters.js';
import { Replica, SyncState, SYNC_STATE_NAMES } from './replica.js';
import type { SetChangePorts } from './replica-set.js';
import { hasSurvivor, isFencedOff, reviseSet, settleSet } from './replica-set.js';
import { Resync } from './resync.js';
import { Sender } from './sender.js';
import type { StorePort } from './store-port.js';
import { importedSection } from './whole-section.js';

/** Sections of the ring looked at in a tick, beside those that each new one brings. */
const RING_LOOKS_PER_TICK = 1024;
export class Mirrors {
  readonly options: MirrorsOptions;
  readonly counters: RepairCounters = { tails: 0, tailBytes: 0, refills: 0, refillBytes: 0 };
  readonly placement: Placement;
  readonly moves: Moves;
  /** Rises with every change of what is known of the stores: what was reckoned from it holds until then. */
  stateVersion = 0;
  private readonly ports: MirrorsPorts;
  private readonly setPorts: SetChangePorts;
  private readonly catchUp: CatchUp;
  readonly sender: Sender;
  /** With holes, where queues have gone. */
  readonly byHandle: (Partition | undefined)[] = [];
  private readonly round = new Round<Partition>({ partMax: QUEUES_PER_TICK });
  private readonly resyncs = new Map<StorePort, Resync>();

  constructor(options: MirrorsOptions, ports: MirrorsPorts) {
    this.options = options;
    this.ports = ports;
    this.sender = new Sender(options, { packer: ports.packer, partitionOf: (handle) => this.byHandle[handle], requestFlush: () => { ports.requestFlush(); } });
    const nowMs = (): number => ports.nowMs();
    const sealNow = (partition: Partition): void => { this.sender.seal(partition); };
    this.setPorts = {
      replicas: options.replicas, packer: ports.packer, crc32: ports.crc32, nowMs, wallMs: () => ports.wallMs(), sealNow,
      sendHeld: (replica, section) => {
        this.sender.put(replica, section);
        this.askFlush();
      },
      onEpoch: (partition) => {
        ports.onChanged(partition);
        ports.onEpoch(partition);
      },
    };
    this.placement = new Placement(options.placement, { stores: () => this.stores });
    this.moves = new Moves(options, { packer: ports.packer, log: ports.log, mirrors: this, placement: this.placement });
    this.catchUp = new CatchUp({ group: options.group, retryMs: options.retryMs, incarnation: options.token }, {
      packer: ports.packer, log: ports.log, ring: this.ring, counters: this.counters, nowMs, sealNow,
      outboxOf: (store) => this.sender.outboxes.get(store),
      partitionOf: (handle) => this.byHandle[handle],
      put: (replica, section) => { this.sender.put(replica, section); },
      refill: (partition, replica) => { this.resyncs.get(replica.store)?.add(partition, replica); },
      onLevel: (partition) => { this.onLevel(partition); },
      onFenced: (partition, replica, isTaken) => { this.fence(partition, replica, isTaken); },
      needFlush: () => { this.askFlush(); },
    });
  }

  addStore(store: StorePort): void {
    this.sender.addStore(store);
    this.resyncs.set(store, new Resync(
      { frameBytes: this.options.refillFrameBytes, retryMs: this.options.retryMs },
      {
        packer: this.ports.packer, refillEntries: this.ports.refillEntries, counters: this.counters,
        nowMs: () => this.ports.nowMs(),
        sealAll: () => { this.sender.sealDirty(); },
        needFlush: () => { this.askFlush(); },
        attach: (partition, replica) => { this.catchUp.attach(partition, replica); },
        isBacklogged: () => this.sender.outboxes.get(store)?.isBacklogged === true,
        onCaughtUp: (partition) => { reviseSet(partition, this.setPorts); },
      },
      store,
    ));
  }

  get stores(): StorePort[] {
    return [...this.sender.outboxes.keys()];
  }

  get backlogBytes(): number {
    return this.sender.backlogBytes;
  }

  /** The last changes, for mirrors that come back. */
  get ring(): ChangeRing {
    return this.sender.ring;
  }

  askFlush(): void {
    this.sender.askFlush();
  }

  outboxOf(store: StorePort): Outbox | undefined {
    return this.sender.outboxes.get(store);
  }

  /** The mirror of a new or recovered queue; the caller says where it stands (adopt()) and adds the replicas. */
  create(options: PartitionOptions, columns: OrderColumns): Partition {
    const partition = new Partition(options, this.options.minReplicas, columns, this.sender.slabs, this.sender);
    partition.token = this.options.token;
    this.byHandle[partition.handle] = partition;
    this.ports.onChanged(partition);
    return partition;
  }

  remove(partition: Partition): void {
    for (const { store } of partition.replicas) {
      this.resyncs.get(store)?.cancel(partition);
      this.placement.onRemoved(store);
    }
    this.ring.forget(partition.handle);
    this.byHandle[partition.handle] = undefined;
    this.ports.onChanged(partition);
  }

  partitionOf(handle: number): Partition | undefined {
    return this.byHandle[handle];
  }

  *all(): IterableIterator<Partition> {
    for (const partition of this.byHandle) if (partition !== undefined) yield partition;
  }

  private *mirrorsAt(store: StorePort): IterableIterator<readonly [Partition, Replica]> {
    for (const partition of this.all()) for (const replica of partition.replicas) if (replica.store === store) yield [partition, replica];
  }

  /** A replica of `mirror` on `store`, in state NG. */
  addReplica(partition: Partition, store: StorePort): Replica {
    const replica = new Replica(store, partition.name, (changed, from, cause) => {
      this.ports.onChanged(partition);
      const fields = { partition: changed.partitionName, store: changed.store.storeId, from: SYNC_STATE_NAMES[from], to: SYNC_STATE_NAMES[changed.sync], cause, epoch: partition.epoch, transactions: partition.lastNumber };
      if (changed.sync === SyncState.NG) this.ports.log.warn('mirror', 'a mirror is isolated', fields);
      else this.ports.log.info('mirror', 'a mirror changed its sync state', fields);
    });
    replica.awaySinceMs = this.ports.nowMs();
    partition.replicas.push(replica);
    this.placement.onAdded(store);
    return replica;
  }

  /** A replica that is no member any more, or never became one, is forgotten. */
  removeReplica(partition: Partition, replica: Replica): void {
    this.resyncs.get(replica.store)?.cancel(partition);
    partition.replicas = partition.replicas.filter((one) => one !== replica);
    this.placement.onRemoved(replica.store);
    this.ports.onChanged(partition);
  }

  /**
   * What other members of an adopted queue lack, as the longest member's store answered TAIL: `rows` and `bodies` of
   * TAILED, which end at the adopted number; `startDigestA/B` are the digest at firstNumber - 1, with which TAIL was
   * asked. Copied: the bytes need be valid during the call only. Call it after QueueMirror.adopt() and before adoptMember().
   */
  importTail(partition: Partition, firstNumber: number, rows: Uint8Array, bodies: Uint8Array, startDigestA: number, startDigestB: number): void {
    if (rows.length === 0 || partition.lastNumber - firstNumber + 1 !== rows.length / CHANGE_ROW_BYTES) return;
    this.ring.begin(partition.handle, firstNumber - 1, startDigestA, startDigestB);
    this.ring.add(importedSection(partition, firstNumber, rows, bodies));
  }

  /**
   * A member of the adopted set as the recovery's claim showed it (role MEMBER). In sync at once, and sent what it
   * lacks, when that is in the ring; else false: it is isolated and filled again.
   */
  adoptMember(partition: Partition, replica: Replica, number: number, digestA: number, digestB: number): boolean {
    return this.catchUp.adopt(partition, replica, number, digestA, digestB);
  }

  /** A new queue is made known to the store of this member. */
  open(partition: Partition, replica: Replica): void {
    this.catchUp.attach(partition, replica);
  }

  /** Seals what is pending, so that later changes begin sections behind it. */
  sealPending(): void {
    this.sender.sealDirty();
  }

  /** Sends what all queues changed since the last flush: one request and one write a store. */
  flush(): void {
    this.sender.beginFlush();
    this.sender.sealDirty();
    for (const resync of this.resyncs.values()) resync.pump();
    this.sender.sealDirty();
    this.sender.texts.send(this.sender.outboxes.values());
    for (const outbox of this.sender.outboxes.values()) outbox.store.flush();
  }

  /** Looks at the set of a queue: it was adopted with some mirrors behind, or a mirror is to leave. */
  reviseSetOf(partition: Partition): void {
    reviseSet(partition, this.setPorts);
  }

  /** A recovered queue is whole: its other mirrors may be filled from it. */
  onWhole(partition: Partition): void {
    for (const replica of partition.replicas) this.catchUp.look(partition, replica);
  }

  /** A link came up: mirrors there are asked where they stand. */
  onLinkUp(store: StorePort): void {
    const outbox = this.sender.outboxes.get(store);
    if (outbox === undefined) return;
    this.stateVersion += 1;
    this.moves.onLinkChanged(store);
    const { bootId: before, term } = outbox;
    const witnessed = outbox.onConnected(this.ports.nowMs());
    if (before !== '' && before !== store.bootId) this.ports.log.warn('mirror', 'a store has restarted: what it had in memory is gone', { store: store.storeId, lease_still_ran: witnessed });
    for (const partition of this.all()) {
      for (const replica of partition.replicas) {
        if (replica.store !== store) continue;
        // Of a copy that is known to be gone the new boot says nothing; nor does a lease in which our right was not confirmed.
        if (replica.mayHoldCopy && before !== store.bootId) replica.onRestart(witnessed && replica.claimBootId === before && replica.confirmedTerm === term);
        this.catchUp.look(partition, replica);
      }
      reviseSet(partition, this.setPorts);
    }
    this.askFlush();
  }

  /** A link went down: every mirror there is isolated. */
  onLinkDown(store: StorePort, cause: string): void {
    this.dropConnection(store);
    this.moves.onLinkChanged(store);
    for (const [partition, replica] of this.mirrorsAt(store)) {
      replica.forgetRequests();
      this.isolate(partition, replica, cause, 0);
    }
  }

  /**
   * Another path carries the link: attachments and unacknowledged requests are gone, the store's memory is not. All
   * that was not acknowledged is repeated under the same numbers; refills begin anew. Nothing is isolated.
   */
  onLinkSwitched(store: StorePort): void {
    this.dropConnection(store);
    for (const [partition, replica] of this.mirrorsAt(store)) {
      replica.forgetRequests();
      if (replica.isFilling) replica.transition(SyncState.NG, 'the path changed: its refill begins anew', this.ports.nowMs());
      if (replica.isFed) {
        this.catchUp.attach(partition, replica);
        this.catchUp.repeat(partition, replica);
      } else this.catchUp.look(partition, replica);
    }
    this.askFlush();
  }

  /** A CLAIMED that answers a request of ours; false when it is recovery's. */
  onClaimed(store: StorePort, sequence: number, claimed: Claimed): boolean {
    return this.catchUp.onClaimed(store, sequence, claimed);
  }

  mayDeliver(partition: Partition, nowMs: number): boolean {
    return mayDeliver(partition, nowMs);
  }

  /** Per queue touched: the number the store stands at. */
  onAcknowledged(store: StorePort, handle: number, number: number): void {
    const partition = this.byHandle[handle];
    if (partition === undefined) return;
    for (const replica of partition.replicas) {
      if (replica.store !== store || !replica.isFed) continue;
      // In one boot a store forgets nothing: another holder has dropped the copy, and our OPEN has made an empty one.
      if (!replica.isFilling && number < replica.acked) return this.fence(partition, replica, false);
      partition.acknowledge(replica, number);
      if (replica.isFilling && replica.acked >= replica.refillBase) replica.onEmptied();
      this.catchUp.onProgress(partition, replica);
      if (partition.setChangeNumber !== 0) settleSet(partition, this.setPorts);
      if (replica.member) partition.advance();
      return;
    }
  }

  /** True when a right to deliver was confirmed. */
  onAckedThrough(store: StorePort, sequence: number): boolean {
    this.resyncs.get(store)?.onAckedThrough(sequence);
    const outbox = this.sender.outboxes.get(store);
    if (outbox === undefined) return false;
    if (outbox.drain()) this.askFlush();
    return outbox.onAckedThrough(sequence);
  }

  onWritable(store: StorePort): void {
    this.sender.outboxes.get(store)?.drain();
    this.askFlush();
  }

  onRefusal(store: StorePort, refusal: Refusal): void {
    const partition = this.byHandle[refusal.handle];
    const replica = partition?.replicas.find((candidate) => candidate.store === store);
    if (partition === undefined || replica === undefined || !replica.isFed) return;
    this.resyncs.get(store)?.cancel(partition);
    if (refusal.reason === REFUSAL_FENCED || refusal.reason === REFUSAL_DENIED) {
      this.fence(partition, replica, false);
      return;
    }
    this.isolate(partition, replica, `refused: ${refusalReasonName(refusal.reason)} ${refusal.text}`, this.options.retryMs * judgeRefusal(replica, refusal));
  }

  /** Starts what has waited for its time. */
  tick(nowMs: number): void {
    for (const outbox of this.sender.outboxes.values()) this.watchLease(outbox);
    const part = this.round.next(this.byHandle);
    this.moves.tick(nowMs, part);
    for (const partition of part) {
      for (const replica of partition.replicas) if (replica.sync === SyncState.NG && replica.retryAtMs <= nowMs) this.catchUp.look(partition, replica);
      if (!hasSurvivor(partition)) reviseSet(partition, this.setPorts);
    }
    this.ring.trim(RING_LOOKS_PER_TICK);
    for (const resync of this.resyncs.values()) if (resync.hasWork) this.askFlush();
  }

  /** Empties one mirror and fills it again, at the operator's wish; false when no other is in sync. */
  refillAgain(partition: Partition, replica: Replica): boolean {
    if (!partition.replicas.some((other) => other !== replica && other.inSync)) return false;
    this.resyncs.get(replica.store)?.cancel(partition);
    replica.mustRefill = true;
    this.isolate(partition, replica, 'the operator has it filled again', 0);
    return true;
  }

  /** An entry left a queue: a refill that stands at it moves on. */
  onUnlinked(partition: Partition, row: number, following: number): void {
    if (!partition.isFilling) return;
    for (const replica of partition.replicas) this.resyncs.get(replica.store)?.onUnlinked(partition, row, following);
  }

  /** With a lease that began anew, every right there is confirmed again. */
  private watchLease(outbox: Outbox): void {
    if (!outbox.beganAnew()) return;
    for (const [partition, replica] of this.mirrorsAt(outbox.store)) if (replica.isFed) this.catchUp.attach(partition, replica);
  }

  /** A mirror is in sync again or has caught up. */
  private onLevel(partition: Partition): void {
    if (partition.setChangeNumber !== 0) settleSet(partition, this.setPorts);
    reviseSet(partition, this.setPorts);
    partition.advance();
  }

  private dropConnection(store: StorePort): void {
    this.stateVersion += 1;
    this.resyncs.get(store)?.reset();
    this.sender.onConnectionLost(store);
  }

  /** With no mirror in sync a set that another began anywhere says all: the members that we remember need not tell. */
  private fence(partition: Partition, replica: Replica, isTaken: boolean): void {
    fenceOff(replica);
    this.isolate(partition, replica, 'fenced: another process holds the queue there', this.options.retryMs);
    if (isFencedOff(partition) || (isTaken && !hasSurvivor(partition))) this.giveUp(partition);
  }

  /** The queue is another process's. */
  giveUp(partition: Partition): void {
    this.ports.log.error('fenced', 'another process has taken this queue over at every mirror of it: it is given up here', { partition: partition.name, messages: partition.length, epoch: partition.epoch });
    this.ports.onLost(partition);
  }

  private isolate(partition: Partition, replica: Replica, cause: string, retryAfterMs: number): void {
    const now = this.ports.nowMs();
    replica.retryAtMs = now + retryAfterMs;
    replica.transition(SyncState.NG, cause, now);
    // The survivors that are left may have the open change already.
    if (partition.setChangeNumber !== 0) settleSet(partition, this.setPorts);
    reviseSet(partition, this.setPorts);
  }
}
