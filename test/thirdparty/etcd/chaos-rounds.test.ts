/**
 * One small round of each kind of chaos with etcd (test/chaos/rounds.ts); the long form is
 * `npm run chaos -- --rounds 100`.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ROUND_KINDS, isGood, runRounds } from '../../chaos/rounds.js';

for (const minReplicas of [1, 2]) {
  const name = `processes die and freeze together, min_replicas ${String(minReplicas)}`;
  test(name, { timeout: 480_000 }, async (t) => {
    const seed = (Date.now() % 1_000_000) + 1;
    t.diagnostic(`seed ${String(seed)}`);
    const kinds = minReplicas === 1 ? ROUND_KINDS : ['pair'] as const;
    const report = await runRounds({
      seed, kinds, rounds: kinds.length, undelivered: 50, downMsMax: 4_000, partitions: 4, minReplicas,
    });
    assert.ok(isGood(report), JSON.stringify(report, undefined, 1));
  });
}
