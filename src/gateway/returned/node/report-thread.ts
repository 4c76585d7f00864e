/**
 * The thread of report-entry.ts as the gateway sees it: whatever a mail does to its parser, endless work, an
 * exception, all of the heap, it costs that mail its details, a bounded time, and a new thread.
 *
 *   NONE ─ read() ─▶ LOADING ─ 'ready' ─▶ BUSY ─ answer ─▶ IDLE ─ read() ─▶ BUSY
 *     ▲                 └──────────────────┤                └─ error, exit ──┐
 *     │                                    │ late, error, exit: the mail     │
 *     │                                    │ is given up, failed or late     │
 *     └────────────────────────────────────┴─────────────────────────────────┘
 */
import { Worker } from 'node:worker_threads';
import { BrokenRule, readShape } from '../../../base/json-shape.js';
import type { UnreadCause } from '../came-back.js';
import { reportShape } from '../report-content.js';
import type { ReportContent } from '../report-content.js';
import type { ReportReader } from '../report-line.js';

/** Ten milliseconds are usual; the first mail also waits for the thread to load. */
const READ_MS = 10_000;
const HEAP_MIB = 64;
const ENTRY = new URL('./report-entry.js', import.meta.url);

type Done = (content: ReportContent | UnreadCause) => void;

interface Job {
  readonly octets: Uint8Array<ArrayBuffer>;
  readonly done: Done;
  readonly timer: NodeJS.Timeout;
}

export class ReportThread implements ReportReader {
  readonly #entry: URL;
  readonly #readMs: number;
  #worker: Worker | undefined;
  #isReady = false;
  #job: Job | undefined;

  /** `entry`, `readMs`: other ones are for tests. */
  constructor(entry = ENTRY, readMs = READ_MS) {
    this.#entry = entry;
    this.#readMs = readMs;
  }

  read(octets: Uint8Array<ArrayBuffer>, done: Done): void {
    const timer = setTimeout(() => { this.#giveUp('late'); }, this.#readMs);
    timer.unref();
    this.#job = { octets, done, timer };
    if (this.#worker === undefined) this.#begin();
    else if (this.#isReady) this.#worker.postMessage(octets, [octets.buffer]);
  }

  close(): void {
    this.#giveUp('failed');
  }

  #begin(): void {
    const worker = new Worker(this.#entry, {
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
      // The gateway's own stdout is its log.
      stdout: true, stderr: true,
    });
    this.#worker = worker;
    this.#isReady = false;
    worker.stdout.resume();
    worker.stderr.resume();
    worker.on('message', (said: unknown) => {
      if (worker === this.#worker) this.#onMessage(worker, said);
    });
    const onEnd = (): void => {
      if (worker === this.#worker) this.#giveUp('failed');
    };
    worker.on('error', onEnd);
    worker.on('exit', onEnd);
    // A gateway that stops must not be held by it.
    worker.unref();
  }

  #onMessage(worker: Worker, said: unknown): void {
    if (said === 'ready') {
      this.#isReady = true;
      const octets = this.#job?.octets;
      if (octets !== undefined) worker.postMessage(octets, [octets.buffer]);
      return;
    }
    const content = readShape(reportShape, said);
    this.#settle(content instanceof BrokenRule ? 'failed' : content);
  }

  /** The next mail gets a new thread: what this one has become nobody knows. */
  #giveUp(why: UnreadCause): void {
    const worker = this.#worker;
    this.#worker = undefined;
    void worker?.terminate();
    this.#settle(why);
  }

  #settle(content: ReportContent | UnreadCause): void {
    const job = this.#job;
    if (job === undefined) return;
    this.#job = undefined;
    clearTimeout(job.timer);
    job.done(content);
  }
}
