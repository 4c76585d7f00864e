/**
 * The three parts of mailauth that are used, with the types of what is used of them: its own types lack some.
 * Written against 4.13.3: the verifier of signatures is no public part of it, so another version is another
 * judge, to be looked at anew. What it does wrong or slowly, and what is done about it, is said where it is
 * called: spf-check.ts, dkim-check.ts, dmarc-check.ts. Loading takes 0.3 s: only the thread does.
 */
import { createRequire } from 'node:module';

/** How it asks the DNS. A text record is a list of strings; rejects with a code as Node's resolver does. */
export type LibraryResolver = (name: string, type: string) => Promise<readonly unknown[]>;

export interface LibraryStatus {
  readonly result: string;
  readonly comment?: string;
}

interface SpfQuestion {
  readonly sender: string;
  readonly ip: string;
  readonly helo: string;
  readonly mta: string;
  readonly resolver: LibraryResolver;
}

interface DmarcQuestion {
  readonly headerFrom: readonly string[];
  readonly spfDomains: readonly string[];
  readonly dkimDomains: readonly string[];
  readonly resolver: LibraryResolver;
}

interface FoundAlignment {
  /** A domain of the list that has the organizational domain of the From. */
  readonly result?: string;
}

export interface DmarcFinding {
  readonly status: LibraryStatus;
  readonly policy?: string;
  /** The record as it stands. */
  readonly rr?: string;
  readonly alignment?: { readonly spf: FoundAlignment; readonly dkim: FoundAlignment };
}

/** A field as the verifier takes it. */
export interface FieldLine {
  /** In lower case. */
  readonly key: string;
  readonly casedKey: string;
  readonly line: Buffer;
}

interface HeaderLines {
  readonly parsed: readonly FieldLine[];
  readonly original: Buffer;
}

export interface FoundSignature {
  /** Its tags; numbers where it takes them for such. */
  readonly parsed: Readonly<Record<string, { readonly value?: string | number } | undefined>>;
  readonly hashAlgo: string;
  readonly bodyCanon: string;
  readonly maxBodyLength: number | string;
  /** Under which the verifier looks for the hash of the body. */
  readonly bodyHashKey: string;
  /** Not verified. */
  skip?: boolean;
}

export interface LibraryBodyHash {
  /** What of the body is hashed, and how long all of it is. */
  readonly bodyHashedBytes: number;
  readonly canonicalizedLength: number;
  readonly byteLength: number;
  hash?: string;
  digest(encoding: 'base64'): string;
  getMimeStructureStart(): number;
}

export interface SignatureFinding {
  readonly status: LibraryStatus;
  /** The record of its key, without blanks. */
  readonly rr?: string;
}

interface SignatureVerifier {
  headers: HeaderLines;
  bodyHashes: Map<string, LibraryBodyHash>;
  readonly signatureHeaders: readonly FoundSignature[];
  /** Of those that were not skipped, in their order. */
  readonly results: readonly SignatureFinding[];
  messageHeaders(headers: HeaderLines): Promise<void>;
  finalChunk(): Promise<void>;
}

interface MailauthLibrary {
  readonly spf: (question: SpfQuestion) => Promise<{ readonly status: LibraryStatus }>;
  readonly dmarc: (question: DmarcQuestion) => Promise<DmarcFinding | false>;
  readonly DkimVerifier: new (options: {
    readonly resolver: LibraryResolver; readonly minBitLength: number; readonly sender: string;
  }) => SignatureVerifier;
}

const load = createRequire(import.meta.url);

export const { spf } = load('mailauth/lib/spf') as Pick<MailauthLibrary, 'spf'>;
export const { dmarc } = load('mailauth/lib/dmarc') as Pick<MailauthLibrary, 'dmarc'>;
export const { DkimVerifier } = load('mailauth/lib/dkim/dkim-verifier') as
  Pick<MailauthLibrary, 'DkimVerifier'>;
