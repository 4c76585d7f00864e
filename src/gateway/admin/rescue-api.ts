/**
 * POST /api/v1/rescue: the one order that may lose mail. An operator gives up copies that do not come back,
 * and the partitions of which every copy is away go on without them.
 *
 *   {"give_up": [STORE…], "reason": TEXT, "who": TEXT}            copies at these stores
 *   {"give_up": [], "memory": true, "reason": TEXT, "who": TEXT}  what only a process had, in its memory
 *
 * Answers {partitions: [NAME…], ended: [NAME…]}: those that go on, empty; and those that had ended, and
 * waited for nothing but to tell these stores so: no mail is lost by that. Who asked for it, and why, is in
 * the log. Nothing happens to a partition that has another copy, or waits for something else or for nothing:
 * 409 when that is so of all, 404 when a store is not known here, 503 when the register does not take it.
 * It is an order for all gateways of a group: what waits at several may go to and fro until each has it.
 */
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { RescueAnswer } from '../../admin-api/orders.js';
import { gatewayRoutes as routes } from '../../admin-api/routes.js';
import type { EventLog } from '../../platform/ports.js';
import { orderOf, refuse } from '../../platform/node/admin-guard.js';
import { serve } from '../../platform/node/admin-server.js';
import type { RequestOf } from '../../platform/node/admin-server.js';
import type { GatewayView } from './view.js';

const NONE_ENDED: GivenUpEnded = { ended: [], why: '' };

/** A partition that waits, as gateway/ownership/holdings.ts tells of it. */
export interface WaitingCopies {
  readonly partition: string;
  /** Stores whose copies count, when it waits for those to answer. */
  readonly copies: readonly string[];
}

/** Names of partitions; and why not all that were meant, '' when there is no trouble. */
export interface GivenUpEnded {
  readonly ended: readonly string[];
  readonly why: string;
}

export interface RescueControl {
  /** The partitions that go on without copies at these stores; of none: without a process's memory. */
  giveUp(storeIds: readonly string[]): readonly string[];
  /** Who ordered that, and why: status tells it with what was lost. */
  noteGivenUp(partitions: readonly string[], by: { readonly who: string; readonly reason: string }): void;
  waiting(): readonly WaitingCopies[];
  /** Partitions that have ended, but for stores that are away. */
  untoldEnds(): readonly { readonly stores: readonly string[] }[];
  /** They wait for these stores no more. */
  giveUpEnded(
    storeIds: readonly string[], by: { readonly who: string; readonly reason: string },
    done: (result: GivenUpEnded) => void,
  ): void;
}

export interface RescuePorts {
  readonly control: RescueControl;
  /** Knows the stores. */
  readonly view: Pick<GatewayView, 'status'>;
  readonly log: EventLog;
}

export function addRescue(api: FastifyInstance, ports: RescuePorts): void {
  serve(api, routes.rescue, (request, reply) => rescue(request, reply, ports));
}

async function rescue(
  request: RequestOf<typeof routes.rescue>, reply: FastifyReply, ports: RescuePorts,
): Promise<RescueAnswer | FastifyReply> {
  const { give_up: given, memory = false } = request.body;
  const stores = [...new Set(given)];
  // An empty list alone may be a script's mistake: what is lost by it is not to be lost by mistake.
  if ((stores.length > 0) === memory) {
    return refuse(reply, 400, 'name the stores to be given up, or say memory: true, not both');
  }
  const { reason, who } = orderOf(request);
  const unknown = unknownOf(stores, ports);
  if (unknown !== '') return refuse(reply, 404, `${unknown}; nothing was done`);
  const partitions = ports.control.giveUp(stores);
  if (partitions.length > 0) noteGivenUp(partitions, { stores, memory, reason, who }, ports);
  const { ended, why } = memory ? NONE_ENDED : await new Promise<GivenUpEnded>((resolve) => {
    ports.control.giveUpEnded(stores, { reason, who }, resolve);
  });
  if (ended.length > 0) {
    const text = 'an operator gives up stores that were to be told of partitions that have ended';
    const open = why === '' ? {} : { error: why };
    ports.log.warn('orphans', text, { stores, partitions: ended, reason, who, ...open });
  }
  if (partitions.length + ended.length > 0) return { partitions, ended };
  if (why !== '') return refuse(reply, 503, `${why}; nothing was done, give the order again`);
  return refuse(reply, 409, `${whyNone(stores, ports)}; nothing was done`);
}

interface Given {
  readonly stores: readonly string[];
  readonly memory: boolean;
  readonly reason: string;
  readonly who: string;
}

function noteGivenUp(
  partitions: readonly string[], { stores, memory, reason, who }: Given, { control, log }: RescuePorts,
): void {
  control.noteGivenUp(partitions, { reason, who });
  const what = memory ? 'what only a process had in memory' : 'copies that do not come back';
  const fields = { ...(memory ? {} : { stores }), partitions, reason, who };
  log.warn('takeover', `an operator gives up ${what}`, fields);
}

/** A store that no configuration names any more may still have the copies that count. */
function unknownOf(stores: readonly string[], { control, view }: RescuePorts): string {
  const known = new Set(view.status().stores.map(({ store }) => store));
  for (const { copies } of control.waiting()) for (const store of copies) known.add(store);
  for (const { stores: named } of control.untoldEnds()) for (const store of named) known.add(store);
  const unknown = stores.find((store) => !known.has(store));
  if (unknown === undefined) return '';
  return `this gateway knows no store '${unknown}'; it knows ${[...known].join(', ')}`;
}

function whyNone(stores: readonly string[], { control }: RescuePorts): string {
  if (stores.length === 0) return 'no partition waits for the memory of a process';
  for (const { partition, copies } of control.waiting()) {
    const others = copies.filter((store) => !stores.includes(store));
    if (others.length === copies.length) continue;
    const names = others.join(', ');
    return `${partition} has another copy at ${names}: start that, or name it too if it never comes back`;
  }
  for (const { stores: named } of control.untoldEnds()) {
    const others = named.filter((store) => !stores.includes(store));
    if (others.length === named.length) continue;
    const names = others.join(', ');
    return `partitions that have ended wait for ${names} as well: `
      + 'start that, or name it too if it never comes back';
  }
  return `no partition waits for its copies at ${stores.join(' or ')}`;
}
