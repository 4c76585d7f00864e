/**
 * What one party may do in any minute: a client address (or an IPv6 /64), its network, a user, a sender's
 * address. Each is counted by the *real* client, whom a balancer's PROXY header or a proxy's XCLIENT names.
 *
 *              client   network   user   sender        at the limit
 *  connections   ×         ×                           421 before the greeting
 *  messages      ×         ×       ×       ×           450 to MAIL
 *  recipients    ×         ×       ×       ×           450 to RCPT
 *  data          ×         ×       ×       ×           450 to MAIL and to what has ended, until the minute
 *                                                      has passed
 *  errors        ×         ×       ×       ×           421: the session ends, new ones begin with 421, and
 *                                                      MAIL of the user or sender ends others
 *
 * A message counts when it ends, and not against itself: data goes beyond its limit by one message at most.
 * Exempt networks are clients and networks without limits, and so are senders there; users are not.
 * A sender is counted for users, who send from addresses of their own only, and apart from that for each
 * network that claims to send for it.
 *
 * Held across the workers of a gateway: once a second each tells the others what it has counted. So a limit
 * may be passed by what the other workers let in within that second. Pure.
 */
import type { NetworkList } from '../policy/network-list.js';
import { clientKey, networkKey } from './client-counts.js';
import { SlidingCounts } from './sliding-counts.js';
import type { Counted } from './sliding-counts.js';

export const PARTIES = ['client', 'network', 'user', 'sender'] as const;
export type Party = (typeof PARTIES)[number];
export const DEEDS = ['connections', 'messages', 'recipients', 'data', 'errors'] as const;
export type Deed = (typeof DEEDS)[number];

/** In any minute; 0: no limit. `data` in bytes. */
export type RateOptions = Readonly<Record<Party, Readonly<Record<Deed, number>>>>;

/** Whose deed it is; '' for nobody. */
export interface Doer {
  readonly remoteAddress: string;
  readonly user: string;
  /** Other than '': the address is that of a balancer or proxy, and none of a client. */
  readonly proxy: string;
}

/** What one worker tells the others: by party and deed, who did how much. */
export type RateReport = readonly (readonly [party: number, deed: number, counted: readonly Counted[]])[];

/** So many keys of a party and deed in one report. */
const TOLD_MAX = 5_000;

interface Limit {
  readonly party: Party;
  readonly deed: Deed;
  readonly max: number;
  readonly counts: SlidingCounts;
}

export class RateLimits {
  readonly #limits: readonly Limit[];
  readonly #byDeed: ReadonlyMap<Deed, readonly Limit[]>;
  readonly #exempt: NetworkList;

  constructor(options: RateOptions, exempt: NetworkList) {
    this.#exempt = exempt;
    this.#limits = PARTIES.flatMap((party) => DEEDS.flatMap((deed) => {
      const max = options[party][deed];
      return max === 0 ? [] : [{ party, deed, max, counts: new SlidingCounts() }];
    }));
    this.#byDeed = new Map(DEEDS.map((deed) => [deed, this.#limits.filter((limit) => limit.deed === deed)]));
  }

  /** The limit that the last question met, as the configuration names it: for the log. */
  reached = '';

  /** Counts a deed; false when it is one too many, which is not counted. */
  mayDo(deed: Deed, doer: Doer, sender: string, nowMs: number): boolean {
    if (this.hasDoneAll(deed, doer, sender, nowMs)) return false;
    this.did(deed, 1, doer, sender, nowMs);
    return true;
  }

  /** Counts what has been done, whatever the limit. */
  did(deed: Deed, amount: number, doer: Doer, sender: string, nowMs: number): void {
    const limits = this.#byDeed.get(deed) ?? [];
    if (limits.length === 0) return;
    const isExempt = this.#isExempt(doer);
    for (const { party, counts } of limits) {
      const key = keyOf(party, doer, sender, isExempt);
      if (key !== '') counts.add(key, amount, nowMs);
    }
  }

  /** Whether there has been as much of it as may be. */
  hasDoneAll(deed: Deed, doer: Doer, sender: string, nowMs: number): boolean {
    const limits = this.#byDeed.get(deed) ?? [];
    if (limits.length === 0) return false;
    const isExempt = this.#isExempt(doer);
    return limits.some(({ party, max, counts }) => {
      const key = keyOf(party, doer, sender, isExempt);
      if (key === '' || counts.of(key, nowMs) < max) return false;
      this.reached = `${party}.${deed}`;
      return true;
    });
  }

  /** For the other workers; undefined when there is nothing to tell. */
  takeReport(): RateReport | undefined {
    const report = this.#limits.flatMap(({ party, deed, counts }) => {
      const counted = counts.takeUntold(TOLD_MAX);
      return counted.length === 0 ? [] : [[PARTIES.indexOf(party), DEEDS.indexOf(deed), counted] as const];
    });
    return report.length === 0 ? undefined : report;
  }

  /** Another worker told it. */
  onReport(report: RateReport, nowMs: number): void {
    for (const [party, deed, counted] of report) {
      const limit = this.#limits.find((each) => each.party === PARTIES[party] && each.deed === DEEDS[deed]);
      for (const [key, amount] of counted) limit?.counts.addTold(key, amount, nowMs);
    }
  }

  tick(nowMs: number): void {
    for (const { counts } of this.#limits) counts.tick(nowMs);
  }

  /** Whoever comes by way of an exempt proxy is not for that. */
  #isExempt({ remoteAddress, proxy }: Doer): boolean {
    return proxy === '' && this.#exempt.has(remoteAddress);
  }
}

/**
 * '': there is nobody of this kind. Who writes his name in another case is nobody else by it; `sender` is the
 * same however it is written (MailTransaction.senderKey).
 */
function keyOf(
  party: Party, { remoteAddress, user, proxy }: Doer, sender: string, isExempt: boolean,
): string {
  // Whoever has stolen a password may come by a webmail of this machine: a user counts from anywhere.
  if (isExempt && (user === '' || party === 'client' || party === 'network')) return '';
  if (party === 'client') return proxy === '' ? clientKey(remoteAddress) : '';
  const network = proxy === '' ? networkKey(remoteAddress) : '';
  if (party === 'network') return network;
  if (party === 'user') return user.toLowerCase();
  // Anybody may claim to be anybody: that must not use up what the sender himself may do, or another network.
  return sender === '' || user !== '' ? sender : `${sender} ${network}`;
}
