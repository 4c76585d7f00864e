/**
 * What two readings of one file differ in, for a process that runs by the first and is to go on by the second
 * (docs/RELOAD.md): which keys, and which of them a running process can't follow. And the short names of a
 * configuration and of its routes, by which people and gateways tell whether they run the same.
 */
import { createHash } from 'node:crypto';
import { routeName } from './checks.js';
import { shown } from './keys/key.js';
import type { Path } from './keys/key.js';
import { fileSchema } from './keys/schema.js';
import type { FileValue, GatewayValue } from './keys/schema.js';
import { pathText } from './problems.js';

/** One reading of a file. */
export interface KeysInFile {
  readonly value: FileValue;
  /** What stands in the files whose content counts, by key: "gateway.smtp.srs.secret_file". */
  readonly contents: ReadonlyMap<string, string>;
}

interface Changes {
  /** Keys that differ, in the words of the file: "gateway.smtp.relay_networks". */
  readonly changed: readonly string[];
  /** Of those, the ones that only a restart brings. */
  readonly needRestart: readonly Path[];
}

/** How a role reads a file: what of it is its own. */
export interface KeysOfRole {
  changes(before: KeysInFile, after: KeysInFile): Changes;
  /** Twelve digits; nothing of a secret goes into it. */
  hash(keys: KeysInFile): string;
}

/** Keys that a running gateway follows, with all that is below them. */
const FOLLOWED: readonly string[] = [
  ...[
    'listen', 'relay_networks', 'relay_certificates', 'relay_domains', 'users', 'recipients', 'authserv_id',
    'postmaster', 'hooks', 'srs', 'feedback', 'message_size_limit', 'recipient_limit', 'connections',
    'connections_per_client', 'limits', 'min_data_rate', 'hop_limit', 'command_timeout', 'data_timeout',
    'tls',
  ].map((key) => `gateway.smtp.${key}`),
  ...[
    'retry', 'lifetime', 'bounce_lifetime', 'concurrency', 'connections', 'messages_per_connection',
    'connection_lifetime', 'connection_idle', 'min_data_rate', 'stop_timeout', 'timeouts',
  ].map((key) => `gateway.delivery.${key}`),
  'gateway.hostname', 'gateway.reports', 'gateway.tls_reports', 'gateway.routes', 'gateway.dkim',
  'gateway.sources', 'gateway.dns', 'gateway.delivery.mx', 'gateway.secret', 'gateway.secret_file',
  'gateway.log.level', 'gateway.log.mail',
];

/** Keys that a running store follows, in its section. */
const STORE_FOLLOWS: readonly string[] = ['secret', 'secret_file', 'gateways', 'log.level'];
/** And those of the gateway in the same file, which a store has where it has none of its own. */
const GATEWAY_SECRETS: readonly string[] = ['gateway.secret', 'gateway.secret_file'];

/** Of a route that stays: what mail in its queues was put there by. */
const ROUTE_KEYS_KEPT = ['order', 'queues', 'lanes', 'lanes_by'] as const;

type Route = GatewayValue['routes'][number];

/** Of what a gateway goes by. */
export function changesBetween(before: KeysInFile, after: KeysInFile): Changes {
  const paths = differing(sectionsOf(before.value), sectionsOf(after.value), []);
  const routes = routeChanges(before, after);
  const contents = contentChanges(before, after, ['gateway', 'register']);
  const needRestart = [
    ...paths.filter((path) => !isBelow(FOLLOWED, pathText(path))), ...routes,
    ...contents.filter((path) => !isBelow(FOLLOWED, path)).map((path) => path.split('.')),
  ];
  return { changed: [...new Set([...paths.map(pathText), ...contents])], needRestart };
}

/** Twelve digits; nothing of a secret goes into it. */
export function configurationHash({ value }: KeysInFile): string {
  return hashOf(shown(fileSchema, sectionsOf(value)));
}

/** Of the routes alone: gateways of a group have those in common. */
export function routesHash({ value }: KeysInFile): string {
  const { gateway } = shown(fileSchema, sectionsOf(value)) as { readonly gateway?: GatewayValue };
  return hashOf([gateway?.routes, gateway?.delivery.order, gateway?.delivery.concurrency]);
}

/** Likewise of one store: of `stores` in its order, or the one section `store`. */
export function storeHash({ register, store, stores }: FileValue, index: number): string {
  const own = stores === undefined ? { register, store } : { register, stores: [stores[index]] };
  return hashOf(shown(fileSchema, own));
}

export const KEYS_OF_GATEWAY: KeysOfRole = { changes: changesBetween, hash: configurationHash };

/** `isUp`: in a file for `up`. */
export function keysOfStore(id: string, isUp: boolean): KeysOfRole {
  return {
    changes: (before, after) => storeChanges(before, after, id, isUp),
    hash: ({ value }) => storeHash(value, storeIndex(value, id)),
  };
}

function storeChanges(before: KeysInFile, after: KeysInFile, id: string, isUp: boolean): Changes {
  const at: Path = after.value.stores === undefined ? ['store'] : ['stores', storeIndex(after.value, id)];
  const followed = [...STORE_FOLLOWS.map((key) => `${pathText(at)}.${key}`), ...GATEWAY_SECRETS];
  const isOwners = isUp && storeOf(after.value, id)?.gateways === undefined;
  const paths = [
    ...differing(before.value.register, after.value.register, ['register']),
    ...differing(ownGateway(before.value, isOwners), ownGateway(after.value, isOwners), ['gateway']),
    ...differing(storeOf(before.value, id), storeOf(after.value, id), at),
  ];
  const contents = contentChanges(before, after, ['register', pathText(at), ...GATEWAY_SECRETS]);
  return {
    changed: [...new Set([...paths.map(pathText), ...contents])],
    needRestart: [
      ...paths.filter((path) => !isBelow(followed, pathText(path))),
      ...contents.filter((path) => !isBelow(followed, path)).map((path) => path.split('.')),
    ],
  };
}

function storeIndex({ stores = [] }: FileValue, id: string): number {
  return Math.max(0, stores.findIndex((store) => store.id === id));
}

function storeOf(value: FileValue, id: string): FileValue['store'] {
  return value.stores === undefined ? value.store : value.stores[storeIndex(value, id)];
}

/** What a store takes from the gateway in its file: the secret, and who it is where it is let in unnamed. */
function ownGateway(value: FileValue, isOwners: boolean): unknown {
  if (value.gateway === undefined) return undefined;
  const { id, workers, secret, secret_file } = value.gateway;
  return { secret, secret_file, ...(isOwners ? { id, workers } : {}) };
}

/** The stores of the file are a gateway's where it names none of its own. */
function sectionsOf({ register, gateway, stores }: FileValue): Partial<FileValue> {
  return { register, gateway, ...(gateway?.stores === undefined ? { stores } : {}) };
}

function isBelow(keys: readonly string[], path: string): boolean {
  return keys.some((key) => path === key || path.startsWith(`${key}.`) || path.startsWith(`${key}[`));
}

/** A list is one key: what moved in it differs everywhere behind. */
function differing(before: unknown, after: unknown, path: Path): Path[] {
  if (!isMapping(before) || !isMapping(after)) {
    return JSON.stringify(before) === JSON.stringify(after) ? [] : [path];
  }
  const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...keys].flatMap((key) => differing(before[key], after[key], [...path, key]));
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function routeChanges(before: KeysInFile, after: KeysInFile): Path[] {
  const known = new Map(routesOf(before).map((route) => [routeName(route), route]));
  return routesOf(after).flatMap((route, i) => {
    const found = known.get(routeName(route));
    const at = (key: string): Path => ['gateway', 'routes', i, key];
    if (found === undefined) return [];
    const kept: Path[] = ROUTE_KEYS_KEPT.filter((key) => found[key] !== route[key]).map(at);
    return [...kept, ...(isByMx(found) === isByMx(route) ? [] : [at('via')])];
  });
}

function routesOf({ value }: KeysInFile): readonly Route[] {
  return value.gateway?.routes ?? [];
}

function isByMx({ via }: Route): boolean {
  return via[0]?.isByMx === true;
}

/** Files that are named as before and hold something else. */
function contentChanges(
  { contents: before }: KeysInFile, { contents: after }: KeysInFile, of: readonly string[],
): string[] {
  return [...after]
    .filter(([key, text]) => isBelow(of, key) && before.has(key) && before.get(key) !== text)
    .map(([key]) => key);
}

function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 12);
}
