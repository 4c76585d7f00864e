/**
 * Results as a run of `bench all` leaves them, with figures that are easy to follow: for tests of goals and
 * report.
 */
import type { EnduranceRow, Quarter } from '../../../bench/endurance.js';
import type { GrowthRow } from '../../../bench/growth.js';
import type { FillRow, MemoryRow } from '../../../bench/memory.js';
import type { PartResult } from '../../../bench/options.js';
import type { PeerRow } from '../../../bench/peers.js';
import type { TurnReport } from '../../../bench/probe-report.js';
import type { RelayLoad, RelayRow } from '../../../bench/relay.js';
import type { Results } from '../../../bench/results.js';
import type { StoreKind, StoreRow } from '../../../bench/store.js';

const MACHINE = { processor: 'Test', processors: 2, memoryBytes: 2 ** 33, system: 'Linux 6', node: 'v20.20.2', commit: 'abcdef012345', at: '2026-01-02T03:04:05.000Z' };

export function part<Row>(name: string, rows: readonly Row[], missing: readonly string[] = []): PartResult<Row> {
  return { part: name, quick: false, seconds: 7, loadBefore: 0.4, machine: MACHINE, rows, missing };
}

export function relayRow(kind: RelayRow['kind'], load: RelayLoad, round: number, perSecond: number, more: Partial<RelayRow> = {}): RelayRow {
  const cost = kind === 'direct' ? [] : [{ process: 'gateway', cpuMicrosPerMessage: 60, memoryBytes: 0 }, { process: 'store-a', cpuMicrosPerMessage: 6, memoryBytes: 0 }, { process: 'store-b', cpuMicrosPerMessage: 5, memoryBytes: 0 }];
  return { kind, load, round, messages: 1000, acceptedPerSecond: perSecond, relayedPerSecond: perSecond, responseMeanMs: 2, responseP50Ms: 1, responseP99Ms: 9, cost, ...more };
}

export function peerRow(peer: string, connections: number, perSecond: number, cpuMicrosPerMessage: number): PeerRow {
  return { peer, connections, round: 1, messages: 1000, relayedPerSecond: perSecond, responseP50Ms: 5, responseP99Ms: 50, cpuMicrosPerMessage };
}

export function storeRow(store: StoreKind, messageKb: string, perSecond: number): StoreRow {
  return { store, messageKb, round: 1, transactionsPerSecond: perSecond, serverCpuMicros: 1, clientCpuMicros: 0.5, clientBusy: 0.5 };
}

export function growthRow(by: GrowthRow['by'], count: number, cpuMicrosPerMessage: number): GrowthRow {
  return { by, count, round: 1, cpuMicrosPerMessage, gatewayMicros: cpuMicrosPerMessage - 10, storesMicros: 10, messagesPerSecond: 10_000 };
}

export function enduranceRow(quarters: readonly Quarter[] | undefined): EnduranceRow {
  return {
    minutes: 30, ratePerSecond: 9000, capacityPerSecond: 13_000, messages: 1000, accepted: 1000, faults: [], responseP50Ms: 1, responseP99Ms: 9,
    firstQuarterPerSecond: 9000, lastQuarterPerSecond: 9000, ...(quarters === undefined ? {} : { quarters, delivered: 1001 }), processes: [], samples: [],
  };
}

const TURNS: TurnReport = { turns: 1000, p50Ms: 1, p99Ms: 5, p999Ms: 8, maxMs: 30, heapUsedBytes: 3e7, heapTotalBytes: 6e7, residentBytes: 1e9 };

/** `perMessage`: bytes of the gateway's memory that each queued message takes; content and envelope are 500 of them. */
export function fillRow(queued: number, perMessage: number, cpuMicrosPerMessage = 80): FillRow {
  return {
    what: 'fill', queued, gatewayBytes: 1e8 + perMessage * queued, storeBytes: 9e7 + 560 * queued, heapUsedBytes: 3e7, heapTotalBytes: 6e7, storeHeapTotalBytes: 3e7,
    liveBytes: 500 * queued, cpuMicrosPerMessage, relayedPerSecond: 10_000, turns: TURNS,
  };
}

export const MEMORY: readonly MemoryRow[] = [
  fillRow(0, 580), fillRow(1_000_000, 580), fillRow(3_000_000, 580, 84), fillRow(5_000_000, 580),
  { what: 'recover', queued: 5_000_000, seconds: 9, turns: TURNS },
  { what: 'cycle', cycle: 1, messages: 1000, gatewayBytes: 2e8, storeBytes: 1e8 }, { what: 'cycle', cycle: 2, messages: 1000, gatewayBytes: 2e8, storeBytes: 1e8 },
  { what: 'stay', messages: 1_000_000, stayed: 10_000, liveBytes: 40e6, gatewayUsedBytes: 44e6, storeUsedBytes: 52e6 },
];

/** Everything good. */
export const RESULTS: Results = {
  relay: part('relay', [
    relayRow('direct', 'kept', 1, 30_000), relayRow('gateway', 'kept', 1, 12_000), relayRow('gateway', '80% of kept', 1, 9600),
    relayRow('direct', 'kept, no pipelining', 1, 20_000),
    relayRow('direct', '10 a connection', 1, 20_000), relayRow('gateway', '10 a connection', 1, 7000),
  ]),
  peers: part('peers', [peerRow('Postfix, queue on disk', 50, 600, 1500), peerRow('Postfix, queue on disk', 300, 700, 1420), peerRow('Haraka, smtp_forward', 50, 900, 355)], ['postfix (as root)']),
  store: part('store', [storeRow('Twinpost', '0.4', 2_000_000), storeRow('redis list', '0.4', 800_000), storeRow('memcached', '0.4', 1_000_000)]),
  growth: part('growth', [growthRow('queues', 10, 80), growthRow('queues', 1000, 83), growthRow('queues', 10_000, 86), growthRow('connections', 10, 80), growthRow('connections', 10_000, 100), growthRow('connections at one rate', 10, 100), growthRow('connections at one rate', 10_000, 108)]),
  memory: part('memory', MEMORY),
};
