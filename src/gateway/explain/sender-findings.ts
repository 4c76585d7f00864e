/**
 * What receivers find in the DNS of a domain that we send for, for `config check --dns` and `explain`:
 *
 *   DKIM     of each key that we sign with: the public key, alone, with its kind, hash and use
 *   SPF      one record, and whether it lets each of our addresses send, as those judge it who take mail
 *   DMARC    one record where all look for it (RFC 7489, RFC 9989), and its policy
 *
 * What judges SPF, and knows public suffixes, takes 0.3 s to load: a gateway does this in a thread
 * (sender-thread.ts).
 */
import ipaddr from 'ipaddr.js';
import type { DnsFinding } from '../../admin-api/explain.js';
import type { PublishedKey } from '../dkim/node/public-record.js';
import { keyFor } from '../inbound/sender-checks/node/dkim-key.js';
import type { CheckedType } from '../inbound/sender-checks/node/check-messages.js';
import type { MailSource } from '../outbound/pure/source-choice.js';
import type { DnsAnswer, Resolver } from '../../platform/resolver.js';

const SPF_VERDICTS: Readonly<Partial<Record<string, DnsFinding['verdict']>>> = {
  pass: 'good', neutral: 'advice', temperror: 'unknown',
};

/**
 * Of `p` and `sp` (RFC 7489 6.3), and `np` (RFC 9091, RFC 9989). Of a record with an odd value nobody can say
 * what it asks for: by some it asks for nothing (RFC 7489 6.6.3).
 */
const POLICIES: readonly string[] = ['none', 'quarantine', 'reject'];

/** RFC 7208 4.5. */
const IS_SPF = /^v=spf1(?: |$)/i;
/** RFC 7489 6.4. */
const IS_DMARC = /^v\s*=\s*DMARC1\s*(?:;|$)/i;

/** Above a domain a DMARC record is looked for at names of so many labels at most (RFC 9989 4.10). */
const ABOVE_LABELS_MAX = 7;

const OTHER_KEY = 'has another key';
/** So it is where a form in the web took one text of it (RFC 1035 3.3.14). */
const CUT_KEY = 'has only the beginning of the key (p=); beyond 255 characters a record takes several texts';

/** Of ipaddr.js. */
const TRANSLATED: readonly string[] = ['private', 'carrierGradeNat', 'uniqueLocal'];

/** Whose data is text. */
type TextType = 'A' | 'AAAA' | 'PTR' | 'TXT';

export class Asker {
  readonly #resolver: Resolver;
  /** What it is when the DNS does not know who we say to be. */
  readonly ofSender: 'bad' | 'advice';

  /** `isSeen`: we send to whom the DNS names. */
  constructor(resolver: Resolver, isSeen: boolean) {
    this.#resolver = resolver;
    this.ofSender = isSeen ? 'bad' : 'advice';
  }

  ask<T extends CheckedType>(name: string, type: T): Promise<DnsAnswer<T>> {
    return new Promise((resolve) => { this.#resolver.ask(name, type, resolve); });
  }
}

/** What is asked about mail by MX. */
export interface SenderQuestion {
  readonly domains: readonly SigningDomain[];
  /** Of reverse-paths that are made here (`verp`). */
  readonly returnDomains: readonly string[];
  readonly sources: readonly MailSource[];
  /** More domains that are not asked about. */
  readonly leftOut: number;
}

export interface SigningDomain {
  readonly domain: string;
  /** None: nothing of it is signed. */
  readonly keys: readonly PublishedKey[];
}

/** For `explain`, of mail by MX. */
export async function sendersFindings(
  { domains, returnDomains, sources, leftOut }: SenderQuestion, resolver: Resolver,
): Promise<readonly DnsFinding[]> {
  const asker = new Asker(resolver, true);
  const findings: DnsFinding[] = [];
  for (const { domain, keys } of domains) {
    if (keys.length === 0) {
      const text = `dkim has no key for ${domain}: its mail gets no signature here`;
      findings.push({ verdict: 'advice', text });
    }
    findings.push(...await domainFindings({ domain, keys }, sources, asker));
  }
  for (const domain of returnDomains) findings.push(...await spfFindings(domain, sources, asker));
  if (leftOut > 0) {
    const text = `${String(leftOut)} more domains of dkim were not asked about: name one (from, --from)`;
    findings.push({ verdict: 'advice', text });
  }
  return findings;
}

/** Without `sources` only reports are from it: SPF does not judge them by it (ehloSpfFindings). */
export async function domainFindings(
  { domain, keys }: SigningDomain, sources: readonly MailSource[] | undefined, asker: Asker,
): Promise<readonly DnsFinding[]> {
  const findings: DnsFinding[] = [];
  for (const key of keys) findings.push(await keyFinding(key, asker));
  if (sources !== undefined) findings.push(...await spfFindings(domain, sources, asker));
  findings.push(await dmarcFinding(domain, asker));
  return findings;
}

/** Whether mail by these addresses passes the domain's SPF, as those judge it who take it (RFC 7208). */
export async function spfFindings(
  domain: string, sources: readonly MailSource[], asker: Asker,
): Promise<readonly DnsFinding[]> {
  const sender = { reversePath: `postmaster@${domain}`, text: `mail of ${domain}` };
  const record = await spfRecordFinding(domain, asker, asker.ofSender);
  return [record, ...await spfResults(sender, sources, asker)];
}

/** The same of reports, which have the null reverse-path: by the name that is said in EHLO (RFC 7208 2.4). */
export async function ehloSpfFindings(
  name: string, addresses: readonly string[], asker: Asker,
): Promise<readonly DnsFinding[]> {
  const record = await spfRecordFinding(name, asker, 'advice');
  const sender = { reversePath: '', text: `reports of ${name} (EHLO)` };
  return [record, ...await spfResults(sender, addresses.map((address) => ({ address, name })), asker)];
}

async function spfResults(
  { reversePath, text: whose }: { readonly reversePath: string; readonly text: string },
  sources: readonly MailSource[], asker: Asker,
): Promise<readonly DnsFinding[]> {
  const seen = sources.filter(({ address }) => !isTranslated(address));
  if (seen.length === 0) return [];
  // Loaded here alone: it is large, and few commands need it.
  const [{ spfVerdict }, { CheckQuestions }] = await Promise.all([
    import('../inbound/sender-checks/node/spf-check.js'),
    import('../inbound/sender-checks/node/check-questions.js'),
  ]);
  const findings: DnsFinding[] = [];
  for (const { address, name } of seen) {
    const questions = new CheckQuestions((of, type) => asker.ask(of, type));
    const { result } = await spfVerdict(
      { client: address, helo: name, hostName: name, reversePath }, questions,
    );
    // Without a record it has been told already.
    if (result === 'none') continue;
    const text = `${whose} by ${address}: SPF says ${result}`;
    findings.push({ verdict: SPF_VERDICTS[result] ?? asker.ofSender, text });
  }
  return findings;
}

/** Nobody outside sees it. */
export function isTranslated(address: string): boolean {
  return TRANSLATED.includes(ipaddr.parse(address).range());
}

async function keyFinding(published: PublishedKey, asker: Asker): Promise<DnsFinding> {
  const { name, record } = published;
  const answer = await asker.ask(name, 'TXT');
  if (answer.kind === 'failed') return unknown('TXT', name, answer.why);
  const found = recordsOf(answer);
  const [only] = found;
  const what = only === undefined ? 'has no record'
    : found.length > 1 ? `has ${String(found.length)} records, and which of them counts is not said`
      : keyTrouble(only, record);
  if (what === OTHER_KEY) return { verdict: 'bad', text: otherKeyText(published) };
  if (what !== '') return { verdict: 'bad', text: `${name} ${what}: publish "${record}"` };
  const has = `${name} has the key that signs (DKIM)`;
  if (!tagOf(only ?? '', 't').split(':').includes('y')) return { verdict: 'good', text: has };
  const text = `${has}, and says that this is a test (t=y): its signatures count as none`;
  return { verdict: 'advice', text };
}

/** To publish it there would break the signatures of all mail that was signed with the other one. */
function otherKeyText({ name, record, file, sharedWith }: PublishedKey): string {
  const shared = sharedWith === '' ? '' : ` (key_file of ${sharedWith}, too)`;
  return `${name} ${OTHER_KEY} than '${file}'${shared}: name the file whose key is published there `
    + `(key_file), or publish "${record}" under a new selector`;
}

function isUsableKey(key: string, kind: string): boolean {
  if (kind !== 'rsa' && kind !== 'ed25519') return false;
  return 'type' in keyFor(`k=${kind}; p=${key}`, { algorithm: kind, isOfSubdomain: false });
}

/** As who verifies reads it (RFC 6376 3.6.1): why what is published does not serve; '' if it does. */
function keyTrouble(found: string, wanted: string): string {
  const version = tagOf(found, 'v') || 'DKIM1';
  if (version !== 'DKIM1') return `says that it is of version ${version}`;
  const names = found.split(';').map((tag) => tag.split('=', 1)[0]?.trim() ?? '')
    .filter((each) => each !== '');
  if (names.lastIndexOf('v') > 0) return 'does not begin with its version (v=)';
  if (new Set(names).size < names.length) return 'has a tag twice';
  const key = tagOf(found, 'p');
  if (key === '') return 'has an empty key (p=), which revokes it';
  const kind = tagOf(found, 'k') || 'rsa';
  const wantedKey = tagOf(wanted, 'p');
  if (key !== wantedKey) {
    if (wantedKey.startsWith(key)) return CUT_KEY;
    return isUsableKey(key, kind) ? OTHER_KEY : 'has no usable key (p=)';
  }
  if (kind !== tagOf(wanted, 'k')) return `says that its key is of kind ${kind}`;
  const services = tagOf(found, 's') || '*';
  if (!services.split(':').some((service) => service === '*' || service === 'email')) {
    return `says that it is for ${services}, and not for email (s=)`;
  }
  const hashes = tagOf(found, 'h');
  return hashes === '' || hashes.split(':').includes('sha256') ? ''
    : `says that it is for ${hashes}, and we sign by sha256`;
}

/** `missing`: what it is where there is none. */
async function spfRecordFinding(
  name: string, asker: Asker, missing: 'bad' | 'advice',
): Promise<DnsFinding> {
  const found = await textsOf(name, IS_SPF, asker);
  if (!Array.isArray(found)) return found;
  if (found.length === 1) return { verdict: 'good', text: `${name} has one SPF record` };
  if (found.length === 0) return { verdict: missing, text: `${name} has no SPF record` };
  return { verdict: asker.ofSender, text: severalText(name, found, 'SPF') };
}

/**
 * Without one of its own a domain is under that of its organizational domain by the list of public suffixes
 * (RFC 7489 6.6.3). Those at other names above only who walks the tree finds (RFC 9989 4.10).
 */
async function dmarcFinding(domain: string, asker: Asker): Promise<DnsFinding> {
  const own = await dmarcAt(domain, 'p', asker);
  if (own !== undefined) return own;
  // Loaded here alone, as for SPF.
  const find = (await import('../inbound/sender-checks/node/dmarc-check.js')).organizationOf;
  const organization = await find(domain);
  const labels = domain.split('.');
  const above = labels.map((_label, from) => labels.slice(from).join('.'))
    .slice(Math.max(1, labels.length - ABOVE_LABELS_MAX), -1);
  const none = `_dmarc.${domain} has no DMARC record`;
  for (const name of new Set([...(organization === '' ? [] : [organization]), ...above])) {
    if (name === domain) continue;
    const found = await dmarcAt(name, 'sp', asker);
    if (found?.verdict === 'unknown') return found;
    // It has several, or an odd one: who adds one for the domain alone has not mended that.
    if (found?.verdict === 'bad' && name === organization) return found;
    if (found?.verdict !== 'good') continue;
    if (name === organization) return { ...found, text: `${found.text}, which ${domain} is under` };
    const text = `${none}, and that of _dmarc.${name} is found by the tree walk of RFC 9989 alone: many go `
      + 'by the list of public suffixes (RFC 7489), and find none';
    return { verdict: 'advice', text };
  }
  return { verdict: 'bad', text: none };
}

/** Undefined: there is none. `tag`: of the policy that is meant, `sp` for a domain under it. */
async function dmarcAt(domain: string, tag: 'p' | 'sp', asker: Asker): Promise<DnsFinding | undefined> {
  const name = `_dmarc.${domain}`;
  const found = await textsOf(name, IS_DMARC, asker);
  if (!Array.isArray(found)) return found;
  const [only, ...others] = found;
  if (only === undefined) return undefined;
  if (others.length > 0) return { verdict: 'bad', text: severalText(name, found, 'DMARC') };
  const odd = ['p', 'sp', 'np'].find((of) => {
    const said = tagOf(only, of).toLowerCase();
    return said !== '' && !POLICIES.includes(said);
  });
  if (odd !== undefined) {
    const text = `${name} says ${odd}=${tagOf(only, odd)}, which is no policy (DMARC): publish none, `
      + 'quarantine or reject';
    return { verdict: 'bad', text };
  }
  const policy = tagOf(only, tag) || tagOf(only, 'p') || 'none, as it names none';
  return { verdict: 'good', text: `${name} has one DMARC record (${policy})` };
}

/** Records that are of a kind; or that nobody could tell. */
async function textsOf(name: string, kind: RegExp, asker: Asker): Promise<string[] | DnsFinding> {
  const answer = await asker.ask(name, 'TXT');
  if (answer.kind === 'failed') return unknown('TXT', name, answer.why);
  return recordsOf(answer).filter((text) => kind.test(text));
}

function severalText(name: string, { length }: readonly string[], what: 'SPF' | 'DMARC'): string {
  return `${name} has ${String(length)} ${what} records: none of them counts`;
}

export function recordsOf(answer: DnsAnswer<TextType>): readonly string[] {
  return answer.kind === 'found' ? answer.records : [];
}

export function unknown(type: CheckedType, name: string, why: string): DnsFinding {
  return { verdict: 'unknown', text: `no answer on ${type} of ${name}: ${why}` };
}

/** RFC 6376 3.2: tags with blanks anywhere. */
function tagOf(record: string, tag: string): string {
  for (const part of record.split(';')) {
    const [name = '', ...value] = part.split('=');
    if (name.trim() === tag) return value.join('=').replace(/\s/g, '');
  }
  return '';
}
