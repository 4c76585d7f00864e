/** What is noted of the hosts of a next hop, without connections; by-mx.test.ts and dispatcher.test.ts have those. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Prng } from '../../../../src/base/prng.js';
import { SiteHost, SiteHosts } from '../../../../src/gateway/outbound/site-hosts.js';
import { DEFERRED, FAILED } from '../../../../src/gateway/mail-types.js';

const BACKOFF = { backoffFirstMs: 1000, backoffMaxMs: 60_000, deniedFirstMs: 1, deniedMaxMs: 2 };

test('of hosts that are preferred alike each is as likely as the others, and one that is preferred less is none of them', () => {
  const hosts = [20, 10, 10, 10].map((preference, at) => new SiteHost(`mx${String(at)}.example`, 25, preference, true));
  const prng = new Prng(7);
  const site = new SiteHosts(hosts, BACKOFF, () => prng.next());
  const often = new Map<string, number>();
  for (let draw = 0; draw < 3000; draw++) {
    const name = site.next(0)?.name ?? 'none';
    often.set(name, (often.get(name) ?? 0) + 1);
  }
  assert.deepEqual([...often.keys()].sort(), ['mx1.example', 'mx2.example', 'mx3.example']);
  for (const [name, count] of often) assert.ok(count > 900 && count < 1100, `${name}: ${String(count)}`);
});

test('a host turns mail away when that is noted of it: not while it is put off for want of room', () => {
  const host = new SiteHost('mx.example', 25, 10, true);
  const hosts = new SiteHosts([host], BACKOFF, () => 0.5);
  const away = { status: DEFERRED, code: 421, enhanced: '4.3.2', text: '421 4.3.2 later' } as const;
  hosts.putOff(host, '192.0.2.1', 1000);
  assert.deepEqual([hosts.noteTurnedAway(host, away, 1200, 1), host.isTurningAway, host.failures], [false, false, 0]);
  assert.deepEqual([hosts.noteTurnedAway(host, away, 1500, 1), host.isTurningAway, host.failures], [true, true, 1]);
});

test('hosts that never take mail are so until the configuration is read anew, and none that is being asked is', () => {
  const both = [new SiteHost('a.example', 25, 10, true), new SiteHost('b.example', 25, 20, true)];
  const hosts = new SiteHosts(both, BACKOFF, () => 0.5);
  const never = { status: FAILED, code: 521, enhanced: '5.3.2', text: '521 no mail here' } as const;
  const told = (): boolean[] => both.map((host) => {
    hosts.noteFailure(host, never, 0, 1, undefined);
    return hosts.areAllRefusing;
  });
  assert.deepEqual(told(), [false, true]);
  const [first] = both;
  assert.ok(first !== undefined);
  first.connecting = 1;
  assert.equal(hosts.areAllRefusing, false);
  first.connecting = 0;
  assert.equal(hosts.areAllRefusing, true);
  hosts.renew(BACKOFF);
  assert.deepEqual([hosts.areAllRefusing, ...told()], [false, false, true]);
});

test('no fallback is used while a host by MX is only put off: another host is, and the fallback where it failed before', () => {
  const [first, second] = [new SiteHost('a.example', 25, 10, true), new SiteHost('b.example', 25, 20, true)];
  const fallback = new SiteHost('smart.example', 25, 65_536, false);
  const away = { status: DEFERRED, code: 0, enhanced: '4.4.1', text: 'refused' } as const;
  for (const fullAddress of ['192.0.2.1', '']) {
    const hosts = new SiteHosts([first, second, fallback], BACKOFF, () => 0.5);
    hosts.noteAnswer(second);
    hosts.hasten();
    hosts.putOff(first, fullAddress, 1000);
    assert.equal(hosts.next(1100), second);
    hosts.noteFailure(second, away, 1100, 1, undefined);
    assert.deepEqual([hosts.next(1200), hosts.next(1500)], [undefined, first]);
    hosts.noteFailure(first, away, 1500, 1, undefined);
    hosts.putOff(first, fullAddress, 1600);
    assert.equal(hosts.next(1700), fallback);
    hosts.noteAnswer(first);
    assert.equal(hosts.next(1800), undefined, 'it answers');
  }
});

test('a fallback is none while a host by MX that must have TLS failed by it: until it answers, or fails otherwise', () => {
  const bound = new SiteHost('mx.example', 25, 10, true);
  const fallback = new SiteHost('smart.example', 25, 65_536, false);
  const hosts = new SiteHosts([bound, fallback], BACKOFF, () => 0.5);
  bound.isBound = true;
  const wrong = { status: DEFERRED, code: 0, enhanced: '4.7.5', text: 'no TLS' } as const;
  const away = { status: DEFERRED, code: 0, enhanced: '4.4.1', text: 'refused' } as const;
  const told = (): unknown[] => [hosts.next(0)?.name, hosts.mayTake(fallback, true), hosts.mayTake(fallback, false), hosts.firstToMend?.name, hosts.downSinceWallMs];
  hosts.noteFailure(bound, away, 1, 1, undefined);
  assert.deepEqual(told(), ['smart.example', true, false, undefined, undefined], 'over TLS');
  hosts.noteFailure(bound, wrong, 2, 2, undefined);
  hosts.noteFailure(bound, away, 3, 3, undefined);
  assert.deepEqual(told(), [undefined, false, false, 'mx.example', 1], 'they ran side by side');
  hosts.noteFailure(bound, away, 100_000, 4, undefined);
  assert.deepEqual(told(), ['smart.example', true, false, undefined, undefined]);
  hosts.noteFailure(bound, wrong, 300_000, 5, undefined);
  assert.equal(hosts.next(0), undefined);
  hosts.noteAnswer(bound);
  assert.equal(hosts.mayTake(fallback, true), true);
  bound.isBound = false;
  hosts.noteFailure(bound, wrong, 600_000, 6, undefined);
  assert.deepEqual(told(), ['smart.example', true, true, undefined, undefined], 'the route alone asks for it');
});
