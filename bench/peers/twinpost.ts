/** Twinpost as a relay beside others: a gateway with two stores, whose CPU counts together. */
import { startRelay, DOMAINS } from '../relay-run.js';
import { usageOf } from '../machine.js';
import { HOST } from '../../test/process/cluster.js';
import type { RelayPeer } from './relay-peer.js';

/** Offers STARTTLS. */
export async function startTwinpost(nextHopPort: number, tls: { readonly cert: string; readonly key: string }): Promise<RelayPeer> {
  const via = `smtp://${HOST}:${nextHopPort}`;
  const gateway = { memory: { limit: '2GiB' }, delivery: { messages_per_connection: 1_000_000 }, smtp: { tls } };
  const cluster = await startRelay({ sink: false, domains: [], routes: [...DOMAINS, '*'].map((domain) => ({ domain, via })), gateway });
  const usedMicros = (): number => [cluster.gateway, ...cluster.stores].reduce((sum, { pid }) => sum + usageOf(pid).cpuMicros, 0);
  return { port: cluster.smtpPort, usedMicros, stop: () => cluster.stop() };
}
