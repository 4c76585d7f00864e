/**
 * `npm run bench -- domains [--quick]`: what domains in trouble cost all others, where the DNS says the way. A thousand
 * destination domains, each with a host of its own; of one gateway's, one host is dead (its packets are dropped), one
 * waits ten seconds before it answers DATA, and one greylists for as long as the run takes. A second gateway has the
 * same mail and three good hosts in their place. Both stay up and take turns:
 *
 *     start, warm │ well: at full speed, at a fixed rate │ troubled: the same │ troubled │ well │ …
 *
 * Of the 997 other domains it tells how fast they are delivered at full speed, and how long a message is on its way
 * (from its 250 to its final dot at the sink, both by one clock) at the fixed rate. The three hosts are Postfix's
 * smtp-sink.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Answer } from 'dns-packet';

import { readSendLog } from '../src/load/send-log.js';
import { HOST, pause, startCluster, type Cluster } from '../test/process/cluster.js';
import { NameServer, type Script } from '../test/unit/platform/node/dns/name-server.js';
import { spread, table } from './format.js';
import { rounded } from './machine.js';
import type { BenchOptions } from './options.js';
import { runClient, startLoneSink, type LoneSink } from './processes.js';
import { loadOptions } from './relay-run.js';
import { spreadOf } from './statistics.js';

interface DomainsRow {
  readonly [key: string]: unknown;
  readonly gateway: 'well' | 'troubled';
  readonly round: number;
  /** Of the other domains, at full speed. */
  readonly deliveredPerSecond: number;
  /** Of those, at the fixed rate. */
  readonly onTheirWayP50Ms: number;
  readonly onTheirWayP99Ms: number;
}

const DOMAINS = Array.from({ length: 1000 }, (_none, index) => `d${index}.example`);
/** Indexes of the domains in trouble, and where their hosts are. */
const DEAD = { index: 100, address: '127.0.0.2', arguments: [] } as const;
const SLOW = { index: 400, address: '127.0.0.3', arguments: ['-W', 'data:10'] } as const;
const GREY = { index: 700, address: '127.0.0.4', arguments: ['-r', 'rcpt'] } as const;
const TROUBLED = [DEAD, SLOW, GREY];
const OTHERS = DOMAINS.length - TROUBLED.length;
/** Each domain gets so many messages a turn. */
const FULL_EACH = 30;
const RATED_EACH = 15;
const RATE = 1500;
const QUICK_EACH = 5;
const ROUNDS = 5;
/** A backlog of one holds two connections; the next ones get no answer. */
const BACKLOG_FILL = 4;
const UNANSWERED_MS = 1500;
const READY_MS = 5000;
const DRAIN_MS = 120_000;
const POLL_MS = 50;

/** A gateway, its sink and what the DNS tells it. */
interface Side {
  readonly gateway: DomainsRow['gateway'];
  readonly cluster: Cluster;
  readonly sink: LoneSink;
  readonly arrivalLog: string;
  /** Lines of the arrival log that are of turns before. */
  seen: number;
}

interface Turn {
  readonly deliveredPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export async function benchDomains(options: BenchOptions): Promise<{ rows: DomainsRow[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-bench-domains-'));
  const undo: (() => Promise<void> | void)[] = [() => rmSync(folder, { recursive: true, force: true })];
  const rows: DomainsRow[] = [];
  try {
    const sides = [await startSide('well', folder, undo), await startSide('troubled', folder, undo)];
    const each = options.quick ? QUICK_EACH : FULL_EACH;
    const ratedEach = options.quick ? QUICK_EACH : RATED_EACH;
    for (const side of sides) await take(side, folder, each, undefined);
    for (let round = 1; round <= (options.quick ? 1 : ROUNDS); round++) {
      // Who goes first changes, as what the one before left behind does.
      for (const side of round % 2 === 1 ? sides : [...sides].reverse()) {
        const { deliveredPerSecond } = await take(side, folder, each, undefined);
        const { p50Ms, p99Ms } = await take(side, folder, ratedEach, RATE);
        rows.push(say({ gateway: side.gateway, round, deliveredPerSecond, onTheirWayP50Ms: p50Ms, onTheirWayP99Ms: p99Ms }));
      }
    }
  } finally {
    for (const each of undo.reverse()) await each();
  }
  console.log(`\n${tableOf(rows)}`);
  return { rows };
}

async function startSide(gateway: Side['gateway'], folder: string, undo: (() => Promise<void> | void)[]): Promise<Side> {
  const arrivalLog = join(folder, `${gateway}.arrivals`);
  const sink = await startLoneSink({ verify: true }, ['--arrival-log', arrivalLog]);
  undo.push(() => sink.stop());
  if (gateway === 'troubled') {
    for (const { address, arguments: own } of TROUBLED) {
      // The backlog counts for the dead one alone: the others take what comes.
      const host = await startSmtpSink(address, sink.port, own, address === DEAD.address ? 1 : 100);
      undo.push(() => void host.kill('SIGKILL'));
      if (address === DEAD.address) undo.push(await fallSilent(host, address, sink.port));
    }
  }
  const names = await NameServer.start({ after: (close) => void undo.push(close) }, zoneOf(gateway));
  const cluster = await startCluster({
    sink: false,
    routes: [{ domain: '*', name: 'out', via: `mx:${sink.port}` }],
    gateway: {
      memory: { limit: '2GiB' }, dns: { resolvers: [`${HOST}:${names.port}`] }, reports: 'discard',
      delivery: { mx: { allow_private_addresses: true, mta_sts: false, connections_per_address: 5_000 }, messages_per_connection: 1_000_000 },
    },
    store: { memory: { limit: '2GiB' } },
  });
  undo.push(() => cluster.stop());
  return { gateway, cluster, sink, arrivalLog, seen: 0 };
}

/** Each domain has one host, each host one address: that of the sink but for those in trouble. */
function zoneOf(gateway: Side['gateway']): Script {
  const addresses = new Map<string, string>(gateway === 'well' ? [] : TROUBLED.map(({ index, address }) => [`d${index}.example`, address]));
  return (question): { rcode: number } | { answers: readonly Answer[] } => {
    const [, type = '', host = '', domain = ''] = /^(\S+) (mx\.|)(d\d+\.example)$/.exec(question) ?? [];
    if (type === 'MX' && host === '') return { answers: [{ type: 'MX', name: domain, ttl: 300, data: { preference: 10, exchange: `mx.${domain}` } }] };
    if (type === 'A' && host !== '') return { answers: [{ type: 'A', name: `mx.${domain}`, ttl: 300, data: addresses.get(domain) ?? HOST }] };
    return { rcode: 3 };
  };
}

async function startSmtpSink(address: string, port: number, own: readonly string[], backlog: number): Promise<ChildProcess> {
  // It refuses to stay root.
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const child = spawn('smtp-sink', [...user, ...own, `${address}:${port}`, String(backlog)], { stdio: 'ignore' });
  const failed = new Promise<never>((_resolve, reject) => child.once('error', () => reject(new Error('needs smtp-sink (Debian: postfix)'))));
  await Promise.race([failed, untilAnswered(address, port)]);
  return child;
}

async function untilAnswered(address: string, port: number): Promise<void> {
  const endMs = performance.now() + READY_MS;
  for (;;) {
    const socket = await opened(address, port, UNANSWERED_MS);
    socket?.destroy();
    if (socket !== undefined) return;
    if (performance.now() > endMs) throw new Error(`nobody listens on ${address}:${port}`);
    await pause(POLL_MS);
  }
}

/** Undefined: refused, or no answer in time. */
function opened(host: string, port: number, waitMs: number): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const timer = setTimeout(() => { socket.destroy(); resolve(undefined); }, waitMs);
    socket.once('connect', () => { clearTimeout(timer); resolve(socket); });
    socket.on('error', () => { clearTimeout(timer); resolve(undefined); });
  });
}

/** The host stands still with a full backlog: the kernel drops whoever knocks. */
async function fallSilent(host: ChildProcess, address: string, port: number): Promise<() => void> {
  host.kill('SIGSTOP');
  const held = await Promise.all(Array.from({ length: BACKLOG_FILL }, () => opened(address, port, UNANSWERED_MS)));
  const another = await opened(address, port, UNANSWERED_MS);
  another?.destroy();
  if (another !== undefined) throw new Error(`${address}:${port} is to be dead, and answers`);
  return () => { for (const socket of held) socket?.destroy(); };
}

async function take(side: Side, folder: string, each: number, rate: number | undefined): Promise<Turn> {
  const log = join(folder, 'send.log');
  const count = each * DOMAINS.length;
  const before = await side.sink.messages();
  const { report } = await runClient({
    ...loadOptions(side.cluster.smtpPort, { count, domains: DOMAINS, ...(rate === undefined ? {} : { rate }) }), log,
  });
  if (report.accepted !== count) throw new Error(`only ${report.accepted} of ${count} were accepted: ${JSON.stringify(report.samples)}`);
  const expected = before + each * (side.gateway === 'well' ? DOMAINS.length : OTHERS);
  const endMs = performance.now() + DRAIN_MS;
  while ((await side.sink.messages()) < expected) {
    if (performance.now() > endMs) throw new Error(`${side.gateway}: the sink has ${await side.sink.messages()} of ${expected} messages`);
    await pause(POLL_MS);
  }
  return judge(side, log);
}

interface Arrival {
  readonly us: number;
  readonly queue: string;
  readonly serial: number;
  readonly run: string;
}

async function judge(side: Side, log: string): Promise<Turn> {
  // A question for its report makes the sink write what it has gathered.
  await side.sink.flush();
  const sent = readSendLog(log);
  const troubled = new Set(TROUBLED.map(({ index }) => DOMAINS[index]));
  const replies = new Map(sent.records.filter(({ queue }) => !troubled.has(queue)).map(({ queue, serial, reply }) => [`${queue} ${serial}`, reply]));
  const firstUs = sent.records.reduce((least, { dot }) => Math.min(least, dot), Infinity);
  const waitsMs: number[] = [];
  let lastUs = 0;
  const lines = readFileSync(side.arrivalLog, 'latin1').split('\n');
  for (const line of lines.slice(side.seen)) {
    if (line === '') continue;
    const { us, queue, serial, run } = JSON.parse(line) as Arrival;
    const reply = run === sent.run ? replies.get(`${queue} ${serial}`) : undefined;
    if (reply === undefined) continue;
    waitsMs.push(Math.max(0, us - reply) / 1000);
    lastUs = Math.max(lastUs, us);
  }
  side.seen = lines.length - 1;
  if (waitsMs.length !== replies.size) throw new Error(`${side.gateway}: ${waitsMs.length} of ${replies.size} messages are in the log of the sink`);
  waitsMs.sort((a, b) => a - b);
  const at = (share: number): number => rounded(waitsMs[Math.floor(share * (waitsMs.length - 1))] ?? NaN, 2);
  return { deliveredPerSecond: rounded((1e6 * waitsMs.length) / (lastUs - firstUs)), p50Ms: at(0.5), p99Ms: at(0.99) };
}

function say(row: DomainsRow): DomainsRow {
  console.log(`${row.round}  ${row.gateway.padEnd(8)} the others ${Math.round(row.deliveredPerSecond)}/s at full speed; on their way p50 ${row.onTheirWayP50Ms}, p99 ${row.onTheirWayP99Ms} ms at ${RATE}/s`);
  return row;
}

function tableOf(rows: readonly DomainsRow[]): string {
  const of = (gateway: DomainsRow['gateway'], value: (row: DomainsRow) => number): readonly number[] =>
    rows.filter((row) => row.gateway === gateway).sort((a, b) => a.round - b.round).map(value);
  const line = (what: string, value: (row: DomainsRow) => number): string[] => {
    const [well, troubled] = [of('well', value), of('troubled', value)];
    const ratios = troubled.map((figure, round) => figure / (well[round] ?? NaN));
    return [what, ...[well, troubled, ratios].map((figures) => spread(spreadOf(figures)))];
  };
  return table(['of the 997 other domains', 'all well', 'three in trouble', 'ratio'], [
    line('messages/s at full speed', (row) => row.deliveredPerSecond),
    line('p50 ms on their way', (row) => row.onTheirWayP50Ms),
    line('p99 ms on their way', (row) => row.onTheirWayP99Ms),
  ]);
}
