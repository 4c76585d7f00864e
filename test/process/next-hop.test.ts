/**
 * A next hop that is down, defers, refuses or cuts the connection: what was accepted arrives, or its sender
 * is told, once.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { emptyMarks, findQuotedMarks } from '../../src/load/marks.js';
import type { SendOptions, SendReport } from '../../src/load/options.js';
import { runSend } from '../../src/load/run.js';
import { readSendLog, type SendRecord } from '../../src/load/send-log.js';
import { startSink } from '../../src/sink/sink.js';
import { REJECTED, TAKEN, type VerifyReport } from '../../src/sink/verify.js';
import { HOST, startCluster, type Cluster } from './cluster.js';
import type { ClusterOptions } from './cluster-config.js';

const STRICT = 'strict.example';
const DOMAINS = ['a.example', 'b.example', STRICT];
const CONCURRENCY = 20;
/** The gateway is killed when so many messages were accepted. */
const KILLS_AT = [1000, 2500];

async function withCluster(options: ClusterOptions, story: (cluster: Cluster, log: string) => Promise<void>): Promise<void> {
  const cluster = await startCluster({ domains: DOMAINS, strictDomains: [STRICT], ...options });
  try {
    await story(cluster, join(cluster.folder, 'send.log'));
  } finally {
    await cluster.stop();
  }
}

async function sendAll(cluster: Cluster, log: string, options: Partial<SendOptions> & { readonly count: number }): Promise<SendReport> {
  const sent = await runSend({ host: HOST, port: cluster.smtpPort, connections: 10, domains: DOMAINS, resend: true, log, ...options });
  assert.equal(sent.accepted, options.count, JSON.stringify(sent));
  return sent;
}

async function soundReport(cluster: Cluster, log: string): Promise<VerifyReport> {
  const report = await cluster.verify(log, CONCURRENCY - 1);
  assert.ok(report.ok, JSON.stringify(report, undefined, 1));
  return report;
}

/** In the strict queue nobody overtakes anybody. */
async function strictlyInOrder(cluster: Cluster, log: string): Promise<void> {
  const strictLog = `${log}.strict`;
  const lines = readFileSync(log, 'utf8').split('\n');
  writeFileSync(strictLog, `${lines.filter((line, index) => index === 0 || line.includes(`"queue":"${STRICT}"`)).join('\n')}\n`);
  const report = await cluster.verify(strictLog, 0);
  assert.ok(report.accepted > 0);
  assert.deepEqual(report.outOfOrder, { count: 0, examples: [] });
}

describe('next hop', { timeout: 480_000 }, () => {
  test('down at first: mail waits, and goes in order as soon as it is up, long before the retry of a deferral', () => withCluster(
    { gateway: { delivery: { concurrency: CONCURRENCY, retry: { first: '5min', max: '1h' } } } },
    async (cluster, log) => {
      await cluster.sink.stop();
      await sendAll(cluster, log, { count: 3000 });
      const { queued_messages: queued, outages } = await cluster.status();
      const [hop] = outages?.next_hops ?? [];
      assert.deepEqual([queued, outages?.next_hops_down, outages?.next_hops.length], [3000, 1, 1]);
      assert.ok(hop !== undefined && hop.waiting > 2900 && hop.since > 0 && hop.why !== '', JSON.stringify(hop));
      cluster.sink.start();
      await cluster.sink.ready();
      await cluster.drained();
      assert.deepEqual((await cluster.status()).outages, { next_hops: [], next_hops_down: 0, next_hops_denied: 0, mx: [], mx_down: 0, mx_waiting: 0, hooks: [] });
      const report = await soundReport(cluster, log);
      assert.deepEqual([report.arrived, report.copies], [3000, 3000]);
      await strictlyInOrder(cluster, log);
    },
  ));

  test('deferring every third: all is delivered in the end, each message once', () => withCluster(
    { sinkArguments: ['--defer-rate', '0.33'], domains: DOMAINS.slice(0, 2), gateway: { delivery: { concurrency: CONCURRENCY, retry: { first: '50ms', max: '200ms' } } } },
    async (cluster, log) => {
      await sendAll(cluster, log, { count: 2000, domains: DOMAINS.slice(0, 2) });
      await cluster.drained();
      const report = await soundReport(cluster, log);
      assert.deepEqual([report.arrived, report.copies], [2000, 2000]);
      assert.ok((await cluster.sinkCounts()).deferred > 500);
    },
  ));

  test('deferring a strict queue: the head holds the queue, so that deliveries keep the order', () => withCluster(
    { sinkArguments: ['--defer-rate', '0.2'], arrivalLog: true, gateway: { delivery: { retry: { first: '20ms', max: '50ms' } } } },
    async (cluster, log) => {
      await sendAll(cluster, log, { count: 100, connections: 1, domains: [STRICT] });
      await cluster.drained();
      await soundReport(cluster, log);
      const taken = arrivalsIn(cluster.arrivalLog).filter((arrival) => arrival.kind === TAKEN).map((arrival) => arrival.serial);
      assert.deepEqual(taken, Array.from({ length: 100 }, (_none, index) => index + 1));
    },
  ));

  test('cutting the connection after the final dot: only what was cut comes twice', () => withCluster(
    { sinkArguments: ['--cut-after-dot', '0.05'], gateway: { delivery: { concurrency: CONCURRENCY, retry: { first: '50ms', max: '200ms' } } } },
    async (cluster, log) => {
      await sendAll(cluster, log, { count: 2000 });
      await cluster.drained();
      const counts = await cluster.sinkCounts();
      assert.ok(counts.cut > 40, JSON.stringify(counts));
      // verify allows one more copy of a message for each time that it was cut, and of no other.
      const report = await soundReport(cluster, log);
      assert.deepEqual([report.arrived, report.copies], [2000, 2000 + counts.cut]);
    },
  ));

  test('refusing every third while the gateway is killed: each refused message is reported once to its sender', () => reportsOnce());
});

/** Reports go to a next hop of their own, which takes everything and keeps it as files. */
async function reportsOnce(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-reports-'));
  const reports = await startSink({ host: HOST, port: 0, maildir: folder, latencyMs: 5 });
  try {
    await withCluster(
      {
        sinkArguments: ['--reject-rate', '0.33', '--latency', '2ms'], arrivalLog: true,
        routes: [{ domain: 'client.example', via: `smtp://${HOST}:${reports.port}` }],
        gateway: { delivery: { concurrency: CONCURRENCY } },
      },
      async (cluster, log) => {
        let kills = 0;
        let restarts = Promise.resolve();
        const restart = async (): Promise<void> => {
          await cluster.inSync(DOMAINS.length);
          await cluster.gateway.kill();
          cluster.gateway.start();
          await cluster.gateway.ready();
        };
        await sendAll(cluster, log, {
          count: 4000, rate: 1500, from: 'sender@client.example',
          onProgress: ({ accepted }) => {
            if (kills >= KILLS_AT.length || accepted < (KILLS_AT[kills] ?? 0)) return;
            kills++;
            restarts = restarts.then(restart);
          },
        });
        await restarts;
        assert.equal(kills, KILLS_AT.length);
        await cluster.drained();
        await cluster.verify(log);
        judgeReports(readSendLog(log).records, arrivalsIn(cluster.arrivalLog), reportsIn(folder));
      },
    );
  } finally {
    await reports.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface ArrivalLine {
  readonly id: number;
  readonly serial: number;
  readonly kind: number;
}

function arrivalsIn(arrivalLog: string): ArrivalLine[] {
  return readFileSync(arrivalLog, 'utf8').split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as ArrivalLine);
}

/** Message-IDs of the reports about each message, as often as they came. */
function reportsIn(maildir: string): Map<number, string[]> {
  const reports = new Map<number, string[]>();
  const marks = emptyMarks();
  for (const name of readdirSync(join(maildir, 'new'))) {
    const content = readFileSync(join(maildir, 'new', name));
    const messageId = /^Message-ID: (\S+)/im.exec(content.toString('latin1'))?.[1];
    assert.ok(messageId !== undefined && findQuotedMarks(content, marks), content.toString('latin1'));
    reports.set(marks.id, [...(reports.get(marks.id) ?? []), messageId]);
  }
  return reports;
}

/**
 * A message ends with one report exactly if its last word was a refusal. One that was refused, and delivered
 * at the repeat after the kill, has none: the refusal had not reached the stores.
 */
function judgeReports(tries: readonly SendRecord[], arrivals: readonly ArrivalLine[], reports: ReadonlyMap<number, readonly string[]>): void {
  // A try without a reply may have been stored as well: then there are two messages with one id.
  const ambiguous = new Set(tries.filter((one) => one.code === 0).map((one) => one.id));
  const lastWord = new Map<number, number>();
  for (const arrival of arrivals) lastWord.set(arrival.id, arrival.kind);
  let judged = 0;
  let repeated = 0;
  for (const [id, kind] of lastWord) {
    const told = reports.get(id) ?? [];
    const distinct = new Set(told).size;
    repeated += told.length - distinct;
    if (ambiguous.has(id)) continue;
    judged++;
    const expected = kind === REJECTED ? 1 : 0;
    assert.equal(distinct, expected, `message ${id} was ${kind === TAKEN ? 'taken' : 'refused'} at last, and reported as ${told.join(', ') || 'nothing'}`);
  }
  assert.ok(judged > 3900 && reports.size > 1000, `${judged} judged, ${reports.size} reported`);
  // The report itself may have been in flight at the kill.
  assert.ok(repeated <= KILLS_AT.length * CONCURRENCY, `${repeated} reports came again`);
}
