/**
 * What a chaos run is asked to do, the faults it knows, and what it reports: plain data. The faults
 * themselves are in blows.ts, the run in chaos.ts.
 */
import type { Verdict } from '../process/witnesses.js';

export const FAULT_KINDS = [
  'kill gateway', 'kill store', 'kill gateway and store', 'freeze gateway', 'freeze store', 'freeze next hop',
  'path cut', 'path reset', 'both paths cut', 'one way cut', 'slow link', 'full store',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

export interface ChaosOptions {
  readonly seed: number;
  readonly seconds: number;
  readonly gateways: number;
  readonly stores: number;
  readonly kinds: readonly FaultKind[];
  /** A fault strikes every so often. */
  readonly everyMs: number;
  /** Messages a second over all clients; undefined: half of what is measured before. */
  readonly rate?: number;
  /** The gateways rescue one another, and some stay dead for longer than the lease. */
  readonly rescue: boolean;
  readonly onEvent?: (event: ChaosEvent) => void;
}

/** One line of the timeline. */
export interface ChaosEvent {
  /** Since the clients began. */
  readonly second: number;
  readonly what: string;
}

export interface ChaosReport {
  readonly seed: number;
  readonly seconds: number;
  readonly capacityPerSecond: number | undefined;
  readonly ratePerSecond: number;
  readonly faults: Readonly<Record<string, number>>;
  /** What gateways took over from one another. */
  readonly takeovers: { readonly partitions: number; readonly messages: number };
  /** What clients were told after their final dots and before, by code. */
  readonly replies: Readonly<Record<string, number>>;
  /** Messages that were answered 2xx in each second, all clients together. */
  readonly acceptedEachSecond: readonly number[];
  /** From the final dot to its reply, the worst of the clients. */
  readonly responseMs: { readonly p50: number; readonly p99: number; readonly max: number };
  /** Processes that ended though nobody ended them. */
  readonly endedAlone: readonly string[];
  readonly verdict: Verdict;
  readonly timeline: readonly ChaosEvent[];
}
