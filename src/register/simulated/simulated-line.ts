/**
 * The line of one simulated process to the simulated register. Requests travel on the register's timeline, so
 * they arrive after their sender's death; what comes back runs on the process's own timeline, which stands
 * still while it is frozen.
 */
import type {
  Change,
  ChangesHandler,
  LeaseAnswer,
  Line,
  LineHandlers,
  LineWrite,
  RangeAnswer,
  TransactionAnswer,
} from '../line.js';
import type { Range } from '../port.js';
import type { SimulatedRegister, Timeline } from './simulated-register.js';

const CONNECT_AGAIN_MS = 500;

export class SimulatedLine implements Line {
  readonly #register: SimulatedRegister;
  readonly #own: Timeline;
  #handlers: LineHandlers | undefined;
  #isUp = false;
  #isClosed = false;
  /** What belongs to an older connection is dropped on its way back. */
  #connection = 0;
  #cutter: { close(): void; } | undefined;
  readonly #watches = new Set<{ close(): void; }>();

  constructor(register: SimulatedRegister, own: Timeline) {
    this.#register = register;
    this.#own = own;
  }

  open(handlers: LineHandlers): void {
    this.#handlers = handlers;
    this.#cutter = this.#register.onCut((why) => {
      this.#own.soon(() => {
        this.#drop(why);
      });
    });
    this.#connect();
  }

  transact(writes: readonly LineWrite[], done: (answer: TransactionAnswer) => void): void {
    this.#call((reply) => {
      this.#register.host.transact(writes, reply);
    }, done);
  }

  range(ranges: readonly Range[], done: (answer: RangeAnswer) => void): void {
    this.#call((reply) => {
      this.#register.host.range(ranges, reply);
    }, done);
  }

  watch(prefixes: readonly string[], afterRevision: number, handler: ChangesHandler): { close(): void; } {
    const connection = this.#connection;
    let isOpen = true;
    let following: { close(): void; } | undefined;
    let lastMs = 0;
    const onTheWay: (() => void)[] = [];
    const pass = (run: () => void): void => {
      // One connection: what was sent later arrives later, also when times differ in their last bits alone.
      const nowMs = this.#own.nowMs();
      lastMs = Math.max(lastMs, nowMs + this.#register.changeDelayMs());
      onTheWay.push(run);
      this.#own.after(lastMs - nowMs, () => {
        const first = onTheWay.shift();
        if (isOpen && this.#isCurrent(connection)) first?.();
      });
    };
    this.#register.request(() => {
      if (!isOpen) return;
      following = this.#register.host.watch(prefixes, afterRevision, {
        onChanges: (changes: readonly Change[]) => {
          pass(() => {
            handler.onChanges(changes);
          });
        },
        onBroken: (why) => {
          pass(() => {
            handler.onBroken(why);
          });
        },
      });
    }, () => {
      this.#lose(connection);
    });
    const watch = {
      close: () => {
        isOpen = false;
        following?.close();
        this.#watches.delete(watch);
      },
    };
    this.#watches.add(watch);
    return watch;
  }

  grant(session: string, ttlMs: number, done: (answer: LeaseAnswer) => void): void {
    this.#call((reply) => {
      this.#register.host.grant(session, ttlMs, reply);
    }, done);
  }

  renew(session: string, done: (answer: LeaseAnswer) => void): void {
    this.#call((reply) => {
      this.#register.host.renew(session, reply);
    }, done);
  }

  revoke(session: string, done: (answer: LeaseAnswer) => void): void {
    this.#call((reply) => {
      this.#register.host.revoke(session, reply);
    }, done);
  }

  reset(why: string): void {
    this.#own.soon(() => {
      this.#drop(why);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#isUp = false;
    this.#connection += 1;
    this.#cutter?.close();
    for (const watch of [...this.#watches]) watch.close();
  }

  #isCurrent(connection: number): boolean {
    return this.#isUp && !this.#isClosed && this.#connection === connection;
  }

  #call<Answer>(apply: (reply: (answer: Answer) => void) => void, done: (answer: Answer) => void): void {
    const connection = this.#connection;
    const onLost = (): void => {
      this.#lose(connection);
    };
    this.#register.request(() => {
      apply((answer) => {
        this.#register.reply(() => {
          this.#own.soon(() => {
            if (this.#isCurrent(connection)) done(answer);
          });
        }, onLost);
      });
    }, onLost);
  }

  #connect(): void {
    const again = (): void => {
      this.#own.after(CONNECT_AGAIN_MS, () => {
        this.#connect();
      });
    };
    if (this.#isUp || this.#isClosed) return;
    if (this.#register.away === 'refusing') return again();
    this.#register.request(() => {
      this.#own.soon(() => {
        if (this.#isClosed || this.#isUp) return;
        this.#isUp = true;
        this.#connection += 1;
        this.#handlers?.onUp('simulated');
      });
    }, again);
  }

  #lose(connection: number): void {
    this.#own.soon(() => {
      if (this.#isCurrent(connection)) this.#drop('connection reset');
    });
  }

  #drop(why: string): void {
    if (!this.#isUp || this.#isClosed) return;
    this.#isUp = false;
    this.#connection += 1;
    for (const watch of [...this.#watches]) watch.close();
    this.#handlers?.onDown(why);
    this.#connect();
  }
}
