import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Attachment } from '../../../../src/kvs/core/attachment.js';
import {
  CLAIM_DENIED, CLAIM_GRACE, CLAIM_GRANTED, CLAIM_LEASE_RUNS, CLAIM_TOKEN_LOW, CLAIM_UNKNOWN, REFUSAL_DENIED, REFUSAL_FENCED,
} from '../../../../src/protocol/reasons.js';
import { accountOf, newStore, openQueue } from './section-kit.js';

const LEASE_MS = 10_000;

describe('a claim', () => {
  test('by a rescue waits for the first lease period, then for the lease of the holder', () => {
    const store = newStore();
    const queue = openQueue(store, 1, 'g1', 1, ['g2']);
    const rescue = accountOf(store, 'g2');
    store.heartbeat(accountOf(store), 8_000);
    assert.deepEqual(store.claim(rescue, queue, 5, 4_000), { result: CLAIM_GRACE, waitMs: 6_000 });
    assert.deepEqual(store.claim(rescue, queue, 5, LEASE_MS), { result: CLAIM_LEASE_RUNS, waitMs: 8_000 });
    assert.equal(queue.holder, 'g1');
    assert.deepEqual(store.claim(rescue, queue, 5, 18_000), { result: CLAIM_GRANTED, waitMs: 0 });
    assert.equal(queue.holder, 'g2');
  });

  test('ends every right of the old holder, also under a handle it has', () => {
    const store = newStore();
    const queue = openQueue(store, 1, 'g1', 1, ['g2']);
    const handle = new Attachment(1, queue);
    assert.equal(store.checkHolder(accountOf(store), handle), 0);
    store.claim(accountOf(store, 'g2'), queue, 5, LEASE_MS);
    assert.equal(store.checkHolder(accountOf(store), handle), REFUSAL_FENCED);
    const again = store.open(accountOf(store), { attributes: queue.attributes, epoch: 1, members: [] });
    assert.equal(again.reason, REFUSAL_FENCED);
  });

  test('by the next incarnation of a holder, too, waits for the first lease period, unless nobody else may claim', () => {
    // A displaced owner has filled this store after its restart; the rescue still has a lease of the boot before.
    const store = newStore();
    const queue = openQueue(store, 1, 'g1', 1, ['g2']);
    assert.deepEqual(store.claim(accountOf(store), queue, 7, 4_000), { result: CLAIM_GRACE, waitMs: 6_000 });
    assert.equal(store.claim(accountOf(store), queue, 0, 4_000).result, CLAIM_GRACE);
    assert.equal(store.claim(accountOf(store), queue, 7, LEASE_MS).result, CLAIM_GRANTED);
    const alone = openQueue(store, 2);
    assert.equal(store.claim(accountOf(store), alone, 7, 1).result, CLAIM_GRANTED);
  });

  test('is needed by an owner that has its queue back, changed or not', () => {
    const store = newStore();
    const queue = openQueue(store, 1, 'g1', 1, ['g2']);
    const owner = accountOf(store);
    const rescue = accountOf(store, 'g2');
    const handle = new Attachment(1, queue);
    const open = (): number => store.open(owner, { attributes: queue.attributes, epoch: 1, members: [] }).reason;
    store.claim(owner, queue, 3, LEASE_MS);
    store.claim(rescue, queue, 5, LEASE_MS);
    store.release(rescue, queue, 5, false);
    assert.deepEqual([open(), store.checkHolder(owner, handle)], [REFUSAL_FENCED, REFUSAL_FENCED], 'what happened at other mirrors is not known here');
    store.claim(rescue, queue, 6, LEASE_MS);
    store.beginRefill(queue, queue.number + 1, 7, 7);
    store.release(rescue, queue, 6, false);
    assert.deepEqual([open(), store.checkHolder(owner, handle)], [REFUSAL_FENCED, REFUSAL_FENCED]);
    assert.equal(store.claim(owner, queue, 3, LEASE_MS).result, CLAIM_TOKEN_LOW, 'its old token is worth nothing');
    assert.equal(store.claim(owner, queue, 7, LEASE_MS).result, CLAIM_GRANTED);
    assert.deepEqual([open(), store.checkHolder(owner, handle)], [0, 0]);
  });

  test('that took a queue from another rescue gives it back to the owner', () => {
    const store = newStore();
    const queue = openQueue(store, 1, 'g1', 1, ['g2', 'g3']);
    const [first, second] = [accountOf(store, 'g2'), accountOf(store, 'g3')];
    store.claim(first, queue, 5, LEASE_MS);
    store.claim(second, queue, 6, LEASE_MS);
    store.heartbeat(first, LEASE_MS);
    store.release(second, queue, 6, false);
    assert.equal(queue.holder, 'g1');
    assert.equal(store.checkHolder(accountOf(store), new Attachment(1, queue)), REFUSAL_FENCED, 'not without a claim');
    assert.equal(store.claim(accountOf(store), queue, 8, LEASE_MS).result, CLAIM_GRANTED, 'though the rescue before has a lease');
  });

  test('by the owner under a higher incarnation is granted at once, by others never', () => {
    const store = newStore();
    const queue = openQueue(store);
    store.heartbeat(accountOf(store), 0);
    assert.equal(store.claim(accountOf(store), queue, 7, 1).result, CLAIM_GRANTED);
    assert.equal(store.claim(accountOf(store), queue, 7, 2).result, CLAIM_GRANTED, 'asked again with its own token');
    assert.equal(store.claim(accountOf(store), queue, 6, 2).result, CLAIM_TOKEN_LOW);
    assert.equal(store.claim(accountOf(store, 'g2'), queue, 9, 99_999).result, CLAIM_DENIED);
    assert.equal(store.claim(accountOf(store), undefined, 9, 0).result, CLAIM_UNKNOWN);
    assert.equal(store.open(accountOf(store, 'g2'), { attributes: queue.attributes, epoch: 1, members: [] }).reason, REFUSAL_DENIED);
  });

  test('of a displaced owner waits for the lease of the rescue', () => {
    const store = newStore();
    const queue = openQueue(store, 1, 'g1', 1, ['g2']);
    store.claim(accountOf(store, 'g2'), queue, 5, LEASE_MS);
    store.heartbeat(accountOf(store, 'g2'), LEASE_MS);
    assert.equal(store.claim(accountOf(store), queue, 6, LEASE_MS + 1).result, CLAIM_LEASE_RUNS);
    assert.equal(store.claim(accountOf(store), queue, 6, 2 * LEASE_MS).result, CLAIM_GRANTED);
  });

  test('of a queue that was created for another gateway is given back to that one', () => {
    const store = newStore();
    const attributes = { ...openQueue(store, 1, 'g1', 1, ['g2']).attributes, serial: 77 };
    const rescue = accountOf(store, 'g2');
    const { queue } = store.open(rescue, { attributes, epoch: 1, members: [] });
    assert.ok(queue !== undefined);
    store.release(rescue, queue, queue.holderToken, false);
    assert.equal(queue.holder, 'g1');
    assert.equal(store.claim(accountOf(store), queue, 9, LEASE_MS).result, CLAIM_GRANTED, 'though the one that released it still has a lease');
    store.release(accountOf(store), queue, 9, false);
    assert.equal(queue.holder, 'g1', 'an owner that nobody was before keeps it');
  });

  test('is given back by a release to the owner, and its token stays used', () => {
    const store = newStore();
    const queue = openQueue(store, 1, 'g1', 1, ['g2', 'g3']);
    const rescue = accountOf(store, 'g2');
    store.claim(rescue, queue, 5, LEASE_MS);
    assert.equal(store.confirm(rescue, queue, 5, LEASE_MS).result, CLAIM_GRANTED);
    store.release(rescue, queue, 4, false);
    store.release(accountOf(store, 'g3'), queue, 5, false);
    assert.equal(queue.holder, 'g2', 'a release of another claim changes nothing');
    store.release(rescue, queue, 5, false);
    assert.equal(queue.holder, 'g1');
    assert.equal(store.confirm(rescue, queue, 5, LEASE_MS).result, CLAIM_TOKEN_LOW);
    assert.equal(store.claim(rescue, queue, 5, LEASE_MS).result, CLAIM_TOKEN_LOW);
    assert.equal(store.claim(rescue, queue, 6, LEASE_MS).result, CLAIM_GRANTED);
  });
});

describe('a probe (token 0)', () => {
  test('tells what stands in the way, then the highest token, and changes nothing', () => {
    const store = newStore();
    const queue = openQueue(store, 1, 'g1', 1, ['g2']);
    const rescue = accountOf(store, 'g2');
    store.heartbeat(accountOf(store), 8_000);
    assert.deepEqual(store.claim(rescue, queue, 0, 4_000), { result: CLAIM_GRACE, waitMs: 6_000 });
    assert.deepEqual(store.claim(rescue, queue, 0, 17_999.5), { result: CLAIM_LEASE_RUNS, waitMs: 1 });
    assert.deepEqual(store.claim(rescue, queue, 0, 18_000), { result: CLAIM_TOKEN_LOW, waitMs: 0 });
    assert.deepEqual([queue.holder, queue.holderToken, queue.highestToken], ['g1', 0, 0]);
    assert.deepEqual(store.claim(accountOf(store), queue, 0, 10_001), { result: CLAIM_TOKEN_LOW, waitMs: 0 }, 'the holder waits for no lease, and a token 0 is no repeat');
    assert.equal(store.claim(accountOf(store, 'g3'), queue, 0, 99_999).result, CLAIM_DENIED);
    assert.equal(store.claim(rescue, undefined, 0, 0).result, CLAIM_UNKNOWN, 'a store that came back empty knows no claim');
    assert.equal(store.claim(rescue, queue, 1, 18_000).result, CLAIM_GRANTED);
  });
});

describe('a CONFIRM', () => {
  test('tells a holder that is not the owner how long the lease of the owner runs', () => {
    const store = newStore();
    const queue = openQueue(store, 1, 'g1', 1, ['g2']);
    const rescue = accountOf(store, 'g2');
    store.claim(rescue, queue, 5, LEASE_MS);
    assert.deepEqual(store.confirm(rescue, queue, 5, LEASE_MS + 1), { result: CLAIM_GRANTED, waitMs: 0 });
    store.heartbeat(accountOf(store), LEASE_MS + 2);
    assert.deepEqual(store.confirm(rescue, queue, 5, LEASE_MS + 1_002), { result: CLAIM_GRANTED, waitMs: LEASE_MS - 1_000 });
    store.heartbeat(rescue, LEASE_MS + 2);
    store.claim(accountOf(store), queue, 6, 3 * LEASE_MS);
    store.heartbeat(accountOf(store), 3 * LEASE_MS);
    assert.deepEqual(store.confirm(accountOf(store), queue, 6, 3 * LEASE_MS), { result: CLAIM_GRANTED, waitMs: 0 }, 'of the owner it says nothing');
    assert.equal(store.confirm(rescue, queue, 5, 3 * LEASE_MS).result, CLAIM_TOKEN_LOW);
  });
});

describe('an incarnation', () => {
  test('is fenced when lower, or equal with another nonce', () => {
    const store = newStore();
    const account = accountOf(store);
    assert.equal(account.admit(5, new Uint8Array([1]), store.admission), true);
    assert.equal(account.admit(4, new Uint8Array([1]), store.admission), false);
    assert.equal(account.admit(5, new Uint8Array([2]), store.admission), false);
    assert.equal(account.admit(5, new Uint8Array([1]), store.admission), true);
  });

  test('that is newer fences the open connections of the older', () => {
    const store = newStore();
    const account = accountOf(store);
    const said: string[] = [];
    const connection = { incarnation: 5, fence: () => { said.push('fenced'); }, demote: () => { said.push('demoted'); } };
    account.admit(5, new Uint8Array([1]), store.admission);
    account.connections.add(connection);
    assert.equal(account.activate(connection, 3), true);
    const second = { ...connection };
    assert.equal(account.activate(second, 2), false, 'a lower generation stands by');
    assert.equal(account.activate(second, 4), true);
    assert.deepEqual(said, ['demoted']);
    account.admit(6, new Uint8Array([1]), store.admission);
    assert.deepEqual(said, ['demoted', 'fenced']);
  });
});
