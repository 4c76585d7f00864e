/**
 * The plots of the report, by the name of their file. Pure.
 */
import { endurancePlot } from './endurance.js';
import { distinct } from './format.js';
import { blocksOf, fillsOf, medianOf } from './goal-numbers.js';
import type { GrowthRow } from './growth.js';
import type { MemoryRow } from './memory.js';
import { bestConnections, type PeerRow } from './peers.js';
import { PAPER_RECOVERY } from './paper.js';
import type { RecoveryRow } from './recovery.js';
import type { RelayRow } from './relay.js';
import { cpuOf, isGateway, isStore } from './relay-run.js';
import type { Results } from './results.js';
import type { StoreRow } from './store.js';
import type { Plot } from './svg-plot.js';

const MB = 1e6;
/** As they fit under a bar. */
const SHORT_NAMES: Readonly<Record<string, string>> = {
  'Postfix, queue on disk': 'Postfix disk', 'Postfix, queue on tmpfs': 'Postfix tmpfs', 'Haraka, smtp_forward': 'Haraka fwd', 'Haraka, outbound on disk': 'Haraka disk',
};
const MEDIANS = 'median of rounds';

export function plotsOf(results: Results): (readonly [name: string, plot: Plot])[] {
  const plots: (readonly [string, Plot])[] = [];
  const add = <Row>(name: string, part: { readonly rows: readonly Row[] } | undefined, plot: (rows: readonly Row[]) => Plot | undefined): void => {
    const made = part === undefined || part.rows.length === 0 ? undefined : plot(part.rows);
    if (made !== undefined) plots.push([`report-${name}`, made]);
  };
  add('relay', results.relay, relayPlot);
  add('cpu', results.peers, (rows) => cpuPlot(rows, results.relay?.rows ?? []));
  add('store', results.store, storePlot);
  add('recovery', results.recovery, (rows) => recoveryPlot(blocksOf(rows)));
  add('memory', results.memory, memoryPlot);
  add('growth', results.growth, growthPlot);
  add('endurance', results.endurance, ([row]) => (row === undefined ? undefined : endurancePlot(row)));
  return plots;
}

function relayPlot(rows: readonly RelayRow[]): Plot {
  const loads = ['kept', '10 a connection'] as const;
  const all = ['80% of kept', ...loads] as const;
  const of = (kind: RelayRow['kind'], load: RelayRow['load'], value: (row: RelayRow) => number): number | undefined => medianOf(rows.filter((row) => row.kind === kind && row.load === load), value);
  return {
    title: 'Relay of 70% 1 KB and 30% 10 KB messages, two mirrors, 50 connections',
    note: `${MEDIANS}; direct: the client straight to the sink in the same minutes`,
    panels: [
      {
        title: 'throughput', xLabel: '', yLabel: 'messages a second', categories: loads, bars: true,
        series: (['gateway', 'direct'] as const).map((kind) => ({ name: kind, values: loads.map((load) => of(kind, load, (row) => row.relayedPerSecond)) })),
      },
      {
        title: 'response time through the gateway', xLabel: '', yLabel: 'ms from the final dot to its reply', categories: all, bars: true,
        series: [
          { name: 'p50', values: all.map((load) => of('gateway', load, (row) => row.responseP50Ms)) },
          { name: 'p99', values: all.map((load) => of('gateway', load, (row) => row.responseP99Ms)) },
        ],
      },
    ],
  };
}

function cpuPlot(peers: readonly PeerRow[], relay: readonly RelayRow[]): Plot {
  const names = distinct(peers, (row) => row.peer);
  const ours = relay.filter((row) => row.kind === 'gateway' && row.load === 'kept');
  const best = (peer: string): PeerRow[] => peers.filter((row) => row.peer === peer && row.connections === bestConnections(peers, peer));
  const bars = (title: string, yLabel: string, own: (row: RelayRow) => number, theirs: (row: PeerRow) => number): Plot['panels'][number] => ({
    title, xLabel: '', yLabel, categories: ['Twinpost', ...names.map((name) => SHORT_NAMES[name] ?? name)], bars: true,
    series: [{ name: yLabel, values: [medianOf(ours, own), ...names.map((name) => medianOf(best(name), theirs))] }],
  });
  return {
    title: 'The same mail through other servers on the same machine',
    note: `${MEDIANS}; each at the better of 50 and 300 connections by its median; CPU of all processes, at Twinpost the gateway and both stores`,
    panels: [
      bars('throughput', 'messages a second', (row) => row.relayedPerSecond, (row) => row.relayedPerSecond),
      bars('CPU', 'µs a message', (row) => cpuOf(row.cost, (name) => isGateway(name) || isStore(name)), (row) => row.cpuMicrosPerMessage),
    ],
  };
}

function storePlot(rows: readonly StoreRow[]): Plot {
  const sizes = distinct(rows, (row) => row.messageKb);
  return {
    title: 'Store and delete at one server, one connection, 256 in flight',
    note: `${MEDIANS}; clients of the same kind; checksums on at Twinpost`,
    panels: [{
      title: 'transactions by message size', xLabel: 'message size, KB', yLabel: 'transactions a second', categories: sizes, logarithmic: true,
      series: distinct(rows, (row) => row.store).map((store) => ({
        name: store, dashed: store !== 'Twinpost', values: sizes.map((size) => medianOf(rows.filter((row) => row.store === store && row.messageKb === size), (row) => row.transactionsPerSecond)),
      })),
    }],
  };
}

function recoveryPlot(rows: readonly RecoveryRow[]): Plot {
  const blocks = distinct(rows, (row) => row.block);
  const of = (value: (row: RecoveryRow) => number): (number | undefined)[] => blocks.map((block) => medianOf(rows.filter((row) => row.block === block), value));
  return {
    title: `Recovery of ${(rows[0]?.messages ?? 0).toLocaleString('en')} messages of 1 KB`, note: `${MEDIANS}; from the start of the process`,
    panels: [{
      title: 'time by messages in a block', xLabel: 'messages in a block', yLabel: 'seconds', categories: blocks.map(String), logarithmic: true,
      series: [
        { name: 'every message back', values: of((row) => row.recoveredSeconds) }, { name: 'takes mail', values: of((row) => row.readySeconds) },
        { name: "paper's gateway, 500,000 messages", values: blocks.map((block) => PAPER_RECOVERY[String(block)]), dashed: true },
      ],
    }],
  };
}

function memoryPlot(rows: readonly MemoryRow[]): Plot {
  const fills = fillsOf(rows);
  const categories = fills.map((row) => row.queued.toLocaleString('en'));
  const at = fills.map((row) => row.queued);
  return {
    title: 'A long queue of 0.4 KB messages, two mirrors', note: 'resident memory, and the relay of other mail beside it',
    panels: [
      {
        title: 'memory', xLabel: 'messages queued', yLabel: 'MB', categories, at,
        series: [
          { name: 'gateway', values: fills.map((row) => row.gatewayBytes / MB) }, { name: 'a store', values: fills.map((row) => row.storeBytes / MB) },
          { name: 'content and envelopes', values: fills.map((row) => row.liveBytes / MB), dashed: true }, { name: "gateway's V8 heap", values: fills.map((row) => row.heapTotalBytes / MB) },
        ],
      },
      { title: 'CPU of other mail', xLabel: 'messages queued', yLabel: 'µs a message', categories, at, series: [{ name: 'gateway and both stores', values: fills.map((row) => row.cpuMicrosPerMessage) }] },
    ],
  };
}

function growthPlot(rows: readonly GrowthRow[]): Plot {
  return {
    title: 'CPU a message as things grow', note: `${MEDIANS}; gateway and both stores`,
    panels: (['queues', 'connections', 'connections at one rate'] as const).map((by) => {
      const among = rows.filter((row) => row.by === by);
      const counts = distinct(among, (row) => row.count);
      return {
        title: `by ${by}`, xLabel: by, yLabel: 'µs of CPU a message', categories: counts.map((count) => count.toLocaleString('en')), bars: true,
        series: [
          { name: 'gateway', values: counts.map((count) => medianOf(among.filter((row) => row.count === count), (row) => row.gatewayMicros)) },
          { name: 'both stores', values: counts.map((count) => medianOf(among.filter((row) => row.count === count), (row) => row.storesMicros)) },
        ],
      };
    }),
  };
}
