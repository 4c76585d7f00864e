/** Retiring a gateway over the admin HTTP: who may be retired by which name, and what the answer says. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { addRetire } from '../../../../src/gateway/admin/retire-api.js';
import { Retirements } from '../../../../src/gateway/admin/retirements.js';
import { Prng } from '../../../../src/base/prng.js';
import { Scheduler } from '../../../scenario/scheduler.js';
import { WorldRegister } from '../../../scenario/world-register.js';
import { KeptLog } from './kept-log.js';
import { playedApi } from './played-api.js';

const WHO = { reason: 'host given back', who: 'ann@box' };

interface Played {
  readonly log: KeptLog;
  ask(method: 'GET' | 'POST', id: string, payload?: object): Promise<readonly [code: number, json: Record<string, unknown>]>;
}

/** gw-1 answers; gw-2 and the workers of gw-3 live. */
function played(isAlone = false): Played {
  const [scheduler, log] = [new Scheduler(), new KeptLog()];
  const register = new WorldRegister(scheduler, new Prng(7), log);
  const run = (ms: number): void => { scheduler.runUntil(scheduler.nowMs + ms); };
  const own = register.start({ gatewayId: 'gw-1', incarnation: 1 });
  for (const gatewayId of ['gw-2', 'gw-3-1', 'gw-3-2']) register.start({ gatewayId, incarnation: 1 });
  run(1000);
  log.lines.length = 0;
  const app = playedApi();
  const clock = { nowMs: () => 0, wallMs: () => 1000 };
  addRetire(app, new Retirements({ isAlone }, { clock, log, register: own.bridge, partitions: () => [], keptFor: () => ({ count: 1, stores: ['store-a'] }) }));
  return {
    log,
    ask: async (method, id, payload) => {
      let answer: readonly [number, Record<string, unknown>] | undefined;
      const asked = app.inject({ method, url: `/api/v1/gateways/${id}/retire`, ...(payload === undefined ? {} : { payload }) });
      void asked.then((told) => { answer = [told.statusCode, told.json()]; });
      while (answer === undefined) {
        await new Promise((resolve) => { setImmediate(resolve); });
        run(10);
      }
      return answer;
    },
  };
}

describe('retiring a gateway', () => {
  test('is in the register when it is answered, and logged with who and why; so is its undo', async () => {
    const { log, ask } = played();
    const living = ['gw-1', 'gw-2', 'gw-3-1', 'gw-3-2'];
    assert.equal((await ask('POST', 'gw-2', WHO))[0], 200);
    const [, { living: told, ...state }] = await ask('GET', 'gw-2');
    assert.deepEqual(state, { told_by: 'gw-1', gateway: 'gw-2', retired: true, partitions: 0, messages: 0, kept: 1, kept_for: ['store-a'], register_away: '' });
    assert.deepEqual([...(told as string[])].sort(), living);
    assert.equal((await ask('POST', 'gw-2', { undo: true, ...WHO }))[0], 200);
    assert.equal((await ask('GET', 'gw-2'))[1]['retired'], false);
    assert.deepEqual(log.lines.map(({ text }) => text), ['an operator retires a gateway', 'an operator takes the retirement of a gateway back']);
  });

  test('refuses names that nobody has, and says which there are', async () => {
    const { ask } = played();
    assert.deepEqual(await ask('POST', 'gw-9', WHO), [404, { error: "the register knows no gateway 'gw-9'; it knows gw-1, gw-2, gw-3-1, gw-3-2; nothing was done" }]);
    assert.deepEqual(await ask('POST', 'gw-3', WHO), [404, { error: 'gw-3 has workers: retire each of gw-3-1, gw-3-2; nothing was done' }]);
    assert.deepEqual(await ask('POST', '-x', WHO), [404, { error: "'-x' is no id of a gateway; nothing was done" }]);
    assert.equal((await ask('POST', 'gw-2', { reason: ' ', who: 'ann' }))[0], 400);
  });

  test('is refused where nobody could deliver for it, or take it back', async () => {
    assert.match(String((await played(true).ask('POST', 'gw-1', WHO))[1]['error']), /^with register: file there is no other gateway/);
  });
});
