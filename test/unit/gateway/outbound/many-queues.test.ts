/** Many queues that share a next hop: turns, connections, and what one message costs beside thousands of other queues. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { DELIVERED } from '../../../../src/gateway/mail-types.js';
import type { DeliveryQueue, NextHop, Route } from '../../../../src/gateway/mail-types.js';
import type { Dispatcher } from '../../../../src/gateway/outbound/dispatcher.js';
import { MemoryQueue, MemorySource, dispatcherFor as makeDispatcher } from './memory-source.js';
import { ScriptedServer } from './scripted-server.js';

const TICK_MS = 250;

// A failed test must not keep the process: whatever is left over ends here.
const dispatchers: Dispatcher[] = [];
const servers: ScriptedServer[] = [];
after(async () => {
  for (const server of servers) server.close();
  await Promise.all(dispatchers.map((one) => one.stop(0)));
});

async function serverAt(): Promise<{ server: ScriptedServer; nextHop: NextHop }> {
  const server = new ScriptedServer();
  servers.push(server);
  return { server, nextHop: { protocol: 'smtp', host: '127.0.0.1', port: await server.listen() } };
}

function dispatcherFor(source: MemorySource): Dispatcher {
  const dispatcher = makeDispatcher(source, { messagesPerConnectionMax: 10_000 });
  dispatchers.push(dispatcher);
  return dispatcher;
}

/** A queue with these entries. */
function queueOf(source: MemorySource, route: Partial<Route> & Pick<Route, 'nextHop'>, entries: readonly number[]): MemoryQueue {
  const queue = new MemoryQueue(route);
  for (const entry of entries) source.put(queue, entry, 'Subject: s\r\n\r\nx\r\n');
  return queue;
}

const range = (from: number, count: number): number[] => Array.from({ length: count }, (_none, i) => from + i);

test('queues take turns at the connections, one message each, whoever has more to send', async () => {
  const { server, nextHop } = await serverAt();
  // All connections but the first stay without a greeting: so every message goes over that one, in the order of turns.
  server.answer = (verb, connection) => (verb === 'GREETING' && connection > 1 ? '' : undefined);
  const source = new MemorySource();
  const dispatcher = dispatcherFor(source);
  const queues = [queueOf(source, { nextHop }, range(100, 9)), queueOf(source, { nextHop }, range(200, 3)), queueOf(source, { nextHop, ordering: 'strict' }, range(300, 3))];
  for (const queue of queues) dispatcher.onReady(queue);
  await source.untilEnded(15);
  // 302 can't go behind the dot of 202, which leaves before 301 has its answer.
  assert.deepEqual(source.taken, [100, 200, 300, 101, 201, 301, 102, 202, 103, 302, 104, 105, 106, 107, 108]);
  await dispatcher.stop(0);
});

test('a message starts when its queue is ready, or when the one before has ended, not with the next tick', async () => {
  const { nextHop } = await serverAt();
  const source = new MemorySource();
  const dispatcher = dispatcherFor(source);
  const messages = 40;
  const strict = queueOf(source, { nextHop, ordering: 'strict' }, range(1, messages));
  const beganMs = performance.now();
  dispatcher.onReady(strict);
  await source.untilEnded(messages);
  const single = queueOf(source, { nextHop }, []);
  for (let i = 1; i <= messages; i++) {
    source.put(single, 1000 + i, 'Subject: s\r\n\r\nx\r\n');
    dispatcher.onReady(single);
    await source.untilEnded(messages + i);
  }
  const ticks = (performance.now() - beganMs) / TICK_MS;
  assert.ok(ticks < messages / 2, `${2 * messages} messages, one after the other, took ${ticks} ticks`);
  await dispatcher.stop(1000);
});

test('a queue has as many in flight as its route allows, while others have theirs', async () => {
  const { server, nextHop } = await serverAt();
  const source = new MemorySource();
  const dispatcher = dispatcherFor(source);
  const held: number[] = [];
  const areHeld = new Promise<void>((resolve) => {
    server.answer = (verb, connection) => {
      if (verb !== 'DOT') return undefined;
      held.push(connection);
      if (held.length === 22) resolve();
      return '';
    };
  });
  const beganMs = performance.now();
  dispatcher.onReady(queueOf(source, { nextHop, concurrency: 20 }, range(100, 40)));
  dispatcher.onReady(queueOf(source, { nextHop, concurrency: 2 }, range(200, 40)));
  await areHeld;
  const ticks = (performance.now() - beganMs) / TICK_MS;
  assert.ok(ticks < 10, `22 deliveries were begun in ${ticks} ticks`);
  assert.deepEqual([source.taken.filter((entry) => entry < 200).length, source.taken.filter((entry) => entry >= 200).length], [20, 2]);
  await dispatcher.stop(0);
});

/** How often somebody asks what is ready. */
class WatchedQueue implements DeliveryQueue {
  readonly route: Route;
  readonly bytes = 0;
  looks = 0;
  constructor(nextHop: NextHop) {
    this.route = { queueName: 'quiet', queueClass: 'mail', label: 'mail/quiet', ordering: 'fifo', concurrency: 20, lengthMax: 1e6, nextHop };
  }
  get readyCount(): number {
    this.looks += 1;
    return 0;
  }
}

test('queues without work are looked at by ticks only, not with each message of another one', async () => {
  const { nextHop } = await serverAt();
  const source = new MemorySource();
  const dispatcher = dispatcherFor(source);
  const quiet = range(0, 500).map(() => new WatchedQueue(nextHop));
  for (const queue of quiet) dispatcher.onReady(queue);
  const beganMs = performance.now();
  const busy = queueOf(source, { nextHop }, range(1, 600));
  dispatcher.onReady(busy);
  await source.untilEnded(600);
  const ticks = 1 + (performance.now() - beganMs) / TICK_MS;
  assert.ok(source.ended.every((one) => one.result.results[0]?.status === DELIVERED));
  for (const { looks } of quiet) assert.ok(looks <= 10 + 5 * ticks, `${looks} looks at a quiet queue in ${ticks} ticks`);
  await dispatcher.stop(1000);
});

test('a next hop is asked for 256 connections at once at most, however many queues have mail for it', async () => {
  const { server, nextHop } = await serverAt();
  const source = new MemorySource();
  const dispatcher = dispatcherFor(source);
  let isGreeting = false;
  const isFull = new Promise<void>((resolve) => {
    server.answer = (verb, connection) => {
      if (verb !== 'GREETING' || isGreeting) return undefined;
      if (connection === 256) resolve();
      return '';
    };
  });
  const count = 600;
  for (let i = 0; i < count; i++) dispatcher.onReady(queueOf(source, { nextHop }, [i]));
  await isFull;
  // A tick looks at all queues: none of them may get a connection more.
  await new Promise((resolve) => { setTimeout(resolve, 2 * TICK_MS); });
  assert.equal(server.connections, 256);
  isGreeting = true;
  for (const socket of server.sockets) socket.write('220 scripted\r\n');
  await source.untilEnded(count);
  assert.ok(source.ended.every((one) => one.result.results[0]?.status === DELIVERED));
  await dispatcher.stop(1000);
});

/** The configuration leads it elsewhere now. */
class MovedQueue implements DeliveryQueue {
  route: Route;
  readonly inner: MemoryQueue;
  constructor(inner: MemoryQueue) {
    this.inner = inner;
    this.route = inner.route;
  }
  get readyCount(): number { return this.inner.readyCount; }
  get bytes(): number { return this.inner.bytes; }
  get waiting(): number[] { return this.inner.waiting; }
}

test('what waits for a connection when its queue gets another route goes the new way, and only there', async () => {
  const before = await serverAt();
  const now = await serverAt();
  for (const { server } of [before, now]) server.answer = (verb) => (verb === 'GREETING' ? '' : undefined);
  const greet = async ({ server }: typeof now, connections: number): Promise<void> => {
    while (server.sockets.length < connections) await new Promise((resolve) => { setTimeout(resolve, 5); });
    for (const socket of server.sockets) socket.write('220 scripted\r\n');
  };
  const source = new MemorySource();
  const dispatcher = dispatcherFor(source);
  const queue = new MovedQueue(queueOf(source, { nextHop: before.nextHop, concurrency: 2 }, range(1, 6)));
  const beside = queueOf(source, { nextHop: before.nextHop, concurrency: 1 }, [10]);
  dispatcher.onReady(queue);
  dispatcher.onReady(beside);
  queue.route = { ...queue.route, nextHop: now.nextHop };
  dispatcher.onReady(queue);
  await greet(before, 3);
  await source.untilEnded(1);
  assert.deepEqual(source.taken, [10]);
  await greet(now, 2);
  await source.untilEnded(7);
  assert.deepEqual([before.server.accepted.length, now.server.accepted.length], [1, 6]);
  await dispatcher.stop(1000);
});

test('queues to the same host and port share a pool, whatever object says so', async () => {
  const one = await serverAt();
  const other = await serverAt();
  const source = new MemorySource();
  const dispatcher = dispatcherFor(source);
  for (const { nextHop } of [one, other, one]) dispatcher.onReady(queueOf(source, { nextHop: { ...nextHop } }, [source.contents.size + 1]));
  await source.untilEnded(3);
  assert.deepEqual(dispatcher.nextHops().map((hop) => hop.relay), [one, other].map(({ nextHop }) => `127.0.0.1[127.0.0.1]:${nextHop.port}`));
  await dispatcher.stop(1000);
});
