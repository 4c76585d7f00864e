/**
 * What a check of a message says of who sent it, by method (RFC 8601 2.7): SPF of the client's address, DKIM
 * of each signature, DMARC of the domain of its From. Types only, and what is said where nobody could check;
 * checks are made by sender-checks.ts, and written into the message by results-field.ts.
 */

/** Words of RFC 8601 2.7.1, 2.7.2, and of RFC 7489 11.2. */
export type SpfResult =
  'none' | 'neutral' | 'pass' | 'fail' | 'softfail' | 'temperror' | 'permerror';
export type DkimResult = 'none' | 'pass' | 'fail' | 'policy' | 'neutral' | 'temperror' | 'permerror';
export type DmarcResult = 'none' | 'pass' | 'fail' | 'temperror' | 'permerror';

export interface SpfVerdict {
  readonly result: SpfResult;
  /** Whose records were asked; '' none. Of MAIL, or of HELO with the null reverse-path (RFC 7208 2.4). */
  readonly domain: string;
  readonly isHelo: boolean;
}

/** Of one signature. Texts are the sender's. */
export interface DkimVerdict {
  readonly result: DkimResult;
  /** One of our own words; '' none. */
  readonly reason: string;
  /** d=, s=, a= and the beginning of b= (RFC 6008); '' where the signature has none that can be told. */
  readonly domain: string;
  readonly selector: string;
  readonly algorithm: string;
  readonly start: string;
}

export interface DmarcVerdict {
  readonly result: DmarcResult;
  readonly reason: string;
  /** Of the From field; '' when that is not plain. */
  readonly domain: string;
  /** What its domain asks for; '': it asks for nothing. */
  readonly policy: '' | 'none' | 'quarantine' | 'reject';
}

export interface Verdicts {
  readonly spf: SpfVerdict;
  /** In the order of the header; at least one. */
  readonly dkim: readonly DkimVerdict[];
  readonly dmarc: DmarcVerdict;
}

export function dkimVerdict(result: DkimResult, reason = ''): DkimVerdict {
  return { result, reason, domain: '', selector: '', algorithm: '', start: '' };
}

/** Nobody could check it in time. */
export function unchecked(reason: string): Verdicts {
  return {
    spf: { result: 'temperror', domain: '', isHelo: false },
    dkim: [dkimVerdict('temperror', reason)],
    dmarc: { result: 'temperror', reason, domain: '', policy: '' },
  };
}

/** From best to worst, as far as a message of several signatures has one result. */
const BEST_FIRST: readonly DkimResult[] = [
  'pass', 'temperror', 'fail', 'policy', 'neutral', 'permerror', 'none',
];

export function bestDkim(verdicts: readonly DkimVerdict[]): DkimResult {
  return BEST_FIRST.find((result) => verdicts.some((each) => each.result === result)) ?? 'none';
}
