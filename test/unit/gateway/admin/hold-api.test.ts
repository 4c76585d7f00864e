/** Holding and releasing one message over the admin HTTP: what is asked of the caller, and what the answer says. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fastify } from 'fastify';
import { formatMessageId } from '../../../../src/base/text-id.js';
import { addHolds } from '../../../../src/gateway/admin/hold-api.js';
import type { HoldControl } from '../../../../src/gateway/admin/hold-api.js';
import type { HoldsDone, HoldOutcome, HoldRequest } from '../../../../src/gateway/queue/message-holds.js';

const ID = 0x1234_5678;
const WHO = { reason: ' a look first ', who: 'ann' };
const HELD: HoldOutcome = { queue: 'q1', queueClass: 'mail', done: true, why: '', kept: true };
const NOT_HELD: HoldOutcome = { queue: 'q2', queueClass: 'mail', done: false, why: 'it is being delivered at this moment', kept: false };

class PlayedHolds implements HoldControl {
  readonly asked: (HoldRequest & { readonly verb: string })[] = [];
  outcomes: readonly HoldOutcome[] = [HELD, NOT_HELD];
  /** Called when an answer waits; the caller says when it may go. */
  onWait = (answer: () => void): void => { answer(); };

  hold(request: HoldRequest, answer: HoldsDone): void {
    this.asked.push({ verb: 'hold', ...request });
    this.onWait(() => { answer(this.outcomes); });
  }

  delete(request: HoldRequest, answer: HoldsDone): void {
    this.asked.push({ verb: 'delete', ...request });
    this.onWait(() => { answer(this.outcomes); });
  }

  release(request: HoldRequest, answer: HoldsDone): void {
    this.asked.push({ verb: 'release', ...request });
    this.onWait(() => { answer(this.outcomes); });
  }
}

function played(): { readonly holds: PlayedHolds; readonly ask: (verb: string, body?: object, id?: string) => Promise<readonly [number, unknown]> } {
  const holds = new PlayedHolds();
  const app = fastify({ logger: false });
  addHolds(app, holds);
  return {
    holds,
    ask: async (verb, body = WHO, id = formatMessageId(ID)) => {
      const answer = await app.inject({ method: 'POST', url: `/messages/${id}/${verb}`, payload: body });
      return [answer.statusCode, answer.json()];
    },
  };
}

describe('hold, release and delete over HTTP', () => {
  test('name every queue that has the message, and whether the mirrors know of what was done', async () => {
    const { holds, ask } = played();
    const queues = (kept: boolean): object[] => [
      { queue_name: 'q1', queue_class: 'mail', done: true, why: '', kept },
      { queue_name: 'q2', queue_class: 'mail', done: false, why: NOT_HELD.why, kept: false },
    ];
    assert.deepEqual(await ask('hold'), [200, { queue_id: formatMessageId(ID), queues: queues(true) }]);
    holds.outcomes = [{ ...HELD, kept: false }, NOT_HELD];
    assert.deepEqual(await ask('release'), [200, { queue_id: formatMessageId(ID), queues: queues(false) }]);
    assert.deepEqual(holds.asked, [{ verb: 'hold', messageId: ID, reason: 'a look first', who: 'ann' }, { verb: 'release', messageId: ID, reason: 'a look first', who: 'ann' }]);
  });

  test('are three orders, none taken for another', async () => {
    const { holds, ask } = played();
    for (const verb of ['delete', 'hold', 'release']) assert.equal((await ask(verb))[0], 200);
    assert.deepEqual(holds.asked.map(({ verb }) => verb), ['delete', 'hold', 'release']);
  });

  test('are not answered before that is known', async () => {
    const { holds, ask } = played();
    let answer: (() => void) | undefined;
    const waits = new Promise<void>((resolve) => {
      holds.onWait = (go) => {
        answer = go;
        resolve();
      };
    });
    let answered = false;
    const asked = ask('hold').then((result) => {
      answered = true;
      return result;
    });
    await waits;
    await new Promise((resolve) => { setImmediate(resolve); });
    assert.equal(answered, false);
    answer?.();
    assert.equal((await asked)[0], 200);
  });

  test('are refused without a queue id, a reason and a name, and nothing is done', async () => {
    const { holds, ask } = played();
    assert.equal((await ask('hold', WHO, 'no-such-id!'))[0], 400);
    for (const body of [{}, { reason: 'x' }, { who: 'ann' }, { reason: ' ', who: 'ann' }, { reason: 'x'.repeat(501), who: 'ann' }]) assert.equal((await ask('release', body))[0], 400);
    assert.deepEqual(holds.asked, []);
  });
});
