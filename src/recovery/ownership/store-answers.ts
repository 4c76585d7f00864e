/**
 * What each store has said of one partition since it was asked: whether it has a copy, what it was told, and
 * how long the holder's lease there runs. A store is forgotten with its link; all are when somebody else is
 * asked about. Beside them, the stores that a person gave up before they said anything (16).
 */
import type { PartitionRecord, RecordedMember } from '../../protocol/partition-record.js';
import { behindEnd, isEnded, isMemberOf, isOfLine } from '../../protocol/partition-record.js';
import type { AskAnswer, StorePort } from './ports.js';

/** Two answers tell of the end of the same lease when they differ by less: a lease is renewed by more. */
const SAME_LEASE_MS = 100;

export interface Answer extends AskAnswer {
  readonly bootId: string;
  readonly atMs: number;
  /** Its holder's lease there has run out, or was not renewed since the answer before. */
  readonly isRunningOut: boolean;
}

export class StoreAnswers {
  readonly #stores: StorePort;
  readonly #answers = new Map<string, Answer>();
  readonly #givenUp = new Set<string>();

  constructor(stores: StorePort) {
    this.#stores = stores;
  }

  get byStore(): ReadonlyMap<string, Answer> {
    return this.#answers;
  }

  note(storeId: string, bootId: string, answer: AskAnswer, nowMs: number): void {
    this.#givenUp.delete(storeId);
    const before = this.#answers.get(storeId);
    const isRunningOut = answer.leaseLeftMs === 0 || (before?.bootId === bootId
      && nowMs + answer.leaseLeftMs - before.atMs - before.leaseLeftMs < SAME_LEASE_MS);
    this.#answers.set(storeId, { ...answer, bootId, atMs: nowMs, isRunningOut });
  }

  forget(storeId: string): void {
    this.#answers.delete(storeId);
  }

  clear(): void {
    this.#answers.clear();
  }

  /** It is not waited for until it answers. */
  giveUp(storeId: string): void {
    this.#givenUp.add(storeId);
  }

  awaitAll(): void {
    this.#givenUp.clear();
  }

  get isSomeGivenUp(): boolean {
    return this.#givenUp.size > 0;
  }

  /** Of a store that has this very copy. */
  of(copy: RecordedMember): Answer | undefined {
    const answer = this.#answers.get(copy.storeId);
    return answer?.bootId === copy.bootId && answer.hasCopy ? answer : undefined;
  }

  /** A lease that a store told of is over by now. */
  isLeaseOver(nowMs: number): boolean {
    for (const { leaseLeftMs, atMs } of this.#answers.values()) {
      if (leaseLeftMs > 0 && nowMs >= atMs + leaseLeftMs) return true;
    }
    return false;
  }

  /** Stores that have neither answered nor were given up. */
  awaited(): readonly string[] {
    return this.#stores.all().filter((storeId) => !this.#answers.has(storeId) && !this.#givenUp.has(storeId));
  }

  areComplete(): boolean {
    return this.#stores.areAllKnown() && this.awaited().length === 0;
  }

  haveReachableAnswered(): boolean {
    return this.#stores.all().every((storeId) =>
      this.#stores.bootOf(storeId) === '' || this.#answers.has(storeId));
  }

  /** Not asked yet, or not in this boot: nobody knows what it was told. */
  isUnheard(storeId: string): boolean {
    return this.#answers.get(storeId)?.bootId !== this.#stores.bootOf(storeId);
  }

  get unheard(): readonly string[] {
    return this.#stores.all().filter((storeId) => this.isUnheard(storeId));
  }

  /** The newest record that a copy counts by, and that did not lead to the end; behind it from now on. */
  unknownTo(ended: PartitionRecord): PartitionRecord | undefined {
    let newest: PartitionRecord | undefined;
    for (const [storeId, { bootId, hasCopy, told }] of this.#answers) {
      if (!hasCopy || told === undefined || isEnded(told) || isOfLine(ended, told)) continue;
      const counts = isMemberOf(told.members, storeId, bootId);
      if (counts && told.epoch > (newest?.epoch ?? 0)) newest = told;
    }
    return newest === undefined ? undefined : behindEnd(newest, ended);
  }
}
