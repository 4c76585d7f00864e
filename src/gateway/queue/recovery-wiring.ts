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
import type { QueueMirror } from '../mirror/queue-mirror.js';
import { hasSurvivor } from '../mirror/replica-set.js';
import { Departures } from './departures.js';
import { RecoveredQueues } from './recovered-queues.js';
import type { RecoveredPorts } from './recovered-queues.js';

export interface RecoveryWiringPorts extends RecoveredPorts {
  readonly counters: { recoveredMessages: number };
  needFlush(): void;
  olderMayLive(): boolean;
  /** Out of registry, mirrors and memory. */
  forget(mirror: QueueMirror): void;
}

export class RecoveryWiring {
  readonly recovery: BulkRecovery;
  readonly recovered: RecoveredQueues;
  readonly departures: Departures;
  private readonly lostSets: LostSets;
  private readonly options: RecoveryOptions;
  private readonly ports: RecoveryWiringPorts;

  constructor(options: RecoveryOptions, ports: RecoveryWiringPorts) {
    this.options = options;
    this.ports = ports;
    const { registry, mirrors } = ports;
    const random = new Prng(options.token);
    this.recovered = new RecoveredQueues(ports);
    this.lostSets = new LostSets({ mirrors, log: ports.log, nowMs: () => ports.clock.nowMs() });
    this.recovery = new BulkRecovery(options, {
      lostSets: this.lostSets,
      packer: ports.packer,
      log: ports.log,
      nowMs: () => ports.clock.nowMs(),
      random: () => random.next(),
      needFlush: () => { ports.needFlush(); },
      olderMayLive: () => ports.olderMayLive(),
      takeHandle: () => registry.takeHandle(),
      served: (ownerId, birth, serial) => registry.served(ownerId, birth, serial),
      membersOf: (handle) => membersOf(mirrors.mirrorOf(handle)),
      copiesUpTo: (handle, number) => copiesUpTo(mirrors.mirrorOf(handle), number),
      mayPull: (isOwn, pulling, inHandBytes) => this.mayPull(isOwn, pulling, inHandBytes),
      onClaimed: (queue) => { this.recovered.onClaimed(queue); },
      onBlock: (handle, rows, bodies, texts, lastSource) => {
        const taken = this.recovered.onBlock(handle, rows, bodies, texts, lastSource);
        if (taken && mirrors.mirrorOf(handle)?.queue.route.queueClass !== 'control') ports.counters.recoveredMessages += rows.length / ENTRY_ROW_BYTES;
        return taken;
      },
      onRecovered: (handle) => { this.recovered.onRecovered(handle); },
      onCopyTold: (handle, row) => { this.onCopyTold(handle, row); },
      onOwnerBack: (handle) => {
        const mirror = mirrors.mirrorOf(handle);
        if (mirror !== undefined) this.departures.handBack(mirror);
      },
    });
    this.departures = new Departures({
      log: ports.log,
      isParkingFor: (mirror) => ports.reports.isParkingFor(mirror),
      forget: (mirror) => { ports.forget(mirror); },
      released: (handle, members, others) => { this.recovery.handedBack(handle, members, others); },
    });
  }

  /** Another process holds the queue at every member of its set: it is not ours any more. */
  onLost(mirror: QueueMirror): void {
    this.ports.forget(mirror);
    this.departures.onForgotten(mirror);
    const { identity, name, route } = mirror.queue;
    this.recovery.onLost(mirror.handle, { ...identity, name, queueClass: route.queueClass }, mirror.epoch);
  }

  /** A store's list shows a queue that is served here. */
  private onCopyTold(handle: number, row: CensusRow): void {
    const { mirrors } = this.ports;
    const mirror = mirrors.mirrorOf(handle);
    const isTaken = mirror !== undefined && isNewer(mirror, row.storeId, row);
    // The same as in the answer to a claim (Mirrors.fence). A store that an open change of ours leaves out is asked for none.
    if (isTaken && !hasSurvivor(mirror)) mirrors.giveUp(mirror);
    else if (isTaken && mirror.isOwn && mirrors.mayDeliver(mirror, this.ports.clock.nowMs())) this.goBeyond(mirror, row);
    // One that is another's, or was given back changed, is not ours to touch.
    else if (row.holder === this.options.gatewayId && row.holderToken !== 0) mirrors.moves.onCopyTold(handle, row.storeId);
  }

  /**
   * A mirror that no takeover can do without says right now that the queue is ours: a newer set is one that an operator had
   * another gateway found, or take, while we were there. Left alone it would be believed by our next process, and what was
   * accepted here since be lost; so we number ours beyond it. The other gives its own back, as to any owner that is there.
   */
  private goBeyond(mirror: QueueMirror, row: CensusRow): void {
    const { mirrors, log } = this.ports;
    log.warn('takeover', 'another gateway was forced to go on with this queue while it was served here: its next set is numbered beyond that one; what was delivered there is repeated', { queue: mirror.queue.name, owner: row.ownerId, store: row.storeId, epoch: row.epoch, our_epoch: mirror.epoch });
    mirror.giveUp(row.storeId, row.epoch);
    mirrors.reviseSetOf(mirror);
  }

  tick(nowMs: number, isLate: boolean): void {
    this.recovery.tick(nowMs, isLate);
    this.departures.tick();
    this.lostSets.tick();
    this.resumeReports();
  }

  /** Once all queues of an owner are here, whole, its reports under way go on. */
  resumeReports(): void {
    if (this.recovery.isIdle) this.recovered.onAllRead();
    for (const ownerId of this.recovered.owners) if (this.recovery.isWhole(ownerId)) this.recovered.onAllRecovered(ownerId);
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

/** Empty while the set is changing, when who is a member is not told for sure, and while no mirror is in sync. */
function membersOf(mirror: QueueMirror | undefined): readonly string[] {
  if (mirror === undefined || mirror.queue.isLeaving || mirror.setChangeNumber !== 0 || mirror.inSyncCount === 0) return [];
  const members: string[] = [];
  for (const replica of mirror.replicas) {
    if (!replica.member) continue;
    if (!replica.store.isUp) return [];
    members.push(replica.store.storeId);
  }
  return members;
}

/** Stores whose copy goes on from where it stood and has all up to this number, also one that is back with its file; undefined while one may be there that has not said so yet. */
function copiesUpTo(mirror: QueueMirror | undefined, number: number): readonly string[] | undefined {
  const copies = (mirror?.replicas ?? []).filter((replica) => replica.isFed && !replica.isFilling && replica.acked >= number);
  // A store that is away or is asked just now may be back with its file; one that was fenced off there is another's.
  if (copies.length === 0 && mirror?.replicas.some((replica) => replica.mayHoldCopy && !replica.fenced && !replica.mustRefill) === true) return undefined;
  return copies.map(({ store }) => store.storeId);
}
