/**
 * The management table (the paper's Table I) as rows for people: each (partition, store) with the network
 * state of its paths, sync state, epoch, numbers, lag, since when and why. Read when somebody asks; each row
 * is a few additions, no walk over messages.
 */
import type { Clock } from '../platform/ports.js';
import type { PathView, TablePage, TableRowView } from './admin/view.js';
import type { StoreLink } from './mirror/link/store-link.js';
import type { Partition } from './mirror/partition.js';
import type { PartitionMember } from '../recovery/ownership/member.js';
import { MemberState } from '../recovery/ownership/member.js';

export interface MirrorTablePorts {
  readonly clock: Clock;
  readonly links: readonly StoreLink[];
  /** Copies in sync that a queue should have. */
  readonly replicas: number;
  all(): readonly Partition[];
}

/** What a partition lacks: changes that it has not acknowledged, or what its refill still has to send. */
export interface Lag {
  /** Of changes each counts: deletions, notes and sets of mirrors, too. */
  readonly messages: number;
  readonly bytes: number;
}

interface Networks {
  readonly a: PathView['state'] | '-';
  readonly s: PathView['state'] | '-';
}

const NO_NETWORKS: Networks = { a: '-', s: '-' };

/** Rows keep their places while copies come and go. */
const byStore = (a: PartitionMember, b: PartitionMember): number => (a.storeId < b.storeId ? -1 : 1);

export class MirrorTable {
  readonly #ports: MirrorTablePorts;

  constructor(ports: MirrorTablePorts) {
    this.#ports = ports;
  }

  /** Rows of whole queues behind `cursor` ('' = from the start), at most `limit` queues. */
  page(cursor: string, limit: number): TablePage {
    const { page, nextCursor } = pageByHandle(this.#ports.all(), cursor, limit);
    return { rows: this.#rowsOf(page), nextCursor };
  }

  /** Rows of the `most` queues that need a look first: copies missing, then lag, then length. */
  troubled(most: number): readonly TableRowView[] {
    const { replicas } = this.#ports;
    const ranked = this.#ports.all().map((partition) =>
      ({ partition, missing: replicas - partition.inSyncCount, lag: queueLag(partition).bytes }));
    ranked.sort((a, b) => b.missing - a.missing || b.lag - a.lag || b.partition.length - a.partition.length);
    return this.#rowsOf(ranked.slice(0, most).map(({ partition }) => partition));
  }

  #rowsOf(mirrors: readonly Partition[]): TableRowView[] {
    const networks = new Map(this.#ports.links.map((link) => [link.storeId, networksOf(link)]));
    const rows: TableRowView[] = [];
    for (const partition of mirrors) {
      for (const copy of [...partition.rows].sort(byStore)) {
        rows.push(this.#row(partition, copy, networks.get(copy.storeId) ?? NO_NETWORKS));
      }
    }
    return rows;
  }

  #row(partition: Partition, copy: PartitionMember, networks: Networks): TableRowView {
    const { clock } = this.#ports;
    const lag = lagOf(partition, copy);
    // Changes of this turn are not in the digest yet; entries still coming back are not in the count.
    const isSettled = !partition.isDirty && !partition.isRecovering;
    return {
      partition: partition.name,
      owner: partition.ownerId,
      store: copy.storeId,
      networkA: networks.a,
      networkS: networks.s,
      sync: copy.shown,
      progress: copy.state === MemberState.FILLING ? partition.feedOf(copy).progress.refillShare : undefined,
      member: copy.isRecorded,
      epoch: partition.epoch,
      transactions: copy.state === MemberState.NG ? undefined : copy.acked,
      lastTransaction: partition.lastNumber,
      digest: isSettled ? digestText(partition.digest.a, partition.digest.b) : undefined,
      messages: partition.length,
      lagMessages: lag.messages,
      lagBytes: lag.bytes,
      sinceWallMs: clock.wallMs() - (clock.nowMs() - copy.sinceMs),
      cause: copy.cause,
    };
  }
}

/** Queues by handle, so that a page goes on where the one before ended whatever came or went. */
export function pageByHandle<T extends { readonly handle: number }>(
  all: readonly T[], cursor: string, limit: number,
): { readonly page: readonly T[]; readonly nextCursor: string | undefined } {
  const behind = Number(cursor);
  const rest = all.filter((one) => one.handle > behind).sort((a, b) => a.handle - b.handle);
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  return { page, nextCursor: rest.length > limit && last !== undefined ? String(last.handle) : undefined };
}

export function lagOf(partition: Partition, copy: PartitionMember): Lag {
  const { progress } = partition.feedOf(copy);
  if (progress.isRefilling) return { messages: progress.messagesToRefill, bytes: progress.bytesToRefill };
  const messages = Math.max(0, partition.lastNumber - copy.acked);
  return { messages, bytes: progress.bytesBehind(partition.sealedBytes) };
}

/** The partition that is farthest behind. */
export function queueLag(partition: Partition): Lag {
  let messages = 0;
  let bytes = 0;
  for (const copy of partition.rows) {
    const lag = lagOf(partition, copy);
    if (lag.messages > messages) messages = lag.messages;
    if (lag.bytes > bytes) bytes = lag.bytes;
  }
  return { messages, bytes };
}

function digestText(a: number, b: number): string {
  return `${(a >>> 0).toString(16).padStart(8, '0')}${(b >>> 0).toString(16).padStart(8, '0')}`;
}

/** Columns of the table by the name of the path, whichever of them is in use. */
function networksOf(link: StoreLink): Networks {
  const states = link.pathStates();
  return { a: states[0]?.state ?? '-', s: states[1]?.state ?? '-' };
}
