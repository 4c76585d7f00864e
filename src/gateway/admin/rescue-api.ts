/**
 * POST /api/v1/rescue: an operator has queues taken without a store that does not come back.
 *
 *   {"queue": NAME} or {"owner": GATEWAY}, "missing": STORE, "reason": TEXT, "who": TEXT
 *
 * Answers what came of each queue concerned: those taken, those that will be as soon as a mirror is filled, those that
 * wait for other stores, too, and those of which nothing is left. What only the missing store knew is lost, or comes
 * twice: who asked for it, and why, is in the log. Nothing happens to a queue whose members all answer: 404 when the store
 * or the queue is not known here, 409 when nothing waits for that store.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RescueAnswer, RescueOrder } from '../../admin-api/orders.js';
import type { ForceOutcome, ForceRequest, ForcedQueue } from '../../recovery/force.js';
import { postedBy, refuse, textOf } from './orders.js';
import type { GatewayView } from './view.js';

/** A queue that waits, as bulk recovery tells of it. */
export interface WaitingQueue {
  readonly queue: string;
  readonly owner: string;
  readonly stores: readonly string[];
  readonly why: string;
}

export interface RescueControl {
  /** What came of the queues that this concerns. */
  force(request: ForceRequest): readonly ForcedQueue[];
  held(): readonly WaitingQueue[];
}

/** What tells a queue that waits for nothing from one that nobody knows. */
export type RescueView = Pick<GatewayView, 'status' | 'queues' | 'group'>;

export function addRescue(api: FastifyInstance, control: RescueControl, view: RescueView): void {
  api.post('/rescue', (request, reply) => force(request, reply, control, view));
}

function force(request: FastifyRequest, reply: FastifyReply, control: RescueControl, view: RescueView): RescueAnswer | FastifyReply {
  const posted = postedBy<RescueOrder>(request);
  const [queue, owner, missing] = [textOf(posted.queue), textOf(posted.owner), textOf(posted.missing)];
  const [reason, who] = [textOf(posted.reason), textOf(posted.who)];
  if (queue === undefined && owner === undefined) return refuse(reply, 400, 'name a queue, the gateway that owns it, or both');
  if (missing === undefined) return refuse(reply, 400, 'name the store that is missing');
  if (reason === undefined || who === undefined) return refuse(reply, 400, 'say who does this, and for what reason: it is logged');
  const wanted = { queue, owner, missing, reason, who };
  const forced = control.force(wanted);
  if (forced.length > 0) return answerOf(forced, view.status().gateway);
  const { code, error } = whyNone(wanted, control.held(), view);
  return refuse(reply, code, `${error}; nothing was done`);
}

/** Queues by name, those of other gateways with their owner: all gateways of a group have the same names. */
function answerOf(forced: readonly ForcedQueue[], gateway: string): RescueAnswer {
  const of = (outcome: ForceOutcome): readonly ForcedQueue[] => forced.filter((one) => one.outcome === outcome);
  const nameOf = ({ queue, owner }: ForcedQueue): string => (owner === gateway ? queue : `${queue} of ${owner}`);
  const names = (queues: readonly ForcedQueue[]): string[] => queues.map(nameOf);
  return {
    queues: names(of('taken')),
    later: names(of('later')),
    waiting: of('waiting').map((one) => ({ queue: nameOf(one), also_needed: one.needed })),
    elsewhere: names(of('elsewhere')),
    gone: of('gone').map((one) => ({ queue: nameOf(one), export_from: one.exportable })),
  };
}

function whyNone({ queue, owner, missing }: ForceRequest, held: readonly WaitingQueue[], view: RescueView): { readonly code: number; readonly error: string } {
  const stores = view.status().stores.map((store) => store.id);
  if (!stores.includes(missing) && !held.some((one) => one.stores.includes(missing))) return { code: 404, error: `this gateway knows no store '${missing}'; it knows ${stores.join(', ')}` };
  const mine = held.filter((one) => one.owner === (owner ?? one.owner) && one.queue === (queue ?? one.queue));
  const [first] = mine.filter((one) => one.stores.includes(missing)).concat(mine);
  if (first !== undefined) return { code: 409, error: `'${first.queue}' can't be taken without '${missing}': ${[first.why, ...first.stores].join(', ')}` };
  if (queue !== undefined && !view.queues('', Number.MAX_SAFE_INTEGER).queues.some((one) => one.name === queue)) return { code: 404, error: `this gateway knows no queue '${queue}'` };
  if (owner !== undefined && !view.group().some((one) => one.kind === 'gateway' && one.id === owner)) return { code: 404, error: `this gateway knows no gateway '${owner}'` };
  return { code: 409, error: queue === undefined ? `no queue of '${owner ?? ''}' waits for '${missing}'` : `queue '${queue}' does not wait for '${missing}'` };
}
