/**
 * Stores that go, for good, for a while, or in good order, while mail goes on: their partitions get copies elsewhere, what
 * is left behind is dropped, and what comes back with its memory or its file gets only what it lacks. Judged from
 * outside: the sender's log, the sink, the links; and by what gateway and stores say of themselves.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { until } from './cluster.js';
import { DOMAINS, healedWithout, healing, mailWhile, storeOf, twinpost } from './heal-kit.js';
import { SmtpTalk } from './smtp-talk.js';

/** A store's stop, from signal to exit, when its queues have somewhere to go. */
const QUICK_MS = 5_000;

const replaceSoon = { gateway: { mirror: { replace_after: '1s' } } };

describe('a store that stays away', { timeout: 360_000 }, () => {
  test('is replaced after replace_after by a third one; a killed one comes back empty and is used again', () => healing(3, replaceSoon, async (all) => {
    const { cluster } = all;
    const gone = storeOf(cluster, 1);
    await mailWhile(all, async () => {
      await gone.kill();
      await healedWithout(cluster, gone.name);
    });
    gone.start();
    await gone.ready();
    await mailWhile(all, () => Promise.resolve(), { run: 'after' });
    await healedWithout(cluster);
  }));

  test('and comes back with its memory drops what nobody needs there any more', () => healing(3, replaceSoon, async (all) => {
    const { cluster } = all;
    const gone = storeOf(cluster, 1);
    await mailWhile(all, async () => {
      gone.freeze();
      await healedWithout(cluster, gone.name);
      gone.thaw();
    });
    await until('its leftovers are dropped', async () => {
      const used = (await cluster.table()).filter((row) => row.store === gone.name).length;
      return (await cluster.partitionsAt(1)) === used;
    }, 15_000, cluster.gateway);
  }));
});

const REASON = ['--reason', 'a test'];

describe('twinpost store drain', { timeout: 360_000 }, () => {
  test('empties a store under load, which may stop then; a restarted gateway remembers it; --undo ends it', () => healing(3, {}, async (all) => {
    const { cluster } = all;
    const store = storeOf(cluster, 0);
    await mailWhile(all, async () => {
      const told = await twinpost(cluster, 'store', 'drain', store.name, '--wait', ...REASON);
      assert.equal(told.code, 0, told.out);
      assert.match(told.out, /gateway-1: nothing is left at store-a\n/);
      await until('the store has nothing', async () => (await cluster.partitionsAt(0)) === 0);
      const before = performance.now();
      assert.equal(await store.stop(), 0, store.logTail());
      assert.ok(performance.now() - before < QUICK_MS);
    });
    store.start();
    await store.ready();
    await cluster.gateway.kill();
    all.judge.noteGatewayKill();
    cluster.gateway.start();
    await cluster.gateway.ready();
    await mailWhile(all, () => Promise.resolve(), { run: 'after' });
    await healedWithout(cluster, store.name);
    assert.equal(await cluster.partitionsAt(0), 0);
    const undone = await twinpost(cluster, 'store', 'drain', store.name, '--undo', ...REASON);
    assert.deepEqual([undone.code, undone.out], [0, 'gateway-1: store-a is used\n']);
    await storeOf(cluster, 1).kill();
    await until('the store is used again', async () => (await cluster.partitionsAt(0)) > 0, 60_000, cluster.gateway);
  }));

  test('with two stores says that copies are missing, and with min_replicas 2 that it can not', () => healing(2, {}, async (all) => {
    const { cluster } = all;
    await mailWhile(all, async () => {
      const told = await twinpost(cluster, 'store', 'drain', 'store-b', '--wait', ...REASON);
      assert.equal(told.code, 1, told.out);
      assert.match(told.out, /gateway-1: nothing is left at store-b\ngateway-1: CAN'T LEAVE as it should: \d+ partitions have fewer copies than configured, /);
      const meant = await twinpost(cluster, 'store', 'drain', 'store-b', '--wait', '--force', ...REASON);
      assert.equal(meant.code, 0, meant.out);
      await twinpost(cluster, 'store', 'drain', 'store-b', '--undo', ...REASON);
    });
    await cluster.inSync(DOMAINS.length);
    const unknown = await twinpost(cluster, 'store', 'drain', 'store-z', ...REASON);
    assert.equal(unknown.code, 1, unknown.out);
    assert.match(unknown.out, /knows no store 'store-z'/);
  }).then(() => healing(2, { gateway: { mirror: { min_replicas: 2 } } }, async (all) => {
    const { cluster } = all;
    await mailWhile(all, async () => {
      const told = await twinpost(cluster, 'store', 'drain', 'store-b', '--wait', ...REASON);
      assert.equal(told.code, 1, told.out);
      assert.match(told.out, /mirrors are still at store-b\ngateway-1: \d+ of them CAN'T LEAVE: no other store can take them/);
    });
    await cluster.inSync(DOMAINS.length);
  })));
});

describe('twinpost store resync', { timeout: 120_000 }, () => {
  test('fills one mirror again while mail goes on, and never touches the last copy', () => healing(2, {}, async (all) => {
    const { cluster } = all;
    let home = '';
    await mailWhile(all, async () => {
      home = await cluster.homeOf('a.example');
      const told = await twinpost(cluster, 'store', 'resync', 'store-b', '--partition', home, '--reason', 'a test');
      assert.deepEqual([told.code, told.out], [0, `gateway-1: the copy of ${home} at store-b is filled again\n`]);
    });
    await cluster.inSync(DOMAINS.length);
    assert.equal((await cluster.status()).refills, 1);
    const unknown = await twinpost(cluster, 'store', 'resync', 'store-b', '--partition', 'gateway-1/4000', '--reason', 'a test');
    assert.equal(unknown.code, 1);
    assert.match(unknown.out, /no gateway that answers has a copy of 'gateway-1\/4000' at 'store-b'/);
    await storeOf(cluster, 0).kill();
    await until('one copy is left', async () => (await cluster.table()).some((row) => row.partition === home && row.store === 'store-a' && row.sync === 'NG'));
    const refused = await twinpost(cluster, 'store', 'resync', 'store-b', '--partition', home, '--reason', 'a test');
    assert.equal(refused.code, 1, refused.out);
    assert.match(refused.out, /no other mirror is in sync: this one may be all there is/);
    assert.equal((await cluster.status()).refills, 1);
  }));
});

describe('a store that is told to stop', { timeout: 240_000 }, () => {
  for (const onePath of [false, true]) test(`${onePath ? 'on its only path ' : ''}ends with 0 at once when a third one takes its queues, and nothing is refused`, () => healing(3, { onePath }, async (all) => {
    const { cluster } = all;
    const store = storeOf(cluster, 2);
    await mailWhile(all, async () => {
      const before = performance.now();
      assert.equal(await store.stop(), 0, store.logTail());
      const tookMs = performance.now() - before;
      assert.ok(tookMs < QUICK_MS, `it took ${tookMs} ms`);
      await healedWithout(cluster, store.name);
      assert.match(cluster.gateway.log(), /a store is about to stop: its copies move away/);
    });
  }));

  test('with nobody in its place leaves the sets at once, comes back with its file, and gets only the tail', () => withFolder((folder) => healing(2, { store: { state_dir: folder } }, async (all) => {
    const { cluster } = all;
    const store = storeOf(cluster, 1);
    await mailWhile(all, async () => {
      const before = performance.now();
      assert.equal(await store.stop(), 0, store.logTail());
      const tookMs = performance.now() - before;
      assert.ok(tookMs < QUICK_MS, `it took ${tookMs} ms`);
      store.start();
      await store.ready();
      await cluster.inSync(DOMAINS.length);
    });
    const { refills, refill_bytes: bytes, tails } = await cluster.status();
    assert.deepEqual([refills, bytes], [0, 0]);
    assert.ok(tails >= DOMAINS.length, `${tails} tails`);
  })));
});

describe('below min_replicas', { timeout: 240_000 }, () => {
  for (const least of [1, 2]) {
    test(`with min_replicas ${least} mail is put off, the port closes, and it opens by itself`, () => healing(2, { gateway: { mirror: { min_replicas: least } } }, async (all) => {
      const { cluster } = all;
      const victims = cluster.stores.slice(0, least === 1 ? 2 : 1);
      const talk = await SmtpTalk.start(cluster.smtpPort);
      await mailWhile(all, async () => {
        await Promise.all(victims.map((store) => store.kill()));
        await until('it says so', async () => !(await cluster.status()).ready);
        assert.match(await talk.say('MAIL FROM:<x@a.example>') + await talk.say('RCPT TO:<y@a.example>'), /^(421|451) /m);
        await until('the port is closed', () => isClosed(cluster.smtpPort), 10_000, cluster.gateway);
        for (const store of victims) store.start();
        for (const store of victims) await store.ready();
        await until('the port is open', async () => !(await isClosed(cluster.smtpPort)), 30_000, cluster.gateway);
      }, { putOff: ['421', '451', 'none'] });
      talk.close();
      await cluster.inSync(DOMAINS.length);
      assert.ok(cluster.gateway.isRunning);
    }));
  }
});

async function isClosed(port: number): Promise<boolean> {
  try {
    const talk = await SmtpTalk.start(port);
    talk.close();
    return false;
  } catch {
    return true;
  }
}

async function withFolder(story: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-heal-'));
  try {
    await story(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
