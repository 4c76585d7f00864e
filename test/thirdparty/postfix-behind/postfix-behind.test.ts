/** Postfix behind: Twinpost's next hop is a Postfix, in clear or in TLS, which hands on to the sink. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../../src/load/run.js';
import { startSink } from '../../../src/sink/sink.js';
import { startCluster } from '../../process/cluster.js';
import { makeCertificates } from '../../process/tls-hop.js';
import { startPostfix } from '../postfix.js';

const COUNT = 300;
const DELIVERED_UNJUDGED = /"event":"delivered".*"queue":"may\.example".*"tls":"TLSv1\.3",.*"verified":"no"/;
const NOT_OTHER = /"event":"suspended".*"queue":"other\.example".*"dsn":"4\.7\.5".*Host: other\.example\. is not in the cert's altnames/;

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

test('by TLS, judged by its certificate, and as Postfix itself tells', { timeout: 120_000 }, async () => {
  const certificates = makeCertificates();
  assert.ok(certificates !== undefined);
  const { certFile, keyFile } = certificates.issue('postfix.example');
  const sink = await startSink({ host: '127.0.0.1', port: 0, verify: true, displacementMax: COUNT });
  const settings = { smtpd_tls_security_level: 'encrypt', smtpd_tls_cert_file: certFile, smtpd_tls_key_file: keyFile, smtpd_tls_loglevel: '1' };
  const postfix = await startPostfix(sink.port, { settings });
  try {
    const verify = { tls: 'verify', ca_file: certificates.caFile };
    const via = `smtp://127.0.0.1:${postfix.port}`;
    const routes = [
      { domain: 'behind.example', via, concurrency: 5, ...verify, server_name: 'postfix.example' },
      { domain: 'may.example', via },
      { domain: 'other.example', via, ...verify, server_name: 'other.example' },
    ];
    const cluster = await startCluster({ routes });
    try {
      const send = (count: number, domain: string, log: string) => runSend({
        host: '127.0.0.1', port: cluster.smtpPort, count, connections: 5, domains: [domain], log: join(cluster.folder, log),
        mix: [{ bytes: 1000, weight: 70 }, { bytes: 100_000, weight: 30 }],
      });
      assert.equal((await send(COUNT, 'behind.example', 'send.log')).accepted, COUNT);
      const until = performance.now() + 60_000;
      while (sink.counts.messages < COUNT && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 50));
      const report = await sink.report(join(cluster.folder, 'send.log'));
      assert.deepEqual([report.ok, report.arrived], [true, COUNT], `${JSON.stringify(report)}\n${cluster.gateway.logTail()}\n${postfix.log()}`);

      await send(1, 'may.example', 'may.log');
      await send(1, 'other.example', 'other.log');
      const isTold = (pattern: RegExp): boolean => pattern.test(cluster.gateway.log());
      while (!(isTold(DELIVERED_UNJUDGED) && isTold(NOT_OTHER)) && performance.now() < until) await new Promise((resolve) => setTimeout(resolve, 50));
      assert.match(cluster.gateway.log(), DELIVERED_UNJUDGED);
      assert.match(cluster.gateway.log(), NOT_OTHER);
      const delivered = cluster.gateway.log().split('\n').filter((line) => line.includes('"event":"delivered"') && line.includes('"queue":"behind.example"'));
      assert.equal(delivered.length, COUNT);
      assert.ok(delivered.every((line) => line.includes('"tls":"TLSv1.3","cipher":"TLS_AES_256_GCM_SHA384","verified":"yes"')));
      assert.match(postfix.log(), /Anonymous TLS connection established from \S+: TLSv1\.3 with cipher TLS_AES_256_GCM_SHA384/);
    } finally {
      await cluster.stop();
    }
  } finally {
    await postfix.stop();
    await sink.close();
  }
});
