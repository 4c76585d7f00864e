/**
 * Makes a store of the records of a spill file, whatever they say: a file may be cut short, changed, made by
 * somebody else or too large. Each step answers '' or the broken rule; after a rule the store is to be thrown
 * away.
 *
 *   AT_HEAD ─HEAD / a store of that boot─► AT_PARTS ─ACCOUNT, PROCESS, FENCE─► AT_PARTS
 *   AT_PARTS ─COPY─► IN_COPY ─ENTRIES─► IN_COPY ─COPY, count agrees─► IN_COPY
 *   AT_PARTS, IN_COPY, count agrees ─END, totals agree─► DONE
 *
 * What comes back is the same boot: each partition's fence with what it was told, what each process is to
 * hear of its fences, and the copies with number, digest, last term and entries as they were. Leases are not
 * in it: of any that were granted in this boot the end is unknown.
 */
import { invariant } from '../../../base/invariant.js';
import type { Packer } from '../../../platform/ports.js';
import { ENTRY_ROW_BYTES } from '../../../protocol/entry-rows.js';
import { InvalidMessage } from '../../../protocol/invalid.js';
import type { FenceNotice } from '../../../protocol/messages/beat.js';
import { refusalReasonName } from '../../../protocol/reasons.js';
import type { SpillHead } from '../../../protocol/spill-records.js';
import {
  SPILL_ACCOUNT, SPILL_COPY, SPILL_END, SPILL_ENTRIES, SPILL_FENCE, SPILL_HEAD, SPILL_PROCESS, checkEnd,
  decodeAccount, decodeCopy, decodeHead, decodeProcess, decodeSpilledFence,
} from '../../../protocol/spill-records.js';
import type { MirroredPartition } from '../mirrored-partition.js';
import type { Store } from '../store.js';

const LoadState = {
  AT_HEAD: 1,
  AT_PARTS: 2,
  IN_COPY: 3,
  DONE: 4,
} as const;
type LoadState = (typeof LoadState)[keyof typeof LoadState];
const { AT_HEAD, AT_PARTS, IN_COPY, DONE } = LoadState;

const NEXT: Readonly<Record<LoadState, readonly LoadState[]>> = {
  [AT_HEAD]: [AT_PARTS],
  [AT_PARTS]: [IN_COPY, DONE],
  [IN_COPY]: [IN_COPY, DONE],
  [DONE]: [],
};

export interface SpillLoaderOptions {
  readonly storeId: string;
}

export interface SpillLoaderPorts {
  readonly packer: Packer;
  /** An empty store that goes on as this boot. */
  readonly newStore: (head: SpillHead) => Store;
}

export class SpillLoader {
  readonly #storeId: string;
  readonly #ports: SpillLoaderPorts;
  #state: LoadState = AT_HEAD;
  #head: SpillHead | undefined;
  #store: Store | undefined;
  #copy: MirroredPartition | undefined;
  #count = 0;
  /** By process: how many fences, and those that it is to hear of. */
  readonly #processes = new Map<string, { readonly fenceCount: number; readonly fences: FenceNotice[] }>();
  fences = 0;
  copies = 0;
  entries = 0;

  constructor(options: SpillLoaderOptions, ports: SpillLoaderPorts) {
    this.#storeId = options.storeId;
    this.#ports = ports;
  }

  /** Undefined until the first record was taken. */
  get head(): SpillHead | undefined {
    return this.#head;
  }

  /** Undefined until the last record was taken. */
  get loaded(): Store | undefined {
    return this.#state === DONE ? this.#store : undefined;
  }

  take(type: number, control: Uint8Array, payload: Uint8Array): string {
    if (type !== SPILL_ENTRIES && payload.length > 0) return 'bytes where none belong';
    const store = this.#store;
    if (store === undefined) return type === SPILL_HEAD ? this.#begin(control) : 'no head';
    if (this.#state === DONE) return 'records behind the end';
    if (type === SPILL_ENTRIES && this.#state === IN_COPY) return this.#entries(store, control, payload);
    if (this.#state === AT_PARTS) {
      if (type === SPILL_ACCOUNT) return this.#account(store, control);
      if (type === SPILL_PROCESS) return this.#process(control);
      if (type === SPILL_FENCE) return this.#fence(store, control);
    }
    if (type !== SPILL_COPY && type !== SPILL_END) return 'record out of place';
    const rule = this.#endCopy(store);
    if (rule !== '') return rule;
    return type === SPILL_COPY ? this.#beginCopy(store, control) : this.#end(store, control);
  }

  #begin(control: Uint8Array): string {
    const head = decodeHead(this.#ports.packer, control);
    if (head instanceof InvalidMessage) return `head: ${head.rule}`;
    if (head.storeId !== this.#storeId) return `it is of store '${head.storeId}'`;
    this.#head = head;
    this.#store = this.#ports.newStore(head);
    this.#transition(AT_PARTS);
    return '';
  }

  #account(store: Store, control: Uint8Array): string {
    const account = decodeAccount(this.#ports.packer, control);
    if (account instanceof InvalidMessage) return `account: ${account.rule}`;
    store.restoreAccount(account);
    return '';
  }

  #process(control: Uint8Array): string {
    const read = decodeProcess(this.#ports.packer, control);
    if (read instanceof InvalidMessage) return `process: ${read.rule}`;
    const { process, fenceCount, fences } = read;
    const known = this.#processes.get(process);
    if (known === undefined) this.#processes.set(process, { fenceCount, fences: [...fences] });
    else known.fences.push(...fences);
    return '';
  }

  #fence(store: Store, control: Uint8Array): string {
    const read = decodeSpilledFence(this.#ports.packer, control);
    if (read instanceof InvalidMessage) return `fence: ${read.rule}`;
    store.restoreFence(read.partition, read);
    this.fences += 1;
    return '';
  }

  #beginCopy(store: Store, control: Uint8Array): string {
    const read = decodeCopy(this.#ports.packer, control);
    if (read instanceof InvalidMessage) return `copy: ${read.rule}`;
    const copy = store.restoreCopy(read.partition, read.number, read.digestA, read.digestB);
    if (copy === undefined) return 'partition known already, or too many of them';
    copy.lastTerm = read.lastTerm;
    this.#copy = copy;
    this.#count = read.count;
    this.#transition(IN_COPY);
    return '';
  }

  #entries(store: Store, control: Uint8Array, payload: Uint8Array): string {
    const copy = this.#copy;
    const rowCount = control.length / ENTRY_ROW_BYTES;
    if (copy === undefined || !Number.isInteger(rowCount)) return 'rows';
    const view = new DataView(control.buffer, control.byteOffset, control.length);
    const { refills, admission } = store;
    if (refills.payloadBytes(view, 0, rowCount) !== payload.length) return 'rows and bytes do not fit';
    if (admission.usedBytes + refills.costBytes(view, 0, rowCount) > admission.refillBytes) {
      return RULE_NO_MEMORY;
    }
    const reason = refills.take(copy, view, 0, rowCount, payload, true);
    if (reason !== 0) return `entry: ${refusalReasonName(reason)}`;
    this.entries += rowCount;
    return '';
  }

  #endCopy(store: Store): string {
    const copy = this.#copy;
    if (copy === undefined) return '';
    if (store.refills.end(copy, this.#count) !== 0) return 'count of entries';
    this.copies += 1;
    this.#copy = undefined;
    return '';
  }

  #end(store: Store, control: Uint8Array): string {
    const rule = checkEnd(this.#ports.packer, control, this.fences, this.copies, this.entries);
    if (rule !== '') return rule;
    store.leases.carryOn(
      [...this.#processes].map(([process, { fenceCount, fences }]) => [process, fenceCount, fences] as const)
    );
    this.#transition(DONE);
    return '';
  }

  #transition(to: LoadState): void {
    invariant(NEXT[this.#state].includes(to), 'records of a spill file are taken in their order');
    this.#state = to;
  }
}

/** The one rule that is no fault of the file. */
export const RULE_NO_MEMORY = 'more than the memory limit allows';
