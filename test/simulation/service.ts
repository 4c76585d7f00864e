/**
 * G6 and G8: what a gateway offers, looked at after each of its turns and now and then, from what its stores and queues
 * are; how the gateway itself reckons is not asked (src/gateway/mirror/readiness.ts).
 *
 *   closed   fewer stores up than min_replicas, or every queue that new mail goes to with fewer mirrors in sync: no mail
 *   open     none of these queues short, or none there and enough stores that may be chosen: mail is taken, by itself, as
 *            soon as the process has had its time to hear the stores
 *   back     a queue that comes back in blocks, with mail that is due and the right to deliver it: something of it is
 *            tried within BACK_MS, while later blocks still come
 *
 * Between closed and open either will do: there mail is refused queue by queue.
 */
import type { GatewayCore } from '../../src/gateway/core.js';
import type { QueueMirror } from '../../src/gateway/mirror/queue-mirror.js';
import { SyncState } from '../../src/gateway/mirror/replica.js';
import { GuaranteeBroken } from './broken.js';
import type { Answer } from './next-hops.js';
import type { SimProcess } from './process.js';

export interface ServiceGateway {
  readonly id: string;
  readonly gatewayId: string;
  readonly process: SimProcess;
  readonly core: GatewayCore | undefined;
}

/** After these a process that starts takes mail whatever the stores have told: their time to tell, and some turns. */
const HEARD_SLACK_MS = 200;
/** Two looks that are farther apart say nothing of what was between them. */
const PORT_GAP_MS = 300;
/** While blocks come there is a turn every few milliseconds. */
const BACK_GAP_MS = 30;
/** Turns enough to begin. */
const BACK_MS = 60;
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
  /** Queues that come back, with mail due and nothing of it tried. */
  readonly idle: Map<QueueMirror, Since>;
  /** Until when the next hop of a queue is taken to be down. */
  readonly downMs: Map<string, number>;
}

export class ServiceWatch {
  private readonly minReplicas: number;
  private readonly listMs: number;
  private readonly lives = new Map<string, Life>();
  /** Processes that have been told to stop: they take no mail. */
  private readonly stopping = new WeakSet<GatewayCore>();

  constructor(minReplicas: number, listMs: number) {
    this.minReplicas = minReplicas;
    this.listMs = listMs;
  }

  look(gateway: ServiceGateway): void {
    const { id, core, process } = gateway;
    if (core === undefined || process.isFrozen) {
      this.lives.delete(id);
      return;
    }
    const known = this.lives.get(id);
    const life = known?.core === core ? known : { core, open: { fromMs: Infinity, seenMs: -Infinity, gapMs: PORT_GAP_MS }, idle: new Map<QueueMirror, Since>(), downMs: new Map<string, number>() };
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
    for (const mirror of life.idle.keys()) if (mirror.queue.name === queueName) life.idle.delete(mirror);
    if (answer === 'down') life.downMs.set(queueName, process.nowMs + DOWN_MS);
  }

  private lookAtPort({ id, gatewayId, process }: ServiceGateway, core: GatewayCore, life: Life): void {
    const { stores, placement } = core.mirrors;
    let queues = 0;
    let short = 0;
    for (const mirror of core.registry.all) {
      const { identity, routed } = mirror.queue;
      if (identity.ownerId !== gatewayId || !routed) continue;
      queues += 1;
      let counting = 0;
      for (const { member, sync } of mirror.replicas) if (member && sync === SyncState.SYNC) counting += 1;
      if (counting < this.minReplicas) short += 1;
    }
    const up = stores.filter((store) => store.isUp);
    const free = up.filter(({ storeId }) => !placement.isAvoided(storeId)).length;
    const mustBeClosed = up.length < this.minReplicas || (queues === 0 ? free < this.minReplicas : short === queues);
    if (mustBeClosed && core.accepting) throw new GuaranteeBroken(`G6: ${id} takes mail with ${String(up.length)} stores up and ${String(short)} of its ${String(queues)} queues short of mirrors`);
    const mayBeOpen = up.length >= this.minReplicas && short === 0 && (queues > 0 || free >= this.minReplicas);
    const openMs = mayBeOpen ? lasts(life.open, process.nowMs) : ended(life.open);
    if (openMs > this.listMs + HEARD_SLACK_MS && !core.accepting && !this.stopping.has(core)) throw new GuaranteeBroken(`G6: ${id} takes no mail though for ${openMs.toFixed(0)} ms ${String(up.length)} stores have been up and none of its ${String(queues)} queues short of mirrors`);
  }

  private lookAtQueues({ id, process }: ServiceGateway, core: GatewayCore, life: Life): void {
    const nowMs = process.nowMs;
    for (const mirror of core.registry.all) {
      const { queue } = mirror;
      const isIdle = queue.isRecovering && queue.routed && !queue.isLeaving && queue.readyCount > 0 && queue.inFlightCount === 0 && queue.blockedUntilMs <= nowMs && (life.downMs.get(queue.name) ?? 0) <= nowMs && core.mirrors.mayDeliver(mirror, nowMs);
      if (!isIdle) {
        life.idle.delete(mirror);
        continue;
      }
      const since = life.idle.get(mirror) ?? { fromMs: nowMs, seenMs: nowMs, gapMs: BACK_GAP_MS };
      life.idle.set(mirror, since);
      const idleMs = lasts(since, nowMs);
      if (idleMs > BACK_MS) throw new GuaranteeBroken(`G8: ${id} has tried nothing of ${queue.name} for ${idleMs.toFixed(0)} ms while its blocks come, with ${String(queue.readyCount)} messages due`);
    }
  }
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
