/**
 * One described sample and one generator of valid values for each message, for the tests beside this file.
 * `fields` is the comment line of the golden file.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Packer } from '../../../src/platform/ports.js';
import { crc32 } from '../../../src/platform/node/checksum.js';
import { CHANGE_ROW_BYTES, viewOf, writeChangeRow } from '../../../src/protocol/change-rows.js';
import { ENTRY_ROW_BYTES, writeEntryRow } from '../../../src/protocol/entry-rows.js';
import { LINE_MAX } from '../../../src/protocol/fields.js';
import * as types from '../../../src/protocol/message-types.js';
import * as ack from '../../../src/protocol/messages/ack.js';
import * as ask from '../../../src/protocol/messages/ask.js';
import * as asked from '../../../src/protocol/messages/asked.js';
import * as beat from '../../../src/protocol/messages/beat.js';
import * as block from '../../../src/protocol/messages/block.js';
import * as challenge from '../../../src/protocol/messages/challenge.js';
import * as changes from '../../../src/protocol/messages/changes.js';
import * as close from '../../../src/protocol/messages/close.js';
import * as declined from '../../../src/protocol/messages/declined.js';
import * as fence from '../../../src/protocol/messages/fence.js';
import * as fenced from '../../../src/protocol/messages/fenced.js';
import * as heartbeat from '../../../src/protocol/messages/heartbeat.js';
import * as hello from '../../../src/protocol/messages/hello.js';
import * as proof from '../../../src/protocol/messages/proof.js';
import * as fetch from '../../../src/protocol/messages/fetch.js';
import * as fetched from '../../../src/protocol/messages/fetched.js';
import * as pull from '../../../src/protocol/messages/pull.js';
import * as refillEnd from '../../../src/protocol/messages/refill-end.js';
import * as refill from '../../../src/protocol/messages/refill.js';
import * as refusal from '../../../src/protocol/messages/refusal.js';
import * as release from '../../../src/protocol/messages/release.js';
import * as tail from '../../../src/protocol/messages/tail.js';
import * as tailed from '../../../src/protocol/messages/tailed.js';
import * as list from '../../../src/protocol/messages/list.js';
import * as listed from '../../../src/protocol/messages/listed.js';
import * as tell from '../../../src/protocol/messages/tell.js';
import * as texts from '../../../src/protocol/messages/texts.js';
import * as told from '../../../src/protocol/messages/told.js';
import * as welcome from '../../../src/protocol/messages/welcome.js';
import type { InvalidMessage } from '../../../src/protocol/invalid.js';
import type { GivenUpCopy, PartitionRecord, Term } from '../../../src/protocol/partition-record.js';
import { TEXT_BYTES_MAX, TextRows } from '../../../src/protocol/text-rows.js';

/** A message with its codec. The type of the value is hidden: the tests only hand it on. */
export interface Sample {
  /** File name of the golden bytes. */
  readonly name: string;
  readonly type: number;
  readonly sequence: number;
  readonly fields: string;
  readonly value: unknown;
  readonly bodies: Uint8Array;
  readonly arbitrary: fc.Arbitrary<unknown>;
  encode(packer: Packer, value: unknown): Uint8Array;
  decode(packer: Packer, control: Uint8Array): unknown;
}

interface Given<T> {
  readonly name: string;
  readonly type: number;
  readonly sequence?: number;
  readonly fields: string;
  readonly value: T;
  readonly bodies?: Uint8Array;
  readonly arbitrary: fc.Arbitrary<T>;
  encode(packer: Packer, value: T): Uint8Array;
  decode(packer: Packer, control: Uint8Array): T | InvalidMessage;
}

function sample<T>(given: Given<T>): Sample {
  return { sequence: 0, bodies: new Uint8Array(0), ...given, encode: (packer, value) => given.encode(packer, value as T) };
}

/** count bytes: first, first + 1, … */
export function run(first: number, count: number): Uint8Array {
  return Uint8Array.from({ length: count }, (_, i) => (first + i) & 0xff);
}

function ascii(text: string): Uint8Array {
  return Uint8Array.from(text, (c) => c.charCodeAt(0));
}

function join(...parts: Uint8Array[]): Uint8Array {
  return Uint8Array.from(parts.flatMap((part) => [...part]));
}

type ChangeRow = readonly [kind: number, flags: number, bodyBytes: number, headBytes: number, crc: number, ref: number, room?: number];
type EntryRow = readonly [flags: number, bodyBytes: number, headBytes: number, crc: number, noteBytes: number, noteCrc: number, id: number, position: number, room?: number];

export function changeRows(...rows: ChangeRow[]): Uint8Array {
  const bytes = new Uint8Array(rows.length * CHANGE_ROW_BYTES);
  rows.forEach((row, i) => writeChangeRow(viewOf(bytes), i * CHANGE_ROW_BYTES, ...row));
  return bytes;
}

export function entryRows(...rows: EntryRow[]): Uint8Array {
  const bytes = new Uint8Array(rows.length * ENTRY_ROW_BYTES);
  rows.forEach(([flags, bodyBytes, headBytes, crc, noteBytes, noteCrc, id, position, room = 0], i) => {
    writeEntryRow(viewOf(bytes), i * ENTRY_ROW_BYTES, flags, bodyBytes, headBytes, crc, noteBytes, noteCrc, id, position, room);
  });
  return bytes;
}

export function textRowsOf(texts: readonly (readonly [position: number, text: Uint8Array])[]): Uint8Array {
  const rows = new TextRows();
  for (const [position, text] of texts) rows.add(position, text);
  return rows.take().slice();
}

const whole = fc.maxSafeNat();
const u32 = fc.nat(0xffff_ffff);
const handle = fc.integer({ min: 1, max: 0x7fff_ffff });
const bool = fc.boolean();
const id = fc.oneof(
  fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((c) => String.fromCharCode(c)), minLength: 1, maxLength: 40 }),
  fc.constantFrom('queue.example', 'büro.example', '例え.テスト', 'a'.repeat(255), '📮', 'é'.repeat(127)),
);
const text = fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((c) => String.fromCharCode(c)), maxLength: 80 });
const term: fc.Arbitrary<Term> = fc.record({ number: whole, nonce: whole });
const takenTerm: fc.Arbitrary<Term> = fc.record({ number: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), nonce: whole });
const partition = fc.constantFrom('gw-1/0', 'gw-1.2/15', 'g:1/4095', `${'a'.repeat(80)}/7`);
const holder = fc.record({ gatewayId: id, incarnation: whole });
const members = (most: number): fc.Arbitrary<PartitionRecord['members']> => fc.uniqueArray(
  fc.record({ storeId: id, bootId: id }), { maxLength: most, selector: ({ storeId, bootId }) => `${storeId} ${bootId}` },
);
const marks = fc.constantFrom<Pick<GivenUpCopy, 'isGone' | 'isAlone'>>({}, { isGone: true }, { isAlone: true }, { isGone: true, isAlone: true });
const given: fc.Arbitrary<PartitionRecord['gaveUp']> = fc.tuple(members(4), whole, marks)
  .map(([copies, epoch, marked]) => copies.map((copy) => ({ ...copy, epoch, ...marked })));
const line: fc.Arbitrary<PartitionRecord['line']> = fc.array(fc.record({ term, epoch: whole }), { maxLength: LINE_MAX });
const record: fc.Arbitrary<PartitionRecord> = fc.record({ epoch: whole, term, holder, members: members(4), gaveUp: given, left: members(4), line })
  .map((one) => ({ ...one, term: { ...one.term, number: Math.min(one.term.number, one.epoch) } }));
const toldRecord = fc.option(record, { nil: undefined });
const bytes = (length: number): fc.Arbitrary<Uint8Array> => fc.uint8Array({ minLength: length, maxLength: length });
const rows = (size: number, least: number): fc.Arbitrary<Uint8Array> =>
  fc.integer({ min: least, max: 5 }).chain((count) => bytes(count * size));

const positions = fc.uniqueArray(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), { minLength: 1, maxLength: 5 })
  .map((some) => fetch.packPositions(some.sort((a, b) => a - b)));

const textRows = fc.array(fc.tuple(fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), fc.uint8Array({ minLength: 1, maxLength: TEXT_BYTES_MAX })), { maxLength: 4 }).map(textRowsOf);

const BODY = ascii('Subject: one\r\n\r\nhello\r\n');
const HEAD = ascii('envelope');
const NOTE = ascii('tried twice');
const ENTRY = crc32(HEAD, crc32(BODY, 0));

const HANDSHAKE: Sample[] = [
  sample<hello.Hello>({
    name: 'hello', type: types.HELLO, sequence: 1, encode: hello.encodeHello, decode: hello.decodeHello,
    fields: 'versions 3 to 3, gatewayId gw-1, incarnation 1750000000123, incarnationNonce 10..17, path A, generation 3, nonce 20..2f, flags HELLO_ACTIVE',
    value: {
      versionMin: 3, versionMax: 3, gatewayId: 'gw-1', incarnation: 1_750_000_000_123, incarnationNonce: run(0x10, 8),
      path: 'A', generation: 3, nonce: run(0x20, 16), flags: hello.HELLO_ACTIVE,
    },
    arbitrary: fc.record({
      versionMin: fc.integer({ min: 1, max: 9 }), versionMax: fc.integer({ min: 9, max: 255 }), gatewayId: id, incarnation: whole,
      incarnationNonce: bytes(8), path: id, generation: whole, nonce: bytes(16), flags: fc.nat(1),
    }),
  }),
  sample<challenge.Challenge>({
    name: 'challenge', type: types.CHALLENGE, sequence: 1, encode: challenge.encodeChallenge, decode: challenge.decodeChallenge,
    fields: 'version 3, storeId store-a, bootId 30..3f, nonce 40..4f, proof 50..6f',
    value: { version: 3, storeId: 'store-a', bootId: run(0x30, 16), nonce: run(0x40, 16), proof: run(0x50, 32) },
    arbitrary: fc.record({ version: fc.integer({ min: 1, max: 255 }), storeId: id, bootId: bytes(16), nonce: bytes(16), proof: bytes(32) }),
  }),
  sample<proof.Proof>({
    name: 'proof', type: types.PROOF, sequence: 2, encode: proof.encodeProof, decode: proof.decodeProof,
    fields: 'proof 70..8f', value: { proof: run(0x70, 32) }, arbitrary: fc.record({ proof: bytes(32) }),
  }),
  sample<welcome.Welcome>({
    name: 'welcome', type: types.WELCOME, sequence: 2, encode: welcome.encodeWelcome, decode: welcome.decodeWelcome,
    fields: 'credit 8589934592, highestIncarnation 1750000000123, leaseMs 10000, frameBytesMax 67108864, windowBytes 8388608, active true',
    value: {
      credit: 8_589_934_592, highestIncarnation: 1_750_000_000_123, leaseMs: 10_000,
      frameBytesMax: 67_108_864, windowBytes: 8_388_608, active: true,
    },
    arbitrary: fc.record({
      credit: whole, highestIncarnation: whole, leaseMs: u32, frameBytesMax: fc.integer({ min: 65_536, max: 67_108_864 }),
      windowBytes: fc.integer({ min: 1, max: 0xffff_ffff }), active: bool,
    }),
  }),
  sample<close.Close>({
    name: 'close', type: types.CLOSE, encode: close.encodeClose, decode: close.decodeClose,
    fields: 'reason FENCED, text "a younger gw-1 is here", detail 1750000000999',
    value: { reason: 4, text: 'a younger gw-1 is here', detail: 1_750_000_000_999 },
    arbitrary: fc.record({ reason: fc.integer({ min: 1, max: 255 }), text, detail: whole }),
  }),
  sample<heartbeat.Heartbeat>({
    name: 'heartbeat', type: types.HEARTBEAT, sequence: 7, encode: heartbeat.encodeHeartbeat, decode: heartbeat.decodeHeartbeat,
    fields: 'token 123456789, wallMs 1750000000789, fencesProcessed 2',
    value: { token: 123_456_789, wallMs: 1_750_000_000_789, fencesProcessed: 2 },
    arbitrary: fc.record({ token: whole, wallMs: whole, fencesProcessed: whole }),
  }),
  sample<beat.Beat>({
    name: 'beat', type: types.BEAT, sequence: 7, encode: beat.encodeBeat, decode: beat.decodeBeat,
    fields: 'token 123456789, credit 4294967296, leaseMs 10000, fenceCount 4; the third: gw-1/3, term 7 nonce 99; the fourth: gw-2/0, term 4294967296 nonce 1',
    value: {
      token: 123_456_789, credit: 4_294_967_296, leaseMs: 10_000, fenceCount: 4,
      fences: [
        { count: 3, partition: 'gw-1/3', term: { number: 7, nonce: 99 } }, { count: 4, partition: 'gw-2/0', term: { number: 4_294_967_296, nonce: 1 } },
      ],
    },
    arbitrary: fc.record({
      token: whole, credit: whole, leaseMs: u32, fenceCount: whole,
      fences: fc.array(fc.record({ count: whole, partition, term }), { maxLength: 4 }),
    }),
  }),
];

const CHANGES: Sample[] = [
  sample<changes.Changes>({
    name: 'changes', type: types.CHANGES, sequence: 4_294_967_297, encode: changes.encodeChanges, decode: changes.decodeChanges,
    fields: 'handle 5 from 41, digest 1 2: STORE SHARED id 1099511627777 with room 30, DELETE 2 at 3, ANNOTATE at 4; handle 6 from 4294967296, digest 3 4: STORE BODY_ABSENT SHARED same id, WITHDRAW at 8, STORE SKIPPED id 7',
    value: [
      5, 41, 1, 2,
      changeRows(
        [1, 2, BODY.length, HEAD.length, ENTRY, 1_099_511_627_777, 30],
        [2, 0, 0, 2, 0, 3],
        [3, 0, 0, NOTE.length, crc32(NOTE, 0), 4],
      ),
      6, 4_294_967_296, 3, 4,
      changeRows(
        [1, 3, BODY.length, HEAD.length, ENTRY, 1_099_511_627_777],
        [4, 0, 0, 0, 0, 8],
        [1, 4, 1000, 100, 0xdeadbeef, 7],
      ),
    ],
    bodies: join(BODY, HEAD, NOTE, HEAD),
    arbitrary: fc
      .array(fc.tuple(handle, fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }), u32, u32, rows(24, 1)), { minLength: 1, maxLength: 4 })
      .map((sections) => sections.flat()),
  }),
  sample<ack.Ack>({
    name: 'ack', type: types.ACK, sequence: 4_294_967_297, encode: ack.encodeAck, decode: ack.decodeAck,
    fields: 'sequence 4294967297, credit 8589934592, handle 5 at 44, handle 6 at 4294967299',
    value: [4_294_967_297, 8_589_934_592, 5, 44, 6, 4_294_967_299],
    arbitrary: fc.tuple(whole, whole, fc.array(fc.tuple(handle, whole), { maxLength: 20 })).map(([s, c, queues]) => [s, c, ...queues.flat()]),
  }),
  sample<texts.Texts>({
    name: 'texts', type: types.TEXTS, sequence: 4_294_967_298, encode: texts.encodeTexts, decode: texts.decodeTexts,
    fields: 'handle 5: "450 busy" of the entry at 3, a byte 0 of that at 4294967296; handle 6: "x" of that at 8',
    value: [
      { handle: 5, rows: textRowsOf([[3, ascii('450 busy')], [4_294_967_296, Uint8Array.of(0)]]) },
      { handle: 6, rows: textRowsOf([[8, ascii('x')]]) },
    ],
    arbitrary: fc.array(fc.record({ handle, rows: textRows }), { minLength: 1, maxLength: 4 }),
  }),
  sample<refusal.Refusal>({
    name: 'refusal', type: types.REFUSAL, sequence: 12, encode: refusal.encodeRefusal, decode: refusal.decodeRefusal,
    fields: 'sequence 12, handle 5, reason GAP, number 39, digestA 4294967295, digestB 2147483648, text "stands at 39"',
    value: { sequence: 12, handle: 5, reason: 1, number: 39, digestA: 0xffff_ffff, digestB: 0x8000_0000, text: 'stands at 39' },
    arbitrary: fc.record({
      sequence: whole, handle: fc.nat(0x7fff_ffff), reason: fc.integer({ min: 1, max: 255 }), number: whole, digestA: u32, digestB: u32, text,
    }),
  }),
];

const TERM: Term = { number: 7, nonce: 4_294_967_299 };
const BOOT_A = '30313233343536373839616263646566';
const BOOT_B = '77'.repeat(16);
const RECORD: PartitionRecord = {
  epoch: 9, term: TERM, holder: { gatewayId: 'gw-2', incarnation: 12 },
  members: [{ storeId: 'store-a', bootId: BOOT_A }, { storeId: 'store-b', bootId: BOOT_B }],
  gaveUp: [{ storeId: 'store-c', bootId: BOOT_B, epoch: 6 }], left: [{ storeId: 'store-d', bootId: BOOT_A }], line: [{ term: { number: 4, nonce: 3 }, epoch: 6 }],
};
const RECORD_TEXT = 'epoch 9, term 7 nonce 4294967299, holder gw-2 12, members store-a store-b, gaveUp store-c of epoch 6, left store-d, line term 4 nonce 3 up to epoch 6';

const OWNERSHIP: Sample[] = [
  sample<fence.Fence>({
    name: 'fence', type: types.FENCE, sequence: 8, encode: fence.encodeFence, decode: fence.decodeFence,
    fields: 'handle 5, partition gw-1/3, term 7 nonce 4294967299, how FILL, provenDead 11, number 44, digest 1 2',
    value: { handle: 5, partition: 'gw-1/3', term: TERM, how: fence.FENCE_FILL, provenDead: 11, number: 44, digestA: 1, digestB: 2 },
    arbitrary: fc.record({
      handle, partition, term: takenTerm, how: fc.integer({ min: fence.FENCE_JOIN, max: fence.FENCE_FILL }), provenDead: whole, number: whole, digestA: u32, digestB: u32,
    }),
  }),
  sample<fenced.Fenced>({
    name: 'fenced', type: types.FENCED, sequence: 8, encode: fenced.encodeFenced, decode: fenced.decodeFenced,
    fields: 'handle 5, term 7 nonce 4294967299, how JOIN, isComplete true, number 44, digest 1 2, lastTerm 5 nonce 6, olderLeaseMs 9500, count 17, bytes 170000, holderWallMs 1750000000789',
    value: {
      handle: 5, term: TERM, how: fence.FENCE_JOIN, isComplete: true, number: 44, digestA: 1, digestB: 2, lastTerm: { number: 5, nonce: 6 },
      olderLeaseMs: 9_500, count: 17, bytes: 170_000, holderWallMs: 1_750_000_000_789,
    },
    arbitrary: fc.record({
      handle, term, how: fc.integer({ min: fence.FENCE_JOIN, max: fence.FENCE_FILL }), isComplete: bool, number: whole, digestA: u32, digestB: u32,
      lastTerm: term, olderLeaseMs: u32, count: whole, bytes: whole, holderWallMs: whole,
    }),
  }),
  sample<declined.Declined>({
    name: 'declined', type: types.DECLINED, sequence: 8, encode: declined.encodeDeclined, decode: declined.decodeDeclined,
    fields: `handle 5, reason STALE, asked 7 nonce 4294967299, known 8 nonce 1; told ${RECORD_TEXT}`,
    value: { handle: 5, reason: 3, asked: TERM, known: { number: 8, nonce: 1 }, told: RECORD },
    arbitrary: fc.record({ handle, reason: fc.integer({ min: 1, max: 5 }), asked: term, known: term, told: toldRecord }),
  }),
  sample<release.Release>({
    name: 'release', type: types.RELEASE, sequence: 6, encode: release.encodeRelease, decode: release.decodeRelease,
    fields: 'handle 5', value: { handle: 5 }, arbitrary: fc.record({ handle }),
  }),
  sample<ask.Ask>({
    name: 'ask', type: types.ASK, sequence: 3, encode: ask.encodeAsk, decode: ask.decodeAsk,
    fields: 'partition gw-1/3, holder gw-1 11', value: { partition: 'gw-1/3', holder: { gatewayId: 'gw-1', incarnation: 11 } },
    arbitrary: fc.record({ partition, holder }),
  }),
  sample<asked.Asked>({
    name: 'asked', type: types.ASKED, sequence: 3, encode: asked.encodeAsked, decode: asked.decodeAsked,
    fields: 'partition gw-1/3, hasCopy true, leaseLeftMs 0, termNumber 7, told nothing',
    value: { partition: 'gw-1/3', hasCopy: true, leaseLeftMs: 0, termNumber: 7, told: undefined },
    arbitrary: fc.record({ partition, hasCopy: bool, leaseLeftMs: u32, termNumber: fc.nat({ max: Number.MAX_SAFE_INTEGER }), told: toldRecord }),
  }),
  sample<tell.Tell>({
    name: 'tell', type: types.TELL, sequence: 9, encode: tell.encodeTell, decode: tell.decodeTell,
    fields: `partition gw-1/3, isOut true; ${RECORD_TEXT}`, value: { partition: 'gw-1/3', record: RECORD, isOut: true },
    arbitrary: fc.record({ partition, record, isOut: bool }),
  }),
  sample<told.Told>({
    name: 'told', type: types.TOLD, sequence: 9, encode: told.encodeTold, decode: told.decodeTold,
    fields: 'partition gw-1/3, epoch 9, isKept true', value: { partition: 'gw-1/3', epoch: 9, isKept: true },
    arbitrary: fc.record({ partition, epoch: whole, isKept: bool }),
  }),
  sample<list.List>({
    name: 'list', type: types.LIST, sequence: 10, encode: list.encodeList, decode: list.decodeList,
    fields: 'after gw-1/3', value: { after: 'gw-1/3' },
    arbitrary: fc.record({ after: fc.oneof(fc.constant(''), partition) }),
  }),
  sample<listed.Listed>({
    name: 'listed', type: types.LISTED, sequence: 10, encode: listed.encodeListed, decode: listed.decodeListed,
    fields: 'after gw-1/3, partitions gw-1/4 gw-2/0, isLast true',
    value: { after: 'gw-1/3', partitions: ['gw-1/4', 'gw-2/0'], isLast: true },
    arbitrary: fc.record({
      after: fc.oneof(fc.constant(''), partition),
      partitions: fc.uniqueArray(partition, { maxLength: 20 }).map((names) => names.sort()), isLast: bool,
    }),
  }),
];

const ENTRIES = entryRows(
  [2, BODY.length, HEAD.length, ENTRY, 0, 0, 1_099_511_627_777, 41, 30],
  [3, BODY.length, HEAD.length, ENTRY, NOTE.length, crc32(NOTE, 0), 1_099_511_627_777, 4_294_967_296, 0x1234],
);
/** Of the second. */
const TEXT_ROWS = textRowsOf([[4_294_967_296, ascii('550 5.1.1 unknown')]]);
const ENTRY_BODIES = join(BODY, HEAD, HEAD, NOTE);

const COPIES: Sample[] = [
  sample<pull.Pull>({
    name: 'pull', type: types.PULL, sequence: 10, encode: pull.encodePull, decode: pull.decodePull,
    fields: 'handle 5, afterPosition 40, untilPosition 4294967296, entriesMax 1000, bytesMax 1048576, withBodies true',
    value: { handle: 5, afterPosition: 40, untilPosition: 4_294_967_296, entriesMax: 1000, bytesMax: 1_048_576, withBodies: true },
    arbitrary: fc.record({ handle, afterPosition: whole, untilPosition: whole, entriesMax: fc.integer({ min: 1, max: 0xffff_ffff }), bytesMax: u32, withBodies: bool }),
  }),
  sample<block.Block>({
    name: 'block', type: types.BLOCK, sequence: 10, encode: block.encodeBlock, decode: block.decodeBlock, bodies: ENTRY_BODIES,
    fields: 'handle 5, afterPosition 40, nextPosition 4294967296, end true; SHARED id 1099511627777 at 41; BODY_ABSENT SHARED same id at 4294967296 with a note and a text',
    value: { handle: 5, afterPosition: 40, nextPosition: 4_294_967_296, end: true, rows: ENTRIES, texts: TEXT_ROWS },
    arbitrary: fc.record({ handle, afterPosition: whole, nextPosition: whole, end: bool, rows: rows(40, 0), texts: textRows }),
  }),
  sample<fetch.Fetch>({
    name: 'fetch', type: types.FETCH, sequence: 11, encode: fetch.encodeFetch, decode: fetch.decodeFetch,
    fields: 'handle 5, ask 6, positions 41 4294967296',
    value: { handle: 5, ask: 6, positions: fetch.packPositions([41, 4_294_967_296]) },
    arbitrary: fc.record({ handle, ask: whole, positions }),
  }),
  sample<fetched.Fetched>({
    name: 'fetched', type: types.FETCHED, sequence: 11, encode: fetched.encodeFetched, decode: fetched.decodeFetched, bodies: join(BODY, HEAD),
    fields: 'handle 5, ask 6, untilPosition 4294967296; SHARED id 1099511627777 at 41',
    value: { handle: 5, ask: 6, untilPosition: 4_294_967_296, rows: ENTRIES.subarray(0, 40) },
    arbitrary: fc.record({ handle, ask: whole, untilPosition: whole, rows: rows(40, 0) }),
  }),
  sample<tail.Tail>({
    name: 'tail', type: types.TAIL, sequence: 12, encode: tail.encodeTail, decode: tail.decodeTail,
    fields: 'handle 5, number 40, digest 1 2', value: { handle: 5, number: 40, digestA: 1, digestB: 2 },
    arbitrary: fc.record({ handle, number: whole, digestA: u32, digestB: u32 }),
  }),
  sample<tailed.Tailed>({
    name: 'tailed', type: types.TAILED, sequence: 12, encode: tailed.encodeTailed, decode: tailed.decodeTailed, bodies: NOTE,
    fields: 'handle 5, found true, firstNumber 41, digest 3 4: ANNOTATE at 4',
    value: { handle: 5, found: true, firstNumber: 41, digestA: 3, digestB: 4, rows: changeRows([3, 0, 0, NOTE.length, crc32(NOTE, 0), 4]) },
    arbitrary: fc.record({ handle, found: bool, firstNumber: whole, digestA: u32, digestB: u32, rows: rows(24, 0) }),
  }),
  sample<refill.Refill>({
    name: 'refill', type: types.REFILL, sequence: 14, encode: refill.encodeRefill, decode: refill.decodeRefill, bodies: ENTRY_BODIES,
    fields: 'handle 5; SHARED id 1099511627777 at 41; BODY_ABSENT SHARED same id at 4294967296 with a note',
    value: { handle: 5, rows: ENTRIES }, arbitrary: fc.record({ handle, rows: rows(40, 0) }),
  }),
  sample<refillEnd.RefillEnd>({
    name: 'refill-end', type: types.REFILL_END, sequence: 15, encode: refillEnd.encodeRefillEnd, decode: refillEnd.decodeRefillEnd,
    fields: 'handle 5, count 2', value: { handle: 5, count: 2 }, arbitrary: fc.record({ handle, count: whole }),
  }),
];

export const SAMPLES: readonly Sample[] = [...HANDSHAKE, ...CHANGES, ...OWNERSHIP, ...COPIES];

export function sampleOf(name: string): Sample {
  const sample = SAMPLES.find((one) => one.name === name);
  assert.ok(sample, `there is a sample ${name}`);
  return sample;
}
