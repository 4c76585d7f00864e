/**
 * WHO COUNTS in one partition, for its holder: whose acknowledgements make a commit, whose leases make the
 * right to a final dot, and which change of the record is wanted next. Rules are those of docs/model.
 *
 *   commit (3)       acknowledged by every member of every possible record; none with fewer than min_replicas
 *                    members possible (no 250 then; ends and withdrawals count as long as all have them), and
 *                    none while the boot of one of them is known to be over
 *   right (6, 7)     a lease at every member of every possible record, where our term has been processed;
 *                    where the empty one is possible also a session that has been tied to this record
 *   join (4)         filled as no member; wanted in the record when it has all that counts as committed, and
 *                    our lease runs there
 *   leave (5)        counts until the change without it is known to have been made
 *   last member (8)  leaves only when its store has been seen in a new boot; silent, it is replaced in one
 *                    change
 *   heard            no final dot while all members are silent: whoever comes next would know of no deletion
 *   told (15)        a settled record goes to its members and to who left, until they say that they have it;
 *                    who left and has not said so stands in the record, for holders that come after this one
 *
 *   link of a member lost ─► NG ─ drop_after, others in step ─► change without it ─ known ─► filled again, or
 *                                                                                            another
 *   all silent ─► nothing leaves; others are filled ─► one change replaces them
 *   all seen in new boots ─► change to no members (7) ─ known ─► others are filled ─► change with them
 *   PARTIAL ─► source stays; who would be dropped for its history stays until two in step are recorded (14)
 *   weak, left, in step again ─► joins again, if no other has taken its place: it is not emptied for that
 *   refused by a term that is in no record ─► change to an epoch above it ─ known ─► told there ─► filled;
 *                                   who is recorded by now is compared: it may have kept all, or nothing
 *   compared, a member has no copy ─► as one that was seen in a new boot
 *
 * onAcked() is on the way of every message: no allocation, a minimum over three or four rows.
 * What is not here: the register's conversation and the life of the partition in this process (holder.ts).
 */
import { invariant } from '../../base/invariant.js';
import { MEMBERS_MAX } from '../../protocol/fields.js';
import type { GivenUpCopy, PartitionRecord, RecordedMember } from '../../protocol/partition-record.js';
import { bareMember, isMemberOf, isSameSet } from '../../protocol/partition-record.js';
import type { MemberTrace } from './member.js';
import { PartitionMember, MemberState } from './member.js';
import type { CopyPosition, MemberPorts, SetOptions, StoreChoice } from './ports.js';
import { PossibleRecords } from './possible-records.js';

/** Stores that left and were not told yet, as many as a record names; the oldest is given up. */
const LEAVERS_MAX = MEMBERS_MAX;
/**
 * A copy that is to leave waits so long for a store that can't be reached just now, if no other replaces it.
 */
const NO_OTHER_MS = 1_000;
/**
 * A fill that was refused, or broken off, begins again so long after: what stands in its way is rarely gone
 * at once.
 */
const FILL_AGAIN_MS = 1_000;
/**
 * A store that restarts, or whose path is mended, is back within this. What is read rests so long at most.
 */
const BACK_SOON_MS = 30_000;

/** A copy that is out and does not know it. */
interface Leaver extends RecordedMember {
  sentMs: number;
}

export class PartitionSet {
  readonly records: PossibleRecords;
  readonly #options: SetOptions;
  readonly #ports: MemberPorts;
  readonly #trace: MemberTrace;
  readonly #rows: PartitionMember[] = [];
  /** Rows that count now: members of any possible record. */
  #counted: PartitionMember[] = [];
  #leavers: Leaver[] = [];
  /** Where a PARTIAL holder reads; undefined when it has read everything. */
  #source: PartitionMember | undefined;
  /** Acknowledged by all that count; never goes back. */
  #ackedByAll = 0;
  #committed = 0;
  #isEmptyPossible = false;
  /** One that counts had its copy in a boot that is known to be over: the change without it is under way. */
  #hasGone = false;
  #missingSinceMs = Infinity;
  /** Since when no store could take the place of one that is missing, or is to leave. */
  #noOtherSinceMs = Infinity;
  #leftStore = '';
  #toldMs = -Infinity;
  /** Before it is, nobody can be compared with us. */
  #isHistoryKnown = false;

  constructor(options: SetOptions, ports: MemberPorts, known: PartitionRecord, nowMs: number,
    trace: MemberTrace) {
    this.#options = options;
    this.#ports = ports;
    this.#trace = trace;
    this.records = new PossibleRecords(known);
    for (const { storeId, bootId } of known.members) this.#addRow(storeId, bootId, nowMs);
    this.#leavers = [...known.left].reverse()
      .map(({ storeId, bootId }) => ({ storeId, bootId, sentMs: -Infinity }));
    this.#recount();
  }

  get rows(): readonly PartitionMember[] {
    return this.#rows;
  }

  get source(): PartitionMember | undefined {
    return this.#source;
  }

  get isPartial(): boolean {
    return this.#source !== undefined;
  }

  /** Up to here a 250 may be sent, never further back than it was. */
  get committedNumber(): number {
    return this.#committed;
  }

  /** Up to here ends and withdrawals are done. */
  get ackedByAllNumber(): number {
    return this.#ackedByAll;
  }

  /** May anything new be committed, once it is acknowledged? */
  get mayCommit(): boolean {
    return !this.#hasGone && this.records.fewestMembers >= Math.max(1, this.#options.minReplicas);
  }

  get isEmptyPossible(): boolean {
    return this.#isEmptyPossible;
  }

  /** The holder is known to be alive at every copy that may count. */
  hasAllLeases(nowMs: number): boolean {
    for (const row of this.#counted) if (!row.isLeased(nowMs)) return false;
    return true;
  }

  /** Right before a final dot (6). The session is asked only where the empty record is possible. */
  mayDeliver(nowMs: number, sessionEndsMs: number): boolean {
    if (!this.hasAllLeases(nowMs) || !this.#isHeard) return false;
    return !this.#isEmptyPossible || nowMs < sessionEndsMs;
  }

  /**
   * A member hears of deletions, or none is left. The right would last as long as the leases do: what is
   * delivered until they end, and deleted nowhere, is delivered again by whoever takes over.
   */
  get #isHeard(): boolean {
    let isSilent = false;
    for (const row of this.#counted) {
      if (row.isFed) return true;
      isSilent ||= !row.isGone;
    }
    return !isSilent;
  }

  rowOf(storeId: string, bootId: string): PartitionMember | undefined {
    for (const row of this.#rows) if (row.bootId === bootId && row.storeId === storeId) return row;
    return undefined;
  }

  // ── what members say ────────────────────────────────────────────────────────────────────────────

  /** Of every acknowledgement. The caller keeps the row of its link, so that nothing is looked up. */
  onAcked(row: PartitionMember, number: number, nowMs: number): void {
    if (number <= row.acked || row.state === MemberState.FILLING) return;
    row.acked = number;
    if (row.state === MemberState.TAIL && number >= row.tailEnd) this.#becomeLevel(row, nowMs);
    if (row.isPossible) this.#advance();
  }

  /** All of it has arrived and was found equal at this number. */
  onFilled(row: PartitionMember, number: number, nowMs: number): void {
    if (row.state !== MemberState.FILLING) return;
    invariant(!row.isPossible, 'a copy that may be recorded is never emptied');
    row.acked = number;
    row.isDiverged = false;
    row.isEmptied = false;
    row.enter(MemberState.IN_STEP, nowMs);
  }

  /** A fill or a tail has begun under our term: the store refuses lower ones from here on. */
  onTermTaken(row: PartitionMember): void {
    row.isFenced = true;
    // It refuses us no more: from now on it is told as any other.
    row.refusedBy = 0;
  }

  /** It has processed our term and says where it stands (11). */
  onAligned(row: PartitionMember, at: CopyPosition, nowMs: number): void {
    this.onTermTaken(row);
    if (row.state !== MemberState.ALIGNING) return;
    this.#lookBack(row, at.number);
    const lastNumber = this.#ports.lastNumber();
    if (!row.isDiverged && this.#ports.isInHistory(at)) {
      this.#noteBack(row);
      this.#creditAligned(row, at.number);
      if (at.number === lastNumber) this.#becomeLevel(row, nowMs);
      else this.#startTail(row, at.number, lastNumber, nowMs);
      return;
    }
    row.isDiverged = true;
    row.isWholeOther = at.number >= 0;
    row.enter(MemberState.NG, nowMs);
    if (!row.isPossible && !this.#isSpared(row)) this.#startFill(row, nowMs);
  }

  /**
   * One whose store had begun without its file, in another boot, and has found it since, has its copy after
   * all: passed for gone, it would hold every commit up as long as the record names it.
   */
  #noteBack(row: PartitionMember): void {
    row.isGone = false;
    row.isBack = false;
    if (this.#hasGone) this.#hasGone = this.#counted.some((each) => each.isGone);
  }

  /**
   * A store goes on in the same boot from a file; whoever puts an older one in its place takes away what it
   * had acknowledged. Until it has that again it is not counted as having it.
   */
  #lookBack(row: PartitionMember, number: number): void {
    if (number < 0 || number >= row.acked) return;
    this.#ports.onWentBack(row, row.acked - number);
    row.acked = number;
  }

  onLinkUp(storeId: string, bootId: string, nowMs: number): void {
    for (const row of this.#rows) {
      if (row.storeId !== storeId || row.bootId === bootId) continue;
      row.isGone = true;
      row.isBack = false;
      if (row.isPossible) this.#hasGone = true;
      row.enter(MemberState.NG, nowMs);
    }
    this.#leavers = this.#leavers.filter((leaver) => leaver.storeId !== storeId || leaver.bootId === bootId);
    for (const leaver of this.#leavers) leaver.sentMs = -Infinity;
    const row = this.rowOf(storeId, bootId);
    if (row === undefined) return;
    // Its store has found its file: the copy may be there after all, and is not put out for gone (8).
    row.isBack = row.isGone;
    if (row.state !== MemberState.NG || !this.#isHistoryKnown) return;
    row.toldEpoch = 0;
    this.#align(row, nowMs);
  }

  onLinkDown(storeId: string, nowMs: number): void {
    for (const row of this.#rows) if (row.storeId === storeId) row.enter(MemberState.NG, nowMs);
  }

  /** It refused a change, for a gap or another digest: where it stands decides between a tail and a fill. */
  onGap(row: PartitionMember, nowMs: number): void {
    if (!row.isFed) return;
    row.enter(MemberState.NG, nowMs);
    if (this.#ports.isUp(row.storeId, row.bootId)) this.#align(row, nowMs);
  }

  /**
   * A fence there was taken back: what a founding had made of the copy is gone with it, and nothing says so
   * while no change is made.
   */
  onTakenBack(row: PartitionMember, nowMs: number): void {
    if (this.#isHistoryKnown && row.state !== MemberState.FILLING) this.onGap(row, nowMs);
  }

  /**
   * It has no copy, or one under a term that we do not know: it is filled anew. With `refusedBy`, the epoch
   * of what is known there, only when it has been told a younger record: until then it would refuse again.
   */
  onUnfit(row: PartitionMember, refusedBy: number, nowMs: number): void {
    row.isDiverged = true;
    row.isWholeOther = false;
    row.isFenced = false;
    if (refusedBy > row.refusedBy) row.refusedBy = refusedBy;
    if (refusedBy > 0) row.toldEpoch = 0;
    row.enter(MemberState.NG, nowMs);
  }

  /** Asked to take our term as a member, it has nothing to take it for: that copy is surely gone (8). */
  onNoCopy(row: PartitionMember, nowMs: number): void {
    if (row.state === MemberState.ALIGNING && row.isPossible) {
      row.isGone = true;
      row.isBack = false;
      this.#hasGone = true;
    }
    this.onUnfit(row, 0, nowMs);
  }

  onTold(storeId: string, bootId: string, epoch: number, nowMs: number): void {
    const row = this.rowOf(storeId, bootId);
    if (row !== undefined && epoch > row.toldEpoch) row.toldEpoch = epoch;
    if (row !== undefined && row.refusedBy > 0 && epoch > row.refusedBy) this.#noteTakenBack(row, nowMs);
    if (epoch < this.records.known.epoch) return;
    this.#leavers = this.#leavers.filter((leaver) => leaver.storeId !== storeId || leaver.bootId !== bootId);
  }

  /** It refuses us by that no more. Whoever is no member is filled (tick). */
  #noteTakenBack(row: PartitionMember, nowMs: number): void {
    row.refusedBy = 0;
    if (!row.isPossible || row.state !== MemberState.NG || !this.#isHistoryKnown
      || !this.#ports.isUp(row.storeId, row.bootId)) return;
    row.isDiverged = false;
    this.#align(row, nowMs);
  }

  // ── reading (14) ────────────────────────────────────────────────────────────────────────────────

  /** The member that a takeover reads: what it holds is what we hold. */
  readFrom(row: PartitionMember, number: number, nowMs: number): void {
    this.#source = row;
    row.isFenced = true;
    row.acked = number;
    if (row.state === MemberState.NG) row.enter(MemberState.ALIGNING, nowMs);
    row.enter(MemberState.IN_STEP, nowMs);
    this.#advance();
  }

  /**
   * Another member that is in step may go on in place of a source that died: it was equal at what was
   * adopted. Not one that a change under way takes out: it is emptied when that is made.
   */
  otherSource(): PartitionMember | undefined {
    return this.#rows.find((row) => row !== this.#source && mayBeRead(row));
  }

  /**
   * A copy at none of these stores can't be read just now, and may soon be, with all that is read: it counts,
   * or has left so lately that it is waited for.
   */
  mayHaveOther(except: ReadonlySet<string>, nowMs: number): boolean {
    return this.#rows.some((row) => row !== this.#source && !mayBeRead(row) && !row.isGone
      && !row.isDiverged && !row.isEmptied && !except.has(row.storeId)
      && (row.isPossible || nowMs - row.weakSinceMs < BACK_SOON_MS));
  }

  /** A copy that left for being weak, and may come back: it lacks nothing that could be had elsewhere. */
  get heir(): PartitionMember | undefined {
    return this.#rows.find((row) => !row.isRecorded && !row.isGone && !row.isDiverged && !row.isEmptied);
  }

  /** A copy that left and lacks changes, which nobody has any more if the source is lost. */
  get lastResort(): PartitionMember | undefined {
    return this.#rows.find((row) => this.#isLastResort(row));
  }

  /** Copies that left and were not emptied, with the epoch of the last record that each counted in. */
  get spared(): readonly GivenUpCopy[] {
    return this.#rows
      .filter((row) => !row.isRecorded && !row.isGone && !row.isEmptied
        && (!row.isDiverged || row.isWholeOther))
      .map(({ storeId, bootId, countedEpoch }) => ({ storeId, bootId, epoch: countedEpoch }));
  }

  #isLastResort(row: PartitionMember): boolean {
    const isSourceAway = this.#source !== undefined && !this.#source.isInStep;
    return isSourceAway && row.isWholeOther && !row.isPossible && !row.isGone;
  }

  /** It is not emptied: what it has may be had nowhere else, or is to be taken in first (16). */
  #isSpared(row: PartitionMember): boolean {
    return this.#isLastResort(row) || isMemberOf(this.records.known.gaveUp, row.storeId, row.bootId);
  }

  switchSource(row: PartitionMember): void {
    invariant(mayBeRead(row), 'reading goes on only from a member that is in step, and stays');
    this.#source = row;
  }

  get isHistoryKnown(): boolean {
    return this.#isHistoryKnown;
  }

  /** What was adopted, and how far back: from here on others are aligned. */
  historyKnown(): void {
    this.#isHistoryKnown = true;
  }

  readComplete(): void {
    this.#source = undefined;
  }

  // ── founding: members that have acknowledged the first term (7) ─────────────────────────────────

  allHaveTerm(nowMs: number): void {
    for (const row of this.#rows) {
      row.isFenced = true;
      row.isRefilled = true;
      row.enter(MemberState.ALIGNING, nowMs);
      row.enter(MemberState.IN_STEP, nowMs);
    }
    this.#advance();
  }

  // ── the record ──────────────────────────────────────────────────────────────────────────────────

  sent(record: PartitionRecord): void {
    this.records.send(record);
    this.#recount();
  }

  settled(record: PartitionRecord): void {
    const left = this.#counted.filter((row) => !isMemberOf(record.members, row.storeId, row.bootId));
    this.records.settle(record);
    this.#recount();
    for (const row of left) {
      this.#leftStore = row.storeId;
      // Who was weak may come back for a tail, until another has taken its place. Who was moved is done.
      if ((row.isInStep && row.isUnwanted && !row.isStopping) || row.isGone) this.#forget(row);
      if (!row.isStopping) row.stay();
    }
    this.#sweep();
    this.tellAll();
  }

  /** The set as it should be; the known one when nothing is to be changed. */
  target(nowMs: number): readonly RecordedMember[] {
    const { members } = this.records.known;
    // As nearly always: those that are recorded, and nobody else, are in step and are to stay.
    const isAsRecorded = this.#rows.length === members.length
      && this.#rows.every((row) => row.isRecorded && row.isInStep && !row.isUnwanted);
    if (isAsRecorded) return members;
    // What is read must stay until all of it is read, whoever wants it moved (14).
    const stay = this.#rows.filter((row) => row.isRecorded && row.isInStep
      && (!row.isUnwanted || row === this.#source));
    for (const row of this.#rows) {
      if (stay.length < this.#options.replicas && !row.isRecorded && this.mayJoin(row, nowMs)) stay.push(row);
    }
    for (const row of this.#rows) {
      // Who is to be moved leaves in the change that brings its successor; if there is none, when enough
      // stay.
      if (stay.length < this.#leastStaying(nowMs) && row.isRecorded && row.isInStep && !stay.includes(row)) {
        stay.push(row);
      }
    }
    const inStep = stay.length;
    for (const row of this.#rows) {
      if (row.isRecorded && !row.isInStep && !this.#mayDrop(row, inStep, nowMs)) stay.push(row);
    }
    if (isSameSet(stay, members)) return members;
    return stay.map(bareMember);
  }

  /**
   * Filled, and it has everything that counts as committed: every change, if there is no other member (4).
   * Our lease runs there: without one, a founder may empty the copy before the record names it (7).
   */
  mayJoin(row: PartitionMember, nowMs: number): boolean {
    if (!row.isInStep || row.isGone || row.isUnwanted || !row.isLeased(nowMs)) return false;
    if (this.#counted.length === 0) return row.acked === this.#ports.lastNumber();
    return row.acked >= this.#ackedByAll;
  }

  /**
   * Moves a copy away: filled elsewhere first, then replaced in one change. `isStopping`: if nobody takes its
   * place, its store keeps it in a file, and comes back for a tail.
   */
  relocate(storeId: string, isStopping = false): void {
    for (const row of this.#rows) {
      if (row.storeId === storeId && row.isRecorded) row.relocate(isStopping);
    }
  }

  /** Its store is wanted again: the copy stays. */
  stay(storeId: string): void {
    for (const row of this.#rows) if (row.storeId === storeId) row.stay();
  }

  tick(nowMs: number): void {
    this.#sweep();
    this.tell(nowMs);
    for (const row of this.#rows) {
      // Out of every possible record at last: it may be emptied and filled.
      if (row.state !== MemberState.NG || row.isPossible || row.isGone || row.refusedBy > 0
        || this.#isSpared(row) || !this.#isHistoryKnown || !this.#ports.isUp(row.storeId, row.bootId)
        || (row.isEmptied && nowMs - row.sinceMs < FILL_AGAIN_MS)) {
        continue;
      }
      this.#startFill(row, nowMs);
    }
    this.#lookForStore(nowMs);
  }

  /** A store that we want to fill knows a term that only a record of a higher epoch can take back. */
  get isEpochTooLow(): boolean {
    const { epoch } = this.records.known;
    return this.#rows.some((row) => row.refusedBy >= epoch && !row.isGone
      && (row.isRecorded || !row.isPossible));
  }

  /** All that count get every change, and take it. */
  get isInStep(): boolean {
    return this.#counted.length > 0 && this.#counted.every((row) => row.isInStep);
  }

  /** Every member of the record has everything that was made: nothing of it would be done twice (13). */
  get isLevel(): boolean {
    if (!this.records.isSettled || !this.isInStep) return false;
    return this.#counted.every((row) => row.acked === this.#ports.lastNumber());
  }

  /** As many copies as are wanted count and get every change. */
  get areEnough(): boolean {
    return this.#rows.filter((row) => row.isRecorded && row.isInStep && !row.isGone).length
      >= this.#options.replicas;
  }

  /** The same; or there is no store for another one (13). */
  get isDoubled(): boolean {
    if (this.areEnough) return true;
    const rows = this.#rows.filter((row) => !row.isGone);
    const others = rows.filter((row) => !row.isRecorded || !row.isInStep);
    // Also one that is compared just now, or filled again in a moment.
    return others.every(({ storeId, bootId }) => !this.#ports.isUp(storeId, bootId))
      && this.#ports.chooseStore(rows.map(({ storeId }) => storeId), '') === undefined;
  }

  /** A copy that was given up and is adopted now (16): it counts no more, and is told. */
  release(member: RecordedMember): void {
    this.#leavers.push({ storeId: member.storeId, bootId: member.bootId, sentMs: -Infinity });
  }

  /**
   * Where there may be a copy that does not count in a record with these members, and may not know it; who
   * left last first. `adopted`: no more copies that were given up.
   */
  strays(members: readonly RecordedMember[], adopted: readonly RecordedMember[]): readonly RecordedMember[] {
    const strays: RecordedMember[] = [];
    const rows = this.#rows.filter((row) => !row.isGone);
    for (const { storeId, bootId } of [...rows, ...adopted, ...[...this.#leavers].reverse()]) {
      if (strays.length >= LEAVERS_MAX) break;
      if (isMemberOf(members, storeId, bootId) || isMemberOf(strays, storeId, bootId)) continue;
      strays.push({ storeId, bootId });
    }
    return strays;
  }

  /** The record names a copy that is gone by now, or knows; and no other change of it will come soon. */
  get isLeftOver(): boolean {
    const { left, members } = this.records.known;
    if (left.length === 0 || this.#rows.some((row) => !row.isRecorded)) return false;
    const strays = this.strays(members, []);
    return left.some(({ storeId, bootId }) => !isMemberOf(strays, storeId, bootId));
  }

  tellAll(): void {
    this.#toldMs = -Infinity;
    for (const leaver of this.#leavers) leaver.sentMs = -Infinity;
  }

  /** What is known now goes to all whom it concerns and who have not said that they have it. */
  tell(nowMs: number): void {
    const record = this.records.known;
    const isDue = nowMs - this.#toldMs >= this.#options.tellAgainMs;
    if (isDue) {
      this.#toldMs = nowMs;
      for (const row of this.#rows) {
        const isTold = row.refusedBy > 0
          ? (row.isRecorded || !row.isPossible) && row.refusedBy < record.epoch
          : row.isFenced && row.state !== MemberState.NG;
        if (isTold && row.toldEpoch < record.epoch) this.#ports.tell(row, record, false);
      }
    }
    // Whoever reads a member that may yet die leaves every other copy alone.
    if (this.isPartial) return;
    for (const leaver of this.#leavers) {
      if (nowMs - leaver.sentMs < this.#options.tellAgainMs) continue;
      leaver.sentMs = nowMs;
      // What may be recorded again by a change under way is told when that is known.
      if (!this.records.mayCount(leaver.storeId, leaver.bootId)) this.#ports.tell(leaver, record, true);
    }
  }

  // ── inside ──────────────────────────────────────────────────────────────────────────────────────

  #leastStaying(nowMs: number): number {
    const { replicas, minReplicas } = this.#options;
    if (nowMs - this.#noOtherSinceMs < NO_OTHER_MS) return replicas;
    // Where not all is read, one that is left may have died just now: what it had would be nowhere (14).
    return Math.max(this.isPartial ? Math.min(replicas, 2) : 1, minReplicas);
  }

  /** `inStep`: how many in step the record will have. */
  #mayDrop(row: PartitionMember, inStep: number, nowMs: number): boolean {
    if (row === this.#source) return false;
    if (row.isGone && !row.isBack) return true;
    if (inStep === 0) return false;
    // What it had may be read nowhere but there, if the source dies alone.
    if (row.isDiverged && this.isPartial) return inStep >= 2;
    return row.isDiverged || row.isUnwanted || nowMs - row.weakSinceMs >= this.#options.dropAfterMs;
  }

  #advance(): void {
    if (this.#hasGone) return;
    const counted = this.#counted;
    let least = Infinity;
    for (let i = 0; i < counted.length; i++) {
      const row = counted[i];
      if (row !== undefined && row.acked < least) least = row.acked;
    }
    if (least === Infinity) least = this.#ports.lastNumber();
    const ackedByAll = Math.max(this.#ackedByAll, least);
    const committed = this.mayCommit ? ackedByAll : this.#committed;
    if (ackedByAll === this.#ackedByAll && committed === this.#committed) return;
    this.#ackedByAll = ackedByAll;
    this.#committed = committed;
    this.#ports.onCommitted();
  }

  /** With no member every change is done the moment it is made. */
  onAppended(): void {
    if (this.#counted.length === 0) this.#advance();
  }

  #recount(): void {
    const { records } = this;
    for (const row of this.#rows) {
      row.isRecorded = isMemberOf(records.known.members, row.storeId, row.bootId);
      if (row.isRecorded) row.countedEpoch = records.known.epoch;
      row.isPossible = records.mayCount(row.storeId, row.bootId);
      row.mayLeave = records.mayLeave(row.storeId, row.bootId);
    }
    this.#counted = this.#rows.filter((row) => row.isPossible);
    this.#hasGone = this.#counted.some((row) => row.isGone);
    this.#isEmptyPossible = records.fewestMembers === 0;
    this.#advance();
  }

  #addRow(storeId: string, bootId: string, nowMs: number): PartitionMember {
    const row = new PartitionMember(storeId, bootId, this.#ports.lease(storeId), nowMs, this.#trace);
    row.countedEpoch = this.records.known.epoch;
    this.#rows.push(row);
    return row;
  }

  #align(row: PartitionMember, nowMs: number): void {
    row.enter(MemberState.ALIGNING, nowMs);
    this.#ports.align(row);
  }

  #creditAligned(row: PartitionMember, number: number): void {
    if (number > row.acked) row.acked = number;
    if (row.isPossible) this.#advance();
  }

  #becomeLevel(row: PartitionMember, nowMs: number): void {
    if (row.countedEpoch === 0) row.countedEpoch = this.records.known.epoch;
    row.enter(MemberState.IN_STEP, nowMs);
  }

  #startTail(row: PartitionMember, number: number, lastNumber: number, nowMs: number): void {
    row.tailEnd = lastNumber;
    row.enter(MemberState.TAIL, nowMs);
    this.#ports.startTail(row, number);
  }

  #startFill(row: PartitionMember, nowMs: number): void {
    invariant(!row.isPossible, 'a copy that may be recorded is never emptied');
    this.#leavers = this.#leavers.filter((leaver) => leaver.storeId !== row.storeId);
    row.acked = 0;
    row.isEmptied = true;
    row.isRefilled = true;
    row.isWholeOther = false;
    row.stay();
    row.enter(MemberState.FILLING, nowMs);
    this.#ports.startFill(row);
  }

  /** Copies that count for nothing are given up once there are enough that count. */
  #sweep(): void {
    if (this.#rows.every((row) => row.isPossible)) return;
    const sound = this.#rows.filter((row) => row.isRecorded && !this.#isWeak(row)).length;
    for (const row of [...this.#rows]) {
      if (row.isPossible) continue;
      const isBroken = row.isGone || (row.state === MemberState.NG && row.isEmptied
        && !this.#ports.isUp(row.storeId, row.bootId));
      if (isBroken || sound >= this.#options.replicas) this.#forget(row);
    }
  }

  #forget(row: PartitionMember): void {
    this.#rows.splice(this.#rows.indexOf(row), 1);
    this.#addLeaver(row);
  }

  #isWeak(row: PartitionMember): boolean {
    return !row.isInStep || row.isUnwanted;
  }

  #addLeaver(row: PartitionMember): void {
    if (row.isGone
      || this.#leavers.some((each) => each.storeId === row.storeId && each.bootId === row.bootId)) {
      return;
    }
    if (this.#leavers.length >= LEAVERS_MAX) this.#leavers.shift();
    this.#leavers.push({ storeId: row.storeId, bootId: row.bootId, sentMs: -Infinity });
  }

  #lookForStore(nowMs: number): void {
    const { replicas, replaceAfterMs } = this.#options;
    let soundCount = 0;
    for (const row of this.#rows) if (row.state !== MemberState.NG && !row.isUnwanted) soundCount += 1;
    if (soundCount >= replicas) {
      this.#missingSinceMs = Infinity;
      this.#noOtherSinceMs = Infinity;
      return;
    }
    if (this.#missingSinceMs === Infinity) this.#missingSinceMs = nowMs;
    // A store that comes back soon is the better one; but a partition with no copy in step waits for nobody.
    const isUrgent = nowMs - this.#missingSinceMs >= replaceAfterMs
      || this.#rows.some((row) => row.isUnwanted)
      || !this.#rows.some((row) => row.isRecorded && row.isInStep);
    const taken = this.#rows.filter((row) => !row.isGone).map((row) => row.storeId);
    // A copy that was given up and is back is adopted before its store may be filled (16).
    for (const each of this.records.known.gaveUp) {
      if (this.#ports.isUp(each.storeId, each.bootId)) taken.push(each.storeId);
    }
    const away = this.#rows.find(
      (row) => row.isGone || (row.isRecorded && row.state === MemberState.NG),
    )?.storeId
      ?? this.#leftStore;
    const choice = this.#ports.chooseStore(taken, isUrgent || away === '' ? '' : away);
    if (choice !== undefined) this.#fillCandidate(choice, nowMs);
    const isMoving = choice !== undefined || this.#rows.some((row) => !row.isRecorded && row.isFed);
    this.#noOtherSinceMs = isMoving ? Infinity : Math.min(this.#noOtherSinceMs, nowMs);
  }

  #fillCandidate({ storeId, bootId }: StoreChoice, nowMs: number): void {
    if (this.rowOf(storeId, bootId) !== undefined) return;
    const hasLeft = isMemberOf(this.#leavers, storeId, bootId);
    if (hasLeft && !this.#isHistoryKnown) return;
    const row = this.#addRow(storeId, bootId, nowMs);
    if (!hasLeft) return this.#startFill(row, nowMs);
    // A copy that left under another holder is the only other one while a member is read that may yet die: it
    // is compared first, and gets the tail if it can.
    row.countedEpoch = 0;
    this.#leavers = this.#leavers.filter((leaver) => leaver.storeId !== storeId);
    this.#align(row, nowMs);
  }
}

/** It has all, gets every change, and counts in every record that may come to be. */
function mayBeRead(row: PartitionMember): boolean {
  return row.isRecorded && row.isInStep && !row.mayLeave;
}
