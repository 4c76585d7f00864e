import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { decodeEnvelope, decodeReversePath, encodeEnvelope, HEAD_VERSION, readHeadPrefix } from '../../../../src/gateway/queue/envelope.js';
import { HeadWriter } from '../../../../src/gateway/queue/head-writer.js';
import type { Note } from '../../../../src/gateway/queue/note.js';
import { addedSecondsIn, delayedUntilIn, decodeNote, encodeNote, freshNote, noteRoom } from '../../../../src/gateway/queue/note.js';
import { createRouter } from '../../../../src/gateway/queue/router.js';
import { OWN_ORIGIN } from '../../../../src/gateway/mail-types.js';
import type { Envelope } from '../../../../src/gateway/mail-types.js';
import { NOTE_CRC_BYTES } from '../../../../src/protocol/change-rows.js';
import { MessagePacker } from '../../../../src/platform/node/packer.js';

const packer = new MessagePacker();
const text = fc.string({ unit: 'grapheme', maxLength: 40 });
const whole = fc.integer({ min: 1, max: 2 ** 52 });
const enhanced = fc.tuple(fc.integer({ min: 2, max: 5 }), fc.nat(999), fc.nat(999)).map((parts) => parts.join('.'));
const PLAIN = { noNullPrototype: true } as const;
const envelopes: fc.Arbitrary<Envelope> = fc.record({
  messageId: whole,
  queueClass: fc.constantFrom('mail', 'bounce', 'billing', 'notification'),
  queueName: fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)), minLength: 1, maxLength: 255 }),
  reversePath: text,
  recipients: fc.array(fc.record({ address: text, notify: fc.nat(15), orcpt: text }, PLAIN), { minLength: 1, maxLength: 8 }),
  flags: fc.nat(65535),
  ret: fc.nat(2),
  envid: text,
  arrivalWallMs: whole,
  expiryWallMs: fc.integer({ min: 1, max: 2 ** 41 }),
  client: text,
  helo: text,
}, PLAIN);

describe('envelope', () => {
  test('comes back as it went in, and its fixed part without unpacking', () => {
    fc.assert(fc.property(envelopes, (envelope) => {
      const head = encodeEnvelope(packer, envelope);
      assert.deepEqual(decodeEnvelope(packer, envelope.messageId, head), envelope);
      assert.equal(decodeReversePath(packer, head), envelope.reversePath);
      assert.deepEqual(readHeadPrefix(head), { flags: envelope.flags, expirySeconds: Math.ceil(envelope.expiryWallMs / 1000), arrivalWallMs: envelope.arrivalWallMs });
    }));
  });

  test('written without the packer it has the same bytes, and keeps them', () => {
    const writer = new HeadWriter(packer);
    const ascii = fc.string({ unit: 'binary-ascii', maxLength: 300 });
    const recipient = fc.record({ address: ascii, notify: fc.nat(15), orcpt: ascii }, PLAIN);
    const plain = fc.tuple(envelopes, ascii, ascii, fc.array(recipient, { maxLength: 8 })).map(([envelope, reversePath, helo, recipients]) => ({ ...envelope, reversePath, helo, envid: '', client: '::1', recipients }));
    const before: [Uint8Array, Uint8Array][] = [];
    const numbers = [0, 127, 128, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32, 2 ** 41 + 0.5];
    const texts = ['', '\x7f', '\x80', 'é', '→', ...[31, 32, 255, 256, 1000, 5000].map((length) => 'x'.repeat(length))];
    for (const number of numbers) {
      for (const helo of texts) {
        const envelope = { messageId: 1, reversePath: '', recipients: [{ address: 'a', notify: number, orcpt: '' }], flags: 65_535, ret: 0, envid: '', arrivalWallMs: 1.5, expiryWallMs: 2 ** 41, client: '', helo, queueClass: 'mail' as const, queueName: 'q' };
        assert.deepEqual([...writer.write(envelope)], [...encodeEnvelope(packer, envelope)]);
      }
    }
    fc.assert(fc.property(fc.oneof(envelopes, plain), (envelope) => {
      const expected = encodeEnvelope(packer, envelope).slice();
      before.push([writer.write(envelope), expected]);
      for (const [written, asPacked] of before.slice(-100)) assert.deepEqual([...written], [...asPacked]);
    }), { numRuns: 400 });
  });

  test('no name of a queue is written that could not be read again', () => {
    const named = (queueName: string): Envelope => ({ messageId: 1, reversePath: '', recipients: [], flags: 0, ret: 0, envid: '', arrivalWallMs: 1, expiryWallMs: 1, client: '', helo: '', queueClass: 'mail', queueName });
    const writer = new HeadWriter(packer);
    for (const queueName of ['', 'q'.repeat(256), 'q'.repeat(300), 'q'.repeat(3000), 'b\u00fccher', 'a\0', '\x7f']) {
      assert.throws(() => encodeEnvelope(packer, named(queueName)), /the name of a queue/, queueName);
      assert.throws(() => writer.write(named(queueName)), /the name of a queue/, queueName);
    }
    for (const write of [(envelope: Envelope) => encodeEnvelope(packer, envelope), (envelope: Envelope) => writer.write(envelope)]) {
      assert.equal(decodeEnvelope(packer, 1, write(named('q'.repeat(255))))?.queueName.length, 255);
    }
  });

  test('another version is not read', () => {
    const head = encodeEnvelope(packer, { messageId: 1, reversePath: '', recipients: [], flags: 0, ret: 0, envid: '', arrivalWallMs: 1, expiryWallMs: 1, client: '', helo: '', queueClass: 'mail', queueName: 'q' }).slice();
    head[0] = HEAD_VERSION + 1;
    assert.equal(decodeEnvelope(packer, 1, head), undefined);
    assert.equal(readHeadPrefix(head), undefined);
  });

  test('damaged bytes never end the process', () => {
    fc.assert(fc.property(envelopes, fc.nat(10_000), fc.nat(255), (envelope, place, byte) => {
      const head = encodeEnvelope(packer, envelope).slice();
      head[place % head.length] = byte;
      decodeEnvelope(packer, 1, head);
      decodeEnvelope(packer, 1, head.subarray(0, place % head.length));
      decodeReversePath(packer, head);
      decodeReversePath(packer, head.subarray(0, place % head.length));
    }), { numRuns: 500 });
  });

  test('its reverse-path is read without its recipients, however many and long they are', () => {
    for (const length of [0, 1, 31, 32, 255, 256, 1000]) {
      for (const recipients of [1, 2, 3, 4, 1000, 20_000]) {
        const [reversePath, address] = ['é'.repeat(length), 'x'.repeat(recipients % 300)];
        const head = encodeEnvelope(packer, { messageId: 1, reversePath, recipients: Array.from({ length: recipients }, () => ({ address, notify: 0, orcpt: '' })), flags: 0, ret: 0, envid: '', arrivalWallMs: 1, expiryWallMs: 1, client: '', helo: '', queueClass: 'mail', queueName: 'q' });
        assert.equal(decodeReversePath(packer, head), reversePath);
      }
    }
  });
});

describe('note', () => {
  test('comes back as it went in', () => {
    const notes: fc.Arbitrary<Note> = fc.record({
      attempts: fc.nat(255), dueWallMs: fc.nat(2 ** 41), states: fc.uint8Array({ minLength: 20, maxLength: 30 }).map((bytes) => Uint8Array.from(bytes)),
      owedChange: fc.integer({ min: 0, max: 2 ** 48 - 1 }), tries: fc.nat(3), heldSinceWallMs: fc.nat(2 ** 41), isDelayTold: fc.boolean(), isHeldByRule: fc.boolean(),
      isDelayed: fc.boolean(), addedSeconds: fc.nat(2 ** 31),
      results: fc.uniqueArray(fc.record({ recipient: fc.nat(19), code: fc.integer({ min: 200, max: 599 }), enhanced }, PLAIN), { maxLength: 5, selector: (result) => result.recipient })
        .map((results) => results.sort((a, b) => a.recipient - b.recipient)),
    }, PLAIN);
    fc.assert(fc.property(notes, (note) => {
      const bytes = encodeNote(note);
      assert.deepEqual(decodeNote(bytes), note);
      assert.deepEqual([addedSecondsIn(bytes), delayedUntilIn(bytes)], [note.addedSeconds, note.isDelayed ? note.dueWallMs : 0]);
      assert.equal(bytes.length + NOTE_CRC_BYTES, noteRoom(note.states.length), 'as long as the room that the number of recipients asks for');
    }));
  });

  test('of a status code that is none keeps the reply code', () => {
    for (const said of ['', 'x', '5.1', '5.1.1.1', '5.1000.1', '5.-1.1', '99.1.1']) {
      const [result] = decodeNote(encodeNote({ ...freshNote(1), results: [{ recipient: 0, code: 550, enhanced: said }] }))?.results ?? [];
      assert.equal(result?.code, 550, said);
      assert.match(result.enhanced, /^(|5\.1\.0)$/, said);
    }
  });

  test('one of another version is not read; one that never was says nobody was tried', () => {
    for (const bytes of [new Uint8Array(20), encodeNote(freshNote(1)).subarray(0, 19), new Uint8Array(3), new Uint8Array(0)]) assert.equal(decodeNote(bytes), undefined);
    assert.deepEqual([...freshNote(3).states], [0, 0, 0]);
  });
});

describe('router', () => {
  const base = { nextHop: { protocol: 'smtp', host: 'h', port: 25 } as const, ordering: 'fifo' as const, concurrency: 5, lengthMax: 10 };
  const router = createRouter([
    { ...base, domains: ['a.example'], name: 'exact' },
    { ...base, domains: ['*.a.example'], name: 'below' },
    { ...base, domains: ['*.example', 'c.test'], name: 'wide' },
    { ...base, domains: ['*'], name: 'rest', ordering: 'strict' },
  ]);

  test('the longest match wins, and * takes the rest', () => {
    const cases: [string, string][] = [['a.example', 'exact'], ['x.a.example', 'below'], ['y.x.a.example', 'below'], ['b.example', 'wide'], ['c.test', 'wide'], ['example', 'rest'], ['other.test', 'rest']];
    for (const [domain, name] of cases) assert.equal(router.route(domain, 'mail', '', OWN_ORIGIN)?.queueName, name, domain);
    assert.equal(createRouter([]).route('a.example', 'mail', '', OWN_ORIGIN), undefined);
  });

  test('a route is one object for each name and class, found by the queue name too', () => {
    assert.equal(router.route('b.example', 'mail', '', OWN_ORIGIN), router.route('c.test', 'mail', '', OWN_ORIGIN));
    assert.equal(router.routeOfQueue('wide', 'mail'), router.route('c.test', 'mail', '', OWN_ORIGIN));
    assert.notEqual(router.route('b.example', 'bounce', '', OWN_ORIGIN), router.route('b.example', 'mail', '', OWN_ORIGIN));
    assert.equal(router.routeOfQueue('gone', 'mail'), undefined);
  });

  test('of several routes for a domain the first whose conditions all hold is taken, else the one without', () => {
    const some = createRouter([
      { ...base, domains: ['*'], name: 'rest' },
      { ...base, domains: ['*'], name: 'bulk', when: { senders: ['*@news.example', 'Bounce-*@*'] } },
      { ...base, domains: ['*'], name: 'vip', when: { senders: ['*'], recipients: ['vip-*@big.test'], listeners: ['*:465'] } },
      { ...base, domains: ['*'], name: 'reports', when: { senders: ['<>'] } },
      { ...base, domains: ['*.test'], name: 'below', when: { listeners: ['[::1]:25'] } },
    ]);
    const cases: [string, string, string, string, string][] = [
      ['a@b.example', 'x@y.test', '127.0.0.1:25', 'rest', 'nothing holds'],
      ['list@NEWS.example', 'vip-1@big.test', '127.0.0.1:465', 'bulk', 'the first in the file'],
      ['bounce-7@c.example', 'x@y.test', '127.0.0.1:25', 'bulk', 'any of its patterns'],
      ['a@b.example', 'VIP-1@big.test', '127.0.0.1:465', 'vip', 'all of its lists'],
      ['a@b.example', 'vip-1@big.test', '127.0.0.1:25', 'rest', 'not only two of them'],
      ['', 'x@y.test', '127.0.0.1:25', 'reports', 'the null reverse-path'],
      ['a@b.example', 'x@y.test', '[::1]:25', 'below', 'the longer match, where it holds'],
    ];
    for (const [reversePath, address, listener, name, why] of cases) {
      const domain = address.slice(address.indexOf('@') + 1);
      assert.equal(some.route(domain, 'mail', address, { reversePath, listener })?.queueName, name, why);
    }
    assert.equal(some.routeNamed('bulk', 'y.test', 'mail', '')?.queueName, 'bulk', 'by its name, whatever holds');
    const none = createRouter([{ ...base, domains: ['*'], name: 'bulk', when: { senders: ['x@y.test'] } }]);
    assert.equal(none.route('y.test', 'mail', 'a@y.test', OWN_ORIGIN), undefined);
  });

  test('a queue of a domain has a name that fits into the label, with each mark behind it, or there is none', () => {
    const long = createRouter([{ ...base, domains: ['*'], name: 'n'.repeat(200), perDomain: true }, { ...base, domains: ['l.test'], name: 'l'.repeat(200), lanes: 1024 }]);
    const [fits, tooLong] = ['d'.repeat(50), 'd'.repeat(51)];
    const route = long.route(fits, 'mail', '', OWN_ORIGIN);
    assert.ok(route !== undefined);
    assert.deepEqual([long.withTls(route, 'required'), long.withTls(route, 'optional')].map(({ queueName }) => queueName.length), [255, 255]);
    assert.equal(long.route(tooLong, 'mail', '', OWN_ORIGIN), undefined);
    assert.equal(long.routeNamed('n'.repeat(200), tooLong, 'bounce', ''), undefined);
    const lane = long.route('l.test', 'mail', '', OWN_ORIGIN);
    assert.ok(lane !== undefined && long.withTls(lane, 'required').queueName.length <= 255);
  });

  test('lanes of a route are by domain, or by sender, so that a hot domain has several', () => {
    const lanesOf = (lanesBy: 'domain' | 'sender', domain: (i: number) => string, sender: (i: number) => string): number => {
      const some = createRouter([{ ...base, domains: ['*'], name: 'hot', lanes: 4, lanesBy }]);
      const names = Array.from({ length: 100 }, (_, i) => some.route(domain(i), 'mail', '', { reversePath: sender(i), listener: '' })?.queueName);
      assert.ok(names.every((name) => /^hot#[1-4]$/.test(name ?? '')));
      return new Set(names).size;
    };
    const [many, one] = [(i: number): string => `d${String(i)}.example`, (): string => 'one.example'];
    const [senders, nobody] = [(i: number): string => `s${String(i)}@c.example`, (): string => ''];
    assert.deepEqual([lanesOf('domain', many, nobody), lanesOf('domain', one, senders)], [4, 1]);
    assert.deepEqual([lanesOf('sender', one, senders), lanesOf('sender', many, () => 'a@b.example')], [4, 1]);
    assert.equal(lanesOf('sender', many, nobody), 4, 'reports by where they go');
    const bySender = createRouter([{ ...base, domains: ['*'], name: 'hot', lanes: 4, lanesBy: 'sender' }]);
    const from = (reversePath: string): unknown => bySender.route('x.example', 'mail', '', { reversePath, listener: '' });
    assert.equal(from('Ann@C.example'), from('ann@c.example'), 'whatever the case');
    assert.equal(bySender.routeNamed('hot', 'y.example', 'mail', 'ann@c.example'), from('ann@c.example'));
    assert.deepEqual(bySender.waysTo('x.example').map(({ queueName }) => queueName), ['hot#*']);
  });

  test('a strict route has one message in flight, whatever is configured', () => {
    assert.equal(router.route('other.test', 'mail', '', OWN_ORIGIN)?.concurrency, 1);
    assert.equal(router.route('a.example', 'mail', '', OWN_ORIGIN)?.concurrency, 5);
  });
});
