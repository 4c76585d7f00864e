/** A next hop that accepts connections and says nothing: mail for it stays queued. */
import { createServer, type AddressInfo, type Socket } from 'node:net';

import { HOST } from '../test/process/cluster.js';

export interface MuteServer {
  readonly port: number;
  close(): void;
}

export function startMuteServer(): Promise<MuteServer> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  });
  const close = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return new Promise((resolve) => server.listen(0, HOST, () => resolve({ port: (server.address() as AddressInfo).port, close })));
}
