/** The way of a queue by MX as time goes by: a resolver that the test answers for, and pools without connections. */
import { NO_TAP } from '../../../../src/smtp/session-tap.js';
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { OUTBOUND_DEFAULTS } from '../../../default-options.js';
import { ConnectionAccount } from '../../../../src/gateway/outbound/connection-account.js';
import { ConnectionPool } from '../../../../src/gateway/outbound/connection-pool.js';
import { Lane } from '../../../../src/gateway/outbound/lane.js';
import { MxDestination } from '../../../../src/gateway/outbound/mx-destination.js';
import { MxLookup } from '../../../../src/gateway/outbound/mx-lookup.js';
import type { StsPolicy } from '../../../../src/gateway/outbound/pure/sts-policy.js';
import { SiteHost } from '../../../../src/gateway/outbound/site-hosts.js';
import { Sources } from '../../../../src/gateway/outbound/sources.js';
import { HostMemory } from '../../../../src/gateway/outbound/host-memory.js';
import type { DnsAnswer, DnsType, Resolver } from '../../../../src/platform/resolver.js';
import { WriteBuffer } from '../../../../src/smtp/write-buffer.js';
import { MemoryQueue, MemorySource } from './memory-source.js';

const SILENT = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const clock = { nowMs: () => 0, wallMs: () => 1 };
const tls = { level: 'may', isFirst: false, terms: { serverName: '', mustVerify: false, caFile: undefined } } as const;
const hop = { protocol: 'smtp', host: 'dest.example', port: 25, isByMx: true, tls } as const;
const BACKOFF = { backoffFirstMs: 1000, backoffMaxMs: 60_000, deniedFirstMs: 300_000, deniedMaxMs: 3_600_000 };

class Stage {
  answer: DnsAnswer<'MX'> = { kind: 'failed', why: 'nobody' };
  /** Questions wait for answerAll(). */
  isSlow = false;
  readonly #late: (() => void)[] = [];
  asked = 0;
  policy: StsPolicy | undefined;
  /** The DNS had no room for its question. */
  isPolicyUnasked = false;
  /** Names of the hosts of each pool that was asked for. */
  readonly pools: string[] = [];
  lastPool: ConnectionPool | undefined;
  readonly source = new MemorySource();
  readonly queue = new MemoryQueue({ nextHop: hop });
  readonly destination: MxDestination;
  readonly ways: (readonly [isOurs: boolean, pools: number, hosts: readonly string[]])[] = [];

  constructor(messages: number) {
    for (let entry = 1; entry <= messages; entry++) this.source.put(this.queue, entry, 'x\r\n');
    const resolver: Resolver = {
      ask: <T extends DnsType>(_name: string, type: T, done: (answer: DnsAnswer<T>) => void) => {
        if (type === 'MX') this.asked++;
        const answer = (type === 'MX' ? this.answer : { kind: 'failed', why: 'not asked' }) as DnsAnswer<T>;
        if (this.isSlow) this.#late.push(() => { done(answer); });
        else done(answer);
      },
    };
    const lookup = new MxLookup({ ownNames: [], allowsPrivate: false, usesIpv6: false, usesMtaSts: false, connectionsMax: 20, connectionsPerAddressMax: 100 }, resolver);
    const session = { buffer: new WriteBuffer(), copyContent: () => undefined, mayDot: () => true, tap: NO_TAP, secure: () => assert.fail('nothing is secured'), password: () => assert.fail('nobody is asked for') };
    const transport = { connect: () => assert.fail('nothing is connected'), addresses: () => assert.fail('nothing is resolved'), secure: () => assert.fail('nothing is secured') };
    const ports = { transport, lookup, sources: new Sources([], { resolver, log: SILENT }), policies: undefined, tlsWatch: undefined, connections: new ConnectionAccount({ connectionsMax: 1, ofAddressMax: 1 }, SILENT), clock, random: () => 0.5, session, log: SILENT, tlsFailed: new HostMemory(), followersOdd: new HostMemory(), badAddresses: new HostMemory(), slow: new HostMemory(), onTlsFallback: () => undefined, onDaneFailed: () => undefined, onSlow: () => undefined };
    const lane = new Lane(this.queue, this.source, { count: 0, onSettled: () => undefined });
    this.destination = new MxDestination(hop, lane, BACKOFF, {
      lookup, policies: { ask: (_domain, done) => { done(this.policy, this.isPolicyUnasked, this.isPolicyUnasked); }, onFailure: () => undefined, hasten: () => undefined, tick: () => undefined }, clock, random: () => 0.5, log: SILENT,
      onWay: (queue, hosts) => { this.ways.push([queue === this.queue, this.pools.length, hosts]); },
      poolOf: ({ hosts }) => {
        const key = hosts.map(({ name }) => name).join();
        this.pools.push(key);
        const site = { key, protocol: 'smtp', hosts: hosts.map(({ name }) => new SiteHost(name, 25, 0, true)), tls: undefined, auth: undefined, dane: undefined, sources: undefined, tlsNeed: undefined, isBySts: false } as const;
        this.lastPool = new ConnectionPool(site, OUTBOUND_DEFAULTS, ports, 0);
        return this.lastPool;
      },
    }, 0);
  }

  answerAll(): void {
    for (const tell of this.#late.splice(0)) tell();
  }

  mx(...names: readonly string[]): void {
    this.answer = { kind: 'found', isAuthentic: false, records: names.map((exchange) => ({ preference: 1, exchange })) };
  }
}

describe('the way of a queue by MX', () => {
  test('is asked for anew every half minute while mail is there, and followed to other hosts', () => {
    const stage = new Stage(3);
    stage.mx('old.example');
    stage.destination.mayStart();
    stage.mx('new.example');
    stage.destination.tick(29_999);
    assert.deepEqual([stage.asked, stage.pools], [1, ['old.example']]);
    stage.destination.tick(30_000);
    assert.deepEqual([stage.asked, stage.pools], [2, ['old.example', 'new.example']]);
    assert.deepEqual(stage.ways, [[true, 1, ['old.example']], [true, 2, ['new.example']]], 'its core is told of the hosts');
  });

  test('is asked for by nobody while there is no mail', () => {
    const stage = new Stage(0);
    stage.mx('old.example');
    stage.destination.mayStart();
    stage.destination.tick(3_600_000);
    assert.equal(stage.asked, 0);
  });

  test('stays as it was while the DNS gives no answer', () => {
    const stage = new Stage(3);
    stage.mx('old.example');
    stage.destination.mayStart();
    stage.answer = { kind: 'failed', why: 'gone' };
    stage.destination.tick(30_000);
    assert.deepEqual([stage.asked, stage.source.ended.length, stage.destination.trouble()], [2, 0, undefined]);
  });

  test('is left, though it was known, when the domain enforces a policy that names none of its hosts', () => {
    const stage = new Stage(3);
    stage.mx('old.example');
    stage.destination.mayStart();
    stage.policy = { mode: 'enforce', mx: ['other.example'], maxAgeS: 86_400 };
    stage.destination.tick(30_000);
    assert.equal(stage.destination.outage()?.why.text, 'the MTA-STS policy of dest.example names none of its MX hosts');
    assert.deepEqual([stage.asked, stage.pools, stage.source.ended.map(({ result }) => result.results[0]?.enhanced)], [2, ['old.example'], ['4.7.5']]);
  });

  test('that was not asked for as the DNS had no room is asked for a second later, and nobody is told or backs off', () => {
    const stage = new Stage(20);
    stage.answer = { kind: 'failed', why: 'too many questions at once', isUnasked: true };
    for (let second = 0; second <= 5; second++) stage.destination.tick(second * 1000);
    assert.deepEqual([stage.asked, stage.source.ended.length, stage.destination.isDown, stage.destination.trouble()], [6, 0, false, undefined]);
    stage.mx('old.example');
    stage.destination.tick(6000);
    assert.deepEqual(stage.pools, ['old.example']);
  });

  test('that is known is kept, and asked for as before, when the DNS had no room for that', () => {
    const stage = new Stage(3);
    stage.mx('old.example');
    stage.destination.mayStart();
    stage.answer = { kind: 'failed', why: 'too many questions at once', isUnasked: true };
    for (const nowMs of [30_000, 31_000, 59_999]) stage.destination.tick(nowMs);
    assert.deepEqual([stage.asked, stage.destination.state()?.relay], [2, 'old.example:25']);
    stage.mx('new.example');
    stage.destination.tick(60_000);
    assert.deepEqual([stage.asked, stage.pools], [3, ['old.example', 'new.example']]);
  });

  test('is not gone while the DNS had no room to ask for the policy of the domain: that is asked for a second later, and nobody is told', () => {
    const stage = new Stage(20);
    stage.mx('old.example');
    stage.isPolicyUnasked = true;
    for (let second = 0; second <= 5; second++) stage.destination.tick(second * 1000);
    assert.deepEqual([stage.asked, stage.pools, stage.source.ended.length, stage.destination.isDown], [6, [], 0, false]);
    stage.isPolicyUnasked = false;
    stage.destination.tick(6000);
    assert.deepEqual(stage.pools, ['old.example']);
    // A way that is known is gone on with.
    stage.isPolicyUnasked = true;
    stage.mx('new.example');
    stage.destination.tick(40_000);
    assert.deepEqual([stage.asked, stage.pools, stage.destination.trouble()], [8, ['old.example'], undefined]);
  });

  test('that was not asked for again ends no mail by what the DNS had said before', () => {
    const stage = new Stage(1);
    stage.answer = { kind: 'no-name', isAuthentic: false };
    stage.destination.mayStart();
    assert.deepEqual([stage.asked, stage.source.ended.length], [1, 1], 'nobody takes mail for it');
    stage.answer = { kind: 'failed', why: 'too many questions at once', isUnasked: true };
    stage.destination.tick(70_000);
    for (const entry of [2, 3]) stage.source.put(stage.queue, entry, 'x\r\n');
    for (const nowMs of [70_250, 71_000, 71_250]) stage.destination.tick(nowMs);
    assert.deepEqual([stage.asked, stage.source.ended.length], [3, 1]);
    stage.mx('new.example');
    stage.destination.tick(72_250);
    assert.deepEqual([stage.pools, stage.source.ended.length], [['new.example'], 1]);
  });

  describe('once the configuration is read anew', () => {
    test('is left until it was asked for again, and not kept where the DNS gives no answer then', () => {
      const stage = new Stage(3);
      stage.mx('old.example');
      stage.destination.mayStart();
      Object.assign(stage, { isSlow: true, answer: { kind: 'failed', why: 'gone' } });
      stage.destination.renew(BACKOFF);
      stage.destination.mayStart();
      assert.equal(stage.destination.state()?.connecting?.doing, 'asking the DNS for the way');
      stage.answerAll();
      assert.match(stage.destination.outage()?.why.text ?? '', /gone/);
      assert.deepEqual([stage.asked, stage.pools, stage.source.ended.length], [2, ['old.example'], 1]);
      stage.mx('old.example');
      stage.destination.tick(60_000);
      stage.answerAll();
      assert.deepEqual([stage.asked, stage.pools.length, stage.ways.length], [3, 2, 2]);
    });

    test('keeps its hosts, with since when they are down, while the DNS gives no answer: not once that says that there are none', () => {
      for (const [answer, isKept] of [[{ kind: 'failed', why: 'gone' }, true], [{ kind: 'no-name', isAuthentic: false }, false]] as const) {
        const stage = new Stage(200);
        stage.mx('old.example');
        stage.destination.mayStart();
        const pool = stage.lastPool;
        stage.answer = answer;
        stage.destination.renew(BACKOFF);
        stage.destination.mayStart();
        assert.equal(pool?.awaitedBy.has(stage.destination), isKept, answer.kind);
        stage.mx('new.example');
        stage.destination.tick(60_000);
        assert.deepEqual([stage.pools.at(-1), pool.awaitedBy.size], ['new.example', 0], answer.kind);
      }
    });

    test('is not what is answered to a question of before', () => {
      const stage = new Stage(3);
      stage.isSlow = true;
      stage.mx('old.example');
      stage.destination.mayStart();
      stage.destination.renew(BACKOFF);
      stage.mx('new.example');
      stage.destination.mayStart();
      stage.answerAll();
      assert.deepEqual([stage.asked, stage.pools], [2, ['new.example']]);
    });

    test('is asked for at once where there was none, and no mail ends by what was said before', () => {
      for (const answer of [{ kind: 'no-name', isAuthentic: false }, { kind: 'failed', why: 'nobody' }] as const) {
        const stage = new Stage(1);
        stage.answer = answer;
        stage.destination.mayStart();
        assert.deepEqual([stage.asked, stage.source.ended.length], [1, 1], answer.kind);
        stage.destination.renew(BACKOFF);
        stage.source.put(stage.queue, 2, 'x\r\n');
        stage.mx('new.example');
        stage.destination.tick(250);
        assert.deepEqual([stage.asked, stage.pools, stage.source.ended.length], [2, ['new.example'], 1], answer.kind);
      }
    });
  });

  test('that is not known is asked for after a wait that doubles up to a minute, each time one message is told why', () => {
    const stage = new Stage(20);
    stage.destination.mayStart();
    const asked: number[] = [];
    for (let second = 1; second <= 200; second++) {
      const before = stage.asked;
      stage.destination.tick(second * 1000);
      if (stage.asked > before) asked.push(second);
    }
    assert.deepEqual(asked, [1, 3, 7, 15, 31, 63, 123, 183]);
    assert.equal(stage.source.ended.length, 9);
    assert.ok(stage.source.ended.every(({ result }) => result.notAttempted === true));
  });

  test('is not followed when the answer comes after the queue has left, and nobody asks from then on', () => {
    const stage = new Stage(1);
    stage.isSlow = true;
    stage.mx('old.example');
    stage.destination.mayStart();
    stage.destination.leave();
    stage.answerAll();
    stage.destination.mayStart();
    stage.destination.tick(60_000);
    assert.deepEqual([stage.asked, stage.pools], [1, []]);
  });
});
