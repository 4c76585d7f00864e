import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MessagePacker } from '../../../../src/platform/node/packer.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';

const packer = new MessagePacker();
const hex = (value: unknown): string => Buffer.from(packer.pack(value)).toString('hex');

describe('packer', () => {
  test('writes whole numbers below 2^32 as integers and from there as float64', () => {
    assert.equal(hex([0xffff_ffff]), '91ceffffffff');
    assert.equal(hex([2 ** 32]), '91cb41f0000000000000');
    assert.equal(hex([Number.MAX_SAFE_INTEGER]), '91cb433fffffffffffff');
  });

  test('gives numbers back as numbers, never as BigInt', () => {
    for (const value of [0, 127, 128, 0x8000_0000, 0xffff_ffff, 2 ** 32, 2 ** 40 + 1, Number.MAX_SAFE_INTEGER]) {
      assert.deepEqual(packer.unpack(packer.pack([value])), [value]);
    }
    assert.deepEqual(packer.unpack(Buffer.from('91cf0000000100000000', 'hex')), [2 ** 32]);
  });

  test('uses the shortest form of a string, also where characters take several bytes', () => {
    assert.equal(hex(['é'.repeat(15)]).slice(0, 4), '91be');
    assert.equal(hex(['é'.repeat(16)]).slice(0, 6), '91d920');
    assert.equal(hex(['é'.repeat(127)]).slice(0, 6), '91d9fe');
    assert.equal(hex(['é'.repeat(128)]).slice(0, 8), '91da0100');
  });

  test('gives byte strings back as views of what was unpacked', () => {
    const bytes = Buffer.from(packer.pack([Uint8Array.of(1, 2, 3)]));
    const [view] = packer.unpack(bytes) as [Uint8Array];
    assert.ok(view instanceof Uint8Array);
    assert.equal(view.buffer, bytes.buffer);
    assert.deepEqual([...view], [1, 2, 3]);
  });

  test('packs any Uint8Array as a plain byte string', () => {
    assert.equal(hex([Uint8Array.of(1, 2), Buffer.from([3])]), '92c4020102c40103');
  });

  test('never builds an object whose keys a peer chose', () => {
    const value = packer.unpack(Buffer.from('81a95f5f70726f746f5f5f81a178' + '01', 'hex'));
    assert.ok(value instanceof Map);
    assert.equal(({} as Record<string, unknown>)['x'], undefined);
  });

  test('keeps earlier results when it packs more, and does not keep the buffer of a large one', () => {
    const first = packer.pack([1, 2, 3]);
    const large = packer.pack([new Uint8Array(1 << 20).fill(7)]);
    const after = packer.pack([4]);
    for (let i = 0; i < 5000; i++) packer.pack([i, 'filler filler']);
    assert.deepEqual([...first], [0x93, 1, 2, 3]);
    assert.deepEqual([...after], [0x91, 4]);
    assert.equal(large.at(-1), 7);
    assert.ok(after.buffer.byteLength <= 65_536);
  });
});

test('crc32 is that of IEEE 802.3 and goes on from a seed', () => {
  const bytes = Buffer.from('123456789');
  assert.equal(crc32(bytes, 0), 0xcbf43926);
  assert.equal(crc32(bytes.subarray(4), crc32(bytes.subarray(0, 4), 0)), 0xcbf43926);
});
