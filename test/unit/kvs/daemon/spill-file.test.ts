import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import fc from 'fast-check';
import type { MirroredQueue } from '../../../../src/kvs/core/mirrored-queue.js';
import type { Store } from '../../../../src/kvs/core/store.js';
import { loadSpillFile, spillFileName, writeSpillFile } from '../../../../src/kvs/daemon/spill-file.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import { SystemClock } from '../../../../src/platform/node/clock.js';
import type { EventLog, LogFields } from '../../../../src/platform/ports.js';
import { FLAG_BODY_ABSENT, FLAG_SHARED } from '../../../../src/protocol/change-rows.js';
import { CLAIM_GRANTED, CLAIM_TOKEN_LOW, REFUSAL_EPOCH, ROLE_FILLING, ROLE_MEMBER, ROLE_NONE, ROLE_SPILLED } from '../../../../src/protocol/reasons.js';
import { accountOf, annotating, change, deleting, newStore, openQueue, packer, pullAll, settingMembers, storing } from '../core/section-kit.js';

interface Bench {
  readonly file: string;
  readonly folder: string;
  readonly errors: LogFields[];
  write(store: Store): Promise<boolean>;
  load(options?: { memoryLimitBytes?: number; gateways?: readonly string[] }): Promise<Store>;
}

function bench(t: TestContext): Bench {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-spill-'));
  t.after(() => { rmSync(folder, { recursive: true, force: true }); });
  const errors: LogFields[] = [];
  const log: EventLog = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: (_event, _text, fields) => { errors.push(fields ?? {}); } };
  const ports = { crc32, packer, clock: new SystemClock(), log };
  const file = spillFileName(folder, 'store-a');
  return {
    file, folder, errors,
    write: (store) => writeSpillFile(file, store, ports),
    load: async (options = {}) => (await loadSpillFile(file, () => newStore(options), ports)).store,
  };
}

/** All that must come back. */
function shown(store: Store, queue: MirroredQueue | undefined): unknown {
  assert.ok(queue !== undefined);
  const { number, digestA, digestB, epoch, members, holder, holderToken, highestToken, count, bytes, attributes } = queue;
  return { number, digestA, digestB, epoch, members, holder, holderToken, highestToken, count, bytes, attributes, entries: pullAll(store, queue) };
}

function smallStore(): { store: Store; queue: MirroredQueue } {
  const store = newStore();
  accountOf(store).admit(7, new Uint8Array(8).fill(3), store.admission);
  const queue = openQueue(store, 1, 'g1', 1, ['g2']);
  change(store, queue, storing(1, 'body one', 'h1'), storing(2, 'two', 'h2'), storing(3, '', ''), annotating(2, 'a note'), deleting(1));
  return { store, queue };
}

describe('a spill file', () => {
  test('brings back queues, numbers, digests, claims, entries, notes and shared bodies', async (t) => {
    const { file, write, load, errors } = bench(t);
    const { store, queue } = smallStore();
    const other = openQueue(store, 2);
    change(store, other, storing(9, 'shared body', 'x', FLAG_SHARED), storing(5, 'own', 'y'));
    const third = openQueue(store, 3);
    change(store, third, storing(9, 'shared body', 'z', FLAG_SHARED | FLAG_BODY_ABSENT), settingMembers(2, ['store-a']));
    store.claim(accountOf(store, 'g2'), queue, 9, 20_000);
    const away = openQueue(store, 4);
    change(store, away, storing(1, 'not a member any more'), settingMembers(2, ['store-b']));
    const filling = openQueue(store, 5);
    store.beginRefill(filling, 7, 1, 2);
    assert.equal(await write(store), true);
    assert.equal(readFileSync(file).toString('latin1').split('shared body').length, 2, 'the shared body stands there once');
    const back = await load();
    assert.deepEqual(errors, []);
    for (const serial of [1, 2, 3, 4]) {
      const now = back.queues.find('g1', 1, serial);
      assert.deepEqual(shown(back, now), shown(store, store.queues.find('g1', 1, serial)));
      assert.equal(now?.role, ROLE_SPILLED);
    }
    assert.deepEqual(back.queues.find('g1', 1, 4)?.members, ['store-b'], 'it had left the set: good for a tail');
    assert.equal(back.queues.find('g1', 1, 5), undefined, 'it has holes');
    assert.equal(back.shared.count, 1);
    assert.equal(back.entries.count, 6);
    assert.ok(!existsSync(file) && existsSync(`${file}.used`), 'used once');
    assert.equal((await load()).queues.count, 0);
  });

  test('tells of a queue that was given back: its owner must claim it first', async (t) => {
    const { write, load } = bench(t);
    const store = newStore();
    const queue = openQueue(store, 1, 'g1', 1, ['g2']);
    change(store, queue, storing(1, 'x'));
    store.claim(accountOf(store, 'g2'), queue, 9, 20_000);
    store.release(accountOf(store, 'g2'), queue, 9, false);
    await write(store);
    const back = (await load()).queues.find('g1', 1, 1);
    assert.deepEqual([back?.holder, back?.highestToken, back?.mustClaim], ['g1', 9, true]);
  });

  test('comes back the same whatever was stored', async (t) => {
    const { write, load } = bench(t);
    await fc.assert(fc.asyncProperty(fc.array(fc.record({ queue: fc.nat(2), size: fc.nat(40_000), kind: fc.nat(3) }), { maxLength: 60 }), async (steps) => {
      const store = newStore();
      const queues = [1, 2, 3].map((serial) => openQueue(store, serial));
      for (const { queue: index, size, kind } of steps) {
        const queue = queues[index];
        assert.ok(queue !== undefined);
        if (kind === 0 && queue.first !== 0) change(store, queue, deleting(store.entries.positionOf(queue.first)));
        else if (kind === 1 && queue.last !== 0) change(store, queue, annotating(store.entries.positionOf(queue.last), 'n'.repeat(size % 999)));
        else change(store, queue, storing(size, 'b'.repeat(size), 'head', kind === 2 ? FLAG_SHARED : 0));
      }
      await write(store);
      const back = await load();
      for (const queue of queues) assert.deepEqual(shown(back, back.queues.find('g1', 1, queue.attributes.serial)), shown(store, queue));
    }), { numRuns: 25 });
  });

  test('is refused whole, with the rule in the log, and kept, wherever it was cut', async (t) => {
    const { file, write, load, errors } = bench(t);
    await write(smallStore().store);
    const whole = readFileSync(file);
    for (let length = 0; length < whole.length; length += 1) {
      writeFileSync(file, whole.subarray(0, length));
      const back = await load();
      assert.deepEqual([back.queues.count, back.entries.count], [0, 0], `cut at ${String(length)}`);
      assert.equal(errors.length, length + 1);
      assert.deepEqual(readFileSync(`${file}.damaged`), whole.subarray(0, length));
    }
    writeFileSync(file, Buffer.concat([whole, whole]));
    assert.equal((await load()).queues.count, 0);
    assert.match(String(errors.at(-1)?.['rule']), /out of place/);
  });

  test('is refused whole when any bit of it was turned', async (t) => {
    const { file, write, load, errors } = bench(t);
    await write(smallStore().store);
    const whole = readFileSync(file);
    for (let at = 0; at < whole.length; at += 1) {
      const turned = Uint8Array.from(whole);
      turned[at] = (turned[at] ?? 0) ^ (1 << (at % 8));
      writeFileSync(file, turned);
      assert.equal((await load()).queues.count, 0, `byte ${String(at)}`);
      assert.equal(errors.length, at + 1);
    }
  });

  test('of another store, or beyond the memory limit, is not taken', async (t) => {
    const { file, write, load, errors } = bench(t);
    const big = newStore();
    const queue = openQueue(big);
    for (let i = 0; i < 40; i += 1) change(big, queue, storing(i, 'x'.repeat(50_000)));
    await write(big);
    assert.equal((await load({ memoryLimitBytes: 1_000_000 })).entries.count, 0);
    assert.match(String(errors.at(-1)?.['rule']), /memory limit/);
    writeFileSync(file, readFileSync(`${file}.damaged`).toString('latin1').replace('store-a', 'store-z'), 'latin1');
    await load();
    assert.match(String(errors.at(-1)?.['rule']), /checksum/);
  });

  test('is not written when nothing is held, and leaves no other file behind', async (t) => {
    const { folder, write } = bench(t);
    assert.equal(await write(newStore()), false);
    assert.deepEqual(readdirSync(folder), []);
    await write(smallStore().store);
    assert.equal(readdirSync(folder).length, 1);
  });
});

describe('a queue that came back from a file', () => {
  async function back(t: TestContext): Promise<{ store: Store; queue: MirroredQueue }> {
    const { write, load } = bench(t);
    await write(smallStore().store);
    const store = await load();
    const queue = store.queues.find('g1', 1, 1);
    assert.ok(queue !== undefined);
    return { store, queue };
  }

  test('takes what follows from its holder, and becomes a member by any higher epoch, or none', async (t) => {
    const { store, queue } = await back(t);
    assert.equal(change(store, queue, storing(6, 'six'), deleting(3)), 0);
    assert.equal(queue.role, ROLE_SPILLED);
    assert.equal(change(store, queue, settingMembers(1, ['store-a'])), REFUSAL_EPOCH);
    assert.equal(change(store, queue, settingMembers(8, ['store-a', 'store-b'])), 0);
    assert.equal(queue.role, ROLE_MEMBER);
    const other = await back(t);
    assert.equal(change(other.store, other.queue, settingMembers(4, ['store-b'])), 0);
    assert.equal(other.queue.role, ROLE_NONE);
    other.store.beginRefill(other.queue, 9, 1, 2);
    assert.deepEqual([other.queue.role, other.queue.count, other.queue.number], [ROLE_FILLING, 0, 9]);
  });

  test('confirms no claim of before, but grants it again; old incarnations stay fenced', async (t) => {
    const { store, queue } = await back(t);
    const owner = accountOf(store);
    queue.holderToken = 7;
    queue.highestToken = 7;
    assert.equal(store.confirm(owner, queue, 7, 0).result, CLAIM_TOKEN_LOW);
    assert.equal(store.claim(owner, queue, 7, 0).result, CLAIM_GRANTED);
    assert.equal(store.confirm(owner, queue, 7, 0).result, CLAIM_GRANTED);
    assert.equal(owner.admit(6, new Uint8Array(8), store.admission), false);
    assert.equal(owner.admit(7, new Uint8Array(8).fill(4), store.admission), false);
    assert.equal(owner.admit(7, new Uint8Array(8).fill(3), store.admission), true);
  });
});
