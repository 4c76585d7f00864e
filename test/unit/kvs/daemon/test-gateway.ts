/**
 * A gateway's end of one connection, for tests: speaks the protocol over a real socket, keeps every frame it got.
 * No tests here.
 */

import { startStore } from '../../../../src/kvs/daemon/store-daemon.js';
import type { RunningStore } from '../../../../src/kvs/daemon/running-store.js';
import type { StoreDaemonOptions } from '../../../../src/kvs/daemon/store-daemon.js';
import { SystemClock } from '../../../../src/platform/node/clock.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import { MessagePacker } from '../../../../src/platform/node/packer.js';
import { SystemSecrets } from '../../../../src/platform/node/secrets.js';
import { NodeTransport } from '../../../../src/platform/node/transport.js';
import type { EventLog } from '../../../../src/platform/ports.js';
import type { ReloadControl } from '../../../../src/platform/reloads.js';
import type { Connection } from '../../../../src/platform/transport.js';
import { encodeFrame } from '../../../../src/protocol/frame.js';
import { FrameReader } from '../../../../src/protocol/frame-reader.js';
import { gatewayProof, isStoreProof, transcript } from '../../../../src/protocol/handshake.js';
import { isInvalid } from '../../../../src/protocol/invalid.js';
import * as types from '../../../../src/protocol/message-types.js';
import { decodeChallenge } from '../../../../src/protocol/messages/challenge.js';
import { encodeChanges } from '../../../../src/protocol/messages/changes.js';
import { FENCE_FOUND, FENCE_JOIN, encodeFence } from '../../../../src/protocol/messages/fence.js';
import { HELLO_ACTIVE, encodeHello } from '../../../../src/protocol/messages/hello.js';
import { encodeHeartbeat } from '../../../../src/protocol/messages/heartbeat.js';
import type { PartitionRecord, Term } from '../../../../src/protocol/partition-record.js';
import { partitionName } from '../../../../src/protocol/partition-record.js';
import { encodeTell } from '../../../../src/protocol/messages/tell.js';
import { encodeProof } from '../../../../src/protocol/messages/proof.js';
import { PROTOCOL_VERSION, PROTOCOL_VERSION_OLDEST } from '../../../../src/protocol/versions.js';
import { ORIGIN, bytes, packer, section } from '../core/section-kit.js';
import type { TestChange } from '../core/section-kit.js';

export interface TestFrame {
  readonly type: number;
  readonly sequence: number;
  readonly values: readonly unknown[];
  readonly bodies: Uint8Array;
}

const quiet: EventLog = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const secrets = new SystemSecrets();

export function secretOf(id: string): Uint8Array {
  return bytes(`the secret of ${id}`);
}

/** It has no file that it could read again. */
const reloads: ReloadControl = { reload: () => Promise.resolve({ why: 'no file', changed: [], warnings: [] }), compare: () => Promise.resolve({ why: 'no file', changed: [], warnings: [], following: 0, secrets: [] }) };

export function testStore(options: Partial<StoreDaemonOptions> = {}, log = quiet): Promise<RunningStore> {
  return startStore(
    {
      storeId: 'store-a', host: 'test-host', admin: undefined, memoryLimitBytes: 256 * 1024 * 1024,
      paths: [{ name: 'A', host: '127.0.0.1', port: 0 }, { name: 'B', host: '127.0.0.1', port: 0 }],
      gateways: ['g1', 'g2'].map((id) => ({ id, secret: secretOf(id) })),
      ...options,
    },
    { clock: new SystemClock(), crc32, packer: new MessagePacker(), secrets, log, reloads, listener: new NodeTransport() },
  );
}

export interface GatewayOptions {
  readonly id?: string;
  readonly secret?: Uint8Array;
  readonly incarnation?: number;
  readonly generation?: number;
  readonly active?: boolean;
  readonly path?: number;
  /** Of the protocol; this release's own if not said. */
  readonly versionMin?: number;
  readonly versionMax?: number;
}

export class TestGateway {
  readonly frames: TestFrame[] = [];
  readonly closed: Promise<string>;
  readonly connection: Connection;
  /** Version of the protocol that the store chose. */
  protocol = 0;
  readonly #id: string;
  #sequence = 0;
  #taken = 0;
  #wake: (() => void) | undefined;
  #over = '';
  #number = 0;
  #a = 0;
  #b = 0;

  constructor(store: Pick<RunningStore, 'ports'>, options: GatewayOptions = {}) {
    this.#id = options.id ?? 'g1';
    const reader = new FrameReader({ frameBytesMax: 64 * 1024 * 1024 }, { crc32 });
    const sink = {
      onFrame: (type: number, sequence: number, control: Uint8Array, bodies: Uint8Array): void => {
        this.frames.push({ type, sequence, values: packer.unpack(control.slice()) as readonly unknown[], bodies: bodies.slice() });
      },
      onInvalid: (rule: string): void => { throw new Error(rule); },
    };
    let closed: (reason: string) => void = () => undefined;
    this.closed = new Promise((resolve) => { closed = resolve; });
    this.connection = new NodeTransport().connect('127.0.0.1', store.ports[options.path ?? 0] ?? 0, {
      onOpen: () => undefined,
      onData: (data) => {
        reader.push(data, sink);
        this.#wake?.();
      },
      onDrain: () => undefined,
      onClose: (reason) => {
        this.#over = reason;
        closed(reason);
        this.#wake?.();
      },
    });
  }

  /** Connects and shakes hands; answers once WELCOME or CLOSE came. */
  static async join(store: Pick<RunningStore, 'ports'>, options: GatewayOptions = {}): Promise<TestGateway> {
    const prove = await TestGateway.begin(store, options);
    return prove();
  }

  /** Up to CHALLENGE; the rest when it is called. */
  static async begin(store: Pick<RunningStore, 'ports'>, options: GatewayOptions = {}): Promise<() => Promise<TestGateway>> {
    const gateway = new TestGateway(store, options);
    const hello = gateway.hello(options);
    const answer = await gateway.next(types.CHALLENGE);
    const challenge = decodeChallenge(packer, packer.pack(answer.values));
    if (isInvalid(challenge)) throw new Error(challenge.rule);
    gateway.protocol = challenge.version;
    const signed = transcript(packer, hello, challenge);
    const secret = options.secret ?? secretOf(gateway.#id);
    if (options.secret === undefined && !isStoreProof(secrets, secret, signed, challenge.proof)) throw new Error('the store does not know the secret');
    return async () => {
      gateway.send(types.PROOF, encodeProof(packer, { proof: gatewayProof(secrets, secret, signed) }));
      await gateway.next(types.WELCOME, types.CLOSE);
      return gateway;
    };
  }

  /** Sends HELLO; returns its control part. */
  hello(options: GatewayOptions): Uint8Array {
    const hello = encodeHello(packer, {
      versionMin: options.versionMin ?? PROTOCOL_VERSION_OLDEST, versionMax: options.versionMax ?? PROTOCOL_VERSION,
      gatewayId: this.#id, incarnation: options.incarnation ?? 1, incarnationNonce: new Uint8Array(8).fill(options.incarnation ?? 1),
      path: options.path === 1 ? 'B' : 'A', generation: options.generation ?? 1, nonce: secrets.randomBytes(16), flags: options.active === false ? 0 : HELLO_ACTIVE,
    }).slice();
    this.send(types.HELLO, hello);
    return hello;
  }

  get last(): TestFrame | undefined {
    return this.frames.at(-1);
  }

  send(type: number, control: Uint8Array, bodies: Uint8Array = new Uint8Array(0)): number {
    this.#sequence += 1;
    this.connection.write([encodeFrame(type, this.#sequence, control, crc32, bodies.length), bodies]);
    return this.#sequence;
  }

  fence(handle: number, number: number, how: number, term: Term, owner = this.#id): number {
    return this.send(types.FENCE, encodeFence(packer, {
      handle, partition: partitionName(owner, number), term, how, provenDead: 0, number: 0, digestA: 0, digestB: 0,
    }));
  }

  /** A new copy of a partition of its own. */
  found(handle: number, number: number, term = ORIGIN): number {
    return this.fence(handle, number, FENCE_FOUND, term);
  }

  /** Binds the handle to the copy that is there. */
  join(handle: number, number: number, term = ORIGIN, owner = this.#id): number {
    return this.fence(handle, number, FENCE_JOIN, term, owner);
  }

  tell(number: number, record: PartitionRecord, isOut: boolean, owner = this.#id): number {
    return this.send(types.TELL, encodeTell(packer, { partition: partitionName(owner, number), record, isOut }));
  }

  heartbeat(token: number, fencesProcessed = 0): number {
    return this.send(types.HEARTBEAT, encodeHeartbeat(packer, { token, wallMs: 0, fencesProcessed }));
  }

  /** Changes of one copy, numbered on from the last. */
  change(handle: number, ...changes: TestChange[]): number {
    const next = section(this.#number, this.#a, this.#b, changes);
    this.#number += changes.length;
    this.#a = next.a;
    this.#b = next.b;
    return this.send(types.CHANGES, encodeChanges(packer, [handle, next.first, next.a, next.b, next.rows]), next.payload);
  }

  /** The next frame of one of these types; others are passed over. */
  async next(...wanted: number[]): Promise<TestFrame> {
    for (;;) {
      while (this.#taken < this.frames.length) {
        const frame = this.frames[this.#taken];
        this.#taken += 1;
        if (frame !== undefined && wanted.includes(frame.type)) return frame;
      }
      if (this.#over !== '') throw new Error(`closed: ${this.#over}`);
      await new Promise<void>((resolve) => { this.#wake = resolve; });
    }
  }

  /** Waits for the acknowledgement of a request; answers the ACK that covers it. */
  async acknowledged(sequence: number): Promise<TestFrame> {
    for (;;) {
      const ack = await this.next(types.ACK);
      if (Number(ack.values[0]) >= sequence) return ack;
    }
  }
}
