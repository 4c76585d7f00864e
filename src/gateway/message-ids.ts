/**
 * Message ids of one process, distinct among those of its group and of older processes of its gateway.
 *
 *   id = (incarnation in milliseconds since 2020) × 4,096 + n × 64 + seat        n = 1, 2, …
 *
 * The seat is the gateway's place among the names of its group, so that two gateways that started in one millisecond
 * draw different ids. 64 ids a millisecond are left to a process on average, since its start, before a later process
 * could draw one again. A gateway that others do not name in their groups may share a seat; ids then differ by the
 * time of the start. Where something depends on it, ids stand beside the name of their owner.
 */
const EPOCH_MS = 1_577_836_800_000;
const IDS_PER_MS = 4096;
const SEATS = 64;

export class MessageIds {
  private last: number;

  constructor(incarnation: number, gatewayId: string, group: readonly string[]) {
    this.last = (incarnation - EPOCH_MS) * IDS_PER_MS + seatOf(gatewayId, group);
  }

  next(): number {
    this.last += SEATS;
    return this.last;
  }
}

function seatOf(gatewayId: string, group: readonly string[]): number {
  return [...new Set([...group, gatewayId])].sort().indexOf(gatewayId) % SEATS;
}
