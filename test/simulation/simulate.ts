/**
 * One seed of the simulation: a plan, its faults, then calm, and the verdict.
 *
 *   STEPS steps of mail and faults ─► calm ─► drained: everything accepted has ended, mirrors agree
 *                                        └──► not within DRAIN_MS: a failure. Nobody is asked, but where stores never
 *                                             come back (operator.ts)
 */
import { isMemberOf } from '../../src/protocol/partition-record.js';
import { GuaranteeBroken } from './broken.js';
import type { FaultKind } from './plan.js';
import { Operator } from './operator.js';
import { planOf } from './plan.js';
import { Swarm } from './swarm.js';
import { World } from './world.js';

/** Virtual time in which a healed world must be empty: leases, sessions and retries add up to a fraction of it. */
const DRAIN_MS = 120_000;
/** Longer with stores that never come back: mirrors move away, and an operator looks now and then. */
const OPERATED_MS = 60_000;
const LOOK_MS = 50;
/** The longest silence that a link bears, and a handshake. */
const NOTICED_MS = 5000;
/** Of so many worlds one has an operator who gives copies up that come back. */
const HASTY_EVERY = 3;

export interface RunOptions {
  readonly steps: number;
  /** Gets every traced event as text. */
  readonly onTrace?: (atMs: number, text: string) => void;
  /** Breaks a guarantee on purpose at this step: the canary of the checkers. */
  readonly sabotage?: (world: World, step: number) => void;
}

export interface RunResult {
  readonly seed: number;
  readonly failure: string;
  readonly lastLog: string;
  readonly traceHash: number;
  readonly stepCount: number;
  readonly fired: readonly (readonly [FaultKind, number])[];
  readonly accepted: number;
  readonly dots: number;
  /** Copies that the faults really took from every holder. */
  readonly excused: number;
  readonly virtualMs: number;
}

export function simulate(seed: number, options: RunOptions): RunResult {
  const world = new World(planOf(seed, options.steps));
  const { onTrace } = options;
  if (onTrace !== undefined) world.scheduler.onTrace = (text) => { onTrace(world.scheduler.nowMs, text); };
  const swarm = new Swarm(world);
  const hasty = seed % HASTY_EVERY === 0 ? new Operator(world) : undefined;
  let failure = '';
  try {
    world.run(1000);
    for (let step = 0; step < options.steps; step++) {
      swarm.step();
      hasty?.lookInHaste();
      lookAtAll(world);
      options.sabotage?.(world, step);
    }
    swarm.calm();
    untilDrained(world, swarm);
    world.guarantees.onDrained();
  } catch (error) {
    failure = error instanceof GuaranteeBroken ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
  return {
    seed, failure, lastLog: failure === '' ? '' : world.lastLog(), traceHash: world.scheduler.traceHash, stepCount: world.scheduler.stepCount, fired: [...swarm.fired],
    accepted: world.ledger.accepted, dots: world.ledger.dots, excused: world.custody.excused, virtualMs: world.scheduler.nowMs,
  };
}

/** Runs until the world is empty and whole. */
function untilDrained(world: World, swarm: Swarm): void {
  // Before that a process may not have noticed what it has lost.
  world.run(NOTICED_MS);
  const operator = new Operator(world);
  const end = world.scheduler.nowMs + DRAIN_MS + (world.lostStores.size > 0 ? OPERATED_MS : 0);
  for (let why = whyNotDrained(world); why !== ''; why = whyNotDrained(world)) {
    if (world.scheduler.nowMs >= end) throw new GuaranteeBroken(`the world does not drain within ${String(DRAIN_MS)} ms: ${why}`);
    swarm.startAll();
    swarm.takeBack();
    operator.look();
    releasePoison(world);
    world.run(LOOK_MS);
    lookAtAll(world);
  }
  checkMirrorsAgree(world);
}

/**
 * A message that two processes had in hand when they ended is held alone, be it their fault or not (docs/GUARANTEES.md
 * "Reports"): its operator lets it go on, as one who has looked at it.
 */
function releasePoison({ gateways }: World): void {
  for (const { core } of gateways) {
    if (core === undefined) continue;
    for (const queue of core.registry.queues()) {
      for (let row = queue.first; row !== 0; row = queue.following(row)) {
        if (!core.holds.reasonOf(queue, row).startsWith('it was in hand')) continue;
        core.holds.releaseEntry(queue, row, { reason: 'it is innocent', who: 'ann' });
      }
    }
  }
}

function lookAtAll(world: World): void {
  for (const gateway of world.gateways) world.service.look(gateway);
}

function whyNotDrained(world: World): string {
  for (const [partition, { gaveUp }] of world.records()) {
    const back = gaveUp.find(({ storeId, bootId }) => world.stores.find(({ id }) => id === storeId)?.node.bootId === bootId);
    if (back !== undefined) return `${partition} has not taken in what was given up at ${back.storeId}`;
  }
  for (const { id } of world.stores) {
    if (!world.lostStores.has(id) && world.register.isGivenUp(id)) return `${id}, which was given up, is not told of all that has ended`;
  }
  for (const { id, gatewayId, core, isTwin } of world.gateways) {
    if (isTwin && core === undefined) continue;
    if (isTwin) return `${id} still runs beside the process that has its id`;
    if (core === undefined) return `${id} is not running`;
    if (!core.accepting) return `${id} takes no mail`;
    const own = core.registry.partitions.filter((partition) => partition.ownerId === gatewayId);
    if (own.length < world.plan.partitions) return `${id} holds ${String(own.length)} of its ${String(world.plan.partitions)} partitions: ${core.holdings.waiting().map(({ partition, waitsFor }) => `${partition} waits for ${waitsFor}`).join()}`;
    if (core.registry.partitions.length > own.length) return `${id} still serves partitions of others`;
    if (core.holdings.openCount > 0) return `${id} still recovers ${String(core.holdings.openCount)} partitions`;
    if (core.commitPoint.openCount > 0) return `${id} has ${String(core.commitPoint.openCount)} commits open`;
    if (core.reports.openCount > 0) return `${id} makes ${String(core.reports.openCount)} reports`;
    for (const partition of core.registry.partitions) {
      for (const queue of partition.queues.values()) {
        if (queue.length > 0) return `${id} has ${String(queue.length)} messages in ${queue.name} (${partition.name}): ready ${String(queue.readyCount)}, in flight ${String(queue.inFlightCount)}, deferred ${String(queue.deferredCount)}, held ${String(queue.heldCount)}, behind ${String(queue.isBehind)}, may deliver ${String(partition.mayDeliver(world.scheduler.nowMs))}`;
      }
      if (partition.set?.records.isSettled !== true) return `${id} has a change of the record of ${partition.name} open`;
      if (partition.isDirty || partition.ackedNumber !== partition.lastNumber) return `${id} has changes of ${partition.name} open`;
      for (const row of partition.rows) {
        if (world.lostStores.has(row.storeId)) continue;
        if (row.shown !== 'SYNC' || row.acked !== partition.lastNumber) return `${id} has a copy of ${partition.name} at ${row.storeId} that is ${row.shown} ${row.phase} at ${String(row.acked)} of ${String(partition.lastNumber)}`;
      }
      const wanted = Math.min(2, world.stores.length - world.lostStores.size);
      if (partition.inSyncCount < wanted) return `${id} has ${String(partition.inSyncCount)} copies of ${partition.name}`;
    }
  }
  return whatIsLeft(world);
}

/** Copies that no record names, once everybody was told: those that were never filled, too. */
function whatIsLeft(world: World): string {
  const present = new Map(world.present());
  for (const { id, store } of world.stores) {
    for (const { partition, count, isComplete, number, fence } of store?.partitions.copies() ?? []) {
      const record = present.get(partition);
      // Of a founding that came to nothing, above the seconds of the clock: a record above it takes it back.
      if (isComplete && number === 0 && fence.term.number > (record?.epoch ?? 0)) continue;
      if (store === undefined || isMemberOf(record?.members ?? [], id, store.bootId)) continue;
      const what = isComplete ? `with ${String(count)} messages` : 'that is not complete';
      return `${id} keeps a copy of ${partition} ${what} that no record names`;
    }
  }
  return '';
}

/** Every copy that counts as in step holds nothing, at the number and digest of its gateway. */
function checkMirrorsAgree(world: World): void {
  for (const { id, core } of world.gateways) {
    for (const partition of core?.registry.partitions ?? []) {
      for (const { storeId } of partition.rows) {
        if (world.lostStores.has(storeId)) continue;
        const copy = world.stores.find((one) => one.id === storeId)?.store?.partitions.find(partition.name);
        const where = `${partition.name} of ${id} at ${storeId}`;
        if (copy === undefined) throw new GuaranteeBroken(`mirrors: ${where} does not exist, and counts as in step`);
        if (copy.number !== partition.lastNumber || copy.digestA !== partition.digest.a || copy.digestB !== partition.digest.b || copy.count !== 0) {
          throw new GuaranteeBroken(`mirrors: ${where} is at number ${String(copy.number)} with ${String(copy.count)} entries, its gateway at ${String(partition.lastNumber)}`);
        }
      }
    }
  }
}
