/**
 * The label of a queue: what each of its entries says of where it belongs, as text (the key of a queue in its
 * partition) and as bytes (in the head of an entry, envelope.ts).
 *
 *   text    class/name                    mail/example.com
 *   bytes   | class 1 | length 1 | name … |
 *
 * Names are printable ASCII of at most 255 characters. Who makes one of a domain looks first whether it fits
 * (router.ts), so that mail is refused which no entry could name: here it is too late.
 */
import { invariant } from '../../base/invariant.js';
import { QUEUE_CLASSES } from '../../admin-api/queue-orders.js';
import type { Envelope, QueueClass } from '../mail-types.js';

/** Its length is one byte. */
export const QUEUE_NAME_CHARACTERS_MAX = 255;
/** Class and length in front of the name. */
export const LABEL_FIXED_BYTES = 2;

export interface QueueName {
  readonly queueClass: QueueClass;
  readonly name: string;
}

export function labelOf({ queueClass, name }: QueueName): string {
  return `${queueClass}/${name}`;
}

/** Where it ends, when it begins at `at`. What readLabel() would not read is never written. */
export function writeLabel(
  bytes: Uint8Array, at: number, { queueClass, queueName }: Pick<Envelope, 'queueClass' | 'queueName'>,
): number {
  const { length } = queueName;
  invariant(length > 0 && length <= QUEUE_NAME_CHARACTERS_MAX, 'the name of a queue fits into its label');
  bytes[at++] = QUEUE_CLASSES.indexOf(queueClass);
  bytes[at++] = length;
  for (let i = 0; i < length; i++) {
    const code = queueName.charCodeAt(i);
    invariant(isPrintable(code), 'the name of a queue is printable ASCII');
    bytes[at++] = code;
  }
  return at;
}

/** Class and name at `offset`; undefined when the bytes are none of ours. */
export function readLabel(view: DataView, offset: number, end: number): QueueName | undefined {
  if (offset + LABEL_FIXED_BYTES > end) return undefined;
  const queueClass = QUEUE_CLASSES[view.getUint8(offset)];
  const length = view.getUint8(offset + 1);
  if (queueClass === undefined || length === 0) return undefined;
  const from = offset + LABEL_FIXED_BYTES;
  if (from + length > end) return undefined;
  let name = '';
  for (let i = 0; i < length; i++) {
    const code = view.getUint8(from + i);
    if (!isPrintable(code)) return undefined;
    name += String.fromCharCode(code);
  }
  return { queueClass, name };
}

function isPrintable(code: number): boolean {
  return code >= 0x20 && code <= 0x7e;
}
