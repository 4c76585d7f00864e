/**
 * One connection of a gateway at a store: bytes in, requests applied, answers out. The owner calls onData for
 * each chunk and endTurn once after all that one turn of its loop has read: one cumulative ACK, one write for
 * all of it. After ANSWER_BYTES of bodies they go out at once.
 *
 *   AWAIT_HELLO ─HELLO / CHALLENGE─► AWAIT_PROOF ─PROOF / WELCOME─┐
 *         ┌───────────────────────────────────────────────────────┘
 *         ├─ asks to be active, highest generation ─► ACTIVE ─ a higher one came ─► STANDBY
 *         └─ else ─► STANDBY
 *   any ─ broken rule, fenced, timeout, stop / CLOSE ─► CLOSED      any ─ CLOSE, socket gone / - ─► CLOSED
 *
 *   AWAIT_…   only the handshake; HANDSHAKE_MS from the first byte
 *   STANDBY   HEARTBEAT only; any other request is answered by CLOSE (STANDBY)
 *   ACTIVE    all requests (requests.ts)
 *
 * Slow readers: with more than BUFFER_HIGH_BYTES unsent the socket is read no more until it has drained, so
 * what waits here is at most that plus the answers to one read. docs/PROTOCOL.md "Messages", "Handshake".
 */

import { invariant } from '../../base/invariant.js';
import type { Clock, Crc32, EventLog, Packer, Secrets } from '../../platform/ports.js';
import type { Connection, ConnectionHandlers } from '../../platform/transport.js';
import type { FrameRoom, FrameSink } from '../../protocol/frame-reader.js';
import { HANDSHAKE_FRAME_BYTES_MAX } from '../../protocol/frame.js';
import { FrameReader, RULE_NO_ROOM } from '../../protocol/frame-reader.js';
import { InvalidMessage } from '../../protocol/invalid.js';
import {
  BEAT, CHALLENGE, CHANGES, CLOSE, HEARTBEAT, HELLO, PROOF, WELCOME, messageTypeName,
} from '../../protocol/message-types.js';
import { encodeBeat } from '../../protocol/messages/beat.js';
import type { Close } from '../../protocol/messages/close.js';
import { decodeClose, encodeClose } from '../../protocol/messages/close.js';
import { decodeHeartbeat } from '../../protocol/messages/heartbeat.js';
import { HELLO_ACTIVE } from '../../protocol/messages/hello.js';
import { encodeWelcome } from '../../protocol/messages/welcome.js';
import {
  CLOSE_DENIED, CLOSE_FENCED, CLOSE_LIMIT, CLOSE_MALFORMED, CLOSE_SEQUENCE, CLOSE_STANDBY, CLOSE_STOPPING,
  CLOSE_TIMEOUT, STOPPING_GOES_ON, closeReasonName,
} from '../../protocol/reasons.js';
import type { AccountConnection, GatewayAccount } from './accounts.js';
import type { StoreCounters } from './counters.js';
import { HandshakeMachine } from './handshake-machine.js';
import { ConnectionWriter } from './connection-writer.js';
import { Requests } from './requests.js';
import type { Store } from './store.js';

export const ConnectionState = {
  /** Nothing heard yet. */
  AWAIT_HELLO: 1,
  /** CHALLENGE sent. */
  AWAIT_PROOF: 2,
  /** Proved; takes heartbeats. */
  STANDBY: 3,
  /** Proved; takes requests. */
  ACTIVE: 4,
  /** Over; nothing is taken or sent. */
  CLOSED: 5,
} as const;
export type ConnectionState = (typeof ConnectionState)[keyof typeof ConnectionState];
const { AWAIT_HELLO, AWAIT_PROOF, STANDBY, ACTIVE, CLOSED } = ConnectionState;

const TRANSITIONS: Readonly<Record<ConnectionState, readonly ConnectionState[]>> = {
  [AWAIT_HELLO]: [AWAIT_PROOF, CLOSED],
  [AWAIT_PROOF]: [STANDBY, ACTIVE, CLOSED],
  [STANDBY]: [CLOSED],
  [ACTIVE]: [STANDBY, CLOSED],
  [CLOSED]: [],
};

export function isValidTransition(from: ConnectionState, to: ConnectionState): boolean {
  return TRANSITIONS[from].includes(to);
}

/** A peer that connects and says nothing useful is closed after this. */
const HANDSHAKE_MS = 5_000;
/** Connections of one gateway; two paths and what a reset has not yet cleaned up. */
const CONNECTIONS_MAX = 16;
/** Unsent bytes at which reading stops. A block fits, two do not need to. */
const BUFFER_HIGH_BYTES = 4 * 1024 * 1024;

/**
 * Bodies after which an answer does not wait for the end of the turn: else gateway and store work in turns,
 * each idle while the other takes all that is in flight.
 */
const ANSWER_BYTES = 16 * 1024;

export interface StoreConnectionOptions {
  readonly bootId: Uint8Array;
  readonly frameBytesMax: number;
  readonly windowBytes: number;
  /** Silence after which a connection that proved itself is closed; far above any failover. */
  readonly silenceMs: number;
}

export interface StoreConnectionPorts {
  readonly connection: Connection;
  readonly packer: Packer;
  readonly crc32: Crc32;
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly log: EventLog;
}

export class StoreConnection implements ConnectionHandlers, FrameSink, FrameRoom, AccountConnection {
  readonly #options: StoreConnectionOptions;
  readonly #ports: StoreConnectionPorts;
  readonly #store: Store;
  readonly #counters: StoreCounters;
  #reader: FrameReader;
  readonly #handshake: HandshakeMachine;
  readonly #outbox: ConnectionWriter;
  readonly #requests: Requests;
  #state: ConnectionState = AWAIT_HELLO;
  #account: GatewayAccount | undefined;
  #sequence = 0;
  #heardMs: number;
  readonly #openedMs: number;
  /** One tick has found it silent; the next decides, so that bytes waiting in the kernel are read before. */
  #suspect = false;
  #paused = false;
  /** Bytes of bodies taken since the last answer. */
  #unanswered = 0;
  /** Of the last HEARTBEAT; -1 before. */
  #heartbeatToken = -1;
  /** What the reader holds, and the buffers for blocks, as counted in the store's memory. */
  #heldBytes = 0;
  #lentBytes = 0;

  constructor(
    options: StoreConnectionOptions, ports: StoreConnectionPorts, store: Store, counters: StoreCounters,
  ) {
    this.#options = options;
    this.#ports = ports;
    this.#store = store;
    this.#counters = counters;
    this.#openedMs = ports.clock.nowMs();
    this.#heardMs = this.#openedMs;
    this.#reader = new FrameReader({ frameBytesMax: HANDSHAKE_FRAME_BYTES_MAX }, { crc32: ports.crc32 });
    this.#outbox = new ConnectionWriter({ crc32: ports.crc32 });
    this.#handshake = new HandshakeMachine(
      { storeId: store.storeId, bootId: options.bootId },
      {
        packer: ports.packer, secrets: ports.secrets,
        secretOf: (id) => store.secretOf(id), accountOf: (id) => store.accountOf(id),
      },
    );
    this.#requests = new Requests(
      { bufferHighBytes: BUFFER_HIGH_BYTES },
      {
        packer: ports.packer, clock: ports.clock, log: ports.log,
        outbox: this.#outbox, connection: ports.connection,
        close: (reason, text) => { this.close(reason, text); },
      },
      store, counters,
    );
  }

  get state(): ConnectionState {
    return this.#state;
  }

  get incarnation(): number { return this.#handshake.hello?.incarnation ?? 0; }

  get gatewayId(): string { return this.#account?.id ?? ''; }

  get path(): string { return this.#handshake.hello?.path ?? ''; }

  onOpen(): void {
    this.#counters.connections += 1;
  }

  onData(bytes: Uint8Array): void {
    if (this.#state === CLOSED) return;
    this.#heardMs = this.#ports.clock.nowMs();
    this.#suspect = false;
    this.#counters.bytesIn += bytes.length;
    const reader = this.#reader;
    reader.push(bytes, this);
    this.#countFrameBytes();
    // WELCOME brought a new reader: a request that was begun before it is lost with the old one.
    const isEarly = reader !== this.#reader && reader.bufferedBytes > 0;
    if (isEarly) this.close(CLOSE_MALFORMED, 'a request before WELCOME');
  }

  onDrain(): void {
    if (this.state === CLOSED) return;
    this.#requests.serve();
    this.endTurn();
    if (this.#paused && this.#ports.connection.bufferedBytes < BUFFER_HIGH_BYTES) {
      this.#paused = false;
      this.#ports.connection.resume();
    }
  }

  onClose(_reason: string): void {
    if (this.#state !== CLOSED) this.#transition(CLOSED);
    this.#leave();
  }

  onFrame(type: number, sequence: number, control: Uint8Array, bodies: Uint8Array, bodyBytes: number): void {
    if (this.#state === CLOSED) return;
    this.#counters.framesIn += 1;
    if (type === CLOSE) {
      if (this.#state === AWAIT_PROOF) this.#noteStranger(saidBy(decodeClose(this.#ports.packer, control)));
      this.#end();
      return;
    }
    if (sequence !== this.#sequence + 1) {
      this.close(CLOSE_SEQUENCE, `expected request ${String(this.#sequence + 1)}, got ${String(sequence)}`);
      return;
    }
    this.#sequence = sequence;
    if (bodyBytes > 0 && (type === HEARTBEAT || this.#account === undefined)) {
      this.close(CLOSE_MALFORMED, `${messageTypeName(type)}: bodies where none belong`);
    } else if (this.#state === ACTIVE && type !== HEARTBEAT) {
      this.#requests.take(type, sequence, control, bodies, bodyBytes, this.#reader.bodySum);
      this.#unanswered += bodies.length;
      if (this.#unanswered >= ANSWER_BYTES) this.endTurn();
    }
    else if (this.#state === ACTIVE || this.#state === STANDBY) this.#onStandbyFrame(type, sequence, control);
    else this.#onHandshakeFrame(type, sequence, control);
  }

  onInvalid(rule: string): void {
    this.close(rule === RULE_NO_ROOM ? CLOSE_LIMIT : CLOSE_MALFORMED, rule);
  }

  mayHold(bytes: number, bodyBytes: number): boolean {
    const account = this.#account;
    if (account !== undefined && bytes > HANDSHAKE_FRAME_BYTES_MAX) {
      const heldBytes = account.heldBytes - this.#heldBytes + countedOf(bytes);
      if (!this.#store.admission.mayHold(account, heldBytes, bodyBytes)) return false;
    }
    this.#hold(bytes);
    return true;
  }

  mayKeep(): boolean {
    const mayKeep = this.#store.admission.mayRetain();
    if (!mayKeep) this.#hold(0);
    return mayKeep;
  }

  fence(text: string): void {
    this.close(CLOSE_FENCED, text, this.#account?.incarnation ?? 0);
  }

  demote(): void {
    if (this.#state === ACTIVE) this.#transition(STANDBY);
  }

  /** The process is about to stop, and serves this active connection until then. */
  announceStop(): void {
    invariant(this.#state === ACTIVE, 'only who serves can say that it goes on');
    const close = { reason: CLOSE_STOPPING, text: 'this store is about to stop', detail: STOPPING_GOES_ON };
    this.#outbox.frame(CLOSE, 0, encodeClose(this.#ports.packer, close));
    this.#outbox.flush(this.#ports.connection);
  }

  /** The process stops: what was taken is acknowledged, then CLOSE. */
  stop(): void {
    if (this.#state === CLOSED) return;
    this.endTurn();
    this.close(CLOSE_STOPPING, 'this store stops');
  }

  tick(nowMs: number): void {
    if (this.#state === CLOSED) return;
    const isProved = this.#account !== undefined;
    const isLate = isProved
      ? nowMs - this.#heardMs > this.#options.silenceMs
      : nowMs - this.#openedMs > HANDSHAKE_MS;
    if (!isLate) return;
    if (this.#suspect) this.close(CLOSE_TIMEOUT, isProved ? 'nothing heard for too long' : 'no handshake');
    this.#suspect = true;
  }

  /** Says why, sends what is pending, ends the connection. */
  close(reason: number, text: string, detail = 0): void {
    if (this.#state === CLOSED) return;
    this.#counters.closed(reason);
    this.#tellClosed(reason, text);
    this.#outbox.frame(CLOSE, 0, encodeClose(this.#ports.packer, { reason, text, detail }));
    this.#outbox.flush(this.#ports.connection);
    this.#end();
  }

  #tellClosed(reason: number, text: string): void {
    const isStranger = this.#account === undefined;
    const untold = isStranger ? this.#store.strangers.untoldCloses(this.#ports.clock.nowMs()) : 0;
    if (untold === undefined) return;
    this.#ports.log.warn('link', 'connection closed', {
      reason: closeReasonName(reason), text,
      gateway: this.gatewayId, path: this.path, remote: this.#ports.connection.remote,
      ...(untold > 0 ? { untold } : {}),
    });
  }

  #end(): void {
    this.#transition(CLOSED);
    this.#reader.stop();
    this.#leave();
    this.#ports.connection.end();
  }

  /** A frame that has come in part, and buffers for blocks, stand in memory like what is stored. */
  #countFrameBytes(): void {
    const isOver = this.#state === CLOSED;
    this.#hold(isOver ? 0 : this.#reader.heldBytes);
    const lent = isOver || this.#account === undefined ? 0 : this.#requests.heldBytes;
    this.#store.admission.frameBytes += lent - this.#lentBytes;
    this.#lentBytes = lent;
  }

  #hold(bytes: number): void {
    const account = this.#account;
    if (account === undefined) return;
    const change = countedOf(bytes) - this.#heldBytes;
    account.heldBytes += change;
    this.#store.admission.frameBytes += change;
    this.#heldBytes += change;
  }

  #leave(): void {
    this.#countFrameBytes();
    this.#account?.forgetConnection(this);
    this.#requests.detachAll();
  }

  #onHandshakeFrame(type: number, sequence: number, control: Uint8Array): void {
    if (this.#state === AWAIT_HELLO && type === HELLO) {
      const answer = this.#handshake.onHello(control);
      if (!(answer instanceof Uint8Array)) {
        this.close(answer.reason, answer.text);
        return;
      }
      this.#outbox.frame(CHALLENGE, sequence, answer);
      this.#transition(AWAIT_PROOF);
    } else if (this.#state === AWAIT_PROOF && type === PROOF) {
      const account = this.#handshake.onProof(control);
      if ('reason' in account) {
        this.#noteStranger(account.text);
        this.close(account.reason, account.text);
      }
      else this.#welcome(account, sequence);
    } else {
      this.close(CLOSE_MALFORMED, `${messageTypeName(type)} before the handshake was over`);
    }
  }

  /** The log of the store says what an asker is not told: whether the name is one that it knows. */
  #noteStranger(said: string): void {
    const gateway = this.#handshake.hello?.gatewayId ?? '';
    if (said === '' || !this.#store.strangers.isNews(gateway, this.#ports.clock.nowMs())) return;
    const why = this.#handshake.isKnown ? said : 'store.gateways does not name it';
    const { remote } = this.#ports.connection;
    this.#ports.log.warn('link', 'a gateway is not let in', { gateway, why, remote });
  }

  #welcome(account: GatewayAccount, sequence: number): void {
    const hello = this.#handshake.hello;
    invariant(hello !== undefined, 'PROOF follows HELLO');
    const { peerNames } = this.#ports.connection;
    // Before it is admitted: a gateway with another's certificate must not fence the one whose id it says.
    if (peerNames !== undefined && !peerNames.includes(account.id)) {
      const text = `the certificate is for ${shown(peerNames)}, not for gateway ${account.id}`;
      this.close(CLOSE_DENIED, `${text}: check which files it was given`);
      return;
    }
    if (!account.admit(hello.incarnation, hello.incarnationNonce, this.#store.admission)) {
      this.close(CLOSE_FENCED, 'a newer incarnation of this gateway is known', account.incarnation);
      return;
    }
    if (account.connections.size >= CONNECTIONS_MAX) {
      this.close(CLOSE_LIMIT, 'too many connections of this gateway');
      return;
    }
    this.#account = account;
    this.#store.strangers.forget(account.id);
    account.connections.add(this);
    const active = (hello.flags & HELLO_ACTIVE) !== 0 && account.activate(this, hello.generation);
    // Who stands by for good says HEARTBEAT only: no memory for more.
    const { frameBytesMax, windowBytes } = this.#options;
    this.#reader = new FrameReader(
      { frameBytesMax: active ? frameBytesMax : HANDSHAKE_FRAME_BYTES_MAX, summedType: CHANGES },
      { crc32: this.#ports.crc32, room: this },
    );
    this.#transition(active ? ACTIVE : STANDBY);
    if (active) this.#requests.begin(account);
    this.#outbox.frame(WELCOME, sequence, encodeWelcome(this.#ports.packer, {
      credit: this.#store.admission.grant(account), highestIncarnation: account.incarnation,
      leaseMs: this.#store.leaseMs, frameBytesMax, windowBytes, active,
    }));
    this.#ports.log.info('link', 'gateway connected', {
      gateway: account.id, incarnation: hello.incarnation, generation: hello.generation,
      protocol: this.#handshake.version, path: hello.path, active, remote: this.#ports.connection.remote,
    });
  }

  #onStandbyFrame(type: number, sequence: number, control: Uint8Array): void {
    const account = this.#account;
    invariant(account !== undefined, 'a connection past the handshake has an account');
    if (type !== HEARTBEAT) {
      this.close(CLOSE_STANDBY, `${messageTypeName(type)} on a connection that stands by`);
      return;
    }
    const message = decodeHeartbeat(this.#ports.packer, control);
    if (message instanceof InvalidMessage) {
      this.close(CLOSE_MALFORMED, `HEARTBEAT: ${message.rule}`);
      return;
    }
    const nowMs = this.#ports.clock.nowMs();
    const { leaseMs, fenceCount, fences } = this.#store.heartbeat(account, message.fencesProcessed, nowMs);
    account.clock.note(message.wallMs, nowMs);
    this.#requests.passed(sequence);
    const asksCredit = this.#state === ACTIVE && message.token === this.#heartbeatToken;
    this.#heartbeatToken = message.token;
    const credit = this.#store.admission.grant(account, asksCredit);
    this.#outbox.frame(BEAT, sequence, encodeBeat(this.#ports.packer, {
      token: message.token, credit, leaseMs, fenceCount, fences,
    }));
  }

  /** Acknowledges what was applied, and writes all that is to be said: when the turn ends, or after much. */
  endTurn(): void {
    this.#unanswered = 0;
    if (this.#state === CLOSED) return;
    if (this.#state === ACTIVE) this.#requests.acknowledge();
    const { connection } = this.#ports;
    this.#outbox.flush(connection);
    if (!this.#paused && connection.bufferedBytes >= BUFFER_HIGH_BYTES) {
      this.#paused = true;
      connection.pause();
    }
  }

  #transition(to: ConnectionState): void {
    invariant(isValidTransition(this.#state, to), 'a store connection moves along its diagram');
    this.#state = to;
  }
}

/** Why a gateway would not prove itself; '' when that is no trouble of names and secrets. */
function saidBy(close: Close | InvalidMessage): string {
  if (close instanceof InvalidMessage || close.reason !== CLOSE_DENIED) return '';
  return `the gateway says: ${close.text.slice(0, 256)}`;
}

/** What any stranger may have is not counted: so a full store still reads what is short. */
function countedOf(bytes: number): number {
  return Math.max(0, bytes - HANDSHAKE_FRAME_BYTES_MAX);
}

/** For a text of CLOSE: visible ASCII, of bounded length, whatever a certificate says. */
function shown(names: readonly string[]): string {
  return names.length === 0 ? 'nobody' : names.join(', ').slice(0, 256).replace(/[^ -~]/g, '?');
}
