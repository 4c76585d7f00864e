/**
 * What is known from outside of every message of a simulated run: what its client was told, where it was tried,
 * what arrived and what was reported. Nothing in here is asked of the processes; the checkers compare it with
 * what they hold (guarantees.ts, custody.ts).
 *
 * Every noteworthy moment has a number of one common order, so that "before" is exact.
 */
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import type { PartitionSet } from '../../src/recovery/ownership/partition-set.js';
import type { Recipient, SubmissionOutcome } from '../../src/gateway/mail-types.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { contentOf } from '../scenario/letters.js';

/** The gateway died before it answered: the client knows nothing. */
export const UNANSWERED = -1;

/** A final dot that a next hop took, and what became of it at the gateway that sent it. */
export interface Dot {
  readonly gateway: string;
  readonly atMs: number;
  readonly mirror: Partition;
  /** Its set when the dot was sent: says what all copies have, also when the partition was lost. */
  readonly set: PartitionSet | undefined;
  /** Number of the change that ended or noted the delivery; 0 while the gateway has not settled it. */
  settledNumber: number;
  /** The next hop took it, the reply was lost. */
  readonly isUnanswered: boolean;
  /** Disasters of its queue when it was sent (custody.ts). */
  readonly disasters: number;
  /** A copy that was given up may still bring it again (custody.ts). */
  readonly mayComeBack: boolean;
}

/** A message in one of the queues it goes to. */
export class Copy {
  readonly letter: Letter;
  readonly queueName: string;
  readonly recipients: readonly Recipient[];
  /** The partition that took it; '' when none did. */
  queueKey = '';
  /** Moment of the first attempt; 0 before. */
  firstAttempt = 0;
  /** Every process and in-sync mirror that held it was gone at one time: it may be lost (G2). */
  isExcused = false;
  /** Its copies were given up once: what is taken back in stands behind what came meanwhile. */
  hasNoPlace = false;
  readonly dots = new Map<string, Dot[]>();
  /** Recipients that the next hop refused, or whose time was over. */
  readonly failed = new Set<string>();
  /** Recipients that ended without a report, by rule. */
  readonly ended = new Set<string>();

  constructor(letter: Letter, queueName: string, recipients: readonly Recipient[]) {
    this.letter = letter;
    this.queueName = queueName;
    this.recipients = recipients;
  }

  /** Each recipient has ended as G2 asks. */
  get isOver(): boolean {
    return this.recipients.every(({ address }) => this.dots.has(address) || this.ended.has(address) || this.letter.reported.has(`failure ${address}`));
  }

  /** Nobody is to be tried any more, as the next hop saw it. */
  get isTried(): boolean {
    return this.recipients.every(({ address }) => this.dots.has(address) || this.failed.has(address) || this.ended.has(address));
  }
}

export interface LetterOptions {
  readonly id: number;
  /** Which content it is: a client that heard nothing sends it again under a new id. */
  readonly contentKey: number;
  /** What the gateway has put in front of it. */
  readonly header: Uint8Array;
  readonly gateway: string;
  readonly reversePath: string;
  readonly groups: ReadonlyMap<string, readonly Recipient[]>;
  readonly bytes: number;
  readonly submittedAt: number;
}

export class Letter {
  readonly id: number;
  readonly contentKey: number;
  readonly header: Uint8Array;
  readonly gateway: string;
  readonly reversePath: string;
  readonly copies: readonly Copy[];
  readonly bytes: number;
  readonly submittedAt: number;
  /** 0 while it is open. */
  outcome: SubmissionOutcome | typeof UNANSWERED | 0 = 0;
  settledAt = 0;
  /** "failure ADDRESS", "success ADDRESS": ids of the reports that arrived. */
  readonly reported = new Map<string, Set<number>>();
  /** Ids of the reports that were made for it. */
  readonly reportIds: number[] = [];
  private made: Uint8Array | undefined;

  constructor(options: LetterOptions) {
    this.id = options.id;
    this.contentKey = options.contentKey;
    this.header = options.header;
    this.gateway = options.gateway;
    this.reversePath = options.reversePath;
    this.bytes = options.bytes;
    this.submittedAt = options.submittedAt;
    this.copies = [...options.groups].map(([name, recipients]) => new Copy(this, name, recipients));
  }

  /** As it is to arrive: what the gateway put in front, what the client sent, and the end of its last line. */
  get content(): Uint8Array {
    this.made ??= this.makeContent();
    return this.made;
  }

  private makeContent(): Uint8Array {
    const content = new Uint8Array(this.header.length + this.bytes + 2);
    content.set(this.header);
    content.set(contentOf(this.contentKey, this.bytes), this.header.length);
    content.set([13, 10], content.length - 2);
    return content;
  }

  get isAccepted(): boolean {
    return this.outcome === COMMITTED;
  }

  copyIn(queueName: string): Copy | undefined {
    return this.copies.find((copy) => copy.queueName === queueName);
  }
}

export class Ledger {
  readonly letters = new Map<number, Letter>();
  /** Reports by their message id: of which letter, and the dots that took them. */
  readonly reports = new Map<number, { readonly letter: Letter; readonly dots: Dot[] }>();
  accepted = 0;
  dots = 0;
  private order = 0;

  moment(): number {
    this.order += 1;
    return this.order;
  }

  add(letter: Letter): void {
    this.letters.set(letter.id, letter);
  }

  addReport(letterId: number, reportId: number): void {
    const letter = this.letters.get(letterId);
    if (letter === undefined) return;
    letter.reportIds.push(reportId);
    this.reports.set(reportId, { letter, dots: [] });
  }

  /** The process that took them in is gone: their clients hear nothing. */
  leaveUnanswered(gateway: string): void {
    for (const letter of this.letters.values()) if (letter.outcome === 0 && letter.gateway === gateway) letter.outcome = UNANSWERED;
  }
}
