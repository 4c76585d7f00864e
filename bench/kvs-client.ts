/**
 * A gateway reduced to its link: stores and deletes messages of one size at one store, over one connection, as fast
 * as acknowledgements come back. A transaction is one store and one delete of the same message (the paper, section
 * IV.B). Messages and their checksums are made once, as requests are by the client of the other servers
 * (peers/pipeline-client.ts); the store checks each.
 *
 *   frame: CHANGES with `batch` STORE rows and one DELETE row for the batch before; `window` frames unacknowledged
 *
 * Exported for the bench driver; the driver runs it in a process of its own.
 */

import { SystemClock } from '../src/platform/node/clock.js';
import { crc32 } from '../src/platform/node/checksum.js';
import { MessagePacker } from '../src/platform/node/packer.js';
import { SystemSecrets } from '../src/platform/node/secrets.js';
import { NodeTransport } from '../src/platform/node/transport.js';
import type { Connection } from '../src/platform/transport.js';
import { CHANGE_ROW_BYTES, KIND_DELETE, KIND_STORE, creditCost, writeChangeRow } from '../src/protocol/change-rows.js';
import { Digest } from '../src/protocol/digest.js';
import { encodeFrame } from '../src/protocol/frame.js';
import type { FrameSink } from '../src/protocol/frame-reader.js';
import { FrameReader } from '../src/protocol/frame-reader.js';
import { gatewayProof, transcript } from '../src/protocol/handshake.js';
import { InvalidMessage } from '../src/protocol/invalid.js';
import * as types from '../src/protocol/message-types.js';
import { ackCredit, ackHandle, ackNumber, ackCopyCount, ackSequence, decodeAck } from '../src/protocol/messages/ack.js';
import { decodeChallenge } from '../src/protocol/messages/challenge.js';
import { encodeChanges } from '../src/protocol/messages/changes.js';
import { FENCE_FOUND, encodeFence } from '../src/protocol/messages/fence.js';
import { HELLO_ACTIVE, encodeHello } from '../src/protocol/messages/hello.js';
import { partitionName } from '../src/protocol/partition-record.js';
import { encodeProof } from '../src/protocol/messages/proof.js';
import { decodeWelcome } from '../src/protocol/messages/welcome.js';
import { PROTOCOL_VERSION } from '../src/protocol/versions.js';

export interface KvsClientOptions {
  readonly host: string;
  readonly port: number;
  readonly gatewayId: string;
  readonly secret: Uint8Array;
  /** Body and head of a message together. */
  readonly messageBytes: number;
  readonly seconds: number;
  /** Messages in a frame. */
  readonly batch: number;
  /** Frames unacknowledged. */
  readonly window: number;
}

export interface KvsClientResult {
  readonly transactions: number;
  readonly seconds: number;
  readonly transactionsPerSecond: number;
  /** User and system time of this process, a transaction. */
  readonly clientCpuMicros: number;
}

/** An envelope of usual size; the rest of messageBytes is the body. */
const HEAD_BYTES = 100;
const HANDLE = 1;

export function runKvsClient(options: KvsClientOptions): Promise<KvsClientResult> {
  return new Promise((resolve, reject) => {
    const client = new KvsClient(options, resolve, reject);
    client.start();
  });
}

class KvsClient implements FrameSink {
  readonly #options: KvsClientOptions;
  readonly #resolve: (result: KvsClientResult) => void;
  readonly #reject: (error: Error) => void;
  readonly #packer = new MessagePacker();
  readonly #secrets = new SystemSecrets();
  readonly #clock = new SystemClock();
  readonly #reader = new FrameReader({ frameBytesMax: 64 * 1024 * 1024 }, { crc32 });
  readonly #digest = new Digest();
  readonly #rows: Uint8Array;
  readonly #view: DataView;
  readonly #payload: Uint8Array;
  /** Of each message of the batch: made once, as its bytes are. */
  readonly #checksums: Uint32Array;
  readonly #incarnation = Date.now();
  #connection: Connection | undefined;
  #hello: Uint8Array = new Uint8Array(0);
  #sequence = 0;
  #acknowledged = 0;
  #number = 0;
  #firstUndeleted = 0;
  #deleted = 0;
  #available = 0;
  #startMs = 0;
  #cpu = process.cpuUsage();
  #settled = false;

  constructor(options: KvsClientOptions, resolve: (result: KvsClientResult) => void, reject: (error: Error) => void) {
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#rows = new Uint8Array((options.batch + 1) * CHANGE_ROW_BYTES);
    this.#view = new DataView(this.#rows.buffer);
    this.#payload = this.#secrets.randomBytes(options.batch * options.messageBytes);
    this.#checksums = Uint32Array.from({ length: options.batch }, (_, i) => crc32(this.#payload.subarray(i * options.messageBytes, (i + 1) * options.messageBytes), 0));
  }

  start(): void {
    this.#connection = new NodeTransport().connect(this.#options.host, this.#options.port, {
      onOpen: () => { this.#sendHello(); },
      onData: (bytes) => {
        this.#reader.push(bytes, this);
        this.#fill();
      },
      onDrain: () => { this.#fill(); },
      onClose: (reason) => { if (!this.#settled) this.#reject(new Error(`the store closed the connection: ${reason}`)); },
    });
  }

  onFrame(type: number, _sequence: number, control: Uint8Array): void {
    if (type === types.ACK) this.#onAck(control);
    else if (type === types.CHALLENGE) this.#onChallenge(control);
    else if (type === types.WELCOME) this.#onWelcome(control);
    else if (type === types.FENCED) return;
    else this.#fail(`${types.messageTypeName(type)} ${JSON.stringify(this.#packer.unpack(control))}`);
  }

  onInvalid(rule: string): void {
    this.#fail(rule);
  }

  #sendHello(): void {
    this.#hello = encodeHello(this.#packer, {
      versionMin: PROTOCOL_VERSION, versionMax: PROTOCOL_VERSION, gatewayId: this.#options.gatewayId, incarnation: this.#incarnation,
      incarnationNonce: this.#secrets.randomBytes(8), path: 'A', generation: 1, nonce: this.#secrets.randomBytes(16), flags: HELLO_ACTIVE,
    }).slice();
    this.#send(types.HELLO, this.#hello);
  }

  #onChallenge(control: Uint8Array): void {
    const challenge = decodeChallenge(this.#packer, control);
    if (challenge instanceof InvalidMessage) return this.#fail(challenge.rule);
    const signed = transcript(this.#packer, this.#hello, challenge);
    this.#send(types.PROOF, encodeProof(this.#packer, { proof: gatewayProof(this.#secrets, this.#options.secret, signed) }));
  }

  #onWelcome(control: Uint8Array): void {
    const welcome = decodeWelcome(this.#packer, control);
    if (welcome instanceof InvalidMessage) return this.#fail(welcome.rule);
    this.#available = welcome.credit;
    this.#send(types.FENCE, encodeFence(this.#packer, {
      handle: HANDLE, partition: partitionName(this.#options.gatewayId, 1), term: { number: 1, nonce: 1 }, how: FENCE_FOUND, provenDead: 0,
      number: 0, digestA: 0, digestB: 0,
    }));
    this.#acknowledged = this.#sequence - 1;
    this.#startMs = this.#clock.nowMs();
    this.#cpu = process.cpuUsage();
  }

  #onAck(control: Uint8Array): void {
    const ack = decodeAck(this.#packer, control);
    if (ack instanceof InvalidMessage) return this.#fail(ack.rule);
    this.#acknowledged = ackSequence(ack);
    const frameCost = this.#options.batch * creditCost(KIND_STORE, 0, this.#options.messageBytes, 0, 0);
    this.#available = ackCredit(ack) - (this.#sequence - this.#acknowledged) * frameCost;
    for (let i = 0; i < ackCopyCount(ack); i += 1) {
      if (ackHandle(ack, i) !== HANDLE) this.#fail('an unknown handle was acknowledged');
      if (ackNumber(ack, i) > this.#number) this.#fail('more was acknowledged than sent');
    }
    if (this.#acknowledged === this.#sequence && this.#isOver()) this.#finish();
  }

  #isOver(): boolean {
    return this.#clock.nowMs() - this.#startMs >= this.#options.seconds * 1000;
  }

  /** Sends frames while the window is open. */
  #fill(): void {
    const connection = this.#connection;
    if (connection === undefined || this.#startMs === 0 || this.#settled) return;
    const { batch, messageBytes, window } = this.#options;
    const frameCost = batch * creditCost(KIND_STORE, 0, messageBytes, 0, 0);
    const chunks: Uint8Array[] = [];
    while (!this.#isOver() && this.#sequence - this.#acknowledged < window && this.#available >= frameCost) {
      chunks.push(this.#changes(), this.#payload);
      this.#available -= frameCost;
    }
    if (chunks.length > 0) connection.write(chunks);
  }

  /** `batch` stores, and a delete of the batch before. */
  #changes(): Uint8Array {
    const { batch, messageBytes } = this.#options;
    const first = this.#number + 1;
    let row = 0;
    const bodyBytes = messageBytes - HEAD_BYTES;
    for (let i = 0; i < batch; i += 1) {
      const crc = this.#checksums[i] ?? 0;
      writeChangeRow(this.#view, row, KIND_STORE, 0, bodyBytes, HEAD_BYTES, crc, first + i);
      this.#digest.add(KIND_STORE, bodyBytes, HEAD_BYTES, crc, first + i);
      row += CHANGE_ROW_BYTES;
    }
    this.#number += batch;
    if (this.#firstUndeleted !== 0) {
      writeChangeRow(this.#view, row, KIND_DELETE, 0, 0, batch, 0, this.#firstUndeleted);
      this.#digest.add(KIND_DELETE, 0, batch, 0, this.#firstUndeleted);
      row += CHANGE_ROW_BYTES;
      this.#number += 1;
      this.#deleted += batch;
    }
    this.#firstUndeleted = first;
    const control = encodeChanges(this.#packer, [HANDLE, first, this.#digest.a, this.#digest.b, this.#rows.subarray(0, row)]);
    this.#sequence += 1;
    return encodeFrame(types.CHANGES, this.#sequence, control, crc32, this.#payload.length);
  }

  #send(type: number, control: Uint8Array): void {
    this.#sequence += 1;
    this.#connection?.write([encodeFrame(type, this.#sequence, control, crc32)]);
  }

  #finish(): void {
    this.#settled = true;
    const seconds = (this.#clock.nowMs() - this.#startMs) / 1000;
    const cpu = process.cpuUsage(this.#cpu);
    this.#connection?.destroy();
    this.#resolve({
      transactions: this.#deleted,
      seconds,
      transactionsPerSecond: this.#deleted / seconds,
      clientCpuMicros: (cpu.user + cpu.system) / Math.max(1, this.#deleted),
    });
  }

  #fail(text: string): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#connection?.destroy();
    this.#reject(new Error(text));
  }
}
