/**
 * The paper's second experiment (section IV.C): relay of 70% 1 KB and 30% 10 KB messages through a gateway
 * with two stores. Each round first runs `direct`, the client straight to a sink, as the yardstick of the
 * machine at that moment (relay-run.ts).
 */
import { median } from './machine.js';
import type { BenchOptions } from './options.js';
import { PAPER_CONVENTIONAL, PAPER_GATEWAY } from './paper.js';
import { CONNECTIONS, relayDirect, relayThrough, sayRelayed, startRelay, warm, type Relayed } from './relay-run.js';
import type { Plot } from './svg-plot.js';

export interface GatewayRow extends Relayed {
  readonly [key: string]: unknown;
  readonly kind: 'direct' | 'gateway';
}

export async function benchGateway(options: BenchOptions): Promise<{ rows: GatewayRow[]; plot: Plot }> {
  const rounds = options.quick ? 1 : 5;
  const rows: GatewayRow[] = [];
  for (let round = 1; round <= rounds; round++) {
    rows.push(say(await runDirect(options.quick ? 40_000 : 200_000)));
    rows.push(say(await runGateway(options.quick ? 20_000 : 100_000)));
  }
  return { rows, plot: plotOf(rows) };
}

function say(row: GatewayRow): GatewayRow {
  sayRelayed(row.kind, row);
  return row;
}

export async function runDirect(messages: number): Promise<GatewayRow> {
  return { kind: 'direct', ...(await relayDirect({ count: messages })) };
}

async function runGateway(messages: number): Promise<GatewayRow> {
  const cluster = await startRelay();
  try {
    await warm(cluster, { count: Math.round(messages / 10) });
    return { kind: 'gateway', ...(await relayThrough(cluster, { count: messages })) };
  } finally {
    await cluster.stop();
  }
}

function plotOf(rows: readonly GatewayRow[]): Plot {
  const of = (kind: GatewayRow['kind'], value: (row: GatewayRow) => number): number => median(rows.filter((row) => row.kind === kind).map(value));
  const direct = of('direct', (row) => row.relayedPerSecond);
  const categories = ['conventional (paper)', 'paper', 'Twinpost', 'direct'];
  return {
    title: 'Relay of 70% 1 KB and 30% 10 KB messages, two mirrors',
    note: 'median of rounds; direct: the client straight to the sink, the yardstick of this machine',
    panels: [
      {
        title: 'throughput', xLabel: '', yLabel: 'messages a second', categories, bars: true,
        series: [{ name: 'messages a second', values: [PAPER_CONVENTIONAL.messagesPerSecond, PAPER_GATEWAY.messagesPerSecond, of('gateway', (row) => row.relayedPerSecond), direct] }],
      },
      {
        title: `response time at full load, ${CONNECTIONS} connections`, xLabel: '', yLabel: 'ms from the final dot to its reply', categories, bars: true,
        series: [
          { name: 'mean', values: [PAPER_CONVENTIONAL.responseMs, PAPER_GATEWAY.responseMs, of('gateway', (row) => row.responseMeanMs), of('direct', (row) => row.responseMeanMs)] },
          { name: 'p99', values: [undefined, undefined, of('gateway', (row) => row.responseP99Ms), of('direct', (row) => row.responseP99Ms)] },
        ],
      },
    ],
  };
}
