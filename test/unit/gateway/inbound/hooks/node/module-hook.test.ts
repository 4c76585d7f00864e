/** The hook that is a module in threads of its own: when these are made anew. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import type { HookAnswer } from '../../../../../../src/gateway/inbound/hooks/message-hook.js';
import { ModuleHook } from '../../../../../../src/gateway/inbound/hooks/node/module-hook.js';
import { judged } from '../judged.js';

const MODULE = `
export function onMessage({ helo }) {
  if (helo === 'exit') process.exit(7);
  if (helo === 'loop') for (;;);
  return { action: 'accept' };
}
`;
const DEATHS = 9;
/** What nine threads in a row that end as they begin would make the next one wait: 50 ms, doubled each time. */
const BACKOFF_MS = 50 * 2 ** (DEATHS - 2);

test('messages that end their threads keep the module from nobody', { timeout: 60_000 }, async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-module-'));
  const file = path.join(folder, 'm.mjs');
  writeFileSync(file, MODULE);
  const quiet = (): void => undefined;
  const ended: number[] = [];
  const hook = new ModuleHook({ name: 'm', file, timeoutMs: 1500, threads: 1, heapBytes: 64 * 1024 * 1024 }, {
    log: { debug: quiet, info: quiet, warn: () => void ended.push(performance.now()), error: quiet },
    memory: { reserve: () => true, release: quiet },
  });
  /** Its wait may end while the thread is being made anew. */
  const asked = async (helo: string): Promise<HookAnswer> => {
    for (;;) {
      const answer = await new Promise<HookAnswer>((resolve) => {
        hook.ask(judged({ helo }), resolve);
      });
      if (answer.action !== 'busy') return answer;
    }
  };
  try {
    for (let i = 1; i < DEATHS; i++) assert.equal((await asked('exit')).action, 'failed');
    assert.deepEqual(await asked('loop'), { action: 'failed', why: 'no answer in 1500 ms' });
    assert.deepEqual(await asked('good'), { action: 'accept', fields: [] });
    assert.equal(ended.length, DEATHS);
    const waitedMs = performance.now() - (ended.at(-1) ?? 0);
    assert.ok(waitedMs < BACKOFF_MS * 0.9, `the next thread was there after ${String(waitedMs)} ms`);
  } finally {
    hook.close();
    rmSync(folder, { recursive: true });
  }
});
