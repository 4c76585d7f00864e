/** DATA (RFC 5321 4.1.1.4): the content may follow when somebody is to have it. */
import type { Desk } from '../session/desk.js';
import type { InboundDialog } from '../session/dialog.js';
import * as replies from '../session/replies.js';
import type { Effect } from '../session/replies.js';
import { hasArgument } from './plain.js';

export function data(dialog: InboundDialog, _desk: Desk, text: string): Effect {
  if (hasArgument(text)) return replies.ARGUMENT_UNEXPECTED;
  const { transaction } = dialog;
  if (transaction === undefined) return dialog.helo === '' ? replies.GREET_FIRST : replies.MAIL_FIRST;
  if (transaction.isChunked) return replies.CHUNKS_BEGUN;
  return transaction.namedCount === 0 ? replies.NO_RECIPIENTS : replies.START_CONTENT;
}
