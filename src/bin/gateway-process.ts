/**
 * Composition root of a gateway: configuration in, running gateway out. It translates names and fills in what
 * an operator has no say in; behaviour is in gateway/gateway-daemon.ts.
 */
import cluster from 'node:cluster';
import { errorText } from '../base/error-text.js';
import { InvariantError } from '../base/invariant.js';
import type { RunningRole } from '../cli/context.js';
import { unusableFiles, unusableModules } from '../cli/reception-files.js';
import { watchCertificates } from '../platform/node/certificate-ends.js';
import { CliError, startErrorText } from '../cli/context.js';
import type { GatewayConfig, ListenerConfig, StorePeerConfig } from '../config/types.js';
import { startGateway } from '../gateway/gateway-daemon.js';
import type { GatewayOptions, RunningGateway, WorkerReport } from '../gateway/gateway-options.js';
import { AnotherProcessLives } from '../gateway/process-identity.js';
import { INBOUND_LIMITS } from '../gateway/inbound/options.js';
import type { ListenerOptions } from '../gateway/inbound/listener.js';
import { DISPATCHER_LIMITS } from '../gateway/outbound/dispatcher.js';
import type { RetryScheduleOptions } from '../gateway/outbound/pure/retry-schedule.js';
import { RETRY_JITTER } from '../gateway/outbound/pure/retry-schedule.js';
import { DEFAULT_TIMEOUTS, State } from '../gateway/outbound/pure/session-states.js';
import { GatewayMetrics } from '../observability/gateway-metrics.js';
import { MailLog } from '../observability/mail-log.js';
import { defaultMemoryBytes } from '../platform/node/memory.js';
import { addressText } from '../base/address-text.js';
import { FRAME_BYTES_MAX } from '../protocol/frame.js';
import { FENCED_EXIT_CODE, tellTerminal } from './last-words.js';
import { isReportMessage, isTicketMessage, rotateTickets } from './worker-messages.js';
import { ignoreHangUp } from './signals.js';
import { nodePorts } from './node-ports.js';
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
const LOG_DRAIN_MS = 1_000;
/** Exit code of a process that met an error of its own: EX_SOFTWARE of sysexits. */
const CRASH_EXIT_CODE = 70;

/** Two living processes of one id would end one another without end. */
const BEGUN_ANEW_MAX = 3;

const ROLLED_BACK =
  'the stores know a process of this gateway with a higher number than the register: '
  + 'it was lost or rolled back. The gateway begins anew above that number';
const CRASHED = 'the gateway ends: an error of its own that nothing handles; the mail waits at the stores. '
  + 'Please report this line';

function tellUpper(report: WorkerReport): void {
  process.send?.({ report }, () => undefined);
}

export async function startGatewayProcess(config: GatewayConfig): Promise<RunningRole> {
  const options = gatewayOptions(config);
  await judgeModules(config);
  const ports = nodePorts(config.log, config.id);
  const mailLog = new MailLog({ gateway: config.id, enabled: config.log.mail }, ports.destination);
  const started: { gateway?: RunningGateway } = {};
  const onError = (error: unknown): void => {
    if (error instanceof AnotherProcessLives) endOutlived(error, config.id, mailLog, ports);
    else endCrashed(error, started.gateway, mailLog, ports);
  };
  process.on('uncaughtException', onError);
  process.on('unhandledRejection', onError);
  ignoreHangUp(ports.log);
  const certificateEnds = watchCertificates(config.smtp.tls, config.mirror.tls, ports.log);
  let tickets: Buffer | undefined;
  const useTickets = (keys: Buffer): void => {
    tickets = keys;
    started.gateway?.setTicketKeys(keys);
  };
  process.on('message', (message: unknown) => {
    if (isReportMessage(message)) started.gateway?.onReport(message.report);
    else if (isTicketMessage(message)) useTickets(Buffer.from(message.tickets, 'base64'));
  });
  const begin = async (told: number): Promise<RunningGateway> => {
    started.gateway = await startGateway(options, {
      log: ports.log,
      mailLog,
      metrics: newMetrics(certificateEnds),
      random: Math.random,
      logLinesDropped: () => mailLog.droppedLines,
      tellWorkers: cluster.isWorker ? tellUpper : undefined,
      onFenced: (toldNow) => {
        if (toldNow === 0 || (anew += 1) > BEGUN_ANEW_MAX) endFenced(config.id, mailLog, ports);
        else beginAnew(toldNow).catch(onError);
      },
    }, told);
    if (tickets !== undefined) started.gateway.setTicketKeys(tickets);
    return started.gateway;
  };
  // Workers get theirs from the upper process.
  if (!cluster.isWorker) rotateTickets(useTickets);
  let anew = 0;
  let latest = begin(0);
  // This process has served nothing yet: the register was lost or rolled back, and gave out a number that was
  // used before; or the process with the higher number lives, and then has its key there.
  const beginAnew = async (told: number): Promise<void> => {
    ports.log.warn('start', ROLLED_BACK, { told });
    await (await latest).stop();
    latest = begin(told);
    await latest.catch((error: unknown) => { endUnstarted(error, config.id, mailLog, ports); });
  };
  const gateway = await latest;
  return {
    summary: `${whatItDoes(config)}; admin on ${addressText(config.admin.listen.host, gateway.adminPort)}`,
    stop: async () => {
      await started.gateway?.stop();
      await ports.destination.drain(LOG_DRAIN_MS);
    },
  };
}

async function judgeModules(config: GatewayConfig): Promise<void> {
  const unusable = await unusableModules(config);
  if (unusable.length > 0) throw new CliError(unusable.join('\n'));
}

function newMetrics(certificateEnds: ReadonlyMap<string, number>): GatewayMetrics {
  const metrics = new GatewayMetrics();
  metrics.reception.certificateEnds = certificateEnds;
  return metrics;
}

/** Without a listener it is a rescue (cli/rescue.ts). */
function whatItDoes({ id, group, smtp }: GatewayConfig): string {
  if (smtp.listen.length === 0) {
    const others = group.filter((other) => other !== id).join(', ');
    return `rescue ${id} takes no mail and stands by for ${others}`;
  }
  const addresses = smtp.listen.map(({ host, port }) => `${host}:${String(port)}`).join(', ');
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
  process.exit(CRASH_EXIT_CODE);
}

/** Exported for the test that every configured value arrives. */
export function gatewayOptions(config: GatewayConfig): GatewayOptions {
  const { delivery, memory } = config;
  const unusable = unusableFiles(config);
  if (unusable.length > 0) throw new CliError(unusable.join('\n'));
  return {
    ...config,
    group: [...new Set([...config.group, config.id])],
    version: packageVersion(),
    inbound: config.smtp.listen.map((listener) => inboundOptions(config, listener)),
    outbound: {
      ...DISPATCHER_LIMITS,
      ...delivery,
      heloName: config.hostName,
      timeouts: timeoutsByState(delivery),
      mx: { ...delivery.mx, ownNames: [config.hostName.toLowerCase()] },
      // An unreachable next hop is asked again no later than a deferred message would be.
      backoffFirstMs: Math.min(DISPATCHER_LIMITS.backoffFirstMs, delivery.retry.firstMs),
      backoffMaxMs: Math.min(DISPATCHER_LIMITS.backoffMaxMs, delivery.retry.maxMs),
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
  return { ...delivery, delaysMs, jitter: RETRY_JITTER };
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
