/** What an operator is shown of single messages and of the ages of mail: src/gateway/look, and content for `queue cat`. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AgeKey, AgesAnswer, FindAnswer, FindQuestion, ShownEntry } from '../../src/admin-api/look.js';
import { AGE_KEYS_MAX } from '../../src/admin-api/look.js';
import type { Selector } from '../../src/admin-api/queue-orders.js';
import { formatMessageId, parseMessageId } from '../../src/base/text-id.js';
import { latin1Bytes } from '../../src/base/utf8.js';
import { AT_STORES, ExportView } from '../../src/gateway/admin/export-view.js';
import { bindingLimits } from '../../src/gateway/look/binding-limits.js';
import { MessageView } from '../../src/gateway/look/message-view.js';
import { QueueAges } from '../../src/gateway/look/queue-ages.js';
import { walksOf } from '../../src/gateway/look/walks.js';
import { ALIAS_CHANGED } from '../../src/gateway/mail-types.js';
import type { Recipient } from '../../src/gateway/mail-types.js';
import type { NextHopState } from '../../src/gateway/outbound/connection-pool.js';
import { EntryState } from '../../src/gateway/queue/entry-table.js';
import { WallFrame } from '../../src/gateway/queue/wall-frame.js';
import { crc32 } from '../../src/platform/node/checksum.js';
import { doById } from './by-id.js';
import { coreOf, noteQueues, onlyQueue, stateOf } from './inspect.js';
import type { Letter } from './letters.js';
import { World } from './world.js';

const DOWN: NextHopState = {
  relay: 'q1:25', connections: 0, idle: 0, failures: 3, downSinceWallMs: 0, waiting: 1, bytes: 0, lastCode: '', retryInMs: 4000, lastError: 'connection refused', connecting: undefined, fullBy: undefined, isDenied: false, isByMx: false,
};

const SILENT = { relay: 'mx.q1[192.0.2.1]:25', forMs: 42_000, doing: 'waiting for the greeting' };

function shown(world: World, letter: Letter, hop?: NextHopState): readonly ShownEntry[] {
  const clock = { nowMs: () => world.scheduler.nowMs, wallMs: () => world.scheduler.nowMs };
  return new MessageView({ clock, core: coreOf(world), nextHopOf: () => hop }).shown(letter.id).entries;
}

/** Of a message in one queue. */
function why(world: World, letter: Letter, hop?: NextHopState): string {
  const [entry, more] = shown(world, letter, hop);
  assert.ok(entry !== undefined && more === undefined);
  return entry.why;
}

function untilState(world: World, letter: Letter, state: number): void {
  world.until(() => stateOf(coreOf(world), 'q1', letter) === state, 10_000, `state ${String(state)}`);
}

function ages(world: World, by: AgeKey, selector: Selector = { everything: true }): AgesAnswer {
  return walked(walks(world).ages({ by, selector }));
}

function found(world: World, selector: Selector, limit = 100): FindAnswer {
  return walked(walks(world).find({ selector, limit }));
}

function walks(world: World): ReturnType<typeof walksOf> {
  const core = coreOf(world);
  const clock = { nowMs: () => world.scheduler.nowMs, wallMs: () => 0 };
  const view = new MessageView({ clock, core });
  return walksOf('gw-1', core, clock, (queue, row) => view.row(queue, row));
}

function walked<T>(walk: { step(): boolean; answer(): T }): T {
  for (let steps = 0; !walk.step(); steps++) assert.ok(steps < 100_000, 'a walk ends');
  return walk.answer();
}

/** The counts of a key that are not 0, by column. */
function countsOf({ keys }: AgesAnswer, key: string): readonly (readonly [column: number, count: number])[] {
  return [...(keys.find((one) => one.key === key)?.counts ?? []).entries()].filter(([, count]) => count > 0);
}

describe('one message as an operator sees it', () => {
  test('stands in each of its queues, with every recipient, what was said of him, and the copies that have it', () => {
    const world = World.started();
    world.hops.script = ({ address }) => (address.startsWith('0') ? 'accept' : 'defer');
    const letter = world.submit(['q1', 'q2'], { recipients: 2 });
    world.until(() => stateOf(coreOf(world), 'q1', letter) === EntryState.DEFERRED && stateOf(coreOf(world), 'q2', letter) === EntryState.DEFERRED);
    world.untilLevel();
    const entries = shown(world, letter);
    assert.deepEqual(entries.map(({ queue_name: name }) => name).sort(), ['q1', 'q2']);
    for (const { queue_name: name, recipients, copies, state, attempts, next_attempt_time: next, client, helo } of entries) {
      assert.deepEqual(recipients, [{ address: `0@${name}.example`, state: 'delivered' }, { address: `1@${name}.example`, state: 'waiting', last_reply: 'not now' }]);
      assert.deepEqual(copies, [{ store: 'store-a', sync: 'SYNC', has: true }, { store: 'store-b', sync: 'SYNC', has: true }]);
      assert.deepEqual([state, attempts, client, helo], ['deferred', 1, 'client', 'client.example']);
      assert.ok(next !== null);
    }
  });

  test('names a copy that lacks it', () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    world.hops.script = () => 'hang';
    world.submit(['q1']);
    world.run(100);
    world.cut(world.store('b'));
    world.run(3000);
    const late = world.submit(['q1']);
    world.until(() => late.outcome !== 0, 10_000, 'committed at one store');
    const [entry] = shown(world, late);
    assert.deepEqual(entry?.copies.filter(({ store }) => store === 'store-b').map(({ has }) => has), [false]);
    assert.deepEqual(entry.copies.filter(({ store }) => store === 'store-a').map(({ has }) => has), [true]);
  });

  test('says why it is still here: in delivery, behind others, deferred, held, next hop down', () => {
    const world = World.started({ queues: [{ name: 'q1', concurrency: 1 }] });
    world.hops.script = () => 'hang';
    const [first, second] = world.submitMany(2, ['q1']);
    assert.ok(first !== undefined && second !== undefined);
    untilState(world, first, EntryState.IN_FLIGHT);
    untilState(world, second, EntryState.READY);
    assert.equal(why(world, first), 'it is being delivered');
    assert.equal(shown(world, first)[0]?.recipients[0]?.state, 'in delivery');
    assert.equal(why(world, second), 'its queue has 1 in delivery, as many as its route lets');
    assert.match(why(world, second, DOWN), /^the next hop q1:25 is down for \S+, and is tried again in 4s: connection refused$/);
    assert.match(why(world, second, { ...DOWN, connecting: SILENT }), /^the next hop q1:25 is down for \S+, and is tried at this moment: connection refused$/);
    doById(coreOf(world), 'hold', second.id);
    assert.equal(why(world, second, DOWN), 'it is held: ann: a look first');
    assert.equal(shown(world, second)[0]?.recipients[0]?.state, 'held');
  });

  test('says what the connection waits for that is to take it', () => {
    const world = World.started({ queues: [{ name: 'q1', concurrency: 2 }] });
    world.hops.script = () => 'unreachable';
    const letter = world.submit(['q1']);
    world.run(200);
    untilState(world, letter, EntryState.READY);
    assert.equal(why(world, letter), 'its turn comes: 1 ready in its queue');
    const silent = { ...DOWN, downSinceWallMs: undefined, connecting: SILENT };
    assert.equal(why(world, letter, silent), 'connecting to mx.q1[192.0.2.1]:25 for 42s, waiting for the greeting');
    assert.equal(why(world, letter, { ...silent, connecting: { ...SILENT, doing: '' } }), 'connecting to mx.q1[192.0.2.1]:25 for 42s');
  });

  test('says which limit lets no further connection be opened, by the name of its key; explain says that it binds', () => {
    const world = World.started({ queues: [{ name: 'q1', concurrency: 2 }] });
    world.hops.script = () => 'unreachable';
    const letter = world.submit(['q1']);
    world.run(200);
    untilState(world, letter, EntryState.READY);
    const clock = { nowMs: () => world.scheduler.nowMs, wallMs: () => world.scheduler.nowMs };
    const told = (key: string, open: number): unknown => {
      const hop = { ...DOWN, downSinceWallMs: undefined, fullBy: { key, text: '20 of 20 to its hosts are open' } };
      const { limits } = bindingLimits('q1', '', { core: coreOf(world), clock, nextHopOf: () => hop, connections: () => ({ open, max: 5000 }) });
      return [why(world, letter, hop), limits.filter(({ binds }) => binds)];
    };
    const text = '20 of 20 to its hosts are open (delivery.mx.connections)';
    assert.deepEqual(told('delivery.mx.connections', 20), [`it waits for a connection: ${text}`, [{ limit: 'connections', binds: true, text }]]);
    const [, all] = told('delivery.connections', 5000) as [string, object[]];
    assert.deepEqual(all, [{ limit: 'connections', binds: true, text: '5,000 of 5,000 connections to all next hops (delivery.connections)' }], 'once');
  });

  test('says that it waits behind the head of its strict queue, and when that is tried; explain says that the order binds', () => {
    const world = World.started({ queues: [{ name: 'q1', ordering: 'strict' }] });
    world.hops.script = () => 'defer';
    const [head, behind] = world.submitMany(2, ['q1']);
    assert.ok(head !== undefined && behind !== undefined);
    world.until(() => shown(world, head)[0]?.attempts === 1 && stateOf(coreOf(world), 'q1', head) === EntryState.READY, 10_000, 'its first attempt');
    assert.equal(why(world, head), 'it holds its strict queue, and waits for its next attempt');
    assert.notEqual(shown(world, head)[0]?.next_attempt_time, null);
    assert.equal(why(world, behind), 'the first message of its strict queue is tried again before it');
    assert.equal(shown(world, behind)[0]?.next_attempt_time, null);
    const clock = { nowMs: () => world.scheduler.nowMs, wallMs: () => world.scheduler.nowMs };
    const { limits } = bindingLimits('q1', '', { core: coreOf(world), clock, connections: () => ({ open: 5, max: 5 }) });
    const [order, ...more] = limits.filter(({ binds }) => binds);
    assert.deepEqual([order?.limit, more], ['order', []], 'for no connection');
    assert.match(order?.text ?? '', new RegExp(`^its first message ${formatMessageId(head.id)} is tried again in \\d\\S*: not now$`));
    assert.match(limits.find(({ limit }) => limit === 'concurrency')?.text ?? '', /^0 of 1 in delivery \(a strict queue\).*, 0 ready$/);
  });

  test('waits for its next attempt with others, and explain says how many, when that is, and what was said last', () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    world.hops.script = () => 'defer';
    const letters = world.submitMany(3, ['q1']);
    const [first] = letters;
    assert.ok(first !== undefined);
    world.until(() => letters.every((letter) => stateOf(coreOf(world), 'q1', letter) === EntryState.DEFERRED), 10_000, 'deferrals');
    const clock = { nowMs: () => world.scheduler.nowMs, wallMs: () => world.gateway.wallMs() };
    const { limits } = bindingLimits('q1', '', { core: coreOf(world), clock, connections: () => ({ open: 0, max: 5 }) });
    const [retries, ...more] = limits.filter(({ binds }) => binds);
    assert.deepEqual([retries?.limit, more], ['retries', []]);
    assert.match(retries?.text ?? '', /^3 of 3 messages are deferred, the first is tried again in \d\S*: not now$/);
  });

  test('is nowhere when it was delivered, and after a restart is where it was', () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    const gone = world.submit(['q1']);
    world.untilQuiet();
    assert.deepEqual(shown(world, gone), []);
    world.hops.script = () => 'defer';
    const letter = world.submit(['q1'], { recipients: 2 });
    untilState(world, letter, EntryState.DEFERRED);
    world.run(500);
    world.gateway.kill();
    world.startGateway();
    world.until(() => shown(world, letter).length === 1 && !coreOf(world).isIncomplete, 30_000, 'it is back');
    assert.deepEqual(shown(world, letter)[0]?.recipients.map(({ address }) => address), ['0@q1.example', '1@q1.example']);
  });
});

describe('content of one message', () => {
  test('is what was accepted, whichever of its queues is asked, and nothing when it is gone', () => {
    const world = World.started();
    world.hops.script = () => 'hang';
    const letter = world.submit(['q1', 'q2'], { bytes: 3000 });
    world.submitMany(5, ['q1']);
    world.run(100);
    const { entries, bodies, registry } = coreOf(world);
    const view = new ExportView({ crc32, entries, bodies, queuesOf: (name) => registry.byName(name), placesOf: (id) => registry.placesOf(id) });
    const page = view.exportMessage(letter.id, 'all');
    assert.ok(page !== undefined && page !== AT_STORES);
    assert.deepEqual(page.payload.slice(0, letter.content.length), Uint8Array.from(letter.content));
    assert.equal(page.nextCursor, undefined);
    assert.equal(view.exportMessage(letter.id + 1_000_000, 'all'), undefined);
  });
});

describe('ages of mail', () => {
  test('stand in the column of the minutes that passed, by domain, queue and sender; a message to two domains counts once in all', () => {
    const world = World.started({ queues: [{ name: 'q1' }, { name: 'q2' }], lifetimeMs: 500 * 3_600_000 });
    world.hops.script = () => 'unreachable';
    world.submitMany(3, ['q1']);
    world.run(7 * 60_000);
    world.submitMany(2, ['q2'], { reversePath: '' });
    world.submit(['q1', 'q2']);
    world.run(1000);
    const domains = ages(world, 'domain');
    assert.deepEqual(countsOf(domains, 'q1.example'), [[0, 1], [1, 3]]);
    assert.deepEqual(countsOf(domains, 'q2.example'), [[0, 3]]);
    assert.deepEqual(domains.total.slice(0, 3), [4, 3, 0], 'an entry in each queue');
    const queues = ages(world, 'queue');
    assert.deepEqual([countsOf(queues, 'q1'), countsOf(queues, 'q2')], [[[0, 1], [1, 3]], [[0, 3]]]);
    const senders = ages(world, 'sender-domain');
    assert.deepEqual([countsOf(senders, '<>'), countsOf(senders, 'senders.example')], [[[0, 2]], [[0, 2], [1, 3]]]);
    const core = coreOf(world);
    const late = { nowMs: () => 0, wallMs: () => core.frame.wallMs() + 1279 * 60_000 };
    const { entries, registry, names, toAscii } = core;
    const walk = new QueueAges('gw-1', { by: 'queue', selector: { everything: true } }, {
      clock: late, frame: new WallFrame(late), entries, registry, names, toAscii, envelopeOf: (row) => core.envelopeOf(row), noteOf: (row, count) => core.noteOf(row, count), isIncomplete: () => false,
    });
    assert.deepEqual(countsOf(walked(walk), 'q1'), [[8, 1], [9, 3]], 'older than the last end');
  });

  test('are of what a selector means', () => {
    const world = World.started({ queues: [{ name: 'q1' }, { name: 'q2' }] });
    world.hops.script = () => 'unreachable';
    world.submitMany(3, ['q1']);
    world.submitMany(2, ['q2']);
    world.run(100);
    const chosen = ages(world, 'domain', { domain: 'q2.*' });
    assert.deepEqual([chosen.total[0], chosen.keys.map(({ key }) => key)], [2, ['q2.example']]);
    assert.equal(ages(world, 'queue', { sender: 'bob@*' }).total[0], 0);
  });

  test('are counted part by part, and tell no more keys apart than they may', () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    world.hops.script = () => 'unreachable';
    const count = AGE_KEYS_MAX + 500;
    for (let i = 0; i < count; i++) {
      world.submit(['q1'], { reversePath: `a@d${String(i)}.example`, bytes: 20 });
      if (i % 500 === 0) world.run(20);
    }
    world.run(1000);
    const { keys, others, total, unread } = ages(world, 'sender-domain');
    assert.deepEqual([keys.length, others[0], total[0], unread[0]], [AGE_KEYS_MAX, 500, count, 0]);
  });
});

describe('messages that are looked for', () => {
  test('are those that a selector means, the first of them up to a limit', () => {
    const world = World.started({ queues: [{ name: 'q1' }, { name: 'q2' }] });
    world.hops.script = () => 'unreachable';
    const old = world.submit(['q1']);
    world.run(120_000);
    const letters = world.submitMany(5, ['q2'], { reversePath: 'bob@b.example' });
    world.run(100);
    const ids = letters.map(({ id }) => formatMessageId(id));
    const all = found(world, { sender: 'bob@*' });
    assert.deepEqual([all.messages.map(({ queue_id: id }) => id), all.more, all.looked_share, all.incomplete], [ids, false, 1, false]);
    assert.deepEqual(all.messages[0]?.recipients.map(({ address }) => address), ['0@q2.example']);
    const some = found(world, { domain: 'q2.example' }, 3);
    assert.deepEqual([some.messages.map(({ queue_id: id }) => id), some.more], [ids.slice(0, 3), true]);
    assert.equal(found(world, { domain: 'q2.example' }, 5).more, false);
    assert.deepEqual(found(world, { newer_than_seconds: 60 }).messages.length, 5);
    assert.deepEqual(found(world, { older_than_seconds: 60 }).messages.map(({ queue_id: id }) => id), [formatMessageId(old.id)]);
  });

  test('are known by the Message-ID of their header, however old they are, and by the name that was given where an alias led on', () => {
    const world = World.started({ queues: [{ name: 'q1' }] });
    world.hops.script = () => 'unreachable';
    const core = coreOf(world);
    const submit = (header: string, recipient: Partial<Recipient> = {}): string => {
      const messageId = core.nextMessageId();
      const content = latin1Bytes(`Received: from a\r\n\tby b\r\n${header}\r\n\r\nMessage-ID: <body@a.example>\r\n`);
      core.submit({
        messageId, reversePath: 'a@a.example', groups: [{ route: world.route('q1'), recipients: [{ address: 'b@q1.example', notify: 0, orcpt: '', ...recipient }] }],
        chunks: [content], contentBytes: content.length, flags: 0, ret: 0, envid: '', client: '192.0.2.1', helo: 'a.example', settle: () => { noteQueues(core); },
      });
      noteQueues(core);
      world.run(100);
      return formatMessageId(messageId);
    };
    const plain = submit('Subject: x\r\nmessage-ID: <one@a.example>');
    const folded = submit('Message-ID:\r\n <folded@a.example>');
    submit('Subject: none');
    const long = submit(`X-Long: ${'x'.repeat(20_000)}\r\nMessage-ID: <long@a.example>`);
    const led = submit('Subject: y', { notify: ALIAS_CHANGED, orcpt: 'rfc822;sales+2Bx@q1.example' });
    const ask = (question: Omit<FindQuestion, 'limit' | 'selector'>): FindAnswer => walked(walks(world).find({ selector: { everything: true }, limit: 10, ...question }));
    const ids = (answer: FindAnswer): readonly string[] => answer.messages.map(({ queue_id: id }) => id);
    const one = ask({ message_id: '<one@a.example>' });
    assert.deepEqual([ids(one), one.unread], [[plain], 1], 'of the long one nobody knows');
    assert.deepEqual(ids(ask({ message_id: 'folded@a.example' })), [folded]);
    for (const none of ['ONE@a.example', 'body@a.example', 'long@a.example']) assert.deepEqual(ids(ask({ message_id: none })), []);
    for (const recipient of ['Sales+x@q1.example', 'sales*']) {
      const { messages } = ask({ recipient });
      assert.deepEqual(messages.map(({ queue_id: id, recipients }) => [id, recipients.map(({ address, given }) => [address, given])]), [[led, [['b@q1.example', 'sales+x@q1.example']]]]);
    }
    assert.equal(ids(ask({ recipient: 'b@*' })).length, 5);
    assert.deepEqual(ids(ask({ recipient: 'x@*' })), []);
    const abroad = submit('Subject: z', { notify: ALIAS_CHANGED, orcpt: 'utf-8;ann@b\\x{FC}cher.example' });
    assert.deepEqual(ids(ask({ recipient: 'ann@xn--bcher-kva.example' })), [abroad]);
    for (let n = 0; n < 3; n++) submit(`${'X: y\r\n'.repeat(2_000)}Subject: many lines`);
    const walk = walks(world).find({ selector: { everything: true }, limit: 10, message_id: 'none@a.example' });
    let steps = 1;
    while (!walk.step()) steps += 1;
    assert.equal(steps, 2, 'a header of many lines is much of what a turn has');
    const { partition, handle } = onlyQueue(world.mirror('q1'));
    for (const id of [long, plain]) core.entries.dropBody(partition, core.entries.table.index.find(parseMessageId(id) ?? 0, handle));
    assert.equal(ask({ message_id: 'x' }).unread, 2, 'content that is at the stores alone');
  });
});
