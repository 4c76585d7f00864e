/**
 * Requests whose answers may be large: PULL, TAIL, FETCH. They are answered in order, at once while the
 * socket takes it, else when it has drained. What waits is the request, never a built answer, and it is
 * bounded.
 *
 *   take ─► waiting (≤ WAITING_MAX) ─ socket below its mark ─► built, into the outbox
 */

import type { Packer } from '../../platform/ports.js';
import type { Connection } from '../../platform/transport.js';
import { InvalidMessage } from '../../protocol/invalid.js';
import { BLOCK, FETCH, FETCHED, PULL, TAILED, messageTypeName } from '../../protocol/message-types.js';
import { encodeBlock } from '../../protocol/messages/block.js';
import type { Fetch } from '../../protocol/messages/fetch.js';
import { decodeFetch } from '../../protocol/messages/fetch.js';
import { encodeFetched } from '../../protocol/messages/fetched.js';
import type { Pull } from '../../protocol/messages/pull.js';
import { decodePull } from '../../protocol/messages/pull.js';
import type { Tail } from '../../protocol/messages/tail.js';
import { decodeTail } from '../../protocol/messages/tail.js';
import { encodeTailed } from '../../protocol/messages/tailed.js';
import { CLOSE_LIMIT, CLOSE_MALFORMED } from '../../protocol/reasons.js';
import type { Attachment } from './attachment.js';
import { BlockBuffers } from './block-buffers.js';
import type { BuiltBlock } from './blocks.js';
import type { StoreCounters } from './counters.js';
import type { MirroredPartition } from './mirrored-partition.js';
import type { ConnectionWriter } from './connection-writer.js';
import type { Store } from './store.js';

/** Requests that wait for the socket: a recovery keeps a handful under way. */
const WAITING_MAX = 2_048;
const NO_ROWS = new Uint8Array(0);

interface Waiting {
  readonly sequence: number;
  readonly attachment: Attachment | undefined;
  readonly message: Pull | Tail | Fetch;
}

export interface RepliesPorts {
  readonly packer: Packer;
  readonly outbox: ConnectionWriter;
  readonly connection: Connection;
  readonly close: (reason: number, text: string) => void;
  readonly refuse: (
    sequence: number, handle: number, reason: number, copy: MirroredPartition | undefined,
  ) => void;
}

export class Replies {
  readonly #bufferHighBytes: number;
  readonly #ports: RepliesPorts;
  readonly #store: Store;
  readonly #counters: StoreCounters;
  #waiting: Waiting[] = [];
  readonly #buffers = new BlockBuffers();

  constructor(
    options: { readonly bufferHighBytes: number }, ports: RepliesPorts, store: Store, counters: StoreCounters,
  ) {
    this.#bufferHighBytes = options.bufferHighBytes;
    this.#ports = ports;
    this.#store = store;
    this.#counters = counters;
  }

  /** Sequence of the oldest request not yet answered, 0 when there is none. */
  get firstWaiting(): number {
    return this.#waiting[0]?.sequence ?? 0;
  }

  /** Of buffers kept for the next blocks. */
  get heldBytes(): number {
    return this.#buffers.lentBytes;
  }

  clear(): void {
    this.#waiting = [];
    this.#buffers.clear();
  }

  take(
    type: number, sequence: number, control: Uint8Array, attachments: ReadonlyMap<number, Attachment>,
  ): void {
    const { packer } = this.#ports;
    const message = type === PULL ? decodePull(packer, control)
      : type === FETCH ? decodeFetch(packer, control) : decodeTail(packer, control);
    if (message instanceof InvalidMessage) {
      this.#ports.close(CLOSE_MALFORMED, `${messageTypeName(type)}: ${message.rule}`);
      return;
    }
    this.#waiting.push({ sequence, attachment: attachments.get(message.handle), message });
    this.serve();
    if (this.#waiting.length > WAITING_MAX) {
      this.#ports.close(CLOSE_LIMIT, 'too many requests wait for answers that nobody reads');
    }
  }

  /** Answers what waits while the socket takes it. */
  serve(): void {
    let served = 0;
    const { connection, outbox } = this.#ports;
    while (connection.bufferedBytes + outbox.bytes < this.#bufferHighBytes) {
      const next = this.#waiting[served];
      if (next === undefined) break;
      this.#answer(next);
      served += 1;
    }
    if (served > 0) this.#waiting.splice(0, served);
  }

  /** Judged when it is answered: what was fenced while it waited is read no more. */
  #answer({ sequence, attachment, message }: Waiting): void {
    const reason = this.#store.checkReader(attachment);
    if (reason !== 0 || attachment === undefined) {
      this.#ports.refuse(sequence, message.handle, reason, attachment?.copy);
      return;
    }
    const { copy } = attachment;
    if ('digestA' in message) {
      this.#tailed(sequence, message, copy);
      return;
    }
    if ('positions' in message) {
      this.#fetched(sequence, message, copy);
      return;
    }
    const { handle, afterPosition, untilPosition, entriesMax, bytesMax, withBodies } = message;
    const buffer = this.#buffers.take(handle, afterPosition);
    const { blocks } = this.#store;
    const block = blocks.pull(copy, afterPosition, untilPosition, entriesMax, bytesMax, buffer, withBodies);
    this.#block(sequence, handle, afterPosition, block);
    // What is lent in this turn is not in the account yet.
    if (!block.end && this.#store.admission.mayLend(this.#buffers.lentBytes + block.buffer.length)) {
      this.#buffers.lend(handle, block.nextPosition, block.buffer);
    }
  }

  #block(sequence: number, handle: number, afterPosition: number, block: BuiltBlock): void {
    this.#counters.blocks += 1;
    this.#counters.blockBytes += block.bodies.length;
    const { nextPosition, end, rows, texts, bodies } = block;
    const control = encodeBlock(
      this.#ports.packer, { handle, afterPosition, nextPosition, end, rows, texts },
    );
    this.#ports.outbox.frameWithBodies(BLOCK, sequence, control, bodies);
  }

  #fetched(sequence: number, { handle, ask, positions }: Fetch, copy: MirroredPartition): void {
    const block = this.#store.blocks.fetch(copy, positions);
    this.#counters.blocks += 1;
    this.#counters.blockBytes += block.bodies.length;
    const { nextPosition: untilPosition, rows, bodies } = block;
    const control = encodeFetched(this.#ports.packer, { handle, ask, untilPosition, rows });
    this.#ports.outbox.frameWithBodies(FETCHED, sequence, control, bodies);
  }

  /** found = false makes the asker refill instead. */
  #tailed(sequence: number, message: Tail, copy: MirroredPartition): void {
    const tail = copy.ring.tail(copy, message.number, message.digestA, message.digestB);
    const control = encodeTailed(this.#ports.packer, {
      handle: message.handle, found: tail !== undefined, firstNumber: message.number + 1,
      digestA: copy.digestA, digestB: copy.digestB, rows: tail?.rows ?? NO_ROWS,
    });
    if (tail === undefined || tail.bodies.length === 0) this.#ports.outbox.frame(TAILED, sequence, control);
    else this.#ports.outbox.frameWithBodies(TAILED, sequence, control, tail.bodies);
  }
}
