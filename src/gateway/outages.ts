/**
 * What a gateway's mail depends on and does not answer, for status and metrics: next hops to which no
 * connection comes up, and hooks that give no verdict. The log told of them once (`nexthop`, `hook`); here
 * they stand as long as it lasts.
 */
import type { OutagesAnswer } from '../admin-api/gateway-answers.js';
import { seconds } from './admin/view.js';
import type { NextHopState } from './outbound/connection-pool.js';

/** Of the next hops, those for which most waits; the others are counted. */
const NEXT_HOPS_SHOWN_MAX = 5;

export function outagesOf(hops: readonly NextHopState[], hooks: OutagesAnswer['hooks']): OutagesAnswer {
  const named = hops.filter(({ isByMx }) => !isByMx);
  const own = downOf(named);
  const strange = downOf(hops.filter(({ isByMx }) => isByMx));
  return {
    next_hops: own.slice(0, NEXT_HOPS_SHOWN_MAX), next_hops_down: own.length,
    next_hops_denied: downOf(named.filter(({ isDenied }) => isDenied)).length,
    mx: strange.slice(0, NEXT_HOPS_SHOWN_MAX), mx_down: strange.length,
    mx_waiting: strange.reduce((sum, { waiting }) => sum + waiting, 0), hooks,
  };
}

function downOf(hops: readonly NextHopState[]): OutagesAnswer['next_hops'] {
  return hops.flatMap(({ relay, downSinceWallMs: sinceMs, waiting, lastError: why }) =>
    (sinceMs === undefined ? [] : [{ relay, since: seconds(sinceMs), waiting, why }]))
    .sort((a, b) => b.waiting - a.waiting || a.since - b.since);
}
