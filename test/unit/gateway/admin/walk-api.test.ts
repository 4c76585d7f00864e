/** Walks over all the mail, asked for by HTTP: what is refused, how many at once, and that nobody's walk goes on alone. */
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, test } from 'node:test';
import type { TestContext } from 'node:test';
import type { AgesAnswer, FindAnswer } from '../../../../src/admin-api/look.js';
import { addWalks } from '../../../../src/gateway/admin/walk-api.js';
import { playedApi } from './played-api.js';

const COUNTS = new Array<number>(10).fill(0);
const AGES: AgesAnswer = { gateway: 'gw-1', by: 'domain', total: COUNTS, keys: [], others: COUNTS, unread: COUNTS, looked_share: 1, incomplete: false };
const FOUND: FindAnswer = { messages: [], more: false, unread: 0, looked_share: 1, incomplete: false };

interface Played {
  readonly url: string;
  /** Steps of all walks together. */
  steps(): number;
  /** Walks end from now on. */
  end(): void;
}

async function played(t: TestContext): Promise<Played> {
  let [steps, isOver] = [0, false];
  const step = (): boolean => {
    steps += 1;
    return isOver;
  };
  const app = playedApi();
  addWalks(app, { ages: () => ({ step, answer: () => AGES }), find: () => ({ step, answer: () => FOUND }) });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  t.after(() => app.close());
  return { url: `${url}/api/v1`, steps: () => steps, end: () => { isOver = true; } };
}

function ask(url: string, path: string, body: object, signal?: AbortSignal): Promise<Response> {
  return fetch(url + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body), ...(signal === undefined ? {} : { signal }) });
}

async function until(holds: () => boolean): Promise<void> {
  const endMs = performance.now() + 10_000;
  while (!holds()) {
    assert.ok(performance.now() < endMs);
    await pause(5);
  }
}

const ALL = { everything: true };

describe('a walk', () => {
  test('is refused when its question is none, in one line', async (t) => {
    const { url, steps } = await played(t);
    for (const [path, body] of [
      ['/ages', {}], ['/ages', { by: 'age', selector: ALL }], ['/ages', { by: 'domain', selector: {} }], ['/ages', { by: 'domain', selector: { ids: ['x'] } }],
      ['/find', { selector: ALL }], ['/find', { selector: ALL, limit: 1001 }], ['/find', { selector: { ...ALL, domain: 'x' }, limit: 1 }],
    ] as const) {
      const answer = await ask(url, path, body);
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.match(((await answer.json()) as { error: string }).error, /^[^\n]+$/);
    }
    assert.equal(steps(), 0);
  });

  test('is one of two at most, and leaves its place to the next', async (t) => {
    const { url, steps, end } = await played(t);
    const both = [ask(url, '/ages', { by: 'domain', selector: ALL }), ask(url, '/find', { selector: ALL, limit: 5 })];
    await until(() => steps() > 4);
    const third = await ask(url, '/ages', { by: 'queue', selector: ALL });
    assert.equal(third.status, 503);
    end();
    assert.deepEqual(await Promise.all(both.map(async (one) => (await one).json())), [AGES, FOUND]);
    assert.equal((await ask(url, '/ages', { by: 'queue', selector: ALL })).status, 200);
  });

  test('ends when whoever asked has left', async (t) => {
    const { url, steps } = await played(t);
    const gone = new AbortController();
    const asked = ask(url, '/ages', { by: 'domain', selector: ALL }, gone.signal).catch(() => undefined);
    await until(() => steps() > 2);
    gone.abort();
    await asked;
    const endMs = performance.now() + 10_000;
    for (let seen = -1; seen !== steps();) {
      assert.ok(performance.now() < endMs, 'it goes on');
      seen = steps();
      await pause(200);
    }
  });
});
