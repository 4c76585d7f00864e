/** Patterns with "*": what they match, and what they cost hostile text. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Wildcards } from '../../../src/base/wildcards.js';

/** The same by a slow way that is plainly right: letter by letter, each star tried at every length. */
function matchesSlowly(pattern: string, text: string): boolean {
  if (pattern === '') return text === '';
  if (pattern.startsWith('*')) return matchesSlowly(pattern.slice(1), text) || (text !== '' && matchesSlowly(pattern, text.slice(1)));
  return text.startsWith(pattern[0] ?? '') && text !== '' && matchesSlowly(pattern.slice(1), text.slice(1));
}

test('a pattern is all of the text, in letters of either case', () => {
  for (const [pattern, text, is] of [
    ['a@b', 'A@B', true], ['a@b', 'a@bc', false], ['*@b', '@b', true], ['*', '', true], ['', '', true], ['', 'a', false],
    ['a*a', 'a', false], ['a*a', 'aa', true], ['*.b.*', 'x.b.y', true], ['*ab*b', 'ab', false], ['*b*b', 'abb', true],
  ] as const) assert.equal(new Wildcards([pattern]).matches(text), is, `${pattern} ${text}`);
  assert.equal(new Wildcards(['x', 'y*']).matches('yes'), true, 'any of them');
});

test('all short patterns and texts of three letters match as they should', () => {
  const words = (letters: string, most: number): string[] => most === 0 ? [''] : ['', ...words(letters, most - 1).flatMap((word) => [...letters].map((letter) => letter + word))];
  const texts = [...new Set(words('ab', 5))];
  for (const pattern of new Set(words('ab*', 5))) {
    const wildcards = new Wildcards([pattern]);
    for (const text of texts) assert.equal(wildcards.matches(text), matchesSlowly(pattern, text), `${pattern} ${text}`);
  }
});

test('many stars and long text are one pass', () => {
  const wildcards = new Wildcards([`${'a*'.repeat(150)}b`]);
  const beganMs = performance.now();
  for (let i = 0; i < 100; i++) assert.equal(wildcards.matches('a'.repeat(10_000)), false);
  assert.ok(performance.now() - beganMs < 2_000);
});
