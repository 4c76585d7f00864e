import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { nextDelayMs } from '../../../src/base/backoff.js';
import { Prng } from '../../../src/base/prng.js';
import { formatMessageId, parseMessageId } from '../../../src/base/text-id.js';
import { formatBytes, formatCount, formatDuration, parseBytes, parseDuration } from '../../../src/base/units.js';

const MINUTE = 60_000;

describe('units', () => {
  test('reads sizes', () => {
    for (const [text, value] of [['0', 0], ['512', 512], ['512B', 512], ['25MiB', 26_214_400], ['25 mib', 26_214_400], ['1.5KiB', 1536], ['64KB', 64_000], [' 2GB ', 2e9], ['1TiB', 2 ** 40]] as const) {
      assert.deepEqual(parseBytes(text), { ok: true, value }, text);
    }
  });

  test('reads times', () => {
    for (const [text, value] of [['250ms', 250], ['30s', 30_000], ['1.5s', 1500], ['5min', 5 * MINUTE], ['5m', 5 * MINUTE], ['1h30m', 90 * MINUTE], ['1h 30min', 90 * MINUTE], ['5d', 432_000_000], ['0s', 0]] as const) {
      assert.deepEqual(parseDuration(text), { ok: true, value }, text);
    }
  });

  test('says why it can not read a size or a time', () => {
    for (const text of ['', '25', '-1s', '5 years', '1m1h', 's', '1..5s', '1e3s', '3s3s']) {
      const parsed = parseDuration(text);
      assert.ok(!parsed.ok && parsed.why.includes(`"${text}"`), text);
    }
    for (const text of ['', '25M', '-1', 'MiB', '1.5', '0.3KiB', '9999999TiB', '1 2KB']) {
      const parsed = parseBytes(text);
      assert.ok(!parsed.ok && parsed.why.includes(`"${text}"`), text);
    }
  });

  test('shows sizes, times and counts', () => {
    assert.deepEqual([0, 1023, 1024, 1536, 26_214_400, 1024 ** 2 - 1, 5 * 2 ** 40].map(formatBytes), ['0B', '1023B', '1KiB', '1.5KiB', '25MiB', '1MiB', '5TiB']);
    assert.deepEqual([0, 250, 999.6, 2500, 59_990, MINUTE, 90 * MINUTE, 432_000_000, 90_000_000].map(formatDuration), ['0ms', '250ms', '1s', '2.5s', '1min', '1min', '1h30min', '5d', '1d1h']);
    assert.deepEqual([0, 999, 1000, 1_234_567, -1_234_567, 100_000].map(formatCount), ['0', '999', '1,000', '1,234,567', '-1,234,567', '100,000']);
  });

  test('reads back what it shows, within the digits shown', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e11, noNaN: true }), (ms) => {
        const parsed = parseDuration(formatDuration(ms));
        // One decimal of a second is 5% of it.
        assert.ok(parsed.ok && Math.abs(parsed.value - ms) <= Math.max(0.6, ms * 0.05), formatDuration(ms));
      }),
    );
  });
});

describe('message ids as text', () => {
  test('have one length, sort like the numbers and read back', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), fc.maxSafeNat(), (a, b) => {
        const [x, y] = [formatMessageId(a), formatMessageId(b)];
        assert.match(x, /^[0-9A-HJKMNP-TV-Z]{11}$/);
        assert.equal(parseMessageId(x), a);
        assert.equal(parseMessageId(x.toLowerCase()), a);
        assert.equal(x < y, a < b);
      }),
    );
    assert.equal(formatMessageId(0), '00000000000');
    assert.equal(formatMessageId(Number.MAX_SAFE_INTEGER), '7ZZZZZZZZZZ');
    assert.equal(parseMessageId('0000000OILo'), parseMessageId('00000000110'));
  });

  test('refuse other text', () => {
    for (const text of ['', '0000000000', '000000000000', '0000000000U', '0000000000!', '8ZZZZZZZZZZ', 'ZZZZZZZZZZZ', '0000000000é']) {
      assert.equal(parseMessageId(text), undefined, text);
    }
    assert.throws(() => formatMessageId(-1));
    assert.throws(() => formatMessageId(2 ** 53));
  });
});

describe('Prng', () => {
  test('repeats for a seed, differs between seeds and forks', () => {
    const draw = (random: Prng): number[] => Array.from({ length: 50 }, () => random.next());
    assert.deepEqual(draw(new Prng(5)), draw(new Prng(5)));
    assert.notDeepEqual(draw(new Prng(5)), draw(new Prng(6)));
    assert.notDeepEqual(draw(new Prng(5)), draw(new Prng(5 + 2 ** 32)));
    const parent = new Prng(5);
    assert.notDeepEqual(draw(parent.fork()), draw(parent));
  });

  test('spreads evenly and stays below its bound', () => {
    const random = new Prng(1);
    const counts = new Array<number>(10).fill(0);
    for (let i = 0; i < 100_000; i++) {
      const n = random.below(10);
      counts[n] = (counts[n] ?? 0) + 1;
    }
    assert.ok(counts.length === 10 && counts.every((count) => count > 9_500 && count < 10_500));
    assert.ok(['a', 'b'].includes(random.pick(['a', 'b'])));
    assert.throws(() => random.pick([]));
  });

  test('starts with the numbers pinned here, so that recorded seeds keep their meaning', () => {
    const random = new Prng(2026);
    assert.deepEqual([random.below(1e6), random.below(1e6), random.below(1e6)], [407_419, 57_061, 619_093]);
  });
});

describe('nextDelayMs', () => {
  const backoff = { firstMs: 100, factor: 2, maxMs: 5_000, jitter: 0 };

  test('grows by the factor up to the bound, for any number of attempts', () => {
    assert.deepEqual([0, 1, 2, 5, 6, 5_000].map((attempt) => nextDelayMs(attempt, backoff, () => 0.5)), [100, 200, 400, 3200, 5000, 5000]);
  });

  test('chance takes off at most the share that jitter says', () => {
    const random = new Prng(4);
    for (let attempt = 0; attempt < 200; attempt++) {
      const plain = nextDelayMs(attempt, backoff, () => 0);
      const spread = nextDelayMs(attempt, { ...backoff, jitter: 0.3 }, () => random.next());
      assert.ok(spread <= plain && spread >= Math.floor(plain * 0.7));
    }
  });
});
