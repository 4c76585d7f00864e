/** Whose message it is, by its From field: what is plain, and what is not and stays unsigned. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fromAddresses } from '../../../../src/gateway/dkim/from-addresses.js';

test('addresses are found in all forms that people write', () => {
  for (const [value, addresses] of [
    [' a@x.example', ['a@x.example']],
    [' Alice <a@x.example>', ['a@x.example']],
    ['"Alice, of \\"X\\" <b@y.example>" <a@x.example>', ['a@x.example']],
    [' a@x.example (Alice (the first) \\) b@y.example)', ['a@x.example']],
    [' (c) Alice (d) < a@x.example > (e)', ['a@x.example']],
    [' =?utf-8?q?b=40y.example?= <a@x.example>', ['a@x.example']],
    [' A <a@x.example>,\r\n B <b@x.example>', ['a@x.example', 'b@x.example']],
    [' , a@x.example, ,', ['a@x.example']],
    [' Team: a@x.example, b@y.example;', ['a@x.example', 'b@y.example']],
    [' "a b"@x.example', ['"a b"@x.example']],
    [' <"a@y.example"@x.example>', ['"a@y.example"@x.example']],
    [' b@y.example <a@x.example>', ['a@x.example']],
    [' \u00e4@\u00f6.example', ['\u00e4@\u00f6.example']],
  ] as const) assert.deepEqual(fromAddresses(value), addresses, value);
});

test('what a reader might take for another address is none', () => {
  for (const value of [
    '', ' ', ' Alice', ' @x.example', ' a@', ' <>', ' a@b@x.example', ' <a@b@x.example>', ' <a@x.example', ' a@x.example>',
    ' <a@x.example> <b@y.example>', ' <a@x.example> b@y.example', ' <<a@x.example>>', ' (a@x.example', ' "a@x.example',
    ' a b@x.example', ' <a b@x.example>', ' a @x.example', ' a@x. example', ' <@r.example:a@x.example>', ' a@x.example: b@y.example;',
    ' <a@x.example,b@y.example>', ' a\\@x.example', ' <a@x.example(>', ' "a"b@x.example', ` ${'a'.repeat(600)}@x.example`,
    ` ${'a@x.example,'.repeat(101)}`, ' a@x.example, <b@y.example',
  ]) assert.equal(fromAddresses(value), undefined, value);
});

test('a long field is read in no time, and a longer one not at all', () => {
  assert.equal(fromAddresses(`a@x.example (${'x'.repeat(65_536)})`), undefined);
  const sinceMs = performance.now();
  for (const piece of ['(', '"', '<', ',', '\\', 'a@', '"\\', ' ', ':;', 'a,']) fromAddresses(piece.repeat(65_000 / piece.length));
  assert.ok(performance.now() - sinceMs < 2000);
});
