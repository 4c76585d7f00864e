/** What a stranger's JSON must look like: let through as the type says it, without anything else, or refused by a rule with its place. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { z } from 'zod';
import { statusAnswer } from '../../../src/admin-api/gateway-answers.js';
import { groupAnswer, name, page, text } from '../../../src/admin-api/pages.js';
import { BrokenRule, listOf, readJson, readShape, ruled } from '../../../src/base/json-shape.js';
import { STATUS, STORE } from '../cli/sample-answers.js';

function ruleOf(schema: z.ZodType, raw: unknown): string {
  const value = readShape(schema, raw);
  return value instanceof BrokenRule ? value.rule : '';
}

const PART = z.object({ share: z.number().max(1), since: z.int().nullable() });
const ROW = z.object({ id: name, state: z.enum(['up', 'down']), parts: listOf(PART, 3), why: text.exactOptional() });
const GOOD = { id: 'a', state: 'up', parts: [{ share: 0.5, since: null }, { share: 1, since: -3 }] };

describe('a shape', () => {
  test('lets through what it says, and leaves out what it does not', () => {
    assert.deepEqual(readShape(ROW, GOOD), GOOD);
    const more = { ...GOOD, why: 'late', more: 1, parts: [{ share: 0, since: 1, x: 2 }] };
    assert.deepEqual(readShape(ROW, more), { ...GOOD, why: 'late', parts: [{ share: 0, since: 1 }] });
    const hostile = '{"id":"a","state":"up","parts":[],"__proto__":{"polluted":true},"constructor":1}';
    assert.deepEqual(Object.keys(readJson(ROW, hostile)), ['id', 'state', 'parts']);
  });

  test('takes nothing that stands in a prototype for a field', () => {
    assert.match(ruleOf(z.object({ toString: z.string() }), {}), /^toString: /);
  });

  test('says where what is wrong stands', () => {
    const broken: readonly (readonly [unknown, RegExp])[] = [
      [undefined, /^Invalid input: expected object/],
      [{ ...GOOD, id: 7 }, /^id: Invalid input: expected string/],
      [{ ...GOOD, id: 'a'.repeat(1025) }, /^id: Too big: .*<=1024 characters/],
      [{ ...GOOD, state: 'UP' }, /^state: Invalid option: expected one of "up"\|"down"/],
      [{ ...GOOD, why: 'a'.repeat(65_537) }, /^why: Too big: .*<=65536 characters/],
      [{ ...GOOD, parts: {} }, /^parts: Invalid input: expected array/],
      [{ ...GOOD, parts: Array.from({ length: 4 }, () => GOOD.parts[0]) }, /^parts: Too big: /],
      [{ ...GOOD, parts: [GOOD.parts[0], { share: 1.5, since: 1 }] }, /^parts\[1\]\.share: Too big: /],
      [{ ...GOOD, parts: [{ share: 1, since: 1.5 }] }, /^parts\[0\]\.since: Invalid input: expected int/],
      [{ ...GOOD, parts: [{ share: 1, since: 2 ** 53 }] }, /^parts\[0\]\.since: /],
      [{ ...GOOD, parts: [null] }, /^parts\[0\]: Invalid input: expected object/],
    ];
    for (const [raw, rule] of broken) assert.match(ruleOf(ROW, raw), rule);
    assert.match(ruleOf(page(ROW), { rows: [], next_cursor: 7 }), /^next_cursor: /);
    assert.match(ruleOf(groupAnswer, { members: [{ id: 'x', kind: 'hub', admin: null, self: true }] }), /^members\[0\]\.kind: /);
  });

  test('has rules of its own, and refuses what is no JSON', () => {
    const even = ruled(z.object({ count: z.int() }), ({ count }) => (count % 2 === 0 ? '' : 'an odd count'));
    assert.equal(ruleOf(even, { count: 3 }), 'an odd count');
    assert.deepEqual(readJson(even, '{"count":2}'), { count: 2 });
    assert.deepEqual(readJson(even, '{"count":2'), new BrokenRule('no JSON'));
  });

  test('of a status misses no field', () => {
    const status = { ...STATUS, stores: [STORE] };
    assert.deepEqual(readShape(statusAnswer, status), status);
    for (const field of Object.keys(status)) {
      const { [field as keyof typeof status]: left, ...rest } = status;
      assert.notEqual(left, undefined);
      assert.match(ruleOf(statusAnswer, rest), new RegExp(`^${field}: Invalid `));
    }
  });
});
