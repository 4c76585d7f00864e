/**
 * Who counts: commits and rights by every possible record, and which change of members is wanted (rules 2-8,
 * 14, 15).
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PartitionRecord } from '../../../../src/protocol/partition-record.js';
import { PartitionMember, MEMBER_STATE_NAMES, MemberState,
  isValidMemberTransition } from '../../../../src/recovery/ownership/member.js';
import { PartitionSet } from '../../../../src/recovery/ownership/partition-set.js';
import type { MemberPorts, SetOptions, StoreChoice } from '../../../../src/recovery/ownership/ports.js';

const OPTIONS: SetOptions = { replicas: 2, minReplicas: 1, dropAfterMs: 500, replaceAfterMs: 30_000,
  tellAgainMs: 1000 };
const TERM = { number: 3, nonce: 7 };

function record(epoch: number, ...stores: string[]): PartitionRecord {
  return {
    epoch, term: TERM, holder: { gatewayId: 'g1', incarnation: 1 },
    members: stores.map((storeId) => ({ storeId, bootId: 'b1' })), gaveUp: [], left: [], line: [],
  };
}

class Stage implements MemberPorts {
  last = 0;
  readonly up = new Set(['a', 'b', 'c']);
  readonly leases = new Map<string, { bootId: string; endsMs: number }>();
  readonly told: string[] = [];
  readonly filled: string[] = [];
  readonly wentBack: string[] = [];
  readonly set: PartitionSet;
  choice: StoreChoice | undefined;

  constructor(options: Partial<SetOptions>, known: PartitionRecord | string, ...stores: string[]) {
    for (const storeId of ['a', 'b', 'c']) this.leases.set(storeId, { bootId: 'b1', endsMs: 100_000 });
    const before = typeof known === 'string' ? record(3, known, ...stores) : known;
    this.set = new PartitionSet({ ...OPTIONS, ...options }, this, before, 0, () => undefined);
    this.set.historyKnown();
    this.set.allHaveTerm(0);
  }

  row(storeId: string): PartitionMember {
    const row = this.set.rows.find((each) => each.storeId === storeId);
    assert.ok(row !== undefined);
    return row;
  }

  ack(storeId: string, number: number): void {
    this.last = Math.max(this.last, number);
    this.set.onAcked(this.row(storeId), number, 0);
  }

  target(nowMs: number): string {
    return this.set.target(nowMs).map(({ storeId }) => storeId).join('');
  }

  /** Store `storeId` is filled, as no member yet. */
  fill(storeId: string): void {
    this.choice = { storeId, bootId: 'b1' };
    this.set.tick(100_000);
    this.choice = undefined;
    this.set.onTermTaken(this.row(storeId));
    this.set.onFilled(this.row(storeId), this.last, 0);
  }

  lastNumber(): number { return this.last; }
  isInHistory(): boolean { return true; }
  lease(storeId: string): { bootId: string; endsMs: number } { return this.leases.get(storeId) ?? { bootId: '', endsMs: -Infinity }; }
  isUp(storeId: string): boolean { return this.up.has(storeId); }
  chooseStore(): StoreChoice | undefined { return this.choice; }
  align(): void { /* Its answer is given by hand. */ }
  startTail(): void { /* Likewise. */ }
  startFill({ storeId }: { storeId: string }): void { this.filled.push(storeId); }
  tell({ storeId }: { storeId: string }, { epoch }: PartitionRecord,
    isOut: boolean): void { this.told.push(`${storeId} ${String(epoch)}${isOut ? ' out' : ''}`); }
  onCommitted(): void { /* Read by the tests. */ }
  onWentBack({ storeId }: { storeId: string }, changes: number): void { this.wentBack.push(`${storeId} ${String(changes)}`); }
}

describe('set of a partition', () => {
  test('commits what every member has, and nothing more', () => {
    const stage = new Stage({}, 'a', 'b');
    stage.ack('a', 5);
    assert.equal(stage.set.committedNumber, 0);
    stage.ack('b', 3);
    assert.equal(stage.set.committedNumber, 3);
  });

  test('counts members of every record that was sent, until the revision has moved', () => {
    const stage = new Stage({}, 'a');
    stage.ack('a', 4);
    stage.fill('b');
    stage.set.sent(record(4, 'a', 'b'));
    stage.leases.set('b', { bootId: 'b1', endsMs: 50 });
    Object.assign(stage.row('b').lease, { endsMs: 50 });
    assert.equal(stage.set.mayDeliver(60, Infinity), false, 'nor without its lease');
    stage.ack('a', 6);
    assert.equal(stage.set.committedNumber, 4, 'b may be a member already');
    stage.leases.set('b', { bootId: 'b1', endsMs: 50 });
    stage.set.settled(record(4, 'a', 'b'));
    stage.ack('b', 6);
    assert.equal(stage.set.committedNumber, 6);
  });

  test('goes on counting a member until it is known to have left', () => {
    const stage = new Stage({}, 'a', 'b');
    stage.ack('a', 2);
    stage.ack('b', 2);
    stage.set.onLinkDown('b', 1000);
    assert.equal(stage.target(1499), 'ab', 'it may come back at once');
    assert.equal(stage.target(1500), 'a');
    stage.set.sent(record(4, 'a'));
    stage.ack('a', 9);
    assert.equal(stage.set.committedNumber, 2);
    stage.set.settled(record(4, 'a'));
    assert.equal(stage.set.committedNumber, 9);
  });

  test('answers no 250 with fewer than min_replicas possible, but ends what all have', () => {
    const stage = new Stage({ minReplicas: 2 }, 'a', 'b');
    stage.set.sent(record(4, 'a'));
    stage.ack('a', 3);
    stage.ack('b', 3);
    assert.equal(stage.set.committedNumber, 0);
    assert.equal(stage.set.ackedByAllNumber, 3);
  });

  test('the right needs a running lease at every possible member, in its recorded boot', () => {
    const stage = new Stage({}, 'a', 'b');
    assert.equal(stage.set.mayDeliver(99_999, -Infinity), true);
    assert.equal(stage.set.mayDeliver(100_000, Infinity), false);
    stage.row('b').isFenced = false;
    assert.equal(stage.set.mayDeliver(0, Infinity), false, 'a taker would not wait for a lease it is not told of');
    stage.leases.set('b', { bootId: 'b2', endsMs: 20_000 });
    const other = new Stage({}, 'a', 'b');
    other.set.rows[1]?.enter(0, 0);
    Object.assign(other.lease('b'), { bootId: 'b2' });
    assert.equal(other.set.mayDeliver(0, Infinity), false);
  });

  test('with no member possible the right is the session\'s', () => {
    const stage = new Stage({}, 'a');
    stage.set.onLinkUp('a', 'b2', 0);
    assert.equal(stage.target(0), '');
    stage.set.sent(record(4));
    assert.equal(stage.set.mayDeliver(100, 200), true);
    assert.equal(stage.set.mayDeliver(100, 100), false);
    stage.set.settled(record(4));
    assert.equal(stage.set.mayDeliver(20_000, 20_001), true, 'no lease is left to ask for');
    assert.equal(stage.set.mayCommit, false);
  });

  test('starts nothing while no member hears of its end: who comes next would do it again', () => {
    const stage = new Stage({}, 'a', 'b');
    stage.set.onLinkDown('a', 0);
    assert.equal(stage.set.mayDeliver(100, Infinity), true);
    stage.set.onLinkDown('b', 0);
    assert.equal(stage.set.mayDeliver(100, Infinity), false, 'though its leases run');
    stage.set.onLinkUp('a', 'b1', 100);
    assert.equal(stage.set.mayDeliver(100, Infinity), false, 'where it stands is not known yet');
    stage.set.onAligned(stage.row('a'), { number: 0, term: TERM, digestA: 0, digestB: 0 }, 100);
    assert.equal(stage.set.mayDeliver(100, Infinity), true);
  });

  test('the last member stays while it is silent, and is replaced in one change', () => {
    const stage = new Stage({}, 'a');
    stage.ack('a', 2);
    stage.up.delete('a');
    stage.set.onLinkDown('a', 0);
    assert.equal(stage.target(60_000), 'a');
    stage.fill('b');
    assert.equal(stage.target(60_000), 'b');
  });

  test('what a boot acknowledged that is known to be over commits nothing, whatever leaves after', () => {
    const stage = new Stage({}, 'a', 'b');
    stage.ack('b', 2);
    stage.set.onLinkUp('a', 'b2', 0);
    assert.equal(stage.target(0), 'b');
    stage.set.sent(record(4, 'b'));
    stage.set.onLinkUp('b', 'b2', 0);
    stage.set.settled(record(4, 'b'));
    assert.equal(stage.set.committedNumber, 0, 'neither store has it any more, and both have said so');
    stage.set.sent(record(5));
    stage.set.settled(record(5));
    assert.equal(stage.set.committedNumber, 0);
    assert.equal(stage.set.ackedByAllNumber, 2, 'the only copy is here');
  });

  test('a silent boot may be alive: what it acknowledged counts', () => {
    const stage = new Stage({}, 'a', 'b');
    stage.ack('b', 2);
    stage.set.onLinkUp('a', 'b2', 0);
    stage.set.sent(record(4, 'b'));
    stage.set.onLinkDown('b', 0);
    stage.set.settled(record(4, 'b'));
    assert.equal(stage.set.committedNumber, 2);
  });

  test('a boot that passed for gone, and is back with what it had, counts again', () => {
    const stage = new Stage({}, 'a', 'b');
    for (const storeId of ['a', 'b']) stage.ack(storeId, 4);
    stage.set.onLinkUp('b', 'b2', 0);
    stage.ack('a', 5);
    stage.set.onLinkDown('b', 0);
    stage.set.onLinkUp('b', 'b1', 0);
    assert.deepEqual([stage.set.mayCommit, stage.row('b').isBack], [false, true], 'nobody has looked at what it has');
    stage.set.onAligned(stage.row('b'), { number: 4, term: TERM, digestA: 1, digestB: 2 }, 0);
    assert.deepEqual([stage.set.mayCommit, stage.set.ackedByAllNumber], [true, 4]);
    stage.ack('b', 5);
    assert.deepEqual([stage.set.committedNumber, stage.target(0)], [5, 'ab']);
  });

  test('a store that comes back in its boot with less than it acknowledged is not counted as having it', () => {
    const stage = new Stage({}, 'a', 'b');
    for (const storeId of ['a', 'b']) stage.ack(storeId, 9);
    const back = (number: number): void => {
      stage.set.onLinkDown('b', 0);
      stage.set.onLinkUp('b', 'b1', 0);
      stage.set.onAligned(stage.row('b'), { number, term: TERM, digestA: 1, digestB: 2 }, 0);
    };
    back(9);
    assert.deepEqual([stage.wentBack, stage.row('b').state], [[], MemberState.IN_STEP]);
    back(4);
    assert.deepEqual([stage.wentBack, stage.row('b').acked, stage.row('b').state], [['b 5'], 4, MemberState.TAIL]);
    assert.deepEqual([stage.set.committedNumber, stage.set.ackedByAllNumber], [9, 9], 'what was said stays said');
    stage.ack('a', 10);
    stage.ack('b', 8);
    assert.deepEqual([stage.set.committedNumber, stage.row('b').state], [9, MemberState.TAIL]);
    stage.ack('b', 9);
    assert.equal(stage.row('b').state, MemberState.IN_STEP, 'all that it lacked is there again');
    stage.ack('b', 10);
    assert.equal(stage.set.committedNumber, 10);
  });

  test('a store is moved in one change, and counts until that is known', () => {
    const stage = new Stage({}, 'a', 'b');
    stage.ack('a', 2);
    stage.ack('b', 2);
    stage.set.relocate('b');
    assert.equal(stage.target(0), 'ab', 'nobody has come in its place');
    stage.fill('c');
    assert.equal(stage.target(0), 'ac');
    stage.set.stay('b');
    assert.equal(stage.target(0), 'ab', 'its store is wanted again');
    stage.set.relocate('b');
    assert.equal(stage.target(0), 'ac');
    stage.set.sent(record(4, 'a', 'c'));
    stage.ack('a', 3);
    stage.ack('c', 3);
    assert.equal(stage.set.committedNumber, 2);
  });

  test('a store that nobody can take the place of is left all the same, if enough stay', () => {
    const leaving = (minReplicas: number): string[] => {
      const stage = new Stage({ minReplicas }, 'a', 'b');
      stage.set.relocate('b');
      stage.set.tick(0);
      return [0, 900, 1_000].map((nowMs) => stage.target(nowMs));
    };
    assert.deepEqual(leaving(1), ['ab', 'ab', 'a']);
    assert.deepEqual(leaving(2), ['ab', 'ab', 'ab']);
    const stage = new Stage({}, 'a', 'b');
    stage.set.relocate('b');
    stage.set.tick(0);
    stage.choice = { storeId: 'c', bootId: 'b1' };
    stage.set.tick(500);
    assert.equal(stage.target(60_000), 'ab', 'another is being filled');
  });

  test('a store that stops and is left is not told to drop its copy, and comes back for a tail', () => {
    const left = (isStopping: boolean): Stage => {
      const stage = new Stage({}, 'a', 'b');
      stage.set.relocate('b', isStopping);
      stage.set.tick(0);
      assert.equal(stage.target(1_000), 'a');
      stage.set.sent(record(4, 'a'));
      stage.set.settled(record(4, 'a'));
      stage.told.length = 0;
      stage.set.tick(1_100);
      assert.equal(stage.target(60_000), 'a', 'it does not join again while it stops');
      return stage;
    };
    assert.deepEqual(left(false).told.sort(), ['a 4', 'b 4 out']);
    const stage = left(true);
    assert.deepEqual(stage.told.sort(), ['a 4', 'b 4']);
    stage.set.stay('b');
    assert.equal(stage.target(60_000), 'ab');
  });

  test('who is filled joins only with everything that counts as committed', () => {
    const stage = new Stage({}, 'a');
    stage.ack('a', 4);
    stage.fill('b');
    assert.equal(stage.set.mayJoin(stage.row('b'), 0), true);
    stage.ack('a', 7);
    assert.equal(stage.set.mayJoin(stage.row('b'), 0), false);
    stage.ack('b', 7);
    assert.equal(stage.set.mayJoin(stage.row('b'), 0), true);
  });

  test('who is filled joins only where our lease runs, or a founder may empty it before the record names it', () => {
    const stage = new Stage({}, record(3));
    stage.leases.set('b', { bootId: '', endsMs: -Infinity });
    stage.fill('b');
    assert.equal(stage.target(0), '', 'it has answered no heartbeat yet');
    Object.assign(stage.row('b').lease, { bootId: 'b1', endsMs: 2_000 });
    assert.equal(stage.target(1_999), 'b');
    assert.equal(stage.target(2_000), '');
  });

  test('a copy that is found to have mail, and is taken in for that, is not emptied before', () => {
    const stage = new Stage({}, 'a');
    stage.choice = { storeId: 'b', bootId: 'b1' };
    stage.set.tick(0);
    stage.choice = undefined;
    stage.set.onUnfit(stage.row('b'), 3, 0);
    stage.set.settled({ ...record(4, 'a'), gaveUp: [{ storeId: 'b', bootId: 'b1', epoch: 3 }] });
    stage.set.onTold('b', 'b1', 4, 0);
    stage.set.tick(60_000);
    assert.deepEqual(stage.filled, ['b'], 'once, which was refused');
    stage.set.settled(record(5, 'a'));
    stage.set.tick(60_000);
    assert.deepEqual(stage.filled, ['b', 'b']);
  });

  test('a PARTIAL holder keeps its source and who would be dropped for its history', () => {
    const stage = new Stage({}, 'a', 'b');
    stage.set.readFrom(stage.row('a'), 4, 0);
    stage.set.onUnfit(stage.row('b'), 0, 0);
    assert.equal(stage.target(60_000), 'ab');
    assert.equal(stage.set.otherSource(), undefined, 'b was not equal at what was adopted');
    stage.set.readComplete();
    assert.equal(stage.target(60_000), 'a');
    const other = new Stage({}, 'a', 'b');
    other.set.readFrom(other.row('a'), 4, 0);
    other.set.onLinkDown('a', 0);
    assert.equal(other.target(60_000).includes('a'), true, 'the source stays, though another is in step');
    assert.equal(other.set.otherSource(), other.row('b'));
  });

  test('a PARTIAL holder reads on from nobody that a change under way takes out: it may be emptied then', () => {
    const stage = new Stage({}, 'a', 'b');
    stage.set.readFrom(stage.row('a'), 4, 0);
    assert.equal(stage.set.otherSource(), stage.row('b'));
    stage.set.sent(record(4, 'a'));
    assert.equal(stage.set.otherSource(), undefined);
    assert.equal(stage.set.mayHaveOther(new Set(), 0), true, 'it stays if the change fails');
    stage.set.settled(record(5, 'a', 'b'));
    assert.equal(stage.set.otherSource(), stage.row('b'));
  });

  test('a PARTIAL holder lets who is of another history leave when two in step are recorded with that change', () => {
    const stage = new Stage({}, 'a', 'b');
    stage.set.readFrom(stage.row('a'), 4, 0);
    stage.set.onUnfit(stage.row('b'), 0, 0);
    stage.last = 4;
    stage.fill('c');
    assert.equal(stage.target(60_000), 'ac');
    stage.set.onLinkDown('c', 0);
    assert.equal(stage.target(60_000), 'ab');
  });

  test('another copy may have what is damaged at the source as long as it counts, and for a while after it left', () => {
    const stage = new Stage({}, 'a', 'b');
    const none = new Set<string>();
    stage.set.readFrom(stage.row('a'), 4, 0);
    assert.equal(stage.set.mayHaveOther(none, 0), false, 'it can be asked');
    stage.set.onLinkDown('b', 1000);
    assert.equal(stage.set.mayHaveOther(none, 90_000), true);
    assert.equal(stage.set.mayHaveOther(new Set(['b']), 90_000), false, 'it was asked');
    stage.set.settled(record(4, 'a'));
    assert.equal(stage.set.mayHaveOther(none, 30_999), true);
    assert.equal(stage.set.mayHaveOther(none, 31_000), false);
    stage.set.onLinkUp('b', 'b2', 2000);
    assert.equal(stage.set.mayHaveOther(none, 2000), false, 'it is gone');
    const other = new Stage({}, 'a', 'b');
    other.set.readFrom(other.row('a'), 4, 0);
    other.set.onUnfit(other.row('b'), 0, 0);
    assert.equal(other.set.mayHaveOther(none, 0), false, 'it is of another history');
  });

  test('a source that is to be moved stays until all of it is read', () => {
    const stage = new Stage({}, 'a', 'b');
    stage.set.readFrom(stage.row('a'), 4, 0);
    stage.set.relocate('a', true);
    stage.set.tick(0);
    assert.equal(stage.target(60_000), 'ab');
    stage.set.readComplete();
    assert.equal(stage.target(60_000), 'b');
    const other = new Stage({}, 'a', 'b');
    other.set.readFrom(other.row('a'), 4, 0);
    other.set.relocate('b');
    other.set.tick(0);
    assert.equal(other.target(60_000), 'ab', 'nor does its only equal leave it: it may have died just now');
    const alone = new Stage({}, 'a');
    alone.set.readFrom(alone.row('a'), 4, 0);
    alone.set.relocate('a');
    assert.equal(alone.target(0), 'a', 'once');
  });

  test('tells settled records to members, and to who has left until it says that it knows', () => {
    const stage = new Stage({}, 'a', 'b');
    stage.set.relocate('b');
    stage.fill('c');
    stage.set.sent(record(4, 'a', 'c'));
    stage.set.settled(record(4, 'a', 'c'));
    stage.told.length = 0;
    stage.set.tick(200_000);
    assert.deepEqual(stage.told.sort(), ['a 4', 'b 4 out', 'c 4']);
    for (const storeId of ['a', 'b', 'c']) stage.set.onTold(storeId, 'b1', 4, 0);
    stage.told.length = 0;
    stage.set.tick(300_000);
    assert.deepEqual(stage.told, []);
  });

  test('tells also who refused it once, and takes its term now', () => {
    const stage = new Stage({}, 'a');
    stage.fill('b');
    stage.set.onUnfit(stage.row('b'), 5, 0);
    stage.set.onLinkUp('b', 'b1', 100_000);
    stage.set.onAligned(stage.row('b'), { number: 0, term: TERM, digestA: 0, digestB: 0 }, 100_000);
    stage.set.settled(record(4, 'a', 'b'));
    stage.told.length = 0;
    stage.set.tick(200_000);
    assert.ok(stage.told.includes('b 4'), stage.told.join());
  });

  /** b refused it by term 5 while a change that makes it the only member was under way, and is recorded now. */
  function recordedRefusing(): Stage {
    const stage = new Stage({}, 'a');
    stage.fill('b');
    stage.set.sent(record(4, 'b'));
    stage.set.onUnfit(stage.row('b'), 5, 0);
    assert.equal(stage.set.isEpochTooLow, false, 'it may be none');
    stage.set.settled(record(4, 'b'));
    assert.equal(stage.set.isEpochTooLow, true);
    stage.up.delete('a');
    stage.set.onLinkDown('a', 100);
    stage.told.length = 0;
    stage.set.tell(100);
    const toldB = (): string[] => stage.told.filter((each) => each.startsWith('b'));
    assert.deepEqual(toldB(), [], 'it would refuse that, too');
    stage.set.settled(record(6, 'b'));
    stage.set.tell(100);
    assert.deepEqual(toldB(), ['b 6']);
    stage.set.onTold('b', 'b1', 6, 100);
    assert.equal(stage.row('b').state, MemberState.ALIGNING);
    return stage;
  }

  test('a member that refused it by a term that came to nothing is told the record that takes it back, and goes on with what it has', () => {
    const stage = recordedRefusing();
    stage.set.onAligned(stage.row('b'), { number: 0, term: TERM, digestA: 0, digestB: 0 }, 100);
    assert.equal(stage.row('b').state, MemberState.IN_STEP);
    assert.equal(stage.set.isEpochTooLow, false);
    assert.deepEqual(stage.filled, ['b'], 'once, before it was recorded');
  });

  test('one that has nothing then, for that founding had emptied it, leaves like one in a new boot, and is filled', () => {
    const stage = recordedRefusing();
    stage.set.onNoCopy(stage.row('b'), 100);
    assert.deepEqual([stage.target(100), stage.set.mayCommit], ['', false]);
    stage.set.sent(record(7));
    stage.set.settled(record(7));
    stage.choice = { storeId: 'b', bootId: 'b1' };
    stage.set.tick(100);
    assert.deepEqual(stage.filled, ['b', 'b']);
  });

  test('that a copy is missing counts only from a member, asked just now: any other answer is of what was before', () => {
    const stage = new Stage({}, 'a', 'b');
    stage.set.onNoCopy(stage.row('b'), 100);
    assert.deepEqual([stage.row('b').isGone, stage.set.mayCommit], [false, true], 'it was not being compared');
    const other = new Stage({}, { ...record(3, 'a'), left: [{ storeId: 'b', bootId: 'b1' }] });
    other.choice = { storeId: 'b', bootId: 'b1' };
    other.set.tick(100_000);
    assert.equal(other.row('b').state, MemberState.ALIGNING);
    other.set.onNoCopy(other.row('b'), 100_000);
    assert.deepEqual([other.row('b').isGone, other.set.mayCommit], [false, true], 'it is none');
  });

  test('where a fence was taken back a copy is asked what is left of it: not while it is filled, or can not be compared', () => {
    const stage = new Stage({}, 'a', 'b');
    stage.set.onTakenBack(stage.row('b'), 0);
    assert.equal(stage.row('b').state, MemberState.ALIGNING);
    stage.choice = { storeId: 'c', bootId: 'b1' };
    stage.up.delete('b');
    stage.set.onLinkDown('b', 0);
    stage.set.tick(100_000);
    stage.set.onTakenBack(stage.row('c'), 100_000);
    assert.equal(stage.row('c').state, MemberState.FILLING);
    const set = new PartitionSet(OPTIONS, stage, record(3, 'a'), 0, () => undefined);
    set.allHaveTerm(0);
    for (const row of set.rows) set.onTakenBack(row, 0);
    assert.deepEqual(set.rows.map(({ state }) => state), [MemberState.IN_STEP]);
  });

  test('who takes back a term is compared only where it is up, and once there is something to compare it with', () => {
    for (const isHistoryKnown of [true, false]) {
      const ports = new Stage({}, 'a', 'b');
      const set = new PartitionSet(OPTIONS, ports, record(3, 'a', 'b'), 0, () => undefined);
      if (isHistoryKnown) set.historyKnown();
      const row = set.rowOf('b', 'b1') ?? assert.fail('a row');
      set.onUnfit(row, 5, 0);
      if (isHistoryKnown) ports.up.delete('b');
      set.onTold('b', 'b1', 6, 0);
      assert.deepEqual([row.refusedBy, row.state], [0, MemberState.NG]);
    }
  });

  const B = { storeId: 'b', bootId: 'b1' };

  test('names who leaves, until it says that it knows; then the record is changed once more, without it', () => {
    const stage = new Stage({}, 'a', 'b');
    stage.set.relocate('b');
    stage.fill('c');
    const next = record(4, 'a', 'c');
    assert.deepEqual(stage.set.strays(next.members, []), [B]);
    stage.set.sent(next);
    stage.set.settled({ ...next, left: [B] });
    assert.deepEqual(stage.set.strays(next.members, []), [B]);
    assert.equal(stage.set.isLeftOver, false);
    stage.set.onTold('b', 'b1', 4, 0);
    assert.deepEqual(stage.set.strays(next.members, []), []);
    assert.equal(stage.set.isLeftOver, true);
    stage.set.settled(record(5, 'a', 'c'));
    assert.equal(stage.set.isLeftOver, false);
  });

  test('compares a copy that left under another holder before it is emptied, once it can be compared', () => {
    const stage = new Stage({}, { ...record(3, 'a'), left: [B] });
    stage.choice = B;
    stage.last = 9;
    stage.set.tick(100_000);
    assert.equal(stage.row('b').state, MemberState.ALIGNING);
    assert.deepEqual(stage.filled, []);
    assert.deepEqual(stage.set.spared, [{ ...B, epoch: 0 }], 'nobody knows in which record it counted last');
    stage.set.onAligned(stage.row('b'), { number: 5, term: TERM, digestA: 0, digestB: 0 }, 100_000);
    assert.equal(stage.row('b').state, MemberState.TAIL);
    stage.ack('b', 9);
    assert.deepEqual([stage.row('b').state, stage.row('b').countedEpoch], [MemberState.IN_STEP, 3]);
    assert.equal(stage.target(90_000), 'ab');
  });

  test('tells who left under another holder, too, but not while it reads a member that may yet die', () => {
    const stage = new Stage({}, { ...record(3, 'a', 'c'), left: [B] });
    stage.set.readFrom(stage.row('a'), 4, 0);
    stage.set.tick(1000);
    assert.ok(!stage.told.includes('b 3 out'));
    assert.deepEqual(stage.set.strays(stage.set.records.known.members, []), [B]);
    stage.set.readComplete();
    stage.set.tick(2000);
    assert.ok(stage.told.includes('b 3 out'));
    stage.set.onLinkUp('b', 'b2', 3000);
    assert.deepEqual(stage.set.strays(stage.set.records.known.members, []), [], 'a boot that is over has no copy');
  });
});

test('a member enters states only as its table says', () => {
  const from = { NG: 'ALIGNING FILLING', ALIGNING: 'NG TAIL FILLING IN_STEP', TAIL: 'NG IN_STEP',
    FILLING: 'NG IN_STEP', IN_STEP: 'NG' };
  for (const [name, to] of Object.entries(from)) {
    const state = MEMBER_STATE_NAMES.indexOf(name as (typeof MEMBER_STATE_NAMES)[number]);
    const allowed = MEMBER_STATE_NAMES.filter((_, other) => isValidMemberTransition(state, other));
    assert.equal(allowed.join(' '), to);
  }
  const row = new PartitionMember('a', 'b1', { bootId: 'b1', endsMs: 0 }, 0, () => undefined);
  assert.throws(() => { row.enter(2, 0); }, /NG to TAIL/);
});
