/**
 * A walk through the queues of one name, a page at a time: for what operators read (core-view.ts,
 * export-view.ts). The cursor is the place shown last, as "handle of the queue.position.message id"; an entry
 * that has gone meanwhile costs a walk to its position, no more. Pure.
 */
import type { EntryTable } from './entry-table.js';
import type { MailQueue } from './mail-queue.js';

export interface Place {
  readonly queue: MailQueue;
  readonly row: number;
}

/** Those of a class, in the order of the walk. */
export function queuesOfClass(queues: readonly MailQueue[], queueClass: string): readonly MailQueue[] {
  return queues.filter(({ route }) => route.queueClass === queueClass).sort((a, b) => a.handle - b.handle);
}

/** All places behind a cursor; '' is before the first. */
export function* placesBehind(
  cursor: string, queues: readonly MailQueue[], table: EntryTable,
): Generator<Place, void, undefined> {
  const [handle = 0, position = 0, messageId = 0] = cursor.split('.').map(Number);
  for (const queue of queues) {
    if (queue.handle < handle) continue;
    let row = queue.handle === handle ? rowBehind(queue, table, position, messageId) : queue.first;
    for (; row !== 0; row = queue.following(row)) yield { queue, row };
  }
}

export function cursorAt({ queue, row }: Place, table: EntryTable): string {
  return `${String(queue.handle)}.${String(table.position.get(row))}.${String(table.messageId(row))}`;
}

function rowBehind(queue: MailQueue, table: EntryTable, position: number, messageId: number): number {
  let row = Number.isSafeInteger(messageId) ? table.index.find(messageId, queue.handle) : 0;
  if (row !== 0 && table.position.get(row) === position) return queue.following(row);
  row = queue.first;
  while (row !== 0 && table.position.get(row) <= position) row = queue.following(row);
  return row;
}
