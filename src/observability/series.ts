/**
 * Series of Prometheus whose values are read when somebody scrapes: nothing is pushed on the path of a
 * message. A registry belongs to one gateway or store, not to the process.
 */
import { Counter, Gauge, Registry } from 'prom-client';

/** Value of one series, with its labels. */
export type Sample<Label extends string> = readonly [labels: Readonly<Record<Label, string>>, value: number];

export class Series {
  readonly registry = new Registry();
  readonly #prefix: string;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  gauge(name: string, help: string, read: () => number): void {
    this.gauges(name, help, [], () => [[{}, read()]]);
  }

  /** Series that `read` does not name any more end. */
  gauges<Label extends string>(
    name: string, help: string, labels: readonly Label[], read: () => Iterable<Sample<Label>>,
  ): void {
    new Gauge({
      name: `${this.#prefix}_${name}`, help, labelNames: labels, registers: [this.registry],
      collect() {
        this.reset();
        for (const [of, value] of read()) this.set(of, value);
      },
    });
  }

  /** A number that only grows. */
  counter(name: string, help: string, read: () => number): void {
    this.counters(name, help, [], () => [[{}, read()]]);
  }

  counters<Label extends string>(
    name: string, help: string, labels: readonly Label[], read: () => Iterable<Sample<Label>>,
  ): void {
    new Counter({
      name: `${this.#prefix}_${name}_total`, help, labelNames: labels, registers: [this.registry],
      collect() {
        this.reset();
        for (const [of, value] of read()) this.inc(of, value);
      },
    });
  }
}
