/**
 * Part `relay` of `bench all`: the relay beside `direct` in the same minutes, on kept connections and with
 * ten messages a connection, and the response times at 80% of the rate that was reached; and a client that
 * sends one command at a time, straight to a sink. Rounds are interleaved: direct, gateway, direct, gateway.
 */
import type { BenchOptions, PartRun } from './options.js';
import { relayDirect, relayThrough, sayRelayed, startRelay, warm, type Load, type Relayed } from './relay-run.js';

export type RelayLoad = 'kept' | 'kept, no pipelining' | '10 a connection' | '80% of kept';

export interface RelayRow extends Relayed {
  readonly kind: 'direct' | 'gateway';
  readonly load: RelayLoad;
  readonly round: number;
}

const ROUNDS = 5;
const SHARE_OF_FULL = 0.8;
const MESSAGES = { direct: 150_000, directNoPipelining: 80_000, directTen: 80_000, kept: 100_000, ten: 60_000, part: 60_000, warm: 100_000 };
const QUICK_MESSAGES = { direct: 60_000, directNoPipelining: 30_000, directTen: 30_000, kept: 30_000, ten: 15_000, part: 15_000, warm: 10_000 };
const TEN = { messagesPerConnection: 10 };

export async function partRelay(options: BenchOptions): Promise<PartRun<RelayRow>> {
  const counts = options.quick ? QUICK_MESSAGES : MESSAGES;
  const rows: RelayRow[] = [];
  const add = (row: RelayRow): RelayRow => {
    sayRelayed(`${row.kind}, ${row.load}`, row);
    rows.push(row);
    return row;
  };
  for (let round = 1; round <= (options.quick ? 1 : ROUNDS); round++) {
    const direct = async (load: RelayLoad, what: Load): Promise<void> => {
      add({ kind: 'direct', load, round, ...(await relayDirect(what)) });
    };
    await direct('kept', { count: counts.direct });
    await direct('kept, no pipelining', { count: counts.directNoPipelining, pipelining: false });
    const cluster = await startRelay();
    try {
      const gateway = async (load: RelayLoad, what: Load): Promise<RelayRow> => add({ kind: 'gateway', load, round, ...(await relayThrough(cluster, what)) });
      await warm(cluster, { count: counts.warm });
      const kept = await gateway('kept', { count: counts.kept });
      await gateway('80% of kept', { count: counts.part, rate: Math.round(SHARE_OF_FULL * kept.relayedPerSecond) });
      await direct('10 a connection', { count: counts.directTen, ...TEN });
      await gateway('10 a connection', { count: counts.ten, ...TEN });
    } finally {
      await cluster.stop();
    }
  }
  return { rows };
}
