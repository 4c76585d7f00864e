/**
 * What the log files of this process tell of messages (admin-api/logged.ts), read until all of the time that
 * is asked for is, enough was found, or there is no more time. It keeps the thread busy that it runs in
 * (log-thread-entry.ts).
 */
import type { LoggedAnswer, LoggedQuestion } from '../../../admin-api/logged.js';
import { LogFilter, bareMessageId } from '../../../observability/log-filter.js';
import { LoggedMail } from '../../../observability/logged-mail.js';
import { toAscii } from '../../../platform/node/idna.js';
import { AddressPattern } from '../../../smtp/address-pattern.js';
import { LogPieces, lineTimeMs } from './log-pieces.js';

/** Each is looked for by itself; of more all lines are read. */
const NEEDLES_MAX = 16;
const LINE_FEED = 0x0a;
const CAPITAL_A = 0x41;
const CAPITAL_Z = 0x5a;
const SMALL_A = 0x61;
/** JSON has them as they are, and nobody writes them otherwise. */
const AS_THEY_ARE = /[!#-)+-[\]-~]+/g;

export interface Bounds {
  /** On the clock of performance.now(). */
  readonly endMs: number;
  readonly bytesMax: number;
}

/** Throws when there is no such file. */
export function searchLog(file: string, question: LoggedQuestion, { endMs, bytesMax }: Bounds): LoggedAnswer {
  const { since_ms: sinceMs, until_ms: untilMs, limit, onward: isOnward = false, ids = [] } = question;
  const pieces = new LogPieces(file, sinceMs, untilMs);
  try {
    const { recipient } = question;
    const to = recipient === undefined ? undefined : new AddressPattern(recipient, toAscii);
    const filter = filterOf(question, to);
    const needles = needlesOf(question, to);
    const mail = new LoggedMail();
    let [bytes, readMs, isThrough] = [0, isOnward ? sinceMs : untilMs, true];
    for (const piece of isOnward ? pieces.oldestFirst() : pieces.newestFirst()) {
      isThrough = false;
      // What stands there now is of another time.
      if (pieces.wasCut) break;
      bytes += piece.length;
      for (const line of linesWith(piece, needles)) addLine(line, filter, question, mail);
      // Of this one recipients were left out.
      if (mail.isCut) break;
      readMs = edgeOf(piece, isOnward) ?? readMs;
      if (mail.count > limit || performance.now() > endMs || bytes > bytesMax) break;
      isThrough = true;
      if (isOnward && mail.areEnded(ids)) break;
    }
    const isWhole = isThrough && !pieces.wasCut;
    const edgeMs = Math.min(Math.max(readMs, sinceMs), untilMs);
    return {
      messages: mail.newest(limit), more: mail.count > limit && !mail.isCut, why: '',
      read_from_ms: isWhole || isOnward ? sinceMs : edgeMs,
      read_to_ms: isWhole || !isOnward ? untilMs : edgeMs,
      begins_ms: pieces.beginsMs ?? null, lacks: [], unread_files: pieces.unreadCount,
    };
  } finally {
    pieces.close();
  }
}

function filterOf(
  { ids = [], message_id: messageId, sender }: LoggedQuestion, to: AddressPattern | undefined,
): LogFilter {
  return new LogFilter({ ids, messageId, from: sender, to, reply: undefined, source: undefined });
}

interface Needles {
  /** A line that is meant has one of them; none: any line may be. */
  readonly texts: readonly string[];
  /** In small letters, for letters of either case. */
  readonly areFolded: boolean;
}

/** To read each line as JSON takes ten times as long as to find those that may be meant. */
function needlesOf(
  { ids, message_id: messageId, sender = '' }: LoggedQuestion, to: AddressPattern | undefined,
): Needles {
  if (ids !== undefined) return { texts: ids.length > NEEDLES_MAX ? [] : ids, areFolded: false };
  if (messageId !== undefined) {
    return { texts: longest(bareMessageId(messageId).match(AS_THEY_ARE)), areFolded: false };
  }
  const of = (pattern: string): readonly string[] => pattern.toLowerCase().match(AS_THEY_ARE) ?? [];
  const senders = sender === '<>' ? ['from":""'] : of(sender);
  return { texts: longest([...senders, ...of(to?.sameInAll ?? '')]), areFolded: true };
}

function longest(runs: readonly string[] | null): readonly string[] {
  const [first] = [...runs ?? []].sort((a, b) => b.length - a.length);
  return first === undefined ? [] : [first];
}

/** One with two of them comes twice. Bytes are searched as they are: to decode them takes the longest. */
function* linesWith(piece: Buffer, { texts, areFolded }: Needles): Generator<string> {
  if (texts.length === 0) {
    yield* piece.toString('utf8').split('\n');
    return;
  }
  const searched = areFolded ? folded(piece) : piece;
  for (const text of texts) {
    for (let at = searched.indexOf(text); at >= 0 && at < piece.length;) {
      const start = searched.lastIndexOf(LINE_FEED, at) + 1;
      const next = searched.indexOf(LINE_FEED, at);
      const end = next < 0 ? piece.length : next;
      yield piece.toString('utf8', start, end);
      // An empty one, or one with a line end in it, comes to its end, too.
      at = searched.indexOf(text, Math.max(end, at + 1));
    }
  }
}

function folded(piece: Buffer): Buffer {
  const small = Buffer.allocUnsafe(piece.length);
  for (let i = 0; i < piece.length; i++) {
    const byte = piece[i] ?? 0;
    small[i] = byte >= CAPITAL_A && byte <= CAPITAL_Z ? byte + (SMALL_A - CAPITAL_A) : byte;
  }
  return small;
}

function addLine(
  line: string, filter: LogFilter, { ids, since_ms: sinceMs, until_ms: untilMs }: LoggedQuestion,
  mail: LoggedMail,
): void {
  const fields = filter.meant(line);
  if (fields === undefined) return;
  const { time, queue_id: id } = fields;
  const atMs = typeof time === 'string' ? Date.parse(time) : NaN;
  // The filter follows reports, too.
  const isAsked = ids === undefined || (typeof id === 'string' && ids.includes(id));
  if (isAsked && atMs >= sinceMs && atMs <= untilMs) mail.addLine(fields, atMs);
}

/** The time of its last line, or of its first. */
function edgeOf(piece: Buffer, isLast: boolean): number | undefined {
  const end = piece.length - 1;
  const edge = isLast ? piece.subarray(piece.lastIndexOf(LINE_FEED, end - 1) + 1)
    : piece.subarray(0, piece.indexOf(LINE_FEED) >>> 0);
  return lineTimeMs(edge.toString('latin1'));
}
