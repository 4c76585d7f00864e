/**
 * The versions of the protocol: which one a connection speaks, and what a peer of the version before is told
 * instead of what it can't read (docs/PROTOCOL.md, "Versions").
 *
 *   version  release      more than the version before
 *   1        0.1.0
 *   2        none         gateways deliver by a lease only, and take over one another's queues: RELEASE gives a queue to its
 *                         owner, who must claim it; CONFIRM tells what is left of the owner's lease and denies a claim of
 *                         before a restart; CLAIM knows the token 0. Role 3 (spilled) in LISTED and CLAIMED; TAIL
 *                         finds more than the last number; a stopping store waits until queues are moved away;
 *                         SET_MEMBERS may leave epochs out; CLAIMED tells the writer of the copy, RELEASE whether the
 *                         claim was unused
 *   3        this one     rows say what an entry keeps for its note, and pays for: an older peer would refuse them, or be
 *                         refused. TEXTS, and texts in BLOCK
 *
 * The frame is the same in all, its own version is 1 (frame.ts). The gateway names the range that it speaks
 * in HELLO, the store answers with the highest of it that it speaks too. Versions 1 and 2 are spoken no more.
 */
import { ROLE_MEMBER, ROLE_NONE, ROLE_SPILLED } from './reasons.js';

/** What this release speaks among its own. */
export const PROTOCOL_VERSION = 3;
/** No release spoke an older one that this one could. */
export const PROTOCOL_VERSION_OLDEST = 3;

/** The first version in which one gateway may take over the queues of another. */
const VERSION_OF_TAKEOVER = 2;
/** The first version whose gateways know spilled copies, and move queues away from a stopping store. */
const VERSION_OF_SPILL = 2;
/** The first version whose stores take any higher epoch. */
const VERSION_OF_EPOCHS_AHEAD = 2;
/** The first version with `writer` in CLAIMED and `unused` in RELEASE. */
const VERSION_OF_WRITER = 2;

/** The version that both speak, from HELLO's range, or 0 when there is none (CLOSE with VERSION). */
export function chooseVersion(versionMin: number, versionMax: number): number {
  const version = Math.min(versionMax, PROTOCOL_VERSION);
  return version >= Math.max(versionMin, PROTOCOL_VERSION_OLDEST) ? version : 0;
}

/** For log lines: the versions that this release speaks. */
export function versionsSpoken(): string {
  return `versions ${String(PROTOCOL_VERSION_OLDEST)} to ${String(PROTOCOL_VERSION)}`;
}

/**
 * Whether a peer of this version keeps the rules by which queues pass from one living gateway to another and back:
 * stores of version 1 release a claim to whom it was taken from, gateways of version 1 deliver without a lease.
 */
export function allowsTakeover(version: number): boolean {
  return version >= VERSION_OF_TAKEOVER;
}

/** Whether a store of this version takes, as a member, any higher epoch; one of version 1 the next one only. */
export function allowsEpochsAhead(version: number): boolean {
  return version >= VERSION_OF_EPOCHS_AHEAD;
}

/** Whether a peer of this version knows the writer in CLAIMED, and `unused` in RELEASE. */
export function tellsWriter(version: number): boolean {
  return version >= VERSION_OF_WRITER;
}

/** Whether a gateway of this version moves its queues away from a store that says that it stops. */
export function movesQueuesAway(version: number): boolean {
  return version >= VERSION_OF_SPILL;
}

/**
 * The role of a store as a gateway of this version is told it; `isNamed`: the set of the copy names the store.
 *
 * Version 1 takes an unknown role for a malformed message, and so would hold its mail. To it a spilled copy whose set
 * names the store is a member that the others left behind while it could not be reached: it believes the copy only if all
 * members of that epoch answer and none shows a newer one, which is what makes a spilled copy good. One that had left
 * its set is none of it.
 */
export function toldRole(version: number, role: number, isNamed: boolean): number {
  if (role !== ROLE_SPILLED || version >= VERSION_OF_SPILL) return role;
  return isNamed ? ROLE_MEMBER : ROLE_NONE;
}
