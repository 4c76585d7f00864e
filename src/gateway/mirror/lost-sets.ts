/**
 * NO SURVIVOR: queues whose owner lives while every mirror that matters is back without its copy, and that may not be
 * founded anew by themselves (replica-set.ts, THE RULE OF FOUNDING): no restart was heard of while our lease at the
 * boot before still ran, so another process may have taken the queue over in between and lost its copies, too.
 *
 *   members restarted unheard ─► told, shown in status ─ `twinpost rescue --force` names one of them ─► founded ─► gone
 *
 * A store that an open change leaves out can't end that wait (decides()), but may have a copy of before, and know who has
 * the queue: it is named, as what an operator should look at first.
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
import type { Replica } from './replica.js';
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
      const others = othersOf(mirror);
      const text = others.length === 0
        ? 'no mirror of this queue has survived, and another process may have had it meanwhile: its mail is held in memory and waits for an operator; do not restart this process before'
        : 'every mirror that this queue can go on from came back without its copy, and another process may have had it meanwhile: its mail is held in memory and waits for an operator; twinpost store status shows who holds it at the store that its last change of the set leaves out, look there first; do not restart this process before';
      const left = others.map(({ store }) => store.storeId);
      log.error('mirror', text, { queue: mirror.queue.name, owner: mirror.queue.identity.ownerId, messages: mirror.queue.length, stores, ...(left.length === 0 ? {} : { left_out: left }), command: forceCommand(mirror.queue.name, stores[0] ?? '') });
    }
  }

  held(): HeldQueue[] {
    return [...this.waiting].map(([mirror, sinceMs]) => {
      const { name, identity, route } = mirror.queue;
      const stores = storesOf(mirror);
      return { key: queueKey(identity.ownerId, identity.birth, identity.serial), queue: name, queueClass: route.queueClass, owner: identity.ownerId, state: 'no survivor', stores, why: `${whyLost(mirror)}: ${forceCommand(name, stores[0] ?? '')}`, sinceMs };
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

/** Left out by a change that was sent: not asked any more, but not known to be without a copy either. */
function othersOf(mirror: QueueMirror): Replica[] {
  return mirror.replicas.filter((replica) => replica.mayHoldCopy && !decides(mirror, replica));
}

function whyLost(mirror: QueueMirror): string {
  const others = othersOf(mirror);
  if (others.length === 0) return 'no mirror has survived';
  const told = others.map(({ store }) => `${store.storeId}, which the set leaves out, ${store.isUp ? 'may have a copy' : 'can not be reached: start it'}`);
  return `the mirrors it can go on from came back empty; ${told.join('; ')}; if store status shows no other holder there`;
}

function storesOf(mirror: QueueMirror): string[] {
  return mirror.replicas.filter((replica) => decides(mirror, replica)).map((replica) => replica.store.storeId);
}
