/**
 * A group of gateways that share stores and next hops, in one thread under a virtual clock: what World is for one
 * gateway, for rescue and hand-back. All parts but clients, network and next hops are the real ones.
 */
import assert from 'node:assert/strict';
import { Prng } from '../../src/base/prng.js';
import type { MailEvents } from '../../src/gateway/queue/mail-events.js';
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import { createRouter } from '../../src/gateway/queue/router.js';
import { OWN_ORIGIN } from '../../src/gateway/mail-types.js';
import type { Ordering, Recipient, RecipientGroup, Route, Router } from '../../src/gateway/mail-types.js';
import { GatewayNode } from './gateway-node.js';
import { Letter, Letters } from './letters.js';
import { Network } from './network.js';
import { Carrier, NextHops } from './next-hop.js';
import { KeptLog } from './ports.js';
import { Scheduler } from './scheduler.js';
import { StoreNode } from './store-node.js';
import { WorldRegister } from './world-register.js';
import { SimProcess } from '../simulation/process.js';
import { forgetQueues, noteQueues } from './inspect.js';

export interface GroupOptions {
  readonly gateways?: readonly string[];
  readonly stores?: number;
  readonly queues?: readonly { readonly name: string; readonly ordering?: Ordering }[];
  readonly leaseMs?: number;
  readonly lifetimeMs?: number;
  /** From a deferral until the next attempt. */
  readonly retryDelayMs?: number;
  readonly partitions?: number;
  readonly segmentBytes?: number;
  readonly blockEntries?: number;
  /** Bodies come along with blocks when no more than this is to come. */
  readonly littleBytes?: number;
  /** The largest message that clients may send. */
  readonly largestBytes?: number;
  readonly minReplicas?: number;
  /** Age at which a delay is told to who asked for it. */
  readonly delayAfterMs?: number;
  readonly storeMemoryBytes?: number;
  /** Of a gateway by its name, or of one of its processes by the host that it is on. */
  readonly memoryBytes?: Readonly<Record<string, number>>;
  /** Hosts whose gateways take over nobody's queues; a gateway's first host has its name. */
  readonly noRescue?: readonly string[];
  /** Gateways that can't prove that the process before them is gone. */
  readonly unproven?: readonly string[];
  /** By host: what its configuration names as its group, and how many partitions; else all gateways, and as above. */
  readonly groupOf?: Readonly<Record<string, readonly string[]>>;
  /** Hosts whose configuration names no group: it is that of all. */
  readonly noGroup?: readonly string[];
  readonly partitionsOf?: Readonly<Record<string, number>>;
  /** A gateway without a key for so long is served no more. */
  readonly orphanGraceMs?: number;
  /** Hosts that keep the register by themselves: what nobody serves is theirs. */
  readonly alone?: readonly string[];
  /** Machines of stores, as placement is told them: that of a gateway is named after it. None: all are one. */
  readonly storeHosts?: Readonly<Record<string, string>>;
  /** Further processes of these gateways, by the host each is on: gateway(host), served(host, …). */
  readonly elsewhere?: Readonly<Record<string, string>>;
}

const MEBIBYTE = 1024 * 1024;
const WALL_BASE_MS = Date.UTC(2026, 0, 1);
const BOUND_MS = 60_000;
/** A short lease: heartbeats every 250 ms renew it. */
const LEASE_MS = 4000;

export class Group {
  readonly scheduler = new Scheduler();
  readonly prng = new Prng(1);
  readonly network = new Network(this.scheduler, this.prng.fork());
  readonly letters = new Letters();
  readonly hops = new NextHops(this.letters);
  readonly log = new KeptLog(() => this.scheduler.nowMs, (line) => { this.scheduler.trace(line.text); });
  readonly register = new WorldRegister(this.scheduler, this.prng.fork(), this.log, WALL_BASE_MS);
  readonly stores: readonly StoreNode[];
  readonly leaseMs: number;
  /** Messages of which no report can be composed: who tries meets a fatal error. */
  readonly poison = new Set<number>();
  private readonly nodes = new Map<string, GatewayNode>();
  private readonly processes = new Map<string, SimProcess>();
  private readonly router: Router;

  constructor(options: GroupOptions = {}) {
    forgetQueues();
    const gateways = options.gateways ?? ['gw-1', 'gw-2'];
    this.leaseMs = options.leaseMs ?? LEASE_MS;
    this.router = createRouter([...(options.queues ?? [{ name: 'q1' }, { name: 'q2' }]), { name: 'senders' }].map((queue) => ({
      domains: [`${queue.name}.example`], name: queue.name, nextHop: { protocol: 'smtp', host: queue.name, port: 25 },
      ordering: ('ordering' in queue ? queue.ordering : undefined) ?? 'fifo', concurrency: 4, lengthMax: 1_000_000,
    })));
    const secret = new Uint8Array(32).fill(7);
    const ports = { scheduler: this.scheduler, network: this.network, log: this.log, wallBaseMs: WALL_BASE_MS };
    const places = new Map(Object.entries(options.storeHosts ?? {}).map(([store, host]) => [store, { host, weight: 1 }]));
    const ids = ['store-a', 'store-b', 'store-c'].slice(0, options.stores ?? Math.max(2, places.size));
    this.stores = ids.map((id) => new StoreNode({ id, gateways: gateways.map((gateway) => ({ id: gateway, secret })), memoryLimitBytes: options.storeMemoryBytes ?? 256 * MEBIBYTE, windowBytes: 8 * MEBIBYTE, leaseMs: this.leaseMs }, ports, this.prng.fork()));
    for (const [host, id] of [...gateways.map((one) => [one, one] as const), ...Object.entries(options.elsewhere ?? {})]) {
      const process = new SimProcess(host, { offsetMs: 0, rate: 1 }, this.scheduler);
      this.processes.set(host, process);
      this.network.addHost(host, process);
      const node = new GatewayNode(
        {
          id, host, secret, isUnproven: options.unproven?.includes(id) === true, storeIds: ids, windowBytes: 8 * MEBIBYTE, failoverTimeoutMs: 1000, retryDelayMs: () => options.retryDelayMs ?? 1000,
          core: {
            partitions: options.partitionsOf?.[host] ?? options.partitions ?? 4, queuesMax: 5000, group: options.noGroup?.includes(host) === true ? undefined : options.groupOf?.[host] ?? gateways, rescue: options.noRescue?.includes(host) !== true, orphans: options.alone?.includes(host) === true ? { graceMs: 0, areOurs: true } : { graceMs: options.orphanGraceMs ?? 600_000, areOurs: false }, leaseMs: this.leaseMs, commitTimeoutMs: 5000, longestRetryMs: options.retryDelayMs ?? 1000, delayReports: { afterMs: options.delayAfterMs ?? 0, isUnasked: false }, firstWaitMs: 1000, segmentBytes: options.segmentBytes ?? 64 * 1024,
            mirrors: { replicas: 2, minReplicas: options.minReplicas ?? 1, retryMs: 500, refillFrameBytes: 2048, frameTargetBytes: 64 * 1024, replaceAfterMs: 30_000, rebalanceBytesPerSecond: 0, placement: { gatewayHost: options.storeHosts === undefined ? undefined : host, places }, ringBytes: MEBIBYTE },
            acceptance: { lifetimeMs: options.lifetimeMs ?? 3_600_000, bounceLifetimeMs: 3_600_000, nextHopShare: 1 },
            memory: { limitBytes: options.memoryBytes?.[host] ?? options.memoryBytes?.[id] ?? 256 * MEBIBYTE, acceptShare: 0.8, reserveShare: 0.97 },
            reading: { blockEntries: options.blockEntries ?? 7, blockBytes: 64 * 1024, largestBytes: options.largestBytes ?? 0, littleBytes: options.littleBytes ?? 64 * MEBIBYTE },
          },
        },
        { ...ports, scheduler: process, router: this.router, register: this.register, newCarrier: (core, isAlive) => new Carrier(this.hops, core, process, isAlive), events: this.mailEvents(), onTurn: () => {}, chokesOn: (id) => this.poison.has(id) },
        this.prng.fork(),
      );
      this.nodes.set(host, node);
    }
  }

  /** All stores and the named gateways, when each holds its partitions. */
  static started(options: GroupOptions = {}, gateways?: readonly string[]): Group {
    const group = new Group(options);
    for (const store of group.stores) store.start();
    for (const id of gateways ?? options.gateways ?? ['gw-1', 'gw-2']) group.gateway(id).start();
    group.run(group.leaseMs + 500);
    return group;
  }

  gateway(id: string): GatewayNode {
    const node = this.nodes.get(id);
    assert.ok(node !== undefined, `${id} is part of this group`);
    return node;
  }

  /** SIGSTOP: no step of it is taken any more; what is sent to it waits. */
  freeze(id: string): void {
    this.processOf(id).freeze();
  }

  thaw(id: string): void {
    this.processOf(id).thaw();
    this.network.thaw(id);
  }

  isFrozen(id: string): boolean {
    return this.processOf(id).isFrozen;
  }

  /** These stores do not hear the gateway, nor it them. */
  cutOff(id: string, held: boolean, stores: readonly StoreNode[] = this.stores): void {
    for (const store of stores) {
      this.network.holdRequests(id, store.id, held);
      this.network.holdAnswers(id, store.id, held);
    }
  }

  store(letter: 'a' | 'b' | 'c'): StoreNode {
    const found = this.stores.find((store) => store.id === `store-${letter}`);
    assert.ok(found !== undefined);
    return found;
  }

  /** Of its mail. */
  routeOf(name: string): Route {
    const route = this.router.route(`${name}.example`, 'mail', '', OWN_ORIGIN);
    assert.ok(route !== undefined);
    return route;
  }

  /** Queues that a gateway serves and that belong to `ownerId`. */
  served(id: string, ownerId: string): Partition[] {
    return (this.gateway(id).core?.registry.partitions ?? []).filter((mirror) => mirror.ownerId === ownerId);
  }

  submit(id: string, names: readonly string[], reversePath = 'alice@senders.example', bytes = 200, recipientCount = 1, notify = 0): Letter {
    const core = this.gateway(id).core;
    assert.ok(core !== undefined, 'mail is submitted to a living gateway');
    const messageId = core.nextMessageId();
    const groups = new Map<string, Recipient[]>();
    const submitted: RecipientGroup[] = names.map((name) => {
      const route = this.routeOf(name);
      const recipients = Array.from({ length: recipientCount }, (_, i) => ({ address: `${String(i)}@${name}.example`, notify, orcpt: '' }));
      groups.set(name, recipients);
      return { route, recipients };
    });
    const letter = new Letter(messageId, reversePath, groups, bytes, this.letters.moment());
    this.letters.byId.set(messageId, letter);
    core.submit({
      messageId, reversePath, groups: submitted, chunks: [letter.content], contentBytes: letter.content.length, flags: 0, ret: 0, envid: '', client: 'client', helo: 'client.example',
      settle: (outcome) => {
        noteQueues(core);
        letter.outcome = outcome;
        letter.settledAt = this.letters.moment();
      },
    });
    noteQueues(core);
    return letter;
  }

  run(ms: number): void {
    this.scheduler.runUntil(this.scheduler.nowMs + ms);
  }

  until(condition: () => boolean, what: string, boundMs = BOUND_MS): void {
    const end = this.scheduler.nowMs + boundMs;
    while (!condition()) {
      assert.ok(this.scheduler.nowMs < end, `${what} did not come within ${String(boundMs)} ms; log:\n${this.lastLog()}`);
      assert.ok(this.scheduler.step());
    }
  }

  lastLog(lines = 30): string {
    return this.log.lines.slice(-lines).map((line) => `${line.atMs.toFixed(1)} ${line.event}: ${line.text} ${JSON.stringify(line.fields)}`).join('\n');
  }

  private processOf(id: string): SimProcess {
    const process = this.processes.get(id);
    assert.ok(process !== undefined, `${id} is part of this group`);
    return process;
  }

  private mailEvents(): MailEvents {
    return { outcome: () => {}, waits: () => {}, ended: () => {}, unreachable: () => {}, dotUnanswered: () => {}, reported: () => {}, committed: () => {}, refused: () => {} };
  }
}
