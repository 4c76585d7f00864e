/**
 * A gateway process: the core with real sockets, time and logs around it, and its life from start to stop.
 *
 *   start    the process is one of its own (process-identity.ts) ─► links connect ─► queues come back ─►
 *            SMTP port opens when mail can be committed
 *   run      one tick for all deadlines; what a turn changed goes out at its end
 *   stop     port closed ─► DATA in progress answered ─► deliveries finished or abandoned at a bound ─►
 *            last changes flushed ─► links closed; the rest of the mail stays at the mirrors ─► the key in
 *            the register is deleted
 */
import { errorText } from '../../base/error-text.js';
import type { MetricsExport } from '../../observability/gateway-metrics.js';
import { exportGatewayMetrics } from '../../observability/gateway-metrics.js';
import { SystemClock, startTicker } from '../../platform/node/clock.js';
import type { Ticker } from '../../platform/node/clock.js';
import { crc32 } from '../../platform/node/checksum.js';
import { touchPages } from '../../platform/node/fresh-pages.js';
import { toAscii } from '../../platform/node/idna.js';
import { MessagePacker } from '../../platform/node/packer.js';
import { DnsClient } from '../../platform/node/dns/dns-client.js';
import { SystemSecrets } from '../../platform/node/secrets.js';
import { ClientTransport } from '../../platform/node/client-transport.js';
import { HostLookups, lookUpHost } from '../../platform/node/host-lookup.js';
import { inSteps } from '../../platform/node/in-steps.js';
import { KeptLookups } from '../../platform/node/kept-lookup.js';
import { HttpsClient } from '../../platform/node/https-client.js';
import { PasswordFiles } from '../../platform/node/password-files.js';
import { TlsTransport } from '../../platform/node/tls-transport.js';
import { NodeTransport } from '../../platform/node/transport.js';
import type { MailTransport, Transport } from '../../platform/transport.js';
import type { RegisterChoice } from '../../register/running/open-register.js';
import { gaugeSource } from '../admin/gauges.js';
import type { AdminPorts } from '../admin/server.js';
import type { RunningAdmin } from '../../platform/node/admin-server.js';
import { startWaitingAdmin } from '../admin/waiting-server.js';
import { startAdmin } from '../admin/server.js';
import { ExportView } from '../admin/export-view.js';
import { composeReport } from '../bounce/report-composer.js';
import { GatewayCore } from './core.js';
import { DrainedStores } from '../admin/drained-stores.js';
import type { DrainedSince } from '../local/drained-file.js';
import { localRulesFile } from '../local/local-rules-file.js';
import { readDrained, writeDrained } from '../local/drained-file.js';
import { ConfigurationInForce } from '../../observability/configuration-in-force.js';
import { CountedHandlers } from './counted-handlers.js';
import { CoreView } from '../admin/core-view.js';
import { bindingLimits } from '../look/binding-limits.js';
import type { TracePorts } from '../admin/trace-api.js';
import { LogSearch } from '../look/node/log-search.js';
import type { LogPlace } from '../look/node/log-search.js';
import { SessionWatch } from '../look/session-watch.js';
import { walksOf } from '../look/walks.js';
import type {
  GatewayOptions, GatewayPorts, RunningGateway, WorkerReport,
} from './gateway-options.js';
import { DkimKeys, KEY_WANTED } from '../dkim/node/dkim-keys.js';
import { DkimSigner } from '../dkim/node/dkim-signer.js';
import { Blocklists } from '../inbound/blocklists.js';
import type { Renewal } from '../inbound/listener.js';
import { reportWays } from '../inbound/recipients/report-ways.js';
import { publishedKey } from '../dkim/node/public-record.js';
import type { PublishedKey } from '../dkim/node/public-record.js';
import { Listeners } from './listeners.js';
import { LocalNotes } from '../local/local-notes.js';
import { LookupWatch } from './lookup-watch.js';
import { InboundRecord, MailRecord } from './mail-record.js';
import { addressText } from '../../base/address-text.js';
import type { MemberAnswer } from '../../admin-api/pages.js';
import { isLoopback, reachableAddress } from '../../platform/node/own-host.js';
import { KnownStores } from '../ownership/known-stores.js';
import type { KnownStore } from '../ownership/known-stores.js';
import { LINK_MARGINS } from '../mirror/link/link-options.js';
import type { LinkOptions, LinkPorts } from '../mirror/link/link-options.js';
import { StoreLink } from '../mirror/link/store-link.js';
import type { StoreLinkEvents } from '../mirror/link/store-link.js';
import type { Partition } from '../mirror/set/partition.js';
import { Dispatcher } from '../outbound/dispatcher.js';
import { MxLookup } from '../outbound/mx-lookup.js';
import { RunningSts } from '../outbound/sts/running-sts.js';
import { RunningTlsReports } from '../outbound/tls-reports/running-tls-reports.js';
import { NotFollowed } from './not-followed.js';
import { explained } from '../explain/explanation.js';
import type { ExplainOptions } from '../explain/explanation.js';
import { SenderThread } from '../explain/sender-thread.js';
import { outagesOf } from './outages.js';
import { OwnAddresses } from '../returned/node/own-addresses.js';
import { RetrySchedule } from '../outbound/pure/retry-schedule.js';
import type { KeptPartitions, OrphanOptions } from '../ownership/holdings.js';
import { ProcessIdentity } from '../local/process-identity.js';
import { ResolverWatch } from './resolver-watch.js';
import { Retirements } from '../admin/retirements.js';
import type { AcceptanceOptions } from '../queue/acceptance.js';
import { createRouter } from '../queue/router.js';
import type { RenewableRouter } from '../queue/router.js';
import { probeSecret } from './secret-probe.js';
import type { ReloadEffects, SecretOfStore } from '../../platform/reloads.js';
import { followingCount, whyNoSuccessor } from '../queue/successors.js';
import type { FindReportWay } from '../mail-types.js';
import { ReportThread } from '../returned/node/report-thread.js';
import { ReportLine } from '../returned/report-line.js';

const TICK_MS = 25;
/** Between two parts of a walk through all that is queued, which takes up to 2 ms each. */
const WALK_MS = 4;
/** Above the accept mark: a reserve for recovery and refills; the last 3% only for what ends mail. */
const RESERVE_SHARE = 0.97;
const MIRROR_RETRY_MS = 1000;
const REFILL_FRAME_BYTES = 256 * 1024;
const FRAME_TARGET_BYTES = 1024 * 1024;
const SEGMENT_BYTES = 1024 * 1024;
/** Replies of a next hop are short, and there may be a thousand connections. */
const REPLY_BUFFER_BYTES = 8 * 1024;
/** Blocks of a recovery come through this; two connections a store. */
const LINK_BUFFER_BYTES = 256 * 1024;
/** A gateway of a group without a key for so long is gone from the configurations, as far as can be told. */
const ABSENT_MS = 600_000;
/** Other processes of this machine, started with this one, have their keys by then. */
const SIBLINGS_START_MS = 15_000;
/** What the last changes may take to reach the stores at a stop. */
const LAST_FLUSH_MS = 2000;
const SHORTER_LEASES =
  'the store grants shorter leases than mirror.lease says: compare both configurations';
const KEY_TAKEN = 'another process of this gateway is in the register; this one stops at once';
const TAKEN_OVER =
  'another process with the id of this gateway owns its queues now; this one stops at once. '
  + 'If that is no restart, give one of the two another id, or do not start it';

/**
 * Rejects when a port can't be had, or another process of this gateway lives; waits for the register. Its
 * incarnation will be above `told`.
 */
export async function startGateway(
  options: GatewayOptions, ports: GatewayPorts, told = 0,
): Promise<RunningGateway> {
  const started: { gateway?: Gateway; waiting?: Promise<RunningAdmin | undefined> } = {};
  const identity = await ProcessIdentity.begin({ ...options, admin: options.admin.listen, told }, {
    log: ports.log, crc32,
    onTaken: (why) => { started.gateway?.onTaken(why); },
    onWaiting: (why) => {
      started.waiting = startWaitingAdmin(options.admin, why, ports.log).catch((error: unknown) => {
        ports.log.error('start', 'the admin port can not be had', { why: errorText(error) });
        return undefined;
      });
    },
  }).finally(async () => (await started.waiting)?.close());
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
  #options: GatewayOptions;
  readonly #ports: GatewayPorts;
  readonly #identity: ProcessIdentity;
  readonly #clock = new SystemClock();
  readonly #core: GatewayCore;
  readonly #links: StoreLink[] = [];
  readonly #knownStores: KnownStores;
  /** Where links come from (makeLink). */
  readonly #linkSource: LinkSource;
  readonly #router: RenewableRouter;
  readonly #listeners: Listeners;
  /** Both are other ones when the configuration was read anew. */
  #retry: RetrySchedule;
  #reportWay: FindReportWay;
  readonly #inForce: ConfigurationInForce;
  readonly #ownAddresses: OwnAddresses;
  /** Of what comes back. */
  readonly #reading: ReportLine;
  readonly #dkimKeys: DkimKeys;
  readonly #signer: DkimSigner;
  readonly #senderThread = new SenderThread();
  readonly #dns: DnsClient;
  /** Next hops by name, of deliveries and for `explain`. */
  readonly #lookups = new HostLookups(lookUpHost, this.#clock);
  readonly #keptLookups = new KeptLookups(lookUpHost);
  /** Of blocklists, which clients have asked: their questions leave those of deliveries their room. */
  readonly #listDns: DnsClient;
  readonly #resolvers: ResolverWatch;
  readonly #lookupWatch: LookupWatch;
  /** Who follows sessions. */
  readonly #traces: TracePorts;
  readonly #https = new HttpsClient();
  /** Where mail by MX goes, for policies and reports; deliveries have one of their own. */
  readonly #mxLookup: MxLookup;
  readonly #sts: RunningSts;
  readonly #tlsReports: RunningTlsReports;
  readonly #dispatcher: Dispatcher;
  readonly #inboundRecord: InboundRecord;
  readonly #view: CoreView;
  readonly #record: MailRecord;
  readonly #drained: DrainedStores;
  readonly #notes: LocalNotes;
  #metricsExport: MetricsExport | undefined;
  #admin: RunningAdmin | undefined;
  #ticker: Ticker | undefined;
  /** While an order walks. */
  #walker: Ticker | undefined;
  #turnAsked = false;
  readonly #runEndOfTurn = (): void => {
    this.#turnAsked = false;
    this.#core.endOfTurn();
  };
  #stopping = false;
  #fenced = false;
  /** It was ready to take mail once. */
  #hasServed = false;

  constructor(options: GatewayOptions, ports: GatewayPorts, identity: ProcessIdentity) {
    this.#options = options;
    this.#ports = ports;
    this.#identity = identity;
    this.incarnation = identity.incarnation.incarnation;
    const clock = this.#clock;
    const { log, metrics, mailLog } = ports;
    this.#record = new MailRecord({
      clock, log, mailLog, metrics, mirrorsOf: (route) => this.#core.registry.find(route)?.partition,
      routeNameOf: (route) => this.#router.nameOf(route),
    });
    this.#inboundRecord = new InboundRecord(metrics, clock.nowMs());
    const { stores: configured, learnStores, stateDir } = options;
    const learnable = learnStores === undefined ? [] : learnStores.only;
    this.#knownStores = new KnownStores({ configured, learnable }, {
      clock, log,
      barred: (host) => this.#barred(host),
      link: (store) => { this.#makeLink(store); },
      move: ({ id, pathA, pathB }) => { this.#linkTo(id)?.moveTo(pathA, pathB); },
    });
    this.#traces = { clients: new SessionWatch(clock), servers: new SessionWatch(clock) };
    this.#router = createRouter(options.routes);
    this.#ownAddresses = new OwnAddresses(options, clock);
    this.#retry = new RetrySchedule(options.retry, ports);
    this.#inForce = new ConfigurationInForce(options.configuration.hash, clock);
    this.#dkimKeys = dkimKeysOf(options, ports);
    this.#signer = new DkimSigner({ keys: this.#dkimKeys, clock, log, metrics: metrics.dkim });
    this.#core = this.#makeCore();
    const { mirrors, leaving, registry, crashes, inHand } = this.#core;
    this.#notes = new LocalNotes(stateDir, { crashes, inHand, incarnation: this.incarnation });
    const file = stateDir === undefined ? undefined : {
      read: () => readDrained(stateDir),
      write: (drained: DrainedSince) => writeDrained(stateDir, drained),
    };
    const partitionsOf = (name: string): readonly Partition[] => registry.partitionsOf(name);
    this.#drained = new DrainedStores({ clock, log, mirrors, leaving, file, partitionsOf, core: this.#core });
    this.#dns = new DnsClient(options.dns, clock);
    this.#listDns = new DnsClient(options.dns, clock);
    this.#lookupWatch = new LookupWatch({ lookups: this.#lookups, log });
    this.#resolvers = watchOf([this.#dns, this.#listDns], options, clock, ports);
    this.#mxLookup = new MxLookup(options.outbound.mx, this.#dns);
    this.#sts = this.#makeSts();
    this.#tlsReports = this.#makeTlsReports();
    this.#sts.watch = this.#tlsReports.tally;
    this.#dispatcher = this.#makeDispatcher();
    this.#core.setDeliverySink(this.#dispatcher);
    this.#linkSource = {
      inClear: new NodeTransport({ readBufferBytes: LINK_BUFFER_BYTES, lookup: this.#keptLookups.lookup }),
      secrets: new SystemSecrets(), packer: new MessagePacker(),
      incarnationNonce: new SystemSecrets().randomBytes(8),
    };
    this.#reading = new ReportLine({
      reader: new ReportThread(), memory: this.#core, record: this.#record,
      paths: () => this.#ownAddresses.paths,
    });
    this.#listeners = this.#makeListeners();
    this.#reportWay = this.#reportWays();
    this.#view = this.#makeView();
  }

  get smtpPorts(): readonly number[] {
    return this.#listeners.ports;
  }

  get adminPort(): number {
    return this.#admin?.port ?? this.#options.admin.listen.port;
  }

  async start(): Promise<void> {
    await this.#listeners.checkPorts();
    const source = gaugeSource({ view: this.#view, nowMs: () => this.#clock.nowMs() });
    this.#metricsExport = exportGatewayMetrics(this.#ports.metrics, source);
    const { registry } = this.#metricsExport;
    this.#admin = await startAdmin(this.#options.admin, this.#adminPorts(registry));
    this.#ports.log.info('start', 'the gateway starts', {
      gateway: this.#options.id, incarnation: this.incarnation,
      configuration: this.#options.configuration.hash,
      stores: this.#options.stores.map((store) => store.id), memory_limit_bytes: this.#core.memory.limitBytes,
    });
    this.#tellResolversLeftOut();
    const { learnStores } = this.#options;
    this.#knownStores.start(learnStores === undefined ? undefined : this.#identity.opened.register);
    const { usesMtaSts } = this.#options.outbound.mx;
    if (usesMtaSts) await this.#sts.load();
    this.#sts.isOn = usesMtaSts;
    await this.#renewTlsReports(this.#options);
    this.#dispatcher.start();
    this.#ticker = startTicker(this.#clock, TICK_MS, (nowMs) => { this.#tick(nowMs); });
  }

  #tellResolversLeftOut(): void {
    const { leftOut } = this.#dns;
    if (leftOut.length === 0) return;
    const text = 'resolvers of the system are not asked: one on this machine is believed about DNSSEC, and '
      + 'what they answer in its place would count as unsigned; name those to be asked in dns.resolvers';
    this.#ports.log.warn('dns', text, { resolvers: leftOut });
  }

  async stop(): Promise<void> {
    if (this.#stopping) return;
    this.#stopping = true;
    const boundMs = this.#options.delivery.stopTimeoutMs;
    this.#ports.log.info('stop', 'the gateway stops: no new mail; deliveries in flight are finished', {
      in_flight: this.#dispatcher.count, bound_ms: boundMs,
    });
    await Promise.all([this.#listeners.close(boundMs), this.#dispatcher.stop(boundMs)]);
    this.#tlsReports.close();
    this.#reading.close();
    this.#dkimKeys.close();
    this.#dns.close();
    this.#listDns.close();
    this.#https.close();
    await this.#sts.close();
    this.#core.drain();
    this.#core.endOfTurn();
    await this.#lastChangesOut();
    await this.#tlsReports.keep();
    this.#ticker?.stop();
    this.#walker?.stop();
    this.#knownStores.close();
    for (const link of this.#links) link.close();
    this.#metricsExport?.close();
    await this.#admin?.close();
    await this.#identity.end();
    const queued = this.#view.status().queued_messages;
    this.#ports.log.info('stop', 'the gateway has stopped; what is queued stays at the stores', { queued });
    this.#ports.mailLog.flush();
  }

  /** Another process of this gateway has its key in the register: nothing of this one goes on. */
  onTaken(why: string): void {
    if (this.#fenced || this.#stopping) return;
    this.#fenced = true;
    this.#ports.metrics.fenced += 1;
    const fields = { gateway: this.#options.id, why, incarnation: this.incarnation };
    this.#ports.log.error('fenced', KEY_TAKEN, fields);
    this.#ports.onFenced(0);
  }

  onCrash(): boolean {
    return this.#notes.onCrash();
  }

  #retirements(): Retirements {
    const { log } = this.#ports;
    const { bridge: register } = this.#identity;
    const isAlone = this.#options.register.kind === 'file';
    const partitions = (): readonly Partition[] => this.#core.registry.partitions;
    const keptFor = (id: string): KeptPartitions => this.#core.holdings.keptFor(id);
    return new Retirements({ isAlone }, { clock: this.#clock, log, register, partitions, keptFor });
  }

  #adminPorts(registry: MetricsExport['registry']): AdminPorts {
    const core = this.#core;
    return {
      view: this.#view, registry, log: this.#ports.log,
      members: () => this.#identity.opened.members(),
      rescue: core.holdings, orders: core.orders, rules: core.ruleDesk,
      stores: this.#drained, retire: this.#retirements(), reloads: this.#ports.reloads,
      rebalance: { gatewayId: this.#options.id, control: core.mirrors.rebalance },
      limitsOf: (queue, to) => bindingLimits(queue, to, {
        core, clock: this.#clock, nextHopOf: (one) => this.#dispatcher.nextHopOf(one),
        connections: () => ({
          open: this.#connectionsOut(), max: this.#options.outbound.connectionsMax,
        }),
      }),
      explain: (question) => explained(question, explainOptionsOf(this.#options, this.#dkimKeys), {
        clock: this.#clock, resolver: this.#dns, https: this.#https, recipients: this.#listeners.recipients,
        policies: this.#sts, judged: () => this.#dispatcher.judgedSources(),
        lostTls: (host, port) => this.#dispatcher.lostTlsOf(host, port),
        lookUpHost: (host, over) => this.#lookups.lookUp(host, over),
        findSender: (asked, time) => this.#senderThread.find(asked, time),
      }),
      traces: this.#traces,
      walks: walksOf(this.#options.id, core, this.#clock, (queue, row) => this.#view.row(queue, row)),
      logSearch: new LogSearch(() => this.#logPlace),
      exports: new ExportView({
        crc32, entries: core.entries, bodies: core.bodies, queuesOf: (name) => core.registry.byName(name),
        placesOf: (messageId) => core.registry.placesOf(messageId),
      }),
    };
  }

  get #logPlace(): LogPlace {
    const { mailLog, logLosses } = this.#ports;
    return {
      ...this.#options.log, switchedMs: mailLog.switchedWallMs, lostMs: logLosses.lostWallMs,
      failing: logLosses.failing,
    };
  }

  #connectionsOut(): number {
    return this.#dispatcher.nextHops().reduce((sum, hop) => sum + hop.connections, 0);
  }

  #makeView(): CoreView {
    const { id, host, version, insecure, mirror, rescue, admin: { listen } } = this.#options;
    const { replicas, minReplicas, leaseMs } = mirror;
    const { log, metrics } = this.#ports;
    const dispatcher = this.#dispatcher;
    return new CoreView(
      {
        gatewayId: id, host, incarnation: this.incarnation, version, insecure, replicas, minReplicas, leaseMs,
        rescues: () => (rescue ? this.#group() : []),
        hostOf: (store) => this.#knownStores.find(store)?.host ?? '',
        others: () => this.#others(),
        unreached: () => this.#knownStores.unreached(),
      },
      {
        clock: this.#clock, log, core: this.#core, links: this.#links, metrics, pid: process.pid,
        drainedSinceWallMs: (store) => this.#drained.sinceWallMs(store),
        adminAddress: () => reachableAddress(listen.host, this.adminPort),
        isDraining: () => this.#stopping,
        isListening: () => this.#listeners.areOpen,
        configuration: () =>
          ({ ...this.#inForce.answer(), routes_hash: this.#options.configuration.routesHash }),
        logLosses: this.#ports.logLosses,
        connectionsIn: () => this.#inboundRecord.connections,
        connectionsOut: () => this.#connectionsOut(),
        dotsInFlight: () => dispatcher.count,
        outages: () => {
          const failing = this.#listeners.hooks?.failing() ?? [];
          return outagesOf(dispatcher.nextHops(), failing, this.#clock.wallMs());
        },
        dnsAway: () => this.#resolvers.away,
        lookupsHeld: () => this.#lookups.held,
        connectionsFull: () => dispatcher.whyFull,
        sources: () => dispatcher.sources(),
        isDown: (queue) => dispatcher.isDown(queue),
        busiest: () => this.#inboundRecord.busy.answer(this.#clock.nowMs()),
        nextHopOf: (queue) => dispatcher.nextHopOf(queue),
      },
    );
  }

  #makeDispatcher(): Dispatcher {
    const { random, log, metrics } = this.#ports;
    const transport = new ClientTransport({
      readBufferBytes: REPLY_BUFFER_BYTES, lookups: this.#lookups,
      onCaFile: (file, why, isStale) => {
        metrics.reception.followed('ca', isStale);
        if (why === '') log.info('tls', 'the CAs for next hops were read anew', { file });
        else log.error('tls', 'the new CAs for next hops can\'t be used, the old ones stay', { file, why });
      },
    });
    const toNextHops: MailTransport = {
      connect: (host, port, handlers, from) => {
        metrics.connectionsOpened += 1;
        return transport.connect(host, port, new CountedHandlers(handlers, metrics), from);
      },
      addresses: (host, done) => transport.addresses(host, done),
      waitOf: (host) => transport.waitOf(host),
      secure: (clear, terms, handlers) => transport.secure(clear, terms, handlers),
    };
    return new Dispatcher(this.#options.outbound, {
      source: this.#core, transport: toNextHops, resolver: this.#dns, clock: this.#clock, random, log,
      policies: this.#sts, tlsWatch: this.#tlsReports.tally, tap: this.#traces.servers,
      passwords: new PasswordFiles({
        log, onRead: (isStale) => { metrics.reception.followed('passwords', isStale); },
      }),
      mayDot: (delivery) => !this.#fenced && this.#core.mayDeliver(delivery),
      onWay: (queue, hosts) => { this.#core.onWay(queue, hosts); },
      onTlsFallback: () => { metrics.tlsFallbacks += 1; },
      onDaneFailed: () => { metrics.outbound.daneFailures += 1; },
      onSlow: () => { metrics.outbound.slowEnds += 1; },
    });
  }

  #makeSts(): RunningSts {
    const { log, metrics: { sts: metrics } } = this.#ports;
    return new RunningSts(this.#options.stateDir, {
      clock: this.#clock, log, metrics, resolver: this.#dns, lookup: this.#mxLookup, https: this.#https,
    });
  }

  #makeTlsReports(): RunningTlsReports {
    const { id, stateDir } = this.#options;
    const { log, metrics, workers } = this.#ports;
    return new RunningTlsReports({ id, stateDir }, {
      workers: workers && { ...workers, tell: (tls) => { workers.tell({ tls }); } },
      policyOf: (domain) => this.#sts.kept(domain)?.policy,
      router: this.#router, log, clock: this.#clock, resolver: this.#dns,
      lookup: this.#mxLookup, https: this.#https, reception: this.#core, signer: this.#signer,
      onSent: (how) => { metrics.sts.reported(how); },
    });
  }

  #makeListeners(): Listeners {
    const clock = this.#clock;
    const { log, metrics, workers } = this.#ports;
    return new Listeners(this.#options, {
      clock, log, metrics, workers, memory: this.#core, dnsWatch: this.#resolvers,
      ofSessions: {
        reception: this.#core, router: this.#router, clock, log, mailLog: this.#record,
        metrics: this.#inboundRecord, made: this.#ownAddresses, reading: this.#reading, signer: this.#signer,
        tap: this.#traces.clients,
        blocklists: new Blocklists({
          resolver: this.#listDns, clock, log, meter: metrics.reception.blocklists,
        }),
      },
      notReadyReason: () => this.#view.status().not_ready_reason,
    });
  }

  /** All listeners have the same domains; a rescue has none. */
  #reportWays(): FindReportWay {
    const { hostName, inbound: [listener] } = this.#options;
    const { relayDomains = [], postmaster = '' } = listener ?? {};
    const options = { hostName, relayDomains, postmaster };
    return reportWays(options, {
      router: this.#router, toAscii, recipients: this.#listeners.recipients, made: this.#ownAddresses,
    });
  }

  #makeCore(): GatewayCore {
    const options = this.#options;
    const ports = this.#ports;
    return new GatewayCore(
      {
        ...options.mirror,
        gatewayId: options.id, incarnation: this.incarnation,
        queuesMax: options.queuesMax,
        longestRetryMs: this.#retry.longestMs,
        delayReports: options.reports,
        firstWaitMs: options.mirror.failoverTimeoutMs,
        segmentBytes: SEGMENT_BYTES,
        group: options.group,
        rescue: options.rescue,
        orphans: orphanOptions(options.register),
        mirrors: {
          ...options.mirror,
          retryMs: MIRROR_RETRY_MS,
          refillFrameBytes: REFILL_FRAME_BYTES, frameTargetBytes: FRAME_TARGET_BYTES,
          placement: {
            gatewayHost: options.oneHost ? undefined : options.host,
            places: { get: (store) => this.#knownStores.find(store) },
          },
        },
        acceptance: acceptanceOf(options),
        memory: { ...options.memory, reserveShare: RESERVE_SHARE },
        reading: {
          blockEntries: options.mirror.blockMessages, blockBytes: options.blockBytes,
          largestBytes: largestBytesOf(options),
        },
      },
      {
        clock: this.#clock,
        crc32, toAscii,
        packer: new MessagePacker(),
        touchPages,
        log: ports.log,
        localRules: localRulesFile(options.stateDir),
        router: this.#router,
        reportWay: (reversePath, onKnown) => this.#reportWay(reversePath, onKnown),
        events: this.#record,
        counters: ports.metrics,
        heldElsewhereBytes: () => this.#dispatcher.heldBytes,
        requestEndOfTurn: () => { this.#requestEndOfTurn(); },
        retryDelayMs: (attempts) => this.#retry.delayMs(attempts),
        drawOrdinal: () => this.#identity.ordinals.take(),
        ownership: this.#identity.bridge,
        areStoresKnown: () => this.#knownStores.isListRead,
        random: ports.random,
        ownPaths: this.#ownAddresses,
        reportSigner: this.#signer,
        compose: (input) => composeReport(this.#options.hostName, input, this.#clock.wallMs()),
      },
    );
  }

  #makeLink(store: KnownStore): void {
    const link = new StoreLink(this.#linkOptions(store), this.#linkPorts(store), this.#linkEvents());
    this.#links.push(link);
    this.#core.addStore(link);
    link.start();
  }

  #linkOptions(store: KnownStore): LinkOptions {
    const options = this.#options;
    const { incarnationNonce } = this.#linkSource;
    return {
      storeId: store.id, gatewayId: options.id, incarnation: this.incarnation, incarnationNonce,
      pathA: store.pathA,
      ...(store.pathB === undefined ? {} : { pathB: store.pathB }),
      ...LINK_MARGINS, ...options.mirror, frameBytesMax: options.frameBytesMax,
    };
  }

  #linkPorts(store: KnownStore): LinkPorts {
    const { inClear, secrets, packer } = this.#linkSource;
    const { random, log } = this.#ports;
    const { tls: files } = this.#options.mirror;
    const transport = files === undefined
      ? inClear
      : new TlsTransport({
        files, peerName: store.id, readBufferBytes: LINK_BUFFER_BYTES, lookup: this.#keptLookups.lookup,
      });
    return {
      clock: this.#clock, frameWallMs: () => this.#core.frame.wallMs(), transport, crc32, packer, secrets,
      sharedSecrets: () => this.#options.secrets, random, log,
    };
  }

  #linkTo(id: string): StoreLink | undefined {
    return this.#links.find(({ storeId }) => storeId === id);
  }

  #linkEvents(): StoreLinkEvents {
    const ports = this.#ports;
    const core = this.#core;
    const knownStores = this.#knownStores;
    return {
      onUp: (up) => {
        knownStores.onUp(up.storeId);
        this.#compareLease(up);
        core.onLinkUp(up);
      },
      onSwitched: (switched) => {
        ports.metrics.failedOver(switched.storeId);
        core.onLinkSwitched(switched);
      },
      onStopping: (from) => { core.leaving.onStopping(from); },
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
      onFenced: (from, text, highest) => { this.#onFenced(from.storeId, text, highest); },
    };
  }

  /** As config/checks.ts for stores of the configuration; of what the register says nobody has checked it. */
  #barred(host: string): string {
    const { mirror, insecure } = this.#options;
    if (mirror.tls !== undefined || insecure || isLoopback(host)) return '';
    const remedy = 'set mirror.tls, or insecure: true on a network that you trust';
    return `a link to ${host} would go in clear: ${remedy}`;
  }

  /** Without this one: of its configuration, or else all that the register knows. */
  #group(): readonly string[] {
    const { id, group = this.#identity.bridge.gateways() } = this.#options;
    return [...group].filter((other) => other !== id);
  }

  /**
   * Gateways of its group, and all that the register knows to live, with what they say there, or said
   * last: who only lost its session answers, and takes and delivers mail.
   */
  #others(): readonly Omit<MemberAnswer, 'self'>[] {
    const { bridge } = this.#identity;
    const living = bridge.living();
    const fellows = new Set([...this.#group(), ...living.keys()]);
    fellows.delete(this.#options.id);
    const stores = [...this.#knownStores.all()];
    const isAway = (other: string): boolean => bridge.away === '' && !living.has(other);
    return [
      ...[...fellows].map((other) => (
        { id: other, kind: 'gateway' as const, admin: bridge.adminOf(other), away: isAway(other) }
      )),
      ...stores.map((store) => (
        { id: store.id, kind: 'store' as const, admin: store.admin ?? null, away: false }
      )),
    ];
  }

  /** The store's value is what holds; configurations that differ are an accident. */
  #compareLease(link: StoreLink): void {
    const { leaseMs } = this.#options.mirror;
    if (link.leaseMs >= leaseMs) return;
    this.#ports.log.warn('link', SHORTER_LEASES, {
      store: link.storeId, lease_ms: link.leaseMs, configured_ms: leaseMs,
    });
  }

  #requestEndOfTurn(): void {
    if (this.#turnAsked) return;
    this.#turnAsked = true;
    setImmediate(this.#runEndOfTurn);
  }

  #tick(nowMs: number): void {
    this.#identity.tick(nowMs);
    for (const link of this.#links) link.tick(nowMs);
    this.#knownStores.tick(nowMs);
    this.#core.tick(nowMs);
    if (this.#core.orders.isWalking) this.#walkOn();
    this.#drained.tick();
    this.#notes.tick(nowMs);
    if (!this.#stopping) this.#tlsReports.tick(nowMs);
    this.#resolvers.tick(nowMs);
    this.#lookupWatch.tick(nowMs);
    this.#view.watch(nowMs);
    this.#inboundRecord.busy.tick(nowMs);
    this.#hasServed ||= this.#core.accepting;
    this.#listeners.tick(nowMs, this.#core.accepting && !this.#stopping);
  }

  /** An order that walks has ticks of its own: short ones, for those who wait, and many, for who gave it. */
  #walkOn(): void {
    this.#walker ??= startTicker(this.#clock, WALK_MS, (nowMs) => {
      this.#core.orders.tick(nowMs);
      if (this.#core.orders.isWalking) return;
      this.#walker?.stop();
      this.#walker = undefined;
    });
  }

  setTicketKeys(keys: Buffer): void {
    this.#listeners.setTicketKeys(keys);
  }

  onReport(report: WorkerReport): void {
    if ('tls' in report) this.#tlsReports.onMessage(report.tls);
    else this.#listeners.onReport(report, this.#clock.nowMs());
  }

  /** All that can go wrong does so here. What is not in config/changes.ts is as before. */
  async prepare(options: GatewayOptions): Promise<Renewal> {
    this.#countFollowing(options);
    const useKeys = await this.#prepareKeys(options);
    if (options.outbound.mx.usesMtaSts) await this.#sts.load();
    const listeners = await this.#listeners.prepare(options);
    return {
      use: () => {
        if (this.#stopping) return listeners.drop();
        listeners.use();
        useKeys();
        this.#renew(options);
      },
      drop: () => { listeners.drop(); },
    };
  }

  /** Resolves when what was counted before is here; while nobody is to be told, it stays where it is. */
  async #renewTlsReports({ tlsReports, hostName }: GatewayOptions): Promise<void> {
    this.#tlsReports.renew(tlsReports && { ...tlsReports, hostName });
    if (tlsReports !== undefined) await this.#tlsReports.load();
  }

  /** Of what is to be put in force. */
  async effectsOf(options: GatewayOptions): Promise<ReloadEffects> {
    await this.#prepareKeys(options);
    await this.#listeners.checkNewPorts(options.inbound);
    const following = this.#countFollowing(options);
    return { following, secrets: await Promise.all(await inSteps(this.#probeStores(options))) };
  }

  /** One a turn: TLS of each takes milliseconds to begin. */
  *#probeStores({ secrets }: GatewayOptions): Generator<undefined, Promise<SecretOfStore>[]> {
    const probed: Promise<SecretOfStore>[] = [];
    for (const store of this.#knownStores.all()) {
      const ports = { ...this.#linkPorts(store), sharedSecrets: () => secrets };
      probed.push(probeSecret(this.#linkOptions(store), ports)
        .catch((error: unknown) => ({ secret: 0, why: errorText(error) }))
        .then((probe) => ({ store: store.id, of: secrets.length, ...probe })));
      yield;
    }
    return probed;
  }

  async #prepareKeys({ dkim }: GatewayOptions): Promise<() => void> {
    const ready = await this.#dkimKeys.prepare(dkim);
    if (!('why' in ready)) return ready;
    const key = ['gateway', 'dkim', ready.index, 'key_file'];
    throw new NotFollowed(key, `expected ${KEY_WANTED}, found: ${ready.why}`);
  }

  /** Throws when mail would have no way. */
  #countFollowing({ routes }: GatewayOptions): number {
    const router = createRouter(routes);
    const { registry } = this.#core;
    const whys = [
      whyNoSuccessor(registry.queues(), router), this.#router.whyNot(routes, this.#core.isIncomplete),
    ];
    const why = whys.find((each) => each !== '');
    if (why !== undefined) throw new NotFollowed(['gateway', 'routes'], why);
    return followingCount(registry.queues(), router);
  }

  #renew(options: GatewayOptions): void {
    const isDnsChanged = JSON.stringify(options.dns) !== JSON.stringify(this.#options.dns);
    // What this machine has of memory may have changed, its limit here has not.
    this.#options = { ...options, memory: this.#options.memory };
    this.#retry = new RetrySchedule(options.retry, this.#ports);
    this.#router.renew(options.routes);
    this.#ownAddresses.renew(options);
    this.#core.renew({
      longestRetryMs: this.#retry.longestMs, acceptance: acceptanceOf(this.#options),
      largestBytes: largestBytesOf(options), delayReports: options.reports,
    });
    this.#resolvers.hostName = options.hostName;
    if (isDnsChanged) {
      this.#dns.renew(options.dns);
      this.#listDns.renew(options.dns);
      this.#tellResolversLeftOut();
    }
    this.#mxLookup.renew(options.outbound.mx);
    this.#sts.isOn = options.outbound.mx.usesMtaSts;
    void this.#renewTlsReports(options);
    this.#dispatcher.renew(this.#options.outbound);
    this.#reportWay = this.#reportWays();
    this.#inForce.renewed(options.configuration.hash);
  }

  refused(why: string): void {
    this.#inForce.refused(why);
  }

  #onFenced(storeId: string, text: string, highest = 0): void {
    if (this.#fenced) return;
    this.#fenced = true;
    // Before this process served anything it may be the register that was rolled back; a store that was
    // restarted too has taken us by then.
    const told = this.#hasServed ? 0 : highest;
    this.#ports.metrics.fenced += 1;
    if (told === 0) {
      this.#ports.log.error('fenced', TAKEN_OVER, {
        gateway: this.#options.id, store: storeId, why: text, incarnation: this.incarnation,
      });
    }
    this.#ports.onFenced(told);
  }

  /** Deletions of the last deliveries should reach the stores: else they are repeated after the restart. */
  #lastChangesOut(): Promise<void> {
    const end = this.#clock.nowMs() + LAST_FLUSH_MS;
    return new Promise((resolve) => {
      const look = (): void => {
        const isUnacked = this.#links.some((link) => link.isUp && link.unackedRequests > 0);
        const open = isUnacked || this.#core.mirrors.backlogBytes > 0;
        if (!open || this.#clock.nowMs() >= end) resolve();
        else setTimeout(look, TICK_MS);
      };
      look();
    });
  }
}

function acceptanceOf({ delivery, memory }: GatewayOptions): AcceptanceOptions {
  return { ...delivery, ...memory };
}

/** All listeners have the same domains; a rescue has none. */
function explainOptionsOf(options: GatewayOptions, keys: DkimKeys): ExplainOptions {
  const { hostName, routes, smtp, delivery: { retry, lifetimeMs }, outbound, inbound } = options;
  const { mx, sources } = outbound;
  const { relayDomains = [], postmaster = '' } = inbound[0] ?? {};
  const listeners = inbound.map(({ host, port }) => addressText(host, port));
  const of = (domain: string): readonly PublishedKey[] => keys.of(domain).map((key) => publishedKey(key));
  const dkim = { domains: keys.domains, of };
  return {
    hostName, routes, smtp, retry, lifetimeMs, mx, sources, dkim, listeners, relayDomains, postmaster,
  };
}

/** 0 where no mail is taken. */
function largestBytesOf({ inbound }: GatewayOptions): number {
  return Math.max(0, ...inbound.map(({ messageBytesMax }) => messageBytesMax));
}

function dkimKeysOf({ dkim }: GatewayOptions, { log, metrics: { reception } }: GatewayPorts): DkimKeys {
  return new DkimKeys(dkim, { log, onRead: (isStale) => { reception.followed('dkim', isStale); } });
}

function watchOf(
  [dns, ...others]: readonly [DnsClient, DnsClient], { hostName }: GatewayOptions, clock: SystemClock,
  { log, random, metrics }: GatewayPorts,
): ResolverWatch {
  const watch = new ResolverWatch(hostName, { clock, log, random, metrics: metrics.dns, resolver: dns });
  for (const one of [dns, ...others]) one.watch = watch;
  return watch;
}

/** The process that keeps the register's file alone knows all that have a part in it. */
function orphanOptions({ kind }: RegisterChoice): OrphanOptions {
  if (kind === 'file') return { graceMs: 0, areOurs: true };
  if (kind === 'socket') return { graceMs: SIBLINGS_START_MS, areOurs: true };
  return { graceMs: ABSENT_MS, areOurs: false };
}
