/**
 * Which stores a partition's copies go to: reachable, with free memory, on hosts of their own, by configured
 * weight and else the least used. One rule for founding, for replacements and for moving away from a drained
 * store.
 *
 *   not: the gateway's own host, the host of a mirror that stays, a store that is drained, stopping or full
 *   last: the host of the gateway whose partition it is, when this one rescues: it will have it back
 *   then: most free memory, in steps of a half: what it grants us, against the store that grants the most
 *   then: fewest mirrors for its weight
 *
 * A store grants a part of what it has free, up to a bound (docs/PROTOCOL.md "Acknowledgement and credit"):
 * stores with plenty are equals, whatever is on its way to them; one that fills up comes behind them well
 * before it is full.
 */
import type { StorePort } from '../link/store-port.js';

/** What the configuration, or the register, says of a store. */
export interface StorePlace {
  readonly host: string;
  readonly weight: number;
}

export interface PlacementOptions {
  /** Labels are of no account when all processes share one host on purpose (`up`). */
  readonly gatewayHost: string | undefined;
  readonly places: { get(storeId: string): StorePlace | undefined };
}

export interface PlacementPorts {
  stores(): readonly StorePort[];
  /** Copies of our partitions there. */
  copiesAt(store: StorePort): number;
  /** As its key in the register said last; undefined when that was never told. */
  hostOfGateway(gatewayId: string): string | undefined;
}

/** A store and the copies there. */
type Load = readonly [StorePort, number];

export class Placement {
  /** Stores that the operator drains; and those that have said that they stop. */
  readonly drained = new Set<string>();
  readonly stopping = new Set<string>();
  readonly #options: PlacementOptions;
  readonly #ports: PlacementPorts;

  constructor(options: PlacementOptions, ports: PlacementPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  isAvoided(storeId: string): boolean {
    return this.drained.has(storeId) || this.stopping.has(storeId);
  }

  /** A copy may go there now. */
  mayTake(store: StorePort): boolean {
    return store.isUp && store.credit > 0 && !this.isAvoided(store.storeId);
  }

  weightOf({ storeId }: StorePort): number {
    return this.#options.places.get(storeId)?.weight ?? 1;
  }

  /** A copy there dies with this machine: its mail is on fewer machines than it has copies. */
  isOnOwnHost(storeId: string): boolean {
    const { gatewayHost, places } = this.#options;
    return gatewayHost !== undefined && places.get(storeId)?.host === gatewayHost;
  }

  /** Its host is neither that of one of these, nor the gateway's own, nor that of the partition's owner. */
  mayStandBeside(store: StorePort, staying: readonly StorePort[], owner: string): boolean {
    const host = this.#hostOf(store);
    if (host === undefined) return true;
    return !this.isOnOwnHost(store.storeId) && host !== this.#ports.hostOfGateway(owner)
      && staying.every((one) => this.#hostOf(one) !== host);
  }

  /**
   * Up to `count` stores for a partition of `owner`, beside those `taken`, whose hosts are kept clear of only
   * if they are `staying`.
   */
  choose(
    count: number, taken: readonly StorePort[], staying: readonly StorePort[], owner: string,
  ): StorePort[] {
    const load = new Map<StorePort, number>();
    for (const store of this.#ports.stores()) {
      if (!this.mayTake(store) || taken.includes(store) || this.isOnOwnHost(store.storeId)) continue;
      load.set(store, this.#ports.copiesAt(store));
    }
    if (load.size === 0) return [];
    let most = 0;
    for (const store of load.keys()) most = Math.max(most, store.credit);
    const share = ([store, copies]: Load): number => (copies + 1) / this.weightOf(store);
    const fullness = ([store]: Load): number => halvings(most, store.credit);
    const ownerHost = this.#ports.hostOfGateway(owner);
    const besideOwner = ([store]: Load): number =>
      Number(ownerHost !== undefined && this.#hostOf(store) === ownerHost);
    const hosts = new Set(staying.map((store) => this.#hostOf(store)));
    const chosen: StorePort[] = [];
    for (const [store] of [...load].sort((a, b) =>
      besideOwner(a) - besideOwner(b) || fullness(a) - fullness(b) || share(a) - share(b))) {
      if (chosen.length === count) break;
      const host = this.#hostOf(store);
      if (host !== undefined && hosts.has(host)) continue;
      hosts.add(host);
      chosen.push(store);
    }
    return chosen;
  }

  #hostOf(store: StorePort): string | undefined {
    const { gatewayHost, places } = this.#options;
    return gatewayHost === undefined ? undefined : places.get(store.storeId)?.host;
  }
}

/** How often `most` must be halved to be less than twice `credit`. */
function halvings(most: number, credit: number): number {
  return Math.floor(Math.log2(Math.max(1, most / credit)));
}
