/**
 * Composition root of a gateway: configuration in, running gateway out. It translates names and fills in what
 * an operator has no say in; behaviour is in gateway/daemon/gateway-daemon.ts.
 */
import cluster from 'node:cluster';
import { errorText } from '../base/error-text.js';
import { InvariantError } from '../base/invariant.js';
import type { GatewayFile, RunningRole } from '../cli/context.js';
import { gatewayWarnings } from '../cli/config-warnings.js';
import { gatewayTls, unusableLinkFiles } from '../cli/link-files.js';
import { unusableFiles, unusableModules } from '../cli/reception-files.js';
import { unusableSources } from '../cli/source-addresses.js';
import { KEYS_OF_GATEWAY, configurationHash, routesHash } from '../config/changes.js';
import { certificateFiles, watchCertificates } from '../platform/node/certificate-ends.js';
import type { CertificateEnds } from '../platform/node/certificate-ends.js';
import type { ReloadControl, ReloadEffects } from '../platform/reloads.js';
import { CliError, startErrorText } from '../cli/context.js';
import type { GatewayConfig, ListenerConfig, StorePeerConfig } from '../config/types.js';
import { startGateway } from '../gateway/daemon/gateway-daemon.js';
import type { GatewayOptions, RunningGateway, WorkerPorts } from '../gateway/daemon/gateway-options.js';
import { AnotherProcessLives } from '../gateway/local/process-identity.js';
import { INBOUND_LIMITS } from '../gateway/inbound/options.js';
import type { ListenerOptions, Renewal } from '../gateway/inbound/listener.js';
import { isIpv6, ownNames } from '../gateway/outbound/pure/source-choice.js';
import { DISPATCHER_LIMITS } from '../gateway/outbound/dispatcher.js';
import type { RetryScheduleOptions } from '../gateway/outbound/pure/retry-schedule.js';
import { RETRY_JITTER } from '../gateway/outbound/pure/retry-schedule.js';
import { DEFAULT_TIMEOUTS, State } from '../gateway/outbound/pure/session-states.js';
import { GatewayMetrics } from '../observability/gateway-metrics.js';
import { MailLog } from '../observability/mail-log.js';
import { defaultMemoryBytes } from '../platform/node/memory.js';
import { addressText } from '../base/address-text.js';
import { FRAME_BYTES_MAX } from '../protocol/frame.js';
import { endProcess } from './end-process.js';
import { FENCED_EXIT_CODE, tellTerminal } from './last-words.js';
import { Reloads } from './reloads.js';
import type { ReloadTarget } from './reloads.js';
import { isReloadMessage, isReportMessage, isTicketMessage, rotateTickets } from './worker-messages.js';
import type { ReloadMessage, ReportMessage } from './worker-messages.js';
import type { HangUps } from './signals.js';
import { WorkerReloads } from './worker-reloads.js';
import { drainLog, nodePorts } from './node-ports.js';
import type { NodePorts } from './node-ports.js';
import { packageVersion } from './package-version.js';

/** Domains are chosen by whoever sends: an object and a few map entries each, some 100 MiB in all. */
const QUEUES_MAX = 65_536;
/**
 * A block of 1,000 messages of 1 KB is 1 MB; larger messages end it sooner. With the rows of the most
 * messages that `block` allows it fits what a link keeps for its next frame (protocol/frame-reader.ts): above
 * that each block would be read into fresh memory. It is also what one turn takes in.
 */
const BLOCK_BYTES = 1536 * 1024;
/** Exit code of a process that met an error of its own: EX_SOFTWARE of sysexits. */
const CRASH_EXIT_CODE = 70;

/** Two living processes of one id would end one another without end. */
const BEGUN_ANEW_MAX = 3;

const ROLLED_BACK =
  'the stores know a process of this gateway with a higher number than the register: '
  + 'it was lost or rolled back. The gateway begins anew above that number';
const STARTING = 'the gateway is still starting: ask again in a moment';
const CRASHED = 'the gateway ends: an error of its own that nothing handles; the mail waits at the stores. '
  + 'Please report this line';

function tellUpper(message: ReportMessage | ReloadMessage): void {
  process.send?.(message, () => undefined);
}

/** Of a worker. */
type WorkerPlace = Pick<WorkerPorts, 'isFirst' | 'others'>;

export async function startGatewayProcess(
  file: GatewayFile, hangUps: HangUps | undefined, place?: WorkerPlace,
): Promise<RunningRole> {
  const { config } = file;
  const options = optionsOf(file);
  await judgeOthers(config);
  const life = new GatewayLife(config, options, nodePorts(config.log, config.id), place);
  process.on('uncaughtException', life.onError);
  process.on('unhandledRejection', life.onError);
  life.follow(file, hangUps);
  // Workers get theirs from the upper process.
  if (!cluster.isWorker) rotateTickets((keys) => { life.useTickets(keys); });
  const gateway = await life.begin(0);
  return {
    summary: `${whatItDoes(config)}; admin on ${addressText(config.admin.listen.host, gateway.adminPort)}`,
    stop: () => life.stop(),
  };
}

/** The gateway of this process, which may begin anew, and go by another configuration. */
class GatewayLife implements ReloadTarget<GatewayConfig> {
  #config: GatewayConfig;
  #options: GatewayOptions;
  readonly #ports: NodePorts;
  readonly #place: WorkerPlace | undefined;
  readonly #mailLog: MailLog;
  readonly #certificates: CertificateEnds;
  #reloads: ReloadControl | undefined;
  #latest: Promise<RunningGateway> | undefined;
  #gateway: RunningGateway | undefined;
  #tickets: Buffer | undefined;
  #anew = 0;

  constructor(
    config: GatewayConfig, options: GatewayOptions, ports: NodePorts, place: WorkerPlace | undefined,
  ) {
    this.#place = place;
    this.#config = config;
    this.#options = options;
    this.#ports = ports;
    this.#mailLog = new MailLog({ gateway: config.id, enabled: config.log.mail }, ports.destination);
    this.#certificates = watchCertificates(gatewayTls(config), ports.log);
  }

  readonly onError = (error: unknown): void => {
    const { id } = this.#config;
    if (error instanceof AnotherProcessLives) endOutlived(error, id, this.#mailLog, this.#ports);
    else endCrashed(error, this.#gateway, this.#mailLog, this.#ports);
  };

  /** Reads the file again when somebody asks for it; as a worker, when the upper process does. */
  follow(file: GatewayFile, hangUps: HangUps | undefined): void {
    const reloads = new Reloads(file, {
      log: this.#ports.log, keysOf: KEYS_OF_GATEWAY, warningsOf: gatewayWarnings, target: this,
      onBroken: this.onError,
    });
    const worker = cluster.isWorker ? new WorkerReloads(reloads, this, tellUpper) : undefined;
    this.#reloads = {
      reload: (order) => (worker ?? reloads).reload(order),
      compare: () => reloads.compare((next) => this.#effectsOf(next)),
    };
    hangUps?.reload(this.#reloads);
    process.on('message', (message: unknown) => {
      if (isReportMessage(message)) this.#gateway?.onReport(message.report);
      else if (isTicketMessage(message)) this.useTickets(Buffer.from(message.tickets, 'base64'));
      else if (isReloadMessage(message)) worker?.onMessage(message);
    });
  }

  useTickets(keys: Buffer): void {
    this.#tickets = keys;
    this.#gateway?.setTicketKeys(keys);
  }

  /** `told`: the incarnation will be above it. */
  begin(told: number): Promise<RunningGateway> {
    this.#latest = this.#begin(told);
    return this.#latest;
  }

  async prepare(file: GatewayFile): Promise<Renewal> {
    const { config } = file;
    const { gateway, options } = await this.#judged(file);
    const { use, drop } = await gateway.prepare(options);
    return {
      drop,
      use: () => {
        use();
        this.#config = config;
        this.#options = options;
        this.#ports.log.level = config.log.level;
        this.#mailLog.enabled = config.log.mail;
        this.#certificates.lookAt(certificateFiles(gatewayTls(config)), Date.now());
      },
    };
  }

  refused(why: string): void {
    this.#gateway?.refused(why);
  }

  async #effectsOf(file: GatewayFile): Promise<ReloadEffects> {
    const { gateway, options } = await this.#judged(file);
    return gateway.effectsOf(options);
  }

  /** Rejects when something of the file can't be used. */
  async #judged(file: GatewayFile): Promise<{ gateway: RunningGateway; options: GatewayOptions }> {
    const options = optionsOf(file, this.#config);
    await judgeOthers(file.config);
    const gateway = await this.#latest;
    if (gateway === undefined) throw new CliError(STARTING);
    return { gateway, options };
  }

  async stop(): Promise<void> {
    await this.#gateway?.stop();
    await drainLog(this.#ports);
  }

  async #begin(told: number): Promise<RunningGateway> {
    const gateway = await startGateway(this.#options, {
      log: this.#ports.log,
      mailLog: this.#mailLog,
      metrics: newMetrics(this.#certificates),
      random: Math.random,
      logLosses: this.#ports.destination,
      workers: this.#place && { ...this.#place, tell: (report) => { tellUpper({ report }); } },
      reloads: this.#reloads,
      onFenced: (toldNow) => {
        this.#anew += 1;
        if (toldNow === 0 || this.#anew > BEGUN_ANEW_MAX) {
          endFenced(this.#config.id, this.#mailLog, this.#ports);
        } else this.#beginAnew(toldNow).catch(this.onError);
      },
    }, told);
    this.#gateway = gateway;
    if (this.#tickets !== undefined) gateway.setTicketKeys(this.#tickets);
    return gateway;
  }

  /**
   * This process has served nothing yet: the register was lost or rolled back, and gave out a number that was
   * used before; or the process with the higher number lives, and then has its key there.
   */
  async #beginAnew(told: number): Promise<void> {
    this.#ports.log.warn('start', ROLLED_BACK, { told });
    await (await this.#latest)?.stop();
    await this.begin(told).catch((error: unknown) => {
      endUnstarted(error, this.#config.id, this.#mailLog, this.#ports);
    });
  }
}

async function judgeOthers(config: GatewayConfig): Promise<void> {
  const unusable = [...await unusableModules(config), ...await unusableSources(config)];
  if (unusable.length > 0) throw new CliError(unusable.join('\n'));
}

function newMetrics({ ends }: CertificateEnds): GatewayMetrics {
  const metrics = new GatewayMetrics();
  metrics.reception.certificateEnds = ends;
  return metrics;
}

/** Without a listener it is a rescue (cli/rescue.ts). */
function whatItDoes({ id, group, smtp }: GatewayConfig): string {
  if (smtp.listen.length === 0) {
    const others = group?.filter((other) => other !== id).join(', ') ?? 'all gateways of its register';
    return `rescue ${id} takes no mail and stands by for ${others}`;
  }
  const addresses = smtp.listen.map(({ host, port }) => addressText(host, port)).join(', ');
  return `gateway ${id} takes mail on ${addresses} once its stores answer`;
}

/** No drain, no last changes: every further step would be taken with queues of another process. */
function endFenced(id: string, mailLog: MailLog, ports: NodePorts): void {
  mailLog.flush();
  ports.destination.flushNow();
  tellTerminal(
    `twinpost: gateway ${id} ends: another process with its id owns its queues now. `
    + 'If that is no restart, give one of the two another id, or do not start it',
  );
  process.exit(FENCED_EXIT_CODE);
}

/** What ends a first start in one line ends one that was to begin anew likewise: it has served nothing. */
function endUnstarted(error: unknown, id: string, mailLog: MailLog, ports: NodePorts): void {
  if (isOfOurOwn(error) || error instanceof AnotherProcessLives) throw error;
  const why = startErrorText('gateway', error);
  ports.log.error('start', 'the gateway could not begin anew, and ends', { gateway: id, why });
  mailLog.flush();
  ports.destination.flushNow();
  tellTerminal(`twinpost: ${why}`);
  process.exit(1);
}

/** No fault of the world, nor of an operator. */
function isOfOurOwn(error: unknown): boolean {
  return !(error instanceof Error) || error instanceof InvariantError || error instanceof TypeError
    || error instanceof RangeError || error instanceof ReferenceError;
}

/** It was about to begin anew, and has served nothing. */
function endOutlived(
  { message: why }: AnotherProcessLives, id: string, mailLog: MailLog, ports: NodePorts,
): void {
  const text = 'another process of this gateway is in the register, and goes on; this one ends';
  ports.log.error('fenced', text, { gateway: id, why });
  endFenced(id, mailLog, ports);
}

/**
 * An error that nobody handled, or a broken invariant: what this process believes may be wrong from here on,
 * so that nothing of it runs any more. What was in hand is noted (gateway/local/crash-notes.ts), the stack
 * goes to the log.
 */
function endCrashed(
  error: unknown, gateway: RunningGateway | undefined, mailLog: MailLog, ports: NodePorts,
): void {
  let hadInHand = false;
  try {
    hadInHand = gateway?.onCrash() ?? false;
  } catch {
    // The error that is reported below is the first one.
  }
  const why = errorText(error);
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  ports.log.error('crash', CRASHED, { why, stack, in_hand: hadInHand });
  mailLog.flush();
  ports.destination.flushNow();
  const firstLine = why.split('\n', 1)[0] ?? '';
  tellTerminal(
    'twinpost: the gateway ends by an error of its own, the mail waits at the stores; '
    + `its log has more: ${firstLine}`,
  );
  endProcess(CRASH_EXIT_CODE);
}

/** `before`: what is in force, of which the table of recipients and keys of DKIM are looked after already. */
function optionsOf({ config, keys }: GatewayFile, before?: GatewayConfig): GatewayOptions {
  const configuration = { hash: configurationHash(keys), routesHash: routesHash(keys) };
  return { ...gatewayOptions(config, before), configuration };
}

/** Exported for the test that every configured value arrives. */
export function gatewayOptions(
  config: GatewayConfig, before?: GatewayConfig,
): Omit<GatewayOptions, 'configuration'> {
  const { delivery, memory, smtp } = config;
  // To verify a large one takes a second, in which nothing else goes on.
  const isTableKnown = before !== undefined && before.smtp.recipientsFile === smtp.recipientsFile;
  const judged = {
    ...config,
    ...(isTableKnown ? { smtp: { ...smtp, recipientsFile: undefined } } : {}),
    // A gateway that runs reads those that are new, and not all of them in one turn.
    ...(before === undefined ? {} : { dkim: [] }),
  };
  const unusable = [...unusableFiles(judged), ...unusableLinkFiles(judged, [])];
  if (unusable.length > 0) throw new CliError(unusable.join('\n'));
  return {
    ...config,
    group: config.group === undefined ? undefined : [...new Set([...config.group, config.id])],
    version: packageVersion(),
    inbound: config.smtp.listen.map((listener) => inboundOptions(config, listener)),
    outbound: {
      ...DISPATCHER_LIMITS,
      ...delivery,
      heloName: config.hostName,
      timeouts: timeoutsByState(delivery),
      sources: config.sources,
      mx: {
        ...delivery.mx, ownNames: ownNames(config.hostName, config.sources),
        usesIpv6: config.sources.some(({ address }) => isIpv6(address)),
      },
      // An unreachable next hop is asked again no later than a deferred message would be.
      backoffFirstMs: Math.min(DISPATCHER_LIMITS.backoffFirstMs, delivery.retry.firstMs),
      backoffMaxMs: Math.min(DISPATCHER_LIMITS.backoffMaxMs, delivery.retry.maxMs),
      deniedFirstMs: delivery.retry.firstMs,
      deniedMaxMs: delivery.retry.maxMs,
    },
    retry: retrySchedule(delivery),
    stores: config.stores.map(storeOptions),
    queuesMax: QUEUES_MAX,
    frameBytesMax: FRAME_BYTES_MAX,
    blockBytes: BLOCK_BYTES,
    memory: { ...memory, limitBytes: memory.limitBytes ?? defaultMemoryBytes(config.oneHost) },
  };
}

function storeOptions({ id, host, weight, paths, admin }: StorePeerConfig): GatewayOptions['stores'][number] {
  return {
    id, host, weight,
    pathA: paths[0]?.address ?? { host: '', port: 0 },
    pathB: paths[1]?.address,
    admin: admin === undefined ? undefined : addressText(admin.host, admin.port),
  };
}

function inboundOptions(config: GatewayConfig, listener: ListenerConfig): ListenerOptions {
  const { smtp } = config;
  return {
    ...INBOUND_LIMITS,
    ...smtp,
    ...listener,
    hostName: config.hostName,
    tls: listener.tls === 'off' ? undefined : smtp.tls,
    isSubmission: listener.role === 'submission',
    isTlsFirst: listener.tls === 'implicit',
    offersRequireTls: !config.insecure,
  };
}

/** First, twice that, and so on up to the longest, which repeats. */
function retrySchedule(delivery: GatewayConfig['delivery']): RetryScheduleOptions {
  const { firstMs, maxMs } = delivery.retry;
  const delaysMs: number[] = [];
  for (let delay = firstMs; delay < maxMs; delay *= 2) delaysMs.push(delay);
  delaysMs.push(maxMs);
  return { delaysMs, jitter: RETRY_JITTER };
}

/** States that the configuration does not name keep their defaults. */
function timeoutsByState({ timeouts }: GatewayConfig['delivery']): readonly number[] {
  const byState = [...DEFAULT_TIMEOUTS];
  byState[State.CONNECTING] = timeouts.connectMs;
  byState[State.GREETING] = timeouts.greetingMs;
  byState[State.HELLO] = timeouts.heloMs;
  byState[State.HELO_ONLY] = timeouts.heloMs;
  byState[State.STARTTLS] = timeouts.starttlsMs;
  byState[State.SECURING] = timeouts.starttlsMs;
  byState[State.AUTH] = timeouts.authMs;
  byState[State.MAIL] = timeouts.mailMs;
  byState[State.RCPT] = timeouts.rcptMs;
  byState[State.DATA] = timeouts.dataInitMs;
  byState[State.CONTENT] = timeouts.dataBlockMs;
  byState[State.FINAL] = timeouts.dataDoneMs;
  byState[State.QUITTING] = timeouts.quitMs;
  return byState;
}
