/** One queue's claims against stores that answer as a test says: each arrow of the machine. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Claimed } from '../../../src/protocol/messages/claimed.js';
import { CLAIM_DENIED, CLAIM_GRACE, CLAIM_GRANTED, CLAIM_LEASE_RUNS, CLAIM_TOKEN_LOW, CLAIM_UNKNOWN, ROLE_FILLING, ROLE_MEMBER } from '../../../src/protocol/reasons.js';
import { CLAIM_STATE_NAMES, ClaimMachine, ClaimState, isValidClaimTransition } from '../../../src/recovery/claim-machine.js';
import type { ClaimQuestion } from '../../../src/recovery/claim-machine.js';

const MEMBERS = ['b', 'a', 'c'];

/** A machine, what it asked, and how it ended. */
class Story {
  readonly asked: string[] = [];
  readonly down = new Set<string>();
  readonly boots = new Map<string, string>();
  mayMiss = false;
  empty = '';
  nowMs = 1000;
  ended = '';
  readonly machine = new ClaimMachine(100, {
    nowMs: () => this.nowMs,
    random: () => 0.5,
    ask: (storeId, question, token) => {
      if (this.down.has(storeId)) return false;
      this.asked.push(`${question} ${storeId} ${String(token)}`);
      return true;
    },
    release: (storeId, token) => { this.asked.push(`release ${storeId} ${String(token)}`); },
    bootIdOf: (storeId) => this.boots.get(storeId) ?? 'boot',
    mayMiss: () => this.mayMiss,
    doesNotCount: () => this.empty,
    onHeld: () => { this.ended = 'held'; },
    onBackedOff: (why, storeId, waitMs) => { this.ended = `${why} at ${storeId} ${String(waitMs)}`; },
  });

  begin(members: readonly string[] = MEMBERS): this {
    this.ended = '';
    this.machine.begin(members, 3);
    return this;
  }

  answer(storeId: string, question: ClaimQuestion, result: number, more: Partial<Claimed> = {}): this {
    this.machine.onAnswer(storeId, question, {
      handle: 1, result, token: 7, epoch: 3, members: MEMBERS, number: 10, digestA: 0, digestB: 0, count: 0, bytes: 0, role: ROLE_MEMBER, waitMs: 0, sameBoot: result === CLAIM_GRANTED, holderWallMs: 0, writer: undefined, ...more,
    });
    return this;
  }

  probed(token = 7): this {
    for (const storeId of ['a', 'b', 'c']) this.answer(storeId, 'probe', CLAIM_TOKEN_LOW, { token });
    return this;
  }

  claimed(...stores: readonly string[]): this {
    for (const storeId of stores) this.answer(storeId, 'claim', CLAIM_GRANTED, { token: this.machine.token });
    return this;
  }

  /** What was asked since the last look. */
  look(): string[] {
    return this.asked.splice(0);
  }
}

describe('claims of one queue', () => {
  test('all members are probed at once, claimed one after the other by their names, and all but the last are asked again', () => {
    const story = new Story().begin();
    assert.deepEqual(story.look(), ['probe a 0', 'probe b 0', 'probe c 0']);
    story.answer('c', 'probe', CLAIM_TOKEN_LOW).answer('a', 'probe', CLAIM_TOKEN_LOW);
    assert.deepEqual(story.look(), [], 'nothing is claimed before all have answered');
    story.answer('b', 'probe', CLAIM_TOKEN_LOW);
    assert.deepEqual(story.look(), ['claim a 100']);
    story.claimed('a');
    assert.deepEqual(story.look(), ['claim b 100']);
    story.claimed('b', 'c');
    assert.deepEqual(story.look(), ['claim c 100', 'confirm a 100', 'confirm b 100']);
    story.answer('a', 'confirm', CLAIM_GRANTED);
    assert.equal(story.ended, '');
    story.answer('b', 'confirm', CLAIM_GRANTED);
    assert.equal(story.ended, 'held');
    assert.ok(story.machine.holds('a') && story.machine.holds('c'));
  });

  test('a queue of one member is held with its only claim', () => {
    const story = new Story().begin(['a']).answer('a', 'probe', CLAIM_TOKEN_LOW).claimed('a');
    assert.equal(story.ended, 'held');
  });

  test('the token is above every token that a member told', () => {
    const story = new Story().begin().probed(500);
    assert.equal(story.look().at(-1), 'claim a 501');
  });

  test('while a lease runs or a first period lasts, nothing is claimed', () => {
    assert.equal(new Story().begin().answer('b', 'probe', CLAIM_LEASE_RUNS, { waitMs: 900 }).ended, 'lease runs at b 900');
    assert.equal(new Story().begin().answer('b', 'probe', CLAIM_GRACE, { waitMs: 40 }).ended, 'first lease period at b 40');
    assert.equal(new Story().begin().answer('b', 'probe', CLAIM_DENIED).ended, 'denied at b 0');
  });

  test('a member that shows a newer epoch twice, and is none of that set any more, came back empty', () => {
    const story = new Story();
    const leftOver = { epoch: 4, role: ROLE_FILLING };
    const shown = (more: Partial<Claimed>): string => {
      story.machine.reset();
      return story.begin().answer('a', 'probe', CLAIM_TOKEN_LOW, more).ended;
    };
    assert.equal(shown(leftOver), 'newer epoch at a 0');
    assert.equal(shown(leftOver), 'came back empty at a 0');
    assert.equal(shown({ epoch: 4, role: ROLE_MEMBER }), 'newer epoch at a 0', 'a member of it is another thing');
    assert.equal(shown({ epoch: 5, role: ROLE_FILLING }), 'newer epoch at a 0', 'a set newer still');
    story.mayMiss = true;
    assert.equal(shown(leftOver), '');
    story.answer('b', 'probe', CLAIM_TOKEN_LOW).answer('c', 'probe', CLAIM_TOKEN_LOW);
    assert.deepEqual(story.look().slice(-1), ['claim b 100'], 'the others are taken without it');
  });

  test('a member that shows a newer epoch has the queue judged anew, at once', () => {
    const story = new Story().begin().answer('a', 'probe', CLAIM_TOKEN_LOW, { epoch: 4 });
    assert.equal(story.ended, 'newer epoch at a 0');
    assert.equal(story.machine.retryAtMs, story.nowMs);
    const late = new Story().begin().probed();
    late.look();
    late.claimed('a').answer('b', 'claim', CLAIM_GRANTED, { epoch: 4 });
    assert.equal(late.ended, 'newer epoch at b 0', 'the old owner was quicker than the claim');
    assert.deepEqual(late.look(), ['claim b 100', 'release a 100', 'release b 100']);
  });

  test('a conflict gives back what was granted, and the next try is above the token told', () => {
    const story = new Story().begin().probed();
    story.look();
    story.claimed('a').answer('b', 'claim', CLAIM_TOKEN_LOW, { token: 250 });
    assert.equal(story.ended, 'another claims at b 0');
    assert.deepEqual(story.look(), ['claim b 100', 'release a 100']);
    assert.ok(story.machine.retryAtMs >= story.nowMs + 250 && story.machine.retryAtMs <= story.nowMs + 1000);
    story.machine.reset();
    story.begin().probed(250);
    assert.equal(story.look().at(-1), 'claim a 251');
  });

  for (const [result, why] of [[CLAIM_LEASE_RUNS, 'lease runs'], [CLAIM_GRACE, 'first lease period'], [CLAIM_UNKNOWN, 'store restarted'], [CLAIM_DENIED, 'denied']] as const) {
    test(`a claim answered by "${why}" gives back the others`, () => {
      const story = new Story().begin().probed().claimed('a');
      story.look();
      story.answer('b', 'claim', result, { waitMs: 5 });
      assert.equal(story.ended, `${why} at b 5`);
      assert.deepEqual(story.look(), ['release a 100']);
    });
  }

  test('a claim that another took meanwhile, or that a restart has undone, does not count', () => {
    const taken = new Story().begin().probed().claimed('a', 'b', 'c').answer('a', 'confirm', CLAIM_TOKEN_LOW);
    assert.equal(taken.ended, 'another claims at a 0');
    const gone = new Story().begin().probed().claimed('a', 'b', 'c').answer('a', 'confirm', CLAIM_GRANTED, { sameBoot: false });
    assert.equal(gone.ended, 'store restarted at a 0');
    const other = new Story().begin().probed().claimed('a', 'b', 'c');
    other.boots.set('b', 'another');
    assert.equal(other.answer('b', 'confirm', CLAIM_GRANTED).ended, 'store restarted at b 0');
  });

  test('an owner that came back while its queue was claimed gets it back at once', () => {
    const story = new Story().begin().probed().claimed('a', 'b', 'c');
    story.look();
    story.answer('a', 'confirm', CLAIM_GRANTED, { waitMs: 8000 });
    assert.equal(story.ended, 'owner is back at a 8000');
    assert.deepEqual(story.look(), ['release a 100', 'release b 100', 'release c 100']);
  });

  test('a store that is lost in any step ends the try, and late answers do nothing', () => {
    const probing = new Story().begin();
    probing.machine.onStoreLost('b');
    assert.equal(probing.ended, 'store lost at b 0');
    probing.answer('a', 'probe', CLAIM_TOKEN_LOW);
    const claiming = new Story().begin().probed().claimed('a');
    claiming.look();
    claiming.machine.onStoreLost('c');
    assert.deepEqual(claiming.look(), ['release a 100', 'release b 100'], 'a claim under way is released behind it');
    const confirming = new Story().begin().probed().claimed('a', 'b', 'c');
    confirming.machine.onStoreLost('a');
    assert.equal(confirming.ended, 'store lost at a 0');
    const down = new Story();
    down.down.add('c');
    assert.equal(down.begin().ended, 'store lost at c 0');
    const held = new Story().begin(['a']).answer('a', 'probe', CLAIM_TOKEN_LOW).claimed('a');
    held.machine.onStoreLost('a');
    assert.equal(held.machine.state, ClaimState.HELD);
  });

  test('a member that came back empty is missed only when that is allowed', () => {
    assert.equal(new Story().begin().answer('b', 'probe', CLAIM_UNKNOWN).ended, 'came back empty at b 0');
    const story = new Story();
    story.mayMiss = true;
    story.begin().answer('b', 'probe', CLAIM_UNKNOWN).answer('a', 'probe', CLAIM_TOKEN_LOW).answer('c', 'probe', CLAIM_TOKEN_LOW);
    story.look();
    story.claimed('a', 'c');
    assert.deepEqual(story.look(), ['claim c 100', 'confirm a 100']);
    const alone = new Story();
    alone.mayMiss = true;
    assert.equal(alone.begin(['a']).answer('a', 'probe', CLAIM_UNKNOWN).ended, 'came back empty at a 0');
  });

  test('a member that does not count ends the round before anything is claimed', () => {
    const story = new Story();
    story.empty = 'c';
    story.begin();
    story.look();
    story.probed();
    assert.deepEqual([story.look(), story.ended], [[], 'came back empty at c 0']);
  });

  test('two machines that want the same queue do not meet for ever: the wait grows and is drawn', () => {
    const story = new Story();
    const waits: number[] = [];
    for (let i = 0; i < 6; i++) {
      story.begin().answer('a', 'probe', CLAIM_LEASE_RUNS, { waitMs: 1 });
      waits.push(story.machine.retryAtMs - story.nowMs);
      story.machine.reset();
    }
    assert.deepEqual(waits, [375, 625, 625, 625, 625, 625]);
  });

  test('the restart of a store that is no member ends the round, too; what is held is given back when it does not suffice', () => {
    const story = new Story().begin().probed().claimed('a', 'b');
    story.machine.onStoreRestarted('no member');
    assert.equal(story.ended, 'store restarted at no member 0');
    const held = new Story().begin(['a']);
    held.answer('a', 'probe', CLAIM_TOKEN_LOW).claimed('a');
    assert.equal(held.ended, 'held');
    held.machine.onStoreRestarted('no member');
    assert.equal(held.machine.state, ClaimState.HELD, 'what it showed was true when it was asked last');
    held.look();
    held.machine.giveUp('came back empty', 'a');
    assert.deepEqual(held.look(), ['release a 100']);
    assert.equal(held.ended, 'came back empty at a 0');
  });

  test('only the arrows of the diagram exist', () => {
    const arrows = CLAIM_STATE_NAMES.flatMap((from, i) => CLAIM_STATE_NAMES.filter((_, j) => isValidClaimTransition(i, j)).map((to) => `${from}>${to}`));
    assert.deepEqual(arrows, [
      'IDLE>PROBING', 'PROBING>CLAIMING', 'PROBING>BACKED_OFF', 'CLAIMING>CONFIRMING', 'CLAIMING>HELD', 'CLAIMING>BACKED_OFF',
      'CONFIRMING>HELD', 'CONFIRMING>BACKED_OFF', 'HELD>IDLE', 'HELD>BACKED_OFF', 'BACKED_OFF>IDLE',
    ]);
  });
});
