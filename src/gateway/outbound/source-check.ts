/**
 * Whether the DNS confirms a source: the PTR record of its address names what it says in EHLO, and that name
 * has this address. Who takes mail looks the same up, and many refuse it where that fails, most of all by
 * IPv6. Asked by a gateway for its sources of IPv6 (sources.ts), by `config check --dns` and `explain`.
 */
import ipaddr from 'ipaddr.js';
import { pointerName } from '../../base/reversed-address.js';
import type { DnsAnswer, Resolver } from '../../platform/resolver.js';
import { isIpv6 } from './pure/source-choice.js';
import type { MailSource } from './pure/source-choice.js';

/** Of records, in one line. */
const NAMED_MAX = 5;

export type SourceVerdict =
  { readonly kind: 'confirmed' }
  /** `unknown`: the DNS gave no answer. */
  | { readonly kind: 'refuted' | 'unknown'; readonly why: string };

export function checkSource(
  { address, name }: MailSource, resolver: Resolver, done: (verdict: SourceVerdict) => void,
): void {
  resolver.ask(pointerName(address), 'PTR', (pointers) => {
    if (pointers.kind === 'failed') return done(unknown('PTR', address, pointers.why));
    const names = recordsOf(pointers);
    if (!names.includes(name)) {
      return done(refuted(`its PTR record says ${saidBy(names)}, and not ${name}`));
    }
    const type = isIpv6(address) ? 'AAAA' : 'A';
    resolver.ask(name, type, (answer: DnsAnswer<'A' | 'AAAA'>) => {
      if (answer.kind === 'failed') return done(unknown(type, name, answer.why));
      const addresses = recordsOf(answer);
      const isNamed = addresses.some((each) => isSame(each, address));
      done(isNamed ? { kind: 'confirmed' } : refuted(`${type} of ${name} says ${saidBy(addresses)}`));
    });
  });
}

function isSame(one: string, other: string): boolean {
  return ipaddr.isValid(one) && ipaddr.parse(one).toString() === ipaddr.parse(other).toString();
}

function recordsOf(answer: DnsAnswer<'A' | 'AAAA' | 'PTR'>): readonly string[] {
  return answer.kind === 'found' ? answer.records : [];
}

function saidBy(records: readonly string[]): string {
  if (records.length === 0) return 'nothing';
  return records.slice(0, NAMED_MAX).join(', ') + (records.length > NAMED_MAX ? ', …' : '');
}

function refuted(why: string): SourceVerdict {
  return { kind: 'refuted', why };
}

function unknown(type: string, name: string, why: string): SourceVerdict {
  return { kind: 'unknown', why: `no answer on ${type} of ${name}: ${why}` };
}
