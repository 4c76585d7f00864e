/**
 * One thread with a hook's module in it (thread-entry.ts), as the gateway sees it: whatever the module does,
 * throws, loops, ends the thread, uses up its heap, it comes to one call here.
 *
 *   LOADING ─ 'ready' ─▶ IDLE ⇄ BUSY          any ─ end(), error, exit, no 'ready' in time ─▶ ENDED (onEnded)
 */
import { MessageChannel, Worker } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { errorText } from '../../../../base/error-text.js';
import type { HookAnswer } from '../message-hook.js';
import type { ModuleMessage } from '../module-api.js';
import { moduleAnswer } from '../module-answer.js';

export interface ModuleThreadOptions {
  readonly file: string;
  readonly heapBytes: number;
}

export interface ModuleThreadEvents {
  onReady(): void;
  /** `isWornOut`: it should not be asked again. */
  onAnswer(answer: HookAnswer, isWornOut: boolean): void;
  /** What the module wrote to stdout or stderr. */
  onOutput(text: string): void;
  /** Called once; `why` is bounded. */
  onEnded(why: string): void;
}

const LOAD_MS = 10_000;
const WHY_CHARACTERS_MAX = 500;
const MIB = 1024 * 1024;
const ENTRY = new URL('./thread-entry.js', import.meta.url);

export class ModuleThread {
  isReady = false;
  readonly #worker: Worker;
  readonly #port: MessagePort;
  readonly #loading: NodeJS.Timeout;
  #why = '';

  constructor({ file, heapBytes }: ModuleThreadOptions, events: ModuleThreadEvents) {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    this.#worker = new Worker(ENTRY, {
      workerData: { file, port: port2, outsideBytesMax: heapBytes },
      transferList: [port2],
      resourceLimits: { maxOldGenerationSizeMb: Math.ceil(heapBytes / MIB) },
      // The gateway's own stdout is its log.
      stdout: true, stderr: true,
    });
    for (const stream of [this.#worker.stdout, this.#worker.stderr]) {
      stream.on('data', (bytes: Buffer) => { events.onOutput(bytes.toString('utf8')); });
    }
    this.#loading = setTimeout(() => { this.end('it did not load in time'); }, LOAD_MS);
    port1.on('message', (said: unknown) => {
      if (said !== 'ready') return events.onAnswer(...answerOf(said));
      clearTimeout(this.#loading);
      this.isReady = true;
      events.onReady();
    });
    this.#worker.on('error', (error) => {
      this.#why = errorText(error);
    });
    this.#worker.on('exit', (code) => {
      clearTimeout(this.#loading);
      port1.close();
      const why = this.#why === '' ? `its thread has ended with code ${String(code)}` : this.#why;
      events.onEnded(why.slice(0, WHY_CHARACTERS_MAX));
    });
  }

  /** The process may end without it. */
  unref(): void {
    this.#worker.unref();
    this.#port.unref();
    this.#loading.unref();
  }

  /** Its content becomes the thread's own. */
  ask(message: ModuleMessage, content: ArrayBuffer): void {
    this.#port.postMessage(message, [content]);
  }

  /** Whatever it is doing. onEnded follows. */
  end(why: string): void {
    if (this.#why === '') this.#why = why;
    void this.#worker.terminate();
  }
}

function answerOf(said: unknown): [answer: HookAnswer, isWornOut: boolean] {
  const { answer, isWornOut } = (said ?? {}) as { readonly answer?: unknown; readonly isWornOut?: unknown };
  return [moduleAnswer(answer), isWornOut === true];
}

/** Why the module can't be used; undefined when it loads. */
export function whyNotLoaded(file: string, heapBytes: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const thread = new ModuleThread({ file, heapBytes }, {
      onReady: () => {
        resolve(undefined);
        thread.end('it loads');
      },
      onAnswer: () => undefined,
      onOutput: () => undefined,
      onEnded: resolve,
    });
  });
}
