/**
 * The log file under rotation while mail goes through: it is renamed again and again, now told by SIGUSR2, now not.
 * Each message has its two lines, whole, in one of the files; and no process ends for a signal that people send.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until } from './cluster.js';

const BOUND_MS = 20_000;
const COUNT = 3_000;
const ROTATIONS = 6;

for (const workers of [1, 2]) {
  test(`a log file that is renamed loses no line of ${String(workers)} process(es)`, { timeout: 120_000 }, async () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-log-file-'));
    const file = path.join(folder, 'gateway.log');
    const cluster = await startCluster({ workers, gateway: { log: { file } } });
    const texts = (): string => readdirSync(folder).map((name) => readFileSync(path.join(folder, name), 'utf8')).join('');
    const reopened = (): number => texts().split('\n').filter((line) => line.includes('the log file was opened anew')).length;
    // With workers there is one process more, which has no mail in it.
    const processes = workers === 1 ? 1 : workers + 1;
    try {
      // Which may still start: the first is ready before the others.
      await until('all take mail', () => texts().split('\n').filter((line) => line.includes('"event":"start"')).length === workers, BOUND_MS, cluster.gateway);
      const sending = runSend({ host: HOST, port: cluster.smtpPort, connections: 4, domains: ['a.example'], count: COUNT, rate: 600 });
      for (let round = 1; round <= ROTATIONS; round++) {
        renameSync(file, `${file}.${String(round)}`);
        if (round % 2 === 0) cluster.gateway.signal('SIGUSR2');
        await until(`${String(round)} rotations are seen by all`, () => reopened() === round * processes, BOUND_MS, cluster.gateway);
      }
      assert.equal((await sending).accepted, COUNT);
      await cluster.sinkHas(COUNT);
      await cluster.drained();
      const events = (event: string): number => texts().split('\n').filter((line) => line.includes(`"event":"${event}"`)).length;
      await until('each message has its lines', () => events('received') === COUNT && events('delivered') === COUNT, BOUND_MS, cluster.gateway);
      for (const line of texts().split('\n').slice(0, -1)) JSON.parse(line);
    } finally {
      await cluster.stop();
      rmSync(folder, { recursive: true });
    }
  });
}
