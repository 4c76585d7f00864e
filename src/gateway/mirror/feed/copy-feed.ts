/**
 * What is sent to one copy of a partition: the store that it is at, and how far a refill and its
 * acknowledgements are. Whether it is fed at all, and counts, is its row's to say
 * (recovery/ownership/member.ts).
 *
 *   row FILLING:  IDLE ─ FENCE (FILL) sent ─► SENDING ─ REFILL_END sent ─► ENDING
 *                 ENDING ─ acknowledged / set.onFilled ─► IDLE
 *                 SENDING, ENDING ─ refused, link lost, or to be filled anew ─► IDLE
 */
import { invariant } from '../../../base/invariant.js';
import type { PartitionMember } from '../../../recovery/ownership/member.js';
import { MemberState } from '../../../recovery/ownership/member.js';
import { FeedProgress } from './feed-progress.js';
import type { StorePort } from '../link/store-port.js';

export const FillPhase = { IDLE: 0, SENDING: 1, ENDING: 2 } as const;
export type FillPhase = (typeof FillPhase)[keyof typeof FillPhase];

const NEXT: Readonly<Record<FillPhase, readonly FillPhase[]>> = {
  [FillPhase.IDLE]: [FillPhase.SENDING],
  [FillPhase.SENDING]: [FillPhase.ENDING, FillPhase.IDLE],
  [FillPhase.ENDING]: [FillPhase.IDLE],
};

export class CopyFeed {
  readonly row: PartitionMember;
  /** Undefined until this process knows the store. */
  store: StorePort | undefined;
  /** How far behind, for those who look. */
  readonly progress = new FeedProgress();
  /** Entries up to this position have been sent; live changes beyond it and up to the base are SKIPPED. */
  fillCursor = 0;
  fillBase = 0;
  /** The number that the store said last that it stands at, also while it is filled. */
  storeNumber = 0;
  #fill: FillPhase = FillPhase.IDLE;

  constructor(row: PartitionMember, store: StorePort | undefined) {
    this.row = row;
    this.store = store;
    this.storeNumber = row.acked;
  }

  get fill(): FillPhase {
    return this.#fill;
  }

  /** Live changes are sent to it. */
  get getsChanges(): boolean {
    const { state } = this.row;
    return state === MemberState.IN_STEP || state === MemberState.TAIL
      || (state === MemberState.FILLING && this.#fill !== FillPhase.IDLE);
  }

  beginFill(base: number, messages: number, bytes: number): void {
    this.#transition(FillPhase.SENDING);
    this.fillBase = base;
    this.fillCursor = 0;
    this.storeNumber = base;
    this.progress.beginRefill(messages, bytes);
  }

  /** Everything is sent. */
  awaitEnd(): void {
    this.#transition(FillPhase.ENDING);
  }

  endFill(): void {
    if (this.#fill !== FillPhase.IDLE) this.#transition(FillPhase.IDLE);
    this.progress.endRefill();
  }

  #transition(to: FillPhase): void {
    const from = this.#fill;
    invariant(NEXT[from].includes(to), `a refill does not go from ${String(from)} to ${String(to)}`);
    this.#fill = to;
  }
}
