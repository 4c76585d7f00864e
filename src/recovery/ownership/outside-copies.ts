/**
 * COPIES OUTSIDE THE RECORD: what there may be of the partition that does not count, and may have mail which
 * its holder lacks (15, 16). It is taken in before anything is filled there. All of this is forgotten with
 * what is held; what stands in the record, and what stores were told, is there for the next holder.
 *
 *   list       what stands in it                  it comes there by            it leaves by
 *   gaveUp     copies whose mail is to be taken   an order, or a loss of all   a change without it, once it
 *              in: the record's own list, so      (holder.ts); the change      is in `adopted`; the oldest
 *              that later holders have it         that names what was          when there are too many
 *                                                 forgotten
 *   adopting   of gaveUp: its store is up, and    tick                         its link is lost: then it is
 *              it is being read                                                read anew
 *   covered    epochs: copies of gaveUp that      a copy of that epoch is      with what is held
 *              counted in them last, and stand    what is held was read from;
 *              not alone, have nothing that is    no member is left
 *              not here
 *   adopted    of gaveUp: all its mail is in      it was read; its store is    that change is known
 *              copies that count, or it is gone   up in another boot, unless
 *                                                 it was gone from the start;
 *                                                 it is covered, and enough
 *                                                 stores have what is held
 *   forgotten  copies of a record that the        a store says what it was     a change that puts it into
 *              register had lost when ours was    told                         gaveUp; it was filled by us;
 *              made                                                            its record is `undone`
 *   undone     such records, no mail of which is  one of its copies is a       the change whose line has it
 *              missing here                       member in step with all      is known: these copies are
 *                                                 that was read                told that they are out
 */
import { GAVE_UP_MAX } from '../../protocol/fields.js';
import type {
  GivenUpCopy, PartitionRecord, PastTerm, RecordedMember, Term,
} from '../../protocol/partition-record.js';
import { isEnded, isMemberOf, isOfLine, isSameTerm, lineWith } from '../../protocol/partition-record.js';
import { withGivenUp } from './given-up-copies.js';
import { MemberState } from './member.js';
import type { PartitionSet } from './partition-set.js';
import type { HolderPorts } from './ports.js';

/** A copy of a record that was undone. */
interface ForgottenCopy extends GivenUpCopy {
  readonly term: Term;
}

export class OutsideCopies {
  readonly #ports: Pick<HolderPorts, 'memory' | 'stores'>;
  readonly #trace: (event: string) => void;
  readonly #adopting = new Set<string>();
  readonly #covered = new Set<number>();
  #adopted: RecordedMember[] = [];
  #forgotten: ForgottenCopy[] = [];
  #undone: PastTerm[] = [];

  constructor(ports: Pick<HolderPorts, 'memory' | 'stores'>, trace: (event: string) => void) {
    this.#ports = ports;
    this.#trace = trace;
  }

  /** Copies that were given up and may leave the record. */
  get adopted(): readonly RecordedMember[] {
    return this.#adopted;
  }

  /** Not to be filled: their mail is taken in first. */
  get forgottenStores(): readonly string[] {
    return this.#forgotten.filter(({ storeId, bootId }) => this.#ports.stores.bootOf(storeId) === bootId)
      .map(({ storeId }) => storeId);
  }

  /** A change of the record is wanted, to these members or others. */
  isChangeWanted(set: PartitionSet, own: PartitionRecord, members: readonly RecordedMember[]): boolean {
    return this.#adopted.length > 0 || this.#undone.length > 0 || this.#takenIn(set, own, members).length > 0;
  }

  /** Copies given up, of a record with these members. */
  gaveUpWith(
    set: PartitionSet, own: PartitionRecord, members: readonly RecordedMember[],
  ): readonly GivenUpCopy[] {
    const open = own.gaveUp.filter((each) => !isMemberOf(this.#adopted, each.storeId, each.bootId));
    const taken = [...open, ...this.#takenIn(set, own, members)];
    if (members.length > 0 || own.members.length === 0) return taken;
    // All that is left is in this memory: whoever comes after it has only what may lie on late disks.
    this.cover(own.epoch);
    const gone = set.rows.filter((row) => row.isRecorded && row.isGone)
      .map(({ storeId, bootId }) => ({ storeId, bootId, epoch: own.epoch, isGone: true as const }));
    return withGivenUp({ gaveUp: taken }, gone);
  }

  /** Of copies given up: those which may have what is not here. */
  uncovered({ gaveUp }: PartitionRecord): readonly GivenUpCopy[] {
    return gaveUp.filter((copy) => !this.#isCovered(copy));
  }

  /** All that copies have which counted last in this epoch is here, but of those that stand alone. */
  cover(epoch: number): void {
    this.#covered.add(epoch);
  }

  #isCovered({ epoch, isAlone }: GivenUpCopy): boolean {
    return isAlone !== true && this.#covered.has(epoch);
  }

  lineWithUndone({ line }: PartitionRecord): readonly PastTerm[] {
    return this.#undone.reduce(lineWith, line);
  }

  /** That change is known to have been made, or another. */
  settled(record: PartitionRecord): void {
    const { gaveUp } = record;
    this.#adopted = this.#adopted.filter((each) => isMemberOf(gaveUp, each.storeId, each.bootId));
    this.#forgotten = this.#forgotten.filter((each) => !isMemberOf(gaveUp, each.storeId, each.bootId));
    this.#undone = this.#undone.filter((each) => !isOfLine(record, each));
  }

  forget(): void {
    this.#adopting.clear();
    this.#covered.clear();
    this.#adopted = [];
    this.#forgotten = [];
    this.#undone = [];
  }

  // ── copies that were given up (16) ──────────────────────────────────────────────────────────────

  /** `areEnough`: what is here is at as many stores as it should be. */
  adoptThoseBack({ gaveUp }: PartitionRecord, areEnough: boolean): void {
    for (const member of gaveUp) {
      const bootId = this.#ports.stores.bootOf(member.storeId);
      if (isMemberOf(this.#adopted, member.storeId, member.bootId)) continue;
      if (this.#isCovered(member)) {
        // Its store, if it is up, may be needed for there to be enough.
        if (areEnough || bootId === member.bootId) this.noteOut(member);
        continue;
      }
      if (bootId === '') continue;
      const key = `${member.storeId}/${member.bootId}`;
      if (bootId !== member.bootId) {
        // What all stores lost at once may lie on disks that were not there when they started.
        if (member.isGone === true) continue;
        this.#trace(`${key}, which was given up, is gone`);
        this.noteOut(member);
        continue;
      }
      if (this.#adopting.has(key)) continue;
      this.#adopting.add(key);
      this.#ports.memory.adopt(member);
    }
  }

  onLinkDown(storeId: string): void {
    for (const key of this.#adopting) if (key.startsWith(`${storeId}/`)) this.#adopting.delete(key);
  }

  /** All of its mail is here, or nowhere any more. */
  noteOut({ storeId, bootId }: RecordedMember): void {
    if (!isMemberOf(this.#adopted, storeId, bootId)) this.#adopted.push({ storeId, bootId });
  }

  // ── copies of records that were undone (15) ─────────────────────────────────────────────────────

  /**
   * A store has been told a record that does not lie in the line of ours: the register was put back, or lost,
   * and that store was silent when ours was made.
   */
  noteForgotten(own: PartitionRecord, told: PartitionRecord | undefined): void {
    if (told === undefined || isEnded(told) || isOfLine(own, told) || this.#isHere(told)) return;
    for (const { storeId, bootId } of told.members) {
      if (isMemberOf(own.gaveUp, storeId, bootId) || isMemberOf(this.#forgotten, storeId, bootId)) continue;
      this.#forgotten.push({ storeId, bootId, epoch: told.epoch, term: told.term });
      this.#trace(`${storeId}/${bootId} may have mail of epoch ${String(told.epoch)}, which was undone`);
    }
  }

  /**
   * A member is compared with us first: in step with all that was read, it has nothing that we have not, nor
   * have those that counted with it, or before it in its term. Our line says so, and they are told.
   */
  noteUndone(set: PartitionSet, isAllRead: boolean): void {
    if (this.#forgotten.length === 0) return;
    const isRefilled = ({ storeId, bootId }: ForgottenCopy): boolean =>
      set.rowOf(storeId, bootId)?.isRefilled === true;
    this.#forgotten = this.#forgotten.filter((copy) => !isRefilled(copy));
    if (!isAllRead) return;
    for (const copy of this.#forgotten) {
      const row = set.rowOf(copy.storeId, copy.bootId);
      if (row?.isRecorded !== true || !row.isInStep || this.#isHere(copy)) continue;
      this.#undone.push({ term: copy.term, epoch: copy.epoch });
      this.#trace(`epoch ${String(copy.epoch)}, which was undone, has no mail that is not here`);
    }
    this.#forgotten = this.#forgotten.filter((copy) => !this.#isHere(copy));
  }

  #isHere({ term, epoch }: PastTerm): boolean {
    return this.#undone.some((each) => isSameTerm(term, each.term) && epoch <= each.epoch);
  }

  /** As many as a record has room for, of those that no member will tell of. */
  #takenIn(
    set: PartitionSet, own: PartitionRecord, members: readonly RecordedMember[],
  ): readonly GivenUpCopy[] {
    const awaited = this.#forgotten.filter(({ storeId, bootId }) => {
      const row = set.rowOf(storeId, bootId);
      return row?.isPossible === true && row.state !== MemberState.NG;
    });
    return this.#forgotten
      .filter(({ storeId, bootId, epoch }) => !isMemberOf(members, storeId, bootId)
        && !awaited.some((copy) => copy.epoch === epoch))
      .slice(0, Math.max(0, GAVE_UP_MAX - own.gaveUp.length))
      .map(({ storeId, bootId, epoch }) => ({ storeId, bootId, epoch }));
  }
}
