/** Blocks of claimed queues: when the next one is asked for, and what it is weighed against. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ClaimMachine } from '../../../src/recovery/claim-machine.js';
import { Pulls } from '../../../src/recovery/pulls.js';
import type { RecoveryStore } from '../../../src/recovery/queue-job.js';
import { QueueJob } from '../../../src/recovery/queue-job.js';
import { StoreViews } from '../../../src/recovery/store-views.js';
import { MessagePacker } from '../../../src/platform/node/packer.js';
import type { EventLog } from '../../../src/platform/ports.js';
import { ENTRY_ROW_BYTES, writeEntryRow } from '../../../src/protocol/entry-rows.js';
import { isInvalid } from '../../../src/protocol/invalid.js';
import { PULL } from '../../../src/protocol/message-types.js';
import { decodePull } from '../../../src/protocol/messages/pull.js';
import { ROLE_MEMBER } from '../../../src/protocol/reasons.js';
import { SetHints } from '../../../src/recovery/set-hints.js';
import { heldQueues } from '../../../src/recovery/waiting-queues.js';

const BLOCK_BYTES = 1000;
const HANDLE = 7;

/** A gateway with a limit, one store, and one queue of which blocks come. */
class Played {
  usedBytes = 0;
  asked = 0;
  nowMs = 0;
  readonly told: string[] = [];
  readonly log: EventLog = { debug: () => undefined, info: () => undefined, warn: (_event, text) => { this.told.push(text); }, error: () => undefined };
  /** Of each block that was asked for. */
  readonly entriesMax: number[] = [];
  readonly limitBytes: number;
  readonly pulls: Pulls;
  readonly job: QueueJob;
  private readonly packer = new MessagePacker();
  private position = 0;

  constructor(limitBytes: number, blockEntries = 10, largestBytes = 0) {
    this.limitBytes = limitBytes;
    const store: RecoveryStore = { storeId: 'store-a', bootId: 'boot', isUp: true, version: 2, leaseMs: 1000, graceMs: 0, flush: () => undefined, request: (type, control) => this.onRequest(type, control) };
    const views = new StoreViews('gw-1', this.packer);
    views.add(store);
    this.pulls = new Pulls({ blockEntries, blockBytes: BLOCK_BYTES, largestBytes }, {
      packer: this.packer, log: this.log, views,
      nowMs: () => this.nowMs, needFlush: () => undefined,
      mayPull: (_isOwn, pulling, inHandBytes) => this.usedBytes + inHandBytes + (pulling + 1) * BLOCK_BYTES <= this.limitBytes,
      onBlock: (_handle, rows, bodies) => {
        this.usedBytes += rows.length + bodies.length;
        return true;
      },
      copiesUpTo: () => [], onWhole: () => undefined,
    });
    const machine = new ClaimMachine(1, { nowMs: () => 0, random: () => 0, ask: () => true, release: () => undefined, bootIdOf: () => 'boot', mayMiss: () => false, doesNotCount: () => '', onHeld: () => undefined, onBackedOff: () => undefined });
    const name = { ownerId: 'gw-1', birth: 1, serial: 1, name: 'q1', queueClass: 'mail' };
    this.job = new QueueJob(name, true, 'key', HANDLE, machine);
    this.job.claims.set('store-a', { ...name, storeId: 'store-a', role: ROLE_MEMBER, epoch: 1, members: ['store-a'], number: 100, digestA: 0, digestB: 0, count: 100, bytes: 100_000, holder: 'gw-1', holderToken: 1 });
    this.job.source = 'store-a';
    this.job.until = 100;
    for (const state of ['claiming', 'tailing', 'claimed'] as const) this.job.transition(state);
    this.pulls.add(this.job);
  }

  /** A block is on its way. */
  isAsked(): boolean {
    return this.job.asked;
  }

  /** The block that was asked for, of one entry. */
  block(bytes: number): void {
    const rows = new Uint8Array(ENTRY_ROW_BYTES);
    writeEntryRow(new DataView(rows.buffer), 0, 0, bytes - ENTRY_ROW_BYTES, 0, 0, 0, 0, 1, this.position + 1, 0);
    const block = { handle: HANDLE, afterPosition: this.position, nextPosition: this.position + 1, end: false, rows, texts: new Uint8Array(0) };
    this.position += 1;
    this.pulls.onBlock('store-a', block, new Uint8Array(bytes - ENTRY_ROW_BYTES), (handle) => (handle === HANDLE ? this.job : undefined));
  }

  private onRequest(type: number, control: Uint8Array): number {
    assert.equal(type, PULL);
    const pull = decodePull(this.packer, control);
    if (!isInvalid(pull)) this.entriesMax.push(pull.entriesMax);
    this.asked += 1;
    return this.asked;
  }
}

test('the next block is asked for while one is taken in, when both fit', () => {
  const played = new Played(10 * BLOCK_BYTES);
  assert.equal(played.asked, 1);
  played.block(BLOCK_BYTES);
  assert.deepEqual([played.asked, played.usedBytes], [2, BLOCK_BYTES]);
});

test('the block in hand counts with its size before the next one is asked for: the limit holds for any sizes', () => {
  for (const bytes of [BLOCK_BYTES, 7 * BLOCK_BYTES, 100]) {
    const played = new Played(10 * BLOCK_BYTES);
    while (played.isAsked()) {
      played.block(bytes);
      assert.ok(!played.isAsked() || played.usedBytes + BLOCK_BYTES <= played.limitBytes, `${String(played.usedBytes)} bytes used, and a block on its way`);
    }
    // Mail is delivered: it goes on.
    const { asked } = played;
    played.usedBytes = 0;
    played.pulls.start();
    assert.deepEqual([played.isAsked(), played.asked], [true, asked + 1]);
  }
});

test('the first block is small, so that a delivery can begin; the next ones grow to what is configured', () => {
  const played = new Played(Infinity, 1000);
  for (let i = 0; i < 6; i++) played.block(100);
  assert.deepEqual(played.entriesMax, [64, 128, 256, 512, 1000, 1000, 1000]);
  assert.deepEqual(new Played(Infinity, 10).entriesMax, [10]);
});

test('a queue that is only partly back says since when', () => {
  const played = new Played(Infinity);
  played.block(100);
  played.nowMs = 1234;
  played.job.claims.delete('store-a');
  played.pulls.onStoreDown('store-a');
  const [held] = heldQueues([played.job], new SetHints([], played.log), [], []);
  assert.deepEqual([held?.state, held?.stores, held?.sinceMs], ['stranded', ['store-a'], 1234]);
});

test('a message that is larger than clients may send here is told of, once: the gateways of a group are to have one limit', () => {
  const largest = 100_000;
  const played = new Played(Infinity, 10, largest);
  played.block(ENTRY_ROW_BYTES + largest + 64 * 1024);
  assert.deepEqual(played.told, [], 'as large as one may be, with what is added');
  for (let i = 0; i < 3; i++) played.block(ENTRY_ROW_BYTES + largest + 64 * 1024 + 1);
  assert.equal(played.told.length, 1);
  assert.match(played.told.join(), /larger than message_size_limit here/);
});
