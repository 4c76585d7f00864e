/**
 * From checked file values to the frozen configuration: names that carry units, secrets resolved to bytes,
 * file names made absolute against the folder of the configuration file. Reads secret files and nothing else.
 */
import { readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { SECRET_CHARACTERS_MIN, routeName } from './checks.js';
import { pathText } from './problems.js';
import type { Path, Problems } from './problems.js';
import type { RegisterChoice } from '../register/running/open-register.js';
import type { EtcdValue, FileValue, GatewayValue, SinkValue, StoreValue } from './schema.js';
import type {
  Address, AdminConfig, Config, DeliveryConfig, GatewayConfig, LinkTlsConfig, LogConfig, MirrorConfig,
  RouteConfig, SinkConfig, SmtpConfig, StoreClientConfig, StoreConfig, StorePeerConfig,
} from './types.js';
import { hookOptions } from './hooks.js';
import { workerIds } from './workers.js';

export interface BuildContext {
  /** As the operator named it, for messages. */
  readonly file: string;
  /** FILE:LINE of a key. */
  place(path: Path): string;
  /** File names in the configuration are relative to this folder. */
  readonly folder: string;
  readonly up: boolean;
  readonly environmentSecret: string | undefined;
  readonly stateDir: string | undefined;
  /** Where an upper process serves the register file. */
  readonly registerDir: string | undefined;
}

/** What can still go wrong here (an unreadable secret file) is added to `problems`. */
export function buildConfig(file: FileValue, context: BuildContext, problems: Problems): Config {
  const daemons = file.stores ?? (file.store === undefined ? [] : [file.store]);
  const secretOfGateway =
    file.gateway === undefined ? undefined : secretBytes(file.gateway, ['gateway'], context, problems);
  const etcd = file.register === 'file' ? undefined : etcdChoice(file.register, context, problems);
  return freeze({
    file: context.file,
    gateway: file.gateway === undefined ? undefined : gatewayConfig(
      file, file.gateway, secretOfGateway ?? new Uint8Array(), etcd, context, problems,
    ),
    stores: daemons.map((store, i) => {
      const at = file.stores === undefined ? ['store'] : ['stores', i];
      return { ...storeConfig(file, store, at, secretOfGateway, context, problems), register: etcd };
    }),
    sink: file.sink === undefined ? undefined : sinkConfig(file.sink, context),
  });
}

function gatewayConfig(
  file: FileValue, gateway: GatewayValue, secret: Uint8Array, etcd: RegisterChoice | undefined,
  context: BuildContext, problems: Problems,
): GatewayConfig {
  const stateDir = context.stateDir ?? absolute(gateway.state_dir, context);
  return {
    id: gateway.id,
    workers: gateway.workers,
    group: groupOf(gateway),
    rescue: gateway.rescue === 'on',
    host: gateway.host,
    hostname: gateway.hostname ?? os.hostname().toLowerCase(),
    smtp: smtpConfig(gateway.smtp, context, problems),
    delivery: deliveryConfig(gateway.delivery),
    reports: { afterMs: gateway.reports.delay_after, isUnasked: gateway.reports.delay_unasked },
    routes: gateway.routes.map((route) => routeConfig(route, gateway)),
    memory: {
      limitBytes: gateway.memory.limit, acceptShare: gateway.memory.accept,
      nextHopShare: gateway.memory.next_hop,
    },
    mirror: mirrorConfig(gateway.mirror, context),
    secret,
    stores: storePeers(file, gateway),
    learnStores: etcd === undefined ? undefined : learnStores(file, gateway),
    admin: adminConfig(gateway.admin),
    log: { ...logConfig(gateway.log, context), mail: gateway.log.mail },
    stateDir,
    register: etcd ?? fileChoice(stateDir, gateway.workers, context),
    insecure: gateway.insecure,
    oneHost: context.up,
    places: filePlaces(gateway, context),
  };
}

/** Of keys whose files are judged when all else is known to be good (cli/reception-files.ts). */
function filePlaces({ smtp }: GatewayValue, { place }: BuildContext): GatewayConfig['places'] {
  const at = (...keys: readonly (string | number)[]): Path => ['gateway', ...keys];
  const paths: readonly Path[] = [
    ...['cert', 'key', 'client_ca'].map((key) => at('smtp', 'tls', key)),
    ...['cert', 'key', 'ca'].map((key) => at('mirror', 'tls', key)),
    ...['users', 'recipients'].map((key) => at('smtp', key)),
    ...smtp.hooks.map((_hook, index) => at('smtp', 'hooks', index, 'module')),
  ];
  return Object.fromEntries(paths.map((path) => [pathText(path), place(path)]));
}

/** With workers the upper process keeps the file; under `up` that one does. */
function fileChoice(
  stateDir: string | undefined, workers: number, { registerDir }: BuildContext,
): RegisterChoice {
  if (registerDir !== undefined) return { kind: 'socket', stateDir: registerDir };
  return { kind: 'file', stateDir: stateDir ?? '', isServed: workers > 1 };
}

function etcdChoice(value: EtcdValue, context: BuildContext, problems: Problems): RegisterChoice {
  return {
    kind: 'etcd',
    endpoints: value.etcd,
    cluster: value.cluster,
    user: value.user ?? '',
    password: value.password_file === undefined ? '' : passwordText(value.password_file, context, problems),
    caFile: absolute(value.ca, context),
    certFile: absolute(value.cert, context),
    keyFile: absolute(value.key, context),
    operationsMax: value.max_txn_ops,
  };
}

function passwordText(file: string, context: BuildContext, problems: Problems): string {
  return secretText(file, ['register', 'password_file'], 'a file with a password', context, problems);
}

function addressText({ host, port }: Address): string {
  return `${host.includes(':') ? `[${host}]` : host}:${String(port)}`;
}

function usersByHttp(
  users: GatewayValue['smtp']['users'], context: BuildContext, problems: Problems,
): SmtpConfig['usersByHttp'] {
  if (users === undefined || typeof users === 'string') return undefined;
  const { http: url, timeout: timeoutMs, token_file: file } = users;
  return { url, timeoutMs, token: tokenText(file, 'users', context, problems) };
}

function recipientsByHttp(
  recipients: GatewayValue['smtp']['recipients'], context: BuildContext, problems: Problems,
): SmtpConfig['recipientsByHttp'] {
  if (recipients === undefined || typeof recipients === 'string') return undefined;
  const { http: url, timeout: timeoutMs, token_file: file } = recipients;
  const token = tokenText(file, 'recipients', context, problems);
  return { url, timeoutMs, token, keptMs: recipients.cache, missingKeptMs: recipients.cache_missing };
}

function srsConfig(
  srs: GatewayValue['smtp']['srs'], context: BuildContext, problems: Problems,
): SmtpConfig['srs'] {
  if (srs === undefined) return undefined;
  const at: Path = ['gateway', 'smtp', 'srs', 'secret_file'];
  const text = secretText(srs.secret_file, at, 'a file with a secret, one a line', context, problems);
  const secrets = text.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== '');
  const least = SECRET_CHARACTERS_MIN;
  if (secrets.some((secret) => secret.length < least)) {
    problems.add(at, `expected secrets of ${String(least)} characters or more, found a shorter one`);
  }
  return { domain: srs.domain, secrets };
}

function tokenText(
  file: string | undefined, key: 'users' | 'recipients', context: BuildContext, problems: Problems,
): string {
  if (file === undefined) return '';
  return httpSecret(file, ['gateway', 'smtp', key, 'token_file'], 'a file with a token', context, problems);
}

/** It goes into a field of an HTTP header, which holds nothing else. */
function httpSecret(file: string, at: Path, what: string, context: BuildContext, problems: Problems): string {
  const text = secretText(file, at, what, context, problems);
  if (/^[ -~]*$/.test(text)) return text;
  problems.add(at, `expected ${what}, one line of printable ASCII, found something else in '${file}'`);
  return '';
}

/** What the file holds, without outer blanks. */
function secretText(file: string, at: Path, what: string, context: BuildContext, problems: Problems): string {
  const name = path.resolve(context.folder, file);
  const found = (text: string): void => { problems.add(at, `expected ${what}, found ${text}`); };
  try {
    const text = readFileSync(name, 'utf8').trim();
    if (text === '') found(`nothing in '${name}'`);
    return text;
  } catch (error) {
    found(`'${name}': ${(error as NodeJS.ErrnoException).code ?? String(error)}`);
    return '';
  }
}

/** Every process that may serve a queue of another, its own fellows among them. */
function groupOf({ id, workers, group }: GatewayValue): readonly string[] {
  const named = group.flatMap((member) => workerIds(member.id, member.workers ?? workers));
  return workers === 1 ? named : [...new Set([...named, ...workerIds(id, workers)])];
}

/** Admin ports of workers follow one another. */
function clientsOf(
  id: string, workers: number, secret: Uint8Array, admin: Address | undefined,
): readonly StoreClientConfig[] {
  return workerIds(id, workers).map((worker, index) => ({
    id: worker, secret,
    admin: admin === undefined || admin.port === 0 ? admin : { ...admin, port: admin.port + index },
  }));
}

function smtpConfig(
  smtp: GatewayValue['smtp'], context: BuildContext, problems: Problems,
): SmtpConfig {
  return {
    listen: smtp.listen.map(({ address, role, tls, proxy, ...listener }) => ({
      ...address, role, tls: tls ?? (smtp.tls === undefined ? 'off' : 'starttls'), proxyNetworks: proxy ?? [],
      xclientNetworks: listener.xclient ?? [], xclientLogin: listener.xclient_login,
      blocklists: listener.dnsbl ?? [],
    })),
    relayNetworks: smtp.relay_networks,
    relayCertificates: smtp.relay_certificates,
    usersFile: typeof smtp.users === 'string' ? absolute(smtp.users, context) : undefined,
    usersByHttp: usersByHttp(smtp.users, context, problems),
    hooks: smtp.hooks.map((hook, i) => hookOptions(hook, context.folder, (file) => {
      const at: Path = ['gateway', 'smtp', 'hooks', i, 'password_file'];
      return httpSecret(file, at, 'a file with a password', context, problems);
    })),
    recipientsFile: typeof smtp.recipients === 'string' ? absolute(smtp.recipients, context) : undefined,
    recipientsByHttp: recipientsByHttp(smtp.recipients, context, problems),
    srs: srsConfig(smtp.srs, context, problems),
    relayDomains: smtp.relay_domains,
    messageBytesMax: smtp.message_size_limit,
    recipientsMax: smtp.recipient_limit,
    connectionsMax: smtp.connections,
    connectionsPerClientMax: smtp.connections_per_client,
    bytesPerSecondMin: smtp.min_data_rate,
    hopsMax: smtp.hop_limit,
    rates: {
      client: smtp.limits.client, network: smtp.limits.network,
      user: { connections: 0, errors: 0, ...smtp.limits.user },
      sender: { connections: 0, errors: 0, ...smtp.limits.sender },
    },
    rateExempt: smtp.limits.exempt,
    resolvers: smtp.resolvers.map(addressText),
    postmaster: smtp.postmaster ?? '',
    commandTimeoutMs: smtp.command_timeout,
    dataTimeoutMs: smtp.data_timeout,
    tls: smtp.tls === undefined ? undefined : {
      certFile: path.resolve(context.folder, smtp.tls.cert),
      keyFile: path.resolve(context.folder, smtp.tls.key),
      clientCaFile:
        smtp.tls.client_ca === undefined ? undefined : path.resolve(context.folder, smtp.tls.client_ca),
    },
  };
}

function deliveryConfig(delivery: GatewayValue['delivery']): DeliveryConfig {
  const { timeouts } = delivery;
  return {
    retryFirstMs: delivery.retry.first,
    retryMaxMs: delivery.retry.max,
    lifetimeMs: delivery.lifetime,
    bounceLifetimeMs: delivery.bounce_lifetime,
    concurrency: delivery.concurrency,
    ordering: delivery.order,
    messagesPerConnection: delivery.messages_per_connection,
    connectionLifetimeMs: delivery.connection_lifetime,
    connectionIdleMs: delivery.connection_idle,
    stopTimeoutMs: delivery.stop_timeout,
    timeouts: {
      connectMs: timeouts.connect,
      greetingMs: timeouts.greeting,
      heloMs: timeouts.helo,
      mailMs: timeouts.mail,
      rcptMs: timeouts.rcpt,
      dataInitMs: timeouts.data_init,
      dataBlockMs: timeouts.data_block,
      dataDoneMs: timeouts.data_done,
      quitMs: timeouts.quit,
    },
  };
}

function routeConfig(route: GatewayValue['routes'][number], gateway: GatewayValue): RouteConfig {
  const ordering = route.order ?? gateway.delivery.order;
  return {
    domains: route.domains ?? (route.domain === undefined ? [] : [route.domain]),
    name: routeName(route),
    perDomain: route.queues === 'domain',
    lanes: route.lanes,
    nextHop: route.via,
    ordering,
    concurrency: ordering === 'strict' ? 1 : (route.concurrency ?? gateway.delivery.concurrency),
    lengthMax: route.length_limit,
    pipelinesAcross: ordering !== 'strict'
      && (route.pipeline_across_messages ?? gateway.delivery.pipeline_across_messages),
  };
}

function mirrorConfig(mirror: GatewayValue['mirror'], context: BuildContext): MirrorConfig {
  return {
    replicas: mirror.replicas,
    replicasMin: mirror.min_replicas,
    partitions: mirror.partitions,
    commitTimeoutMs: mirror.commit_timeout,
    heartbeatMs: mirror.heartbeat,
    failoverTimeoutMs: mirror.failover_timeout,
    leaseMs: mirror.lease,
    windowBytes: mirror.window,
    ringBytes: mirror.ring,
    replaceAfterMs: mirror.replace_after,
    rebalanceBytesPerSecond: mirror.rebalance_rate,
    blockMessages: mirror.block,
    tls: linkTls(mirror.tls, context),
  };
}

function linkTls(tls: StoreValue['tls'], context: BuildContext): LinkTlsConfig | undefined {
  if (tls === undefined) return undefined;
  return {
    caFile: path.resolve(context.folder, tls.ca), certFile: path.resolve(context.folder, tls.cert),
    keyFile: path.resolve(context.folder, tls.key),
  };
}

/** Those whose addresses the file says; of the others the register does. */
function storePeers(file: FileValue, { stores }: GatewayValue): readonly StorePeerConfig[] {
  if (stores === undefined) {
    return (file.stores ?? []).map(({ admin, ...store }) => peerConfig(store, admin.listen, store.weight));
  }
  return stores.flatMap(({ id, host, paths, admin, weight }) =>
    host === undefined || paths === undefined ? [] : [peerConfig({ id, host, paths }, admin, weight ?? 1)]);
}

function peerConfig(
  { id, host, paths }: Pick<StorePeerConfig, 'id' | 'host' | 'paths'>, admin: Address | undefined,
  weight: number,
): StorePeerConfig {
  return { id, host, paths, admin, weight };
}

function learnStores(file: FileValue, { stores }: GatewayValue): GatewayConfig['learnStores'] {
  if (stores === undefined) return { only: file.stores === undefined ? undefined : [] };
  return { only: stores.filter(({ paths }) => paths === undefined).map(({ id }) => id) };
}

function storeConfig(
  file: FileValue, store: StoreValue, at: Path, secretOfGateway: Uint8Array | undefined,
  context: BuildContext, problems: Problems,
): Omit<StoreConfig, 'register'> {
  const { gateway: owner } = file;
  const own = !context.up || owner === undefined || secretOfGateway === undefined
    ? []
    : clientsOf(owner.id, owner.workers, secretOfGateway, owner.admin.listen);
  const isOpen = file.register !== 'file' && store.gateways === undefined && own.length === 0;
  const group = (): Uint8Array => {
    const isOfGateway = !hasSecret(store) && secretOfGateway !== undefined;
    return isOfGateway ? secretOfGateway : secretBytes(store, at, context, problems);
  };
  const secretOfClient = (client: SecretHolder, i: number): Uint8Array =>
    hasSecret(client) ? secretBytes(client, [...at, 'gateways', i], context, problems) : group();
  const named = store.gateways?.flatMap((client, i) =>
    clientsOf(client.id, client.workers, secretOfClient(client, i), client.admin));
  return {
    id: store.id,
    host: store.host,
    paths: store.paths.map(({ name, address, advertise }) => ({ name, address, advertised: advertise })),
    gateways: named ?? own,
    groupSecret: isOpen ? group() : undefined,
    weight: store.weight,
    memoryLimitBytes: store.memory.limit,
    leaseMs: store.lease,
    windowBytes: store.window,
    ringBytes: store.ring,
    stopTimeoutMs: store.stop_timeout,
    stateDir: absolute(store.state_dir, context),
    spill: store.spill,
    admin: adminConfig(store.admin),
    log: logConfig(store.log, context),
    tls: linkTls(store.tls, context),
    insecure: store.insecure,
    oneHost: context.up,
  };
}

function sinkConfig(sink: SinkValue, context: BuildContext): SinkConfig {
  return {
    listen: sink.listen, admin: sink.admin, lmtp: sink.lmtp, verify: sink.verify,
    maildir: absolute(sink.maildir, context),
  };
}

function adminConfig(admin: GatewayValue['admin']): AdminConfig {
  return { listen: admin.listen, token: admin.token };
}

function logConfig(log: StoreValue['log'], context: BuildContext): LogConfig {
  return { level: log.level, file: absolute(log.file, context) };
}

interface SecretHolder {
  readonly secret?: string | undefined;
  readonly secret_file?: string | undefined;
}

function hasSecret({ secret, secret_file }: SecretHolder): boolean {
  return secret !== undefined || secret_file !== undefined;
}

function secretBytes(holder: SecretHolder, at: Path, context: BuildContext, problems: Problems): Uint8Array {
  if (holder.secret !== undefined) return Buffer.from(holder.secret, 'utf8');
  if (holder.secret_file === undefined) return Buffer.from(context.environmentSecret ?? '', 'utf8');
  const name = path.resolve(context.folder, holder.secret_file);
  try {
    const text = readFileSync(name, 'utf8').trim();
    if (text.length >= SECRET_CHARACTERS_MIN) return Buffer.from(text, 'utf8');
    problems.add([...at, 'secret_file'], `expected a file with at least ${String(SECRET_CHARACTERS_MIN)} `
      + `characters, found ${String(text.length)} in '${name}'`);
  } catch (error) {
    problems.add([...at, 'secret_file'], `expected a file that can be read, found '${name}': `
      + `${(error as NodeJS.ErrnoException).code ?? String(error)}`);
  }
  return new Uint8Array();
}

function absolute(name: string | undefined, context: BuildContext): string | undefined {
  return name === undefined ? undefined : path.resolve(context.folder, name);
}

/** Deep, but for byte arrays, which JavaScript can't freeze. */
function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}
