import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { cpuStatMicros } from '../../../../bench/peers/cpu-group.js';
import { parseStat, ticksOfTree } from '../../../../bench/peers/proc-stat.js';

describe('/proc/PID/stat', () => {
  test('is read behind a name with spaces and parentheses', () => {
    const text = '4242 (a) b (c) S 17 4242 4242 0 -1 4194560 100 200 0 0 31 12 7 5 20 0 1 0 100 1000 50';
    assert.deepEqual(parseStat(text), { pid: 4242, parent: 17, ownTicks: 43, waitedTicks: 12 });
  });

  test('is summed over a process and all that descend from it, in whatever order they stand', () => {
    const process = (pid: number, parent: number, ownTicks: number, waitedTicks: number) => ({ pid, parent, ownTicks, waitedTicks });
    const stats = [process(13, 12, 1, 0), process(12, 11, 10, 2), process(11, 1, 100, 20), process(14, 1, 5000, 0), process(1, 0, 9000, 0)];
    assert.equal(ticksOfTree(stats, 11), 133);
    assert.equal(ticksOfTree(stats, 13), 1);
  });
});

test('cpu.stat of a control group tells microseconds', () => {
  assert.equal(cpuStatMicros('usage_usec 123456\nuser_usec 100000\nsystem_usec 23456\n'), 123_456);
  assert.ok(Number.isNaN(cpuStatMicros('nothing')));
});
