/** What `up` passes on to its processes, with a process that tells what it got. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { ProcessLog } from '../../../src/cli/up/process-log.js';
import { Supervised } from '../../../src/cli/up/supervised.js';
import { until } from '../register/real-world.js';

/** Follows signals, and says so, only some time after its start. */
const SCRIPT = `
setTimeout(() => {
  for (const name of ['SIGHUP', 'SIGUSR2']) process.on(name, () => console.log('got ' + name));
  console.log('started');
  process.on('disconnect', () => process.exit(1));
}, 300);`;

test('a signal that is passed on before a process follows it waits for that, and ends nothing', async (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'up-supervised-'));
  const entry = path.join(folder, 'process.js');
  writeFileSync(entry, SCRIPT);
  const log = new ProcessLog(path.join(folder, 'process.log'));
  const deaths: string[] = [];
  const plan = { name: 'store-a', args: [], roles: [], ports: [] };
  const one = new Supervised({ plan, entry, environment: process.env }, log, {
    onStarted: () => undefined, onDied: (_process, how) => { deaths.push(how); },
  });
  t.after(async () => {
    await one.stop(5_000);
    log.close();
    rmSync(folder, { recursive: true });
  });
  const said = (): string => log.lastLines(20).join();
  one.pass('SIGUSR2');
  one.start();
  one.pass('SIGHUP');
  one.pass('SIGHUP');
  await until(() => ['SIGHUP', 'SIGUSR2'].every((name) => said().includes(name)), 'its words', 10_000);
  assert.deepEqual([said().split(',').sort(), deaths], [['got SIGHUP', 'got SIGUSR2', 'started'], []]);
  one.pass('SIGHUP');
  await until(() => said().split('got SIGHUP').length === 3, 'another one', 10_000);
});
