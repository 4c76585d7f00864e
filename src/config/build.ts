/**
 * From checked file values to the frozen configuration: keys in the program's words (keys/key.ts), secrets
 * resolved to bytes, file names made absolute against the folder of the configuration file, and what follows
 * from several keys or from this machine. Reads secret files and nothing else.
 */
import os from 'node:os';
import path from 'node:path';
import { errorText } from '../base/error-text.js';
import { invariant } from '../base/invariant.js';
import { utf8Bytes } from '../base/utf8.js';
import { FALLBACK_PREFERENCE } from '../gateway/queue/next-hop.js';
import type { VerpOptions } from '../gateway/queue/router.js';
import type { HostTerms, NextHop, OtherHost } from '../gateway/mail-types.js';
import { readSecretFile } from '../platform/node/secret-file.js';
import { storeHash } from './changes.js';
import { SECRET_CHARACTERS_MIN, routeName, termsOfHop } from './checks.js';
import { hookOptions } from './hooks.js';
import { made } from './keys/key.js';
import type { Content, Path } from './keys/key.js';
import { fileSchema } from './keys/schema.js';
import type { FileKeys, FileValue, GatewayKeys, SmtpKeys, StoreKeys } from './keys/schema.js';
import type { Address, NextHopValue } from './keys/values.js';
import { pathText } from './problems.js';
import type { Problems } from './problems.js';
import type { RegisterChoice } from '../register/running/open-register.js';
import type {
  Config, GatewayConfig, HopFiles, Places, SmtpConfig, StoreClientConfig, StoreConfig, StorePeerConfig,
} from './types.js';
import { workerIds } from './workers.js';

/** A few hundred of them, one a line. */
const SECRET_BYTES_MAX = 64 * 1024;

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
  /** What files hold whose content counts, by key: filled here. */
  readonly contents: Map<string, string>;
}

/** What can still go wrong here (an unreadable secret file) is added to `problems`. */
export function buildConfig(file: FileValue, context: BuildContext, problems: Problems): Config {
  const keys = made(fileSchema, file, [], {
    absolute: (name) => path.resolve(context.folder, name),
    content: (name, content, at) => {
      const text = contentText(path.resolve(context.folder, name), content, at, problems);
      context.contents.set(pathText(at), text);
      return text;
    },
  });
  const { gateway, stores = keys.store === undefined ? [] : [keys.store] } = keys;
  const secrets = gateway === undefined ? [] : linkSecrets(gateway, ['gateway'], context, problems);
  const etcd = etcdChoice(keys.register);
  return freeze({
    file: context.file,
    gateway: gateway === undefined ? undefined : gatewayConfig(
      keys, gateway, secrets, etcd, context, problems,
    ),
    stores: stores.map((store, i) => {
      const at = keys.stores === undefined ? ['store'] : ['stores', i];
      const built = storeConfig(keys, store, at, secrets[0], context, problems);
      return { ...built, register: etcd, configurationHash: storeHash(file, i) };
    }),
    sink: keys.sink,
  });
}

function gatewayConfig(
  keys: FileKeys, gateway: GatewayKeys, secrets: readonly Uint8Array[], etcd: RegisterChoice | undefined,
  context: BuildContext, problems: Problems,
): GatewayConfig {
  const stateDir = context.stateDir ?? gateway.stateDir;
  const hostName = gateway.hostName ?? os.hostname().toLowerCase();
  return {
    ...gateway,
    group: groupOf(gateway, etcd !== undefined),
    hostName,
    sources: gateway.sources.map(({ address, name = hostName }) => ({ address, name: name.toLowerCase() })),
    smtp: smtpConfig(gateway.smtp, hostName, problems),
    routes: gateway.routes.map((route, i) => ({
      ...routeConfig(route, gateway), ...verpConfig(route.verp, i, problems),
    })),
    secrets,
    stores: storePeers(keys, gateway),
    learnStores: etcd === undefined ? undefined : learnStores(keys, gateway),
    stateDir,
    register: etcd ?? fileChoice(stateDir, gateway.workers, context),
    oneHost: context.up,
    places: gatewayPlaces(gateway, context),
    hopFiles: gateway.routes.flatMap(({ hosts = [], ...route }, i) => [
      hopFiles(route, ['gateway', 'routes', i]),
      ...hosts.map((host, k) => hopFiles(host, ['gateway', 'routes', i, 'hosts', k])),
    ]),
  };
}

/** Of keys whose files, folders and addresses are judged when all else is good: by the command line. */
function gatewayPlaces({ smtp, routes, dkim, sources }: GatewayKeys, context: BuildContext): Places {
  const at = (...keys: readonly (string | number)[]): Path => ['gateway', ...keys];
  return placesOf([
    ...folderKeys('gateway'),
    ...adminKeys('gateway'),
    ...REGISTER_FILES,
    ...['cert', 'key', 'client_ca'].map((key) => at('smtp', 'tls', key)),
    ...['cert', 'key', 'ca'].map((key) => at('mirror', 'tls', key)),
    ...['users', 'recipients', 'relay_domains', 'relay_certificates'].map((key) => at('smtp', key)),
    ...routes.map((_route, i) => at('routes', i)),
    at('hostname'),
    ...smtp.listen.flatMap((_listener, index) =>
      [at('smtp', 'listen', index), at('smtp', 'listen', index, 'role')]),
    ...smtp.hooks.map((_hook, index) => at('smtp', 'hooks', index, 'module')),
    ...routes.flatMap(({ hosts = [] }, i) =>
      [at('routes', i), ...hosts.map((_host, k) => at('routes', i, 'hosts', k))].flatMap((hop) =>
        [[...hop, 'ca_file'], [...hop, 'auth', 'password_file']])),
    ...dkim.map((_key, index) => at('dkim', index, 'key_file')),
    ...sources.map((_source, index) => at('sources', index, 'address')),
  ], context);
}

/** Of a route, or of one of its hosts. */
function hopFiles(
  { caFile, auth }: Pick<GatewayKeys['routes'][number], 'caFile' | 'auth'>, at: Path,
): HopFiles {
  return { at: pathText(at), caFile, passwordFile: auth?.passwordFile };
}

const REGISTER_FILES: readonly Path[] = ['ca', 'cert', 'key'].map((key) => ['register', key]);

function adminKeys(...section: Path): readonly Path[] {
  const tls = ['cert', 'key', 'ca'].map((key) => [...section, 'admin', 'tls', key]);
  return [...['tokens_file', 'listen', 'probes'].map((key) => [...section, 'admin', key]), ...tls];
}

/** Of folders that a process writes into (cli/folders.ts). */
function folderKeys(...section: Path): readonly Path[] {
  return [[...section, 'state_dir'], [...section, 'log', 'file']];
}

function placesOf(paths: readonly Path[], { place }: BuildContext): Places {
  return Object.fromEntries(paths.map((path) => [pathText(path), place(path)]));
}

/** With workers the upper process keeps the file; under `up` that one does. */
function fileChoice(
  stateDir: string | undefined, workers: number, { registerDir }: BuildContext,
): RegisterChoice {
  if (registerDir !== undefined) return { kind: 'socket', stateDir: registerDir };
  return { kind: 'file', stateDir: stateDir ?? '', isServed: workers > 1 };
}

function etcdChoice(register: FileKeys['register']): RegisterChoice | undefined {
  if (register === 'file') return undefined;
  const { user = '', password = '' } = register;
  return { kind: 'etcd', ...register, user, password };
}

function srsConfig(srs: SmtpKeys['srs'], problems: Problems): SmtpConfig['srs'] {
  if (srs === undefined) return undefined;
  const at = ['gateway', 'smtp', 'srs', 'secret_file'];
  return { domain: srs.domain, secrets: secretsOf(srs.secrets, at, problems) };
}

function verpConfig(
  verp: GatewayKeys['routes'][number]['verp'], route: number, problems: Problems,
): { readonly verp?: VerpOptions } {
  if (verp === undefined) return {};
  const at = ['gateway', 'routes', route, 'verp', 'secret_file'];
  return { verp: { ...verp, secrets: secretsOf(verp.secrets, at, problems) } };
}

/** One a line. No comments: a secret that everybody guesses would open what these close. */
function secretsOf(text: string, at: Path, problems: Problems): readonly string[] {
  const secrets = text.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== '');
  const least = SECRET_CHARACTERS_MIN;
  if (secrets.some((secret) => secret.length < least)) {
    problems.add(at, `expected secrets of ${String(least)} characters or more, found a shorter one`);
  }
  if (secrets.some((secret) => secret.startsWith('#'))) {
    problems.add(at, 'expected one secret a line and no comments, found a line that begins with #');
  }
  return secrets;
}

/** What the file holds, without outer blanks. */
function contentText(name: string, { what, isAscii }: Content, at: Path, problems: Problems): string {
  const found = (text: string): void => { problems.add(at, `expected ${what}, found ${text}`); };
  try {
    const text = readSecretFile(name, what, SECRET_BYTES_MAX).trim();
    if (text === '') found(`nothing in '${name}'`);
    if (!isAscii || /^[ -~]*$/.test(text)) return text;
    problems.add(at, `expected ${what}, one line of printable ASCII, found something else in '${name}'`);
  } catch (error) {
    problems.add(at, `expected ${what}, found: ${readErrorText(error, name)}`);
  }
  return '';
}

/**
 * Every process that may serve a queue of another, its own fellows among them. A file of one machine has no
 * others than those that are started with it.
 */
function groupOf({ id, workers, group }: GatewayKeys, isEtcd: boolean): readonly string[] | undefined {
  if (group === undefined && isEtcd) return undefined;
  const named = (group ?? []).flatMap((member) => workerIds(member.id, member.workers ?? workers));
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

function smtpConfig(smtp: SmtpKeys, hostName: string, problems: Problems): SmtpConfig {
  const { users, recipients, authservId = hostName, limits, ...rest } = smtp;
  const { client, network, user, sender, exempt } = limits;
  // Where one listener says what it found out, no user says it in our name at another one.
  const isChecked = smtp.listen.some(({ checksSenders }) => checksSenders);
  return {
    ...rest,
    listen: smtp.listen.map(({ address, tls, checksSenders, ...listener }) => ({
      ...listener, ...address, tls: tls ?? (smtp.tls === undefined ? 'off' : 'starttls'),
      proxyNetworks: listener.proxyNetworks ?? [], xclientNetworks: listener.xclientNetworks ?? [],
      blocklists: listener.blocklists ?? [],
      authservId: checksSenders || (isChecked && listener.role === 'submission')
        ? authservId.toLowerCase() : '',
    })),
    postmaster: smtp.postmaster ?? '',
    hooks: smtp.hooks.map(hookOptions),
    ...(typeof users === 'object'
      ? { usersFile: undefined, usersByHttp: { ...users, token: users.token ?? '' } }
      : { usersFile: users, usersByHttp: undefined }),
    ...(typeof recipients === 'object'
      ? { recipientsFile: undefined, recipientsByHttp: { ...recipients, token: recipients.token ?? '' } }
      : { recipientsFile: recipients, recipientsByHttp: undefined }),
    srs: srsConfig(smtp.srs, problems),
    feedback: smtp.feedback && { ...smtp.feedback, forwardTo: smtp.feedback.forwardTo ?? '' },
    rates: { client, network, user: { connections: 0, ...user }, sender: { connections: 0, ...sender } },
    rateExempt: exempt,
  };
}

function routeConfig(
  route: GatewayKeys['routes'][number], { delivery, sources }: GatewayKeys,
): GatewayConfig['routes'][number] {
  const { domain, domains, queues, lanes, lanesBy, lengthMax, when } = route;
  const ordering = route.ordering ?? delivery.ordering;
  const isStrict = ordering === 'strict';
  const nextHop = nextHopOf(route, sources);
  return {
    lanes,
    lanesBy,
    lengthMax,
    nextHop,
    domains: domains ?? (domain === undefined ? [] : [domain]),
    ...(when === undefined ? {} : { when }),
    name: routeName(route),
    perDomain: queues === 'domain' || nextHop.isByMx === true,
    ordering,
    concurrency: isStrict ? 1 : (route.concurrency ?? delivery.concurrency),
  };
}

function nextHopOf(
  route: GatewayKeys['routes'][number], known: GatewayKeys['sources'],
): NextHop {
  const { nextHops, balance, fallback = [], sources } = route;
  const [first, ...more] = nextHops;
  invariant(first !== undefined, 'a route has a next hop');
  const { protocol, host, port, isByMx } = first;
  const isSingle = more.length + fallback.length === 0;
  const other = (hop: NextHopValue, preference: number): OtherHost => ({
    host: hop.host, port: hop.port, preference,
    ...(route.hosts === undefined ? {} : { terms: hopTerms(route, hop, isSingle) }),
  });
  const others = [
    ...more.map((hop, at) => other(hop, balance ? 0 : at + 1)),
    ...fallback.map((hop, at) => other(hop, FALLBACK_PREFERENCE + at)),
  ];
  const { tls, auth } = hopTerms(route, first, isSingle);
  return {
    protocol, host, port, ...(isByMx ? { isByMx } : {}), ...(isSingle ? {} : { others }),
    ...(auth === undefined ? {} : { auth }),
    ...(sources === undefined ? {} : { sources: addressesOf(sources, known) }), tls,
  };
}

function hopTerms(route: GatewayKeys['routes'][number], hop: NextHopValue, isSingle: boolean): HostTerms {
  const { level, auth, caFile, serverName } = termsOfHop(route, hop);
  if (level === 'none') return { tls: undefined, auth };
  // Of several hosts each has a certificate of its own.
  const name = serverName ?? (isSingle ? hop.host : '');
  const terms = { serverName: name, mustVerify: level === 'verify', caFile };
  return { tls: { level, isFirst: hop.isTlsFirst, terms }, auth };
}

/** A name may be that of several: one of each family. */
function addressesOf(said: readonly string[], known: GatewayKeys['sources']): readonly string[] {
  return known.filter(({ address, name = '' }) => said.includes(address) || said.includes(name))
    .map(({ address }) => address);
}

/** Those whose addresses the file says; of the others the register does. */
function storePeers(keys: FileKeys, { stores }: GatewayKeys): readonly StorePeerConfig[] {
  if (stores === undefined) {
    return (keys.stores ?? []).map(({ id, host, paths, admin, weight }) =>
      ({ id, host, paths, admin: admin.listen, weight }));
  }
  return stores.flatMap(({ id, host, paths, admin, weight = 1 }) =>
    host === undefined || paths === undefined ? [] : [{ id, host, paths, admin, weight }]);
}

function learnStores(keys: FileKeys, { stores }: GatewayKeys): GatewayConfig['learnStores'] {
  if (stores === undefined) return { only: keys.stores === undefined ? undefined : [] };
  return { only: stores.filter(({ paths }) => paths === undefined).map(({ id }) => id) };
}

function storeConfig(
  keys: FileKeys, store: StoreKeys, at: Path, secretOfGateway: Uint8Array | undefined,
  context: BuildContext, problems: Problems,
): Omit<StoreConfig, 'register' | 'configurationHash'> {
  const { gateway: owner } = keys;
  const own = !context.up || owner === undefined || secretOfGateway === undefined
    ? []
    : clientsOf(owner.id, owner.workers, secretOfGateway, owner.admin.listen);
  const { secret, secretFile, ...others } = store;
  const isOpen = keys.register !== 'file' && store.gateways === undefined && own.length === 0;
  const group = (): Uint8Array => {
    const isOfGateway = !hasSecret(store) && secretOfGateway !== undefined;
    return isOfGateway ? secretOfGateway : linkSecret({ secret, secretFile }, at, context, problems);
  };
  const secretOfClient = (client: SecretHolder, i: number): Uint8Array =>
    hasSecret(client) ? linkSecret(client, [...at, 'gateways', i], context, problems) : group();
  const named = store.gateways?.flatMap((client, i) =>
    clientsOf(client.id, client.workers, secretOfClient(client, i), client.admin));
  return {
    ...others,
    gateways: named ?? own,
    groupSecret: isOpen ? group() : undefined,
    oneHost: context.up,
    section: pathText(at),
    places: placesOf([
      ...folderKeys(...at), ...adminKeys(...at), ...REGISTER_FILES, [...at, 'lease'],
      ...store.paths.map((_path, k) => [...at, 'paths', k, 'address']),
      ...['ca', 'cert', 'key'].map((key) => [...at, 'tls', key]),
    ], context),
  };
}

type SecretHolder = Pick<StoreKeys, 'secret' | 'secretFile'>;

function hasSecret({ secret, secretFile }: SecretHolder): boolean {
  return secret !== undefined || secretFile !== undefined;
}

/** A store goes by one: the first line of its file. */
function linkSecret(holder: SecretHolder, at: Path, context: BuildContext, problems: Problems): Uint8Array {
  return linkSecrets(holder, at, context, problems)[0] ?? new Uint8Array();
}

function linkSecrets(
  { secret, secretFile }: SecretHolder, at: Path, context: BuildContext, problems: Problems,
): readonly Uint8Array[] {
  if (secret !== undefined) return [utf8Bytes(secret)];
  if (secretFile === undefined) return [utf8Bytes(context.environmentSecret ?? '')];
  try {
    const text = readSecretFile(secretFile, 'a secret', SECRET_BYTES_MAX).trim();
    context.contents.set(pathText([...at, 'secret_file']), text);
    if (text !== '') return secretsOf(text, [...at, 'secret_file'], problems).map(utf8Bytes);
    problems.add([...at, 'secret_file'], `expected a file with a secret, found nothing in '${secretFile}'`);
  } catch (error) {
    const why = readErrorText(error, secretFile);
    problems.add([...at, 'secret_file'], `expected a file with a secret, found: ${why}`);
  }
  return [];
}

/** Where there is no such file, its name may be the secret itself. */
function readErrorText(error: unknown, name: string): string {
  return errorText(error).replace(`'${name}' can't be read`, () => "one that can't be read");
}

/** Deep, but for byte arrays, which JavaScript can't freeze. */
function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}
