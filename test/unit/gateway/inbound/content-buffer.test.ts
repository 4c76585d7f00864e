/** What ContentBuffer keeps of a read buffer that is used again, and what it counts for it. */

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ContentBuffer, LOST_NO_MEMORY, LOST_TOO_BIG } from '../../../../src/gateway/inbound/content/content-buffer.js';
import { MemoryReception } from '../../../dialog/memory-reception.js';

const HEADER = Buffer.from('Received: x\r\n');

/** Appends pieces of these lengths out of one buffer, which is overwritten after each. Returns what was appended. */
function fill(content: ContentBuffer, lengths: readonly number[]): Buffer {
  const source = Buffer.alloc(70_000);
  const pieces: Buffer[] = [];
  for (const [index, length] of lengths.entries()) {
    source.fill(index + 1);
    pieces.push(Buffer.from(source.subarray(100, 100 + length)));
    content.append(source, 100, 100 + length, index === lengths.length - 1);
  }
  return Buffer.concat(pieces);
}

describe('content buffer', () => {
  test('keeps nothing of the read buffer but the last piece', () => {
    for (const lengths of [[1000], [1], [64_000, 64_000, 5], [1, 2, 3, 2000, 3, 2000], [1023, 1024, 0, 7]]) {
      const reception = new MemoryReception();
      const content = new ContentBuffer(reception, 1_000_000);
      const whole = fill(content, lengths);
      assert.deepEqual(Buffer.concat(content.finish(HEADER)), Buffer.concat([HEADER, whole]), lengths.join());
      assert.ok(reception.reservedBytes >= whole.length);
      content.release();
      assert.equal(reception.reservedBytes, 0);
    }
  });

  test('gives pieces whose slice() is a copy, as the gateway needs it', () => {
    const content = new ContentBuffer(new MemoryReception(), 1_000_000);
    const source = Buffer.alloc(3000, 'a');
    content.append(source, 0, 1500, false);
    content.append(source, 1500, 3000, true);
    const copies = content.finish(HEADER).slice(1).map((piece) => piece.slice());
    source.fill('b');
    assert.equal(Buffer.concat(copies).toString('latin1'), 'a'.repeat(3000));
  });

  test('a message that is one read costs no memory but what is counted', () => {
    const reception = new MemoryReception();
    const content = new ContentBuffer(reception, 1_000_000);
    const source = Buffer.alloc(65_536, 'a');
    content.append(source, 0, 1000, true);
    assert.equal(reception.reservedBytes, 1000);
    assert.equal(content.finish(HEADER)[1]?.buffer, source.buffer);
  });

  test('is lost when it is too big or not admitted, the last piece like any other', () => {
    const reception = new MemoryReception();
    reception.bytesMax = 10_000;
    const big = new ContentBuffer(reception, 4000);
    fill(big, [3000, 1001]);
    const unadmitted = new ContentBuffer(reception, 100_000);
    fill(unadmitted, [6000, 5000]);
    assert.deepEqual([big.fate, unadmitted.fate, big.bytes, unadmitted.bytes, reception.reservedBytes], [LOST_TOO_BIG, LOST_NO_MEMORY, 4001, 11_000, 0]);
  });
});
