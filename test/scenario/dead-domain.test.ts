/**
 * A takeover knows every message first, and then fetches bodies as they are needed: mail for a next hop that does not
 * answer, however much of it lies in front, delays no other queue's first delivery (recovery/readings.ts,
 * gateway/queue/absent-bodies.ts).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import type { MailQueue } from '../../src/gateway/queue/mail-queue.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import type { PartitionMember } from '../../src/recovery/ownership/member.js';
import { MemberState } from '../../src/recovery/ownership/member.js';
import { doById } from './by-id.js';
import { checkNoDuplicates, checkNoLoss, checkOrder } from './checks.js';
import { Group } from './group.js';
import type { GroupOptions } from './group.js';
import type { Letter } from './letters.js';
import type { StoreNode } from './store-node.js';

const MEBIBYTE = 1024 * 1024;
const LIMIT_BYTES = 4 * MEBIBYTE;
const DEAD_BYTES = 40_000;
/** Four times what gw-2 may use. */
const DEAD_COUNT = 400;
const WELL = ['well-1', 'well-2', 'well-3'];
const PER_WELL = 5;
/** More than comes however full memory is. */
const WELL_BYTES = 100_000;
/** No bodies come along with blocks. */
const INDEX_ALONE: GroupOptions = { littleBytes: 0 };

interface Story {
  readonly group: Group;
  readonly dead: readonly Letter[];
  readonly well: readonly Letter[];
}

/** gw-1 dies with all of it in one partition: first the dead queue's, then a few of each well one. */
function widowed(ordering: 'fifo' | 'strict' = 'fifo', options: GroupOptions = {}, deadCount = DEAD_COUNT): Story {
  const group = Group.started({
    partitions: 1, queues: ['dead', ...WELL].map((name) => ({ name, ordering })), memoryBytes: { 'gw-2': LIMIT_BYTES },
    storeMemoryBytes: 64 * MEBIBYTE, blockEntries: 10, ...options,
  });
  group.hops.script = () => 'hang';
  const dead = Array.from({ length: deadCount }, () => sent(group, 'dead', DEAD_BYTES));
  const well = WELL.flatMap((name) => Array.from({ length: PER_WELL }, () => sent(group, name, WELL_BYTES)));
  group.until(() => well.every(({ outcome }) => outcome === COMMITTED), 'its commit');
  group.gateway('gw-1').kill();
  return { group, dead, well };
}

function sent(group: Group, name: string, bytes: number, id = 'gw-1'): Letter {
  const letter = group.submit(id, [name], 'alice@senders.example', bytes);
  group.until(() => letter.outcome === COMMITTED, 'a commit');
  return letter;
}

function partitionOf(group: Group): Partition {
  return group.served('gw-2', 'gw-1')[0] ?? assert.fail('gw-2 serves it');
}

/** The store of the recorded member of which this is true. */
function storeOf(group: Group, isIt: (row: PartitionMember, source: PartitionMember | undefined) => boolean): StoreNode {
  const partition = partitionOf(group);
  const row = partition.rows.find((one) => one.isRecorded && isIt(one, partition.set?.source));
  return group.stores.find(({ id }) => id === row?.storeId) ?? assert.fail('there is one');
}

function queueOf(group: Group, name: string): MailQueue {
  const [partition] = group.served('gw-2', 'gw-1');
  return [...(partition?.queues.values() ?? [])].find((queue) => queue.name === name) ?? assert.fail(`no queue ${name}`);
}

function judged(group: Group, names: readonly string[]): void {
  checkNoLoss(group.letters);
  for (const name of names) checkOrder(group.letters, name);
  checkNoDuplicates(group.letters);
}

describe('mail for a next hop that does not answer, in front of all other', () => {
  for (const ordering of ['fifo', 'strict'] as const) {
    for (const answer of ['hang', 'defer', 'unreachable'] as const) {
      test(`delays no ${ordering} queue's first delivery when it would fill memory four times, with answer ${answer}`, () => {
        // Bodies come along until memory is short; or none do.
        const { group, well } = widowed(ordering, { littleBytes: ordering === 'fifo' ? 64 * MEBIBYTE : 0 });
        const diedMs = group.scheduler.nowMs;
        group.hops.script = ({ queueName }) => (queueName === 'dead' ? answer : 'accept');
        let most = 0;
        group.until(() => {
          most = Math.max(most, group.gateway('gw-2').core?.memory.usedBytes ?? 0);
          return well.every(({ arrivals }) => arrivals.size === 1);
        }, 'all of the well queues');
        const tookMs = group.scheduler.nowMs - diedMs;
        assert.ok(tookMs <= group.leaseMs + 3000, `${String(tookMs)} ms`);
        assert.equal(queueOf(group, 'dead').length, DEAD_COUNT, 'all of the dead one is known');
        assert.ok(most <= LIMIT_BYTES, `${String(most)} bytes`);
        // What hangs does so for good.
        if (answer === 'hang') return;
        group.hops.script = () => 'accept';
        group.until(() => group.letters.delivered === DEAD_COUNT + well.length, 'all deliveries');
        judged(group, ['dead', ...WELL]);
        group.until(() => group.gateway('gw-2').core?.holdings.isReading === false, 'everything is read');
        assert.equal(group.gateway('gw-2').core?.entries.absent.count, 0);
      });
    }
  }

  test('keeps no memory after its attempts: a next hop that comes back late gets its mail at once', () => {
    const { group, well } = widowed('fifo', INDEX_ALONE);
    group.hops.script = ({ queueName }) => (queueName === 'dead' ? 'defer' : 'unreachable');
    group.until(() => group.served('gw-2', 'gw-1').some((one) => !one.isRecovering), 'every entry');
    let most = 0;
    const endMs = group.scheduler.nowMs + 10_000;
    group.until(() => {
      most = Math.max(most, group.gateway('gw-2').core?.memory.usedBytes ?? 0);
      return group.scheduler.nowMs >= endMs;
    }, 'ten seconds');
    assert.ok(most <= 0.7 * LIMIT_BYTES, `${String(most)} bytes`);
    const backMs = group.scheduler.nowMs;
    group.hops.script = ({ queueName }) => (queueName === 'dead' ? 'defer' : 'accept');
    group.until(() => well.every(({ arrivals }) => arrivals.size === 1), 'all of the well queues');
    assert.ok(group.scheduler.nowMs - backMs <= 3000, `${String(group.scheduler.nowMs - backMs)} ms`);
  });

  test('is no copy while bodies are missing: its source stays recorded', () => {
    const { group } = widowed('fifo', INDEX_ALONE);
    group.hops.script = () => 'defer';
    group.until(() => group.served('gw-2', 'gw-1').some((one) => !one.isRecovering), 'every entry');
    group.run(3000);
    const [partition] = group.served('gw-2', 'gw-1');
    assert.equal(partition?.isPartial, true);
    assert.equal(partition.set?.isPartial, true, 'its source stays recorded');
  });

  for (const answer of ['hang', 'defer', 'unreachable'] as const) {
    test(`is doubled again by a gateway that can't hold it, with answer ${answer}: then the store that was read may be lost`, () => {
      const { group, well } = widowed('fifo', INDEX_ALONE);
      group.hops.script = () => answer;
      group.until(() => group.served('gw-2', 'gw-1').some((one) => !one.isRecovering), 'every entry');
      const lost = storeOf(group, (row, source) => row !== source);
      const read = storeOf(group, (row, source) => row === source);
      lost.kill();
      group.until(() => partitionOf(group).memberCount === 1, 'a record without it');
      lost.start();
      let most = 0;
      group.until(() => {
        most = Math.max(most, group.gateway('gw-2').core?.memory.usedBytes ?? 0);
        return partitionOf(group).inSyncCount === 2;
      }, 'the second copy');
      assert.ok(most <= LIMIT_BYTES, `${String(most)} bytes`);
      assert.equal(partitionOf(group).isPartial, true);
      read.kill();
      group.until(() => partitionOf(group).memberCount === 1, 'a record without the other');
      group.gateway('gw-2').kill();
      group.hops.script = () => 'accept';
      group.gateway('gw-1').start();
      group.until(() => group.letters.delivered === DEAD_COUNT + well.length, 'all deliveries');
      checkNoLoss(group.letters);
    });
  }
});

describe('a message whose body is still at the stores', () => {
  const waiting = (): Story => {
    const story = widowed('fifo', INDEX_ALONE);
    story.group.hops.script = () => 'unreachable';
    story.group.until(() => story.group.served('gw-2', 'gw-1').some((one) => !one.isRecovering), 'every entry');
    story.group.run(1000);
    return story;
  };

  test('is held, released and deleted as any other, and what is deleted is not fetched', () => {
    const { group, dead, well } = waiting();
    const core = group.gateway('gw-2').core ?? assert.fail('it lives');
    const last = dead.at(-1) ?? assert.fail('there is one');
    const queue = queueOf(group, 'dead');
    const row = core.entries.table.index.find(last.id, queue.handle);
    assert.ok(core.entries.isAbsent(row));
    const done = [doById(core, 'hold', last.id)];
    group.run(500);
    assert.equal(core.entries.table.state(row), EntryState.HELD);
    done.push(doById(core, 'release', last.id));
    group.run(500);
    assert.equal(core.entries.table.state(row), EntryState.READY);
    assert.ok(core.entries.isAbsent(row));
    const absent = core.entries.absent.count;
    done.push(doById(core, 'delete', last.id));
    group.run(500);
    assert.deepEqual(done.map(({ whys, isKept }) => [whys, isKept]), Array(3).fill([[''], true]));
    assert.equal(core.entries.absent.count, absent - 1);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === DEAD_COUNT - 1 + well.length, 'all other deliveries');
    assert.equal(last.arrivals.size, 0);
  });

  test('is fetched from the other member when the one that is read dies, and again from the start when both come back', () => {
    const { group, well } = waiting();
    const source = group.gateway('gw-2').core?.registry.partitions.find((one) => one.ownerId === 'gw-1')?.set?.source?.storeId;
    const store = group.stores.find(({ id }) => id === source) ?? assert.fail('there is a source');
    store.kill();
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === DEAD_COUNT + well.length, 'all deliveries');
    checkNoLoss(group.letters);
    for (const name of WELL) checkOrder(group.letters, name);
  });

  test('is not asked for at a later boot of the store that had it: the other copy, which had left, is waited for', () => {
    const { group, well } = waiting();
    const other = storeOf(group, (row, source) => row !== source);
    const source = storeOf(group, (row, read) => row === read);
    group.network.cut('gw-2', other.id);
    group.until(() => partitionOf(group).memberCount === 1, 'a record without the other');
    source.kill();
    group.run(1000);
    source.start();
    group.until(() => partitionOf(group).rows.some((row) => row.state === MemberState.FILLING), 'a fill of the new boot');
    group.run(5000);
    assert.deepEqual(group.log.lines.filter(({ text }) => text === 'request refused'), []);
    assert.equal(partitionOf(group).isPartial, true);
    group.network.heal('gw-2', other.id);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === DEAD_COUNT + well.length, 'all deliveries');
    checkNoLoss(group.letters);
    for (const name of WELL) checkOrder(group.letters, name);
  });

  for (const ordering of ['fifo', 'strict'] as const) {
    for (const verb of ['hold', 'delete'] as const) {
      test(`and finds no room keeps its ${ordering} queue waiting until it is gone: ${verb}`, () => {
        const group = Group.started({
          partitions: 1, queues: ['dead', 'well'].map((name) => ({ name, ordering })), memoryBytes: { 'gw-2': LIMIT_BYTES },
          storeMemoryBytes: 64 * MEBIBYTE, blockEntries: 10, ...INDEX_ALONE,
        });
        group.hops.script = () => 'hang';
        // Of its own: half of what it takes, and more.
        for (let i = 0; i < DEAD_COUNT / 9; i++) sent(group, 'dead', DEAD_BYTES, 'gw-2');
        const head = sent(group, 'well', LIMIT_BYTES / 2);
        const behind = Array.from({ length: PER_WELL }, () => sent(group, 'well', 500));
        group.gateway('gw-1').kill();
        group.hops.script = ({ queueName }) => (queueName === 'dead' ? 'defer' : 'accept');
        group.until(() => group.served('gw-2', 'gw-1').some((one) => !one.isRecovering), 'every entry');
        group.run(5000);
        assert.deepEqual([head, ...behind].map(({ arrivals }) => arrivals.size), [0, 0, 0, 0, 0, 0], 'in order');
        assert.deepEqual(doById(group.gateway('gw-2').core ?? assert.fail('it lives'), verb, head.id).whys, ['']);
        for (const address of head.addresses) head.ended.set(address, 'ops');
        group.until(() => behind.every(({ arrivals }) => arrivals.size === 1), 'those behind it', 3000);
        assert.equal(head.arrivals.size, 0);
      });
    }
  }

  test('stays there when its partition goes home, to a gateway that may have more memory', () => {
    const { group, well } = waiting();
    assert.ok((group.gateway('gw-2').core?.entries.absent.count ?? 0) > 0);
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-1', 'gw-1').some((one) => !one.isPartial), 'the hand-back');
    assert.equal(group.served('gw-2', 'gw-1').length, 0);
    assert.equal(group.gateway('gw-2').core?.entries.absent.count, 0);
    assert.equal(group.gateway('gw-2').core?.entries.absent.askedBytes, 0);
    group.hops.script = () => 'accept';
    group.until(() => group.letters.delivered === DEAD_COUNT + well.length, 'all deliveries');
    checkNoLoss(group.letters);
  });
});
