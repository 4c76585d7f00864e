/**
 * Changes of a queue's set of mirrors: epochs (docs/PROTOCOL.md "Epochs").
 *
 *   isolate        {a,b} ─ b is NG ─► SET {a} to a ─ a acknowledges ─► {a}
 *   join           {a} ─ b caught up ─► SET {a,b} to a ─ a acknowledges ─► {a,b}; only then b gets the change
 *   leave          {a,b,c} ─ b is drained ─► SET {a,c} to a, c ─ both acknowledge ─► {a,c}; b never hears of it,
 *                  but when it leaves with nobody in its place: then it gets the change, too
 *   let in again   {a,b} ─ b was emptied and is filled, a is back in sync ─► SET {a,b} to a ─ a acknowledges ─► {a,b}
 *   found          {a,b} both restarted ─ a filled ─► SET {a} to a itself ─ a acknowledges ─► {a}; only then b joins
 *
 * One change is open at a time and, once sent, is never turned round: what has changed meanwhile is looked
 * at when it is acknowledged. Survivors are the in-sync members of the acknowledged set that are also in
 * the set sent; nothing of the new set counts before all of them have it. Without a survivor a set waits for
 * one to come back (catch-up.ts), but for founding, whose rule is mayFound().
 *
 * A joiner whose survivors are lost before they acknowledged founds the next set itself.
 *
 * Epochs are numbered by one more each. When an operator has a store given up that may have been in newer sets, the next
 * one goes far ahead, to the time of day in milliseconds (epochAhead), so that whoever takes the queue over when that store
 * is back believes ours: sets change far less often than once a millisecond, so that each number told before is below it,
 * also those of a set that was forced earlier, here or at another gateway.
 */
import { invariant } from '../../base/invariant.js';
import type { Crc32, Packer } from '../../platform/ports.js';
import { encodeMembers } from '../../protocol/members.js';
import { allowsEpochsAhead } from '../../protocol/versions.js';
import { hasRefused, takesNone, wordOf } from './declined.js';
import type { Partition } from './partition.js';
import type { Replica } from './replica.js';
import { Leave, ResyncPhase, SyncState } from './replica.js';
import { causeOfChange } from './set-cause.js';
import type { SealedSection } from './turn-section.js';

/** What a change of the set needs of the sender. */
export interface SetChangePorts {
  /** Mirrors that a queue is to have. */
  readonly replicas: number;
  readonly packer: Packer;
  readonly crc32: Crc32;
  nowMs(): number;
  wallMs(): number;
  /** Sends what is pending of the mirror now, so that the next change begins a section of its own. */
  sealNow(partition: Partition): void;
  /** Sends a section that was held back for a joiner. */
  sendHeld(replica: Replica, section: SealedSection): void;
  /** Epoch and members as acknowledged: for the local hint file, log and metrics. */
  onEpoch(partition: Partition): void;
}

/** By a clock that was set back: more than the changes of its set that a queue sees while one store is away. As milliseconds no longer than an operator's second thought. */
const FORCED_EPOCHS = 2 ** 16;
const FORCED_EPOCHS_SPREAD = 2 ** 8;

function isSurvivor(replica: Replica): boolean {
  return replica.inSync && replica.wanted;
}

/** In-sync members that stay. With a change open: of the acknowledged set and of the one sent. */
export function hasSurvivor(partition: Partition): boolean {
  for (const replica of partition.replicas) if (replica.inSync && (partition.setChangeNumber === 0 || replica.wanted)) return true;
  return false;
}

/**
 * THE RULE OF FOUNDING (docs/model). With no survivor the next set is founded by this process alone, on filled copies,
 * only if
 *   1. the copy of every member of the acknowledged set is known to be gone, and that of every store that an open
 *      founding was sent to: the store said that it does not know the queue, or we emptied it as its holder. A new boot
 *      id alone is not enough: the store may have come back with its file, and a takeover would believe that. Or the
 *      copy obeys us: it is one of the founders, still whole; or a change drops it that only stores now gone were told of;
 *      and
 *   2. of one of them that a takeover could not do without (decides()) it is known that no other process was granted a
 *      claim there before: our lease at that boot still ran when we learned of the restart, and has run on at the next one
 *      until the store said what 1 asks (else another may have had the queue by its file, and moved on); or it granted our
 *      claim since.
 * A takeover needs a claim at every member of the newest epoch, and a restarted store's never counts: so by 2 nobody
 * took over before, and by 1 nobody can any more. In every other case the queue waits for a member to come back, or for
 * its operator (lost-sets.ts). That no other gateway may claim the queue is no reason to go on: the next process of this
 * one may have taken it over, started elsewhere while this one was cut off.
 */
export function mayFound(partition: Partition, candidate?: Replica): boolean {
  for (const replica of partition.replicas) if (hinders(partition, replica, candidate)) return false;
  return partition.replicas.some((replica) => isWitness(partition, replica));
}

/** Condition 1: a copy of this member, or founder, is known or feared. */
function hinders(partition: Partition, replica: Replica, candidate?: Replica): boolean {
  if (!replica.mayHoldCopy || !(replica.member || (partition.founding && replica.wanted))) return false;
  const isWhole = replica.stillClaims && (replica === candidate || replica.phase === ResyncPhase.CAUGHT_UP);
  return !isWhole && (decides(partition, replica) || !replica.obeys);
}

/** Condition 2. One with a whole copy is, too: to get there it answers our claim. */
function isWitness(partition: Partition, replica: Replica): boolean {
  return decides(partition, replica) && (replica.mayHoldCopy || replica.lossWitnessed);
}

/**
 * Mirrors that an operator must give up before the next set can be founded: those that can't be reached, or that another
 * process holds, and that may have a copy; and, when all that decide are lost without a witness, one of these. Others that
 * are in the way answer, and are asked when these are not any more.
 */
export function toGiveUp(partition: Partition): Replica[] {
  const inTheWay = partition.replicas.filter((replica) => hinders(partition, replica) && (!replica.store.isUp || replica.fenced));
  const deciding = partition.replicas.filter((replica) => decides(partition, replica));
  const hasWitness = deciding.some((replica) => isWitness(partition, replica));
  return hasWitness ? inTheWay : [...deciding.slice(0, 1), ...inTheWay];
}

/**
 * Members that no takeover can do without, whether a change that was sent has been applied or not: while one is open,
 * those that it leaves in the set. One that it drops was not needed any more from the moment it was sent.
 */
export function decides(partition: Partition, replica: Replica): boolean {
  if (partition.setChangeNumber === 0) return replica.member;
  return replica.wanted && (replica.member || partition.founding);
}

/** No member is in sync, all that matter are back without their copies, and the rule of founding does not let us go on. */
export function isWithoutSurvivor(partition: Partition): boolean {
  if (hasSurvivor(partition) || mayFound(partition)) return false;
  let lost = 0;
  for (const replica of partition.replicas) {
    if (!decides(partition, replica)) continue;
    if (replica.mayHoldCopy || !replica.store.isUp) return false;
    lost += 1;
  }
  return lost > 0;
}

/** No member has been in sync for so long, and one that can't be reached, or that another holds, must be heard, or given up, before a set can be founded. */
export function waitsForSilent(partition: Partition, nowMs: number, afterMs: number): boolean {
  if (hasSurvivor(partition) || mayFound(partition)) return false;
  for (const replica of partition.replicas) if (replica.member && nowMs - replica.awaySinceMs < afterMs) return false;
  return toGiveUp(partition).some(({ store, fenced, mayHoldCopy }) => !store.isUp || (fenced && mayHoldCopy));
}

/** No member is in sync, and every store is silent or has said that it does not take a copy. */
export function findsNoStore(partition: Partition, nowMs: number, afterMs: number): boolean {
  if (hasSurvivor(partition) || partition.isRecovering) return false;
  return partition.replicas.every((replica) => takesNone(replica, nowMs, afterMs));
}

/**
 * What keeps a set from being founded are copies of ours only whose stores answer, and do not take what their copies lack:
 * at least one for want of room or the like. The queue goes on by them as soon as they do.
 */
export function waitsForRoom(partition: Partition): boolean {
  const inTheWay = partition.replicas.filter((replica) => hinders(partition, replica));
  return inTheWay.some(hasRefused) && inTheWay.every((replica) => wordOf(replica) !== undefined);
}

/**
 * Whether another process holds the queue at every copy that this one could go on with: those of members that are also
 * in the set sent, and of founders. A member that a sent change drops is not asked any more, unless the operator gave up
 * others; one that has restarted or was emptied has nothing to hold, whoever claims it: what is remembered here may be all
 * that is left; and one that was given up is not waited for.
 */
export function isFencedOff(partition: Partition): boolean {
  const isForced = partition.replicas.some((replica) => replica.isGivenUp);
  let fenced = 0;
  for (const replica of partition.replicas) {
    if (replica.isGivenUp || !(decides(partition, replica) || (isForced && replica.member))) continue;
    if (replica.fenced && replica.mayHoldCopy) fenced += 1;
    else if (replica.mayHoldCopy || !replica.store.isUp) return false;
  }
  return fenced > 0;
}

/** Whether a member may go: so many others are in sync in the set, and stay. */
function mayLeave(partition: Partition, replica: Replica, ports: SetChangePorts): boolean {
  if (replica.leaving === Leave.NO) return false;
  let others = 0;
  for (const other of partition.replicas) if (other !== replica && other.inSync && other.leaving === Leave.NO) others += 1;
  return others >= (replica.leaving === Leave.NOW ? Math.max(1, partition.minReplicas) : ports.replicas);
}

/** Who is in the next set: members in sync that need not go, and caught-up mirrors while there is room. */
function nextSet(partition: Partition, founding: boolean, ports: SetChangePorts): ReadonlySet<Replica> {
  const next = new Set<Replica>();
  if (founding) {
    const founder = founderOf(partition);
    return founder === undefined ? next : next.add(founder);
  }
  let staying = 0;
  for (const replica of partition.replicas) {
    if (!replica.inSync || mayLeave(partition, replica, ports)) continue;
    next.add(replica);
    if (replica.leaving === Leave.NO) staying += 1;
  }
  for (const replica of partition.replicas) {
    if (replica.phase !== ResyncPhase.CAUGHT_UP || staying >= ports.replicas) continue;
    next.add(replica);
    staying += 1;
  }
  return next;
}

/**
 * A set is founded by one store, which decides; the others join it as any mirror does. Told to two at once, the set could
 * stand at the one while the other, whose copy out of a file a takeover may believe, is another process's since. So the
 * founder is one with such a copy, if there is any.
 */
function founderOf(partition: Partition): Replica | undefined {
  const caughtUp = partition.replicas.filter(({ phase }) => phase === ResyncPhase.CAUGHT_UP);
  return caughtUp.find((replica) => replica.mayHoldCopy && decides(partition, replica)) ?? caughtUp[0];
}

/**
 * A member that was lost and has caught up beside a survivor: while no member was in sync it was filled without leaving
 * the set. What it acknowledged before says nothing any more, so it counts again as a joiner does: when a set of the next
 * epoch, with it, is at every survivor. Till then a takeover finds no member's copy there, or one that lacks nothing.
 */
function isToBeLetIn(replica: Replica): boolean {
  return replica.member && replica.phase === ResyncPhase.CAUGHT_UP;
}

/**
 * Looks at the set after anything happened to a mirror of it, and opens the change that is due, if any.
 * Returns true when a change was opened.
 */
export function reviseSet(partition: Partition, ports: SetChangePorts): boolean {
  const founding = !hasSurvivor(partition);
  if (partition.setChangeNumber !== 0 && !founding) return false;
  if (founding) {
    if (partition.founding && partition.setChangeNumber !== 0 && partition.replicas.some((r) => r.wanted && r.phase === ResyncPhase.JOINING)) return false;
    if (!mayFound(partition)) return false;
    letJoinersCatchUp(partition, ports);
  }
  const next = nextSet(partition, founding, ports);
  if (next.size === 0) return false;
  if (!founding && !goesAhead(partition, next) && partition.replicas.every((replica) => next.has(replica) === replica.member && !isToBeLetIn(replica))) return false;
  openChange(partition, founding, next, ports);
  return true;
}

/** A store was given up, and no mirror of the next set minds an epoch that is not the next one. */
function goesAhead(partition: Partition, next: ReadonlySet<Replica>): boolean {
  return partition.given.size > 0 && [...next].every(({ store }) => allowsEpochsAhead(store.version));
}

/** Not the same for two gateways in one moment: an operator may have one of them go on without a store, and the other one without another. */
function epochAhead(partition: Partition, ports: SetChangePorts): number {
  return Math.max(Math.floor(ports.wallMs()), Math.max(partition.epoch, partition.givenEpoch) + FORCED_EPOCHS) + (partition.token % FORCED_EPOCHS_SPREAD);
}

/**
 * The survivors that a joiner waited for are gone: it gets what was held back, the set without end included,
 * and founds the next one.
 */
function letJoinersCatchUp(partition: Partition, ports: SetChangePorts): void {
  for (const replica of partition.replicas) {
    if (replica.phase !== ResyncPhase.JOINING) continue;
    replica.phase = ResyncPhase.CAUGHT_UP;
    release(replica, ports);
  }
}

function release(replica: Replica, ports: SetChangePorts): void {
  const held = replica.held;
  replica.held = [];
  for (const section of held) ports.sendHeld(replica, section);
}

function openChange(partition: Partition, founding: boolean, next: ReadonlySet<Replica>, ports: SetChangePorts): void {
  // The change begins a section, so that a copy of it can be held back whole.
  ports.sealNow(partition);
  partition.setCause = causeOfChange(partition, founding, next);
  let joins = false;
  const members: string[] = [];
  for (const replica of partition.replicas) {
    replica.wanted = next.has(replica);
    if (!replica.wanted) continue;
    members.push(replica.store.storeId);
    if (replica.phase !== ResyncPhase.CAUGHT_UP) continue;
    release(replica, ports);
    replica.phase = ResyncPhase.JOINING;
    // Once it may be a member another may claim it: that nobody had before its last restart says nothing any more.
    replica.lossWitnessed = false;
    joins = true;
    // It may call itself a member from here on, acknowledged or not, and another may take over by it alone. What was known
    // of its earlier boots says nothing any more: of this one it is told when it ends (Mirrors.onLinkUp).
    if (founding) replica.claimBootId = replica.store.bootId;
  }
  invariant(members.length > 0, 'a set of mirrors is never empty');
  // A change that never was acknowledged may have been applied: its epoch is used up.
  if (founding && partition.setChangeNumber !== 0) partition.epoch = partition.setEpoch;
  partition.founding = founding;
  const packed = encodeMembers(ports.packer, members);
  const isAhead = goesAhead(partition, next);
  partition.setEpoch = isAhead ? epochAhead(partition, ports) : partition.epoch + 1;
  if (isAhead) partition.given.clear();
  partition.setChangeNumber = partition.setMembers(partition.setEpoch, packed, ports.crc32(packed, 0));
  if (joins) ports.sealNow(partition);
}

/**
 * Whether a section, from the open change on, must not reach the mirror yet: a joiner's, and that of a member that
 * leaves. Until the survivors have the change, the one is no member and the other still is one. Nor does a mirror hear
 * of it that has a whole copy and no part in the change: stopped now, its file would tell of a set that may never be.
 */
export function isHeldBack(partition: Partition, replica: Replica, section: SealedSection): boolean {
  if (partition.setChangeNumber === 0 || section.lastNumber < partition.setChangeNumber) return false;
  if (!replica.wanted && (replica.phase === ResyncPhase.TAILING || replica.phase === ResyncPhase.CAUGHT_UP)) return true;
  if (partition.founding) return false;
  return replica.phase === ResyncPhase.JOINING || (replica.inSync && !replica.wanted);
}

/** Whom a sent change drops or names hears nothing before the survivors have that change, unless they are gone for good. */
export function isItsTime(partition: Partition, replica: Replica): boolean {
  return partition.setChangeNumber === 0 || replica.member === replica.wanted || mayFound(partition, replica);
}

/** After an acknowledgement: is the open change at every survivor? Then the new set counts. */
export function settleSet(partition: Partition, ports: SetChangePorts): void {
  const number = partition.setChangeNumber;
  if (number === 0) return;
  let needed = 0;
  for (const replica of partition.replicas) {
    const counts = partition.founding ? replica.wanted && (replica.phase === ResyncPhase.JOINING || replica.sync === SyncState.SYNC) : isSurvivor(replica);
    if (!counts) continue;
    needed += 1;
    if (replica.acked < number) return;
  }
  if (needed === 0) return;
  partition.setChangeNumber = 0;
  partition.founding = false;
  partition.epoch = partition.setEpoch;
  for (const replica of partition.replicas) {
    replica.member = replica.wanted;
    // A store that stops with nobody in its place learns that it is free to; its file is then good for a tail.
    if (!replica.member && replica.leaving === Leave.NOW && replica.sync === SyncState.SYNC) for (const section of replica.held) ports.sendHeld(replica, section);
    if (!replica.member && replica.sync === SyncState.SYNC) replica.transition(SyncState.NG, `it has left the set: ${replica.leavingWhy}`, ports.nowMs());
    if (replica.phase !== ResyncPhase.JOINING || !replica.wanted) {
      release(replica, ports);
      continue;
    }
    const held = replica.held;
    replica.joinedBy = number;
    replica.transition(SyncState.SYNC, 'caught up', ports.nowMs());
    for (const section of held) ports.sendHeld(replica, section);
  }
  ports.onEpoch(partition);
  partition.advance();
  reviseSet(partition, ports);
}
