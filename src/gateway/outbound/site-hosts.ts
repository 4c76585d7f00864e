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
 * connection, for some lock a user out after a few. For the same reason a host that refused it is left alone
 * for as long as a message that was put off, until there is another password.
 *
 * One by MX that has not been met within the hour is met by so many connections at a time: it may be one that
 * takes them and never greets.
 *
 * The most preferred one that may be tried is; of equals any, by chance (RFC 5321 5.1). So a host that stays
 * away costs one connection a minute, and mail goes to the next.
 *
 * Behind hosts by MX may stand those that the route names, its fallback: none of these is used while a host
 * by MX is only put off, as its address is full or the DNS had no room to ask. Where TLSA records or a policy
 * ask for TLS with a host by MX, in doubt too, no mail goes to these in clear, unless they are on this
 * machine, and none at all while such a host failed by its TLS: else whoever sits between us and the host
 * could have the mail in clear (RFC 7672 2.2, RFC 8461 5).
 */
import { isLoopback } from '../../platform/node/own-host.js';
import type { PasswordFound, Random } from '../../platform/ports.js';
import { FAILED } from '../mail-types.js';
import type { HostTerms, RecipientResult } from '../mail-types.js';
import { isPasswordRefused, isTlsTrouble } from './pure/classify.js';

/** So long after there was no room for a connection to a host it is looked for again. */
const ROOM_MS = 500;

/** At a time, to one by MX that has not taken mail for MET_MS. */
const UNMET_MAX = 2;
const MET_MS = 3_600_000;

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
  /** A host of the route on this machine: nobody stands between. */
  readonly isHere: boolean;
  /** Of its own; undefined: those of its site. */
  readonly terms: HostTerms | undefined;
  /** TLSA records of it, or the policy of its domains, ask for TLS with it; in doubt they do. */
  isBound = false;
  /** It had not the TLS that they ask for, when it failed last. */
  isTlsWrong = false;
  /** Connections to it that are being set up. */
  connecting = 0;
  /** Those that are. */
  ready = 0;
  failures = 0;
  /** It greets, and then says 421 to mail, or closes: it is back when it has taken some. */
  isTurningAway = false;
  /** It said last that it takes no mail at all. */
  isRefusing = false;
  /** It has taken a connection, or asks for no password. */
  isProven = true;
  /** Session time at which a connection to it was ready for mail last. */
  metMs = -Infinity;
  /** No room for a connection was left at this address of it; '' otherwise. */
  fullAddress = '';
  /** Since the first of those; undefined while it answers. */
  downSinceWallMs: number | undefined;
  notBeforeMs = 0;
  /** Of the last failure; undefined while it answers. */
  lastWhy: RecipientResult | undefined;
  /** So often, one after the other, it refused our user and password. */
  denials = 0;
  /** With which password it did so last: another one is tried at once. */
  deniedWith: PasswordFound | undefined;
  /** It has taken an envelope that stood behind a dot (RFC 2920 3.1). */
  bearsFollowers = false;
  /** One is there, to learn that. */
  isTrying = false;
  /** That its TLS is not as the DNS or a policy says, or that nobody could learn how, is told once. */
  isTlsTold = false;

  constructor(
    name: string, port: number, preference: number, isByMx: boolean, isUnnamed = false, terms?: HostTerms,
  ) {
    this.name = name;
    this.port = port;
    this.preference = preference;
    this.isByMx = isByMx;
    this.isUnnamed = isUnnamed;
    this.terms = terms;
    this.isHere = !isByMx && isLoopback(name);
  }
}

export interface BackoffOptions {
  /** First and longest wait after failed connection attempts. */
  readonly backoffFirstMs: number;
  readonly backoffMaxMs: number;
  /** First and longest wait after a refused password. */
  readonly deniedFirstMs: number;
  readonly deniedMaxMs: number;
}

/** The next wait after so many failures; the same for all who wait for a next hop, or for its names. */
export function backoffMs(
  { backoffFirstMs, backoffMaxMs }: Pick<BackoffOptions, 'backoffFirstMs' | 'backoffMaxMs'>,
  failures: number, random: Random,
): number {
  const delayMs = Math.min(backoffMaxMs, backoffFirstMs * 2 ** Math.min(failures, 20));
  return delayMs * (0.75 + 0.5 * random());
}

export class SiteHosts {
  readonly #hosts: readonly SiteHost[];
  /** Those that mail goes to now: all, or hosts by MX alone. */
  #open: readonly SiteHost[];
  #options: BackoffOptions;
  readonly #random: Random;

  constructor(hosts: readonly SiteHost[], options: BackoffOptions, random: Random) {
    this.#hosts = hosts;
    this.#open = hosts;
    this.#options = options;
    this.#random = random;
  }

  /** Whoever refused for good may be asked by another name now: no mail ends by what was said before. */
  renew(options: BackoffOptions): void {
    this.#options = options;
    for (const host of this.#hosts) host.isRefusing = false;
  }

  /** The one to connect to; undefined while none may be tried. */
  next(nowMs: number): SiteHost | undefined {
    let best: SiteHost | undefined;
    let equals = 0;
    /** One that may be good is being asked who we are, or met: none behind it is used meanwhile. */
    let askedPreference = Infinity;
    let isAnyPutOff = false;
    for (const host of this.#open) {
      const isUnmet = host.isByMx && host.connecting >= UNMET_MAX && nowMs - host.metMs >= MET_MS;
      const isProbed = isUnmet || (host.connecting > 0 && (host.failures > 0 || !host.isProven));
      if (isProbed && host.failures === 0) askedPreference = Math.min(askedPreference, host.preference);
      const isOver = nowMs >= host.notBeforeMs;
      if (host.isByMx && host.failures === 0 && !isOver) isAnyPutOff = true;
      const isFree = isOver && !isProbed;
      if (!isFree || (best !== undefined && host.preference > best.preference)) continue;
      equals = best !== undefined && host.preference === best.preference ? equals + 1 : 1;
      if (equals === 1 || this.#random() * equals < 1) best = host;
    }
    if (best === undefined || best.preference > askedPreference) return undefined;
    return isAnyPutOff && !best.isByMx ? undefined : best;
  }

  /**
   * False: attempts that ran side by side and failed together are one failure, which was noted already.
   * `wallMs` undefined: the host is not to blame, and not called down. `password`: with which we came.
   */
  noteFailure(
    host: SiteHost, why: RecipientResult, nowMs: number, wallMs: number | undefined,
    password: PasswordFound | undefined,
  ): boolean {
    host.lastWhy = why;
    host.isRefusing = why.status === FAILED;
    const isTlsWrong = (host.isBound || this.#areNoneNamed) && isTlsTrouble(why);
    const isNoted = nowMs < host.notBeforeMs;
    this.#noteTls(host, isTlsWrong || (isNoted && host.isTlsWrong));
    if (isNoted) return false;
    const isDenied = isPasswordRefused(why);
    host.notBeforeMs = nowMs + (isDenied ? this.#deniedMs(host) : this.#backoffMs(host));
    host.denials = isDenied ? host.denials + 1 : 0;
    host.deniedWith = isDenied ? password : undefined;
    host.failures++;
    // One that takes so many connections and no more is not down.
    if (host.ready === 0) host.downSinceWallMs ??= wallMs;
    return true;
  }

  /** There is no room for a connection to it now: it has not failed. */
  putOff(host: SiteHost, fullAddress: string, nowMs: number): void {
    host.fullAddress = fullAddress;
    host.notBeforeMs = Math.max(host.notBeforeMs, nowMs + ROOM_MS);
  }

  /** The same, where the host had been ready. What was noted already is what it was noted as. */
  noteTurnedAway(host: SiteHost, why: RecipientResult, nowMs: number, wallMs: number): boolean {
    const isNoted = this.noteFailure(host, why, nowMs, wallMs, undefined);
    if (isNoted) host.isTurningAway = true;
    return isNoted;
  }

  /** Those that failed may be tried now, and are still probed by one connection at a time. */
  hasten(): void {
    for (const host of this.#hosts) host.notBeforeMs = 0;
  }

  /** A host that refused another password than we have for it now may be tried. */
  notePasswords(now: (host: SiteHost) => PasswordFound | undefined): void {
    for (const host of this.#hosts) {
      if (host.deniedWith === undefined || host.deniedWith === now(host)) continue;
      host.deniedWith = undefined;
      host.denials = 0;
      host.notBeforeMs = 0;
    }
  }

  /** What one of them said last of our user and password is no. */
  get isDenied(): boolean {
    return this.#hosts.some(({ denials }) => denials > 0);
  }

  #backoffMs({ failures }: SiteHost): number {
    return backoffMs(this.#options, failures, this.#random);
  }

  #deniedMs({ denials }: SiteHost): number {
    const { deniedFirstMs, deniedMaxMs } = this.#options;
    return backoffMs({ backoffFirstMs: deniedFirstMs, backoffMaxMs: deniedMaxMs }, denials, this.#random);
  }

  /** A new connection is ready, and has brought mail where that was turned away. */
  noteAnswer(host: SiteHost): void {
    host.isRefusing = false;
    host.isTurningAway = false;
    host.failures = 0;
    host.downSinceWallMs = undefined;
    host.lastWhy = undefined;
    host.denials = 0;
    host.deniedWith = undefined;
    host.isTlsTold = false;
    this.#noteTls(host, false);
  }

  #noteTls(host: SiteHost, isWrong: boolean): void {
    if (host.isTlsWrong === isWrong) return;
    host.isTlsWrong = isWrong;
    const isAnyWrong = this.#hosts.some(({ isTlsWrong }) => isTlsWrong);
    this.#open = isAnyWrong ? this.#hosts.filter(({ isByMx }) => isByMx) : this.#hosts;
  }

  /** The policy names none by MX. */
  get #areNoneNamed(): boolean {
    return this.#hosts.some(({ isUnnamed }) => isUnnamed)
      && this.#hosts.every(({ isByMx, isUnnamed }) => isUnnamed || !isByMx);
  }

  /** To one that has not failed a connection is being set up: it may take mail yet. */
  get isAnyBeingMet(): boolean {
    return this.#open.some(({ failures, connecting }) => failures === 0 && connecting > 0);
  }

  /** Of any of them TLS is asked for. */
  get isBound(): boolean {
    return this.#hosts.some(({ isBound }) => isBound);
  }

  /** Over a connection that is ready. */
  mayTake(host: SiteHost, isSecure: boolean): boolean {
    return host.isByMx || (this.#open.includes(host) && (isSecure || host.isHere || !this.isBound));
  }

  /** The one that will be tried first, if none answers; undefined while one does, as far as is known. */
  get firstToMend(): SiteHost | undefined {
    let first: SiteHost | undefined;
    for (const host of this.#open) {
      if (host.failures === 0) return undefined;
      if (first === undefined || host.notBeforeMs < first.notBeforeMs) first = host;
    }
    return first;
  }

  /** The same, where no mail at all gets through. */
  get firstOfNone(): SiteHost | undefined {
    return this.#open.some(({ ready }) => ready > 0) ? undefined : this.firstToMend;
  }

  /** Since when none answers. */
  get downSinceWallMs(): number | undefined {
    let since = 0;
    for (const host of this.#open) {
      if (host.downSinceWallMs === undefined) return undefined;
      since = Math.max(since, host.downSinceWallMs);
    }
    return since;
  }

  /**
   * Each that was tried last said that it never takes mail (RFC 7504): none of them is only away, nor asked
   * anew just now.
   */
  get areAllRefusing(): boolean {
    return this.#hosts.every(({ isRefusing, connecting }) => isRefusing && connecting === 0);
  }
}
