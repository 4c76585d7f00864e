/**
 * POST /api/v1/ages and /api/v1/find (admin-api/look.ts): what is asked of all the mail here. A walk takes a
 * bounded share of a turn, again and again, and ends when it is through, nobody waits for it any more, or its
 * time is up.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { AgesAnswer, AgesQuestion, FindAnswer, FindQuestion } from '../../admin-api/look.js';
import { whyNoSelector } from '../../admin-api/queue-orders.js';
import type { Selector } from '../../admin-api/queue-orders.js';
import { gatewayRoutes as routes } from '../../admin-api/routes.js';
import { refuse } from '../../platform/node/admin-guard.js';
import { serve } from '../../platform/node/admin-server.js';

/** One that is under way. */
interface Walk<T> {
  /** True at its end. */
  step(): boolean;
  answer(): T;
}

/** Begin one (gateway/look). */
export interface Walks {
  ages(question: AgesQuestion): Walk<AgesAnswer>;
  find(question: FindQuestion): Walk<FindAnswer>;
}

/** At the same time, so that operators take at most half of the turns. */
const WALKS_MAX = 2;
/** Between two shares of 2 ms. */
const PAUSE_MS = 4;
/** An admin connection lives for 30 s without a byte (platform/node/admin-server.ts). */
const WALK_MS_MAX = 20_000;

export function addWalks(api: FastifyInstance, walks: Walks): void {
  let count = 0;
  const answer = async <A>(
    selector: Selector, reply: FastifyReply, begin: () => Walk<A>,
  ): Promise<A | FastifyReply> => {
    const why = whyNoSelector(selector);
    if (why !== '') return refuse(reply, 400, `no question: ${why}`);
    if (count >= WALKS_MAX) {
      return refuse(reply, 503, `${String(WALKS_MAX)} walks are under way: ask again in a moment`);
    }
    count += 1;
    try {
      return await walked(begin(), () => reply.raw.destroyed);
    } finally {
      count -= 1;
    }
  };
  serve(api, routes.ages, ({ body }, reply) => answer(body.selector, reply, () => walks.ages(body)));
  serve(api, routes.find, ({ body }, reply) => answer(body.selector, reply, () => walks.find(body)));
}

async function walked<A>(walk: Walk<A>, isLeft: () => boolean): Promise<A> {
  const endMs = performance.now() + WALK_MS_MAX;
  while (!walk.step() && performance.now() < endMs && !isLeft()) await pause(PAUSE_MS);
  return walk.answer();
}
