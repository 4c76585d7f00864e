/**
 * Whether a port can be had: by listening on it for a moment. For a role that opens its port later than its
 * start, and for `up`, which says all that is busy at once.
 */
import net from 'node:net';

/** What listening on the address fails with; undefined when the port is free. */
export function listenError(host: string, port: number): Promise<NodeJS.ErrnoException | undefined> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', resolve);
    server.listen({ host, port }, () => { server.close(() => { resolve(undefined); }); });
  });
}
