/** Times in what commands print, src/cli/tables.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listTimeText, timeText } from '../../../src/cli/tables.js';

test('a time that is no date is printed as a question mark', () => {
  assert.deepEqual([timeText(1_767_225_600), listTimeText(1_767_225_600)], ['2026-01-01T00:00:00Z', '2026-01-01 00:00:00']);
  assert.deepEqual([timeText(9e12), listTimeText(9e12)], ['?', '?']);
});
