import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { EntryState, EntryTable, isValidEntryTransition } from '../../../../src/gateway/queue/entry-table.js';
import { MailQueue } from '../../../../src/gateway/queue/mail-queue.js';
import type { Ordering, Route } from '../../../../src/gateway/mail-types.js';
import { quietPartition } from '../quiet-partition.js';

const S = EntryState;

function route(ordering: Ordering, concurrency = 4): Route {
  return { queueName: 'q', queueClass: 'mail', label: 'mail/q', nextHop: { protocol: 'smtp', host: 'h', port: 25 }, ordering, concurrency, lengthMax: 100 };
}

function queueOf(ordering: Ordering = 'fifo'): { queue: MailQueue; table: EntryTable } {
  const table = new EntryTable(7);
  const partition = quietPartition(table);
  const queue = new MailQueue({ handle: 1, route: route(ordering), routed: true }, partition, table);
  partition.queues.set(queue.label, queue);
  return { table, queue };
}

describe('entry states', () => {
  test('each pair of states is an arrow of the diagram or an error', () => {
    const arrows: Record<number, readonly number[]> = {
      [S.FREE]: [S.STORING, S.READY, S.DEFERRED, S.REPORTING, S.HELD],
      [S.STORING]: [S.READY, S.DEFERRED, S.REPORTING, S.HELD, S.FREE],
      [S.READY]: [S.IN_FLIGHT, S.DEFERRED, S.REPORTING, S.HELD, S.FREE],
      [S.IN_FLIGHT]: [S.READY, S.DEFERRED, S.REPORTING, S.HELD, S.FREE],
      [S.DEFERRED]: [S.READY, S.REPORTING, S.HELD, S.FREE],
      [S.REPORTING]: [S.DEFERRED, S.READY, S.HELD, S.FREE],
      [S.HELD]: [S.READY, S.DEFERRED, S.REPORTING, S.FREE],
    };
    for (const from of Object.values(S)) {
      for (const to of Object.values(S)) {
        const expected = arrows[from]?.includes(to) === true;
        assert.equal(isValidEntryTransition(from, to), expected, `${String(from)} to ${String(to)}`);
        const table = new EntryTable(1);
        const row = table.take(1, 1);
        const path: readonly (typeof to)[] = from === S.FREE ? [] : from === S.IN_FLIGHT ? [S.READY, S.IN_FLIGHT] : [from];
        for (const step of path) table.transition(row, step);
        if (expected) table.transition(row, to);
        else assert.throws(() => { table.transition(row, to); });
      }
    }
  });

  test('a row is given back only when it is free, and is found by message and queue', () => {
    const table = new EntryTable(3);
    const row = table.take(42, 9);
    assert.equal(table.index.find(42, 9), row);
    table.transition(row, S.STORING);
    assert.throws(() => { table.release(row); });
    table.transition(row, S.FREE);
    table.release(row);
    assert.equal(table.index.find(42, 9), 0);
    assert.equal(table.inUse, 0);
  });
});

/** The same queue as plain lists. */
class Model {
  order: number[] = [];
  ready: number[] = [];
  late: number[] = [];
  inFlight: number[] = [];
  /** Back from attempts that never began: they stand before `ready`, by their positions. */
  returned: number[] = [];
  /** Kept back, of either. */
  keptReturned: number[] = [];
  kept: number[] = [];
  /** Of those, the next to be judged; and those that were let go since, as long as they are ready. */
  toJudge: number | undefined;
  letGo: number[] = [];
  held: number[] = [];
  recovered = 0;

  get allKept(): readonly number[] {
    return [...this.keptReturned, ...this.kept];
  }

  /** It stands there no more: of what is kept back the one behind it is judged then. */
  leave(row: number): void {
    const all = this.allKept;
    if (row === this.toJudge) this.toJudge = all[all.indexOf(row) + 1];
    for (const list of ['ready', 'late', 'kept', 'keptReturned', 'letGo'] as const) this[list] = this[list].filter((other) => other !== row);
  }
}

describe('mail queue', () => {
  test('agrees with plain lists in any mixture of live mail, recovery, attempts and ends', () => {
    const commands = fc.array(fc.record({ what: fc.constantFrom('live', 'live', 'back', 'take', 'take', 'end', 'again', 'first', 'keep', 'keep', 'judge', 'let-go', 'let-go', 'remove', 'hold', 'release', 'whole'), which: fc.nat(1000) }), { maxLength: 120, size: 'max' });
    fc.assert(fc.property(commands, (list) => {
      const { queue, table } = queueOf();
      const model = new Model();
      queue.partition.isRecovering = true;
      let back = 0;
      let live = 10_000;
      let recovering = true;
      const positions = (rows: readonly number[]): number[] => rows.map((row) => table.position.get(row));
      const sorted = (rows: readonly number[]): number[] => rows.slice().sort((a, b) => table.position.get(a) - table.position.get(b));
      const drop = (row: number): void => {
        queue.unlink(row, 10);
        const at = model.order.indexOf(row);
        if (at < model.recovered) model.recovered -= 1;
        model.order.splice(at, 1);
        table.transition(row, S.FREE);
        table.release(row);
      };
      for (const { what, which } of list) {
        if (what === 'live') {
          const row = table.take(live, 1);
          table.position.set(row, live++);
          table.transition(row, S.STORING);
          queue.append(row, 10);
          model.order.push(row);
          queue.makeReady(row, false);
          (recovering ? model.late : model.ready).push(row);
        } else if (what === 'back' && recovering) {
          const row = table.take(++back, 1);
          table.position.set(row, back);
          queue.appendRecovered(row, 10);
          model.order.splice(model.recovered++, 0, row);
          queue.makeReady(row, true);
          model.ready.push(row);
        } else if (what === 'take') {
          const row = queue.takeReady(0);
          assert.equal(row, model.returned.shift() ?? model.ready.shift() ?? 0);
          model.leave(row);
          if (row !== 0) model.inFlight.push(row);
        } else if (what === 'first' && model.inFlight.length > 0) {
          const [row] = model.inFlight.splice(which % model.inFlight.length, 1);
          if (row === undefined) continue;
          queue.inFlightCount -= 1;
          queue.makeReadyFirst(row);
          model.returned = sorted([...model.returned, row]);
        } else if (what === 'keep' && model.returned.length + model.ready.length > 0) {
          const [first] = model.returned;
          queue.keepBack(first ?? model.ready[0] ?? 0);
          if (first !== undefined) model.keptReturned = sorted([...model.keptReturned, ...model.returned.splice(0, 1)]);
          else {
            const [row = 0] = model.ready;
            model.leave(row);
            model.kept.push(row);
          }
        } else if (what === 'judge') {
          queue.beginToLetGo();
          [model.toJudge, model.letGo] = [model.allKept[0], []];
        } else if (what === 'let-go') {
          const row = model.toJudge;
          const stays = which % 3 === 0;
          assert.equal(queue.letGoNext((judged) => {
            assert.equal(judged, row);
            return stays;
          }), row !== undefined);
          if (row === undefined) continue;
          const isReturned = model.keptReturned.includes(row);
          if (stays) {
            model.toJudge = model.allKept[model.allKept.indexOf(row) + 1];
            continue;
          }
          model.leave(row);
          if (isReturned) model.returned = sorted([...model.returned, row]);
          else {
            model.ready.splice(model.ready.indexOf(model.letGo.at(-1) ?? 0) + 1, 0, row);
            model.letGo.push(row);
          }
        } else if (what === 'end' && model.inFlight.length > 0) {
          const [row] = model.inFlight.splice(which % model.inFlight.length, 1);
          if (row === undefined) continue;
          queue.inFlightCount -= 1;
          drop(row);
        } else if (what === 'again' && model.inFlight.length > 0) {
          // Deferred, and due again: whatever is still to come back, it does not wait for that.
          const [row] = model.inFlight.splice(which % model.inFlight.length, 1);
          if (row === undefined) continue;
          queue.inFlightCount -= 1;
          table.transition(row, S.DEFERRED);
          queue.makeReady(row, false);
          model.ready.push(row);
        } else if (what === 'remove') {
          // How many are back from attempts that never began is counted at most, so none of those goes here.
          const all = [...model.ready, ...model.late, ...model.allKept];
          const row = all[which % all.length];
          if (row === undefined) continue;
          queue.removeReady(row);
          model.leave(row);
          drop(row);
        } else if (what === 'hold' && !recovering) {
          const all = [...model.ready, ...model.kept];
          const row = all[which % all.length];
          if (row === undefined) continue;
          queue.removeReady(row);
          table.transition(row, S.HELD);
          model.leave(row);
          model.held.push(row);
        } else if (what === 'release' && model.held.length > 0) {
          const [row = 0] = model.held.splice(which % model.held.length, 1);
          queue.makeReady(row, false);
          model.ready.push(row);
        } else if (what === 'whole' && recovering) {
          recovering = false;
          queue.partition.endRecovery();
          model.ready.push(...model.late);
          model.late = [];
        }
        assert.equal(queue.readyCount, model.returned.length + model.ready.length);
        assert.equal(queue.keepsAny, model.allKept.length > 0);
        const ready: number[] = [];
        for (let row = queue.firstReady; row !== 0; row = queue.readyBehind(row)) ready.push(row);
        assert.deepEqual(ready, [...model.returned, ...model.ready]);
        assert.equal(queue.length, model.order.length);
        assert.equal(queue.bytes, 10 * model.order.length);
        assert.equal(queue.inFlightCount, model.inFlight.length);
        const walked: number[] = [];
        for (let row = queue.first; row !== 0; row = queue.following(row)) walked.push(row);
        assert.deepEqual(walked, model.order);
        assert.deepEqual(positions(walked), positions(walked).slice().sort((a, b) => a - b));
      }
    }), { numRuns: 300 });
  });

  test('attempts that never began come back in the order of their positions', () => {
    const { queue, table } = queueOf();
    const rows = [1, 2, 3, 4, 5].map((position) => {
      const row = table.take(position, 1);
      table.position.set(row, position);
      table.transition(row, S.STORING);
      queue.append(row, 1);
      queue.makeReady(row, false);
      return row;
    });
    const taken = [queue.takeReady(0), queue.takeReady(0), queue.takeReady(0)];
    assert.deepEqual(taken, rows.slice(0, 3));
    for (const row of [taken[1], taken[2], taken[0]]) {
      queue.inFlightCount -= 1;
      queue.makeReadyFirst(row ?? 0);
    }
    assert.deepEqual([1, 2, 3, 4, 5].map(() => queue.takeReady(0)), rows);
  });

  test('attempts that never began go before what is tried again, in the order of their positions, however many that is', () => {
    const { queue, table } = queueOf();
    const numbers = (from: number, to: number): number[] => Array.from({ length: to - from + 1 }, (_none, index) => from + index);
    const rows = numbers(1, 33).map((position) => {
      const row = table.take(position, 1);
      table.position.set(row, position);
      table.transition(row, S.STORING);
      queue.append(row, 1);
      queue.makeReady(row, false);
      return row;
    });
    const again = rows.slice(0, 30);
    for (const row of again) {
      assert.equal(queue.takeReady(0), row);
      queue.inFlightCount -= 1;
      table.transition(row, S.DEFERRED);
      queue.makeReady(row, false);
    }
    const [first = 0, second = 0, third = 0] = [queue.takeReady(0), queue.takeReady(0), queue.takeReady(0)];
    for (const row of [first, third, second]) {
      queue.inFlightCount -= 1;
      queue.makeReadyFirst(row);
    }
    assert.deepEqual(numbers(1, 33).map(() => queue.takeReady(0)), [...rows.slice(30), ...again]);
  });

  test('a strict queue hands out one at a time, and none while its head waits', () => {
    const { queue, table } = queueOf('strict');
    for (const position of [1, 2]) {
      const row = table.take(position, 1);
      table.position.set(row, position);
      table.transition(row, S.STORING);
      queue.append(row, 1);
      queue.makeReady(row, false);
    }
    const head = queue.takeReady(0);
    assert.equal(queue.takeReady(0), 0);
    queue.inFlightCount -= 1;
    queue.makeReadyFirst(head);
    queue.blockBy(head, 100);
    assert.equal(queue.takeReady(99), 0);
    assert.equal(queue.takeReady(100), head);
  });

  test('a strict queue waits at an entry that keeps its place while it is reported, and hands out what stands before it', () => {
    const { queue, table } = queueOf('strict');
    const [first, second, third] = [1, 2, 3].map((position) => {
      const row = table.take(position, 1);
      table.position.set(row, position);
      queue.append(row, 1);
      queue.makeReady(row, false);
      return row;
    }) as [number, number, number];
    table.transition(second, S.REPORTING);
    assert.deepEqual([first, second, third].map((row) => queue.hasPlace(row)), [true, true, true]);
    assert.equal(queue.takeReady(0), first);
    queue.inFlightCount -= 1;
    assert.equal(queue.hasPlace(first), false);
    assert.equal(queue.takeReady(0), 0);
    table.transition(second, S.READY);
    assert.equal(queue.takeReady(0), second);
    queue.inFlightCount -= 1;
    table.transition(third, S.REPORTING);
    queue.removeReady(third);
    assert.deepEqual([queue.hasPlace(third), queue.readyCount, queue.nextReady(0)], [false, 0, 0]);
  });

  test('live entries out of order are our bug', () => {
    const { queue, table } = queueOf();
    for (const position of [5, 4]) {
      const row = table.take(position, 1);
      table.position.set(row, position);
      if (position === 5) queue.append(row, 1);
      else assert.throws(() => { queue.append(row, 1); });
    }
  });
});
