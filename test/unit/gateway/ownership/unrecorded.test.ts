/** Which partitions that a store lists are met though the register does not lead to them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Mirrors } from '../../../../src/gateway/mirror/mirrors.js';
import type { MetPartition } from '../../../../src/gateway/ownership/ownership-register.js';
import { UnrecordedPartitions } from '../../../../src/gateway/ownership/unrecorded.js';
import { MessagePacker } from '../../../../src/platform/node/packer.js';

const NAME = 'gw-9/0';
const FIRST_MS = 5_000;

/** store-a is known, and has a copy of NAME that counts; what is met, by what the register has of it. */
function metBy(inRegister: Omit<MetPartition, 'partition'> | undefined, givenUp = ''): MetPartition[] {
  const store = { storeId: 'store-a', bootId: '01', isUp: true, request: () => 1 };
  const unrecorded = new UnrecordedPartitions({
    packer: new MessagePacker(),
    mirrors: {
      stores: [store], askFlush: () => undefined,
      storeOf: (storeId: string) => (storeId === store.storeId ? store : undefined),
    } as unknown as Mirrors,
    register: {
      partition: (partition) => (inRegister === undefined ? undefined : { partition, ...inRegister }),
      givenUp: () => new Map([[givenUp, [{ partition: NAME, epoch: 1, nonce: 1, line: [] }]]]),
    },
  });
  unrecorded.tick(0);
  unrecorded.tick(FIRST_MS);
  unrecorded.onListed(store as unknown as Mirrors['stores'][number], { after: '', partitions: [NAME], isLast: true });
  return [...unrecorded.met()];
}

test('what the register has no record of is met where its copies are', () => {
  assert.deepEqual(metBy(undefined), [{ partition: NAME, stores: ['store-a'], isEnded: false }]);
});

test('what it leads to is left to the register', () => {
  assert.deepEqual(metBy({ stores: ['store-a', 'store-x'], isEnded: false }), []);
  assert.deepEqual(metBy({ stores: [], isEnded: false }), [], 'it is in a process\'s memory');
});

test('a record that was put back, and names only stores that are known no more, does not hide where its copies are', () => {
  assert.deepEqual(metBy({ stores: ['store-x'], isEnded: false }), [{ partition: NAME, stores: ['store-a'], isEnded: false }]);
});

test('what has ended is told of its end', () => {
  assert.deepEqual(metBy({ stores: ['store-x'], isEnded: true }), []);
});

test('a store that was given up for its end is told that first; what another store has of it is met', () => {
  assert.deepEqual(metBy(undefined, 'store-a'), []);
  assert.deepEqual(metBy(undefined, 'store-b'), [{ partition: NAME, stores: ['store-a'], isEnded: false }]);
});
