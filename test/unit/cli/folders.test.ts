/** What `config check` says of folders that a process will write into. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { judgeFolders } from '../../../src/cli/folders.js';

test('a file where a folder should be is an error, one that can be made or written is none', (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-folders-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const file = path.join(folder, 'file');
  writeFileSync(file, '');
  const judge = (stateDir: string | undefined, log: string | undefined): ReturnType<typeof judgeFolders> =>
    judgeFolders('f.yaml', [{ id: 'gw-1', stateDir, log: { level: 'info', file: log, mail: true } }]);
  assert.deepEqual(judge(undefined, undefined), { errors: [], warnings: [] });
  assert.deepEqual(judge(path.join(folder, 'a', 'b'), path.join(folder, 'logs', 'gateway.log')), { errors: [], warnings: [] });
  for (const state of [file, path.join(file, 'state')]) {
    assert.deepEqual(judge(state, undefined).errors, [`f.yaml: gw-1: state_dir: expected a folder, or a name at which one can be made, found: '${file}' is a file`]);
  }
  assert.deepEqual(judge(undefined, path.join(file, 'gateway.log')).errors, [`f.yaml: gw-1: log.file: expected a folder, or a name at which one can be made, found: '${file}' is a file`]);
  const closed = path.join(folder, 'closed');
  mkdirSync(closed);
  chmodSync(closed, 0o500);
  // Root may write everywhere.
  const { errors, warnings } = judge(closed, undefined);
  assert.deepEqual([errors, warnings], [[], process.getuid?.() === 0 ? [] : [`f.yaml: gw-1: state_dir: warning: you may not write to '${closed}': may the user of the service?`]]);
});
