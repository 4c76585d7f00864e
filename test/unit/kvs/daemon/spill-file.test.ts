import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joined } from 'node:path';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import fc from 'fast-check';
import type { MirroredPartition } from '../../../../src/kvs/core/mirrored-partition.js';
import { SpillWriter } from '../../../../src/kvs/core/spill/writer.js';
import type { Store } from '../../../../src/kvs/core/store.js';
import type { StoreDaemonOptions } from '../../../../src/kvs/daemon/store-daemon.js';
import { loadSpillFile, spillFileName, writeSpillFile } from '../../../../src/kvs/daemon/spill-file.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import { SystemClock } from '../../../../src/platform/node/clock.js';
import type { EventLog } from '../../../../src/platform/ports.js';
import { FLAG_BODY_ABSENT, FLAG_SHARED } from '../../../../src/protocol/change-rows.js';
import { FENCE_FILL } from '../../../../src/protocol/messages/fence.js';
import { FENCED } from '../../../../src/protocol/message-types.js';
import { DECLINED_LOWER } from '../../../../src/protocol/reasons.js';
import {
  BOOT_ID, ORIGIN, accountOf, annotating, attached, beginFill, change, deleting, fenceAs, found, join, newStore, packer, pullAll, recordOf, storing,
  termOf,
} from '../core/section-kit.js';
import { TestGateway, testStore } from './test-gateway.js';

interface Bench {
  readonly file: string;
  readonly folder: string;
  write(store: Store): Promise<boolean>;
  load(options?: Parameters<typeof newStore>[0]): Promise<Store | undefined>;
}

const OTHER = { storeId: 'store-b', bootId: 'ff'.repeat(16) };
const HERE = { storeId: 'store-a', bootId: BOOT_ID };

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(joined(tmpdir(), 'twinpost-spill-'));
  t.after(() => { rmSync(folder, { recursive: true, force: true }); });
  return folder;
}

function bench(t: TestContext): Bench {
  const folder = folderOf(t);
  const log: EventLog = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
  const ports = { crc32, packer, clock: new SystemClock(), log };
  const file = spillFileName(folder, 'store-a');
  return {
    file, folder,
    write: (store) => writeSpillFile(file, store, ports),
    load: async (options = {}) => (await loadSpillFile(file, 'store-a', (head) => newStore(options, head), ports))?.store,
  };
}

async function loaded(from: Bench, options: Parameters<typeof newStore>[0] = {}): Promise<Store> {
  return (await from.load(options)) ?? assert.fail('there is a file');
}

/** All that must come back. */
function shown(store: Store, copy: MirroredPartition | undefined): unknown {
  assert.ok(copy !== undefined);
  const { partition, number, digestA, digestB, lastTerm, isComplete, count, bytes, fence } = copy;
  return { partition, number, digestA, digestB, lastTerm, isComplete, count, bytes, fence: fence.carried(), entries: pullAll(store, copy) };
}

function smallStore(): { store: Store; copy: MirroredPartition } {
  const store = newStore();
  accountOf(store).admit(7, new Uint8Array(8).fill(3), store.admission);
  const copy = found(store);
  change(store, copy, storing(1, 'body one', 'h1'), storing(2, 'two', 'h2'), storing(3, '', ''), annotating(2, 'a note'), deleting(1));
  return { store, copy };
}

describe('a spill file', () => {
  test('brings back what was damaged in memory as it is, and the rest with it', async (t) => {
    const from = bench(t);
    const { store, copy } = smallStore();
    const shared = found(store, 2);
    change(store, shared, storing(9, 'shared body', 'x', FLAG_SHARED), annotating(1, 'its note'));
    const slots = [store.entries.slotOf(copy.first), store.shared.slotOf(store.entries.sharedOf(shared.first))];
    for (const slot of slots) {
      const bytes = store.segments.read(slot);
      bytes[0] = (bytes[0] ?? 0) ^ 0xff;
    }
    assert.equal(await from.write(store), true);
    const back = await loaded(from);
    for (const one of [copy, shared]) {
      assert.deepEqual(shown(back, back.partitions.find(one.partition)), shown(store, one));
    }
  });

  test('brings back the same boot: copies with entries, notes and shared bodies, fences, and what was told', async (t) => {
    const from = bench(t);
    const { store, copy } = smallStore();
    store.tell({ partition: 'g1/1', record: recordOf(9, { members: [OTHER, HERE] }), isOut: false });
    const other = found(store, 2);
    change(store, other, storing(9, 'shared body', 'x', FLAG_SHARED), storing(5, 'own', 'y'));
    const third = found(store, 3);
    change(store, third, storing(9, 'shared body', 'z', FLAG_SHARED | FLAG_BODY_ABSENT));
    join(store, 'g1/3', termOf(4), { id: 'g2' });
    const givenUp = found(store, 4);
    change(store, givenUp, storing(1, 'given up'));
    store.tell({ partition: 'g1/4', record: recordOf(6, { term: termOf(6), members: [OTHER], gaveUp: [{ ...HERE, epoch: 5 }] }), isOut: true });
    beginFill(store, 'g1/5', ORIGIN, { number: 7, digestA: 1, digestB: 2 });
    found(store, 6);
    store.tell({ partition: 'g1/6', record: recordOf(3, { members: [OTHER] }), isOut: true });
    assert.equal(await from.write(store), true);
    assert.equal(readFileSync(from.file).toString('latin1').split('shared body').length, 2, 'the shared body stands there once');

    const back = await loaded(from);
    assert.equal(back.bootId, BOOT_ID);
    for (const one of [copy, other, third, givenUp]) assert.deepEqual(shown(back, back.partitions.find(one.partition)), shown(store, one));
    assert.equal(back.isMember(back.partitions.find('g1/1') ?? assert.fail()), true, 'a member where the record says so');
    assert.equal(back.partitions.find('g1/5'), undefined, 'it has holes');
    assert.equal(back.partitions.find('g1/6'), undefined, 'it was told that it is out');
    assert.equal(back.partitions.peek('g1/6').told?.epoch, 3, 'but knows the record');
    assert.deepEqual([back.shared.count, back.entries.count, back.partitions.count], [1, 6, 4]);
    assert.ok(!existsSync(from.file) && existsSync(`${from.file}.used`), 'used once');
    assert.equal(await from.load(), undefined);
  });

  test('brings back who is fenced: lower terms are declined, the term goes on where it stood, older incarnations are out', async (t) => {
    const from = bench(t);
    const { store } = smallStore();
    join(store, 'g1/1', termOf(4), { id: 'g2' });
    await from.write(store);
    const back = await loaded(from);
    const copy = back.partitions.find('g1/1') ?? assert.fail();
    assert.equal(fenceAs(back, FENCE_FILL, 'g1/1', termOf(3)), DECLINED_LOWER);
    assert.equal(back.check(attached(copy, ORIGIN)) !== 0, true);
    assert.equal(change(back, join(back, 'g1/1', termOf(4), { id: 'g2' }), storing(6, 'six')), 0);
    const owner = accountOf(back);
    assert.equal(owner.admit(6, new Uint8Array(8), back.admission), false);
    assert.equal(owner.admit(7, new Uint8Array(8).fill(4), back.admission), false);
    assert.equal(owner.admit(7, new Uint8Array(8).fill(3), back.admission), true);
  });

  test('brings back the newest process of a gateway that is not let in, and may be later', async (t) => {
    const from = bench(t);
    const store = newStore();
    found(store);
    accountOf(store, 'g2').admit(7, new Uint8Array(8).fill(3), store.admission);
    await from.write(store);
    const back = await loaded(from, { gateways: ['g1'] });
    assert.deepEqual([...back.accounts()].map(({ id }) => id), ['g1'], 'it has no share');
    await from.write(back);
    const again = await loaded(from, { gateways: ['g1'] });
    again.letIn({ gateways: ['g1', 'g2'].map((id) => ({ id, secret: new Uint8Array(16) })), groupSecret: undefined });
    const account = accountOf(again, 'g2');
    assert.equal(account.admit(6, new Uint8Array(8), again.admission), false);
    assert.equal(account.admit(7, new Uint8Array(8).fill(3), again.admission), true);
    assert.equal([...again.accounts()].includes(account), true);
  });

  test('brings back what a process has still to hear of its fences, and goes on counting', async (t) => {
    const from = bench(t);
    const store = newStore();
    found(store, 1);
    found(store, 2);
    store.heartbeat(accountOf(store), 0, 0);
    join(store, 'g1/1', termOf(2), { id: 'g2' });
    await from.write(store);
    const back = await loaded(from);
    join(back, 'g1/2', termOf(3), { id: 'g2' });
    assert.deepEqual(back.heartbeat(accountOf(back), 0, 0), {
      leaseMs: 10_000, fenceCount: 2,
      fences: [{ count: 1, partition: 'g1/1', term: termOf(2) }, { count: 2, partition: 'g1/2', term: termOf(3) }],
    });
  });

  test('says how long the longest lease of its boot was: nobody has an older one before that is over, whatever the lease is now', async (t) => {
    const from = bench(t);
    const store = newStore({ leaseMs: 30_000 });
    found(store);
    await from.write(store);
    const shorter = await loaded(from, { leaseMs: 5_000, startMs: 1_000 });
    const { holder } = accountOf(shorter);
    const left = (of: Store, nowMs: number): number => of.ask({ partition: 'g1/1', holder }, nowMs).leaseLeftMs;
    assert.equal(left(shorter, 1_000), 30_000);
    assert.equal(left(shorter, 30_999), 1);
    assert.equal(left(shorter, 31_000), 0);
    const taken = join(shorter, 'g1/1', termOf(2), { id: 'g2', nowMs: 2_000 });
    assert.equal(taken.fence.olderLeaseMs(2_000, holder), 29_000, 'the file does not say whose it was: that one is dead helps nobody');
    assert.equal(shorter.heartbeat(accountOf(shorter), 0, 2_000).leaseMs, 5_000);
    await from.write(shorter);
    assert.equal(left(await loaded(from, { leaseMs: 5_000 }), 0), 30_000, 'of the whole boot, over any number of stops');
    assert.equal(left(newStore(), 0), 0, 'a new boot has no such wait');
  });

  test('comes back the same whatever was stored', async (t) => {
    const from = bench(t);
    await fc.assert(fc.asyncProperty(fc.array(fc.record({ copy: fc.nat(2), size: fc.nat(40_000), kind: fc.nat(3) }), { maxLength: 60 }), async (steps) => {
      const store = newStore();
      const copies = [1, 2, 3].map((number) => found(store, number));
      for (const { copy: index, size, kind } of steps) {
        const copy = copies[index];
        assert.ok(copy !== undefined);
        if (kind === 0 && copy.first !== 0) change(store, copy, deleting(store.entries.positionOf(copy.first)));
        else if (kind === 1 && copy.last !== 0) change(store, copy, annotating(store.entries.positionOf(copy.last), 'n'.repeat(size % 999)));
        else change(store, copy, storing(size, 'b'.repeat(size), 'head', kind === 2 ? FLAG_SHARED : 0));
      }
      await from.write(store);
      const back = await loaded(from);
      for (const copy of copies) assert.deepEqual(shown(back, back.partitions.find(copy.partition)), shown(store, copy));
    }), { numRuns: 25 });
  });

  test('is refused whole wherever it was cut, with the file and what to do, and stays as it is', async (t) => {
    const from = bench(t);
    await from.write(smallStore().store);
    const whole = readFileSync(from.file);
    for (let length = 0; length < whole.length; length += 1) {
      writeFileSync(from.file, whole.subarray(0, length));
      await assert.rejects(from.load(), ({ name, message }: Error) => name === 'StoreStartError' && message.startsWith(`store store-a: what it held when it stopped is in ${from.file}, which can't be used (`) && !message.includes('\n'), `cut at ${String(length)}`);
      assert.deepEqual(readFileSync(from.file), whole.subarray(0, length));
    }
    writeFileSync(from.file, Buffer.concat([whole, whole]));
    await assert.rejects(from.load(), /out of place/);
    assert.deepEqual(readdirSync(from.folder), ['store-store-a.spill']);
  });

  test('is refused whole when any bit of it was turned', async (t) => {
    const from = bench(t);
    await from.write(smallStore().store);
    const whole = readFileSync(from.file);
    for (let at = 0; at < whole.length; at += 1) {
      const turned = Uint8Array.from(whole);
      turned[at] = (turned[at] ?? 0) ^ (1 << (at % 8));
      writeFileSync(from.file, turned);
      await assert.rejects(from.load(), /can't be used/, `byte ${String(at)}`);
    }
  });

  test('that does not fit into memory, is of another store, or can not be read, is refused and not put aside', async (t) => {
    const from = bench(t);
    const big = newStore();
    const copy = found(big);
    for (let i = 0; i < 40; i += 1) change(big, copy, storing(i, 'x'.repeat(50_000)));
    await from.write(big);
    await assert.rejects(from.load({ memoryLimitBytes: 1_000_000 }), /does not fit: more than the memory limit allows; raise memory_limit/);
    assert.equal((await loaded(from)).entries.count, 40, 'with more memory it does');
    const log: EventLog = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
    await from.write(big);
    const asOther = loadSpillFile(from.file, 'store-z', (head) => newStore({}, head), { crc32, packer, clock: new SystemClock(), log });
    await assert.rejects(asOther, /it is of store 'store-a'/);
    assert.ok(existsSync(from.file));
    rmSync(from.file);
    mkdirSync(from.file);
    await assert.rejects(from.load(), /can't be read \(EISDIR\): let this user read it/);
  });

  const older = (from: Bench, why: string): RegExp =>
    new RegExp(`^store store-a: ${from.file} of [-\\d]+T\\S+Z is not read: ${why}, so that it may lack mail that `
      + 'came later\\. It has 2 messages in 1 partitions: g1/1\\. .*: rename it to store-store-a\\.spill\\.moved$');
  const SEEN_BEFORE = 'a process of this store has gone on from it before';
  const COPIED = 'it is a copy, or was put back from a backup';

  test('that was copied, or put back from a backup, is not read, and stays as it is', async (t) => {
    const from = bench(t);
    await from.write(smallStore().store);
    const backup = `${from.file}.backup`;
    cpSync(from.file, backup, { preserveTimestamps: true });
    await loaded(from);
    cpSync(backup, from.file, { preserveTimestamps: true });
    const bytes = readFileSync(from.file);
    await assert.rejects(from.load(), ({ name, message }: Error) => name === 'StoreStartError' && older(from, COPIED).test(message));
    assert.deepEqual(readFileSync(from.file), bytes);
  });

  test('that was used is not read again under its first name', async (t) => {
    const from = bench(t);
    await from.write(smallStore().store);
    await loaded(from);
    renameSync(`${from.file}.used`, from.file);
    await assert.rejects(from.load(), ({ message }: Error) => older(from, SEEN_BEFORE).test(message));
  });

  test('is read all the same when a person has renamed it, once, unless there is another', async (t) => {
    const from = bench(t);
    await from.write(smallStore().store);
    const moved = `${from.file}.moved`;
    cpSync(from.file, moved);
    await assert.rejects(from.load(), /are both there, and only one can be what it held .*: move the other one away$/);
    rmSync(from.file);
    assert.equal((await loaded(from)).entries.count, 2);
    assert.deepEqual(readdirSync(from.folder), ['store-store-a.spill.used']);
    assert.equal(await from.load(), undefined);
  });

  test('is read where the file system does not tell when files are made', async (t) => {
    const from = bench(t);
    const records = new SpillWriter({ crc32, packer }, smallStore().store).records(0, '');
    for (const chunks of records) writeFileSync(from.file, Buffer.concat(chunks), { flag: 'a' });
    assert.equal((await loaded(from)).entries.count, 2);
  });

  test('is not written when nothing is known, and leaves no other file behind', async (t) => {
    const from = bench(t);
    assert.equal(await from.write(newStore()), false);
    assert.deepEqual(readdirSync(from.folder), []);
    await from.write(smallStore().store);
    assert.equal(readdirSync(from.folder).length, 1);
  });
});

describe('a store with a folder for its file', () => {
  test('goes on as the same boot with what it held; its gateway joins and finds the number at which it stood', async (t) => {
    const options: Partial<StoreDaemonOptions> = { stateDir: folderOf(t), spill: true };
    const before = await testStore(options);
    const gateway = await TestGateway.join(before);
    gateway.found(1, 1);
    await gateway.acknowledged(gateway.change(1, storing(1, 'kept', 'h')));
    await before.stop();
    const after = await testStore(options);
    assert.deepEqual(after.bootId, before.bootId);
    const again = await TestGateway.join(after, { generation: 2 });
    again.join(1, 1);
    assert.deepEqual((await again.next(FENCED)).values.slice(3, 5), [true, 1]);
    again.connection.destroy();
    await after.stop();
  });

  test('is a new boot after a crash: a file that was used speaks for nobody', async (t) => {
    const stateDir = folderOf(t);
    const before = await testStore({ stateDir, spill: true });
    const gateway = await TestGateway.join(before);
    await gateway.acknowledged(gateway.found(1, 1));
    await before.stop();
    const crashed = await testStore({ stateDir, spill: false });
    await crashed.stop();
    const after = await testStore({ stateDir, spill: true });
    assert.notDeepEqual(after.bootId, before.bootId);
    assert.equal(after.store.partitions.count, 0);
    await after.stop();
  });

  test('is refused while another process of it has the files, and waits for one that is on its way out', async (t) => {
    const options: Partial<StoreDaemonOptions> = { stateDir: folderOf(t), spill: true };
    const before = await testStore(options);
    const gateway = await TestGateway.join(before);
    await gateway.acknowledged(gateway.found(1, 1));
    await assert.rejects(testStore({ ...options, lockWaitMs: 0 }), ({ name, message }: Error) => name === 'StoreStartError' && /another process of it still has its files .*: stop that one, or give this store another id or state_dir/.test(message));
    const successor = testStore(options);
    await before.stop();
    const after = await successor;
    assert.deepEqual(after.bootId, before.bootId, 'it found the file that was written meanwhile');
    assert.equal(after.store.partitions.count, 1);
    await after.stop();
  });

  test('that can not listen leaves the file as good as before, and the lock free', async (t) => {
    const stateDir = folderOf(t);
    const before = await testStore({ stateDir, spill: true });
    const gateway = await TestGateway.join(before);
    await gateway.acknowledged(gateway.found(1, 1));
    await before.stop();
    const port = { name: 'A', host: '127.0.0.1', port: 1 };
    await assert.rejects(testStore({ stateDir, spill: true, paths: [{ ...port, host: '192.0.2.1' }] }));
    assert.ok(existsSync(spillFileName(stateDir, 'store-a')));
    const after = await testStore({ stateDir, spill: true, lockWaitMs: 0 });
    assert.deepEqual(after.bootId, before.bootId);
    await after.stop();
  });

  test('that is the folder of another store is refused, with nothing read; that others share is not', async (t) => {
    const stateDir = folderOf(t);
    const before = await testStore({ stateDir, spill: true });
    const gateway = await TestGateway.join(before);
    await gateway.acknowledged(gateway.found(1, 1));
    await before.stop();
    const files = readdirSync(stateDir);
    const other = { storeId: 'store-b', stateDir, spill: true };
    await assert.rejects(testStore(other), ({ name, message }: Error) => name === 'StoreStartError' && message === `store store-b: its state_dir ${stateDir} has what store store-a held when it stopped (store-store-a.spill), and nothing of store store-b; nothing was read. If this is to be store store-a: give it that id. Else name another state_dir, and leave this one to store store-a`);
    assert.deepEqual(readdirSync(stateDir), files);
    await (await testStore({ ...other, oneHost: true })).stop();
    writeFileSync(joined(stateDir, 'store-store-b.spill.used'), '');
    await (await testStore(other)).stop();
    const after = await testStore({ stateDir, spill: true });
    assert.deepEqual(after.bootId, before.bootId);
    await after.stop();
  });

  test('that finds a damaged file does not start, and leaves file and lock as they were', async (t) => {
    const stateDir = folderOf(t);
    const file = spillFileName(stateDir, 'store-a');
    writeFileSync(file, 'no spill file');
    await assert.rejects(testStore({ stateDir, spill: true }), /can't be used/);
    assert.deepEqual(readdirSync(stateDir), ['store-store-a.spill']);
  });
});
