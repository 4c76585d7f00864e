/**
 * SIGINT and SIGTERM as a promise and an AbortSignal. Handlers are installed by the first one who waits, so
 * that verbs that do not wait die of Ctrl-C as any program does.
 */
import type { EventLog } from '../platform/ports.js';

export class Signals {
  readonly #controller = new AbortController();
  readonly #stopped: Promise<void>;
  #resolve: () => void = () => undefined;
  #installed = false;
  #second: (() => void) | undefined;

  constructor() {
    this.#stopped = new Promise((resolve) => { this.#resolve = resolve; });
  }

  /** Aborted together with untilStopped(); asking for it alone installs nothing. */
  get aborted(): AbortSignal {
    return this.#controller.signal;
  }

  untilStopped(): Promise<void> {
    if (!this.#installed) {
      this.#installed = true;
      const onSignal = (): void => {
        if (this.#controller.signal.aborted) this.#second?.();
        this.#controller.abort();
        this.#resolve();
      };
      process.on('SIGINT', onSignal);
      process.on('SIGTERM', onSignal);
    }
    return this.#stopped;
  }

  onSecond(callback: () => void): void {
    this.#second = callback;
  }
}

const NOTHING_CHANGES = 'SIGHUP changes nothing: '
  + 'users, tables and certificates are read again by themselves, all else by a restart';

/**
 * SIGHUP is how people ask daemons to read their files again, and log rotation sends it out of habit: it must
 * not end a process that holds mail.
 */
export function ignoreHangUp(log: EventLog): void {
  process.on('SIGHUP', () => {
    log.warn('signal', NOTHING_CHANGES);
  });
}
