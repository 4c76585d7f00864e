/**
 * The thread of a hook's module: loads it and asks it about one message after the other. Runs as a worker
 * (module-thread.ts starts and ends it); nothing of the gateway is here but these lines.
 *
 *   in   a ModuleMessage, whose content is this thread's own
 *   out  'ready'; then for each message its answer, and whether the thread should be made anew
 */
import { pathToFileURL } from 'node:url';
import { getHeapStatistics } from 'node:v8';
import { workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { errorText } from '../../../../base/error-text.js';
import type { ModuleMessage } from '../module-api.js';
import { failed, moduleAnswer } from '../module-answer.js';

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
const judge = onMessage as (message: ModuleMessage) => unknown;

port.on('message', (message: ModuleMessage) => {
  void (async () => {
    let answer;
    try {
      answer = moduleAnswer(await judge(message));
    } catch (error) {
      answer = failed(`it threw: ${errorText(error)}`);
    }
    port.postMessage({ answer, isWornOut: getHeapStatistics().external_memory > outsideBytesMax });
  })();
});
port.postMessage('ready');
