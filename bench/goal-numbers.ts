/**
 * The numbers that goals ask for, out of the rows of a part. Pure; undefined where a part has no such row.
 */
import type { Quarter } from './endurance.js';
import { figure } from './format.js';
import type { GrowthRow } from './growth.js';
import { median } from './machine.js';
import type { FillRow, MemoryRow } from './memory.js';
import { bestConnections, type PeerRow } from './peers.js';
import type { FirstDeliveryRow, RecoveryRow } from './recovery.js';
import type { RelayLoad, RelayRow } from './relay.js';
import { cpuOf, isGateway, isStore } from './relay-run.js';
import type { StoreKind, StoreRow } from './store.js';
import { slopeOf } from './statistics.js';

export function medianOf<Row>(rows: readonly Row[], value: (row: Row) => number): number | undefined {
  return rows.length === 0 ? undefined : median(rows.map(value));
}

/** Median over the rounds of gateway by direct of the same round, which may be under another load. */
export function shareOfDirect(rows: readonly RelayRow[], load: RelayLoad, directLoad = load): number | undefined {
  const of = (kind: RelayRow['kind'], under: RelayLoad, round: number): number | undefined => rows.find((row) => row.kind === kind && row.load === under && row.round === round)?.relayedPerSecond;
  const shares: number[] = [];
  for (const round of new Set(rows.map((row) => row.round))) {
    const [direct, gateway] = [of('direct', directLoad, round), of('gateway', load, round)];
    if (direct !== undefined && gateway !== undefined) shares.push(gateway / direct);
  }
  return shares.length === 0 ? undefined : median(shares);
}

function gatewayKept(rows: readonly RelayRow[]): RelayRow[] {
  return rows.filter((row) => row.kind === 'gateway' && row.load === 'kept');
}

/** Gateway and both stores, µs a message. */
export function gatewayCpu(rows: readonly RelayRow[]): number | undefined {
  return medianOf(gatewayKept(rows), (row) => cpuOf(row.cost, (name) => isGateway(name) || isStore(name)));
}

export function storesCpu(rows: readonly RelayRow[]): number | undefined {
  return medianOf(gatewayKept(rows), (row) => cpuOf(row.cost, isStore));
}

/** CPU a message of a peer, at the number of connections that gave it most throughput, by ours. */
export function peerFactor(peers: readonly PeerRow[], peer: string, ours: number | undefined): number | undefined {
  const best = bestConnections(peers, peer);
  const theirs = medianOf(peers.filter((row) => row.peer === peer && row.connections === best), (row) => row.cpuMicrosPerMessage);
  return theirs === undefined || ours === undefined ? undefined : theirs / ours;
}

/** Our transactions a second by those of a peer at one size, round by round. */
export function storeFactor(rows: readonly StoreRow[], peer: StoreKind, messageKb: string): number | undefined {
  const of = (store: StoreKind, round: number): number | undefined => rows.find((row) => row.store === store && row.messageKb === messageKb && row.round === round)?.transactionsPerSecond;
  const factors: number[] = [];
  for (const round of new Set(rows.map((row) => row.round))) {
    const [ours, theirs] = [of('Twinpost', round), of(peer, round)];
    if (ours !== undefined && theirs !== undefined) factors.push(ours / theirs);
  }
  return factors.length === 0 ? undefined : median(factors);
}

/** A client that is so busy sets the pace, and a server that could do more does not show it. */
const BUSY = 0.95;

/** CPU of both servers a transaction, and whose client was the limit. */
export function storeNote(rows: readonly StoreRow[], peer: StoreKind, messageKb: string): string {
  const of = (store: StoreKind, value: (row: StoreRow) => number): number => medianOf(rows.filter((row) => row.store === store && row.messageKb === messageKb), value) ?? NaN;
  const limits = (['Twinpost', peer] as const).flatMap((store) => {
    const busy = of(store, (row) => row.clientBusy);
    return busy >= BUSY ? [`; the client was the limit at ${store}, ${Math.round(100 * busy)}% busy`] : [];
  });
  return `CPU of the server ${figure(of('Twinpost', (row) => row.serverCpuMicros))} µs, of ${peer} ${figure(of(peer, (row) => row.serverCpuMicros))}${limits.join('')}`;
}

type RecoveryRows = readonly (RecoveryRow | FirstDeliveryRow)[];

function isFirst(row: RecoveryRow | FirstDeliveryRow): row is FirstDeliveryRow {
  return 'what' in row && row.what === 'first delivery';
}

export function blocksOf(rows: RecoveryRows): RecoveryRow[] {
  return rows.flatMap((row) => (isFirst(row) ? [] : [row]));
}

export function firstsOf(rows: RecoveryRows): FirstDeliveryRow[] {
  return rows.filter(isFirst);
}

export function fillsOf(rows: readonly MemoryRow[]): FillRow[] {
  return rows.filter((row) => row.what === 'fill');
}

/**
 * Bytes a queued message takes beyond content and envelope: the slope of resident memory over the messages,
 * from the first step that has any (rings and buffers are full by then), less what a message is.
 */
export function overheadBytes(rows: readonly MemoryRow[], of: (row: FillRow) => number): number | undefined {
  const filled = fillsOf(rows).filter((row) => row.queued > 0);
  const last = filled.at(-1);
  if (last === undefined || filled.length < 2) return undefined;
  return slopeOf(filled.map((row) => [row.queued, of(row)] as const)) - last.liveBytes / last.queued;
}

/** By how much CPU a message rises from the first count to the last, or to that of `most` at most, in percent. */
export function growthPercent(rows: readonly GrowthRow[], by: GrowthRow['by'], most = Infinity): { readonly percent: number; readonly from: number; readonly to: number } | undefined {
  const among = rows.filter((row) => row.by === by && row.count <= most);
  const counts = among.map((row) => row.count);
  const [from, to] = [Math.min(...counts), Math.max(...counts)];
  const at = (count: number): number | undefined => medianOf(among.filter((row) => row.count === count), (row) => row.cpuMicrosPerMessage);
  const [first, last] = [at(from), at(to)];
  return first === undefined || last === undefined ? undefined : { percent: 100 * (last / first - 1), from, to };
}

/** By how much a number of the last quarter is above that of the first, in percent. */
export function slowdownPercent(quarters: readonly Quarter[], of: (quarter: Quarter) => number | null): number | undefined {
  const ends = [quarters[0], quarters.at(-1)].map((quarter) => (quarter === undefined ? null : of(quarter)));
  const [first = null, last = null] = ends;
  return first === null || last === null || first === 0 ? undefined : 100 * (last / first - 1);
}

/** The same from an empty gateway to the longest queue of at most `queuedMax`. */
export function queuedGrowthPercent(rows: readonly MemoryRow[], queuedMax: number): { readonly percent: number; readonly to: number } | undefined {
  const fills = fillsOf(rows).filter((row) => row.queued <= queuedMax);
  const [first, last] = [fills.find((row) => row.queued === 0), fills.at(-1)];
  return first === undefined || last === undefined || last === first ? undefined : { percent: 100 * (last.cpuMicrosPerMessage / first.cpuMicrosPerMessage - 1), to: last.queued };
}
