/**
 * Takes the records of a spill file into an empty store, whatever they say: a file may be cut short, changed, made by
 * somebody else or too large. Each step answers '' or the broken rule; after a rule the store is to be thrown away.
 *
 *   AT_HEAD ─HEAD─► AT_QUEUES ─ACCOUNT─► AT_QUEUES ─QUEUE─► IN_QUEUE ─ENTRIES─► IN_QUEUE ─QUEUE, count agrees─► IN_QUEUE
 *                   AT_QUEUES, IN_QUEUE, count agrees ─END, totals agree─► DONE
 *
 * Queues come back in role SPILLED: no member, but with epoch, members, number, digest, claim and entries as they were.
 */

import type { Packer } from '../../../platform/ports.js';
import { ENTRY_ROW_BYTES } from '../../../protocol/entry-rows.js';
import { InvalidMessage } from '../../../protocol/invalid.js';
import { ROLE_SPILLED, refusalReasonName } from '../../../protocol/reasons.js';
import type { MirroredQueue } from '../mirrored-queue.js';
import type { Store } from '../store.js';
import { SPILL_ACCOUNT, SPILL_END, SPILL_ENTRIES, SPILL_HEAD, SPILL_QUEUE, checkEnd, decodeAccount, decodeHead, decodeQueue } from './records.js';

const LoadState = {
  AT_HEAD: 1,
  AT_QUEUES: 2,
  IN_QUEUE: 3,
  DONE: 4,
} as const;
type LoadState = (typeof LoadState)[keyof typeof LoadState];
const { AT_HEAD, AT_QUEUES, IN_QUEUE, DONE } = LoadState;

export class SpillLoader {
  readonly #packer: Packer;
  readonly #store: Store;
  #state: LoadState = AT_HEAD;
  #queue: MirroredQueue | undefined;
  #count = 0;
  queues = 0;
  entries = 0;

  constructor(ports: { readonly packer: Packer }, store: Store) {
    this.#packer = ports.packer;
    this.#store = store;
  }

  get isDone(): boolean {
    return this.#state === DONE;
  }

  take(type: number, control: Uint8Array, payload: Uint8Array): string {
    if (type !== SPILL_ENTRIES && payload.length > 0) return 'bytes where none belong';
    if (this.#state === AT_HEAD) return type === SPILL_HEAD ? this.#head(control) : 'no head';
    if (this.#state === DONE) return 'records behind the end';
    if (type === SPILL_ACCOUNT && this.#state === AT_QUEUES) return this.#account(control);
    if (type === SPILL_ENTRIES && this.#state === IN_QUEUE) return this.#entries(control, payload);
    if (type !== SPILL_QUEUE && type !== SPILL_END) return 'record out of place';
    const rule = this.#endQueue();
    if (rule !== '') return rule;
    return type === SPILL_QUEUE ? this.#beginQueue(control) : this.#end(control);
  }

  #head(control: Uint8Array): string {
    const head = decodeHead(this.#packer, control);
    if (head instanceof InvalidMessage) return `head: ${head.rule}`;
    if (head.storeId !== this.#store.storeId) return `it is of store '${head.storeId}'`;
    this.#state = AT_QUEUES;
    return '';
  }

  #account(control: Uint8Array): string {
    const account = decodeAccount(this.#packer, control);
    if (account instanceof InvalidMessage) return `account: ${account.rule}`;
    // Of a gateway that the configuration does not name any more nothing can connect.
    this.#store.account(account.id)?.restore(account);
    return '';
  }

  #beginQueue(control: Uint8Array): string {
    const spilled = decodeQueue(this.#packer, control);
    if (spilled instanceof InvalidMessage) return `queue: ${spilled.rule}`;
    const queue = this.#store.restoreQueue(spilled);
    if (queue === undefined) return 'queue known already, or too many queues';
    this.#queue = queue;
    this.#count = spilled.count;
    this.#state = IN_QUEUE;
    return '';
  }

  #entries(control: Uint8Array, payload: Uint8Array): string {
    const queue = this.#queue;
    const rowCount = control.length / ENTRY_ROW_BYTES;
    if (queue === undefined || !Number.isInteger(rowCount)) return 'rows';
    const view = new DataView(control.buffer, control.byteOffset, control.length);
    const { refills, admission } = this.#store;
    if (refills.payloadBytes(view, 0, rowCount) !== payload.length) return 'rows and bytes do not fit';
    if (admission.usedBytes + refills.costBytes(view, 0, rowCount) > admission.refillBytes) return 'more than the memory limit allows';
    const reason = refills.take(queue, view, 0, rowCount, payload);
    if (reason !== 0) return `entry: ${refusalReasonName(reason)}`;
    this.entries += rowCount;
    return '';
  }

  #endQueue(): string {
    const queue = this.#queue;
    if (queue === undefined) return '';
    if (this.#store.refills.end(queue, this.#count) !== 0) return 'count of entries';
    queue.role = ROLE_SPILLED;
    this.queues += 1;
    this.#queue = undefined;
    return '';
  }

  #end(control: Uint8Array): string {
    const rule = checkEnd(this.#packer, control, this.queues, this.entries);
    if (rule === '') this.#state = DONE;
    return rule;
  }
}
