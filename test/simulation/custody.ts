/**
 * Who holds what: from the memory of every process, and the register, it is told whether an accepted message may be lost.
 *
 * G2 holds as long as one of {holder, members} is alive. So whenever a memory is lost (a process ends) this file looks
 * who is left. A message counts as held by
 *   a member    the copy of the very boot that the register's record names, complete, in memory or in a spill file
 *   a copy that was given up    likewise, while somebody holds the partition
 *   the holder  the very process that the record names, if it holds the partition whole under the record's term
 * A message that nobody holds in this sense is excused from G2. A partition that nobody holds at all has had a DISASTER:
 * changes that were acknowledged may be undone, so deliveries before it may be repeated (G4). So may they be after an
 * operator gave copies up. A change of the record that arrives after its sender died may leave out the last copy that
 * lives: while it is under way the members of both records are needed.
 */
import type { GatewayCore } from '../../src/gateway/daemon/core.js';
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import type { MirroredPartition } from '../../src/kvs/core/mirrored-partition.js';
import type { Store } from '../../src/kvs/core/store.js';
import type { PartitionRecord } from '../../src/protocol/partition-record.js';
import { isSameHolder, isSameTerm } from '../../src/protocol/partition-record.js';
import { HolderState } from '../../src/recovery/ownership/holder.js';
import { GuaranteeBroken } from './broken.js';
import type { Ledger } from './ledger.js';

export interface CustodyNodes {
  readonly gateways: readonly { readonly core: GatewayCore | undefined }[];
  readonly stores: readonly { readonly id: string; readonly store: Store | undefined; readonly filed: FiledStore | undefined }[];
  /** By partition, as the register has them now. */
  records(): ReadonlyMap<string, PartitionRecord>;
}

/** What a store that is down holds in its file. */
export interface FiledStore {
  readonly bootId: string;
  readonly ids: ReadonlyMap<string, readonly number[]>;
}

export function filedOf(store: Store): FiledStore {
  const ids = new Map<string, readonly number[]>();
  for (const copy of store.partitions.copies()) if (copy.isComplete) ids.set(copy.partition, idsInOrder(store, copy));
  return { bootId: store.bootId, ids };
}

/** Ids of the messages of a copy, which must stand by ascending position (G3). */
export function idsInOrder(store: Store, copy: MirroredPartition): number[] {
  const ids: number[] = [];
  let before = 0;
  for (let row = copy.first; row !== 0; row = store.entries.nextOf(row)) {
    if (store.entries.positionOf(row) <= before) throw new GuaranteeBroken(`G3: ${store.storeId} has entries of ${copy.partition} in another order than their positions`);
    before = store.entries.positionOf(row);
    ids.push(store.entries.idOf(row));
  }
  return ids;
}

type Holdings = ReadonlyMap<string, ReadonlySet<number>>;

export class Custody {
  /** Times at which nobody held the partition any more. */
  readonly disasters = new Map<string, number>();
  excused = 0;
  /** Who carried a person's order out, by partition. */
  private readonly beganAnew = new Map<string, GatewayCore>();
  /** What was held right before the loss that is looked at. */
  private before: Holdings = new Map();
  private readonly nodes: CustodyNodes;
  private readonly ledger: Ledger;

  constructor(nodes: CustodyNodes, ledger: Ledger) {
    this.nodes = nodes;
    this.ledger = ledger;
  }

  disastersOf(partition: string): number {
    return this.disasters.get(partition) ?? 0;
  }

  get disasterCount(): number {
    let count = 0;
    for (const one of this.disasters.values()) count += one;
    return count;
  }

  noteDisaster(partition: string): void {
    this.disasters.set(partition, this.disastersOf(partition) + 1);
  }

  /**
   * What this process delivers may come again from a copy that was given up and has it: one that did not begin the
   * partition anew does not know what of it was delivered before.
   */
  mayComeBack({ name, holder }: Partition, core: GatewayCore | undefined, messageId: number): boolean {
    if (this.beganAnew.get(name) === core) return false;
    const gaveUp = holder.record?.gaveUp ?? [];
    return gaveUp.some(({ storeId, bootId }) => this.idsAt(storeId, bootId, name)?.includes(messageId) === true);
  }

  /** By a person's order. What is held by these copies is still to be delivered, when one of them is back. */
  noteGivenUp(partition: string, by: GatewayCore): void {
    this.noteDisaster(partition);
    this.beganAnew.set(partition, by);
    for (const { copies } of this.ledger.letters.values()) {
      for (const copy of copies) if (copy.queueKey === partition && !copy.isOver) copy.hasNoPlace = true;
    }
  }

  /** Before a memory is lost: who has what. */
  beforeLoss(): void {
    this.before = this.holdings();
  }

  /** After a memory was lost: what somebody had and nobody has any more is excused. */
  onLoss(): void {
    const holdings = this.holdings();
    this.excuse(holdings);
    for (const partition of this.before.keys()) if (!holdings.has(partition)) this.noteDisaster(partition);
    // Who takes it over does not know which block of a copy that was given up was taken in last.
    for (const [partition, { gaveUp }] of this.nodes.records()) {
      if (gaveUp.some(({ storeId, bootId }) => this.idsAt(storeId, bootId, partition) !== undefined)) this.noteDisaster(partition);
    }
  }

  /** Copies that nobody has any more, nor a report of theirs. */
  private excuse(holdings: Holdings): void {
    const had = everythingIn(this.before);
    const everything = everythingIn(holdings);
    for (const letter of this.ledger.letters.values()) {
      if (!letter.isAccepted) continue;
      for (const copy of letter.copies) {
        const isReported = copy.failed.size > 0;
        if (copy.isExcused || copy.isOver || holdings.get(copy.queueKey)?.has(letter.id) === true) continue;
        // Of who was not tried no report will tell.
        if (isReported && copy.isTried && letter.reportIds.some((id) => everything.has(id))) continue;
        // Lost before, by no fault: that is to be told.
        if (this.before.get(copy.queueKey)?.has(letter.id) !== true && !(isReported && letter.reportIds.some((id) => had.has(id)))) continue;
        copy.isExcused = true;
        this.excused += 1;
      }
    }
  }

  /** What is held of each partition; none where nobody holds it. */
  private holdings(): Holdings {
    const holdings = new Map<string, Set<number>>();
    const add = (partition: string, ids: Iterable<number>): void => {
      const known = holdings.get(partition) ?? new Set<number>();
      holdings.set(partition, known);
      for (const id of ids) known.add(id);
    };
    for (const [partition, record] of this.nodes.records()) {
      for (const { storeId, bootId } of record.members) {
        const ids = this.idsAt(storeId, bootId, partition);
        if (ids !== undefined) add(partition, ids);
      }
      for (const { core } of this.nodes.gateways) {
        const held = core === undefined ? undefined : heldBy(core, partition, record);
        if (core !== undefined && held !== undefined) add(partition, idsIn(core, held));
      }
      // What was given up and comes back is taken in by who holds the partition.
      if (holdings.has(partition)) for (const { storeId, bootId } of record.gaveUp) {
        add(partition, this.idsAt(storeId, bootId, partition) ?? []);
      }
    }
    return holdings;
  }

  private idsAt(storeId: string, bootId: string, partition: string): readonly number[] | undefined {
    const node = this.nodes.stores.find(({ id }) => id === storeId);
    if (node === undefined) return undefined;
    const { store, filed } = node;
    if (store === undefined) return filed?.bootId === bootId ? filed.ids.get(partition) : undefined;
    const copy = store.bootId === bootId ? store.partitions.find(partition) : undefined;
    return copy?.isComplete === true ? idsInOrder(store, copy) : undefined;
  }
}

/** The partition in the memory of the process that holds it by this record, whole. */
function heldBy(core: GatewayCore, name: string, record: PartitionRecord): Partition | undefined {
  const partition = core.registry.partitions.find((one) => one.name === name);
  if (partition === undefined || !isSameHolder(core.self, record.holder)) return undefined;
  const { state, term } = partition.holder;
  const isHeld = state === HolderState.HOLDER || state === HolderState.HANDING_BACK;
  return isHeld && !partition.isPartial && isSameTerm(term, record.term) ? partition : undefined;
}

function* idsIn(core: GatewayCore, { order }: Partition): Generator<number> {
  for (let row = order.first; row !== 0; row = order.following(row)) yield core.entries.table.messageId(row);
}

function everythingIn(holdings: Holdings): Set<number> {
  const ids = new Set<number>();
  for (const holding of holdings.values()) for (const id of holding) ids.add(id);
  return ids;
}
