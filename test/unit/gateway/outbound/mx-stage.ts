/** For mail by MX: a real resolver asks a scripted name server, next hops are on addresses of loopback. */
import assert from 'node:assert/strict';
import { performance } from 'node:perf_hooks';
import type { TestContext } from 'node:test';
import type { Answer } from 'dns-packet';
import { pointerName } from '../../../../src/base/reversed-address.js';
import { OUTBOUND_DEFAULTS } from '../../../default-options.js';
import type { NextHop } from '../../../../src/gateway/mail-types.js';
import type { Dispatcher, DispatcherOptions } from '../../../../src/gateway/outbound/dispatcher.js';
import type { TlsWatch } from '../../../../src/gateway/outbound/tls-reports/tls-tally.js';
import { DnsClient } from '../../../../src/platform/node/dns/dns-client.js';
import { NameServer } from '../../platform/node/dns/name-server.js';
import type { Scripted } from '../../platform/node/dns/name-server.js';
import { MemoryQueue, MemorySource, dispatcherFor, toldTo } from './memory-source.js';
import { ScriptedServer } from './scripted-server.js';

/** In a zone: no answer. */
export const SILENCE: Scripted = {};

/** One TTL of everything here: some tests look again. */
export const TTL_S = 1;

export function mx(...hosts: readonly (readonly [number, string])[]): Scripted {
  return { answers: hosts.map(([preference, exchange]): Answer => ({ type: 'MX', name: 'x', ttl: TTL_S, data: { preference, exchange } })) };
}

export function a(...addresses: readonly string[]): Scripted {
  return { answers: addresses.map((data): Answer => ({ type: 'A', name: 'x', ttl: TTL_S, data })) };
}

/** Records bear the name that was asked for. */
function named(said: Scripted, question: string): Scripted {
  const name = question.slice(question.indexOf(' ') + 1);
  return { ...said, answers: (said.answers ?? []).map((answer) => ({ ...answer, name }) as Answer) };
}

export interface Stage {
  readonly zone: Map<string, Scripted>;
  readonly source: MemorySource;
  readonly dispatcher: Dispatcher;
  readonly options: DispatcherOptions;
  /** "event text" of all but debug. */
  readonly log: readonly string[];
  readonly names: NameServer;
  /** Servers by address, on one port. */
  readonly hosts: ReadonlyMap<string, ScriptedServer>;
  readonly port: number;
  send(domain: string, entry: number, more?: Partial<NextHop>): MemoryQueue;
  ended(count: number): Promise<readonly (readonly [number, string, string, string])[]>;
}

export interface StageOptions {
  readonly allowsPrivate?: boolean;
  readonly connectionsMax?: number;
  readonly connectionsPerAddressMax?: number;
  readonly usesIpv6?: boolean;
  /** Known before anything is asked. */
  readonly known?: readonly [string, Scripted][];
  /** At each tick of the dispatcher. */
  readonly onTick?: () => void;
}

export async function stage(t: TestContext, addresses: readonly string[], { known = [], onTick, ...options }: StageOptions = {}, more: Partial<DispatcherOptions> = {}, tlsWatch?: TlsWatch): Promise<Stage> {
  const zone = new Map<string, Scripted>(known);
  const names = await NameServer.start(t, (question) => {
    const said = zone.get(question);
    if (said === SILENCE) return undefined;
    if (said !== undefined) return named(said, question);
    const isKnown = [...zone.keys()].some((key) => key.endsWith(question.slice(question.indexOf(' '))));
    return { rcode: isKnown ? 0 : 3 };
  });
  const hosts = new Map<string, ScriptedServer>();
  let port = 0;
  for (const address of addresses) {
    const server = new ScriptedServer();
    port = await server.listen(address, port);
    hosts.set(address, server);
    t.after(() => { server.close(); });
  }
  const clock = { nowMs: () => performance.now(), wallMs: () => Date.now() };
  const resolver = new DnsClient({ resolvers: [names.resolver], trustsAd: false }, clock);
  const source = new MemorySource();
  const log: string[] = [];
  const limits = { ownNames: ['gw.test'], allowsPrivate: true, usesIpv6: false, usesMtaSts: false, connectionsMax: 20, connectionsPerAddressMax: 100, ...options };
  const sending = { ...OUTBOUND_DEFAULTS, heloName: 'gw.test', backoffFirstMs: 300, mx: limits, ...more };
  const policies = onTick && {
    ask: () => { assert.fail('no policy is asked for'); }, onFailure: () => undefined, hasten: () => undefined, tick: onTick,
  };
  const dispatcher = dispatcherFor(source, sending, () => true, resolver, Math.random, toldTo(log), policies, tlsWatch);
  t.after(async () => {
    await dispatcher.stop(100);
    resolver.close();
  });
  return {
    zone, source, log, dispatcher, options: sending, names, hosts, port,
    send: (domain, entry, more = {}) => {
      const queue = new MemoryQueue({ queueName: `out/${domain}`, nextHop: { protocol: 'smtp', host: domain, port, isByMx: true, ...more } });
      source.put(queue, entry, 'content\r\n');
      dispatcher.onReady(queue);
      return queue;
    },
    ended: async (count) => {
      await source.untilEnded(count);
      return source.ended.map(({ entry, result: { results, relay } }) => [entry, results[0]?.enhanced ?? '', results[0]?.text ?? '', relay] as const);
    },
  };
}

/** What the DNS says of a source: to whom its address leads, and the address of that name. */
export function ofSource(address: string, pointer: string, back = address): [string, Scripted][] {
  const type = address.includes(':') ? 'AAAA' : 'A';
  return [
    [`PTR ${pointerName(address)}`, { answers: [{ type: 'PTR', name: 'x', ttl: TTL_S, data: pointer }] }],
    [`${type} ${pointer}`, { answers: [{ type, name: 'x', ttl: TTL_S, data: back }] }],
  ];
}
