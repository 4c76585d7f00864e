/**
 * Copies of one partition that were given up and are back: one after the other, each is fenced and emptied
 * into the partition (rule 16 of docs/model).
 *
 *   WAITING ─ its turn, its store up / FENCE ─► FENCING ─ older terms have no lease there / PULL ─► PULLING
 *   FENCING ─ leases of older terms run / FENCE, later ─► FENCING
 *   PULLING ─ BLOCK, stored anew ─► STORING ─ every copy that counts has it / DELETE there, PULL ─► PULLING
 *   PULLING ─ BLOCK, no room for it ─► RESTING ─ a second / PULL of fewer ─► PULLING
 *   PULLING ─ no room at all: the partition leaves ─► RESTING
 *   PULLING ─ nothing is left, but a block of another copy is not everywhere yet ─► RESTING
 *   PULLING ─ nothing is left / the record is changed, its store is told, drops it ─► WAITING, for the next
 *   PULLING ─ nothing but damaged entries / over for this copy alone: others of its record may have those
 *             ─► WAITING, for the next
 *   FENCING ─ there is no such copy ─► WAITING, for the next
 *   FENCING, PULLING ─ no answer, or another path / FENCE ─► FENCING
 *   RESTING, STORING ─ the path was another one meanwhile / FENCE ─► FENCING
 *   any ─ its store is away, where it stood is kept; or the partition is ours no more ─► WAITING
 *
 * Whoever held the copy may commit there until it is fenced: so it is read only then. What every copy that
 * counts has is deleted there before more is read: so after a crash of this process its successor finds what
 * is still to be done. What is damaged is not deleted: a successor, too, must know that this copy does not
 * stand for the others of its record. Of one block it can't know whether it was stored: it knows the ids that
 * are still there; those that were delivered come twice. They are counted.
 */
import { invariant } from '../../base/invariant.js';
import type { Clock, EventLog, Packer } from '../../platform/ports.js';
import {
  CHANGE_ROW_BYTES, KIND_DELETE, changeDigested, writeChangeRow,
} from '../../protocol/change-rows.js';
import { Digest } from '../../protocol/digest.js';
import { ENTRY_ROW_BYTES, entryPosition } from '../../protocol/entry-rows.js';
import { CHANGES, PULL } from '../../protocol/message-types.js';
import type { Block } from '../../protocol/messages/block.js';
import { encodeChanges } from '../../protocol/messages/changes.js';
import type { Fenced } from '../../protocol/messages/fenced.js';
import { encodePull } from '../../protocol/messages/pull.js';
import type { GivenUpCopy, RecordedMember } from '../../protocol/partition-record.js';
import { mailOf } from '../../protocol/partition-record.js';
import type { Mirrors } from '../mirror/mirrors.js';
import type { Partition } from '../mirror/set/partition.js';
import type { StorePort } from '../mirror/link/store-port.js';
import type { AdoptedMail } from './adopted-mail.js';

const AdoptionState = { WAITING: 0, FENCING: 1, PULLING: 2, RESTING: 3, STORING: 4 } as const;
type AdoptionStateValue = (typeof AdoptionState)[keyof typeof AdoptionState];
const S = AdoptionState;

const NEXT: Readonly<Record<AdoptionStateValue, readonly AdoptionStateValue[]>> = {
  [S.WAITING]: [S.WAITING, S.FENCING],
  [S.FENCING]: [S.FENCING, S.PULLING, S.WAITING],
  [S.PULLING]: [S.STORING, S.RESTING, S.FENCING, S.WAITING],
  [S.RESTING]: [S.PULLING, S.FENCING, S.WAITING],
  [S.STORING]: [S.PULLING, S.FENCING, S.WAITING],
};

/** Of one block: it is in memory twice, and what may repeat after a crash. */
const BLOCK_ENTRIES = 64;
const BLOCK_BYTES = 256 * 1024;
const REST_MS = 1_000;
/** An answer that takes longer got lost. */
const ANSWER_MS = 5_000;
const FENCE_AGAIN_MS = 500;

export interface AdoptionsPorts {
  readonly clock: Clock;
  readonly packer: Packer;
  readonly log: EventLog;
  readonly mirrors: Mirrors;
  readonly mail: AdoptedMail;
  readonly counters: AdoptionCounters;
  /** Our term to the copy. */
  fence(copy: RecordedMember): void;
  /** All of it is in, or that of a copy which had the same. */
  onAdopted(copy: RecordedMember): void;
  /** There is none any more, or what is left of it can't be read. */
  onGone(copy: RecordedMember): void;
}

export interface AdoptionCounters {
  /** Messages of copies that had been given up. */
  adopted: number;
  /** Of these, those of which it is not known that they are not delivered twice. */
  adoptedTwice: number;
}

/** What is taken in of copies that counted in one record: they had the same mail at the same positions. */
interface TakenIn {
  until: number;
  /** The last change by which any of it was stored: before every copy that counts has it, nothing is over. */
  number: number;
  /** Up to there, positions of what was damaged in each copy that was read. */
  readonly missing: Set<number>;
}

/** Entries beside one another in the copy. */
interface EntryRun {
  readonly first: number;
  count: number;
}

export class Adoptions {
  readonly #name: string;
  readonly #handle: number;
  readonly #ports: AdoptionsPorts;
  #partition: Partition | undefined;
  /** This process began the partition empty: nobody has adopted anything before it. */
  #isFirst = false;
  #waiting: GivenUpCopy[] = [];
  #current: GivenUpCopy | undefined;
  #state: AdoptionStateValue = S.WAITING;
  /** When the next step is due, if no answer comes. */
  #dueMs = 0;
  #entriesMax = BLOCK_ENTRIES;
  /**
   * Of the current copy: where it stands, up to where it is read, and what is stored and not deleted there
   * yet.
   */
  #number = 0;
  readonly #digest = new Digest();
  #holderWallMs = 0;
  #cursor = 0;
  #runs: readonly EntryRun[] = [];
  /** Handles at its store are gone: it is fenced before anything else is asked. */
  #isSwitched = false;
  /** By the mail that copies have (mailOf). */
  readonly #takenIn = new Map<string, TakenIn>();

  constructor(name: string, handle: number, ports: AdoptionsPorts) {
    this.#name = name;
    this.#handle = handle;
    this.#ports = ports;
  }

  /** The partition is ours. */
  begin(partition: Partition, isFirst: boolean): void {
    this.#partition = partition;
    this.#isFirst = isFirst;
  }

  /** It is ours no more. */
  end(): void {
    this.#partition = undefined;
    this.#waiting = [];
    this.#current = undefined;
    this.#transition(S.WAITING, 0);
    this.#takenIn.clear();
  }

  /** Its store is up, in the boot that the record names. */
  add(copy: GivenUpCopy): void {
    if (this.#current !== undefined && isSame(this.#current, copy)) return;
    this.#waiting = this.#waiting.filter((each) => !isSame(each, copy));
    this.#waiting.push(copy);
  }

  onLinkDown(store: StorePort): void {
    this.#waiting = this.#waiting.filter(({ storeId }) => storeId !== store.storeId);
    if (this.#current?.storeId !== store.storeId) return;
    this.#current = undefined;
    this.#transition(S.WAITING, 0);
  }

  /** Handles, and what was asked, are gone with the other path. */
  onLinkSwitched(store: StorePort): void {
    if (this.#current?.storeId !== store.storeId) return;
    this.#isSwitched = true;
    if (this.#state === S.FENCING || this.#state === S.PULLING) this.#fence();
  }

  /** False when it is none of ours. */
  onFenced(store: StorePort, answer: Fenced): boolean {
    const copy = this.#current;
    if (copy?.storeId !== store.storeId || copy.bootId !== store.bootId) return false;
    if (this.#state !== S.FENCING) return true;
    if (!answer.isComplete) {
      this.#gone();
      return true;
    }
    if (answer.olderLeaseMs > 0) {
      this.#transition(S.FENCING, Math.min(answer.olderLeaseMs, FENCE_AGAIN_MS));
      return true;
    }
    this.#number = answer.number;
    this.#digest.reset(answer.digestA, answer.digestB);
    const { holderWallMs } = answer;
    this.#holderWallMs = holderWallMs === 0 ? 0 : holderWallMs - this.#nowMs;
    this.#delete();
    this.#pull();
    return true;
  }

  onNoCopy(store: StorePort): void {
    if (this.#current?.storeId === store.storeId && this.#state === S.FENCING) this.#gone();
  }

  /** False when it is none of ours. */
  onBlock(store: StorePort, block: Block, bodies: Uint8Array): boolean {
    const copy = this.#current;
    if (copy?.storeId !== store.storeId) return false;
    if (this.#state !== S.PULLING || block.afterPosition !== this.#cursor) return true;
    const partition = this.#partition;
    if (partition === undefined || partition.isLeaving) this.#transition(S.RESTING, REST_MS);
    else if (block.rows.length === 0) this.#overOnceStored(copy, partition);
    else this.#take(copy, partition, block, bodies);
    return true;
  }

  tick(nowMs: number): void {
    if (this.#partition === undefined || this.#partition.isLeaving) return;
    if (this.#current === undefined) this.#next();
    this.#partition.isAdopting = this.#current !== undefined;
    if (this.#current === undefined || this.#state === S.STORING || nowMs < this.#dueMs) return;
    if (this.#state === S.RESTING && !this.#isSwitched) this.#pull();
    else this.#fence();
  }

  get #nowMs(): number {
    return this.#ports.clock.nowMs();
  }

  #transition(to: AdoptionStateValue, afterMs: number): void {
    const from = this.#state;
    invariant(NEXT[from].includes(to), `an adoption does not go from ${String(from)} to ${String(to)}`);
    this.#state = to;
    this.#dueMs = this.#nowMs + afterMs;
  }

  #next(): void {
    this.#current = this.#waiting.shift();
    if (this.#current === undefined) return;
    const takenIn = this.#takenIn.get(mailOf(this.#current));
    // What another copy has not brought may be anywhere.
    this.#cursor = takenIn === undefined || takenIn.missing.size > 0 ? 0 : takenIn.until;
    this.#runs = [];
    this.#isSwitched = false;
    this.#entriesMax = BLOCK_ENTRIES;
    this.#ports.log.warn('recovery', 'a copy that was given up is back: its mail is taken in', {
      partition: this.#name, store: this.#current.storeId,
    });
    this.#transition(S.WAITING, 0);
  }

  #fence(): void {
    if (this.#current === undefined) return;
    this.#isSwitched = false;
    this.#transition(S.FENCING, ANSWER_MS);
    this.#ports.fence(this.#current);
  }

  #pull(): void {
    const { packer } = this.#ports;
    this.#transition(S.PULLING, ANSWER_MS);
    this.#request(PULL, encodePull(packer, {
      handle: this.#handle, afterPosition: this.#cursor, untilPosition: Number.MAX_SAFE_INTEGER,
      entriesMax: this.#entriesMax, bytesMax: BLOCK_BYTES, withBodies: true,
    }));
  }

  #take(copy: GivenUpCopy, partition: Partition, { rows, nextPosition }: Block, bodies: Uint8Array): void {
    const { mail, counters } = this.#ports;
    const key = mailOf(copy);
    const takenIn = this.#takenIn.get(key) ?? { until: 0, number: 0, missing: new Set<number>() };
    const isWanted = (position: number): boolean => position > takenIn.until || takenIn.missing.has(position);
    const holderWallMs = this.#holderWallMs === 0 ? 0 : Math.floor(this.#holderWallMs + this.#nowMs);
    const taken = mail.take(partition, rows, bodies, holderWallMs, isWanted, () => { this.#onStored(copy); });
    if (taken === undefined) {
      this.#entriesMax = Math.max(1, Math.floor(rows.length / ENTRY_ROW_BYTES / 2));
      this.#transition(S.RESTING, REST_MS);
      return;
    }
    // Whoever had the partition before us may have stored the first block, and delivered of it.
    if (!this.#isFirst && !this.#takenIn.has(key)) counters.adoptedTwice += taken.stored;
    counters.adopted += taken.stored;
    this.#runs = this.#noteTaken(rows, takenIn.missing, taken.damaged);
    this.#cursor = nextPosition;
    takenIn.until = Math.max(takenIn.until, nextPosition);
    takenIn.number = partition.lastNumber;
    this.#takenIn.set(key, takenIn);
    this.#transition(S.STORING, Infinity);
    if (partition.ackedNumber >= partition.lastNumber) this.#onStored(copy);
  }

  /** What of a block is in, and may be deleted at its copy. */
  #noteTaken(rows: Uint8Array, missing: Set<number>, damaged: ReadonlySet<number>): readonly EntryRun[] {
    const view = new DataView(rows.buffer, rows.byteOffset, rows.byteLength);
    const runs: EntryRun[] = [];
    let run: EntryRun | undefined;
    for (let offset = 0; offset < view.byteLength; offset += ENTRY_ROW_BYTES) {
      const position = entryPosition(view, offset);
      if (damaged.has(position)) {
        missing.add(position);
        run = undefined;
        continue;
      }
      missing.delete(position);
      if (run === undefined) {
        run = { first: position, count: 0 };
        runs.push(run);
      }
      run.count += 1;
    }
    return runs;
  }

  /** Every copy that counts has the block. */
  #onStored(copy: GivenUpCopy): void {
    if (this.#state !== S.STORING || this.#current !== copy) return;
    this.#entriesMax = BLOCK_ENTRIES;
    if (this.#isSwitched) this.#fence();
    else {
      this.#delete();
      this.#pull();
    }
  }

  /** Out of the copy with what was taken in: as a section of changes of its own, under our term. */
  #delete(): void {
    const runs = this.#runs;
    this.#runs = [];
    if (runs.length === 0) return;
    const rows = new Uint8Array(CHANGE_ROW_BYTES * runs.length);
    const view = new DataView(rows.buffer);
    runs.forEach(({ first, count }, i) => {
      const offset = i * CHANGE_ROW_BYTES;
      writeChangeRow(view, offset, KIND_DELETE, 0, 0, count, 0, first);
      this.#digest.add(changeDigested(view, offset), 0, count, 0, first);
    });
    const firstNumber = this.#number + 1;
    this.#number += runs.length;
    const { a, b } = this.#digest;
    this.#request(CHANGES, encodeChanges(this.#ports.packer, [this.#handle, firstNumber, a, b, rows]));
  }

  #request(type: number, control: Uint8Array): void {
    const { mirrors } = this.#ports;
    const store = this.#current === undefined ? undefined : mirrors.storeAt(this.#current);
    if (store === undefined) return;
    mirrors.outboxOf(store)?.request(type, control);
    mirrors.askFlush();
  }

  /** The store of another copy may have dropped while its block was on the way to the copies that count. */
  #overOnceStored(copy: GivenUpCopy, { ackedNumber }: Partition): void {
    if (ackedNumber < (this.#takenIn.get(mailOf(copy))?.number ?? 0)) this.#transition(S.RESTING, REST_MS);
    else this.#over(copy);
  }

  #over(copy: GivenUpCopy): void {
    const { log, onAdopted } = this.#ports;
    const missing = this.#takenIn.get(mailOf(copy))?.missing.size ?? 0;
    if (missing > 0) {
      const text =
        'messages are damaged in a copy that was given up: they are lost unless another copy of them is back';
      log.error('recovery', text, { partition: this.#name, store: copy.storeId, messages: missing });
      this.#gone();
      return;
    }
    this.#current = undefined;
    // What had the same mail is not read.
    this.#waiting = this.#waiting.filter((each) => mailOf(each) !== mailOf(copy));
    this.#transition(S.WAITING, 0);
    log.info(
      'recovery', 'the mail of a copy that was given up is back',
      { partition: this.#name, store: copy.storeId },
    );
    onAdopted(copy);
  }

  #gone(): void {
    const copy = this.#current;
    this.#current = undefined;
    this.#transition(S.WAITING, 0);
    if (copy !== undefined) this.#ports.onGone(copy);
  }
}

function isSame(a: RecordedMember, b: RecordedMember): boolean {
  return a.storeId === b.storeId && a.bootId === b.bootId;
}
