/**
 * `npm run bench -- endurance --minutes N`: mail at 70% of what the machine takes, for minutes or hours, with
 * a fault a minute: a store killed, a store standing still, a next hop standing still. What is asked is
 * whether memory or time grows: the resident memory of each process is sampled and a straight line laid
 * through it (least squares), and rate, CPU a message and response time are noted second by second. CPU and
 * response are judged by what lies between the faults: the seconds after one are its own story.
 *
 * Gateway, store-a and the sink are never killed, so that their lines are those of one process each; what
 * kills do to mail is chaos' question (test/chaos).
 */
import { pause, startCluster, type Cluster, type Daemon } from '../test/process/cluster.js';
import { median, rounded, usageOf } from './machine.js';
import type { PartRun } from './options.js';
import { MemoryProbes } from './probe-report.js';
import { runClient } from './processes.js';
import { DOMAINS, isGateway, isStore, loadOptions, processesOf, relayThrough, warm } from './relay-run.js';
import { slopeOf } from './statistics.js';
import type { Plot } from './svg-plot.js';

export interface EnduranceRow {
  readonly minutes: number;
  readonly ratePerSecond: number;
  readonly capacityPerSecond: number;
  readonly messages: number;
  readonly accepted: number;
  /** What the sink counted: at least `accepted`; it does not look whether one came twice. Not in results of before, as `quarters` is not. */
  readonly delivered?: number;
  readonly faults: readonly string[];
  readonly responseP50Ms: number;
  readonly responseP99Ms: number;
  /** Median of messages accepted a second in the first and in the last quarter of what is judged. */
  readonly firstQuarterPerSecond: number;
  readonly lastQuarterPerSecond: number;
  readonly quarters?: readonly Quarter[];
  readonly processes: readonly ProcessMemory[];
  readonly samples: readonly Sample[];
}

/** A quarter of what is judged, without the seconds of faults; null when none were left. */
export interface Quarter {
  /** Gateway and all stores. */
  readonly cpuMicrosPerMessage: number | null;
  /** The same work all the time: it tells whether the machine became slower. */
  readonly sinkMicrosPerMessage: number | null;
  /** Medians over samples. */
  readonly responseP50Ms: number | null;
  readonly responseP99Ms: number | null;
}

interface ProcessMemory {
  readonly process: string;
  /** Of the line through what is judged of its samples. Undefined: it was killed meanwhile. */
  readonly slopeMbPerMinute: number | undefined;
  readonly lastMb: number;
  /** The same of what V8 counts; not in results of before. */
  readonly countedSlopeMbPerMinute?: number | undefined;
  readonly countedLastMb?: number;
}

export interface Sample {
  readonly second: number;
  readonly acceptedPerSecond: number;
  /** In MB, by process; a process that is down has none. */
  readonly memoryMb: Readonly<Record<string, number>>;
  /** V8's heap and what it holds outside: what is resident beyond it is the program, and memory that malloc keeps. */
  readonly countedMb?: Readonly<Record<string, number>>;
  /** Since the sample before; undefined at a fault and for some seconds after it. */
  readonly quiet?: QuietSample | undefined;
}

interface QuietSample {
  readonly messages: number;
  /** Of gateway and stores, and of the sink. */
  readonly cpuMicros: number;
  readonly sinkMicros: number;
  /** Undefined: nothing was accepted. */
  readonly p50Ms?: number | undefined;
  readonly p99Ms?: number | undefined;
}

const SHARE = 0.7;
const CAPACITY_MESSAGES = 40_000;
const WARM_MESSAGES = 20_000;
const FAULT_EVERY_MS = 60_000;
const DOWN_MS = 5000;
const FROZEN_MS = 3000;
const SAMPLE_MS = 2000;
/** After a fault lists are refilled and what waited is sent. */
const SETTLE_MS = 15_000;
/** What comes after this share of the time is judged: memory has its level when each kind of fault has struck a few times. */
const WARM_SHARE = 0.5;
const PATIENCE_MS = 60_000;
const DRAIN_MS = 120_000;
const MB = 1e6;

export async function benchEndurance(minutes: number): Promise<PartRun<EnduranceRow>> {
  const probes = new MemoryProbes();
  try {
    return { rows: [await endureWith(probes, minutes)] };
  } finally {
    probes.close();
  }
}

async function endureWith(probes: MemoryProbes, minutes: number): Promise<EnduranceRow> {
  const cluster = await startCluster({
    stores: 3, domains: DOMAINS, sinkSection: { verify: false }, nodeArguments: probes.nodeArguments,
    gateway: { memory: { limit: '2GiB' }, delivery: { messages_per_connection: 1_000_000 } }, store: { memory: { limit: '2GiB' } },
  });
  try {
    await warm(cluster, { count: WARM_MESSAGES });
    const capacity = (await relayThrough(cluster, { count: CAPACITY_MESSAGES })).relayedPerSecond;
    return await endure(cluster, probes, minutes, capacity);
  } finally {
    cluster.sink.thaw();
    await cluster.stop();
  }
}

async function endure(cluster: Cluster, probes: MemoryProbes, minutes: number, capacity: number): Promise<EnduranceRow> {
  const ratePerSecond = Math.round(SHARE * capacity);
  const count = Math.round(ratePerSecond * minutes * 60);
  console.log(`${ratePerSecond} messages a second, ${Math.round(100 * SHARE)}% of ${Math.round(capacity)}, for ${minutes} minutes`);
  const watch = new Watch(cluster, probes);
  const before = (await cluster.sinkCounts()).messages;
  const faults = strikeEachMinute(cluster, minutes * 60_000, watch);
  const client = await runClient({ ...loadOptions(cluster.smtpPort, { count, rate: ratePerSecond }), patienceMs: PATIENCE_MS }, (accepted, lately) => { watch.hear(accepted, lately); });
  watch.end();
  const struck = await faults;
  const samples = watch.stop();
  await cluster.sinkHas(before + client.report.accepted, DRAIN_MS);
  const delivered = (await cluster.sinkCounts()).messages - before;
  const steady = steadyOf(samples);
  const quarter = Math.max(1, Math.floor(steady.length / 4));
  return {
    minutes, ratePerSecond, capacityPerSecond: rounded(capacity), messages: count, accepted: client.report.accepted, delivered, faults: struck,
    responseP50Ms: rounded(client.report.responseMs.p50, 2), responseP99Ms: rounded(client.report.responseMs.p99, 2),
    firstQuarterPerSecond: rateOf(steady.slice(0, quarter)), lastQuarterPerSecond: rateOf(steady.slice(-quarter)), quarters: quartersOf(steady),
    processes: processesOf(cluster).map((daemon) => memoryOf(daemon.name, steady, daemon !== victimOf(cluster))), samples,
  };
}

/** What is judged: the rate by its quarters, memory by a line through it. */
export function steadyOf(samples: readonly Sample[]): readonly Sample[] {
  const lastSecond = samples.at(-1)?.second ?? 0;
  return samples.filter((sample) => sample.second > WARM_SHARE * lastSecond);
}

export function quartersOf(samples: readonly Sample[]): Quarter[] {
  const size = Math.max(1, Math.floor(samples.length / 4));
  return [0, 1, 2, 3].map((index) => {
    const quiet = samples.slice(index * size, index === 3 ? undefined : (index + 1) * size).flatMap((sample) => sample.quiet ?? []);
    const messages = quiet.reduce((sum, each) => sum + each.messages, 0);
    const perMessage = (of: (each: QuietSample) => number): number | null => (messages === 0 ? null : rounded(quiet.reduce((sum, each) => sum + of(each), 0) / messages, 2));
    const middle = (of: (each: QuietSample) => number | undefined): number | null => {
      const values = quiet.flatMap((each) => of(each) ?? []);
      return values.length === 0 ? null : rounded(median(values), 2);
    };
    return { cpuMicrosPerMessage: perMessage((each) => each.cpuMicros), sinkMicrosPerMessage: perMessage((each) => each.sinkMicros), responseP50Ms: middle((each) => each.p50Ms), responseP99Ms: middle((each) => each.p99Ms) };
  });
}

/** The one that is killed. */
function victimOf(cluster: Cluster): Daemon | undefined {
  return cluster.stores.at(-1);
}

function rateOf(samples: readonly Sample[]): number {
  return rounded(median(samples.map((sample) => sample.acceptedPerSecond)));
}

export function memoryOf(process: string, samples: readonly Sample[], isOneProcess: boolean): ProcessMemory {
  const [slopeMbPerMinute, lastMb] = lineOf(samples, (sample) => sample.memoryMb[process]);
  const [countedSlopeMbPerMinute, countedLastMb] = lineOf(samples, (sample) => sample.countedMb?.[process]);
  const counted = countedLastMb === undefined ? {} : { countedSlopeMbPerMinute: isOneProcess ? countedSlopeMbPerMinute : undefined, countedLastMb };
  return { process, slopeMbPerMinute: isOneProcess ? slopeMbPerMinute : undefined, lastMb: lastMb ?? 0, ...counted };
}

/** MB a minute of the line through the samples, and the last of them. */
function lineOf(samples: readonly Sample[], mbOf: (sample: Sample) => number | undefined): readonly [slope: number, last: number | undefined] {
  const points = samples.flatMap((sample) => {
    const mb = mbOf(sample);
    return mb === undefined ? [] : [[sample.second / 60, mb] as const];
  });
  return [rounded(slopeOf(points), 3), points.at(-1)?.[1]];
}

/** Resolves when the time is over and the last fault healed, with what struck. */
async function strikeEachMinute(cluster: Cluster, forMs: number, watch: Watch): Promise<string[]> {
  const struck: string[] = [];
  const blows = [() => kill(victimOf(cluster)), () => freeze(cluster.stores[1]), () => freeze(cluster.sink)];
  const endMs = performance.now() + forMs;
  for (let turn = 0; performance.now() + FAULT_EVERY_MS / 2 < endMs; turn++) {
    await pause(FAULT_EVERY_MS / 2);
    watch.isDisturbed = true;
    const what = (await blows[turn % blows.length]?.()) ?? '';
    watch.settle();
    console.log(what);
    struck.push(what);
    await pause(FAULT_EVERY_MS / 2);
  }
  return struck;
}

async function kill(victim: Daemon | undefined): Promise<string> {
  if (victim === undefined) return 'nobody to kill';
  await victim.kill();
  await pause(DOWN_MS);
  victim.start();
  await victim.ready();
  return `${victim.name} killed, for ${DOWN_MS / 1000} s`;
}

async function freeze(victim: Daemon | undefined): Promise<string> {
  if (victim === undefined) return 'nobody to freeze';
  victim.freeze();
  await pause(FROZEN_MS);
  victim.thaw();
  return `${victim.name} stood still for ${FROZEN_MS / 1000} s`;
}

/** Samples memory, rate, CPU and response time until stopped. */
class Watch {
  /** A fault is on. */
  isDisturbed = false;
  readonly #cluster: Cluster;
  readonly #probes: MemoryProbes;
  readonly #samples: Sample[] = [];
  readonly #startMs = performance.now();
  readonly #timer: NodeJS.Timeout;
  #accepted = 0;
  #acceptedBefore = 0;
  #lately: ResponseTimes[] = [];
  #cpu: CpuReading;
  #settledMs = 0;
  #wasQuiet = false;
  #isOver = false;
  #beforeMs = performance.now();

  constructor(cluster: Cluster, probes: MemoryProbes) {
    this.#cluster = cluster;
    this.#probes = probes;
    this.#cpu = readCpu(cluster);
    this.#timer = setInterval(() => { this.#sample(); }, SAMPLE_MS);
  }

  stop(): readonly Sample[] {
    clearInterval(this.#timer);
    return this.#samples;
  }

  hear(accepted: number, lately: ResponseTimes | undefined): void {
    this.#accepted = accepted;
    if (lately !== undefined) this.#lately.push(lately);
  }

  /** The fault is over; what it left behind soon will be. */
  settle(): void {
    this.isDisturbed = false;
    this.#settledMs = performance.now() + SETTLE_MS;
  }

  /** The client has ended: processes that have nothing to do tell nothing of mail. */
  end(): void {
    this.#isOver = true;
  }

  #sample(): void {
    const nowMs = performance.now();
    const isQuiet = !this.isDisturbed && !this.#isOver && nowMs >= this.#settledMs;
    const messages = this.#accepted - this.#acceptedBefore;
    const used = this.#use();
    // What is counted since the sample before must have been quiet from there on.
    const quiet = isQuiet && this.#wasQuiet && used !== undefined ? { messages, ...used, ...this.#responses() } : undefined;
    this.#wasQuiet = isQuiet;
    this.#lately = [];
    const memoryMb: Record<string, number> = {};
    const countedMb: Record<string, number> = {};
    for (const daemon of processesOf(this.#cluster)) {
      if (!daemon.isRunning) continue;
      memoryMb[daemon.name] = rounded(usageOf(daemon.pid).memoryBytes / MB);
      const counted = this.#probes.read(daemon.pid);
      if (counted !== undefined) countedMb[daemon.name] = rounded((counted.heapBytes + counted.outsideBytes) / MB);
    }
    const acceptedPerSecond = rounded((messages * 1000) / (nowMs - this.#beforeMs));
    this.#samples.push({ second: Math.round((nowMs - this.#startMs) / 1000), acceptedPerSecond, memoryMb, countedMb, quiet });
    this.#acceptedBefore = this.#accepted;
    this.#beforeMs = nowMs;
  }

  /** Since the last call; undefined when it is not the same processes. */
  #use(): { readonly cpuMicros: number; readonly sinkMicros: number } | undefined {
    const before = this.#cpu;
    const now = readCpu(this.#cluster);
    this.#cpu = now;
    return now.processes !== before.processes ? undefined : { cpuMicros: now.cpuMicros - before.cpuMicros, sinkMicros: now.sinkMicros - before.sinkMicros };
  }

  #responses(): { readonly p50Ms?: number; readonly p99Ms?: number } {
    const lately = this.#lately;
    return lately.length === 0 ? {} : { p50Ms: rounded(median(lately.map(({ p50 }) => p50)), 2), p99Ms: rounded(median(lately.map(({ p99 }) => p99)), 2) };
  }
}

interface ResponseTimes {
  readonly p50: number;
  readonly p99: number;
}

/** CPU time so far of those that run. */
interface CpuReading {
  /** Their ids. */
  readonly processes: string;
  readonly cpuMicros: number;
  readonly sinkMicros: number;
}

function readCpu(cluster: Cluster): CpuReading {
  const running = processesOf(cluster).filter((daemon) => daemon.isRunning);
  const micros = (isAsked: (name: string) => boolean): number => running.filter(({ name }) => isAsked(name)).reduce((sum, { pid }) => sum + usageOf(pid).cpuMicros, 0);
  return { processes: running.map(({ pid }) => pid).join(), cpuMicros: micros((name) => isGateway(name) || isStore(name)), sinkMicros: micros((name) => !isGateway(name) && !isStore(name)) };
}

export function endurancePlot(row: EnduranceRow): Plot {
  const categories = row.samples.map((sample) => (sample.second / 60).toFixed(1));
  return {
    title: `${row.minutes} minutes at ${row.ratePerSecond.toLocaleString('en')} messages a second, a fault a minute`,
    note: `${row.faults.length} faults: a store killed, a store standing still, the next hop standing still`,
    panels: [
      {
        title: 'resident memory', xLabel: 'minutes', yLabel: 'MB', categories, sparse: true,
        series: row.processes.map(({ process }) => ({ name: process, values: row.samples.map((sample) => sample.memoryMb[process]) })),
      },
      { title: 'messages accepted', xLabel: 'minutes', yLabel: 'messages a second', categories, sparse: true, series: [{ name: 'accepted', values: row.samples.map((sample) => sample.acceptedPerSecond) }] },
    ],
  };
}
