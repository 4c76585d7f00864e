/**
 * What the gateway (check-thread.ts) and the thread that checks messages (check-thread-entry.ts) say to each
 * other. Types only.
 *
 *   gateway ─ check ─▶ thread ─ ask ─▶ gateway ─ answer ─▶ thread …  thread ─ checked ─▶ gateway
 *           ─ ping ─▶         ─ pong ─▶                       the thread's first word is ready
 */
import type { DnsAnswer } from '../../../../platform/resolver.js';
import type { Verdicts } from '../verdicts.js';

/** What is asked of the DNS. */
export type CheckedType = 'A' | 'AAAA' | 'MX' | 'PTR' | 'TXT';

export interface CheckRequest {
  readonly check: number;
  /** After that the DNS has no more answers for it. */
  readonly withinMs: number;
  readonly hostName: string;
  readonly client: string;
  readonly helo: string;
  readonly reversePath: string;
  /** What the client sent; the thread's own. */
  readonly content: Uint8Array<ArrayBuffer>;
}

export type ToThread =
  | { readonly kind: 'check'; readonly request: CheckRequest }
  | { readonly kind: 'answer'; readonly question: number; readonly answer: DnsAnswer<CheckedType> }
  | { readonly kind: 'ping' };

export interface AskedQuestion {
  readonly kind: 'ask';
  readonly question: number;
  readonly name: string;
  readonly type: CheckedType;
  /** What is left of the time of its check. */
  readonly withinMs: number;
}

export type FromThread =
  | { readonly kind: 'ready' | 'pong' }
  | AskedQuestion
  | { readonly kind: 'checked'; readonly check: number; readonly verdicts: Verdicts };
