/**
 * Who holds what: from the memory of every process it is told whether an accepted message may be lost.
 *
 * G2 holds as long as one of {owner, in-sync mirrors} is alive. So whenever a memory is lost (a process ends) this
 * file looks who is left. A message counts as held by
 *   its gateway    if the process has it in a queue that no other process holds at every living member
 *   a store        if its copy calls itself a member's and is of the newest epoch that ever was
 *   spill files    if every member of that epoch has its copy in one, or has it back from one
 * A copy of a message that nobody holds in this sense is excused from G2. A queue that nobody holds at all has
 * had a DISASTER: changes that were acknowledged may be undone, so deliveries before it may be repeated (G4). So may they be
 * after an operator went on without a store. When that store lives and can't be reached, what only it has is excused at his
 * order, and its copy as it stood then speaks for nobody any more: nothing that is accepted later is excused by that.
 */
import type { GatewayCore } from '../../src/gateway/core.js';
import type { Partition } from '../../src/gateway/mirror/partition.js';
import type { MirroredQueue } from '../../src/kvs/core/mirrored-queue.js';
import type { Store } from '../../src/kvs/core/store.js';
import { ROLE_MEMBER, ROLE_SPILLED } from '../../src/protocol/reasons.js';
import { queuesOf } from '../scenario/inspect.js';
import { GuaranteeBroken } from './broken.js';
import type { Ledger } from './ledger.js';

export interface CustodyNodes {
  readonly gateways: readonly { readonly gatewayId: string; readonly core: GatewayCore | undefined }[];
  readonly stores: readonly { readonly id: string; readonly store: Store | undefined; readonly filed: readonly FiledQueue[] }[];
}

/** A copy in a spill file, or one that came back from it. */
export interface FiledQueue {
  readonly key: string;
  readonly epoch: number;
  readonly members: readonly string[];
  readonly ids: readonly number[];
}

export function filedQueuesOf(store: Store): FiledQueue[] {
  return queuesOf(store).filter((queue) => queue.role === ROLE_MEMBER || queue.role === ROLE_SPILLED).map((queue) => ({ key: keyOfStored(queue), epoch: queue.epoch, members: queue.members, ids: idsInOrder(store, queue) }));
}

/** Key of a queue for ever: whose it is, born by which process, as which of its queues. */
export function keyOfStored(queue: MirroredQueue): string {
  const { ownerId, birth, serial } = queue.attributes;
  return `${ownerId}/${String(birth)}/${String(serial)}`;
}

export function keyOfMirror(mirror: Partition): string {
  const { ownerId, birth, serial } = mirror.identity;
  return `${ownerId}/${String(birth)}/${String(serial)}`;
}

/** Ids of the messages of a copy, which must stand by ascending position (G3). */
export function idsInOrder(store: Store, queue: MirroredQueue): number[] {
  const ids: number[] = [];
  let before = 0;
  for (let row = queue.first; row !== 0; row = store.entries.nextOf(row)) {
    if (store.entries.positionOf(row) <= before) throw new GuaranteeBroken(`G3: ${store.storeId} has entries of ${queue.attributes.name} (${keyOfStored(queue)}) in another order than their positions`);
    before = store.entries.positionOf(row);
    ids.push(store.entries.idOf(row));
  }
  return ids;
}

interface Holding {
  readonly ids: Set<number>;
  /** Holders of the claim at the living members of the newest epoch. */
  readonly claimants: Set<string>;
}

export class Custody {
  /** Times at which nobody held the queue any more, by queue. */
  readonly disasters = new Map<string, number>();
  /** Newest epoch that a member ever showed. */
  readonly newest = new Map<string, number>();
  excused = 0;
  /** What was held right before the loss that is looked at. */
  private before: ReadonlyMap<string, Holding> = new Map();
  /** Epochs of the copies that were given up, by queue and store. */
  private readonly given = new Map<string, Map<string, number>>();
  private readonly nodes: CustodyNodes;
  private readonly ledger: Ledger;

  constructor(nodes: CustodyNodes, ledger: Ledger) {
    this.nodes = nodes;
    this.ledger = ledger;
  }

  /** What an operator forces may repeat what was delivered; and lose what only the store has that he names, if that still lives. */
  onForced(key: string, missing: string, core: GatewayCore | undefined): void {
    this.disasters.set(key, this.disastersOf(key) + 1);
    this.beforeLoss();
    const node = this.nodes.stores.find(({ id }) => id === missing);
    const copies = node?.store === undefined ? node?.filed : filedQueuesOf(node.store);
    const copy = copies?.find((one) => one.key === key && this.isRightful(missing, one.key, one.epoch));
    if (copy === undefined) return;
    this.given.set(key, (this.given.get(key) ?? new Map<string, number>()).set(missing, copy.epoch));
    this.newest.set(key, 0);
    this.observe();
    this.excuse(this.holdings(), key, core);
  }

  disastersOf(key: string): number {
    return this.disasters.get(key) ?? 0;
  }

  get disasterCount(): number {
    let count = 0;
    for (const one of this.disasters.values()) count += one;
    return count;
  }

  /** Before a memory is lost: which epochs there are, and who has what. */
  beforeLoss(): void {
    this.observe();
    this.before = this.holdings();
  }

  /** Which epochs there are. */
  observe(): void {
    for (const { store } of this.nodes.stores) {
      if (store === undefined) continue;
      for (const queue of queuesOf(store)) {
        if (queue.role !== ROLE_MEMBER) continue;
        const key = keyOfStored(queue);
        if (queue.epoch > (this.newest.get(key) ?? 0) && this.isRightful(store.storeId, key, queue.epoch)) this.newest.set(key, queue.epoch);
      }
    }
  }

  /** After a memory was lost: what somebody had and nobody has any more is excused. */
  onLoss(): void {
    const holdings = this.holdings();
    this.excuse(holdings);
    for (const key of this.newest.keys()) if (!holdings.has(key)) this.disasters.set(key, this.disastersOf(key) + 1);
  }

  /** Copies that nobody has any more, nor a report of theirs; of one queue only, if one is named, and what `server`, which is to go on with it, has in memory stands. */
  private excuse(holdings: ReadonlyMap<string, Holding>, of?: string, server?: GatewayCore): void {
    const had = everythingIn(this.before);
    const everything = everythingIn(holdings);
    const memory = new Set<number>();
    for (const mirror of server?.registry.partitions ?? []) if (server !== undefined && keyOfMirror(mirror) === of) addIds(memory, server, mirror);
    for (const letter of this.ledger.letters.values()) {
      if (!letter.isAccepted) continue;
      for (const copy of letter.copies) {
        const isReported = copy.failed.size > 0;
        if ((of !== undefined && copy.queueKey !== of && !isReported) || copy.isExcused || copy.isOver || memory.has(letter.id) || holdings.get(copy.queueKey)?.ids.has(letter.id) === true) continue;
        // Of who was not tried no report will tell.
        if (isReported && copy.isTried && letter.reportIds.some((id) => everything.has(id) || memory.has(id))) continue;
        // Lost before, by no fault: that is to be told.
        if (this.before.get(copy.queueKey)?.ids.has(letter.id) !== true && !(isReported && letter.reportIds.some((id) => had.has(id)))) continue;
        copy.isExcused = true;
        this.excused += 1;
      }
    }
  }

  /** No copy that was given up, as it stood then. */
  private isRightful(storeId: string, key: string, epoch: number): boolean {
    return epoch > (this.given.get(key)?.get(storeId) ?? 0);
  }

  /** What is held of each queue, by rightful holders only. */
  private holdings(): Map<string, Holding> {
    const holdings = new Map<string, Holding>();
    const of = (key: string): Holding => {
      const known = holdings.get(key) ?? { ids: new Set<number>(), claimants: new Set<string>() };
      holdings.set(key, known);
      return known;
    };
    for (const { store } of this.nodes.stores) {
      if (store === undefined) continue;
      for (const queue of queuesOf(store)) {
        const key = keyOfStored(queue);
        if (queue.role !== ROLE_MEMBER || queue.epoch !== this.newest.get(key) || !this.isRightful(store.storeId, key, queue.epoch)) continue;
        const holding = of(key);
        holding.claimants.add(queue.holder);
        for (const id of idsInOrder(store, queue)) holding.ids.add(id);
      }
    }
    this.addFiled(holdings, of);
    for (const { gatewayId: id, core } of this.nodes.gateways) {
      for (const mirror of core?.registry.partitions ?? []) {
        const key = keyOfMirror(mirror);
        const claimants = holdings.get(key)?.claimants;
        if (core === undefined || (claimants !== undefined && claimants.size > 0 && !claimants.has(id))) continue;
        if (mirror.isRecovering && !holdings.has(key) && mirror.length === 0) continue;
        addIds(of(key).ids, core, mirror);
      }
    }
    return holdings;
  }
  private addFiled(holdings: ReadonlyMap<string, Holding>, of: (key: string) => Holding): void {
    const copies = new Map<string, Map<string, FiledQueue>>();
    for (const { id, store, filed } of this.nodes.stores) {
      for (const copy of store === undefined ? filed : filedQueuesOf(store)) {
        if (copy.epoch !== this.newest.get(copy.key) || !this.isRightful(id, copy.key, copy.epoch)) continue;
        const known = copies.get(copy.key) ?? new Map<string, FiledQueue>();
        copies.set(copy.key, known.set(id, copy));
      }
    }
    for (const [key, byStore] of copies) {
      const [first] = byStore.values();
      if (holdings.has(key) || first?.members.every((member) => byStore.has(member)) !== true) continue;
      for (const { ids } of byStore.values()) for (const id of ids) of(key).ids.add(id);
    }
  }
}

function everythingIn(holdings: ReadonlyMap<string, Holding>): Set<number> {
  const ids = new Set<number>();
  for (const holding of holdings.values()) for (const id of holding.ids) ids.add(id);
  return ids;
}

function addIds(ids: Set<number>, core: GatewayCore, { order }: Partition): void {
  for (let row = order.first; row !== 0; row = order.following(row)) ids.add(core.entries.table.messageId(row));
}
