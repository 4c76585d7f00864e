/** Postfix in front: its relayhost is Twinpost. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../../src/load/run.js';
import { startCluster } from '../../process/cluster.js';
import { startPostfix } from '../postfix.js';

const COUNT = 300;

test('everything that Postfix relays through Twinpost arrives once and unaltered', async () => {
  const cluster = await startCluster({ domains: ['a.example', 'b.example'] });
  try {
    const postfix = await startPostfix(cluster.smtpPort);
    try {
      const log = join(cluster.folder, 'send.log');
      const mix = [{ bytes: 1000, weight: 70 }, { bytes: 10_000, weight: 30 }];
      const sent = await runSend({ host: '127.0.0.1', port: postfix.port, count: COUNT, connections: 5, mix, domains: ['a.example', 'b.example'], log });
      assert.equal(sent.accepted, COUNT);
      await cluster.sinkHas(COUNT, 60_000).catch((error: unknown) => assert.fail(`${String(error)}\n${postfix.log()}`));
      // Postfix delivers in parallel: no order is promised through it.
      const report = await cluster.verify(log, COUNT);
      assert.equal(report.ok, true, JSON.stringify(report));
      assert.equal(report.arrived, COUNT);
    } finally {
      await postfix.stop();
    }
  } finally {
    await cluster.stop();
  }
});
