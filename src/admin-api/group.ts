/**
 * One answer of all the gateways of a group: a row below /api/v1/group for each row of routes.ts that says
 * `group`, of the same method, role, query and body. The gateway that is asked asks all, itself among them,
 * at the address of that row, where nobody is asked on (platform/node/admin-group.ts).
 *
 *   GET /api/v1/group/status ─► GET /api/v1/status of each ─► {"answers":[{"gateway":"gw-1","body":{…}}, …],
 *                                                              "missing":[{"gateway":"gw-2","why":"…"}]}
 */
import { z } from 'zod';
import { invariant } from '../base/invariant.js';
import { list, name, text } from './pages.js';
import type { MemberAnswer } from './pages.js';
import type { Route } from './route.js';

const API = '/api/v1/';
const BELOW = '/api/v1/group/';

/** A gateway of which there is no answer. An answer is whole when there is none such. */
const missingAnswer = z.object({
  gateway: name,
  why: text,
  /** What HTTP said when it refused; 0: it was not asked, or was silent. */
  code: z.int(),
});
export type MissingAnswer = Readonly<z.output<typeof missingAnswer>>;

export interface GatheredAnswer {
  readonly answers: readonly { readonly gateway: string; readonly body: unknown }[];
  readonly missing: readonly MissingAnswer[];
}

export interface GroupRoute extends Route {
  /** What each gateway is asked. */
  readonly each: Route & { readonly answer: z.ZodType };
}

export function isGroupRoute(route: Route): route is GroupRoute {
  return 'each' in route;
}

/** Rows for those of a table that say `group`. */
export function groupRoutesOf(table: Readonly<Record<string, Route>>): Readonly<Record<string, GroupRoute>> {
  return Object.fromEntries(Object.entries(table).flatMap(([key, route]) =>
    (route.group === undefined ? [] : [[`${key}OfGroup`, groupRouteOf(route)]])));
}

function groupRouteOf({ answer, ...route }: Route): GroupRoute {
  const { method, path, role, summary, query, body, bodyBytesMax, answerMs } = route;
  invariant(typeof answer !== 'string' && path.startsWith(API), `many answers of ${path} make one`);
  return {
    method, role, path: BELOW + path.slice(API.length), summary: `of all gateways: ${summary}`,
    ...(query === undefined ? {} : { query: withoutCursor(query) }),
    ...(body === undefined ? {} : { body }), ...(bodyBytesMax === undefined ? {} : { bodyBytesMax }),
    ...(answerMs === undefined ? {} : { answerMs }),
    answer: z.object({
      answers: list(z.object({ gateway: name, body: answer })), missing: list(missingAnswer),
    }),
    each: { ...route, answer },
  };
}

/** Where a page begins is one gateway's matter: it is asked for that itself. */
function withoutCursor({ shape }: z.ZodObject): z.ZodObject {
  const { cursor: _cursor, ...rest } = shape;
  return z.strictObject(rest);
}

/** Of whom no more is known than that he did not answer. */
export const AWAY = 'no session at the register, no answer: dead, or cut off';

/** Why somebody can't be asked; '' when he can. */
export function whyNotAsked({ admin, away }: Pick<MemberAnswer, 'admin' | 'away'>): string {
  if (admin !== null) return '';
  return away ? AWAY : 'nobody that answers knows its admin address';
}
