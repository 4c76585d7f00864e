/**
 * The tables of the report, one function a part. Pure.
 */
import { distinct, figure, spread, table } from './format.js';
import { blocksOf, fillsOf, firstsOf, shareOfDirect, storeFactor } from './goal-numbers.js';
import type { EnduranceRow, Quarter } from './endurance.js';
import { GROWTH_RATE, type GrowthRow } from './growth.js';
import type { MemoryRow } from './memory.js';
import type { NodeRow } from './nodes.js';
import type { PeerRow } from './peers.js';
import type { FirstDeliveryRow, RecoveryRow } from './recovery.js';
import { cpuOf, isGateway, isStore } from './relay-run.js';
import type { RelayRow } from './relay.js';
import type { Results } from './results.js';
import { spreadOf } from './statistics.js';
import type { StoreRow } from './store.js';
import type { WorkersRow } from './workers.js';

const MB = 1e6;

export function sectionsOf(results: Results): string[] {
  return [
    ...section('Relay', results.relay, relayTable),
    ...section('Other mail servers', results.peers, peersTable),
    ...section('Store', results.store, storeTable),
    ...section('Recovery', results.recovery, recoveryTable),
    ...section('Memory', results.memory, (rows) => memoryTables(rows, 'two mirrors')),
    ...section('Memory, the longest queue', results.longest, (rows) => memoryTables(rows, 'one mirror')),
    ...section('Growth', results.growth, growthTable),
    ...section('Workers', results.workers, workersTable),
    ...section('Node', results.nodes, nodesTable),
    ...section('Endurance', results.endurance, enduranceTable),
  ];
}

function section<Row>(title: string, part: { readonly rows: readonly Row[] } | undefined, write: (rows: readonly Row[]) => string): string[] {
  return part === undefined || part.rows.length === 0 ? [] : [`### ${title}\n`, write(part.rows)];
}

/** Median and range of one number over rows. */
function of<Row>(rows: readonly Row[], value: (row: Row) => number): string {
  return spread(spreadOf(rows.map(value)));
}

function relayTable(rows: readonly RelayRow[]): string {
  const lines: string[][] = [];
  for (const load of distinct(rows, (row) => row.load)) {
    for (const kind of ['direct', 'gateway'] as const) {
      const among = rows.filter((row) => row.load === load && row.kind === kind);
      if (among.length === 0) continue;
      const cpu = (matches: (name: string) => boolean): string => of(among, (row) => cpuOf(row.cost, matches));
      const share = kind === 'gateway' ? shareOfDirect(rows, load) : undefined;
      lines.push([
        `${kind}, ${load}`, of(among, (row) => row.relayedPerSecond), share === undefined ? '' : share.toFixed(3), of(among, (row) => row.responseP50Ms), of(among, (row) => row.responseP99Ms),
        kind === 'direct' ? '' : cpu(isGateway), kind === 'direct' ? '' : cpu(isStore), cpu((name) => name === 'client'), cpu((name) => name === 'sink'),
      ]);
    }
  }
  return `70% 1 KB and 30% 10 KB messages, 50 connections, two mirrors, mail log and metrics on; \`direct\` is the client straight to the sink in the same minutes.\n\n${table(
    ['relay', 'messages/s', 'of direct', 'p50 ms', 'p99 ms', 'gateway µs CPU', 'both stores µs', 'client µs', 'sink µs'], lines,
  )}`;
}

function peersTable(rows: readonly PeerRow[]): string {
  const lines = distinct(rows, (row) => row.peer).flatMap((peer) => distinct(rows.filter((row) => row.peer === peer), (row) => row.connections).map((connections) => {
    const among = rows.filter((row) => row.peer === peer && row.connections === connections);
    return [peer, String(connections), of(among, (row) => row.relayedPerSecond), of(among, (row) => row.cpuMicrosPerMessage), of(among, (row) => row.responseP50Ms), of(among, (row) => row.responseP99Ms)];
  }));
  return `The same mix from the same client to the same sink; CPU of all processes of the server, those that come and go included. Each server runs from before its first round to its last, and takes mail for about ten seconds after its start and one before each round that do not count: so all are warm, as ours is (100,000 messages, some seven seconds, before 100,000). Haraka is one process (\`nodes=0\`), as our gateway is. It refuses an envelope that follows a final dot at once, so the client waits there for the reply.\n\n${table(
    ['server', 'connections', 'messages/s', 'CPU µs a message', 'p50 ms', 'p99 ms'], lines,
  )}`;
}

function storeTable(rows: readonly StoreRow[]): string {
  const sizes = distinct(rows, (row) => row.messageKb);
  const stores = distinct(rows, (row) => row.store);
  const at = (store: StoreRow['store'], size: string): StoreRow[] => rows.filter((row) => row.store === store && row.messageKb === size);
  const thousands = (row: StoreRow): number => row.transactionsPerSecond / 1000;
  const factors = stores.filter((store) => store !== 'Twinpost').map((peer) => [`Twinpost by ${peer}`, ...sizes.map((size) => storeFactor(rows, peer, size)?.toFixed(2) ?? '')]);
  return [
    'Store and delete of one message as one transaction, thousands a second; one connection, 256 in flight, checksums on at ours. The factor is the median over rounds of the same minutes.\n',
    table(['store', ...sizes.map((size) => `${size} KB`)], [...stores.map((store) => [store, ...sizes.map((size) => of(at(store, size), thousands))]), ...factors]),
    'CPU of the server, µs a transaction; in parentheses how much of one processor the client was busy: from 95% on the throughput above is that of the client, and the CPU of the server is what compares. A redis list gives each content back as it takes it off, which our protocol never does on a delete.\n',
    table(['store', ...sizes.map((size) => `${size} KB`)], stores.map((store) => [store, ...sizes.map((size) => {
      const busy = spreadOf(at(store, size).map((row) => 100 * row.clientBusy));
      return `${figure(spreadOf(at(store, size).map((row) => row.serverCpuMicros))?.median ?? 0)} (${Math.round(busy?.median ?? 0)}%)`;
    })])),
  ].join('\n');
}

function recoveryTable(all: readonly (RecoveryRow | FirstDeliveryRow)[]): string {
  const rows = blocksOf(all);
  const firsts = firstsOf(all);
  const first = firsts.length === 0 ? '' : `\nFirst delivery out of the queue ${of(firsts, (row) => row.deliveredSeconds)} s after the start of the process, whose program was loaded after ${of(firsts, (row) => row.loadedSeconds)} s.\n`;
  const lines = distinct(rows, (row) => row.block).map((block) => {
    const among = rows.filter((row) => row.block === block);
    return [block.toLocaleString('en'), of(among, (row) => row.readySeconds), of(among, (row) => row.recoveredSeconds), of(among, (row) => row.recoveredSeconds - row.readySeconds), of(among, (row) => row.gatewayCpuSeconds)];
  });
  return `${(rows[0]?.messages ?? 0).toLocaleString('en')} messages of 1 KB, from the start of the gateway's process.\n\n${table(['messages in a block', 'takes mail, s', 'every message back, s', 'between them, s', 'gateway CPU, s'], lines)}${first}`;
}

function memoryTables(rows: readonly MemoryRow[], mirrors: string): string {
  const fills = fillsOf(rows).map((row) => [
    row.queued.toLocaleString('en'), figure(row.gatewayBytes / MB), figure(row.storeBytes / MB), figure(row.liveBytes / MB), figure(row.heapUsedBytes / MB), figure(row.heapTotalBytes / MB), figure(row.storeHeapTotalBytes / MB),
    figure(row.cpuMicrosPerMessage), figure(row.relayedPerSecond), figure(row.turns.p99Ms), figure(row.turns.p999Ms), figure(row.turns.maxMs),
  ]);
  const recovered = rows.find((row) => row.what === 'recover');
  const cycles = rows.filter((row) => row.what === 'cycle');
  const stays = rows.filter((row) => row.what === 'stay');
  return [
    `Messages of 0.4 KB in one queue whose next hop never greets, ${mirrors}; resident memory, and beside it the relay of the usual mix to other next hops with the CPU time of the gateway in one turn of its event loop.\n`,
    table(['queued', 'gateway MB', 'a store MB', 'content and envelopes MB', 'heap used MB', 'heap MB', "store's heap MB", 'relay µs CPU', 'relay messages/s', 'turn p99 ms', 'p99.9', 'max'], fills),
    ...(recovered === undefined ? [] : [`The gateway killed then: ${recovered.queued.toLocaleString('en')} messages back ${figure(recovered.seconds)} s after its process started; CPU of a turn meanwhile p99.9 ${figure(recovered.turns.p999Ms)} ms, most ${figure(recovered.turns.maxMs)} ms.\n`]),
    ...(cycles.length === 0 ? [] : [`Filled with ${(cycles[0]?.messages ?? 0).toLocaleString('en')} messages and drained, ${cycles.length} times; resident memory after each, MB: gateway ${cycles.map((row) => Math.round(row.gatewayBytes / MB)).join(', ')}; store ${cycles.map((row) => Math.round(row.storeBytes / MB)).join(', ')}.\n`]),
    ...stays.map((row) => `Of ${row.messages.toLocaleString('en')} messages of the usual mix ${row.stayed.toLocaleString('en')} stayed, one in a hundred: ${figure(row.liveBytes / MB)} MB of content and envelopes, for which the gateway counts ${figure(row.gatewayUsedBytes / MB)} MB as used and a store ${figure(row.storeUsedBytes / MB)} MB.\n`),
  ].join('\n');
}

function growthTable(rows: readonly GrowthRow[]): string {
  const lines = (['queues', 'connections', 'connections at one rate'] as const).flatMap((by) => distinct(rows.filter((row) => row.by === by), (row) => row.count).map((count) => {
    const among = rows.filter((row) => row.by === by && row.count === count);
    return [`${count.toLocaleString('en')} ${by}`, of(among, (row) => row.cpuMicrosPerMessage), of(among, (row) => row.gatewayMicros), of(among, (row) => row.storesMicros), of(among, (row) => row.messagesPerSecond)];
  }));
  return `The usual mix, measured once connections and queues are open. Connections send as fast as they are answered, so that more of them are more messages under way; those at one rate take turns with ${GROWTH_RATE.toLocaleString('en')} messages a second in all.\n\n${table(['', 'CPU µs a message', 'gateway', 'both stores', 'messages/s'], lines)}`;
}

function workersTable(rows: readonly WorkersRow[]): string {
  const lines = distinct(rows, (row) => row.workers).map((workers) => {
    const among = rows.filter((row) => row.workers === workers);
    const port = workers === 1 ? '' : of(among, (row) => cpuOf(row.cost, (name) => name === 'gateway'));
    return [`${workers}`, of(among, (row) => row.relayedPerSecond), of(among, (row) => cpuOf(row.cost, isGateway)), port, of(among, (row) => cpuOf(row.cost, isStore)), of(among, (row) => row.responseP50Ms), of(among, (row) => row.responseP99Ms)];
  });
  return `Gateway processes behind one SMTP port, 50 kept connections. Where there are fewer processors than processes, throughput can't rise; CPU a message tells what each further process costs.\n\n${table(
    ['workers', 'messages/s', 'gateway µs CPU, all processes', 'of which the one that has the port', 'both stores µs', 'p50 ms', 'p99 ms'], lines,
  )}`;
}

function nodesTable(rows: readonly NodeRow[]): string {
  const lines = distinct(rows, (row) => row.node).map((node) => {
    const among = rows.filter((row) => row.node === node);
    return [`Node ${node}`, of(among, (row) => row.relayedPerSecond), of(among, (row) => cpuOf(row.cost, isGateway)), of(among, (row) => cpuOf(row.cost, isStore)), of(among, (row) => row.responseP50Ms), of(among, (row) => row.responseP99Ms)];
  });
  return `The relay on kept connections, every process under that version.\n\n${table(['', 'messages/s', 'gateway µs CPU', 'both stores µs', 'p50 ms', 'p99 ms'], lines)}`;
}

function enduranceTable(rows: readonly EnduranceRow[]): string {
  return rows.map((row) => [
    `${row.minutes} minutes at ${row.ratePerSecond.toLocaleString('en')} messages a second (70% of ${figure(row.capacityPerSecond)}): ${row.accepted.toLocaleString('en')} of ${row.messages.toLocaleString('en')} accepted, ${row.delivered === undefined ? 'all delivered' : `${row.delivered.toLocaleString('en')} delivered`} by the count of the sink (it does not look whether one came twice), ${row.faults.length} faults; response p50 ${row.responseP50Ms}, p99 ${row.responseP99Ms} ms; ${figure(row.firstQuarterPerSecond)} messages/s in the first quarter of the second half, ${figure(row.lastQuarterPerSecond)} in the last. The slope is that of a line through the second half.\n`,
    ...(row.quarters === undefined ? [] : [quartersTable(row.quarters)]),
    table(['process', 'resident at the end, MB', 'slope, MB a minute', "of it V8's heap and buffers, MB", 'slope'], row.processes.map((each) => [
      each.process, figure(each.lastMb), each.slopeMbPerMinute === undefined ? 'killed meanwhile' : each.slopeMbPerMinute.toFixed(2),
      each.countedLastMb === undefined ? '-' : figure(each.countedLastMb), each.countedSlopeMbPerMinute?.toFixed(2) ?? '-',
    ])),
  ].join('\n')).join('\n');
}

function quartersTable(quarters: readonly Quarter[]): string {
  const cell = (value: number | null): string => (value === null ? '-' : figure(value));
  return `The second half by quarters, without the seconds of a fault and the 15 after it; the sink's work is the same all the time, so it tells of the machine.\n\n${table(
    ['quarter', 'gateway and stores, CPU µs a message', 'sink µs', 'p50 ms', 'p99 ms'],
    quarters.map((quarter, index) => [String(index + 1), cell(quarter.cpuMicrosPerMessage), cell(quarter.sinkMicrosPerMessage), cell(quarter.responseP50Ms), cell(quarter.responseP99Ms)]),
  )}`;
}
