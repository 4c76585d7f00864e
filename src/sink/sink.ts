/**
 * The sink: an SMTP or LMTP server that takes everything, counts it, and can make trouble on purpose. It
 * is the far end of trials, benches and tests. Owns sockets, latency timers, counts and the kept marks;
 * the dialog of a session is in sink/dialog.ts, the judgement in sink/verify.ts.
 */
import { createServer as createHttpServer, type IncomingMessage, type Server as HttpServer } from 'node:http';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createSecureContext, TLSSocket, type SecureContext } from 'node:tls';

import { Prng } from '../base/prng.js';
import { isLoopback, namesThisMachine } from '../platform/node/own-host.js';
import { readServerTls } from '../platform/node/server-tls.js';
import { emptyMarks, findQuotedMarks, readEnvid, readMarks } from '../load/marks.js';
import { monotonicMicros, parseSendLog, readSendLog, type SendLogFile } from '../load/send-log.js';
import { ArrivalLog, Arrivals } from './arrivals.js';
import { CUT_OFF, Dialog, END, GO_ON, SECURE, WAIT, type DialogHost, type Next } from './dialog.js';
import { Faults } from './faults.js';
import { Inbox } from './inbox.js';
import { Maildir } from './maildir.js';
import type { RunningSink, SinkCounts, SinkOptions } from './options.js';
import { Tally } from './tally.js';
import {
  CUT, DEFERRED, REJECTED, REPORTED, TAKEN, UNFINISHED, verifyBySerials, verifyRun,
  type ArrivalKind, type VerifyReport,
} from './verify.js';

const DEFAULT_MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
const DEFAULT_CONNECTIONS_MAX = 10_000;
/** 49 bytes each. */
const DEFAULT_RECORDS_MAX = 20_000_000;
/** A client that says nothing for so long is dropped (RFC 5321 4.5.3.2.7: at least 5 minutes). */
const SILENCE_MS = 300_000;
/** What a page hears that points a name of its own at this machine (platform/node/own-host.ts). */
const FOREIGN = JSON.stringify({ error: 'this port is for this machine only' });
/** Two million lines of a send log. */
const REPORT_BYTES_MAX = 256 * 1024 * 1024;

/** Starts listening; rejects when the address is taken. */
export async function startSink(options: SinkOptions): Promise<RunningSink> {
  const sink = new Sink(options);
  await sink.start();
  return sink;
}

class Sink implements RunningSink, DialogHost {
  readonly counts: SinkCounts = {
    messages: 0, recipients: 0, bytes: 0, deferred: 0, rejected: 0, cut: 0,
    unmarked: 0, reports: 0, unfinished: 0,
    connections: 0, connectionsOpen: 0, commandErrors: 0,
  };
  readonly lmtp: boolean;
  readonly late: boolean;
  readonly hasTls: boolean;
  readonly messageBytesMax: number;
  readonly #options: SinkOptions;
  readonly #faults: Faults;
  readonly #server: Server;
  readonly #secureContext: SecureContext | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #maildir: Maildir | undefined;
  readonly #arrivals: Arrivals | undefined;
  readonly #log: ArrivalLog | undefined;
  readonly #inbox: Inbox | undefined;
  readonly #tally: Tally | undefined;
  readonly #marks = emptyMarks();
  #begun = 0;
  #http: HttpServer | undefined;

  constructor(options: SinkOptions) {
    this.#options = options;
    this.lmtp = options.lmtp ?? false;
    this.late = (options.latencyMs ?? 0) > 0;
    const { tls } = options;
    this.hasTls = tls !== undefined;
    this.#secureContext = tls === undefined
      ? undefined : createSecureContext(readServerTls({ ...tls, clientCaFile: undefined }));
    this.messageBytesMax = options.messageBytesMax ?? DEFAULT_MESSAGE_BYTES_MAX;
    const rates = {
      deferRate: options.deferRate ?? 0, rejectRate: options.rejectRate ?? 0,
      cutAfterDot: options.cutAfterDot ?? 0,
    };
    this.#faults = new Faults(rates, new Prng(options.seed ?? 1));
    this.#maildir = options.maildir === undefined ? undefined : new Maildir(options.maildir);
    this.#log = options.arrivalLog === undefined ? undefined : new ArrivalLog(options.arrivalLog);
    this.#inbox = options.inbox === true ? new Inbox() : undefined;
    this.#tally = options.inbox === true ? new Tally() : undefined;
    const verify = options.verify === true || options.sendLog !== undefined || this.#log !== undefined;
    this.#arrivals = verify ? new Arrivals(options.recordsMax ?? DEFAULT_RECORDS_MAX) : undefined;
    this.#server = createServer({ noDelay: true }, (socket) => this.#onConnection(socket));
    this.#server.maxConnections = options.connectionsMax ?? DEFAULT_CONNECTIONS_MAX;
  }

  async start(): Promise<void> {
    await listening(this.#server, this.#options.host, this.#options.port);
    const admin = this.#options.admin;
    if (admin === undefined) return;
    const isForOthers = !isLoopback(admin.host);
    this.#http = createHttpServer((request, response) => {
      if (!isForOthers && !namesThisMachine(request.headers.host)) {
        response.writeHead(403, { 'content-type': 'application/json' }).end(`${FOREIGN}\n`);
        return;
      }
      const content = this.#contentAsked(request.url ?? '');
      if (content !== undefined) {
        response.writeHead(200, { 'content-type': 'message/rfc822' }).end(content);
        return;
      }
      void this.#answer(request).then(({ status, body }) => {
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
    const path = sendLog ?? this.#options.sendLog;
    try {
      return Promise.resolve(this.#judge(path === undefined ? undefined : readSendLog(path)));
    } catch (error) {
      return Promise.reject(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #judge(log: SendLogFile | undefined, displacement?: number): VerifyReport {
    const arrivals = this.#arrivals;
    // A verdict on a million arrivals takes long: who ends the sink meanwhile still has all of the log.
    this.#log?.flush();
    if (arrivals === undefined) {
      throw new Error('sink: a report was asked for, but it was started without --verify');
    }
    const bounds = { displacementMax: displacement ?? this.#options.displacementMax ?? 0 };
    const report = log === undefined
      ? verifyBySerials(arrivals.list(), bounds)
      : verifyRun(log, arrivals.list(), bounds);
    return arrivals.complete ? report : { ...report, ok: false, complete: false };
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

  begin(): number {
    return ++this.#begun;
  }

  leave(begun: number, envid: string, from: string, to: readonly string[]): void {
    this.counts.unfinished++;
    if (this.#arrivals === undefined) return;
    const named = readEnvid(envid, this.#marks);
    if (named) this.#arrivals.add(this.#marks, UNFINISHED, begun);
    this.#log?.record(monotonicMicros(), UNFINISHED, begun, named ? this.#marks : undefined, 0, from, to);
  }

  keep(content: Buffer, from: string, to: readonly string[], kind: ArrivalKind, begun: number): void {
    const counts = this.counts;
    counts.messages++;
    counts.recipients += to.length;
    counts.bytes += content.length;
    if (kind === DEFERRED) counts.deferred++;
    else if (kind === REJECTED) counts.rejected++;
    else if (kind === CUT) counts.cut++;
    const isKept = kind === TAKEN || kind === CUT;
    if (this.#arrivals !== undefined || (this.#tally !== undefined && isKept)) {
      this.#record(content, from, to, kind, begun);
    }
    if (!isKept) return;
    this.#maildir?.keep(content);
    this.#inbox?.add(content, from, to);
  }

  #record(
    content: Buffer, from: string, to: readonly string[], kind: ArrivalKind, begun: number,
  ): void {
    const marked = readMarks(content, this.#marks);
    if (marked) {
      this.#arrivals?.add(this.#marks, kind, begun);
      if (kind === TAKEN || kind === CUT) this.#tally?.add(this.#marks);
    } else if (from === '' && kind === TAKEN && findQuotedMarks(content, this.#marks)) {
      this.counts.reports++;
      this.#arrivals?.add(this.#marks, REPORTED, begun);
    } else {
      this.counts.unmarked++;
    }
    const marks = marked ? this.#marks : undefined;
    this.#log?.record(monotonicMicros(), kind, begun, marks, content.length, from, to);
  }

  // Sockets.

  #onConnection(socket: Socket): void {
    this.counts.connections++;
    this.counts.connectionsOpen++;
    this.#sockets.add(socket);
    socket.on('close', () => {
      this.counts.connectionsOpen--;
      this.#sockets.delete(socket);
    });
    this.#serve(socket, new Dialog(this));
  }

  #serve(socket: Socket, dialog: Dialog): void {
    if (dialog.replies !== '') write(socket, dialog);
    socket.setTimeout(SILENCE_MS, () => socket.destroy());
    socket.on('data', (chunk: Buffer) => this.#go(socket, dialog, dialog.push(chunk)));
    // A reset is the client's business: 'close' follows.
    socket.on('error', () => undefined);
    socket.on('close', () => dialog.close());
  }

  /** The clear socket goes on below TLS; with one of them the other ends. */
  #secure(socket: Socket): void {
    if (this.#secureContext === undefined) return;
    socket.removeAllListeners('data');
    socket.setTimeout(0);
    const secured = new TLSSocket(socket, { isServer: true, secureContext: this.#secureContext });
    secured.on('close', () => socket.destroy());
    socket.on('close', () => secured.destroy());
    this.#serve(secured, new Dialog(this, true));
  }

  #go(socket: Socket, dialog: Dialog, next: Next): void {
    if (next === CUT_OFF) {
      socket.resetAndDestroy();
      return;
    }
    if (dialog.replies !== '') write(socket, dialog);
    if (next === END) socket.end();
    else if (next === SECURE) this.#secure(socket);
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

  /** GET /inbox/N */
  #contentAsked(url: string): Buffer | undefined {
    const [, n] = /^\/inbox\/(\d{1,15})$/.exec(url) ?? [];
    return n === undefined ? undefined : this.#inbox?.content(Number(n));
  }

  /**
   * GET /counts, /healthz, /tally, /inbox?after=N&limit=M, /report; POST /report with a send log as the body
   * judges by that log. ?displacement=N is how many messages one may overtake.
   */
  async #answer(request: IncomingMessage): Promise<{ status: number; body: unknown }> {
    const url = new URL(request.url ?? '/', 'http://sink');
    if (url.pathname === '/healthz' || url.pathname === '/readyz') return { status: 200, body: { ok: true } };
    if (url.pathname === '/counts') return { status: 200, body: this.counts };
    if (url.pathname === '/tally' && this.#tally !== undefined) {
      return { status: 200, body: this.#tally.answer(this.counts.unmarked) };
    }
    if (url.pathname === '/inbox' && this.#inbox !== undefined) {
      const [after, limit] = ['after', 'limit'].map((name) => Number(url.searchParams.get(name) ?? ''));
      return { status: 200, body: this.#inbox.list(after ?? 0, limit ?? 0) };
    }
    if (url.pathname !== '/report') {
      return { status: 404, body: { error: 'no such page: /report, /counts, /inbox, /tally, /healthz' } };
    }
    this.#log?.flush();
    try {
      const displacement = url.searchParams.get('displacement');
      const bound = displacement === null ? undefined : Number(displacement);
      if (request.method !== 'POST') {
        const body = bound === undefined ? await this.report() : this.#judge(undefined, bound);
        return { status: 200, body };
      }
      return { status: 200, body: this.#judge(parseSendLog(await bodyOf(request)), bound) };
    } catch (error) {
      return { status: 500, body: { error: String(error) } };
    }
  }
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > REPORT_BYTES_MAX) {
      throw new Error(
        `sink: a send log of more than ${REPORT_BYTES_MAX} bytes; give it as a file at the start`,
      );
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('latin1');
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
