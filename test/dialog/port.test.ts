/** The port and the end: opening, closing, shutting down while messages are under way, STARTTLS. */

import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { connect as tlsConnect } from 'node:tls';
import { startInbound } from '../../src/gateway/inbound/listener.js';
import { INBOUND_DEFAULTS } from '../default-options.js';
import { COMMITTED } from '../../src/gateway/mail-types.js';
import { TEST_OPTIONS, testPorts } from '../inbound/desk.js';
import { Client, clientAtData, startHarness } from './harness.js';
import { selfSigned } from './self-signed.js';

describe('the port', () => {
  test('closes and opens again under the same number, connections live on', { timeout: 10_000 }, async () => {
    const { inbound } = await startHarness();
    const { port } = inbound;
    const kept = new Client(port);
    assert.match(await kept.reply(), /^220 /);
    inbound.closePort();
    assert.equal(inbound.isOpen, false);
    const refused = new Client(port);
    assert.equal(await refused.line(), 'closed');
    assert.equal(await kept.command('NOOP'), '250 2.0.0 Ok');
    await inbound.openPort();
    assert.equal(inbound.port, port);
    const again = new Client(port);
    assert.match(await again.reply(), /^220 /);
    await inbound.close(1000);
    assert.equal(await kept.line(), '421 4.3.2 Shutting down');
  });

  test('takes another configuration without closing: each session goes by the one it began with', { timeout: 10_000 }, async () => {
    const { ports } = testPorts();
    const options = { ...TEST_OPTIONS, port: 0, tls: undefined, connectionsMax: 4 };
    const inbound = startInbound(options, ports);
    await inbound.openPort();
    const sizeOf = async (client: Client): Promise<boolean> => {
      await client.command('EHLO client.example');
      return (await client.command('MAIL FROM:<a@example.org> SIZE=5000')).startsWith('250 ');
    };
    const begin = async (): Promise<Client> => {
      const client = new Client(inbound.port);
      assert.match(await client.reply(), /^220 /);
      return client;
    };
    const old = await begin();
    const others = { ...ports };
    const small = { ...options, messageBytesMax: 4096, connectionsMax: 3 };
    inbound.prepare(small, others).drop();
    assert.equal(await sizeOf(await begin()), true, 'nothing has changed');
    inbound.prepare(small, others).use();
    assert.deepEqual([inbound.isOpen, inbound.connections, inbound.goesBy(ports), inbound.goesBy(others)], [true, 2, true, true]);
    assert.equal(await sizeOf(await begin()), false);
    assert.equal(await sizeOf(old), true);
    assert.match(await new Client(inbound.port).reply(), /^421 /, 'all of them count');
    old.destroy();
    await inbound.close(1000);
    assert.deepEqual([inbound.connections, inbound.goesBy(ports)], [0, false]);
  });

  test('serves nobody until the configuration that it is of is in force', { timeout: 10_000 }, async () => {
    const inbound = startInbound({ ...TEST_OPTIONS, port: 0, tls: undefined }, testPorts().ports);
    inbound.hold();
    await inbound.openPort();
    const early = new Client(inbound.port);
    assert.equal(await early.reply(), '421 4.3.2 Not accepting mail now; try another server');
    assert.equal(await early.line(), 'closed');
    inbound.putInForce();
    assert.match(await new Client(inbound.port).reply(), /^220 /);
    await inbound.close(1000);
  });

  test('that is taken is one clear error', { timeout: 10_000 }, async () => {
    const { inbound } = await startHarness();
    const second = await startHarness();
    const { port } = inbound;
    await assert.rejects(startHarness({ port }), /Opening the SMTP port 127\.0\.0\.1:\d+: another program has it/);
    await Promise.all([inbound.close(1000), second.inbound.close(1000)]);
  });

  test('does not let refused connections take the places of others', { timeout: 4_000 }, async () => {
    const { inbound } = await startHarness({ connectionsMax: 5, connectionsPerClientMax: 1 });
    const served = new Client(inbound.port);
    assert.match(await served.reply(), /^220 /);
    // Half open: they never close their own side.
    const greedy = Array.from({ length: 10 }, () => connect({ port: inbound.port, host: '127.0.0.1', allowHalfOpen: true }));
    const said = await Promise.all(greedy.map((socket) => new Promise<string>((resolve) => {
      let text = '';
      socket.on('error', () => undefined);
      socket.on('data', (bytes) => { text += String(bytes); });
      socket.on('end', () => { resolve(text); });
    })));
    assert.ok(said.every((text) => text.startsWith('421 4.7.0 Too many connections')), said.join());
    while (inbound.connections > 1) await new Promise(setImmediate);
    const other = new Client(inbound.port);
    assert.equal(await other.reply(), '421 4.7.0 Too many connections from your address');
    assert.equal(await served.command('NOOP'), '250 2.0.0 Ok');
    for (const socket of greedy) socket.destroy();
    await inbound.close(1000);
  });

  test('options that are none are refused before the port opens', () => {
    const options = { ...INBOUND_DEFAULTS, hostName: 'mx.test', tls: undefined, relayNetworks: ['10.0.0.0/40'] };
    assert.throws(() => startInbound(options, { clock: { nowMs: () => 0 } } as never), /"10\.0\.0\.0\/40" is no network/);
  });
});

describe('shutting down', () => {
  test('answers the message in DATA, then says goodbye', { timeout: 10_000 }, async () => {
    const { inbound, reception } = await startHarness();
    reception.hold = true;
    const idle = new Client(inbound.port);
    await idle.reply();
    const busy = await clientAtData(inbound.port);
    busy.send('half');
    const closed = inbound.close(5000);
    assert.equal(await idle.line(), '421 4.3.2 Shutting down');
    const submitted = new Promise<void>((resolve) => {
      reception.onSubmit = resolve;
    });
    busy.send(' done\r\n.\r\n');
    await submitted;
    reception.kept[0]?.submission.settle(COMMITTED);
    assert.match(await busy.line(), /^250 2\.0\.0 Ok: queued as /);
    assert.equal(await busy.line(), '421 4.3.2 Shutting down');
    await closed;
    assert.equal(inbound.connections, 0);
  });

  test('cuts off at the bound; an outcome that comes later harms nobody', { timeout: 10_000 }, async () => {
    const { inbound, reception, receivedCount } = await startHarness();
    reception.hold = true;
    const client = await clientAtData(inbound.port);
    const submitted = new Promise<void>((resolve) => {
      reception.onSubmit = resolve;
    });
    client.send('text\r\n.\r\n');
    await submitted;
    await inbound.close(20);
    assert.equal(await client.line(), 'closed');
    reception.kept[0]?.submission.settle(COMMITTED);
    assert.equal(receivedCount(), 1);
    assert.equal(reception.reservedBytes, 0);
  });

  test('a client gone before its outcome: the message is kept, its memory given back', { timeout: 10_000 }, async () => {
    const { inbound, reception, receivedCount } = await startHarness();
    reception.hold = true;
    const client = await clientAtData(inbound.port);
    const submitted = new Promise<void>((resolve) => {
      reception.onSubmit = resolve;
    });
    client.send('text\r\n.\r\n');
    await submitted;
    client.socket.resetAndDestroy();
    await inbound.close(5000);
    reception.kept[0]?.submission.settle(COMMITTED);
    assert.equal(receivedCount(), 1);
    assert.equal(reception.reservedBytes, 0);
  });
});

describe('STARTTLS', () => {
  const tls = selfSigned();
  test('is offered with a certificate, forgets what was said in clear, obeys nothing sent before the handshake', { timeout: 10_000, skip: tls === undefined ? 'openssl is missing' : false }, async () => {
    const { inbound, reception } = await startHarness({ tls });
    const clear = new Client(inbound.port);
    await clear.reply();
    clear.send('EHLO client.example\r\n');
    const extensions: string[] = [];
    for (let line = await clear.line(); ; line = await clear.line()) {
      extensions.push(line.slice(4));
      if (line[3] === ' ') break;
    }
    assert.ok(extensions.includes('STARTTLS') && !extensions.some((each) => each.startsWith('AUTH')));
    await clear.command('MAIL FROM:<clear@example.org>');
    clear.send('STARTTLS\r\nRCPT TO:<injected@example.net>\r\n');
    assert.equal(await clear.line(), '220 2.0.0 Ready to start TLS');
    clear.socket.removeAllListeners('data');
    const secure = tlsConnect({ socket: clear.socket, rejectUnauthorized: false });
    await new Promise((resolve) => secure.once('secureConnect', resolve));
    let heard = '';
    const goodbye = new Promise((resolve) => secure.once('end', resolve));
    secure.on('data', (bytes: Buffer) => {
      heard += bytes.toString('latin1');
    });
    secure.write('MAIL FROM:<a@example.org>\r\nEHLO again\r\nMAIL FROM:<a@example.org>\r\nRCPT TO:<b@example.net>\r\nDATA\r\nover tls\r\n.\r\nQUIT\r\n');
    await goodbye;
    secure.destroy();
    assert.match(heard, /^503 5\.5\.1 Send EHLO/);
    assert.match(heard, /221 2\.0\.0 Bye\r\n$/);
    const kept = reception.kept[0];
    assert.ok(kept !== undefined && reception.kept.length === 1);
    assert.equal(kept.submission.reversePath, 'a@example.org');
    assert.ok(kept.content.toString('latin1').includes('with ESMTPS id '));
    await inbound.close(1000);
  });
});
