import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { MessagePacker } from '../../../src/platform/node/packer.js';
import { checkControl } from '../../../src/protocol/bounds.js';
import { packWholes, readFlatArray } from '../../../src/protocol/flat-array.js';
import { InvalidMessage } from '../../../src/protocol/invalid.js';

const packer = new MessagePacker();
const bytes = (hex: string): Uint8Array => Buffer.from(hex.replaceAll(' ', ''), 'hex');

function double(value: number): string {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return Buffer.from(view.buffer).toString('hex');
}

describe('flat array', () => {
  test('reads what the packer writes', () => {
    const edges = [0, 127, 128, 255, 256, 65_535, 65_536, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 52 + 1, Number.MAX_SAFE_INTEGER];
    const number = fc.oneof(fc.constantFrom(...edges), fc.maxSafeNat());
    const binary = fc.oneof(fc.uint8Array({ maxLength: 20 }), fc.constantFrom(255, 256, 65_535, 65_536).map((n) => new Uint8Array(n).fill(9)));
    fc.assert(fc.property(fc.array(fc.oneof({ weight: 9, arbitrary: number }, { weight: 1, arbitrary: binary }), { maxLength: 40 }), (values) => {
      const read = readFlatArray(packer.pack(values));
      assert.ok(!(read instanceof InvalidMessage));
      assert.deepEqual(read.map((v) => (typeof v === 'number' ? v : [...v])), values.map((v) => (typeof v === 'number' ? v : [...v])));
    }), { numRuns: 500, seed: 3 });
  });

  test('packs whole numbers as the packer does', () => {
    const edges = [0, 127, 128, 255, 256, 65_535, 65_536, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 52 + 1, Number.MAX_SAFE_INTEGER];
    const number = fc.oneof(fc.constantFrom(...edges), fc.maxSafeNat());
    fc.assert(fc.property(fc.array(number, { maxLength: 40 }), (values) => {
      assert.deepEqual([...packWholes(values)], [...packer.pack(values)]);
    }), { numRuns: 500, seed: 3 });
    for (const count of [15, 16, 65_535, 65_536]) {
      const values = new Array<number>(count).fill(300);
      assert.deepEqual(Buffer.from(packWholes(values)), Buffer.from(packer.pack(values)));
    }
  });

  test('reads a float64 that an integer would have held, as other encoders may write it', () => {
    for (const value of [0, 1, 2, 3, 255, 2 ** 31 + 1]) assert.deepEqual(readFlatArray(bytes(`91 cb ${double(value)}`)), [value]);
  });

  for (const value of [-1, -0, 0.5, 1.5, 2 ** 53, 2 ** 60, 2 ** 32 + 0.5, 5e-324, Infinity, -Infinity, NaN]) {
    test(`refuses ${Object.is(value, -0) ? '-0' : value} as a number`, () => {
      const read = readFlatArray(bytes(`91 cb ${double(value)}`));
      assert.ok(read instanceof InvalidMessage);
      assert.equal(read.rule, 'control has a number that is not whole');
    });
  }

  for (const [what, hex, rule] of [
    ['nothing', '', 'control empty'],
    ['a map', '80', 'control not an array'],
    ['an array in it', '91 90', 'control has a forbidden type'],
    ['a map in it', '91 80', 'control has a forbidden type'],
    ['a string', '91 a161', 'control has a forbidden type'],
    ['nil', '91 c0', 'control has a forbidden type'],
    ['an extension', '91 d4 72 40', 'control has a forbidden type'],
    ['a 64-bit integer', '91 cf 0000000000000001', 'control has a forbidden type'],
    ['a negative integer', '91 ff', 'control has a forbidden type'],
    ['a header cut short', 'dd 0000', 'control cut short'],
    ['a number cut short', '91 ce 000000', 'control cut short'],
    ['a binary past the end', '91 c6 ffffffff 00', 'control cut short'],
    ['fewer elements than claimed', '92 01', 'control cut short'],
    ['four billion elements', 'dd ffffffff', 'control has too many elements'],
    ['bytes behind it', '91 01 01', 'control has bytes behind its array'],
  ] as const) {
    test(`refuses ${what}`, () => {
      const read = readFlatArray(bytes(hex));
      assert.ok(read instanceof InvalidMessage);
      assert.equal(read.rule, rule);
    });
  }

  test('takes nothing that the general bounds refuse', () => {
    const token = fc.constantFrom('90', '91', '93', '95', 'dc0003', 'dd00000002', '07', 'cc80', 'cd0102', 'ce80000000', 'cb41f0000000000000', 'c40100', 'c5000101', 'c600000000', 'a161', 'c0', '80', 'c1', 'cf');
    let taken = 0;
    fc.assert(fc.property(fc.array(token, { maxLength: 6 }), (tokens) => {
      const control = bytes(tokens.join(''));
      if (readFlatArray(control) instanceof InvalidMessage) return;
      taken++;
      assert.equal(checkControl(control), '');
    }), { numRuns: 20_000, seed: 4 });
    assert.ok(taken > 100, `only ${taken} inputs taken`);
  });
});
