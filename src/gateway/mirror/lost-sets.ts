/**
 * NO SURVIVOR: queues whose owner lives while every mirror that matters is back without its copy, and that may not be
 * founded anew by themselves (replica-set.ts, THE RULE OF FOUNDING): no restart was heard of while our lease at the
 * boot before still ran, so another process may have taken the queue over in between and lost its copies, too.
 *
 *   members restarted unheard ─► told, shown in status ─ `twinpost rescue --force` names one of them ─► founded ─► gone
 *
 * The mail is here, in memory, and is kept; nothing of it is delivered and no new mail of the queue is taken. An
 * operator who knows that no other process has had the queue says so by naming a store that it may go on without.
 */
import type { EventLog } from '../../platform/ports.js';
import { queueKey } from '../../recovery/census.js';
import type { ForceRequest } from '../../recovery/force.js';
import { forceCommand } from '../../recovery/force.js';
import type { HeldQueue } from '../../recovery/waiting-queues.js';
import type { Mirrors } from './mirrors.js';
import type { QueueMirror } from './queue-mirror.js';
import { decides, hasSurvivor, mayFound, waitsForOperator } from './replica-set.js';

export interface LostSetsPorts {
  readonly mirrors: Mirrors;
  readonly log: EventLog;
  nowMs(): number;
}

export class LostSets {
  private readonly ports: LostSetsPorts;
  /** Queues that wait for their operator, and since when. */
  private readonly waiting = new Map<QueueMirror, number>();

  constructor(ports: LostSetsPorts) {
    this.ports = ports;
  }

  tick(): void {
    const { mirrors, log } = this.ports;
    for (const mirror of this.waiting.keys()) if (mirrors.mirrorOf(mirror.handle) !== mirror || !waitsForOperator(mirror)) this.waiting.delete(mirror);
    for (const mirror of mirrors.all()) {
      if (this.waiting.has(mirror) || !waitsForOperator(mirror)) continue;
      this.waiting.set(mirror, this.ports.nowMs());
      const stores = storesOf(mirror);
      log.error('mirror', 'no mirror of this queue has survived, and another process may have had it meanwhile: its mail is held in memory and waits for an operator; do not restart this process before', { queue: mirror.queue.name, owner: mirror.queue.identity.ownerId, messages: mirror.queue.length, stores, command: forceCommand(mirror.queue.name, stores[0] ?? '') });
    }
  }

  held(): HeldQueue[] {
    return [...this.waiting].map(([mirror, sinceMs]) => {
      const { name, identity, route } = mirror.queue;
      const stores = storesOf(mirror);
      return { key: queueKey(identity.ownerId, identity.birth, identity.serial), queue: name, queueClass: route.queueClass, owner: identity.ownerId, state: 'no survivor', stores, why: `no mirror has survived: ${forceCommand(name, stores[0] ?? '')}`, sinceMs };
    });
  }

  /** The operator says that no other process has had these queues, and that the store's copy is not to be waited for. */
  force(request: ForceRequest): string[] {
    const { mirrors, log, nowMs } = this.ports;
    const names: string[] = [];
    for (const mirror of mirrors.all()) {
      const { name, identity } = mirror.queue;
      if (request.queue !== undefined ? name !== request.queue : identity.ownerId !== request.owner) continue;
      const replica = mirror.replicas.find((one) => one.store.storeId === request.missing);
      if (replica === undefined || hasSurvivor(mirror) || mayFound(mirror) || !decides(mirror, replica)) continue;
      names.push(name);
      replica.claimBootId = '';
      replica.lossWitnessed = true;
      log.warn('takeover', 'an operator has a set of mirrors founded without a survivor: if another process has had this queue, mail is repeated', { queue: name, owner: identity.ownerId, missing: request.missing, reason: request.reason, who: request.who, since_ms: Math.round(nowMs() - (this.waiting.get(mirror) ?? nowMs())) });
      mirrors.reviseSetOf(mirror);
    }
    if (names.length > 0) mirrors.askFlush();
    return names;
  }
}

function storesOf(mirror: QueueMirror): string[] {
  return mirror.replicas.filter((replica) => decides(mirror, replica)).map((replica) => replica.store.storeId);
}
