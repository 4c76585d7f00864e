/**
 * A whole deployment in one thread: clients, one gateway, its stores, next hops, under a virtual clock and a
 * network that a test can cut, hold and slow down. All parts but clients, network and next hops are the real
 * ones. Everything comes from the seed, so a failing run repeats exactly.
 *
 *   clients ─ submit() ─► GatewayNode (gateway-node.ts) ─ network.ts ─► StoreNode (store-node.ts)
 *                               └─ Carrier ─► NextHops (next-hop.ts)        letters.ts: what clients saw
 *
 * G1 is checked at the moment of every 250 by looking into the stores; the other guarantees at the end (checks.ts).
 */
import assert from 'node:assert/strict';
import { Prng } from '../../src/base/prng.js';
import type { CoreOptions } from '../../src/gateway/daemon/core-options.js';
import type { MailEvents } from '../../src/gateway/queue/mail-events.js';
import type { MailQueue } from '../../src/gateway/queue/mail-queue.js';
import { createRouter, type RenewableRouter, type RouteOptions } from '../../src/gateway/queue/router.js';
import type { Envelope, Ordering, Recipient, RecipientGroup, Route, Router, SubmissionOutcome } from '../../src/gateway/mail-types.js';
import { COMMITTED, OWN_ORIGIN } from '../../src/gateway/mail-types.js';
import type { Partition } from '../../src/gateway/mirror/set/partition.js';
import type { RecordedMember } from '../../src/protocol/partition-record.js';
import { checkCommitted } from './checks.js';
import { GatewayNode } from './gateway-node.js';
import { contentOf, forgetQueues, hasQueue, noteQueues } from './inspect.js';
import { Letter, Letters } from './letters.js';
import { Network } from './network.js';
import { Carrier, NextHops } from './next-hop.js';
import { KeptLog } from './ports.js';
import { Scheduler } from './scheduler.js';
import { StoreNode } from './store-node.js';
import { WorldRegister } from './world-register.js';

export interface QueueOptions {
  readonly name: string;
  readonly ordering?: Ordering;
  readonly concurrency?: number;
  readonly lengthMax?: number;
  /** A queue for each domain, of mail that is led there. */
  readonly perDomain?: boolean;
  /** Its next hops are those that the DNS names: nobody is asked here. */
  readonly isByMx?: boolean;
}

export interface WorldOptions {
  readonly seed?: number;
  readonly stores?: number;
  readonly minReplicas?: number;
  readonly queues?: readonly QueueOptions[];
  readonly commitTimeoutMs?: number;
  readonly blockEntries?: number;
  /** Bodies come along with blocks when no more than this is to come. */
  readonly littleBytes?: number;
  readonly storeMemoryBytes?: number;
  /** Of single stores, by id. */
  readonly memoryOf?: Readonly<Record<string, number>>;
  readonly gatewayMemoryBytes?: number;
  readonly windowBytes?: number;
  readonly lifetimeMs?: number;
  readonly bounceLifetimeMs?: number;
  readonly delayAfterMs?: number;
  /** Also to a sender who said nothing of reports. */
  readonly delayUnasked?: boolean;
  readonly refillFrameBytes?: number;
  readonly retryMs?: number;
  /** From a deferral until the next attempt. */
  readonly retryDelayMs?: number;
  readonly ringBytes?: number;
  readonly replaceAfterMs?: number;
  readonly rebalanceBytesPerSecond?: number;
  readonly partitions?: number;
  readonly leaseMs?: number;
}

export interface LetterOptions {
  readonly bytes?: number;
  readonly reversePath?: string;
  readonly notify?: number;
  /** Recipients in each queue. */
  readonly recipients?: number;
  /** Each of them in a domain of its own. */
  readonly hasDomains?: boolean;
}

const GATEWAY = 'gw-1';
const WALL_BASE_MS = Date.UTC(2026, 0, 1);
const MEBIBYTE = 1024 * 1024;
const LEASE_MS = 10_000;
const SETTLE_BOUND_MS = 120_000;

export class World {
  readonly scheduler = new Scheduler();
  readonly prng: Prng;
  readonly network: Network;
  readonly letters = new Letters();
  /** Lines of the mail log, of what waits untried and of what expires. */
  readonly told: string[] = [];
  readonly hops: NextHops;
  readonly log: KeptLog;
  readonly register: WorldRegister;
  readonly gateway: GatewayNode;
  readonly stores: readonly StoreNode[];
  readonly queueNames: readonly string[];
  /** Messages of which no report can be composed: who tries meets a fatal error. */
  readonly poison = new Set<number>();
  /** Called after every turn of the gateway; a test may kill there. */
  onTurn: () => void = () => {};
  /** Queues whose route is gone from the configuration; a restarted gateway finds none for them. */
  readonly unrouted = new Set<string>();
  private readonly router: Router;
  private readonly table: RenewableRouter;
  private readonly queueOptions: readonly QueueOptions[];
  private readonly hosts = new Map<string, string>();
  private readonly coreOptions: Pick<CoreOptions, 'longestRetryMs' | 'acceptance' | 'delayReports'>;

  constructor(options: WorldOptions = {}) {
    this.prng = new Prng(options.seed ?? 1);
    forgetQueues();
    this.network = new Network(this.scheduler, this.prng.fork());
    this.hops = new NextHops(this.letters);
    this.log = new KeptLog(() => this.scheduler.nowMs, (line) => { this.scheduler.trace(line.text); });
    this.register = new WorldRegister(this.scheduler, this.prng.fork(), this.log, WALL_BASE_MS);
    this.queueOptions = options.queues ?? [{ name: 'q1' }, { name: 'q2' }, { name: 'q3' }];
    this.queueNames = this.queueOptions.map((queue) => queue.name);
    const table = createRouter(this.routes());
    this.table = table;
    this.router = {
      route: (domain, queueClass, address, origin) => table.route(domain, queueClass, address, origin),
      isTooLong: (domain, address, origin) => table.isTooLong(domain, address, origin),
      routeNamed: (name, domain, queueClass, reversePath) => table.routeNamed(name, domain, queueClass, reversePath),
      routeOfQueue: (name, queueClass) => (this.unrouted.has(name) ? undefined : table.routeOfQueue(name, queueClass)),
      withTls: (route, need) => table.withTls(route, need),
      mailRoutes: () => table.mailRoutes(),
      waysTo: (pattern) => table.waysTo(pattern),
      nameOf: (route) => table.nameOf(route),
      domainOf: (route) => table.domainOf(route),
    };
    const secret = new Uint8Array(32).fill(7);
    this.coreOptions = {
      delayReports: { afterMs: options.delayAfterMs ?? 0, isUnasked: options.delayUnasked ?? false },
      longestRetryMs: options.retryDelayMs ?? 1000,
      acceptance: { lifetimeMs: options.lifetimeMs ?? 3_600_000, bounceLifetimeMs: options.bounceLifetimeMs ?? 3_600_000, nextHopShare: 1 },
    };
    const ports = { scheduler: this.scheduler, network: this.network, log: this.log, wallBaseMs: WALL_BASE_MS };
    const windowBytes = options.windowBytes ?? 8 * MEBIBYTE;
    const ids = ['store-a', 'store-b', 'store-c', 'store-d'].slice(0, options.stores ?? 2);
    this.stores = ids.map((id) => new StoreNode({ id, gateways: [{ id: GATEWAY, secret }], memoryLimitBytes: options.memoryOf?.[id] ?? options.storeMemoryBytes ?? 256 * MEBIBYTE, windowBytes, leaseMs: options.leaseMs ?? LEASE_MS }, ports, this.prng.fork()));
    this.gateway = new GatewayNode(
      {
        id: GATEWAY, secret, storeIds: ids, windowBytes, retryDelayMs: () => options.retryDelayMs ?? 1000,
        core: {
          partitions: options.partitions ?? 8, queuesMax: 5000, group: [GATEWAY], rescue: false, orphans: { graceMs: 0, areOurs: true }, leaseMs: options.leaseMs ?? LEASE_MS, commitTimeoutMs: options.commitTimeoutMs ?? 5000, firstWaitMs: 2000, segmentBytes: 64 * 1024,
          mirrors: { replicas: 2, minReplicas: options.minReplicas ?? 1, retryMs: options.retryMs ?? 500, refillFrameBytes: options.refillFrameBytes ?? 2048, frameTargetBytes: 64 * 1024, ringBytes: options.ringBytes ?? MEBIBYTE, replaceAfterMs: options.replaceAfterMs ?? 3_600_000, rebalanceBytesPerSecond: options.rebalanceBytesPerSecond ?? 0, placement: { gatewayHost: undefined, places: new Map() } },
          ...this.coreOptions,
          memory: { limitBytes: options.gatewayMemoryBytes ?? 256 * MEBIBYTE, acceptShare: 0.8, reserveShare: 0.97 },
          reading: { blockEntries: options.blockEntries ?? 7, blockBytes: MEBIBYTE, littleBytes: options.littleBytes ?? 64 * MEBIBYTE },
        },
      },
      { ...ports, router: this.router, register: this.register, newCarrier: (core, isAlive) => new Carrier(this.hops, core, this.scheduler, isAlive), events: this.mailEvents(), onTurn: () => { this.onTurn(); }, chokesOn: (id) => this.poison.has(id) },
      this.prng.fork(),
    );
  }

  /** Stores first, then the gateway, until it takes mail. */
  static started(options: WorldOptions = {}): World {
    const world = new World(options);
    for (const store of world.stores) store.start();
    world.gateway.start();
    world.until(() => world.gateway.core?.accepting === true);
    return world;
  }

  // ---- who is who ----

  store(letter: 'a' | 'b' | 'c' | 'd'): StoreNode {
    const found = this.stores.find((store) => store.id === `store-${letter}`);
    assert.ok(found !== undefined, `store ${letter} is part of this world`);
    return found;
  }

  route(name: string): Route {
    const route = this.router.route(`${name}.example`, 'mail', '', OWN_ORIGIN);
    assert.ok(route !== undefined);
    return route;
  }

  private routes(): RouteOptions[] {
    return [...this.queueOptions, { name: 'senders' }].map((queue: QueueOptions) => ({
      domains: [`${queue.name}.example`], name: queue.name, nextHop: { protocol: 'smtp', host: this.hosts.get(queue.name) ?? queue.name, port: 25, ...(queue.isByMx === true ? { isByMx: true } : {}) },
      ordering: queue.ordering ?? 'fifo', concurrency: queue.concurrency ?? 4, lengthMax: queue.lengthMax ?? 1_000_000,
      ...(queue.perDomain === true ? { perDomain: true } : {}),
    }));
  }

  /** The configuration is read again: the route of that name leads to another host. */
  lead(name: string, host: string): void {
    this.hosts.set(name, host);
    this.table.renew(this.routes());
    this.gateway.core?.renew({ ...this.coreOptions, largestBytes: 0 });
  }

  /** The partition of the gateway's (youngest) queue of this name. */
  mirror(name: string): Partition {
    const registry = this.gateway.core?.registry;
    const mirror = registry?.byName(name).at(-1)?.partition ?? registry?.partitions.find((one) => hasQueue(one, name));
    assert.ok(mirror !== undefined, `the gateway has a queue ${name}`);
    return mirror;
  }

  // ---- clients ----

  /** Submits one message to the named queues; its outcome shows in the letter. */
  submit(names: readonly string[], options: LetterOptions = {}): Letter {
    const core = this.gateway.core;
    assert.ok(core !== undefined, 'mail is submitted to a living gateway');
    const messageId = core.nextMessageId();
    const groups = new Map<string, Recipient[]>();
    const submitted: RecipientGroup[] = [];
    for (const name of names) {
      const recipients = Array.from({ length: options.recipients ?? 1 }, (_, i) => ({ address: `${String(i)}@${options.hasDomains === true ? `d${String(i)}.` : ''}${name}.example`, notify: options.notify ?? 0, orcpt: '' }));
      groups.set(name, recipients);
      submitted.push({ route: this.route(name), recipients });
    }
    const letter = new Letter(messageId, options.reversePath ?? 'alice@senders.example', groups, options.bytes ?? 200, this.letters.moment());
    this.letters.byId.set(messageId, letter);
    const { content } = letter;
    const half = content.length >> 1;
    core.submit({
      messageId, reversePath: letter.reversePath, groups: submitted, chunks: [content.slice(0, half), content.slice(half)], contentBytes: content.length,
      flags: 0, ret: 0, envid: '', client: 'client', helo: 'client.example',
      settle: (outcome) => {
        noteQueues(core);
        this.settled(letter, outcome);
      },
    });
    noteQueues(core);
    return letter;
  }

  submitMany(count: number, names: readonly string[], options: LetterOptions = {}): Letter[] {
    return Array.from({ length: count }, () => this.submit(names, options));
  }

  // ---- time ----

  run(ms: number): void {
    this.scheduler.runUntil(this.scheduler.nowMs + ms);
  }

  /** Runs until the condition holds; fails when it does not within the bound. */
  until(condition: () => boolean, boundMs = SETTLE_BOUND_MS, what = 'the awaited state'): void {
    const end = this.scheduler.nowMs + boundMs;
    while (!condition()) {
      assert.ok(this.scheduler.nowMs < end, `${what} did not come within ${String(boundMs)} ms; log:\n${this.lastLog()}`);
      assert.ok(this.scheduler.step());
    }
  }

  /** Everything is delivered or ended, no set change or refill is open, and all living stores are in sync. */
  untilQuiet(boundMs = SETTLE_BOUND_MS): void {
    this.until(() => this.isQuiet, boundMs, 'quiet');
    this.run(300);
    // A store may have come back within that.
    this.until(() => this.isQuiet, boundMs, 'quiet');
  }

  get isQuiet(): boolean {
    const core = this.gateway.core;
    if (core === undefined || core.holdings.expected() !== '' || core.holdings.isReading || core.reports.openCount > 0 || core.commitPoint.openCount > 0) return false;
    return core.registry.partitions.every((partition) => partition.length === 0 && partition.ackedNumber === partition.lastNumber) && this.inSync;
  }

  /** All partitions of the gateway are here, with all that they hold. */
  get isWhole(): boolean {
    const holdings = this.gateway.core?.holdings;
    return holdings?.openCount === 0 && !holdings.isReading;
  }

  /** All living copies are in step, and every store stands where the gateway does. */
  untilLevel(boundMs = SETTLE_BOUND_MS): void {
    this.until(() => this.inSync && (this.gateway.core?.registry.partitions ?? []).every((partition) => !partition.isDirty && partition.rows.every((row) => {
      const store = this.stores.find((node) => node.id === row.storeId)?.store;
      return store === undefined || store.partitions.find(partition.name)?.number === partition.lastNumber;
    })), boundMs, 'level mirrors');
  }

  /** Every copy on a living store is SYNC, and no change of a record is under way. */
  get inSync(): boolean {
    const core = this.gateway.core;
    if (core === undefined) return false;
    return core.registry.partitions.every((partition) => partition.set?.records.isSettled === true && partition.rows.every((row) => {
      const alive = this.stores.some((store) => store.id === row.storeId && store.isAlive);
      return !alive || row.shown === 'SYNC';
    }));
  }

  // ---- faults ----

  /** Until the key of its process stands in the register, and it has begun. */
  startGateway(): void {
    this.gateway.start();
    this.until(() => this.gateway.core !== undefined, SETTLE_BOUND_MS, 'the process');
  }

  cut(store: StoreNode): void {
    this.network.cut(GATEWAY, store.id);
  }

  heal(store: StoreNode): void {
    this.network.heal(GATEWAY, store.id);
  }

  holdAnswers(store: StoreNode, held: boolean): void {
    this.network.holdAnswers(GATEWAY, store.id, held);
  }

  holdRequests(store: StoreNode, held: boolean): void {
    this.network.holdRequests(GATEWAY, store.id, held);
  }

  slow(store: StoreNode, bytesPerMs: number): void {
    this.network.slow(GATEWAY, store.id, bytesPerMs);
  }

  // ---- looking ----

  /** Asserts that all living stores hold the same of each partition, in step with the gateway. */
  assertSameContent(): void {
    const core = this.gateway.core;
    assert.ok(core !== undefined);
    for (const partition of core.registry.partitions) {
      const seen: string[][] = [];
      for (const { id, store } of this.stores) {
        if (store === undefined || !partition.rows.some((row) => row.storeId === id)) continue;
        const copy = store.partitions.find(partition.name);
        assert.ok(copy !== undefined, `${id} has partition ${partition.name}`);
        assert.equal(copy.number, partition.lastNumber, `${id} is at the gateway's number`);
        assert.deepEqual([copy.digestA, copy.digestB], [partition.digest.a, partition.digest.b], `${id} is at the gateway's digest`);
        assert.equal(copy.count, partition.length, `${id} has as many entries of ${partition.name}`);
        seen.push(contentOf(store, copy));
      }
      for (const content of seen) assert.deepEqual(content, seen[0], `the copies of ${partition.name} hold the same`);
    }
  }

  lastLog(lines = 25): string {
    return this.log.lines.slice(-lines).map((line) => `${line.atMs.toFixed(1)} ${line.event}: ${line.text} ${JSON.stringify(line.fields)}`).join('\n');
  }

  private settled(letter: Letter, outcome: SubmissionOutcome): void {
    assert.equal(letter.outcome, 0, 'a submission is settled once');
    letter.outcome = outcome;
    letter.settledAt = this.letters.moment();
    this.scheduler.trace(`settled ${String(letter.id)} ${String(outcome)}`);
    if (outcome === COMMITTED) checkCommitted(letter, this.stores, (partition) => this.membersOf(partition));
  }

  /** As the register has them; behind a rollback as the holder has them, who writes them there again. */
  private membersOf(partition: string): readonly RecordedMember[] {
    const known = this.gateway.core?.mirrors;
    const held = [...(known?.all() ?? [])].find(({ name }) => name === partition)?.set?.records.known;
    const record = this.register.recordOf(partition);
    const isRolledBack = held !== undefined && held.epoch > (record?.epoch ?? 0);
    return (isRolledBack ? held : record)?.members ?? [];
  }

  private mailEvents(): MailEvents {
    const ended = (_queue: MailQueue, envelope: Envelope, recipient: number, reason: string): void => {
      this.letters.byId.get(envelope.messageId)?.ended.set(envelope.recipients[recipient]?.address ?? '', reason);
    };
    const outcome: MailEvents['outcome'] = (event, _queue, envelope, recipient, _result, _bytes, _relay, _attempt, _setupMs, _transmitMs, _reversePath, last) => {
      if (event === 'expired') this.told.push(`expired ${envelope.recipients[recipient]?.address ?? ''}: ${last}`);
      if (event === 'expired' || event === 'bounced') this.letters.byId.get(envelope.messageId)?.rejected.add(envelope.recipients[recipient]?.address ?? '');
    };
    const waits: MailEvents['waits'] = (_queue, envelope, recipient, _bytes, { relay, why }) => {
      this.told.push(`waits ${envelope.recipients[recipient]?.address ?? ''}: ${relay} ${why.enhanced} ${why.text}`);
    };
    return { outcome, waits, ended, unreachable: () => {}, dotUnanswered: () => {}, reported: () => {}, committed: () => {}, refused: () => {} };
  }
}
