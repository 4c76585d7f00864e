/**
 * What becomes of a hand-back when the register does not answer: before it begins, while it is under way, and when
 * the change comes late (docs/model, rules 2, 9, 13). Whoever holds the partition goes on until it is given away.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { checkNoLoss } from './checks.js';
import type { Pair } from './pair.js';
import { holderOf, judged, loaded, oneDeliversAtMost, partitionAt, restart, untilHeldBy } from './pair.js';

const COUNT = 40;
const HANDING = 'HOLDER -> HANDING_BACK';

/** gw-1 was dead and is back, gw-2 has its mail; nothing of it leaves. */
function rescued(): Pair {
  const pair = loaded({}, COUNT);
  const { group } = pair;
  group.gateway('gw-1').kill();
  untilHeldBy(pair, 'gw-2');
  group.gateway('gw-1').start();
  return pair;
}

function untilHandingBack({ group, name }: Pair): void {
  group.until(() => group.log.count(`${name} ${HANDING}`) > 0, 'the hand-back', 60_000);
}

function delivered({ group }: Pair, ms: number): void {
  group.hops.script = () => 'accept';
  oneDeliversAtMost(group, ms);
  assert.equal(group.letters.delivered, COUNT);
}

describe('a hand-back while the register is away', () => {
  for (const how of ['refusing', 'silent'] as const) {
    test(`does not begin: the rescuer delivers for as long as that lasts (${how})`, () => {
      const pair = rescued();
      const { group } = pair;
      group.run(5000);
      group.register.goAway(how);
      group.run(20_000);
      assert.equal(group.log.count(HANDING), 0);
      delivered(pair, 60_000);
      group.register.comeBack();
      judged(pair, COUNT);
    });

    test(`that began before ends here, and the rescuer goes on (${how})`, () => {
      const pair = rescued();
      const { group } = pair;
      untilHandingBack(pair);
      group.register.goAway(how);
      group.run(6000);
      const begun = group.log.count(HANDING);
      delivered(pair, 30_000);
      assert.equal(holderOf(pair), 'gw-2');
      assert.equal(group.log.count(HANDING), begun, 'not tried again');
      group.register.comeBack();
      judged(pair, COUNT);
    });
  }

  test('loses nothing when all stores restart meanwhile: the rescuer has it in memory', () => {
    for (const isBegun of [false, true]) {
      const pair = rescued();
      const { group } = pair;
      if (isBegun) untilHandingBack(pair);
      else group.run(5000);
      group.register.goAway('silent');
      group.run(isBegun ? 0 : 20_000);
      for (const store of group.stores) restart(store);
      group.run(3000);
      group.register.comeBack();
      judged(pair, COUNT);
    }
  });
});

describe('the change that gives a partition away', () => {
  test('of which no answer came, and which was made: the owner has it, nothing is lost', () => {
    const pair = rescued();
    const { group } = pair;
    untilHandingBack(pair);
    group.register.lose({ replies: 1 });
    group.until(() => holderOf(pair) === 'gw-1', 'the record', 20_000);
    for (const letter of group.letters.all) letter.mayRepeat = true;
    oneDeliversAtMost(group, 4000);
    group.register.lose({});
    judged(pair, COUNT);
  });

  test('that comes late finds the partition held, delivering and changed: it is made no more, or obeyed', () => {
    for (const lateMs of [3000, 9000, 20_000]) {
      const pair = rescued();
      const { group } = pair;
      untilHandingBack(pair);
      group.register.delay(1, lateMs);
      oneDeliversAtMost(group, 3000);
      group.register.delay(0, 0);
      for (const letter of group.letters.all) letter.mayRepeat = true;
      group.hops.script = () => 'accept';
      oneDeliversAtMost(group, 30_000);
      group.until(() => group.letters.delivered === COUNT, 'all deliveries', 60_000);
      untilHeldBy(pair, 'gw-1');
      checkNoLoss(group.letters);
    }
  });

  test('after one that was never made another is, once the register answers again', () => {
    const pair = rescued();
    const { group } = pair;
    untilHandingBack(pair);
    group.register.lose({ requests: 1 });
    group.run(10_000);
    assert.equal(holderOf(pair), 'gw-2');
    delivered(pair, 20_000);
    group.register.lose({});
    judged(pair, COUNT);
  });

  test('costs no wait for a lease when its answer comes after the owner’s fence', () => {
    const pair = rescued();
    const { group, name } = pair;
    untilHandingBack(pair);
    const fromMs = group.scheduler.nowMs;
    const process = group.gateway('gw-2').register;
    group.until(() => holderOf(pair) === 'gw-1', 'the record');
    process?.cutOff();
    untilHeldBy(pair, 'gw-1', 2, 5000);
    assert.ok(group.scheduler.nowMs - fromMs < group.leaseMs / 2);
    assert.equal(partitionAt(pair, 'gw-2'), undefined);
    assert.ok(group.log.count(`${name} released`) > 0);
    process?.mend();
    judged(pair, COUNT);
  });
});
