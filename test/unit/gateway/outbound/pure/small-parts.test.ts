import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CAN_8BITMIME, CAN_DSN, CAN_ENHANCED_CODES, CAN_PIPELINE, CAN_SIZE, CAN_SMTPUTF8, parseCapabilities } from '../../../../../src/smtp/capabilities.js';
import { Stage, Trouble, classifyReply, classifyTrouble } from '../../../../../src/gateway/outbound/pure/classify.js';
import { REPLY_BYTES_MAX, REPLY_LINE_BYTES_MAX, ReplyReader, TEXT_CHARACTERS_MAX } from '../../../../../src/smtp/reply-reader.js';
import { DEFAULT_RETRY_SCHEDULE, RetrySchedule } from '../../../../../src/gateway/outbound/pure/retry-schedule.js';
import { WriteBuffer } from '../../../../../src/smtp/write-buffer.js';
import { DEFERRED, DELIVERED, FAILED } from '../../../../../src/gateway/queue/types.js';
import { ScriptedConnection } from './session-world.js';

describe('classify', () => {
  const rows: [Stage, string, number, string][] = [
    [Stage.FINAL, '250 2.0.0 ok', DELIVERED, '2.0.0'],
    [Stage.FINAL, '250 ok', DELIVERED, '2.0.0'],
    [Stage.FINAL, '252 2.1.5', DELIVERED, '2.1.5'],
    [Stage.RCPT, '550 5.1.1 no', FAILED, '5.1.1'],
    [Stage.RCPT, '550 no', FAILED, '5.2.0'],
    [Stage.RCPT, '551 moved', FAILED, '5.1.6'],
    [Stage.RCPT, '552 too many', DEFERRED, '4.5.3'],
    [Stage.RCPT, '552 5.2.2 full', DEFERRED, '4.2.2'],
    [Stage.RCPT, '452 too many', DEFERRED, '4.5.3'],
    [Stage.FINAL, '552 too big', FAILED, '5.2.2'],
    [Stage.FINAL, '452 no room', DEFERRED, '4.3.1'],
    [Stage.MAIL, '550 5.7.1 no', FAILED, '5.7.1'],
    [Stage.DATA, '421 bye', DEFERRED, '4.3.2'],
    [Stage.DATA, '599 what', FAILED, '5.0.0'],
    [Stage.GREETING, '554 no', DEFERRED, '4.0.0'],
    [Stage.GREETING, '521 never', FAILED, '5.3.2'],
    [Stage.HELLO, '550 5.7.1 who are you', DEFERRED, '4.7.1'],
    [Stage.RCPT, '450 4.2.1', DEFERRED, '4.2.1'],
    [Stage.RCPT, '450 2.1.5 of another class', DEFERRED, '4.1.5'],
    [Stage.RCPT, '550 5.1.1x no code', FAILED, '5.2.0'],
    [Stage.RCPT, '550 5.1234.1 no code', FAILED, '5.2.0'],
    [Stage.RCPT, '550 192.0.2.1 no code', FAILED, '5.2.0'],
    [Stage.FINAL, '354 out of place', DEFERRED, '4.5.0'],
  ];
  for (const [stage, text, status, enhanced] of rows) {
    test(`stage ${stage}: ${text}`, () => {
      const code = Number(text.slice(0, 3));
      assert.deepEqual(classifyReply(stage, code, text), { status, code, enhanced, text });
    });
  }
  test('every reply code at every stage has a meaning of the class of its enhanced code', () => {
    for (const stage of Object.values(Stage)) {
      for (let code = 200; code < 600; code++) {
        const result = classifyReply(stage, code, `${code} x`);
        assert.equal(result.enhanced[0], result.status === DELIVERED ? '2' : result.status === DEFERRED ? '4' : '5');
        if (result.status === DELIVERED) assert.ok(stage === Stage.FINAL && code < 300);
      }
    }
  });
  test('troubles of the way are deferrals, those of the message failures, text bounded', () => {
    const failures: number[] = [Trouble.SIZE, Trouble.UTF8, Trouble.ADDRESS, Trouble.EIGHT_BIT];
    for (const trouble of Object.values(Trouble)) {
      const result = classifyTrouble(trouble, 'x'.repeat(1000));
      assert.equal(result.status, failures.includes(trouble) ? FAILED : DEFERRED);
      assert.equal(result.text.length, TEXT_CHARACTERS_MAX);
    }
  });
});

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
    assert.match(read(Array.from({ length: 3000 }, () => 'x'))[0] ?? '', /^bad: reply line longer/);
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

test('capabilities are taken without regard to case, and unknown ones passed over', () => {
  const all = CAN_PIPELINE | CAN_SIZE | CAN_8BITMIME | CAN_SMTPUTF8 | CAN_DSN | CAN_ENHANCED_CODES;
  assert.deepEqual(parseCapabilities(['DSN', 'pipelining', 'SIZE 1000', '8bitMime', 'SMTPUTF8', 'DSN', 'ENHANCEDSTATUSCODES', 'CHUNKING', '__proto__']), { bits: all, sizeBytesMax: 1000 });
  assert.deepEqual(parseCapabilities(['DSN']), { bits: 0, sizeBytesMax: 0 });
  for (const limit of ['', ' ', ' 0', ' x', ' -1', ' 99999999999999999999']) assert.deepEqual(parseCapabilities(['h', `SIZE${limit}`]), { bits: CAN_SIZE, sizeBytesMax: 0 });
});

describe('retry schedule', () => {
  test('grows from 5 minutes to an hour and stays there', () => {
    const schedule = new RetrySchedule(DEFAULT_RETRY_SCHEDULE, { random: () => 0.5 });
    assert.deepEqual([1, 2, 3, 4, 5, 6, 1000].map((attempts) => schedule.delayMs(attempts) / 60_000), [5, 10, 20, 40, 60, 60, 60]);
  });
  test('jitter spreads delays by a fifth to either side', () => {
    assert.equal(new RetrySchedule(DEFAULT_RETRY_SCHEDULE, { random: () => 0 }).delayMs(1), 240_000);
    const latest = new RetrySchedule(DEFAULT_RETRY_SCHEDULE, { random: () => 0.999999 });
    assert.equal(latest.delayMs(1), 360_000);
    assert.ok(latest.longestMs - latest.delayMs(1000) >= 0 && latest.longestMs - latest.delayMs(1000) < 10);
  });
  test('makes a last attempt right before the end, once', () => {
    const schedule = new RetrySchedule(DEFAULT_RETRY_SCHEDULE, { random: () => 0.5 });
    assert.equal(schedule.nextDueMs(9, 1_000_000, 2_000_000), 1_940_000);
    assert.ok(schedule.nextDueMs(10, 1_940_000, 2_000_000) > 2_000_000);
  });
  test('bounces live a day, other mail five', () => {
    const schedule = new RetrySchedule(DEFAULT_RETRY_SCHEDULE, { random: () => 0.5 });
    assert.equal(schedule.expiryMs(0, ''), 86_400_000);
    assert.equal(schedule.expiryMs(0, 'a@b'), 5 * 86_400_000);
  });
});

describe('write buffer', () => {
  test('never touches bytes that a connection still holds', () => {
    const buffer = new WriteBuffer({ largeBytesMax: 100 });
    const held: Uint8Array[] = [];
    const connection = new ScriptedConnection();
    connection.write = (chunks) => { held.push(...chunks); };
    connection.bufferedBytes = 1;
    for (const text of ['first', 'second', 'third']) {
      buffer.start(connection);
      buffer.ascii(text);
      buffer.flush();
    }
    assert.deepEqual(held.map((bytes) => Buffer.from(bytes).toString()), ['first', 'second', 'third']);
  });
  test('large contents wait for room, but one may always be sent', () => {
    const buffer = new WriteBuffer({ largeBytesMax: 100 });
    const huge = buffer.takeLarge(500);
    assert.ok(huge !== undefined);
    assert.equal(buffer.takeLarge(1), undefined);
    buffer.giveLarge(huge);
    assert.ok(buffer.takeLarge(60) !== undefined);
    assert.equal(buffer.takeLarge(60), undefined);
    assert.equal(buffer.largeBytes, 60);
  });
});
