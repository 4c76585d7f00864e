import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { crc32 } from '../../src/platform/node/checksum.js';
import { encodeFrame } from '../../src/protocol/frame.js';
import * as types from '../../src/protocol/message-types.js';
import { FaultProxy, proxyNowMs } from './fault-proxy.js';

interface World {
  readonly proxy: FaultProxy;
  readonly client: net.Socket;
  readonly store: net.Socket;
  close(): Promise<void>;
}

async function world(): Promise<World> {
  const server = net.createServer({ allowHalfOpen: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const proxy = await FaultProxy.start({ targetHost: '127.0.0.1', targetPort: address.port });
  const client = net.connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true });
  const [store] = (await once(server, 'connection')) as [net.Socket];
  client.on('error', () => undefined);
  store.on('error', () => undefined);
  return {
    proxy,
    client,
    store,
    close: async () => {
      client.destroy();
      store.destroy();
      await proxy.close();
      server.close();
    },
  };
}

function received(socket: net.Socket, bytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let total = 0;
  return new Promise((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      total += chunk.length;
      if (total >= bytes) resolve(Buffer.concat(chunks));
    });
  });
}

/** Unlike once(), no matter by which error. */
function closed(socket: net.Socket): Promise<void> {
  return new Promise((done) => { socket.once('close', () => { done(); }); });
}

const CONTROL = new Uint8Array([0x91, 1]);

describe('fault proxy', () => {
  test('passes bytes unchanged and records frames of both directions, however they are split', async () => {
    const { proxy, client, store, close } = await world();
    const body = new Uint8Array(300_000).fill(5);
    const up = Buffer.concat([encodeFrame(types.CHANGES, 3, CONTROL, crc32, body.length), body]);
    const before = proxyNowMs();
    const got = received(store, up.length);
    client.write(up.subarray(0, 10));
    client.write(up.subarray(10));
    assert.deepEqual(await got, up);
    const down = encodeFrame(types.ACK, 3, CONTROL, crc32);
    const answered = received(client, down.length);
    store.write(down);
    await answered;
    assert.deepEqual(proxy.records.map((frame) => `${frame.direction} ${frame.name} ${String(frame.sequence)} ${String(frame.bodyBytes)}`), [
      'up CHANGES 3 300000',
      'down ACK 3 0',
    ]);
    const [first, second] = proxy.records;
    assert.ok(first !== undefined && second !== undefined);
    assert.ok(before <= first.arrivedMs && first.arrivedMs <= first.passedMs && first.passedMs <= second.arrivedMs);
    assert.deepEqual(first.control, CONTROL);
    await close();
  });

  test('a delay holds a frame back for at least that long', async () => {
    const { proxy, client, store, close } = await world();
    proxy.delay('down', 80);
    const down = encodeFrame(types.ACK, 1, CONTROL, crc32);
    const got = received(client, down.length);
    store.write(down);
    await got;
    const frame = proxy.records[0];
    assert.ok(frame !== undefined && frame.passedMs - frame.arrivedMs >= 80);
    await close();
  });

  test('a stall passes nothing until it is resumed; a cut loses what is held and resets both ends', async () => {
    const { proxy, client, store, close } = await world();
    proxy.stall('up');
    const up = encodeFrame(types.ASK, 1, CONTROL, crc32);
    client.write(up);
    while (proxy.records.length === 0) await new Promise((done) => { setImmediate(done); });
    assert.equal(proxy.records[0]?.passedMs, Infinity);
    const got = received(store, up.length);
    proxy.resume();
    await got;
    assert.ok(proxy.records.every((frame) => frame.passedMs < Infinity));
    proxy.stall('up');
    client.write(up);
    while (proxy.records.length === 1) await new Promise((done) => { setImmediate(done); });
    const ends = Promise.all([closed(client), closed(store)]);
    proxy.cut();
    await ends;
    assert.equal(proxy.records[1]?.passedMs, Infinity);
    assert.equal(proxy.openConnections, 0);
    await close();
  });

  test('refuses new connections while told so', async () => {
    const { proxy, close } = await world();
    proxy.refuse(true);
    const refused = net.connect({ port: proxy.port, host: '127.0.0.1' });
    refused.on('error', () => undefined);
    await closed(refused);
    assert.equal(proxy.openConnections, 1);
    await close();
  });

  test('a stream that is not frames still passes, and says so', async () => {
    const { proxy, client, store, close } = await world();
    const bytes = Buffer.alloc(100, 0xee);
    const got = received(store, bytes.length);
    client.write(bytes);
    assert.deepEqual(await got, bytes);
    assert.equal(proxy.malformed.length, 1);
    await close();
  });

  test('a slow line takes its time; the other direction does not', async () => {
    const { proxy, client, store, close } = await world();
    proxy.faults('up', { bytesPerSecond: 100_000 });
    const bytes = Buffer.alloc(20_000, 7);
    const startMs = proxyNowMs();
    const [up, down] = [received(store, bytes.length), received(client, bytes.length)];
    client.write(bytes);
    store.write(bytes);
    await down;
    const downMs = proxyNowMs() - startMs;
    assert.deepEqual(await up, bytes);
    const upMs = proxyNowMs() - startMs;
    assert.ok(upMs >= 195 && downMs < upMs / 2, `up ${upMs} ms, down ${downMs} ms`);
    await close();
  });

  test('a flipped bit is noted, and no frame from there on counts as passed', async () => {
    const { proxy, client, store, close } = await world();
    const frame = encodeFrame(types.ASK, 1, CONTROL, crc32);
    const first = received(store, frame.length);
    client.write(frame);
    await first;
    proxy.faults('up', { flipEveryBytes: 1 });
    const got = received(store, 3 * frame.length);
    client.write(Buffer.concat([frame, frame, frame]));
    assert.notDeepEqual(await got, Buffer.concat([frame, frame, frame]));
    assert.deepEqual(proxy.records.map((record) => record.passedMs < Infinity), [true, false, false, false]);
    assert.ok(proxy.damage.length > 0 && proxy.damage.every((each) => each.kind === 'flip' && each.direction === 'up' && each.connection === 1));
    await close();
  });

  test('a truncated connection ends on both sides, without a reset', async () => {
    const { proxy, client, store, close } = await world();
    proxy.faults('down', { truncateWithinBytes: 50 });
    const errors: unknown[] = [];
    client.on('error', (error) => errors.push(error));
    store.on('error', (error) => errors.push(error));
    const ends = Promise.all([once(client.resume(), 'end'), once(store.resume(), 'end')]);
    store.write(Buffer.alloc(1000, 1));
    await ends;
    assert.deepEqual(errors, []);
    assert.equal(proxy.damage[0]?.kind, 'truncate');
    await close();
  });

  test('a half-closed connection ends one way and goes on the other', async () => {
    const { proxy, client, store, close } = await world();
    const answered = received(client, 5);
    store.resume();
    const ended = once(store, 'end');
    proxy.halfClose('up');
    await ended;
    client.write('nobody reads this');
    store.write('still');
    assert.equal((await answered).toString(), 'still');
    await close();
  });
});
