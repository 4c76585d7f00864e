/**
 * Whom a store tells to have written the set of a copy, or to fill it, in answer to a claim (docs/PROTOCOL.md "Claims").
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { GatewayAccount } from '../../../../src/kvs/core/accounts.js';
import { claimedOf } from '../../../../src/kvs/core/claimed-of.js';
import type { MirroredQueue } from '../../../../src/kvs/core/mirrored-queue.js';
import type { Store } from '../../../../src/kvs/core/store.js';
import { CLAIM_TOKEN_LOW, ROLE_FILLING, ROLE_MEMBER } from '../../../../src/protocol/reasons.js';
import { accountOf, change, newStore, openQueue, settingMembers, storing } from './section-kit.js';

const AFTER_GRACE_MS = 20_000;

class Story {
  readonly store: Store = newStore();
  readonly owner: GatewayAccount = accountOf(this.store);
  readonly rescue: GatewayAccount = accountOf(this.store, 'g2');
  readonly queue: MirroredQueue;

  constructor() {
    this.owner.admit(10, new Uint8Array([1]), this.store.admission);
    this.rescue.admit(10, new Uint8Array([1]), this.store.admission);
    this.queue = openQueue(this.store, 1, 'g1', 1, ['g2']);
  }

  /** Another process of the owner has come. */
  next(): void {
    this.owner.admit(this.owner.incarnation + 1, new Uint8Array([2]), this.store.admission);
  }

  opens(account: GatewayAccount): void {
    assert.equal(this.store.open(account, { attributes: this.queue.attributes, epoch: 0, members: [] }).reason, 0);
  }

  claims(account: GatewayAccount, token: number): void {
    assert.equal(this.store.claim(account, this.queue, token, AFTER_GRACE_MS).result, 0);
  }

  /** To g2, as an answer to a probe. */
  get told(): string {
    const { writer } = claimedOf(this.store, this.rescue, 1, this.queue, { result: CLAIM_TOKEN_LOW, waitMs: 0 }, AFTER_GRACE_MS);
    return writer === undefined ? 'not told' : `${writer.gatewayId}/${String(writer.incarnation)}`;
  }
}

describe('the writer that a store tells', () => {
  test('of a member is the process that wrote its set; who attaches it, or adds to it, is not', () => {
    const story = new Story();
    assert.equal(story.told, 'g1/10');
    story.next();
    story.opens(story.owner);
    assert.equal(change(story.store, story.queue, storing(1, 'a')), 0);
    assert.deepEqual([story.queue.role, story.told], [ROLE_MEMBER, 'g1/10']);
    assert.equal(change(story.store, story.queue, settingMembers(2, ['store-a'])), 0);
    assert.equal(story.told, 'g1/11');
  });

  test('of a copy that is being filled is who began that; not who only attaches it', () => {
    const story = new Story();
    story.store.fillAnew(story.owner, story.queue, 3, 1, 2);
    story.next();
    story.opens(story.owner);
    assert.deepEqual([story.queue.role, story.told], [ROLE_FILLING, 'g1/10']);
    story.store.fillAnew(story.owner, story.queue, 5, 1, 2);
    assert.equal(story.told, 'g1/11');
  });

  test('is none after a claim of another process, until that is released as unused', () => {
    const story = new Story();
    story.next();
    story.claims(story.owner, 20);
    assert.equal(story.told, '/0');
    story.store.release(story.owner, story.queue, 20, false);
    assert.equal(story.told, '/0');
    story.store.release(story.owner, story.queue, 20, true);
    assert.equal(story.told, 'g1/10');
  });

  test('is not told to a gateway of version 1, nor of a queue that is not known', () => {
    const story = new Story();
    story.rescue.version = 1;
    assert.equal(story.told, 'not told');
    assert.deepEqual(claimedOf(story.store, story.owner, 1, undefined, { result: 1, waitMs: 0 }, AFTER_GRACE_MS).writer, { gatewayId: '', incarnation: 0 });
  });
});
