/** Counts, sizes and oldest ages by state agree with a walk over everything, at the cost of no walk. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Prng } from '../../../../src/base/prng.js';
import { EntryState } from '../../../../src/gateway/queue/entry-table.js';
import { StateCensus } from '../../../../src/gateway/queue/state-census.js';

const START = 1_790_000_000;
const STATES: readonly EntryState[] = [EntryState.READY, EntryState.IN_FLIGHT, EntryState.DEFERRED];

describe('the census of states', () => {
  test('agrees with a walk over all entries, ages to half a minute and never too large', () => {
    const seeded = new Prng(11);
    const random = (): number => seeded.next();
    const census = new StateCensus();
    const entries: { state: EntryState; arrival: number; bytes: number }[] = [];
    let now = START;
    for (let step = 0; step < 20_000; step++) {
      now += Math.floor(random() * 20);
      const state = STATES[Math.floor(random() * STATES.length)] ?? EntryState.READY;
      const picked = Math.floor(random() * entries.length);
      const entry = entries[picked];
      const dice = random();
      if (entry === undefined || dice < 0.35) {
        const made = { state, arrival: now - Math.floor(random() * random() * 400_000), bytes: Math.floor(random() * 1000) };
        entries.push(made);
        census.enter(made.state, made.arrival, made.bytes);
      } else {
        census.leave(entry.state, entry.arrival, entry.bytes);
        if (dice < 0.72) entries.splice(picked, 1);
        else {
          entry.state = state;
          census.enter(entry.state, entry.arrival, entry.bytes);
        }
      }
      if (step % 40 !== 0) continue;
      for (const each of STATES) {
        const those = entries.filter((one) => one.state === each);
        assert.equal(census.count(each), those.length);
        assert.equal(census.bytes(each), those.reduce((sum, one) => sum + one.bytes, 0));
        const oldest = those.length === 0 ? 0 : now - Math.min(...those.map((one) => one.arrival));
        const shown = census.oldestAgeSeconds(each, now);
        assert.ok(shown <= oldest && oldest - shown < 32, `shows ${String(shown)} for ${String(oldest)}`);
      }
    }
  });

  test('finds the oldest across weeks in which nothing arrived', () => {
    const day = 86_400;
    const census = new StateCensus();
    census.enter(EntryState.DEFERRED, START, 5);
    census.enter(EntryState.DEFERRED, START + 50 * day, 5);
    assert.ok(census.oldestAgeSeconds(EntryState.DEFERRED, START + 60 * day) > 60 * day - 32);
    census.leave(EntryState.DEFERRED, START, 5);
    const age = census.oldestAgeSeconds(EntryState.DEFERRED, START + 60 * day);
    assert.ok(age <= 10 * day && age > 10 * day - 32, String(age));
  });

  test('shows no age for a state that nothing is in', () => {
    const census = new StateCensus();
    census.enter(EntryState.READY, START, 5);
    census.leave(EntryState.READY, START, 5);
    assert.equal(census.oldestAgeSeconds(EntryState.READY, START + 1000), 0);
    census.enter(EntryState.READY, START + 2000, 5);
    assert.equal(census.oldestAgeSeconds(EntryState.READY, START + 2000), 0);
  });
});
