/** How far the retirement of a gateway is, from what all gateways of the group say, and the exit code of that. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import yargs from 'yargs';
import type { RetireAnswer } from '../../../src/admin-api/orders.js';
import { AdminClient } from '../../../src/cli/admin-client.js';
import { codeOf, gatewayRetireCommand, progressOf, retireLines } from '../../../src/cli/gateway-retire.js';
import type { Answered } from '../../../src/cli/group.js';
import { contextFor } from './played-context.js';

const LIVING = ['gw-1', 'gw-2', 'gw-3'];

function answer(id: string, more: Partial<RetireAnswer> = {}): Answered<RetireAnswer> {
  const client = new AdminClient('http://127.0.0.1:1', { token: undefined, ca: undefined });
  return {
    id, client, answer: { told_by: id, gateway: 'gw-1', retired: true, partitions: 0, messages: 0, kept: 0, kept_for: [], living: LIVING, ...more },
  };
}

describe('the retirement of a gateway', () => {
  test('is done when all who live know of it and nothing is left of it', () => {
    const progress = progressOf(LIVING.map((id) => answer(id)), false);
    assert.deepEqual([progress, codeOf(progress, false)], [{ partitions: 0, kept: 0, keptFor: [], messages: 0, unaware: [], awaited: [] }, 0]);
  });

  test('is not done while one that answers still sees partitions, whoever has their mail', () => {
    const answers = [answer('gw-1', { partitions: 2, messages: 3 }), answer('gw-2', { partitions: 4, messages: 5 }), answer('gw-3')];
    const progress = progressOf(answers, false);
    assert.deepEqual([progress, codeOf(progress, false)], [{ partitions: 4, kept: 0, keptFor: [], messages: 8, unaware: [], awaited: [] }, 1]);
  });

  test('is done, and says so, when only empty partitions are left for copies that were given up', () => {
    const answers = [answer('gw-1', { partitions: 3 }), answer('gw-2', { partitions: 3, kept: 2, kept_for: ['s2', 's1'] })];
    const open = progressOf([...answers, answer('gw-3', { partitions: 3, messages: 7 })], false);
    assert.equal(codeOf(open, false), 1, 'the third one has mail');
    assert.match(retireLines('gw-1', open, false).join(), /^gw-1 is retired, and 1 partition of it is left, with 7 messages /);
    const done = progressOf([...answers, answer('gw-3', { partitions: 3, kept: 1, kept_for: ['s1'] })], false);
    assert.equal(codeOf(done, false), 0);
    assert.deepEqual(retireLines('gw-1', done, false), [
      'gw-1 is retired, and no mail of it is left; it does not start any more. For copies that were given up at s1, s2, 3 empty partitions stay in the register: should such a copy come back, its mail is delivered; nobody waits for it',
    ]);
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

  test('is seen by those who reach the register: who is cut off names the dead of later, and what was left then', () => {
    const [there, cut] = [{ living: ['gw-1'] }, { retired: false, partitions: 16, kept: 3, register_away: 'etcd-1: no answer' }];
    const progress = progressOf([answer('gw-1', there), answer('gw-2', cut)], false);
    assert.deepEqual([progress.unaware, progress.awaited, progress.partitions, progress.kept], [['gw-2'], [], 0, 0]);
    const also = progressOf([answer('gw-1', { ...there, partitions: 2 }), answer('gw-2', { ...cut, retired: true }), answer('gw-4', { ...there, retired: false })], false);
    assert.deepEqual([also.unaware, also.partitions], [[], 2]);
    assert.deepEqual(progressOf([answer('gw-2', cut)], false).unaware, LIVING, 'nobody sees more');
  });

  test('is told at once, with 3, when only one that is cut off from the register does not know of it', async () => {
    const members: object[] = [];
    const servers = ['gw-1', 'gw-2'].map((id, index) => createServer((request, response) => {
      const more = index === 0 ? { living: ['gw-1'] } : { retired: false, partitions: 4, register_away: 'etcd-1: no answer' };
      response.end(JSON.stringify(request.url === '/api/v1/group' ? { members: members.map((one, at) => ({ ...one, self: at === index })) }
        : answer(id, { ...more, gateway: 'gw-3' }).answer));
    }));
    for (const server of servers) await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
    const admins = servers.map((server) => `127.0.0.1:${String((server.address() as AddressInfo).port)}`);
    admins.forEach((admin, index) => members.push({ id: `gw-${String(index + 1)}`, kind: 'gateway', admin, away: index === 1 }));
    const printed: string[] = [];
    let code = -1;
    const beganMs = performance.now();
    await gatewayRetireCommand(yargs(), contextFor(printed), (given) => { code = given; })
      .parseAsync(['retire', 'gw-3', '--reason', 'r', '--timeout', '5s', '--from', admins[0] ?? '']);
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
    assert.ok(performance.now() - beganMs < 4_000);
    assert.equal(code, 3);
    assert.match(printed.at(-1) ?? '', /^NOT KNOWN YET to gw-2, which lives: /);
  });

  test('is ordered of nobody who answers as another, though nobody else takes the order', async () => {
    const ordered: string[] = [];
    const members: object[] = [];
    const servers = ['gw-1', 'gw-9'].map((id) => createServer((request, response) => {
      const isOrder = request.method === 'POST';
      if (isOrder) ordered.push(id);
      response.writeHead(isOrder && id === 'gw-1' ? 503 : 200);
      response.end(JSON.stringify(isOrder && id === 'gw-1' ? { error: 'the register does not answer' }
        : request.url === '/api/v1/group' ? { members: [...members, { id, kind: 'gateway', admin: null, self: true, away: false }] } : answer(id).answer));
    }));
    for (const server of servers) await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
    const [from = '', admin = ''] = servers.map((server) => `127.0.0.1:${String((server.address() as AddressInfo).port)}`);
    members.push({ id: 'gw-2', kind: 'gateway', admin, self: false, away: false });
    const asked = gatewayRetireCommand(yargs(), contextFor([]), () => undefined).fail((_text, error) => { throw error; })
      .parseAsync(['retire', 'gw-3', '--reason', 'r', '--timeout', '1s', '--from', from]);
    const failure = await Promise.resolve(asked).then(() => '', String);
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
    assert.match(failure, /it refused: the register does not answer/);
    assert.deepEqual(ordered, ['gw-1']);
  });

  test('can not be told when nobody answers', () => {
    assert.throws(() => progressOf([], false), /nobody answers any more/);
  });
});
