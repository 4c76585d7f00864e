/**
 * A takeover of mail whose envelopes alone are more than memory holds: small messages with many recipients. Blocks pass
 * through, of each entry its place is kept, and all of it is fetched when a delivery, a refill or an operator needs it
 * (recovery/readings.ts, gateway/queue/absent-bodies.ts, gateway/recovered/recovered-queues.ts).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { crc32 } from 'node:zlib';
import { AT_STORES, ExportView } from '../../src/gateway/admin/export-view.js';
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import { ENTRY_ROW_BYTES } from '../../src/protocol/entry-rows.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import type { PartitionMember } from '../../src/recovery/ownership/member.js';
import { doById } from './by-id.js';
import { checkNoDuplicates, checkNoLoss, checkOrder } from './checks.js';
import { Group } from './group.js';
import type { GroupOptions } from './group.js';
import type { Letter } from './letters.js';
import type { StoreNode } from './store-node.js';

const MEBIBYTE = 1024 * 1024;
const LIMIT_BYTES = MEBIBYTE;
/** To the limit as those of a process are to 64 MiB. */
const SEGMENT_BYTES = 16 * 1024;
const RECIPIENTS = 300;
/** Envelope and room for what becomes of its recipients: some 8 KB each, five times the limit together. */
const DEAD_COUNT = 700;
const WELL = ['well-1', 'well-2'];
const PER_WELL = 20;

interface Story {
  readonly group: Group;
  readonly dead: readonly Letter[];
  readonly well: readonly Letter[];
  /** The most that gw-2 has used since gw-1 died. */
  most: number;
}

/** gw-1 dies with all of it in one partition: first the dead queue's, then a few of each well one. */
function widowed(ordering: 'fifo' | 'strict' = 'fifo', options: GroupOptions = {}): Story {
  const group = Group.started({
    partitions: 1, queues: ['dead', ...WELL].map((name) => ({ name, ordering })), memoryBytes: { 'gw-2': LIMIT_BYTES },
    storeMemoryBytes: 64 * MEBIBYTE, blockEntries: 100, segmentBytes: SEGMENT_BYTES, ...options,
  });
  group.hops.script = () => 'hang';
  const dead = Array.from({ length: DEAD_COUNT }, () => sent(group, 'dead'));
  const well = WELL.flatMap((name) => Array.from({ length: PER_WELL }, () => sent(group, name)));
  const bytes = group.served('gw-1', 'gw-1')[0]?.bytes ?? 0;
  assert.ok(bytes - (dead.length + well.length) * 200 > 3 * LIMIT_BYTES, `envelopes of ${String(bytes)} bytes`);
  group.gateway('gw-1').kill();
  return { group, dead, well, most: 0 };
}

function sent(group: Group, name: string, id = 'gw-1', bytes = 200): Letter {
  const letter = group.submit(id, [name], 'alice@senders.example', bytes, RECIPIENTS);
  group.until(() => letter.outcome === COMMITTED, 'a commit');
  return letter;
}

/** As group.until(), with an eye on the memory of gw-2. */
function until(story: Story, condition: () => boolean, what: string, boundMs?: number): void {
  story.group.until(() => {
    story.most = Math.max(story.most, story.group.gateway('gw-2').core?.memory.usedBytes ?? 0);
    return condition();
  }, what, boundMs);
  assert.ok(story.most <= LIMIT_BYTES, `${String(story.most)} bytes of ${String(LIMIT_BYTES)}`);
}

function partitionOf(group: Group): Partition | undefined {
  return group.served('gw-2', 'gw-1')[0];
}

function indexed(story: Story): Story {
  until(story, () => partitionOf(story.group)?.isRecovering === false, 'every entry');
  assert.equal(partitionOf(story.group)?.length, DEAD_COUNT + WELL.length * PER_WELL);
  return story;
}

function isDone(letters: readonly Letter[]): boolean {
  return letters.every(({ arrivals }) => arrivals.size === RECIPIENTS);
}

function storeOf({ group }: Story, isIt: (row: PartitionMember, source: PartitionMember | undefined) => boolean): StoreNode {
  const partition = partitionOf(group);
  const row = partition?.rows.find((one) => one.isRecorded && isIt(one, partition.set?.source));
  return group.stores.find(({ id }) => id === row?.storeId) ?? assert.fail('there is one');
}

function coreOf(group: Group): NonNullable<ReturnType<Group['gateway']>['core']> {
  return group.gateway('gw-2').core ?? assert.fail('gw-2 lives');
}

function allAbsent(group: Group): number {
  const { entries } = coreOf(group);
  let count = 0;
  for (const queue of partitionOf(group)?.queues.values() ?? []) {
    for (let row = queue.first; row !== 0; row = queue.following(row)) if (entries.isAllAbsent(row)) count += 1;
  }
  return count;
}

function drained(story: Story): void {
  const { group, dead, well } = story;
  group.hops.script = () => 'accept';
  until(story, () => isDone(dead) && isDone(well), 'all deliveries', 240_000);
  checkNoLoss(group.letters);
  until(story, () => !group.gateway('gw-2').core?.holdings.isReading, 'everything is read');
  assert.equal(coreOf(group).entries.absent.count, 0);
}

describe('envelopes that are five times what memory holds', () => {
  for (const ordering of ['fifo', 'strict'] as const) {
    for (const answer of ['defer', 'unreachable', 'hang'] as const) {
      test(`delay no ${ordering} queue's first delivery, with answer ${answer}, and are delivered in order`, () => {
        const story = widowed(ordering);
        const { group, well } = story;
        const diedMs = group.scheduler.nowMs;
        group.hops.script = ({ queueName }) => (queueName === 'dead' ? answer : 'accept');
        until(story, () => isDone(well), 'all of the well queues');
        assert.ok(group.scheduler.nowMs - diedMs <= group.leaseMs + 4000, `${String(group.scheduler.nowMs - diedMs)} ms`);
        assert.ok(allAbsent(group) > DEAD_COUNT / 3, String(allAbsent(group)));
        // What hangs does so for good.
        if (answer === 'hang') return;
        drained(story);
        for (const name of ['dead', ...WELL]) checkOrder(group.letters, name);
        checkNoDuplicates(group.letters);
      });
    }
  }

  for (const answer of ['defer', 'unreachable'] as const) {
    test(`are doubled again by who can't hold them, with answer ${answer}: then the store that was read may be lost`, () => {
      const story = widowed();
      const { group, dead, well } = story;
      group.hops.script = () => answer;
      indexed(story);
      const lost = storeOf(story, (row, source) => row !== source);
      const read = storeOf(story, (row, source) => row === source);
      lost.kill();
      until(story, () => partitionOf(group)?.memberCount === 1, 'a record without it');
      lost.start();
      until(story, () => partitionOf(group)?.inSyncCount === 2, 'the second copy');
      assert.equal(partitionOf(group)?.isPartial, true);
      assert.ok(allAbsent(group) > DEAD_COUNT / 3, String(allAbsent(group)));
      read.kill();
      until(story, () => partitionOf(group)?.memberCount === 1, 'a record without the other');
      group.gateway('gw-2').kill();
      group.hops.script = () => 'accept';
      group.gateway('gw-1').start();
      group.until(() => isDone(dead) && isDone(well), 'all deliveries');
      checkNoLoss(group.letters);
    });
  }

  test('are filled on from the other copy when the one that is read dies midway', () => {
    const story = widowed('fifo', { stores: 3 });
    const { group } = story;
    group.hops.script = () => 'unreachable';
    indexed(story);
    const lost = storeOf(story, (row, source) => row !== source);
    lost.kill();
    until(story, () => partitionOf(group)?.memberCount === 1, 'a record without it');
    lost.start();
    until(story, () => partitionOf(group)?.inSyncCount === 2, 'the second copy');
    const other = storeOf(story, (row, source) => row !== source);
    const third = group.stores.find(({ id }) => partitionOf(group)?.rows.every(({ storeId }) => storeId !== id));
    // A third copy is being filled when the one that is read dies.
    coreOf(group).mirrors.placement.drained.add(other.id);
    until(story, () => partitionOf(group)?.rows.some(({ storeId }) => storeId === third?.id) === true, 'a refill of the third');
    until(story, () => coreOf(group).entries.absent.askedBytes > 0, 'bodies on their way');
    const read = storeOf(story, (row, source) => row === source);
    read.kill();
    coreOf(group).mirrors.placement.drained.delete(other.id);
    until(story, () => partitionOf(group)?.inSyncCount === 2, 'two copies without it', 120_000);
    drained(story);
    checkNoDuplicates(group.letters);
  });

  test('keep what became of their recipients: none that had its mail gets it again', () => {
    const story = widowed('fifo');
    const { group, dead } = story;
    const isEven = (address: string): boolean => Number(address.split('@')[0]) % 2 === 0;
    group.hops.script = ({ address }) => (isEven(address) ? 'accept' : 'defer');
    indexed(story);
    until(story, () => dead.every(({ arrivals }) => arrivals.size === RECIPIENTS / 2), 'every other recipient', 240_000);
    assert.ok(allAbsent(group) > DEAD_COUNT / 3, String(allAbsent(group)));
    drained(story);
    checkNoDuplicates(group.letters);
  });

  test('are reported when they fail, from what is at the stores', () => {
    const story = widowed('fifo');
    const { group, dead, well } = story;
    // A report names as many as the next hop here reads of it.
    const isKnown = (address: string): boolean => Number(address.split('@')[0]) >= 5;
    group.hops.script = ({ queueName, address }) => (queueName === 'dead' && !isKnown(address) ? 'reject' : 'accept');
    until(story, () => isDone(well), 'all of the well queues');
    until(story, () => dead.every(({ reports }) => reports.size === 5), 'all reports', 240_000);
    checkNoLoss(group.letters);
    checkNoDuplicates(group.letters);
  });

  test('stay where they are when their partition goes home', () => {
    const story = widowed('fifo');
    const { group, dead, well } = story;
    group.hops.script = () => 'unreachable';
    indexed(story);
    group.gateway('gw-1').start();
    group.until(() => group.served('gw-1', 'gw-1').some((one) => !one.isPartial), 'the hand-back');
    const { entries } = coreOf(group);
    assert.deepEqual([entries.absent.count, entries.absent.askedBytes, entries.table.inUse], [0, 0, 0]);
    group.hops.script = () => 'accept';
    group.until(() => isDone(dead) && isDone(well), 'all deliveries');
    checkNoLoss(group.letters);
  });

  for (const verb of ['hold', 'delete'] as const) {
    test(`are fetched for an operator's ${verb}, which is asked again, and list who they are for`, () => {
      const story = widowed('fifo');
      const { group, dead } = story;
      group.hops.script = () => 'unreachable';
      indexed(story);
      const core = coreOf(group);
      const last = dead.at(-1) ?? assert.fail('there is one');
      const queue = [...(partitionOf(group)?.queues.values() ?? [])].find(({ name }) => name === 'dead') ?? assert.fail('it has one');
      const row = core.entries.table.index.find(last.id, queue.handle);
      assert.ok(core.entries.isAllAbsent(row));
      assert.equal(core.envelopeOf(row), undefined);
      assert.match(doById(core, verb, last.id).whys.join(), /^its envelope is still at the stores/);
      until(story, () => !core.entries.isAbsent(row), 'the entry');
      assert.equal(core.envelopeOf(row)?.recipients.length, RECIPIENTS);
      assert.deepEqual(doById(core, verb, last.id).whys, ['']);
      if (verb === 'hold') {
        assert.equal(core.entries.table.state(row), EntryState.HELD);
        assert.deepEqual(doById(core, 'release', last.id).whys, ['']);
        until(story, () => core.entries.table.state(row) === EntryState.READY, 'its release');
        drained(story);
        return;
      }
      group.hops.script = () => 'accept';
      until(story, () => isDone(dead.slice(0, -1)), 'all other deliveries', 240_000);
      assert.equal(last.arrivals.size, 0);
    });
  }
});

describe('a gateway that is full of its own mail', () => {
  test('takes another one\'s partition over, and delivers it; its own stays', () => {
    const group = Group.started({
      partitions: 1, queues: ['own', ...WELL].map((name) => ({ name })), memoryBytes: { 'gw-2': LIMIT_BYTES }, storeMemoryBytes: 64 * MEBIBYTE, blockEntries: 100, segmentBytes: SEGMENT_BYTES,
    });
    group.hops.script = () => 'hang';
    const well = WELL.flatMap((name) => Array.from({ length: 10 * PER_WELL }, () => sent(group, name)));
    const core = coreOf(group);
    group.hops.script = () => 'unreachable';
    for (let i = 0; core.memory.admits(12_000); i++) {
      sent(group, 'own', 'gw-2', 1000);
      assert.ok(i < 1000);
    }
    const own = core.registry.partitions.find(({ isOwn }) => isOwn)?.length ?? 0;
    group.gateway('gw-1').kill();
    const story: Story = { group, dead: [], well, most: 0 };
    group.hops.script = ({ queueName }) => (queueName === 'own' ? 'unreachable' : 'accept');
    until(story, () => isDone(well), 'all of the other gateway\'s', 120_000);
    for (const name of WELL) checkOrder(group.letters, name);
    checkNoDuplicates(group.letters);
    assert.equal(core.registry.partitions.find(({ isOwn }) => isOwn)?.length, own);
  });

  test('is not closed to new mail for longer than its own mail closes it', () => {
    const story = widowed('fifo');
    const { group } = story;
    group.hops.script = () => 'unreachable';
    indexed(story);
    group.run(10_000);
    assert.ok(coreOf(group).memory.admits(10_000), `${String(coreOf(group).memory.usedBytes)} bytes`);
  });
});

describe('a gateway whose own mail is larger than its memory', () => {
  /** gw-1 is started on a smaller host; next hops can't be reached until all is looked at. */
  function shrunk(): { group: Group; letters: readonly Letter[]; dead: readonly Letter[] } {
    const group = Group.started({
      gateways: ['gw-1'], elsewhere: { small: 'gw-1' }, partitions: 1, queues: ['dead', 'well'].map((name) => ({ name })),
      memoryBytes: { small: LIMIT_BYTES }, storeMemoryBytes: 64 * MEBIBYTE, blockEntries: 100, segmentBytes: SEGMENT_BYTES,
    });
    group.hops.script = () => 'unreachable';
    const dead = Array.from({ length: DEAD_COUNT }, () => sent(group, 'dead'));
    const letters = Array.from({ length: PER_WELL }, () => sent(group, 'well'));
    group.gateway('gw-1').kill();
    group.gateway('small').start();
    group.until(() => group.served('small', 'gw-1')[0]?.isRecovering === false, 'every entry');
    return { group, letters, dead };
  }

  function deliversWell({ group, letters }: ReturnType<typeof shrunk>): void {
    group.hops.script = ({ queueName }) => (queueName === 'well' ? 'accept' : 'unreachable');
    group.until(() => isDone(letters), 'all of the well queue', 120_000);
    checkOrder(group.letters, 'well');
    checkNoDuplicates(group.letters);
  }

  test('exports all of a queue, whose next hop can not be reached, and delivers another one\'s then', () => {
    const story = shrunk();
    const { group, dead } = story;
    const core = group.gateway('small').core ?? assert.fail('it lives');
    const { entries, bodies, registry, memory } = core;
    const view = new ExportView({ crc32, entries, bodies, queuesOf: (name) => registry.byName(name), placesOf: (id) => registry.placesOf(id) });
    let cursor: string | undefined = '';
    let count = 0;
    for (let looks = 0; cursor !== undefined; looks++) {
      assert.ok(looks < 1000, `${String(count)} of ${String(dead.length)}, ${String(memory.usedBytes)} bytes`);
      const page = view.exportPage('dead', 'mail', cursor);
      if (page !== AT_STORES && page !== undefined) {
        count += page.rows.length / ENTRY_ROW_BYTES;
        cursor = page.nextCursor;
      }
      group.run(50);
    }
    assert.equal(count, dead.length);
    deliversWell(story);
  });

  test('delivers what can be delivered after an operator has looked at the rest', () => {
    const story = shrunk();
    const { group, dead } = story;
    const core = group.gateway('small').core ?? assert.fail('it lives');
    const queue = core.registry.byName('dead')[0] ?? assert.fail('it has one');
    for (const { id } of dead) {
      const row = core.entries.table.index.find(id, queue.handle);
      if (core.entries.isAllAbsent(row)) core.entries.absent.wantLater(queue.partition, row);
      group.run(10);
    }
    deliversWell(story);
  });
});

describe('a partition of which there is no memory even for an index', () => {
  test('goes on as mail is delivered, and says so meanwhile', () => {
    const limitBytes = 256 * 1024;
    const group = Group.started({ partitions: 1, queues: [{ name: 'well' }], memoryBytes: { 'gw-2': limitBytes }, storeMemoryBytes: 64 * MEBIBYTE, blockEntries: 100, segmentBytes: SEGMENT_BYTES });
    group.hops.script = () => 'hang';
    const letters = Array.from({ length: 4000 }, () => group.submit('gw-1', ['well'], 'alice@senders.example', 100));
    group.until(() => letters.every(({ outcome }) => outcome === COMMITTED), 'commits');
    group.gateway('gw-1').kill();
    group.hops.script = () => 'unreachable';
    group.until(() => coreOf(group).holdings.shortCount === 1, 'it is short');
    group.run(2000);
    assert.equal(coreOf(group).holdings.shortCount, 1);
    assert.equal(group.log.count('waits at its stores'), 1);
    group.hops.script = () => 'accept';
    let most = 0;
    group.until(() => {
      most = Math.max(most, coreOf(group).memory.usedBytes);
      return letters.every(({ arrivals }) => arrivals.size === 1);
    }, 'all deliveries', 240_000);
    assert.ok(most <= limitBytes, `${String(most)} bytes`);
    assert.equal(coreOf(group).holdings.shortCount, 0);
    checkOrder(group.letters, 'well');
    checkNoDuplicates(group.letters);
  });
});
