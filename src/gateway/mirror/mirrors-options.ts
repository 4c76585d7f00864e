/**
 * What the mirrors of a gateway are told, and what they may use: plain data, then the ports of mirrors.ts.
 */
import type { Crc32, EventLog, Packer } from '../../platform/ports.js';
import type { PlacementOptions } from './placement.js';
import type { Partition } from './partition.js';
import type { ResyncPorts } from './resync.js';

export interface MirrorsOptions {
  /** Ids of the gateways that may claim one another's queues. */
  readonly group: readonly string[];
  readonly replicas: number;
  readonly minReplicas: number;
  /** A mirror that was refused is not filled again before this. */
  readonly retryMs: number;
  readonly refillFrameBytes: number;
  /** A CHANGES frame is closed when its payload has reached this. */
  readonly frameTargetBytes: number;
  /** Bound of the changes that are kept for mirrors which come back. */
  readonly ringBytes: number;
  /** A mirror that is away for so long is replaced. */
  readonly replaceAfterMs: number;
  readonly placement: PlacementOptions;
  /** Token under which queues are held that no rescue took over: the incarnation. */
  readonly token: number;
}

export interface MirrorsPorts {
  readonly packer: Packer;
  readonly crc32: Crc32;
  readonly log: EventLog;
  nowMs(): number;
  wallMs(): number;
  /** Called when the first change of a turn needs a flush() at its end. */
  requestFlush(): void;
  readonly refillEntries: ResyncPorts['refillEntries'];
  /** The queue is new or gone, or its set or the state of one of its mirrors is another. */
  onChanged(partition: Partition): void;
  onEpoch(partition: Partition): void;
  /** Another process holds the queue at every member: it is not ours any more. */
  onLost(partition: Partition): void;
}

/** Queues looked at in a tick: of ten thousand each is met once a second. */
export const QUEUES_PER_TICK = 1024;
