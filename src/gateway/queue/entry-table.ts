/**
 * The entries of all queues of a gateway as flat columns outside the collected heap: an entry is a row
 * number. An entry is one message in one queue; its content and head lie in a record of the segments.
 *
 *   FREE       ─ submitted, or out of a copy that was given up ─► STORING
 *              ─ back from the stores ─► READY, DEFERRED, REPORTING, HELD, by its note
 *   STORING    ─ committed ─► READY; out of such a copy: READY, DEFERRED, REPORTING, HELD, by its note
 *              ─ timeout / WITHDRAW ─► FREE
 *   READY      ─ taken ─► IN_FLIGHT
 *              ─ expired or failed by an operator / ANNOTATE ─► REPORTING    ─ held ─► HELD
 *              ─ delayed by an operator / ANNOTATE ─► DEFERRED
 *   IN_FLIGHT  ─ deferred / ANNOTATE ─► DEFERRED                             ─ unknown version ─► HELD
 *              ─ failed or expired / ANNOTATE ─► REPORTING                   ─ not to be sent yet ─► READY
 *   DEFERRED   ─ due ─► READY                                                ─ held ─► HELD
 *              ─ expired or failed by an operator / ANNOTATE ─► REPORTING
 *   REPORTING  ─ reported, or put aside, some still to try ─► DEFERRED, READY
 *              ─ found damaged; reported, some still to try, their route is gone ─► HELD
 *   HELD       ─ released ─► READY, or REPORTING where a report is owed         ─ delayed ─► DEFERRED
 *              ─ expired or failed by an operator / ANNOTATE ─► REPORTING
 *   any but STORING ─ delivered, reported, deleted: its end / DELETE ─► FREE
 *
 * HELD is not delivered until an operator or the recovery says so (unknown version, no route, crashes). Which
 * of these an operator is refused for now: interruptions.ts.
 *
 * Columns are aligned by row (bytes a row): index 16 + bucket 4, position 8, two lists 16, ready list 8,
 * record 4, shared content 4, sizes 4, checksum 4, note and its room 4, times 8, state, attempts, what was
 * told, whose word puts it off 5.
 */
import { ChunkedFloat64, ChunkedUint8, ChunkedUint32 } from '../../base/chunked.js';
import { HashIndex } from '../../base/hash-index.js';
import { invariant } from '../../base/invariant.js';
import { Rows } from '../../base/rows.js';
import type { OrderColumns } from '../mirror/set/position-order.js';
import { StateCensus } from './state-census.js';

export const EntryState = {
  FREE: 0,
  /** Sent to the mirrors, not yet acknowledged by all of them: holds nobody, is seen by nobody. */
  STORING: 1,
  /** Committed and due, in the ready list. */
  READY: 2,
  /** Handed out for a delivery attempt. */
  IN_FLIGHT: 3,
  /** Waits for its due time in the timer wheel. */
  DEFERRED: 4,
  /** Its outcome is decided and a report is being made. */
  REPORTING: 5,
  /** Waits for an operator. */
  HELD: 6,
} as const;
export type EntryState = (typeof EntryState)[keyof typeof EntryState];

/** Expiry of an entry whose own can't be read: it is HELD. */
export const NEVER_SECONDS = 0xffffffff;
/** Of one that an operator holds: its lifetime goes on when it is released. */
export const STOPPED_SECONDS = 0xfffffffe;

const S = EntryState;
const NEXT_STATES: readonly (readonly number[])[] = [
  // FREE: by submission, or by recovery to any resting state
  [S.STORING, S.READY, S.DEFERRED, S.REPORTING, S.HELD],
  // STORING: submitted to READY, adopted to any resting state
  [S.READY, S.DEFERRED, S.REPORTING, S.HELD, S.FREE],
  [S.IN_FLIGHT, S.DEFERRED, S.REPORTING, S.HELD, S.FREE],
  [S.READY, S.DEFERRED, S.REPORTING, S.HELD, S.FREE],
  [S.READY, S.REPORTING, S.HELD, S.FREE],
  [S.DEFERRED, S.READY, S.HELD, S.FREE],
  [S.READY, S.DEFERRED, S.REPORTING, S.FREE],
];

/** The same as bits: each message is asked about several times. */
const NEXT_BITS = Uint16Array.from(NEXT_STATES, (states) =>
  states.reduce((bits, state) => bits | (1 << state), 0));
/** Columns grow by so many rows at once. */
const GROWTH_ROWS = 256;

/** Whether an entry may go from one state to another. */
export function isValidEntryTransition(from: number, to: number): boolean {
  return (((NEXT_BITS[from] ?? 0) >>> to) & 1) === 1;
}

function columnsBy(position: ChunkedFloat64): OrderColumns {
  return { position, previous: new ChunkedUint32(), next: new ChunkedUint32() };
}

/** Rows of entries. Lists and times are kept by MailQueue; this owns the columns and the row's life. */
export class EntryTable {
  /** (message id, queue handle) → row, so that one message is found without a scan. */
  readonly index: HashIndex;
  readonly position = new ChunkedFloat64();
  /** The lists by position: of a queue, and of its partition. */
  readonly queueColumns = columnsBy(this.position);
  readonly partitionColumns = columnsBy(this.position);
  readonly readyPrevious = new ChunkedUint32();
  readonly readyNext = new ChunkedUint32();
  /** Record of body ‖ head, or of the head alone when `shared` names a content row. */
  readonly slot = new ChunkedUint32();
  readonly shared = new ChunkedUint32();
  readonly bodyBytes = new ChunkedUint32();
  readonly checksum = new ChunkedUint32();
  /**
   * Room for the note, behind what the record has else, in the low half; bytes of the note, 0 without one, in
   * the high half.
   */
  readonly note = new ChunkedUint32();
  readonly arrivalSeconds = new ChunkedUint32();
  readonly expirySeconds = new ChunkedUint32();
  readonly attempts = new ChunkedUint8();
  /** 1: no delay is to be told any more (delay-reports.ts). */
  readonly delaySettled = new ChunkedUint8();
  /** 1: that it waits for its next hop was told (untold-waits.ts). */
  readonly waitTold = new ChunkedUint8();
  /** 1: DEFERRED by the word of an operator (MailQueue.countDeferred()), or READY and kept back. */
  readonly delayed = new ChunkedUint8();
  /** Count, size and age of the entries in each state. */
  readonly census = new StateCensus();
  readonly #stateColumn = new ChunkedUint8();
  readonly #rows = new Rows();
  #usedRow = 0;

  constructor(hashSeed: number) {
    this.index = new HashIndex(hashSeed);
  }

  get inUse(): number {
    return this.#rows.inUse;
  }

  /** No row above this one was ever used. */
  get highestRow(): number {
    return this.#usedRow;
  }

  /** A row in state FREE, all columns zero, indexed under (messageId, queueHandle). */
  take(messageId: number, queueHandle: number): number {
    const row = this.#rows.take();
    this.index.set(row, messageId, queueHandle);
    // New elements are zero: a recovery takes new rows only.
    if (row > this.#usedRow) {
      if (row >= this.position.length) this.#grow(row + GROWTH_ROWS);
      this.#usedRow = row;
      return row;
    }
    this.position.set(row, 0);
    this.queueColumns.previous.set(row, 0);
    this.queueColumns.next.set(row, 0);
    this.partitionColumns.previous.set(row, 0);
    this.partitionColumns.next.set(row, 0);
    this.readyPrevious.set(row, 0);
    this.readyNext.set(row, 0);
    this.slot.set(row, 0);
    this.shared.set(row, 0);
    this.note.set(row, 0);
    this.attempts.set(row, 0);
    this.delaySettled.set(row, 0);
    this.waitTold.set(row, 0);
    this.delayed.set(row, 0);
    this.#stateColumn.set(row, S.FREE);
    return row;
  }

  /** Gives the row back; it must have been moved to FREE. */
  release(row: number): void {
    invariant(this.#stateColumn.get(row) === S.FREE, 'only an ended entry gives its row back');
    this.index.remove(row);
    this.#rows.release(row);
  }

  state(row: number): number {
    return this.#stateColumn.get(row);
  }

  /** The only writer of the state. */
  transition(row: number, to: EntryState): void {
    const from = this.#stateColumn.get(row);
    if (!isValidEntryTransition(from, to)) {
      invariant(false, `an entry goes from state ${String(from)} to ${String(to)}, which no arrow allows`);
    }
    this.#stateColumn.set(row, to);
    const arrivalSeconds = this.arrivalSeconds.get(row);
    const bytes = this.bodyBytes.get(row);
    if (from !== S.FREE) this.census.leave(from, arrivalSeconds, bytes);
    if (to !== S.FREE) this.census.enter(to, arrivalSeconds, bytes);
  }

  messageId(row: number): number {
    return this.index.keyOf(row);
  }

  queueHandle(row: number): number {
    return this.index.saltOf(row);
  }

  #grow(length: number): void {
    this.position.ensure(length);
    this.queueColumns.previous.ensure(length);
    this.queueColumns.next.ensure(length);
    this.partitionColumns.previous.ensure(length);
    this.partitionColumns.next.ensure(length);
    this.readyPrevious.ensure(length);
    this.readyNext.ensure(length);
    this.slot.ensure(length);
    this.shared.ensure(length);
    this.bodyBytes.ensure(length);
    this.checksum.ensure(length);
    this.note.ensure(length);
    this.arrivalSeconds.ensure(length);
    this.expirySeconds.ensure(length);
    this.attempts.ensure(length);
    this.delaySettled.ensure(length);
    this.waitTold.ensure(length);
    this.delayed.ensure(length);
    this.#stateColumn.ensure(length);
  }
}
