/**
 * The thread of sender-thread.ts: what the DNS says of domains that we send for, asked through the gateway.
 *
 *   in   a SenderQuestion as workerData; then each answer
 *   out  each question to the DNS; at the end the findings
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { DnsAnswer, DnsType, Resolver } from '../../platform/resolver.js';
import { sendersFindings } from './sender-findings.js';
import type { SenderQuestion } from './sender-findings.js';
import type { FromSenderThread, ToSenderThread } from './sender-thread.js';

const waiting = new Map<number, (answer: ToSenderThread['answer']) => void>();
let questionCount = 0;

const say = (said: FromSenderThread): void => { parentPort?.postMessage(said); };

const resolver: Resolver = {
  ask: <T extends DnsType>(name: string, type: T, done: (answer: DnsAnswer<T>) => void) => {
    const question = questionCount++;
    waiting.set(question, done as (answer: DnsAnswer<DnsType>) => void);
    say({ kind: 'ask', question, name, type });
  },
};

parentPort?.on('message', ({ question, answer }: ToSenderThread) => {
  const done = waiting.get(question);
  waiting.delete(question);
  done?.(answer);
});
say({ kind: 'found', findings: await sendersFindings(workerData as SenderQuestion, resolver) });
