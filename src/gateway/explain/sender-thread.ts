/**
 * sender-findings.ts in a thread, for a gateway that runs: what judges SPF takes 0.3 s to load, and goes as
 * long through records as they are. One thread at a time, however many ask; it ends with its answer, or
 * when the time of that is over.
 */
import { Worker } from 'node:worker_threads';
import type { DnsFinding } from '../../admin-api/explain.js';
import { errorText } from '../../base/error-text.js';
import type { DnsAnswer, DnsType } from '../../platform/resolver.js';
import type { AnswerTime } from './answer-time.js';
import type { SenderQuestion } from './sender-findings.js';

export interface ToSenderThread {
  readonly question: number;
  readonly answer: DnsAnswer<DnsType>;
}

export type FromSenderThread =
  | { readonly kind: 'ask'; readonly question: number; readonly name: string; readonly type: DnsType }
  | { readonly kind: 'found'; readonly findings: readonly DnsFinding[] };

/** mailauth takes 30 of them. */
const HEAP_MIB_MAX = 128;
const ENTRY = new URL('./sender-thread-entry.js', import.meta.url);

export class SenderThread {
  #last: Promise<unknown> = Promise.resolve();

  /** Never rejects. */
  find(question: SenderQuestion, time: AnswerTime): Promise<readonly DnsFinding[]> {
    const found = this.#last.then(() => (time.isOver ? unknown(time.whyLate) : findIn(question, time)));
    this.#last = found;
    return time.within(found, unknown(time.whyLate));
  }
}

function findIn(question: SenderQuestion, time: AnswerTime): Promise<readonly DnsFinding[]> {
  return new Promise((resolve) => {
    const worker = new Worker(ENTRY, {
      workerData: question, resourceLimits: { maxOldGenerationSizeMb: HEAP_MIB_MAX },
      // The gateway's own stdout is its log; mailauth writes to its console.
      stdout: true, stderr: true,
    });
    worker.stdout.resume();
    worker.stderr.resume();
    const end = (findings: readonly DnsFinding[]): void => {
      void worker.terminate();
      resolve(findings);
    };
    worker.on('message', (said: FromSenderThread) => {
      if (said.kind === 'found') return end(said.findings);
      const { question: number, name, type } = said;
      time.ask(name, type, (answer) => {
        worker.postMessage({ question: number, answer } satisfies ToSenderThread);
      });
    });
    worker.on('error', (error) => { end(unknown(errorText(error))); });
    worker.on('exit', () => { end(unknown('the thread that looks has ended')); });
    void time.over.then(() => { end(unknown(time.whyLate)); });
    worker.unref();
  });
}

function unknown(why: string): readonly DnsFinding[] {
  return [{ verdict: 'unknown', text: `what the DNS says of the sender is not known: ${why}` }];
}
