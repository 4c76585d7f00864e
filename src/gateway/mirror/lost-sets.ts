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
import type { ForceRequest, ForcedPartition } from '../../recovery/force.js';
import { forceCommands } from '../../recovery/force.js';
import type { HeldPartition } from '../../recovery/waiting-queues.js';
import { hasRefused, isAsked } from './declined.js';
import type { Mirrors } from './mirrors.js';
import { QUEUES_PER_TICK } from './mirrors-options.js';
import { silentStores, whyNoStore } from './no-store-why.js';
import type { Partition } from './partition.js';
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
  private readonly round = new Round<Partition>({ partMax: QUEUES_PER_TICK });
  private readonly waiting = new Map<Partition, Wait>();
  /** Since when no mirror was in sync and no store took a copy, whether a set may be founded or not. */
  private readonly noStoreSinceMs = new Map<Partition, number>();

  constructor(ports: LostSetsPorts) {
    this.ports = ports;
  }

  tick(): void {
    const { mirrors } = this.ports;
    for (const partition of this.waiting.keys()) if (mirrors.partitionOf(partition.handle) !== partition || this.stateOf(partition) === undefined) this.waiting.delete(partition);
    for (const partition of this.noStoreSinceMs.keys()) if (mirrors.partitionOf(partition.handle) !== partition) this.noStoreSinceMs.delete(partition);
    for (const partition of this.round.next(mirrors.byHandle)) {
      this.watch(partition);
      const state = this.stateOf(partition);
      const known = this.waiting.get(partition);
      if (state === undefined || known?.state === state) continue;
      this.waiting.set(partition, { state, sinceMs: known?.sinceMs ?? this.ports.nowMs() });
      this.tell(partition, state);
    }
  }

  held(): HeldPartition[] {
    const { mirrors, nowMs } = this.ports;
    const waiting = [...this.waiting].filter(([partition]) => this.stateOf(partition) !== undefined);
    return waiting.map(([partition, { state, sinceMs }]) => {
      const { name, identity } = partition;
      const stores = namesOf(state === 'no survivor' ? partition.replicas.filter((replica) => decides(partition, replica)) : toGiveUp(partition));
      if (state === 'no store free') return { key: queueKey(identity.ownerId, identity.birth, identity.serial), partition: name, owner: identity.ownerId, state, stores: silentStores(mirrors, partition), why: whyNoStore(mirrors, partition, nowMs()), sinceMs, messages: partition.length };
      const why = state === 'no survivor' ? whyLost(partition) : whySilent(partition);
      return { key: queueKey(identity.ownerId, identity.birth, identity.serial), partition: name, owner: identity.ownerId, state, stores, why: `${why}${otherMemory(partition)}: ${commandsOf(partition)}`, sinceMs, messages: partition.length };
    });
  }

  /** The operator says that no other process has had these queues, and that the store's copy is not to be waited for. */
  force(request: ForceRequest): ForcedPartition[] {
    const { mirrors } = this.ports;
    const forced: ForcedPartition[] = [];
    for (const partition of [...mirrors.all()]) {
      const { name, identity } = partition;
      if (name !== (request.partition ?? name) || identity.ownerId !== (request.owner ?? identity.ownerId)) continue;
      // One that goes on has nothing to be forced.
      if (hasSurvivor(partition)) continue;
      const needed = toGiveUp(partition);
      const replica = partition.replicas.find((one) => one.store.storeId === request.missing);
      // Of those that decide and are lost, any will do.
      const isLost = (one: Replica): boolean => decides(partition, one) && !one.mayHoldCopy;
      if (replica === undefined || !needed.some((one) => one === replica || (isLost(one) && isLost(replica)))) continue;
      this.giveUp(partition, replica, request);
      const left = namesOf(toGiveUp(partition));
      const outcome = left.length > 0 ? 'waiting' : partition.founding ? 'taken' : 'later';
      forced.push({ partition: name, owner: identity.ownerId, outcome, needed: left, exportable: [] });
    }
    if (forced.length > 0) mirrors.askFlush();
    return forced;
  }

  private giveUp(partition: Partition, replica: Replica, { missing, reason, who }: ForceRequest): void {
    const { mirrors, log, nowMs } = this.ports;
    replica.claimBootId = '';
    replica.isGivenUp = true;
    partition.giveUp(missing, partition.newestEpoch);
    if (decides(partition, replica)) replica.lossWitnessed = true;
    const needed = namesOf(toGiveUp(partition));
    log.warn('takeover', 'an operator has a store given up, so that a set of mirrors is founded without a survivor: if another process has had this partition, mail is repeated', { partition: partition.name, owner: partition.identity.ownerId, missing, also_needed: needed, reason, who, since_ms: Math.round(nowMs() - (this.waiting.get(partition)?.sinceMs ?? nowMs())) });
    mirrors.reviseSetOf(partition);
  }

  private stateOf(partition: Partition): LostState | undefined {
    const { mirrors, nowMs } = this.ports;
    if (isWithoutSurvivor(partition) && (this.waiting.get(partition)?.state === 'no survivor' || !isAskingLeftOut(partition))) return 'no survivor';
    if (waitsForSilent(partition, nowMs(), mirrors.options.replaceAfterMs)) return 'members silent';
    const isTold = this.waiting.get(partition)?.state === 'no store free' && !hasSurvivor(partition);
    return isTold || this.hasNoStore(partition) ? 'no store free' : undefined;
  }

  private watch(partition: Partition): void {
    const { mirrors, nowMs } = this.ports;
    if (!findsNoStore(partition, nowMs(), mirrors.options.replaceAfterMs)) this.noStoreSinceMs.delete(partition);
    else if (!this.noStoreSinceMs.has(partition)) this.noStoreSinceMs.set(partition, nowMs());
  }

  private hasNoStore(partition: Partition): boolean {
    const { mirrors, nowMs } = this.ports;
    const now = nowMs();
    const sinceMs = this.noStoreSinceMs.get(partition);
    if (sinceMs === undefined || now - sinceMs < mirrors.options.replaceAfterMs || !(mayFound(partition) || waitsForRoom(partition))) return false;
    const asked = partition.replicas.filter((replica) => isAsked(replica, now));
    return asked.length === 0 || (asked.every(hasRefused) && partition.replicas.some((replica) => hasRefused(replica) && !asked.includes(replica)));
  }

  private tell(partition: Partition, state: LostState): void {
    const { mirrors, nowMs } = this.ports;
    const needed = toGiveUp(partition);
    const fields = { partition: partition.name, owner: partition.identity.ownerId, messages: partition.length };
    if (state === 'no store free') {
      this.ports.log.error('mirror', 'no store takes a copy of this partition, so that it could go on: its mail is held in memory; do not restart this process before', { ...fields, silent: silentStores(mirrors, partition), why: whyNoStore(mirrors, partition, nowMs()) });
      return;
    }
    if (state === 'members silent') {
      const silent = namesOf(needed.filter(({ store }) => !store.isUp));
      this.ports.log.error('mirror', 'no mirror of this partition is in sync, and stores that may have a copy of it are silent: its mail is held in memory; start them, or go on without them by the commands; do not restart this process before', { ...fields, silent, filled: namesOf(filledOf(partition)), command: commandsOf(partition) });
      return;
    }
    const others = othersOf(partition);
    const text = others.length === 0
      ? 'no mirror of this queue has survived, and another process may have had it meanwhile: its mail is held in memory and waits for an operator; do not restart this process before'
      : 'every mirror that this queue can go on from came back without its copy, and another process may have had it meanwhile: its mail is held in memory and waits for an operator; twinpost store status shows who holds it at the store that its last change of the set leaves out, look there first; do not restart this process before';
    const stores = namesOf(partition.replicas.filter((replica) => decides(partition, replica)));
    this.ports.log.error('mirror', text, { ...fields, stores, ...(others.length === 0 ? {} : { left_out: namesOf(others) }), command: commandsOf(partition) });
  }
}

/** Of a queue that was taken over: its owner may wait with a memory of its own. Only one of the two can go on. */
function otherMemory(partition: Partition): string {
  if (partition.isOwn) return '';
  const { ownerId, birth, serial } = partition.identity;
  return `; if ${ownerId} has this queue (${queueKey(ownerId, birth, serial)}) in memory, too, as members silent or no survivor in its status, go on with one of the two and export the other first: that of ${ownerId} has all that clients sent, but no report made here since`;
}

/** One that has started anew is about to say whether it has its copy: without it a set may be founded. */
function isAskingLeftOut(partition: Partition): boolean {
  return othersOf(partition).some(({ store, stillClaims, claimSequence }) => store.isUp && !stillClaims && claimSequence !== 0);
}

/** Left out by a change that was sent: not asked any more, but not known to be without a copy either. */
function othersOf(partition: Partition): Replica[] {
  return partition.replicas.filter((replica) => replica.mayHoldCopy && !decides(partition, replica));
}

/** Copies that a set may be founded on, as it seems. */
function filledOf(partition: Partition): Replica[] {
  return partition.replicas.filter((replica) => replica.filledBootId !== '' && replica.filledBootId === replica.store.bootId);
}

function whyLost(partition: Partition): string {
  const others = othersOf(partition);
  if (others.length === 0) return 'no mirror has survived';
  const told = others.map(({ store, fenced }) => `${store.storeId}, which the set leaves out, ${!store.isUp ? 'can not be reached: start it' : fenced ? 'says that another process holds it' : 'may have a copy'}`);
  return `the mirrors it can go on from came back empty; ${told.join('; ')}; if store status shows no other holder there`;
}

function whySilent(partition: Partition): string {
  const told = toGiveUp(partition).map(({ store, fenced }) => `${store.storeId} ${!store.isUp ? 'is silent' : fenced ? 'says that another process holds it' : 'came back empty'}`);
  return `no mirror is in sync; ${told.join(', ')}; start what is silent, or go on without`;
}

function commandsOf(partition: Partition): string {
  return forceCommands({ name: partition.name, ownerId: partition.identity.ownerId }, namesOf(toGiveUp(partition)));
}

function namesOf(replicas: readonly Replica[]): string[] {
  return replicas.map(({ store }) => store.storeId);
}
