/**
 * G6 and G8: what a gateway offers, looked at after each of its turns and now and then, from what its
 * partitions are; how the gateway itself reckons is not asked (src/gateway/queue/readiness.ts). A route is stuck when no
 * partition has min_replicas members in step, or, strict and with mail, when its own has not.
 *
 *   closed   more than half of the routes stuck: no mail
 *   open     not more than half of them stuck or with a queue still to come back: mail is taken, by itself, as soon as
 *            the process has had its time to hear the stores
 *   back     a queue that comes back in blocks, with mail that is due and the right to deliver it: something of it is
 *            tried within BACK_MS, while later blocks still come and no store is lost or back in between
 *
 * Between closed and open either will do.
 */
import type { GatewayCore } from '../../src/gateway/daemon/core.js';
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import type { MailQueue } from '../../src/gateway/queue/mail-queue.js';
import type { Route } from '../../src/gateway/mail-types.js';
import { GuaranteeBroken } from './broken.js';
import type { Answer } from './next-hops.js';
import type { SimProcess } from './process.js';

export interface ServiceGateway {
  readonly id: string;
  readonly process: SimProcess;
  readonly core: GatewayCore | undefined;
}

/** After these a process that starts takes mail whatever the stores have told: their time to tell, a look at all routes, and some turns. */
const HEARD_SLACK_MS = 1200;
/** Two looks that are farther apart say nothing of what was between them. */
const PORT_GAP_MS = 300;
/** An order that retired it and was taken back since the last look: its partitions are opened by its next tick. */
const OPENED_MS = 60;
/** While blocks come there is a turn every few milliseconds. */
const BACK_GAP_MS = 30;
/** Where memory is short, one body at a time goes round all partitions that come back: eight of them, a turn each. */
const BACK_MS = 120;
/** After this a next hop that was found down is tried again (next-hops.ts), and a turn. */
const DOWN_MS = 550;

interface Since {
  fromMs: number;
  seenMs: number;
  readonly gapMs: number;
}

interface Life {
  readonly core: GatewayCore;
  /** It could have been open all the time. */
  readonly open: Since;
  /** Partitions of its own are closed, and it is not retired. */
  readonly shut: Since;
  /** Queues that come back, with mail due and nothing of it tried. */
  readonly idle: Map<MailQueue, Since>;
  /** Until when the next hop of a queue is taken to be down. */
  readonly downMs: Map<string, number>;
  /** Stores that could be reached at the last look. */
  upCount: number;
}

export class ServiceWatch {
  private readonly minReplicas: number;
  private readonly listMs: number;
  private readonly routes: readonly Route[];
  private readonly lives = new Map<string, Life>();
  /** Processes that have been told to stop: they take no mail. */
  private readonly stopping = new WeakSet<GatewayCore>();

  private readonly isSlow: (gateway: string, store: string) => boolean;

  constructor(
    minReplicas: number, listMs: number, routes: readonly Route[],
    isSlow: (gateway: string, store: string) => boolean,
  ) {
    this.minReplicas = minReplicas;
    this.listMs = listMs;
    this.routes = routes;
    this.isSlow = isSlow;
  }

  look(gateway: ServiceGateway): void {
    const { id, core, process } = gateway;
    if (core === undefined || process.isFrozen) {
      this.lives.delete(id);
      return;
    }
    const known = this.lives.get(id);
    const life = known?.core === core ? known : { core, open: neverSeen(), shut: neverSeen(), idle: new Map<MailQueue, Since>(), downMs: new Map<string, number>(), upCount: 0 };
    this.lives.set(id, life);
    this.lookAtPort(gateway, core, life);
    this.lookAtQueues(gateway, core, life);
  }

  onStop(core: GatewayCore): void {
    this.stopping.add(core);
  }

  /** Something of the queue is tried. */
  onTry({ id, process }: ServiceGateway, queueName: string, answer: Answer): void {
    const life = this.lives.get(id);
    if (life === undefined) return;
    for (const queue of life.idle.keys()) if (queue.name === queueName) life.idle.delete(queue);
    if (answer === 'down') life.downMs.set(queueName, process.nowMs + DOWN_MS);
  }

  private lookAtPort({ id, process }: ServiceGateway, core: GatewayCore, life: Life): void {
    const { partitions } = core.registry;
    let stuck = 0;
    let awaited = 0;
    const mayTake = partitions.some((one) => one.isOwn && !one.isLeaving && copiesOf(one) >= this.minReplicas);
    // Where a copy that counts is missing, the register must let it go first: until then either will do.
    const isSound = partitions.every((one) => !one.isOwn || !one.hasMissing);
    const mayCome = isAwaited(core);
    for (const route of this.routes) {
      const queue = core.registry.find(route);
      // A strict queue with mail waits for its own partition; any other takes new mail where it can be committed.
      if (queue !== undefined && queue.length > 0 && route.ordering === 'strict') {
        if (copiesOf(queue.partition) < this.minReplicas) stuck += 1;
        else if (queue.partition.hasMissing) awaited += 1;
      } else if (!mayTake) stuck += 1;
      else if ((queue === undefined && mayCome) || !isSound) awaited += 1;
    }
    const all = this.routes.length;
    const story = (): string => `${String(upCountOf(core))} stores up, ${String(stuck)} of ${String(all)} routes stuck and ${String(awaited)} awaited`;
    if (stuck * 2 > all && core.accepting) throw new GuaranteeBroken(`G6: ${id} takes mail with ${story()}`);
    // Who is retired takes nothing new; nor does he while partitions of his that have ended begin anew.
    const isShut = !core.holdings.isRetired && partitions.some((one) => one.isOwn && one.isClosed);
    const shutMs = isShut ? lasts(life.shut, process.nowMs) : ended(life.shut);
    if (core.holdings.isRetired || (isShut && shutMs <= OPENED_MS)) {
      ended(life.open);
      return;
    }
    const openMs = (stuck + awaited) * 2 <= all && core.registerAway === '' && core.holdings.expected() === '' ? lasts(life.open, process.nowMs) : ended(life.open);
    if (openMs > this.listMs + HEARD_SLACK_MS && !core.accepting && !this.stopping.has(core)) throw new GuaranteeBroken(`G6: ${id} takes no mail though for ${openMs.toFixed(0)} ms there have been ${story()}`);
  }

  private lookAtQueues({ id, process }: ServiceGateway, core: GatewayCore, life: Life): void {
    const nowMs = process.nowMs;
    const upCount = upCountOf(core);
    // What a lost store was asked for is asked for again at another one.
    if (upCount !== life.upCount) life.idle.clear();
    life.upCount = upCount;
    for (const queue of core.registry.queues()) {
      const mirror = queue.partition;
      const isIdle = queue.isRecovering && queue.routed && !mirror.isLeaving && !queue.isBehind && queue.readyCount > 0 && queue.inFlightCount === 0 && queue.blockedUntilMs <= nowMs && (life.downMs.get(queue.name) ?? 0) <= nowMs && mirror.mayDeliver(nowMs) && this.isSourceQuick(id, core, mirror);
      if (!isIdle) {
        life.idle.delete(queue);
        continue;
      }
      const since = life.idle.get(queue) ?? { fromMs: nowMs, seenMs: nowMs, gapMs: BACK_GAP_MS };
      life.idle.set(queue, since);
      const idleMs = lasts(since, nowMs);
      if (idleMs > BACK_MS) throw new GuaranteeBroken(`G8: ${id} has tried nothing of ${queue.name} for ${idleMs.toFixed(0)} ms while its blocks come, with ${String(queue.readyCount)} messages due`);
    }
  }

  /** What is read can be asked for, and comes at once: nothing does from a store that is away. */
  private isSourceQuick(id: string, core: GatewayCore, { set }: Partition): boolean {
    const source = set?.source;
    if (source === undefined) return true;
    return core.mirrors.stores.some(({ storeId, isUp }) => storeId === source.storeId && isUp)
      && !this.isSlow(id, source.storeId);
  }
}

/** Partitions of its own are still to come, or not whole. */
function isAwaited(core: GatewayCore): boolean {
  return core.holdings.expected() !== '' || core.registry.partitions.some((one) => one.isOwn && one.isRecovering);
}

/** Recorded members that are in step. */
function copiesOf(partition: Partition): number {
  let count = 0;
  for (const row of partition.rows) if (row.isRecorded && row.isInStep) count += 1;
  return count;
}

function upCountOf(core: GatewayCore): number {
  let count = 0;
  for (const store of core.mirrors.stores) if (store.isUp) count += 1;
  return count;
}

function neverSeen(): Since {
  return { fromMs: Infinity, seenMs: -Infinity, gapMs: PORT_GAP_MS };
}

/** For how long it has been so at each look. */
function lasts(since: Since, nowMs: number): number {
  if (nowMs - since.seenMs > since.gapMs) since.fromMs = nowMs;
  since.seenMs = nowMs;
  return nowMs - since.fromMs;
}

function ended(since: Since): number {
  since.seenMs = -Infinity;
  return 0;
}
