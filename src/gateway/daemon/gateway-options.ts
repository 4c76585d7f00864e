/**
 * What a gateway process is made with (gateway-daemon.ts): its plain options, what it is given, and what it
 * gives.
 */
import type { GatewayKeys } from '../../config/keys/schema.js';
import type { HookOptions } from '../inbound/hooks/node/make-hooks.js';
import type { HttpServiceOptions } from '../inbound/http-service.js';
import type { HttpRecipientsOptions } from '../inbound/recipients-by-http.js';
import type { OpenReport } from '../inbound/limits/client-counts.js';
import type { RateOptions, RateReport } from '../inbound/limits/rate-limits.js';
import type { GatewayMetrics } from '../../observability/gateway-metrics.js';
import type { MailLog } from '../../observability/mail-log.js';
import type { EventLog, LogLosses, Random } from '../../platform/ports.js';
import type { ReloadControl, ReloadEffects } from '../../platform/reloads.js';
import type { RegisterChoice } from '../../register/running/open-register.js';
import type { ListenerOptions, Renewal } from '../inbound/listener.js';
import type { DispatcherOptions } from '../outbound/dispatcher.js';
import type { KnownStore } from '../ownership/known-stores.js';
import type { CountsMessage } from '../outbound/tls-reports/handover.js';
import type { RetryScheduleOptions } from '../outbound/pure/retry-schedule.js';
import type { RouteOptions } from '../queue/router.js';
import type { FeedbackOptions } from '../returned/came-back.js';

export interface LearnStores {
  /** Ids of those that may be learned; undefined: any. */
  readonly only: readonly string[] | undefined;
}

export interface SrsOptions {
  /** Lower-case A-labels. */
  readonly domain: string;
  readonly secrets: readonly string[];
}

/** Of all listeners. */
export interface WhoMaySend {
  /** Asked about each message, in this order. */
  readonly hooks: readonly HookOptions[];
  readonly usersFile: string | undefined;
  /** Instead of a file. */
  readonly usersByHttp: HttpServiceOptions | undefined;
  readonly recipientsFile: string | undefined;
  /** Instead of a file. */
  readonly recipientsByHttp: HttpRecipientsOptions | undefined;
  /** Rewrites reverse-paths of what aliases send out of our domains: by the first secret; all are known. */
  readonly srs: SrsOptions | undefined;
  /** Where feedback loops send to; undefined: nowhere. */
  readonly feedback: FeedbackOptions | undefined;
  /** What a party may do in any minute; 0: as much as it wants. */
  readonly rates: RateOptions;
  readonly rateExempt: readonly string[];
}

/** As the file says it. */
type SaidInFile =
  | 'id' | 'host' | 'rescue' | 'stateDir' | 'insecure' | 'mirror' | 'reports' | 'delivery' | 'admin' | 'dns'
  | 'dkim' | 'tlsReports' | 'log';

/** Short names, for people and other gateways to compare (config/changes.ts). */
export interface ConfigurationName {
  readonly hash: string;
  /** Of the routes alone. */
  readonly routesHash: string;
}

export interface GatewayOptions extends Pick<GatewayKeys, SaidInFile> {
  readonly smtp: WhoMaySend;
  readonly memory: GatewayKeys['memory'] & { readonly limitBytes: number };
  /** Gateways that take over one another's queues, this one among them; undefined: all of the register. */
  readonly group: readonly string[] | undefined;
  /** In the greeting, EHLO and Received. */
  readonly hostName: string;
  /** Of links: the first, and others that a store may still prove, or prove already. */
  readonly secrets: readonly Uint8Array[];
  /** Who says which process holds a partition. */
  readonly register: RegisterChoice;
  /** Of this release, for its status. */
  readonly version: string;
  /** One listener each; port 0 takes any free one. */
  readonly inbound: readonly ListenerOptions[];
  readonly outbound: DispatcherOptions;
  readonly retry: RetryScheduleOptions;
  readonly routes: readonly RouteOptions[];
  /** Of the configuration. */
  readonly stores: readonly KnownStore[];
  /** Stores that the register names are used too; undefined: only `stores`. */
  readonly learnStores: LearnStores | undefined;
  readonly queuesMax: number;
  readonly frameBytesMax: number;
  /** All processes share one host on purpose: labels say nothing. */
  readonly oneHost: boolean;
  readonly blockBytes: number;
  readonly configuration: ConfigurationName;
}

/** Once a second: what clients did since, and have open. */
export interface ClientsReport {
  readonly rates: RateReport;
  readonly open: OpenReport;
}

/** What the workers of a gateway tell one another. */
export type WorkerReport = ClientsReport | { readonly tls: CountsMessage };

export interface WorkerPorts {
  readonly isFirst: boolean;
  /** How many there are beside it. */
  readonly others: number;
  /** To all others; what was counted of TLS, to the one that it is for. */
  tell(report: WorkerReport): void;
}

export interface GatewayPorts {
  readonly log: EventLog;
  readonly mailLog: MailLog;
  readonly metrics: GatewayMetrics;
  readonly random: Random;
  readonly logLosses: LogLosses;
  /** The other workers of this gateway; undefined: there are none. */
  readonly workers: WorkerPorts | undefined;
  /** Undefined: there is no file to read. */
  readonly reloads: ReloadControl | undefined;
  /**
   * It must end: another process of this gateway lives. `told`: no store has taken it yet, and this is the
   * highest incarnation they know; else 0.
   */
  onFenced(told: number): void;
}

export interface RunningGateway {
  /** Ports of the SMTP listeners, once the gateway has been ready. */
  readonly smtpPorts: readonly number[];
  readonly adminPort: number;
  readonly incarnation: number;
  /**
   * An error that nobody handled: notes what was in hand, on this machine and at the mirrors as far as that
   * goes out at once. The process must not go on after it. True when something was in hand.
   */
  onCrash(): boolean;
  /** Another worker told it. */
  onReport(report: WorkerReport): void;
  /** Of TLS sessions of clients, shared by the workers of this gateway. */
  setTicketKeys(keys: Buffer): void;
  /**
   * Gets ready for other options, which differ only in what a running gateway follows (config/changes.ts).
   * Rejects when something of them can't be had: then, and until use(), nothing has changed.
   */
  prepare(options: GatewayOptions): Promise<Renewal>;
  /** What these would do to mail and links. Rejects as prepare() does, and opens no port. */
  effectsOf(options: GatewayOptions): Promise<ReloadEffects>;
  /** A configuration was not taken: for status. */
  refused(why: string): void;
  stop(): Promise<void>;
}
