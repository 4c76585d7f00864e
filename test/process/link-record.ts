/**
 * What crossed the links between gateways and stores, decoded and put together by partition: who wrote to it,
 * which entries it had, what its stores acknowledged. Fed by the proxies of link-judge.ts, which judges by
 * it. It knows the protocol and nothing of the gateway's code. Seen here, and named as problems:
 *
 *   changes by a handle come without a gap and without a repeat, from one FENCE to the next
 *   entries are refilled behind FENCE (FILL) only, by ascending position, up to REFILL_END, which says how
 *   many they were
 *   a copy never accepts a term below the highest one, nor the same number with another nonce
 *   two records of one epoch, as told, are one and the same
 */
import { emptyMarks, readMarks } from '../../src/load/marks.js';
import { MessagePacker } from '../../src/platform/node/packer.js';
import * as rows from '../../src/protocol/change-rows.js';
import * as entryRows from '../../src/protocol/entry-rows.js';
import { InvalidMessage } from '../../src/protocol/invalid.js';
import * as types from '../../src/protocol/message-types.js';
import * as acks from '../../src/protocol/messages/ack.js';
import { decodeChallenge } from '../../src/protocol/messages/challenge.js';
import * as changes from '../../src/protocol/messages/changes.js';
import { decodeFence, FENCE_FILL, FENCE_FOUND, FENCE_JOIN } from '../../src/protocol/messages/fence.js';
import { decodeFenced } from '../../src/protocol/messages/fenced.js';
import { decodeHello } from '../../src/protocol/messages/hello.js';
import { decodeRefillEnd } from '../../src/protocol/messages/refill-end.js';
import { decodeRefill } from '../../src/protocol/messages/refill.js';
import { decodeTell } from '../../src/protocol/messages/tell.js';
import type { PartitionRecord, Term } from '../../src/protocol/partition-record.js';
import type { FrameRecord } from './fault-proxy.js';
import { lowerBound, reignUnder, wasAcked } from './link-story.js';
import type { Ack, Change, Entry, Partition, ToldRecord } from './link-story.js';

/** Frames of two connections that reach the proxies so near to one another may have left in another order. */
const SIDE_BY_SIDE_MS = 100;

/** A partition as a connection has it under a handle, from one FENCE to the next. */
interface Bound {
  readonly name: string;
  readonly term: Term;
  partition: Partition;
  readonly reign: number;
  /** The number of the first change by it; 0: none yet. */
  first: number;
  /** The number that the next change must have; 0: any. */
  next: number;
  /** Undefined: nothing is refilled. */
  fill: { readonly base: number; position: number; count: number; endSequence: number } | undefined;
}

interface Connection {
  gateway: string;
  /** Gateway and incarnation. */
  writer: string;
  /** The store in its boot. */
  copy: string;
  /** By what was sent … */
  readonly handles: Map<number, Bound>;
  /** … and by what was answered. */
  readonly answered: Map<number, Bound>;
}

/** All histories of one partition. */
interface Histories {
  readonly records: ToldRecord[];
  readonly told: Map<number, string>;
  /** By epoch and members: when the register had it, or the gateway knew so. */
  readonly known: Map<string, number>;
  readonly byTerm: Map<string, Partition>;
  last: Partition;
}

export class LinkRecord {
  /** What was wrong with frames. */
  readonly problems: string[] = [];
  /** By store and boot: when it was met first. */
  readonly metMs = new Map<string, number>();
  readonly #packer = new MessagePacker();
  readonly #marks = emptyMarks();
  readonly #connections = new Map<string, Connection>();
  readonly #partitions = new Map<string, Histories>();
  /** The highest term accepted, by copy and partition. */
  readonly #terms = new Map<string, { readonly term: Term; readonly atMs: number }>();
  /** By run and id of the message. */
  readonly #entries = new Map<string, Entry[]>();

  /** All entries that a message ever got, by its marks. */
  entriesOf(run: string, id: number): readonly Entry[] {
    return this.#entries.get(`${run} ${id}`) ?? [];
  }

  onFrame(store: string, link: string, frame: FrameRecord, bodies: Uint8Array): void {
    const key = `${store} ${link} ${frame.connection}`;
    let connection = this.#connections.get(key);
    if (connection === undefined) {
      connection = { gateway: '', writer: '', copy: store, handles: new Map(), answered: new Map() };
      this.#connections.set(key, connection);
    }
    if (frame.type === types.HELLO) this.#onHello(connection, frame);
    else if (frame.type === types.CHALLENGE) this.#onChallenge(store, connection, frame);
    else if (frame.type === types.FENCE) this.#onFence(connection, frame);
    else if (frame.type === types.FENCED) this.#onFenced(connection, frame);
    else if (frame.type === types.TELL) this.#onTell(frame);
    else if (frame.type === types.CHANGES) this.#onChanges(connection, frame, bodies);
    else if (frame.type === types.REFILL) this.#onRefill(connection, frame, bodies);
    else if (frame.type === types.REFILL_END) this.#onRefillEnd(connection, frame);
    else if (frame.type === types.ACK) this.#onAck(connection, frame);
  }

  /** Whether this boot's store had been met in a later one by then: what it held is gone. */
  isGone(copy: string, byMs: number): boolean {
    const atMs = this.metMs.get(copy) ?? -Infinity;
    const store = copy.slice(0, copy.indexOf(' ') + 1);
    for (const [other, ms] of this.metMs) if (other.startsWith(store) && ms > atMs && ms <= byMs) return true;
    return false;
  }

  /** When new boots were met within this time. */
  metWithin(fromMs: number, untilMs: number): readonly number[] {
    return [...this.metMs.values()].filter((ms) => ms > fromMs && ms <= untilMs);
  }

  #onHello(connection: Connection, frame: FrameRecord): void {
    const hello = this.#known(decodeHello(this.#packer, frame.control));
    connection.gateway = hello.gatewayId;
    connection.writer = `${hello.gatewayId} ${hello.incarnation}`;
  }

  #onChallenge(store: string, connection: Connection, frame: FrameRecord): void {
    const { bootId } = this.#known(decodeChallenge(this.#packer, frame.control));
    connection.copy = copyName(store, Buffer.from(bootId).toString('hex'));
    if (!this.metMs.has(connection.copy)) this.metMs.set(connection.copy, frame.arrivedMs);
  }

  #onFence(connection: Connection, frame: FrameRecord): void {
    const fence = this.#known(decodeFence(this.#packer, frame.control));
    const { handle, partition: name, term, how, number } = fence;
    const histories = this.#histories(name);
    const key = termName(term);
    let partition = histories.byTerm.get(key);
    if (partition === undefined) {
      const isAnew = how === FENCE_FOUND && histories.last.entries.size > 0;
      partition = isAnew ? emptyPartition(`${name} ${key}`, histories.records) : histories.last;
      histories.byTerm.set(key, partition);
      histories.last = partition;
    }
    const reign = reignUnder(partition, connection.writer, connection.gateway, key, frame.arrivedMs);
    const isFill = how === FENCE_FILL;
    const fill = isFill ? { base: number, position: 0, count: 0, endSequence: Infinity } : undefined;
    const next = how === FENCE_JOIN ? 0 : number + 1;
    connection.handles.set(handle, { name, term, partition, reign, first: 0, next, fill });
  }

  #onFenced(connection: Connection, frame: FrameRecord): void {
    const fenced = this.#known(decodeFenced(this.#packer, frame.control));
    const { handle, term, how, isComplete, number, lastTerm } = fenced;
    const bound = connection.handles.get(handle);
    // Another FENCE has gone out meanwhile: its answer comes.
    if (bound === undefined || termName(bound.term) !== termName(term)) return;
    const isAnswer = (bound.fill === undefined) === (how !== FENCE_FILL);
    if (!isAnswer) return;
    connection.answered.set(handle, bound);
    this.#checkTerm(`${connection.copy} ${bound.name}`, term, frame.arrivedMs);
    if (how !== FENCE_JOIN || !isComplete) return;
    const { first, name, partition, reign } = bound;
    if (first > number + 1) {
      this.#problem(`${name}: ${connection.copy} stood at ${number} when change ${first} was sent to it`);
    }
    // As good as an acknowledgement of what this holder sent before: it tells the number, and what the holder
    // finds in its history it takes as being there (recovery/ownership/partition-set.ts).
    const isOurs = termName(lastTerm) === termName(term);
    if (isOurs) this.#noteAck(connection.copy, partition, { number, reign, frame });
  }

  #checkTerm(key: string, term: Term, atMs: number): void {
    const highest = this.#terms.get(key);
    if (highest === undefined || term.number > highest.term.number) {
      this.#terms.set(key, { term, atMs });
      return;
    }
    if (termName(highest.term) === termName(term) || atMs - highest.atMs < SIDE_BY_SIDE_MS) return;
    this.#problem(`${key}: term ${termName(term)} was accepted after ${termName(highest.term)}`);
  }

  #onTell(frame: FrameRecord): void {
    const { partition: name, record } = this.#known(decodeTell(this.#packer, frame.control));
    const { records, told, known } = this.#histories(name);
    const members = record.members.map(({ storeId, bootId }) => copyName(storeId, bootId));
    const { gatewayId, incarnation } = record.holder;
    const text = `${termName(record.term)} ${gatewayId} ${incarnation} on ${[...members].sort().join(', ')}`;
    const before = told.get(record.epoch);
    const { epoch } = record;
    if (before !== undefined && before !== text) {
      this.#problem(`${name}: epoch ${epoch} is told as ${before} and as ${text}`);
    }
    told.set(epoch, text);
    if ((records.at(-1)?.epoch ?? -1) >= epoch) return;
    const toldMs = frame.arrivedMs;
    records.push({ epoch, members, toldMs, knownMs: known.get(recordName(epoch, members)) ?? toldMs });
  }

  /** It was made by then: a watch of the register says so, or the gateway's log. */
  noteRecord(name: string, { epoch, members: recorded }: Pick<PartitionRecord, 'epoch' | 'members'>, atMs: number): void {
    const members = recorded.map(({ storeId, bootId }) => copyName(storeId, bootId));
    const { known, records } = this.#histories(name);
    const key = recordName(epoch, members);
    known.set(key, Math.min(known.get(key) ?? Infinity, atMs));
    const told = records.find((each) => recordName(each.epoch, each.members) === key);
    if (told !== undefined) told.knownMs = Math.min(told.knownMs, atMs);
  }

  #onAck(connection: Connection, frame: FrameRecord): void {
    const ack = this.#known(acks.decodeAck(this.#packer, frame.control));
    for (let i = 0; i < acks.ackCopyCount(ack); i++) {
      const bound = connection.answered.get(acks.ackHandle(ack, i));
      // While it is filled a copy lacks entries below its number.
      if (bound === undefined || acks.ackSequence(ack) < (bound.fill?.endSequence ?? 0)) continue;
      const number = acks.ackNumber(ack, i);
      this.#noteAck(connection.copy, bound.partition, { number, reign: bound.reign, frame });
    }
  }

  #noteAck(copy: string, partition: Partition, ack: Ack): void {
    const list = partition.acks.get(copy);
    if (list === undefined) partition.acks.set(copy, [ack]);
    else list.push(ack);
  }

  #onChanges(connection: Connection, frame: FrameRecord, bodies: Uint8Array): void {
    const sections = this.#known(changes.decodeChanges(this.#packer, frame.control));
    let at = 0;
    for (let section = 0; section < changes.sectionCount(sections); section++) {
      const handle = changes.sectionHandle(sections, section);
      const bound = connection.handles.get(handle);
      const view = rows.viewOf(changes.sectionRows(sections, section));
      let number = changes.sectionFirstNumber(sections, section);
      if (bound === undefined) {
        this.#problem(`CHANGES of ${connection.writer} by handle ${handle}, which no FENCE bound`);
      } else this.#checkNext(connection, bound, number, view.byteLength / rows.CHANGE_ROW_BYTES);
      for (let row = 0; row < view.byteLength; row += rows.CHANGE_ROW_BYTES, number++) {
        const bodyAt = at;
        const headAt = bodyAt + rows.changeBodyInFrame(view, row);
        at = headAt + rows.changeHeadInFrame(view, row);
        if (bound === undefined) continue;
        const { partition, reign } = bound;
        const [kind, ref] = [rows.changeKind(view, row), rows.changeRef(view, row)];
        const change: Change = { reign, kind, ref, size: rows.changeHeadBytes(view, row), deleted: [] };
        this.#onChange(partition, number, change, frame, bodies.subarray(bodyAt, headAt));
      }
    }
    this.#checkPayload('CHANGES', at, bodies.length);
  }

  #checkNext(connection: Connection, bound: Bound, first: number, count: number): void {
    const { name, next } = bound;
    if (next !== 0 && first !== next) {
      this.#problem(`${name}: change ${first} went to ${connection.copy} where ${next} was due`);
    }
    if (bound.first === 0) bound.first = first;
    bound.next = first + count;
  }

  /**
   * Entries that a copy gets by refill. Mostly a STORE was on the links before; one that came while no store
   * was there crosses them only so.
   */
  #onRefill(connection: Connection, frame: FrameRecord, bodies: Uint8Array): void {
    const refill = this.#known(decodeRefill(this.#packer, frame.control));
    const bound = connection.handles.get(refill.handle);
    const fill = bound?.fill;
    if (bound === undefined || fill === undefined || fill.endSequence !== Infinity) {
      this.#problem(`REFILL of ${connection.writer} by handle ${refill.handle} where nothing is filled`);
      return;
    }
    const { partition, reign } = bound;
    const view = rows.viewOf(refill.rows);
    let at = 0;
    for (let row = 0; row < view.byteLength; row += entryRows.ENTRY_ROW_BYTES) {
      const bodyAt = at;
      const headAt = bodyAt + entryRows.entryBodyInFrame(view, row);
      at = headAt + entryRows.entryHeadBytes(view, row) + entryRows.entryNoteBytes(view, row);
      const position = entryRows.entryPosition(view, row);
      if (position <= fill.position || position > fill.base) {
        const rule = `behind ${fill.position}, up to ${fill.base}`;
        this.#problem(`${bound.name}: position ${position} is refilled ${rule}`);
      }
      fill.position = position;
      fill.count += 1;
      if (partition.entries.has(position)) continue;
      const stored = { reign, ref: entryRows.entryId(view, row) };
      this.#onStore(partition, position, stored, frame, bodies.subarray(bodyAt, headAt));
    }
    this.#checkPayload('REFILL', at, bodies.length);
  }

  #checkPayload(what: string, told: number, bytes: number): void {
    if (told !== bytes) this.#problem(`the payloads of a ${what} frame are ${bytes} bytes, told are ${told}`);
  }

  #onRefillEnd(connection: Connection, frame: FrameRecord): void {
    const { handle, count } = this.#known(decodeRefillEnd(this.#packer, frame.control));
    const fill = connection.handles.get(handle)?.fill;
    if (fill === undefined || fill.endSequence !== Infinity) {
      this.#problem(`REFILL_END of ${connection.writer} by handle ${handle} where nothing is filled`);
    } else {
      if (fill.count !== count) this.#problem(`REFILL_END says ${count}, refilled were ${fill.count}`);
      fill.endSequence = frame.sequence;
    }
  }

  #onChange(
    partition: Partition, number: number, change: Change, frame: FrameRecord, body: Uint8Array,
  ): void {
    const before = partition.changes.get(number);
    // What the other store gets, a repeat on another path, or late words of one that has lost the partition.
    if (before !== undefined && before.reign >= change.reign) return;
    const { kind, ref, size } = change;
    const isAgain = before?.kind === kind && before.ref === ref && before.size === size;
    partition.changes.set(number, change);
    if (kind === rows.KIND_STORE) this.#onStore(partition, number, change, frame, body);
    else if (kind === rows.KIND_WITHDRAW) this.#onWithdraw(partition, ref);
    else if (kind === rows.KIND_DELETE) {
      this.#onDelete(partition, number, change, frame, isAgain ? before.deleted : undefined);
    }
  }

  #onStore(
    partition: Partition, number: number, change: Pick<Change, 'reign' | 'ref'>, frame: FrameRecord,
    body: Uint8Array,
  ): void {
    const { reign, ref: messageId } = change;
    // The refill of the other store was quicker than the STORE, or a tail brings it again.
    if (partition.entries.get(number)?.messageId === messageId) return;
    const at = lowerBound(partition.positions, number);
    const later = partition.positions.splice(at);
    // What an older process had numbered from here on died with it, before a store had it.
    const kept = later.filter((position) => partition.entries.get(position)?.reign === reign);
    for (const position of later) {
      const gone = partition.entries.get(position);
      if (gone !== undefined && gone.reign !== reign) gone.vanished = true;
    }
    const entry: Entry = {
      messageId, partition, position: number, reign, storedMs: frame.arrivedMs, deletes: [], withdrawn: false,
      vanished: false,
    };
    partition.entries.set(number, entry);
    partition.positions.push(number, ...kept);
    const content = Buffer.from(body.buffer, body.byteOffset, body.length);
    if (!readMarks(content, this.#marks)) return;
    const key = `${this.#marks.run} ${this.#marks.id}`;
    const list = this.#entries.get(key);
    if (list === undefined) this.#entries.set(key, [entry]);
    else list.push(entry);
  }

  /** `again`: what the same change of an earlier reign took away. */
  #onDelete(
    partition: Partition, number: number, change: Change, frame: FrameRecord,
    again: readonly Entry[] | undefined,
  ): void {
    const { reign } = change;
    const note = (entry: Entry): void => {
      entry.deletes.push({ number, reign, sentMs: frame.arrivedMs });
      change.deleted.push(entry);
    };
    if (again !== undefined) {
      for (const entry of again) note(entry);
      return;
    }
    let at = lowerBound(partition.positions, change.ref);
    for (let left = change.size; left > 0 && at < partition.positions.length; at++) {
      const entry = partition.entries.get(partition.positions[at] ?? 0);
      if (entry === undefined || entry.withdrawn) continue;
      // Deleted before by this process: it is not there to be counted.
      if (entry.deletes.some((one) => one.reign === reign)) continue;
      if (entry.deletes.some((one) => wasAcked(partition, one.number, one.reign, one.sentMs))) continue;
      note(entry);
      left--;
    }
  }

  #onWithdraw(partition: Partition, position: number): void {
    const entry = partition.entries.get(position);
    if (entry !== undefined) entry.withdrawn = true;
  }

  #histories(name: string): Histories {
    let histories = this.#partitions.get(name);
    if (histories === undefined) {
      const records: ToldRecord[] = [];
      histories = { records, told: new Map(), known: new Map(), byTerm: new Map(), last: emptyPartition(name, records) };
      this.#partitions.set(name, histories);
    }
    return histories;
  }

  #problem(text: string): void {
    this.problems.push(text);
  }

  #known<Message>(message: Message | InvalidMessage): Message {
    if (message instanceof InvalidMessage) throw new Error(`a frame on a link is invalid: ${message.rule}`);
    return message;
  }
}

function emptyPartition(key: string, records: ToldRecord[]): Partition {
  return { key, reigns: [], entries: new Map(), positions: [], changes: new Map(), records, acks: new Map() };
}

function recordName(epoch: number, members: readonly string[]): string {
  return `${epoch} ${[...members].sort().join(', ')}`;
}

function copyName(store: string, bootId: string): string {
  return `${store} ${bootId}`;
}

function termName({ number, nonce }: Term): string {
  return `${number}.${nonce}`;
}
