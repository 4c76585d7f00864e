/**
 * The log file under rotation while mail goes through: it is renamed again and again, now told by SIGUSR2, now not.
 * Each message has its two lines, whole, in one of the files. Where the disk is full, mail goes on, and every line that
 * is lost is counted, and said.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, renameSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../src/load/run.js';
import { HOST, startCluster, until } from './cluster.js';
import { SmallDisk } from './small-disk.js';
import { twinpost } from './twinpost.js';

const BOUND_MS = 20_000;
const COUNT = 3_000;
const ROTATIONS = 6;

for (const workers of [1, 2]) {
  test(`a log file that is renamed loses no line of ${String(workers)} process(es)`, { timeout: 240_000 }, async () => {
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

const disk = SmallDisk.mount(256);

test('a log on a full disk: mail goes on, status and metrics say so, each lost line is counted, and told when there is room', { skip: disk === undefined ? 'nobody may mount a disk here' : false, timeout: 180_000 }, async () => {
  assert.ok(disk !== undefined);
  const file = path.join(disk.folder, 'gateway.log');
  const cluster = await startCluster({ gateway: { log: { file } } });
  const admin = `${HOST}:${String(cluster.adminPort)}`;
  try {
    // Two lines each, of more than 300 bytes: more than the disk and 4 MiB.
    const count = 10_000;
    assert.equal((await runSend({ host: HOST, port: cluster.smtpPort, connections: 20, domains: ['a.example'], count })).accepted, count);
    await cluster.sinkHas(count, 60_000);
    await cluster.drained();
    const said = await cluster.status();
    assert.equal(said.log?.failing, 'ENOSPC');
    const lost = said.log.lost_lines;
    assert.ok(lost > 1_000, `${String(lost)} lost`);
    const shown = await twinpost(['status', '--from', admin]);
    assert.match(shown.out, /^ERROR gateway-1: the log can't be written: ENOSPC; [\d,]+ lines lost/);
    assert.match(shown.out, /^ {2}LOG {9}[\d,]+ lines lost since the start, the last (?:less than )?\S+ ago, it can't be written now: ENOSPC$/m);
    const scraped = await (await fetch(`http://${admin}/metrics`)).text();
    assert.match(scraped, new RegExp(`^twinpost_log_lines_lost_total ${String(lost)}$`, 'm'));
    assert.match(scraped, /^twinpost_log_failing 1$/m);
    disk.resize(64 * 1024);
    const lines = (): readonly { event: string; lost?: number; why?: string }[] =>
      readFileSync(file, 'utf8').split('\n').slice(0, -1).map((line) => JSON.parse(line) as { event: string });
    const mailLines = (): number => lines().filter(({ event }) => event === 'received' || event === 'delivered').length;
    await until('what waited is written', () => mailLines() + lost === 2 * count, BOUND_MS, cluster.gateway);
    const told = lines().filter(({ event }) => event === 'log');
    assert.equal(told.reduce((sum, one) => sum + (one.lost ?? 0), 0), lost);
    assert.equal(told.at(-1)?.why, 'ENOSPC');
    assert.deepEqual([(await cluster.status()).log?.failing, (await cluster.status()).log?.lost_lines], ['', lost]);
    assert.match((await twinpost(['status', '--from', admin])).out, /^WARNING gateway-1: [\d,]+ lines of the log lost since the start/);
  } finally {
    await cluster.stop();
    disk.unmount();
  }
});
