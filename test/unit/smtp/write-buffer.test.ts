import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PIECE_BYTES, SMALL_CONTENT_BYTES, WriteBuffer } from '../../../src/smtp/write-buffer.js';
import { ScriptedConnection } from '../gateway/outbound/pure/session-world.js';

describe('write buffer', () => {
  test('never touches bytes that a connection still holds', () => {
    const buffer = new WriteBuffer();
    const held: Uint8Array[] = [];
    const connection = new ScriptedConnection();
    connection.write = (chunks) => { held.push(...chunks); };
    connection.bufferedBytes = 1;
    for (const text of ['first', 'second', 'third']) {
      buffer.start(connection);
      buffer.ascii(text);
      buffer.flush();
    }
    assert.deepEqual(held.map((bytes) => Buffer.from(bytes).toString()), ['first', 'second', 'third']);
  });
  test('large contents hold a piece each, a smaller one while they are many', () => {
    const buffer = new WriteBuffer();
    assert.deepEqual([buffer.heldBytes, buffer.pieceBytes], [0, PIECE_BYTES]);
    for (let i = 0; i < 256; i++) buffer.largeBegun();
    assert.deepEqual([buffer.heldBytes, buffer.pieceBytes], [256 * PIECE_BYTES, PIECE_BYTES]);
    buffer.largeBegun();
    assert.deepEqual([buffer.heldBytes, buffer.pieceBytes], [257 * SMALL_CONTENT_BYTES, SMALL_CONTENT_BYTES]);
    for (let i = 0; i < 257; i++) buffer.largeEnded();
    assert.equal(buffer.heldBytes, 0);
  });
  test('takes a piece again once its connection has let go of it, the oldest first', () => {
    const buffer = new WriteBuffer();
    const write = (connection: ScriptedConnection, text: string): ArrayBufferLike => {
      let piece: ArrayBufferLike = new ArrayBuffer(0);
      connection.write = ([chunk]) => {
        piece = chunk?.buffer ?? piece;
        connection.bufferedBytes = 1;
      };
      buffer.start(connection);
      buffer.ascii(text);
      buffer.flush();
      return piece;
    };
    const [slow, fast] = [new ScriptedConnection(), new ScriptedConnection()];
    const first = write(slow, 'slow');
    const second = write(fast, 'fast');
    assert.notEqual(second, first);
    slow.bufferedBytes = 0;
    const third = write(fast, 'fast');
    assert.ok(third !== first && third !== second);
    assert.equal(write(fast, 'fast'), first, 'it came back before the third was lent');
    // One connection that lets go before its next write, as in TLS, needs two; one that never does hides no other.
    for (let i = 0; i < 20; i++) write(slow, 'slow');
    const pieces = new Set(Array.from({ length: 40 }, () => {
      const piece = write(fast, 'fast');
      fast.bufferedBytes = 0;
      return piece;
    }));
    assert.ok(pieces.size <= 20, String(pieces.size));
  });
});
