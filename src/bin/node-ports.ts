/** The real outside world for a role: clock, checksums, MessagePack, secrets, sockets, log. */
import fs from 'node:fs';
import type { StoreKeys } from '../config/keys/schema.js';
import { SystemClock } from '../platform/node/clock.js';
import { NodeLog, logDestination } from '../platform/node/log.js';
import type { LogDestination } from '../platform/node/log-destination.js';
import { SystemSecrets } from '../platform/node/secrets.js';
import { NodeTransport } from '../platform/node/transport.js';

export interface NodePorts {
  readonly clock: SystemClock;
  readonly secrets: SystemSecrets;
  readonly transport: NodeTransport;
  readonly log: NodeLog;
  /** Shared by events and mail log. */
  readonly destination: LogDestination;
}

export function nodePorts(log: StoreKeys['log'], name: string): NodePorts {
  const fd = log.file === undefined ? 1 : fs.openSync(log.file, 'a', 0o640);
  const destination = logDestination(fd, name);
  return {
    clock: new SystemClock(),
    secrets: new SystemSecrets(),
    transport: new NodeTransport(),
    log: new NodeLog({ level: log.level, name }, destination),
    destination,
  };
}
