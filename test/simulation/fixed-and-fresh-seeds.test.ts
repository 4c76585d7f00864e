/**
 * The simulation in CI: seeds that are always the same, and seeds that never were before. `npm run simulate` runs more.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const FIXED_SEEDS = 300;
const FRESH_SEEDS = 100;
const STEPS = 80;
const BOUND_MS = 600_000;

function run(args: readonly string[]): { readonly code: number | null; readonly output: string } {
  const child = spawnSync(process.execPath, [fileURLToPath(new URL('main.js', import.meta.url)), ...args], { encoding: 'utf8', timeout: BOUND_MS });
  return { code: child.status, output: `${child.stdout}${child.stderr}` };
}

describe('seeds of the simulation', () => {
  test('the fixed seeds hold, and every kind of fault fires', () => {
    const { code, output } = run(['--seed', '1', '--seeds', String(FIXED_SEEDS), '--steps', String(STEPS), '--keep-going']);
    assert.equal(code, 0, output);
  });

  test('no promise is broken by fresh seeds', (context) => {
    const first = Math.floor(Date.now() / 1000) * 1000;
    context.diagnostic(`fresh seeds from ${String(first)} on`);
    const { code, output } = run(['--seed', String(first), '--seeds', String(FRESH_SEEDS), '--steps', String(STEPS), '--keep-going']);
    assert.equal(code, 0, output);
  });
});
