/** Queues of mail whose senders ask something of TLS: beside those of their routes, found again by their names. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { nextHopKey } from '../../../../src/gateway/queue/next-hop.js';
import { createRouter } from '../../../../src/gateway/queue/router.js';
import { OWN_ORIGIN } from '../../../../src/gateway/mail-types.js';
import type { RouteOptions } from '../../../../src/gateway/queue/router.js';
import type { NextHop, TlsNeed } from '../../../../src/gateway/mail-types.js';

const COMMON = { ordering: 'fifo', concurrency: 5, lengthMax: 10 } as const;
const TERMS = { serverName: 'hop.example', mustVerify: false, caFile: undefined };

function hopOf(options: Pick<RouteOptions, 'nextHop' | 'perDomain' | 'lanes'>, need: TlsNeed): readonly [name: string, hop: NextHop] {
  const table = createRouter([{ ...COMMON, name: 'out', domains: ['*'], ...options }]);
  const plain = table.route('a.example', 'mail', '', OWN_ORIGIN);
  assert.ok(plain !== undefined);
  const route = table.withTls(plain, need);
  assert.equal(table.withTls(plain, need), route, 'compared by identity');
  assert.equal(table.withTls(route, need), route, 'of one that is such a one');
  assert.equal(table.routeOfQueue(route.queueName, 'mail'), route, 'a queue that came back');
  const domain = options.perDomain === true ? 'a.example' : '';
  assert.deepEqual([table.domainOf(plain), table.domainOf(route)], [domain, domain], 'of the same domain');
  assert.notEqual(nextHopKey(plain.nextHop), nextHopKey(route.nextHop), 'no connection is shared');
  return [route.queueName, route.nextHop];
}

describe('the queue of mail that must have TLS', () => {
  const hop: NextHop = { protocol: 'smtp', host: 'hop.example', port: 25, tls: { level: 'may', isFirst: false, terms: TERMS } };
  test('leads to the same host, whose certificate is judged, and that must promise it too', () => {
    assert.deepEqual(hopOf({ nextHop: hop }, 'required'), ['out!tls', {
      ...hop, tlsNeed: 'required', tls: { level: 'verify', isFirst: false, isRequired: true, why: 'so asks its sender (REQUIRETLS)', terms: { ...TERMS, mustVerify: true } },
    }]);
  });

  test('so does one of a route without TLS', () => {
    const tls = { level: 'verify', isFirst: false, isRequired: true, why: 'so asks its sender (REQUIRETLS)', terms: { serverName: 'hop.example', caFile: undefined, mustVerify: true } };
    assert.deepEqual(hopOf({ nextHop: { ...hop, tls: undefined }, lanes: 4 }, 'required')[1].tls, tls);
  });

  test('asks the same of hosts with terms of their own, which keep their password', () => {
    const auth = { user: 'a', passwordFile: '/a' };
    const others = [{ host: 'b.example', port: 25, preference: 1, terms: { tls: undefined, auth } }, { host: 'c.example', port: 25, preference: 2 }];
    const [, { others: raised }] = hopOf({ nextHop: { ...hop, others } }, 'required');
    const tls = { level: 'verify', isFirst: false, isRequired: true, why: 'so asks its sender (REQUIRETLS)', terms: { serverName: '', caFile: undefined, mustVerify: true } };
    assert.deepEqual(raised, [{ ...others[0], terms: { tls, auth } }, others[1]]);
  });

  test('shares no connection with one whose hosts have other terms', () => {
    const keys = [undefined, { tls: undefined, auth: undefined }, { tls: hop.tls, auth: undefined }, { tls: undefined, auth: { user: 'a', passwordFile: '/a' } }].map((terms) =>
      nextHopKey({ ...hop, others: [{ host: 'b.example', port: 25, preference: 1, ...(terms === undefined ? {} : { terms }) }] }));
    assert.equal(new Set(keys).size, keys.length, keys.join());
  });

  test('by MX is of one domain, as that beside it', () => {
    const [name, { host, tls }] = hopOf({ nextHop: { ...hop, host: '', isByMx: true, tls: undefined }, perDomain: true }, 'required');
    assert.deepEqual([name, host, tls?.terms.serverName], ['out/a.example!tls', 'a.example', '']);
  });

  test('into mailboxes goes as the route says on this machine, elsewhere in TLS; nobody must promise anything', () => {
    const local: NextHop = { protocol: 'lmtp', host: '127.0.0.1', port: 24, tls: undefined };
    assert.deepEqual(hopOf({ nextHop: local }, 'required')[1], { ...local, tlsNeed: 'required' });
    const { tls } = hopOf({ nextHop: { ...local, host: 'box.example' } }, 'required')[1];
    assert.deepEqual([tls?.level, tls?.isRequired], ['verify', false]);
  });

  test('into mailboxes goes in TLS, too, where one of several hosts is elsewhere', () => {
    const first = { host: '127.0.0.1', port: 24 };
    const hop: NextHop = { protocol: 'lmtp', ...first, tls: undefined };
    const tlsWith = (host: string): NextHop['tls'] =>
      hopOf({ nextHop: { ...hop, others: [{ host, port: 24, preference: 1 }] } }, 'required')[1].tls;
    assert.equal(tlsWith('localhost'), undefined);
    const tls = tlsWith('10.0.0.2');
    assert.deepEqual([tls?.level, tls?.isRequired, tls?.terms.mustVerify], ['verify', false, true]);
  });
});

test('the queue of mail of which TLS is not asked keeps what its route asks', () => {
  const hop: NextHop = { protocol: 'smtp', host: '', port: 25, isByMx: true, tls: { level: 'encrypt', isFirst: false, terms: TERMS } };
  assert.deepEqual(hopOf({ nextHop: hop, perDomain: true }, 'optional'), ['out/a.example!any', { ...hop, host: 'a.example', tlsNeed: 'optional' }]);
});
