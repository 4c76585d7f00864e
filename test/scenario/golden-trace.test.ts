/**
 * What the gateway of the last release says, the store of this one must answer as the last one did: the golden
 * trace is fed to a real Store, and its answers are compared frame by frame. And every frame of the trace, of
 * both sides, must still decode, and encode to the same bytes. See golden/trace.ts; docs/UPGRADE.md.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { StoreCounters } from '../../src/kvs/core/counters.js';
import { StoreConnection } from '../../src/kvs/core/store-connection.js';
import { STORE_DEFAULTS, Store } from '../../src/kvs/core/store.js';
import { crc32 } from '../../src/platform/node/checksum.js';
import { MessagePacker } from '../../src/platform/node/packer.js';
import { SystemSecrets } from '../../src/platform/node/secrets.js';
import type { EventLog, Secrets } from '../../src/platform/ports.js';
import type { Connection } from '../../src/platform/transport.js';
import { FRAME_BYTES_MAX } from '../../src/protocol/frame.js';
import { isInvalid } from '../../src/protocol/invalid.js';
import { ACK, BEAT, CHALLENGE, CLOSE, REFUSAL, WELCOME, messageTypeName } from '../../src/protocol/message-types.js';
import { decodeBeat } from '../../src/protocol/messages/beat.js';
import type { Challenge } from '../../src/protocol/messages/challenge.js';
import { decodeChallenge } from '../../src/protocol/messages/challenge.js';
import { decodeRefusal } from '../../src/protocol/messages/refusal.js';
import { decodeWelcome } from '../../src/protocol/messages/welcome.js';
import { SAMPLES } from '../unit/protocol/samples.js';
import type { Trace, TraceEvent, TracedFrame } from './golden/trace.js';
import { framesOf, readTrace } from './golden/trace.js';

const TRACES = ['protocol-3.jsonl'];
const packer = new MessagePacker();
const quiet: EventLog = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

function traceOf(name: string): Trace {
  return readTrace(join(import.meta.dirname, '..', '..', '..', 'test', 'scenario', 'golden', name));
}

function bytesOf(event: TraceEvent): Uint8Array {
  return Uint8Array.from(Buffer.from(event.hex ?? '', 'hex'));
}

/** What one side said, by connection. */
function saidBy(trace: Trace, side: 'in' | 'out'): Map<number, Uint8Array[]> {
  const said = new Map<number, Uint8Array[]>();
  for (const event of trace.events) {
    const pieces = said.get(event.connection) ?? [];
    if (event.is === side) pieces.push(bytesOf(event));
    said.set(event.connection, pieces);
  }
  return said;
}

/** Gives the nonce that the recorded store drew for a connection, so that its proof comes out again. */
class RecordedSecrets extends SystemSecrets implements Secrets {
  private readonly nonce: Uint8Array;

  constructor(nonce: Uint8Array) {
    super();
    this.nonce = nonce;
  }

  override randomBytes(count: number): Uint8Array {
    assert.equal(this.nonce.length, count, 'the store draws one nonce a connection');
    return this.nonce;
  }
}

/** The store's half of each handshake, by connection. */
function challengesOf(trace: Trace): Map<number, Challenge> {
  const challenges = new Map<number, Challenge>();
  for (const [connection, pieces] of saidBy(trace, 'out')) {
    const frame = framesOf(pieces).find((one) => one.type === CHALLENGE);
    const challenge = frame === undefined ? undefined : decodeChallenge(packer, frame.control);
    if (challenge !== undefined && !isInvalid(challenge)) challenges.set(connection, challenge);
  }
  return challenges;
}

/** Feeds what the recorded gateway said to a store of this release; its answers by connection. */
function replay(trace: Trace): Map<number, Uint8Array[]> {
  const { header } = trace;
  const challenges = challengesOf(trace);
  let nowMs = 0;
  const clock = { nowMs: () => nowMs, wallMs: () => nowMs };
  const store = new Store(
    { ...STORE_DEFAULTS, storeId: header.storeId, bootId: header.bootId, gateways: [{ id: header.gatewayId, secret: Uint8Array.from(Buffer.from(header.secret, 'hex')) }], memoryLimitBytes: header.memoryLimitBytes, leaseMs: header.leaseMs, startMs: 0, segmentBytes: 64 * 1024, indexSeed: 1 },
    { crc32 },
  );
  const machines = new Map<number, StoreConnection>();
  const answers = new Map<number, Uint8Array[]>();
  for (const event of trace.events) {
    nowMs = event.at;
    if (event.is === 'open') {
      const written: Uint8Array[] = [];
      answers.set(event.connection, written);
      const connection: Connection = { remote: 'trace', bufferedBytes: 0, write: (chunks) => { for (const chunk of chunks) written.push(chunk.slice()); }, pause: () => {}, resume: () => {}, end: () => {}, destroy: () => {} };
      const challenge = challenges.get(event.connection);
      const secrets = new RecordedSecrets(challenge?.nonce ?? new Uint8Array(16));
      const machine = new StoreConnection(
        { bootId: challenge?.bootId ?? new Uint8Array(16), frameBytesMax: FRAME_BYTES_MAX, windowBytes: header.windowBytes, silenceMs: 30_000 },
        { connection, clock, crc32, packer, secrets, log: quiet }, store, new StoreCounters(),
      );
      machines.set(event.connection, machine);
      machine.onOpen();
    } else if (event.is === 'in') {
      machines.get(event.connection)?.onData(bytesOf(event));
      machines.get(event.connection)?.endTurn();
      while (store.hasWork && store.work());
    } else if (event.is === 'end') {
      machines.get(event.connection)?.onClose('end of the recorded connection');
    }
  }
  return answers;
}

/** A frame as far as two releases must agree: credit and texts may differ, and how ACKs are gathered. */
function comparable(frame: TracedFrame): string {
  const { control } = frame;
  const decoded = frame.type === WELCOME ? decodeWelcome(packer, control) : frame.type === BEAT ? decodeBeat(packer, control) : frame.type === REFUSAL ? decodeRefusal(packer, control) : undefined;
  const told = decoded === undefined ? Buffer.from(control).toString('hex') : JSON.stringify({ ...decoded, credit: 0, text: '' });
  return `${messageTypeName(frame.type)} ${String(frame.sequence)} ${told} ${Buffer.from(frame.bodies).toString('hex')}`;
}

/** The last number acknowledged of each handle, and through which request. */
function acknowledged(frames: readonly TracedFrame[]): Map<string, number> {
  const numbers = new Map<string, number>();
  for (const frame of frames) {
    if (frame.type !== ACK) continue;
    const ack = packer.unpack(frame.control) as number[];
    numbers.set('through', frame.sequence);
    for (let i = 2; i < ack.length; i += 2) numbers.set(`queue ${String(ack[i])}`, ack[i + 1] ?? 0);
  }
  return numbers;
}

for (const name of TRACES) {
  test(`a store of this release answers ${name} as the store of that release did`, () => {
    const trace = traceOf(name);
    const answers = replay(trace);
    let compared = 0;
    for (const [connection, pieces] of saidBy(trace, 'out')) {
      const then = framesOf(pieces);
      const now = framesOf(answers.get(connection) ?? []);
      // A connection that was cut may have had an answer on its way: the recorded one is at most shorter.
      const wanted = then.filter((frame) => frame.type !== ACK && frame.type !== CLOSE).map(comparable);
      const given = now.filter((frame) => frame.type !== ACK && frame.type !== CLOSE).map(comparable);
      assert.deepEqual(given, wanted, `connection ${String(connection)}`);
      assert.deepEqual([...acknowledged(now)], [...acknowledged(then)], `what was acknowledged on connection ${String(connection)}`);
      compared += then.length;
    }
    assert.ok(compared > 50, `the trace has answers (${String(compared)})`);
  });

  test(`every frame of ${name} decodes, and encodes to the same bytes`, () => {
    const trace = traceOf(name);
    const seen = new Set<number>();
    for (const side of ['in', 'out'] as const) {
      for (const pieces of saidBy(trace, side).values()) {
        for (const frame of framesOf(pieces)) {
          const codec = SAMPLES.find((sample) => sample.type === frame.type);
          assert.ok(codec !== undefined, `${messageTypeName(frame.type)} has a codec`);
          const value = codec.decode(packer, frame.control);
          assert.ok(!isInvalid(value), `${messageTypeName(frame.type)} ${String(frame.sequence)} is valid`);
          assert.deepEqual(Buffer.from(codec.encode(packer, value)), Buffer.from(frame.control), `${messageTypeName(frame.type)} ${String(frame.sequence)} encodes to the same bytes`);
          seen.add(frame.type);
        }
      }
    }
    assert.ok(seen.size >= 18, `the trace has most messages (${[...seen].map(messageTypeName).join(' ')})`);
  });
}
