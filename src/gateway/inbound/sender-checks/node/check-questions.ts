/**
 * The DNS as the check of one message sees it, in the words of mailauth, which are those of Node's resolver:
 * records, or an error with a code. Each name is asked for once; so many in all; and when its time is over,
 * none is answered any more, also those under way: so the check comes to its own end, with the verdicts that
 * it has and `temperror` for the others.
 *
 *   found ─▶ records      no-name ─▶ ENOTFOUND      no-records ─▶ ENODATA      failed, late ─▶ ETIMEOUT
 *
 * Failures have one code: on ESERVFAIL, mailauth 4.13.3 goes on behind an `include` as if it did not match,
 * and a domain whose name server is down would fail its own mail.
 */
import type { DnsAnswer, DnsData, MxData } from '../../../../platform/resolver.js';
import type { CheckedType } from './check-messages.js';

export type AskDns = (name: string, type: CheckedType) => Promise<DnsAnswer<CheckedType>>;

/** SPF alone may have ten names of ten hosts each (RFC 7208 4.6.4), of which one message may not use all. */
const QUESTIONS_MAX = 100;
/** And those that SPF can't use up: of ten signatures; and DMARC's, of a domain and its organization. */
export const WITH_DKIM_QUESTIONS_MAX = QUESTIONS_MAX + 10;
export const WITH_DMARC_QUESTIONS_MAX = WITH_DKIM_QUESTIONS_MAX + 2;
/** RFC 7208 7.3: what is longer loses labels at its left. */
const NAME_CHARACTERS_MAX = 253;
const TYPES: ReadonlySet<string> = new Set<CheckedType>(['A', 'AAAA', 'MX', 'PTR', 'TXT']);

const CODES = { 'no-name': 'ENOTFOUND', 'no-records': 'ENODATA', 'failed': 'ETIMEOUT' } as const;

type ErrorCode = (typeof CODES)[keyof typeof CODES];

class NoDnsAnswer extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode) {
    super(code);
    this.code = code;
  }
}

/** RFC 7208 4.6.4, in the words of mailauth: it would call another error a passing one. */
class TooManyQuestions extends Error {
  readonly spfResult = { error: 'permerror', text: 'too many questions' };
}

export class CheckQuestions {
  isOver = false;
  readonly #ask: AskDns;
  readonly #asked = new Map<string, Promise<readonly unknown[]>>();
  readonly #end: Promise<never>;
  #endNow: (error: Error) => void = () => undefined;

  constructor(ask: AskDns) {
    this.#ask = ask;
    this.#end = new Promise<never>((_none, fail) => { this.#endNow = fail; });
    this.#end.catch(() => undefined);
  }

  /** Its time has come. */
  end(): void {
    this.isOver = true;
    this.#endNow(new NoDnsAnswer('ETIMEOUT'));
  }

  /** Fails when `questionsMax` have been asked. */
  resolve(name: string, type: string, questionsMax = QUESTIONS_MAX): Promise<readonly unknown[]> {
    if (!isChecked(type)) return Promise.reject(new NoDnsAnswer('ENODATA'));
    const short = shortened(name.toLowerCase().replace(/\.$/, ''));
    const key = `${type} ${short}`;
    const before = this.#asked.get(key);
    if (before !== undefined) return before;
    if (this.isOver) return Promise.reject(new NoDnsAnswer('ETIMEOUT'));
    if (this.#asked.size >= questionsMax) return Promise.reject(new TooManyQuestions());
    const records = Promise.race([this.#ask(short, type), this.#end]).then(recordsOf);
    // Who asks for it sees it fail; nobody else has to.
    records.catch(() => undefined);
    this.#asked.set(key, records);
    return records;
  }
}

/** The DNS has said that there is nothing. */
export function isVerdict(error: unknown): boolean {
  return error instanceof NoDnsAnswer && error.code !== 'ETIMEOUT';
}

/** The DNS has said nothing, or not in time. */
export function isNoAnswer(error: unknown): boolean {
  return error instanceof NoDnsAnswer && error.code === 'ETIMEOUT';
}

function isChecked(type: string): type is CheckedType {
  return TYPES.has(type);
}

function shortened(name: string): string {
  let short = name;
  while (short.length > NAME_CHARACTERS_MAX && short.includes('.')) {
    short = short.slice(short.indexOf('.') + 1);
  }
  return short;
}

function recordsOf(answer: DnsAnswer<CheckedType>): readonly unknown[] {
  if (answer.kind !== 'found') throw new NoDnsAnswer(CODES[answer.kind]);
  const records: readonly DnsData[CheckedType][] = answer.records;
  return records.map((record) => (typeof record === 'string' ? record : mxRecord(record)));
}

function mxRecord({ preference, exchange }: MxData): { priority: number; exchange: string } {
  return { priority: preference, exchange };
}

/** A text record is a list of strings there. */
export async function textRecords(
  questions: CheckQuestions, name: string, questionsMax?: number,
): Promise<readonly string[]> {
  return (await questions.resolve(name, 'TXT', questionsMax)).map(String);
}
