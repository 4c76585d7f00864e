/** Mail by MX records: a real resolver asks a scripted name server, next hops are on addresses of loopback. */
import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Answer } from 'dns-packet';
import type { NextHop } from '../../../../src/gateway/mail-types.js';
import { TlsHop, makeCertificates } from '../../../process/tls-hop.js';
import { DEFAULT_TIMEOUTS, State } from '../../../../src/gateway/outbound/pure/session-states.js';
import { until } from '../../register/real-world.js';
import { SILENCE, TTL_S, a, mx, ofSource, stage } from './mx-stage.js';
import type { Scripted } from '../../platform/node/dns/name-server.js';
import type { Stage } from './mx-stage.js';
import type { ScriptedServer } from './scripted-server.js';

const certificates = makeCertificates();
const needsTls = { skip: certificates === undefined ? 'openssl is missing' : false };

/** 253 characters. */
const LONGEST = `${'l.'.repeat(126)}l`;

/** A host without an address, which may be kept. */
const NONE_FOR_LONG: Scripted = {
  authorities: [{
    type: 'SOA', name: 'example', ttl: 3600,
    data: { mname: 'ns.example', rname: 'root.example', serial: 1, refresh: 1, retry: 1, expire: 1, minimum: 3600 },
  }],
};

function accepted(stage: Stage): Record<string, number> {
  return Object.fromEntries([...stage.hosts].map(([address, { accepted: all }]) => [address, all.length]));
}

/** Of late.example: the preferred host refuses in its greeting, the other one has not greeted yet. */
function refusingAndLate(it: Stage): readonly [ScriptedServer, ScriptedServer] {
  it.zone.set('MX late.example', mx([10, 'a.late.example'], [20, 'b.late.example']));
  it.zone.set('A a.late.example', a('127.0.0.1')).set('A b.late.example', a('127.0.0.2'));
  const [first, second] = [it.hosts.get('127.0.0.1'), it.hosts.get('127.0.0.2')];
  assert.ok(first !== undefined && second !== undefined);
  first.answer = (verb) => (verb === 'GREETING' ? '421 not now' : undefined);
  second.answer = (verb) => (verb === 'GREETING' ? '' : undefined);
  return [first, second];
}

describe('mail by MX', () => {
  test('goes to the most preferred host, and to the next while that one is away', async (t) => {
    const it = await stage(t, ['127.0.0.1', '127.0.0.2']);
    it.zone.set('MX two.example', mx([20, 'b.two.example'], [10, 'a.two.example']));
    it.zone.set('A a.two.example', a('127.0.0.1')).set('A b.two.example', a('127.0.0.2'));
    const queue = it.send('two.example', 1);
    const [[, code, , relay] = []] = await it.ended(1);
    assert.deepEqual([code, relay], ['2.0.0', `a.two.example[127.0.0.1]:${it.port}`]);
    it.hosts.get('127.0.0.1')?.close();
    it.source.put(queue, 2, 'second\r\n');
    it.dispatcher.onReady(queue);
    const [, second] = await it.ended(2);
    assert.equal(second?.[3], `b.two.example[127.0.0.2]:${it.port}`, 'not deferred: another host takes it');
    assert.deepEqual(accepted(it), { '127.0.0.1': 1, '127.0.0.2': 1 });
  });

  test('is not held up by strangers whose hosts take connections and never greet: two to each, and half of all of them', async (t) => {
    const it = await stage(t, ['127.0.0.1', '127.0.0.2'], {}, { connectionsMax: 40 });
    const tarpit = it.hosts.get('127.0.0.2');
    assert.ok(tarpit !== undefined);
    tarpit.answer = () => '';
    const send = (domain: string, address: string, entries: readonly number[]): void => {
      it.zone.set(`MX ${domain}`, mx([10, `mx.${domain}`])).set(`A mx.${domain}`, a(address));
      const [first = 0, ...others] = entries;
      const queue = it.send(domain, first);
      for (const entry of others) it.source.put(queue, entry, 'x\r\n');
      it.dispatcher.onReady(queue);
    };
    const twenty = (from: number) => Array.from({ length: 20 }, (_, i) => from + i);
    send('d0.tar.example', '127.0.0.2', twenty(1000));
    await until(() => tarpit.connections === 2, 'two are met');
    for (let i = 1; i < 30; i++) send(`d${String(i)}.tar.example`, '127.0.0.2', twenty(1000 + 100 * i));
    await until(() => it.dispatcher.whyFull !== '' && tarpit.connections === 20, 'no more are had');
    it.dispatcher.nextHops().forEach(({ connections }) => { assert.ok(connections <= 2); });
    assert.equal(it.dispatcher.whyFull, '20 to hosts by MX of 20 are being set up');
    for (const socket of tarpit.sockets.slice(0, 1)) socket.destroy();
    send('good.example', '127.0.0.1', twenty(1));
    await until(() => accepted(it)['127.0.0.1'] === 20, 'the good host has all of its mail');
    assert.ok(tarpit.openMost <= 20);
  });

  test('opens so many connections to one address, whatever names lead there; the others come when it has room', async (t) => {
    const it = await stage(t, ['127.0.0.1'], { connectionsPerAddressMax: 2 });
    for (let i = 0; i < 12; i++) {
      const domain = `d${String(i)}.example`;
      it.zone.set(`MX ${domain}`, mx([10, `mx.${domain}`])).set(`A mx.${domain}`, a('127.0.0.1'));
      it.send(domain, i);
    }
    for (const [, code] of await it.ended(12)) assert.equal(code, '2.0.0');
    assert.equal(it.hosts.get('127.0.0.1')?.openMost, 2);
    assert.deepEqual(it.log, []);
  });

  test('goes to the next host when the first refuses the connection by its greeting', async (t) => {
    const it = await stage(t, ['127.0.0.1', '127.0.0.2']);
    it.zone.set('MX busy.example', mx([10, 'a.busy.example'], [20, 'b.busy.example']));
    it.zone.set('A a.busy.example', a('127.0.0.1')).set('A b.busy.example', a('127.0.0.2'));
    const first = it.hosts.get('127.0.0.1');
    assert.ok(first !== undefined);
    first.answer = (verb) => (verb === 'GREETING' ? '421 4.3.2 too busy' : undefined);
    it.send('busy.example', 1);
    assert.equal((await it.ended(1))[0]?.[1], '2.0.0');
    assert.deepEqual(accepted(it), { '127.0.0.1': 0, '127.0.0.2': 1 });
  });

  test('waits for a host that greets late, however often the one before it fails meanwhile', async (t) => {
    const it = await stage(t, ['127.0.0.1', '127.0.0.2'], {}, { backoffFirstMs: 10, backoffMaxMs: 10 });
    const [first, second] = refusingAndLate(it);
    const queue = it.send('late.example', 1);
    for (const entry of [2, 3]) it.source.put(queue, entry, 'x\r\n');
    it.dispatcher.onReady(queue);
    await until(() => second.connections === 2 && first.connections >= 4, 'the first is tried again and again');
    second.answer = () => undefined;
    for (const socket of second.sockets) socket.write('220 at last\r\n');
    assert.deepEqual((await it.ended(3)).map(([, code]) => code), ['2.0.0', '2.0.0', '2.0.0']);
  });

  test('is given back once the last host that could have taken it fails as well', async (t) => {
    const it = await stage(t, ['127.0.0.1', '127.0.0.2'], {}, { backoffFirstMs: 60_000, backoffMaxMs: 60_000 });
    const [, second] = refusingAndLate(it);
    it.send('late.example', 1);
    await until(() => second.connections === 1, 'the second is tried');
    assert.equal(it.source.ended.length, 0);
    second.sockets[0]?.write('421 nor here\r\n');
    assert.deepEqual((await it.ended(1)).map(([, , text]) => text), ['421 nor here']);
  });

  test('is not failed by one host that never takes mail while another is only away; by all that never do it is', async (t) => {
    const it = await stage(t, ['127.0.0.1', '127.0.0.2']);
    it.zone.set('MX odd.example', mx([10, 'a.odd.example'], [20, 'b.odd.example']));
    it.zone.set('A a.odd.example', a('127.0.0.1')).set('A b.odd.example', a('127.0.0.2'));
    const [first, second] = [it.hosts.get('127.0.0.1'), it.hosts.get('127.0.0.2')];
    assert.ok(first !== undefined && second !== undefined);
    first.answer = (verb) => (verb === 'GREETING' ? '521 no mail here' : undefined);
    second.answer = (verb) => (verb === 'GREETING' ? '421 not now' : undefined);
    const queue = it.send('odd.example', 1);
    for (let entry = 2; entry <= 7; entry++) it.source.put(queue, entry, 'x\r\n');
    for (const [, code] of await it.ended(3)) assert.match(code, /^4\./);
    second.answer = first.answer;
    assert.equal((await it.ended(7)).at(-1)?.[1], '5.3.2');
  });

  test('is not failed by what its hosts said before the configuration was read anew, while one is asked anew', async (t) => {
    const it = await stage(t, ['127.0.0.1', '127.0.0.2'], {}, { backoffFirstMs: 60_000, backoffMaxMs: 60_000 });
    it.zone.set('MX odd.example', mx([10, 'a.odd.example'], [20, 'b.odd.example']));
    it.zone.set('A a.odd.example', a('127.0.0.1')).set('A b.odd.example', a('127.0.0.2'));
    const [first, second] = [it.hosts.get('127.0.0.1'), it.hosts.get('127.0.0.2')];
    assert.ok(first !== undefined && second !== undefined);
    const refuses = (verb: string): string | undefined => (verb === 'GREETING' ? '521 no mail here' : undefined);
    first.answer = refuses;
    second.answer = refuses;
    const queue = it.send('odd.example', 1);
    assert.equal((await it.ended(1))[0]?.[1], '5.3.2');
    it.dispatcher.renew(it.options);
    // It greets when the first has refused again.
    second.answer = (verb) => (verb === 'GREETING' ? '' : undefined);
    it.source.put(queue, 2, 'x\r\n');
    it.dispatcher.onReady(queue);
    assert.equal((await it.ended(2))[1]?.[1], '4.3.2');
    await until(() => second.connections === 2, 'the second is asked');
    it.source.put(queue, 3, 'x\r\n');
    second.sockets.at(-1)?.write('220 welcome\r\n');
    assert.equal((await it.ended(3))[2]?.[1], '2.0.0');
  });

  test('that waits while no host of its domain answers is told of the one that is tried next, with what it said last', async (t) => {
    const it = await stage(t, ['127.0.0.1'], {}, { backoffFirstMs: 60_000, backoffMaxMs: 60_000 });
    it.zone.set('MX away.example', mx([10, 'a.away.example'])).set('A a.away.example', a('127.0.0.1'));
    const host = it.hosts.get('127.0.0.1');
    assert.ok(host !== undefined);
    host.answer = (verb) => (verb === 'GREETING' ? '554 5.7.1 go away' : undefined);
    const queue = it.send('away.example', 1);
    await it.ended(1);
    it.source.put(queue, 2, 'x\r\n');
    const { relay, why } = it.dispatcher.outageOf(queue) ?? {};
    assert.deepEqual([relay, why?.code, why?.enhanced, why?.text], [`a.away.example:${it.port}`, 554, '4.7.1', '554 5.7.1 go away']);
    host.answer = () => undefined;
    it.dispatcher.hasten(queue);
    assert.equal((await it.ended(2))[1]?.[1], '2.0.0');
    assert.equal(it.dispatcher.outageOf(queue), undefined);
  });

  test('goes, once it is flushed, by records that were mended meanwhile, though others are kept', async (t) => {
    const it = await stage(t, ['127.0.0.1', '127.0.0.2'], {}, { backoffFirstMs: 60_000, backoffMaxMs: 60_000 });
    const lasting = ({ answers = [] }: Scripted): Scripted => ({ answers: answers.map((one) => ({ ...one, ttl: 3600 })) });
    it.zone.set('MX mended.example', lasting(mx([10, 'a.mended.example']))).set('A a.mended.example', NONE_FOR_LONG);
    const queue = it.send('mended.example', 1);
    assert.match((await it.ended(1))[0]?.[2] ?? '', /it has no address/);
    it.zone.set('A a.mended.example', lasting(a('127.0.0.1'))).set('A b.mended.example', lasting(a('127.0.0.2')));
    const flushed = async (entry: number): Promise<readonly string[]> => {
      it.dispatcher.hasten(queue);
      await delay(100);
      it.source.put(queue, entry, 'x\r\n');
      it.dispatcher.onReady(queue);
      return (await it.ended(entry))[entry - 1]?.slice(1) as readonly string[];
    };
    const at = (host: string): string => `${host}:${String(it.port)}`;
    assert.deepEqual(await flushed(2), ['2.0.0', '250 2.0.0 taken', at('a.mended.example[127.0.0.1]')]);
    it.zone.set('MX mended.example', mx([10, 'b.mended.example']));
    assert.deepEqual((await flushed(3)).at(-1), at('b.mended.example[127.0.0.2]'));
  });

  test('of a domain that was not there goes where it is since, once the configuration is read anew', async (t) => {
    const it = await stage(t, ['127.0.0.1']);
    it.zone.set('MX new.example', { ...NONE_FOR_LONG, rcode: 3 });
    const queue = it.send('new.example', 1);
    assert.equal((await it.ended(1))[0]?.[1], '5.1.2');
    it.zone.set('MX new.example', mx([10, 'a.new.example'])).set('A a.new.example', a('127.0.0.1'));
    it.dispatcher.renew(it.options);
    it.source.put(queue, 2, 'x\r\n');
    it.dispatcher.onReady(queue);
    assert.equal((await it.ended(2))[1]?.[1], '2.0.0');
  });

  test('is tried at once when the configuration is read anew, and since when its host is down stays known', async (t) => {
    let ticks = 0;
    const it = await stage(t, ['127.0.0.1'], { onTick: () => { ticks++; } }, { backoffFirstMs: 60_000, backoffMaxMs: 60_000 });
    it.zone.set('MX away.example', mx([10, 'a.away.example'])).set('A a.away.example', a('127.0.0.1'));
    const host = it.hosts.get('127.0.0.1');
    assert.ok(host !== undefined);
    host.answer = (verb) => (verb === 'GREETING' ? '421 4.3.2 too busy' : undefined);
    const queue = it.send('away.example', 1);
    await it.ended(1);
    const since = it.dispatcher.nextHopOf(queue)?.downSinceWallMs;
    assert.ok(since !== undefined);
    it.dispatcher.renew(it.options);
    // What nobody uses is forgotten at the end of a tick.
    const renewedAt = ticks;
    await until(() => ticks >= renewedAt + 2, 'two ticks');
    const shown = it.dispatcher.nextHops().map(({ relay, downSinceWallMs, lastError, retryInMs }) => [relay, downSinceWallMs, lastError, retryInMs]);
    assert.deepEqual(shown, [[`a.away.example:${it.port}`, since, '421 4.3.2 too busy', 0]]);
    it.source.put(queue, 2, 'x\r\n');
    it.dispatcher.onReady(queue);
    await it.ended(2);
    assert.equal(host.connections, 2);
    assert.equal(it.dispatcher.nextHopOf(queue)?.downSinceWallMs, since);
    it.dispatcher.renew(it.options);
    it.zone.set('MX away.example', mx([10, 'b.away.example'])).set('A b.away.example', a('127.0.0.1'));
    host.answer = () => undefined;
    it.source.put(queue, 3, 'x\r\n');
    it.dispatcher.onReady(queue);
    await it.ended(3);
    await until(() => it.dispatcher.nextHops().length === 1, 'where it went before is forgotten');
  });

  test('that waits for a host without a greeting says so, and before that for the DNS', async (t) => {
    const it = await stage(t, ['127.0.0.1']);
    const host = it.hosts.get('127.0.0.1');
    assert.ok(host !== undefined);
    host.answer = () => '';
    it.zone.set('MX mute.example', SILENCE);
    const queue = it.send('mute.example', 1);
    const { relay, doing } = it.dispatcher.nextHopOf(queue)?.connecting ?? {};
    assert.deepEqual([relay, doing], ['mute.example', 'asking the DNS for the way']);
    it.zone.set('MX mute.example', mx([10, 'a.mute.example'])).set('A a.mute.example', a('127.0.0.1'));
    await until(() => it.dispatcher.nextHopOf(queue)?.connecting?.doing === 'waiting for the greeting', 'connected');
    const connecting = it.dispatcher.nextHopOf(queue)?.connecting;
    assert.ok(connecting !== undefined && connecting.forMs >= 0 && connecting.forMs < 20_000);
    assert.equal(connecting.relay, `a.mute.example[127.0.0.1]:${it.port}`);
  });

  test('does not wait for a preferred host that was away and says nothing now', async (t) => {
    const timeouts = DEFAULT_TIMEOUTS.map((ms, state) => (state === State.GREETING ? 1000 : ms));
    const it = await stage(t, ['127.0.0.1', '127.0.0.2'], {}, { timeouts, idleMs: 100, backoffFirstMs: 10 });
    it.zone.set('MX mute.example', mx([10, 'a.mute.example'], [20, 'b.mute.example']));
    it.zone.set('A a.mute.example', a('127.0.0.1')).set('A b.mute.example', a('127.0.0.2'));
    const [mute, other] = [it.hosts.get('127.0.0.1'), it.hosts.get('127.0.0.2')];
    assert.ok(mute !== undefined && other !== undefined);
    mute.answer = () => '';
    const queue = it.send('mute.example', 1);
    await it.ended(1);
    for (let entry = 2; mute.connections < 2 && entry < 50; entry++) {
      // No connection is kept when the next one comes: one is made, and the mute host is probed.
      while (other.open > 0) await delay(20);
      it.source.put(queue, entry, 'x\r\n');
      it.dispatcher.onReady(queue);
      await it.ended(entry);
      if (mute.connections >= 2) assert.equal(mute.open, 1, 'delivered while the probe waits');
    }
    assert.ok(mute.connections >= 2 && other.accepted.length >= 2);
  });

  test('goes by IPv4 when a host has more IPv6 addresses than are tried, and none answers', async (t) => {
    const sources = [{ address: '2001:db8::25', name: 'six.test' }, { address: '127.0.0.1', name: 'gw.test' }];
    const it = await stage(t, ['127.0.0.1'], { usesIpv6: true, known: ofSource('2001:db8::25', 'six.test') }, { sources });
    await until(() => it.log.some((line) => line.includes('confirms')), 'the source confirmed');
    it.zone.set('MX six.example', mx([10, 'a.six.example'])).set('A a.six.example', a('127.0.0.1'));
    it.zone.set('AAAA a.six.example', { answers: [1, 2, 3, 4, 5, 6].map((last): Answer => ({ type: 'AAAA', name: 'x', ttl: TTL_S, data: `2001:db8::${last}` })) });
    it.send('six.example', 1);
    assert.equal((await it.ended(1))[0]?.[3], `a.six.example[127.0.0.1]:${it.port}`);
  });

  test('of a domain with IPv6 alone waits, and says why, where no source of IPv6 is', async (t) => {
    const it = await stage(t, ['127.0.0.1']);
    const six: Scripted = { answers: [{ type: 'AAAA', name: 'x', ttl: TTL_S, data: '2001:db8::1' }] };
    it.zone.set('AAAA six.example', six);
    it.zone.set('MX hosted.example', mx([10, 'mx.hosted.example'])).set('AAAA mx.hosted.example', six);
    it.zone.set('AAAA dark.example', { rcode: 2 });
    it.zone.set('MX empty.example', { answers: [] });
    it.zone.set('MX both.example', mx([10, 'mx.both.example'])).set('A mx.both.example', a('127.0.0.1'));
    ['six.example', 'hosted.example', 'dark.example', 'empty.example', 'both.example'].forEach((domain, at) => it.send(domain, at));
    const said = new Map((await it.ended(5)).map(([entry, code, text]) => [entry, `${code} ${text}`]));
    assert.equal(said.get(0), '4.4.1 six.example has IPv6 addresses only, and no source of IPv6 is configured');
    assert.match(said.get(1) ?? '', /^4.4.1 .*: it has IPv6 addresses only, and no source of IPv6 is configured/);
    assert.match(said.get(2) ?? '', /^4.4.3 no answer on the addresses of dark.example: .*SERVFAIL/);
    assert.equal(said.get(3), '5.1.2 the domain empty.example has no mail host');
    assert.match(said.get(4) ?? '', /^2/);
    assert.ok(!it.names.asked.includes('AAAA mx.both.example'), 'who has IPv4 is not asked for more');
  });

  test('has no more connections to all hosts together than may be open', async (t) => {
    const it = await stage(t, ['127.0.0.1'], {}, { connectionsMax: 3 });
    for (let i = 1; i <= 20; i++) {
      it.zone.set(`MX d${i}.example`, mx([10, `mx.d${i}.example`])).set(`A mx.d${i}.example`, a('127.0.0.1'));
      it.send(`d${i}.example`, i);
    }
    const beganMs = performance.now();
    for (const [, code] of await it.ended(20)) assert.equal(code, '2.0.0');
    assert.equal(it.hosts.get('127.0.0.1')?.openMost, 3);
    // An idle connection is kept for 5 s where nobody else wants one: 30 s for twenty domains by three connections.
    assert.ok(performance.now() - beganMs < 15_000);
  });

  for (const [what, options, more, key, text] of [
    ['to the hosts of its domain', { connectionsMax: 1 }, {}, 'delivery.mx.connections', '1 of 1 to its hosts are open'],
    ['to the address of its host', { connectionsPerAddressMax: 1 }, {}, 'delivery.mx.connections_per_address', 'there are as many to 127.0.0.1 as may be'],
    ['in all', {}, { connectionsMax: 1 }, 'delivery.connections', '1 of 1 are open'],
    ['that are being set up', {}, { connectionsMax: 2 }, 'half of delivery.connections', '1 to hosts by MX of 1 are being set up'],
  ] as const) {
    test(`that waits as there are as many connections ${what} as may be says so`, async (t) => {
      const it = await stage(t, ['127.0.0.1'], options, more);
      const isSettingUp = key.startsWith('half');
      let isHeld = false;
      const host = it.hosts.get('127.0.0.1') ?? assert.fail('a host');
      host.answer = (verb) => {
        if (!isSettingUp && verb !== 'DOT') return undefined;
        isHeld = true;
        return '';
      };
      for (const domain of ['one.example', 'two.example']) it.zone.set(`MX ${domain}`, mx([10, `mx.${domain}`])).set(`A mx.${domain}`, a('127.0.0.1'));
      const first = it.send('one.example', 1);
      await until(() => isHeld, 'the connection is held');
      const isOfSite = key === 'delivery.mx.connections';
      const waiting = isOfSite ? first : it.send('two.example', 2);
      if (isOfSite) it.source.put(first, 2, 'x\r\n');
      it.dispatcher.onReady(waiting);
      await until(() => it.dispatcher.nextHopOf(waiting)?.fullBy !== undefined, 'it has no room');
      assert.deepEqual(it.dispatcher.nextHopOf(waiting)?.fullBy, { key, text });
      assert.equal(waiting.readyCount, 1);
    });
  }

  test('behind a dot that is answered late goes on over another connection, also where no more may be open', async (t) => {
    const it = await stage(t, ['127.0.0.1'], { connectionsMax: 2 });
    it.zone.set('MX late.example', mx([10, 'a.late.example'])).set('A a.late.example', a('127.0.0.1'));
    const server = it.hosts.get('127.0.0.1');
    assert.ok(server !== undefined);
    const queue = it.send('late.example', 1);
    for (let entry = 2; entry <= 40; entry++) it.source.put(queue, entry, 'content\r\n');
    it.dispatcher.onReady(queue);
    await it.ended(40);
    let late = 0;
    const before = server.behindDots;
    server.answer = (verb, connection) => {
      if (late === 0 && verb === 'DOT' && server.behindDots > before) late = server.lastBehindDot;
      return connection === late ? '' : undefined;
    };
    for (let entry = 41; entry <= 80; entry++) it.source.put(queue, entry, 'content\r\n');
    it.dispatcher.onReady(queue);
    const beganMs = performance.now();
    await it.ended(79);
    assert.ok(late > 0 && performance.now() - beganMs < 4_500, `${performance.now() - beganMs} ms`);
  });

  test('is counted for TLS reports by each domain, also when its first mail goes behind a dot of another', async (t) => {
    const counted: string[] = [];
    const it = await stage(t, ['127.0.0.1'], { connectionsMax: 1 }, {}, {
      onSession: (domain) => { counted.push(domain); }, onFailedSession: () => assert.fail('no session fails'),
    });
    for (const domain of ['one.example', 'two.example']) it.zone.set(`MX ${domain}`, mx([10, 'a.shared.example']));
    it.zone.set('A a.shared.example', a('127.0.0.1'));
    const tls = { level: 'may', isFirst: false, terms: { serverName: '', mustVerify: false, caFile: undefined } } as const;
    const queue = it.send('one.example', 1, { tls });
    await it.ended(1);
    const server = it.hosts.get('127.0.0.1');
    assert.ok(server !== undefined);
    for (const socket of server.sockets) socket.pause();
    it.source.put(queue, 2, 'x\r\n');
    it.dispatcher.onReady(queue);
    it.send('two.example', 3, { tls });
    await until(() => it.dispatcher.nextHops().some(({ waiting }) => waiting === 1), 'mail of the second domain that waits');
    for (const socket of server.sockets) socket.resume();
    await it.ended(3);
    assert.deepEqual([server.connections, server.behindDots, counted], [1, 1, ['one.example', 'two.example']]);
  });

  test('in clear because TLS failed there before is counted for TLS reports as failed, with what went wrong then', async (t) => {
    const counted: string[] = [];
    const it = await stage(t, [], {}, {}, {
      onSession: () => assert.fail('no session is well'), onFailedSession: (domain, { address, source }, why) => { counted.push(`${domain} ${address} from ${source} ${why.replace(/:\d+/, '')}`); },
    });
    const hop = new TlsHop({ handshake: 'reset' });
    const port = await hop.listen();
    t.after(() => { hop.close(); });
    for (const domain of ['one.example', 'two.example']) it.zone.set(`MX ${domain}`, mx([10, 'a.shared.example']));
    it.zone.set('A a.shared.example', a('127.0.0.1'));
    const tls = { level: 'may', isFirst: false, terms: { serverName: '', mustVerify: false, caFile: undefined } } as const;
    const queue = it.send('one.example', 1, { port, tls });
    await it.ended(1);
    it.source.put(queue, 2, 'x\r\n');
    it.dispatcher.onReady(queue);
    await it.ended(2);
    it.send('two.example', 3, { port, tls });
    await it.ended(3);
    const said = '127.0.0.1 from 127.0.0.1 no TLS with a.shared.example[127.0.0.1]: ECONNRESET';
    // The handshake, which is told once with what follows it in clear; then the one connection that all go by.
    assert.deepEqual([hop.connections, counted], [2, [`one.example ${said}`, `two.example ${said}`]]);
  });

  test('of a host with several addresses goes to one that takes the connection', async (t) => {
    const it = await stage(t, ['127.0.0.5']);
    it.zone.set('MX many.example', mx([10, 'a.many.example']));
    it.zone.set('A a.many.example', a('127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5'));
    it.send('many.example', 1);
    assert.equal((await it.ended(1))[0]?.[3], `a.many.example[127.0.0.5]:${it.port}`);
  });

  test('tries five addresses of a host at most', async (t) => {
    const it = await stage(t, ['127.0.0.1']);
    it.hosts.get('127.0.0.1')?.close();
    it.zone.set('MX more.example', mx([10, 'a.more.example']));
    it.zone.set('A a.more.example', a(...[2, 3, 4, 5, 6, 7, 8, 9].map((last) => `127.0.0.${last}`)));
    it.send('more.example', 1);
    const [[, code, text] = []] = await it.ended(1);
    assert.equal(code, '4.4.1');
    assert.equal(text?.match(/ECONNREFUSED/g)?.length, 5, text);
  });

  test('goes to the domain itself when it has an address and no MX record; to a literal without a question', async (t) => {
    const it = await stage(t, ['127.0.0.1']);
    it.zone.set('A plain.example', a('127.0.0.1'));
    it.send('plain.example', 1);
    it.send('[127.0.0.1]', 2);
    for (const [, code] of await it.ended(2)) assert.equal(code, '2.0.0');
    assert.deepEqual(it.names.asked, ['MX plain.example', 'A plain.example']);
  });

  test('of domains with the same hosts shares their connections, and no more than allowed', async (t) => {
    const it = await stage(t, ['127.0.0.1'], { connectionsMax: 3 });
    it.zone.set('A shared.example', a('127.0.0.1'));
    for (let i = 1; i <= 30; i++) {
      it.zone.set(`MX d${i}.example`, mx([10, 'shared.example']));
      it.send(`d${i}.example`, i);
    }
    for (const [, code] of await it.ended(30)) assert.equal(code, '2.0.0');
    assert.ok((it.hosts.get('127.0.0.1')?.openMost ?? 0) <= 3);
    assert.equal(it.dispatcher.nextHops().length, 1);
  });

  for (const [what, domain, records, code, text] of [
    ['that is longer than a name can be', `${'l.'.repeat(126)}ll`, undefined, '5.1.2', 'its domain is no name that the DNS can hold'],
    ['that is as long as a name can be', LONGEST, undefined, '5.1.2', `the domain ${LONGEST} does not exist`],
    ['that does not exist', 'nowhere.example', undefined, '5.1.2', 'the domain nowhere.example does not exist'],
    ['that takes no mail', 'null.example', mx([0, '.']), '5.1.10', 'the domain null.example takes no mail (null MX)'],
    ['without a host', 'bare.example', { answers: [] }, '5.1.2', 'the domain bare.example has no mail host'],
    ['that leads to us', 'loop.example', mx([10, 'GW.test'], [10, 'peer.example']), '5.4.6', 'mail for loop.example loops back to gw.test'],
    ['whose records name no host', 'odd.example', mx([10, '192.0.2.1']), '4.4.4', 'no MX record of odd.example names a host'],
  ] as const) {
    test(`to a domain ${what} ends so`, async (t) => {
      const it = await stage(t, []);
      if (records !== undefined) it.zone.set(`MX ${domain}`, records);
      it.send(domain, 1);
      // Nobody was connected to: a bounce names no relay.
      assert.deepEqual((await it.ended(1))[0], [1, code, text, code.startsWith('5') ? '' : domain]);
    });
  }

  test('goes where the DNS says that a host is, though its name may pass for a number', async (t) => {
    const it = await stage(t, ['127.0.0.1']);
    it.zone.set('MX hex.example', mx([10, '0x7f000002'])).set('A 0x7f000002', a('127.0.0.1'));
    it.send('hex.example', 1);
    assert.deepEqual((await it.ended(1))[0]?.slice(1), ['2.0.0', '250 2.0.0 taken', `0x7f000002[127.0.0.1]:${it.port}`]);
  });

  test('ends at once for a whole queue of a domain without a way', async (t) => {
    const it = await stage(t, []);
    const queue = it.send('nowhere.example', 1);
    for (let entry = 2; entry <= 250; entry++) it.source.put(queue, entry, 'x\r\n');
    it.dispatcher.onReady(queue);
    for (const [, code] of await it.ended(250)) assert.equal(code, '5.1.2');
    assert.equal(it.names.asked.length, 1);
  });

  test('goes to the fallback of its route while no host takes connections, on whatever address that is', async (t) => {
    const it = await stage(t, ['127.0.0.1', '127.0.0.2'], { allowsPrivate: false });
    it.zone.set('MX dead.example', mx([10, 'a.dead.example'])).set('A a.dead.example', a('127.0.0.1'));
    const others = [{ host: '127.0.0.2', port: it.port, preference: 65_536 }];
    it.send('dead.example', 1, { others });
    const [[, code, , relay] = []] = await it.ended(1);
    assert.deepEqual([code, relay], ['2.0.0', `127.0.0.2[127.0.0.2]:${it.port}`]);
    assert.deepEqual(accepted(it), { '127.0.0.1': 0, '127.0.0.2': 1 });
  });

  test('goes to its host again once that is back, though a connection to the fallback is kept', async (t) => {
    const it = await stage(t, ['127.0.0.1', '127.0.0.2'], {}, { backoffFirstMs: 500, backoffMaxMs: 500 });
    const [host, fallback] = [it.hosts.get('127.0.0.1'), it.hosts.get('127.0.0.2')];
    assert.ok(host !== undefined && fallback !== undefined);
    it.zone.set('MX back.example', mx([10, 'a.back.example'])).set('A a.back.example', a('127.0.0.1'));
    host.answer = (verb) => (verb === 'GREETING' ? '421 not now' : undefined);
    const queue = it.send('back.example', 1, { others: [{ host: '127.0.0.2', port: it.port, preference: 65_536 }] });
    let entry = 1;
    const next = async (): Promise<void> => {
      await it.ended(entry);
      await delay(20);
      it.source.put(queue, ++entry, 'x\r\n');
      it.dispatcher.onReady(queue);
    };
    while (host.connections < 3) await next();
    await it.ended(entry);
    assert.deepEqual([fallback.accepted.length, fallback.connections <= 4], [entry, true], 'kept between two tries');
    host.answer = () => undefined;
    for (const before = fallback.accepted.length; host.accepted.length < 3;) {
      await next();
      assert.ok(fallback.accepted.length < before + 50);
    }
    await until(() => fallback.open === 0, 'the fallback is left');
  });

  test('waits for its host, though there is a fallback, while as many connections lead to the address of that as may', async (t) => {
    const it = await stage(t, ['127.0.0.1', '127.0.0.2'], { connectionsPerAddressMax: 1 });
    const [host, fallback] = [it.hosts.get('127.0.0.1'), it.hosts.get('127.0.0.2')];
    assert.ok(host !== undefined && fallback !== undefined);
    host.answer = (verb, connection) => (verb === 'DOT' && connection === 1 ? '' : undefined);
    const others = [{ host: '127.0.0.2', port: it.port, preference: 65_536 }];
    for (const domain of ['one.example', 'two.example']) it.zone.set(`MX ${domain}`, mx([10, `mx.${domain}`])).set(`A mx.${domain}`, a('127.0.0.1'));
    it.send('one.example', 1, { others });
    await until(() => host.verbs.includes('DATA'), 'it holds the first');
    it.send('two.example', 2, { others });
    await until(() => it.dispatcher.nextHops().some(({ fullBy }) => fullBy !== undefined), 'there is no room');
    host.sockets[0]?.write('250 2.0.0 taken\r\n');
    const ended = await it.ended(2);
    assert.deepEqual(ended.map(([, code, , relay]) => [code, relay]), ['one', 'two'].map((name) => ['2.0.0', `mx.${name}.example[127.0.0.1]:${it.port}`]));
    assert.deepEqual([fallback.connections, host.openMost], [0, 1]);
  });

  test('goes to a backup only where it is not one itself', async (t) => {
    const it = await stage(t, ['127.0.0.1']);
    it.zone.set('MX backed.example', mx([10, 'main.backed.example'], [20, 'gw.test'], [30, 'last.backed.example']));
    it.zone.set('A main.backed.example', a('127.0.0.9')).set('A last.backed.example', a('127.0.0.1'));
    it.send('backed.example', 1);
    const [[, code] = []] = await it.ended(1);
    assert.equal(code, '4.4.1');
    assert.deepEqual(accepted(it), { '127.0.0.1': 0 }, 'a host behind us would give it back');
  });

  test('waits while the DNS gives no answer, says why, and goes when it does', async (t) => {
    const it = await stage(t, ['127.0.0.1']);
    it.zone.set('MX late.example', { rcode: 2 });
    const queue = it.send('late.example', 1);
    for (let entry = 2; entry <= 20; entry++) it.source.put(queue, entry, 'waits\r\n');
    const [[, code, text] = []] = await it.ended(1);
    assert.equal(code, '4.4.3');
    assert.match(text ?? '', /^no answer on MX of late\.example: /);
    assert.deepEqual(it.dispatcher.nextHops().map(({ relay, waiting }) => [relay, waiting]), [['late.example', 19]]);
    const outage = it.dispatcher.outageOf(queue);
    assert.deepEqual([outage?.relay, outage?.why.enhanced, outage?.why.text], ['late.example', '4.4.3', text]);
    it.zone.set('MX late.example', mx([10, 'a.late.example'])).set('A a.late.example', a('127.0.0.1'));
    const last = (await it.ended(20)).slice(10).map(([, each]) => each);
    assert.deepEqual(last, last.map(() => '2.0.0'), 'one was given back for each time that the DNS was asked');
    assert.equal(it.dispatcher.outageOf(queue), undefined);
    assert.deepEqual(it.dispatcher.nextHops().map(({ lastError }) => lastError), ['']);
  });

  test('is told apart by what it needs of TLS, where one host fails for all of it', async (t) => {
    const it = await stage(t, []);
    it.zone.set('MX fail.example', mx([10, 'mx.fail.example'])).set('A mx.fail.example', a('127.0.0.9'));
    it.zone.set('MX late.example', { rcode: 2 });
    let entry = 0;
    for (const [domain, tlsNeed] of [
      ['fail.example'], ['fail.example', 'optional'], ['late.example'], ['late.example', 'optional'], ['late.example', 'required'],
    ] as const) it.send(domain, ++entry, { port: 1, ...(tlsNeed === undefined ? {} : { tlsNeed }) });
    await until(() => it.dispatcher.nextHops().length === 5, 'all are tried');
    assert.deepEqual(it.dispatcher.nextHops().map(({ relay }) => relay).sort(), [
      'late.example', 'late.example (!any)', 'late.example (!tls)', 'mx.fail.example:1', 'mx.fail.example:1 (!any)',
    ]);
  });

  test('waits with 4.4.3 while the DNS tells no address of its hosts, and with 4.4.1 where there is none', async (t) => {
    const it = await stage(t, ['127.0.0.1']);
    it.zone.set('MX late.example', mx([10, 'a.late.example'])).set('A a.late.example', { rcode: 2 });
    it.zone.set('MX bare.example', mx([10, 'a.bare.example'])).set('TXT a.bare.example', {});
    it.send('late.example', 1);
    const [[, code, text] = []] = await it.ended(1);
    assert.match(`${code ?? ''} ${text ?? ''}`, /^4\.4\.3 no connection to a\.late\.example:\d+: no answer on its address: /);
    it.send('bare.example', 2);
    const [, [, other, none] = []] = await it.ended(2);
    assert.match(`${other ?? ''} ${none ?? ''}`, /^4\.4\.1 no connection to a\.bare\.example:\d+: it has no address$/);
  });

  test('waits with 4.4.3 where one family has private addresses alone and nobody tells of the other, as explain says', async (t) => {
    const it = await stage(t, ['127.0.0.1'], { allowsPrivate: false, usesIpv6: true });
    it.zone.set('MX half.example', mx([10, 'a.half.example'])).set('A a.half.example', a('10.0.0.1')).set('AAAA a.half.example', { rcode: 2 });
    it.send('half.example', 1);
    const [[, code, text] = []] = await it.ended(1);
    assert.match(`${code ?? ''} ${text ?? ''}`, /^4\.4\.3 no connection to a\.half\.example:\d+: no answer on its address: .*; 10\.0\.0\.1 is a private address, which/);
    // No source of IPv6 is confirmed, and of IPv4 nobody tells.
    it.zone.set('MX six.example', mx([10, 'a.six.example'])).set('A a.six.example', { rcode: 2 });
    it.zone.set('AAAA a.six.example', { answers: [{ type: 'AAAA', name: 'x', ttl: TTL_S, data: '2606:4700::1' }] });
    it.send('six.example', 2);
    const [, [, other, none] = []] = await it.ended(2);
    assert.match(`${other ?? ''} ${none ?? ''}`, /^4\.4\.3 no connection to a\.six\.example:\d+: no answer on its address: .*; 2606:4700::1: no IPv6 source is confirmed for it$/);
  });

  test('asks for the certificate of the host, not of the domain, and of each host its own', needsTls, async (t) => {
    const it = await stage(t, []);
    const hop = new TlsHop({ certificate: certificates?.issue('a.tls.example') });
    const port = await hop.listen();
    t.after(() => { hop.close(); });
    it.zone.set('MX tls.example', mx([10, 'a.tls.example'])).set('A a.tls.example', a('127.0.0.1'));
    it.zone.set('MX other.example', mx([10, 'b.tls.example'])).set('A b.tls.example', a('127.0.0.1'));
    const tls = { level: 'verify', isFirst: false, terms: { serverName: '', mustVerify: true, caFile: certificates?.caFile } } as const;
    it.send('tls.example', 1, { port, tls });
    assert.equal((await it.ended(1))[0]?.[1], '2.0.0');
    it.send('other.example', 2, { port, tls });
    const [, [, code, text] = []] = await it.ended(2);
    assert.equal(code, '4.7.5', text);
    assert.deepEqual(hop.taken.map(({ isSecure }) => isSecure), [true]);
  });

  test('never goes to an address that no host of the Internet has', async (t) => {
    const it = await stage(t, ['127.0.0.1'], { allowsPrivate: false });
    it.zone.set('MX evil.example', mx([10, 'inside.evil.example']));
    it.zone.set('A inside.evil.example', a('127.0.0.1', '10.0.0.1', '100.64.0.1', '169.254.169.254', '0.0.0.0'));
    it.send('evil.example', 1);
    it.send('[IPv6:::ffff:127.0.0.1]', 2);
    it.send('[IPv6:64:ff9b::7f00:1]', 3);
    for (const [, code, text] of await it.ended(3)) {
      assert.equal(code, '4.4.1');
      assert.match(text, /which is not connected to \(delivery\.mx\.allow_private_addresses\)/);
    }
    assert.equal(it.hosts.get('127.0.0.1')?.connections, 0);
  });
});

describe('mail to one of several hosts', () => {
  const several = (port: number, ...preferences: readonly number[]): Partial<NextHop> => ({
    isByMx: false, host: '127.0.0.1', others: preferences.map((preference, at) => ({ host: `127.0.0.${at + 2}`, port, preference })),
  });

  test('goes to the first that takes connections', async (t) => {
    const it = await stage(t, ['127.0.0.1', '127.0.0.2', '127.0.0.3']);
    it.hosts.get('127.0.0.1')?.close();
    it.send('of no account', 1, several(it.port, 1, 2));
    assert.equal((await it.ended(1))[0]?.[1], '2.0.0');
    assert.deepEqual(accepted(it), { '127.0.0.1': 0, '127.0.0.2': 1, '127.0.0.3': 0 });
  });

  test('goes to any of those that are equal', async (t) => {
    const it = await stage(t, ['127.0.0.1', '127.0.0.2', '127.0.0.3']);
    const queue = it.send('of no account', 1, several(it.port, 0, 1));
    for (let entry = 2; entry <= 200; entry++) it.source.put(queue, entry, 'x\r\n');
    it.dispatcher.onReady(queue);
    for (const [, code] of await it.ended(200)) assert.equal(code, '2.0.0');
    const { '127.0.0.1': one = 0, '127.0.0.2': other = 0, '127.0.0.3': last = 0 } = accepted(it);
    assert.ok(one > 0 && other > 0 && last === 0, `${one} ${other} ${last}`);
  });
});
