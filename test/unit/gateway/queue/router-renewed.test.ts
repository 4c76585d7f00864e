/** Other routes while Routes of before are held: who changes, who stays, what is refused, and what mail has no way out. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createRouter } from '../../../../src/gateway/queue/router.js';
import type { RouteOptions } from '../../../../src/gateway/queue/router.js';
import { followingCount, whyNoSuccessor } from '../../../../src/gateway/queue/successors.js';
import { OWN_ORIGIN } from '../../../../src/gateway/mail-types.js';

const COMMON = { ordering: 'fifo', concurrency: 4, lengthMax: 10 } as const;

function routeTo(name: string, host: string, more: Partial<RouteOptions> = {}): RouteOptions {
  return { ...COMMON, name, domains: [`${name}.example`], nextHop: { protocol: 'smtp', host, port: 25 }, ...more };
}

describe('a router that is asked for many domains', () => {
  test('keeps the Routes that were asked for last, and lets others go', () => {
    const router = createRouter([{ ...routeTo('a', 'old'), domains: ['*'], perDomain: true }]);
    const ask = (domain: string): unknown => router.route(domain, 'mail', '', OWN_ORIGIN);
    const [first, often] = [ask('first.example'), ask('often.example')];
    let last: unknown;
    for (let i = 0; i < 250_000; i++) {
      const domain = `d${String(i)}.example`;
      const made = ask(domain);
      // One that was asked for between two RCPTs of a transaction.
      if (last !== undefined && ask(`d${String(i - 1)}.example`) !== last) assert.fail(`another Route of ${domain}`);
      last = made;
      if (i % 10_000 === 0) assert.equal(ask('often.example'), often);
    }
    assert.notEqual(ask('first.example'), first);
  });
});

describe('a router with other routes', () => {
  test('knows the domain of a queue that is left from queues by domain, and none of one that is left from lanes', () => {
    for (const more of [{}, { perDomain: true }, { lanes: 4 }]) {
      const router = createRouter([routeTo('a', 'old', more), routeTo('a/b', 'old', more)]);
      const left = ['a/x.example', 'a/x.example!tls', 'a/b/x.example', 'a', 'a/b', 'a!tls', 'a#3', 'a#3!any'];
      const domains = left.map((name) => router.routeOfQueue(name, 'mail')).map((route) => route && router.domainOf(route));
      assert.deepEqual(domains, ['x.example', 'x.example', 'x.example', '', '', '', '', ''], JSON.stringify(more));
    }
  });

  test('tells a Route that is held where it leads now', () => {
    const router = createRouter([routeTo('a', 'old'), routeTo('b', 'same')]);
    const [a, b] = [router.route('a.example', 'mail', '', OWN_ORIGIN), router.route('b.example', 'mail', '', OWN_ORIGIN)];
    assert.ok(a !== undefined && b !== undefined);
    const bounce = router.routeOfQueue('a', 'bounce');
    const required = router.withTls(a, 'required');
    router.renew([routeTo('a', 'new', { concurrency: 9, lengthMax: 7 }), routeTo('b', 'same')]);
    assert.deepEqual([a.nextHop.host, a.concurrency, a.lengthMax, bounce?.nextHop.host], ['new', 9, 7, 'new']);
    assert.deepEqual([required.nextHop.host, required.nextHop.tlsNeed], ['new', 'required']);
    assert.equal(router.route('a.example', 'mail', '', OWN_ORIGIN), a, 'compared by identity');
    assert.equal(b.nextHop.host, 'same');
  });

  test('tells also one that it has let go', () => {
    const perDomain = (host: string): RouteOptions => routeTo('a', host, { domains: ['*'], perDomain: true });
    const router = createRouter([perDomain('old')]);
    const first = router.route('first.example', 'mail', '', OWN_ORIGIN);
    assert.ok(first !== undefined);
    for (let i = 0; i < 100_000; i++) router.route(`${String(i)}.example`, 'mail', '', OWN_ORIGIN);
    const anew = router.route('first.example', 'mail', '', OWN_ORIGIN);
    assert.notEqual(anew, first);
    assert.equal(anew?.label, first.label);
    router.renew([perDomain('new')]);
    assert.equal(first.nextHop.host, 'new');
  });

  test('tells a Route of a name that was gone and is back', () => {
    const tls = { level: 'verify', isFirst: false, terms: { serverName: 'new', mustVerify: true, caFile: undefined } } as const;
    for (const more of [{}, { perDomain: true }]) {
      const router = createRouter([routeTo('a', 'old', more)]);
      const a = router.route('a.example', 'mail', '', OWN_ORIGIN);
      assert.ok(a !== undefined);
      const required = router.withTls(a, 'required');
      router.renew([]);
      assert.equal(router.withTls(a, 'optional').nextHop.host, 'old');
      router.renew([routeTo('b', 'other')]);
      router.renew([routeTo('a', 'new', { ...more, nextHop: { protocol: 'smtp', host: 'new', port: 25, tls }, concurrency: 9 })]);
      assert.deepEqual([a.nextHop.host, a.nextHop.tls, a.concurrency, required.nextHop.host], ['new', tls, 9, 'new']);
    }
  });

  test('leaves a Route whose name is gone as it was, for who is taking mail by it', () => {
    const router = createRouter([routeTo('a', 'old'), routeTo('b', 'same')]);
    const a = router.route('a.example', 'mail', '', OWN_ORIGIN);
    assert.ok(a !== undefined);
    router.renew([routeTo('b', 'same')]);
    assert.equal(a.nextHop.host, 'old');
    assert.equal(router.withTls(a, 'optional').nextHop.host, 'old');
    assert.equal(router.route('a.example', 'mail', '', OWN_ORIGIN), undefined);
    assert.equal(router.routeOfQueue('a', 'mail'), undefined);
    assert.deepEqual(router.mailRoutes().map(({ queueName }) => queueName), ['b']);
  });

  test('goes by other domains and conditions at once', () => {
    const router = createRouter([routeTo('a', 'one')]);
    router.renew([routeTo('a', 'one', { domains: ['*'], when: { senders: ['*@s.example'] } })]);
    assert.equal(router.route('a.example', 'mail', '', OWN_ORIGIN), undefined);
    assert.equal(router.route('z.example', 'mail', '', { ...OWN_ORIGIN, reversePath: 'x@s.example' })?.queueName, 'a');
  });
});

describe('other routes are refused', () => {
  test('where a name comes back with other queues than it had, and not where it has the same', () => {
    const router = createRouter([routeTo('a', 'old'), routeTo('b', 'same')]);
    const again = (more: Partial<RouteOptions>): string => router.whyNot([routeTo('a', 'new', more)], false);
    router.renew([routeTo('b', 'same')]);
    assert.equal(again({ concurrency: 9, domains: ['*'], lanes: 1, perDomain: false }), '');
    const nextHop = { protocol: 'smtp', host: '', port: 25, isByMx: true } as const;
    for (const more of [{ ordering: 'strict' }, { perDomain: true }, { lanes: 2 }, { lanesBy: 'sender' }, { nextHop }] as const) {
      assert.match(again(more), /^route a was in force since the start, with another order, queues or lanes, .*: that needs a restart, or another name$/);
    }
    assert.equal(router.whyNot([routeTo('c', 'new', { ordering: 'strict' })], false), '');
    router.renew([routeTo('c', 'new')]);
    assert.match(again({ ordering: 'strict' }), /^route a was in force/, 'however long ago');
  });

  test('where a name is gone while mail may still come back from the stores', () => {
    const router = createRouter([routeTo('a', 'old'), routeTo('b', 'same')]);
    assert.match(router.whyNot([routeTo('b', 'same')], true), /^route a is gone from this file, and queues that are still coming back from the stores may have mail for it: ask again /);
    assert.equal(router.whyNot([routeTo('b', 'same')], false), '');
    assert.equal(router.whyNot([routeTo('a', 'new'), routeTo('b', 'same'), routeTo('c', 'new')], true), '');
  });

  test('where more names are gone than are kept', () => {
    const many = (count: number): readonly RouteOptions[] => Array.from({ length: count }, (_none, i) => routeTo(`n${String(i)}`, 'one'));
    const router = createRouter(many(4096));
    router.renew([routeTo('a', 'one')]);
    assert.match(router.whyNot([routeTo('b', 'one')], false), /^more than 4096 names of routes are gone since the start: that needs a restart$/);
    assert.equal(router.whyNot([routeTo('n0', 'one')], false), '');
    assert.equal(router.whyNot([routeTo('a', 'two')], false), '');
  });
});

describe('mail that waits', () => {
  const queue = (name: string, length: number, routed = true) => ({ name, length, routed, route: { queueClass: 'mail' as const, nextHop: { protocol: 'smtp' as const, host: 'one', port: 25 } } });
  const router = createRouter([routeTo('a', 'one'), routeTo('b', 'two', { perDomain: true })]);

  test('has a way out by the name of its route', () => {
    assert.equal(whyNoSuccessor([queue('a', 3), queue('b/x.example', 2), queue('gone', 0), queue('old', 4, false), queue('old', 0, false)], router), '');
  });

  test('has none when that is gone: each queue is named with its messages, both halves of it together', () => {
    const why = whyNoSuccessor([queue('gone', 2), queue('gone', 1), queue('c/x.example', 1)], router);
    assert.match(why, /^mail waits in gone \(3 messages\), c\/x\.example \(1 message\), and no route of this file has that name: keep the name and change its via, or .* \(twinpost queue rebind --queue gone --route OTHER\)$/);
    assert.doesNotMatch(why, /bounce/, 'who is in a hurry returns no mail by it');
  });

  test('is counted where it would go another way', () => {
    assert.equal(followingCount([queue('a', 3), queue('b/x.example', 2), queue('gone', 4)], router), 2);
  });

  test('that was held for want of a route asks for a restart when there is one again', () => {
    assert.match(whyNoSuccessor([queue('a', 5, false)], router), /^mail is held in a \(5 messages\) for want of a route that this file has again: restart/);
  });

  test('takes no new mail into a queue without a route by a route that it was not made for', () => {
    assert.match(whyNoSuccessor([queue('a', 0, false)], router), /^a \(0 messages\) had no route until now, and will be forgotten: ask again in a minute$/);
  });
});
