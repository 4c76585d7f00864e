/** Message ids of one process: milliseconds since 2020 of its incarnation in the upper bits, 4,096 ids a millisecond below. */

const EPOCH_MS = 1_577_836_800_000;
const IDS_PER_MS = 4096;

export class MessageIds {
  private last: number;

  constructor(incarnation: number) {
    this.last = (incarnation - EPOCH_MS) * IDS_PER_MS;
  }

  next(): number {
    this.last += 1;
    return this.last;
  }
}
