/**
 * The thread of a policy module: loads it and asks it about one message after the other. Runs as a worker
 * (policy-thread.ts starts and ends it); nothing of the gateway is here but these lines.
 *
 *   in   a PolicyMessage, whose content is this thread's own
 *   out  'ready'; then for each message its answer, and whether the thread should be made anew
 */
import { pathToFileURL } from 'node:url';
import { getHeapStatistics } from 'node:v8';
import { workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import type { PolicyMessage } from './hooks/policy.js';
import { failed, policyAnswer } from './hooks/policy-answer.js';

interface ThreadData {
  readonly file: string;
  /** Not the worker's own port, which the module may use as it likes. */
  readonly port: MessagePort;
  /** Buffers lie outside the heap, whose limit does not bind them. */
  readonly outsideBytesMax: number;
}

const { file, port, outsideBytesMax } = workerData as ThreadData;
const { onMessage } = await import(pathToFileURL(file).href) as { readonly onMessage?: unknown };
if (typeof onMessage !== 'function') throw new Error('it exports no function onMessage');
const judge = onMessage as (message: PolicyMessage) => unknown;

port.on('message', (message: PolicyMessage) => {
  void (async () => {
    let answer;
    try {
      answer = policyAnswer(await judge(message));
    } catch (error) {
      answer = failed(`it threw: ${error instanceof Error ? error.message : String(error)}`);
    }
    port.postMessage({ answer, isWornOut: getHeapStatistics().external_memory > outsideBytesMax });
  })();
});
port.postMessage('ready');
