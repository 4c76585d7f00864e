/**
 * Which processes reach the copies of one partition: to whom it may be given. That a process has a key in the
 * register says nothing of its links to stores. A partition given to one without them waits until its lease
 * is over, is taken back, and given away again. So its members are asked: a process that they have a lease
 * for sends them heartbeats.
 *
 *   ASK about a process ─► its place in the line of that store ─ ASKED ─► the oldest in line: leased or not
 *   link lost, or another path ─► what is in line there is not answered
 *
 * All questions of the partition stand in line, also those of its takeover: ASKED does not say whom it is
 * about.
 */
import type { HolderId, RecordedMember } from '../../protocol/partition-record.js';
import { holderKey } from '../../protocol/partition-record.js';

/** Asked again after so long, for as long as somebody wants to know. */
const AGAIN_MS = 1_000;
/** An answer counts for so long: a question that was lost is asked again meanwhile. */
const FRESH_MS = 3_000;

/** What members have said of one process. */
interface Seen {
  askedMs: number;
  /** By store: the boot in which it has a lease there, and since when that is known. */
  readonly leasedAt: Map<string, { readonly bootId: string; readonly atMs: number }>;
}

export class Reach {
  readonly #ask: (storeId: string, about: HolderId) => void;
  /** By process. */
  readonly #seen = new Map<string, Seen>();
  /** By store: processes that it was asked about and did not speak of yet. */
  readonly #lines = new Map<string, string[]>();

  constructor(ask: (storeId: string, about: HolderId) => void) {
    this.#ask = ask;
  }

  /** A question is on its way. */
  noteAsked(storeId: string, about: HolderId): void {
    const line = this.#lines.get(storeId);
    if (line === undefined) this.#lines.set(storeId, [holderKey(about)]);
    else line.push(holderKey(about));
  }

  onAsked(storeId: string, bootId: string, leaseLeftMs: number, nowMs: number): void {
    const seen = this.#seen.get(this.#lines.get(storeId)?.shift() ?? '');
    if (seen === undefined) return;
    if (leaseLeftMs > 0) seen.leasedAt.set(storeId, { bootId, atMs: nowMs });
    else seen.leasedAt.delete(storeId);
  }

  onLinkLost(storeId: string): void {
    this.#lines.delete(storeId);
  }

  /** Every one of these copies has said so lately. Asks them, if need be: call it again. */
  reaches(process: HolderId, members: readonly RecordedMember[], nowMs: number): boolean {
    const key = holderKey(process);
    let seen = this.#seen.get(key);
    if (seen === undefined) {
      seen = { askedMs: -Infinity, leasedAt: new Map() };
      this.#seen.set(key, seen);
    }
    if (nowMs - seen.askedMs >= AGAIN_MS) {
      seen.askedMs = nowMs;
      for (const { storeId } of members) this.#ask(storeId, process);
    }
    const { leasedAt } = seen;
    return members.every(({ storeId, bootId }) => {
      const leased = leasedAt.get(storeId);
      return leased?.bootId === bootId && nowMs - leased.atMs < FRESH_MS;
    });
  }

  /** It is ours no more: nobody is asked about. */
  forget(): void {
    this.#seen.clear();
  }
}
