/**
 * DMARC of a message: does SPF or a signature speak for the domain of its From, and what does that domain ask
 * for? By mailauth, which finds the organizational domain by the public suffix list (RFC 7489 3.2), not by
 * the tree walk of RFC 9989 4.10; docs/decisions/0034 says what that means.
 *
 * mailauth 4.13.3 takes every alignment for relaxed, whatever the record says: strict ones are judged here.
 * It does not know that a result may be open: where what would have aligned could not be checked, neither can
 * this (RFC 7489 6.6.2).
 */
import type { DkimVerdict, DmarcVerdict, SpfVerdict } from '../verdicts.js';
import { WITH_DMARC_QUESTIONS_MAX, textRecords } from './check-questions.js';
import type { CheckQuestions } from './check-questions.js';
import { dmarc } from './mailauth-library.js';
import type { DmarcFinding } from './mailauth-library.js';

const POLICIES: ReadonlyMap<string, DmarcVerdict['policy']> =
  new Map((['none', 'quarantine', 'reject'] as const).map((policy) => [policy, policy]));
/** Longer ones are made to cost. */
const RECORD_CHARACTERS_MAX = 4096;
/** It asks for this one where a domain is a public suffix itself. */
const NO_ORGANIZATION = '_dmarc.null';
const RECORD_AT = '_dmarc.';

/** Whose domains. */
interface Identifiers {
  readonly spfDomains: readonly string[];
  readonly dkimDomains: readonly string[];
}

/** The questions of dmarcVerdict(), which may come to it when all others have had theirs. */
export function askForPolicy(domain: string, questions: CheckQuestions): void {
  if (domain === '') return;
  find(domain, { spfDomains: [], dkimDomains: [] }, questions).catch(() => undefined);
}

/** `domain`: of the From field, '' where that is not plain. */
export async function dmarcVerdict(
  domain: string, spf: SpfVerdict, dkim: readonly DkimVerdict[], questions: CheckQuestions,
): Promise<DmarcVerdict> {
  if (domain === '') return { result: 'permerror', reason: 'no single From domain', domain, policy: '' };
  const passed = identifiers('pass', spf, dkim);
  const found = await find(domain, passed, questions);
  if (found === undefined) {
    return { result: 'temperror', reason: 'record could not be had', domain, policy: '' };
  }
  if (found.alignment === undefined) return { result: 'none', reason: '', domain, policy: '' };
  const policy = POLICIES.get((found.policy || '').trim().toLowerCase()) ?? 'none';
  if (isAligned(domain, passed, found)) return { result: 'pass', reason: '', domain, policy };
  const open = identifiers('temperror', spf, dkim);
  const isOpen = open.spfDomains.length + open.dkimDomains.length > 0;
  const another = isOpen ? await find(domain, open, questions) : undefined;
  if (another !== undefined && isAligned(domain, open, another)) {
    return { result: 'temperror', reason: 'not all could be checked', domain, policy };
  }
  return { result: 'fail', reason: '', domain, policy };
}

/** Where a domain without a record of its own has it (RFC 7489 3.2); '' for a public suffix. */
export async function organizationOf(domain: string): Promise<string> {
  let asked = '';
  const headerFrom = [`from@${domain}`];
  await dmarc({ headerFrom, spfDomains: [], dkimDomains: [], resolver: (name) => {
    asked = name;
    return Promise.resolve([]);
  } });
  return asked === NO_ORGANIZATION ? '' : asked.slice(RECORD_AT.length);
}

function identifiers(
  result: 'pass' | 'temperror', spf: SpfVerdict, dkim: readonly DkimVerdict[],
): Identifiers {
  const spfDomains = spf.result === result && spf.domain !== '' ? [spf.domain] : [];
  const signed = dkim.filter((each) => each.result === result && each.domain !== '');
  return { spfDomains, dkimDomains: signed.map((each) => each.domain) };
}

/** Undefined: nobody could tell. */
async function find(
  domain: string, { spfDomains, dkimDomains }: Identifiers, questions: CheckQuestions,
): Promise<DmarcFinding | undefined> {
  const finding = await dmarc({
    headerFrom: [`from@${domain}`], spfDomains, dkimDomains,
    resolver: async (name) => {
      if (name === NO_ORGANIZATION) return [];
      const texts = await textRecords(questions, name, WITH_DMARC_QUESTIONS_MAX);
      return texts.filter(({ length }) => length <= RECORD_CHARACTERS_MAX).map((text) => [text]);
    },
  });
  return finding === false || finding.status.result === 'temperror' ? undefined : finding;
}

function isAligned(domain: string, { spfDomains, dkimDomains }: Identifiers, found: DmarcFinding): boolean {
  const { alignment, rr = '' } = found;
  const isBy = (tag: 'aspf' | 'adkim', domains: readonly string[], relaxed: string | undefined): boolean =>
    (isStrict(rr, tag) ? domains.includes(domain) : relaxed !== undefined);
  return isBy('aspf', spfDomains, alignment?.spf.result)
    || isBy('adkim', dkimDomains, alignment?.dkim.result);
}

function isStrict(record: string, tag: string): boolean {
  return record.split(';').some((each) => {
    const [name = '', value = ''] = each.split('=', 2);
    return name.trim().toLowerCase() === tag && value.trim().toLowerCase() === 's';
  });
}
