/**
 * SPF (RFC 7208) of who sent a message: may its client's address send for the domain of its reverse-path, or
 * for its HELO where that is null (2.4)? By mailauth, which counts ten names that are looked up and two that
 * lead to nothing (4.6.4).
 *
 * mailauth 4.13.3 tests names with expressions whose time grows with the square of a name's length, before it
 * asks for them. So a record is bounded before it sees it, and is none that can be evaluated above that.
 */
import ipaddr from 'ipaddr.js';
import { toAscii } from '../../../../platform/node/idna.js';
import { normalizeDomain } from '../../../../smtp/address.js';
import type { SpfResult, SpfVerdict } from '../verdicts.js';
import { isNoAnswer, textRecords } from './check-questions.js';
import type { CheckQuestions } from './check-questions.js';
import type { CheckRequest } from './check-messages.js';
import { spf } from './mailauth-library.js';

/** RFC 7208 3.4 asks for 450 at most; the longest that are seen have 2,000. */
const RECORD_CHARACTERS_MAX = 4096;
const TERM_CHARACTERS_MAX = 512;
/** Those of providers that look up sender and client have four. */
const MACROS_OF_TERM_MAX = 8;
/** For macros: a domain has as many, a longer local part of a sender is cut. */
const LOCAL_CHARACTERS_MAX = 255;

const RESULTS: ReadonlyMap<string, SpfResult> = new Map(
  (['none', 'neutral', 'pass', 'fail', 'softfail', 'temperror', 'permerror'] as const)
    .map((result) => [result, result]),
);

/** Who sends: of a message that is checked, or of what we are about to send (cli/dns-check.ts). */
export type SpfRequest = Pick<CheckRequest, 'client' | 'helo' | 'hostName' | 'reversePath'>;

/** As mailauth throws them. */
class UnusableRecord extends Error {
  readonly spfResult = { error: 'permerror', text: 'a record that is too long' };
}

export async function spfVerdict(request: SpfRequest, questions: CheckQuestions): Promise<SpfVerdict> {
  const { client, helo, hostName, reversePath } = request;
  const isHelo = reversePath === '';
  const at = reversePath.lastIndexOf('@');
  const domain = normalizeDomain(isHelo ? helo : reversePath.slice(at + 1), toAscii);
  // An address literal, or postmaster alone.
  if (domain === '' || domain.startsWith('[') || (!isHelo && at < 0)) {
    return { result: 'none', domain: '', isHelo };
  }
  // Nobody knows who it is.
  if (client === '') return { result: 'none', domain, isHelo };
  const local = isHelo ? 'postmaster' : reversePath.slice(0, Math.min(at, LOCAL_CHARACTERS_MAX));
  const ip = ipaddr.isValid(client) ? ipaddr.process(client).toString() : '';
  const { status } = await spf({
    sender: `${local}@${domain}`, ip, helo, mta: hostName,
    resolver: async (name, type) => {
      if (type === 'PTR') return hostsOf(name, questions);
      if (type !== 'TXT') return questions.resolve(name, type);
      const texts = await textRecords(questions, name);
      if (texts.some(isUnusable)) throw new UnusableRecord();
      return texts.map((text) => [text]);
    },
  });
  return { result: RESULTS.get(status.result) ?? 'permerror', domain, isHelo };
}

/** The reverse zone is the client's: where it fails, "ptr" alone does not match (RFC 7208 5.5). */
async function hostsOf(name: string, questions: CheckQuestions): Promise<readonly unknown[]> {
  try {
    return await questions.resolve(name, 'PTR');
  } catch (error) {
    if (isNoAnswer(error)) return [];
    throw error;
  }
}

function isUnusable(record: string): boolean {
  if (!/^\s*v=spf1(?:\s|$)/i.test(record)) return false;
  if (record.length > RECORD_CHARACTERS_MAX) return true;
  return record.split(/\s+/).some((term) =>
    term.length > TERM_CHARACTERS_MAX || term.split('%{').length - 1 > MACROS_OF_TERM_MAX);
}
