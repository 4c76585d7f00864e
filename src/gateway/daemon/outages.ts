/**
 * What a gateway's mail depends on and does not answer, for status and metrics: next hops to which no
 * connection comes up, and hooks that give no verdict. The log told of them once (`nexthop`, `hook`); here
 * they stand as long as it lasts.
 */
import type { OutagesAnswer } from '../../admin-api/gateway-answers.js';
import { wholeSeconds } from '../../base/units.js';
import type { NextHopState } from '../outbound/connection-pool.js';

/** Of the next hops, those for which most waits; the others are counted. */
const NEXT_HOPS_SHOWN_MAX = 5;

export function outagesOf(
  hops: readonly NextHopState[], hooks: OutagesAnswer['hooks'], nowWallMs: number,
): OutagesAnswer {
  const named = hops.filter(({ isByMx }) => !isByMx);
  const own = downOf(named, nowWallMs);
  const strange = downOf(hops.filter(({ isByMx }) => isByMx), nowWallMs);
  const denied = named.filter(({ isDenied, downSinceWallMs }) => isDenied && downSinceWallMs !== undefined);
  return {
    next_hops: own.slice(0, NEXT_HOPS_SHOWN_MAX), next_hops_down: own.length,
    next_hops_denied: denied.length,
    mx: strange.slice(0, NEXT_HOPS_SHOWN_MAX), mx_down: strange.length,
    mx_waiting: strange.reduce((sum, { waiting }) => sum + waiting, 0), hooks,
  };
}

function downOf(hops: readonly NextHopState[], nowWallMs: number): OutagesAnswer['next_hops'] {
  return hops.flatMap((hop) => {
    const { relay, downSinceWallMs: sinceMs, waiting, bytes, lastError: why, lastCode: code } = hop;
    if (sinceMs === undefined) return [];
    const nextTry = nextTryOf(hop, nowWallMs);
    return [{ relay, since: wholeSeconds(sinceMs), waiting, bytes, next_try: nextTry, code, why }];
  }).sort((a, b) => b.waiting - a.waiting || a.since - b.since);
}

function nextTryOf({ connecting, retryInMs }: NextHopState, nowWallMs: number): number | null {
  return connecting !== undefined || retryInMs === 0 ? null : Math.ceil((nowWallMs + retryInMs) / 1000);
}
