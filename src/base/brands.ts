/**
 * Names for numbers that must not be mixed up. A brand exists for the compiler only: at run time each is a
 * plain number. The functions are the only way in; they assert what every such number has to be, a whole
 * number that a double holds exactly. Bytes of a peer are validated before they get here.
 */
import { invariant } from './invariant.js';

declare const brand: unique symbol;
type Branded<Name extends string> = number & { readonly [brand]: Name };

/** Request on one connection, from 1. */
export type SequenceNumber = Branded<'SequenceNumber'>;
/** Change of one mirrored queue, from 1; 0 is the empty queue. */
export type TransactionNumber = Branded<'TransactionNumber'>;
/** Place of an entry in its queue: the transaction number of its first store. */
export type Position = Branded<'Position'>;
/** A message, in all its queues and at all its mirrors. */
export type MessageId = Branded<'MessageId'>;
/** Version of a queue's set of mirrors. */
export type Epoch = Branded<'Epoch'>;
/** A life of a gateway: higher ones fence lower ones. */
export type Incarnation = Branded<'Incarnation'>;
/** A queue on the connections of a gateway: 1 … 2^31. */
export type Handle = Branded<'Handle'>;

const HANDLE_MAX = 2 ** 31;

function whole(value: number, what: string): void {
  if (!Number.isSafeInteger(value) || value < 0) invariant(false, `${what} is a whole number from 0 to 2^53 − 1`);
}

export function sequenceNumber(value: number): SequenceNumber {
  whole(value, 'a sequence number');
  return value as SequenceNumber;
}

export function transactionNumber(value: number): TransactionNumber {
  whole(value, 'a transaction number');
  return value as TransactionNumber;
}

export function position(value: number): Position {
  whole(value, 'a position');
  return value as Position;
}

export function messageId(value: number): MessageId {
  whole(value, 'a message id');
  return value as MessageId;
}

export function epoch(value: number): Epoch {
  whole(value, 'an epoch');
  return value as Epoch;
}

export function incarnation(value: number): Incarnation {
  whole(value, 'an incarnation');
  return value as Incarnation;
}

export function handle(value: number): Handle {
  whole(value, 'a handle');
  invariant(value >= 1 && value <= HANDLE_MAX, 'a handle is from 1 to 2^31');
  return value as Handle;
}
