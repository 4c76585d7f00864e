/**
 * Commands that touch no content: RSET, NOOP, QUIT, HELP, VRFY (RFC 5321 4.1.1.5 to 4.1.1.10) and STARTTLS
 * (RFC 3207).
 */
import type { Desk } from '../session/desk.js';
import type { InboundDialog } from '../session/dialog.js';
import * as replies from '../session/replies.js';
import type { Effect } from '../session/replies.js';
import { isHttpRequest } from './command-line.js';

export function noop(): Effect {
  return replies.OK;
}

export function help(): Effect {
  return replies.HELP_TEXT;
}

export function vrfy(_dialog: InboundDialog, _desk: Desk, text: string): Effect {
  return hasArgument(text) ? replies.CANNOT_VERIFY : replies.ARGUMENT_MISSING;
}

export function reset(dialog: InboundDialog, _desk: Desk, text: string): Effect {
  if (hasArgument(text)) return replies.ARGUMENT_UNEXPECTED;
  dialog.endTransaction();
  return replies.FLUSHED;
}

export function quit(_dialog: InboundDialog, _desk: Desk, text: string): Effect {
  return hasArgument(text) ? replies.ARGUMENT_UNEXPECTED : replies.BYE;
}

export function startTls(dialog: InboundDialog, desk: Desk, text: string): Effect {
  if (!desk.options.offersTls) return replies.COMMAND_ABSENT;
  if (hasArgument(text)) return replies.ARGUMENT_UNEXPECTED;
  return dialog.tlsVersion === '' ? replies.START_TLS : replies.TLS_ALREADY;
}

/** Known from RFCs, and not offered. */
export function absent(): Effect {
  return replies.COMMAND_ABSENT;
}

export function unknown(_dialog: InboundDialog, _desk: Desk, text: string): Effect {
  return isHttpRequest(text) ? replies.HTTP_REQUEST : replies.COMMAND_UNKNOWN;
}

export function hasArgument(text: string): boolean {
  return text.includes(' ');
}
