/**
 * What a seed decides before its run begins: the size of the world, its times, and which faults it is about.
 */
import { Prng } from '../../../src/base/prng.js';

export const OWNERSHIP_FAULTS = [
  'kill-process', 'kill-store', 'kill-both', 'kill-many', 'kill-source', 'stop-store', 'freeze-process', 'freeze-store',
    'cut-link', 'cut-one-way', 'isolate-gateway', 'split',
  'isolate-store', 'register-away', 'register-late', 'register-cut', 'rollback', 'relocate',
    'start-elsewhere', 'hop-down', 'give-up', 'empty', 'lose-all',
  // Plots: faults in an order that chance does not find.
  'moved-back', 'appointed-blind', 'impatient',
] as const;
/** In half of the seeds only, drawn apart. */
const EXTRA_FAULTS = ['damaged-file', 'late-file', 'large-file', 'config'] as const;
/** In some of these, drawn apart again: all are stopped in good order, and find their disks later than their start. */
const LATE_SITE = 'late-site';
const PLOTS: readonly OwnershipFault[] = ['moved-back', 'appointed-blind', 'impatient', 'empty'];
/** In seeds of their own: files of gateways change how many workers there are, or the id. */
const ID_FAULTS = ['workers', 'rename'] as const;
export type OwnershipFault = (typeof OWNERSHIP_FAULTS)[number] | (typeof EXTRA_FAULTS)[number] | typeof LATE_SITE
  | (typeof ID_FAULTS)[number];

/** Whose ids change, and who delivers for ids that are no more. */
export interface IdsPlan {
  /**
   * file   one machine: its upper process keeps the register for its workers, and no other gateway knows of it
   * group  etcd; each gateway's file names all that there are when it starts
   * all    etcd; no file names any, so that only a person can tell who is gone
   */
  readonly layout: 'file' | 'group' | 'all';
  /** For so long who has no key is not taken for gone. */
  readonly graceMs: number;
  readonly workers: number;
}

export interface OwnershipPlan {
  readonly seed: number;
  readonly gateways: number;
  /** Rescuers do not wait for one another: each takes itself for the first. */
  readonly takeNoTurns: boolean;
  readonly owners: number;
  readonly partitionsEach: number;
  readonly stores: number;
  /** Labels of entries within a partition: each has an order of its own. */
  readonly queues: number;
  /** Operators hold, release and delete. */
  readonly hasOrders: boolean;
  /** Of a message; Infinity: none. */
  readonly lifetimeMs: number;
  readonly replicas: number;
  readonly minReplicas: number;
  readonly leaseMs: number;
  readonly ringLength: number;
  readonly readMs: number;
  readonly loadMs: number;
  readonly faults: readonly OwnershipFault[];
  readonly faultGapMs: number;
  readonly faultsMs: number;
  /** What died is not started again when faults stop, if the rest can do without. */
  readonly deadStayDead: boolean;
  /** Undefined: each gateway keeps its id, and each process looks at every partition. */
  readonly ids: IdsPlan | undefined;
}

/** Of seven seeds one; none that has found something (ownership.test.ts). */
const TURNLESS = 6;
const TURNLESS_OF = 7;

/** `extras`: half of the seeds have more than the first kinds of the world, drawn apart: the rest is as it was. */
export function ownershipPlanOf(seed: number, extras: boolean): OwnershipPlan {
  const plan = firstPlanOf(seed);
  const random = new Prng(seed * 15_485_863 + 3);
  if (!extras || random.below(2) === 0) return plan;
  return withIds({
    ...plan,
    stores: random.below(3) === 0 ? 2 + random.below(7) : plan.stores,
    queues: random.pick([1, 1, 2, 5, 30, 200]),
    hasOrders: random.below(2) === 0,
    lifetimeMs: random.pick([Infinity, Infinity, 4000, 15_000]),
    faults: [...plan.faults, ...EXTRA_FAULTS.filter(() => random.below(4) === 0), ...lateSiteOf(seed)],
  });
}

function lateSiteOf(seed: number): readonly OwnershipFault[] {
  return new Prng(seed * 32_452_843 + 11).below(8) === 0 ? [LATE_SITE] : [];
}

function firstPlanOf(seed: number): OwnershipPlan {
  const random = new Prng(seed * 7919 + 13);
  const stores = 2 + random.below(4);
  const replicas = stores >= 4 && random.below(4) === 0 ? 3 : 2;
  const chosen = OWNERSHIP_FAULTS.filter((kind) => {
    if (PLOTS.includes(kind) && kind !== 'empty') return false;
    if (kind === 'lose-all') return random.below(10) === 0;
    if (kind === 'register-late' || kind === 'cut-link') return random.below(5) < 3;
    if (kind === 'give-up') return random.below(10) === 0;
    if (kind === 'empty') return random.below(4) === 0;
    if (kind === 'rollback') return random.below(5) === 0;
    return random.below(5) < 2;
  });
  // Drawn apart. A plot needs some quiet: in half of the runs that have one, there is little else.
  const plots = new Prng(seed * 104_729 + 5);
  const plot = plots.below(5) < 2 ? [plots.pick(PLOTS)] : [];
  const others = plot.length > 0 && plots.below(2) === 0 ? chosen.slice(0, 1) : chosen;
  const faults = [...new Set([...others, ...plot])];
  return {
    seed,
    gateways: 1 + random.below(3),
    takeNoTurns: seed % TURNLESS_OF === TURNLESS,
    owners: 1,
    partitionsEach: 1 + random.below(2),
    stores,
    queues: 1,
    hasOrders: false,
    lifetimeMs: Infinity,
    replicas,
    minReplicas: random.below(4) === 0 ? 2 : 1,
    leaseMs: 2000 + random.below(2) * 1000,
    ringLength: random.pick([2, 5, 20, 1000]),
    readMs: random.pick([20, 300, 1500]),
    loadMs: random.pick([40, 120, 400]),
    faults: faults.length > 0 ? faults : ['kill-process', 'kill-store'],
    faultGapMs: random.pick([400, 1200, 3000]),
    faultsMs: 40_000,
    deadStayDead: random.below(3) === 0,
    ids: undefined,
  };
}

/** Of seeds with extras one in so many; none that has found something (ownership.test.ts). */
const IDS_OF = 3;
/** Of graces the one of production: it ends long after all faults. */
const ABSENT_MS = 600_000;
const SIBLINGS_START_MS = 4000;
/** Plots count on the same gateways all along; a loss of everything is judged where nobody comes and goes. */
const NOT_WITH_IDS: readonly OwnershipFault[] = [
  'moved-back', 'appointed-blind', 'impatient', 'empty', 'lose-all',
];

function withIds(plan: OwnershipPlan): OwnershipPlan {
  const random = new Prng(plan.seed * 49_979_687 + 23);
  if (random.below(IDS_OF) !== 2) return plan;
  const layout = random.pick(['file', 'group', 'group', 'all'] as const);
  const graceMs = layout === 'file' ? SIBLINGS_START_MS : random.pick([2000, 8000, ABSENT_MS]);
  const kinds = random.pick([ID_FAULTS, ['workers'], ['rename']] as const);
  const others = plan.faults.filter((kind) => !NOT_WITH_IDS.includes(kind));
  return {
    ...plan,
    gateways: layout === 'file' ? 1 : plan.gateways,
    faults: [...others, ...kinds],
    deadStayDead: plan.deadStayDead && layout !== 'file',
    ids: { layout, graceMs, workers: 1 + random.below(2) },
  };
}
