/**
 * The addresses that mail of this gateway leaves from, and what is known of each (`gateway.sources`).
 *
 *   IPv6     UNKNOWN ─ PTR and AAAA are right ─► CONFIRMED ◄─► REFUTED   asked every CHECKED_MS, at a reload
 *               └ no answer: UNKNOWN                └ no answer: as before, asked again after UNANSWERED_MS
 *   any      AT HAND ─ no address of this machine any more ─► GONE ─ a connection from it opens ─► AT HAND
 *
 * Each change is told in the log once. Asked by the dispatcher's tick, never with a delivery. Which source a
 * host gets: pure/source-choice.ts.
 */
import type { EventLog } from '../../platform/ports.js';
import type { Resolver } from '../../platform/resolver.js';
import { isIpv6, waysTo } from './pure/source-choice.js';
import type { KnownSource, MailSource, SourcedHost, Ways } from './pure/source-choice.js';
import { checkSource } from './source-check.js';
import type { SourceVerdict } from './source-check.js';

/** Whoever looks it up has its DNS answer for about as long. */
const CHECKED_MS = 3_600_000;
const UNANSWERED_MS = 60_000;

const CONFIRMED = 'the DNS confirms a source of IPv6: mail by MX leaves from it';
const REFUTED = 'the DNS does not confirm a source of IPv6: no mail by MX leaves from it';
const GONE = 'a source is no address of this machine: mail that leaves from it waits';
const BACK = 'a source is an address of this machine again';
const NOT_ASKED = 'the DNS was not asked yet';

/** For status. */
export interface SourceState extends MailSource {
  /** Why no mail leaves from it; '' if it does. Of one of IPv6 that is not confirmed: none by MX. */
  readonly why: string;
}

/** What the DNS says of one. */
export interface JudgedSource extends KnownSource {
  /** Why it does not confirm it; '' if it does. */
  readonly why: string;
}

interface SourcePorts {
  readonly resolver: Resolver;
  readonly log: EventLog;
}

class OneSource implements MailSource {
  readonly address: string;
  readonly name: string;
  isConfirmed = false;
  isGone = false;
  whyNot = '';
  /** What was told last, and why. */
  told = '';
  isAsked = false;
  dueMs = -Infinity;

  constructor({ address, name }: MailSource) {
    this.address = address;
    this.name = name;
    if (isIpv6(address)) this.whyNot = NOT_ASKED;
  }
}

export class Sources {
  #all: readonly OneSource[] = [];
  #ofIpv6: readonly OneSource[] = [];
  readonly #ports: SourcePorts;
  #nowMs = 0;

  constructor(sources: readonly MailSource[], ports: SourcePorts) {
    this.#ports = ports;
    this.renew(sources);
  }

  /** What is known of one that stays under its name counts until it is asked anew, at once. */
  renew(sources: readonly MailSource[]): void {
    const before = this.#all;
    this.#all = sources.map((source) => before.find(({ address, name }) =>
      address === source.address && name === source.name) ?? new OneSource(source));
    this.#ofIpv6 = this.#all.filter(({ address }) => isIpv6(address));
    for (const source of this.#ofIpv6) source.dueMs = -Infinity;
  }

  get areNone(): boolean {
    return this.#all.length === 0;
  }

  tick(nowMs: number): void {
    this.#nowMs = nowMs;
    for (const source of this.#ofIpv6) if (!source.isAsked && nowMs >= source.dueMs) this.#check(source);
  }

  /** `allowed`: the addresses of those that its route names; undefined: all. */
  waysTo(addresses: readonly string[], host: SourcedHost, allowed: readonly string[] | undefined): Ways {
    const sources = allowed === undefined ? this.#all
      : this.#all.filter(({ address }) => allowed.includes(address));
    return waysTo(addresses, host, sources);
  }

  /** Nothing can leave from it. */
  noteGone({ address }: MailSource): void {
    const source = this.#of(address);
    if (source === undefined || source.isGone) return;
    source.isGone = true;
    this.#ports.log.warn('source', GONE, { address, name: source.name });
  }

  /** A connection from it has opened. */
  noteOpen({ address }: MailSource): void {
    const source = this.#of(address);
    if (source?.isGone !== true) return;
    source.isGone = false;
    this.#ports.log.info('source', BACK, { address, name: source.name });
  }

  states(): readonly SourceState[] {
    return this.#all.map(({ address, name, isGone, whyNot }) =>
      ({ address, name, why: isGone ? 'it is no address of this machine' : whyNot }));
  }

  /** Those of IPv6, as mail by MX goes by them. */
  judged(): readonly JudgedSource[] {
    return this.#ofIpv6.map(({ address, name, isConfirmed, whyNot: why }) =>
      ({ address, name, isConfirmed, why }));
  }

  #of(address: string): OneSource | undefined {
    return this.#all.find((source) => source.address === address);
  }

  #check(source: OneSource): void {
    source.isAsked = true;
    checkSource(source, this.#ports.resolver, (verdict) => {
      source.isAsked = false;
      source.dueMs = this.#nowMs + (verdict.kind === 'unknown' ? UNANSWERED_MS : CHECKED_MS);
      this.#judge(source, verdict);
    });
  }

  #judge(source: OneSource, verdict: SourceVerdict): void {
    const isKnown = source.told !== '' && source.told !== 'unknown';
    if (verdict.kind === 'unknown' && isKnown) return;
    const { log } = this.#ports;
    source.isConfirmed = verdict.kind === 'confirmed';
    source.whyNot = verdict.kind === 'confirmed' ? '' : verdict.why;
    const { address, name, whyNot: why } = source;
    const now = verdict.kind === 'refuted' ? why : verdict.kind;
    if (now === source.told) return;
    source.told = now;
    if (verdict.kind === 'confirmed') log.info('source', CONFIRMED, { address, name });
    else log.warn('source', REFUTED, { address, name, why });
  }
}
