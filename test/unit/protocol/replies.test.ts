/** FENCED, DECLINED, ASKED, TOLD, BLOCK, TAILED and FETCHED as a whole: control part, rows, and the payload that the rows describe. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MessagePacker } from '../../../src/platform/node/packer.js';
import { isInvalid } from '../../../src/protocol/invalid.js';
import { BLOCK, FETCHED, TAILED } from '../../../src/protocol/message-types.js';
import type { Block } from '../../../src/protocol/messages/block.js';
import { encodeBlock } from '../../../src/protocol/messages/block.js';
import type { Fetched } from '../../../src/protocol/messages/fetched.js';
import { encodeFetched } from '../../../src/protocol/messages/fetched.js';
import type { Tailed } from '../../../src/protocol/messages/tailed.js';
import { encodeTailed } from '../../../src/protocol/messages/tailed.js';
import type { ReplyType } from '../../../src/protocol/replies.js';
import { decodeReply } from '../../../src/protocol/replies.js';
import { changeRows, entryRows, sampleOf } from './samples.js';

const packer = new MessagePacker();
const NO_BYTES = new Uint8Array(0);
const NAMES = ['fenced', 'declined', 'asked', 'told', 'block', 'tailed', 'fetched'] as const;

function ruleOf(type: ReplyType, control: Uint8Array, bodies: Uint8Array): string {
  const reply = decodeReply(packer, type, 3, control, bodies);
  return isInvalid(reply) ? reply.rule : '';
}

describe('a reply', () => {
  for (const name of NAMES) {
    const { type, value, bodies, encode } = sampleOf(name);
    const control = Uint8Array.from(encode(packer, value));

    test(`${name}: is the message, with the sequence of its request`, () => {
      const reply = decodeReply(packer, type as ReplyType, 3, control, bodies);
      assert.ok(!isInvalid(reply));
      assert.deepEqual([reply.type, reply.sequence], [type, 3]);
      assert.ok(Buffer.from(encode(packer, reply.message)).equals(control));
    });

    test(`${name}: cut short or with any byte changed it is a message or a named rule, never an exception`, () => {
      for (let end = 0; end < control.length; end++) assert.notEqual(ruleOf(type as ReplyType, control.subarray(0, end), bodies), '', `${String(end)} bytes`);
      for (let at = 0; at < control.length; at++) {
        for (const bit of [1, 0x80, 0xff]) {
          const changed = Uint8Array.from(control);
          changed[at] = (changed[at] ?? 0) ^ bit;
          decodeReply(packer, type as ReplyType, 3, changed, bodies);
        }
      }
    });

    test(`${name}: has the payload that its rows describe, to the byte`, () => {
      assert.equal(ruleOf(type as ReplyType, control, bodies), '');
      assert.equal(ruleOf(type as ReplyType, control, Uint8Array.from([...bodies, 0])), 'bodies');
      if (bodies.length > 0) assert.equal(ruleOf(type as ReplyType, control, bodies.subarray(1)), 'bodies');
    });
  }
});

describe('a block', () => {
  const row = (position: number, flags = 0): Uint8Array => entryRows([flags, 1, 1, 0, 0, 0, 1, position]);
  const ruleOfBlock = (block: Partial<Block>, bodyBytes: number): string => {
    const whole = { handle: 5, afterPosition: 4, nextPosition: 4, end: false, rows: NO_BYTES, texts: NO_BYTES, ...block };
    return ruleOf(BLOCK, encodeBlock(packer, whole), new Uint8Array(bodyBytes));
  };

  test('has rows by ascending position, behind the one it was asked from, and ends at its last', () => {
    const rows = Uint8Array.from([...row(5), ...row(7)]);
    assert.equal(ruleOfBlock({ rows, nextPosition: 7 }, 4), '');
    assert.equal(ruleOfBlock({ rows, nextPosition: 8 }, 4), 'nextPosition');
    assert.equal(ruleOfBlock({ rows, nextPosition: 7, afterPosition: 5 }, 4), 'row order');
    assert.equal(ruleOfBlock({ rows: Uint8Array.from([...row(7), ...row(5)]), nextPosition: 5 }, 4), 'row order');
    assert.equal(ruleOfBlock({ rows: row(5, 0x40), nextPosition: 5 }, 2), 'row flags');
  });

  test('without rows says that nothing is left, or it would be asked for over and over', () => {
    assert.equal(ruleOfBlock({ end: true }, 0), '');
    assert.equal(ruleOfBlock({}, 0), 'no row and no end');
    assert.equal(ruleOfBlock({ end: true, nextPosition: 9 }, 0), 'nextPosition');
  });
});

describe('what was fetched', () => {
  const row = (position: number, flags = 0): Uint8Array => entryRows([flags, 1, 1, 0, 0, 0, 1, position]);
  const ruleOfFetched = (fetched: Partial<Fetched>, bodyBytes: number): string => {
    const whole = { handle: 5, ask: 6, untilPosition: 9, rows: NO_BYTES, ...fetched };
    return ruleOf(FETCHED, encodeFetched(packer, whole), new Uint8Array(bodyBytes));
  };

  test('has whole rows by ascending position, none behind the last that it answers for', () => {
    const rows = Uint8Array.from([...row(5), ...row(7)]);
    assert.equal(ruleOfFetched({ rows }, 4), '');
    assert.equal(ruleOfFetched({ rows, untilPosition: 7 }, 4), '');
    assert.equal(ruleOfFetched({ rows, untilPosition: 6 }, 4), 'untilPosition');
    assert.equal(ruleOfFetched({ rows: Uint8Array.from([...row(7), ...row(5)]) }, 4), 'row order');
    assert.equal(ruleOfFetched({ rows: row(5, 1) }, 1), 'row without its body');
    assert.equal(ruleOfFetched({ rows: row(5, 0x40) }, 2), 'row flags');
    assert.equal(ruleOfFetched({}, 0), '', 'nothing that was asked for is there');
  });
});

describe('a tail', () => {
  const ruleOfTail = (tailed: Partial<Tailed>, bodyBytes: number): string => {
    const whole = { handle: 5, found: true, firstNumber: 4, digestA: 0, digestB: 0, rows: NO_BYTES, ...tailed };
    return ruleOf(TAILED, encodeTailed(packer, whole), new Uint8Array(bodyBytes));
  };

  test('has rows that are changes', () => {
    assert.equal(ruleOfTail({ rows: changeRows([2, 0, 0, 1, 0, 7]) }, 0), '');
    assert.equal(ruleOfTail({ rows: changeRows([9, 0, 0, 1, 0, 7]) }, 0), 'row kind');
    assert.equal(ruleOfTail({ rows: changeRows([3, 0, 0, 3, 0, 7]) }, 3), '');
    assert.equal(ruleOfTail({ rows: changeRows([3, 0, 0, 3, 0, 7]) }, 2), 'bodies');
  });

  test('that was not found means nothing but that', () => {
    assert.equal(ruleOfTail({ found: false, rows: changeRows([9, 0, 0, 1, 0, 7]) }, 0), '');
    assert.equal(ruleOfTail({ found: false }, 1), 'bodies');
  });
});
