/**
 * What crossed the links between gateways and stores, decoded and put together by queue: who wrote to it,
 * which entries it had, what its stores acknowledged. Fed by the proxies of link-judge.ts, which judges by
 * it. It knows the protocol and nothing of the gateway's code.
 */
import { emptyMarks, readMarks } from '../../src/load/marks.js';
import { MessagePacker } from '../../src/platform/node/packer.js';
import * as rows from '../../src/protocol/change-rows.js';
import * as entryRows from '../../src/protocol/entry-rows.js';
import { InvalidMessage } from '../../src/protocol/invalid.js';
import * as types from '../../src/protocol/message-types.js';
import * as acks from '../../src/protocol/messages/ack.js';
import * as changes from '../../src/protocol/messages/changes.js';
import { decodeClaim } from '../../src/protocol/messages/claim.js';
import { decodeClaimed } from '../../src/protocol/messages/claimed.js';
import { decodeHello } from '../../src/protocol/messages/hello.js';
import { decodeOpen } from '../../src/protocol/messages/open.js';
import { decodeRefill } from '../../src/protocol/messages/refill.js';
import { CLAIM_GRANTED } from '../../src/protocol/reasons.js';
import type { FrameRecord } from './fault-proxy.js';
import { lastReignOf, lowerBound, reignUnder, wasAcked, type Ack, type Change, type Entry, type Queue } from './link-story.js';

/** A queue as a connection has it under a handle. */
interface Attached {
  readonly queue: Queue;
  reign: number;
}

interface Connection {
  gateway: string;
  /** Gateway and incarnation. */
  writer: string;
  incarnation: number;
  readonly handles: Map<number, Attached>;
  /** Claims not answered yet. */
  readonly claims: Map<number, { readonly queue: Queue; readonly token: number }>;
}

export class LinkRecord {
  /** What was wrong with frames. */
  readonly problems: string[] = [];
  readonly #packer = new MessagePacker();
  readonly #marks = emptyMarks();
  readonly #connections = new Map<string, Connection>();
  readonly #queues = new Map<string, Queue>();
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
      connection = { gateway: '', writer: '', incarnation: 0, handles: new Map(), claims: new Map() };
      this.#connections.set(key, connection);
    }
    if (frame.type === types.HELLO) this.#onHello(connection, frame);
    else if (frame.type === types.OPEN) this.#onOpen(connection, frame);
    else if (frame.type === types.CLAIM) this.#onClaim(connection, frame);
    else if (frame.type === types.CLAIMED) this.#onClaimed(store, connection, frame);
    else if (frame.type === types.CHANGES) this.#onChanges(connection, frame, bodies);
    else if (frame.type === types.REFILL) this.#onRefill(connection, frame, bodies);
    else if (frame.type === types.ACK) this.#onAck(store, connection, frame);
  }

  #onHello(connection: Connection, frame: FrameRecord): void {
    const hello = this.#known(decodeHello(this.#packer, frame.control));
    connection.gateway = hello.gatewayId;
    connection.incarnation = hello.incarnation;
    connection.writer = `${hello.gatewayId} ${hello.incarnation}`;
  }

  #onOpen(connection: Connection, frame: FrameRecord): void {
    const open = this.#known(decodeOpen(this.#packer, frame.control));
    const queue = this.#queue(open.ownerId, open.birth, open.serial, open.name);
    const reign = lastReignOf(queue, connection.writer) ?? reignUnder(queue, connection.writer, connection.gateway, connection.incarnation, frame.arrivedMs);
    connection.handles.set(open.handle, { queue, reign });
    if (open.epoch === 0 || queue.sets.length > 0) return;
    queue.epoch = open.epoch;
    queue.sets.push({ members: open.members, number: 0, reign, frame });
  }

  #onClaim(connection: Connection, frame: FrameRecord): void {
    const claim = this.#known(decodeClaim(this.#packer, frame.control));
    const queue = this.#queue(claim.gatewayId, claim.birth, claim.serial, '');
    connection.claims.set(claim.handle, { queue, token: claim.token });
    const reign = lastReignOf(queue, connection.writer);
    // What is sent right behind the claim of a holder belongs to its reign.
    if (reign !== undefined && !connection.handles.has(claim.handle)) connection.handles.set(claim.handle, { queue, reign });
  }

  #onClaimed(store: string, connection: Connection, frame: FrameRecord): void {
    const claimed = this.#known(decodeClaimed(this.#packer, frame.control));
    const claim = connection.claims.get(claimed.handle);
    connection.claims.delete(claimed.handle);
    if (claimed.result !== CLAIM_GRANTED || claim === undefined) return;
    const { queue } = claim;
    const reign = reignUnder(queue, connection.writer, connection.gateway, claim.token, frame.arrivedMs);
    connection.handles.set(claimed.handle, { queue, reign });
    // As good as an acknowledgement of what the holder sent before: it tells number and digest, and a gateway that finds
    // them in its ring takes the mirror as being there (src/gateway/mirror/catch-up.ts, judge() and adopt()). After a
    // mere change of path there is no CLAIM: OPEN attaches the queue, and the ACK of OPEN tells the number.
    this.#noteAck(store, queue, { number: claimed.number, reign, frame });
    if (claimed.epoch < queue.epoch) return;
    queue.epoch = claimed.epoch;
    queue.sets.push({ members: claimed.members, number: 0, reign, frame });
  }

  #onAck(store: string, connection: Connection, frame: FrameRecord): void {
    const ack = this.#known(acks.decodeAck(this.#packer, frame.control));
    for (let i = 0; i < acks.ackQueueCount(ack); i++) {
      const attached = connection.handles.get(acks.ackHandle(ack, i));
      if (attached === undefined) continue;
      this.#noteAck(store, attached.queue, { number: acks.ackNumber(ack, i), reign: attached.reign, frame });
    }
  }

  #noteAck(store: string, queue: Queue, ack: Ack): void {
    const list = queue.acks.get(store);
    if (list === undefined) queue.acks.set(store, [ack]);
    else list.push(ack);
  }

  #onChanges(connection: Connection, frame: FrameRecord, bodies: Uint8Array): void {
    const sections = this.#known(changes.decodeChanges(this.#packer, frame.control));
    let at = 0;
    for (let section = 0; section < changes.sectionCount(sections); section++) {
      const attached = connection.handles.get(changes.sectionHandle(sections, section));
      const view = rows.viewOf(changes.sectionRows(sections, section));
      let number = changes.sectionFirstNumber(sections, section);
      for (let row = 0; row < view.byteLength; row += rows.CHANGE_ROW_BYTES, number++) {
        const bodyAt = at;
        const headAt = bodyAt + rows.changeBodyInFrame(view, row);
        at = headAt + rows.changeHeadInFrame(view, row);
        if (attached === undefined) continue;
        const change: Change = { reign: attached.reign, kind: rows.changeKind(view, row), ref: rows.changeRef(view, row), size: rows.changeHeadBytes(view, row), deleted: [] };
        this.#onChange(attached.queue, number, change, frame, bodies.subarray(bodyAt, headAt), bodies.subarray(headAt, at));
      }
    }
    if (at !== bodies.length) this.problems.push(`the payloads of a CHANGES frame are ${bodies.length} bytes, its rows say ${at}`);
  }

  /**
   * Entries that a store gets by refill. Mostly a STORE was on the links before; one that came while no store was
   * there crosses them only so, and counts when the set of mirrors that the refill was for is acknowledged.
   */
  #onRefill(connection: Connection, frame: FrameRecord, bodies: Uint8Array): void {
    const refill = this.#known(decodeRefill(this.#packer, frame.control));
    const attached = connection.handles.get(refill.handle);
    if (attached === undefined) return;
    const { queue, reign } = attached;
    const view = rows.viewOf(refill.rows);
    let at = 0;
    for (let row = 0; row < view.byteLength; row += entryRows.ENTRY_ROW_BYTES) {
      const bodyAt = at;
      const headAt = bodyAt + entryRows.entryBodyInFrame(view, row);
      at = headAt + entryRows.entryHeadBytes(view, row) + entryRows.entryNoteBytes(view, row);
      const position = entryRows.entryPosition(view, row);
      if (queue.entries.has(position)) continue;
      this.#onStore(queue, position, { reign, ref: entryRows.entryId(view, row) }, frame, bodies.subarray(bodyAt, headAt), Infinity);
      const entry = queue.entries.get(position);
      if (entry !== undefined) queue.refilled.push(entry);
    }
    if (at !== bodies.length) this.problems.push(`the payloads of a REFILL frame are ${bodies.length} bytes, its rows say ${at}`);
  }

  #onChange(queue: Queue, number: number, change: Change, frame: FrameRecord, body: Uint8Array, head: Uint8Array): void {
    const before = queue.changes.get(number);
    // The other mirror's copy, a repeat on another path, or the late words of a process that has lost the queue.
    if (before !== undefined && before.reign >= change.reign) return;
    const isAgain = before !== undefined && before.kind === change.kind && before.ref === change.ref && before.size === change.size;
    queue.changes.set(number, change);
    if (change.kind === rows.KIND_STORE) this.#onStore(queue, number, change, frame, body, number);
    else if (change.kind === rows.KIND_DELETE) this.#onDelete(queue, number, change, frame, isAgain ? before.deleted : undefined);
    else if (change.kind === rows.KIND_WITHDRAW) this.#onWithdraw(queue, change.ref);
    else if (change.kind === rows.KIND_SET_MEMBERS) this.#onSet(queue, number, change, frame, head);
  }

  #onStore(queue: Queue, number: number, change: Pick<Change, 'reign' | 'ref'>, frame: FrameRecord, body: Uint8Array, ackNumber: number): void {
    const { reign, ref: messageId } = change;
    const before = queue.entries.get(number);
    if (before?.messageId === messageId) {
      // The refill of the other store was quicker than the STORE.
      before.ackNumber = Math.min(before.ackNumber, ackNumber);
      return;
    }
    const at = lowerBound(queue.positions, number);
    const later = queue.positions.splice(at);
    // What an older process had numbered from here on died with it, before a store had it.
    const kept = later.filter((position) => queue.entries.get(position)?.reign === reign);
    for (const position of later) {
      const gone = queue.entries.get(position);
      if (gone !== undefined && gone.reign !== reign) gone.vanished = true;
    }
    const entry: Entry = { messageId, queue, position: number, ackNumber, reign, storedMs: frame.arrivedMs, deletes: [], withdrawn: false, vanished: false };
    queue.entries.set(number, entry);
    queue.positions.push(number, ...kept);
    const content = Buffer.from(body.buffer, body.byteOffset, body.length);
    if (!readMarks(content, this.#marks)) return;
    const key = `${this.#marks.run} ${this.#marks.id}`;
    const list = this.#entries.get(key);
    if (list === undefined) this.#entries.set(key, [entry]);
    else list.push(entry);
  }

  /** `again`: what the same change of an earlier reign took away. */
  #onDelete(queue: Queue, number: number, change: Change, frame: FrameRecord, again: readonly Entry[] | undefined): void {
    const { reign } = change;
    const note = (entry: Entry): void => {
      entry.deletes.push({ number, reign, sentMs: frame.arrivedMs });
      change.deleted.push(entry);
    };
    if (again !== undefined) {
      for (const entry of again) note(entry);
      return;
    }
    let at = lowerBound(queue.positions, change.ref);
    for (let left = change.size; left > 0 && at < queue.positions.length; at++) {
      const entry = queue.entries.get(queue.positions[at] ?? 0);
      if (entry === undefined || entry.withdrawn) continue;
      // Deleted before by this process: it is not there to be counted.
      if (entry.deletes.some((one) => one.reign === reign)) continue;
      if (entry.deletes.some((one) => wasAcked(queue, one.number, one.reign, one.sentMs))) continue;
      note(entry);
      left--;
    }
  }

  #onWithdraw(queue: Queue, position: number): void {
    const entry = queue.entries.get(position);
    if (entry !== undefined) entry.withdrawn = true;
  }

  #onSet(queue: Queue, number: number, change: Change, frame: FrameRecord, head: Uint8Array): void {
    queue.epoch = Math.max(queue.epoch, change.ref);
    for (const entry of queue.refilled.splice(0)) entry.ackNumber = Math.min(entry.ackNumber, number);
    queue.sets.push({ members: this.#packer.unpack(head) as string[], number, reign: change.reign, frame });
  }

  #queue(owner: string, birth: number, serial: number, name: string): Queue {
    const key = `${owner} ${birth} ${serial}`;
    let queue = this.#queues.get(key);
    if (queue === undefined) {
      queue = { key, name, reigns: [], entries: new Map(), positions: [], changes: new Map(), sets: [], epoch: 0, acks: new Map(), refilled: [] };
      this.#queues.set(key, queue);
    }
    return queue;
  }

  #known<Message>(message: Message | InvalidMessage): Message {
    if (message instanceof InvalidMessage) throw new Error(`a frame on a link is invalid: ${message.rule}`);
    return message;
  }
}
