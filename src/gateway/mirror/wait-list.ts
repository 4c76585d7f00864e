/** Who waits for which change of a partition to be committed, in order of the numbers. */

/** Told once when the change it waits for is committed. A fixed object a message or job, never a closure. */
export interface CommitWaiter {
  onCommitted(): void;
}

/** Slots behind the head are dropped when this many have gone by and they are the larger half. */
const COMPACT_AT = 1024;
/** Slots that stay when nobody waits: as many as most partitions fill in a turn. */
const KEPT_SLOTS = 32;

export class WaitList {
  #numbers: number[] = [];
  #waiters: (CommitWaiter | undefined)[] = [];
  /**
   * Waiting: the slots from head to end. What is behind the end is used again: most partitions fill and empty
   * with each turn.
   */
  #head = 0;
  #end = 0;

  get length(): number {
    return this.#end - this.#head;
  }

  /** Numbers ascend, but for a message that waits for a mirror which joined meanwhile (commit-point.ts). */
  add(number: number, waiter: CommitWaiter): void {
    let at = this.#end;
    while (at > this.#head && (this.#numbers[at - 1] ?? 0) > number) at -= 1;
    if (at === this.#end) {
      this.#numbers[at] = number;
      this.#waiters[at] = waiter;
    } else {
      this.#numbers.splice(at, 0, number);
      this.#waiters.splice(at, 0, waiter);
    }
    this.#end += 1;
  }

  /** Calls everybody whose number is ≤ committed. */
  advance(committed: number): void {
    while (this.#head < this.#end && (this.#numbers[this.#head] ?? Infinity) <= committed) {
      const waiter = this.#waiters[this.#head];
      this.#waiters[this.#head] = undefined;
      this.#head += 1;
      waiter?.onCommitted();
    }
    if (this.#head === this.#end) {
      this.#head = 0;
      this.#end = 0;
      if (this.#numbers.length <= KEPT_SLOTS) return;
      this.#numbers = [];
      this.#waiters = [];
    } else if (this.#head >= COMPACT_AT && this.#head * 2 > this.#end) {
      this.#numbers = this.#numbers.slice(this.#head, this.#end);
      this.#waiters = this.#waiters.slice(this.#head, this.#end);
      this.#end -= this.#head;
      this.#head = 0;
    }
  }
}
