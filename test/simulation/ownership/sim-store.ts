/**
 * A store of the ownership world: the production rules of src/kvs/core/ownership around copies that hold
 * names of
 * messages only.
 */
import type { HolderId, PartitionRecord, Term } from '../../../src/protocol/partition-record.js';
import { NO_TERM, isEnded, isMemberOf } from '../../../src/protocol/partition-record.js';
import { FenceVerdict, PartitionFence, isUndoneBy } from '../../../src/kvs/core/ownership/partition-fence.js';
import type { CarriedFence } from '../../../src/kvs/core/ownership/partition-fence.js';
import type { FenceNotice, HeartbeatAnswer } from '../../../src/kvs/core/ownership/process-leases.js';
import { ProcessLeases } from '../../../src/kvs/core/ownership/process-leases.js';
import type { AskAnswer, CopyPosition, FencedAnswer,
  DeclinedAnswer } from '../../../src/recovery/ownership/ports.js';
import { PropertyBroken } from './property-broken.js';
import { DECLINED_LOWER, DECLINED_NO_COPY, DECLINED_OTHER_NONCE, DECLINED_STALE } from '../../../src/protocol/reasons.js';

/** A change of a partition. */
export interface Change {
  readonly number: number;
  readonly term: Term;
  readonly kind: 'store' | 'delete' | 'withdraw' | 'hold' | 'release';
  readonly id: number;
  readonly digest: number;
}

export interface Snapshot {
  readonly at: CopyPosition;
  /** Ids, by position. */
  readonly ids: readonly number[];
  /** Of them. */
  readonly held: readonly number[];
  readonly ring: readonly Change[];
}

export const EMPTY_POSITION: CopyPosition = { number: 0, term: NO_TERM, digestA: 0, digestB: 0 };

export function digestAfter(digest: number, kind: string, id: number): number {
  return (Math.imul(digest ^ (id * 4 + kind.length), 0x9e3779b1) ^ (digest >>> 15)) >>> 0;
}

class Copy {
  at: CopyPosition = EMPTY_POSITION;
  ids = new Set<number>();
  held = new Set<number>();
  ring: Change[] = [];
  isComplete = false;
  /** Under which it was founded or filled, or changed last. */
  lastTerm: Term;
  /** Empty since a founding under this term. */
  foundedBy: Term | undefined;

  constructor(lastTerm: Term) {
    this.lastTerm = lastTerm;
  }

  apply({ kind, id }: Change): void {
    if (kind === 'hold') this.held.add(id);
    else this.held.delete(id);
    if (kind === 'store') this.ids.add(id);
    else if (kind === 'delete' || kind === 'withdraw') this.ids.delete(id);
  }

  position(): CopyPosition {
    return this.isComplete ? this.at : { number: -1, term: NO_TERM, digestA: 0, digestB: 0 };
  }
}

interface StoreFile {
  /** False: damaged, or put back from a backup. Its store does not start by it (spill-file.ts). */
  readonly isSound: boolean;
  readonly bootId: string;
  readonly copies: ReadonlyMap<string, Copy>;
  readonly fences: ReadonlyMap<string, CarriedFence>;
  readonly taken: ReadonlyMap<string, number>;
  readonly longestMs: number;
  readonly counts: readonly (readonly [string, number, readonly FenceNotice[]])[];
}

const VERDICT_REASON = [DECLINED_LOWER, DECLINED_LOWER, DECLINED_OTHER_NONCE,
  DECLINED_STALE] as const;

export class SimStore {
  readonly storeId: string;
  bootId = '';
  isUp = false;
  isFrozen = false;
  /** Connections of an older life are refused. */
  life = 0;
  readonly copies = new Map<string, Copy>();
  readonly #ringLength: number;
  /** From its next start on. */
  leaseMs: number;
  readonly #clock: () => number;
  #fences = new Map<string, PartitionFence>();
  #leases: ProcessLeases;
  #inheritedEndsMs = -Infinity;
  /** The highest term that was taken, kept apart from the machine that is checked. */
  #taken = new Map<string, number>();
  #boots = 0;
  #file: StoreFile | undefined;
  /** Its disk was not there when the store started. */
  #lateFile: StoreFile | undefined;
  /** A file with more messages does not fit. */
  limit = Infinity;

  constructor(storeId: string, leaseMs: number, ringLength: number, clock: () => number) {
    this.storeId = storeId;
    this.leaseMs = leaseMs;
    this.#ringLength = ringLength;
    this.#clock = clock;
    this.#leases = new ProcessLeases(leaseMs);
  }

  get hasFile(): boolean {
    return this.#file !== undefined;
  }

  /** Of a store that is down: what is in its file, in all its copies. */
  get filedCount(): number {
    let count = 0;
    for (const { ids } of this.#file?.copies.values() ?? []) count += ids.size;
    return count;
  }

  /** Why it does not start: anything but going on with a file that is there would lose mail in silence. */
  whyNotStarted(): string {
    if (this.#file?.isSound === false) return 'its file is damaged';
    return this.filedCount > this.limit ? 'its file is too large' : '';
  }

  /** Something of each copy is missing: none of it is to be believed. */
  damageFile(): void {
    if (this.#file === undefined) return;
    for (const { ids } of this.#file.copies.values()) for (const id of [...ids].slice(-2)) ids.delete(id);
    this.#file = { ...this.#file, isSound: false };
  }

  /** A person moves the file away: the next start is a new boot. */
  putFileAside(): void {
    this.#file = undefined;
  }

  /** In another boot, which came later. */
  hasBegunSince(bootId: string): boolean {
    return Number(bootId.slice(1)) < this.#boots;
  }

  /** What it has, in memory or in its file, is of a boot after which it has begun another one. */
  get isOfLateDisk(): boolean {
    return this.hasBegunSince(this.isUp ? this.bootId : this.#file?.bootId ?? this.bootId);
  }

  /** The disk is away, for now. */
  hideFile(): void {
    this.#lateFile = this.#file;
    this.#file = undefined;
  }

  /** The disk is back: there is the file of an older boot, unless the store has written another since. */
  findFile(): void {
    this.#file ??= this.#lateFile;
    this.#lateFile = undefined;
  }

  /** Of the file that is on a disk which is away; '' if there is none. */
  get lateBootId(): string {
    return this.#lateFile?.bootId ?? '';
  }

  /** Which boot it would go on in, if it started now; '' for a new one. */
  get filedBootId(): string {
    return this.#file?.bootId ?? '';
  }

  /** As holdsIn(), and what is on a disk that is away. */
  keepsIn(partition: string, bootId: string): Copy | undefined {
    return this.holdsIn(partition, bootId)
      ?? (this.#lateFile?.bootId === bootId ? this.#lateFile.copies.get(partition) : undefined);
  }

  start(): void {
    this.life += 1;
    this.isUp = true;
    this.isFrozen = false;
    this.copies.clear();
    this.#fences = new Map();
    this.#taken = new Map(this.#file?.taken ?? []);
    const file = this.#file;
    this.#file = undefined;
    this.#leases = new ProcessLeases(this.leaseMs, file?.longestMs ?? 0);
    if (file === undefined) {
      this.#boots += 1;
      this.bootId = `b${String(this.#boots)}`;
      this.#inheritedEndsMs = -Infinity;
      return;
    }
    this.bootId = file.bootId;
    this.#inheritedEndsMs = this.#clock() + file.longestMs;
    this.#leases.carryOn(file.counts);
    for (const [partition, copy] of file.copies) this.copies.set(partition, copy);
    for (const [partition, carried] of file.fences) this.#fence(partition).carryOn(carried);
  }

  /** A crash forgets everything; a stop writes what it holds. */
  end(writesFile: boolean): void {
    if (writesFile && this.isUp) {
      const fences = new Map([...this.#fences].map(([partition, fence]) => [partition,
        fence.carried()] as const));
      this.#file = {
        isSound: true,
        bootId: this.bootId, copies: new Map(this.copies), fences, taken: this.#taken,
          longestMs: this.#leases.longestMs, counts: this.#leases.carried(),
      };
    }
    this.isUp = false;
    this.life += 1;
    this.copies.clear();
  }

  /** The copy of this very boot is on its way back. */
  holdsIn(partition: string, bootId: string): Copy | undefined {
    if (this.isUp) return this.bootId === bootId ? this.copies.get(partition) : undefined;
    return this.#soundFile?.bootId === bootId ? this.#soundFile.copies.get(partition) : undefined;
  }

  holds(partition: string): boolean {
    return this.isUp ? this.copies.has(partition) : this.#soundFile?.copies.has(partition) === true;
  }

  get #soundFile(): StoreFile | undefined {
    return this.#file?.isSound === true ? this.#file : undefined;
  }

  heartbeat(process: string, fencesProcessed: number): HeartbeatAnswer {
    return this.#leases.heartbeat(process, fencesProcessed, this.#clock());
  }

  ask(partition: string, holder: HolderId): AskAnswer {
    const fence = this.#fence(partition);
    return { hasCopy: this.copies.get(partition)?.isComplete === true,
      leaseLeftMs: fence.leaseLeftMs(holder, this.#clock()), termNumber: fence.term.number,
      told: fence.told };
  }

  fence(partition: string, term: Term, holder: HolderId,
    provenDead: HolderId | undefined): FencedAnswer | DeclinedAnswer {
    const copy = this.copies.get(partition);
    const fence = this.#fence(partition);
    const verdict = fence.judge(term);
    if (verdict !== FenceVerdict.ACCEPTED) return this.#refusal(fence, term, verdict);
    if (copy === undefined) return { reason: DECLINED_NO_COPY, asked: term, term: fence.term,
      told: fence.told };
    fence.raise(term, holder, this.#clock());
    this.#take(partition, term);
    return { term, at: copy.position(), olderLeaseMs: fence.olderLeaseMs(this.#clock(), provenDead) };
  }

  /** A new, empty copy. Undefined: done. */
  found(partition: string, term: Term, holder: HolderId, knownEpoch: number): DeclinedAnswer | undefined {
    const fence = this.#fence(partition);
    if (fence.isNewsTo(knownEpoch)) {
      return { reason: DECLINED_STALE, asked: term, term: fence.term, told: fence.told };
    }
    if (this.copies.get(partition)?.isComplete === true && !fence.mayFound(holder, this.#clock())) {
      return { reason: DECLINED_NO_COPY, asked: term, term: fence.term, told: fence.told };
    }
    const refusal = this.fillBegin(partition, term, holder);
    const copy = this.copies.get(partition);
    if (refusal === undefined && copy !== undefined) {
      copy.isComplete = true;
      copy.foundedBy = term;
      copy.at = { ...EMPTY_POSITION, term };
    }
    return refusal;
  }

  fillBegin(partition: string, term: Term, holder: HolderId): DeclinedAnswer | undefined {
    const fence = this.#fence(partition);
    const verdict = fence.raise(term, holder, this.#clock());
    if (verdict !== FenceVerdict.ACCEPTED) return this.#refusal(fence, term, verdict);
    this.#take(partition, term);
    this.copies.set(partition, new Copy(term));
    return undefined;
  }

  fillEnd(partition: string, term: Term, snapshot: Snapshot): DeclinedAnswer | undefined {
    const fence = this.#fence(partition);
    if (!fence.admits(term)) return this.#refusal(fence, term, fence.judge(term));
    this.#take(partition, term);
    const copy = new Copy(term);
    copy.at = snapshot.at;
    copy.ids = new Set(snapshot.ids);
    copy.held = new Set(snapshot.held);
    copy.ring = snapshot.ring.slice(-this.#ringLength);
    copy.isComplete = true;
    this.copies.set(partition, copy);
    return undefined;
  }

  /** The number to acknowledge, 'gap' when it does not fit, or a refusal. */
  change(partition: string, change: Change, term: Term): number | 'gap' | DeclinedAnswer {
    const fence = this.#fence(partition);
    if (!fence.admits(term)) return this.#refusal(fence, term, fence.judge(term));
    this.#take(partition, term);
    const copy = this.copies.get(partition);
    if (copy === undefined || !copy.isComplete) return 'gap';
    if (change.number <= copy.at.number) {
      const known = copy.ring.find((each) => each.number === change.number);
      return known === undefined || known.digest === change.digest ? copy.at.number : 'gap';
    }
    if (change.number !== copy.at.number + 1 || digestAfter(copy.at.digestA, change.kind,
      change.id) !== change.digest) return 'gap';
    copy.apply(change);
    copy.at = { number: change.number, term, digestA: change.digest, digestB: 0 };
    copy.lastTerm = term;
    copy.foundedBy = undefined;
    copy.ring.push(change);
    if (copy.ring.length > this.#ringLength) copy.ring.shift();
    return change.number;
  }

  /** What a taker reads; undefined when it is not the one that fenced us. */
  read(partition: string, term: Term): Snapshot | undefined {
    const copy = this.copies.get(partition);
    if (copy === undefined || !copy.isComplete || !this.#fence(partition).admits(term)) return undefined;
    return { at: copy.at, ids: [...copy.ids], held: [...copy.held], ring: [...copy.ring] };
  }

  /**
   * A copy that was given up, to be adopted: read whatever its term, when nothing can be added to it any
   * more.
   */
  readGivenUp(partition: string, term: Term, holder: HolderId): readonly number[] {
    this.#fence(partition).raise(term, holder, this.#clock());
    return [...(this.copies.get(partition)?.ids ?? [])];
  }

  release(partition: string, term: Term): void {
    this.#fence(partition).release(term);
  }

  /** As Store.tell, line by line. */
  tell(partition: string, record: PartitionRecord, isOut: boolean, bootId: string): boolean {
    if (bootId !== this.bootId) return true;
    const fence = this.#fence(partition);
    const isGivenUp = isMemberOf(record.gaveUp, this.storeId, this.bootId);
    const isUnsettled = fence.isNeverSettled(record);
    if ((isOut || isUnsettled) && fence.isUnknownTo(record, this.storeId, this.bootId)) return false;
    if (isUnsettled) {
      fence.dropTerm(record);
      this.#taken.delete(partition);
      const lastTerm = this.copies.get(partition)?.lastTerm;
      if (!isGivenUp && lastTerm !== undefined && isUndoneBy(record, lastTerm)) this.copies.delete(partition);
    }
    if (!fence.tell(record)) return false;
    if (isOut && fence.isOutBy(record) && !isGivenUp) this.copies.delete(partition);
    return true;
  }

  /** As Store.list: of which the copy here counts, as far as was told, and what nobody serves. */
  list(): readonly string[] {
    return [...this.copies.keys()].filter((partition) => {
      const fence = this.#fence(partition);
      const { told } = fence;
      const isMember = told !== undefined && !isEnded(told) && isMemberOf(told.members, this.storeId, this.bootId);
      const isBegun = (this.copies.get(partition)?.at.number ?? 0) > 0;
      return isMember || (isBegun && fence.isUnserved(this.#clock()));
    }).sort();
  }

  /** Messages in a copy, in memory or in its file. */
  countIn(partition: string): number {
    const copies = this.isUp ? this.copies : this.#soundFile?.copies;
    return copies?.get(partition)?.ids.size ?? 0;
  }

  /** Of the newest record that it was told, in memory or in its file. */
  toldEpoch(partition: string): number {
    const told = this.isUp ? this.#fences.get(partition)?.told
      : this.#soundFile?.fences.get(partition)?.told;
    return told?.epoch ?? 0;
  }

  #take(partition: string, term: Term): void {
    const taken = this.#taken.get(partition) ?? 0;
    if (term.number < taken) throw new PropertyBroken(
      `fence: ${this.storeId} of ${partition} took term ${String(taken)}, then works under ${String(term.number)}`);
    this.#taken.set(partition, term.number);
  }

  #fence(partition: string): PartitionFence {
    let fence = this.#fences.get(partition);
    if (fence === undefined) {
      fence = new PartitionFence(partition, this.#leases, this.#inheritedEndsMs);
      this.#fences.set(partition, fence);
    }
    return fence;
  }

  #refusal(fence: PartitionFence, asked: Term, verdict: number): DeclinedAnswer {
    return { reason: VERDICT_REASON[verdict] ?? DECLINED_LOWER, asked, term: fence.term,
      told: fence.told };
  }
}

