/** Mail from addresses of our own, on real sockets: what next hops see, and what is not tried. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { TlsHop, makeCertificates } from '../../../process/tls-hop.js';
import { until } from '../../register/real-world.js';
import { MemoryQueue } from './memory-source.js';
import { SILENCE, TTL_S, a, mx, ofSource, stage } from './mx-stage.js';
import type { Stage, StageOptions } from './mx-stage.js';
import type { Scripted } from '../../platform/node/dns/name-server.js';
import type { DispatcherOptions } from '../../../../src/gateway/outbound/dispatcher.js';
import type { TestContext } from 'node:test';

const certificates = makeCertificates();
const TWO = [{ address: '127.0.0.2', name: 'two.test' }, { address: '127.0.0.3', name: 'three.test' }];
const SIX = { address: '::1', name: 'six.test' };

interface Seen extends Stage {
  /** "server address: client address, its EHLO" of each connection that greeted. */
  readonly seen: readonly string[];
}

async function watched(t: TestContext, addresses: readonly string[], more: Partial<DispatcherOptions>, options: StageOptions = {}): Promise<Seen> {
  const it = await stage(t, addresses, options, more);
  const seen: string[] = [];
  for (const [address, server] of it.hosts) {
    server.answer = (verb, connection, line) => {
      if (verb === 'EHLO') seen.push(`${address}: ${server.sockets[connection - 1]?.remoteAddress ?? ''}, ${line}`);
      return undefined;
    };
  }
  return { ...it, seen };
}

function six(address: string): Scripted {
  return { answers: [{ type: 'AAAA', name: 'x', ttl: TTL_S, data: address }] };
}

const IS_CONFIRMED = 'confirms a source';

describe('mail from sources', () => {
  test('comes from one of them, which says its own name; each destination keeps to one', async (t) => {
    const it = await watched(t, ['127.0.0.1'], { sources: TWO, messagesPerConnectionMax: 1 });
    for (let i = 0; i < 12; i++) {
      it.zone.set(`MX d${String(i)}.example`, mx([10, `mx.d${String(i)}.example`])).set(`A mx.d${String(i)}.example`, a('127.0.0.1'));
    }
    let count = 0;
    const firstRound: string[] = [];
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 12; i++) {
        it.send(`d${String(i)}.example`, ++count);
        await it.ended(count);
      }
      if (round === 0) firstRound.push(...it.seen);
    }
    const [two, three] = ['127.0.0.1: 127.0.0.2, EHLO two.test', '127.0.0.1: 127.0.0.3, EHLO three.test'];
    assert.deepEqual([...new Set(it.seen)].sort(), [two, three]);
    assert.equal(it.seen.length, 24);
    assert.deepEqual(it.seen.slice(12), firstRound, 'a retry comes from the address that came before');
    const told = it.source.ended.map(({ result }) => `127.0.0.1: ${result.source ?? ''}, EHLO`);
    assert.deepEqual(told, it.seen.map((line) => line.slice(0, line.lastIndexOf(' '))));
  });

  test('of a route that names some comes from these, over connections of its own', async (t) => {
    const it = await watched(t, ['127.0.0.1'], { sources: TWO });
    it.zone.set('MX one.example', mx([10, 'mx.one.example'])).set('A mx.one.example', a('127.0.0.1'));
    for (const [at, { address }] of TWO.entries()) {
      it.send('one.example', 2 * at + 1, { sources: [address] });
      it.send('of no account', 2 * at + 2, { isByMx: false, host: '127.0.0.1', sources: [address] });
    }
    await it.ended(4);
    assert.deepEqual([...it.seen].sort(), ['127.0.0.1: 127.0.0.2, EHLO two.test', '127.0.0.1: 127.0.0.2, EHLO two.test', '127.0.0.1: 127.0.0.3, EHLO three.test', '127.0.0.1: 127.0.0.3, EHLO three.test']);
    const hosts = [`mx.one.example:${String(it.port)}`, `127.0.0.1[127.0.0.1]:${String(it.port)}`];
    const told = TWO.flatMap(({ address }) => hosts.map((host) => `${host} (from ${address})`));
    assert.deepEqual(it.dispatcher.nextHops().map(({ relay }) => relay).sort(), told.sort());
  });

  test('to a host that its route names is resolved as the system does, and says what it is by', async (t) => {
    const it = await watched(t, ['127.0.0.1'], { sources: TWO });
    it.send('of no account', 1, { isByMx: false, host: 'localhost', sources: ['127.0.0.3'] });
    const [[, code, text, relay] = []] = await it.ended(1);
    assert.deepEqual([code, relay, it.seen], ['2.0.0', `localhost[127.0.0.1]:${String(it.port)}`, ['127.0.0.1: 127.0.0.3, EHLO three.test']], text);
    assert.deepEqual(it.names.asked, []);
  });

  test('to a host whose name the system does not know waits, and says so', async (t) => {
    const it = await watched(t, [], { sources: TWO });
    it.send('of no account', 1, { isByMx: false, host: 'nobody.invalid' });
    const [[, code, text] = []] = await it.ended(1);
    assert.equal(code, '4.4.1');
    assert.match(text ?? '', /^no connection to nobody\.invalid:\d+: (?:it has no address|no answer on its address: E\w+)$/);
  });

  test('by loopback, where no source is of it, comes as the system chooses and says the host name', async (t) => {
    const it = await watched(t, ['127.0.0.1'], { sources: [{ address: '192.0.2.1', name: 'public.test' }] });
    it.send('of no account', 1, { isByMx: false, host: '127.0.0.1' });
    await it.ended(1);
    assert.deepEqual([it.seen, it.source.ended[0]?.result.source], [['127.0.0.1: 127.0.0.1, EHLO gw.test'], '']);
  });

  test('says the name of its source within TLS too', { skip: certificates === undefined ? 'openssl is missing' : false }, async (t) => {
    const it = await watched(t, [], { sources: TWO });
    const hop = new TlsHop({ certificate: certificates?.issue('mx.tls.example') });
    const port = await hop.listen();
    t.after(() => { hop.close(); });
    it.zone.set('MX tls.example', mx([10, 'mx.tls.example'])).set('A mx.tls.example', a('127.0.0.1'));
    const tls = { level: 'encrypt', isFirst: false, terms: { serverName: '', mustVerify: false, caFile: undefined } } as const;
    it.send('tls.example', 1, { port, tls, sources: ['127.0.0.3'] });
    assert.equal((await it.ended(1))[0]?.[1], '2.0.0');
    assert.deepEqual(hop.taken.map(({ isSecure }) => isSecure), [true]);
    assert.deepEqual(hop.said.filter((line) => line.startsWith('EHLO')), ['EHLO three.test', 'EHLO three.test']);
  });

  test('waits when its source is no address of this machine any more; the host is not called down, and others go on', async (t) => {
    const gone = { address: '192.0.2.77', name: 'gone.test' };
    // Not of loopback, so that the source is of its kind: nothing is sent there.
    const it = await watched(t, ['127.0.0.1'], { sources: [gone, ...TWO] });
    it.zone.set('MX far.example', mx([10, 'mx.far.example'])).set('A mx.far.example', a('192.0.2.78'));
    it.zone.set('MX near.example', mx([10, 'mx.near.example'])).set('A mx.near.example', a('127.0.0.1'));
    const queue = it.send('far.example', 1);
    it.source.put(queue, 2, 'x\r\n');
    const [[, code, text] = []] = await it.ended(1);
    assert.equal(code, '4.3.5');
    assert.equal(text, `no connection to mx.far.example:${String(it.port)}: source 192.0.2.77 is no address of this machine (EADDRNOTAVAIL)`);
    assert.equal(it.source.ended[0]?.result.notAttempted, true);
    await it.ended(2);
    assert.deepEqual(it.dispatcher.nextHops().map(({ downSinceWallMs }) => downSinceWallMs), [undefined]);
    assert.deepEqual(it.dispatcher.sources().map(({ why }) => why), ['it is no address of this machine', '', '']);
    assert.deepEqual(it.log, ['source a source is no address of this machine: mail that leaves from it waits']);
    it.send('near.example', 3);
    assert.equal((await it.ended(3))[2]?.[1], '2.0.0');
  });
});

describe('mail by IPv6', () => {
  const dual = (it: Stage): void => {
    it.zone.set('MX dual.example', mx([10, 'mx.dual.example']));
    it.zone.set('AAAA mx.dual.example', six('::1')).set('A mx.dual.example', a('127.0.0.1'));
  };

  test('leaves from a source that the DNS confirms', async (t) => {
    const it = await watched(t, ['127.0.0.1', '::1'], { sources: [SIX, ...TWO] }, { usesIpv6: true, known: ofSource('::1', 'six.test') });
    await until(() => it.log.some((line) => line.includes(IS_CONFIRMED)), 'the source confirmed');
    dual(it);
    it.send('dual.example', 1);
    await it.ended(1);
    assert.deepEqual(it.seen, ['::1: ::1, EHLO six.test']);
  });

  for (const [what, known] of [
    ['leads to another name', ofSource('::1', 'other.test')],
    ['leads to its name, which has another address', ofSource('::1', 'six.test', '2001:db8::1')],
    ['is not there', []],
    ['nobody answers for', [['PTR 1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.ip6.arpa', SILENCE]]],
  ] as const) {
    test(`does not leave where the PTR record of its source ${what}: mail goes by IPv4, or waits and says why`, async (t) => {
      const it = await watched(t, ['127.0.0.1', '::1'], { sources: [SIX, ...TWO] }, { usesIpv6: true, known: [...known] as [string, Scripted][] });
      await until(() => what === 'nobody answers for' || it.log.length > 0, 'what the DNS says');
      dual(it);
      it.zone.set('MX only.example', mx([10, 'mx.only.example'])).set('AAAA mx.only.example', six('::1'));
      it.zone.set('A mx.only.example', { answers: [] });
      it.send('dual.example', 1);
      it.send('only.example', 2);
      const ended = (await it.ended(2)).toSorted(([one], [other]) => one - other);
      assert.deepEqual(ended.map(([, code]) => code), ['2.0.0', '4.4.1']);
      assert.match(ended[1]?.[2] ?? '', /::1: no IPv6 source is confirmed for it$/);
      assert.equal(it.seen.length, 1);
      assert.match(it.seen[0] ?? '', /^127\.0\.0\.1: /);
    });
  }

  test('to a host that its route names leaves without a confirmation', async (t) => {
    const it = await watched(t, ['::1'], { sources: [SIX] });
    const queue = new MemoryQueue({ nextHop: { protocol: 'smtp', host: '::1', port: it.port } });
    it.source.put(queue, 1, 'x\r\n');
    it.dispatcher.onReady(queue);
    await it.ended(1);
    assert.deepEqual(it.seen, ['::1: ::1, EHLO six.test']);
    assert.equal(it.dispatcher.nextHopOf(queue)?.relay, `[::1]:${String(it.port)}`);
    assert.deepEqual((await it.ended(1)).map(([, , , relay]) => relay), [`[::1]:${String(it.port)}`]);
  });
});
