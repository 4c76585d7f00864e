/** The line to a map in the same process: always up, until the map is given up. */
import type {
  Line,
  LineHandlers,
  ChangesHandler,
  LeaseAnswer,
  LineWrite,
  RangeAnswer,
  TransactionAnswer,
} from '../line.js';
import type { Range } from '../port.js';
import type { MapHost } from './map-host.js';

export class HostLine implements Line {
  readonly #host: MapHost;
  readonly #endpoint: string;
  readonly #soon: (run: () => void) => void;
  readonly #watches = new Set<{ close(): void; }>();
  #handlers: LineHandlers | undefined;
  #isClosed = false;
  #stopping: { close(): void; } | undefined;

  constructor(host: MapHost, endpoint: string, soon: (run: () => void) => void) {
    this.#host = host;
    this.#endpoint = endpoint;
    this.#soon = soon;
  }

  open(handlers: LineHandlers): void {
    this.#handlers = handlers;
    this.#soon(() => {
      if (this.#isClosed) return;
      if (this.#host.stopped === '') handlers.onUp(this.#endpoint);
      else handlers.onDown(this.#host.stopped);
    });
    this.#stopping = this.#host.onStop((why) => {
      this.#down(why);
    });
  }

  transact(writes: readonly LineWrite[], done: (answer: TransactionAnswer) => void): void {
    this.#host.transact(writes, this.#unlessClosed(done));
  }

  range(ranges: readonly Range[], done: (answer: RangeAnswer) => void): void {
    this.#host.range(ranges, this.#unlessClosed(done));
  }

  watch(prefixes: readonly string[], afterRevision: number, handler: ChangesHandler): { close(): void; } {
    const watch = this.#host.watch(prefixes, afterRevision, handler);
    this.#watches.add(watch);
    return {
      close: () => {
        watch.close();
        this.#watches.delete(watch);
      },
    };
  }

  grant(session: string, ttlMs: number, done: (answer: LeaseAnswer) => void): void {
    this.#host.grant(session, ttlMs, this.#unlessClosed(done));
  }

  renew(session: string, done: (answer: LeaseAnswer) => void): void {
    this.#host.renew(session, this.#unlessClosed(done));
  }

  revoke(session: string, done: (answer: LeaseAnswer) => void): void {
    this.#host.revoke(session, this.#unlessClosed(done));
  }

  /** The disk did not answer in time: what was asked is given up; there is no other endpoint. */
  reset(why: string): void {
    this.#soon(() => {
      if (this.#isClosed || this.#host.stopped !== '') return;
      this.#down(why);
      this.#handlers?.onUp(this.#endpoint);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#stopping?.close();
    for (const watch of this.#watches) watch.close();
    this.#watches.clear();
  }

  #down(why: string): void {
    if (!this.#isClosed) this.#handlers?.onDown(why);
  }

  #unlessClosed<Answer>(done: (answer: Answer) => void): (answer: Answer) => void {
    return (answer) => {
      if (!this.#isClosed) done(answer);
    };
  }
}
