/**
 * The client of memcached and redis, as lean as ours (kvs-client.ts): batches of stores and deletes made
 * once, `depth` transactions in flight on one connection, one write a batch. A process of its own: options
 * as JSON in the first argument, the result as JSON on stdout.
 */
import { connect, type Socket } from 'node:net';

import type { KvsClientResult } from '../kvs-client.js';
import { FixedReplies } from './fixed-replies.js';
import { wireOf, type PeerStore } from './wire.js';

export interface PipelineOptions {
  readonly host: string;
  readonly port: number;
  readonly store: PeerStore;
  readonly messageBytes: number;
  readonly seconds: number;
  /** Transactions in one write, and writes unanswered. */
  readonly batch: number;
  readonly window: number;
}

const READ_BYTES = 256 * 1024;

class PipelineClient {
  readonly #options: PipelineOptions;
  readonly #batch: Buffer;
  readonly #replies: FixedReplies;
  readonly #resolve: (result: KvsClientResult) => void;
  readonly #reject: (error: Error) => void;
  readonly #socket: Socket;
  #sent = 0;
  #startMs = 0;
  #cpu = process.cpuUsage();

  constructor(options: PipelineOptions, resolve: (result: KvsClientResult) => void, reject: (error: Error) => void) {
    const { batch, reply } = wireOf(options.store, options.messageBytes, options.batch);
    this.#options = options;
    this.#batch = batch;
    this.#replies = new FixedReplies(reply);
    this.#resolve = resolve;
    this.#reject = reject;
    const callback = (bytes: number, buffer: Uint8Array): boolean => {
      this.#onData(buffer.subarray(0, bytes));
      return true;
    };
    this.#socket = connect({ host: options.host, port: options.port, noDelay: true, onread: { buffer: Buffer.allocUnsafeSlow(READ_BYTES), callback } });
    this.#socket.on('connect', () => { this.#start(); });
    this.#socket.on('error', reject);
    this.#socket.on('close', () => { reject(new Error('the server closed the connection')); });
  }

  #start(): void {
    this.#startMs = performance.now();
    this.#cpu = process.cpuUsage();
    this.#fill();
  }

  #onData(bytes: Uint8Array): void {
    if (!this.#replies.push(bytes)) this.#reject(new Error(`an unexpected reply: ${Buffer.from(bytes).toString('latin1', 0, 80)}`));
    this.#fill();
    if (this.#replies.transactions === this.#sent) this.#finish();
  }

  #fill(): void {
    const { batch, seconds, window } = this.#options;
    if (performance.now() - this.#startMs >= seconds * 1000) return;
    while (this.#sent - this.#replies.transactions <= batch * (window - 1)) {
      this.#socket.write(this.#batch);
      this.#sent += batch;
    }
  }

  #finish(): void {
    const seconds = (performance.now() - this.#startMs) / 1000;
    const cpu = process.cpuUsage(this.#cpu);
    const transactions = this.#replies.transactions;
    this.#resolve({ transactions, seconds, transactionsPerSecond: transactions / seconds, clientCpuMicros: (cpu.user + cpu.system) / Math.max(1, transactions) });
    this.#socket.destroy();
  }
}

const options = JSON.parse(process.argv[2] ?? '{}') as PipelineOptions;
const result = await new Promise<KvsClientResult>((resolve, reject) => new PipelineClient(options, resolve, reject));
process.stdout.write(`${JSON.stringify(result)}\n`);
