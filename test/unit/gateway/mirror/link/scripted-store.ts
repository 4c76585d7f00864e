/**
 * For tests of the link: a network in memory and a store that says what a test tells it to, built from the
 * codecs of the protocol. Nothing of the link itself is replaced.
 */
import assert from 'node:assert/strict';
import { crc32 } from '../../../../../src/platform/node/checksum.js';
import { MessagePacker } from '../../../../../src/platform/node/packer.js';
import { SystemSecrets } from '../../../../../src/platform/node/secrets.js';
import type { EventLog, LogFields } from '../../../../../src/platform/ports.js';
import type { Connection, ConnectionHandlers, Transport } from '../../../../../src/platform/transport.js';
import { encodeFrame } from '../../../../../src/protocol/frame.js';
import type { FrameSink } from '../../../../../src/protocol/frame-reader.js';
import { FrameReader } from '../../../../../src/protocol/frame-reader.js';
import { isGatewayProof, storeProof, transcript } from '../../../../../src/protocol/handshake.js';
import { isInvalid } from '../../../../../src/protocol/invalid.js';
import * as types from '../../../../../src/protocol/message-types.js';
import { encodeAck } from '../../../../../src/protocol/messages/ack.js';
import type { FenceNotice } from '../../../../../src/protocol/messages/beat.js';
import { encodeBeat } from '../../../../../src/protocol/messages/beat.js';
import { encodeChallenge } from '../../../../../src/protocol/messages/challenge.js';
import type { Close } from '../../../../../src/protocol/messages/close.js';
import { decodeClose, encodeClose } from '../../../../../src/protocol/messages/close.js';
import { decodeHeartbeat } from '../../../../../src/protocol/messages/heartbeat.js';
import type { Hello } from '../../../../../src/protocol/messages/hello.js';
import { HELLO_ACTIVE, decodeHello } from '../../../../../src/protocol/messages/hello.js';
import { decodeProof } from '../../../../../src/protocol/messages/proof.js';
import { encodeWelcome } from '../../../../../src/protocol/messages/welcome.js';
import type { LinkOptions } from '../../../../../src/gateway/mirror/link/link-options.js';
import { LINK_DEFAULTS } from '../../../../default-options.js';
import type { StoreLinkEvents } from '../../../../../src/gateway/mirror/link/store-link.js';
import { StoreLink } from '../../../../../src/gateway/mirror/link/store-link.js';

export const packer = new MessagePacker();
export const secrets = new SystemSecrets();
export const SECRET = Uint8Array.from('a secret of 32 bytes for testing', (c) => c.charCodeAt(0));

export interface Received {
  readonly type: number;
  readonly sequence: number;
  readonly control: Uint8Array;
  readonly bodies: Uint8Array;
}

/** One attempt of the gateway, seen from the store's end. */
export class ScriptedConnection implements Connection, FrameSink {
  readonly remote: string;
  readonly port: number;
  readonly handlers: ConnectionHandlers;
  /** Each element is one write() call: its chunks as given. */
  readonly writes: Uint8Array[][] = [];
  readonly frames: Received[] = [];
  private heardCount = 0;
  /** The heartbeat answered last. */
  beaten: Received | undefined;
  isEnded = false;
  isDestroyed = false;
  readonly #reader = new FrameReader({ frameBytesMax: 64 * 1024 * 1024 }, { crc32 });

  constructor(host: string, port: number, handlers: ConnectionHandlers) {
    this.remote = `${host}:${String(port)}`;
    this.port = port;
    this.handlers = handlers;
  }

  get bufferedBytes(): number {
    return 0;
  }

  write(chunks: readonly Uint8Array[]): void {
    this.writes.push([...chunks]);
    for (const chunk of chunks) this.#reader.push(chunk, this);
  }

  pause(): void {}
  resume(): void {}

  end(): void {
    this.isEnded = true;
  }

  destroy(): void {
    this.isDestroyed = true;
  }

  onFrame(type: number, sequence: number, control: Uint8Array, bodies: Uint8Array): void {
    this.heardCount += 1;
    assert.equal(sequence, this.heardCount, 'the gateway counts its frames 1, 2, 3 …');
    this.frames.push({ type, sequence, control: control.slice(), bodies: bodies.slice() });
  }

  onInvalid(rule: string): void {
    assert.fail(`the gateway sent a malformed frame: ${rule}`);
  }

  get isOver(): boolean {
    return this.isEnded || this.isDestroyed;
  }

  last(): Received {
    const frame = this.frames.at(-1);
    assert.ok(frame !== undefined, 'a frame was sent');
    return frame;
  }

  names(): string[] {
    return this.frames.map((frame) => types.messageTypeName(frame.type));
  }

  closeSent(): Close {
    const frame = this.last();
    assert.equal(frame.type, types.CLOSE);
    const close = decodeClose(packer, frame.control);
    assert.ok(!isInvalid(close));
    return close;
  }

  hello(): Hello {
    const hello = decodeHello(packer, this.frames[0]?.control ?? new Uint8Array(0));
    assert.ok(!isInvalid(hello));
    return hello;
  }

  send(type: number, sequence: number, control: Uint8Array, body: Uint8Array = new Uint8Array(0)): void {
    const head = encodeFrame(type, sequence, control, crc32, body.length);
    const bytes = new Uint8Array(head.length + body.length);
    bytes.set(head);
    bytes.set(body, head.length);
    this.handlers.onData(bytes);
  }

  challenge(how: { storeId?: string; secret?: Uint8Array; version?: number; boot?: number } = {}): Uint8Array {
    const greeting = {
      version: how.version ?? 3,
      storeId: how.storeId ?? 'store-a',
      bootId: new Uint8Array(16).fill(how.boot ?? 1),
      nonce: secrets.randomBytes(16),
    };
    const signed = transcript(packer, this.frames[0]?.control ?? new Uint8Array(0), greeting);
    const proof = storeProof(secrets, how.secret ?? SECRET, signed);
    this.send(types.CHALLENGE, 1, encodeChallenge(packer, { ...greeting, proof }));
    return signed;
  }

  welcome(how: { credit?: number; windowBytes?: number; active?: boolean } = {}): void {
    this.send(
      types.WELCOME,
      2,
      encodeWelcome(packer, {
        credit: how.credit ?? 1_000_000,
        highestIncarnation: 7,
        leaseMs: 10_000,
        frameBytesMax: 64 * 1024 * 1024,
        windowBytes: how.windowBytes ?? 8 * 1024 * 1024,
        active: how.active ?? (this.hello().flags & HELLO_ACTIVE) !== 0,
      }),
    );
  }

  /** The whole handshake, the gateway's proof checked. */
  accept(how: { credit?: number; windowBytes?: number; boot?: number } = {}): void {
    this.handlers.onOpen();
    const signed = this.challenge(how.boot === undefined ? {} : { boot: how.boot });
    const proof = decodeProof(packer, this.last().control);
    assert.ok(!isInvalid(proof));
    assert.ok(isGatewayProof(secrets, SECRET, signed, proof.proof), 'the gateway knows the secret');
    this.welcome(how);
    // The lease begins with a heartbeat that goes out at once: tests begin behind it.
    if (this.frames[2]?.type === types.HEARTBEAT) this.frames.splice(2, 1);
  }

  ack(sequence: number, credit: number, ...queues: number[]): void {
    this.send(types.ACK, sequence, encodeAck(packer, [sequence, credit, ...queues]));
  }

  /** Answers the last frame or the one given, a heartbeat. */
  beat(credit: number, to?: Received, fences: readonly FenceNotice[] = []): void {
    const frame = to ?? this.last();
    assert.equal(frame.type, types.HEARTBEAT);
    this.beaten = frame;
    const heartbeat = decodeHeartbeat(packer, frame.control);
    assert.ok(!isInvalid(heartbeat));
    this.send(types.BEAT, frame.sequence, encodeBeat(packer, { token: heartbeat.token, credit, leaseMs: 10_000, fenceCount: fences.at(-1)?.count ?? 0, fences }));
  }

  /** Answers the last frame with a token of the test's choice. */
  beatWith(token: number): void {
    this.send(types.BEAT, this.last().sequence, encodeBeat(packer, { token, credit: 1, leaseMs: 10_000, fenceCount: 0, fences: [] }));
  }

  close(reason: number, text: string, detail = 0): void {
    this.send(types.CLOSE, 0, encodeClose(packer, { reason, text, detail }));
  }
}

export const PORT_A = 7401;
export const PORT_B = 7411;

export class ScriptedNetwork implements Transport {
  readonly attempts: ScriptedConnection[] = [];

  connect(host: string, port: number, handlers: ConnectionHandlers): Connection {
    const connection = new ScriptedConnection(host, port, handlers);
    this.attempts.push(connection);
    return connection;
  }

  /** The newest attempt on a path. */
  at(port: number): ScriptedConnection {
    const connection = this.attempts.findLast((attempt) => attempt.port === port);
    assert.ok(connection !== undefined, `an attempt on port ${String(port)}`);
    return connection;
  }

  count(port: number): number {
    return this.attempts.filter((attempt) => attempt.port === port).length;
  }
}

export class RecordingLog implements EventLog {
  readonly lines: string[] = [];

  debug(): void {}

  info(event: string, text: string, fields?: LogFields): void {
    this.lines.push(`info ${event} ${text} ${JSON.stringify(fields)}`);
  }

  warn(event: string, text: string, fields?: LogFields): void {
    this.lines.push(`warn ${event} ${text} ${JSON.stringify(fields)}`);
  }

  error(event: string, text: string, fields?: LogFields): void {
    this.lines.push(`error ${event} ${text} ${JSON.stringify(fields)}`);
  }

  count(part: string): number {
    return this.lines.filter((line) => line.includes(part)).length;
  }
}

/** A link under test with its network, its clock and what it told. */
export class LinkBench {
  readonly network = new ScriptedNetwork();
  readonly log = new RecordingLog();
  readonly told: string[] = [];
  readonly link: StoreLink;
  nowMs = 1_000;
  chance = 0;
  sharedSecrets: readonly Uint8Array[] = [SECRET];
  /** Called at each event: to act from inside one. */
  onEvent: (event: string) => void = () => undefined;

  constructor(options: Partial<LinkOptions> = {}, hasStandby = true) {
    const tell = (event: string): void => {
      this.told.push(event);
      this.onEvent(event);
    };
    const events: StoreLinkEvents = {
      onUp: () => { tell('up'); },
      onSwitched: () => { tell('switched'); },
      onStopping: () => { tell('stopping'); },
      onDown: (_link, reason) => { tell(`down: ${reason}`); },
      onFenceNotices: (_link, _bootId, notices) => { tell(`fenced in ${notices.map(({ partition }) => partition).join()}`); },
      onAcknowledged: (_link, handle, number) => { tell(`queue ${String(handle)} at ${String(number)}`); },
      onAckedThrough: (_link, sequence) => { tell(`through ${String(sequence)}`); },
      onRefusal: (_link, refusal) => { tell(`refusal ${String(refusal.reason)} of ${String(refusal.sequence)}`); },
      onReply: (_link, reply) => {
        const bodies = 'bodies' in reply ? reply.bodies.length : 0;
        tell(`${types.messageTypeName(reply.type)} to ${String(reply.sequence)}, ${String(bodies)} bytes`);
      },
      onWritable: () => { tell('writable'); },
      onFenced: (_link, text) => { tell(`fenced: ${text}`); },
    };
    this.link = new StoreLink(
      {
        storeId: 'store-a',
        gatewayId: 'gateway-1',
        incarnation: 7,
        incarnationNonce: new Uint8Array(8).fill(3),
        pathA: { host: '127.0.0.1', port: PORT_A },
        ...(hasStandby ? { pathB: { host: '127.0.0.1', port: PORT_B } } : {}),
        ...LINK_DEFAULTS,
        ...options,
      },
      // 0 takes nothing off a pause.
      { clock: { nowMs: () => this.nowMs, wallMs: () => this.nowMs }, frameWallMs: () => Math.floor(this.nowMs), transport: this.network, sharedSecrets: () => this.sharedSecrets, crc32, packer, secrets, random: () => this.chance, log: this.log },
      events,
    );
  }

  get a(): ScriptedConnection {
    return this.network.at(PORT_A);
  }

  get b(): ScriptedConnection {
    return this.network.at(PORT_B);
  }

  start(): void {
    this.link.start();
    this.link.tick(this.nowMs);
  }

  /** All paths welcomed, nothing told yet. */
  up(how: { credit?: number; windowBytes?: number; boot?: number } = {}): void {
    this.start();
    for (const path of [...this.network.attempts]) path.accept(how);
    this.told.length = 0;
  }

  /** Time passes in ticks of 50 ms, as a shell makes them. */
  pass(ms: number): void {
    for (const end = this.nowMs + ms; this.nowMs < end;) {
      this.nowMs += 50;
      this.link.tick(this.nowMs);
    }
  }

  /** As pass(), while the named paths answer their heartbeats. */
  passBeating(ms: number, ...ports: readonly number[]): void {
    for (const end = this.nowMs + ms; this.nowMs < end;) {
      this.pass(50);
      for (const port of ports) {
        const connection = this.network.at(port);
        const last = connection.frames.at(-1);
        if (!connection.isOver && last?.type === types.HEARTBEAT && last !== connection.beaten) connection.beat(1_000_000);
      }
    }
  }

  states(): string {
    return this.link.pathStates().map((path) => `${path.path} ${path.state}`).join(', ');
  }
}
