/**
 * One client session of `send` up to the point where mail can be sent, and its end: greeting, EHLO, STARTTLS
 * and AUTH if they were asked for. Then every reply goes to the owner, who writes commands into the buffer
 * that all sessions of a run share: load/client.ts, which measures, or load/spool-client.ts.
 *
 * States and the diagram: session-states.ts.
 *
 * A password goes nowhere in clear: not before TLS stands. What came behind the 220 to STARTTLS in clear ends
 * the session (RFC 3207 4.2, 5).
 */
import { invariant } from '../base/invariant.js';
import { ClientTransport } from '../platform/node/client-transport.js';
import { readPem } from '../platform/node/certificates.js';
import type { Connection, ConnectionHandlers, TlsTerms } from '../platform/transport.js';
import { CAN_AUTH_PLAIN, CAN_STARTTLS, NO_CAPABILITIES, parseCapabilities } from '../smtp/capabilities.js';
import type { Capabilities } from '../smtp/capabilities.js';
import { QUIT, STARTTLS, authPlain, hello } from '../smtp/commands.js';
import { ReplyReader } from '../smtp/reply-reader.js';
import type { ReplySink } from '../smtp/reply-reader.js';
import { WriteBuffer } from '../smtp/write-buffer.js';
import { STATE_NAME, State, isValidTransition } from './session-states.js';

/** Replies are short. */
const READ_BUFFER_BYTES = 4 * 1024;

/** When it begins. */
export type ClientTls = 'none' | 'starttls' | 'implicit';

/** The server that mail is sent to, and how it is spoken to. */
export interface Target {
  readonly host: string;
  readonly port: number;
  /** Default: none. */
  readonly tls?: ClientTls;
  /** PEM file of who signs the server's certificate. Default: whom Node trusts. */
  readonly caFile?: string;
  /** Goes on with the last session in TLS instead of beginning anew. */
  readonly resumesTls?: boolean;
  /** By which the server chooses its certificate, and which that must bear. Default: the host. */
  readonly tlsName?: string;
  /** Goes by AUTH PLAIN; needs TLS. */
  readonly credentials?: { readonly user: string; readonly password: string };
}

/** What all sessions to one target share. */
export class Sessions {
  readonly target: Target;
  readonly heloName: string;
  /** No reply for so long ends a session that waits for one. */
  readonly silenceMs: number;
  readonly buffer = new WriteBuffer();
  readonly transport: ClientTransport;
  readonly tlsTerms: TlsTerms;

  /** Throws an Error when the target can't be used. */
  constructor(target: Target, heloName: string, silenceMs: number) {
    const tls = target.tls ?? 'none';
    if (tls === 'none' && target.credentials !== undefined) throw new Error('send: a password needs TLS');
    this.target = target;
    this.heloName = heloName;
    this.silenceMs = silenceMs;
    this.transport = new ClientTransport({
      readBufferBytes: READ_BUFFER_BYTES, resumes: target.resumesTls ?? false,
    });
    const { caFile } = target;
    if (tls !== 'none' && caFile !== undefined) readPem('ca', caFile);
    this.tlsTerms = { serverName: target.tlsName ?? target.host, mustVerify: true, caFile };
  }
}

/** The owner of a session. */
export interface SessionOwner {
  /** Commands may be sent. Once. */
  onReady(): void;
  /** A reply to a command of the owner; the reader shows it during the call. */
  onReply(code: number): void;
  /** Replies are owed to the owner. */
  readonly isWaiting: boolean;
  /**
   * Once, last. '' when it ended as it should. `isHopeless`: another session would end the same way: the
   * server's certificate or our password is not taken, or what was asked for is not offered.
   */
  onClosed(error: string, isHopeless: boolean): void;
}

export class ClientSession implements ConnectionHandlers, ReplySink {
  readonly reader: ReplyReader = new ReplyReader(this);
  capabilities: Capabilities = NO_CAPABILITIES;
  connection: Connection;
  readonly #sessions: Sessions;
  readonly #owner: SessionOwner;
  #state: State = State.CONNECTING;
  #isSecure = false;
  /** Why it was destroyed here, if it was. */
  #error: string | undefined;
  #isHopeless = false;
  /** Since the last tick: a reply came, or bytes of ours have left. */
  #isAlive = true;
  #bufferedBytes = 0;
  #silentSinceMs = 0;

  constructor(sessions: Sessions, owner: SessionOwner) {
    const { host, port } = sessions.target;
    this.#sessions = sessions;
    this.#owner = owner;
    this.connection = sessions.transport.connect(host, port, this);
  }

  get isReady(): boolean {
    return this.#state === State.READY;
  }

  /** The server has proved itself, and its offers were read within TLS. */
  get isSecure(): boolean {
    return this.#isSecure;
  }

  get isClosed(): boolean {
    return this.#state === State.CLOSED;
  }

  /** Writes one command. */
  send(command: string): void {
    const { buffer } = this.#sessions;
    buffer.start(this.connection);
    buffer.ascii(command);
    buffer.flush();
  }

  /** Ends a session whose replies have all come. */
  quit(): void {
    if (this.#state !== State.READY) return;
    this.#transition(State.QUITTING);
    this.send(QUIT);
  }

  /** Ends the session at once; onClosed follows. */
  destroy(error = ''): void {
    this.#error ??= error;
    this.reader.stop();
    this.connection.destroy();
  }

  /** A few times a second: looks for a server that owes a reply for too long. */
  tick(nowMs: number): void {
    const isOwed = this.#state !== State.READY || this.#owner.isWaiting;
    const { bufferedBytes } = this.connection;
    if (this.#isAlive || !isOwed || bufferedBytes !== this.#bufferedBytes) this.#silentSinceMs = nowMs;
    this.#isAlive = false;
    this.#bufferedBytes = bufferedBytes;
    if (nowMs - this.#silentSinceMs >= this.#sessions.silenceMs) this.destroy('silent');
  }

  // What the connection says.

  onOpen(): void {
    const isImplicit = this.#sessions.target.tls === 'implicit';
    if (this.#state === State.SECURING) this.#isSecure = true;
    if (isImplicit && !this.#isSecure) {
      this.#transition(State.SECURING);
      this.#secure();
    } else if (isImplicit || !this.#isSecure) this.#transition(State.GREETING);
    else this.#hello();
  }

  onData(bytes: Uint8Array): void {
    this.reader.push(bytes);
    // It may have been ended by what stood behind the reply.
    if (this.#state !== State.SECURING || this.#error !== undefined) return;
    if (this.reader.isMidReply) return this.destroy('more than a reply to STARTTLS');
    this.#secure();
  }

  onDrain(): void {
    this.#isAlive = true;
  }

  onClose(reason: string): void {
    if (this.#state === State.CLOSED) return;
    const isPolite = this.#state === State.QUITTING;
    this.#transition(State.CLOSED);
    this.reader.stop();
    const isUntrusted = this.#error === undefined && this.#sessions.transport.isUntrusted(this.connection);
    this.#owner.onClosed(this.#error ?? (isPolite ? '' : reason), this.#isHopeless || isUntrusted);
  }

  // What its reader says.

  onBadReply(why: string): void {
    this.destroy(why);
  }

  onReply(code: number): void {
    this.#isAlive = true;
    switch (this.#state) {
      case State.READY: return this.#owner.onReply(code);
      case State.GREETING: return code === 220 ? this.#hello() : this.#refused('', code);
      case State.HELLO: return code === 250 ? this.#onHello() : this.#refused('EHLO: ', code);
      case State.STARTTLS:
        return code === 220 ? this.#transition(State.SECURING) : this.#refused('STARTTLS: ', code);
      case State.AUTH: return code === 235 ? this.#ready() : this.#refused('AUTH: ', code);
      case State.QUITTING: return this.destroy();
      case State.SECURING: return this.destroy('more than a reply to STARTTLS');
      case State.CONNECTING: case State.CLOSED: return this.destroy('a reply that nobody asked for');
    }
  }

  #secure(): void {
    const { tlsTerms, transport } = this.#sessions;
    this.connection = transport.secure(this.connection, tlsTerms, this);
  }

  #hello(): void {
    this.#transition(State.HELLO);
    this.send(hello('EHLO', this.#sessions.heloName));
  }

  #onHello(): void {
    const { tls, credentials } = this.#sessions.target;
    this.capabilities = parseCapabilities(this.reader.lines());
    const { bits } = this.capabilities;
    if (tls === 'starttls' && !this.#isSecure) {
      if ((bits & CAN_STARTTLS) === 0) return this.#giveUp('no STARTTLS is offered');
      this.#transition(State.STARTTLS);
      return this.send(STARTTLS);
    }
    if (credentials === undefined) return this.#ready();
    if ((bits & CAN_AUTH_PLAIN) === 0) return this.#giveUp('no AUTH PLAIN is offered');
    this.#transition(State.AUTH);
    this.send(authPlain(credentials.user, credentials.password));
  }

  #ready(): void {
    this.#transition(State.READY);
    this.#owner.onReady();
  }

  #refused(stage: string, code: number): void {
    const text = `${stage}${this.reader.text()}`;
    if (code === 421) this.destroy('421');
    else if (this.#state === State.AUTH && code >= 500) this.#giveUp(text);
    else this.destroy(text);
  }

  /** It will be the same the next time. */
  #giveUp(error: string): void {
    this.#isHopeless = true;
    this.destroy(error);
  }

  #transition(to: State): void {
    const from = this.#state;
    const arrow = `${STATE_NAME[from] ?? ''} to ${STATE_NAME[to] ?? ''}`;
    invariant(isValidTransition(from, to), `a session goes from ${arrow}`);
    this.#state = to;
  }
}
