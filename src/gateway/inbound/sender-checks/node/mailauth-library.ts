/**
 * The two parts of mailauth that are used, with the types of what is used of them: its own types lack some.
 * What 4.13.3 does wrong or slowly, and what is done about it, is said where it is called: spf-check.ts,
 * dmarc-check.ts; another version is another judge, to be looked at anew. Loading takes 0.3 s: only the
 * thread does.
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
  /** False: its tag has no value. */
  readonly policy?: string | false;
  /** The record as it stands. */
  readonly rr?: string;
  readonly alignment?: { readonly spf: FoundAlignment; readonly dkim: FoundAlignment };
}

interface MailauthLibrary {
  readonly spf: (question: SpfQuestion) => Promise<{ readonly status: LibraryStatus }>;
  readonly dmarc: (question: DmarcQuestion) => Promise<DmarcFinding | false>;
}

const load = createRequire(import.meta.url);

export const { spf } = load('mailauth/lib/spf') as Pick<MailauthLibrary, 'spf'>;
export const { dmarc } = load('mailauth/lib/dmarc') as Pick<MailauthLibrary, 'dmarc'>;
