/**
 * What the mirrors of a gateway are told, and what they may use: plain data, then the ports of mirrors.ts.
 */
import type { EventLog, Packer } from '../../platform/ports.js';
import type { PlacementOptions } from './set/placement.js';
import type { ResyncPorts } from './feed/resync.js';

export interface MirrorsOptions {
  readonly replicas: number;
  readonly minReplicas: number;
  /** A store that refused a copy is not asked for this partition again before this. */
  readonly retryMs: number;
  readonly refillFrameBytes: number;
  /** A CHANGES frame is closed when its payload has reached this. */
  readonly frameTargetBytes: number;
  /** Bound of the changes that are kept for mirrors which come back. */
  readonly ringBytes: number;
  /** A mirror that is away for so long is replaced. */
  readonly replaceAfterMs: number;
  /** Copies move to stores that have few by themselves no faster than this; 0: never. */
  readonly rebalanceBytesPerSecond: number;
  readonly placement: PlacementOptions;
}

export interface MirrorsPorts {
  readonly packer: Packer;
  readonly log: EventLog;
  nowMs(): number;
  /** Called when the first change of a turn needs a flush() at its end. */
  requestFlush(): void;
  /** As PlacementPorts. */
  hostOfGateway(gatewayId: string): string | undefined;
  /** As SenderPorts. */
  ringRoomBytes(): number;
  readonly refillEntries: ResyncPorts['refillEntries'];
}
