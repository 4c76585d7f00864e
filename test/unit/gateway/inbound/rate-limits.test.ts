/** What a party may do in a minute: never more in any minute, shared by workers, and bounded whoever comes. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { Prng } from '../../../../src/base/prng.js';
import type { Doer } from '../../../../src/gateway/inbound/limits/rate-limits.js';
import { SlidingCounts } from '../../../../src/gateway/inbound/limits/sliding-counts.js';
import { limits } from '../../../inbound/rates.js';

const MINUTE_MS = 60_000;

const from = (remoteAddress: string, user = '', proxy = ''): Doer => ({ remoteAddress, user, proxy });

describe('a limit', () => {
  test('lets in no more in any minute, and no less than nine tenths of it in the long run', () => {
    const random = new Prng(7);
    for (let round = 0; round < 20; round++) {
      const max = 1 + random.below(50);
      const rates = limits(['client', 'messages', max]);
      const times: number[] = [];
      let nowMs = random.below(1_000_000);
      for (let i = 0; i < 20_000; i++) {
        nowMs += random.below(round % 2 === 0 ? 200 : random.below(3000) + 1);
        if (rates.mayDo('messages', from('192.0.2.1'), '', nowMs)) times.push(nowMs);
      }
      for (let i = max; i < times.length; i++) {
        assert.ok((times[i] ?? 0) - (times[i - max] ?? 0) > MINUTE_MS, `more than ${String(max)} in a minute`);
      }
      const minutes = (nowMs - (times[0] ?? 0)) / MINUTE_MS;
      if (round % 2 === 0) assert.ok(times.length >= 0.85 * max * minutes, `${String(times.length)} in ${String(minutes)} minutes of ${String(max)}`);
    }
  });

  test('counts an address, an IPv6 /64, a network, a user and a sender each by itself', () => {
    const rates = limits(['client', 'messages', 2], ['network', 'messages', 3], ['user', 'messages', 4], ['sender', 'messages', 5]);
    const may = (address: string, user: string, sender: string): boolean => rates.mayDo('messages', from(address, user), sender, 0);
    assert.deepEqual([may('192.0.2.1', '', ''), may('192.0.2.1', '', ''), may('192.0.2.1', '', '')], [true, true, false]);
    assert.deepEqual([may('192.0.2.2', '', ''), may('192.0.2.3', '', '')], [true, false], 'the network');
    assert.deepEqual(['a', 'b', 'c'].map((last) => may(`2001:db8:0:1::${last}`, '', '')), [true, true, false], 'one /64');
    assert.deepEqual([may('2001:db8:0:2::1', '', ''), may('2001:db8:0:3::1', '', '')], [true, false], 'one /48');
    assert.deepEqual(Array.from({ length: 5 }, (_none, i) => may(`198.51.${String(i)}.1`, 'u', '')), [true, true, true, true, false]);
    assert.deepEqual(Array.from({ length: 6 }, (_none, i) => may(`198.52.${String(i)}.1`, `u${String(i)}`, 's@d')), [true, true, true, true, true, false]);
  });

  test('counts a sender for users, and apart from them for each network that claims to be it', () => {
    const rates = limits(['sender', 'messages', 2]);
    const may = (address: string, user: string): boolean => rates.mayDo('messages', from(address, user), 's@d', 0);
    assert.deepEqual([may('192.0.2.1', ''), may('192.0.2.2', ''), may('192.0.2.3', '')], [true, true, false], 'a stranger and his neighbours');
    assert.deepEqual([may('198.51.100.1', ''), may('198.51.100.1', '')], [true, true], 'whoever else sends for it');
    assert.deepEqual([may('192.0.2.1', 'u'), may('203.0.112.1', 'u'), may('198.51.100.1', 'u')], [true, true, false], 'who has shown to be it');
  });

  test('is the same for a user in whatever case', () => {
    const rates = limits(['user', 'messages', 2]);
    assert.deepEqual(['bob@d', 'BOB@d', 'Bob@D'].map((user) => rates.mayDo('messages', from('192.0.2.1', user), '', 0)), [true, true, false]);
  });

  test('of clients and networks does not count a balancer\'s own connections', () => {
    const rates = limits(['client', 'messages', 1], ['network', 'errors', 1], ['client', 'data', 1]);
    for (const proxy of ['local', 'unknown']) {
      for (let i = 0; i < 3; i++) assert.equal(rates.mayDo('messages', from('192.0.2.1', '', proxy), '', 0), true);
      for (const deed of ['errors', 'data'] as const) {
        rates.did(deed, 5, from('192.0.2.1', '', proxy), '', 0);
        assert.equal(rates.hasDoneAll(deed, from('192.0.2.1', '', proxy), '', 0), false);
        assert.equal(rates.hasDoneAll(deed, from('192.0.2.1'), '', 0), false, 'nor against whoever has the address');
      }
    }
  });

  test('says which one was met', () => {
    const rates = limits(['client', 'messages', 2], ['network', 'messages', 3], ['sender', 'errors', 1]);
    for (const last of ['1', '1', '2']) assert.ok(rates.mayDo('messages', from(`192.0.2.${last}`), '', 0));
    assert.equal(rates.reached, '');
    assert.equal(rates.mayDo('messages', from('192.0.2.1'), '', 0), false);
    assert.equal(rates.reached, 'client.messages');
    assert.equal(rates.mayDo('messages', from('192.0.2.3'), '', 0), false);
    assert.equal(rates.reached, 'network.messages');
    rates.did('errors', 1, from('198.51.100.1'), 's@d', 0);
    assert.equal(rates.hasDoneAll('errors', from('198.51.100.2'), 's@d', 0), true);
    assert.equal(rates.reached, 'sender.errors');
  });

  test('is none for who is exempt, and what is refused does not count', () => {
    const rates = limits(['client', 'recipients', 1]);
    for (let i = 0; i < 5; i++) assert.ok(rates.mayDo('recipients', from('233.252.0.9'), '', 0));
    assert.ok(rates.mayDo('recipients', from('192.0.2.1'), '', 0));
    for (let i = 0; i < 100; i++) assert.equal(rates.mayDo('recipients', from('192.0.2.1'), '', i * 500), false);
    assert.ok(rates.mayDo('recipients', from('192.0.2.1'), '', MINUTE_MS + 6000));
  });

  test('of a user, and of his sender, holds in an exempt network too, and counts nothing for its address', () => {
    for (const party of ['user', 'sender'] as const) {
      const rates = limits([party, 'recipients', 2], [party, 'data', 5], ['client', 'recipients', 1], ['network', 'data', 1]);
      const webmail = from('233.252.0.9', 'anna');
      assert.deepEqual([1, 2, 3].map(() => rates.mayDo('recipients', webmail, 'anna@d', 0)), [true, true, false], party);
      assert.equal(rates.reached, `${party}.recipients`);
      rates.did('data', 5, webmail, 'anna@d', 0);
      assert.equal(rates.hasDoneAll('data', webmail, 'anna@d', 0), true, party);
      assert.equal(rates.hasDoneAll('data', from('233.252.0.9', 'bob'), 'bob@d', 0), false);
    }
  });

  test('is held by workers together, but for what they let in between two reports', () => {
    const [max, perSecond, workers] = [1000, 100, 4];
    const all = Array.from({ length: workers }, () => limits(['client', 'messages', max]));
    let done = 0;
    for (let nowMs = 0; nowMs < MINUTE_MS; nowMs += 1000) {
      for (const one of all) for (let i = 0; i < perSecond; i++) if (one.mayDo('messages', from('192.0.2.1'), '', nowMs)) done += 1;
      const reports = all.map((one) => one.takeReport());
      reports.forEach((report, i) => { if (report !== undefined) all.forEach((one, j) => { if (i !== j) one.onReport(report, nowMs); }); });
    }
    assert.ok(done >= max && done <= max + workers * perSecond, String(done));
    assert.ok(all.every((one) => one.takeReport() === undefined), 'nothing is told twice');
  });
});

describe('counts', () => {
  test('of idle keys are forgotten, and never more than so many are kept', () => {
    const counts = new SlidingCounts();
    for (let i = 0; i < 150_000; i++) counts.add(`k${String(i)}`, 1, 0);
    assert.equal(counts.size, 20_000);
    assert.equal(counts.of('k149999', 0), 1);
    counts.tick(2 * MINUTE_MS);
    assert.equal(counts.size, 0);
  });

  test('agree with those of a plain list, through rows that are given up and used again', () => {
    const counts = new SlidingCounts();
    const random = new Prng(11);
    const did: { readonly key: string; readonly amount: number; readonly slot: number }[] = [];
    for (let nowMs = 0; nowMs < 1000 * MINUTE_MS; nowMs += random.below(random.below(4) === 0 ? 90_000 : 500)) {
      const key = `k${String(random.below(20))}`;
      const slot = Math.floor(nowMs / 6000);
      if (random.below(3) > 0) {
        const amount = 1 + random.below(1_000_000);
        counts.add(key, amount, nowMs);
        did.push({ key, amount, slot });
      }
      if (random.below(50) === 0) counts.tick(nowMs);
      const wanted = did.filter((each) => each.key === key && each.slot > slot - 11).reduce((sum, { amount }) => sum + amount, 0);
      assert.equal(counts.of(key, nowMs), wanted, `${key} at ${String(nowMs)}`);
    }
    assert.ok(did.length > 1000);
  });

  test('of a full table take no more than they say: 5 MiB, and nothing of keys that are gone', () => {
    setFlagsFromString('--expose-gc');
    const gc = runInNewContext('gc') as () => void;
    const used = (): number => {
      gc();
      const { heapUsed, arrayBuffers } = process.memoryUsage();
      return heapUsed + arrayBuffers;
    };
    const before = used();
    const counts = new SlidingCounts();
    // A worker that has no others tells nobody what it counts.
    for (let minute = 0; minute < 10; minute++) {
      for (let i = 0; i < 30_000; i++) counts.add(`2001:db8:${minute.toString(16)}:${i.toString(16)}::/64`, 1, minute * 2 * MINUTE_MS);
      counts.tick((minute + 1) * 2 * MINUTE_MS - 1);
    }
    const taken = (used() - before) / 2 ** 20;
    assert.ok(taken < 5, `${taken.toFixed(1)} MiB`);
    assert.equal(counts.size, 0);
  });

  test('hold who does much, however many others do a little in the same minute', () => {
    const rates = limits(['sender', 'messages', 60]);
    const random = new Prng(3);
    let [taken, others] = [0, 0];
    // Of four thousand others a second, and, once they fill the table, one who tries four times a second.
    for (let ms = 0; ms < 2 * MINUTE_MS; ms += 250) {
      for (let i = 0; i < 1000; i++) if (rates.mayDo('messages', from('192.0.2.1'), `s${String(random.below(10_000_000))}@d`, ms)) others += 1;
      if (ms >= MINUTE_MS && rates.mayDo('messages', from('192.0.2.1'), 'busy@d', ms)) taken += 1;
    }
    assert.equal(others, 480 * 1000, 'who sends once in a while is never refused');
    assert.ok(taken <= 1.1 * 60, `${String(taken)} in a minute of 60`);
  });

  test('tell a bounded number of keys at once, the others the next time', () => {
    const counts = new SlidingCounts();
    for (let i = 0; i < 12; i++) counts.add(`k${String(i)}`, 2, 0);
    const told = [counts.takeUntold(5), counts.takeUntold(5), counts.takeUntold(5), counts.takeUntold(5)];
    assert.deepEqual(told.map((each) => each.length), [5, 5, 2, 0]);
    assert.ok(told.flat().every(([, amount]) => amount === 2));
    counts.addTold('k1', 7, 0);
    assert.equal(counts.of('k1', 0), 9);
    assert.deepEqual(counts.takeUntold(5), []);
  });
});
