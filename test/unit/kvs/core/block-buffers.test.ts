import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BlockBuffers, LENT_BYTES_MAX, roomFor } from '../../../../src/kvs/core/block-buffers.js';
import { StoreCounters } from '../../../../src/kvs/core/counters.js';
import { ConnectionWriter } from '../../../../src/kvs/core/connection-writer.js';
import { Replies } from '../../../../src/kvs/core/replies.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import type { Connection } from '../../../../src/platform/transport.js';
import { PULL } from '../../../../src/protocol/message-types.js';
import { encodePull } from '../../../../src/protocol/messages/pull.js';
import { attached, change, newStore, found, packer, storing } from './section-kit.js';

/** A connection that keeps what was written, as a socket does whose peer reads nothing. */
class Kept implements Connection {
  readonly remote = 'test';
  bufferedBytes = 0;
  readonly chunks: Uint8Array[] = [];
  write(chunks: readonly Uint8Array[]): void { this.chunks.push(...chunks); }
  pause(): void {}
  resume(): void {}
  end(): void {}
  destroy(): void {}
}

const TEN = 'x'.repeat(9);

/** Two copies of twenty entries at one connection; pull() answers the payload that was written. */
function twoCopies(memoryLimitBytes?: number): { pull: (handle: number, after: number, entries: number) => Uint8Array; replies: Replies } {
  const store = newStore(memoryLimitBytes === undefined ? {} : { memoryLimitBytes });
  const attachments = new Map([1, 2].map((handle) => {
    const copy = found(store, handle);
    change(store, copy, ...Array.from({ length: 20 }, (_none, i) => storing(i, TEN, String.fromCharCode((handle === 1 ? 65 : 97) + i))));
    return [handle, attached(copy)] as const;
  }));
  const outbox = new ConnectionWriter({ crc32 });
  const connection = new Kept();
  const fail = (): never => { throw new Error('neither closed nor refused'); };
  const replies = new Replies({ bufferHighBytes: 1 << 20 }, { packer, outbox, connection, close: fail, refuse: fail }, store, new StoreCounters());
  let sequence = 0;
  const pull = (handle: number, afterPosition: number, entriesMax: number): Uint8Array => {
    sequence += 1;
    replies.take(PULL, sequence, encodePull(packer, { handle, afterPosition, untilPosition: 100, entriesMax, bytesMax: 1 << 20, withBodies: true }), attachments);
    outbox.flush(connection);
    return connection.chunks.at(-1) ?? new Uint8Array(0);
  };
  return { pull, replies };
}

function heads(payload: Uint8Array): string {
  return new TextDecoder().decode(payload).replaceAll('x', '');
}

describe('payload buffers of blocks', () => {
  test('are kept while the store has room beyond what it promised to mail', () => {
    for (const [limitBytes, isKept] of [[64 * 1024 * 1024, true], [12 * 1024, false]] as const) {
      const { pull, replies } = twoCopies(limitBytes);
      pull(1, 0, 5);
      assert.equal(replies.heldBytes > 0, isKept, `of ${limitBytes} bytes`);
    }
  });

  test('come again when the peer asks for what follows the block', () => {
    const { pull, replies } = twoCopies();
    const first = pull(1, 0, 5);
    const second = pull(1, 5, 5);
    assert.equal(heads(second), 'FGHIJ');
    assert.equal(second.buffer, first.buffer);
    assert.equal(heads(pull(1, 10, 3)), 'KLM');
    const { heldBytes } = replies;
    assert.equal(heldBytes, first.buffer.byteLength);
    assert.equal(heads(pull(1, 13, 100)), 'NOPQRST');
    assert.equal(replies.heldBytes, 0, 'nothing is kept behind the last block');
  });

  test('stay as they are while a block of another copy is built, or the same one is asked for again', () => {
    const { pull } = twoCopies();
    const first = pull(1, 0, 5);
    const other = pull(2, 0, 5);
    const again = pull(1, 0, 5);
    const next = pull(2, 5, 5);
    assert.equal(new Set([first.buffer, other.buffer, again.buffer]).size, 3);
    assert.equal(next.buffer, other.buffer);
    assert.deepEqual([first, again, next].map(heads), ['ABCDE', 'ABCDE', 'fghij']);
  });

  test('are not kept past their bound, nor past the connection', () => {
    const buffers = new BlockBuffers();
    buffers.lend(1, 10, new Uint8Array(LENT_BYTES_MAX - 1));
    buffers.lend(2, 10, new Uint8Array(2));
    assert.equal(buffers.lentBytes, LENT_BYTES_MAX - 1);
    assert.equal(buffers.take(2, 10).length, 0);
    buffers.clear();
    assert.deepEqual([buffers.lentBytes, buffers.take(1, 10).length], [0, 0]);
  });

  test('are made anew when the next payload does not fit', () => {
    const buffer = new Uint8Array(10);
    assert.equal(roomFor(10, buffer), buffer);
    assert.ok(roomFor(11, buffer).length >= 11);
  });
});
