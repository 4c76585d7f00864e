/**
 * A gateway stands still right before its final dots, past its lease, and its neighbour delivers the mail meanwhile.
 * When it goes on, each next hop has already said 354: it must look at its right again and send no dot (G5), or each
 * of those messages arrives twice. The next hop withholds its 354, so that nothing is in flight behind a dot at the
 * fault: there is no copy that the fault would explain.
 *
 *   gateway-1 ─MAIL RCPT DATA─► relay ─► sink      the relay keeps what the sink says from the 354 on
 *   gateway-1 stands still ── gateway-2 takes over, delivers all ── the relay passes the 354 on ── gateway-1 goes on
 *
 * One that nobody relieves begins them again, in their place (G3), as soon as it has its right back.
 *
 * Time without steps does not count for timeouts of sessions (dispatcher.ts), so the sessions are still there.
 */
import assert from 'node:assert/strict';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { readSendLog } from '../../src/load/send-log.js';
import { verifyRun } from '../../src/sink/verify.js';
import { HOST, pause, startCluster, until } from './cluster.js';
import { readArrivals } from './witnesses.js';

/** Short, but by the rule: 3 × failover + 2 × heartbeat + 3 s. */
const LEASE_MS = 4_000;
const MIRROR = { lease: `${String(LEASE_MS)}ms`, failover_timeout: '200ms', heartbeat: '50ms' };
const CONCURRENCY = 10;
const COUNT = 30;
const MORE = 20;
const DOMAIN = 'x.example';
const BOUND_MS = 60_000;
const GO_AHEAD = '354 ';

/** Passes everything on but the replies to DATA, which it keeps until it is told. */
class WithholdingRelay {
  #targetPort = 0;
  #withholds = true;
  #held: { readonly to: Socket; readonly bytes: Buffer }[] = [];
  readonly #sockets: Socket[] = [];
  readonly #server = createServer((client) => { this.#serve(client); });

  static async start(t: { after(run: () => void): void }): Promise<WithholdingRelay> {
    const relay = new WithholdingRelay();
    await new Promise<void>((resolve) => relay.#server.listen(0, HOST, resolve));
    t.after(() => {
      relay.#server.close();
      for (const socket of relay.#sockets) socket.destroy();
    });
    return relay;
  }

  /** The port to connect to instead of `targetPort`. */
  portFor(targetPort: number): number {
    this.#targetPort = targetPort;
    return (this.#server.address() as AddressInfo).port;
  }

  /** Transactions that wait for their 354. */
  get heldCount(): number {
    return this.#held.length;
  }

  /** Withholds nothing any more. */
  release(): void {
    this.#withholds = false;
    for (const { to, bytes } of this.#held.splice(0)) to.write(bytes);
  }

  #serve(client: Socket): void {
    const server = connect({ host: HOST, port: this.#targetPort });
    this.#sockets.push(client, server);
    client.on('data', (bytes) => server.write(bytes));
    // The sink answers MAIL, RCPT and DATA of one write in one write.
    server.on('data', (bytes) => {
      if (this.#withholds && bytes.includes(GO_AHEAD)) this.#held.push({ to: client, bytes });
      else client.write(bytes);
    });
    for (const [one, other] of [[client, server], [server, client]] as const) {
      one.on('error', () => undefined);
      one.on('close', () => other.destroy());
    }
  }
}

test('a gateway that stood still past its lease right before its final dots sends none of them', { timeout: 300_000 }, async (t) => {
  const relay = await WithholdingRelay.start(t);
  const cluster = await startCluster({
    gateways: 2, group: true, domains: [DOMAIN], mapSinkPort: (port, gateway) => (gateway === 0 ? relay.portFor(port) : port),
    store: { lease: MIRROR.lease }, gateway: { mirror: MIRROR, delivery: { concurrency: CONCURRENCY } },
  });
  t.after(() => cluster.stop());
  const [owner, neighbour] = cluster.gateways;
  assert.ok(owner !== undefined && neighbour !== undefined);
  const sendLog = join(cluster.folder, 'send.log');
  const sent = await runSend({ host: HOST, port: owner.smtpPort, count: COUNT, connections: 5, domains: [DOMAIN], nameEnvelopes: true, log: sendLog });
  assert.equal(sent.accepted, COUNT);
  await until('every delivery under way stands before its dot', () => relay.heldCount === CONCURRENCY, BOUND_MS, owner.gateway);
  assert.equal((await cluster.sinkCounts()).messages, 0);

  owner.gateway.freeze();
  await cluster.sinkHas(COUNT, BOUND_MS);
  await neighbour.drained(BOUND_MS);
  assert.equal(relay.heldCount, CONCURRENCY, 'the sessions of the first are still there');
  relay.release();
  owner.gateway.thaw();
  await until('its transactions have ended, one way or the other', async () => {
    const { messages, unfinished } = await cluster.sinkCounts();
    return messages + unfinished >= COUNT + CONCURRENCY;
  }, BOUND_MS, owner.gateway);
  const { messages, unfinished } = await cluster.sinkCounts();
  assert.deepEqual({ messages, unfinished }, { messages: COUNT, unfinished: CONCURRENCY }, 'a final dot was sent for a queue of another');

  await until('it knows that the queue went to another', () => owner.gateway.log().includes('a partition is another process\'s now'), BOUND_MS, owner.gateway);
  const moreLog = `${sendLog}.more`;
  const more = await runSend({ host: HOST, port: owner.smtpPort, count: MORE, connections: 2, domains: [DOMAIN], resend: true, log: moreLog });
  assert.equal(more.accepted, MORE, 'it takes new mail');
  for (const each of cluster.gateways) await each.drained(BOUND_MS);
  for (const log of [sendLog, moreLog]) {
    const report = await cluster.verify(log, CONCURRENCY - 1);
    assert.ok(report.ok && report.copies === report.accepted, JSON.stringify(report, undefined, 1));
  }
});

test('a gateway alone, that stood still past its lease right before its final dots, begins them again in their place', { timeout: 240_000 }, async (t) => {
  const relay = await WithholdingRelay.start(t);
  const cluster = await startCluster({
    domains: [DOMAIN], mapSinkPort: (port) => relay.portFor(port), arrivalLog: true, store: { lease: MIRROR.lease },
    // A deferral would show: the end would not come.
    gateway: { mirror: MIRROR, delivery: { concurrency: CONCURRENCY, retry: { first: '5min', max: '1h' } } },
  });
  t.after(() => cluster.stop());
  const sendLog = join(cluster.folder, 'send.log');
  const sent = await runSend({ host: HOST, port: cluster.smtpPort, count: COUNT, connections: 1, domains: [DOMAIN], nameEnvelopes: true, log: sendLog });
  assert.equal(sent.accepted, COUNT);
  await until('every delivery under way stands before its dot', () => relay.heldCount === CONCURRENCY, BOUND_MS, cluster.gateway);
  cluster.gateway.freeze();
  await pause(LEASE_MS + 1000);
  relay.release();
  cluster.gateway.thaw();
  await cluster.drained(BOUND_MS);
  await until('each of those transactions has ended before its dot', async () => (await cluster.sinkCounts()).unfinished >= CONCURRENCY, BOUND_MS, cluster.gateway);
  const report = await cluster.verify(sendLog, CONCURRENCY - 1);
  assert.ok(report.ok && report.copies === COUNT, JSON.stringify(report, undefined, 1));
  assert.equal((await cluster.sinkCounts()).unfinished, CONCURRENCY);
  const places = verifyRun(readSendLog(sendLog), readArrivals(cluster.arrivalLog), { displacementMax: CONCURRENCY - 1, orderBy: 'dot' });
  assert.deepEqual(places.outOfOrder, { count: 0, examples: [] }, `one overtook ${places.displacement}`);
});
