/** Who a gateway process is, by a real register file, its socket and real processes. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { ProcessIdentity } from '../../../../src/gateway/local/process-identity.js';
import type { ProcessIdentityOptions } from '../../../../src/gateway/local/process-identity.js';
import { crc32 } from '../../../../src/platform/node/checksum.js';
import type { EventLog } from '../../../../src/platform/ports.js';
import { FileRegister } from '../../../../src/register/file/file-register.js';
import { UNKNOWN_STARTS } from '../../../../src/register/ordinal-draw.js';
import type { RegisterChoice } from '../../../../src/register/running/open-register.js';
import type { RetiredRule } from '../../../../src/register/records.js';
import { QUIET, until } from '../../register/real-world.js';

type Context = { after(run: () => void): void };

function folder(t: Context): string {
  const made = mkdtempSync(path.join(os.tmpdir(), 'twinpost-identity-'));
  t.after(() => { rmSync(made, { recursive: true, force: true }); });
  return made;
}

function optionsOf(stateDir: string, more: Partial<ProcessIdentityOptions> = {}): ProcessIdentityOptions {
  const register: RegisterChoice = { kind: 'file', stateDir, isServed: false };
  const admin = { host: '127.0.0.1', port: 8025 };
  return { id: 'gw-1', host: 'box-1', group: ['gw-1'], rescue: true, stateDir, register, admin, told: 0, ...more };
}

function begin(options: ProcessIdentityOptions, log: EventLog = QUIET): Promise<ProcessIdentity> {
  return ProcessIdentity.begin(options, { log, crc32, onTaken: (why) => { assert.fail(why); } });
}

function linesOf(lines: string[]): EventLog {
  const keep = (_event: string, text: string): void => { lines.push(text); };
  return { debug: keep, info: keep, warn: keep, error: keep };
}

test('each start has the next incarnation and an ordinal of its own, and says what it is', async (t) => {
  const stateDir = path.join(folder(t), 'made');
  for (const number of [1, 2]) {
    const identity = await begin(optionsOf(stateDir));
    assert.deepEqual(identity.incarnation, { incarnation: number, ordinal: number });
    assert.equal(identity.ordinals.take(), number);
    assert.deepEqual(identity.bridge.self, { gatewayId: 'gw-1', incarnation: number });
    assert.ok(identity.bridge.isHeld);
    assert.equal(identity.bridge.isProvenDead({ gatewayId: 'gw-1', incarnation: number - 1 }), number === 2);
    const keys = readFileSync(path.join(stateDir, 'register'), 'utf8');
    assert.match(keys, /gateways\/gw-1.*box-1.*127\.0\.0\.1:8025/);
    await identity.end();
    assert.doesNotMatch(readFileSync(path.join(stateDir, 'register'), 'utf8'), /gateways\/gw-1/, 'its key is gone');
  }
});

test('numbers that stores or the folder know are not given out again by a register that was lost', async (t) => {
  const stateDir = folder(t);
  const first = await begin(optionsOf(stateDir, { told: 41 }));
  // Each of the 41 drew two ordinals at most; others of a group may have drawn more than that.
  assert.deepEqual(first.incarnation, { incarnation: 42, ordinal: 83 + UNKNOWN_STARTS });
  await first.end();
  rmSync(path.join(stateDir, 'register'));
  const second = await begin(optionsOf(stateDir));
  assert.deepEqual(second.incarnation, { incarnation: 43, ordinal: 84 + 2 * UNKNOWN_STARTS });
  await second.end();
});

test('two processes on one folder: the second is refused while the first lives, whatever its id', async (t) => {
  const stateDir = folder(t);
  const first = await begin(optionsOf(stateDir));
  const other = { register: { kind: 'file', stateDir: path.join(stateDir, 'other'), isServed: false } } as const;
  await assert.rejects(begin(optionsOf(stateDir, { id: 'gw-2', ...other })), /state_dir .* is in use by process \d+ .*two gateways can't share/);
  await first.end();
  await (await begin(optionsOf(stateDir, { id: 'gw-2', ...other }))).end();
});

test('a second process of one id, with a folder of its own, is refused and told where the first one runs', async (t) => {
  const base = folder(t);
  const file = await FileRegister.open({ stateDir: base, isServed: true }, { crc32, log: QUIET });
  const register = { kind: 'socket', stateDir: base } as const;
  const first = await begin(optionsOf(path.join(base, 'a'), { register }));
  const neighbour = await begin(optionsOf(path.join(base, 'b'), { register, id: 'gw-2' }));
  await assert.rejects(
    begin(optionsOf(path.join(base, 'c'), { register, host: 'box-2' })),
    /a process of gateway gw-1 runs on host box-1 \(incarnation 1\): stop that one, or give one of the two another id/,
  );
  assert.ok(first.bridge.isHeld);
  await first.end();
  await neighbour.end();
  await (await begin(optionsOf(path.join(base, 'c'), { register, host: 'box-2' }))).end();
  await file.close();
});

test('a register that is away is waited for, and the log says so', async (t) => {
  const base = folder(t);
  const lines: string[] = [];
  const beginning = begin(optionsOf(path.join(base, 'a'), { register: { kind: 'socket', stateDir: base } }), linesOf(lines));
  await until(() => lines.some((text) => text.includes('the gateway waits for it, with its port closed')), 'it is said');
  const file = await FileRegister.open({ stateDir: base, isServed: true }, { crc32, log: QUIET });
  const identity = await beginning;
  assert.equal(identity.bridge.away, '');
  await identity.end();
  await file.close();
});

test('a register that can not be used fails the start, and leaves the folder to the next', async (t) => {
  const stateDir = folder(t);
  const etcd: RegisterChoice = {
    kind: 'etcd', endpoints: ['https://127.0.0.1:1'], cluster: 'c', user: '', password: '', caFile: '/nowhere', certFile: undefined, keyFile: undefined, operationsMax: 128,
  };
  await assert.rejects(begin(optionsOf(stateDir, { register: etcd })), /register\.ca: '\/nowhere' can't be read: ENOENT/);
  await (await begin(optionsOf(stateDir))).end();
});

test('a process that was killed is followed at once, with the proof of its end', { skip: process.platform !== 'linux' }, async (t) => {
  const base = folder(t);
  const file = await FileRegister.open({ stateDir: base, isServed: true }, { crc32, log: QUIET });
  const options = optionsOf(path.join(base, 'a'), { register: { kind: 'socket', stateDir: base } });
  const root = new URL('../../../../src/', import.meta.url).href;
  const script = `import { ProcessIdentity } from '${root}gateway/local/process-identity.js';
    import { crc32 } from '${root}platform/node/checksum.js';
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    await ProcessIdentity.begin(${JSON.stringify(options)}, { log, crc32, onTaken() {} });
    console.log('ready');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  await Promise.race([once(child.stdout, 'data'), once(child, 'exit').then(() => assert.fail('it ended at its start'))]);
  child.kill('SIGKILL');
  await once(child, 'exit');
  const startMs = performance.now();
  const identity = await begin(options);
  assert.ok(performance.now() - startMs < 3_000, 'its session had not run out');
  assert.equal(identity.incarnation.incarnation, 2);
  assert.ok(identity.bridge.isProvenDead({ gatewayId: 'gw-1', incarnation: 1 }));
  await identity.end();
  await file.close();
});

test('a gateway that was retired does not start, and is told who did it and how that is taken back', async (t) => {
  const base = folder(t);
  const file = await FileRegister.open({ stateDir: base, isServed: true }, { crc32, log: QUIET });
  const register = { kind: 'socket', stateDir: base } as const;
  const other = await begin(optionsOf(path.join(base, 'b'), { register, id: 'gw-2' }));
  const set = (rule: RetiredRule | undefined): Promise<string> => new Promise((resolve) => { other.bridge.setRetired('gw-1', rule, resolve); });
  assert.equal(await set({ who: 'ann@box', reason: 'host given back', wallMs: 0 }), '');
  await assert.rejects(
    begin(optionsOf(path.join(base, 'a'), { register })),
    /gateway gw-1 was retired by ann@box on 1970-01-01T00:00:00.000Z \(host given back\): .* twinpost gateway retire gw-1 --undo/,
  );
  assert.equal(await set(undefined), '');
  await (await begin(optionsOf(path.join(base, 'a'), { register }))).end();
  await other.end();
  await file.close();
});
