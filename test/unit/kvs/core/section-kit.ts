/**
 * Builds sections of CHANGES and applies them to a copy of a partition without sockets, so that each rule of
 * docs/PROTOCOL.md "Applying a section" can be tested by itself. No tests here.
 */

import { crc32 } from '../../../../src/platform/node/checksum.js';
import { MessagePacker } from '../../../../src/platform/node/packer.js';
import type { GatewayAccount } from '../../../../src/kvs/core/accounts.js';
import { Attachment } from '../../../../src/kvs/core/attachment.js';
import type { MirroredPartition } from '../../../../src/kvs/core/mirrored-partition.js';
import { SectionMeasure } from '../../../../src/kvs/core/section-measure.js';
import { STORE_DEFAULTS, Store } from '../../../../src/kvs/core/store.js';
import {
  CHANGE_ROW_BYTES, FLAG_BODY_ABSENT, FLAG_SHARED, FLAG_SKIPPED, KIND_ANNOTATE, KIND_DELETE,
  KIND_STORE, KIND_WITHDRAW, writeChangeRow,
} from '../../../../src/protocol/change-rows.js';
import type { PartitionRecord, Term } from '../../../../src/protocol/partition-record.js';
import { FENCE_FILL, FENCE_FOUND, FENCE_JOIN } from '../../../../src/protocol/messages/fence.js';
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
export function annotating(position: number, note: string): TestChange {
  return { kind: KIND_ANNOTATE, ref: position, head: bytes(note) };
}
export function withdrawing(position: number): TestChange {
  return { kind: KIND_WITHDRAW, ref: position };
}
/** The section that takes a copy from (number, a, b) on. */
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

export function nextSection(copy: MirroredPartition, changes: readonly TestChange[]): Section {
  return section(copy.number, copy.digestA, copy.digestB, changes);
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

/** A new one, or one that goes on from a file. */
export interface TestBoot {
  readonly bootId: string;
  readonly longestLeaseMs: number;
}

export const BOOT_ID = '0123456789abcdef'.repeat(2);
const NEW_BOOT: TestBoot = { bootId: BOOT_ID, longestLeaseMs: 0 };

export function newStore(options: { memoryLimitBytes?: number; gateways?: readonly string[]; segmentBytes?: number; leaseMs?: number; ringBytes?: number; copiesMax?: number; startMs?: number } = {}, boot: TestBoot = NEW_BOOT): Store {
  return new Store(
    {
      ...STORE_DEFAULTS, storeId: 'store-a', startMs: options.startMs ?? 0, indexSeed: 7, bootId: boot.bootId, inheritedLeaseMs: boot.longestLeaseMs,
      ...(options.copiesMax === undefined ? {} : { copiesMax: options.copiesMax }),
      gateways: (options.gateways ?? ['g1', 'g2', 'g3']).map((id) => ({ id, secret: bytes(`secret of ${id}`) })),
      memoryLimitBytes: options.memoryLimitBytes ?? 256 * 1024 * 1024,
      segmentBytes: options.segmentBytes ?? 64 * 1024,
      leaseMs: options.leaseMs ?? 10_000,
      ringBytes: options.ringBytes ?? STORE_DEFAULTS.ringBytes,
    },
    { crc32 },
  );
}

export function accountOf(store: Store, id = 'g1'): GatewayAccount {
  const account = store.account(id);
  if (account === undefined) throw new Error(`no account ${id}`);
  return account;
}

export function termOf(number: number, nonce = number): Term {
  return { number, nonce };
}

export const ORIGIN = termOf(1);

/** The store in this boot as the only member, unless said otherwise. */
export function recordOf(epoch: number, more: Partial<PartitionRecord> = {}): PartitionRecord {
  return {
    epoch, term: ORIGIN, holder: { gatewayId: 'g1', incarnation: 1 }, members: [{ storeId: 'store-a', bootId: BOOT_ID }], gaveUp: [], left: [], line: [], ...more,
  };
}

export interface TestFence {
  readonly id?: string;
  readonly provenDead?: number;
  readonly number?: number;
  readonly digestA?: number;
  readonly digestB?: number;
  readonly nowMs?: number;
}

/** The copy, or the reason for which the term was declined. */
export function fenceAs(store: Store, how: number, partition: string, term: Term, options: TestFence = {}): MirroredPartition | number {
  const { id = 'g1', provenDead = 0, number = 0, digestA = 0, digestB = 0, nowMs = 0 } = options;
  const { reason, copy } = store.fence(accountOf(store, id), { handle: 1, partition, term, how, provenDead, number, digestA, digestB }, nowMs);
  return copy ?? reason;
}

function accepted(outcome: MirroredPartition | number): MirroredPartition {
  if (typeof outcome === 'number') throw new Error(`declined: ${String(outcome)}`);
  return outcome;
}

/** A new copy, as its gateway founds it. */
export function found(store: Store, number = 1, id = 'g1', term = ORIGIN): MirroredPartition {
  return accepted(fenceAs(store, FENCE_FOUND, `${id}/${String(number)}`, term, { id }));
}

export function join(store: Store, partition: string, term: Term, options: TestFence = {}): MirroredPartition {
  return accepted(fenceAs(store, FENCE_JOIN, partition, term, options));
}

export function beginFill(store: Store, partition: string, term: Term, options: TestFence = {}): MirroredPartition {
  return accepted(fenceAs(store, FENCE_FILL, partition, term, options));
}

/** Bound by the term that holds the copy now. */
export function attached(copy: MirroredPartition, term = copy.fence.term): Attachment {
  return new Attachment(1, copy, term);
}

/** Measures and applies as a connection does; answers the refusal's reason or 0. */
export function applyTo(store: Store, copy: MirroredPartition, wanted: Section, id = 'g1'): number {
  const measure = new SectionMeasure({ shared: store.shared });
  const view = new DataView(wanted.rows.buffer, wanted.rows.byteOffset, wanted.rows.length);
  const rowCount = wanted.rows.length / CHANGE_ROW_BYTES;
  const rule = measure.measure(view, 0, rowCount, copy.number + 1 - wanted.first, copy.ownerAccount);
  if (rule !== '') throw new Error(rule);
  if (measure.payloadBytes !== wanted.payload.length) throw new Error('payload does not fit its rows');
  return store.applySection(
    accountOf(store, id), attached(copy), wanted.first, wanted.a, wanted.b, view, 0, rowCount, wanted.payload, 0, measure.costBytes,
  );
}

export function change(store: Store, copy: MirroredPartition, ...changes: TestChange[]): number {
  return applyTo(store, copy, nextSection(copy, changes), copy.fence.holder?.gatewayId);
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

export function pullAll(store: Store, copy: MirroredPartition, entriesMax = 1_000_000): TestEntry[] {
  const entries: TestEntry[] = [];
  let after = 0;
  for (;;) {
    const block = store.blocks.pull(copy, after, Number.MAX_SAFE_INTEGER, entriesMax, 1 << 24);
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

export function positions(store: Store, copy: MirroredPartition): number[] {
  return pullAll(store, copy).map((entry) => entry.position);
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

export function refill(store: Store, copy: MirroredPartition, entries: readonly TestEntry[]): number {
  const { rows, payload } = refillRows(entries);
  return store.refill(accountOf(store, copy.fence.holder?.gatewayId), copy, new DataView(rows.buffer), 0, entries.length, payload);
}

/** What must not change when a section is refused. */
export function fingerprint(store: Store, copy: MirroredPartition): string {
  return JSON.stringify([
    copy.number, copy.digestA, copy.digestB, copy.count, copy.bytes, copy.lastTerm, copy.isComplete,
    pullAll(store, copy), store.entries.count, store.shared.count, store.segments.liveBytes, store.segments.records,
  ]);
}
