/** What `twinpost explain` says of limits that gateways told. */
import assert from 'node:assert/strict';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { limitLines } from '../../../src/cli/explained-limits.js';
import { runCli } from '../../../src/cli/main.js';
import { contextFor } from './played-context.js';

test('a limit of a queue that a gateway has twice, as of a partition that it took over, is told once', () => {
  const down = { gateway: 'gw-1', limit: 'next hop', binds: true, text: 'mx:25 refuses' };
  const limits = [down, { ...down, gateway: 'gw-2' }, down, { ...down, binds: false, text: '3 of 50' }];
  assert.deepEqual(limitLines(limits), [
    'BINDS     gw-1  next hop: mx:25 refuses', 'BINDS     gw-2  next hop: mx:25 refuses', 'limit     gw-1  next hop: 3 of 50',
  ]);
});

test('ends with 3 when a gateway of the group could not be asked for them', async (t) => {
  const others: object[] = [];
  const way = {
    recipient: 'x.example', address: 'x.example', is: 'a queue', stands_for: '', queue: 'q', next_hop: 'smtp://mx:25',
    hosts: [], tls: 'none', sources: [], mta_sts: '', why: '', status: '2.0.0',
  };
  const told = { to: way, ways: [way], left_out: 0, retries: { first_ms: 1, max_ms: 1, lifetime_ms: 1 } };
  const server = http.createServer((request, response) => {
    request.resume();
    const { pathname } = new URL(request.url ?? '', 'http://localhost');
    const self = { id: 'gw-1', kind: 'gateway', admin: null, away: false, self: true };
    if (pathname.endsWith('/group')) response.end(JSON.stringify({ members: [self, ...others] }));
    else response.end(JSON.stringify(pathname.endsWith('/explain') ? told : { queue: 'q', messages: 0, limits: [] }));
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const said: string[] = [];
  const at = `127.0.0.1:${String((server.address() as AddressInfo).port)}`;
  const explain = (): Promise<number> => runCli(['explain', 'x.example', '--gateway', at], contextFor(said));
  assert.equal(await explain(), 0, said.join('\n'));
  others.push({ id: 'gw-2', kind: 'gateway', admin: '127.0.0.1:1', away: false, self: false });
  assert.equal(await explain(), 3, said.join('\n'));
  assert.match(said.join('\n'), /^limits {4}not told: gw-2: no answer from 127\.0\.0\.1:1: /m);
});
