/**
 * `npm run bench -- tls [--quick]`: submission by TLS beside Postfix. The same client sends the same mix to the same
 * sink through each server in turns, by STARTTLS on connections that are kept, with a handshake for each message, and
 * with a session that is resumed for each, and in clear for what TLS adds; and through others of them that go on by TLS
 * to a sink which has it, on connections that are kept on both sides. All have the same certificate, settle on the same
 * version and cipher, and resume by a ticket: asked before, and refused otherwise. CPU is that of all processes of a
 * server; ours are the gateway and both stores. The goal is GOAL_FACTOR times the messages of Postfix by TLS.
 *
 *     start, warm │ Twinpost, Postfix on disk, Postfix on tmpfs  (each: its loads) │ Postfix …, Twinpost │ …
 *
 * What counts is the ratio of a round, whose turns follow each other; the table tells its median and range.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';

import { HOST } from '../test/process/cluster.js';
import { makeCertificate } from './certificate.js';
import { spread, table } from './format.js';
import type { BenchOptions } from './options.js';
import { relayBy, type PeerRelayed } from './peers.js';
import { startTlsPostfix } from './peers/postfix.js';
import type { RelayPeer } from './peers/relay-peer.js';
import { startTwinpost } from './peers/twinpost.js';
import { startLoneSink, type LoneSink } from './processes.js';
import { spreadOf } from './statistics.js';

const RESUMED = 'TLS, one message a connection, resumed by ticket';
const LOADS = ['TLS, kept connections', 'TLS, one message a connection', RESUMED, 'clear, kept connections', 'clear, one message a connection'] as const;
const BOTH_SIDES = ['TLS in and out, kept connections'] as const;
type TlsLoad = (typeof LOADS)[number] | (typeof BOTH_SIDES)[number];
const OURS = 'Twinpost';

interface TlsRow extends PeerRelayed {
  readonly [key: string]: unknown;
  readonly peer: string;
  readonly load: TlsLoad;
  readonly round: number;
  readonly session: string;
}

const GOAL_FACTOR = 5;
const ROUNDS = 5;
/** A load is to take about so long; how many messages that is, the one before tells. */
const SECONDS = 3;
const QUICK_SECONDS = 1;
const FIRST_MESSAGES = 500;
/** What is compiled while it runs is measured compiled: of ours, before the first round. */
const WARM_KEPT = 30_000;
const WARM_SINGLE = 8_000;
const MESSAGES_MAX = 60_000;

/** A server that was started. */
interface Running {
  readonly name: string;
  readonly peer: RelayPeer;
  /** What TLS it settles on. */
  readonly session: string;
  readonly perSecond: Map<TlsLoad, number>;
  readonly loads: readonly TlsLoad[];
  readonly sink: LoneSink;
}

export async function benchTls(options: BenchOptions): Promise<{ rows: TlsRow[] }> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-bench-tls-'));
  const sinks: LoneSink[] = [];
  const running: Running[] = [];
  const rows: TlsRow[] = [];
  try {
    const { files, caFile } = makeCertificate(folder);
    for (const isOutToo of [false, true]) {
      const sink = await startLoneSink(isOutToo ? { tls: files } : {});
      sinks.push(sink);
      const start = async (name: string, starting: Promise<RelayPeer>): Promise<void> => {
        const peer = await starting;
        const loads = isOutToo ? BOTH_SIDES : LOADS;
        running.push({ name, peer, session: await sessionOf(peer.port, caFile), perSecond: new Map(), loads, sink });
      };
      await start(OURS, startTwinpost(sink.port, files));
      await start('Postfix, queue on disk', startTlsPostfix(sink.port, 'disk', files, isOutToo));
      await start('Postfix, queue on tmpfs', startTlsPostfix(sink.port, 'tmpfs', files, isOutToo));
    }
    const sessions = new Set(running.map(({ session }) => session));
    if (sessions.size !== 1) throw new Error(`not comparable: ${[...sessions].join(', ')}`);
    const seconds = options.quick ? QUICK_SECONDS : SECONDS;
    for (const each of running) {
      for (const load of each.loads) {
        const count = options.quick || each.name !== OURS ? FIRST_MESSAGES : isKept(load) ? WARM_KEPT : WARM_SINGLE;
        await take(each, load, { caFile, count });
      }
    }
    for (let round = 1; round <= (options.quick ? 1 : ROUNDS); round++) {
      // Who goes first changes, as what the one before left behind does.
      for (const each of round % 2 === 1 ? running : [...running].reverse()) {
        for (const load of each.loads) {
          const row = { peer: each.name, load, round, session: each.session, ...(await take(each, load, { caFile, count: messagesIn(each, load, seconds) })) };
          console.log(`${round}  ${row.peer.padEnd(24)} ${load.padEnd(RESUMED.length)} ${String(Math.round(row.relayedPerSecond)).padStart(6)}/s, CPU ${row.cpuMicrosPerMessage} µs a message, p50 ${row.responseP50Ms} ms`);
          rows.push(row);
        }
      }
    }
  } finally {
    for (const { peer } of running) await peer.stop();
    for (const sink of sinks) await sink.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(`\n${tablesOf(rows)}`);
  return { rows };
}

interface Turn {
  readonly caFile: string;
  readonly count: number;
}

const isKept = (load: TlsLoad): boolean => load.endsWith('kept connections');

function messagesIn({ perSecond }: Running, load: TlsLoad, seconds: number): number {
  return Math.round(Math.min(MESSAGES_MAX, Math.max(FIRST_MESSAGES, (perSecond.get(load) ?? 0) * seconds)));
}

async function take({ peer, perSecond, sink }: Running, load: TlsLoad, { caFile, count }: Turn): Promise<PeerRelayed> {
  const relayed = await relayBy(peer, sink, {
    count,
    ...(load.startsWith('TLS') ? { caFile, resumesTls: load === RESUMED } : {}),
    ...(isKept(load) ? {} : { messagesPerConnection: 1 }),
  });
  perSecond.set(load, relayed.relayedPerSecond);
  return relayed;
}

/** Version and cipher of a session that the server gives to a client like the load client, and whether it resumes it. */
async function sessionOf(port: number, ca: string): Promise<string> {
  const { name, ticket } = await handshake(port, ca);
  const again = await handshake(port, ca, ticket);
  return `${name}${again.isResumed ? ', resumed by ticket' : ''}`;
}

interface Handshake {
  readonly name: string;
  readonly isResumed: boolean;
  readonly ticket: Buffer;
}

function handshake(port: number, ca: string, ticket?: Buffer): Promise<Handshake> {
  return new Promise((resolve, reject) => {
    const clear = createConnection(port, HOST);
    const commands = ['EHLO bench.example\r\n', 'STARTTLS\r\n'];
    let heard = '';
    clear.on('error', reject);
    clear.on('data', (bytes: Buffer) => {
      heard += bytes.toString('latin1');
      if (!/(?:^|\r\n)\d{3} [^\r\n]*\r\n$/.test(heard)) return;
      heard = '';
      const command = commands.shift();
      if (command !== undefined) {
        clear.write(command);
        return;
      }
      clear.removeAllListeners('data');
      // The name is the load client's business.
      const socket = connect({ socket: clear, checkServerIdentity: () => undefined, rejectUnauthorized: false, ca, session: ticket });
      // A ticket comes behind the handshake in TLS 1.3, and perhaps none for one that was resumed.
      socket.once(ticket === undefined ? 'session' : 'secureConnect', (given = Buffer.alloc(0)) => {
        resolve({ name: `${socket.getProtocol() ?? ''} ${socket.getCipher().name}`, isResumed: socket.isSessionReused(), ticket: given });
        socket.destroy();
      });
      socket.on('error', reject);
    });
  });
}

function tablesOf(rows: readonly TlsRow[]): string {
  const at = (peer: string, load: TlsLoad): readonly TlsRow[] => rows.filter((row) => row.peer === peer && row.load === load);
  const peers = [...new Set(rows.map(({ peer }) => peer))];
  const of = (values: readonly number[]): string => spread(spreadOf(values));
  const lines = [...LOADS, ...BOTH_SIDES].flatMap((load) => peers.map((peer) => {
    const theirs = at(peer, load);
    const ours = at(OURS, load);
    const ratios = (value: (row: TlsRow) => number, isMore: boolean): number[] => theirs.map((row) => {
      const own = ours.find(({ round }) => round === row.round);
      return own === undefined ? NaN : isMore ? value(own) / value(row) : value(row) / value(own);
    });
    const isOurs = peer === OURS;
    const faster = ratios((row) => row.relayedPerSecond, true);
    const verdict = (spreadOf(faster)?.median ?? NaN) >= GOAL_FACTOR ? 'met' : '**NOT MET**';
    return [
      load, peer, of(theirs.map((row) => row.relayedPerSecond)), of(theirs.map((row) => row.cpuMicrosPerMessage)),
      ...(isOurs ? ['', '', ''] : [of(faster), load.startsWith('TLS') ? verdict : '', of(ratios((row) => row.cpuMicrosPerMessage, false))]),
    ];
  }));
  const session = rows[0]?.session ?? '';
  return `${session}\n\n${table(['load', 'server', 'messages/s', 'CPU µs a message', 'ours × messages/s', `≥ ${String(GOAL_FACTOR)}`, 'its CPU × ours'], lines)}`;
}
