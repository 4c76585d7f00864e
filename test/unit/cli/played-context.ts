/** A context for verbs that run inside a test: what they print is kept, errors with '! ' before them, questions with '? '; no role runs. */
import assert from 'node:assert/strict';
import type { CliContext, Terminal } from '../../../src/cli/context.js';
import type { Https } from '../../../src/platform/https.js';
import type { LookUpHost } from '../../../src/platform/resolver.js';

/** Hosts of this machine alone, one of them by both families; nobody can tell of what ends with ".late". */
const lookUpHost: LookUpHost = (host) => {
  const isFailed = host.endsWith('.late');
  if (host === 'dual.hosts') return Promise.resolve({ addresses: ['::1', '127.0.0.1'], why: '', isFailed: false });
  const isHere = host === 'localhost' || host.startsWith('127.');
  const why = isHere ? '' : isFailed ? 'no answer on its address: EAI_AGAIN' : 'it has no address';
  return Promise.resolve({ addresses: isHere ? ['127.0.0.1'] : [], why, isFailed });
};

const NO_HTTPS: Https = { ask: () => { assert.fail('no server is asked'); } };

/** Nobody is there to be asked unless there is an `answer`. */
export function contextFor(printed: string[], environment: Readonly<Record<string, string>> = {}, answer?: string, https: Https = NO_HTTPS): CliContext {
  const terminal: Terminal = {
    print: (line) => { printed.push(line); }, write: (what) => { printed.push(typeof what === 'string' ? what : Buffer.from(what).toString('latin1')); }, drained: () => Promise.resolve(), error: (line) => { printed.push(`! ${line}`); }, isTty: false, isScreen: false, errorIsTty: false, columns: 100, rows: 50,
    canAsk: answer !== undefined,
    ask: (question) => {
      printed.push(`? ${question}`);
      return Promise.resolve(answer ?? '');
    },
  };
  return {
    terminal, environment, https, lookUpHost, version: '', entry: '', stopSignal: new AbortController().signal,
    roles: { gateway: () => Promise.reject(new Error('not here')), store: () => Promise.reject(new Error('not here')) },
    untilStopped: () => Promise.resolve(),
    onSecondSignal: () => undefined,
    onPassedSignal: () => undefined,
  };
}
