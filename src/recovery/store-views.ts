/**
 * The stores as recovery knows them: who answers, what each has listed, and which request each answer is to.
 *
 *   onUp ─► LIST page after page ─► onListed returns the whole list
 *
 * A store tells its queues once when it comes up under a new boot id, and again whenever it is asked to (the
 * queues of other gateways of the group, rescue-watch.ts). Replies carry the sequence number of their request:
 * by it CLAIMED of a probe, of a claim and of a confirmation are told apart.
 */
import type { Packer } from '../platform/ports.js';
import { LIST } from '../protocol/message-types.js';
import { encodeList } from '../protocol/messages/list.js';
import type { Listed } from '../protocol/messages/listed.js';
import type { CensusRow } from './census.js';
import type { QueueJob, RecoveryStore } from './queue-job.js';

/** What a CLAIMED answers. `attach`: our own claim again on a new connection. `holder`: is its holder silent? `owner`: is its owner back? */
export type AskKind = 'probe' | 'claim' | 'confirm' | 'attach' | 'holder' | 'owner';

export interface Ask {
  readonly kind: AskKind;
  readonly job: QueueJob;
}

/** One store's list of queues, as far as it has come. */
export interface KnownStore {
  readonly store: RecoveryStore;
  bootId: string;
  /** Has told of all our queues since it started. */
  listed: boolean;
  /** Rows of the list under way; undefined when none is. */
  listing: CensusRow[] | undefined;
  listingAll: boolean;
  /** When it is asked again for the queues of the whole group. */
  listAtMs: number;
  /** Before this an older process of this gateway may still hold a lease here. */
  claimFromMs: number;
  /** End of its first lease period, as told at the last handshake. */
  graceEndsMs: number;
  /** Requests about claims that are not answered, by sequence number. */
  readonly asks: Map<number, Ask>;
}

export interface StoreList {
  readonly view: KnownStore;
  /** The queues of all gateways, not only our own. */
  readonly all: boolean;
  readonly rows: readonly CensusRow[];
}

export class StoreViews {
  private readonly views = new Map<string, KnownStore>();
  private readonly gatewayId: string;
  private readonly packer: Packer;

  constructor(gatewayId: string, packer: Packer) {
    this.gatewayId = gatewayId;
    this.packer = packer;
  }

  add(store: RecoveryStore): void {
    this.views.set(store.storeId, { store, bootId: '', listed: false, listing: undefined, listingAll: false, listAtMs: 0, claimFromMs: -1, graceEndsMs: 0, asks: new Map() });
  }

  get(storeId: string): KnownStore | undefined {
    return this.views.get(storeId);
  }

  all(): IterableIterator<KnownStore> {
    return this.views.values();
  }

  /** Every store has told of our queues since it started. */
  get allListed(): boolean {
    for (const view of this.views.values()) if (!view.listed) return false;
    return true;
  }

  /** Stores that can be asked and whose list is known. */
  answering(): Set<string> {
    const ids = new Set<string>();
    for (const view of this.views.values()) if (view.listed && view.store.isUp) ids.add(view.store.storeId);
    return ids;
  }

  /** Stores that have not told of our queues, or can't be asked. */
  silent(): string[] {
    const ids: string[] = [];
    for (const view of this.views.values()) if (!view.listed || !view.store.isUp) ids.push(view.store.storeId);
    return ids;
  }

  /** Asks for the list from its beginning: ours only, or that of all queues we may claim. */
  list(view: KnownStore, all: boolean): void {
    view.listing = [];
    view.listingAll = all;
    this.page(view, 0);
  }

  /** The whole list when its last page has come. */
  onListed(store: { readonly storeId: string }, listed: Listed): StoreList | undefined {
    const view = this.views.get(store.storeId);
    const rows = view?.listing;
    if (view === undefined || rows === undefined) return undefined;
    for (const { gatewayId, birth, serial, name, queueClass, role, epoch, members, number, digestA, digestB, count, bytes, holder, holderToken } of listed.rows) {
      rows.push({ storeId: store.storeId, ownerId: gatewayId, birth, serial, name, queueClass, role, epoch, members, number, digestA, digestB, count, bytes, holder, holderToken });
    }
    if (!listed.complete) {
      this.page(view, listed.next);
      return undefined;
    }
    view.listing = undefined;
    view.listed = true;
    return { view, all: view.listingAll, rows };
  }

  /** The question that this reply answers; each is answered once. */
  takeAsk(store: { readonly storeId: string }, sequence: number): Ask | undefined {
    const view = this.views.get(store.storeId);
    const ask = view?.asks.get(sequence);
    view?.asks.delete(sequence);
    return ask;
  }

  onDown(store: { readonly storeId: string }): void {
    const view = this.views.get(store.storeId);
    if (view === undefined) return;
    view.asks.clear();
    view.listing = undefined;
  }

  private page(view: KnownStore, cursor: number): void {
    const gatewayId = view.listingAll ? '' : this.gatewayId;
    view.store.request(LIST, encodeList(this.packer, { gatewayId, cursor }), [], 0);
    view.store.flush();
  }
}
