/**
 * Writes that wait, and how they are put together into transactions. A transaction is judged at one moment:
 * etcd evaluates the compares of all its parts before it writes any. So in one batch
 *
 *   - no key is written twice (etcd would refuse the whole of it),
 *   - no write guards a key that another one writes (two that guard each other's key would both pass),
 *   - all writes go with one session, or all with none (a session that is over fails the whole of it),
 *   - count and bytes are bounded: `operationsMax` counts as etcd does, the writes and the compares of the
 *     longest.
 *
 * A key that is under way in one batch waits with its next write until that is answered. The order of waiting
 * writes is kept otherwise.
 */
import { TRANSACTION_BYTES_MAX, utf8Bytes } from '../limits.js';
import type { LineWrite } from '../line.js';
import type { Outcome } from '../port.js';

export interface WaitingWrite {
  readonly write: LineWrite;
  readonly deadlineMs: number;
  readonly settle: (outcome: Outcome) => void;
}

export interface Batch {
  readonly writes: readonly WaitingWrite[];
  readonly sentMs: number;
  /** The first of their deadlines. */
  readonly deadlineMs: number;
}

/**
 * What one write adds to a request beside its texts: field headers, the range that echoes what stands there.
 */
const WRITE_OVERHEAD_BYTES = 64;

/** Takes the next batch out of `waiting`; undefined when nothing may go. */
export function takeBatch(
  waiting: WaitingWrite[],
  keysUnderWay: ReadonlySet<string>,
  operationsMax: number,
  nowMs: number,
): Batch | undefined {
  const writes: WaitingWrite[] = [];
  const written = new Set<string>();
  const guarded = new Set<string>();
  let comparesMax = 0;
  let bytes = 0;
  let kept = 0;
  let isFull = false;
  const passedOver = new Set<string>();
  for (const each of waiting) {
    const { write } = each;
    // A revision and a value of each.
    const compares = Math.max(comparesMax, 2 * (1 + write.guards.length));
    const cost = costOf(write);
    const mayGo: boolean = !isFull && fits(write, written, guarded)
      && !keysUnderWay.has(write.key) && !passedOver.has(write.key)
      && write.session === (writes[0]?.write.session ?? write.session);
    isFull ||= mayGo && writes.length > 0
      && (writes.length + 1 + compares > operationsMax || bytes + cost > TRANSACTION_BYTES_MAX);
    if (!mayGo || isFull) {
      passedOver.add(write.key);
      waiting[kept++] = each;
      continue;
    }
    writes.push(each);
    written.add(write.key);
    for (const { key } of write.guards) guarded.add(key);
    comparesMax = compares;
    bytes += cost;
  }
  waiting.length = kept;
  if (writes.length === 0) return undefined;
  return { writes, sentMs: nowMs, deadlineMs: Math.min(...writes.map(({ deadlineMs }) => deadlineMs)) };
}

function fits(write: LineWrite, written: ReadonlySet<string>, guarded: ReadonlySet<string>): boolean {
  return !written.has(write.key) && !guarded.has(write.key)
    && !write.guards.some(({ key }) => written.has(key));
}

function costOf(write: LineWrite): number {
  const guards = write.guards.reduce(
    (bytes, { key, value }) => bytes + 3 * utf8Bytes(key) + utf8Bytes(value ?? '') + WRITE_OVERHEAD_BYTES,
    0,
  );
  const values = utf8Bytes(write.value ?? '') + utf8Bytes(write.ifValue ?? '');
  return 4 * utf8Bytes(write.key) + values + WRITE_OVERHEAD_BYTES + guards;
}
