/** The client of DNS against a scripted server on loopback, by real sockets. */
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import packet from 'dns-packet';

import { DnsClient } from '../../../../../src/platform/node/dns/dns-client.js';
import { DnsExchange } from '../../../../../src/platform/node/dns/dns-exchange.js';
import { readAnswer } from '../../../../../src/platform/node/dns/dns-message.js';
import { LABEL_COST, NAMES_COST_MAX, RECORDS_MAX } from '../../../../../src/platform/node/dns/dns-records.js';
import { SilentDomains } from '../../../../../src/platform/node/dns/silent-domains.js';
import { TurnShare } from '../../../../../src/platform/node/turn-share.js';
import type { DnsAnswer, DnsType } from '../../../../../src/platform/resolver.js';
import { answerBytes, NameServer, withRecords } from './name-server.js';
import type { Script, Scripted } from './name-server.js';

const SOA = {
  type: 'SOA', name: 'example', ttl: 900,
  data: { mname: 'ns.example', rname: 'root.example', serial: 1, refresh: 1, retry: 1, expire: 1, minimum: 300 },
} as const;
const a = (name: string, data: string, ttl = 60) => ({ type: 'A', name, data, ttl, class: 'IN' }) as const;
const alias = (name: string, data: string, ttl = 60) => ({ type: 'CNAME', name, data, ttl, class: 'IN' }) as const;

interface Field {
  readonly server: NameServer;
  readonly client: DnsClient;
  readonly clock: { now: number };
  ask<T extends DnsType>(name: string, type: T): Promise<DnsAnswer<T>>;
}

async function field(t: { after(run: () => void): void }, script: Script, trustsAd = false): Promise<Field> {
  const server = await NameServer.start(t, script);
  const clock = { now: 0 };
  const client = new DnsClient({ resolvers: [server.resolver], trustsAd }, {
    nowMs: () => clock.now, wallMs: () => 0,
  });
  t.after(() => { client.close(); });
  return { server, client, clock, ask: (name, type) => new Promise((resolve) => { client.ask(name, type, resolve); }) };
}

const failure = (answer: DnsAnswer<DnsType>): string => answer.kind === 'failed' ? answer.why : answer.kind;

describe('what is asked', () => {
  test('and answered by a referral is not known to have no records', async (t) => {
    const authorities: Scripted['authorities'] = [{ type: 'NS', name: 'example', ttl: 60, data: 'ns.example' }];
    const { ask } = await field(t, () => ({ authorities }));
    assert.equal(failure(await ask('x.example', 'MX')), '127.0.0.1: a referral to other servers');
  });

  test('comes back as records of that type, names in lower case', async (t) => {
    const said: Readonly<Record<string, Scripted>> = {
      'A mx.example': { answers: [a('MX.example', '192.0.2.1'), a('mx.EXAMPLE', '192.0.2.2')] },
      'AAAA mx.example': { answers: [{ type: 'AAAA', name: 'mx.example', ttl: 60, data: '2001:db8::1' }] },
      'MX example': { answers: [{ type: 'MX', name: 'example', ttl: 60, data: { preference: 10, exchange: 'Mx.Example' } }] },
      'MX none.example': { answers: [{ type: 'MX', name: 'none.example', ttl: 60, data: { preference: 0, exchange: '.' } }] },
      'TXT example': { answers: [{ type: 'TXT', name: 'example', ttl: 60, data: ['v=spf1 ', Buffer.from([0xe9])] }] },
      'PTR 1.2.0.192.in-addr.arpa': { answers: [{ type: 'PTR', name: '1.2.0.192.in-addr.arpa', ttl: 60, data: 'Mx.example' }] },
      'TLSA _25._tcp.mx.example': {
        answers: [{
          type: 'TLSA', name: '_25._tcp.mx.example', ttl: 60,
          data: { usage: 3, selector: 1, matchingType: 1, certificate: Buffer.from([1, 2, 3]) },
        }],
      },
    };
    const { ask } = await field(t, (question) => said[question]);
    const found = (records: readonly unknown[]) => ({ kind: 'found', records, isAuthentic: false });
    assert.deepEqual(await ask('mx.Example', 'A'), found(['192.0.2.1', '192.0.2.2']));
    assert.deepEqual(await ask('mx.example', 'AAAA'), found(['2001:db8::1']));
    assert.deepEqual(await ask('example', 'MX'), found([{ preference: 10, exchange: 'mx.example' }]));
    assert.deepEqual(await ask('none.example', 'MX'), found([{ preference: 0, exchange: '' }]));
    assert.deepEqual(await ask('example', 'TXT'), found(['v=spf1 \u00e9']));
    assert.deepEqual(await ask('1.2.0.192.in-addr.arpa', 'PTR'), found(['mx.example']));
    assert.deepEqual(await ask('_25._tcp.mx.example', 'TLSA'), found([
      { usage: 3, selector: 1, matching: 1, association: Uint8Array.from([1, 2, 3]) },
    ]));
  });

  test('follows aliases, eight at most, and not in a circle', async (t) => {
    const chain = (length: number) => Array.from({ length }, (_, i) => alias(`a${String(i)}.example`, `a${String(i + 1)}.example`));
    const { ask } = await field(t, (question) => ({
      'A a0.example': { answers: [...chain(8), a('a8.example', '192.0.2.8')] },
      'A b0.example': { answers: [alias('b0.example', 'a0.example'), ...chain(8), a('a8.example', '192.0.2.8')] },
      'A c.example': { answers: [alias('c.example', 'd.example'), alias('d.example', 'c.example')] },
      'A e.example': { answers: [alias('e.example', 'f.example'), a('e.elsewhere', '192.0.2.9')] },
      'CNAME e.example': { answers: [alias('e.example', 'f.example')] },
    })[question]);
    assert.deepEqual(await ask('a0.example', 'A'), { kind: 'found', records: ['192.0.2.8'], aliasOf: 'a8.example', isAuthentic: false });
    assert.deepEqual(await ask('e.example', 'CNAME'), { kind: 'found', records: ['f.example'], isAuthentic: false });
    assert.match(failure(await ask('b0.example', 'A')), /more than 8 aliases/);
    assert.match(failure(await ask('c.example', 'A')), /more than 8 aliases/);
    assert.equal((await ask('e.example', 'A')).kind, 'no-records');
  });

  test('and is no name of the DNS is not sent', async (t) => {
    const { ask, server } = await field(t, () => ({}));
    for (const name of ['', 'a..b', 'x'.repeat(64), `${'abcdefg.'.repeat(32)}x`, 'b\u00fccher.example', 'a b', 'a\0b']) {
      assert.match(failure(await ask(name, 'A')), /not a name/, name);
    }
    assert.deepEqual(server.asked, []);
  });

  test('by many at once is asked once, each question from a port of its own', async (t) => {
    const { ask, server } = await field(t, (question) => ({ answers: [a(question.slice(2), '192.0.2.1', 0)] }));
    await Promise.all(Array.from({ length: 40 }, (_, i) => ask(`h${String(i % 20)}.example`, 'A')));
    assert.equal(server.asked.length, 20);
    assert.ok(server.ports.size > 15, `${String(server.ports.size)} ports`);
  });

  test('by more than may be under way waits in line, and past that fails at once', async (t) => {
    const { ask, server } = await field(t, (question) => ({ answers: [a(question.slice(2), '192.0.2.1', 0)] }));
    const answers = await Promise.all(Array.from({ length: 10_300 }, (_, i) => ask(`h${String(i)}.example`, 'A')));
    const refused = answers.filter((each) => failure(each) === 'too many questions at once');
    assert.equal(refused.length, 10_300 - 128 - 10_000);
    // The system may drop some when all come at once; those are asked for again.
    assert.equal(new Set(server.asked).size, 10_128);
  });

  test('and has waited in line for ten seconds behind silent resolvers fails without being asked', async (t) => {
    const { ask, server, clock } = await field(t, () => undefined);
    const answers = Promise.all(Array.from({ length: 300 }, (_, i) => ask(`h${String(i)}.example`, 'A')));
    clock.now = 10_001;
    const late = (await answers).filter((each) => failure(each) === 'too many questions at once');
    assert.equal(late.length, 300 - 128);
    assert.equal(new Set(server.asked).size, 128);
  });

  test('in a line of ten thousand that fails, by somebody who asks again each time, needs no stack', async (t) => {
    const server = await NameServer.start(t, () => ({ rcode: 3 }));
    const clock = { now: 0 };
    const client = new DnsClient({ resolvers: [server.resolver], trustsAd: false }, { nowMs: () => clock.now, wallMs: () => 0 }, 1);
    t.after(() => { client.close(); });
    const first = new Promise((resolve) => { client.ask('first.example', 'A', resolve); });
    let told = 0;
    for (let i = 0; i < 10_000; i++) {
      const name = `h${String(i)}.example`;
      client.ask(name, 'AAAA', () => {
        told++;
        client.ask(name, 'A', () => undefined);
      });
    }
    clock.now = 10_001;
    await first;
    assert.equal(told, 10_000);
  });
});

test('domains whose name servers are silent hold up nobody else, and have a quarter of the room until one of their names is answered', async (t) => {
  let isSilent = true;
  const { server, client, clock, ask } = await field(t, (question) => (isSilent && question.endsWith('.silent.example') ? undefined : { answers: [a(question.slice(2), '192.0.2.1', 0)] }));
  const many = (from: number) => Array.from({ length: 400 }, (_, i) => ask(`h.d${String(from + i)}.silent.example`, 'A'));
  const asked = (name: string) => server.asked.filter((each) => each.endsWith(name)).length;
  const silent = many(0);
  // Nobody knows of them yet: it waits for those that were asked first, until one was silent to the end.
  assert.equal((await ask('good.example.net', 'A')).kind, 'found');
  assert.match(failure(await Promise.race(silent)), /no answer in time/);
  const before = asked('.silent.example');
  silent.push(...many(1000));
  for (let i = 0; i < 200; i++) assert.equal((await ask(`h${String(i)}.good.example.net`, 'A')).kind, 'found');
  assert.ok(asked('.silent.example') <= before + 2 * 32, `${String(before)}, then ${String(asked('.silent.example'))}`);
  clock.now = 10_001;
  isSilent = false;
  const answers = await Promise.all(silent);
  // What was asked has failed of itself, or is answered; the rest was not asked, and says so.
  const unasked = answers.filter((each) => each.kind === 'failed' && each.isUnasked === true);
  assert.ok(unasked.length > 400 && unasked.length < 800 - 128, String(unasked.length));
  assert.equal((await ask('h.x.silent.example', 'A')).kind, 'found');
  await Promise.all(Array.from({ length: 100 }, (_, i) => ask(`y${String(i)}.silent.example`, 'A')));
  client.close();
});

test('a domain that one packet was lost of is asked again before domains that are silent, and is none of them', async (t) => {
  let tries = 0;
  const sibling: Promise<DnsAnswer<'A'>>[] = [];
  const server = await NameServer.start(t, (question) => {
    if (question.endsWith('.silent.test')) return undefined;
    if (question === 'A healthy.example' && tries++ === 0) return undefined;
    // Meanwhile another name of it is asked for, as any.
    if (question === 'A healthy.example') sibling.push(ask('www.healthy.example'));
    return { answers: [a(question.slice(2), '192.0.2.1', 0)] };
  });
  const clock = { now: 0 };
  const client = new DnsClient({ resolvers: [server.resolver], trustsAd: false }, { nowMs: () => clock.now, wallMs: () => 0 }, 16);
  t.after(() => { client.close(); });
  const ask = (name: string) => new Promise<DnsAnswer<'A'>>((resolve) => { client.ask(name, 'A', resolve); });
  await ask('first.silent.test');
  for (let i = 0; i < 200; i++) client.ask(`h${String(i)}.silent.test`, 'A', () => undefined);
  assert.equal((await ask('healthy.example')).kind, 'found');
  assert.deepEqual((await Promise.all(sibling)).map(({ kind }) => kind), ['found']);
  const before = new Set(server.asked).size;
  assert.ok(before < 50, `${String(before)} were before it`);
});

test('fresh names below one domain of a country are one domain, below its registry they are many', () => {
  const silent = new SilentDomains();
  silent.note('x.d1.abc.de');
  silent.note('x.d1.co.uk');
  assert.deepEqual(['d2.abc.de', 'y.d1.co.uk', 'd2.co.uk', 'abc.uk'].map((name) => silent.has(name)), [true, true, false, false]);
});

describe('the line of silent domains, while the other one is busy', () => {
  /** Places for 16. One of x.lost.example was silent when it was asked last, and 200 fresh domains are as silent. */
  async function busy(t: { after(run: () => void): void }) {
    let isLost = true;
    const server = await NameServer.start(t, (question) => (isLost || !question.endsWith('.lost.example') ? undefined : { answers: [a(question.slice(2), '192.0.2.1')] }));
    const clock = { now: 0 };
    const client = new DnsClient({ resolvers: [server.resolver], trustsAd: false }, { nowMs: () => clock.now, wallMs: () => 0 }, 16);
    t.after(() => { client.close(); });
    const ask = (name: string, withinMs?: number) => new Promise<DnsAnswer<'A'>>((resolve) => { client.ask(name, 'A', resolve, withinMs); });
    await ask('first.lost.example');
    isLost = false;
    for (let i = 0; i < 200; i++) client.ask(`fresh${String(i)}.example`, 'A', () => undefined);
    const fresh = () => new Set(server.asked.filter((each) => each.includes('fresh'))).size;
    return { ask, clock, fresh };
  }

  test('has a place: who answers again is heard', async (t) => {
    const { ask, fresh } = await busy(t);
    assert.equal((await ask('second.lost.example')).kind, 'found');
    assert.ok(fresh() < 100, `${String(fresh())} were before it`);
  });

  test('ends who has waited for too long', async (t) => {
    const { ask, clock, fresh } = await busy(t);
    const late = Promise.all(Array.from({ length: 50 }, (_, i) => ask(`late${String(i)}.lost.example`, 500)));
    clock.now = 1000;
    assert.equal(new Set((await late).map(failure)).has('too many questions at once'), true);
    assert.ok(fresh() < 100, `${String(fresh())} were before it`);
  });
});

test('what nobody wants any more leaves the line without being asked', async (t) => {
  const { client, server, clock } = await field(t, () => undefined);
  const ask = (name: string, withinMs?: number) => new Promise<DnsAnswer<'A'>>((resolve) => { client.ask(name, 'A', resolve, withinMs); });
  const first = Promise.all(Array.from({ length: 128 }, (_, i) => ask(`h${String(i)}.example`)));
  // Two want the second, one of them for longer.
  const behind = Promise.all([ask('gone.example', 500), ask('wanted.example', 500), ask('wanted.example', 2000)]);
  clock.now = 1000;
  await first;
  assert.deepEqual((await behind).map(failure), ['too many questions at once', '127.0.0.1: no answer in time', '127.0.0.1: no answer in time']);
  assert.ok(server.asked.includes('A wanted.example') && !server.asked.includes('A gone.example'));
});

test('what waits to be asked again, for longer than anybody wants it, ends while the places for that are taken', async (t) => {
  const server = await NameServer.start(t, () => undefined);
  const clock = { now: 0 };
  const client = new DnsClient({ resolvers: [server.resolver], trustsAd: false }, { nowMs: () => clock.now, wallMs: () => 0 }, 4);
  t.after(() => { client.close(); });
  const ended: string[] = [];
  const ask = (name: string, withinMs: number) => new Promise<void>((resolve) => {
    client.ask(name, 'A', () => {
      ended.push(name);
      resolve();
    }, withinMs);
  });
  const both = Promise.all([ask('wanted.example', 9000), ask('unwanted.example', 500)]);
  clock.now = 1000;
  await both;
  assert.deepEqual([ended, server.asked.length], [['unwanted.example', 'wanted.example'], 3]);
});

test('the line of what is asked again is bounded: what finds it full fails', async (t) => {
  const server = await NameServer.start(t, () => undefined);
  const clock = { now: 0 };
  const client = new DnsClient({ resolvers: [server.resolver], trustsAd: false }, { nowMs: () => clock.now, wallMs: () => 0 }, 16, 2);
  t.after(() => { client.close(); });
  // All are silent within a second: four of them are asked again, for two more, and two wait.
  let failed = 0;
  await new Promise<void>((resolve) => {
    for (let i = 0; i < 16; i++) {
      client.ask(`h.d${String(i)}.example`, 'A', (answer) => {
        assert.equal(failure(answer), '127.0.0.1: no answer in time');
        if (++failed === 10) resolve();
      });
    }
  });
  // Without a bound they would fail once the eight before them were asked again.
  assert.ok(server.asked.length <= 16 + 4, String(server.asked.length));
});

describe('an answer is kept', () => {
  test('by the least TTL on the way, and not when that is 0', async (t) => {
    const { ask, server, clock } = await field(t, (question) => ({
      'A x.example': { answers: [alias('x.example', 'y.example', 30), a('y.example', '192.0.2.1', 90)] },
      'A z.example': { answers: [a('z.example', '192.0.2.1', 0)] },
      'A top.example': { answers: [a('top.example', '192.0.2.1', 0x8000_0000)] },
    })[question]);
    await ask('x.example', 'A');
    clock.now = 29_999;
    await ask('X.example', 'A');
    assert.equal(server.asked.length, 1);
    clock.now = 30_000;
    await ask('x.example', 'A');
    assert.equal(server.asked.length, 2);
    for (const name of ['z.example', 'z.example', 'top.example', 'top.example']) await ask(name, 'A');
    assert.equal(server.asked.length, 6);
  });

  test('that says no, as the zone says (RFC 2308)', async (t) => {
    const { ask, server, clock } = await field(t, (question) => ({
      'A gone.example': { rcode: 3, authorities: [SOA] },
      'A empty.example': { authorities: [SOA] },
      'A mute.example': { rcode: 3 },
    })[question]);
    for (const [name, kind] of [['gone.example', 'no-name'], ['empty.example', 'no-records']] as const) {
      assert.deepEqual(await ask(name, 'A'), { kind, isAuthentic: false });
      clock.now += 299_999;
      await ask(name, 'A');
      clock.now += 1;
      await ask(name, 'A');
    }
    assert.equal(server.asked.length, 4);
    await ask('mute.example', 'A');
    await ask('mute.example', 'A');
    assert.equal(server.asked.length, 6);
  });

  test('until somebody has mended something: then what was not found counts no more, and of one domain its MX', async (t) => {
    const host = { answers: [a('host.example', '192.0.2.1')] };
    const way = (name: string): Scripted => ({ answers: [{ type: 'MX', name, ttl: 60, data: { preference: 1, exchange: 'host.example' } }] });
    const { client, ask, server } = await field(t, (question) => ({
      'A gone.example': { rcode: 3, authorities: [SOA] }, 'A lame.example': { rcode: 2 }, 'A host.example': host,
      'MX one.example': way('one.example'), 'MX two.example': way('two.example'),
    })[question]);
    const askAll = async (): Promise<readonly string[]> => {
      const { length } = server.asked;
      for (const name of ['gone.example', 'lame.example', 'host.example']) await ask(name, 'A');
      for (const name of ['one.example', 'two.example']) await ask(name, 'MX');
      return [...new Set(server.asked.slice(length))];
    };
    const all = await askAll();
    assert.deepEqual(await askAll(), []);
    client.forgetMissing('ONE.example');
    assert.deepEqual(await askAll(), ['A gone.example', 'A lame.example', 'MX one.example']);
    assert.deepEqual(await askAll(), []);
    client.forgetAll();
    assert.deepEqual([await askAll(), await askAll()], [all, []]);
  });

  test('that resolvers could not give, for five seconds', async (t) => {
    const { ask, server, clock } = await field(t, () => ({ rcode: 2 }));
    assert.equal(failure(await ask('x.example', 'A')), '127.0.0.1: SERVFAIL');
    assert.equal(server.asked.length, 2, 'each resolver twice');
    clock.now = 4_999;
    await ask('x.example', 'A');
    assert.equal(server.asked.length, 2);
    clock.now = 5_000;
    await ask('x.example', 'A');
    assert.equal(server.asked.length, 4);
  });
});

describe('nobody else answers', () => {
  const right = a('x.example', '192.0.2.1', 0);
  const forged = [a('x.example', '203.0.113.1')];
  const withQuestion = (question: packet.DecodedPacket, questions: packet.Question[]): Uint8Array =>
    answerBytes({ ...question, questions }, { answers: forged });
  const FORGERIES: Readonly<Record<string, (question: packet.DecodedPacket) => Uint8Array>> = {
    'another id': (question) => answerBytes({ ...question, id: ((question.id ?? 0) + 1) % 0x10000 }, { answers: forged }),
    'another id, and too long': (question) => answerBytes({ ...question, id: ((question.id ?? 0) + 1) % 0x10000 }, { answers: Array.from({ length: 1000 }, () => forged).flat() }),
    'another name': (question) => withQuestion(question, [{ type: 'A', name: 'y.example' }]),
    'another type': (question) => withQuestion(question, [{ type: 'AAAA', name: 'x.example' }]),
    'another class': (question) => withQuestion(question, [{ type: 'A', name: 'x.example', class: 'CH' }]),
    'no question': (question) => withQuestion(question, []),
    'two questions': (question) => withQuestion(question, [{ type: 'A', name: 'x.example' }, { type: 'A', name: 'y.example' }]),
    'another opcode': (question) => answerBytes(question, { answers: forged, flags: 5 << 11 }),
    'a question': (question) => packet.encode({ id: question.id ?? 0, type: 'query', questions: [{ type: 'A', name: 'x.example' }], answers: forged }),
    'a record of another class beside ours': (question) => answerBytes(question, { answers: [{ ...a('x.example', '203.0.113.1'), class: 'CH' }, right] }),
    'too short': (question) => packet.encode({ id: question.id ?? 0 }).subarray(0, 11),
  };
  for (const [what, forge] of Object.entries(FORGERIES)) {
    test(`with ${what}`, async (t) => {
      const { ask } = await field(t, () => ({ bytes: (question) => [forge(question), answerBytes(question, { answers: [right] })] }));
      assert.deepEqual(await ask('x.example', 'A'), { kind: 'found', records: ['192.0.2.1'], isAuthentic: false });
    });
  }

  test('from another port', async (t) => {
    const stranger = createSocket('udp4');
    t.after(() => { stranger.close(); });
    const { ask, server } = await field(t, () => ({
      bytes: (question) => {
        for (const port of server.ports) stranger.send(answerBytes(question, { answers: forged }), port, '127.0.0.1');
        return [];
      },
    }));
    assert.equal(failure(await ask('x.example', 'A')), '127.0.0.1: no answer in time');
  });

  test('by guessing: after sixteen strange answers it is asked by TCP', async (t) => {
    const { ask } = await field(t, (_question, by) => ({
      bytes: (question) => by === 'tcp' ? [answerBytes(question, { answers: [right] })]
        : Array.from({ length: 20 }, () => answerBytes({ ...question, id: ((question.id ?? 0) + 1) % 0x10000 }, { answers: forged })),
    }));
    assert.deepEqual(await ask('x.example', 'A'), { kind: 'found', records: ['192.0.2.1'], isAuthentic: false });
  });
});

describe('an answer that does not fit', () => {
  const records = (count: number) => Array.from({ length: count }, (_, i) => a('x.example', `192.0.${String(i >> 8)}.${String(i & 255)}`));

  test('comes by TCP', async (t) => {
    const { ask } = await field(t, (_question, by) => ({ answers: records(400), isTruncated: by === 'udp' }));
    const answer = await ask('x.example', 'A');
    assert.equal(answer.kind === 'found' && answer.records.length, 400);
  });

  test('and is cut off anywhere comes by TCP', async (t) => {
    const flags = packet.TRUNCATED_RESPONSE;
    for (const octets of [3, 14, 29]) {
      const { ask } = await field(t, (_question, by) => (by === 'tcp'
        ? { answers: records(3) }
        : { bytes: (question) => [answerBytes(question, { answers: records(3), flags }).subarray(0, -octets)] }));
      const answer = await ask('x.example', 'A');
      assert.equal(answer.kind === 'found' && answer.records.length, 3, `${String(octets)} octets less`);
    }
  });

  test('into 16 KiB does not count, by UDP or TCP', async (t) => {
    const { ask } = await field(t, (question, by) => ({
      answers: records(by === 'udp' && question === 'A y.example' ? 0 : 1000), isTruncated: question === 'A y.example' && by === 'udp',
    }));
    assert.match(failure(await ask('x.example', 'A')), /an answer of \d+ bytes/);
    assert.match(failure(await ask('y.example', 'A')), /an answer of \d+ bytes/);
  });

  test('by TCP either is a failure', async (t) => {
    const { ask } = await field(t, () => ({ isTruncated: true }));
    assert.match(failure(await ask('x.example', 'A')), /a truncated answer by TCP/);
  });
});

test('a resolver that is dead is passed over, and the one that answers is asked first from then on', async (t) => {
  const alive = await NameServer.start(t, (question) => ({ answers: [a(question.slice(2), '192.0.2.1')] }));
  const refusing = await NameServer.start(t, () => ({ rcode: 5 }));
  const closed = await NameServer.start({ after: () => undefined }, () => undefined);
  const dead = closed.resolver;
  closed.close();
  const client = new DnsClient({ resolvers: [dead, refusing.resolver, alive.resolver], trustsAd: false }, { nowMs: () => 0, wallMs: () => 0 });
  t.after(() => { client.close(); });
  const ask = (name: string) => new Promise<DnsAnswer<'A'>>((resolve) => { client.ask(name, 'A', resolve); });
  assert.equal((await ask('x.example')).kind, 'found');
  assert.equal((await ask('y.example')).kind, 'found');
  assert.deepEqual([refusing.asked.length, alive.asked.length], [1, 2]);
});

test('another list of resolvers is asked for everything anew, and what the one before still says is not kept', async (t) => {
  const { client, ask } = await field(t, (question) => ({ answers: [a(question.slice(2), '192.0.2.1')] }));
  const other = await NameServer.start(t, (question) => ({ answers: [a(question.slice(2), '192.0.2.2')] }));
  const first = async (name: string): Promise<unknown> => {
    const answer = await ask(name, 'A');
    return answer.kind === 'found' ? answer.records[0] : answer.kind;
  };
  assert.equal(await first('x.example'), '192.0.2.1');
  const underWay = first('y.example');
  client.renew({ resolvers: [other.resolver], trustsAd: false });
  assert.equal(await first('x.example'), '192.0.2.2');
  assert.equal(await underWay, '192.0.2.2', 'who waits does not hear of the one before');
  assert.equal(await first('y.example'), '192.0.2.2');
});

test('a shorter list of resolvers is asked for what the one before has not answered', async (t) => {
  const silent = await NameServer.start(t, () => undefined);
  const other = await NameServer.start(t, (question) => ({ answers: [a(question.slice(2), '192.0.2.2')] }));
  const client = new DnsClient({ resolvers: [silent.resolver, silent.resolver, silent.resolver], trustsAd: false }, { nowMs: () => 0, wallMs: () => 0 });
  t.after(() => { client.close(); });
  const ask = (name: string) => new Promise<DnsAnswer<'A'>>((resolve) => { client.ask(name, 'A', resolve); });
  const answers = ['x.example', 'x.example', 'y.example'].map(ask);
  // More often than the other list allows.
  while (silent.asked.length < 6) await delay(20);
  client.renew({ resolvers: [other.resolver], trustsAd: false });
  for (const answer of await Promise.all(answers)) assert.deepEqual(answer, { kind: 'found', records: ['192.0.2.2'], isAuthentic: false });
  assert.deepEqual([...other.asked].sort(), ['A x.example', 'A y.example']);
});

test('domains that were silent wait behind no others once the list of resolvers is another', async (t) => {
  const silent = await NameServer.start(t, () => undefined);
  const other = await NameServer.start(t, (question) => ({ answers: [a(question.slice(2), '192.0.2.2')] }));
  const client = new DnsClient({ resolvers: [silent.resolver], trustsAd: false }, { nowMs: () => 0, wallMs: () => 0 }, 1);
  t.after(() => { client.close(); });
  const ask = (name: string) => new Promise<DnsAnswer<'A'>>((resolve) => { client.ask(name, 'A', resolve); });
  assert.equal(failure(await ask('x.example')), '127.0.0.1: no answer in time');
  client.renew({ resolvers: [other.resolver], trustsAd: false });
  await Promise.all(['w.example', 'x.example', 'y.example'].map(ask));
  assert.deepEqual(other.asked, ['A w.example', 'A x.example', 'A y.example']);
});

test('a resolver that no way leads to is passed over', async (t) => {
  const alive = await NameServer.start(t, (question) => ({ answers: [a(question.slice(2), '192.0.2.1')] }));
  // A socket may not be connected to it without leave to broadcast: as one without a route, wherever the test runs.
  const unreachable = { ...alive.resolver, host: '255.255.255.255' };
  const client = new DnsClient({ resolvers: [unreachable, alive.resolver], trustsAd: false }, { nowMs: () => 0, wallMs: () => 0 });
  t.after(() => { client.close(); });
  assert.equal((await new Promise<DnsAnswer<'A'>>((resolve) => { client.ask('x.example', 'A', resolve); })).kind, 'found');
  assert.equal(alive.asked.length, 1);
});

test('where one on this machine is believed, no other answers in its place', async (t) => {
  const validating = await NameServer.start(t, (question) => (question === 'TLSA _25._tcp.mx.example' ? { rcode: 2 } : undefined));
  // Here, under an address that says nothing of that.
  const elsewhere = await NameServer.start(t, () => ({}));
  const resolvers = [{ host: '0.0.0.0', port: elsewhere.resolver.port }, validating.resolver];
  const client = new DnsClient({ resolvers, trustsAd: false }, { nowMs: () => 0, wallMs: () => 0 });
  t.after(() => { client.close(); });
  const ask = (name: string) => new Promise<DnsAnswer<'TLSA'>>((resolve) => { client.ask(name, 'TLSA', resolve); });
  assert.equal(failure(await ask('_25._tcp.mx.example')), '127.0.0.1: SERVFAIL');
  assert.equal(failure(await ask('_25._tcp.silent.example')), '127.0.0.1: no answer in time');
  assert.deepEqual([elsewhere.asked, client.leftOut], [[], ['0.0.0.0']]);
  const all = new DnsClient({ resolvers, trustsAd: true }, { nowMs: () => 0, wallMs: () => 0 });
  const none = new DnsClient({ resolvers: [{ host: '192.0.2.53', port: 53 }], trustsAd: false }, { nowMs: () => 0, wallMs: () => 0 });
  assert.deepEqual([all.leftOut, none.leftOut], [[], []]);
});

describe('what an answer says of DNSSEC', () => {
  const script: Script = (question) => ({
    flags: packet.AUTHENTIC_DATA, ...(question === 'A gone.example' ? { rcode: 3 } : { answers: [a('x.example', '192.0.2.1')] }),
  });

  test('is believed of a resolver on this machine', async (t) => {
    const { ask } = await field(t, script);
    assert.deepEqual(await ask('x.example', 'A'), { kind: 'found', records: ['192.0.2.1'], isAuthentic: true });
    assert.deepEqual(await ask('gone.example', 'A'), { kind: 'no-name', isAuthentic: true });
  });

  test('is not believed of any other, but where the configuration says so', async (t) => {
    const server = await NameServer.start(t, script);
    for (const trustsAd of [false, true]) {
      // Here, under an address that says nothing of that.
      const client = new DnsClient({ resolvers: [{ host: '0.0.0.0', port: server.resolver.port }], trustsAd }, { nowMs: () => 0, wallMs: () => 0 });
      t.after(() => { client.close(); });
      const ask = (name: string) => new Promise<DnsAnswer<'A'>>((resolve) => { client.ask(name, 'A', resolve); });
      assert.deepEqual(await ask('x.example'), { kind: 'found', records: ['192.0.2.1'], isAuthentic: trustsAd });
      assert.deepEqual(await ask('gone.example'), { kind: 'no-name', isAuthentic: trustsAd });
      assert.equal(client.believesAd, trustsAd);
    }
  });
});

test('what is malformed is a failure, never an exception', async (t) => {
  const whole = packet.encode({
    id: 0, type: 'response', questions: [{ type: 'A', name: 'x.example' }], answers: [a('x.example', '192.0.2.1')], authorities: [SOA],
  });
  let at = 12;
  const { ask, clock } = await field(t, () => ({
    bytes: (question) => {
      const bytes = Buffer.from(whole.subarray(0, at));
      bytes.writeUInt16BE(question.id ?? 0);
      return [bytes];
    },
  }));
  for (; at < whole.length; at++) {
    clock.now += 10_000;
    assert.equal((await ask('x.example', 'A')).kind, 'failed', `${String(at)} bytes`);
  }
});

test('more records than the bytes can hold are not read', async (t) => {
  const { ask } = await field(t, () => ({
    bytes: ({ id }) => {
      const bytes = Buffer.from(packet.encode({
        id: id ?? 0, type: 'response', questions: [{ type: 'A', name: 'x.example' }], answers: [a('x.example', '192.0.2.1')],
      }));
      bytes.writeUInt16BE(43_904, 8);
      return [bytes];
    },
  }));
  assert.match(failure(await ask('x.example', 'A')), /a malformed answer: 43905 records in 52 bytes/);
});

describe('what an answer may cost', () => {
  const question = { id: 7, name: 'x.example', type: 'MX' } as const;
  const MX = 15;
  /** 115 labels; where it is in the message, behind header, question, and a record's own name and fixed part. */
  const long = Array.from({ length: 115 }, () => 'a').join('.');
  const longAt = 12 + 15 + 11 + 10;
  const aliased = answerBytes({ id: 7, questions: [{ type: 'MX', name: 'x.example' }] } as packet.DecodedPacket, { answers: [alias('x.example', long)] });
  const exchange = [0, 1, 0xc0, longAt];
  const reading = (message: Uint8Array) => {
    const read = readAnswer(message, question, false);
    return read.kind === 'answer' ? read.answer.kind : read.kind === 'refused' ? read.why : read.kind;
  };

  test('in records is bounded', () => {
    const many = (count: number) => reading(withRecords(aliased, count - 1, 12, MX, [0, 1, 0]));
    assert.deepEqual([many(RECORDS_MAX), many(RECORDS_MAX + 1)].map((each) => each.replace(/ in .*/, '')), ['found', 'a malformed answer: 513 records']);
  });

  test('in labels of names is bounded before they are read', (t) => {
    const { mock } = t.mock.method(packet.name, 'decode');
    // Two names each, by a pointer.
    const count = Math.floor(NAMES_COST_MAX / (2 * (LABEL_COST + 115 * (LABEL_COST + 1)))) - 1;
    assert.equal(reading(withRecords(aliased, count, longAt, MX, exchange)), 'found');
    assert.ok(mock.callCount() > 2 * count);
    mock.resetCalls();
    assert.match(reading(withRecords(aliased, count + 2, longAt, MX, exchange)), /its names take too long to read/);
    // A circle.
    assert.match(reading(withRecords(aliased, 1, aliased.length, MX, exchange)), /its names take too long to read/);
    // As many strings, without a letter.
    const text = withRecords(answerBytes({ id: 7, questions: [{ type: 'TXT', name: 'x.example' }] } as packet.DecodedPacket, {}), 1, 12, 16, new Array<number>(NAMES_COST_MAX / LABEL_COST).fill(0));
    const ofText = readAnswer(text, { ...question, type: 'TXT' }, false);
    assert.match(ofText.kind === 'refused' ? ofText.why : ofText.kind, /its names take too long to read/);
    assert.equal(mock.callCount(), 0);
  });

  test('in letters of names is that of each name once, however many aliases there are', (t) => {
    const mixed = Array.from({ length: 3 }, () => 'aA'.repeat(31)).join('.');
    const names = ['x.example', mixed, ...Array.from({ length: 7 }, (_, i) => `b${String(i)}.example`)];
    const chain = names.slice(1).map((name, i) => alias(names[i] ?? '', name));
    const message = withRecords(answerBytes({ id: 7, questions: [{ type: 'MX', name: 'x.example' }] } as packet.DecodedPacket, { answers: chain }), 100, longAt + 63, MX, exchange);
    const { mock } = t.mock.method(String.prototype, 'toLowerCase');
    assert.equal(reading(message), 'no-records');
    assert.ok(mock.callCount() <= 2 * (chain.length + 100), `${String(mock.callCount())} calls`);
  });

  test('is nothing for records that were not asked for, whatever they say of their length', () => {
    const [other, SOA_TYPE] = [withRecords(aliased, 400, longAt, 47, exchange), 6];
    assert.equal(reading(other), 'no-records');
    assert.equal(reading(withRecords(withRecords(aliased, 400, longAt, SOA_TYPE, []), 1, longAt, MX, exchange)), 'found');
    assert.match(reading(withRecords(aliased, 1, longAt, MX, [0, 1, 0, 0])), /a record of another length than it says/);
  });
});

/** Its work is done by who takes it. */
class HeldShare extends TurnShare {
  readonly #held: (() => void)[] = [];
  #onWork = (): void => undefined;

  override run(work: () => void): void {
    this.#held.push(work);
    this.#onWork();
  }

  async came(): Promise<() => void> {
    for (;;) {
      const work = this.#held.shift();
      if (work !== undefined) return work;
      await new Promise<void>((resolve) => { this.#onWork = resolve; });
    }
  }
}

const WITHIN_MS = 1000;

/** One question for x.example, with timers of the test's own. */
async function heldExchange(t: TestContext, script: Script) {
  const server = await NameServer.start(t, script);
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const [share, verdicts] = [new HeldShare(), [] as string[]];
  const question = { id: 7, name: 'x.example', type: 'A' } as const;
  const exchange = new DnsExchange({ ...server.resolver, isTrusted: false }, question, WITHIN_MS, share, (verdict) => {
    verdicts.push(verdict.kind === 'answer' ? 'answer' : verdict.why);
  });
  t.after(() => { exchange.abandon(); });
  return { share, verdicts };
}

describe('answers that come together', () => {
  for (const by of ['udp', 'tcp'] as const) {
    test(`by ${by} are read in shares of a turn`, async (t) => {
      const { ask } = await field(t, (question, asked) => ({ answers: [a(question.slice(2), '192.0.2.1')], isTruncated: by !== asked }));
      // Each takes more than a share.
      let nowMs = 0;
      t.mock.method(performance, 'now', () => nowMs += 6);
      let turn = 0;
      let ticking = setImmediate(function tick() {
        turn++;
        ticking = setImmediate(tick);
      });
      t.after(() => { clearImmediate(ticking); });
      const inTurns = new Map<number, number>();
      await Promise.all(Array.from({ length: 30 }, async (_, i) => {
        assert.equal((await ask(`h${String(i)}.example`, 'A')).kind, 'found');
        inTurns.set(turn, (inTurns.get(turn) ?? 0) + 1);
      }));
      assert.ok(Math.max(...inTurns.values()) <= 2, [...inTurns.values()].join(' '));
    });
  }

  for (const by of ['udp', 'tcp'] as const) {
    test(`by ${by} are in time, however long they wait to be read`, async (t) => {
      const { share, verdicts } = await heldExchange(t, (_question, asked) => ({ answers: [a('x.example', '192.0.2.1')], isTruncated: by !== asked }));
      if (by === 'tcp') (await share.came())();
      const read = await share.came();
      t.mock.timers.tick(60_000);
      assert.deepEqual(verdicts, []);
      read();
      assert.deepEqual(verdicts, ['answer']);
    });
  }

  test('and are strange leave the question the time that it had when they came', async (t) => {
    let nowMs = 0;
    t.mock.method(performance, 'now', () => nowMs);
    const { share, verdicts } = await heldExchange(t, () => ({ bytes: (question) => [0, 1].map(() => answerBytes({ ...question, id: (question.id ?? 0) ^ 1 }, {})) }));
    nowMs = 600;
    const [first, second] = [await share.came(), await share.came()];
    nowMs = 5000;
    first();
    t.mock.timers.tick(60_000);
    assert.deepEqual(verdicts, [], 'the second may be the answer');
    second();
    t.mock.timers.tick(WITHIN_MS - 601);
    assert.deepEqual(verdicts, []);
    t.mock.timers.tick(1);
    assert.deepEqual(verdicts, ['no answer in time']);
  });

  test('are not read when nobody waits any more', async (t) => {
    const { client, ask, server } = await field(t, (question) => ({ answers: [a(question.slice(2), '192.0.2.1')], isTruncated: question !== 'A h0.example' }));
    let nowMs = 0;
    t.mock.method(performance, 'now', () => nowMs += 6);
    const first = ask('h0.example', 'A').then(() => { client.close(); });
    for (let i = 1; i < 20; i++) client.ask(`h${String(i)}.example`, 'A', () => { assert.fail('it is closed'); });
    await first;
    const { length } = server.asked;
    await delay(50);
    assert.equal(server.asked.length, length, 'asked by TCP');
  });
});

describe('no verdict', () => {
  const OPT: packet.Answer = { type: 'OPT', name: '.', udpPayloadSize: 1232, extendedRcode: 1, ednsVersion: 0, flags: 0, flag_do: false, options: [] };
  const cases: readonly (readonly [string, Scripted, string])[] = [
    ['an extended code', { additionals: [OPT] }, 'RCODE_16'],
    ['an extended code with the bits of no name', { additionals: [OPT], rcode: 3 }, 'RCODE_19'],
    ['no records, of who does not resolve', { resolves: false }, 'it does not resolve names of others'],
    ['no name, of who does not resolve', { resolves: false, rcode: 3 }, 'it does not resolve names of others'],
  ];
  for (const [what, said, why] of cases) {
    test(`is ${what}`, async (t) => {
      const { ask } = await field(t, () => said);
      assert.equal(failure(await ask('x.example', 'A')), `127.0.0.1: ${why}`);
    });
  }

  test('is not what the server of the zone says, or its SOA, or records', async (t) => {
    const said: Readonly<Record<string, Scripted>> = {
      'A x.example': { answers: [a('x.example', '192.0.2.1')] }, 'A y.example': { flags: packet.AUTHORITATIVE_ANSWER, rcode: 3 },
      'A z.example': { authorities: [SOA] },
    };
    const { ask } = await field(t, (question) => ({ resolves: false, ...said[question] }));
    const kinds = await Promise.all(['x', 'y', 'z'].map(async (name) => (await ask(`${name}.example`, 'A')).kind));
    assert.deepEqual(kinds, ['found', 'no-name', 'no-records']);
  });
});
