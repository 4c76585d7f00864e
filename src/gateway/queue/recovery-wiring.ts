/**
 * Joins recovery (src/recovery) with queues and mirrors: what comes back, what leaves, and what of it waits for
 * the rest. core.ts calls it with what the links tell and with time.
 *
 *   links ─► BulkRecovery ─ claimed, blocks ─► RecoveredQueues ─► queues, mirrors
 *               ▲    └─ owner is back ─► Departures ─ RELEASE ─┐
 *               └──────────────────────────────────────────────┘
 */
import { Prng } from '../../base/prng.js';
import { ENTRY_ROW_BYTES } from '../../protocol/entry-rows.js';
import { BulkRecovery } from '../../recovery/bulk-recovery.js';
import type { RecoveryOptions } from '../../recovery/bulk-recovery.js';
import type { CensusRow } from '../../recovery/census.js';
import { isNewer } from '../mirror/claim-again.js';
import { LostSets } from '../mirror/lost-sets.js';
import type { Partition } from '../mirror/partition.js';
import { hasSurvivor } from '../mirror/replica-set.js';
import { Departures } from './departures.js';
import { RecoveredQueues } from './recovered-queues.js';
import type { RecoveredOptions, RecoveredPorts } from './recovered-queues.js';

export interface RecoveryWiringPorts extends RecoveredPorts {
  readonly counters: { recoveredMessages: number };
  needFlush(): void;
  olderMayLive(): boolean;
  /** Out of registry, mirrors and memory. */
  forget(partition: Partition): void;
}

export class RecoveryWiring {
  readonly recovery: BulkRecovery;
  readonly recovered: RecoveredQueues;
  readonly departures: Departures;
  private readonly lostSets: LostSets;
  private readonly options: RecoveryOptions;
  private readonly ports: RecoveryWiringPorts;

  constructor(options: RecoveryOptions & RecoveredOptions, ports: RecoveryWiringPorts) {
    this.options = options;
    this.ports = ports;
    const { registry, mirrors } = ports;
    const random = new Prng(options.token);
    this.recovered = new RecoveredQueues(options, ports);
    this.lostSets = new LostSets({ mirrors, log: ports.log, nowMs: () => ports.clock.nowMs() });
    this.recovery = new BulkRecovery(options, {
      lostSets: this.lostSets,
      packer: ports.packer,
      log: ports.log,
      nowMs: () => ports.clock.nowMs(),
      random: () => random.next(),
      needFlush: () => { ports.needFlush(); },
      olderMayLive: () => ports.olderMayLive(),
      takeHandle: () => registry.takePartitionHandle(),
      served: (ownerId, birth, serial) => registry.served(ownerId, birth, serial),
      membersOf: (handle) => membersOf(mirrors.partitionOf(handle)),
      copiesUpTo: (handle, number) => copiesUpTo(mirrors.partitionOf(handle), number),
      mayPull: (isOwn, pulling, inHandBytes) => this.mayPull(isOwn, pulling, inHandBytes),
      onClaimed: (queue) => { this.recovered.onClaimed(queue); },
      onBlock: (handle, rows, bodies, texts, lastSource) => {
        const taken = this.recovered.onBlock(handle, rows, bodies, texts, lastSource);
        if (taken) ports.counters.recoveredMessages += rows.length / ENTRY_ROW_BYTES;
        return taken;
      },
      onRecovered: (handle) => { this.recovered.onRecovered(handle); },
      onCopyTold: (handle, row) => { this.onCopyTold(handle, row); },
      onOwnerBack: (handle) => {
        const partition = mirrors.partitionOf(handle);
        if (partition !== undefined) this.departures.handBack(partition);
      },
    });
    this.departures = new Departures({
      log: ports.log,
      forget: (partition) => { ports.forget(partition); },
      released: (handle, members, others) => { this.recovery.handedBack(handle, members, others); },
    });
  }

  /** Another process holds the queue at every member of its set: it is not ours any more. */
  onLost(partition: Partition): void {
    this.ports.forget(partition);
    this.departures.onForgotten(partition);
    const { identity, name } = partition;
    this.recovery.onLost(partition.handle, { ...identity, name, queueClass: 'mail' }, partition.epoch);
  }

  /** A store's list shows a queue that is served here. */
  private onCopyTold(handle: number, row: CensusRow): void {
    const { mirrors } = this.ports;
    const partition = mirrors.partitionOf(handle);
    const isTaken = partition !== undefined && isNewer(partition, row.storeId, row);
    // The same as in the answer to a claim (Mirrors.fence). A store that an open change of ours leaves out is asked for none.
    if (isTaken && !hasSurvivor(partition)) mirrors.giveUp(partition);
    else if (isTaken && partition.isOwn && mirrors.mayDeliver(partition, this.ports.clock.nowMs())) this.goBeyond(partition, row);
    // One that is another's, or was given back changed, is not ours to touch.
    else if (row.holder === this.options.gatewayId && row.holderToken !== 0) mirrors.moves.onCopyTold(handle, row.storeId);
  }

  /**
   * A partition that no takeover can do without says right now that the queue is ours: a newer set is one that an operator had
   * another gateway found, or take, while we were there. Left alone it would be believed by our next process, and what was
   * accepted here since be lost; so we number ours beyond it. The other gives its own back, as to any owner that is there.
   */
  private goBeyond(partition: Partition, row: CensusRow): void {
    const { mirrors, log } = this.ports;
    log.warn('takeover', 'another gateway was forced to go on with this queue while it was served here: its next set is numbered beyond that one; what was delivered there is repeated', { queue: partition.name, owner: row.ownerId, store: row.storeId, epoch: row.epoch, our_epoch: partition.epoch });
    partition.giveUp(row.storeId, row.epoch);
    mirrors.reviseSetOf(partition);
  }

  tick(nowMs: number, isLate: boolean): void {
    this.recovery.tick(nowMs, isLate);
    this.departures.tick();
    this.lostSets.tick();
    this.onRead();
  }

  /** With nothing left to be read, bodies that several entries name are known no more by their ids. */
  onRead(): void {
    if (this.recovery.isIdle) this.recovered.onAllRead();
  }

  /**
   * One more block, with as many on their way and one in hand: our own queues may fill all but the last reserve; those of another
   * gateway leave alone what new mail may use. A single block is always let in while half of that is free, or a
   * small limit would never let the first one come.
   */
  private mayPull(isOwn: boolean, pulling: number, inHandBytes: number): boolean {
    const { memory } = this.ports;
    const most = isOwn ? memory.reserveBytes : memory.acceptBytes;
    const used = memory.usedBytes + inHandBytes;
    const blockBytes = Math.max(this.options.blockBytes, this.options.largestBytes ?? 0);
    return used + (pulling + 1) * blockBytes <= most || (pulling === 0 && used < most / 2);
  }
}

/** Empty while the set is changing, when who is a member is not told for sure, and while no partition is in sync. */
function membersOf(partition: Partition | undefined): readonly string[] {
  if (partition === undefined || partition.isLeaving || partition.setChangeNumber !== 0 || partition.inSyncCount === 0) return [];
  const members: string[] = [];
  for (const replica of partition.replicas) {
    if (!replica.member) continue;
    if (!replica.store.isUp) return [];
    members.push(replica.store.storeId);
  }
  return members;
}

/** Stores whose copy goes on from where it stood and has all up to this number, also one that is back with its file; undefined while one may be there that has not said so yet. */
function copiesUpTo(partition: Partition | undefined, number: number): readonly string[] | undefined {
  const copies = (partition?.replicas ?? []).filter((replica) => replica.isFed && !replica.isFilling && replica.acked >= number);
  // A store that is away or is asked just now may be back with its file; one that was fenced off there is another's.
  if (copies.length === 0 && partition?.replicas.some((replica) => replica.mayHoldCopy && !replica.fenced && !replica.mustRefill) === true) return undefined;
  return copies.map(({ store }) => store.storeId);
}
