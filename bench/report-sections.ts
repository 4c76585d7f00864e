/**
 * The tables of the report, one function a part. Pure.
 */
import { distinct, spread, table } from './format.js';
import { shareOfDirect } from './goals.js';
import { cpuOf, isGateway, isStore } from './relay-run.js';
import type { RelayRow } from './relay.js';
import type { Results } from './results.js';
import { spreadOf } from './statistics.js';

export function sectionsOf(results: Results): string[] {
  return [
    ...section('Relay', relaySection(results.relay?.rows)),
  ];
}

function section(title: string, text: string | undefined): string[] {
  return text === undefined ? [] : [`### ${title}\n`, text];
}

function relaySection(rows: readonly RelayRow[] | undefined): string | undefined {
  if (rows === undefined) return undefined;
  const lines: string[][] = [];
  for (const load of distinct(rows, (row) => row.load)) {
    for (const kind of ['direct', 'gateway'] as const) {
      const of = rows.filter((row) => row.load === load && row.kind === kind);
      if (of.length === 0) continue;
      const value = (take: (row: RelayRow) => number): string => spread(spreadOf(of.map(take)));
      const cpu = (matches: (name: string) => boolean): string => (kind === 'direct' && !matches('client') && !matches('sink') ? '' : value((row) => cpuOf(row.cost, matches)));
      const share = kind === 'gateway' ? shareOfDirect(rows, load) : undefined;
      lines.push([
        `${kind}, ${load}`, value((row) => row.relayedPerSecond), share === undefined ? '' : share.toFixed(3), value((row) => row.responseP50Ms), value((row) => row.responseP99Ms),
        cpu(isGateway), cpu(isStore), cpu((name) => name === 'client'), cpu((name) => name === 'sink'),
      ]);
    }
  }
  return `70% 1 KB and 30% 10 KB messages, 50 connections, two mirrors, mail log and metrics on; \`direct\` is the client straight to the sink in the same minutes.\n\n${table(
    ['relay', 'messages/s', 'of direct', 'p50 ms', 'p99 ms', 'gateway µs CPU', 'both stores µs', 'client µs', 'sink µs'], lines,
  )}`;
}
