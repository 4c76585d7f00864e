/**
 * Commands that touch no message: what they answer, as a reply line or as a refusal. RSET and QUIT do
 * something besides and are in connection.ts. What the library would also understand (WIZ, SHELL, KILL,
 * XCLIENT, XFORWARD) is unknown here.
 */

import { isHttpRequest } from './command-line.js';
import * as replies from './reply-codes.js';
import type { Refusal } from './reply-codes.js';

export function answerPlain(verb: string, text: string): string | Refusal {
  switch (verb) {
    case 'NOOP':
      return replies.OK;
    case 'HELP':
      return replies.HELP_TEXT;
    case 'VRFY':
      return text.length > verb.length ? replies.CANNOT_VERIFY : replies.ARGUMENT_MISSING;
    case 'EXPN':
    case 'AUTH':
    case 'TURN':
    case 'ETRN':
    case 'BDAT':
      return replies.COMMAND_ABSENT;
    default:
      return isHttpRequest(text) ? replies.HTTP_REQUEST : replies.COMMAND_UNKNOWN;
  }
}
