/** What is kept of policies is read before they count, and again while it could not be. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, rmdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { sealedLine } from '../../../../../src/gateway/local/sealed-lines.js';
import { RunningSts } from '../../../../../src/gateway/outbound/sts/running-sts.js';
import type { RunningStsPorts } from '../../../../../src/gateway/outbound/sts/running-sts.js';
import { StsMetrics } from '../../../../../src/observability/sts-metrics.js';
import { toldTo } from '../memory-source.js';

test('policies that could not be read are read by the next reload', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'twinpost-sts-'));
  t.after(() => { rmSync(folder, { recursive: true }); });
  const file = join(folder, 'mta-sts.policies');
  mkdirSync(file);
  const log: string[] = [];
  const clock = { nowMs: () => 0, wallMs: () => 1_000 };
  const sts = new RunningSts(folder, { clock, log: toldTo(log), metrics: new StsMetrics() } as unknown as RunningStsPorts);
  sts.isOn = true;
  await sts.load();
  assert.match(log.join(), /can not be read/);
  rmdirSync(file);
  writeFileSync(file, sealedLine('kept.example 1 enforce 1000 86400 mx.kept.example'));
  await sts.load();
  assert.deepEqual(sts.kept('kept.example')?.policy.mx, ['mx.kept.example']);
  writeFileSync(file, '');
  await sts.load();
  assert.ok(sts.knows('kept.example'), 'once is enough');
});
