/** What a frame to a store is made of. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PayloadSlabs } from '../../../../../src/gateway/mirror/feed/payload-slabs.js';
import type { SealedSection } from '../../../../../src/gateway/mirror/feed/turn-section.js';
import { NO_BODIES, TurnSection } from '../../../../../src/gateway/mirror/feed/turn-section.js';
import { ChangesEncoder, Outbox } from '../../../../../src/gateway/mirror/link/outbox.js';
import type { StorePort } from '../../../../../src/gateway/mirror/link/store-port.js';
import { MessagePacker } from '../../../../../src/platform/node/packer.js';
import { KIND_STORE } from '../../../../../src/protocol/change-rows.js';

function sealed(handle: number, body: string): SealedSection {
  const section = new TurnSection(new PayloadSlabs({ mark: () => true, isPast: true }));
  const bytes = Buffer.from(body);
  section.addRow(KIND_STORE, 0, bytes.length, 0, 0, 1, 0);
  return {
    handle, firstNumber: 1, lastNumber: 1, digestA: 1, digestB: 2, rows: section.rowBytes().slice(), pieces: [bytes],
    payloadBytes: bytes.length, creditBytes: 10, unpaidBytes: 0, absent: NO_BODIES, keptBytes: 0, slabs: [],
  };
}

function started(): { readonly outbox: Outbox; readonly frames: unknown[] } {
  const frames: unknown[] = [];
  const store = {
    canSend: true, credit: 1_000_000,
    request: (type: number, control: Uint8Array, bodies: readonly Uint8Array[], creditBytes: number) => {
      frames.push([type, Buffer.from(control), Buffer.concat(bodies), creditBytes]);
      return frames.length;
    },
  };
  return { outbox: new Outbox({ frameTargetBytes: 16_384 }, new ChangesEncoder(new MessagePacker()), store as unknown as StorePort), frames };
}

test('what was put together for a connection that is gone does not go over the next one', () => {
  const { outbox, frames } = started();
  outbox.put(sealed(1, 'of before'));
  outbox.clear();
  outbox.close();
  assert.deepEqual([outbox.creditBytes, frames], [0, []]);
  outbox.put(sealed(2, 'of now'));
  outbox.close();
  const fresh = started();
  fresh.outbox.put(sealed(2, 'of now'));
  fresh.outbox.close();
  assert.equal(frames.length, 1);
  assert.deepEqual(frames, fresh.frames);
});
