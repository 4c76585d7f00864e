/**
 * How many connections to next hops there are, over all pools of a dispatcher, and who may open one more
 * (connection-pool.ts, dial.ts).
 *
 *   asked for ─► being set up ─ ready for mail ─► at work or idle ─► closed
 *
 * - All together: `max`. Where somebody's mail waits for one, no idle one is kept anywhere.
 * - Being set up to hosts by MX: half of that. Strangers' hosts that take connections and never greet hold
 *   each for minutes. Hosts that the configuration names are not counted there: one of those that never
 *   greets stops nobody's mail to others.
 * - To one address, by MX: ofAddressMax, whatever names lead there, for anybody has as many of those as he
 *   likes. Hosts of others that share an address with many (large providers do) wait for their turn there.
 *   An address has as many ways to be written, in an address literal too.
 *
 * That somebody waits for the first two is told once, and stands in status until it has not happened for
 * OVER_MS. Times are session time (dispatcher.ts).
 */
import ipaddr from 'ipaddr.js';
import type { EventLog } from '../../platform/ports.js';

/** So long after one was wanted in vain, idle connections end at once. */
const WANTED_MS = 1_000;
const OVER_MS = 10_000;
const SETTING_UP_SHARE = 1 / 2;

const FULL = 'mail waits for a connection to a next hop: there are as many as may be (delivery.connections)';
const OVER = 'connections to next hops are to be had again';

interface OfAddress {
  count: number;
  /** When one more was wanted last. */
  wantedMs: number;
}

export interface AccountLimits {
  readonly connectionsMax: number;
  /** To one address, of hosts by MX. */
  readonly ofAddressMax: number;
}

/** A limit that is reached. */
export interface FullLimit {
  /** In the configuration. */
  readonly key: string;
  /** How much of it is used. */
  readonly text: string;
}

export class ConnectionAccount {
  #limits: AccountLimits;
  readonly #log: EventLog;
  #nowMs = 0;
  #open = 0;
  /** To hosts by MX. */
  #settingUp = 0;
  #wantedMs = -Infinity;
  #refusedMs = -Infinity;
  #addressWantedMs = -Infinity;
  #isFull = false;
  /** By keyOf(). */
  readonly #ofAddress = new Map<string, OfAddress>();

  constructor(limits: AccountLimits, log: EventLog) {
    this.#limits = limits;
    this.#log = log;
  }

  renew(limits: AccountLimits): void {
    this.#limits = limits;
  }

  tick(nowMs: number): void {
    this.#nowMs = nowMs;
    const isFull = nowMs - this.#refusedMs < OVER_MS;
    if (isFull === this.#isFull) return;
    this.#isFull = isFull;
    if (isFull) this.#log.warn('nexthop', FULL, { open: this.#open, setting_up: this.#settingUp });
    else this.#log.info('nexthop', OVER, { open: this.#open, setting_up: this.#settingUp });
  }

  /** '' while there are some to be had. */
  get whyFull(): string {
    if (!this.#isFull) return '';
    return this.areAllOpen ? this.#openText : this.#settingUpText;
  }

  /** Why no further one may be asked for; undefined: it may. */
  fullFor(isByMx: boolean): FullLimit | undefined {
    if (this.areAllOpen) return { key: 'delivery.connections', text: this.#openText };
    if (this.room(isByMx) > 0) return undefined;
    return { key: 'half of delivery.connections', text: this.#settingUpText };
  }

  get #openText(): string {
    return `${String(this.#open)} of ${String(this.#limits.connectionsMax)} are open`;
  }

  get #settingUpText(): string {
    return `${String(this.#settingUp)} to hosts by MX of ${String(this.#settingUpMax)} are being set up`;
  }

  get #settingUpMax(): number {
    return Math.max(1, Math.floor(this.#limits.connectionsMax * SETTING_UP_SHARE));
  }

  get areAllOpen(): boolean {
    return this.#open >= this.#limits.connectionsMax;
  }

  /** So many more may be asked for. */
  room(isByMx: boolean): number {
    const left = this.#limits.connectionsMax - this.#open;
    return isByMx ? Math.min(left, this.#settingUpMax - this.#settingUp) : left;
  }

  /** Somebody's mail waits, as there is no room. */
  noteRefused(): void {
    this.#refusedMs = this.#nowMs;
    if (this.areAllOpen) this.#wantedMs = this.#nowMs;
  }

  onAskedFor(isByMx: boolean): void {
    this.#open++;
    if (isByMx) this.#settingUp++;
  }

  /** It is ready, or is closed before. */
  onSetUp(isByMx: boolean): void {
    if (isByMx) this.#settingUp--;
  }

  onClosed(): void {
    this.#open--;
  }

  /** False: there are as many as may be, and who asks is to come again. */
  takeAddress(address: string): boolean {
    const key = keyOf(address);
    const known = this.#ofAddress.get(key);
    if (known === undefined) {
      this.#ofAddress.set(key, { count: 1, wantedMs: -Infinity });
      return true;
    }
    if (this.waitsForAddress(address)) return false;
    known.count++;
    return true;
  }

  giveAddress(address: string): void {
    const key = keyOf(address);
    const known = this.#ofAddress.get(key);
    if (known === undefined) return;
    known.count--;
    if (known.count === 0) this.#ofAddress.delete(key);
  }

  /** For mail that is there: there is no room at the address now. */
  waitsForAddress(address: string): boolean {
    const known = this.#ofAddress.get(keyOf(address));
    if (known === undefined || !this.isAddressFull(address)) return false;
    known.wantedMs = this.#nowMs;
    this.#addressWantedMs = this.#nowMs;
    return true;
  }

  isAddressFull(address: string): boolean {
    return (this.#ofAddress.get(keyOf(address))?.count ?? 0) >= this.#limits.ofAddressMax;
  }

  /** Somebody may wait for what an idle connection keeps. */
  get isAnyWanted(): boolean {
    return this.#nowMs - Math.max(this.#wantedMs, this.#addressWantedMs) < WANTED_MS;
  }

  /** Somebody waits for one, maybe to this address: an idle one is not kept. */
  isWanted(address: string): boolean {
    if (this.#nowMs - this.#wantedMs < WANTED_MS) return true;
    const wantedMs = this.#ofAddress.get(keyOf(address))?.wantedMs ?? -Infinity;
    return this.#nowMs - wantedMs < WANTED_MS;
  }
}

/** The same for each way to write an address of IPv6; one of IPv4 in it leads where that of IPv4 does. */
function keyOf(address: string): string {
  if (!address.includes(':') || !ipaddr.isValid(address)) return address;
  return ipaddr.process(address).toString();
}
