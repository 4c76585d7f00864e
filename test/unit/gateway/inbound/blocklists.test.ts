/** DNS blocklists: our client of DNS, a scripted server behind it, and sessions in front. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Blocklists } from '../../../../src/gateway/inbound/blocklists.js';
import type { ListenerOptions } from '../../../../src/gateway/inbound/listener.js';
import { BlocklistMeter } from '../../../../src/observability/reception-metrics.js';
import { DnsClient } from '../../../../src/platform/node/dns/dns-client.js';
import { Client, startHarness } from '../../../dialog/harness.js';
import { NameServer } from '../../platform/node/dns/name-server.js';

const LISTS = ['one.example', 'two.example'];

interface Field {
  readonly blocklists: Blocklists;
  readonly meter: BlocklistMeter;
  /** Names asked for. */
  readonly asked: () => readonly string[];
  readonly told: string[];
  readonly clock: { now: number };
}

/** By name: the address that is answered, '' for no such name, undefined for silence; a name that is not there: ''. */
async function field(t: { after(run: () => void): void }, said: Readonly<Record<string, string | undefined>>): Promise<Field> {
  const server = await NameServer.start(t, (question) => {
    const name = question.slice('A '.length);
    const data = name in said ? said[name] : '';
    if (data === undefined) return undefined;
    return data === '' ? { rcode: 3 } : { answers: [{ type: 'A', name, data, ttl: 60 }] };
  });
  const told: string[] = [];
  const note = (_event: string, _text: string, fields?: Readonly<Record<string, unknown>>): void => {
    told.push(`${String(fields?.['list'])} ${String(fields?.['why'])}`);
  };
  const now = { now: 0 };
  const clock = { nowMs: () => now.now, wallMs: () => 0 };
  const resolver = new DnsClient({ resolvers: [server.resolver], trustsAd: false }, clock);
  t.after(() => { resolver.close(); });
  const meter = new BlocklistMeter();
  const blocklists = new Blocklists({ resolver, clock, meter, log: { debug: note, info: note, warn: note, error: note } });
  return { blocklists, meter, asked: () => server.asked.map((question) => question.slice('A '.length)), told, clock: now };
}

const look = (blocklists: Blocklists, address: string): Promise<string> => new Promise((resolve) => {
  blocklists.look(address, LISTS, (blocked) => { resolve(blocked === '' ? '' : blocked.list); });
});

describe('a client is looked for', () => {
  test('by its octets in reverse, as long as the lists say, in all of them', async (t) => {
    const { blocklists, asked, told, clock } = await field(t, { '7.2.0.192.two.example': '127.0.0.4' });
    assert.equal(await look(blocklists, '192.0.2.7'), 'two.example');
    assert.equal(await look(blocklists, '192.0.2.7'), 'two.example');
    const names = ['7.2.0.192.one.example', '7.2.0.192.two.example'];
    assert.deepEqual([...new Set(asked())].sort(), names);
    assert.equal(asked().filter((name) => name === names[1]).length, 1);
    clock.now += 60_000;
    assert.equal(await look(blocklists, '192.0.2.7'), 'two.example');
    assert.equal(asked().filter((name) => name === names[1]).length, 2);
    assert.equal(await look(blocklists, '192.0.2.8'), '');
    assert.deepEqual(told, []);
  });

  test('by its nibbles, when it is IPv6; by its octets, when that holds IPv4', async (t) => {
    const { blocklists, asked } = await field(t, {});
    await look(blocklists, '2001:db8::7');
    assert.ok(asked().includes('7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.one.example'));
    await look(blocklists, '::ffff:192.0.2.9');
    assert.ok(asked().includes('9.2.0.192.one.example'));
  });

  test('and an answer that is no listing, or none, lets it in and is told once a minute', async (t) => {
    const { blocklists, told, clock } = await field(t, {
      '7.2.0.192.one.example': '127.255.255.254', '8.2.0.192.one.example': '192.0.2.1', '9.2.0.192.two.example': undefined,
    });
    assert.equal(await look(blocklists, '192.0.2.7'), '');
    assert.deepEqual(told, ['one.example it answered 127.255.255.254']);
    assert.equal(await look(blocklists, '192.0.2.8'), '');
    assert.equal(told.length, 1);
    // Another list has a minute of its own.
    assert.equal(await look(blocklists, '192.0.2.9'), '');
    assert.deepEqual(told.slice(1), ['two.example 127.0.0.1: no answer in time']);
    clock.now += 60_001;
    assert.equal(await look(blocklists, '192.0.2.7'), '');
    assert.equal(told.length, 3);
  });

  test('and what lists say is counted; one that says nothing three times is failing', async (t) => {
    const said: Record<string, string | undefined> = { '1.2.0.192.one.example': '127.0.0.4', '1.2.0.192.two.example': '127.255.255.254' };
    for (let i = 2; i < 5; i++) said[`${String(i)}.2.0.192.two.example`] = '127.255.255.254';
    const { blocklists, meter } = await field(t, said);
    const failing: string[][] = [];
    for (let i = 1; i < 6; i++) {
      await look(blocklists, `192.0.2.${String(i)}`);
      failing.push(meter.failing);
    }
    assert.deepEqual(failing, [[], [], ['two.example'], ['two.example'], []]);
    assert.deepEqual([...meter.answers].map(([list, answers]) => [list, Object.fromEntries(answers)]).sort(), [
      ['one.example', { listed: 1, clear: 4 }], ['two.example', { refused: 4, clear: 1 }],
    ]);
  });

  test('unless too many are being asked about: that is counted and told', async (t) => {
    const { blocklists, meter, told } = await field(t, {});
    const answers = Array.from({ length: 2001 }, () => look(blocklists, '192.0.2.7'));
    assert.equal(await answers.at(-1), '');
    assert.equal(meter.answers.get('one.example')?.get('unasked'), 1);
    assert.deepEqual(told, LISTS.map((list) => `${list} more than 2000 clients are being asked about`));
    await Promise.all(answers);
  });

  test('with others who wait for the same answer', async (t) => {
    const { blocklists, asked } = await field(t, { '7.2.0.192.one.example': '127.0.0.2' });
    assert.deepEqual(await Promise.all([1, 2, 3].map(() => look(blocklists, '192.0.2.7'))), ['one.example', 'one.example', 'one.example']);
    assert.equal(asked().length, 2);
  });

  test('and the first of the lists that have it is named', async (t) => {
    const { blocklists } = await field(t, { '7.2.0.192.one.example': '127.0.0.2', '7.2.0.192.two.example': '127.0.0.2' });
    assert.equal(await look(blocklists, '192.0.2.7'), 'one.example');
  });
});

describe('who is on a list', () => {
  const OPTIONS: Partial<ListenerOptions> = { blocklists: LISTS, relayNetworks: ['192.0.2.0/24'], relayDomains: ['relayed.example'] };

  test('reaches the postmaster of a relay domain, and nobody else', async (t) => {
    const { blocklists } = await field(t, { '1.0.0.127.one.example': '127.0.0.2' });
    const { inbound, rejections, refused } = await startHarness(OPTIONS, { blocklists });
    const client = new Client(inbound.port);
    assert.match(await client.reply(), /^220 /);
    await client.command('EHLO x');
    assert.match(await client.command('MAIL FROM:<a@example.org>'), /^250 /);
    assert.match(await client.command('RCPT TO:<b@elsewhere.example>'), /^550 5\.7\.1 /);
    assert.equal(await client.command('RCPT TO:<b@relayed.example>'), '554 5.7.1 Your address 127.0.0.1 is on the blocklist one.example');
    assert.equal(refused.at(-1)?.why, 'one.example answered 127.0.0.2');
    assert.match(await client.command('RCPT TO:<postmaster@relayed.example>'), /^250 /);
    assert.equal(rejections.at(-1), 'rcpt blocklist');
    client.destroy();
    await inbound.close(1000);
  });

  test('is not asked about when it may relay, and is let in when it is on none', async (t) => {
    const { blocklists, asked } = await field(t, {});
    for (const [relayNetworks, count] of [[['127.0.0.0/8'], 0], [['192.0.2.0/24'], 2]] as const) {
      const { inbound } = await startHarness({ ...OPTIONS, relayNetworks }, { blocklists });
      const client = new Client(inbound.port);
      await client.reply();
      await client.command('EHLO x');
      await client.command('MAIL FROM:<a@example.org>');
      assert.match(await client.command('RCPT TO:<b@relayed.example>'), /^250 /);
      assert.equal(asked().length, count);
      client.destroy();
      await inbound.close(1000);
    }
  });

  test('waits for its greeting until that is known', async (t) => {
    const { blocklists } = await field(t, { '1.0.0.127.one.example': undefined, '1.0.0.127.two.example': '127.0.0.2' });
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
  });
});
