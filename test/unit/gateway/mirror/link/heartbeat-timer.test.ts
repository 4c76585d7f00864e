import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { ALWAYS, HeartbeatTimer, NEVER } from '../../../../../src/gateway/mirror/link/heartbeat-timer.js';

function heartbeat(): HeartbeatTimer {
  const life = new HeartbeatTimer({ heartbeatMs: 250, failoverTimeoutMs: 2_000, stallMs: 3_000 });
  life.begin(1_000);
  return life;
}

/** One tick of a path whose other path speaks since `otherMs`. */
function isGivenUp(life: HeartbeatTimer, nowMs: number, isLate = false, otherMs: number = ALWAYS): boolean {
  life.listen(nowMs, isLate);
  return life.isGivenUp(nowMs, otherMs);
}

describe('rule of life', () => {
  test('a silent peer is suspected at the timeout and given up one tick later', () => {
    const life = heartbeat();
    assert.equal(isGivenUp(life, 2_950), false);
    assert.equal(isGivenUp(life, 3_000), false, 'first look: bytes may wait in the kernel');
    assert.equal(isGivenUp(life, 3_050), true);
  });

  test('bytes between the two looks save it, and the silence counts from there', () => {
    const life = heartbeat();
    isGivenUp(life, 3_000);
    life.heard();
    assert.equal(isGivenUp(life, 3_050), false);
    assert.equal(isGivenUp(life, 5_000), false);
    assert.equal(isGivenUp(life, 5_050), false, 'suspected again');
    assert.equal(isGivenUp(life, 5_100), true);
  });

  test('a late loop starts the verdict anew, also for a suspect', () => {
    const life = heartbeat();
    assert.equal(isGivenUp(life, 9_000, true), false);
    assert.equal(isGivenUp(life, 9_050), false);
    assert.equal(isGivenUp(life, 11_000), false, 'suspect');
    assert.equal(isGivenUp(life, 13_000, true), false);
    assert.equal(isGivenUp(life, 13_050), false);
  });

  test('while the other path does not speak either, silence lasts the stall longer', () => {
    const life = heartbeat();
    assert.equal(isGivenUp(life, 5_950, false, NEVER), false);
    assert.equal(isGivenUp(life, 6_000, false, NEVER), false);
    assert.equal(isGivenUp(life, 6_050, false, NEVER), true);
  });

  test('silence counts from where the present speech of the other path began', () => {
    const life = heartbeat();
    assert.equal(isGivenUp(life, 4_000, false, 3_900), false, 'both were silent until then');
    assert.equal(isGivenUp(life, 5_900, false, 3_900), false, 'suspect');
    assert.equal(isGivenUp(life, 5_950, false, 3_900), true);
  });

  test('a path that falls silent during the two looks of the other clears the suspicion', () => {
    const life = heartbeat();
    assert.equal(isGivenUp(life, 3_000, false, 1_000), false);
    assert.equal(isGivenUp(life, 3_050, false, NEVER), false);
    assert.equal(isGivenUp(life, 3_100, false, 1_000), false);
    assert.equal(isGivenUp(life, 3_150, false, 1_000), true);
  });

  test('a path speaks until half the timeout passes without a byte, and begins anew after that', () => {
    const life = heartbeat();
    life.heard();
    life.listen(1_900, false);
    assert.equal(life.speaksSinceMs(1_900), 1_000);
    assert.equal(life.speaksSinceMs(2_900), 1_000);
    assert.equal(life.speaksSinceMs(2_901), NEVER);
    life.heard();
    life.listen(4_000, false);
    assert.equal(life.speaksSinceMs(4_000), 4_000);
  });

  test('a gap in which we did not listen is none of the peer', () => {
    const life = heartbeat();
    life.listen(9_000, true);
    assert.equal(life.speaksSinceMs(9_000), 1_000);
  });

  test('heartbeats are due every interval, not more often', () => {
    const life = heartbeat();
    assert.equal(life.takeDue(1_200), false);
    assert.equal(life.takeDue(1_250), true);
    assert.equal(life.takeDue(1_250), false);
    assert.equal(life.takeDue(1_500), true);
  });
});
