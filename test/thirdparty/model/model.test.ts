/**
 * The model of takeover (docs/model) still parses and still says what its README says, at its smallest: one
 * check of the design, and two rules without which a property breaks. The whole run takes far longer, and is
 * started by hand: docs/model/run.sh.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { runProgram } from '../support.js';

const MODEL = join(dirname(fileURLToPath(import.meta.url)), '..', '..', '..', '..', 'docs', 'model');

/** Runs the named checks; the lines of their summary. */
async function check(names: readonly string[]): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-model-'));
  try {
    const ended = await runProgram('env', [`OUT=${folder}`, join(MODEL, 'run.sh'), ...names]);
    assert.equal(ended.code, 0, ended.output);
    return readFileSync(join(folder, 'summary'), 'utf8');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('the smallest check of the design holds', async () => {
  assert.match(await check(['design-small']), /^design-small +holds /m);
});

test('a claim that does not wait for the lease lets two deliver', async () => {
  assert.match(await check(['no-LEASE_WAIT']), /^no-LEASE_WAIT +violated property 2 /m);
});

test('a right that is not confirmed when the lease begins anew lets two deliver', async () => {
  assert.match(await check(['no-CONFIRMED_EACH_TERM']), /^no-CONFIRMED_EACH_TERM +violated property 2 /m);
});
