/**
 * Copies that were given up come back: their mail is stored anew in the partition that went on without them, and
 * delivered, once (rule 16 of docs/model).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { QueueOrderAnswer } from '../../src/admin-api/queue-orders.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { stateOf } from './inspect.js';
import { loaded, partitionAt, recordOf, untilHeldBy } from './pair.js';
import type { Pair } from './pair.js';
import type { Answer } from './next-hop.js';
import type { StoreNode } from './store-node.js';
import type { HoldingCounters } from '../../src/gateway/ownership/holding.js';

/** Several blocks. */
const LETTERS = 300;
const HALF = LETTERS / 2;

/** gw-1 is dead, and gw-2 holds its partition, empty, at the third store: both copies were given up while they were silent. */
function givenUp(letters = LETTERS, answer: Answer = 'defer'): Pair {
  const pair = loaded({ partitions: 1 }, letters, answer);
  const { group, first, second } = pair;
  group.gateway('gw-1').kill();
  group.cutOff('gw-2', true, [first, second]);
  giveUpBoth(pair);
  return pair;
}

/** By gw-2, which reaches none of them. */
function giveUpBoth(pair: Pair): void {
  const { group, name, first, second } = pair;
  const holdings = group.gateway('gw-2').core?.holdings;
  group.until(() => holdings?.waiting().some(({ partition }) => partition === name) === true, 'the named state', 60_000);
  assert.deepEqual(holdings?.giveUp([first.id, second.id]).filter((one) => one === name), [name]);
  untilHeldBy(pair, 'gw-2', 1, 60_000);
  assert.equal(partitionAt(pair, 'gw-2')?.length, 0);
  assert.equal(recordOf(pair)?.gaveUp.length, 2);
}

function countersAt({ group }: Pair, id: string): HoldingCounters {
  const counters = group.gateway(id).core?.holdings.counters;
  assert.ok(counters !== undefined);
  return counters;
}

/** Of the mail in memory at gw-2. */
function leastAttempts(pair: Pair): number {
  const queue = partitionAt(pair, 'gw-2')?.queues.get('q1/mail');
  const table = pair.group.gateway('gw-2').core?.entries.table;
  let least = Infinity;
  for (let row = queue?.first ?? 0; row !== 0; row = queue?.following(row) ?? 0) {
    least = Math.min(least, table?.attempts.get(row) ?? 0);
  }
  return least;
}

/** Turns one byte of a message in a copy; the first one is number 0. */
function damage({ store }: StoreNode, name: string, nth: number): void {
  const copy = store?.partitions.find(name);
  assert.ok(store !== undefined && copy !== undefined);
  let row = copy.first;
  for (let i = 0; i < nth; i++) row = store.entries.nextOf(row);
  const bytes = store.segments.read(store.entries.slotOf(row));
  bytes[0] = (bytes[0] ?? 0) ^ 0xff;
}

function allDelivered(pair: Pair, letters = LETTERS): void {
  const { group } = pair;
  group.hops.script = () => 'accept';
  group.until(() => group.letters.delivered === letters, 'all deliveries', 120_000);
  group.until(() => recordOf(pair)?.gaveUp.every(({ isGone }) => isGone === true) === true, 'that no copy counts as given up', 60_000);
  group.run(5000);
  checkNoLoss(group.letters);
}

describe('a copy that was given up and is back', () => {
  test('is taken in before an operator leads its mail by another route', () => {
    const pair = givenUp();
    const { group, name } = pair;
    group.hops.script = ({ queueName }) => (queueName === 'q2' ? 'accept' : 'defer');
    group.cutOff('gw-2', false);
    const partition = partitionAt(pair, 'gw-2');
    const { orders } = group.gateway('gw-2').core ?? assert.fail();
    group.until(() => partition?.isAdopting === true && partition.length > 0, 'a part of it', 60_000);
    group.cutOff('gw-2', true, [pair.first, pair.second]);
    const begun = orders.begin({ verb: 'rebind', selector: { everything: true }, route: 'q2', reason: 'a test', who: 'ann' });
    assert.ok(typeof begun !== 'string');
    const answer = (): QueueOrderAnswer => orders.answerOf(begun.order) ?? assert.fail();
    group.until(() => answer().phase === 'found', 'all is looked at');
    assert.ok(orders.go(begun.order, 0));
    group.until(() => answer().waits_for === 'a copy of its partition is being taken in' || partition?.isAdopting === false, 'why it waits');
    assert.deepEqual([partition?.name, partition?.isAdopting, answer().done], [name, true, 0]);
    group.cutOff('gw-2', false);
    group.until(() => answer().phase === 'done', 'the order is done', 120_000);
    assert.ok(answer().done > 0);
    allDelivered(pair);
    checkNoDuplicates(group.letters);
  });

  test('does not end who takes it in by a report that ended two processes', () => {
    const pair = loaded({ partitions: 1 }, 3);
    const { group, first, second } = pair;
    const [poison, ...others] = group.letters.all;
    assert.ok(poison !== undefined);
    group.cutOff('gw-2', true, [first, second]);
    group.poison.add(poison.id);
    group.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'reject');
    const owner = group.gateway('gw-1');
    group.until(() => !owner.isAlive, 'its first end');
    owner.start();
    group.until(() => owner.core !== undefined, 'another process');
    group.until(() => !owner.isAlive, 'its second end');
    giveUpBoth(pair);
    group.cutOff('gw-2', false);
    const { core } = group.gateway('gw-2');
    assert.ok(core !== undefined);
    group.until(() => stateOf(core, 'q1', poison) === EntryState.HELD, 'the hold', 60_000);
    group.until(() => others.every(({ reports }) => reports.size === 1), 'other reports', 60_000);
    assert.deepEqual([group.gateway('gw-2').isAlive, poison.reports.size], [true, 0]);
  });

  test('gives its mail to who holds the partition: each message once, and its store is filled again', () => {
    const pair = givenUp();
    const { group } = pair;
    const fresh = group.submit('gw-2', ['q2']);
    group.cutOff('gw-2', false);
    group.until(() => partitionAt(pair, 'gw-2')?.length === LETTERS, 'all of it', 60_000);
    assert.ok(leastAttempts(pair) >= 1, 'what was tried of it is known');
    untilHeldBy(pair, 'gw-2', 2, 60_000);
    assert.deepEqual(recordOf(pair)?.gaveUp, []);
    const copies = (): number => group.stores.filter(({ store }) => store?.partitions.find(pair.name) !== undefined).length;
    group.until(() => copies() === 2, 'that the other store drops what it was told is out');
    const { adopted, adoptedTwice } = countersAt(pair, 'gw-2');
    assert.deepEqual([adopted, adoptedTwice], [LETTERS, 0]);
    allDelivered(pair, LETTERS + 1);
    assert.equal(fresh.arrivals.size, 1);
    checkNoDuplicates(group.letters);
  });

  test('is read when only one of two is back: the other brings nothing twice', () => {
    const pair = givenUp();
    const { group, second, first } = pair;
    group.cutOff('gw-2', false, [second]);
    allDelivered(pair);
    assert.deepEqual(recordOf(pair)?.gaveUp, []);
    group.cutOff('gw-2', false, [first]);
    group.run(20_000);
    assert.equal(countersAt(pair, 'gw-2').adopted, LETTERS);
    assert.equal(first.store?.partitions.find(pair.name)?.count ?? 0, 0, 'its store was told');
    checkNoDuplicates(group.letters);
  });

  test('is not over with another one that has nothing more, before all that was taken in is everywhere', () => {
    const few = 10;
    const pair = givenUp(few);
    const { group, first, second, third } = pair;
    assert.ok(third !== undefined);
    group.cutOff('gw-2', false);
    group.until(() => countersAt(pair, 'gw-2').adopted === few, 'its only block', 60_000);
    // Nothing more is acknowledged, for less time than a link is waited for.
    group.network.holdAnswers('gw-2', third.id, true);
    const left = [first, second].filter(({ store }) => store?.partitions.find(pair.name)?.fence.holder?.gatewayId !== 'gw-2');
    assert.equal(left.length, 1, 'the other one is not read yet');
    const [read] = [first, second].filter((one) => !left.includes(one));
    read?.kill();
    group.run(1000);
    assert.equal(recordOf(pair)?.gaveUp.length, 2);
    group.network.holdAnswers('gw-2', third.id, false);
    allDelivered(pair, few);
    assert.equal(countersAt(pair, 'gw-2').adopted, few);
    checkNoDuplicates(group.letters);
  });

  test('goes on with its successor when the holder dies in the middle; what may repeat is counted', () => {
    const pair = givenUp();
    const { group, first } = pair;
    group.hops.script = () => 'accept';
    // What is taken in is delivered before the next block comes.
    group.network.slow('gw-2', first.id, 100);
    group.cutOff('gw-2', false, [first]);
    group.until(() => countersAt(pair, 'gw-2').adopted >= HALF, 'half of it');
    assert.ok(group.letters.delivered >= HALF - 64);
    group.gateway('gw-2').kill();
    assert.ok(group.letters.delivered < LETTERS);
    group.network.slow('gw-2', first.id, 0);
    group.run(2000);
    group.gateway('gw-2').start();
    group.cutOff('gw-2', false);
    allDelivered(pair);
    const { adopted, adoptedTwice } = countersAt(pair, 'gw-2');
    assert.ok(adopted < LETTERS, `${String(adopted)} again`);
    const repeats = group.letters.all.filter(({ arrivals }) => [...arrivals.values()].some((count) => count > 1)).length;
    assert.ok(repeats <= adoptedTwice, `${String(repeats)} repeats, ${String(adoptedTwice)} counted`);
    assert.ok(repeats <= 64, 'a block');
  });

  test('goes on from the other copy when its store dies in the middle', () => {
    const pair = givenUp();
    const { group, first, second } = pair;
    group.cutOff('gw-2', false, [first]);
    group.until(() => countersAt(pair, 'gw-2').adopted >= HALF, 'half of it');
    first.kill();
    group.run(5000);
    assert.ok(countersAt(pair, 'gw-2').adopted < LETTERS);
    group.cutOff('gw-2', false, [second]);
    allDelivered(pair);
    assert.equal(countersAt(pair, 'gw-2').adopted, LETTERS);
    first.start();
    untilHeldBy(pair, 'gw-2', 2, 60_000);
    checkNoDuplicates(group.letters);
  });

  for (const isTogether of [true, false]) {
    const when = isTogether ? 'that is back with it' : 'that is back later';
    test(`with damaged messages does not stand for the other one ${when}: that brings these, and nothing twice`, () => {
      const pair = givenUp();
      const { group, first, second } = pair;
      group.hops.script = () => 'accept';
      for (const nth of [0, 1, 100, LETTERS - 1]) damage(first, pair.name, nth);
      group.cutOff('gw-2', false, [first]);
      if (isTogether) {
        for (const nth of [2, 200]) damage(second, pair.name, nth);
        group.cutOff('gw-2', false, [second]);
      } else {
        group.until(() => group.letters.delivered === LETTERS - 4, 'what is sound', 60_000);
        group.until(() => recordOf(pair)?.gaveUp.length === 1, 'the end of the damaged copy', 60_000);
        group.cutOff('gw-2', false);
      }
      allDelivered(pair);
      checkNoDuplicates(group.letters);
      assert.equal(countersAt(pair, 'gw-2').adopted, LETTERS);
    });
  }

  test('with damaged messages is known as such to the next holder, too', () => {
    const pair = givenUp();
    const { group, first } = pair;
    damage(first, pair.name, 0);
    group.network.slow('gw-2', first.id, 100);
    group.cutOff('gw-2', false, [first]);
    group.until(() => countersAt(pair, 'gw-2').adopted >= HALF, 'half of it');
    group.gateway('gw-2').kill();
    group.network.slow('gw-2', first.id, 0);
    group.run(2000);
    group.gateway('gw-2').start();
    group.until(() => group.gateway('gw-2').link(first.id)?.isUp === true, 'its link');
    group.until(() => recordOf(pair)?.gaveUp.length === 1, 'the end of the damaged copy', 60_000);
    group.cutOff('gw-2', false);
    for (const letter of group.letters.all) letter.mayRepeat = true;
    allDelivered(pair);
  });

  test('is none any more when its store is seen in a new boot', () => {
    const pair = givenUp();
    const { group, first, second } = pair;
    first.kill();
    second.kill();
    group.cutOff('gw-2', false);
    first.start();
    second.start();
    group.until(() => recordOf(pair)?.gaveUp.length === 0, 'that no copy counts as given up', 60_000);
    untilHeldBy(pair, 'gw-2', 2, 60_000);
    assert.equal(countersAt(pair, 'gw-2').adopted, 0);
  });

  test('is read only when who was deposed can commit there no more', () => {
    const pair = loaded({ partitions: 1 });
    const { group, name, first, second } = pair;
    group.freeze('gw-1');
    group.cutOff('gw-2', true, [first, second]);
    const holdings = group.gateway('gw-2').core?.holdings;
    group.until(() => holdings?.waiting().some(({ partition }) => partition === name) === true, 'the named state', 60_000);
    group.thaw('gw-1');
    const late = group.submit('gw-1', ['q1']);
    assert.deepEqual(holdings?.giveUp([first.id, second.id]).filter((one) => one === name), [name]);
    untilHeldBy(pair, 'gw-2', 1, 60_000);
    group.cutOff('gw-2', false);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.all.every(({ arrivals, outcome }) => arrivals.size === 1 || outcome !== 1), 'all deliveries', 60_000);
    group.run(5000);
    assert.ok(late.arrivals.size <= 1);
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });

  test('is read only when who was deposed can deliver by it no more', () => {
    const pair = loaded({ partitions: 1 });
    const { group, name, first, second } = pair;
    group.freeze('gw-1');
    group.cutOff('gw-2', true, [first, second]);
    const holdings = group.gateway('gw-2').core?.holdings;
    group.until(() => holdings?.waiting().some(({ partition }) => partition === name) === true, 'the named state', 60_000);
    assert.deepEqual(holdings?.giveUp([first.id, second.id]).filter((one) => one === name), [name]);
    untilHeldBy(pair, 'gw-2', 1, 60_000);
    // It has leases anew, and hears of nothing any more.
    group.gateway('gw-1').register?.cutOff();
    group.thaw('gw-1');
    const mayDeliver = (): boolean => partitionAt(pair, 'gw-1')?.holder.mayDeliver(group.scheduler.nowMs) === true;
    group.until(mayDeliver, 'its leases');
    group.cutOff('gw-1', true);
    group.cutOff('gw-2', false);
    let waitedMs = 0;
    for (; mayDeliver(); waitedMs += 10) {
      assert.equal(countersAt(pair, 'gw-2').adopted, 0);
      group.run(10);
    }
    assert.ok(waitedMs > 1000, `it could deliver for ${String(waitedMs)} ms`);
    group.until(() => countersAt(pair, 'gw-2').adopted === 5, 'what the copies had', 60_000);
  });
});

/** Half of what the first copy has is taken in by gw-2, and the first is away again: gw-2 dies, and the third store with it. */
function lostHalfway(pair: Pair): void {
  const { group, first, third = assert.fail('there are three') } = pair;
  group.network.slow('gw-2', first.id, 100);
  group.cutOff('gw-2', false, [first]);
  group.until(() => countersAt(pair, 'gw-2').adopted >= HALF, 'half of it');
  assert.ok((first.store?.partitions.find(pair.name)?.count ?? LETTERS) < LETTERS, 'it is out of the copy');
  group.cutOff('gw-2', true, [first]);
  group.network.slow('gw-2', first.id, 0);
  group.gateway('gw-2').kill();
  third.kill();
}

function untilAwaited({ group, name }: Pair): void {
  group.until(() => group.gateway('gw-2').core?.holdings.waiting().some(({ partition }) => partition === name) === true, 'the named state', 60_000);
}

function allDeliveredAtLeastOnce(pair: Pair): void {
  for (const letter of pair.group.letters.all) letter.mayRepeat = true;
  allDelivered(pair);
}

describe('a copy that was taken in halfway, when the other half is lost', () => {
  test('does not stand for the one that counted with it', () => {
    const pair = givenUp();
    const { group, name, first, second, third } = pair;
    lostHalfway(pair);
    third?.start();
    group.gateway('gw-2').start();
    // It knows that its life before is dead, and asks only what stores have that are silent.
    const isGivenUp = (): boolean => group.gateway('gw-2').core?.holdings.giveUp([first.id, second.id]).includes(name) === true;
    group.until(isGivenUp, 'the named state, and the order', 60_000);
    untilHeldBy(pair, 'gw-2', 1, 60_000);
    group.cutOff('gw-2', false);
    group.until(() => second.store?.partitions.find(pair.name)?.fence.holder?.gatewayId === 'gw-2', 'that the other one is read, too', 60_000);
    allDeliveredAtLeastOnce(pair);
  });

  test('is not read in its place where no store is free; that is a loss, and one order is enough for it', () => {
    const pair = givenUp();
    const { group, name, third = assert.fail() } = pair;
    lostHalfway(pair);
    group.gateway('gw-2').start();
    untilAwaited(pair);
    group.cutOff('gw-2', false);
    group.run(2000);
    assert.deepEqual(group.gateway('gw-2').core?.holdings.giveUp([third.id]).filter((one) => one === name), [name]);
    untilHeldBy(pair, 'gw-2', 2, 60_000);
    assert.equal(countersAt(pair, 'gw-2').losses, 1);
    third.start();
    allDeliveredAtLeastOnce(pair);
  });
});
