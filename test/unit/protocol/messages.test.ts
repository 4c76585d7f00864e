/**
 * Every message: golden bytes, round trip, and that no truncation or corruption gets through unnamed. After a
 * deliberate change of a layout, TWINPOST_WRITE_GOLDEN=1 writes the golden files anew; review the difference.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { crc32 } from '../../../src/platform/node/checksum.js';
import { MessagePacker } from '../../../src/platform/node/packer.js';
import { checkControl } from '../../../src/protocol/bounds.js';
import { FRAME_BYTES_MAX, HEADER_BYTES, encodeFrame } from '../../../src/protocol/frame.js';
import { FrameReader } from '../../../src/protocol/frame-reader.js';
import { isInvalid } from '../../../src/protocol/invalid.js';
import * as types from '../../../src/protocol/message-types.js';
import { SAMPLES, type Sample } from './samples.js';

const packer = new MessagePacker();

function frameOf(sample: Sample): Uint8Array {
  const front = encodeFrame(sample.type, sample.sequence, sample.encode(packer, sample.value), crc32, sample.bodies.length);
  return Buffer.concat([front, sample.bodies]);
}

/** What a receiver makes of bytes: the first broken rule, 'incomplete', or '' with the value. */
function receive(sample: Sample, bytes: Uint8Array): { rule: string; value?: unknown; bodies?: Uint8Array } {
  const reader = new FrameReader({ frameBytesMax: FRAME_BYTES_MAX }, { crc32 });
  let result: { rule: string; value?: unknown; bodies?: Uint8Array } = { rule: 'incomplete' };
  reader.push(bytes, {
    onFrame(type, sequence, control, bodies) {
      if (type !== sample.type || sequence !== sample.sequence) result = { rule: 'header' };
      else result = judge(sample, control, bodies);
    },
    onInvalid(rule) {
      result = { rule };
    },
  });
  return result;
}

function judge(sample: Sample, control: Uint8Array, bodies: Uint8Array): { rule: string; value?: unknown; bodies?: Uint8Array } {
  const rule = checkControl(control);
  if (rule !== '') return { rule };
  const value = sample.decode(packer, control);
  return isInvalid(value) ? { rule: value.rule } : { rule: '', value, bodies };
}

/** Views in a decoded value may be Buffers or Uint8Arrays; compare their bytes. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === 'object' && value !== null) return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plain(v)]));
  return value;
}

function golden(sample: Sample): { path: string; comment: string; bytes: string } {
  const path = resolve('test/unit/protocol/golden', `${sample.name}.hex`);
  const comment = `# ${types.messageTypeName(sample.type)}, sequence ${sample.sequence}: ${sample.fields}`;
  if (process.env['TWINPOST_WRITE_GOLDEN'] === '1') {
    const lines = Buffer.from(frameOf(sample)).toString('hex').match(/.{1,64}/g) ?? [];
    writeFileSync(path, `${comment}\n${lines.join('\n')}\n`);
  }
  const [first = '', ...rest] = readFileSync(path, 'utf8').trimEnd().split('\n');
  assert.equal(first, comment);
  return { path, comment, bytes: rest.join('') };
}

test('there is a sample of every message type', () => {
  assert.deepEqual([...new Set(SAMPLES.map((sample) => sample.type))].sort((a, b) => a - b), Object.values(types).filter((type) => typeof type === 'number').sort((a, b) => a - b));
});

for (const sample of SAMPLES) {
  describe(types.messageTypeName(sample.type), () => {
    test('has the golden bytes, written and read', () => {
      const { bytes } = golden(sample);
      assert.equal(Buffer.from(frameOf(sample)).toString('hex'), bytes);
      const received = receive(sample, Buffer.from(bytes, 'hex'));
      assert.equal(received.rule, '');
      assert.deepEqual(plain(received.value), plain(sample.value));
      assert.deepEqual(Buffer.from(received.bodies ?? []), Buffer.from(sample.bodies));
    });

    test('decodes to what was encoded', () => {
      fc.assert(fc.property(sample.arbitrary, (value) => {
        const control = sample.encode(packer, value);
        assert.equal(checkControl(control), '');
        const decoded = sample.decode(packer, control);
        assert.ok(!isInvalid(decoded), isInvalid(decoded) ? decoded.rule : '');
        assert.deepEqual(plain(decoded), plain(value));
      }), { numRuns: 200, seed: 1 });
    });

    test('is refused by a named rule when its control part is cut short anywhere', () => {
      const control = sample.encode(packer, sample.value);
      for (let length = 0; length < control.length; length++) {
        const cut = control.subarray(0, length);
        assert.notEqual(checkControl(cut), '', `check at ${length}`);
        const decoded = sample.decode(packer, cut);
        assert.ok(isInvalid(decoded) && decoded.rule !== '', `decode at ${length}`);
        // The same in a frame that is sound but for that.
        assert.notEqual(receive(sample, encodeFrame(sample.type, sample.sequence, cut, crc32)).rule, '');
      }
    });

    test('is refused by a named rule when any byte of its header or control part is changed', () => {
      const frame = Buffer.from(frameOf(sample));
      const end = frame.length - sample.bodies.length;
      for (let at = 0; at < end; at++) {
        for (const flip of [1, 2, 4, 8, 16, 32, 64, 128, 255]) {
          frame[at] = (frame[at] ?? 0) ^ flip;
          const { rule } = receive(sample, frame);
          frame[at] = (frame[at] ?? 0) ^ flip;
          assert.ok(rule !== '' && rule !== 'incomplete', `byte ${at} ^ ${flip}: ${rule}`);
        }
      }
    });

    test('never throws on a control part with a changed byte under a right checksum', () => {
      const control = Buffer.from(sample.encode(packer, sample.value));
      for (let at = 0; at < control.length; at++) {
        const original = control[at] ?? 0;
        for (let value = 0; value < 256; value++) {
          control[at] = value;
          const result = judge(sample, control, sample.bodies);
          // What is still valid must be a value that can be sent again.
          if (result.rule === '') assert.equal(judge(sample, sample.encode(packer, result.value), sample.bodies).rule, '');
        }
        control[at] = original;
      }
    });
  });
}

test('frames end where the next begins: all samples in one chunk come out one by one', () => {
  const stream = Buffer.concat(SAMPLES.map((sample) => frameOf(sample)));
  const seen: number[] = [];
  new FrameReader({ frameBytesMax: FRAME_BYTES_MAX }, { crc32 }).push(stream, {
    onFrame: (type, _sequence, control) => {
      assert.ok(control.byteLength > 0 && control.buffer === stream.buffer, 'a view of the chunk');
      seen.push(type);
    },
    onInvalid: (rule) => assert.fail(rule),
  });
  assert.deepEqual(seen, SAMPLES.map((sample) => sample.type));
  assert.equal(HEADER_BYTES, 24);
});
