/**
 * How a store takes leave, so that its gateways can move their queues away while it still serves.
 *
 *   begin()   CLOSE (STOPPING) on every connection that stands by: that is the announcement; active ones live on
 *   isOver()  no gateway that was told has a queue left of which this store is a member, or the bound has passed
 *
 * A gateway without a connection that stands by can't be told and is not waited for: its active connection is closed
 * with the rest. Nor is one of a version that moves nothing away.
 * Not here: the sockets (kvs/daemon), the file of what is left (kvs/core/spill).
 */

import { ROLE_MEMBER } from '../../protocol/reasons.js';
import { movesQueuesAway } from '../../protocol/versions.js';
import type { Store } from './store.js';
import { ConnectionState } from './store-connection.js';
import type { StoreConnection } from './store-connection.js';

export class Stopping {
  readonly #store: Store;
  readonly #endsMs: number;
  /** Gateways that were told. */
  readonly #told = new Set<string>();

  constructor(options: { readonly nowMs: number; readonly timeoutMs: number }, store: Store) {
    this.#endsMs = options.nowMs + options.timeoutMs;
    this.#store = store;
  }

  begin(connections: Iterable<StoreConnection>): void {
    for (const connection of [...connections]) {
      if (connection.state === ConnectionState.ACTIVE) continue;
      if (connection.state === ConnectionState.STANDBY) this.#told.add(connection.gatewayId);
      connection.stop();
    }
  }

  isOver(nowMs: number): boolean {
    if (nowMs >= this.#endsMs) return true;
    let isWaitedFor = false;
    this.#store.queues.visit(0, (queue) => {
      isWaitedFor = queue.role === ROLE_MEMBER && this.#told.has(queue.holder) && this.#movesAway(queue.holder);
      return !isWaitedFor;
    });
    return !isWaitedFor;
  }

  #movesAway(gatewayId: string): boolean {
    const account = this.#store.account(gatewayId);
    return account?.active !== undefined && movesQueuesAway(account.version);
  }
}
