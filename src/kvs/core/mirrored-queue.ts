/**
 * One mirrored queue as a store knows it: whose it is, who may write, at which number and digest it stands,
 * where its entries start and end, and how far a refill has come.
 *
 *   identity   (gatewayId of the owner, birth incarnation, serial); the name is an attribute
 *   role       NONE ── SET_MEMBERS with this store ──► MEMBER ── SET_MEMBERS without it ──► NONE
 *              any ── REFILL_BEGIN ──► FILLING (refilling) ── REFILL_END, count agrees ──► FILLING
 *              SPILLED (spill/loader.ts): as it stood in a file; else like NONE
 *              FILLING, no longer refilling ── SET_MEMBERS with this store ──► MEMBER
 *
 * Owns: the fields. Entries are rows in stored-entries.ts, rules of change in section.ts, of claims in claims.ts.
 */

import type { ToldClock } from '../../base/told-clock.js';
import { ROLE_NONE } from '../../protocol/reasons.js';
import type { AppliedChanges } from './applied-changes.js';
import { CopyWriter } from './copy-writer.js';
import { DigestHistory } from './digest-history.js';

/** What OPEN says of a queue. */
export interface QueueAttributes {
  readonly ownerId: string;
  readonly birth: number;
  readonly serial: number;
  readonly name: string;
  readonly queueClass: string;
  readonly ordering: number;
  readonly lengthMax: number;
  readonly bytesMax: number;
  readonly claimants: readonly string[];
}

export class MirroredQueue {
  readonly attributes: QueueAttributes;
  /** Number of the owner's account: shared bodies belong to it. */
  readonly ownerAccount: number;
  /** Salt of its entries in the index; a fresh one whenever the queue is emptied, so that the old chain can be freed in steps. */
  key: number;

  number = 0;
  digestA = 0;
  digestB = 0;
  readonly history = new DigestHistory();
  /** The last changes of all queues of its owner. */
  readonly ring: AppliedChanges;

  /** Its last record in the ring of its owner: number of the chunk (0 = none) and offset. */
  ringChunk = 0;
  ringAt = 0;

  first = 0;
  last = 0;
  count = 0;
  /** Bodies and heads, a shared body counted for each entry. */
  bytes = 0;

  role: number = ROLE_NONE;
  epoch = 0;
  members: readonly string[] = [];

  /** Who may write: a gateway id. The owner until a claimant is granted. */
  holder: string;
  /** Token of the holder's claim; 0 while the owner holds it by OPEN alone. */
  holderToken = 0;
  highestToken = 0;
  /** Since its OPEN a claim was granted: another process may be its founder. */
  wasClaimed = false;
  /** Given back: nothing is taken from the holder before its claim. */
  mustClaim = false;
  /** False for what a spill file says of a claim: nobody was asked since the store started. */
  isClaimOfThisBoot = true;

  readonly writer = new CopyWriter();
  /** Wall clock of the process that wrote to it last: due times and expiry are of it. Undefined out of a file. */
  clock: ToldClock | undefined;

  /** Between REFILL_BEGIN and REFILL_END: entries are missing. */
  refilling = false;
  /** Refill: last entry refilled (0: in front of all), its position, entries taken, number of REFILL_BEGIN. */
  refillRow = 0;
  refillPosition = 0;
  refillCount = 0;
  refillNumber = 0;

  /** Where the last pull ended, so that the next block needs no search even if that entry is gone by then. */
  pullRow = 0;
  pullPosition = 0;

  constructor(attributes: QueueAttributes, ownerAccount: number, key: number, ring: AppliedChanges) {
    this.ring = ring;
    this.attributes = attributes;
    this.ownerAccount = ownerAccount;
    this.key = key;
    this.holder = attributes.ownerId;
    this.history.restart(0, 0, 0);
  }

  /** Stands empty at this number and digest; the chain of old entries is the caller's to free. */
  restart(key: number, number: number, a: number, b: number): void {
    this.key = key;
    this.number = number;
    this.digestA = a;
    this.digestB = b;
    this.history.restart(number, a, b);
    this.ringChunk = 0;
    this.first = 0;
    this.last = 0;
    this.count = 0;
    this.bytes = 0;
    this.refillRow = 0;
    this.refillPosition = 0;
    this.refillCount = 0;
    this.refillNumber = number;
    this.pullRow = 0;
    this.pullPosition = 0;
  }
}
