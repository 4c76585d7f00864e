import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { MessagePacker } from '../../../src/platform/node/packer.js';
import { ELEMENTS_MAX, NESTING_MAX, checkControl } from '../../../src/protocol/bounds.js';

const packer = new MessagePacker();
const bytes = (hex: string): Uint8Array => Buffer.from(hex.replaceAll(' ', ''), 'hex');

describe('bounds of a control part', () => {
  for (const [what, hex, rule] of [
    ['nothing', '', 'control empty'],
    ['a number', '01', 'control not an array'],
    ['a map at the top', '81 a1 61 01', 'control not an array'],
    ['a map inside', '91 81 a9 5f5f70726f746f5f5f 01', 'control has a forbidden type'],
    ['a map of 16-bit size', '91 de 0001 01 01', 'control has a forbidden type'],
    ['a map of 32-bit size', '91 df ffffffff', 'control has a forbidden type'],
    ['a record extension', '91 d4 72 40', 'control has a forbidden type'],
    ['a timestamp', '91 d6 ff 00000000', 'control has a forbidden type'],
    ['an ext of 8-bit size', '91 c7 01 01 00', 'control has a forbidden type'],
    ['a float32', '91 ca 00000000', 'control has a forbidden type'],
    ['a 64-bit unsigned integer', '91 cf 0000000000000001', 'control has a forbidden type'],
    ['a 64-bit signed integer', '91 d3 0000000000000001', 'control has a forbidden type'],
    ['the unused tag', '91 c1', 'control has a forbidden type'],
    ['a second value', '90 90', 'control has bytes behind its array'],
    ['five levels', '91 91 91 91 91 01', 'control nested too deep'],
    ['four billion elements', 'dd ffffffff', 'control has too many elements'],
    ['more elements than bytes', 'dc 0005 01 01', 'control cut short'],
    ['a binary of 4 GiB', '91 c6 ffffffff 00', 'control cut short'],
    ['a string past the end', '91 d9 05 61', 'control cut short'],
    ['an array header cut short', '91 dd 00', 'control cut short'],
    ['an overlong slash', '91 a2 c0af', 'control has a string that is not UTF-8'],
    ['a lone surrogate', '91 a3 eda080', 'control has a string that is not UTF-8'],
    ['a code point above U+10FFFF', '91 a4 f4908080', 'control has a string that is not UTF-8'],
    ['a string that ends inside a character', '92 a1 c3 a1 a9', 'control has a string that is not UTF-8'],
  ] as const) {
    test(`refuses ${what}`, () => assert.equal(checkControl(bytes(hex)), rule));
  }

  test('allows every type that a control part may have', () => {
    assert.equal(checkControl(bytes('9e c0 c2 c3 01 ff cc80 cd0100 ce00010000 d0ff d1ffff d2ffffffff cb3ff0000000000000 a0 c400')), '');
    assert.equal(checkControl(bytes('96 d901 61 da0001 61 db00000001 61 c500 01 00 c600000001 00 a4 f09f93ae')), '');
    assert.equal(checkControl(bytes('91 91 91 91 01')), '');
    assert.equal(checkControl(bytes('93 92 01 90 91 91 90 01')), '', 'goes on behind nested arrays');
  });

  test('counts the elements of all arrays together', () => {
    const array = (count: number): Uint8Array => Buffer.concat([bytes('dd'), bytes(count.toString(16).padStart(8, '0')), Buffer.alloc(count)]);
    assert.equal(checkControl(array(ELEMENTS_MAX)), '');
    assert.equal(checkControl(array(ELEMENTS_MAX + 1)), 'control has too many elements');
    const half = array(ELEMENTS_MAX / 2);
    assert.equal(checkControl(Buffer.concat([bytes('92'), half, half])), 'control has too many elements');
  });

  test('whatever passes unpacks, without exception, to an array no deeper than allowed', () => {
    const token = fc.constantFrom(...['90', '91', '92', '93', 'c0', 'c2', '07', 'cd0102', 'ce80000000', 'cb41f0000000000000', 'a161', 'c40100', 'dc0002', 'd90161', 'dd00000001', '81', 'c1', 'd0ff', 'ff']);
    let passed = 0;
    fc.assert(fc.property(fc.array(token, { maxLength: 20 }), (tokens) => {
      const control = bytes(tokens.join(''));
      if (checkControl(control) !== '') return;
      passed++;
      assert.ok(depth(packer.unpack(control)) <= NESTING_MAX);
    }), { numRuns: 20_000, seed: 7 });
    assert.ok(passed > 200, `only ${passed} inputs passed`);
  });

  test('random bytes never make it throw', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 60 }), (tail) => {
      const control = Buffer.concat([Buffer.from([0x9f]), tail]);
      assert.equal(typeof checkControl(control), 'string');
    }), { numRuns: 20_000, seed: 8 });
  });
});

function depth(value: unknown): number {
  return Array.isArray(value) ? 1 + Math.max(0, ...value.map(depth)) : 0;
}
