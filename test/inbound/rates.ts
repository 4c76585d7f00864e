/** Limits of a minute, of which a test names those that it is about. */
import { DEEDS, PARTIES, RateLimits } from '../../src/gateway/inbound/limits/rate-limits.js';
import type { Deed, Party, RateOptions } from '../../src/gateway/inbound/limits/rate-limits.js';
import { NetworkList } from '../../src/gateway/inbound/policy/network-list.js';

/** 233.252.0.0/24 is exempt. */
export function limits(...given: readonly (readonly [Party, Deed, number])[]): RateLimits {
  const of = (party: Party, deed: Deed): number => given.find(([one, two]) => one === party && two === deed)?.[2] ?? 0;
  const options = Object.fromEntries(PARTIES.map((party) => [party, Object.fromEntries(DEEDS.map((deed) => [deed, of(party, deed)]))])) as RateOptions;
  return new RateLimits(options, new NetworkList(['233.252.0.0/24'], 'exempt'));
}
