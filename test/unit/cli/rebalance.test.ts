/** What the command says while copies move. */
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { RebalanceAnswer } from '../../../src/admin-api/orders.js';
import { AdminClient } from '../../../src/cli/admin-client.js';
import type { Answered } from '../../../src/cli/group.js';
import { runCli } from '../../../src/cli/main.js';
import { progressLine } from '../../../src/cli/rebalance.js';
import { contextFor } from './played-context.js';
import { STORE_STATUS } from './sample-answers.js';

const MOVE = { partition: 'gw-1/0', from: 'store-a', to: 'store-c', messages: 3, bytes: 300 };

function answer(more: Partial<RebalanceAnswer>): Answered<RebalanceAnswer> {
  const client = new AdminClient('http://127.0.0.1:1', { token: undefined, ca: undefined });
  return { id: 'gw-1', client, answer: { gateway: 'gw-1', moving: [], planned: [], why: '', ...more } };
}

test('copies of all gateways are counted, and who can not begin is named with why', () => {
  assert.equal(progressLine([answer({ moving: [MOVE], planned: [MOVE, MOVE] }), answer({ moving: [MOVE] })]), '2 copies on the way, 2 to go');
  assert.equal(
    progressLine([answer({ planned: [MOVE], why: 'gw-1/3 does not have all its copies in step' }), answer({ why: 'not asked about' })]),
    '0 copies on the way, 1 to go; gw-1 waits: gw-1/3 does not have all its copies in step',
  );
});

for (const isLinked of [false, true]) test(`one that has no session ${isLinked ? 'and a link to a store is named' : 'and no link to a store has no copies: nothing is missing without it'}`, async (t) => {
  const members = [
    { id: 'gw-1', kind: 'gateway', admin: null, away: false, self: true }, { id: 'gw-2', kind: 'gateway', admin: null, away: true, self: false },
  ];
  const linked = { id: 'gw-2', incarnation: 1, active: isLinked, granted_bytes: 0, connections: [] };
  const server = http.createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    // As a store it says the same of its group.
    const isStore = request.headers.host?.startsWith('localhost') === true;
    const own = isStore ? [{ id: 'store-a', kind: 'store', admin: null, away: false, self: true }] : [...members, { id: 'store-a', kind: 'store', admin: `localhost:${String((server.address() as AddressInfo).port)}`, away: false, self: false }];
    const status = { ...STORE_STATUS, store_id: 'store-a', gateways: [linked] };
    response.end(JSON.stringify(request.url?.endsWith('/group') === true ? { members: own } : isStore ? status : { gateway: 'gw-1', moving: [], planned: [], why: '' }));
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const printed: string[] = [];
  const from = `127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  assert.equal(await runCli(['rebalance', '--from', from], contextFor(printed)), isLinked ? 3 : 0);
  const away = isLinked ? ['PARTIAL: gw-2: no session at the register, no answer: dead, or cut off; 1 store still has a link to it'] : [];
  assert.deepEqual(printed, ['gw-1: its copies are spread evenly', ...away]);
});
