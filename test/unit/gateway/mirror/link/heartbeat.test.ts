import { describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { Heartbeat } from '../../../../../src/gateway/mirror/link/heartbeat.js';

function heartbeat(): Heartbeat {
  const life = new Heartbeat({ heartbeatMs: 250, failoverTimeoutMs: 2_000 });
  life.begin(1_000);
  return life;
}

describe('rule of life', () => {
  test('a silent peer is suspected at the timeout and given up one tick later', () => {
    const life = heartbeat();
    assert.equal(life.isGivenUp(2_950, false), false);
    assert.equal(life.isGivenUp(3_000, false), false, 'first look: bytes may wait in the kernel');
    assert.equal(life.isGivenUp(3_050, false), true);
  });

  test('bytes between the two looks save it, and the silence counts from there', () => {
    const life = heartbeat();
    life.isGivenUp(3_000, false);
    life.heard();
    assert.equal(life.isGivenUp(3_050, false), false);
    assert.equal(life.isGivenUp(5_000, false), false);
    assert.equal(life.isGivenUp(5_050, false), false, 'suspected again');
    assert.equal(life.isGivenUp(5_100, false), true);
  });

  test('a late loop starts the verdict anew, also for a suspect', () => {
    const life = heartbeat();
    assert.equal(life.isGivenUp(9_000, true), false);
    assert.equal(life.isGivenUp(9_050, false), false);
    assert.equal(life.isGivenUp(11_000, false), false, 'suspect');
    assert.equal(life.isGivenUp(13_000, true), false);
    assert.equal(life.isGivenUp(13_050, false), false);
  });

  test('heartbeats are due every interval, not more often', () => {
    const life = heartbeat();
    assert.equal(life.takeDue(1_200), false);
    assert.equal(life.takeDue(1_250), true);
    assert.equal(life.takeDue(1_250), false);
    assert.equal(life.takeDue(1_500), true);
  });
});
