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
import { encodeChallenge } from '../../src/protocol/messages/challenge.js';
import { encodeFence, FENCE_FILL, FENCE_FOUND, FENCE_JOIN } from '../../src/protocol/messages/fence.js';
import { encodeFenced } from '../../src/protocol/messages/fenced.js';
import { encodeHello, HELLO_ACTIVE } from '../../src/protocol/messages/hello.js';
import { encodeRefillEnd } from '../../src/protocol/messages/refill-end.js';
import { encodeRefill } from '../../src/protocol/messages/refill.js';
import { encodeTell } from '../../src/protocol/messages/tell.js';
import type { PartitionRecord } from '../../src/protocol/partition-record.js';
import { ENTRY_ROW_BYTES, writeEntryRow } from '../../src/protocol/entry-rows.js';
import { proxyNowMs } from './fault-proxy.js';
import { LinkJudge, type Copy } from './link-judge.js';
import { LinkRecord } from './link-record.js';

const GATEWAY = 'gateway-1';
const STORES = ['store-a', 'store-b'] as const;
const PARTITION = 'gateway-1/3';
const BOOT = Buffer.alloc(16, 7);
const RUN = 'hand';
const HANDLE = 1;
/** Of the process that the story begins with. */
const TERM = 1;
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

interface FenceAs {
  readonly term?: number;
  readonly how?: number;
  readonly number?: number;
  /** Undefined: no answer has come. */
  readonly fencedMs?: number;
  readonly lastTerm?: number;
  readonly handle?: number;
}

function recordOf(epoch: number, members: readonly string[], boot: Buffer): PartitionRecord {
  return {
    epoch, term: { number: TERM, nonce: 5 }, holder: { gatewayId: GATEWAY, incarnation: 10 },
    members: members.map((storeId) => ({ storeId, bootId: boot.toString('hex') })), gaveUp: [], left: [], line: [],
  };
}

/** What went over the links of one gateway with one partition. */
class Story {
  readonly #record = new LinkRecord();
  readonly judge = new LinkJudge(this.#record);

  /** Both stores are members from the first moment on. */
  constructor() {
    for (const store of STORES) this.attach(onPath(store, 'A'), 0, { how: FENCE_FOUND });
    this.tell(1, STORES, 10);
  }

  get problems(): readonly string[] {
    return this.#record.problems;
  }

  attach(line: Line, ms: number, fence: FenceAs = {}, incarnation = 10): void {
    this.greet(line, ms, BOOT, incarnation);
    this.fence(line, ms, { fencedMs: ms, ...fence });
  }

  /** The store is met in this boot. */
  greet(line: Line, ms: number, bootId: Buffer, incarnation = 10): void {
    const noise = new Uint8Array(16);
    this.#frame(line, types.HELLO, encodeHello(packer, { versionMin: 3, versionMax: 3, gatewayId: GATEWAY, incarnation, incarnationNonce: noise.subarray(8), path: 'A', generation: 1, nonce: noise, flags: HELLO_ACTIVE }), ms);
    this.#frame(line, types.CHALLENGE, encodeChallenge(packer, { version: 3, storeId: line.store, bootId, nonce: noise, proof: new Uint8Array(32) }), ms);
  }

  fence(line: Line, ms: number, { term: number = TERM, how = FENCE_JOIN, number: at = 0, fencedMs, lastTerm = number, handle = HANDLE }: FenceAs = {}): void {
    const term = { number, nonce: 5 };
    const isFill = how === FENCE_FILL;
    this.#frame(line, types.FENCE, encodeFence(packer, { handle, partition: PARTITION, term, how, provenDead: 0, number: isFill ? at : 0, digestA: 0, digestB: 0 }), ms);
    if (fencedMs !== undefined) this.fenced(line, fencedMs, { term: number, how, number: at, lastTerm, handle });
  }

  fenced(line: Line, ms: number, { term: number = TERM, how = FENCE_JOIN, number: at = 0, lastTerm = number, handle = HANDLE }: FenceAs = {}): void {
    this.#frame(line, types.FENCED, encodeFenced(packer, {
      handle, term: { number, nonce: 5 }, how, isComplete: how !== FENCE_FILL, number: at, digestA: 0, digestB: 0, lastTerm: { number: lastTerm, nonce: 5 }, olderLeaseMs: 0, count: 0, bytes: 0, holderWallMs: 0,
    }), ms);
  }

  /** A record is settled, and told to the first store. */
  tell(epoch: number, members: readonly string[], ms: number, boot: Buffer = BOOT): void {
    const record = recordOf(epoch, members, boot);
    this.#frame(A, types.TELL, encodeTell(packer, { partition: PARTITION, record, isOut: false }), ms);
  }

  /** The register has it: a watch tells. */
  note(epoch: number, members: readonly string[], ms: number): void {
    this.#record.noteRecord(PARTITION, recordOf(epoch, members, BOOT), START_MS + ms);
  }

  store(line: Line, number: number, id: number, ms: number): void {
    const body = bodyOf(id);
    this.#change(line, number, ms, rows.KIND_STORE, body.length, 0, id, body);
  }

  delete(line: Line, number: number, position: number, ms: number): void {
    this.#change(line, number, ms, rows.KIND_DELETE, 0, 1, position, NONE);
  }

  withdraw(line: Line, number: number, position: number, ms: number): void {
    this.#change(line, number, ms, rows.KIND_WITHDRAW, 0, 0, position, NONE);
  }

  refill(line: Line, position: number, id: number, ms: number): void {
    const body = bodyOf(id);
    const row = new Uint8Array(ENTRY_ROW_BYTES);
    writeEntryRow(rows.viewOf(row), 0, 0, body.length, 0, 0, 0, 0, id, position, 0);
    this.#frame(line, types.REFILL, encodeRefill(packer, { handle: HANDLE, rows: row }), ms, ms, body);
  }

  refillEnd(line: Line, count: number, ms: number, sequence: number): void {
    this.#frame(line, types.REFILL_END, encodeRefillEnd(packer, { handle: HANDLE, count }), ms, ms, NONE, sequence);
  }

  /** `passedMs`: when the gateway got it; later than ms on a path that stands still. */
  ack(line: Line, number: number, ms: number, passedMs = ms, sequence = 1): void {
    this.#frame(line, types.ACK, encodeAck(packer, [sequence, 1000, HANDLE, number]), ms, passedMs);
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

  sinkStood(fromMs: number, untilMs: number): void {
    this.judge.noteSinkStood(START_MS + fromMs, START_MS + untilMs);
  }

  #change(line: Line, number: number, ms: number, kind: number, bodyBytes: number, headBytes: number, ref: number, payload: Uint8Array): void {
    const section = new Uint8Array(rows.CHANGE_ROW_BYTES);
    rows.writeChangeRow(rows.viewOf(section), 0, kind, 0, bodyBytes, headBytes, 0, ref);
    this.#frame(line, types.CHANGES, encodeChanges(packer, [HANDLE, number, 0, 0, section]), ms, ms, payload);
  }

  #frame(line: Line, type: number, control: Uint8Array, ms: number, passedMs = ms, bodies: Uint8Array = NONE, sequence = 1): void {
    const frame = { connection: line.connection, direction: 'up' as const, type, name: '', sequence, control: control.slice(), bodyBytes: bodies.length, arrivedMs: START_MS + ms, passedMs: START_MS + passedMs };
    this.#record.onFrame(line.store, line.link, frame, bodies);
  }
}

const A = onPath('store-a', 'A');
const B = onPath('store-b', 'A');

function bodyOf(id: number): Buffer {
  const body = Buffer.alloc(marks.bytes.length + 4);
  marks.stamp(body, 0, id, id, 0);
  body.write('\r\nx', marks.bytes.length);
  return body;
}

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

  test('after a FENCE that was answered with the number is in time, after one that told less is early', () => {
    const told = (number: number, lastTerm = TERM): number => {
      const story = stored();
      story.ack(A, 1, 300);
      story.fence(B, 340, { number, lastTerm, fencedMs: 350 });
      return story.early(400);
    };
    assert.equal(told(1), 0);
    assert.equal(told(0), 1);
    assert.equal(told(1, TERM - 1), 1, 'what another process wrote is not what this one sent');
  });

  test('by the survivor alone counts from about the moment at which it was told that it is alone', () => {
    const story = stored();
    story.ack(A, 1, 300);
    story.tell(2, ['store-a'], 900);
    assert.equal(story.early(500), 1);
    assert.equal(story.early(900), 0);
  });

  test('by the survivor alone counts from when the register had that, however late the path told it', () => {
    const story = stored();
    story.ack(A, 1, 300);
    story.note(2, ['store-a'], 480);
    story.note(2, ['store-a'], 900);
    story.tell(2, ['store-a'], 1900);
    assert.equal(story.early(470), 1);
    assert.equal(story.early(500), 0);
    const other = stored();
    other.ack(A, 1, 300);
    other.note(2, ['store-b'], 480);
    other.tell(2, ['store-a'], 1900);
    assert.equal(other.early(500), 1, 'of those members');
  });

  test('by the survivor alone counts from when the gateway knew that, though its log is read at last', () => {
    const story = stored();
    story.ack(A, 1, 300);
    story.tell(2, ['store-a'], 900);
    story.note(2, ['store-a'], 950);
    story.note(2, ['store-b'], 480);
    assert.equal(story.early(500), 1);
    story.note(2, ['store-a'], 480);
    assert.deepEqual([story.early(470), story.early(500)], [1, 0]);
  });

  test('by the survivor alone may count where a record between was told to nobody, if the other is gone afterwards', () => {
    const told = (epoch: number, members: readonly string[], isAcked = true): number => {
      const story = stored();
      if (isAcked) story.ack(A, 1, 300);
      story.tell(epoch, members, 900);
      return story.early(500);
    };
    assert.equal(told(3, ['store-c']), 0);
    assert.equal(told(2, ['store-c']), 1, 'there was none between');
    assert.equal(told(3, ['store-b', 'store-c']), 1, 'the other counts still');
    assert.equal(told(3, ['store-c'], false), 1, 'nobody had acknowledged it');
    const living = stored();
    living.ack(A, 1, 300);
    living.ack(B, 1, 700);
    living.tell(3, ['store-c'], 900);
    assert.equal(living.early(500), 1, 'it was heard after the reply');
  });

  test('by a member that left counts until then', () => {
    const story = committed();
    story.tell(2, ['store-a', 'store-c'], 250);
    assert.equal(story.early(400), 0);
    const late = new Story();
    late.tell(2, ['store-a', 'store-c'], 150);
    for (const line of [A, B]) late.store(line, 1, 1, 200);
    for (const line of [A, B]) late.ack(line, 1, 300);
    assert.equal(late.early(400), 1);
  });

  test('by a copy that was filled counts from the end of the fill', () => {
    const story = new Story();
    const other = onPath('store-c', 'A');
    story.tell(2, ['store-c'], 150);
    story.attach(other, 160, { how: FENCE_FILL, number: 1 });
    story.refill(other, 1, 1, 200);
    story.refillEnd(other, 1, 210, 9);
    story.ack(other, 1, 220, 220, 8);
    assert.equal(story.early(400), 1);
    story.ack(other, 1, 230, 230, 9);
    assert.equal(story.early(400), 0);
    assert.deepEqual(story.problems, []);
  });

  test('by a copy that is met in another boot at last counts until then, if the other one went before', () => {
    const met = (ms: number): number => {
      const story = stored();
      story.ack(B, 1, 300);
      story.greet(onPath('store-a', 'A', 2), 350, Buffer.alloc(16, 8));
      story.greet(onPath('store-b', 'A', 2), ms, Buffer.alloc(16, 8));
      return story.early(400);
    };
    assert.deepEqual([met(420), met(395), met(340)], [0, 0, 1]);
  });

  test('by a store in another boot than the one recorded is early', () => {
    const told = (boot: Buffer): number => {
      const story = committed();
      story.tell(2, ['store-b'], 150, boot);
      return story.early(400);
    };
    assert.equal(told(BOOT), 0);
    assert.equal(told(Buffer.alloc(16, 8)), 1);
  });
});

describe('frames against the rules', () => {
  /** What is wrong with what happens to a partition of which both stores have a message. */
  const wrong = (act: (story: Story) => void): readonly string[] => {
    const story = committed();
    act(story);
    return story.problems;
  };

  test('none are in a story as it should be', () => {
    assert.deepEqual(wrong((story) => {
      story.delete(A, 2, 1, 500);
      story.fence(B, 510, { fencedMs: 520, number: 1 });
      story.delete(B, 2, 1, 530);
      story.fence(A, 900, { term: 5, fencedMs: 910, number: 2 });
      story.store(A, 3, 2, 920);
    }), []);
  });

  test('a gap or a repeat of changes', () => {
    assert.match(wrong((story) => { story.store(A, 3, 2, 500); }).join(), /change 3 went to store-a \S+ where 2 was due/);
    assert.match(wrong((story) => { story.store(A, 1, 1, 500); }).join(), /change 1 went to store-a \S+ where 2 was due/);
  });

  test('changes past where a copy stands, sent before that is known', () => {
    const sent = (number: number): string => wrong((story) => {
      story.fence(B, 500);
      story.delete(B, 2, 1, 510);
      story.fenced(B, 520, { number });
    }).join();
    assert.match(sent(0), /store-b \S+ stood at 0 when change 2 was sent to it/);
    assert.equal(sent(1), '');
  });

  test('changes by a handle that nothing bound', () => {
    const story = new Story();
    const other = onPath('store-b', 'B', 2);
    story.store(other, 1, 1, 200);
    assert.match(story.problems.join(), /which no FENCE bound/);
  });

  test('a refill that was not announced, goes on behind its end, or is told with another count', () => {
    assert.match(wrong((story) => { story.refill(A, 1, 1, 500); }).join(), /REFILL .* where nothing is filled/);
    const filling = (act: (story: Story) => void): string => wrong((story) => {
      story.fence(B, 500, { how: FENCE_FILL, number: 2, fencedMs: 500 });
      story.refill(B, 1, 1, 510);
      act(story);
    }).join();
    assert.match(filling((story) => { story.refill(B, 1, 1, 520); }), /position 1 is refilled behind 1/);
    assert.match(filling((story) => { story.refill(B, 3, 1, 520); }), /position 3 is refilled behind 1, up to 2/);
    assert.match(filling((story) => { story.refillEnd(B, 2, 520, 7); }), /REFILL_END says 2, refilled were 1/);
    assert.match(filling((story) => {
      story.refillEnd(B, 1, 520, 7);
      story.refill(B, 2, 2, 530);
    }), /REFILL .* where nothing is filled/);
  });

  test('a term below the highest accepted', () => {
    const twice = (first: number, second: number, ms: number): readonly string[] => wrong((story) => {
      story.fence(A, 500, { term: first, fencedMs: 500 });
      story.fence(A, ms, { term: second, fencedMs: ms });
    });
    assert.match(twice(7, 6, 900).join(), /term 6.5 was accepted after 7.5/);
    assert.deepEqual(twice(6, 7, 900), []);
    assert.deepEqual(twice(7, 7, 900), []);
    assert.deepEqual(twice(7, 6, 510), [], 'by two connections they may be seen in the other order');
  });

  test('two records of one epoch', () => {
    assert.deepEqual(wrong((story) => { story.tell(1, ['store-b', 'store-a'], 500); }), []);
    assert.match(wrong((story) => { story.tell(1, ['store-a'], 500); }).join(), /epoch 1 is told as/);
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

  test('of a message that the sink could read only long after the kill, because it stood still, is explained', () => {
    const story = committed();
    story.killed(600);
    assert.equal(story.duplicates(2500, 12_000).unexplained, 1);
    story.sinkStood(100, 2000);
    assert.equal(story.duplicates(2500, 12_000).unexplained, 0);
    assert.equal(story.duplicates(3500, 12_000).unexplained, 1);
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
