/** `twinpost config check --json`: one object, whatever is wrong. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { runCli } from '../../../src/cli/main.js';
import { EMBEDDED_UP_YAML } from '../../../src/config/embedded.js';
import { contextFor } from './played-context.js';

interface Told {
  readonly ok: boolean;
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
  readonly configuration: { readonly gateway: { readonly mirror: { readonly partitions: number } } } | null;
}

test('tells all keys in force, or all that is wrong, as one object', async (t) => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'config-check-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const file = path.join(folder, 'up.yaml');
  const checked = async (text: string): Promise<{ code: number; told: Told; lines: number }> => {
    writeFileSync(file, text);
    const printed: string[] = [];
    const code = await runCli(['config', 'check', file, '--json'], contextFor(printed));
    return { code, told: JSON.parse(printed[0] ?? '') as Told, lines: printed.length };
  };
  const good = await checked(EMBEDDED_UP_YAML);
  assert.deepEqual([good.code, good.lines, good.told.ok, good.told.errors], [0, 1, true, []]);
  assert.equal(good.told.configuration?.gateway.mirror.partitions, 16);
  const bad = await checked(`${EMBEDDED_UP_YAML}\nnonsense: 1\n`);
  assert.deepEqual([bad.code, bad.lines, bad.told.ok, bad.told.configuration], [1, 1, false, null]);
  assert.match(bad.told.errors.join(), /nonsense/);
});
