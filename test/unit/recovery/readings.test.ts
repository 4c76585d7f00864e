/** Partitions that come in block after block: memory, damage, a change of the copy that is read (src/recovery/readings.ts). */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Block } from '../../../src/protocol/messages/block.js';
import { positionAt, positionCount } from '../../../src/protocol/messages/fetch.js';
import type { Pull } from '../../../src/protocol/messages/pull.js';
import type { RecordedMember } from '../../../src/protocol/partition-record.js';
import { Readings } from '../../../src/recovery/readings.js';

const HANDLE = 7;
const NO_BYTES = new Uint8Array(0);
const FIRST_BOOT = 'b1';

function copyAt(storeId: string, bootId = FIRST_BOOT): RecordedMember {
  return { storeId, bootId };
}

class Bench {
  readonly fetched: { readonly storeId: string; readonly ask: number; readonly positions: readonly number[] }[] = [];
  /** What is wanted, and what nobody waits for. */
  wanted: number[] = [];
  rest: number[] = [];
  absent = 0;
  mayBringBodies = true;
  readonly asked: (Pull & RecordedMember)[] = [];
  readonly told: string[] = [];
  readonly readings: Readings;
  mayPull: (pulling: number, inHandBytes: number) => boolean = () => true;
  room = { entriesMax: 1000, bytesMax: 1024 };
  isUp = true;
  /** In which all stores are. */
  bootId = FIRST_BOOT;
  isSound = true;
  other = '';
  mayHaveOther = false;

  constructor() {
    const line = (_event: string, text: string): void => { this.told.push(text); };
    this.readings = new Readings({ blockEntries: 1000, blockBytes: 1024 }, {
      log: { debug: () => {}, info: line, warn: line, error: line },
      pull: (source, pull) => {
        if (this.#isThere(source)) this.asked.push({ ...pull, ...source });
        return this.#isThere(source);
      },
      fetch: (source, { ask, positions }) => {
        const list = Array.from({ length: positionCount(positions) }, (_, i) => positionAt(positions, i));
        if (this.#isThere(source)) this.fetched.push({ storeId: source.storeId, ask, positions: list });
        return this.#isThere(source);
      },
      mayBringBodies: () => this.mayBringBodies,
      nextBodies: (_handle, _limits, withRest) => [...this.wanted.splice(0), ...(withRest ? this.rest.splice(0) : [])],
      onFetched: (_handle, _fetched, _bodies, isLastSource) => {
        this.told.push(isLastSource ? 'bodies, of the last copy' : 'bodies');
        return this.isSound;
      },
      askAgain: () => { this.told.push('asked for again'); },
      absentCount: () => this.absent,
      onIndexed: (handle) => { this.told.push(`${String(handle)} is known`); },
      flush: () => {},
      blockRoom: (_isOwn, pulling, inHandBytes) => (this.mayPull(pulling, inHandBytes) ? this.room : undefined),
      onBlock: (_handle, _rows, _bodies, _texts, isLastSource) => {
        this.told.push(isLastSource ? 'block, of the last copy' : 'block');
        return this.isSound;
      },
      otherSource: (_handle, damaged) => (this.other === '' || damaged.has(this.other) ? undefined : copyAt(this.other)),
      mayHaveOther: () => this.mayHaveOther,
      onSwitched: (_handle, { storeId }) => { this.told.push(`the source is ${storeId}`); },
      onWhole: (handle) => { this.told.push(`${String(handle)} is whole`); },
    });
  }

  #isThere({ bootId }: RecordedMember): boolean {
    return this.isUp && bootId === this.bootId;
  }

  begin(handle = HANDLE, untilPosition = 900, bytes = 1000): void {
    this.readings.begin(handle, `gw-1/${String(handle)}`, true, copyAt('store-a'), untilPosition, bytes);
  }

  /** The answer to what was asked last. */
  answer(nextPosition: number, end = false, storeId = 'store-a', handle = HANDLE, bodies = NO_BYTES): void {
    const { afterPosition } = this.asked.findLast((one) => one.handle === handle) ?? assert.fail('something was asked');
    const block: Block = { handle, afterPosition, nextPosition, end, rows: NO_BYTES, texts: NO_BYTES };
    this.readings.onBlock(storeId, block, bodies);
  }

  /** The answer to what was fetched last. */
  answerFetch(untilPosition: number, storeId = 'store-a', ask = this.fetched.at(-1)?.ask ?? 0): void {
    this.readings.onFetched(storeId, { handle: HANDLE, ask, untilPosition, rows: NO_BYTES }, NO_BYTES);
  }

  get last(): Pull & RecordedMember {
    return this.asked.at(-1) ?? assert.fail('something was asked');
  }
}

describe('a partition that comes in', () => {
  test('is asked for from its beginning up to the adopted position, small blocks first, until its end', () => {
    const bench = new Bench();
    bench.begin();
    assert.deepEqual([bench.last.afterPosition, bench.last.untilPosition, bench.last.storeId], [0, 900, 'store-a']);
    const first = bench.last.entriesMax;
    bench.answer(40);
    assert.deepEqual([bench.last.afterPosition, bench.last.entriesMax], [40, first * 2]);
    bench.answer(900, true);
    assert.equal(bench.asked.length, 2);
    assert.equal(bench.told.at(-1), '7 is whole');
    assert.equal(bench.readings.count, 0);
  });

  test('rests while there is no memory for one more block, says so once, and goes on when there is', () => {
    const bench = new Bench();
    bench.mayPull = () => false;
    bench.begin();
    bench.readings.start();
    assert.equal(bench.asked.length, 0);
    assert.equal(bench.told.filter((text) => text.includes('no memory left even for an index of it')).length, 1);
    bench.mayPull = (_pulling, inHandBytes) => inHandBytes === 0;
    bench.readings.start();
    bench.answer(40, false, 'store-a', HANDLE, new Uint8Array(10));
    assert.equal(bench.asked.length, 1, 'not while what came is in hand');
    bench.readings.start();
    assert.equal(bench.last.afterPosition, 40);
  });

  test('is counted as short while there is no memory for its next block, and no more when there is', () => {
    const bench = new Bench();
    assert.equal(bench.readings.shortCount, 0);
    bench.mayPull = () => false;
    bench.begin();
    bench.begin(HANDLE + 1);
    bench.readings.start();
    assert.equal(bench.readings.shortCount, 2);
    bench.mayPull = (pulling) => pulling === 0;
    bench.readings.start();
    assert.equal(bench.readings.shortCount, 0, 'what is on its way may make room for the other');
    bench.mayPull = () => true;
    bench.readings.start();
    assert.equal(bench.readings.shortCount, 0);
  });

  test('with a damaged block goes on at the copy that is equal, from where it was', () => {
    const bench = new Bench();
    bench.other = 'store-b';
    bench.begin();
    bench.answer(40);
    bench.isSound = false;
    bench.answer(80);
    assert.ok(bench.told.includes('the source is store-b'));
    assert.deepEqual([bench.last.storeId, bench.last.afterPosition], ['store-b', 40]);
    assert.ok(bench.told.every((text) => text !== 'block, of the last copy'));
    bench.isSound = true;
    bench.answer(80, false, 'store-b');
    assert.equal(bench.told.at(-1), 'block, of the last copy', 'the damaged one counts for none');
  });

  test('with a damaged block waits for the copy that is equal while that is away, and asks nothing', () => {
    const bench = new Bench();
    bench.mayHaveOther = true;
    bench.begin();
    bench.isSound = false;
    bench.answer(40);
    const asked = bench.asked.length;
    bench.readings.start();
    assert.deepEqual([bench.asked.length, bench.told], [asked, ['block']]);
    bench.other = 'store-b';
    bench.readings.start();
    assert.deepEqual([bench.last.storeId, bench.last.afterPosition], ['store-b', 0]);
    assert.ok(bench.told.includes('the source is store-b'));
  });

  test('with a damaged block asks for it once more when the other copy counts no more: it is the last one', () => {
    const bench = new Bench();
    bench.mayHaveOther = true;
    bench.begin();
    bench.isSound = false;
    bench.answer(40);
    bench.mayHaveOther = false;
    bench.readings.start();
    assert.deepEqual([bench.last.storeId, bench.last.afterPosition], ['store-a', 0]);
    bench.isSound = true;
    bench.answer(40);
    assert.equal(bench.told.at(-1), 'block, of the last copy');
  });

  test('with no other copy is told that it is the last one: what is damaged is kept apart', () => {
    const bench = new Bench();
    bench.begin();
    bench.answer(40);
    assert.equal(bench.told.at(-1), 'block, of the last copy');
  });

  test('rests when its source is away, and goes on where it was, there or at another; late answers count for nothing', () => {
    const bench = new Bench();
    bench.begin();
    bench.answer(40);
    bench.isUp = false;
    bench.readings.onConnectionLost('store-a');
    bench.readings.start();
    assert.equal(bench.asked.length, 2);
    bench.isUp = true;
    bench.readings.switchTo(HANDLE, copyAt('store-b'));
    assert.deepEqual([bench.last.storeId, bench.last.afterPosition], ['store-b', 40]);
    const before = bench.told.length;
    bench.answer(80, false, 'store-a');
    assert.equal(bench.told.length, before);
    bench.answer(900, true, 'store-b');
    assert.equal(bench.told.at(-1), '7 is whole');
  });

  test('asks a later boot of its source only when that is named as the copy to be read on', () => {
    const bench = new Bench();
    bench.begin();
    bench.answer(40);
    bench.readings.onConnectionLost('store-a');
    bench.bootId = 'b2';
    bench.readings.start();
    assert.equal(bench.asked.length, 2);
    bench.readings.switchTo(HANDLE, copyAt('store-a', 'b2'));
    assert.deepEqual([bench.last.storeId, bench.last.bootId, bench.last.afterPosition], ['store-a', 'b2', 40]);
    assert.equal(bench.told.at(-1), 'a partition is read on from another copy');
  });

  test('that is forgotten takes no block any more', () => {
    const bench = new Bench();
    bench.begin();
    bench.readings.remove(HANDLE);
    bench.answer(900, true);
    assert.deepEqual(bench.told, []);
  });

  test('go round by blocks: however long some partitions are, the first entries of all come first', () => {
    const bench = new Bench();
    for (let handle = 0; handle < 20; handle++) bench.begin(handle);
    for (let handle = 0; handle < 20; handle++) bench.answer(10, false, 'store-a', handle);
    assert.deepEqual(bench.asked.slice(0, 20).map(({ handle }) => handle), Array.from({ length: 20 }, (_, i) => i));
    assert.deepEqual(bench.asked.slice(20).map(({ handle }) => handle), [0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test('comes beside few others: the rest wait for their turn', () => {
    const bench = new Bench();
    for (let handle = 1; handle <= 20; handle++) bench.begin(handle);
    assert.equal(bench.asked.length, 8);
    bench.answer(900, true, 'store-a', 1);
    assert.equal(bench.asked.length, 9);
  });
});

describe('bodies', () => {
  test('come along while little is to come and there is memory for them', () => {
    const bench = new Bench();
    bench.begin();
    assert.equal(bench.last.withBodies, true);
    bench.mayBringBodies = false;
    bench.answer(40);
    assert.equal(bench.last.withBodies, false);
    bench.mayBringBodies = true;
    bench.begin(8, 900, 2 ** 40);
    assert.equal(bench.last.withBodies, false, 'much is to come');
    bench.readings.remove(8);
    bench.answer(80);
    assert.equal(bench.last.withBodies, true, 'that is gone');
  });

  test('that are wanted are asked for while blocks still come; the others when every entry of all partitions is here', () => {
    const bench = new Bench();
    bench.absent = 3;
    bench.begin();
    bench.begin(8);
    bench.wanted = [5];
    bench.rest = [7, 9];
    bench.readings.start();
    assert.deepEqual(bench.fetched.map(({ positions }) => positions), [[5]]);
    bench.answer(900, true);
    assert.ok(bench.told.includes('7 is known'));
    assert.ok(!bench.told.includes('7 is whole'));
    assert.equal(bench.fetched.length, 1, 'another partition is still read');
    bench.answer(900, true, 'store-a', 8);
    assert.deepEqual(bench.fetched.at(-1)?.positions, [7, 9]);
  });

  test('make a partition whole with the last of them, or when its entry ends', () => {
    const bench = new Bench();
    bench.absent = 1;
    bench.rest = [7];
    bench.begin();
    bench.answer(900, true);
    bench.absent = 0;
    bench.answerFetch(7);
    assert.equal(bench.told.at(-1), '7 is whole');
    bench.absent = 1;
    bench.begin();
    bench.answer(900, true);
    assert.equal(bench.told.at(-1), '7 is known');
    bench.absent = 0;
    bench.readings.start();
    assert.equal(bench.told.at(-1), '7 is whole');
  });

  test('of an answer that a path which failed over brings again count for nothing: others are asked for now', () => {
    const bench = new Bench();
    bench.absent = 2;
    bench.rest = [7];
    bench.begin();
    bench.answer(900, true);
    const first = bench.fetched.at(-1)?.ask ?? 0;
    bench.readings.onConnectionLost('store-a');
    bench.rest = [5, 7];
    bench.readings.start();
    bench.answerFetch(7, 'store-a', first);
    assert.ok(!bench.told.some((text) => text.startsWith('bodies')));
    bench.answerFetch(7);
    assert.equal(bench.told.filter((text) => text.startsWith('bodies')).length, 1);
  });

  test('that are damaged are asked for at the copy that is equal; what is unanswered is asked for again', () => {
    const bench = new Bench();
    bench.other = 'store-b';
    bench.absent = 1;
    bench.rest = [7];
    bench.begin();
    bench.answer(900, true);
    bench.isSound = false;
    bench.answerFetch(7);
    assert.ok(bench.told.includes('the source is store-b'));
    assert.equal(bench.told.at(-1), 'asked for again');
    bench.rest = [7];
    bench.readings.start();
    assert.equal(bench.fetched.at(-1)?.storeId, 'store-b');
    bench.isSound = true;
    bench.answerFetch(7, 'store-a');
    assert.ok(!bench.told.includes('bodies, of the last copy'), 'late answers of the other count for nothing');
    bench.answerFetch(7, 'store-b');
    assert.ok(bench.told.includes('bodies, of the last copy'));
    bench.rest = [7];
    bench.readings.start();
    const before = bench.told.length;
    bench.readings.onConnectionLost('store-b');
    assert.deepEqual(bench.told.slice(before), ['asked for again']);
  });

  test('that are damaged wait for the copy that is equal while that is away, and are held when it counts no more', () => {
    const bench = new Bench();
    bench.absent = 1;
    bench.rest = [7];
    bench.begin();
    bench.answer(900, true);
    bench.mayHaveOther = true;
    bench.isSound = false;
    bench.answerFetch(7);
    assert.deepEqual(bench.told.slice(-2), ['bodies', 'asked for again']);
    bench.rest = [7];
    bench.readings.start();
    assert.equal(bench.fetched.length, 1);
    bench.mayHaveOther = false;
    bench.readings.start();
    assert.deepEqual(bench.fetched.map(({ storeId }) => storeId), ['store-a', 'store-a']);
    bench.isSound = true;
    bench.answerFetch(7);
    assert.ok(bench.told.includes('bodies, of the last copy'));
  });
});
