/**
 * Requests whose answers may be large: LIST, PULL, PULL_BODIES, TAIL. They are answered in order, at once while the
 * socket takes it, else when it has drained. What waits is the request, never a built answer, and it is bounded.
 *
 *   take ─► waiting (≤ WAITING_MAX) ─ socket below its mark ─► built, into the outbox
 */

import type { Packer } from '../../platform/ports.js';
import type { Connection } from '../../platform/transport.js';
import { InvalidMessage } from '../../protocol/invalid.js';
import { BLOCK, LIST, LISTED, PULL, PULL_BODIES, TAIL, TAILED, messageTypeName } from '../../protocol/message-types.js';
import { encodeBlock } from '../../protocol/messages/block.js';
import type { List } from '../../protocol/messages/list.js';
import { decodeList } from '../../protocol/messages/list.js';
import type { ListedRow } from '../../protocol/messages/listed.js';
import { encodeListed } from '../../protocol/messages/listed.js';
import type { Pull } from '../../protocol/messages/pull.js';
import { decodePull } from '../../protocol/messages/pull.js';
import type { PullBodies } from '../../protocol/messages/pull-bodies.js';
import { decodePullBodies } from '../../protocol/messages/pull-bodies.js';
import type { Tail } from '../../protocol/messages/tail.js';
import { decodeTail } from '../../protocol/messages/tail.js';
import { encodeTailed } from '../../protocol/messages/tailed.js';
import { CLOSE_LIMIT, CLOSE_MALFORMED, REFUSAL_LIMIT } from '../../protocol/reasons.js';
import type { GatewayAccount } from './accounts.js';
import type { Attachment } from './attachment.js';
import { BlockBuffers } from './block-buffers.js';
import type { BuiltBlock } from './blocks.js';
import type { StoreCounters } from './counters.js';
import type { MirroredQueue } from './mirrored-queue.js';
import type { ConnectionWriter } from './connection-writer.js';
import type { Store } from './store.js';

/** Requests that wait for the socket, and the positions they name: a recovery keeps a handful under way. */
const WAITING_MAX = 2_048;
const WAITING_BYTES_MAX = 4 * 1024 * 1024;
/** Queues in one LISTED: about 100 KiB. */
const LISTED_ROWS = 512;
const NO_ROWS = new Uint8Array(0);

interface Waiting {
  readonly type: number;
  readonly sequence: number;
  readonly attachment: Attachment | undefined;
  readonly message: List | Pull | PullBodies | Tail;
}

export interface RepliesPorts {
  readonly packer: Packer;
  readonly outbox: ConnectionWriter;
  readonly connection: Connection;
  readonly close: (reason: number, text: string) => void;
  readonly refuse: (sequence: number, handle: number, reason: number, queue: MirroredQueue | undefined) => void;
}

export class Replies {
  readonly #bufferHighBytes: number;
  readonly #ports: RepliesPorts;
  readonly #store: Store;
  readonly #counters: StoreCounters;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  readonly #buffers = new BlockBuffers();

  constructor(options: { readonly bufferHighBytes: number }, ports: RepliesPorts, store: Store, counters: StoreCounters) {
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
    this.#waitingBytes = 0;
    this.#buffers.clear();
  }

  take(type: number, sequence: number, control: Uint8Array, attachments: ReadonlyMap<number, Attachment>, account: GatewayAccount): void {
    const message = this.#decode(type, control);
    if (message instanceof InvalidMessage) {
      this.#ports.close(CLOSE_MALFORMED, `${messageTypeName(type)}: ${message.rule}`);
      return;
    }
    const attachment = 'handle' in message ? attachments.get(message.handle) : undefined;
    this.#waiting.push({ type, sequence, attachment, message });
    if ('positions' in message) this.#waitingBytes += message.positions.length;
    this.serve(account);
    if (this.#waiting.length > WAITING_MAX || this.#waitingBytes > WAITING_BYTES_MAX) {
      this.#ports.close(CLOSE_LIMIT, 'too many requests wait for answers that nobody reads');
    }
  }

  /** Answers what waits while the socket takes it. */
  serve(account: GatewayAccount): void {
    let served = 0;
    while (served < this.#waiting.length && this.#ports.connection.bufferedBytes + this.#ports.outbox.bytes < this.#bufferHighBytes) {
      const next = this.#waiting[served];
      if (next === undefined) break;
      this.#answer(next, account);
      served += 1;
    }
    if (served > 0) this.#waiting.splice(0, served);
    if (this.#waiting.length === 0) this.#waitingBytes = 0;
  }

  #decode(type: number, control: Uint8Array): List | Pull | PullBodies | Tail | InvalidMessage {
    const { packer } = this.#ports;
    if (type === LIST) return decodeList(packer, control);
    if (type === PULL) return decodePull(packer, control);
    if (type === TAIL) return decodeTail(packer, control);
    const message = decodePullBodies(packer, control);
    // A view of the frame would be overwritten while the request waits.
    return message instanceof InvalidMessage ? message : { handle: message.handle, positions: message.positions.slice() };
  }

  #answer(request: Waiting, account: GatewayAccount): void {
    const { type, sequence, attachment, message } = request;
    if (!('handle' in message)) {
      this.#listed(sequence, message, account);
      return;
    }
    const reason = this.#store.checkHolder(account, attachment);
    if (reason !== 0 || attachment === undefined) {
      this.#ports.refuse(sequence, message.handle, reason, attachment?.queue);
      return;
    }
    const { queue } = attachment;
    if (type === PULL && 'afterPosition' in message) {
      const { handle, afterPosition, untilPosition, entriesMax, bytesMax, bodies } = message;
      const block = this.#store.blocks.pull(queue, afterPosition, untilPosition, entriesMax, bytesMax, bodies, this.#buffers.take(handle, afterPosition));
      this.#block(sequence, handle, afterPosition, block);
      // What is lent in this turn is not in the account yet.
      if (!block.end && this.#store.admission.mayLend(this.#buffers.lentBytes + block.buffer.length)) this.#buffers.lend(handle, block.nextPosition, block.buffer);
    } else if (type === PULL_BODIES && 'positions' in message) {
      const block = this.#store.blocks.bodies(queue, message.positions);
      if (block === undefined) this.#ports.refuse(sequence, message.handle, REFUSAL_LIMIT, queue);
      else this.#block(sequence, message.handle, 0, block);
    } else if (type === TAIL && 'digestA' in message) {
      this.#tailed(sequence, message, queue);
    }
  }

  #block(sequence: number, handle: number, afterPosition: number, block: BuiltBlock): void {
    this.#counters.blocks += 1;
    this.#counters.blockBytes += block.bodies.length;
    const control = encodeBlock(this.#ports.packer, { handle, afterPosition, nextPosition: block.nextPosition, end: block.end, rows: block.rows, texts: block.texts });
    this.#ports.outbox.frameWithBodies(BLOCK, sequence, control, block.bodies);
  }

  /** found = false makes the asker refill instead. */
  #tailed(sequence: number, message: Tail, queue: MirroredQueue): void {
    const tail = queue.ring.tail(queue, message.number, message.digestA, message.digestB);
    const control = encodeTailed(this.#ports.packer, {
      handle: message.handle, found: tail !== undefined, firstNumber: message.number + 1,
      digestA: queue.digestA, digestB: queue.digestB, rows: tail?.rows ?? NO_ROWS,
    });
    if (tail === undefined || tail.bodies.length === 0) this.#ports.outbox.frame(TAILED, sequence, control);
    else this.#ports.outbox.frameWithBodies(TAILED, sequence, control, tail.bodies);
  }

  #listed(sequence: number, message: List, account: GatewayAccount): void {
    const rows: ListedRow[] = [];
    let next = message.cursor;
    let complete = true;
    this.#store.list(account, message.gatewayId, message.cursor, (queue, ordinal) => {
      if (rows.length === LISTED_ROWS) {
        complete = false;
        return false;
      }
      rows.push(listedRow(queue, this.#store.roleToldTo(account, queue)));
      next = ordinal;
      return true;
    });
    this.#ports.outbox.frame(LISTED, sequence, encodeListed(this.#ports.packer, { next, complete, rows }));
  }
}

function listedRow(queue: MirroredQueue, role: number): ListedRow {
  const { ownerId, birth, serial, name, queueClass, ordering } = queue.attributes;
  return {
    gatewayId: ownerId, birth, serial, name, queueClass, ordering, role, epoch: queue.epoch, members: queue.members,
    number: queue.number, digestA: queue.digestA, digestB: queue.digestB, count: queue.count, bytes: queue.bytes,
    holder: queue.holder, holderToken: queue.holderToken,
  };
}
