/**
 * What an operator does with the stores and mirrors of a gateway.
 *
 *   GET  /api/v1/stores/ID/drain                {store, draining, mirrors, stuck, copies_missing, kept,
 *                                               register_away}
 *                                               0 mirrors: nothing of ours is there any more; not kept: the
 *                                               order is in force, but not in state_dir, so that a restart
 *                                               of the gateway forgets it
 *   POST /api/v1/stores/ID/drain                all partitions move away from the store, and none goes there;
 *                                               {"undo": true}: the store is used again
 *   POST /api/v1/partitions/NAME/resync         one copy is emptied and filled again
 *
 * A POST to drain is answered when the order is kept, or else at a bound. Who asked, and why, is in the log.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { DrainAnswer, Order } from '../../admin-api/orders.js';
import { gatewayRoutes as routes } from '../../admin-api/routes.js';
import { orderOf, refuse } from '../../platform/node/admin-guard.js';
import { serve } from '../../platform/node/admin-server.js';

export interface DrainState {
  readonly draining: boolean;
  /** Mirrors, and what is still to be dropped. */
  readonly mirrors: number;
  /** Mirrors that no other store can take and that min_replicas needs. */
  readonly stuck: number;
  /** Partitions, at whatever stores, with fewer copies than configured. */
  readonly copiesMissing: number;
  /** The file in state_dir says whether the store is drained: a restart will know it. */
  readonly kept: boolean;
  /** Why the register does not answer, without which nothing moves; '' while it does. */
  readonly registerAway: string;
}

export interface StoreControl {
  /** Undefined when there is no such store. */
  drainState(storeId: string): DrainState | undefined;
  drain(storeId: string, order: Order): void;
  undrain(storeId: string, order: Order): void;
  /** Calls back once, when the last order for the store is kept, or at a bound. */
  whenSettled(storeId: string, then: () => void): void;
  /** Copies of the partition at the store that are filled again, 0 or 1; undefined when it has none there. */
  resync(partition: string, storeId: string, order: Order): number | undefined;
}

export function addStores(api: FastifyInstance, control: StoreControl): void {
  serve(api, routes.drain, ({ params: { id } }, reply) => drainState(id, reply, control));
  serve(api, routes.orderDrain, async (request, reply) => {
    const { params: { id }, body: { undo = false } } = request;
    if (control.drainState(id) === undefined) return noStore(id, reply);
    if (undo) control.undrain(id, orderOf(request));
    else control.drain(id, orderOf(request));
    await new Promise<void>((resolve) => { control.whenSettled(id, resolve); });
    return drainState(id, reply, control);
  });
  serve(api, routes.resync, (request, reply) => {
    const { params: { name }, body: { store } } = request;
    const filled = control.resync(name, store, orderOf(request));
    if (filled === undefined) return refuse(reply, 404, `no partition '${name}' has a copy at '${store}'`);
    if (filled === 0) return refuse(reply, 409, 'no other mirror is in sync: this one may be all there is');
    return { partition: name, store };
  });
}

function drainState(id: string, reply: FastifyReply, control: StoreControl): DrainAnswer | FastifyReply {
  const state = control.drainState(id);
  if (state === undefined) return noStore(id, reply);
  const { draining, mirrors, stuck, copiesMissing, kept, registerAway: away } = state;
  return {
    store: id, draining, mirrors, stuck, copies_missing: copiesMissing, kept,
    ...(away === '' ? {} : { register_away: away }),
  };
}

function noStore(id: string, reply: FastifyReply): FastifyReply {
  return refuse(reply, 404, `this gateway knows no store '${id}'`);
}
