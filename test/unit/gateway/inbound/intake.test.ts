import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Intake } from '../../../../src/gateway/inbound/limits/intake.js';
import type { Reader } from '../../../../src/gateway/inbound/limits/intake.js';

class Connection implements Reader {
  isRead = true;
  hasGone = false;

  stopReading(): void { this.isRead = false; }

  startReading(): boolean {
    if (this.hasGone) return false;
    this.isRead = true;
    return true;
  }
}

const MAX = 3;

/** An intake whose messages are answered in the order in which they came. */
class Kit {
  readonly #intake = new Intake(MAX, () => undefined);
  readonly #inHand: number[] = [];

  look(): void { this.#intake.look(); }
  begin(): void { this.#inHand.push(this.#intake.begin()); }
  next(reader: Reader): void { this.#intake.next(reader); }

  end(): void {
    const begun = this.#inHand.shift();
    assert.ok(begun !== undefined);
    this.#intake.end(begun);
  }

  /** The message that came last. */
  endLast(): void {
    const begun = this.#inHand.pop();
    assert.ok(begun !== undefined);
    this.#intake.end(begun);
  }
}

/** `count` messages in hand, and as many connections whose messages were answered then. */
function full(count: number, answered: number): { readonly intake: Kit; readonly connections: readonly Connection[] } {
  const intake = new Kit();
  for (let i = 0; i < count; i++) intake.begin();
  const connections = Array.from({ length: answered }, () => new Connection());
  for (const each of connections) intake.next(each);
  return { intake, connections };
}

function readOnes(connections: readonly Connection[]): string {
  return connections.map((each) => (each.isRead ? 'r' : '-')).join('');
}

describe('the intake', () => {
  test('reads everybody on while fewer messages than the limit are in hand', () => {
    assert.equal(readOnes(full(MAX - 1, 4).connections), 'rrrr');
  });

  test('holds whoever was answered while the hands are full, and lets in one for each message that is answered, first come first', () => {
    const { intake, connections } = full(MAX, 3);
    assert.equal(readOnes(connections), '---');
    intake.end();
    assert.equal(readOnes(connections), 'r--');
    intake.begin();
    assert.equal(readOnes(connections), 'r--');
    intake.end();
    intake.end();
    assert.equal(readOnes(connections), 'rrr');
  });

  test('passes over who has gone', () => {
    const { intake, connections } = full(MAX, 3);
    for (const gone of connections.slice(0, 2)) gone.hasGone = true;
    intake.end();
    assert.equal(connections[2]?.isRead, true);
  });

  test('does not wait for clients that were let in and say nothing', () => {
    const { intake, connections } = full(MAX, 5);
    for (let i = 0; i < MAX; i++) intake.end();
    assert.equal(readOnes(connections), 'rrr--');
    intake.look();
    assert.equal(readOnes(connections), 'rrrrr');
  });

  test('does not let messages that take long stop others, but lets in no more than the limit at a look', () => {
    const { intake, connections } = full(MAX, 10);
    intake.look();
    assert.equal(readOnes(connections), 'rr--------', 'they may have been submitted a moment ago');
    for (let i = 0; i < 2; i++) intake.begin();
    intake.look();
    assert.equal(readOnes(connections), 'rrrr------');
    intake.look();
    assert.equal(readOnes(connections), 'rrrrrrr---');
  });

  test('lets in some at each look, though others who never stand in line keep the hands full', () => {
    const { intake, connections } = full(MAX, 5);
    for (const read of ['rr---', 'rrrr-', 'rrrrr']) {
      for (let i = 0; i < 2 * MAX; i++) intake.begin();
      intake.look();
      assert.equal(readOnes(connections), read);
      for (let i = 0; i < MAX; i++) intake.end();
    }
  });

  test('does not count messages that take long anew for who comes later, however many come and go', () => {
    const { intake, connections } = full(MAX, 1);
    intake.look();
    intake.look();
    assert.equal(readOnes(connections), 'r');
    for (let i = 0; i < 3; i++) {
      for (let messages = 0; messages < 2 * MAX; messages++) {
        intake.begin();
        intake.endLast();
      }
      intake.begin();
      const other = new Connection();
      intake.next(other);
      assert.equal(other.isRead, true);
      intake.endLast();
      intake.look();
    }
  });

  test('does not count who was answered after a look', () => {
    const { intake } = full(MAX, 1);
    intake.look();
    for (let i = 0; i < MAX; i++) intake.end();
    const other = new Connection();
    intake.next(other);
    assert.equal(other.isRead, true);
  });

  test('counts messages that come later, and no end of one that did not count any more', () => {
    const { intake } = full(MAX, 1);
    intake.look();
    intake.look();
    intake.look();
    for (let i = 0; i < MAX; i++) intake.end();
    for (let i = 0; i < MAX; i++) intake.begin();
    const other = new Connection();
    intake.next(other);
    assert.equal(other.isRead, false);
  });

  test('forgets a long line as it goes', () => {
    const { intake, connections } = full(MAX, 5000);
    for (let i = 0; i < 5000; i++) {
      intake.end();
      assert.equal(connections[i]?.isRead, true);
      assert.equal(connections[i + 1]?.isRead ?? false, false);
      intake.begin();
    }
  });
});
