/**
 * Postfix as a relay: an instance of its own in a folder (configuration, queue, log), never the system's.
 * Tuned as somebody would who wants throughput: processes for all connections, deliveries in parallel from
 * the start, no delay of input; each file of the queue is flushed to the disk as always.
 */
import { startPostfix } from '../../test/thirdparty/postfix.js';
import { CpuGroup } from './cpu-group.js';
import { isInstalled } from './installed.js';
import type { PeerSetup, RelayPeer } from './relay-peer.js';

const SETTINGS = {
  default_process_limit: '400', default_destination_concurrency_limit: '50', initial_destination_concurrency: '50',
  // Else each message waits while deliveries are behind.
  in_flow_delay: '0', smtpd_client_connection_count_limit: '0', queue_minfree: '0',
};
const TMPFS = '/dev/shm';

async function start(nextHopPort: number, parent: string | undefined, more: Readonly<Record<string, string>> = {}): Promise<RelayPeer> {
  const group = new CpuGroup();
  const postfix = await startPostfix(nextHopPort, { settings: { ...SETTINGS, ...more }, prefix: group.prefix, ...(parent === undefined ? {} : { parent }) });
  const stop = async (): Promise<void> => {
    await postfix.stop();
    await group.close();
  };
  return { port: postfix.port, usedMicros: () => group.usedMicros(postfix.pid), stop };
}

/** What its client needs to go on using a connection within TLS (TLS_README, "Client-side TLS connection reuse"). */
const TLS_OUT = { smtp_tls_security_level: 'encrypt', smtp_tls_connection_reuse: 'yes', smtp_tls_loglevel: '0' };

/** Offers STARTTLS, its default in all else, and says no word about each session. `isOutToo`: to the next hop by TLS as well. */
export function startTlsPostfix(
  nextHopPort: number, queue: 'disk' | 'tmpfs', { cert, key }: { readonly cert: string; readonly key: string }, isOutToo: boolean,
): Promise<RelayPeer> {
  const tls = { smtpd_tls_security_level: 'may', smtpd_tls_cert_file: cert, smtpd_tls_key_file: key, smtpd_tls_loglevel: '0' };
  return start(nextHopPort, queue === 'disk' ? undefined : TMPFS, { ...tls, ...(isOutToo ? TLS_OUT : {}) });
}

const needsRoot = (): boolean => isInstalled('postfix') && process.getuid?.() === 0;

export const POSTFIX_DISK: PeerSetup = { peer: 'Postfix, queue on disk', needs: 'postfix (as root)', isInstalled: needsRoot, start: (port) => start(port, undefined) };
export const POSTFIX_TMPFS: PeerSetup = { peer: 'Postfix, queue on tmpfs', needs: 'postfix (as root)', isInstalled: needsRoot, start: (port) => start(port, TMPFS) };
