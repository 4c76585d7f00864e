/**
 * Connections whose messages are answered while the gateway's hands are full: none is left behind, however it is read,
 * and whatever happens to it while it is not.
 */

import assert from 'node:assert/strict';
import { describe, mock, test } from 'node:test';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { clientAtData, startHarness } from './harness.js';
import type { Client, Harness } from './harness.js';

const ENVELOPE = 'MAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n';

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}

async function submissions(harness: Harness, count: number): Promise<void> {
  while (harness.reception.kept.length < count) await new Promise<void>((resolve) => { harness.reception.onSubmit = resolve; });
}

/** One message in hand that is not answered, and a client that was answered meanwhile and is not read. */
async function heldClient(options: Parameters<typeof startHarness>[0] = {}): Promise<{ readonly harness: Harness; readonly held: Client; readonly other: Client }> {
  const harness = await startHarness({ messagesInHandMax: 1, ...options });
  harness.reception.hold = true;
  const [held, other] = [await clientAtData(harness.inbound.port), await clientAtData(harness.inbound.port)];
  held.send('first\r\n.\r\n');
  await submissions(harness, 1);
  other.send('other\r\n.\r\n');
  await submissions(harness, 2);
  harness.reception.kept[0]?.submission.settle(COMMITTED);
  assert.match(await held.line(), /^250 /);
  return { harness, held, other };
}

async function ended(harness: Harness, ...clients: readonly Client[]): Promise<void> {
  for (const client of clients) client.socket.destroy();
  await harness.inbound.close(1000);
  assert.equal(harness.reception.reservedBytes, 0);
}

describe('full hands', () => {
  test('leave the next message of who was answered unread until another is answered', { timeout: 20_000 }, async () => {
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      const { harness, held, other } = await heldClient();
      let heard = '';
      held.socket.on('data', (bytes: Buffer) => { heard += bytes.toString('latin1'); });
      held.send(ENVELOPE);
      await turns(20);
      assert.deepEqual([heard, harness.waitCount()], ['', 1]);
      harness.reception.kept[1]?.submission.settle(COMMITTED);
      for (const code of ['250', '250', '354']) assert.equal((await held.line()).slice(0, 3), code);
      await ended(harness, held, other);
    } finally {
      mock.timers.reset();
    }
  });

  test('do not stop a client for long when the other message is never answered', { timeout: 20_000 }, async () => {
    const { harness, held, other } = await heldClient();
    assert.match(await held.command('NOOP'), /^250 /);
    harness.reception.kept[1]?.submission.settle(COMMITTED);
    await ended(harness, held, other);
  });

  test('say goodbye to who is not read when the gateway stops', { timeout: 20_000 }, async () => {
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      const { harness, held, other } = await heldClient();
      const closed = harness.inbound.close(60_000);
      assert.match(await held.line(), /^421 /);
      assert.equal(await held.line(), 'closed');
      while (harness.inbound.connections > 1) await turns(1);
      harness.reception.kept[1]?.submission.settle(COMMITTED);
      assert.match(await other.line(), /^250 /);
      assert.match(await other.line(), /^421 /);
      await closed;
    } finally {
      mock.timers.reset();
    }
  });

  test('notice that who was not read has gone, once he is', { timeout: 20_000 }, async () => {
    const { harness, held, other } = await heldClient();
    held.socket.resetAndDestroy();
    harness.reception.kept[1]?.submission.settle(COMMITTED);
    assert.match(await other.line(), /^250 /);
    while (harness.inbound.connections > 1) await turns(1);
    await ended(harness, other);
  });

  for (const [inHand, connections] of [[1, 8], [3, 8]] as const) {
    test(`answer every message of ${connections} clients that pipeline, with ${inHand} in hand`, { timeout: 30_000 }, async () => {
      const harness = await startHarness({ messagesInHandMax: inHand });
      const each = 12;
      await Promise.all(Array.from({ length: connections }, async (_none, index) => {
        const client = await clientAtData(harness.inbound.port);
        for (let message = 1; message <= each; message++) {
          client.send(`message ${message} of ${index}\r\n.\r\n${message < each ? ENVELOPE : 'QUIT\r\n'}`);
          for (const code of message < each ? ['250', '250', '250', '354'] : ['250', '221', 'clo']) assert.equal((await client.line()).slice(0, 3), code);
        }
      }));
      assert.equal(harness.reception.kept.length, connections * each);
      await ended(harness);
    });
  }
});
