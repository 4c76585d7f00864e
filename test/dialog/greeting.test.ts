/** Who is greeted when: known and trusted clients at once, others after a delay, early talkers never. */

import assert from 'node:assert/strict';
import net from 'node:net';
import { describe, test } from 'node:test';
import { Client, startHarness } from './harness.js';

const UNTRUSTED = { relayNetworks: [], relayDomains: ['example.net'] };

async function greetedAfterMs(port: number): Promise<number> {
  const begun = performance.now();
  const client = new Client(port);
  assert.match(await client.line(), /^220 /);
  client.socket.destroy();
  return performance.now() - begun;
}

describe('greeting', () => {
  test('a client that may relay is not kept waiting', { timeout: 10_000 }, async () => {
    const harness = await startHarness({ greetingDelayMs: 60_000 });
    await greetedAfterMs(harness.inbound.port);
    await harness.inbound.close(1000);
  });

  test('any other waits at its first connection only', { timeout: 20_000 }, async () => {
    const harness = await startHarness({ ...UNTRUSTED, greetingDelayMs: 1500 });
    assert.ok((await greetedAfterMs(harness.inbound.port)) > 1400);
    assert.ok((await greetedAfterMs(harness.inbound.port)) < 1000);
    await harness.inbound.close(1000);
  });

  test('who talks before is sent away, and has to wait again', { timeout: 20_000 }, async () => {
    const harness = await startHarness({ ...UNTRUSTED, greetingDelayMs: 1500 });
    await greetedAfterMs(harness.inbound.port);
    for (let round = 0; round < 2; round++) {
      const early = new Client(harness.inbound.port);
      early.send('EHLO spam.example\r\n');
      assert.match(await early.line(), /^421 4\.7\.0 You talk/, round === 0 ? 'known' : 'known no longer');
      assert.equal(await early.line(), 'closed');
    }
    assert.deepEqual(harness.rejections, ['command early-talker', 'command early-talker']);
    assert.ok((await greetedAfterMs(harness.inbound.port)) > 1400);
    await harness.inbound.close(1000);
  });

  test('a trusted client that talks before is sent away, too', { timeout: 10_000 }, async () => {
    const harness = await startHarness({ greetingDelayMs: 100 });
    const early = new Client(harness.inbound.port);
    early.send('EHLO spam.example\r\n');
    assert.match(await early.line(), /^421 4\.7\.0 You talk/);
    await harness.inbound.close(1000);
  });
});

describe('replies', () => {
  test('to a message and to what was pipelined behind it leave in one write', { timeout: 10_000 }, async (t) => {
    const harness = await startHarness();
    const client = new Client(harness.inbound.port);
    await client.line();
    await client.command('EHLO client.example');
    const envelope = 'MAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\nDATA\r\n';
    client.send(envelope);
    for (const code of ['250', '250', '354']) assert.equal((await client.line()).slice(0, 3), code);
    const written: string[] = [];
    const { write } = net.Socket.prototype;
    t.mock.method(net.Socket.prototype, 'write', function spy(this: net.Socket, ...args: Parameters<typeof write>) {
      if (this.localPort === harness.inbound.port) written.push(String(args[0]));
      return Reflect.apply(write, this, args) as boolean;
    });
    client.send(`Subject: x\r\n\r\nhello\r\n.\r\n${envelope}`);
    for (const code of ['250', '250', '250', '354']) assert.equal((await client.line()).slice(0, 3), code);
    assert.equal(written.length, 1, written.join('|'));
    client.socket.destroy();
    await harness.inbound.close(1000);
  });
});
