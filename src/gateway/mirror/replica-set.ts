/**
 * Changes of a queue's set of mirrors: epochs (docs/PROTOCOL.md "Epochs").
 *
 *   isolate        {a,b} ─ b is NG ─► SET {a} to a ─ a acknowledges ─► {a}
 *   join           {a} ─ b caught up ─► SET {a,b} to a ─ a acknowledges ─► {a,b}; only then b gets the change
 *   found          {a,b} both came back empty ─ a caught up ─► SET {a} to a itself ─► {a}
 *
 * One change is open at a time and, once sent, is never turned round: what has changed meanwhile is looked
 * at when it is acknowledged. Survivors are the in-sync members of the acknowledged set that are also in
 * the set sent; nothing of the new set counts before all of them have it.
 *
 * A joiner whose survivors are lost before they acknowledged founds the next set itself.
 *
 * A set that was founded counts only when no old member calls itself one any more: a recovery that reaches
 * nobody else would take it for the truth.
 *
 * Founding is allowed only while no process but this one can own the queue: every member must be reachable
 * again, so that it has refused or accepted this incarnation itself, or have restarted with empty memory.
 */
import { invariant } from '../../base/invariant.js';
import type { Crc32, Packer } from '../../platform/ports.js';
import type { QueueMirror } from './queue-mirror.js';
import type { Replica } from './replica.js';
import { ResyncPhase, SyncState } from './replica.js';
import type { SealedSection } from './turn-section.js';

/** What a change of the set needs of the sender. */
export interface SetChangePorts {
  readonly packer: Packer;
  readonly crc32: Crc32;
  nowMs(): number;
  /** Sends what is pending of the mirror now, so that the next change begins a section of its own. */
  sealNow(mirror: QueueMirror): void;
  /** Sends a section that was held back for a joiner. */
  sendHeld(replica: Replica, section: SealedSection): void;
  /** Epoch and members as acknowledged: for the local hint file, log and metrics. */
  onEpoch(mirror: QueueMirror): void;
}

function isSurvivor(replica: Replica): boolean {
  return replica.member && replica.wanted && replica.sync === SyncState.SYNC;
}

/** In-sync members that stay. With a change open: of the acknowledged set and of the one sent. */
function hasSurvivor(mirror: QueueMirror): boolean {
  return mirror.replicas.some((replica) => replica.member && replica.sync === SyncState.SYNC && (mirror.setChangeNumber === 0 || replica.wanted));
}

function mayFound(mirror: QueueMirror): boolean {
  for (const replica of mirror.replicas) {
    if ((replica.member || replica.wanted) && !replica.store.isUp) return false;
  }
  return true;
}

/**
 * Looks at the set after anything happened to a mirror of it, and opens the change that is due, if any.
 * Returns true when a change was opened.
 */
export function reviseSet(mirror: QueueMirror, ports: SetChangePorts): boolean {
  const founding = !hasSurvivor(mirror);
  if (mirror.setChangeNumber !== 0 && !founding) return false;
  if (founding) {
    if (mirror.founding && mirror.setChangeNumber !== 0 && mirror.replicas.some((r) => r.wanted && r.phase === ResyncPhase.JOINING)) return false;
    if (!mayFound(mirror)) return false;
    letJoinersCatchUp(mirror, ports);
  }
  let changed = false;
  for (const replica of mirror.replicas) {
    const stays = founding ? replica.phase === ResyncPhase.CAUGHT_UP : (replica.member && replica.sync === SyncState.SYNC) || replica.phase === ResyncPhase.CAUGHT_UP;
    if (stays !== replica.member) changed = true;
  }
  if (founding && !mirror.replicas.some((replica) => replica.phase === ResyncPhase.CAUGHT_UP)) return false;
  if (!changed && !founding) return false;
  openChange(mirror, founding, ports);
  return true;
}

/**
 * The survivors that a joiner waited for are gone: it gets what was held back, the set without end included,
 * and founds the next one.
 */
function letJoinersCatchUp(mirror: QueueMirror, ports: SetChangePorts): void {
  for (const replica of mirror.replicas) {
    if (replica.phase !== ResyncPhase.JOINING) continue;
    replica.phase = ResyncPhase.CAUGHT_UP;
    const held = replica.held;
    replica.held = [];
    for (const section of held) ports.sendHeld(replica, section);
  }
}

function openChange(mirror: QueueMirror, founding: boolean, ports: SetChangePorts): void {
  // The change begins a section, so that a joiner's copy of it can be held back whole.
  ports.sealNow(mirror);
  let joins = false;
  const members: string[] = [];
  for (const replica of mirror.replicas) {
    const joiner = replica.phase === ResyncPhase.CAUGHT_UP;
    replica.wanted = joiner || (!founding && replica.member && replica.sync === SyncState.SYNC);
    if (joiner) {
      replica.phase = ResyncPhase.JOINING;
      joins = true;
    }
    if (replica.wanted) members.push(replica.store.storeId);
  }
  invariant(members.length > 0, 'a set of mirrors is never empty');
  // A change that never was acknowledged may have been applied: its epoch is used up.
  if (founding && mirror.setChangeNumber !== 0) mirror.epoch += 1;
  mirror.founding = founding;
  const packed = ports.packer.pack(members);
  mirror.setChangeNumber = mirror.setMembers(mirror.epoch + 1, packed, ports.crc32(packed, 0));
  if (joins) ports.sealNow(mirror);
}

/** Whether a joiner's sections from the open change on must still be held back. */
export function isHeldBack(mirror: QueueMirror, replica: Replica, section: SealedSection): boolean {
  return replica.phase === ResyncPhase.JOINING && !mirror.founding && mirror.setChangeNumber !== 0 && section.lastNumber >= mirror.setChangeNumber;
}

/** After an acknowledgement: is the open change at every survivor? Then the new set counts. */
export function settleSet(mirror: QueueMirror, ports: SetChangePorts): void {
  const number = mirror.setChangeNumber;
  if (number === 0) return;
  let needed = 0;
  for (const replica of mirror.replicas) {
    const counts = mirror.founding ? replica.wanted && replica.phase === ResyncPhase.JOINING : isSurvivor(replica);
    if (!counts) {
      // Its store would show the old set to a recovery that sees no other: it is emptied before the new one counts.
      if (mirror.founding && replica.member && replica.stillClaims) return;
      continue;
    }
    needed += 1;
    if (replica.acked < number) return;
  }
  if (needed === 0) return;
  mirror.setChangeNumber = 0;
  mirror.founding = false;
  mirror.epoch += 1;
  for (const replica of mirror.replicas) {
    replica.member = replica.wanted;
    if (replica.phase !== ResyncPhase.JOINING || !replica.wanted) continue;
    const held = replica.held;
    replica.transition(SyncState.SYNC, 'caught up', ports.nowMs());
    for (const section of held) ports.sendHeld(replica, section);
  }
  ports.onEpoch(mirror);
  mirror.advance();
  reviseSet(mirror, ports);
}
