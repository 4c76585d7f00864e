/** Whether the process of a gateway before this one is gone, with a real folder and a process table of the test's. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { ProcessLock } from '../../../src/gateway/process-lock.js';
import type { ProcessMark, ProcessTable } from '../../../src/platform/node/process-table.js';

function folder(t: { after(run: () => void): void }): string {
  const made = mkdtempSync(path.join(os.tmpdir(), 'twinpost-lock-'));
  t.after(() => { rmSync(made, { recursive: true }); });
  return made;
}

function table(pid: number, living: ReadonlyMap<number, string>, more: Partial<ProcessMark> = {}): ProcessTable {
  return {
    self: () => ({ pid, startTime: `t${String(pid)}`, bootId: 'boot', pidNamespace: 'pid:[1]', ...more }),
    startTimeOf: (asked) => living.get(asked) ?? '',
  };
}

test('a process that is gone, or whose number another has now, is proven gone', (t) => {
  const dir = path.join(folder(t), 'made');
  const living = new Map([[1, 't1']]);
  assert.equal(new ProcessLock(dir, table(1, living)).look(), 'unknown', 'nobody was before');
  const second = new ProcessLock(dir, table(2, living));
  assert.equal(second.look(), 'lives');
  living.delete(1);
  assert.equal(second.look(), 'gone', 'it has stopped meanwhile');
  living.set(1, 'later');
  assert.equal(second.look(), 'gone');
  living.set(2, 'other');
  assert.equal(new ProcessLock(dir, table(3, living)).look(), 'gone');
});

test('another boot, another container, a file that says nothing, no folder: no proof', (t) => {
  const dir = folder(t);
  const none = new Map<number, string>();
  for (const more of [{ bootId: 'other' }, { pidNamespace: 'pid:[2]' }]) {
    new ProcessLock(dir, table(1, none));
    assert.equal(new ProcessLock(dir, table(2, none, more)).look(), 'unknown');
  }
  for (const text of ['', 'x', 'null', '{"pid":1}', '{"pid":1,"startTime":"","bootId":"boot","pidNamespace":"pid:[1]"}']) {
    writeFileSync(path.join(dir, 'lock'), text);
    assert.equal(new ProcessLock(dir, table(2, none)).look(), 'unknown', text);
  }
  assert.equal(new ProcessLock(undefined, table(2, none)).look(), 'unknown');
  assert.equal(new ProcessLock(dir, { self: () => undefined, startTimeOf: () => '' }).look(), 'unknown');
});

test('a real process is seen while it lives, and seen gone when it was killed', { skip: process.platform !== 'linux' }, async (t) => {
  const dir = folder(t);
  new ProcessLock(dir);
  const mark = JSON.parse(readFileSync(path.join(dir, 'lock'), 'utf8')) as ProcessMark;
  assert.equal(mark.pid, process.pid);
  assert.equal(new ProcessLock(dir).look(), 'lives');
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)']);
  const { pid } = child;
  assert.ok(pid !== undefined);
  const stat = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
  writeFileSync(path.join(dir, 'lock'), JSON.stringify({ ...mark, pid, startTime: stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] }));
  const lock = new ProcessLock(dir);
  assert.equal(lock.look(), 'lives');
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.equal(lock.look(), 'gone');
});
