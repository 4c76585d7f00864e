/**
 * All connections are read into one buffer: what one of them leaves waiting must not be touched by the next read of
 * another, a client that pipelines is held back, and where Node has no such buffer its streams do the same.
 */

import assert from 'node:assert/strict';
import net from 'node:net';
import { describe, test } from 'node:test';
import { connect as tlsConnect } from 'node:tls';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { Client, clientAtData, startHarness } from './harness.js';
import type { Harness } from './harness.js';
import { selfSigned } from './self-signed.js';
import { withoutReadBuffer } from './without-read-buffer.js';

const ENVELOPE = 'MAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n';

/** A turn with a poll each: what was sent has been read after a few. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}

async function submissions(harness: Harness, count: number): Promise<void> {
  while (harness.reception.kept.length < count) await new Promise<void>((resolve) => { harness.reception.onSubmit = resolve; });
}

function bodyOf(harness: Harness, index: number): string {
  const content = harness.reception.kept[index]?.content.toString('latin1') ?? '';
  return content.slice(content.indexOf('\r\n', content.indexOf('+0000')) + 2);
}

describe('the read buffer', () => {
  test('content in many reads, commands cut in two and what waits behind a message stay what they were', { timeout: 20_000 }, async () => {
    const harness = await startHarness();
    const { reception } = harness;
    reception.hold = true;
    const clients = await Promise.all(Array.from({ length: 4 }, () => clientAtData(harness.inbound.port)));
    const bodies = clients.map((_client, index) => String(index).repeat(70_000 + index) + '\r\n');
    // In turns, so that each piece is read when pieces of the others have been.
    for (let at = 0; at < 72_000; at += 9000) {
      for (const [index, client] of clients.entries()) client.send(bodies[index]?.slice(at, at + 9000) ?? '');
      await turns(3);
    }
    for (const [index, client] of clients.entries()) client.send(`.\r\nMAIL FROM:<next${index}@example.org>\r\nRCPT TO:<b@exam`);
    await submissions(harness, 4);
    for (const [index, client] of clients.entries()) client.send(`ple.net>\r\nDATA\r\nsecond of ${index}\r\n.\r\n`);
    await turns(5);
    for (const each of reception.kept.slice(0, 4)) each.submission.settle(COMMITTED);
    await submissions(harness, 8);
    for (const each of reception.kept.slice(4)) each.submission.settle(COMMITTED);
    for (const client of clients) for (const code of ['250', '250', '250', '354', '250']) assert.equal((await client.line()).slice(0, 3), code);
    const kept = reception.kept.map((each, index) => [each.submission.reversePath, bodyOf(harness, index)].join(' '));
    assert.deepEqual(kept.sort(), [...bodies.map((body) => `sender@example.org ${body}`), ...clients.map((_client, index) => `next${index}@example.org second of ${index}\r\n`)].sort());
    for (const client of clients) client.socket.destroy();
    await harness.inbound.close(1000);
    assert.equal(reception.reservedBytes, 0);
  });

  for (const way of ['one buffer', 'streams'] as const) {
    test(`a client that pipelines behind a message is held back, and answered in order (${way})`, { timeout: 30_000 }, async () => {
      const run = async (): Promise<void> => {
        const harness = await startHarness({ idleCommandsMax: 1_000_000 });
        harness.reception.hold = true;
        const client = await clientAtData(harness.inbound.port);
        client.send('first\r\n.\r\n');
        await submissions(harness, 1);
        // More than the system keeps for a connection.
        const noops = 12_000;
        client.send(`NOOP ${'x'.repeat(995)}\r\n`.repeat(noops));
        await turns(50);
        assert.ok(client.socket.writableLength > 0, 'the socket takes no more');
        harness.reception.kept[0]?.submission.settle(COMMITTED);
        assert.match(await client.line(), /^250 2\.0\.0 Ok: queued as /);
        for (let count = 0; count < noops; count++) assert.equal(await client.line(), '250 2.0.0 Ok');
        client.send('RSET\r\n');
        assert.equal(await client.line(), '250 2.0.0 Flushed');
        client.socket.destroy();
        await harness.inbound.close(1000);
      };
      await (way === 'streams' ? withoutReadBuffer(run) : run());
    });
  }

  test('a client that pipelines more than there is memory for hears of its message, then 421', { timeout: 10_000 }, async () => {
    const harness = await startHarness();
    harness.reception.hold = true;
    const client = await clientAtData(harness.inbound.port);
    client.send('text\r\n.\r\n');
    await submissions(harness, 1);
    harness.reception.bytesMax = harness.reception.reservedBytes + 3;
    client.send('NOOP\r\n');
    await turns(5);
    // Stays in the system: the socket is not read.
    client.send('NOOP\r\n');
    await turns(5);
    harness.reception.kept[0]?.submission.settle(COMMITTED);
    assert.match(await client.line(), /^250 2\.0\.0 Ok: queued as /);
    assert.equal(await client.line(), '421 4.3.1 Not enough memory to keep what you sent ahead; try again later');
    assert.equal(await client.line(), 'closed');
    await harness.inbound.close(1000);
    assert.equal(harness.reception.reservedBytes, 0);
  });

  test('a client that ends its side while it is held back gets its answers', { timeout: 10_000 }, async () => {
    const harness = await startHarness();
    harness.reception.hold = true;
    const client = await clientAtData(harness.inbound.port);
    client.send('text\r\n.\r\n');
    await submissions(harness, 1);
    client.send('NOOP\r\n');
    await turns(5);
    client.socket.end('QUIT\r\n');
    await turns(5);
    harness.reception.kept[0]?.submission.settle(COMMITTED);
    assert.match(await client.line(), /^250 2\.0\.0 Ok: queued as /);
    assert.equal(await client.line(), '250 2.0.0 Ok');
    assert.equal(await client.line(), '221 2.0.0 Bye');
    assert.equal(await client.line(), 'closed');
    await harness.inbound.close(1000);
  });

  test('a client that never closes its side is cut off after QUIT with more behind it, though it goes on sending', { timeout: 15_000 }, async () => {
    const harness = await startHarness();
    const socket = net.connect({ port: harness.inbound.port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined);
    await new Promise((resolve) => socket.once('data', resolve));
    socket.write('QUIT\r\nNOOP\r\n');
    const begun = performance.now();
    socket.resume();
    const trickle = setInterval(() => socket.write('NOOP\r\n'), 100);
    while (harness.inbound.connections > 0) await new Promise((resolve) => setTimeout(resolve, 20));
    const tookMs = performance.now() - begun;
    clearInterval(trickle);
    assert.ok(tookMs > 4000 && tookMs < 9000, `${tookMs} ms`);
    socket.destroy();
    await harness.inbound.close(1000);
  });
});

describe('where Node has no read buffer to give', () => {
  test('its streams bring messages just the same', { timeout: 20_000 }, () => withoutReadBuffer(async () => {
    const harness = await startHarness();
    const client = await clientAtData(harness.inbound.port);
    const body = 'x'.repeat(200_000) + '\r\n';
    client.send(body + '.\r\n' + ENVELOPE);
    for (const code of ['250', '250', '250', '354']) assert.equal((await client.line()).slice(0, 3), code);
    client.send('second\r\n.\r\nQUIT\r\n');
    for (const code of ['250', '221']) assert.equal((await client.line()).slice(0, 3), code);
    assert.equal(await client.line(), 'closed');
    assert.deepEqual([bodyOf(harness, 0), bodyOf(harness, 1)], [body, 'second\r\n']);
    await harness.inbound.close(1000);
    assert.equal(harness.reception.reservedBytes, 0);
  }));
});

describe('STARTTLS on a socket that is read into the buffer', () => {
  const tls = selfSigned();
  test('begins, although commands before it were held back; nothing that came in clear is obeyed after it', { timeout: 10_000, skip: tls === undefined ? 'openssl is missing' : false }, async () => {
    const harness = await startHarness({ tls, idleCommandsMax: 1000 });
    const { inbound, reception } = harness;
    const clear = new Client(inbound.port);
    await clear.reply();
    await clear.command('EHLO client.example');
    // Worked on over several turns; what is sent behind it comes meanwhile, and the socket is paused for it.
    clear.send('NOOP\r\n'.repeat(350) + 'STARTTLS\r\nMAIL FROM:<injected@example.org>\r\n');
    clear.send(ENVELOPE.replaceAll('@', '.injected@'));
    for (let count = 0; count < 350; count++) assert.equal(await clear.line(), '250 2.0.0 Ok');
    assert.equal(await clear.line(), '220 2.0.0 Ready to start TLS');
    clear.socket.removeAllListeners('data');
    const secure = tlsConnect({ socket: clear.socket, rejectUnauthorized: false });
    await new Promise((resolve) => secure.once('secureConnect', resolve));
    let heard = '';
    const goodbye = new Promise((resolve) => secure.once('end', resolve));
    secure.on('data', (bytes: Buffer) => { heard += bytes.toString('latin1'); });
    const body = 'over tls\r\n'.repeat(30_000);
    secure.write(`EHLO again\r\n${ENVELOPE}${body}.\r\n${ENVELOPE}second\r\n.\r\nQUIT\r\n`);
    await goodbye;
    secure.destroy();
    assert.deepEqual(heard.split('\r\n').filter((line) => line[3] === ' ').map((line) => line.slice(0, 3)), ['250', '250', '250', '354', '250', '250', '250', '354', '250', '221']);
    assert.deepEqual(reception.kept.map((each) => each.submission.reversePath), ['a@example.org', 'a@example.org']);
    assert.deepEqual([bodyOf(harness, 0), bodyOf(harness, 1)], [body, 'second\r\n']);
    await inbound.close(1000);
    assert.equal(inbound.connections, 0);
  });

  test('leaves no connection counted when it is over', { timeout: 10_000, skip: tls === undefined ? 'openssl is missing' : false }, async () => {
    const { inbound } = await startHarness({ tls });
    for (let round = 0; round < 3; round++) {
      const clear = new Client(inbound.port);
      await clear.reply();
      await clear.command('EHLO client.example');
      await clear.command('STARTTLS');
      clear.socket.removeAllListeners('data');
      const secure = tlsConnect({ socket: clear.socket, rejectUnauthorized: false });
      secure.on('error', () => undefined);
      await new Promise((resolve) => secure.once('secureConnect', resolve));
      if (round === 0) clear.socket.resetAndDestroy();
      else if (round === 1) secure.end();
      else secure.end('QUIT\r\n');
      while (inbound.connections > 0) await new Promise(setImmediate);
    }
    await inbound.close(1000);
  });
});
