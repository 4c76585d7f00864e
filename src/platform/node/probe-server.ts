/**
 * The server of a port for probes alone (`admin.probes`): what load balancers and scrapers hear does not hang
 * on who asks the admin port, nor how slowly. In clear, without tokens, and nothing is changed by it.
 *
 * It takes so many connections; another one takes the place of the oldest, so that who opens many and says
 * nothing keeps nobody out.
 */
import http from 'node:http';
import type { RequestListener } from 'node:http';
import type { Socket } from 'node:net';

const CONNECTIONS_MAX = 128;
/** A probe is a line. */
const REQUEST_MS = 2_000;
/** Scrapers come each 15 s or so, on a connection that they keep. */
const IDLE_MS = 60_000;
const HEADER_BYTES_MAX = 8 * 1024;
/** How often Node looks for requests that took too long. */
const LOOK_MS = 500;

export function probeServer(handler: RequestListener): http.Server {
  const server = http.createServer({
    requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS, keepAliveTimeout: IDLE_MS,
    maxHeaderSize: HEADER_BYTES_MAX, connectionsCheckingInterval: LOOK_MS,
  }, handler);
  server.setTimeout(IDLE_MS);
  /** The oldest first. */
  const open = new Set<Socket>();
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => { open.delete(socket); });
    if (open.size <= CONNECTIONS_MAX) return;
    for (const oldest of open) {
      oldest.destroy();
      return;
    }
  });
  return server;
}
