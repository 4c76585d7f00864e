import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';

import { wireContent, withLineEnds } from '../../../src/smtp/content-lines.js';

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');

test('line ends of every kind become CRLF, and a dot that starts a line is doubled', () => {
  assert.equal(text(withLineEnds(Buffer.from('\na\r\nb\n\rc\r'))), '\r\na\r\nb\r\n\r\nc\r\n');
  assert.equal(text(wireContent(Buffer.from('.\r\n..a\r\nb.\r\n'))), '..\r\n...a\r\nb.\r\n.\r\n');
  assert.equal(text(wireContent(withLineEnds(new Uint8Array(0)))), '.\r\n');
});

test('any content comes out as it went in, but for line ends', () => {
  const bytes = fc.array(fc.constantFrom(13, 10, 46, 97), { maxLength: 40 }).map((list) => Uint8Array.from(list));
  fc.assert(fc.property(bytes, (content) => {
    const lines = text(withLineEnds(content));
    const wire = text(wireContent(withLineEnds(content)));
    assert.ok(wire.endsWith('.\r\n') && (wire === '.\r\n' || wire.endsWith('\r\n.\r\n')));
    assert.equal(/\r(?!\n)|(?<!\r)\n/.test(wire), false, 'no bare CR or LF');
    const body = wire.slice(0, -3);
    assert.equal(body.indexOf('\r\n.\r\n'), -1, 'no dot alone on a line inside');
    assert.equal(body.startsWith('.\r\n'), false);
    assert.equal(body.replace(/(^|\n)\./g, '$1'), lines);
    const given = text(content).split(/\r\n|\r|\n/);
    if (given.at(-1) === '') given.pop();
    assert.deepEqual(lines.split('\r\n').slice(0, -1), given);
  }), { numRuns: 2_000 });
});
