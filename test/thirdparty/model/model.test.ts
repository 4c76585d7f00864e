/**
 * The models of ownership (docs/model) still parse and still say what their README says, at their smallest:
 * checks of the design, and rules without which a property breaks. The whole run takes far longer, and is
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

/** Runs the named checks, which must end as run.sh wants them; the lines of their summary. */
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
  assert.match(await check(['design-drains']), /^design-drains +holds /m);
});

test('a takeover without the wait for leases, or without the change first, lets two deliver', async () => {
  const summary = await check(['no-LEASE_WAIT', 'no-CAS_FIRST']);
  assert.match(summary, /^no-LEASE_WAIT +violated property 2 /m);
  assert.match(summary, /^no-CAS_FIRST +violated property 2 /m);
});

test('a 250 after the first member loses mail', async () => {
  assert.match(await check(['no-ACK_FROM_ALL']), /^no-ACK_FROM_ALL +violated property 1 /m);
});

test('the small models hold: copies given up, partitions that end, orders, poison, a source that dies', async () => {
  const names = ['design-given', 'design-ended', 'design-rules', 'design-poison', 'design-partial-small'];
  const summary = await check(names);
  for (const name of names) assert.match(summary, new RegExp(`^${name} +holds `, 'm'));
});

test('an orphan adopted without the wait, and an end that is told to nobody or left without a line, break a property', async () => {
  const summary = await check(['no-ADOPTION_WAITS', 'no-END_TOLD', 'no-LINE_FIRST']);
  assert.match(summary, /^no-ADOPTION_WAITS +violated property 2 /m);
  assert.match(summary, /^no-END_TOLD +violated property 5 /m);
  assert.match(summary, /^no-LINE_FIRST +violated property 5 /m);
});

test('reading on from any member, and a boot whose file has no fences, break a property', async () => {
  const summary = await check(['no-READ_ON_EQUAL', 'no-FILE_FENCES']);
  assert.match(summary, /^no-READ_ON_EQUAL +violated property 7 /m);
  assert.match(summary, /^no-FILE_FENCES +violated property 2 /m);
});
