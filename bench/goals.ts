/**
 * The goals that a report is judged by: each with what was asked, what was measured, and whether that is
 * met. Pure: results in, verdicts out. A goal whose part has not run, or whose peer is not installed, is
 * not judged and says so; one that was measured with fewer messages than it asks for says with how many.
 */
import { figure } from './format.js';
import { blocksOf, fillsOf, firstsOf, gatewayCpu, growthPercent, medianOf, overheadBytes, peerFactor, queuedGrowthPercent, shareOfDirect, slowdownPercent, storeFactor, storeNote, storesCpu } from './goal-numbers.js';
import { GROWTH_RATE } from './growth.js';
import type { MemoryRow } from './memory.js';
import type { Results } from './results.js';
import { slopeOf } from './statistics.js';
import { STORE_SIZES_KB } from './store.js';

export interface Goal {
  readonly subject: string;
  readonly goal: string;
  /** Undefined: nothing was measured; `measured` says why. */
  readonly isMet: boolean | undefined;
  readonly measured: string;
  /** Nice to have, not asked for. */
  readonly stretch?: boolean;
  /** Measured with less than it asks for: no verdict on the goal itself. */
  readonly isPartial?: boolean;
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
  /** With how much less than asked it was measured; '' when it was not. */
  readonly few?: string;
}

const MB = 1e6;
const MILLION = 1_000_000;
/** Times that a gateway is to be filled and drained. */
const CYCLES = 24;
/** Growth of CPU a message that is allowed, in percent. */
const GROWTH_MAX = 10;
const THOUSAND_QUEUES_MAX = 5;
/** Growth of CPU a message within an endurance run, in percent. */
const SLOWDOWN_MAX = 5;
/** A line through samples of resident memory is level within this. */
const LEVEL_MB_PER_MINUTE = 1;

export function judge(ask: Ask): Goal {
  const { subject, goal, value } = ask;
  const few = ask.few ?? '';
  const base = { subject, goal, ...(ask.stretch === true ? { stretch: true } : {}), ...(few === '' ? {} : { isPartial: true }) };
  const notes = [few, ask.note ?? ''].filter((text) => text !== '');
  if (value === undefined || !Number.isFinite(value)) return { ...base, isMet: undefined, measured: 'not measured' };
  const isMet = (ask.atLeast === undefined || value >= ask.atLeast) && (ask.atMost === undefined || value <= ask.atMost);
  const bound = ask.atLeast ?? ask.atMost ?? 0;
  const off = isMet || bound === 0 ? '' : `: ${figure((100 * Math.abs(value - bound)) / bound)}% too ${value < bound ? 'little' : 'much'}`;
  return { ...base, isMet, measured: `${figure(value)}${ask.unit ?? ''}${off}${notes.length === 0 ? '' : ` (${notes.join('; ')})`}` };
}

export function goalsOf(results: Results): Goal[] {
  return [...relayGoals(results), ...storeGoals(results), ...recoveryGoals(results), ...memoryGoals(results), ...growthGoals(results), ...enduranceGoals(results)];
}

function relayGoals(results: Results): Goal[] {
  const subject = 'relay';
  const rows = results.relay?.rows ?? [];
  const peers = results.peers?.rows ?? [];
  const kept = shareOfDirect(rows, 'kept');
  const perSecond = medianOf(rows.filter((row) => row.kind === 'gateway' && row.load === 'kept'), (row) => row.relayedPerSecond);
  const cpu = gatewayCpu(rows);
  const p99 = medianOf(rows.filter((row) => row.kind === 'gateway' && row.load === '80% of kept'), (row) => row.responseP99Ms);
  const haraka = ['Haraka, smtp_forward', 'Haraka, outbound on disk'].flatMap((peer) => peerFactor(peers, peer, cpu) ?? []);
  return [
    judge({ subject, goal: '≥ 0.33 × direct on 50 kept connections', value: kept, atLeast: 0.33 }),
    judge({ subject, goal: '≥ 0.50 × a direct client that does not pipeline', value: shareOfDirect(rows, 'kept', 'kept, no pipelining'), atLeast: 0.5 }),
    judge({ subject, goal: '≥ 11,000 messages a second there', value: perSecond, atLeast: 11_000 }),
    judge({ subject, goal: '≥ 0.30 × direct with 10 messages a connection', value: shareOfDirect(rows, '10 a connection'), atLeast: 0.3 }),
    judge({ subject, goal: 'CPU of gateway and both stores ≤ 95 µs a message', value: cpu, atMost: 95, unit: ' µs' }),
    judge({ subject, goal: 'CPU a message ≥ 12 × less than Postfix on disk', value: peerFactor(peers, 'Postfix, queue on disk', cpu), atLeast: 12, unit: ' ×' }),
    judge({ subject, goal: '≥ 8 × less than Postfix on tmpfs', value: peerFactor(peers, 'Postfix, queue on tmpfs', cpu), atLeast: 8, unit: ' ×' }),
    judge({ subject, goal: '≥ 6 × less than Haraka at its best, forward or outbound', value: haraka.length === 0 ? undefined : Math.min(...haraka), atLeast: 6, unit: ' ×' }),
    judge({ subject, goal: 'p99 response ≤ 14 ms at 80% of that rate', value: p99, atMost: 14, unit: ' ms' }),
    judge({ subject, goal: 'half of direct', value: kept, atLeast: 0.5, stretch: true }),
    judge({ subject, goal: 'CPU ≤ 60 µs a message', value: cpu, atMost: 60, unit: ' µs', stretch: true }),
  ];
}

function storeGoals(results: Results): Goal[] {
  const subject = 'store';
  const rows = results.store?.rows ?? [];
  const factor = (peer: 'memcached' | 'redis list', size: string, atLeast: number, stretch = false): Goal =>
    judge({ subject, goal: `≥ ${atLeast.toFixed(1)} × ${peer} at ${size} KB`, value: storeFactor(rows, peer, size), atLeast, unit: ' ×', stretch, note: storeNote(rows, peer, size) });
  return [
    ...STORE_SIZES_KB.map((size) => factor('redis list', size, 1)),
    factor('memcached', '0.4', 1), factor('memcached', '1', 1),
    judge({ subject, goal: 'both stores ≤ 10 µs of CPU a relayed message', value: storesCpu(results.relay?.rows ?? []), atMost: 10, unit: ' µs' }),
    factor('memcached', '0.4', 2, true), factor('memcached', '1', 1.4, true),
  ];
}

function recoveryGoals(results: Results): Goal[] {
  const subject = 'recovery';
  const rows = blocksOf(results.recovery?.rows ?? []);
  const firstMs = medianOf(firstsOf(results.recovery?.rows ?? []), (row) => 1000 * (row.deliveredSeconds - row.loadedSeconds));
  const seconds = [...new Set(rows.map((row) => row.block))].flatMap((block) => medianOf(rows.filter((row) => row.block === block), (row) => row.recoveredSeconds - row.readySeconds) ?? []);
  const whole = [...new Set(rows.map((row) => row.block))].flatMap((block) => medianOf(rows.filter((row) => row.block === block), (row) => row.recoveredSeconds) ?? []);
  const messages = rows[0]?.messages ?? 0;
  const few = messages === 500_000 ? '' : `with ${messages.toLocaleString('en')} messages`;
  const recovered = results.memory?.rows.find((row) => row.what === 'recover');
  return [
    judge({ subject, goal: '500,000 × 1 KB back within 1 s at the best block size, once the gateway takes mail', value: seconds.length === 0 ? undefined : Math.min(...seconds), atMost: 1, unit: ' s', few }),
    judge({ subject, goal: 'the same from the start of the process', value: whole.length === 0 ? undefined : Math.min(...whole), atMost: 1, unit: ' s', few }),
    judge({ subject, goal: 'first delivery within 300 ms, once the program is loaded', value: firstMs, atMost: 300, unit: ' ms', few }),
    judge({
      subject, goal: '5,000,000 × 0.4 KB back with no turn of the event loop above 50 ms of CPU', value: recovered?.turns.maxMs, atMost: 50, unit: ' ms',
      few: recovered === undefined || recovered.queued === 5 * MILLION ? '' : `with ${recovered.queued.toLocaleString('en')} messages`,
    }),
  ];
}

function memoryGoals(results: Results): Goal[] {
  const subject = 'memory';
  const rows = results.memory?.rows ?? [];
  const fills = fillsOf(rows);
  const million = fills.find((row) => row.queued >= MILLION) ?? fills.at(-1);
  return [
    ...longQueueGoals(rows, 5 * MILLION, 'at 5,000,000'),
    ...longQueueGoals(results.longest?.rows ?? [], 10 * MILLION, 'at 10,000,000, one mirror'),
    judge({ subject, goal: 'CPU of one turn ≤ 20 ms at p99.9 under full load with a million queued', value: million?.turns.p999Ms, atMost: 20, unit: ' ms', few: fewer(million?.queued, MILLION) }),
    ...cycleGoals(rows), ...stayGoals(rows),
  ];
}

function fewer(messages: number | undefined, asked: number): string {
  return messages === undefined || messages === asked ? '' : `with ${messages.toLocaleString('en')} messages`;
}

function longQueueGoals(rows: readonly MemoryRow[], asked: number, at: string): Goal[] {
  const subject = 'memory';
  const last = fillsOf(rows).at(-1);
  const few = fewer(last?.queued, asked);
  return [
    judge({ subject, goal: `gateway ≤ 100 bytes a message beyond content and envelope ${at}`, value: overheadBytes(rows, (row) => row.gatewayBytes), atMost: 100, unit: ' bytes', few }),
    judge({ subject, goal: `store ≤ 100 bytes a message beyond content and envelope ${at}`, value: overheadBytes(rows, (row) => row.storeBytes), atMost: 100, unit: ' bytes', few }),
    judge({ subject, goal: `V8 heap below 200 MB ${at}`, value: last === undefined ? undefined : Math.max(last.heapTotalBytes, last.storeHeapTotalBytes) / MB, atMost: 200, unit: ' MB', few }),
  ];
}

function cycleGoals(rows: readonly MemoryRow[]): Goal[] {
  const subject = 'memory';
  const all = rows.filter((row) => row.what === 'cycle');
  // Rings and heaps grow to their size in the first ones.
  const cycles = all.slice(Math.floor(all.length / 2));
  const rise = (of: (row: (typeof cycles)[number]) => number): number | undefined => (cycles.length < 2 ? undefined : slopeOf(cycles.map((row) => [row.cycle, of(row) / MB] as const)));
  const asks = { subject, atMost: 1, unit: ' MB a cycle', note: `the last ${cycles.length} of ${all.length} cycles`, few: all.length >= CYCLES ? '' : 'few' };
  return [
    judge({ ...asks, goal: 'gateway filled and drained again and again: memory of the drained process does not rise', value: rise((row) => row.gatewayBytes) }),
    judge({ ...asks, goal: 'store: the same', value: rise((row) => row.storeBytes) }),
  ];
}

function stayGoals(rows: readonly MemoryRow[]): Goal[] {
  const row = rows.find(({ what }) => what === 'stay');
  const stay = row?.what === 'stay' ? row : undefined;
  const ask = (who: string, bytes: number | undefined): Goal =>
    judge({ subject: 'memory', goal: `1 message in 100 stays, the others pass: ${who} uses ≤ 1.25 × live bytes`, value: stay === undefined || bytes === undefined ? undefined : bytes / stay.liveBytes, atMost: 1.25, unit: ' ×' });
  return [ask('gateway', stay?.gatewayUsedBytes), ask('store', stay?.storeUsedBytes)];
}

function growthGoals(results: Results): Goal[] {
  const subject = 'growth';
  const rows = results.growth?.rows ?? [];
  const thousand = growthPercent(rows, 'queues', 1000);
  const queues = growthPercent(rows, 'queues');
  const connections = growthPercent(rows, 'connections');
  const rated = growthPercent(rows, 'connections at one rate');
  const queued = queuedGrowthPercent(results.memory?.rows ?? [], 3 * MILLION);
  const note = (of: { readonly to: number } | undefined, asked: number): string => (of === undefined || of.to === asked ? '' : `only to ${of.to.toLocaleString('en')}`);
  return [
    judge({ subject, goal: 'CPU a message rises by ≤ 5% from 10 to 1,000 queues', value: thousand?.percent, atMost: THOUSAND_QUEUES_MAX, unit: '%', few: note(thousand, 1000) }),
    judge({ subject, goal: '≤ 10% from 10 to 10,000 queues', value: queues?.percent, atMost: GROWTH_MAX, unit: '%', few: note(queues, 10_000) }),
    judge({ subject, goal: `≤ 10% from 10 to 10,000 connections at ${GROWTH_RATE.toLocaleString('en')} messages a second`, value: rated?.percent, atMost: GROWTH_MAX, unit: '%', few: note(rated, 10_000) }),
    judge({ subject, goal: '≤ 10% from 10 to 10,000 connections, each sending as fast as it is answered', value: connections?.percent, atMost: GROWTH_MAX, unit: '%', few: note(connections, 10_000) }),
    judge({ subject, goal: '≤ 10% from empty to 3,000,000 queued', value: queued?.percent, atMost: GROWTH_MAX, unit: '%', few: note(queued, 3 * MILLION) }),
  ];
}

function enduranceGoals(results: Results): Goal[] {
  const subject = 'endurance';
  const row = results.endurance?.rows[0];
  const slopes = row?.processes.flatMap(({ process, slopeMbPerMinute }) => (slopeMbPerMinute === undefined ? [] : [{ process, slopeMbPerMinute }])) ?? [];
  const worst = slopes.reduce<(typeof slopes)[number] | undefined>((most, each) => (most === undefined || each.slopeMbPerMinute > most.slopeMbPerMinute ? each : most), undefined);
  const cpu = slowdownPercent(row?.quarters ?? [], (quarter) => quarter.cpuMicrosPerMessage);
  const sink = slowdownPercent(row?.quarters ?? [], (quarter) => quarter.sinkMicrosPerMessage);
  const few = row === undefined || row.minutes >= 30 || row.messages >= 10 * MILLION ? '' : `${row.minutes} minutes only`;
  return [
    judge({ subject, goal: '10,000,000 messages or 30 minutes at 70% load, a fault a minute: memory is level', value: worst?.slopeMbPerMinute, atMost: LEVEL_MB_PER_MINUTE, unit: ` MB a minute in ${worst?.process ?? ''}`, few }),
    judge({ subject, goal: 'no slowdown: CPU a message rises by ≤ 5% from the first quarter to the last', value: cpu, atMost: SLOWDOWN_MAX, unit: '%', few, ...(sink === undefined ? {} : { note: `the sink's, whose work is the same: ${figure(sink)}%` }) }),
    judge({ subject, goal: 'the rate is held: accepted a second, last quarter by first', value: row === undefined ? undefined : row.lastQuarterPerSecond / row.firstQuarterPerSecond, atLeast: 0.98, few }),
  ];
}
