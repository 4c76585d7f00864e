/**
 * Rules between keys, judged after every single value is known to be good: what would be unsafe (one machine
 * that is both a gateway and its mirror), what can't work (a lease shorter than a failover), what contradicts
 * itself. The rule for the lease (docs/GUARANTEES.md "Links"): ≥ 3 × failover + 2 × heartbeat + 3 s of stall.
 */
import { isIP } from 'node:net';
import { addressText } from '../base/address-text.js';
import { foldCase } from '../base/fold-case.js';
import { Wildcards } from '../base/wildcards.js';
import type { Path } from './keys/key.js';
import type { EtcdValue, FileValue, GatewayValue, StoreValue } from './keys/schema.js';
import type { Address, NextHopValue } from './keys/values.js';
import { isSameHop } from './keys/values.js';
import { Problems, pathText } from './problems.js';
import type { Problem } from './problems.js';
import { DOMAINS_NAME_CHARACTERS_MAX, ROUTE_NAME_CHARACTERS_MAX } from '../gateway/queue/router.js';
import { isBelieved } from '../platform/node/dns/dns-client.js';
import { isLoopback, isWildcard } from '../platform/node/own-host.js';
import { hookName } from './hooks.js';
import { checkOpenRelay, hasRoute, isReachedAt } from './strangers.js';
import { workerIds } from './workers.js';

/** How long a process may stall (collector, disk, scheduler) without losing its lease. */
const STALL_MS = 3_000;
/** HMAC secrets shorter than this can be found by trying, from one recorded handshake. */
export const SECRET_CHARACTERS_MIN = 16;
/** What may be left out because etcd says it. */
const OR_ETCD = ' (or register: {etcd: …}, by which they find each other)';
/** Of keys/values.ts, identifier(). */
const IDENTIFIER_CHARACTERS_MAX = 63;

export interface CheckContext {
  /** The file describes all processes of `twinpost up`: one machine on purpose. */
  readonly up: boolean;
  /** TWINPOST_SECRET is set: sections without a secret use it. */
  readonly secretFromEnvironment: boolean;
  /** The folder that the command line names; undefined: none. */
  readonly stateDir: string | undefined;
  /** An upper process keeps the register's file, for all its gateways. */
  readonly isRegisterServed: boolean;
}

export function checkFile(file: FileValue, context: CheckContext): Problem[] {
  const problems = new Problems();
  if (file.gateway === undefined && file.store === undefined && file.stores === undefined
    && file.sink === undefined) {
    problems.add([], 'expected at least one of the sections gateway, store, stores, sink, found none');
  }
  checkPorts(file, context, problems);
  if (file.gateway !== undefined) checkGateway(file, file.gateway, context, problems);
  if (file.register === 'file') checkFileRegister(file.gateway, context, problems);
  else checkEtcd(file, file.register, problems);
  if (file.store !== undefined) checkStore(file, file.store, ['store'], context, problems);
  file.stores?.forEach((store, i) => { checkStore(file, store, ['stores', i], context, problems); });
  if (file.stores !== undefined) {
    unique(file.stores.map((store) => store.id), (i) => ['stores', i, 'id'], 'store id', problems);
  }
  return problems.all;
}

function checkGateway(
  file: FileValue, gateway: GatewayValue, context: CheckContext, problems: Problems,
): void {
  const path: Path = ['gateway'];
  checkMirror(gateway, problems);
  checkPeers(file, gateway, context, problems);
  checkRoutes(gateway, problems);
  checkAdmin(gateway, path, problems);
  checkSecret(gateway, path, context, problems);
  unique((gateway.group ?? []).map(({ id }) => id), (i) => [...path, 'group', i], 'id', problems);
  const { delivery, memory, smtp } = gateway;
  if (delivery.retry.max < delivery.retry.first) {
    problems.add([...path, 'delivery', 'retry', 'max'], `expected at least retry.first `
      + `(${String(delivery.retry.first)} ms), found ${String(delivery.retry.max)} ms`);
  }
  // A message to two queues stands there four times until its mirrors have it; kept changes are a sixteenth.
  const leastBytes = 5 * smtp.message_size_limit * gateway.workers;
  if (memory.limit !== undefined && memory.limit < leastBytes) {
    const each = gateway.workers === 1 ? '' : ' × workers';
    problems.add([...path, 'memory', 'limit'], `expected at least 5 × smtp.message_size_limit${each} `
      + `(${String(leastBytes)} bytes), found ${String(memory.limit)} bytes`);
  }
  if (gateway.workers > 1) checkWorkers(gateway, problems);
  checkListeners(gateway, problems);
  checkHooks(gateway, problems);
  checkDkim(gateway, problems);
  checkVerp(gateway, problems);
  checkFeedback(gateway, problems);
  checkSources(gateway, problems);
  checkResolvers(gateway, problems);
  checkOpenRelay(smtp, problems);
  if (isIP(gateway.hostname ?? '') !== 0) {
    problems.add([...path, 'hostname'], `expected the name of this host, found its address `
      + `'${gateway.hostname ?? ''}', which others refuse in EHLO`);
  }
}

/** Passwords are taken within TLS only. */
function checkSubmission(
  smtp: GatewayValue['smtp'], tls: string | undefined, at: Path, problems: Problems,
): void {
  if (smtp.users === undefined) {
    problems.add(
      [...at, 'role'], `expected 'smtp.users: FILE', which says who may submit, found none`,
    );
  }
  if (tls === 'off') {
    problems.add(
      [...at, 'tls'],
      'expected starttls or implicit for submission: passwords are taken within TLS only, found off',
    );
  } else if (tls === undefined && smtp.tls === undefined) {
    problems.add(
      [...at, 'role'],
      `expected TLS for submission ('smtp.tls: {cert: FILE, key: FILE}'): passwords are taken within it `
        + 'only, found none',
    );
  }
}

/** Every mail server that strangers reach must take mail to its postmaster (RFC 5321 4.5.1). */
function checkPostmaster(
  { smtp: { listen, postmaster, recipients }, routes }: GatewayValue, problems: Problems,
): void {
  if (!isReachedAt(listen)) return;
  if (postmaster === undefined) {
    problems.add(
      ['gateway', 'smtp'],
      `expected 'postmaster: ADDRESS' for a listener beyond loopback, or behind a balancer (proxy): every `
        + 'mail server must take mail to its postmaster (RFC 5321 4.5.1), found none',
    );
    return;
  }
  // A table of recipients may name its route.
  if (recipients !== undefined) return;
  const domain = postmaster.slice(postmaster.lastIndexOf('@') + 1);
  if (hasRoute(new Set(routes.flatMap(domainsOf)), domain)) return;
  problems.add(
    ['gateway', 'smtp', 'postmaster'],
    `expected an address whose domain has a route, found '${postmaster}', to which none of gateway.routes `
      + 'leads: its mail would be refused with 550',
  );
}

function checkListeners(gateway: GatewayValue, problems: Problems): void {
  const { smtp } = gateway;
  checkPostmaster(gateway, problems);
  for (const [index, listener] of smtp.listen.entries()) {
    const { role, tls, dnsbl, authentication_results, xclient, xclient_login } = listener;
    const at: Path = ['gateway', 'smtp', 'listen', index];
    if (xclient_login && xclient === undefined) {
      problems.add(
        [...at, 'xclient_login'],
        `expected 'xclient: [NETWORK, …]' beside it, which says whose logins are believed, found none`,
      );
    }
    if (xclient_login && smtp.users !== undefined && typeof smtp.users !== 'string') {
      problems.add(
        [...at, 'xclient_login'],
        `expected a file of users with it ('smtp.users: FILE'): whom XCLIENT names was asked for nowhere`,
      );
    }
    if (dnsbl !== undefined && role === 'submission') {
      problems.add([...at, 'dnsbl'], 'expected blocklists on relay listeners only: users come from anywhere');
    }
    if (authentication_results && role === 'submission') {
      problems.add(
        [...at, 'authentication_results'],
        'expected it on relay listeners only: who submits has shown a password, and comes from anywhere',
      );
    }
    if (role === 'submission') checkSubmission(smtp, tls, at, problems);
    if (tls === undefined || tls === 'off' || smtp.tls !== undefined) continue;
    problems.add(
      [...at, 'tls'],
      `expected 'smtp.tls: {cert: FILE, key: FILE}' for TLS on a listener, found no certificate`,
    );
  }
  if (smtp.relay_certificates.length > 0 && smtp.tls?.client_ca === undefined) {
    problems.add(
      ['gateway', 'smtp', 'relay_certificates'],
      `expected 'smtp.tls.client_ca: FILE', which says whose certificates count, found none`,
    );
  }
}

function checkHooks({ insecure, smtp: { hooks } }: GatewayValue, problems: Problems): void {
  const at: Path = ['gateway', 'smtp', 'hooks'];
  hooks.forEach(({ rspamd, module, password_file, threads, heap }, i) => {
    if ((rspamd === undefined) === (module === undefined)) {
      const found = rspamd === undefined ? 'neither' : 'both';
      problems.add([...at, i], `expected one of rspamd: URL and module: FILE, found ${found}`);
    } else if (module !== undefined && password_file !== undefined) {
      problems.add([...at, i, 'password_file'], 'expected it beside rspamd only, found it beside module');
    } else if (rspamd !== undefined && (threads !== undefined || heap !== undefined)) {
      const key = threads === undefined ? 'heap' : 'threads';
      problems.add([...at, i, key], 'expected it beside module only, found it beside rspamd');
    }
    const isSafe = rspamd === undefined || rspamd.startsWith('https:') || isLoopback(hostOfUrl(rspamd));
    if (isSafe || insecure) return;
    problems.add([...at, i, 'rspamd'], `expected https:// for a server outside loopback, found '${rspamd}': `
      + 'mail would cross the network in clear; on a network you trust say insecure: true');
  });
  unique(hooks.map(hookName), (i) => [...at, i], 'name of a hook', problems);
}

/** What one that is not believed says in place of one that is would be as if nothing were signed. */
function checkResolvers({ dns: { resolvers, trust_ad } }: GatewayValue, problems: Problems): void {
  const believed = resolvers.find(({ host }) => isBelieved(host, trust_ad));
  const at = resolvers.findIndex(({ host }) => !isBelieved(host, trust_ad));
  const other = resolvers[at];
  if (believed === undefined || other === undefined) return;
  const [one, another] = [believed, other].map(({ host, port }) => addressText(host, port));
  problems.add(['gateway', 'dns', 'resolvers', at], `expected all of them on this machine, or none, or `
    + `trust_ad: true, found '${String(another)}' beside '${String(one)}', which alone is believed about `
    + 'DNSSEC: where that has no answer, mail would go by an unsigned one');
}

/** What its keys are is judged with their files (cli/reception-files.ts). */
function checkDkim({ dkim, delivery: { lifetime } }: GatewayValue, problems: Problems): void {
  const at: Path = ['gateway', 'dkim'];
  dkim.forEach(({ expires_after }, i) => {
    if (expires_after === undefined || expires_after >= lifetime) return;
    problems.add([...at, i, 'expires_after'], `expected at least delivery.lifetime (${String(lifetime)} ms), `
      + `found ${String(expires_after)} ms: the signature of mail that waits would end before it arrives`);
  });
  const names = dkim.map(({ domain, selector }) => `${selector}._domainkey.${domain}`);
  unique(names, (i) => [...at, i, 'selector'], 'name of a key', problems);
}

/** A file of one machine: what each gateway kept in its own, the others of its group would not know. */
function checkFileRegister(
  gateway: GatewayValue | undefined, context: CheckContext, problems: Problems,
): void {
  if (gateway === undefined || context.up || context.isRegisterServed) return;
  const other = gateway.group?.find(({ id }) => id !== gateway.id);
  if (other !== undefined) {
    problems.add(
      ['gateway', 'group'],
      `expected 'register: {etcd: [URL, …], cluster: NAME}' at the top of the file for a group of gateways, `
        + `found register: file: ${gateway.id} and ${other.id} could not know what the other one holds; set `
        + `up etcd (docs/REGISTER.md), or leave group out`,
    );
  }
  if (gateway.state_dir === undefined && context.stateDir === undefined) {
    problems.add(
      ['gateway', 'state_dir'],
      'expected a folder, in which register: file keeps who holds what, found nothing',
    );
  }
}

function checkEtcd(file: FileValue, etcd: EtcdValue, problems: Problems): void {
  const together = (first: 'user' | 'cert', second: 'password_file' | 'key'): void => {
    if ((etcd[first] === undefined) === (etcd[second] === undefined)) return;
    const [given, missing] = etcd[first] === undefined ? [second, first] : [first, second];
    problems.add(['register', given], `expected ${missing} beside it, found nothing`);
  };
  together('user', 'password_file');
  together('cert', 'key');
  const sections =
    [file.gateway, file.store, ...(file.stores ?? [])].filter((section) => section !== undefined);
  const isTrusted = sections.every(({ insecure }) => insecure);
  etcd.etcd.forEach((url, i) => {
    if (url.startsWith('https:')) return;
    const at: Path = ['register', 'etcd', i];
    if (etcd.ca !== undefined || etcd.cert !== undefined) {
      problems.add(at, `expected https:// with ca or cert, found '${url}'`);
    } else if (!isTrusted && !isLoopback(hostOfUrl(url))) {
      problems.add(
        at,
        `expected https:// for an etcd outside loopback, found '${url}': the say over every queue would `
          + `cross the network in clear; on a network you trust say insecure: true (of the gateway, of the `
          + `store)`,
      );
    }
  });
  unique(etcd.etcd, (i) => ['register', 'etcd', i], 'address', problems);
}

/** Each worker has an admin port and an id made of the gateway's, and all share the ports for mail. */
function checkWorkers({ admin, id, workers }: GatewayValue, problems: Problems): void {
  const last = `${id}-${String(workers)}`;
  if (last.length > IDENTIFIER_CHARACTERS_MAX) {
    problems.add(['gateway', 'id'], `expected an id that leaves room for a worker's number `
      + `(${String(IDENTIFIER_CHARACTERS_MAX)} characters with it), found ${String(last.length)}`);
  }
  for (const key of ['listen', 'probes'] as const) {
    const port = admin[key]?.port ?? 0;
    if (port === 0 || port + workers - 1 <= 65_535) continue;
    problems.add(
      ['gateway', 'admin', key],
      `expected room for ${String(workers)} ports, one a worker, found ${String(port)}`,
    );
  }
}

/** An address of this machine that a process of the file listens on, and its key. */
interface Listened {
  readonly at: Path;
  readonly address: Address;
}

function listenedOfGateway({ smtp, admin, workers }: GatewayValue): Listened[] {
  return [
    ...smtp.listen.map(({ address }, i) => ({ at: ['gateway', 'smtp', 'listen', i], address })),
    ...Array.from({ length: workers }, (_none, worker) => listenedOfAdmin(admin, ['gateway'], worker)).flat(),
  ];
}

function listenedOfStore({ paths, admin }: StoreValue, at: Path): Listened[] {
  return [
    ...paths.map(({ address }, i) => ({ at: [...at, 'paths', i, 'address'], address })),
    ...listenedOfAdmin(admin, at, 0),
  ];
}

/** Of a worker, from 0. */
function listenedOfAdmin({ listen, probes }: StoreValue['admin'], at: Path, worker: number): Listened[] {
  const above = ({ host, port }: Address): Address => ({ host, port: port === 0 ? 0 : port + worker });
  return [
    { at: [...at, 'admin', 'listen'], address: above(listen) },
    ...(probes === undefined ? [] : [{ at: [...at, 'admin', 'probes'], address: above(probes) }]),
  ];
}

function listenedOfSink({ listen, admin }: NonNullable<FileValue['sink']>): Listened[] {
  const own = [{ at: ['sink', 'listen'], address: listen }];
  return admin === undefined ? own : [...own, { at: ['sink', 'admin'], address: admin }];
}

/** By process; but those of `up` share a machine. */
function checkPorts(file: FileValue, { up }: CheckContext, problems: Problems): void {
  const { gateway, store, stores, sink } = file;
  const processes = [
    gateway === undefined ? [] : listenedOfGateway(gateway),
    store === undefined ? [] : listenedOfStore(store, ['store']),
    ...(stores ?? []).map((each, i) => listenedOfStore(each, ['stores', i])),
    sink === undefined ? [] : listenedOfSink(sink),
  ];
  for (const listened of up ? [processes.flat()] : processes) checkListened(listened, problems);
}

/** Where one listens, nobody else can; on all addresses of the machine, that is each of them. */
function checkListened(listened: readonly Listened[], problems: Problems): void {
  const all: Listened[] = [];
  for (const each of listened) {
    const { host, port } = each.address;
    const other = port === 0 ? undefined : all.find(({ address }) => address.port === port
      && (address.host === host || isWildcard(address.host) || isWildcard(host)));
    if (other === undefined) all.push(each);
    else {
      const taken = other.address.host === host ? '' : ` (${addressText(other.address.host, port)})`;
      const found = `${addressText(host, port)}, which ${pathText(other.at)}${taken} has`;
      problems.add(each.at, `expected an address of its own, found ${found}`);
    }
  }
}

function checkMirror(gateway: GatewayValue, problems: Problems): void {
  const { mirror } = gateway;
  const at = (key: string): Path => ['gateway', 'mirror', key];
  if (mirror.min_replicas > mirror.replicas) {
    problems.add(
      at('min_replicas'),
      `expected at most replicas (${String(mirror.replicas)}), found ${String(mirror.min_replicas)}`,
    );
  }
  checkOneOf(mirror.tls !== undefined, gateway.insecure, at('tls'), problems);
  // Half of it is what tells a path that is silent from one that speaks
  // (gateway/mirror/link/heartbeat-timer.ts).
  if (mirror.failover_timeout < 4 * mirror.heartbeat) {
    problems.add(at('failover_timeout'), `expected at least 4 × heartbeat (${String(4 * mirror.heartbeat)} `
      + `ms), found ${String(mirror.failover_timeout)} ms`);
  }
  const leaseMin = leaseMinMs(mirror.failover_timeout, mirror.heartbeat);
  if (mirror.lease < leaseMin) {
    problems.add(at('lease'), `expected at least 3 × failover_timeout + 2 × heartbeat + 3s `
      + `(${String(leaseMin)} ms), found ${String(mirror.lease)} ms`);
  }
}

export function leaseMinMs(failoverMs: number, heartbeatMs: number): number {
  return 3 * failoverMs + 2 * heartbeatMs + STALL_MS;
}

function checkPeers(
  file: FileValue, gateway: GatewayValue, context: CheckContext, problems: Problems,
): void {
  const path: Path = ['gateway', 'stores'];
  const derived = gateway.stores === undefined;
  if (derived && file.stores === undefined) {
    if (file.register !== 'file') return checkLearned(gateway, file.register, problems);
    const text = `expected the stores that hold this gateway's mirrors${OR_ETCD}, found nothing`;
    problems.add(path, text);
    return;
  }
  gateway.stores?.forEach((peer, i) => { checkNamed(peer, [...path, i], file.register, problems); });
  const peers: readonly NamedPeer[] = gateway.stores ?? file.stores ?? [];
  const { replicas } = gateway.mirror;
  if (peers.length < replicas) {
    problems.add(
      derived ? ['stores'] : path,
      `expected at least replicas (${String(replicas)}) stores, found ${String(peers.length)}`,
    );
  }
  // No copy of its own mail goes to its own host. It knows the store there all the same: a gateway that it
  // rescues has copies on it.
  const isShort = peers.filter(({ host }) => host !== gateway.host).length < replicas;
  peers.forEach((peer, i) => {
    const at: Path = derived ? ['stores', i] : [...path, i];
    if (!context.up && isShort && peer.host === gateway.host) {
      problems.add([...at, 'host'], `expected a host other than the gateway's own, found '${peer.host}': its `
        + `death would take the gateway and a mirror`);
    }
    if (derived || peer.paths === undefined) return;
    checkPaths(peer.paths, at, gateway.insecure || gateway.mirror.tls !== undefined, problems);
  });
  if (!derived) {
    unique(peers.map((peer) => peer.id), (i) => [...path, i, 'id'], 'store id', problems);
    checkAddresses(peers, path, problems);
  }
  // Any two stores may hold the two copies of a queue: placement looks at their load, not at hosts.
  const hosts = peers.flatMap(({ host }) => (host === undefined ? [] : [host]));
  if (context.up || replicas === 1 || hosts.length < peers.length) return;
  unique(hosts, (i) => [...(derived ? ['stores'] : path), i, 'host'], 'host of stores', problems);
}

/** Two stores, or two paths of one, at one address are one store twice, or one path. */
function checkAddresses(peers: readonly NamedPeer[], path: Path, problems: Problems): void {
  const ways: Path[] = [];
  const addresses: string[] = [];
  peers.forEach(({ paths = [] }, i) => {
    paths.forEach(({ address: { host, port } }, k) => {
      addresses.push(addressText(host, port));
      ways.push([...path, i, 'paths', k, 'address']);
    });
  });
  unique(addresses, (i) => ways[i] ?? path, 'address of stores', problems);
}

interface PathValue {
  readonly name: string;
  readonly address: Address;
}

interface NamedPeer {
  readonly id: string;
  readonly host?: string | undefined;
  readonly paths?: readonly PathValue[] | undefined;
}

/** All of it is said here, or, with etcd, all but its id is told there. */
function checkNamed(
  peer: NamedPeerValue, at: Path, register: FileValue['register'], problems: Problems,
): void {
  const { host, paths, admin, weight } = peer;
  const keys = Object.entries({ host, paths, admin, weight });
  const said = keys.filter(([, value]) => value !== undefined).map(([key]) => key).join(' and ');
  if (host !== undefined && paths !== undefined) return;
  if (register === 'file') {
    const found = said === '' ? 'its id alone' : said;
    problems.add(at, `expected host and paths of this store${OR_ETCD}, found ${found}`);
  } else if (said !== '') {
    const wish = 'the id alone, so that etcd says the rest, or both host and paths';
    problems.add(at, `expected ${wish}, found ${said}`);
  }
}

type NamedPeerValue = NonNullable<GatewayValue['stores']>[number];

/** Of stores that etcd will name nothing is known yet, but that they are on other machines if etcd is. */
function checkLearned({ insecure, mirror }: GatewayValue, etcd: EtcdValue, problems: Problems): void {
  if (insecure || mirror.tls !== undefined || isOnThisMachine(etcd)) return;
  problems.add(
    ['gateway', 'mirror', 'tls'],
    'expected TLS of the links (ca, cert, key) to the stores that etcd names, found nothing: mail would '
      + 'cross the network in clear; on a network you trust say insecure: true',
  );
}

function isOnThisMachine({ etcd }: EtcdValue): boolean {
  return etcd.every((url) => isLoopback(hostOfUrl(url)));
}

function hostOfUrl(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '');
}

function checkPaths(paths: readonly PathValue[], at: Path, isAllowed: boolean, problems: Problems): void {
  unique(paths.map((path) => path.name), (i) => [...at, 'paths', i, 'name'], 'path name', problems);
  paths.forEach((path, i) => {
    if (isAllowed || isLoopback(path.address.host)) return;
    problems.add(
      [...at, 'paths', i, 'address'],
      `expected TLS (mirror.tls of a gateway, tls of a store) for an address outside loopback, found `
        + `'${path.address.host}' without: mail would cross the network in clear; on a network you trust say `
        + `insecure: true`,
    );
  });
}

function checkOneOf(hasTls: boolean, insecure: boolean, path: Path, problems: Problems): void {
  if (hasTls && insecure) problems.add(path, 'expected one of tls and insecure: true, found both');
}

function checkSources({ sources, routes }: GatewayValue, problems: Problems): void {
  const at: Path = ['gateway', 'sources'];
  unique(sources.map(({ address }) => address), (i) => [...at, i, 'address'], 'address of sources', problems);
  routes.forEach((route, i) => {
    route.sources?.forEach((said, k) => {
      if (sources.some(({ address, name }) => said === address || said === name)) return;
      problems.add(
        ['gateway', 'routes', i, 'sources', k],
        `expected an address or a name of gateway.sources, found '${said}'`,
      );
    });
  });
}

/** By domain and prefix an address says which route it was made for. */
function checkVerp({ routes }: GatewayValue, problems: Problems): void {
  const made = routes.flatMap(({ verp }, i) => (verp === undefined ? [] : [{ verp, i }]));
  unique(
    made.map(({ verp: { domain, prefix } }) => `${prefix}+…@${domain}`),
    (at) => ['gateway', 'routes', made[at]?.i ?? 0, 'verp', 'prefix'], 'return address (domain and prefix)',
    problems,
  );
}

/** What is forwarded there would come back, and bounce to whoever has sent the report. */
function checkFeedback({ smtp: { feedback }, routes }: GatewayValue, problems: Problems): void {
  const { address = '', forward_to: to } = feedback ?? {};
  if (to === undefined) return;
  // As they are known when mail comes to them (gateway/returned/return-paths.ts).
  const folded = foldCase(to);
  const isReturn = routes.some(({ verp }) =>
    verp !== undefined && folded.startsWith(`${verp.prefix}+`) && folded.endsWith(`@${verp.domain}`));
  if (!isReturn && folded !== foldCase(address)) return;
  const found = isReturn ? 'a return address of a route (verp)' : "where reports come in ('address')";
  problems.add(
    ['gateway', 'smtp', 'feedback', 'forward_to'],
    `expected the address of somebody who reads them, found '${to}', ${found}: each report would come back, `
      + 'and bounce',
  );
}

function checkRoutes(gateway: GatewayValue, problems: Problems): void {
  const domains: string[] = [];
  const paths: Path[] = [];
  gateway.routes.forEach((route, i) => {
    const at: Path = ['gateway', 'routes', i];
    // One that nothing but a name leads to is for recipients of which a table says it.
    const isNamed = route.name !== undefined && gateway.smtp.recipients !== undefined;
    const [hasOne, hasList] = [route.domain !== undefined, route.domains !== undefined];
    if (hasOne === hasList && (hasOne || !isNamed)) {
      const alone = hasOne || route.name === undefined ? '' : ' (a name alone needs smtp.recipients)';
      problems.add(at, `expected one of domain and domains, found ${hasOne ? 'both' : 'neither'}${alone}`);
    }
    if (route.order === 'strict' && route.concurrency !== undefined && route.concurrency !== 1) {
      problems.add([...at, 'concurrency'], `expected 1 or nothing with order: strict (one message in `
        + `flight), found ${String(route.concurrency)}`);
    }
    if (route.lanes > 1 && route.via[0]?.isByMx === true) {
      problems.add(
        [...at, 'lanes'],
        `expected 1 or nothing with via: mx (a queue for each domain), found ${String(route.lanes)}`,
      );
    }
    if (route.lanes === 1 && route.lanes_by === 'sender') {
      problems.add([...at, 'lanes_by'], 'expected lanes above 1 beside it, found sender alone');
    }
    checkName(route, at, problems);
    checkHops(route, at, problems);
    checkOwnListeners(gateway, route, at, problems);
    checkRouteTls(route, at, problems);
    checkHosts(route, at, problems);
    checkRouteAuth(route, at, problems);
    checkConditions(gateway, i, problems);
    if (route.when !== undefined) return;
    for (const domain of domainsOf(route)) {
      domains.push(domain);
      paths.push(at);
    }
  });
  unique(domains, (i) => paths[i] ?? [], 'domain of a route without when', problems);
  if (gateway.reports.without_route === 'refuse' && !domains.includes('*')) {
    problems.add(
      ['gateway', 'routes'],
      `expected a route for reports to senders of any domain (domain: '*'), or 'reports: discard' beside `
        + 'routes, found neither: senders elsewhere would not learn that their mail failed',
    );
  }
  unique(gateway.routes.map(routeName), (i) => ['gateway', 'routes', i, 'name'], 'queue name', problems);
}

/** Queues are named by it, with more behind it (gateway/queue/router.ts). */
function checkName(route: GatewayValue['routes'][number], at: Path, problems: Problems): void {
  const isPerDomain = route.queues === 'domain' || route.via[0]?.isByMx === true;
  const max = isPerDomain ? DOMAINS_NAME_CHARACTERS_MAX : ROUTE_NAME_CHARACTERS_MAX;
  const { length } = routeName(route);
  if (length <= max) return;
  const of = isPerDomain ? 'a route with a queue for each domain' : 'a route';
  const text = `expected at most ${String(max)} characters as the name of ${of}, found ${String(length)}`;
  problems.add([...at, 'name'], text);
}

function domainsOf({ domain, domains }: GatewayValue['routes'][number]): readonly string[] {
  return domains ?? (domain === undefined ? [] : [domain]);
}

function checkConditions({ routes, smtp }: GatewayValue, index: number, problems: Problems): void {
  const { when, name } = routes[index] ?? {};
  if (when === undefined) return;
  const at: Path = ['gateway', 'routes', index];
  if (name === undefined) problems.add(at, 'expected a name for a route with when, found none');
  const { senders, recipients, listeners } = when;
  if (senders === undefined && recipients === undefined && listeners === undefined) {
    problems.add([...at, 'when'], 'expected senders, recipients or listeners, found none of them');
  }
  for (const [key, patterns = []] of [['senders', senders], ['recipients', recipients]] as const) {
    patterns.forEach((pattern, i) => {
      if (/[@*]/.test(pattern) || (key === 'senders' && pattern === '<>')) return;
      const orNull = key === 'senders' ? ", or '<>'" : '';
      problems.add(
        [...at, 'when', key, i],
        `expected a pattern of addresses, with @ or * (such as '*@${pattern}')${orNull}, found '${pattern}'`,
      );
    });
  }
  const ours = smtp.listen.map(({ address: { host, port } }) => addressText(host, port));
  (listeners ?? []).forEach((pattern, i) => {
    const wildcards = new Wildcards([pattern]);
    if (ours.some((listener) => wildcards.matches(listener))) return;
    problems.add(
      [...at, 'when', 'listeners', i],
      `expected an address of smtp.listen (${ours.join(', ')}), found '${pattern}'`,
    );
  });
}

type RouteValue = GatewayValue['routes'][number];
type TlsKey = RouteValue['tls'];

/** What a route that says nothing has. */
export function tlsLevel(said: TlsKey, isTlsFirst: boolean): NonNullable<TlsKey> {
  return said ?? (isTlsFirst ? 'encrypt' : 'may');
}

interface RouteTerms<Auth> {
  readonly tls?: TlsKey;
  readonly auth?: Auth | undefined;
  readonly caFile?: string | undefined;
  readonly serverName?: string | undefined;
}

/** What is in force with one host of a route: its own, else the route's. */
export function termsOfHop<Auth>(
  route: RouteTerms<Auth> & {
    readonly hosts?: readonly (RouteTerms<Auth> & { readonly host: NextHopValue })[] | undefined;
  },
  hop: NextHopValue,
): RouteTerms<Auth> & { readonly level: NonNullable<TlsKey> } {
  const own = route.hosts?.find(({ host }) => isSameHop(host, hop));
  return {
    level: tlsLevel(own?.tls ?? route.tls, hop.isTlsFirst), auth: own?.auth ?? route.auth,
    caFile: own?.caFile ?? route.caFile, serverName: own?.serverName ?? route.serverName,
  };
}

/** Which one is used may change at any time: those without terms of their own are of one kind. */
function checkHops(route: RouteValue, at: Path, problems: Problems): void {
  const { via, fallback = [], hosts = [] } = route;
  const [first] = via;
  if (via.length > 1 && via.some(({ isByMx }) => isByMx)) {
    problems.add([...at, 'via'], 'expected mx alone, or a list of hosts, found mx in a list');
  }
  if (fallback.some(({ isByMx }) => isByMx)) problems.add([...at, 'fallback'], 'expected hosts, found mx');
  const isOther = (hop: NextHopValue): boolean => hop.protocol !== first?.protocol
    || (hop.isTlsFirst !== first.isTlsFirst && !hosts.some(({ host }) => isSameHop(host, hop)));
  for (const [key, hops] of [['via', via], ['fallback', fallback]] as const) {
    if (hops.some(isOther)) {
      problems.add([...at, key], 'expected hosts of one kind (smtp, smtps or lmtp), found several kinds');
    }
  }
  if (route.balance && via.length === 1) {
    problems.add([...at, 'balance'], 'expected several hosts in via beside it, found one');
  }
}

/** Its mail would come back until it has too many Received fields, and bounce. */
function checkOwnListeners(
  { smtp, hostname, sources }: GatewayValue, { via, fallback = [] }: GatewayValue['routes'][number], at: Path,
  problems: Problems,
): void {
  const isOwn = (host: string): boolean =>
    isLoopback(host) || host === hostname || sources.some(({ address }) => address === host);
  const isSame = (hop: Address, { host, port }: Address): boolean => hop.port === port
    && (hop.host === host || (isWildcard(host) && isOwn(hop.host))
      || (hop.host === 'localhost' && isLoopback(host)));
  for (const [key, hops] of [['via', via], ['fallback', fallback]] as const) {
    const index = smtp.listen.findIndex(({ address }) =>
      hops.some((hop) => !hop.isByMx && isSame(hop, address)));
    if (index === -1) continue;
    const own = pathText(['gateway', 'smtp', 'listen', index]);
    problems.add([...at, key], `expected a host other than this gateway, found ${own}: mail would go in a `
      + 'circle, and bounce');
  }
}

interface TlsTermsValue {
  readonly tls?: TlsKey;
  readonly ca_file?: string | undefined;
  readonly server_name?: string | undefined;
}

function checkRouteTls(route: RouteValue, at: Path, problems: Problems): void {
  if (route.server_name !== undefined && route.via.some(({ isByMx }) => isByMx)) {
    problems.add([...at, 'server_name'], 'expected hosts in via beside it, found mx: each host of the DNS is '
      + 'known by its own name');
    return;
  }
  checkTls(route, tlsLevel(route.tls, route.via[0]?.isTlsFirst === true), route.via[0], at, problems);
}

/** `level`: as it is in force. */
function checkTls(
  said: TlsTermsValue, level: NonNullable<TlsKey>, hop: NextHopValue | undefined, at: Path,
  problems: Problems,
): void {
  if (hop?.isTlsFirst === true && (level === 'none' || level === 'may')) {
    problems.add(
      [...at, 'tls'],
      `expected encrypt or verify with smtps://, where TLS comes first (RFC 8314), found ${level}`,
    );
  }
  for (const key of ['ca_file', 'server_name'] as const) {
    if (said[key] === undefined || level === 'verify') continue;
    problems.add([...at, key], `expected it with tls: verify only, where it counts, found tls: ${level}`);
  }
}

/** Each is one of those that the route has; what it says is right for it. */
function checkHosts(route: RouteValue, at: Path, problems: Problems): void {
  const { hosts = [], via, fallback = [] } = route;
  hosts.forEach((said, i) => {
    const here: Path = [...at, 'hosts', i];
    if (![...via, ...fallback].some((hop) => isSameHop(hop, said.host))) {
      problems.add([...here, 'host'], 'expected a host of via or fallback beside it, found another');
    }
    if (hosts.findIndex(({ host }) => isSameHop(host, said.host)) < i) {
      problems.add([...here, 'host'], 'expected each host once, found it twice');
    }
    checkTls(said, termsOfHop(route, said.host).level, said.host, here, problems);
  });
}

/** A password goes to the hosts that the route names, and not in clear over a network. */
function checkRouteAuth(route: RouteValue, at: Path, problems: Problems): void {
  const { auth, via, fallback = [], hosts = [] } = route;
  if (auth !== undefined && via.some(({ isByMx }) => isByMx)) {
    problems.add(
      [...at, 'auth'],
      'expected hosts in via beside it, found mx: whoever the DNS names would get the password',
    );
    return;
  }
  const isInClear = (hop: NextHopValue): boolean => {
    const { level, auth: ours } = termsOfHop(route, hop);
    return ours !== undefined && level !== 'encrypt' && level !== 'verify' && !isLoopback(hop.host);
  };
  const open = [...via, ...fallback].find((hop) => !hop.isByMx && isInClear(hop));
  if (open === undefined) return;
  const own = hosts.findIndex(({ host, auth: ours }) => ours !== undefined && isSameHop(host, open));
  problems.add(
    own < 0 ? [...at, 'auth'] : [...at, 'hosts', own, 'auth'],
    `expected tls: verify or encrypt (or smtps://) beside it for hosts outside loopback, found tls: `
      + `${termsOfHop(route, open).level}: the password could cross the network in clear`,
  );
}

interface NamedRoute {
  readonly name?: string | undefined;
  readonly domain?: string | undefined;
  readonly domains?: readonly string[] | undefined;
}

/** A queue is called by its first domain unless the route says otherwise. */
export function routeName({ name, domain, domains }: NamedRoute): string {
  const first = domain ?? domains?.[0] ?? '*';
  return name ?? (first === '*' ? 'default' : first);
}

function checkStore(
  file: FileValue, store: StoreValue, path: Path, context: CheckContext, problems: Problems,
): void {
  checkPaths(store.paths, path, store.insecure || store.tls !== undefined, problems);
  checkOneOf(store.tls !== undefined, store.insecure, [...path, 'tls'], problems);
  checkAdmin(store, path, problems);
  const { register } = file;
  if (register !== 'file' && !context.up) checkReached(store, path, register, problems);
  const isOfGateway = context.up && file.gateway !== undefined;
  if (hasSecret(store)) checkSecret(store, path, context, problems);
  if (store.gateways === undefined) {
    if (isOfGateway) return;
    if (register === 'file') {
      const text = `expected the gateways that this store serves${OR_ETCD}, found nothing`;
      problems.add([...path, 'gateways'], text);
    } else if (!hasSecret(store) && file.gateway === undefined) checkSecret(store, path, context, problems);
    return;
  }
  const isGroups = hasSecret(store) || file.gateway !== undefined;
  store.gateways.forEach((gateway, i) => {
    if (hasSecret(gateway) || !isGroups) checkSecret(gateway, [...path, 'gateways', i], context, problems);
  });
  const ids =
    store.gateways.flatMap((gateway, i) => workerIds(gateway.id, gateway.workers).map((id) => ({ id, i })));
  unique(
    ids.map(({ id }) => id), (at) => [...path, 'gateways', ids[at]?.i ?? 0, 'id'], 'gateway id', problems,
  );
}

/** Gateways connect to what the register says: an address that only this machine understands helps nobody. */
function checkReached({ paths }: StoreValue, at: Path, register: EtcdValue, problems: Problems): void {
  paths.forEach(({ address, advertise }, i) => {
    const { host } = advertise ?? address;
    const isElsewhere = isLoopback(host) && !isOnThisMachine(register);
    if (!isElsewhere && !isWildcard(host)) return;
    const key = advertise === undefined ? 'address' : 'advertise';
    const other = advertise === undefined ? ', or advertise: ADDRESS beside it' : '';
    const wish =
      'an address by which gateways of other machines reach this store (register: etcd tells them)';
    problems.add([...at, 'paths', i, key], `expected ${wish}${other}, found '${host}'`);
  });
}

function hasSecret({ secret, secret_file }: SecretValue): boolean {
  return secret !== undefined || secret_file !== undefined;
}

interface SecretValue {
  readonly secret?: string | undefined;
  readonly secret_file?: string | undefined;
}

function checkAdmin(
  { admin, insecure }: Pick<StoreValue, 'admin' | 'insecure'>, path: Path, problems: Problems,
): void {
  const { host } = admin.listen;
  if (isLoopback(host)) return;
  const why = `because admin.listen (${host}) is not loopback, found nothing`;
  if (admin.tokens_file === undefined) {
    problems.add([...path, 'admin', 'tokens_file'], `expected a file of tokens ${why}`);
  }
  if (admin.tls !== undefined || insecure) return;
  problems.add(
    [...path, 'admin', 'tls'],
    `expected cert and key ${why}; on a network you trust say insecure: true`,
  );
}

function checkSecret(holder: SecretValue, path: Path, context: CheckContext, problems: Problems): void {
  if (holder.secret !== undefined && holder.secret_file !== undefined) {
    problems.add([...path, 'secret_file'], 'expected one of secret and secret_file, found both');
  } else if (holder.secret === undefined && holder.secret_file === undefined
    && !context.secretFromEnvironment) {
    problems.add(
      [...path, 'secret'],
      'expected secret or secret_file (or TWINPOST_SECRET in the environment), found nothing',
    );
  } else if (holder.secret !== undefined && holder.secret.length < SECRET_CHARACTERS_MIN) {
    problems.add(
      [...path, 'secret'],
      `expected at least ${String(SECRET_CHARACTERS_MIN)} characters, found ${String(holder.secret.length)}`,
    );
  }
}

function unique(
  values: readonly string[], pathOf: (i: number) => Path, what: string, problems: Problems,
): void {
  const seen = new Set<string>();
  values.forEach((value, i) => {
    if (seen.has(value)) {
      problems.add(pathOf(i), `expected each ${what} once, found '${value}' again`);
    }
    seen.add(value);
  });
}
