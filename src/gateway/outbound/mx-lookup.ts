/**
 * Asks the DNS where mail for a domain goes: MX, and where there is none, the domain's addresses. Answers are
 * kept by the resolver, by their TTL; here nothing is. What they mean: pure/mail-exchangers.ts, and
 * pure/host-tlsa.ts of TLSA records.
 */
import { isIP } from 'node:net';
import { NAME_CHARACTERS_MAX, isAskable } from '../../platform/node/dns/dns-message.js';
import type { DnsAnswer, Resolver } from '../../platform/resolver.js';
import {
  addressOfLiteral, wayByAddress, wayByMx, wayOfIpv6Only, wayOfNoDomain, wayOfNoName,
} from './pure/mail-exchangers.js';
import type { MailWay } from './pure/mail-exchangers.js';
import { isAliasInDoubt, tlsaBases, tlsaName, tlsaVerdict } from './pure/host-tlsa.js';
import type { TlsaVerdict } from './pure/host-tlsa.js';

export interface MxOptions {
  /** Names of this host, in lower case: mail must not come back to it. */
  readonly ownNames: readonly string[];
  /** Loopback, private and other addresses that no host of the Internet has may be connected to. */
  readonly allowsPrivate: boolean;
  readonly usesIpv6: boolean;
  /** Policies of domains are asked for (sts/sts-policies.ts). */
  readonly usesMtaSts: boolean;
  /** Connections to the hosts of one set of MX records, for all domains that have it. */
  readonly connectionsMax: number;
  /** To one address, whatever hosts and domains lead there. */
  readonly connectionsPerAddressMax: number;
}

export class MxLookup {
  #options: MxOptions;
  readonly #resolver: Resolver;

  constructor(options: MxOptions, resolver: Resolver) {
    this.#options = options;
    this.#resolver = resolver;
  }

  renew(options: MxOptions): void {
    this.#options = options;
  }

  get allowsPrivate(): boolean { return this.#options.allowsPrivate; }

  /** An operator may have had its records mended. */
  forgetMissing(domain: string): void {
    this.#resolver.forgetMissing?.(domain);
  }

  /** `done` is called once, maybe before this returns; a domain of the DNS is given in ASCII. */
  ask(domain: string, done: (way: MailWay) => void): void {
    if (domain === '') return done(wayOfNoDomain());
    const literal = addressOfLiteral(domain);
    if (literal !== undefined) {
      return done({ hosts: [{ name: literal, preference: 0 }], isAuthentic: false });
    }
    if (!isAskable(domain)) return done(wayOfNoName());
    const isOwnName = (name: string): boolean => this.#options.ownNames.includes(name);
    this.#resolver.ask(domain, 'MX', (answer) => {
      const way = wayByMx(domain, answer, isOwnName);
      if (way !== undefined) return done(way);
      const isAuthentic = answer.kind !== 'failed' && answer.isAuthentic;
      this.addresses(domain, (answers, isIpv6Only) => {
        const isOwn = isOwnName(domain);
        done(isIpv6Only && !isOwn ? wayOfIpv6Only(domain)
          : wayByAddress(domain, answers, isOwn, isAuthentic));
      });
    });
  }

  /**
   * Of a host, or of an address itself; as many answers as there are families in use, IPv6 first. A host
   * without an address of IPv4 may have one of IPv6 (`isIpv6Only`): that is asked where IPv6 is not used.
   */
  addresses(
    name: string, done: (answers: readonly DnsAnswer<'A' | 'AAAA'>[], isIpv6Only: boolean) => void,
  ): void {
    // Not as lenient as ipaddr.js, which also takes 60 µs to say no: "0x7f000001" is a name.
    if (isIP(name) !== 0) return done([{ kind: 'found', records: [name], isAuthentic: false }], false);
    if (!this.#options.usesIpv6) {
      return this.#resolver.ask(name, 'A', (four) => {
        if (four.kind !== 'no-records') return done([four], false);
        this.#resolver.ask(name, 'AAAA', (six) => {
          if (six.kind === 'found') done([four], true);
          else done([six, four], false);
        });
      });
    }
    this.#resolver.ask(name, 'AAAA', (six) => {
      this.#resolver.ask(name, 'A', (four) => { done([six, four], false); });
    });
  }

  /** Of a host whose way is authentic, with the answers on its addresses; undefined: none that count. */
  tlsa(
    host: string, port: number, answers: readonly DnsAnswer<'A' | 'AAAA'>[],
    done: (verdict: Exclude<TlsaVerdict, 'next'> | undefined) => void,
  ): void {
    if (!isAliasInDoubt(answers)) return this.#tlsaOf(tlsaBases(host, answers), port, done);
    this.#resolver.ask(host, 'CNAME', (alias) => {
      if (alias.kind === 'failed') {
        const isUnasked = alias.isUnasked === true;
        return done({ failed: `no answer on CNAME of ${host}: ${alias.why}`, isUnasked });
      }
      this.#tlsaOf(alias.kind === 'found' && alias.isAuthentic ? [host] : [], port, done);
    });
  }

  #tlsaOf(
    bases: readonly string[], port: number,
    done: (verdict: Exclude<TlsaVerdict, 'next'> | undefined) => void,
  ): void {
    const [base, ...others] = bases;
    if (base === undefined) return done(undefined);
    const name = tlsaName(base, port);
    // What is too long to exist has no records: a failure would keep mail for all its life.
    if (name.length > NAME_CHARACTERS_MAX) return this.#tlsaOf(others, port, done);
    this.#resolver.ask(name, 'TLSA', (answer) => {
      const verdict = tlsaVerdict(base, port, answer);
      if (verdict === 'next') this.#tlsaOf(others, port, done);
      else done(verdict);
    });
  }
}
