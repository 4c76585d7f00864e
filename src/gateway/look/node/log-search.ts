/**
 * Searches of the log of this gateway (admin-api/logged.ts), each in a thread of its own that ends with it: a
 * log may have gigabytes, and a disk may hang. Bounded in number, time and bytes; who does not wait any more
 * ends his.
 */
import { Worker } from 'node:worker_threads';
import type { LoggedAnswer, LoggedQuestion } from '../../../admin-api/logged.js';
import { errorText } from '../../../base/error-text.js';

/** At the same time: each takes a core, where mail leaves it one. */
const SEARCHES_MAX = 2;
/** An admin connection lives for 30 s without a byte (platform/node/admin-server.ts). */
const SEARCH_MS = 15_000;
/** Beyond that, for a disk that hangs. */
const LATE_MS = 5_000;
const BYTES_MAX = 32 * 1024 ** 3;
/** A piece of the log as bytes, as text and as lines, and what was found. */
const HEAP_MIB = 128;
const ENTRY = new URL('./log-thread-entry.js', import.meta.url);

export interface LogTask {
  readonly file: string;
  readonly question: LoggedQuestion;
  readonly searchMs: number;
  readonly bytesMax: number;
}

/** Where the log goes, as the configuration has it. */
export interface LogPlace {
  /** Undefined: stdout. */
  readonly file?: string | undefined;
  /** The mail log is on. */
  readonly mail: boolean;
  /** Since then, Unix time; undefined: since the start. */
  readonly switchedMs?: number | undefined;
  /** When this process lost lines last, Unix time. */
  readonly lostMs?: number | undefined;
  /** Why lines can't be written now; '' they can. */
  readonly failing?: string;
}

export class LogSearch {
  readonly #placeOf: () => LogPlace;
  readonly #entry: URL;
  #underWay = 0;

  /** `entry`: of the thread. */
  constructor(placeOf: () => LogPlace, entry = ENTRY) {
    this.#placeOf = placeOf;
    this.#entry = entry;
  }

  get isFull(): boolean {
    return this.#underWay >= SEARCHES_MAX;
  }

  /** Never rejects. */
  async search(question: LoggedQuestion, left: AbortSignal): Promise<LoggedAnswer> {
    const place = this.#placeOf();
    const { file } = place;
    if (file === undefined) return unread(question, 'it goes to stdout (there is no log.file)');
    const task = { file, question, searchMs: SEARCH_MS, bytesMax: BYTES_MAX };
    return { ...await this.#searchIn(task, left), lacks: lacksOf(place, question) };
  }

  #searchIn(task: LogTask, left: AbortSignal): Promise<LoggedAnswer> {
    let worker: Worker;
    try {
      worker = threadOf(this.#entry, task);
    } catch (error) {
      // The system gives no more threads.
      return Promise.resolve(unread(task.question, errorText(error)));
    }
    this.#underWay += 1;
    // One that hangs in a read ends with it, and takes its place until then.
    return answerOf(worker, task, left, () => { this.#underWay -= 1; });
  }
}

/** Lines of that time that this process has not written: why. What was before its start it does not know. */
function lacksOf(
  { mail, switchedMs = 0, lostMs = 0, failing = '' }: LogPlace,
  { since_ms: sinceMs, until_ms: untilMs }: LoggedQuestion,
): readonly string[] {
  const lacks: string[] = [];
  const at = (ms: number): string => new Date(ms).toISOString();
  if (mail && switchedMs > sinceMs) lacks.push(`log.mail was off until ${at(switchedMs)}`);
  if (!mail && switchedMs < untilMs) {
    lacks.push(`log.mail is off${switchedMs === 0 ? '' : ` since ${at(switchedMs)}`}`);
  }
  if (lostMs > sinceMs) lacks.push(`lines were lost, the last at ${at(lostMs)}`);
  if (failing !== '') lacks.push(`it can not be written now: ${failing}`);
  return lacks;
}

function threadOf(entry: URL, task: LogTask): Worker {
  return new Worker(entry, {
    workerData: task, resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB },
    // The gateway's own stdout is its log.
    stdout: true, stderr: true,
  });
}

function answerOf(
  worker: Worker, task: LogTask, left: AbortSignal, onEnd: () => void,
): Promise<LoggedAnswer> {
  return new Promise((resolve) => {
    worker.stdout.resume();
    worker.stderr.resume();
    const end = (answer: LoggedAnswer | string): void => {
      clearTimeout(timer);
      left.removeEventListener('abort', onLeft);
      void worker.terminate();
      resolve(typeof answer === 'string' ? unread(task.question, answer) : answer);
    };
    const onLeft = (): void => { end('nobody waits for it'); };
    const timer = setTimeout(() => { end('its disk does not answer'); }, task.searchMs + LATE_MS);
    left.addEventListener('abort', onLeft);
    worker.on('message', end);
    worker.on('error', (error) => { end(errorText(error)); });
    worker.on('exit', () => {
      onEnd();
      end('the thread that reads it has ended');
    });
    worker.unref();
  });
}

function unread({ since_ms: sinceMs }: LoggedQuestion, why: string): LoggedAnswer {
  return {
    messages: [], more: false, why, read_from_ms: sinceMs, read_to_ms: sinceMs, begins_ms: null,
    lacks: [], unread_files: 0,
  };
}
