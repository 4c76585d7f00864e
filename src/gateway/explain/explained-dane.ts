/**
 * What the DNS says of TLS with a host by MX, for `explain`: its TLSA records, found and judged as a
 * gateway does it before it connects (gateway/outbound/pure/host-tlsa.ts, platform/node/dane.ts).
 */
import type { MxLookup } from '../outbound/mx-lookup.js';
import { isAliasInDoubt, tlsaBases } from '../outbound/pure/host-tlsa.js';
import type { TlsaVerdict } from '../outbound/pure/host-tlsa.js';
import { usableRecords } from '../../platform/node/dane.js';
import type { DnsAnswer, TlsaData } from '../../platform/resolver.js';

export interface ExplainedDane {
  readonly text: string;
  /** It is not connected to. */
  readonly isFailed: boolean;
  /** Records of its own judge it. */
  readonly isBound: boolean;
  /** The DNS has proved that it has no records: TLS with it is as the route says. */
  readonly isFree: boolean;
}

type Addresses = readonly DnsAnswer<'A' | 'AAAA'>[];

const RECORDS_SHOWN_MAX = 8;
/** Enough to compare with. */
const OCTETS_SHOWN = 8;

/** Where nothing is asked about any host. */
export const UNSIGNED_MX = 'none asked for: no believed resolver says that the MX records are signed';

/** `host` is one of MX records that are signed; what the DNS says of its addresses. */
export async function daneOf(
  host: string, port: number, answers: Addresses, lookup: MxLookup,
): Promise<ExplainedDane> {
  const verdict = await new Promise<Exclude<TlsaVerdict, 'next'> | undefined>((resolve) => {
    lookup.tlsa(host, port, answers, resolve);
  });
  if (verdict === undefined) {
    const isAsked = tlsaBases(host, answers).length > 0 || isAliasInDoubt(answers);
    const text = isAsked ? 'no TLSA records' : 'none asked for: its addresses are not signed';
    return { text, isFailed: false, isBound: false, isFree: true };
  }
  if ('failed' in verdict) {
    return { text: `not connected to: ${verdict.failed}`, isFailed: true, isBound: false, isFree: false };
  }
  const { records } = verdict.found;
  const isBound = usableRecords(records).length > 0;
  return { text: recordsText(records), isFailed: false, isBound, isFree: false };
}

function recordsText(records: readonly TlsaData[]): string {
  const usable = usableRecords(records);
  const start = usable.length > 0 ? 'TLS as its TLSA records say'
    : 'TLS, but none of its TLSA records can be used';
  const shown = records.slice(0, RECORDS_SHOWN_MAX).map((record) =>
    `${recordText(record)}${usable.length === 0 || usable.includes(record) ? '' : ' (not used)'}`);
  const more = records.length > shown.length ? `, and ${String(records.length - shown.length)} more` : '';
  return `${start}: ${shown.join(', ')}${more}`;
}

/** As a zone file has it, the association cut. */
function recordText({ usage, selector, matching, association }: TlsaData): string {
  const hex = Buffer.from(association.subarray(0, OCTETS_SHOWN)).toString('hex');
  const cut = association.length > OCTETS_SHOWN ? '…' : '';
  return `${String(usage)} ${String(selector)} ${String(matching)} ${hex}${cut}`;
}
