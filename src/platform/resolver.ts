/**
 * DNS as the rest sees it: one question, one answer. The real one is platform/node/dns/dns-client.ts.
 *
 * What every implementation promises:
 * - `done` is called exactly once, within a bound in time, and maybe before ask() returns: what is known
 *   needs no waiting. Who closes it is told nothing more.
 * - `found` has at least one record. A name of which the answer holds no record of the type asked for is
 *   `no-records`; one that does not exist `no-name`; whatever else went wrong is `failed`, with one short
 *   line that says how. Only the first three are verdicts of the DNS.
 * - An alias (CNAME) is followed; records are those of the name that it leads to.
 * - Names in records are lower case without a final dot, and otherwise as hostile as their zone: who goes on
 *   with one looks at it first.
 */

/** RFC 1035 3.3.9. An exchange of '' is the root: the domain takes no mail (RFC 7505). */
export interface MxData {
  readonly preference: number;
  readonly exchange: string;
}

/** RFC 6698 2.1. */
export interface TlsaData {
  readonly usage: number;
  readonly selector: number;
  readonly matching: number;
  readonly association: Uint8Array;
}

/** What a record of each type says. */
export interface DnsData {
  /** An address as text. */
  readonly A: string;
  readonly AAAA: string;
  /** The name that an alias leads to, in one step. */
  readonly CNAME: string;
  readonly MX: MxData;
  readonly PTR: string;
  readonly TLSA: TlsaData;
  /** The strings of one record, joined (RFC 7208 3.3), one character an octet. */
  readonly TXT: string;
}

export type DnsType = keyof DnsData;

export type DnsAnswer<T extends DnsType> = {
  readonly kind: 'found';
  readonly records: readonly DnsData[T][];
  /** Whose records they are, where the name asked for is an alias. */
  readonly aliasOf?: string;
  readonly isAuthentic: boolean;
} | {
  readonly kind: 'no-records' | 'no-name';
  /** A resolver that is believed has proved it by DNSSEC (RFC 4035 3.2.3). */
  readonly isAuthentic: boolean;
} | DnsFailure;

export interface DnsFailure {
  readonly kind: 'failed';
  readonly why: string;
  /** Nobody was asked: others had all the room there is. It says nothing of the name. */
  readonly isUnasked?: true;
}

export interface Resolver {
  /** `withinMs`: who asks does not want it any more after that; what is not sent by then is not. */
  ask<T extends DnsType>(
    name: string, type: T, done: (answer: DnsAnswer<T>) => void, withinMs?: number,
  ): void;
  /**
   * Somebody has mended records: of what is kept, where mail for this domain goes counts no more, nor that
   * any name was not found or could not be told. Who keeps nothing has none of this.
   */
  forgetMissing?(domain: string): void;
  /** The same of all that is kept. */
  forgetAll?(): void;
}

/** Of a host by name, as the system resolves it (node/host-lookup.ts). */
export interface HostAddresses {
  readonly addresses: readonly string[];
  /** That there are none; '' if there are. */
  readonly why: string;
  /** Nobody could tell just now. */
  readonly isFailed: boolean;
}

/** For a lookup by the system, of a host of which no addresses are known. */
export interface LookupWait {
  readonly forMs: number;
  /** "waiting for the lookup of its name, …" */
  readonly doing: string;
}

/** Never rejects. */
export type LookUpHost = (host: string) => Promise<HostAddresses>;
