/** How far the retirement of a gateway is, from what all gateways of the group say, and the exit code of that. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { RetireAnswer } from '../../../src/admin-api/orders.js';
import { AdminClient } from '../../../src/cli/admin-client.js';
import { codeOf, progressOf, retireLines } from '../../../src/cli/gateway-retire.js';
import type { Answered } from '../../../src/cli/group.js';

const LIVING = ['gw-1', 'gw-2', 'gw-3'];

function answer(id: string, more: Partial<RetireAnswer> = {}): Answered<RetireAnswer> {
  const client = new AdminClient('http://127.0.0.1:1', undefined);
  return {
    id, client, answer: { told_by: id, gateway: 'gw-1', retired: true, partitions: 0, messages: 0, living: LIVING, ...more },
  };
}

describe('the retirement of a gateway', () => {
  test('is done when all who live know of it and nothing is left of it', () => {
    const progress = progressOf(LIVING.map((id) => answer(id)), false);
    assert.deepEqual([progress, codeOf(progress, false)], [{ partitions: 0, messages: 0, unaware: [] }, 0]);
  });

  test('is not done while one that answers still sees partitions, whoever has their mail', () => {
    const answers = [answer('gw-1', { partitions: 2, messages: 3 }), answer('gw-2', { partitions: 4, messages: 5 }), answer('gw-3')];
    const progress = progressOf(answers, false);
    assert.deepEqual([progress, codeOf(progress, false)], [{ partitions: 4, messages: 8, unaware: [] }, 1]);
  });

  test('names who lives and does not know of it, or did not answer: exit code 3', () => {
    const progress = progressOf([answer('gw-1'), answer('gw-2', { retired: false })], false);
    assert.deepEqual([progress.unaware, codeOf(progress, false)], [['gw-2', 'gw-3'], 3]);
    assert.match(retireLines('gw-1', progress, false).at(-1) ?? '', /^NOT KNOWN YET to gw-2, gw-3, which live: /);
  });

  test('is taken back when nobody holds it for retired any more', () => {
    const answers = LIVING.map((id) => answer(id, { retired: false, partitions: 16 }));
    const progress = progressOf(answers, true);
    assert.deepEqual([progress.unaware, codeOf(progress, true)], [[], 0]);
    assert.equal(codeOf(progressOf([...answers.slice(0, 2), answer('gw-3')], true), true), 3);
  });

  test('can not be told when nobody answers', () => {
    assert.throws(() => progressOf([], false), /nobody answers any more/);
  });
});
