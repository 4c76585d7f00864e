/**
 * What a configuration file may say: every section, every key, its range and its default. One file is for a
 * role (gateway.yaml, store.yaml) or for `twinpost up` (gateway, stores and sink together). Keys are
 * snake_case as in the mail servers that our users know; a key that is not here is refused.
 *
 * Defaults follow what operators expect (retry 5 min to 1 h, lifetime 5 d, 25 MiB, 1,000 recipients, 50
 * connections a client, 500 B/s) and RFC 5321 4.5.3.2 for the timeouts of a delivery.
 *
 * What is not here: rules between keys (checks.ts), and values that follow from several (build.ts).
 */
import { z } from 'zod';
import { named } from './key.js';
import type { Made } from './key.js';
import * as v from './values.js';

const GIB = 1024 ** 3;
const MIB = 1024 ** 2;
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;

/**
 * A store grants a gateway at most 32 MiB at a time, and one message with its envelope must fit into that: a
 * larger one would be answered 452 for ever. 30 MiB leave room for the longest envelope of the usual 1,000
 * recipients.
 */
const MESSAGE_BYTES_MAX = 30 * MIB;
/**
 * A note tells what became of up to 10,918 in 64 KiB (gateway/queue/note.ts); envelopes of this many, with
 * the longest addresses and ORCPT, still fit into a grant.
 */
const RECIPIENTS_MAX = 10_000;

/** Bounds the table, not the queues: one route may have a queue for each of many domains. */
const ROUTES_MAX = 2048;
/** Processes behind one SMTP port: one a core of a large machine. */
const WORKERS_MAX = 64;

/** A section with all its keys defaulted may be left out whole. */
function section<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  const object = z.strictObject(shape);
  return object.prefault({} as z.input<typeof object>);
}

/** At least 64 MiB: below that the reserves of the memory marks hold no message of the largest size. */
const memoryLimit = () => named('limitBytes', v.bytes(64 * MIB, 4096 * GIB).optional());

const logKeys = {
  level: v.oneOf(['debug', 'info', 'warn', 'error']).prefault('info'),
  /** Lines go there, else to stdout. */
  file: v.file().optional(),
};

const adminTls = { cert: named('certFile', v.file()), key: named('keyFile', v.file()) };

const admin = <T extends z.core.$ZodLooseShape>(port: number, tls: T) =>
  section({
    listen: v.address().prefault(`127.0.0.1:${String(port)}`),
    /** Who may ask /api/v1, and what; without it anybody on this machine may (loopback only). */
    tokens_file: named('tokensFile', v.file().optional()),
    /** https; without it in clear. */
    tls: z.strictObject(tls).optional(),
    /** A port for the probes alone, in clear and for all. */
    probes: v.address().optional(),
  });

/** "A" and "B": the networks of the management table. */
const storePath = { name: v.identifier(), address: v.address() };

/** Two networks: the first carries requests, the second stands by. */
const storePaths = () => z.array(z.strictObject(storePath)).min(1).max(2);

/** Where the store listens; `advertise`: by which gateways reach it, when it listens on all addresses. */
const listenPaths = () =>
  z.array(z.strictObject({
    ...storePath, advertise: named('advertised', v.address().optional()),
  })).min(1).max(2);

const secretKeys = {
  secret: v.secret('a secret of one line').optional(),
  secret_file: named('secretFile', v.file().optional()),
};

/** An address alone, or with what is different there. */
const listener = z.preprocess(
  (value) => (isListener(value) ? value : { address: value }),
  z.strictObject({
    address: v.address(),
    /** relay: MTAs and terminals of known networks; submission: users, who authenticate. */
    role: v.oneOf(['relay', 'submission']).prefault('relay'),
    /** When TLS begins. Without a certificate: off. */
    tls: v.oneOf(['off', 'starttls', 'implicit']).optional(),
    /** Balancers whose connections begin with a PROXY header. */
    proxy: named('proxyNetworks', z.array(v.network()).min(1).max(1000).optional()),
    /** Proxies whose XCLIENT is believed; xclient_login: also who has authenticated there. */
    xclient: named('xclientNetworks', z.array(v.network()).min(1).max(1000).optional()),
    xclient_login: named('xclientLogin', v.flag().prefault(false)),
    /** DNS blocklists, of a relay listener. */
    dnsbl: named('blocklists', z.array(v.hostname()).min(1).max(16).optional()),
    /** SPF, DKIM and DMARC of strangers' mail, told in a field on top of it; of a relay listener. */
    authentication_results: named('checksSenders', v.flag().prefault(false)),
  }),
);

function isListener(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !('host' in value);
}

const rates = {
  messages: v.count(0, 1_000_000_000).prefault(0), recipients: v.count(0, 1_000_000_000).prefault(0),
  data: v.bytes(0, 1024 * GIB).prefault('0B'), errors: v.count(0, 1_000_000_000).prefault(0),
};
const clientRates = { connections: v.count(0, 1_000_000_000).prefault(0), ...rates };

/** In any minute; 0: as much as they want. */
const limits = section({
  exempt: z.array(v.network()).max(10_000).prefault(['127.0.0.0/8', '::1']),
  client: section(clientRates),
  network: section(clientRates),
  user: section(rates),
  sender: section(rates),
});

const httpService = {
  http: named('url', v.secretUrl()),
  timeout: named('timeoutMs', v.duration(10, MINUTE_MS).prefault('5s')),
  /** For the Authorization field. */
  token_file: named('token', v.asciiContentOf('a file with a token').optional()),
};

/** A file of users, or who is asked about each. */
const users = z.union([v.file(), z.strictObject(httpService)], {
  error: 'a file name, or a mapping such as {http: https://users.example.com/check}',
});

/** Who is asked about each message: rspamd, or a module of the operator's own. */
const hook = z.strictObject({
  rspamd: v.serverUrl().optional(),
  module: v.file().optional(),
  /** In the log and in metrics; else rspamd, or the file's own name. */
  name: v.identifier().optional(),
  timeout: named('timeoutMs', v.duration(10, MINUTE_MS).prefault('5s')),
  /** When it gives no verdict. */
  on_failure: named('onFailure', v.oneOf(['defer', 'accept']).prefault('defer')),
  password_file: named('password', v.asciiContentOf('a file with a password').optional()),
  threads: v.count(1, 16).optional(),
  /** Of one thread; a content, which may be as large, lies beside it. */
  heap: named('heapBytes', v.bytes(16 * MIB, 4 * GIB).optional()),
});

/** One after another, each a time limit to wait and one to be worked on, of the client's ten minutes. */
const HOOKS_MAX = 4;

/** A file made by `twinpost table build`, or who is asked about each. */
const recipients = z.union([
  v.file(),
  z.strictObject({
    ...httpService,
    /** How long an answer holds that an address is there, and one that it is not. */
    cache: named('keptMs', v.duration(1000, DAY_MS).prefault('5m')),
    cache_missing: named('missingKeptMs', v.duration(1000, DAY_MS).prefault('30s')),
  }),
], {
  error: 'a file name, or a mapping such as {http: https://users.example.com/recipients}',
});

const smtp = section({
  listen: z.array(listener).min(1).max(64).prefault(['127.0.0.1:2525']),
  /** Clients there may send to any routed domain. */
  relay_networks:
    named('relayNetworks', z.array(v.network()).max(10_000).prefault(['127.0.0.0/8', '::1'])),
  /** So may these names in certificates of clients, signed by tls.client_ca. */
  relay_certificates:
    named('relayCertificates', z.array(v.text('a name of one line')).max(10_000).prefault([])),
  /** Who may submit (twinpost user). */
  users: users.optional(),
  /** Our name in Authentication-Results fields, the same for all gateways of a group; else `hostname`. */
  authserv_id: named('authservId', v.hostname().optional()),
  /** Who reads mail to postmaster and abuse, at our own name and at every relayed domain. */
  postmaster: v.mailAddress().optional(),
  /** Who is there in relay_domains (twinpost table build); without it everybody is. */
  recipients: recipients.optional(),
  /** Rewrites the reverse-path of what aliases send out of relay_domains. */
  srs: z.strictObject({
    domain: v.domain(), secret_file: named('secrets', v.contentOf('a file with a secret, one a line')),
  }).optional(),
  /** Feedback loops (RFC 5965) send there; what comes is counted, and goes on or is discarded. */
  feedback: z.strictObject({
    address: v.mailAddress(), forward_to: named('forwardTo', v.mailAddress().optional()),
  }).optional(),
  hooks: z.array(hook).max(HOOKS_MAX).prefault([]),
  /** Anyone may send to these. */
  relay_domains: named('relayDomains', z.array(v.relayDomain()).max(100_000).prefault([])),
  message_size_limit: named('messageBytesMax', v.bytes(1024, MESSAGE_BYTES_MAX).prefault('25MiB')),
  /** RFC 5321 4.5.3.1.8: at least 100. */
  recipient_limit: named('recipientsMax', v.count(100, RECIPIENTS_MAX).prefault(1000)),
  /** At each listener: a flood at one of them leaves the others theirs. So for those of a client. */
  connections: named('connectionsMax', v.count(1, 100_000).prefault(2000)),
  /** Of one IPv4 address or one IPv6 /64. */
  connections_per_client: named('connectionsPerClientMax', v.count(1, 100_000).prefault(50)),
  limits,
  min_data_rate: named('contentBytesPerSecondMin', v.byteRate().prefault('500B/s')),
  /** Received fields of a message, past which it goes in a circle. */
  hop_limit: named('hopsMax', v.count(2, 1000).prefault(100)),
  command_timeout: named('idleMs', v.duration(1000, HOUR_MS).prefault('5min')),
  /**
   * For the whole content; min_data_rate ends slow senders sooner. 25 MiB at 500 B/s would take 15 h: no
   * honest client needs more than this.
   */
  data_timeout: named('contentMs', v.duration(1000, HOUR_MS).prefault('30min')),
  /** Of STARTTLS, and of listeners where TLS comes first. client_ca: asks clients for a certificate of it. */
  tls: z.strictObject({
    cert: named('certFile', v.file()), key: named('keyFile', v.file()),
    client_ca: named('clientCaFile', v.file().optional()),
  }).optional(),
});

const delivery = section({
  retry: section({
    first: named('firstMs', v.duration(10, DAY_MS).prefault('5min')),
    max: named('maxMs', v.duration(10, DAY_MS).prefault('1h')),
  }),
  lifetime: named('lifetimeMs', v.duration(1000, 60 * DAY_MS).prefault('5d')),
  bounce_lifetime: named('bounceLifetimeMs', v.duration(1000, 60 * DAY_MS).prefault('1d')),
  /** Messages in flight to one next hop. */
  concurrency: v.count(1, 1000).prefault(20),
  /** strict: one in flight, a deferred head holds its queue. */
  order: named('ordering', v.oneOf(['fifo', 'strict']).prefault('fifo')),
  /** To all next hops together: strangers' hosts may hold each one for minutes. */
  connections: named('connectionsMax', v.count(1, 1_000_000).prefault(5_000)),
  messages_per_connection: named('messagesPerConnectionMax', v.count(1, 1_000_000).prefault(100)),
  connection_lifetime: named('connectionLifeMs', v.duration(1000, DAY_MS).prefault('300s')),
  connection_idle: named('idleMs', v.duration(100, HOUR_MS).prefault('5s')),
  /** Of routes `via: mx`. */
  mx: section({
    /** To the hosts of one set of MX records, for all domains that have it. */
    connections: named('connectionsMax', v.count(1, 1000).prefault(20)),
    /** To one address, whatever hosts and domains lead there: who owns it may give it any number of names. */
    connections_per_address: named('connectionsPerAddressMax', v.count(1, 1_000_000).prefault(100)),
    /** Loopback, private and others that no host of the Internet has: an MX record may name any address. */
    allow_private_addresses: named('allowsPrivate', v.flag().prefault(false)),
    /** Policies of domains on TLS with their hosts (RFC 8461), by routes of every level but none. */
    mta_sts: named('usesMtaSts', v.flag().prefault(true)),
  }),
  /** Of a large content: a next hop that takes less for three minutes is given up. 0: none is. */
  min_data_rate: named('contentBytesPerSecondMin', v.byteRate().prefault('500B/s')),
  /** Of deliveries in flight when the gateway stops. */
  stop_timeout: named('stopTimeoutMs', v.duration(0, HOUR_MS).prefault('10s')),
  timeouts: section({
    connect: named('connectMs', v.duration(10, HOUR_MS).prefault('30s')),
    greeting: named('greetingMs', v.duration(10, HOUR_MS).prefault('5min')),
    helo: named('heloMs', v.duration(10, HOUR_MS).prefault('5min')),
    /** The reply to STARTTLS, and the handshake. */
    starttls: named('starttlsMs', v.duration(10, HOUR_MS).prefault('1min')),
    auth: named('authMs', v.duration(10, HOUR_MS).prefault('5min')),
    mail: named('mailMs', v.duration(10, HOUR_MS).prefault('5min')),
    rcpt: named('rcptMs', v.duration(10, HOUR_MS).prefault('5min')),
    data_init: named('dataInitMs', v.duration(10, HOUR_MS).prefault('2min')),
    data_block: named('dataBlockMs', v.duration(10, HOUR_MS).prefault('3min')),
    data_done: named('dataDoneMs', v.duration(10, HOUR_MS).prefault('10min')),
    quit: named('quitMs', v.duration(10, HOUR_MS).prefault('5s')),
  }),
});

const reportKeys = z.strictObject({
  /** When a domain has no route for reports: the configuration is refused, or they are dropped. */
  without_route: named('withoutRoute', v.oneOf(['refuse', 'discard']).prefault('refuse')),
  /** Age at which the delay of a message is told to who asked for that (NOTIFY=DELAY); 0: never. */
  delay_after: named('afterMs', v.duration(0, 60 * DAY_MS).prefault('4h')),
  /** Also to a sender who said nothing of reports. */
  delay_unasked: named('isUnasked', v.flag().prefault(false)),
});

/** Of delivery, to senders. `discard` alone: those to whom no route leads get none. */
const reports = z.union([
  v.oneOf(['refuse', 'discard']).transform((word): unknown => ({ without_route: word })).pipe(reportKeys),
  reportKeys,
], {
  error: 'discard, refuse, or a mapping such as {without_route: discard, delay_after: 4h}',
}).prefault({});

/** As many as addresses of a machine that somebody keeps the names of. */
const SOURCES_MAX = 256;

const patterns = () => z.array(v.pattern()).min(1).max(1_000).optional();

/** TLS with a next hop, and who we are to it. */
const hopTerms = {
  /** When offered, or always, or only with whom we mean; else may, with smtps encrypt. */
  tls: v.oneOf(['none', 'may', 'encrypt', 'verify']).optional(),
  /** For verify: who signs its certificate, else whom Node trusts; which name that bears, else its host. */
  ca_file: named('caFile', v.file().optional()),
  server_name: named('serverName', v.hostname().optional()),
  /** RFC 4954. The first line of the file is the password. */
  auth: z.strictObject({
    user: v.text('a user name of one line'), password_file: named('passwordFile', v.file()),
  }).optional(),
};

const route = z.strictObject({
  domain: v.routeDomain().optional(),
  domains: z.array(v.routeDomain()).min(1).max(10_000).optional(),
  /**
   * Only for some of it: one pattern of each list must match; addresses as they were written, in whatever
   * case. Senders: '<>' is the null reverse-path.
   */
  when: z.strictObject({
    senders: patterns(), recipients: patterns(), listeners: patterns(),
  }).optional(),
  via: named('nextHops', v.nextHops()),
  /** Of several: to any of them, else to the first that takes connections. */
  balance: v.flag().prefault(false),
  /** Where mail goes while none of them takes connections. */
  fallback: v.nextHops().optional(),
  /** Addresses or names of `sources` that its mail leaves from; else any of them. */
  sources: z.array(v.sourceName()).min(1).max(SOURCES_MAX).optional(),
  ...hopTerms,
  /** Hosts of via and fallback with terms of their own; what one leaves out is as the route says. */
  hosts: z.array(z.strictObject({ host: v.nextHopHost(), ...hopTerms })).min(1).max(16).optional(),
  /** Each recipient gets a signed reverse-path of his own, so that what comes back says what it is about. */
  verp: z.strictObject({
    domain: v.domain(), prefix: v.returnPrefix().prefault('b'),
    secret_file: named('secrets', v.contentOf('a file with a secret, one a line')),
    /** How long after a message left reports of it are taken. */
    valid_for: named('validMs', v.duration(DAY_MS, 90 * DAY_MS).prefault('10d')),
    /** When they are counted: on to the sender, or not. */
    returned: v.oneOf(['forward', 'discard']).prefault('forward'),
  }).optional(),
  name: v.queueName().optional(),
  /** One queue for the route, or one for each destination domain that it leads to. */
  queues: v.oneOf(['route', 'domain']).prefault('route'),
  /** So many queues of one route, each with an order and a home of its own. */
  lanes: v.count(1, 1024).prefault(1),
  /** By the recipient's domain, or by the sender: a hot domain has several queues then. */
  lanes_by: named('lanesBy', v.oneOf(['domain', 'sender']).prefault('domain')),
  order: named('ordering', v.oneOf(['fifo', 'strict']).optional()),
  concurrency: v.count(1, 1000).optional(),
  length_limit: named('lengthMax', v.count(1, 100_000_000).prefault(1_000_000)),
});

/**
 * Who is trusted on the links, and who this process is: PEM files. The certificate bears the id as a name.
 */
const linkTls = z.strictObject({
  ca: named('caFile', v.file()), cert: named('certFile', v.file()), key: named('keyFile', v.file()),
});

const mirror = section({
  replicas: v.count(1, 2).prefault(2),
  min_replicas: named('minReplicas', v.count(1, 2).prefault(1)),
  commit_timeout: named('commitTimeoutMs', v.duration(100, 10 * MINUTE_MS).prefault('20s')),
  heartbeat: named('heartbeatMs', v.duration(10, 10_000).prefault('250ms')),
  failover_timeout: named('failoverTimeoutMs', v.duration(50, MINUTE_MS).prefault('2s')),
  /** What the stores are expected to grant: said in the log if one grants less (gateway-daemon.ts). */
  lease: named('leaseMs', v.duration(1000, 10 * MINUTE_MS).prefault('10s')),
  /** Units of mirroring of a gateway; each queue lives in one of them. */
  partitions: v.count(1, 1024).prefault(16),
  window: named('windowBytes', v.bytes(64 * 1024, 64 * MIB).prefault('8MiB')),
  /** Last changes kept for mirrors that come back: they get the tail instead of everything. */
  ring: named('ringBytes', v.bytes(MIB, 4 * GIB).prefault('64MiB')),
  /** A mirror that is away for so long is replaced by one on another store. */
  replace_after: named('replaceAfterMs', v.duration(1000, DAY_MS).prefault('30s')),
  /** Bytes a second. */
  rebalance_rate: named('rebalanceBytesPerSecond', v.bytes(0, 100 * GIB).prefault('20MiB')),
  block: named('blockMessages', v.count(1, 10_000).prefault(1000)),
  /** Of the links to the stores. */
  tls: linkTls.optional(),
});

/** One key; a domain may have two, RSA and Ed25519. */
const dkimKey = z.strictObject({
  /** Of From, exactly. */
  domain: v.domain(),
  selector: v.selector(),
  /** PEM; read again when it changes. */
  key_file: named('keyFile', v.file()),
  /** From a signature until it holds no more (x=); left out: it holds for ever. */
  expires_after: named('expiresAfterMs', v.duration(DAY_MS, 365 * DAY_MS).optional()),
});

const gateway = z.strictObject({
  id: v.identifier(),
  /** Processes that share its SMTP ports, each with queues of its own (config/workers.ts). */
  workers: v.count(1, WORKERS_MAX).prefault(1),
  /** Gateways that may serve one another's queues; this one may be left out. Without it, with etcd: all. */
  group: z.array(v.groupMember(WORKERS_MAX)).max(256).optional(),
  /** Whether it takes over the queues of the others in its group when they stay silent. */
  rescue: v.onOrOff().prefault('on'),
  host: v.identifier(),
  /** In the greeting, EHLO and Received; else that of the machine. */
  hostname: named('hostName', v.hostname().optional()),
  smtp,
  /** Keys that mail of our own is signed with: of users, of the relay networks, and reports. */
  dkim: z.array(dkimKey).max(10_000).prefault([]),
  /** Who is asked; else those of the system. What one on this machine says of DNSSEC is believed. */
  dns: section({
    resolvers: z.array(v.resolver()).max(3).prefault([]),
    /** So is what others say: only where nobody is between. Those that are believed stand alone. */
    trust_ad: named('trustsAd', v.flag().prefault(false)),
  }),
  delivery,
  /** Addresses of this machine that mail leaves from, each with its name in EHLO (else hostname). */
  sources: z.array(z.strictObject({ address: v.sourceAddress(), name: v.domain().optional() }))
    .max(SOURCES_MAX).prefault([]),
  /** Domains that ask for it are told what came of TLS with their hosts (RFC 8460), in whose name. */
  tls_reports: named('tlsReports', z.strictObject({
    organization: v.text('the name of an organization'), contact: v.mailAddress(),
  }).optional()),
  routes: z.array(route).min(1).max(ROUTES_MAX),
  reports,
  memory: section({
    limit: memoryLimit(),
    /** Above it new mail gets 452. */
    accept: named('acceptShare', v.share().prefault(0.8)),
    /** That one next hop may use. */
    next_hop: named('nextHopShare', v.share().prefault(0.25)),
  }),
  mirror,
  ...secretKeys,
  /**
   * May be left out in a file for `up`: then they are the file's own stores; and with etcd, which names them.
   * With etcd an id alone may use that store, at the addresses that etcd says.
   */
  stores: z.array(z.strictObject({
    id: v.identifier(),
    host: v.identifier().optional(),
    paths: storePaths().optional(),
    admin: v.address().optional(),
    weight: v.count(1, 1000).optional(),
  })).min(1).max(64).optional(),
  /** ca: who signs the certificates of the other gateways; without it a CA of the system. */
  admin: admin(8025, { ...adminTls, ca: named('caFile', v.file().optional()) }),
  /** mail: the mail log (received, delivered, …); events are always logged. */
  log: section({ ...logKeys, mail: v.flag().prefault(true) }),
  /** What it knows of itself: its lock, the register's file, notes; without it nothing is kept. */
  state_dir: named('stateDir', v.folder().optional()),
  /** Links without TLS outside loopback; `status` shows it. */
  insecure: v.flag().prefault(false),
});

const store = z.strictObject({
  id: v.identifier(),
  host: v.identifier(),
  paths: listenPaths(),
  /** Its part of the copies, against that of the others, where etcd tells the gateways. */
  weight: v.count(1, 1000).prefault(1),
  /** Of the group, for all gateways that have none of their own below. */
  ...secretKeys,
  /**
   * May be left out in a file for `up`: then it is the file's own gateway; and with etcd: then it is any that
   * proves the group's secret.
   */
  gateways: z.array(z.strictObject({
    id: v.identifier(), workers: v.count(1, WORKERS_MAX).prefault(1), ...secretKeys,
    admin: v.address().optional(),
  })).min(1).max(10_000).optional(),
  memory: section({ limit: memoryLimit() }),
  lease: named('leaseMs', v.duration(1000, 10 * MINUTE_MS).prefault('10s')),
  window: named('windowBytes', v.bytes(64 * 1024, 64 * MIB).prefault('8MiB')),
  /**
   * Last changes kept for each gateway, so that a copy a little behind gets only its tail; a sixteenth of the
   * memory at most.
   */
  ring: named('ringBytes', v.bytes(0, 4 * GIB).prefault('64MiB')),
  /** For gateways to move their queues away; 0 stops at once. */
  stop_timeout: named('stopTimeoutMs', v.duration(0, HOUR_MS).prefault('10s')),
  /** Where a stopping store leaves what it still holds; without it nothing is left. */
  state_dir: named('stateDir', v.folder().optional()),
  /** Whether such a file is written; one that is there is read in any case. */
  spill: v.flag().prefault(true),
  tls: linkTls.optional(),
  admin: admin(9401, adminTls),
  log: section(logKeys),
  insecure: v.flag().prefault(false),
});

const sink = z.strictObject({
  listen: v.address().prefault('127.0.0.1:2526'),
  admin: v.address().optional(),
  lmtp: v.flag().prefault(false),
  verify: v.flag().prefault(false),
  maildir: v.folder().optional(),
  /** Of STARTTLS; without one it is not offered. */
  tls: z.strictObject({
    cert: named('certFile', v.file()), key: named('keyFile', v.file()),
  }).optional(),
});

/** An etcd of 3.4 or newer, for gateways in processes of their own. */
const etcd = z.strictObject({
  etcd: named('endpoints', z.array(v.etcdUrl()).min(1).max(16)),
  /** Keys stand below /twinpost/CLUSTER/: one etcd may serve several groups. */
  cluster: v.identifier(),
  user: v.text('a user name of one line').optional(),
  password_file: named('password', v.contentOf('a file with a password').optional()),
  ca: named('caFile', v.file().optional()),
  cert: named('certFile', v.file().optional()),
  key: named('keyFile', v.file().optional()),
  /** What etcd was started with (--max-txn-ops). */
  max_txn_ops: named('operationsMax', v.count(32, 10_000).prefault(128)),
});

/** Who holds which partition: a file of state_dir, for one gateway; or etcd, for any number of them. */
const register = z.union([z.literal('file'), etcd], {
  error: 'file, or a mapping such as {etcd: [https://10.1.0.5:2379], cluster: mail}',
});

export const fileSchema = z.strictObject({
  register: register.prefault('file'),
  gateway: gateway.optional(),
  store: store.optional(),
  stores: z.array(store).min(1).max(64).optional(),
  sink: sink.optional(),
});

/** As zod gives it: in the words of the file. */
export type FileValue = z.output<typeof fileSchema>;
export type GatewayValue = NonNullable<FileValue['gateway']>;
export type HookValue = GatewayValue['smtp']['hooks'][number];
export type StoreValue = NonNullable<FileValue['store']>;
export type EtcdValue = Exclude<FileValue['register'], 'file'>;

/** As the program gets it (key.ts), but for what follows from several keys or this machine (build.ts). */
export type FileKeys = Made<typeof fileSchema>;
export type GatewayKeys = NonNullable<FileKeys['gateway']>;
export type SmtpKeys = GatewayKeys['smtp'];
export type StoreKeys = NonNullable<FileKeys['store']>;
