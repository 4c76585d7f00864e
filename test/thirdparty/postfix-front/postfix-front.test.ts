/** Postfix in front: its relayhost is Twinpost, in clear, or by TLS as a user. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { runSend } from '../../../src/load/run.js';
import { startCluster } from '../../process/cluster.js';
import { keepsWithoutPassword, refusesTheCertificate, relaysAll, withFront, type Front, type FrontOptions } from '../front-story.js';
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

async function startFront({ gatewayPort, caFile, login }: FrontOptions): Promise<Front> {
  const settings = {
    smtp_tls_security_level: 'verify', smtp_tls_CAfile: caFile, smtp_tls_verify_cert_match: 'gateway.test', smtp_tls_loglevel: '1',
    ...(login === undefined ? {} : {
      smtp_tls_wrappermode: login.isTlsFirst ? 'yes' : 'no', smtp_sasl_auth_enable: 'yes', smtp_sasl_security_options: 'noanonymous',
      smtp_sasl_password_maps: `inline:{ { [127.0.0.1]:${String(gatewayPort)} = ${login.user}:${login.password} } }`,
    }),
  };
  const postfix = await startPostfix(gatewayPort, { settings });
  return { ...postfix, retryNow: () => Promise.resolve() };
}

const bound = { timeout: 180_000 };

for (const tls of ['starttls', 'implicit'] as const) {
  test(`everything that Postfix submits as a user arrives once and unaltered, by TLS: ${tls}`, bound, () =>
    withFront({ start: startFront, submits: tls }, async (story) => {
      await relaysAll(story);
      assert.match(story.front.log(), /Verified TLS connection established to \S+: TLSv1\.3/);
      assert.doesNotMatch(story.front.log(), /(Untrusted|Trusted|Anonymous) TLS connection established to/);
    }));
}

test('Postfix keeps what it may not submit for its wrong password', bound, () =>
  withFront({ start: startFront, submits: 'starttls', password: 'guessed' }, (story) => keepsWithoutPassword(story, /SASL authentication failed/)));

test('Postfix gives nothing to a gateway whose certificate it can not check', bound, () =>
  withFront({ start: startFront, isTrusted: false }, (story) => refusesTheCertificate(story, /Server certificate not (trusted|verified)/)));
