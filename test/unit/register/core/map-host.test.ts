/**
 * The map with its clock and its place on disk: turns, sessions, watchers, and what a standstill does to
 * them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { MapHost } from '../../../../src/register/core/map-host.js';
import type { KeepResult } from '../../../../src/register/core/map-host.js';
import { RegisterMap } from '../../../../src/register/core/register-map.js';
import type { LeaseAnswer, LineWrite, TransactionAnswer } from '../../../../src/register/line.js';

class Host {
  readonly host: MapHost;
  nowMs = 0;
  /** Answers of the disk that are awaited. */
  readonly keeping: ((result: KeepResult) => void)[] = [];
  readonly #soon: (() => void)[] = [];

  constructor(map = new RegisterMap()) {
    const soon = (run: () => void): void => void this.#soon.push(run);
    this.host = new MapHost(map, {
      clock: { nowMs: () => this.nowMs, wallMs: () => 0 },
      soon,
      keep: (_map, done) => {
        this.keeping.push(done);
      },
    });
  }

  turn(): void {
    while (this.#soon.length > 0) this.#soon.shift()?.();
  }

  keep(result: KeepResult = { kind: 'kept' }): void {
    this.turn();
    this.keeping.shift()?.(result);
    this.turn();
  }

  tick(byMs: number): void {
    this.nowMs += byMs;
    this.host.tick(this.nowMs);
    this.turn();
  }

  put(key: string, session = ''): TransactionAnswer[] {
    const answers: TransactionAnswer[] = [];
    const write: LineWrite = {
      key,
      ifRevision: this.host.map.get(key)?.revision ?? 0,
      value: 'x',
      session,
      guards: [],
    };
    this.host.transact([write], (answer) => void answers.push(answer));
    return answers;
  }

  renew(session: string): string {
    const answers: LeaseAnswer[] = [];
    this.host.renew(session, (answer) => void answers.push(answer));
    this.turn();
    return answers[0]?.kind ?? '';
  }
}

test('what a turn brings is kept once, and answered when it is kept', () => {
  const host = new Host();
  const [one, two] = [host.put('a'), host.put('b')];
  host.turn();
  assert.deepEqual([host.keeping.length, one.length, two.length], [1, 0, 0]);
  const three = host.put('c');
  host.turn();
  assert.equal(host.keeping.length, 1, 'one state at a time');
  host.keep();
  assert.deepEqual([one.length, two.length, three.length, host.keeping.length], [1, 1, 0, 1]);
  host.keep();
  assert.equal(three.length, 1);
});

test('a state that is refused is nowhere; one that is unsure is told and read only once it is kept', () => {
  const host = new Host();
  const told: string[] = [];
  host.host.watch([''], 0, {
    onChanges: (changes) => void told.push(...changes.map(({ key }) => key)),
    onBroken: (why) => void told.push(why),
  });
  const refused = host.put('a');
  host.keep({ kind: 'refused', why: 'no space' });
  assert.deepEqual(refused, [{ kind: 'refused', reason: 'away', why: 'no space' }]);
  assert.equal(host.host.map.get('a'), undefined);
  const unsure = host.put('b');
  host.keep({ kind: 'unsure', why: 'error' });
  assert.deepEqual(unsure, [{ kind: 'unknown', why: 'error' }]);
  const reads: string[] = [];
  host.host.range([{ prefix: '' }], ({ kind }) => void reads.push(kind));
  const later = host.put('c');
  host.turn();
  assert.deepEqual([reads, later.map(({ kind }) => kind), told], [['failed'], ['refused'], []]);
  assert.equal(host.keeping.length, 0, 'the disk is left alone for a while');
  // Tried again by itself, also while calls keep coming.
  for (let i = 0; i < 15; i++) {
    host.put('d');
    host.tick(100);
  }
  assert.equal(host.keeping.length, 1);
  host.keep();
  assert.deepEqual(told, ['b']);
  host.host.range([{ prefix: '' }], ({ kind }) => void reads.push(kind));
  host.turn();
  assert.deepEqual(reads, ['failed', 'entries']);
});

test('a session that nobody renews ends with its keys, but not by a standstill', () => {
  const host = new Host();
  host.host.grant('17', 3_000, () => {});
  host.keep();
  host.put('s', '17');
  host.keep();
  for (let i = 0; i < 20; i++) host.tick(100);
  assert.equal(host.renew('17'), 'granted');
  // The process stood still for 8 s: renewals may wait unread.
  host.tick(8_000);
  assert.equal(host.keeping.length, 0);
  assert.equal(host.renew('17'), 'granted');
  for (let i = 0; i < 29; i++) host.tick(100);
  assert.equal(host.keeping.length, 0, 'not before its time');
  for (let i = 0; i < 2; i++) host.tick(100);
  assert.equal(host.renew('17'), 'gone', 'its end has begun');
  host.keep();
  assert.deepEqual([host.host.map.get('s'), host.host.map.sessions.size], [undefined, 0]);
});

test('a watcher from before the kept changes, or from the future, is told that they are not there', () => {
  const host = new Host(new RegisterMap(5));
  const broken: string[] = [];
  for (const after of [4, 6]) {
    host.host.watch([''], after, {
      onChanges: () => {},
      onBroken: (why) => void broken.push(why),
    });
  }
  host.turn();
  assert.equal(broken.length, 2);
  const told: number[] = [];
  for (let i = 0; i < 2_000; i++) host.put(`k${String(i)}`);
  host.keep();
  host.host.watch(['k1999'], 5, { onChanges: () => {}, onBroken: (why) => void broken.push(why) });
  host.host.watch(['k1'], 2_003, {
    onChanges: (changes) => void told.push(...changes.map(({ revision }) => revision)),
    onBroken: (why) => void broken.push(why),
  });
  host.turn();
  assert.deepEqual([broken.length, told], [3, [2_004, 2_005]]);
});

test('another state cuts watchers off and leaves what was being kept unknown', () => {
  const host = new Host();
  host.put('a');
  host.keep();
  const broken: string[] = [];
  host.host.watch([''], 1, { onChanges: () => {}, onBroken: (why) => void broken.push(why) });
  const answers = host.put('b');
  host.turn();
  host.host.replace(new RegisterMap());
  host.keep();
  assert.deepEqual([answers.map(({ kind }) => kind), broken.length, host.host.map.revision], [
    ['unknown'],
    1,
    0,
  ]);
});
