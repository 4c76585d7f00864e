/**
 * What a seed decides before its run begins: the size of the world, its limits and times, and which kinds of
 * fault it is about. Most kinds are off, so that the others meet one another often (swarm testing).
 */
import { Prng } from '../../src/base/prng.js';
import type { Ordering } from '../../src/gateway/mail-types.js';

export const FAULT_KINDS = [
  'kill-gateway', 'kill-store', 'blink', 'stop-gateway', 'stop-store', 'freeze-gateway', 'freeze-store', 'reset-path', 'cut-path', 'cut-link', 'stall-path',
  'one-way', 'partition', 'isolate', 'slow-link', 'small-chunks', 'full-store', 'full-gateway', 'clocks', 'hop-defers', 'hop-rejects', 'hop-hangs',
  'hop-cuts', 'hop-down', 'resend', 'replace', 'drain-store', 'rebalance', 'planned-stop', 'twin', 'lose-store', 'hop-verbose', 'many-recipients',
  'register-away', 'register-slow', 'register-late', 'register-loses', 'register-cut', 'register-rollback',
] as const;
/** Orders of operators that begin and end partitions: in seeds of their own, beside what else these have. */
const RETIRE = 'retire';
const RETIRE_EVERY = 5;
/** Hooks that let messages wait before they are submitted: in seeds of their own too, but in no story, which counts on its messages. */
const LATE_HOOK = 'late-hook';
const LATE_HOOK_EVERY = 4;
/** Stories told step by step (plots.ts), each about one rule of who may write and who may deliver. */
export const PLOTS = [
  'plot-frozen-owner', 'plot-stale-copy', 'plot-spilled-owner', 'plot-drain-cut', 'plot-change-in-doubt', 'plot-refill-live', 'plot-refusal-lost', 'plot-taker-dies',
  'plot-hand-back', 'plot-both-stores', 'plot-both-lost', 'plot-pair', 'plot-source-dies', 'plot-short-memory',
  'plot-given-up', 'plot-small-taker',
] as const;
/** A story of its own seeds, as retirements are: what others tell stays as it was. */
const ENDED_WITHOUT = 'plot-ended-without';
const ENDED_WITHOUT_EVERY = 10;
export type PlotName = (typeof PLOTS)[number] | typeof ENDED_WITHOUT;
/** 'spill': a store came back with what its file held; 'begins-empty': every copy was lost. Both follow from others. */
export type FaultKind = (typeof FAULT_KINDS)[number] | PlotName | typeof RETIRE | typeof LATE_HOOK | 'spill' | 'begins-empty' | 'give-up-ended';
export const ALL_KINDS: readonly FaultKind[] = [...FAULT_KINDS, ...PLOTS, ENDED_WITHOUT, RETIRE, LATE_HOOK, 'spill', 'begins-empty', 'give-up-ended'];

/** Kinds that take nothing away for longer than a lease lasts. */
const HARMLESS: readonly FaultKind[] = ['blink', 'small-chunks', 'clocks', 'hop-defers', 'hop-rejects', 'hop-hangs', 'hop-cuts', 'hop-down', 'resend', 'hop-verbose', 'many-recipients'];

export interface QueuePlan {
  readonly name: string;
  readonly ordering: Ordering;
  readonly concurrency: number;
}

export interface Plan {
  readonly seed: number;
  readonly steps: number;
  readonly kinds: ReadonlySet<FaultKind>;
  /** The story that the run tells beside its faults. */
  readonly plot: PlotName | undefined;
  /** A second process of the first gateway's id is started now and then. */
  readonly hasTwin: boolean;
  /** Nothing of it takes a store, a path or a lease away: no mirror may be isolated. */
  readonly isHarmless: boolean;
  readonly gateways: readonly string[];
  /** No gateway names them as its group: it is that of all whom the register knows. */
  readonly isGroupLeftOut: boolean;
  readonly stores: readonly string[];
  readonly queues: readonly QueuePlan[];
  readonly minReplicas: number;
  /** Of each gateway. */
  readonly partitions: number;
  /** Nothing proves to a gateway that starts that its older process is gone. */
  readonly olderMayLive: boolean;
  readonly heartbeatMs: number;
  readonly failoverTimeoutMs: number;
  readonly leaseMs: number;
  readonly commitTimeoutMs: number;
  readonly blockEntries: number;
  /** Bodies come along with blocks when no more than this is to come. */
  readonly littleBytes: number;
  readonly refillFrameBytes: number;
  readonly windowBytes: number;
  /** Of the last changes at a gateway, out of which a mirror that was away gets what it missed. */
  readonly ringBytes: number;
  readonly storeMemoryBytes: number;
  /** Share of a gateway's memory at which new mail stops. */
  readonly acceptShare: number;
  readonly gatewayMemoryBytes: number;
  readonly replaceAfterMs: number;
  /** Of each message of a story: where these are many, envelopes are what fills memory. */
  readonly storyRecipients: number;
  /** Of a letter's content, now and then. */
  readonly largeBytes: number;
  /** Letters of a step are at most so many. */
  readonly burst: number;
  /** One in so many steps makes a fault. */
  readonly faultEvery: number;
}

const MEBIBYTE = 1024 * 1024;
/** An envelope of so many, with the room for what becomes of each, has some 2 KB: notes of what is in flight fit the reserve. */
const ENVELOPE_RECIPIENTS = 60;
/** Of the eighty messages of the small taker: 6 KB each. */
const FEW_RECIPIENTS = 200;
const ONE_KIND_IN = 5;
const ONE_HARMLESS_IN = 10;
const HEARTBEAT_MS = 250;
const FAILOVER_MS = 700;
/** Kinds that leave a story as it is told. */
const CALM: readonly FaultKind[] = ['small-chunks', 'clocks', 'hop-defers', 'hop-rejects', 'hop-cuts', 'resend', 'replace', 'hop-verbose', 'many-recipients'];

/** Of seven seeds two; none that has found something (simulation.test.ts). */
const LEFT_OUT: readonly number[] = [2, 4];
const LEFT_OUT_OF = 7;

/** Of ten seeds so many tell a story; the rest are swarm alone. */
const STORIES_IN_TEN = 5;

export function planOf(seed: number, steps: number): Plan {
  const prng = new Prng(seed);
  const plot = prng.below(10) < STORIES_IN_TEN ? prng.pick(PLOTS) : undefined;
  const plan = swarmOf(prng, seed, steps);
  if (plot === undefined && seed % ENDED_WITHOUT_EVERY === 7) return { ...plan, ...endedWithoutOf(prng, plan) };
  if (plot !== undefined) return { ...plan, ...stageOf(prng, plan, plot) };
  return seed % LATE_HOOK_EVERY === 3 ? { ...plan, kinds: new Set([...plan.kinds, LATE_HOOK]) } : plan;
}

/** What a story needs: somebody who takes over, a store to spare, leases that end within the run, little else that happens. */
function stageOf(prng: Prng, plan: Plan, plot: PlotName): Partial<Plan> {
  const kinds = new Set(prng.below(2) === 0 ? [...plan.kinds].filter((kind) => CALM.includes(kind)) : plan.kinds);
  return {
    plot, kinds, isHarmless: false, hasTwin: kinds.has('twin'), gateways: ['gw-1', 'gw-2', 'gw-3'].slice(0, prng.pick([2, 2, 3])), stores: ['store-a', 'store-b', 'store-c', 'store-d'].slice(0, plot === 'plot-drain-cut' || plot === 'plot-both-lost' || plot === 'plot-given-up' ? 3 + prng.below(2) : prng.pick([2, 3, 3])),
    leaseMs: 4000, faultEvery: 30, minReplicas: plot === 'plot-change-in-doubt' || plot === 'plot-refill-live' || plot === 'plot-both-lost' || plot === 'plot-given-up' ? 1 : prng.pick([1, 1, 2]), commitTimeoutMs: plot === 'plot-refusal-lost' ? 600 : plan.commitTimeoutMs,
    storeMemoryBytes: 64 * MEBIBYTE, gatewayMemoryBytes: 64 * MEBIBYTE,
    ...(plot === 'plot-small-taker' ? { ...smallOf(kinds), ...(isOfEnvelopes(plan.seed) ? { storyRecipients: FEW_RECIPIENTS } : {}) } : {}),
    ...(plot === 'plot-hand-back' ? { kinds: new Set<FaultKind>([...kinds, 'hop-hangs']) } : {}),
    ...(plot === 'plot-short-memory' ? {
      kinds: new Set<FaultKind>([...kinds, 'hop-defers', 'hop-rejects']), gatewayMemoryBytes: MEBIBYTE / 2,
      acceptShare: 0.8, littleBytes: 0,
      // Twice that, of which an envelope is as much as it was.
      ...(isOfEnvelopes(plan.seed) ? { gatewayMemoryBytes: MEBIBYTE, storyRecipients: ENVELOPE_RECIPIENTS } : {}),
    } : {}),
    ...(plot === 'plot-refill-live' || plot === 'plot-both-stores' ? { refillFrameBytes: 600, windowBytes: 3000, ringBytes: 4000 } : {}),
  };
}

/** In every other of such stories envelopes do not fit, in the rest bodies. */
function isOfEnvelopes(seed: number): boolean {
  return Math.floor(seed / 10) % 2 === 0;
}

/** Somebody who delivers for a gateway that is retired, and a store to spare while another is away. */
function endedWithoutOf(prng: Prng, plan: Plan): Partial<Plan> {
  return {
    ...stageOf(prng, plan, ENDED_WITHOUT), gateways: ['gw-1', 'gw-2'], stores: ['store-a', 'store-b', 'store-c'], minReplicas: 1,
    kinds: new Set([...plan.kinds].filter((kind) => CALM.includes(kind))), hasTwin: false,
  };
}

/** Two gateways, of which one cannot hold what the other has beside the little that it has itself. */
function smallOf(kinds: ReadonlySet<FaultKind>): Partial<Plan> {
  return {
    kinds: new Set([...kinds].filter((kind) => CALM.includes(kind))), hasTwin: false, gateways: ['gw-1', 'gw-2'], partitions: 1, burst: 1, largeBytes: 8000, littleBytes: 0,
    gatewayMemoryBytes: 2 * MEBIBYTE, acceptShare: 0.2,
  };
}

function swarmOf(prng: Prng, seed: number, steps: number): Plan {
  const choice = prng.below(ONE_HARMLESS_IN) === 0 ? HARMLESS : FAULT_KINDS;
  const kinds = new Set<FaultKind>(choice.filter(() => prng.below(choice === HARMLESS ? 2 : ONE_KIND_IN) === 0));
  if (kinds.size === 0) kinds.add(prng.pick(choice));
  if (choice !== HARMLESS && seed % RETIRE_EVERY === 0) kinds.add(RETIRE);
  const gateways = ['gw-1', 'gw-2', 'gw-3'].slice(0, prng.pick([1, 2, 2, 2, 3]));
  const stores = ['store-a', 'store-b', 'store-c', 'store-d'].slice(0, prng.pick([2, 3, 3, 3, 4]));
  const names = ['q1', 'q2', 'q3', 'q4'].slice(0, 1 + prng.below(4));
  const queues = names.map((name): QueuePlan => ({ name, ordering: prng.below(3) === 0 ? 'strict' : 'fifo', concurrency: prng.pick([1, 4, 8]) }));
  return {
    seed, steps, kinds, plot: undefined, hasTwin: kinds.has('twin'), isHarmless: [...kinds].every((kind) => HARMLESS.includes(kind)), gateways, isGroupLeftOut: LEFT_OUT.includes(seed % LEFT_OUT_OF), stores, queues,
    minReplicas: prng.pick([1, 1, 1, 2]),
    partitions: prng.pick([1, 2, 4]),
    olderMayLive: prng.below(4) === 0 || kinds.has('twin'),
    heartbeatMs: HEARTBEAT_MS, failoverTimeoutMs: FAILOVER_MS,
    leaseMs: prng.pick([4000, 6000, 10_000]),
    commitTimeoutMs: prng.pick([600, 1500, 4000]),
    blockEntries: prng.pick([1, 4, 16, 200]),
    littleBytes: seed % 2 === 0 ? 0 : MEBIBYTE,
    refillFrameBytes: prng.pick([600, 2048, 64 * 1024]),
    windowBytes: prng.pick([20_000, MEBIBYTE, 8 * MEBIBYTE]),
    ringBytes: prng.pick([4000, 50_000, MEBIBYTE]),
    storeMemoryBytes: kinds.has('full-store') ? MEBIBYTE : 64 * MEBIBYTE,
    // A low mark, far from the limit: what is on its way to the mirrors stands in memory twice.
    acceptShare: kinds.has('full-gateway') ? 0.2 : 0.8,
    gatewayMemoryBytes: kinds.has('full-gateway') ? MEBIBYTE : 64 * MEBIBYTE,
    replaceAfterMs: kinds.has('replace') ? prng.pick([1000, 3000]) : 30_000,
    storyRecipients: 1,
    largeBytes: kinds.has('full-store') || kinds.has('full-gateway') ? 40_000 : 8000,
    burst: prng.pick([1, 3, 6]),
    faultEvery: prng.pick([3, 6, 15]),
  };
}
