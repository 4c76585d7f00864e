/** A next hop that accepts connections and says nothing: mail for it stays where it is. */
import { createServer, type AddressInfo, type Socket } from 'node:net';

import { HOST } from './cluster.js';

/** Its port; closed behind the test. */
export async function muteServer(t: { after(run: () => void): void }): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}
