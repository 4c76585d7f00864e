/** Virtual time of the ownership world: one queue of events, in order of time, then of planning. */

interface Planned {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

export class Events {
  nowMs = 0;
  #order = 0;
  readonly #heap: Planned[] = [];

  after(delayMs: number, run: () => void): void {
    this.at(this.nowMs + delayMs, run);
  }

  at(atMs: number, run: () => void): void {
    const heap = this.#heap;
    heap.push({ atMs: Math.max(atMs, this.nowMs), order: this.#order++, run });
    let child = heap.length - 1;
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (!isBefore(heap[child], heap[parent])) break;
      swap(heap, child, parent);
      child = parent;
    }
  }

  /** False when nothing is planned any more. */
  step(): boolean {
    const heap = this.#heap;
    const first = heap[0];
    if (first === undefined) return false;
    const last = heap.pop();
    if (last !== undefined && heap.length > 0) {
      heap[0] = last;
      let parent = 0;
      for (;;) {
        let least = parent;
        for (const child of [2 * parent + 1, 2 * parent + 2]) if (child < heap.length
          && isBefore(heap[child], heap[least])) least = child;
        if (least === parent) break;
        swap(heap, parent, least);
        parent = least;
      }
    }
    this.nowMs = first.atMs;
    first.run();
    return true;
  }
}

function isBefore(a: Planned | undefined, b: Planned | undefined): boolean {
  if (a === undefined || b === undefined) return false;
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

function swap(heap: Planned[], a: number, b: number): void {
  const one = heap[a];
  const other = heap[b];
  if (one === undefined || other === undefined) return;
  heap[a] = other;
  heap[b] = one;
}
