/**
 * One seed of the simulation: a plan, its faults, then calm, and the verdict.
 *
 *   STEPS steps of mail and faults ─► calm ─► drained: everything accepted has ended, mirrors agree
 *                                        └──► not within DRAIN_MS: a failure, unless in a state named in waiting.ts
 */
import type { GatewayCore } from '../../src/gateway/core.js';
import { SyncState } from '../../src/gateway/mirror/replica.js';
import type { MailQueue } from '../../src/gateway/queue/mail-queue.js';
import { ROLE_MEMBER } from '../../src/protocol/reasons.js';
import { queuesOf } from '../scenario/inspect.js';
import { keyOfMirror, keyOfStored } from './custody.js';
import { GuaranteeBroken, NotDrained } from './broken.js';
import type { FaultKind } from './plan.js';
import { Operator } from './operator.js';
import { planOf } from './plan.js';
import { Swarm } from './swarm.js';
import { waitingJobs, waitingState } from './waiting.js';
import { World } from './world.js';

/** Virtual time in which a healed world must be empty: leases, retries and claims put off add up to a fraction of it. */
const DRAIN_MS = 120_000;
/** Longer with stores that never come back: mirrors move away, and an operator looks now and then. */
const OPERATED_MS = 60_000;
const LOOK_MS = 50;
/** One that is back: queues go on there and drain as before. */
const RETURNED_MS = 120_000;
/** The longest silence that a link bears, and a handshake. */
const NOTICED_MS = 5000;

export interface RunOptions {
  readonly steps: number;
  /** Gets every traced event as text. */
  readonly onTrace?: (atMs: number, text: string) => void;
  /** A world that does not drain in time is no failure. */
  readonly isSafetyOnly?: boolean;
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
  /** The named state in which the world waits; '' when it drained. */
  readonly waiting: string;
  readonly virtualMs: number;
}

export function simulate(seed: number, options: RunOptions): RunResult {
  const world = new World(planOf(seed, options.steps));
  const { onTrace } = options;
  if (onTrace !== undefined) world.scheduler.onTrace = (text) => { onTrace(world.scheduler.nowMs, text); };
  const swarm = new Swarm(world);
  let failure = '';
  let waiting = '';
  try {
    world.run(1000);
    for (let step = 0; step < options.steps; step++) {
      swarm.step();
      lookAtAll(world);
      options.sabotage?.(world, step);
    }
    swarm.calm();
    const queues = untilDrained(world, swarm);
    waiting = [...new Set(queues.values())].sort().join(' and ');
    world.guarantees.onDrained(new Set(queues.keys()));
  } catch (error) {
    if (!(error instanceof NotDrained && options.isSafetyOnly === true)) failure = error instanceof GuaranteeBroken ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
  return {
    seed, failure, lastLog: failure === '' ? '' : world.lastLog(), traceHash: world.scheduler.traceHash, stepCount: world.scheduler.stepCount, fired: [...swarm.fired],
    accepted: world.ledger.accepted, dots: world.ledger.dots, excused: world.custody.excused, waiting, virtualMs: world.scheduler.nowMs,
  };
}

/** Runs until the world is empty and whole, but for queues that wait for the operator; the names of their states. */
function untilDrained(world: World, swarm: Swarm): ReadonlyMap<string, string> {
  // Before that a process may not have noticed what it has lost.
  world.run(NOTICED_MS);
  const operator = new Operator(world);
  const { castaway } = swarm;
  let end = world.scheduler.nowMs + DRAIN_MS + (world.lostStores.size > 0 ? OPERATED_MS : 0);
  let why = whyNotDrained(world, NONE);
  while (why !== '' || castaway.isOpen) {
    if (world.scheduler.nowMs >= end) {
      const waiting = waitingQueues(world);
      const besides = whyNotDrained(world, waiting);
      if (waiting.size > 0 && besides === '') return waiting;
      throw new NotDrained(`the world does not drain within ${String(DRAIN_MS)} ms: ${besides === '' ? why : besides}`);
    }
    swarm.startAll();
    if (castaway.isUnderWay) end = world.scheduler.nowMs + RETURNED_MS;
    else operator.look();
    releasePoison(world);
    castaway.look(operator.isHeld);
    world.run(LOOK_MS);
    lookAtAll(world);
    why = whyNotDrained(world, NONE);
  }
  checkMirrorsAgree(world);
  return NONE;
}

/**
 * A message that two processes had in hand when they ended is held alone, be it their fault or not (docs/GUARANTEES.md
 * "Poison"): its operator lets it go on, as one who has looked at it.
 */
function releasePoison({ gateways }: World): void {
  for (const { core } of gateways) {
    if (core === undefined) continue;
    for (const queue of core.registry.queues()) {
      for (let row = queue.first; row !== 0; row = queue.following(row)) {
        if (!core.holds.reasonOf(queue, row).startsWith('it was in hand')) continue;
        core.holds.release({ messageId: core.entries.table.messageId(row), reason: 'it is innocent', who: 'ann' }, () => {});
      }
    }
  }
}

function lookAtAll(world: World): void {
  for (const gateway of world.gateways) world.service.look(gateway);
}

const NONE: ReadonlyMap<string, string> = new Map();

function waitingQueues(world: World): Map<string, string> {
  const waiting = new Map<string, string>();
  for (const { core } of world.gateways) {
    for (const [key, state] of core === undefined ? [] : waitingJobs(core)) {
      // Else the other gateway has its mail, and waits for its operator: below.
      if (state !== 'held elsewhere' || world.custody.disasters.has(key)) waiting.set(key, state);
    }
    for (const mirror of core?.registry.partitions ?? []) {
      const state = waitingState(mirror);
      if (state !== '') waiting.set(keyOfMirror(mirror), state);
    }
  }
  return waiting;
}

/** G3: mail that a queue took in another partition starts after all that it has in the one that waits. */
function standsBehind(queue: MailQueue, core: GatewayCore, waiting: ReadonlyMap<string, string>): boolean {
  return queue.isBehind && core.registry.partitions.some((one) => one.isOwn && waiting.has(keyOfMirror(one)) && (one.queues.get(queue.label)?.readyCount ?? 0) > 0);
}

/** `waiting`: queues that are not looked at; a report may wait for one of them. */
function whyNotDrained(world: World, waiting: ReadonlyMap<string, string>): string {
  for (const { id, core, isTwin } of world.gateways) {
    if (isTwin && core === undefined) continue;
    if (isTwin) return `${id} still runs beside the process that has its id`;
    if (core === undefined) return `${id} is not running`;
    // With more than half of its routes waiting, or still to come back, a gateway closes its port (G6).
    const isWaiting = core.recovery.openCount > 0 || core.registry.partitions.some((mirror) => waiting.has(keyOfMirror(mirror)));
    if (!core.accepting && !isWaiting) return `${id} takes no mail`;
    const unheard = core.recovery.silentStores.filter((store) => !world.lostStores.has(store));
    if (unheard.length > 0) return `${id} has not heard ${unheard.join()}`;
    // Also one whose stand-in lives, and waits for its operator with it.
    const held = core.recovery.held().filter(({ key, owner, state }) => owner === id && state !== 'no survivor' && waiting.has(key));
    if (core.recovery.openCount > held.length) return `${id} still recovers ${String(core.recovery.openCount)} queues`;
    if (core.commitPoint.openCount > 0 && waiting.size === 0) return `${id} has ${String(core.commitPoint.openCount)} commits open`;
    if (core.reports.openCount > 0 && waiting.size === 0) return `${id} makes ${String(core.reports.openCount)} reports`;
    for (const mirror of core.registry.partitions) {
      if (waiting.has(keyOfMirror(mirror))) continue;
      for (const queue of mirror.queues.values()) if (queue.length > 0 && !standsBehind(queue, core, waiting)) return `${id} has ${String(queue.length)} messages in ${queue.name} (${keyOfMirror(mirror)}): ready ${String(queue.readyCount)}, in flight ${String(queue.inFlightCount)}, deferred ${String(queue.deferredCount)}, held ${String(queue.heldCount)}, recovering ${String(queue.isRecovering)}, behind ${String(queue.isBehind)}`;
      if (mirror.setChangeNumber !== 0 || mirror.isDirty || mirror.committedNumber !== mirror.lastNumber) return `${id} has changes of ${mirror.name} open`;
      for (const replica of mirror.replicas) if (!world.lostStores.has(replica.store.storeId) && (!replica.member || replica.sync !== SyncState.SYNC || replica.acked !== mirror.lastNumber)) return `${id} has a mirror of ${mirror.name} at ${replica.store.storeId} that is not in sync`;
    }
  }
  return whatIsLeft(world, waiting);
}

/**
 * A store that was cut off and is back keeps mirrors in sync; besides, at most a refill that never ended of a queue that
 * nobody has, and what a rescuer gave back there before, which its owner touches only when it claims it.
 */
function whatIsLeft({ stores, gateways, returned }: World, waiting: ReadonlyMap<string, string>): string {
  const store = stores.find((one) => one === returned)?.store;
  for (const queue of store === undefined ? [] : queuesOf(store)) {
    const key = keyOfStored(queue);
    const served = gateways.flatMap(({ core }) => core?.registry.partitions.filter((mirror) => keyOfMirror(mirror) === key) ?? []);
    const isMirror = served.some(({ replicas }) => replicas.some((replica) => replica.store.storeId === returned?.id && replica.inSync));
    if (!isMirror && queue.holderToken !== 0 && !waiting.has(key) && (served.length > 0 || queue.role === ROLE_MEMBER)) return `${returned?.id ?? ''} is back and keeps a copy of ${queue.attributes.name} (${key}) that is no mirror`;
  }
  return '';
}

/** Every copy that counts as in sync holds nothing, at the number and digest of its gateway. */
function checkMirrorsAgree(world: World): void {
  for (const { id, core } of world.gateways) {
    for (const mirror of core?.registry.partitions ?? []) {
      for (const replica of mirror.replicas) {
        if (world.lostStores.has(replica.store.storeId)) continue;
        const store = world.stores.find((one) => one.id === replica.store.storeId)?.store;
        const queue = store === undefined ? undefined : queuesOf(store, mirror.name).find((one) => keyOfStored(one) === keyOfMirror(mirror));
        const where = `${mirror.name} of ${id} at ${replica.store.storeId}`;
        if (queue === undefined) throw new GuaranteeBroken(`mirrors: ${where} does not exist, and counts as in sync`);
        if (queue.number !== mirror.lastNumber || queue.digestA !== mirror.digest.a || queue.digestB !== mirror.digest.b || queue.count !== 0 || queue.epoch !== mirror.epoch) {
          throw new GuaranteeBroken(`mirrors: ${where} is at number ${String(queue.number)} epoch ${String(queue.epoch)} with ${String(queue.count)} entries, its gateway at ${String(mirror.lastNumber)} epoch ${String(mirror.epoch)}`);
        }
      }
    }
  }
}
