import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { Strangers } from '../../../../src/kvs/core/strangers.js';
import type { RunningStore } from '../../../../src/kvs/daemon/running-store.js';
import type { StoreDaemonOptions } from '../../../../src/kvs/daemon/store-daemon.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import { encodeFrame } from '../../../../src/protocol/frame.js';
import * as types from '../../../../src/protocol/message-types.js';
import { encodeChanges } from '../../../../src/protocol/messages/changes.js';
import { encodeClose } from '../../../../src/protocol/messages/close.js';
import { encodeAsk } from '../../../../src/protocol/messages/ask.js';
import { encodeHeartbeat } from '../../../../src/protocol/messages/heartbeat.js';
import { encodeRelease } from '../../../../src/protocol/messages/release.js';
import { encodePull } from '../../../../src/protocol/messages/pull.js';
import { encodeTail } from '../../../../src/protocol/messages/tail.js';
import { encodeTexts } from '../../../../src/protocol/messages/texts.js';
import {
  CLOSE_DENIED, CLOSE_FENCED, CLOSE_LIMIT, CLOSE_MALFORMED, CLOSE_SEQUENCE, CLOSE_STANDBY, CLOSE_STOPPING, CLOSE_VERSION, DECLINED_LOWER, REFUSAL_CHECKSUM, REFUSAL_FENCED, REFUSAL_LIMIT, REFUSAL_MISSING, REFUSAL_UNKNOWN, STOPPING_GOES_ON,
} from '../../../../src/protocol/reasons.js';
import { TextRows, textOf } from '../../../../src/protocol/text-rows.js';
import { ORIGIN, annotating, bytes, change, deleting, found, nextSection, packer, recordOf, section, storing, termOf } from '../core/section-kit.js';
import { TestGateway, secretOf, testStore } from './test-gateway.js';

async function running(t: TestContext, options: Partial<StoreDaemonOptions> = {}): Promise<RunningStore> {
  const store = await testStore(options);
  t.after(() => store.stop());
  return store;
}

function pull(gateway: TestGateway, handle: number, after: number, entriesMax: number): number {
  return gateway.send(types.PULL, encodePull(packer, {
    handle, afterPosition: after, untilPosition: Number.MAX_SAFE_INTEGER, entriesMax, bytesMax: 1 << 24, withBodies: true,
  }));
}

describe('a store on real sockets', () => {
  test('stores, acknowledges once for a turn, and gives back what it holds', async (t) => {
    const store = await running(t);
    const gateway = await TestGateway.join(store);
    gateway.found(7, 1);
    gateway.change(7, storing(1, 'one', 'h1'), storing(2, 'two', 'h2'));
    const last = gateway.change(7, deleting(1));
    const ack = await gateway.acknowledged(last);
    assert.deepEqual([ack.values[0], ack.values[2], ack.values[3]], [last, 7, 3]);
    assert.ok(Number(ack.values[1]) > 1_000_000, 'it grants credit');
    pull(gateway, 7, 0, 10);
    const block = await gateway.next(types.BLOCK);
    assert.equal(new TextDecoder().decode(block.bodies), 'twoh2');
    assert.deepEqual(block.values.slice(0, 4), [7, 0, 2, true]);
  });

  test('acknowledges much as it comes, so that its gateway sends on meanwhile', async (t) => {
    const store = await running(t);
    const gateway = await TestGateway.join(store);
    await gateway.acknowledged(gateway.found(7, 1));
    // Written in one turn of this process, which is the store's, too: read by it in one of the next.
    let last = 0;
    for (let id = 1; id <= 4; id++) last = gateway.change(7, storing(id, 'x'.repeat(20_000), 'head'));
    await gateway.acknowledged(last);
    assert.deepEqual(gateway.frames.filter(({ type }) => type === types.ACK).map(({ sequence }) => sequence).slice(-4), [last - 3, last - 2, last - 1, last]);
  });

  test('finds a byte that is wrong in a frame longer than it reads at once, wherever it is', async (t) => {
    const store = await running(t);
    const gateway = await TestGateway.join(store);
    await gateway.acknowledged(gateway.found(7, 1));
    const { first, a, b, rows, payload } = section(0, 0, 0, Array.from({ length: 12 }, (_none, id) => storing(id, String.fromCharCode(97 + id).repeat(60_000), 'head')));
    const control = encodeChanges(packer, [7, first, a, b, rows]).slice();
    for (const at of [0, 270_000, 600_000, payload.length - 1]) {
      const damaged = payload.slice();
      damaged[at] = (damaged[at] ?? 0) ^ 1;
      const refusedAt = gateway.send(types.CHANGES, control, damaged);
      assert.deepEqual((await gateway.next(types.REFUSAL)).values.slice(0, 3), [refusedAt, 7, REFUSAL_CHECKSUM], `byte ${String(at)}`);
      await gateway.acknowledged(gateway.join(7, 1));
    }
    const ack = await gateway.acknowledged(gateway.send(types.CHANGES, control, payload));
    assert.deepEqual([ack.values[2], ack.values[3]], [7, 12]);
  });

  test('answers heartbeats, and gives the tail behind a number that it knows', async (t) => {
    const store = await running(t);
    const gateway = await TestGateway.join(store);
    gateway.heartbeat(42);
    assert.deepEqual((await gateway.next(types.BEAT)).values.filter((_none, i) => i !== 1), [42, 10_000, 0, []]);
    gateway.found(1, 1);
    gateway.found(2, 2);
    gateway.change(2, storing(1, 'x', ''));
    gateway.send(types.TAIL, encodeTail(packer, { handle: 2, number: 0, digestA: 0, digestB: 0 }));
    const tailed = await gateway.next(types.TAILED);
    assert.deepEqual(tailed.values.slice(1, 3), [true, 1]);
    assert.equal(new TextDecoder().decode(tailed.bodies), 'x');
    gateway.send(types.TAIL, encodeTail(packer, { handle: 2, number: 0, digestA: 0, digestB: 1 }));
    assert.equal((await gateway.next(types.TAILED)).values[1], false, 'another digest');
    gateway.send(types.TAIL, encodeTail(packer, { handle: 1, number: 0, digestA: 0, digestB: 0 }));
    assert.equal((await gateway.next(types.TAILED)).values[1], true);
  });

  test('fences, on open connections too: changes, reads and fills of the term before are refused, and its process hears of it', async (t) => {
    const store = await running(t);
    const [owner, taker] = [await TestGateway.join(store), await TestGateway.join(store, { id: 'g2' })];
    owner.found(1, 1);
    owner.heartbeat(1);
    await owner.acknowledged(owner.change(1, storing(1, 'one', 'h')));
    taker.join(9, 1, termOf(2), 'g1');
    const fenced = (await taker.next(types.FENCED)).values;
    assert.deepEqual([fenced[0], fenced[3], fenced[4], fenced[7]], [9, true, 1, [ORIGIN.number, ORIGIN.nonce]]);
    assert.ok(Number(fenced[8]) > 9_000, 'the lease of the owner still runs');
    const refused: number[] = [];
    const refuse = async (sequence: number): Promise<void> => {
      const refusal = await owner.next(types.REFUSAL);
      assert.deepEqual(refusal.values.slice(0, 3), [sequence, 1, REFUSAL_FENCED]);
      refused.push(sequence);
    };
    await refuse(owner.change(1, storing(2, 'late', 'h')));
    await refuse(pull(owner, 1, 0, 10));
    owner.send(types.RELEASE, encodeRelease(packer, { handle: 1 }));
    await refuse(owner.send(types.TAIL, encodeTail(packer, { handle: 1, number: 0, digestA: 0, digestB: 0 })));
    owner.heartbeat(2);
    assert.deepEqual((await owner.next(types.BEAT)).values.slice(3), [1, [[1, 'g1/1', [2, 2]]]]);
    owner.join(1, 1);
    const declined = (await owner.next(types.DECLINED)).values;
    assert.deepEqual(declined, [1, DECLINED_LOWER, [1, 1], [2, 2], []]);
    pull(taker, 9, 0, 10);
    assert.equal(new TextDecoder().decode((await taker.next(types.BLOCK)).bodies), 'oneh');
    assert.equal(store.counters.declines[DECLINED_LOWER], 1);
    taker.join(5, 1, termOf(3), 'g1');
    assert.equal((await taker.next(types.FENCED)).values[8], 0, 'who hands back may have been fenced before it learned that it does');
  });

  test('keeps no words by a handle that is not bound, is refused, or whose term is fenced; nobody hears of it', async (t) => {
    const store = await running(t);
    const [owner, taker] = [await TestGateway.join(store), await TestGateway.join(store, { id: 'g2' })];
    const say = (gateway: TestGateway, handle: number, words: string): number => {
      const rows = new TextRows();
      rows.add(1, bytes(words));
      return gateway.send(types.TEXTS, encodeTexts(packer, [{ handle, rows: rows.take() }]));
    };
    const kept = (): string[] => {
      const row = store.store.entries.find(store.store.partitions.find('g1/1') ?? assert.fail('a copy'), 1);
      return [store.store.texts.of(row)].map((words) => new TextDecoder().decode(words));
    };
    owner.found(1, 1);
    owner.change(1, storing(1, 'one', 'h'), annotating(1, 'note'));
    say(owner, 2, 'not bound');
    await owner.acknowledged(say(owner, 1, '450 busy'));
    assert.deepEqual(kept(), ['450 busy']);
    taker.join(9, 1, termOf(2), 'g1');
    await taker.next(types.FENCED);
    await owner.acknowledged(say(owner, 1, 'fenced'));
    assert.deepEqual(kept(), ['450 busy']);
    assert.deepEqual(owner.frames.filter(({ type }) => type === types.REFUSAL), []);
    pull(taker, 9, 0, 10);
    const texts = (await taker.next(types.BLOCK)).values[5] as Uint8Array;
    assert.equal(new TextDecoder().decode(textOf(texts, 0)), '450 busy');
    await taker.acknowledged(say(taker, 9, '450 still busy'));
    assert.deepEqual(kept(), ['450 still busy']);
    taker.send(types.CHANGES, encodeChanges(packer, [9, 9, 0, 0, nextSection(found(store.store, 7, 'g2'), [deleting(1)]).rows]));
    await taker.next(types.REFUSAL);
    await taker.acknowledged(say(taker, 9, 'refused'));
    assert.deepEqual(kept(), ['450 still busy']);
  });

  test('tells what it was told, and what of a lease is left', async (t) => {
    const store = await running(t);
    const gateway = await TestGateway.join(store);
    gateway.send(types.ASK, encodeAsk(packer, { partition: 'g1/1', holder: { gatewayId: 'g1', incarnation: 1 } }));
    assert.deepEqual((await gateway.next(types.ASKED)).values, ['g1/1', false, 0, 0, []], 'a connection is no lease');
    const members = [{ storeId: 'store-a', bootId: store.store.bootId }];
    gateway.found(1, 1);
    gateway.heartbeat(1);
    gateway.tell(1, recordOf(3, { members }), false);
    assert.deepEqual((await gateway.next(types.TOLD)).values, ['g1/1', 3, true]);
    gateway.tell(1, recordOf(2, { members }), true);
    assert.deepEqual((await gateway.next(types.TOLD)).values, ['g1/1', 2, false]);
    const other = await TestGateway.join(store, { id: 'g2' });
    other.send(types.ASK, encodeAsk(packer, { partition: 'g1/1', holder: { gatewayId: 'g1', incarnation: 1 } }));
    const asked = (await other.next(types.ASKED)).values;
    assert.deepEqual([asked[0], asked[1], asked[3], asked[4]], ['g1/1', true, 1, [3, [1, 1], ['g1', 1], [['store-a', store.store.bootId]], [], [], []]]);
    assert.ok(Number(asked[2]) > 9_000);
    gateway.send(types.RELEASE, encodeRelease(packer, { handle: 1 }));
    await gateway.acknowledged(gateway.heartbeat(2) - 1);
    other.send(types.ASK, encodeAsk(packer, { partition: 'g1/1', holder: { gatewayId: 'g1', incarnation: 1 } }));
    assert.equal((await other.next(types.ASKED)).values[2], 0, 'released');
  });

  test('counts a frame that has come in part as memory, and no more when its connection is gone', async (t) => {
    const store = await running(t);
    const gateway = await TestGateway.join(store);
    const { admission } = store.store;
    const before = admission.usedBytes;
    const frame = encodeFrame(types.CHANGES, 3, new Uint8Array(10), crc32, 3_000_000);
    gateway.connection.write([frame, new Uint8Array(2_000_000)]);
    while (admission.usedBytes < before + 2_000_000) await new Promise((resolve) => { setImmediate(resolve); });
    assert.ok(admission.usedBytes < before + 4_100_000);
    gateway.connection.destroy();
    while (admission.frameBytes > 0) await new Promise((resolve) => { setImmediate(resolve); });
    assert.equal(admission.usedBytes, before);
    const standby = await TestGateway.join(store, { active: false });
    standby.connection.write([encodeFrame(types.HEARTBEAT, 3, new Uint8Array(10), crc32, 5_000)]);
    assert.equal((await standby.next(types.CLOSE)).values[0], CLOSE_MALFORMED, 'who stands by gets no memory for long frames');
  });

  test('full but for its reserve, never holds more than its limit while large frames come in: what has no credit is refused unread, deletions beside it are made', async (t) => {
    const store = await running(t, { memoryLimitBytes: 64 * 1024 * 1024 });
    const { admission } = store.store;
    const gateway = await TestGateway.join(store);
    const others = found(store.store, 1, 'g2');
    while (change(store.store, others, storing(1, 'x'.repeat(50_000))) === 0);
    const granted = store.store.account('g1')?.granted ?? 0;
    gateway.found(1, 1);
    gateway.found(2, 2);
    await gateway.acknowledged(gateway.change(1, storing(1, 'kept')));
    const before = admission.usedBytes;
    assert.ok(before + granted > 0.95 * admission.limitBytes && granted > 200_000);
    let most = 0;
    let isOver = false;
    const watch = (): void => {
      most = Math.max(most, admission.usedBytes);
      if (!isOver) setImmediate(watch);
    };
    watch();
    // Without credit: one section of it ends mail, and needs no bodies.
    const large = section(0, 0, 0, Array.from({ length: 16 }, (_none, id) => storing(id, 'y'.repeat(1024 * 1024))));
    const copy = store.store.partitions.find('g1/1');
    assert.ok(copy !== undefined);
    const ending = nextSection(copy, [deleting(1)]);
    const refusedAt = gateway.send(types.CHANGES, encodeChanges(packer, [2, large.first, large.a, large.b, large.rows, 1, ending.first, ending.a, ending.b, ending.rows]), large.payload);
    assert.deepEqual((await gateway.next(types.REFUSAL)).values.slice(0, 3), [refusedAt, 2, REFUSAL_LIMIT]);
    await gateway.acknowledged(refusedAt);
    assert.deepEqual([copy.number, copy.count], [2, 0]);
    // Within its credit, as large as that goes.
    gateway.join(2, 2);
    const fitting = section(0, 0, 0, [storing(1, 'z'.repeat((store.store.account('g1')?.granted ?? 0) - 1000))]);
    const taken = gateway.send(types.CHANGES, encodeChanges(packer, [2, fitting.first, fitting.a, fitting.b, fitting.rows]), fitting.payload);
    await gateway.acknowledged(taken);
    assert.equal(store.store.partitions.find('g1/2')?.number, 1);
    // Repeated, it has no credit any more, and needs no bodies.
    const repeated = gateway.send(types.CHANGES, encodeChanges(packer, [2, fitting.first, fitting.a, fitting.b, fitting.rows]), fitting.payload);
    await gateway.acknowledged(repeated);
    assert.equal(gateway.frames.filter(({ type }) => type === types.REFUSAL).length, 1);
    await new Promise((resolve) => { setImmediate(resolve); });
    isOver = true;
    assert.ok(most <= admission.limitBytes, `${String(most)} of ${String(admission.limitBytes)}`);
  });

  test('refuses in order, then passes over what was sent behind until a FENCE binds the handle again', async (t) => {
    const store = await running(t);
    const gateway = await TestGateway.join(store);
    gateway.found(1, 1);
    const bad = gateway.change(1, deleting(9));
    gateway.change(1, storing(1, 'a'));
    const third = gateway.change(1, storing(2, 'b'));
    await gateway.acknowledged(third);
    const refusals = gateway.frames.filter((frame) => frame.type === types.REFUSAL);
    assert.deepEqual(refusals.map((frame) => [frame.values[0], frame.values[2], frame.values[3]]), [[bad, REFUSAL_MISSING, 0]]);
    const order = gateway.frames.findIndex((frame) => frame.type === types.REFUSAL);
    const ackPast = gateway.frames.findIndex((frame) => frame.type === types.ACK && Number(frame.values[0]) >= bad);
    assert.ok(order < ackPast);
    assert.deepEqual(gateway.frames[ackPast]?.values.length, 2, 'nothing touched the copy');
    assert.equal(store.store.partitions.find('g1/1')?.number, 0);
    gateway.join(1, 1);
    const unknown = gateway.change(5, storing(1, 'x'));
    await gateway.acknowledged(unknown);
    assert.deepEqual(gateway.frames.filter((frame) => frame.type === types.REFUSAL).at(-1)?.values.slice(0, 3), [unknown, 5, REFUSAL_UNKNOWN]);
  });

  test('a handle that is bound to another copy is named with the number of that one only', async (t) => {
    const store = await running(t);
    const gateway = await TestGateway.join(store);
    gateway.found(1, 1);
    gateway.change(1, storing(1, 'a'));
    await gateway.acknowledged(gateway.found(1, 2));
    assert.deepEqual(gateway.frames.filter(({ type }) => type === types.ACK).map(({ values }) => values.slice(2)), [[]]);
    assert.equal(store.store.partitions.find('g1/1')?.number, 1);
  });

  test('binds so many handles on one connection and no more', async (t) => {
    const store = await running(t);
    const gateway = await TestGateway.join(store);
    gateway.found(1, 1);
    for (let handle = 2; handle <= 65_536; handle += 1) gateway.join(handle, 1);
    await gateway.acknowledged(gateway.join(7, 1));
    gateway.join(65_537, 1);
    assert.equal((await gateway.next(types.CLOSE)).values[0], CLOSE_LIMIT);
  });

  test('takes no more from a gateway it does not know, or with a wrong secret', async (t) => {
    const store = await running(t);
    for (const options of [{ id: 'stranger', secret: bytes('x') }, { id: 'g1', secret: bytes('wrong') }]) {
      const gateway = await TestGateway.join(store, options);
      assert.equal(gateway.last?.type, types.CLOSE);
      assert.equal(gateway.last.values[0], CLOSE_DENIED);
      await gateway.closed;
    }
  });

  test('says of connections that end before anybody was let in one line in ten seconds, with how many had none', async (t) => {
    const lines: unknown[] = [];
    const nowMs = 1_000;
    const told = new Strangers();
    assert.deepEqual([told.untoldCloses(nowMs), told.untoldCloses(nowMs + 1), told.untoldCloses(nowMs + 9_999), told.untoldCloses(nowMs + 10_000)], [0, undefined, undefined, 2]);
    const store = await testStore({}, { debug: () => undefined, info: () => undefined, error: () => undefined, warn: (_event, text, fields) => {
      if (text === 'connection closed') lines.push(fields?.['reason']);
    } });
    t.after(() => store.stop());
    for (let i = 0; i < 20; i++) await (await TestGateway.join(store, { id: 'g1', secret: bytes('wrong') })).closed;
    assert.deepEqual(lines, ['DENIED']);
    assert.equal(store.counters.closes.reduce((sum, count) => sum + count, 0), 20, 'metrics count each');
  });

  test('says in its log, once for each name, whether it does not know a gateway or its secret', async (t) => {
    const lines: string[] = [];
    const store = await testStore({}, { debug: () => undefined, info: () => undefined, error: () => undefined, warn: (_event, text, fields) => {
      if (text === 'a gateway is not let in') lines.push(`${String(fields?.['gateway'])}: ${String(fields?.['why'])}`);
    } });
    t.after(() => store.stop());
    const leave = async (id: string): Promise<void> => {
      const gateway = new TestGateway(store, { id });
      gateway.hello({ id });
      await gateway.next(types.CHALLENGE);
      gateway.send(types.CLOSE, encodeClose(packer, { reason: CLOSE_DENIED, text: 'not by this secret', detail: 0 }));
      await gateway.closed;
    };
    for (const id of ['stranger', 'stranger', 'g1', 'g1']) await leave(id);
    assert.deepEqual(lines, ['stranger: store.gateways does not name it', 'g1: the gateway says: not by this secret']);
    await TestGateway.join(store, { id: 'g2', secret: bytes('wrong') });
    await TestGateway.join(store, { id: 'other', secret: bytes('x') });
    assert.deepEqual(lines.slice(2), ['g2: unknown gateway or wrong secret', 'other: store.gateways does not name it']);
    await TestGateway.join(store, { id: 'g1' });
    await leave('g1');
    assert.equal(lines.length, 5, 'it was let in meanwhile: news again');
    for (let i = 0; i < 40; i += 1) await leave(`made-up-${String(i)}`);
    assert.equal(lines.length, 5 + 28, 'names that anybody makes up do not fill the log');
  });

  test('of a group lets in whoever proves its secret, under any name; who is configured proves the own one', async (t) => {
    const group = bytes('the secret of the group');
    const store = await testStore({ gateways: [{ id: 'g1', secret: secretOf('g1') }], groupSecret: group });
    t.after(() => store.stop());
    const { acceptBytes } = store.store.admission;
    const joined = async (id: string, secret: Uint8Array): Promise<number | undefined> => (await TestGateway.join(store, { id, secret })).last?.type;
    assert.equal(await joined('new-one', bytes('wrong')), types.CLOSE);
    assert.equal(store.store.account('new-one'), undefined);
    assert.equal(await joined('g1', group), types.CLOSE);
    assert.equal(await joined('new-one', group), types.WELCOME);
    assert.equal(await joined('another', group), types.WELCOME);
    assert.equal(await joined('g1', secretOf('g1')), types.WELCOME);
    const numbers = [...store.store.accounts()].map(({ number }) => number);
    assert.deepEqual([numbers.length, new Set(numbers).size], [3, 3]);
    assert.ok(store.store.admission.acceptBytes <= acceptBytes, 'each takes its share of what reading requests needs');
  });

  test('goes by other secrets and other gateways once it is told them; a connection that stands stays', async (t) => {
    const [before, next] = [bytes('the secret of the group'), bytes('the next one')];
    const store = await testStore({ gateways: [{ id: 'g1', secret: secretOf('g1') }], groupSecret: before });
    t.after(() => store.stop());
    const joined = async (id: string, secret: Uint8Array): Promise<number | undefined> => (await TestGateway.join(store, { id, secret })).last?.type;
    const standing = await TestGateway.join(store, { id: 'any', secret: before });
    assert.equal(standing.last?.type, types.WELCOME);
    store.renew({ gateways: [{ id: 'g2', secret: secretOf('g2') }], groupSecret: next });
    assert.deepEqual(
      [await joined('any', before), await joined('any', next), await joined('g1', secretOf('g1')), await joined('g1', next), await joined('g2', secretOf('g2'))],
      [types.CLOSE, types.WELCOME, types.CLOSE, types.WELCOME, types.WELCOME],
    );
    store.renew({ gateways: [{ id: 'g2', secret: next }], groupSecret: undefined });
    assert.deepEqual([await joined('any', next), await joined('g2', secretOf('g2')), await joined('g2', next)], [types.CLOSE, types.CLOSE, types.WELCOME]);
    assert.equal(standing.last.type, types.WELCOME, 'nothing came after it');
  });

  test('lets nobody in by what counted when the handshake began', async (t) => {
    const store = await testStore({ gateways: ['g1', 'g2', 'g3'].map((id) => ({ id, secret: secretOf(id) })) });
    t.after(() => store.stop());
    const begun = await Promise.all(['g1', 'g2', 'g3'].map((id) => TestGateway.begin(store, { id })));
    store.renew({ gateways: [{ id: 'g2', secret: bytes('another one') }, { id: 'g3', secret: secretOf('g3') }], groupSecret: undefined });
    const answers = await Promise.all(begun.map(async (prove) => (await prove()).last));
    assert.deepEqual(answers.map((answer) => answer?.type), [types.CLOSE, types.CLOSE, types.WELCOME]);
    assert.deepEqual(answers.slice(0, 2).map((answer) => answer?.values[1]), Array(2).fill('unknown gateway or wrong secret'));
  });

  test('of a group knows a bound of gateways', async (t) => {
    const group = bytes('the secret of the group');
    const store = await testStore({ gateways: [], groupSecret: group });
    t.after(() => store.stop());
    for (let i = 0; i < 1024; i += 1) assert.ok(store.store.accountOf(`g${String(i)}`) !== undefined);
    const gateway = await TestGateway.join(store, { id: 'one-more', secret: group });
    assert.equal(gateway.last?.values[0], CLOSE_DENIED);
    assert.match(String(gateway.last.values[1]), /as many gateways of the group as it can/);
  });

  test('closes on garbage with a named reason and counts it, at any point', async (t) => {
    const store = await running(t);
    const stranger = new TestGateway(store);
    stranger.connection.write([bytes('GET / HTTP/1.1\r\nhost: store\r\n\r\n')]);
    assert.equal((await stranger.next(types.CLOSE)).values[0], CLOSE_MALFORMED);
    await stranger.closed;
    const gateway = await TestGateway.join(store);
    gateway.connection.write([new Uint8Array(100).fill(0xa5)]);
    const close = await gateway.next(types.CLOSE);
    assert.equal(close.values[0], CLOSE_MALFORMED);
    assert.notEqual(close.values[1], '');
    await gateway.closed;
    assert.equal(store.counters.closes[CLOSE_MALFORMED], 2);
  });

  test('takes no long frame from someone who has proved nothing', async (t) => {
    const store = await running(t);
    const stranger = new TestGateway(store);
    stranger.send(types.HELLO, new Uint8Array(100_000).fill(0xc0));
    assert.equal((await stranger.next(types.CLOSE)).values[1], 'frame too long');
  });

  test('closes when rows and bodies of a frame do not fit', async (t) => {
    const store = await running(t);
    const gateway = await TestGateway.join(store);
    gateway.found(1, 1);
    gateway.send(types.CHANGES, packer.pack([1, 1, 0, 0, new Uint8Array(24)]));
    assert.match(String((await gateway.next(types.CLOSE)).values[1]), /CHANGES: row kind/);
    const other = await TestGateway.join(store, { id: 'g2' });
    await other.acknowledged(other.found(1, 1));
    other.send(types.HEARTBEAT, encodeHeartbeat(packer, { token: 1, wallMs: 0, fencesProcessed: 0 }), bytes('surplus'));
    assert.equal((await other.next(types.CLOSE)).values[0], CLOSE_MALFORMED);
  });

  test('closes on a request of any kind that holds something else', async (t) => {
    const store = await running(t);
    const requests = {
      HEARTBEAT: types.HEARTBEAT, FENCE: types.FENCE, CHANGES: types.CHANGES, ASK: types.ASK, TELL: types.TELL, LIST: types.LIST,
      RELEASE: types.RELEASE, TEXTS: types.TEXTS, REFILL: types.REFILL, REFILL_END: types.REFILL_END, PULL: types.PULL,
      TAIL: types.TAIL, FETCH: types.FETCH,
    };
    for (const [name, type] of Object.entries(requests)) {
      const gateway = await TestGateway.join(store);
      gateway.send(type, packer.pack([new Map()]));
      const { values: [reason, text] } = await gateway.next(types.CLOSE);
      assert.equal(reason, CLOSE_MALFORMED);
      assert.ok(String(text).startsWith(`${name}: `), `${name}: ${String(text)}`);
      await gateway.closed;
    }
  });

  test('closes when a sequence number is left out', async (t) => {
    const store = await running(t);
    const gateway = await TestGateway.join(store);
    gateway.connection.write([encodeFrame(types.HEARTBEAT, 99, encodeHeartbeat(packer, { token: 1, wallMs: 0, fencesProcessed: 0 }), crc32)]);
    assert.equal((await gateway.next(types.CLOSE)).values[0], CLOSE_SEQUENCE);
  });

  test('a connection that stands by takes heartbeats only', async (t) => {
    const store = await running(t);
    await TestGateway.join(store);
    const standby = await TestGateway.join(store, { active: false, path: 1 });
    assert.equal(standby.last?.values[5], false);
    standby.heartbeat(3);
    assert.equal((await standby.next(types.BEAT)).values[0], 3);
    standby.found(1, 1);
    assert.equal((await standby.next(types.CLOSE)).values[0], CLOSE_STANDBY);
  });

  test('a higher generation takes over; what the older connection still says is not taken', async (t) => {
    const store = await running(t);
    const first = await TestGateway.join(store, { generation: 1 });
    await first.acknowledged(first.found(1, 1));
    const second = await TestGateway.join(store, { generation: 2, path: 1 });
    assert.equal(second.last?.values[5], true);
    first.change(1, storing(1, 'late'));
    assert.equal((await first.next(types.CLOSE)).values[0], CLOSE_STANDBY);
    await second.acknowledged(second.join(1, 1));
    assert.equal(store.store.partitions.find('g1/1')?.number, 0);
  });

  test('a newer incarnation fences the connections of the older one', async (t) => {
    const store = await running(t);
    const old = await TestGateway.join(store, { incarnation: 5 });
    await TestGateway.join(store, { incarnation: 6 });
    const close = await old.next(types.CLOSE);
    assert.deepEqual([close.values[0], close.values[2]], [CLOSE_FENCED, 6]);
    const late = await TestGateway.join(store, { incarnation: 5, generation: 9 });
    assert.equal(late.last?.values[0], CLOSE_FENCED);
  });

  test('serves two gateways whose partitions have the same numbers', async (t) => {
    const store = await running(t);
    const [one, two] = await Promise.all([TestGateway.join(store), TestGateway.join(store, { id: 'g2' })]);
    for (let i = 0; i < 50; i += 1) {
      if (i === 0) for (const each of [one, two]) each.found(1, 1);
      one.change(1, storing(i, `of one ${String(i)}`, ''));
      two.change(1, storing(i, `of two ${String(i)}`, ''));
    }
    const texts: string[] = [];
    for (const each of [one, two]) {
      pull(each, 1, 0, 1000);
      texts.push(new TextDecoder().decode((await each.next(types.BLOCK)).bodies));
    }
    assert.deepEqual(texts.map((text) => text.split(/(?=of )/).length), [50, 50]);
    assert.ok(!texts[0]?.includes('two') && !texts[1]?.includes('one'));
  });

  test('a reader that does not read holds a bounded part of it, and gets all in order once it reads', async (t) => {
    const store = await running(t);
    const gateway = await TestGateway.join(store);
    gateway.found(1, 1);
    const body = 'x'.repeat(1_000_000);
    for (let i = 0; i < 4; i += 1) await gateway.acknowledged(gateway.change(1, storing(i, body)));
    gateway.connection.pause();
    const asked: number[] = [];
    for (let i = 0; i < 60; i += 1) asked.push(pull(gateway, 1, 0, 4));
    const other = await TestGateway.join(store, { id: 'g2' });
    let blocks = -1;
    while (store.counters.blocks !== blocks) {
      blocks = store.counters.blocks;
      for (let i = 0; i < 5; i += 1) {
        other.heartbeat(i);
        await other.next(types.BEAT);
      }
    }
    assert.ok(blocks < 30, `${String(blocks)} blocks of 4 MB were built for someone who does not read`);
    gateway.connection.resume();
    for (const sequence of asked) {
      const block = await gateway.next(types.BLOCK);
      assert.equal(block.sequence, sequence);
      assert.equal(block.bodies.length, 4 * (body.length + 'envelope'.length));
    }
  });

  test('says that it stops, and stops', async () => {
    const store = await testStore();
    const gateway = await TestGateway.join(store);
    await gateway.acknowledged(gateway.found(1, 1));
    const stopped = store.stop();
    assert.equal((await gateway.next(types.CLOSE)).values[0], CLOSE_STOPPING);
    await gateway.closed;
    await stopped;
    await assert.rejects(TestGateway.join(store));
  });

  test('that stops waits until the records that it was told name it no more, and tells those that stand by first', async () => {
    const store = await testStore({ stopTimeoutMs: 120_000 });
    const active = await TestGateway.join(store);
    const standby = await TestGateway.join(store, { active: false, path: 1 });
    const other = { storeId: 'store-b', bootId: 'ff'.repeat(16) };
    active.found(1, 1);
    await active.acknowledged(active.tell(1, recordOf(3, { members: [other, { storeId: 'store-a', bootId: store.store.bootId }] }), false));
    let isOver = false;
    const stopped = store.stop().then(() => { isOver = true; });
    assert.equal((await standby.next(types.CLOSE)).values[0], CLOSE_STOPPING);
    await active.acknowledged(active.change(1, storing(1, 'still served')));
    assert.equal(isOver, false);
    active.tell(1, recordOf(4, { members: [other] }), true);
    assert.equal((await active.next(types.CLOSE)).values[0], CLOSE_STOPPING);
    await stopped;
    assert.equal(active.frames.filter(({ type }) => type === types.CLOSE).length, 1, 'its gateway was told by the standby');
  });

  test('that stops tells a gateway without a standby on its active connection, which goes on', { timeout: 30_000 }, async () => {
    const store = await testStore({ stopTimeoutMs: 120_000 });
    const gateway = await TestGateway.join(store);
    const other = { storeId: 'store-b', bootId: 'ff'.repeat(16) };
    gateway.found(1, 1);
    await gateway.acknowledged(gateway.tell(1, recordOf(3, { members: [other, { storeId: 'store-a', bootId: store.store.bootId }] }), false));
    const stopped = store.stop();
    assert.deepEqual((await gateway.next(types.CLOSE)).values.toSpliced(1, 1), [CLOSE_STOPPING, STOPPING_GOES_ON]);
    await gateway.acknowledged(gateway.change(1, storing(1, 'still served')));
    gateway.tell(1, recordOf(4, { members: [other] }), true);
    assert.deepEqual((await gateway.next(types.CLOSE)).values.toSpliced(1, 1), [CLOSE_STOPPING, 0]);
    await stopped;
  });

  test('that stops waits for nobody who is gone, nor for copies that are in no record', { timeout: 30_000 }, async () => {
    const store = await testStore({ stopTimeoutMs: 120_000 });
    const [leaving, told] = [await TestGateway.join(store), await TestGateway.join(store, { id: 'g2' })];
    leaving.found(1, 1);
    await leaving.acknowledged(leaving.tell(1, recordOf(3, { members: [{ storeId: 'store-a', bootId: store.store.bootId }] }), false));
    leaving.send(types.CLOSE, encodeClose(packer, { reason: CLOSE_STOPPING, text: 'bye', detail: 0 }));
    await leaving.closed;
    told.found(1, 1);
    await told.acknowledged(told.tell(1, recordOf(3, { holder: { gatewayId: 'g2', incarnation: 1 }, members: [{ storeId: 'store-a', bootId: 'ff'.repeat(16) }] }), false));
    await store.stop();
  });

  test('rejects when a port is taken, and leaves nothing listening', async (t) => {
    const store = await running(t);
    await assert.rejects(
      testStore({ paths: [{ name: 'A', host: '127.0.0.1', port: 0 }, { name: 'B', host: '127.0.0.1', port: store.ports[0] ?? 0 }] }),
      /EADDRINUSE/,
    );
  });

  test('is empty under a new boot id when started again', async (t) => {
    const [one, two] = [await running(t), await running(t)];
    assert.notDeepEqual(one.bootId, two.bootId);
    assert.equal(two.store.partitions.count, 0);
  });
});

test('a gateway that speaks other versions only is told both ranges', async () => {
  const store = await testStore();
  const gateway = new TestGateway(store);
  gateway.hello({ versionMin: 4, versionMax: 5 });
  const [reason, text] = (await gateway.next(types.CLOSE)).values;
  assert.equal(reason, CLOSE_VERSION);
  assert.match(String(text), /gateway speaks versions 4 to 5 .* this store version 3: /);
  await store.stop();
});
