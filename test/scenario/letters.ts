/**
 * What the clients of the scenario world know: each message they submitted, what they were answered, what
 * arrived at the next hops, what was reported. The checkers of the guarantees read it (checks.ts).
 *
 * Every noteworthy moment gets a number of one common order (`moment`), so that "before" is exact.
 */
import type { Recipient, SubmissionOutcome } from '../../src/gateway/mail-types.js';

/** A message of a client. */
export class Letter {
  readonly id: number;
  readonly reversePath: string;
  /** Recipients by the name of their queue. */
  readonly groups: ReadonlyMap<string, readonly Recipient[]>;
  readonly content: Uint8Array;
  readonly submittedAt: number;
  /** 0 while it is open. */
  outcome: SubmissionOutcome | 0 = 0;
  settledAt = 0;
  /** First attempt by queue name. */
  readonly firstAttempt = new Map<string, number>();
  /** Attempts by queue name. */
  readonly attempts = new Map<string, number>();
  /** Arrivals at the next hop by recipient address. */
  readonly arrivals = new Map<string, number>();
  /** Recipients that the next hop refused for good, or whose time was over. */
  readonly rejected = new Set<string>();
  /** Recipients that ended without delivery: why. */
  readonly ended = new Map<string, string>();
  /** "failure ADDRESS", "success ADDRESS": ids of the different reports that the sender got. */
  readonly reports = new Map<string, Set<number>>();
  /** A fault may have repeated a delivery of it (G4). */
  mayRepeat = false;

  constructor(id: number, reversePath: string, groups: ReadonlyMap<string, readonly Recipient[]>, bytes: number, submittedAt: number) {
    this.id = id;
    this.reversePath = reversePath;
    this.groups = groups;
    this.content = contentOf(id, bytes);
    this.submittedAt = submittedAt;
  }

  /** Whether nobody of this queue is to be tried any more, as the next hop saw it. */
  isOver(queueName: string): boolean {
    return (this.groups.get(queueName) ?? []).every(({ address }) => this.arrivals.has(address) || this.rejected.has(address) || this.ended.has(address));
  }

  get addresses(): string[] {
    return [...this.groups.values()].flat().map((recipient) => recipient.address);
  }
}

/** Bytes that differ between messages in every place. */
export function contentOf(id: number, bytes: number): Uint8Array {
  const content = new Uint8Array(bytes);
  const word = asciiBytes(`${String(id)} `);
  content.set(word.subarray(0, bytes));
  for (let made = word.length; made < bytes; made *= 2) content.copyWithin(made, 0, made);
  return content;
}

/** A report as the scenario's compose() writes it: "report ID ADDRESS …". */
export function reportContent(messageId: number, kind: string, addresses: readonly string[]): Uint8Array {
  return asciiBytes(`report ${String(messageId)} ${kind} ${addresses.join(' ')}\r\n`);
}

export class Letters {
  readonly byId = new Map<number, Letter>();
  private order = 0;

  get all(): Letter[] {
    return [...this.byId.values()];
  }

  moment(): number {
    this.order += 1;
    return this.order;
  }

  count(outcome: SubmissionOutcome | 0): number {
    return this.all.filter((letter) => letter.outcome === outcome).length;
  }

  get delivered(): number {
    return this.all.reduce((sum, letter) => sum + [...letter.arrivals.values()].reduce((a, b) => a + b, 0), 0);
  }
}

export function asciiBytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1');
}
