/**
 * What befalls etcd in the middle of traffic (test/chaos/register-run.ts), short; the long form is
 * `npm run chaos -- --etcd outage|restored|emptied`.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { REGISTER_FAULTS, isRegisterRunGood, runRegisterFault } from '../../chaos/register-run.js';

for (const fault of REGISTER_FAULTS) {
  test(`etcd under traffic: ${fault}`, { timeout: 480_000 }, async (t) => {
    const report = await runRegisterFault({ seed: 1, fault, seconds: 12 });
    const [before, during] = [report.before, report.during].map(({ perSecond }) => perSecond.toFixed(0));
    t.diagnostic(`accepted a second before ${before ?? ''}, meanwhile ${during ?? ''}`);
    assert.ok(isRegisterRunGood(report), JSON.stringify(report, undefined, 1));
  });
}
