import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Prng } from '../../src/base/prng.js';
import { DamagedStream, type StreamFaults } from './stream-faults.js';

const STREAM = new Uint8Array(100_000).map((_none, index) => index % 251);
const SEEDS = Array.from({ length: 20 }, (_none, index) => index + 1);

interface Run {
  readonly out: Buffer;
  readonly sizes: readonly number[];
  readonly stream: DamagedStream;
}

/** Sends STREAM through in chunks of up to `chunkMax` bytes. */
function run(faults: StreamFaults, seed: number, chunkMax = 3000): Run {
  const stream = new DamagedStream(faults, seed);
  const chunks = new Prng(chunkMax);
  const out: Uint8Array[] = [];
  for (let at = 0; at < STREAM.length && stream.ended === undefined;) {
    const bytes = Math.min(STREAM.length - at, 1 + chunks.below(chunkMax));
    out.push(...stream.pieces(STREAM.subarray(at, at + bytes)).map((piece) => piece.bytes));
    at += bytes;
  }
  return { out: Buffer.concat(out), sizes: out.map((piece) => piece.length), stream };
}

describe('faults of a stream', () => {
  test('the same seed does the same to the same bytes, however they came cut; another seed does something else', () => {
    const faults = { flipEveryBytes: 9000, repeatEveryBytes: 12_000, splitBytesMax: 700 };
    for (const seed of SEEDS) {
      const [one, other] = [run(faults, seed, 3000), run(faults, seed, 65_536)];
      assert.deepEqual(one.stream.damage, other.stream.damage);
      // What is repeated at the end of a piece may be a shorter piece; the places are the same.
      assert.notDeepEqual(one.stream.damage, run(faults, seed + 100).stream.damage);
    }
  });

  test('splitting changes nothing but the pieces', () => {
    for (const seed of SEEDS) {
      const { out, sizes, stream } = run({ splitBytesMax: 100 }, seed);
      assert.ok(out.equals(STREAM) && sizes.every((bytes) => bytes <= 100) && stream.damage.length === 0);
      assert.equal(stream.goodThrough, Infinity);
    }
  });

  test('each flip changes one bit at the offset that it names, and nothing else', () => {
    for (const seed of SEEDS) {
      const { out, stream } = run({ flipEveryBytes: 20_000 }, seed);
      const changed = [...out.keys()].filter((at) => out[at] !== STREAM[at]);
      assert.deepEqual(stream.damage.map((each) => each.offset), changed);
      for (const at of changed) assert.equal(bits((out[at] ?? 0) ^ (STREAM[at] ?? 0)), 1);
      assert.equal(stream.goodThrough, changed[0] ?? Infinity);
    }
  });

  test('repeated bytes are those before the offset; the rest follows', () => {
    for (const seed of SEEDS) {
      const { out, stream } = run({ repeatEveryBytes: 50_000 }, seed);
      const at = stream.damage[0]?.offset;
      if (at === undefined) continue;
      const added = out.length - STREAM.length;
      assert.ok(added > 0 && out.subarray(0, at).equals(STREAM.subarray(0, at)));
      assert.equal(stream.goodThrough, at);
      if (stream.damage.length === 1) assert.ok(out.subarray(at + added).equals(STREAM.subarray(at)) && out.subarray(at, at + added).equals(STREAM.subarray(at - added, at)));
    }
  });

  test('after a truncation or a half-close nothing is handed on', () => {
    for (const seed of SEEDS) {
      for (const [faults, ended] of [[{ truncateWithinBytes: 10_000 }, 'truncate'], [{ halfCloseWithinBytes: 10_000 }, 'half-close']] as const) {
        const { out, stream } = run(faults, seed);
        assert.equal(stream.ended, ended);
        assert.ok(out.length > 0 && out.length <= 10_000 && out.equals(STREAM.subarray(0, out.length)));
        assert.deepEqual(stream.damage, [{ kind: ended, offset: out.length }]);
        assert.equal(stream.pieces(STREAM).length, 0);
      }
    }
  });

  test('jitter keeps the order; delay and the speed of the line are kept', () => {
    for (const seed of SEEDS) {
      const stream = new DamagedStream({ delayMs: 10, jitterMs: 30, bytesPerSecond: 100_000 }, seed);
      let last = 0;
      for (let nowMs = 1000; nowMs < 1100; nowMs++) {
        const dueMs = stream.dueMs(nowMs, 1000);
        assert.ok(dueMs >= last + 10 && dueMs >= nowMs + 20);
        last = dueMs;
      }
    }
  });

  test('joining hands on at the same moments what came in between', () => {
    const stream = new DamagedStream({ joinMs: 20 }, 1);
    assert.deepEqual([1000, 1001, 1019, 1020, 1021].map((nowMs) => stream.dueMs(nowMs, 1)), [1000, 1020, 1020, 1020, 1040]);
  });
});

function bits(byte: number): number {
  return byte === 0 ? 0 : (byte & 1) + bits(byte >> 1);
}
