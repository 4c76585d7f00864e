/**
 * The checked, frozen configuration as the composition roots get it: every default filled in, every value in
 * the unit its name ends with, secrets resolved to bytes. Types only. What a file may say is in schema.ts,
 * how one becomes the other in build.ts.
 */
import type { WhoMaySend } from '../gateway/gateway-options.js';
import type { LogLevel } from '../platform/node/log.js';
import type { RegisterChoice } from '../register/running/open-register.js';

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

/** TLS of the links, with certificates on both sides. */
export interface LinkTlsConfig extends TlsFiles {
  readonly caFile: string;
}

export interface LogConfig {
  readonly level: LogLevel;
  /** Lines go to this file; undefined: to stdout. */
  readonly file: string | undefined;
}

export interface GatewayLogConfig extends LogConfig {
  /** The mail log (received, delivered, …); events are always logged. */
  readonly mail: boolean;
}

export interface AdminConfig {
  readonly listen: Address;
  /** Bearer token of /api/v1; undefined: none is asked (loopback only). */
  readonly token: string | undefined;
}

export interface ListenerConfig extends Address {
  /** `submission`: for users, who must authenticate. */
  readonly role: 'relay' | 'submission';
  /** When TLS begins; 'off': never. */
  readonly tls: 'off' | 'starttls' | 'implicit';
  /** Balancers whose PROXY header every connection must have; empty: none has one. */
  readonly proxyNetworks: readonly string[];
  /** Peers whose XCLIENT is believed, and whether what it says of a login is. */
  readonly xclientNetworks: readonly string[];
  readonly xclientLogin: boolean;
  readonly blocklists: readonly string[];
}

export interface SmtpConfig extends WhoMaySend {
  readonly listen: readonly ListenerConfig[];
  /** CIDR blocks or addresses whose clients may send to any routed domain. */
  readonly relayNetworks: readonly string[];
  /** Domains that anyone may send to; lower case. */
  readonly relayDomains: readonly string[];
  readonly messageBytesMax: number;
  readonly recipientsMax: number;
  readonly connectionsMax: number;
  readonly connectionsPerClientMax: number;
  readonly bytesPerSecondMin: number;
  readonly hopsMax: number;
  readonly commandTimeoutMs: number;
  readonly dataTimeoutMs: number;
  readonly tls: SmtpTlsConfig | undefined;
  /** Names of client certificates that may send to any routed domain. */
  readonly relayCertificates: readonly string[];
  /** '': mail to postmaster goes where its domain leads. */
  readonly postmaster: string;
}

export interface SmtpTlsConfig extends TlsFiles {
  readonly clientCaFile: string | undefined;
}

/** Reports to senders; same shape as DelayReportOptions of gateway/queue/delay-reports.ts. */
export interface ReportsConfig {
  /** 0: a delay is never told. */
  readonly afterMs: number;
  /** Also to senders who did not ask for it. */
  readonly isUnasked: boolean;
}

export interface DeliveryConfig {
  readonly retryFirstMs: number;
  readonly retryMaxMs: number;
  readonly lifetimeMs: number;
  readonly bounceLifetimeMs: number;
  readonly concurrency: number;
  readonly ordering: 'fifo' | 'strict';
  readonly messagesPerConnection: number;
  readonly connectionLifetimeMs: number;
  readonly connectionIdleMs: number;
  /** Bound on deliveries in flight when the gateway stops. */
  readonly stopTimeoutMs: number;
  readonly timeouts: {
    readonly connectMs: number;
    readonly greetingMs: number;
    readonly heloMs: number;
    readonly mailMs: number;
    readonly rcptMs: number;
    readonly dataInitMs: number;
    readonly dataBlockMs: number;
    readonly dataDoneMs: number;
    readonly quitMs: number;
  };
}

/** Same shape as RouteOptions of gateway/queue/router.ts, so it is passed on as it is. */
export interface RouteConfig {
  readonly domains: readonly string[];
  readonly name: string;
  readonly perDomain: boolean;
  readonly lanes: number;
  readonly nextHop: { readonly protocol: 'smtp' | 'lmtp'; readonly host: string; readonly port: number };
  readonly ordering: 'fifo' | 'strict';
  readonly concurrency: number;
  readonly lengthMax: number;
  readonly pipelinesAcross: boolean;
}

export interface MemoryConfig {
  /** Undefined: the cgroup's limit, else a share of physical memory. */
  readonly limitBytes: number | undefined;
  /** Share of the limit above which new mail gets 452. */
  readonly acceptShare: number;
  /** Share of the limit that one next hop may use. */
  readonly nextHopShare: number;
}

export interface MirrorConfig {
  readonly replicas: number;
  readonly replicasMin: number;
  readonly partitions: number;
  readonly commitTimeoutMs: number;
  readonly heartbeatMs: number;
  readonly failoverTimeoutMs: number;
  /** Length of a lease that the stores should grant; theirs is what holds. */
  readonly leaseMs: number;
  readonly windowBytes: number;
  /** Last changes kept for mirrors that come back; a sixteenth of the memory limit at most. */
  readonly ringBytes: number;
  /** A mirror that is away for so long is replaced by one on another store. */
  readonly replaceAfterMs: number;
  /** 0: copies stay where they are. */
  readonly rebalanceBytesPerSecond: number;
  readonly blockMessages: number;
  readonly tls: LinkTlsConfig | undefined;
}

export interface StorePathConfig {
  /** "A" and "B": the networks of the management table. */
  readonly name: string;
  readonly address: Address;
}

export interface StoreListenConfig extends StorePathConfig {
  /** By which gateways reach it, when it is not where it listens. */
  readonly advertised: Address | undefined;
}

export interface StorePeerConfig {
  readonly id: string;
  /** Label of the machine it runs on. */
  readonly host: string;
  readonly paths: readonly StorePathConfig[];
  /** Its admin HTTP, for verbs that look at the whole group. */
  readonly admin: Address | undefined;
  /** Its part of the copies, against that of the others. */
  readonly weight: number;
}

export interface GatewayConfig {
  readonly id: string;
  /** Processes that share its SMTP ports; each is a gateway of its own (workers.ts). */
  readonly workers: number;
  /** Ids of the gateways that may take its partitions, and it theirs. */
  readonly group: readonly string[];
  /** Takes the partitions of the others in its group when they stay silent. */
  readonly rescue: boolean;
  readonly host: string;
  /** Name in the greeting, EHLO and Received. */
  readonly hostname: string;
  readonly smtp: SmtpConfig;
  readonly delivery: DeliveryConfig;
  readonly reports: ReportsConfig;
  readonly routes: readonly RouteConfig[];
  readonly memory: MemoryConfig;
  readonly mirror: MirrorConfig;
  readonly secret: Uint8Array;
  readonly stores: readonly StorePeerConfig[];
  /** Stores that the register names are used too: all, or `only` these; undefined: none. */
  readonly learnStores: { readonly only: readonly string[] | undefined } | undefined;
  readonly admin: AdminConfig;
  readonly log: GatewayLogConfig;
  /** Folder of what it knows of itself: its lock, the register's file, notes; undefined: nothing is kept. */
  readonly stateDir: string | undefined;
  /** Who says which process holds a partition. */
  readonly register: RegisterChoice;
  /** Store paths outside loopback without TLS were asked for; `status` shows it. */
  readonly insecure: boolean;
  /** Started by `twinpost up`: all processes share one host on purpose, placement must not look at labels. */
  readonly oneHost: boolean;
  /** FILE:LINE of the keys that name files which are read later, by key: "gateway.smtp.users". */
  readonly places: Readonly<Record<string, string>>;
}

export interface StoreClientConfig {
  readonly id: string;
  readonly secret: Uint8Array;
  /** Its admin HTTP, for verbs that look at the whole group. */
  readonly admin: Address | undefined;
}

export interface StoreConfig {
  readonly id: string;
  readonly host: string;
  readonly paths: readonly StoreListenConfig[];
  readonly gateways: readonly StoreClientConfig[];
  /** Lets in any gateway that proves it; undefined: `gateways` only. */
  readonly groupSecret: Uint8Array | undefined;
  /** Its part of the copies, against that of the others, where the register tells it. */
  readonly weight: number;
  readonly memoryLimitBytes: number | undefined;
  readonly leaseMs: number;
  readonly windowBytes: number;
  /** Bound on the time for gateways to move their queues away when the store stops. */
  readonly stopTimeoutMs: number;
  /** Folder of the spill file; undefined: none. */
  readonly stateDir: string | undefined;
  /** Where it makes itself known to all gateways; undefined: they know it by their own files. */
  readonly register: RegisterChoice | undefined;
  /** Write what is still held to a file when the store stops. */
  readonly spill: boolean;
  /** Of each gateway's last changes; never more than a sixteenth of the memory. */
  readonly ringBytes: number;
  readonly admin: AdminConfig;
  readonly log: LogConfig;
  readonly tls: LinkTlsConfig | undefined;
  /** Paths outside loopback without TLS were asked for; /api/v1/status shows it. */
  readonly insecure: boolean;
  /** Started by `twinpost up`: it shares its host's memory with all others. */
  readonly oneHost: boolean;
}

export interface SinkConfig {
  readonly listen: Address;
  readonly admin: Address | undefined;
  readonly lmtp: boolean;
  readonly verify: boolean;
  readonly maildir: string | undefined;
}

/** All that one file says; a role takes its part. */
export interface Config {
  readonly file: string;
  readonly gateway: GatewayConfig | undefined;
  readonly stores: readonly StoreConfig[];
  readonly sink: SinkConfig | undefined;
}
