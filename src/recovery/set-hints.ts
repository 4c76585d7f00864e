/**
 * Sets of mirrors as the process before us knew them, out of a file of its machine (gateway/local-notes.ts). Hints:
 * recovery rests on what the stores say and never waits for the file. They tell an operator sooner and more exactly
 * which store is missing, and they show that an epoch existed which no store tells of yet.
 *
 *   newest epoch told < epoch of the hint ─► the queue is held until the members of that epoch have answered
 *   told by no store at all               ─► shown as held while a member is silent; then told to be gone
 *
 * Beside them stand sets that an operator forced, as stores told of them since this process started. A store that was given
 * up may show a set of its own that names nobody else: when all that showed the forced one restart empty, it may not be
 * believed beside a gateway that has the queue in memory. Such a set must be shown again, or given up.
 *
 * Pure.
 */
import type { EventLog } from '../platform/ports.js';
import type { CensusRow, KnownSet } from './census.js';
import { isOfSet, queueKey } from './census.js';

/** A set of mirrors that every survivor had acknowledged. */
export interface SetHint {
  readonly ownerId: string;
  readonly birth: number;
  readonly serial: number;
  readonly name: string;
  readonly queueClass: string;
  readonly epoch: number;
  readonly members: readonly string[];
}

/** The epoch of a set that an operator forces is the time of day in milliseconds; no other comes near. */
const FORCED_FROM = 2 ** 40;
/** Forced sets that are remembered; the oldest goes first. */
const FORCED_MAX = 65_536;

export class SetHints {
  private readonly byKey = new Map<string, SetHint>();
  private readonly forced = new Map<string, KnownSet>();
  private readonly told = new Set<SetHint>();
  private readonly log: EventLog;

  constructor(hints: readonly SetHint[], log: EventLog) {
    for (const hint of hints) this.byKey.set(queueKey(hint.ownerId, hint.birth, hint.serial), hint);
    this.log = log;
  }

  get(key: string): KnownSet | undefined {
    const hint = this.byKey.get(key);
    const forced = this.forced.get(key);
    return forced !== undefined && (hint === undefined || forced.epoch >= hint.epoch) ? forced : hint;
  }

  /** A store tells of this copy. */
  note(key: string, row: CensusRow): void {
    if (row.epoch < FORCED_FROM || !isOfSet(row) || row.epoch <= (this.forced.get(key)?.epoch ?? 0)) return;
    this.forced.delete(key);
    this.forced.set(key, { epoch: row.epoch, members: row.members, wasTold: true });
    if (this.forced.size <= FORCED_MAX) return;
    const [oldest] = this.forced.keys();
    if (oldest !== undefined) this.forced.delete(oldest);
  }

  /** What was hinted at is known by now, or served. */
  drop(key: string): void {
    this.byKey.delete(key);
    this.forced.delete(key);
  }

  all(): Iterable<SetHint> {
    return this.byKey.values();
  }

  /** Queues of `ownerId` that no store has told of, while a member of theirs is silent. */
  untold(ownerId: string, isKnown: (key: string) => boolean, silent: readonly string[]): SetHint[] {
    const found: SetHint[] = [];
    for (const [key, hint] of this.byKey) if (hint.ownerId === ownerId && !isKnown(key) && hint.members.some((member) => silent.includes(member))) found.push(hint);
    return found;
  }

  /** Called when the stores have had their time to answer: tells of each such queue once. `allListed`: every store has. */
  tell(ownerId: string, isKnown: (key: string) => boolean, silent: readonly string[], allListed: boolean): void {
    if (this.byKey.size === 0) return;
    for (const hint of this.untold(ownerId, isKnown, silent)) {
      if (this.told.has(hint)) continue;
      this.told.add(hint);
      this.log.warn('recovery', 'a partition that was known before is told by no store that answers: its mail waits for those that are missing', { partition: hint.name, missing: hint.members.filter((member) => silent.includes(member)), known: memberText(hint) });
    }
    if (!allListed) return;
    for (const [key, hint] of this.byKey) {
      if (isKnown(key)) continue;
      if (hint.ownerId === ownerId) this.log.warn('recovery', 'a partition that was known before is told by no store: if it held mail, that was lost with the memory of its stores', { partition: hint.name, known: memberText(hint) });
      this.byKey.delete(key);
    }
  }
}

/** "store-a and store-c were members at epoch 7". */
export function memberText({ members, epoch }: KnownSet): string {
  return `${members.join(' and ')} ${members.length === 1 ? 'was a member' : 'were members'} at epoch ${String(epoch)}`;
}
