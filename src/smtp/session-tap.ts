/**
 * Where an SMTP session tells what is said on it while an operator follows it (`twinpost trace`): sessions of
 * clients and of next hops have one each. While nobody follows, a session pays for one look at `isOn` a line.
 *
 * What it is never told: what authenticates somebody, and content. Pure.
 */

/** Who said it; a note says what happened. */
export type Speaker = 'client' | 'server' | 'note';

export interface SessionTap {
  readonly isOn: boolean;
  /** `peer`: an address, or HOST[ADDRESS]:PORT; `port`: 0 where that has one. `text`: one line or several. */
  said(peer: string, port: number, who: Speaker, text: string): void;
}

export const NO_TAP: SessionTap = { isOn: false, said: () => undefined };

/** Verbs of RFC 5321 and extensions whose parameters hold no secret. */
const OPEN = /^(?:EHLO|HELO|LHLO|MAIL|RCPT|DATA|BDAT|RSET|NOOP|QUIT|VRFY|EXPN|HELP|STARTTLS|XCLIENT)(?: |$)/i;
/** Any other word may be the password of who says it in the wrong place. */
const AUTH = new RegExp('^AUTH(?: +(PLAIN|LOGIN|EXTERNAL|CRAM-MD5|DIGEST-MD5'
  + '|SCRAM-SHA-(?:1|256|512)(?:-PLUS)?|XOAUTH2|OAUTHBEARER|GSSAPI|NTLM|ANONYMOUS)(?= |$))?', 'i');

/**
 * A command as others may see it. What is no command may be a password that came where none was asked for.
 */
export function shownCommand(text: string): string {
  if (OPEN.test(text)) return text;
  const [isAuth, mechanism = ''] = AUTH.exec(text) ?? [];
  if (isAuth !== undefined) return mechanism === '' ? 'AUTH ***' : `AUTH ${mechanism} ***`;
  return `(${String(text.length)} characters that are no command)`;
}
