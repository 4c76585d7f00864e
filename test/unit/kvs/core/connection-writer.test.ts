/** What a connection of a store says: out of one buffer while the kernel takes it at once, and never over what still waits. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ConnectionWriter } from '../../../../src/kvs/core/connection-writer.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import type { Connection } from '../../../../src/platform/transport.js';
import { FrameReader } from '../../../../src/protocol/frame-reader.js';
import { ACK } from '../../../../src/protocol/message-types.js';

/** Takes at once what is written, or has it wait, until told otherwise; as the transport does, it copies nothing that waits. */
class Peer implements Connection {
  readonly remote = 'test';
  readonly buffers = new Set<ArrayBufferLike>();
  readonly sequences: number[] = [];
  isReading = true;
  readonly #waiting: Uint8Array[] = [];
  readonly #reader = new FrameReader({ frameBytesMax: 1_000_000 }, { crc32 });

  get bufferedBytes(): number {
    return this.#waiting.reduce((sum, chunk) => sum + chunk.length, 0);
  }

  write(chunks: readonly Uint8Array[]): void {
    for (const chunk of chunks) this.buffers.add(chunk.buffer);
    this.#waiting.push(...chunks);
    if (this.isReading) this.read();
  }

  read(): void {
    const sink = {
      onFrame: (_type: number, sequence: number) => { this.sequences.push(sequence); },
      onInvalid: (rule: string) => { assert.fail(`a frame was spoilt while it waited: ${rule}`); },
    };
    for (const chunk of this.#waiting.splice(0)) this.#reader.push(chunk, sink);
  }

  pause(): void {}
  resume(): void {}
  end(): void {}
  destroy(): void {}
}

const CONTROL = new Uint8Array(40).fill(7);

/** So many turns with two frames in each. */
function say(outbox: ConnectionWriter, peer: Peer, turns: number, from = 0): void {
  for (let turn = from; turn < from + turns; turn++) {
    outbox.frame(ACK, 2 * turn + 1, CONTROL);
    outbox.frame(ACK, 2 * turn + 2, CONTROL);
    outbox.flush(peer);
  }
}

function counted(last: number): number[] {
  return Array.from({ length: last }, (_none, index) => index + 1);
}

describe('an outbox', () => {
  test('writes out of one buffer for good while nothing waits', () => {
    const peer = new Peer();
    say(new ConnectionWriter({ crc32 }), peer, 10_000);
    assert.equal(peer.buffers.size, 1);
    assert.deepEqual(peer.sequences, counted(20_000));
  });

  test('tells how much waits, bodies too, and nothing when it has been written', () => {
    const peer = new Peer();
    const outbox = new ConnectionWriter({ crc32 });
    outbox.frame(ACK, 1, CONTROL);
    const { bytes } = outbox;
    assert.ok(bytes > CONTROL.length);
    outbox.frameWithBodies(ACK, 2, CONTROL, new Uint8Array(1000));
    assert.equal(outbox.bytes, 2 * bytes + 1000);
    outbox.flush(peer);
    assert.equal(outbox.bytes, 0);
    assert.deepEqual(peer.sequences, [1, 2]);
  });

  test('leaves what waits as it is, and takes up one buffer again when all has left', () => {
    const peer = new Peer();
    const outbox = new ConnectionWriter({ crc32 });
    say(outbox, peer, 10);
    peer.isReading = false;
    say(outbox, peer, 3_000, 10);
    assert.ok(peer.buffers.size > 1, 'what waits is more than one buffer takes');
    peer.read();
    peer.isReading = true;
    say(outbox, peer, 1, 3_010);
    peer.buffers.clear();
    say(outbox, peer, 3_000, 3_011);
    assert.equal(peer.buffers.size, 1);
    assert.deepEqual(peer.sequences, counted(2 * 6_011));
  });
});
