/**
 * The goals that a report is judged by: each with what was asked, what was measured, and whether that is
 * met. Pure: results in, verdicts out. A goal whose part has not run, or whose peer is not installed, is
 * not judged and says why.
 */
import { figure } from './format.js';
import { median } from './machine.js';
import type { RelayLoad, RelayRow } from './relay.js';
import { cpuOf, isGateway, isStore } from './relay-run.js';
import type { Results } from './results.js';

export interface Goal {
  readonly subject: string;
  readonly goal: string;
  /** Undefined: nothing was measured; `measured` says why. */
  readonly isMet: boolean | undefined;
  readonly measured: string;
  /** Nice to have, not asked for. */
  readonly stretch?: boolean;
}

/** What is asked of one number. */
interface Ask {
  readonly subject: string;
  readonly goal: string;
  readonly value: number | undefined;
  readonly atLeast?: number;
  readonly atMost?: number;
  readonly unit?: string;
  readonly stretch?: boolean;
  readonly note?: string;
}

export function judge(ask: Ask): Goal {
  const { subject, goal, value } = ask;
  const base = { subject, goal, ...(ask.stretch === true ? { stretch: true } : {}) };
  if (value === undefined || !Number.isFinite(value)) return { ...base, isMet: undefined, measured: ask.note ?? 'not measured' };
  const isMet = (ask.atLeast === undefined || value >= ask.atLeast) && (ask.atMost === undefined || value <= ask.atMost);
  const bound = ask.atLeast ?? ask.atMost ?? 0;
  const off = isMet || bound === 0 ? '' : `, ${figure((100 * Math.abs(value - bound)) / bound)}% ${value < bound ? 'too little' : 'too much'}`;
  return { ...base, isMet, measured: `${figure(value)}${ask.unit ?? ''}${off}${ask.note === undefined ? '' : `; ${ask.note}`}` };
}

export function goalsOf(results: Results): Goal[] {
  return [...relayGoals(results)];
}

function relayGoals(results: Results): Goal[] {
  const rows = results.relay?.rows ?? [];
  const kept = shareOfDirect(rows, 'kept');
  const cpu = gatewayCpu(rows);
  const p99 = medianOf(rows.filter((row) => row.kind === 'gateway' && row.load === '80% of kept'), (row) => row.responseP99Ms);
  return [
    judge({ subject: 'relay', goal: '≥ 0.33 × direct on 50 kept connections', value: kept, atLeast: 0.33 }),
    judge({ subject: 'relay', goal: '≥ 0.30 × direct with 10 messages a connection', value: shareOfDirect(rows, '10 a connection'), atLeast: 0.3 }),
    judge({ subject: 'relay', goal: 'CPU of gateway and both stores ≤ 95 µs a message', value: cpu, atMost: 95, unit: ' µs' }),
    judge({ subject: 'relay', goal: 'p99 response ≤ 14 ms at 80% of that rate', value: p99, atMost: 14, unit: ' ms' }),
    judge({ subject: 'relay', goal: 'half of direct', value: kept, atLeast: 0.5, stretch: true }),
    judge({ subject: 'relay', goal: 'CPU ≤ 60 µs a message', value: cpu, atMost: 60, unit: ' µs', stretch: true }),
    judge({ subject: 'store', goal: 'both stores ≤ 10 µs of CPU a relayed message', value: storesCpu(rows), atMost: 10, unit: ' µs' }),
  ];
}

/** Median over the rounds of gateway by direct of the same round. */
export function shareOfDirect(rows: readonly RelayRow[], load: RelayLoad): number | undefined {
  const of = (kind: RelayRow['kind'], round: number): number | undefined => rows.find((row) => row.kind === kind && row.load === load && row.round === round)?.relayedPerSecond;
  const shares: number[] = [];
  for (const round of new Set(rows.map((row) => row.round))) {
    const [direct, gateway] = [of('direct', round), of('gateway', round)];
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

export function medianOf<Row>(rows: readonly Row[], value: (row: Row) => number): number | undefined {
  return rows.length === 0 ? undefined : median(rows.map(value));
}
