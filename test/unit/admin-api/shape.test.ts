/** What a stranger's JSON must look like: let through as the type says it, without anything else, or refused by a named rule. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { statusAnswer } from '../../../src/admin-api/gateway-answers.js';
import { groupAnswer, page } from '../../../src/admin-api/pages.js';
import { Broken, flag, integer, list, name, object, oneOf, orNull, share, text } from '../../../src/admin-api/shape.js';
import type { Shape } from '../../../src/admin-api/shape.js';
import { STATUS, STORE } from '../cli/sample-answers.js';

function ruleOf(shape: Shape<unknown>, raw: unknown): string {
  const value = shape(raw);
  return value instanceof Broken ? value.text : '';
}

const ROW = object({ id: name, state: oneOf('up', 'down'), parts: list(object({ share, since: orNull(integer) })) }, { why: text });
const GOOD = { id: 'a', state: 'up', parts: [{ share: 0.5, since: null }, { share: 1, since: -3 }] };

describe('a shape', () => {
  test('lets through what it says, and leaves out what it does not', () => {
    assert.deepEqual(ROW(GOOD), GOOD);
    assert.deepEqual(ROW({ ...GOOD, why: 'late', more: 1, parts: [{ share: 0, since: 1, x: 2 }] }), { ...GOOD, why: 'late', parts: [{ share: 0, since: 1 }] });
    const hostile: unknown = JSON.parse('{"id":"a","state":"up","parts":[],"__proto__":{"polluted":true},"constructor":1}');
    assert.deepEqual(Object.keys(ROW(hostile)), ['id', 'state', 'parts']);
  });

  test('takes nothing that stands in a prototype for a field', () => {
    assert.match(ruleOf(object({ toString: text }), {}), /^toString: expected a text/);
  });

  test('says where what is wrong stands, and which rule it breaks', () => {
    const broken: readonly (readonly [unknown, string])[] = [
      [undefined, 'expected an object'],
      [{ ...GOOD, id: 7 }, 'id: expected a name of at most 1024 characters'],
      [{ ...GOOD, id: 'a'.repeat(1025) }, 'id: expected a name of at most 1024 characters'],
      [{ ...GOOD, state: 'UP' }, 'state: expected one of up, down'],
      [{ ...GOOD, why: 'a'.repeat(65_537) }, 'why: expected a text of at most 65536 characters'],
      [{ ...GOOD, parts: {} }, 'parts: expected a list of at most 100000'],
      [{ ...GOOD, parts: Array.from({ length: 100_001 }, () => GOOD.parts[0]) }, 'parts: expected a list of at most 100000'],
      [{ ...GOOD, parts: [GOOD.parts[0], { share: 1.5, since: 1 }] }, 'parts[1].share: expected a number from 0 to 1'],
      [{ ...GOOD, parts: [{ share: 1, since: 1.5 }] }, 'parts[0].since: expected a whole number'],
      [{ ...GOOD, parts: [{ share: 1, since: 2 ** 53 }] }, 'parts[0].since: expected a whole number'],
      [{ ...GOOD, parts: [null] }, 'parts[0]: expected an object'],
    ];
    for (const [raw, rule] of broken) assert.equal(ruleOf(ROW, raw), rule);
    assert.equal(ruleOf(flag, 1), 'expected true or false');
    assert.equal(ruleOf(page(ROW), { rows: [], next_cursor: 7 }), 'next_cursor: expected a name of at most 1024 characters');
    assert.equal(ruleOf(groupAnswer, { members: [{ id: 'x', kind: 'hub', admin: null, away: false, self: true }] }), 'members[0].kind: expected one of gateway, store');
  });

  test('of a status misses no field', () => {
    const status = { ...STATUS, stores: [STORE] };
    assert.deepEqual(statusAnswer(status), status);
    for (const field of Object.keys(status)) {
      const { [field as keyof typeof status]: left, ...rest } = status;
      assert.notEqual(left, undefined);
      assert.match(ruleOf(statusAnswer, rest), new RegExp(`^${field}: expected `));
    }
  });
});
