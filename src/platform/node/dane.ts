/**
 * Whether a server's certificate is the one that TLSA records speak of (RFC 6698, 7671, 7672), from the
 * chain that came in the handshake. Asked by client-transport.ts before a command is sent; who asks the DNS
 * for the records, and what happens without any: gateway/outbound/pure/host-tlsa.ts.
 *
 * | usage        | what must match the record                        | judged besides (RFC 7672 3.1, 3.2)  |
 * |--------------|---------------------------------------------------|-------------------------------------|
 * | 3 DANE-EE    | the server's certificate                          | nothing: neither name nor date      |
 * | 2 DANE-TA    | one above it in the chain; or what signed the top | signatures up to it, that who signs |
 * |              | one and stands whole in the record                | may, all dates, and one of the names|
 * | 0, 1, others | unusable (RFC 7672 3.1.3)                         |                                     |
 *
 * | selector | compared              | | matching | by                          |
 * |----------|-----------------------| |----------|-----------------------------|
 * | 0        | the whole certificate | | 0        | all bytes                   |
 * | 1        | its public key (SPKI) | | 1, 2     | SHA-256, SHA-512            |
 * | others   | unusable              | | others   | unusable                    |
 *
 * A record whose association can't be what its numbers say is unusable as well, and so is one that takes
 * long. Of records that differ in their digest only the stronger ones count (RFC 7671 9).
 *
 * DEVIATION (RFC 5280 6.1): path lengths, name constraints and policies are not looked at. Who issues below a
 * trust anchor is the choice of the domain that names it.
 *
 * Pure, but for OpenSSL's reading of certificates. What a server shows is bounded (shown-certificates.ts),
 * and no more than CHAIN_MAX certificates of it are looked at, by RECORDS_MAX records.
 */
import { X509Certificate, createHash, createPublicKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import type { DetailedPeerCertificate } from 'node:tls';
import type { TlsaData } from '../resolver.js';
import type { DaneTerms } from '../transport.js';
import { whyNotBounded } from './bounded-chain.js';
import { boundedKindOf, publicKeyIn } from './bounded-key.js';

const DANE_TA = 2;
const DANE_EE = 3;
const CERTIFICATE = 0;
const PUBLIC_KEY = 1;
const WHOLE = 0;
const SHA_256 = 1;
const SHA_512 = 2;
const DIGEST_OCTETS: ReadonlyMap<number, number> = new Map([[SHA_256, 32], [SHA_512, 64]]);

const CHAIN_MAX = 9;
const RECORDS_MAX = 32;
/** Each costs a signature for each certificate of the chain. */
const ANCHORS_MAX = 4;

/** Those by which a certificate can be judged. */
export function usableRecords(records: readonly TlsaData[]): readonly TlsaData[] {
  let anchors = 0;
  const isWithin = (record: TlsaData): boolean => !isWholeAnchor(record) || ++anchors <= ANCHORS_MAX;
  const usable = records.filter(isKnown).slice(0, RECORDS_MAX).filter(isRead).filter(isWithin);
  return usable.filter(({ usage, selector, matching }) => matching !== SHA_256 || !usable.some((other) =>
    other.usage === usage && other.selector === selector && other.matching === SHA_512));
}

/** Undefined: nothing in them can be used. */
export function usableTerms(dane: DaneTerms | undefined): DaneTerms | undefined {
  const records = usableRecords(dane?.records ?? []);
  return dane === undefined || records.length === 0 ? undefined : { ...dane, records };
}

/** Server's first, each signed by the next as far as TLS has found that; DER. */
export function chainOf(shown: DetailedPeerCertificate): readonly Uint8Array[] {
  const chain: Uint8Array[] = [];
  // Empty when nothing was shown, and without an issuer at the top, whatever the type says.
  let next: Partial<DetailedPeerCertificate> | undefined = shown;
  while (next?.raw !== undefined && chain.length < CHAIN_MAX) {
    chain.push(next.raw);
    next = next.issuerCertificate === next ? undefined : next.issuerCertificate;
  }
  return chain;
}

/** '' when the chain is right by usable records; else what is wrong with it. */
export function whyNotByDane(
  chain: readonly Uint8Array[], { records, names }: DaneTerms, nowMs: number,
): string {
  const [leaf] = chain;
  if (leaf === undefined) return 'it shows no certificate, and has TLSA records';
  if (records.some((record) => record.usage === DANE_EE && isOf(record, leaf))) return '';
  const anchors = records.filter(({ usage }) => usage === DANE_TA);
  try {
    return whyNotByAnchor(chain, anchors, names, nowMs);
  } catch {
    return 'its certificate, or one above it, can not be read';
  }
}

function whyNotByAnchor(
  chain: readonly Uint8Array[], anchors: readonly TlsaData[], names: readonly string[], nowMs: number,
): string {
  const path: X509Certificate[] = [];
  for (let at = 0; anchors.length > 0 && at < chain.length; at++) {
    const der = chain[at];
    if (der === undefined) break;
    const certificate = new X509Certificate(der);
    const below = path.at(-1);
    if (below !== undefined && !hasSigned(certificate, below)) break;
    path.push(certificate);
    if (at > 0 && anchors.some((record) => isOf(record, der))) return whyNotPath(path, names, nowMs);
  }
  const top = path.at(-1);
  if (top !== undefined && anchors.some((record) => isAbove(record, top, nowMs))) {
    return whyNotPath(path, names, nowMs);
  }
  return 'its certificate is not the one that its TLSA records speak of';
}

function whyNotPath(path: readonly X509Certificate[], names: readonly string[], nowMs: number): string {
  const [leaf] = path;
  if (!path.every((each) => isInTime(each, nowMs))) {
    return 'a certificate that leads to its TLSA records has expired, or is not valid yet';
  }
  // Wildcards stand for one whole label (RFC 7672 3.2.3).
  const isNamed = names.some((name) => leaf?.checkHost(name, { partialWildcards: false }) !== undefined);
  return isNamed ? '' : `its certificate, by its TLSA records, is not for ${names.join(' or ')}`;
}

/** The record holds whole what has signed the certificate, which need not have come along (RFC 7671 5.2). */
function isAbove(
  record: TlsaData, below: X509Certificate, nowMs: number,
): boolean {
  const { selector, association } = record;
  if (!isWholeAnchor(record)) return false;
  if (selector === PUBLIC_KEY) return below.verify(keyOf(association));
  const anchor = new X509Certificate(association);
  return hasSigned(anchor, below) && isInTime(anchor, nowMs);
}

function hasSigned(issuer: X509Certificate, below: X509Certificate): boolean {
  return issuer.ca && below.checkIssued(issuer) && below.verify(issuer.publicKey);
}

function isWholeAnchor({ usage, matching }: TlsaData): boolean {
  return usage === DANE_TA && matching === WHOLE;
}

function isInTime({ validFrom, validTo }: X509Certificate, nowMs: number): boolean {
  return Date.parse(validFrom) <= nowMs && nowMs <= Date.parse(validTo);
}

function isOf({ selector, matching, association }: TlsaData, der: Uint8Array): boolean {
  const selected = selector === CERTIFICATE ? der : publicKeyIn(der)?.key;
  if (selected === undefined) return false;
  const data = matching === WHOLE ? selected
    : createHash(matching === SHA_256 ? 'sha256' : 'sha512').update(selected).digest();
  return Buffer.compare(data, association) === 0;
}

/** By its numbers; of a digest, also by its length. */
function isKnown({ usage, selector, matching, association }: TlsaData): boolean {
  if (usage !== DANE_TA && usage !== DANE_EE) return false;
  if (selector !== CERTIFICATE && selector !== PUBLIC_KEY) return false;
  return matching === WHOLE || association.length === DIGEST_OCTETS.get(matching);
}

/** What stands whole in it can be what it should be, and takes no long. */
function isRead({ selector, matching, association }: TlsaData): boolean {
  if (matching !== WHOLE) return true;
  const isKey = selector === PUBLIC_KEY;
  if (isKey ? boundedKindOf(association) === undefined : whyNotBounded([association]) !== '') return false;
  try {
    if (isKey) keyOf(association);
    return isKey || Buffer.compare(new X509Certificate(association).raw, association) === 0;
  } catch {
    return false;
  }
}

function keyOf(spki: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.from(spki), format: 'der', type: 'spki' });
}
