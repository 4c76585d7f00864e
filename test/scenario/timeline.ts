/**
 * Time as one process of a scenario or simulated world sees it. The scheduler itself is one (scheduler.ts); a
 * simulated process has its own, with a clock that runs at its own rate, that stands while the process is frozen
 * and whose plans end with it (test/simulation/process.ts).
 */
export interface Timeline {
  /** The process's monotonic clock. */
  readonly nowMs: number;
  after(delayMs: number, run: () => void): void;
  /** At this instant, behind everything that was asked for before: what setImmediate is to a process. */
  soon(run: () => void): void;
  /** Notes an event in the hash of the run. */
  trace(text: string): void;
}

/** What the network asks of the machine behind an address. */
export interface Host {
  /** True: the process takes no step; its kernel still accepts connections and keeps what arrives. */
  readonly isFrozen: boolean;
  /** News of a connection for the process: at this instant, or when it reads its sockets again. */
  tell(run: () => void): void;
}
