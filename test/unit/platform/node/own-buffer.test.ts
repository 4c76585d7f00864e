/**
 * An accepted socket is read into a buffer of ours: this Node still has what own-buffer.ts sets, and the bytes come by
 * it alone.
 */
import assert from 'node:assert/strict';
import net from 'node:net';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { readIntoOwnBuffer } from '../../../../src/platform/node/own-buffer.js';

test('an accepted socket reads into the buffer that it is given, and waits while it is paused', { timeout: 10_000 }, async (t) => {
  const buffer = new Uint8Array(16);
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const accepting = new Promise<net.Socket>((resolve) => server.once('connection', resolve));
  let got = '';
  let told: (() => void) | undefined;
  let byStream = 0;
  server.on('connection', (socket) => {
    assert.ok(readIntoOwnBuffer(socket, buffer, (bytes) => {
      got += Buffer.from(buffer.subarray(0, bytes)).toString('latin1');
      told?.();
      return true;
    }), 'this Node has no such fields any more: each read costs 64 KiB again');
    socket.on('data', () => { byStream += 1; });
  });
  const heard = async (text: string): Promise<void> => { while (got !== text) await new Promise<void>((resolve) => { told = resolve; }); };
  const client = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
  t.after(() => client.destroy());
  const socket = await accepting;
  client.write('more than sixteen bytes');
  await heard('more than sixteen bytes');
  socket.pause();
  client.write(', and the rest');
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  assert.equal(got, 'more than sixteen bytes');
  socket.resume();
  await heard('more than sixteen bytes, and the rest');
  assert.equal(byStream, 0);
});
