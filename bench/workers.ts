/**
 * Part `workers` of `bench all`: the relay through one SMTP port with 1, 2 and 4 gateway processes behind it
 * (`workers: N`), in turns. On a machine with fewer cores than processes the throughput can't rise; what shows
 * there is what each further process costs: CPU a message, with that of the process which hands out connections.
 */
import { HOST, until, type Cluster } from '../test/process/cluster.js';
import type { BenchOptions, PartRun } from './options.js';
import { relayThrough, sayRelayed, startRelay, warm, type NamedProcess, type Relayed } from './relay-run.js';

export interface WorkersRow extends Relayed {
  readonly workers: number;
  readonly round: number;
}

const WORKERS = [1, 2, 4];
const ROUNDS = 3;
/** To warm up: so many for each worker, for each compiles its code for itself. */
const MESSAGES = { relay: 60_000, warm: 30_000 };
const QUICK_MESSAGES = { relay: 12_000, warm: 6_000 };
const READY_MS = 60_000;

export async function partWorkers(options: BenchOptions): Promise<PartRun<WorkersRow>> {
  const counts = options.quick ? QUICK_MESSAGES : MESSAGES;
  const rows: WorkersRow[] = [];
  for (let round = 1; round <= (options.quick ? 1 : ROUNDS); round++) {
    for (const workers of WORKERS) {
      const relayed = await relayWith(workers, counts);
      sayRelayed(`${workers} workers`, relayed);
      rows.push({ workers, round, ...relayed });
    }
  }
  return { rows };
}

async function relayWith(workers: number, counts: typeof MESSAGES): Promise<Relayed> {
  const cluster = await startRelay({ workers });
  try {
    const processes = workers === 1 ? [] : await workersOf(cluster, workers);
    await warm(cluster, { count: workers * counts.warm });
    return await relayThrough(cluster, { count: counts.relay }, processes);
  } finally {
    await cluster.stop();
  }
}

/** Each under its own id; resolves when all of them take mail. */
async function workersOf(cluster: Cluster, workers: number): Promise<NamedProcess[]> {
  const ports = Array.from({ length: workers }, (_none, index) => cluster.adminPort + index);
  await until('all workers take mail', async () => (await Promise.all(ports.map(statusAt))).every((status) => status.ready), READY_MS, cluster.gateway);
  return (await Promise.all(ports.map(statusAt))).map((status) => [status.gateway, status.pid] as const);
}

async function statusAt(port: number): Promise<{ readonly gateway: string; readonly pid: number; readonly ready: boolean }> {
  return (await (await fetch(`http://${HOST}:${port}/api/v1/status`)).json()) as { gateway: string; pid: number; ready: boolean };
}
