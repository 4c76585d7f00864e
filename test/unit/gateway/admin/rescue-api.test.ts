/** Giving copies up over the admin HTTP: what is done is said and logged, and so is that nothing was. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { addRescue } from '../../../../src/gateway/admin/rescue-api.js';
import type { GivenUpEnded, RescueControl, WaitingCopies } from '../../../../src/gateway/admin/rescue-api.js';
import { STATUS, STORE } from '../../cli/sample-answers.js';
import { KeptLog } from './kept-log.js';
import { playedApi } from './played-api.js';

const STATUS_HERE = { ...STATUS, stores: [{ ...STORE, store: 'store-a' }, { ...STORE, store: 'store-b' }] };

const ENDED = [{ stores: ['store-old'], partition: 'gw-9/0' }, { stores: ['store-b', 'store-old'], partition: 'gw-9/1' }];

class PlayedRescue implements RescueControl {
  readonly orders: (readonly string[])[] = [];
  readonly ends: unknown[] = [];
  readonly given: unknown[] = [];
  trouble = '';

  giveUp(storeIds: readonly string[]): readonly string[] {
    this.orders.push(storeIds);
    if (storeIds.length === 0) return ['gw-1/6'];
    return storeIds.includes('store-b') && storeIds.includes('store-gone') ? ['gw-1/3', 'gw-2/0'] : [];
  }

  noteGivenUp(partitions: readonly string[], by: object): void {
    this.given.push([partitions, by]);
  }

  waiting(): readonly WaitingCopies[] {
    return [{ partition: 'gw-1/3', copies: ['store-b', 'store-gone'] }, { partition: 'gw-1/4', copies: [] }];
  }

  untoldEnds(): readonly { readonly stores: readonly string[] }[] {
    return ENDED;
  }

  giveUpEnded(storeIds: readonly string[], by: object, done: (result: GivenUpEnded) => void): void {
    if (this.trouble !== '') return done({ ended: [], why: this.trouble });
    const ended = ENDED.filter(({ stores }) => stores.every((store) => storeIds.includes(store))).map(({ partition }) => partition);
    if (ended.length > 0) this.ends.push([storeIds, by]);
    done({ ended, why: '' });
  }
}

const WHO = { reason: 'disk burnt', who: 'ann@box' };

interface Posted {
  readonly control: PlayedRescue;
  readonly log: KeptLog;
  post(payload: object): Promise<readonly [code: number, json: unknown]>;
}

function played(): Posted {
  const [control, log] = [new PlayedRescue(), new KeptLog()];
  const app = playedApi();
  addRescue(app, { control, view: { status: () => STATUS_HERE }, log });
  return {
    control, log,
    post: async (payload) => {
      const answer = await app.inject({ method: 'POST', url: '/api/v1/rescue', payload });
      return [answer.statusCode, answer.json()];
    },
  };
}

const ONE_OF = 'name the stores to be given up, or say memory: true, not both';
const WHO_AND_WHY = 'reason: say who does this, and for what reason: it is logged';
const REFUSED: readonly (readonly [posted: object, code: number, error: string])[] = [
  [{ ...WHO }, 400, 'give_up: expected a list of stores'],
  [{ give_up: 'store-b', ...WHO }, 400, 'give_up: expected a list of stores'],
  [{ give_up: ['store-b', 5], ...WHO }, 400, 'give_up[1]: expected the id of a store'],
  [{ give_up: ['store-b', ' '], ...WHO }, 400, 'give_up[1]: expected the id of a store'],
  [{ give_up: Array.from({ length: 257 }, (_, i) => `s${String(i)}`), ...WHO }, 400, 'give_up: expected 256 stores at most'],
  [{ give_up: [], ...WHO }, 400, ONE_OF],
  [{ give_up: ['store-b'], memory: true, ...WHO }, 400, ONE_OF],
  [{ give_up: [], memory: 'yes', ...WHO }, 400, 'memory: expected true or false'],
  [{ give_up: ['store-b'], who: 'ann' }, 400, WHO_AND_WHY],
  [{ give_up: ['store-b'], reason: ' ', who: 'ann' }, 400, WHO_AND_WHY],
  [{ give_up: ['store-b', 'store-9'], ...WHO }, 404, "this gateway knows no store 'store-9'; it knows store-a, store-b, store-gone, store-old; nothing was done"],
];

describe('giving copies up', () => {
  test('names the partitions that go on, and logs who did it and why', async () => {
    const { control, log, post } = played();
    assert.deepEqual(await post({ give_up: ['store-b', 'store-gone', 'store-b'], ...WHO }), [200, { partitions: ['gw-1/3', 'gw-2/0'], ended: [] }]);
    assert.deepEqual(control.orders, [['store-b', 'store-gone']]);
    assert.deepEqual(control.given, [[['gw-1/3', 'gw-2/0'], WHO]], 'status tells it with what was lost');
    assert.deepEqual(log.lines, [{
      level: 'warn', event: 'takeover', text: 'an operator gives up copies that do not come back',
      fields: { stores: ['store-b', 'store-gone'], partitions: ['gw-1/3', 'gw-2/0'], ...WHO },
    }]);
  });

  test('of the memory of a process is an order of its own', async () => {
    const { control, log, post } = played();
    assert.deepEqual(await post({ give_up: [], memory: true, ...WHO }), [200, { partitions: ['gw-1/6'], ended: [] }]);
    assert.deepEqual(control.orders, [[]]);
    assert.deepEqual(log.lines.map(({ text, fields }) => [text, fields]), [['an operator gives up what only a process had in memory', { partitions: ['gw-1/6'], ...WHO }]]);
  });

  test('that nothing waits for is refused, and not logged', async () => {
    const { log, post } = played();
    assert.deepEqual(await post({ give_up: ['store-a'], ...WHO }), [409, { error: 'no partition waits for its copies at store-a; nothing was done' }]);
    const error = 'gw-1/3 has another copy at store-gone: start that, or name it too if it never comes back; nothing was done';
    assert.deepEqual(await post({ give_up: ['store-b'], ...WHO }), [409, { error }]);
    assert.deepEqual(log.lines, []);
  });

  test('ends partitions that wait only to tell these stores so, and logs it', async () => {
    const { control, log, post } = played();
    assert.deepEqual(await post({ give_up: ['store-old'], ...WHO }), [200, { partitions: [], ended: ['gw-9/0'] }]);
    assert.deepEqual(control.ends, [[['store-old'], WHO]]);
    assert.deepEqual(log.lines.map(({ event, text, fields }) => [event, text, fields]), [[
      'orphans', 'an operator gives up stores that were to be told of partitions that have ended', { stores: ['store-old'], partitions: ['gw-9/0'], ...WHO },
    ]]);
  });

  test('says when the register does not take it: the order is to be given again', async () => {
    const { control, log, post } = played();
    control.trouble = 'store-old: the register does not answer: away';
    const error = 'store-old: the register does not answer: away; nothing was done, give the order again';
    assert.deepEqual(await post({ give_up: ['store-old'], ...WHO }), [503, { error }]);
    assert.deepEqual(log.lines, []);
  });

  for (const [posted, code, error] of REFUSED) {
    test(`is refused, and nothing is done: ${JSON.stringify(posted).slice(0, 80)}`, async () => {
      const { control, log, post } = played();
      assert.deepEqual(await post(posted), [code, { error }]);
      assert.deepEqual([control.orders, log.lines], [[], []]);
    });
  }
});
