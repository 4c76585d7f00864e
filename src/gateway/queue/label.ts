/**
 * The label of a queue: what each of its entries says of where it belongs, as text (the key of a queue in its
 * partition) and as bytes (in the head of an entry, envelope.ts).
 *
 *   text    class/name                    mail/example.com
 *   bytes   | class 1 | length 1 | name … |
 *
 * Names are printable ASCII of at most 255 characters (config/keys/schema.ts).
 */
import { QUEUE_CLASSES } from '../../admin-api/queue-orders.js';
import type { QueueClass } from './types.js';

export interface QueueName {
  readonly queueClass: QueueClass;
  readonly name: string;
}

export function labelOf({ queueClass, name }: QueueName): string {
  return `${queueClass}/${name}`;
}

/** Number of the class in the bytes. */
export function classNumber(queueClass: QueueClass): number {
  return QUEUE_CLASSES.indexOf(queueClass);
}

/** Class and name at `offset`; undefined when the bytes are none of ours. */
export function readLabel(view: DataView, offset: number, end: number): QueueName | undefined {
  if (offset + 2 > end) return undefined;
  const queueClass = QUEUE_CLASSES[view.getUint8(offset)];
  const length = view.getUint8(offset + 1);
  if (queueClass === undefined || length === 0 || offset + 2 + length > end) return undefined;
  let name = '';
  for (let i = 0; i < length; i++) {
    const code = view.getUint8(offset + 2 + i);
    if (code < 0x20 || code > 0x7e) return undefined;
    name += String.fromCharCode(code);
  }
  return { queueClass, name };
}
