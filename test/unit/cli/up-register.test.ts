/** `up` keeps one register file for all gateways it starts. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { openUpRegister } from '../../../src/cli/up/up-register.js';
import { connectFileRegister } from '../../../src/register/file/file-register.js';
import { QUIET, until } from '../register/real-world.js';

test('is served to other processes of this machine until `up` ends; a second `up` on the folder is refused', async () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-up-'));
  const logs = path.join(folder, 'logs');
  mkdirSync(logs);
  const choice = { kind: 'file', stateDir: '', isServed: false } as const;
  const register = await openUpRegister(choice, folder, logs);
  assert.equal(register.folder, folder);
  const client = connectFileRegister(folder, QUIET);
  await until(() => client.state.isUp, 'a gateway reaches it');
  await assert.rejects(openUpRegister(choice, folder, logs), /^CliError: up: the register file is in use by process/);
  client.close();
  await register.close();
  await (await openUpRegister(choice, folder, logs)).close();
  rmSync(folder, { recursive: true });
});

test('is none where the gateways ask etcd, or another process', async () => {
  const register = await openUpRegister({ kind: 'socket', stateDir: '/elsewhere' }, '/nowhere', '/nowhere');
  assert.equal(register.folder, undefined);
  await register.close();
});
