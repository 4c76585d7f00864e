/**
 * Words of TLS reports (RFC 8460): what a failed session is called in one, and where a domain wants them.
 * Who counts and sends: tls-reports/.
 *
 * | what our words say                              | result type (RFC 8460 4.3)  |
 * |-------------------------------------------------|-----------------------------|
 * | no STARTTLS offered, or refused                 | starttls-not-supported      |
 * | no answer on TLSA records of a signed zone      | dnssec-invalid              |
 * | the certificate has expired, is not for the     | certificate-expired,        |
 * | host, or by nobody who is trusted               | -host-mismatch, -not-trusted|
 * | anything else                                   | validation-failure          |
 *
 * Pure.
 */
import type { DnsAnswer } from '../../../platform/resolver.js';

export const RESULT_TYPES = [
  'starttls-not-supported', 'certificate-host-mismatch', 'certificate-not-trusted', 'certificate-expired',
  'validation-failure', 'dnssec-invalid', 'tlsa-invalid',
  'sts-policy-fetch-error', 'sts-policy-invalid', 'sts-webpki-invalid',
] as const;
export type TlsResultType = typeof RESULT_TYPES[number];

/** A domain may name more: it gets no more copies. */
const RUA_MAX = 3;
export const URI_CHARACTERS_MAX = 512;

const RECORD = /^v=TLSRPTv1[ \t]*;/;
const URI = /^(mailto:|https:\/\/)[!-~]+$/i;

/** The first row that fits counts. */
const TYPES: readonly (readonly [RegExp, TlsResultType])[] = [
  [/offers no STARTTLS|refused STARTTLS/, 'starttls-not-supported'],
  [/no answer on (TLSA|CNAME) of /, 'dnssec-invalid'],
  [/CERT_HAS_EXPIRED|CERT_NOT_YET_VALID|has expired, or/, 'certificate-expired'],
  [/ALTNAME_INVALID|HOSTNAME_MISMATCH|is not for /, 'certificate-host-mismatch'],
  [/SELF_SIGNED|UNABLE_TO_|ISSUER|CERT_UNTRUSTED|INVALID_CA/, 'certificate-not-trusted'],
];

/** `text`: what the session, or the judge of a certificate, said. */
export function tlsResultType(text: string): TlsResultType {
  return TYPES.find(([said]) => said.test(text))?.[1] ?? 'validation-failure';
}

export function tlsReportName(domain: string): string { return `_smtp._tls.${domain}`; }

/** Of a domain that wants reports; more than one record is none (RFC 8460 3). */
export function reportUris(answer: DnsAnswer<'TXT'>): readonly string[] {
  if (answer.kind !== 'found') return [];
  const [record, ...more] = answer.records.filter((text) => RECORD.test(text));
  if (record === undefined || more.length > 0) return [];
  for (const field of record.split(';')) {
    const at = field.indexOf('=');
    if (at < 0 || field.slice(0, at).trim() !== 'rua') continue;
    const uris = field.slice(at + 1).split(',').map((uri) => uri.trim());
    return uris.filter((uri) => uri.length <= URI_CHARACTERS_MAX && URI.test(uri)).slice(0, RUA_MAX);
  }
  return [];
}
