/** The set of stores that SET_MEMBERS carries. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MessagePacker } from '../../../src/platform/node/packer.js';
import { MEMBERS_MAX } from '../../../src/protocol/fields.js';
import { decodeMembers, encodeMembers } from '../../../src/protocol/members.js';

const packer = new MessagePacker();
const BOTH = ['store-a', 'store-b'];

test('members are an array of store ids', () => {
  const bytes = encodeMembers(packer, BOTH).slice();
  assert.equal(Buffer.from(bytes).toString('hex'), '92a773746f72652d61a773746f72652d62');
  assert.deepEqual(decodeMembers(packer, bytes), BOTH);
  assert.deepEqual(decodeMembers(packer, encodeMembers(packer, [])), []);
});

test('bytes that are cut short, name a store twice, or too many, are no members', () => {
  const bytes = encodeMembers(packer, BOTH).slice();
  for (let end = 0; end < bytes.length; end++) assert.equal(decodeMembers(packer, bytes.subarray(0, end)), undefined, `${String(end)} bytes`);
  const many = Array.from({ length: MEMBERS_MAX + 1 }, (_, i) => `store-${String(i)}`);
  assert.deepEqual(decodeMembers(packer, encodeMembers(packer, many.slice(1))), many.slice(1));
  for (const other of [7, 'store-a', ['store-a', 'store-a'], [''], [7], many]) assert.equal(decodeMembers(packer, packer.pack(other)), undefined);
});
