/** Failures, expiry and reports (DSN): one report whatever happens meanwhile, none where one is forbidden (G2, G4). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { MessageAnswer } from '../../src/admin-api/gateway-answers.js';
import { MessageView } from '../../src/gateway/look/message-view.js';
import type { MailQueue } from '../../src/gateway/queue/mail-queue.js';
import type { FindReportWay } from '../../src/gateway/mail-types.js';
import { ALIAS_CHANGED, ALIAS_EXPANDED, ALIAS_SUCCESS, COMMITTED, NOTIFY_DELAY, NOTIFY_FAILURE, NOTIFY_NEVER, NOTIFY_SUCCESS, NOT_READY, NO_MEMORY, RET_HEADERS } from '../../src/gateway/mail-types.js';
import { MessagePacker } from '../../src/platform/node/packer.js';
import { doById } from './by-id.js';
import { checkAll } from './checks.js';
import type { Letter } from './letters.js';
import { SIGNED } from './next-hop.js';
import { Group } from './group.js';
import { World } from './world.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import { coreOf, onlyQueue, stateOf } from './inspect.js';

function quietAndJudged(world: World): void {
  world.untilQuiet();
  checkAll(world.letters, world.queueNames);
  world.assertSameContent();
}

const refuseAll = (world: World): void => {
  world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'reject');
};

/** A rejected message to two recipients, one of them delivered; the gateway dies in turn `turn` after the attempt. */
function killedInTurn(turn: number): boolean {
  const world = World.started({ seed: turn + 1 });
  world.hops.script = ({ queueName, address }) => (queueName === 'senders' ? 'accept' : address.startsWith('1') ? 'accept' : 'reject');
  const letter = world.submit(['q1'], { recipients: 2, notify: 6 });
  world.until(() => letter.outcome === COMMITTED);
  const seen = { turns: 0 };
  world.onTurn = () => { seen.turns += 1; };
  for (let step = 0; step < 5000 && seen.turns < turn && world.hops.reports.length < 2; step++) world.scheduler.step();
  if (seen.turns < turn) return false;
  letter.mayRepeat = true;
  world.gateway.kill();
  world.run(turn % 3);
  world.gateway.start();
  quietAndJudged(world);
  assert.deepEqual([...letter.reports.keys()].sort(), ['failure 0@q1.example', 'success 1@q1.example']);
  return true;
}

/** Ways that somebody knows 20 ms after he was asked, and that are forgotten `keptMs` later. */
function askedWays(world: World, keptMs: number, isTold: boolean): FindReportWay {
  const plain = world.gateway.wayTo;
  const knownAt = new Map<string, number>();
  return (path, onKnown) => {
    const { nowMs } = world.scheduler;
    const sinceMs = nowMs - (knownAt.get(path) ?? -Infinity);
    if (sinceMs >= 0 && sinceMs < keptMs) return plain(path);
    if (sinceMs >= keptMs) {
      knownAt.set(path, nowMs + 20);
      if (isTold) world.scheduler.after(20, () => { onKnown?.(); });
    }
    return NOT_READY;
  };
}

/** Of N messages with 20 recipients each, whose next hop stays dead, a rescuer with little memory tells every sender. */
function delaysToldByRescuer(count: number, limitBytes: number): number {
  const group = Group.started({
    partitions: 1, queues: [{ name: 'dead', ordering: 'fifo' }], memoryBytes: { 'gw-2': limitBytes },
    storeMemoryBytes: 64 * 1024 * 1024, blockEntries: 100, segmentBytes: 16 * 1024, delayAfterMs: 6000,
  });
  group.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'hang');
  const letters: Letter[] = [];
  while (letters.length < count) {
    const some = Array.from({ length: 50 }, () => group.submit('gw-1', ['dead'], 'alice@senders.example', 200, 20, NOTIFY_DELAY));
    letters.push(...some);
    group.until(() => some.every((letter) => letter.outcome === COMMITTED), 'their 250');
  }
  group.gateway('gw-1').kill();
  group.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'unreachable');
  for (let s = 0; s < 60; s++) group.run(1000);
  return letters.filter((letter) => letter.reports.size > 0).length;
}

/** Five new senders a second for 20 s; the longest that one of them waited for his report. */
function longestWaitMs(world: World): number {
  refuseAll(world);
  const sentAt = new Map<Letter, number>();
  let longestMs = 0;
  for (let waited = 0; waited < 30_000; waited += 100) {
    if (waited < 20_000 && waited % 200 === 0) {
      sentAt.set(world.submit(['q1'], { reversePath: `u${String(waited)}@senders.example` }), world.scheduler.nowMs);
    }
    world.run(100);
    for (const [letter, atMs] of sentAt) {
      longestMs = Math.max(longestMs, world.scheduler.nowMs - atMs);
      if (letter.reports.size > 0) sentAt.delete(letter);
    }
  }
  assert.equal(sentAt.size, 0);
  return longestMs;
}

/** As `queue list` shows it. */
function found(world: World): readonly MessageAnswer[] {
  const core = coreOf(world);
  const view = new MessageView({ clock: { nowMs: () => world.scheduler.nowMs, wallMs: () => 0 }, core });
  return [...core.registry.queues()].flatMap((queue) => {
    const { first } = queue;
    return queue.name === 'q1' && first !== 0 ? [view.row(queue, first)] : [];
  });
}

/** How many reports one turn has made at most, from now on. */
function mostComposedInATurn(world: World): () => number {
  let most = 0;
  let before = world.gateway.composedCount;
  world.onTurn = () => {
    most = Math.max(most, world.gateway.composedCount - before);
    before = world.gateway.composedCount;
  };
  return () => most;
}

describe('reports', () => {
  test('a rejected recipient is reported once, after the source has ended', () => {
    const world = World.started();
    refuseAll(world);
    const letter = world.submit(['q1', 'q2'], { recipients: 2 });
    quietAndJudged(world);
    assert.equal(letter.reports.size, 4);
    assert.equal(world.hops.reports.length, 2, 'one report for all recipients of a change');
  });

  test('of delays come to all senders of many messages, though a rescuer has little memory for their bodies', () => {
    assert.equal(delaysToldByRescuer(4000, 2_800_000), 4000);
  });

  test('those that nobody can say the way of yet are looked at in time, though others come all the while', () => {
    const world = World.started();
    world.gateway.wayTo = askedWays(world, 60_000, false);
    assert.ok(longestWaitMs(world) <= 3000);
  });

  test('one whose way is known now goes at once: the answer may not hold until the next look', () => {
    const world = World.started();
    world.gateway.wayTo = askedWays(world, 500, true);
    assert.ok(longestWaitMs(world) <= 500);
  });

  test('one that a process before began goes as soon as its way is known, though many others wait for theirs', () => {
    const world = World.started();
    refuseAll(world);
    const plain = world.gateway.wayTo;
    world.gateway.wayTo = () => NOT_READY;
    const letters = Array.from({ length: 300 }, (_none, i) => world.submit(['q1'], { reversePath: `u${String(i)}@senders.example` }));
    world.until(() => letters.every((letter) => stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING), 20_000, 'all are owed');
    world.run(1000);
    world.gateway.kill();
    world.gateway.wayTo = plain;
    // The answer does not hold until the next look.
    const find = askedWays(world, 50, true);
    world.gateway.wayTo = (path, onKnown) => (path.startsWith('u200@') ? find(path, onKnown) : NOT_READY);
    world.startGateway();
    world.until(() => letters[200]?.reports.size === 1, 10_000, 'the report');
    world.gateway.wayTo = plain;
    quietAndJudged(world);
    assert.ok(letters.every((letter) => letter.reports.size === 1));
  });

  test('full stores in which everything bounces drain, though no report finds credit', () => {
    const world = World.started({ storeMemoryBytes: 1024 * 1024 });
    world.hops.script = () => 'defer';
    for (let i = 0; i < 5000 && world.letters.count(NO_MEMORY) < 20; i++) {
      world.submit(['q1'], { bytes: 500 });
      if (i % 10 === 9) world.run(1);
    }
    world.run(50);
    const kept = world.letters.count(COMMITTED);
    assert.ok(kept > 500 && world.letters.count(NO_MEMORY) >= 20);
    refuseAll(world);
    world.until(() => world.hops.reports.length === kept, 600_000, 'all reports');
    quietAndJudged(world);
    for (const store of world.stores) assert.equal(store.counters?.refusals.reduce((a, b) => a + b, 0), 0, 'no store refused what went beyond its credit');
  });

  test('there is exactly one report whatever turn the gateway is killed in', () => {
    let kills = 0;
    for (let turn = 1; turn < 60; turn++) if (killedInTurn(turn)) kills += 1;
    assert.ok(kills >= 6, `the report takes several turns (${String(kills)} met)`);
  });

  test('counts no try while the message that it quotes is still at the stores, however often the process ends', () => {
    const world = World.started({ partitions: 1, littleBytes: 0 });
    refuseAll(world);
    const letter = world.submit(['q1'], { bytes: 1_000_000 });
    world.until(() => world.letters.count(COMMITTED) === 1);
    world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING);
    // The stores know that it is owed, and the gateway does not know that they do.
    for (const store of world.stores) world.holdAnswers(store, true);
    world.run(50);
    world.gateway.kill();
    for (const store of world.stores) world.holdAnswers(store, false);
    for (let life = 0; life < 3; life++) {
      for (const store of world.stores) world.slow(store, 100);
      world.startGateway();
      world.until(() => world.gateway.core?.registry.partitions.some((one) => one.length > 0 && !one.isRecovering) === true);
      world.run(2000);
      assert.deepEqual([coreOf(world).entries.absent.count, coreOf(world).reports.openCount], [1, 1]);
      world.gateway.kill(true);
      world.run(100);
    }
    for (const store of world.stores) world.slow(store, 0);
    world.startGateway();
    quietAndJudged(world);
    assert.deepEqual([letter.reports.size, world.gateway.composedCount], [1, 1]);
  });

  test('there is exactly one report wherever between two events of the network the gateway is killed', () => {
    for (let events = 1; events < 160; events++) {
      const world = World.started({ seed: events });
      refuseAll(world);
      const letter = world.submit(['q1']);
      world.until(() => letter.outcome === COMMITTED);
      for (let i = 0; i < events; i++) world.scheduler.step();
      world.gateway.kill();
      world.gateway.start();
      quietAndJudged(world);
      assert.equal(letter.reports.size, 1);
    }
  });

  test('of hundreds that come up in one turn some are made in it, the rest in the turns behind', () => {
    const world = World.started({ queues: [{ name: 'q1', concurrency: 500 }] });
    refuseAll(world);
    const letters = world.submitMany(500, ['q1']);
    const most = mostComposedInATurn(world);
    world.untilQuiet();
    checkAll(world.letters, world.queueNames);
    assert.ok(letters.every((letter) => letter.reports.size === 1));
    assert.equal(world.gateway.composedCount, 500, 'each is made once');
    assert.equal(most(), 64);
  });

  test('a turn makes few reports that are work: on many recipients, or with a large content', () => {
    for (const large of [{ recipients: 1000, bytes: 500 }, { recipients: 1, bytes: 600_000 }]) {
      const world = World.started({ queues: [{ name: 'q1', concurrency: 500 }] });
      refuseAll(world);
      const letters = Array.from({ length: 10 }, () => world.submit(['q1'], large));
      const most = mostComposedInATurn(world);
      world.untilQuiet();
      assert.ok(letters.every(({ outcome, reports }) => outcome === COMMITTED && reports.size > 0));
      assert.equal(world.gateway.composedCount, 10);
      assert.ok(most() <= 3, `${String(most())} in one turn`);
    }
  });

  test('made in one turn with the last of the memory for reports leave room for what else that turn changes', () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const world = World.started({ queues: names.map((name) => ({ name })) });
    world.hops.script = ({ queueName, address, earlier }) => {
      if (queueName === 'senders') return 'accept';
      return earlier > 0 ? 'hang' : address.startsWith('0@') ? 'reject' : 'defer';
    };
    const { memory, reports, entries } = coreOf(world);
    const letters = names.flatMap((name) => world.submitMany(4, [name], { recipients: 2000 }));
    world.until(() => letters.every((letter) => letter.outcome === COMMITTED));
    memory.inTransitBytes += memory.limitBytes;
    world.until(() => reports.openCount === letters.length, 20_000, 'reports that find no room');
    world.run(5000);
    // Of all reports: each takes some 2 KiB. That it was made is noted in 12 KB, for the others are still to be tried.
    const room = 3 * entries.grainBytes + letters.length * 3 * 1024;
    memory.inTransitBytes = 0;
    // Each is tried again then, and hangs: what may become of that has its room too.
    const promised = letters.length * 13 * 1024;
    memory.inTransitBytes = memory.reportsBytes - memory.usedBytes - promised - room;
    let most = 0;
    world.onTurn = () => { most = Math.max(most, memory.usedBytes); };
    world.until(() => letters.every((letter) => letter.reports.size === 1), 60_000, 'all reports');
    assert.ok(most <= memory.reportsBytes, `${String(most - memory.reportsBytes)} bytes beyond what is for reports`);
    assert.ok(most > memory.reportsBytes - promised - room / 2, 'it was used');
  });

  test('a report is stored, and its source ended, in one section: none is delivered before both mirrors have both', () => {
    const world = World.started();
    refuseAll(world);
    world.submit(['q2']);
    world.untilQuiet();
    const reports = world.hops.reports.length;
    const letter = world.submit(['q1']);
    world.until(() => letter.outcome === COMMITTED);
    const partition = world.mirror('q1');
    world.until(() => world.gateway.core?.registry.byName('senders').some((queue) => queue.partition === partition && queue.length === 1) === true);
    assert.equal(partition.length, 1, 'the source is gone in the same turn');
    for (const store of world.stores) world.holdAnswers(store, true);
    world.run(1000);
    assert.equal(world.hops.reports.length, reports);
    for (const store of world.stores) world.holdAnswers(store, false);
    quietAndJudged(world);
    assert.equal(world.hops.reports.length, reports + 1);
  });

  test('null reverse-path and NOTIFY=NEVER end without a report, with the reason told', () => {
    const world = World.started();
    refuseAll(world);
    const bounce = world.submit(['q1'], { reversePath: '' });
    const never = world.submit(['q1'], { notify: NOTIFY_NEVER });
    const successOnly = world.submit(['q1'], { notify: NOTIFY_SUCCESS });
    quietAndJudged(world);
    assert.equal(bounce.ended.get('0@q1.example'), 'null reverse-path');
    assert.equal(never.ended.get('0@q1.example'), 'NOTIFY=NEVER');
    assert.equal(successOnly.ended.get('0@q1.example'), 'NOTIFY without FAILURE');
    assert.equal(world.hops.reports.length, 0);
  });

  test('have the null reverse-path and ask for no report, so that none is made of one that fails', () => {
    const world = World.started();
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'unreachable' : 'reject');
    const letter = world.submit(['q1']);
    const waiting = (): MailQueue | undefined => coreOf(world).registry.byName('senders').find(({ length }) => length === 1);
    world.until(() => waiting() !== undefined, 10_000, 'the report');
    const envelope = coreOf(world).envelopeOf(waiting()?.first ?? 0);
    assert.deepEqual([envelope?.reversePath, envelope?.recipients], ['', [{ address: letter.reversePath, notify: NOTIFY_NEVER, orcpt: '' }]]);
    world.hops.script = () => 'reject';
    world.until(() => coreOf(world).registry.partitions.every(({ length }) => length === 0), 10_000, 'the end of the report');
    assert.deepEqual([world.gateway.composedCount, world.hops.reports.length], [1, 0]);
  });

  test('that found no room are made as short as they may be', () => {
    const world = World.started();
    refuseAll(world);
    const letter = world.submit(['q1'], { bytes: 30_000 });
    world.until(() => letter.outcome === COMMITTED);
    const { memory } = coreOf(world);
    memory.inTransitBytes += memory.limitBytes;
    world.until(() => world.gateway.composedCount === 1, 10_000, 'the first try');
    const composedRet = (): number | undefined => world.gateway.lastComposed?.envelope.ret;
    assert.equal(composedRet(), 0);
    memory.inTransitBytes -= memory.limitBytes;
    world.until(() => letter.reports.size === 1, 10_000, 'the report');
    assert.equal(composedRet(), RET_HEADERS);
  });

  test('NOTIFY=SUCCESS is reported unless the next hop took it over', () => {
    const world = World.started();
    const own = world.submit(['q1'], { notify: NOTIFY_SUCCESS });
    quietAndJudged(world);
    assert.equal(own.reports.get('success 0@q1.example')?.size, 1);
    world.hops.dsnPassedOn = true;
    const passed = world.submit(['q1'], { notify: NOTIFY_SUCCESS });
    quietAndJudged(world);
    assert.equal(passed.reports.size, 0);
    world.hops.dsnPassedOn = false;
    const report = world.submit(['q1'], { notify: NOTIFY_SUCCESS, reversePath: '' });
    quietAndJudged(world);
    assert.deepEqual([report.arrivals.size, report.reports.size, report.ended.size], [1, 0, 0], 'nobody is to be told, so nothing is owed');
  });

  test('success of an alias is told by us: of one address where it was delivered, of several whatever became of it', () => {
    for (const [list, script, told] of [
      [0, 'accept', ['success 0@q1.example']], [0, 'reject', []], [ALIAS_EXPANDED, 'accept', ['success 0@q1.example']], [ALIAS_EXPANDED, 'reject', ['success 0@q1.example']],
    ] as const) {
      const world = World.started();
      world.hops.dsnPassedOn = true;
      world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : script);
      const letter = world.submit(['q1'], { notify: NOTIFY_NEVER | ALIAS_CHANGED | ALIAS_SUCCESS | list });
      world.until(() => letter.outcome === COMMITTED);
      world.untilQuiet();
      assert.deepEqual([...letter.reports.keys()], told, `${String(list)} ${script}`);
    }
  });

  test('mail whose time is over is reported, deferred, ready and held alike', () => {
    const world = World.started({ lifetimeMs: 5000 });
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : queueName === 'q2' ? 'unreachable' : 'defer');
    const letters = [world.submit(['q1']), world.submit(['q2']), world.submit(['q3'], { recipients: 3 })];
    world.run(4000);
    assert.equal(world.hops.reports.length, 0);
    world.run(4000);
    world.untilQuiet();
    for (const letter of letters) assert.equal(letter.reports.size, letter.addresses.length);
    checkAll(world.letters, world.queueNames);
  });

  test('no attempt is put off beyond the end of the life of its mail', () => {
    const world = World.started({ lifetimeMs: 5000, retryDelayMs: 60_000, queues: [{ name: 'q1', ordering: 'strict' }, { name: 'q2' }] });
    world.hops.script = () => 'defer';
    const [head] = [world.submit(['q1']), world.submit(['q2'])];
    world.run(1000);
    const queues = ['q1', 'q2'].map((name) => coreOf(world).registry.find(world.route(name)));
    const left = (queues[0]?.blockedUntilMs ?? Infinity) - world.scheduler.nowMs;
    assert.ok(left > 3000 && left <= 5000, `its queue is held for ${String(left)} ms more`);
    world.hops.script = () => 'accept';
    world.run(6000);
    assert.deepEqual([head.arrivals.size, head.reports.size], [0, 1], 'it fails at the end, without another attempt');
    assert.deepEqual(queues.map((queue) => queue?.length), [0, 0]);
  });

  test('mail with the null reverse-path has the short life of a report, whoever made it', () => {
    const world = World.started({ lifetimeMs: 7_200_000 });
    world.hops.script = () => 'defer';
    const letters = [world.submit(['q1'], { reversePath: '' }), world.submit(['q2'])];
    world.until(() => letters.every((letter) => letter.outcome === COMMITTED));
    const { core } = world.gateway;
    const lives = [...core?.registry.queues() ?? []].map((queue) => core?.envelopeOf(queue.first)).map((envelope) => (envelope?.expiryWallMs ?? 0) - (envelope?.arrivalWallMs ?? 0));
    assert.deepEqual(lives.map((life) => Math.round(life / 1000)), [3600, 7200]);
  });

  test('mail whose route is gone is held, and reported when its time is over', () => {
    const world = World.started({ lifetimeMs: 5000 });
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'defer');
    const letter = world.submit(['q1']);
    world.run(50);
    world.gateway.kill();
    world.unrouted.add('q1');
    world.gateway.start();
    world.run(1000);
    assert.equal(onlyQueue(world.mirror('q1')).heldCount, 1);
    assert.equal(letter.attempts.get('q1'), 1);
    world.run(6000);
    world.untilQuiet();
    assert.equal(letter.reports.size, 1);
  });

  test('a report that is owed is made though the route of its mail is gone, and once', () => {
    const world = World.started();
    refuseAll(world);
    const letter = world.submit(['q1']);
    world.until(() => world.gateway.core?.reports.openCount === 1);
    for (const store of world.stores) world.holdAnswers(store, true);
    world.run(50);
    world.gateway.kill();
    for (const store of world.stores) world.holdAnswers(store, false);
    world.unrouted.add('q1');
    world.gateway.start();
    world.until(() => world.hops.reports.length === 1);
    world.untilQuiet();
    world.gateway.kill();
    world.unrouted.clear();
    world.gateway.start();
    world.untilQuiet();
    assert.equal(world.hops.reports.length, 1);
    assert.equal(letter.reports.size, 1);
  });

  test('a strict queue goes on when its deferred head expires', () => {
    const world = World.started({ lifetimeMs: 5000, queues: [{ name: 's', ordering: 'strict' }] });
    world.hops.script = ({ messageId, queueName, earlier }) => (queueName === 's' && messageId === first.id && earlier < 9 ? 'defer' : 'accept');
    const first = world.submit(['s']);
    world.run(2500);
    const second = world.submit(['s']);
    world.run(500);
    assert.equal(second.arrivals.size, 0, 'the head holds the queue');
    world.run(3500);
    assert.equal(second.arrivals.size, 1);
    quietAndJudged(world);
    assert.equal(first.reports.size, 1);
  });

  test('in a strict queue nobody overtakes a head that is partly rejected and partly deferred', () => {
    const world = World.started({ queues: [{ name: 's', ordering: 'strict' }] });
    world.hops.script = ({ messageId, queueName, address, earlier }) => {
      if (queueName === 'senders' || messageId !== first.id) return 'accept';
      return address.startsWith('0') ? 'reject' : earlier < 2 ? 'defer' : 'accept';
    };
    const first = world.submit(['s'], { recipients: 2 });
    world.run(5);
    world.submit(['s']);
    world.run(300);
    world.gateway.kill();
    world.gateway.start();
    quietAndJudged(world);
    assert.equal(world.hops.arrivals[0]?.messageId, first.id);
  });

  test('reports under way when everything was lost but the gateway still come once', () => {
    const world = World.started();
    refuseAll(world);
    world.submit(['q2']);
    world.untilQuiet();
    const letters = world.submitMany(10, ['q1']);
    world.until(() => letters.every((letter) => letter.outcome === COMMITTED));
    world.run(3);
    for (const store of world.stores) store.kill();
    world.run(2000);
    for (const store of world.stores) store.start();
    quietAndJudged(world);
    for (const letter of letters) assert.equal(letter.reports.size, 1);
  });
});

describe('a report of a sender with a key', () => {
  const fields = new TextEncoder().encode(SIGNED);
  type Done = Parameters<World['gateway']['signReport']>[1];

  /** Reports wait until the test signs them. */
  function heldBySigner(world: World): Done[] {
    const held: Done[] = [];
    world.gateway.signReport = (_content, done) => held.push(done) > 0;
    return held;
  }

  test('waits for its signature, is stored with it, and few are composed meanwhile', () => {
    const world = World.started();
    const held = heldBySigner(world);
    refuseAll(world);
    for (let i = 0; i < 100; i++) world.submit(['q1']);
    world.until(() => held.length > 0 && world.letters.count(COMMITTED) === 100);
    world.run(5000);
    assert.deepEqual([held.length, world.gateway.composedCount, world.hops.reports.length], [16, 16, 0]);
    for (let done = held.shift(); done !== undefined; done = held.shift()) {
      done(fields);
      world.run(20);
    }
    quietAndJudged(world);
    assert.deepEqual([world.hops.reports.length, world.hops.signedReports, world.gateway.composedCount], [100, 100, 100]);
  });

  test('is made though those that were woken before it had nothing to sign any more', () => {
    const world = World.started({ delayAfterMs: 60_000 });
    const held = heldBySigner(world);
    let isUp = false;
    world.hops.script = ({ queueName }) => (queueName === 'senders' || (isUp && queueName === 'q1') ? 'accept' : queueName === 'q2' ? 'reject' : 'unreachable');
    for (let i = 0; i < 60; i++) world.submit(['q1'], { notify: NOTIFY_DELAY });
    world.until(() => held.length === 16, 300_000, 'as many delays as are signed at a time');
    world.run(20_000);
    const bounced = Array.from({ length: 5 }, () => world.submit(['q2']));
    world.run(5000);
    isUp = true;
    world.until(() => world.hops.arrivals.length >= 60, 600_000, 'all that was late is delivered');
    world.run(2000);
    world.gateway.signReport = (_content, done) => {
      world.scheduler.after(3, () => { done(fields); });
      return true;
    };
    for (const done of held.splice(0)) done(fields);
    world.until(() => bounced.every(({ reports }) => reports.size === 1), 60_000, 'the reports behind them');
    quietAndJudged(world);
  });

  test('leaves unsigned when the signer gives up, and at once when it has no place', () => {
    const world = World.started();
    refuseAll(world);
    world.gateway.signReport = (_content, done) => {
      done(undefined);
      return true;
    };
    for (let i = 0; i < 50; i++) world.submit(['q1']);
    quietAndJudged(world);
    assert.deepEqual([world.hops.reports.length, world.hops.signedReports, world.gateway.composedCount], [50, 0, 50]);
  });

  test('comes once, whatever turn of its signing the gateway dies in', () => {
    for (let signedBefore = 0; signedBefore < 3; signedBefore++) {
      const world = World.started({ seed: 90 + signedBefore });
      const held = heldBySigner(world);
      refuseAll(world);
      const letters = [0, 1, 2].map(() => world.submit(['q1']));
      world.until(() => held.length === 3);
      for (const done of held.splice(0, signedBefore)) done(fields);
      for (const letter of letters) letter.mayRepeat = true;
      world.run(signedBefore);
      world.gateway.kill();
      for (const done of held.splice(0)) done(fields);
      world.gateway.signReport = (_content, done) => {
        world.scheduler.after(3, () => { done(fields); });
        return true;
      };
      world.gateway.start();
      quietAndJudged(world);
      for (const letter of letters) assert.deepEqual([...letter.reports.keys()], ['failure 0@q1.example']);
      assert.equal(world.hops.signedReports, world.hops.reports.length);
    }
  });

  test('of a delay is told signed, and not at all of what was delivered while it was signed', () => {
    for (const isLate of [false, true]) {
      const world = World.started({ delayAfterMs: 60_000 });
      const held = heldBySigner(world);
      world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'unreachable');
      const letter = world.submit(['q1'], { notify: NOTIFY_DELAY });
      world.until(() => held.length === 1, 200_000, 'a delay is composed');
      if (isLate) {
        world.hops.script = () => 'accept';
        world.until(() => world.hops.arrivals.length === 1, 600_000, 'it is delivered');
        world.run(1000);
      }
      held.shift()?.(fields);
      world.run(1000);
      world.hops.script = () => 'accept';
      quietAndJudged(world);
      assert.deepEqual([...letter.reports.keys()], isLate ? [] : ['delay 0@q1.example']);
      assert.deepEqual([world.hops.signedReports, held.length], [isLate ? 0 : 1, 0]);
    }
  });
});

describe('while nobody can say where a report goes', () => {
  /** Of each message one recipient is refused, and the others are as `others` says. */
  function withoutWay(ordering: 'fifo' | 'strict', others: 'accept' | 'defer', retryDelayMs = 5000): { readonly world: World; readonly tell: () => void } {
    const world = World.started({ queues: [{ name: 'q1', ordering }], retryDelayMs });
    world.hops.script = ({ queueName, address }) => (queueName === 'senders' ? 'accept' : address.startsWith('0') ? 'reject' : others);
    const plain = world.gateway.wayTo;
    world.gateway.wayTo = () => NOT_READY;
    return { world, tell: () => { world.gateway.wayTo = plain; } };
  }
  const isGoingOn = (world: World, letter: Letter): boolean => {
    const state = stateOf(coreOf(world), 'q1', letter);
    return state === EntryState.READY || state === EntryState.DEFERRED || state === EntryState.IN_FLIGHT;
  };
  const arrivedAt = (world: World): readonly string[] => world.hops.arrivals.map(({ address }) => address);
  const WHO = { reason: 'a look first', who: 'ann' };
  /** Its report is put aside: where its message is now. */
  function untilAside(world: World, letter: Letter): { readonly queue: MailQueue; readonly row: number } {
    world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING, 10_000, 'a report is owed');
    world.until(() => stateOf(coreOf(world), 'q1', letter) !== EntryState.REPORTING, 15_000, 'it is put aside');
    const queue = onlyQueue(world.mirror('q1'));
    return { queue, row: coreOf(world).entries.table.index.find(letter.id, queue.handle) };
  }
  function restarted(world: World): void {
    world.gateway.kill();
    world.gateway.crashNotes = [];
    world.startGateway();
    world.until(() => world.isWhole, 10_000, 'its partitions');
  }

  for (const ordering of ['fifo', 'strict'] as const) {
    test(`other recipients of its message are tried on, and the ${ordering} queue goes on; the report follows`, () => {
      const { world, tell } = withoutWay(ordering, 'defer');
      const letter = world.submit(['q1'], { recipients: 2 });
      world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING, 10_000, 'a report is owed');
      const behind = world.submit(['q1'], { recipients: 1, reversePath: 'b@senders.example' });
      world.run(30_000);
      const row = coreOf(world).entries.table.index.find(letter.id, onlyQueue(world.mirror('q1')).handle);
      assert.ok(coreOf(world).noteOf(row, 2).attempts >= 5, 'they waited for the report once');
      world.hops.script = ({ queueName, address }) => (queueName === 'senders' || address.startsWith('1') ? 'accept' : 'reject');
      world.run(10_000);
      assert.deepEqual(arrivedAt(world), ['1@q1.example'], 'delivered to the other');
      assert.equal(stateOf(coreOf(world), 'q1', behind), EntryState.REPORTING, 'and the one behind was tried');
      assert.deepEqual([letter.reports.size, behind.reports.size], [0, 0]);
      tell();
      quietAndJudged(world);
      assert.deepEqual([[...letter.reports.keys()], [...behind.reports.keys()]], [['failure 0@q1.example'], ['failure 0@q1.example']]);
    });

    test(`it is made as soon as somebody can, though the next hop of the ${ordering} queue is down by then`, () => {
      const { world, tell } = withoutWay(ordering, 'defer');
      const letter = world.submit(['q1'], { recipients: 2 });
      world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING, 10_000, 'a report is owed');
      world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'unreachable');
      world.run(60_000);
      const tries = (): number => coreOf(world).noteOf(coreOf(world).entries.table.index.find(letter.id, onlyQueue(world.mirror('q1')).handle), 2).tries;
      assert.deepEqual([isGoingOn(world, letter), tries()], [true, 0]);
      assert.deepEqual(found(world)[0]?.recipients.map(({ address, state }) => [address, state]), [['0@q1.example', 'ending'], ['1@q1.example', undefined]]);
      tell();
      world.until(() => letter.reports.size === 1, 3000, 'the report');
      world.run(1000);
      assert.deepEqual([isGoingOn(world, letter), tries()], [true, 0]);
      world.hops.script = () => 'accept';
      quietAndJudged(world);
      assert.deepEqual([...letter.reports.keys()], ['failure 0@q1.example']);
    });

    test(`a process that takes the ${ordering} queue over goes on, owes it, and holds nothing for a poison`, () => {
      const { world, tell } = withoutWay(ordering, 'defer');
      const letter = world.submit(['q1'], { recipients: 2 });
      world.until(() => letter.outcome === COMMITTED);
      world.run(2000);
      for (let life = 0; life < 4; life++) {
        world.run(30_000);
        assert.ok(isGoingOn(world, letter) || stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING);
        world.gateway.kill();
        world.gateway.crashNotes = [];
        world.startGateway();
      }
      world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING, 10_000, 'owed in this life, too');
      world.hops.script = ({ queueName, address }) => (queueName === 'senders' || address.startsWith('1') ? 'accept' : 'reject');
      world.until(() => world.hops.arrivals.length === 1, 30_000, 'the other has it');
      tell();
      quietAndJudged(world);
      assert.deepEqual([...letter.reports.keys()], ['failure 0@q1.example']);
      assert.deepEqual([coreOf(world).entries.table.index.size, world.log.count('a message is held alone')], [0, 0]);
    });
  }

  for (const ordering of ['fifo', 'strict'] as const) {
    for (const isByRule of [false, true]) {
      test(`what ${isByRule ? 'a standing hold' : 'an operator'} holds of a ${ordering} queue stays held over restarts; released, it is delivered and reported`, () => {
        const { world, tell } = withoutWay(ordering, 'defer');
        const letter = world.submit(['q1'], { recipients: 2 });
        const { queue, row } = untilAside(world, letter);
        if (isByRule) void coreOf(world).ruleDesk.add({ verb: 'hold', selector: { domain: 'q1.example' }, ...WHO });
        world.run(1000);
        assert.equal(coreOf(world).holds.holdEntry(queue, row, WHO, isByRule), '');
        world.run(1000);
        world.hops.script = ({ queueName, address }) => (queueName === 'senders' || address.startsWith('1') ? 'accept' : 'reject');
        for (let life = 0; life < 2; life++) {
          restarted(world);
          if (life === 1) tell();
          world.run(30_000);
          assert.equal(stateOf(coreOf(world), 'q1', letter), EntryState.HELD);
        }
        assert.deepEqual([letter.arrivals.size, letter.reports.size], [0, 0]);
        if (isByRule) void coreOf(world).ruleDesk.cancel(coreOf(world).rules.all()[0]?.id ?? '', WHO);
        else assert.deepEqual(doById(coreOf(world), 'release', letter.id).whys, ['']);
        quietAndJudged(world);
        assert.deepEqual([[...letter.arrivals.keys()], [...letter.reports.keys()]], [['1@q1.example'], ['failure 0@q1.example']]);
      });
    }
  }

  test('one that an operator delays holds no strict queue, also over a restart', () => {
    for (const isKnown of [false, true]) {
      const { world, tell } = withoutWay('strict', 'defer');
      const [letter, behind] = [world.submit(['q1'], { recipients: 2 }), world.submit(['q1'], { reversePath: '' })];
      const { queue, row } = untilAside(world, letter);
      world.hops.script = () => 'unreachable';
      assert.equal(coreOf(world).holds.delayEntry(queue, row, world.gateway.wallMs() + 3 * 86_400_000, WHO), '');
      world.run(100);
      restarted(world);
      if (isKnown) tell();
      world.hops.script = () => 'accept';
      world.until(() => behind.arrivals.size === 1, 20_000, 'who stood behind it');
      world.run(20_000);
      assert.deepEqual([stateOf(coreOf(world), 'q1', letter), letter.reports.size], [EntryState.DEFERRED, isKnown ? 1 : 0]);
    }
  });

  test('one that was held comes back behind the head of a strict queue, also over a restart', () => {
    const { world, tell } = withoutWay('strict', 'defer');
    const [letter, head] = [world.submit(['q1'], { recipients: 2 }), world.submit(['q1'], { reversePath: '', recipients: 2 })];
    const { queue, row } = untilAside(world, letter);
    assert.equal(coreOf(world).holds.holdEntry(queue, row, WHO), '');
    world.until(() => head.attempts.get('q1') === 1, 10_000, 'another is the head');
    const tried = letter.attempts.get('q1');
    assert.deepEqual(doById(coreOf(world), 'release', letter.id).whys, ['']);
    world.run(500);
    restarted(world);
    tell();
    world.until(() => head.attempts.get('q1') === 2, 20_000, 'the head is tried again');
    assert.equal(letter.attempts.get('q1'), tried, 'nobody overtakes it');
    world.hops.script = () => 'accept';
    quietAndJudged(world);
  });

  test('an operator may hold and end it soon, however far the next attempt is', () => {
    const { world } = withoutWay('fifo', 'defer', 3_600_000);
    const letter = world.submit(['q1'], { recipients: 2 });
    untilAside(world, letter);
    world.run(60_000);
    assert.deepEqual([letter.attempts.get('q1'), doById(coreOf(world), 'hold', letter.id).whys], [1, ['']]);
  });

  test('mail whose route is gone waits for its report, and is held as other mail of its queue then', () => {
    const { world, tell } = withoutWay('fifo', 'defer');
    const letter = world.submit(['q1'], { recipients: 2 });
    untilAside(world, letter);
    world.unrouted.add('q1');
    restarted(world);
    world.run(30_000);
    assert.equal(stateOf(coreOf(world), 'q1', letter), EntryState.REPORTING, 'nobody is to be tried meanwhile');
    tell();
    world.until(() => letter.reports.size === 1, 10_000, 'the report');
    world.run(1000);
    const queue = onlyQueue(world.mirror('q1'));
    assert.deepEqual([stateOf(coreOf(world), 'q1', letter), queue.heldCount, queue.deferredCount, queue.readyCount], [EntryState.HELD, 1, 0, 0]);
    world.unrouted.clear();
    world.hops.script = () => 'accept';
    restarted(world);
    quietAndJudged(world);
    assert.deepEqual([[...letter.arrivals.keys()], [...letter.reports.keys()]], [['1@q1.example'], ['failure 0@q1.example']]);
  });

  test('to look for the way reads no recipients, and what is made of many of them is little a turn', () => {
    const { world, tell } = withoutWay('fifo', 'defer', 600_000);
    const letters = world.submitMany(30, ['q1'], { recipients: 1000 });
    const refused = world.submit(['q1'], { recipients: 1 });
    world.until(() => letters.every((letter) => stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING), 10_000, 'reports are owed');
    const { unpack } = MessagePacker.prototype;
    let readCount = 0;
    MessagePacker.prototype.unpack = function(bytes) {
      if (bytes.length > 10_000) readCount += 1;
      return unpack.call(this, bytes);
    };
    try {
      world.run(5000);
      assert.equal(readCount, 0, 'while others wait for them');
      world.until(() => letters.every((letter) => isGoingOn(world, letter)), 20_000, 'they are put aside');
      world.run(2000);
      readCount = 0;
      world.run(5000);
      assert.equal(readCount, 0, 'while they are aside');
    } finally {
      MessagePacker.prototype.unpack = unpack;
    }
    const most = mostComposedInATurn(world);
    tell();
    world.until(() => [...letters, refused].every(({ reports }) => reports.size === 1), 10_000, 'the reports');
    assert.ok(most() <= 10, String(most()));
  });

  test('one whose way is forgotten again when it is to be made is no poison for who is restarted twice', () => {
    const { world, tell } = withoutWay('fifo', 'accept');
    const letter = world.submit(['q1']);
    world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING, 10_000, 'a report is owed');
    world.run(1000);
    const never = world.gateway.wayTo;
    tell();
    const plain = world.gateway.wayTo;
    let looks = 0;
    world.gateway.wayTo = (...asked) => {
      looks += 1;
      return looks === 1 ? plain(...asked) : never(...asked);
    };
    restarted(world);
    world.run(30_000);
    assert.ok(looks > 2, 'it was marked, and then nobody knew its way');
    restarted(world);
    tell();
    world.until(() => letter.reports.size === 1, 60_000, 'the report');
  });

  test('of many that wait, some are looked at in a tick, and all are made when their way is known', () => {
    const { world, tell } = withoutWay('fifo', 'accept');
    const letters = world.submitMany(500, ['q1']);
    world.until(() => letters.every((letter) => stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING), 20_000, 'reports are owed');
    world.run(3000);
    let looks = 0;
    const never = world.gateway.wayTo;
    world.gateway.wayTo = (...asked) => {
      looks += 1;
      return never(...asked);
    };
    for (let ticks = 0; ticks < 20; ticks += 1) {
      const before = looks;
      world.run(100);
      assert.ok(looks - before <= 2 * 64, String(looks - before));
    }
    assert.ok(looks >= 500, 'each in its turn');
    tell();
    world.run(400);
    const { openCount } = coreOf(world).reports;
    assert.ok(openCount < 100, `those that can be made do not wait for ticks: ${String(openCount)}`);
    world.until(() => letters.every(({ reports }) => reports.size === 1), 10_000, 'the reports');
  });

  test('those that a process before began are looked at once when they are back', () => {
    const { world } = withoutWay('fifo', 'defer');
    const letters = world.submitMany(500, ['q1']);
    world.until(() => letters.every((letter) => stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING), 20_000, 'reports are owed');
    let looks = 0;
    world.gateway.wayTo = () => {
      looks += 1;
      return NOT_READY;
    };
    world.gateway.kill();
    world.startGateway();
    world.until(() => world.isWhole && coreOf(world).reports.openCount === 500, 10_000, 'they are back');
    world.run(1000);
    // And 64 in each tick of a tenth of a second.
    assert.ok(looks >= 500 && looks < 500 + 30 * 64, String(looks));
  });

  test('those that a process before began, however many, are begun some in each turn', () => {
    const { world } = withoutWay('fifo', 'defer');
    const letters = world.submitMany(1000, ['q1'], { recipients: 1 });
    world.until(() => letters.every((letter) => stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING), 20_000, 'reports are owed');
    const begunMost = (): number => {
      let most = 0;
      while (coreOf(world).reports.openCount < 1000) {
        const before = world.gateway.core?.reports.openCount ?? 0;
        assert.ok(world.scheduler.step());
        most = Math.max(most, (world.gateway.core?.reports.openCount ?? 0) - before);
      }
      return most;
    };
    world.gateway.kill();
    world.startGateway();
    const most = begunMost();
    assert.ok(most > 0 && most <= 256, `${String(most)} in one turn`);
  });

  for (const isRestarted of [false, true]) {
    test(`the others of many messages go on after ten seconds, however many wait for their way, ${isRestarted ? 'also of a process before' : 'with others or none'}`, () => {
      const world = World.started({ queues: [{ name: 'q1', concurrency: 500 }], retryDelayMs: 600_000 });
      world.hops.script = ({ queueName, address }) => (queueName === 'senders' ? 'accept' : address.startsWith('0') ? 'reject' : 'defer');
      world.gateway.wayTo = () => NOT_READY;
      const alone = world.submitMany(1000, ['q1']);
      const letters = world.submitMany(1000, ['q1'], { recipients: 2 });
      const all = [...alone, ...letters];
      const areOwed = (): boolean => all.every((letter) => stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING);
      world.until(areOwed, 9000, 'reports are owed');
      if (isRestarted) {
        restarted(world);
        world.until(() => coreOf(world).reports.openCount === all.length, 9000, 'reports are begun');
      }
      world.run(11_000);
      assert.equal(letters.filter((letter) => isGoingOn(world, letter)).length, letters.length);
      assert.ok(alone.every((letter) => stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING));
      assert.equal(coreOf(world).reports.openCount, all.length);
    });
  }

  test('who is told that its way may be known looks for itself, not for all that wait', () => {
    const { world } = withoutWay('fifo', 'accept');
    const letters = world.submitMany(200, ['q1']);
    world.until(() => letters.every((letter) => stateOf(coreOf(world), 'q1', letter) === EntryState.REPORTING), 20_000, 'reports are owed');
    world.run(1000);
    const told: (() => void)[] = [];
    let looks = 0;
    world.gateway.wayTo = (_path, onKnown = () => undefined) => {
      looks += 1;
      told.push(onKnown);
      return NOT_READY;
    };
    restarted(world);
    world.until(() => told.length >= 200, 10_000, 'each is asked for');
    looks = 0;
    const hearing = told.slice(0, 200);
    // Nobody can say.
    for (const onKnown of hearing) onKnown();
    assert.equal(looks, 200);
  });

  test('one job makes the reports of a message, however often they are put aside', () => {
    const { world, tell } = withoutWay('fifo', 'defer');
    const letter = world.submit(['q1'], { recipients: 4 });
    const { row } = untilAside(world, letter);
    for (const last of [1, 2]) {
      world.hops.script = ({ queueName, address }) => (queueName === 'senders' ? 'accept' : Number(address.charAt(0)) <= last ? 'reject' : 'defer');
      world.run(20_000);
      assert.deepEqual([...coreOf(world).noteOf(row, 4).states], [3, 3, last === 1 ? 0 : 3, 0]);
      assert.equal(coreOf(world).reports.openCount, 1);
    }
    tell();
    world.run(5000);
    world.hops.script = () => 'accept';
    quietAndJudged(world);
    assert.deepEqual([...letter.reports.keys()].sort(), ['failure 0@q1.example', 'failure 1@q1.example', 'failure 2@q1.example']);
  });

  test('what an operator ends of the others leaves the report of a delivery owed', () => {
    for (const verb of ['delete', 'bounce', 'expire'] as const) {
      for (const isHeld of [false, true]) {
        const { world, tell } = withoutWay('fifo', 'defer');
        world.hops.script = ({ queueName, address }) => (queueName === 'senders' || address.startsWith('0') ? 'accept' : 'defer');
        const letter = world.submit(['q1'], { recipients: 2, notify: NOTIFY_SUCCESS | NOTIFY_FAILURE });
        const { queue, row } = untilAside(world, letter);
        if (isHeld) assert.equal(coreOf(world).holds.holdEntry(queue, row, WHO), '');
        assert.equal(coreOf(world).holds.endEntry(queue, row, [1], verb, WHO), '');
        world.run(1000);
        tell();
        world.untilQuiet();
        const failed = verb === 'delete' ? [] : ['failure 1@q1.example'];
        assert.deepEqual([...letter.reports.keys()].sort(), [...failed, 'success 0@q1.example']);
        assert.deepEqual([coreOf(world).entries.table.index.size, queue.heldCount], [0, 0]);
      }
    }
  });

  test('an operator returns the others: whoever was refused before is told what was said then, and counted once', () => {
    for (const isHeld of [false, true]) {
      const { world, tell } = withoutWay('fifo', 'defer');
      const letter = world.submit(['q1'], { recipients: 2 });
      const { queue, row } = untilAside(world, letter);
      const core = coreOf(world);
      const [refused] = core.noteOf(row, 2).results;
      if (isHeld) assert.equal(core.holds.holdEntry(queue, row, WHO), '');
      assert.equal(core.holds.endEntry(queue, row, isHeld ? [1] : [0, 1], 'bounce', WHO), '');
      const { results } = core.noteOf(row, 2);
      assert.deepEqual([results[0], results[1]?.enhanced], [refused, '5.7.1']);
      tell();
      world.untilQuiet();
      assert.deepEqual([...letter.reports.keys()], ['failure 0@q1.example', 'failure 1@q1.example']);
    }
  });

  test('what an operator deletes of the others leaves the report owed; of all, nothing', () => {
    for (const [meant, reports] of [[[1], 1], [[0], 0], [[0, 1], 0]] as const) {
      const { world, tell } = withoutWay('fifo', 'defer');
      const letter = world.submit(['q1'], { recipients: 2 });
      world.until(() => letter.outcome === COMMITTED);
      world.run(1000);
      world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.DEFERRED || stateOf(coreOf(world), 'q1', letter) === EntryState.READY, 60_000, 'it goes on');
      const core = coreOf(world);
      const queue = onlyQueue(world.mirror('q1'));
      const row = core.entries.table.index.find(letter.id, queue.handle);
      assert.equal(core.holds.endEntry(queue, row, meant, 'delete', { reason: 'spam', who: 'ann' }), '');
      if (meant.length === 1 && meant[0] === 0) assert.equal(core.noteOf(row, 2).owedChange, 0);
      world.run(1000);
      tell();
      world.hops.script = () => 'accept';
      world.untilQuiet();
      assert.equal(world.hops.reports.length, reports);
      assert.equal(core.reports.openCount, 0);
    }
  });
});

describe('mail that waits for a next hop that is down', () => {
  test('is told of in the log once, and when it expires, with the reason, which its sender learns too', () => {
    const world = World.started({ lifetimeMs: 300_000 });
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'unreachable');
    const letter = world.submit(['q1'], { recipients: 2 });
    world.run(25_000);
    assert.deepEqual(world.told, []);
    world.run(200_000);
    const waits = ['0@q1.example', '1@q1.example'].map((address) => `waits ${address}: mx.hop.example:25 4.4.1 connection refused`);
    assert.deepEqual(world.told, waits, 'once, however often it is tried');
    const [row] = found(world);
    assert.deepEqual(row?.recipients, ['0@q1.example', '1@q1.example'].map((address) => ({ address, delay_reason: 'connection refused' })));
    world.until(() => letter.reports.size === 2, 200_000, 'its end is reported');
    assert.deepEqual(world.told.slice(2), ['expired 0@q1.example: connection refused', 'expired 1@q1.example: connection refused']);
    const { lastComposed } = world.gateway;
    assert.deepEqual([lastComposed?.note.results, [...lastComposed?.texts.values() ?? []]], [
      [0, 1].map((recipient) => ({ recipient, code: 0, enhanced: '4.4.1' })), [0, 1].map(() => ({ text: 'connection refused', host: 'mx.hop.example' })),
    ]);
  });

  test('is not blamed on it while an operator holds it, nor does its time go on', () => {
    const world = World.started({ lifetimeMs: 100_000 });
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'unreachable');
    const letter = world.submit(['q1']);
    world.run(2_000);
    world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.READY);
    doById(coreOf(world), 'hold', letter.id);
    assert.deepEqual(found(world)[0]?.recipients, [{ address: '0@q1.example' }]);
    world.run(200_000);
    assert.deepEqual(found(world)[0]?.recipients, [{ address: '0@q1.example' }]);
    assert.deepEqual([world.told, letter.reports.size], [[], 0]);
  });

  test('is delayed for the reason that is known', () => {
    const world = World.started({ delayAfterMs: 60_000 });
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'unreachable');
    const letter = world.submit(['q1'], { notify: NOTIFY_DELAY });
    world.until(() => letter.reports.size === 1, 200_000, 'its delay is reported');
    const { lastComposed } = world.gateway;
    assert.deepEqual([lastComposed?.note.results, [...lastComposed?.texts ?? []]], [[{ recipient: 0, code: 0, enhanced: '4.4.1' }], [[0, { text: 'connection refused', host: 'mx.hop.example' }]]]);
  });
});

describe('a signed delay', () => {
  test('is composed anew when one of its recipients was delivered while it was signed', () => {
    const world = World.started({ delayAfterMs: 60_000 });
    const held: (() => void)[] = [];
    world.gateway.signReport = (_content, done) => held.push(() => { done(new TextEncoder().encode(SIGNED)); }) > 0;
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'unreachable');
    const letter = world.submit(['q1'], { recipients: 2, notify: NOTIFY_DELAY });
    world.until(() => held.length === 1, 200_000, 'a delay is composed');
    world.hops.script = ({ queueName, address }) => (queueName === 'senders' || address.startsWith('0') ? 'accept' : 'defer');
    world.until(() => world.hops.arrivals.length === 1, 600_000, 'it is delivered to one');
    world.run(1000);
    held.shift()?.();
    world.until(() => held.length === 1, 600_000, 'it is composed anew');
    assert.equal(letter.reports.size, 0);
    held.shift()?.();
    world.run(1000);
    world.hops.script = () => 'accept';
    quietAndJudged(world);
    assert.deepEqual([...letter.reports.keys()], ['delay 1@q1.example']);
  });
});

describe('a delay', () => {
  /** The next hop of the letters does not answer; the reports' does. */
  function waiting(options: ConstructorParameters<typeof World>[0] = {}): World {
    const world = World.started({ delayAfterMs: 60_000, ...options });
    world.hops.script = ({ queueName }) => (queueName === 'senders' ? 'accept' : 'unreachable');
    return world;
  }
  const told = (world: World): readonly string[] => world.letters.all.flatMap((letter) => [...letter.reports.keys()]);

  test('is told once to who asked for it, and the message keeps its place', () => {
    const world = waiting({ queues: [{ name: 'q1', ordering: 'strict' }] });
    world.submit(['q1'], { notify: NOTIFY_DELAY });
    world.submit(['q1']);
    world.submit(['q1'], { notify: NOTIFY_DELAY, reversePath: '' });
    world.submit(['q1'], { notify: NOTIFY_SUCCESS });
    world.run(59_000);
    assert.deepEqual(told(world), []);
    world.run(200_000);
    assert.deepEqual(told(world), ['delay 0@q1.example']);
    world.hops.script = () => 'accept';
    quietAndJudged(world);
    assert.equal(world.hops.reports.filter((text) => text.includes(' delay ')).length, 1);
  });

  test('is told as soon as somebody can say where it goes, though the answer may not hold until the walk comes by again', () => {
    const world = waiting();
    world.gateway.wayTo = askedWays(world, 50, true);
    for (let i = 0; i < 60; i++) world.submit(['q1'], { notify: NOTIFY_DELAY, reversePath: `u${String(i)}@senders.example` });
    world.run(70_000);
    assert.deepEqual(told(world), Array.from({ length: 60 }, () => 'delay 0@q1.example'));
    world.hops.script = () => 'accept';
    quietAndJudged(world);
  });

  test('is told to who said nothing of reports where that is configured, and to nobody else who did not ask', () => {
    const world = waiting({ delayUnasked: true });
    const [silent, failure, success, never] = [0, NOTIFY_FAILURE, NOTIFY_SUCCESS, NOTIFY_NEVER].map((notify) => world.submit(['q1'], { notify }));
    world.run(70_000);
    assert.deepEqual([silent, failure, success, never].map((letter) => letter?.reports.size), [1, 0, 0, 0]);
  });

  test('is not told where new mail would find no room: what is kept is for what ends', () => {
    const world = waiting();
    const letter = world.submit(['q1'], { notify: NOTIFY_DELAY });
    world.until(() => letter.outcome === COMMITTED);
    const { memory } = coreOf(world);
    const taken = memory.acceptBytes - memory.usedBytes;
    memory.inTransitBytes += taken;
    const before = world.gateway.composedCount;
    world.run(200_000);
    assert.deepEqual([told(world), world.gateway.composedCount], [[], before], 'nothing is composed either');
    memory.inTransitBytes -= taken;
    world.run(70_000);
    assert.deepEqual(told(world), ['delay 0@q1.example']);
    world.hops.script = () => 'accept';
    quietAndJudged(world);
  });

  test('is not composed over and over where a long report finds no room', () => {
    const world = waiting();
    const letter = world.submit(['q1'], { notify: NOTIFY_DELAY, recipients: 9000 });
    world.until(() => letter.outcome === COMMITTED);
    const { memory } = coreOf(world);
    const taken = memory.acceptBytes - memory.usedBytes - 200 * 1024;
    memory.inTransitBytes += taken;
    world.run(200_000);
    assert.deepEqual([told(world).length, world.gateway.composedCount], [0, 0]);
    memory.inTransitBytes -= taken;
    world.run(70_000);
    assert.deepEqual([told(world).length > 0, world.gateway.composedCount], [true, 1]);
  });

  test('of a message that is held is told when it goes on', () => {
    const world = waiting();
    const letter = world.submit(['q1'], { notify: NOTIFY_DELAY });
    world.until(() => letter.outcome === COMMITTED);
    const core = coreOf(world);
    doById(core, 'hold', letter.id);
    world.run(200_000);
    assert.deepEqual(told(world), []);
    doById(core, 'release', letter.id);
    world.run(70_000);
    assert.deepEqual(told(world), ['delay 0@q1.example']);
    world.hops.script = () => 'accept';
    quietAndJudged(world);
  });

  test('is told once whatever turn the gateway is killed in', () => {
    let kills = 0;
    for (let turn = 1; turn < 40; turn++) {
      const world = waiting({ seed: turn });
      const letter = world.submit(['q1'], { notify: NOTIFY_DELAY });
      world.until(() => letter.outcome === COMMITTED);
      world.run(60_000);
      const seen = { turns: 0 };
      world.onTurn = () => { seen.turns += 1; };
      for (let step = 0; step < 5000 && seen.turns < turn; step++) world.scheduler.step();
      world.gateway.kill();
      world.run(turn % 3);
      world.gateway.start();
      world.run(200_000);
      if (world.hops.reports.length > 0) kills += 1;
      assert.deepEqual([...new Set(told(world))], ['delay 0@q1.example']);
      assert.ok(world.hops.reports.length <= 2, 'the report itself may be repeated, as any message');
      letter.mayRepeat = true;
      world.hops.script = () => 'accept';
      quietAndJudged(world);
    }
    assert.equal(kills, 39);
  });
});
