/** `twinpost queue orders --cancel`, src/cli/queue-orders.ts: its exit code says who has heard of it. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import yargs from 'yargs';
import type { QueueOrderAnswer } from '../../../src/admin-api/queue-orders.js';
import { NOT_ALL_KNOW } from '../../../src/cli/group.js';
import { queueOrdersCommand } from '../../../src/cli/queue-orders.js';
import { contextFor } from './played-context.js';

/** One gateway that knows the order or not, beside one that is down or none. */
async function cancelled(isKnown: boolean, isAlone: boolean, orders: readonly QueueOrderAnswer[] = [], left: readonly object[] = [], isOver = false, register: { order?: QueueOrderAnswer; away?: string } = {}): Promise<{ code: number; printed: string[] }> {
  const server = createServer((request, response) => {
    const { url = '' } = request;
    const own = { id: 'gw-1', kind: 'gateway', admin: request.headers.host ?? null, self: true, away: false };
    const other = { ...own, id: 'gw-2', admin: null, self: false, away: true };
    const answers: Record<string, object> = {
      '/api/v1/group': { members: isAlone ? [own] : [own, other] },
      '/api/v1/orders': { orders, left },
      ...(isKnown ? { '/api/v1/orders/gw-1-1-1/withdraw': { order: 'gw-1-1-1' } } : {}),
      ...(register.order === undefined ? {} : { '/api/v1/orders/gw-1-1-1/cancel': register.order }),
    };
    const answer = answers[url];
    const isAway = register.away !== undefined && url.endsWith('/withdraw');
    const code = isAway ? 503 : isOver && url.endsWith('/cancel') ? 409 : 404;
    response.writeHead(answer === undefined ? code : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer ?? { error: isAway ? register.away : 'no such order' }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const from = `127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  const printed: string[] = [];
  let code = -1;
  await queueOrdersCommand(yargs(), contextFor(printed), (given) => { code = given; })
    .parseAsync(['orders', '--cancel', 'gw-1-1-1', '--from', from]);
  server.closeAllConnections();
  server.close();
  return { code, printed };
}

test('a cancel exits with 3 while somebody has not heard of it, with 1 where nobody knows the order', async () => {
  assert.equal((await cancelled(true, true)).code, 0);
  assert.equal((await cancelled(true, false)).code, NOT_ALL_KNOW);
  const unknown = await cancelled(false, true);
  assert.deepEqual([unknown.code, unknown.printed[0]], [1, '! twinpost: no order gw-1-1-1 is known']);
  const perhaps = await cancelled(false, false);
  assert.deepEqual([perhaps.code, perhaps.printed[0]], [NOT_ALL_KNOW, '! twinpost: no order gw-1-1-1 is known at those who answered']);
});

test('a cancel at gateways counts while the register is away, and that it may be left there is said', async () => {
  const away = 'the register, which is to keep it, does not answer: no etcd';
  const order: QueueOrderAnswer = {
    order: 'gw-1-1-1', gateway: 'gw-1', verb: 'delete', phase: 'cancelled', dry_run: false, reason: 'r', who: 'ann', given: 1, looked_share: 1, matched: 3, matched_recipients: 3,
    matched_bytes: 0, done: 0, gone_before: 0, waiting: 0, waits_for: '', not_done: 0, moved: 0, unread: 0, incomplete: false, grace_left_seconds: 0, partitions: [], kept: true, unregistered: '', met: [], refused: [],
  };
  const { code, printed } = await cancelled(false, true, [order], [], false, { order, away });
  assert.deepEqual([code, printed[0]], [NOT_ALL_KNOW, `! twinpost: gw-1-1-1 is cancelled at gw-1; whether it is left in the register can't be told: ${away}`]);
  assert.match(printed[1] ?? '', /^gw-1-1-1 at gw-1, .*: cancelled, 0 of 3  ann: r$/);
  assert.equal(printed.length, 2, 'nobody is missing');
  const unknown = await cancelled(false, true, [], [], false, { away });
  assert.deepEqual([unknown.code, unknown.printed[0]], [NOT_ALL_KNOW, `! twinpost: no order gw-1-1-1 is known; whether it is left in the register can't be told: ${away}`]);
});

test('a cancel of an order that is over says so, and what it was done to', async () => {
  const order: QueueOrderAnswer = {
    order: 'gw-1-1-1', gateway: 'gw-1', verb: 'delete', phase: 'done', dry_run: false, reason: 'r', who: 'ann', given: 1, looked_share: 1, matched: 6500, matched_recipients: 6500,
    matched_bytes: 0, done: 6500, gone_before: 0, waiting: 0, waits_for: '', not_done: 0, moved: 0, unread: 0, incomplete: false, grace_left_seconds: 0, partitions: [], kept: true, unregistered: '', met: [], refused: [],
  };
  const { code, printed } = await cancelled(false, true, [order, { ...order, order: 'gw-1-1-2' }], [], true);
  assert.deepEqual([code, printed[0]], [1, '! twinpost: order gw-1-1-1 is over: done, 6,500 of 6,500']);
});

test('an order that meant no message says so, and not that somebody took it back', async () => {
  const order: QueueOrderAnswer = {
    order: 'gw-1-1-2', gateway: 'gw-1', verb: 'flush', phase: 'cancelled', dry_run: false, reason: 'r', who: 'ann', given: 1, looked_share: 1, matched: 0, matched_recipients: 0,
    matched_bytes: 0, done: 0, gone_before: 0, waiting: 0, waits_for: '', not_done: 0, moved: 0, unread: 0, incomplete: false, grace_left_seconds: 0, partitions: [], kept: true, unregistered: '', met: [], refused: [],
  };
  const { printed } = await cancelled(true, true, [order, { ...order, order: 'gw-1-1-3', looked_share: 0.5 }, { ...order, order: 'gw-1-1-4', matched: 3 }]);
  const rebind = await cancelled(true, true, [{ ...order, verb: 'rebind', selector: { site: 'mx1.*' }, route: 'smarthost', phase: 'acting', matched: 3 }]);
  assert.match(rebind.printed[0] ?? '', /  rebind --site mx1\.\* by route smarthost: acting, 0 of 3  ann: r$/);
  assert.deepEqual(printed.map((line) => /flush: (.*), 0 of/.exec(line)?.[1]), ['no message was meant', 'cancelled', 'cancelled']);
});

test('an order that was left in the register is told with what it was done to, over or not', async () => {
  const left = { order: 'gw-1-1-1', verb: 'delete', selector: { sender: '*@x.example' }, reason: 'r', who: 'ann', given: 1, until: 9, holders: [], done: 1504 };
  const { printed } = await cancelled(true, true, [], [{ ...left, partitions: [] }, { ...left, order: 'gw-1-1-2', partitions: ['gw-2/1', 'gw-2/2'] }]);
  assert.match(printed[0] ?? '', /^gw-1-1-1 was in the register, .*  delete --sender \*@x\.example: over, 1,504 done  ann: r$/);
  assert.match(printed[1] ?? '', /^gw-1-1-2 in the register, .*: waiting for 2 partitions, 1,504 done  ann: r$/);
});

test('a cancel is told to nobody who answers as another', async () => {
  const ordered: string[] = [];
  const members: object[] = [];
  const servers = ['gw-1', 'gw-9'].map((id) => createServer((request, response) => {
    if (request.method === 'POST') ordered.push(id);
    response.writeHead(request.url?.endsWith('/cancel') === true ? 404 : 200);
    response.end(JSON.stringify(request.url === '/api/v1/group' ? { members: [...members, { id, kind: 'gateway', admin: null, self: true, away: false }] }
      : request.method === 'POST' ? { order: 'gw-1-1-1', error: 'no such order' } : { orders: [], left: [] }));
  }));
  for (const server of servers) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const [from = '', admin = ''] = servers.map((server) => `127.0.0.1:${String((server.address() as AddressInfo).port)}`);
  members.push({ id: 'gw-2', kind: 'gateway', admin, self: false, away: false });
  let code = -1;
  await queueOrdersCommand(yargs(), contextFor([]), (given) => { code = given; }).parseAsync(['orders', '--cancel', 'gw-1-1-1', '--from', from]);
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  assert.deepEqual([code, new Set(ordered)], [NOT_ALL_KNOW, new Set(['gw-1'])]);
});
