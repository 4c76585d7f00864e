/**
 * The time that one answer of `explain` has: who asks waits for 30 s (admin-api/routes.ts), while one silent
 * server may take 60 s and each of many questions to a silent resolver 9 s. What is not known when it is over
 * is told as that, beside what is.
 */
import type { DnsAnswer, DnsType, Resolver } from '../../platform/resolver.js';

export class AnswerTime implements Resolver {
  readonly #resolver: Resolver;
  readonly #timer: NodeJS.Timeout;
  /** Done when it is, or when the answer is: who does something for it gives up. */
  readonly over: Promise<void>;
  readonly #end: () => void;
  /** Why something is not known then, in a few words. */
  readonly whyLate: string;
  #isOver = false;

  constructor(withinMs: number, resolver: Resolver) {
    this.#resolver = resolver;
    this.whyLate = `not within the ${String(withinMs / 1000)} s that this answer has`;
    let end = (): void => undefined;
    this.over = new Promise<void>((resolve) => { end = resolve; });
    this.#end = end;
    this.#timer = setTimeout(() => {
      this.#isOver = true;
      end();
    }, withinMs);
  }

  get isOver(): boolean { return this.#isOver; }

  /** `late` where it does not come in time. */
  within<T>(told: Promise<T>, late: T): Promise<T> {
    return Promise.race([told, this.over.then(() => late)]);
  }

  /** The DNS, for as long. */
  ask<T extends DnsType>(name: string, type: T, done: (answer: DnsAnswer<T>) => void): void {
    const told = new Promise<DnsAnswer<T>>((resolve) => { this.#resolver.ask(name, type, resolve); });
    void this.within(told, { kind: 'failed', why: this.whyLate }).then(done);
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#end();
  }
}
