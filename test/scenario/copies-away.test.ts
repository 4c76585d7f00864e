/**
 * Every copy of a partition that counts is at stores that do not answer: the one state that asks a person, with its one
 * order (G2b; docs/model, rules 8 and 16).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import type { WaitingPartition } from '../../src/gateway/ownership/holdings.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { Group } from './group.js';
import { LETTERS, judged, loaded, oneDeliversAtMost, partitionAt, recordOf, untilHeldBy } from './pair.js';
import type { Pair } from './pair.js';
import type { StoreNode } from './store-node.js';

function waitingAt(group: Group, id: string): readonly WaitingPartition[] {
  return group.gateway(id).core?.holdings.waiting() ?? [];
}

/** gw-1 is dead, and nobody reaches the copies of its partition. */
function away(how: 'silent' | 'dead', options: Parameters<typeof loaded>[0] = {}): Pair & { readonly copies: readonly StoreNode[] } {
  const pair = loaded(options);
  const { group, first, second } = pair;
  const copies = [first, second];
  group.gateway('gw-1').kill();
  if (how === 'dead') for (const store of copies) store.kill();
  else group.cutOff('gw-2', true, copies);
  return { ...pair, copies };
}

describe('every copy that counts is away', () => {
  for (const how of ['silent', 'dead'] as const) {
    test(`is shown by the gateway that would take over, with the order to give (${how}); what has a copy elsewhere is served`, () => {
      const pair = away(how);
      const { group, name, first, second } = pair;
      group.until(() => waitingAt(group, 'gw-2').some(({ partition }) => partition === name), 'the named state', 60_000);
      group.run(20_000);
      const waiting = waitingAt(group, 'gw-2').filter(({ partition }) => partition.startsWith('gw-1/'));
      assert.deepEqual(waiting.map(({ partition, owner, waitsFor }) => [partition, owner, waitsFor]), waiting.map(({ partition }) => [partition, 'gw-1', 'copies away']));
      const mine = waiting.find(({ partition }) => partition === name);
      const [one, other] = [first.id, second.id].sort();
      assert.equal(mine?.why, `every copy that counts is at stores that do not answer this gateway (${one}, ${other}). It goes on by itself when one of them answers with what it had. If none ever will, give these copies up: twinpost rescue --give-up ${one} --give-up ${other} --reason TEXT`);
      assert.ok(waiting.length < 4, 'a partition with a copy at the third store waits for nobody');
      assert.equal(group.served('gw-2', 'gw-1').length, 4 - waiting.length);
    });
  }

  test('goes on by itself when one is back', () => {
    const pair = away('silent');
    const { group, name, first } = pair;
    group.until(() => waitingAt(group, 'gw-2').some(({ partition }) => partition === name), 'the named state', 60_000);
    group.cutOff('gw-2', false, [first]);
    untilHeldBy(pair, 'gw-2', 1, 60_000);
    assert.deepEqual(waitingAt(group, 'gw-2'), []);
    group.cutOff('gw-2', false);
    group.gateway('gw-1').start();
    judged(pair);
  });

  for (const order of ['--give-up STORE', '--give-up-memory'] as const) {
    test(`names as away only what does not answer; when all stores answer without it, the process that may have it (${order})`, () => {
      const pair = away('dead');
      const { group, name, first, second } = pair;
      const waits = (id: string): WaitingPartition | undefined => waitingAt(group, id).find(({ partition }) => partition === name);
      first.start();
      group.until(() => waits('gw-2')?.why.includes('do not answer') === true, 'the named state', 60_000);
      assert.match(waits('gw-2')?.why ?? '', new RegExp(`stores that do not answer this gateway \\(${second.id}\\)\\. .*: twinpost rescue --give-up ${second.id} --reason TEXT$`));
      const { holdings } = group.gateway('gw-2').core ?? assert.fail('it lives');
      if (order === '--give-up-memory') {
        second.start();
        group.until(() => waits('gw-2')?.copies.length === 0, 'the other state', 60_000);
        assert.match(waits('gw-2')?.why ?? '', /^no store has a copy that counts any more; gw-1 \(incarnation 1\) may still have it in memory, .* start gw-1 on its machine.*: twinpost rescue --give-up-memory --reason TEXT$/);
        assert.deepEqual(holdings.giveUp([first.id, second.id]), [], 'no store is waited for');
      }
      const given = holdings.giveUp(order === '--give-up-memory' ? [] : [second.id]);
      holdings.noteGivenUp(given, { who: 'ann', reason: order });
      assert.ok(given.includes(name), String(given));
      group.until(() => waits('gw-2')?.waitsFor === 'lease', 'the wait for leases', 60_000);
      assert.equal(waits('gw-2')?.why, 'this process has taken it, and waits until leases that earlier holders may have are over');
      untilHeldBy(pair, 'gw-2', 2, 60_000);
      assert.deepEqual(waitingAt(group, 'gw-2'), []);
      assert.equal(holdings.counters.losses, given.length);
      assert.deepEqual(holdings.losses.map(({ partition, by }) => [partition, by]).sort(), given.map((one) => [one, { who: 'ann', reason: order }]).sort());
    });
  }

  test('is no state of a store that is seen in a new boot: its copy is surely gone, and the loss is counted', () => {
    const pair = away('dead');
    const { group, first, second } = pair;
    group.run(10_000);
    first.start();
    second.start();
    // The next process of the owner knows by its lock file that nobody has it in memory.
    group.gateway('gw-1').start();
    untilHeldBy(pair, 'gw-1', 2, 60_000);
    assert.deepEqual(waitingAt(group, 'gw-1'), []);
    const { counters, losses } = group.gateway('gw-1').core?.holdings ?? assert.fail('it lives');
    assert.ok(counters.losses >= 1);
    assert.deepEqual([losses.length, losses.some(({ partition }) => partition === pair.name), losses[0]?.by], [counters.losses, true, undefined]);
    assert.ok(group.log.count('it begins empty') >= 1);
  });
});

describe('copies that are given up', () => {
  test('while a process that the register does not hear has copies: it begins nowhere, and status says who lives', () => {
    const pair = loaded({ stores: 3 });
    const { group, name, first, second } = pair;
    const at = (id: string): WaitingPartition | undefined => waitingAt(group, id).find(({ partition }) => partition === name);
    const owner = group.gateway('gw-1').register ?? assert.fail('it runs');
    owner.cutOff();
    for (const store of [first, second]) store.kill();
    second.start();
    group.until(() => at('gw-2')?.waitsFor === 'copies away', 'the named state', 60_000);
    const { waitsFor, messages } = at('gw-1') ?? assert.fail('it waits');
    assert.deepEqual([waitsFor, messages, at('gw-2')?.messages], ['register', LETTERS, 0], 'who gives the order is told');
    const { holdings } = group.gateway('gw-2').core ?? assert.fail('it lives');
    assert.ok(holdings.giveUp([first.id]).includes(name));
    group.until(() => at('gw-2')?.waitsFor === 'stores', 'that it is shown again', 60_000);
    const refusing = group.stores.filter((store) => store !== first).map(({ id }) => id).sort().join(', ');
    assert.equal(at('gw-2')?.why, `it was to begin anew, and does not: a process that lives has a copy at ${refusing}. That process must not be restarted: `
      + 'let it reach the register and the stores, and it goes on by itself. The register names gw-1 (incarnation 1).');
    const said = group.log.count('a partition waits for a person');
    group.until(() => at('gw-2')?.waitsFor === 'copies away', 'the alarm', 60_000);
    assert.deepEqual([at('gw-2')?.copies, at('gw-2')?.beginsEmpty, holdings.giveUp([]), holdings.giveUp(refusing.split(', '))],
      [refusing.split(', '), false, [], []], 'no order helps');
    group.until(() => group.log.count('a partition waits for a person') > said, 'who reads only the log is told', 5000);
    owner.mend();
    untilHeldBy(pair, 'gw-1', 2, 60_000);
    assert.equal(partitionAt(pair, 'gw-1')?.length, LETTERS);
    judged(pair);
  });

  test('and one is back before it begins empty: it is read, and what is lost later is not by that order', () => {
    const pair = away('silent');
    const { group, name, copies, third } = pair;
    third?.kill();
    group.until(() => waitingAt(group, 'gw-2').some(({ partition }) => partition === name), 'the named state', 60_000);
    group.run(3000);
    const { holdings } = group.gateway('gw-2').core ?? assert.fail('it lives');
    const given = holdings.giveUp(copies.map(({ id }) => id));
    holdings.noteGivenUp(given, { who: 'ann', reason: 'burnt' });
    assert.ok(given.includes(name));
    group.cutOff('gw-2', false);
    untilHeldBy(pair, 'gw-2', 2, 60_000);
    assert.equal(partitionAt(pair, 'gw-2')?.length, LETTERS);
    group.gateway('gw-1').start();
    untilHeldBy(pair, 'gw-1', 2, 60_000);
    for (const store of copies) store.kill();
    group.gateway('gw-1').kill();
    for (const store of copies) store.start();
    third?.start();
    group.until(() => waitingAt(group, 'gw-2').some(({ partition }) => partition === name), 'the named state', 60_000);
    assert.ok(holdings.giveUp([]).includes(name));
    group.until(() => holdings.losses.length > 0, 'that it begins', 60_000);
    assert.deepEqual(holdings.losses.filter(({ by }) => by !== undefined), []);
  });

  test('let the partition go on without them, empty; new mail is taken, and the loss is counted', () => {
    const pair = away('dead');
    const { group, name, copies } = pair;
    group.until(() => waitingAt(group, 'gw-2').some(({ partition }) => partition === name), 'the named state', 60_000);
    const holdings = group.gateway('gw-2').core?.holdings;
    const given = holdings?.giveUp(copies.map(({ id }) => id)) ?? [];
    assert.ok(given.includes(name));
    assert.deepEqual(given.filter((one) => !one.startsWith('gw-1/')), [], 'what is served is not touched');
    untilHeldBy(pair, 'gw-2', 1, 60_000);
    assert.deepEqual(waitingAt(group, 'gw-2'), []);
    assert.equal(holdings?.counters.losses, given.length);
    assert.deepEqual(recordOf(pair)?.gaveUp.map(({ storeId }) => storeId).sort(), copies.map(({ id }) => id).sort());
    group.gateway('gw-1').start();
    untilHeldBy(pair, 'gw-1', 1, 60_000);
    const fresh = group.submit('gw-1', ['q1']);
    group.hops.script = () => 'accept';
    group.until(() => fresh.arrivals.size === 1, 'new mail');
  });

  test('is an order for what waits: nothing that is held, or has a copy that answers, is given up by it', () => {
    const pair = loaded();
    const { group, first, second } = pair;
    assert.deepEqual(group.gateway('gw-1').core?.holdings.giveUp([first.id, second.id]), []);
    first.kill();
    group.run(3000);
    assert.deepEqual(group.gateway('gw-1').core?.holdings.giveUp([first.id, second.id]), []);
    assert.equal(partitionAt(pair, 'gw-1')?.length, LETTERS);
    first.start();
    judged(pair);
  });

  test('are none of a partition whose holder lives, though nobody else reaches its copies', () => {
    const pair = loaded();
    const { group, first, second } = pair;
    group.cutOff('gw-2', true, [first, second]);
    group.run(20_000);
    assert.deepEqual(group.gateway('gw-2').core?.holdings.giveUp([first.id, second.id]).filter((one) => one.startsWith('gw-1/')), []);
    oneDeliversAtMost(group, 5000);
    assert.equal(recordOf(pair)?.holder.gatewayId, 'gw-1');
    group.cutOff('gw-2', false);
    judged(pair);
  });

  test('are all that count: the order that names one of two does nothing, the other is waited for', () => {
    const pair = away('silent');
    const { group, name, first, second } = pair;
    group.until(() => waitingAt(group, 'gw-2').some(({ partition }) => partition === name), 'the named state', 60_000);
    assert.deepEqual(group.gateway('gw-2').core?.holdings.giveUp([first.id]).filter((one) => one === name), []);
    group.run(10_000);
    assert.equal(partitionAt(pair, 'gw-2'), undefined);
    group.cutOff('gw-2', false, [second]);
    untilHeldBy(pair, 'gw-2', 1, 60_000);
    assert.equal(partitionAt(pair, 'gw-2')?.length, LETTERS);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === LETTERS, 'all deliveries');
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });
});

const MEBIBYTE = 1024 * 1024;
const HEAVY = 200;

/**
 * gw-2 reads the partition of a dead gw-1, more than it can hold, from one copy. The other copy, which has all of it, is
 * cut off and leaves the record; then the store that is read restarts, empty.
 */
function heirAway(): { readonly group: Group; readonly heir: StoreNode } {
  const group = Group.started({
    partitions: 1, queues: ['dead', 'well'].map((name) => ({ name, ordering: 'fifo' })), memoryBytes: { 'gw-2': 4 * MEBIBYTE },
    storeMemoryBytes: 64 * MEBIBYTE, blockEntries: 10, littleBytes: 0, stores: 3,
  });
  group.hops.script = () => 'defer';
  for (let i = 0; i < HEAVY; i++) {
    const letter = group.submit('gw-1', ['dead'], 'alice@senders.example', 40_000);
    group.until(() => letter.outcome === COMMITTED, 'its 250');
  }
  group.gateway('gw-1').kill();
  group.until(() => group.served('gw-2', 'gw-1').some((one) => !one.isRecovering), 'the index');
  group.run(1000);
  const { set, rows } = group.served('gw-2', 'gw-1')[0] ?? assert.fail('it is read');
  const nodeOf = (storeId = ''): StoreNode => group.stores.find(({ id }) => id === storeId) ?? assert.fail(storeId);
  const source = set?.source;
  const read = nodeOf(source?.storeId);
  const heir = nodeOf(rows.find((row) => row.isRecorded && row !== source)?.storeId);
  group.cutOff('gw-2', true, [heir]);
  group.until(() => group.served('gw-2', 'gw-1')[0]?.memberCount === 1, 'that it leaves', 20_000);
  read.kill();
  group.run(3000);
  read.start();
  group.until(() => waitingAt(group, 'gw-2').some(({ waitsFor }) => waitsFor === 'copies away'), 'the named state', 60_000);
  return { group, heir };
}

describe('the copy that left while another was read, when that one is gone', () => {
  test('is named, and read when it is back', () => {
    const { group, heir } = heirAway();
    const waiting = waitingAt(group, 'gw-2').filter(({ partition }) => partition === 'gw-1/0');
    assert.deepEqual(waiting.map(({ copies }) => copies), [[heir.id]]);
    assert.match(waiting[0]?.why ?? '', new RegExp(`do not answer this gateway \\(${heir.id}\\)\\. .*: twinpost rescue --give-up ${heir.id} --reason TEXT$`));
    assert.deepEqual(group.gateway('gw-2').core?.holdings.giveUp([]), [], 'nothing is only in memory');
    group.cutOff('gw-2', false, [heir]);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === HEAVY, 'all deliveries', 120_000);
    assert.equal(group.gateway('gw-2').core?.holdings.counters.losses, 0);
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });

  test('is taken in when it is back after it was given up', () => {
    const { group, heir } = heirAway();
    const { holdings } = group.gateway('gw-2').core ?? assert.fail('it lives');
    const given = holdings.giveUp([heir.id]);
    holdings.noteGivenUp(given, { who: 'ann', reason: 'burnt' });
    assert.deepEqual(given, ['gw-1/0']);
    group.until(() => holdings.losses.length > 0, 'that it begins', 60_000);
    group.run(10_000);
    assert.deepEqual(waitingAt(group, 'gw-2'), []);
    group.cutOff('gw-2', false, [heir]);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === HEAVY, 'all deliveries', 120_000);
    checkNoLoss(group.letters);
  });

  test('is taken in by the next process, too, which knows of it by the record only, when memory is given up', () => {
    const { group } = heirAway();
    group.gateway('gw-2').kill();
    group.gateway('gw-1').start();
    group.until(() => waitingAt(group, 'gw-1').some(({ waitsFor }) => waitsFor === 'copies away'), 'the named state', 60_000);
    assert.deepEqual(group.gateway('gw-1').core?.holdings.giveUp([]), ['gw-1/0']);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === HEAVY, 'all deliveries', 120_000);
    checkNoLoss(group.letters);
  });
});

describe('a store that never comes back, when all copies are gone by another fault', () => {
  function thirdBurnt(): Pair & { readonly burnt: string } {
    const pair = loaded({}, LETTERS, 'defer');
    const { group, first, second, third } = pair;
    third?.kill();
    group.run(60_000);
    group.gateway('gw-1').kill();
    for (const store of [first, second]) store.kill();
    group.run(1000);
    for (const store of [first, second]) store.start();
    return { ...pair, burnt: third?.id ?? '' };
  }

  test('is named by who waits for it to say what it knows, and is not waited for by the order', () => {
    const pair = thirdBurnt();
    const { group, name, burnt } = pair;
    group.gateway('gw-1').start();
    group.until(() => waitingAt(group, 'gw-1').some(({ waitsFor }) => waitsFor === 'copies away'), 'the named state', 60_000);
    const { holdings } = group.gateway('gw-1').core ?? assert.fail('it lives');
    const mine = waitingAt(group, 'gw-1').find(({ partition }) => partition === name) ?? assert.fail('it waits');
    assert.deepEqual(mine.copies, [burnt]);
    assert.match(mine.why, new RegExp(`^every copy that the register knows of is gone, .*; silent: ${burnt}\\. .*: twinpost rescue --give-up ${burnt} --reason TEXT$`));
    assert.deepEqual(holdings.giveUp(['store-z']), []);
    const given = holdings.giveUp([burnt]);
    holdings.noteGivenUp(given, { who: 'ann', reason: 'burnt' });
    assert.ok(given.includes(name), String(given));
    untilHeldBy(pair, 'gw-1', 2, 60_000);
    assert.deepEqual(waitingAt(group, 'gw-1'), []);
    assert.equal(holdings.counters.losses, given.length);
    assert.deepEqual(holdings.losses.map(({ by }) => by), given.map(() => ({ who: 'ann', reason: 'burnt' })));
    const fresh = group.submit('gw-1', ['q1']);
    group.hops.script = () => 'accept';
    group.until(() => fresh.arrivals.size === 1, 'new mail');
  });

  test('says that it knows nothing when it is back after all: then the partition begins by itself', () => {
    const pair = thirdBurnt();
    const { group } = pair;
    group.gateway('gw-1').start();
    group.until(() => waitingAt(group, 'gw-1').some(({ waitsFor }) => waitsFor === 'copies away'), 'the named state', 60_000);
    pair.third?.start();
    untilHeldBy(pair, 'gw-1', 2, 60_000);
    assert.deepEqual(waitingAt(group, 'gw-1'), []);
  });
});
