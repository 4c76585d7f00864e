/**
 * The plots of the report, by the name of their file. Pure.
 */
import { medianOf } from './goals.js';
import type { RelayRow } from './relay.js';
import type { Results } from './results.js';
import type { Plot } from './svg-plot.js';

export function plotsOf(results: Results): (readonly [name: string, plot: Plot])[] {
  const plots: (readonly [string, Plot])[] = [];
  const add = <Row>(name: string, part: { readonly rows: readonly Row[] } | undefined, plot: (rows: readonly Row[]) => Plot): void => {
    if (part !== undefined && part.rows.length > 0) plots.push([`report-${name}`, plot(part.rows)]);
  };
  add('relay', results.relay, relayPlot);
  return plots;
}

function relayPlot(rows: readonly RelayRow[]): Plot {
  const loads = ['kept', '10 a connection'] as const;
  const of = (kind: RelayRow['kind'], load: RelayRow['load'], value: (row: RelayRow) => number): number | undefined => medianOf(rows.filter((row) => row.kind === kind && row.load === load), value);
  return {
    title: 'Relay of 70% 1 KB and 30% 10 KB messages, two mirrors, 50 connections',
    note: 'median of rounds; direct: the client straight to the sink in the same minutes',
    panels: [
      {
        title: 'throughput', xLabel: '', yLabel: 'messages a second', categories: loads, bars: true,
        series: (['gateway', 'direct'] as const).map((kind) => ({ name: kind, values: loads.map((load) => of(kind, load, (row) => row.relayedPerSecond)) })),
      },
      {
        title: 'response time through the gateway', xLabel: '', yLabel: 'ms from the final dot to its reply', categories: ['80% of kept', ...loads], bars: true,
        series: [
          { name: 'p50', values: (['80% of kept', ...loads] as const).map((load) => of('gateway', load, (row) => row.responseP50Ms)) },
          { name: 'p99', values: (['80% of kept', ...loads] as const).map((load) => of('gateway', load, (row) => row.responseP99Ms)) },
        ],
      },
    ],
  };
}
