/** What `twinpost store drain` makes of a gateway's answer. */
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import yargs from 'yargs';
import type { DrainAnswer } from '../../../src/admin-api/orders.js';
import { drainLines, hasFailed, storeDrainCommand } from '../../../src/cli/store-drain.js';
import { contextFor } from './played-context.js';

const DONE: DrainAnswer = { store: 'store-b', draining: true, mirrors: 0, stuck: 0, copies_missing: 0, kept: true };

function linesOf(answer: Partial<DrainAnswer>): string[] {
  return drainLines('gw-1', 'store-b', { ...DONE, ...answer });
}

test('says how far the drain is, what is stuck, and what lacks a copy', () => {
  assert.deepEqual(linesOf({}), ['gw-1: nothing is left at store-b']);
  assert.deepEqual(linesOf({ mirrors: 3 }), ['gw-1: 3 mirrors are still at store-b']);
  assert.deepEqual(linesOf({ mirrors: 1, copies_missing: 1 }), ['gw-1: 1 mirror is still at store-b', 'gw-1: 1 partition has fewer copies than configured']);
  const away = { mirrors: 3, register_away: 'no etcd answers' };
  assert.deepEqual(linesOf(away), ['gw-1: 3 mirrors are still at store-b', 'gw-1: the register is away: nothing moves until it answers']);
  assert.deepEqual(linesOf({ ...away, mirrors: 0 }), ['gw-1: nothing is left at store-b']);
  assert.match(linesOf({ mirrors: 3, stuck: 2 })[1] ?? '', /^gw-1: 2 of them CAN'T LEAVE: /);
  assert.match(linesOf({ copies_missing: 4 })[1] ?? '', /^gw-1: CAN'T LEAVE as it should: 4 partitions have fewer copies than configured, and no other store can take them; /);
  assert.deepEqual(linesOf({ draining: false }), ['gw-1: store-b is used']);
});

test('fails when something can not leave or is not kept, and not for what was stuck at a store that is used again', () => {
  const of = (answer: Partial<DrainAnswer>): boolean => hasFailed({ ...DONE, ...answer });
  assert.deepEqual([of({}), of({ mirrors: 3 }), of({ mirrors: 3, copies_missing: 4 }), of({ draining: false, mirrors: 3, stuck: 3 }), of({ draining: false, copies_missing: 4 })], [false, false, false, false, false]);
  assert.equal(of({ copies_missing: 4 }), true, 'all has left, but not all is elsewhere');
  assert.deepEqual([of({ mirrors: 3, stuck: 1 }), of({ kept: false }), of({ draining: false, kept: false })], [true, true, true]);
});

test('says of an order that is not on disk that a restart forgets it, and nothing that sounds as if it were done', () => {
  const line = 'gw-1: the order is in force, but not on disk: a restart of the gateway forgets it; see that its state_dir is set and can be written, and ask again';
  assert.deepEqual(linesOf({ kept: false }), [line]);
  assert.deepEqual(linesOf({ draining: false, kept: false }), [line]);
  const stuck = linesOf({ mirrors: 2, stuck: 2, kept: false });
  assert.equal(stuck[0], line);
  assert.match(stuck[1] ?? '', /CAN'T LEAVE/);
});

/** What the verb says and its exit code, when gw-1 answers `answer` and knows `others`, where nobody listens. */
async function run(answer: Partial<DrainAnswer>, others: readonly string[], ...more: readonly string[]): Promise<readonly [code: number, said: string[]]> {
  const server = http.createServer((request, response) => {
    const members = [
      { id: 'gw-1', kind: 'gateway', admin: null, away: false, self: true },
      ...others.map((id) => ({ id, kind: 'gateway', admin: '127.0.0.1:1', away: false, self: false })),
    ];
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(request.url === '/api/v1/group' ? { members } : { ...DONE, ...answer }));
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const from = `127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  const said: string[] = [];
  let code = -1;
  const cli = storeDrainCommand(yargs([]), contextFor(said), (given) => { code = given; });
  await cli.parseAsync(['drain', 'store-b', '--wait', '--reason', 'test', '--from', from, ...more]);
  server.closeAllConnections();
  server.close();
  return [code, said];
}

test('exits with 3 and names who did not answer: nobody may take the store for empty', async () => {
  assert.deepEqual(await run({}, []), [0, ['gw-1: nothing is left at store-b']]);
  assert.deepEqual(await run({}, ['gw-2']), [3, [
    'gw-1: nothing is left at store-b',
    'PARTIAL: gw-2: no answer from 127.0.0.1:1: connection refused',
    '! twinpost: gw-2 did not answer and may still have mirrors at store-b: ask again before you rely on it',
  ]]);
  const [code] = await run({ mirrors: 2, stuck: 2 }, ['gw-2']);
  assert.equal(code, 1, 'what can not leave is more than what is not known');
});

test('waits no longer than --timeout, and says that it is not done', async () => {
  assert.deepEqual(await run({ mirrors: 2 }, [], '--timeout', '1ms'), [1, [
    'gw-1: 2 mirrors are still at store-b',
    '! twinpost: not done in 1ms: it goes on, and the same command waits again',
  ]]);
  assert.deepEqual(await run({ mirrors: 2 }, [], '--no-wait'), [0, ['gw-1: 2 mirrors are still at store-b']]);
});

test('exits with 1 when fewer copies than configured are left, and with 0 when that is meant', async () => {
  const [code, said] = await run({ copies_missing: 16 }, []);
  assert.deepEqual([code, said.length, said[0]], [1, 2, 'gw-1: nothing is left at store-b']);
  assert.match(said[1] ?? '', /CAN'T LEAVE as it should: 16 partitions .*--force/);
  assert.equal((await run({ copies_missing: 16 }, [], '--force'))[0], 0);
  assert.equal((await run({ mirrors: 2, stuck: 2 }, [], '--force'))[0], 1, 'what is needed is still there');
});

test('answers a program in one object a line, without progress', async () => {
  const { store, ...rest } = DONE;
  assert.deepEqual(await run({ mirrors: 2, stuck: 2 }, ['gw-2'], '--json'), [1, [
    JSON.stringify({ gateway: 'gw-1', store, ...rest, mirrors: 2, stuck: 2 }),
    '{"partial":true,"member":"gw-2","kind":"gateway","address":"127.0.0.1:1","error":"connection refused","how":"silent"}',
    '! twinpost: gw-2 did not answer and may still have mirrors at store-b: ask again before you rely on it',
  ]]);
});

test('takes a gateway that knows no such store for one that has nothing there', async (t) => {
  const members: object[] = [];
  const servers = ['gw-1', 'gw-2'].map((id) => http.createServer((request, response) => {
    const isGroup = request.url === '/api/v1/group';
    const isKnown = id === 'gw-2' && request.url?.includes('store-b') === true;
    response.writeHead(isGroup || isKnown ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isGroup ? { members: members.map((one) => ({ ...one, self: (one as { id: string }).id === id })) } : isKnown ? DONE : { error: 'no such store' }));
  }));
  for (const server of servers) await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const admins = servers.map((server) => `127.0.0.1:${String((server.address() as AddressInfo).port)}`);
  admins.forEach((admin, index) => members.push({ id: `gw-${String(index + 1)}`, kind: 'gateway', admin, away: false }));
  t.after(() => {
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
  });
  const said: string[] = [];
  let code = -1;
  const drain = async (store: string): Promise<void> => {
    await storeDrainCommand(yargs([]), contextFor(said), (given) => { code = given; }).fail((_text, error) => { throw error; })
      .parseAsync(['drain', store, '--wait', '--reason', 'test', '--from', admins[0] ?? '']);
  };
  await drain('store-b');
  assert.deepEqual([code, said], [0, ['gw-2: nothing is left at store-b']]);
  await assert.rejects(drain('stoer-b'), /nothing was moved: this group knows no store 'stoer-b'/);
  members.push({ id: 'gw-3', kind: 'gateway', admin: '127.0.0.1:1', away: false });
  await assert.rejects(drain('stoer-b'), /nothing was moved: no gateway that answers \(gw-1, gw-2\) knows a store 'stoer-b'; twinpost status lists them; gw-3: no answer/);
});
