/**
 * Faults in rounds, with a real etcd: the next hop stands still until enough lies undelivered in each
 * partition, then processes die or freeze under load, the next hop goes on, and each process comes back when
 * its own time has come, or not before the round is over. Nobody gives an order.
 *
 *   whole ─► next hop stands still, queues fill ─► blow ─► next hop goes on ─► restarts ─► all is delivered
 *     ▲                                                                        within lease + 15 s │
 *     └────────────────────────── what stayed away is started, all is whole ◄────────────────────────┘
 *
 *   pair                 a gateway and a store at the same instant
 *   two stores           both at the same instant, the gateways alive
 *   gateway then store   the store 1 s later
 *   freeze               a gateway, a store, or one of each, for 0.5 to 30 s
 *   one way cut          what a gateway, a store, or one of each sends, or what it is sent, for as long; etcd
 *                        is reached as before
 *   etcd leader          a gateway, and etcd's leader when its neighbour has begun to take over; each comes back
 *
 * What is drawn comes from the seed. The verdict is that of the other chaos run (witnesses.ts), and how late
 * the latest message came.
 */
import assert from 'node:assert/strict';

import { monotonicMicros } from '../../src/load/send-log.js';
import { connectEtcdRegister } from '../../src/register/etcd/etcd-register.js';
import { partitionsOf } from '../../src/register/keys.js';
import { HOME_MS, pause, type Daemon } from '../process/cluster.js';
import { gatewayId } from '../process/cluster-config.js';
import { proxyNowMs, type FaultProxy } from '../process/fault-proxy.js';
import type { Verdict } from '../process/witnesses.js';
import { QUIET } from '../unit/register/real-world.js';
import { CLUSTER_NAME, EtcdField, GATEWAYS, LEASE_MS, STORES } from './etcd-field.js';
import type { ChaosEvent } from './options.js';

export const ROUND_KINDS = [
  'pair', 'two stores', 'gateway then store', 'freeze', 'one way cut', 'etcd leader',
] as const;
export type RoundKind = (typeof ROUND_KINDS)[number];

/** Everything is delivered so long after the last restart. */
export const DELIVERED_MS = LEASE_MS + 15_000;
const LATER_MS = 1_000;
const FREEZE_MIN_MS = 500;
const FREEZE_MAX_MS = 30_000;
/** A gateway that is dead is taken over, at the latest, so long after; etcd finds a new leader sooner. */
const TAKEOVER_BEGINS_MS = 2 * LEASE_MS;
const TAKEOVER_TAKES_MS = 100;
const LEADER_AWAY_MS = 3_000;
/** Three, where the leader dies. */
const ETCD_NODES = 3;
/** One of so many stays away until all is delivered. */
const NEVER_ONE_IN = 6;
/** Messages a second at each gateway while faults strike. */
const RATE = 150;
/** A gateway that stands still for longer may have been replaced. */
const LEASE_MARGIN_MS = 500;
/** A gateway that no store hears, or that hears none, knows so after this, and starts nothing more. */
const SILENCE_KNOWN_MS = 6_500;
/** Past the bound it is waited on, so that the report can say how late everything was. */
const PATIENCE_MS = 120_000;

export interface RoundsOptions {
  readonly seed: number;
  readonly rounds: number;
  readonly kinds: readonly RoundKind[];
  /** So many at least lie in each partition when a blow falls. */
  readonly undelivered: number;
  /** A process that was killed is down for so long at most. */
  readonly downMsMax: number;
  readonly partitions: number;
  readonly minReplicas: number;
  readonly onEvent?: (event: ChaosEvent) => void;
}

export interface RoundsReport {
  readonly seed: number;
  readonly rounds: Readonly<Record<string, number>>;
  readonly seconds: number;
  readonly verdict: Verdict;
  /** From its 250, or from the last fault or restart before it came. */
  readonly latestMs: number;
  /** Rounds in which the bound was passed. */
  readonly lateRounds: readonly string[];
  readonly endedAlone: readonly string[];
  readonly timeline: readonly ChaosEvent[];
}

interface Cut {
  readonly name: string;
  readonly proxies: readonly FaultProxy[];
  readonly way: 'up' | 'down';
  readonly ms: number;
}

interface Victim {
  readonly daemon: Daemon;
  /** Undefined: a store. */
  readonly gateway: number | undefined;
  /** Undefined: it stays away until all is delivered. */
  readonly awayMs: number | undefined;
}

function secondsSince(ms: number): number {
  return Math.round((performance.now() - ms) / 100) / 10;
}

function victimText({ daemon, awayMs }: Victim): string {
  return `${daemon.name} for ${awayMs === undefined ? 'the round' : `${(awayMs / 1000).toFixed(1)} s`}`;
}

export function isGood(report: RoundsReport): boolean {
  const { verdict, endedAlone, lateRounds, latestMs } = report;
  return verdict.ok && endedAlone.length === 0 && lateRounds.length === 0 && latestMs <= DELIVERED_MS;
}

export async function runRounds(options: RoundsOptions): Promise<RoundsReport> {
  const timeline: ChaosEvent[] = [];
  const startMs = performance.now();
  const say = (what: string): void => {
    const event = { second: secondsSince(startMs), what };
    timeline.push(event);
    options.onEvent?.(event);
  };
  const etcdNodes = options.kinds.includes('etcd leader') ? ETCD_NODES : 1;
  const field = await EtcdField.start({ ...options, etcdNodes, isJudged: true, say });
  try {
    const run = new Rounds(options, field, say);
    await run.all();
    const { verdict, latestMs } = await field.verdict(run.eventsUs);
    return {
      seed: options.seed, rounds: run.struck, seconds: secondsSince(startMs), verdict, latestMs,
      lateRounds: run.lateRounds, endedAlone: field.endedAlone, timeline,
    };
  } finally {
    await field.close();
  }
}

class Rounds {
  readonly struck: Record<string, number> = {};
  readonly lateRounds: string[] = [];
  readonly eventsUs: number[] = [];
  readonly #options: RoundsOptions;
  readonly #field: EtcdField;
  readonly #say: (what: string) => void;

  constructor(options: RoundsOptions, field: EtcdField, say: (what: string) => void) {
    this.#options = options;
    this.#field = field;
    this.#say = say;
  }

  async all(): Promise<void> {
    await this.#field.isWhole();
    this.#field.startClients(RATE);
    for (let round = 1; round <= this.#options.rounds; round++) {
      const kind = this.#options.kinds[(round - 1) % this.#options.kinds.length] ?? 'pair';
      await this.#one(`round ${String(round)}, ${kind}`, kind);
      this.struck[kind] = (this.struck[kind] ?? 0) + 1;
    }
  }

  async #one(name: string, kind: RoundKind): Promise<void> {
    const { cluster } = this.#field;
    const victims = this.#draw(kind);
    cluster.sink.freeze();
    const stoodFromMs = proxyNowMs();
    await this.#field.fill(this.#options.undelivered);
    this.#say(`${name}: ${victims.map(victimText).join(', ')}`);
    const goesOn = (): void => {
      cluster.sink.thaw();
      this.#field.judge.noteSinkStood(stoodFromMs, proxyNowMs());
    };
    if (kind === 'freeze') await this.#freeze(victims, goesOn);
    else if (kind === 'one way cut') await this.#cut(victims, goesOn);
    else if (kind === 'etcd leader') await this.#killLeader(victims, goesOn);
    else await this.#kill(victims, kind === 'gateway then store', goesOn);
    this.#event();
    const lastMs = performance.now();
    const away = new Set(victims.filter(({ awayMs }) => awayMs === undefined).map(({ daemon }) => daemon));
    const living = cluster.gateways.filter(({ gateway }) => !away.has(gateway));
    this.#field.supervise(away);
    await this.#field.hasCaughtUp(living, RATE, PATIENCE_MS);
    const took = secondsSince(lastMs);
    if (1000 * took > DELIVERED_MS) this.lateRounds.push(`${name}: ${String(took)} s`);
    for (const daemon of away) daemon.start();
    for (const daemon of away) await daemon.ready(HOME_MS);
    this.#event();
    this.#field.supervise(new Set());
    await this.#field.isWhole();
    const whole = secondsSince(lastMs);
    this.#say(`all delivered ${String(took)} s after the last restart, whole after ${String(whole)} s`);
  }

  #draw(kind: RoundKind): readonly Victim[] {
    const { prng, cluster } = this.#field;
    const index = prng.below(GATEWAYS);
    const gateway = cluster.gateways[index]?.gateway;
    const first = prng.below(STORES);
    const store = cluster.stores[first];
    const other = cluster.stores[(first + 1 + prng.below(STORES - 1)) % STORES];
    assert.ok(gateway !== undefined && store !== undefined && other !== undefined);
    const frozenMs = Math.min(FREEZE_MAX_MS, this.#options.downMsMax);
    const awayMs = (): number | undefined => {
      if (kind === 'freeze' || kind === 'one way cut') {
        return FREEZE_MIN_MS + prng.below(Math.max(1, frozenMs - FREEZE_MIN_MS));
      }
      // It is taken over in any case.
      if (kind === 'etcd leader') return TAKEOVER_BEGINS_MS + prng.below(this.#options.downMsMax);
      return prng.below(NEVER_ONE_IN) === 0 ? undefined : prng.below(this.#options.downMsMax);
    };
    const a: Victim = { daemon: gateway, gateway: index, awayMs: awayMs() };
    const b: Victim = { daemon: store, gateway: undefined, awayMs: awayMs() };
    // One of the two comes back: a third store alone could hold one copy of each partition.
    const otherMs = b.awayMs === undefined ? 0 : awayMs();
    if (kind === 'two stores') return [b, { daemon: other, gateway: undefined, awayMs: otherMs }];
    if (kind === 'etcd leader') return [a];
    if (kind === 'freeze' || kind === 'one way cut') return prng.pick([[a], [b], [a, b]]);
    return [a, b];
  }

  /** All signals leave in one turn, but for that of one that dies later. Resolves when they are back. */
  async #kill(victims: readonly Victim[], isStaggered: boolean, onStruck: () => void): Promise<void> {
    const [first, ...others] = victims;
    if (first !== undefined) this.#killOne(first);
    if (isStaggered) await pause(LATER_MS);
    for (const victim of others) this.#killOne(victim);
    this.#event();
    onStruck();
    await Promise.all(victims.map((victim) => this.#comeBack(victim)));
  }

  #killOne({ daemon, gateway }: Victim): void {
    if (gateway !== undefined) this.#field.judge.noteGatewayKill(gateway);
    daemon.killNow();
  }

  async #comeBack({ daemon, awayMs }: Victim): Promise<void> {
    await daemon.kill();
    if (awayMs === undefined) return;
    await pause(awayMs);
    daemon.start();
    await daemon.ready(HOME_MS);
    this.#event();
  }

  async #freeze(victims: readonly Victim[], onStruck: () => void): Promise<void> {
    this.#event();
    const fromMs = proxyNowMs();
    for (const { daemon } of victims) daemon.freeze();
    onStruck();
    await Promise.all(victims.map(async ({ daemon, gateway, awayMs = 0 }) => {
      await pause(awayMs);
      daemon.thaw();
      this.#event();
      if (gateway === undefined || awayMs < LEASE_MS - LEASE_MARGIN_MS) return;
      const cause = 'gateway stood still past its lease';
      this.#field.judge.noteWindow({ cause, gateway: gatewayId(gateway), fromMs, untilMs: proxyNowMs() });
    }));
  }

  /** All links of a victim, both paths of each, in one direction. */
  async #cut(victims: readonly Victim[], onStruck: () => void): Promise<void> {
    const { prng, judge, cluster } = this.#field;
    const cuts = victims.map(({ daemon, gateway, awayMs = 0 }): Cut => ({
      name: daemon.name,
      proxies: judge.proxies(gateway === undefined ? { store: cluster.stores.indexOf(daemon) } : { gateway }),
      way: prng.pick(['up', 'down']),
      ms: awayMs,
    }));
    for (const { name, proxies, way } of cuts) {
      this.#say(`${name}: nothing passes ${way} over its ${String(proxies.length)} paths`);
      for (const proxy of proxies) proxy.stall(way);
    }
    this.#event();
    const fromMs = proxyNowMs();
    for (const { gateway } of victims) {
      if (gateway === undefined) continue;
      judge.noteWindow({ cause: 'gateway cut off', gateway: gatewayId(gateway), fromMs, untilMs: fromMs + SILENCE_KNOWN_MS });
    }
    onStruck();
    await Promise.all(cuts.map(async ({ proxies, way, ms }) => {
      await pause(ms);
      for (const proxy of proxies) proxy.resume(way);
      this.#event();
    }));
  }

  /** The leader dies up to a tenth of a second after the neighbour's first change of a record. */
  async #killLeader(victims: readonly Victim[], onStruck: () => void): Promise<void> {
    const { etcd, prng } = this.#field;
    const [victim] = victims;
    assert.ok(victim?.gateway !== undefined);
    const leader = await etcd.leader();
    const delayMs = prng.below(TAKEOVER_TAKES_MS);
    const back = this.#kill(victims, false, onStruck);
    await this.#takeoverBegins(gatewayId(victim.gateway));
    await pause(delayMs);
    await leader.kill();
    this.#event();
    this.#say(`etcd's leader killed ${String(delayMs)} ms after the first change`);
    await pause(LEADER_AWAY_MS);
    etcd.startNode(leader);
    this.#event();
    await back;
  }

  /** Watches etcd itself: a gateway answers when all sixteen are taken, a tenth of a second later. */
  async #takeoverBegins(dead: string): Promise<void> {
    const register = connectEtcdRegister({ endpoints: this.#field.etcd.endpoints, cluster: CLUSTER_NAME }, QUIET);
    try {
      await new Promise<void>((resolve, reject) => {
        const why = new Error(`nobody takes over from ${dead} within ${String(TAKEOVER_BEGINS_MS)} ms`);
        const timer = setTimeout(() => { reject(why); }, TAKEOVER_BEGINS_MS);
        const onChange = (): void => {
          clearTimeout(timer);
          resolve();
        };
        const nothing = (): void => undefined;
        register.watch([partitionsOf(dead)], { onChange, onSnapshot: nothing, onDeleted: nothing, onAway: nothing });
      });
    } finally {
      register.close();
    }
  }

  #event(): void {
    this.eventsUs.push(monotonicMicros());
  }
}
