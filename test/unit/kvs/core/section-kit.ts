/**
 * Builds sections of CHANGES and applies them to a store's queue without sockets, so that each rule of
 * docs/PROTOCOL.md "Applying a section" can be tested by itself. No tests here.
 */

import { crc32 } from '../../../../src/platform/node/checksum.js';
import { MessagePacker } from '../../../../src/platform/node/packer.js';
import type { GatewayAccount } from '../../../../src/kvs/core/accounts.js';
import type { MirroredQueue } from '../../../../src/kvs/core/mirrored-queue.js';
import { SectionMeasure } from '../../../../src/kvs/core/section-measure.js';
import { STORE_DEFAULTS, Store } from '../../../../src/kvs/core/store.js';
import {
  CHANGE_ROW_BYTES, FLAG_BODY_ABSENT, FLAG_SHARED, FLAG_SKIPPED, KIND_ANNOTATE, KIND_DELETE, KIND_REPLACE, KIND_SET_MEMBERS,
  KIND_STORE, KIND_WITHDRAW, writeChangeRow,
} from '../../../../src/protocol/change-rows.js';
import { Digest } from '../../../../src/protocol/digest.js';
import {
  ENTRY_ROW_BYTES, entryBodyInFrame, entryFlags, entryHeadBytes, entryId, entryNoteBytes, entryPosition, writeEntryRow,
} from '../../../../src/protocol/entry-rows.js';

export const packer = new MessagePacker();
const NONE = new Uint8Array(0);
/** What entries keep for their notes, where a test says nothing else. */
export const ROOM = 64;

/** One change as a test writes it. */
export interface TestChange {
  readonly kind: number;
  readonly ref: number;
  readonly body?: Uint8Array;
  readonly head?: Uint8Array;
  readonly flags?: number;
  readonly count?: number;
  readonly room?: number;
}

export interface Section {
  first: number;
  a: number;
  b: number;
  readonly rows: Uint8Array;
  readonly payload: Uint8Array;
}

export function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function storing(id: number, body: string, head = 'envelope', flags = 0, room = ROOM): TestChange {
  return { kind: KIND_STORE, ref: id, body: bytes(body), head: bytes(head), flags, room };
}
export function deleting(position: number, count = 1): TestChange {
  return { kind: KIND_DELETE, ref: position, count };
}
export function replacing(position: number, body: string, head: string, flags = 0): TestChange {
  return { kind: KIND_REPLACE, ref: position, body: bytes(body), head: bytes(head), flags, room: ROOM };
}
export function annotating(position: number, note: string): TestChange {
  return { kind: KIND_ANNOTATE, ref: position, head: bytes(note) };
}
export function withdrawing(position: number): TestChange {
  return { kind: KIND_WITHDRAW, ref: position };
}
export function settingMembers(epoch: number, members: readonly string[]): TestChange {
  return { kind: KIND_SET_MEMBERS, ref: epoch, head: packer.pack(members) };
}

/** The section that takes a queue from (number, a, b) on. */
export function section(number: number, a: number, b: number, changes: readonly TestChange[]): Section {
  const rows = new Uint8Array(changes.length * CHANGE_ROW_BYTES);
  const view = new DataView(rows.buffer);
  const digest = new Digest();
  const parts: Uint8Array[] = [];
  digest.reset(a, b);
  changes.forEach((change, i) => {
    const body = change.body ?? NONE;
    const head = change.head ?? NONE;
    const flags = change.flags ?? 0;
    const crc = change.kind === KIND_DELETE || change.kind === KIND_WITHDRAW ? 0 : crc32(head, crc32(body, 0));
    const headBytes = change.kind === KIND_DELETE ? change.count ?? 1 : head.length;
    writeChangeRow(view, i * CHANGE_ROW_BYTES, change.kind, flags, body.length, headBytes, crc, change.ref, change.room);
    digest.add(change.kind | ((change.room ?? 0) << 16), body.length, headBytes, crc, change.ref);
    if ((flags & FLAG_SKIPPED) !== 0) return;
    if ((flags & FLAG_BODY_ABSENT) === 0) parts.push(body);
    parts.push(head);
  });
  return { first: number + 1, a: digest.a, b: digest.b, rows, payload: concat(parts) };
}

export function nextSection(queue: MirroredQueue, changes: readonly TestChange[]): Section {
  return section(queue.number, queue.digestA, queue.digestB, changes);
}

export function concat(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

export function newStore(options: { memoryLimitBytes?: number; gateways?: readonly string[]; segmentBytes?: number; leaseMs?: number; ringBytes?: number } = {}): Store {
  return new Store(
    {
      ...STORE_DEFAULTS, storeId: 'store-a', startMs: 0, indexSeed: 7,
      gateways: (options.gateways ?? ['g1', 'g2', 'g3']).map((id) => ({ id, secret: bytes(`secret of ${id}`) })),
      memoryLimitBytes: options.memoryLimitBytes ?? 256 * 1024 * 1024,
      segmentBytes: options.segmentBytes ?? 64 * 1024,
      leaseMs: options.leaseMs ?? 10_000,
      ringBytes: options.ringBytes ?? STORE_DEFAULTS.ringBytes,
    },
    { crc32, packer },
  );
}

export function accountOf(store: Store, id = 'g1'): GatewayAccount {
  const account = store.account(id);
  if (account === undefined) throw new Error(`no account ${id}`);
  return account;
}

export function openQueue(store: Store, serial = 1, id = 'g1', epoch = 1, claimants: readonly string[] = []): MirroredQueue {
  const account = accountOf(store, id);
  const opened = store.open(account, {
    attributes: {
      ownerId: id, birth: 1, serial, name: `queue-${String(serial)}`, queueClass: 'mail', ordering: 0, lengthMax: 0, bytesMax: 0, claimants,
    },
    epoch, members: epoch === 0 ? [] : ['store-a', 'store-b'],
  });
  if (opened.queue === undefined) throw new Error(`OPEN refused: ${String(opened.reason)}`);
  return opened.queue;
}

/** Measures and applies as a connection does; answers the refusal's reason or 0. */
export function applyTo(store: Store, queue: MirroredQueue, wanted: Section, id = 'g1'): number {
  const measure = new SectionMeasure({ shared: store.shared });
  const view = new DataView(wanted.rows.buffer, wanted.rows.byteOffset, wanted.rows.length);
  const rowCount = wanted.rows.length / CHANGE_ROW_BYTES;
  const rule = measure.measure(view, 0, rowCount, queue.number + 1 - wanted.first, queue.ownerAccount);
  if (rule !== '') throw new Error(rule);
  if (measure.payloadBytes !== wanted.payload.length) throw new Error('payload does not fit its rows');
  return store.applySection(
    accountOf(store, id), queue, wanted.first, wanted.a, wanted.b, view, 0, rowCount, wanted.payload, 0, measure.costBytes,
  );
}

export function change(store: Store, queue: MirroredQueue, ...changes: TestChange[]): number {
  return applyTo(store, queue, nextSection(queue, changes), queue.holder);
}

/** An entry as a pull shows it. */
export interface TestEntry {
  readonly position: number;
  readonly id: number;
  readonly flags: number;
  readonly body: string;
  readonly head: string;
  readonly note: string;
}

export function pullAll(store: Store, queue: MirroredQueue, entriesMax = 1_000_000, withBodies = true): TestEntry[] {
  const entries: TestEntry[] = [];
  let after = 0;
  for (;;) {
    const block = store.blocks.pull(queue, after, Number.MAX_SAFE_INTEGER, entriesMax, 1 << 24, withBodies);
    const view = new DataView(block.rows.buffer);
    let at = 0;
    const text = (length: number): string => {
      at += length;
      return new TextDecoder().decode(block.bodies.subarray(at - length, at));
    };
    for (let row = 0; row < block.rows.length; row += ENTRY_ROW_BYTES) {
      entries.push({
        position: entryPosition(view, row), id: entryId(view, row), flags: entryFlags(view, row),
        body: text(entryBodyInFrame(view, row)), head: text(entryHeadBytes(view, row)), note: text(entryNoteBytes(view, row)),
      });
    }
    after = block.nextPosition;
    if (block.end) return entries;
  }
}

export function positions(store: Store, queue: MirroredQueue): number[] {
  return pullAll(store, queue).map((entry) => entry.position);
}

/** REFILL rows for the entries. */
export function refillRows(entries: readonly TestEntry[]): { rows: Uint8Array; payload: Uint8Array } {
  const rows = new Uint8Array(entries.length * ENTRY_ROW_BYTES);
  const view = new DataView(rows.buffer);
  const parts: Uint8Array[] = [];
  entries.forEach((entry, i) => {
    const body = bytes(entry.body);
    const head = bytes(entry.head);
    const note = bytes(entry.note);
    const crc = crc32(head, crc32(body, 0));
    writeEntryRow(
      view, i * ENTRY_ROW_BYTES, entry.flags & FLAG_SHARED, body.length, head.length, crc,
      note.length, note.length === 0 ? 0 : crc32(note, 0), entry.id, entry.position, ROOM,
    );
    parts.push(body, head, note);
  });
  return { rows, payload: concat(parts) };
}

export function refill(store: Store, queue: MirroredQueue, entries: readonly TestEntry[]): number {
  const { rows, payload } = refillRows(entries);
  return store.refill(accountOf(store, queue.attributes.ownerId), queue, new DataView(rows.buffer), 0, entries.length, payload);
}

/** What must not change when a section is refused. */
export function fingerprint(store: Store, queue: MirroredQueue): string {
  return JSON.stringify([
    queue.number, queue.digestA, queue.digestB, queue.count, queue.bytes, queue.epoch, queue.role, queue.members,
    pullAll(store, queue), store.entries.count, store.shared.count, store.segments.liveBytes, store.segments.records,
  ]);
}
