/**
 * The thread that checks messages (check-thread-entry.ts), as the gateway sees it: whatever happens in there,
 * it comes to one call here.
 *
 *   LOADING ─ ready ─▶ RUNNING          any ─ end(), error, exit, no ready or pong in time ─▶ ENDED (onEnded)
 */
import { MessageChannel, Worker } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { errorText } from '../../../../base/error-text.js';
import type { DnsAnswer } from '../../../../platform/resolver.js';
import type { Verdicts } from '../verdicts.js';
import type { AskedQuestion, CheckRequest, CheckedType, FromThread, ToThread } from './check-messages.js';

export interface CheckThreadEvents {
  onReady(): void;
  onChecked(check: number, verdicts: Verdicts): void;
  onQuestion(asked: AskedQuestion, answer: (answer: DnsAnswer<CheckedType>) => void): void;
  /** Called once; `why` is bounded. */
  onEnded(why: string): void;
}

const LOAD_MS = 30_000;
/** Its longest turn takes a fiftieth. */
const PONG_MS = 1_000;
/** mailauth takes 30 of them; contents lie outside. */
const HEAP_MIB_MAX = 256;
const WHY_CHARACTERS_MAX = 500;
const ENTRY = new URL('./check-thread-entry.js', import.meta.url);

export class CheckThread {
  isReady = false;
  readonly #worker: Worker;
  readonly #port: MessagePort;
  readonly #events: CheckThreadEvents;
  #answering: NodeJS.Timeout | undefined;
  #hasEnded = false;
  #why = '';

  /** `entry`: what runs in it. */
  constructor(events: CheckThreadEvents, entry = ENTRY) {
    this.#events = events;
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    this.#worker = new Worker(entry, {
      workerData: { port: port2 }, transferList: [port2],
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX },
      // The gateway's own stdout is its log; mailauth writes to its console.
      stdout: true, stderr: true,
    });
    this.#worker.stdout.resume();
    this.#worker.stderr.resume();
    this.#expect(LOAD_MS, 'it did not load in time');
    port1.on('message', (said: FromThread) => { this.#onSaid(said); });
    this.#worker.on('error', (error) => { this.#why = errorText(error); });
    this.#worker.on('exit', (code) => {
      this.#hasEnded = true;
      clearTimeout(this.#answering);
      port1.close();
      const why = this.#why === '' ? `its thread has ended with code ${String(code)}` : this.#why;
      events.onEnded(why.slice(0, WHY_CHARACTERS_MAX));
    });
    // The process may end without it.
    this.#worker.unref();
    port1.unref();
  }

  /** The content becomes the thread's own. */
  check(request: CheckRequest): void {
    this.#say({ kind: 'check', request }, [request.content.buffer]);
  }

  /** Ends it, unless it shows soon that it is no loop. */
  probe(): void {
    if (this.#answering !== undefined) return;
    this.#expect(PONG_MS, 'it does not answer');
    this.#say({ kind: 'ping' }, []);
  }

  /** Whatever it is doing. onEnded follows. */
  end(why: string): void {
    if (this.#why === '') this.#why = why;
    void this.#worker.terminate();
  }

  #expect(withinMs: number, otherwise: string): void {
    this.#answering = setTimeout(() => { this.end(otherwise); }, withinMs).unref();
  }

  #onSaid(said: FromThread): void {
    switch (said.kind) {
      case 'ready':
      case 'pong':
        clearTimeout(this.#answering);
        this.#answering = undefined;
        if (said.kind === 'pong') return;
        this.isReady = true;
        return this.#events.onReady();
      case 'checked':
        return this.#events.onChecked(said.check, said.verdicts);
      case 'ask': {
        const { question } = said;
        return this.#events.onQuestion(said, (answer) => {
          this.#say({ kind: 'answer', question, answer }, []);
        });
      }
    }
  }

  #say(said: ToThread, transferred: readonly ArrayBuffer[]): void {
    if (!this.#hasEnded) this.#port.postMessage(said, transferred);
  }
}
