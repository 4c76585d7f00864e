/**
 * A histogram whose observe() costs a few comparisons and two additions: counts in typed arrays, turned into
 * Prometheus text only when someone asks. prom-client's own builds and hashes a label object for every value.
 *
 *   bounds  0.001  0.0025  0.005 …  10     upper bounds, seconds
 *   counts  [ 12 |    40 |    3 … |  0 ]+1  one more for values above the last bound
 *
 * What is not here: names, help texts and which values are measured (gateway-metrics.ts).
 */
import { Histogram } from 'prom-client';
import type { MetricObjectWithValues, MetricValueWithName, Registry } from 'prom-client';

export class FixedHistogram {
  readonly #bounds: Float64Array;
  readonly #counts: Float64Array;
  #sum = 0;

  /** Ascending upper bounds in the unit that the metric is shown in. */
  constructor(bounds: readonly number[]) {
    this.#bounds = Float64Array.from(bounds);
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    // At most 16 bounds: a binary search over them is four steps, mispredicted each; most values are small.
    let i = 0;
    while (i < bounds.length && value > (bounds[i] ?? 0)) i++;
    this.#counts[i] = (this.#counts[i] ?? 0) + 1;
    this.#sum += value;
  }

  get count(): number {
    let total = 0;
    for (const count of this.#counts) total += count;
    return total;
  }

  get sum(): number {
    return this.#sum;
  }

  get bounds(): readonly number[] {
    return Array.from(this.#bounds);
  }

  /** Values of the text format: cumulative buckets, sum, count. */
  values(name: string): MetricValueWithName<string>[] {
    const values: MetricValueWithName<string>[] = [];
    let total = 0;
    for (let i = 0; i < this.#bounds.length; i++) {
      total += this.#counts[i] ?? 0;
      values.push({ metricName: `${name}_bucket`, labels: { le: this.#bounds[i] ?? 0 }, value: total });
    }
    total += this.#counts[this.#bounds.length] ?? 0;
    values.push({ metricName: `${name}_bucket`, labels: { le: '+Inf' }, value: total });
    values.push({ metricName: `${name}_sum`, labels: {}, value: this.#sum });
    values.push({ metricName: `${name}_count`, labels: {}, value: total });
    return values;
  }
}

/** Registers a FixedHistogram under a name; the registry then reads it whenever it is scraped. */
export class ExportedHistogram extends Histogram {
  readonly #name: string;
  readonly #help: string;
  readonly #source: FixedHistogram;

  constructor(registry: Registry, name: string, help: string, source: FixedHistogram) {
    super({ name, help, buckets: [...source.bounds], registers: [registry] });
    this.#name = name;
    this.#help = help;
    this.#source = source;
  }

  override get(): Promise<MetricObjectWithValues<MetricValueWithName<string>>> {
    return Promise.resolve(this.#export());
  }

  /** What prom-client's registry prefers over get() when it writes text. */
  getForPromString(): Promise<MetricObjectWithValues<MetricValueWithName<string>>> {
    return this.get();
  }

  #export(): MetricObjectWithValues<MetricValueWithName<string>> {
    const values = this.#source.values(this.#name);
    // The type wants prom-client's enum, whose values JavaScript knows as these words.
    const shape = { name: this.#name, help: this.#help, type: 'histogram', aggregator: 'sum', values };
    return shape as unknown as MetricObjectWithValues<MetricValueWithName<string>>;
  }
}
