/** Single rules of single messages, each broken alone in an otherwise right control part. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MessagePacker } from '../../../src/platform/node/packer.js';
import { isInvalid } from '../../../src/protocol/invalid.js';
import { messageTypeName } from '../../../src/protocol/message-types.js';
import { ACK_COPIES_MAX } from '../../../src/protocol/messages/ack.js';
import { FETCH_POSITIONS_MAX, packPositions } from '../../../src/protocol/messages/fetch.js';
import { SECTIONS_MAX } from '../../../src/protocol/messages/changes.js';
import { encodeClose } from '../../../src/protocol/messages/close.js';
import { NOTICES_MAX } from '../../../src/protocol/messages/beat.js';
import { GAVE_UP_MAX, LINE_MAX, MEMBERS_MAX } from '../../../src/protocol/fields.js';
import { SAMPLES, changeRows, sampleOf, type Sample } from './samples.js';

const packer = new MessagePacker();
const ROW = changeRows([1, 0, 0, 0, 0, 1]);

function ruleOf(sample: Sample, elements: readonly unknown[]): string {
  const decoded = sample.decode(packer, packer.pack(elements));
  return isInvalid(decoded) ? decoded.rule : '';
}

function elementsOf(sample: Sample): unknown[] {
  return [...(packer.unpack(sample.encode(packer, sample.value)) as unknown[])];
}

describe('every element of every message', () => {
  for (const sample of SAMPLES) {
    test(`${messageTypeName(sample.type)}: refuses nil, fractions and negative numbers anywhere, and other counts`, () => {
      const right = elementsOf(sample);
      assert.equal(ruleOf(sample, right), '');
      for (let i = 0; i < right.length; i++) {
        for (const wrong of [null, -1, 0.5, [null], [[null]]]) assert.notEqual(ruleOf(sample, right.with(i, wrong)), '', `element ${i}: ${String(wrong)}`);
      }
      assert.notEqual(ruleOf(sample, right.slice(0, -1)), '', 'one less');
      assert.notEqual(ruleOf(sample, [...right, 0]), '', 'one more');
      assert.notEqual(ruleOf(sample, []), '', 'none');
    });
  }
});

const filled = (count: number, of: readonly unknown[]): unknown[] => Array.from({ length: count }, () => of).flat();

describe('limits of messages', () => {
  for (const [name, elements, rule] of [
    ['changes', [5, 1, 0, 0, new Uint8Array(0)], 'rows'],
    ['changes', [5, 1, 0, 0, new Uint8Array(25)], 'rows'],
    ['changes', [5, 0, 0, 0, ROW], 'firstNumber'],
    ['changes', [0, 1, 0, 0, ROW], 'handle'],
    ['changes', [2 ** 31, 1, 0, 0, ROW], 'handle'],
    ['changes', [5, 1, 2 ** 32, 0, ROW], 'digestA'],
    ['changes', [5, 1, 0, 2 ** 32, ROW], 'digestB'],
    ['changes', [ROW, 1, 0, 0, ROW], 'handle'],
    ['changes', [5, 1, 0, 0, 7], 'rows'],
    ['changes', filled(SECTIONS_MAX, [5, 1, 0, 0, ROW]), ''],
    ['changes', filled(SECTIONS_MAX + 1, [5, 1, 0, 0, ROW]), 'section count'],
    ['ack', [1, 2, 5, 2 ** 53 - 1], ''],
    ['ack', [1, 2, 0, 1], 'handle'],
    ['ack', [1, 2, 5], 'element count'],
    ['ack', [1, 2, ...filled(ACK_COPIES_MAX, [5, 1])], ''],
    ['ack', [1, 2, ...filled(ACK_COPIES_MAX + 1, [5, 1])], 'copy count'],
    ['refusal', [1, 0, 1, 1, 1, 1, ''], ''],
    ['refusal', [1, 0, 1, 1, 1, 1, 'x'.repeat(1025)], 'text'],
    ['close', [0, '', 0], 'reason'],
    ['close', [99, '', 0], ''],
    ['welcome', [1, 1, 1, 65_535, 1, true], 'frameBytesMax'],
    ['welcome', [1, 1, 1, 67_108_865, 1, true], 'frameBytesMax'],
    ['welcome', [1, 1, 1, 65_536, 0, true], 'windowBytes'],
    ['pull', [5, 0, 9, 0, 0, true], 'entriesMax'],
    ['pull', [5, 0, 9, 1, 0, 1], 'withBodies'],
    ['fetch', [5, 6, packPositions([1, 2])], ''],
    ['fetch', [5, 6, packPositions([])], 'positions'],
    ['fetch', [5, 6, packPositions([2, 2])], 'positions'],
    ['fetch', [5, 6, packPositions([0])], 'positions'],
    ['fetch', [5, 6, packPositions([1.5])], 'positions'],
    ['fetch', [5, 6, packPositions(filled(FETCH_POSITIONS_MAX, [0]).map((_, i) => i + 1))], ''],
    ['fetch', [5, 6, packPositions(filled(FETCH_POSITIONS_MAX + 1, [0]).map((_, i) => i + 1))], 'positions'],
    ['fence', [5, 'gw-1/3', [7, 1], 1, 0, 0, 0, 0], ''],
    ['fence', [5, 'gw-1/3', [0, 0], 1, 0, 0, 0, 0], 'term'],
    ['fence', [5, 'gw-1/3', [7], 1, 0, 0, 0, 0], 'term'],
    ['fence', [5, 'gw-1/3', [7, 1], 0, 0, 0, 0, 0], 'how'],
    ['fence', [5, 'gw-1/3', [7, 1], 4, 0, 0, 0, 0], 'how'],
    ['fence', [5, 'gw-1', [7, 1], 1, 0, 0, 0, 0], 'partition'],
    ['fence', [5, 'gw-1/03', [7, 1], 1, 0, 0, 0, 0], 'partition'],
    ['fence', [5, 'gw-1/4096', [7, 1], 1, 0, 0, 0, 0], 'partition'],
    ['fence', [0, 'gw-1/3', [7, 1], 1, 0, 0, 0, 0], 'handle'],
    ['declined', [5, 6, [7, 1], [8, 1], []], 'reason'],
    ['declined', [5, 1, [7, 1], [0, 0], []], ''],
    ['asked', ['gw-1/3', true, 0, -1, []], 'termNumber'],
    ['asked', ['gw-1/3', true, 0, 7, [[]]], 'told'],
    ['asked', ['gw-1/3', true, 0, 7, [1, [1, 1], ['gw-1', 1], []]], 'told'],
    ['tell', ['gw-1/3', [], false], 'record'],
    ['beat', [1, 1, 1, 0, [[1, 'gw-1/3', [1, 1]]]], ''],
    ['beat', [1, 1, 1, 0, [[1, 'gw-1/3', 1]]], 'fences'],
    ['beat', [1, 1, 1, 0, [[1, 'gw-1/3']]], 'fences'],
  ] as const) {
    test(`${name}: ${rule === '' ? 'takes' : `"${rule}" refuses`} ${String(elements.slice(0, 7).map((e) => (e instanceof Uint8Array ? `${e.length} bytes` : e))).slice(0, 60)}`, () => {
      assert.equal(ruleOf(sampleOf(name), elements), rule);
    });
  }

  test('BEAT names so many fences and no more', () => {
    const beat = sampleOf('beat');
    const notice = [1, 'gw-1/3', [1, 1]];
    assert.equal(ruleOf(beat, [1, 1, 1, 0, new Array<unknown>(NOTICES_MAX).fill(notice)]), '');
    assert.equal(ruleOf(beat, [1, 1, 1, 0, new Array<unknown>(NOTICES_MAX + 1).fill(notice)]), 'fences');
  });

  test('a record has each member once, up to a bound, and no term above its epoch', () => {
    const tell = sampleOf('tell');
    const told = (epoch: number, members: readonly unknown[], gaveUp: readonly unknown[] = [], left: readonly unknown[] = [], line: readonly unknown[] = []): string =>
      ruleOf(tell, ['gw-1/3', [epoch, [3, 1], ['gw-1', 1], members, gaveUp, left, line], false]);
    const many = (count: number): unknown[] => Array.from({ length: count }, (_, i) => [`store-${i}`, 'b']);
    const given = (count: number): unknown[] => Array.from({ length: count }, (_, i) => [`store-${i}`, 'b', 2]);
    assert.equal(told(3, [], many(1)), 'record', 'a copy that was given up says when it counted last');
    assert.equal(told(3, []), '', 'a record without members is one');
    assert.equal(told(2, []), 'record');
    assert.equal(told(3, [['store-a', 'b'], ['store-a', 'c']]), '', 'one store in two boots');
    assert.equal(told(3, [['store-a', 'b'], ['store-a', 'b']]), 'record');
    assert.equal(told(3, [['store-a', '']]), 'record');
    assert.equal(told(3, [['store-a']]), 'record');
    assert.equal(told(3, many(MEMBERS_MAX)), '');
    assert.equal(told(3, many(MEMBERS_MAX + 1)), 'record');
    assert.equal(told(3, [], [['store-a', 'b', 2, 1]]), '', 'or that it is gone, too');
    for (const flags of [2, 3]) assert.equal(told(3, [], [['store-a', 'b', 2, flags]]), '', 'or that it stands alone');
    for (const more of [[0], [4], [true], [1, 1]]) assert.equal(told(3, [], [['store-a', 'b', 2, ...more]]), 'record', String(more));
    assert.equal(told(3, [], given(GAVE_UP_MAX)), '');
    assert.equal(told(3, [], given(GAVE_UP_MAX + 1)), 'record');
    assert.equal(told(3, [], [], many(MEMBERS_MAX)), '');
    assert.equal(told(3, [], [], many(MEMBERS_MAX + 1)), 'record');
    const past = (count: number): unknown[] => Array.from({ length: count }, () => [1, 1, 2]);
    assert.equal(told(3, [], [], [], past(LINE_MAX)), '');
    assert.equal(told(3, [], [], [], past(LINE_MAX + 1)), 'record');
    assert.equal(told(3, [], [], [], [[1, 1]]), 'record');
  });

  test('HELLO: a range of versions that is empty, a flag that nobody knows', () => {
    const hello = sampleOf('hello');
    assert.equal(ruleOf(hello, elementsOf(hello).with(0, 4)), 'versionMax');
    assert.equal(ruleOf(hello, elementsOf(hello).with(8, 2)), 'flags');
  });

  test('ASK: names that could not be shown', () => {
    const ask = sampleOf('ask');
    const right = elementsOf(ask);
    assert.equal(ruleOf(ask, right.with(1, 'a\nb')), 'gatewayId');
    assert.equal(ruleOf(ask, right.with(1, '__proto__')), '', 'a name like any other');
    assert.equal(ruleOf(ask, right.with(1, '')), 'gatewayId');
    assert.equal(ruleOf(ask, right.with(0, 'gw\u202e/1')), 'partition');
  });

  test('a text of ours is always one that the other side takes', () => {
    const close = sampleOf('close');
    const decoded = close.decode(packer, encodeClose(packer, { reason: 1, text: `\ud800${'x'.repeat(9000)}`, detail: 0 }));
    assert.ok(!isInvalid(decoded));
  });
});
