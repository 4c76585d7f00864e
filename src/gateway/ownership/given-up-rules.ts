/**
 * What is left of partitions that have ended at stores which an operator gave up, as the register keeps it:
 * one key a store, rules/given-up/STORE, with the partitions, the term that ended each, and the terms before
 * that it knew. It takes the place of their records, which would else wait for that store for ever. As long
 * as a line stands there
 *
 *   a partition without a record counts as ended by that term   register-bridge.ts
 *   its store, should it come back, is told so, and drops what
 *   that end knew                                               ended-partitions.ts; then the line goes
 *
 * A line is written before the record is deleted, and read after no record was found: one of both is always
 * seen.
 */
import type { PartitionRecord } from '../../protocol/partition-record.js';
import { nobody } from '../../protocol/partition-record.js';
import { BrokenRule } from '../../base/json-shape.js';
import { GIVEN_UP, givenUpKey, givenUpStoreOf } from '../../register/keys.js';
import { VALUE_BYTES_MAX, utf8Bytes } from '../../register/limits.js';
import { unchanged, type Entry, type Outcome, type Register } from '../../register/port.js';
import type { EndedCopy, GivenUpRule, RetiredRule } from '../../register/records.js';
import { ENDED_COPIES_MAX, decodeGivenUp, encodeGivenUp } from '../../register/records.js';

/** `left` were not added, and `why` says why; '' when there are none. */
type Done = (why: string, left: readonly EndedCopy[]) => void;
/** The lines as they should be. */
type Change = (rule: GivenUpRule) => readonly EndedCopy[];

/** Held by nobody, and with no copy that counts; of what it did not know a copy may be found later. */
export function endedBy({ partition, epoch, nonce, line }: EndedCopy): PartitionRecord {
  const term = { number: epoch, nonce };
  return { epoch, term, holder: nobody(partition), members: [], gaveUp: [], left: [], line };
}

export class GivenUpRules {
  readonly #register: Register;
  readonly #decoded: (entry: Entry) => GivenUpRule | undefined;

  /** `decoded` says what can't be read. */
  constructor(register: Register, decoded: (entry: Entry) => GivenUpRule | undefined) {
    this.#register = register;
    this.#decoded = decoded;
  }

  /** By store. What can't be read is passed over. */
  of(rules: Iterable<Entry>): ReadonlyMap<string, readonly EndedCopy[]> {
    const copies = new Map<string, readonly EndedCopy[]>();
    for (const entry of rules) {
      const storeId = givenUpStoreOf(entry.key);
      const rule = storeId === undefined ? undefined : this.#decoded(entry);
      if (storeId !== undefined && rule !== undefined) copies.set(storeId, rule.copies);
    }
    return copies;
  }

  /**
   * By what a partition that has no record has ended, if it has; undefined in place of an answer: there is
   * none.
   */
  read(partition: string, done: (ended: EndedCopy | undefined, revision: number | undefined) => void): void {
    this.#register.read({ prefix: GIVEN_UP }, (result) => {
      if (result.kind !== 'entries') return done(undefined, undefined);
      let newest: EndedCopy | undefined;
      let revision = 0;
      for (const entry of result.entries) {
        for (const copy of this.of([entry]).get(givenUpStoreOf(entry.key) ?? '') ?? []) {
          if (copy.partition !== partition || copy.epoch < (newest?.epoch ?? 0)) continue;
          newest = copy;
          ({ revision } = entry);
        }
      }
      done(newest, revision);
    });
  }

  /** As many as one value has room for: the others go on waiting for their store. */
  add(storeId: string, by: RetiredRule, copies: readonly EndedCopy[], done: Done): void {
    let left: readonly EndedCopy[] = [];
    this.#change(storeId, by, (rule) => {
      const newer = copies.filter(
        (copy) => !rule.copies.some((one) => isFor(one, copy) && one.epoch >= copy.epoch),
      );
      const kept = rule.copies.filter((one) => !newer.some((copy) => isFor(one, copy)));
      let count = Math.min(newer.length, ENDED_COPIES_MAX - kept.length);
      const isTooMuch = (): boolean => !hasRoom({ ...rule, copies: [...kept, ...newer.slice(0, count)] });
      while (count > 0 && isTooMuch()) count -= Math.ceil(count / 16);
      left = newer.slice(count);
      return [...kept, ...newer.slice(0, count)];
    }, (trouble) => {
      if (trouble !== '') return done(trouble, copies);
      const why = `the register has no room for ${String(left.length)} of them, which wait on`;
      done(left.length === 0 ? '' : why, left);
    });
  }

  /** The store knows of these. */
  remove(storeId: string, copies: readonly EndedCopy[]): void {
    const isTold = (one: EndedCopy): boolean =>
      copies.some((copy) => isFor(copy, one) && copy.epoch === one.epoch);
    this.#change(storeId, undefined, (rule) => rule.copies.filter((one) => !isTold(one)), () => undefined);
  }

  #change(
    storeId: string, by: RetiredRule | undefined, change: Change, done: (why: string) => void,
  ): void {
    const key = givenUpKey(storeId);
    this.#register.read({ key }, (result) => {
      if (result.kind !== 'entries') return done(`the register does not answer: ${result.why}`);
      const [entry] = result.entries;
      const rule = entry === undefined ? newRule(by) : decodeGivenUp(entry.value);
      if (rule instanceof BrokenRule) {
        return done(`the key ${key} of the register can't be read: ${rule.rule}`);
      }
      if (rule === undefined) return done('');
      const copies = change(rule);
      if (isSameList(copies, rule.copies)) return done('');
      const value = copies.length === 0 ? null : encodeGivenUp({ ...rule, copies });
      this.#register.write([{ key, ...unchanged(entry), value }], (_index, outcome: Outcome) => {
        if (outcome.kind === 'stale') this.#change(storeId, by, change, done);
        else done(outcome.kind === 'done' ? '' : `the register did not settle it: ${outcome.why}`);
      });
    });
  }
}

function hasRoom(rule: GivenUpRule): boolean {
  return utf8Bytes(encodeGivenUp(rule)) <= VALUE_BYTES_MAX;
}

function newRule(by: RetiredRule | undefined): GivenUpRule | undefined {
  return by === undefined ? undefined : { ...by, copies: [] };
}

function isSameList(a: readonly EndedCopy[], b: readonly EndedCopy[]): boolean {
  return a.length === b.length && a.every((copy, at) => copy === b[at]);
}

function isFor(a: EndedCopy, b: EndedCopy): boolean {
  return a.partition === b.partition;
}
