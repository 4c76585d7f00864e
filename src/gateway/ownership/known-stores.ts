/**
 * Which stores this gateway has a link to: those of its configuration, and those that the register names
 * (stores/ID). A store that starts is linked without a restart of the gateway; one that comes back elsewhere
 * is followed.
 *
 *   configured ──────────────────────────────────────────► linked from the start, at the configured addresses
 *   the register's list is told, empty or not ───────────► nobody takes those linked for all there are before
 *   a key is told, of a store not known ── may be linked ─► LINKED / link
 *                                       └─ may not ───────► NAMED, with the reason, for status
 *   LINKED ── other addresses are told / move
 *   LINKED ── the key is gone ──► stays: its link keeps trying (rule 15 of docs/model: a missing key is no
 *                                 verdict about anything)
 *   NAMED ── the key is gone ──► forgotten
 *
 * A store on the gateway's own host is linked too: a copy of another gateway's partition may lie there, which
 * this one takes over. Placement (mirror/set/placement.ts) puts none of its own there.
 *
 * Pure. What is not here: links (mirror/link), who counts as a copy (recovery/ownership).
 */
import type { Clock, EventLog } from '../../platform/ports.js';
import { BrokenRule } from '../../base/json-shape.js';
import { STORES, parseKey } from '../../register/keys.js';
import type { Entry, Register } from '../../register/port.js';
import { decodeStore } from '../../register/records.js';
import type { StoreRecord } from '../../register/records.js';
import type { PathAddress } from '../mirror/link/link-options.js';

/** As many as a configuration may name: each has two connections, and an outbox. */
const LINKED_MAX = 64;
/** A link that has just begun, or changes its path, is no news. */
const UNREACHED_AFTER_MS = 5_000;
const SAY_AGAIN_MS = 30_000;

export interface KnownStore {
  readonly id: string;
  readonly host: string;
  readonly pathA: PathAddress;
  readonly pathB: PathAddress | undefined;
  /** Its part of the copies, against that of the others. */
  readonly weight: number;
  /** host:port of its admin HTTP, for those who look at the whole group. */
  readonly admin: string | undefined;
}

/** A store that the register names and this gateway does not reach. */
export interface UnreachedStore {
  readonly id: string;
  readonly host: string;
  readonly why: string;
  /** On the monotonic clock. */
  readonly sinceMs: number;
}

export interface KnownStoresOptions {
  readonly configured: readonly KnownStore[];
  /** Those that may be learned; undefined: any. */
  readonly learnable: readonly string[] | undefined;
}

export interface KnownStoresPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  /** Why no link may lead to this host; '' when one may. */
  barred(host: string): string;
  link(store: KnownStore): void;
  move(store: KnownStore): void;
}

interface Linked {
  store: KnownStore;
  /** The register has its key, as far as was told. */
  isNamed: boolean;
  /** Undefined while its link is up. */
  downSinceMs: number | undefined;
}

export class KnownStores {
  readonly #options: KnownStoresOptions;
  readonly #ports: KnownStoresPorts;
  readonly #linked = new Map<string, Linked>();
  readonly #named = new Map<string, UnreachedStore>();
  readonly #broken = new Map<string, number>();
  #watch: { close(): void } | undefined;
  #isListRead = false;
  #sayMs = 0;

  constructor(options: KnownStoresOptions, ports: KnownStoresPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  /** Links what is configured; with a register, what that names follows as it is told. */
  start(register: Register | undefined): void {
    for (const store of this.#options.configured) this.#add(store, false);
    this.#sayMs = this.#ports.clock.nowMs() + UNREACHED_AFTER_MS;
    this.#isListRead = register === undefined;
    this.#watch = register?.watch([STORES], {
      onSnapshot: (entries, deleted) => {
        for (const key of deleted) this.#onDeleted(key);
        for (const entry of entries) this.#onEntry(entry);
        this.#isListRead = true;
      },
      onChange: (entry) => { this.#onEntry(entry); },
      onDeleted: (key) => { this.#onDeleted(key); },
      // What was told stays the best that is known.
      onAway: () => undefined,
    });
  }

  close(): void {
    this.#watch?.close();
  }

  /** What all() says is all that there are, as far as the register knew. */
  get isListRead(): boolean {
    return this.#isListRead;
  }

  *all(): IterableIterator<KnownStore> {
    for (const { store } of this.#linked.values()) yield store;
  }

  find(id: string): KnownStore | undefined {
    return this.#linked.get(id)?.store;
  }

  get count(): number {
    return this.#linked.size;
  }

  onUp(id: string): void {
    const linked = this.#linked.get(id);
    if (linked !== undefined) linked.downSinceMs = undefined;
  }

  onDown(id: string): void {
    const linked = this.#linked.get(id);
    if (linked !== undefined) linked.downSinceMs ??= this.#ports.clock.nowMs();
  }

  /** Every gateway should reach every store: those that live, by the register, and are not reached. */
  unreached(): readonly UnreachedStore[] {
    const nowMs = this.#ports.clock.nowMs();
    const silent: UnreachedStore[] = [];
    for (const { store: { id, host }, isNamed, downSinceMs: sinceMs } of this.#linked.values()) {
      if (!isNamed || sinceMs === undefined || nowMs - sinceMs < UNREACHED_AFTER_MS) continue;
      silent.push({ id, host, sinceMs, why: 'no path to it stands' });
    }
    return [...silent, ...this.#named.values()];
  }

  /** With no store at all the port stays closed: who reads the log is told why, now and then. */
  tick(nowMs: number): void {
    if (this.#watch === undefined || this.#linked.size > 0 || nowMs < this.#sayMs) return;
    this.#sayMs = nowMs + SAY_AGAIN_MS;
    const text =
      'no store is known: the register names none that this gateway may use. Its port stays closed';
    this.#ports.log.warn('start', text, { named: [...this.#named.keys()] });
  }

  #onEntry(entry: Entry): void {
    const meaning = parseKey(entry.key);
    if (meaning?.kind !== 'store') return;
    const record = decodeStore(entry.value);
    if (record instanceof BrokenRule) return this.#sayBroken(entry, record);
    const { id } = meaning;
    const linked = this.#linked.get(id);
    if (this.#options.configured.some((store) => store.id === id)) {
      if (linked !== undefined) linked.isNamed = true;
      return;
    }
    const store = storeOf(id, record);
    const why = this.#whyNot(store);
    if (linked !== undefined) this.#follow(linked, store, why);
    else if (why === '') this.#learn(store);
    else this.#name(store, why);
  }

  #onDeleted(key: string): void {
    const meaning = parseKey(key);
    if (meaning?.kind !== 'store') return;
    this.#named.delete(meaning.id);
    const linked = this.#linked.get(meaning.id);
    if (linked !== undefined) linked.isNamed = false;
  }

  #learn(store: KnownStore): void {
    this.#named.delete(store.id);
    const { id, host } = store;
    const at = placesOf(store);
    this.#ports.log.info('link', 'the register names a store: it is linked', { store: id, host, at });
    this.#add(store, true);
  }

  /** What is told of it holds from here on, but for addresses to which no link may lead. */
  #follow(linked: Linked, store: KnownStore, why: string): void {
    linked.isNamed = true;
    const before = linked.store;
    if (why !== '') return;
    linked.store = store;
    if (placesOf(before) === placesOf(store)) return;
    const at = placesOf(store);
    this.#ports.log.info('link', 'a store has other addresses: its link follows', { store: store.id, at });
    this.#ports.move(store);
  }

  #name(store: KnownStore, why: string): void {
    const { id, host } = store;
    const sinceMs = this.#named.get(id)?.sinceMs ?? this.#ports.clock.nowMs();
    if (!this.#named.has(id)) {
      const text = 'the register names a store that this gateway does not use';
      this.#ports.log.warn('link', text, { store: id, why });
    }
    this.#named.set(id, { id, host, why, sinceMs });
  }

  #add(store: KnownStore, isNamed: boolean): void {
    this.#linked.set(store.id, { store, isNamed, downSinceMs: this.#ports.clock.nowMs() });
    this.#ports.link(store);
  }

  #whyNot({ id, pathA, pathB }: KnownStore): string {
    const { learnable } = this.#options;
    if (learnable !== undefined && !learnable.includes(id)) return 'gateway.stores does not name it';
    const barred = pathsOf({ pathA, pathB }).map(({ host }) => this.#ports.barred(host));
    const why = barred.find((text) => text !== '');
    if (why !== undefined) return why;
    const isRoom = this.#linked.has(id) || this.#linked.size < LINKED_MAX;
    return isRoom ? '' : `a gateway has links to ${String(LINKED_MAX)} stores at most`;
  }

  #sayBroken({ key, revision }: Entry, { rule }: BrokenRule): void {
    if (this.#broken.get(key) === revision) return;
    this.#broken.set(key, revision);
    const text = 'what stands under a key is not ours: it is passed over';
    this.#ports.log.error('register', text, { key, rule });
  }
}

function storeOf(id: string, { addresses, host, weight, admin }: StoreRecord): KnownStore {
  const [a = '', b] = addresses;
  const pathB = b === undefined ? undefined : addressOf(b);
  return { id, host, weight, pathA: addressOf(a), pathB, admin: admin === '' ? undefined : admin };
}

/** host:port, with brackets about an IPv6 address, as the record was found to have it. */
function addressOf(text: string): PathAddress {
  const colon = text.lastIndexOf(':');
  const host = text.slice(0, colon).replace(/^\[(.*)\]$/, '$1');
  return { host, port: Number(text.slice(colon + 1)) };
}

function pathsOf({ pathA, pathB }: Pick<KnownStore, 'pathA' | 'pathB'>): readonly PathAddress[] {
  return pathB === undefined ? [pathA] : [pathA, pathB];
}

function placesOf(store: KnownStore): string {
  return pathsOf(store).map(({ host, port }) => `${host} ${String(port)}`).join(', ');
}
