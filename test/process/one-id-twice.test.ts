/** Two gateways with one id, as when a configuration was copied to a second machine and its id forgotten. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';

import { Daemon, HOST, startCluster } from './cluster.js';
import { freePorts } from './free-ports.js';

const ENTRY = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'src', 'bin', 'twinpost.js');
/** What bin/gateway-process.ts ends with: neither a crash nor a success. */
const FENCED_EXIT_CODE = 3;

test('the older of two gateways with one id stops, says what to do, and ends with its own exit code', { timeout: 60_000 }, async () => {
  const cluster = await startCluster();
  try {
    const config = JSON.parse(readFileSync(join(cluster.folder, 'gateway.yaml'), 'utf8')) as { gateway: Record<string, unknown> };
    const [smtp, admin] = await freePorts(2);
    const folder = join(cluster.folder, 'second-machine');
    mkdirSync(folder);
    const file = join(folder, 'gateway.yaml');
    const other = { ...config.gateway, smtp: { listen: [`${HOST}:${String(smtp)}`] }, admin: { listen: `${HOST}:${String(admin)}` }, state_dir: folder };
    writeFileSync(file, JSON.stringify({ gateway: other }));
    const second = new Daemon('second', [ENTRY, 'gateway', '--config', file], join(folder, 'gateway.log'), `http://${HOST}:${String(admin)}/readyz`);
    second.start();
    try {
      while (cluster.gateway.isRunning) await new Promise((resolve) => { setTimeout(resolve, 25); });
      assert.equal(await cluster.gateway.stop(), FENCED_EXIT_CODE);
      const said = cluster.gateway.log().split('\n').filter((line) => line.includes('"event":"fenced"'));
      assert.equal(said.length, 1, cluster.gateway.logTail());
      assert.match(said[0] ?? '', /with the id of this gateway owns its queues now; this one stops at once\. .*give one of the two another id/);
      assert.match(said[0] ?? '', /"gateway":"gateway-1"/);
      assert.equal(second.isRunning, true, 'the newer one serves on');
    } finally {
      await second.kill();
    }
  } finally {
    await cluster.stop();
  }
});
