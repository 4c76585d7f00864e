/** A context for verbs that run inside a test: what they print is kept, errors with '! ' before them; no role runs. */
import type { CliContext, Terminal } from '../../../src/cli/context.js';

export function contextFor(printed: string[], environment: Readonly<Record<string, string>> = {}): CliContext {
  const terminal: Terminal = { print: (line) => { printed.push(line); }, write: (text) => { printed.push(text); }, error: (line) => { printed.push(`! ${line}`); }, isTty: false, errorIsTty: false, columns: 100, rows: 50 };
  return {
    terminal, environment, version: '', entry: '', stopSignal: new AbortController().signal,
    roles: { gateway: () => Promise.reject(new Error('not here')), store: () => Promise.reject(new Error('not here')) },
    untilStopped: () => Promise.resolve(),
    onSecondSignal: () => undefined,
  };
}
