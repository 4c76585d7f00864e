/** The arrival log: evidence of the chaos runs, so it is whole once a report was asked for. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../../src/load/run.js';
import { startSink } from '../../../src/sink/sink.js';

const COUNT = 20;

test('has each arrival when the report is made, before the sink is closed', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-sink-'));
  const arrivalLog = join(folder, 'arrivals.log');
  const sink = await startSink({ host: '127.0.0.1', port: 0, arrivalLog });
  try {
    const { accepted } = await runSend({ host: '127.0.0.1', port: sink.port, count: COUNT, run: 'r' });
    assert.equal(accepted, COUNT);
    await sink.report();
    assert.equal(readFileSync(arrivalLog, 'utf8').split('\n').length - 1, COUNT);
  } finally {
    await sink.close();
    rmSync(folder, { recursive: true });
  }
});
