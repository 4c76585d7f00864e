/** Every command that is known, and what it does. What is not here is unknown (plain.ts). */
import type { RejectStage } from '../options.js';
import type { Desk } from '../session/desk.js';
import type { InboundDialog } from '../session/dialog.js';
import type { Effect } from '../session/replies.js';
import { auth } from './auth.js';
import { bdat } from './bdat.js';
import { data } from './data.js';
import { ehlo, helo } from './hello.js';
import { mail } from './mail.js';
import { absent, help, noop, quit, reset, startTls, unknown, vrfy } from './plain.js';
import { recipient } from './recipient.js';
import { xclient } from './xclient.js';

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

export function commandOf(verb: string): Command {
  return COMMANDS.get(verb) ?? UNKNOWN;
}
