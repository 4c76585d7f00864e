/**
 * Nights of an operator, at two gateways and three stores: each ends as its row of the runbook says, and its words and
 * commands are those of docs/RUNBOOK.md (story.ts). Mail is less than an operator would have; at full size by
 * TWINPOST_STORY_SIZE=full.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { SMTPServer } from 'smtp-server';
import { runSend } from '../../src/load/run.js';
import { startSink } from '../../src/sink/sink.js';
import { HOST, startCluster, until, type Cluster } from '../process/cluster.js';
import { freePorts } from '../process/free-ports.js';
import { SmtpTalk } from '../process/smtp-talk.js';
import { TlsHop, makeCertificates } from '../process/tls-hop.js';
import { NameServer } from '../unit/platform/node/dns/name-server.js';
import type { Scripted } from '../unit/platform/node/dns/name-server.js';
import { Story, sized } from './story.js';

const FLOODER = '127.0.0.2';
const POISON = 'poison';
const SHOP_QUEUES = ['shop.example', 'eu.shop.example', 'us.shop.example', 'jp.shop.example'];
const REFUSED = sized(1_000, 10_000);
const DEFERRED = sized(200, 1_000);
const OF_OTHERS = sized(200, 2_000);
const FLOODED = sized(1_100, 11_000);
const MISTAKEN = sized(1_200, 1_000_000);
/** A million is looked at, and leaves, within minutes. */
const LOOKED_MS = sized(30_000, 300_000);
const ALL_MS = sized(30_000, 1_800_000);
/** The sink is back, and the command typed, well before a probe of the gateway's own. */
const PROBE_AWAY_MS = 12_000;

/** Takes mail of the strict queue in its order, and puts off what has POISON in it. */
class PickyHop {
  readonly arrived: string[] = [];
  readonly #server = new SMTPServer({
    authOptional: true, disabledCommands: ['AUTH', 'STARTTLS'], logger: false,
    onData: (stream, _session, done) => {
      let text = '';
      stream.on('data', (bytes: Buffer) => { text += bytes.toString('latin1'); });
      stream.once('end', () => {
        if (text.includes(POISON)) return done(Object.assign(new Error('4.3.0 our scanner died'), { responseCode: 451 }));
        this.arrived.push(/^Subject: (.*)\r$/m.exec(text)?.[1] ?? '');
        done();
      });
    },
  });

  async start(port: number): Promise<void> {
    this.#server.listen(port, HOST);
    await once(this.#server.server, 'listening');
  }

  close(): Promise<void> {
    return new Promise((resolve) => { this.#server.close(resolve); });
  }
}

describe('an operator', { timeout: sized(840_000, 5_400_000) }, () => {
  let cluster: Cluster;
  let delivered = 0;
  const hop = new PickyHop();
  const abroad = new PickyHop();
  const certificates = makeCertificates();
  let bank: TlsHop;
  let bankPort = 0;
  let resolver: NameServer;
  let isResolverDead = true;

  before(async () => {
    const [port = 0, abroadPort = 0] = await freePorts(2);
    await hop.start(port);
    await abroad.start(abroadPort);
    assert.ok(certificates !== undefined, 'openssl is there');
    bank = new TlsHop({ certificate: certificates.issue('old.bank.example') });
    bankPort = await bank.listen();
    const zone: Readonly<Record<string, Scripted>> = {
      'MX abroad.example': { answers: [{ type: 'MX', name: 'abroad.example', ttl: 60, data: { preference: 10, exchange: 'mx.abroad.example' } }] },
      'A mx.abroad.example': { answers: [{ type: 'A', name: 'mx.abroad.example', ttl: 60, data: HOST }] },
    };
    resolver = await NameServer.start({ after: () => undefined }, (question) =>
      (isResolverDead ? { rcode: 2 } : zone[question] ?? { rcode: 3 }));
    cluster = await startCluster({
      gateways: 2, group: true, stores: 3, domains: [...SHOP_QUEUES, 'news.example'],
      routes: [
        { domain: 'strict.example', name: 'strict', order: 'strict', via: `smtp://${HOST}:${String(port)}` },
        { domain: 'abroad.example', name: 'abroad', via: `mx:${String(abroadPort)}` },
        { domain: 'bank.example', name: 'bank', via: `smtp://${HOST}:${String(bankPort)}`, tls: 'verify', ca_file: certificates.caFile, server_name: 'mx.bank.example' },
      ],
      gateway: {
        delivery: { retry: { first: '1h', max: '1h' }, mx: { allow_private_addresses: true, mta_sts: false } },
        dns: { resolvers: [`${HOST}:${String(resolver.port)}`] },
        ...sized({}, { memory: { limit: '4GiB' } }),
      },
      ...sized({}, { store: { memory: { limit: '8GiB' } } }),
    });
  });
  after(async () => {
    await hop.close();
    await abroad.close();
    bank.close();
    resolver.close();
    await cluster.stop();
  });

  const queued = async (): Promise<number> => {
    const all = await Promise.all(cluster.gateways.map(async (each) => (await each.status()).queued_messages));
    return all.reduce((sum, one) => sum + one, 0);
  };
  const send = async (count: number, ...domains: readonly string[]): Promise<void> => {
    for (const { smtpPort } of cluster.gateways) await runSend({ host: HOST, port: smtpPort, count: count / 2, connections: 5, domains });
  };
  /** All that was sent and not ended is at the sink. */
  const allDelivered = async (count: number): Promise<void> => {
    delivered += count;
    await cluster.sinkHas(delivered, ALL_MS);
    await until('nothing waits', async () => (await queued()) === 0);
    assert.equal((await cluster.sinkCounts()).messages, delivered);
  };
  const sinkBack = async (): Promise<void> => {
    delivered = 0;
    cluster.sink.start();
    await cluster.sink.ready();
  };

  test('whose next hop refuses connections sees it, and lets mail flow when it is mended', async (t) => {
    const story = new Story('next-hop-down', cluster);
    const logs = cluster.gateways.map(({ gateway }) => ({ gateway, bytes: gateway.logBytes }));
    await cluster.sink.kill();
    const beganMs = performance.now();
    await send(REFUSED, ...SHOP_QUEUES);
    const isNamed = async (): Promise<boolean> => (await Promise.all(cluster.gateways.map((each) => each.status()))).every(({ outages }) => outages?.next_hops.length === 1);
    await until('the status names it', isNamed, 10_000);
    t.diagnostic(`all queued and named ${(performance.now() - beganMs).toFixed(0)} ms after the outage`);
    for (const { gateway, bytes } of logs) {
      const lines = linesOf(gateway.logSince(bytes));
      // By the clock of the program: from the first mail that could not leave until it is known why.
      const knownMs = timeOf(lines, 'nexthop') - timeOf(lines, 'received');
      t.diagnostic(`${gateway.name}: known after ${String(knownMs)} ms`);
      assert.ok(knownMs <= 2000, `${gateway.name} knows it after ${String(knownMs)} ms`);
    }
    story.tell('Mail for a customer does not arrive, somebody says. The first line of `status` names what is worst:');
    const seen = await story.type(['status'], (line) => /^ERROR|NEXT HOP/.test(line));
    assert.match(seen.out, /^ERROR gateway-\d: next hop \S+ can't be reached, [\d,]+ messages wait: .*ECONNREFUSED/);
    assert.ok(seen.out.includes(` ${printed(REFUSED / 2)} messages wait:`), seen.out);
    story.tell('Their server is started again. Mail would go by itself, at the next probe of the next hop, a minute later at most. Now, without a storm:');
    // What flows then does so by the flush, and not by a probe.
    const isProbeFar = async (): Promise<boolean> => (await Promise.all(cluster.gateways.map((each) => each.status()))).every(({ outages }) => 1000 * (outages?.next_hops[0]?.next_try ?? 0) - Date.now() >= PROBE_AWAY_MS);
    await until('no probe is near', isProbeFar, 120_000);
    await sinkBack();
    const flushes = cluster.gateways.map(({ gateway }) => ({ gateway, bytes: gateway.logBytes }));
    const flushed = await story.type(['queue', 'flush', '--domain', '*shop.example', '--reason', 'their server is back'], (line) => !line.startsWith('  0'));
    // Many take a while to be counted, and a connection of then may have found the sink back.
    const [, tried = '', before = '0'] = /([\d,]+) of [\d,]+ are tried(?:, ([\d,]+) were delivered)?/.exec(flushed.out) ?? [];
    const [triedCount, beforeCount] = [tried, before].map((count) => Number(count.replaceAll(',', '')));
    assert.deepEqual([flushed.code, (triedCount ?? 0) + (beforeCount ?? 0)], [0, REFUSED], flushed.out + flushed.error);
    assert.ok((beforeCount ?? 0) <= REFUSED / 100, flushed.out);
    await allDelivered(REFUSED);
    for (const { gateway, bytes } of flushes) {
      const lines = linesOf(gateway.logSince(bytes));
      const delivered = lines.filter(({ event }) => event === 'delivered');
      const flowsMs = timeOf(lines, 'delivered') - timeOf(lines.filter(({ msg = '' }) => msg.includes('is done')), 'order');
      t.diagnostic(`${gateway.name}: flows ${String(flowsMs)} ms after the flush, ${String(timeOf(lines, 'delivered') - timeOf(lines, 'order'))} ms after it was asked for`);
      assert.ok(flowsMs <= 1000, `${gateway.name}: flows ${String(flowsMs)} ms after the flush`);
      const first = delivered.slice(0, delivered.length / 5).map(({ queue }) => queue);
      assert.deepEqual([...new Set(first)].sort(), [...SHOP_QUEUES].sort(), 'queues take turns');
    }
    const { connections } = await cluster.sinkCounts();
    t.diagnostic(`${String(connections)} connections for ${printed(REFUSED)} messages`);
    // A site has 20 at once, and one takes 100 messages (messages_per_connection).
    const connectionsMax = 20 * SHOP_QUEUES.length * cluster.gateways.length + REFUSED / 100;
    assert.ok(connections >= 2 * cluster.gateways.length && connections <= connectionsMax, `${String(connections)} connections`);
    story.end();
  });

  test('whose next hop put mail off sees why, and has it tried again', async (t) => {
    const story = new Story('next-hop-defers', cluster);
    await cluster.sink.kill();
    const deferring = await startSink({ host: HOST, port: cluster.sinkPort, deferRate: 1 });
    await send(DEFERRED, 'shop.example');
    await until('all is deferred', async () => (await Promise.all(cluster.gateways.map((each) => each.status()))).every(({ hurting }) => hurting.queues[0]?.deferred === DEFERRED / 2), sized(20_000, 120_000));
    story.tell('The next hop answers, and puts everything off:');
    const seen = await story.type(['status'], (line) => /^WARNING|DEFERRED/.test(line));
    assert.match(seen.out, /^WARNING gateway-\d: queue shop\.example: its next hop puts mail off, ([\d,]+) of \1 messages deferred; last: 451 /);
    await deferring.close();
    await sinkBack();
    story.tell('It is mended. What waits for its next attempt, an hour away, is tried now:');
    const logs = cluster.gateways.map(({ gateway }) => ({ gateway, bytes: gateway.logBytes }));
    const flushed = await story.type(['queue', 'flush', '--reply', '451', '--reason', 'they have mended it'], (line) => !line.startsWith('  0'));
    assert.deepEqual([flushed.code, flushed.out.includes(`${printed(DEFERRED)} of ${printed(DEFERRED)} are tried`)], [0, true], flushed.out + flushed.error);
    await allDelivered(DEFERRED);
    for (const { gateway, bytes } of logs) {
      const lines = linesOf(gateway.logSince(bytes));
      const tookMs = timeOf([...lines].reverse(), 'delivered') - timeOf(lines, 'order');
      t.diagnostic(`${gateway.name}: all delivered ${String(tookMs)} ms after the flush`);
      assert.ok(tookMs <= 10_000, `${gateway.name}: delivered after ${String(tookMs)} ms`);
    }
    story.end();
  });

  test('whom one client floods does away with its mail, and with no other', async (t) => {
    const story = new Story('flood', cluster);
    await cluster.sink.kill();
    await send(OF_OTHERS, 'news.example');
    for (const { smtpPort } of cluster.gateways) await flood(smtpPort, FLOODED / 2);
    await until('all waits', async () => (await queued()) === OF_OTHERS + FLOODED, 60_000);
    // The document has the size of CI.
    story.call(String(FLOODED), '1100');
    story.tell('Queues grow. Who sends all that?');
    const seen = await story.type(['status'], (line) => line.includes('busiest'));
    assert.match(seen.out, /busiest {5}client .*127\.0\.0\.2 \d\d%/);
    story.tell('One client, which is not to send so much. How much of it is there, at all gateways?');
    const dry = await story.type(['queue', 'delete', '--client', FLOODER, '--dry-run', '--reason', 'a flood'], (line) => !/^ {2}\w{9}[A-Z4-9]/.test(line));
    assert.ok(dry.out.includes(`${printed(FLOODED)} messages, ${printed(FLOODED)} recipients`), dry.out);
    story.tell('That is what was expected, so away with it. Senders are not told; the mail log has each recipient.');
    const logs = cluster.gateways.map(({ gateway }) => ({ gateway, bytes: gateway.logBytes }));
    const gone = await story.type(['queue', 'delete', '--client', FLOODER, '--expect', String(FLOODED), '--now', '--reason', 'a flood'], isNoMessage);
    assert.deepEqual([gone.code, gone.out.includes(`${printed(FLOODED)} of ${printed(FLOODED)} deleted`)], [0, true], gone.out + gone.error);
    const lines = logs.flatMap(({ gateway, bytes }) => linesOf(gateway.logSince(bytes))).filter(({ event }) => event === 'order');
    const times = lines.map(({ time }) => Date.parse(time));
    const tookMs = Math.max(...times) - Math.min(...times);
    t.diagnostic(`deleted in ${String(tookMs)} ms`);
    assert.ok(times.length === 2 * logs.length && tookMs <= 5_000, `${String(times.length)} lines, ${String(tookMs)} ms`);
    await sinkBack();
    await story.type(['queue', 'flush', '--everything', '--reason', 'the next hop is back'], () => false);
    await allDelivered(OF_OTHERS);
    story.end();
  });

  test('who orders the wrong thing takes it back in the grace', async (t) => {
    const story = new Story('taken-back', cluster);
    await cluster.sink.kill();
    await send(MISTAKEN, 'shop.example');
    await until('all waits', async () => (await queued()) === MISTAKEN, 60_000);
    story.tell('Returned by mistake: `--domain` was meant to be another one. What ends mail of more than 1,000 recipients waits for a minute first. Ctrl-C takes it back:');
    const inGrace = until('its grace runs', async () => (await Promise.all(cluster.gateways.map(phaseOf))).every((phase) => phase === 'grace'), LOOKED_MS);
    // So many more are not returned without a number.
    const expected = sized<readonly string[]>([], ['--expect', String(MISTAKEN)]);
    if (expected.length > 0) story.call(` ${expected.join(' ')}`, '');
    const taken = await story.type(['queue', 'bounce', '--domain', 'shop.example', ...expected, '--reason', 'the domain is gone'], isNoMessage, inGrace);
    assert.equal(taken.code, 1);
    assert.match(taken.out, /taken back/);
    story.tell('Nothing was returned:');
    const orders = await story.type(['queue', 'orders'], (line) => line.includes('bounce'));
    assert.ok(orders.out.includes(`bounce --domain shop.example: cancelled, 0 of ${printed(MISTAKEN / 2)}`), orders.out);
    await sinkBack();
    await story.type(['queue', 'flush', '--everything', '--reason', 'the next hop is back'], () => false);
    const beganMs = performance.now();
    await allDelivered(MISTAKEN);
    t.diagnostic(`all of ${printed(MISTAKEN)} delivered ${(performance.now() - beganMs).toFixed(0)} ms after the flush`);
    assert.ok((await Promise.all(cluster.gateways.map((each) => each.status()))).every(({ bounced }) => bounced === 0));
    story.end();
  });

  test('whose order reaches the mail of a gateway that is dead', async () => {
    const story = new Story('dead-gateway', cluster);
    const [first, second] = cluster.gateways;
    assert.ok(first !== undefined && second !== undefined);
    await cluster.sink.kill();
    await send(100, 'news.example');
    for (const { smtpPort } of cluster.gateways) await flood(smtpPort, 40);
    await until('all waits', async () => (await queued()) === 180);
    await second.gateway.kill();
    story.tell('A client floods again, and one of the two gateways is dead. Nothing is ended while not all mail could be looked at:');
    const refused = await story.type(['queue', 'delete', '--client', FLOODER, '--now', '--reason', 'a flood'], isNoMessage);
    assert.equal(refused.code, 3);
    assert.match(refused.error, /nothing was done/);
    story.tell('What is there is ended with `--partial`, and the order waits in the register for the rest:');
    const gone = await story.type(['queue', 'delete', '--client', FLOODER, '--now', '--partial', '--reason', 'a flood'], isNoMessage);
    assert.equal(gone.code, 3);
    assert.match(gone.out, /left in the register as \S+ for gateway-2/);
    await sinkBack();
    await story.type(['queue', 'flush', '--everything', '--reason', 'the next hop is back'], () => false);
    delivered += 100;
    await cluster.sinkHas(delivered, 40_000);
    await until('it is taken over, and the order done', async () => (await first.status()).partitions_rescued > 0 && (await first.status()).queued_messages === 0, 40_000);
    assert.equal((await cluster.sinkCounts()).messages, 100, 'nothing of the flood');
    story.tell('Whoever took its mail over has done it, before anything left.');
    second.gateway.start();
    await second.gateway.ready();
    story.end();
  });

  test('whose resolver is dead learns that it is, and not somebody\'s domain', async () => {
    const story = new Story('no-resolver', cluster);
    story.call(`${HOST}:${String(resolver.port)}`, '127.0.0.1:53');
    await submit(cluster.smtpPort, 'abroad.example', ['a0', 'a1', 'a2']);
    await until('the status says so', async () => (await cluster.status()).dns_away !== '', 40_000);
    story.tell('Mail by MX stands, to whatever domain. The first line of `status` says why:');
    const seen = await story.type(['status'], (line) => /^ERROR|^ {2}DNS/.test(line));
    assert.match(seen.out, /^ERROR gateway-1: no resolver of DNS answers: \S+: SERVFAIL/);
    assert.match(seen.out, /^ {2}DNS {9}no resolver answers: \S+: SERVFAIL$/m);
    story.tell('Its own log says the rest. It is started again, and within ten seconds the gateway has seen that. Mail goes by itself, each domain at its next try, a minute later at most:');
    isResolverDead = false;
    await until('all has left', () => abroad.arrived.length === 3, 70_000);
    // Several connections begin at once: the order is that of starting, not of arrival.
    assert.deepEqual([...abroad.arrived].sort(), ['a0', 'a1', 'a2']);
    await until('nothing waits', async () => (await queued()) === 0);
    const after = await story.type(['status'], (line) => /^(ALL WELL|ERROR|WARNING)/.test(line));
    assert.doesNotMatch(after.out, /resolver/);
    story.end();
  });

  test('whose next hop shows the wrong certificate sees whose it is, and sends nothing there', async () => {
    const story = new Story('certificate', cluster);
    for (const relay of [`${HOST}[${HOST}]`, HOST]) story.call(`${relay}:${String(bankPort)}`, 'mx.bank.example:25');
    await submit(cluster.smtpPort, 'bank.example', ['b0', 'b1']);
    await until('the status names it', async () => (await cluster.status()).outages?.next_hops.some(({ why }) => why.includes('TLS')) === true, 20_000);
    story.tell('Mail to the bank waits. Its route says `tls: verify`:');
    const seen = await story.type(['status'], (line) => /^ERROR|NEXT HOP/.test(line));
    assert.match(seen.out, /^ERROR gateway-1: next hop \S+ can't be reached, 2 messages wait: no TLS with .*old\.bank\.example/);
    story.tell('It shows the certificate of another name. Nothing goes there, and nothing is refused: somebody may be between. Ask the bank, by telephone. They have put in the old one by mistake, and mend it:');
    assert.ok(certificates !== undefined);
    bank.options = { certificate: certificates.issue('mx.bank.example') };
    const flushed = await story.type(['queue', 'flush', '--domain', 'bank.example', '--reason', 'they have mended their certificate'], () => false);
    assert.ok(flushed.code === 0 || flushed.error.includes('no message is meant'), flushed.error);
    await until('all has left', () => bank.taken.length === 2, 30_000);
    assert.ok(bank.taken.every(({ isSecure }) => isSecure));
    await until('nothing waits', async () => (await queued()) === 0);
    story.end();
  });

  test('holds the head that stops a strict queue, and it stays held, whoever dies', async (t) => {
    const story = new Story('poisoned-head', cluster);
    const [first, second] = cluster.gateways;
    assert.ok(first !== undefined && second !== undefined);
    await submit(first.smtpPort, 'strict.example', ['s0 poison', ...Array.from({ length: 9 }, (_none, index) => `s${String(index + 1)}`)]);
    await until('its head is put off', async () => (await cluster.status()).hurting.queues.some(({ queue_name: name }) => name === 'strict'), 20_000);
    story.tell('A queue with `order: strict` stands: its next hop can not take the first message.');
    const { rows: [head] } = await messagesAt(first.adminPort);
    const id = head?.queue_id ?? '';
    story.call(id, '00000G001ST');
    await story.type(['queue', 'list', 'strict', '--limit', '1']);
    story.tell('Its head is held; the others go on, in order.');
    const bytes = first.gateway.logBytes;
    const held = await story.type(['queue', 'hold', '--id', id, '--reason', 'their scanner dies of it']);
    assert.equal(held.code, 0, held.error);
    await until('the others flow', () => hop.arrived.length === 9);
    assert.deepEqual(hop.arrived, Array.from({ length: 9 }, (_none, index) => `s${String(index + 1)}`));
    await until('they are gone', async () => (await heldAt(first.adminPort)).length === 1);
    const lines = linesOf(first.gateway.logSince(bytes));
    const flowsMs = timeOf(lines, 'delivered') - timeOf(lines, 'order');
    t.diagnostic(`the rest flows ${String(flowsMs)} ms after the order`);
    assert.ok(flowsMs <= 1_000, `the rest flows ${String(flowsMs)} ms after the order`);
    await until('the copies know it', async () => (await first.table()).every(({ lag_messages: lag }) => lag === 0));
    await first.gateway.kill();
    // Partition by partition: the first that is there need not be that of the queue.
    await until('it is taken over', async () => (await second.status()).partitions_recovering === 0 && (await heldAt(second.adminPort)).length > 0, 40_000);
    const there = await heldAt(second.adminPort);
    assert.deepEqual(there, ['held'], 'held by the one that took over');
    first.gateway.start();
    await first.gateway.ready();
    await until('it is back where it belongs', async () => (await heldAt(first.adminPort)).length === 1, 40_000);
    assert.deepEqual(await heldAt(first.adminPort), ['held']);
    story.tell('It stays held through crashes and takeovers. Its sender is to know:');
    const returned = await story.type(['queue', 'bounce', '--id', id, '--reason', 'the receiver can not take it'], isNoMessage);
    assert.equal(returned.code, 0, returned.error);
    await until('it is gone', async () => (await heldAt(first.adminPort)).length === 0);
    assert.equal(hop.arrived.length, 9);
    story.end();
  });
});

/** As commands print it. */
function printed(count: number): string {
  return count.toLocaleString('en');
}

interface LogLine {
  readonly time: string;
  readonly event: string;
  readonly msg?: string;
  readonly queue?: string;
}

function linesOf(log: string): readonly LogLine[] {
  return log.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as LogLine);
}

/** Of the first line of an event, in milliseconds. */
function timeOf(lines: readonly LogLine[], wanted: string): number {
  const found = lines.find(({ event }) => event === wanted);
  assert.ok(found !== undefined, `the log has a line of ${wanted}`);
  return Date.parse(found.time);
}

/** Lines of examples begin with an id. */
function isNoMessage(line: string): boolean {
  return !line.startsWith('  ');
}

async function phaseOf({ adminPort }: { readonly adminPort: number }): Promise<string> {
  const { orders } = await (await fetch(`http://${HOST}:${String(adminPort)}/api/v1/orders`)).json() as { readonly orders: readonly { readonly verb: string; readonly phase: string }[] };
  return orders.find(({ verb }) => verb === 'bounce')?.phase ?? '';
}

interface MessageSeen {
  readonly queue_id: string;
  readonly state: string;
}

/** What is in the strict queue. */
async function messagesAt(adminPort: number): Promise<{ readonly rows: readonly MessageSeen[] }> {
  const answer = await fetch(`http://${HOST}:${String(adminPort)}/api/v1/queues/strict/messages`);
  return answer.ok ? await answer.json() as { readonly rows: readonly MessageSeen[] } : { rows: [] };
}

/** Its states. */
async function heldAt(adminPort: number): Promise<readonly string[]> {
  return (await messagesAt(adminPort)).rows.map(({ state }) => state);
}

/** Messages of one connection from FLOODER. */
async function flood(port: number, count: number): Promise<void> {
  const socket = connect({ host: HOST, port, localAddress: FLOODER });
  await once(socket, 'connect');
  const talk = await SmtpTalk.over(socket);
  for (let sent = 0; sent < count; sent++) {
    await talk.say('MAIL FROM:<flood@client.example>');
    await talk.say('RCPT TO:<user@shop.example>');
    await talk.say('DATA');
    assert.match(await talk.say('Subject: flood\r\n\r\nx\r\n.'), /^250/);
  }
  await talk.say('QUIT');
}

async function submit(port: number, domain: string, subjects: readonly string[]): Promise<void> {
  const talk = await SmtpTalk.start(port);
  for (const subject of subjects) {
    await talk.say('MAIL FROM:<a@client.example>');
    await talk.say(`RCPT TO:<user@${domain}>`);
    await talk.say('DATA');
    assert.match(await talk.say(`Subject: ${subject}\r\n\r\nx\r\n.`), /^250/);
  }
  await talk.say('QUIT');
}
