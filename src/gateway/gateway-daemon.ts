/**
 * A gateway process: the core with real sockets, time and logs around it, and its life from start to stop.
 *
 *   start    the process is one of its own (process-identity.ts) ─► links connect ─► queues come back ─►
 *            SMTP port opens when mail can be committed
 *   run      one tick for all deadlines; what a turn changed goes out at its end
 *   stop     port closed ─► DATA in progress answered ─► deliveries finished or abandoned at a bound ─►
 *            last changes flushed ─► links closed; the rest of the mail stays at the mirrors ─► the key in the
 *            register is deleted
 */
import { SenderRewriting } from '../base/sender-rewriting.js';
import type { Hmac } from '../base/sender-rewriting.js';
import { utf8Bytes } from '../base/utf8.js';
import { MEMORY_SHARE_OF_HOST, hostMemoryBytes } from '../platform/node/memory.js';
import type { MetricsExport } from '../observability/gateway-metrics.js';
import { exportGatewayMetrics } from '../observability/gateway-metrics.js';
import { SystemClock, startTicker } from '../platform/node/clock.js';
import type { Ticker } from '../platform/node/clock.js';
import { crc32 } from '../platform/node/checksum.js';
import { listenError } from '../platform/node/free-port.js';
import { touchPages } from '../platform/node/fresh-pages.js';
import { toAscii } from '../platform/node/idna.js';
import { MessagePacker } from '../platform/node/packer.js';
import { SystemSecrets } from '../platform/node/secrets.js';
import { TlsTransport } from '../platform/node/tls-transport.js';
import { NodeTransport } from '../platform/node/transport.js';
import type { Transport } from '../platform/transport.js';
import type { RegisterChoice } from '../register/running/open-register.js';
import { gaugeSource } from './admin/gauges.js';
import type { RunningAdmin } from './admin/server.js';
import { startAdmin } from './admin/server.js';
import { ExportView } from './export-view.js';
import { composeReport } from './bounce/report-composer.js';
import { GatewayCore } from './core.js';
import { DrainedStores } from './drained-stores.js';
import type { DrainedSince } from './local/drained-file.js';
import { readDrained, writeDrained } from './local/drained-file.js';
import { CoreView } from './core-view.js';
import type { GatewayOptions, GatewayPorts, RunningGateway } from './gateway-options.js';
import { startInbound } from './inbound/listener.js';
import type { RunningInbound } from './inbound/listener.js';
import { Blocklists } from './inbound/blocklists.js';
import { makeHooks } from './inbound/hooks.js';
import type { HookChain } from './inbound/hooks/hook-chain.js';
import { DEEDS, PARTIES, RateLimits } from './inbound/limits/rate-limits.js';
import type { RateReport } from './inbound/limits/rate-limits.js';
import { NetworkList } from './inbound/policy/network-list.js';
import type { HttpServicePorts } from './inbound/http-service.js';
import { RecipientsByHttp } from './inbound/recipients-by-http.js';
import { followTable } from './inbound/recipients-file.js';
import type { RunningTable } from './inbound/recipients-file.js';
import { reportWays } from './inbound/recipients/report-ways.js';
import type { ReportWayOptions } from './inbound/recipients/report-ways.js';
import { askUsers, followUsers } from './inbound/users-file.js';
import type { RunningUsers } from './inbound/users-file.js';
import { LocalNotes } from './local-notes.js';
import { InboundRecord, MailRecord } from './mail-record.js';
import type { MemberView } from './admin/view.js';
import { isLoopback, reachableAddress } from '../platform/node/own-host.js';
import { KnownStores } from './ownership/known-stores.js';
import type { KnownStore } from './ownership/known-stores.js';
import { LINK_DEFAULTS } from './mirror/link/link-options.js';
import { StoreLink } from './mirror/link/store-link.js';
import type { StoreLinkEvents } from './mirror/link/store-link.js';
import type { Partition } from './mirror/partition.js';
import { Dispatcher } from './outbound/dispatcher.js';
import { RetrySchedule } from './outbound/pure/retry-schedule.js';
import type { OrphanOptions } from './ownership/holdings.js';
import { ProcessIdentity } from './process-identity.js';
import { Retirements } from './retirements.js';
import { createRouter } from './queue/router.js';

const TICK_MS = 25;
/** Above the accept mark: a reserve for recovery and refills; the last 3% only for what ends mail. */
const RESERVE_SHARE = 0.97;
const MIRROR_RETRY_MS = 1000;
const REFILL_FRAME_BYTES = 256 * 1024;
const FRAME_TARGET_BYTES = 1024 * 1024;
const SEGMENT_BYTES = 1024 * 1024;
const PORT_RETRY_MS = 1000;
/** Replies of a next hop are short, and there may be a thousand connections. */
const REPLY_BUFFER_BYTES = 8 * 1024;
/** Blocks of a recovery come through this; two connections a store. */
const LINK_BUFFER_BYTES = 256 * 1024;
/** Of the memory limit: large contents on their way out. */
const LARGE_SHARE = 1 / 8;
/** How often workers tell one another what clients did. */
const RATES_TOLD_MS = 1000;
/** A gateway of a group without a key for so long is gone from the configurations, as far as can be told. */
const ABSENT_MS = 600_000;
/** Other processes of this machine, started with this one, have their keys by then. */
const SIBLINGS_START_MS = 15_000;
/** What the last changes may take to reach the stores at a stop. */
const LAST_FLUSH_MS = 2000;

/**
 * Rejects when a port can't be had, or another process of this gateway lives; waits for the register. Its
 * incarnation will be above `told`.
 */
export async function startGateway(options: GatewayOptions, ports: GatewayPorts, told = 0): Promise<RunningGateway> {
  const started: { gateway?: Gateway } = {};
  const identity = await ProcessIdentity.begin({ ...options, told }, {
    log: ports.log, crc32, onTaken: (why) => { started.gateway?.onTaken(why); },
  });
  try {
    const gateway = new Gateway(options, ports, identity);
    started.gateway = gateway;
    await gateway.start();
    return gateway;
  } catch (error) {
    await identity.end();
    throw error;
  }
}

interface LinkSource {
  readonly inClear: Transport;
  readonly secrets: SystemSecrets;
  readonly packer: MessagePacker;
  readonly incarnationNonce: Uint8Array;
}

class Gateway implements RunningGateway {
  readonly incarnation: number;
  private readonly options: GatewayOptions;
  private readonly ports: GatewayPorts;
  private readonly identity: ProcessIdentity;
  private readonly clock = new SystemClock();
  private readonly core: GatewayCore;
  private readonly links: StoreLink[] = [];
  private readonly knownStores: KnownStores;
  /** Where links come from (makeLink). */
  private readonly linkSource: LinkSource;
  private readonly inbounds: RunningInbound[] = [];
  private readonly users: RunningUsers | undefined;
  private readonly recipients: RunningTable | undefined;
  private readonly rewriting: SenderRewriting | undefined;
  private readonly rates: RateLimits | undefined;
  private readonly hooks: HookChain | undefined;
  private ratesToldMs = 0;
  private readonly dispatcher: Dispatcher;
  private readonly inboundRecord: InboundRecord;
  private readonly view: CoreView;
  private readonly record: MailRecord;
  private readonly drained: DrainedStores;
  private readonly notes: LocalNotes;
  private metricsExport: MetricsExport | undefined;
  private admin: RunningAdmin | undefined;
  private ticker: Ticker | undefined;
  private turnAsked = false;
  private readonly runEndOfTurn = (): void => {
    this.turnAsked = false;
    this.core.endOfTurn();
  };
  private stopping = false;
  private fenced = false;
  /** It was ready to take mail once. */
  private hasServed = false;
  private portsOpen = false;
  private portsBusy = false;
  private portRetryMs = 0;

  constructor(options: GatewayOptions, ports: GatewayPorts, identity: ProcessIdentity) {
    this.options = options;
    this.ports = ports;
    this.identity = identity;
    this.incarnation = identity.incarnation.incarnation;
    this.record = new MailRecord({ clock: this.clock, log: ports.log, mailLog: ports.mailLog, metrics: ports.metrics, mirrorsOf: (route) => this.core.registry.find(route)?.partition });
    this.inboundRecord = new InboundRecord(ports.metrics);
    const { stores: configured, learnStores } = options;
    const learnable = learnStores === undefined ? [] : learnStores.only;
    this.knownStores = new KnownStores({ configured, learnable }, {
      clock: this.clock,
      log: ports.log,
      barred: (host) => this.barred(host),
      link: (store) => { this.makeLink(store); },
      move: ({ id, pathA, pathB }) => { this.linkTo(id)?.moveTo(pathA, pathB); },
    });
    this.rewriting = rewritingOf(options, this.clock);
    const router = createRouter(options.routes);
    this.recipients = recipientsOf(options, { clock: this.clock, log: ports.log });
    this.core = this.makeCore(router);
    this.notes = new LocalNotes(options.stateDir, { crashes: this.core.crashes, inHand: this.core.inHand, incarnation: this.incarnation });
    const { stateDir } = options;
    const file = stateDir === undefined ? undefined : {
      read: () => readDrained(stateDir),
      write: (drained: DrainedSince) => writeDrained(stateDir, drained),
    };
    const { mirrors, moves, registry } = this.core;
    const partitionsOf = (name: string): readonly Partition[] => registry.partitionsOf(name);
    this.drained = new DrainedStores({ clock: this.clock, log: ports.log, mirrors, moves, file, partitionsOf });
    const transport = new NodeTransport({ readBufferBytes: REPLY_BUFFER_BYTES });
    const toNextHops: Transport = {
      connect: (host, port, handlers) => {
        ports.metrics.connectionsOpened += 1;
        return transport.connect(host, port, handlers);
      },
    };
    this.dispatcher = new Dispatcher({ ...options.outbound, largeBytesMax: Math.min(options.outbound.largeBytesMax, memoryLimitOf(options) * LARGE_SHARE) }, { source: this.core, transport: toNextHops, clock: this.clock, random: ports.random, log: ports.log, mayDot: (delivery) => !this.fenced && this.core.mayDeliver(delivery) });
    this.core.setDeliverySink(this.dispatcher);
    this.linkSource = {
      inClear: new NodeTransport({ readBufferBytes: LINK_BUFFER_BYTES }),
      secrets: new SystemSecrets(),
      packer: new MessagePacker(),
      incarnationNonce: new SystemSecrets().randomBytes(8),
    };
    this.users = usersOf(options, { clock: this.clock, log: ports.log });
    this.rates = ratesOf(options);
    this.hooks = makeHooks(options.hooks, options.hostName, { clock: this.clock, log: ports.log, metrics: ports.metrics, memory: this.core });
    this.startListeners(router);
    this.view = new CoreView(
      { gatewayId: options.id, host: options.host, incarnation: this.incarnation, version: options.version, insecure: options.insecure, replicas: options.replicas, hostOf: (store) => this.knownStores.find(store)?.host ?? '', others: () => this.others(), unreached: () => this.knownStores.unreached() },
      { clock: this.clock, log: ports.log, core: this.core, links: this.links, metrics: ports.metrics, pid: process.pid, drainedSinceWallMs: (store) => this.drained.sinceWallMs(store), adminAddress: () => reachableAddress(options.admin.host, this.adminPort), isDraining: () => this.stopping, isListening: () => this.portsOpen || this.inbounds.length === 0, connectionsIn: () => this.inboundRecord.connections, connectionsOut: () => this.dispatcher.nextHops().reduce((sum, hop) => sum + hop.connections, 0), dotsInFlight: () => this.dispatcher.count },
    );
  }

  get smtpPorts(): readonly number[] {
    return this.inbounds.map((inbound) => inbound.port);
  }

  get adminPort(): number {
    return this.admin?.port ?? this.options.admin.port;
  }

  async start(): Promise<void> {
    // They are opened only when mail can be committed; that another process has one should be known now.
    for (const { host, port } of this.options.inbound) {
      const error = await listenError(host, port);
      if (error !== undefined) throw error;
    }
    const source = gaugeSource({
      view: this.view, nowMs: () => this.clock.nowMs(), wallMs: () => this.clock.wallMs(),
      logLinesDropped: () => this.ports.logLinesDropped(),
    });
    this.metricsExport = exportGatewayMetrics(this.ports.metrics, source);
    this.admin = await startAdmin(this.options.admin, { view: this.view, registry: this.metricsExport.registry, wallMs: () => this.clock.wallMs(), log: this.ports.log, rescue: this.core.holdings, holds: this.core.holds, stores: this.drained, retire: this.retirements(), rebalance: { gatewayId: this.options.id, control: this.core.mirrors.rebalance }, exports: new ExportView({ crc32, entries: this.core.entries, queuesOf: (name) => this.core.registry.byName(name) }) });
    this.ports.log.info('start', 'the gateway starts', { gateway: this.options.id, incarnation: this.incarnation, stores: this.options.stores.map((store) => store.id), memory_limit_bytes: this.core.memory.limitBytes });
    const { learnStores } = this.options;
    this.knownStores.start(learnStores === undefined ? undefined : this.identity.opened.register);
    this.dispatcher.start();
    this.ticker = startTicker(this.clock, TICK_MS, (nowMs) => { this.tick(nowMs); });
  }

  async stop(): Promise<void> {
    if (this.stopping) return;
    this.stopping = true;
    this.ports.log.info('stop', 'the gateway stops: no new mail; deliveries in flight are finished', { in_flight: this.dispatcher.count, bound_ms: this.options.stopTimeoutMs });
    const inbound = Promise.all(this.inbounds.map((one) => one.close(this.options.stopTimeoutMs)));
    await Promise.all([inbound, this.dispatcher.stop(this.options.stopTimeoutMs)]);
    this.users?.close();
    this.recipients?.close();
    this.hooks?.close();
    this.core.drain();
    this.core.endOfTurn();
    await this.lastChangesOut();
    this.ticker?.stop();
    this.knownStores.close();
    for (const link of this.links) link.close();
    this.metricsExport?.close();
    await this.admin?.close();
    await this.identity.end();
    this.ports.log.info('stop', 'the gateway has stopped; what is queued stays at the stores', { queued: this.view.status().queuedMessages });
    this.ports.mailLog.flush();
  }

  /** Another process of this gateway has its key in the register: nothing of this one goes on. */
  onTaken(why: string): void {
    if (this.fenced || this.stopping) return;
    this.fenced = true;
    this.ports.metrics.fenced += 1;
    this.ports.log.error('fenced', 'another process of this gateway is in the register; this one stops at once', { gateway: this.options.id, why, incarnation: this.incarnation });
    this.ports.onFenced(0);
  }

  onCrash(): boolean {
    return this.notes.onCrash();
  }

  private retirements(): Retirements {
    const { log } = this.ports;
    const { bridge: register } = this.identity;
    const partitions = (): readonly Partition[] => this.core.registry.partitions;
    return new Retirements({ isAlone: this.options.register.kind === 'file' }, { clock: this.clock, log, register, partitions });
  }

  private startListeners(router: ReturnType<typeof createRouter>): void {
    const { options, clock, rewriting, rates, hooks, record, inboundRecord, ports: { log } } = this;
    for (const inbound of options.inbound) {
      this.inbounds.push(startInbound(inbound, {
        reception: this.core, router, clock, authenticator: this.users?.authenticator, recipients: this.recipients?.table,
        rewriting, rates, hooks, blocklists: new Blocklists(options, { clock, log }), log, mailLog: record, metrics: inboundRecord,
      }));
    }
  }

  private makeCore(router: ReturnType<typeof createRouter>): GatewayCore {
    const { options, ports } = this;
    const memoryLimitBytes = memoryLimitOf(options);
    const retry = new RetrySchedule(options.retry, { random: ports.random });
    return new GatewayCore(
      {
        gatewayId: options.id,
        incarnation: this.incarnation,
        partitions: options.partitions,
        queuesMax: options.queuesMax,
        commitTimeoutMs: options.commitTimeoutMs,
        longestRetryMs: retry.longestMs,
        delayReports: options.delayReports,
        firstWaitMs: options.failoverTimeoutMs,
        segmentBytes: SEGMENT_BYTES,
        group: options.group,
        rescue: options.rescue,
        orphans: orphanOptions(options.register),
        leaseMs: options.leaseMs,
        mirrors: {
          replicas: options.replicas, minReplicas: options.replicasMin, retryMs: MIRROR_RETRY_MS,
          refillFrameBytes: REFILL_FRAME_BYTES, frameTargetBytes: FRAME_TARGET_BYTES,
          replaceAfterMs: options.replaceAfterMs, rebalanceBytesPerSecond: options.rebalanceBytesPerSecond,
          placement: {
            gatewayHost: options.oneHost ? undefined : options.host,
            places: { get: (store) => this.knownStores.find(store) },
          },
          ringBytes: options.ringBytes,
        },
        acceptance: { lifetimeMs: options.retry.lifetimeMs, bounceLifetimeMs: options.retry.bounceLifetimeMs, nextHopShare: options.nextHopShare },
        memory: { limitBytes: memoryLimitBytes, acceptShare: options.memoryAcceptShare, reserveShare: RESERVE_SHARE },
        reading: { blockEntries: options.blockMessages, blockBytes: options.blockBytes, largestBytes: Math.max(...options.inbound.map(({ messageBytesMax }) => messageBytesMax)) },
      },
      {
        clock: this.clock,
        crc32,
        packer: new MessagePacker(),
        touchPages,
        log: ports.log,
        router,
        reportWay: reportWays(reportOptions(options), { router, toAscii, recipients: this.recipients?.table }),
        events: this.record,
        counters: ports.metrics,
        heldElsewhereBytes: () => this.dispatcher.largeBytes,
        requestEndOfTurn: () => { this.requestEndOfTurn(); },
        retryDelayMs: (attempts) => retry.delayMs(attempts),
        drawOrdinal: () => this.identity.ordinals.take(),
        ownership: this.identity.bridge,
        areStoresKnown: () => this.knownStores.isListRead,
        random: ports.random,
        rewriting: this.rewriting,
        compose: (input) => composeReport(options.hostName, input, this.clock.wallMs()),
      },
    );
  }

  private makeLink(store: KnownStore): void {
    const { options, ports, core } = this;
    const { inClear, secrets, packer, incarnationNonce } = this.linkSource;
    const { linkTls: files } = options;
    const transport = files === undefined
      ? inClear
      : new TlsTransport({ files, peerName: store.id, readBufferBytes: LINK_BUFFER_BYTES });
    const link = new StoreLink(
      {
        storeId: store.id, gatewayId: options.id, incarnation: this.incarnation, incarnationNonce,
        secret: options.secret, pathA: store.pathA,
        ...(store.pathB === undefined ? {} : { pathB: store.pathB }),
        ...LINK_DEFAULTS, heartbeatMs: options.heartbeatMs, failoverTimeoutMs: options.failoverTimeoutMs,
        windowBytes: options.windowBytes, frameBytesMax: options.frameBytesMax,
      },
      {
        clock: this.clock, frameWallMs: () => core.frame.wallMs(), transport, crc32, packer, secrets,
        random: ports.random, log: ports.log,
      },
      this.linkEvents(),
    );
    this.links.push(link);
    core.addStore(link);
    link.start();
  }

  private linkTo(id: string): StoreLink | undefined {
    return this.links.find(({ storeId }) => storeId === id);
  }

  private linkEvents(): StoreLinkEvents {
    const { ports, core, knownStores } = this;
    return {
      onUp: (up) => {
        knownStores.onUp(up.storeId);
        this.compareLease(up);
        core.onLinkUp(up);
      },
      onSwitched: (switched) => {
        ports.metrics.failedOver(switched.storeId);
        core.onLinkSwitched(switched);
      },
      onStopping: (from) => { core.moves.onStopping(from); },
      onDown: (down) => {
        knownStores.onDown(down.storeId);
        core.onLinkDown(down);
      },
      onFenceNotices: (from, bootId, notices) => { core.onFenceNotices(from, bootId, notices); },
      onAcknowledged: (from, handle, number) => { core.mirrors.onAcknowledged(from, handle, number); },
      onAckedThrough: (from, sequence) => { core.onLinkAckedThrough(from, sequence); },
      onRefusal: (from, refusal) => { core.onLinkRefusal(from, refusal); },
      onReply: (from, reply) => { core.onLinkReply(from, reply); },
      onWritable: (from) => { core.mirrors.onWritable(from); },
      onFenced: (from, text, highest) => { this.onFenced(from.storeId, text, highest); },
    };
  }

  /** As config/checks.ts for stores of the configuration; of what the register says nobody has checked it. */
  private barred(host: string): string {
    const { linkTls, insecure } = this.options;
    if (linkTls !== undefined || insecure || isLoopback(host)) return '';
    const remedy = 'set mirror.tls, or insecure: true on a network that you trust';
    return `a link to ${host} would go in clear: ${remedy}`;
  }

  /** Stores tell the admin addresses of other gateways. */
  private others(): readonly Omit<MemberView, 'self'>[] {
    const { id, group } = this.options;
    const fellows = group.filter((other) => other !== id);
    const stores = [...this.knownStores.all()];
    return [
      ...fellows.map((other) => ({ id: other, kind: 'gateway' as const, admin: undefined })),
      ...stores.map((store) => ({ id: store.id, kind: 'store' as const, admin: store.admin })),
    ];
  }

  /** The store's value is what holds; configurations that differ are an accident. */
  private compareLease(link: StoreLink): void {
    if (link.leaseMs >= this.options.leaseMs) return;
    this.ports.log.warn('link', 'the store grants shorter leases than mirror.lease says: compare both configurations', { store: link.storeId, lease_ms: link.leaseMs, configured_ms: this.options.leaseMs });
  }

  private requestEndOfTurn(): void {
    if (this.turnAsked) return;
    this.turnAsked = true;
    setImmediate(this.runEndOfTurn);
  }

  private tick(nowMs: number): void {
    this.identity.tick(nowMs);
    for (const link of this.links) link.tick(nowMs);
    this.knownStores.tick(nowMs);
    this.core.tick(nowMs);
    this.drained.tick();
    this.notes.tick(nowMs);
    this.view.watch(nowMs);
    this.tellRates(nowMs);
    this.watchPorts(nowMs);
  }

  setTicketKeys(keys: Buffer): void {
    for (const inbound of this.inbounds) inbound.setTicketKeys(keys);
  }

  onRateReport(report: RateReport): void {
    this.rates?.onReport(report, this.clock.nowMs());
  }

  /** Once a second, what clients did here goes to the other workers. */
  private tellRates(nowMs: number): void {
    if (this.rates === undefined || nowMs - this.ratesToldMs < RATES_TOLD_MS) return;
    this.ratesToldMs = nowMs;
    const report = this.rates.takeReport();
    if (report !== undefined) this.ports.tellWorkers?.(report);
  }

  /** The SMTP port is open exactly while mail can be committed (G6), so that a load balancer moves on. */
  private watchPorts(nowMs: number): void {
    this.hasServed ||= this.core.accepting;
    const wanted = this.core.accepting && !this.stopping;
    if (this.inbounds.length === 0 || wanted === this.portsOpen || this.portsBusy || nowMs < this.portRetryMs) return;
    if (!wanted) {
      for (const inbound of this.inbounds) inbound.closePort();
      this.portsOpen = false;
      this.ports.log.warn('smtp', 'the SMTP port is closed until mail can be committed again', { why: this.view.status().notReadyReason });
      return;
    }
    this.portsBusy = true;
    Promise.all(this.inbounds.map((inbound) => inbound.openPort())).then(
      () => {
        this.portsBusy = false;
        this.portsOpen = true;
        this.ports.log.info('smtp', 'the SMTP port is open', { ports: [...this.smtpPorts] });
      },
      (error: unknown) => {
        this.portsBusy = false;
        this.portRetryMs = this.clock.nowMs() + PORT_RETRY_MS;
        this.ports.log.error('smtp', 'the SMTP port can not be opened; trying again', { why: error instanceof Error ? error.message : String(error) });
      },
    );
  }

  private onFenced(storeId: string, text: string, highest = 0): void {
    if (this.fenced) return;
    this.fenced = true;
    // Before this process served anything it may be the register that was rolled back; a store that was
    // restarted too has taken us by then.
    const told = this.hasServed ? 0 : highest;
    this.ports.metrics.fenced += 1;
    if (told === 0) this.ports.log.error('fenced', 'another process with the id of this gateway owns its queues now; this one stops at once. If that is no restart, give one of the two another id, or do not start it', { gateway: this.options.id, store: storeId, why: text, incarnation: this.incarnation });
    this.ports.onFenced(told);
  }

  /** Deletions of the last deliveries should reach the stores: else they are repeated after the restart. */
  private lastChangesOut(): Promise<void> {
    const end = this.clock.nowMs() + LAST_FLUSH_MS;
    return new Promise((resolve) => {
      const look = (): void => {
        const open = this.links.some((link) => link.isUp && link.unackedRequests > 0) || this.core.mirrors.backlogBytes > 0;
        if (!open || this.clock.nowMs() >= end) resolve();
        else setTimeout(look, TICK_MS);
      };
      look();
    });
  }
}

function memoryLimitOf({ memoryLimitBytes }: GatewayOptions): number {
  return memoryLimitBytes ?? Math.floor(hostMemoryBytes() * MEMORY_SHARE_OF_HOST);
}

function usersOf({ usersFile, usersByHttp, secret }: GatewayOptions, ports: Pick<GatewayPorts, 'log'> & { readonly clock: SystemClock }): RunningUsers | undefined {
  if (usersByHttp !== undefined) return askUsers(usersByHttp, ports);
  return usersFile === undefined ? undefined : followUsers(usersFile, secret, ports);
}

function recipientsOf({ recipientsFile, recipientsByHttp }: GatewayOptions, ports: HttpServicePorts): RunningTable | undefined {
  if (recipientsByHttp !== undefined) return { table: new RecipientsByHttp(recipientsByHttp, ports), close: () => undefined };
  return recipientsFile === undefined ? undefined : followTable(recipientsFile, ports.log);
}

/** All listeners have the same domains; a rescue has none. */
function reportOptions({ hostName, inbound: [listener], srs }: GatewayOptions): ReportWayOptions {
  const { relayDomains = [], postmaster = '' } = listener ?? {};
  return { hostName, relayDomains, postmaster, rewritingDomain: srs?.domain ?? '' };
}

function rewritingOf({ srs }: GatewayOptions, clock: SystemClock): SenderRewriting | undefined {
  if (srs === undefined) return undefined;
  const secrets = new SystemSecrets();
  const hmac: Hmac = (key, text) => secrets.hmacSha256(key, text);
  return new SenderRewriting(srs.domain, srs.secrets.map((secret) => utf8Bytes(secret)), hmac, () => clock.wallMs());
}

/** Undefined where nothing is limited: then nothing is counted either. */
function ratesOf({ rates, rateExempt }: GatewayOptions): RateLimits | undefined {
  const isLimited = PARTIES.some((party) => DEEDS.some((deed) => rates[party][deed] > 0));
  return isLimited ? new RateLimits(rates, new NetworkList(rateExempt, 'networks without limits')) : undefined;
}

/** The process that keeps the register's file alone knows all that have a part in it. */
function orphanOptions({ kind }: RegisterChoice): OrphanOptions {
  if (kind === 'file') return { graceMs: 0, areOurs: true };
  return kind === 'socket' ? { graceMs: SIBLINGS_START_MS, areOurs: true } : { graceMs: ABSENT_MS, areOurs: false };
}
