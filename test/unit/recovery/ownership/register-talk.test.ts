/** When the register is asked again, and which answers are news: src/recovery/ownership/register-talk.ts. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Question, RegisterTalk } from '../../../../src/recovery/ownership/register-talk.js';

const TIMEOUT_MS = 3000;
const RETRY_MS = 500;

const talk = (): RegisterTalk => new RegisterTalk(TIMEOUT_MS, RETRY_MS);

describe('the talk with the register', () => {
  test('one question at a time; its answer is taken once', () => {
    const asked = talk();
    const ticket = asked.ask(Question.READ, 0);
    assert.equal(asked.mayAsk(0), false);
    assert.equal(asked.answered(ticket), Question.READ);
    assert.equal(asked.answered(ticket), Question.NONE);
    assert.equal(asked.mayAsk(0), true);
  });

  test('an answer under an older ticket leaves the younger question open', () => {
    const asked = talk();
    const older = asked.ask(Question.READ, 0);
    asked.expire(TIMEOUT_MS);
    const younger = asked.ask(Question.CHANGE, TIMEOUT_MS + RETRY_MS);
    assert.equal(asked.answered(older), Question.NONE);
    assert.equal(asked.question, Question.CHANGE);
    assert.equal(asked.answered(younger), Question.CHANGE);
  });

  test('after a pause it is asked when its time has come, or at once when there is reason to hurry', () => {
    const asked = talk();
    asked.pause(1000);
    assert.equal(asked.mayAsk(1000 + RETRY_MS - 1), false);
    assert.equal(asked.mayAsk(1000 + RETRY_MS), true);
    assert.equal(asked.mayAsk(1000), false);
    asked.hurry();
    assert.equal(asked.mayAsk(1000), true);
  });

  test('what waits too long is over once, and not asked again at once', () => {
    const asked = talk();
    asked.ask(Question.TIE, 1000);
    assert.equal(asked.expire(1000 + TIMEOUT_MS - 1), Question.NONE);
    assert.equal(asked.expire(1000 + TIMEOUT_MS), Question.TIE);
    assert.equal(asked.expire(1000 + TIMEOUT_MS), Question.NONE);
    assert.equal(asked.mayAsk(1000 + TIMEOUT_MS), false);
    assert.equal(asked.mayAsk(1000 + TIMEOUT_MS + RETRY_MS), true);
  });

  test('only an answer ends the silence, and it counts from the first question without one', () => {
    const asked = talk();
    assert.equal(asked.isSilent(TIMEOUT_MS), false);
    const first = asked.ask(Question.READ, 0);
    assert.equal(asked.over(first), Question.READ);
    const second = asked.ask(Question.READ, RETRY_MS);
    assert.equal(asked.isSilent(TIMEOUT_MS - 1), false);
    assert.equal(asked.isSilent(TIMEOUT_MS), true);
    asked.answered(second);
    assert.equal(asked.isSilent(TIMEOUT_MS), false);
  });

  test('that it answers is not enough: who makes no change for so long is away, too', () => {
    const asked = talk();
    for (let nowMs = 0; nowMs <= TIMEOUT_MS; nowMs += RETRY_MS) {
      assert.equal(asked.isSilent(nowMs), nowMs >= TIMEOUT_MS, `after ${String(nowMs)} ms`);
      asked.over(asked.ask(Question.CHANGE, nowMs));
      asked.answered(asked.ask(Question.READ, nowMs));
    }
    asked.dropped();
    assert.equal(asked.isSilent(TIMEOUT_MS), false, 'the change is wanted no more');
    asked.over(asked.ask(Question.CHANGE, TIMEOUT_MS));
    asked.answered(asked.ask(Question.CHANGE, TIMEOUT_MS + RETRY_MS));
    assert.equal(asked.isSilent(3 * TIMEOUT_MS), false, 'it makes changes again');
  });

  test('what was asked before we learned something is no news', () => {
    const asked = talk();
    const before = asked.ask(Question.READ, 0);
    asked.learned();
    assert.equal(asked.wasAskedSince(before), false);
    asked.answered(before);
    assert.equal(asked.wasAskedSince(asked.ask(Question.READ, 0)), true);
  });

  test('it is there for a while after a question that it answered in time was asked', () => {
    const asked = talk();
    assert.equal(asked.hasJustAnswered(0), false);
    asked.answered(asked.ask(Question.READ, 1000));
    assert.equal(asked.hasJustAnswered(3999), true);
    assert.equal(asked.hasJustAnswered(4000), false);
    const late = asked.ask(Question.READ, 5000);
    asked.expire(5000 + TIMEOUT_MS);
    asked.answered(late);
    assert.equal(asked.hasJustAnswered(5001), false);
  });
});
