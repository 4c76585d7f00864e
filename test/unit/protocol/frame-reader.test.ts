import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { crc32 } from '../../../src/platform/node/checksum.js';
import { CONTROL_BYTES_MAX, FRAME_BYTES_MAX, FrameEncoder, encodeFrame } from '../../../src/protocol/frame.js';
import { FrameReader, RULE_NO_ROOM, type FrameRoom, type FrameSink } from '../../../src/protocol/frame-reader.js';

interface Seen { type: number; sequence: number; control: string; bodies: string }

/** Copies what it is given, as a receiver must. */
class Recorder implements FrameSink {
  readonly frames: Seen[] = [];
  rule = '';
  onFrame(type: number, sequence: number, control: Uint8Array, bodies: Uint8Array): void {
    assert.equal(this.rule, '', 'nothing after a broken rule');
    this.frames.push({ type, sequence, control: Buffer.from(control).toString('latin1'), bodies: Buffer.from(bodies).toString('latin1') });
  }
  onInvalid(rule: string): void {
    assert.equal(this.rule, '', 'one broken rule at most');
    this.rule = rule;
  }
}

/** A small seeded generator (mulberry32), so that a failing run repeats. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

function reader(frameBytesMax = FRAME_BYTES_MAX): FrameReader {
  return new FrameReader({ frameBytesMax }, { crc32 });
}

function frame(type: number, sequence: number, control: Uint8Array, bodies: Uint8Array = new Uint8Array(0)): Uint8Array {
  return Buffer.concat([encodeFrame(type, sequence, control, crc32, bodies.length), bodies]);
}

/** A header as a liar writes it, with a right checksum over whatever follows. */
function forged(change: (header: Buffer) => void): Uint8Array {
  const bytes = Buffer.from(encodeFrame(0x30, 1, new Uint8Array(0), crc32));
  change(bytes);
  bytes.writeUInt32LE(crc32(bytes.subarray(4), 0), 0);
  return bytes;
}

describe('frame reader', () => {
  test('delivers a frame that arrives byte by byte', () => {
    const bytes = frame(0x30, 2 ** 40 + 3, Buffer.from('control'), Buffer.from('bodies'));
    const read = reader();
    const seen = new Recorder();
    for (const byte of bytes) read.push(Uint8Array.of(byte), seen);
    assert.deepEqual(seen.frames, [{ type: 0x30, sequence: 2 ** 40 + 3, control: 'control', bodies: 'bodies' }]);
    assert.equal(read.bufferedBytes, 0);
  });

  test('delivers frames that lie whole in a chunk without copying them', () => {
    const chunk = Buffer.concat([frame(1, 1, Buffer.from('a')), frame(2, 2, Buffer.from('b'), Buffer.from('c'))]);
    let frames = 0;
    reader().push(chunk, {
      onFrame: (_type, _sequence, control, bodies) => {
        frames++;
        assert.equal(control.buffer, chunk.buffer);
        if (bodies.length > 0) assert.equal(bodies.buffer, chunk.buffer);
      },
      onInvalid: (rule) => assert.fail(rule),
    });
    assert.equal(frames, 2);
  });

  test('keeps nothing of a chunk: it may be overwritten after push', () => {
    const bytes = Buffer.from(frame(0x30, 1, Buffer.from('control'), Buffer.from('bodies')));
    const read = reader();
    const seen = new Recorder();
    const first = Buffer.from(bytes.subarray(0, 33));
    read.push(first, seen);
    first.fill(0);
    read.push(bytes.subarray(33), seen);
    assert.equal(seen.frames[0]?.bodies, 'bodies');
  });

  for (const [rule, change] of [
    ['frame version', (h: Buffer) => h.writeUInt8(2, 9)],
    ['frame flags', (h: Buffer) => h.writeUInt16LE(0x0100, 10)],
    ['frame shorter than its header', (h: Buffer) => h.writeUInt32LE(23, 4)],
    ['frame too long', (h: Buffer) => h.writeUInt32LE(FRAME_BYTES_MAX + 1, 4)],
    ['control longer than its frame', (h: Buffer) => h.writeUInt32LE(1, 12)],
    ['control too long', (h: Buffer) => { h.writeUInt32LE(FRAME_BYTES_MAX, 4); h.writeUInt32LE(CONTROL_BYTES_MAX + 1, 12); }],
    ['sequence not below 2^53', (h: Buffer) => h.writeUInt32LE(0x200000, 20)],
  ] as const) {
    test(`refuses "${rule}" as soon as the header is there, and delivers nothing after it`, () => {
      const read = reader();
      const seen = new Recorder();
      read.push(forged(change), seen);
      assert.equal(seen.rule, rule);
      read.push(frame(1, 1, Buffer.from('x')), seen);
      assert.deepEqual(seen.frames, []);
      assert.equal(read.heldBytes, 0);
    });
  }

  test('finds a wrong checksum before the bodies have come', () => {
    const bytes = Buffer.from(frame(0x30, 1, Buffer.from('control'), Buffer.alloc(1000)));
    bytes.writeUInt32LE(60_000_000, 4);
    const seen = new Recorder();
    reader().push(bytes.subarray(0, 40), seen);
    assert.equal(seen.rule, 'frame checksum');
  });

  test('judges the checksum of each frame that comes in pieces', () => {
    const read = reader();
    const seen = new Recorder();
    const good = frame(0x30, 1, Buffer.from('control'), Buffer.from('bodies'));
    const bad = Buffer.from(good);
    bad.writeUInt8(0x7f, 26);
    for (const bytes of [good, bad]) for (const byte of bytes) read.push(Uint8Array.of(byte), seen);
    assert.equal(seen.frames.length, 1);
    assert.equal(seen.rule, 'frame checksum');
  });

  test('takes only small frames until its limit is raised', () => {
    const read = reader(4096);
    const seen = new Recorder();
    read.push(frame(1, 1, Buffer.alloc(4000)), seen);
    read.frameBytesMax = FRAME_BYTES_MAX;
    read.push(frame(2, 2, Buffer.alloc(5000)), seen);
    assert.equal(seen.frames.length, 2);
    const small = new Recorder();
    reader(4096).push(frame(1, 1, Buffer.alloc(4096)), small);
    assert.equal(small.rule, 'frame too long');
  });

  test('allocates by what has arrived, not by what a header claims', () => {
    const read = reader();
    const seen = new Recorder();
    const bomb = Buffer.from(encodeFrame(0x30, 1, new Uint8Array(0), crc32));
    bomb.writeUInt32LE(FRAME_BYTES_MAX, 4);
    bomb.writeUInt32LE(CONTROL_BYTES_MAX, 12);
    read.push(bomb, seen);
    assert.ok(read.heldBytes <= 4096);
    for (let i = 0; i < 100; i++) read.push(new Uint8Array(1000), seen);
    assert.equal(read.bufferedBytes, 100_024);
    assert.ok(read.heldBytes <= 2 * read.bufferedBytes);
  });

  test('gives its buffer back after a large frame and keeps a small one', () => {
    const read = reader();
    const seen = new Recorder();
    const large = frame(0x30, 1, Buffer.from('c'), Buffer.alloc(3 << 20));
    for (let at = 0; at < large.length; at += 60_000) read.push(large.subarray(at, at + 60_000), seen);
    assert.equal(seen.frames.length, 1);
    const { heldBytes } = read;
    assert.equal(heldBytes, 0);
    const small = frame(0x30, 2, Buffer.from('c'), Buffer.alloc(100));
    read.push(small.subarray(0, 50), seen);
    read.push(small.subarray(50), seen);
    assert.equal(seen.frames.length, 2);
    const kept = read.heldBytes;
    assert.ok(kept >= 4096 && kept <= 65_536);
  });

  test('takes a large frame in small chunks in linear time', () => {
    const body = Buffer.alloc(8 << 20, 'x');
    const bytes = frame(0x30, 1, Buffer.from('c'), body);
    // Quadratic copying would move 8 MiB for each of 131,072 chunks: a terabyte.
    const read = reader();
    const seen = new Recorder();
    const sizes = new Set<number>();
    for (let at = 0; at < bytes.length; at += 64) {
      read.push(bytes.subarray(at, at + 64), seen);
      sizes.add(read.heldBytes);
      assert.ok(sizes.size <= 16, 'grows by doubling');
    }
    assert.equal(seen.frames[0]?.bodies.length, body.length);
  });

  test('stopped from inside a sink, delivers nothing more of the chunk', () => {
    const chunk = Buffer.concat([frame(1, 1, Buffer.from('a')), frame(2, 2, Buffer.from('b')), Buffer.from('part')]);
    for (const split of [0, 10]) {
      const read = reader();
      const types: number[] = [];
      const sink: FrameSink = {
        onFrame: (type) => {
          types.push(type);
          read.stop();
        },
        onInvalid: (rule) => assert.fail(rule),
      };
      read.push(chunk.subarray(0, split), sink);
      read.push(chunk.subarray(split), sink);
      read.push(chunk, sink);
      assert.deepEqual(types, [1]);
      assert.equal(read.heldBytes, 0);
    }
  });

  test('delivers the same frames however the stream is cut, and refuses garbage wherever it starts', () => {
    for (let seed = 1; seed <= 1500; seed++) {
      const below = seeded(seed);
      const expected: Seen[] = [];
      const parts: Uint8Array[] = [];
      for (let i = 0, count = below(8); i < count; i++) {
        const control = Buffer.from(Array.from({ length: below(100) }, () => below(256)));
        const bodies = Buffer.alloc(below(4) === 0 ? below(20_000) : below(50), below(256));
        parts.push(frame(below(256), i, control, bodies));
        expected.push({ type: parts.at(-1)?.[8] ?? 0, sequence: i, control: control.toString('latin1'), bodies: bodies.toString('latin1') });
      }
      const garbage = below(3) === 0;
      if (garbage) parts.push(Buffer.from(Array.from({ length: 24 + below(200) }, () => below(256))));
      const stream = Buffer.concat(parts);
      const read = reader();
      const seen = new Recorder();
      for (let at = 0; at < stream.length;) {
        const size = 1 + below(below(2) === 0 ? 40 : 9000);
        read.push(stream.subarray(at, at + size), seen);
        at += size;
      }
      assert.deepEqual(seen.frames, expected, `seed ${seed}`);
      assert.equal(seen.rule !== '', garbage, `seed ${seed}: ${seen.rule}`);
    }
  });
});

test('a frame encoder gives the bytes of encodeFrame for every size, and never touches them again', () => {
  const encoder = new FrameEncoder({ crc32 });
  const made: { frame: Uint8Array; expected: string }[] = [];
  for (let i = 0; i < 400; i++) {
    const control = Buffer.alloc((i * 97) % 12_000, i);
    made.push({
      frame: encoder.encode(i % 256, i * 2 ** 30, control, i),
      expected: Buffer.from(encodeFrame(i % 256, i * 2 ** 30, control, crc32, i)).toString('hex'),
    });
  }
  for (const { frame: bytes, expected } of made) assert.equal(Buffer.from(bytes).toString('hex'), expected);
});

/** So many bytes for control parts, and for frames with bodies. */
class Room implements FrameRoom {
  held = 0;
  most = 0;
  keeps = true;
  private readonly controlBytes: number;
  private readonly bytes: number;

  constructor(controlBytes: number, bytes: number) {
    this.controlBytes = controlBytes;
    this.bytes = bytes;
  }

  mayHold(bytes: number, bodyBytes: number): boolean {
    if (bytes > (bodyBytes > 0 ? this.bytes : this.controlBytes)) return false;
    this.held = bytes;
    this.most = Math.max(this.most, bytes);
    return true;
  }

  mayKeep(): boolean {
    return this.keeps;
  }
}

describe('frame reader with little room', () => {
  const stream = Buffer.concat([frame(1, 1, Buffer.from('rows'), Buffer.alloc(100_000, 'b')), frame(2, 2, Buffer.from('c'), Buffer.from('d')), frame(3, 3, Buffer.alloc(0))]);

  for (const chunkBytes of [1, 7, 23, 24, 25, 29, 1000, 65_536]) {
    test(`passes over bodies that find none, in chunks of ${String(chunkBytes)} bytes, and delivers what is behind them`, () => {
      const room = new Room(4096, 20_000);
      const read = new FrameReader({ frameBytesMax: FRAME_BYTES_MAX }, { crc32, room });
      const seen: unknown[] = [];
      for (let at = 0; at < stream.length; at += chunkBytes) {
        read.push(stream.subarray(at, at + chunkBytes), {
          onFrame: (type, sequence, control, bodies, bodyBytes) => { seen.push([type, sequence, Buffer.from(control).toString(), bodies.length, bodyBytes]); },
          onInvalid: (rule) => assert.fail(rule),
        });
        assert.equal(read.heldBytes, room.held);
      }
      assert.deepEqual(seen, [[1, 1, 'rows', 0, 100_000], [2, 2, 'c', 1, 1], [3, 3, '', 0, 0]]);
      assert.ok(room.most <= 20_000, `held ${String(room.most)}`);
    });
  }

  test('ends the stream at a control part that finds none', () => {
    const read = new FrameReader({ frameBytesMax: FRAME_BYTES_MAX }, { crc32, room: new Room(10_000, 10_000) });
    const seen = new Recorder();
    const large = frame(1, 1, Buffer.alloc(50_000));
    for (let at = 0; at < large.length && seen.rule === ''; at += 1000) read.push(large.subarray(at, at + 1000), seen);
    assert.deepEqual([seen.rule, seen.frames, read.heldBytes], [RULE_NO_ROOM, [], 0]);
  });

  test('gives its buffer back when it may not stay', () => {
    const room = new Room(4096, 20_000);
    room.keeps = false;
    const read = new FrameReader({ frameBytesMax: FRAME_BYTES_MAX }, { crc32, room });
    const seen = new Recorder();
    const small = frame(1, 1, Buffer.from('rows'), Buffer.from('bodies'));
    for (const part of [small.subarray(0, 30), small.subarray(30)]) read.push(part, seen);
    assert.deepEqual([seen.frames[0]?.bodies, read.heldBytes], ['bodies', 0]);
  });
});

describe('the sum of the bodies of a frame', () => {
  const SUMMED = 0x30;
  const bodies = Buffer.from(Array.from({ length: 100_000 }, (_none, i) => (i * 7 + (i >>> 8)) & 255));

  /** What is told of each frame of the stream, cut into chunks of so many bytes. */
  function sums(chunkBytes: number, stream: Uint8Array, room?: FrameRoom): { sum: number; bodies: number }[] {
    const read = new FrameReader({ frameBytesMax: FRAME_BYTES_MAX, summedType: SUMMED }, room === undefined ? { crc32 } : { crc32, room });
    const told: { sum: number; bodies: number }[] = [];
    for (let at = 0; at < stream.length; at += chunkBytes) {
      read.push(stream.subarray(at, at + chunkBytes), {
        onFrame: (_type, _sequence, _control, its) => { told.push({ sum: read.bodySum, bodies: its.length }); },
        onInvalid: (rule) => assert.fail(rule),
      });
    }
    return told;
  }

  test('is told when they came in a few chunks, and not of other types, of whole frames, and of many short chunks', () => {
    const stream = Buffer.concat([
      frame(SUMMED, 1, Buffer.from('rows'), bodies), frame(SUMMED + 1, 2, Buffer.from('rows'), bodies),
      frame(SUMMED, 3, Buffer.from('rows'), bodies.subarray(5)), frame(SUMMED, 4, Buffer.from('rows'), bodies.subarray(0, 10)),
    ]);
    const [all, but5] = [crc32(bodies, 0), crc32(bodies.subarray(5), 0)];
    for (const chunkBytes of [16_400, 20_000, 65_536, 100_010]) {
      assert.deepEqual(sums(chunkBytes, stream).map(({ sum }) => sum), [all, -1, but5, -1], `chunks of ${String(chunkBytes)}`);
    }
    assert.deepEqual(sums(stream.length, stream).map(({ sum }) => sum), [-1, -1, -1, -1]);
    assert.deepEqual(sums(3_000, stream).slice(0, 3).map(({ sum }) => sum), [-1, -1, -1]);
  });

  test('is not told of bodies that were passed over, nor of none', () => {
    const stream = Buffer.concat([frame(SUMMED, 1, Buffer.from('rows'), bodies), frame(SUMMED, 2, Buffer.alloc(100))]);
    assert.deepEqual(sums(30_000, stream, new Room(4096, 70_000)), [{ sum: -1, bodies: 0 }, { sum: -1, bodies: 0 }]);
  });
});
