/** memcached on loopback, as the paper's comparison had it: memory enough that nothing is evicted, no UDP. */
import { HOST } from '../../test/process/cluster.js';
import { freePorts } from '../../test/process/free-ports.js';
import { startServer, type PeerServer } from './server.js';

export async function startMemcached(): Promise<PeerServer> {
  const [port = 0] = await freePorts(1);
  // It refuses to run as root without the name of another user. -R: a connection with many requests waiting is served on.
  return startServer(['memcached', '-l', HOST, '-p', String(port), '-U', '0', '-m', '1024', '-u', 'nobody', '-R', '1000'], port);
}
