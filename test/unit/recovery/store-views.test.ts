/** Whose lists recovery has heard since when (src/recovery/store-views.ts). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MessagePacker } from '../../../src/platform/node/packer.js';
import type { RecoveryStore } from '../../../src/recovery/queue-job.js';
import type { KnownStore } from '../../../src/recovery/store-views.js';
import { StoreViews } from '../../../src/recovery/store-views.js';

class Lists {
  nowMs = 0;
  readonly packer = new MessagePacker();
  readonly views = new StoreViews('gw-1', this.packer, () => this.nowMs);
  isUp = true;

  constructor() {
    const isUp = (): boolean => this.isUp;
    const store: RecoveryStore = {
      storeId: 'store-a', bootId: 'x', version: 2, leaseMs: 1000, graceMs: 0,
      get isUp() { return isUp(); },
      flush: () => {}, request: () => 1,
    };
    this.views.add(store);
  }

  get view(): KnownStore {
    return this.views.get('store-a') ?? assert.fail('it was added');
  }

  told(): void {
    this.views.onListed({ storeId: 'store-a' }, { next: 0, complete: true, rows: [] });
  }
}

describe('what a list says', () => {
  test('is of the moment at which it was asked for', () => {
    const lists = new Lists();
    assert.equal(lists.views.haveTold('gw-1', -Infinity), false, 'nothing was told yet');
    lists.nowMs = 10;
    lists.views.list(lists.view, false);
    lists.nowMs = 20;
    lists.told();
    assert.deepEqual([9, 10, 15].map((sinceMs) => lists.views.haveTold('gw-1', sinceMs)), [true, false, false]);
  });

  test('is of this owner\'s queues only, or of all', () => {
    const lists = new Lists();
    lists.views.list(lists.view, false);
    lists.told();
    assert.deepEqual(['gw-1', 'gw-2'].map((ownerId) => lists.views.haveTold(ownerId, -1)), [true, false]);
    lists.views.list(lists.view, true);
    lists.told();
    assert.deepEqual(['gw-1', 'gw-2'].map((ownerId) => lists.views.haveTold(ownerId, -1)), [true, true]);
  });

  test('is not waited for when the store has been silent for long: it may never come back', () => {
    const lists = new Lists();
    lists.isUp = false;
    lists.nowMs = 1000;
    lists.views.onDown({ storeId: 'store-a' });
    lists.nowMs += 599_999;
    assert.equal(lists.views.haveTold('gw-1', -Infinity), false);
    lists.nowMs += 1;
    assert.equal(lists.views.haveTold('gw-1', -Infinity), true);
    lists.isUp = true;
    assert.equal(lists.views.haveTold('gw-1', -Infinity), false, 'back, it is asked');
  });

  test('is waited for while a store that is back under another boot has told none, though it told one before', () => {
    const lists = new Lists();
    lists.nowMs = 10;
    lists.views.list(lists.view, true);
    lists.told();
    assert.equal(lists.views.haveTold('gw-1', 5), true);
    lists.isUp = false;
    lists.views.onDown({ storeId: 'store-a' });
    lists.nowMs += 600_000;
    assert.equal(lists.views.haveTold('gw-1', 5), true, 'silent for long');
    // As recovery notes a new boot.
    lists.isUp = true;
    lists.view.listed = false;
    assert.equal(lists.views.haveTold('gw-1', 5), false);
    lists.views.list(lists.view, true);
    lists.told();
    assert.equal(lists.views.haveTold('gw-1', 5), true);
  });
});
