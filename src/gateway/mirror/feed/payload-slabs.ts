/**
 * Memory for what sections carry: slabs that all partitions of a turn fill one after the other, and that come
 * back when nobody can read them any more. Fresh memory for each would cost more than the copy into it: the
 * kernel clears its pages, and V8 counts it as garbage to be looked for, over the whole heap, at every 64
 * MiB.
 *
 *   FILLING ─ full ─► HELD by sections ─ last let go ─► SPENT ─ mark ─► COOLING ─ all acknowledged ─► FREE
 *     ▲                                                   │ a connection was lost             too many │ │
 *     │                                                   └────► left to the collector ◄───────────────┘ │
 *     └──────────────────────────────────────────────────────────────────────────────────────────────────┘
 *
 * A section is let go when no mirror will ask for it (change-ring.ts), but a frame with it may still wait for
 * a socket: in the backlog, or for a mirror that was given up. So spent slabs wait until every store has
 * acknowledged all that was on its way to it when they were marked. After a lost connection nobody
 * acknowledges what was on it: what was in use then never comes back.
 */

const SLAB_BYTES = 256 * 1024;
/** Free slabs kept: what a busy turn takes and more; what a burst needed beside them goes. */
const FREE_MAX = 16;
/** Spent ones that wait for their mark: while a backlog of large bodies goes out there is none. */
const SPENT_MAX = 32;

export interface Slab {
  readonly bytes: Uint8Array;
  /** Sections with a part of it, and one more while it is filled. */
  holders: number;
  /** Counts lost connections. */
  readonly generation: number;
  /** It alone: what most sections hold. */
  readonly alone: readonly Slab[];
}

/** What is on its way to the stores. */
export interface OnTheWay {
  /** Notes what is on its way now; false when some of it waits without a sequence number yet. */
  mark(): boolean;
  /** All that was marked is acknowledged, or its connection lost. */
  readonly isPast: boolean;
}

export const NO_SLABS: readonly Slab[] = [];

export class PayloadSlabs {
  current = slabOf(new Uint8Array(SLAB_BYTES), 0);
  used = 0;
  #generation = 0;
  #spent: Slab[] = [];
  #cooling: Slab[] = [];
  readonly #free: Slab[] = [];
  readonly #onTheWay: OnTheWay;

  constructor(onTheWay: OnTheWay) {
    this.#onTheWay = onTheWay;
  }

  /** For `bytes`, at most SLAB_BYTES, in one piece; the caller writes at current.bytes[used], raises used. */
  reserve(bytes: number): void {
    if (this.used + bytes <= this.current.bytes.length) return;
    this.release(this.current);
    this.current = this.#take();
    this.used = 0;
  }

  /** A section that has a part of the slab is let go. */
  release(slab: Slab): void {
    slab.holders -= 1;
    if (slab.holders > 0 || slab.generation !== this.#generation || this.#spent.length >= SPENT_MAX) return;
    this.#spent.push(slab);
  }

  /** A connection is lost: what it had to send may be read until it is torn down. */
  onConnectionLost(): void {
    this.#generation += 1;
    this.#spent = [];
    this.#cooling = [];
  }

  #take(): Slab {
    this.#cool();
    return slabOf(this.#free.pop()?.bytes ?? new Uint8Array(SLAB_BYTES), this.#generation);
  }

  #cool(): void {
    if (this.#cooling.length > 0) {
      if (!this.#onTheWay.isPast) return;
      for (const slab of this.#cooling) if (this.#free.length < FREE_MAX) this.#free.push(slab);
      this.#cooling.length = 0;
    }
    if (this.#spent.length === 0 || !this.#onTheWay.mark()) return;
    const marked = this.#spent;
    this.#spent = this.#cooling;
    this.#cooling = marked;
  }
}

/** One that is being filled. */
function slabOf(bytes: Uint8Array, generation: number): Slab {
  const alone: Slab[] = [];
  const slab: Slab = { bytes, holders: 1, generation, alone };
  alone.push(slab);
  return slab;
}
