/**
 * The judge of the links (link-judge.ts) by itself, on records written by hand: what it must see, and what it must not
 * take for a fault. No process, no socket.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { MarkTemplate } from '../../src/load/marks.js';
import { monotonicMicros, type SendLogFile } from '../../src/load/send-log.js';
import { MessagePacker } from '../../src/platform/node/packer.js';
import * as rows from '../../src/protocol/change-rows.js';
import * as types from '../../src/protocol/message-types.js';
import { encodeAck } from '../../src/protocol/messages/ack.js';
import { encodeChanges } from '../../src/protocol/messages/changes.js';
import { encodeClaim } from '../../src/protocol/messages/claim.js';
import { encodeClaimed } from '../../src/protocol/messages/claimed.js';
import { encodeHello, HELLO_ACTIVE } from '../../src/protocol/messages/hello.js';
import { encodeOpen } from '../../src/protocol/messages/open.js';
import { CLAIM_GRANTED, ROLE_MEMBER } from '../../src/protocol/reasons.js';
import { proxyNowMs } from './fault-proxy.js';
import { LinkJudge, type Copy } from './link-judge.js';
import { LinkRecord } from './link-record.js';

const GATEWAY = 'gateway-1';
const STORES = ['store-a', 'store-b'] as const;
const RUN = 'hand';
const HANDLE = 1;
const NONE: Uint8Array = new Uint8Array(0);
/** All times of a story count from here, far enough apart that the clocks' jitter says nothing. */
const START_MS = proxyNowMs();

const packer = new MessagePacker();
const marks = new MarkTemplate(RUN, 'a.example');

/** A connection by its link (gateway and path) and its number. */
interface Line {
  readonly store: string;
  readonly link: string;
  readonly connection: number;
}

const onPath = (store: string, path: string, connection = 1): Line => ({ store, link: `0 ${path}`, connection });

/** One try: its final dot at 100, its reply at `replyMs`. */
function logOf(replyMs: number, code: number): SendLogFile {
  const behindMs = proxyNowMs() - monotonicMicros() / 1000;
  const us = (ms: number): number => (START_MS + ms - behindMs) * 1000;
  return { run: RUN, count: 1, records: [{ id: 1, queue: 'a.example', serial: 1, dot: us(100), reply: us(replyMs), code, hash: 0 }] };
}

/** What went over the links of one gateway with one queue. */
class Story {
  readonly #record = new LinkRecord();
  readonly judge = new LinkJudge(this.#record);

  /** Both stores are members from the first moment on. */
  constructor() {
    for (const store of STORES) this.attach(onPath(store, 'A'), 0);
  }

  attach(line: Line, ms: number, incarnation = 10): void {
    const noise = new Uint8Array(16);
    this.#frame(line, types.HELLO, encodeHello(packer, { versionMin: 1, versionMax: 1, gatewayId: GATEWAY, incarnation, incarnationNonce: noise.subarray(8), path: 'A', generation: 1, nonce: noise, flags: HELLO_ACTIVE }), ms);
    this.#frame(line, types.OPEN, encodeOpen(packer, {
      handle: HANDLE, birth: 10, serial: 1, name: 'a.example', queueClass: 'mail', ordering: 0, lengthMax: 0, bytesMax: 0,
      ownerId: GATEWAY, claimants: [], epoch: 1, members: STORES,
    }), ms);
  }

  store(line: Line, number: number, id: number, ms: number): void {
    const body = Buffer.alloc(marks.bytes.length + 4);
    marks.stamp(body, 0, id, id, 0);
    body.write('\r\nx', marks.bytes.length);
    this.#change(line, number, ms, rows.KIND_STORE, body.length, 0, id, body);
  }

  delete(line: Line, number: number, position: number, ms: number): void {
    this.#change(line, number, ms, rows.KIND_DELETE, 0, 1, position, NONE);
  }

  withdraw(line: Line, number: number, position: number, ms: number): void {
    this.#change(line, number, ms, rows.KIND_WITHDRAW, 0, 0, position, NONE);
  }

  /** A change of the set to `members`. */
  setMembers(line: Line, number: number, epoch: number, members: readonly string[], ms: number): void {
    const head = packer.pack(members).slice();
    this.#change(line, number, ms, rows.KIND_SET_MEMBERS, 0, head.length, epoch, head);
  }

  /** `passedMs`: when the gateway got it; later than ms on a path that stands still. */
  ack(line: Line, number: number, ms: number, passedMs = ms): void {
    this.#frame(line, types.ACK, encodeAck(packer, [1, 1000, HANDLE, number]), ms, passedMs);
  }

  claim(line: Line, number: number, ms: number): void {
    this.#frame(line, types.CLAIM, encodeClaim(packer, { handle: HANDLE, gatewayId: GATEWAY, birth: 10, serial: 1, token: 10 }), ms);
    this.#frame(line, types.CLAIMED, encodeClaimed(packer, {
      handle: HANDLE, result: CLAIM_GRANTED, token: 10, epoch: 1, members: STORES, number, digestA: 0, digestB: 0, count: 0, bytes: 0,
      role: ROLE_MEMBER, waitMs: 0, sameBoot: true, holderWallMs: 0, writer: undefined,
    }), ms);
  }

  /** A message whose final dot came at 100 and which was answered at `replyMs`. */
  early(replyMs: number, code = 250): number {
    return this.judge.earlyReplies(logOf(replyMs, code)).early;
  }

  /** The same, refused. */
  keptRefusals(replyMs: number): number {
    return this.judge.keptRefusals(logOf(replyMs, 451)).kept;
  }

  duplicates(...copiesMs: readonly number[]): ReturnType<LinkJudge['duplicates']> {
    const behindMs = proxyNowMs() - monotonicMicros() / 1000;
    return this.judge.duplicates(copiesMs.map((ms): Copy => ({ run: RUN, id: 1, us: (START_MS + ms - behindMs) * 1000 })));
  }

  killed(ms: number): void {
    this.judge.noteWindow({ cause: 'gateway killed', gateway: GATEWAY, fromMs: START_MS + ms, untilMs: START_MS + ms });
  }

  #change(line: Line, number: number, ms: number, kind: number, bodyBytes: number, headBytes: number, ref: number, payload: Uint8Array): void {
    const section = new Uint8Array(rows.CHANGE_ROW_BYTES);
    rows.writeChangeRow(rows.viewOf(section), 0, kind, 0, bodyBytes, headBytes, 0, ref);
    this.#frame(line, types.CHANGES, encodeChanges(packer, [HANDLE, number, 0, 0, section]), ms, ms, payload);
  }

  #frame(line: Line, type: number, control: Uint8Array, ms: number, passedMs = ms, bodies: Uint8Array = NONE): void {
    const frame = { connection: line.connection, direction: 'up' as const, type, name: '', sequence: 1, control: control.slice(), bodyBytes: bodies.length, arrivedMs: START_MS + ms, passedMs: START_MS + passedMs };
    this.#record.onFrame(line.store, line.link, frame, bodies);
  }
}

const A = onPath('store-a', 'A');
const B = onPath('store-b', 'A');

/** The message is at both stores' doors. */
function stored(): Story {
  const story = new Story();
  story.store(A, 1, 1, 200);
  story.store(B, 1, 1, 200);
  return story;
}

/** It is acknowledged by both, and answered. */
function committed(): Story {
  const story = stored();
  for (const line of [A, B]) story.ack(line, 1, 300);
  return story;
}

describe('a reply to a client', () => {
  test('after both acknowledgements is in time', () => {
    assert.equal(committed().early(400), 0);
  });

  test('before the second acknowledgement is early', () => {
    const story = stored();
    story.ack(A, 1, 300);
    story.ack(B, 1, 500);
    assert.equal(story.early(400), 1);
    assert.equal(story.early(600), 0);
  });

  test('without any acknowledgement, or without a STORE at all, is early', () => {
    assert.equal(stored().early(400), 1);
    assert.equal(new Story().early(400), 1);
  });

  test('after acknowledgements of what came before only is early', () => {
    const story = new Story();
    story.store(A, 1, 2, 50);
    story.store(A, 2, 1, 200);
    for (const line of [A, B]) story.ack(line, 1, 300);
    assert.equal(story.early(400), 1);
  });

  test('that refuses needs no acknowledgement', () => {
    assert.equal(stored().early(400, 451), 0);
  });

  test('while the acknowledgement is held on a path that stands still is early', () => {
    const story = stored();
    story.ack(A, 1, 300);
    story.ack(B, 1, 300, 900);
    assert.equal(story.early(400), 1);
  });

  test('is in time when the other path brought what the first still holds', () => {
    const story = stored();
    story.ack(A, 1, 300);
    story.ack(B, 1, 300, 900);
    const other = onPath('store-b', 'B', 2);
    story.attach(other, 310);
    story.ack(other, 1, 350);
    assert.equal(story.early(400), 0);
    assert.equal(story.early(340), 1);
  });

  test('after a claim that told the number is in time, after one that told less is early', () => {
    const told = (number: number): number => {
      const story = stored();
      story.ack(A, 1, 300);
      story.claim(B, number, 350);
      return story.early(400);
    };
    assert.equal(told(1), 0);
    assert.equal(told(0), 1);
  });

  test('by the survivor alone counts from the moment at which it had the set without the other', () => {
    const story = stored();
    story.ack(A, 1, 300);
    story.setMembers(A, 2, 2, ['store-a'], 320);
    story.ack(A, 2, 380);
    assert.equal(story.early(350), 1);
    assert.equal(story.early(400), 0);
  });
});

describe('a refusal after the final dot', () => {
  test('of what was never numbered, or was withdrawn, leaves nothing', () => {
    assert.equal(new Story().keptRefusals(400), 0);
    const story = stored();
    story.withdraw(A, 2, 1, 350);
    assert.equal(story.keptRefusals(400), 0);
  });

  test('of what stays at the stores is seen, though the message is stored again and accepted later', () => {
    const story = committed();
    story.store(A, 2, 1, 700);
    assert.equal(story.keptRefusals(400), 1);
  });

  test('says nothing of what another try stored', () => {
    const story = new Story();
    story.store(A, 1, 1, 700);
    assert.equal(story.keptRefusals(400), 0);
  });
});

describe('a second copy at the sink', () => {
  test('without a fault is not explained', () => {
    const report = committed().duplicates(500, 600);
    assert.deepEqual([report.repeated, report.unexplained], [1, 1]);
  });

  test('of a message in flight when the gateway was killed is explained, a third one is not', () => {
    const story = committed();
    story.killed(600);
    assert.deepEqual(story.duplicates(500, 5000).explained, { 'gateway killed': 1 });
    assert.equal(story.duplicates(500, 5000, 6000).unexplained, 1);
  });

  test('of a message whose DELETE a store had acknowledged is not explained by a kill', () => {
    const story = committed();
    story.delete(A, 2, 1, 520);
    story.ack(A, 2, 540);
    story.killed(600);
    assert.equal(story.duplicates(500, 5000).unexplained, 1);
  });

  test('of a message that came long before the kill, or long after it only, is not explained', () => {
    for (const copies of [[500, 9500], [12_000, 13_000]]) {
      const story = committed();
      story.killed(8000);
      assert.equal(story.duplicates(...copies).unexplained, 1);
    }
  });

  test('is none when the client sent the message again and both were stored', () => {
    const story = committed();
    story.store(A, 2, 1, 700);
    assert.equal(story.duplicates(500, 800).repeated, 0);
  });

  test('counts when one of the two entries had been withdrawn', () => {
    const story = committed();
    story.withdraw(A, 2, 1, 350);
    story.store(A, 3, 1, 700);
    assert.equal(story.duplicates(500, 800).unexplained, 1);
  });
});
