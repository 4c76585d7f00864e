/**
 * Which copies a record names as given up (16), when it is made by whoever goes on from older copies of the
 * partition, or from none: their mail is taken in when they are back (outside-copies.ts). Pure.
 */
import { GAVE_UP_MAX } from '../../protocol/fields.js';
import type { GivenUpCopy, PartitionRecord, PastTerm } from '../../protocol/partition-record.js';
import {
  NO_TERM, isEnded, isMemberOf, isOfLine, isSameTerm, mailOf,
} from '../../protocol/partition-record.js';
import type { Answer } from './store-answers.js';

/** Members of two losses or more. */
const GONE_KEPT = 6;

/**
 * Who gave up so many of one partition's copies does not wait for the first. Of those that are gone, the last
 * few stay: whose disk is away has not lost memory after memory since.
 */
export function withGivenUp(
  { gaveUp }: Pick<PartitionRecord, 'gaveUp'>, added: readonly GivenUpCopy[],
): readonly GivenUpCopy[] {
  const before = gaveUp.filter(({ storeId, bootId }) => !isMemberOf(added, storeId, bootId));
  const gone = before.filter(({ isGone }) => isGone === true).slice(-GONE_KEPT);
  const stay = before.filter((copy) => copy.isGone !== true || gone.includes(copy));
  return [...stay, ...added].slice(-GAVE_UP_MAX);
}

/**
 * Whenever a holder goes on from an older copy, or from none. Of what somebody has taken in from one of these
 * copies, what he had is lost now: it stands for no other any more, unless each is whole. Where mail was
 * taken in by this process, answers from before say nothing of that, and none passes for whole.
 */
export function eachAlone(
  gaveUp: readonly GivenUpCopy[], lostEpoch: number, isWhole: (copy: GivenUpCopy) => boolean,
): readonly GivenUpCopy[] {
  return gaveUp.map((copy) => {
    const together = gaveUp.filter((each) => mailOf(each) === mailOf(copy));
    const isApart = copy.epoch !== lostEpoch && together.length > 1
      && together.some((each) => !isWhole(each));
    return isApart ? { ...copy, isAlone: true } : copy;
  });
}

/**
 * Copies that count by a record which did not lead to here, the latest first: the register had lost it.
 * Epochs of two histories may have the same number: such copies stand for themselves alone.
 */
export function forgottenCopies(
  answers: ReadonlyMap<string, Answer>, line: readonly PastTerm[], given: readonly GivenUpCopy[],
): readonly GivenUpCopy[] {
  const forgotten = [...answers].flatMap(([storeId, { bootId, hasCopy, told }]) => {
    const isForgotten = hasCopy && told !== undefined && !isEnded(told)
      && isMemberOf(told.members, storeId, bootId) && !isOfLine({ term: NO_TERM, line }, told)
      && !isMemberOf(given, storeId, bootId);
    return isForgotten ? [{ storeId, bootId, epoch: told.epoch, term: told.term }] : [];
  });
  return forgotten.map(({ term, ...copy }) => {
    const isMixed = [...given, ...forgotten].some((other) => other.epoch === copy.epoch
      && !('term' in other && isSameTerm(other.term, term)));
    return isMixed ? { ...copy, isAlone: true as const } : copy;
  }).sort((a, b) => b.epoch - a.epoch);
}
