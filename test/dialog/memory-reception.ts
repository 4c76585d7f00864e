/**
 * The gateway behind the SMTP port, as the dialogs see it: keeps submissions in a list, answers with the outcomes
 * and admissions that a dialog asks for, and counts the bytes in transit.
 */

import assert from 'node:assert/strict';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import type { AdmissionVerdict, Reception, Route, Router, Submission, SubmissionOutcome, TlsNeed, Way } from '../../src/gateway/mail-types.js';

export interface Kept {
  readonly submission: Submission;
  /** Content joined, trace header included. */
  readonly content: Buffer;
  /** In how many pieces it came. */
  readonly pieces: number;
}

export class MemoryReception implements Reception {
  accepting = true;
  readonly kept: Kept[] = [];
  readonly outcomes: SubmissionOutcome[] = [];
  readonly admissions = new Map<string, AdmissionVerdict>();
  readonly refusedSenders = new Set<string>();
  readonly refusedRecipients = new Set<string>();
  bytesMax = Infinity;
  reservedBytes = 0;
  reservedBytesPeak = 0;
  /** When true the outcome comes inside submit(), else a turn later. */
  immediate = false;
  /** Submissions are held back until the test settles them. */
  hold = false;
  onSubmit: (() => void) | undefined;
  #lastId = 1_000_000;

  nextMessageId(): number {
    return ++this.#lastId;
  }

  admit(route: Route): AdmissionVerdict {
    return this.admissions.get(route.queueName) ?? '';
  }

  refusesFrom(...named: readonly [reversePath: string, client: string, senderKey: string]): boolean {
    return named.some((each) => this.refusedSenders.has(each));
  }

  refusesTo(...named: readonly [address: string, domain: string]): boolean {
    return named.some((each) => this.refusedRecipients.has(each));
  }

  reserve(bytes: number): boolean {
    if (this.reservedBytes + bytes > this.bytesMax) return false;
    this.reservedBytes += bytes;
    this.reservedBytesPeak = Math.max(this.reservedBytesPeak, this.reservedBytes);
    return true;
  }

  release(bytes: number): void {
    this.reservedBytes -= bytes;
  }

  submit(submission: Submission): void {
    const outcome = this.outcomes.shift() ?? COMMITTED;
    this.kept.push({ submission, content: Buffer.concat(submission.chunks), pieces: submission.chunks.length });
    this.onSubmit?.();
    if (this.hold) return;
    if (this.immediate) submission.settle(outcome);
    else setImmediate(() => submission.settle(outcome));
  }
}

/** One route a domain; noroute.example has none. One of each name but "nowhere". */
export class DomainRouter implements Router {
  readonly #routes = new Map<string, Route>();

  route(domain: string): Route | undefined {
    return this.routeNamed(domain);
  }

  isTooLong(): boolean {
    return false;
  }

  routeNamed(name: string): Route | undefined {
    if (name === 'noroute.example' || name === 'nowhere') return undefined;
    let route = this.#routes.get(name);
    if (route === undefined) {
      route = { queueName: name, queueClass: 'mail', label: `mail/${name}`, nextHop: { protocol: 'smtp', host: '127.0.0.1', port: 25 }, ordering: 'fifo', concurrency: 1, lengthMax: 1000 };
      this.#routes.set(name, route);
    }
    return route;
  }

  withTls({ queueName }: Route, need: TlsNeed): Route {
    return this.routeNamed(queueName + (need === 'required' ? '!tls' : '!any')) ?? assert.fail('the queue beside one that is there');
  }

  routeOfQueue(queueName: string): Route | undefined {
    return this.route(queueName);
  }

  mailRoutes(): readonly Route[] {
    return [...this.#routes.values()];
  }

  waysTo(): readonly Way[] {
    return [];
  }

  nameOf({ queueName }: Route): string {
    return queueName;
  }

  domainOf(): string {
    return '';
  }
}
