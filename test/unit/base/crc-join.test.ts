import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { joinCrc } from '../../../src/base/crc-join.js';
import { crc32 } from '../../../src/platform/node/checksum.js';

describe('joined checksums', () => {
  test('are the checksum of the whole, wherever it is cut', () => {
    fc.assert(fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 12 }), (pieces) => {
      let joined = 0;
      for (const piece of pieces) joined = joinCrc(joined, crc32(piece, 0), piece.length);
      assert.equal(joined >>> 0, crc32(Buffer.concat(pieces), 0));
    }), { numRuns: 300, seed: 5 });
  });

  test('are right for lengths of one, two, three and four bytes', () => {
    const first = Uint8Array.of(1, 2, 3);
    for (const bytes of [1, 255, 256, 257, 4095, 4096, 4352, 65_535, 65_536, 70_001, 2 ** 24, 2 ** 24 + 3, 4352]) {
      const second = new Uint8Array(bytes).fill(bytes);
      assert.equal(joinCrc(crc32(first, 0), crc32(second, 0), bytes) >>> 0, crc32(second, crc32(first, 0)), String(bytes));
    }
  });
});
