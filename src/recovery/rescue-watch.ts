/**
 * Watches over the queues of the other gateways of the group: whose holder is silent, so that they may be taken
 * over, and whose owner is back, so that they go home.
 *
 *   LIST '' of each store, every lease/4 ─► one probe a (holder, store) ─ "would be granted" ─► silent there
 *        a queue whose holder is silent at every member that can be asked ─► taken up (bulk-recovery.ts)
 *   CONFIRM of one served queue a (owner, store) ─ the owner's own lease runs ─► back there
 *        a queue whose owner is back at every member ─► handed back
 *   a claim of ours that stands in a list though we do not serve the queue, and its newest set is another's: a RELEASE
 *        was lost ─► released; dropped, if that set does not name the store: the copy is left behind. One that it names
 *        has not heard of the set yet, and nobody could have the queue without it
 *
 * A lease belongs to a gateway at a store, so one question for all its queues there is enough: watching a
 * thousand queues costs one list and one probe a store. The probe only says when to look; whether a queue may be
 * taken, its claims at every member decide.
 *
 * Of several rescuers the next one after the dead gateway's name goes first, the others wait their turn and find
 * the queues held: split between two, an owner's reports could not be finished by either.
 *
 * A list is asked for also without `rescue`: a bounce queue that a rescuer founded for us shows there.
 */
import type { Claimed } from '../protocol/messages/claimed.js';
import { CLAIM_GRANTED } from '../protocol/reasons.js';
import { isOfSet, newestOf } from './census.js';
import type { CensusRow } from './census.js';
import type { QueueJob } from './queue-job.js';
import type { KnownStore, StoreViews } from './store-views.js';

export interface RescueOptions {
  readonly gatewayId: string;
  readonly group: readonly string[];
  readonly rescue: boolean;
}

export interface RescuePorts {
  readonly views: StoreViews;
  nowMs(): number;
  random(): number;
  jobs(): Iterable<QueueJob>;
  ask(view: KnownStore, kind: 'holder' | 'owner' | 'attach', job: QueueJob): void;
  membersOf(handle: number): readonly string[];
  takeUp(job: QueueJob): void;
  /** No newer set than that of this row is hidden anywhere. */
  isOfLastSet(job: QueueJob, row: CensusRow): boolean;
  /** `isOld`: the copy is of an older set than the newest. */
  giveUp(job: QueueJob, row: CensusRow, isOld: boolean): void;
  onOwnerBack(job: QueueJob): void;
}

const LISTS_A_LEASE = 4;
/** After the end of a lease that a probe told, so that the next finds it over. */
const PAST_LEASE_MS = 20;
const JITTER_MS = 50;
/** Each later rescuer gives the one before it this long to hold its claims. */
const TURN_MS = 300;
const TURNS_MAX = 4;
const OWNER_LOOK_MS = 500;
/** How long an answer about an owner is taken for true. */
const OWNER_SEEN_MS = 2000;

/** One gateway's lease at one store. */
interface HolderLease {
  askAtMs: number;
  /** Since when it is known to have ended; Infinity while it may run. */
  silentSinceMs: number;
}

export class RescueWatch {
  private readonly options: RescueOptions;
  private readonly ports: RescuePorts;
  private readonly others: readonly string[];
  private readonly leases = new Map<string, HolderLease>();
  /** (owner, store) → when its own lease was last seen to run there. */
  private readonly ownerSeen = new Map<string, number>();
  private readonly attachFirst = new Set<string>();
  /** (owner, store) → which of the queues served there is asked for: another one, where our claim of the last did not stand. */
  private readonly askedFor = new Map<string, number>();
  private ownerLookMs = 0;

  constructor(options: RescueOptions, ports: RescuePorts) {
    this.options = options;
    this.ports = ports;
    this.others = options.group.filter((id) => id !== options.gatewayId);
  }

  tick(nowMs: number): void {
    if (this.others.length === 0) return;
    for (const view of this.ports.views.all()) {
      if (!view.listed || !view.store.isUp || view.listing !== undefined || nowMs < view.listAtMs) continue;
      view.listAtMs = nowMs + view.store.leaseMs / LISTS_A_LEASE + this.ports.random() * JITTER_MS;
      this.ports.views.list(view, true);
    }
    this.leaveOthers(nowMs);
    if (this.options.rescue) {
      this.probeHolders(nowMs);
      this.takeUpSilent(nowMs);
    }
    if (nowMs < this.ownerLookMs) return;
    this.ownerLookMs = nowMs + OWNER_LOOK_MS;
    this.lookForOwners(nowMs);
  }

  onAnswer(storeId: string, kind: 'holder' | 'owner', job: QueueJob, answer: Claimed): void {
    const nowMs = this.ports.nowMs();
    if (kind === 'owner') {
      const key = leaseKey(job.ownerId, storeId);
      if (answer.result === CLAIM_GRANTED) {
        this.attachFirst.delete(key);
        if (answer.waitMs > 0) this.ownerSeen.set(key, nowMs);
      } else if (this.attachFirst.has(key)) this.askedFor.set(key, (this.askedFor.get(key) ?? 0) + 1);
      else this.attachFirst.add(key);
      return;
    }
    const holder = job.rows.get(storeId)?.holder;
    const lease = holder === undefined ? undefined : this.leases.get(leaseKey(holder, storeId));
    const view = this.ports.views.get(storeId);
    if (lease === undefined || view === undefined) return;
    const every = view.store.leaseMs / LISTS_A_LEASE;
    if (answer.waitMs > 0) {
      lease.silentSinceMs = Infinity;
      lease.askAtMs = nowMs + Math.min(every, answer.waitMs + PAST_LEASE_MS);
    } else {
      if (lease.silentSinceMs === Infinity) lease.silentSinceMs = nowMs + this.ports.random() * JITTER_MS;
      lease.askAtMs = nowMs + every;
    }
  }

  /** Once a list. */
  private leaveOthers(nowMs: number): void {
    for (const job of this.ports.jobs()) {
      if (job.state !== 'elsewhere') continue;
      const newest = newestOf(job.rows.values());
      if (newest === undefined) continue;
      // Who takes nothing over has no use for a claim of the process before it.
      if ((this.options.rescue || job.isOwn) && ![...job.rows.values()].some((row) => this.isOthers(job, row, newest, nowMs))) continue;
      for (const row of [...job.rows.values()]) {
        if (row.holder !== this.options.gatewayId) continue;
        // An older process of this gateway may deliver by it for a lease yet: who is given it back need not wait for that.
        if ((this.ports.views.get(row.storeId)?.claimFromMs ?? 0) > nowMs) continue;
        const isNamed = newest.members.includes(row.storeId);
        const isOld = !isNamed && ((isOfSet(row) && row.epoch < newest.epoch) || this.isLeftBehind(job));
        const isAwaited = isNamed && row.epoch < newest.epoch;
        if (!isOld && !isAwaited && !(isOfSet(row) && this.ports.isOfLastSet(job, row))) continue;
        job.rows.delete(row.storeId);
        this.ports.giveUp(job, row, isOld);
      }
    }
  }

  /**
   * Another has the queue, or a member of its newest set without which nobody can have it: an owner that emptied it to
   * fill it, while our claim of before a restart stood at the others. Each would wait for the other.
   */
  private isOthers(job: QueueJob, row: CensusRow, newest: CensusRow, nowMs: number): boolean {
    if (row.holder === this.options.gatewayId) return false;
    return (isOfSet(row) && row.epoch === newest.epoch) || (newest.members.includes(row.storeId) && !this.isOpen(job, row, nowMs));
  }

  /**
   * No member's, beside a member that has the queue, be it out of a file, too: a store that had left the set came back with its file,
   * for one. Who holds the queue now could have no mirror there while our lease runs.
   */
  private isLeftBehind(job: QueueJob): boolean {
    return [...job.rows.values()].some((other) => this.ports.isOfLastSet(job, other));
  }

  /** One probe for each holder at each store, when its time has come. */
  private probeHolders(nowMs: number): void {
    for (const job of this.ports.jobs()) {
      if (!isWatched(job)) continue;
      for (const row of job.rows.values()) {
        if (row.holder === this.options.gatewayId) continue;
        const view = this.ports.views.get(row.storeId);
        if (view === undefined || !view.store.isUp) continue;
        const key = leaseKey(row.holder, row.storeId);
        const lease = this.leases.get(key) ?? { askAtMs: 0, silentSinceMs: Infinity };
        this.leases.set(key, lease);
        if (nowMs < lease.askAtMs) continue;
        // Asked again after this even when the answer was lost with its connection.
        lease.askAtMs = nowMs + view.store.leaseMs / LISTS_A_LEASE;
        this.ports.ask(view, 'holder', job);
      }
    }
  }

  private takeUpSilent(nowMs: number): void {
    for (const job of this.ports.jobs()) {
      if (!isWatched(job) || job.notBeforeMs > nowMs) continue;
      const newest = newestOf(job.rows.values());
      const mayTakeUp = newest !== undefined && this.mayTakeUp(job, newest.members, nowMs);
      if (job.state === 'elsewhere' && mayTakeUp) this.ports.takeUp(job);
      // Its holder is back while a member is awaited: nothing is held.
      else if (job.state === 'waiting' && newest !== undefined && newest.members.some((member) => this.isLeaseSeen(job.rows.get(member)))) job.restart('elsewhere', 0);
    }
  }

  /**
   * A member that told of the queue and can't be reached any more is awaited by name, as one that never told, once another
   * says that the holder is silent: else its mail would wait for that store, and nobody be told. With none that says so it
   * may be we who are cut off.
   */
  private mayTakeUp(job: QueueJob, members: readonly string[], nowMs: number): boolean {
    let heard = 0;
    for (const member of members) {
      const row = job.rows.get(member);
      if (row !== undefined && this.ports.views.get(member)?.store.isUp === false) continue;
      if (!this.isOpen(job, row, nowMs)) return false;
      heard += 1;
    }
    return heard > 0;
  }

  private isLeaseSeen(row: CensusRow | undefined): boolean {
    if (row === undefined || row.holder === this.options.gatewayId || this.ports.views.get(row.storeId)?.store.isUp !== true) return false;
    return this.leases.get(leaseKey(row.holder, row.storeId))?.silentSinceMs === Infinity;
  }

  /** A member without a row is asked by the claims themselves. */
  private isOpen(job: QueueJob, row: CensusRow | undefined, nowMs: number): boolean {
    if (row === undefined || row.holder === this.options.gatewayId) return true;
    const since = this.leases.get(leaseKey(row.holder, row.storeId))?.silentSinceMs ?? Infinity;
    return nowMs >= since + this.turnOf(job.ownerId) * TURN_MS;
  }

  /** How many gateways come before this one, counted from the owner on in the order of names. */
  private turnOf(ownerId: string): number {
    const ring = [...new Set([...this.options.group, this.options.gatewayId, ownerId])].sort();
    const owner = ring.indexOf(ownerId);
    const own = ring.indexOf(this.options.gatewayId);
    return Math.min(TURNS_MAX, (own - owner - 1 + ring.length) % ring.length);
  }

  private lookForOwners(nowMs: number): void {
    const served = new Map<string, { readonly storeId: string; readonly jobs: QueueJob[] }>();
    for (const job of this.ports.jobs()) {
      if (job.isOwn || job.isPending || job.state === 'elsewhere') continue;
      const members = this.ports.membersOf(job.handle);
      if (members.length === 0) continue;
      for (const storeId of members) {
        const key = leaseKey(job.ownerId, storeId);
        const there = served.get(key);
        if (there === undefined) served.set(key, { storeId, jobs: [job] });
        else there.jobs.push(job);
      }
      const isBack = members.every((storeId) => (this.ownerSeen.get(leaseKey(job.ownerId, storeId)) ?? -Infinity) > nowMs - OWNER_SEEN_MS);
      if (isBack) this.ports.onOwnerBack(job);
    }
    for (const [key, { storeId, jobs }] of served) {
      const view = this.ports.views.get(storeId);
      const job = jobs[(this.askedFor.get(key) ?? 0) % jobs.length];
      if (job === undefined || view === undefined || !view.store.isUp) continue;
      // A mirror that we founded ourselves knows us by another token until the claim is made there too.
      if (this.attachFirst.has(key)) this.ports.ask(view, 'attach', job);
      this.ports.ask(view, 'owner', job);
    }
  }
}

/** Another's, and not taken up by an operator. */
function isWatched(job: QueueJob): boolean {
  return job.state === 'elsewhere' || (job.state === 'waiting' && !job.isOwn && job.given.size === 0 && job.empty === '');
}

function leaseKey(gatewayId: string, storeId: string): string {
  return `${gatewayId}@${storeId}`;
}
