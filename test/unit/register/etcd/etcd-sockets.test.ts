/** An endpoint of etcd by name: who takes the knock is who is spoken to, and the name is looked up once. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { KeptLookups } from '../../../../src/platform/node/kept-lookup.js';
import { EtcdSockets } from '../../../../src/register/etcd/etcd-sockets.js';

test('an endpoint by name is spoken to at the address that took the knock, whatever the resolvers say next', async (t) => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => { server.close(); });
  const { port } = server.address() as AddressInfo;
  const said = [
    { addresses: ['127.0.0.1'], why: '', isFailed: false },
    { addresses: [], why: 'no answer on its address: EAI_AGAIN', isFailed: true },
  ];
  const { lookup } = new KeptLookups(() => Promise.resolve(said.shift() ?? assert.fail('asked for once by each knock')));
  for (let knocks = 0; knocks < 2; knocks++) {
    const sockets = new EtcdSockets(new URL(`http://etcd.test:${String(port)}`), undefined, lookup);
    const why = await new Promise<string>((resolve) => { sockets.knock(resolve); });
    assert.deepEqual([why, sockets.target, sockets.authority], ['', `dns:///127.0.0.1:${String(port)}`, `etcd.test:${String(port)}`]);
    sockets.end();
  }
});
