/** Content through a real socket: byte for byte, however it is cut, and never more memory than was counted. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Prng } from '../../src/base/prng.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { clientAtData, startHarness } from './harness.js';
import type { Harness } from './harness.js';

function stuffed(content: Buffer): Buffer {
  return Buffer.from(('\r\n' + content.toString('latin1')).replace(/\r\n\./g, '\r\n..').slice(2) + '.\r\n', 'latin1');
}

function bodyOf(harness: Harness): Buffer {
  const kept = harness.reception.kept.at(-1);
  assert.ok(kept !== undefined);
  return kept.content.subarray(kept.content.indexOf('\r\n', kept.content.indexOf('+0000')) + 2);
}

const everyByte = Buffer.from(Array.from({ length: 256 }, (_each, byte) => byte).filter((byte) => byte !== 0 && byte !== 10 && byte !== 13));

function oddMessage(random: Prng): Buffer {
  const pieces = ['.', '..', '\r\n', '\r\n.', '\r\n..\r\n', 'x', 'Received: y\r\n', everyByte.toString('latin1'), 'long'.repeat(300), '\r\n\r\n'];
  let text = '';
  for (let count = random.below(60); count >= 0; count--) text += pieces[random.below(pieces.length)] ?? '';
  return Buffer.from(text + '\r\n', 'latin1');
}

describe('content', () => {
  test('comes out byte for byte however the client cuts it', { timeout: 30_000 }, async () => {
    const harness = await startHarness({ idleCommandsMax: 100_000, hopsMax: 1000 });
    const client = await clientAtData(harness.inbound.port);
    for (let seed = 1; seed <= 150; seed++) {
      const random = new Prng(seed);
      const content = oddMessage(random);
      const wire = stuffed(content);
      const pieceBytesMax = seed % 3 === 0 ? 3 : 2000;
      for (let at = 0; at < wire.length; ) {
        const end = Math.min(wire.length, at + 1 + random.below(pieceBytesMax));
        client.send(wire.subarray(at, end));
        // Every other piece gets a turn of its own, so that it is a chunk of its own.
        if (random.below(2) === 0) await new Promise(setImmediate);
        at = end;
      }
      assert.match(await client.reply(), /^250 2\.0\.0 /, `seed ${seed}`);
      assert.deepEqual(bodyOf(harness), content, `seed ${seed}`);
      await client.command('MAIL FROM:<sender@example.org>');
      await client.command('RCPT TO:<rcpt@example.net>');
      await client.command('DATA');
    }
    client.socket.destroy();
    await harness.inbound.close(1000);
    assert.equal(harness.reception.reservedBytes, 0);
  });

  test('of many small pieces costs little more than its bytes', { timeout: 30_000 }, async () => {
    const harness = await startHarness();
    const client = await clientAtData(harness.inbound.port);
    const content = Buffer.alloc(600_000, '.\r\n');
    client.send(stuffed(content));
    assert.match(await client.reply(), /^250 /);
    assert.deepEqual(bodyOf(harness), content);
    const kept = harness.reception.kept[0];
    assert.ok(kept !== undefined && kept.pieces < 600, 'pieces are joined into blocks');
    assert.ok(harness.reception.reservedBytesPeak >= 600_000);
    client.socket.destroy();
    await harness.inbound.close(1000);
  });

  test('of a client that leaves in the middle is forgotten, its memory given back', { timeout: 10_000 }, async () => {
    const harness = await startHarness();
    for (const leave of ['destroy', 'resetAndDestroy', 'end'] as const) {
      const client = await clientAtData(harness.inbound.port);
      client.send('half a message\r\n');
      client.socket[leave]();
      assert.equal(await client.line(), 'closed');
    }
    await harness.inbound.close(2000);
    assert.equal(harness.inbound.connections, 0);
    assert.equal(harness.reception.reservedBytes, 0);
    assert.equal(harness.reception.kept.length, 0);
  });

  test('is counted until it is submitted: from then on the gateway has a copy, or will have none', { timeout: 10_000 }, async () => {
    const harness = await startHarness();
    harness.reception.hold = true;
    const client = await clientAtData(harness.inbound.port);
    const submitted = new Promise<void>((resolve) => { harness.reception.onSubmit = resolve; });
    client.send('x'.repeat(200_000) + '\r\n.\r\n');
    await submitted;
    assert.ok(harness.reception.reservedBytesPeak >= 200_002);
    assert.ok(harness.reception.reservedBytes < 1000, `${harness.reception.reservedBytes} bytes are counted for the envelope`);
    const submission = harness.reception.kept[0]?.submission;
    assert.equal(submission?.chunks.length, 0);
    client.socket.destroy();
    submission.settle(COMMITTED);
    await harness.inbound.close(1000);
    assert.equal(harness.reception.reservedBytes, 0);
  });

  test('is not all that is counted: so are recipients, with what their lines keep alive', { timeout: 10_000 }, async () => {
    const harness = await startHarness();
    harness.reception.bytesMax = 100_000;
    const client = await clientAtData(harness.inbound.port);
    client.send('.\r\n');
    await client.reply();
    assert.equal(harness.reception.reservedBytes, 0);
    await client.command('MAIL FROM:<>');
    const rcpt = `RCPT TO:<someone.with.a.name@example.net>${' '.repeat(1900)}NOTIFY=NEVER`;
    let taken = 0;
    let reply = '250';
    while (reply.startsWith('250')) {
      reply = await client.command(rcpt);
      if (reply.startsWith('250')) taken++;
    }
    assert.match(reply, /^452 4\.3\.1 /);
    assert.ok(taken > 5 && taken * rcpt.length <= 100_000, `${String(taken)} taken`);
    await client.command('RSET');
    assert.equal(harness.reception.reservedBytes, 0);
    client.socket.destroy();
    await harness.inbound.close(1000);
  });

  test('of as many refused messages as a session may have, in one write, does not exhaust the stack', { timeout: 20_000 }, async () => {
    const harness = await startHarness({ idleCommandsMax: 100_000 });
    harness.reception.immediate = true;
    const client = await clientAtData(harness.inbound.port);
    client.send('.\r\n' + 'MAIL FROM:<>\r\nRCPT TO:<a@example.net>\r\nDATA\r\n\n\r\n.\r\n'.repeat(1900) + 'QUIT\r\n');
    let last = '';
    for (let line = await client.line(); line !== 'closed'; line = await client.line()) last = line;
    assert.equal(last, '221 2.0.0 Bye');
    assert.equal(harness.reception.kept.length, 1);
    await harness.inbound.close(1000);
  });
});
