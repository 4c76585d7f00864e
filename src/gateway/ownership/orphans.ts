/**
 * Partitions in the register, or at stores without a record, whose gateway no configuration serves any more:
 * workers that are no more, an older number of partitions or an older id, a gateway taken out of its group or
 * retired. Without somebody who looks at them their mail lies at the stores in silence. What is found here is
 * shown in status, log and metrics, and is looked at like a dead gateway's (holdings.ts): who may take it
 * over is decided by leases and sessions as ever, for that a key is missing is no verdict (rule 15 of
 * docs/model).
 *
 *   of a partition                                  is an orphan
 *   ours, its number above those configured         at once: it takes no new mail, and ends when it is empty
 *   of a gateway that an operator has retired       at once, even while that one lives
 *   of our group, or of a living gateway's group    never: they deliver for one another. A group that is left
 *                                                   out is that of all: then nobody is gone but by order
 *   of a gateway without a key                      when it has had none for the grace time
 *   that has ended                                  never
 */
import type { Clock, EventLog } from '../../platform/ports.js';
import { numberOf, ownerOf } from '../../protocol/partition-record.js';
import type { MetPartition, OwnershipRegister } from './ownership-register.js';

export interface OrphansOptions {
  readonly gatewayId: string;
  readonly partitions: number;
  readonly group: readonly string[] | undefined;
  readonly rescue: boolean;
  /** A gateway without a key for so long is gone from the configurations, as far as can be told. */
  readonly graceMs: number;
}

export interface OrphansPorts {
  readonly clock: Clock;
  readonly log: EventLog;
  readonly register: Pick<OwnershipRegister, 'version' | 'living' | 'retired'>;
  /** Partitions of whatever gateway. */
  met(): Iterable<MetPartition>;
}

export interface Orphan {
  readonly partition: string;
  readonly owner: string;
  /** On the monotonic clock: since when it has been seen here that nobody serves it. */
  readonly sinceMs: number;
  /** Stores that have its copies, as the register names them. */
  readonly stores: readonly string[];
}

/** Time alone may make an orphan. */
const LOOK_MS = 1_000;
/** Of those of one gateway, in the log. */
const NAMES_SAID_MAX = 8;

/** What a gateway tells in its key of whom others need not take for gone: none is of all. */
export function groupTold(
  id: string, { group, rescue }: Pick<OrphansOptions, 'group' | 'rescue'>,
): readonly string[] {
  return group ?? (rescue ? [] : [id]);
}

export class Orphans {
  readonly #options: OrphansOptions;
  readonly #ports: OrphansPorts;
  /** By gateway. */
  readonly #absentSinceMs = new Map<string, number>();
  readonly #said = new Set<string>();
  #all: ReadonlyMap<string, Orphan> = new Map();
  #version = -1;
  #lookMs = -Infinity;

  constructor(options: OrphansOptions, ports: OrphansPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  get all(): ReadonlyMap<string, Orphan> {
    return this.#all;
  }

  /** True when it was looked. */
  tick(nowMs: number): boolean {
    const { version } = this.#ports.register;
    if (version === this.#version && nowMs < this.#lookMs) return false;
    this.#version = version;
    this.#lookMs = nowMs + LOOK_MS;
    const absent = this.#absent(nowMs);
    const all = new Map<string, Orphan>();
    for (const met of this.#ports.met()) {
      const sinceMs = this.#sinceOf(met, absent, nowMs);
      const { partition, stores } = met;
      if (sinceMs === undefined) continue;
      all.set(partition, { partition, owner: ownerOf(partition), sinceMs, stores });
    }
    this.#all = all;
    this.#say();
    return true;
  }

  /** Gateways with partitions that nobody answers for, and since when. */
  #absent(nowMs: number): ReadonlyMap<string, number> {
    const { group, gatewayId, rescue } = this.#options;
    const { register } = this.#ports;
    const living = register.living();
    const isOfAll = group === undefined && rescue;
    if (isOfAll || [...living.values()].some((one) => one.group.length === 0)) {
      this.#absentSinceMs.clear();
      return this.#absentSinceMs;
    }
    const served = new Set([gatewayId, ...group ?? [], ...living.keys()]);
    for (const one of living.values()) for (const id of one.group) served.add(id);
    const seen = new Set<string>();
    for (const { partition } of this.#ports.met()) seen.add(ownerOf(partition));
    for (const id of this.#absentSinceMs.keys()) {
      if (served.has(id) || !seen.has(id)) this.#absentSinceMs.delete(id);
    }
    for (const id of seen) {
      if (!served.has(id) && !this.#absentSinceMs.has(id)) this.#absentSinceMs.set(id, nowMs);
    }
    return this.#absentSinceMs;
  }

  /** Undefined: it is no orphan. */
  #sinceOf(met: MetPartition, absent: ReadonlyMap<string, number>, nowMs: number): number | undefined {
    const { gatewayId, partitions, graceMs } = this.#options;
    const { partition } = met;
    if (met.isEnded) return undefined;
    const owner = ownerOf(partition);
    const known = this.#all.get(partition)?.sinceMs ?? nowMs;
    if (owner === gatewayId) return numberOf(partition) >= partitions ? known : undefined;
    if (this.#ports.register.retired().has(owner)) return known;
    const sinceMs = absent.get(owner);
    return sinceMs !== undefined && nowMs - sinceMs >= graceMs ? sinceMs : undefined;
  }

  /** Each gateway's once, and when they are gone. */
  #say(): void {
    const { log } = this.#ports;
    const byOwner = new Map<string, string[]>();
    for (const { owner, partition } of this.#all.values()) {
      const names = byOwner.get(owner);
      if (names === undefined) byOwner.set(owner, [partition]);
      else names.push(partition);
    }
    for (const [owner, names] of byOwner) {
      if (this.#said.has(owner)) continue;
      this.#said.add(owner);
      const text =
        'no configuration serves these partitions any more: a gateway of the group delivers what they have';
      log.warn(
        'orphans', text, { gateway: owner, count: names.length, partitions: names.slice(0, NAMES_SAID_MAX) },
      );
    }
    for (const owner of this.#said) {
      if (byOwner.has(owner)) continue;
      this.#said.delete(owner);
      log.info('orphans', 'no partition of this gateway is without an owner any more', { gateway: owner });
    }
  }
}
