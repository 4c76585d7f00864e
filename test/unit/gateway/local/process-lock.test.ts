/**
 * One process for a state_dir, and which incarnations are proven dead there; with real folders and processes.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { ProcessLock } from '../../../../src/gateway/local/process-lock.js';
import { MACHINE_PID_NAMESPACE } from '../../../../src/platform/node/process-table.js';
import type { ProcessMark, ProcessTable } from '../../../../src/platform/node/process-table.js';

const MODULE = new URL('../../../../src/gateway/local/process-lock.js', import.meta.url).href;

function folder(t: { after(run: () => void): void }): string {
  const made = mkdtempSync(path.join(os.tmpdir(), 'twinpost-lock-'));
  t.after(() => { rmSync(made, { recursive: true }); });
  return made;
}

/** A machine of the test's: which processes live there. */
class Machine {
  readonly living = new Map<number, string>();
  bootId = 'boot';
  pidNamespace = MACHINE_PID_NAMESPACE;
  machine = 'm1';

  table(pid: number): ProcessTable {
    const self: ProcessMark = { pid, startTime: `t${String(pid)}`, bootId: this.bootId, pidNamespace: this.pidNamespace };
    this.living.set(pid, self.startTime);
    return { self: () => self, startTimeOf: (asked) => this.living.get(asked) ?? '' };
  }

  take(stateDir: string, pid: number): Promise<ProcessLock> {
    return ProcessLock.take({ stateDir, table: this.table(pid), machine: this.machine, untouchedMs: 1 });
  }
}

/** Ran as `incarnation`, and died without a word. */
async function runAndDie(machine: Machine, stateDir: string, pid: number, incarnation: number): Promise<void> {
  const lock = await machine.take(stateDir, pid);
  assert.equal(lock.record({ incarnation, ordinal: incarnation + 100 }), '');
  lock.release(false);
  machine.living.delete(pid);
}

test('proves dead the incarnations that ran here and are gone, each by itself', async (t) => {
  const stateDir = path.join(folder(t), 'made');
  const machine = new Machine();
  await runAndDie(machine, stateDir, 1, 5);
  await runAndDie(machine, stateDir, 2, 6);
  const lock = await machine.take(stateDir, 3);
  assert.deepEqual([5, 6, 7].map((incarnation) => lock.proves(incarnation)), [true, true, false]);
  assert.deepEqual(lock.last, { incarnation: 6, ordinal: 106 });
  machine.living.set(2, 't2');
  assert.equal(lock.proves(6), false, 'its process lives after all');
  machine.living.set(2, 'later');
  assert.equal(lock.proves(6), true, 'another process has its number');
  lock.record({ incarnation: 8, ordinal: 1 });
  assert.equal(lock.proves(8), false, 'this very process');
  lock.release(true);
});

test('a gateway that ran elsewhere meanwhile is not proven dead by coming back', async (t) => {
  const machine = new Machine();
  const stateDir = folder(t);
  await runAndDie(machine, stateDir, 1, 5);
  // Incarnation 6 ran on another machine, with a folder of its own.
  const lock = await machine.take(stateDir, 2);
  assert.deepEqual([lock.proves(5), lock.proves(6)], [true, false]);
  lock.release(true);
});

test('what ended in good order is proven everywhere', async (t) => {
  const stateDir = folder(t);
  const machine = new Machine();
  const first = await machine.take(stateDir, 1);
  first.record({ incarnation: 5, ordinal: 1 });
  first.release(true);
  machine.machine = 'm2';
  machine.bootId = 'other';
  assert.equal((await machine.take(stateDir, 1)).proves(5), true);
});

test('another machine, a container, a copied folder, a file that says nothing: no proof', async (t) => {
  const base = folder(t);
  const cases: readonly (readonly [what: string, change: (machine: Machine) => void, isProven: boolean])[] = [
    ['the machine was booted since', (machine) => { machine.bootId = 'later'; }, true],
    ['another machine', (machine) => { machine.bootId = 'later'; machine.machine = 'm2'; }, false],
    ['a machine that has no id', (machine) => { machine.bootId = 'later'; machine.machine = ''; }, false],
    ['another container', (machine) => { machine.pidNamespace = 'pid:[7]'; }, false],
    ['a container, booted since', (machine) => { machine.bootId = 'later'; machine.pidNamespace = 'pid:[7]'; }, false],
  ];
  for (const [what, change, isProven] of cases) {
    const stateDir = path.join(base, what);
    const machine = new Machine();
    await runAndDie(machine, stateDir, 1, 5);
    change(machine);
    assert.equal((await machine.take(stateDir, 2)).proves(5), isProven, what);
  }
  const machine = new Machine();
  const copied = path.join(base, 'copied');
  await runAndDie(machine, path.join(base, 'original'), 1, 5);
  cpSync(path.join(base, 'original'), copied, { recursive: true });
  const lock = await machine.take(copied, 2);
  assert.equal(lock.proves(5), false);
  lock.record({ incarnation: 6, ordinal: 1 });
  lock.release(false);
  machine.living.delete(2);
  const next = await machine.take(copied, 3);
  assert.deepEqual([next.proves(5), next.proves(6)], [false, true], 'a copy begins its own list');
  next.release(true);
  for (const text of ['', 'x', 'null', '{"machine":"m1"}', '{"machine":"m1","folder":"1","lives":[7,{"incarnation":5}]}']) {
    writeFileSync(path.join(copied, 'processes'), text);
    const odd = await machine.take(copied, 4);
    assert.equal(odd.proves(5), false, text);
    odd.release(true);
  }
});

test('without a word from /proc nothing is proven', async (t) => {
  const stateDir = folder(t);
  const table: ProcessTable = { self: () => undefined, startTimeOf: () => '' };
  const lock = await ProcessLock.take({ stateDir, table, machine: 'm1', untouchedMs: 1 });
  assert.notEqual(lock.record({ incarnation: 5, ordinal: 1 }), '');
  assert.equal(lock.proves(5), false);
  lock.release(true);
});

test('a folder that can not be used is refused with what to do', async (t) => {
  const file = path.join(folder(t), 'file');
  writeFileSync(file, '');
  await assert.rejects(ProcessLock.take({ stateDir: file }), /state_dir .* can't be used: ENOTDIR: give this user/);
});

/** A real process that takes the folder, says so, and lives until it is killed. */
async function startHolder(stateDir: string, incarnation: number) {
  const script = `import { ProcessLock } from '${MODULE}';
    const lock = await ProcessLock.take({ stateDir: process.argv[1] });
    lock.record({ incarnation: ${String(incarnation)}, ordinal: 1 });
    console.log('taken');
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, stateDir], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data');
  return child;
}

test('a real process has its folder alone, and is proven dead when it was killed', { skip: process.platform !== 'linux' }, async (t) => {
  const stateDir = folder(t);
  const child = await startHolder(stateDir, 12);
  const taking = ProcessLock.take({ stateDir });
  await assert.rejects(taking, (error: Error) => {
    assert.match(error.message, new RegExp(`in use by process ${String(child.pid)} .*two gateways can't share`));
    return true;
  });
  child.kill('SIGKILL');
  await once(child, 'exit');
  const lock = await ProcessLock.take({ stateDir });
  assert.deepEqual([lock.proves(12), lock.proves(11)], [true, false]);
  assert.equal(lock.record({ incarnation: 13, ordinal: 2 }), '');
  const text = readFileSync(path.join(stateDir, 'processes'), 'utf8');
  assert.match(text, /"incarnation":12.*"incarnation":13/);
  lock.release(true);
});

test('two that start at once: one has the folder', { skip: process.platform !== 'linux' }, async (t) => {
  const stateDir = folder(t);
  const results = await Promise.allSettled(Array.from({ length: 5 }, () => ProcessLock.take({ stateDir })));
  assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected', 'rejected', 'rejected', 'rejected']);
});
