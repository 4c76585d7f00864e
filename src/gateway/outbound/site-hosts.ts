/**
 * The hosts of one next hop, for its connections (connection-pool.ts): which is tried next, and how long one
 * that failed is left alone.
 *
 *   free ─ failed ─► in back-off (doubles up to a minute) ─ over ─► probed by one connection at a time
 *     ▲                        ▲                                         │ failed   │ answers
 *     │                        └─────────────────────────────────────────┘          │
 *     └─────────────────────────────────────────────────────────────────────────────┘
 *
 * One that asks who we are is probed so from the start: a wrong password is tried once, not by each
 * connection, for some lock a user out after a few.
 *
 * The most preferred one that may be tried is; of equals any, by chance (RFC 5321 5.1). So a host that stays
 * away costs one connection a minute, and mail goes to the next.
 */
import type { Random } from '../../platform/ports.js';
import { FAILED } from '../queue/types.js';
import type { RecipientResult } from '../queue/types.js';

/** One host. */
export class SiteHost {
  readonly name: string;
  readonly port: number;
  /** The lowest first. */
  readonly preference: number;
  /** Named by the DNS, as anybody may have written: its addresses are looked up, and looked at, here. */
  readonly isByMx: boolean;
  /** The policy of the domain does not name it: only TLSA records let it be connected to. */
  readonly isUnnamed: boolean;
  /** Connections to it that are being set up. */
  connecting = 0;
  /** Those that are. */
  ready = 0;
  failures = 0;
  /** It said last that it takes no mail at all. */
  isRefusing = false;
  /** It has taken a connection, or asks for no password. */
  isProven = true;
  /** Since the first of those; undefined while it answers. */
  downSinceWallMs: number | undefined;
  notBeforeMs = 0;
  lastError = '';
  /** It has taken an envelope that stood behind a dot (RFC 2920 3.1). */
  bearsFollowers = false;
  /** One is there, to learn that. */
  isTrying = false;
  /** That its TLS is not as the DNS or a policy says, or that nobody could learn how, is told once. */
  isTlsTold = false;

  constructor(name: string, port: number, preference: number, isByMx: boolean, isUnnamed = false) {
    this.name = name;
    this.port = port;
    this.preference = preference;
    this.isByMx = isByMx;
    this.isUnnamed = isUnnamed;
  }
}

export interface BackoffOptions {
  /** First and longest wait after failed connection attempts. */
  readonly backoffFirstMs: number;
  readonly backoffMaxMs: number;
}

/** The next wait after so many failures; the same for all who wait for a next hop, or for its names. */
export function backoffMs(
  { backoffFirstMs, backoffMaxMs }: BackoffOptions, failures: number, random: Random,
): number {
  const delayMs = Math.min(backoffMaxMs, backoffFirstMs * 2 ** Math.min(failures, 20));
  return delayMs * (0.75 + 0.5 * random());
}

export class SiteHosts {
  readonly #hosts: readonly SiteHost[];
  readonly #options: BackoffOptions;
  readonly #random: Random;

  constructor(hosts: readonly SiteHost[], options: BackoffOptions, random: Random) {
    this.#hosts = hosts;
    this.#options = options;
    this.#random = random;
  }

  /** The one to connect to; undefined while none may be tried. */
  next(nowMs: number): SiteHost | undefined {
    let best: SiteHost | undefined;
    let equals = 0;
    /** One that may be good is being asked who we are: none behind it is used meanwhile. */
    let askedPreference = Infinity;
    for (const host of this.#hosts) {
      const isProbed = host.connecting > 0 && (host.failures > 0 || !host.isProven);
      if (isProbed && host.failures === 0) askedPreference = Math.min(askedPreference, host.preference);
      const isFree = nowMs >= host.notBeforeMs && !isProbed;
      if (!isFree || (best !== undefined && host.preference > best.preference)) continue;
      equals = best !== undefined && host.preference === best.preference ? equals + 1 : 1;
      if (equals === 1 || this.#random() * equals < 1) best = host;
    }
    return best !== undefined && best.preference > askedPreference ? undefined : best;
  }

  /** False: attempts that ran side by side and failed together are one failure, which was noted already. */
  noteFailure(host: SiteHost, why: RecipientResult, nowMs: number, wallMs: number): boolean {
    host.lastError = why.text;
    host.isRefusing = why.status === FAILED;
    if (nowMs < host.notBeforeMs) return false;
    host.notBeforeMs = nowMs + backoffMs(this.#options, host.failures, this.#random);
    host.failures++;
    // One that takes so many connections and no more is not down.
    if (host.ready === 0) host.downSinceWallMs ??= wallMs;
    return true;
  }

  /** A new connection is ready. */
  noteAnswer(host: SiteHost): void {
    host.isRefusing = false;
    host.failures = 0;
    host.downSinceWallMs = undefined;
    host.lastError = '';
    host.isTlsTold = false;
  }

  /** The one that will be tried first, if none answers; undefined while one does, as far as is known. */
  get firstToMend(): SiteHost | undefined {
    let first: SiteHost | undefined;
    for (const host of this.#hosts) {
      if (host.failures === 0) return undefined;
      if (first === undefined || host.notBeforeMs < first.notBeforeMs) first = host;
    }
    return first;
  }

  /** Since when none answers. */
  get downSinceWallMs(): number | undefined {
    let since = 0;
    for (const host of this.#hosts) {
      if (host.downSinceWallMs === undefined) return undefined;
      since = Math.max(since, host.downSinceWallMs);
    }
    return since;
  }

  /** Each that was tried last said that it never takes mail (RFC 7504): none of them is only away. */
  get areAllRefusing(): boolean {
    return this.#hosts.every(({ isRefusing }) => isRefusing);
  }
}
