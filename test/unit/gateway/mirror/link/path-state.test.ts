import { test } from 'node:test';
import assert from 'node:assert/strict';
import { PairState, PAIR_STATES, isValidPairTransition } from '../../../../../src/gateway/mirror/link/pair-state.js';
import { PathState, PATH_STATES, isValidTransition } from '../../../../../src/gateway/mirror/link/path-state.js';

test('exactly the arrows of the diagram are allowed', () => {
  const drawn = new Set([
    'NEW>WAITING', 'WAITING>CONNECTING',
    'CONNECTING>GREETING', 'CONNECTING>WAITING',
    'GREETING>PROVING', 'GREETING>WAITING',
    'PROVING>READY', 'PROVING>RUN', 'PROVING>WAITING',
    'READY>WAITING', 'RUN>WAITING',
    'GREETING>CONNECTING', 'PROVING>CONNECTING', 'READY>CONNECTING',
    'NEW>STOPPED', 'WAITING>STOPPED', 'CONNECTING>STOPPED', 'GREETING>STOPPED', 'PROVING>STOPPED', 'READY>STOPPED', 'RUN>STOPPED',
  ]);
  const states: PathState[] = Object.values(PathState);
  for (const from of states) {
    for (const to of states) {
      const arrow = `${PATH_STATES[from].name}>${PATH_STATES[to].name}`;
      assert.equal(isValidTransition(from, to), drawn.has(arrow), arrow);
    }
  }
});

test('each state has the name it is known by', () => {
  for (const [name, state] of Object.entries(PathState)) assert.equal(PATH_STATES[state].name, name);
});

test('exactly the arrows between states of two paths together are allowed', () => {
  const drawn = new Set(['DOWN>UP', 'UP>DOWN', 'UP>SWITCHING', 'SWITCHING>UP', 'SWITCHING>DOWN', 'DOWN>OVER', 'UP>OVER', 'SWITCHING>OVER']);
  const states: PairState[] = Object.values(PairState);
  for (const from of states) {
    for (const to of states) {
      const arrow = `${PAIR_STATES[from].name}>${PAIR_STATES[to].name}`;
      assert.equal(isValidPairTransition(from, to), drawn.has(arrow), arrow);
    }
  }
  for (const [name, state] of Object.entries(PairState)) assert.equal(PAIR_STATES[state].name, name);
});
