/**
 * Queues whose owner lives, that have no mirror in sync, and that may not be founded anew by themselves (replica-set.ts,
 * THE RULE OF FOUNDING):
 *
 *   no survivor      every mirror that matters is back without its copy, and no restart was heard of while our lease at the
 *                    boot before still ran: another process may have taken the queue over in between and lost its copies, too
 *   members silent   a mirror that may have a copy has been away for replace_after: it may never come back, or another
 *                    process may have the queue by it
 *   no store free    a set may be founded, and for replace_after no store has taken a copy: each is silent, full, or has an
 *                    older one that another gateway holds, which lives: for a rescuer, the owner's of before. Or it may not,
 *                    for a mirror has its copy, and its store is too full to take the rest of it. Not while one is asked or
 *                    waits for its turn to be filled; but while one that refused is tried again, if another has just
 *                    refused: else stores that take turns would never be told of. Told once, it stays until a mirror is in
 *                    sync
 *
 *   waits ─► told, shown in status ─ `twinpost rescue --force`, once for each store named ─► founded ─► gone
 *                                  └ the stores come back ─────────────────────────────────────────► gone
 *
 * A store that an open change leaves out can't end that wait alone (decides()), but may have a copy of before, and know who
 * has the queue: it is named, as what an operator should look at first. A store that was given up and comes back is a
 * mirror like any other that was away: what it has is continued, filled anew, or dropped, and a takeover finds the set
 * that was founded to be newer.
 *
 * The mail is here, in memory, and is kept; nothing of it is delivered and no new mail of the queue is taken. An
 * operator who knows that no other process has had the queue says so by naming a store that it may go on without.
 */
import { Round } from '../../base/round.js';
import type { EventLog } from '../../platform/ports.js';
import { queueKey } from '../../recovery/census.js';
import type { ForceRequest, ForcedQueue } from '../../recovery/force.js';
import { forceCommands } from '../../recovery/force.js';
import type { HeldQueue } from '../../recovery/waiting-queues.js';
import { hasRefused, isAsked } from './declined.js';
import type { Mirrors } from './mirrors.js';
import { QUEUES_PER_TICK } from './mirrors-options.js';
import { silentStores, whyNoStore } from './no-store-why.js';
import type { QueueMirror } from './queue-mirror.js';
import type { Replica } from './replica.js';
import { decides, findsNoStore, hasSurvivor, isWithoutSurvivor, mayFound, toGiveUp, waitsForRoom, waitsForSilent } from './replica-set.js';

export interface LostSetsPorts {
  readonly mirrors: Mirrors;
  readonly log: EventLog;
  nowMs(): number;
}

type LostState = 'no survivor' | 'members silent' | 'no store free';

interface Wait {
  readonly state: LostState;
  readonly sinceMs: number;
}

export class LostSets {
  private readonly ports: LostSetsPorts;
  private readonly round = new Round<QueueMirror>({ partMax: QUEUES_PER_TICK });
  private readonly waiting = new Map<QueueMirror, Wait>();
  /** Since when no mirror was in sync and no store took a copy, whether a set may be founded or not. */
  private readonly noStoreSinceMs = new Map<QueueMirror, number>();

  constructor(ports: LostSetsPorts) {
    this.ports = ports;
  }

  tick(): void {
    const { mirrors } = this.ports;
    for (const mirror of this.waiting.keys()) if (mirrors.mirrorOf(mirror.handle) !== mirror || this.stateOf(mirror) === undefined) this.waiting.delete(mirror);
    for (const mirror of this.noStoreSinceMs.keys()) if (mirrors.mirrorOf(mirror.handle) !== mirror) this.noStoreSinceMs.delete(mirror);
    for (const mirror of this.round.next(mirrors.byHandle)) {
      this.watch(mirror);
      const state = this.stateOf(mirror);
      const known = this.waiting.get(mirror);
      if (state === undefined || known?.state === state) continue;
      this.waiting.set(mirror, { state, sinceMs: known?.sinceMs ?? this.ports.nowMs() });
      this.tell(mirror, state);
    }
  }

  held(): HeldQueue[] {
    const { mirrors, nowMs } = this.ports;
    const waiting = [...this.waiting].filter(([mirror]) => this.stateOf(mirror) !== undefined);
    return waiting.map(([mirror, { state, sinceMs }]) => {
      const { name, identity, route } = mirror.queue;
      const stores = namesOf(state === 'no survivor' ? mirror.replicas.filter((replica) => decides(mirror, replica)) : toGiveUp(mirror));
      if (state === 'no store free') return { key: queueKey(identity.ownerId, identity.birth, identity.serial), queue: name, queueClass: route.queueClass, owner: identity.ownerId, state, stores: silentStores(mirrors, mirror), why: whyNoStore(mirrors, mirror, nowMs()), sinceMs, messages: mirror.queue.length };
      const why = state === 'no survivor' ? whyLost(mirror) : whySilent(mirror);
      return { key: queueKey(identity.ownerId, identity.birth, identity.serial), queue: name, queueClass: route.queueClass, owner: identity.ownerId, state, stores, why: `${why}${otherMemory(mirror)}: ${commandsOf(mirror)}`, sinceMs, messages: mirror.queue.length };
    });
  }

  /** The operator says that no other process has had these queues, and that the store's copy is not to be waited for. */
  force(request: ForceRequest): ForcedQueue[] {
    const { mirrors } = this.ports;
    const forced: ForcedQueue[] = [];
    for (const mirror of [...mirrors.all()]) {
      const { name, identity } = mirror.queue;
      if (name !== (request.queue ?? name) || identity.ownerId !== (request.owner ?? identity.ownerId)) continue;
      // One that goes on has nothing to be forced.
      if (hasSurvivor(mirror)) continue;
      const needed = toGiveUp(mirror);
      const replica = mirror.replicas.find((one) => one.store.storeId === request.missing);
      // Of those that decide and are lost, any will do.
      const isLost = (one: Replica): boolean => decides(mirror, one) && !one.mayHoldCopy;
      if (replica === undefined || !needed.some((one) => one === replica || (isLost(one) && isLost(replica)))) continue;
      this.giveUp(mirror, replica, request);
      const left = namesOf(toGiveUp(mirror));
      const outcome = left.length > 0 ? 'waiting' : mirror.founding ? 'taken' : 'later';
      forced.push({ queue: name, owner: identity.ownerId, outcome, needed: left, exportable: [] });
    }
    if (forced.length > 0) mirrors.askFlush();
    return forced;
  }

  private giveUp(mirror: QueueMirror, replica: Replica, { missing, reason, who }: ForceRequest): void {
    const { mirrors, log, nowMs } = this.ports;
    replica.claimBootId = '';
    replica.isGivenUp = true;
    mirror.giveUp(missing, mirror.newestEpoch);
    if (decides(mirror, replica)) replica.lossWitnessed = true;
    const needed = namesOf(toGiveUp(mirror));
    log.warn('takeover', 'an operator has a store given up, so that a set of mirrors is founded without a survivor: if another process has had this queue, mail is repeated', { queue: mirror.queue.name, owner: mirror.queue.identity.ownerId, missing, also_needed: needed, reason, who, since_ms: Math.round(nowMs() - (this.waiting.get(mirror)?.sinceMs ?? nowMs())) });
    mirrors.reviseSetOf(mirror);
  }

  private stateOf(mirror: QueueMirror): LostState | undefined {
    const { mirrors, nowMs } = this.ports;
    if (isWithoutSurvivor(mirror) && (this.waiting.get(mirror)?.state === 'no survivor' || !isAskingLeftOut(mirror))) return 'no survivor';
    if (waitsForSilent(mirror, nowMs(), mirrors.options.replaceAfterMs)) return 'members silent';
    const isTold = this.waiting.get(mirror)?.state === 'no store free' && !hasSurvivor(mirror);
    return isTold || this.hasNoStore(mirror) ? 'no store free' : undefined;
  }

  private watch(mirror: QueueMirror): void {
    const { mirrors, nowMs } = this.ports;
    if (!findsNoStore(mirror, nowMs(), mirrors.options.replaceAfterMs)) this.noStoreSinceMs.delete(mirror);
    else if (!this.noStoreSinceMs.has(mirror)) this.noStoreSinceMs.set(mirror, nowMs());
  }

  private hasNoStore(mirror: QueueMirror): boolean {
    const { mirrors, nowMs } = this.ports;
    const now = nowMs();
    const sinceMs = this.noStoreSinceMs.get(mirror);
    if (sinceMs === undefined || now - sinceMs < mirrors.options.replaceAfterMs || !(mayFound(mirror) || waitsForRoom(mirror))) return false;
    const asked = mirror.replicas.filter((replica) => isAsked(replica, now));
    return asked.length === 0 || (asked.every(hasRefused) && mirror.replicas.some((replica) => hasRefused(replica) && !asked.includes(replica)));
  }

  private tell(mirror: QueueMirror, state: LostState): void {
    const { mirrors, nowMs } = this.ports;
    const needed = toGiveUp(mirror);
    const fields = { queue: mirror.queue.name, owner: mirror.queue.identity.ownerId, messages: mirror.queue.length };
    if (state === 'no store free') {
      this.ports.log.error('mirror', 'no store takes a copy of this queue, so that it could go on: its mail is held in memory; do not restart this process before', { ...fields, silent: silentStores(mirrors, mirror), why: whyNoStore(mirrors, mirror, nowMs()) });
      return;
    }
    if (state === 'members silent') {
      const silent = namesOf(needed.filter(({ store }) => !store.isUp));
      this.ports.log.error('mirror', 'no mirror of this queue is in sync, and stores that may have a copy of it are silent: its mail is held in memory; start them, or go on without them by the commands; do not restart this process before', { ...fields, silent, filled: namesOf(filledOf(mirror)), command: commandsOf(mirror) });
      return;
    }
    const others = othersOf(mirror);
    const text = others.length === 0
      ? 'no mirror of this queue has survived, and another process may have had it meanwhile: its mail is held in memory and waits for an operator; do not restart this process before'
      : 'every mirror that this queue can go on from came back without its copy, and another process may have had it meanwhile: its mail is held in memory and waits for an operator; twinpost store status shows who holds it at the store that its last change of the set leaves out, look there first; do not restart this process before';
    const stores = namesOf(mirror.replicas.filter((replica) => decides(mirror, replica)));
    this.ports.log.error('mirror', text, { ...fields, stores, ...(others.length === 0 ? {} : { left_out: namesOf(others) }), command: commandsOf(mirror) });
  }
}

/** Of a queue that was taken over: its owner may wait with a memory of its own. Only one of the two can go on. */
function otherMemory(mirror: QueueMirror): string {
  if (mirror.isOwn) return '';
  const { ownerId, birth, serial } = mirror.queue.identity;
  return `; if ${ownerId} has this queue (${queueKey(ownerId, birth, serial)}) in memory, too, as members silent or no survivor in its status, go on with one of the two and export the other first: that of ${ownerId} has all that clients sent, but no report made here since`;
}

/** One that has started anew is about to say whether it has its copy: without it a set may be founded. */
function isAskingLeftOut(mirror: QueueMirror): boolean {
  return othersOf(mirror).some(({ store, stillClaims, claimSequence }) => store.isUp && !stillClaims && claimSequence !== 0);
}

/** Left out by a change that was sent: not asked any more, but not known to be without a copy either. */
function othersOf(mirror: QueueMirror): Replica[] {
  return mirror.replicas.filter((replica) => replica.mayHoldCopy && !decides(mirror, replica));
}

/** Copies that a set may be founded on, as it seems. */
function filledOf(mirror: QueueMirror): Replica[] {
  return mirror.replicas.filter((replica) => replica.filledBootId !== '' && replica.filledBootId === replica.store.bootId);
}

function whyLost(mirror: QueueMirror): string {
  const others = othersOf(mirror);
  if (others.length === 0) return 'no mirror has survived';
  const told = others.map(({ store, fenced }) => `${store.storeId}, which the set leaves out, ${!store.isUp ? 'can not be reached: start it' : fenced ? 'says that another process holds it' : 'may have a copy'}`);
  return `the mirrors it can go on from came back empty; ${told.join('; ')}; if store status shows no other holder there`;
}

function whySilent(mirror: QueueMirror): string {
  const told = toGiveUp(mirror).map(({ store, fenced }) => `${store.storeId} ${!store.isUp ? 'is silent' : fenced ? 'says that another process holds it' : 'came back empty'}`);
  return `no mirror is in sync; ${told.join(', ')}; start what is silent, or go on without`;
}

function commandsOf(mirror: QueueMirror): string {
  return forceCommands({ name: mirror.queue.name, ownerId: mirror.queue.identity.ownerId }, namesOf(toGiveUp(mirror)));
}

function namesOf(replicas: readonly Replica[]): string[] {
  return replicas.map(({ store }) => store.storeId);
}
