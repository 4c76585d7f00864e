/**
 * A hook that is a module of the operator (module-api.ts), in threads of its own: each takes one message at a
 * time, so that one that loops for ever costs no other message than its own. Past its time limit a thread
 * is ended and another one started; while there is none that loads, the hook has failed.
 *
 * The content goes to the thread as a copy, counted as memory in use until the thread has answered or ended.
 */
import { joined } from '../../../../base/joined.js';
import { OnceInAWhile } from '../../../../base/once-in-a-while.js';
import { nextDelayMs } from '../../../../base/backoff.js';
import type { EventLog } from '../../../../platform/ports.js';
import type { Reception } from '../../../mail-types.js';
import { HookLine } from './hook-line.js';
import type { HookAsk } from './hook-line.js';
import type { HookAnswer, JudgedMessage, MessageHook } from '../message-hook.js';
import type { ModuleMessage } from '../module-api.js';
import { ModuleThread } from './module-thread.js';

export interface ModuleHookOptions {
  readonly name: string;
  readonly file: string;
  readonly timeoutMs: number;
  readonly threads: number;
  /** Of one thread. */
  readonly heapBytes: number;
}

export interface ModuleHookPorts {
  readonly log: EventLog;
  readonly memory: Pick<Reception, 'reserve' | 'release'>;
}

/**
 * A thread that ends as soon as it has begun is not started over and over. One that was asked is started
 * again at once: what a message did to it must keep the module from no other, and costs `timeout` at most.
 */
const RESTART = { firstMs: 50, factor: 2, maxMs: 10_000, jitter: 0 };
/** One that has lived so long begins anew without delay. */
const LIVED_MS = 10_000;
/** A module that talks much fills no log. */
const OUTPUT_EVERY_MS = 1000;
const OUTPUT_CHARACTERS_MAX = 500;

export class ModuleHook implements MessageHook {
  readonly name: string;
  readonly #line: HookLine;
  readonly #places: ThreadPlace[] = [];

  constructor(options: ModuleHookOptions, ports: ModuleHookPorts) {
    this.name = options.name;
    this.#line = new HookLine(options.timeoutMs, {
      hasPlace: () => this.#idle !== undefined,
      start: (ask, message) => { this.#idle?.take(ask, message); },
    });
    const onChange = (): void => { this.#onChange(); };
    for (let i = 0; i < options.threads; i++) this.#places.push(new ThreadPlace(options, ports, onChange));
  }

  ask(message: JudgedMessage, done: (answer: HookAnswer) => void): void {
    this.#line.ask(message, done);
    this.#onChange();
  }

  close(): void {
    for (const place of this.#places) place.close();
    this.#line.failAll('the gateway stops');
  }

  get #idle(): ThreadPlace | undefined {
    return this.#places.find(({ isIdle }) => isIdle);
  }

  #onChange(): void {
    this.#line.goOn();
    const why = this.#places[0]?.brokenBy ?? '';
    if (this.#places.every(({ brokenBy }) => brokenBy !== '')) this.#line.failAll(why);
  }
}

/** Where a thread runs, and after its end the next one. */
class ThreadPlace {
  /** Why the last thread did not come so far as to load; '': it has, or is about to. */
  brokenBy = '';
  readonly #options: ModuleHookOptions;
  readonly #ports: ModuleHookPorts;
  readonly #onChange: () => void;
  #thread: ModuleThread | undefined;
  #ask: HookAsk | undefined;
  #reservedBytes = 0;
  #begunMs = 0;
  #wasAsked = false;
  /** Threads in a row that ended before anybody asked them, and did not live long. */
  #deaths = 0;
  #isClosed = false;
  readonly #telling = new OnceInAWhile(OUTPUT_EVERY_MS);
  #restart: NodeJS.Timeout | undefined;

  constructor(options: ModuleHookOptions, ports: ModuleHookPorts, onChange: () => void) {
    this.#options = options;
    this.#ports = ports;
    this.#onChange = onChange;
    this.#begin();
  }

  get isIdle(): boolean {
    return this.#thread?.isReady === true && this.#ask === undefined;
  }

  take(ask: HookAsk, message: JudgedMessage): void {
    if (!this.#ports.memory.reserve(message.contentBytes)) return ask.settle({ action: 'busy' });
    this.#reservedBytes = message.contentBytes;
    this.#ask = ask;
    this.#wasAsked = true;
    ask.onLate = () => { this.#thread?.end('it took too long'); };
    const own = moduleMessage(message);
    this.#thread?.ask(own, own.content.buffer);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#restart);
    this.#thread?.end('the gateway stops');
  }

  #begin(): void {
    this.#begunMs = performance.now();
    this.#wasAsked = false;
    this.#thread = new ModuleThread(this.#options, {
      onReady: () => {
        this.brokenBy = '';
        this.#onChange();
      },
      onAnswer: (answer, isWornOut) => { this.#onAnswer(answer, isWornOut); },
      onOutput: (text) => { this.#onOutput(text); },
      onEnded: (why) => { this.#onEnded(why); },
    });
    // A gateway that can't start must not be held by it.
    this.#thread.unref();
  }

  #onAnswer(answer: HookAnswer, isWornOut: boolean): void {
    // Late, and being ended: the place is free when its thread has gone.
    if (this.#ask === undefined || this.#ask.isSettled) return;
    if (isWornOut) this.#thread?.end('it keeps too much memory outside its heap');
    this.#settle(answer, !isWornOut);
  }

  #onEnded(why: string): void {
    const { log } = this.#ports;
    const wasReady = this.#thread?.isReady === true;
    this.#thread = undefined;
    if (!wasReady) this.brokenBy = why;
    this.#settle({ action: 'failed', why }, true);
    if (this.#isClosed) return;
    const { name: hook } = this.#options;
    log.warn('hook', 'the thread of a hook has ended, and is started again', { hook, why });
    if (this.#wasAsked || performance.now() - this.#begunMs >= LIVED_MS) this.#deaths = 0;
    const delayMs = this.#deaths === 0 ? 0 : nextDelayMs(this.#deaths - 1, RESTART, () => 0);
    this.#deaths++;
    this.#restart = setTimeout(() => { this.#begin(); }, delayMs).unref();
  }

  /** `isFree`: another message may come. */
  #settle(answer: HookAnswer, isFree: boolean): void {
    const ask = this.#ask;
    this.#ports.memory.release(this.#reservedBytes);
    this.#reservedBytes = 0;
    if (isFree) this.#ask = undefined;
    ask?.settle(answer);
    this.#onChange();
  }

  #onOutput(text: string): void {
    if (!this.#telling.isDue(performance.now())) return;
    const output = text.slice(0, OUTPUT_CHARACTERS_MAX).trimEnd();
    this.#ports.log.info('hook', 'a hook writes to its output', { hook: this.#options.name, output });
  }
}

type OwnMessage = ModuleMessage & { readonly content: Uint8Array<ArrayBuffer> };

function moduleMessage(message: JudgedMessage): OwnMessage {
  const { tlsVersion: tls, reversePath: from, ...others } = message.envelope;
  return { ...others, tls, from, content: joined(message.content) };
}
