/**
 * What an operator does with the stores and mirrors of a gateway.
 *
 *   GET  /api/v1/stores/ID/drain                {store, draining, mirrors, stuck, copies_missing, kept}
 *                                               0 mirrors: nothing of ours is there any more; not kept: the
 *                                               order is in force, but not in state_dir, so that a restart
 *                                               of the gateway forgets it
 *   POST /api/v1/stores/ID/drain                all partitions move away from the store, and none goes there
 *   POST /api/v1/stores/ID/drain {"undo":true}  the store is used again
 *   POST /api/v1/partitions/NAME/resync         one copy is emptied and filled again
 *        {"store": ID, "reason": TEXT, "who": TEXT}
 *
 * A POST to drain is answered when the order is kept, or else at a bound. Who asked, and why, is in the log.
 * The command wants a reason for each; a drain is also taken without, since it ends no copy that is needed
 * and undo takes it back.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { DrainAnswer, DrainOrder, Order, ResyncAnswer, ResyncOrder } from '../../admin-api/orders.js';
import { ORDER_TEXT_CHARACTERS_MAX } from '../../admin-api/pages.js';
import { refuse } from '../../platform/node/admin-server.js';
import { postedBy, refuseUnsaid } from './orders.js';

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
  api.get('/stores/:id/drain', (request, reply) => drainState(idOf(request), reply, control));
  api.post('/stores/:id/drain', async (request, reply) => {
    const id = idOf(request);
    if (control.drainState(id) === undefined) return noStore(id, reply);
    const order = orderAsSaid(request);
    if (order === undefined) return refuse(reply, 400, `reason and who are ${TEXTS}`);
    if (postedBy<DrainOrder>(request).undo === true) control.undrain(id, order);
    else control.drain(id, order);
    await new Promise<void>((resolve) => { control.whenSettled(id, resolve); });
    return drainState(id, reply, control);
  });
  api.post('/partitions/:name/resync', (request, reply) => {
    const { name } = request.params as { name: string };
    const { store } = postedBy<ResyncOrder>(request);
    if (typeof store !== 'string') {
      return refuse(reply, 400, 'name the store whose mirror is to be filled again');
    }
    const order = orderAsSaid(request);
    if (order === undefined || order.reason === '' || order.who === '') return refuseUnsaid(reply);
    const filled = control.resync(name, store, order);
    if (filled === undefined) return refuse(reply, 404, `no partition '${name}' has a copy at '${store}'`);
    if (filled === 0) return refuse(reply, 409, 'no other mirror is in sync: this one may be all there is');
    const answer: ResyncAnswer = { partition: name, store };
    return answer;
  });
}

function drainState(id: string, reply: FastifyReply, control: StoreControl): DrainAnswer | FastifyReply {
  const state = control.drainState(id);
  if (state === undefined) return noStore(id, reply);
  const { draining, mirrors, stuck, copiesMissing, kept } = state;
  return { store: id, draining, mirrors, stuck, copies_missing: copiesMissing, kept };
}

function noStore(id: string, reply: FastifyReply): FastifyReply {
  return refuse(reply, 404, `this gateway knows no store '${id}'`);
}

function idOf(request: FastifyRequest): string {
  return (request.params as { id: string }).id;
}

const TEXTS = `texts of at most ${String(ORDER_TEXT_CHARACTERS_MAX)} characters`;

function isShortText(value: unknown): value is string {
  return typeof value === 'string' && value.length <= ORDER_TEXT_CHARACTERS_MAX;
}

/** Parts are '' where they were not said; undefined when it can't be logged as it is. */
function orderAsSaid(request: FastifyRequest): Order | undefined {
  const { reason = '', who = '' } = postedBy<Order>(request);
  if (!isShortText(reason) || !isShortText(who)) return undefined;
  return { reason: reason.trim(), who: who.trim() };
}
