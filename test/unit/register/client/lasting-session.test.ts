/** The states of a session, and when its right ends. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  LastingSession,
  SessionState,
  isValidSessionTransition,
} from '../../../../src/register/client/lasting-session.js';
import type { LeaseAnswer, Line } from '../../../../src/register/line.js';

/** Keeps what is asked of it. */
class AskedLine implements Line {
  readonly asked: {
    readonly call: string;
    readonly session: string;
    readonly done: (answer: LeaseAnswer) => void;
  }[] = [];

  open(): void {}

  transact(): void {}

  range(): void {}

  watch(): { close(): void; } {
    return { close: () => {} };
  }

  grant(session: string, _ttlMs: number, done: (answer: LeaseAnswer) => void): void {
    this.asked.push({ call: 'grant', session, done });
  }

  renew(session: string, done: (answer: LeaseAnswer) => void): void {
    this.asked.push({ call: 'renew', session, done });
  }

  revoke(session: string, done: (answer: LeaseAnswer) => void): void {
    this.asked.push({ call: 'revoke', session, done });
  }

  reset(): void {}

  close(): void {}
}

const TTL_MS = 10_000;
/** What is taken off for the drift of two clocks: 1% and 200 ms. */
const DRIFT_MS = 300;

function open(onChange = (): void => {}): { session: LastingSession; line: AskedLine; told: string[]; act(nowMs: number): void; } {
  const told: string[] = [];
  const line = new AskedLine();
  const session = new LastingSession(TTL_MS, {
    onOpen: () => void told.push('open'),
    onLost: () => void told.push('lost'),
  }, {
    random: Math.random,
    soon: (run) => {
      run();
    },
    onChange,
  });
  return {
    session,
    line,
    told,
    act: (nowMs) => {
      session.act(line, nowMs, 5_000, () => {});
    },
  };
}

test('the right is counted from before a request was sent, and never by more than was asked for', () => {
  const { session, line, told, act } = open();
  act(1_000);
  assert.equal(session.validUntilMs, 0);
  // The answer comes two seconds later, and grants more.
  line.asked[0]?.done({ kind: 'granted', ttlMs: 60_000 });
  assert.deepEqual([session.validUntilMs, told], [1_000 + TTL_MS - DRIFT_MS, ['open']]);
  act(4_000);
  assert.equal(line.asked.length, 1, 'renewed every third of its time');
  act(4_400);
  line.asked[1]?.done({ kind: 'granted', ttlMs: 4_000 });
  assert.equal(
    session.validUntilMs,
    1_000 + TTL_MS - DRIFT_MS,
    'a shorter grant takes nothing away that was granted',
  );
  act(8_000);
  line.asked[2]?.done({ kind: 'gone' });
  assert.deepEqual([session.validUntilMs, session.id, told], [0, '', ['open', 'lost']]);
});

test('an attempt whose answer is lost is followed by another session, not by the same', () => {
  const { session, line, told, act } = open();
  act(0);
  session.lineDown();
  act(10);
  assert.equal(line.asked.length, 2);
  assert.notEqual(line.asked[0]?.session, line.asked[1]?.session);
  line.asked[0]?.done({ kind: 'granted', ttlMs: TTL_MS });
  assert.deepEqual(told, [], 'what belongs to an older connection is not for us');
  line.asked[1]?.done({ kind: 'granted', ttlMs: TTL_MS });
  assert.equal(session.id, line.asked[1]?.session);
});

test('an answer of before the line was lost says nothing of the session that is renewed', () => {
  const { session, line, told, act } = open();
  act(0);
  line.asked[0]?.done({ kind: 'granted', ttlMs: TTL_MS });
  act(4_000);
  session.lineDown();
  line.asked[1]?.done({ kind: 'gone' });
  act(4_010);
  assert.deepEqual([line.asked.map(({ call }) => call), told], [['grant', 'renew', 'renew'], ['open']]);
  line.asked[2]?.done({ kind: 'granted', ttlMs: TTL_MS });
  assert.equal(session.validUntilMs, 4_010 + TTL_MS - DRIFT_MS);
});

test('who acts for it is told of each answer, and acts again', () => {
  let changes = 0;
  const { session, line, act } = open(() => { changes += 1; });
  act(0);
  line.asked[0]?.done({ kind: 'granted', ttlMs: TTL_MS });
  assert.equal(changes, 1);
  session.close(() => {});
  const before = changes;
  act(10);
  line.asked[1]?.done({ kind: 'gone' });
  assert.deepEqual([session.isOver, changes], [true, before + 1]);
});

test('closing revokes what may have been granted, and is given up at its deadline', () => {
  const { session, line, act } = open();
  act(0);
  const known: boolean[] = [];
  session.close((isKnown) => void known.push(isKnown));
  act(10);
  assert.deepEqual(line.asked.map(({ call }) => call), ['grant', 'revoke']);
  assert.equal(line.asked[1]?.session, line.asked[0]?.session);
  line.asked[0]?.done({ kind: 'granted', ttlMs: TTL_MS });
  assert.equal(session.id, '');
  act(5_000);
  assert.deepEqual(known, []);
  act(5_010);
  assert.deepEqual([known, session.isOver], [[false], true]);
});

test('the arrows of a session', () => {
  const states = Object.values(SessionState);
  const arrows = states.flatMap((from) =>
    states.filter((to) => isValidSessionTransition(from, to)).map((to) => `${String(from)}${String(to)}`)
  );
  assert.deepEqual(arrows, ['01', '03', '04', '12', '13', '14', '24', '34']);
});
