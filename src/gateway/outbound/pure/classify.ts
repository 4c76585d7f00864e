/**
 * The one place that decides what a reply or a trouble means for a recipient: delivered, deferred, failed.
 *
 * Replies (RFC 5321 4.2.1), by the stage they answer; the first row that fits counts:
 *
 * | stage              | reply         | meaning   | why |
 * |--------------------|---------------|-----------|-----|
 * | any                | 421           | deferred  | the peer closes (RFC 5321 3.8): not about the mail |
 * | greeting           | 521           | failed    | the host never takes mail (RFC 7504 2) |
 * | greeting, hello    | 4xx, 5xx      | deferred  | the peer refuses this host or moment, not the message |
 * | RCPT               | 452           | deferred  | too many recipients (RFC 5321 4.5.3.1.10) |
 * | RCPT               | 552           | deferred  | as 452 (RFC 5321 4.5.3.1.10) |
 * | MAIL RCPT DATA dot | 4xx           | deferred  | RFC 5321 4.2.1 |
 * | MAIL RCPT DATA dot | 5xx           | failed    | RFC 5321 4.2.1; 551: no forwarding by its hint (3.4) |
 * | dot                | 2xx           | delivered | the peer has taken over (RFC 5321 4.2.5) |
 * | elsewhere          | anything else | deferred  | a reply out of place is a trouble (PROTOCOL) |
 *
 * One more where a session is in clear because TLS did not come up (mayWantTls()): to MAIL, RCPT or DATA 530,
 * or 5xx with 5.7.x, is deferred. It may be for want of TLS (RFC 3207 4), which is tried again.
 *
 * Enhanced status codes (RFC 3463) are taken from the text where there is one, offered or not; its class is
 * made to agree with the meaning; where there is none it is made up from the table below. Troubles are what
 * happens without a reply, or before anything was sent. Pure.
 */
import { TEXT_CHARACTERS_MAX, enhancedDetail } from '../../../smtp/reply-reader.js';
import { DEFERRED, DELIVERED, FAILED } from '../../mail-types.js';
import type { RecipientResult, RecipientStatus } from '../../mail-types.js';

/** What a reply answers. */
export const Stage = { GREETING: 0, HELLO: 1, MAIL: 2, RCPT: 3, DATA: 4, FINAL: 5 } as const;
export type Stage = (typeof Stage)[keyof typeof Stage];

/**
 * Detail digits (subject.detail) for replies without an enhanced code, by reply code; those of RFC 5248's
 * registry where it has the code.
 */
const MADE_UP: Readonly<Record<number, string>> = {
  421: '3.2',
  450: '2.0',
  451: '3.0',
  452: '3.1',
  454: '7.0',
  455: '5.4',
  500: '5.2',
  501: '5.4',
  502: '5.1',
  503: '5.1',
  504: '5.4',
  521: '3.2',
  530: '7.0',
  535: '7.8',
  550: '2.0',
  551: '1.6',
  552: '2.2',
  553: '1.3',
  555: '5.4',
  556: '1.10',
};

interface Rule {
  readonly stages: readonly Stage[];
  /** Inclusive range of reply codes. */
  readonly from: number;
  readonly to: number;
  readonly status: RecipientStatus;
  /** Made-up subject.detail that goes before MADE_UP. */
  readonly detail?: string;
}

const BEFORE_MAIL: readonly Stage[] = [Stage.GREETING, Stage.HELLO];
const TRANSACTION: readonly Stage[] = [Stage.MAIL, Stage.RCPT, Stage.DATA, Stage.FINAL];
const ALL: readonly Stage[] = [...BEFORE_MAIL, ...TRANSACTION];

/** The table above, in its order; its last row is what is left. */
const RULES: readonly Rule[] = [
  { stages: ALL, from: 421, to: 421, status: DEFERRED },
  { stages: [Stage.GREETING], from: 521, to: 521, status: FAILED },
  { stages: BEFORE_MAIL, from: 400, to: 599, status: DEFERRED },
  { stages: [Stage.RCPT], from: 452, to: 452, status: DEFERRED, detail: '5.3' },
  { stages: [Stage.RCPT], from: 552, to: 552, status: DEFERRED, detail: '5.3' },
  { stages: TRANSACTION, from: 400, to: 499, status: DEFERRED },
  { stages: TRANSACTION, from: 500, to: 599, status: FAILED },
  { stages: [Stage.FINAL], from: 200, to: 299, status: DELIVERED },
];

/** What `code` with `text` (the whole reply as one line, code first) means as the answer to `stage`. */
export function classifyReply(stage: Stage, code: number, text: string): RecipientResult {
  for (let i = 0; i < RULES.length; i++) {
    const rule = RULES[i];
    if (rule === undefined || code < rule.from || code > rule.to || !rule.stages.includes(stage)) continue;
    return { status: rule.status, code, enhanced: enhancedOf(rule, code, text), text };
  }
  return { status: DEFERRED, code, enhanced: '4.5.0', text };
}

/** A refusal that somebody gives who insists on TLS, among others. */
export function mayWantTls({ status, code, enhanced }: RecipientResult): boolean {
  return status === FAILED && (code === 530 || enhanced.startsWith('5.7.'));
}

/** The same, for now: later, or by another host, it may be otherwise. */
export function deferred(why: RecipientResult): RecipientResult {
  return why.status === FAILED ? { ...why, status: DEFERRED, enhanced: `4${why.enhanced.slice(1)}` } : why;
}

function enhancedOf(rule: Rule, code: number, text: string): string {
  const given = enhancedDetail(text);
  return `${classOf(rule.status)}.${given === '' ? (rule.detail ?? MADE_UP[code] ?? '0.0') : given}`;
}

function classOf(status: RecipientStatus): string {
  return status === DELIVERED ? '2' : status === DEFERRED ? '4' : '5';
}

/** What can happen without a reply. */
export const Trouble = {
  /** No connection could be made. */
  CONNECT: 0,
  /** The connection went away. */
  LOST: 1,
  /** Nothing came for as long as the state allows. */
  TIMEOUT: 2,
  /** The peer said what is not SMTP, or not at this place. */
  PROTOCOL: 3,
  /** This process stops. */
  ABANDONED: 4,
  /** The right to deliver from this queue was gone right before the final dot (G5). */
  NO_RIGHT: 5,
  /** Larger than the peer's SIZE (RFC 1870 6.1): not even tried. */
  SIZE: 6,
  /** Needs SMTPUTF8, which the peer does not offer (RFC 6531 3.2). */
  UTF8: 7,
  /** The address holds characters that can't stand in a command. */
  ADDRESS: 8,
  /** Content with 8-bit octets, and the peer does not offer 8BITMIME (RFC 6152 3). */
  EIGHT_BIT: 9,
  /** STARTTLS is not offered, or was refused. */
  TLS_ABSENT: 10,
  /** TLS did not come up, or the server's certificate is not right. */
  TLS_FAILED: 11,
  /** AUTH is not offered, or by no mechanism of ours. */
  AUTH_ABSENT: 12,
  /** AUTH was refused: user or password is wrong, or it does not take them. */
  AUTH_REFUSED: 13,
  /** AUTH was refused for now. */
  AUTH_LATER: 14,
  /** Our own password can't be had. */
  NO_PASSWORD: 15,
  /** The message must have TLS all the way, and the peer does not promise that (RFC 8689 4.2.1). */
  REQUIRETLS_ABSENT: 16,
  /** Likewise, and the peer has no TLS. */
  TLS_NEEDED: 17,
  /** The address that the mail is to leave from is not to be had. */
  NO_SOURCE: 18,
  /** Nobody could tell where the host is, and nothing was sent to it. */
  UNRESOLVED: 19,
} as const;
export type Trouble = (typeof Trouble)[keyof typeof Trouble];

/** By trouble: meaning and enhanced code (RFC 3463). */
const TROUBLES: readonly (readonly [RecipientStatus, string])[] = [
  [DEFERRED, '4.4.1'], // no answer from host
  [DEFERRED, '4.4.2'], // bad connection
  [DEFERRED, '4.4.2'],
  [DEFERRED, '4.5.0'], // other protocol status
  [DEFERRED, '4.3.2'], // system not accepting network messages: ours, for now
  [DEFERRED, '4.3.2'],
  [FAILED, '5.3.4'], // message too big for system
  [FAILED, '5.6.7'], // non-ASCII addresses not permitted
  [FAILED, '5.1.3'], // bad destination mailbox address syntax
  [FAILED, '5.6.3'], // conversion required but not supported
  [DEFERRED, '4.7.4'], // security features not supported
  [DEFERRED, '4.7.5'], // cryptographic failure
  [DEFERRED, '4.7.4'],
  [DEFERRED, '4.7.8'], // authentication credentials invalid (RFC 4954 6)
  [DEFERRED, '4.7.0'], // other security status: temporary authentication failure (RFC 4954 6)
  [DEFERRED, '4.3.5'], // system incorrectly configured: ours
  [FAILED, '5.7.30'], // REQUIRETLS support required
  [FAILED, '5.7.10'], // encryption needed
  [DEFERRED, '4.3.5'], // system incorrectly configured: ours
  [DEFERRED, '4.4.3'], // directory server failure
];

/** No TLS came up where it must; by its code, for a peer may say the same of other things. */
export function isTlsTrouble({ code, enhanced }: RecipientResult): boolean {
  return code === 0 && (enhanced === '4.7.4' || enhanced === '4.7.5');
}

/** A server does not take our user and password; by its code, as above. */
export function isPasswordRefused({ code, enhanced }: RecipientResult): boolean {
  return code === 0 && enhanced === '4.7.8';
}

/** What a trouble means; `text` says what happened, with whom. */
export function classifyTrouble(trouble: Trouble, text: string): RecipientResult {
  const row = TROUBLES[trouble] ?? [DEFERRED, '4.0.0'];
  return { status: row[0], code: 0, enhanced: row[1], text: text.slice(0, TEXT_CHARACTERS_MAX) };
}
