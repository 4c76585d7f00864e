import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, test } from 'node:test';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';
import { DEFERRED, DELIVERED, FAILED } from '../../../../src/gateway/mail-types.js';
import type { Delivery, NextHop, Ordering } from '../../../../src/gateway/mail-types.js';
import type { Dispatcher, DispatcherOptions } from '../../../../src/gateway/outbound/dispatcher.js';
import { OUTBOUND_DEFAULTS } from '../../../default-options.js';
import { until } from '../../register/real-world.js';
import { MemoryQueue, MemorySource, dispatcherFor as makeDispatcher } from './memory-source.js';
import { ScriptedServer } from './scripted-server.js';

// A failed test must not keep the process: whatever is left over ends here.
const dispatchers: Dispatcher[] = [];
const servers: ScriptedServer[] = [];
after(async () => {
  for (const server of servers) server.close();
  await Promise.all(dispatchers.map((one) => one.stop(0)));
});

function dispatcherFor(source: MemorySource, more: Partial<DispatcherOptions> = {}, mayDot?: (delivery: Delivery) => boolean): Dispatcher {
  const dispatcher = makeDispatcher(source, more, mayDot);
  dispatchers.push(dispatcher);
  return dispatcher;
}

const at = (port: number): NextHop => ({ protocol: 'smtp', host: '127.0.0.1', port });
const text = (entry: number): string => `X-Entry: ${entry}\r\n\r\nhello\r\n`;
const entryOf = (content: string): number => Number(/X-Entry: (\d+)/.exec(content)?.[1]);

interface World { server: ScriptedServer; source: MemorySource; queue: MemoryQueue; fill(count: number): void }

async function world(route: { ordering?: Ordering; concurrency?: number } = {}): Promise<World> {
  const server = new ScriptedServer();
  servers.push(server);
  const port = await server.listen();
  const source = new MemorySource();
  const queue = new MemoryQueue({ nextHop: at(port), ...route });
  return { server, source, queue, fill: (count) => { for (let i = 1; i <= count; i++) source.put(queue, i, text(i)); } };
}

test('delivers a queue over few connections, every content once and unchanged', async () => {
  const { server, source, queue, fill } = await world({ concurrency: 5 });
  const dispatcher = dispatcherFor(source);
  fill(500);
  dispatcher.onReady(queue);
  await source.untilEnded(500);
  assert.ok(source.ended.every((one) => one.result.results[0]?.status === DELIVERED && !one.result.dotUnanswered && one.result.dsnPassedOn));
  assert.deepEqual(server.accepted.map((one) => entryOf(one.content)).sort((a, b) => a - b), Array.from({ length: 500 }, (_, i) => i + 1));
  assert.ok(server.accepted.every((one) => one.content === text(entryOf(one.content))));
  assert.ok(source.inFlightMost <= 5 && server.openMost <= 10, `${source.inFlightMost} in flight, ${server.openMost} open`);
  assert.deepEqual(source.taken, Array.from({ length: 500 }, (_, i) => i + 1), 'taken in order');
  await dispatcher.stop(1000);
  server.close();
});

test('most envelopes go along with the dot before, once the first has been taken so', async () => {
  const { server, source, queue, fill } = await world({ concurrency: 10 });
  const dispatcher = dispatcherFor(source, { messagesPerConnectionMax: 1000 });
  fill(500);
  dispatcher.onReady(queue);
  await source.untilEnded(500);
  assert.deepEqual(source.taken, Array.from({ length: 500 }, (_, i) => i + 1));
  assert.ok(source.inFlightMost <= 10);
  assert.ok(server.behindDots > 250, `${server.behindDots} behind dots`);
  await dispatcher.stop(1000);
  server.close();
});

test('a next hop that is odd once after all is believed no more, whatever others of its connections come to', async () => {
  const { server, source, queue, fill } = await world({ concurrency: 10 });
  const dispatcher = dispatcherFor(source, { messagesPerConnectionMax: 1000 });
  let behindThen = 0;
  server.answer = (verb, connection) => {
    if (verb !== 'MAIL' || server.lastBehindDot !== connection || server.behindDots < 50 || behindThen > 0) return undefined;
    behindThen = server.behindDots;
    return '503 5.5.1 sequence';
  };
  fill(600);
  dispatcher.onReady(queue);
  await source.untilEnded(600);
  assert.ok(source.ended.every((one) => one.result.results[0]?.status === DELIVERED));
  assert.ok(behindThen >= 50 && server.behindDots <= behindThen + 20, `${behindThen}, then ${server.behindDots}`);
  await dispatcher.stop(1000);
  server.close();
});

test('what would be tried once more is given back when its queue goes another way, and goes that way', async () => {
  const { server, source, queue, fill } = await world();
  const dispatcher = dispatcherFor(source);
  fill(1);
  dispatcher.onReady(queue);
  await source.untilEnded(1);
  // The kept connection is cut, and no other one comes to its greeting: the second waits to be repeated.
  server.answer = (verb, connection) => (verb === 'GREETING' ? '' : connection === 1 && verb === 'MAIL' ? 'cut' : undefined);
  source.put(queue, 2, text(2));
  dispatcher.onReady(queue);
  await until(() => server.connections === 2, 'a second connection');
  assert.equal(source.ended.length, 1);
  const other = await world();
  queue.route = { ...queue.route, nextHop: other.queue.route.nextHop };
  dispatcher.onReady(queue);
  const [, ended] = source.ended;
  assert.deepEqual([ended?.entry, ended?.result.notAttempted, ended?.result.results[0]?.status], [2, true, DEFERRED]);
  assert.deepEqual(dispatcher.nextHops().map(({ waiting }) => waiting), [0, 0]);
  source.put(queue, 3, text(3));
  dispatcher.onReady(queue);
  await source.untilEnded(3);
  assert.deepEqual(other.server.accepted.map(({ content }) => entryOf(content)), [3]);
});

test('what a kept connection does not take any more goes no old way again, once its queue goes another', async () => {
  const { server, source, queue, fill } = await world();
  const dispatcher = dispatcherFor(source);
  fill(1);
  dispatcher.onReady(queue);
  await source.untilEnded(1);
  server.answer = (_verb, connection) => (connection === 1 ? '' : undefined);
  source.put(queue, 2, text(2));
  dispatcher.onReady(queue);
  await until(() => server.verbs.filter((verb) => verb === 'MAIL').length === 2, 'MAIL on the kept connection');
  const other = await world();
  queue.route = { ...queue.route, nextHop: other.queue.route.nextHop };
  dispatcher.onReady(queue);
  server.sockets[0]?.destroy();
  await source.untilEnded(2);
  assert.deepEqual([source.ended[1]?.entry, source.ended[1]?.result.notAttempted, server.connections], [2, true, 1]);
});

test('begins nothing more the old way once routes are other ones, though a connection is kept there', async () => {
  const { server, source, queue, fill } = await world();
  const dispatcher = dispatcherFor(source);
  fill(1);
  dispatcher.onReady(queue);
  await source.untilEnded(1);
  const other = await world();
  queue.route = { ...queue.route, nextHop: other.queue.route.nextHop };
  dispatcher.renew({ ...OUTBOUND_DEFAULTS, heloName: 'renewed.test' });
  // Nobody says that it is ready: a tick of the connections finds it.
  source.put(queue, 2, text(2));
  await source.untilEnded(2);
  assert.deepEqual(other.server.accepted.map(({ content }) => entryOf(content)), [2]);
  assert.deepEqual(server.accepted.map(({ content }) => entryOf(content)), [1]);
});

/** Next hops that offer PIPELINING and do not bear an envelope behind a dot: what each does to the first one. */
const ODD_HOPS: readonly { what: string; odd(server: ScriptedServer, verb: string): string | undefined; twice: number }[] = [
  { what: 'refuses MAIL', odd: (_server, verb) => (verb === 'MAIL' ? '554 5.5.1 synchronization' : undefined), twice: 0 },
  { what: 'refuses the recipient', odd: (_server, verb) => (verb === 'RCPT' ? '503 5.5.1 sequence' : undefined), twice: 0 },
  { what: 'refuses the dot', odd: (_server, verb) => (verb === 'DOT' ? '554 5.5.0 data behind the dot' : undefined), twice: 0 },
  { what: 'takes the message and closes unanswered', odd: (_server, verb) => (verb === 'DOT' ? 'taken, cut' : undefined), twice: 1 },
];

for (const { what, odd, twice } of ODD_HOPS) {
  test(`a next hop that ${what} for an envelope behind a dot sees one, and no message fails`, async () => {
    const { server, source, queue, fill } = await world({ concurrency: 10 });
    const dispatcher = dispatcherFor(source, { messagesPerConnectionMax: 1000 });
    const hit: number[] = [];
    server.answer = (verb, connection) => {
      if (server.lastBehindDot !== connection || hit.includes(connection)) return undefined;
      const answer = odd(server, verb);
      if (answer !== undefined) hit.push(connection);
      return answer;
    };
    fill(300);
    dispatcher.onReady(queue);
    await source.untilEnded(300);
    const failed = source.ended.filter((one) => one.result.results[0]?.status !== DELIVERED);
    assert.deepEqual([failed.length, failed.every((one) => one.result.dotUnanswered)], [twice, true]);
    assert.deepEqual([hit.length, server.behindDots], [1, 1]);
    assert.equal(server.accepted.length, 300);
    await dispatcher.stop(1000);
    server.close();
  });
}

test('a backlog of which the next hop takes nothing, for each message is too large, ends a part in each turn', async () => {
  const { server, source, queue, fill } = await world({ concurrency: 1 });
  server.offers = ['PIPELINING', 'SIZE 10'];
  const dispatcher = dispatcherFor(source);
  const endedBy: number[] = [0];
  const look = (): void => {
    endedBy.push(source.ended.length);
    if (source.ended.length < 5000) setImmediate(look);
  };
  setImmediate(look);
  fill(5000);
  dispatcher.onReady(queue);
  await source.untilEnded(5000);
  await until(() => endedBy.at(-1) === 5000, 'the last look');
  const most = Math.max(...endedBy.map((count, i) => count - (endedBy[i - 1] ?? 0)));
  // The first turn may bring the connection, and two parts behind it.
  assert.ok(most <= 50, `${most} in one turn`);
  assert.ok(source.ended.every((one) => one.result.results[0]?.enhanced === '5.3.4'));
  assert.deepEqual([server.connections, server.verbs.includes('MAIL')], [1, false]);
  await dispatcher.stop(1000);
  server.close();
});

test('a message is not kept waiting by a connection that does not come to its dot', async () => {
  const { server, source, queue, fill } = await world({ concurrency: 10 });
  const dispatcher = dispatcherFor(source);
  fill(1);
  dispatcher.onReady(queue);
  await source.untilEnded(1);
  server.answer = (verb, connection) => (verb === 'DATA' && connection === 1 ? '' : undefined);
  for (const entry of [2, 3]) {
    source.put(queue, entry, text(entry));
    dispatcher.onReady(queue);
  }
  await source.untilEnded(2);
  assert.deepEqual(server.accepted.map((one) => [one.connection, entryOf(one.content)]), [[1, 1], [2, 3]]);
  await dispatcher.stop(10);
  server.close();
});

test('takes a new connection after 100 messages', async () => {
  const { server, source, queue, fill } = await world({ concurrency: 1 });
  const dispatcher = dispatcherFor(source);
  fill(250);
  dispatcher.onReady(queue);
  await source.untilEnded(250);
  assert.deepEqual([1, 2, 3].map((c) => server.accepted.filter((one) => one.connection === c).length), [100, 100, 50]);
  await dispatcher.stop(1000);
  server.close();
});

test('strict order has one message in flight and arrives in order, whatever the concurrency says', async () => {
  const { server, source, queue, fill } = await world({ ordering: 'strict', concurrency: 20 });
  const dispatcher = dispatcherFor(source);
  fill(150);
  dispatcher.onReady(queue);
  await source.untilEnded(150);
  assert.equal(source.inFlightMost, 1);
  assert.deepEqual(server.accepted.map((one) => entryOf(one.content)), Array.from({ length: 150 }, (_, i) => i + 1));
  await dispatcher.stop(1000);
  server.close();
});

test('without the right to its dot a delivery ends as no attempt, nothing of it arrives, and the others go on', async () => {
  const { server, source, queue, fill } = await world({ concurrency: 1 });
  const dispatcher = dispatcherFor(source, {}, (delivery) => delivery.entry !== 2);
  fill(3);
  dispatcher.onReady(queue);
  await source.untilEnded(3);
  assert.deepEqual(source.ended.map((one) => [one.entry, one.result.noRight ?? false, one.result.results[0]?.status]), [[1, false, DELIVERED], [2, true, DEFERRED], [3, false, DELIVERED]]);
  assert.deepEqual(server.accepted.map((one) => entryOf(one.content)), [1, 3]);
  await dispatcher.stop(1000);
  server.close();
});

test('a connection cut after the dot ends deferred with dotUnanswered, and nobody repeats it', async () => {
  const { server, source, queue, fill } = await world({ concurrency: 1 });
  server.answer = (verb, connection) => (verb === 'DOT' && connection === 1 ? 'cut' : undefined);
  const dispatcher = dispatcherFor(source);
  fill(2);
  dispatcher.onReady(queue);
  await source.untilEnded(2);
  const [first, second] = source.ended;
  assert.equal(first?.result.dotUnanswered, true);
  assert.equal(first.result.results[0]?.status, DEFERRED);
  assert.equal(second?.result.results[0]?.status, DELIVERED);
  assert.deepEqual(server.accepted.map((one) => entryOf(one.content)), [2]);
  await dispatcher.stop(1000);
  server.close();
});

test('a kept connection that the peer has closed is replaced at once, without an attempt of its own', async () => {
  const { server, source, queue } = await world({ concurrency: 1 });
  // The second MAIL on a connection finds it closed: what an idle timeout of the peer looks like from here.
  const mails = new Map<number, number>();
  server.answer = (verb, connection) => {
    if (verb !== 'MAIL') return undefined;
    mails.set(connection, (mails.get(connection) ?? 0) + 1);
    return mails.get(connection) === 2 ? (connection === 1 ? 'cut' : '421 4.4.2 idle too long') : undefined;
  };
  const dispatcher = dispatcherFor(source);
  for (let i = 1; i <= 5; i++) source.put(queue, i, text(i));
  dispatcher.onReady(queue);
  await source.untilEnded(5);
  assert.ok(source.ended.every((one) => one.result.results[0]?.status === DELIVERED));
  assert.deepEqual(server.accepted.map((one) => one.connection), [1, 2, 3, 4, 5]);
  assert.equal(source.taken.length, 5);
  await dispatcher.stop(1000);
  server.close();
});

test('a peer that always closes at MAIL gets one repetition, then the delivery is deferred', async () => {
  const { server, source, queue, fill } = await world({ concurrency: 1 });
  let accepted = 0;
  server.answer = (verb) => (verb === 'MAIL' && ++accepted > 1 ? 'cut' : undefined);
  const dispatcher = dispatcherFor(source);
  fill(2);
  dispatcher.onReady(queue);
  await source.untilEnded(2);
  assert.equal(source.ended[1]?.result.results[0]?.status, DEFERRED);
  assert.equal(source.ended[1].result.dotUnanswered, false);
  assert.equal(server.connections, 2);
  await dispatcher.stop(1000);
  server.close();
});

/** What a next hop does with the first mail of each connection. */
const TURNED_AWAY: readonly (readonly [string, string, string])[] = [
  ['says 421 to MAIL', 'MAIL', '421 4.7.0 too many messages from you'], ['says 421 to RCPT', 'RCPT', '421 4.7.0 later'], ['closes at MAIL', 'MAIL', 'cut'],
];

for (const [what, at, answer] of TURNED_AWAY) {
  test(`a next hop that greets and ${what} is left alone as one that does not greet, and what waits keeps its attempts`, async () => {
    const { server, source, queue, fill } = await world({ concurrency: 10 });
    let isBusy = true;
    server.answer = (verb) => (verb === at && isBusy ? answer : undefined);
    const dispatcher = dispatcherFor(source, { backoffFirstMs: 300, backoffMaxMs: 60_000 });
    fill(100);
    dispatcher.onReady(queue);
    // The ten that began side by side, then one by one.
    await source.untilEnded(12);
    const [hop] = dispatcher.nextHops();
    assert.ok(hop !== undefined && hop.failures >= 2 && hop.downSinceWallMs !== undefined, JSON.stringify(hop));
    assert.match(hop.lastError, answer === 'cut' ? /lost while waiting for the reply to MAIL/ : /^421 4\.7\.0 /);
    assert.deepEqual([hop.lastCode, hop.bytes, hop.waiting > 0], [answer === 'cut' ? '4.4.2' : '421', 1000 * queue.waiting.length, true]);
    assert.ok(server.connections <= 13, `no storm: ${server.connections} connections`);
    assert.ok(source.ended.every((one) => one.result.results[0]?.status === DEFERRED && one.result.notAttempted !== true));
    isBusy = false;
    dispatcher.hasten(queue);
    await source.untilEnded(100);
    assert.equal(source.taken.length, 100);
    assert.ok(server.accepted.length >= 86, `${server.accepted.length} of 100`);
    assert.deepEqual([dispatcher.nextHops()[0]?.failures, dispatcher.nextHops()[0]?.downSinceWallMs], [0, undefined]);
    await dispatcher.stop(1000);
    server.close();
  });
}

test('a next hop that takes so many messages on a connection, and says 421 to the next, has not failed', async () => {
  for (const at of ['MAIL', 'RCPT']) {
    const { server, source, queue, fill } = await world({ concurrency: 1 });
    server.answer = (verb, connection) => (verb === at && server.accepted.filter((one) => one.connection === connection).length >= 3 ? '421 4.7.0 enough' : undefined);
    // Back-off would outlast the test.
    const dispatcher = dispatcherFor(source, { backoffFirstMs: 600_000, backoffMaxMs: 600_000 });
    fill(30);
    dispatcher.onReady(queue);
    await source.untilEnded(30);
    assert.equal(dispatcher.nextHops()[0]?.failures, 0);
    await dispatcher.stop(1000);
    server.close();
  }
});

test('an idle connection is ended politely after its time', async () => {
  const { server, source, queue, fill } = await world();
  const dispatcher = dispatcherFor(source, { idleMs: 300 });
  fill(1);
  dispatcher.onReady(queue);
  await source.untilEnded(1);
  const [socket] = server.sockets;
  assert.ok(socket !== undefined);
  if (!socket.closed) await once(socket, 'close');
  assert.equal(server.verbs.at(-1), 'QUIT');
  await dispatcher.stop(1000);
  server.close();
});

test('an unreachable next hop defers one delivery a back-off step, and the rest goes in order when it is back', async () => {
  const { server, source, queue, fill } = await world({ concurrency: 10 });
  let isDown = true;
  server.answer = (verb) => (verb === 'GREETING' && isDown ? '421 4.3.2 not now' : undefined);
  const dispatcher = dispatcherFor(source, { backoffFirstMs: 300, backoffMaxMs: 300 });
  fill(50);
  dispatcher.onReady(queue);
  await source.untilEnded(2);
  assert.ok(server.connections <= 11, `no storm: ${server.connections} connections`);
  const [hop] = dispatcher.nextHops();
  assert.deepEqual([hop?.failures, hop?.waiting], [2, 48]);
  const downMs = Date.now() - (hop?.downSinceWallMs ?? 0);
  assert.ok(downMs >= 200 && downMs < 60_000, `since the first failure: ${String(downMs)} ms`);
  assert.equal(source.ended[0]?.result.results[0]?.code, 421);
  isDown = false;
  await source.untilEnded(50);
  assert.deepEqual([dispatcher.nextHops()[0]?.downSinceWallMs, dispatcher.nextHops()[0]?.waiting], [undefined, 0]);
  assert.deepEqual(source.ended.slice(2).filter((one) => one.result.results[0]?.status !== DELIVERED), []);
  assert.deepEqual(source.taken, Array.from({ length: 50 }, (_, i) => i + 1));
  await dispatcher.stop(1000);
  server.close();
});

test('a next hop that says more than it was asked before the first message is a failed one, with a back-off', async () => {
  for (const unasked of ['421 4.3.2 too busy', '250 more']) {
    const { server, source, queue, fill } = await world({ concurrency: 3 });
    server.answer = (verb) => (verb === 'EHLO' ? `250 scripted\r\n${unasked}` : undefined);
    const dispatcher = dispatcherFor(source, { backoffFirstMs: 200, backoffMaxMs: 200 });
    fill(10);
    dispatcher.onReady(queue);
    await source.untilEnded(2);
    assert.ok(server.connections <= 4, `no storm: ${server.connections} connections`);
    assert.ok(source.ended.every((one) => one.result.results[0]?.status === DEFERRED && !one.result.dotUnanswered));
    await dispatcher.stop(1000);
    server.close();
  }
});

test('a refused connection defers with 4.4.1 and names the next hop', async () => {
  const { server, source, queue, fill } = await world();
  server.close();
  const dispatcher = dispatcherFor(source);
  fill(1);
  dispatcher.onReady(queue);
  await source.untilEnded(1);
  const result = source.ended[0]?.result;
  assert.equal(result?.results[0]?.enhanced, '4.4.1');
  assert.match(result.results[0].text, /127\.0\.0\.1\[127\.0\.0\.1\]:\d+: ECONNREFUSED/);
  await dispatcher.stop(1000);
});

test('two queues to one next hop share its connections and take turns', async () => {
  const { server, source, queue } = await world({ concurrency: 1 });
  const other = new MemoryQueue({ nextHop: { ...queue.route.nextHop }, concurrency: 1, queueName: 'other' });
  for (let i = 1; i <= 20; i++) source.put(i % 2 === 0 ? queue : other, i, text(i));
  const dispatcher = dispatcherFor(source);
  dispatcher.onReady(queue);
  dispatcher.onReady(other);
  await source.untilEnded(20);
  assert.equal(dispatcher.nextHops().length, 1);
  assert.ok(server.connections <= 2);
  await dispatcher.stop(1000);
  server.close();
});

test('stop lets what is in flight end, takes nothing more and closes its connections', async () => {
  const { server, source, queue, fill } = await world({ concurrency: 1 });
    server.answer = (verb, connection) => {
    if (verb !== 'DOT') return undefined;
    void dispatcher.stop(10_000).then(() => { isStopped = true; });
    setImmediate(() => { server.sockets[connection - 1]?.write('250 2.0.0 late\r\n'); });
    return '';
  };
  let isStopped = false;
  const dispatcher = dispatcherFor(source);
  fill(3);
  dispatcher.onReady(queue);
  await source.untilEnded(1);
  await dispatcher.stop(0);
  assert.ok(isStopped);
  assert.equal(source.ended[0]?.result.results[0]?.text, '250 2.0.0 late');
  assert.deepEqual(source.taken, [1]);
  server.close();
});

test('stop abandons at its bound: before the dot plainly deferred, after it dotUnanswered', async () => {
  for (const silent of ['DATA', 'DOT']) {
    const { server, source, queue, fill } = await world({ concurrency: 1 });
    const reached = new Promise<void>((resolve) => {
      server.answer = (verb) => {
        if (verb !== silent) return undefined;
        resolve();
        return '';
      };
    });
    const dispatcher = dispatcherFor(source);
    fill(1);
    dispatcher.onReady(queue);
    await reached;
    await dispatcher.stop(50);
    assert.equal(source.ended[0]?.result.results[0]?.status, DEFERRED);
    assert.equal(source.ended[0].result.dotUnanswered, silent === 'DOT');
    server.close();
  }
});

test('next hops that take no byte of large contents keep nobody waiting: each holds a piece of its own, and no attempt ends', async () => {
  const [mute, good] = [new ScriptedServer(), new ScriptedServer()];
  servers.push(mute, good);
  mute.answer = (verb, connection) => {
    if (verb === 'DATA') mute.sockets[connection - 1]?.pause();
    return undefined;
  };
  const ports = await Promise.all([mute.listen(), good.listen()]);
  const source = new MemorySource();
  const large = Buffer.from(`Subject: big\r\n\r\n${'all work and no play\r\n'.repeat(400_000)}`);
  const [slow, other] = ports.map((port) => new MemoryQueue({ nextHop: at(port) })) as [MemoryQueue, MemoryQueue];
  for (let i = 0; i < 21; i++) {
    source.put(i < 20 ? slow : other, i, '');
    source.contents.set(i, large);
  }
  const dispatcher = dispatcherFor(source);
  dispatcher.onReady(slow);
  await until(() => dispatcher.heldBytes === 20 * 64 * 1024, 'twenty are in their content', 10_000);
  dispatcher.onReady(other);
  await source.untilEnded(1);
  assert.deepEqual(source.ended.map(({ entry, result }) => [entry, result.results[0]?.status]), [[20, DELIVERED]]);
  assert.equal(dispatcher.heldBytes, 20 * 64 * 1024);
  await dispatcher.stop(0);
});

test('large and dot-lined contents reach smtp-server byte for byte; its refusals are told apart', async () => {
  const received = new Map<string, string>();
  const server = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'],
    onRcptTo: (address, _session, done) => { done(address.address.startsWith('no') ? Object.assign(new Error('no such user'), { responseCode: 550 }) : null); },
    onData: (stream, session, done) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => { chunks.push(chunk); });
      stream.on('end', () => {
        received.set(session.envelope.rcptTo[0]?.address ?? '', Buffer.concat(chunks).toString('latin1'));
        done();
      });
    },
  });
  server.on('error', () => undefined);
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', () => { resolve(); }); });
  const port = (server.server.address() as AddressInfo).port;
  const source = new MemorySource();
  const queue = new MemoryQueue({ nextHop: at(port), concurrency: 3 });
  const large = `Subject: big\r\n\r\n${'all work and no play\r\n'.repeat(200_000)}`;
  source.put(queue, 1, large, ['big@d', 'no@d']);
  source.put(queue, 2, 'Subject: s\r\n\r\nx\r\n', ['small@d']);
  const dispatcher = dispatcherFor(source);
  dispatcher.onReady(queue);
  await source.untilEnded(2);
  assert.ok(received.get('big@d') === large);
  assert.equal(received.get('small@d'), 'Subject: s\r\n\r\nx\r\n');
  const big = source.ended.find((one) => one.entry === 1)?.result.results;
  assert.deepEqual(big?.map((one) => one?.status), [DELIVERED, FAILED]);
  assert.equal(dispatcher.heldBytes, 0);
  await dispatcher.stop(1000);
  await new Promise<void>((resolve) => { server.close(() => { resolve(); }); });
});

test('a queue whose partition went is of no account any more: nothing waits for its next hop, nothing is taken from it', async () => {
  const { server, source, queue, fill } = await world();
  server.answer = (verb) => (verb === 'GREETING' ? '421 not now' : undefined);
  const dispatcher = dispatcherFor(source, { backoffFirstMs: 200 });
  fill(300);
  dispatcher.onReady(queue);
  await until(() => dispatcher.isDown(queue), 'that it is down');
  const again = new MemoryQueue({ nextHop: queue.route.nextHop });
  for (const entry of queue.waiting) source.put(again, entry + 1000, text(entry));
  dispatcher.onReady(again);
  const waiting = again.readyCount;
  assert.deepEqual(dispatcher.nextHops().map((hop) => hop.waiting), [waiting + queue.readyCount]);
  dispatcher.forget(queue);
  assert.deepEqual(dispatcher.nextHops().map((hop) => hop.waiting), [waiting], 'its successor has what it had');
  const left = queue.readyCount;
  server.answer = () => undefined;
  await until(() => again.readyCount === 0, 'the end of the other', 20_000);
  assert.deepEqual([queue.readyCount, dispatcher.outageOf(queue), dispatcher.nextHopOf(queue)], [left, undefined, undefined]);
  dispatcher.forget(again);
  await until(() => dispatcher.nextHops().length === 0, 'that nothing of its next hop is kept', 20_000);
});

test('what is in flight when its partition goes ends, and nothing behind it begins', async () => {
  const { server, source, queue, fill } = await world({ concurrency: 2 });
  const atDots: number[] = [];
  server.answer = (verb, connection) => {
    if (verb !== 'DOT') return undefined;
    atDots.push(connection);
    return '';
  };
  const dispatcher = dispatcherFor(source);
  fill(9);
  dispatcher.onReady(queue);
  await until(() => atDots.length === 2, 'two dots');
  dispatcher.forget(queue);
  dispatcher.forget(queue);
  assert.deepEqual([source.ended.length, dispatcher.count], [0, 2]);
  for (const connection of atDots) server.sockets[connection - 1]?.write('250 2.0.0 taken\r\n');
  await source.untilEnded(2);
  assert.deepEqual(source.ended.map(({ result }) => result.results[0]?.status), [DELIVERED, DELIVERED]);
  await until(() => dispatcher.nextHops().length === 0, 'that nothing of its next hop is kept', 20_000);
  assert.deepEqual([source.taken, source.ended.length, dispatcher.count], [[1, 2], 2, 0]);
});
