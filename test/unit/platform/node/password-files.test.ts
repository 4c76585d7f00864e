/** Our own passwords in files: what is taken, and what is refused with which words. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { readPassword } from '../../../../src/platform/node/password-files.js';

const folder = mkdtempSync(join(tmpdir(), 'twinpost-password-'));
const file = join(folder, 'password');
after(() => { rmSync(folder, { recursive: true }); });

test('the one line of a file is the password, blanks and all', () => {
  for (const [content, password] of [['a b', 'a b'], [' p\u00e4ss \n', ' p\u00e4ss '], ['x\r\n', 'x'], ['x\n\n', 'x'], ['y'.repeat(1024), 'y'.repeat(1024)]] as const) {
    writeFileSync(file, content, { mode: 0o640 });
    assert.equal(readPassword(file), password);
  }
});

test('any other file is refused, with its name and without what it holds', () => {
  for (const [content, why] of [
    ['', /has no password in its first line$/], ['\nhunter2', /has no password in its first line$/], ['hunter2\nmore', /has more than one line$/],
    ['hunter\0', /control characters, or is no UTF-8$/], [Buffer.from([0x68, 0xff]), /control characters, or is no UTF-8$/], ['h'.repeat(1025), /is no file with a password$/],
  ] as const) {
    writeFileSync(file, content);
    assert.throws(() => readPassword(file), (error: Error) => why.test(error.message) && error.message.startsWith(`'${file}' `) && !error.message.includes('hunter'));
  }
  writeFileSync(file, 'good');
  for (const mode of [0o604, 0o602]) {
    chmodSync(file, mode);
    assert.throws(() => readPassword(file), /everybody on this machine may read or write '.*password': chmod o-rw$/);
  }
  const other = join(folder, 'folder');
  mkdirSync(other);
  assert.throws(() => readPassword(other), /is no file with a password$/);
  assert.throws(() => readPassword(join(folder, 'none')), /none' can't be read: ENOENT$/);
});
