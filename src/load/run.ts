/**
 * `send`: submits messages to an SMTP server over some connections and reports how it went. Owns which
 * message goes next, what is sent again, the rate, and the numbers; a connection's dialog is in
 * load/client.ts, contents in load/content.ts.
 *
 * Message number n (from 0) has id n + 1, queue n mod Q and serial floor(n / Q) + 1: nothing needs to be
 * remembered of a message but of those that are sent again. A message ends accepted (2xx to its dot),
 * refused, or unanswered; with `resend` only 2xx and 5xx end it, so that a run against a server that is
 * killed ends with every message accepted.
 */
import { randomBytes } from 'node:crypto';

import { Prng } from '../base/prng.js';
import { CAN_DSN, NO_CAPABILITIES } from '../smtp/capabilities.js';
import type { Capabilities } from '../smtp/capabilities.js';
import { putMail, putRcpt } from '../smtp/commands.js';
import type { WriteBuffer } from '../smtp/write-buffer.js';
import { Client, type ClientHost, type Job } from './client.js';
import { contentsOfFiles, contentsOfMix, type Content } from './content.js';
import { Histogram } from './histogram.js';
import { envidOf, MarkTemplate } from './marks.js';
import type { MixPart, SendOptions, SendReport } from './options.js';
import { monotonicMicros, SendLog } from './send-log.js';
import { Sessions } from './session.js';

const DEFAULT_MIX: readonly MixPart[] = [{ bytes: 1000, weight: 1 }];
const DEFAULT_PATIENCE_MS = 30_000;
/** How often rate, retries, reconnects and progress are looked at. */
const TICK_MS = 5;
const PROGRESS_MS = 200;
/** Waits before a message, and a connection, is tried again: doubled each time up to the second number. */
const RETRY_FIRST_MS = 20;
const RETRY_MOST_MS = 1000;
/**
 * Connections on their way at a time: a listener keeps few (Node's own default is 511), and whom it has no
 * place for asks again after 1, 2, 4, … seconds.
 */
const OPENING_MAX = 256;
const SAMPLE_CHARACTERS = 200;
/** A server that owes a reply for so long is given up: shorter than RFC 5321 4.5.3.2, for a tool. */
const SILENCE_MS = 60_000;
/** MAIL and RCPT go without parameters that nobody asked for: what is measured stays the same. */
const PLAIN: Capabilities = NO_CAPABILITIES;
const WITH_ENVID: Capabilities = { bits: CAN_DSN, sizeBytesMax: 0 };

/** Submits messages as `options` say. Rejects only for options that cannot be used. */
export function runSend(options: SendOptions): Promise<SendReport> {
  return new Run(options).run();
}

/** A message waiting to be sent again. */
interface Retry {
  readonly number: number;
  readonly attempt: number;
  readonly dueMs: number;
}

class Run implements ClientHost {
  readonly sessions: Sessions;
  readonly pipelining: boolean;
  readonly nextBehindDot: boolean;
  readonly messagesPerConnection: number;
  readonly #options: SendOptions;
  readonly #run: string;
  readonly #domains: readonly string[];
  readonly #marks: readonly MarkTemplate[];
  readonly #contents: readonly Content[];
  readonly #recipients: readonly string[];
  readonly #from: string;
  readonly #wheel: Uint16Array;
  readonly #log: SendLog | undefined;
  readonly #times = new Histogram();
  /** Those since the last progress. */
  #lately = new Histogram();
  readonly #replies = new Map<number, number>();
  readonly #samples: Record<string, string> = {};
  readonly #errors: Record<string, number> = {};
  readonly #clients = new Set<Client>();
  readonly #idle: Client[] = [];
  readonly #retries: Retry[] = [];
  readonly #wanted: number;
  /** In turn: whoever asks now was called up. */
  #isCalled = false;
  /** The rate counts from here. */
  #paceFromMs = 0;
  #connectFailures = 0;
  #connectDueMs = 0;
  #nextNumber = 0;
  #accepted = 0;
  #acceptedBytes = 0;
  #refused = 0;
  #unanswered = 0;
  #resent = 0;
  #opened = 0;
  #openNow = 0;
  #startMs = 0;
  #endMs = 0;
  #lastAcceptedMs = 0;
  #lastProgressMs = 0;
  #stopping = false;
  #timer: NodeJS.Timeout | undefined;
  #finish: (report: SendReport) => void = () => undefined;

  constructor(options: SendOptions) {
    this.#options = options;
    this.sessions = new Sessions(options, 'client.example', SILENCE_MS);
    this.pipelining = options.pipelining ?? true;
    this.nextBehindDot = options.nextBehindDot ?? true;
    this.messagesPerConnection = options.messagesPerConnection ?? Infinity;
    this.#run = options.run ?? randomBytes(4).toString('hex');
    this.#domains = options.domains ?? ['sink.example'];
    requireNames([...this.#domains, this.#run]);
    this.#wanted = Math.max(1, Math.min(options.connections ?? 10, options.count));
    this.#marks = this.#domains.map((domain) => new MarkTemplate(this.#run, domain));
    const marksBytes = this.#marks[0]?.bytes.length ?? 0;
    const files = options.eml ?? [];
    this.#contents = files.length > 0
      ? contentsOfFiles(files)
      : contentsOfMix(options.mix ?? DEFAULT_MIX, marksBytes);
    this.#wheel = weightedWheel(this.#contents, files.length > 0, options.seed ?? 1);
    this.#from = options.from ?? 'load@client.example';
    this.#recipients = this.#domains.map((domain) => `${options.localPart ?? 'user'}@${domain}`);
    const { log, count } = options;
    this.#log = log === undefined ? undefined : new SendLog(log, { run: this.#run, count });
  }

  run(): Promise<SendReport> {
    return new Promise((resolve) => {
      this.#finish = resolve;
      this.#startMs = performance.now();
      this.#paceFromMs = this.#startMs;
      this.#lastAcceptedMs = this.#startMs;
      this.#timer = setInterval(() => this.#tick(), TICK_MS);
      this.#tick();
    });
  }

  // What connections ask (ClientHost).

  take(job: Job): boolean {
    if (this.#stopping || (this.#options.inTurn === true && !this.#isCalled)) return false;
    const retry = this.#dueRetry();
    if (retry === undefined && !this.#mayStartNew()) return false;
    const number = retry === undefined ? this.#nextNumber++ : retry.number;
    job.id = number + 1;
    job.queue = number % this.#domains.length;
    job.serial = Math.floor(number / this.#domains.length) + 1;
    job.content = this.#wheel[number % this.#wheel.length] ?? 0;
    job.attempt = retry === undefined ? 1 : retry.attempt;
    job.hash = 0;
    job.dotMicros = 0;
    return true;
  }

  putMail(into: WriteBuffer, job: Job): void {
    if (this.#options.nameEnvelopes !== true) putMail(into, PLAIN, this.#from, 0, 0, '', '');
    else putMail(into, WITH_ENVID, this.#from, 0, 0, '', envidOf(this.#run, job.id));
  }

  putRcpt(into: WriteBuffer, job: Job): void {
    putRcpt(into, PLAIN, this.#recipients[job.queue] ?? '', '', '');
  }

  putContent(into: WriteBuffer, job: Job, more: number): void {
    const marks = this.#marks[job.queue];
    const content = this.#contents[job.content];
    if (marks === undefined || content === undefined) return;
    const bytes = marks.bytes.length + content.wire.length;
    const target = into.contentRoom(bytes + more);
    const at = into.length;
    job.hash = marks.stamp(target, at, job.id, job.serial, content.crc);
    target.set(content.wire, at + marks.bytes.length);
    into.took(bytes);
  }

  now(): number {
    return monotonicMicros();
  }

  settle(job: Job, code: number, replyMicros: number, text: string): void {
    if (code !== 0 || job.dotMicros !== 0) this.#note(job, code, replyMicros, text);
    const number = job.id - 1;
    if (code >= 200 && code < 300) {
      this.#accepted++;
      const marksBytes = this.#marks[job.queue]?.bytes.length ?? 0;
      this.#acceptedBytes += marksBytes + (this.#contents[job.content]?.bytes ?? 0);
      this.#times.record(replyMicros - job.dotMicros);
      if (this.#options.onProgress !== undefined) this.#lately.record(replyMicros - job.dotMicros);
      this.#lastAcceptedMs = performance.now();
    } else if (code === 0 && job.dotMicros === 0) {
      this.#retryLater(number, job.attempt);
    } else if (code < 500 && this.#options.resend === true) {
      this.#resent++;
      this.#retryLater(number, job.attempt + 1);
    } else if (code === 0) {
      this.#unanswered++;
    } else {
      this.#refused++;
    }
    if (this.#ended() === this.#options.count) this.#stop();
  }

  onOpen(): void {
    this.#opened++;
    this.#openNow++;
    // Else what fell due while they were opened would be sent at once.
    if (this.#options.openFirst === true && this.#opened === this.#wanted) {
      this.#paceFromMs = performance.now();
    }
    this.#connectFailures = 0;
  }

  onIdle(client: Client): void {
    if (this.#stopping) client.quit();
    else this.#idle.push(client);
    if (this.#options.inTurn === true && !this.#isCalled) this.#callUp();
  }

  onClosed(client: Client, error: string, isHopeless: boolean): void {
    this.#clients.delete(client);
    if (client.isOpen) this.#openNow--;
    const at = this.#idle.indexOf(client);
    if (at >= 0) this.#idle.splice(at, 1);
    if (error !== '') {
      this.#errors[error] = (this.#errors[error] ?? 0) + 1;
      this.#connectDueMs = performance.now() + backoffMs(this.#connectFailures++ / this.#wanted);
    }
    if (isHopeless && !this.#stopping) this.#giveUp();
    else if (this.#stopping && this.#clients.size === 0) this.#report();
    else if (error === '') this.#connect();
  }

  // The run itself.

  #ended(): number {
    return this.#accepted + this.#refused + this.#unanswered;
  }

  #mayStartNew(): boolean {
    if (this.#nextNumber >= this.#options.count) return false;
    if (this.#options.openFirst === true && this.#opened < this.#wanted) return false;
    const rate = this.#options.rate;
    const seconds = (performance.now() - this.#paceFromMs) / 1000;
    return rate === undefined || this.#nextNumber < seconds * rate + 1;
  }

  /** In turn: as many as there are messages for now. */
  #callUp(): void {
    this.#isCalled = true;
    while (this.#mayStartNew() || this.#retries.length > 0) {
      const client = this.#idle.shift();
      if (client === undefined) break;
      client.wake();
      // Nothing was due after all, and it stands at the end again.
      if (this.#idle.at(-1) === client) break;
    }
    this.#isCalled = false;
  }

  /** Retries stand roughly by due time: only the first is looked at. */
  #dueRetry(): Retry | undefined {
    const first = this.#retries[0];
    if (first === undefined || first.dueMs > performance.now()) return undefined;
    this.#retries.shift();
    return first;
  }

  #retryLater(number: number, attempt: number): void {
    this.#retries.push({ number, attempt, dueMs: performance.now() + backoffMs(attempt - 1) });
  }

  #note(job: Job, code: number, replyMicros: number, text: string): void {
    this.#replies.set(code, (this.#replies.get(code) ?? 0) + 1);
    if (text !== '') this.#samples[replyName(code)] ??= text.slice(0, SAMPLE_CHARACTERS);
    if (this.#log === undefined) return;
    const queue = this.#domains[job.queue] ?? '';
    this.#log.record(job.id, queue, job.serial, job.dotMicros, replyMicros, code, job.hash);
  }

  #tick(): void {
    const now = performance.now();
    if (this.#options.signal?.aborted === true) this.#stop();
    if (now - this.#lastAcceptedMs > (this.#options.patienceMs ?? DEFAULT_PATIENCE_MS)) this.#giveUp();
    if (this.#ended() === this.#options.count) this.#stop();
    this.#connect();
    if (this.#options.inTurn === true) this.#callUp();
    else for (const client of this.#idle.splice(0)) client.wake();
    if (now - this.#lastProgressMs < PROGRESS_MS) return;
    this.#lastProgressMs = now;
    for (const client of this.#clients) client.tick(now);
    this.#progress();
  }

  #progress(): void {
    const { onProgress } = this.#options;
    if (onProgress === undefined) return;
    const lately = this.#lately;
    this.#lately = new Histogram();
    onProgress({
      count: this.#options.count,
      accepted: this.#accepted,
      failed: this.#refused + this.#unanswered,
      elapsedMs: performance.now() - this.#startMs,
      responseMs: lately.count === 0 ? undefined : {
        p50: lately.quantile(0.5) / 1000, p99: lately.quantile(0.99) / 1000,
      },
    });
  }

  /**
   * Keeps as many connections as wanted, and no more than there are messages left; each tick goes on opening.
   */
  #connect(): void {
    if (this.#stopping || performance.now() < this.#connectDueMs) return;
    const left = this.#options.count - this.#ended();
    const most = Math.min(this.#wanted, left, this.#openNow + OPENING_MAX);
    while (this.#clients.size < most) this.#clients.add(new Client(this));
  }

  #stop(): void {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#endMs = performance.now();
    for (const client of this.#idle.splice(0)) client.quit();
    // Nobody waits for those that are still on their way.
    for (const client of this.#clients) if (!client.isOpen) client.destroy();
    if (this.#clients.size === 0) this.#report();
  }

  #giveUp(): void {
    this.#stop();
    for (const client of this.#clients) client.destroy();
  }

  #report(): void {
    clearInterval(this.#timer);
    this.#log?.close();
    this.#progress();
    const elapsedMs = this.#endMs - this.#startMs;
    const times = this.#times;
    const replies: Record<string, number> = {};
    for (const [code, count] of this.#replies) replies[replyName(code)] = count;
    this.#finish({
      run: this.#run,
      count: this.#options.count,
      accepted: this.#accepted,
      refused: this.#refused,
      unanswered: this.#unanswered,
      unfinished: this.#options.count - this.#ended(),
      resent: this.#resent,
      elapsedMs,
      acceptedPerSecond: this.#accepted / (elapsedMs / 1000),
      acceptedBytes: this.#acceptedBytes,
      responseMs: {
        mean: times.mean / 1000,
        p50: times.quantile(0.5) / 1000,
        p90: times.quantile(0.9) / 1000,
        p99: times.quantile(0.99) / 1000,
        max: times.max / 1000,
      },
      replies,
      samples: this.#samples,
      connectionsOpened: this.#opened,
      connectionErrors: this.#errors,
    });
  }
}

function replyName(code: number): string {
  return code === 0 ? 'none' : String(code);
}

function backoffMs(attempt: number): number {
  return Math.min(RETRY_MOST_MS, RETRY_FIRST_MS * 2 ** Math.min(attempt, 10));
}

/** Names go into commands, headers and JSON unescaped. */
function requireNames(names: readonly string[]): void {
  for (const name of names) {
    if (!/^[A-Za-z0-9._-]{1,200}$/.test(name)) {
      throw new Error(`send: '${name}' is not a name of letters, digits, dots and dashes`);
    }
  }
  if (names.length < 2) throw new Error('send: no recipient domain given');
}

/** Which content message n has: wheel[n mod length]. Weighted and shuffled, the same for the same seed. */
function weightedWheel(contents: readonly Content[], inTurn: boolean, seed: number): Uint16Array {
  if (inTurn) return Uint16Array.from(contents.keys());
  const total = contents.reduce((sum, content) => sum + content.weight, 0);
  const wheel = new Uint16Array(WHEEL_STEPS);
  let content = 0;
  let until = contents[0]?.weight ?? 0;
  for (let step = 0; step < WHEEL_STEPS; step++) {
    while (step >= (until / total) * WHEEL_STEPS && content < contents.length - 1) {
      until += contents[++content]?.weight ?? 0;
    }
    wheel[step] = content;
  }
  const random = new Prng(seed);
  for (let step = WHEEL_STEPS - 1; step > 0; step--) {
    const other = random.below(step + 1);
    const swapped = wheel[step] ?? 0;
    wheel[step] = wheel[other] ?? 0;
    wheel[other] = swapped;
  }
  return wheel;
}

/** Prime, so that no number of queues divides it: every queue gets the whole mix. */
const WHEEL_STEPS = 9973;
