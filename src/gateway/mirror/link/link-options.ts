/**
 * What a link is told and what it may use: plain data from the configuration, then the ports. Shared by
 * store-link.ts and path-connection.ts.
 */
import type { Clock, Crc32, EventLog, Packer, Random, Secrets } from '../../../platform/ports.js';
import type { Transport } from '../../../platform/transport.js';

/** The two network paths to a store; the names stand in HELLO, in logs and in the management table. */
export type PathName = 'A' | 'B';

export interface PathAddress {
  readonly host: string;
  readonly port: number;
}

export interface LinkOptions {
  /** As configured; the store must prove that it is this one. */
  readonly storeId: string;
  readonly gatewayId: string;
  readonly incarnation: number;
  /** 8 bytes, drawn with the incarnation. */
  readonly incarnationNonce: Uint8Array;
  readonly pathA: PathAddress;
  /** A link without a second path has no standby. */
  readonly pathB?: PathAddress;
  readonly heartbeatMs: number;
  readonly failoverTimeoutMs: number;
  /** How long a process may stand still, with its connections open, without being given up. */
  readonly stallMs: number;
  /** Margin of the reckoning of leases (recovery/ownership/link-lease.ts). */
  readonly driftShare: number;
  readonly driftFixedMs: number;
  /** Requests on the way, in bytes, before the mirror is asked to wait. */
  readonly windowBytes: number;
  /** Largest frame taken from the store. */
  readonly frameBytesMax: number;
}

/**
 * The numbers of docs/GUARANTEES.md "Links" that no configuration says. Drift: what two monotonic clocks may
 * drift apart over a lease, and a fixed part for what reading, rounding and coarse kernel clocks take. Quartz
 * stays within 0.01%; 1% bears a clock that a bad NTP source slews.
 */
export const LINK_MARGINS = { stallMs: 3_000, driftShare: 0.01, driftFixedMs: 200 } as const;

/**
 * Pause before the next attempt: 50 ms, because a restarted store is back within that; then doubling to
 * 2 s, which a store with hundreds of gateways bears; jitter spreads those that lost it at once.
 */
export const RECONNECT = { firstMs: 50, factor: 2, maxMs: 2_000, jitter: 0.2 } as const;

export interface LinkPorts {
  /** Read when a lease is granted; all else goes by the time of the tick. */
  readonly clock: Clock;
  /** Milliseconds since 1970 as queues reckon with them (queue/wall-frame.ts). */
  readonly frameWallMs: () => number;
  readonly transport: Transport;
  /**
   * Each handshake asks which it shares with the stores, of which one is enough: while people change them,
   * a store proves the old or the new one. They never cross the wire.
   */
  readonly sharedSecrets: () => readonly Uint8Array[];
  readonly crc32: Crc32;
  readonly packer: Packer;
  readonly secrets: Secrets;
  readonly random: Random;
  readonly log: EventLog;
}
