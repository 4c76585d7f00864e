/**
 * A partition's life in one process, event by event: founding, filling what was refused, reading on (7,
 * 14-16).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { GAVE_UP_MAX } from '../../../../src/protocol/fields.js';
import type { GivenUpCopy, HolderId, PartitionRecord, PastTerm } from '../../../../src/protocol/partition-record.js';
import { isOfLine, mailOf } from '../../../../src/protocol/partition-record.js';
import { HolderState } from '../../../../src/recovery/ownership/holder.js';
import type { CopyPosition, HolderOptions } from '../../../../src/recovery/ownership/ports.js';
import { MemberState } from '../../../../src/recovery/ownership/member.js';
import { DECLINED_FULL, DECLINED_LOWER, DECLINED_NO_COPY, DECLINED_STALE } from '../../../../src/protocol/reasons.js';
import { AwayCause, Waiting, awayText } from '../../../../src/recovery/ownership/waiting.js';
import { AT, OLDER, OTHER, SELF, Stage, foundingAfterGiveUp, members, recordOf } from './holder-stage.js';

describe('founding', () => {
  test('ends when the register shows a newer record than the one it is founded for', () => {
    const stage = foundingAfterGiveUp();
    stage.answerRead('r2', recordOf(5, OTHER, 'a'));
    assert.equal(stage.state, HolderState.ASKING);
  });

  test('ends when the register moved, to whatever: it may have been rolled back', () => {
    const stage = foundingAfterGiveUp();
    stage.answerRead('r0', recordOf(3, OTHER, 'c'));
    assert.equal(stage.state, HolderState.ASKING);
  });

  test('ends when a store was told a newer record', () => {
    const stage = foundingAfterGiveUp();
    stage.tick();
    const term = stage.founds.at(-1)?.term;
    assert.ok(term !== undefined);
    stage.holder.onDeclined('c', 'b1', { reason: DECLINED_STALE, asked: term, term: { number: 5, nonce: 5 },
      told: recordOf(9, OTHER, 'c') }, stage.nowMs);
    stage.tick();
    assert.equal(stage.state, HolderState.ASKING);
  });

  test('ends when a copy is back that was to be given up: it is taken over', () => {
    const stage = foundingAfterGiveUp();
    stage.up.set('a', 'b1');
    stage.tick();
    assert.equal(stage.state, HolderState.ASKING);
  });

  test('after a loss waits for every lease that anybody may have, whatever its members say', () => {
    const stage = foundingAfterGiveUp();
    stage.up.set('d', 'b1');
    stage.tick();
    const term = stage.founds.at(-1)?.term;
    assert.ok(term !== undefined);
    for (const storeId of ['c', 'd']) stage.holder.onFounded(storeId, 'b1', term);
    stage.tick();
    stage.apply('r2');
    assert.equal(stage.state, HolderState.WAITING_OUT);
    const fences = stage.fences.length;
    stage.holder.onLinkUp('e', 'b1', stage.nowMs);
    stage.tick(19);
    assert.equal(stage.state, HolderState.WAITING_OUT);
    assert.equal(stage.fences.length, fences, 'their answers would end the wait');
    stage.tick();
    assert.equal(stage.state, HolderState.HOLDER);
  });

  test('does not begin before it is known which stores there are, however many have answered', () => {
    const stage = new Stage();
    stage.areStoresKnown = false;
    stage.answerRead('none', undefined);
    for (const storeId of stage.up.keys()) stage.asked(storeId, false);
    stage.tick(10);
    assert.equal(stage.state, HolderState.ASKING);
    assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.STORES);
    stage.areStoresKnown = true;
    stage.tick();
    assert.equal(stage.state, HolderState.FOUNDING);
  });

  test('does not begin while a copy that is to be given up can be reached', () => {
    const stage = new Stage();
    stage.up.delete('a');
    stage.answerRead('r1', recordOf(4, OTHER, 'a', 'b'));
    assert.equal(stage.holder.giveUp(['a', 'b'], stage.nowMs), false);
    assert.equal(stage.state, HolderState.ASKING);
  });

  test('a store that can take no copy is left out, and does not make it begin anew', () => {
    const stage = foundingAfterGiveUp();
    stage.up.set('d', 'b1');
    stage.tick();
    const term = stage.founds.at(-1)?.term;
    assert.ok(term !== undefined);
    stage.holder.onFounded('c', 'b1', term);
    for (let i = 0; i < 12; i++) {
      stage.holder.onDeclined('d', 'b1', { reason: DECLINED_NO_COPY, asked: term, term,
        told: undefined }, stage.nowMs);
      stage.tick();
    }
    assert.equal(stage.state, HolderState.CLAIMING);
    assert.deepEqual(stage.changes.at(-1)?.record.members, members('c'));
  });
});

describe('a store that refuses to be filled by a term that is in no record', () => {
  test('is told a record above that term, and filled then', async () => {
    const stage = new Stage();
    stage.hold();
    await Promise.resolve();
    stage.up.delete('b');
    stage.holder.onLinkDown('b', stage.nowMs);
    stage.tick(5);
    stage.apply('r2');
    stage.tick(50);
    assert.deepEqual(stage.fills, ['c']);
    const { term } = stage.holder;
    const changes = stage.changes.length;
    for (let i = 0; i < 5; i++) {
      stage.holder.onDeclined('c', 'b1', { reason: DECLINED_LOWER, asked: term,
        term: { number: 40, nonce: 4 }, told: undefined }, stage.nowMs);
      stage.tick();
    }
    assert.deepEqual(stage.fills, ['c'], 'it would refuse again');
    assert.equal(stage.changes.length, changes + 1);
    assert.equal(stage.told.includes('c 41'), false, 'it may not have been made');
    assert.deepEqual(stage.apply('r3').members, members('a'));
    assert.equal(stage.told.includes('c 41'), true);
    stage.holder.set?.onTold('c', 'b1', 41, 0);
    stage.tick();
    assert.deepEqual(stage.fills, ['c'], 'a fill that was refused rests for a second');
    stage.tick(100);
    assert.deepEqual(stage.fills, ['c', 'c']);
  });
});

test('asks for a person when all copies of a record that the register lost are gone', () => {
  const stage = new Stage();
  stage.up.set('a', 'b2').set('b', 'b2');
  stage.answerRead('r1', recordOf(4, OTHER, 'a', 'b'));
  stage.answerRead('none', undefined);
  stage.tick(31);
  stage.answerRead('none', undefined);
  assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.STORES);
  for (const storeId of ['a', 'b', 'c']) stage.asked(storeId, false);
  assert.equal(stage.state, HolderState.ASKING, 'the holder may live, with all of it in memory');
  assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.COPIES_AWAY);
  assert.deepEqual([stage.holder.away, stage.holder.lastHolder], [{ cause: AwayCause.MEMORY, stores: [] }, OTHER], 'no store is waited for');
  assert.equal(stage.holder.giveUp([], stage.nowMs), true);
});

describe('a record that was undone by a register that has gone on since, when all its copies are gone', () => {
  const THIRD: HolderId = { gatewayId: 'g3', incarnation: 1 };
  const FIRST: PastTerm = { term: { number: 1, nonce: 1 }, epoch: 3 };
  /** In the register now, with copies at c and d. */
  const goneOn = (holder: HolderId): PartitionRecord =>
    ({ ...recordOf(5, holder, 'c', 'd'), term: { number: 5, nonce: 1 }, line: [{ ...FIRST, epoch: 2 }] });

  /** What was undone is remembered from a reading before. */
  const remembering = (stores = ['a', 'b']): Stage => {
    const stage = new Stage();
    stage.up.set('d', 'b1');
    stage.answerRead('r5', { ...recordOf(7, OTHER, ...stores), line: [FIRST] });
    stage.up.set('a', 'b2').set('b', 'b2');
    return stage;
  };
  const isOvertaken = ({ traced }: Stage): boolean => traced.some((event) => event.includes('no copy of it is left'));
  const look = (stage: Stage, record: PartitionRecord, hasSession = false): void => {
    stage.holder.onNews(stage.nowMs);
    const ticket = stage.reads.at(-1);
    assert.ok(ticket !== undefined);
    stage.holder.onRecord(ticket, { revision: 'r9', record, hasSession }, stage.nowMs);
    for (const storeId of ['a', 'b']) stage.asked(storeId, stage.up.get(storeId) === 'b1', 900);
    // They are asked about the holder of what was undone, and then about this one, which lives.
    for (const storeId of ['c', 'd']) stage.asked(storeId, true, isOvertaken(stage) ? 900 : 0, record);
    stage.tick(4);
  };
  const lookUntilOvertaken = (stage: Stage, record: PartitionRecord): void => {
    look(stage, record);
    assert.equal(isOvertaken(stage), false, 'who held it may be about to write it again');
    for (let i = 0; i < 10 && !isOvertaken(stage); i++) look(stage, record);
    assert.ok(isOvertaken(stage));
  };

  test('keeps nobody from what the register says: who is named by it takes it', () => {
    const stage = remembering();
    lookUntilOvertaken(stage, goneOn(SELF));
    look(stage, goneOn(SELF));
    assert.equal(stage.state, HolderState.FENCING);
    assert.deepEqual([stage.holder.term.nonce, stage.fences.slice(0, 2)], [1, ['c', 'd']]);
  });

  test('likewise when its holder had it in memory alone: that it is up itself says nothing of that one', () => {
    const stage = remembering([]);
    for (let i = 0; i < 10 && stage.state === HolderState.ASKING; i++) look(stage, goneOn(SELF), true);
    assert.deepEqual([stage.state, isOvertaken(stage)], [HolderState.FENCING, true]);
  });

  test('nor is the holder that lives disturbed', () => {
    const stage = remembering();
    lookUntilOvertaken(stage, goneOn(THIRD));
    stage.tick(4);
    look(stage, goneOn(THIRD));
    assert.deepEqual(stage.changes, [], 'its lease runs');
    look(stage, goneOn(THIRD), true);
    assert.equal(stage.state, HolderState.IDLE, 'there is nothing to take');
  });

  test('is believed over an older record of its own line, also afterwards', () => {
    const older = { ...recordOf(FIRST.epoch, SELF, 'c', 'd'), term: FIRST.term };
    const stage = remembering();
    for (let i = 0; i < 10; i++) look(stage, older);
    assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.COPIES_AWAY);
    look(stage, goneOn(THIRD));
    assert.ok(isOvertaken(stage));
    for (let i = 0; i < 10; i++) look(stage, older);
    assert.deepEqual([stage.state, stage.fences], [HolderState.ASKING, []]);
  });

  test('is believed as long as a store has not said what it knows', () => {
    const stage = remembering();
    stage.up.set('e', '');
    for (let i = 0; i < 10; i++) look(stage, goneOn(SELF));
    assert.deepEqual([stage.state, isOvertaken(stage)], [HolderState.ASKING, false]);
    assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.COPIES_AWAY);
    assert.deepEqual(stage.holder.away, { cause: AwayCause.REGISTER_BEHIND, stores: ['e'] });
    assert.equal(stage.holder.giveUp(['a'], stage.nowMs), false, 'that one is not waited for');
    assert.equal(stage.holder.giveUp(['e'], stage.nowMs), true);
    assert.equal(isOvertaken(stage), true, 'it never says more');
  });

  test('is believed as long as a copy of it answers', () => {
    const stage = remembering();
    stage.up.set('a', 'b1');
    for (let i = 0; i < 10; i++) look(stage, goneOn(SELF));
    assert.deepEqual([stage.state, isOvertaken(stage)], [HolderState.ASKING, false]);
  });
});

test('waits for the lease of a holder whose session is gone, unless that holder goes on renewing it', () => {
  const stage = new Stage();
  stage.answerRead('r1', recordOf(4, OTHER, 'a', 'b'));
  const waits = (leaseLeftMs: number): number => {
    stage.tick(2);
    stage.asked('a', true, leaseLeftMs);
    return stage.holder.waitsFor(stage.nowMs);
  };
  assert.equal(waits(1900), Waiting.NOTHING, 'it may be renewed');
  assert.equal(waits(1700), Waiting.LEASE);
  assert.equal(waits(1900), Waiting.NOTHING, 'it is: the holder lives');
  assert.deepEqual([waits(1700), waits(1500), waits(0)], [Waiting.LEASE, Waiting.LEASE, Waiting.LEASE]);
  assert.equal(stage.state, HolderState.ASKING, 'not before every store has been heard');
});

describe('a holder that has taken its term at no copy, though its leases run there', () => {
  /** For so long the register answers what it is asked, and stores do every half second. */
  const looks = (stage: Stage, ms: number, session: boolean, termNumber: number): void => {
    let answered = stage.reads.length;
    for (let atMs = 0; atMs < ms; atMs += 100) {
      if (atMs % 500 === 0) for (const storeId of stage.up.keys()) stage.asked(storeId, storeId !== 'c', 1900, undefined, termNumber);
      stage.tick();
      for (; answered < stage.reads.length; answered += 1) {
        stage.holder.onRecord(stage.reads[answered] ?? 0, { revision: 'r1', record: recordOf(4, OTHER, 'a', 'b'), hasSession: session }, stage.nowMs);
      }
    }
  };

  test('is waited for a while, which is said; then it is taken over, its session being gone', () => {
    const stage = new Stage();
    looks(stage, 2500, false, 3);
    assert.deepEqual([stage.state, stage.holder.waitsFor(stage.nowMs)], [HolderState.ASKING, Waiting.NOTHING]);
    looks(stage, 700, false, 3);
    assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.LEASE);
    looks(stage, 1000, false, 3);
    assert.equal(stage.state, HolderState.CLAIMING);
  });

  test('with a session it is waited for as long as for one without a lease', () => {
    const stage = new Stage();
    looks(stage, 3900, true, 3);
    assert.deepEqual([stage.state, stage.holder.waitsFor(stage.nowMs)], [HolderState.ASKING, Waiting.LEASE]);
    looks(stage, 1000, true, 3);
    assert.equal(stage.state, HolderState.CLAIMING);
  });

  test('lives, once one of them has it', () => {
    const stage = new Stage();
    looks(stage, 2000, true, 3);
    stage.asked('a', true, 1900, undefined, 4);
    assert.equal(stage.state, HolderState.IDLE);
    const other = new Stage();
    looks(other, 10_000, false, 4);
    assert.equal(other.state, HolderState.ASKING);
  });
});

test('asks for a person only when every store that can be reached has said what it was told', () => {
  const stage = new Stage();
  stage.up.delete('a');
  stage.up.delete('b');
  stage.answerRead('r1', recordOf(4, OTHER, 'a', 'b'));
  stage.tick(31);
  stage.answerRead('r1', recordOf(4, OTHER, 'a', 'b'));
  assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.NOTHING);
  assert.equal(stage.holder.giveUp(['a', 'b'], stage.nowMs), false);
  // The register was rolled back: c has all that counts.
  stage.asked('c', true, 0, recordOf(5, OTHER, 'c'));
  assert.notEqual(stage.holder.waitsFor(stage.nowMs), Waiting.COPIES_AWAY);
  assert.equal(stage.holder.giveUp(['a', 'b'], stage.nowMs), false);
});

test('asks no store again that has said in this boot what it was told, and none that is down', () => {
  const stage = new Stage();
  stage.hold();
  const before = stage.asks.length;
  stage.tick(10);
  assert.equal(stage.asks.length, before);
  stage.up.set('c', '');
  stage.holder.onLinkDown('c', stage.nowMs);
  stage.tick(10);
  assert.equal(stage.asks.length, before);
  stage.up.set('c', 'b2');
  stage.holder.onLinkUp('c', 'b2', stage.nowMs);
  stage.tick(10);
  const again = stage.asks.slice(before);
  assert.ok(again.length > 0 && again.every((storeId) => storeId === 'c'), again.join());
});

test('that an older question gets no answer puts off nothing that is asked now', () => {
  const stage = new Stage();
  stage.answerRead('r1', recordOf(1, OLDER, 'a', 'b'));
  const [answered = 0] = stage.reads;
  for (let i = 0; i < 20; i += 1) {
    stage.tick();
    stage.holder.onNoAnswer(answered, stage.nowMs);
  }
  assert.ok(stage.reads.length > 1, 'it is read again');
});

test('takes nothing before every store that can be reached has said what it was told', () => {
  const stage = new Stage();
  stage.answerRead('r1', recordOf(1, OLDER, 'a', 'b'));
  for (const storeId of ['a', 'b']) stage.asked(storeId, true);
  stage.tick(10);
  assert.equal(stage.state, HolderState.ASKING);
  stage.asked('c', true, 0, recordOf(2, OLDER, 'b', 'c'));
  stage.answerRead('r1', recordOf(1, OLDER, 'a', 'b'));
  for (const storeId of ['a', 'b', 'c']) stage.asked(storeId, true);
  stage.tick();
  assert.deepEqual(stage.changes.at(-1)?.record.members, members('b', 'c'));
});

test('a process that takes a partition again reads operators’ orders again before it delivers', async () => {
  const stage = new Stage();
  stage.takeFrom('a');
  await Promise.resolve();
  assert.equal(stage.holder.mayDeliver(stage.nowMs), true);
  stage.holder.onNews(stage.nowMs);
  stage.answerRead('r3', recordOf(9, OTHER, 'a'));
  for (let i = 0; i < 60 && stage.state !== HolderState.CLAIMING; i++) {
    stage.answerRead('r3', recordOf(9, OTHER, 'a'));
    for (const storeId of stage.up.keys()) stage.asked(storeId, storeId === 'a');
    stage.tick();
  }
  const asked = stage.rulesAsked;
  const record = stage.apply('r4');
  stage.holder.onFenced('a', 'b1', { term: record.term, at: AT, olderLeaseMs: 0 }, stage.nowMs);
  assert.equal(stage.state, HolderState.READING);
  assert.equal(stage.holder.mayDeliver(stage.nowMs), false);
  stage.tick();
  await Promise.resolve();
  assert.notEqual(stage.rulesAsked, asked);
  assert.equal(stage.holder.mayDeliver(stage.nowMs), true);
});

test('a record of our epoch and another term is none of ours: the register was put back, and nobody stops', async () => {
  const stage = new Stage();
  stage.hold();
  await Promise.resolve();
  const { record } = stage.holder;
  assert.ok(record !== undefined);
  stage.holder.onNews(stage.nowMs);
  stage.answerRead('r9', { ...record, term: { ...record.term, nonce: 1 }, holder: OTHER });
  assert.equal(stage.state, HolderState.HOLDER);
  assert.ok(stage.traced.some((event) => event.includes('rolled back')));
});

test('who may not write its record again, for a silent store may know better, asks a person, and goes on by the order', () => {
  const stage = new Stage();
  stage.hold();
  stage.holder.onRules(stage.rulesTicket, stage.nowMs);
  const { set, record } = stage.holder;
  assert.ok(set !== undefined && record !== undefined);
  // The machine of b dies while the register is away, which comes back empty.
  stage.up.set('b', '');
  stage.holder.onLinkDown('b', stage.nowMs);
  const lease = set.rowOf('b', 'b1')?.lease;
  assert.ok(lease !== undefined);
  Object.assign(lease, { endsMs: -1 });
  const look = (): void => {
    stage.holder.onNews(stage.nowMs);
    stage.answerRead('0', undefined);
    stage.asked('a', true, 1000, record);
    stage.asked('c', false);
    stage.tick();
  };
  look();
  assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.STORES);
  assert.equal(stage.holder.giveUp(['c'], stage.nowMs), false);
  for (let i = 0; i < 50; i++) look();
  const before = stage.changes.length;
  assert.equal(stage.state, HolderState.HOLDER);
  assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.COPIES_AWAY);
  assert.deepEqual(stage.holder.away, { cause: AwayCause.REGISTER_BEHIND, stores: ['b'] });
  assert.equal(stage.holder.awaitsOrder(['b'], stage.nowMs), true);
  assert.equal(stage.holder.wouldBeginEmpty, false);
  stage.holder.handBack(OTHER, stage.nowMs);
  assert.equal(stage.state, HolderState.HOLDER, 'it is not stopped while the order is asked for');
  assert.equal(stage.holder.giveUp(['b'], stage.nowMs), true);
  stage.tick(3);
  assert.ok(stage.changes.length > before, 'it writes its record again');
  assert.deepEqual(stage.apply('1').members, members('a', 'b'));
  assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.NOTHING);
});

test('a record that names this process, with every member silent, asks a person: that it lives is no copy', () => {
  const stage = new Stage();
  for (const storeId of ['a', 'b']) stage.up.set(storeId, '');
  for (let i = 0; i < 10; i++) {
    stage.holder.onNews(stage.nowMs);
    stage.answerRead('r1', recordOf(5, SELF, 'a', 'b'), true);
    stage.asked('c', false);
    stage.tick(5);
  }
  assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.COPIES_AWAY);
  assert.equal(stage.holder.awaitsOrder(['a', 'b'], stage.nowMs), true);
  assert.equal(stage.holder.giveUp(['a', 'b'], stage.nowMs), true);
  assert.equal(stage.state, HolderState.FOUNDING);
});

test('what nobody was told of begins empty as a loss when a store was given up for it, and says so before', () => {
  const stage = new Stage();
  stage.up.set('b', '');
  stage.mayBegin = true;
  stage.answerRead('0', undefined);
  for (const storeId of ['a', 'c']) stage.asked(storeId, false);
  for (let i = 0; i < 10; i++) {
    stage.holder.onNews(stage.nowMs);
    stage.answerRead('0', undefined);
    for (const storeId of ['a', 'c']) stage.asked(storeId, false);
    stage.tick(5);
  }
  assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.COPIES_AWAY);
  assert.equal(stage.holder.away.cause, AwayCause.REGISTER_BEHIND);
  assert.equal(stage.holder.wouldBeginEmpty, true);
  assert.equal(stage.holder.giveUp(['b'], stage.nowMs), true);
  assert.equal(stage.state, HolderState.FOUNDING);
  stage.tick();
  const { term } = stage.founds.at(-1) ?? assert.fail('it is founded');
  for (const storeId of ['a', 'c']) stage.holder.onFounded(storeId, 'b1', term);
  stage.tick();
  stage.apply('1');
  stage.tick(40);
  assert.deepEqual(stage.begun, [true]);
});

test('of another gateway\'s partition, which an earlier life of this one held, nobody else knows that its memory is gone', () => {
  for (const isGone of [true, false]) {
    const stage = new Stage({ isOwn: false });
    stage.mayBegin = false;
    if (isGone) for (const storeId of ['a', 'b']) stage.up.set(storeId, 'b2');
    stage.answerRead('r1', recordOf(4, OLDER, 'a', 'b'));
    for (const storeId of stage.up.keys()) stage.asked(storeId, !isGone && storeId !== 'c', 10_000);
    stage.tick();
    assert.equal(stage.state, isGone ? HolderState.FOUNDING : HolderState.ASKING);
  }
});

describe('a record that the register lost, whose stores are silent', () => {
  const RECORD = recordOf(4, OLDER, 'a', 'b');
  function lost(...silent: string[]): Stage {
    const stage = new Stage({ foundWaitMs: 0 });
    for (const storeId of silent) stage.up.set(storeId, '');
    for (let i = 0; i < 10; i++) {
      stage.holder.onNews(stage.nowMs);
      stage.answerRead('0', undefined);
      if (!silent.includes('b')) stage.asked('b', false);
      stage.asked('c', false, 0, RECORD);
      stage.tick(5);
    }
    assert.deepEqual(stage.holder.away, { cause: AwayCause.REGISTER_BEHIND, stores: silent });
    assert.equal(stage.holder.wouldBeginEmpty, true);
    assert.equal(stage.holder.giveUp(silent, stage.nowMs), true);
    return stage;
  }

  test('is given up by one order that names them all', () => {
    const stage = lost('a', 'b');
    assert.equal(stage.state, HolderState.FOUNDING);
    stage.tick();
    stage.holder.onFounded('c', 'b1', stage.founds.at(-1)?.term ?? assert.fail('it is founded'));
    stage.tick();
    const given = ['a', 'b'].map((storeId) => ({ storeId, bootId: 'b1', epoch: RECORD.epoch }));
    assert.deepEqual(stage.apply('1').gaveUp, given, 'they were never in another boot');
  });

  test('is not given up by one that could not name a store which answers without its copy', () => {
    const stage = lost('a');
    assert.deepEqual([stage.state, stage.holder.away.stores], [HolderState.ASKING, ['a', 'b']]);
  });
});

describe('a loss that is not sure yet, for a store has said nothing', () => {
  const LAST = recordOf(4, SELF, 'a', 'b');
  /** The stores of both copies are up in another boot. */
  function restarted(record: PartitionRecord): Stage {
    const stage = new Stage({ foundWaitMs: 0 });
    stage.up.set('a', 'b2').set('b', 'b2').set('c', '');
    stage.answerRead('r4', record);
    for (const storeId of ['a', 'b']) stage.asked(storeId, false);
    stage.tick(10);
    assert.equal(stage.state, HolderState.ASKING);
    return stage;
  }

  for (const [whose, holder] of [['of this process itself', SELF], ['of one that is proven dead', OLDER]] as const) {
    test(`${whose}: nothing begins without that store`, () => {
      const stage = restarted({ ...LAST, holder });
      assert.deepEqual([stage.founds, stage.holder.away], [[], { cause: AwayCause.ALL_GONE, stores: ['c'] }]);
    });
  }

  test('is not begun by an order that does not name that store, when one in another boot is silent, too', () => {
    const stage = restarted(LAST);
    stage.up.set('a', '');
    stage.holder.onLinkDown('a', stage.nowMs);
    stage.tick(31);
    assert.deepEqual(stage.holder.away.stores, ['a', 'c']);
    assert.equal(stage.holder.giveUp(['a'], stage.nowMs), false);
    assert.equal(stage.state, HolderState.ASKING);
    assert.equal(stage.holder.giveUp(['a', 'c'], stage.nowMs), true);
    assert.equal(stage.state, HolderState.FOUNDING, 'one order is enough');
    stage.answerRead('r4', LAST);
    stage.holder.onFounded('b', 'b2', stage.founds.at(-1)?.term ?? assert.fail('it is founded'));
    stage.tick();
    const { gaveUp } = stage.apply('r5');
    assert.deepEqual(gaveUp.map(({ storeId, isGone }) => [storeId, isGone]), [['b', true], ['a', true]], 'both may be back with their disks');
  });

  test('is not begun when the last of its stores is heard between two looks', () => {
    const stage = new Stage();
    stage.up.set('a', 'b2').set('b', '').set('c', '');
    stage.answerRead('r4', LAST);
    stage.asked('a', false);
    stage.tick(3);
    stage.up.set('b', 'b2');
    stage.asked('b', false);
    assert.deepEqual([stage.state, stage.founds], [HolderState.ASKING, []]);
  });

  test('is over when another holds it, or it has ended', () => {
    const held = restarted(LAST);
    held.answerRead('r5', { ...recordOf(6, OTHER), line: [{ term: LAST.term, epoch: 5 }] }, true);
    held.tick();
    assert.equal(held.state, HolderState.IDLE);
    const ended = restarted(LAST);
    ended.answerRead('r5', { ...recordOf(6, { gatewayId: 'g1', incarnation: 0 }), line: [{ term: LAST.term, epoch: 5 }] });
    ended.tick();
    assert.equal(ended.state, HolderState.FOUNDING);
  });

  test('is not said to be one where the register is behind what a store was told', () => {
    const stage = new Stage();
    stage.up.set('a', 'b2').set('b', 'b2').set('c', '').set('d', 'b1');
    stage.answerRead('r4', recordOf(4, OTHER, 'd'));
    for (const storeId of ['a', 'b']) stage.asked(storeId, false);
    stage.asked('d', true, 0, recordOf(7, SELF, 'a', 'b'));
    stage.tick(10);
    assert.deepEqual(stage.holder.away, { cause: AwayCause.REGISTER_BEHIND, stores: ['c'] });
  });
});

/** Every copy of the record is gone, and no store is free: a and b were told what the register lost, and have their copies. */
function afterLoss(
  told: readonly (readonly [told: PartitionRecord, termNumber: number])[], gaveUp: PartitionRecord['gaveUp'] = [],
): Stage {
  const stage = new Stage();
  stage.up.delete('c');
  const record = { ...recordOf(9, OLDER, 'd'), gaveUp, line: [{ term: { number: 8, nonce: 8 }, epoch: 8 }] };
  stage.up.set('d', 'b2');
  stage.answerRead('r1', record);
  told.forEach(([lost, termNumber], at) => { stage.asked(at === 0 ? 'a' : 'b', true, 0, lost, termNumber); });
  stage.asked('d', false);
  stage.holder.onLinkDown('d', stage.nowMs);
  stage.up.delete('d');
  stage.untilClaimed(record);
  return stage;
}

const FIFTH = recordOf(5, OTHER, 'b');
for (const [what, told, read] of [
  ['the copy of the later one is read', [[recordOf(3, OTHER, 'a'), 3], [FIFTH, 5]], 'b'],
  ['one that nobody took mail from is read rather than a later one', [[recordOf(3, OTHER, 'a'), 3], [FIFTH, 6]], 'a'],
  ['one that counts is read, and not a later one that had left', [[recordOf(3, OTHER, 'a'), 3], [recordOf(5, OTHER, 'e'), 5]], 'a'],
  ['one that counts is read, and not what has ended', [[recordOf(3, OTHER, 'a'), 3], [{ ...FIFTH, holder: { gatewayId: 'g1', incarnation: 0 } }, 5]], 'a'],
] as const) {
  test(`of two records that the register lost, where no store is free, ${what}`, () => {
    assert.deepEqual(afterLoss(told).changes.at(-1)?.record.members, members(read));
  });
}

test('a copy that the register lost stands alone where one of another history counted in an epoch of its number', async () => {
  const given = { storeId: 'e', bootId: 'b1', epoch: 3 };
  const [a, b] = ['a', 'b'].map((storeId) => ({ storeId, bootId: 'b1', epoch: 3, isAlone: true }));
  const lost = recordOf(3, OTHER, 'a', 'b');
  const stage = afterLoss([[lost, 3], [lost, 3]], [given]);
  const { gaveUp, term } = stage.apply('r2');
  assert.deepEqual(gaveUp.filter(({ epoch }) => epoch === 3), [given, b]);
  await stage.untilHeld('a', term);
  stage.up.set('e', 'b1');
  stage.tick(3);
  assert.ok(stage.adopts.includes('e'), 'what was read covers none but itself');
  const twice = afterLoss([[lost, 3], [lost, 3]], [{ ...given, storeId: 'b' }]).changes.at(-1)?.record;
  assert.deepEqual([twice?.members, twice?.gaveUp.some(({ storeId }) => storeId === 'b')], [members('b'), false], 'one that is in the record already');
  const ofTwo = afterLoss([[lost, 4], [{ ...lost, term: { number: 3, nonce: 8 } }, 3]]).changes.at(-1)?.record;
  assert.deepEqual(ofTwo?.gaveUp.find(({ storeId }) => storeId === 'a'), a);
});

test('of which some mail was taken in since stands alone when another copy is read back', () => {
  const copyOf = (storeId: string, epoch: number): GivenUpCopy => ({ storeId, bootId: 'b1', epoch });
  const [x, y, z] = [copyOf('x', 2), copyOf('y', 5), copyOf('z', 5)];
  const stage = new Stage();
  stage.up.clear();
  for (const storeId of ['x', 'y', 'z']) stage.up.set(storeId, 'b1');
  for (const storeId of ['d', 'e']) stage.up.set(storeId, 'b2');
  const record = { ...recordOf(9, OLDER, 'd', 'e'), gaveUp: [x, y, z], line: [{ term: { number: 8, nonce: 8 }, epoch: 8 }] };
  stage.answerRead('r1', record);
  for (const storeId of ['d', 'e']) stage.asked(storeId, false);
  // Whoever held it has begun to take in what y has.
  for (const [storeId, termNumber] of [['x', 2], ['y', 9], ['z', 5]] as const) stage.asked(storeId, true, 0, undefined, termNumber);
  stage.untilClaimed(record);
  const { members: read, gaveUp } = stage.changes.at(-1)?.record ?? assert.fail('one is read');
  assert.deepEqual(read, members('x'));
  assert.deepEqual(gaveUp.filter(({ epoch }) => epoch === 5), [{ ...y, isAlone: true }, { ...z, isAlone: true }]);
  assert.deepEqual(gaveUp.filter(({ epoch }) => epoch === 9).map(({ storeId, isAlone }) => [storeId, isAlone]), [['d', undefined], ['e', undefined]], 'what was lost just now is as it was');
});

test('copies that the register lost are read though a record is full of those that were given up', () => {
  const gaveUp = Array.from({ length: GAVE_UP_MAX }, (_none, at) => ({ storeId: `s${String(at)}`, bootId: 'b1', epoch: 2 }));
  const lost = recordOf(3, OTHER, 'a', 'b');
  const stage = afterLoss([[lost, 3], [lost, 3]], gaveUp);
  const record = stage.changes.at(-1)?.record;
  assert.deepEqual([record?.members, record?.gaveUp.length], [members('a'), GAVE_UP_MAX]);
  assert.ok(record?.gaveUp.some(({ storeId }) => storeId === 'b'), 'the other one stays');
});

test('two copies of one store that stand alone were never one', () => {
  const copy = { storeId: 'e', bootId: 'b1', epoch: 3, isAlone: true } as const;
  assert.notEqual(mailOf(copy), mailOf({ ...copy, bootId: 'b2' }));
});

test('of a record that the register lost one copy is read where no store is free, and its term is known from then on', () => {
  const lost = recordOf(3, OTHER, 'a', 'b');
  const stage = afterLoss([[lost, 3], [lost, 3]]);
  assert.deepEqual(stage.founds, [], 'neither is emptied');
  const claimed = stage.changes.at(-1)?.record;
  assert.deepEqual(claimed?.members, members('a'));
  assert.ok(claimed.gaveUp.some(({ storeId, epoch }) => storeId === 'b' && epoch === 3), 'the other one is taken in');
  assert.ok(isOfLine(claimed, lost));
});

test('a founding asks a store whose path was away again before it empties what that has', () => {
  const stage = new Stage();
  stage.answerRead('r1', undefined);
  for (const storeId of stage.up.keys()) stage.asked(storeId, false);
  assert.equal(stage.state, HolderState.FOUNDING);
  for (const storeId of stage.up.keys()) {
    stage.holder.onLinkDown(storeId, stage.nowMs);
    stage.holder.onLinkUp(storeId, 'b1', stage.nowMs);
  }
  const before = stage.founds.length;
  stage.tick(10);
  assert.equal(stage.founds.length, before, 'none has said what it has');
  for (const storeId of stage.up.keys()) stage.asked(storeId, false);
  stage.tick(3);
  assert.ok(stage.founds.length > before);
});

test('a store that was told what nobody knows, and has no copy, is founded at', () => {
  const stage = new Stage();
  stage.up.delete('c');
  stage.answerRead('r1', { ...recordOf(9, OLDER, 'a'), line: [{ term: { number: 8, nonce: 8 }, epoch: 8 }] });
  stage.asked('a', false, 0, recordOf(9, OLDER, 'a'));
  stage.asked('b', false, 0, recordOf(3, OTHER, 'a'));
  stage.up.set('a', 'b2');
  stage.holder.onLinkUp('a', 'b2', stage.nowMs);
  for (let i = 0; i < 20 && stage.state !== HolderState.FOUNDING; i++) {
    stage.tick();
    for (const storeId of ['a', 'b']) stage.asked(storeId, false, 0, storeId === 'b' ? recordOf(3, OTHER, 'a') : undefined);
  }
  stage.tick(3);
  assert.ok(stage.founds.some(({ storeId }) => storeId === 'b'));
});

test('a beginning stands above the seconds of the clock, and above what is known', () => {
  for (const [wallSeconds, wanted] of [[1000, 1001], [0, 1]] as const) {
    const stage = new Stage();
    stage.wallSeconds = wallSeconds;
    stage.answerRead('r1', undefined);
    for (const storeId of stage.up.keys()) stage.asked(storeId, false);
    stage.tick();
    assert.equal(stage.founds.at(-1)?.term.number, wanted);
  }
});

test('who takes over waits for no member that has lost its copy while it lives', () => {
  const stage = new Stage();
  stage.answerRead('r1', recordOf(1, OLDER, 'a', 'b'));
  for (const storeId of stage.up.keys()) stage.asked(storeId, storeId !== 'c');
  stage.tick();
  const { term } = stage.apply('r2');
  assert.equal(stage.state, HolderState.FENCING);
  stage.up.set('b', 'b2');
  stage.holder.onLinkDown('b', stage.nowMs);
  stage.holder.onDeclined('a', 'b1', { asked: term, term, reason: DECLINED_NO_COPY, told: undefined }, stage.nowMs);
  stage.tick(2);
  assert.ok(stage.traced.some((event) => event.includes('every copy is gone')));
});

test('what is held in memory alone, or begins, and no store takes, is shown', () => {
  const stage = new Stage();
  stage.hold();
  assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.NOTHING);
  for (const storeId of ['a', 'b', 'c']) {
    stage.up.delete(storeId);
    stage.holder.onLinkDown(storeId, stage.nowMs);
  }
  stage.tick(20);
  assert.equal(stage.holder.isUnstored(stage.nowMs), false, 'they may be back at once');
  stage.tick(20);
  assert.equal(stage.holder.isUnstored(stage.nowMs), true);
  assert.deepEqual(stage.holder.silentStores, ['a', 'b']);
  const founding = foundingAfterGiveUp();
  for (let i = 0; i < 8; i++) {
    founding.answerRead('r1', recordOf(4, OTHER, 'a', 'b'));
    founding.tick(5);
  }
  assert.equal(founding.state, HolderState.FOUNDING);
  assert.equal(founding.holder.waitsFor(founding.nowMs), Waiting.STORES);
  assert.deepEqual(founding.holder.refusingStores, []);
});

test('a store that declines to begin it, for a process that lives has a copy there, is named until it takes it', () => {
  const stage = foundingAfterGiveUp();
  stage.up.set('d', 'b1');
  stage.tick();
  const term = stage.founds.at(-1)?.term ?? assert.fail('it is founded');
  const decline = (storeId: string, reason: number): void => {
    stage.holder.onDeclined(storeId, 'b1', { asked: term, term, reason, told: undefined }, stage.nowMs);
  };
  decline('d', DECLINED_FULL);
  decline('c', DECLINED_NO_COPY);
  assert.deepEqual([stage.state, stage.holder.refusingStores], [HolderState.FOUNDING, ['c']]);
  stage.holder.onFounded('c', 'b1', term);
  assert.deepEqual(stage.holder.refusingStores, []);
});

test('a person is asked once that lasts, and told which process to let go on: no order helps, nor does the alarm end by itself', () => {
  const stage = foundingAfterGiveUp();
  const decline = (): void => {
    const term = stage.founds.at(-1)?.term ?? assert.fail('it is founded');
    stage.holder.onDeclined('c', 'b1', { asked: term, term, reason: DECLINED_NO_COPY, told: undefined }, stage.nowMs);
  };
  stage.tick();
  const beganMs = stage.nowMs;
  const pass = (untilMs: number): void => {
    do {
      decline();
      stage.answerRead('r1', recordOf(4, OTHER, 'a', 'b'));
    } while (stage.nowMs < beganMs + untilMs);
  };
  pass(2500);
  assert.deepEqual([stage.state, stage.holder.waitsFor(stage.nowMs)], [HolderState.FOUNDING, Waiting.STORES]);
  pass(4000);
  assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.COPIES_AWAY);
  assert.deepEqual(stage.holder.away, { cause: AwayCause.HELD, stores: ['c'] });
  assert.match(awayText(stage.holder.away, stage.holder.lastHolder), /a process that lives has a copy at c\. That process must not be restarted: .* The register names g2 \(incarnation 1\)\.$/);
  assert.equal(stage.holder.wouldBeginEmpty, false);
  for (const order of [[], ['c'], ['a', 'b']]) assert.equal(stage.holder.awaitsOrder(order, stage.nowMs) || stage.holder.giveUp(order, stage.nowMs), false);
  stage.holder.onFounded('c', 'b1', stage.founds.at(-1)?.term ?? assert.fail('it is founded'));
  assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.NOTHING);
});

describe('a store that declined to begin it', () => {
  /** c has declined for all but 100 ms of the time after which a person is asked. */
  function declining(options: Partial<HolderOptions> = {}): { readonly stage: Stage; readonly decline: (reason?: number) => void } {
    const stage = foundingAfterGiveUp(options);
    stage.up.set('d', 'b1');
    stage.tick();
    const decline = (reason = DECLINED_NO_COPY): void => {
      const term = stage.founds.at(-1)?.term ?? assert.fail('it is founded');
      stage.holder.onDeclined('c', 'b1', { asked: term, term, reason, told: undefined }, stage.nowMs);
    };
    decline();
    const untilMs = stage.nowMs + 3900;
    while (stage.nowMs < untilMs) {
      if (stage.reads.length > 0) stage.holder.onRecord(stage.reads.at(-1) ?? 0, { revision: 'r1', record: recordOf(4, OTHER, 'a', 'b'), hasSession: false }, stage.nowMs);
      stage.tick();
    }
    assert.deepEqual([stage.state, stage.holder.refusingStores], [HolderState.FOUNDING, ['c']]);
    return { stage, decline };
  }

  /** What is said 200 ms later. */
  function later(stage: Stage): readonly unknown[] {
    stage.answerRead('r1', recordOf(4, OTHER, 'a', 'b'));
    stage.tick(2);
    assert.equal(stage.state, HolderState.FOUNDING);
    return [stage.holder.refusingStores, stage.holder.waitsFor(stage.nowMs) === Waiting.COPIES_AWAY];
  }

  test('is what a person is told of, as long as it is known to have that copy', () => {
    const { stage } = declining();
    assert.deepEqual(later(stage), [['c'], true]);
    stage.holder.onLinkUp('c', 'b1', stage.nowMs);
    assert.deepEqual(later(stage), [['c'], true], 'by another path');
  });

  test('has none that is known of once its link is down, it is up in another boot, or it has no room', () => {
    const downs: ((stage: Stage, decline: (reason?: number) => void) => void)[] = [
      (stage) => { stage.holder.onLinkDown('c', stage.nowMs); },
      (stage) => { stage.holder.onLinkUp('c', 'b2', stage.nowMs); },
      (_stage, decline) => { decline(DECLINED_FULL); },
    ];
    for (const down of downs) {
      const { stage, decline } = declining();
      down(stage, decline);
      assert.deepEqual(later(stage), [[], false]);
      decline();
      assert.deepEqual(later(stage), [['c'], false], 'it is counted from now on');
    }
  });

  test('is counted from now on when the founding begins anew, or another store takes it', () => {
    const { stage, decline } = declining();
    const term = stage.founds.at(-1)?.term ?? assert.fail('it is founded');
    stage.holder.onDeclined('d', 'b1', { asked: term, term: { number: term.number + 3, nonce: 5 }, reason: DECLINED_LOWER, told: undefined }, stage.nowMs);
    assert.deepEqual(stage.holder.refusingStores, []);
    stage.tick(3);
    decline();
    assert.deepEqual(later(stage), [['c'], false]);
    const other = declining();
    other.stage.holder.onFounded('d', 'b1', other.stage.founds.at(-1)?.term ?? assert.fail('it is founded'));
    other.decline();
    other.stage.holder.onLinkUp('d', 'b2', other.stage.nowMs);
    assert.deepEqual(later(other.stage), [['c'], false]);
  });

  test('is no matter for a person while another one has it, and more are waited for', () => {
    const { stage, decline } = declining({ foundWaitMs: 60_000 });
    const term = stage.founds.at(-1)?.term ?? assert.fail('it is founded');
    stage.holder.onFounded('d', 'b1', term);
    decline();
    stage.tick(45);
    assert.deepEqual(later(stage), [['c'], false]);
  });
});

/** All of its copies are gone, and it is founded anew at a and b. */
function foundedAfterLoss(): Stage {
  const stage = new Stage();
  stage.answerRead('r1', recordOf(4, OLDER, 'a', 'b'));
  for (const storeId of ['a', 'b']) stage.up.set(storeId, 'b2');
  for (const storeId of ['a', 'b', 'c']) stage.asked(storeId, false);
  stage.tick();
  const term = stage.founds.at(-1)?.term ?? assert.fail('it is founded');
  for (const storeId of ['a', 'b']) stage.holder.onFounded(storeId, 'b2', term);
  stage.tick();
  stage.apply('r2');
  for (let i = 0; i < 40 && stage.state !== HolderState.HOLDER; i++) stage.tick();
  assert.deepEqual([stage.state, stage.begun], [HolderState.HOLDER, [true]]);
  return stage;
}

test('a register that is put back after a loss is called that, and no loss', () => {
  const stage = foundedAfterLoss();
  stage.holder.onRules(stage.rulesTicket, stage.nowMs);
  stage.up.set('c', '');
  stage.holder.onLinkDown('c', stage.nowMs);
  stage.holder.onNews(stage.nowMs);
  stage.answerRead('0', undefined);
  assert.deepEqual(stage.holder.away, { cause: AwayCause.REGISTER_BEHIND, stores: ['a', 'b', 'c'] });
});

test('an empty record, which no store takes, is shown as memory alone', () => {
  const stage = new Stage();
  stage.hold();
  for (const storeId of ['a', 'b', 'c']) {
    stage.up.set(storeId, storeId === 'c' ? '' : 'b2');
    stage.holder.onLinkDown(storeId, stage.nowMs);
  }
  stage.holder.onRules(stage.rulesTicket, stage.nowMs);
  for (const storeId of ['a', 'b']) stage.holder.onLinkUp(storeId, 'b2', stage.nowMs);
  for (let i = 0; i < 40 && stage.changes.at(-1)?.record.members.length !== 0; i++) stage.tick();
  assert.deepEqual(stage.apply('r3').members, [], 'both copies are gone');
  for (const storeId of ['a', 'b']) {
    stage.up.set(storeId, '');
    stage.holder.onLinkDown(storeId, stage.nowMs);
  }
  stage.tick(40);
  assert.equal(stage.holder.isUnstored(stage.nowMs), true);
  assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.STORES);
});

test('a member that was told that it counts, and has no copy, has none that is on its way', () => {
  const stage = new Stage();
  const record = recordOf(5, SELF, 'a', 'b');
  stage.up.set('a', 'b2');
  stage.answerRead('r1', record, true);
  stage.asked('a', false);
  stage.asked('c', false);
  stage.asked('b', false, 0, record);
  assert.equal(stage.state, HolderState.FOUNDING);
  assert.deepEqual(stage.fences, []);
});

describe('a member that was not told that it counts, and has no copy', () => {
  const beforeIt = recordOf(4, OTHER, 'a');

  test('is fenced, which shows whether it was filled since: it was not', () => {
    const stage = new Stage();
    const record = recordOf(5, SELF, 'b');
    stage.answerRead('r1', record, true);
    for (const storeId of ['a', 'b', 'c']) stage.asked(storeId, false, 0, beforeIt);
    stage.tick();
    assert.deepEqual([stage.state, stage.fences[0]], [HolderState.FENCING, 'b']);
    stage.holder.onDeclined('b', 'b1', { asked: record.term, term: record.term, reason: DECLINED_NO_COPY, told: beforeIt }, stage.nowMs);
    stage.tick(2);
    stage.answerRead('r1', record, true);
    for (const storeId of ['a', 'b', 'c']) stage.asked(storeId, false, 0, beforeIt);
    assert.equal(stage.state, HolderState.FOUNDING);
  });

  test('is fenced, and was', () => {
    const stage = new Stage();
    const record = recordOf(5, SELF, 'b');
    stage.answerRead('r1', record, true);
    stage.asked('b', false, 0, beforeIt);
    stage.tick();
    stage.holder.onFenced('b', 'b1', { term: record.term, at: AT, olderLeaseMs: 0 }, stage.nowMs);
    assert.deepEqual([stage.state, stage.readFrom], [HolderState.READING, ['b']]);
  });

  test('so it is by whoever knows that the holder is dead, under his own term', () => {
    const stage = new Stage();
    stage.answerRead('r1', recordOf(5, OLDER, 'b'));
    for (const storeId of ['a', 'b', 'c']) stage.asked(storeId, false, 0, beforeIt);
    stage.tick();
    assert.equal(stage.state, HolderState.CLAIMING);
    stage.apply('r2');
    assert.deepEqual([stage.state, stage.fences[0]], [HolderState.FENCING, 'b']);
  });

  test('is waited for where the holder may live, and have it in memory', () => {
    const stage = new Stage();
    const record = recordOf(5, OTHER, 'b');
    stage.answerRead('r1', record);
    for (const storeId of ['a', 'b', 'c']) stage.asked(storeId, false, 0, beforeIt);
    for (let i = 0; i < 3; i++) stage.answerRead('r1', record);
    assert.deepEqual([stage.state, stage.holder.waitsFor(stage.nowMs)], [HolderState.ASKING, Waiting.COPIES_AWAY]);
    assert.deepEqual([stage.holder.away.stores, stage.changes], [['b'], []]);
  });
});

test('that a holder has no session says nothing while the register may be an older one', () => {
  const stage = new Stage();
  const record = recordOf(3, OTHER, 'a', 'b');
  const look = (): void => {
    stage.answerRead('r1', record);
    stage.holder.onRecord(-1, { revision: 'r1', record, hasSession: false, isDoubted: true }, stage.nowMs);
    for (const storeId of stage.up.keys()) stage.asked(storeId, storeId !== 'c');
  };
  look();
  stage.tick(10);
  assert.equal(stage.state, HolderState.ASKING);
  for (let i = 0; i < 40 && stage.changes.length === 0; i++) look();
  assert.equal(stage.changes.length, 1, 'after replace_after it is taken all the same');
});

test('a change that is known to be made says nothing when a newer record is known by then', async () => {
  const stage = new Stage();
  stage.hold();
  await Promise.resolve();
  stage.up.delete('b');
  stage.holder.onLinkDown('b', stage.nowMs);
  stage.tick(5);
  const epoch = stage.holder.record?.epoch;
  stage.asked('c', false, 0, recordOf(40, OTHER, 'c'));
  stage.apply('r2');
  assert.equal(stage.holder.record?.epoch, epoch);
  assert.equal(stage.holder.set?.records.isSettled, false);
});

test('a change that is known by an answer to something else is not unknown later', () => {
  const stage = new Stage();
  stage.answerRead('r1', recordOf(1, OLDER, 'a', 'b'));
  for (const storeId of ['a', 'b', 'c']) stage.asked(storeId, storeId !== 'c');
  stage.tick();
  const sent = stage.changes.at(-1);
  assert.ok(sent !== undefined);
  stage.holder.onRecord(sent.ticket - 1, { revision: 'r2', record: sent.record, hasSession: true }, stage.nowMs);
  assert.equal(stage.state, HolderState.FENCING);
  stage.tick(8);
  assert.ok(!stage.traced.includes('outcome unknown'), 'no revision will move any more that could settle it');
});

describe('a store that was told what the register had lost when ours was made', () => {
  /** Made by another process after the one that was taken over, and forgotten since. */
  const forgotten = recordOf(2, OTHER, 'c', 'd');

  /** c was silent, and is back. */
  async function taken(...stores: string[]): Promise<Stage> {
    const stage = new Stage();
    stage.up.delete('b');
    if (!stores.includes('c')) stage.up.delete('c');
    stage.takeFrom(...stores);
    stage.holder.onHistoryRead(stage.nowMs);
    stage.holder.onReadComplete(stage.nowMs);
    await Promise.resolve();
    stage.up.set('c', 'b1');
    stage.holder.onLinkDown('c', stage.nowMs);
    stage.holder.onLinkUp('c', 'b1', stage.nowMs);
    return stage;
  }

  test('is not filled before it has said what it was told, and not before its mail is taken in', async () => {
    const stage = await taken('a');
    const record = stage.holder.record;
    stage.tick(60);
    assert.deepEqual(stage.fills, []);
    stage.asked('c', true, 0, forgotten);
    stage.answerRead('r2', record);
    stage.tick();
    const given = ['c', 'd'].map((storeId) => ({ storeId, bootId: 'b1', epoch: 2 }));
    assert.deepEqual(stage.changes.at(-1)?.record.gaveUp, given);
    assert.deepEqual(stage.apply('r3').members, members('a'));
    stage.tick();
    assert.deepEqual(stage.adopts, ['c']);
    stage.tick(60);
    assert.deepEqual(stage.fills, []);
  });

  test('and that is in step all the same has nothing to be taken in: our line says so, once', async () => {
    const stage = await taken('a', 'c');
    const record = stage.holder.record;
    stage.asked('c', true, 0, forgotten);
    stage.holder.onFenced('c', 'b1', { term: stage.holder.term, at: AT, olderLeaseMs: 0 }, stage.nowMs);
    stage.answerRead('r2', record);
    stage.tick(5);
    assert.deepEqual(stage.apply('r3').line.map(({ epoch }) => epoch), [2, 1]);
    const changes = stage.changes.length;
    stage.asked('c', true, 0, forgotten);
    stage.tick(50);
    assert.equal(stage.changes.length, changes);
    assert.ok(stage.changes.every((change) => change.record.gaveUp.length === 0));
  });

  test('has nothing of its own where we have begun anew: what another copy has is taken in', async () => {
    const stage = new Stage();
    stage.hold();
    await Promise.resolve();
    const record = stage.holder.record;
    stage.asked('a', true, 0, recordOf(5, OTHER, 'a', 'c'));
    stage.answerRead('r1', record);
    stage.tick(5);
    assert.deepEqual(stage.apply('r2').gaveUp, [{ storeId: 'c', bootId: 'b1', epoch: 5 }]);
    stage.tick();
    assert.deepEqual(stage.adopts, ['c']);
  });

  test('is filled when the record told led to ours', async () => {
    const stage = await taken('a');
    stage.asked('c', true, 0, recordOf(1, OLDER, 'c', 'd'));
    stage.tick(60);
    assert.deepEqual(stage.fills, ['c']);
    assert.ok(stage.changes.every((change) => change.record.gaveUp.length === 0));
  });
});

describe('a partition that has ended', () => {
  const line = [{ term: { number: 1, nonce: 1 }, epoch: 8 }, { term: { number: 1, nonce: 9 }, epoch: 1 }];
  const ended: PartitionRecord = { ...recordOf(9, { gatewayId: 'g1', incarnation: 0 }), line };
  const undone = recordOf(3, OTHER, 'c');

  function asked(leaseLeftMs: number, told: PartitionRecord): Stage {
    const stage = new Stage();
    stage.mayBegin = false;
    stage.tick();
    for (let i = 0; i < 5 && stage.state === HolderState.ASKING; i++) {
      stage.answerRead('none', undefined);
      for (const storeId of ['a', 'b']) stage.asked(storeId, false, 0, ended);
      stage.asked('c', true, leaseLeftMs, told);
    }
    return stage;
  }

  test('is taken over where a copy counts by a record that its end did not know', () => {
    const stage = asked(0, undone);
    assert.equal(stage.state, HolderState.CLAIMING);
    assert.equal(stage.holder.ended, undefined);
    stage.tick();
    const { record } = stage.changes.at(-1) ?? assert.fail('a claim');
    assert.deepEqual(record.members, members('c'));
    assert.ok(record.epoch > 9, 'above the end');
  });

  test('is not while the lease of who holds that copy runs', () => {
    const stage = asked(100_000, undone);
    assert.equal(stage.state, HolderState.ASKING);
  });

  test('rests when what a copy counts by led to the end', () => {
    const stage = asked(0, { ...undone, term: { number: 1, nonce: 1 } });
    assert.equal(stage.holder.ended?.epoch, 9);
  });
});

describe('a holder that is fenced', () => {
  /** b is away; a change that puts c in its place was sent, and no answer came. */
  async function joining(): Promise<Stage> {
    const stage = new Stage();
    stage.hold();
    await Promise.resolve();
    stage.up.delete('b');
    stage.holder.onLinkDown('b', stage.nowMs);
    stage.tick(5);
    stage.apply('r2');
    stage.tick(50);
    const row = stage.holder.set?.rows.find(({ storeId }) => storeId === 'c');
    assert.ok(row !== undefined);
    stage.holder.set?.onTermTaken(row);
    stage.holder.set?.onAcked(stage.holder.set.rows[0] ?? row, AT.number, stage.nowMs);
    stage.holder.set?.onTermTaken(row);
    stage.holder.set?.onFilled(row, AT.number, stage.nowMs);
    stage.tick();
    assert.deepEqual(stage.changes.at(-1)?.record.members, members('a', 'c'));
    assert.equal(stage.holder.mayDeliver(stage.nowMs), true);
    return stage;
  }

  const byTerm = { number: 40, nonce: 4 };

  test('where it is about to add a member keeps its memory, and asks the register before it goes on', async () => {
    for (const isNotice of [true, false]) {
      const stage = await joining();
      const { term } = stage.holder;
      if (isNotice) stage.holder.onFenceNotice('c', 'b1', byTerm, stage.nowMs);
      else stage.holder.onDeclined('c', 'b1', { reason: DECLINED_LOWER, asked: term, term: byTerm,
        told: undefined }, stage.nowMs);
      assert.equal(stage.state, HolderState.HOLDER);
      assert.equal(stage.holder.mayDeliver(stage.nowMs), false);
      const record = stage.holder.record;
      assert.ok(record !== undefined);
      stage.answerRead('r3', { ...record, epoch: record.epoch + 5 });
      assert.equal(stage.state, HolderState.HOLDER);
      assert.equal(stage.holder.mayDeliver(stage.nowMs), true, 'c counts no more');
      const other = await joining();
      other.holder.onFenceNotice('c', 'b1', byTerm, other.nowMs);
      other.answerRead('r3', recordOf(40, OTHER, 'a', 'c'));
      assert.equal(other.state, HolderState.ASKING, 'lost, and looks again');
    }
  });

  test('at a recorded member has lost it', async () => {
    const stage = await joining();
    stage.holder.onFenceNotice('a', 'b1', byTerm, stage.nowMs);
    assert.equal(stage.state, HolderState.LOST);
  });
});

describe('a PARTIAL holder', () => {
  test('takes a weak member back that has left, when the member that it reads turns out to be dead', async () => {
    const stage = new Stage();
    stage.takeFrom('a', 'b');
    await Promise.resolve();
    stage.holder.onHistoryRead(stage.nowMs);
    stage.holder.onLinkDown('b', stage.nowMs);
    stage.tick(6);
    await Promise.resolve();
    stage.tick(3);
    assert.deepEqual(stage.changes.at(-1)?.record.members, members('a'), 'b is dropped');
    stage.holder.onLinkUp('b', 'b1', stage.nowMs);
    stage.holder.onFenced('b', 'b1', { term: stage.holder.term, at: AT, olderLeaseMs: 0 }, stage.nowMs);
    stage.apply('r3');
    assert.equal(stage.row('b')?.state, MemberState.IN_STEP, 'it is neither emptied nor told that it is out');
    stage.up.set('a', 'b2');
    stage.holder.onLinkDown('a', stage.nowMs);
    stage.holder.onLinkUp('a', 'b2', stage.nowMs);
    stage.tick(3);
    assert.equal(stage.state, HolderState.READING);
    assert.equal(stage.changes.at(-1)?.record.members.some(({ storeId }) => storeId === 'b'), true);
    stage.apply('r4');
    stage.tick();
    assert.deepEqual(stage.readFrom, ['a', 'b']);
  });

  test('reads a weak member that has left, when the one that it reads dies before it has told its history', async () => {
    const stage = new Stage();
    stage.takeFrom('a', 'b');
    await Promise.resolve();
    stage.tick(9);
    assert.deepEqual(stage.apply('r3').members, members('a'), 'b is dropped');
    stage.holder.onLinkUp('b', 'b1', stage.nowMs);
    stage.up.set('a', 'b2');
    stage.holder.onLinkDown('a', stage.nowMs);
    stage.holder.onLinkUp('a', 'b2', stage.nowMs);
    stage.tick(3);
    assert.deepEqual([stage.state, stage.changes.at(-1)?.record.members], [HolderState.CLAIMING, members('b')]);
    const { gaveUp } = stage.changes.at(-1)?.record ?? assert.fail();
    assert.deepEqual(gaveUp, [{ storeId: 'a', bootId: 'b1', epoch: 3, isGone: true }], 'it may only have started without its disk');
  });

  test('does not empty a weak member that has left before it knows where it stands', async () => {
    const stage = new Stage();
    stage.takeFrom('a', 'b');
    await Promise.resolve();
    stage.tick(9);
    stage.apply('r3');
    assert.equal(stage.row('b')?.isRecorded, false);
    stage.tick(9);
    assert.equal(stage.fills.includes('b'), false);
    stage.holder.onHistoryRead(stage.nowMs);
    assert.equal(stage.row('b')?.state, MemberState.ALIGNING);
  });

  /** What was read at a is half here when a begins another boot and b is silent; c, which had left, lacks changes. */
  async function withoutSource(record: PartitionRecord): Promise<Stage> {
    const stage = new Stage();
    stage.answerRead('r1', record);
    for (const storeId of stage.up.keys()) stage.asked(storeId, true);
    stage.tick();
    const { term } = stage.apply('r2');
    stage.holder.onFenced('a', 'b1', { term, at: AT, olderLeaseMs: 0 }, stage.nowMs);
    stage.tick();
    await Promise.resolve();
    stage.up.delete('b');
    stage.holder.onHistoryRead(stage.nowMs);
    stage.up.set('a', 'b2');
    stage.holder.onLinkDown('a', stage.nowMs);
    stage.tick();
    assert.equal(stage.row('c')?.state, MemberState.ALIGNING, 'it is compared');
    stage.holder.onFenced('c', 'b1', { term, at: { ...AT, number: 3, digestA: 6 }, olderLeaseMs: 0 }, stage.nowMs);
    return stage;
  }

  test('waits for a member that counts and is silent, and reads no copy that has left and lacks changes', async () => {
    const stage = await withoutSource({ ...recordOf(1, OLDER, 'a', 'b'), left: members('c') });
    assert.equal(stage.holder.set?.lastResort?.storeId, 'c');
    stage.holder.onLinkUp('a', 'b2', stage.nowMs);
    stage.tick(3);
    assert.deepEqual(stage.changes.at(-1)?.record.members, members('a', 'b'));
  });

  for (const isOrder of [false, true]) test(`${isOrder ? 'by order of a person' : 'whose copies are all gone'} goes on from one that had left, and what was set aside stands alone from then on`, async () => {
    const [d, e] = ['d', 'e'].map((storeId) => ({ storeId, bootId: 'b1', epoch: 2 }));
    const alone = [d, e].map((copy) => ({ ...copy, isAlone: true }));
    const gaveUp = [d ?? assert.fail(), e ?? assert.fail()];
    const stage = await withoutSource({ ...recordOf(9, OLDER, 'a', 'b'), left: members('c'), gaveUp });
    if (isOrder) {
      stage.up.delete('a');
      stage.tick(31);
      assert.equal(stage.holder.giveUp(['a', 'b'], stage.nowMs), true);
    } else {
      stage.up.set('b', 'b2');
      for (const storeId of ['a', 'b']) stage.holder.onLinkUp(storeId, 'b2', stage.nowMs);
    }
    const held = stage.changes.at(-1)?.record ?? assert.fail('a change was sent');
    stage.untilClaimed(held);
    stage.answerRead('r2', held);
    const claimed = stage.changes.at(-1)?.record;
    assert.deepEqual(claimed?.members, members('c'));
    assert.deepEqual(claimed.gaveUp.filter(({ epoch }) => epoch === 2), alone);
  });

  test('waits for a weak member that has left, when every other copy is gone', async () => {
    const stage = await waitingForLeft();
    assert.equal(stage.state, HolderState.READING);
    stage.holder.onLinkUp('b', 'b2', stage.nowMs);
    stage.up.set('b', 'b2');
    stage.tick(5);
    assert.notEqual(stage.state, HolderState.READING, 'nobody is left to be waited for');
  });

  test('names that member to a person, and by the order keeps its copy for when it is back', async () => {
    const stage = await waitingForLeft();
    stage.tick(31);
    assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.COPIES_AWAY);
    assert.deepEqual(stage.holder.away, { cause: AwayCause.COPIES, stores: ['b'] });
    assert.equal(stage.holder.giveUp([], stage.nowMs), false, 'no memory is the last copy');
    assert.equal(stage.holder.giveUp(['b'], stage.nowMs), true);
    assert.equal(stage.state, HolderState.FOUNDING);
    const known = stage.changes.at(-1)?.record;
    stage.answerRead('r3', known);
    const term = stage.founds.at(-1)?.term ?? assert.fail('stores are asked');
    for (const storeId of ['a', 'c']) stage.holder.onFounded(storeId, stage.up.get(storeId) ?? '', term);
    stage.tick();
    const { gaveUp } = stage.changes.at(-1)?.record ?? assert.fail('a change is sent');
    assert.deepEqual(gaveUp.filter(({ storeId }) => storeId === 'b'), [{ storeId: 'b', bootId: 'b1', epoch: 2 }]);
    assert.equal(stage.guards.at(-1), undefined, 'no session of this process itself stands in its way');
  });

  test('is kept also by who gives up the memory of a dead holder, whose record names it', () => {
    const stage = new Stage();
    stage.up.set('a', 'b2').delete('b');
    stage.answerRead('r1', { ...recordOf(4, OTHER, 'a'), left: members('b') });
    stage.tick(31);
    stage.answerRead('r1', { ...recordOf(4, OTHER, 'a'), left: members('b') });
    for (const storeId of stage.up.keys()) stage.asked(storeId, false);
    assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.COPIES_AWAY);
    assert.equal(stage.holder.away.cause, AwayCause.MEMORY, 'that is what counts');
    assert.equal(stage.holder.giveUp([], stage.nowMs), true);
    stage.tick();
    for (const { storeId, term } of stage.founds) stage.holder.onFounded(storeId, stage.up.get(storeId) ?? '', term);
    stage.tick();
    const { gaveUp } = stage.changes.at(-1)?.record ?? assert.fail('a change is sent');
    assert.deepEqual(gaveUp.map(({ storeId, bootId }) => `${storeId}/${bootId}`), ['a/b1', 'b/b1'], 'a may only have started without its disk');
    assert.deepEqual(stage.guards.at(-1), OTHER);
  });

  test('counts once, though the record that counts on it names it as left, too', () => {
    const stage = new Stage();
    stage.up.delete('a');
    stage.answerRead('r1', { ...recordOf(4, OLDER, 'a'), left: members('a') });
    for (const storeId of stage.up.keys()) stage.asked(storeId, false);
    stage.tick(31);
    stage.answerRead('r1', { ...recordOf(4, OLDER, 'a'), left: members('a') });
    for (const storeId of stage.up.keys()) stage.asked(storeId, false);
    assert.equal(stage.holder.giveUp(['a'], stage.nowMs), true);
    stage.tick();
    for (const { storeId, term } of stage.founds) stage.holder.onFounded(storeId, 'b1', term);
    stage.tick();
    assert.deepEqual(stage.changes.at(-1)?.record.gaveUp, [{ storeId: 'a', bootId: 'b1', epoch: 4 }]);
  });

  test('of which only the record tells stands for itself alone', () => {
    const stage = new Stage();
    stage.up.delete('a');
    stage.answerRead('r1', { ...recordOf(4, OTHER, 'a'), left: members('d') });
    for (const storeId of stage.up.keys()) stage.asked(storeId, false);
    stage.tick(31);
    stage.answerRead('r1', { ...recordOf(4, OTHER, 'a'), left: members('d') });
    for (const storeId of stage.up.keys()) stage.asked(storeId, false);
    assert.equal(stage.holder.giveUp(['a'], stage.nowMs), true);
    stage.tick();
    for (const { storeId, term } of stage.founds) stage.holder.onFounded(storeId, 'b1', term);
    stage.tick();
    const [a, d] = ['a', 'd'].map((storeId) => ({ storeId, bootId: 'b1', epoch: 4 }));
    assert.deepEqual(stage.changes.at(-1)?.record.gaveUp, [{ ...d, isAlone: true }, a]);
  });

  /** Held with a alone; of the copies that were given up, the one at d is back, and is read. */
  async function takingIn(gaveUp: PartitionRecord['gaveUp']): Promise<Stage> {
    const stage = new Stage();
    stage.answerRead('r1', { ...recordOf(4, OLDER, 'a'), gaveUp });
    for (const storeId of ['b', 'c']) stage.up.delete(storeId);
    stage.asked('a', true);
    stage.tick();
    const { term } = stage.apply('r2');
    await stage.untilHeld('a', term);
    stage.up.set('d', 'b1');
    stage.tick();
    assert.deepEqual(stage.adopts, ['d']);
    return stage;
  }

  test('and can not be read to its end leaves the record, and no other with it', async () => {
    const copies = ['c', 'd'].map((storeId) => ({ storeId, bootId: 'b1', epoch: 2 }));
    const stage = await takingIn(copies);
    stage.holder.onGivenUpGone({ storeId: 'd', bootId: 'b1' }, stage.nowMs);
    stage.tick(3);
    assert.deepEqual(stage.changes.at(-1)?.record.gaveUp, copies.slice(0, 1));
  });

  test('and stands alone stays in the record when one that counted in its epoch is taken in, or read', async () => {
    const [c, d, e] = ['c', 'd', 'e'].map((storeId) => ({ storeId, bootId: 'b1', epoch: 2 }));
    const alone = { ...e ?? assert.fail(), isAlone: true as const };
    const stage = await takingIn([c, d, alone].filter((each) => each !== undefined));
    stage.holder.onAdopted(d ?? assert.fail(), stage.nowMs);
    stage.tick(3);
    assert.deepEqual(stage.changes.at(-1)?.record.gaveUp, [alone]);

    const other = new Stage();
    other.up.clear();
    other.up.set('c', 'b1');
    const record = { ...recordOf(4, OTHER, 'a', 'b'), gaveUp: [c, d, alone].filter((each) => each !== undefined) };
    other.answerRead('r1', record);
    other.asked('c', true, 0, undefined, 2);
    assert.equal(other.holder.giveUp(['a', 'b'], other.nowMs), true);
    other.untilClaimed(record);
    const claimed = other.apply('r2');
    assert.deepEqual(claimed.members, members('c'));
    await other.untilHeld('c', claimed.term);
    for (const storeId of ['d', 'e']) other.up.set(storeId, 'b1');
    other.tick(3);
    assert.deepEqual(other.adopts, ['e'], 'd has nothing that c had not');
  });

  test('that counted with one that was read is taken in all the same when that one is given up before it was held', () => {
    const stage = new Stage();
    stage.up.clear();
    stage.up.set('c', 'b1');
    const gaveUp = ['c', 'd'].map((storeId) => ({ storeId, bootId: 'b1', epoch: 2 }));
    const record = { ...recordOf(4, OTHER, 'a', 'b'), gaveUp };
    stage.answerRead('r1', record);
    stage.asked('c', true, 0, undefined, 2);
    assert.equal(stage.holder.giveUp(['a', 'b'], stage.nowMs), true);
    stage.untilClaimed(record);
    assert.deepEqual([stage.state, stage.changes.at(-1)?.record.members], [HolderState.CLAIMING, members('c')], 'no store is free: one of them is read');
    stage.apply('r2');
    assert.deepEqual([stage.state, stage.losses], [HolderState.FENCING, 1]);
    stage.up.clear();
    stage.holder.onLinkDown('c', stage.nowMs);
    for (const storeId of ['a', 'b']) stage.up.set(storeId, 'b2');
    assert.equal(stage.holder.giveUp(['c'], stage.nowMs), true);
    for (const storeId of ['a', 'b']) stage.asked(storeId, false);
    stage.tick();
    for (const { storeId, term } of stage.founds) stage.holder.onFounded(storeId, 'b2', term);
    const before = stage.changes.length;
    for (let i = 0; i < 20 && stage.changes.length === before; i++) stage.tick();
    stage.apply('r3');
    stage.tick(25);
    assert.equal(stage.state, HolderState.HOLDER);
    stage.up.set('d', 'b1');
    stage.tick();
    assert.deepEqual(stage.adopts, ['d']);
  });

  test('takes in what the record names as left, when every member is gone: who left may have a copy', () => {
    const stage = new Stage();
    stage.up.set('a', 'b2');
    stage.answerRead('r1', { ...recordOf(4, OLDER, 'a'), left: members('b', 'c') });
    stage.asked('a', false);
    stage.asked('b', true);
    stage.asked('c', false);
    stage.tick();
    assert.equal(stage.state, HolderState.FOUNDING);
    stage.tick();
    assert.deepEqual(stage.founds.map(({ storeId }) => storeId).sort(), ['a', 'c'], 'b is not emptied');
    assert.deepEqual(stage.founds.map(({ knownEpoch }) => knownEpoch), [4, 4], 'nor what a store knows to be newer');
    const term = stage.founds.at(-1)?.term ?? assert.fail('stores are asked');
    for (const storeId of ['a', 'c']) stage.holder.onFounded(storeId, stage.up.get(storeId) ?? '', term);
    stage.tick();
    const { gaveUp, left } = stage.changes.at(-1)?.record ?? assert.fail('a change is sent');
    assert.deepEqual([gaveUp.map(({ storeId, bootId }) => `${storeId}/${bootId}`), left], [['a/b1', 'b/b1'], []]);
  });

  test('waits for leases of who held before, where who is dead was named and never began', () => {
    for (const [line, isAtOnce] of [[[], true], [[{ term: { number: 2, nonce: 2 }, epoch: 3 }], false]] as const) {
      const stage = new Stage();
      stage.up.set('a', 'b2');
      stage.answerRead('r1', { ...recordOf(4, OLDER, 'a'), line });
      for (const storeId of stage.up.keys()) stage.asked(storeId, false);
      stage.tick(2);
      const term = stage.founds.at(-1)?.term ?? assert.fail('stores are asked');
      for (const storeId of ['a', 'c']) stage.holder.onFounded(storeId, stage.up.get(storeId) ?? '', term);
      stage.tick();
      stage.apply('r2');
      stage.tick();
      assert.equal(stage.state === HolderState.HOLDER, isAtOnce);
      stage.tick(21);
      assert.equal(stage.state, HolderState.HOLDER);
    }
  });

  test('waits for leases of who held the newest record, though who held the one in the register is proven dead', () => {
    const stage = new Stage();
    stage.up.set('d', 'b1');
    const record = recordOf(4, OLDER, 'a');
    stage.answerRead('r1', record);
    stage.asked('a', true);
    stage.tick();
    stage.asked('b', false, 0, recordOf(5, OTHER, 'e'));
    stage.answerRead('r1', record);
    for (const storeId of stage.up.keys()) stage.asked(storeId, false);
    stage.tick(41);
    assert.equal(stage.holder.giveUp(['e'], stage.nowMs), true);
    stage.tick();
    for (const { storeId, term } of stage.founds) stage.holder.onFounded(storeId, 'b1', term);
    stage.untilClaimed(record);
    stage.apply('r2');
    assert.equal(stage.state, HolderState.WAITING_OUT);
  });

  test('asks for a person when all that it could read is silent, and takes the order', async () => {
    const stage = new Stage();
    stage.takeFrom('a');
    await Promise.resolve();
    stage.holder.onHistoryRead(stage.nowMs);
    stage.up.delete('a');
    stage.holder.onLinkDown('a', stage.nowMs);
    stage.tick(20);
    assert.notEqual(stage.holder.waitsFor(stage.nowMs), Waiting.COPIES_AWAY);
    assert.equal(stage.holder.giveUp(['a'], stage.nowMs), false);
    stage.tick(11);
    assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.COPIES_AWAY);
    assert.equal(stage.holder.giveUp(['a'], stage.nowMs), true);
    assert.equal(stage.state, HolderState.FOUNDING);
  });
});

test('a fence that a member is told to have taken back is no fence, however late its notice comes; but what is left of its copy is asked', async () => {
  const stage = new Stage();
  stage.hold();
  await Promise.resolve();
  stage.holder.set?.onTold('a', 'b1', 9, stage.nowMs);
  stage.holder.onFenceNotice('a', 'b1', { number: 9, nonce: 5 }, stage.nowMs);
  assert.deepEqual([stage.state, stage.row('a')?.state], [HolderState.HOLDER, MemberState.ALIGNING]);
  assert.equal(stage.holder.mayDeliver(stage.nowMs), true, 'it is told of what is delivered by the other one');
  const { term } = stage.holder;
  stage.holder.onFenced('a', 'b1', { term, at: AT, olderLeaseMs: 0 }, stage.nowMs);
  assert.equal(stage.row('a')?.state, MemberState.IN_STEP, 'it had only been joined');
  stage.holder.onFenceNotice('a', 'b1', { number: 9, nonce: 5 }, stage.nowMs);
  stage.holder.onDeclined('a', 'b1', { reason: DECLINED_NO_COPY, asked: term, term, told: stage.holder.record }, stage.nowMs);
  stage.answerRead('r1', stage.holder.record);
  stage.tick(3);
  assert.deepEqual(stage.changes.at(-1)?.record.members, members('b'), 'it had been founded');
  stage.holder.onFenceNotice('a', 'b1', { number: 10, nonce: 5 }, stage.nowMs);
  assert.equal(stage.state, HolderState.LOST);
});

describe('a member that is compared, and has no copy', () => {
  /** Both members answer so, by the term that is known there and the epoch that was told. */
  async function compared(termNumber: number, other?: PartitionRecord): Promise<Stage> {
    const stage = new Stage();
    stage.hold();
    await Promise.resolve();
    assert.equal(stage.holder.mayDeliver(stage.nowMs), true);
    const { term, record } = stage.holder;
    const told = other ?? record;
    for (const storeId of ['a', 'b']) {
      stage.holder.onLinkDown(storeId, stage.nowMs);
      stage.holder.onLinkUp(storeId, 'b1', stage.nowMs);
      stage.holder.onDeclined(storeId, 'b1', { reason: DECLINED_NO_COPY, asked: term,
        term: { ...term, number: termNumber }, told }, stage.nowMs);
    }
    stage.answerRead('r1', record);
    stage.tick(3);
    return stage;
  }

  test('is surely gone: what is held goes on in memory, and is filled anew', async () => {
    const stage = await compared(1);
    assert.deepEqual(stage.changes.at(-1)?.record.members, []);
  });

  test('says nothing of the kind when a later term or record is known there: it may be another’s by now', async () => {
    for (const stage of [await compared(3), await compared(1, recordOf(3, OTHER, 'c'))]) {
      for (const { record } of stage.changes) assert.deepEqual(record.members, members('a', 'b'));
      assert.equal(stage.holder.mayDeliver(stage.nowMs), false);
    }
  });
});

test('who is deposed gives back what it was leased where it has filled a copy for no record: nobody waits for that', () => {
  const stage = new Stage();
  stage.hold();
  stage.up.delete('b');
  stage.holder.onLinkDown('b', stage.nowMs);
  stage.tick(50);
  assert.deepEqual(stage.fills, ['c']);
  stage.holder.onNews(stage.nowMs);
  stage.answerRead('r2', recordOf(9, OTHER, 'a', 'b'));
  assert.equal(stage.holder.set, undefined);
  assert.deepEqual(stage.released, ['c'], 'those at members are waited for by who takes over');
});

test('a member that dropped its copy by a record that the register has lost: that record is taken over', async () => {
  const stage = new Stage();
  stage.hold();
  await Promise.resolve();
  const { term, record } = stage.holder;
  const newer = recordOf(3, OTHER, 'c');
  for (const storeId of ['a', 'b']) stage.holder.onLinkDown(storeId, stage.nowMs);
  stage.holder.onLinkUp('a', 'b1', stage.nowMs);
  stage.holder.onDeclined('a', 'b1', { reason: DECLINED_NO_COPY, asked: term, term, told: newer }, stage.nowMs);
  assert.equal(stage.holder.set, undefined, 'it is held no more');
  stage.answerRead('r1', record, true);
  for (const storeId of ['a', 'b']) stage.asked(storeId, false, 0, newer);
  stage.asked('c', true);
  for (let i = 0; i < 4 && stage.state === HolderState.ASKING; i++) stage.answerRead('r1', record, true);
  assert.equal(stage.state, HolderState.CLAIMING);
  assert.deepEqual(stage.changes.at(-1)?.record.members, members('c'));
});

describe('a member that a founding has emptied, whose record never came to be', () => {
  const APART: CopyPosition = { number: 0, term: { number: 4, nonce: 9 }, digestA: 0, digestB: 0 };

  function fencing(...stores: string[]): { readonly stage: Stage; readonly record: PartitionRecord } {
    const stage = new Stage();
    stage.answerRead('r1', recordOf(6, OLDER, ...stores));
    for (const storeId of stage.up.keys()) stage.asked(storeId, stores.includes(storeId));
    stage.tick();
    return { stage, record: stage.apply('r2') };
  }

  test('is not read, however high its term: another member is', () => {
    const { stage, record: { term } } = fencing('a', 'b');
    stage.holder.onFenced('a', 'b1', { term, at: { ...APART, term: { number: 40, nonce: 9 } }, olderLeaseMs: 0 }, stage.nowMs);
    assert.equal(stage.state, HolderState.FENCING);
    stage.holder.onFenced('b', 'b1', { term, at: AT, olderLeaseMs: 0 }, stage.nowMs);
    stage.tick(2);
    assert.deepEqual(stage.readFrom, ['b']);
  });

  for (const [what, at] of [['', APART], [', nor is one that somebody began to fill', { ...APART, number: -1 }]] as const) test(`is no copy${what}: when it is the only one, the loss is one, and is counted`, () => {
    const { stage, record } = fencing('a');
    stage.holder.onFenced('a', 'b1', { term: record.term, at, olderLeaseMs: 0 }, stage.nowMs);
    stage.tick();
    stage.answerRead('r2', record, true);
    for (const storeId of stage.up.keys()) stage.asked(storeId, storeId === 'a');
    stage.tick();
    assert.equal(stage.state, HolderState.FOUNDING);
    stage.tick();
    for (const { storeId, term } of stage.founds) stage.holder.onFounded(storeId, 'b1', term);
    stage.tick();
    stage.apply('r3');
    stage.tick(21);
    assert.deepEqual([stage.state, stage.begun], [HolderState.HOLDER, [true]], 'a loss');
  });

  test('is one that is empty, when the term led to the record, or is its own', () => {
    for (const led of [{ number: 6, nonce: 6 }, undefined]) {
      const { stage, record: { term } } = fencing('a');
      stage.holder.onFenced('a', 'b1', { term, at: { ...APART, term: led ?? term }, olderLeaseMs: 0 }, stage.nowMs);
      stage.tick();
      assert.equal(stage.state, HolderState.READING);
    }
  });
});

/** PARTIAL; b has left while it was silent, then the copy that was read is gone. */
async function waitingForLeft(): Promise<Stage> {
  const stage = new Stage();
  stage.takeFrom('a', 'b');
  await Promise.resolve();
  stage.holder.onHistoryRead(stage.nowMs);
  stage.up.delete('b');
  stage.holder.onLinkDown('b', stage.nowMs);
  stage.tick(9);
  stage.apply('r3');
  stage.up.set('a', 'b2');
  stage.holder.onLinkUp('a', 'b2', stage.nowMs);
  stage.tick(5);
  return stage;
}

/** PARTIAL, with a and b in step. */
async function readingBoth(): Promise<Stage> {
  const stage = new Stage();
  stage.takeFrom('a', 'b');
  await Promise.resolve();
  stage.holder.onHistoryRead(stage.nowMs);
  stage.holder.onFenced('b', 'b1', { term: stage.holder.term, at: AT, olderLeaseMs: 0 }, stage.nowMs);
  return stage;
}

describe('a holder whose owner is back', () => {
  /** Holds it with a alone: b died, and c is being filled. */
  function withOne(): Stage {
    const stage = new Stage();
    stage.hold();
    stage.holder.onRules(stage.rulesTicket, stage.nowMs);
    stage.up.delete('b');
    stage.holder.onLinkDown('b', stage.nowMs);
    stage.tick(5);
    assert.deepEqual(stage.apply('r2').members.map(({ storeId }) => storeId), ['a']);
    return stage;
  }

  /** The register is asked first. */
  function handBackOnceHeard(stage: Stage, revision: string): void {
    stage.holder.handBack(OTHER, stage.nowMs);
    if (stage.state === HolderState.HANDING_BACK) return;
    const before = stage.reads.length;
    stage.tick();
    if (stage.reads.length > before) stage.holder.onRecord(stage.reads.at(-1) ?? 0, { revision, record: stage.holder.record, hasSession: true }, stage.nowMs);
    stage.holder.handBack(OTHER, stage.nowMs);
  }

  test('waits until a second store has all of it: what is handed back is forgotten here', () => {
    const stage = withOne();
    stage.holder.handBack(OTHER, stage.nowMs);
    assert.equal(stage.state, HolderState.HOLDER, 'c could have it');
    stage.tick(45);
    handBackOnceHeard(stage, 'r2');
    assert.equal(stage.state, HolderState.HOLDER, 'c is being filled');
    const row = stage.holder.set?.rowOf('c', 'b1');
    assert.ok(row !== undefined);
    stage.holder.set?.onTermTaken(row);
    stage.holder.set?.onFilled(row, AT.number, stage.nowMs);
    stage.tick();
    assert.equal(stage.apply('r3').members.length, 2);
    handBackOnceHeard(stage, 'r3');
    assert.equal(stage.state, HolderState.HANDING_BACK);
  });

  test('ends no partition when a copy that was gone is back while it stops', () => {
    for (const isBack of [false, true]) {
      const stage = new Stage();
      stage.hold();
      stage.holder.onRules(stage.rulesTicket, stage.nowMs);
      const { set, record } = stage.holder;
      assert.ok(set !== undefined && record !== undefined);
      const gone = { ...record, epoch: record.epoch + 1, gaveUp: [{ storeId: 'd', bootId: 'b1', epoch: record.epoch, isGone: true as const }] };
      stage.holder.onNews(stage.nowMs);
      stage.answerRead('r2', gone, true);
      for (const row of set.rows) set.onAcked(row, AT.number, stage.nowMs);
      stage.holder.end(stage.nowMs);
      assert.equal(stage.state, HolderState.HANDING_BACK);
      stage.holder.onQuiet(stage.nowMs);
      if (isBack) stage.up.set('d', 'b1');
      const before = stage.changes.length;
      for (let i = 0; i < 3; i++) stage.heard();
      const ended = stage.changes.slice(before).filter((change) => change.record.holder.incarnation === 0).length;
      assert.deepEqual([ended > 0, stage.state], isBack ? [false, HolderState.HOLDER] : [true, HolderState.HANDING_BACK]);
    }
  });

  test('does not send it once a member has died, though all were heard', () => {
    const stage = new Stage();
    stage.hold();
    stage.holder.onRules(stage.rulesTicket, stage.nowMs);
    const { set } = stage.holder;
    for (const row of set?.rows ?? []) set?.onAcked(row, AT.number, stage.nowMs);
    stage.holder.handBack(OTHER, stage.nowMs);
    stage.holder.onQuiet(stage.nowMs);
    stage.holder.onNews(stage.nowMs);
    const before = stage.changes.length;
    stage.heard();
    assert.equal(stage.changes.length, before, 'the register is read first');
    stage.up.delete('a');
    stage.holder.onLinkDown('a', stage.nowMs);
    stage.holder.onRecord(stage.reads.at(-1) ?? 0, { revision: 'r1', record: stage.holder.record, hasSession: true }, stage.nowMs);
    stage.tick();
    assert.deepEqual(stage.changes.slice(before).map(({ record }) => record.holder), []);
  });

  test('waits as long when it has held it for long, and when the owner was away meanwhile', () => {
    const stage = withOne();
    stage.tick(600);
    handBackOnceHeard(stage, 'r2');
    assert.equal(stage.state, HolderState.HOLDER);
    stage.tick(400);
    handBackOnceHeard(stage, 'r2');
    assert.equal(stage.state, HolderState.HOLDER, 'it was not wanted for a while');
  });

  test('does not give it while a second one is waited for, though it had stopped before', () => {
    const stage = new Stage();
    stage.hold();
    stage.holder.onRules(stage.rulesTicket, stage.nowMs);
    const { set } = stage.holder;
    for (const row of set?.rows ?? []) set?.onAcked(row, AT.number, stage.nowMs);
    handBackOnceHeard(stage, 'r1');
    assert.equal(stage.state, HolderState.HANDING_BACK);
    stage.up.delete('b');
    stage.holder.onLinkDown('b', stage.nowMs);
    stage.tick(5);
    assert.deepEqual(stage.apply('r2').members, members('a'));
    const before = stage.changes.length;
    stage.holder.onQuiet(stage.nowMs);
    for (let i = 0; i < 3; i++) stage.heard();
    assert.deepEqual(stage.changes.slice(before).map(({ record }) => record.holder), []);
    assert.equal(stage.state, HolderState.HOLDER, 'it delivers meanwhile');
  });

  test('goes on waiting while the store is full, and put off for a moment: it stops nothing meanwhile', () => {
    const stage = withOne();
    stage.up.delete('b');
    stage.holder.handBack(OTHER, stage.nowMs);
    assert.equal(stage.state, HolderState.HOLDER);
    stage.up.delete('c');
    const row = stage.holder.set?.rowOf('c', 'b1');
    if (row !== undefined) stage.holder.onLinkDown('c', stage.nowMs);
    for (let i = 0; i < 28; i++) {
      handBackOnceHeard(stage, 'r2');
      assert.equal(stage.state, HolderState.HOLDER, 'none may take it just now');
      stage.tick(10);
    }
    for (let i = 0; i < 4; i++) {
      stage.up.set('c', 'b1');
      handBackOnceHeard(stage, 'r2');
      stage.tick(10);
    }
    assert.equal(stage.state, HolderState.HANDING_BACK, 'it has waited for long enough');
  });

  test('waits for one that is compared just now: its store may have all of it in a moment', () => {
    const stage = withOne();
    stage.up.set('b', 'b1');
    stage.up.delete('c');
    stage.holder.handBack(OTHER, stage.nowMs);
    assert.equal(stage.holder.set?.isDoubled, false);
    assert.equal(stage.state, HolderState.HOLDER);
  });

  test('does not wait for one without end: a store may refuse it for ever', () => {
    const stage = withOne();
    for (let i = 0; i < 31; i++) {
      handBackOnceHeard(stage, 'r2');
      stage.tick(10);
    }
    handBackOnceHeard(stage, 'r2');
    assert.equal(stage.state, HolderState.HANDING_BACK);
  });

  test('does not wait where there is no second store', () => {
    const stage = new Stage();
    for (const storeId of ['b', 'c']) stage.up.delete(storeId);
    stage.takeFrom('a');
    stage.holder.onHistoryRead(stage.nowMs);
    stage.holder.onReadComplete(stage.nowMs);
    assert.equal(stage.state, HolderState.HOLDER);
    stage.holder.handBack(OTHER, stage.nowMs);
    assert.equal(stage.state, HolderState.HANDING_BACK);
  });
});

describe('a PARTIAL holder that all members are in step with', () => {
  test('gives the partition back before it has read it', async () => {
    const stage = await readingBoth();
    stage.holder.handBack(OTHER, stage.nowMs);
    assert.equal(stage.state, HolderState.HANDING_BACK);
    assert.equal(stage.holder.mayDeliver(stage.nowMs), false);
    stage.holder.onQuiet(stage.nowMs);
    assert.notEqual(stage.holder.set, undefined, 'the members may have died since they acknowledged all');
    stage.heard();
    assert.deepEqual(stage.changes.at(-1)?.record.holder, OTHER);
    assert.notEqual(stage.holder.set, undefined, 'the change may not be made');
    assert.deepEqual(stage.released, []);
    stage.apply('r3');
    assert.equal(stage.holder.set, undefined);
    assert.deepEqual(stage.released, ['a', 'b']);
    assert.equal(stage.state, HolderState.ASKING, 'looks who has it');
  });

  test('goes on reading when the owner is away again, or has read everything by then', async () => {
    const stage = await readingBoth();
    stage.holder.handBack(OTHER, stage.nowMs);
    stage.holder.keep(stage.nowMs);
    assert.equal(stage.state, HolderState.READING);
    stage.holder.handBack(OTHER, stage.nowMs);
    stage.holder.onReadComplete(stage.nowMs);
    assert.equal(stage.state, HolderState.HANDING_BACK);
    stage.holder.keep(stage.nowMs);
    assert.equal(stage.state, HolderState.HOLDER);
  });

  test('goes on when the register does not say that it was given away; later only a change of its own settles that', async () => {
    const stage = await readingBoth();
    stage.holder.handBack(OTHER, stage.nowMs);
    stage.holder.onQuiet(stage.nowMs);
    stage.heard();
    const handing = stage.changes.at(-1)?.record;
    stage.tick(8);
    assert.equal(stage.state, HolderState.READING);
    assert.equal(stage.holder.mayDeliver(stage.nowMs), true, 'its leases run at all members: whoever comes next waits for them');
    stage.holder.handBack(OTHER, stage.nowMs);
    assert.equal(stage.state, HolderState.READING, 'not again at once');
    stage.answerRead('r2', stage.holder.record);
    stage.tick(3);
    const own = stage.changes.at(-1)?.record;
    assert.deepEqual(own?.holder, SELF);
    assert.deepEqual(own.term, stage.holder.term);
    assert.ok(handing !== undefined && own.epoch > handing.epoch);
    stage.apply('r3');
    stage.tick(30);
    stage.holder.handBack(OTHER, stage.nowMs);
    stage.answerRead('r3', stage.holder.record);
    stage.holder.handBack(OTHER, stage.nowMs);
    assert.equal(stage.state, HolderState.HANDING_BACK);
  });

  test('goes on as well when the register answers that it takes no change, and no order ends it meanwhile', async () => {
    const stage = await readingBoth();
    stage.holder.handBack(OTHER, stage.nowMs);
    stage.holder.onQuiet(stage.nowMs);
    stage.heard();
    assert.equal(stage.holder.giveUp(['a', 'b'], stage.nowMs), false);
    stage.holder.onNoAnswer(stage.changes.at(-1)?.ticket ?? 0, stage.nowMs);
    assert.equal(stage.state, HolderState.READING);
    assert.equal(stage.holder.mayDeliver(stage.nowMs), true);
    for (let i = 0; i < 4; i++) {
      stage.answerRead('r2', stage.holder.record);
      stage.tick(3);
      stage.holder.onNoAnswer(stage.changes.at(-1)?.ticket ?? 0, stage.nowMs);
    }
    assert.equal(stage.holder.waitsFor(stage.nowMs), Waiting.REGISTER, 'and new mail is not taken for one that it would change');
  });

  test('that learns late that it was given away stops, and says nothing to the members: it has not stopped before', async () => {
    const stage = await readingBoth();
    stage.holder.handBack(OTHER, stage.nowMs);
    stage.holder.onQuiet(stage.nowMs);
    stage.heard();
    const handing = stage.changes.at(-1)?.record;
    stage.tick(8);
    stage.answerRead('r3', handing);
    assert.equal(stage.holder.set, undefined);
    assert.deepEqual(stage.released, []);
  });

  test('that is fenced by whom it is given to has stopped: nobody has to wait for its leases', async () => {
    const stage = await readingBoth();
    stage.holder.handBack(OTHER, stage.nowMs);
    stage.holder.onQuiet(stage.nowMs);
    stage.heard();
    stage.holder.onFenceNotice('a', 'b1', stage.changes.at(-1)?.record.term ?? stage.holder.term, stage.nowMs);
    assert.equal(stage.holder.set, undefined);
    assert.deepEqual(stage.released, ['a', 'b']);
  });

  test('stops nothing for a register that it has not heard of late: it is asked first', async () => {
    const stage = await readingBoth();
    stage.tick(30);
    const before = stage.reads.length;
    stage.holder.handBack(OTHER, stage.nowMs);
    assert.equal(stage.state, HolderState.READING);
    stage.tick();
    assert.equal(stage.reads.length, before + 1);
    stage.holder.onRecord(stage.reads.at(-1) ?? 0, { revision: 'r2', record: stage.holder.record, hasSession: true }, stage.nowMs);
    stage.holder.handBack(OTHER, stage.nowMs);
    assert.equal(stage.state, HolderState.HANDING_BACK);
  });

  test('keeps it while one of them is not: it would not be quiet there, and may have to read elsewhere', async () => {
    const stage = await readingBoth();
    stage.holder.handBack(OTHER, stage.nowMs);
    stage.up.delete('a');
    stage.holder.onLinkDown('a', stage.nowMs);
    stage.tick();
    assert.equal(stage.state, HolderState.READING);
    assert.deepEqual(stage.readFrom, ['a', 'b'], 'the source was away');
    stage.holder.handBack(OTHER, stage.nowMs);
    assert.equal(stage.state, HolderState.READING);
  });

  test('reads another one when the copy that it reads is to be moved away, and lets that go', async () => {
    const stage = await readingBoth();
    stage.holder.relocate('a');
    stage.tick();
    assert.deepEqual(stage.readFrom, ['a', 'b']);
    assert.equal(stage.holder.set?.source?.storeId, 'b');
    assert.deepEqual(stage.fills, ['c']);
    const filled = stage.holder.set.rowOf('c', 'b1') ?? assert.fail('c is filled');
    stage.holder.set.onTermTaken(filled);
    stage.holder.set.onFilled(filled, AT.number, stage.nowMs);
    stage.tick();
    assert.deepEqual(stage.changes.at(-1)?.record.members.map(({ storeId }) => storeId), ['b', 'c']);
  });
});

describe('the proof that a predecessor is dead', () => {
  /** All stores know of a record that names it. */
  const told = (stage: Stage, leaseLeftMs: number): void => {
    const record = recordOf(3, OLDER, 'a', 'b');
    for (const storeId of stage.up.keys()) {
      stage.holder.onAsked(storeId, 'b1', { hasCopy: storeId !== 'c', leaseLeftMs, termNumber: 3, told: record }, stage.nowMs);
    }
  };

  test('counts for one that the register names', () => {
    const stage = new Stage();
    stage.answerRead('r1', recordOf(3, OLDER, 'a', 'b'));
    told(stage, 900);
    stage.tick(3);
    assert.equal(stage.changes.length, 1);
  });

  test('does not for one that only stores tell of: it drew its number from another register', () => {
    const stage = new Stage();
    stage.answerRead('none', undefined);
    told(stage, 900);
    stage.answerRead('none', undefined);
    told(stage, 900);
    stage.tick(3);
    assert.equal(stage.changes.length, 0);
    told(stage, 0);
    stage.tick(3);
    assert.equal(stage.changes.length, 1);
  });
});
