/**
 * What all connections share: options, ports, relay policy, deadlines, counts, and the way to the mail log and
 * the metrics. One object, so that a connection carries one reference.
 *
 * Owns the counts of connections, and the buffer that all of them read into.
 */

import type { Socket } from 'node:net';
import type { SMTPConnectionOptions } from 'smtp-server/lib/smtp-connection.js';
import { readIntoOwnBuffer } from '../../platform/node/own-buffer.js';
import { COMMITTED } from '../queue/types.js';
import type { SubmissionOutcome } from '../queue/types.js';
import { ClientCounts } from './client-counts.js';
import type { ContentStream } from './content-stream.js';
import { Deadlines } from './deadlines.js';
import { Greeting } from './greeting.js';
import { HelloReplies } from './hello-replies.js';
import { Intake } from './intake.js';
import type { InboundOptions, InboundPorts, RejectStage } from './options.js';
import { RelayPolicy } from './relay-policy.js';
import { TOO_MANY_CONNECTIONS, TOO_MANY_FROM_CLIENT } from './reply-codes.js';
import type { Refusal } from './reply-codes.js';
import { TraceDate } from './trace-header.js';
import type { MailTransaction } from './transaction.js';

/** Nobody keeps what was read longer than the call (content-stream.ts), so one serves all. */
const READ_BUFFER_BYTES = 64 * 1024;

/** A connection as the hub sees it when the gateway shuts down. */
export interface LiveConnection {
  /** 421 and close, unless a message is in our hands: then after its answer. */
  shutDown(): void;
  destroy(): void;
}

export class InboundHub {
  readonly options: InboundOptions;
  readonly ports: InboundPorts;
  readonly policy: RelayPolicy;
  readonly deadlines: Deadlines;
  readonly date: TraceDate;
  readonly greeting: Greeting;
  readonly hello: HelloReplies;
  readonly intake: Intake;
  /** Where <postmaster> goes. */
  readonly hostDomain: string;
  readonly live = new Set<LiveConnection>();
  isClosing = false;
  /** Told once when the last connection has gone. */
  onEmpty: (() => void) | undefined;

  readonly #clients = new ClientCounts();
  readonly #readBuffer = Buffer.allocUnsafeSlow(READ_BUFFER_BYTES);
  #sessions = 0;

  constructor(options: InboundOptions, ports: InboundPorts) {
    this.options = options;
    this.ports = ports;
    this.policy = new RelayPolicy({ networks: options.relayNetworks, domains: options.relayDomains });
    this.deadlines = new Deadlines(options.deadlineTickMs, ports.clock);
    this.date = new TraceDate(ports.clock);
    this.greeting = new Greeting(options.greetingDelayMs, () => ports.clock.nowMs());
    this.hello = new HelloReplies(options);
    this.intake = new Intake(options.messagesInHandMax, () => { ports.metrics.connectionWaits(); });
    this.hostDomain = options.hostName.toLowerCase();
  }

  /** What the library would make with a random number and a system call; nobody here asks for it. */
  nextSession(): SMTPConnectionOptions {
    this.#sessions++;
    return { id: String(this.#sessions), localAddress: this.options.host, localPort: this.options.port };
  }

  /** Has what comes on the socket given to the parser; false: this Node can't, it comes by the socket's stream. */
  readInto(parser: ContentStream, socket: Socket): boolean {
    const buffer = this.#readBuffer;
    if (!readIntoOwnBuffer(socket, buffer, (bytes) => { parser.received(buffer.subarray(0, bytes), socket); })) return false;
    socket.on('end', () => { parser.inputOver(); });
    return true;
  }

  /** Counts the connection, also when the answer is a refusal: it lives until its socket is closed. */
  connectionOpened(connection: LiveConnection, clientKey: string): Refusal | undefined {
    this.live.add(connection);
    this.ports.metrics.connectionOpened();
    const ofClient = this.#clients.open(clientKey);
    if (this.live.size > this.options.connectionsMax) return TOO_MANY_CONNECTIONS;
    return ofClient > this.options.connectionsPerClientMax ? TOO_MANY_FROM_CLIENT : undefined;
  }

  connectionClosed(connection: LiveConnection, clientKey: string): void {
    this.live.delete(connection);
    this.#clients.close(clientKey);
    this.ports.metrics.connectionClosed();
    if (this.live.size === 0) this.onEmpty?.();
  }

  submit(message: MailTransaction): void {
    message.intakeLook = this.intake.begin();
    this.ports.reception.submit(message);
  }

  settled(message: MailTransaction, outcome: SubmissionOutcome): void {
    this.intake.end(message.intakeLook);
    message.release();
    if (outcome === COMMITTED) this.#received(message);
  }

  #received(message: MailTransaction): void {
    this.ports.mailLog.received(message);
    this.ports.metrics.received(message.contentBytes, message.recipientCount, this.ports.clock.nowMs() - message.receivedMs);
  }

  rejected(stage: RejectStage, refusal: Refusal, client: string, helo: string, from: string, to: string): void {
    this.ports.metrics.rejected(stage, refusal.reason);
    this.ports.mailLog.rejected(stage, refusal.reason, refusal.reply, client, helo, from, to);
  }
}
