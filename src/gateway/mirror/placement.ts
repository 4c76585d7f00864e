/**
 * Which stores a queue's mirrors go to: reachable, with room, on hosts of their own, by configured weight and else
 * the least used. One rule for new queues, for replacements and for queues that move away from a drained store.
 *
 *   not: the gateway's own host, the host of a mirror that stays, a store that is drained or about to stop, a full one
 *   then: fewest mirrors for its weight
 */
import type { QueueMirror } from './queue-mirror.js';
import type { StorePort } from './store-port.js';

/** What the configuration says of a store. */
export interface StorePlace {
  readonly host: string;
  readonly weight: number;
}

export interface PlacementOptions {
  /** Labels are of no account when all processes share one host on purpose (`up`). */
  readonly gatewayHost: string | undefined;
  readonly places: ReadonlyMap<string, StorePlace>;
}

export interface PlacementPorts {
  stores(): readonly StorePort[];
  queues(): Iterable<QueueMirror>;
}

export class Placement {
  /** Stores that the operator drains; and those that have said that they stop. */
  readonly drained = new Set<string>();
  readonly stopping = new Set<string>();
  private readonly options: PlacementOptions;
  private readonly ports: PlacementPorts;

  constructor(options: PlacementOptions, ports: PlacementPorts) {
    this.options = options;
    this.ports = ports;
  }

  isAvoided(storeId: string): boolean {
    return this.drained.has(storeId) || this.stopping.has(storeId);
  }

  /** Up to `count` stores beside those `taken`, whose hosts are only kept clear of when they are in `staying`. */
  choose(count: number, taken: readonly StorePort[], staying: readonly StorePort[], evenFull = false): StorePort[] {
    const load = new Map<StorePort, number>();
    for (const store of this.ports.stores()) if (store.isUp && (evenFull || store.credit > 0) && !this.isAvoided(store.storeId) && !taken.includes(store)) load.set(store, 0);
    if (load.size === 0) return [];
    for (const mirror of this.ports.queues()) {
      for (const replica of mirror.replicas) {
        const known = load.get(replica.store);
        if (known !== undefined) load.set(replica.store, known + 1);
      }
    }
    const share = ([store, mirrors]: readonly [StorePort, number]): number => (mirrors + 1) / (this.options.places.get(store.storeId)?.weight ?? 1);
    const hosts = new Set(staying.map((store) => this.hostOf(store)));
    const chosen: StorePort[] = [];
    for (const [store] of [...load].sort((a, b) => share(a) - share(b))) {
      if (chosen.length === count) break;
      const host = this.hostOf(store);
      if (host !== undefined && (hosts.has(host) || host === this.options.gatewayHost)) continue;
      hosts.add(host);
      chosen.push(store);
    }
    return chosen;
  }

  private hostOf(store: StorePort): string | undefined {
    return this.options.gatewayHost === undefined ? undefined : this.options.places.get(store.storeId)?.host;
  }
}
