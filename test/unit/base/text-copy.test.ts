/** A part of a text that is kept: src/base/text-copy.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { copyOfText } from '../../../src/base/text-copy.js';

test('a copy is the same text, whatever is in it', () => {
  for (const text of ['', 'mx.example', 'gr\u00fc\u00dfe', '\ud83d\ude00 and half of one \ud83d']) assert.equal(copyOfText(text), text);
});

test('a copy does not keep the text that it was cut from', () => {
  const before = process.memoryUsage().heapUsed;
  const kept = Array.from({ length: 1000 }, (_none, index) => copyOfText(`${String(index).padStart(20, '0')}${'x'.repeat(64 * 1024)}`.slice(0, 20).toLowerCase()));
  // 64 MB would be kept by parts.
  for (let i = 0; i < 20 && process.memoryUsage().heapUsed - before > 32 * 1024 * 1024; i++) Array.from({ length: 1e6 }, () => ({}));
  assert.ok(process.memoryUsage().heapUsed - before < 48 * 1024 * 1024);
  assert.equal(kept.length, 1000);
});
