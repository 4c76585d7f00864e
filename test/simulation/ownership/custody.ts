/**
 * The checks of the ownership world: what the world outside saw of each message, against the properties of
 * docs/model.
 *
 *   custody     each member of the record that lives in the recorded boot, and the holder, holds each message
 *               answered 250 and not yet delivered
 *   one owner   never two processes with the right to a final dot
 *   refusal     nothing answered 4xx is delivered
 *   order       first attempts in order, in each queue: what was answered before another was offered goes first
 *   deletion    no delivery after a committed deletion, be it delivered, deleted by order, or past its time
 *   hold        no delivery of a message, or from a queue, that is held: all copies have the hold, or the partition's
 *               holder obeys the rule; after a takeover too (17)
 *   given up    a memory that is the only copy goes by a person's order, or by the death of its process; or
 *               by a takeover or hand-back sent while a copy could be reached, and made when all had died: the
 *               hole that docs/model names (13). It is counted, and a person is asked
 *   fence       no store applies or begins anything under a term below one that it has taken (sim-store.ts)
 *   orphans     what has ended was empty, and its record goes when no store has anything of it; what no file names
 *               any more is held and shown until then (simulate.ts)
 *   drains      once faults stop, everything answered 250 is delivered, and the partition is doubled
 * (simulate.ts)
 */
import type { GivenUpCopy, PartitionRecord, RecordedMember, Term } from '../../../src/protocol/partition-record.js';
import { holderKey, isEnded, isMemberOf, isSameTerm } from '../../../src/protocol/partition-record.js';
import type { PartitionHolder } from '../../../src/recovery/ownership/holder.js';
import { PropertyBroken } from './property-broken.js';
import type { SimStore } from './sim-store.js';
import type { World } from './world.js';

interface Letter {
  readonly id: number;
  readonly partition: string;
  readonly queue: number;
  readonly offered: number;
  /** Order of events; 0: not yet. */
  said250: number;
  dots: number;
  isRefused: boolean;
  isRemoved: boolean;
  /** Every copy died, by a fault that no guarantee covers, or an operator gave it up. */
  isLost: boolean;
  /** An operator gave its copies up: it is delivered when one of them comes back. */
  isAway: boolean;
  /** Its copies were given up once: what is adopted keeps no place. */
  wasGivenUp: boolean;
  /** It has come out of a copy that counted no more. */
  wasAdopted: boolean;
  /** All copies have the order that holds it. */
  isHeld: boolean;
  /** What was held keeps no place. */
  wasHeld: boolean;
  readonly expiresMs: number;
}

export class Custody {
  readonly #world: World;
  readonly letters = new Map<number, Letter>();
  /** Queues of a partition that are held, and whose holder obeys. */
  readonly #heldQueues = new Map<string, Set<number>>();
  /** Answered 250, no dot yet, by partition. */
  readonly #due = new Map<string, Set<Letter>>();
  readonly #truth = new Map<string, PartitionRecord>();
  /** Of all records that ever stood, by partition: also of those whose copies were lost. */
  readonly #newestEpochs = new Map<string, number>();
  /** Terms of all of them. */
  readonly #stood = new Set<string>();
  /** Which process was told to give a memory up. */
  readonly #unwarned = new Set<string>();
  readonly #orders = new Set<string>();
  /** Terms whose change was sent while a member could be reached, as far as its sender knew. */
  readonly #sentWithCopy = new Set<string>();
  /** By partition and epoch members whose store was in another boot when the change that puts them out was sent. */
  readonly #sentWithout = new Set<string>();
  /** Partitions whose last copy was the memory of a process that was deposed. */
  readonly deposedAlone = new Set<string>();
  /** Partitions that have ended once. */
  readonly #ended = new Set<string>();
  #order = 0;
  isTouched = false;
  accepted = 0;
  delivered = 0;
  repeated = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** The newest record that ever stood: what a register that was rolled back says is not the truth. */
  truth(partition: string): PartitionRecord | undefined {
    return this.#truth.get(partition);
  }

  newestEpoch(partition: string): number {
    return this.#newestEpochs.get(partition) ?? 0;
  }

  onRecord(partition: string, record: PartitionRecord): void {
    this.#newestEpochs.set(partition, Math.max(record.epoch, this.newestEpoch(partition)));
    this.#stood.add(termKey(partition, record.term));
    const known = this.#truth.get(partition);
    const isNext = known === undefined || isAfter(record, known);
    if (!isEnded(record) && (known === undefined || this.#ended.has(partition))) this.#foundLate(partition, record);
    if (isEnded(record) || (known !== undefined && isEnded(known))) {
      if (isEnded(record)) this.#onEnded(partition);
      if (isNext) this.#truth.set(partition, record);
      this.isTouched = true;
      return;
    }
    if (known !== undefined && isNext && record.members.length === 0) this.#checkLastMember(partition, known, record);
    if (known?.members.length === 0 && isNext && !isSameTerm(known.term, record.term)) {
      this.#memoryIsGivenUp(partition, known, record);
    }
    if (known !== undefined && isNext && !isSameTerm(known.term, record.term)) this.#readFromLeft(partition, known, record);
    if (known !== undefined && isNext && !isSameTerm(known.term, record.term)) this.#deposed(partition, known, record);
    // Whoever finds that every copy is gone has all of it in memory.
    const isInMemory = known !== undefined && isSameTerm(known.term, record.term) && record.members.length === 0;
    const isMore = record.gaveUp.some(({ storeId, bootId }) => !isMemberOf(known?.gaveUp ?? [], storeId, bootId));
    if (known !== undefined && isMore && !isInMemory) this.#giveUp(partition, record);
    if (known !== undefined && isNext) this.#noteGivenUpGone(partition, known, record);
    if (isNext) this.#truth.set(partition, record);
    this.isTouched = true;
  }

  /** What was answered 250 must be delivered by then; what may still come back is looked at in the end. */
  #onEnded(partition: string): void {
    this.#world.count('ended');
    this.#ended.add(partition);
    for (const letter of this.#due.get(partition) ?? []) {
      if (letter.isLost || letter.isAway) continue;
      throw new PropertyBroken(`orphans: ${partition} has ended, and message ${String(letter.id)} waits in it`);
    }
  }

  /**
   * A copy that was set aside, on a disk that is found after the end, which did not know it, or after a loss of all:
   * what it has comes again, and what was refused since comes, too (16).
   */
  #foundLate(partition: string, { members }: PartitionRecord): void {
    for (const { storeId, bootId } of members) {
      const store = this.#world.stores.find((each) => each.storeId === storeId);
      const copy = store?.holdsIn(partition, bootId);
      if (copy === undefined || copy.foundedBy !== undefined || store?.isOfLateDisk !== true) continue;
      this.#world.count(this.#ended.has(partition) ? 'found after its end' : 'found after a loss of all');
      this.adopted([...copy.ids]);
    }
  }

  /** A person gave them up, and their stores are up without them: nobody waits for disks that may be found later. */
  #noteGivenUpGone(partition: string, before: PartitionRecord, after: PartitionRecord): void {
    const isGone = ({ storeId, bootId, isGone: wasGone }: GivenUpCopy): boolean => wasGone !== true
      && !isMemberOf([...after.gaveUp, ...after.members], storeId, bootId)
      && this.#world.stores.some((store) => store.storeId === storeId && store.lateBootId === bootId);
    if (before.gaveUp.some(isGone)) this.loseAway(partition);
  }

  /** While its record stands, a copy that comes back is known to be none: it goes last. */
  onDeleted(partition: string): void {
    this.#truth.delete(partition);
    for (const store of this.#world.stores) {
      const count = store.countIn(partition);
      // Its disk was found late, in a boot that passed for gone: it is told when it is met (checkIds).
      if (count > 0 && !store.isOfLateDisk) throw new PropertyBroken(`orphans: the record of ${partition} is gone, and ${store.storeId} has ${String(count)} messages of it`);
    }
  }

  /** It was undone, and nobody has a copy of it any more: what the register says next is the truth. */
  forget(partition: string): void {
    this.#truth.delete(partition);
  }

  /**
   * A founding that came to nothing has emptied it, after a change that records it was sent: it is a copy no
   * more, and says so.
   */
  isEmptied(partition: string, { foundedBy }: { readonly foundedBy: Term | undefined }): boolean {
    return foundedBy !== undefined && !this.#stood.has(termKey(partition, foundedBy));
  }

  /**
   * The last member leaves only when its copy is surely gone (8): one whose store ran without it when the change
   * was sent was, as far as its sender could know, though its file may have been found since.
   */
  #checkLastMember(partition: string, before: PartitionRecord, { epoch }: PartitionRecord): void {
    for (const { storeId, bootId } of before.members) {
      if (this.#sentWithout.has(`${partition} ${String(epoch)} ${storeId}/${bootId}`)) continue;
      const store = this.#world.stores.find((each) => each.storeId === storeId);
      if (store?.holdsIn(partition,
        bootId)?.isComplete === true) throw new PropertyBroken(`last member: ${storeId}/${bootId} left ${partition}, though its copy lives`);
    }
  }

  /** Copies were given up while it lived, and nobody could tell it: until it ends it may deliver beside another (16). */
  notWarned(partition: string, process: string): void {
    this.#unwarned.add(`${partition} ${process}`);
  }

  orderMemory(partition: string, process: string): void {
    this.#orders.add(`${partition} ${process}`);
  }

  /**
   * The only copy was in the memory of the holder. Its next life may found the partition anew when it is
   * dead; any
   * other process by an order, while the holder has no session (7).
   */
  #memoryIsGivenUp(partition: string, before: PartitionRecord, after: PartitionRecord): void {
    const world = this.#world;
    const holder = holderKey(before.holder);
    const isDead = world.processes.every(({ key }) => key !== holder);
    const isNextLife = isDead && before.holder.gatewayId === after.holder.gatewayId;
    const what = `given up: the memory of ${holder} in ${partition}`;
    if (!isDead && world.register.hasSession(holder)) throw new PropertyBroken(`${what}, though its session lives`);
    if (!isNextLife && !this.#orders.has(`${partition} ${holderKey(after.holder)}`)) {
      throw new PropertyBroken(`${what}, without an order`);
    }
    world.count('memory given up');
    for (const letter of this.#due.get(partition) ?? []) letter.isLost = true;
  }

  sentWithCopy(partition: string, term: Term): void {
    this.#sentWithCopy.add(termKey(partition, term));
  }

  /** Nobody could know when the change was sent that no member would be left when it was made. */
  #deposed(partition: string, before: PartitionRecord, after: PartitionRecord): void {
    const world = this.#world;
    const isLeft = after.members.some(({ storeId, bootId }) => world.stores.find((store) =>
      store.storeId === storeId)?.holdsIn(partition, bootId)?.isComplete === true);
    const isInMemory = world.partsOf(partition).some((part) => part.isCopy && isSameTerm(part.holder.term, before.term));
    if (isLeft || !isInMemory || after.members.length === 0
      || !this.#sentWithCopy.has(termKey(partition, after.term))) return;
    world.count('last memory deposed');
    this.deposedAlone.add(partition);
    for (const letter of this.#due.get(partition) ?? []) letter.isLost = true;
  }

  /**
   * While its holder is PARTIAL, neither its source nor a member of another history leaves, but for being
   * gone, or the latter for two in step (14): as far as the holder knew when it sent the change.
   */
  changeSent(process: string, partition: string, holder: PartitionHolder, after: PartitionRecord): void {
    for (const { storeId, bootId } of after.members.length > 0 ? [] : this.truth(partition)?.members ?? []) {
      const store = this.#world.stores.find((each) => each.storeId === storeId);
      const row = holder.set?.rows.find((each) => each.storeId === storeId && each.bootId === bootId);
      // Its sender has not heard yet that its file was found.
      const isUnheard = row?.isGone === true && store?.hasBegunSince(bootId) === true;
      if (store?.bootId !== bootId || isUnheard) this.#sentWithout.add(`${partition} ${String(after.epoch)} ${storeId}/${bootId}`);
    }
    const { set } = holder;
    if (set === undefined || !set.isPartial || !isSameTerm(holder.term, after.term)) return;
    const inStep = set.rows.filter((row) => row.isInStep && isMemberOf(after.members, row.storeId, row.bootId)).length;
    for (const row of set.rows) {
      if (row.isGone || (row !== set.source && inStep >= 2) || !(row === set.source || row.isDiverged) || !row.isRecorded
        || isMemberOf(after.members, row.storeId, row.bootId)) continue;
      const which = `${row.storeId}/${row.bootId}`;
      throw new PropertyBroken(`partial: ${which} leaves ${partition}, which ${process} has not read yet`);
    }
  }

  /**
   * Every member is gone, or was given up, or the memory was that alone was left, and a copy that had left is read:
   * the last source of a PARTIAL holder (14). What that copy lacks is lost, by the limit that is named; what it has may have been ended since.
   */
  #readFromLeft(partition: string, before: PartitionRecord, after: PartitionRecord): void {
    const copyOf = ({ storeId, bootId }: RecordedMember): ReturnType<SimStore['holdsIn']> =>
      this.#world.stores.find((store) => store.storeId === storeId)?.holdsIn(partition, bootId);
    const isOut = (member: RecordedMember): boolean => copyOf(member)?.isComplete !== true
      || isMemberOf(after.gaveUp, member.storeId, member.bootId);
    const joined = after.members.filter(({ storeId, bootId }) => !isMemberOf(before.members, storeId, bootId));
    const isFounding = joined.some((member) => copyOf(member)?.foundedBy !== undefined);
    // Whoever takes over reads the copy: what the memory that he deposes knew better is of no account any more.
    const isInMemory = isSameTerm(before.term, after.term)
      && this.#world.partsOf(partition).some((part) => part.isCopy && isSameTerm(part.holder.term, before.term));
    if (joined.length === 0 || isFounding || isInMemory || !before.members.every(isOut)) return;
    this.#world.count('left copy read');
    for (const member of joined) this.adopted([...copyOf(member)?.ids ?? []]);
    for (const letter of this.#due.get(partition) ?? []) {
      const isAway = after.gaveUp.some((copy) => copyOf(copy)?.ids.has(letter.id) === true);
      if (!isAway && joined.some((member) => copyOf(member)?.ids.has(letter.id) !== true)) letter.isLost = true;
    }
  }

  /**
   * By a person's order, or as stores started without their disks: what no copy that was given up still has is
   * lost by it, the rest may come back. A copy that still counts has what it has.
   */
  #giveUp(partition: string, { members, gaveUp }: PartitionRecord): void {
    const copiesOf = (copies: readonly RecordedMember[]): ReturnType<SimStore['keepsIn']>[] =>
      copies.map(({ storeId, bootId }) => this.#world.stores.find((store) => store.storeId === storeId)?.keepsIn(partition, bootId));
    const [counting, away] = [copiesOf(members), copiesOf(gaveUp)];
    for (const letter of this.#due.get(partition) ?? []) {
      letter.wasGivenUp = true;
      if (counting.some((copy) => copy?.ids.has(letter.id) === true)) continue;
      letter.isAway = true;
      if (!away.some((copy) => copy?.ids.has(letter.id) === true)) letter.isLost = true;
    }
  }

  due(partition: string): readonly Letter[] {
    return [...(this.#due.get(partition) ?? [])].filter((letter) => !letter.isLost);
  }

  offered(partition: string, id: number, queue: number): void {
    this.#order += 1;
    this.letters.set(id, { id, partition, queue, offered: this.#order, said250: 0, dots: 0, isRefused: false,
      isRemoved: false, isLost: false, isAway: false, wasGivenUp: false, wasAdopted: false,
      isHeld: false, wasHeld: false, expiresMs: this.#world.events.nowMs + this.#world.plan.lifetimeMs });
  }

  refusedAtOnce(id: number): void {
    this.letters.delete(id);
  }

  said250(partition: string, id: number, term: Term, minReplicas: number): void {
    const letter = this.letters.get(id);
    if (letter === undefined || letter.said250 > 0) return;
    const truth = this.#truth.get(partition);
    if (truth !== undefined && isSameTerm(truth.term, term) && truth.members.length < Math.max(1, minReplicas)) {
      throw new PropertyBroken(`commit: message ${String(id)} is answered 250 with ${String(truth.members.length)} members`);
    }
    this.#order += 1;
    letter.said250 = this.#order;
    this.accepted += 1;
    if (letter.dots > 0) return;
    let due = this.#due.get(partition);
    if (due === undefined) this.#due.set(partition, due = new Set());
    due.add(letter);
    if (truth !== undefined && !isSameTerm(truth.term, term)) this.#answeredByDeposed(partition, letter, truth);
    this.isTouched = true;
  }

  /**
   * Who was deposed by giving copies up may still commit on these, until they are fenced to be adopted
   * (16).
   */
  #answeredByDeposed(partition: string, letter: Letter, { gaveUp }: PartitionRecord): void {
    letter.isAway = gaveUp.some(({ storeId, bootId }) => this.#world.stores.some((store) =>
      store.storeId === storeId && store.holdsIn(partition, bootId)?.ids.has(letter.id) === true));
    letter.wasGivenUp = letter.isAway;
  }

  said4xx(id: number): void {
    const letter = this.letters.get(id);
    if (letter === undefined) return;
    if (letter.dots > 0 && !letter.wasAdopted) throw new PropertyBroken(`refusal: message ${String(id)} was delivered, then answered 4xx`);
    if (letter.said250 > 0) throw new PropertyBroken(`refusal: message ${String(id)} was answered 250, then 4xx`);
    letter.isRefused = true;
  }

  noReply(_id: number): void {
    // Nothing was promised: it may be delivered, or not.
  }

  dot(process: string, partition: string, id: number): void {
    const letter = this.letters.get(id);
    if (letter === undefined) throw new PropertyBroken(`custody: ${process} delivers message ${String(id)}, which nobody offered`);
    if (letter.isRefused && !letter.wasAdopted) throw new PropertyBroken(`refusal: ${process} delivers message ${String(id)}, which was answered 4xx`);
    if (letter.isRemoved) throw new PropertyBroken(`deletion: ${process} delivers message ${String(id)} after its deletion was committed`);
    if (letter.isHeld) throw new PropertyBroken(`hold: ${process} delivers message ${String(id)}, which is held`);
    this.#checkQueue(process, letter);
    if (letter.dots === 0) this.#checkOrder(process, letter);
    letter.dots += 1;
    if (letter.dots === 1) this.delivered += 1;
    else this.repeated += 1;
    this.#due.get(partition)?.delete(letter);
  }

  #checkQueue(process: string, { partition, queue }: Letter): void {
    if (this.#heldQueues.get(partition)?.has(queue) !== true || this.#unwarned.has(`${partition} ${process}`)) return;
    throw new PropertyBroken(`hold: ${process} delivers from queue ${String(queue)} of ${partition}, which is held`);
  }

  // ── orders ──────────────────────────────────────────────────────────────────────────────────────

  expiresMs(id: number): number {
    return this.letters.get(id)?.expiresMs ?? Infinity;
  }

  /** Its holder has ended it: who comes next may have it or not, until all have heard (removed). */
  ending(partition: string, id: number): void {
    const letter = this.letters.get(id);
    if (letter !== undefined) this.#due.get(partition)?.delete(letter);
  }

  holdOrdered(id: number, isHeld: boolean): void {
    const letter = this.letters.get(id);
    if (letter === undefined) return;
    letter.wasHeld = true;
    if (!isHeld) letter.isHeld = false;
  }

  held(id: number): void {
    const letter = this.letters.get(id);
    if (letter !== undefined) letter.isHeld = true;
  }

  queueHeld(partition: string, queue: number): void {
    let queues = this.#heldQueues.get(partition);
    if (queues === undefined) this.#heldQueues.set(partition, queues = new Set());
    queues.add(queue);
  }

  queuesReleased(partition: string): void {
    this.#heldQueues.delete(partition);
  }

  // ── inside, and what is lost ────────────────────────────────────────────────────────────────────

  #checkOrder(process: string, letter: Letter): void {
    for (const other of this.#due.get(letter.partition) ?? []) {
      if (other.queue !== letter.queue || other.wasHeld || other.isLost || other.wasGivenUp || other.said250 > letter.offered) continue;
      throw new PropertyBroken(`order: ${process} starts message ${String(letter.id)} before ${String(other.id)}, which was answered before it came`);
    }
  }

  removed(id: number): void {
    const letter = this.letters.get(id);
    if (letter !== undefined) letter.isRemoved = true;
  }

  /** No copy of the partition is left, or its copies were given up. */
  lose(partition: string): void {
    this.#truth.delete(partition);
    for (const letter of this.#due.get(partition) ?? []) letter.isLost = true;
  }

  /** Copies that count are lost; those that were set aside are not. */
  loseNew(partition: string): void {
    for (const letter of this.#due.get(partition) ?? []) if (!letter.isAway) letter.isLost = true;
  }

  /** A copy that was given up dies before it was adopted, or a memory that an operator gave up. */
  loseAway(partition: string): void {
    for (const letter of this.#due.get(partition) ?? []) if (letter.isAway) letter.isLost = true;
  }

  /**
   * What is adopted may have been delivered and deleted elsewhere since, or refused: the copy counted no more,
   * and was not asked. That it may repeat is said.
   */
  adopted(ids: readonly number[]): void {
    for (const id of ids) {
      const letter = this.letters.get(id);
      if (letter === undefined) continue;
      letter.isRemoved = false;
      letter.isHeld = false;
      letter.wasAdopted = true;
    }
  }

  /** What was adopted is committed in the new record. */
  back(ids: readonly number[]): void {
    for (const id of ids) {
      const letter = this.letters.get(id);
      if (letter !== undefined) letter.isAway = false;
    }
  }

  check(): void {
    this.#checkOwners();
    if (!this.isTouched) return;
    this.isTouched = false;
    for (const { partition } of this.#world.partitions) this.#checkCopies(partition);
  }

  #checkOwners(): void {
    for (const { partition } of this.#world.partitions) {
      let first = '';
      for (const process of this.#world.processes) {
        const holder = process.parts.get(partition)?.holder;
        if (holder?.set === undefined || this.#unwarned.has(`${partition} ${process.key}`)
          || !holder.mayDeliver(process.now())) continue;
        if (first !== '') throw new PropertyBroken(`one owner: ${first} and ${process.key} may deliver from ${partition}`);
        first = process.key;
      }
    }
  }

  #checkCopies(partition: string): void {
    const record = this.#truth.get(partition);
    const due = this.#due.get(partition);
    if (record === undefined || due === undefined || due.size === 0) return;
    for (const { storeId, bootId } of record.members) {
      const store = this.#world.stores.find((each) => each.storeId === storeId);
      if (store?.isUp !== true || store.bootId !== bootId) continue;
      const copy = store.copies.get(partition);
      if (copy !== undefined && this.isEmptied(partition, copy)) continue;
      for (const letter of due) {
        if (letter.isLost || letter.isAway || copy?.ids.has(letter.id) === true) continue;
        throw new PropertyBroken(`custody: member ${storeId}/${bootId} of ${partition} lacks message ${String(letter.id)}`);
      }
    }
    for (const part of this.#world.partsOf(partition)) {
      if (!part.isCopy || !isSameTerm(part.holder.term, record.term)) continue;
      for (const letter of due) {
        if (letter.isLost || letter.isAway || part.entries.has(letter.id)) continue;
        throw new PropertyBroken(`custody: holder ${part.process.key} of ${partition} lacks message ${String(letter.id)}`);
      }
    }
  }
}

function termKey(partition: string, { number, nonce }: Term): string {
  return `${partition} ${String(number)} ${String(nonce)}`;
}

/** Of two in one epoch, the later one was made after a rollback. */
function isAfter(record: PartitionRecord, known: PartitionRecord): boolean {
  return record.epoch > known.epoch || (record.epoch === known.epoch && !isSameTerm(record.term, known.term));
}
