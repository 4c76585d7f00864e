/**
 * A closed client holds nothing: its process ends by itself, whether etcd was there, is gone, or stands
 * still.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { EtcdCluster } from './etcd-cluster.js';

const SCRIPT = fileURLToPath(new URL('./use-and-close.js', import.meta.url));

interface Ended {
  readonly code: number | null;
  readonly output: string;
  /** From the line 'closed' to the end of the process. */
  readonly afterCloseMs: number;
}

/** Runs use-and-close; `onOpen` happens while it has a watch and a session. */
async function run(endpoint: string, onOpen: () => void): Promise<Ended> {
  const child = spawn(process.execPath, [SCRIPT, endpoint], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 30_000,
  });
  let output = '';
  let closedMs = 0;
  const onText = (chunk: Buffer): void => {
    output += chunk.toString();
    if (/^open$/m.test(chunk.toString())) onOpen();
    if (/^closed$/m.test(chunk.toString())) closedMs = performance.now();
  };
  child.stdout.on('data', onText);
  child.stderr.on('data', onText);
  const [code] = await once(child, 'close') as [number | null];
  return { code, output, afterCloseMs: performance.now() - closedMs };
}

test('the process of a closed client ends within two seconds, without a word', async () => {
  const cluster = await EtcdCluster.start(1);
  const [node] = cluster.nodes;
  const [endpoint = ''] = cluster.endpoints;
  try {
    await cluster.isReady();
    const cases: readonly (readonly [endpoint: string, onOpen: () => void, expected: RegExp])[] = [
      [endpoint, () => {}, /^open\nclosed\n$/],
      [endpoint, () => {
        node?.signal('SIGSTOP');
      }, /^open\nclosed\n$/],
      ['http://127.0.0.1:1', () => {}, /^away\nclosed\n$/],
    ];
    for (const [at, onOpen, expected] of cases) {
      const ended = await run(at, onOpen);
      node?.signal('SIGCONT');
      assert.match(ended.output, expected, at);
      assert.equal(ended.code, 0);
      assert.ok(ended.afterCloseMs < 2_000, `${at}: ${String(ended.afterCloseMs)} ms`);
    }
  } finally {
    node?.signal('SIGCONT');
    await cluster.stop();
  }
});
