/** Every command that is known, and what it does. What is not here is unknown (plain.ts). */
import type { RejectStage } from '../options.js';
import type { Desk } from '../session/desk.js';
import type { InboundDialog } from '../session/dialog.js';
import type { Effect } from '../session/replies.js';
import { auth } from './auth.js';
import { bdat } from './bdat.js';
import { verbOf } from './command-line.js';
import { data } from './data.js';
import { ehlo, helo } from './hello.js';
import { mail } from './mail.js';
import { absent, help, noop, quit, reset, startTls, unknown, vrfy } from './plain.js';
import { recipient } from './recipient.js';
import { xclient } from './xclient.js';

const SPACE = 0x20;
const LOWER_CASE = 0x20;
const LETTER_A = 0x41;
const LETTER_Z = 0x5a;

export interface Command {
  /** What a refusal is counted under. */
  readonly stage: RejectStage;
  /** `text`: the whole line, free of control characters. */
  readonly run: (dialog: InboundDialog, desk: Desk, text: string) => Effect;
}

const COMMANDS: ReadonlyMap<string, Command> = new Map<string, Command>([
  ['MAIL', { stage: 'mail', run: mail }],
  ['RCPT', { stage: 'rcpt', run: recipient }],
  ['DATA', { stage: 'data', run: data }],
  ['BDAT', { stage: 'data', run: bdat }],
  ['EHLO', { stage: 'command', run: ehlo }],
  ['HELO', { stage: 'command', run: helo }],
  ['RSET', { stage: 'command', run: reset }],
  ['QUIT', { stage: 'command', run: quit }],
  ['NOOP', { stage: 'command', run: noop }],
  ['AUTH', { stage: 'auth', run: auth }],
  ['XCLIENT', { stage: 'command', run: xclient }],
  ['STARTTLS', { stage: 'command', run: startTls }],
  ['VRFY', { stage: 'command', run: vrfy }],
  ['HELP', { stage: 'command', run: help }],
  ['EXPN', { stage: 'command', run: absent }],
  ['TURN', { stage: 'command', run: absent }],
  ['ETRN', { stage: 'command', run: absent }],
]);
const UNKNOWN: Command = { stage: 'command', run: unknown };

/** Nearly all verbs have four letters: no text is made to look for them. */
const OF_FOUR_LETTERS: ReadonlyMap<number, Command> = new Map(
  [...COMMANDS].filter(([verb]) => verb.length === 4).map(([verb, command]) => [fourLetters(verb), command]),
);

/** The command of a line. */
export function commandOf(text: string): Command {
  return OF_FOUR_LETTERS.get(fourLetters(text)) ?? COMMANDS.get(verbOf(text)) ?? UNKNOWN;
}

/** The first word as a number, when it has four letters, in upper or lower case; else 0. */
function fourLetters(text: string): number {
  if (text.length > 4 && text.charCodeAt(4) !== SPACE) return 0;
  let letters = 0;
  for (let at = 0; at < 4; at++) {
    const letter = text.charCodeAt(at) & ~LOWER_CASE;
    if (letter < LETTER_A || letter > LETTER_Z) return 0;
    letters = letters * 32 + letter - LETTER_A;
  }
  return letters + 1;
}
