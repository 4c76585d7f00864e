/** Keys and values of the register: what is written is read back, and nothing hostile is taken or throws. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import fc from 'fast-check';

import { InvariantError } from '../../../src/base/invariant.js';
import { BrokenRule } from '../../../src/base/json-shape.js';
import {
  gatewayKey,
  incarnationKey,
  leftOrderIdOf,
  parseKey,
  partitionKey,
  partitionsOf,
  queueRuleIdOf,
  queueRuleKey,
  storeKey,
} from '../../../src/register/keys.js';
import type { GivenUpCopy } from '../../../src/protocol/partition-record.js';
import { keyRule } from '../../../src/register/limits.js';
import {
  decodeGateway,
  decodeIncarnation,
  decodeOrdinal,
  decodePartition,
  decodeGivenUp,
  decodeLeftOrder,
  decodeQueueRule,
  decodeRetired,
  decodeStore,
  encodeGateway,
  encodeIncarnation,
  encodeOrdinal,
  encodePartition,
  encodeGivenUp,
  encodeLeftOrder,
  encodeQueueRule,
  encodeRetired,
  encodeStore,
} from '../../../src/register/records.js';

const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/);
const randomId = fc.stringMatching(/^[0-9a-f]{32}$/);
const count = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
const ordinal = fc.integer({ min: 0, max: 2 ** 24 - 1 });
const host = fc.stringMatching(/^[a-z0-9.-]{1,60}$/);
const address = fc.tuple(host, fc.integer({ min: 0, max: 65_535 })).map(([at, port]) => `${at}:${String(port)}`);
const addresses = fc.array(address, { maxLength: 16 });
const member = fc.record({ storeId: name, bootId: randomId });
const members = fc.uniqueArray(member, {
  maxLength: 8,
  selector: ({ storeId, bootId }) => `${storeId}/${bootId}`,
});

const marks = fc.constantFrom<Pick<GivenUpCopy, 'isGone' | 'isAlone'>>({}, { isGone: true }, { isAlone: true }, { isGone: true, isAlone: true });

const partition = fc.record({
  number: fc.integer({ min: 1, max: 2 ** 40 }),
  nonce: fc.nat({ max: Number.MAX_SAFE_INTEGER }),
  more: fc.integer({ min: 0, max: 2 ** 40 }),
  holder: fc.record({ gatewayId: name, incarnation: count }),
  members,
  gaveUp: fc.tuple(members, count, marks)
    .map(([copies, epoch, marked]) => copies.map((copy) => ({ ...copy, epoch, ...marked }))),
  left: members,
  line: fc.array(fc.record({ term: fc.record({ number: count, nonce: fc.nat({ max: Number.MAX_SAFE_INTEGER }) }), epoch: count }), { maxLength: 8 }),
}).map(({ number, nonce, more, ...others }) => ({ epoch: number + more, term: { number, nonce }, ...others }));
const gateway = fc.record({
  incarnation: count,
  ordinal,
  host,
  addresses,
  group: fc.array(name, { maxLength: 5 }),
});
const store = fc.record({
  bootId: randomId,
  addresses: fc.array(address, { minLength: 1, maxLength: 16 }),
  host,
  weight: count,
  memoryFreeBytes: fc.nat(),
  draining: fc.boolean(),
  admin: fc.oneof(fc.constant(''), address),
});

const givenUp = fc.record({
  who: fc.string(),
  reason: fc.string(),
  wallMs: fc.nat(),
  copies: fc.array(fc.record({ partition: fc.constantFrom('gw-1/0', 'gw-1-2/4095'), epoch: count, nonce: fc.nat(), line: fc.array(fc.record({ term: fc.record({ number: fc.nat(), nonce: fc.nat() }), epoch: fc.nat() }), { maxLength: 16 }) }), { maxLength: 8 }),
});

const queueRule = fc.record({
  over: fc.oneof(
    fc.record({ verb: fc.constantFrom('suspend', 'refuse'), queue: fc.stringMatching(/^[ -~]{1,60}$/) }),
    fc.constantFrom(
      { verb: 'suspend', selector: { route: 'out', site: '*.host' } }, { verb: 'refuse', selector: { route: 'out' } },
      { verb: 'refuse', selector: { sender: '', client: '192.0.2.0/24' } }, { verb: 'hold', selector: { site: '*.host', larger_than_bytes: 5 } },
      { verb: 'delay', selector: { domain: 'a.example' }, not_before_ms: 7 }, { verb: 'delete', selector: { everything: true } },
    ),
  ),
  untilWallMs: fc.nat(),
  who: fc.string(),
  reason: fc.string(),
  wallMs: fc.nat(),
}).map(({ over, ...others }) => ({ ...over, ...others }));

const leftOrder = fc.record({
  verb: fc.constantFrom('hold', 'release', 'delete', 'bounce', 'expire'),
  selector: fc.constantFrom({ everything: true }, { client: '192.0.2.0/24', reply: '4.7' }, { domain: '*.example', older_than_seconds: 5 }),
  who: fc.string(),
  reason: fc.string(),
  wallMs: fc.nat(),
  untilWallMs: fc.integer({ min: 1, max: 8.64e15 }),
  partitions: fc.array(fc.constantFrom('gw-1/0', 'gw-1-2/4095'), { maxLength: 8 }),
});

const CODECS: readonly (readonly [
  what: string,
  values: fc.Arbitrary<object>,
  encode: (value: never) => string,
  decode: (text: string) => object,
])[] = [
  ['partition', partition, encodePartition, decodePartition],
  ['gateway', gateway, encodeGateway, decodeGateway],
  ['incarnation', fc.record({ incarnation: count, ordinal }), encodeIncarnation, decodeIncarnation],
  ['ordinal', fc.record({ next: ordinal }), encodeOrdinal, decodeOrdinal],
  ['store', store, encodeStore, decodeStore],
  ['given-up', givenUp, encodeGivenUp, decodeGivenUp],
  ['order that is left', leftOrder, encodeLeftOrder, decodeLeftOrder],
  ['rule of queues', queueRule, encodeQueueRule, decodeQueueRule],
  ['retired', fc.record({ who: fc.string(), reason: fc.string(), wallMs: fc.nat() }), encodeRetired, decodeRetired],
];

for (const [what, values, encode, decode] of CODECS) {
  test(`${what}: what is encoded is decoded the same; equal records are equal texts`, () => {
    fc.assert(fc.property(values, (value) => {
      const text = encode(value as never);
      assert.deepEqual(decode(text), JSON.parse(JSON.stringify(value)));
      assert.equal((JSON.parse(text) as { version: number; }).version, 1);
      assert.equal(encode({ ...Object.fromEntries(Object.entries(value).reverse()) } as never), text);
    }));
  });

  test(`${what}: a hostile text yields a rule, never an exception`, () => {
    const judge = (text: string): void => {
      const decoded = decode(text);
      if (decoded instanceof BrokenRule) assert.notEqual(decoded.rule, '');
      else encode(decoded as never);
    };
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.json(), fc.jsonValue().map((value) => JSON.stringify(value))),
        judge,
      ),
    );
    // Each field taken away, or replaced by anything.
    fc.assert(fc.property(values, fc.nat(), fc.jsonValue(), fc.boolean(), (value, index, other, isGone) => {
      const fields: Record<string, unknown> = { version: 1, ...value };
      const field = Object.keys(fields)[index % Object.keys(fields).length] ?? '';
      if (isGone) delete fields[field];
      else fields[field] = other;
      const decoded = decode(JSON.stringify(fields));
      if (isGone) assert.ok(decoded instanceof BrokenRule, `without ${field}`);
      judge(JSON.stringify(fields));
    }));
    for (
      const text of [
        '',
        'null',
        '[]',
        '{}',
        '{"version":0}',
        '{"version":"1"}',
        `{"version":1,"__proto__":{}}`,
        'x'.repeat(70_000),
      ]
    ) assert.ok(decode(text) instanceof BrokenRule, text);
    assert.deepEqual(decode('{"version":2}'), new BrokenRule('another version'));
  });
}

test("a partition's record keeps its own rules", () => {
  const sound = {
    epoch: 7,
    term: { number: 5, nonce: 9 },
    holder: { gatewayId: 'gw-1', incarnation: 1 },
    members: [{ storeId: 's', bootId: 'b'.repeat(32) }],
    gaveUp: [], left: [], line: [],
  };
  const rule = (changes: object): string => {
    const decoded = decodePartition(JSON.stringify({ version: 1, ...sound, ...changes }));
    return decoded instanceof BrokenRule ? decoded.rule : '';
  };
  assert.equal(rule({}), '');
  assert.equal(rule({ members: [] }), '', 'no members is a state (rule 7)');
  const nobody = { gatewayId: 'gw-1', incarnation: 0 };
  assert.equal(rule({ holder: nobody }), '', 'it has ended, and there may be a copy');
  assert.equal(rule({ unknown: true }), '', 'fields that are not known are passed over');
  assert.equal(rule({ term: { number: 8, nonce: 9 } }), 'term above epoch');
  assert.match(rule({ term: 5 }), /^term: /);
  assert.equal(rule({ members: [...sound.members, ...sound.members] }), 'members: one stands twice');
  const [given] = sound.members.map((member) => ({ ...member, epoch: 6 }));
  assert.equal(rule({ gaveUp: [given, given] }), 'gaveUp: one stands twice');
  assert.equal(rule({ holder: nobody, gaveUp: [given] }), 'copies that nobody gave up');
  assert.equal(rule({ left: [...sound.members, ...sound.members] }), 'left: one stands twice');
  assert.match(rule({ line: [{ epoch: 3 }] }), /^line\[0\]\.term: /);
  assert.match(rule({ gaveUp: sound.members }), /^gaveUp\[0\]\.epoch: /);
  assert.equal(rule({ gaveUp: [{ ...given, isGone: true }] }), '');
  assert.match(rule({ gaveUp: [{ ...given, isGone: false }] }), /^gaveUp\[0\]\.isGone: /);
  assert.equal(rule({ gaveUp: [{ ...given, isAlone: true }] }), '');
  assert.match(rule({ gaveUp: [{ ...given, isAlone: 1 }] }), /^gaveUp\[0\]\.isAlone: /);
  assert.equal(rule({ members: [{ storeId: 's', bootId: '' }] }), 'members[0].bootId: no name');
  assert.throws(() => encodePartition({ ...sound, term: { number: 8, nonce: 9 } }), InvariantError);
});

test('a rule of queues has a verb that is known, a pattern in printable ASCII, and texts that end', () => {
  const sound = { version: 1, verb: 'suspend', queue: 'a*', untilWallMs: 0, who: 'ann', reason: 'x', wallMs: 1 };
  const isRule = (changes: object): boolean => !(decodeQueueRule(JSON.stringify({ ...sound, ...changes })) instanceof BrokenRule);
  assert.ok(isRule({}));
  for (const changes of [
    { verb: 'hold' }, { queue: '' }, { queue: 'a\u001b[2J' }, { queue: 'x'.repeat(301) }, { untilWallMs: -1 }, { untilWallMs: 0.5 },
    { untilWallMs: 8.64e15 + 1 }, { wallMs: 8.64e15 + 1 },
    { reason: 'x'.repeat(501) }, { who: 'x'.repeat(501) },
    { verb: 'delay', queue: undefined, selector: { domain: 'x' }, not_before_ms: 253_402_300_800_000 },
  ]) assert.equal(isRule(changes), false, JSON.stringify(changes).slice(0, 60));
  for (const key of ['rules/queues/', 'rules/queues/a/b', 'rules/queues/-', 'rules/retired/gw-1']) assert.equal(queueRuleIdOf(key), undefined, key);
});

test('a time that is no date is none of ours', () => {
  const retired = (wallMs: number): unknown => decodeRetired(JSON.stringify({ version: 1, who: 'ann', reason: 'x', wallMs }));
  assert.deepEqual(retired(8.64e15), { who: 'ann', reason: 'x', wallMs: 8.64e15 });
  assert.ok(retired(9e15) instanceof BrokenRule);
});

test('an order that is left means what its selector says, or nothing at all', () => {
  const sound = { version: 1, verb: 'delete', selector: { client: '192.0.2.7' }, who: 'ann', reason: 'x', wallMs: 1, untilWallMs: 2, partitions: ['gw-1/0'] };
  const isOrder = (changes: object): boolean => !(decodeLeftOrder(JSON.stringify({ ...sound, ...changes })) instanceof BrokenRule);
  assert.ok(isOrder({}) && isOrder({ verb: 'delay', not_before_ms: 253_402_300_799_999 }));
  for (const changes of [
    { verb: 'flush' }, { selector: {} }, { selector: { client: '300.1.2.3' } }, { selector: { client: '192.0.2.7', unknown: 1 } },
    { selector: { everything: true, domain: 'x' } }, { selector: { ids: ['?'] } }, { partitions: ['gw-1'] }, { untilWallMs: 0 },
    { untilWallMs: 8.64e15 + 1 }, { wallMs: 8.64e15 + 1 },
    { partitions: Array.from({ length: 1025 }, () => 'gw-1/0') }, { reason: 'x'.repeat(501) },
    { verb: 'delay', not_before_ms: 253_402_300_800_000 },
  ]) assert.equal(isOrder(changes), false, JSON.stringify(changes).slice(0, 60));
  for (const key of ['rules/orders/', 'rules/orders/a/b', 'rules/queues/gw-1-1-1']) assert.equal(leftOrderIdOf(key), undefined, key);
});

test('keys are made and parsed the same, and nothing else is one of ours', () => {
  fc.assert(fc.property(name, fc.integer({ min: 0, max: 4_095 }), (id, number) => {
    assert.deepEqual(parseKey(partitionKey(id, number)), {
      kind: 'partition',
      gatewayId: id,
      partition: number,
    });
    assert.ok(partitionKey(id, number).startsWith(partitionsOf(id)));
    assert.deepEqual(parseKey(gatewayKey(id)), { kind: 'gateway', id });
    assert.deepEqual(parseKey(incarnationKey(id)), { kind: 'incarnation', id });
    assert.deepEqual(parseKey(storeKey(id)), { kind: 'store', id });
    const rule = `${id}-16777215-${String(number)}`;
    assert.equal(queueRuleIdOf(queueRuleKey(rule)), rule);
    for (const key of [queueRuleKey(rule), partitionKey(id, number), gatewayKey(id), incarnationKey(id), storeKey(id)]) {
      assert.equal(keyRule(key), '');
    }
  }));
  assert.deepEqual(parseKey('rules/hold/gw-1'), { kind: 'rule', rule: 'hold/gw-1' });
  assert.deepEqual(parseKey('ordinal'), { kind: 'ordinal' });
  for (
    const key of [
      '',
      'x',
      'partitions/',
      'partitions/gw',
      'partitions/gw/',
      'partitions/gw/01',
      'partitions/gw/4096',
      'partitions/gw/1/2',
      'partitions//1',
      'gateways/',
      'gateways/a/b',
      'stores/ä',
      'rules/',
      'ordinal/1',
      'other/x',
    ]
  ) assert.equal(parseKey(key), undefined, key);
  assert.throws(() => gatewayKey('a/b'), InvariantError);
  // A partition of gw-1 is none of gw-10.
  assert.ok(!partitionKey('gw-10', 1).startsWith(partitionsOf('gw-1')));
});
