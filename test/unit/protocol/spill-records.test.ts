/** Records of a spill file: what was encoded comes back, and whatever else stands there is a named rule. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { MessagePacker } from '../../../src/platform/node/packer.js';
import { checkControl } from '../../../src/protocol/bounds.js';
import { InvalidMessage, isInvalid } from '../../../src/protocol/invalid.js';
import { NOTICES_MAX } from '../../../src/protocol/messages/beat.js';
import * as spill from '../../../src/protocol/spill-records.js';

const packer = new MessagePacker();
const TERM = { number: 7, nonce: 4_294_967_299 };
const HOLDER = { gatewayId: 'gw-2', incarnation: 12 };
const TOLD = { epoch: 9, term: TERM, holder: HOLDER, members: [{ storeId: 'store-a', bootId: 'b' }], gaveUp: [{ storeId: 'store-b', bootId: 'c', epoch: 8 }], left: [{ storeId: 'store-c', bootId: 'd' }], line: [] };
const HEAD: spill.SpillHead = { storeId: 'store-a', wallMs: 1_750_000_000_000, bootId: '0123456789abcdef'.repeat(2), longestLeaseMs: 10_000, bornNs: '1795701634528924446' };

interface Case {
  readonly name: string;
  readonly control: Uint8Array;
  readonly value: unknown;
  decode(control: Uint8Array): unknown;
}

const CASES: readonly Case[] = [
  { name: 'head', control: spill.encodeHead(packer, HEAD), value: HEAD, decode: (control) => spill.decodeHead(packer, control) },
  {
    name: 'account', value: { id: 'gw-1', incarnation: 11, nonce: Uint8Array.of(1, 2) },
    control: spill.encodeAccount(packer, { id: 'gw-1', incarnation: 11, nonce: Uint8Array.of(1, 2) }), decode: (control) => spill.decodeAccount(packer, control),
  },
  {
    name: 'process', value: { process: 'gw-1.11', fenceCount: 3, fences: [{ count: 3, partition: 'gw-1/3', term: TERM }] },
    control: spill.encodeProcess(packer, { process: 'gw-1.11', fenceCount: 3, fences: [{ count: 3, partition: 'gw-1/3', term: TERM }] }),
    decode: (control) => spill.decodeProcess(packer, control),
  },
  ...[{ holder: HOLDER, told: TOLD }, { holder: undefined, told: undefined }].map((some) => ({
    name: some.told === undefined ? 'fence without holder or record' : 'fence', value: { partition: 'gw-1/3', term: TERM, ...some },
    control: spill.encodeSpilledFence(packer, { partition: 'gw-1/3', term: TERM, ...some }), decode: (control: Uint8Array) => spill.decodeSpilledFence(packer, control),
  })),
  {
    name: 'copy', value: { partition: 'gw-1/3', number: 44, digestA: 1, digestB: 2, lastTerm: TERM, count: 17 },
    control: spill.encodeCopy(packer, { partition: 'gw-1/3', number: 44, digestA: 1, digestB: 2, lastTerm: TERM, count: 17 }),
    decode: (control) => spill.decodeCopy(packer, control),
  },
];

describe('a record of a spill file', () => {
  for (const { name, control, value, decode } of CASES) {
    test(`${name}: comes back as it was, within the bounds of a control part`, () => {
      assert.equal(checkControl(control), '');
      assert.deepEqual(decode(control), value);
    });

    test(`${name}: with an element that is none of its kind, or cut short, is a named rule`, () => {
      const right = packer.unpack(control) as unknown[];
      for (let i = 0; i < right.length; i++) {
        for (const wrong of [null, -1, 0.5, [null], [[null]]]) assert.ok(decode(packer.pack(right.with(i, wrong))) instanceof InvalidMessage, `element ${String(i)}: ${String(wrong)}`);
      }
      for (let end = 0; end < control.length; end++) assert.ok(decode(control.subarray(0, end)) instanceof InvalidMessage, `${String(end)} bytes`);
    });

    test(`${name}: never throws, whatever bytes stand there`, () => {
      fc.assert(fc.property(fc.nat(control.length - 1), fc.nat(255), (at, byte) => {
        const changed = Uint8Array.from(control);
        changed[at] = byte;
        decode(changed);
      }), { numRuns: 500, seed: 3 });
    });
  }

  test('head: of another release says so, whatever follows', () => {
    const read = spill.decodeHead(packer, packer.pack(['twinpost spill', 1, 'store-a', 0]));
    assert.ok(isInvalid(read));
    assert.match(read.rule, /another release/);
  });

  test('copy: has no more entries than changes', () => {
    const copy = { partition: 'gw-1/3', number: 4, digestA: 1, digestB: 2, lastTerm: TERM, count: 5 };
    const read = spill.decodeCopy(packer, spill.encodeCopy(packer, copy));
    assert.ok(isInvalid(read) && read.rule === 'count');
  });

  test('end: totals that do not agree are a rule', () => {
    const end = spill.encodeEnd(packer, 1, 2, 3);
    assert.equal(spill.checkEnd(packer, end, 1, 2, 3), '');
    for (const [fences, copies, entries] of [[2, 2, 3], [1, 3, 3], [1, 2, 4]] as const) assert.equal(spill.checkEnd(packer, end, fences, copies, entries), 'totals');
  });

  test('a process that has very many fences to hear of has several records, none too long', () => {
    const fences = Array.from({ length: 2 * NOTICES_MAX + 1 }, (_none, i) => ({ count: i + 1, partition: `gw-1/${String(i % 4096)}`, term: TERM }));
    const parts = [...spill.processRecords({ process: 'gw-1.11', fenceCount: fences.length, fences })];
    assert.deepEqual(parts.map((part) => part.fences.length), [NOTICES_MAX, NOTICES_MAX, 1]);
    for (const part of parts) assert.deepEqual(spill.decodeProcess(packer, spill.encodeProcess(packer, part)), part);
    assert.equal([...spill.processRecords({ process: 'gw-1.11', fenceCount: 4, fences: [] })].length, 1, 'its count matters also when it has heard of all');
  });
});
