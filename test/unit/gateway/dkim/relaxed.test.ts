/** The examples of RFC 6376 3.4.5, and that no cut of a body into pieces changes what it comes to. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';

import { RelaxedBody, relaxedField } from '../../../../src/gateway/dkim/relaxed.js';
import { SimpleBody } from '../../../../src/gateway/dkim/simple-body.js';

/** With a scratch of `scratchBytes`, cut where `cuts` says. */
function relaxed(text: string, cuts: readonly number[] = [], scratchBytes = 64): string {
  const octets = Buffer.from(text, 'latin1');
  let out = '';
  const body = new RelaxedBody(new Uint8Array(scratchBytes), (part) => { out += Buffer.from(part).toString('latin1'); });
  let from = 0;
  for (const cut of [...cuts, octets.length]) {
    while (from < cut) from = body.update(octets, from, cut);
  }
  body.end();
  return out;
}

/** RFC 6376 3.4.4, said in another way. */
function expected(text: string): string {
  const lines = text.split('\r\n').map((line) => line.replace(/[ \t]+/g, ' ').replace(/ $/, ''));
  while (lines.at(-1) === '') lines.pop();
  return lines.map((line) => `${line}\r\n`).join('');
}

test('a field and a body come to what RFC 6376 3.4.5 says', () => {
  assert.equal(relaxedField('A', ' X'), 'a:X');
  assert.equal(relaxedField('B', ' Y\t\r\n\tZ  '), 'b:Y Z');
  assert.equal(relaxed(' C \r\nD \t E\r\n\r\n\r\n'), ' C\r\nD E\r\n');
});

test('a field of blanks alone, or of 8-bit octets, keeps what is no blank', () => {
  assert.equal(relaxedField('Subject', ' \r\n \t\r\n '), 'subject:');
  assert.equal(relaxedField('SUBJECT', '  \u00e4\u00a0\u000b x\r\n\ty '), 'subject:\u00e4\u00a0\u000b x y');
});

test('an empty body is nothing, whose hash RFC 6376 3.4.4 gives', () => {
  for (const text of ['', '\r\n', '\r\n\r\n\r\n', ' \t\r\n \r\n']) assert.equal(relaxed(text), '', JSON.stringify(text));
  assert.equal(createHash('sha256').update('').digest('base64'), '47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=');
});

test('a last line without an end gets one, and a CR alone is an octet like others', () => {
  assert.equal(relaxed('a'), 'a\r\n');
  assert.equal(relaxed('a \r'), 'a \r\r\n');
  assert.equal(relaxed('a\rb \r \r\n'), 'a\rb \r\r\n');
  assert.equal(relaxed('a\nb\r\n'), 'a\nb\r\n');
});

test('millions of empty lines are handed out a mebioctet at a time, and none is missing', () => {
  for (const kind of ['relaxed', 'simple'] as const) {
    const LINES = 3_000_000;
    const octets = Buffer.from(`a\r\n${'\r\n'.repeat(LINES)}b\r\n`, 'latin1');
    const hash = createHash('sha256');
    let out = 0;
    let most = 0;
    const take = (part: Uint8Array): void => {
      out += part.length;
      hash.update(part);
    };
    const body = kind === 'relaxed' ? new RelaxedBody(new Uint8Array(1024), take) : new SimpleBody(take);
    for (let at = 0; at < octets.length;) {
      const before = out;
      at = body.update(octets, at, Math.min(octets.length, at + 65_536));
      most = Math.max(most, out - before);
    }
    body.end();
    assert.equal(out, octets.length, kind);
    assert.equal(hash.digest('hex'), createHash('sha256').update(octets).digest('hex'), kind);
    assert.ok(most <= 1024 * 1024 + 65_536, `${kind}: ${String(most)} octets in one call`);
  }
});

test('each cut into two pieces, and each octet alone, comes to the same as the whole', () => {
  const odd = ['a', ' ', '\t', '\r\n', '\r\n\r\n', 'long word', '\u0000', '\u00ff', '.', '  x'];
  let seed = 7;
  const next = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed % below;
  };
  for (let round = 0; round < 300; round++) {
    const text = Array.from({ length: next(24) }, () => odd[next(odd.length)] ?? '').join('');
    const whole = expected(text);
    const at = next(text.length + 1);
    assert.equal(relaxed(text), whole, JSON.stringify(text));
    assert.equal(relaxed(text, [at], 4), whole, `${JSON.stringify(text)} cut at ${at}`);
    assert.equal(relaxed(text, [...text].map((_octet, index) => index), 5), whole, `${JSON.stringify(text)} octet by octet`);
  }
});

test('a million empty lines wait in no memory, and count when something follows', () => {
  const many = '\r\n'.repeat(1_000_000);
  assert.equal(relaxed(many, [], 4096), '');
  assert.equal(relaxed(`${many}x\r\n`, [], 4096).length, many.length + 3);
});
