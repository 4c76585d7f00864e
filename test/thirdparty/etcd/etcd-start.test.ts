/** A gateway that starts while etcd is away: alive, not ready, and it says why; it goes on by itself when etcd is there. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { ENTRY } from '../../process/entry.js';
import { makeFolder, removeFolder } from '../../unit/register/real-world.js';
import { until } from '../../process/cluster.js';
import { freePorts } from '../../process/free-ports.js';
import { twinpost } from '../../process/twinpost.js';
import { EtcdCluster } from './etcd-cluster.js';

const BOUND_MS = 30_000;

test('a gateway without its register has its admin port, and takes up its work when etcd answers', async () => {
  const cluster = await EtcdCluster.start(1);
  const [node] = cluster.nodes;
  assert.ok(node !== undefined);
  const folder = makeFolder();
  const [admin = 0, smtp = 0] = await freePorts(2);
  const file = join(folder, 'gateway.yaml');
  writeFileSync(file, [
    `register: {etcd: [${cluster.endpoints.join()}], cluster: start}`,
    'gateway:', '  id: gw-1', '  host: box-1', `  state_dir: ${join(folder, 'state')}`, `  secret: ${'s'.repeat(20)}`,
    `  smtp: {listen: ['127.0.0.1:${String(smtp)}']}`, `  admin: {listen: '127.0.0.1:${String(admin)}'}`,
    '  routes:', "    - {domain: '*', via: smtp://127.0.0.1:1}", '',
  ].join('\n'));
  const ask = async (path: string): Promise<string> => {
    try {
      const answer = await fetch(`http://127.0.0.1:${String(admin)}${path}`);
      return `${String(answer.status)} ${await answer.text()}`;
    } catch {
      return '';
    }
  };
  await cluster.isReady();
  await node.kill();
  const gateway = spawn(process.execPath, [ENTRY, 'gateway', '--config', file], { stdio: 'ignore' });
  const ended = once(gateway, 'exit');
  try {
    let said = '';
    await until('its admin port', async () => (said = await ask('/readyz')) !== '', BOUND_MS);
    assert.match(said, /^503 the gateway waits for its register, with its port for mail closed: ./);
    assert.equal(await ask('/healthz'), '200 ok\n');
    assert.match(await ask('/metrics'), /^503 \{"error":"the gateway waits for its register/);
    const status = await twinpost(['status', '--gateway', `http://127.0.0.1:${String(admin)}`]);
    assert.notEqual(status.code, 0);
    assert.match(status.error, /the gateway waits for its register/);
    cluster.startNode(node);
    await until('the gateway goes on', async () => (await ask('/api/v1/status')).startsWith('200 '), BOUND_MS);
    assert.match(await ask('/readyz'), /^503 (?!.*waits for its register)./, 'it has no store');
  } finally {
    gateway.kill('SIGTERM');
    await ended;
    await cluster.stop();
    removeFolder(folder);
  }
});
