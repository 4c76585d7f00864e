/**
 * CPU a message of our verifying sink beside one on smtp-server, by its documented interface: each in a process of its
 * own, loaded in turns by our client with the paper's mix, marks of every message read and its CRC computed.
 *
 *   node dist/bench/micro/sink-server.js [messages a turn] [turns]
 *
 * Prints the medians of µs of CPU (user + system) a message and of messages/s of both, and the median of the turns'
 * ratios of CPU, which counts.
 */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';

import { SMTPServer } from 'smtp-server';

import { emptyMarks, readMarks } from '../../src/load/marks.js';
import { runSend } from '../../src/load/run.js';
import { startSink } from '../../src/sink/sink.js';
import { MIX } from '../relay-run.js';

const HOST = '127.0.0.1';
const CONNECTIONS = 50;
const KINDS = ['ours', 'smtp-server'] as const;
type Kind = (typeof KINDS)[number];

async function startLibrary(): Promise<number> {
  const marks = emptyMarks();
  const server = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'], logger: false,
    onData: (stream, _session, callback) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => { chunks.push(chunk); });
      stream.on('end', () => {
        const isIntact = readMarks(Buffer.concat(chunks), marks) && marks.hash === marks.actualHash;
        callback(isIntact ? null : new Error('altered'));
      });
    },
  });
  server.on('error', () => undefined);
  server.listen(0, HOST);
  await once(server.server, 'listening');
  return (server.server.address() as AddressInfo).port;
}

async function serve(kind: Kind): Promise<void> {
  const port = kind === 'ours' ? (await startSink({ host: HOST, port: 0, verify: true })).port : await startLibrary();
  process.on('message', () => {
    const { user, system } = process.cpuUsage();
    process.send?.(user + system);
  });
  process.send?.(port);
}

class SinkProcess {
  readonly #child: ChildProcess;
  readonly cpuUs: number[] = [];
  readonly perSecond: number[] = [];
  #port = 0;

  constructor(kind: Kind) {
    this.#child = fork(fileURLToPath(import.meta.url), ['serve', kind]);
  }

  async start(): Promise<void> {
    this.#port = await this.#said();
  }

  async load(count: number, isMeasured: boolean): Promise<void> {
    const before = await this.#cpu();
    const report = await runSend({ host: HOST, port: this.#port, count, connections: CONNECTIONS, mix: MIX });
    if (report.accepted !== count) throw new Error(`only ${String(report.accepted)} were accepted: ${JSON.stringify(report.samples)}`);
    if (!isMeasured) return;
    this.cpuUs.push((await this.#cpu() - before) / count);
    this.perSecond.push(report.acceptedPerSecond);
  }

  stop(): void {
    this.#child.kill();
  }

  async #cpu(): Promise<number> {
    this.#child.send('cpu');
    return this.#said();
  }

  async #said(): Promise<number> {
    return ((await once(this.#child, 'message')) as [number])[0];
  }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1] ?? NaN;
}

async function main(messages: number, turns: number): Promise<void> {
  const sinks = [new SinkProcess('ours'), new SinkProcess('smtp-server')] as const;
  for (const sink of sinks) await sink.start();
  for (let turn = -1; turn < turns; turn++) {
    for (const sink of turn % 2 === 0 ? sinks : [sinks[1], sinks[0]]) await sink.load(messages, turn >= 0);
  }
  for (const [index, sink] of sinks.entries()) {
    console.log(`${(KINDS[index] ?? '').padEnd(12)} ${median(sink.cpuUs).toFixed(1).padStart(6)} µs CPU a message, ${String(Math.round(median(sink.perSecond)))} messages/s`);
    sink.stop();
  }
  const ratios = sinks[1].cpuUs.map((cpu, turn) => cpu / (sinks[0].cpuUs[turn] ?? NaN));
  console.log(`median of ${String(turns)} ratios ${median(ratios).toFixed(2)}`);
}

const [first, second] = process.argv.slice(2);
if (first === 'serve') await serve(second === 'ours' ? 'ours' : 'smtp-server');
else await main(Number(first ?? 20_000), Number(second ?? 7));
