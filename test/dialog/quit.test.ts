/**
 * QUIT: the client gets every reply, then the connection is closed at once; nobody waits for the client's own end.
 */

import assert from 'node:assert/strict';
import net from 'node:net';
import { describe, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { clientAtData, startHarness } from './harness.js';
import type { Harness } from './harness.js';

/** Longer than a close at once takes, shorter than the wait for a client's end. */
const AT_ONCE_MS = 3000;

interface Heard {
  readonly socket: net.Socket;
  text: string;
  error: string;
  readonly ended: Promise<unknown>;
}

/** A client that keeps its own side open. */
async function staying(harness: Harness): Promise<Heard> {
  const socket = net.connect({ port: harness.inbound.port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
  const ended = new Promise((resolve) => { socket.once('end', resolve).once('close', resolve); });
  const heard: Heard = { socket, text: '', error: '', ended };
  socket.on('error', (error) => { heard.error = error.message; });
  await new Promise((resolve) => socket.once('data', resolve));
  socket.on('data', (bytes: Buffer) => { heard.text += bytes.toString('latin1'); });
  return heard;
}

async function gone(harness: Harness, boundMs: number): Promise<void> {
  const begun = performance.now();
  while (harness.inbound.connections > 0 && performance.now() - begun < boundMs) await new Promise(setImmediate);
  assert.equal(harness.inbound.connections, 0, `closed within ${boundMs} ms`);
  assert.equal(harness.reception.reservedBytes, 0);
}

describe('QUIT', () => {
  test('closes at once, in the middle of a mail transaction too, though the client keeps its side open', { timeout: 10_000 }, async () => {
    const harness = await startHarness();
    const client = await staying(harness);
    client.socket.write('EHLO client.example\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\nQUIT\r\n');
    await client.ended;
    assert.match(client.text, /221 2\.0\.0 Bye\r\n$/);
    assert.equal(client.error, '');
    await gone(harness, AT_ONCE_MS);
    client.socket.destroy();
    await harness.inbound.close(1000);
  });

  test('behind a message whose commit takes a while comes after its reply', { timeout: 10_000 }, async () => {
    const harness = await startHarness();
    harness.reception.hold = true;
    const client = await clientAtData(harness.inbound.port);
    client.send('text\r\n.\r\nQUIT\r\n');
    while (harness.reception.kept.length === 0) await new Promise<void>((resolve) => { harness.reception.onSubmit = resolve; });
    harness.reception.kept[0]?.submission.settle(COMMITTED);
    assert.match(await client.line(), /^250 2\.0\.0 Ok: queued as /);
    assert.equal(await client.line(), '221 2.0.0 Bye');
    assert.equal(await client.line(), 'closed');
    await gone(harness, AT_ONCE_MS);
    await harness.inbound.close(1000);
  });

  test('is the last command obeyed, and what stands behind it costs no reply', { timeout: 10_000 }, async () => {
    const harness = await startHarness();
    const client = await staying(harness);
    client.socket.write('NOOP\r\nQUIT\r\nMAIL FROM:<a@example.org>\r\nNOOP\r\n');
    await client.ended;
    assert.equal(client.text, '250 2.0.0 Ok\r\n221 2.0.0 Bye\r\n');
    assert.equal(client.error, '');
    assert.equal(harness.inbound.connections, 1, 'a close at once would reset the connection under bytes on their way');
    client.socket.end();
    await gone(harness, AT_ONCE_MS);
    await harness.inbound.close(1000);
  });

  test('of a client that has read nothing yet takes no reply from it', { timeout: 20_000 }, async () => {
    const count = 100_000;
    const harness = await startHarness({ idleCommandsMax: count + 1 });
    const client = await staying(harness);
    client.socket.pause();
    const written = new Promise((resolve) => client.socket.write('NOOP\r\n'.repeat(count) + 'QUIT\r\n', resolve));
    for (let turn = 0; turn < 200; turn++) await new Promise(setImmediate);
    client.socket.resume();
    await written;
    await client.ended;
    assert.equal(client.text.length, '250 2.0.0 Ok\r\n'.length * count + '221 2.0.0 Bye\r\n'.length);
    assert.equal(client.error, '');
    await gone(harness, AT_ONCE_MS);
    client.socket.destroy();
    await harness.inbound.close(1000);
  });
});
