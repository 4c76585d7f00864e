/** The end of a process of which threads live: it waits a moment for those that end, and for none that hangs. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

const END = new URL('../../../src/bin/end-process.js', import.meta.url).href;

test('a thread that hangs in a disk holds up no end, and one that ends changes no exit code', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-end-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const pipe = join(folder, 'pipe');
  // In the place of a file on a disk that does not answer.
  // One of them has nobody at its other end.
  const pipe2 = join(folder, 'pipe-2');
  assert.equal(spawnSync('mkfifo', [pipe, pipe2]).status, 0);
  const main = join(folder, 'main.mjs');
  writeFileSync(main, `
    import fs from 'node:fs';
    import { Worker } from 'node:worker_threads';
    import { endWithThreads } from ${JSON.stringify(END)};
    const held = fs.openSync(${JSON.stringify(pipe)}, 'r+');
    const worker = new Worker(process.argv[2], { eval: true });
    // It has told that it begins to read.
    worker.once('message', () => setTimeout(() => { void worker.terminate(); void endWithThreads(0); }, 2000));
    worker.unref();
    setInterval(() => held, 1000);
    (0, eval)(process.argv[3]);
  `);
  const told = "require('node:worker_threads').parentPort.postMessage('');";
  const endOf = async (does: string, inMain = ''): Promise<unknown> => {
    const child = spawn(process.execPath, [main, `${told}${does}`, inMain], { stdio: 'inherit', timeout: 60_000, killSignal: 'SIGKILL' });
    return once(child, 'exit');
  };
  assert.deepEqual(await endOf('setInterval(() => 0, 1000);'), [0, null]);
  const hanging = `void import('node:fs/promises').then(({ open }) => { void open(${JSON.stringify(pipe2)}); });`;
  assert.deepEqual(await endOf('', hanging), [null, 'SIGTERM'], 'a file');
  assert.deepEqual(await endOf(`const fs = require('node:fs'); fs.readSync(fs.openSync(${JSON.stringify(pipe)}), Buffer.alloc(1));`), [null, 'SIGTERM']);
});
