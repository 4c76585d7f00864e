import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PayloadSlabs } from '../../../../../src/gateway/mirror/feed/payload-slabs.js';
import type { Slab } from '../../../../../src/gateway/mirror/feed/payload-slabs.js';
import { TurnSection } from '../../../../../src/gateway/mirror/feed/turn-section.js';

/** Frames to one store: marked at `marked`, acknowledged up to `acked`. */
class Way {
  sent = 0;
  acked = 0;
  marked = 0;
  hasBacklog = false;

  mark(): boolean {
    if (!this.hasBacklog) this.marked = this.sent;
    return !this.hasBacklog;
  }

  get isPast(): boolean {
    return this.acked >= this.marked;
  }
}

/** Fills slabs until `count` have been left behind, each held by a section if `held`. */
function fill(slabs: PayloadSlabs, count: number, held = false): Slab[] {
  const left: Slab[] = [];
  while (left.length < count) {
    const { current } = slabs;
    slabs.reserve(64 * 1024);
    slabs.used += 64 * 1024;
    if (slabs.current === current) continue;
    left.push(current);
    if (held) slabs.current.holders += 1;
  }
  return left;
}

describe('payload slabs', () => {
  test('a slab comes back when its sections are let go and all that was on its way is acknowledged', () => {
    const way = new Way();
    const slabs = new PayloadSlabs(way);
    const first = slabs.current;
    first.holders += 1;
    way.sent = 5;
    assert.ok(!fill(slabs, 4, true).slice(1).some((slab) => slab.bytes === first.bytes), 'a section has it');
    slabs.release(first);
    assert.ok(!fill(slabs, 4, true).some((slab) => slab.bytes === first.bytes), 'a frame of the first five may have it');
    way.acked = 5;
    assert.ok(fill(slabs, 8, true).some((slab) => slab.bytes === first.bytes));
  });

  test('nothing comes back while frames wait without a sequence number', () => {
    const way = new Way();
    way.hasBacklog = true;
    const slabs = new PayloadSlabs(way);
    const seen = new Set(fill(slabs, 20).map((slab) => slab.bytes));
    assert.equal(seen.size, 20);
    way.hasBacklog = false;
    assert.ok(fill(slabs, 20).some((slab) => seen.has(slab.bytes)));
  });

  test('of a backlog that never ends a bounded number waits for its mark, the others go', () => {
    const way = new Way();
    way.hasBacklog = true;
    const slabs = new PayloadSlabs(way);
    const seen = new Set(fill(slabs, 500).map((slab) => slab.bytes));
    way.hasBacklog = false;
    const back = new Set(fill(slabs, 500, true).map((slab) => slab.bytes).filter((bytes) => seen.has(bytes)));
    assert.ok(back.size > 0 && back.size <= 50, `${String(back.size)} were kept`);
  });

  test('what was in use when a connection was lost never comes back', () => {
    const way = new Way();
    const slabs = new PayloadSlabs(way);
    const held = slabs.current;
    held.holders += 1;
    const before = new Set(fill(slabs, 1).map((slab) => slab.bytes));
    before.add(slabs.current.bytes);
    slabs.onConnectionLost();
    slabs.release(held);
    assert.ok(!fill(slabs, 30).slice(1).some((slab) => before.has(slab.bytes)));
  });

  test('a section holds each slab that rows or payload of it lie in, once', () => {
    const slabs = new PayloadSlabs(new Way());
    const section = new TurnSection(slabs);
    const before = slabs.current;
    for (let i = 0; i < 6; i++) {
      section.addRow(1, 0, 0, 50_000, 0, i, 0);
      section.addPayload(new Uint8Array(50_000));
    }
    section.takeRows();
    section.takePieces();
    const held = section.takeSlabs();
    assert.deepEqual(held.map((slab) => slab.holders), [1, 2], 'the one being filled is held by that, too');
    assert.deepEqual([held[0], held[1]], [before, slabs.current]);
    section.reset();
    assert.equal(section.takeSlabs().length, 0);
  });
});
