/**
 * SIGINT and SIGTERM as a promise and an AbortSignal, and SIGHUP where that means that the terminal is gone.
 * Handlers are installed by the first one who waits, so that verbs that do not wait die of Ctrl-C as any
 * program does.
 */
import type { Order } from '../admin-api/orders.js';
import type { PassedSignal } from '../cli/context.js';

export class Signals {
  readonly #controller = new AbortController();
  readonly #stopped: Promise<void>;
  #resolve: () => void = () => undefined;
  #installed = false;
  #second: (() => void) | undefined;
  readonly #isHangUpStop: boolean;

  constructor(isHangUpStop: boolean) {
    this.#isHangUpStop = isHangUpStop;
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
      if (this.#isHangUpStop) process.on('SIGHUP', onSignal);
    }
    return this.#stopped;
  }

  onSecond(callback: () => void): void {
    this.#second = callback;
  }
}

/**
 * They would end a process, and ask for nothing here: SIGUSR2 has a log file opened anew (log-file.ts), and
 * who writes to no file gets it, too; past a limit for files the write itself fails (SIGXFSZ). SIGUSR1, which
 * some daemons have for that, would open Node's debugger to everybody on this machine.
 *
 * Not here: what stops a process and does not end it (SIGTSTP), and what says that it is broken (SIGSEGV,
 * SIGABRT and their kind): one that is must not go on.
 */
const IDLE_SIGNALS = [
  'SIGUSR1', 'SIGUSR2', 'SIGQUIT', 'SIGALRM', 'SIGVTALRM', 'SIGPROF', 'SIGXCPU', 'SIGXFSZ', 'SIGIO', 'SIGPWR',
  'SIGSTKFLT',
] as const;
const HANG_UP: Order = { reason: 'SIGHUP', who: 'SIGHUP' };

/**
 * How people ask daemons to read their files again, and what log rotation sends out of habit: no signal but
 * SIGTERM and SIGINT may end a process that holds mail or that others need, or one that starts. A SIGHUP
 * that comes before somebody follows counts then.
 */
export class HangUps {
  #hasCome = false;
  #follow: () => void = () => { this.#hasCome = true; };

  constructor() {
    process.on('SIGHUP', () => { this.#follow(); });
    for (const signal of IDLE_SIGNALS) process.on(signal, () => undefined);
  }

  reload(reloads: { reload(order: Order): Promise<unknown> }): void {
    this.#by(() => { void reloads.reload(HANG_UP); });
  }

  /** For who has processes that go by them. */
  pass(to: (signal: PassedSignal) => void): void {
    process.on('SIGUSR2', () => { to('SIGUSR2'); });
    this.#by(() => { to('SIGHUP'); });
  }

  #by(follow: () => void): void {
    this.#follow = follow;
    if (this.#hasCome) follow();
  }
}
