/**
 * The management table (the paper's Table I) as rows for people: each (queue, store) with the network state
 * of its paths, sync state, epoch, numbers, lag, since when and why. Read when somebody asks; each row is a
 * few additions, no walk over messages.
 */
import type { Clock } from '../platform/ports.js';
import type { PathView, TablePage, TableRowView } from './admin/view.js';
import { causeOf, sinceMsOf } from './mirror/away-cause.js';
import type { StoreLink } from './mirror/link/store-link.js';
import type { QueueMirror } from './mirror/queue-mirror.js';
import type { Replica } from './mirror/replica.js';
import { SyncState, SYNC_STATE_NAMES } from './mirror/replica.js';

export interface MirrorTablePorts {
  readonly clock: Clock;
  readonly links: readonly StoreLink[];
  /** Copies in sync that a queue should have. */
  readonly replicas: number;
  all(): readonly QueueMirror[];
}

/** What a mirror lacks: changes that it has not acknowledged, or what its refill still has to send. */
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

export class MirrorTable {
  private readonly ports: MirrorTablePorts;

  constructor(ports: MirrorTablePorts) {
    this.ports = ports;
  }

  /** Rows of whole queues behind `cursor` ('' = from the start), at most `limit` queues. */
  page(cursor: string, limit: number): TablePage {
    const { page, nextCursor } = pageByHandle(this.ports.all(), cursor, limit);
    return { rows: this.rowsOf(page), nextCursor };
  }

  /** Rows of the `most` queues that need a look first: copies missing, then lag, then length. */
  troubled(most: number): readonly TableRowView[] {
    const ranked = this.ports.all().map((mirror) => ({ mirror, missing: this.ports.replicas - mirror.inSyncCount, lag: queueLag(mirror).bytes }));
    ranked.sort((a, b) => b.missing - a.missing || b.lag - a.lag || b.mirror.queue.length - a.mirror.queue.length);
    return this.rowsOf(ranked.slice(0, most).map(({ mirror }) => mirror));
  }

  private rowsOf(mirrors: readonly QueueMirror[]): TableRowView[] {
    const networks = new Map(this.ports.links.map((link) => [link.storeId, networksOf(link)]));
    const rows: TableRowView[] = [];
    for (const mirror of mirrors) for (const replica of mirror.replicas) rows.push(this.row(mirror, replica, networks.get(replica.store.storeId) ?? NO_NETWORKS));
    return rows;
  }

  private row(mirror: QueueMirror, replica: Replica, networks: Networks): TableRowView {
    const { clock } = this.ports;
    const { queue } = mirror;
    const lag = lagOf(mirror, replica);
    return {
      queue: queue.name,
      queueClass: queue.route.queueClass,
      owner: queue.identity.ownerId,
      birth: queue.identity.birth,
      serial: queue.identity.serial,
      store: replica.store.storeId,
      networkA: networks.a,
      networkS: networks.s,
      sync: SYNC_STATE_NAMES[replica.sync],
      progress: replica.sync === SyncState.RESYNC ? replica.progress.refillShare : undefined,
      member: replica.member,
      epoch: mirror.epoch,
      transactions: replica.sync === SyncState.NG ? undefined : replica.acked,
      lastTransaction: mirror.lastNumber,
      // Changes of this turn are not in the digest yet; entries still coming back are not in the count.
      digest: mirror.isDirty || queue.isRecovering ? undefined : digestText(mirror.digest.a, mirror.digest.b),
      messages: queue.length,
      lagMessages: lag.messages,
      lagBytes: lag.bytes,
      sinceWallMs: clock.wallMs() - (clock.nowMs() - sinceMsOf(replica)),
      cause: causeOf(replica),
    };
  }
}

/** Queues by handle, so that a page goes on where the one before ended whatever came or went. */
export function pageByHandle(all: readonly QueueMirror[], cursor: string, limit: number): { readonly page: readonly QueueMirror[]; readonly nextCursor: string | undefined } {
  const behind = Number(cursor);
  const rest = all.filter((mirror) => mirror.handle > behind).sort((a, b) => a.handle - b.handle);
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  return { page, nextCursor: rest.length > limit && last !== undefined ? String(last.handle) : undefined };
}

export function lagOf(mirror: QueueMirror, replica: Replica): Lag {
  const { progress } = replica;
  if (progress.isRefilling) return { messages: progress.messagesToRefill, bytes: progress.bytesToRefill };
  return { messages: Math.max(0, mirror.lastNumber - replica.acked), bytes: progress.bytesBehind(mirror.sealedBytes) };
}

/** The mirror that is farthest behind. */
export function queueLag(mirror: QueueMirror): Lag {
  let messages = 0;
  let bytes = 0;
  for (const replica of mirror.replicas) {
    const lag = lagOf(mirror, replica);
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
