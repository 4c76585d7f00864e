/** Recipients with a reverse-path each: a transaction each, side by side, and one result for the queue. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { CutDelivery } from '../../../../src/gateway/outbound/cut-delivery.js';
import { Lane } from '../../../../src/gateway/outbound/lane.js';
import type { AttemptResult } from '../../../../src/gateway/outbound/lane.js';
import { ALIAS_LEAVES, DEFERRED, DELIVERED, FAILED } from '../../../../src/gateway/mail-types.js';
import type { Delivery, DeliveryQueue, DeliveryResult, DeliverySource, RecipientResult } from '../../../../src/gateway/mail-types.js';
import { MemoryQueue } from './memory-source.js';
import { envelopeTo } from './pure/session-world.js';

const OK: RecipientResult = { status: DELIVERED, code: 250, enhanced: '2.0.0', text: '250 ok' };
const NO: RecipientResult = { status: FAILED, code: 550, enhanced: '5.1.1', text: '550 no' };
const LATER: RecipientResult = { status: DEFERRED, code: 450, enhanced: '4.2.1', text: '450 later' };
const NAMES = ['a@example.net', 'b@example.net', 'c@example.net'];

function ended(said: RecipientResult, more: Partial<AttemptResult> = {}): AttemptResult {
  return { results: [said], relay: `relay of ${said.text}`, setupMs: 1, transmitMs: 2, dotUnanswered: false, dsnPassedOn: true, ...more };
}

class World implements DeliverySource {
  readonly queue: MemoryQueue;
  readonly lane: Lane;
  readonly inFlight = { count: 0, onSettled: (): void => undefined };
  readonly settled: { delivery: Delivery; result: DeliveryResult }[] = [];
  constructor(concurrency: number, ordering: 'fifo' | 'strict' = 'fifo') {
    this.queue = new MemoryQueue({ nextHop: { protocol: 'smtp', host: 'hop.test', port: 25 }, concurrency, ordering });
    this.lane = new Lane(this.queue, this, this.inFlight);
  }
  take(queue: DeliveryQueue): Delivery | undefined {
    const entry = this.queue.waiting.shift();
    if (entry === undefined) return undefined;
    const envelope = envelopeTo(NAMES.slice(0, entry));
    const verp = { written: (id: number, recipient: string, sender: string) => `b+${String(id)}.${recipient.charAt(0)}.${sender}` };
    return { entry, queue, envelope, reversePath: verp.written(envelope.messageId, 'a', envelope.reversePath), verp, pending: envelope.recipients.map((_, i) => i), contentBytes: 10 };
  }
  copyContent(): void { assert.fail('nothing is sent'); }
  settle(delivery: Delivery, result: DeliveryResult): void { this.settled.push({ delivery, result }); }
  takeAll(): Delivery[] {
    const taken: Delivery[] = [];
    while (this.lane.startable > 0) {
      const delivery = this.lane.take();
      if (delivery === undefined) break;
      taken.push(delivery);
    }
    return taken;
  }
}

describe('cut deliveries', () => {
  test('as many at once as the route allows, each with its own reverse-path, and one result in the end', () => {
    const world = new World(2);
    world.queue.waiting.push(3);
    const taken = world.takeAll();
    assert.equal(taken.length, 2);
    const [first = assert.fail(), second = assert.fail()] = taken;
    assert.deepEqual([first.pending, second.pending], [[0], [1]]);
    assert.deepEqual([first, second].map(({ reversePath }) => reversePath.slice(0, -first.envelope.reversePath.length)), ['b+4711.a.', 'b+4711.b.'].map((text) => text.replace('4711', String(first.envelope.messageId))));
    world.lane.settle(second, ended(NO));
    const [third = assert.fail()] = world.takeAll();
    assert.deepEqual(third.pending, [2]);
    world.lane.settle(first, ended(OK));
    assert.equal(world.settled.length, 0);
    world.lane.settle(third, ended(LATER, { dotUnanswered: true, relay: 'the third' }));
    assert.equal(world.settled.length, 1);
    const [{ delivery, result } = assert.fail()] = world.settled;
    assert.deepEqual(delivery.pending, [0, 1, 2]);
    assert.deepEqual(result.results, [OK, NO, LATER]);
    assert.deepEqual(result.own?.map((own) => [own?.relay, own?.reversePath]), [
      ['relay of 250 ok', first.reversePath], ['relay of 550 no', second.reversePath], ['the third', third.reversePath],
    ]);
    assert.deepEqual([result.dotUnanswered, result.dsnPassedOn, world.inFlight.count, world.lane.waitingCount], [true, true, 0, 0]);
  });

  test('who was led out by an alias has the reverse-path of the whole, and none that is made', () => {
    const world = new World(3);
    const envelope = envelopeTo(NAMES);
    const recipients = envelope.recipients.map((each, at) => ({ ...each, notify: at === 1 ? ALIAS_LEAVES : 0 }));
    const verp = { written: (_id: number, recipient: string) => `b+${recipient}` };
    const whole: Delivery = { entry: 1, queue: world.queue, envelope: { ...envelope, recipients }, reversePath: 'srs', verp, pending: [0, 1, 2], contentBytes: 10 };
    const cut = new CutDelivery(whole);
    assert.deepEqual([cut.take(), cut.take(), cut.take()].map(({ reversePath }) => reversePath), ['b+a@example.net', 'srs', 'b+c@example.net']);
  });

  test('the next message waits until all parts of this one have begun; a strict queue has one in flight', () => {
    const fifo = new World(10);
    fifo.queue.waiting.push(2, 3, 1);
    assert.deepEqual(fifo.takeAll().map(({ entry, pending }) => [entry, pending]), [[2, [0]], [2, [1]], [3, [0]], [3, [1]], [3, [2]], [1, [0]]]);
    const strict = new World(10, 'strict');
    strict.queue.waiting.push(2);
    const [only] = strict.takeAll();
    assert.equal(strict.lane.startable, 0);
    strict.lane.settle(only ?? assert.fail(), ended(OK));
    assert.equal(strict.takeAll().length, 1);
  });

  test('a next hop that is not reached ends it: as no attempt before the first, else who was not begun has no result', () => {
    const world = new World(1);
    world.queue.waiting.push(3);
    world.lane.settleAll(world.takeAll()[0] ?? assert.fail(), 'away', LATER, 5);
    assert.deepEqual(world.settled.map(({ result }) => [result.notAttempted, result.results, result.relay]), [[true, [LATER, LATER, LATER], 'away']]);
    world.queue.waiting.push(3);
    world.lane.settle(world.takeAll()[0] ?? assert.fail(), ended(OK));
    world.lane.settleAll(world.takeAll()[0] ?? assert.fail(), 'away', LATER, 5);
    assert.deepEqual(world.settled.slice(1).map(({ result }) => [result.notAttempted, result.results]), [[undefined, [OK, undefined, undefined]]]);
    assert.deepEqual([world.inFlight.count, world.lane.waitingCount], [0, 0]);
    world.queue.waiting.push(2);
    world.lane.withoutRight(world.takeAll()[0] ?? assert.fail(), 'hop', LATER, 5);
    assert.equal(world.settled[2]?.result.noRight, true);
  });

  test('a stop begins no more parts, and gives it back when those in flight have ended', () => {
    const world = new World(1);
    world.queue.waiting.push(3);
    const [part] = world.takeAll();
    world.lane.endParts();
    assert.deepEqual([world.settled.length, world.lane.waitingCount], [0, 0]);
    world.lane.settle(part ?? assert.fail(), ended(OK));
    assert.deepEqual(world.settled[0]?.result.results, [OK, undefined, undefined]);
    world.queue.waiting.push(3);
    world.lane.settle(world.takeAll()[0] ?? assert.fail(), ended(OK));
    world.lane.endParts();
    assert.deepEqual(world.settled[1]?.result.results, [OK, undefined, undefined]);
  });

  test('one that gets no connection for ten seconds is given back', () => {
    const world = new World(1);
    world.queue.waiting.push(3);
    const [part] = world.takeAll();
    for (let i = 0; i < 60; i++) world.lane.tick();
    assert.equal(world.settled.length, 0, 'it is in flight');
    world.lane.settle(part ?? assert.fail(), ended(OK));
    for (let i = 0; i < 39; i++) world.lane.tick();
    assert.equal(world.settled.length, 0);
    world.lane.tick();
    assert.deepEqual(world.settled[0]?.result.results, [OK, undefined, undefined]);
  });

  test('one that takes thirty seconds is given back and goes on: whoever was deferred waits until all had their turn', () => {
    const world = new World(1);
    world.queue.waiting.push(3);
    world.lane.settle(world.takeAll()[0] ?? assert.fail(), ended(LATER));
    const [second] = world.takeAll();
    for (let i = 0; i < 119; i++) world.lane.tick();
    assert.equal(world.lane.waitingCount, 1);
    world.lane.tick();
    assert.deepEqual([world.lane.waitingCount, world.settled.length], [0, 0]);
    world.lane.settle(second ?? assert.fail(), ended(LATER));
    const { result: { results, goesOn } } = world.settled[0] ?? assert.fail();
    assert.deepEqual([results, goesOn], [[LATER, LATER, undefined], true]);
    world.queue.waiting.push(3);
    const [third] = world.takeAll();
    assert.deepEqual(third?.pending, [2]);
    world.lane.settleAll(third, 'away', LATER, 5);
    assert.equal(world.settled[1]?.result.notAttempted, true);
    world.queue.waiting.push(3);
    const [again] = world.takeAll();
    assert.deepEqual(again?.pending, [2]);
    world.lane.settle(again, ended(OK));
    assert.deepEqual([world.settled[2]?.result.results, world.settled[2]?.result.goesOn], [[undefined, undefined, OK], false]);
    world.queue.waiting.push(3);
    assert.deepEqual(world.takeAll()[0]?.pending, [0], 'the next attempt is one of all');
  });

  test('a next hop that takes mail for nobody fails all who were not begun', () => {
    const world = new World(1);
    world.queue.waiting.push(3);
    world.lane.settle(world.takeAll()[0] ?? assert.fail(), ended(OK));
    world.lane.settleAll(world.takeAll()[0] ?? assert.fail(), 'closed', NO, 5);
    const { result: { results, own, goesOn } } = world.settled[0] ?? assert.fail();
    assert.deepEqual([results, own?.map((one) => one?.relay), goesOn], [[OK, NO, NO], ['relay of 250 ok', 'closed', 'closed'], false]);
    assert.deepEqual([world.inFlight.count, world.lane.waitingCount], [0, 0]);
  });

  test('the relay of an unanswered dot is the one that is named', () => {
    const world = new World(1);
    world.queue.waiting.push(3);
    world.lane.settle(world.takeAll()[0] ?? assert.fail(), ended(LATER, { dotUnanswered: true, relay: 'silent' }));
    world.lane.settle(world.takeAll()[0] ?? assert.fail(), ended(OK));
    world.lane.settleAll(world.takeAll()[0] ?? assert.fail(), 'away', LATER, 5);
    const { result: { relay, dotUnanswered } } = world.settled[0] ?? assert.fail();
    assert.deepEqual([relay, dotUnanswered], ['silent', true]);
  });

  test('who took a recipient without DSN leaves its report to us', () => {
    const world = new World(2);
    world.queue.waiting.push(2);
    const parts = world.takeAll();
    world.lane.settle(parts[0] ?? assert.fail(), ended(OK, { dsnPassedOn: false }));
    world.lane.settle(parts[1] ?? assert.fail(), ended(OK));
    assert.equal(world.settled[0]?.result.dsnPassedOn, false);
  });
});
