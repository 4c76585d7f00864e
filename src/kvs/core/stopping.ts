/**
 * How a store takes leave, so that its gateways can move their partitions away while it still serves.
 *
 *   begin()   each gateway is told once: by CLOSE (STOPPING) on a connection that stands by, or, when it has
 *             none (a store with one path, or one path lost), by the same with GOES_ON on its active one.
 *             Active connections stay
 *   isOver()  no gateway that was told holds a partition of whose record this store, in this boot, is a
 *             member by what it was told last; or the bound has passed
 *
 * A gateway that does not know GOES_ON closes its connection, and is not waited for. Not here: the sockets
 * (kvs/daemon), the file of what is left (kvs/core/spill).
 */

import type { Store } from './store.js';
import { ConnectionState } from './store-connection.js';
import type { StoreConnection } from './store-connection.js';

export class Stopping {
  readonly #store: Store;
  readonly #endsMs: number;
  /** Gateways that were told. */
  readonly #announced = new Set<string>();

  constructor(options: { readonly nowMs: number; readonly timeoutMs: number }, store: Store) {
    this.#endsMs = options.nowMs + options.timeoutMs;
    this.#store = store;
  }

  begin(connections: Iterable<StoreConnection>): void {
    for (const connection of [...connections]) {
      if (connection.state === ConnectionState.ACTIVE) continue;
      if (connection.state === ConnectionState.STANDBY) this.#announced.add(connection.gatewayId);
      connection.stop();
    }
    for (const connection of connections) {
      if (connection.state !== ConnectionState.ACTIVE || this.#announced.has(connection.gatewayId)) continue;
      this.#announced.add(connection.gatewayId);
      connection.announceStop();
    }
  }

  isOver(nowMs: number): boolean {
    if (nowMs >= this.#endsMs) return true;
    for (const copy of this.#store.partitions.copies()) {
      const holder = copy.fence.told?.holder.gatewayId ?? '';
      if (this.#store.isMember(copy) && this.#movesAway(holder)) return false;
    }
    return true;
  }

  #movesAway(gatewayId: string): boolean {
    return this.#announced.has(gatewayId) && this.#store.account(gatewayId)?.active !== undefined;
  }
}
