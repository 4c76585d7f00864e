/**
 * POST /api/v1/rescue: an operator has partitions taken without a store that does not come back.
 *
 *   {"partition": NAME} or {"owner": GATEWAY}, "missing": STORE, "reason": TEXT, "who": TEXT
 *
 * Answers what came of each partition concerned: those taken, those that will be as soon as a mirror is filled, those that
 * wait for other stores, too, and those of which nothing is left. What only the missing store knew is lost, or comes
 * twice: who asked for it, and why, is in the log. Nothing happens to a partition whose members all answer: 404 when the store
 * or the partition is not known here, 409 when nothing waits for that store.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RescueAnswer, RescueOrder } from '../../admin-api/orders.js';
import type { ForceOutcome, ForceRequest, ForcedPartition } from '../../recovery/force.js';
import { postedBy, refuse, textOf } from './orders.js';
import type { GatewayView } from './view.js';

/** A partition that waits, as bulk recovery tells of it. */
export interface WaitingPartition {
  readonly partition: string;
  readonly owner: string;
  readonly stores: readonly string[];
  readonly why: string;
}

export interface RescueControl {
  /** What came of the partitions that this concerns. */
  force(request: ForceRequest): readonly ForcedPartition[];
  held(): readonly WaitingPartition[];
}

/** What tells a partition that waits for nothing from one that nobody knows. */
export type RescueView = Pick<GatewayView, 'status' | 'mirrors' | 'group'>;

export function addRescue(api: FastifyInstance, control: RescueControl, view: RescueView): void {
  api.post('/rescue', (request, reply) => force(request, reply, control, view));
}

function force(request: FastifyRequest, reply: FastifyReply, control: RescueControl, view: RescueView): RescueAnswer | FastifyReply {
  const posted = postedBy<RescueOrder>(request);
  const [partition, owner, missing] = [textOf(posted.partition), textOf(posted.owner), textOf(posted.missing)];
  const [reason, who] = [textOf(posted.reason), textOf(posted.who)];
  if (partition === undefined && owner === undefined) return refuse(reply, 400, 'name a partition, the gateway that owns it, or both');
  if (missing === undefined) return refuse(reply, 400, 'name the store that is missing');
  if (reason === undefined || who === undefined) return refuse(reply, 400, 'say who does this, and for what reason: it is logged');
  const wanted = { partition, owner, missing, reason, who };
  const forced = control.force(wanted);
  if (forced.length > 0) return answerOf(forced, view.status().gateway);
  const { code, error } = whyNone(wanted, control.held(), view);
  return refuse(reply, code, `${error}; nothing was done`);
}

/** Queues by name, those of other gateways with their owner: all gateways of a group have the same names. */
function answerOf(forced: readonly ForcedPartition[], gateway: string): RescueAnswer {
  const of = (outcome: ForceOutcome): readonly ForcedPartition[] => forced.filter((one) => one.outcome === outcome);
  const nameOf = ({ partition, owner }: ForcedPartition): string => (owner === gateway ? partition : `${partition} of ${owner}`);
  const names = (partitions: readonly ForcedPartition[]): string[] => partitions.map(nameOf);
  return {
    partitions: names(of('taken')),
    later: names(of('later')),
    waiting: of('waiting').map((one) => ({ partition: nameOf(one), also_needed: one.needed })),
    elsewhere: names(of('elsewhere')),
    gone: of('gone').map((one) => ({ partition: nameOf(one), export_from: one.exportable })),
  };
}

function whyNone({ partition, owner, missing }: ForceRequest, held: readonly WaitingPartition[], view: RescueView): { readonly code: number; readonly error: string } {
  const stores = view.status().stores.map((store) => store.id);
  if (!stores.includes(missing) && !held.some((one) => one.stores.includes(missing))) return { code: 404, error: `this gateway knows no store '${missing}'; it knows ${stores.join(', ')}` };
  const mine = held.filter((one) => one.owner === (owner ?? one.owner) && one.partition === (partition ?? one.partition));
  const [first] = mine.filter((one) => one.stores.includes(missing)).concat(mine);
  if (first !== undefined) return { code: 409, error: `'${first.partition}' can't be taken without '${missing}': ${[first.why, ...first.stores].join(', ')}` };
  if (partition !== undefined && !view.mirrors('', Number.MAX_SAFE_INTEGER).rows.some((one) => one.partition === partition)) return { code: 404, error: `this gateway knows no partition '${partition}'` };
  if (owner !== undefined && !view.group().some((one) => one.kind === 'gateway' && one.id === owner)) return { code: 404, error: `this gateway knows no gateway '${owner}'` };
  return { code: 409, error: partition === undefined ? `no partition of '${owner ?? ''}' waits for '${missing}'` : `partition '${partition}' does not wait for '${missing}'` };
}
