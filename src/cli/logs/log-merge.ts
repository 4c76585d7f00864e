/**
 * Several mail logs as one, by the times of their lines: of each so much is in memory as was read at once.
 * A line without a time goes with the one before it. Logs of machines whose clocks differ come out so far out
 * of order as these do.
 */
import { DRY, ENDED } from './log-source.js';
import type { LogSource } from './log-source.js';

const TIME = '"time":"';
/** "2026-01-31T10:00:00.123Z": such texts sort as times do. */
const TIME_CHARACTERS = 24;

interface Head {
  readonly source: LogSource;
  lines: readonly string[];
  at: number;
  /** Of the line at `at`. */
  time: string;
  isEnded: boolean;
}

export class LogMerge {
  readonly #heads: readonly Head[];
  readonly #onFault: (source: LogSource, error: unknown) => void;

  /** `onFault`: it can't be read (on); it ends there. */
  constructor(sources: readonly LogSource[], onFault: (source: LogSource, error: unknown) => void) {
    this.#heads = sources.map((source) => ({ source, lines: [], at: 0, time: '', isEnded: false }));
    this.#onFault = onFault;
  }

  /** The next lines, in order, until more must be read of one of them; DRY: none now. */
  async next(): Promise<readonly string[] | typeof DRY | typeof ENDED> {
    await Promise.all(this.#heads.map((head) => this.#fill(head)));
    const lines: string[] = [];
    while (this.#takeRun(lines));
    if (lines.length > 0) return lines;
    return this.#heads.every(({ isEnded }) => isEnded) ? ENDED : DRY;
  }

  /** Of the first head what is not later than the others. False: nothing is left of it, or of any. */
  #takeRun(lines: string[]): boolean {
    let first: Head | undefined;
    let second: Head | undefined;
    for (const head of this.#heads) {
      if (head.at >= head.lines.length) continue;
      if (first === undefined || head.time < first.time) [first, second] = [head, first];
      else if (second === undefined || head.time < second.time) second = head;
    }
    if (first === undefined) return false;
    do take(first, lines);
    while (first.at < first.lines.length && (second === undefined || first.time <= second.time));
    return first.at < first.lines.length;
  }

  async #fill(head: Head): Promise<void> {
    while (!head.isEnded && head.at >= head.lines.length) {
      let read: Awaited<ReturnType<LogSource['read']>>;
      try {
        read = await head.source.read();
      } catch (error) {
        this.#onFault(head.source, error);
        read = ENDED;
      }
      if (read === DRY) return;
      if (read === ENDED) head.isEnded = true;
      else {
        head.lines = read;
        head.at = 0;
        head.time = timeOf(read[0]) ?? head.time;
      }
    }
  }
}

function take(head: Head, lines: string[]): void {
  lines.push(head.lines[head.at] ?? '');
  head.at += 1;
  head.time = timeOf(head.lines[head.at]) ?? head.time;
}

function timeOf(line: string | undefined): string | undefined {
  const at = line?.indexOf(TIME) ?? -1;
  return at < 0 ? undefined : line?.slice(at + TIME.length, at + TIME.length + TIME_CHARACTERS);
}
