/**
 * The sink: an SMTP or LMTP server that takes everything, counts it, and can make trouble on purpose. It
 * is the far end of trials, benches and tests. Owns sockets, latency timers, counts and the kept marks;
 * the dialog of a session is in sink/dialog.ts, the judgement in sink/verify.ts.
 */
import { createServer as createHttpServer, type Server as HttpServer } from 'node:http';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';

import { Prng } from '../base/prng.js';
import { emptyMarks, findQuotedMarks, readMarks } from '../load/marks.js';
import { monotonicMicros, readSendLog } from '../load/send-log.js';
import { ArrivalLog, Arrivals } from './arrivals.js';
import { CUT_OFF, Dialog, END, GO_ON, WAIT, type DialogHost, type Next } from './dialog.js';
import { Faults } from './faults.js';
import { Maildir } from './maildir.js';
import type { RunningSink, SinkCounts, SinkOptions } from './options.js';
import { CUT, DEFERRED, REJECTED, REPORTED, TAKEN, verifyBySerials, verifyRun, type ArrivalKind, type VerifyReport } from './verify.js';

const DEFAULT_MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
const DEFAULT_CONNECTIONS_MAX = 10_000;
/** 41 bytes each. */
const DEFAULT_RECORDS_MAX = 20_000_000;
/** A client that says nothing for so long is dropped (RFC 5321 4.5.3.2.7: at least 5 minutes). */
const SILENCE_MS = 300_000;

/** Starts listening; rejects when the address is taken. */
export async function startSink(options: SinkOptions): Promise<RunningSink> {
  const sink = new Sink(options);
  await sink.start();
  return sink;
}

class Sink implements RunningSink, DialogHost {
  readonly counts: SinkCounts = {
    messages: 0, recipients: 0, bytes: 0, deferred: 0, rejected: 0, cut: 0, unmarked: 0, reports: 0,
    connections: 0, connectionsOpen: 0, commandErrors: 0,
  };
  readonly lmtp: boolean;
  readonly late: boolean;
  readonly messageBytesMax: number;
  readonly #options: SinkOptions;
  readonly #faults: Faults;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #maildir: Maildir | undefined;
  readonly #arrivals: Arrivals | undefined;
  readonly #log: ArrivalLog | undefined;
  readonly #marks = emptyMarks();
  #http: HttpServer | undefined;

  constructor(options: SinkOptions) {
    this.#options = options;
    this.lmtp = options.lmtp ?? false;
    this.late = (options.latencyMs ?? 0) > 0;
    this.messageBytesMax = options.messageBytesMax ?? DEFAULT_MESSAGE_BYTES_MAX;
    const rates = { deferRate: options.deferRate ?? 0, rejectRate: options.rejectRate ?? 0, cutAfterDot: options.cutAfterDot ?? 0 };
    this.#faults = new Faults(rates, new Prng(options.seed ?? 1));
    this.#maildir = options.maildir === undefined ? undefined : new Maildir(options.maildir);
    this.#log = options.arrivalLog === undefined ? undefined : new ArrivalLog(options.arrivalLog);
    const verify = options.verify === true || options.sendLog !== undefined || this.#log !== undefined;
    this.#arrivals = verify ? new Arrivals(options.recordsMax ?? DEFAULT_RECORDS_MAX) : undefined;
    this.#server = createServer({ noDelay: true }, (socket) => this.#onConnection(socket));
    this.#server.maxConnections = options.connectionsMax ?? DEFAULT_CONNECTIONS_MAX;
  }

  async start(): Promise<void> {
    await listening(this.#server, this.#options.host, this.#options.port);
    const admin = this.#options.admin;
    if (admin === undefined) return;
    this.#http = createHttpServer((request, response) => {
      void this.#answer(request.url ?? '').then(({ status, body }) => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(`${JSON.stringify(body)}\n`);
      });
    });
    try {
      await listening(this.#http, admin.host, admin.port);
    } catch (error) {
      this.#server.close();
      throw error;
    }
  }

  get port(): number {
    return portOf(this.#server);
  }

  get adminPort(): number {
    return this.#http === undefined ? 0 : portOf(this.#http);
  }

  report(sendLog?: string): Promise<VerifyReport> {
    const arrivals = this.#arrivals;
    if (arrivals === undefined) return Promise.reject(new Error('sink: report asked for, but it was started without verify'));
    const path = sendLog ?? this.#options.sendLog;
    const bounds = { displacementMax: this.#options.displacementMax ?? 0 };
    try {
      const report = path === undefined ? verifyBySerials(arrivals.list(), bounds) : verifyRun(readSendLog(path), arrivals.list(), bounds);
      return Promise.resolve(arrivals.complete ? report : { ...report, ok: false, complete: false });
    } catch (error) {
      return Promise.reject(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    this.#http?.close();
    this.#http?.closeAllConnections();
    await closed;
    this.#log?.close();
  }

  // What dialogs ask (DialogHost).

  decide(): ArrivalKind {
    return this.#faults.draw();
  }

  onCommandError(): void {
    this.counts.commandErrors++;
  }

  keep(content: Buffer, from: string, to: readonly string[], kind: ArrivalKind): void {
    const counts = this.counts;
    counts.messages++;
    counts.recipients += to.length;
    counts.bytes += content.length;
    if (kind === DEFERRED) counts.deferred++;
    else if (kind === REJECTED) counts.rejected++;
    else if (kind === CUT) counts.cut++;
    if (this.#arrivals !== undefined) this.#record(this.#arrivals, content, from, to, kind);
    if (this.#maildir !== undefined && (kind === TAKEN || kind === CUT)) this.#maildir.keep(content);
  }

  #record(arrivals: Arrivals, content: Buffer, from: string, to: readonly string[], kind: ArrivalKind): void {
    const marked = readMarks(content, this.#marks);
    if (marked) {
      arrivals.add(this.#marks, kind);
    } else if (from === '' && kind === TAKEN && findQuotedMarks(content, this.#marks)) {
      this.counts.reports++;
      arrivals.add(this.#marks, REPORTED);
    } else {
      this.counts.unmarked++;
    }
    this.#log?.record(monotonicMicros(), kind, marked ? this.#marks : undefined, content.length, from, to);
  }

  // Sockets.

  #onConnection(socket: Socket): void {
    this.counts.connections++;
    this.counts.connectionsOpen++;
    this.#sockets.add(socket);
    const dialog = new Dialog(this);
    write(socket, dialog);
    socket.setTimeout(SILENCE_MS, () => socket.destroy());
    socket.on('data', (chunk: Buffer) => this.#go(socket, dialog, dialog.push(chunk)));
    // A reset is the client's business: 'close' follows.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.counts.connectionsOpen--;
      this.#sockets.delete(socket);
    });
  }

  #go(socket: Socket, dialog: Dialog, next: Next): void {
    if (next === CUT_OFF) {
      socket.resetAndDestroy();
      return;
    }
    if (dialog.replies !== '') write(socket, dialog);
    if (next === END) socket.end();
    else if (next === WAIT) this.#wait(socket, dialog);
  }

  #wait(socket: Socket, dialog: Dialog): void {
    socket.pause();
    setTimeout(() => {
      if (socket.destroyed) return;
      const next = dialog.finish();
      this.#go(socket, dialog, next);
      if (next === GO_ON) socket.resume();
    }, this.#options.latencyMs ?? 0);
  }

  // HTTP.

  async #answer(url: string): Promise<{ status: number; body: unknown }> {
    const path = new URL(url, 'http://sink').pathname;
    if (path === '/healthz' || path === '/readyz') return { status: 200, body: { ok: true } };
    if (path === '/counts') return { status: 200, body: this.counts };
    if (path !== '/report') return { status: 404, body: { error: 'no such page: /report, /counts, /healthz' } };
    this.#log?.flush();
    try {
      return { status: 200, body: await this.report() };
    } catch (error) {
      return { status: 500, body: { error: String(error) } };
    }
  }
}

function write(socket: Socket, dialog: Dialog): void {
  socket.write(dialog.replies, 'latin1');
  dialog.replies = '';
}

function listening(server: Server | HttpServer, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
}

function portOf(server: Server | HttpServer): number {
  return (server.address() as AddressInfo).port;
}
