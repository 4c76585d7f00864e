/**
 * A histogram of durations on a logarithmic scale: fixed memory, no allocation to record, quantiles that
 * are off by at most 1/64. Owned by whoever measures (load/run.ts, bench).
 *
 * A value v (whole microseconds) below 64 has its own bucket; above, each power of two is divided into 64
 * buckets:  bucket = 64 × (octave) + the six bits below the highest one.
 */

const STEPS_BITS = 6;
const STEPS = 1 << STEPS_BITS;
/** Values up to 2^31 µs (35 minutes); longer ones count as that. */
const VALUE_MAX = 0x7fffffff;
const BUCKETS = (32 - STEPS_BITS) * STEPS;

export class Histogram {
  readonly #counts = new Float64Array(BUCKETS);
  #total = 0;
  #sum = 0;
  #max = 0;

  record(micros: number): void {
    const value = micros < 0 ? 0 : micros > VALUE_MAX ? VALUE_MAX : Math.round(micros);
    const bucket = bucketOf(value);
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#total++;
    this.#sum += value;
    if (value > this.#max) this.#max = value;
  }

  get count(): number {
    return this.#total;
  }

  get max(): number {
    return this.#max;
  }

  get mean(): number {
    return this.#total === 0 ? 0 : this.#sum / this.#total;
  }

  /** The value below which the share `share` (0 … 1) of all values lies: the middle of its bucket. */
  quantile(share: number): number {
    const wanted = Math.max(1, Math.ceil(this.#total * share));
    let seen = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      seen += this.#counts[bucket] ?? 0;
      if (seen >= wanted) return Math.min(middleOf(bucket), this.#max);
    }
    return this.#max;
  }
}

function bucketOf(value: number): number {
  if (value < STEPS) return value;
  const shift = 31 - Math.clz32(value) - STEPS_BITS;
  return (shift + 1) * STEPS + ((value >>> shift) - STEPS);
}

function middleOf(bucket: number): number {
  if (bucket < STEPS) return bucket;
  const shift = Math.floor(bucket / STEPS) - 1;
  const low = (STEPS + (bucket % STEPS)) * 2 ** shift;
  return low + (2 ** shift - 1) / 2;
}
