/** What `config check`, and a start, say of folders that a process will write into. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { CliError } from '../../../src/cli/context.js';
import { judgeFolders, requireLogFile, requireStateDir } from '../../../src/cli/folders.js';
import { parseConfig } from '../../../src/config/load.js';

test('a file where a folder should be is an error, one that can be made or written is none', (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-folders-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const file = path.join(folder, 'file');
  writeFileSync(file, '');
  const judge = (stateDir: string | undefined, log: string | undefined): ReturnType<typeof judgeFolders> =>
    judgeFolders([{ stateDir, log: { level: 'info', file: log, mail: true }, places: { 'gateway.state_dir': 'f.yaml:7', 'gateway.log.file': 'f.yaml:9' } }]);
  assert.deepEqual(judge(undefined, undefined), { errors: [], warnings: [] });
  assert.deepEqual(judge(path.join(folder, 'a', 'b'), path.join(folder, 'logs', 'gateway.log')), { errors: [], warnings: [] });
  for (const state of [file, path.join(file, 'state')]) {
    assert.deepEqual(judge(state, undefined).errors, [`f.yaml:7: gateway.state_dir: expected a folder, or a name at which one can be made, found: '${file}' is a file`]);
  }
  assert.deepEqual(judge(undefined, path.join(file, 'gateway.log')).errors, [`f.yaml:9: gateway.log.file: expected a folder, or a name at which one can be made, found: '${file}' is a file`]);
  assert.deepEqual(judge(undefined, folder).errors, [`f.yaml:9: gateway.log.file: expected a file, found: '${folder}' is a folder`]);
  const [error = ''] = judge('/proc/nope', undefined).errors;
  // Who may not write there is warned instead.
  if (process.getuid?.() === 0) assert.equal(error, "f.yaml:7: gateway.state_dir: expected a folder, or a name at which one can be made, found: none can be made in '/proc' (ENOENT)");
  const closed = path.join(folder, 'closed');
  mkdirSync(closed);
  chmodSync(closed, 0o500);
  // Root may write everywhere.
  const { errors, warnings } = judge(closed, undefined);
  assert.deepEqual([errors, warnings], [[], process.getuid?.() === 0 ? [] : [`f.yaml:7: gateway.state_dir: warning: you may not write to '${closed}': may the user of the service?`]]);
});

test('a start makes its state_dir; one that can not be had is told with the line that names it', (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-folders-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const places = { 'stores[1].state_dir': 'f.yaml:12' };
  requireStateDir({ stateDir: path.join(folder, 'a', 'b'), section: 'stores[1]', places }, undefined);
  assert.ok(statSync(path.join(folder, 'a', 'b')).isDirectory());
  requireStateDir({ stateDir: undefined, places }, undefined);
  const file = path.join(folder, 'file');
  writeFileSync(file, '');
  const refusal = (stateDir: string, given: string | undefined): string => {
    try {
      requireStateDir({ stateDir, section: 'stores[1]', places }, given);
    } catch (error) {
      assert.ok(error instanceof CliError);
      return error.message;
    }
    return assert.fail('it was taken');
  };
  const wanted = 'expected a folder, or a name at which one can be made, that this user may read and write';
  assert.equal(refusal(file, undefined), `f.yaml:12: stores[1].state_dir: ${wanted}, found: '${file}' (ENOTDIR)`);
  assert.equal(refusal(file, file), `--state-dir: ${wanted}, found: '${file}' (ENOTDIR)`);
  if (process.getuid?.() === 0) return;
  chmodSync(path.join(folder, 'a'), 0o500);
  assert.match(refusal(path.join(folder, 'a', 'c'), undefined), /^f\.yaml:12: .* \(EACCES\)$/);
});

test('a start makes the folder of its log, and a file that others do not read; one that can not be written is told with the line that names it', (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'twinpost-folders-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const required = (file: string | undefined, given?: string): void => {
    requireLogFile({ log: { level: 'info', file, mail: true }, places: { 'gateway.log.file': 'f.yaml:9' } }, given);
  };
  required(undefined);
  const file = path.join(folder, 'logs', 'gateway.log');
  const before = process.umask(0);
  t.after(() => { process.umask(before); });
  required(file);
  assert.ok(statSync(file).isFile());
  assert.equal(statSync(file).mode & 0o777, 0o640, 'addresses stand in it');
  const inFile = path.join(file, 'x.log');
  const found = `expected a file that this user may write, found: '${inFile}' (ENOTDIR)`;
  assert.throws(() => { required(inFile); }, new CliError(`f.yaml:9: gateway.log.file: ${found}`));
  assert.throws(() => { required(inFile, inFile); }, new CliError(`--log-file: ${found}`));
});

test('each store of a file has its own line', () => {
  const store = (id: number): string => `  - id: s${String(id)}
    host: h-${String(id)}
    paths: [{name: A, address: 127.0.0.1:740${String(id)}}]
    admin: {listen: 127.0.0.1:940${String(id)}}
    state_dir: /state/${String(id)}
`;
  const text = `register: {etcd: ['http://127.0.0.1:2379'], cluster: c}\nstores:\n${store(1)}${store(2)}`;
  const parsed = parseConfig(text, 'f.yaml', { role: 'up', secret: 'x'.repeat(20) });
  assert.ok(parsed.ok, parsed.ok ? '' : parsed.errors.join());
  assert.deepEqual(parsed.config.stores.map(({ section, places }) => places[`${section}.state_dir`]), ['f.yaml:7', 'f.yaml:12']);
});
