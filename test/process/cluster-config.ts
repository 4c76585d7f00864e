/**
 * What a cluster of tests (cluster.ts) is asked to be, and the configuration files that follow from it:
 * ports, and one section for each store, gateway and the sink.
 */
import './exit-at-once.js';
import { freePorts, freeRow } from './free-ports.js';
import { tokensFile } from '../unit/platform/node/token-file.js';

export const LOOPBACK = '127.0.0.1';
const SECRET = 'a secret that only this test knows, 32 bytes or more';

/** A part of a configuration file, as plain data: JSON is YAML. */
export interface Section {
  readonly [key: string]: unknown;
}

export interface ClusterOptions {
  /** How many stores; default 2. */
  readonly stores?: number;
  /** How many gateways; default 1. Each has its own listener, state folder and queues; all use all stores. */
  readonly gateways?: number;
  /** Processes behind each gateway's port; default 1. Their admin ports follow one another. */
  readonly workers?: number;
  /** The gateways know one another: each may rescue the others' queues. */
  readonly group?: boolean;
  /** What stands at `register:` in all files; default: a file, which the test's process keeps for a group. */
  readonly register?: Section;
  /** False: no sink, then `routes` are needed. */
  readonly sink?: boolean;
  /** More arguments for `twinpost sink`, such as --defer-rate. */
  readonly sinkArguments?: readonly string[];
  /** The sink writes a line a message to Cluster.arrivalLog; complete after verify(). */
  readonly arrivalLog?: boolean;
  /** Keys of the sink's section, besides its addresses. */
  readonly sinkSection?: Section;
  /** Domains that get a queue of their own to the sink; all others share one. */
  readonly domains?: readonly string[];
  /** Keys of the last route, which sends everything else to the sink. */
  readonly restRoute?: Section;
  /** Those of `domains` whose queue is `order: strict`. */
  readonly strictDomains?: readonly string[];
  /** Routes before these, and before the last one, which sends everything to the sink. */
  readonly routes?: readonly Section[];
  /** Keys laid over the gateway's section; objects are merged. */
  readonly gateway?: Section;
  /** Keys laid over that of one gateway. */
  readonly gatewayOf?: (gateway: number) => Section;
  /** Stores have path A only. */
  readonly onePath?: boolean;
  /** Keys laid over each store's section. */
  readonly store?: Section;
  /** Arguments for node itself, such as --cpu-prof. */
  readonly nodeArguments?: readonly string[];
  /** Gives the port by which a gateway reaches a store's path, to put a proxy in between. Gateways count from 0. */
  readonly mapStorePort?: (port: number, store: number, path: string, gateway: number) => number;
  /** Gives the port by which a gateway reaches the sink. */
  readonly mapSinkPort?: (port: number, gateway: number) => number;
  /** Address of a store's path, when it is not on loopback. */
  readonly storeHost?: (store: number, path: string) => string;
  /** Asked at each start of a process: the entry of another release that it runs, and its configuration in the words of that. */
  readonly release?: (name: string, config: Section) => { readonly entry: string; readonly section: Section } | undefined;
  /** What to put before the command of a process, such as `ip netns exec NAME`. */
  readonly commandPrefix?: (name: string) => readonly string[];
}

export interface GatewayPorts {
  readonly smtp: number;
  readonly admin: number;
}

export interface Ports {
  readonly gateways: readonly GatewayPorts[];
  readonly sink: number;
  readonly sinkAdmin: number;
  /** Path A, path B, admin of each store. */
  readonly stores: readonly (readonly [a: number, b: number, admin: number])[];
}

export function storeId(index: number): string {
  return `store-${String.fromCharCode(97 + index)}`;
}

export function gatewayId(index: number): string {
  return `gateway-${index + 1}`;
}

/** Name of a gateway's process, and of its files. */
export function gatewayName(index: number): string {
  return index === 0 ? 'gateway' : gatewayId(index);
}

/** Where a store can be reached. */
export function storeHost(options: ClusterOptions, index: number, path: string): string {
  return options.storeHost?.(index, path) ?? LOOPBACK;
}

function gatewayIds(options: ClusterOptions): string[] {
  return Array.from({ length: options.gateways ?? 1 }, (_none, index) => gatewayId(index));
}

function pathsOf(options: ClusterOptions, both: Section[]): Section[] {
  return options.onePath === true ? both.slice(0, 1) : both;
}

export function storeConfig(options: ClusterOptions, ports: Ports, index: number): Section {
  const [a, b, admin] = ports.stores[index] ?? [0, 0, 0];
  const own: Section = {
    id: storeId(index),
    host: `host-${storeId(index)}`,
    paths: pathsOf(options, [
      { name: 'A', address: `${storeHost(options, index, 'A')}:${a}` },
      { name: 'B', address: `${storeHost(options, index, 'B')}:${b}` },
    ]),
    gateways: gatewayIds(options).map((id, gateway) => ({ id, workers: options.workers ?? 1, secret: SECRET, admin: `${LOOPBACK}:${ports.gateways[gateway]?.admin ?? 0}` })),
    // Elsewhere than on loopback tokens are asked for, though not by the probes.
    admin: { listen: `${storeHost(options, index, 'A')}:${admin}`, ...(options.storeHost === undefined ? {} : { tokens_file: tokensFile() }) },
    insecure: options.storeHost !== undefined,
    memory: { limit: '512MiB' },
  };
  return { ...registerOf(options), store: merged(own, options.store ?? {}) };
}

export function sinkConfig(options: ClusterOptions, ports: Ports, maildir: string): Section {
  const section: Section = { listen: `${LOOPBACK}:${ports.sink}`, admin: `${LOOPBACK}:${ports.sinkAdmin}`, verify: true, ...options.sinkSection };
  return { sink: section['maildir'] === true ? { ...section, maildir } : section };
}

export function gatewayConfig(options: ClusterOptions, ports: Ports, stateFolder: string, gateway: number): Section {
  const map = (port: number, store: number, path: string): number => options.mapStorePort?.(port, store, path, gateway) ?? port;
  const stores = ports.stores.map(([a, b, admin], index) => ({
    id: storeId(index),
    host: `host-${storeId(index)}`,
    paths: pathsOf(options, [
      { name: 'A', address: `${storeHost(options, index, 'A')}:${map(a, index, 'A')}` },
      { name: 'B', address: `${storeHost(options, index, 'B')}:${map(b, index, 'B')}` },
    ]),
    admin: `${storeHost(options, index, 'A')}:${admin}`,
  }));
  const via = `smtp://${LOOPBACK}:${options.mapSinkPort?.(ports.sink, gateway) ?? ports.sink}`;
  const own = ports.gateways[gateway] ?? { smtp: 0, admin: 0 };
  const isStrict = (domain: string): boolean => options.strictDomains?.includes(domain) === true;
  const toSink = options.sink === false ? [] : [
    ...(options.domains ?? []).map((domain) => (isStrict(domain) ? { domain, via, order: 'strict' } : { domain, via })),
    { domain: '*', via, ...(isStrict('*') ? { order: 'strict' } : {}), ...options.restRoute },
  ];
  const section: Section = {
    id: gatewayId(gateway),
    workers: options.workers ?? 1,
    host: `host-${gatewayId(gateway)}`,
    smtp: { listen: [`${LOOPBACK}:${own.smtp}`], connections_per_client: 1000 },
    routes: [...(options.routes ?? []), ...toSink],
    delivery: { retry: { first: '100ms', max: '1s' } },
    memory: { limit: '512MiB' },
    admin: { listen: `${LOOPBACK}:${own.admin}` },
    secret: SECRET,
    stores,
    state_dir: stateFolder,
    insecure: options.storeHost !== undefined,
    ...(options.group === true ? { group: gatewayIds(options) } : {}),
  };
  return {
    ...registerOf(options),
    gateway: merged(merged(section, options.gateway ?? {}), options.gatewayOf?.(gateway) ?? {}),
  };
}

function registerOf({ register }: ClusterOptions): Section {
  return register === undefined ? {} : { register };
}

/** `over` laid over `under`: sections are merged, everything else replaced. */
function merged(under: Section, over: Section): Section {
  const result: Record<string, unknown> = { ...under };
  for (const [key, value] of Object.entries(over)) {
    const below = result[key];
    result[key] = isSection(below) && isSection(value) ? merged(below, value) : value;
  }
  return result;
}

function isSection(value: unknown): value is Section {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export async function choosePorts({ gateways = 1, stores = 2, workers = 1 }: ClusterOptions): Promise<Ports> {
  const ports = await freePorts(2 + gateways + 3 * stores);
  const admins: number[] = [];
  for (let gateway = 0; gateway < gateways; gateway++) admins.push(await freeRow(workers));
  const take = (): number => ports.pop() ?? 0;
  return {
    sink: take(), sinkAdmin: take(),
    gateways: Array.from({ length: gateways }, () => ({ smtp: take(), admin: admins.pop() ?? 0 })),
    stores: Array.from({ length: stores }, () => [take(), take(), take()] as const),
  };
}
