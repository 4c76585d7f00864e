import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { FixedReplies } from '../../../../bench/peers/fixed-replies.js';

const REPLY = Buffer.from('STORED\r\nDELETED\r\n');

function replies(text: string, pieces: readonly number[]): { readonly good: boolean; readonly transactions: number } {
  const reader = new FixedReplies(REPLY);
  const bytes = Buffer.from(text, 'latin1');
  let good = true;
  let from = 0;
  for (const piece of [...pieces, bytes.length]) {
    good = reader.push(bytes.subarray(from, from + piece)) && good;
    from += piece;
  }
  return { good, transactions: reader.transactions };
}

describe('replies that are known beforehand', () => {
  test('are counted however they are cut', () => {
    const text = REPLY.toString('latin1').repeat(5);
    for (let cut = 0; cut <= text.length; cut++) assert.deepEqual(replies(text, [cut]), { good: true, transactions: 5 });
    assert.deepEqual(replies(text, new Array<number>(text.length).fill(1)), { good: true, transactions: 5 });
  });

  test('count whole transactions only', () => {
    assert.deepEqual(replies('STORED\r\nDELETED\r', []), { good: true, transactions: 0 });
  });

  test('that are others are noticed, at the beginning, at the end, and by their length', () => {
    assert.equal(replies('ERROR\r\n', []).good, false);
    assert.equal(replies('STORED\r\nNOT_FOUND\r\n', []).good, false);
    assert.equal(replies('EXISTS\r\nDELETED\r\n', []).good, false);
    const many = REPLY.toString('latin1').repeat(100);
    assert.equal(replies(`${many}STORED\r\nDELETEX`, []).good, false);
    assert.equal(replies(`${many}SERVER_ERROR out of memory\r\n${many}`, []).good, false);
  });

  test('of many bytes are compared from wherever a chunk begins', () => {
    const reply = Buffer.from(Array.from({ length: 1000 }, (_none, index) => index % 251));
    for (const from of [0, 1, 499, 999]) {
      const reader = new FixedReplies(reply);
      const bytes = Buffer.concat([reply, reply, reply]);
      assert.ok(reader.push(bytes.subarray(0, from)) && reader.push(bytes.subarray(from)));
      assert.equal(reader.transactions, 3);
      const other = Buffer.from(bytes.subarray(from));
      other.writeUInt8(255, 990 - Math.min(from, 900));
      const strict = new FixedReplies(reply);
      strict.push(bytes.subarray(0, from));
      assert.equal(strict.push(other), false);
    }
  });

  test('of no bytes cannot be counted', () => {
    assert.throws(() => new FixedReplies(Buffer.alloc(0)), /without a reply/);
  });
});
