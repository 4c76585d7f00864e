/**
 * Partitions that stores have, and the register does not name: it was lost, or put back to an older state,
 * and whoever would have written their records again is dead. Of those that a process has met before it knows
 * itself (rule 15 of docs/model); one that starts later knows none, and mail of a gateway that stays dead
 * would lie there unseen. So each store is asked now and then for which partitions its copy counts, or is
 * served by nobody, and those without a record are met like any others (holdings.ts): who may take them, and
 * when, is decided by what all stores were told. So are those of a record that names no store which is known
 * here: the register was put back to before their copies moved, and those stores may have been taken out
 * since.
 *
 *   a store is up ─ soon, then again and again / LIST ─► LISTED, page by page ─ the last ─► what has none
 */
import type { Packer } from '../../platform/ports.js';
import { LIST } from '../../protocol/message-types.js';
import { encodeList } from '../../protocol/messages/list.js';
import type { Listed } from '../../protocol/messages/listed.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { StorePort } from '../mirror/link/store-port.js';
import type { MetPartition, OwnershipRegister } from './ownership-register.js';

export interface UnrecordedPorts {
  readonly packer: Packer;
  readonly mirrors: Pick<Mirrors, 'stores' | 'storeOf' | 'askFlush'>;
  readonly register: Pick<OwnershipRegister, 'partition' | 'givenUp'>;
}

interface AskedStore {
  readonly bootId: string;
  nextMs: number;
  /** Of the pages so far. */
  pages: string[];
  /** Unrecorded when all pages were there. */
  names: readonly string[];
}

/** By then a start, or a register that comes back, has written its records. */
const FIRST_MS = 5_000;
const AGAIN_MS = 30_000;

export class UnrecordedPartitions {
  readonly #ports: UnrecordedPorts;
  readonly #stores = new Map<string, AskedStore>();

  constructor(ports: UnrecordedPorts) {
    this.#ports = ports;
  }

  tick(nowMs: number): void {
    for (const store of this.#ports.mirrors.stores) {
      if (!store.isUp) {
        this.#stores.delete(store.storeId);
        continue;
      }
      const known = this.#stores.get(store.storeId);
      if (known?.bootId !== store.bootId) {
        this.#stores.set(
          store.storeId, { bootId: store.bootId, nextMs: nowMs + FIRST_MS, pages: [], names: [] },
        );
      } else if (nowMs >= known.nextMs) {
        known.nextMs = nowMs + AGAIN_MS;
        known.pages = [];
        this.#ask(store, '');
      }
    }
  }

  onListed(store: StorePort, { after, partitions, isLast }: Listed): void {
    const asked = this.#stores.get(store.storeId);
    // An answer of before the path changed.
    if (asked?.bootId !== store.bootId || after !== (asked.pages.at(-1) ?? '')) return;
    asked.pages.push(...partitions);
    if (!isLast) return this.#ask(store, asked.pages.at(-1) ?? '');
    // The end is told there first (ended-partitions.ts).
    const given = new Set(
      (this.#ports.register.givenUp().get(store.storeId) ?? []).map(({ partition }) => partition),
    );
    asked.names = asked.pages.filter(
      (name) => this.#isUnrecorded(name) && !given.has(name),
    );
    asked.pages = [];
  }

  /** Those that are unrecorded to this moment, with the stores that have them. */
  *met(): IterableIterator<MetPartition> {
    const stores = new Map<string, string[]>();
    for (const [storeId, { names }] of this.#stores) {
      for (const name of names) {
        if (!this.#isUnrecorded(name)) continue;
        stores.set(name, [...stores.get(name) ?? [], storeId]);
      }
    }
    for (const [partition, storeIds] of stores) yield { partition, stores: storeIds, isEnded: false };
  }

  /** Where a copy of it counts, as stores that are up have said. */
  storesWith(partition: string): readonly string[] {
    return [...this.#stores].flatMap(([storeId, { names }]) => (names.includes(partition) ? [storeId] : []));
  }

  /** It has ended. */
  forget(partition: string): void {
    for (const asked of this.#stores.values()) asked.names = asked.names.filter((name) => name !== partition);
  }

  #isUnrecorded(partition: string): boolean {
    const { register, mirrors } = this.#ports;
    const met = register.partition(partition);
    if (met === undefined) return true;
    return !met.isEnded && met.stores.length > 0
      && met.stores.every((storeId) => mirrors.storeOf(storeId) === undefined);
  }

  #ask(store: StorePort, after: string): void {
    store.request(LIST, encodeList(this.#ports.packer, { after }), [], 0);
    this.#ports.mirrors.askFlush();
  }
}
