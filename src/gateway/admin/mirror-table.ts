/**
 * The management table (the paper's Table I) as rows for people: each (partition, store) with the network
 * state of its paths, sync state, epoch, numbers, lag, since when and why. Read when somebody asks; each row
 * is a few additions, no walk over messages.
 */
import type { Clock } from '../../platform/ports.js';
import { digestText } from '../../protocol/digest.js';
import type { TablePageAnswer, TableRowAnswer } from '../../admin-api/gateway-answers.js';
import type { Page } from '../../admin-api/pages.js';
import { wholeSeconds } from '../../base/units.js';
import type { StoreLink } from '../mirror/link/store-link.js';
import type { Partition } from '../mirror/set/partition.js';
import type { PartitionMember } from '../../recovery/ownership/member.js';
import { MemberState } from '../../recovery/ownership/member.js';

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

type Networks = Pick<TableRowAnswer, 'network_a' | 'network_s'>;

const NO_NETWORKS: Networks = { network_a: '-', network_s: '-' };

/** Rows keep their places while copies come and go. */
const byStore = (a: PartitionMember, b: PartitionMember): number => (a.storeId < b.storeId ? -1 : 1);

export class MirrorTable {
  readonly #ports: MirrorTablePorts;

  constructor(ports: MirrorTablePorts) {
    this.#ports = ports;
  }

  /** Rows of whole queues behind `cursor` ('' = from the start), at most `limit` queues. */
  page(cursor: string, limit: number): TablePageAnswer {
    const { rows, next_cursor } = pageByHandle(this.#ports.all(), cursor, limit);
    return { rows: this.#rowsOf(rows), next_cursor };
  }

  /** Rows of the `most` queues that need a look first: copies missing, then lag, then length. */
  troubled(most: number): readonly TableRowAnswer[] {
    const { replicas } = this.#ports;
    const ranked = this.#ports.all().map((partition) =>
      ({ partition, missing: replicas - partition.inSyncCount, lag: queueLag(partition).bytes }));
    ranked.sort((a, b) => b.missing - a.missing || b.lag - a.lag || b.partition.length - a.partition.length);
    return this.#rowsOf(ranked.slice(0, most).map(({ partition }) => partition));
  }

  #rowsOf(mirrors: readonly Partition[]): TableRowAnswer[] {
    const networks = new Map(this.#ports.links.map((link) => [link.storeId, networksOf(link)]));
    const rows: TableRowAnswer[] = [];
    for (const partition of mirrors) {
      for (const copy of [...partition.rows].sort(byStore)) {
        rows.push(this.#row(partition, copy, networks.get(copy.storeId) ?? NO_NETWORKS));
      }
    }
    return rows;
  }

  #row(partition: Partition, copy: PartitionMember, networks: Networks): TableRowAnswer {
    const { clock } = this.#ports;
    const lag = lagOf(partition, copy);
    // Changes of this turn are not in the digest yet; entries still coming back are not in the count.
    const isSettled = !partition.isDirty && !partition.isRecovering;
    const { progress: { refillShare } } = partition.feedOf(copy);
    return {
      partition: partition.name,
      owner: partition.ownerId,
      store: copy.storeId,
      ...networks,
      sync: copy.shown,
      progress: copy.state === MemberState.FILLING && refillShare !== undefined
        ? Math.round(refillShare * 1000) / 1000 : null,
      member: copy.isRecorded,
      epoch: partition.epoch,
      transactions: copy.state === MemberState.NG ? null : copy.acked,
      last_transaction: partition.lastNumber,
      digest: isSettled ? digestText(partition.digest.a, partition.digest.b) : null,
      messages: partition.length,
      lag_messages: lag.messages,
      lag_bytes: lag.bytes,
      since: wholeSeconds(clock.wallMs() - (clock.nowMs() - copy.sinceMs)),
      cause: copy.cause,
    };
  }
}

/** Queues by handle, so that a page goes on where the one before ended whatever came or went. */
export function pageByHandle<T extends { readonly handle: number }>(
  all: readonly T[], cursor: string, limit: number,
): Page<T> {
  const behind = Number(cursor);
  const rest = all.filter((one) => one.handle > behind).sort((a, b) => a.handle - b.handle);
  const rows = rest.slice(0, limit);
  const last = rows.at(-1);
  return { rows, next_cursor: rest.length > limit && last !== undefined ? String(last.handle) : null };
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

/** Columns of the table by the name of the path, whichever of them is in use. */
function networksOf(link: StoreLink): Networks {
  const states = link.pathStates();
  return { network_a: states[0]?.state ?? '-', network_s: states[1]?.state ?? '-' };
}
