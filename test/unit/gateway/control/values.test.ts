/** The bytes of records in the control queue: they are read back as written, and damaged ones are said to be so. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeHold, encodeHold } from '../../../../src/gateway/control/hold-record.js';
import { decodeRecordHead, encodeRecordHead } from '../../../../src/gateway/control/record-head.js';
import { MessagePacker } from '../../../../src/platform/node/packer.js';

const packer = new MessagePacker();
const VALUE = Uint8Array.of(1, 2, 3);
const HOLD = { who: 'ann', reason: 'asked by its sender', wallMs: 1_800_000_000_000 };

test('a record is a version, and an array of its name and value', () => {
  const head = encodeRecordHead(packer, 'drained', VALUE);
  assert.equal(Buffer.from(head).toString('hex'), '0192a7647261696e6564c403010203');
  assert.deepEqual(decodeRecordHead(packer, head), { name: 'drained', value: VALUE });
});

test('the value of a record that was read is its own: the head may go', () => {
  const head = encodeRecordHead(packer, 'drained', VALUE);
  const read = decodeRecordHead(packer, head);
  head.fill(0);
  assert.deepEqual(read?.value, VALUE);
});

test('a record that is cut short, of another version or no array of name and value is none', () => {
  const head = encodeRecordHead(packer, 'drained', VALUE);
  for (let end = 0; end < head.length; end++) assert.equal(decodeRecordHead(packer, head.subarray(0, end)), undefined, `${String(end)} bytes`);
  assert.equal(decodeRecordHead(packer, Uint8Array.from([2, ...head.subarray(1)])), undefined);
  for (const other of [7, ['drained'], [VALUE, 'drained']]) {
    assert.equal(decodeRecordHead(packer, Uint8Array.from([1, ...packer.pack(other)])), undefined);
  }
});

test('a hold is an array of who, why and when; bytes that are none are said to be so', () => {
  const bytes = encodeHold(packer, HOLD).slice();
  assert.equal(Buffer.from(bytes).toString('hex'), '93a3616e6eb361736b6564206279206974732073656e646572cb427a3185c5000000');
  assert.deepEqual(decodeHold(packer, bytes), HOLD);
  for (let end = 0; end < bytes.length; end++) assert.equal(decodeHold(packer, bytes.subarray(0, end)), undefined, `${String(end)} bytes`);
  for (const other of [7, ['ann', 'why'], ['ann', 7, 7], [7, 'why', 7]]) assert.equal(decodeHold(packer, packer.pack(other)), undefined);
});
