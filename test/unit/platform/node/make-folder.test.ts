/** Folders are made with those above them; what can't be made is an error, at once. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeFolder } from '../../../../src/platform/node/make-folder.js';

test('makes a folder and those above it, and leaves what is there', (t) => {
  const top = mkdtempSync(join(tmpdir(), 'twinpost-folder-'));
  t.after(() => { rmSync(top, { recursive: true, force: true }); });
  const folder = join(top, 'a', 'b', 'c');
  makeFolder(folder, 0o700);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  writeFileSync(join(folder, 'file'), 'x');
  makeFolder(folder);
  assert.equal(statSync(join(folder, 'file')).size, 1);
  assert.throws(() => { makeFolder(join(folder, 'file', 'd')); }, { code: 'ENOTDIR' });
  assert.throws(() => { makeFolder(join(folder, 'file')); }, { code: 'ENOTDIR' });
});
