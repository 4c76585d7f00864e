/** Single rules of single messages, each broken alone in an otherwise right control part. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MessagePacker } from '../../../src/platform/node/packer.js';
import { isInvalid } from '../../../src/protocol/invalid.js';
import { messageTypeName } from '../../../src/protocol/message-types.js';
import { ACK_QUEUES_MAX } from '../../../src/protocol/messages/ack.js';
import { SECTIONS_MAX } from '../../../src/protocol/messages/changes.js';
import { encodeClose } from '../../../src/protocol/messages/close.js';
import { LISTED_ROWS_MAX } from '../../../src/protocol/messages/listed.js';
import { PULL_BODIES_MAX, packPositions } from '../../../src/protocol/messages/pull-bodies.js';
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
        for (const wrong of [null, -1, 0.5, [null]]) assert.notEqual(ruleOf(sample, right.with(i, wrong)), '', `element ${i}: ${String(wrong)}`);
      }
      // A page of LISTED may have any number of rows, and RELEASE of version 1 has one less.
      if (sample.name !== 'listed' && sample.name !== 'release') assert.notEqual(ruleOf(sample, right.slice(0, -1)), '', 'one less');
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
    ['ack', [1, 2, ...filled(ACK_QUEUES_MAX, [5, 1])], ''],
    ['ack', [1, 2, ...filled(ACK_QUEUES_MAX + 1, [5, 1])], 'queue count'],
    ['refusal', [1, 0, 1, 1, 1, 1, ''], ''],
    ['refusal', [1, 0, 1, 1, 1, 1, 'x'.repeat(1025)], 'text'],
    ['close', [0, '', 0], 'reason'],
    ['close', [99, '', 0], ''],
    ['welcome', [1, 1, 1, 1, 65_535, 1, true], 'frameBytesMax'],
    ['welcome', [1, 1, 1, 1, 67_108_865, 1, true], 'frameBytesMax'],
    ['welcome', [1, 1, 1, 1, 65_536, 0, true], 'windowBytes'],
    ['pull', [5, 0, 9, 0, 0, true], 'entriesMax'],
    ['pull-bodies', [5, packPositions([1, 0])], 'position'],
    ['pull-bodies', [5, packPositions([1.5])], 'position'],
    ['pull-bodies', [5, new Uint8Array(9)], 'positions'],
    ['pull-bodies', [5, packPositions(new Array<number>(PULL_BODIES_MAX + 1).fill(1))], 'position count'],
    ['claimed', [5, 6, 1, 1, [], 1, 1, 1, 1, 1, 1, 0, true, 0], 'result'],
    ['claimed', [5, 0, 1, 1, [], 1, 1, 1, 1, 1, 4, 0, true, 0], 'role'],
  ] as const) {
    test(`${name}: ${rule === '' ? 'takes' : `"${rule}" refuses`} ${String(elements.slice(0, 7).map((e) => (e instanceof Uint8Array ? `${e.length} bytes` : e))).slice(0, 60)}`, () => {
      assert.equal(ruleOf(sampleOf(name), elements), rule);
    });
  }

  test('LISTED holds 1,024 queues and no more', () => {
    const listed = sampleOf('listed');
    const row = elementsOf(listed)[2];
    assert.equal(ruleOf(listed, [0, true, ...new Array<unknown>(LISTED_ROWS_MAX).fill(row)]), '');
    assert.equal(ruleOf(listed, [0, true, ...new Array<unknown>(LISTED_ROWS_MAX + 1).fill(row)]), 'row count');
  });

  test('HELLO: a range of versions that is empty, a flag that version 1 does not know', () => {
    const hello = sampleOf('hello');
    assert.equal(ruleOf(hello, elementsOf(hello).with(0, 2)), 'versionMax');
    assert.equal(ruleOf(hello, elementsOf(hello).with(8, 2)), 'flags');
  });

  test('OPEN: names that could not be shown, members twice, too many claimants', () => {
    const open = sampleOf('open');
    const right = elementsOf(open);
    assert.equal(ruleOf(open, right.with(3, 'a\nb')), 'name');
    assert.equal(ruleOf(open, right.with(3, '__proto__')), '', 'a name like any other');
    assert.equal(ruleOf(open, right.with(8, '')), 'ownerId');
    assert.equal(ruleOf(open, right.with(11, ['a', 'a'])), 'members');
    assert.equal(ruleOf(open, right.with(9, Array.from({ length: 257 }, (_, i) => `g${i}`))), 'claimants');
  });

  test('a text of ours is always one that the other side takes', () => {
    const close = sampleOf('close');
    const decoded = close.decode(packer, encodeClose(packer, { reason: 1, text: `\ud800${'x'.repeat(9000)}`, detail: 0 }));
    assert.ok(!isInvalid(decoded));
  });
});
