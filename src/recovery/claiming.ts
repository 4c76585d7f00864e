/**
 * Claims of many queues side by side: which may be claimed, what is asked of whom, and what follows when the
 * claims of a queue stand.
 *
 *   WAITING ─ every member of the newest epoch can be asked ─► CLAIMING (claim-machine.ts)
 *           ─ all claims stand ─► TAILING: the longest member tells what the others lack ─► CLAIMED, adopted
 *
 * Only members that show the newest epoch themselves are read from. A member at a lower number is a prefix of the
 * longest (docs/GUARANTEES.md "Recovery"): with the tail in the gateway's ring it need not be filled anew.
 */
import type { EventLog, Packer } from '../platform/ports.js';
import { CHANGE_ROW_BYTES, KIND_SET_MEMBERS, changeKind, changeRef, viewOf } from '../protocol/change-rows.js';
import { CLAIM, CONFIRM, DROP, RELEASE, TAIL } from '../protocol/message-types.js';
import { encodeClaim } from '../protocol/messages/claim.js';
import type { Claimed } from '../protocol/messages/claimed.js';
import { encodeConfirm } from '../protocol/messages/confirm.js';
import { encodeDrop } from '../protocol/messages/drop.js';
import { encodeRelease } from '../protocol/messages/release.js';
import { encodeTail } from '../protocol/messages/tail.js';
import type { Tailed } from '../protocol/messages/tailed.js';
import { CLAIM_UNKNOWN, ROLE_MEMBER } from '../protocol/reasons.js';
import { allowsTakeover, tellsWriter, versionsSpoken } from '../protocol/versions.js';
import type { CensusRow } from './census.js';
import { isOfLastSet, isOfSet, isOnItsWay, joinersOf, judgeQueue, newestOf, sourcesOf } from './census.js';
import { ClaimMachine } from './claim-machine.js';
import type { ClaimFailure } from './claim-machine.js';
import { QueueJob } from './queue-job.js';
import type { ClaimedQueue, QueueName, RecoveredTail } from './queue-job.js';
import type { SetHints } from './set-hints.js';
import type { AskKind, KnownStore, StoreViews } from './store-views.js';
import { WaitingNews } from './waiting-news.js';

export interface ClaimingOptions {
  readonly gatewayId: string;
  /** Tokens of the claims begin here: the incarnation. */
  readonly token: number;
  /** Ids of the gateways that may take over one another's queues. */
  readonly group: readonly string[];
}

export interface ClaimingPorts {
  readonly packer: Packer;
  readonly log: EventLog;
  readonly views: StoreViews;
  readonly hints: SetHints;
  nowMs(): number;
  random(): number;
  /** Nothing proves that the process of this gateway before us is gone. */
  olderMayLive(): boolean;
  needFlush(): void;
  /** Every claim stands: the queue is served from here on. */
  onClaimed(job: QueueJob, queue: ClaimedQueue): void;
}

const NOBODY = { gatewayId: '', incarnation: 0 } as const;
const NOTHING_TO_READ_RETRY_MS = 1000;
const NOTHING_TO_READ = 'no member shows its newest epoch';
const OLD_STORE = 'a store speaks an older version';
/** Claims that do not suffice are not made again at once: who else wants the queue is not to be disturbed. */
const NOT_COUNTED_RETRY_MS = 5000;
/** Longer than a claim that was put off once (claim-machine.ts), shorter than an operator's patience. */
const LISTS_WAIT_MS = 2000;

export class Claiming {
  readonly news: WaitingNews;
  private readonly options: ClaimingOptions;
  private readonly ports: ClaimingPorts;
  /** By the key of a queue: token of the last claims by which this process served it. */
  private readonly adoptedBy = new Map<string, number>();

  constructor(options: ClaimingOptions, ports: ClaimingPorts) {
    this.options = options;
    this.ports = ports;
    this.news = new WaitingNews(ports);
  }

  judge(job: QueueJob, answering: ReadonlySet<string>, nowMs: number): void {
    this.noteNewest(job, answering);
    const verdict = judgeQueue(job.rows.values(), answering, job.given, this.ports.hints.get(job.key));
    if (verdict.kind !== 'take' || verdict.epoch !== job.epoch || verdict.outside !== '') job.leftAt = '';
    if (verdict.kind === 'nothing') this.nothingCounts(job);
    else if (verdict.kind === 'wait') this.news.tellWait(job, verdict.missing, answering);
    else if (!this.mayTakeOver(job)) return;
    else {
      let claimFromMs = 0;
      for (const member of verdict.members) claimFromMs = Math.max(claimFromMs, this.ports.views.get(member)?.claimFromMs ?? 0);
      if (claimFromMs > nowMs) {
        job.notBeforeMs = claimFromMs;
        return;
      }
      if (this.awaitsLists(job, nowMs)) return;
      if (verdict.without.length > 0) this.ports.log.warn('recovery', 'an operator has this partition taken without a member: mail may be lost or repeated', { partition: job.name, owner: job.ownerId, epoch: verdict.epoch, without: verdict.without });
      job.epoch = verdict.epoch;
      job.members = verdict.members;
      job.isOutside = verdict.outside !== '';
      job.transition('claiming');
      job.machine.begin(verdict.members, verdict.epoch);
    }
  }

  /**
   * One of our own waits for the lists of all stores, for a bounded time: one that is missing may show a
   * newer set.
   */
  private awaitsLists(job: QueueJob, nowMs: number): boolean {
    if (!job.isOwn || this.news.isLate || this.ports.views.allListed) return false;
    if (job.listsFromMs < 0) job.listsFromMs = nowMs;
    return nowMs - job.listsFromMs < LISTS_WAIT_MS;
  }

  /**
   * A store of version 1 tells nobody that the owner is back, and gives its old right back to whom a claim displaced,
   * who would go on beside what was changed since. Any store may become a mirror of a queue that is served.
   */
  private mayTakeOver(job: QueueJob): boolean {
    if (job.isOwn) return true;
    const old = [...this.ports.views.all()].find(({ store }) => store.isUp && !allowsTakeover(store.version))?.store;
    if (old === undefined) return true;
    if (job.blocked !== OLD_STORE) this.ports.log.warn('recovery', 'a partition of another gateway is not taken over while a store speaks an older version of the protocol, which has no safe way back: upgrade the store', { partition: job.name, owner: job.ownerId, store: old.storeId, version: old.version, this_gateway: versionsSpoken() });
    job.blocked = OLD_STORE;
    job.restart(job.given.size > 0 ? 'waiting' : 'elsewhere', this.ports.nowMs() + NOT_COUNTED_RETRY_MS);
    return false;
  }

  /** What an operator said of stores is of no account for a newer set than the one that he knew of, nor of a store that is back with its copy. */
  private noteNewest(job: QueueJob, answering: ReadonlySet<string>): void {
    const newest = newestOf(job.rows.values());
    if (newest === undefined) return;
    if (job.givenEpoch === Infinity) job.givenEpoch = newest.epoch;
    for (const store of [...job.given]) {
      const row = job.rows.get(store);
      if (newest.epoch <= job.givenEpoch && (row === undefined || !isOfSet(row) || !answering.has(store))) continue;
      job.given.delete(store);
      this.ports.log.info('recovery', 'a store that an operator went on without counts again for this partition', { partition: job.name, owner: job.ownerId, store, epoch: newest.epoch });
    }
    if (!job.isOwn) return;
    if (job.isElsewhere) job.missing = [];
    job.isElsewhere = false;
    job.isGivenUp = false;
    job.shownAt = newest.members;
    if (newest.epoch < job.elsewhereEpoch) return;
    const holders = [...job.rows.values()].filter((row) => isOfSet(row) && row.epoch === newest.epoch).map(({ holder }) => holder);
    job.mayBeElsewhere = holders.some((holder) => holder !== '' && holder !== this.options.gatewayId);
  }

  /**
   * No store is a member: what they hold was never acknowledged by anyone. A store that is silent may know better; so may
   * another gateway that had taken our queue over, and has its mail in memory still: begun anew here, the queue would be two.
   */
  private nothingCounts(job: QueueJob): void {
    const silent = this.ports.views.silent().filter((id) => !job.given.has(id));
    if (!job.isOwn) job.restart('elsewhere', 0);
    else if (silent.length > 0) this.news.tellMissing(job, silent, 'unreachable');
    else if ([...job.unheard].some((id) => !job.given.has(id))) return;
    else if (job.mayBeElsewhere && !job.isGivenUp) this.news.tellElsewhere(job, job.shownAt.length > 0 ? job.shownAt : [...this.ports.views.all()].map(({ store }) => store.storeId));
    else {
      if (job.given.size > 0) this.news.tellGivenUp(job);
      else if (job.rows.size > 0) this.ports.log.info('recovery', 'a refill that never ended is left behind; nothing of it was acknowledged', { partition: job.name });
      job.transition('done');
    }
  }

  /**
   * A member that does not know the queue has come back empty, or is still being filled. It may be missed only when
   *   every store of the group has answered, so that no newer epoch is hidden;
   *   its first lease period is over, so that nobody delivers by a lease of its former boot; and
   *   nobody else may have begun a newer epoch there that was lost with it, and go on from memory: the queue is our own,
   *   our older process is proved dead, and no other gateway may claim it. (decision 0008)
   * In all other cases it waits for an operator. So it does, whoever asks, when no member is left: only a store that had
   * left the set has a copy, which may lack what the members took since, and have what they delivered.
   */
  private mayMiss(job: QueueJob, storeId: string, isNewer = false): boolean {
    const view = this.ports.views.get(storeId);
    job.rows.delete(storeId);
    if (job.given.has(storeId)) return true;
    const silent = this.ports.views.silent().filter((id) => !job.given.has(id));
    if (silent.length > 0) {
      this.news.tellMissing(job, silent, 'came back empty');
      return false;
    }
    if (view === undefined || view.graceEndsMs > this.ports.nowMs()) return false;
    if (sourcesOf([...job.rows.values()], job.epoch, job.members).length === 0) {
      this.news.tellAllGone(job);
      return false;
    }
    if (isNewer || !job.isOwn || this.hasOthers || this.ports.olderMayLive()) {
      this.news.tellEmpty(job, storeId, isNewer ? 'it names a newer set, of which nothing else is left' : !job.isOwn || !this.ports.olderMayLive() ? 'another gateway may have taken the queue over and lost what it had there' : 'nothing proves that the older process of this gateway is gone');
      return false;
    }
    this.ports.log.warn('recovery', 'a mirror of this partition came back empty; every store answered, so the newest epoch goes on; repeats are possible', { partition: job.name, owner: job.ownerId, epoch: job.epoch, empty: [storeId] });
    return true;
  }

  /** Judged before any claim, by what the probes told. */
  private doesNotCount(job: QueueJob): string {
    for (const [row, source] of joinersOf([...job.rows.values()], job.epoch, job.members)) {
      if (!job.given.has(row.storeId) && !isOnItsWay(row, source) && !this.mayMiss(job, row.storeId)) return row.storeId;
    }
    return '';
  }

  private get hasOthers(): boolean {
    return this.options.group.some((id) => id !== this.options.gatewayId);
  }

  /** A queue of another gateway that this process founded and serves. */
  servedJob(row: CensusRow, key: string, handle: number, token: number): QueueJob {
    const job = this.newJob(row, key, handle, token);
    job.transition('done');
    return job;
  }

  newJob(row: QueueName, key: string, handle: number, token = this.options.token): QueueJob {
    const machine: ClaimMachine = new ClaimMachine(token, {
      nowMs: () => this.ports.nowMs(),
      random: () => this.ports.random(),
      ask: (storeId, question, token) => {
        const view = this.ports.views.get(storeId);
        if (view === undefined || !view.store.isUp) return false;
        this.ask(view, question, job, token);
        return true;
      },
      release: (storeId, token) => { this.releaseAt(job, storeId, token, token > (this.adoptedBy.get(job.key) ?? 0)); },
      bootIdOf: (storeId) => this.ports.views.get(storeId)?.store.bootId ?? '',
      mayMiss: (storeId, isNewer) => this.mayMiss(job, storeId, isNewer),
      doesNotCount: () => this.doesNotCount(job),
      onHeld: () => { this.onHeld(job); },
      onBackedOff: (why, storeId, waitMs) => { this.onBackedOff(job, why, storeId, waitMs); },
    });
    const job: QueueJob = new QueueJob(row, row.ownerId === this.options.gatewayId, key, handle, machine);
    job.mayBeOthers = !job.isOwn || this.hasOthers;
    return job;
  }

  ask(view: KnownStore, kind: AskKind, job: QueueJob, token: number): void {
    const { packer } = this.ports;
    const isConfirm = kind === 'confirm' || kind === 'owner';
    const { handle, ownerId: gatewayId, birth, serial } = job;
    const control = isConfirm
      ? encodeConfirm(packer, { handle, token })
      : encodeClaim(packer, { handle, gatewayId, birth, serial, token });
    view.asks.set(view.store.request(isConfirm ? CONFIRM : CLAIM, control, [], 0), { kind, job });
    this.ports.needFlush();
  }

  private releaseAt(job: QueueJob, storeId: string, token: number, isUnused: boolean): void {
    const view = this.ports.views.get(storeId);
    if (view === undefined || !view.store.isUp) return;
    view.store.request(RELEASE, encodeRelease(this.ports.packer, { handle: job.handle, token, unused: tellsWriter(view.store.version) ? isUnused : undefined }), [], 0);
    this.ports.needFlush();
  }

  /** Releases what is ours there for sure: the claim is repeated first, so that this connection knows the handle. */
  giveUpAt(job: QueueJob, storeId: string, token: number): void {
    const view = this.ports.views.get(storeId);
    if (view === undefined || !view.store.isUp) return;
    this.ask(view, 'attach', job, token);
    this.releaseAt(job, storeId, token, false);
  }

  /** Takes a copy away that belongs to no set any more, and is ours there: else nobody else could have the queue at this store. */
  dropAt(job: QueueJob, storeId: string, token: number): void {
    const view = this.ports.views.get(storeId);
    if (view === undefined || !view.store.isUp) return;
    this.ask(view, 'attach', job, token);
    view.store.request(DROP, encodeDrop(this.ports.packer, { handle: job.handle }), [], 0);
    this.ports.needFlush();
  }

  /** What a member says of itself in the step of an answer is newer than its list. */
  note(job: QueueJob, storeId: string, claimed: Claimed): void {
    if (claimed.result === CLAIM_UNKNOWN) {
      job.rows.delete(storeId);
      return;
    }
    const { role, epoch, members, number, digestA, digestB, count, bytes, token } = claimed;
    if (claimed.holderWallMs !== 0) job.holderClock.note(claimed.holderWallMs, this.ports.nowMs());
    // By a claim of ours we served the queue, and may have gone on elsewhere.
    const writer = claimed.writer !== undefined && token <= (this.adoptedBy.get(job.key) ?? 0) ? NOBODY : claimed.writer;
    const { ownerId, birth, serial, name, queueClass } = job;
    const known = job.rows.get(storeId);
    job.rows.set(storeId, { storeId, ownerId, birth, serial, name, queueClass, role, epoch, members, number, digestA, digestB, count, bytes, holder: known?.holder ?? '', holderToken: known?.holderToken ?? 0, writer });
  }

  private onBackedOff(job: QueueJob, why: ClaimFailure, storeId: string, waitMs: number): void {
    if (!job.isOwn) this.releaseOlder(job);
    if (job.blocked !== why && why !== 'newer epoch') {
      job.blocked = why;
      this.ports.log.info('recovery', 'a partition can not be claimed yet; its claims are tried again', { partition: job.name, owner: job.ownerId, why, store: storeId, wait_ms: waitMs });
    }
    const again = job.isOwn || why === 'newer epoch' || job.given.size > 0 || why === 'came back empty' || why === 'another claims';
    const retryAtMs = job.leftAt === '' ? job.machine.retryAtMs : this.ports.nowMs() + NOT_COUNTED_RETRY_MS;
    job.restart(again ? 'waiting' : 'elsewhere', retryAtMs);
  }

  /**
   * A claim of an earlier connection may stand where this one never asked. It need not have come to nothing: we, or our
   * process before, may have served the queue by it, and left this copy behind, which is of no use to its owner. So one of
   * an older set is left to the list that shows the newest, by which it is dropped (RescueWatch.leaveOthers).
   */
  private releaseOlder(job: QueueJob): void {
    for (const row of job.rows.values()) {
      if (row.holder === this.options.gatewayId && (!isOfSet(row) || this.isOfLastSet(job, row))) this.giveUpAt(job, row.storeId, row.holderToken);
    }
  }

  /** No newer set than that of this row is hidden anywhere. */
  isOfLastSet(job: QueueJob, row: CensusRow): boolean {
    return isOfLastSet(row, job.rows, job.unheard.size === 0 && this.ports.views.silent().length === 0);
  }

  private onHeld(job: QueueJob): void {
    const rows = [...job.rows.values()].filter((row) => job.machine.holds(row.storeId));
    // Without a copy nothing is there that could be newer than a file: came back empty, was given up, or is judged below.
    const sources = sourcesOf(rows, job.epoch, job.members);
    const best = sources[0];
    if (best === undefined) {
      job.restart('waiting', this.ports.nowMs() + NOTHING_TO_READ_RETRY_MS);
      if (job.blocked !== NOTHING_TO_READ) this.ports.log.warn('recovery', 'no member of this partition shows its newest epoch; it is looked at again and again', { partition: job.name, owner: job.ownerId, epoch: job.epoch });
      job.blocked = NOTHING_TO_READ;
      return;
    }
    job.claims.clear();
    for (const row of sources) job.claims.set(row.storeId, row);
    job.source = best.storeId;
    job.sources = sources.slice(1).map((row) => row.storeId);
    job.behind = rows.filter((row) => row.role === ROLE_MEMBER && row.number < best.number).sort((a, b) => a.number - b.number);
    job.joining = rows.filter((row) => !isOfSet(row) && job.members.includes(row.storeId) && !job.given.has(row.storeId));
    job.transition('tailing');
    this.checkJoining(job);
  }

  /**
   * A member that is no member by its own account: being filled, or emptied. Its claim counts only if it stands in the
   * history of the copy that is read, before the change that lets it join (docs/model, ONLY_COPIES_COUNT): that one is
   * on its way to it. Else it is a member that came back empty.
   */
  private checkJoining(job: QueueJob): void {
    const joining = job.joining[0];
    const view = this.ports.views.get(job.source);
    if (joining === undefined) this.askTail(job);
    else if (view === undefined || !view.store.isUp) job.machine.giveUp('store lost', job.source);
    else this.requestTail(view, job, joining);
  }

  private onJoiningTold(job: QueueJob, joining: CensusRow, joins: boolean): void {
    job.joining.shift();
    if (joins || this.mayMiss(job, joining.storeId)) {
      this.checkJoining(job);
      return;
    }
    job.machine.giveUp('came back empty', joining.storeId);
    job.notBeforeMs = this.ports.nowMs() + NOT_COUNTED_RETRY_MS;
  }

  private requestTail(view: KnownStore, job: QueueJob, from: CensusRow): void {
    const { number, digestA, digestB } = from;
    const control = encodeTail(this.ports.packer, { handle: job.handle, number, digestA, digestB });
    view.store.request(TAIL, control, [], 0);
    this.ports.needFlush();
  }

  /** The member that is farthest behind says from where on the longest must tell. */
  private askTail(job: QueueJob): void {
    const farthest = job.behind[0];
    const view = this.ports.views.get(job.source);
    if (farthest === undefined || view === undefined || !view.store.isUp) {
      this.adopt(job, undefined);
      return;
    }
    this.requestTail(view, job, farthest);
  }

  onTailed(storeId: string, tailed: Tailed, bodies: Uint8Array, jobOf: (handle: number) => QueueJob | undefined): void {
    const job = jobOf(tailed.handle);
    if (job === undefined || job.state !== 'tailing' || job.source !== storeId) return;
    const joining = job.joining[0];
    if (joining !== undefined) {
      this.onJoiningTold(job, joining, tailed.found && tailed.firstNumber === joining.number + 1 && beginsEpoch(tailed.rows, job.epoch));
      return;
    }
    const farthest = job.behind.shift();
    if (farthest === undefined) return;
    // Forgotten from there on: maybe not from where another one stands.
    if (!tailed.found || tailed.firstNumber !== farthest.number + 1) this.askTail(job);
    else this.adopt(job, { firstNumber: tailed.firstNumber, digestA: farthest.digestA, digestB: farthest.digestB, rows: tailed.rows, bodies });
  }

  /**
   * The connection to the store that was asked for a tail is gone: the claims begin anew. Adopted as it stood, the queue
   * would be read from another member, and what the longest has more stay there, in a copy that counts as in sync.
   */
  onTailLost(job: QueueJob, storeId: string): void {
    if (job.state === 'tailing' && job.source === storeId) job.machine.giveUp('store lost', storeId);
  }

  /** The store that was asked for a tail refuses it: the mirrors will be filled instead. */
  onTailRefused(job: QueueJob, storeId: string): void {
    if (job.state !== 'tailing' || job.source !== storeId) return;
    if (job.joining.length > 0) job.machine.giveUp('store lost', storeId);
    else this.adopt(job, undefined);
  }

  private adopt(job: QueueJob, tail: RecoveredTail | undefined): void {
    const { handle, ownerId, birth, serial, name, queueClass, epoch } = job;
    const best = job.claims.get(job.source);
    if (best === undefined) {
      job.restart('waiting', this.ports.nowMs());
      return;
    }
    const others = [...job.rows.values()].filter((row) => row !== best && row.role === ROLE_MEMBER && job.machine.holds(row.storeId));
    const copies = [...job.rows.values()].filter((row) => isOfSet(row) && job.machine.holds(row.storeId)).map((row) => row.storeId);
    job.until = best.number;
    job.missing = [];
    job.empty = '';
    job.leftAt = '';
    job.blocked = '';
    job.behind = [];
    job.transition('claimed');
    this.adoptedBy.set(job.key, job.machine.token);
    this.ports.hints.drop(job.key);
    this.ports.log.info('takeover', 'the claims of a partition stand; it is taken over', { cause: job.cause, partition: name, from: ownerId, to: this.options.gatewayId, epoch, token: job.machine.token, messages: best.count, members: best.members, tail_bytes: tail?.bodies.length ?? 0 });
    this.ports.onClaimed(job, { handle, ownerId, birth, serial, name, queueClass, epoch, members: best.members, token: job.machine.token, copies, isOutside: job.isOutside, given: [...job.given], givenEpoch: job.givenEpoch === Infinity ? epoch : job.givenEpoch, holders: [best, ...others], number: best.number, digestA: best.digestA, digestB: best.digestB, holderClock: job.holderClock, tail });
  }
}

/** Whether one of the changes of TAILED tells the set of this epoch. */
function beginsEpoch(rows: Uint8Array, epoch: number): boolean {
  const view = viewOf(rows);
  for (let at = 0; at < rows.length; at += CHANGE_ROW_BYTES) {
    if (changeKind(view, at) === KIND_SET_MEMBERS && changeRef(view, at) === epoch) return true;
  }
  return false;
}
