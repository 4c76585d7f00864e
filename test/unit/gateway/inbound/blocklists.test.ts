/** DNS blocklists: a real resolver of Node, a server of our own behind it, and sessions in front. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import type { Socket } from 'node:dgram';
import { describe, test } from 'node:test';

import { Blocklists } from '../../../../src/gateway/inbound/blocklists.js';
import type { ListenerOptions } from '../../../../src/gateway/inbound/listener.js';
import { Client, startHarness } from '../../../dialog/harness.js';

const LISTS = ['one.example', 'two.example'];

/** Answers A questions by name: an address, '' for no such name, undefined for silence. */
class NameServer {
  readonly asked: string[] = [];
  readonly told: string[] = [];
  readonly #answers: Readonly<Record<string, string | undefined>>;
  readonly #socket: Socket = createSocket('udp4');
  nowMs = 0;

  private constructor(answers: Readonly<Record<string, string | undefined>>) {
    this.#answers = answers;
    this.#socket.on('message', (question, from) => {
      let name = '';
      let at = 12;
      for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
        name += `${name === '' ? '' : '.'}${question.toString('latin1', at + 1, at + 1 + length)}`;
        at += 1 + length;
      }
      this.asked.push(name);
      const answer = name in this.#answers ? this.#answers[name] : '';
      if (answer === undefined) return;
      const head = Buffer.from(question.subarray(0, at + 5));
      head.writeUInt16BE(answer === '' ? 0x8183 : 0x8180, 2);
      head.writeUInt16BE(answer === '' ? 0 : 1, 6);
      head.writeUInt32BE(0, 8);
      const record = answer === '' ? [] : [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...answer.split('.').map(Number)];
      this.#socket.send(Buffer.concat([head, Buffer.from(record)]), from.port, from.address);
    });
  }

  static async with(answers: Readonly<Record<string, string | undefined>>, story: (server: NameServer, blocklists: Blocklists) => Promise<void>): Promise<void> {
    const server = new NameServer(answers);
    await new Promise<void>((resolve) => { server.#socket.bind(0, '127.0.0.1', resolve); });
    const note = (_event: string, _text: string, fields?: Readonly<Record<string, unknown>>): void => { server.told.push(`${String(fields?.['list'])} ${String(fields?.['why'])}`); };
    const clock = { nowMs: () => server.nowMs, wallMs: () => 0 };
    const blocklists = new Blocklists({ resolvers: [`127.0.0.1:${String(server.#socket.address().port)}`] }, { clock, log: { debug: note, info: note, warn: note, error: note } });
    try {
      await story(server, blocklists);
    } finally {
      server.#socket.close();
    }
  }
}

const look = (blocklists: Blocklists, address: string): Promise<string> => new Promise((resolve) => { blocklists.look(address, LISTS, resolve); });

describe('a client is looked for', () => {
  test('by its octets in reverse, once in ten minutes, in all lists', () => NameServer.with({ '7.2.0.192.two.example': '127.0.0.4' }, async (server, blocklists) => {
    assert.equal(await look(blocklists, '192.0.2.7'), 'two.example');
    assert.equal(await look(blocklists, '192.0.2.7'), 'two.example');
    assert.equal(await look(blocklists, '192.0.2.8'), '');
    assert.deepEqual(server.asked.sort(), ['7.2.0.192.one.example', '7.2.0.192.two.example', '8.2.0.192.one.example', '8.2.0.192.two.example']);
    server.nowMs += 600_001;
    assert.equal(await look(blocklists, '192.0.2.7'), 'two.example');
    assert.equal(server.asked.length, 6);
    assert.deepEqual(server.told, []);
  }));

  test('by its nibbles, when it is IPv6; by its octets, when that holds IPv4', () => NameServer.with({}, async (server, blocklists) => {
    await look(blocklists, '2001:db8::7');
    assert.ok(server.asked.includes('7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.one.example'));
    await look(blocklists, '::ffff:192.0.2.9');
    assert.ok(server.asked.includes('9.2.0.192.one.example'));
  }));

  test('and an answer that is no listing, or none, lets it in and is told once a minute', () => NameServer.with(
    { '7.2.0.192.one.example': '127.255.255.254', '8.2.0.192.one.example': '192.0.2.1', '9.2.0.192.two.example': undefined },
    async (server, blocklists) => {
      assert.equal(await look(blocklists, '192.0.2.7'), '');
      assert.deepEqual(server.told, ['one.example it answered 127.255.255.254']);
      assert.equal(await look(blocklists, '192.0.2.8'), '');
      assert.equal(server.told.length, 1);
      server.nowMs += 60_001;
      assert.equal(await look(blocklists, '192.0.2.9'), '');
      assert.deepEqual(server.told.slice(1), ['two.example ETIMEOUT']);
    },
  ));

  test('with others who wait for the same answer', () => NameServer.with({ '7.2.0.192.one.example': '127.0.0.2' }, async (server, blocklists) => {
    assert.deepEqual(await Promise.all([1, 2, 3].map(() => look(blocklists, '192.0.2.7'))), ['one.example', 'one.example', 'one.example']);
    assert.equal(server.asked.length, 2);
  }));
});

describe('who is on a list', () => {
  const OPTIONS: Partial<ListenerOptions> = { blocklists: LISTS, relayNetworks: ['192.0.2.0/24'], relayDomains: ['relayed.example'] };

  test('reaches the postmaster of a relay domain, and nobody else', () => NameServer.with({ '1.0.0.127.one.example': '127.0.0.2' }, async (_server, blocklists) => {
    const { inbound, rejections } = await startHarness(OPTIONS, { blocklists });
    const client = new Client(inbound.port);
    assert.match(await client.reply(), /^220 /);
    await client.command('EHLO x');
    assert.match(await client.command('MAIL FROM:<a@example.org>'), /^250 /);
    assert.match(await client.command('RCPT TO:<b@elsewhere.example>'), /^550 5\.7\.1 /);
    assert.equal(await client.command('RCPT TO:<b@relayed.example>'), '554 5.7.1 Your address is on the blocklist one.example');
    assert.match(await client.command('RCPT TO:<postmaster@relayed.example>'), /^250 /);
    assert.equal(rejections.at(-1), 'rcpt blocklist');
    client.destroy();
    await inbound.close(1000);
  }));

  test('is not asked about when it may relay, and is let in when it is on none', () => NameServer.with({}, async (server, blocklists) => {
    for (const [relayNetworks, asked] of [[['127.0.0.0/8'], 0], [['192.0.2.0/24'], 2]] as const) {
      const { inbound } = await startHarness({ ...OPTIONS, relayNetworks }, { blocklists });
      const client = new Client(inbound.port);
      await client.reply();
      await client.command('EHLO x');
      await client.command('MAIL FROM:<a@example.org>');
      assert.match(await client.command('RCPT TO:<b@relayed.example>'), /^250 /);
      assert.equal(server.asked.length, asked);
      client.destroy();
      await inbound.close(1000);
    }
  }));

  test('waits for its greeting until that is known', () => NameServer.with({ '1.0.0.127.one.example': undefined, '1.0.0.127.two.example': '127.0.0.2' }, async (_server, blocklists) => {
    const { inbound } = await startHarness(OPTIONS, { blocklists });
    const client = new Client(inbound.port);
    const startMs = performance.now();
    assert.match(await client.reply(), /^220 /);
    assert.ok(performance.now() - startMs > 1000, 'the first list is silent');
    await client.command('EHLO x');
    await client.command('MAIL FROM:<a@example.org>');
    assert.match(await client.command('RCPT TO:<b@relayed.example>'), /^554 5\.7\.1 .* two\.example$/);
    client.destroy();
    await inbound.close(1000);
  }));
});
