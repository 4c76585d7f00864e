/** The snippet of configs/logrotate, run by Debian's logrotate while mail goes through. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';

import { runSend } from '../../../src/load/run.js';
import { findProgram } from '../../outside-sets.js';
import { HOST, startCluster, until } from '../../process/cluster.js';

const BOUND_MS = 20_000;
const SNIPPET = fileURLToPath(new URL('../../../../configs/logrotate/twinpost', import.meta.url));

test('logrotate rotates by the snippet of configs, and no line is lost', { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-logrotate-'));
  const own = mkdtempSync(path.join(os.tmpdir(), 'twinpost-logrotate-own-'));
  const file = path.join(folder, 'gateway.log');
  const snippet = path.join(own, 'twinpost.conf');
  writeFileSync(snippet, readFileSync(SNIPPET, 'utf8').replaceAll('/var/log/twinpost', folder), { mode: 0o644 });
  const cluster = await startCluster({ gateway: { log: { file } } });
  try {
    let sent = 0;
    for (let round = 1; round <= 3; round++) {
      await runSend({ host: HOST, port: cluster.smtpPort, domains: ['a.example'], count: 100 });
      sent += 100;
      await cluster.sinkHas(sent);
      await until('the last lines are written', () => readFileSync(file, 'utf8').includes('"event":"delivered"'), BOUND_MS, cluster.gateway);
      execFileSync(findProgram('logrotate') ?? assert.fail('logrotate is not here'), ['--force', '--state', path.join(own, 'state'), snippet]);
      await until('it goes on in a new file', () => existsSync(file) && readFileSync(file, 'utf8').includes('was opened anew'), BOUND_MS, cluster.gateway);
    }
    assert.deepEqual(readdirSync(folder).sort(), ['gateway.log', 'gateway.log.1', 'gateway.log.2.gz', 'gateway.log.3.gz']);
    const texts = readdirSync(folder).map((name) => {
      const bytes = readFileSync(path.join(folder, name));
      return (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
    });
    for (const event of ['received', 'delivered']) assert.equal(texts.join('').split(`"event":"${event}"`).length - 1, sent, event);
    for (const line of texts.join('').split('\n').slice(0, -1)) JSON.parse(line);
  } finally {
    await cluster.stop();
    rmSync(folder, { recursive: true });
    rmSync(own, { recursive: true });
  }
});
