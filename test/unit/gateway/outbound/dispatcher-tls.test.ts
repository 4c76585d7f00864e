/** Deliveries in TLS on real sockets: falling back, what is shared and what is not, large contents, versions. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { after, describe, test } from 'node:test';
import tls, { createServer } from 'node:tls';

import { DEFAULT_TIMEOUTS, State } from '../../../../src/gateway/outbound/pure/session-states.js';
import type { Dispatcher, DispatcherOptions } from '../../../../src/gateway/outbound/dispatcher.js';
import type { NextHop, TlsLevel } from '../../../../src/gateway/mail-types.js';
import { TlsHop, makeCertificates } from '../../../process/tls-hop.js';
import type { TlsHopOptions } from '../../../process/tls-hop.js';
import { until } from '../../register/real-world.js';
import { MemoryQueue, MemorySource, dispatcherFor } from './memory-source.js';

const certificates = makeCertificates();
const good = certificates?.issue('hop.test');
const needsTls = { timeout: 30_000, skip: good === undefined ? 'openssl is missing' : false };

const ends: (() => unknown)[] = [];
after(async () => { for (const end of ends) await end(); });

interface World {
  readonly hop: TlsHop;
  readonly source: MemorySource;
  readonly dispatcher: Dispatcher;
  queue(level: TlsLevel | 'none', more?: Partial<NextHop>): MemoryQueue;
}

async function world(options: TlsHopOptions, more: Partial<DispatcherOptions> = {}): Promise<World> {
  const hop = new TlsHop({ certificate: good, ...options });
  const port = await hop.listen();
  const source = new MemorySource();
  const dispatcher = dispatcherFor(source, more);
  ends.push(() => { hop.close(); }, () => dispatcher.stop(0));
  const queue = (level: TlsLevel | 'none', own: Partial<NextHop> = {}): MemoryQueue => {
    const verifies = level === 'verify';
    const terms = { serverName: verifies ? 'hop.test' : '127.0.0.1', mustVerify: verifies, caFile: verifies ? certificates?.caFile : undefined };
    const tls = level === 'none' ? undefined : { level, isFirst: options.isTlsFirst === true, terms };
    return new MemoryQueue({ nextHop: { protocol: 'smtp', host: '127.0.0.1', port, tls, ...own }, concurrency: 5 });
  };
  return { hop, source, dispatcher, queue };
}

/** Puts so many mails and waits for their ends. */
async function deliver({ source, dispatcher }: World, queue: MemoryQueue, count: number, content = 'Subject: x\r\n\r\nhello\r\n'): Promise<void> {
  const before = source.ended.length;
  for (let i = 0; i < count; i++) source.put(queue, before + i + 1, content);
  dispatcher.onReady(queue);
  await source.untilEnded(before + count);
}

describe('TLS with a next hop', () => {
  test('that refuses it where it may: all goes in clear over connections of its own, one failure is enough, no attempt is lost', needsTls, async () => {
    const on = await world({ toStartTls: '454 4.7.0 not now' });
    await deliver(on, on.queue('may'), 50);
    const asked = on.hop.heard.filter((line) => line === 'STARTTLS').length;
    assert.ok(asked >= 1 && asked <= 5, `${asked} times`);
    assert.equal(on.source.tlsFallbacks, asked);
    assert.ok(on.source.ended.every(({ result }) => result.results[0]?.status === 1 && result.tls === undefined && result.notAttempted !== true));
    assert.ok(on.hop.taken.every(({ isSecure }) => !isSecure));
    const { host, port } = on.queue('may').route.nextHop;
    const lost = on.dispatcher.lostTlsOf(host, port);
    assert.match(lost?.why ?? '', /454 4\.7\.0 not now/);
    assert.ok(lost !== undefined && Math.abs(lost.untilWallMs - Date.now() - 3_600_000) < 600_000, String(lost?.untilWallMs));
    assert.equal(on.dispatcher.lostTlsOf(host, port + 1), undefined);
    // Also from another queue, and another pool, of this next hop.
    await deliver(on, on.queue('may'), 5);
    assert.equal(on.hop.heard.filter((line) => line === 'STARTTLS').length, asked);
  });

  test('that insists on it, and fails in it: mail is put off and none fails, few connections are made, and TLS is what is tried next', needsTls, async () => {
    const on = await world({ handshake: 'reset', insists: true }, { backoffFirstMs: 600_000, backoffMaxMs: 600_000 });
    const queue = on.queue('may');
    for (let entry = 1; entry <= 50; entry++) on.source.put(queue, entry, 'Subject: x\r\n\r\nhello\r\n');
    on.dispatcher.onReady(queue);
    const isLeftAlone = (): boolean => on.dispatcher.nextHops()[0]?.connections === 0;
    await on.source.untilEnded(1);
    await until(isLeftAlone, 'a back-off');
    // Five may begin side by side, in TLS, then in clear. Then one.
    const [ended, connections] = [on.source.ended.length, on.hop.connections];
    assert.ok(ended <= 5 && connections <= 10, `no storm: ${connections} connections`);
    on.dispatcher.hasten(queue);
    await on.source.untilEnded(ended + 1);
    await until(isLeftAlone, 'a longer back-off');
    assert.deepEqual([on.source.ended.length, on.hop.connections, on.dispatcher.nextHops()[0]?.failures], [ended + 1, connections + 2, 2]);
    const [said] = on.source.ended.at(-1)?.result.results ?? [];
    assert.deepEqual([said?.status, said?.enhanced, said?.text], [2, '4.7.0', '530 5.7.0 Must issue a STARTTLS command first']);
    on.hop.options = { certificate: good, insists: true };
    on.dispatcher.hasten(queue);
    await on.source.untilEnded(50);
    const ends = on.source.ended.map(({ result: { results: [result] } }) => result?.status);
    assert.deepEqual([ends.includes(3), ends.filter((status) => status === 1).length > 40, ends.at(-1)], [false, true, 1]);
    assert.ok(on.hop.taken.length > 40 && on.hop.taken.every(({ isSecure }) => isSecure));
  });

  test('that is to be tried again: a connection in clear that is still open ends behind its mail', needsTls, async () => {
    const on = await world({ handshake: 'reset' });
    const [queue, other] = [on.queue('may'), on.queue('may')];
    const { tls } = queue.route.nextHop;
    assert.ok(tls !== undefined);
    other.route = { ...other.route, nextHop: { ...other.route.nextHop, tls: { ...tls, terms: { ...tls.terms, serverName: 'other.test' } } } };
    await deliver(on, queue, 1);
    on.hop.options = { certificate: good, insists: true };
    await deliver(on, other, 1);
    assert.equal(on.source.ended[1]?.result.results[0]?.enhanced, '4.7.0', 'the host insists on it now');
    on.hop.options = { certificate: good };
    await deliver(on, queue, 1);
    await deliver(on, queue, 1);
    assert.deepEqual(on.hop.taken.map(({ isSecure }) => isSecure), [false, false, true]);
  });

  test('that says nothing to the handshake: it ends at its time, and mail goes in clear', needsTls, async () => {
    const timeouts = DEFAULT_TIMEOUTS.map((ms, state) => (state === State.SECURING ? 500 : ms));
    const on = await world({ handshake: 'silent' }, { timeouts });
    await deliver(on, on.queue('may'), 1);
    assert.deepEqual([on.source.ended[0]?.result.results[0]?.status, on.source.tlsFallbacks, on.hop.connections], [1, 1, 2]);
    await deliver(on, on.queue('encrypt'), 1);
    const [said] = on.source.ended[1]?.result.results ?? [];
    assert.deepEqual([said?.enhanced, said?.text], ['4.7.5', `127.0.0.1[127.0.0.1]:${on.queue('may').route.nextHop.port} silent for 1 s while negotiating TLS`]);
  });

  test('that asks for a certificate of ours after the handshake of TLS 1.3 is done: in clear where it may', needsTls, async () => {
    const on = await world({ tls: { requestCert: true, rejectUnauthorized: true } });
    await deliver(on, on.queue('may'), 1);
    assert.deepEqual([on.source.tlsFallbacks, on.hop.taken.map(({ isSecure }) => isSecure)], [1, [false]]);
    await deliver(on, on.queue('encrypt'), 1);
    assert.equal(on.source.ended[1]?.result.results[0]?.enhanced, '4.7.5');
  });

  test('that ends the connection behind the handshake: nothing is said of a certificate of ours, for none was shown', needsTls, async () => {
    assert.ok(good !== undefined);
    const server = createServer({ cert: readFileSync(good.certFile), key: readFileSync(good.keyFile) }, (socket) => { socket.end(); });
    await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
    ends.push(() => { server.close(); });
    const on = await world({ isTlsFirst: true });
    const { port } = server.address() as AddressInfo;
    await deliver(on, on.queue('encrypt', { port }), 1);
    const text = on.source.ended[0]?.result.results[0]?.text ?? '';
    assert.match(text, /closed by the peer/);
    assert.doesNotMatch(text, /certificate/);
  });

  test('serves each level by connections of its own: one that was begun unjudged never one that must be', needsTls, async () => {
    const on = await world({});
    const levels = ['none', 'may', 'encrypt', 'verify'] as const;
    for (const level of levels) await deliver(on, on.queue(level), 1);
    assert.equal(on.hop.connections, levels.length);
    assert.deepEqual(on.source.ended.map(({ result: { tls } }) => tls?.isVerified), [undefined, false, false, true]);
    assert.equal(on.dispatcher.nextHops().length, levels.length);
    // The same once more shares what is there.
    for (const level of levels) await deliver(on, on.queue(level), 1);
    assert.equal(on.hop.connections, levels.length);
  });

  test('takes large contents, and small ones behind them, unaltered and without waiting for a tick', needsTls, async () => {
    const on = await world({});
    const queue = on.queue('verify');
    // The last piece of each is less than what a stream tells of by itself.
    const contents = [70_000, 131_080, 200_000, 20_000, 17_000].map((bytes) => `${'x'.repeat(70)}\r\n`.repeat(Math.ceil(bytes / 72)));
    await deliver(on, queue, 1);
    const begunMs = performance.now();
    for (let round = 0; round < 4; round++) {
      for (const content of contents) await deliver(on, queue, 1, content);
    }
    const tookMs = performance.now() - begunMs;
    assert.deepEqual(on.hop.taken.slice(1).map(({ content, isSecure }) => isSecure && content === contents.find((one) => one.length === content.length)), Array(20).fill(true));
    assert.ok(tookMs < 1250, `${tookMs} ms: a tick comes each 250 ms`);
  });

  test('that has several certificates chooses its certificate by the name; an address is none', needsTls, async () => {
    assert.ok(certificates !== undefined && good !== undefined);
    const on = await world({ certificate: certificates.issue('first.test'), certificateOf: { 'hop.test': good } });
    await deliver(on, on.queue('verify'), 1);
    await deliver(on, on.queue('encrypt'), 1);
    assert.deepEqual([on.source.ended.map(({ result: { tls } }) => tls?.isVerified), on.hop.named], [[true, false], ['hop.test']]);
  });

  test('that the route names by its address must have that in its certificate', needsTls, async () => {
    const hop = new TlsHop({ certificate: good });
    const source = new MemorySource();
    const dispatcher = dispatcherFor(source);
    ends.push(() => { hop.close(); }, () => dispatcher.stop(0));
    const port = await hop.listen('0.0.0.0');
    for (const host of ['127.0.0.2', '127.0.0.3']) {
      const tls = { level: 'verify', isFirst: false, terms: { serverName: host, mustVerify: true, caFile: certificates?.caFile } } as const;
      const queue = new MemoryQueue({ nextHop: { protocol: 'smtp', host, port, tls } });
      source.put(queue, port + source.ended.length, 'Subject: x\r\n\r\nhello\r\n');
      dispatcher.onReady(queue);
      await source.untilEnded(source.ended.length + 1);
    }
    const said = source.ended.map(({ result: { results: [result] } }) => result?.text ?? '');
    assert.match(said.join('\n'), /^250 .*\nno TLS with .*: IP: 127\.0\.0\.3 is not in the cert's list: 127\.0\.0\.2 \(ERR_TLS_CERT_ALTNAME_INVALID\)$/);
    assert.deepEqual(hop.named, []);
  });

  test('is 1.2 or newer, also where Node is told to take older ones', needsTls, async (t) => {
    const usual = tls.DEFAULT_MIN_VERSION;
    tls.DEFAULT_MIN_VERSION = 'TLSv1';
    t.after(() => { tls.DEFAULT_MIN_VERSION = usual; });
    const newer = await world({ tls: { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' } });
    await deliver(newer, newer.queue('verify'), 1);
    assert.equal(newer.source.ended[0]?.result.tls?.version, 'TLSv1.2');
    const old = await world({ tls: { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } });
    await deliver(old, old.queue('encrypt'), 1);
    const [said] = old.source.ended[0]?.result.results ?? [];
    assert.equal(said?.enhanced, '4.7.5');
    assert.match(said.text, /alert protocol version/);
  });

  test('is spoken by LMTP, and first where the route says so', needsTls, async () => {
    const lmtp = await world({});
    await deliver(lmtp, lmtp.queue('verify', { protocol: 'lmtp' }), 1);
    const first = await world({ isTlsFirst: true });
    await deliver(first, first.queue('verify'), 1);
    assert.deepEqual([lmtp, first].map(({ source, hop }) => [source.ended[0]?.result.results[0]?.status, hop.taken[0]?.isSecure]), [[1, true], [1, true]]);
    assert.deepEqual(first.hop.heard.slice(0, 2), ['|', '*EHLO']);
  });

  test('judges by a file of CAs as it is now, and says which one has never been good', needsTls, async () => {
    assert.ok(certificates !== undefined);
    const on = await world({}, { messagesPerConnectionMax: 1 });
    const caFile = `${certificates.caFile}.copy`;
    writeFileSync(caFile, readFileSync(certificates.caFile));
    const queue = on.queue('none');
    const tls = { level: 'verify', isFirst: false, terms: { serverName: 'hop.test', mustVerify: true, caFile } } as const;
    const verified = new MemoryQueue({ nextHop: { ...queue.route.nextHop, tls } });
    await deliver(on, verified, 1);
    writeFileSync(caFile, readFileSync(certificates.selfSigned('other.test').certFile));
    await deliver(on, verified, 1);
    const bad = `${caFile}.bad`;
    writeFileSync(bad, 'nothing');
    await deliver(on, new MemoryQueue({ nextHop: { ...queue.route.nextHop, tls: { ...tls, terms: { ...tls.terms, caFile: bad } } } }), 1);
    const said = on.source.ended.map(({ result: { results: [result] } }) => `${result?.enhanced ?? ''} ${result?.text ?? ''}`);
    assert.equal(said[0], '2.0.0 250 2.0.0 taken');
    assert.match(said[1] ?? '', /^4\.7\.5 no TLS with 127\.0\.0\.1\[127\.0\.0\.1\]:\d+: unable to (verify the first|get local issuer) certificate /);
    assert.match(said[2] ?? '', new RegExp(`^4\\.7\\.5 no TLS with .*: '${bad}' is no certificate in PEM: `));
  });
});
