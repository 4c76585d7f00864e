/**
 * Clients that end their sending side behind their last command, as nc does at the end of its input: RFC 5321 does not forbid it.
 * What was read is answered, then the connection is closed; nobody holds one for ever by it.
 */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connect as tlsConnect } from 'node:tls';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { Client, clientAtData, startHarness } from './harness.js';
import type { Harness } from './harness.js';
import { selfSigned } from './self-signed.js';

const ENVELOPE = 'MAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n';
const DIALOG = `EHLO client.example\r\n${ENVELOPE}text\r\n.\r\n`;
const tls = selfSigned();
const needsTls = { timeout: 10_000, skip: tls === undefined ? 'openssl is missing' : false };

/** A turn with a poll each: the end of a client's side has been read after a few. */
async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise(setImmediate);
}

async function held(harness: Harness): Promise<void> {
  harness.reception.hold = true;
  while (harness.reception.kept.length === 0) await new Promise<void>((resolve) => { harness.reception.onSubmit = resolve; });
  await turns(20);
}

async function allGone(harness: Harness): Promise<void> {
  while (harness.inbound.connections > 0) await new Promise(setImmediate);
  await harness.inbound.close(1000);
  assert.equal(harness.reception.reservedBytes, 0);
}

async function encrypted(port: number): Promise<Client> {
  const client = new Client(port);
  await client.reply();
  await client.command('EHLO client.example');
  assert.match(await client.command('STARTTLS'), /^220/);
  return client;
}

describe('a client that ends its side', () => {
  test('behind a whole dialog gets every reply, though its message takes a while to commit', { timeout: 10_000 }, async () => {
    const harness = await startHarness();
    const client = new Client(harness.inbound.port);
    client.socket.end(DIALOG);
    await held(harness);
    assert.equal(harness.inbound.connections, 1);
    harness.reception.kept[0]?.submission.settle(COMMITTED);
    for (const code of ['220', '250', '250', '250', '354', '250']) assert.equal((await client.reply()).slice(0, 3), code);
    assert.equal(await client.line(), 'closed');
    assert.equal(harness.reception.kept.length, 1);
    await allGone(harness);
  });

  test('behind commands that take several turns gets every reply', { timeout: 10_000 }, async () => {
    const harness = await startHarness({ idleCommandsMax: 1000 });
    const client = new Client(harness.inbound.port);
    client.socket.end('NOOP\r\n'.repeat(350) + DIALOG + 'RSET\r\n');
    for (const code of ['220', ...Array.from({ length: 350 }, () => '250'), '250', '250', '250', '354', '250', '250']) assert.equal((await client.reply()).slice(0, 3), code);
    assert.equal(await client.line(), 'closed');
    assert.deepEqual([harness.reception.kept.length, harness.rejections], [1, []]);
    await allGone(harness);
  });

  test('under TLS gets every reply as well', needsTls, async () => {
    const harness = await startHarness({ tls });
    const clear = await encrypted(harness.inbound.port);
    clear.socket.removeAllListeners('data');
    const secure = tlsConnect({ socket: clear.socket, rejectUnauthorized: false });
    let heard = '';
    secure.on('data', (bytes: Buffer) => { heard += bytes.toString('latin1'); });
    const over = new Promise((resolve) => secure.once('end', resolve));
    secure.end(DIALOG);
    await held(harness);
    harness.reception.kept[0]?.submission.settle(COMMITTED);
    await over;
    assert.deepEqual(heard.split('\r\n').filter((line) => line[3] === ' ').map((line) => line.slice(0, 3)), ['250', '250', '250', '354', '250']);
    assert.equal(harness.reception.kept.length, 1);
    await allGone(harness);
  });

  test('after STARTTLS that was refused gets every reply as well', needsTls, async () => {
    const harness = await startHarness({ tls });
    const client = new Client(harness.inbound.port);
    client.socket.end(`STARTTLS now\r\n${DIALOG}`);
    await held(harness);
    harness.reception.kept[0]?.submission.settle(COMMITTED);
    for (const code of ['220', '501', '250', '250', '250', '354', '250']) assert.equal((await client.reply()).slice(0, 3), code);
    assert.equal(await client.line(), 'closed');
    await allGone(harness);
  });

  test('in the middle of a message, of a command or of silence is gone at once, and nothing was obeyed', { timeout: 4000 }, async () => {
    for (const last of ['half a message\r\n', 'text\r\n.\r\nMAIL FROM:<cut@example.org>', '']) {
      const harness = await startHarness();
      const client = await clientAtData(harness.inbound.port);
      client.socket.end(last);
      const heard = [await client.line(), await client.line()].filter((line) => line !== 'closed');
      assert.deepEqual([heard.length, harness.reception.kept.length, harness.rejections], [last.includes('.\r\n') ? 1 : 0, last.includes('.\r\n') ? 1 : 0, last.includes('.\r\n') ? [] : ['data lost']]);
      await allGone(harness);
    }
  });

  test('before its greeting, or where a TLS handshake should begin, is gone at once', { ...needsTls, timeout: 4000 }, async () => {
    const harness = await startHarness({ tls, greetingDelayMs: 60_000, relayNetworks: [] });
    const early = new Client(harness.inbound.port);
    early.socket.end();
    assert.equal(await early.line(), 'closed');
    await allGone(harness);
    const other = await startHarness({ tls });
    const clear = await encrypted(other.inbound.port);
    clear.socket.end();
    await allGone(other);
  });

  test('and reads nothing of what it is told is cut off', { timeout: 15_000 }, async () => {
    const harness = await startHarness({ idleCommandsMax: 1_000_000, idleMs: 1000, deadlineTickMs: 100 });
    const client = new Client(harness.inbound.port);
    client.socket.pause();
    client.socket.end('EHLO client.example\r\n'.repeat(200_000));
    while (harness.inbound.connections === 0) await new Promise(setImmediate);
    await allGone(harness);
    client.socket.destroy();
  });
});
