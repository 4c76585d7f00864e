import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { REPLY_BYTES_MAX, REPLY_LINE_BYTES_MAX, REPLY_PIECES_MAX, ReplyReader } from '../../../src/smtp/reply-reader.js';

function read(pieces: readonly string[]): string[] {
  const seen: string[] = [];
  const reader: ReplyReader = new ReplyReader({
    onReply: (code) => { seen.push(`${code}|${reader.text()}|${reader.lines().join('/')}`); },
    onBadReply: (why) => { seen.push(`bad: ${why}`); },
  });
  for (const piece of pieces) reader.push(Buffer.from(piece, 'latin1'));
  return seen;
}

describe('reply reader', () => {
  const stream = '220 hi\r\n250-one\r\n250-\r\n250-two words\r\n250 three\r\n354\r\n250-a\n250\r\n451 4.3.0 x\ty\x01\xff\r\n';
  const expected = [
    '220|220 hi|hi', '250|250 one  two words three|one//two words/three', '354|354|', '250|250 a |a/',
    '451|451 4.3.0 x y??|4.3.0 x\ty\x01\xff',
  ];
  test('reads the same replies however the bytes are split', () => {
    assert.deepEqual(read([stream]), expected);
    assert.deepEqual(read([...stream]), expected);
    for (let at = 1; at < stream.length; at++) assert.deepEqual(read([stream.slice(0, at), stream.slice(at)]), expected, `split at ${at}`);
  });
  test('takes the longest line and reply allowed, and nothing longer', () => {
    const line = (bytes: number): string => `250-${'x'.repeat(bytes - 5)}\r`;
    assert.equal(read([`250 ${'x'.repeat(REPLY_LINE_BYTES_MAX - 5)}\r\n`]).length, 1);
    assert.match(read([`${line(REPLY_LINE_BYTES_MAX + 1)}\n`])[0] ?? '', /^bad: reply line longer/);
    assert.match(read(Array.from({ length: 3000 }, () => 'x'.repeat(20)))[0] ?? '', /^bad: reply line longer/);
    const slowly = (pieces: number): readonly string[] => [...'250 ok and ok\r\n'.repeat(3), `250 ${'x'.repeat(pieces - 6)}\r\n`].flatMap((part) => [...part]);
    assert.deepEqual(read(slowly(REPLY_PIECES_MAX)).length, 4);
    assert.deepEqual(read(slowly(REPLY_PIECES_MAX + 1)).at(-1), `bad: reply in more than ${REPLY_PIECES_MAX} pieces`);
    const bad = read(['hello\r\n', ...Array.from({ length: 2 * REPLY_PIECES_MAX }, () => 'x')]);
    assert.deepEqual(bad, ['bad: reply without a reply code'], 'one is told, whatever follows');
    const lines = `${line(1023)}\n`.repeat(REPLY_BYTES_MAX / 1024 - 1);
    assert.match(read([`${lines}250 end\r\n`])[0] ?? '', /^250/);
    assert.deepEqual(read([lines, `${line(1024)}\n`, '250 end\r\n']), [`bad: reply longer than ${REPLY_BYTES_MAX} bytes`]);
  });
  test('names what is no reply, once, and reads nothing after it', () => {
    for (const bad of ['hello', '25', '25x ok', '650 ok', '150 ok', '250x', '']) {
      assert.deepEqual(read([`${bad}\r\n250 ok\r\n`, '250 ok\r\n']), ['bad: reply without a reply code'], bad);
    }
  });
});
