/**
 * One relay through a gateway with two stores, as a process of its own: so that another Node or another
 * build of Twinpost can be measured by the same bench. Options as JSON in the first argument, the result as
 * one line of JSON on stdout. In turns: one relay for each line on stdin, until that ends.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

import type { startCluster } from '../test/process/cluster.js';
import { makeCertificate } from './certificate.js';
import { DOMAINS, RELAY_GATEWAY, RELAY_SINK, relayThrough, startRelay, warm } from './relay-run.js';

export interface RelayOnce {
  readonly messages: number;
  readonly warmMessages: number;
  /** Folder of another build, whose daemons are to be started; else our own. */
  readonly build?: string;
  readonly inTurns?: boolean;
  /** So many queues of one route, one a domain; else ten routes. */
  readonly queues?: number;
  /** By STARTTLS to the gateway, and from it to the sink. */
  readonly tls?: boolean;
}

interface ClusterModule {
  readonly startCluster: typeof startCluster;
}

const options = JSON.parse(process.argv[2] ?? '{}') as RelayOnce;
// The other build starts its daemons itself: it knows what its configuration files may say.
const other = options.build === undefined ? undefined : ((await import(pathToFileURL(join(options.build, 'test', 'process', 'cluster.js')).href)) as ClusterModule);
const { queues } = options;
const domains = queues === undefined ? DOMAINS : Array.from({ length: queues }, (_none, index) => `queue${index}.example`);
const shape = queues === undefined ? {} : { domains: [], restRoute: { queues: 'domain' } };
const folder = mkdtempSync(join(tmpdir(), 'twinpost-relay-'));
const certificate = options.tls === true ? makeCertificate(folder) : undefined;
const secured = certificate === undefined ? {} : {
  gateway: { ...RELAY_GATEWAY, smtp: { tls: certificate.files } }, sinkSection: { ...RELAY_SINK, tls: certificate.files },
};
const cluster = await startRelay({ ...shape, ...secured }, other?.startCluster);
try {
  const load = { domains, ...(certificate === undefined ? {} : { caFile: certificate.caFile }) };
  const relay = async (): Promise<void> => void process.stdout.write(`${JSON.stringify(await relayThrough(cluster, { count: options.messages, ...load }))}\n`);
  await warm(cluster, { count: options.warmMessages, ...load });
  if (options.inTurns === true) for await (const _line of createInterface({ input: process.stdin })) await relay();
  else await relay();
} finally {
  await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
}
