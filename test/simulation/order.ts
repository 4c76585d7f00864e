/**
 * G3, judged at every final dot: of two messages in one queue the one that had its 250 before the other was
 * submitted is tried first; in a strict queue it is over before the other is tried.
 *
 * Owns: per queue the accepted messages in the order of their 250, from the first that has not been tried on.
 */
import type { Copy, Letter } from './ledger.js';

interface Line {
  readonly copies: Copy[];
  /** All before this are done with. */
  done: number;
}

export class OrderWatch {
  private readonly fail: (text: string) => never;
  private readonly fifo = new Map<string, Line>();
  /** By owner and name: a strict queue serves nothing beside what is held. */
  private readonly strict = new Map<string, Line>();

  constructor(fail: (text: string) => never) {
    this.fail = fail;
  }

  onCommitted(letter: Letter): void {
    for (const copy of letter.copies) {
      lineOf(this.fifo, partOf(copy)).copies.push(copy);
      lineOf(this.strict, nameOf(copy)).copies.push(copy);
    }
  }

  onDot(copy: Copy, isStrict: boolean): void {
    const waiting = firstOpen(lineOf(this.fifo, partOf(copy)), (one) => one.firstAttempt !== 0);
    if (waiting !== undefined && waiting !== copy && waiting.letter.settledAt < copy.letter.submittedAt) this.fail(`G3: in ${copy.queueName} message ${String(copy.letter.id)} is tried before ${String(waiting.letter.id)}, which had its 250 earlier`);
    if (!isStrict) return;
    const before = firstOpen(lineOf(this.strict, nameOf(copy)), (one) => one.isTried);
    if (before !== undefined && before !== copy && before.letter.settledAt < copy.letter.submittedAt) this.fail(`G3: in strict ${copy.queueName} message ${String(copy.letter.id)} is tried while ${String(before.letter.id)} is not over`);
  }
}

/** A queue in one partition: between two parts of it no order is promised once another process serves them (G3). */
function partOf(copy: Copy): string {
  return `${copy.queueKey}/${copy.queueName}`;
}

function nameOf(copy: Copy): string {
  return `${copy.letter.gateway}/${copy.queueName}`;
}

function lineOf(lines: Map<string, Line>, key: string): Line {
  const known = lines.get(key) ?? { copies: [], done: 0 };
  lines.set(key, known);
  return known;
}

function firstOpen(line: Line, isDone: (copy: Copy) => boolean): Copy | undefined {
  for (let copy = line.copies[line.done]; copy !== undefined; copy = line.copies[line.done]) {
    if (!copy.isExcused && !copy.hasNoPlace && !isDone(copy)) return copy;
    line.done += 1;
  }
  return undefined;
}
