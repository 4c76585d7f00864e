/** What one path says when it can't be had: once for each cause, and with a hint where the cause says little. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PathLog } from '../../../../../src/gateway/mirror/link/path-log.js';
import { PathState } from '../../../../../src/gateway/mirror/link/path-state.js';
import { KeptLog } from '../../../../scenario/ports.js';

function told(say: (log: PathLog) => void): unknown[] {
  const log = new KeptLog(() => 0, () => undefined);
  say(new PathLog(log, 'store-a', 'A', 'box:1'));
  return log.lines.map(({ fields }) => fields['reason']);
}

test('a store that ends the connection without an answer to HELLO may want TLS; said once', () => {
  const reasons = told((log) => {
    for (let i = 0; i < 3; i++) log.lost('closed by the peer', PathState.GREETING);
  });
  assert.deepEqual(reasons, ['closed by the peer without an answer; does it want TLS?']);
});

test('one that has answered, or that says more, is told as it is', () => {
  const reasons = told((log) => {
    log.lost('closed by the peer', PathState.PROVING);
    log.lost('connection refused', PathState.CONNECTING);
    log.lost('closed by the peer at once: its log says why', PathState.GREETING);
    log.lost('closed by the peer', PathState.RUN);
  });
  assert.deepEqual(reasons, ['closed by the peer', 'connection refused', 'closed by the peer at once: its log says why', 'closed by the peer']);
});
