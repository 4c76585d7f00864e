/** What a reload changes of what sessions ask, without a port: what is told of files is of those in force. */
import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { buildTable } from '../../../../src/cli/table/build.js';
import { DEEDS, PARTIES } from '../../../../src/gateway/inbound/limits/rate-limits.js';
import { Listeners } from '../../../../src/gateway/daemon/listeners.js';
import { ReceptionMetrics } from '../../../../src/observability/reception-metrics.js';
import { NO_LOG } from '../../../inbound/desk.js';

type Options = ConstructorParameters<typeof Listeners>[0];
type Ports = ConstructorParameters<typeof Listeners>[1];

function optionsOf(recipientsFile: string | undefined): Options {
  const rates = Object.fromEntries(PARTIES.map((party) => [party, Object.fromEntries(DEEDS.map((deed) => [deed, 0]))]));
  return { hostName: 'mx.test', secrets: [], smtp: { recipientsFile, rates, hooks: [] }, inbound: [], routes: [] } as unknown as Options;
}

test('what a table of recipients defers is told while it is in force, and not of one that was', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-listeners-'));
  const [text, file, other] = ['text', 'table', 'other'].map((name) => join(folder, name)) as [string, string, string];
  writeFileSync(text, 'anna@ours.example\n');
  for (const table of [file, other]) buildTable(text, table, () => undefined);
  const reception = new ReceptionMetrics();
  let nowMs = 0;
  const clock = { nowMs: () => nowMs, wallMs: () => 0 };
  const listeners = new Listeners(optionsOf(file), { clock, log: NO_LOG, metrics: { reception }, ofSessions: {} } as unknown as Ports);
  t.after(async () => {
    await listeners.close(0);
    rmSync(folder, { recursive: true });
  });
  const told = (): readonly unknown[] => {
    nowMs += 20_000;
    listeners.tick(nowMs, true);
    const { stale_files: stale, recipients_deferred_by: by } = reception.answer();
    return [stale, by === undefined ? '' : 'deferred'];
  };
  const reload = async (next: string | undefined, whether: 'use' | 'drop'): Promise<void> => { (await listeners.prepare(optionsOf(next)))[whether](); };
  assert.deepEqual(told(), [[], '']);
  appendFileSync(file, 'x');
  const earlier = listeners.recipients;
  const ask = (): void => { assert.throws(() => earlier?.find('nobody@ours.example'), /written into/); };
  ask();
  assert.deepEqual(told(), [['recipients'], 'deferred']);
  await reload(other, 'drop');
  assert.deepEqual(told(), [['recipients'], 'deferred'], 'nothing has changed');
  await reload(other, 'use');
  // A session of before asks the one that was.
  ask();
  assert.deepEqual(told(), [[], '']);
  appendFileSync(other, 'x');
  assert.throws(() => listeners.recipients?.find('nobody@ours.example'), /written into/);
  assert.deepEqual(told(), [['recipients'], 'deferred']);
  await reload(undefined, 'use');
  assert.deepEqual(told(), [[], '']);
  assert.ok(!reception.files.has('recipients'));
});
