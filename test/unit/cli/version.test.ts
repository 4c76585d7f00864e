/** The version is told in both ways in which people ask for it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runCli } from '../../../src/cli/main.js';
import { contextFor } from './played-context.js';

test('twinpost version and twinpost --version say the same', async () => {
  const said: string[][] = [];
  for (const word of ['version', '--version']) {
    const lines: string[] = [];
    assert.equal(await runCli([word], { ...contextFor(lines), version: '9.8.7' }), 0);
    said.push(lines);
  }
  assert.match(said[0]?.join() ?? '', /^twinpost 9\.8\.7, protocol \d+, node v/);
  assert.deepEqual(said[1], said[0]);
});

test('twinpost --version with more behind it is not understood', async () => {
  const lines: string[] = [];
  assert.equal(await runCli(['--version', '--nonsense'], contextFor(lines)), 2);
  assert.match(lines.join(), /^! twinpost: Unknown argument: nonsense/);
});
