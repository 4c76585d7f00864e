/** From which of our addresses a host is connected to. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { waysTo } from '../../../../../src/gateway/outbound/pure/source-choice.js';
import type { KnownSource, Ways } from '../../../../../src/gateway/outbound/pure/source-choice.js';

const source = (address: string, isConfirmed = false): KnownSource => ({ address, name: 'mail.example', isConfirmed });
const byMx = { site: 'mx.example.net', isByMx: true };
const named = { site: 'mx.example.net', isByMx: false };

/** "to from" of each; "-": the system chooses. */
function told({ ways }: Ways): readonly string[] {
  return ways.map(({ address, from }) => `${address} ${from?.address ?? '-'}`);
}

describe('the source of a connection', () => {
  test('is of the family of the address, in the order of the addresses', () => {
    const sources = [source('192.0.2.10'), source('2001:db8::10', true)];
    assert.deepEqual(told(waysTo(['2001:db8::1', '198.51.100.1'], byMx, sources)), ['2001:db8::1 2001:db8::10', '198.51.100.1 192.0.2.10']);
  });

  test('by IPv6 to a host by MX is a confirmed one, or there is none, and it is said why', () => {
    const sources = [source('192.0.2.10'), source('2001:db8::10')];
    const ways = waysTo(['2001:db8::1', '198.51.100.1'], byMx, sources);
    assert.deepEqual(told(ways), ['198.51.100.1 192.0.2.10']);
    assert.deepEqual(ways.whys, ['2001:db8::1: no IPv6 source is confirmed for it']);
    assert.deepEqual(told(waysTo(['2001:db8::1'], byMx, [])), []);
    assert.deepEqual(told(waysTo(['2001:db8::1'], byMx, [...sources, source('2001:db8::11', true)])), ['2001:db8::1 2001:db8::11']);
  });

  test('to a host that its route names needs no confirmation', () => {
    assert.deepEqual(told(waysTo(['2001:db8::1'], named, [source('2001:db8::10')])), ['2001:db8::1 2001:db8::10']);
  });

  test('leaves out the family that has none where a host has both; else the system chooses', () => {
    const four = [source('192.0.2.10')];
    assert.deepEqual(told(waysTo(['2001:db8::1', '198.51.100.1'], named, four)), ['198.51.100.1 192.0.2.10']);
    assert.deepEqual(told(waysTo(['2001:db8::1'], named, four)), ['2001:db8::1 -']);
    assert.deepEqual(told(waysTo(['198.51.100.1'], byMx, [source('2001:db8::10')])), ['198.51.100.1 -']);
    assert.deepEqual(told(waysTo(['198.51.100.1'], byMx, [])), ['198.51.100.1 -']);
  });

  test('is of loopback for loopback alone', () => {
    const sources = [source('192.0.2.10'), source('127.0.0.2'), source('2001:db8::10', true)];
    assert.deepEqual(told(waysTo(['127.0.0.1'], named, sources)), ['127.0.0.1 127.0.0.2']);
    assert.deepEqual(told(waysTo(['198.51.100.1'], named, sources)), ['198.51.100.1 192.0.2.10']);
    assert.deepEqual(told(waysTo(['::1'], named, sources)), ['::1 -']);
    assert.deepEqual(told(waysTo(['198.51.100.1'], named, [source('127.0.0.2')])), ['198.51.100.1 -']);
  });

  test('of several is the same for a destination whatever their order, and each has its part of all', () => {
    const sources = [10, 11, 12, 13].map((last) => source(`192.0.2.${String(last)}`));
    const chosen = (site: string, of: readonly KnownSource[]): string => told(waysTo(['198.51.100.1'], { site, isByMx: true }, of)).join();
    const counts = new Map<string, number>();
    let moved = 0;
    for (let i = 0; i < 4000; i++) {
      const site = `mx${String(i)}.example.net`;
      const one = chosen(site, sources);
      assert.equal(chosen(site, sources.toReversed()), one);
      counts.set(one, (counts.get(one) ?? 0) + 1);
      const fewer = chosen(site, sources.slice(0, 3));
      if (!one.endsWith('.13')) assert.equal(fewer, one, 'a source that goes moves its own destinations alone');
      else moved++;
    }
    assert.equal(counts.size, 4);
    assert.ok([...counts.values()].every((count) => count > 800 && count < 1200), JSON.stringify([...counts]));
    assert.ok(moved > 800);
  });
});
