/**
 * The register of the ownership world: linearizable, but requests may come late, also after their sender
 * died, be lost, or their replies be lost; it may be away, take no change, be rolled back, or lose everything.
 */
import type { Prng } from '../../../src/base/prng.js';
import type { HolderId, PartitionRecord } from '../../../src/protocol/partition-record.js';
import { holderKey, isEnded } from '../../../src/protocol/partition-record.js';
import type { Revision, Stamped } from '../../../src/recovery/ownership/ports.js';
import type { Events } from './events.js';

export interface Row {
  readonly revision: Revision;
  readonly record: PartitionRecord;
}

/** What operators have decided of a partition. Each change has a version of its own, also one that a rollback makes. */
export interface QueueRules {
  readonly version: number;
  readonly held: ReadonlySet<number>;
}

export const NO_RULES: QueueRules = { version: 0, held: new Set() };

export interface UnderWay {
  readonly partition: string;
  readonly expected: Revision;
  readonly record: PartitionRecord;
}

export interface GatewayKey {
  readonly holder: HolderId;
  readonly group: readonly string[];
}

/** All that a watch tells, as of one moment. */
export interface RegisterView {
  /** Higher with each later one. */
  readonly count: number;
  readonly rows: ReadonlyMap<string, Row>;
  /** By session. */
  readonly living: ReadonlyMap<number, GatewayKey>;
  readonly retired: ReadonlySet<string>;
}

export interface RegisterMood {
  /** Share of requests that come up to lateMs late. */
  lateShare: number;
  lateMs: number;
  lostShare: number;
  lostReplyShare: number;
}

const NO_ROW: Revision = 'none';
const SESSION_MS = 2000;

export class SimRegister {
  readonly mood: RegisterMood = { lateShare: 0, lateMs: 0, lostShare: 0, lostReplyShare: 0 };
  isAway = false;
  /** It answers, and takes no change: its disk is full. */
  refusesChanges = false;
  /** Changes that may still be made. */
  readonly underWay = new Set<UnderWay>();
  /** Processes that can't reach it. */
  readonly cutOff = new Set<string>();
  readonly #events: Events;
  readonly #random: Prng;
  #rows = new Map<string, Row>();
  /** What was, for a rollback. */
  #backup: Map<string, Row> = new Map<string, Row>();
  #rules = new Map<string, QueueRules>();
  #rulesBackup = new Map<string, QueueRules>();
  readonly #sessions = new Map<string, { id: number; endsMs: number }>();
  /** What each process writes into its key: who it is, and its group. */
  readonly #keys = new Map<string, GatewayKey>();
  #retired = new Set<string>();
  #retiredBackup = new Set<string>();
  #count = 0;
  /** Requests of an older life are gone. */
  #life = 0;
  /** Called when a record has changed. */
  onChanged: (partition: string, record: PartitionRecord) => void = () => undefined;
  /** The record of one that has ended is gone. */
  onDeleted: (partition: string) => void = () => undefined;

  constructor(events: Events, random: Prng) {
    this.#events = events;
    this.#random = random;
  }

  record(partition: string): PartitionRecord | undefined {
    return this.#rows.get(partition)?.record;
  }

  hasSession(process: string): boolean {
    return (this.#sessions.get(process)?.endsMs ?? -1) > this.#events.nowMs;
  }

  sessionOf(gatewayId: string): string | undefined {
    for (const key of this.#sessions.keys()) if (key.startsWith(`${gatewayId}.`)
      && this.hasSession(key)) return key;
    return undefined;
  }

  /** `apply` runs at the register, `reply` is handed to the sender with what it returned. */
  request<T>(sender: string, apply: () => T, reply: (result: T) => void, change?: UnderWay): void {
    const { mood } = this;
    const life = this.#life;
    const isLost = this.isAway || this.cutOff.has(sender) || this.#random.next() < mood.lostShare;
    // What was sent before an outage, or into it, may still wait in some buffer on the way.
    const isLate = this.#random.next() < (change === undefined ? mood.lateShare / 4 : mood.lateShare);
    if (isLost && !(isLate && !this.cutOff.has(sender))) return;
    const delayMs = 1 + this.#random.below(20) + (isLate ? this.#random.below(mood.lateMs) : 0);
    if (change !== undefined) this.underWay.add(change);
    const arrive = (): void => {
      if (life !== this.#life) return;
      if (this.isAway) {
        if (!isLate && change !== undefined) this.underWay.delete(change);
        if (isLate) this.#events.after(500, arrive);
        return;
      }
      if (change !== undefined) this.underWay.delete(change);
      // Whoever asked takes it for no answer (register-bridge.ts).
      if (change !== undefined && this.refusesChanges) return;
      const result = apply();
      const isReplyLost = this.cutOff.has(sender) || this.#random.next() < mood.lostReplyShare;
      if (!isReplyLost) this.#events.after(1 + this.#random.below(20), () => { reply(result); });
    };
    this.#events.after(delayMs, arrive);
  }

  rulesOf(partition: string): QueueRules {
    return this.#rules.get(partition) ?? NO_RULES;
  }

  setHeld(partition: string, change: (held: ReadonlySet<number>) => ReadonlySet<number>): void {
    this.#count += 1;
    this.#rules.set(partition, { version: this.#count, held: change(this.rulesOf(partition).held) });
  }

  read(partition: string): Stamped {
    const row = this.#rows.get(partition);
    const hasSession = row !== undefined && this.hasSession(holderKey(row.record.holder));
    return { revision: row?.revision ?? NO_ROW, record: row?.record, hasSession };
  }

  /** The new revision, or undefined when the comparison failed. */
  change(partition: string, expected: Revision, record: PartitionRecord,
    unlessSessionOf: HolderId | undefined): Revision | undefined {
    const now = this.#rows.get(partition)?.revision ?? NO_ROW;
    if (now !== expected) return undefined;
    if (unlessSessionOf !== undefined && this.hasSession(holderKey(unlessSessionOf))) return undefined;
    this.#count += 1;
    const revision = `r${String(this.#count)}`;
    this.#rows.set(partition, { revision, record });
    this.onChanged(partition, record);
    return revision;
  }

  /**
   * Made when absent, or when the sender proves that the process of that id is dead; renewed by who has it.
   * 0: another lives.
   */
  keepSession(holder: HolderId, provesDead: boolean): number {
    const key = holderKey(holder);
    const own = this.#sessions.get(key);
    if (own !== undefined && own.endsMs > this.#events.nowMs) {
      own.endsMs = this.#events.nowMs + SESSION_MS;
      return own.id;
    }
    const other = this.sessionOf(holder.gatewayId);
    if (other !== undefined && !provesDead) return 0;
    if (other !== undefined) this.#sessions.delete(other);
    return this.#newSession(key);
  }

  view(): RegisterView {
    this.#count += 1;
    const living = new Map<number, GatewayKey>();
    for (const [process, { id }] of this.#sessions) {
      const key = this.#keys.get(process);
      if (key !== undefined && this.hasSession(process)) living.set(id, key);
    }
    return { count: this.#count, rows: new Map(this.#rows), living, retired: new Set(this.#retired) };
  }

  setKey(key: GatewayKey): void {
    this.#keys.set(holderKey(key.holder), key);
  }

  /** The record of a partition that has ended, if it is still the one that was read. */
  deleteEnded(partition: string, expected: Revision): void {
    const row = this.#rows.get(partition);
    if (row?.revision !== expected || !isEnded(row.record)) return;
    this.#count += 1;
    this.#rows.delete(partition);
    this.onDeleted(partition);
  }

  get retired(): ReadonlySet<string> {
    return this.#retired;
  }

  setRetired(gatewayId: string, isRetired: boolean): void {
    if (isRetired) this.#retired.add(gatewayId);
    else this.#retired.delete(gatewayId);
  }

  tie(partition: string, expected: Revision, holder: HolderId): number {
    if ((this.#rows.get(partition)?.revision ?? NO_ROW) !== expected) return 0;
    const own = this.#sessions.get(holderKey(holder));
    if (own !== undefined && own.endsMs > this.#events.nowMs) return own.id;
    return this.#newSession(holderKey(holder));
  }

  #newSession(key: string): number {
    this.#count += 1;
    this.#sessions.set(key, { id: this.#count, endsMs: this.#events.nowMs + SESSION_MS });
    return this.#count;
  }

  /** What a rollback would leave. */
  recordPutBack(partition: string, isEmpty: boolean): PartitionRecord | undefined {
    return isEmpty ? undefined : this.#backup.get(partition)?.record;
  }

  backUp(): void {
    this.#backup = new Map(this.#rows);
    this.#rulesBackup = new Map(this.#rules);
    this.#retiredBackup = new Set(this.#retired);
  }

  /** Put back from a backup, or empty: connections are cut, requests under way are gone, so are sessions. */
  restore(isEmpty: boolean): void {
    this.#life += 1;
    this.underWay.clear();
    this.#rows = isEmpty ? new Map<string, Row>() : new Map(this.#backup);
    this.#sessions.clear();
    this.#retired = isEmpty ? new Set() : new Set(this.#retiredBackup);
    const before = this.#rules;
    this.#rules = new Map();
    for (const partition of before.keys()) {
      const held = isEmpty ? undefined : this.#rulesBackup.get(partition)?.held;
      this.setHeld(partition, () => held ?? new Set());
    }
  }
}

export const SESSION_LENGTH_MS = SESSION_MS;
