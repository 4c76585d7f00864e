/**
 * The thread of log-search.ts: one search, then it ends.
 *
 *   in   a LogTask as workerData
 *   out  a LoggedAnswer, or why there is none
 */
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { errorText } from '../../../base/error-text.js';
import type { LogTask } from './log-search.js';
import { searchLog } from './search-log.js';

const LOWEST_PRIORITY = 19;

// There it is the thread's own, elsewhere that of the gateway. Mail goes before.
if (process.platform === 'linux') setPriority(LOWEST_PRIORITY);
const { file, question, searchMs, bytesMax } = workerData as LogTask;
try {
  parentPort?.postMessage(searchLog(file, question, { endMs: performance.now() + searchMs, bytesMax }));
} catch (error) {
  parentPort?.postMessage(errorText(error));
}
