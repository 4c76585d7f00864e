/**
 * The real EventLog: pino's JSON lines, one event a line, to a LogDestination that never blocks. Fields:
 * level, time (ISO), event, msg, then the caller's. Text from outside is made harmless here and nowhere else:
 * JSON escapes quotes and C0 controls; DEL, C1 controls (a terminal obeys them), line separators, direction
 * overrides (they make a line read as another) and lone surrogates are shown as \uXXXX text; long values cut.
 *
 * What is not here: the mail log's lines (observability), and which words exist (docs/LOG.md).
 */
import { pino } from 'pino';
import type { EventLog, LogFields } from '../ports.js';
import { LogDestination } from './log-destination.js';

/** A value longer than this says no more to a reader; a hostile one could fill the buffer alone. */
const VALUE_CHARACTERS_MAX = 2_048;

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface NodeLogOptions {
  readonly level: LogLevel;
  /** Put on every line: which process speaks ("gateway-1"). */
  readonly name: string;
}

export class NodeLog implements EventLog {
  readonly #logger: pino.Logger;

  /** `destination` is shared with the mail log, so that both keep one order and one bound. */
  constructor(options: NodeLogOptions, destination: LogDestination) {
    this.#logger = pino(
      {
        level: options.level,
        base: { name: options.name, pid: process.pid },
        timestamp: pino.stdTimeFunctions.isoTime,
        formatters: { level: (label) => ({ level: label }) },
      },
      destination,
    );
  }

  /** From now on. */
  set level(level: LogLevel) {
    this.#logger.level = level;
  }

  debug(event: string, text: string, fields?: LogFields): void {
    if (this.#logger.isLevelEnabled('debug')) {
      this.#logger.debug(harmlessFields(event, fields), harmless(text));
    }
  }

  info(event: string, text: string, fields?: LogFields): void {
    if (this.#logger.isLevelEnabled('info')) this.#logger.info(harmlessFields(event, fields), harmless(text));
  }

  warn(event: string, text: string, fields?: LogFields): void {
    this.#logger.warn(harmlessFields(event, fields), harmless(text));
  }

  error(event: string, text: string, fields?: LogFields): void {
    this.#logger.error(harmlessFields(event, fields), harmless(text));
  }
}

/** A destination whose line about lost lines is an event like all others. */
export function logDestination(to: number | string, name: string, bufferedBytesMax?: number): LogDestination {
  const lostLine = (lost: number, why: string): string =>
    `${JSON.stringify({
      level: 'warn',
      time: new Date().toISOString(),
      name,
      pid: process.pid,
      event: 'log',
      msg: 'lines of this log were lost',
      lost,
      why,
    })}\n`;
  return new LogDestination(bufferedBytesMax === undefined
    ? { to, lostLine } : { to, lostLine, bufferedBytesMax });
}

function harmlessFields(event: string, fields: LogFields | undefined): Record<string, unknown> {
  const line: Record<string, unknown> = { event };
  if (fields === undefined) return line;
  for (const key in fields) {
    const value = fields[key];
    if (typeof value === 'string') line[key] = harmless(value);
    else if (typeof value === 'object' && value !== null) line[key] = value.map(harmlessElement);
    else line[key] = value;
  }
  return line;
}

function harmlessElement(value: string | number): string | number {
  return typeof value === 'string' ? harmless(value) : value;
}

/** The text itself when nothing in it needs care, which is nearly always. */
export function harmless(text: string): string {
  const length = Math.min(text.length, VALUE_CHARACTERS_MAX);
  let from = 0;
  let out = '';
  for (let i = 0; i < length; i++) {
    const code = text.charCodeAt(i);
    if (code < 0x7f || !isHostile(text, i, code)) continue;
    out += `${text.slice(from, i)}\\u${code.toString(16).padStart(4, '0')}`;
    from = i + 1;
  }
  if (from === 0 && length === text.length) return text;
  return out + text.slice(from, length) + (length < text.length ? '…' : '');
}

function isHostile(text: string, at: number, code: number): boolean {
  if (code <= 0x9f) return true; // DEL and C1
  if (code < 0x200b) return false;
  if (code <= 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2060 && code <= 0x206f)) return true;
  if (code === 0xfeff) return true;
  if (code >= 0xd800 && code <= 0xdbff) return !isLowSurrogate(text.charCodeAt(at + 1));
  if (code >= 0xdc00 && code <= 0xdfff) {
    const before = at === 0 ? 0 : text.charCodeAt(at - 1);
    return before < 0xd800 || before > 0xdbff;
  }
  return false;
}

function isLowSurrogate(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
