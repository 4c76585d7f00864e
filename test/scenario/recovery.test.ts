/** A gateway that died and came back, with its stores in every condition (G2, G3, G8, G9). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COMMITTED, NOT_READY, REFUSED } from '../../src/gateway/mail-types.js';
import { doById } from './by-id.js';
import { checkAll } from './checks.js';
import { coreOf, copiesOf, onlyQueue } from './inspect.js';
import type { StoreNode } from './store-node.js';
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import type { MailQueue } from '../../src/gateway/queue/mail-queue.js';
import { World } from './world.js';

function quietAndJudged(world: World): void {
  world.untilQuiet();
  checkAll(world.letters, world.queueNames);
  world.assertSameContent();
}

/** Mail that waits in the queues: nothing is delivered before the restart. */
function loaded(count: number, names: readonly string[], options: ConstructorParameters<typeof World>[0] = {}): World {
  const world = World.started(options);
  world.hops.script = () => 'hang';
  world.submitMany(count, names);
  world.run(100);
  assert.equal(world.letters.count(COMMITTED), count);
  return world;
}

test('the only copy dies while it is read: what is dropped with it is told as lost, and not as another process\'s', () => {
  const world = World.started({ stores: 2, partitions: 1, blockEntries: 5, queues: [{ name: 'q1' }] });
  world.hops.script = () => 'defer';
  world.submitMany(2000, ['q1']);
  world.run(1000);
  world.store('b').kill();
  world.run(3000);
  restart(world);
  world.hops.script = () => 'defer';
  world.until(() => world.gateway.core?.accepting === true, 30_000, 'accepting');
  const fresh = Array.from({ length: 20 }, () => world.submit(['q1']));
  world.until(() => fresh.every(({ outcome }) => outcome === COMMITTED), 10_000, 'commits');
  assert.equal(coreOf(world).registry.partitions[0]?.isPartial, true);
  world.store('a').kill();
  world.store('a').start();
  world.store('b').start();
  const told = 'the only copy of a partition is gone before all of it was read here';
  world.until(() => world.log.count(told) === 1 && coreOf(world).holdings.counters.losses === 1, 60_000, 'that the loss is told');
  assert.equal(world.log.count('another process\'s now'), 0);
  assert.equal(coreOf(world).holdings.counters.lost, 0);
});

/** What a block brings: all of a message, or its envelope alone, and the body when it is needed. */
const WAYS = [['with its block', {}], ['later', { littleBytes: 0 }]] as const;

function restart(world: World): void {
  world.gateway.kill();
  world.hops.script = () => 'accept';
  world.gateway.start();
}

/** Turns one byte of the body that the newest entry of this gateway's mail shares with others. */
function damageShared(store: StoreNode, messageId: number): void {
  const memory = store.store;
  const account = memory?.account('gw-1');
  assert.ok(memory !== undefined && account !== undefined);
  const bytes = memory.segments.read(memory.shared.slotOf(memory.shared.find(account.number, messageId)));
  bytes[0] = (bytes[0] ?? 0) ^ 0xff;
}

/** Turns one byte of the newest entry's content. */
function damage(store: StoreNode, name: string): void {
  const memory = store.store;
  const queue = memory === undefined ? undefined : copiesOf(memory, name)[0];
  assert.ok(memory !== undefined && queue !== undefined);
  const bytes = memory.segments.read(memory.entries.slotOf(queue.last));
  bytes[0] = (bytes[0] ?? 0) ^ 0xff;
}

describe('restart', () => {
  for (const blockEntries of [1, 7, 1000]) {
    test(`queues come back in blocks of ${String(blockEntries)}, in order, content untouched`, () => {
      const world = loaded(60, ['q1', 'q2'], { blockEntries });
      restart(world);
      quietAndJudged(world);
      assert.equal(world.letters.delivered, 120);
    });
  }

  test('deliveries begin before the last block, and mail accepted meanwhile follows the recovered', () => {
    const world = loaded(300, ['q1'], { blockEntries: 5 });
    restart(world);
    world.until(() => world.letters.delivered > 0);
    assert.equal(world.isWhole, false, 'blocks are still to come');
    world.until(() => world.gateway.core?.accepting === true);
    const fresh = world.submit(['q1']);
    world.until(() => fresh.outcome === COMMITTED);
    assert.ok(world.letters.delivered < 300);
    quietAndJudged(world);
    assert.equal(world.hops.arrivals.at(-1)?.messageId, fresh.id);
  });

  test('three times within a lease waits for none: who is dead by the lock file was known to be so before, too', () => {
    const world = loaded(30, ['q1', 'q2']);
    for (let life = 0; life < 3; life++) {
      world.gateway.kill();
      world.gateway.start();
      world.until(() => world.isWhole, 3000, 'all of it');
    }
    world.hops.script = () => 'accept';
    world.gateway.kill();
    world.gateway.start();
    world.until(() => world.letters.delivered === 60, 3000, 'all deliveries');
    quietAndJudged(world);
  });

  test('after a stop repeats nothing: what was delivered is deleted at the stores in the turn in which the gateway stops', () => {
    const world = World.started();
    const letter = world.submit(['q1']);
    const core = coreOf(world);
    const mirror = world.mirror('q1');
    world.until(() => letter.isOver('q1') && mirror.isDirty, 1000, 'a deletion that waits for what the next turns bring');
    core.drain();
    core.endOfTurn();
    world.gateway.kill(true);
    world.run(100);
    world.gateway.start();
    quietAndJudged(world);
    assert.equal(letter.arrivals.get('0@q1.example'), 1);
  });

  test('mail to a queue that may still come back goes beside it, and is tried behind it', () => {
    const queues = Array.from({ length: 40 }, (_, i) => ({ name: `n${String(i)}` }));
    const world = World.started({ queues, blockEntries: 2 });
    world.hops.script = () => 'hang';
    for (const { name } of queues) world.submitMany(12, [name]);
    world.run(100);
    restart(world);
    world.until(() => world.gateway.core?.accepting === true);
    while (!world.isWhole) {
      world.submit([world.prng.pick(queues).name]);
      world.run(1);
    }
    quietAndJudged(world);
  });

  test('what one mirror has more than the other is kept, and the other is filled', () => {
    const world = World.started();
    world.hops.script = () => 'hang';
    world.submitMany(10, ['q1']);
    world.run(20);
    world.holdRequests(world.store('b'), true);
    world.submitMany(5, ['q1']);
    world.run(20);
    world.gateway.kill();
    world.holdRequests(world.store('b'), false);
    world.hops.script = () => 'accept';
    world.gateway.start();
    quietAndJudged(world);
  });

  test('with a member down, and its copy not seen to be gone, the other one is enough: all is delivered, and new mail is taken', () => {
    const world = loaded(20, ['s', 'q1'], { queues: [{ name: 's', ordering: 'strict' }, { name: 'q1' }] });
    world.network.cut('gw-1', 'store-b');
    restart(world);
    world.until(() => world.letters.delivered === 40, 10_000, 'all deliveries');
    const fresh = world.submit(['s', 'q1']);
    world.until(() => fresh.arrivals.size === 2, 5000, 'new mail');
    world.heal(world.store('b'));
    quietAndJudged(world);
  });

  test('a strict queue takes no mail while a partition that may have some of it is to come', () => {
    const world = loaded(5, ['s'], { queues: [{ name: 's', ordering: 'strict' }, { name: 'q1' }] });
    for (const store of world.stores) world.cut(store);
    restart(world);
    world.run(5000);
    assert.equal(world.submit(['s']).outcome, NOT_READY);
    for (const store of world.stores) world.heal(store);
    quietAndJudged(world);
  });

  test('a source that dies between two blocks is replaced by the other member', () => {
    const world = loaded(200, ['q1'], { blockEntries: 3 });
    restart(world);
    world.until(() => world.letters.delivered > 20);
    world.store('a').kill();
    world.until(() => world.isWhole);
    world.store('a').start();
    quietAndJudged(world);
    assert.equal(world.letters.delivered, 200);
  });

  test('a source that is cut off and comes back is read again when the other dies', () => {
    const world = loaded(300, ['q1'], { blockEntries: 2 });
    restart(world);
    world.until(() => world.letters.delivered > 10);
    world.cut(world.store('a'));
    world.run(5);
    world.heal(world.store('a'));
    world.until(() => world.gateway.link('store-a')?.isUp === true);
    assert.equal(world.isWhole, false);
    world.cut(world.store('b'));
    world.run(200);
    world.heal(world.store('b'));
    quietAndJudged(world);
    assert.equal(world.letters.all.filter((letter) => letter.arrivals.size > 0).length, 300);
  });

  for (const [when, way] of WAYS) {
    for (const name of ['a', 'b'] as const) {
      test(`one that is damaged at store ${name} is read from the other member, ${when}`, () => {
        const world = loaded(30, ['q1'], way);
        damage(world.store(name), 'q1');
        restart(world);
        quietAndJudged(world);
        assert.equal(world.letters.delivered, 30);
      });
    }

    test(`a damaged one waits for the other member while that is away, ${when}`, () => {
      const world = loaded(300, ['q1'], { partitions: 1, blockEntries: 2, ...way });
      restart(world);
      const partition = (): Partition | undefined => world.gateway.core?.registry.partitions[0];
      world.until(() => world.letters.delivered > 10 && partition()?.inSyncCount === 2);
      const source = world.stores.find(({ id }) => id === partition()?.set?.source?.storeId) ?? assert.fail('it is read');
      const other = world.stores.find((store) => store !== source) ?? assert.fail('there are two');
      damage(source, 'q1');
      // So it is not let go.
      world.register.goAway('refusing');
      world.cut(other);
      world.run(3000);
      assert.equal(partition()?.isPartial, true);
      assert.deepEqual(partition()?.queues.size, 1, 'nobody takes it for unreadable');
      assert.equal(onlyQueue(world.mirror('q1')).heldCount, 0);
      world.heal(other);
      world.run(1000);
      world.register.comeBack();
      quietAndJudged(world);
      assert.equal(world.letters.delivered, 300);
    });

    test(`a message damaged at the last member is held alone, and does not end the process when it is listed or expires, ${when}`, () => {
      const world = loaded(30, ['q1'], { lifetimeMs: 60_000, ...way });
      world.store('b').kill();
      world.run(100);
      damage(world.store('a'), 'q1');
      world.gateway.kill();
      world.store('b').start();
      world.hops.script = () => 'accept';
      world.gateway.start();
      world.until(() => world.letters.delivered === 29);
      // Its envelope came first, and is believed.
      const name = when === 'later' ? 'q1' : 'unreadable';
      const unreadable = (): MailQueue => world.gateway.core?.registry.byName(name)[0] ?? assert.fail('what nobody can read stands apart');
      world.until(() => unreadable().heldCount === 1);
      const row = unreadable().first;
      assert.doesNotThrow(() => world.gateway.core?.envelopeOf(row));
      world.run(120_000);
      assert.equal(unreadable().heldCount, 1);
      // It does not keep the rest from a second copy, and is what it is in that one, too.
      const { counters } = coreOf(world).mirrors;
      assert.ok(counters.refills <= 2 * coreOf(world).registry.partitions.length, `${String(counters.refills)} refills`);
      const isDouble = (): boolean => coreOf(world).registry.partitions.every(({ inSyncCount }) => inSyncCount === 2);
      assert.equal(isDouble(), true);
      world.store('a').kill();
      world.run(100);
      world.gateway.kill();
      world.gateway.start();
      world.until(() => world.gateway.core?.registry.byName(name)[0]?.heldCount === 1);
      world.run(10_000);
      assert.equal(world.letters.delivered, 29);
    });

    test(`a damaged one that several queues share is held in each, and doubled as it is, ${when}`, () => {
      const world = loaded(20, ['q1', 'q2'], { partitions: 1, ...way });
      world.store('b').kill();
      world.run(100);
      damageShared(world.store('a'), world.letters.all.at(-1)?.id ?? 0);
      world.gateway.kill();
      world.store('b').start();
      world.hops.script = () => 'accept';
      world.gateway.start();
      world.until(() => world.letters.delivered === 38);
      const held = (): number => coreOf(world).registry.partitions.flatMap(({ queues }) => [...queues.values()]).reduce((sum, { heldCount }) => sum + heldCount, 0);
      world.until(() => held() === 2);
      const { counters } = coreOf(world).mirrors;
      world.until(() => coreOf(world).registry.partitions.every(({ inSyncCount }) => inSyncCount === 2));
      world.run(30_000);
      assert.ok(counters.refills <= 2, `${String(counters.refills)} refills`);
      const copies = world.stores.map(({ store }) => [...store?.partitions.copies() ?? []].map(({ count }) => count));
      assert.deepEqual(copies, [[2], [2]]);
      // As sound as it was, and told so, when only that copy is left.
      world.store('a').kill();
      world.run(100);
      world.gateway.kill();
      world.gateway.start();
      world.until(() => world.gateway.core !== undefined && held() === 2);
      world.run(10_000);
      assert.equal(world.letters.delivered, 38);
    });

    test(`a body that several queues share is read again when its first entries have gone, ${when}`, () => {
      // More queues than are read side by side: the last ones come when the first have been delivered.
      const queues = Array.from({ length: 12 }, (_, i) => ({ name: `n${String(i)}` }));
      const world = loaded(20, queues.map((queue) => queue.name), { queues, blockEntries: 1, ...way });
      world.hops.dotMs = 0.1;
      world.hops.replyMs = 0.1;
      restart(world);
      quietAndJudged(world);
      assert.equal(world.letters.delivered, 240);
    });
  }

  test('a message that turns out to be damaged while its release is on its way stays held', () => {
    const world = World.started({ partitions: 1, littleBytes: 0 });
    world.hops.script = () => 'defer';
    world.submitMany(30, ['q1']);
    world.until(() => world.letters.count(COMMITTED) === 30 && world.mirror('q1').inFlightCount === 0);
    const last = world.letters.all.at(-1) ?? assert.fail('there is one');
    const held = doById(coreOf(world), 'hold', last.id);
    assert.deepEqual(held.whys, ['']);
    world.until(() => held.isKept);
    world.store('b').kill();
    world.until(() => world.mirror('q1').memberCount === 1);
    damage(world.store('a'), 'q1');
    restart(world);
    const isAsked = (): boolean => {
      const queue = world.gateway.core?.registry.byName('q1')[0];
      const row = queue === undefined ? 0 : coreOf(world).entries.table.index.find(last.id, queue.handle);
      return queue !== undefined && row !== 0 && coreOf(world).entries.absent.askedAt(queue.partition, coreOf(world).entries.table.position.get(row)) === row;
    };
    world.until(isAsked);
    const released = doById(coreOf(world), 'release', last.id);
    assert.deepEqual(released.whys, ['']);
    world.until(() => released.isKept && world.letters.delivered === 29);
    world.run(5000);
    assert.deepEqual([last.arrivals.size, onlyQueue(world.mirror('q1')).heldCount], [0, 1]);
    const queue = onlyQueue(world.mirror('q1'));
    assert.equal(coreOf(world).holds.reasonOf(queue, queue.first), 'its checksum is wrong');
  });

  test('a thousand queues come back', () => {
    const queues = Array.from({ length: 1000 }, (_, i) => ({ name: `n${String(i)}` }));
    const world = World.started({ queues });
    world.hops.script = () => 'hang';
    for (const { name } of queues) world.submit([name]);
    world.run(50);
    assert.equal(world.letters.count(COMMITTED), 1000);
    restart(world);
    world.untilQuiet();
    assert.equal(world.letters.delivered, 1000);
  });

  test('a deferred message is not tried before its time, and keeps its attempts and the results of each recipient', () => {
    const world = World.started();
    world.hops.script = ({ address, earlier }) => (address.startsWith('1') && earlier < 2 ? 'defer' : 'accept');
    const letter = world.submit(['q1'], { recipients: 3 });
    world.run(400);
    assert.deepEqual([...letter.arrivals.keys()], ['0@q1.example', '2@q1.example']);
    world.gateway.kill();
    world.gateway.start();
    world.run(400);
    assert.equal(letter.attempts.get('q1'), 1, 'its second is not over');
    const row = onlyQueue(world.mirror('q1')).first;
    assert.equal(world.gateway.core?.entries.table.attempts.get(row), 1);
    quietAndJudged(world);
    assert.equal(letter.attempts.get('q1'), 3);
    assert.equal(letter.arrivals.get('0@q1.example'), 1);
  });

  test('strict order holds through deferrals, rejects and restarts', () => {
    const world = World.started({ queues: [{ name: 's', ordering: 'strict' }] });
    world.hops.script = ({ messageId, queueName, address, earlier }) => (queueName === 'senders' ? 'accept' : earlier < messageId % 3 ? 'defer' : address.startsWith('1') && Math.floor(messageId / 64) % 4 === 0 ? 'reject' : 'accept');
    for (let i = 0; i < 12; i++) {
      world.submit(['s'], { recipients: 2 });
      world.run(300);
      if (i % 4 !== 2) continue;
      world.gateway.kill();
      world.gateway.start();
      world.until(() => world.gateway.core?.admit(world.route('s')) === '');
    }
    quietAndJudged(world);
  });

  test('a message refused while a store was cut off stays refused after the restart', () => {
    const world = World.started({ commitTimeoutMs: 400 });
    world.submit(['q1']);
    world.run(50);
    world.holdAnswers(world.store('a'), true);
    world.holdAnswers(world.store('b'), true);
    const letter = world.submit(['q1']);
    world.run(500);
    world.holdAnswers(world.store('a'), false);
    world.holdAnswers(world.store('b'), false);
    world.run(20);
    assert.equal(letter.outcome, REFUSED);
    restart(world);
    quietAndJudged(world);
  });
});
