/** Postfix behind: Twinpost's next hop is a Postfix, which hands on to the sink. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../../src/load/run.js';
import { startSink } from '../../../src/sink/sink.js';
import { startCluster } from '../../process/cluster.js';
import { startPostfix } from '../postfix.js';

const COUNT = 300;

test('everything that Twinpost delivers to Postfix arrives once and unaltered', async () => {
  const sink = await startSink({ host: '127.0.0.1', port: 0, verify: true, displacementMax: COUNT });
  const postfix = await startPostfix(sink.port);
  try {
    const routes = [{ domain: 'behind.example', via: `smtp://127.0.0.1:${postfix.port}`, concurrency: 5 }];
    const cluster = await startCluster({ routes });
    try {
      const log = join(cluster.folder, 'send.log');
      const mix = [{ bytes: 1000, weight: 70 }, { bytes: 10_000, weight: 30 }];
      const sent = await runSend({ host: '127.0.0.1', port: cluster.smtpPort, count: COUNT, connections: 5, mix, domains: ['behind.example'], log });
      assert.equal(sent.accepted, COUNT);
      const until = performance.now() + 60_000;
      while (sink.counts.messages < COUNT && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 50));
      const report = await sink.report(log);
      assert.equal(report.ok, true, `${JSON.stringify(report)}\n${cluster.gateway.logTail()}\n${postfix.log()}`);
      assert.equal(report.arrived, COUNT);
    } finally {
      await cluster.stop();
    }
  } finally {
    await postfix.stop();
    await sink.close();
  }
});
