/** The probe in a process of its own: what it says of turns must be the CPU time that was used in them. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';

import { CpuGroup } from '../../../bench/peers/cpu-group.js';
import { Probes } from '../../../bench/probe-report.js';

const BURN_MS = 60;
/** Uses the processor for BURN_MS in one turn when told to by a line, says so, and sleeps else. */
const PROGRAM = `
process.stdin.on('data', () => {
  const until = process.cpuUsage().user + ${BURN_MS * 1000};
  while (process.cpuUsage().user < until);
  process.stdout.write('burnt\\n');
});
setInterval(() => undefined, 20);
process.stdout.write('ready\\n');`;

test('the probe tells the CPU time of the longest turn since it was last asked', { timeout: 60_000 }, async () => {
  const probes = new Probes();
  const child = spawn(process.execPath, [...probes.nodeArguments, '-e', PROGRAM], { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    const pid = child.pid ?? 0;
    await once(child.stdout, 'data');
    await probes.read(pid);
    child.stdin.write('burn\n');
    await once(child.stdout, 'data');
    const burnt = await probes.read(pid);
    assert.ok(burnt.maxMs >= BURN_MS * 0.9, JSON.stringify(burnt));
    assert.ok(burnt.p50Ms < BURN_MS / 2 && burnt.heapTotalBytes > 0, JSON.stringify(burnt));
    const after = await probes.read(pid);
    assert.ok(after.maxMs < BURN_MS / 2, JSON.stringify(after));
    // It must not keep the loop awake: a spinning one makes a hundred thousand turns in this time.
    assert.ok(burnt.turns < 2000, JSON.stringify(burnt));
  } finally {
    child.kill('SIGKILL');
    probes.close();
  }
});

test('a control group counts what a child of a child used, also when it has ended', { timeout: 60_000 }, async () => {
  const group = new CpuGroup();
  const burn = `const until = process.cpuUsage().user + 200000; while (process.cpuUsage().user < until);`;
  const [program = '/bin/sh', ...args] = [...group.prefix, '/bin/sh', '-c', '"$0" -e "$1"; exec sleep 1', process.execPath, burn];
  const child = spawn(program, args, { stdio: 'ignore' });
  const ended = once(child, 'exit');
  const until = performance.now() + 30_000;
  // Without control groups the parent has the ended child's time: the same is asked of both ways.
  while (group.usedMicros(child.pid ?? 0) < 200_000 && performance.now() < until && child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 20));
  const used = group.usedMicros(child.pid ?? 0);
  await ended;
  await group.close();
  assert.ok(used >= 200_000, `${used} µs`);
});
