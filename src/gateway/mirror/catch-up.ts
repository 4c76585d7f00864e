/**
 * How a mirror that was away comes back, and how our right to its queue is confirmed.
 *
 *   NG, store up ── CLAIM (our token) ─► CLAIMED: number, digest, epoch, role
 *        in the ring, still in the set, no survivor ─► SYNC at once, the tail behind it
 *        in the ring                                ─► RESYNC, the tail, CAUGHT_UP, then the set changes
 *        unknown there, or not in the ring          ─► refill (resync.ts)
 *        another process holds it                   ─► fenced: asked again later, it may be released (claim-again.ts)
 *        of a newer set than we ever began          ─► the same, even if the claim is granted: another had the queue since
 *        dropped there, at the boot that we knew    ─► the same: only its holder could do that; also when an OPEN of ours
 *                                                      has made it anew since, empty
 *   path changed, or a lease that began anew: OPEN attaches the queue again; what was not acknowledged is repeated
 *
 * So no copy is emptied while it can be continued. Sections are repeated whole (whole-section.ts): numbers and
 * digests are the same, and a store takes each change once.
 */
import type { EventLog, Packer } from '../../platform/ports.js';
import { CLAIM, OPEN } from '../../protocol/message-types.js';
import { encodeClaim } from '../../protocol/messages/claim.js';
import type { Claimed } from '../../protocol/messages/claimed.js';
import { CLAIM_GRANTED, CLAIM_GRACE, CLAIM_LEASE_RUNS, CLAIM_TOKEN_LOW, CLAIM_UNKNOWN, ROLE_FILLING, ROLE_MEMBER, ROLE_SPILLED, claimResultName } from '../../protocol/reasons.js';
import type { ChangeRing } from './change-ring.js';
import { isNewer, mayClaimAbove, tokenAt } from './claim-again.js';
import { Decline, decline, fenceOff, unfence } from './declined.js';
import { encodeOpenOf } from './open-queue.js';
import type { Outbox } from './outbox.js';
import type { Partition } from './partition.js';
import type { RepairCounters } from './repair-counters.js';
import type { Replica } from './replica.js';
import { ResyncPhase, SyncState } from './replica.js';
import { hasSurvivor, isHeldBack, isItsTime, mayFound } from './replica-set.js';
import type { StorePort } from './store-port.js';
import type { SealedSection } from './turn-section.js';
import { wholeSection } from './whole-section.js';

export interface CatchUpOptions {
  readonly incarnation: number;
  readonly group: readonly string[];
  readonly retryMs: number;
}

export interface CatchUpPorts {
  readonly packer: Packer;
  readonly log: EventLog;
  readonly ring: ChangeRing;
  readonly counters: RepairCounters;
  nowMs(): number;
  outboxOf(store: StorePort): Outbox | undefined;
  partitionOf(handle: number): Partition | undefined;
  /** Seals what is pending, so that the ring has all of it before the mirror is fed. */
  sealNow(partition: Partition): void;
  put(replica: Replica, section: SealedSection): void;
  refill(partition: Partition, replica: Replica): void;
  /** The mirror is level, or in sync again: the set may change. */
  onLevel(partition: Partition): void;
  /** `isTaken`: the store shows a set that this process never began. */
  onFenced(partition: Partition, replica: Replica, isTaken: boolean): void;
  needFlush(): void;
}

export class CatchUp {
  private readonly options: CatchUpOptions;
  private readonly ports: CatchUpPorts;

  constructor(options: CatchUpOptions, ports: CatchUpPorts) {
    this.options = options;
    this.ports = ports;
  }

  /** Asks an NG mirror's store where its copy stands, if it is time for it. */
  look(partition: Partition, replica: Replica): void {
    const { store } = replica;
    if (replica.sync !== SyncState.NG || replica.claimSequence !== 0 || replica.retryAtMs > this.ports.nowMs()) return;
    const outbox = this.ports.outboxOf(store);
    if (outbox === undefined || !store.isUp || !store.canSend || outbox.isBacklogged) return;
    // With survivors it must have left the set before it can join anew.
    if (replica.member && hasSurvivor(partition)) return;
    const isBackAnew = replica.mayHoldCopy && !replica.stillClaims;
    // A store that has restarted is asked in any case whether it came back with a file.
    if (!isBackAnew && !isItsTime(partition, replica)) return;
    if (replica.mustRefill && !replica.fenced && !isBackAnew) {
      this.ports.refill(partition, replica);
      return;
    }
    const { ownerId, birth, serial } = partition.identity;
    replica.claimTerm = store.leaseTerm;
    replica.claimSequence = store.request(CLAIM, encodeClaim(this.ports.packer, { handle: partition.handle, gatewayId: ownerId, birth, serial, token: tokenAt(partition, replica, this.options.incarnation) }), [], 0);
    this.ports.needFlush();
  }

  /** An answer to a CLAIM of ours; false when the request was somebody else's. */
  onClaimed(store: StorePort, sequence: number, claimed: Claimed): boolean {
    const partition = this.ports.partitionOf(claimed.handle);
    const replica = partition?.replicas.find((one) => one.store === store);
    if (partition === undefined || replica === undefined || replica.claimSequence !== sequence) return false;
    replica.claimSequence = 0;
    if (replica.sync !== SyncState.NG) return true;
    if (claimed.result === CLAIM_GRANTED && isNewer(partition, store.storeId, claimed)) this.notGranted(partition, replica, claimed);
    else if (claimed.result === CLAIM_GRANTED && wasDropped(partition, replica, claimed)) this.ports.onFenced(partition, replica, false);
    else if (claimed.result === CLAIM_GRANTED) {
      unfence(replica);
      replica.confirmedTerm = replica.claimTerm;
      // It calls itself a member's, in memory or out of a file, and is ours; or what it had before its restart is gone.
      if (claimed.role === ROLE_MEMBER || claimed.role === ROLE_SPILLED) replica.claimBootId = store.bootId;
      else if (!replica.stillClaims) replica.onGone(this.ports.nowMs());
      if (isItsTime(partition, replica)) this.judge(partition, replica, claimed);
      else this.ports.onLevel(partition);
    } else if (claimed.result === CLAIM_UNKNOWN) this.unknown(partition, replica);
    else this.notGranted(partition, replica, claimed);
    return true;
  }

  /**
   * A member as the claim of a recovery just showed it. True when it is in sync from here on: what it lacks is in
   * the ring and on its way.
   */
  adopt(partition: Partition, replica: Replica, number: number, digestA: number, digestB: number): boolean {
    if (!replica.member || !replica.store.isUp || !this.ports.ring.stands(partition.handle, number, digestA, digestB)) return false;
    replica.transition(SyncState.SYNC, number === partition.lastNumber ? 'recovered complete' : 'recovered; the rest is sent', this.ports.nowMs());
    replica.acked = number;
    this.attach(partition, replica);
    if (number < partition.lastNumber) {
      this.ports.counters.tails += 1;
      this.ports.counters.tailBytes += this.repeat(partition, replica);
    }
    return true;
  }

  /** The queue gets its handle again on a new connection, or our right is confirmed in a new term. */
  attach(partition: Partition, replica: Replica): void {
    // A queue whose OPEN may not have arrived is opened as it was; a known one is not changed by that.
    const first = replica.sync === SyncState.SYNC && replica.acked === 0 && partition.firstMembers?.includes(replica.store.storeId) === true ? partition.firstMembers : [];
    const control = encodeOpenOf(this.ports.packer, this.options.group, partition, first.length === 0 ? 0 : 1, first);
    this.ports.outboxOf(replica.store)?.request(OPEN, control, replica);
    this.ports.needFlush();
  }

  /** Sends what follows the last acknowledged change once more, or holds it back. Returns the bytes that are sent. */
  repeat(partition: Partition, replica: Replica): number {
    let bytes = 0;
    replica.held = [];
    for (const section of this.ports.ring.after(partition.handle, replica.acked)) {
      const whole = wholeSection(section);
      if (isHeldBack(partition, replica, section)) {
        replica.held.push(whole);
        continue;
      }
      bytes += whole.rows.length + whole.payloadBytes;
      this.ports.put(replica, whole);
    }
    if (bytes > 0) this.ports.needFlush();
    return bytes;
  }

  /** All of a tail is acknowledged: the mirror waits for the set like one that was refilled. */
  onProgress(partition: Partition, replica: Replica): void {
    if (replica.phase !== ResyncPhase.TAILING || replica.acked < replica.tailUntil) return;
    replica.phase = ResyncPhase.CAUGHT_UP;
    replica.filledBootId = replica.store.bootId;
    this.ports.onLevel(partition);
  }

  private judge(partition: Partition, replica: Replica, claimed: Claimed): void {
    const { ring, counters, log } = this.ports;
    // Whoever else had the queue since gave it back without our token (kvs/core/claims.ts, mustClaim):
    // a copy of this boot that does not stand in the ring is one that has fallen too far behind.
    // A copy that is being filled has holes below its number, unless its refill was over.
    const isWhole = claimed.role !== ROLE_FILLING || replica.filledBootId === replica.store.bootId;
    if (!isWhole || replica.mustRefill || !ring.stands(partition.handle, claimed.number, claimed.digestA, claimed.digestB)) {
      replica.mustRefill = true;
      this.ports.refill(partition, replica);
      return;
    }
    this.ports.sealNow(partition);
    const isBack = replica.member && replica.wanted && !hasSurvivor(partition) && claimed.role === ROLE_MEMBER;
    const cause = claimed.number === partition.lastNumber ? 'it lacks nothing' : 'only the tail is sent';
    replica.acked = claimed.number;
    replica.transition(isBack ? SyncState.SYNC : SyncState.RESYNC, cause, this.ports.nowMs());
    if (!isBack) {
      replica.phase = ResyncPhase.TAILING;
      // A founder's set goes right behind the tail, which may tell it that it is a member no more.
      replica.tailUntil = hasSurvivor(partition) || !mayFound(partition, replica) ? lastToHear(partition, replica) : claimed.number;
    }
    const bytes = this.repeat(partition, replica);
    counters.tails += 1;
    counters.tailBytes += bytes;
    log.info('mirror', 'a mirror goes on from where it stood', { partition: partition.name, store: replica.store.storeId, from: claimed.number, to: partition.lastNumber, tail_bytes: bytes });
    if (isBack) this.ports.onLevel(partition);
    else this.onProgress(partition, replica);
  }

  /** The store does not know the queue: it restarted, or the OPEN of a new queue never reached it. */
  private unknown(partition: Partition, replica: Replica): void {
    const neverOpened = replica.claimBootId === replica.store.bootId && replica.acked === 0 && partition.firstMembers?.includes(replica.store.storeId) === true;
    if (neverOpened && replica.member && replica.wanted && !hasSurvivor(partition) && this.ports.ring.stands(partition.handle, 0, 0, 0)) {
      this.ports.sealNow(partition);
      replica.transition(SyncState.SYNC, 'it had not heard of the queue; all of it is sent', this.ports.nowMs());
      this.attach(partition, replica);
      this.repeat(partition, replica);
    } else if (isOfSet(partition, replica) && replica.stillClaims && replica.acked > 0) {
      this.ports.onFenced(partition, replica, false);
      return;
    } else {
      unfence(replica);
      replica.onGone(this.ports.nowMs());
      replica.isOpenedAnew = true;
      replica.mustRefill = true;
      if (isItsTime(partition, replica)) this.ports.refill(partition, replica);
    }
    this.ports.onLevel(partition);
  }

  private notGranted(partition: Partition, replica: Replica, claimed: Claimed): void {
    const waits = claimed.result === CLAIM_LEASE_RUNS || claimed.result === CLAIM_GRACE;
    if (claimed.result === CLAIM_TOKEN_LOW && mayClaimAbove(partition, replica)) {
      fenceOff(replica);
      // At once, but not again and again against one who does the same.
      replica.retryAtMs = this.ports.nowMs() + (replica.token === 0 ? 0 : this.options.retryMs);
      replica.token = claimed.token + 1;
      return;
    }
    replica.retryAtMs = this.ports.nowMs() + Math.max(this.options.retryMs, claimed.waitMs);
    this.ports.log.warn('mirror', waits ? 'a store does not let us have this partition yet' : 'another process holds this partition at the store', { partition: partition.name, store: replica.store.storeId, result: claimResultName(claimed.result), token: tokenAt(partition, replica, this.options.incarnation), highest_token: claimed.token });
    // A store that has restarted knows no token of ours: its copy of a newer set says that another had the queue since.
    const isTaken = isNewer(partition, replica.store.storeId, claimed);
    if (waits) decline(replica, claimed.result === CLAIM_GRACE ? Decline.GRACE : Decline.HELD);
    // What it had of our set is gone with its restart: whoever has claimed there since had nothing of it.
    if (!waits && claimed.role !== ROLE_MEMBER && claimed.role !== ROLE_SPILLED && replica.mayHoldCopy && !replica.stillClaims) replica.onGone(this.ports.nowMs());
    if (!waits || isTaken) this.ports.onFenced(partition, replica, isTaken);
    // Another fills it since its restart: what it had of the set is gone, as if it did not know the queue.
    else if (claimed.role === ROLE_FILLING && replica.mayHoldCopy && !replica.stillClaims) {
      replica.onGone(this.ports.nowMs());
      this.ports.onLevel(partition);
    }
  }
}

/** All that a mirror may be told now: not a change of the set that it has no part in (isHeldBack). */
function lastToHear(partition: Partition, replica: Replica): number {
  return partition.setChangeNumber === 0 || replica.wanted ? partition.lastNumber : partition.setChangeNumber - 1;
}

/** One of the set that stands below what it acknowledged in this boot was dropped by another holder; an OPEN of ours has made it anew, empty. */
function wasDropped(partition: Partition, replica: Replica, claimed: Claimed): boolean {
  return isOfSet(partition, replica) && replica.stillClaims && claimed.number < replica.acked;
}

/** A member, or one that a set was founded on: it may call itself a member's, acknowledged or not, and be claimed as one. */
function isOfSet(partition: Partition, replica: Replica): boolean {
  return replica.member || (partition.founding && replica.wanted);
}
