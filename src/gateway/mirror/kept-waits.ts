/**
 * Answers to operators that wait until the mirrors have what was changed for them: a hold that somebody was
 * told of survives a crash of the gateway, or the answer says that it may not.
 *
 *   wait(changes) ─ every copy that counts has each ─► done(true)
 *                 └ KEPT_WAIT_MS over ──────────────► done(false)
 *
 * Pure: time comes by tick().
 */
import type { Clock } from '../../platform/ports.js';

/** Less than the command line waits for an answer. A round trip to the mirrors is far shorter. */
export const KEPT_WAIT_MS = 3000;

/** A change of a partition. */
export interface Change {
  readonly partition: { readonly ackedNumber: number };
  readonly number: number;
}

interface KeptWait {
  readonly changes: readonly Change[];
  readonly untilMs: number;
  readonly done: (kept: boolean) => void;
}

export class KeptWaits {
  readonly #clock: Pick<Clock, 'nowMs'>;
  #waits: readonly KeptWait[] = [];

  constructor(clock: Pick<Clock, 'nowMs'>) {
    this.#clock = clock;
  }

  /** `done` is called once, within the bound; at once when there is nothing to wait for. */
  wait(changes: readonly Change[], done: (kept: boolean) => void): void {
    this.#waits = [...this.#waits, { changes, untilMs: this.#clock.nowMs() + KEPT_WAIT_MS, done }];
    if (changes.length === 0) this.tick();
  }

  /** Called a few times in a tenth of a second. */
  tick(): void {
    if (this.#waits.length === 0) return;
    const nowMs = this.#clock.nowMs();
    const open: KeptWait[] = [];
    const over: (() => void)[] = [];
    for (const wait of this.#waits) {
      const isKept = wait.changes.every(({ partition, number }) => partition.ackedNumber >= number);
      if (isKept) over.push(() => { wait.done(true); });
      else if (nowMs >= wait.untilMs) over.push(() => { wait.done(false); });
      else open.push(wait);
    }
    this.#waits = open;
    for (const tell of over) tell();
  }
}
