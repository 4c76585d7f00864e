/**
 * Mail whose time is up while stores do not acknowledge (G7): its end is a change that is kept until every copy has it. What finds
 * no room waits and ends later; a partition whose copies have all there is waits for none of the others.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NOTIFY_NEVER, NO_MEMORY } from '../../src/gateway/mail-types.js';
import { checkNoDuplicates, checkNoLoss } from './checks.js';
import { coreOf } from './inspect.js';
import type { WorldOptions } from './world.js';
import { World } from './world.js';

const LIMIT_BYTES = 4 * 1024 * 1024;
const LIFE_MS = 20_000;

/** Runs on, and holds at each step that memory is within its limit. The most that was used. */
function runWithin(world: World, ms: number): number {
  const { memory } = coreOf(world);
  let most = 0;
  for (let left = ms; left > 0; left -= 50) {
    world.run(50);
    most = Math.max(most, memory.usedBytes);
    assert.ok(memory.usedBytes <= memory.limitBytes, `${String(memory.usedBytes)} of ${String(memory.limitBytes)}`);
  }
  return most;
}

function world(options: WorldOptions): World {
  const made = World.started({
    gatewayMemoryBytes: LIMIT_BYTES, lifetimeMs: LIFE_MS, bounceLifetimeMs: 3_600_000, commitTimeoutMs: 60_000, ...options,
  });
  made.hops.script = ({ queueName }) => (queueName === 'q1' ? 'defer' : queueName === 'senders' ? 'accept' : 'unreachable');
  return made;
}

function fill(made: World, recipients: number): void {
  for (let last = 0; last !== NO_MEMORY;) {
    const letter = made.submit(['q1'], { recipients, bytes: 10 });
    made.run(2);
    last = letter.outcome;
  }
}

function storesOf(made: World, queue: string): readonly string[] {
  return made.mirror(queue).rows.filter(({ isRecorded }) => isRecorded).map(({ storeId }) => storeId);
}

describe('mail whose time is up while a store does not acknowledge', () => {
  for (const recipients of [5, 40]) {
    test(`takes no memory beyond the limit, and ends when the store is back (${String(recipients)} recipients)`, () => {
      const made = world({ queues: [{ name: 'q1' }], partitions: 1 });
      fill(made, recipients);
      made.register.goAway('silent');
      // The other one hears, so that deliveries go on, and their deferrals take room, until the lease ends.
      const [silent] = made.stores;
      assert.ok(silent !== undefined);
      made.cut(silent);
      const { memory } = coreOf(made);
      const most = runWithin(made, 2 * LIFE_MS);
      assert.ok(most > memory.reserveBytes, 'changes wait in the last reserve');
      made.heal(silent);
      made.register.comeBack();
      runWithin(made, LIFE_MS);
      made.untilQuiet(600_000);
      checkNoLoss(made.letters);
      checkNoDuplicates(made.letters);
    });
  }

  test('waits in no partition whose own stores have all there is', () => {
    const names = ['q1', 'q2', 'q3', 'q4', 'q5', 'q6', 'q7', 'q8'];
    const made = world({ stores: 4, queues: names.map((name) => ({ name })) });
    const letters = new Map(names.map((name) => [name, made.submit([name], { notify: NOTIFY_NEVER })]));
    made.run(500);
    const silent = storesOf(made, 'q1');
    const well = names.filter((name) => storesOf(made, name).every((id) => !silent.includes(id)));
    assert.ok(well.length > 0 && well.length < names.length);
    fill(made, 40);
    made.register.goAway('silent');
    for (const store of made.stores) if (silent.includes(store.id)) made.cut(store);
    const { memory } = coreOf(made);
    made.until(() => memory.usedBytes > memory.reserveBytes, LIFE_MS, 'changes that wait');
    for (const name of well) assert.equal(letters.get(name)?.ended.size, 0, 'not over yet');
    runWithin(made, 2 * LIFE_MS);
    for (const name of well) assert.equal(letters.get(name)?.ended.size, 1, `${name} ends`);
  });
});
