/**
 * What is sent to one copy of a partition: the store that it is at, and how far a refill and its
 * acknowledgements are. Whether it is fed at all, and counts, is its row's to say
 * (recovery/ownership/member.ts).
 *
 *   row FILLING:  idle ─ FENCE (FILL) sent ─► sending ─ REFILL_END sent ─► ending
 *                 ending ─ acknowledged / set.onFilled ─► idle
 */
import type { PartitionMember } from '../../recovery/ownership/member.js';
import { MemberState } from '../../recovery/ownership/member.js';
import { FeedProgress } from './feed-progress.js';
import type { StorePort } from './store-port.js';

export const FillPhase = { IDLE: 0, SENDING: 1, ENDING: 2 } as const;
export type FillPhase = (typeof FillPhase)[keyof typeof FillPhase];

export class CopyFeed {
  readonly row: PartitionMember;
  /** Undefined: it is not configured here. */
  /** Undefined until this process knows the store. */
  store: StorePort | undefined;
  /** How far behind, for those who look. */
  readonly progress = new FeedProgress();
  fill: FillPhase = FillPhase.IDLE;
  /** Entries up to this position have been sent; live changes beyond it and up to the base are SKIPPED. */
  fillCursor = 0;
  fillBase = 0;
  /** The number that the store said last that it stands at, also while it is filled. */
  storeNumber = 0;

  constructor(row: PartitionMember, store: StorePort | undefined) {
    this.row = row;
    this.store = store;
    this.storeNumber = row.acked;
  }

  /** Live changes are sent to it. */
  get isFed(): boolean {
    const { state } = this.row;
    return state === MemberState.IN_STEP || state === MemberState.TAIL
      || (state === MemberState.FILLING && this.fill !== FillPhase.IDLE);
  }

  beginFill(base: number, messages: number, bytes: number): void {
    this.fill = FillPhase.SENDING;
    this.fillBase = base;
    this.fillCursor = 0;
    this.storeNumber = base;
    this.progress.beginRefill(messages, bytes);
  }

  endFill(): void {
    this.fill = FillPhase.IDLE;
    this.progress.endRefill();
  }
}
