/**
 * What a verb shows again and again until Ctrl-C: in a window drawn in place, else written below one another.
 * Who restarts meanwhile is just what one looks for: a look that fails is said, and the next one comes.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { CliContext } from './context.js';
import { CliError } from './context.js';
import { fittingLines } from './status-text.js';

const EVERY_MS = 1_000;
/** A look that asks much of a group comes so much more seldom. Waiting for who says nothing is rest, too. */
const REST_SHARE = 9;

/**
 * Wrapping off, so that a line is a row; home; each line cleared as it is written; the rest below cleared.
 */
const BEGIN_DRAWING = '\u001b[?7l\u001b[?25l';
const END_DRAWING = '\u001b[?7h\u001b[?25h';

/** What a look brings. */
export interface Looked {
  /** Of the look, spent on waiting for who says nothing (Group.awaitedMs). */
  readonly awaitedMs?: number | undefined;
}

export interface Live<T extends Looked> {
  look(): Promise<T>;
  /** For a window. */
  lines(picture: T): readonly string[];
  /** For a pipe, and as JSON. */
  print(picture: T): void;
}

export interface LiveOptions {
  readonly json: boolean;
  /** So many looks; without end when left out. */
  readonly ticks?: number | undefined;
}

/** Resolves with the last picture, if there is one. */
export async function showLive<T extends Looked>(
  live: Live<T>, { json, ticks }: LiveOptions, context: CliContext,
): Promise<T | undefined> {
  const { terminal, stopSignal } = context;
  void context.untilStopped();
  const draws = terminal.isTty && !json;
  if (draws) terminal.write(`${BEGIN_DRAWING}\u001b[2J`);
  let picture: T | undefined;
  for (let tick = 1; !stopSignal.aborted; tick++) {
    const beganMs = performance.now();
    let awaitedMs = 0;
    try {
      picture = await live.look();
      awaitedMs = picture.awaitedMs ?? 0;
      if (draws) draw(live.lines(picture), context);
      else live.print(picture);
    } catch (error) {
      if (!(error instanceof CliError)) throw error;
      awaitedMs = performance.now() - beganMs;
      if (draws) draw([error.message], context);
      else terminal.error(error.message);
    }
    if (tick === ticks) break;
    const askedMs = performance.now() - beganMs - awaitedMs;
    const restMs = Math.max(0, Math.max(EVERY_MS, REST_SHARE * askedMs) - awaitedMs);
    await sleep(restMs, undefined, { signal: stopSignal }).catch(() => undefined);
  }
  if (draws) terminal.write(`${END_DRAWING}\n`);
  return picture;
}

/** One write, over what stands there: nothing flickers. The cursor stands in the row below. */
function draw(lines: readonly string[], { terminal }: CliContext): void {
  const fits = fittingLines(lines, Math.max(1, terminal.rows - 1));
  terminal.write(`\u001b[H${fits.map((line) => `${line}\u001b[K\n`).join('')}\u001b[J`);
}
