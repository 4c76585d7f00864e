/**
 * BDAT (RFC 3030): content in chunks whose length is told, by the rules of DATA: bare CR, bare LF and NUL are
 * refused, BINARYMIME is not offered.
 *
 *   BDAT octets ─ so many octets ─▶ 250          BDAT octets LAST ─ octets ─▶ the message is submitted
 *   a refused chunk is read to its length first; then all chunks up to RSET are refused
 *
 * What is no number can't be told from commands that follow: then the connection ends.
 */
import { upperKeyword } from '../../../base/fold-case.js';
import type { Desk } from '../session/desk.js';
import type { InboundDialog } from '../session/dialog.js';
import * as replies from '../session/replies.js';
import type { Effect, Refusal } from '../session/replies.js';

const OCTETS_DIGITS_MAX = 15;
/** A message this many times over the limit is not listened to any longer. */
export const OVERSIZE_PATIENCE = 2;
/** Chunks of fewer octets than this bring no message nearer. */
const PROGRESS_OCTETS_MIN = 512;

export function bdat(dialog: InboundDialog, desk: Desk, text: string): Effect {
  const [, octetsText = '', last, ...more] = text.split(' ').filter((word) => word !== '');
  const isLast = upperKeyword(last ?? '') === 'LAST';
  const isSyntax = /^\d+$/.test(octetsText) && octetsText.length <= OCTETS_DIGITS_MAX && more.length === 0;
  if (!isSyntax || (last !== undefined && !isLast)) return replies.BDAT_SYNTAX;
  const octets = Number(octetsText);
  const { messageBytesMax } = desk.options;
  const before = dialog.transaction?.content.bytes ?? 0;
  if (before + octets > messageBytesMax * OVERSIZE_PATIENCE) return replies.FAR_TOO_BIG;
  dialog.chunk = { octets, isLast, refusal: refusalOf(dialog, before + octets > messageBytesMax) };
  return octets < PROGRESS_OCTETS_MIN ? replies.CHUNK_FOLLOWS : replies.LARGE_CHUNK_FOLLOWS;
}

function refusalOf({ transaction, helo }: InboundDialog, isTooBig: boolean): Refusal | undefined {
  if (transaction === undefined) return helo === '' ? replies.GREET_FIRST : replies.MAIL_FIRST;
  if (transaction.hasFailed) return replies.CHUNK_AFTER_FAILURE;
  if (transaction.namedCount === 0) return replies.NO_RECIPIENTS;
  return isTooBig ? replies.TOO_BIG : undefined;
}
