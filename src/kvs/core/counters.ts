/**
 * What a store counts as it works: plain fields, bumped on the hot path, read by metrics when someone asks.
 */

export class StoreCounters {
  framesIn = 0;
  bytesIn = 0;
  acks = 0;
  sections = 0;
  changes = 0;
  blocks = 0;
  blockBytes = 0;
  connections = 0;
  /** Fences accepted. */
  fences = 0;
  /** By reason number (protocol/reasons.ts). */
  readonly refusals: number[] = new Array<number>(16).fill(0);
  /** Fences declined, by reason number. */
  readonly declines: number[] = new Array<number>(8).fill(0);
  /** Closes sent, by reason number. */
  readonly closes: number[] = new Array<number>(16).fill(0);

  refused(reason: number): void {
    this.refusals[reason] = (this.refusals[reason] ?? 0) + 1;
  }

  declined(reason: number): void {
    this.declines[reason] = (this.declines[reason] ?? 0) + 1;
  }

  closed(reason: number): void {
    this.closes[reason] = (this.closes[reason] ?? 0) + 1;
  }
}
