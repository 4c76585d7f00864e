/**
 * Judges a gateway from outside, by what crossed its links to the stores: one recording proxy
 * (fault-proxy.ts) on every path of every store, all frames decoded. It knows the protocol and nothing of
 * the gateway's code.
 *
 *   gateway ─► proxy store-a/A, store-a/B, store-b/A, store-b/B ─► stores
 *
 *   early replies   a client's 2xx must be later than the moment at which the proxy handed the gateway the
 *                   ACK of the message's STORE from every member of a set of mirrors that was in force
 *                   between that STORE and the reply (G1)
 *   duplicates      a copy at the sink beyond one for each stored entry must be of an entry that was in
 *                   flight when the gateway was killed: a copy had just reached the sink, and no store
 *                   ever acknowledged a DELETE of it to that process (G4)
 *
 * A queue is known by (birth, serial), a message by X-Twinpost-Id in its body, an entry by the store's
 * message id. Both stores get the same numbered changes, so each is taken once for an incarnation. Numbers
 * that a killed gateway used and no store kept are used again by the next one: then the later entry counts.
 */
import assert from 'node:assert/strict';

import { emptyMarks, readMarks } from '../../src/load/marks.js';
import { monotonicMicros, type SendLogFile, type SendRecord } from '../../src/load/send-log.js';
import { MessagePacker } from '../../src/platform/node/packer.js';
import * as rows from '../../src/protocol/change-rows.js';
import { InvalidMessage } from '../../src/protocol/invalid.js';
import * as types from '../../src/protocol/message-types.js';
import * as acks from '../../src/protocol/messages/ack.js';
import * as changes from '../../src/protocol/messages/changes.js';
import { decodeClaim } from '../../src/protocol/messages/claim.js';
import { decodeClaimed } from '../../src/protocol/messages/claimed.js';
import { decodeHello } from '../../src/protocol/messages/hello.js';
import { decodeOpen } from '../../src/protocol/messages/open.js';
import { CLAIM_GRANTED } from '../../src/protocol/reasons.js';
import { FaultProxy, proxyNowMs, type FrameRecord } from './fault-proxy.js';
import { ackedMs, firstAck, isFirst, lowerBound, setsInForce, type Entry, type Queue } from './link-story.js';

/** A copy that was on its way into the sink when the gateway died is counted as before the kill. */
const IN_KERNEL_MS = 1000;
/** A copy that came so long before the kill had all the time to be deleted at the stores. */
const SETTLED_MS = 2000;
const EXAMPLES_MAX = 5;

/** A message at the sink: which, and when, in microseconds of the machine's monotonic clock. */
export interface Copy {
  readonly id: number;
  readonly us: number;
}

export interface DuplicateReport {
  /** Copies beyond one for each stored entry. */
  readonly repeated: number;
  /** Those that no kill explains, and the first few by name. */
  readonly unexplained: number;
  readonly examples: readonly string[];
}

interface Connection {
  incarnation: number;
  readonly handles: Map<number, Queue>;
}

export class LinkJudge {
  readonly problems: string[] = [];
  readonly #packer = new MessagePacker();
  readonly #marks = emptyMarks();
  readonly #proxies = new Map<string, FaultProxy>();
  readonly #connections = new Map<string, Connection>();
  readonly #queues = new Map<string, Queue>();
  readonly #entries = new Map<number, Entry[]>();
  readonly #kills: { readonly atMs: number; readonly incarnation: number }[] = [];
  #incarnation = 0;

  /** Starts a proxy for both paths of each store; give mapStorePort to startCluster. */
  static async start(stores: number): Promise<LinkJudge> {
    const judge = new LinkJudge();
    for (let store = 0; store < stores; store++) {
      for (const path of ['A', 'B']) {
        const name = `store-${String.fromCharCode(97 + store)}`;
        const onBodies = (frame: FrameRecord, bodies: Uint8Array): void => { judge.#onFrame(name, path, frame, bodies); };
        judge.#proxies.set(`${store}${path}`, await FaultProxy.start({ targetHost: '127.0.0.1', targetPort: 0, recordsMax: Infinity, onBodies }));
      }
    }
    return judge;
  }

  readonly mapStorePort = (port: number, store: number, path: string): number => {
    const proxy = this.#proxies.get(`${store}${path}`);
    assert.ok(proxy !== undefined, `no proxy for path ${path} of store ${store}`);
    proxy.retarget(port);
    return proxy.port;
  };

  /** The gateway is killed now. */
  noteGatewayKill(): void {
    this.#kills.push({ atMs: proxyNowMs(), incarnation: this.#incarnation });
  }

  get storedEntries(): number {
    let count = 0;
    for (const entries of this.#entries.values()) count += entries.length;
    return count;
  }

  async close(): Promise<void> {
    for (const proxy of this.#proxies.values()) {
      this.problems.push(...proxy.malformed);
      await proxy.close();
    }
  }

  /** Each message of the log that was answered 2xx before its mirrors had it, the first few by name. */
  earlyReplies(log: SendLogFile): { readonly judged: number; readonly early: number; readonly examples: readonly string[] } {
    const behindMs = clockDifferenceMs();
    const inForce = new Map<Queue, { readonly fromMs: number; readonly members: readonly string[] }[]>();
    const examples: string[] = [];
    let judged = 0;
    let early = 0;
    for (const record of log.records) {
      if (record.code < 200 || record.code >= 300) continue;
      judged++;
      if (this.#committedBefore(record, behindMs, inForce)) continue;
      early++;
      if (examples.length < EXAMPLES_MAX) examples.push(this.#describe(record, behindMs));
    }
    return { judged, early, examples };
  }

  /** `copies`: what the sink took, in order of arrival. */
  duplicates(copies: readonly Copy[]): DuplicateReport {
    const behindMs = clockDifferenceMs();
    const byId = new Map<number, number[]>();
    for (const copy of copies) {
      const times = byId.get(copy.id);
      if (times === undefined) byId.set(copy.id, [copy.us / 1000 + behindMs]);
      else times.push(copy.us / 1000 + behindMs);
    }
    let repeated = 0;
    let unexplained = 0;
    const examples: string[] = [];
    for (const [id, times] of byId) {
      const entries = (this.#entries.get(id) ?? []).filter((entry) => !entry.vanished && !entry.withdrawn);
      const extra = times.length - entries.length;
      if (extra <= 0) continue;
      repeated += extra;
      const explained = this.#inFlightKills(entries, times);
      if (extra <= explained) continue;
      unexplained += extra - explained;
      if (examples.length < EXAMPLES_MAX) examples.push(`message ${id}: ${times.length} copies of ${entries.length} entries, ${explained} in flight at a kill; at ${times.join(', ')} ${this.#story(entries)}`);
    }
    return { repeated, unexplained, examples };
  }

  // What crosses the links.

  #onFrame(store: string, path: string, frame: FrameRecord, bodies: Uint8Array): void {
    const key = `${store} ${path} ${frame.connection}`;
    let connection = this.#connections.get(key);
    if (connection === undefined) {
      connection = { incarnation: 0, handles: new Map() };
      this.#connections.set(key, connection);
    }
    if (frame.type === types.HELLO) {
      connection.incarnation = this.#known(decodeHello(this.#packer, frame.control)).incarnation;
      this.#incarnation = Math.max(this.#incarnation, connection.incarnation);
    } else if (frame.type === types.OPEN) this.#onOpen(connection, frame);
    else if (frame.type === types.CLAIM) {
      const claim = this.#known(decodeClaim(this.#packer, frame.control));
      connection.handles.set(claim.handle, this.#queue(claim.birth, claim.serial, ''));
    } else if (frame.type === types.CLAIMED) this.#onClaimed(connection, frame);
    else if (frame.type === types.CHANGES) this.#onChanges(connection, frame, bodies);
    else if (frame.type === types.ACK) this.#onAck(store, connection, frame);
  }

  #onOpen(connection: Connection, frame: FrameRecord): void {
    const open = this.#known(decodeOpen(this.#packer, frame.control));
    const queue = this.#queue(open.birth, open.serial, open.name);
    connection.handles.set(open.handle, queue);
    if (open.epoch === 0 || queue.sets.length > 0) return;
    queue.epoch = open.epoch;
    queue.sets.push({ members: open.members, number: 0, incarnation: connection.incarnation, frame });
  }

  #onClaimed(connection: Connection, frame: FrameRecord): void {
    const claimed = this.#known(decodeClaimed(this.#packer, frame.control));
    const queue = connection.handles.get(claimed.handle);
    if (claimed.result !== CLAIM_GRANTED || queue === undefined || claimed.epoch < queue.epoch) return;
    queue.epoch = claimed.epoch;
    queue.sets.push({ members: claimed.members, number: 0, incarnation: connection.incarnation, frame });
  }

  #onAck(store: string, connection: Connection, frame: FrameRecord): void {
    const ack = this.#known(acks.decodeAck(this.#packer, frame.control));
    for (let i = 0; i < acks.ackQueueCount(ack); i++) {
      const queue = connection.handles.get(acks.ackHandle(ack, i));
      if (queue === undefined) continue;
      const list = queue.acks.get(store) ?? [];
      list.push({ number: acks.ackNumber(ack, i), incarnation: connection.incarnation, frame });
      queue.acks.set(store, list);
    }
  }

  #onChanges(connection: Connection, frame: FrameRecord, bodies: Uint8Array): void {
    const sections = this.#known(changes.decodeChanges(this.#packer, frame.control));
    let at = 0;
    for (let section = 0; section < changes.sectionCount(sections); section++) {
      const queue = connection.handles.get(changes.sectionHandle(sections, section));
      const view = rows.viewOf(changes.sectionRows(sections, section));
      let number = changes.sectionFirstNumber(sections, section);
      for (let row = 0; row < view.byteLength; row += rows.CHANGE_ROW_BYTES, number++) {
        const bodyAt = at;
        const headAt = bodyAt + rows.changeBodyInFrame(view, row);
        at = headAt + rows.changeHeadInFrame(view, row);
        if (queue === undefined || !isFirst(queue, connection.incarnation, number)) continue;
        const ref = rows.changeRef(view, row);
        const kind = rows.changeKind(view, row);
        if (kind === rows.KIND_STORE) this.#onStore(queue, number, ref, connection, frame, bodies.subarray(bodyAt, headAt));
        else if (kind === rows.KIND_DELETE) this.#onDelete(queue, number, ref, rows.changeHeadBytes(view, row), connection, frame);
        else if (kind === rows.KIND_WITHDRAW) this.#onWithdraw(queue, ref);
        else if (kind === rows.KIND_SET_MEMBERS) this.#onSet(queue, number, ref, connection, frame, bodies.subarray(headAt, at));
      }
    }
    if (at !== bodies.length) this.problems.push(`the payloads of a CHANGES frame are ${bodies.length} bytes, its rows say ${at}`);
  }

  #onStore(queue: Queue, number: number, messageId: number, connection: Connection, frame: FrameRecord, body: Uint8Array): void {
    const before = queue.entries.get(number);
    if (before?.messageId === messageId) return;
    const at = lowerBound(queue.positions, number);
    const later = queue.positions.splice(at);
    // What an older process had numbered from here on died with it, before a store had it.
    const kept = later.filter((position) => queue.entries.get(position)?.incarnation === connection.incarnation);
    for (const position of later) {
      const gone = queue.entries.get(position);
      if (gone !== undefined && gone.incarnation !== connection.incarnation) gone.vanished = true;
    }
    const entry: Entry = { messageId, queue, position: number, incarnation: connection.incarnation, storedMs: frame.arrivedMs, deletes: [], withdrawn: false, vanished: false };
    queue.entries.set(number, entry);
    queue.positions.push(number, ...kept);
    const content = Buffer.from(body.buffer, body.byteOffset, body.length);
    if (!readMarks(content, this.#marks)) return;
    const list = this.#entries.get(this.#marks.id);
    if (list === undefined) this.#entries.set(this.#marks.id, [entry]);
    else list.push(entry);
  }

  #onDelete(queue: Queue, number: number, position: number, count: number, connection: Connection, frame: FrameRecord): void {
    let at = lowerBound(queue.positions, position);
    for (let left = count; left > 0 && at < queue.positions.length; at++) {
      const entry = queue.entries.get(queue.positions[at] ?? 0);
      if (entry === undefined || entry.withdrawn) continue;
      // Deleted before by this process: it is not there to be counted.
      if (entry.deletes.some((one) => one.incarnation === connection.incarnation)) continue;
      if (entry.deletes.some((one) => this.#wasAcked(queue, one.number, one.incarnation, one.sentMs))) continue;
      entry.deletes.push({ number, incarnation: connection.incarnation, sentMs: frame.arrivedMs });
      left--;
    }
  }

  #onWithdraw(queue: Queue, position: number): void {
    const entry = queue.entries.get(position);
    if (entry !== undefined) entry.withdrawn = true;
  }

  #onSet(queue: Queue, number: number, epoch: number, connection: Connection, frame: FrameRecord, head: Uint8Array): void {
    queue.epoch = Math.max(queue.epoch, epoch);
    queue.sets.push({ members: this.#packer.unpack(head) as string[], number, incarnation: connection.incarnation, frame });
  }

  #queue(birth: number, serial: number, name: string): Queue {
    const key = `${birth} ${serial}`;
    let queue = this.#queues.get(key);
    if (queue === undefined) {
      queue = { name, entries: new Map(), positions: [], seen: new Map(), sets: [], epoch: 0, acks: new Map() };
      this.#queues.set(key, queue);
    }
    return queue;
  }

  #known<Message>(message: Message | InvalidMessage): Message {
    if (message instanceof InvalidMessage) throw new Error(`a frame on a link is invalid: ${message.rule}`);
    return message;
  }

  // What follows from it.

  #committedBefore(record: SendRecord, behindMs: number, inForce: Map<Queue, { fromMs: number; members: readonly string[] }[]>): boolean {
    const dotMs = record.dot / 1000 + behindMs;
    const replyMs = record.reply / 1000 + behindMs;
    for (const entry of this.#entries.get(record.id) ?? []) {
      if (entry.storedMs < dotMs || entry.storedMs > replyMs) continue;
      let sets = inForce.get(entry.queue);
      if (sets === undefined) {
        sets = setsInForce(entry.queue);
        inForce.set(entry.queue, sets);
      }
      for (let i = 0; i < sets.length; i++) {
        const set = sets[i];
        const untilMs = sets[i + 1]?.fromMs ?? Infinity;
        if (set === undefined || set.fromMs > replyMs || untilMs < entry.storedMs) continue;
        if (set.members.every((member) => ackedMs(entry.queue, member, entry.position, entry.incarnation, entry.storedMs) <= replyMs)) return true;
      }
    }
    return false;
  }

  /** How many repeats of these entries the kills explain. */
  #inFlightKills(entries: readonly Entry[], copiesMs: readonly number[]): number {
    let explained = 0;
    for (const kill of this.#kills) {
      const arrived = copiesMs.filter((ms) => ms <= kill.atMs + IN_KERNEL_MS && ms >= kill.atMs - SETTLED_MS).length;
      const inFlight = entries.filter((entry) => entry.storedMs <= kill.atMs && !entry.deletes.some(
        (one) => one.incarnation <= kill.incarnation && this.#wasAcked(entry.queue, one.number, one.incarnation, one.sentMs),
      ));
      explained += Math.min(inFlight.length, arrived);
    }
    return explained;
  }

  #wasAcked(queue: Queue, number: number, incarnation: number, afterMs: number): boolean {
    for (const store of queue.acks.keys()) if (firstAck(queue, store, number, incarnation, afterMs) !== undefined) return true;
    return false;
  }

  #describe(record: SendRecord, behindMs: number): string {
    const replyMs = record.reply / 1000 + behindMs;
    const told = (this.#entries.get(record.id) ?? []).map((entry) => {
      const passed = [...entry.queue.acks.keys()].map((store) => `${store} ${(ackedMs(entry.queue, store, entry.position, entry.incarnation, entry.storedMs) - replyMs).toFixed(1)}`);
      return `stored ${(entry.storedMs - replyMs).toFixed(1)}, acknowledged by ${passed.join(', ')}`;
    });
    return `${record.queue}#${record.serial} (${record.id}); ms from its 2xx: ${told.join('; ')}`;
  }

  #story(entries: readonly Entry[]): string {
    const one = (entry: Entry): string => `stored ${entry.storedMs}, deletes ${JSON.stringify(entry.deletes.map((each) => ({ ...each, acked: this.#wasAcked(entry.queue, each.number, each.incarnation, each.sentMs) })))}`;
    return `${entries.map(one).join('; ')}; kills ${JSON.stringify(this.#kills)}`;
  }
}

/** Milliseconds that the proxies' clock is ahead of the senders' and the sink's. */
function clockDifferenceMs(): number {
  return proxyNowMs() - monotonicMicros() / 1000;
}
