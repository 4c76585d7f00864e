/**
 * What of the messages that `send` has marked is here, told at any moment without a look at all of them: for
 * `twinpost up`. `send` numbers the messages of a run 1, 2, 3 …: a bit for each that has come, so one that
 * comes again is seen, and what is missing is what the highest number has above the count: what is lost
 * behind that is not seen. The judgement of a whole run, by the sender's own log, is sink/verify.ts.
 */
import type { TallyAnswer } from '../admin-api/sink-answers.js';
import type { Marks } from '../load/marks.js';

/** For all runs together: 500 million messages. */
const BYTES_MAX = 64 * 1024 * 1024;
const FIRST_BYTES = 1024;

interface TalliedRun {
  bits: Uint8Array;
  highest: number;
  arrived: number;
}

export class Tally {
  readonly #runs = new Map<string, TalliedRun>();
  #bytes = 0;
  #altered = 0;
  #repeated = 0;
  #complete = true;

  add({ run: name, id, hash, actualHash }: Marks): void {
    if (hash !== actualHash) this.#altered += 1;
    const run = this.#runOf(name, id);
    if (run === undefined) {
      this.#complete = false;
      return;
    }
    const at = Math.floor(id / 8);
    const bit = 1 << (id % 8);
    const before = run.bits[at] ?? 0;
    if ((before & bit) !== 0) {
      this.#repeated += 1;
      return;
    }
    run.bits[at] = before | bit;
    run.arrived += 1;
    if (id > run.highest) run.highest = id;
  }

  answer(unmarked: number): TallyAnswer {
    let [arrived, missing] = [0, 0];
    for (const run of this.#runs.values()) {
      arrived += run.arrived;
      missing += run.highest - run.arrived;
    }
    return {
      arrived, missing, altered: this.#altered, repeated: this.#repeated, unmarked, complete: this.#complete,
    };
  }

  /** With room for that number; undefined when there is none left. */
  #runOf(name: string, id: number): TalliedRun | undefined {
    const known = this.#runs.get(name);
    const needed = Math.floor(id / 8) + 1;
    if (known !== undefined && known.bits.length >= needed) return known;
    const length = Math.max(FIRST_BYTES, needed, 2 * (known?.bits.length ?? 0));
    const more = length - (known?.bits.length ?? 0);
    if (id < 1 || this.#bytes + more > BYTES_MAX) return undefined;
    this.#bytes += more;
    const bits = new Uint8Array(length);
    if (known === undefined) {
      const run = { bits, highest: 0, arrived: 0 };
      this.#runs.set(name, run);
      return run;
    }
    bits.set(known.bits);
    known.bits = bits;
    return known;
  }
}
