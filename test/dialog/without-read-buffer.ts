/**
 * A Node that has no read buffer to give: what a client sends comes by the socket's stream, as it would on a Node whose
 * fields have other names. Dialogs are played in both ways.
 */

import assert from 'node:assert/strict';
import net from 'node:net';

/** Runs `body` with sockets that can't read into a buffer of ours. */
export async function withoutReadBuffer(body: () => Promise<void>): Promise<void> {
  const server = net.createServer().listen(0, '127.0.0.1');
  const accepted = new Promise<net.Socket>((resolve) => server.once('connection', resolve));
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  const client = net.connect(address.port, '127.0.0.1');
  let owner: unknown = Reflect.get(await accepted, '_handle');
  while (typeof owner === 'object' && owner !== null && !Object.hasOwn(owner, 'useUserBuffer')) owner = Object.getPrototypeOf(owner);
  client.destroy();
  server.close();
  assert.ok(typeof owner === 'object' && owner !== null, 'this Node reads into a buffer of ours');
  const method: unknown = Reflect.get(owner, 'useUserBuffer');
  Reflect.set(owner, 'useUserBuffer', undefined);
  try {
    await body();
  } finally {
    Reflect.set(owner, 'useUserBuffer', method);
  }
}
