import assert from 'node:assert/strict';
import { test } from 'node:test';
import { STATE_NAME, State, isValidTransition } from '../../../src/load/session-states.js';

test('exactly the arrows of the diagram are allowed', () => {
  const drawn = new Set([
    'CONNECTING>GREETING', 'GREETING>HELLO', 'HELLO>READY', 'READY>QUITTING',
    'HELLO>STARTTLS', 'STARTTLS>SECURING', 'SECURING>HELLO', 'HELLO>AUTH', 'AUTH>READY',
    'CONNECTING>SECURING', 'SECURING>GREETING',
  ]);
  for (const [fromName, from] of Object.entries(State)) {
    assert.equal(STATE_NAME[from], fromName);
    for (const [toName, to] of Object.entries(State)) {
      const arrow = `${fromName}>${toName}`;
      const isEnd = to === State.CLOSED && from !== State.CLOSED;
      assert.equal(isValidTransition(from, to), isEnd || drawn.has(arrow), arrow);
    }
  }
});
