/** Lines of several processes share one descriptor: whole ones only, whatever pieces they come in. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LineRelay } from '../../../src/bin/line-relay.js';

function relayed(chunks: readonly (string | Buffer)[], isEnded = true): string[] {
  const out: string[] = [];
  const relay = new LineRelay((lines) => { out.push(lines); });
  for (const chunk of chunks) relay.push(Buffer.from(chunk));
  if (isEnded) relay.end();
  return out;
}

test('lines in one piece are passed on as they are', () => {
  assert.deepEqual(relayed(['a\nb\n']), ['a\nb\n']);
});

test('what has not ended waits for its end, also in the middle of a character', () => {
  const bytes = Buffer.from('grüße\nx');
  assert.deepEqual(relayed([bytes.subarray(0, 3), bytes.subarray(3)], false), ['grüße\n']);
  assert.deepEqual(relayed([bytes.subarray(0, 3), bytes.subarray(3)]), ['grüße\n', 'x\n']);
});

test('a line without end does not grow for ever', () => {
  const part = 'x'.repeat(100_000);
  const out = relayed([part, part, part], false);
  assert.equal(out.join('').length, 300_001);
  assert.ok(out.join('').endsWith('\n'));
});
