/** The real outside world for a role: clock, checksums, MessagePack, secrets, sockets, log. */
import type { StoreKeys } from '../config/keys/schema.js';
import { SystemClock } from '../platform/node/clock.js';
import { NodeLog, logDestination } from '../platform/node/log.js';
import type { LogDestination } from '../platform/node/log-destination.js';
import { SystemSecrets } from '../platform/node/secrets.js';
import { NodeTransport } from '../platform/node/transport.js';
import { tellTerminal } from './last-words.js';
import { followLogFile } from './log-file.js';

/** For a clean stop: what is still to be written then is lost. */
const LOG_DRAIN_MS = 1_000;

export interface NodePorts {
  readonly clock: SystemClock;
  readonly secrets: SystemSecrets;
  readonly transport: NodeTransport;
  readonly log: NodeLog;
  /** Shared by events and mail log. */
  readonly destination: LogDestination;
}

export function nodePorts(log: StoreKeys['log'], name: string): NodePorts {
  const destination = logDestination(log.file ?? 1, name);
  const events = new NodeLog({ level: log.level, name }, destination);
  if (log.file !== undefined) followLogFile(log.file, destination, events);
  return {
    clock: new SystemClock(),
    secrets: new SystemSecrets(),
    transport: new NodeTransport(),
    log: events,
    destination,
  };
}

/** Before the process ends: writes what waits, and says what could not be written. */
export async function drainLog({ destination }: NodePorts): Promise<void> {
  const left = await destination.drain(LOG_DRAIN_MS);
  if (left === 0) return;
  const why = destination.failing === '' ? '' : `: ${destination.failing}`;
  tellTerminal(`twinpost: the last ${String(left)} lines of the log could not be written${why}`);
}
